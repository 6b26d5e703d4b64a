"""The overview in a browser: planted faults are read from the page alone, and it stays quick."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from rocsteady.pipelines.report.report import write_report
from rocsteady.pipelines.report.report_rows import Tables

from tests.support.browser.chromium import near_is_drawn, opened
from tests.support.pages.planted import DAY, DAYS, FIRST, planted
from tests.support.pages.report_tables import alert_events, filled
from tests.support.thorough import first

WINDOW_DAYS = 15

LINES = """() => [...document.querySelectorAll("#overview-table tbody tr")].map((line) => ({
    name: line.querySelector("th")?.innerText.trim(),
    state: line.querySelector(".state")?.innerText.trim(),
    about: [...line.querySelectorAll(".state-cell small")].map((one) => one.innerText),
    colour: line.querySelector(".state") && getComputedStyle(line.querySelector(".state")).color,
}))"""


def written(models, folder):
    """A page of so many models with one fault of each kind: their number, the faults, and the page's path."""
    made = planted(models, n=12_000 if models < 500 else 9_000, window=1_500, every=250)
    write_report(made.rows, folder / "r.html")
    return models, made.faults, folder / "r.html"


@pytest.fixture(scope="module")
def page_of(tmp_path_factory):
    return written(50, tmp_path_factory.mktemp("overview"))


def lines(page):
    return page.evaluate(LINES)


def drawn(page, state="", wanted="", order="place", number=0):
    page.wait_for_function(
        "(drawn) => document.getElementById('overview-table').dataset.drawn === drawn",
        arg="|".join([state, wanted, order, str(number)]),
    )


def day_of(text):
    """The day that a text such as "since 3 May 2026 (1 May to 9 May)" begins with."""
    words = text.removeprefix("gradually from ").removeprefix("since ").split(" ")
    return datetime.strptime(" ".join(words[:3]).rstrip(","), "%d %b %Y").replace(tzinfo=UTC)


@pytest.mark.parametrize("models", first(1, [50, 10, 500]))
def test_the_page_alone_tells_every_fault_and_when_it_began(browser, models, tmp_path):
    _, faults, path = written(models, tmp_path)
    with opened(browser, path) as page:
        sentence = page.locator("#overview-title").inner_text()
        assert f"of {models} models" in sentence
        assert "worse only in region=eu" in sentence
        assert "1 ranks better than it did" in sentence
        assert "1 has too few labels" in sentence
        assert f"{models - 5} show no change" in sentence
        assert page.locator("#overview").bounding_box()["y"] < 400
        by_name = {line["name"]: line for line in lines(page)}
        page.locator("[data-state=better]").click()
        drawn(page, "better")
        by_name |= {line["name"]: line for line in lines(page)}
        states = {"abrupt": "worse", "gradual": "worse", "rise": "better", "slice": "worse only in region=eu"}
        for name, (kind, at) in faults.items():
            if kind == "few":
                assert by_name[name]["state"] == "cannot tell: too few labels"
                continue
            line = by_name[name]
            assert line["state"] == states[kind]
            told = line["about"][0]
            began = datetime.fromtimestamp(FIRST / 1e6, UTC) + timedelta(days=at)
            window = WINDOW_DAYS * (3 if kind == "slice" else 1) * (4 / 3 if models == 500 else 1)
            assert abs((day_of(told) - began).total_seconds()) <= (window + 1) * 86_400, (kind, told, began)
        falls = {line["colour"] for line in by_name.values() if line["state"].startswith("worse")}
        rises = {line["colour"] for line in by_name.values() if line["state"].startswith("better")}
        assert len(falls) == len(rises) == 1
        assert falls != rises


@pytest.mark.slow
def test_the_worst_are_chosen_and_a_click_leads_to_a_model_and_its_slice(browser, page_of):
    _, faults, path = page_of
    with opened(browser, path) as page:
        first = page.locator("#legend li .name").all_inner_texts()
        broken = {name for name, (kind, _) in faults.items() if kind in ("abrupt", "gradual", "slice")}
        assert set(first) == broken
        (sliced,) = [name for name, (kind, _) in faults.items() if kind == "slice"]
        link = page.locator("#overview-table a[data-slice='region=eu']", has_text="region=eu").first
        page.locator("#overview-table tr", has_text=sliced).locator("a[data-slice='region=eu']").click()
        page.wait_for_function("document.getElementById('main-title').textContent === 'AUC, region=eu'")
        assert page.locator("#legend li .name").all_inner_texts() == [sliced]
        assert "slice=region%3Deu" in page.url
        page.wait_for_function("document.getElementById('legend').getBoundingClientRect().top < 200")
        assert link.get_attribute("href").startswith("#model=")
        link_of = page.url
    with opened(browser, path, fragment="#" + link_of.partition("#")[2]) as page:
        assert page.locator("#legend li .name").all_inner_texts() == [sliced]
        assert page.locator("#main-title").inner_text() == "AUC, region=eu"


def test_every_line_is_there_after_the_measure_changes(browser, page_of):
    """The AUC of many models has hidden bands; a line of another measure may take the place of a band."""
    _, _, path = page_of
    hidden = """() => [...document.querySelectorAll("#main-chart .scatterlayer .trace")]
        .filter((one) => getComputedStyle(one).opacity !== "1").map((one) => one.getAttribute("class"))"""
    with opened(browser, path) as page:
        for measure in ("ks", "recall", "auc", "prevalence"):
            page.select_option("#measure", measure)
            page.wait_for_function(
                "(name) => document.getElementById('main-chart').dataset.drawn.startsWith(name + '|')",
                arg=measure,
            )
            bands = page.evaluate(hidden)
            assert bool(bands) == (measure == "auc")
            assert all("traceband-" in band for band in bands)
            lines_drawn = page.evaluate(
                "document.getElementById('main-chart').data.filter((one) => one.kind === 'line').length"
            )
            assert lines_drawn == 3


def test_the_chart_marks_where_changes_began(browser, page_of):
    _, faults, path = page_of
    with opened(browser, path) as page:
        shapes = """() => document.getElementById("main-chart").layout.shapes
            .filter((one) => one.name === "beginning").map((one) => one.x0)"""
        page.wait_for_function("document.getElementById('main-chart').dataset.drawn")
        marked = [(at * 1_000 - FIRST) / DAY for at in page.evaluate(shapes)]
        began = [at for kind, at in faults.values() if kind in ("abrupt", "gradual")]
        assert len(marked) == 2
        assert np.abs(np.sort(marked) - np.sort(began)).max() <= 1.4 * WINDOW_DAYS
        assert "where a change began" in page.locator("#main-notes").inner_text()
        page.select_option("#measure", "h")
        page.wait_for_function("document.getElementById('main-chart').dataset.drawn.startsWith('h|')")
        assert page.evaluate(shapes) == []


def test_it_is_filtered_searched_ordered_and_paged(browser, page_of):
    models, _, path = page_of
    with opened(browser, path) as page:
        page.fill("#overview-search", "model-003")
        drawn(page, wanted="model-003")
        assert [line["name"][-9:] for line in lines(page)] == ["model-003"]
        page.fill("#overview-search", "no such model")
        drawn(page, wanted="no such model")
        assert page.locator("#overview-table tbody").inner_text() == "No model matches."
        page.fill("#overview-search", "")
        drawn(page)
        page.select_option("#overview-order", "name")
        drawn(page, order="name")
        names = [line["name"] for line in lines(page)]
        assert names == sorted(names)
        page.locator("[data-state='cannot tell']").click()
        drawn(page, "cannot tell", order="name")
        assert len(lines(page)) == 1
        page.locator("[data-state='cannot tell']").click()
        drawn(page, order="name")
        if models > 25:
            page.locator("#overview-next").click()
            drawn(page, order="name", number=1)
            assert lines(page)[0]["name"] > names[-1]


def test_the_heatmap_marks_the_slice_that_broke_alone(browser, page_of):
    _, faults, path = page_of
    (sliced,) = [name for name, (kind, _) in faults.items() if kind == "slice"]
    with opened(browser, path) as page:
        assert f"{sliced} in region=eu" in page.locator("#gaps p.about").first.inner_text()
        row = page.locator("#heatmap-table tbody tr", has_text=sliced)
        sure = row.locator("td.sure button").all_inner_texts()
        assert any(text.startswith("\N{MINUS SIGN}0.") for text in sure)
        page.select_option("#heatmap-what", "change")
        page.wait_for_function("document.getElementById('heatmap-table').dataset.drawn === 'change|0|0'")
        place = page.locator("#heatmap-table thead th").all_inner_texts().index("region=eu")
        cell = row.locator("td").nth(place - 1)
        assert "sure" in cell.get_attribute("class")
        cell.locator("button").click()
        page.wait_for_function("document.getElementById('main-title').textContent === 'AUC, region=eu'")
        assert page.locator("#legend li .name").all_inner_texts() == [sliced]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_on_a_phone_the_worst_stand_on_the_first_screen(browser, page_of, theme):
    _, _, path = page_of
    with opened(
        browser, path, width=360, height=640, has_touch=True, is_mobile=True, color_scheme=theme
    ) as page:
        assert page.evaluate("document.documentElement.scrollWidth") == 360
        line = page.locator("#overview-table tbody tr").first.bounding_box()
        assert line["y"] < 640
        cells = page.locator("#overview-table tbody tr").first.locator("td")
        for place in range(cells.count()):
            box = cells.nth(place).bounding_box()
            assert box is None or box["x"] + box["width"] <= 360


def test_open_alerts_stand_beside_the_models(browser, tmp_path):
    alerts = alert_events({"model": "a", "row": 3}, {"model": "b", "row": 2}, {"model": "b", "row": 9})
    write_report(filled([("a", 20), ("b", 20), ("c", 20)]), tmp_path / "r.html", Tables(alerts=alerts))
    with opened(browser, tmp_path / "r.html") as page:
        page.select_option("#overview-order", "alerts")
        drawn(page, order="alerts")
        assert [line["name"] for line in lines(page)] == ["b", "a", "c"]
        cells = page.locator("#overview-table tbody tr td:last-child").all_inner_texts()
        assert cells == ["2", "1", "\N{EN DASH}"]


def test_a_page_on_paper_has_the_sentence_and_no_controls(browser, page_of):
    _, _, path = page_of
    with opened(browser, path) as page:
        page.emulate_media(media="print")
        assert page.locator("#overview-title").is_visible()
        assert not page.locator("#overview-controls").is_visible()
        page.wait_for_function("document.getElementById('overview-table').dataset.drawn === 'paper'")
        assert page.evaluate("document.documentElement.classList.contains('printing')")
        shown = page.evaluate(LINES)
        if len(shown) < 10:  # those with something to say, and how many others there are
            assert {line["state"].split(" ")[0] for line in shown} == {"worse", "better", "cannot"}
            assert "not printed" in page.locator("#overview-paper").inner_text()
        page.emulate_media(media="screen")
        page.wait_for_function("!document.documentElement.classList.contains('printing')")
        drawn(page)
        assert page.locator("#overview-table tbody tr").count() >= 10


COUNTED = """() => {
    const counts = { added: 0, unzipped: 0 };
    new MutationObserver((changes) => {
        for (const change of changes) counts.added += change.addedNodes.length;
    }).observe(document.body, { childList: true, subtree: true });
    const real = window.DecompressionStream;
    window.DecompressionStream = function (kind) { counts.unzipped += 1; return new real(kind); };
    window.counts = counts;
}"""

SHOW_ONE = """() => {
    const { top } = document.getElementById("legend").getBoundingClientRect();
    const shown = document.getElementById("main-chart").dataset.drawn.split("|")[3];
    return Math.abs(top) < 200 && /^[0-9]+$/.test(shown) && [...document.querySelectorAll("figure.small")]
        .every((one) => {
            const box = one.getBoundingClientRect();
            const isNear = one.checkVisibility() && box.bottom > -100 && box.top < innerHeight + 100;
            return !isNear || one.dataset.drawn?.endsWith(`|${shown}`);
        });
}"""
"""A click's work is done: the page is where it leads, and all charts near there show the one model."""


@pytest.mark.slow
def test_a_thousand_models_cost_no_more_work_than_fifty(browser, tmp_path):
    """Elements, and work for one click, are those of one page of lines, however many models there are."""
    elements, work = {}, {}
    for models in (50, 1_000):
        path = tmp_path / f"{models}.html"
        write_report(filled([(f"model {place:04d}", 12) for place in range(models)]), path)
        with opened(browser, path) as page:
            elements[models] = page.evaluate("document.querySelectorAll('#overview *').length")
            near_is_drawn(page)
            page.evaluate(COUNTED)
            page.locator("#overview-next").click()
            drawn(page, number=1)
            page.locator("#overview-table tbody a").first.click()
            page.wait_for_function("document.querySelectorAll('#legend li').length === 1")
            page.wait_for_function(SHOW_ONE)
            work[models] = page.evaluate("window.counts")
            assert len(lines(page)) == 25
    assert elements[1_000] <= elements[50] + 50  # states that more models have, details of lines
    assert work[1_000]["unzipped"] <= work[50]["unzipped"]
    assert work[1_000]["added"] <= 1.2 * work[50]["added"] + 50


def test_the_days_of_planted_faults_are_within_the_rows():
    made = planted(5)
    assert all(0 < at < DAYS for _, at in made.faults.values())
    times = made.rows["time"].cast("int64").to_numpy()
    assert FIRST <= np.nanmin(times) <= np.nanmax(times) <= FIRST + DAYS * DAY
