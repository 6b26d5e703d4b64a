"""Models with a score of each class in a browser: classes as slices, the heatmap of pairs."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pytest
import rocsteady as rs
from rocsteady.pipelines.report.report import write_report
from rocsteady.pipelines.report.report_rows import Tables

from tests.support.browser.chromium import opened
from tests.support.pages.class_tables import CLASSES, class_rows
from tests.support.pages.report_tables import alert_events


@cache
def all_rows():
    return class_rows()


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(all_rows(), path)
    return path


def pair_aucs(model, row):
    lines = {
        line["class"]: line for line in all_rows().to_pylist() if (line["model"], line["row"]) == (model, row)
    }
    return [lines[name]["pair_aucs"] for name in CLASSES]


def grid(page):
    page.locator("#class-pairs").scroll_into_view_if_needed()
    page.wait_for_function("document.getElementById('class-pairs-grid').dataset.drawn")
    return page.eval_on_selector_all(
        "#class-pairs-grid tbody tr",
        "all => all.map((row) => [...row.querySelectorAll('td')].map((one) => one.textContent))",
    )


def close(shown, aucs):
    """The page holds AUCs to four digits, and writes three."""
    for line, exact in zip(shown, aucs, strict=True):
        for text, value in zip(line, exact, strict=True):
            assert (text == "") == (value is None)
            assert value is None or abs(float(text) - value) <= 0.00056
    return True


def test_the_heatmap_shows_the_pairs_of_the_chosen_model_and_moment(browser, report):
    with opened(browser, report) as page:
        assert close(grid(page), pair_aucs("fallen", 7))
        page.locator("#class-pairs-series").select_option("good")
        page.wait_for_function("document.getElementById('class-pairs-grid').dataset.drawn === '1|7'")
        assert close(grid(page), pair_aucs("good", 7))
        page.locator("#class-pairs-moment").fill("2")
        page.wait_for_function("document.getElementById('class-pairs-grid').dataset.drawn === '1|2'")
        assert close(grid(page), pair_aucs("good", 2))
        assert "event 450" in page.locator("#class-pairs-worst").text_content()
        page.locator("#class-pairs-grid td[data-at='1']").hover()
        page.wait_for_function(
            "document.getElementById('class-pairs-cell').textContent.startsWith('cat against dog=x,y: ')"
        )
        page.locator("#class-pairs-search").fill("OWL")
        page.wait_for_function("document.querySelectorAll('#class-pairs-table tbody tr').length === 2")
        assert page.locator("#class-pairs-count").text_content() == "2 pairs"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_phone_shows_all_without_scrolling_the_page_sideways(browser, report, theme):
    with opened(browser, report, width=360, height=740, color_scheme=theme) as page:
        grid(page)
        assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_on_a_phone_open_alerts_are_not_written_over_the_change(browser, tmp_path):
    write_report(all_rows(), tmp_path / "r.html", Tables(alerts=alert_events({"model": "fallen", "row": 3})))
    with opened(browser, tmp_path / "r.html", width=360, height=740) as page:
        line = page.locator("#overview-table tbody tr").first
        change, alerts = line.locator(".change"), line.locator(".open-alerts")
        text = change.evaluate("(one) => one.scrollWidth")
        left, right = change.bounding_box(), alerts.bounding_box()
        assert left["x"] + text <= right["x"] or left["y"] + left["height"] <= right["y"]


def test_without_javascript_the_worst_pairs_are_there(browser, report):
    with opened(browser, report, ready=False, java_script_enabled=False) as page:
        assert page.locator("#class-pairs-table tbody tr").count() == 3
        assert not page.locator("#class-pairs-scroll").is_visible()


def test_a_class_beside_its_model_leads_to_its_chart(browser, report):
    with opened(browser, report) as page:
        page.locator("#overview-table a", has_text="class=cat").first.click()
        page.wait_for_function("document.getElementById('main-title').textContent.includes('class=cat')")
        assert page.locator("#slice").evaluate("(one) => one.selectedOptions[0].text") == "class=cat"


@pytest.mark.slow
def test_a_hundred_classes_fit_the_page(browser, tmp_path):
    write_report(class_rows(("m",), classes=[f"c{n}" for n in range(100)], n=900), tmp_path / "r.html")
    with opened(browser, tmp_path / "r.html") as page:
        assert len(grid(page)) == 100
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.fixture(scope="module")
def curved(tmp_path_factory):
    """Rows and curves of two models with twelve classes, named by numbers."""
    n, names = 1_200, [str(number) for number in range(12)]
    rng = np.random.default_rng(6)
    label = rng.integers(0, 12, n)
    scores = (rng.random((n, 12)) + 0.4 * np.eye(12)[label]).round(3)
    events = {"model": np.array(["m", "n"])[np.arange(n) % 2], "label": np.array(names)[label]}
    events |= {f"p{name}": scores[:, place] for place, name in enumerate(names)}
    found = rs.evaluate(pa.table(events), class_scores="p*", window="last:300", every="100", curves=300)
    path = tmp_path_factory.mktemp("curved") / "report.html"
    found.report(path)
    return path, found.curves


@pytest.mark.parametrize(("theme", "width"), [("light", 1_200), ("dark", 360)])
def test_the_curve_of_a_class_is_drawn_like_that_of_a_slice(browser, curved, theme, width):
    path, curves = curved
    points = {(line["model"], line["seq"]): [] for line in curves.to_pylist() if line["class"] == "10"}
    for line in curves.to_pylist():
        if line["class"] == "10":
            points[line["model"], line["seq"]].append((line["fp"] / line["negatives"],
                                                       line["tp"] / line["positives"]))  # fmt: skip
    with opened(browser, path, width=width, color_scheme=theme) as page:
        page.locator("#curves").scroll_into_view_if_needed()
        said = page.locator("#curves-about").inner_text()
        assert said == (
            "The chosen models have no curves of all events. Choose a class that has curves: class=0, "
            "class=1, class=2, class=3, class=4, ...."
        )
        page.locator("#slice").select_option("class=10")
        page.locator("#roc-chart").scroll_into_view_if_needed()
        page.wait_for_function("document.getElementById('roc-chart').dataset.drawn === '1'")
        drawn = page.evaluate(
            """document.getElementById("roc-chart").data.filter((one) => one.kind === "roc")
                .map((one) => [one.model, [...one.x], [...one.y]])"""
        )
        assert len(drawn) == 2
        for model, x, y in drawn:
            whole = points["mn"[model], 600]
            assert set(zip(x, y, strict=True)) <= set(whole)
            assert (x[0], y[0], x[-1], y[-1]) == (0, 0, 1, 1)
        assert page.locator("#moment-text").inner_text().endswith("(2 of 2)")
        page.locator("#calibration-chart").scroll_into_view_if_needed()
        page.wait_for_function("document.getElementById('calibration-chart').data.length > 1")
        assert page.evaluate("document.documentElement.scrollWidth") == width


def test_classes_are_called_classes_and_stand_in_their_order(browser, curved):
    names = [f"class={number}" for number in range(12)]
    with opened(browser, curved[0]) as page:
        assert page.locator("#slice option").all_inner_texts() == ["all events", *names]
        page.locator("#heatmap-table").scroll_into_view_if_needed()
        page.wait_for_function("document.querySelectorAll('#heatmap-table thead th').length === 13")
        assert page.locator("#heatmap-table thead th").all_inner_texts() == ["Model", *names]
        page.locator("#slices").scroll_into_view_if_needed()
        page.wait_for_function("document.getElementById('slices-chart').dataset.drawn")
        labels = "[...document.querySelectorAll('#slices-chart .ytick text')].map((one) => one.textContent)"
        assert page.evaluate(labels) == ["all events", *names]
        assert page.locator("#slices-page").inner_text() == "12 classes and all events"
        assert "rows: every class" in page.locator("#slices-caption").inner_text()
