// The overview: all models, filtered by state and by name, ordered, some at a time.

const overview = { lines: null, state: "", wanted: "", order: "place", page: 0 };
const PRINTED = 200;
const OVERVIEW_DOWN = new Set(["since", "events", "alerts"]);

async function overviewLines() {
  if (overview.lines === null) overview.lines = JSON.parse(await textBlock("overview"));
  return overview.lines;
}

function orderOverview(lines) {
  const { order } = overview;
  if (order === "name") return lines.sort((a, b) => collator.compare(meta.models[a.model], meta.models[b.model]));
  const sign = OVERVIEW_DOWN.has(order) ? -1 : 1;
  return lines.sort((a, b) => {
    const [one, other] = [a.keys[order], b.keys[order]];
    if (one === null || other === null) return (one === null) - (other === null) || a.keys.place - b.keys.place;
    return sign * (one - other) || a.keys.place - b.keys.place;
  });
}

async function drawOverview() {
  const all = await overviewLines();
  const wanted = overview.wanted.toLowerCase();
  const found = orderOverview(
    all.filter(
      (line) =>
        (!overview.state || line.state === overview.state) &&
        (!wanted || meta.models[line.model].toLowerCase().includes(wanted) || line.slices.toLowerCase().includes(wanted)),
    ),
  );
  const pages = Math.max(1, Math.ceil(found.length / meta.overviewLines));
  overview.page = Math.min(Math.max(overview.page, 0), pages - 1);
  const body = byId("overview-table").tBodies[0];
  // The lines are the page's own markup, escaped when the page was made (overview_line.html).
  body.innerHTML = found
    .slice(overview.page * meta.overviewLines, (overview.page + 1) * meta.overviewLines)
    .map((line) => line.html)
    .join("");
  if (!found.length) {
    const columns = byId("overview-table").tHead.rows[0].cells.length;
    body.append(element("tr", {}, element("td", { colspan: columns, class: "text" }, "No model matches.")));
  }
  byId("overview-pager").hidden = pages < 2 && found.length === all.length;
  showPages("overview", counted(found.length, "model"), overview.page, pages);
  for (const button of byId("overview-controls").querySelectorAll("[data-state]"))
    button.setAttribute("aria-pressed", String(button.dataset.state === overview.state));
  byId("overview-table").dataset.drawn = [overview.state, overview.wanted, overview.order, overview.page].join("|");
  markChosen();
}

/** The lines of the models that the charts show are marked. */
function markChosen() {
  for (const line of byId("overview-table").tBodies[0].rows)
    line.classList.toggle("chosen", state.models.includes(Number(line.dataset.model)));
}

/** On paper: all models with something to say, and how many others there are. */
async function printOverview(begins) {
  if (!byId("overview")) return;
  const note = byId("overview-paper");
  note.hidden = !begins;
  if (!begins) {
    await drawOverview();
    return;
  }
  const all = await overviewLines();
  if (!printing) return; // the page is back on the screen
  const told = all.filter((line) => line.state !== "no change shown");
  const lines = all.length <= meta.overviewLines ? all : told.slice(0, PRINTED);
  byId("overview-table").tBodies[0].innerHTML = lines.map((line) => line.html).join("");
  const left = all.length - lines.length;
  note.hidden = !left;
  note.textContent = `${counted(left, "model")} not printed: ${counts.format(all.length - told.length)} with no change shown${
    told.length > PRINTED ? `, and ${counts.format(told.length - PRINTED)} others` : ""
  }.`;
  byId("overview-table").dataset.drawn = "paper";
}

/** A click on a name in a table shows that model, or slice, in the charts. */
function followLinks(table) {
  table.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-model]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return; // a new tab opens the link itself
    event.preventDefault();
    const slice = Math.max(meta.slices.indexOf(link.dataset.slice), 0);
    main.view = null;
    choose({ models: [Number(link.dataset.model)], slice });
    goTo(byId("legend"));
    say(`${link.textContent} is shown in the charts`);
  });
}

function wireOverview() {
  if (!byId("overview")) return;
  const few = meta.models.length <= 2;
  byId("overview-controls").hidden = few;
  byId("overview-pager").hidden = meta.models.length <= meta.overviewLines;
  showPages("overview", counted(meta.models.length, "model"), 0, Math.ceil(meta.models.length / meta.overviewLines));
  const changed = (change) => {
    Object.assign(overview, { page: 0 }, change);
    return drawOverview().then(() => say(byId("overview-page").textContent));
  };
  byId("overview-controls").addEventListener("click", ({ target }) => {
    const chosen = target.closest("[data-state]")?.dataset.state;
    if (chosen) changed({ state: overview.state === chosen ? "" : chosen });
  });
  byId("overview-search")?.addEventListener("input", (event) => changed({ wanted: event.target.value.trim() }));
  byId("overview-order").addEventListener("change", (event) => changed({ order: event.target.value }));
  byId("overview-back").addEventListener("click", () => changed({ page: overview.page - 1 }));
  byId("overview-next").addEventListener("click", () => changed({ page: overview.page + 1 }));
  followLinks(byId("overview-table"));
  markChosen();
}
