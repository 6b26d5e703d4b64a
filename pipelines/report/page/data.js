// The rows of the report: columns that are unpacked when they are first needed, and how numbers are written.
//
// A block is gzip of text, or of float64s with shuffled bytes (see data.py); blocks.js says where a page has it.
// NaN stands for null. A series is the rows first..stop-1 of one (model, slice), in order.

const columns = new Map();
const pending = new Map();

async function unpacked(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

async function unzipped(name) {
  return unpacked(await packedBlock(name));
}

async function textBlock(name) {
  return new TextDecoder().decode(await unzipped(name));
}

function unshuffled(bytes) {
  const n = bytes.length / 8;
  const plain = new Uint8Array(bytes.length);
  for (let k = 0; k < 8; k += 1) {
    const from = k * n;
    for (let i = 0, at = k; i < n; i += 1, at += 8) plain[at] = bytes[from + i];
  }
  return new Float64Array(plain.buffer);
}

/** Unpack columns, once each; those that a page does not hold are null throughout. */
async function need(names) {
  await Promise.all(
    names.map((name) => {
      if (!pending.has(name)) {
        pending.set(
          name,
          hasBlock(name)
            ? columnBlock(name).then((values) => columns.set(name, values))
            : Promise.resolve(columns.set(name, new Float64Array(meta.kept).fill(NaN))),
        );
      }
      return pending.get(name);
    }),
  );
}

const seriesAt = new Map();

function indexSeries() {
  seriesAt.clear();
  for (const [model, slice, first, stop] of meta.series) seriesAt.set(model + "/" + slice, { model, slice, first, stop });
}

indexSeries();

function seriesOf(model, slice) {
  return seriesAt.get(model + "/" + slice) || null;
}

// Writing numbers: the same number of digits for every value of a measure.

const counts = new Intl.NumberFormat("en-US", { maximumFractionDigits: 2 });

function shown(value, digits) {
  if (Number.isNaN(value) || value === null || value === undefined) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  let text;
  if (digits === "count") text = counts.format(value);
  else if (digits === "rank" || digits === "share")
    text = value.toFixed(digits === "rank" ? 3 : 4).replace(/^-(0\.0+)$/, "$1");
  else text = String(Number(value.toPrecision(5)));
  return text.replace(/^-/, "−");
}

/** A difference of AUCs with its sign (`lines.signed`). */
function signed(value) {
  if (value === null || value === undefined) return "–";
  const text = Math.abs(value).toFixed(3);
  return text === "0.000" ? text : (value > 0 ? "+" : "−") + text;
}

/** An AUC with its interval, as far as they are known. */
function withInterval(value, low, high) {
  if (Number.isNaN(value)) return "–";
  return value.toFixed(3) + (Number.isNaN(low + high) ? "" : ` [${low.toFixed(3)}, ${high.toFixed(3)}]`);
}

function timeText(micros) {
  const at = new Date(Math.floor(micros / 1000));
  if (Number.isNaN(at.getTime())) return "–";
  const text = at.toISOString().slice(0, -8).replace("T", " ");
  return meta.dates ? text.replace(" 00:00", "") : text;
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** A day, without its year where that is the year of another moment: "12 Mar" (`words.short_day`). */
function shortDay(micros, beside) {
  const [at, other] = [micros, beside].map((time) => new Date(Math.floor(time / 1000)));
  if (Number.isNaN(at.getTime())) return "–";
  const text = `${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]}`;
  return at.getUTCFullYear() === other.getUTCFullYear() ? text : `${text} ${at.getUTCFullYear()}`;
}

function reasonOf(row, measure) {
  const code = columns.get("reason")[row];
  if (!(code >= 0)) return "";
  const whole = meta.reasons[code];
  if (!measure) return whole;
  // "auc, auc_low: one class in window; kappa: ...": the grammar is in docs/reference/reasons.md
  const clauses = whole.split("; ").map((clause) => clause.split(": "));
  const mine = clauses.find(([names, why]) => why && names.split(", ").includes(measure));
  return mine ? mine[1] : "";
}

function sliceName(slice) {
  return meta.slices[slice] === "" ? "all events" : meta.slices[slice];
}

/** Plotly reads texts as a little HTML: what comes from data is escaped. */
function escaped(text) {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}

function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

/** "1 row", "2 rows". */
function counted(count, noun) {
  return `${counts.format(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** A number of slices; where classes are among them, they are counted, too. */
function countedParts(count) {
  return `${counts.format(count)} ${meta.parts[count === 1 ? 0 : 1]}`;
}

/** What a pager says and offers: where all is on one page, the number alone. */
function showPages(id, said, page, pages) {
  byId(`${id}-page`).textContent = pages > 1 ? `${said}, page ${page + 1} of ${pages}` : said;
  for (const [way, last] of [
    ["back", page === 0],
    ["next", page >= pages - 1],
  ]) {
    byId(`${id}-${way}`).hidden = pages < 2;
    byId(`${id}-${way}`).disabled = last;
  }
}

function byId(id) {
  return document.getElementById(id);
}

const collator = new Intl.Collator("en", { numeric: true });
