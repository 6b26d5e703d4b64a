"""The window in score order as sorted arrays. Later changes are merged into them when a row needs this."""

from __future__ import annotations

import numpy as np

from ..arrays import NO_FLOATS, NO_INT8, FloatArray, Int8Array, Int64Array
from ..errors import InputError
from ..kernels.rings import FIRST_CAPACITY, capacity_for, unrolled, with_room, write_ring
from ..measures.at_row import made_at_row, write_at_row
from ..measures.scan import EXACT_EVENTS, probability_losses, scan_window
from ..measures.sorted import group_ties, insert_shifted, merge_sorted
from ..measures.steps import ENTERS, ROW_DUE, Steps
from ..measures.sums import LEAST_CAPACITY, fixed_point_scale
from ..rows import slots
from ..settings.evaluator import EvaluatorSettings
from .ranking import asked_of_rows, placed, refuse_infinite

_FEW = 1_000
"""Number of events up to which one sort by two keys is faster than a sort of each class."""


class SortedRanking:
    """A ranking that is sorted when a row needs it, by a merge with the events entered and left since."""

    def __init__(self, settings: EvaluatorSettings, labels: Int8Array, scores: FloatArray) -> None:
        self._settings = settings
        self._at_row = made_at_row(settings)
        self._limit = settings.window.size
        self._asked, self._z, self._curvature = asked_of_rows(settings)
        self._head, self._held = 0, len(scores)
        room = capacity_for(self._held, self._limit)
        self._scores, self._labels = with_room(scores, room), with_room(labels, room)
        self._sorted_scores, self._sorted_labels = NO_FLOATS, NO_INT8
        self._added: list[tuple[FloatArray, Int8Array]] = []
        self._removed: list[tuple[FloatArray, Int8Array]] = []
        self._pending = -1 if self._held else 0

    def follow(
        self, labels: Int8Array, scores: FloatArray, steps: Steps, numbers: FloatArray, reasons: Int8Array
    ) -> None:
        """Apply steps; write each row that falls due to a row of `numbers` and of `reasons`.

        Events enter in order of arrival; the window decides how many leave.

        labels, scores  an element for each step; without meaning at steps at which no event enters
        """
        start = row = 0
        ends = (np.flatnonzero(steps.flags & ROW_DUE) + 1).tolist() if len(numbers) else []
        for end in (*ends, len(scores)):
            if end > start:
                self._apply(labels[start:end], scores[start:end], steps.part(start, end))
            if row < len(ends):
                self.write_row(numbers[row], reasons[row])
            start, row = end, row + 1

    def placements_ahead(self, labels: Int8Array, scores: FloatArray, chosen: Int64Array) -> FloatArray:
        """Return the placement values of the `chosen` events, if all events enter and no event leaves.

        docs/math.md, "Placement values", defines placement values. NaN for an event if the other class is
        empty. O(k), and the cost of `place`.

        chosen  indices, ascending
        """
        self._sort()
        positives = np.concatenate([[0], np.cumsum(self._sorted_labels, dtype=np.int64)])
        first, last = (
            np.searchsorted(self._sorted_scores, scores[chosen], side) for side in ("left", "right")
        )
        ranks = np.column_stack([first, positives[first], last - first, positives[last] - positives[first]])
        return placed(labels, scores, chosen, ranks, self._held - int(positives[-1]), int(positives[-1]))

    def _apply(self, labels: Int8Array, scores: FloatArray, steps: Steps) -> None:
        """Apply steps between which no row is due."""
        n, gone = len(scores), int(steps.leaving.sum())
        enters = steps.flags & ENTERS
        if not enters.all():
            entering = np.flatnonzero(enters)
            labels, scores, n = labels[entering], scores[entering], len(entering)
            steps = steps._replace(shifts=steps.shifts[entering] if len(steps.shifts) else steps.shifts)
        if not n and not gone:
            return
        if len(steps.shifts) and steps.shifts.any():
            self._apply_out_of_order(labels, scores, steps.shifts, gone)
            return
        evicted = min(gone, self._held)
        stays = n - (gone - evicted)
        self._note_changes(labels, scores, evicted, n - stays)
        self._make_room(self._held - evicted + stays)
        capacity = len(self._scores)
        self._head = (self._head + evicted) % capacity
        self._held -= evicted
        write_ring(self._scores, self._head + self._held, scores[n - stays :])
        write_ring(self._labels, self._head + self._held, labels[n - stays :])
        self._held += stays

    def _apply_out_of_order(
        self, labels: Int8Array, scores: FloatArray, shifts: Int64Array, gone: int
    ) -> None:
        """Apply events that enter before later events of the window; sort all events at the next row."""
        self._pending = -1
        self._added.clear()
        self._removed.clear()
        self._make_room(self._held + len(scores))
        insert_shifted(self._scores, self._labels, self._head, self._held, scores, labels, shifts)
        self._head = (self._head + gone) % len(self._scores)
        self._held += len(scores) - gone

    def _make_room(self, wanted: int) -> None:
        """Grow the ring and move its oldest event to slot 0. A window of n events never needs more than n."""
        capacity = len(self._scores)
        if wanted <= capacity:
            return
        room = capacity_for(wanted, self._limit)
        labels, scores = self.to_arrays()
        self._scores, self._labels, self._head = with_room(scores, room), with_room(labels, room), 0

    def _note_changes(self, labels: Int8Array, scores: FloatArray, evicted: int, passing: int) -> None:
        """Note the changes that the sorted arrays lack, or drop the notes once a new sort is cheaper.

        evicted  number of events of the window that leave
        passing  number of the coming events that leave again in the same call
        """
        if self._pending < 0:
            return
        self._pending += len(scores) - passing + evicted
        if self._pending > max(FIRST_CAPACITY, self._held):
            self._added.clear()
            self._removed.clear()
            self._pending = -1
            return
        if passing < len(scores):  # copies: views would keep the whole call's arrays in memory
            self._added.append((scores[passing:].copy(), labels[passing:].copy()))
        if evicted:
            oldest = unrolled(self._scores, self._head, evicted), unrolled(self._labels, self._head, evicted)
            self._removed.append(oldest)

    def to_arrays(self) -> tuple[Int8Array, FloatArray]:
        """Return labels and scores of the window, the oldest event first."""
        scores = unrolled(self._scores, self._head, self._held)
        return unrolled(self._labels, self._head, self._held), scores

    def to_entries(self) -> tuple[FloatArray, Int64Array, Int64Array]:
        """Return the window's distinct scores, ascending, and the negatives and positives at each.

        O(k), if the arrays are sorted.
        """
        self._sort()
        events = len(self._sorted_scores)
        keys, negatives, positives = np.empty(events), np.empty(events, np.int64), np.empty(events, np.int64)
        n = group_ties(self._sorted_scores, self._sorted_labels, keys, negatives, positives)
        return keys[:n], negatives[:n], positives[:n]

    def _sort(self) -> None:
        """Bring the sorted arrays up to date."""
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
        """Write the window's measures now into one row."""
        self._sort()
        scores, labels, settings = self._sorted_scores, self._sorted_labels, self._settings
        edge_negatives = np.empty(len(scores) + 1, np.int64)
        edge_positives = np.empty(len(scores) + 1, np.int64)
        edges = scan_window(
            scores, labels, self._z, *settings.points,
            self._curvature or 0.0, self._fixed_point(), numbers, reasons, edge_negatives, edge_positives,
        )  # fmt: skip
        if settings.probabilities and len(scores):
            probability_losses(scores, labels, numbers)
        wanted = self._at_row
        if self._asked[slots.H] and self._fixed_point() == 0.0:
            wanted = wanted._replace(h=True, hull=True)
        if edges and wanted.anything:
            hull = edge_negatives[:edges], edge_positives[:edges]
            write_at_row(settings, wanted, self._asked, hull, self.to_entries, numbers, reasons)
        refuse_infinite(numbers[np.newaxis], reasons[np.newaxis])

    def _fixed_point(self) -> float:
        """Return the scale of the loss that a tree of this window would keep; 0 if a tree would keep none."""
        if self._curvature is None or max(self._held, self._limit or 0) > EXACT_EVENTS:
            return 0.0
        if self._limit is not None:
            return fixed_point_scale(self._limit + 1)
        return fixed_point_scale(max(LEAST_CAPACITY, self._held))

    def live_bytes(self) -> int:
        """Estimate the ranking's memory in bytes."""
        pending = 18 * max(0, self._pending) + 500 * len(self._added)  # 500 bytes: two array headers
        return pending + 9 * (len(self._scores) + len(self._sorted_scores))


def _sorted(pairs: list[tuple[FloatArray, Int8Array]]) -> tuple[FloatArray, Int8Array]:
    """Sort events by (score, label).

    Many events are sorted by class, then merged. Microseconds of this method / of lexsort: 7 / 2 for 100
    events, 12 / 14 for 1,000, 73 / 560 for 10,000.
    """
    if not pairs:
        return NO_FLOATS, NO_INT8
    scores = np.concatenate([pair[0] for pair in pairs])
    labels = np.concatenate([pair[1] for pair in pairs])
    if len(scores) < _FEW:
        order = np.lexsort((labels, scores))
        return scores[order], labels[order]
    negatives, positives = np.sort(scores[labels == 0]), np.sort(scores[labels == 1])
    merge_sorted(
        negatives, np.zeros(len(negatives), np.int8), NO_FLOATS, NO_INT8,
        positives, np.ones(len(positives), np.int8), scores, labels,
    )  # fmt: skip
    return scores, labels
