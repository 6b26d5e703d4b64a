// The latest AUC of every slice, models beside each other, some slices at a time.

const SLICES_AT_ONCE = 30;
const slices = { page: 0, order: "name", turn: 0 };

function slicesCaption() {
  return (
    "Points are the latest AUC, lines its interval; where a point is missing, the AUC is null. " +
    `The numbers are in the table of latest values (rows: every ${meta.parts[0]}).`
  );
}

function slicesOfChosen() {
  const found = [];
  for (let slice = 0; slice < meta.slices.length; slice += 1) {
    if (state.models.some((model) => seriesOf(model, slice))) found.push(slice);
  }
  return found;
}

function lastOf(model, slice, name) {
  const series = seriesOf(model, slice);
  return series ? columns.get(name)[series.stop - 1] : NaN;
}

function orderedSlices() {
  const all = slicesOfChosen();
  const best = (slice, name) => {
    const value =
      slices.order === "auc"
        ? lastOf(state.models[0], slice, name)
        : Math.max(...state.models.map((model) => lastOf(model, slice, name) || 0));
    return Number.isNaN(value) ? -Infinity : value;
  };
  const byName = (a, b) => collator.compare(meta.slices[a], meta.slices[b]);
  if (slices.order === "name") return meta.parts[0] === "slice" ? all.sort(byName) : all; // classes are in order
  const name = slices.order === "auc" ? "auc" : "window_events";
  const keys = new Map(all.map((slice) => [slice, best(slice, name)]));
  return all.sort((a, b) => keys.get(b) - keys.get(a) || a - b);
}

/** The words and the height of the chart, before there is anything to draw: nothing moves when it is drawn. */
function layOutSlices() {
  const about = byId("slices-about");
  const several = meta.slices.length > 1 && meta.columns.includes("auc");
  byId("slices").querySelector("figure").hidden = !several;
  if (!several) {
    about.textContent =
      meta.slices.length > 1
        ? "AUC is null in every row, so there is nothing to set side by side here."
        : "These rows have no slices. rocsteady evaluate --slice COLUMN makes rows for every value of a column.";
    return false;
  }
  const found = slicesOfChosen();
  const pages = Math.max(1, Math.ceil(found.length / SLICES_AT_ONCE));
  slices.page = Math.min(slices.page, pages - 1);
  byId("slices-controls").hidden = false;
  const named = found.filter((slice) => meta.slices[slice] !== "").length;
  const said = countedParts(named) + (named < found.length ? " and all events" : "");
  showPages("slices", said, slices.page, pages);
  const lines = Math.min(SLICES_AT_ONCE, found.length - slices.page * SLICES_AT_ONCE);
  const height = 56 + lines * Math.max(24, 10 + 9 * Math.min(state.models.length, 6));
  byId("slices-chart").style.height = `${height}px`;
  byId("slices-caption").textContent = slicesCaption();
  return true;
}

async function drawSlices() {
  const turn = (slices.turn += 1);
  const chart = byId("slices-chart");
  if (!layOutSlices()) return;
  await need(["auc", "auc_low", "auc_high", "window_events"]);
  const Plotly = await plotly();
  if (turn !== slices.turn) return;
  const shownNow = orderedSlices().slice(slices.page * SLICES_AT_ONCE, (slices.page + 1) * SLICES_AT_ONCE);
  const traces = state.models.map((model, place) => sliceTrace(model, place, shownNow));
  const labels = shownNow.map((slice) => escaped(shortened(sliceName(slice))));
  const layout = baseLayout({
    xaxis: { fixedrange: true, side: "top", nticks: 8 },
    yaxis: {
      fixedrange: true,
      tickvals: shownNow.map((_, line) => line),
      ticktext: labels,
      zeroline: false,
      range: [shownNow.length - 0.5, -0.5],
    },
  });
  const shows = `${state.models.join(",")}|${slices.order}|${slices.page}`;
  await paint(Plotly, chart, traces, layout);
  const without = shownNow.filter((slice) =>
    state.models.every((model) => Number.isNaN(lastOf(model, slice, "auc"))),
  );
  byId("slices-caption").textContent =
    slicesCaption() +
    (without.length
      ? ` Null here: ${without.map(sliceName).slice(0, 10).join(", ")}${without.length > 10 ? ", ..." : ""}.`
      : "");
  chart.dataset.drawn = shows;
}

function shortened(text) {
  return text.length > 34 ? text.slice(0, 33) + "…" : text;
}

function sliceTrace(model, place, shownNow) {
  const style = styleOf(model);
  const offset = (place - (state.models.length - 1) / 2) * Math.min(0.16, 0.7 / state.models.length);
  const trace = {
    type: "scatter",
    mode: "markers",
    model,
    slices: [],
    x: [],
    y: [],
    text: [],
    marker: { color: style.colour, size: 8, symbol: style.symbol + (wayOf(model) ? "-open" : "") },
    error_x: {
      type: "data",
      symmetric: false,
      array: [],
      arrayminus: [],
      color: style.colour,
      thickness: 1.6,
      width: 0,
    },
    hovertemplate: "%{text}<extra></extra>",
  };
  shownNow.forEach((slice, line) => {
    const series = seriesOf(model, slice);
    if (!series) return;
    const row = series.stop - 1;
    const auc = columns.get("auc")[row];
    if (Number.isNaN(auc)) return;
    const [low, high] = [columns.get("auc_low")[row], columns.get("auc_high")[row]];
    trace.slices.push(slice);
    trace.x.push(auc);
    trace.y.push(line + offset);
    trace.error_x.array.push(Number.isNaN(high) ? 0 : high - auc);
    trace.error_x.arrayminus.push(Number.isNaN(low) ? 0 : auc - low);
    const interval = Number.isNaN(low + high) ? "no interval" : `[${shown(low, "rank")}, ${shown(high, "rank")}]`;
    trace.text.push(
      `<b>${escaped(meta.models[model])}</b> ${escaped(sliceName(slice))}<br>AUC <b>${shown(auc, "rank")}</b> ${interval}` +
        `<br>${counts.format(columns.get("window_events")[row])} events in the window`,
    );
  });
  return trace;
}

function wireSlices() {
  byId("slices-order").addEventListener("change", (event) => {
    slices.order = event.target.value;
    slices.page = 0;
    drawSlices();
  });
  byId("slices-back").addEventListener("click", () => {
    slices.page -= 1;
    drawSlices();
  });
  byId("slices-next").addEventListener("click", () => {
    slices.page += 1;
    drawSlices();
  });
}
