// The page goes on: rows are added to the columns as the server sends them, and what is said in words is taken
// again when the server has judged anew. What the reader chose stays.

const RANGES = [
  [0, "all"],
  [900, "newest 15 minutes"],
  [3600, "newest hour"],
  [21600, "newest 6 hours"],
  [86400, "newest day"],
  [604800, "newest 7 days"],
  [2592000, "newest 30 days"],
];
const SILENT_MS = 45_000; // the server says something every 15 s: later, the connection is taken for dead
const PRESELECTED = 5;

const stream = {
  source: null,
  heard: 0, // when the server said something last
  again: 0,
  work: Promise.resolve(),
  stale: false, // rows came while no one saw the page
  held: new Map(), // by section: what puts it anew once the reader has left it
  chosen: /[#&](model|none)=/.test(location.hash), // the reader, or a link, chose models
};

function epochOf(at) {
  return at.slice(0, at.lastIndexOf("-"));
}

function positionOf(at) {
  return Number(at.slice(at.lastIndexOf("-") + 1));
}

function tellState(text, lost) {
  const place = byId("stream-state");
  if (place.textContent !== text) place.textContent = text;
  place.classList.toggle("lost", lost);
}

// ---- rows

/** Add rows to the columns that are loaded; those of a series go behind its rows. */
function addRows(rows, values) {
  const skipped = meta.kept - rows.from;
  const of = rows.series.slice(skipped);
  if (!of.length) return false;
  const behind = meta.series.map(() => []);
  of.forEach((series, place) => behind[series].push(place + skipped));
  const total = meta.kept + of.length;
  for (const [name, old] of columns) {
    if (!isColumn(name)) continue;
    const made = new Float64Array(total).fill(NaN);
    const column = rows.names.indexOf(name);
    let at = 0;
    meta.series.forEach(([, , first, stop], series) => {
      made.set(old.subarray(first, stop), at);
      at += stop - first;
      for (const place of behind[series]) {
        if (column >= 0) made[at] = values[column * rows.series.length + place];
        at += 1;
      }
    });
    columns.set(name, made);
  }
  let at = 0;
  meta.series.forEach((series, place) => {
    const size = series[3] - series[2] + behind[place].length;
    series[2] = at;
    series[3] = at += size;
  });
  meta.kept = total;
  meta.at = `${epochOf(meta.at)}-${total}`;
  indexSeries();
  return true;
}

async function takeRows(data) {
  const rows = JSON.parse(data);
  if (rows.epoch !== epochOf(meta.at) || rows.to <= meta.kept) return;
  const values = unshuffled(await unpacked(Uint8Array.from(atob(rows.values), (c) => c.charCodeAt(0))));
  if (addRows(rows, values)) drawRows();
}

function drawRows() {
  document.documentElement.dataset.at = meta.at;
  stream.stale = document.hidden; // a page that no one sees is drawn when it is seen again
  if (stream.stale) return;
  thinOf.clear();
  fillLegend();
  drawMain();
  refreshMultiples();
  whenSeen(drawSlices, "slices");
  drawLatest();
}

// ---- words

async function textOfPage(at, name) {
  const answer = await fetchedBlock(at, name);
  return answer.ok ? new TextDecoder().decode(await unpacked(await answer.arrayBuffer())) : null;
}

async function columnOfPage(at, name) {
  const answer = await fetchedBlock(at, name);
  return answer.ok ? unshuffled(await unpacked(await answer.arrayBuffer())) : null;
}

/** Take the words of a page that the server has made, and, of a new epoch, its rows. */
async function takePage(data) {
  const news = JSON.parse(data);
  if (news.epoch === epochOf(meta.at) && news.words === meta.words) return;
  const answer = await fetch("./", { cache: "no-store" });
  if (answer.status === 401) throw new Error("the token is not valid any more");
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const next = JSON.parse(page.getElementById("meta").textContent);
  if (meta.series.length && !next.series.length) return; // a server that has begun again reads its rows yet
  if (next.structure !== meta.structure) {
    location.reload(); // there are sections that this page has no place for; the address keeps the view
    return;
  }
  const anew = epochOf(next.at) !== epochOf(meta.at);
  // Of the same rows, the columns are fetched that had no value before.
  const names = [...columns.keys()].filter((name) => isColumn(name) && (anew || !hasBlock(name)));
  const at = anew ? next.at : meta.at;
  const kept = anew ? next.kept : meta.kept;
  const held = (name) => next.columns.includes(name) || name === "reason";
  const read = next.texts.filter((name) => !name.endsWith("_chart")); // a chart's is read when the chart is seen
  const [texts, fetched] = await Promise.all([
    Promise.all(read.map((name) => textOfPage(next.at, name))),
    Promise.all(names.map((name) => (held(name) ? columnOfPage(at, name) : new Float64Array(kept).fill(NaN)))),
  ]);
  if ([...texts, ...fetched].includes(null)) return; // the server is at another epoch already, and says so
  const told = Object.fromEntries(read.map((name, place) => [name, JSON.parse(texts[place])]));
  setPage(page, next, told, anew, new Map(names.map((name, place) => [name, fetched[place]])));
}

function isColumn(name) {
  return !CURVE_COLUMNS.includes(name);
}

/** Put the server's own markup into a part of the page; what is unfolded stays unfolded. */
function putMarkup(place, news) {
  const opened = [...place.querySelectorAll("details")].map((part) => part.open);
  place.innerHTML = news.innerHTML;
  place.querySelectorAll("details").forEach((part, at) => (part.open = opened[at] ?? part.open));
}

/** Put the sections with tables of lines anew, with what the reader searched for and chose. */
function setSections(page, told) {
  for (const id of Object.keys(meta.sections)) {
    const [place, news] = [byId(id), page.getElementById(id)];
    if (!place || !news) continue;
    const put = () => setSection(id, place, news, told[id]);
    stream.held.delete(id);
    if (place.contains(document.activeElement)) stream.held.set(id, put); // not while the reader types there
    else put();
  }
}

function setSection(id, place, news, lines) {
  const before = lineTables.get(id);
  const chosen = [...place.querySelectorAll("select")].map((select) => [select.id, select.selectedOptions[0]?.text]);
  const chart = byId(`${id}-chart`);
  putMarkup(place, news);
  lineTables.delete(id);
  wireLines([id]);
  if (chart) {
    byId(`${id}-chart`).replaceWith(chart);
    wireFleet([id]);
    for (const [name, text] of chosen) {
      const option = [...byId(name).options].find((one) => one.text === text);
      if (option) byId(name).value = option.value;
    }
    fleetCharts.get(id).series = Number(byId(`${id}-series`).value);
    layOutFleet(id);
    waiting.delete(id);
    whenSeen(() => drawFleet(id), id);
  }
  const table = lineTables.get(id);
  if (!table) return;
  table.lines = lines;
  if (!before) return;
  Object.assign(table, { wanted: before.wanted, page: before.page });
  byId(`${id}-search`).value = before.wanted;
  drawLines(id);
}

function setPage(page, next, told, anew, fetched) {
  const before = [meta.columns, meta.drawn, meta.curvesAt].map(String);
  const chosen = state.models.map((model) => [meta.models[model], state.slots.get(baseOf(model))]);
  const slice = meta.slices[state.slice];
  if (!anew) for (const name of ["at", "kept", "series"]) delete next[name];
  Object.assign(meta, next);
  const now = [meta.columns, meta.drawn, meta.curvesAt].map(String);
  if (anew || now[0] !== before[0])
    for (const name of [...pending.keys()]) if (isColumn(name) && !columns.has(name)) pending.delete(name);
  for (const [name, values] of fetched) columns.set(name, values);
  if (now[1] !== before[1]) {
    fillMeasures();
    buildMultiples();
  }
  if (now[2] !== before[2]) {
    curveMoments.turn += 1; // what is being drawn has the points of other curves
    for (const name of CURVE_COLUMNS) pending.delete(name);
  }
  if (anew) {
    indexSeries();
    thinOf.clear();
    const there = chosen.map(([name, slot]) => [meta.models.indexOf(name), slot]).filter(([model]) => model >= 0);
    state.models = there.map(([model]) => model);
    state.slots = new Map(there.map(([model, slot]) => [baseOf(model), slot]));
    state.slice = Math.max(meta.slices.indexOf(slice), 0);
    if (!stream.chosen && state.models.length < PRESELECTED)
      state.models = [...new Set([...state.models, ...firstModels()])].slice(0, PRESELECTED);
    assignSlots();
  }
  for (const place of document.querySelectorAll("[data-live]")) {
    const news = page.querySelector(`[data-live="${place.dataset.live}"]`);
    if (news && news.innerHTML !== place.innerHTML) putMarkup(place, news);
  }
  overview.lines = told.overview;
  changes = told.changes;
  alerts = told.alerts || [];
  heat.cells = null;
  setSections(page, told);
  for (const resolve of waitingForPage.splice(0)) resolve();
  document.documentElement.dataset.words = String(meta.words);
  byId("overview-controls").hidden = meta.models.length <= 2;
  if (!document.hidden) drawOverview();
  showChanges();
  drawAlerts();
  if (meta.heatmap) drawHeatmap();
  classPairs.data = null;
  if (meta.classPairs) whenSeen(drawClassPairs, "class-pairs");
  layOutCurves();
  whenSeen(drawCurves, "curves");
  if (anew) {
    fillModels();
    fillSlices();
    layOutSlices();
    fillKeys();
  }
  drawRows();
}

// ---- the connection

/** Do what the server says in its order: a next message waits until the one before it is in the page. */
function inOrder(take) {
  return ({ data }) => {
    stream.heard = Date.now();
    stream.work = stream.work
      .then(() => take(data))
      .then(() => tellState("live", false))
      .catch((error) => {
        tellState(`not live: ${error.message}`, true);
        connectAgain(); // the server then tells again what the page has missed
      });
  };
}

function connectAgain() {
  clearTimeout(stream.again);
  stream.again = setTimeout(connect, AGAIN_MS);
}

function connect() {
  clearTimeout(stream.again);
  stream.source?.close();
  stream.heard = Date.now();
  const source = new EventSource(`api/stream?after=${encodeURIComponent(meta.at)}`);
  stream.source = source;
  source.addEventListener("rows", inOrder(takeRows));
  source.addEventListener("page", inOrder(takePage));
  source.addEventListener("beat", inOrder(() => {}));
  source.addEventListener("error", () => {
    tellState("connection lost, trying again", true);
    // After an answer that is no stream, such as that of a proxy, the browser does not try again.
    if (source.readyState === EventSource.CLOSED) connectAgain();
  });
}

function wireStream() {
  listens = true;
  const range = byId("range");
  range?.append(...RANGES.map(([seconds, label]) => element("option", { value: String(seconds) }, label)));
  range?.append(element("option", { value: "view", disabled: true }, "as zoomed"));
  const showRange = () => {
    if (range) range.value = state.last ? String(state.last) : main.view ? "view" : "0";
  };
  range?.addEventListener("change", () => {
    main.view = null;
    choose({ last: Number(range.value) });
    drawMain();
  });
  showRange();
  if (range) byId("pick").open = false; // the chart that moves is near the top
  listeners.push((what) => {
    showRange();
    if (what.includes("models")) stream.chosen = true;
  });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && stream.stale) {
      drawRows();
      if (byId("overview")) drawOverview();
    }
  });
  document.addEventListener("focusout", ({ target, relatedTarget }) => {
    for (const [id, put] of stream.held) {
      if (!byId(id).contains(target) || byId(id).contains(relatedTarget)) continue;
      stream.held.delete(id);
      put();
    }
  });
  setInterval(() => {
    if (Date.now() - stream.heard > SILENT_MS) connect();
  }, 5_000);
  document.documentElement.dataset.at = meta.at;
  document.documentElement.dataset.words = String(meta.words);
  connect();
}

begun?.then(wireStream, () => {});
