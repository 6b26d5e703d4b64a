// The blocks of a page that needs no network: texts of script elements, base64 of gzip.

const meta = JSON.parse(document.getElementById("meta").textContent);

function bytesOf(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i += 1) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

function hasBlock(name) {
  return document.getElementById("block-" + name) !== null;
}

async function packedBlock(name) {
  return bytesOf(document.getElementById("block-" + name).textContent.trim());
}

/** Unpack a column: float64s. */
async function columnBlock(name) {
  return unshuffled(await unzipped(name));
}

/** Unpack the plotting library and run it. */
async function runPlotly() {
  const script = document.createElement("script");
  script.textContent = await textBlock("plotly");
  document.head.append(script);
  return window.Plotly;
}
