// The ROC curve with its hull, and the calibration that the hull is, at a moment that a slider chooses.
//
// A curve is [model, slice, seq, time, positives, negatives, first point, points]; the points are columns.

const CURVE_COLUMNS = ["curve_threshold", "curve_tp", "curve_fp", "curve_on_hull", "curve_block_score"];
const curveMoments = { list: [], turn: 0 };

function instant(curve) {
  return state.axis === "time" && curve[3] !== null ? curve[3] : curve[2];
}

function instantText(value) {
  return state.axis === "time" && meta.times ? timeText(value) + " UTC" : "event " + counts.format(value);
}

function curvesShown() {
  return meta.curves.filter((curve) => curve[1] === state.slice && state.models.includes(curve[0]));
}

function listMoments() {
  curveMoments.list = [...new Set(curvesShown().map(instant))].sort((a, b) => a - b);
}

function chosenMoment() {
  const list = curveMoments.list;
  if (state.at === null) return list.length - 1;
  let place = 0;
  while (place + 1 < list.length && list[place + 1] <= state.at) place += 1;
  return place;
}

/** Of every chosen model the latest curve up to the moment. */
function curvesAt(moment) {
  const found = new Map();
  for (const curve of curvesShown()) {
    if (instant(curve) > moment) continue;
    const other = found.get(curve[0]);
    if (!other || instant(curve) >= instant(other)) found.set(curve[0], curve);
  }
  return state.models.filter((model) => found.has(model)).map((model) => found.get(model));
}

/** Where the chosen models have curves. */
function elsewhere() {
  const found = new Set(meta.curves.filter((curve) => state.models.includes(curve[0])).map((curve) => curve[1]));
  const names = [...found].sort((a, b) => a - b).map(sliceName);
  const listed = `${names.slice(0, 5).join(", ")}${names.length > 5 ? ", ..." : ""}`;
  return names.length ? ` Choose a ${meta.parts[0]} that has curves: ${listed}.` : "";
}

/** The words and the places of the charts, before there is anything to draw; the moment's place, or -1. */
function layOutCurves() {
  if (!meta.curves.length) return -1;
  listMoments();
  const list = curveMoments.list;
  byId("curves-body").hidden = list.length === 0;
  byId("curves-about").textContent = list.length
    ? meta.curvesAbout
    : `The chosen models have no curves of ${sliceName(state.slice)}.${elsewhere()}`;
  byId("curves-keys").hidden = list.length === 0;
  if (!list.length) return -1;
  const place = chosenMoment();
  const slider = byId("moment");
  slider.max = String(list.length - 1);
  slider.value = String(place);
  slider.setAttribute("aria-valuetext", instantText(list[place]));
  slider.hidden = list.length < 2;
  byId("moment-text").textContent =
    instantText(list[place]) + (list.length > 1 ? ` (${place + 1} of ${list.length})` : "");
  byId("roc-caption").textContent = rocCaption(curvesAt(list[place]), list[place]);
  if (!byId("calibration-caption").textContent) byId("calibration-caption").textContent = calibrationCaption(true);
  return place;
}

function hasBothClasses(curve) {
  return curve[4] > 0 && curve[5] > 0;
}

/** What the curves are of: said once for those of the same events. */
function rocCaption(curves, moment) {
  const groups = new Map();
  for (const curve of curves) {
    const [model, , , , positives, negatives, , points] = curve;
    const older = instant(curve) === moment ? "" : ` of ${instantText(instant(curve))}`;
    const kind = `${counts.format(positives)} positives and ${counts.format(negatives)} negatives${older}`;
    if (!groups.has(kind)) groups.set(kind, []);
    groups.get(kind).push(`${meta.models[model]} ${counted(points, "point")}`);
  }
  const kinds = [...groups].map(([kind, models]) => `${kind}: ${models.join(", ")}`);
  const undrawn = curves.filter((curve) => !hasBothClasses(curve)).map((curve) => meta.models[curve[0]]);
  return (
    `At ${instantText(moment)}. ${kinds.join("; ")}. The dashed line is the convex hull, the dotted one is chance.` +
    (undrawn.length ? ` One class only, so no curve: ${undrawn.join(", ")}.` : "")
  );
}

async function drawCurves() {
  const turn = (curveMoments.turn += 1);
  const place = layOutCurves();
  if (place < 0) return;
  await need(CURVE_COLUMNS);
  const Plotly = await plotly();
  if (turn !== curveMoments.turn) return;
  const curves = curvesAt(curveMoments.list[place]);
  await drawRoc(Plotly, curves);
  await drawCalibration(Plotly, curves);
  byId("roc-chart").dataset.drawn = String(place);
}

/** Points of a ROC curve to draw: every hull vertex, and of each pixel's run the first and the last. */
function rocPoints(curve, pixels) {
  const [, , , , positives, negatives, first, count] = curve;
  const [tp, fp, hull] = [columns.get("curve_tp"), columns.get("curve_fp"), columns.get("curve_on_hull")];
  const cell = (point) =>
    `${Math.floor((fp[point] / negatives) * pixels)}/${Math.floor((tp[point] / positives) * pixels)}`;
  const kept = [];
  const all = count <= 4 * pixels;
  for (let point = first; point < first + count; point += 1) {
    const inside = point > first && point < first + count - 1;
    if (
      all ||
      !inside ||
      hull[point] === 1 ||
      cell(point) !== cell(point - 1) ||
      cell(point) !== cell(point + 1)
    )
      kept.push(point);
  }
  return kept;
}

function curveHover(curve, point) {
  const [model, , seq, time, positives, negatives] = curve;
  const [tp, fp, threshold] = [
    columns.get("curve_tp")[point],
    columns.get("curve_fp")[point],
    columns.get("curve_threshold")[point],
  ];
  const when = time !== null ? timeText(time) + " UTC" : "event " + counts.format(seq);
  const cut = Number.isNaN(threshold) ? "above every score" : `score ≥ ${threshold}`;
  return (
    `<b>${escaped(meta.models[model])}</b>, ${when}<br>${cut}` +
    `<br>TPR <b>${shown(tp / positives, "share")}</b> (${counts.format(tp)} of ${counts.format(positives)})` +
    `<br>FPR <b>${shown(fp / negatives, "share")}</b> (${counts.format(fp)} of ${counts.format(negatives)})`
  );
}

/** What chance ranks, or what a calibrated score says. */
function diagonal() {
  return {
    kind: "diagonal",
    type: "scatter",
    mode: "lines",
    x: [0, 1],
    y: [0, 1],
    hoverinfo: "skip",
    line: { color: token("field"), width: 1, dash: "dot" },
  };
}

function stillAxis(text) {
  return { title: { text }, fixedrange: true, nticks: 6, zeroline: false };
}

function shareAxis(text, range) {
  return { ...stillAxis(text), range };
}

async function drawRoc(Plotly, curves) {
  const chart = byId("roc-chart");
  const traces = [diagonal()];
  for (const curve of curves) {
    const [model, , , , positives, negatives, first, count] = curve;
    if (!hasBothClasses(curve)) continue;
    const style = styleOf(model);
    const [tp, fp, hull] = [columns.get("curve_tp"), columns.get("curve_fp"), columns.get("curve_on_hull")];
    const points = rocPoints(curve, chart.clientWidth);
    const vertices = [];
    for (let point = first; point < first + count; point += 1) if (hull[point] === 1) vertices.push(point);
    const place = (list) => ({
      x: list.map((point) => fp[point] / negatives),
      y: list.map((point) => tp[point] / positives),
    });
    traces.push({
      kind: "hull",
      model,
      points: vertices,
      type: "scatter",
      mode: "lines+markers",
      ...place(vertices),
      hoverinfo: "skip",
      line: { color: faded(style.colour, 0.55), width: 1.2, dash: "dash" },
      marker: { color: style.colour, size: 4, symbol: style.symbol },
    });
    traces.push({
      kind: "roc",
      model,
      points,
      type: "scatter",
      mode: "lines",
      ...place(points),
      text: points.map((point) => curveHover(curve, point)),
      hovertemplate: "%{text}<extra></extra>",
      line: { color: style.colour, width: 2, dash: style.dash, simplify: false },
    });
  }
  const layout = baseLayout({
    xaxis: shareAxis("false positive rate", [-0.01, 1.01]),
    yaxis: shareAxis("true positive rate", [-0.01, 1.01]),
  });
  await paint(Plotly, chart, traces, layout);
}

/** The blocks of the isotonic calibration: between hull vertices, mean score and share of positives. */
function calibrationBlocks(curve) {
  const [, , , , , , first, count] = curve;
  const [tp, fp, hull, score] = ["curve_tp", "curve_fp", "curve_on_hull", "curve_block_score"].map((name) =>
    columns.get(name),
  );
  const blocks = [];
  let before = first;
  for (let point = first + 1; point < first + count; point += 1) {
    if (hull[point] !== 1) continue;
    const positives = tp[point] - tp[before];
    const mass = positives + fp[point] - fp[before];
    if (mass > 0 && Number.isFinite(score[point]))
      blocks.push({ x: score[point], y: positives / mass, mass, positives });
    before = point;
  }
  return blocks.reverse();
}

async function drawCalibration(Plotly, curves) {
  const all = curves.map((curve) => ({ curve, blocks: calibrationBlocks(curve) }));
  const scores = all.flatMap(({ blocks }) => blocks.map((block) => block.x));
  const probable = scores.every((x) => x >= 0 && x <= 1);
  const traces = probable ? [diagonal()] : [];
  for (const { curve, blocks } of all) {
    const style = styleOf(curve[0]);
    const most = Math.max(1, ...blocks.map((block) => block.mass));
    traces.push({
      kind: "calibration",
      model: curve[0],
      type: "scatter",
      mode: "lines+markers",
      x: blocks.map((block) => block.x),
      y: blocks.map((block) => block.y),
      masses: blocks.map((block) => block.mass),
      line: { color: style.colour, width: 1.5, dash: style.dash },
      marker: {
        color: style.colour,
        symbol: style.symbol,
        size: blocks.map((block) => 5 + 11 * Math.sqrt(block.mass / most)),
        opacity: 0.85,
        line: { width: 1, color: token("ground") },
      },
      text: blocks.map(
        (block) =>
          `<b>${escaped(meta.models[curve[0]])}</b><br>mean score ${shown(block.x, "score")}` +
          `<br>share of positives <b>${shown(block.y, "share")}</b>` +
          `<br>${counts.format(block.positives)} of ${counts.format(block.mass)} events`,
      ),
      hovertemplate: "%{text}<extra></extra>",
    });
  }
  const layout = baseLayout({
    xaxis: probable ? shareAxis("mean predicted probability", [-0.02, 1.02]) : stillAxis("mean score"),
    yaxis: shareAxis("share of positives", [-0.02, 1.02]),
  });
  await paint(Plotly, byId("calibration-chart"), traces, layout);
  byId("calibration-caption").textContent = calibrationCaption(probable);
}

function calibrationCaption(probable) {
  return (
    "Each point is a block of the isotonic calibration, an edge of the hull: its mean score, and " +
    "the share of positives in it; larger points hold more events. " +
    (probable
      ? "On the dotted line scores are probabilities to be taken at their word; above it they are too low, below too high."
      : "The scores are not within 0 and 1, so they cannot be held against the share directly.")
  );
}

function wireCurves() {
  byId("moment").addEventListener("input", (event) => {
    state.at = curveMoments.list[Number(event.target.value)];
    if (Number(event.target.value) === curveMoments.list.length - 1) state.at = null;
    writeFragment();
    drawCurves();
  });
}
