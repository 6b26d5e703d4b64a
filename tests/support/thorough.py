"""How much of a test's cases is run: some in a plain run, all where ROCSTEADY_THOROUGH is set."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import pytest

Case = TypeVar("Case")

THOROUGH_VARIABLE = "ROCSTEADY_THOROUGH"
THOROUGH = bool(os.environ.get(THOROUGH_VARIABLE))
AT_LENGTH_VARIABLE = "ROCSTEADY_AT_LENGTH"
AT_LENGTH = THOROUGH or bool(os.environ.get(AT_LENGTH_VARIABLE))
"""Whether tests marked `at_length` have whole streams and all their examples: .ci/run runs them so, too."""


def at_length(whole: Case, plain: Case) -> Case:
    """Return how much a test marked `at_length` tries now: the whole, or in a plain run less of the same."""
    return whole if AT_LENGTH else plain


def examples(most: int) -> int:
    """Return how many of these a property test tries now."""
    return most if THOROUGH else max(min(most, 15), most // 4)


def some(cases: Iterable[tuple[Any, ...]], each: int = 1) -> list[tuple[Any, ...]]:
    """Return which of these cases, as of `itertools.product`, a test is run with now.

    In a plain run they are a subset, in the order of all of them, in which every value of every
    parameter occurs `each` times at least (or as often as in all cases) and values meet different
    ones of the other parameters. It depends on the cases alone. Where ROCSTEADY_THOROUGH is set,
    they are all.
    """
    left = list(enumerate(cases))
    assert left, "no cases"
    if THOROUGH:
        return [case for _, case in left]
    keys = {number: [(place, *_key(value)) for place, value in enumerate(case)] for number, case in left}
    wanted = {key: min(each, count) for key, count in Counter(k for ks in keys.values() for k in ks).items()}
    used: Counter[Any] = Counter()
    chosen = []
    while any(used[key] < count for key, count in wanted.items()):
        best = max(
            left,
            key=lambda numbered: (
                sum(used[key] < wanted[key] for key in keys[numbered[0]]),
                -sum(used[key] for key in keys[numbered[0]]),
            ),
        )
        left.remove(best)
        chosen.append(best)
        used.update(keys[best[0]])
    return [case for _, case in sorted(chosen, key=lambda numbered: numbered[0])]


def others_slow(cases: Iterable[tuple[Any, ...]], each: int = 1) -> list[Any]:
    """Return all of these cases: those that `some` chooses, and the others for `-m slow`."""
    cases = list(cases)
    chosen = some(cases, each)
    return [case if case in chosen else pytest.param(*case, marks=pytest.mark.slow) for case in cases]


def few(plain: int, cases: Sequence[Case]) -> Sequence[Case]:
    """Return the first `plain` of these cases, such as seeds, or all where ROCSTEADY_THOROUGH is set."""
    assert 0 < plain <= len(cases), (plain, len(cases))
    return cases if THOROUGH else cases[:plain]


def first(plain: int, cases: Sequence[Case]) -> list[Any]:
    """Return all of these cases: the first `plain`, and the others for `-m slow`."""
    return [*cases[:plain], *(pytest.param(case, marks=pytest.mark.slow) for case in cases[plain:])]


def _key(value: Any) -> tuple[Any, ...]:
    """Return what tells a value from the other values of its parameter."""
    try:
        hash(value)
    except TypeError:
        return (id(value),)
    return (type(value), value)
