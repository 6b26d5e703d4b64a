// What the reader chose, kept in the fragment of the page's address, so that a view can be linked.

const MODELS_AT_ONCE = 16; // seven colours, and the dashes tell the second and third round apart

const state = {
  models: [],
  slots: new Map(),
  slice: 0,
  measure: "auc",
  axis: "time",
  at: null,
  last: 0, // of the time axis the newest seconds alone; 0: all, or what was zoomed in on
  theme: "system",
};
let missing = []; // sentences on what a link names and this page does not have
const listeners = [];

// Where models were evaluated in several ways (windows, mostly), each way of each is a model of this page;
// those of one model have its colour, and a dash and a panel for each way.

function baseOf(model) {
  return meta.ways.length ? meta.bases[model] : model;
}

function wayOf(model) {
  return meta.ways.length ? meta.wayOf[model] : 0;
}

/** The worst models: those that the overview names, with all ways of each; else the first of the overview. */
function firstModels() {
  const there = [];
  const bases = new Set(meta.worst.map(baseOf));
  for (let model = 0; model < meta.models.length && there.length < MODELS_AT_ONCE; model += 1)
    if (bases.has(baseOf(model)) && seriesOf(model, state.slice)) there.push(model);
  return there;
}

/** A model keeps its colour as long as it is chosen. */
function assignSlots() {
  const bases = new Set(state.models.map(baseOf));
  for (const base of [...state.slots.keys()]) if (!bases.has(base)) state.slots.delete(base);
  const used = new Set(state.slots.values());
  for (const base of bases) {
    if (state.slots.has(base)) continue;
    let slot = 0;
    while (used.has(slot)) slot += 1;
    used.add(slot);
    state.slots.set(base, slot);
  }
}

function readFragment() {
  const asked = new URLSearchParams(location.hash.slice(1));
  missing = [];
  const slice = meta.slices.indexOf(asked.get("slice") || "");
  state.slice = slice >= 0 ? slice : Math.max(meta.slices.indexOf(""), 0);
  if (slice < 0 && asked.has("slice"))
    missing.push(`The link names the ${meta.parts[0]} “${asked.get("slice")}”, which is not here: ${sliceName(state.slice)} are shown.`);
  const names = asked.getAll("model");
  const named = names.map((name) => meta.models.indexOf(name)).filter((model) => model >= 0);
  const strangers = names.filter((name) => !meta.models.includes(name));
  if (strangers.length)
    missing.push(
      `The link names ${counted(strangers.length, "model")} that ${strangers.length === 1 ? "is" : "are"} not here: ` +
        `${strangers.map((name) => `“${name}”`).join(", ")}.`,
    );
  state.models = [...new Set(named)].slice(0, MODELS_AT_ONCE);
  if (!asked.has("model") && !asked.has("none")) state.models = firstModels();
  const measure = asked.get("measure");
  if (measure !== null && !meta.drawn.includes(measure))
    missing.push(`The link names the measure “${measure}”, which has no chart here.`);
  state.measure = meta.drawn.includes(measure)
    ? measure
    : meta.drawn.includes("auc")
      ? "auc"
      : meta.drawn[0] || "auc";
  state.axis = meta.times ? (asked.get("axis") === "seq" ? "seq" : "time") : "seq";
  state.at = asked.has("at") ? Number(asked.get("at")) : null;
  state.last = Math.max(Number(asked.get("last")) || 0, 0);
  const view = (asked.get("view") || "").split("~").map(Number);
  main.view = view.length === 2 && view[0] < view[1] ? view : null;
  state.theme = ["light", "dark"].includes(asked.get("theme")) ? asked.get("theme") : "system";
  assignSlots();
}

/** Write what is chosen into the address; `step` makes it a step of the browser's history. */
function writeFragment(step) {
  const said = new URLSearchParams();
  for (const model of state.models) said.append("model", meta.models[model]);
  if (!state.models.length) said.append("none", "1");
  if (meta.slices[state.slice]) said.set("slice", meta.slices[state.slice]);
  said.set("measure", state.measure);
  if (meta.times) said.set("axis", state.axis);
  if (state.at !== null) said.set("at", String(state.at));
  if (state.last) said.set("last", String(state.last));
  else if (main.view) said.set("view", main.view.join("~"));
  if (state.theme !== "system") said.set("theme", state.theme);
  if (step && "#" + said !== location.hash) history.pushState(null, "", "#" + said);
  else history.replaceState(null, "", "#" + said);
}

/** Change what is chosen; every section hears which parts changed. */
function choose(change) {
  Object.assign(state, change);
  assignSlots();
  const what = Object.keys(change);
  missing = [];
  writeFragment(what.some((name) => ["models", "slice", "measure", "axis"].includes(name)));
  for (const listen of listeners) listen(what);
}

function say(text) {
  byId("live").textContent = text;
}
