// The blocks of a page that a server keeps up to date, fetched when they are needed.
//
// meta.at says which rows the page has: the server's run, the epoch, and how many rows of it. Within an epoch
// rows are only added. Where the server has gone on to another epoch, its stream says so, and live.js takes
// the page of that epoch.

const meta = JSON.parse(document.getElementById("meta").textContent);
const waitingForPage = [];
let listens = false; // whether the page listens to the server's stream
const AGAIN_MS = 2_000; // after which what failed is tried again

/** The name under which the server has a block; the points of other curves have another name. */
function blockName(name) {
  return name.startsWith("curve_") ? `${name}-${meta.curvesAt}` : name;
}

function hasBlock(name) {
  if (name.startsWith("curve_")) return meta.curvesAt !== null;
  return meta.texts.includes(name) || meta.columns.includes(name) || name === "reason";
}

async function fetchedBlock(at, name) {
  return fetch(`api/blocks/${at}/${name}`, { cache: "no-store" });
}

async function packedBlock(name) {
  for (;;) {
    try {
      const answer = await fetchedBlock(meta.at, blockName(name));
      if (answer.ok) return await answer.arrayBuffer();
      if (answer.status === 409 && !listens) location.reload();
      if (answer.status === 409) await new Promise((resolve) => waitingForPage.push(resolve));
      else await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS)); // the connection was cut
    }
  }
}

/** A column of the rows that the page has when it is set, however many came meanwhile; or one of the curves. */
async function columnBlock(name) {
  for (;;) {
    const [{ at }, block] = [meta, blockName(name)];
    const values = unshuffled(await unzipped(name));
    if (block !== name ? block === blockName(name) : meta.at === at && values.length === meta.kept) return values;
  }
}

async function runPlotly() {
  const script = document.createElement("script");
  script.src = `static/plotly.js?${meta.plotly}`;
  await new Promise((resolve, reject) => {
    script.addEventListener("load", resolve);
    script.addEventListener("error", () => reject(new Error("plotly.js could not be loaded")));
    document.head.append(script);
  });
  return window.Plotly;
}
