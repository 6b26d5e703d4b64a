"""Alerts are what a slow reading of the rows says, in whatever order these come, over every restart."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import rocsteady as rs
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.alerts import caps
from rocsteady.core.alerts import rule_state as alert_watch
from rocsteady.core.alerts.alert_rows import AlertRow, WatchedRows
from rocsteady.core.alerts.table import AlertTable
from rocsteady.core.errors import (
    ConfigError,
    CorruptBytesError,
    ForeignBytesError,
    FutureVersionError,
    OtherConfigurationError,
    TruncatedBytesError,
    WireError,
)
from rocsteady.core.events.batch import EventBatch
from rocsteady.core.events.columns import TextColumn
from rocsteady.core.events.records import EndOfInput, EndOfPartition
from rocsteady.core.rows.columns import COLUMNS
from rocsteady.core.rows.records import MeasureRow

from tests.support.oracles.alerts import Moment, moments_of
from tests.support.streams.batches import flips, truncations, with_right_checksum
from tests.support.thorough import examples

NOTHING = MeasureRow._make((None,) * len(COLUMNS))
RULES = [
    rs.parse_alert(text)
    for text in (
        "auc < 0.6",
        "auc <= 0.5 for 3 rows until auc_low > 0.5 for 2 rows",
        "auc_high < 0.7 for 40s until auc > 0.8 for 20s",
        "kappa >= 1 until kappa <= 0",
        "auc drops against 3 rows",
        "auc drops by 0.05 against 30s for 2 rows",
        "auc rises by 0.01 against 1 row until auc < 0.5",
        "kappa drops by 0.5 against 2 rows for 15s",
        "auc drops against 1970-01-01..1970-01-01T00:00:41",
        "kappa rises by 0 against 1970-01-01..1970-01-01T00:00:30 until kappa < 1 for 3 rows",
    )
]


def measured(row: int, **fields: Any) -> MeasureRow:
    return NOTHING._replace(model="m", slice="", row=row, config="", **fields)


def history(pick: Callable[[Sequence[Any]], Any]) -> list[MeasureRow]:
    """Rows of one key in order: windows that slide, shrink and jump, times and measures that may be null."""
    rows = []
    seq = time = begin = 0
    timed, gridded = pick([True, True, False]), pick([True, False])
    for row in range(pick(range(41))):
        seq += pick(range(1, 31))
        time += pick([10, 1, 5, 30, 0]) * 1_000_000
        begin = max(begin, seq - pick([1, 10, 30, 100]))
        start = pick([time, time, max(0, time - 10_000_000), 0, None])
        auc = pick([None, 0.0, 0.5, 0.55, 0.6, 0.75, 0.9, 1.0])
        half = pick([0.01, 0.02, 0.1, 0.0, 0.9])
        has_interval = auc is not None and pick(range(6)) > 0
        rows.append(
            measured(
                row,
                seq=seq,
                time=time if timed else None,
                due=time + 500_000 if timed and gridded else None,
                window_events=seq - begin,
                window_start=start if timed else None,
                positives=float(pick([30, 500, 29])),
                negatives=float(pick([30, 500, 29])),
                auc=auc,
                auc_low=max(0.0, auc - half) if has_interval else None,
                auc_high=min(1.0, auc + half) if has_interval else None,
                kappa=pick([None, -1.0, 0.0, 0.4, 1.0]),
            )
        )
    return rows


@st.composite
def histories(draw: Any) -> list[MeasureRow]:
    return history(lambda options: draw(st.sampled_from(options)))


def record(table: AlertTable, rows: list[MeasureRow]) -> bytes:
    return WatchedRows.of_records(rows, table.columns).pack()


def alerts_of(rows: list[MeasureRow], rules: Any = RULES) -> list[AlertRow]:
    table = AlertTable(rules)
    return table.apply(record(table, rows))


def moments(alerts: list[AlertRow], rule: rs.AlertRule) -> list[Moment]:
    return [
        Moment(alert.state, alert.row, alert.since_row, alert.value, alert.reference_row)
        for alert in alerts
        if alert.rule == str(rule)
    ]


@settings(max_examples=examples(100))
@given(histories())
def test_every_rule_opens_and_closes_where_a_slow_reading_of_the_rows_says(rows: list[MeasureRow]) -> None:
    alerts = alerts_of(rows)
    for rule in RULES:
        assert moments(alerts, rule) == moments_of(rule, rows), str(rule)


def test_the_histories_open_and_close_alerts_of_every_rule() -> None:
    """Else the comparison with the slow reading would say nothing of a rule."""
    seen = {
        (alert.rule, alert.state)
        for seed in range(600)
        for alert in alerts_of(history(random.Random(seed).choice))
    }
    assert seen == {(str(rule), state) for rule in RULES for state in ("open", "closed")}


@pytest.mark.slow
@settings(max_examples=examples(100))
@given(histories(), histories(), st.randoms(use_true_random=False))
def test_order_repeats_and_restarts_change_nothing(
    one: list[MeasureRow], other: list[MeasureRow], chance: random.Random
) -> None:
    keys = [("m", "", None, None), ("m", "a=1", None, None), ("ü", "", None, None), ("m", "", 0, 60)]
    rows = [
        row._replace(model=model, slice=slice_, pane_start=start, pane_end=end)
        for place, (model, slice_, start, end) in enumerate(keys)
        for row in (one, other)[place % 2]
    ]
    expected = sorted(alerts_of(rows), key=repr)
    shuffled = [*rows, *chance.sample(rows, len(rows) // 2)]
    chance.shuffle(shuffled)
    table, alerts = AlertTable(RULES), []
    while shuffled:
        part = [shuffled.pop() for _ in range(min(len(shuffled), chance.randrange(1, 9)))]
        alerts += table.apply(record(table, part))
        if chance.random() < 0.5:
            state = table.to_bytes()
            assert table.snapshot_bytes() == len(state)
            table = AlertTable.from_bytes(state, RULES)
            assert table.to_bytes() == state
    assert table.apply(EndOfInput().pack()) == []
    assert sorted(alerts, key=repr) == expected


SCOPES = (
    "slice = ''",
    "slice like '?=*'",
    "model = 'm'",
    "model not like 'ü*' and slice != 'b='",
    "model like '*'",
)
NAMES = [("m", ""), ("m", "a=1"), ("m", "b="), ("ü", ""), ("ü", "a=1")]


@settings(max_examples=examples(50))
@given(st.lists(histories(), min_size=len(NAMES), max_size=len(NAMES)), st.data())
def test_a_rule_with_a_scope_is_the_rule_over_the_rows_of_its_scope(
    histories_: list[list[MeasureRow]], data: Any
) -> None:
    rows = [
        row._replace(model=model, slice=slice_)
        for (model, slice_), rows in zip(NAMES, histories_, strict=True)
        for row in rows
    ]
    rules = data.draw(st.lists(st.sampled_from(RULES), min_size=1, max_size=3, unique=True))
    scopes = [data.draw(st.sampled_from(SCOPES)) for _ in rules]
    scoped = [rs.parse_alert(f"{rule} where {scope}") for rule, scope in zip(rules, scopes, strict=True)]
    table = AlertTable(scoped)
    cut = data.draw(st.integers(0, len(rows)))
    alerts = table.apply(record(table, rows[:cut]))
    table = AlertTable.from_bytes(table.to_bytes(), scoped)
    alerts += table.apply(record(table, rows[cut:]))
    for plain, rule in zip(rules, scoped, strict=True):
        for name in NAMES:
            mine = [row for row in rows if (row.model, row.slice) == name]
            found = [alert for alert in alerts if (alert.model, alert.slice) == name]
            assert moments(found, rule) == (moments_of(plain, mine) if rule.covers(*name) else [])


def test_rows_out_of_every_scope_leave_nothing_in_the_state() -> None:
    rules = [rs.parse_alert(f"{rule} where slice = ''") for rule in ("auc < 0.6", "h < 0.1")]
    table = AlertTable([*rules, rs.parse_alert("kappa < 0.1 where model = 'none'")])
    empty = table.to_bytes()
    rows = [row._replace(slice=f"a={n}") for n in range(50) for row in falling()]
    assert table.apply(record(table, rows)) == table.watch(rows) == []
    assert table.to_bytes() == empty
    assert (table.gauges(), set(table.counts().values())) == ({"alert_series": 0}, {0})
    table.apply(record(table, [*rows, *falling()]))
    one = table.snapshot_bytes() - len(empty)
    assert table.gauges() == {"alert_series": 1}
    everywhere = AlertTable([rs.parse_alert("auc < 0.6"), rs.parse_alert("h < 0.1"), table.rules[2]])
    everywhere.apply(record(everywhere, [*rows, *falling()]))
    assert everywhere.snapshot_bytes() > 40 * one


DAY = 86_400_000_000


def days_of(n: int, days: int, chance: random.Random) -> list[MeasureRow]:
    """Rows of one key in order of time whose AUC is below 0.6 now and then, over so many days."""
    times = sorted(chance.randrange(days * DAY) for _ in range(n))
    return [
        measured(row, seq=row + 1, window_events=1, time=time, auc=chance.choice([0.5, 0.9]))
        for row, time in enumerate(times)
    ]


@settings(max_examples=examples(60))
@given(st.randoms(use_true_random=False), st.integers(1, 4))
def test_of_the_alerts_of_a_model_and_day_at_most_so_many_are_told(chance: random.Random, cap: int) -> None:
    """In any order of rows: so many are told, each with its closing, as a table without a cap knows them."""
    keys = [("m", "", None, None), ("m", "a=1", None, None), ("ü", "", None, None), ("m", "", 0, 60)]
    rows = [
        row._replace(model=model, slice=slice_, pane_start=start, pane_end=end)
        for model, slice_, start, end in keys
        for row in days_of(chance.randrange(40), 3, chance)
    ]
    rule = rs.parse_alert(f"auc < 0.6 at most {cap} a day")
    plain = alerts_of(rows, [rs.parse_alert("auc < 0.6")])
    chance.shuffle(rows)
    table, told = AlertTable([rule]), []
    while rows:
        part = [rows.pop() for _ in range(min(len(rows), chance.randrange(1, 9)))]
        told += table.apply(record(table, part))
        if chance.random() < 0.5:
            state = table.to_bytes()
            assert table.snapshot_bytes() == len(state)
            table = AlertTable.from_bytes(state, [rule])
            assert table.to_bytes() == state
    as_plain = [
        alert._replace(rule="auc < 0.6", message=alert.message.replace(str(rule), "auc < 0.6"))
        for alert in told
    ]
    assert {*as_plain} <= {*plain}

    def by_day(alerts: list[AlertRow]) -> Counter[Any]:
        return Counter((one.model, one.pane_start, one.time // DAY) for one in alerts if one.state == "open")

    assert by_day(told) == {day: min(number, cap) for day, number in by_day(plain).items()}
    opened = {(one.model, one.slice, one.pane_start, one.row) for one in told if one.state == "open"}
    closed = [one for one in plain if one.state == "closed"]
    expected = [one for one in closed if (one.model, one.slice, one.pane_start, one.since_row) in opened]
    assert {one for one in as_plain if one.state == "closed"} == {*expected}


def test_the_first_of_a_day_are_told_in_order_of_time_and_the_others_are_counted() -> None:
    table = AlertTable([rs.parse_alert("auc < 0.6 at most 2 a day")])
    hour = DAY // 24
    opening = {"": 9, "a=1": 3, "a=2": 5}
    rows = [
        row._replace(slice=slice_, due=(at + row.row) * hour)
        for slice_, at in opening.items()
        for row in (
            measured(0, seq=1, window_events=1, auc=0.5),
            measured(1, seq=2, window_events=1, auc=0.9),
        )
    ]
    alerts = table.watch(rows)
    assert [(alert.slice, alert.state) for alert in alerts] == [
        ("a=1", "open"), ("a=1", "closed"), ("a=2", "open"), ("a=2", "closed"),
    ]  # fmt: skip
    again = [row._replace(row=row.row + 2, due=row.due + DAY) for row in rows]
    assert [alert.slice for alert in table.watch(again)] == ["a=1", "a=1", "a=2", "a=2"]
    counts = table.counts()
    assert [counts[f"alerts_{word}"] for word in ("opened", "closed", "capped")] == [4, 4, 2]


def test_rows_without_a_time_are_all_of_one_day() -> None:
    table = AlertTable([rs.parse_alert("auc < 0.6 at most 2 a day")])
    rows = [measured(row, seq=row + 1, window_events=1, auc=0.5 if row % 2 else 0.9) for row in range(100)]
    assert [alert.row for alert in table.watch(rows)] == [1, 2, 3, 4]
    assert table.counts()["alerts_capped"] == 48


def test_days_long_past_leave_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caps, "MOST_DAYS", 5)
    table = AlertTable([rs.parse_alert("auc < 0.6 at most 1 a day")])
    rows = [
        measured(row, seq=row + 1, window_events=1, auc=0.9 if row % 2 else 0.5, time=row * DAY // 4)
        for row in range(400)
    ]
    sizes = [table.snapshot_bytes() for row in rows if table.watch([row]) is not None]
    assert max(sizes[50:]) == min(sizes[50:]) == len(table.to_bytes())
    assert table.counts()["alerts_opened"] == table.counts()["alerts_capped"] == 100
    state = AlertTable.from_bytes(table.to_bytes())
    for day, told in ((99, 0), (95, 0), (94, 1), (94, 1)):
        slice_ = f"day={day}, {told}, {state.counts()['alert_rows']}"
        row = measured(0, seq=1, window_events=1, auc=0.5, time=day * DAY)._replace(slice=slice_)
        assert len(state.watch([row])) == told, day


def test_a_message_is_one_line_whatever_the_rule_holds() -> None:
    rows = [row._replace(model="a\nb") for row in falling()]
    alert, *_ = alerts_of(rows, [rs.parse_alert("auc < 0.6 where model = 'a\nb'")])
    assert "\n" not in alert.message
    assert alert.message.endswith("(rule: auc < 0.6 where model = 'a\\nb')")


def falling(n: int = 6, **fields: Any) -> list[MeasureRow]:
    """Rows whose AUC is 0.9, then 0.5."""
    return [
        measured(row, seq=row + 1, window_events=1, auc=0.9 if row < n / 2 else 0.5, **fields)
        for row in range(n)
    ]


def test_rows_wait_for_those_before_them_and_at_the_end_of_the_input_no_more() -> None:
    table = AlertTable([rs.parse_alert("auc < 0.6 for 2 rows")])
    rows = falling()
    assert table.apply(record(table, rows[3:])) == []
    (alert,) = table.apply(EndOfInput().pack())
    assert (alert.row, alert.since_row, alert.time) == (4, 3, None)
    assert table.counts() == {
        "alert_rows": 3, "alert_rows_repeated": 0, "alerts_opened": 1, "alerts_closed": 0, "alerts_capped": 0,
    }  # fmt: skip
    assert table.apply(record(table, rows)) == []
    assert table.counts()["alert_rows_repeated"] == 6


def test_an_alert_says_where_when_by_which_figures_and_in_a_sentence() -> None:
    second = 1_000_000
    rows = [
        row._replace(
            model="churn", slice="c=NZ", time=row.row * second, due=(row.row + 1) * second, pane_start=0,
            pane_end=60 * second, auc_low=row.auc - 0.05, auc_high=row.auc + 0.05, positives=40.0,
            negatives=40.0, window_start=row.row * second,
        )
        for row in [*falling(), *(measured(at, seq=at + 1, window_events=1, auc=0.9) for at in (6, 7))]
    ]  # fmt: skip
    opened, closed = alerts_of(rows, [rs.parse_alert("auc drops by 0.1 against 2s for 2 rows")])
    assert opened == AlertRow(
        rule="auc drops by 0.1 against 2s for 2 rows", state="open", model="churn", slice="c=NZ",
        class_=None, pane_start=0, pane_end=60 * second, row=4, time=5 * second, since_row=3,
        since_time=4 * second, column="auc", value=0.5, limit=0.1, reference_row=2, reference_value=0.9,
        message=(
            "churn [c=NZ]: alert opened at row 4, 1970-01-01T00:00:05Z: auc 0.5 is 0.4 [0.329289, 0.470711] "
            "below the 0.9 of row 2 in 2 rows since row 3, 1970-01-01T00:00:04Z (rule: auc drops by 0.1 "
            "against 2s for 2 rows)"
        ),
    )  # fmt: skip
    assert closed._replace(message="") == opened._replace(
        state="closed", row=6, time=7 * second, since_row=4, since_time=5 * second, value=0.9, message=""
    )
    assert closed.message == (
        "churn [c=NZ]: alert closed at row 6, 1970-01-01T00:00:07Z: auc 0.9 is no longer significantly by "
        "more than 0.1 below the 0.9 of row 2; it was opened at row 4, 1970-01-01T00:00:05Z (rule: auc drops "
        "by 0.1 against 2s for 2 rows)"
    )


def test_hysteresis_closes_in_its_own_words() -> None:
    rows = [measured(row, seq=1, window_events=1, auc=auc) for row, auc in enumerate((0.7, 0.85, 0.9, 0.95))]
    opened, closed = alerts_of(rows, [rs.parse_alert("auc < 0.8 until auc >= 0.9 for 2 rows")])
    assert (opened.row, closed.row, closed.since_row) == (0, 3, 0)
    assert (closed.column, closed.value, closed.limit) == ("auc", 0.95, 0.9)
    assert "auc 0.95 >= 0.9 in 2 rows; it was opened at row 0 (rule:" in closed.message


def test_a_null_neither_adds_to_a_streak_nor_ends_it_nor_closes_an_alert() -> None:
    values = (0.5, None, None, 0.5, None, 0.9)
    rows = [measured(row, seq=1, window_events=1, auc=auc) for row, auc in enumerate(values)]
    alerts = alerts_of(rows, [rs.parse_alert("auc < 0.8 for 2 rows")])
    assert [(alert.state, alert.row, alert.since_row) for alert in alerts] == [
        ("open", 3, 0),
        ("closed", 5, 3),
    ]


def evaluated(seed: int, positives_at: float = 1.0) -> tuple[list[Any], list[Any]]:
    """Labels and scores of 400 events."""
    rng = np.random.default_rng(seed)
    labels = (rng.random(400) < 0.4).astype(int)
    return labels.tolist(), (rng.normal(size=400) + positives_at * labels).round(1).tolist()


def delong(labels: Any, scores: Any) -> tuple[float, float]:
    """AUC and its DeLong variance by placement values, straight from the definition."""
    labels, scores = np.array(labels), np.array(scores)
    positives, negatives = scores[labels == 1], scores[labels == 0]
    wins = (positives[:, None] > negatives) + 0.5 * (positives[:, None] == negatives)
    return float(wins.mean()), float(
        wins.mean(1).var(ddof=1) / len(positives) + wins.mean(0).var(ddof=1) / len(negatives)
    )


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.999])
def test_a_drop_of_the_auc_is_delongs_test_of_two_disjoint_windows(confidence: float) -> None:
    """Windows of 400 events, one after another: the rule opens iff the z of the difference says so."""
    from scipy.stats import norm

    opened = 0
    for seed in range(60):
        windows = [evaluated(2 * seed), evaluated(2 * seed + 1, 1.0 - seed / 60)]
        ev = rs.ModelEvaluator(
            window=rs.LastEvents(400), every=rs.EveryEvents(400), confidence=confidence, model="m"
        )
        rows = [row for labels, scores in windows for row in ev.update(labels, scores)]
        assert [row.row for row in rows] == [0, 1]
        alerts = alerts_of(rows, [rs.parse_alert("auc drops by 0.03 against 1 row")])
        (before, of_before), (after, of_after) = (delong(*window) for window in windows)
        z = (before - after - 0.03) / np.sqrt(of_before + of_after)
        assert abs(z - norm.isf((1 - confidence) / 2)) > 1e-6, "no case is on the edge"
        assert bool(alerts) == bool(z > norm.isf((1 - confidence) / 2))
        opened += len(alerts)
    assert 5 < opened < 55


def test_windows_that_share_events_are_not_compared() -> None:
    ev = rs.ModelEvaluator(window=rs.LastEvents(400), every=rs.EveryEvents(100), model="m")
    rows = [row for seed, at in ((0, 3.0), (1, 0.0), (2, 0.0)) for row in ev.update(*evaluated(seed, at))]
    alerts = alerts_of(rows, [rs.parse_alert("auc drops against 1 row")])
    assert [(alert.row, alert.reference_row) for alert in alerts] == [(4, 0)]  # the first that shares none


def test_while_an_alert_is_open_it_is_held_against_what_it_was_opened_against() -> None:
    rows = [
        measured(row, seq=row + 1, window_events=1, kappa=kappa)
        for row, kappa in enumerate((0.9, 0.9, 0.5, 0.5, 0.5, 0.5, 0.85, 0.85))
    ]
    alerts = alerts_of(rows, [rs.parse_alert("kappa drops by 0.1 against 2 rows")])
    assert [(alert.state, alert.row, alert.reference_row) for alert in alerts] == [
        ("open", 2, 0), ("closed", 6, 0),
    ]  # fmt: skip


def test_references_are_thinned_so_that_state_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A window that never lets go keeps at most so many rows; when it does, one of them serves."""
    monkeypatch.setattr(alert_watch, "MOST_REFERENCES", 8)
    table = AlertTable([rs.parse_alert("kappa drops by 0.1 against 1 row")])
    rows = [measured(row, seq=row + 1, window_events=row + 1, kappa=0.9) for row in range(100)]
    sizes = [table.snapshot_bytes() for row in rows if table.apply(record(table, [row])) == []]
    assert max(sizes) - sizes[0] <= 8 * alert_watch.REFERENCE_BYTES
    last = measured(100, seq=101, window_events=10, kappa=0.5)
    (alert,) = table.apply(record(table, [last]))
    assert 91 - 2 * 16 <= alert.reference_row <= 90


def some_state() -> AlertTable:
    table = AlertTable([rs.parse_alert("auc < 0.6"), rs.parse_alert("auc drops against 2 rows")])
    rows = [
        row._replace(auc_low=row.auc - 0.05, auc_high=row.auc + 0.05, positives=40.0, negatives=40.0)
        for row in falling(5)
    ]
    table.apply(
        record(table, [*rows, rows[-1]._replace(row=9), rows[0]._replace(model="ü\ud800", slice="a=")])
    )
    return table


def capped_state() -> AlertTable:
    """A slice whose alert is told and open, one whose alert is untold, and a slice beyond the scope."""
    table = AlertTable([rs.parse_alert("auc < 0.6 where slice like '?=*' at most 1 a day")])
    rows = [row._replace(slice=slice_, time=7) for row in falling(5) for slice_ in ("a=", "b=", "")]
    table.apply(record(table, [*rows, rows[-1]._replace(row=9), rows[0]._replace(row=8)]))
    return table


def test_a_snapshot_is_read_and_goes_on() -> None:
    table = AlertTable.from_bytes(some_state().to_bytes())
    rows = [measured(row, seq=row + 1, window_events=1, auc=0.9) for row in (5, 6)]
    assert table.apply(record(table, rows)) == some_state().apply(record(table, rows)) != []


@pytest.mark.parametrize("state", [some_state, capped_state])
def test_a_snapshot_cut_short_or_damaged_is_a_named_error(state: Callable[[], AlertTable]) -> None:
    data = state().to_bytes()
    for cut in truncations(data):
        with pytest.raises(TruncatedBytesError if cut else ForeignBytesError):
            AlertTable.from_bytes(cut)
    for damaged in flips(data):
        with pytest.raises(WireError):
            AlertTable.from_bytes(damaged)


@pytest.mark.parametrize("state", [some_state, capped_state])
def test_a_snapshot_that_contradicts_itself_is_a_named_error(state: Callable[[], AlertTable]) -> None:
    data = state().to_bytes()
    for damaged in flips(data[20:]):
        repaired = with_right_checksum(data[:20] + damaged, 20, 16)
        try:
            table = AlertTable.from_bytes(repaired)
        except WireError:
            continue
        assert len(table.to_bytes()) == table.snapshot_bytes() == len(repaired)


def test_a_snapshot_of_other_rules_or_of_a_newer_version_is_refused() -> None:
    data = some_state().to_bytes()
    with pytest.raises(OtherConfigurationError, match=r"auc drops against 2 rows.* now \['auc < 0.7'\]"):
        AlertTable.from_bytes(data, [rs.parse_alert("auc < 0.7")])
    with pytest.raises(FutureVersionError, match="version 2"):
        AlertTable.from_bytes(data[:4] + b"\2" + data[5:])


def test_bytes_that_are_no_rows_are_a_named_error() -> None:
    table = some_state()
    data = record(table, falling())
    for cut in truncations(data):
        with pytest.raises(WireError):
            table.apply(cut)
    for damaged in flips(data):
        with pytest.raises(WireError):
            table.apply(damaged)
    with pytest.raises(ForeignBytesError, match="is fed rows"):
        table.apply(EndOfPartition("f", 0, 1, 0).pack())
    batch = EventBatch(TextColumn.of(["m"]), np.array([0.5]), np.array([1], np.int8))
    with pytest.raises(ForeignBytesError, match="watched rows"):
        table.apply(batch.pack())
    with pytest.raises(OtherConfigurationError, match="kappa"):
        table.apply(WatchedRows.of_records(falling(), ("kappa",)).pack())
    codes = WatchedRows.of_records(falling(), table.columns)._replace(keys=())
    with pytest.raises(CorruptBytesError, match="more keys"):
        table.apply(codes.pack())


@pytest.mark.parametrize("rules", [[], ["auc < 0.5"], [RULES[0], rs.parse_alert("auc<.60")]])
def test_rules_that_cannot_be_are_refused(rules: Any) -> None:
    with pytest.raises(ConfigError):
        AlertTable(rules)


def test_rows_in_columns_and_as_records_are_watched_alike() -> None:
    ev = rs.ModelEvaluator(window=rs.Adaptive(), every=rs.EveryEvents(50), model="m")
    rows = ev.update(*evaluated(3))
    rows.drift[2] = 1
    table = AlertTable([*RULES, rs.parse_alert("drift > 0"), rs.parse_alert("window_events > 7")])
    columns, records = (
        WatchedRows.of_rows(rows, table.columns),
        WatchedRows.of_records(list(rows), table.columns),
    )
    assert columns.pack() == records.pack()
    assert [alert.row for alert in table.apply(columns.pack()) if alert.column == "drift"] == [2, 3]
