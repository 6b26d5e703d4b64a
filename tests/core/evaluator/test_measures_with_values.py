"""Measures that are asked for with values: against the oracles at every prefix, in every window."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import rocsteady as rs
from rocsteady.core.rows.columns import COLUMNS, NUMBER_COLUMNS, measure_of
from rocsteady.core.rows.measure_table import MEASURE_TABLE, MEASURES

from tests.support.invariants.refusals import assert_refused
from tests.support.oracles.measures import ONE_CLASS, cost_threshold, partial_auc, tpr_at_fpr
from tests.support.oracles.weighted import WeightedOracle

ASKED = (
    "auc", "tpr_at_fpr", "tpr_at_fpr:0.25", "cost_threshold:0.7", "partial_auc:0.1:0.5",
    "partial_auc_mcclish:0.1:0.5",
)  # fmt: skip
WITH_VALUES = {
    "tpr_at_fpr_0_25": {"at_fpr": 0.25},
    "cost_threshold_0_7": {"false_positive_cost": 0.7},
    "partial_auc_0_1_0_5": {"partial_fpr": (0.1, 0.5)},
    "partial_auc_mcclish_0_1_0_5": {"partial_fpr": (0.1, 0.5)},
}
WINDOWS = {
    "last:5": rs.LastEvents(5),
    "last:60": rs.LastEvents(60),
    "last:40s": rs.LastDuration(40),
    "all": rs.AllEvents(),
    "adaptive": rs.Adaptive(signal="error"),
    "fading:20": rs.Fading(20),
}


def events(count: int = 150) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(count)
    labels = np.where(np.arange(count) < 4, 1, rng.integers(0, 2, count))
    return labels, np.round(rng.normal(size=count) + labels, 1), rng.integers(1, 5, count) / 2


def rows_of(window: str, measures: Any, every: int = 1, weighted: bool = False, **more: Any) -> rs.Rows:
    labels, scores, weights = events()
    ev = rs.ModelEvaluator(window=WINDOWS[window], every=rs.EveryEvents(every), measures=measures, **more)
    times = np.arange(len(labels))
    return ev.update(labels, scores, times=times, time_unit="s", weights=weights if weighted else None)


def test_values_are_those_of_the_oracles_at_every_prefix() -> None:
    labels, scores, _ = events()
    for seq, row in enumerate(rows_of("all", ASKED), 1):
        held = labels[:seq].tolist(), scores[:seq].tolist()
        if len({*held[0]}) < 2:
            assert [getattr(row, name) for name in WITH_VALUES] == [None] * 4
            assert f"{', '.join(WITH_VALUES)}: {ONE_CLASS}" in (row.reason or "")
            continue
        area, standard = partial_auc(*held, 0.1, 0.5)
        expected = (tpr_at_fpr(*held, 0.25), cost_threshold(*held, 0.7), area, standard)
        assert [getattr(row, name) for name in WITH_VALUES] == pytest.approx(expected, abs=1e-12)


def test_values_with_weights_are_those_of_the_oracle_at_every_prefix() -> None:
    labels, scores, weights = events()
    for seq, row in enumerate(rows_of("all", ASKED, weighted=True), 1):
        oracle = WeightedOracle(list(zip(labels[:seq].tolist(), scores[:seq], weights[:seq], strict=True)))
        if not oracle.has_both:
            assert row.tpr_at_fpr_0_25 is None
            continue
        expected = oracle.tpr_at_fpr(0.25), oracle.cost_threshold(0.7), oracle.partial_auc(0.1, 0.5)
        found = row.tpr_at_fpr_0_25, row.cost_threshold_0_7, row.partial_auc_0_1_0_5
        assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("every", [1, 7])
@pytest.mark.parametrize("window", WINDOWS)
def test_a_value_is_that_of_the_setting_to_the_last_bit(window: str, every: int, weighted: bool) -> None:
    rows = rows_of(window, ASKED, every, weighted)
    assert rows.columns == tuple(WITH_VALUES)
    for column, setting in WITH_VALUES.items():
        alone = rows_of(window, measure_of(column), every, weighted, **setting)
        np.testing.assert_array_equal(rows.number(column), alone.number(measure_of(column) or ""))
    others = rows_of(window, ("auc", "tpr_at_fpr"), every, weighted)
    np.testing.assert_array_equal(rows.numbers[:, : len(NUMBER_COLUMNS)], others.numbers)
    np.testing.assert_array_equal(rows.reasons[:, : len(MEASURES)], others.reasons)
    assert (rows.config, others.columns) == (others.config, ())


def test_texts_are_read_once_each_and_columns_have_an_order() -> None:
    settings = rs.EvaluatorSettings(measures="partial_auc:0:.5")
    assert settings.measures == ("partial_auc:0:0.5",)
    settings = rs.EvaluatorSettings(measures=("tpr_at_fpr:0.5", "auc", "tpr_at_fpr:5e-2", "tpr_at_fpr:.05"))
    assert settings.measures == ("auc", "auc_low", "auc_high", "tpr_at_fpr:0.05", "tpr_at_fpr:0.5")
    assert [each.column for each in settings.with_values] == ["tpr_at_fpr_0_05", "tpr_at_fpr_0_5"]
    assert rs.EvaluatorSettings(measures=settings.measures) == settings
    for text in ("tpr_at_fpr:0.05", "tpr_at_fpr:1e-07", "cost_threshold:0.5", "partial_auc_mcclish:0:0.1"):
        [each] = rs.EvaluatorSettings(measures=text).with_values
        assert measure_of(each.column) == each.measure == text.partition(":")[0]
    assert [name for name in COLUMNS if measure_of(name)] == []
    assert {each.parameter for each in MEASURE_TABLE} > {"at_fpr", "false_positive_cost", "partial_fpr"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("auc:0.5", ["'auc:0.5'", "'auc' takes no value", "tpr_at_fpr"]),
        ("tpr_at_fpr:1.5", ["'tpr_at_fpr:1.5'", "between 0 and 1"]),
        ("tpr_at_fpr:", ["'tpr_at_fpr:'", "is not a number"]),
        ("tpr_at_fpr:nan", ["'tpr_at_fpr:nan'", "a number"]),
        ("partial_auc:0.1", ["'partial_auc:0.1'", "two false positive rates"]),
        ("partial_auc:0.5:0.1", ["'partial_auc:0.5:0.1'", "the lower one first"]),
    ],
)
def test_a_wrong_value_is_refused(text: str, words: list[str]) -> None:
    assert_refused(lambda: rs.EvaluatorSettings(measures=("auc", text)), words)


def test_records_have_a_field_for_each_value() -> None:
    rows = rows_of("last:60", ASKED)
    row = rows[-1]
    assert isinstance(row, rs.MeasureRow)
    assert row._fields == (*COLUMNS, *WITH_VALUES)
    assert row.tpr_at_fpr_0_25 == rows.number("tpr_at_fpr_0_25")[-1] == row._asdict()["tpr_at_fpr_0_25"]
    assert pickle.loads(pickle.dumps(row)) == copy.copy(row) == row == list(rows)[-1]
    assert row._replace(auc=0.5).auc == 0.5
    assert "tpr_at_fpr_0_25=" in repr(row)
    assert rows.without_columns()[-1] == row[: len(COLUMNS)]
    names = rows.to_arrow().column_names
    assert names == [*COLUMNS[: COLUMNS.index("drift")], *WITH_VALUES, *COLUMNS[COLUMNS.index("drift") :]]
    assert rows[5:9].columns == rows.columns


def test_the_state_of_an_evaluator_goes_on_with_values() -> None:
    labels, scores, _ = events()
    settings = rs.EvaluatorSettings(window=rs.LastEvents(60), every=rs.EveryEvents(1), measures=ASKED)
    ev = rs.ModelEvaluator(settings)
    ev.update(labels[:100], scores[:100])
    whole = rs.ModelEvaluator(settings).update(labels, scores)
    rest = rs.ModelEvaluator.from_bytes(ev.to_bytes(), settings).update(labels[100:], scores[100:])
    assert list(rest) == list(whole[100:])
    assert ev.measures().tpr_at_fpr_0_25 == whole[99].tpr_at_fpr_0_25  # type: ignore[attr-defined]


def test_each_class_has_values_and_the_row_of_all_has_none() -> None:
    rng = np.random.default_rng(1)
    names = rng.choice(["a", "b", "c"], 90)
    scores = rng.dirichlet(np.ones(3), 90)
    ev = rs.MulticlassEvaluator(
        ["a", "b", "c"], every=rs.EveryEvents(30), measures=("auc", "tpr_at_fpr:0.25")
    )
    rows = ev.update(names, scores)
    assert [row.tpr_at_fpr_0_25 is None for row in rows] == [row.class_ is None for row in rows]
    one = rs.ModelEvaluator(every=rs.EveryEvents(30), measures="tpr_at_fpr", at_fpr=0.25)
    alone = one.update((names == "b").astype(int), scores[:, 1])
    assert [row.tpr_at_fpr_0_25 for row in rows.of_class("b")] == [row.tpr_at_fpr for row in alone]
