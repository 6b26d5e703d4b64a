// Traces of one measure for plotly: lines, bands, marks of nulls and of drift, thinned to what pixels show.

function horizontal(row) {
  return state.axis === "time" ? columns.get("time")[row] / 1000 : columns.get("seq")[row];
}

/**
 * The rows of a series to draw, thinned to what `buckets` pixels can show; -1 is a break between panes.
 *
 * Rows are gathered while they fall into the same pixel; of such a run the first, the last, and for each of
 * `names` the least and the greatest stay, and the first null: no extreme and no gap is lost. Where there are
 * at most four rows to a pixel, all stay. `view` is [low, high] of the axis, or null for all; a row beyond
 * either side stays, so that lines run on to the edge.
 */
function thin(series, names, view, buckets) {
  let { first, stop } = series;
  const paned = meta.panes;
  if (view && !paned) {
    let low = first;
    while (low + 1 < stop && horizontal(low + 1) < view[0]) low += 1;
    let high = stop;
    while (high - 1 > low && horizontal(high - 2) > view[1]) high -= 1;
    first = low;
    stop = high;
  }
  if (stop - first <= 4 * buckets) {
    const rows = [];
    for (let row = first; row < stop; row += 1) {
      if (row > first && breaksBefore(row)) rows.push(-1);
      rows.push(row);
    }
    return rows;
  }
  const start = horizontal(first);
  const scale = buckets / Math.max(horizontal(stop - 1) - start, Number.MIN_VALUE);
  const values = names.map((name) => columns.get(name));
  const rows = [];
  let row = first;
  while (row < stop) {
    if (row > first && breaksBefore(row)) rows.push(-1);
    const bucket = Math.floor((horizontal(row) - start) * scale);
    let end = row + 1;
    while (end < stop && !breaksBefore(end) && Math.floor((horizontal(end) - start) * scale) === bucket)
      end += 1;
    for (const kept of keptOf(row, end, values)) rows.push(kept);
    row = end;
  }
  return rows;
}

function breaksBefore(row) {
  if (!meta.panes) return false;
  const panes = columns.get("pane_start");
  return panes[row] !== panes[row - 1];
}

function keptOf(first, stop, values) {
  const kept = new Set([first, stop - 1]);
  for (const column of values) {
    let least = -1;
    let greatest = -1;
    let gone = -1;
    for (let row = first; row < stop; row += 1) {
      const value = column[row];
      if (Number.isNaN(value)) gone = gone < 0 ? row : gone;
      else {
        if (least < 0 || value < column[least]) least = row;
        if (greatest < 0 || value > column[greatest]) greatest = row;
      }
    }
    for (const row of [least, greatest, gone]) if (row >= 0) kept.add(row);
  }
  return [...kept].sort((a, b) => a - b);
}

function hoverText(row, model, measure) {
  const said = meta.measures[measure];
  const value = columns.get(measure)[row];
  const where = [];
  if (meta.times && !Number.isNaN(columns.get("time")[row]))
    where.push(timeText(columns.get("time")[row]) + " UTC");
  where.push("event " + counts.format(columns.get("seq")[row]));
  if (meta.columns.includes("due") && !Number.isNaN(columns.get("due")[row]))
    where.push("due " + timeText(columns.get("due")[row]));
  let text = `<b>${escaped(meta.models[model])}</b><br>${where.join(" · ")}<br>`;
  if (Number.isNaN(value))
    return text + `${escaped(said.label)} is null: ${escaped(reasonOf(row, measure) || "no reason given")}`;
  text += `${escaped(said.label)} <b>${shown(value, said.digits)}</b>`;
  if (measure === "auc" && columns.get("auc_low") && !Number.isNaN(columns.get("auc_low")[row] + columns.get("auc_high")[row])) {
    text += ` [${shown(columns.get("auc_low")[row], "rank")}, ${shown(columns.get("auc_high")[row], "rank")}]`;
  }
  if (meta.exact) text += `<br>exactly ${value}`;
  text += `<br>${counts.format(columns.get("window_events")[row])} events in the window`;
  if (drifted(row)) text += "<br>drift: the window shrank since the row before";
  const reason = reasonOf(row, measure);
  return reason ? `${text}<br>${escaped(reason)}` : text;
}

function drifted(row) {
  return meta.columns.includes("drift") && columns.get("drift")[row] === 1;
}

function at(row) {
  if (row < 0) return null;
  const x = horizontal(row);
  return Number.isNaN(x) ? null : x;
}

function valueOrNull(value) {
  return Number.isFinite(value) ? value : null;
}

/** The interval as polygons; see `bandOf`. */
function bandTrace(rows, style) {
  const low = columns.get("auc_low");
  const high = columns.get("auc_high");
  const ends = rows.map((row) => (row < 0 ? [NaN, NaN] : [low[row], high[row]]));
  return bandOf(rows.map(at), ends, style);
}

/** A band as polygons, one for each run of places that have both ends: low forward, high backward. */
function bandOf(across, ends, style) {
  const x = [];
  const y = [];
  let run = [];
  const close = () => {
    if (run.length > 1) {
      if (x.length) {
        x.push(null);
        y.push(null);
      }
      for (const place of run) {
        x.push(across[place]);
        y.push(ends[place][0]);
      }
      for (const place of run.toReversed()) {
        x.push(across[place]);
        y.push(ends[place][1]);
      }
    }
    run = [];
  };
  ends.forEach(([low, high], place) => {
    if (Number.isFinite(low) && Number.isFinite(high)) run.push(place);
    else close();
  });
  close();
  return {
    kind: "band",
    type: "scatter",
    mode: "lines",
    x,
    y,
    fill: "toself",
    fillcolor: faded(style.colour, 0.2),
    line: { width: 0, color: style.colour },
    hoverinfo: "skip",
  };
}

/**
 * Rows whose neighbours are null or breaks: a line shows nothing of them. Of several models they are open and
 * of different sizes, the first ones largest, so that those at one place are all seen.
 */
function aloneTrace(rows, values, style, small, place) {
  const several = state.models.length > 1;
  const size = small ? 5 : 7;
  const alone = rows.filter((row, place) => {
    const gap = (other) => other === undefined || other < 0 || !Number.isFinite(values[other]);
    return row >= 0 && Number.isFinite(values[row]) && gap(rows[place - 1]) && gap(rows[place + 1]);
  });
  const trace = {
    kind: "alone",
    type: "scatter",
    mode: "markers",
    x: alone.map(at),
    y: alone.map((row) => values[row]),
    marker: {
      color: style.colour,
      size: several ? size + (small ? 2 : 4) * (Math.max(0, 4 - place) % 5) : size,
      symbol: style.symbol + (several ? "-open" : ""),
      line: { width: 1.8, color: style.colour },
    },
    rows: alone,
  };
  return trace;
}

function nullTrace(rows, values, style, buckets) {
  const gone = rows.filter((row) => row >= 0 && !Number.isFinite(values[row]));
  const step = Math.max(1, Math.ceil(gone.length / (buckets / 4)));
  const some = gone.filter((_, place) => place % step === 0);
  return {
    kind: "null",
    type: "scatter",
    mode: "markers",
    x: some.map(at),
    y: some.map(() => 0.015),
    yaxis: "y2",
    marker: {
      color: style.colour,
      size: 9,
      symbol: "line-ns-open",
      line: { width: 1.5, color: style.colour },
    },
    rows: some,
  };
}

/** Rows that say drift, a line of ticks for each model beneath the top; at most one to four pixels. */
function driftTrace(series, style, view, buckets, line) {
  const found = [];
  for (let row = series.first; row < series.stop; row += 1) if (drifted(row)) found.push(row);
  const [low, high] = view || extent() || [0, 1];
  const pixel = (row) => Math.floor(((horizontal(row) - low) / (high - low)) * (buckets / 4));
  const some = found.filter((row, place) => place === 0 || pixel(row) !== pixel(found[place - 1]));
  return {
    kind: "drift",
    type: "scatter",
    mode: "markers",
    x: some.map(at),
    y: some.map(() => 0.98 - 0.04 * line),
    yaxis: "y2",
    marker: {
      color: style.colour,
      size: 7,
      symbol: "line-ns-open",
      line: { width: 1.5, color: style.colour },
    },
    rows: some,
    count: found.length,
  };
}

/**
 * The line again, in grey, over rows whose windows hold few labels (`thinWindows`): a segment ends at such a row.
 * Null where no row is of this kind.
 */
function greyTrace(line, series, small) {
  const thin = thinWindows(series);
  if (!thin) return null;
  const [x, y, rows] = [[], [], []];
  line.rows.forEach((row, place) => {
    if (row < 0 || !thin(row)) return;
    const before = place ? line.rows[place - 1] : -1;
    const joined = rows.length && rows[rows.length - 1] === before;
    if (!joined) {
      for (const of of [x, y]) of.push(null);
      rows.push(-1);
      if (before >= 0) {
        x.push(line.x[place - 1]);
        y.push(line.y[place - 1]);
        rows.push(before);
      }
    }
    x.push(line.x[place]);
    y.push(line.y[place]);
    rows.push(row);
  });
  if (!rows.length) return null;
  return {
    kind: "grey",
    type: "scatter",
    mode: "lines",
    connectgaps: false,
    x,
    y,
    rows,
    hoverinfo: "skip",
    line: { color: token("field"), width: line.line.width + (small ? 0.5 : 1), simplify: false },
  };
}

/** All traces of a measure: for every chosen model its band, line, grey part, lone points, nulls and drifts. */
function measureTraces(measure, view, width, small) {
  const traces = [];
  const values = columns.get(measure);
  const banded = measure === "auc" && meta.columns.includes("auc_low");
  const buckets = Math.max(60, Math.floor(width));
  let drifts = 0;
  for (const [place, model] of state.models.entries()) {
    const series = seriesOf(model, state.slice);
    if (!series) continue;
    const style = styleOf(model);
    const rows = thin(series, banded ? ["auc", "auc_low", "auc_high"] : [measure], view, buckets);
    const line = {
      kind: "line",
      model,
      measure,
      type: "scatter",
      mode: "lines",
      connectgaps: false,
      rows,
      x: rows.map(at),
      y: rows.map((row) => (row < 0 ? null : valueOrNull(values[row]))),
      line: { color: style.colour, width: small ? 1.5 : 2, dash: style.dash, simplify: false },
    };
    const alone = aloneTrace(rows, values, style, small, place);
    const parts = [line];
    if (banded) {
      parts.unshift(bandTrace(rows, style));
      parts[0].uid = `band-${model}`;
      parts[0].opacity = bandsShown().includes(model) ? 1 : 0;
    }
    const grey = greyTrace(line, series, small);
    if (grey) parts.push(grey);
    if (banded && alone.rows.length) {
      const low = columns.get("auc_low");
      const high = columns.get("auc_high");
      alone.error_y = {
        type: "data",
        symmetric: false,
        thickness: 1.5,
        color: style.colour,
        array: alone.rows.map((row) => high[row] - values[row] || 0),
        arrayminus: alone.rows.map((row) => values[row] - low[row] || 0),
      };
    }
    if (alone.rows.length) parts.push(alone);
    if (!small) {
      const gone = nullTrace(rows, values, style, buckets);
      if (gone.rows.length) parts.push(gone);
      const shrunk = driftTrace(series, style, view, buckets, drifts);
      if (shrunk.rows.length) {
        parts.push(shrunk);
        drifts += 1;
      }
    }
    for (const part of parts) {
      part.model = model;
      part.measure = measure;
      if (part.hoverinfo !== "skip") {
        part.hovertemplate = "%{text}<extra></extra>";
        part.text = part.rows.map((row) => (row < 0 ? "" : hoverText(row, model, measure)));
      }
      traces.push(part);
    }
  }
  return traces;
}

// The bands of many models hide each other: more than two are seen one at a time, at the name or the line that
// the reader points at.
