// Charts of groups and of pairs over time, one at a time: a line with its band, and what belongs to it.

const fleetCharts = new Map(); // by section: { data, series, turn, more: words of the series that is drawn }

const FLEET_DRAWERS = {
  roll_ups: (one, style) => rollUpTraces(one, byId("roll_ups-measure").value, style),
  pairs: (one, style) => pairTraces(one, style),
};

/** Title and words of the chart of a series by its name; what the series itself adds to the words is its drawer's. */
const FLEET_WORDS = {
  roll_ups: (name) => [
    `${name}: AUC, ${byId("roll_ups-measure").selectedOptions[0].text}`,
    `The line is the mean, the band its ${meta.confidence} interval. Triangles are the members furthest below and ` +
      "above the mean of the others: another member may be the furthest at each moment.",
  ],
  pairs: (name) => [
    `${name}: difference of the AUCs`,
    `The line is the difference in the window, the band its ${meta.confidence} interval. The dashed lines are the any-time ` +
      "interval, of all instances so far: once they leave 0 out, the verdict is given. Above 0 the challenger ranks better.",
  ],
};

function wireFleet(ids = Object.keys(meta.sections)) {
  for (const id of ids) {
    if (!meta.sections[id].chart) continue;
    const chart = fleetCharts.get(id) || { turn: 0, more: "" };
    fleetCharts.set(id, Object.assign(chart, { data: null, series: 0, turn: chart.turn + 1 }));
    byId(`${id}-choices`).hidden = false;
    byId(`${id}-figure`).hidden = false;
    byId(`${id}-choices`).addEventListener("change", () => showSeries(id, Number(byId(`${id}-series`).value)));
    byId(`${id}-table`)?.addEventListener("click", (event) => {
      const button = event.target.closest("button[data-series]");
      if (button) chooseSeries(id, Number(button.dataset.series));
    });
    layOutFleet(id);
    waiting.set(id, () => drawFleet(id));
  }
}

function seriesShown(id) {
  return byId(`${id}-series`).selectedOptions[0].text;
}

/** The words of a chart, before there is anything to draw: nothing moves when it is drawn. */
function layOutFleet(id, name = seriesShown(id)) {
  const [title, words] = FLEET_WORDS[id](name);
  byId(`${id}-chart-title`).textContent = title;
  byId(`${id}-caption`).textContent = words + fleetCharts.get(id).more;
}

function chooseSeries(id, series) {
  byId(`${id}-series`).value = series;
  showSeries(id, series);
  goTo(byId(`${id}-choices`));
}

async function showSeries(id, series) {
  fleetCharts.get(id).series = series;
  await drawFleet(id);
  say(byId(`${id}-chart-title`).textContent);
}

async function drawFleet(id) {
  const chart = fleetCharts.get(id);
  if (!chart) return;
  const turn = (chart.turn += 1);
  const text = chart.data ? null : await textBlock(`${id}_chart`);
  const Plotly = await plotly();
  if (turn !== chart.turn) return;
  chart.data ??= JSON.parse(text);
  const one = seriesNamed(chart.data.series, chart.series, seriesShown(id));
  const { traces, layout, words = "" } = FLEET_DRAWERS[id](one, styleOfSlot(0, 0), chart.data);
  const { step } = chart.data;
  chart.more = words + (step > 1 ? ` One in ${counts.format(step)} rows is drawn, and the last.` : "");
  layOutFleet(id, one.name);
  const shows = [id, chart.series, byId(`${id}-measure`)?.value || state.axis, isDark() ? "dark" : "light"].join("|");
  await paint(Plotly, byId(`${id}-chart`), traces, baseLayout({ dragmode: false, ...layout }));
  byId(`${id}-chart`).dataset.drawn = shows;
}

/** The series of a place; a served page's chart may be newer than its choice, and have the series elsewhere. */
function seriesNamed(all, place, name) {
  const wanted = name.trim();
  const here = all[place];
  return here?.name === wanted ? here : all.find((one) => one.name === wanted) || here || all[0];
}

/** A line with markers where it has a single point. */
function fleetLine(x, y, colour, extra) {
  const alone = (place) => [place - 1, place + 1].every((other) => !Number.isFinite(y[other] ?? NaN));
  return {
    type: "scatter",
    mode: "lines+markers",
    connectgaps: false,
    x,
    y,
    line: { color: colour, width: 2, simplify: false },
    marker: { color: colour, size: y.map((_, place) => (alone(place) ? 8 : 0)) },
    hovertemplate: "%{text}<extra></extra>",
    ...extra,
  };
}

function fleetBand(x, low, high, style, opacity, kind) {
  const ends = x.map((_, place) => [low[place] ?? NaN, high[place] ?? NaN]);
  return { ...bandOf(x, ends, style), kind, fillcolor: faded(style.colour, opacity) };
}

function rollUpTraces(one, measure, style) {
  const words = byId("roll_ups-measure").selectedOptions[0].text;
  const [value, low, high] = [measure, `${measure}_low`, `${measure}_high`].map((name) => one[name]);
  const text = value.map(
    (auc, place) =>
      `<b>${escaped(one.name)}</b><br>${timeText(1000 * one.x[place])} UTC<br>AUC, ${escaped(words)}: <b>${shown(auc, "rank")}</b>` +
      (low[place] === null || high[place] === null ? "" : ` [${shown(low[place], "rank")}, ${shown(high[place], "rank")}]`),
  );
  const traces = [
    fleetBand(one.x, low, high, style, 0.16, "band"),
    fleetLine(one.x, value, style.colour, { kind: "mean", text }),
  ];
  for (const [which, symbol] of [
    ["worst", "triangle-down"],
    ["best", "triangle-up"],
  ]) {
    const aucs = one[`${which}_auc`];
    traces.push({
      kind: which,
      type: "scatter",
      mode: "markers",
      x: one.x,
      y: aucs,
      marker: { color: token(which === "worst" ? "worse" : "better"), size: 8, symbol, opacity: 0.75 },
      hovertemplate: "%{text}<extra></extra>",
      text: aucs.map(
        (auc, place) =>
          `${which === "worst" ? "furthest below" : "furthest above"}: <b>${escaped(one[which][place] ?? "")}</b><br>` +
          `${timeText(1000 * one.x[place])} UTC<br>AUC <b>${shown(auc, "rank")}</b>`,
      ),
    });
  }
  return {
    traces,
    layout: { xaxis: { type: "date", fixedrange: true }, yaxis: { fixedrange: true, nticks: 8 } },
  };
}

/** Where alerts on what the chart of a pair draws opened and closed. */
function pairAlerts(one, x, style) {
  const events = [];
  for (const [, , , , column, opening, closing, elsewhere] of alerts) {
    if (elsewhere?.[0] !== "pairs" || fleetCharts.get("pairs").data.series[elsewhere[1]] !== one || !(column in one)) continue;
    for (const [event, opens] of [
      [opening, true],
      [closing, false],
    ]) {
      if (!event) continue;
      const [, , time, value, message] = event;
      const place = time === null ? -1 : one.time.findIndex((at) => at !== null && Math.abs(at - time / 1000) < 1);
      if (place >= 0 && value !== null) events.push({ x: x[place], y: value, opens, text: wrapped(message) });
    }
  }
  return events.length ? [alertMarks(events, style, {})] : [];
}

function pairTraces(one, style) {
  const { timed } = fleetCharts.get("pairs").data;
  const byTime = timed && state.axis === "time";
  const x = byTime ? one.time : one.seq;
  const text = one.difference.map((difference, place) => {
    const interval = (low, high) => (low[place] === null || high[place] === null ? "none" : `[${signed(low[place])}, ${signed(high[place])}]`);
    const when = byTime ? `${timeText(1000 * one.time[place])} UTC · ` : "";
    return (
      `<b>${escaped(one.name)}</b><br>${when}${counted(one.seq[place], "instance")}<br>` +
      `difference in the window <b>${signed(difference)}</b> ${interval(one.difference_low, one.difference_high)}<br>` +
      `any-time interval ${interval(one.anytime_low, one.anytime_high)}`
    );
  });
  const marks = pairAlerts(one, x, style);
  const edge = (y, kind) => fleetLine(x, y, token("text"), { kind, hoverinfo: "skip", hovertemplate: null, line: { color: token("text"), width: 1.4, dash: "dash" } });
  return {
    traces: [
      fleetBand(x, one.difference_low, one.difference_high, style, 0.16, "band"),
      edge(one.anytime_low, "anytime"),
      edge(one.anytime_high, "anytime"),
      fleetLine(x, one.difference, style.colour, { kind: "difference", text }),
      ...marks,
    ],
    layout: {
      xaxis: {
        type: byTime ? "date" : "linear",
        fixedrange: true,
        tickformat: byTime ? "" : ",d",
        title: { text: byTime ? "" : "instances that both scored" },
      },
      yaxis: { fixedrange: true, nticks: 8, zeroline: true },
      shapes: [{ type: "line", xref: "paper", x0: 0, x1: 1, y0: 0, y1: 0, line: { color: token("muted"), width: 1.5 } }],
    },
    words:
      (one.anytime_low.at(-1) === null && one.anytime_low.some(Number.isFinite)
        ? " They end where no difference fits all instances: the difference has changed."
        : "") +
      (marks.length ? ALERT_WORDS : ""),
  };
}
