"""Scores that no float64 holds are refused where users give arrays, and held ones are read exactly."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import rocsteady as rs
from hypothesis import given
from hypothesis import strategies as st
from rocsteady.core.events.numbers import decimal_text, is_held, number, unheld_integers
from rocsteady.core.prequential.calls import NoPrediction, readers
from rocsteady.core.prequential.instances import Task

BIG = 2**53 + 1


@given(st.integers(-(2**1_000), 2**1_000))
def test_a_whole_number_is_held_if_it_comes_back(n):
    held = int(float(n)) == n
    assert is_held(n) == is_held(str(n)) == is_held(f" +00{n} " if n >= 0 else str(n)) == held
    assert is_held(Fraction(n)) == held
    assert is_held(f"{n}.0")
    if -(2**63) <= n < 2**63:
        assert unheld_integers(np.array([n, 0])).tolist() == [not held, False]
        assert is_held(np.int64(n)) == held
    if 0 <= n < 2**64:
        assert unheld_integers(np.array([n], np.uint64)).tolist() == [not held]


@pytest.mark.parametrize("n", [2**63 - 1, 2**63 - 1024, -(2**63), 2**53, -BIG, BIG])
def test_the_ends_of_the_types(n):
    assert unheld_integers(np.array([n], np.int64)).tolist() == [int(float(n)) != n]


@given(st.decimals(allow_nan=False, allow_infinity=False, places=20, min_value=-9, max_value=9))
def test_a_decimal_is_held_if_the_float_is_written_the_same(d):
    held = Decimal(repr(float(d))) == d
    assert is_held(d) == held
    assert is_held(decimal_text(d)) == held
    if held:
        assert number(decimal_text(d)) == float(d)


ARRAYS = [
    [BIG, 0.5], [BIG, 2**53], BIG, [0.5, np.int64(BIG)], np.array([0, BIG]), np.array([BIG], object),
    [str(BIG)], [f" +{BIG}"], [Decimal(BIG)], [Decimal("0.12345678901234567")], [Fraction(BIG, 1)],
    pa.array([BIG, None]), pa.array([Decimal("0.12345678901234567")]), pd.Series([BIG]),
    pd.Series([BIG, 0.5], dtype=object), pd.Series([BIG], dtype="Int64"), pl.Series([BIG]),
    pl.Series([Decimal("0.12345678901234567")]), [2**63 + 1, 0.5], [-BIG, 0.5],
]  # fmt: skip


@pytest.mark.parametrize("scores", ARRAYS, ids=range(len(ARRAYS)))
def test_every_evaluator_and_summary_refuses_a_score_that_no_float_holds(scores):
    n = np.size(scores)
    labels = [place % 2 for place in range(n)]
    doors = [
        lambda: rs.ModelEvaluator().update(labels, scores),
        lambda: rs.PairEvaluator().update(labels, [0.5] * n, scores),
        lambda: rs.MulticlassEvaluator(["a", "b"]).update(["a"], [[0.5, _first(scores)]]),
        lambda: rs.AucSketch().add(labels, scores),
        lambda: rs.ScoreTree().insert(labels, scores),
        lambda: rs.CompressedAuc(0.1).insert(labels, scores),
    ]
    for door in doors:
        with pytest.raises(rs.InputError, match=r"scores\w*\[[0-9, ]+\] is .* no float64 holds it"):
            door()


def _first(scores):
    listed = scores.to_pylist() if isinstance(scores, pa.Array) else scores
    return max(np.atleast_1d(np.asarray(listed, object)).tolist(), key=lambda each: not is_held(each))


def test_numbers_that_a_float_holds_are_taken_as_before():
    scores = [2**53, 0.5, Decimal("0.1"), "1e3", Fraction(1, 4), 2**60, "9007199254740993.0"]
    ev = rs.ModelEvaluator()
    ev.update([0, 1] * 3 + [1], scores)
    assert len(ev) == 7


def test_two_scores_that_would_tie_do_not():
    """As floats they tie, and the AUC of a perfect ranking was .5."""
    with pytest.raises(rs.InputError, match="no float64 holds it"):
        rs.ModelEvaluator().update([0, 1], [2**53, BIG])


def test_a_learner_that_gives_a_decimal_which_no_float_holds_made_no_prediction():
    read, _ = readers(Task(is_binary=True))
    with pytest.raises(NoPrediction, match="no float64 holds"):
        read({True: Decimal("0.12345678901234567")})
    assert read({True: Decimal("0.5")}) == 0.5
