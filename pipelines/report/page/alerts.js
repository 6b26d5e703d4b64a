// Alerts: marks in the large chart where an alert opened or closed, and the table of all of them.
//
// An alert is [models, slice, model, rule, column, opening, closing or null, elsewhere] (see alerts.py); an event
// is [row, seq for each of the models, time, value, message]. Of a group or a pair, elsewhere is [section, place in
// its chart, slice], and else null. A group has no models, and the model of a pair is its challenger.

let alerts = [];
const alertTable = { page: 0, scope: "all" };
const ALERT_WORDS = " Diamonds are alerts: filled where one opened, hollow where it closed.";
const BRIEF = ["slice", "rule", "value"]; // the cells that are wrapped, as in alerts.html
const CHART_OF = { auc_low: "auc", auc_high: "auc" }; // the interval is part of the AUC's chart

async function readAlerts() {
  if (hasBlock("alerts")) alerts = JSON.parse(await textBlock("alerts"));
}

/** The measure in whose chart a column's alerts are marked; null for a column without a chart. */
function chartOf(column) {
  const measure = CHART_OF[column] || column;
  return meta.drawn.includes(measure) ? measure : null;
}

/** What the legend says of the open alerts of a model in the chosen slice: at most one element. */
function openAlerts(model) {
  const ofModel = ([models, slice, , , , , closing]) => !closing && slice === state.slice && models.includes(model);
  const open = alerts.filter(ofModel).length;
  return open ? [element("span", { class: "open-alert" }, counted(open, "open alert"))] : [];
}

/**
 * Where alerts of the chosen models and slice opened and closed: filled and hollow diamonds.
 *
 * An alert of a pair stands on the AUC of its challenger.
 */
function alertTraces(measure) {
  const traces = [];
  for (const model of state.models) {
    const events = [];
    for (const [models, slice, , , column, opening, closing, elsewhere] of alerts) {
      const place = models.indexOf(model);
      if (place < 0 || slice !== state.slice || (elsewhere ? "auc" : chartOf(column)) !== measure) continue;
      for (const [event, opens] of [
        [opening, true],
        [closing, false],
      ]) {
        if (!event) continue;
        const [, seqs, time, value, message] = event;
        let [x, y] = [state.axis === "time" ? time && time / 1000 : seqs[place], value];
        if (elsewhere) {
          const row = rowUntil(model, time);
          [x, y] = row === null ? [null, null] : [horizontal(row), valueOrNull(columns.get("auc")[row])];
        }
        if (x !== null && y !== null) events.push({ x, y, opens, text: wrapped(message) });
      }
    }
    if (!events.length) continue;
    traces.push(alertMarks(events, styleOf(model), { model, measure }));
  }
  return traces;
}

/** The last row of a model, in the chosen slice, at or before a time in microseconds; null: there is none. */
function rowUntil(model, time) {
  const series = seriesOf(model, state.slice);
  if (time === null || !series || !meta.times || meta.panes) return null;
  const times = columns.get("time");
  let row = series.first;
  while (row < series.stop && times[row] <= time) row += 1;
  return row > series.first ? row - 1 : null;
}

/** Events, { x, y, opens, text }, as diamonds. */
function alertMarks(events, style, extra) {
  return {
    kind: "alert",
    type: "scatter",
    mode: "markers",
    x: events.map((event) => event.x),
    y: events.map((event) => event.y),
    text: events.map((event) => event.text),
    hovertemplate: "%{text}<extra></extra>",
    marker: {
      size: 11,
      color: style.colour,
      symbol: events.map((event) => (event.opens ? "diamond" : "diamond-open")),
      line: { width: 1.8, color: events.map((event) => (event.opens ? token("ground") : style.colour)) },
    },
    ...extra,
  };
}

/** Add the message of an alert to the label of its row: where both lie at one place, the row's label is shown. */
function tellAlerts(traces, marks) {
  for (const mark of marks) {
    const said = new Map();
    mark.x.forEach((x, place) => said.set(x, (said.get(x) || "") + "<br>" + mark.text[place]));
    for (const trace of traces) {
      if (trace.model !== mark.model || !trace.text) continue;
      trace.text = trace.text.map((text, place) => (text ? text + (said.get(trace.x[place]) || "") : text));
    }
  }
}

/** A message for a chart's label: lines of at most 64 letters, escaped. */
function wrapped(text) {
  const lines = [""];
  for (const word of text.split(" ")) {
    const last = lines[lines.length - 1];
    if (last && last.length + word.length >= 64) lines.push(word);
    else lines[lines.length - 1] = last ? `${last} ${word}` : word;
  }
  return lines.map(escaped).join("<br>");
}

function eventText(event) {
  if (!event) return "still open";
  return event[2] === null ? `row ${counts.format(event[0])}` : timeText(event[2]);
}

function alertsShown() {
  if (alertTable.scope === "all") return alerts;
  return alerts.filter(([models]) => models.some((model) => state.models.includes(model)));
}

function drawAlerts() {
  if (!byId("alerts-table")) return;
  const found = alertsShown();
  const pages = Math.max(1, Math.ceil(found.length / ROWS_AT_ONCE));
  alertTable.page = Math.min(Math.max(alertTable.page, 0), pages - 1);
  const body = element("tbody", {});
  for (const alert of found.slice(alertTable.page * ROWS_AT_ONCE, (alertTable.page + 1) * ROWS_AT_ONCE))
    body.append(alertRow(alert));
  if (!found.length)
    body.append(
      element("tr", {}, element("td", { colspan: 7, class: "text" }, "No alert of the chosen models.")),
    );
  byId("alerts-table").tBodies[0].replaceWith(body);
  showPages("alerts", counted(found.length, "alert"), alertTable.page, pages);
  byId("alerts-table").dataset.drawn = `${alertTable.scope}|${alertTable.page}|${found.length}`;
}

function alertRow([models, slice, name, rule, column, opening, closing, elsewhere]) {
  const latest = closing || opening;
  const title = elsewhere ? "Show this in its chart" : "Choose this model and slice";
  const button = element("button", { type: "button", class: "link", title }, name);
  button.addEventListener("click", () => {
    if (elsewhere) {
      chooseSeries(elsewhere[0], elsewhere[1]);
      return;
    }
    const measure = chartOf(column) || state.measure;
    main.view = null;
    choose({ models: models.slice(0, MODELS_AT_ONCE), slice, measure });
    say(`${name}, ${sliceName(slice)}: ${meta.measures[measure].label} is shown large`);
    goTo(byId("over-time"));
  });
  const digits = meta.measures[column]?.digits || "score";
  const value = latest[3] === null ? "–" : `${column} ${shown(latest[3], digits)}`;
  return element(
    "tr",
    { class: closing ? null : "open" },
    element("th", { scope: "row" }, button),
    ...[
      ["slice", elsewhere ? elsewhere[2] || (elsewhere[0] === "pairs" ? "all events" : "–") : sliceName(slice)],
      ["rule", rule],
      ["opened", eventText(opening)],
      ["closed", eventText(closing)],
      ["value", value],
    ].map(([label, text]) =>
      element("td", { class: BRIEF.includes(label) ? "text brief" : "text", "data-label": label }, text),
    ),
    element("td", { class: "text reason" }, element("div", { title: latest[4] }, latest[4])),
  );
}

function wireAlerts() {
  if (!byId("alerts-table")) return;
  byId("alerts-controls").hidden = false;
  byId("alerts-scope").addEventListener("change", (event) => {
    alertTable.scope = event.target.value;
    alertTable.page = 0;
    drawAlerts();
    say(byId("alerts-page").textContent);
  });
  for (const [id, step] of [
    ["alerts-back", -1],
    ["alerts-next", 1],
  ]) {
    byId(id).addEventListener("click", () => {
      alertTable.page += step;
      drawAlerts();
      say(byId("alerts-page").textContent);
    });
  }
}
