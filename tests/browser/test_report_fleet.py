"""Gaps, groups and pairs in a browser: tables that are searched and turned, charts of what is chosen."""

from __future__ import annotations

import html

import pyarrow as pa
import pytest
import rocsteady as rs
from rocsteady.pipelines.report.report import write_report
from rocsteady.pipelines.report.report_rows import Tables

from tests.support.browser.chromium import opened
from tests.support.pages.fleet_tables import HOUR, fleet_rows, pair_rows, slice_rows
from tests.support.pages.report_tables import NASTIER, NASTY, START, alert_events

GRID = START // HOUR * HOUR
SECTIONS = ("roll_ups", "pairs", "gaps")


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    fleet = {f"m{place:02}": [0.8, 0.81, 0.8] for place in range(30)} | {NASTY: [0.8, 0.7, 0.6]}
    slices = {f"m{place:02}": {"c=x": [0.8], f"c={NASTIER}": [0.81], "c=y": [0.79]} for place in range(30)}
    slices["m00"]["c=y"] = [0.5]
    rows = pa.concat_tables([fleet_rows(fleet), slice_rows(slices)])
    pairs = [
        pair_rows({"anytime_low": -0.2, "anytime_high": 0.1}, {"anytime_low": 0.001, "anytime_high": 0.1,
                   "verdict": "better"}, model=f"m{place:02}", against="m01", slice=part)
        for place in (0, 2, 3) for part in ("", "c=x")
    ]  # fmt: skip
    pairs.append(pair_rows({"verdict": "worse"}, model=NASTY, against="m01"))
    rolled = rs.roll_up(rows, by=["models", "m0*", *(f"m{place:02}*" for place in range(30))])
    alerts = alert_events(
        {"model": "m0*", "row": 1, "column": "members_below", "rule": "members_below > 0"},
        {"model": "m02 against m01", "slice": "c=x", "row": 1, "column": "anytime_low"},
        {"model": "m03 against m01", "row": 1, "time": START + 2 * HOUR, "column": "anytime_low",
         "value": 0.001, "message": NASTY},
    )  # fmt: skip
    write_report(rows, path, Tables(roll_ups=rolled, pairs=pa.concat_tables(pairs), alerts=alerts))
    return path


def chart(page, section):
    """What the chart of a section has drawn, by kind."""
    page.locator(f"#{section}").scroll_into_view_if_needed()
    page.wait_for_function(f"document.getElementById('{section}-chart').dataset.drawn")
    return page.evaluate(
        f"""() => document.getElementById("{section}-chart").data.filter((one) => one.kind)
        .map((one) => ({{ kind: one.kind, x: [...one.x], y: [...one.y], text: one.text || [] }}))"""
    )


def lines(page, section):
    return page.locator(f"#{section}-table tbody tr").all()


def drawn(page, section, said):
    page.wait_for_function(
        f"(said) => document.getElementById('{section}-table').dataset.drawn === said", arg=said
    )


@pytest.mark.slow
def test_lines_are_the_same_with_and_without_javascript(browser, report):
    text = "all => all.map((row) => [...row.children].map((one) => one.textContent.trim()))"
    with opened(browser, report, ready=False, java_script_enabled=False) as page:
        written = {name: page.eval_on_selector_all(f"#{name}-table tbody tr", text) for name in SECTIONS}
        assert not page.locator("#pairs-figure").is_visible()
    with opened(browser, report) as page:
        for name in SECTIONS:
            assert page.eval_on_selector_all(f"#{name}-table tbody tr", text) == written[name]
        page.fill("#gaps-search", "m")
        drawn(page, "gaps", "m|0")
        assert page.eval_on_selector_all("#gaps-table tbody tr", text) == written["gaps"]


def test_gaps_are_searched_turned_and_lead_to_the_charts(browser, report):
    with opened(browser, report) as page:
        assert page.inner_text("#gaps-page") == "90 slices, page 1 of 4"
        first = lines(page, "gaps")[0]
        assert first.get_attribute("class") == "worse"
        assert "below the others" in first.inner_text()
        page.click("#gaps-next")
        drawn(page, "gaps", "|1")
        page.fill("#gaps-search", "</SCRIPT>")
        drawn(page, "gaps", "</SCRIPT>|0")
        assert page.inner_text("#gaps-page") == "30 slices, page 1 of 2"
        page.fill("#gaps-search", "no such slice")
        drawn(page, "gaps", "no such slice|0")
        assert page.inner_text("#gaps-table tbody") == "No slice matches."
        page.fill("#gaps-search", "m00")
        drawn(page, "gaps", "m00|0")
        lines(page, "gaps")[0].locator("a").nth(1).click()
        page.wait_for_function("document.getElementById('main-title').textContent === 'AUC, c=y'")
        assert page.locator("#legend li .name").all_inner_texts() == ["m00"]


def test_the_chart_of_a_group_has_its_mean_and_its_extremes(browser, report):
    with opened(browser, report) as page:
        traces = {one["kind"]: one for one in chart(page, "roll_ups")}
        assert traces.keys() == {"band", "mean", "worst", "best"}
        assert traces["mean"]["x"] == [(GRID + hour * HOUR) / 1_000 for hour in range(3)]
        assert traces["worst"]["y"][-1] == 0.6
        assert "&lt;script&gt;" in traces["worst"]["text"][-1]
        assert "models: AUC, mean of the members" in page.inner_text("#roll_ups-chart-title")
        page.select_option("#roll_ups-measure", "auc_by_events")
        page.wait_for_function(
            "document.getElementById('roll_ups-chart').dataset.drawn.startsWith('roll_ups|0|auc_by_events')"
        )
        lines(page, "roll_ups")[1].locator("button").click()
        page.wait_for_function(
            "document.getElementById('roll_ups-chart').dataset.drawn.startsWith('roll_ups|1|auc_by_events')"
        )
        assert page.inner_text("#roll_ups-chart-title") == "m0*: AUC, mean weighted by events"
        assert page.input_value("#roll_ups-series") == "1"
        page.click("#roll_ups-next")
        drawn(page, "roll_ups", "|1")
        assert page.inner_text("#roll_ups-page") == "32 groups, page 2 of 2"


@pytest.mark.parametrize(
    ("name", "section", "title"),
    [("m0*", "roll_ups", "m0*: AUC"), ("m02 against m01", "pairs", "m02 against m01, c=x: difference")],
)
def test_an_alert_of_a_group_or_a_pair_leads_to_its_chart(browser, report, name, section, title):
    with opened(browser, report) as page:
        page.locator("#alerts-table tbody button", has_text=name).click()
        page.wait_for_function(
            f"(said) => document.getElementById('{section}-chart-title').textContent.startsWith(said)",
            arg=title,
        )


def test_the_chart_of_a_pair_has_both_intervals_over_time_and_over_instances(browser, report):
    with opened(browser, report) as page:
        first, *others = lines(page, "pairs")
        assert NASTY in first.inner_text()
        assert first.get_attribute("class") == "worse"
        assert len(others) == 6
        others[0].locator("button").click()
        page.wait_for_function(
            "document.getElementById('pairs-chart').dataset.drawn?.startsWith('pairs|1|time')"
        )
        traces = chart(page, "pairs")
        assert [one["kind"] for one in traces] == ["band", "anytime", "anytime", "difference"]
        assert [one["y"] for one in traces[1:3]] == [[-0.2, 0.001], [0.1, 0.1]]
        assert traces[-1]["x"] == [(START + hour * HOUR) / 1_000 for hour in (1, 2)]
        page.select_option("#axis", "seq")
        page.wait_for_function(
            "document.getElementById('pairs-chart').dataset.drawn.startsWith('pairs|1|seq')"
        )
        assert chart(page, "pairs")[-1]["x"] == [1_000, 2_000]


ALERTS = """(id) => document.getElementById(id).data.filter((one) => one.kind === "alert")
    .map((one) => [...one.x, ...one.y, ...one.marker.symbol, ...one.text])"""


def test_an_alert_of_a_pair_stands_in_its_chart_and_on_the_auc_of_its_challenger(browser, report):
    with opened(browser, report, fragment="#model=m03&model=m01") as page:
        escaped = html.escape(NASTY, quote=False)
        page.wait_for_function("document.getElementById('main-chart').dataset.drawn?.startsWith('auc|')")
        assert page.evaluate(ALERTS, "main-chart") == [[(GRID + 2 * HOUR) / 1_000, 0.8, "diamond", escaped]]
        assert page.locator("#legend .open-alert").all_inner_texts() == ["1 open alert"]
        page.locator("#alerts-table tbody button", has_text="m03 against m01").click()
        page.wait_for_function("document.getElementById('pairs-chart-title').textContent.startsWith('m03')")
        page.wait_for_function("document.getElementById('pairs-chart').dataset.drawn?.endsWith('light')")
        assert page.evaluate(ALERTS, "pairs-chart") == [
            [(START + 2 * HOUR) / 1_000, 0.001, "diamond", escaped]
        ]
        assert "Diamonds are alerts" in page.inner_text("#pairs-caption")


HEIGHTS = """() => Object.fromEntries(
    [...document.querySelectorAll("main > section")].map((one) => [one.id, one.offsetHeight]))"""


@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_moves_when_a_chart_is_drawn(browser, report, width):
    with opened(browser, report, width=width, height=640) as page:
        before = page.evaluate(HEIGHTS)
        assert not page.evaluate("document.getElementById('pairs-chart').dataset.drawn")
        for name in ("roll_ups", "pairs"):
            chart(page, name)
            assert page.evaluate(HEIGHTS)[name] == before[name], name


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_on_a_phone_tables_are_folded_and_nothing_is_wider_than_the_screen(browser, report, theme):
    with opened(
        browser, report, width=360, height=640, has_touch=True, is_mobile=True, color_scheme=theme
    ) as page:
        for name in SECTIONS:
            assert not page.locator(f"#{name}-table").is_visible()
            page.locator(f"#{name} details.fold > summary").click()
            assert page.locator(f"#{name}-table").is_visible()
            for cell in page.locator(f"#{name}-table tbody tr").first.locator("> *").all():
                box = cell.bounding_box()
                assert box["x"] >= 0
                assert box["x"] + box["width"] <= 360
        chart(page, "pairs")
        assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_on_paper_the_charts_and_the_tables_are_there_and_no_controls(browser, report):
    with opened(browser, report) as page:
        page.evaluate("document.querySelectorAll('details.fold').forEach((one) => { one.open = false; })")
        page.emulate_media(media="print")
        for name in ("roll_ups", "pairs"):
            page.wait_for_function(f"document.getElementById('{name}-chart').dataset.medium === 'paper'")
            assert not page.locator(f"#{name}-choices").is_visible()
        for name in SECTIONS:
            assert page.locator(f"#{name}-table").is_visible()
        assert not page.locator("#gaps-controls").is_visible()
