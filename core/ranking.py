"""The window's events in score order, and what a row says of their ranking. Two ways, the same rows.

`SortedRanking` keeps sorted arrays and scans them at a row: nothing to keep between rows, any measure,
any number of events. `TreeRanking` keeps a ScoreTree, in which everything is current after every event:
a whole batch with its rows is one call. Both make a row from the same whole numbers, so that rows do not
tell, bit for bit, which of the two was at work, nor where one took over from the other.

`tree_sizes` says which to use: a pure function of the settings and of how many events are held.
"""

from __future__ import annotations

import functools
import math
import sys
from typing import Any, Protocol

import numpy as np
from scipy.special import betainc, ndtri

from .errors import InputError
from .events import FloatArray, Int8Array, Int64Array
from .rings import unrolled, write_ring
from .rows import NUMBER_COLUMNS, OUT_OF_RANGE
from .score_tree_layout import fixed_point_scale, for_kernels
from .score_tree_rows import ROW, Ask
from .score_window import BRIDGES_FROM, ScoreWindow, keeps_hull_for
from .settings import MEASURES, PRIORS_OF_WINDOW, AllEvents, EvaluatorSettings, SeverityCost
from .window_scan import (
    EXACT_EVENTS,
    group_ties,
    merge_sorted,
    probability_losses,
    scan_window,
    write_tree_rows,
)

_MEASURE = len(NUMBER_COLUMNS) - len(MEASURES)
_H, _AUM = MEASURES.index("h"), MEASURES.index("aum")
_NO_SCORES = np.empty(0)
_NO_LABELS = np.empty(0, np.int8)
_FIRST_CAPACITY = 64
_FEW = 1_000
_TREE_CAPACITY = 1024
"""A tree without a window size starts with this capacity and doubles it."""

_ONLY_SCANNED = frozenset(("brier", "log_loss", "cost_curve_area", "average_precision", "calibration_error"))


def curvature_of(settings: EvaluatorSettings) -> float | None:
    """Return the curvature of a cost density whose loss is kept in fixed point; None for all others.

    Those of which the loss adds up over hull edges whatever the window: Beta(2, 2) and Beta(1, 1), with
    the window's own priors.
    """
    if settings.priors != PRIORS_OF_WINDOW or isinstance(settings.cost, SeverityCost):
        return None
    return {(2.0, 2.0): 1.0, (1.0, 1.0): 0.0}.get(settings.cost.beta(0.5))


def tree_sizes(settings: EvaluatorSettings) -> range:
    """Return the numbers of held events at which a tree serves a window better than scans; maybe none.

    Pure, and only of speed and memory: rows are the same. A tree pays off once it gives several rows: a
    scan takes some 60 us a row and .02 us per event held, a tree .3 us an event and a millisecond to
    begin with (docs/benchmarks/core.md). It does not hold EXACT_EVENTS or more.
    """
    asked = settings.measures or ()
    limit = None if isinstance(settings.window, AllEvents) else settings.window.k
    scans_only = (
        (limit is not None and limit >= EXACT_EVENTS)
        or not _ONLY_SCANNED.isdisjoint(asked)
        or ("h" in asked and (settings.flip_if_below_half or curvature_of(settings) is None))
    )
    end = 0 if scans_only else EXACT_EVENTS if limit is None else limit + 1
    return range(max(64, 2 * settings.every.n), end)


def suits_tree(settings: EvaluatorSettings, held: int) -> bool:
    """Return whether a window that holds so many events is served better by a tree than by scans."""
    return held in tree_sizes(settings)


def next_switch(settings: EvaluatorSettings, held: int) -> int | None:
    """Return the next larger number of held events at which the other form suits better; None = never."""
    return switch_after(tree_sizes(settings), held)


def switch_after(sizes: range, held: int) -> int | None:
    """Return `next_switch` by the sizes that suit a tree; where a window ends, it never grows past them."""
    if sizes and held < sizes.start:
        return sizes.start
    return sizes.stop if held in sizes and sizes.stop == EXACT_EVENTS else None


def z_of(settings: EvaluatorSettings) -> float:
    """Return the quantile of the normal distribution that the AUC interval reaches to."""
    return float(ndtri(0.5 + settings.confidence / 2.0))


class Ranking(Protocol):
    """The window in score order. Events come in order of arrival, the oldest go as the window says."""

    def take(self, labels: Int8Array, scores: FloatArray, numbers: FloatArray, reasons: Int8Array) -> None:
        """Apply events; write the rows that fall due, one of `numbers` and `reasons` each."""
        ...

    def write_row(self, numbers: FloatArray, reasons: Int8Array) -> None:
        """Write what the window says now into one row."""
        ...

    def to_arrays(self) -> tuple[Int8Array, FloatArray]:
        """Return labels and scores of the window, oldest first."""
        ...

    def to_entries(self) -> tuple[FloatArray, Int64Array, Int64Array]:
        """Return the window's distinct scores, ascending, with their negatives and positives."""
        ...

    def live_bytes(self) -> int:
        """Return about how much memory it takes."""
        ...


class TreeRanking:
    """A ranking that is current after every event. O(log k) an event for AUC, O(log^2 k) with the hull."""

    def __init__(
        self, settings: EvaluatorSettings, labels: Int8Array, scores: FloatArray, until_row: int
    ) -> None:
        asked = settings.measures or ()
        self._ask = Ask(
            h=int("h" in asked),
            ks=int("ks" in asked or "ks_threshold" in asked),
            tpr_at_fpr=int("tpr_at_fpr" in asked),
            cost_threshold=int("cost_threshold" in asked),
            aum=int("aum" in asked),
            fpr=settings.at_fpr,
            cost=settings.false_positive_cost,
        )
        self._z = z_of(settings)
        size = None if isinstance(settings.window, AllEvents) else settings.window.k
        self._needs_hull = bool(self._ask.h or self._ask.ks or self._ask.cost_threshold)
        self._stride = settings.every.n
        self._window = ScoreWindow(
            size,
            capacity=_TREE_CAPACITY if size is None else size + 1,
            stride=settings.every.n,
            cost=(1, 1) if curvature_of(settings) == 0.0 else (2, 2),
            keeps_hull=self._needs_hull and keeps_hull_for(size or len(scores), self._stride),
        )
        self._sized = size is not None
        self._window.load(labels, scores)
        self._window.until_row = until_row

    def take(self, labels: Int8Array, scores: FloatArray, numbers: FloatArray, reasons: Int8Array) -> None:
        """See `Ranking`."""
        start = row = 0
        while start < len(scores):
            end = min(len(scores), start + self._events_until_bridges())
            leaving = None if self._sized else np.zeros(end - start, np.int64)
            rows = self._window.slide(labels[start:end], scores[start:end], leaving, self._ask)
            if row + len(rows) > len(numbers):  # never let a kernel find out: it checks no bounds
                raise InputError(f"{row + len(rows)} rows fell due where {len(numbers)} were expected")
            written = slice(row, row + len(rows))
            if len(rows):
                write_tree_rows(_plain(rows), self._ask.h, self._z, numbers[written], reasons[written])
            start, row = end, row + len(rows)
        if row != len(numbers):
            raise InputError(f"{row} rows fell due where {len(numbers)} were expected")
        if row:
            _refuse_infinite(numbers, reasons)

    def _events_until_bridges(self) -> int:
        """Return how many events may come before a window without end has grown to where bridges pay off.

        From there on they are kept: scans would cost more with every row.
        """
        tree = self._window.tree
        if not self._needs_hull or tree.keeps_hull or self._sized:
            return sys.maxsize
        if keeps_hull_for(len(tree), self._stride):
            tree.keeps_hull = True
            return sys.maxsize
        return BRIDGES_FROM * self._stride - len(tree)

    def write_row(self, numbers: FloatArray, reasons: Int8Array) -> None:
        """See `Ranking`."""
        row = self._window.tree.rows_now(self._ask)
        write_tree_rows(row, self._ask.h, self._z, numbers[np.newaxis], reasons[np.newaxis])
        _refuse_infinite(numbers[np.newaxis], reasons[np.newaxis])

    def to_arrays(self) -> tuple[Int8Array, FloatArray]:
        """See `Ranking`."""
        return self._window.to_arrays()

    def to_entries(self) -> tuple[FloatArray, Int64Array, Int64Array]:
        """See `Ranking`. O(k)."""
        entries = self._window.tree.to_sorted()
        return entries.scores, entries.negatives, entries.positives

    def live_bytes(self) -> int:
        """See `Ranking`."""
        return self._window.nbytes


@functools.lru_cache(maxsize=64)
def _for_scans(settings: EvaluatorSettings) -> tuple[Int8Array, float, float | None]:
    """Return which measures are asked for, the quantile and the curvature: the same for many models."""
    asked = np.array([name in (settings.measures or ()) for name in MEASURES], np.int8)
    return asked, z_of(settings), curvature_of(settings)


class SortedRanking:
    """A ranking that is sorted when a row needs it, by a merge with what came and went since the last."""

    def __init__(
        self, settings: EvaluatorSettings, labels: Int8Array, scores: FloatArray, until_row: int
    ) -> None:
        self._settings = settings
        self._limit = None if isinstance(settings.window, AllEvents) else settings.window.k
        self._every = settings.every.n
        self._until_row = until_row
        self._asked, self._z, self._curvature = _for_scans(settings)
        self._head, self._held = 0, len(scores)
        room = _room(self._held, self._limit)
        self._scores, self._labels = np.zeros(room), np.zeros(room, np.int8)
        self._scores[: self._held], self._labels[: self._held] = scores, labels
        self._sorted_scores, self._sorted_labels = _NO_SCORES, _NO_LABELS
        self._added: list[tuple[FloatArray, Int8Array]] = []
        self._removed: list[tuple[FloatArray, Int8Array]] = []
        self._pending = -1 if self._held else 0

    def take(self, labels: Int8Array, scores: FloatArray, numbers: FloatArray, reasons: Int8Array) -> None:
        """See `Ranking`."""
        start = 0
        for row in range(len(numbers)):
            end = start + self._until_row
            self._apply(labels[start:end], scores[start:end])
            self.write_row(numbers[row], reasons[row])
            self._until_row, start = self._every, end
        self._apply(labels[start:], scores[start:])
        self._until_row -= len(scores) - start

    def _apply(self, labels: Int8Array, scores: FloatArray) -> None:
        """Apply events between which no row is due."""
        n = len(scores)
        if not n:
            return
        self._make_room(self._held + n)
        capacity = len(self._scores)
        evicted = max(0, self._held + n - capacity)
        self._note_changes(labels, scores, evicted)
        write_ring(self._scores, self._head + self._held, scores)
        write_ring(self._labels, self._head + self._held, labels)
        self._head = (self._head + evicted) % capacity
        self._held += n - evicted

    def _make_room(self, wanted: int) -> None:
        """Grow the ring, up to the window's size; it wraps only once it has that size."""
        capacity = len(self._scores)
        if wanted <= capacity or capacity == self._limit:
            return
        room = _room(wanted, self._limit)
        self._scores = np.concatenate([self._scores, np.zeros(room - capacity)])
        self._labels = np.concatenate([self._labels, np.zeros(room - capacity, np.int8)])

    def _note_changes(self, labels: Int8Array, scores: FloatArray, evicted: int) -> None:
        """Remember what the sorted window lacks; forget it all where sorting anew will be cheaper."""
        if self._pending < 0:
            return
        self._pending += len(scores) + evicted
        if evicted > self._held or self._pending > max(_FIRST_CAPACITY, self._held):
            self._added.clear()
            self._removed.clear()
            self._pending = -1
            return
        self._added.append((scores.copy(), labels.copy()))  # a view would hold on to the whole call's
        if evicted:
            oldest = unrolled(self._scores, self._head, evicted), unrolled(self._labels, self._head, evicted)
            self._removed.append(oldest)

    def to_arrays(self) -> tuple[Int8Array, FloatArray]:
        """See `Ranking`."""
        scores = unrolled(self._scores, self._head, self._held)
        return unrolled(self._labels, self._head, self._held), scores

    def to_entries(self) -> tuple[FloatArray, Int64Array, Int64Array]:
        """See `Ranking`. O(k), once it is sorted."""
        self._sort()
        events = len(self._sorted_scores)
        keys, negatives, positives = np.empty(events), np.empty(events, np.int64), np.empty(events, np.int64)
        n = group_ties(self._sorted_scores, self._sorted_labels, keys, negatives, positives)
        return keys[:n], negatives[:n], positives[:n]

    def _sort(self) -> None:
        """Bring the sorted window up to date."""
        if self._pending == 0:
            return
        if self._pending < 0:
            labels, scores = self.to_arrays()
            self._sorted_scores, self._sorted_labels = _sorted([(scores, labels)])
        else:
            added, removed = _sorted(self._added), _sorted(self._removed)
            scores = np.empty(len(self._sorted_scores) + len(added[0]))
            labels = np.empty(len(scores), np.int8)
            n = merge_sorted(self._sorted_scores, self._sorted_labels, *removed, *added, scores, labels)
            if n < 0:  # an update was interrupted half-way
                raise InputError(
                    "the window is not whole, since an update was interrupted; go on from a snapshot"
                )
            self._sorted_scores, self._sorted_labels = scores[:n], labels[:n]
        self._added.clear()
        self._removed.clear()
        self._pending = 0

    def write_row(self, numbers: FloatArray, reasons: Int8Array) -> None:
        """See `Ranking`."""
        self._sort()
        scores, labels, settings = self._sorted_scores, self._sorted_labels, self._settings
        edge_negatives = np.empty(len(scores) + 1, np.int64)
        edge_positives = np.empty(len(scores) + 1, np.int64)
        edges = scan_window(
            scores, labels, self._asked, self._z, settings.at_fpr, settings.false_positive_cost,
            self._curvature or 0.0, self._fixed_point(), numbers, reasons, edge_negatives, edge_positives,
        )  # fmt: skip
        if settings.probabilities and len(scores):
            probability_losses(scores, labels, numbers)
        if edges and self._asked[_H]:
            dn, dp = edge_negatives[:edges], edge_positives[:edges]
            flips = settings.flip_if_below_half and numbers[_MEASURE] < 0.5
            if flips:
                dn, dp = _hull_of_flipped(scores, labels)
            if flips or self._fixed_point() == 0.0:
                numbers[_MEASURE + _H] = h_measure(dn, dp, settings)
        _refuse_infinite(numbers[np.newaxis], reasons[np.newaxis])

    def _fixed_point(self) -> float:
        """Return the scale of the loss that a tree of this window would have, 0 if it keeps none."""
        if self._curvature is None or max(self._held, self._limit or 0) > EXACT_EVENTS:
            return 0.0
        if self._limit is not None:
            return fixed_point_scale(self._limit + 1)
        return fixed_point_scale(max(_TREE_CAPACITY, self._held))

    def live_bytes(self) -> int:
        """See `Ranking`."""
        pending = 18 * max(0, self._pending) + 500 * len(self._added)  # small arrays are mostly their heads
        return pending + 9 * (len(self._scores) + len(self._sorted_scores))


def h_measure(
    edge_negatives: Int64Array | FloatArray,
    edge_positives: Int64Array | FloatArray,
    settings: EvaluatorSettings,
) -> float:
    """Return the H-measure of a hull, given by the (negatives, positives) of its edges.

    Every edge adds h(n, p) = n G0(c) + p G1(c), c = p / (n + p); H = 1 - sum of them / h(N, P). Hand 2009;
    Hand & Anagnostopoulos 2014; Tatti 2021. With fixed priors the classes are weighed by those.
    O(edges), of which a window has about 1.3 * cube root of its size.
    """
    n, p = edge_negatives.astype(np.float64), edge_positives.astype(np.float64)
    prevalence = p.sum() / (n.sum() + p.sum())
    if settings.priors != PRIORS_OF_WINDOW:
        prevalence = settings.priors
        n, p = n * ((1.0 - prevalence) / n.sum()), p * (prevalence / p.sum())
    if isinstance(settings.cost, SeverityCost) and not 0.0 < prevalence < 1.0:
        return math.nan
    a, b = settings.cost.beta(float(prevalence))
    with np.errstate(all="ignore"):  # what comes out of extreme costs is not a number, and said so
        losses = minimum_loss(n, p, a, b)
        whole = float(minimum_loss(np.array([n.sum()]), np.array([p.sum()]), a, b)[0])
    return 1.0 - math.fsum(losses) / whole if whole > 0.0 else math.nan


def minimum_loss(n: FloatArray, p: FloatArray, a: float, b: float) -> FloatArray:
    """Return h(n, p) of every edge under Beta(a, b) costs: its share of the least possible loss."""
    c = p / (n + p)
    if a == b == 2.0:
        return np.asarray(n * c * (1.0 + c * (1.0 - c)) / 2.0)
    if a == b == 1.0:
        return np.asarray(n * c / 2.0)
    return np.asarray(
        n * (a / (a + b) * betainc(a + 1.0, b, c)) + p * (b / (a + b) * betainc(b + 1.0, a, 1.0 - c))
    )


def _plain(rows: Any) -> Any:
    """Return records as kernels take them."""
    return for_kernels(rows.view(np.ndarray).view(ROW))


def _refuse_infinite(numbers: FloatArray, reasons: Int8Array) -> None:
    """Make null, with the reason, what extreme costs, priors or scores have made of a measure."""
    for measure in (_H, _AUM):
        bad = np.isinf(numbers[:, _MEASURE + measure])
        if measure == _H:
            bad |= np.isnan(numbers[:, _MEASURE + measure]) & ~np.isnan(numbers[:, _MEASURE])
        if bad.any():
            numbers[bad, _MEASURE + measure] = math.nan
            reasons[bad, measure] = OUT_OF_RANGE


def _hull_of_flipped(scores: FloatArray, labels: Int8Array) -> tuple[Int64Array, Int64Array]:
    """Return the hull edges of the window under -score."""
    n = len(scores)
    numbers, reasons = np.empty(len(NUMBER_COLUMNS)), np.empty(len(MEASURES), np.int8)
    negatives, positives = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    edges = scan_window(
        -scores[::-1], labels[::-1].copy(), np.zeros(len(MEASURES), np.int8), 0.0, 0.0, 0.5, 0.0, 0.0,
        numbers, reasons, negatives, positives,
    )  # fmt: skip
    return negatives[:edges], positives[:edges]


def _sorted(pairs: list[tuple[FloatArray, Int8Array]]) -> tuple[FloatArray, Int8Array]:
    """Sort events by (score, label).

    Many: each class by itself, then one merge. Microseconds, against lexsort: 7 / 2 for 100 events, 12 / 14
    for 1,000, 73 / 560 for 10,000.
    """
    if not pairs:
        return _NO_SCORES, _NO_LABELS
    scores = np.concatenate([pair[0] for pair in pairs])
    labels = np.concatenate([pair[1] for pair in pairs])
    if len(scores) < _FEW:
        order = np.lexsort((labels, scores))
        return scores[order], labels[order]
    negatives, positives = np.sort(scores[labels == 0]), np.sort(scores[labels == 1])
    merge_sorted(
        negatives, np.zeros(len(negatives), np.int8), _NO_SCORES, _NO_LABELS,
        positives, np.ones(len(positives), np.int8), scores, labels,
    )  # fmt: skip
    return scores, labels


def _room(wanted: int, limit: int | None) -> int:
    room = max(_FIRST_CAPACITY, 1 << max(0, wanted - 1).bit_length())
    return room if limit is None else min(room, limit)
