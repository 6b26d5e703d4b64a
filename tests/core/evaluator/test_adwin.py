"""Widths are those of a twin that keeps every value, and of river's inner detector, at every index."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.errors import ConfigError, CorruptBytesError, InputError
from rocsteady.core.evaluator import adwin as adwin_module
from rocsteady.core.evaluator.adwin import (
    CLOCK,
    DELTA,
    FIRST_ROW,
    LARGEST_VALUE,
    LARGEST_WIDTH,
    TOTAL,
    WIDTH,
    Adwin,
    adwin_update,
)
from rocsteady.core.kernels.compile import entry

from tests.support.invariants.sliding_window import SlidingWindow
from tests.support.oracles.adaptive import AdwinTwin
from tests.support.thorough import THOROUGH, at_length, examples

Generator = np.random.Generator
N = 100_000 if THOROUGH else at_length(40_000, 20_000)


def placements(rng: Generator, n: int) -> Any:
    """Placement values of a score that loses its worth, in a window of 2,000."""
    labels = rng.random(n) < 0.3
    scores = rng.normal(labels * np.repeat([1.5, 0.7, 0.2, 1.0], n // 4))
    window, values = SlidingWindow(2_000, stride=n + 1), np.empty(n)
    for t in range(n):
        values[t] = window.tree.placement(labels[t : t + 1], scores[t : t + 1])[0]
        window.slide(labels[t : t + 1], scores[t : t + 1])
    return np.nan_to_num(values, nan=0.5)


STREAMS: dict[str, Callable[[Generator, int], Any]] = {
    "fair coin": lambda rng, n: rng.random(n) < 0.5,
    "rare errors": lambda rng, n: rng.random(n) < 0.02,
    "sudden drifts": lambda rng, n: rng.random(n) < np.repeat([0.1, 0.5, 0.3, 0.8], n // 4),
    "gradual drift": lambda rng, n: rng.random(n) < np.linspace(0.05, 0.9, n),
    "a drift there and back": lambda rng, n: rng.random(n) < 0.5 + 0.4 * np.sin(np.arange(n) / (n / 20)),
    "placements": placements,
    "squared errors": lambda rng, n: (rng.beta(2, np.repeat([5, 2], n // 2)) - (rng.random(n) < 0.3)) ** 2,
    "many steps": lambda rng, n: np.repeat(rng.random(n // 200), 200) + 0.05 * rng.normal(size=n),
    "a constant": lambda _, n: np.full(n, 0.1),
    "one other value": lambda _, n: np.arange(n) == n // 2,
    "alternating": lambda _, n: np.arange(n) % 2,
    "heavy tails": lambda rng, n: rng.standard_cauchy(n),
}
"""A stream of n values by name."""

AWKWARD: dict[str, Callable[[Generator, int], Any]] = {
    "constant beyond whole numbers": lambda _, n: np.full(n, 1e17 + 12_345.0),
    "noise on a large number": lambda rng, n: 1e15 + rng.normal(size=n),
    "huge": lambda rng, n: rng.normal(size=n) * 1e100,
    "largest": lambda _, n: LARGEST_VALUE * (1 - 2 * (np.arange(n) % 2)),
    "tiny": lambda rng, n: rng.random(n) * 1e-300,
    "of all magnitudes": lambda rng, n: rng.normal(size=n) * 10.0 ** rng.integers(-20, 20, n),
    "alternating extremes": lambda _, n: np.arange(n) % 2 * 1e17,
}
"""Streams whose cuts are decided by rounding: only the same order of operations gives the same widths."""

SHRINK = {
    "sudden drifts",
    "gradual drift",
    "a drift there and back",
    "placements",
    "squared errors",
    "many steps",
}


def stream(name: str, n: int) -> Any:
    rng = np.random.default_rng(sum(name.encode()))
    return np.asarray({**STREAMS, **AWKWARD}[name](rng, n), np.float64)


def twin_widths(values: Any, delta: float) -> list[int]:
    twin, widths = AdwinTwin(delta), []
    for value in values.tolist():
        twin.add(value)
        widths.append(twin.width)
    return widths


def river_widths(values: Any, delta: float) -> list[int]:
    detector = pytest.importorskip("river.drift", reason="pip install '.[test]'").ADWIN(delta)._helper
    widths = []
    for value in values.tolist():
        detector.update(value)
        widths.append(int(detector.get_width()))
    return widths


def check_invariants(adwin: Adwin, values: Any) -> None:
    """Recompute every bucket and the window's moments from the values themselves."""
    counters, moments, buckets = adwin.arrays
    rows = int(counters[adwin_module.ROWS_USED])
    counts = counters[FIRST_ROW : FIRST_ROW + rows].tolist()
    assert counters[adwin_module.TICKS] == len(values)
    assert not counters[FIRST_ROW + rows :].any()
    assert all(count in (4, 5) for count in counts[:-1])
    assert all(1 <= count <= 5 for count in counts[-1:])
    assert adwin.width == counters[WIDTH] == sum(count << row for row, count in enumerate(counts))
    window = values[len(values) - adwin.width :]
    start = 0
    for row in reversed(range(rows)):
        for slot in range(counts[row]):
            part = window[start : start + (1 << row)]
            start += 1 << row
            assert buckets[row, 0, slot] == pytest.approx(part.sum(), rel=1e-12, abs=1e-12)
            assert buckets[row, 1, slot] == pytest.approx(len(part) * part.var(), rel=1e-9, abs=1e-12)
    assert moments[1] == pytest.approx(window.sum(), rel=1e-9, abs=1e-9)
    assert moments[2] == pytest.approx(len(window) * window.var(), rel=1e-9, abs=1e-9)


@pytest.mark.at_length
@pytest.mark.parametrize("name", [*STREAMS, *AWKWARD])
def test_widths_are_those_of_rivers_detector_at_every_index(name: str) -> None:
    values = stream(name, N)
    widths = Adwin().update(values)
    assert widths.tolist() == river_widths(values, 0.002)
    assert (widths[-1] < N) >= (name in SHRINK)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "delta"),
    list(product(["fair coin", "sudden drifts", "placements"], [1e-9, 0.002, 0.3, 0.999])),
)
def test_widths_are_rivers_at_any_confidence(name: str, delta: float) -> None:
    values = stream(name, 20_000)
    assert Adwin(delta).update(values).tolist() == river_widths(values, delta)


@pytest.mark.slow
@pytest.mark.parametrize("name", STREAMS)
def test_widths_are_those_of_a_list_of_all_values(name: str) -> None:
    values = stream(name, 20_000 if THOROUGH else 8_000)
    for delta in (0.002, 0.2):
        adwin = Adwin(delta)
        assert adwin.update(values).tolist() == twin_widths(values, delta)
        if name != "heavy tails":  # whose sums lose digits to values that went
            check_invariants(adwin, values)


@given(
    st.lists(st.tuples(st.integers(1, 90), st.floats(-4, 4), st.floats(0, 1)), max_size=12),
    st.sampled_from((0.002, 0.5)),
    st.integers(0, 2**32),
)
@settings(max_examples=examples(60))
def test_widths_buckets_and_moments_hold_on_any_sequence_of_steps(
    steps: list[tuple[int, float, float]], delta: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    values = np.concatenate([[0.0], *(mean + noise * rng.normal(size=n) for n, mean, noise in steps)])
    adwin = Adwin(delta)
    assert adwin.update(values).tolist() == twin_widths(values, delta)
    check_invariants(adwin, values)


def test_it_does_not_matter_how_values_are_cut_into_calls_and_snapshots() -> None:
    values = stream("sudden drifts", 40_000)
    whole = Adwin(0.05)
    widths = whole.update(values)
    rng = np.random.default_rng(5)
    parts, pieces, at = Adwin(0.05), [], 0
    while at < len(values):
        size = int(rng.integers(0, 400))
        pieces.append(parts.update(values[at : at + size]))
        at += size
        parts = Adwin.from_bytes(parts.to_bytes())
        assert (parts.arrays[1][DELTA], parts.width) == (0.05, pieces[-1][-1] if size else parts.width)
    assert np.concatenate(pieces).tolist() == widths.tolist()
    assert parts.to_bytes() == whole.to_bytes()
    assert all((a == b).all() for a, b in zip(parts.arrays, whole.arrays, strict=True) if a.ndim == 1)


def test_the_window_shrinks_at_checks_alone_and_says_when_the_next_comes() -> None:
    values = stream("many steps", 20_000)
    adwin = Adwin()
    until = []
    widths = []
    for value in values:
        until.append(adwin.until_check)
        widths.append(int(adwin.update([value])[0]))
    shrank = np.diff([0, *widths]) < 1
    assert shrank.sum() > 50
    assert set(np.array(until)[shrank]) == {1}
    assert until[: 2 * CLOCK] == [*range(CLOCK, 0, -1)] * 2


def test_the_mean_is_that_of_the_values_kept() -> None:
    adwin = Adwin()
    assert adwin.width == 0
    values = stream("sudden drifts", 8_000)
    width = int(adwin.update(values)[-1])
    assert width < 4_000
    assert adwin.width == width
    assert adwin.arrays[1][TOTAL] / width == pytest.approx(values[-width:].mean(), rel=1e-12)


@entry
def fed_by_another_kernel(counters: Any, moments: Any, buckets: Any, values: Any, dropped: Any) -> None:
    for index in range(len(values)):
        dropped[index] = adwin_update(counters, moments, buckets, values[index])


@pytest.mark.slow
def test_another_kernel_is_told_how_many_values_each_one_dropped() -> None:
    values = stream("many steps", 20_000)
    adwin, dropped = Adwin(), np.zeros(len(values), np.int64)
    fed_by_another_kernel(*adwin.arrays, values, dropped)
    widths = Adwin().update(values)
    assert dropped.sum() > 1_000
    assert (np.arange(1, len(values) + 1) - np.cumsum(dropped)).tolist() == widths.tolist()


@pytest.mark.parametrize("delta", [0, 1, -0.1, 2, float("nan"), float("inf"), "0.1", None, 1j])
def test_a_confidence_that_is_none_is_refused_by_name(delta: Any) -> None:
    with pytest.raises(ConfigError, match=r"delta=.* lies between 0 and 1"):
        Adwin(delta)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([0.0, float("nan")], "nan at position 1"),
        ([float("-inf")], "-inf at position 0"),
        ([1.0, 2.0, -1.1e140], "at position 2; give finite numbers of a magnitude of 1e[+]140 at most"),
        ([[1.0]], r"shape \(1, 1\); give one dimension"),
    ],
)
def test_values_that_would_spoil_all_later_ones_are_refused_before_any_is_fed(values: Any, said: str) -> None:
    adwin = Adwin()
    adwin.update(np.arange(100))
    before = adwin.to_bytes()
    with pytest.raises(InputError, match=said):
        adwin.update(values)
    assert adwin.to_bytes() == before


def test_a_window_beyond_the_rows_is_refused() -> None:
    adwin = Adwin()
    adwin.update(np.arange(100))
    adwin.arrays[0][WIDTH] = LARGEST_WIDTH - 2
    with pytest.raises(InputError, match="a window of more than 21,474,836,475"):
        adwin.update([1.0, 2.0, 3.0])


def test_the_largest_values_never_stop_it() -> None:
    values = np.concatenate([stream("largest", 5_000), np.zeros(50_000), np.arange(4_000) % 2])
    adwin = Adwin()
    adwin.update(values)
    assert np.isfinite(adwin.arrays[1]).all()
    assert np.isfinite(adwin.arrays[2]).all()


def test_a_snapshot_takes_16_bytes_a_bucket_and_an_empty_one_37() -> None:
    assert len(Adwin().to_bytes()) == 37
    adwin = Adwin()
    adwin.update(np.zeros(100_000))
    counts = adwin.arrays[0][FIRST_ROW:]
    assert len(adwin.to_bytes()) == 37 + (counts > 0).sum() + 16 * counts.sum() < 1_300


def test_every_damaged_byte_of_a_snapshot_is_found() -> None:
    adwin = Adwin()
    adwin.update(stream("sudden drifts", 4_000))
    data = adwin.to_bytes()
    assert Adwin.from_bytes(data).to_bytes() == data
    for at in range(len(data)):
        for bit in (1, 128):
            with pytest.raises(CorruptBytesError):
                Adwin.from_bytes(data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :])
        with pytest.raises(CorruptBytesError):
            Adwin.from_bytes(data[:at])
    with pytest.raises(CorruptBytesError):
        Adwin.from_bytes(data + b"\0")


def forged(
    delta: float = 0.1,
    ticks: int = 30,
    total: float = 0.0,
    squares: float = 0.0,
    counts: tuple[int, ...] = (4, 1),
    fill: float = 0.0,
) -> bytes:
    head = struct.pack("<dqddB", delta, ticks, total, squares, len(counts))
    payload = head + bytes(counts) + struct.pack("<d", fill) * (2 * sum(counts))
    return struct.pack("<I", zlib.crc32(payload)) + payload


@pytest.mark.parametrize(
    ("contradiction", "said"),
    [
        ({"delta": 1.5}, "delta=1.5"),
        ({"delta": float("nan")}, "delta=nan"),
        ({"ticks": 5}, "buckets .4, 1. of 5 values"),
        ({"ticks": -1, "counts": ()}, "buckets .. of -1 values"),
        ({"counts": (3, 1)}, "buckets .3, 1."),
        ({"counts": (4, 0)}, "buckets .4, 0."),
        ({"counts": (4, 6)}, "buckets .4, 6."),
        ({"counts": (4,) * 33, "ticks": 2**40}, "cannot be"),
        ({"counts": (4,) * 255, "ticks": 2**40}, "cannot be"),
        ({"total": float("nan")}, "not finite"),
        ({"squares": float("inf")}, "not finite"),
        ({"fill": float("inf")}, "not finite"),
    ],
)
def test_a_snapshot_that_contradicts_itself_is_refused(contradiction: dict[str, Any], said: str) -> None:
    assert Adwin.from_bytes(forged()).width == 6
    with pytest.raises(CorruptBytesError, match=said):
        Adwin.from_bytes(forged(**contradiction))


def test_the_kernel_is_compiled_once() -> None:
    if not hasattr(adwin_module.adwin_feed, "signatures"):
        pytest.skip("numba is switched off by NUMBA_DISABLE_JIT")
    frozen = np.arange(64.0)
    frozen.flags.writeable = False
    for values in (frozen, frozen[::2], [1, 2], np.arange(5) > 2, np.float32([1])):
        adwin = Adwin()
        adwin.update(values)
        Adwin.from_bytes(adwin.to_bytes()).update(values)
    assert len(adwin_module.adwin_feed.signatures) == 1
