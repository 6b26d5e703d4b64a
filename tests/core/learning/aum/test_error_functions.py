"""Error functions from tables and labels, and their ROC curves, with what the slides say of them."""

from __future__ import annotations

import gzip
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rocsteady.core.errors import InputError
from rocsteady.core.learning.aum.aum import aum, aum_of_labels
from rocsteady.core.learning.aum.error_functions import ErrorFunctions
from rocsteady.core.learning.aum.error_roc import ErrorRoc, roc_of_error_functions
from sklearn.metrics import roc_auc_score

from tests.support.oracles.aum import as_arrays, aum_by_integration, errors_at, random_functions, thresholds

DATA = os.environ.get("ROCSTEADY_DATA")
needs_data = pytest.mark.skipif(
    DATA is None, reason="ROCSTEADY_DATA is not set; export it to the folder with the files aum_*.csv.gz"
)
INF = np.inf
TABLE = {  # FN of "b" comes and goes
    "example": ["a", "a", "a", "b", "b", "b", "b"],
    "min_log_lambda": [-INF, 0.0, 2.0, 1.0, -INF, 3.0, 2.0],
    "fp": [3, 1, 0, 0, 0, 0, 0],
    "fn": [0, 0, 1, 1, 0, 2, 0],
}


def columns(name: str, wanted: str) -> list[Any]:
    assert DATA is not None
    with gzip.open(Path(DATA) / name, "rt") as file:
        head = file.readline().rstrip("\n").split(",")
        at = [head.index(each) for each in wanted.split()]
        rows = [line.rstrip("\n").split(",") for line in file]
    return [[row[i] for row in rows] for i in at]


def neuroblastoma() -> ErrorFunctions:
    profile, chromosome, begin, fp, fn = columns(
        "aum_neuroblastoma_errors.csv.gz", "profile.id chromosome min.log.lambda fp fn"
    )
    names = [f"{a}.{b}" for a, b in zip(profile, chromosome, strict=True)]
    return ErrorFunctions.of_penalties(names, *(np.array(each, float) for each in (begin, fp, fn)))


def test_a_table_by_penalty_is_breakpoints_of_minus_log_lambda() -> None:
    errors = ErrorFunctions.of_penalties(**TABLE)
    assert errors.names == ("a", "b")
    assert len(errors) == 2
    assert repr(errors) == "<ErrorFunctions: 2 examples, 5 breakpoints>"
    found = zip(errors.example, errors.breakpoint, errors.fp_diff, errors.fn_diff, strict=True)
    assert list(found) == [(0, -2, 1, -1), (0, 0, 2, 0), (1, -3, 0, -2), (1, -2, 0, 1), (1, -1, 0, -1)]
    assert errors.totals == (3.0, 3.0)
    assert errors.errors([-5.0, -2.5]).tolist() == [1.0, 0.0]
    assert errors.errors([1.0, -1.5]).tolist() == [3.0, 1.0]


def test_rows_may_come_in_any_order_and_examples_in_the_order_asked() -> None:
    order = np.random.default_rng(1).permutation(7)
    shuffled = {name: [values[i] for i in order] for name, values in TABLE.items()}
    one = ErrorFunctions.of_penalties(**shuffled, names=["b", "a"])
    other = ErrorFunctions.of_penalties(**TABLE).take([1, 0])
    assert one.names == other.names == ("b", "a")
    for name in ("example", "breakpoint", "fp_diff", "fn_diff"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist()
    only = ErrorFunctions.of_penalties(**TABLE, names=["b"])
    assert only.example.tolist() == [0, 0, 0]


def test_duplicate_breakpoints_are_merged_and_those_of_no_effect_left_out() -> None:
    errors = ErrorFunctions.of_breakpoints(
        [1, 0, 1, 0, 0], [2.0, 1.0, 2.0, 3.0, 3.0], [1, 0, 0, 1, -1], [0, -1, -1, 0, 0], range(2)
    )
    found = zip(errors.example, errors.breakpoint, errors.fp_diff, errors.fn_diff, strict=True)
    assert list(found) == [(0, 1, 0, -1), (1, 2, 1, -1)]
    twice = {name: [*values, values[2]] for name, values in TABLE.items()}
    once = ErrorFunctions.of_penalties(**TABLE)
    assert ErrorFunctions.of_penalties(**twice).breakpoint.tolist() == once.breakpoint.tolist()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"fp": [3, 1, 1, 0, 0, 0, 0]}, "example 'a': FP is 1 at lambda = inf and should be 0; shift=True"),
        ({"fn": [0, 0, 1, 1, 2, 2, 0]}, "example 'b': FN is 2 at lambda = 0 and should be 0"),
        (
            {"fp": [3, 1, 0, 0, np.nan, 0, 0]},
            "example 'b': fp is nan in row 4; give a finite number from 0 on",
        ),
        ({"fn": [0, -1, 1, 1, 0, 2, 0]}, "example 'a': fn is -1"),
        ({"min_log_lambda": [-INF, np.nan, 2.0, 1.0, -INF, 3.0, 2.0]}, "example 'a': min_log_lambda is nan"),
        ({"min_log_lambda": [-INF, 0.0, 2.0, 1.0, 0.5, 3.0, 2.0]}, "'b' has no row from .* = -inf"),
        ({"min_log_lambda": [-INF, 2.0, 2.0, 1.0, -INF, 3.0, 2.0]}, "'a' has two rows from .* = 2 on"),
        ({"names": ["a", "c"]}, "example 'c' has no row"),
        ({"names": ["a", "a"]}, "an example twice"),
        ({"fp": [1, 2]}, "fp has 2 values and example has 7"),
        ({name: [] for name in TABLE}, "the table of errors is empty"),
    ],
)
def test_tables_that_are_wrong_are_named(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        ErrorFunctions.of_penalties(**{**TABLE, **changes})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([0], [0.0], [1], [0], []), "there are no examples"),
        (([1], [0.0], [1], [0], ["x"]), r"example\[0\] is 1, and there are 1 examples"),
        (([0], [np.nan], [1], [0], ["x"]), "example 'x': breakpoint nan is no finite number"),
        (([0, 0], [0.0, 1.0], [1, -2], [0, 0], ["x"]), "example 'x': FP falls to -1"),
        (([0, 0], [0.0, 1.0], [0, 0], [-2, 1], ["x"]), "example 'x': FN falls to -1"),
        (([0.5], [0.0], [1], [0], ["x"]), "example is of type float64"),
        (([[0], [0, 0]], [0.0], [1], [0], ["x"]), "example are lists of unlike lengths: give all as many"),
    ],
)
def test_breakpoints_that_are_wrong_are_named(arguments: tuple[Any, ...], words: str) -> None:
    with pytest.raises(InputError, match=words):
        ErrorFunctions.of_breakpoints(*arguments)


@pytest.mark.parametrize(
    ("examples", "words"),
    [
        ([0, 3], r"examples\[1\] is 3: give indices from 0 to 2, each once"),
        ([-1], r"examples\[0\] is -1: give indices from 0 to 2"),
        ([1, 0, 1], "examples has 1 twice: give each index once"),
        ([0.5], r"examples is of type float64 and shape \(1,\): give whole numbers"),
        ([[0, 1]], r"shape \(1, 2\): give whole numbers"),
    ],
)
def test_examples_that_cannot_be_taken_are_named(examples: list[Any], words: str) -> None:
    errors = ErrorFunctions.of_labels([0, 1, 0])
    with pytest.raises(InputError, match=words):
        errors.take(examples)
    assert len(errors.take([])) == 0
    assert errors.take([2, 0]).names == (2, 0)


def test_labels_are_error_functions() -> None:
    rng = np.random.default_rng(1)
    labels, scores, weights = rng.integers(0, 2, 50), rng.normal(size=50), rng.integers(1, 4, 50)
    for w in (None, weights):
        for rate in (False, True):
            errors = ErrorFunctions.of_labels(labels, w)
            assert errors.aum(scores, rate).value == pytest.approx(
                aum_of_labels(labels, scores, w, rate).value
            )
    with pytest.raises(InputError, match="labels are empty"):
        ErrorFunctions.of_labels([])
    with pytest.raises(InputError, match="there are 3 predictions and 50 examples"):
        errors.aum([1.0, 2.0, 3.0])
    with pytest.raises(InputError, match=r"predictions\[49\] is nan: give finite numbers"):
        errors.errors(np.append(np.zeros(49), np.nan))
    roc = ErrorFunctions.of_labels(labels).roc(scores)
    assert roc.auc == pytest.approx(roc_auc_score(labels, scores))
    assert len(roc) == 51
    chosen = rng.permutation(50)[:20]
    assert ErrorFunctions.of_labels(labels).take(chosen).aum(scores[chosen]).value == pytest.approx(
        aum_of_labels(labels[chosen], scores[chosen]).value
    )


@pytest.mark.parametrize("seed", range(30))
def test_the_curve_is_that_of_counting(seed: int) -> None:
    rng = np.random.default_rng(seed)
    functions = random_functions(rng, 5, 4, 8)
    predictions = (rng.integers(-4, 5, 5) / 4).tolist()
    roc = roc_of_error_functions(predictions, *as_arrays(functions))
    ends = thresholds(predictions, functions)
    between = [ends[0] - 1, *((a + b) / 2 for a, b in pairwise(ends)), ends[-1] + 1]
    counted = [errors_at(t, predictions, functions) for t in between]
    assert list(zip(roc.fp, roc.fn, strict=True)) == counted
    assert roc.thresholds.tolist() == ends
    assert roc.aum == aum_by_integration(predictions, functions)
    fp, fn = roc.fp, roc.fn
    if fp[-1] and fn[0]:
        x, y = fp / fp[-1], 1 - fn / fn[0]
        area = sum((x[i + 1] - x[i]) * (y[i] + y[i + 1]) / 2 for i in range(len(x) - 1))
        assert roc.auc == pytest.approx(area)
    else:
        assert roc.auc is None
    least = min(a + b for a, b in counted)
    assert roc.best.tolist() == [i for i, (a, b) in enumerate(counted) if a + b == least]
    low, high = roc.best_interval
    assert low < roc.best_constant < high
    assert sum(errors_at(roc.best_constant, predictions, functions)) == least


def test_target_intervals_are_the_widest_with_the_fewest_errors() -> None:
    errors = ErrorFunctions.of_penalties(**TABLE)
    assert [each.tolist() for each in errors.target_intervals()] == [[-INF, -1], [0, INF]]
    for seed in range(40):
        functions = random_functions(np.random.default_rng(seed), 6, 5, 20)
        errors = ErrorFunctions.of_breakpoints(*as_arrays(functions), range(6))
        low, high = errors.target_intervals()
        for i, function in enumerate(functions):
            edges = [-INF, *sorted({v for v, _, _ in function}), INF]
            inside = [sum(errors_at(0, [_inside(a, b)], [function])) for a, b in pairwise(edges)]
            here = sum(errors_at(0, [_inside(low[i], high[i])], [function]))
            assert here == min(inside)
            alone = [b - a for (a, b), e in zip(pairwise(edges), inside, strict=True) if e == here]
            assert high[i] - low[i] >= max(alone)


def _inside(low: float, high: float) -> float:
    if np.isfinite(low) and np.isfinite(high):
        return (low + high) / 2
    return low + 1 if np.isfinite(low) else high - 1 if np.isfinite(high) else 0.0


def test_aum_of_zero_is_auc_of_one_but_for_one_tie() -> None:
    """Slides: AUM = 0 implies AUC = 1. An exception: docs/architecture/math.md, "AUM"."""
    tied = ErrorFunctions.of_labels([1, 0]).roc([0.0, 0.0])
    assert (tied.aum, tied.auc) == (0.0, 0.5)
    zeros = exceptions = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        functions = random_functions(rng, 3, 3, 3)
        predictions = (rng.integers(-3, 4, 3) / 4).tolist()
        roc = roc_of_error_functions(predictions, *as_arrays(functions))
        if roc.aum or roc.auc is None:
            continue
        zeros += 1
        corner = (np.diff(roc.fp) != 0) & (np.diff(roc.fn) != 0)
        exceptions += bool(corner.any())
        if not corner.any():
            assert roc.auc == pytest.approx(1.0)
    assert zeros > exceptions > 0


def looping() -> ErrorRoc:
    """Two examples whose errors go up and down: FP of the one while FN of the other has not come back."""
    return roc_of_error_functions(
        [0.0, 0.0],
        [0, 0, 0, 1, 1, 1],
        [0, 2, 4, 1, 3, 5],
        [1, -1, 1, 0, 0, 0],
        [0, 0, 0, -1, 1, -1],
    )


def test_a_looping_curve_and_its_least_errors() -> None:
    roc = looping()
    assert roc.fp.tolist() == [0, 1, 1, 0, 0, 1, 1]
    assert roc.fn.tolist() == [1, 1, 0, 0, 1, 1, 0]
    assert roc.auc == pytest.approx(0 + 0 - (-1) * -1 * 1 + 0)
    assert roc.best.tolist() == [3]
    assert roc.best_interval == (2.0, 3.0)
    assert roc.best_constant == 2.5
    assert roc.errors[4:6].tolist() == [1, 2]


@pytest.mark.slow
@needs_data
def test_real_error_functions_have_curves_of_more_than_one() -> None:
    """Slides, "Real data example with AUC greater than one": two problems, AUC 2 at a difference of 5."""
    errors = neuroblastoma()
    assert repr(errors).startswith("<ErrorFunctions: 3,418 examples")
    pair = errors.take([errors.names.index("4.2"), errors.names.index("513.3")])
    found = {d: pair.roc([0.0, d]) for d in (3.5, 5.0, 7.5)}
    assert found[5.0].auc == pytest.approx(2.0)
    assert aum([0.0, 5.0], pair.example, pair.breakpoint, pair.fp_diff, pair.fn_diff).value == pytest.approx(
        found[5.0].aum
    )


@pytest.mark.slow
@needs_data
def test_target_intervals_of_the_data_are_those_computed_here() -> None:
    errors = neuroblastoma()
    names, low, high = columns("aum_neuroblastoma_targets.csv.gz", "id min.L max.L")
    mine_low, mine_high = errors.target_intervals()
    at = [errors.names.index(name) for name in names]
    np.testing.assert_allclose(-mine_high[at], np.array(low, float), atol=1e-9)
    np.testing.assert_allclose(-mine_low[at], np.array(high, float), atol=1e-9)


@needs_data
def test_functions_that_do_not_end_at_zero_are_named_or_shifted() -> None:
    example, begin, fp, fn = columns("aum_fn_not_zero.csv.gz", "example min.lambda fp fn")
    with np.errstate(divide="ignore"):
        table = (example, np.log(np.array(begin, float)), np.array(fp, float), np.array(fn, float))
    with pytest.raises(
        InputError, match=r"example 'H3K4me3_PGP_immune.*FN is 1 at lambda = 0 and should be 0"
    ):
        ErrorFunctions.of_penalties(*table)
    errors = ErrorFunctions.of_penalties(*table, shift=True)
    assert len(errors) == 3
    assert errors.totals == (17 + 7 + 7, 13 + 4 + 4)
