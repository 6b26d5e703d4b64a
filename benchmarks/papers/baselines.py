"""What Tatti 2018 compares with, compiled: a rescan of the sorted window, and bins that never move.

Both slide a window over a stream and return the AUC after every event, NaN without both classes; a higher
score means more likely positive, ties count half.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from rocsteady.core.kernels import entry, inlined, scanning


@inlined
def _place(scores: Any, held: int, score: float) -> int:
    """Count the scores below one, in an ascending array."""
    low, high = 0, held
    while low < high:
        middle = (low + high) >> 1
        if scores[middle] < score:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def _auc_by_scan(scores: Any, labels: Any, held: int) -> float:
    """AUC of a sorted window: one pass, a run of ties at a time (Eq. 1 of the paper)."""
    positives, negatives, pairs2, at = 0, 0, 0, 0
    while at < held:
        tied_positives, score, first = 0, scores[at], at
        while at < held and scores[at] == score:
            tied_positives += labels[at]
            at += 1
        tied_negatives = at - first - tied_positives
        pairs2 += tied_positives * (2 * negatives + tied_negatives)
        positives += tied_positives
        negatives += tied_negatives
    return pairs2 / (2.0 * positives * negatives) if positives > 0 and negatives > 0 else np.nan


@scanning
def rescan(labels: Any, scores: Any, window: int) -> Any:
    """Recompute the AUC of a window kept sorted: O(k) an event (Brzezinski & Stefanowski 2017).

    They keep a red-black tree and walk through it. A sorted array costs a move of memory for an event and
    makes the walk several times faster, so that the comparison is with the better of the two.
    """
    held_scores, held_labels = np.empty(window + 1), np.empty(window + 1, np.int8)
    out = np.empty(len(scores))
    held = 0
    for t in range(len(scores)):
        at = _place(held_scores, held, scores[t])
        held_scores[at + 1 : held + 1] = held_scores[at:held].copy()
        held_labels[at + 1 : held + 1] = held_labels[at:held].copy()
        held_scores[at] = scores[t]
        held_labels[at] = labels[t]
        held += 1
        if held > window:
            at = _place(held_scores, held, scores[t - window])
            while held_labels[at] != labels[t - window]:
                at += 1
            held -= 1
            for i in range(at, held):
                held_scores[i] = held_scores[i + 1]
                held_labels[i] = held_labels[i + 1]
        out[t] = _auc_by_scan(held_scores, held_labels, held)
    return out


@entry
def binned(labels: Any, scores: Any, window: int, edges: Any, counts: Any, out: Any) -> None:
    """AUC from counts per bin, O(bins) an event and no bound on the error (Bouckaert 2006).

    edges: ascending; bin b holds the scores in [edges[b - 1], edges[b]). counts: int64 (2, len(edges) + 1)
    of zeros, row 0 for the negatives. All events of a bin count as tied.
    """
    bins = len(edges) + 1
    for t in range(len(scores)):
        counts[labels[t], _bin(edges, scores[t])] += 1
        if t >= window:
            counts[labels[t - window], _bin(edges, scores[t - window])] -= 1
        positives, negatives, pairs2 = 0, 0, 0
        for b in range(bins):
            pairs2 += counts[1, b] * (2 * negatives + counts[0, b])
            positives += counts[1, b]
            negatives += counts[0, b]
        out[t] = pairs2 / (2.0 * positives * negatives) if positives > 0 and negatives > 0 else np.nan


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
