"""Who is better, in a browser: means as the table has them, by keyboard, at any width, in any theme."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc
import pytest
from rocsteady.core.compare.comparisons import Checkpoint, compare_learners
from rocsteady.core.rows.arrow import ROW_SCHEMA
from rocsteady.pipelines.report.report import write_report
from rocsteady.pipelines.report.report_rows import Tables
from rocsteady.transforms.sinks.comparisons import MEAN_SCHEMA, comparisons_to_arrow

from tests.support.browser.chromium import opened
from tests.support.pages.comparison_files import compared_tables, fold_rows
from tests.support.pages.report_tables import NASTIER, NASTY

LEARNERS = ("best", NASTY, NASTIER)

TRACES = """() => document.getElementById("better-chart").data.map((trace) => ({
    kind: trace.kind, learner: trace.learner, x: Array.from(trace.x), y: Array.from(trace.y) }))"""

SHOWN = """() => [...document.querySelectorAll(".compared")].filter((one) => one.offsetParent !== null)
    .map((one) => one.dataset.measure)"""


@pytest.fixture(scope="module")
def tables():
    return compared_tables(LEARNERS)


@pytest.fixture(scope="module")
def report(tables, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(fold_rows(LEARNERS), path, Tables(comparisons=tables[0], means=tables[1]))
    return path


def drawn(page, wanted):
    """Wait until the chart of means shows what was asked for; return its traces."""
    page.wait_for_function(
        "(wanted) => (document.getElementById('better-chart').dataset.drawn || '').startsWith(wanted)",
        arg=wanted,
    )
    return page.evaluate(TRACES)


def of_learner(means, measure, learner):
    here = pc.and_(pc.equal(means["measure"], measure), pc.equal(means["model"], learner))
    return means.filter(here).sort_by("checkpoint")


def test_the_lines_are_the_means_and_the_bands_their_spread(browser, report, tables):
    _, means = tables
    with opened(browser, report) as page:
        options = page.eval_on_selector_all("#better-measure option", "all => all.map((one) => one.value)")
        assert options[:3] == ["auc", "accuracy", "log_loss"]
        assert sorted(options) == sorted(set(means["measure"].to_pylist()))
        for measure in ("auc", "fn"):
            page.select_option("#better-measure", measure)
            for spread in ("deviation", "range"):
                page.select_option("#better-spread", spread)
                traces = drawn(page, f"{measure}|{spread}|")
                for place, learner in enumerate(sorted(LEARNERS)):
                    mine = {trace["kind"]: trace for trace in traces if trace["learner"] == place}
                    table = of_learner(means, measure, learner)
                    times = [time.timestamp() * 1e3 for time in table["time"].to_pylist()]
                    values = {name: table[name].to_numpy() for name in table.column_names[5:]}
                    assert (mine["mean"]["x"], mine["mean"]["y"]) == (times, values["mean"].tolist())
                    low, high = values["least"], values["greatest"]
                    if spread == "deviation":
                        low = values["mean"] - values["standard_deviation"]
                        high = values["mean"] + values["standard_deviation"]
                    np.testing.assert_allclose(mine["band"]["y"], [*low, *high[::-1]])


def test_one_measure_is_shown_at_a_time_and_all_without_javascript(browser, report):
    with opened(browser, report) as page:
        assert page.evaluate(SHOWN) == ["auc"]
        page.select_option("#better-measure", "log_loss")
        drawn(page, "log_loss|")
        assert page.evaluate(SHOWN) == ["log_loss"]
        assert "(lower is better)" in page.inner_text("#better-chart-title")
        page.select_option("#better-measure", "h")  # by which nothing was tested
        drawn(page, "h|")
        assert page.evaluate(SHOWN) == []
    with opened(browser, report, ready=False, java_script_enabled=False) as page:
        assert page.locator(".compared").count() == 3
        assert all(one.is_visible() for one in page.locator(".compared").all())
        assert not page.locator("#better-controls").is_visible()
        assert page.locator("#better svg").first.is_visible()


def test_learners_are_taken_away_by_keyboard(browser, report):
    with opened(browser, report) as page:
        drawn(page, "auc|deviation|0,1,2|")
        page.focus("#better-legend input[data-learner='1']")
        page.keyboard.press("Space")
        traces = drawn(page, "auc|deviation|0,2|")
        assert {trace["learner"] for trace in traces} == {0, 2}
        assert page.evaluate("document.activeElement.dataset.learner") == "1"
        colours = page.eval_on_selector_all(
            "#better-legend line", "all => all.map((one) => one.getAttribute('stroke'))"
        )
        assert len(set(colours)) == 3
        assert "is not drawn" in page.inner_text("#live")


@pytest.mark.slow
def test_since_when_the_leader_leads_is_shaded(browser, tmp_path):
    _, means = compared_tables(("best", "poor"))
    moments = sorted({(row["checkpoint"], row["time"], row["seq"]) for row in means.to_pylist()})
    folds = np.arange(8) / 1_000
    rows = []
    for checkpoint, time, seq in moments:
        at = Checkpoint(checkpoint, int(time.timestamp() * 1e6), seq)
        lead = 0.1 if checkpoint >= 2 else 0.0
        rows += compare_learners(["best", "poor"], np.array([folds + lead, folds]), "auc", at)
    write_report(
        fold_rows(("best", "poor")),
        tmp_path / "r.html",
        Tables(comparisons=comparisons_to_arrow(rows), means=means),
    )
    shapes = "document.getElementById('better-chart').layout.shapes.map((one) => [one.x0, one.x1])"
    for axis, place in (("seq", 2), ("time", 1)):
        with opened(browser, tmp_path / "r.html", fragment=f"#axis={axis}") as page:
            drawn(page, "auc|")
            ends = [moments[2][place], moments[-1][place]]
            if axis == "time":
                ends = [time.timestamp() * 1e3 for time in ends]
            assert page.evaluate(shapes) == [ends]
            said = "since when best is better than poor by Wilcoxon's test, without a gap."
            assert said in page.inner_text("#better-caption")
            page.select_option("#better-measure", "h")
            drawn(page, "h|")
            assert page.evaluate(shapes) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_diagram_and_the_chart_have_the_colours_of_the_theme(browser, report, scheme):
    with opened(browser, report, color_scheme=scheme) as page:
        drawn(page, "auc|")
        colour = "getComputedStyle(document.querySelector('{}')).color"
        assert page.evaluate(colour.format(".diagram svg")) == page.evaluate(colour.format("body"))
        page.evaluate("document.getElementById('theme').click(); document.getElementById('theme').click()")
        page.wait_for_function("document.getElementById('better-chart').dataset.drawn.endsWith('dark')")


@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_is_never_wider_than_the_window(browser, report, width):
    with opened(browser, report, width=width) as page:
        for measure in ("auc", "accuracy", "log_loss"):
            page.select_option("#better-measure", measure)
            drawn(page, f"{measure}|")
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        regions = page.locator("#better .scroll")
        assert all(one.get_attribute("aria-label") for one in regions.all())


@pytest.mark.slow
def test_without_rows_or_with_one_checkpoint_or_without_means_there_is_what_there_is(browser, tmp_path):
    comparisons, means = compared_tables(("a", "b"), folds=3, checkpoints=1)
    write_report(ROW_SCHEMA.empty_table(), tmp_path / "r.html", Tables(comparisons=comparisons, means=means))
    with opened(browser, tmp_path / "r.html") as page:
        kinds = {trace["kind"]: trace for trace in drawn(page, "auc|")}
        assert len(kinds["mean"]["y"]) == 1
        assert page.evaluate("document.getElementById('better-chart').data[1].error_y.array.length") == 1
        page.select_option("#better-measure", "accuracy")
        drawn(page, "accuracy|")
        assert page.evaluate(SHOWN) == ["accuracy"]
    for means_given in (None, MEAN_SCHEMA.empty_table()):
        write_report(
            fold_rows(("a", "b"), 3, 2),
            tmp_path / "r.html",
            Tables(comparisons=comparisons, means=means_given),
        )
        with opened(browser, tmp_path / "r.html") as page:
            assert page.evaluate(SHOWN) == ["auc"]
            assert not page.locator("#better-figure").is_visible()
            page.select_option("#better-measure", "accuracy")
            assert page.evaluate(SHOWN) == ["accuracy"]
