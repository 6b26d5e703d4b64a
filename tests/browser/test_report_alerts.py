"""Alerts in a browser: marks in the chart of their measure, and a table that leads to the chart."""

from __future__ import annotations

import pytest
from rocsteady.pipelines.report.report import write_report
from rocsteady.pipelines.report.report_rows import Tables

from tests.support.browser.chromium import opened
from tests.support.pages.report_tables import NASTIER, NASTY, START, alert_events, evaluated_rows

HOUR = 3_600_000_000

MARKS = """() => document.getElementById("main-chart").data.filter((one) => one.kind === "alert")
    .map((one) => ({ x: Array.from(one.x), y: Array.from(one.y), symbol: Array.from(one.marker.symbol),
    text: Array.from(one.text) }))"""


def at(row):
    """The time of the row of every 100 events, an event an hour."""
    return START + (100 * row + 99) * HOUR


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    nasty = {"model": NASTY, "rule": "h < 0.1", "column": "h"}
    alerts = alert_events(
        {"model": "good", "row": 18, "time": at(18), "value": 0.55, "message": f"{NASTY} opened " * 9},
        {"model": "good", "row": 24, "time": at(24), "value": 0.75, "state": "closed", "since_row": 18},
        {"model": "good", "row": 20, "time": at(20), "value": 0.5, "column": "auc_high"},
        {**nasty, "row": 9, "time": at(9), "value": 0.05, "slice": "site=c"},
    )
    write_report(evaluated_rows(models=("good", NASTY, NASTIER)), path, Tables(alerts=alerts))
    return path


def drawn(page, start):
    page.wait_for_function(
        "(start) => document.getElementById('main-chart').dataset.drawn.startsWith(start)", arg=start
    )


def test_marks_stand_where_alerts_of_the_measure_opened_and_closed(browser, report):
    with opened(browser, report) as page:
        drawn(page, "auc|")
        (mark,) = page.evaluate(MARKS)
        order = sorted(zip(mark["x"], mark["y"], mark["symbol"], strict=True))
        assert order == [
            (at(18) / 1e3, 0.55, "diamond"),
            (at(20) / 1e3, 0.5, "diamond"),
            (at(24) / 1e3, 0.75, "diamond-open"),
        ]  # fmt: skip
        assert not any("<script" in text for text in mark["text"])
        assert any("&lt;script&gt;" in text and "<br>" in text for text in mark["text"])
        lines = "document.getElementById('main-chart').data.filter((one) => one.kind === 'line').at(-1).text"
        told = page.evaluate(f"{lines}.filter((text) => text.includes('opened'))")
        assert len(told) == 1  # the label of the row of that alert
        assert told[0].startswith("<b>good</b>")
        assert "Diamonds are alerts" in page.inner_text("#main-notes")
        page.select_option("#axis", "seq")
        drawn(page, "auc|0|seq")
        assert sorted(page.evaluate(MARKS)[0]["x"]) == [1_900, 2_100, 2_500]
        page.select_option("#measure", "h")
        drawn(page, "h|")
        assert page.evaluate(MARKS) == []
        assert "Diamonds" not in page.inner_text("#main-notes")


def test_a_click_in_the_table_chooses_the_model_the_slice_and_the_measure(browser, report):
    with opened(browser, report) as page:
        lines = page.locator("#alerts-table tbody tr")
        assert lines.count() == 3
        assert [line.get_attribute("class") for line in lines.all()] == ["open", "open", None]
        row = lines.filter(has_text="site=c")
        assert NASTY in row.inner_text()
        row.locator("button").click()
        page.wait_for_function("document.getElementById('main-title').textContent === 'H-measure, site=c'")
        drawn(page, "h|")
        (mark,) = page.evaluate(MARKS)
        assert (mark["x"], mark["y"]) == ([at(9) / 1e3], [0.05])
        assert page.locator("#legend li").count() == 1
        page.select_option("#alerts-scope", "chosen")
        assert lines.count() == 1
        assert page.inner_text("#alerts-page") == "1 alert"
        page.click("#legend button")
        page.wait_for_function("document.getElementById('alerts-page').textContent === '0 alerts'")
        assert page.inner_text("#alerts-table tbody") == "No alert of the chosen models."


def test_the_table_is_the_same_without_javascript(browser, report):
    text = "all => all.map((row) => [...row.children].map((one) => one.textContent.trim()))"
    with opened(browser, report, ready=False, java_script_enabled=False) as page:
        written = page.eval_on_selector_all("#alerts-table tbody tr", text)
        assert "2 still open" in page.inner_text("header")
    with opened(browser, report) as page:
        assert page.eval_on_selector_all("#alerts-table tbody tr", text) == written


def test_many_alerts_are_turned_like_pages(browser, tmp_path):
    events = ({"model": "good", "row": row % 30, "rule": f"auc < 0.{row}"} for row in range(120))
    write_report(evaluated_rows(models=("good",)), tmp_path / "r.html", Tables(alerts=alert_events(*events)))
    with opened(browser, tmp_path / "r.html") as page:
        assert page.inner_text("#alerts-page") == "120 alerts, page 1 of 3"
        assert page.is_disabled("#alerts-back")
        seen = set()
        for number in (1, 2, 3):
            seen |= set(page.locator("#alerts-table tr td:nth-child(3)").all_text_contents())
            if number < 3:
                page.click("#alerts-next")
        assert page.inner_text("#alerts-page") == "120 alerts, page 3 of 3"
        assert len(seen) == 120
