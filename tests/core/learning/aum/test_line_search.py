"""The line search says what AUM and AUC are at every step: brute force over all crossings."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from rocsteady.core.errors import ConfigError, InputError
from rocsteady.core.learning.aum.aum import aum, aum_of_labels
from rocsteady.core.learning.aum.error_roc import roc_of_error_functions
from rocsteady.core.learning.aum.line_search import LineSearch, aum_line_search

from tests.support.oracles.aum import as_arrays, random_functions


def crossings(
    predictions: np.ndarray, direction: np.ndarray, example: np.ndarray, at: np.ndarray
) -> list[float]:
    """Every step at which two thresholds meet, by all pairs."""
    t, d = at - predictions[example], -direction[example]
    found = set()
    for i, j in combinations(range(len(t)), 2):
        if d[i] != d[j] and (step := (t[j] - t[i]) / (d[i] - d[j])) > 0:
            found.add(step)
    return sorted(found)


def check(
    line: LineSearch, predictions: np.ndarray, direction: np.ndarray, rows: tuple[np.ndarray, ...]
) -> None:
    for k, step in enumerate(line.steps):
        assert line.aum[k] == pytest.approx(aum(predictions + step * direction, *rows).value, abs=1e-9)
        after = line.steps[k + 1] if k + 1 < len(line) else step + 1.0
        between = (step + after) / 2
        if after - step > 1e-9 and (k + 1 < len(line) or line.is_complete):
            moved = predictions + between * direction
            expected = aum(moved, *rows).value
            assert line.aum[k] + line.slope[k] * (between - step) == pytest.approx(expected, abs=1e-9)
            area = roc_of_error_functions(moved, *rows).auc
            assert line.auc[k] == pytest.approx(area if area is not None else np.nan, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize("seed", range(60))
def test_aum_slope_and_auc_at_every_crossing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 7))
    functions = random_functions(rng, n, 4, int(rng.choice([3, 20, 400])))
    rows = tuple(np.array(column) for column in as_arrays(functions))
    rows = (rows[0].astype(int), *rows[1:])
    exact = seed % 2  # on a grid many thresholds meet at once
    predictions = rng.integers(-4, 5, n) / 4 if exact else rng.normal(size=n)
    direction = rng.integers(-2, 3, n) * 1.0 if exact else rng.normal(size=n)
    line = aum_line_search(predictions, direction, *rows, max_crossings=10_000)
    assert line.is_complete
    check(line, predictions, direction, rows)
    steps = crossings(predictions, direction, rows[0], rows[1])
    for step in steps:  # every crossing is there, none besides but for rounding
        assert np.abs(line.steps - step).min() < 1e-9
    for step in line.steps[1:]:
        assert np.abs(np.array(steps) - step).min() < 1e-9
    dense = np.linspace(0, 2 * line.steps[-1] + 1, 101)
    assert line.best_aum <= min(aum(predictions + s * direction, *rows).value for s in dense) + 1e-9
    best = aum(predictions + line.best_step * direction, *rows).value
    assert best == pytest.approx(line.best_aum, abs=1e-9)


def test_only_so_many_crossings() -> None:
    rng = np.random.default_rng(3)
    n = 40
    labels = np.arange(n) % 2
    rows = (np.arange(n), np.zeros(n), 1.0 - labels, -1.0 * labels)
    predictions, direction = rng.normal(size=n), rng.normal(size=n)
    whole = aum_line_search(predictions, direction, *rows, max_crossings=n * n)
    for most in (0, 1, 5, n):
        part = aum_line_search(predictions, direction, *rows, max_crossings=most)
        assert not part.is_complete
        assert len(part) == most + 1
        np.testing.assert_array_equal(part.steps, whole.steps[: most + 1])
        np.testing.assert_allclose(part.aum, whole.aum[: most + 1])
        np.testing.assert_allclose(part.auc, whole.auc[: most + 1])
        check(part, predictions, direction, rows)
    assert len(aum_line_search(predictions, direction, *rows)) == n + 1


def test_lines_that_meet_in_one_point_are_turned_at_once() -> None:
    """All predictions reach 0 at step 1: n (n - 1) / 2 crossings, one step."""
    rng = np.random.default_rng(4)
    predictions, labels = rng.integers(-9, 10, 30) / 8, rng.integers(0, 2, 30)
    rows = (np.arange(30), np.zeros(30), 1.0 - labels, -1.0 * labels)
    line = aum_line_search(predictions, -predictions, *rows)
    assert line.is_complete
    assert line.steps.tolist() == [0.0, 1.0]
    assert line.aum.tolist() == [aum_of_labels(labels, predictions).value, 0.0]
    assert line.slope[1] == pytest.approx(aum_of_labels(labels, -predictions).value)
    assert line.auc.sum() == pytest.approx(1.0)


def test_from_a_constant_along_the_gradient_all_is_tied_at_first() -> None:
    labels = np.array([1, 0, 1, 0, 0])
    rows = (np.arange(5), np.zeros(5), 1.0 - labels, -1.0 * labels)
    line = aum_line_search(np.zeros(5), -aum(np.zeros(5), *rows).gradient, *rows)
    assert (line.steps.tolist(), line.aum.tolist(), line.auc.tolist()) == ([0.0], [0.0], [1.0])
    assert line.best_step == 0.0
    against = aum_line_search(np.zeros(5), aum(np.zeros(5), *rows).gradient, *rows)
    assert (against.slope.tolist(), against.auc.tolist()) == ([2.0], [0.0])


def test_a_plateau_is_entered_to_its_middle() -> None:
    rows = ([0, 1, 2], [0, 0, 8], [1, 0, 1], [0, -1, 0])
    line = aum_line_search([1.0, 0.0, 0.0], [-1.0, 0.0, 1.0], *rows)
    assert line.aum.tolist()[1] == 0.0
    assert line.steps.tolist() == [0.0, 1.0, 4.5, 8.0]
    assert line.best_step == 4.5
    assert aum([1.0 - 4.5, 0.0, 4.5], *rows).value == 0.0
    assert line.best_auc_step == 2.75


def test_what_is_wrong_is_named() -> None:
    rows = ([0], [0.0], [1], [0])
    with pytest.raises(InputError, match="direction has 2 values and predictions has 1"):
        aum_line_search([0.0], [1.0, 2.0], *rows)
    with pytest.raises(InputError, match=r"direction\[0\] is nan: give finite numbers"):
        aum_line_search([0.0], [np.nan], *rows)
    for most in (-1, "a", 1.5):
        with pytest.raises(ConfigError, match=f"max_crossings={most!r}; give a whole number from 0 on"):
            aum_line_search([0.0], [1.0], *rows, max_crossings=most)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="example 0: FP falls to -1"):
        aum_line_search([0.0], [1.0], [0], [0.0], [-1], [0])
    empty = aum_line_search([0.0], [1.0], [], [], [], [])
    assert (empty.steps.tolist(), empty.aum.tolist(), empty.is_complete) == ([0.0], [0.0], True)
