"""AUM and what belongs to it, slowly and as it is said."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

Function = list[tuple[float, float, float]]
"""The error functions of one example: (breakpoint, change of FP, change of FN)."""


def errors_at(t: float, predictions: Sequence[float], functions: Sequence[Function]) -> tuple[float, float]:
    """Total FP and FN when t is added to all predictions, t being no threshold."""
    fp = fn = 0.0
    for prediction, function in zip(predictions, functions, strict=True):
        fp += sum(dfp for v, dfp, _ in function if v < prediction + t)
        fn -= sum(dfn for v, _, dfn in function if v > prediction + t)
    return fp, fn


def thresholds(predictions: Sequence[float], functions: Sequence[Function]) -> list[float]:
    return sorted({v - p for p, function in zip(predictions, functions, strict=True) for v, _, _ in function})


def aum_by_integration(predictions: Sequence[float], functions: Sequence[Function]) -> float:
    ends = thresholds(predictions, functions)
    return sum((b - a) * min(errors_at((a + b) / 2, predictions, functions)) for a, b in pairwise(ends))


def sum_of_min_by_intervals(predictions: Sequence[float], functions: Sequence[Function]) -> float:
    ends = thresholds(predictions, functions)
    return sum(min(errors_at((a + b) / 2, predictions, functions)) for a, b in pairwise(ends))


def derivatives_by_differences(
    predictions: Sequence[float], functions: Sequence[Function], step: float
) -> tuple[np.ndarray, np.ndarray]:
    """Left and right, one prediction moved at a time; exact for a step below all gaps of thresholds."""
    here = aum_by_integration(predictions, functions)
    found = []
    for sign in (-1.0, 1.0):
        moved = [
            aum_by_integration(
                [p + sign * step * (i == j) for j, p in enumerate(predictions)], functions
            )
            for i in range(len(predictions))
        ]  # fmt: skip
        found.append(sign * (np.array(moved) - here) / step)
    return found[0], found[1]


def as_arrays(functions: Sequence[Function]) -> tuple[list[int], list[float], list[float], list[float]]:
    rows = [(i, *row) for i, function in enumerate(functions) for row in function]
    if not rows:
        return [], [], [], []
    example, at, fp_diff, fn_diff = (list(column) for column in zip(*rows, strict=True))
    return example, at, fp_diff, fn_diff


def random_functions(rng: np.random.Generator, n: int, most: int, grid: int) -> list[Function]:
    """Error functions, not monotone, on a grid of eighths: FP 0 at -inf, FN 0 at +inf, neither negative."""
    functions = []
    for _ in range(n):
        count = int(rng.integers(0, most + 1))
        at = np.sort(rng.integers(-grid, grid + 1, count)) / 8
        fp = np.concatenate([[0], rng.integers(0, 4, count)])
        fn = np.concatenate([rng.integers(0, 4, count), [0]])
        functions.append(
            [(float(v), float(a), float(b)) for v, a, b in zip(at, np.diff(fp), np.diff(fn), strict=True)]
        )
    return functions
