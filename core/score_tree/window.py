"""A window of events that slides over its ScoreTree.

Invariant: the ring holds the events of the tree, oldest first, and nothing else. Each carries the
bucket it went into as a hint for its removal; a hint may be stale, since it is checked before use.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays import FloatArray, Int8Array, Int64Array
from ..errors import InputError
from ..kernels.records import empty_records, zero_record
from ..measures.loss import LEAST_CAPACITY
from ..measures.steps import ROW_DUE, Steps
from .inputs import as_counts, as_labels, as_scores, checked_capacity, refuse_beyond_limit, refuse_stop
from .layout import SLOTS, keys_of, scores_of
from .rows import Ask
from .slide import COURSE, HELD, LEAVING_GIVEN, NEEDS_RING, Ring
from .tree import NOTHING, RANKING, ScoreTree, empty_rows
from .update import NO_HINT

BRIDGES_FROM = 60
"""Strides that a window holds from which on bridges cost less than scans."""

_NOBODY: Int64Array = np.empty(0, np.int64)
_NO_FLAGS = np.empty(0, np.int8)
_NO_ROWS = empty_rows(0)
_NO_PLACEMENTS: FloatArray = np.empty(0)


def keeps_hull_for(window: int, stride: int) -> bool:
    """Whether a window of so many events is served better by bridges than by scans.

    Pure, and only of speed: rows are the same. Measured (docs/benchmarks/core.md): keeping the
    hull costs so much an event, a scan so much a row, and the two meet at a stride of window / 60.
    """
    return BRIDGES_FROM * stride <= window


class ScoreWindow:
    """A ScoreTree that slides: it remembers in which order its events came.

    `tree` answers every question about the window; events come and go by `slide` alone.

    size: events it holds; the oldest goes when one more comes. None: `slide` is told how many go.
    stride: events between rows.

    >>> window = ScoreWindow(3)
    >>> rows = window.slide([0, 1, 0, 1], [0.1, 0.4, 0.4, 0.8])
    >>> float(rows[-1].pairs2 / (2.0 * rows[-1].positives * rows[-1].negatives))
    0.75
    >>> window.to_arrays()[1].tolist()
    [0.4, 0.4, 0.8]
    """

    def __init__(
        self,
        size: int | None,
        *,
        capacity: int | None = None,
        stride: int = 1,
        cost: tuple[int, int] = (2, 2),
        keeps_hull: bool | None = None,
    ) -> None:
        if size is not None and size < 1:
            raise InputError(f"size: {size}; give at least 1 event")
        if stride < 1:
            raise InputError(f"stride: {stride}; give at least 1 event")
        if size is not None:
            checked_capacity(size + 1)
        if capacity is None:
            capacity = LEAST_CAPACITY if size is None else size + 1  # one comes before the oldest goes
        if keeps_hull is None:
            keeps_hull = keeps_hull_for(size or capacity, stride)
        self._tree = ScoreTree(capacity, cost=cost, keeps_hull=keeps_hull, follows_weight=size is None)
        self._size = size
        held = 1024 if size is None else min(1024, size + 1)
        self._ring = Ring(empty_records(held, HELD), zero_record(COURSE))
        self._course["window"] = LEAVING_GIVEN if size is None else size
        self._course["stride"] = stride
        self._course["until_row"] = stride

    @property
    def tree(self) -> ScoreTree:
        """The window in score order: ask it, do not change it."""
        return self._tree

    def __len__(self) -> int:
        return int(self._course["held"])

    @property
    def _course(self) -> Any:
        """Where things stand in the ring."""
        return self._ring.course[0]

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return self._tree.nbytes + int(self._ring.events.nbytes)

    @property
    def until_row(self) -> int:
        """Events until the next row is due; 1: the next one makes a row. Part of a snapshot."""
        return int(self._course["until_row"])

    @until_row.setter
    def until_row(self, events: int) -> None:
        if not 1 <= events <= int(self._course["stride"]):
            raise InputError(f"until_row: {events}; give 1 to the stride, {int(self._course['stride'])}")
        self._course["until_row"] = events

    def slide(
        self,
        labels: npt.ArrayLike,
        scores: npt.ArrayLike,
        leaving: npt.ArrayLike | None = None,
        ask: Ask = RANKING,
        placements: FloatArray | None = None,
        steps: Steps | None = None,
    ) -> Any:
        """Apply events in order of arrival; return a record of ROW after every `stride`-th one.

        Each event comes in, then the oldest go: as many as the window has too many, or
        `leaving[i]` where it has no size. The stride goes on over batches: rows do not depend on
        how events are cut into calls. Errors leave the window unchanged.

        placements: float64, one per event, filled with each event's placement value (see
        `ScoreTree.placement`) among the events before it: the signal of an adaptive window.

        steps: labels and scores are those of steps, which say who enters and leaves and where rows are due;
        the stride then does not. They must fit the window: they are not checked.
        """
        y = as_labels(labels)
        s = as_scores(scores, len(y))
        if steps is None:
            flags, gone, shifts = _NO_FLAGS, self._leaving(leaving, len(y)), _NOBODY
            stride, until_row = int(self._course["stride"]), self.until_row
            due = 0 if len(y) < until_row else 1 + (len(y) - until_row) // stride
        else:
            flags, gone, shifts = steps.flags, steps.leaving, steps.shifts
            due = int(np.count_nonzero(flags & ROW_DUE))
        rows = empty_rows(due)
        values = np.empty(0) if placements is None else placements
        if placements is not None and placements.shape != s.shape:
            raise InputError(f"placements: shape {placements.shape} for {len(s)} events")
        if placements is not None and not (placements.dtype == np.float64 and placements.flags.writeable):
            raise InputError("placements: give an array of float64 that can be written")
        self._course["event"] = 0
        self._course["row"] = 0
        while (
            code := self._tree.run(y, s, 1, self._ring, gone, flags, shifts, ask, rows, values)
        ) == NEEDS_RING:
            self._grow_ring()
        refuse_stop(code, s, int(self._course["event"]))
        return rows.view(np.recarray)

    def take(self, labels: Int8Array, scores: FloatArray) -> None:
        """Apply events as `slide` does, without rows, for a caller that has checked them.

        labels, scores: contiguous int8 of 0 and 1, and finite float64, of one length. A window of a size,
        with a stride so long that no row falls due. For one event a third of the time of `slide`.
        """
        course = self._course
        if self._size is None or int(course["until_row"]) <= len(scores):
            raise InputError("take: for a window of a size, and where no row falls due; use slide")
        course["event"] = 0
        while True:
            code = self._tree.run(
                labels, scores, 1, self._ring, _NOBODY, _NO_FLAGS, _NOBODY, NOTHING, _NO_ROWS, _NO_PLACEMENTS
            )
            if code != NEEDS_RING:
                break
            self._grow_ring()
        refuse_stop(code, scores, int(course["event"]))

    def to_arrays(self) -> tuple[Int8Array, FloatArray]:
        """Labels and scores of the window, oldest first. O(k)."""
        course = self._course
        order = (int(course["oldest"]) + np.arange(int(course["held"]))) % len(self._ring.events)
        events = self._ring.events[order]
        return events["label"].astype(np.int8), scores_of(events["key"])

    def load(self, labels: npt.ArrayLike, scores: npt.ArrayLike) -> None:
        """Replace the window's events by these, oldest first. O(k log k) to sort, then O(k)."""
        y = as_labels(labels)
        s = as_scores(scores, len(y)) + 0.0
        if self._size is not None and len(y) > self._size:
            raise InputError(f"load: {len(y)} events for a window of {self._size}")
        distinct, entry_of = np.unique(s, return_inverse=True)
        counts = np.bincount(entry_of, minlength=len(distinct))
        positives = np.bincount(entry_of[y == 1], minlength=len(distinct))
        self._tree = ScoreTree.from_sorted(
            distinct,
            positives,
            counts - positives,
            capacity=self._tree.capacity,
            cost=self._tree.cost,
            keeps_hull=self._tree.keeps_hull,
            follows_weight=self._size is None,
        )
        self._fill_ring(y, s, max(len(y) + 1, len(self._ring.events)))

    def _grow_ring(self) -> None:
        """Make a larger circle, its oldest event first."""
        labels, scores = self.to_arrays()
        room = 2 * len(self._ring.events) + 1
        self._fill_ring(labels, scores, room if self._size is None else min(room, self._size + 1))

    def _fill_ring(self, labels: Int8Array, scores: FloatArray, room: int) -> None:
        """Make a circle of these events, without hints."""
        events = empty_records(room, HELD)
        events["key"][: len(labels)] = keys_of(scores)
        events["label"][: len(labels)] = labels
        events["bucket"][: len(labels)] = NO_HINT
        self._ring = Ring(events, self._ring.course)
        self._course["oldest"] = 0
        self._course["held"] = len(labels)

    def _leaving(self, leaving: npt.ArrayLike | None, events: int) -> Int64Array:
        """How many go with each event, checked before anything changes."""
        if self._size is not None:
            if leaving is not None:
                raise InputError(f"leaving: this window holds {self._size} events; leave it out")
            return np.empty(0, np.int64)
        if leaving is None:
            raise InputError("leaving: this window has no size; say how many events go with each")
        gone = as_counts(leaving)
        if gone.shape != (events,):
            raise InputError(f"leaving: shape {gone.shape} for {events} events; give as many")
        held = int(self._course["held"]) + np.arange(1, events + 1)
        after = held - np.cumsum(gone)
        if events and (gone.min() < 0 or after.min() < 0):
            raise InputError("leaving: more events go than are there, or a number below 0")
        refuse_beyond_limit(int((after + gone).max(initial=0)))
        return gone


def warm_up() -> float:
    """Compile every kernel, or load it from the cache; return the seconds that took.

    Some 11 seconds the first time, a fraction of one afterwards.
    """
    start = time.perf_counter()
    tree = ScoreTree(4 * SLOTS)
    labels, scores = np.arange(SLOTS, dtype=np.int8) % 2, np.arange(SLOTS, dtype=np.float64)
    tree.insert(labels, scores)
    tree.ks()
    tree.tpr_at_fpr(0.5)
    tree.calibrated(scores)
    tree.quantile(0.5)
    tree.to_sorted()
    tree.keeps_hull = False
    tree.hull()
    ScoreWindow(2).slide(labels, scores)
    return time.perf_counter() - start
