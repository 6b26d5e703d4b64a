// Charts by plotly: colours, layouts, axes, and the bands of the models that are pointed at.

// Okabe and Ito's colours, told apart by colour-blind readers; yellow and black change places in the dark.
const COLOURS = {
  light: ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#1a1a1a"],
  dark: ["#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#F0E442", "#D55E00", "#f2f2f2"],
};
const DASHES = ["solid", "dash", "dot"];
const SYMBOLS = ["circle", "square", "diamond", "cross", "x", "star", "hexagon"];
const DASH_ARRAYS = { solid: "", dash: "7 4", dot: "2 3" };

let printing = false; // on paper colours are the light ones

function isDark() {
  if (printing) return false;
  return (
    state.theme === "dark" || (state.theme === "system" && matchMedia("(prefers-color-scheme: dark)").matches)
  );
}

function styleOf(model) {
  return styleOfSlot(state.slots.get(baseOf(model)) || 0, wayOf(model));
}

function styleOfSlot(slot, way) {
  const colours = COLOURS[isDark() ? "dark" : "light"];
  const round = (Math.floor(slot / colours.length) + way) % DASHES.length;
  return { colour: colours[slot % colours.length], dash: DASHES[round], symbol: SYMBOLS[slot % SYMBOLS.length] };
}

function faded(colour, opacity) {
  const number = parseInt(colour.slice(1), 16);
  return `rgba(${number >> 16},${(number >> 8) & 255},${number & 255},${opacity})`;
}

function token(name) {
  return getComputedStyle(document.documentElement)
    .getPropertyValue("--" + name)
    .trim();
}

function baseLayout(extra) {
  const axis = {
    gridcolor: token("grid"),
    linecolor: token("line"),
    zerolinecolor: token("line"),
    tickcolor: token("line"),
    automargin: true,
    zerolinewidth: 1,
  };
  const layout = {
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    showlegend: false,
    hovermode: "closest",
    font: { family: getComputedStyle(document.body).fontFamily, size: 12.5, color: token("muted") },
    hoverlabel: {
      bgcolor: token("surface"),
      bordercolor: token("field"),
      align: "left",
      font: { family: getComputedStyle(document.body).fontFamily, color: token("text"), size: 13 },
    },
    margin: { l: 8, r: 14, t: 8, b: 8 },
    ...extra,
  };
  layout.xaxis = { ...axis, ...(extra.xaxis || {}) };
  layout.yaxis = { ...axis, ...(extra.yaxis || {}) };
  return layout;
}

const coarse = matchMedia("(pointer: coarse)").matches;
const PLOT_CONFIG = { displayModeBar: false, displaylogo: false, responsive: true, doubleClick: "reset" };

/** What charts are drawn for: paper, or a screen in one of two themes. */
function medium() {
  return printing ? "paper" : isDark() ? "dark" : "light";
}

/** Draw a chart anew, on paper in the size that its place has there; the chart then says what it is drawn for. */
async function paint(Plotly, chart, traces, layout) {
  const drawnFor = medium();
  if (printing) Object.assign(layout, { width: chart.clientWidth, height: chart.clientHeight });
  // A trace without a uid gets that of the trace that had its place before, and the element of that one.
  traces.forEach((trace, place) => (trace.uid ??= `place-${place}`));
  await Plotly.react(chart, traces, layout, PLOT_CONFIG);
  chart.dataset.medium = drawnFor;
}

let plotlyReady = null;
/** The plotting library, run once. */
function plotly() {
  plotlyReady ??= runPlotly();
  return plotlyReady;
}

let lit = null;

function bandsShown() {
  const there = state.models.filter((model) => seriesOf(model, state.slice));
  return there.length < 3 ? there : there.filter((model) => model === lit);
}

/** Show the bands of `bandsShown` in the charts of the AUC, without drawing these again. */
function showBands() {
  const shownNow = new Set(bandsShown());
  for (const trace of document.querySelectorAll(".plot .scatterlayer .trace")) {
    const band = /traceband-(\d+)/.exec(trace.getAttribute("class"));
    // An element that was a band before may be a line now.
    trace.style.opacity = band && !shownNow.has(Number(band[1])) ? 0 : "";
  }
}

function light(model) {
  if (lit === model) return;
  lit = model;
  showBands();
}

async function needFor(measure) {
  const names = ["seq", "window_events", "positives", "negatives", "reason", measure]; // those of ranges.js, too
  if (meta.times) names.push("time");
  if (meta.panes) names.push("pane_start");
  for (const name of ["drift", "due"]) if (meta.columns.includes(name)) names.push(name);
  if (measure === "auc") names.push("auc_low", "auc_high");
  await need(names);
}

/** A range of the vertical axis and steps of which at least two are in it. */
function steps(traces, whole) {
  let [low, high] = [Infinity, -Infinity];
  for (const trace of traces) {
    if (["null", "drift", "grey"].includes(trace.kind)) continue;
    trace.y.forEach((y, place) => {
      if (y === null || Number.isNaN(y)) return;
      low = Math.min(low, y - (trace.error_y ? trace.error_y.arrayminus[place] : 0));
      high = Math.max(high, y + (trace.error_y ? trace.error_y.array[place] : 0));
    });
  }
  if (low > high) return {};
  const least = whole ? 1 : 0;
  const pad = high > low ? (high - low) * 0.06 : Math.max(Math.abs(high) * 0.05, 0.05);
  const range = [low - Math.max(pad, least), high + Math.max(pad, least)];
  const power = 10 ** Math.floor(Math.log10(range[1] - range[0]));
  for (const step of [5, 2, 1, 0.5, 0.2, 0.1]) {
    const dtick = step * power;
    const ticks = Math.floor(range[1] / dtick + 1e-9) - Math.ceil(range[0] / dtick - 1e-9) + 1;
    if (ticks >= 2 && (dtick >= least || step === 0.1)) return { range, tick0: 0, dtick };
  }
  return { range };
}

/** Whether sizes of windows of several kinds differ so much that only a logarithmic axis shows all of them. */
function apart(measure) {
  if (measure !== "window_events" || meta.ways.length < 2) return false;
  let [low, high] = [Infinity, 0];
  for (const model of state.models) {
    const series = seriesOf(model, state.slice);
    if (!series) continue;
    const sizes = columns.get(measure).subarray(series.first, series.stop);
    low = sizes.reduce((one, other) => Math.min(one, other), low);
    high = sizes.reduce((one, other) => Math.max(one, other), high);
  }
  return low > 0 && high > 20 * low;
}

function axisLayout(measure, small) {
  const values = meta.measures[measure].digits === "count" ? (measure === "cmd" ? "~s" : ",~r") : "";
  return {
    xaxis: {
      type: state.axis === "time" ? "date" : "linear",
      fixedrange: coarse || small,
      showgrid: !small,
      nticks: small ? 4 : 0,
      tickformat: state.axis === "time" ? "" : ",d",
      hoverformat: "",
    },
    yaxis: { fixedrange: true, nticks: small ? 4 : 8, tickformat: values, type: apart(measure) ? "log" : "linear" },
    yaxis2: { overlaying: "y", range: [0, 1], visible: false, fixedrange: true },
    separators: ".,",
    dragmode: coarse || small ? false : "zoom",
  };
}
