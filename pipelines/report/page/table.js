// The table of latest values: sortable by every column, filtered, fifty rows at a time.

const ROWS_AT_ONCE = 50;
const MAIN_COLUMNS = ["auc", "h", "ks", "brier", "kappa", "kappa_m"];
const latest = {
  sort: "model",
  down: false,
  page: 0,
  filter: "",
  scope: meta.slices.includes("") ? "whole" : "all",
  wide: false,
  turn: 0,
};

function measureColumns() {
  const there = Object.keys(meta.measures).filter(
    (name) => meta.columns.includes(name) && !["weight", "window_events", "prevalence"].includes(name),
  );
  return latest.wide ? there : there.filter((name) => MAIN_COLUMNS.includes(name));
}

function tableColumns(found) {
  const plain = [["model", "Model", "text"]];
  if (latest.scope === "all") plain.push(["slice", "Slice", "text"]);
  if (meta.times) plain.push(["time", "Time (UTC)", "time"]);
  plain.push(
    ["seq", "Events applied", "count"],
    ["window_events", "In window", "count"],
    ["prevalence", "Prevalence", "share"],
  );
  for (const name of measureColumns()) {
    if (name === "auc" && !latest.wide && meta.columns.includes("auc_low"))
      plain.push([name, `AUC [${meta.confidence} interval]`, "interval"]);
    else plain.push([name, meta.measures[name].label, meta.measures[name].digits]);
  }
  const codes = columns.get("reason");
  if (found.some((series) => codes[series[3] - 1] >= 0)) plain.push(["reason", "Reason", "reason"]);
  return plain;
}

function textOf(series, name) {
  if (name === "model") return meta.models[series[0]];
  if (name === "slice") return sliceName(series[1]);
  return reasonOf(series[3] - 1, "");
}

function latestSeries() {
  const wanted = latest.filter.toLowerCase();
  const whole = meta.slices.indexOf("");
  return meta.series.filter((series) => {
    if (latest.scope === "whole" && series[1] !== whole) return false;
    if (latest.scope === "slice" && series[1] !== state.slice) return false;
    return (
      !wanted ||
      ["model", "slice", "reason"].some((name) => textOf(series, name).toLowerCase().includes(wanted))
    );
  });
}

function sortLatest(found, kind) {
  const { sort, down } = latest;
  const sign = down ? -1 : 1;
  if (kind === "text" || kind === "reason") {
    return found.sort(
      (a, b) => sign * collator.compare(textOf(a, sort), textOf(b, sort)) || a[0] - b[0] || a[1] - b[1],
    );
  }
  const column = columns.get(sort);
  return found.sort((a, b) => {
    const [one, other] = [column[a[3] - 1], column[b[3] - 1]];
    // Null comes last, whichever way the rest is sorted.
    if (Number.isNaN(one) || Number.isNaN(other)) return Number.isNaN(one) - Number.isNaN(other);
    return sign * (one < other ? -1 : one > other ? 1 : 0) || a[0] - b[0] || a[1] - b[1];
  });
}

async function drawLatest() {
  const turn = (latest.turn += 1);
  await need(["reason"]);
  const chosen = latestSeries();
  const shape = tableColumns(chosen);
  if (!shape.some(([name]) => name === latest.sort)) latest.sort = "model";
  await need([
    "auc_low",
    "auc_high",
    ...shape.map(([name]) => name).filter((name) => !["model", "slice", "reason"].includes(name)),
  ]);
  if (turn !== latest.turn) return;
  const kind = shape.find(([name]) => name === latest.sort)[2];
  const found = sortLatest(chosen, kind);
  const pages = Math.max(1, Math.ceil(found.length / ROWS_AT_ONCE));
  latest.page = Math.min(Math.max(latest.page, 0), pages - 1);
  const table = byId("latest-table");
  const focused =
    document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.sort : null;
  table.tHead.replaceChildren(headRow(shape));
  const body = element("tbody", {});
  for (const series of found.slice(latest.page * ROWS_AT_ONCE, (latest.page + 1) * ROWS_AT_ONCE))
    body.append(bodyRow(series, shape));
  if (!found.length)
    body.append(
      element("tr", {}, element("td", { colspan: shape.length, class: "text" }, "No row matches.")),
    );
  table.tBodies[0].replaceWith(body);
  if (focused) table.tHead.querySelector(`[data-sort="${focused}"]`)?.focus();
  showPages("latest", counted(found.length, "row"), latest.page, pages);
  const of = {
    whole: "model, over all its events",
    slice: `model in ${sliceName(state.slice)}`,
    all: `model and ${meta.parts[0]}`,
  }[latest.scope];
  byId("latest-about").textContent = `The last row of every ${of}. Choose a column's title to sort.`;
  const { sort, down, page, filter, scope, wide } = latest;
  table.dataset.drawn = [sort, down, page, filter, scope, wide].join("|");
}

function headRow(shape) {
  const row = element("tr", {});
  for (const [name, label, kind] of shape) {
    const sorted = latest.sort === name ? (latest.down ? "descending" : "ascending") : "none";
    const button = element("button", { type: "button", "data-sort": name }, label);
    button.addEventListener("click", () => {
      latest.down = latest.sort === name ? !latest.down : kind !== "text" && kind !== "reason";
      latest.sort = name;
      latest.page = 0;
      drawLatest().then(() => say(`sorted by ${label}, ${latest.down ? "descending" : "ascending"}`));
    });
    row.append(
      element(
        "th",
        { scope: "col", "aria-sort": sorted, class: kind === "text" || kind === "reason" ? "text" : null },
        button,
      ),
    );
  }
  return row;
}

function bodyRow(series, shape) {
  const row = series[3] - 1;
  const line = element("tr", {});
  for (const [name, , kind] of shape) {
    if (name === "model")
      line.append(element("th", { scope: "row", title: textOf(series, name) }, textOf(series, name)));
    else if (kind === "text") line.append(element("td", { class: "text" }, textOf(series, name)));
    else if (kind === "reason") line.append(element("td", { class: "text reason" }, textOf(series, name)));
    else {
      const value = columns.get(name)[row];
      const exact = Number.isFinite(value) && kind !== "time" ? (meta.exact ? String(value) : "") : reasonOf(row, name);
      const [first, stop] = series.slice(2);
      const write = (at) =>
        kind === "interval"
          ? withInterval(...["auc", "auc_low", "auc_high"].map((one) => columns.get(one)[at]))
          : shown(columns.get(name)[at], kind);
      const text = kind === "time" ? timeText(value) : lastText({ first, stop }, name, write);
      line.append(element("td", { title: exact || null }, text));
    }
  }
  return line;
}

function wireLatest() {
  byId("latest-controls").hidden = false;
  byId("latest-scope").value = latest.scope;
  let timer = 0;
  byId("latest-filter").addEventListener("input", (event) => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      latest.filter = event.target.value.trim();
      latest.page = 0;
      drawLatest().then(() => say(byId("latest-page").textContent));
    }, 120);
  });
  byId("latest-scope").addEventListener("change", (event) => {
    latest.scope = event.target.value;
    latest.page = 0;
    drawLatest().then(() => say(byId("latest-page").textContent));
  });
  byId("latest-wide").addEventListener("change", (event) => {
    latest.wide = event.target.checked;
    drawLatest().then(() => say(latest.wide ? "all measures are shown" : "the main measures are shown"));
  });
  for (const [id, step] of [
    ["latest-back", -1],
    ["latest-next", 1],
  ]) {
    byId(id).addEventListener("click", () => {
      latest.page += step;
      drawLatest().then(() => say(byId("latest-page").textContent));
    });
  }
}
