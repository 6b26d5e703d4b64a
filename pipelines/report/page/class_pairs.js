// Pairs of classes: a heatmap of one moment of one model, and the worst pairs in a table.

const classPairs = { data: null, key: null, at: null, wanted: "", turn: 0 };
const PAIRS_IN_WORDS = 15; // with more classes a cell shows its colour alone
const PAIRS_LISTED = 12;

async function classPairData() {
  classPairs.data ??= JSON.parse(await textBlock("class_pairs_chart"));
  return classPairs.data;
}

function classPairsName(one) {
  return meta.models[one.model] + (meta.slices[one.slice] ? `, ${meta.slices[one.slice]}` : "");
}

/** How strongly an AUC is coloured, in percent: not at all at 1, fully at 0.5 and below. */
function pairStrength(auc, most) {
  return Math.round(most * Math.sqrt(Math.min(1, Math.max(0, (1 - auc) / 0.5))));
}

function pairColour(auc, most) {
  return `color-mix(in srgb, var(--worse) ${pairStrength(auc, most)}%, var(--ground))`;
}

function pairText(value) {
  return value === null ? "–" : (value / 10_000).toFixed(3);
}

async function drawClassPairs() {
  const turn = (classPairs.turn += 1);
  const data = await classPairData();
  if (turn !== classPairs.turn) return;
  const select = byId("class-pairs-series");
  const names = data.series.map(classPairsName);
  if ([...select.options].map((option) => option.text).join("\n") !== names.join("\n"))
    select.replaceChildren(...names.map((name, place) => element("option", { value: place }, name)));
  const place = Math.max(names.indexOf(classPairs.key), 0);
  select.value = place;
  select.closest("label").hidden = names.length < 2;
  const one = data.series[place];
  const slider = byId("class-pairs-moment");
  slider.max = one.moments.length - 1;
  slider.closest("label").hidden = one.moments.length < 2;
  const chosen = classPairs.at === null ? -1 : one.moments.findIndex(([seq]) => seq === classPairs.at);
  const at = chosen < 0 ? one.moments.length - 1 : chosen;
  slider.value = at;
  const [seq, time, values] = one.moments[at];
  const when = meta.times && time !== null ? timeText(time) : `event ${counts.format(seq)}`;
  byId("class-pairs-when").textContent = at === one.moments.length - 1 ? `${when} (latest)` : when;
  slider.setAttribute("aria-valuetext", when);
  const classes = data.names[one.names];
  drawPairGrid(classes, values);
  drawPairTable(classes, values, `${names[place]}, ${when}`);
  byId("class-pairs-grid").dataset.drawn = [place, at].join("|");
}

function drawPairGrid(classes, values) {
  const n = classes.length;
  const words = n <= PAIRS_IN_WORDS;
  const grid = byId("class-pairs-grid");
  grid.className = words ? "words" : "small";
  grid.tHead.replaceChildren(
    element("tr", {}, element("td", {}), ...classes.map((name) => element("th", { scope: "col", title: name }, element("span", {}, shortened(name))))),
  );
  grid.tBodies[0].replaceChildren(
    ...classes.map((name, i) => {
      const cells = classes.map((_, j) => {
        const value = values[i * n + j];
        const text = i === j ? "" : pairText(value);
        const cell = element("td", { "data-at": i * n + j }, words ? text : element("span", { class: "unseen" }, text));
        if (value !== null) cell.style.background = pairColour(value / 10_000, words ? 60 : 90);
        else cell.className = i === j ? "same" : "none";
        return cell;
      });
      return element("tr", {}, element("th", { scope: "row", title: name }, shortened(name)), ...cells);
    }),
  );
  const told = byId("class-pairs-cell");
  const empty = "Point at a cell, or tap it, to read both directions.";
  told.hidden = false;
  told.textContent = empty;
  const show = (event) => {
    const cell = event.target.closest("td[data-at]");
    if (!cell) return;
    const [i, j] = [Math.floor(cell.dataset.at / n), cell.dataset.at % n];
    told.textContent =
      i === j
        ? empty
        : `${classes[i]} against ${classes[j]}: ${pairText(values[i * n + j])} by the score of ${classes[i]}, ` +
          `${pairText(values[j * n + i])} by the score of ${classes[j]}.`;
  };
  grid.onpointerover = show;
  grid.onclick = show;
}

function drawPairTable(classes, values, title) {
  const n = classes.length;
  const wanted = classPairs.wanted.toLowerCase();
  const pairs = [];
  for (let i = 0; i < n; i += 1)
    for (let j = i + 1; j < n; j += 1) {
      const [one, other] = [values[i * n + j], values[j * n + i]];
      if (one !== null && other !== null && (!wanted || [classes[i], classes[j]].some((name) => name.toLowerCase().includes(wanted))))
        pairs.push([i, j, one, other]);
    }
  pairs.sort((a, b) => a[2] + a[3] - b[2] - b[3]);
  const lines = pairs.slice(0, PAIRS_LISTED);
  byId("class-pairs-worst").querySelector("span").textContent = title;
  byId("class-pairs-count").textContent =
    pairs.length > lines.length ? `the worst ${lines.length} of ${counted(pairs.length, "pair")}` : counted(pairs.length, "pair");
  byId("class-pairs-table").tBodies[0].replaceChildren(
    ...lines.map(([i, j, one, other]) =>
      element(
        "tr",
        {},
        element("th", { scope: "row" }, `${classes[i]} | ${classes[j]}`),
        element("td", {}, ((one + other) / 20_000).toFixed(3)),
        element("td", {}, pairText(one)),
        element("td", {}, pairText(other)),
      ),
    ),
  );
}

function wireClassPairs() {
  if (!byId("class-pairs")) return;
  for (const id of ["controls", "scroll", "scale", "search-controls"]) byId(`class-pairs-${id}`).hidden = false;
  for (const swatch of byId("class-pairs-scale").querySelectorAll(".pair-swatch"))
    swatch.style.background = pairColour(Number(swatch.dataset.auc), 60);
  const changed = (change) => {
    Object.assign(classPairs, change);
    return drawClassPairs().then(() => say(byId("class-pairs-worst").textContent));
  };
  byId("class-pairs-series").addEventListener("change", ({ target }) => changed({ key: target.selectedOptions[0].text }));
  byId("class-pairs-moment").addEventListener("input", ({ target }) => {
    const one = classPairs.data.series[Number(byId("class-pairs-series").value)];
    const last = Number(target.value) === one.moments.length - 1;
    changed({ at: last ? null : one.moments[Number(target.value)][0] });
  });
  byId("class-pairs-search").addEventListener("input", ({ target }) => changed({ wanted: target.value.trim() }));
}
