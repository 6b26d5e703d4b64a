"""Reading the report: links, small screens, paper, and what the charts leave out or tone down."""

from __future__ import annotations

import re
from urllib.parse import parse_qs

import numpy as np
import pyarrow as pa
import pytest
from rocsteady.pipelines.report.report import write_report
from rocsteady.pipelines.report.report_rows import EventCounters, Tables

from tests.support.browser.chromium import arrived, brought, frames, near_is_drawn, opened
from tests.support.pages.report_tables import (
    DAY,
    NASTY,
    START,
    alert_events,
    curve,
    evaluated_rows,
    events,
    filled,
)

LONG = "a-long-name-" + "x" * 70
RIGHT_TO_LEFT = "\u05de\u05d5\u05d3\u05dc \u05d0"
MODELS = (*(f"model-{place:02}" for place in range(12)), LONG, NASTY, RIGHT_TO_LEFT)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A page with all that a page may have: alerts, notes, dead letters, curves, names of every kind."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    rows = evaluated_rows(models=MODELS, n=1_500)
    labels, scores = events(200, 3)
    curves = [curve(model, 1_500, labels, scores, config=rows["config"][0].as_py()) for model in MODELS[:3]]
    write_report(
        rows,
        path,
        Tables(
            alerts=alert_events({"model": "model-00", "row": 3, "value": 0.5, "message": "words " * 40}),
            counters=EventCounters(
                20_000, 19_000, (("invalid", "score is missing", 900), ("late", "late", 100))
            ),
            curves=pa.concat_tables(curves),
        ),
        notes=["A note of some length, so that more than one line is needed on a phone. " * 3] * 2,
    )
    return path


def chosen(page):
    return page.locator("#legend li .name").all_inner_texts()


def title(page, text):
    page.wait_for_function("(text) => document.getElementById('main-title').textContent === text", arg=text)


# ---- links


def test_the_link_holds_what_is_shown_and_back_and_forward_work(browser, report):
    with opened(browser, report) as page:
        first = chosen(page)
        asked = page.url.partition("#")[2]
        assert parse_qs(asked)["model"] == first
        page.select_option("#measure", "h")
        title(page, "H-measure, all events")
        page.select_option("#slice", label="site=a")
        title(page, "H-measure, site=a")
        page.locator("#legend button").first.click()
        page.wait_for_function(
            "(n) => document.querySelectorAll('#legend li').length === n", arg=len(first) - 1
        )
        page.go_back()
        page.wait_for_function("(n) => document.querySelectorAll('#legend li').length === n", arg=len(first))
        assert chosen(page) == first
        page.go_back()
        title(page, "H-measure, all events")
        assert page.input_value("#slice") == page.evaluate(
            "document.getElementById('slice').options[0].value"
        )
        page.go_back()
        title(page, "AUC, all events")
        page.go_forward()
        title(page, "H-measure, all events")
        assert page.input_value("#measure") == "h"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fragment", "shown", "told"),
    [
        ("#model=model-01&model=gone", ["model-01"], "names 1 model that is not here: “gone”."),
        ("#model=gone&model=lost", [], "names 2 models that are not here: “gone”, “lost”."),
        (
            "#model=model-01&slice=site%3Dz",
            ["model-01"],
            "slice “site=z”, which is not here: all events are shown",
        ),
        ("#model=model-01&measure=gini", ["model-01"], "measure “gini”, which has no chart here."),
    ],
)
def test_a_link_to_what_is_not_here_says_so(browser, report, fragment, shown, told):
    with opened(browser, report, fragment=fragment) as page:
        assert chosen(page) == shown
        assert told in page.inner_text("#missing")
        assert page.url.endswith(fragment)
        page.select_option("#measure", "h")
        page.wait_for_selector("#missing", state="hidden")


def test_a_link_to_a_section_leads_there(browser, report):
    with opened(browser, report, fragment="#latest") as page:
        arrived(page, "#latest", within=59)
        assert page.is_hidden("#missing")


# ---- what the charts leave out or tone down

OPACITY = """() => [...document.querySelectorAll("#main-chart .trace[class*='traceband-']")]
    .map((one) => Number(getComputedStyle(one).opacity))"""


def shows_bands(page, opacities):
    page.wait_for_function(f"(wanted) => String(({OPACITY})()) === String(wanted)", arg=opacities)


@pytest.mark.slow
def test_bands_of_one_or_two_models_are_seen_and_of_more_the_one_that_is_pointed_at(browser, report):
    for models, seen in ((1, [1]), (2, [1, 1]), (3, [0, 0, 0])):
        asked = "&".join(f"model=model-{place:02}" for place in range(models))
        with opened(browser, report, fragment=f"#{asked}") as page:
            shows_bands(page, seen)
            if models < 3:
                assert "The band is the 95% interval." in page.inner_text("#main-notes")
                continue
            assert "shows its 95% interval as a band" in page.inner_text("#main-notes")
            page.hover("#legend li >> nth=1")
            shows_bands(page, [0, 1, 0])
            page.focus("#legend li >> nth=2 >> button")
            page.mouse.move(0, 0)
            page.focus("#legend li >> nth=0 >> button")
            shows_bands(page, [1, 0, 0])


def thin_tail(**columns):
    rarer = np.array([90.0, 90, 90, 90, 90, 90, 90, 90, 40, 30])
    return filled([("m", 10)], positives=rarer, negatives=np.full(10, 400.0), **columns)


@pytest.mark.slow
def test_windows_with_few_labels_are_grey(browser, tmp_path):
    grey = """() => document.getElementById("main-chart").data.filter((one) => one.kind === "grey")
        .map((one) => Array.from(one.x))"""
    write_report(thin_tail(), tmp_path / "r.html")
    with opened(browser, tmp_path / "r.html") as page:
        ((*_, before, one, other),) = page.evaluate(grey)
        assert [before, one, other] == [(START + hour * DAY / 24) / 1e3 for hour in (8, 9, 10)]
        assert "Grey: windows with less than half of the usual labels" in page.inner_text("#main-notes")
    write_report(filled([("m", 10)], positives=np.full(10, 90.0)), tmp_path / "r.html")
    with opened(browser, tmp_path / "r.html") as page:
        assert page.evaluate(grey) == []
        assert "Grey" not in page.inner_text("#main-notes")


def test_a_pane_that_is_half_filled_at_its_end_is_grey_as_a_whole(browser, tmp_path):
    starts = START + np.repeat([0, 1, 2], 4) * DAY
    table = filled(
        [("m", 12)], row=np.tile([0, 1, 2, 3], 3), seq=np.tile([1, 2, 3, 4], 3) * 100,
        positives=np.array([20.0, 40, 60, 80, 20, 40, 60, 80, 5, 10, 20, 30]), negatives=np.full(12, 400.0),
        pane_start=pa.array(starts, pa.timestamp("us", "UTC")),
        pane_end=pa.array(starts + DAY, pa.timestamp("us", "UTC")),
    )  # fmt: skip
    write_report(table, tmp_path / "r.html")
    with opened(browser, tmp_path / "r.html") as page:
        (rows,) = page.evaluate(
            """() => document.getElementById("main-chart").data.filter((one) => one.kind === "grey")
                .map((one) => Array.from(one.rows).filter((row) => row >= 0))"""
        )
        assert rows == [8, 9, 10, 11]


def test_the_last_known_value_is_told_with_its_day(browser, tmp_path):
    auc = np.append(np.full(7, 0.8123), [np.nan] * 3)
    write_report(filled([("m", 10)], auc=auc), tmp_path / "r.html")
    with opened(browser, tmp_path / "r.html") as page:
        assert page.inner_text("#legend .value") == "0.812 (1 Jan; null since)"
        assert "m 0.812 (1 Jan; null since) (from 0.812 to 0.812" in page.text_content("#main-caption")
        assert "0.812 [0.792, 0.832] (1 Jan; null since)" in page.inner_text("#latest-table tbody")
    with opened(browser, tmp_path / "r.html", ready=False, java_script_enabled=False) as page:
        assert "0.812 [0.792, 0.832] (1 Jan; null since)" in page.inner_text("#latest-table tbody")


def test_measures_that_are_the_same_in_all_chosen_rows_are_named_and_not_drawn(browser, tmp_path):
    kappa = np.append(np.full(5, 0.25), np.arange(5) / 10)
    table = filled(
        [("a", 5), ("b", 5)], kappa=kappa, h=np.full(10, 0.5), f1=np.append(np.full(9, np.nan), 0.75)
    )
    write_report(table, tmp_path / "r.html")
    with opened(browser, tmp_path / "r.html", fragment="#model=a") as page:
        told = page.inner_text("#constant-measures")
        assert "so not drawn: H-measure 0.5000; F1 null; Kappa 0.2500." in told
        for measure, there in (("h", False), ("kappa", False), ("f1", False), ("auc", True)):
            assert page.locator(f'figure[data-measure="{measure}"]').is_visible() == there
        page.evaluate("document.getElementById('pick').open = true")
        page.locator("#model-list input").nth(1).check()
        page.wait_for_function("!document.getElementById('constant-measures').textContent.includes('Kappa')")
        told = page.inner_text("#constant-measures")
        assert "so not drawn: H-measure 0.5000; F1 0.7500 (null in 9 of 10 rows)." in told
        assert page.locator('figure[data-measure="kappa"]').is_visible()
        assert not page.locator('figure[data-measure="tp"]').is_visible()  # counts are folded
        page.click("#multiples summary")
        page.wait_for_selector('figure[data-measure="tp"][data-drawn]')


# ---- a phone

TOO_SMALL = """() => [...document.querySelectorAll("a, button, select, summary, input")].filter((one) => {
    const target = one.type === "checkbox" ? one.closest("label") : one;
    const box = target.getBoundingClientRect();
    return one.checkVisibility() && !one.closest(".skip, footer") && box.height && box.height < 40;
}).map((one) => one.outerHTML.slice(0, 100))"""

TOO_WIDE = """(width) => [...document.querySelectorAll("body *")].filter((one) => {
    const box = one.getBoundingClientRect();
    if (one.closest(".scroll, .unseen, nav, .counts, .skip, svg")) return false;
    if (!one.checkVisibility() || !box.width) return false;
    return box.left < -1 || box.right > width + 1;
}).map((one) => one.outerHTML.slice(0, 100))"""


def test_on_a_phone_the_content_begins_on_the_first_screen_and_nothing_sticks_out(browser, report):
    with opened(browser, report, width=360, height=640, has_touch=True, is_mobile=True) as page:
        assert page.evaluate("document.getElementById('main').offsetTop") < 300
        for id_ in ("alerts", "slices", "changes", "measures", "curves", "latest", "meanings"):
            brought(page, f"#{id_}")
        page.wait_for_selector("#roc-chart[data-drawn]")
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        frames(page)
        near_is_drawn(page)
        assert page.evaluate("document.documentElement.scrollWidth") == 360
        assert page.evaluate(TOO_WIDE, 360) == []
        assert page.evaluate(TOO_SMALL) == []


# ---- paper

FITS = "(width) => document.querySelector('#main-chart .main-svg').clientWidth === width"


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_paper_shows_all_charts_in_light_colours_and_no_controls(browser, report, scheme):
    with opened(browser, report, color_scheme=scheme) as page:
        on_screen = page.evaluate("document.getElementById('main-chart').clientWidth")
        page.wait_for_function(FITS, arg=on_screen)
        page.emulate_media(media="print", color_scheme=scheme)
        page.wait_for_selector('figure[data-measure="kappa"][data-drawn]')
        page.wait_for_selector("#roc-chart[data-drawn]")
        page.wait_for_selector("#slices-chart[data-drawn]")
        page.wait_for_function(
            """() => [...document.querySelectorAll(".plot")].filter((one) => one.checkVisibility())
                .every((one) => one.dataset.medium === "paper")"""
        )
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        colour = "document.getElementById('main-chart').data.find((one) => one.kind === 'line').line.color"
        assert page.evaluate(colour) == "#0072B2"
        sizes = page.evaluate(
            """() => [...document.querySelectorAll(".plot")].filter((one) => one.checkVisibility())
                .map((one) => {
                const drawn = one.querySelector(".main-svg");
                return [one.clientWidth, one.clientHeight, drawn?.clientWidth, drawn?.clientHeight];
            })"""
        )
        assert len(sizes) > 12
        for width, height, drawn_width, drawn_height in sizes:
            assert (drawn_width, drawn_height) == (width, height)
            assert 250 <= width <= 680
            assert height <= 900  # of a page
        for control in (
            "#controls",
            "nav",
            "#theme",
            "#zoom",
            "#latest-controls",
            "#alerts-controls",
            "#moment",
        ):
            assert not page.locator(control).first.is_visible(), control
        assert (
            page.evaluate("getComputedStyle(document.querySelector('figure.chart')).breakInside") == "avoid"
        )
        text = page.inner_text("body")
        assert "A note of some length" in text
        assert "score is missing" in text
        assert re.search(r"^Details$", text, re.MULTILINE) is None
        page.emulate_media(media="screen", color_scheme=scheme)
        page.wait_for_function(FITS, arg=on_screen)
        expected = "rgb(20, 22, 26)" if scheme == "dark" else "rgb(255, 255, 255)"
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == expected
        assert not page.locator(".reasons li").first.is_visible()
