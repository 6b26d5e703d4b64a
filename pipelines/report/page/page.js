// The controls, and what begins when the page is read.

const PICKS_AT_ONCE = 60;
const SLICES_LISTED = 300;
const MANY = 8; // with more, searching helps

let changes = null;

function swatch(style) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "swatch");
  svg.setAttribute("viewBox", "0 0 26 12");
  svg.setAttribute("aria-hidden", "true");
  const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
  for (const [name, value] of Object.entries({
    x1: 1,
    x2: 25,
    y1: 6,
    y2: 6,
    stroke: style.colour,
    "stroke-width": 3,
    "stroke-dasharray": DASH_ARRAYS[style.dash],
  }))
    line.setAttribute(name, value);
  svg.append(line);
  return svg;
}

function fillModels() {
  byId("model-count").textContent =
    `${counts.format(state.models.length)} of ${counts.format(meta.models.length)} chosen`;
  byId("model-search-label").hidden = meta.models.length <= MANY;
  const wanted = byId("model-search").value.trim().toLowerCase();
  const matching = [];
  for (let model = 0; model < meta.models.length; model += 1) {
    if (!wanted || meta.models[model].toLowerCase().includes(wanted)) matching.push(model);
  }
  const listed = matching.slice(0, PICKS_AT_ONCE);
  const list = byId("model-list");
  const focused = document.activeElement?.dataset?.model;
  list.replaceChildren(
    ...listed.map((model) => {
      const box = element("input", { type: "checkbox", "data-model": String(model) });
      box.checked = state.models.includes(model);
      box.addEventListener("change", () => toggleModel(model, box));
      return element("li", {}, element("label", {}, box, element("span", {}, meta.models[model])));
    }),
  );
  if (focused !== undefined) list.querySelector(`[data-model="${focused}"]`)?.focus();
  byId("model-more").textContent =
    matching.length > listed.length
      ? `${counts.format(listed.length)} of ${counts.format(matching.length)} are listed: type to narrow them down.`
      : matching.length
        ? ""
        : "No model has this in its name.";
}

function toggleModel(model, box) {
  if (!box.checked) choose({ models: state.models.filter((other) => other !== model) });
  else if (state.models.length >= MODELS_AT_ONCE) {
    box.checked = false;
    byId("model-more").textContent =
      `At most ${MODELS_AT_ONCE} models at once can be told apart: take one away first.`;
    say(byId("model-more").textContent);
    return;
  } else choose({ models: [...state.models, model] });
  say(
    `${meta.models[model]} ${box.checked ? "added" : "removed"}: ${state.models.length} of ${meta.models.length} models chosen`,
  );
}

let legendTurn = 0;

async function fillLegend() {
  const turn = (legendTurn += 1);
  await needFor(state.measure);
  if (turn !== legendTurn) return;
  byId("legend").replaceChildren(
    ...state.models.map((model) => {
      const remove = element("button", { type: "button", "aria-label": `Remove ${meta.models[model]}` }, "×");
      remove.addEventListener("click", () => {
        choose({ models: state.models.filter((other) => other !== model) });
        say(`${meta.models[model]} removed`);
        (byId("legend").querySelector("button") || byId("model-list").querySelector("input")).focus();
      });
      const item = element(
        "li",
        {},
        swatch(styleOf(model)),
        element("span", { class: "name" }, meta.models[model]),
        element("span", { class: "value" }, latestText(model)),
        ...openAlerts(model),
        remove,
      );
      for (const [come, go] of [
        ["pointerenter", "pointerleave"],
        ["focusin", "focusout"],
      ]) {
        item.addEventListener(come, () => light(model));
        item.addEventListener(go, () => light(null));
      }
      return item;
    }),
  );
}

/** The colours again where the charts are far from the legend, and which slice they are of. */
function fillKeys() {
  const several = meta.slices.some((name) => name !== "");
  for (const place of document.querySelectorAll("h2 .of")) {
    const said = place.dataset.of === "slice" ? sliceName(state.slice) : "latest AUC of each";
    place.textContent = several ? said : "";
  }
  for (const list of document.querySelectorAll(".keys")) {
    list.replaceChildren(
      ...state.models.map((model) =>
        element("li", {}, swatch(styleOf(model)), element("span", {}, meta.models[model])),
      ),
    );
  }
  byId("measures").querySelector(".keys").hidden = false;
  byId("curves-keys").hidden = !curveMoments.list.length;
  byId("slices").querySelector(".keys").hidden = byId("slices").querySelector("figure").hidden;
}

function latestText(model) {
  const series = seriesOf(model, state.slice);
  return series
    ? lastText(series, state.measure, (row) =>
        shown(columns.get(state.measure)[row], meta.measures[state.measure].digits),
      )
    : "no rows";
}

function fillSlices() {
  const search = byId("slice-search");
  byId("slice-search-label").hidden = meta.slices.filter((name) => name !== "").length <= MANY;
  const wanted = search.value.trim().toLowerCase();
  const matching = meta.slices
    .map((_, slice) => slice)
    .filter((slice) => !wanted || sliceName(slice).toLowerCase().includes(wanted));
  const listed = matching.slice(0, SLICES_LISTED);
  if (!listed.includes(state.slice)) listed.unshift(state.slice);
  const select = byId("slice");
  select.replaceChildren(
    ...listed.map((slice) => element("option", { value: String(slice) }, sliceName(slice))),
  );
  select.value = String(state.slice);
  byId("slice-more").textContent =
    matching.length > SLICES_LISTED
      ? `${SLICES_LISTED} of ${countedParts(matching.length)} are listed: type to narrow them down.`
      : matching.length
        ? ""
        : `No ${meta.parts[0]} has this in its name.`;
}

function fillMeasures() {
  const select = byId("measure");
  select.replaceChildren();
  for (const [group, title] of Object.entries(meta.groups)) {
    const names = meta.drawn.filter((name) => meta.measures[name].group === group);
    if (!names.length) continue;
    const options = names.map((name) => element("option", { value: name }, meta.measures[name].label));
    select.append(element("optgroup", { label: title }, ...options));
  }
  select.value = state.measure;
  const axes = meta.times
    ? [
        ["time", "Time"],
        ["seq", "Events applied"],
      ]
    : [["seq", "Events applied"]];
  byId("axis").replaceChildren(...axes.map(([value, label]) => element("option", { value }, label)));
  byId("axis").value = state.axis;
}

function showChanges() {
  if (!changes) return;
  byId("change-list").replaceChildren(
    ...state.models
      .filter((model) => changes[model])
      .map((model) => {
        const change = changes[model];
        const badge = element(
          "span",
          { class: `badge ${change.verdict === "changed" ? "changed" : ""}` },
          meta.verdicts[change.verdict],
        );
        return element(
          "article",
          { class: "card" },
          element("h3", {}, meta.models[model], badge),
          ...(change.figures ? [element("p", { class: "figures" }, change.figures)] : []),
          element("p", {}, change.text),
          ...(change.details
            ? [
                element(
                  "details",
                  {},
                  element("summary", {}, "Details"),
                  element("p", {}, change.details + (change.exact ? ` Exactly: ${change.exact}.` : "")),
                ),
              ]
            : []),
        );
      }),
  );
}

function wireControls() {
  byId("controls").hidden = false;
  byId("controls").addEventListener("submit", (event) => event.preventDefault());
  byId("model-search").addEventListener("input", fillModels);
  byId("slice-search").addEventListener("input", fillSlices);
  const selects = {
    slice: (value) => ({ slice: Number(value) }),
    measure: (value) => ({ measure: value }),
    axis: (value) => ({ axis: value, at: null }),
  };
  for (const [id, change] of Object.entries(selects)) {
    byId(id).addEventListener("change", (event) => {
      if (id !== "measure") main.view = null;
      choose(change(event.target.value));
      say(
        `${meta.measures[state.measure].label}, ${sliceName(state.slice)}, by ${state.axis === "time" ? "time" : "events"}`,
      );
    });
  }
  for (const link of document.querySelectorAll("nav a, .skip")) {
    link.addEventListener("click", (event) => {
      event.preventDefault(); // the fragment belongs to the choices
      const target = byId(link.getAttribute("href").slice(1));
      goTo(target);
      if (!target.hasAttribute("tabindex")) target.tabIndex = -1;
      target.focus({ preventScroll: true });
    });
  }
}

// Heights are reserved before charts are drawn; what still grows on the way to a section (a caption, a table)
// does not carry the section off, until the reader moves by other means.

let heldAt = null;

function goTo(target) {
  heldAt = target;
  target.scrollIntoView();
}

function holdPlace() {
  new ResizeObserver(() => heldAt?.scrollIntoView()).observe(byId("main"));
  for (const kind of ["wheel", "touchstart", "pointerdown", "keydown"])
    addEventListener(kind, () => (heldAt = null), { passive: true, capture: true });
}

function showMissing() {
  byId("missing").hidden = !missing.length;
  byId("missing").textContent = missing.join(" ");
}

function redraw(what) {
  showMissing();
  const changed = (...names) => names.some((name) => what.includes(name));
  if (changed("theme")) applyTheme();
  if (changed("models", "slice", "measure", "theme")) fillLegend();
  if (changed("models", "slice", "axis", "theme")) {
    layOutSlices();
    layOutCurves();
    fillKeys();
  }
  if (changed("models")) {
    byId("main-words").open = state.models.length < 3;
    fillModels();
    markChosen();
    showChanges();
    if (alertTable.scope === "chosen") drawAlerts();
  }
  if (changed("slice")) fillSlices();
  if (changed("measure")) byId("measure").value = state.measure;
  if (changed("axis")) byId("axis").value = state.axis;
  if (changed("models", "slice", "measure", "axis", "theme")) drawMain();
  if (changed("models", "slice", "axis", "theme")) {
    refreshMultiples();
    whenSeen(drawCurves, "curves");
  }
  if (changed("models", "theme")) whenSeen(drawSlices, "slices");
  if (changed("axis", "theme")) {
    whenSeen(showBetter, "better");
    for (const id of fleetCharts.keys()) whenSeen(() => drawFleet(id), id);
  }
  if (changed("slice") && latest.scope === "slice") drawLatest();
}

// Sections far down are drawn when they come near; what changes before that only marks them.

const waiting = new Map();
const nearby = new Set();
let nearWatcher = null;

function whenSeen(draw, id) {
  if (nearby.has(id)) draw();
  else waiting.set(id, draw);
}

function watchSections() {
  nearWatcher = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        if (!isIntersecting) {
          nearby.delete(target.id);
          continue;
        }
        nearby.add(target.id);
        const draw = waiting.get(target.id);
        waiting.delete(target.id);
        if (draw) draw();
      }
    },
    { rootMargin: "300px" },
  );
  for (const id of ["better", "slices", "class-pairs", "curves", ...fleetCharts.keys()]) if (byId(id)) nearWatcher.observe(byId(id));
}

async function begin() {
  const section = location.hash.length > 1 ? byId(location.hash.slice(1)) : null;
  readFragment();
  showMissing();
  applyTheme();
  wireTheme();
  listeners.push(redraw);
  wireBetter();
  wireLines();
  wireFleet();
  if (!meta.series.length) {
    watchSections();
    document.documentElement.dataset.ready = "1";
    return;
  }
  wireOverview();
  wireHeatmap();
  wireClassPairs();
  fillMeasures();
  fillSlices();
  fillModels();
  wireControls();
  wireZoom();
  wireSlices();
  wireCurves();
  wireLatest();
  wirePrint();
  buildMultiples();
  fold();
  layOutSlices();
  layOutCurves();
  fillKeys();
  holdPlace();
  if (meta.heatmap) await drawHeatmap();
  await drawLatest();
  await readAlerts();
  wireAlerts();
  drawAlerts();
  await fillLegend();
  await drawMain();
  await layOutMultiples();
  if (hasBlock("changes")) {
    changes = JSON.parse(await textBlock("changes"));
    showChanges();
    if (extremeTraces(state.measure).length) await drawMain();
  }
  waiting.set("slices", drawSlices);
  if (meta.classPairs) waiting.set("class-pairs", drawClassPairs);
  waiting.set("curves", drawCurves);
  watchSections();
  if (section) goTo(section);
  else if (!missing.length) writeFragment(false);
  addEventListener("hashchange", () => {
    readFragment();
    for (const listen of listeners) listen(["models", "slice", "measure", "axis", "theme"]);
  });
  document.documentElement.dataset.ready = "1";
  if (meta.curves.length) await need(CURVE_COLUMNS); // a print cannot wait for them
}

const begun = typeof DecompressionStream === "undefined" ? null : begin();

if (!begun) {
  byId("trouble").hidden = false;
  byId("trouble").textContent =
    "The charts need a browser of 2023 or later (one with DecompressionStream); the words and the table below do not.";
} else {
  begun.catch((error) => {
    byId("trouble").hidden = false;
    byId("trouble").textContent = `The charts could not be drawn: ${error.message}`;
    console.error(error);
  });
}
