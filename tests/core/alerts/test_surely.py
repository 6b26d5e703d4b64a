"""Rules on evidence: where they open and close, what they remember, and how often they are wrong."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import rocsteady as rs
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.alerts.alert_rows import AlertRow
from rocsteady.core.alerts.rule_sets import with_budget
from rocsteady.core.alerts.surely import Rate, parse_budget
from rocsteady.core.alerts.table import AlertTable
from rocsteady.core.errors import ConfigError, OtherConfigurationError, WireError
from rocsteady.core.rows.columns import COLUMNS
from rocsteady.core.rows.records import MeasureRow
from scipy.stats import norm

from tests.support.thorough import at_length, examples

NOTHING = MeasureRow._make((None,) * len(COLUMNS))
RULES = ("auc surely < 0.8 at 100", "auc surely < 0.8 at 1 per 800", "auc surely < 0.8 at 20 until auc > 0.9")


def row_of(row: int, evidence: float | None, since: float | None = 0.0, **more: Any) -> MeasureRow:
    known = evidence is not None
    return NOTHING._replace(
        model="m", slice="", row=row, config="", seq=10 * (row + 1), time=row * 1_000_000, window_events=10,
        evidence=evidence, evidence_since=since if known else None, block_events=8.0 if known else None,
        **more,
    )  # fmt: skip


@st.composite
def histories(draw: Any) -> list[MeasureRow]:
    value = st.sampled_from([None, -2.0, 0.0, 1.0, 3.5, 4.61, 5.0, 9.0, 9.9, 14.0, 60.0])
    aucs = st.sampled_from([None, 0.7, 0.95])
    return [
        row_of(row, draw(value), draw(st.integers(0, 10 * row + 9)), auc=draw(aucs))
        for row in range(draw(st.integers(0, 30)))
    ]


def slowly(rows: list[MeasureRow], level: float, until: float | None) -> list[tuple[str, int]]:
    """Where alerts open and close: each row looks through all rows since the last turn."""
    found: list[tuple[str, int]] = []
    turned = -1
    for now, row in enumerate(rows):
        since = [each.evidence for each in rows[turned + 1 : now + 1] if each.evidence is not None]
        at_turn = [each.evidence for each in rows[: turned + 1] if each.evidence is not None][-1:]
        is_open = bool(found) and found[-1][0] == "open"
        if is_open and until is None:
            turns = row.evidence is not None and row.evidence <= max(at_turn + since) - level
        elif is_open:
            turns = row.auc is not None and row.auc > until
        else:
            baseline = max(0.0, min([*(at_turn if found else [0.0]), *since]))
            turns = row.evidence is not None and row.evidence >= baseline + level
        if turns:
            found.append(("closed" if is_open else "open", now))
            turned = now
    return found


@settings(max_examples=examples(200), deadline=None)
@given(histories(), st.integers(0, 30))
def test_a_rule_opens_and_closes_where_a_slow_reading_says_whatever_restarts(
    rows: list[MeasureRow], cut: int
) -> None:
    rules = [rs.parse_alert(text) for text in RULES]
    table = AlertTable(rules)
    alerts = table.watch(rows)
    for rule, level, until in zip(rules, (100, 100, 20), (None, None, 0.9), strict=True):
        mine = [(alert.state, alert.row) for alert in alerts if alert.rule == str(rule)]
        assert mine == slowly(rows, math.log(level), until)
    again = AlertTable(rules)
    parts = again.watch(rows[:cut])
    data = again.to_bytes()
    assert len(data) == again.snapshot_bytes()
    loaded = AlertTable.from_bytes(data, rules)
    assert loaded.to_bytes() == data
    assert [*parts, *loaded.watch(rows[cut:][::-1])] == alerts


def alerts_of(evidence: list[float]) -> list[AlertRow]:
    rows = [row_of(row, each) for row, each in enumerate(evidence)]
    return AlertTable([rs.parse_alert("auc surely < 0.8 at 100")]).watch(rows)


def test_an_alert_says_its_evidence_and_since_when_it_grew() -> None:
    rows = [row_of(0, 0.5, 0), row_of(1, 2.0, 13), row_of(2, 3.0, 13), row_of(3, 9.0, 12), row_of(4, 4.0, 12)]
    opened, closed = AlertTable([rs.parse_alert("auc surely < 0.8 at 100")]).watch(rows)
    assert (opened.row, opened.since_row, opened.since_time) == (3, 1, 1_000_000)
    assert (opened.column, opened.value, opened.limit) == ("evidence", 9.0, math.log(100))
    assert opened.message == (
        "m: alert opened at row 3, 1970-01-01T00:00:03Z: auc surely < 0.8: evidence 9 >= 4.60517, which grew "
        "since row 1, 1970-01-01T00:00:01Z (rule: auc surely < 0.8 at 100)"
    )
    assert (closed.row, closed.limit) == (4, 9.0 - math.log(100))
    assert "evidence 4 fell to 4.39483 or less; it was opened at row 3" in closed.message


def test_an_alert_on_a_drop_says_the_bound_that_its_period_gave() -> None:
    text = "auc surely drops by 0.02 against 2026-01-01..2026-02-01 at 100"
    rows = [row_of(0, None), row_of(1, 2.0, 13), row_of(2, 9.0, 12), row_of(3, 4.0, 12)]
    rows = [row._replace(evidence_bound=0.8125) for row in rows]
    table = AlertTable([rs.parse_alert(text)])
    opened = table.watch(rows[:3])[0]
    (closed,) = AlertTable.from_bytes(table.to_bytes(), table.rules).watch(rows[3:])
    assert (opened.state, opened.reference_row, opened.reference_value) == ("open", None, 0.8125)
    assert (closed.state, closed.reference_row, closed.reference_value) == ("closed", None, 0.8125)
    assert opened.message == (
        "m: alert opened at row 2, 1970-01-01T00:00:02Z: auc surely drops by 0.02 against "
        "2026-01-01..2026-02-01, to below 0.8125, the bound that the period gave: evidence 9 >= 4.60517, "
        f"which grew since row 1, 1970-01-01T00:00:01Z (rule: {text})"
    )


def test_a_drop_is_seen_against_the_period_of_the_stream_itself() -> None:
    """Whatever its AUC was: two models of unlike AUC, each of which falls by .1."""
    text = "auc surely drops by 0.02 against 1970-01-01T00:00..1970-01-01T01:00 at 1e4"
    for seed, auc in enumerate((0.9, 0.7)):
        rng, rule = np.random.default_rng(seed), rs.parse_alert(text)
        labels = (rng.random(12_000) < 0.4).astype(np.int8)
        falls = np.where(np.arange(12_000) < 8_000, auc, auc - 0.1)
        evaluator = rs.ModelEvaluator(
            window=rs.LastEvents(100), every=rs.EveryEvents(20), measures="auc",
            evidence_below=rule.opens.bound,  # type: ignore[union-attr]
        )  # fmt: skip
        rows = evaluator.update(
            labels, rng.normal(math.sqrt(2) * norm.ppf(falls) * labels), times=np.arange(12_000)
        )
        (alert,) = AlertTable([rule]).watch(rows)
        assert 8_000 < 20 * (alert.row + 1) < 10_000
        assert alert.reference_value == rows[len(rows) - 1].evidence_bound
        assert auc - 0.06 < (alert.reference_value or 0) < auc - 0.02


def test_after_an_alarm_a_rule_asks_for_as_much_again_than_there_was_when_it_closed() -> None:
    states = [(alert.state, alert.row) for alert in alerts_of([0.0, 20.0, 15.0, 19.6, 19.7, 3.0, 7.6, 7.7])]
    assert states == [("open", 1), ("closed", 2), ("open", 4), ("closed", 5), ("open", 7)]


def test_a_budget_of_events_is_divided_by_the_events_of_a_block() -> None:
    rule, enough = rs.parse_alert("auc surely < 0.8 at 1 per 800"), math.log(100)
    smaller = row_of(2, enough)._replace(block_events=7.9)
    (opened,) = AlertTable([rule]).watch(
        [row_of(0, None), row_of(1, enough - 1e-9), smaller, row_of(3, enough)]
    )
    assert (opened.row, opened.limit) == (3, enough)


def test_rules_without_a_rate_share_the_budget() -> None:
    texts = ("auc surely < 0.8", "auc surely < 0.8 where slice = ''", "auc < 0.5")
    rules = [rs.parse_alert(text) for text in texts]
    shared = with_budget([*rules, rs.parse_alert("auc surely < 0.8 at 50")], parse_budget("2 per 1000"))
    assert [str(rule) for rule in shared] == [
        "auc surely < 0.8 at 1 per 1000 events",
        "auc surely < 0.8 at 1 per 1000 events where slice = ''",
        "auc < 0.5",
        "auc surely < 0.8 at 50",
    ]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: AlertTable([rs.parse_alert("auc surely < 0.8")]), "at 1e6.*--false-alarms"),
        (lambda: with_budget([rs.parse_alert("auc < 0.8")], Rate(100.0, "events")), "no rule needs a rate"),
        (lambda: parse_budget("0 per 100"), "above 0"),
        (lambda: parse_budget("1 per 1"), "above 0"),
        (lambda: parse_budget("often"), "'often' is no budget"),
        (lambda: parse_budget("1 in 100"), "no budget"),
        (lambda: parse_budget("1 per many"), "no budget"),
        (lambda: parse_budget("nan per 5"), "no budget"),
        (lambda: parse_budget(3), "no budget"),  # type: ignore[arg-type]
    ],
)
def test_a_rate_that_cannot_be_is_refused_in_a_sentence(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        make()


def test_damage_of_a_snapshot_is_named() -> None:
    rules = [rs.parse_alert(text) for text in RULES]
    table = AlertTable(rules)
    table.watch([row_of(0, 2.0), row_of(1, 9.0), row_of(3, 9.0)])
    data = table.to_bytes()
    for place in range(len(data)):
        with pytest.raises(WireError):
            AlertTable.from_bytes(data[:place])
    with pytest.raises(OtherConfigurationError, match="surely"):
        AlertTable.from_bytes(data, rules[:1])


# ---- how often a rule is wrong


def rows_of(rng: np.random.Generator, auc: Any, every: int = 20) -> rs.Rows:
    labels = (rng.random(len(auc)) < 0.4).astype(np.int8)
    scores = rng.normal(math.sqrt(2) * norm.ppf(auc) * labels)
    evaluator = rs.ModelEvaluator(
        window=rs.LastEvents(20), every=rs.EveryEvents(every), measures="auc", evidence_below=0.8
    )
    return evaluator.update(labels, scores)


@pytest.mark.at_length
def test_false_alarms_of_all_models_are_at_most_those_of_the_budget() -> None:
    """At the edge, with a rule whose alerts close at the next row: it starts anew most often."""
    models, events, budget = at_length(400, 80), 40_000, 4_000
    rule = rs.parse_alert(f"auc surely < 0.8 at 1 per {budget} events until auc > 0")
    opened = []
    for seed in range(models):
        rows = rows_of(np.random.default_rng(seed), np.full(events, 0.8))
        opened.append(sum(alert.state == "open" for alert in AlertTable([rule]).watch(rows)))
    highest = np.mean(opened) + 1.645 * np.std(opened, ddof=1) / math.sqrt(models)
    assert 0.1 * events / budget < highest < events / budget


def test_a_fall_is_seen_again_soon_after_the_model_was_mended() -> None:
    """A long fall leaves much evidence. The baseline falls with it, so a second fall is seen as the first."""
    auc = np.full(40_000, 0.88)
    auc[10_000:14_000] = auc[30_000:34_000] = 0.6
    rows = rows_of(np.random.default_rng(1), auc)
    alerts = AlertTable([rs.parse_alert("auc surely < 0.8 at 1e6")]).watch(rows)
    seqs = [(alert.state, rows.integer("seq")[alert.row]) for alert in alerts]
    assert [state for state, _ in seqs] == ["open", "closed", "open", "closed"]
    first, closed, second, again = (int(seq) for _, seq in seqs)
    assert 10_000 < first < 10_400
    assert 14_000 < closed < 15_000
    assert 30_000 < second < 30_400
    assert 34_000 < again < 35_000
    assert abs(int(rows.integer("seq")[alerts[2].since_row]) - 30_000) < 200
