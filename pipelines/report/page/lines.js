// Tables of many lines: found by a text, some at a time. The lines are the page's own markup, escaped when the
// page was made (gaps_line.html, roll_ups_line.html, pairs_line.html).

const lineTables = new Map(); // by section: { lines, wanted, page }

async function drawLines(id) {
  const table = lineTables.get(id);
  table.lines ??= JSON.parse(await textBlock(id));
  const wanted = table.wanted.toLowerCase();
  const found = wanted ? table.lines.filter((line) => line.words.includes(wanted)) : table.lines;
  const pages = Math.max(1, Math.ceil(found.length / meta.linesAtOnce));
  table.page = Math.min(Math.max(table.page, 0), pages - 1);
  const shownNow = found.slice(table.page * meta.linesAtOnce, (table.page + 1) * meta.linesAtOnce);
  const body = byId(`${id}-table`).tBodies[0];
  body.innerHTML = shownNow.map((line) => line.html).join("");
  const { noun } = meta.sections[id];
  if (!found.length) {
    const columns = byId(`${id}-table`).tHead.rows[0].cells.length;
    body.append(element("tr", {}, element("td", { colspan: columns, class: "text" }, `No ${noun} matches.`)));
  }
  showPages(id, counted(found.length, noun), table.page, pages);
  byId(`${id}-table`).dataset.drawn = `${table.wanted}|${table.page}`;
}

function wireLines(ids = Object.keys(meta.sections)) {
  for (const id of ids) {
    const { noun, lines } = meta.sections[id];
    if (!lines) continue;
    followLinks(byId(`${id}-table`));
    if (!byId(`${id}-controls`)) continue; // all lines are in the HTML
    const table = { lines: null, wanted: "", page: 0 };
    lineTables.set(id, table);
    byId(`${id}-controls`).hidden = false;
    showPages(id, counted(lines, noun), 0, Math.ceil(lines / meta.linesAtOnce));
    const changed = (change) => {
      Object.assign(table, change);
      return drawLines(id).then(() => say(byId(`${id}-page`).textContent));
    };
    byId(`${id}-search`).addEventListener("input", (event) => changed({ wanted: event.target.value.trim(), page: 0 }));
    byId(`${id}-back`).addEventListener("click", () => changed({ page: table.page - 1 }));
    byId(`${id}-next`).addEventListener("click", () => changed({ page: table.page + 1 }));
  }
}
