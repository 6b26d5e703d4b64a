"""The report in a browser: what is drawn are the rows, every control works by keyboard too, nothing errs."""

from __future__ import annotations

import re
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from rocsteady.core.rows.arrow import ROW_SCHEMA
from rocsteady.pipelines.report.data import DRAWN, MEANINGS
from rocsteady.pipelines.report.report import write_report
from rocsteady.pipelines.report.report_rows import Tables
from rocsteady.pipelines.words import DASH, with_interval
from rocsteady.transforms.sinks.kinds import CURVE_SCHEMA

from tests.support.browser.chromium import arrived, brought, launched, near_is_drawn, opened
from tests.support.pages.report_tables import NASTY, START, curve, evaluated_rows, events, filled

HOUR = 3_600_000_000

TRACES = """(id) => document.getElementById(id).data.map((trace) => ({
    kind: trace.kind, model: trace.model, x: Array.from(trace.x), y: Array.from(trace.y),
    text: trace.text ? Array.from(trace.text) : [] }))"""

SMALL = """(measure) => document.querySelector(`figure[data-measure="${measure}"] .plot`).data
    .filter((trace) => trace.kind === "line")
    .map((trace) => ({ x: Array.from(trace.x), y: Array.from(trace.y) }))"""


@pytest.fixture(scope="session")
def rows():
    return evaluated_rows()


def curves_of(rows):
    parts = []
    for number, model in enumerate(sorted(set(rows["model"].to_pylist()))):
        for seq in (500, 1_000, 1_500):
            labels, scores = events(200, number * 10 + seq)
            time = datetime.fromtimestamp(START / 1e6, UTC) + timedelta(hours=seq - 1)
            parts.append(curve(model, seq, labels, scores, time=time, config=rows["config"][0].as_py()))
    return pa.concat_tables(parts)


@pytest.fixture(scope="session")
def report(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(rows, path, Tables(curves=curves_of(rows)), title="A report")
    return path


def drawn(page, *, measure=None, axis=None, slice_name=None, models=None):
    """Wait until the large chart shows what was asked for; return its traces."""
    wanted = [measure, None, axis, models]
    page.wait_for_function(
        """(wanted) => {
            const is = (document.getElementById("main-chart").dataset.drawn || "").split("|");
            return wanted.every((part, place) => part === null || is[place] === part);
        }""",
        arg=wanted,
    )
    if slice_name is not None:
        page.wait_for_function(
            "(name) => document.getElementById('main-title').textContent.endsWith(name)", arg=slice_name
        )
        page.wait_for_function(
            """document.getElementById("main-chart").dataset.drawn.split("|")[1]
                === document.getElementById("slice").value"""
        )
    return page.evaluate(TRACES, "main-chart")


def of_series(rows, model, slice_name=""):
    part = rows.filter(pa.compute.equal(rows["model"], model))
    return part.filter(pa.compute.equal(part["slice"], slice_name)).sort_by("row")


def values(part, name, axis="time"):
    """What must be drawn: milliseconds or event ordinals, and values, None where there is none to draw."""
    y = [value if value is not None and np.isfinite(value) else None for value in part[name].to_pylist()]
    if axis == "seq":
        return part["seq"].to_pylist(), y
    return [micros / 1000 for micros in part["time"].cast(pa.int64()).to_pylist()], y


def lines(traces):
    return [trace for trace in traces if trace["kind"] == "line"]


PANELS = """() => { const chart = document.getElementById("main-chart"); return {
    axes: chart.data.map((trace) => [trace.kind, trace.model, trace.yaxis || "y"]),
    drift: chart.data.filter((trace) => trace.kind === "drift")
        .map((trace) => [trace.model, Array.from(trace.x), trace.text[0]]),
    domains: ["yaxis", "yaxis3"].map((name) => chart.layout[name] && chart.layout[name].domain),
    ranges: ["yaxis", "yaxis3"].map((name) => chart._fullLayout[name] && chart._fullLayout[name].range),
    type: chart.layout.yaxis.type,
    named: (chart.layout.annotations || []).map((one) => one.text) } }"""


def two_windows():
    """Rows of two models in two windows each; one of these changes its size and says drift."""
    drift = np.array([False, True, False, False, True, False])
    sizes = np.array([100, 5, 105, 205, 7, 107])
    parts = [
        filled(
            [("a", 6), ("b", 6)],
            seed,
            config=pa.array([config] * 12),
            drift=said,
            window_events=np.tile(held, 2),
        )
        for seed, config, said, held in (
            (0, "s", pa.nulls(12, pa.bool_()), np.full(6, 100)),
            (1, "v", pa.array(np.append(drift, np.zeros(6, bool))), sizes),
        )
    ]
    return pa.concat_tables(parts), {"s": {"window": "last:100"}, "v": {"window": "adaptive"}}


def test_two_windows_of_a_model_have_a_panel_each_on_one_scale_with_its_name(browser, tmp_path):
    rows, settings = two_windows()
    write_report(rows, tmp_path / "r.html", settings=settings)
    models = ["a (adaptive)", "a (last:100)", "b (adaptive)", "b (last:100)"]
    with opened(browser, tmp_path / "r.html") as page:
        for config, model in zip("vsvs", range(4), strict=True):
            part = rows.filter(pa.compute.equal(rows["config"], config))
            (trace,) = [one for one in lines(drawn(page, measure="auc")) if one["model"] == model]
            assert (trace["x"], trace["y"]) == values(of_series(part, "ab"[model // 2]), "auc")
        found = page.evaluate(PANELS)
        assert found["named"] == ["last:100", "adaptive"]
        for kind, model, axis in found["axes"]:
            over = kind in ("null", "drift")
            assert axis == [("y", "y3"), ("y2", "y4")][over][models[model].endswith("(adaptive)")]
        (above, below), (one, other) = found["domains"], found["ranges"]
        assert below[1] < above[0]
        assert one == other
        colours, dashes = (
            page.eval_on_selector_all("#legend line", f"all => all.map((one) => one.getAttribute('{name}'))")
            for name in ("stroke", "stroke-dasharray")
        )
        assert colours[0] == colours[1] != colours[2] == colours[3]
        assert dashes[0] == dashes[2] != dashes[1] == dashes[3]
        for model in ("a (adaptive)", "b (adaptive)"):
            page.get_by_label(model, exact=True).uncheck()
        drawn(page, models="1,3")
        alone = page.evaluate(PANELS)
        assert alone["named"] == []
        assert {axis for _, _, axis in alone["axes"]} == {"y"}


def test_rows_before_which_a_window_shrank_are_marked_and_counted(browser, tmp_path):
    rows, settings = two_windows()
    write_report(rows, tmp_path / "r.html", settings=settings)
    with opened(browser, tmp_path / "r.html") as page:
        drawn(page, measure="auc")
        ((model, x, text),) = page.evaluate(PANELS)["drift"]
        assert (model, x) == (0, [(START + hours * HOUR) / 1000 for hours in (2, 5)])
        assert text.endswith("drift: the window shrank since the row before")
        told = "an adaptive window shrank (drift): a (adaptive) 2 of 6."
        assert told in page.inner_text("#main-notes")
        page.select_option("#measure", "window_events")
        drawn(page, measure="window_events")
        assert page.evaluate(PANELS)["type"] == "log"  # 5 to 205


# ---- the series are the rows


def test_every_measure_is_drawn_as_the_rows_have_it(browser, report, rows):
    models = sorted(set(rows["model"].to_pylist()))
    some = [name for name in DRAWN if rows[name].null_count < len(rows)]
    with opened(browser, report) as page:
        options = page.eval_on_selector_all("#measure option", "all => all.map((one) => one.value)")
        assert sorted(options) == sorted(some)
        for axis in ("time", "seq"):
            page.select_option("#axis", axis)
            for measure in options:
                page.select_option("#measure", measure)
                traces = lines(drawn(page, measure=measure, axis=axis))
                assert len(traces) == len(models)
                for trace, model in zip(traces, models, strict=True):
                    x, y = values(of_series(rows, model), measure, axis)
                    assert trace["x"] == x, measure
                    assert trace["y"] == y, measure


@pytest.mark.slow
def test_small_charts_are_the_rows_too(browser, report, rows):
    models = sorted(set(rows["model"].to_pylist()))
    with opened(browser, report) as page:
        page.evaluate("document.querySelector('#multiples details').open = true")
        for measure in page.eval_on_selector_all(
            "figure.small:not([hidden])", "all => all.map((one) => one.dataset.measure)"
        ):
            page.locator(f'figure[data-measure="{measure}"]').scroll_into_view_if_needed()
            page.wait_for_selector(f'figure[data-measure="{measure}"][data-drawn]')
            for trace, model in zip(page.evaluate(SMALL, measure), models, strict=True):
                assert (trace["x"], trace["y"]) == values(of_series(rows, model), measure), measure


@pytest.mark.slow
def test_small_charts_follow_what_is_chosen(browser, report, rows):
    kept = sorted(set(rows["model"].to_pylist()))[1:]
    with opened(browser, report) as page:
        for measure in ("h", "kappa"):
            page.locator(f'figure[data-measure="{measure}"]').scroll_into_view_if_needed()
            page.wait_for_selector(f'figure[data-measure="{measure}"][data-drawn$="|0,1,2"]')
        page.locator("#model-list input").first.uncheck()
        page.select_option("#slice", label="site=c")
        for measure in ("h", "kappa"):
            page.locator(f'figure[data-measure="{measure}"]').scroll_into_view_if_needed()
            page.wait_for_selector(f'figure[data-measure="{measure}"][data-drawn$="|3|time|1,2"]')
            for trace, model in zip(page.evaluate(SMALL, measure), kept, strict=True):
                assert (trace["x"], trace["y"]) == values(of_series(rows, model, "site=c"), measure), measure


def test_the_band_is_the_interval(browser, report, rows):
    with opened(browser, report) as page:
        bands = [trace for trace in drawn(page, measure="auc") if trace["kind"] == "band"]
        assert len(bands) == 3
        for band, model in zip(bands, sorted(set(rows["model"].to_pylist())), strict=True):
            lows, highs = [], []
            xs, ys = [[]], [[]]
            for x, y in zip(band["x"], band["y"], strict=True):
                if x is None:
                    xs.append([])
                    ys.append([])
                else:
                    xs[-1].append(x)
                    ys[-1].append(y)
            for x, y in zip(xs, ys, strict=True):
                half = len(x) // 2
                assert x[:half] == x[half:][::-1]
                lows += zip(x[:half], y[:half], strict=True)
                highs += zip(x[half:][::-1], y[half:][::-1], strict=True)
            part = of_series(rows, model)
            for ours, name in ((lows, "auc_low"), (highs, "auc_high")):
                x, y = values(part, name)
                there = [(at, value) for at, value in zip(x, y, strict=True) if value is not None]
                assert ours == there


def test_where_a_measure_is_null_there_is_a_gap_with_the_reason(browser, report, rows):
    part = of_series(rows, NASTY)
    gone = [at for at, value in zip(*values(part, "auc"), strict=True) if value is None]
    assert gone
    with opened(browser, report) as page:
        traces = drawn(page, measure="auc")
        marks = [trace for trace in traces if trace["kind"] == "null"]
        assert [at for trace in marks for at in trace["x"]] == gone
        assert all("AUC is null: one class in window" in text for trace in marks for text in trace["text"])
        assert not page.evaluate(
            "document.getElementById('main-chart').data.some((trace) => trace.connectgaps)"
        )


def test_a_row_alone_between_nulls_is_seen_with_its_interval(browser, tmp_path):
    auc = np.array([0.7, np.nan, 0.8, np.nan, np.nan, 0.6, 0.65, np.nan, 0.9])
    write_report(filled([("m", 9)], auc=auc), tmp_path / "r.html")
    with opened(browser, tmp_path / "r.html") as page:
        (alone,) = (trace for trace in drawn(page, measure="auc") if trace["kind"] == "alone")
        assert alone["y"] == [0.7, 0.8, 0.9]
        spans = page.evaluate(
            """document.getElementById("main-chart").data.filter((one) => one.kind === "alone")
                .map((one) => one.error_y.array)"""
        )
        np.testing.assert_allclose(spans, [[0.02] * 3], atol=1e-12)


def test_models_of_one_row_at_one_place_are_all_seen(browser, tmp_path):
    write_report(filled([("a", 1), ("b", 1), ("c", 1)], auc=np.full(3, 0.8)), tmp_path / "r.html")
    with opened(browser, tmp_path / "r.html") as page:
        drawn(page, measure="auc")
        marks = page.evaluate(
            """document.getElementById("main-chart").data.filter((one) => one.kind === "alone")
                .map((one) => [one.marker.symbol, one.marker.size])"""
        )
        assert len({symbol for symbol, _ in marks}) == len({size for _, size in marks}) == 3
        assert all(symbol.endswith("-open") for symbol, _ in marks)
        told = page.text_content("#main-caption")
        assert "a 0.800 (one row only: fewer events than a row's stride)" in told


@pytest.mark.slow
def test_the_caption_is_of_full_windows_and_the_rest_is_fainter(browser, tmp_path):
    auc = np.array([0.1, 0.99, 0.2, 0.3, 0.7, 0.75, 0.72, 0.8, 0.6])
    write_report(filled([("m", 9)], auc=auc), tmp_path / "r.html")  # the fifth window is full, with 500
    with opened(browser, tmp_path / "r.html") as page:
        drawn(page, measure="auc")
        told = page.inner_text("#main-caption")
        assert "m 0.600 at the end (from 0.600 to 0.800 over full windows)" in told
        assert "Fainter: before the first full window." in page.inner_text("#main-notes")
        shapes = page.evaluate("document.getElementById('main-chart').layout.shapes")
        (shape,) = [one for one in shapes if one.get("name") != "beginning"]
        assert [shape["x0"], shape["x1"]] == [(START + hours * HOUR) / 1000 for hours in (1, 5)]
    growing = filled([("m", 9)], auc=auc, window_events=np.arange(1, 10) * 100)
    write_report(growing, tmp_path / "r.html")
    with opened(browser, tmp_path / "r.html") as page:
        drawn(page, measure="auc")
        assert "m 0.600 at the end (from 0.100 to 0.990)." in page.inner_text("#main-caption")
        assert not page.evaluate("document.getElementById('main-chart').layout.shapes")


@pytest.mark.slow
def test_every_small_chart_has_two_ticks_at_least(browser, report, tmp_path):
    n = 6
    bit = np.array([0.0, 0, 0, 1, 0, 0])
    flat = filled(
        [("m", n)], auc=0.5 + 1e-9 * bit, h=1e-12 * bit, ks=1 - 1e-5 * bit, tp=7 + bit,
        fp=1e-3 * bit, aum=12_345.6 + 1e-3 * bit, kappa=-0.25 - 1e-7 * bit, tn=1 + bit,
    )  # fmt: skip
    write_report(flat, tmp_path / "flat.html")
    for path in (tmp_path / "flat.html", report):
        with opened(browser, path) as page:
            page.evaluate("document.querySelector('#multiples details').open = true")
            for figure in page.locator("figure.small:not([hidden])").all():
                figure.scroll_into_view_if_needed()
                measure = figure.get_attribute("data-measure")
                page.wait_for_selector(f'figure[data-measure="{measure}"][data-drawn]')
                ticks = figure.locator(".ytick").all_text_contents()
                assert len(set(ticks)) >= 2, (measure, ticks)


def test_a_measure_null_throughout_has_no_chart_and_is_listed(browser, tmp_path):
    table = filled([("m", 6)], precision=pa.nulls(6, pa.float64()), brier=pa.nulls(6, pa.float64()))
    write_report(table, tmp_path / "r.html")
    with opened(browser, tmp_path / "r.html") as page:
        options = page.eval_on_selector_all("#measure option", "all => all.map((one) => one.value)")
        assert "precision" not in options
        assert page.locator('figure[data-measure="precision"]').count() == 0
        assert "Brier score, Precision (not asked for)" in page.inner_text("#null-measures")


@pytest.mark.slow
def test_a_long_series_is_thinned_and_no_extreme_is_lost(browser, tmp_path):
    n = 30_000
    rng = np.random.default_rng(4)
    auc = 0.7 + 0.01 * rng.standard_normal(n).cumsum() / 30
    auc[12_345], auc[23_456] = 0.01, 0.99
    auc[5_000:5_010] = np.nan
    table = filled([("m", n)], auc=auc)
    write_report(table, tmp_path / "r.html")
    with opened(browser, tmp_path / "r.html") as page:
        traces = drawn(page, measure="auc")
        (line,) = lines(traces)
        x, y = values(table, "auc")
        all_points = dict(zip(x, y, strict=True))
        assert len(line["x"]) < n / 3
        assert line["x"] == sorted(line["x"])
        assert all(all_points[at] == value for at, value in zip(line["x"], line["y"], strict=True))
        assert (line["x"][0], line["x"][-1]) == (x[0], x[-1])
        assert {0.01, 0.99, None} <= set(line["y"])
        width = page.evaluate("document.getElementById('main-chart').clientWidth")
        bucket = ((np.array(x) - x[0]) / (x[-1] - x[0]) * width).astype(int)
        ours = ((np.array(line["x"]) - x[0]) / (x[-1] - x[0]) * width).astype(int)
        drawn_values = np.array([np.nan if value is None else value for value in line["y"]])
        for at in np.unique(bucket[np.isfinite(auc)]):
            inside, shown = auc[bucket == at], drawn_values[ours == at]
            assert (np.nanmin(shown), np.nanmax(shown)) == (np.nanmin(inside), np.nanmax(inside))
        assert "of 30,000 rows are drawn, extremes kept" in page.inner_text("#main-notes")
        for _ in range(4):
            page.click('[data-zoom="in"]')
        page.wait_for_function(
            "document.getElementById('main-chart').data.find((one) => one.kind === 'line').x.length < 3000"
        )
        (line,) = lines(page.evaluate(TRACES, "main-chart"))
        inside = [at for at in x if line["x"][0] <= at <= line["x"][-1]]
        assert line["x"] == inside  # zoomed in, all rows are there
        low, high = page.evaluate(
            "document.getElementById('main-chart').layout.xaxis.range.map((end) => Date.parse(end))"
        )
        assert line["x"][0] <= low
        assert high <= line["x"][-1]


def test_panes_are_not_joined_by_a_line(browser, tmp_path):
    starts = np.repeat([0, 1, 2], 4) * 10 * HOUR + START
    table = filled(
        [("m", 12)],
        seq=np.tile([1, 2, 3, 4], 3),
        row=np.tile([0, 1, 2, 3], 3),
        pane_start=pa.array(starts, pa.timestamp("us", "UTC")),
        pane_end=pa.array(starts + 10 * HOUR, pa.timestamp("us", "UTC")),
    )
    write_report(table, tmp_path / "r.html")
    with opened(browser, tmp_path / "r.html") as page:
        page.select_option("#axis", "seq")
        (line,) = lines(drawn(page, measure="auc", axis="seq"))
        assert line["x"] == [1, 2, 3, 4, None, 1, 2, 3, 4, None, 1, 2, 3, 4]


# ---- choosing


@pytest.mark.slow
def test_models_slices_and_measures_are_chosen_and_the_address_keeps_them(browser, report, rows):
    with opened(browser, report) as page:
        assert page.is_hidden("#model-search")  # of three models, none need be searched for
        assert page.is_hidden("#slice-search")
        for box in page.locator("#model-list input").all()[:2]:
            box.uncheck()
        page.select_option("#slice", label="site=b<i>")
        page.select_option("#measure", "kappa_m")
        page.select_option("#axis", "seq")
        traces = lines(drawn(page, measure="kappa_m", axis="seq", slice_name="site=b<i>", models="2"))
        kept = sorted(set(rows["model"].to_pylist()))[2]
        assert [(trace["x"], trace["y"]) for trace in traces] == [
            values(of_series(rows, kept, "site=b<i>"), "kappa_m", "seq")
        ]
        assert kept in page.inner_text("#legend")
        assert page.inner_text("#live") != ""
        fragment = "#" + page.url.partition("#")[2]
    with opened(browser, report, fragment=fragment) as page:
        again = lines(drawn(page, measure="kappa_m", axis="seq", slice_name="site=b<i>", models="2"))
        assert again == traces
        page.click("nav a >> nth=5")
        assert page.url.endswith(fragment)  # moving about the page leaves the choices alone


@pytest.mark.slow
def test_best_and_worst_follows_the_chosen_models(browser, report):
    cards = "all => all.map((one) => [...one.querySelectorAll('h3, p')].map((part) => part.textContent))"
    with opened(browser, report, ready=False, java_script_enabled=False) as page:
        written = page.eval_on_selector_all("#change-list .card", cards)
    with opened(browser, report) as page:
        page.wait_for_function("document.querySelectorAll('#change-list .card').length === 3")
        assert page.eval_on_selector_all("#change-list .card", cards) == written
        good = page.locator("#change-list .card", has=page.locator("h3", has_text=re.compile("^good")))
        assert "AUC was lowest" not in good.inner_text()
        good.locator("summary").click()
        assert "AUC was lowest" in good.inner_text()
        page.locator("#model-list label", has_text=re.compile("^good$")).click()
        page.wait_for_function("document.querySelectorAll('#change-list .card').length === 2")
        assert "good" not in page.locator("#change-list h3").all_inner_texts()


def test_the_slices_chart_shows_the_latest_values(browser, report, rows):
    with opened(browser, report) as page:
        page.locator("#slices").scroll_into_view_if_needed()
        page.wait_for_selector("#slices-chart[data-drawn]")
        traces = page.evaluate(
            """() => document.getElementById("slices-chart").data.map((one) => [Array.from(one.x),
                Array.from(one.error_x.array), Array.from(one.error_x.arrayminus)])"""
        )
        names = sorted(set(rows["slice"].to_pylist()))
        for (x, above, below), model in zip(traces, sorted(set(rows["model"].to_pylist())), strict=True):
            last = [of_series(rows, model, name).to_pylist()[-1] for name in names]
            last = [row for row in last if row["auc"] is not None]
            assert x == [row["auc"] for row in last]
            np.testing.assert_allclose(above, [row["auc_high"] - row["auc"] for row in last], atol=1e-15)
            np.testing.assert_allclose(below, [row["auc"] - row["auc_low"] for row in last], atol=1e-15)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("width", "targets"), [(1280, ["#meanings"]), (390, ["#slices", "#curves", "#latest", "#meanings"])]
)
def test_a_link_at_the_top_leads_to_its_section_at_once(width, targets, browser, report):
    for target in targets:
        with opened(browser, report, width=width) as page:
            page.click(f'nav a[href="{target}"]')
            arrived(page, target, within=40)


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 390])
def test_charts_that_are_drawn_late_move_nothing(width, browser, report):
    tops = "() => [...document.querySelectorAll('section')].map((one) => one.offsetTop)"
    with opened(browser, report, width=width) as page:
        near_is_drawn(page)
        before = page.evaluate(tops)
        for id_ in ("measures", "slices", "curves", "latest"):
            brought(page, f"#{id_}")
        page.wait_for_selector("#roc-chart[data-drawn]")
        page.wait_for_selector("#slices-chart[data-drawn]")
        np.testing.assert_allclose(page.evaluate(tops), before, atol=40)


def test_the_colours_and_the_slice_are_told_at_every_chart(browser, report):
    with opened(browser, report) as page:
        page.locator("#model-list label", has_text=re.compile("^good$")).click()
        page.select_option("#slice", label="site=c")
        chosen = page.locator("#model-list label:has(:checked)").all_inner_texts()
        assert len(chosen) == 2
        for section in ("measures", "slices", "curves"):
            keys = page.locator(f"#{section} .keys li")
            if section == "curves":  # there are none of this slice
                assert not page.is_visible("#curves-keys")
                page.select_option("#slice", label="all events")
                page.wait_for_selector("#curves-keys", state="visible")
                assert page.inner_text("#curves-title").endswith("all events")
            assert keys.all_inner_texts() == chosen
            assert page.locator(f"#{section} .keys button").count() == 0
            colours = page.eval_on_selector_all(
                f"#{section} .keys line, #legend line", "all => all.map((one) => one.getAttribute('stroke'))"
            )
            assert colours[:2] == colours[2:]
            if section == "measures":
                assert page.inner_text("#measures-title").endswith("site=c")


def test_where_all_is_on_one_page_there_is_nothing_to_turn(browser, report):
    with opened(browser, report) as page:
        page.locator("#slices").scroll_into_view_if_needed()
        assert page.inner_text("#slices-page") == "3 slices and all events"
        assert page.inner_text("#latest-page") == "3 rows"
        for id_ in ("slices-back", "slices-next", "latest-back", "latest-next"):
            assert page.is_hidden(f"#{id_}")


# ---- curves


def test_curves_are_their_table(browser, report, rows):
    table = curves_of(rows)
    models = sorted(set(rows["model"].to_pylist()))
    with opened(browser, report) as page:
        page.locator("#curves").scroll_into_view_if_needed()
        for place, seq in ((2, 1_500), (1, 1_000), (0, 500)):
            page.wait_for_selector(f'#roc-chart[data-drawn="{place}"]')
            traces = page.evaluate(TRACES, "roc-chart")
            calibration = page.evaluate(
                """() => document.getElementById("calibration-chart").data
                    .filter((one) => one.kind === "calibration")
                    .map((one) => [Array.from(one.x), Array.from(one.y), Array.from(one.masses)])"""
            )
            for number, model in enumerate(models):
                part = table.filter(pa.compute.equal(table["model"], model))
                points = part.filter(pa.compute.equal(part["seq"], seq)).sort_by("point").to_pylist()
                rates = [(one["fp"] / points[-1]["fp"], one["tp"] / points[-1]["tp"]) for one in points]
                roc = [trace for trace in traces if trace["kind"] == "roc"][number]
                hull = [trace for trace in traces if trace["kind"] == "hull"][number]
                assert list(zip(roc["x"], roc["y"], strict=True)) == rates
                on_hull = [rate for one, rate in zip(points, rates, strict=True) if one["on_hull"]]
                assert list(zip(hull["x"], hull["y"], strict=True)) == on_hull
                edges, before = [], points[0]
                for one in points[1:]:
                    if one["on_hull"]:
                        up, right = one["tp"] - before["tp"], one["fp"] - before["fp"]
                        edges.append((one["block_score"], up / (up + right), up + right))
                        before = one
                assert list(zip(*calibration[number], strict=True)) == edges[::-1]
            page.focus("#moment")
            page.keyboard.press("ArrowLeft")
        assert "2013-01-21" in page.inner_text("#moment-text")


def test_a_curve_of_many_points_keeps_its_hull_and_strays_by_no_more_than_a_pixel(browser, tmp_path):
    rng = np.random.default_rng(8)
    labels = rng.random(9_000) < np.linspace(0.9, 0.05, 9_000)
    tp, fp = (np.append(0, np.cumsum(side)).astype(float) for side in (labels, ~labels))
    n = len(tp)
    corners = rng.random(n) < 0.01
    corners[[0, -1]] = True
    columns = {
        **{name: [None] * n for name in ("class", "pane_start", "pane_end", "time", "block_score")},
        "model": ["m"] * n, "slice": [""] * n, "seq": [9_000] * n, "window_events": [9_000] * n,
        "positives": [tp[-1]] * n, "negatives": [fp[-1]] * n, "point": range(n),
        "config": ["0123456789ab"] * n,
        "threshold": np.append(np.nan, np.linspace(1, 0, n - 1)), "tp": tp, "fp": fp, "on_hull": corners,
    }  # fmt: skip
    table = pa.table([pa.array(columns[one.name], one.type) for one in CURVE_SCHEMA], schema=CURVE_SCHEMA)
    write_report(filled([("m", 3)]), tmp_path / "r.html", Tables(curves=table))
    with opened(browser, tmp_path / "r.html") as page:
        page.locator("#curves").scroll_into_view_if_needed()
        page.wait_for_selector("#roc-chart[data-drawn]")
        traces = {trace["kind"]: trace for trace in page.evaluate(TRACES, "roc-chart")}
        x, y = np.array(traces["roc"]["x"]), np.array(traces["roc"]["y"])
        assert len(x) < n / 2
        everywhere = set(zip((fp / fp[-1]).tolist(), (tp / tp[-1]).tolist(), strict=True))
        assert set(zip(x.tolist(), y.tolist(), strict=True)) <= everywhere
        hull = list(zip((fp / fp[-1])[corners].tolist(), (tp / tp[-1])[corners].tolist(), strict=True))
        assert list(zip(traces["hull"]["x"], traces["hull"]["y"], strict=True)) == hull
        assert set(hull) <= set(zip(x.tolist(), y.tolist(), strict=True))
        pixel = 1 / page.evaluate("document.getElementById('roc-chart').clientWidth")
        position = np.interp((fp + tp) / (fp + tp)[-1], (x * fp[-1] + y * tp[-1]) / (fp + tp)[-1], x)
        assert np.abs(position - fp / fp[-1]).max() <= pixel


def test_without_curves_the_page_says_how_to_keep_them(browser, rows, tmp_path):
    write_report(rows, tmp_path / "r.html")
    with opened(browser, tmp_path / "r.html") as page:
        assert "rocsteady evaluate ... --curves FILE" in page.inner_text("#curves")
        assert page.is_hidden("#curves-body")


# ---- the table


def column(page, place):
    return page.eval_on_selector_all(
        "#latest-table tbody tr", "(all, place) => all.map((row) => row.children[place].textContent)", place
    )


def test_the_table_sorts_by_click_and_by_keyboard(browser, report, rows):
    with opened(browser, report) as page:
        page.select_option("#latest-scope", "all")
        page.wait_for_function(
            "document.getElementById('latest-table').dataset.drawn.split('|')[4] === 'all'"
        )
        titles = [title.strip() for title in page.locator("#latest-table thead th").all_inner_texts()]
        place = titles.index("AUC [95% interval]")
        last = {}
        for row in rows.sort_by("row").to_pylist():
            last[row["model"], row["slice"]] = tuple(row[name] for name in ("auc", "auc_low", "auc_high"))
        known = [
            with_interval(*(np.nan if end is None else end for end in ends))
            for ends in sorted(ends for ends in last.values() if ends[0] is not None)
        ]
        nulls = [DASH] * (len(last) - len(known))
        head = page.locator("#latest-table thead th").nth(place)
        head.locator("button").click()
        page.wait_for_function("document.getElementById('latest-table').dataset.drawn.startsWith('auc|true')")
        assert head.get_attribute("aria-sort") == "descending"
        assert column(page, place) == known[::-1] + nulls
        assert page.evaluate("document.activeElement.dataset.sort") == "auc"
        page.keyboard.press("Enter")
        page.wait_for_function(
            "document.getElementById('latest-table').dataset.drawn.startsWith('auc|false')"
        )
        assert head.get_attribute("aria-sort") == "ascending"
        assert column(page, place) == known + nulls
        others = page.eval_on_selector_all(
            "#latest-table th[aria-sort]", "all => all.map((one) => one.ariaSort)"
        )
        assert sorted(set(others)) == ["ascending", "none"]


def test_the_main_measures_fit_a_laptop(browser, tmp_path):
    write_report(
        filled([("adaptive-tree", 3), ("naive-bayes", 3)], seq=np.tile([9e5, 1e6, 12e5], 2)),
        tmp_path / "r.html",
    )
    with opened(browser, tmp_path / "r.html") as page:
        page.wait_for_selector("#latest-table[data-drawn]")
        titles = page.locator("#latest-table thead th").all_inner_texts()
        assert {"H-measure", "KS", "Kappa", "Kappa-m"} <= {title.strip() for title in titles}
        assert (
            page.evaluate(
                "(() => { const one = document.querySelector('.scroll');"
                " return one.scrollWidth - one.clientWidth; })()"
            )
            <= 0
        )


def test_the_roc_caption_says_once_what_is_common(browser, report, tmp_path):
    labels, scores = events(200, 1)
    time = datetime.fromtimestamp(START / 1e6, UTC)
    both = pa.concat_tables([curve(model, 200, labels, scores, time=time) for model in ("a", "b")])
    write_report(filled([("a", 3), ("b", 3)]), tmp_path / "r.html", Tables(curves=both))
    with opened(browser, tmp_path / "r.html") as page:
        page.locator("#curves").scroll_into_view_if_needed()
        page.wait_for_selector("#roc-chart[data-drawn]")
        points = len(set(scores.tolist())) + 1
        told = f"At {time:%Y-%m-%d %H:%M} UTC. {labels.sum()} positives and {200 - labels.sum()} negatives: "
        assert page.inner_text("#roc-caption").startswith(f"{told}a {points} points, b {points} points. The")
        assert page.is_hidden("#moment")  # there is but one
        assert page.inner_text("#moment-text") == f"{time:%Y-%m-%d %H:%M} UTC"


def test_null_comes_last_whichever_way_the_table_is_sorted(browser, tmp_path):
    latest = {"a": 0.25, "b": np.nan, "c": 0.75, "d": np.nan, "e": 0.5}
    auc = np.repeat([0.9] * 5, 2)
    auc[1::2] = list(latest.values())
    write_report(filled([(model, 2) for model in latest], auc=auc), tmp_path / "r.html")
    with opened(browser, tmp_path / "r.html") as page:
        for down, expected in (("true", "ceabd"), ("false", "aecbd")):
            page.click('#latest-table [data-sort="auc"]')
            page.wait_for_function(
                "(down) => document.getElementById('latest-table').dataset.drawn.startsWith('auc|' + down)",
                arg=down,
            )
            assert "".join(column(page, 0)) == expected


@pytest.mark.slow
def test_every_column_sorts_and_the_filter_finds(browser, report, rows):
    with opened(browser, report) as page:
        page.check("#latest-wide")
        page.wait_for_function("document.getElementById('latest-table').dataset.drawn.endsWith('true')")
        held = [name for name in MEANINGS if name not in ("weight", "window_events", "prevalence")]
        names = page.eval_on_selector_all(
            "#latest-table thead button", "all => all.map((one) => one.dataset.sort)"
        )
        assert {name for name in held if rows[name].null_count < len(rows)} <= set(names)
        for name in names:
            page.click(f'#latest-table [data-sort="{name}"]')
            page.wait_for_function(
                "(name) => document.getElementById('latest-table').dataset.drawn.split('|')[0] === name",
                arg=name,
            )
            page.wait_for_selector(f'th:not([aria-sort="none"]) [data-sort="{name}"]')
        page.fill("#latest-filter", "alert(1)")
        page.wait_for_function("document.querySelectorAll('#latest-table tbody tr').length === 1")
        assert page.locator("#latest-table tbody th").inner_text() == NASTY


# ---- for everybody


CONTRAST = """() => {
    const channel = (value) => {
        const c = value / 255;
        return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    };
    const parse = (text) => {
        const found = text.match(/[\\d.]+/g).map(Number);
        return found.length > 3 ? found : [...found, 1];
    };
    const light = (c) => 0.2126 * channel(c[0]) + 0.7152 * channel(c[1]) + 0.0722 * channel(c[2]);
    const ground = (node) => {
        for (let at = node; at; at = at.parentElement) {
            const colour = parse(getComputedStyle(at).backgroundColor);
            if (colour[3] > 0.99) return colour;
        }
        return [255, 255, 255, 1];
    };
    const found = [];
    const seen = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (seen.nextNode()) {
        const node = seen.currentNode.parentElement;
        const text = seen.currentNode.textContent.trim().slice(0, 40);
        if (!text || ["SCRIPT", "NOSCRIPT", "STYLE"].includes(node.tagName)) continue;
        if (!node.checkVisibility() || node.closest(".unseen, [disabled]")) continue;
        const style = getComputedStyle(node);
        const colour = parse(node instanceof SVGElement ? style.fill : style.color);
        const [a, b] = [light(colour), light(ground(node))];
        found.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), text]);
    }
    return found;
}"""


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_stands_out_from_its_ground(scheme, browser, report):
    with opened(browser, report, color_scheme=scheme) as page:
        for id_ in ("measures", "slices", "curves"):
            brought(page, f"#{id_}")
        page.wait_for_selector("#slices-chart[data-drawn]")
        page.wait_for_selector("#roc-chart[data-drawn]")
        found = page.evaluate(CONTRAST)
        assert len(found) > 300
        assert [(ratio, text) for ratio, text in found if ratio < 4.5] == []
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(255, 255, 255)") == (scheme == "light")


def test_the_button_changes_the_theme_and_the_charts_with_it(browser, report):
    with opened(browser, report) as page:
        colour = "document.getElementById('main-chart').data.find((one) => one.kind === 'line').line.color"
        before = page.evaluate(colour)
        page.click("#theme")
        page.click("#theme")
        page.wait_for_function("document.getElementById('main-chart').dataset.drawn.endsWith('dark')")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 22, 26)"
        assert page.evaluate(colour) != before


def test_on_a_phone_nothing_sticks_out(browser, report):
    with opened(browser, report, width=390, height=800, has_touch=True, is_mobile=True) as page:
        page.evaluate("document.querySelectorAll('section').forEach((one) => one.scrollIntoView())")
        page.wait_for_selector("#main-chart[data-drawn]")
        near_is_drawn(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert page.evaluate("window.innerWidth") == 390
        out = page.evaluate(
            """() => [...document.querySelectorAll("h1, h2, h3, p, button, select, input, .plot, li")]
                .filter((one) => {
                    const box = one.getBoundingClientRect();
                    if (!one.checkVisibility() || one.closest(".scroll, .unseen") || !box.width) return false;
                    return box.left < -1 || box.right > 391;
                }).map((one) => one.outerHTML.slice(0, 120))"""
        )
        assert out == []


@pytest.mark.slow
def test_the_keyboard_alone_reaches_every_control(browser, report):
    with opened(browser, report) as page:
        for id_ in ("measures", "slices", "curves", "latest"):
            brought(page, f"#{id_}")
        page.wait_for_selector("#roc-chart[data-drawn]")
        wanted = page.evaluate(
            """() => {
                window.scrollTo(0, 0);
                const stops = "a, button, select, input, summary, [tabindex='0']";
                const all = [...document.querySelectorAll(stops)]
                    .filter((one) => one.checkVisibility() && !one.disabled);
                all.forEach((one, place) => { one.dataset.stop = place; });
                return all.length;
            }"""
        )
        page.evaluate("document.activeElement.blur()")
        reached, hidden = set(), []
        for _ in range(wanted + 5):
            page.keyboard.press("Tab")
            at = page.evaluate(
                """() => {
                    const one = document.activeElement;
                    const outline = getComputedStyle(one).outlineStyle;
                    return [one.dataset ? one.dataset.stop : null, outline, one.outerHTML.slice(0, 80)];
                }"""
            )
            if at[0] is not None:
                reached.add(at[0])
                if at[1] == "none":
                    hidden.append(at[2])
        assert len(reached) == wanted
        assert hidden == []
        unnamed = page.evaluate(
            """() => [...document.querySelectorAll("button, select, input")].filter((one) =>
                one.checkVisibility() && !(one.labels && one.labels.length) && !one.ariaLabel
                && !one.textContent.trim()).map((one) => one.outerHTML.slice(0, 80))"""
        )
        assert unnamed == []


def test_keys_zoom_the_chart(browser, report):
    with opened(browser, report) as page:
        page.focus("#main-chart")
        page.keyboard.press("+")
        page.wait_for_function("document.getElementById('main-chart').layout.xaxis.range !== undefined")
        page.wait_for_function("document.getElementById('live').textContent.startsWith('shown from 2013-')")
        page.keyboard.press("0")
        page.wait_for_function("document.getElementById('live').textContent === 'all is shown'")


def test_a_name_that_is_a_script_is_text_in_charts_too(browser, report):
    with opened(browser, report) as page:
        traces = drawn(page, measure="auc")
        index = next(
            trace["model"]
            for trace in lines(traces)
            if NASTY.replace("<", "&lt;").replace(">", "&gt;") in trace["text"][0]
        )
        brought(page, "#main-chart")  # so that nothing moves between the look and the hover
        place = page.evaluate(
            """(model) => {
                const chart = document.getElementById("main-chart");
                chart.scrollIntoView({ behavior: "instant" });
                const trace = chart.data.find((one) => one.kind === "line" && one.model === model);
                const box = chart.getBoundingClientRect();
                const at = trace.x.length - 2;
                const { xaxis, yaxis } = chart._fullLayout;
                const x = box.left + xaxis._offset + xaxis.d2p(trace.x[at]);
                return [x, box.top + yaxis._offset + yaxis.d2p(trace.y[at])];
            }""",
            index,
        )
        page.mouse.move(*place)
        page.wait_for_selector("#main-chart .hoverlayer text")
        assert NASTY in page.text_content("#main-chart .hoverlayer")
        assert page.locator("#main-chart .hoverlayer script").count() == 0


# ---- odd files and odd browsers


def test_no_rows_make_a_page_that_says_so(browser, tmp_path):
    write_report(ROW_SCHEMA.empty_table(), tmp_path / "r.html")
    with opened(browser, tmp_path / "r.html") as page:
        assert "There are no rows to show" in page.inner_text(".lead")
        assert page.is_hidden("#controls")


def test_rows_without_auc_show_what_they_have(browser, rows, tmp_path):
    gone = ["auc", "auc_low", "auc_high", "h", "ks"]
    bare = rows
    for name in gone:
        bare = bare.set_column(
            ROW_SCHEMA.get_field_index(name), ROW_SCHEMA.field(name), pa.nulls(len(rows), pa.float64())
        )
    write_report(bare, tmp_path / "r.html")
    with opened(browser, tmp_path / "r.html") as page:
        first = page.input_value("#measure")
        assert first not in gone
        traces = lines(drawn(page, measure=first))
        assert (traces[0]["x"], traces[0]["y"]) == values(
            of_series(rows, sorted({*rows["model"].to_pylist()})[0]), first
        )
        page.locator("#slices").scroll_into_view_if_needed()
        page.wait_for_function(
            "document.getElementById('slices-about').textContent.startsWith('AUC is null')"
        )
        assert "AUC is null in every row" in page.inner_text("#changes")


def test_without_javascript_the_words_and_the_first_values_are_there(browser, report, rows):
    with opened(browser, report, ready=False, java_script_enabled=False) as page:
        text = page.inner_text("body")
        last = of_series(rows, "good").to_pylist()[-1]
        for words in (
            "Charts need JavaScript",
            "support a change",
            f"{last['auc']:.3f} [{last['auc_low']:.3f}, {last['auc_high']:.3f}]",
            MEANINGS["h"].sentence,
        ):
            assert words in text


def test_an_old_browser_gets_a_sentence(browser, report):
    with opened(browser, report, ready=False, before="delete window.DecompressionStream") as page:
        assert "need a browser of 2023 or later" in page.inner_text("#trouble")
        assert "support a change" in page.inner_text("#changes")


def test_one_font_of_another_kind_is_enough(playwright, report, tmp_path):
    """With no font at all Chromium itself ends; with one, whatever it is, the page stands."""
    fonts = sorted(Path("/usr/share/fonts").rglob("*Mono*.ttf"))
    if not fonts:
        pytest.skip("no monospaced font is on this machine: apt-get install fonts-dejavu-core")
    (tmp_path / "fonts").mkdir()
    shutil.copy(fonts[0], tmp_path / "fonts")
    (tmp_path / "fonts.conf").write_text(
        f'<?xml version="1.0"?><fontconfig><dir>{tmp_path}/fonts</dir>'
        f"<cachedir>{tmp_path}/cache</cachedir></fontconfig>"
    )
    surroundings = {"FONTCONFIG_FILE": str(tmp_path / "fonts.conf"), "HOME": str(tmp_path)}
    with launched(playwright, env=surroundings) as bare, opened(bare, report, width=390) as page:
        assert len(lines(drawn(page, measure="auc"))) == 3
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


def computed(page):
    """Return a function that gives the seconds that the page has computed: load adds none to them."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")

    def seconds():
        metrics = session.send("Performance.getMetrics")["metrics"]
        return next(one["value"] for one in metrics if one["name"] == "ThreadTime")

    return seconds


@pytest.mark.slow
@pytest.mark.parametrize(
    "sizes",
    [[(f"model-{number:04}", 12) for number in range(5_000)], [("one", 60_000)]],
    ids=["5,000 models", "60,000 rows of one"],
)
def test_a_large_report_is_quick(sizes, browser, tmp_path, capsys):
    write_report(filled(sizes), tmp_path / "r.html")
    with opened(browser, tmp_path / "r.html", ready=False) as page:
        seconds = computed(page)
        page.wait_for_selector("#main-chart[data-drawn]")
        first = seconds()
        page.wait_for_function("document.documentElement.dataset.ready === '1'")
        assert page.evaluate("document.querySelectorAll('*').length") < 5_000
        loaded = seconds()
        page.select_option("#measure", "kappa")
        page.wait_for_function("document.getElementById('main-chart').dataset.drawn.startsWith('kappa|')")
        took = seconds() - loaded
        if len(sizes) > 1:
            page.click("#pick summary")
            page.fill("#model-search", "4321")
            page.locator("#model-list input").check()
            page.wait_for_function("document.getElementById('legend').textContent.includes('model-4321')")
        page.click('#latest-table [data-sort="auc"]')
        page.wait_for_function("document.getElementById('latest-table').dataset.drawn.startsWith('auc|')")
        clicks = seconds() - loaded
        with capsys.disabled():
            print(
                f"\n{len(sizes):,} models, {sum(count for _, count in sizes):,} rows, processor seconds: "
                f"{first:.2f} to the first chart, {took:.2f} to another measure, {clicks:.2f} for all clicks"
            )
        assert first < 4
        assert took < 1
        assert clicks < 1.5  # so each of their tasks is shorter
