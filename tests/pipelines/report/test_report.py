"""The report's rows, words and data: whatever the page shows was read rightly, in order, and is true."""

from __future__ import annotations

import base64
import doctest
import gzip
import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import escape
from rocsteady.core.evaluator.evaluator import ModelEvaluator
from rocsteady.core.rows.arrow import ROW_SCHEMA
from rocsteady.core.rows.measure_table import MEASURES, RANKING_MEASURES
from rocsteady.core.settings.evaluator import EvaluatorSettings
from rocsteady.core.settings.windows import parse_every, parse_window
from rocsteady.core.verdicts.series import Series, series_of
from rocsteady.pipelines.report import data
from rocsteady.pipelines.report.changes import NO_TEST, change_of, greatest_difference
from rocsteady.pipelines.report.data import (
    CONTEXT,
    HEADLINES,
    MEANINGS,
    curve_blocks,
    null_reasons,
    packed,
    rounded,
    script_json,
    thinned,
)
from rocsteady.pipelines.report.report import report_page, write_report
from rocsteady.pipelines.report.report_rows import EventCounters, Tables, count_dead_letters, report_rows
from rocsteady.pipelines.words import DASH
from rocsteady.transforms.events.dead_letters import DEAD_LETTER_SCHEMA
from rocsteady.transforms.sinks.kinds import CURVE_SCHEMA, SETTINGS_KEY
from rocsteady.transforms.sinks.table import write_table
from rocsteady.transforms.tables.read import read_tables
from scipy.stats import norm

from tests.support.pages.report_tables import (
    DAY,
    NASTIER,
    NASTY,
    START,
    alert_events,
    curve,
    evaluated_rows,
    events,
    filled,
)
from tests.support.processes.command import call, names
from tests.support.streams.times import moments

PAGE = Path(__file__).parents[3] / "pipelines" / "report" / "page"
NORMAL = norm.ppf(0.975)


def unpacked(text):
    data = np.frombuffer(gzip.decompress(base64.b64decode(text)), np.uint8)
    return data.reshape(8, -1).T.copy().view("<f8").ravel()


def block(page, name):
    return re.search(rf'id="block-{name}">([^<]*)</script>', page).group(1)


def meta(page):
    return json.loads(re.search(r'id="meta">(.*?)</script>', page, re.DOTALL).group(1))


def as_dicts(table):
    return table.cast(pa.schema([field.with_nullable(True) for field in table.schema])).to_pylist()


@pytest.fixture(scope="module")
def rows():
    return evaluated_rows()


# ---- reading


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".csv.gz", ".jsonl", ".jsonl.gz"])
def test_rows_read_as_they_were_written(ending, rows, tmp_path):
    infinite = rows.set_column(
        ROW_SCHEMA.get_field_index("cost_threshold"),
        ROW_SCHEMA.field("cost_threshold"),
        pa.array([float("inf"), None] + [0.25] * (len(rows) - 2)),
    )
    write_table(infinite, tmp_path / f"rows{ending}")
    table, notes = read_tables([str(tmp_path / f"rows{ending}")], "rows")
    assert as_dicts(table) == as_dicts(infinite)
    assert notes == []


def test_files_of_one_model_are_put_together_and_a_row_that_came_twice_counts_once(rows, tmp_path):
    half = len(rows) // 2
    pq.write_table(rows.slice(half), tmp_path / "a.parquet")
    write_table(rows.slice(0, half + 7), tmp_path / "b.csv")
    table, notes = read_tables([str(tmp_path / "*.parquet"), str(tmp_path / "b.csv")], "rows")
    together, alone = report_rows(table, notes), report_rows(rows)
    assert together.notes == ["7 rows came twice (the same model, slice and row) and counted once."]
    assert alone.notes == []
    np.testing.assert_array_equal(together.series, alone.series)
    for name, values in alone.columns.items():
        np.testing.assert_array_equal(together.columns[name], values)


def test_rows_stand_in_order_whatever_order_they_came_in(rows):
    shuffled = rows.take(np.random.default_rng(3).permutation(len(rows)))
    ordered = report_rows(shuffled)
    expected = rows.sort_by([(name, "ascending") for name in ("model", "slice", "row")])
    assert [ordered.models[m] for m, _, a, b in ordered.series for _ in range(a, b)] == expected[
        "model"
    ].to_pylist()
    assert [ordered.slices[s] for _, s, a, b in ordered.series for _ in range(a, b)] == expected[
        "slice"
    ].to_pylist()
    for name in ("seq", *MEASURES):
        np.testing.assert_array_equal(
            ordered.columns[name], expected[name].fill_null(np.nan if name != "seq" else 0).to_numpy()
        )
    said = [None if code < 0 else ordered.reasons[code] for code in ordered.reason_codes]
    assert said == expected["reason"].to_pylist()


def test_rows_that_say_different_things_of_one_moment_are_told():
    once = filled([("m", 5)])
    table = report_rows(pa.concat_tables([once, filled([("m", 5)], seed=1)]))
    assert len(table) == 5
    assert "5 rows came twice" in table.notes[0]
    assert "of 5 of them the values differed" in table.notes[0]


def test_rows_of_one_model_under_two_settings_are_two_models():
    other = filled([("m", 4)], seed=1, config=pa.array(["ffff"] * 4))
    third = filled([("z", 4)], seed=2, config=pa.array(["ffff"] * 4))
    table = report_rows(pa.concat_tables([filled([("m", 5)]), other, third]))
    assert table.models == ["m (config 0123456789ab)", "m (config ffff)", "z"]
    assert len(table) == 13
    assert "2 different settings" in table.notes[0]


def test_a_model_that_is_called_like_another_with_its_settings_stays_a_model_of_its_own():
    other = filled([("m", 4)], seed=1, config=pa.array(["ffff"] * 4))
    table = report_rows(pa.concat_tables([filled([("m", 5), ("m (config ffff)", 3)]), other]))
    assert table.models == ["m ((config 0123456789ab))", "m ((config ffff))", "m (config ffff)"]
    assert len(table) == 12
    assert table.bases() == [("m", 0), ("m", 1), ("m (config ffff)", 0)]


def test_settings_in_which_rows_differ_name_the_first_of_many_classes():
    other = filled([("m", 4)], seed=1, config=pa.array(["ffff"] * 4))
    made = {"0123456789ab": {"window": "all", "classes": ["a", "b"]}}
    made["ffff"] = {"window": "all", "classes": [f"c{number}" for number in range(2_000)]}
    note = report_rows(pa.concat_tables([filled([("m", 5)]), other]), settings=made).notes[0]
    assert "classes ['a', 'b'], all, classes ['c0', 'c1', 'c2', 'c3', 'c4', ... 2,000 in all])" in note


def in_window(window, every=100, n=3_000, spoiled=(0.5, 1.0)):
    """Rows of a model with an event an hour, a part of which it ranks worse; and by `config` the settings."""
    settings = EvaluatorSettings(window=parse_window(window), every=parse_every(str(every)))
    ev = ModelEvaluator(settings, model="m")
    times = (START + np.arange(n) * 3_600_000_000).astype("M8[us]")
    parts = [ev.update(*events(n, 3, spoiled), times=moments(times)), ev.finish()]
    table = pa.concat_tables([part.to_arrow() for part in parts])
    return table, {settings.config_hash(): json.loads(settings.canonical())}


def test_windows_of_one_model_are_told_apart_by_what_they_are():
    (sliding, one), (adaptive, other) = in_window("last:500"), in_window("adaptive:0.002:placement")
    both = pa.concat_tables([adaptive, sliding])
    table = report_rows(both, settings=one | other)
    assert table.ways == ["last:500", "adaptive:0.002:placement"]
    assert table.models == ["m (adaptive:0.002:placement)", "m (last:500)"]
    assert table.bases() == [("m", 1), ("m", 0)]
    assert "2 different settings (last:500, adaptive:0.002:placement)" in table.notes[0]
    for model, rows in zip(table.models, (adaptive, sliding), strict=True):
        _, _, first, stop = table.whole_models()[table.models.index(model)]
        np.testing.assert_array_equal(table.columns["auc"][first:stop], rows["auc"].to_numpy())
    page = report_page(table)
    assert "1 model in 2 ways (last:500; adaptive:0.002:placement), 60 rows" in re.sub(" and", ",", page)
    assert "over 3,000 events" in page  # which both windows saw
    told = meta(page)
    assert (told["bases"], told["wayOf"]) == ([0, 0], [1, 0])
    assert "<h1>How well m ranks and decides</h1>" in page
    shorter = report_rows(pa.concat_tables([adaptive, sliding.slice(0, 5)]), settings=one | other)
    assert "over 3,000 events" not in report_page(shorter)


def test_settings_that_differ_beside_the_window_are_named_and_unknown_ones_by_their_hash():
    (often, one), (seldom, other) = in_window("last:500"), in_window("last:500", every=500)
    table = report_rows(pa.concat_tables([often, seldom]), settings=one | other)
    assert table.models == ["m (last:500, every 100)", "m (last:500, every 500)"]
    (config,) = other
    assert report_rows(pa.concat_tables([often, seldom]), settings=one).models == [
        f"m (config {config})",
        "m (last:500)",
    ]


def test_files_of_two_windows_make_a_page_that_names_them(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    labels, scores = events(900, 1)
    pq.write_table(pa.table({"score": scores, "label": labels}), "events.parquet")
    for name, window in (("z", "last:300"), ("a", "fading:50")):
        ran = call(capsys, "evaluate", "events.parquet", "--window", window, "--output", f"{name}.parquet")
        assert ran.status == 0, ran
    assert call(capsys, "report", "z.parquet", "a.parquet", "-o", "r.html").status == 0
    told = meta(Path("r.html").read_text())
    assert told["ways"] == ["last:300", "fading:50"]
    assert told["models"] == ["events (fading:50)", "events (last:300)"]
    damaged = pq.read_table("a.parquet").replace_schema_metadata({SETTINGS_KEY: b"\xff{"})
    pq.write_table(damaged, "a.parquet")
    assert call(capsys, "report", "z.parquet", "a.parquet", "-o", "r.html").status == 0
    config = damaged["config"][0].as_py()
    assert meta(Path("r.html").read_text())["ways"] == ["last:300", f"config {config}"]


def test_curves_of_one_window_are_not_taken_for_those_of_another():
    (sliding, one), (adaptive, other) = in_window("last:500"), in_window("adaptive:0.002:placement")
    table = report_rows(pa.concat_tables([adaptive, sliding]), settings=one | other)
    labels, scores = events(200, 1)
    listed, _, _ = curve_blocks(curve("m", 500, labels, scores, config=next(iter(one))), table)
    assert [table.models[at] for at, *_ in listed] == ["m (last:500)"]


def test_rows_on_a_grid_of_times_show_what_they_were_due_for():
    rows, _ = in_window("last:7d", every="1d")
    page = report_page(report_rows(rows))
    due = [value for value in rows["due"].cast(pa.int64()).to_pylist() if value is not None]
    assert len(due) > 100
    shown = unpacked(block(page, "due"))
    assert shown[np.isfinite(shown)].tolist() == due
    for column in ("due", "drift"):
        assert f"<code>{column}</code>" in page


def test_where_one_row_has_no_time_events_are_the_axis():
    times = pa.array([START, None, START + DAY], pa.timestamp("us", "UTC"))
    assert not meta(report_page(report_rows(filled([("m", 3)], time=times))))["times"]


def test_rows_of_another_version_are_shown_and_the_difference_is_told(rows, tmp_path):
    older = rows.drop_columns(["cmd", "drift"]).append_column("novelty", pa.array([1] * len(rows)))
    pq.write_table(older, tmp_path / "old.parquet")
    table, notes = read_tables([str(tmp_path / "old.parquet")], "rows")
    assert "has no drift, cmd" in notes[0] or "has no cmd, drift" in notes[0]
    assert "novelty" in notes[1]
    assert table["cmd"].null_count == len(rows)
    assert table["auc"].to_pylist() == rows["auc"].to_pylist()


# ---- when a model ranked worse


@st.composite
def series_of_windows(draw):
    n = draw(st.integers(0, 14))
    steps = draw(st.lists(st.integers(1, 4), min_size=n, max_size=n))
    seq = np.cumsum(steps, dtype=np.int64) if n else np.zeros(0, np.int64)
    events = np.minimum(draw(st.integers(1, 12)), seq)
    auc = np.array(
        draw(st.lists(st.sampled_from([0.5, 0.61, 0.7, 0.83, np.nan]), min_size=n, max_size=n)), float
    )
    half = np.array(draw(st.lists(st.sampled_from([0.0, 0.01, 0.2]), min_size=n, max_size=n)), float)
    full = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)), bool)
    nothing = np.full(n, np.nan)
    since, time = nothing, nothing
    if draw(st.booleans()):  # several events at one time, and rows that do not know their oldest event
        times = np.append(0, np.cumsum(draw(st.lists(st.integers(0, 2), min_size=60, max_size=60))))
        time = times[seq - 1].astype(float)
        since = times[seq - events].astype(float)
        since[np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)), bool)] = np.nan
    low, high = np.maximum(auc - half, 0), np.minimum(auc + half, 1)
    rarer = np.array(draw(st.lists(st.sampled_from([29, 30, 500]), min_size=n, max_size=n)), float)
    return Series(
        seq - events,
        seq,
        full,
        rarer,
        events / 4,
        events / 1.0,
        seq,
        events,
        since,
        time,
        time,
        auc,
        low,
        high,
    )


def slow_greatest_difference(series, confidence):
    """Every pair of windows, one by one."""
    pairs = []
    for i in range(len(series.auc)):
        for j in range(len(series.auc)):
            spans = [set(range(series.begin[k], series.end[k])) for k in (i, j)]
            usable = [
                series.full[k] and series.high[k] > series.low[k] and series.rarer[k] >= 30 for k in (i, j)
            ]
            begins = series.time[j] if np.isnan(series.since[j]) else series.since[j]
            touching = begins <= series.time[i]
            if i < j and all(usable) and not spans[0] & spans[1] and not touching:
                pairs.append((abs(series.auc[i] - series.auc[j]), i, j))
    if not pairs:
        return None
    size = max(pairs)[0]
    level = norm.ppf(1 - (1 - confidence) / 2 / len(pairs))
    intervals = []
    for _, i, j in (pair for pair in pairs if pair[0] == size):
        deviations = [max(series.high[k] - series.auc[k], series.auc[k] - series.low[k]) for k in (i, j)]
        half = np.hypot(*deviations) / norm.ppf(1 - (1 - confidence) / 2) * level
        intervals.append((size - half, size + half))
    return size, len(pairs), intervals


@given(series_of_windows(), st.sampled_from([0.9, 0.95, 0.999]))
def test_the_greatest_difference_is_that_of_all_pairs_without_a_common_event(series, confidence):
    found, slow = greatest_difference(series, confidence), slow_greatest_difference(series, confidence)
    if slow is None:
        assert found is None
        return
    size, pairs, intervals = slow
    assert found.pairs == pairs
    assert found.difference == pytest.approx(size, abs=1e-12)
    assert any((found.low, found.high) == pytest.approx(interval, abs=1e-9) for interval in intervals)
    assert series.auc[found.best] - series.auc[found.worst] == pytest.approx(size, abs=1e-12)
    first, second = sorted((found.worst, found.best))
    assert series.seq[second] - series.events[second] >= series.seq[first]


def test_a_model_that_ranked_worse_for_a_while_is_found_with_its_moments(rows):
    table = report_rows(rows)
    series = series_of(table.columns, slice(*table.whole_models()[table.models.index("good")][2:]))
    change = change_of("good", series, 0.95)
    assert change.verdict == "changed"
    # Scores are spoiled from event 1,500 on, until event 2,100; the window holds 400.
    assert 1_900 <= series.seq[change.worst] <= 2_200
    assert not 1_500 < series.seq[change.best] < 2_500
    assert f"{series.auc[change.worst]:.3f} [{series.low[change.worst]:.3f}" in change.details
    assert f"AUC was lowest in the {series.events[change.worst]} events" in change.details
    assert change.text.count(". ") == 0  # one sentence
    assert "support a change" in change.text
    assert "excludes 0" in change.text
    assert ("fell" in change.text) == (change.best < change.worst)


def test_chance_alone_is_called_a_change_no_more_often_than_the_level_says():
    rng = np.random.default_rng(5)
    n, told = 40, 0
    for _ in range(400):
        auc = rng.normal(0.7, 0.02, n)
        seq = np.arange(1, n + 1) * 100
        half = NORMAL * 0.02
        rarer, events, nothing = np.full(n, 40.0), np.full(n, 100), np.full(n, np.nan)
        series = Series(
            seq - 100,
            seq,
            seq > 0,
            rarer,
            events / 4,
            events / 1.0,
            seq,
            events,
            nothing,
            nothing,
            nothing,
            auc,
            auc - half,
            auc + half,
        )
        change = change_of("m", series, 0.95)
        told += change.verdict == "changed"
        assert change.verdict == "changed" or "includes 0" in change.text
    assert told <= 0.05 * 400


def test_windows_that_share_events_are_not_compared():
    growing = filled([("m", 30)], window_events=np.arange(1, 31) * 100)
    table = report_rows(growing)
    change = change_of("m", series_of(table.columns, slice(0, 30)), 0.95)
    assert (change.verdict, change.worst) == ("cannot tell", -1)
    assert "reaches back to the first event" in change.text


def test_adaptive_windows_are_compared_where_they_share_no_event():
    rows, _ = in_window("adaptive:0.002:placement", n=9_000, spoiled=(1 / 3, 2 / 3))
    table = report_rows(rows)
    assert np.nansum(table.columns["drift"]) >= 2
    series = series_of(table.columns, slice(0, len(table)))
    assert series.full.tolist() == (series.seq > series.events).tolist()
    assert series.full.any()
    assert len(set(series.events[series.full])) > 2
    change = change_of("m", series, 0.95)
    held = [set(range(series.seq[row] - series.events[row], series.seq[row])) for row in change[-2:]]
    assert change.verdict == "changed"
    assert not held[0] & held[1]
    assert max(held[0]) in range(3_000, 6_500)  # the worst one, while scores were spoiled
    assert min(held[1]) > 5_500
    assert f"in the {len(held[0]):,} events" in change.details


def test_a_window_of_changing_size_is_full_once_it_has_let_go_of_something():
    seq = np.array([100, 200, 300, 400, 500])
    for sizes, full in (
        ([100, 200, 100, 200, 300], [0, 0, 1, 1, 1]),
        ([100, 200, 200, 200, 200], [0, 1, 1, 1, 1]),
    ):
        table = report_rows(filled([("m", 5)], seq=seq, window_events=np.array(sizes)))
        assert series_of(table.columns, slice(0, 5)).full.tolist() == list(map(bool, full))


def series_with_times(since, time, auc=(0.5, 0.9)):
    n = len(time)
    stamps = [pa.array(np.array(values, np.int64), pa.timestamp("us", "UTC")) for values in (since, time)]
    table = filled(
        [("m", n)], seq=(np.arange(n) + 1) * 500, window_events=np.full(n, 500), auc=np.resize(auc, n),
        window_start=stamps[0], window_end=stamps[1], time=stamps[1],
    )  # fmt: skip
    return series_of(report_rows(table).columns, slice(0, n))


def test_windows_that_touch_in_time_are_not_compared():
    day = 86_400_000_000
    apart = change_of("m", series_with_times([0, 2 * day], [day, 3 * day]), 0.95)
    assert apart.verdict == "changed"
    for begun, ended in ((day, 3 * day), (day, day), (0, 3 * day)):
        touching = change_of("m", series_with_times([0, begun], [day, ended]), 0.95)
        assert (touching.verdict, touching.worst) == ("cannot tell", -1)
        assert "touch in time" in touching.text


def test_a_card_says_from_when_to_when_and_the_seconds_in_its_details():
    start = 1379203200_000000  # 15 Sep 2013
    day, minute = 86_400_000_000, 60_000_000
    dates = series_with_times([start, start + 12 * day], [start + 11 * day, start + 20 * day])
    change = change_of("m", dates, 0.95)
    assert "in the 500 events from 15 to 26 Sep 2013 (0.500" in change.details
    assert "in the 500 events from 27 Sep to 5 Oct 2013 (0.900" in change.details
    assert "lowest: 2013-09-15 00:00:00 to 2013-09-26 00:00:00 UTC; highest: " in change.exact
    page = report_page(report_rows(filled([("m", 3)])))
    assert re.search(r"Times are UTC\.\s*</p>", page)
    short = series_with_times([start, start + 3 * minute], [start + 2 * minute, start + 3 * minute])
    text = change_of("m", short, 0.95).details
    assert "on 15 Sep 2013 from 00:00 to 00:02 (" in text
    assert "on 15 Sep 2013 at 00:03 (" in text
    unknown = change_of("m", dates._replace(since=np.full(2, np.nan)), 0.95)
    assert "in the 500 events up to 26 Sep 2013 (0.500" in unknown.details
    assert unknown.exact == ""
    late = dates._replace(time=dates.time + minute, until=dates.until + minute, since=np.full(2, np.nan))
    assert "in the 500 events up to 26 Sep 2013, 00:01 (" in change_of("m", late, 0.95).details


def test_windows_with_few_events_of_a_class_are_not_compared():
    rng = np.random.default_rng(1)
    table = report_rows(filled([("m", 30)], positives=np.full(30, 29.0), auc=rng.random(30)))
    change = change_of("m", series_of(table.columns, slice(0, 30)), 0.95)
    assert change.verdict == "cannot tell"
    assert "at least 30 positives and 30 negatives" in change.text


def test_panes_are_compared_by_their_last_rows():
    hour = 3_600_000_000
    starts = np.repeat([0, 0.5, 1, 2], 3) * hour
    table = filled(
        [("m", 12)],
        pane_start=pa.array(starts.astype(np.int64), pa.timestamp("us", "UTC")),
        pane_end=pa.array((starts + hour).astype(np.int64), pa.timestamp("us", "UTC")),
        row=np.tile([0, 1, 2], 4),
    )
    ordered = report_rows(table)
    series = series_of(ordered.columns, slice(0, 12))
    assert np.flatnonzero(series.full).tolist() == [2, 5, 8, 11]
    found = greatest_difference(series, 0.95)
    assert found.pairs == 4  # of the six, [0, 1) and [0.5, 1.5) share events, and that with [1, 2)
    assert {found.worst, found.best} <= {2, 5, 8, 11}


def test_models_side_by_side_are_not_called_different():
    several = report_page(report_rows(evaluated_rows(models=("a", "b"))))
    assert escape(NO_TEST) in several.partition('id="latest-table"')[2].partition("</section>")[0]
    assert "is no test of a difference" in NO_TEST
    assert escape(NO_TEST) not in report_page(report_rows(evaluated_rows(models=("a",))))


def test_a_last_value_that_is_null_gives_way_to_the_latest_that_is_not_with_its_day():
    auc = np.array([0.7, 0.8123, np.nan, np.nan, np.nan, np.nan])
    times = START + np.array([0, 1, 2, 3, 4, 5]) * 100 * DAY
    stamps = pa.array(times, pa.timestamp("us", "UTC"))
    table = filled(
        [("m", 3), ("n", 3)], auc=auc, time=stamps, h=np.array([1, 0.5, 0.25, np.nan, 0.125, np.nan])
    )
    page = report_page(report_rows(table)).partition('id="latest-table"')[2].partition("</table>")[0]
    cells = [re.findall("<td>(.*?)</td>", line) for line in page.split("<tr>")[2:]]
    day = datetime.fromtimestamp(times[1] / 1e6, UTC)
    assert cells[0][4:6] == [f"0.812 [0.792, 0.832] ({day.day} {day:%b}; null since)", "0.2500"]
    day = datetime.fromtimestamp(times[4] / 1e6, UTC)
    assert cells[1][4:6] == [DASH, f"0.1250 ({day.day} {day:%b}; null since)"]
    untimed = filled([("m", 3)], auc=auc[:3], time=pa.nulls(3, pa.timestamp("us", "UTC")))
    assert "0.812 [0.792, 0.832] (event 200; null since)" in report_page(report_rows(untimed))


# ---- data


@given(st.lists(st.floats(width=64), max_size=50))
def test_packed_numbers_are_the_numbers(values):
    np.testing.assert_array_equal(unpacked(packed(np.array(values, np.float64))), values)


def test_the_page_holds_every_row_to_the_last_bit(rows):
    table = report_rows(rows)
    page = report_page(table)
    told = meta(page)
    for name in (*told["columns"], "seq", "time"):
        np.testing.assert_array_equal(unpacked(block(page, name)), table.columns[name])
    assert [told["models"][m] for m, *_ in told["series"]] == [table.models[m] for m, *_ in table.series]
    assert told["drawn"] == [name for name in told["drawn"] if np.isfinite(table.columns[name]).any()]


def test_rows_beyond_the_limit_are_left_out_but_for_extremes_and_ends():
    rng = np.random.default_rng(2)
    auc = rng.random(9_000)
    auc[4_000:4_300] = np.nan
    auc[2_345], auc[7_654] = -5.0, 5.0
    kappa_m = rng.random(9_000)
    kappa_m[1_111] = 9.0
    table = report_rows(filled([("a", 6_000), ("b", 2_999), ("c", 1)], auc=auc, kappa_m=kappa_m))
    for limit in (8_999, 1_200, 30, 1):
        kept = thinned(table, limit=limit)
        assert len(kept) <= max(limit, 5)
        assert kept.total == 9_000
        for (_, _, first, stop), (_, _, a, b) in zip(table.series, kept.series, strict=True):
            for name, values in table.columns.items():
                np.testing.assert_array_equal(kept.columns[name][[a, b - 1]], values[[first, stop - 1]])
            if limit >= 1_200:
                for name in HEADLINES:
                    ours, theirs = kept.columns[name][a:b], table.columns[name][first:stop]
                    assert (np.nanmin(ours), np.nanmax(ours)) == (np.nanmin(theirs), np.nanmax(theirs))
                    assert np.isnan(ours).any() == np.isnan(theirs).any()
        place = {row: at for at, row in enumerate(zip(table.columns["h"], table.columns["seq"], strict=True))}
        order = [place[row] for row in zip(kept.columns["h"], kept.columns["seq"], strict=True)]
        assert order == sorted(order)
    assert thinned(table, limit=9_000) is table


def test_the_worst_models_keep_all_their_rows(monkeypatch):
    table = report_rows(filled([("a", 3_000), ("b", 3_000), ("c", 3_000)]))
    kept = thinned(table, [2, 0, 1], limit=100)
    lengths = (kept.series[:, 3] - kept.series[:, 2]).tolist()
    assert lengths == [3_000] * 3
    monkeypatch.setattr(data, "WORST", 1)
    kept = thinned(table, [2, 0, 1], limit=100)
    lengths = (kept.series[:, 3] - kept.series[:, 2]).tolist()
    assert lengths[2] == 3_000
    assert 2 < lengths[0] < 60
    monkeypatch.setattr(data, "ROWS_OF_WORST", 2_000)
    assert len(thinned(table, [2, 0, 1], limit=100)) <= 100
    monkeypatch.setattr(data, "WORST", 50)
    monkeypatch.setattr(data, "ROWS_OF_WORST", 3_500)
    kept = thinned(table, [2, 0, 1], limit=100)  # there is room for one: the worst, and not the first by name
    assert (kept.series[:, 3] - kept.series[:, 2]).tolist()[2] == 3_000


def test_rounded_numbers_differ_by_less_than_a_ten_thousandth():
    values = np.random.default_rng(1).random(1_000)
    assert np.abs(rounded(values) - values).max() < 0.7e-4
    assert len(packed(rounded(values))) < 0.4 * len(packed(values))
    whole = np.array([123_456_789.0, np.nan, -1.0])
    np.testing.assert_array_equal(rounded(whole), whole)
    mixed = np.array([np.inf, np.nan, 0.0, -0.1])
    np.testing.assert_allclose(rounded(mixed), mixed, atol=1e-4)


def test_thinned_rows_keep_where_a_window_shrank():
    drift = np.zeros(6_000, bool)
    drift[[17, 3_333, 5_000]] = True
    table = report_rows(filled([("a", 6_000)], drift=pa.array(drift)))
    kept = thinned(table, limit=1_000)
    assert kept.columns["seq"][kept.columns["drift"] == 1].tolist() == [1_800, 333_400, 500_100]


def test_the_page_says_how_many_rows_are_drawn(monkeypatch):
    from rocsteady.pipelines.report import facts

    table = report_rows(filled([("a", 3_000)]))
    assert "All 3,000 rows are in this page" in report_page(table)
    monkeypatch.setattr(facts, "thinned", lambda rows, worst: thinned(rows, worst[:0], 600))
    page = report_page(table)
    drawn = meta(page)["kept"]
    assert drawn <= 600
    assert f"{drawn:,} of 3,000 rows are drawn" in page


def test_curves_are_packed_point_by_point():
    parts, kept = [], {}
    table = report_rows(filled([("a", 5), ("b", 5)]))
    for seq, model in ((100, "a"), (300, "a"), (200, "b")):
        labels, scores = events(60, seq)
        time = datetime(2013, 1, 1, tzinfo=UTC) + timedelta(hours=seq)
        part = curve(model, seq, labels, scores, time=time)
        kept[model, seq] = part
        parts.append(part)
    shuffled = pa.concat_tables(parts).take(np.random.default_rng(0).permutation(sum(map(len, parts))))
    listed, blocks, note = curve_blocks(shuffled, table)
    assert (len(listed), note) == (3, "")
    for model, slice_code, seq, time, positives, negatives, first, count in listed:
        part = kept[table.models[model], seq]
        assert table.slices[slice_code] == ""
        assert time == part["time"][0].value
        assert (positives, negatives) == (part["tp"][-1].as_py(), part["fp"][-1].as_py())
        for name in ("threshold", "tp", "fp", "on_hull", "block_score"):
            ours = unpacked(blocks[f"curve_{name}"])[first : first + count]
            theirs = [np.nan if value is None else float(value) for value in part[name].to_pylist()]
            np.testing.assert_array_equal(ours, theirs)


def test_of_too_many_curves_whole_models_and_late_ones_stay():
    table = report_rows(evaluated_rows(models=("a",)))
    labels, scores = events(30, 1)
    parts = [
        curve("a", seq, labels, scores, slice_name=name, config=table.configs[0])
        for seq in (100, 200, 300)
        for name in ("", "site=a")
    ]
    points = len(parts[0])
    listed, _, note = curve_blocks(pa.concat_tables(parts), table, budget=4 * points)
    assert [(table.slices[of], seq) for _, of, seq, *_ in listed] == [
        ("", 100),
        ("", 200),
        ("", 300),
        ("site=a", 300),
    ]
    assert "4 of 6 curves" in note
    foreign = curve_blocks(curve("z", 1, labels, scores), table)
    assert foreign[0] == []
    assert "none of the models" in foreign[2]


def test_curves_that_match_no_row_take_no_room_and_are_told():
    table = report_rows(evaluated_rows(models=("a",)))
    labels, scores = events(30, 1)
    own = curve("a", 100, labels, scores, config=table.configs[0])
    others = [
        curve("zz", 900, labels, scores, config=table.configs[0]),
        curve("a", 950, labels, scores, slice_name="site=q", config=table.configs[0]),
        curve("a", 100, labels, scores, config="another"),
    ]
    listed, _, note = curve_blocks(pa.concat_tables([own, *others]), table, budget=len(own))
    assert [(seq, count) for _, _, seq, *_, count in listed] == [(100, len(own))]
    assert note == "3 curves of models, slices or settings that the rows do not have are left out."


def test_a_file_of_curves_given_twice_counts_once():
    table = report_rows(evaluated_rows(models=("a",)))
    labels, scores = events(30, 1)
    own = curve("a", 100, labels, scores, config=table.configs[0])
    assert curve_blocks(pa.concat_tables([own, own]), table) == curve_blocks(own, table)


# ---- words


def test_every_measure_has_a_meaning_of_one_sentence():
    assert sorted(MEANINGS) == sorted((*MEASURES, *CONTEXT))
    for name, meaning in MEANINGS.items():
        assert meaning.sentence.endswith("."), name
        assert not re.search(r"\. [A-Z]", meaning.sentence), name
        assert meaning.digits in ("rank", "share", "score", "count")


def test_none_is_called_better_that_a_constant_decision_makes_perfect():
    perfect = {"tp", "fp", "tn", "fn", "cmd"}
    for threshold in (0.4, 0.6):  # every event is predicted positive, or negative
        ev = ModelEvaluator(threshold=threshold)
        ev.update([0, 1, 1], [0.5] * 3)
        said = ev.measures()._asdict()
        perfect |= {name for name in MEASURES[RANKING_MEASURES:] if said[name] == 1 and name not in perfect}
    assert perfect > {"recall", "specificity"}
    assert {MEANINGS[name].better for name in perfect} == {""}
    assert (MEANINGS["aum"].better, "constant scores" in MEANINGS["aum"].sentence) == ("lower", True)
    assert "interpolated linearly" in MEANINGS["tpr_at_fpr"].sentence


def test_notes_stand_in_one_box_that_is_open():
    page = report_page(report_rows(filled([("a", 3)]), ["One < two.", "Another."]))
    head = page.partition("</header>")[0]
    (box,) = re.findall('<details class="note fold" data-print open>(.*?)</details>', head, re.DOTALL)
    assert "<summary>2 notes</summary>" in box
    assert re.findall("<p>(.*?)</p>", box) == ["One &lt; two.", "Another."]
    assert 'class="note' not in report_page(report_rows(filled([("a", 3)]))).partition("</header>")[0]


def test_charts_come_before_tables_and_words(rows):
    page = report_page(report_rows(rows), Tables(alerts=alert_events({"model": "good", "row": 3})))
    sections = re.findall('<section id="([^"]+)"', page)
    assert sections == [
        "overview", "over-time", "alerts", "gaps", "slices", "changes", "measures", "curves", "latest",
        "meanings",
    ]  # fmt: skip
    assert re.findall('<a href="#([^"]+)">', page.partition("<nav")[2].partition("</nav>")[0]) == sections


def test_names_are_text_wherever_they_stand(rows):
    page = report_page(report_rows(rows), title=NASTY)
    assert NASTY not in page
    assert "alert(1)</script>" not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 3  # title, card, table
    assert meta(page)["models"] == sorted(["good", NASTY, NASTIER])
    inside = re.findall(r"<script[^>]*>(.*?)</script>", page, re.DOTALL)
    assert all("<!--" not in text and "<script" not in text.lower() for text in inside)
    assert page.lower().count("<script") == page.lower().count("</script>")


def test_templates_escape_all_but_what_is_made_here():
    templates = [path.read_text("utf-8") for path in PAGE.glob("*.html")]
    assert len(templates) >= 5
    unescaped = {name for text in templates for name in re.findall(r"([\w.]+)\|safe", text)}
    assert unescaped == {"meta", "one.diagram", "line.bar", "line.spark"}
    assert not any("autoescape" in text or "| safe" in text for text in templates)


def test_json_in_the_page_is_the_value():
    value = {NASTY: [NASTIER, "\u2028", "ü", None, 0.1]}
    assert json.loads(script_json(value)) == value
    assert "<" not in script_json(value)


def test_a_measure_null_throughout_is_listed_with_its_reason():
    n = 4
    table = report_rows(
        filled(
            [("a", n)],
            precision=pa.nulls(n, pa.float64()),
            brier=pa.nulls(n, pa.float64()),
            reason=pa.array(["precision: no predicted positives in window"] * n),
        )
    )
    assert null_reasons(table, ("auc", "precision", "brier")) == {
        "precision": "no predicted positives in window",
        "brier": "not asked for",
    }
    page = report_page(table)
    assert "Precision (no predicted positives in window)" in page
    assert "precision" not in meta(page)["drawn"]


def test_dead_letters_are_counted_by_kind_and_reason():
    letters = [
        ("invalid", "score is not a number"),
        ("late", "later than allowed"),
        ("unmatched", "no label within ttl"),
        ("invalid", "score is not a number"),
    ]
    table = pa.Table.from_pylist(
        [{"kind": kind, "reason": reason, "source": "f"} for kind, reason in letters], DEAD_LETTER_SCHEMA
    )
    counters = count_dead_letters(table)
    assert counters.lost[0] == ("invalid", "score is not a number", 2)
    assert [counters.total(kind) for kind in ("invalid", "late", "unmatched", "duplicate")] == [2, 1, 1, 0]
    page = report_page(report_rows(filled([("a", 3)])), Tables(counters=counters))
    for label, count in (("Dead letters", 2), ("Late", 1), ("Unmatched", 1), ("Applied", 300)):
        assert f"<dt>{label}</dt><dd>{count}</dd>" in page
    assert "<dt>Duplicate</dt>" not in page  # 0 would suggest that something was looked for
    for kind in ("late", "unmatched", "duplicate"):
        assert f"{kind}: " in re.search("<details.*?</details>", page, re.DOTALL).group()
    assert "2 &times; score is not a number (invalid)" in page


def test_the_title_of_one_model_names_it():
    one, two = (report_rows(filled([(name, 3) for name in names])) for names in ("m", "mn"))
    assert "<h1>How well m ranks and decides</h1>" in report_page(one)
    assert "<h1>How well the models rank and decide</h1>" in report_page(two)
    assert "<h1>Mine</h1>" in report_page(one, title="Mine")


def test_without_counters_the_page_says_how_to_have_them():
    page = report_page(report_rows(filled([("a", 3)])))
    assert "Dead letters were not given." in page
    assert "--dead-letters FILE" in page
    assert "--curves FILE" in page


def test_counters_that_are_given_are_shown():
    counters = EventCounters(read=1_234_567, applied=1_234_000, lost=(("duplicate", "seen before", 567),))
    page = report_page(report_rows(filled([("a", 3)])), Tables(counters=counters))
    for words in ("<dt>Events read</dt><dd>1,234,567</dd>", "<dt>Applied</dt><dd>1,234,000</dd>",
                  "<dt>Duplicate</dt><dd>567</dd>", "<dt>Dead letters</dt><dd>0</dd>"):  # fmt: skip
        assert words in page


@pytest.mark.parametrize(
    "module",
    ["report.cd_diagram", "report.data", "report.report", "report.report_rows", "report.verdicts", "words"],
)
def test_examples_are_true(module):
    failed, tried = doctest.testmod(import_module(f"rocsteady.pipelines.{module}"))
    assert (failed, tried > 0) == (0, True)


# ---- the command


@pytest.fixture
def folder(tmp_path, monkeypatch, rows):
    monkeypatch.chdir(tmp_path)
    pq.write_table(rows, "rows.parquet")
    pq.write_table(ROW_SCHEMA.empty_table(), "none.parquet")
    pq.write_table(pa.table({"score": [0.5]}), "scores.parquet")
    Path("rows.csv").write_text("model,slice,seq,window_events,auc\nm,,abc,5,0.5\n")
    Path("fake.parquet").write_text("no parquet at all")
    Path("empty.csv").write_text("")
    Path("folder.html").mkdir()
    return tmp_path


def test_the_command_writes_one_page(folder, capsys):
    before = set(names())
    for option in ("--output", "-o"):
        ran = call(capsys, "report", "rows.parquet", option, "r.html", "--title", "Flights & more")
        assert (ran.status, ran.out, len(ran.lines)) == (0, "", 1), ran
        assert re.fullmatch(r"rocsteady: \d+ rows in r\.html \(\d\.\d MB, \d+\.\d s\)", ran.lines[0])
        assert set(names()) == {*before, "r.html"}
        assert "<title>Flights &amp; more</title>" in Path("r.html").read_text()
        Path("r.html").unlink()


def test_the_same_rows_give_the_same_page(folder):
    table = pq.read_table("rows.parquet")
    write_report(table, "a.html")
    write_report(table.take(np.arange(len(table))[::-1]), "b.html")
    assert Path("a.html").read_bytes() == Path("b.html").read_bytes()


def test_rows_that_are_empty_give_a_page_that_says_so(folder, capsys):
    ran = call(capsys, "report", "none.parquet", "-o", "r.html")
    assert ran.status == 0
    assert "There are no rows to show" in Path("r.html").read_text()


MISTAKES = {
    "report": "ROWS report --help",
    "report rows.parquet": "--output report --help",
    "report nope.parquet -o r.html": "nope.parquet does not exist",
    "report *.jsonl -o r.html": "*.jsonl matches no file",
    "report scores.parquet -o r.html": "scores.parquet no rows 'model' score rocsteady evaluate --output",
    "report rows.csv -o r.html": "rows.csv abc rocsteady evaluate --output",
    "report fake.parquet -o r.html": "fake.parquet",
    "report empty.csv -o r.html": "empty.csv is empty",
    "report rows.parquet --curves rows.parquet -o r.html": "no curves rocsteady evaluate --curves",
    "report rows.parquet --dead-letters rows.parquet -o r.html": "no dead letters --dead-letters",
    "report rows.parquet -o r.txt": "r.txt .html",
    "report rows.parquet -o -": "--output - file",
    "report rows.parquet -o none/r.html": "none/r.html folder none does not exist",
    "report rows.parquet -o folder.html": "folder.html is a folder",
    "report rows.parquet -o r.html --confidence 95": "--confidence '95' between 0 and 1",
    "report rows.parquet -o r.html --confidence high": "--confidence 'high' between 0 and 1",
    "report rows.parquet -o r.html --frob": "'--frob' report --help",
}


@pytest.mark.parametrize("words", MISTAKES)
def test_a_mistake_is_one_sentence_and_leaves_nothing(words, folder, capsys):
    before = names()
    ran = call(capsys, *words.split())
    assert (ran.status, ran.out, len(ran.lines)) == (2, "", 1), ran
    for word in MISTAKES[words].split():
        assert word in ran.lines[0]
    assert names() == before


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_told_before_any_work(folder, capsys):
    Path("locked").mkdir(mode=0o500)
    ran = call(capsys, "report", "rows.parquet", "-o", "locked/r.html")
    assert (ran.status, len(ran.lines)) == (2, 1)
    assert "locked cannot be written to" in ran.lines[0]


def test_help_has_examples_and_loads_nothing_heavy():
    program = """if True:
        import sys
        from rocsteady.pipelines.cli import main
        try:
            main(["report", "--help"])
        except SystemExit:
            pass
        heavy = {"apache_beam", "numba", "numpy", "pyarrow", "jinja2", "plotly", "scipy"} & sys.modules.keys()
        sys.exit(f"imported: {heavy}" if heavy else 0)"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert "examples:\n  rocsteady report rows.parquet --output report.html" in done.stdout


# ---- an attacker's files


def test_a_report_never_takes_the_place_of_its_input(rows, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_table(rows, "rows.parquet")
    Path("page.html").symlink_to("rows.parquet")
    before = Path("rows.parquet").read_bytes()
    ran = call(capsys, "report", "rows.parquet", "-o", "page.html")
    assert ran.status == 2
    assert "is also an input" in ran.lines[-1]
    assert Path("rows.parquet").read_bytes() == before


def test_rows_without_their_counts_are_damaged(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("d.jsonl").write_text('{"model":"a","slice":"","seq":1,"window_events":1}\n{"model":"b"}\n')
    ran = call(capsys, "report", "d.jsonl", "-o", "o.html")
    assert ran.status == 2
    assert "d.jsonl is damaged: 1 of its rows have no number in the column 'seq'" in ran.lines[-1]
    assert names(".") == ["d.jsonl"]


def test_curves_are_not_taken_for_rows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_table(CURVE_SCHEMA.empty_table(), "c.parquet")
    ran = call(capsys, "report", "c.parquet", "-o", "o.html")
    assert ran.status == 2
    assert "c.parquet holds curves, not rows; give it with --curves" in ran.lines[-1]


def test_an_infinite_auc_is_none(rows, tmp_path):
    place = ROW_SCHEMA.get_field_index("auc")
    infinite = rows.set_column(place, ROW_SCHEMA.field("auc"), pa.array([float("inf")] * len(rows)))
    assert write_report(infinite, tmp_path / "o.html") > 1_000_000
    assert np.isnan(report_rows(infinite).columns["auc"]).all()


def test_a_model_whose_name_reads_like_an_infinity_keeps_it(rows, tmp_path):
    for name in ("a: 1e999 b", 'a": 1e999', "1e999"):
        named = rows.set_column(0, ROW_SCHEMA.field("model"), pa.array([name] * len(rows)))
        write_table(named, tmp_path / "r.jsonl")
        table, _ = read_tables([str(tmp_path / "r.jsonl")], "rows")
        assert set(table["model"].to_pylist()) == {name}


def test_panes_without_times_follow_each_other_by_their_ends(rows):
    n = len(rows)
    ends = pa.array([1_000_000 * (1 + i // 3) for i in range(n)], pa.timestamp("us", "UTC"))
    table = rows
    for name, column in (
        ("pane_start", ends),
        ("pane_end", ends),
        ("time", pa.nulls(n, pa.timestamp("us", "UTC"))),
    ):
        table = table.set_column(ROW_SCHEMA.get_field_index(name), ROW_SCHEMA.field(name), column)
    shown = report_rows(table).columns
    assert np.array_equal(shown["time"], shown["pane_end"])
    assert meta(report_page(report_rows(table)))["times"]


def test_a_title_that_is_no_text_is_refused(rows, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_table(rows, "rows.csv")
    ran = call(capsys, "report", "rows.csv", "-o", "o.html", "--title", "\udcff bad")
    assert ran.status == 2
    assert "is not UTF-8; give another" in ran.lines[-1]
