// Themes, and the page on paper.

const THEMES = ["system", "light", "dark"];

function applyTheme() {
  if (printing) document.documentElement.dataset.theme = "light";
  else if (state.theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = state.theme;
  byId("theme").querySelector("span").textContent = state.theme;
}

function wireTheme() {
  byId("theme").hidden = false;
  byId("theme").addEventListener("click", () => {
    choose({ theme: THEMES[(THEMES.indexOf(state.theme) + 1) % THEMES.length] });
    say(`theme ${state.theme}`);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraw(["theme"]));
}

/** On a phone, what is not needed at first is folded. */
function fold() {
  if (matchMedia("(max-width: 720px)").matches)
    for (const part of document.querySelectorAll("details.fold")) part.open = false;
  else byId("pick").open = meta.models.length <= MANY;
  byId("main-words").open = state.models.length < 3;
}

// Paper: all charts drawn in light colours as wide as a page, and the parts open that matter there.

let unfolded = [];

function print(begins) {
  if (printing === begins) return;
  printing = begins;
  document.documentElement.classList.toggle("printing", begins);
  redraw(["theme"]);
  if (begins) {
    unfolded = [...document.querySelectorAll("details[data-print]:not([open])")];
    for (const one of multiples.values()) if (!one.figure.closest("details")) drawMultiple(one);
    printOverview(true);
    for (const draw of [drawSlices, drawCurves, ...(meta.better ? [showBetter] : [])]) draw();
    for (const id of fleetCharts.keys()) drawFleet(id);
  } else {
    printOverview(false);
    dispatchEvent(new Event("resize")); // plotly fits the charts to their places
  }
  for (const part of unfolded) part.open = begins;
}

function wirePrint() {
  addEventListener("beforeprint", () => print(true));
  addEventListener("afterprint", () => print(false));
  matchMedia("print").addEventListener("change", (event) => print(event.matches));
}
