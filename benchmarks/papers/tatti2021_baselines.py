"""What Tatti 2021 compares with, compiled: a sorted list that is scanned after every event.

`SortedList` keeps scores and labels in order, in arrays, which are faster to scan than the red-black tree of
Brzezinski & Stefanowski 2017. AUC is the paper's Algorithm 1 over them, H a Graham scan for the hull and the
sum over its edges. O(n) an event.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

compiled = numba.njit(error_model="numpy", cache=True)  # right while all it calls is in this file

AUC, H, NO_MEASURE = 0, 1, 2


@compiled
def shift_in(scores, labels, n, score, label):
    """Insert an event into the first n of both arrays."""
    place = np.searchsorted(scores[:n], score)
    scores[place + 1 : n + 1] = scores[place:n]
    labels[place + 1 : n + 1] = labels[place:n]
    scores[place], labels[place] = score, label


@compiled
def shift_out(scores, labels, n, score, label):
    """Take an event out of the first n of both arrays."""
    place = np.searchsorted(scores[:n], score)
    while labels[place] != label:  # among equal scores
        place += 1
    scores[place : n - 1] = scores[place + 1 : n]
    labels[place : n - 1] = labels[place + 1 : n]


@compiled
def auc_of_sorted(scores, labels, n):
    """Algorithm 1: a positive counts the negatives below it, and half of the tied ones; NaN for one class.

    .7 ns an event; with an inner loop over ties 2.0.
    """
    pairs2 = positives = negatives = tied_positives = tied_negatives = 0
    for i in range(n):
        if i > 0 and scores[i] != scores[i - 1]:
            pairs2 += tied_positives * (2 * negatives + tied_negatives)
            positives += tied_positives
            negatives += tied_negatives
            tied_positives = tied_negatives = 0
        label = np.int64(labels[i])
        tied_positives += label
        tied_negatives += 1 - label
    pairs2 += tied_positives * (2 * negatives + tied_negatives)
    return pairs2 / (2.0 * (positives + tied_positives) * (negatives + tied_negatives))


@compiled
def hull_of_sorted(scores, labels, n, x, y):
    """Graham scan: write the vertices (events, positives), lowest score first; return their number."""
    x[0] = y[0] = 0
    top = positives = tied_negatives = 0
    for i in range(1, n + 1):
        positives += labels[i - 1]
        tied_negatives += 1 - labels[i - 1]
        if i < n and (scores[i] == scores[i - 1] or tied_negatives == 0):
            continue  # no vertex: an entry goes on, or positives alone end, behind which nothing is steeper
        tied_negatives = 0
        while top > 0 and (y[top] - y[top - 1]) * (i - x[top]) >= (positives - y[top]) * (
            x[top] - x[top - 1]
        ):
            top -= 1
        top += 1
        x[top], y[top] = i, positives
    return top + 1


@compiled
def h_of_hull(x, y, vertices, prior):
    """H for Beta(2, 2) costs; `prior`: the share of positives, or 0 for the window's own."""
    n, p = 1.0 * (x[vertices - 1] - y[vertices - 1]), 1.0 * y[vertices - 1]
    scale_n, scale_p = ((1.0 - prior) / n, prior / p) if prior > 0.0 else (1.0, 1.0)
    loss = 0.0
    for i in range(1, vertices):
        dp = (y[i] - y[i - 1]) * scale_p
        dn = (x[i] - x[i - 1] - (y[i] - y[i - 1])) * scale_n
        c = dp / (dn + dp)
        loss += dn * c * (1.0 + c * (1.0 - c))
    c = p * scale_p / (n * scale_n + p * scale_p)
    return 1.0 - loss / (n * scale_n * c * (1.0 + c * (1.0 - c)))


@compiled
def h_of_sorted(scores, labels, n, x, y, prior):
    return h_of_hull(x, y, hull_of_sorted(scores, labels, n, x, y), prior)


@compiled
def apply_events(scores, labels, n, x, y, in_scores, in_labels, out_scores, out_labels, asked, values):
    """Insert events, each with the removal of another where there are some, and scan after each."""
    for t in range(len(in_scores)):
        if t < len(out_scores):
            shift_out(scores, labels, n, out_scores[t], out_labels[t])
            n -= 1
        shift_in(scores, labels, n, in_scores[t], in_labels[t])
        n += 1
        if asked == AUC:
            values[t] = auc_of_sorted(scores, labels, n)
        elif asked == H:
            values[t] = h_of_sorted(scores, labels, n, x, y, 0.0)
    return n


class SortedList:
    """The events in order of score; with room for so many."""

    def __init__(self, room: int, asked: int) -> None:
        self._scores, self._labels = np.empty(room + 1), np.empty(room + 1, np.int8)
        self._chain = np.empty((2, room + 2), np.int64)
        self._asked = asked
        self._n = 0

    def load(self, labels: np.ndarray, scores: np.ndarray) -> None:
        """Hold these events instead; nothing is scanned."""
        order = np.argsort(scores, kind="stable")
        self._n = len(order)
        self._scores[: self._n], self._labels[: self._n] = scores[order], labels[order]

    def apply(
        self, labels: np.ndarray, scores: np.ndarray, out_labels: np.ndarray, out_scores: np.ndarray
    ) -> np.ndarray:
        """Insert events, remove the others, one for one; return the measure after each."""
        values: Any = np.full(len(scores), np.nan)
        self._n = apply_events(
            self._scores, self._labels, self._n, *self._chain, scores, labels, out_scores, out_labels,
            self._asked, values,
        )  # fmt: skip
        return values

    def h(self, prior: float) -> float:
        """Return H with a fixed share of positives, from scratch."""
        return h_of_sorted(self._scores, self._labels, self._n, *self._chain, prior)
