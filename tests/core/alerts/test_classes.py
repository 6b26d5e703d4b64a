"""Rules on models with a score of each class watch the right rows, and take no class for another."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import rocsteady as rs
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.alerts.alert_rows import AlertRow, WatchedRows
from rocsteady.core.alerts.columns import OF_ONE_CLASS, RULE_COLUMNS
from rocsteady.core.alerts.table import AlertTable
from rocsteady.core.errors import InputError, WireError
from rocsteady.core.events.records import EndOfInput
from rocsteady.core.rows.class_rows import ClassRow
from rocsteady.core.rows.columns import COLUMNS
from rocsteady.core.rows.measure_table import MEASURES, PROBABILITY_MEASURES
from rocsteady.core.rows.records import MeasureRow

from tests.support.oracles.alerts import Moment, moments_of
from tests.support.streams.batches import flips, truncations
from tests.support.thorough import examples

NAMES = ("cat", "country=NZ", 'a, "b"', "x|y", " ü ", "")
"""Names that might be taken for others; "" stands for the row of all classes."""

OF_ALL = [
    rs.parse_alert(text)
    for text in (
        "auc_macro < 0.6",
        "auc_m_high < 0.7 for 2 rows until auc_m > 0.8",
        "auc_macro drops against 2 rows",
        "auc_weighted drops by 0.05 against 30s for 2 rows until auc_weighted > 0.7",
        "worst_class_auc drops by 0.2 against 2 rows",
        "kappa < 0.3",
        "kappa < 0.3 where slice = ''",
        "window_events > 20",
    )
]
OF_EACH = [
    rs.parse_alert(text)
    for text in (
        "auc < 0.6",
        "auc drops against 2 rows",
        "positives < 30",
        "kappa < 0.3 until auc > 0.7",
        "kappa < 0.3 where class like '*'",
        "kappa < 0.3 where class != 'cat' and slice = ''",
        "auc < 0.6 where class = 'country=NZ'",
        "auc_high < 0.8 where class not like 'x*' at most 2 a day",
    )
]
RULES = [*OF_ALL, *OF_EACH]
NOTHING = ClassRow._make((None,) * len(ClassRow._fields))


def history(pick: Callable[[Sequence[Any]], Any], name: str, slice_: str) -> list[ClassRow]:
    """Rows of a class or of all classes, in order: windows slide, classes are absent and come later."""
    rows = []
    seq = time = begin = 0
    for row in range(pick(range(13))):
        seq += pick(range(1, 31))
        time += pick([10, 30, 0]) * 1_000_000
        begin = max(begin, seq - pick([1, 30, 100]))
        value = pick([None, 0.0, 0.55, 0.6, 0.75, 0.9, 1.0])
        half = pick([0.01, 0.1, 0.0, 0.9])
        ends = (None, None)
        if value is not None and pick(range(6)):
            ends = max(0.0, value - half), min(1.0, value + half)
        fields: dict[str, Any] = {}
        for mean in ("auc",) if name else ("auc_macro", "auc_weighted", "auc_m"):
            fields |= {mean: value, f"{mean}_low": ends[0], f"{mean}_high": ends[1]}
        if name:
            fields |= {"positives": pick([30.0, 500.0, 29.0]), "negatives": 500.0}
        else:
            absent = pick([(), (), ("cat",)])
            fields |= {"worst_class_auc": value, "classes": NAMES[:-1], "classes_absent": absent}
        rows.append(
            NOTHING._replace(
                model="m", slice=slice_, class_=name or None, row=row, seq=seq, time=time, config="",
                window_events=seq - begin, window_start=pick([time, 0, None]), **fields,
                kappa=pick([None, -1.0, 0.4, 1.0]),
            )
        )  # fmt: skip
    return rows


Histories = dict[tuple[str, str], list[ClassRow]]


def histories_of(pick: Callable[[Sequence[Any]], Any]) -> Histories:
    return {(slice_, name): history(pick, name, slice_) for slice_ in ("", "cat") for name in NAMES}


@st.composite
def histories(draw: Any) -> Histories:
    return histories_of(random.Random(draw(st.integers(0, 2**32))).choice)


def together(given: Histories) -> list[ClassRow]:
    return sorted((row for rows in given.values() for row in rows), key=lambda row: row.row)


def watched(rows: Sequence[Any], rules: Any = RULES) -> list[AlertRow]:
    return AlertTable(rules).watch(rows)


def moments(alerts: list[AlertRow]) -> list[Moment]:
    return [Moment(each.state, each.row, each.since_row, each.value, each.reference_row) for each in alerts]


def uncapped(rule: rs.AlertRule) -> rs.AlertRule:
    return rs.parse_alert(str(rule).partition(" at most ")[0])


@settings(max_examples=examples(60), deadline=None)
@given(histories())
def test_each_rule_opens_and_closes_where_a_slow_reading_of_its_rows_says(by_key: Histories) -> None:
    rules = [uncapped(rule) for rule in RULES]
    alerts = watched(together(by_key), rules)
    for place, rule in enumerate(rules):
        for (slice_, name), rows in by_key.items():
            found = [
                each
                for each in alerts
                if (each.rule, each.slice, each.class_ or "") == (str(rule), slice_, name)
            ]
            is_watched = bool(name) == (place >= len(OF_ALL))
            for test in rule.where:
                is_watched &= test.holds({"slice": slice_, "class": name}[test.column])
            assert moments(found) == (moments_of(rule, rows) if is_watched else []), (rule, name)


def test_the_histories_open_and_close_alerts_of_every_rule() -> None:
    """Else the comparison with the slow reading would say nothing of a rule."""
    seen = {
        (alert.rule, alert.state)
        for seed in range(150)
        for alert in watched(together(histories_of(random.Random(seed).choice)))
    }
    assert seen == {(str(rule), state) for rule in RULES for state in ("open", "closed")}


@settings(max_examples=examples(40), deadline=None)
@given(histories(), st.randoms(use_true_random=False))
def test_order_repeats_and_restarts_change_nothing(given: Histories, chance: random.Random) -> None:
    rules = [uncapped(rule) for rule in RULES]
    rows = together(given)
    expected = sorted(watched(rows, rules), key=repr)
    shuffled = [*rows, *chance.sample(rows, len(rows) // 2)]
    chance.shuffle(shuffled)
    table, alerts = AlertTable(rules), []
    while shuffled:
        part = [shuffled.pop() for _ in range(min(len(shuffled), chance.randrange(1, 9)))]
        alerts += table.apply(WatchedRows.of_records(part, table.columns).pack())
        if chance.random() < 0.5:
            state = table.to_bytes()
            assert table.snapshot_bytes() == len(state)
            table = AlertTable.from_bytes(state, rules)
            assert table.to_bytes() == state
    assert table.apply(EndOfInput().pack()) == []
    assert sorted(alerts, key=repr) == expected


def evaluated(names: Sequence[str] = ("cat", "dog", "owl"), **choices: Any) -> Any:
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 2, 1_500)
    labels[600:] = rng.integers(0, len(names), 900)  # the last classes come late
    better = np.where(np.arange(1_500) < 1_000, 0.9, 0.1)[:, None]
    scores = rng.random((1_500, len(names))) + better * np.eye(len(names))[labels]
    evaluator = rs.MulticlassEvaluator(
        names, window=rs.LastEvents(200), every=rs.EveryEvents(50), model="m", **choices
    )
    return evaluator.update(np.array(names)[labels], scores)


def test_rows_in_columns_and_single_rows_are_watched_alike() -> None:
    rows = evaluated()
    table = AlertTable(RULES)
    in_columns = WatchedRows.of(rows, table.columns).covered(RULES)
    single = WatchedRows.of(list(rows), table.columns).covered(RULES)

    def cells(watched: WatchedRows) -> list[Any]:
        keys = [watched.keys[code] for code in watched.key_codes]
        return sorted(zip(keys, watched.integers.tolist(), map(repr, watched.numbers.tolist()), strict=True))

    assert cells(in_columns) == cells(single)
    assert sorted(table.watch(rows), key=repr) == sorted(watched(list(rows)), key=repr)
    assert WatchedRows.unpack(single.pack()).pack() == single.pack()
    for damaged in [*truncations(single.pack()[:400]), *flips(single.pack()[:200])]:
        with pytest.raises(WireError):
            WatchedRows.unpack(damaged)


@pytest.mark.parametrize("names", [("cat", "slice=", "a, 'b'", "x|y", "m"), ("1", "1.5", "false")])
def test_an_alert_names_its_class_and_no_other(names: tuple[str, ...]) -> None:
    rows = evaluated(names)
    for name in names:
        said = name.replace("'", "''")
        [rule] = [rs.parse_alert(f"positives < 1000 where class = '{said}'")]
        assert {alert.class_ for alert in watched(rows, [rule])} == {name}
    alerts = watched(rows, [rs.parse_alert("positives < 1000"), rs.parse_alert("window_events > 0")])
    assert sorted(alert.class_ or "" for alert in alerts) == sorted(["", *names])
    assert len({alert.message for alert in alerts}) == len(names) + 1
    assert [alert.message for alert in alerts if alert.class_ == names[-1]] == [
        f"m, class {names[-1]}: alert opened at row 0: positives 0 < 1000 (rule: positives < 1000)"
    ]


def test_a_class_that_comes_late_has_no_values_before_and_no_mean_counts_it() -> None:
    rows = evaluated()
    alerts = watched(rows, [rs.parse_alert(text) for text in ("auc > 0", "auc_macro drops against 4 rows")])
    opened = {(alert.class_, alert.column): alert.row for alert in alerts if alert.state == "open"}
    assert opened["cat", "auc"] == opened["dog", "auc"] == 0
    present = [row.row for row in rows if row.class_ == "owl" and row.auc is not None]
    assert opened["owl", "auc"] == present[0] > 5
    whole = [row.row for row in rows if row.class_ is None and not row.classes_absent]
    assert opened[None, "auc_macro"] >= whole[0] + 4


def test_the_columns_that_the_row_of_all_classes_lacks_are_those_of_one_class() -> None:
    rows = evaluated(measures="all", probabilities=False, evidence_below=0.8)
    row = rows[-4]
    assert row.class_ is None
    nulls = {name for name in RULE_COLUMNS if getattr(row, name) is None}
    of_one = OF_ONE_CLASS.intersection(RULE_COLUMNS)
    assert nulls == {*of_one, "drift"}
    of_class = rows[-1]
    assert all(getattr(of_class, name) is not None for name in of_one - {*PROBABILITY_MEASURES})
    assert {*MEASURES} < {*COLUMNS}


def test_rows_without_classes_and_rules_that_need_them_are_a_named_error() -> None:
    rows = rs.ModelEvaluator(every=rs.EveryEvents(3), model="m").update([0, 1, 0], [0.1, 0.9, 0.2])
    with pytest.raises(InputError, match="rows of models with one score have no 'auc_macro'"):
        watched(rows, [rs.parse_alert("auc_macro < 0.5")])
    with pytest.raises(
        InputError, match=r"'MeasureRow' has no 'auc_macro'.*models with a score of each class"
    ):
        watched(list(rows), [rs.parse_alert("auc_macro < 0.5")])
    for some in (rows, list(rows)):
        with pytest.raises(InputError, match="score of each class have 'where class'; leave the rule out"):
            watched(some, [rs.parse_alert("kappa < 0.5 where class = 'a'")])


def test_one_table_watches_models_with_one_score_and_models_with_classes() -> None:
    rules = [rs.parse_alert(text) for text in ("auc > 0", "kappa > -2")]
    plain = rs.ModelEvaluator(every=rs.EveryEvents(3), model="plain").update([0, 1, 0], [0.1, 0.9, 0.2])
    mixed: list[MeasureRow | ClassRow] = [*plain, *evaluated()]
    table = AlertTable(rules)
    packed = WatchedRows.of_records(mixed, table.columns).pack()
    found = table.apply(packed)
    assert {(each.model, each.class_, each.column) for each in found if each.state == "open"} == {
        ("plain", None, "auc"), ("plain", None, "kappa"), ("m", None, "kappa"),
        *(("m", name, "auc") for name in ("cat", "dog", "owl")),
    }  # fmt: skip
    again = AlertTable.from_bytes(table.to_bytes(), rules)
    assert again.to_bytes() == table.to_bytes()
    assert len(table.to_bytes()) == table.snapshot_bytes()


def test_a_state_of_classes_cut_short_or_damaged_is_a_named_error() -> None:
    table = AlertTable(
        [rs.parse_alert("auc drops against 2 rows"), rs.parse_alert("kappa < 0 at most 1 a day")]
    )
    rows = evaluated()
    table.watch(rows[-8:])
    data = table.to_bytes()
    for damaged in [*truncations(data), *flips(data)]:
        with pytest.raises(WireError):
            AlertTable.from_bytes(damaged)


def test_a_cap_counts_the_alerts_of_a_model_over_its_classes() -> None:
    capped = watched(evaluated(), [rs.parse_alert("auc > 0 at most 2 a day")])
    assert [(alert.class_, alert.row) for alert in capped] == [("cat", 0), ("dog", 0)]
