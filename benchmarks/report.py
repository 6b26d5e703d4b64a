"""A large report by the clock: python -m benchmarks.report [--quick] [--output FILE].

Writes pages of 50 and of 1,000 models with 20 slices and 100 rows each, opens both in Chromium in turn, and
clicks. Needs the extra `browser` and a Chromium on the machine.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rocsteady.core.events.batch import EventBatch
from rocsteady.core.events.columns import TextColumn
from rocsteady.core.events.records import EndOfInput
from rocsteady.core.rows.arrow import rows_to_arrow
from rocsteady.core.settings.evaluator import EvaluatorSettings
from rocsteady.core.settings.table import TableSettings
from rocsteady.core.settings.windows import EverySeconds, LastEvents
from rocsteady.core.table.table import EvaluatorTable
from rocsteady.pipelines.report.report import write_report

from .core import machine, table
from .pages import with_commit

DAY = 86_400_000_000
SLICES = 20
DAYS = 100
EVENTS_A_DAY = 250
DISTINCT = 50
"""Models whose rows are evaluated; further models have these rows with noise in the last digits."""

HEAD = """# A large report

`python -m benchmarks.report` wrote this page. Pages of models with {slices} slices and {days} rows for each
model and slice, opened in Chromium by turns: the median of {turns} openings, and of the clicks of each kind.
An opening ends when every chart of the first screen is drawn. In bold the ratio to the page of {few} models.

"""

CLICKS = {
    "a model of the overview": "#overview-table tbody tr:nth-child(7) a",
    "the next models": "#overview-next",
    "one state": "[data-state='no change shown']",
}
CLICK = """async (selector) => {
    const start = performance.now();
    document.querySelector(selector).click();
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    return performance.now() - start;
}"""


def rows_of(models: int, distinct: int = DISTINCT) -> pa.Table:
    """Return rows of so many models; one of each `distinct` models ranks worse in the last third."""
    rng = np.random.default_rng(1)
    settings = TableSettings(
        EvaluatorSettings(window=LastEvents(1_000), every=EverySeconds(86_400), order="time:0s"),
        (("region",),),
        None,
    )
    evaluators, parts = EvaluatorTable(settings), []
    for model in range(min(models, distinct)):
        n = DAYS * EVENTS_A_DAY
        labels = (rng.random(n) < 0.3).astype(np.int8)
        separation = np.full(n, rng.uniform(0.9, 1.8))
        if model == 0:
            separation[n * 2 // 3 :] -= 0.5
        regions = [f"region-{code:02d}" for code in rng.integers(SLICES, size=n)]
        batch = EventBatch(
            TextColumn.of([f"model-{model:02d}"] * n),
            rng.normal(separation * labels),
            labels,
            times=np.sort(rng.integers(0, DAYS * DAY, n)),
            slices=(("region", TextColumn.of(regions)),),
        )
        parts += evaluators.apply(batch.pack())
    parts += evaluators.apply(EndOfInput().pack())
    rows = pa.Table.from_batches([rows_to_arrow(part) for part in parts])
    copies = [_copy(rows, f"team-{copy:02d}", rng) for copy in range(max(1, models // distinct))]
    return pa.concat_tables(copies)


def _copy(rows: pa.Table, team: str, rng: np.random.Generator) -> pa.Table:
    """Return the rows under other names, and with other last digits: a page must not gain by repetition."""
    columns = []
    for field in rows.schema:
        column = rows.column(field.name)
        if field.name == "model":
            column = pc.binary_join_element_wise(pa.scalar(team), column, "/")
        elif pa.types.is_floating(field.type):
            values = column.to_numpy(zero_copy_only=False)
            if not (np.nan_to_num(values) == np.rint(np.nan_to_num(values))).all():
                values = values * (1 - 0.02 * rng.random(len(values)))
            column = pa.array(values, from_pandas=True)
        columns.append(column)
    return pa.table(columns, schema=rows.schema)


def opened(browser: Any, path: Path) -> tuple[float, dict[str, float]]:
    """Return the seconds until a page is ready, and the milliseconds of each click."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    start = time.perf_counter()
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready]", timeout=120_000)
    seconds = time.perf_counter() - start
    clicks = {}
    for name, selector in CLICKS.items():
        clicks[name] = page.evaluate(CLICK, selector)
        page.wait_for_timeout(500)
    context.close()
    return seconds, clicks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer models and turns")
    parser.add_argument("--output", default="docs/benchmarks/report.md")
    options = parser.parse_args()
    sizes, turns, distinct = ((50, 100), 1, 5) if options.quick else ((50, 1_000), 5, DISTINCT)
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        made: dict[int, tuple[Path, int, float, int]] = {}
        for models in sizes:
            rows = rows_of(models, distinct)
            path = Path(folder) / f"{models}.html"
            begun = time.perf_counter()
            size = write_report(rows, path)
            made[models] = path, rows.num_rows, time.perf_counter() - begun, size
        executable = _chromium()
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        found: dict[int, list[tuple[float, dict[str, float]]]] = {models: [] for models in sizes}
        for _ in range(turns):
            for models in sizes:
                found[models].append(opened(browser, made[models][0]))
        browser.close()
    lines = []
    few = sizes[0]
    base = median(seconds for seconds, _ in found[few])
    for models in sizes:
        _, rows_given, written, size = made[models]
        ready = median(seconds for seconds, _ in found[models])
        clicks = [f"{median(each[name] for _, each in found[models]):.0f} ms" for name in CLICKS]
        lines.append(
            [
                f"{models:,}", f"{rows_given:,}", f"{written:.1f} s", f"{size / 1e6:.1f} MB",
                f"{ready:.2f} s **{ready / base:.2f}**", *clicks,
            ]
        )  # fmt: skip
    head = ["models", "rows", "written in", "size", "open in", *CLICKS]
    page = HEAD.format(slices=SLICES, days=DAYS, turns=turns, few=few)
    page += table(head, lines) + "\n" + machine(0).partition(" Kernels ready")[0] + "\n"
    Path(options.output).write_text(with_commit(page))


def _chromium() -> str | None:
    """Return the Chromium to drive: $ROCSTEADY_CHROMIUM, or what the system has."""
    asked = os.environ.get("ROCSTEADY_CHROMIUM")
    return (
        asked or shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    )


if __name__ == "__main__":
    main()
