"""AUM, its derivatives and SM are what integration, differences and counting say."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.errors import InputError
from rocsteady.core.learning.aum import kernels as aum_kernels
from rocsteady.core.learning.aum.aum import Aum, aum, aum_of_labels
from rocsteady.core.learning.aum.aum import as_breakpoints as breakpoints_of
from rocsteady.core.learning.aum.error_roc import roc_of, sum_of_min

from tests.support.oracles.aum import (
    Function,
    as_arrays,
    aum_by_integration,
    derivatives_by_differences,
    random_functions,
    sum_of_min_by_intervals,
)

DATA = os.environ.get("ROCSTEADY_DATA")


def of(functions: list[Function], predictions: list[float], rate: bool = False) -> Aum:
    return aum(predictions, *as_arrays(functions), rate=rate)


@pytest.mark.parametrize("seed", range(60))
def test_aum_and_both_derivatives_by_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    functions = random_functions(rng, n, 4, int(rng.choice([2, 8, 100])))
    predictions = (rng.integers(-3, 4, n) / 4).tolist()
    result = of(functions, predictions)
    assert result.value == aum_by_integration(predictions, functions)
    left, right = derivatives_by_differences(predictions, functions, 1 / 64)
    assert result.left.tolist() == left.tolist()
    assert result.right.tolist() == right.tolist()
    assert result.gradient.tolist() == ((left + right) / 2).tolist()
    assert sum_of_min(predictions, *as_arrays(functions)) == sum_of_min_by_intervals(predictions, functions)


@given(
    st.lists(st.tuples(st.booleans(), st.integers(-8, 8), st.integers(1, 3)), min_size=1, max_size=30),
    st.booleans(),
    st.booleans(),
)
@settings(max_examples=200)
def test_labels_are_breakpoints_at_zero(
    events: list[tuple[bool, int, int]], weighted: bool, rate: bool
) -> None:
    labels, scores, weights = (np.array(column) for column in zip(*events, strict=True))
    mass = weights.astype(float) if weighted else np.ones(len(labels))
    if rate and labels.all() | (~labels).all():
        with pytest.raises(InputError, match="rates need events of both classes"):
            aum_of_labels(labels, scores, weights if weighted else None, rate)
        return
    quick = aum_of_labels(labels, scores, weights if weighted else None, rate)
    fp, fn = np.where(labels, 0, mass), np.where(labels, -mass, 0)
    swept = aum(scores, np.arange(len(labels)), np.zeros(len(labels)), fp, fn, rate=rate)
    assert quick.value == pytest.approx(swept.value, rel=1e-13, abs=1e-13)
    np.testing.assert_allclose(quick.left, swept.left, atol=1e-13)
    np.testing.assert_allclose(quick.right, swept.right, atol=1e-13)


@pytest.mark.parametrize("rate", [False, True])
@pytest.mark.parametrize("kind", ["normal", "tied", "offset", "clusters", "tails", "constant", "ordered"])
def test_labels_and_sweep_agree_on_many(kind: str, rate: bool) -> None:
    rng = np.random.default_rng(5)
    n = 3_000 if kind != "normal" else 120_000  # bins of two widths
    scores = {
        "normal": rng.normal(size=n),
        "tied": rng.normal(size=n).round(1),
        "offset": 1e9 + rng.normal(size=n),
        "clusters": np.where(rng.random(n) < 0.5, 1e9, 0) + rng.random(n),
        "tails": rng.standard_cauchy(n) ** 5,
        "constant": np.full(n, -0.0),
        "ordered": np.arange(n) * 1.0,
    }[kind]
    labels = rng.random(n) < 0.2
    quick = aum_of_labels(labels, scores, rate=rate)
    swept = aum(scores, np.arange(n), np.zeros(n), ~labels, -labels.astype(int), rate=rate)
    assert quick.value == pytest.approx(swept.value, rel=1e-9)
    np.testing.assert_allclose(quick.left, swept.left, atol=1e-12)
    np.testing.assert_allclose(quick.right, swept.right, atol=1e-12)
    roc = roc_of(breakpoints_of(scores, np.arange(n), np.zeros(n), ~labels, -labels.astype(int), rate))
    area = np.diff(roc.thresholds) @ np.minimum(roc.fp, roc.fn)[1:-1]
    assert swept.value == pytest.approx(area, rel=1e-12)


def test_thresholds_that_keys_do_not_order_are_sorted_otherwise() -> None:
    """Two clusters: the leading bits of one of them are all the same."""
    rng = np.random.default_rng(1)
    scores = np.where(np.arange(2_000) % 2, 1e15, 0.0) + rng.integers(0, 500, 2_000)
    given = breakpoints_of(scores, np.arange(2_000), np.zeros(2_000), np.ones(2_000), np.zeros(2_000))
    rows, keys = np.empty((2_000, 4)), np.empty(2_000, np.int64)
    aum_kernels.write_rows(*given, rows, keys.view(np.float64))
    aum_kernels.write_keys(keys, 40)
    keys.sort()
    assert not aum_kernels.gather(keys, 40, rows, np.empty_like(rows))
    assert (np.diff(given.rows()[:, 0]) >= 0).all()
    assert sorted(given.rows()[:, 3]) == list(range(2_000))


def test_a_few_rows_out_of_place_are_inserted() -> None:
    given = breakpoints_of(np.linspace(0, 1, 500), np.arange(500), np.zeros(500), np.ones(500), np.zeros(500))
    rows, keys, ordered = np.empty((500, 4)), np.empty(500, np.int64), np.empty((500, 4))
    aum_kernels.write_rows(*given, rows, keys.view(np.float64))
    aum_kernels.write_keys(keys, 45)  # few bits are left for the threshold: runs of several
    keys.sort()
    assert aum_kernels.gather(keys, 45, rows, ordered)
    assert not (np.diff(rows[keys & (1 << 45) - 1, 0]) >= 0).all()
    assert (np.diff(ordered[:, 0]) > 0).all()


def test_the_reference_of_two_examples_in_the_wrong_order() -> None:
    """With FN after, as the slides print it, this would be 0 (docs/architecture/math.md, "AUM")."""
    result = of([[(0, 1, 0)], [(0, 0, -1)]], [1.0, -1.0])
    assert (result.value, result.left.tolist(), result.right.tolist()) == (2.0, [1, -1], [1, -1])
    tied = of([[(0, 1, 0)], [(0, 0, -1)]], [0.0, 0.0])
    assert (tied.value, tied.left.tolist(), tied.right.tolist()) == (0.0, [0, -1], [1, 0])
    assert tied.gradient.tolist() == [0.5, -0.5]


def test_breakpoints_of_one_example_at_one_threshold_count_as_one() -> None:
    once, twice = [(0.0, 1.0, -1.0)], [(0.0, 1.0, 0.0), (0.0, 0.0, -1.0)]
    other = [(0.0, 1.0, 0.0), (1.0, 0.0, -2.0)]
    a, b = of([once, other], [0.0, 0.0]), of([twice, other], [0.0, 0.0])
    assert (a.value, a.left.tolist(), a.right.tolist()) == (b.value, b.left.tolist(), b.right.tolist())


def test_rates_are_of_the_totals_at_the_far_ends() -> None:
    functions = [[(-1.0, 2.0, 0.0)], [(1.0, 0.0, -5.0)], [(0.0, 0.0, -3.0), (0.5, 2.0, 0.0)]]
    predictions = [0.0, -1.0, 0.25]
    rates = [[(v, a / 4, b / 8) for v, a, b in function] for function in functions]
    assert of(functions, predictions, rate=True).value == of(rates, predictions).value
    with pytest.raises(InputError, match="total FN at -inf is 0: rates need errors of both kinds"):
        of([[(0.0, 1.0, 0.0)]], [0.0], rate=True)


def test_constants_do_not_matter_and_labels_scale() -> None:
    rng = np.random.default_rng(3)
    labels, scores = rng.integers(0, 2, 200), rng.integers(-50, 50, 200) / 16
    one = aum_of_labels(labels, scores)
    assert aum_of_labels(labels, scores + 1024).value == one.value
    assert aum_of_labels(labels, 4 * scores).value == 4 * one.value
    assert one.gradient @ scores == pytest.approx(one.value)  # Euler's theorem


def test_one_class_and_examples_without_breakpoints_cost_nothing() -> None:
    assert aum_of_labels([1, 1], [0.0, 1.0]).value == 0.0
    assert aum_of_labels([-1, -1], [0.0, 1.0]).left.tolist() == [0.0, 0.0]
    empty = aum([1.0, 2.0], [], [], [], [])
    assert (empty.value, empty.gradient.tolist()) == (0.0, [0.0, 0.0])
    assert sum_of_min([1.0], [], [], [], []) == 0.0
    extra = of([[(-1.0, 1.0, 0.0)], [(1.0, 0.0, -1.0)], []], [0.0, 0.0, 0.0])
    assert (extra.value, extra.left.tolist()) == (2.0, [1.0, -1.0, 0.0])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([], [0], [0.0], [1], [0]), "predictions are empty"),
        (([0.0], [1], [0.0], [1], [0]), r"example\[0\] is 1, and there are 1 predictions"),
        (([0.0], [-1], [0.0], [1], [0]), r"example\[0\] is -1"),
        (([0.0], [0.5], [0.0], [1], [0]), "example is of type float64"),
        (([np.nan], [0], [0.0], [1], [0]), r"predictions\[0\] is nan"),
        (([0.0], [0], [np.inf], [1], [0]), r"breakpoint\[0\] is inf"),
        (([1e308], [0], [-1e308], [1], [0]), "so must be their difference"),
        (([0.0], [0], [0.0], [np.nan], [0]), r"fp_diff\[0\] is nan"),
        (([0.0], [0], [0.0], [1], [np.inf]), r"fn_diff\[0\] is inf"),
        (([0.0], [0], [0.0, 1.0], [1], [0]), "breakpoint has 2 values and example has 1"),
        (([[0.0]], [0], [0.0], [1], [0]), r"predictions has the shape \(1, 1\)"),
        (([0.0], [0], ["a"], [1], [0]), "breakpoint is of type <U1"),
        (([0.0, 0.0], [1, 0], [0.0, 0.0], [-1, 0], [0, 0]), "example 1: FP falls to -1 .* 0 at -inf"),
        (([0.0, 0.0], [0, 1], [0.0, 0.0], [1, 1], [0, 1]), r"example 1: FN falls to -1 .* 0 at \+inf"),
    ],
)
def test_what_is_wrong_is_named(arguments: tuple[list[float], ...], words: str) -> None:
    with pytest.raises(InputError, match=words):
        aum(*arguments)
    with pytest.raises(InputError, match=words):
        sum_of_min(*arguments)


@pytest.mark.parametrize(
    ("labels", "scores", "weights", "words"),
    [
        ([], [], None, "labels are empty"),
        ([1, 2], [0.0, 1.0], None, r"labels\[1\] is 2"),
        ([1, 0], [0.0, np.nan], None, r"scores\[1\] is nan"),
        ([1, 0], [0.0], None, "scores has 1 values and labels has 2"),
        ([1, 0], [0.0, 1.0], [1.0, 0.0], r"weights\[1\] is 0"),
        ([1, 0], [0.0, 1.0], [1.0], "weights has 1 values"),
        ([1, 0], [[0.0], [1.0, 2.0]], None, "scores are lists of unlike lengths: give all as many"),
        ([1, 0], [0.0, 1.0], [1.0, 10**400], "weights are not numbers"),
        ([0, 1] * 4, [1.5e308, -1.5e308] * 4, None, "beyond what a float holds"),
    ],
)
def test_labels_that_are_wrong_are_named(
    labels: list[int], scores: list[Any], weights: list[float] | None, words: str
) -> None:
    with pytest.raises(InputError, match=words):
        aum_of_labels(labels, scores, weights)


def test_inputs_are_left_as_they_are() -> None:
    arrays = [np.array([1.0, -1.0]), np.array([0, 1]), np.zeros(2), np.array([1.0, 0]), np.array([0, -1.0])]
    copies = [array.copy() for array in arrays]
    for array in arrays:
        array.flags.writeable = False
    assert aum(*arrays, rate=True).value == 2.0
    assert all((array == copy).all() for array, copy in zip(arrays, copies, strict=True))


def test_every_kernel_is_compiled_once() -> None:
    if not hasattr(aum_kernels.sweep, "signatures"):
        pytest.skip("numba is switched off by NUMBA_DISABLE_JIT")
    for kind in (np.float32, np.int64, bool):
        numbers = np.arange(4).astype(kind)
        aum(numbers, np.arange(4, dtype=np.int32), numbers[::-1], np.ones(4, kind), np.zeros(4, kind))
        aum_of_labels([1, 0, 1, 0], numbers, weights=[1, 2, 1, 2])
    for kernel in (aum_kernels.write_rows, aum_kernels.sweep, aum_kernels.crossing, aum_kernels.sums_about):
        assert len(kernel.signatures) == 1, kernel.__name__  # type: ignore[attr-defined]


@pytest.mark.slow
def test_totals_that_are_negative_by_rounding_count_as_zero() -> None:
    if DATA is None:
        pytest.skip("ROCSTEADY_DATA is not set; export it to the folder with aum_neg_zero_fp_diffs.csv.gz")
    with gzip.open(Path(DATA) / "aum_neg_zero_fp_diffs.csv.gz") as file:
        example, *numbers = np.loadtxt(file, delimiter=",", skiprows=1, unpack=True)
    with gzip.open(Path(DATA) / "aum_neg_zero_fp_pred.csv.gz") as file:
        predictions = np.loadtxt(file, skiprows=1)
    result = aum(predictions, example.astype(int), *numbers)
    functions: list[Function] = [[] for _ in predictions]
    for e, *row in zip(example.astype(int), *numbers, strict=True):
        functions[e].append(tuple(row))  # type: ignore[arg-type]
    assert result.value == pytest.approx(aum_by_integration(predictions.tolist(), functions), rel=1e-9)
