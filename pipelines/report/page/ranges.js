// What is said of a measure in words: which windows are full, and from where to where the values went.

/** Whether rows of a series have full windows, as core/verdicts/series.py tells it; null where none has. */
function fullWindows(series) {
  const [seq, events] = [columns.get("seq"), columns.get("window_events")];
  if (meta.panes) return (row) => row + 1 === series.stop || breaksBefore(row + 1);
  let size = -1; // 0 = windows that change their size
  for (let row = series.first; row < series.stop; row += 1)
    if (seq[row] > events[row]) size = size < 0 || size === events[row] ? events[row] : 0;
  return size < 0 ? null : (row) => seq[row] > events[row] || events[row] === size;
}

/**
 * Whether the window of a row holds fewer labels than is usual for its series: less than half of the median,
 * over full windows, of the rarer class. The last hours of a stream are so, as long as labels are to come. Null
 * where no row is of this kind. A row before the first full window is not; of a pane the last row decides.
 */
const thinOf = new Map();
function thinWindows(series) {
  if (!thinOf.has(series)) thinOf.set(series, findThin(series));
  return thinOf.get(series);
}

function findThin(series) {
  const full = fullWindows(series);
  if (!full) return null;
  const [positives, negatives] = [columns.get("positives"), columns.get("negatives")];
  const rarer = (row) => Math.min(positives[row], negatives[row]);
  const usual = [];
  let first = -1;
  for (let row = series.first; row < series.stop; row += 1) {
    if (!full(row)) continue;
    if (first < 0) first = row;
    if (!Number.isNaN(rarer(row))) usual.push(rarer(row));
  }
  const half = usual.sort((a, b) => a - b)[Math.floor(usual.length / 2)] / 2;
  const found = new Set();
  let thin = false;
  for (let row = series.stop - 1; row >= (meta.panes ? series.first : first); row -= 1) {
    if (!meta.panes || full(row)) thin = rarer(row) < half;
    if (thin) found.add(row);
  }
  return found.size ? (row) => found.has(row) : null;
}

/** The last row of a series in which a measure is not null; -1 = none. */
function lastKnown(series, measure) {
  const values = columns.get(measure);
  let row = series.stop - 1;
  while (row >= series.first && Number.isNaN(values[row])) row -= 1;
  return row >= series.first ? row : -1;
}

/** The last value that is known, and since when it is null: "0.812", "0.812 (12 Mar; null since)". */
function lastText(series, measure, write) {
  const row = lastKnown(series, measure);
  if (row < 0) return "–";
  if (row === series.stop - 1) return write(row);
  const times = meta.times ? columns.get("time") : null;
  const when = times
    ? shortDay(times[row], times[series.stop - 1])
    : "event " + counts.format(columns.get("seq")[row]);
  return `${write(row)} (${when}; null since)`;
}

/** Where on the axis the first full window of some models is, if windows before it are drawn; else null. */
function firstFull(models) {
  let least = Infinity;
  if (meta.panes) return null;
  for (const model of models) {
    const series = seriesOf(model, state.slice);
    const full = series ? fullWindows(series) : null;
    if (!full) continue;
    let row = series.first;
    while (row < series.stop && !full(row)) row += 1;
    least = Math.min(least, row === series.first ? -Infinity : horizontal(row));
  }
  return Number.isFinite(least) ? least : null;
}

/** One measure of the chosen models and slice, summed up in a sentence. */
function summary(measure) {
  const said = meta.measures[measure];
  const values = columns.get(measure);
  const parts = [];
  for (const model of state.models) {
    const series = seriesOf(model, state.slice);
    if (!series) {
      parts.push(`${meta.models[model]} has no rows in this ${meta.parts[0]}`);
      continue;
    }
    let low = Infinity;
    let high = -Infinity;
    let gone = 0;
    let full = fullWindows(series);
    const known = (row) => !Number.isNaN(values[row]);
    if (full) {
      let any = false;
      for (let row = series.first; row < series.stop && !any; row += 1) any = full(row) && known(row);
      if (!any) full = null;
    }
    for (let row = series.first; row < series.stop; row += 1) {
      if (!known(row)) gone += 1;
      else if (!full || full(row)) {
        low = Math.min(low, values[row]);
        high = Math.max(high, values[row]);
      }
    }
    const last = lastText(series, measure, (row) => shown(values[row], said.digits));
    const goneAtEnd = Number.isNaN(values[series.stop - 1]);
    if (low > high) parts.push(`${meta.models[model]} is null throughout`);
    else if (series.stop - series.first === 1)
      parts.push(`${meta.models[model]} ${last} (one row only: fewer events than a row's stride)`);
    else {
      parts.push(
        `${meta.models[model]} ${last}${goneAtEnd ? "" : " at the end"} (from ${shown(low, said.digits)} to ${shown(high, said.digits)}${full ? " over full windows" : ""}` +
          `${gone ? `, null in ${counts.format(gone)} of ${counts.format(series.stop - series.first)} rows` : ""})`,
      );
    }
  }
  return parts.length
    ? `${said.label}, ${sliceName(state.slice)}: ${parts.join("; ")}.`
    : "No model is chosen.";
}
