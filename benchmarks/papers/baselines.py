"""What Tatti 2018 compares with, compiled: a rescan of the sorted window, and bins that never move.

Both slide a window over a stream and give the AUC after every event, NaN without both classes; a higher
score means more likely positive, ties count half.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from rocsteady.core.kernels.compile import entry, inlined
from rocsteady.core.kernels.records import at


class Rescan:
    """The AUC of a window kept sorted, recomputed after every event, O(k) (Brzezinski & Stefanowski 2017).

    They keep a red-black tree and walk through it. In a sorted array the walk is several times faster, and
    an event moves a block of memory: so the comparison is with the better of the two.
    """

    def __init__(self, labels: np.ndarray, scores: np.ndarray, window: int, begin: int = 0) -> None:
        """labels, scores: the stream, int8 and float64. begin: the event to go on from."""
        self._stream = np.ascontiguousarray(labels, np.int8), np.ascontiguousarray(scores, np.float64)
        self._window, self._begin = window, begin
        held = slice(max(0, begin - window), begin)
        order = np.argsort(self._stream[1][held], kind="stable")
        self._labels, self._scores = np.empty(window + 1, np.int8), np.empty(window + 1)
        self._labels[: len(order)] = self._stream[0][held][order]
        self._scores[: len(order)] = self._stream[1][held][order]

    def slide(self, events: int) -> np.ndarray:
        """Apply so many events of the stream; return the AUC after each."""
        out = np.empty(events)
        _rescan(*self._stream, self._begin, self._window, self._labels, self._scores, out)
        self._begin += events
        return out


class Bins:
    """The AUC from counts per bin, O(bins) an event and no bound on the error (Bouckaert 2006).

    edges: ascending; bin b holds the scores in [edges[b - 1], edges[b]); all events of a bin count as tied.
    """

    def __init__(self, labels: np.ndarray, scores: np.ndarray, window: int, edges: np.ndarray) -> None:
        self._stream = np.ascontiguousarray(labels, np.int8), np.ascontiguousarray(scores, np.float64)
        self._window, self._edges, self._begin = window, np.ascontiguousarray(edges, np.float64), 0
        self._counts = np.zeros((2, len(edges) + 1), np.int64)

    def slide(self, events: int) -> np.ndarray:
        """Apply so many events of the stream; return the AUC after each."""
        out = np.empty(events)
        _count_in_bins(*self._stream, self._begin, self._window, self._edges, self._counts, out)
        self._begin += events
        return out


@inlined
def _place(scores: Any, count: int, score: float) -> int:
    """Count the scores below one, in an ascending array of so many."""
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if scores[middle] < score:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def _auc(pairs2: int, positives: int, negatives: int) -> float:
    return pairs2 / (2.0 * positives * negatives) if positives > 0 and negatives > 0 else np.nan


@entry
def _rescan(
    labels: Any, scores: Any, begin: int, window: int, held_labels: Any, held_scores: Any, out: Any
) -> None:
    """Unsigned indices (`at`) and a loop for each array: else moving memory takes six times as long."""
    held = min(begin, window)
    for i in range(len(out)):
        label, score = labels[begin + i], scores[begin + i]
        slot = _place(held_scores, held, score)
        for j in range(held - slot):
            held_scores[at(held - j)] = held_scores[at(held - j - 1)]
        for j in range(held - slot):
            held_labels[at(held - j)] = held_labels[at(held - j - 1)]
        held_scores[slot] = score
        held_labels[slot] = label
        held += 1
        if held > window:
            label, score = labels[begin + i - window], scores[begin + i - window]
            slot = _place(held_scores, held, score)
            while held_labels[slot] != label:
                slot += 1
            held -= 1
            for j in range(slot, held):
                held_scores[at(j)] = held_scores[at(j + 1)]
            for j in range(slot, held):
                held_labels[at(j)] = held_labels[at(j + 1)]
        held_scores[held] = np.nan  # is like no other score, so that the last run ends
        negatives, pairs2, j = 0, 0, 0
        while j < held:
            is_positive = np.int64(held_labels[at(j)])
            if held_scores[at(j + 1)] != held_scores[at(j)]:  # the rule: the one branch is foreseen
                pairs2 += is_positive * 2 * negatives
                negatives += 1 - is_positive
                j += 1
                continue
            first, tied_positives = j, is_positive
            while held_scores[at(j + 1)] == held_scores[at(j)]:
                j += 1
                tied_positives += held_labels[at(j)]
            j += 1
            tied_negatives = j - first - tied_positives
            pairs2 += tied_positives * (2 * negatives + tied_negatives)
            negatives += tied_negatives
        out[i] = _auc(pairs2, held - negatives, negatives)


@entry
def _count_in_bins(
    labels: Any, scores: Any, begin: int, window: int, edges: Any, counts: Any, out: Any
) -> None:
    for i in range(len(out)):
        t = begin + i
        counts[labels[t], _bin(edges, scores[t])] += 1
        if t >= window:
            counts[labels[t - window], _bin(edges, scores[t - window])] -= 1
        positives, negatives, pairs2 = 0, 0, 0
        for b in range(counts.shape[1]):
            pairs2 += counts[1, b] * (2 * negatives + counts[0, b])
            positives += counts[1, b]
            negatives += counts[0, b]
        out[i] = _auc(pairs2, positives, negatives)


@inlined
def _bin(edges: Any, score: float) -> int:
    """Count the edges not above a score."""
    low, high = 0, len(edges)
    while low < high:
        middle = (low + high) >> 1
        if edges[middle] <= score:
            low = middle + 1
        else:
            high = middle
    return low
