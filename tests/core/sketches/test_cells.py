"""Levels are nested, in score order and mirrored at 0; a border is a cell by itself; bytes only grow."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rocsteady.core.score_tree.layout import keys_of
from rocsteady.core.sketches.auc_sketch import _coarsened
from rocsteady.core.sketches.cells import EXACT, FINEST, cells_of, partition_at, wire_size
from rocsteady.core.sketches.wire import wire_columns

LEVELS = [*range(0, 100, 3), *range(88, 130), 200, 321, 488]
AWKWARD = [
    0.0, 5e-324, 2.2e-308, 2.3e-308, 1e-300, 1e-9, 0.1, 0.125, 0.25, math.nextafter(0.5, 0), 0.5, 0.6, 0.75,
    0.8, 0.875, 0.999, 0.999999, math.nextafter(1, 0), 1.0, math.nextafter(1, 2), 2.0, 3.0, 10.0, 1e5, 1e300,
    1.7976931348623157e308,
]  # fmt: skip


def scores_of_every_kind(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 0x7FF0000000000000, 300).view(np.float64)
    near = 1 - 10.0 ** -rng.uniform(0, 16, 300)
    halves = np.concatenate([AWKWARD, bits, near, rng.normal(size=300) ** 2, rng.integers(1, 40, 50)])
    return np.unique(np.concatenate([-halves, halves]) + 0.0)


def cells_at(level: int, scores: np.ndarray) -> np.ndarray:
    keys = keys_of(scores)
    if level == EXACT:
        return keys
    cells = np.empty_like(keys)
    cells_of(keys, partition_at(level), cells)
    return cells


def share_later(magnitude: float) -> int:
    """Return by how many eighths of bits later than others a block begins to be divided."""
    if 0.5 <= magnitude < 1:
        piece = next(k for k in range(60) if Fraction(magnitude) < 1 - Fraction(1, 2 ** (k + 2)))
        return 4 + min(32, 4 * piece)
    exponent = -1023 if magnitude < 2.0**-1022 else math.frexp(magnitude)[1] - 1
    return min(32, 4 * max(0, -3 - exponent))


@pytest.mark.parametrize("level", LEVELS)
def test_cells_are_in_score_order_and_nested(level: int) -> None:
    scores = scores_of_every_kind(level)
    cells = cells_at(level, scores)
    assert (np.diff(cells) >= 0).all()
    assert cells[scores == 0.0] == [0]
    assert (cells_at(level, -scores[scores != 0]) == ~cells[scores != 0]).all()
    for finer in (level + 1, level + 8, FINEST, EXACT):
        if finer <= level or (finer > FINEST and finer != EXACT):
            continue
        of_finer = cells_at(finer, scores)
        values, counts = np.unique(of_finer, return_counts=True)
        got = _coarsened((values, counts, counts), finer, level)
        wanted = np.unique(cells, return_counts=True)
        assert got[0].tolist() == wanted[0].tolist()
        assert got[1].tolist() == wanted[1].tolist()


def test_a_cell_with_an_even_number_holds_one_value() -> None:
    rng = np.random.default_rng(0)
    for level in (89, 120, 150, 200):
        scores = np.abs(scores_of_every_kind(level))
        scores = np.concatenate([scores, np.nextafter(scores, 2), rng.random(1000), np.arange(40.0)])
        cells = cells_at(level, scores)
        for cell in np.unique(cells[cells % 2 == 0]):
            assert len(np.unique(scores[cells == cell])) == 1


@pytest.mark.parametrize("value", [0.0, 1.0, 0.5, 0.25, 0.75, 2.0, 3.0, 4.0, 7.0])
def test_usual_ties_are_cells_by_themselves(value: float) -> None:
    near = np.array([np.nextafter(value, -9), value, np.nextafter(value, 9)])
    for level in range(120, FINEST):
        assert len(set(cells_at(level, near).tolist())) == 3
        assert len(set(cells_at(level, -near).tolist())) == 3


def test_blocks_are_divided_as_finely_as_their_shares_say() -> None:
    for magnitude in AWKWARD:
        if magnitude in (0.0, 1.7976931348623157e308, math.nextafter(1, 0), math.nextafter(0.5, 0)):
            continue
        level = 88 + 80
        steps = level - 88 - share_later(magnitude)
        partition = partition_at(level)
        key = int(keys_of(np.array([magnitude]))[0])
        block = int(np.searchsorted(partition.starts, key, side="right")) - 1
        assert partition.steps[block] == min(steps, 8 * partition.bits[block])
        whole, eighths = 1 << (steps // 8), steps % 8
        cells = partition.ranks[block + 1] - partition.ranks[block]
        assert cells == whole + (whole // 8) * eighths + min(whole % 8, eighths)


def test_a_level_more_splits_an_eighth_of_the_cells() -> None:
    scores = np.linspace(1, 2, 2**14, endpoint=False)
    counts = [len(np.unique(cells_at(level, scores) // 2)) for level in range(88 + 64, 88 + 73)]
    assert counts == [256 + 32 * step for step in range(9)]


events = st.lists(
    st.tuples(st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 1), st.integers(1, 2**40)),
    max_size=30,
)


@given(some=events, more=events, level=st.sampled_from([0, 5, 88, 89, 100, 150, 300, FINEST, EXACT]))
def test_the_bytes_of_cells_never_get_fewer_by_events_more(some: list, more: list, level: int) -> None:
    def size(listed: list) -> int:
        counts: dict[int, list[int]] = {}
        for score, label, times in listed:
            cell = int(cells_at(level, np.array([score]))[0])
            counts.setdefault(cell, [0, 0])[label] += times
        cells = sorted(counts)
        columns = (cells, [counts[cell][0] for cell in cells], [counts[cell][1] for cell in cells])
        return wire_size(*wire_columns(tuple(np.array(column, np.int64) for column in columns)))

    assert size(some) <= size(some + more) <= size(some) + size(more)
