// Models by slices, coloured by the gap to the model's other slices or by the change; some models at a time.

const heat = { what: "gap", group: 0, page: 0, cells: null };
const HEAT_MODELS = 25;
const HEAT_SLICES = 40;
const HEAT_FULL = 0.15; // the gap of the strongest colour

async function heatCells() {
  if (heat.cells === null) {
    heat.cells = new Map();
    for (const [model, slice, ...values] of JSON.parse(await textBlock("heatmap")))
      heat.cells.set(`${model}/${slice}`, values);
  }
  return heat.cells;
}

async function drawHeatmap() {
  const cells = await heatCells();
  heat.what = byId("heatmap-what").value; // a page without gaps offers changes alone
  const place = heat.what === "gap" ? 0 : 3;
  const all = meta.heatmap.groups[heat.group];
  // Of many slices those with the greatest values of any model come first.
  const strength = (slice) =>
    Math.max(...meta.heatmap.models.map((model) => Math.abs(cells.get(`${model}/${slice}`)?.[place] ?? 0)));
  let shownSlices = all;
  if (all.length > HEAT_SLICES) {
    const keys = new Map(all.map((slice) => [slice, strength(slice)]));
    shownSlices = [...all].sort((a, b) => keys.get(b) - keys.get(a)).slice(0, HEAT_SLICES);
  }
  const pages = Math.max(1, Math.ceil(meta.heatmap.models.length / HEAT_MODELS));
  heat.page = Math.min(Math.max(heat.page, 0), pages - 1);
  const models = meta.heatmap.models.slice(heat.page * HEAT_MODELS, (heat.page + 1) * HEAT_MODELS);
  const table = byId("heatmap-table");
  table.hidden = false;
  table.tHead.replaceChildren(
    element(
      "tr",
      {},
      element("th", { scope: "col", class: "text" }, "Model"),
      ...shownSlices.map((slice) => element("th", { scope: "col" }, shortened(meta.slices[slice]))),
    ),
  );
  table.tBodies[0].replaceChildren(
    ...models.map((model) =>
      element(
        "tr",
        {},
        element("th", { scope: "row" }, meta.models[model]),
        ...shownSlices.map((slice) => heatCell(model, slice, cells.get(`${model}/${slice}`), place)),
      ),
    ),
  );
  const left = all.length - shownSlices.length;
  const lacking = all.filter((slice) =>
    meta.heatmap.models.every((model) => (cells.get(`${model}/${slice}`)?.[place] ?? null) === null),
  );
  byId("heatmap-lacking").textContent = lacking.length
    ? `Not compared in any model: ${lacking.slice(0, 10).map(sliceName).join(", ")}${lacking.length > 10 ? ", ..." : ""}. ` +
      (heat.what === "gap" ? "Without an interval of the AUC, or no other slice of the same columns." : "Too few labels, or no earlier window.")
    : "";
  const said = counted(meta.heatmap.models.length, "model") + (left ? `, ${countedParts(left)} left out` : "");
  showPages("heatmap", said, heat.page, pages);
  table.dataset.drawn = [heat.what, heat.group, heat.page].join("|");
}

function heatCell(model, slice, values, place) {
  const value = values ? values[place] : null;
  if (value === null || value === undefined) {
    const why = !values
      ? "no rows"
      : heat.what === "gap"
        ? "no interval of the AUC, no row of late, or no other slice to compare with"
        : values[6];
    return element("td", { class: "heat none", title: why }, "–");
  }
  const [p, significant] = values.slice(place + 1, place + 3);
  const text = signed(value);
  const strength = Math.round(100 * Math.min(1, Math.abs(value) / HEAT_FULL) * (significant ? 0.55 : 0.25));
  const button = element("button", { type: "button" }, text);
  const about = `${meta.models[model]}, ${sliceName(slice)}: ${heat.what} ${text}, corrected p ${p === null ? "–" : p < 0.0001 ? "<0.0001" : p.toFixed(4)}`;
  button.setAttribute("aria-label", about);
  button.title = about;
  button.addEventListener("click", () => {
    main.view = null;
    choose({ models: [model], slice });
    goTo(byId("legend"));
    say(about);
  });
  const cell = element("td", { class: `heat${significant ? " sure" : ""}` }, button);
  cell.style.setProperty("--heat", `color-mix(in srgb, var(--${value < 0 ? "worse" : "better"}) ${strength}%, transparent)`);
  return cell;
}

function wireHeatmap() {
  if (!byId("heatmap")) return;
  byId("heatmap-controls").hidden = false;
  const changed = (change) => {
    Object.assign(heat, change);
    return drawHeatmap().then(() => say(byId("heatmap-page").textContent));
  };
  byId("heatmap-what").addEventListener("change", () => changed({ page: 0 }));
  byId("heatmap-group")?.addEventListener("change", (event) => changed({ group: Number(event.target.value) }));
  byId("heatmap-back").addEventListener("click", () => changed({ page: heat.page - 1 }));
  byId("heatmap-next").addEventListener("click", () => changed({ page: heat.page + 1 }));
}
