"""What `tatti2021` measures: AUC and H, maintained and from scratch, and H with fixed priors, approximately.

Contenders take turns of some events, so that a busy machine slows both, and must agree at every event.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import gcd
from typing import Any, NamedTuple

import numba
import numpy as np
from rocsteady.core.score_tree.query import list_hull
from rocsteady.core.score_tree.store import NOTHING
from rocsteady.core.score_tree.subset import list_subset
from rocsteady.core.score_tree.tree import ScoreTree

from benchmarks.papers.data import Stream
from benchmarks.papers.tatti2021_baselines import AUC, NO_MEASURE, H, SortedList, h_of_hull
from tests.support.invariants.sliding_window import SlidingWindow

PRIOR = 0.5
EPSILONS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
TREES = {AUC: "DynAuc", H: "Hexact"}
NOBODY = np.empty(0, np.int8), np.empty(0)


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    events: int  # of a stream at the most
    windows: tuple[int, ...]
    steps: int  # that a window slides
    chunk: int  # events in a turn
    stride: int  # Figure 8 asks at every so many events, as often


FULL = Sizes(100_000, (500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000), 5_000, 1_000, 50)
QUICK = Sizes(2_000, (50, 100, 200), 400, 200, 50)


def largest_hull(events: int) -> Stream:
    """About so many events whose hull has about as many vertices as it can have, in random order.

    A score for every fraction p / q in lowest terms, q up to a limit, with q events, p of them positive.
    """
    steps: list[tuple[int, int]] = []
    used = q = 0
    while used + q + 1 <= events:
        q += 1
        steps += [(p, q) for p in range(q + 1) if gcd(p, q) == 1]
        used = sum(q for _, q in steps)
    steps.sort(key=lambda step: step[0] / step[1])
    labels = np.concatenate([np.arange(q) < p for p, q in steps]).astype(np.int8)
    scores = np.repeat(np.arange(len(steps)) * 1.0, [q for _, q in steps])
    return Stream("largest hull", "a score for every slope p/q, made", labels, scores).shuffled()


@dataclass(frozen=True)
class Pair:
    """Milliseconds for 1,000 events, of the tree and of the sorted list, at sizes x."""

    x: np.ndarray
    tree: np.ndarray
    scratch: np.ndarray

    def at(self, x: float) -> tuple[float, float]:
        """Return both at the size next to x: medians of those that differ from it by a twentieth at most."""
        next_to = self.x[np.abs(self.x - x).argmin()]
        near = np.abs(self.x - next_to) <= next_to / 20
        return float(np.median(self.tree[near])), float(np.median(self.scratch[near]))

    def growth(self, end: float) -> tuple[float, float, float]:
        """Return by what factors size, tree and list grow from about a quarter of a size to it."""
        begin = float(self.x[np.abs(self.x - end / 4).argmin()])
        (tree, scratch), (tree_before, scratch_before) = self.at(end), self.at(begin)
        return end / begin, tree / tree_before, scratch / scratch_before


def ask_tree(
    window: SlidingWindow, measure: int, labels: Any, scores: Any, leaving: Any
) -> tuple[float, Any]:
    """Slide over events with a row after each; return the seconds and the values."""
    start = time.thread_time()
    rows = window.slide(labels, scores, leaving, NOTHING._replace(h=int(measure == H)))
    seconds = time.thread_time() - start
    with np.errstate(invalid="ignore"):
        if measure == H:
            return seconds, 1.0 - rows.h_loss / rows.h_loss_of_all
        return seconds, rows.pairs2 / (2.0 * rows.positives * rows.negatives)


def agree(measure: int, found: Any, expected: Any) -> None:
    both = np.isfinite(expected)
    if not np.allclose(found[both], expected[both], rtol=0.0, atol=1e-9):
        raise AssertionError(f"{TREES[measure]} and its baseline disagree: a defect of ours")


def additions(stream: Stream, measure: int, sizes: Sizes) -> Pair:
    """Add all events of a stream, with the measure after each."""
    window = SlidingWindow(None, keeps_hull=measure == H)
    sorted_list = SortedList(len(stream), measure)
    x, tree, scratch = [], [], []
    for begin in range(0, len(stream), sizes.chunk):
        part = slice(begin, begin + sizes.chunk)
        labels, scores = stream.labels[part], stream.scores[part]
        seconds, found = ask_tree(window, measure, labels, scores, np.zeros(len(labels), np.int64))
        start = time.thread_time()
        expected = sorted_list.apply(labels, scores, *NOBODY)
        scratch.append((time.thread_time() - start) / len(labels) * 1e6)
        tree.append(seconds / len(labels) * 1e6)
        x.append(begin + len(labels))
        agree(measure, found, expected)
    return Pair(np.array(x), np.array(tree), np.array(scratch))


def windows(stream: Stream, measure: int, sizes: Sizes) -> Pair:
    """Slide windows of several sizes over a stream, with the measure after each step."""
    x, tree, scratch = [], [], []
    for k in sizes.windows:
        if k + sizes.chunk > len(stream):
            continue
        window, sorted_list = SlidingWindow(k, keeps_hull=measure == H), SortedList(k, measure)
        window.slide(stream.labels[:k], stream.scores[:k], ask=NOTHING)
        sorted_list.load(stream.labels[:k], stream.scores[:k])
        times = []
        for begin in range(k, min(len(stream), k + sizes.steps) - sizes.chunk + 1, sizes.chunk):
            new, old = slice(begin, begin + sizes.chunk), slice(begin - k, begin - k + sizes.chunk)
            seconds, found = ask_tree(window, measure, stream.labels[new], stream.scores[new], None)
            start = time.thread_time()
            expected = sorted_list.apply(
                stream.labels[new], stream.scores[new], stream.labels[old], stream.scores[old]
            )
            times.append((seconds / sizes.chunk * 1e6, (time.thread_time() - start) / sizes.chunk * 1e6))
            agree(measure, found, expected)
        x.append(k)
        tree.append(np.median([of_tree for of_tree, _ in times]))
        scratch.append(np.median([of_list for _, of_list in times]))
    return Pair(np.array(x), np.array(tree), np.array(scratch))


class Scan(NamedTuple):
    """Nanoseconds an event of a scan for H: the same events over and over, or others in between."""

    events: int
    same: float
    other: float


def scan_nanoseconds(events: int) -> Scan:
    """Measure scans of random events, medians of 20 rounds."""
    rng = np.random.default_rng(1)
    lists = [SortedList(events, NO_MEASURE) for _ in range(10)]
    for sorted_list in lists:
        labels = (rng.random(events) < 0.5).astype(np.int8)
        sorted_list.load(labels, rng.normal(size=events) + labels)
    medians = []
    for scanned in ([lists[0]] * len(lists), lists):
        rounds = []
        for _ in range(20):
            start = time.thread_time()
            for sorted_list in scanned:
                sorted_list.h(PRIOR)
            rounds.append(time.thread_time() - start)
        medians.append(float(np.median(rounds)) / len(lists) / events * 1e9)
    return Scan(events, *medians)


@numba.njit(error_model="numpy")
def ask_subset(tree: Any, factor: float, x: Any, y: Any, prior: float, times: int) -> float:
    """Happrox so many times."""
    h = 0.0
    for _ in range(times):
        n, _ = list_subset(tree, factor, x, y)
        h = h_of_hull(x, y, n, prior)
    return h


@numba.njit(error_model="numpy")
def ask_hull(tree: Any, x: Any, y: Any, prior: float, times: int) -> float:
    """The exact sum over the maintained hull so many times."""
    h = 0.0
    for _ in range(times):
        h = h_of_hull(x, y, list_hull(tree, x, y), prior)
    return h


@dataclass
class Priors:
    """Seconds for H with fixed priors after every addition of a stream, in each way, and the errors."""

    stream: Stream
    vertices: int
    scratch: float
    maintained: float
    exact: float
    h: float
    subset: dict[float, float]
    error: dict[float, float]  # at the end
    worst: dict[float, float]  # of all


def timed(function: Callable[..., float], *arguments: Any) -> tuple[float, float]:
    start = time.thread_time()
    value = function(*arguments)
    return time.thread_time() - start, value


def fixed_priors(stream: Stream, sizes: Sizes) -> Priors:
    """Add the events of a stream, and ask for H as often, at every so many."""
    tree, sorted_list = ScoreTree(len(stream)), SortedList(len(stream), NO_MEASURE)
    x, y = np.empty((2, len(stream) + 2), np.int64)
    found = Priors(stream, 0, 0.0, 0.0, 0.0, 0.0, *(dict.fromkeys(EPSILONS, 0.0) for _ in range(3)))
    for begin in range(0, len(stream), sizes.stride):
        part = slice(begin, begin + sizes.stride)
        labels, scores = stream.labels[part], stream.scores[part]
        times = len(labels)
        start = time.thread_time()
        tree.insert(labels, scores)
        found.maintained += time.thread_time() - start
        start = time.thread_time()
        sorted_list.apply(labels, scores, *NOBODY)
        found.scratch += time.thread_time() - start
        seconds, from_scratch = timed(sorted_list.h, PRIOR)
        found.scratch += seconds * times
        seconds, found.h = timed(ask_hull, tree._tree, x, y, PRIOR, times)
        found.exact += seconds
        if np.isfinite(from_scratch) and abs(from_scratch - found.h) > 1e-9:
            raise AssertionError("H of the maintained hull and from scratch disagree: a defect of ours")
        for epsilon in EPSILONS:
            seconds, h = timed(ask_subset, tree._tree, 1.0 + epsilon, x, y, PRIOR, times)
            found.subset[epsilon] += seconds
            error = found.h - h
            if not -1e-9 <= error <= epsilon * (1.0 - found.h) + 1e-9 and np.isfinite(error):
                raise AssertionError(f"H is off by {error} at epsilon {epsilon}: a defect of ours")
            found.error[epsilon] = error
            found.worst[epsilon] = max(found.worst[epsilon], error if np.isfinite(error) else 0.0)
    found.vertices = len(tree.hull().x)
    return found


def compile_all() -> None:
    """Compile what is measured, before the clock."""
    pair = np.array([0, 1], np.int8), np.array([0.0, 1.0])
    for measure in (AUC, H, NO_MEASURE):
        sorted_list = SortedList(2, measure)
        sorted_list.apply(*pair, *NOBODY)
        sorted_list.h(PRIOR)
    tree = ScoreTree()
    tree.insert(*pair)
    x, y = np.empty((2, 4), np.int64)
    ask_subset(tree._tree, 2.0, x, y, PRIOR, 1)
    ask_hull(tree._tree, x, y, PRIOR, 1)
