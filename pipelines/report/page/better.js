// Who is better: one measure's tests at a time, and the mean over folds of the chosen learners as the stream
// goes, with its spread. Without JavaScript the tests of all measures stand below each other.

const better = { measure: "", spread: "deviation", learners: new Set(), turn: 0 };
const [MEAN, DEVIATION, LEAST, GREATEST] = [0, 1, 2, 3];

function learnerStyle(learner) {
  return styleOfSlot(meta.better.slots[learner], 0);
}

const unpackedMeans = new Map();
/** Unpack the means of a measure, or "seq" or "time" of the checkpoints, once. */
function means(name) {
  if (!unpackedMeans.has(name)) {
    const block = "means_" + (["seq", "time"].includes(name) ? name : meta.better.means.indexOf(name));
    unpackedMeans.set(name, unzipped(block).then(unshuffled));
  }
  return unpackedMeans.get(name);
}

/** One number of a learner at every checkpoint. */
function statistic(values, learner, which) {
  const { moments } = meta.better;
  const from = (learner * 4 + which) * moments;
  return values.subarray(from, from + moments);
}

function wireBetter() {
  if (!meta.better) return;
  const { learners, measures, labels } = meta.better;
  const select = byId("better-measure");
  select.append(...measures.map((name) => element("option", { value: name }, labels[name])));
  better.measure = measures[0];
  learners.forEach((_, learner) => {
    if (meta.better.slots[learner] < COLOURS.light.length) better.learners.add(learner);
  });
  byId("better-controls").hidden = false;
  byId("better-spread-label").hidden = !learners.length;
  for (const id of ["measure", "spread"]) {
    byId(`better-${id}`).addEventListener("change", (event) => {
      better[id] = event.target.value;
      showBetter();
      say(`${labels[better.measure]}: ${byId("better-spread").selectedOptions[0].text}`);
    });
  }
  if (layOutBetter()) fillLearners(null);
  waiting.set("better", showBetter);
}

/** The tests and the words of the measure; true where the measure has a chart. Nothing moves when it is drawn. */
function layOutBetter() {
  const { measure } = better;
  const { learners, labels, means: drawn, ahead } = meta.better;
  for (const block of document.querySelectorAll(".compared")) block.hidden = block.dataset.measure !== measure;
  const charted = learners.length > 0 && drawn.includes(measure);
  byId("better-figure").hidden = !charted;
  const said = meta.measures[measure]?.better;
  byId("better-chart-title").textContent = `${labels[measure]}, mean over folds${said ? ` (${said} is better)` : ""}`;
  byId("better-caption").textContent = betterCaption(ahead?.[measure]);
  return charted;
}

async function showBetter() {
  if (!layOutBetter()) return;
  const turn = (better.turn += 1);
  const { measure } = better;
  const byTime = meta.better.timed && state.axis === "time";
  const [values, moments, Plotly] = await Promise.all([means(measure), means(byTime ? "time" : "seq"), plotly()]);
  if (turn !== better.turn) return;
  fillLearners(values);
  const across = Array.from(moments, (x) => (byTime ? x / 1000 : x));
  const traces = [...better.learners].sort((a, b) => a - b).flatMap((learner) => learnerTraces(values, learner, across));
  const layout = baseLayout({
    xaxis: {
      type: byTime ? "date" : "linear",
      fixedrange: true,
      tickformat: byTime ? "" : ",d",
      title: { text: byTime ? "" : "events of the stream" },
    },
    yaxis: { fixedrange: true, nticks: 8 },
    dragmode: false,
  });
  const ahead = meta.better.ahead?.[measure];
  layout.shapes = ahead ? [aheadShape(ahead, byTime, across[across.length - 1])] : [];
  const shows = [
    measure,
    better.spread,
    [...better.learners].join(","),
    byTime ? "time" : "seq",
    isDark() ? "dark" : "light",
  ].join("|");
  await paint(Plotly, byId("better-chart"), traces, layout);
  byId("better-chart").dataset.drawn = shows;
}

function betterCaption(ahead) {
  const { moments, total } = meta.better;
  const spread = better.spread === "range" ? "from the least to the greatest fold" : "one standard deviation either way";
  let told = `Lines are means over folds, bands ${spread}: how far folds differ, not a confidence interval.`;
  if (ahead) told += ` Shaded: since when ${ahead[0]}, without a gap.`;
  if (moments < total) told += ` ${counts.format(moments)} of ${counts.format(total)} checkpoints are drawn.`;
  return told;
}

function endsOf(values, learner) {
  const [mean, deviation, least, greatest] = [MEAN, DEVIATION, LEAST, GREATEST].map((which) =>
    statistic(values, learner, which),
  );
  return better.spread === "range"
    ? Array.from(mean, (_, place) => [least[place], greatest[place]])
    : Array.from(mean, (value, place) => [value - deviation[place], value + deviation[place]]);
}

function learnerTraces(values, learner, across) {
  const style = learnerStyle(learner);
  const digits = meta.better.digits[better.measure];
  const mean = Array.from(statistic(values, learner, MEAN));
  const [deviation, least, greatest] = [DEVIATION, LEAST, GREATEST].map((which) => statistic(values, learner, which));
  const ends = endsOf(values, learner);
  const alone = (place) => [place - 1, place + 1].every((other) => !Number.isFinite(mean[other] ?? NaN));
  const line = {
    kind: "mean",
    learner,
    type: "scatter",
    mode: "lines+markers",
    connectgaps: false,
    x: across,
    y: mean.map(valueOrNull),
    line: { color: style.colour, width: 2, dash: style.dash, simplify: false },
    marker: { color: style.colour, symbol: style.symbol, size: mean.map((_, place) => (alone(place) ? 8 : 0)) },
    hovertemplate: "%{text}<extra></extra>",
    text: mean.map(
      (value, place) =>
        `<b>${escaped(meta.better.learners[learner])}</b><br>${escaped(meta.better.labels[better.measure])} ` +
        `<b>${shown(value, digits)}</b> ± ${shown(deviation[place], digits)}<br>` +
        `folds from ${shown(least[place], digits)} to ${shown(greatest[place], digits)}`,
    ),
  };
  if (mean.length === 1) {
    line.error_y = {
      type: "data",
      symmetric: false,
      color: style.colour,
      array: ends.map(([, high], place) => high - mean[place] || 0),
      arrayminus: ends.map(([low], place) => mean[place] - low || 0),
    };
  }
  const band = bandOf(across, ends, style);
  return [{ ...band, learner, fillcolor: faded(style.colour, 0.14) }, line];
}

function aheadShape([, seq, time], byTime, last) {
  return {
    type: "rect",
    xref: "x",
    yref: "paper",
    x0: byTime ? time / 1000 : seq,
    x1: last,
    y0: 0,
    y1: 1,
    fillcolor: token("muted"),
    opacity: 0.12,
    line: { width: 0 },
    layer: "below",
  };
}

/** The legend: the learners, and their latest means once they are unpacked. */
function fillLearners(values) {
  const { learners, moments } = meta.better;
  const digits = meta.better.digits[better.measure];
  const focused = document.activeElement?.dataset?.learner;
  byId("better-legend").replaceChildren(
    ...learners.map((name, learner) => {
      const box = element("input", { type: "checkbox", "data-learner": String(learner) });
      box.checked = better.learners.has(learner);
      box.addEventListener("change", () => {
        if (box.checked) better.learners.add(learner);
        else better.learners.delete(learner);
        showBetter();
        say(`${name} ${box.checked ? "is drawn" : "is not drawn"}`);
      });
      const latest = values ? shown(statistic(values, learner, MEAN)[moments - 1], digits) : "";
      const parts = [element("span", {}, name), element("span", { class: "value" }, latest)];
      return element("li", {}, element("label", {}, box, swatch(learnerStyle(learner)), ...parts));
    }),
  );
  if (focused !== undefined) byId("better-legend").querySelector(`[data-learner="${focused}"]`)?.focus();
}
