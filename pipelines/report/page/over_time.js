// The large chart of one measure, with zooming by mouse, buttons and keys, and the small ones of all others.

const main = { view: null, turn: 0 };

async function drawMain() {
  const turn = (main.turn += 1);
  const measure = state.measure;
  const said = meta.measures[measure];
  byId("main-title").textContent = `${said.label}, ${sliceName(state.slice)}`;
  byId("main-meaning").textContent = said.sentence;
  await needFor(measure);
  const Plotly = await plotly();
  const began = await beginnings(measure);
  if (turn !== main.turn) return;
  showNewest();
  const chart = byId("main-chart");
  const traces = measureTraces(measure, main.view, chart.clientWidth, false);
  const marks = alertTraces(measure);
  tellAlerts(traces, marks);
  traces.push(...extremeTraces(measure), ...marks);
  const layout = baseLayout(axisLayout(measure, false));
  const veils = intoPanels(traces, layout);
  layout.shapes = [...veils, ...began];
  if (main.view)
    layout.xaxis.range =
      state.axis === "time" ? main.view.map((ms) => new Date(ms).toISOString()) : main.view.slice();
  layout.uirevision = Math.random();
  byId("main-caption").textContent = summary(measure);
  byId("main-notes").textContent =
    drawnNote(traces, measure) +
    (veils.length ? " Fainter: before the first full window." : "") +
    (began.length ? " Dotted upright lines: where a change began, as told in the overview." : "");
  const shows = `${measure}|${state.slice}|${state.axis}|${state.models.join(",")}|${isDark() ? "dark" : "light"}`;
  await paint(Plotly, chart, traces, layout);
  showBands();
  chart.dataset.drawn = shows;
  if (!chart.dataset.wired) {
    chart.dataset.wired = "1";
    chart.on("plotly_relayout", (change) => zoomed(change));
    chart.on("plotly_hover", ({ points }) => light(points[0].data.model));
    chart.on("plotly_unhover", () => light(null));
  }
}

/** Where the reader wants the newest seconds, the view ends at the newest row of the chosen models. */
function showNewest() {
  const whole = state.last && state.axis === "time" ? extent() : null;
  if (whole) main.view = [whole[1] - state.last * 1000, whole[1]];
}

const PANELS = 3;

/**
 * Give each way that the chosen models were evaluated in a panel of its own, one below the other on the same
 * scales, with the way above it; return what lies over them. One way, or more than PANELS: one panel.
 */
function intoPanels(traces, layout) {
  const chosen = state.models.filter((model) => seriesOf(model, state.slice));
  let ways = [...new Set(chosen.map(wayOf))].sort((one, other) => one - other);
  if (ways.length > PANELS) ways = [];
  byId("main-chart").style.setProperty("--panels", Math.max(1, ways.length));
  if (ways.length < 2) {
    const full = firstFull(state.models);
    return full === null ? [] : [veil(full, [0, 1])];
  }
  const veils = [];
  const [axis, overlay] = [layout.yaxis, layout.yaxis2];
  layout.annotations = [];
  ways.forEach((way, place) => {
    const height = (1.03 - 0.09 * ways.length) / ways.length;
    const top = 0.94 - place * (height + 0.09);
    const domain = [Math.max(0, top - height), top];
    const [own, over] = [place ? 2 * place + 1 : "", 2 * place + 2];
    layout[`yaxis${own}`] = { ...axis, domain, anchor: "x", ...(place ? { matches: "y" } : {}) };
    layout[`yaxis${over}`] = { ...overlay, domain, anchor: "x", overlaying: `y${own}` };
    layout.xaxis.anchor = `y${own}`;
    for (const trace of traces)
      if (wayOf(trace.model) === way) trace.yaxis = trace.yaxis === "y2" ? `y${over}` : `y${own}`;
    layout.annotations.push({
      text: escaped(meta.ways[way]),
      font: { size: 13, color: token("text") },
      showarrow: false,
      xref: "paper",
      yref: "paper",
      x: 0,
      y: domain[1],
      xanchor: "left",
      yanchor: "bottom",
    });
    const full = firstFull(chosen.filter((model) => wayOf(model) === way));
    if (full !== null) veils.push(veil(full, domain));
  });
  return veils;
}

/** Over the rows whose windows are not full yet. */
function veil(until, [bottom, top]) {
  const [from] = extent();
  return {
    type: "rect",
    xref: "x",
    yref: "paper",
    x0: from,
    x1: until,
    y0: bottom,
    y1: top,
    fillcolor: token("ground"),
    opacity: 0.6,
    line: { width: 0 },
    layer: "above",
  };
}

/** Upright lines where the changes of the chosen models began, as told in the overview. */
async function beginnings(measure) {
  if (measure !== "auc" || !byId("overview")) return [];
  const lines = [];
  for (const line of await overviewLines()) {
    if (!state.models.includes(line.model)) continue;
    for (const [slice, event, time] of line.began) {
      if (slice !== state.slice || (state.axis === "time" ? time === null : meta.panes)) continue;
      const x = state.axis === "time" ? time / 1000 : event;
      lines.push({
        type: "line",
        xref: "x",
        yref: "paper",
        x0: x,
        x1: x,
        y0: 0,
        y1: 1,
        name: "beginning",
        line: { color: styleOf(line.model).colour, width: 1.5, dash: "dot" },
      });
    }
  }
  return lines;
}

function drawnNote(traces, measure) {
  let drawn = 0;
  let all = 0;
  for (const trace of traces) {
    if (trace.kind !== "line") continue;
    const series = seriesOf(trace.model, state.slice);
    drawn += trace.rows.filter((row) => row >= 0).length;
    all += series.stop - series.first;
  }
  let notes =
    measure === "auc" && meta.columns.includes("auc_low")
      ? traces.filter((trace) => trace.kind === "band").length < 3
        ? `The band is the ${meta.confidence} interval.`
        : `A model's name or line, pointed at, shows its ${meta.confidence} interval as a band.`
      : "";
  if (traces.some((trace) => trace.kind === "mark")) {
    notes += " Triangles mark where AUC was lowest and highest, as told in Best and worst.";
  }
  if (traces.some((trace) => trace.kind === "alert"))
    notes += ALERT_WORDS;
  if (traces.some((trace) => trace.kind === "grey"))
    notes += ` Grey: windows with less than half of the usual labels of the rarer class; more may be to come.`;
  const shrunk = traces.filter((trace) => trace.kind === "drift");
  if (shrunk.length) {
    const told = shrunk.map(({ model, count }) => {
      const { first, stop } = seriesOf(model, state.slice);
      return `${meta.models[model]} ${counts.format(count)} of ${counts.format(stop - first)}`;
    });
    notes += ` Ticks at the top are rows before which an adaptive window shrank (drift): ${told.join(", ")}.`;
  }
  if (traces.some((trace) => trace.kind === "null"))
    notes += " Ticks at the bottom are rows in which the measure is null.";
  if (drawn >= all || main.view) return notes;
  return `${notes} ${counts.format(drawn)} of ${counts.format(all)} rows are drawn, extremes kept; zoom in to see all.`;
}

/** Where the AUC was lowest and highest, of the sentences in "Best and worst". */
function extremeTraces(measure) {
  if (measure !== "auc" || meta.slices[state.slice] !== "") return [];
  const marks = [];
  for (const model of state.models) {
    const change = changes ? changes[model] : null;
    if (!change || !change.worst) continue;
    const style = styleOf(model);
    [
      [change.worst, "triangle-down", "lowest"],
      [change.best, "triangle-up", "highest"],
    ].forEach(([point, symbol, word]) => {
      const x = state.axis === "time" ? point[1] / 1000 : point[0];
      marks.push({
        kind: "mark",
        type: "scatter",
        mode: "markers",
        x: [x],
        y: [point[2]],
        hoverinfo: "skip",
        model,
        word,
        marker: { symbol, size: 11, color: style.colour, line: { color: token("ground"), width: 1.5 } },
      });
    });
  }
  return marks;
}

function extent() {
  let low = Infinity;
  let high = -Infinity;
  for (const model of state.models) {
    const series = seriesOf(model, state.slice);
    if (!series) continue;
    for (let row = series.first; row < series.stop; row += 1) {
      const x = horizontal(row);
      if (x < low) low = x;
      if (x > high) high = x;
    }
  }
  return high > low ? [low, high] : null;
}

let zoomTimer = 0;
function zoomed(change) {
  if (change["xaxis.autorange"]) main.view = null;
  else if (change["xaxis.range[0]"] !== undefined) {
    const ends = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
    main.view =
      state.axis === "time"
        ? ends.map((end) =>
            typeof end === "number"
              ? end
              : Date.parse(end.replace(" ", "T") + (end.endsWith("Z") ? "" : "Z")),
          )
        : ends.map(Number);
    if (main.view.some(Number.isNaN)) main.view = null;
  } else return;
  choose({ last: 0 });
  clearTimeout(zoomTimer);
  zoomTimer = setTimeout(drawMain, 30);
}

function zoom(how) {
  const whole = extent();
  if (!whole || how === "all") main.view = null;
  else {
    const [low, high] = main.view || whole;
    const size = high - low;
    const moves = {
      in: [size / 4, -size / 4],
      out: [-size / 2, size / 2],
      left: [-size / 4, -size / 4],
      right: [size / 4, size / 4],
    };
    main.view = [low + moves[how][0], high + moves[how][1]];
    if (main.view[0] <= whole[0] && main.view[1] >= whole[1]) main.view = null;
  }
  choose({ last: 0 });
  say(main.view ? `shown from ${viewText(main.view[0])} to ${viewText(main.view[1])}` : "all is shown");
  drawMain();
}

function viewText(x) {
  return state.axis === "time" ? timeText(x * 1000) : "event " + counts.format(Math.round(x));
}

function wireZoom() {
  const bar = byId("zoom");
  bar.hidden = false;
  for (const button of bar.querySelectorAll("button"))
    button.addEventListener("click", () => zoom(button.dataset.zoom));
  const keys = { "+": "in", "=": "in", "-": "out", ArrowLeft: "left", ArrowRight: "right", 0: "all" };
  const chart = byId("main-chart");
  chart.tabIndex = 0;
  chart.setAttribute("role", "group");
  chart.setAttribute("aria-label", "Chart; plus and minus zoom, arrows move, 0 shows all");
  chart.setAttribute("aria-describedby", "main-caption");
  chart.addEventListener("keydown", (event) => {
    if (!(event.key in keys) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    zoom(keys[event.key]);
  });
}

// Small charts: one of every measure, drawn when it comes into view and when what it shows has changed.

const multiples = new Map(); // measure -> { figure, plot, caption, visible, stale }
let multiplesWatcher = null;

function buildMultiples() {
  const home = byId("multiples");
  home.replaceChildren();
  multiples.clear();
  multiplesWatcher?.disconnect();
  const watcher = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        const one = multiples.get(entry.target.dataset.measure);
        one.visible = entry.isIntersecting;
        if (one.visible && one.stale) drawMultiple(one);
      }
    },
    { rootMargin: "200px" },
  );
  multiplesWatcher = watcher;
  const isCount = (name) => meta.measures[name].digits === "count";
  const groups = Object.entries(meta.groups).map(([group, title]) => [
    element("h3", { class: "group-title" }, title),
    meta.drawn.filter((name) => meta.measures[name].group === group && !isCount(name)),
  ]);
  groups.push([element("summary", {}, "Counts of events"), meta.drawn.filter(isCount)]);
  for (const [title, names] of groups) {
    if (!names.length) continue;
    const grid = element("div", { class: "grid" });
    home.append(element(title.tagName === "H3" ? "div" : "details", { class: "group" }, title, grid));
    for (const measure of names) {
      const said = meta.measures[measure];
      const button = element("button", { type: "button", title: said.sentence }, said.label);
      button.addEventListener("click", () => {
        main.view = null;
        choose({ measure });
        say(`${said.label} is shown large`);
        goTo(byId("over-time"));
        byId("measure").focus({ preventScroll: true });
      });
      const plot = element("div", { class: "plot" });
      const caption = element("figcaption", { class: "unseen" });
      const better = said.better ? `${said.better} is better` : "";
      const figure = element(
        "figure",
        { class: "chart small", "data-measure": measure },
        element("div", { class: "small-head" }, button, element("span", {}, better)),
        plot,
        caption,
      );
      multiples.set(measure, { measure, figure, plot, caption, visible: false, stale: true, turn: 0 });
      grid.append(figure);
      watcher.observe(figure);
    }
  }
}

let layingOut = 0;
/** Take away the charts of measures that are the same in all chosen rows; a line names these. */
async function layOutMultiples() {
  const turn = (layingOut += 1);
  await need(meta.drawn);
  if (turn !== layingOut) return;
  const same = [];
  for (const { measure, figure } of multiples.values()) {
    const value = constantOf(measure);
    figure.hidden = value !== null;
    if (value !== null) same.push(`${meta.measures[measure].label} ${value}`);
  }
  for (const group of document.querySelectorAll("#multiples .group"))
    group.hidden = !group.querySelector("figure:not([hidden])");
  byId("constant-measures").textContent =
    same.length && state.models.length ? `The same in all chosen rows, so not drawn: ${same.join("; ")}.` : "";
}

/** The value of a measure that is the same in all chosen rows, as a text; null where the measure varies. */
function constantOf(measure) {
  const values = columns.get(measure);
  let [value, nulls, rows] = [NaN, 0, 0];
  for (const model of state.models) {
    const series = seriesOf(model, state.slice);
    if (!series) continue;
    rows += series.stop - series.first;
    for (let row = series.first; row < series.stop; row += 1) {
      if (Number.isNaN(values[row])) nulls += 1;
      else if (Number.isNaN(value)) value = values[row];
      else if (values[row] !== value) return null;
    }
  }
  if (nulls === rows) return "null";
  const gone = nulls ? ` (null in ${counts.format(nulls)} of ${counts.format(rows)} rows)` : "";
  return shown(value, meta.measures[measure].digits) + gone;
}

async function drawMultiple(one) {
  const turn = (one.turn += 1);
  one.stale = false;
  await needFor(one.measure);
  const Plotly = await plotly();
  if (turn !== one.turn) return;
  one.caption.textContent = summary(one.measure).replace(/^[^:]*: /, "");
  const layout = baseLayout(axisLayout(one.measure, true));
  const traces = measureTraces(one.measure, null, one.plot.clientWidth, true);
  if (layout.yaxis.type === "linear")
    Object.assign(layout.yaxis, steps(traces, meta.measures[one.measure].digits === "count"));
  const shows = `${one.measure}|${state.slice}|${state.axis}|${state.models.join(",")}`;
  await paint(Plotly, one.plot, traces, layout);
  if (one.measure === "auc") showBands();
  one.figure.dataset.drawn = shows;
}

function refreshMultiples() {
  layOutMultiples();
  for (const one of multiples.values()) {
    one.stale = true;
    if (one.visible) drawMultiple(one);
  }
}
