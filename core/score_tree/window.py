"""A window of events that slides: a ScoreTree and the order of arrival of its events.

Invariant: the ring holds exactly the events of the tree, oldest first. Each event carries the bucket that it
went into, as a hint for its removal. A hint may be stale, since the removal checks it before use.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays import FloatArray, Int8Array
from ..errors import InputError
from ..events.inputs import as_labels, as_scores
from ..kernels.records import empty_records, zero_record
from ..kernels.rings import unrolled
from ..measures.steps import ENTERS, ROW_DUE, Steps
from ..measures.sums import LEAST_CAPACITY
from .layout import SLOTS, keys_of, scores_of
from .slide import COURSE, HELD, NEEDS_RING, Ring
from .store import NO_ROWS, NOTHING, checked_capacity, refuse_stop
from .tree import RANKING, ScoreTree
from .tree_rows import Ask, empty_rows
from .update import NO_HINT

BRIDGES_FROM = 300
"""A window of so many strides, of 2 or more events each, costs less with bridges than with scans."""


def keeps_hull_for(window: int, stride: int) -> bool:
    """Return whether bridges serve a window of so many events better than scans.

    The function is pure and affects only the speed: rows are the same. Keeping the hull has a cost per event,
    a scan has a cost per row. Both costs are equal at a stride of 1, 3, 20 and some 300 for windows of 100,
    1,000, 10,000 and 100,000 events (docs/benchmarks/core.md).
    """
    return stride == 1 or BRIDGES_FROM * stride <= window


class ScoreWindow:
    """A ScoreTree that slides: it also keeps the order in which its events came.

    `tree` answers every query about the window; events come and go only by `follow`.

    size: how many events the full window holds; room is made for all of them. None: the window has no size.

    >>> from rocsteady.core.measures.steps import ENTERS, ROW_DUE
    >>> window, nobody = ScoreWindow(3), np.empty(0, np.int64)
    >>> labels, scores = np.array([0, 1, 0, 1], np.int8), np.array([0.1, 0.4, 0.4, 0.8])
    >>> flags = np.array([ENTERS, ENTERS, ENTERS, ENTERS | ROW_DUE], np.int8)
    >>> steps = Steps(np.arange(4), flags, np.array([0, 0, 0, 1]), nobody)
    >>> rows = window.follow(labels, scores, steps, RANKING)
    >>> float(rows[-1]["pairs2"] / (2.0 * rows[-1]["positives"] * rows[-1]["negatives"]))
    0.75
    >>> window.to_arrays()[1].tolist()
    [0.4, 0.4, 0.8]
    """

    def __init__(
        self,
        size: int | None,
        *,
        capacity: int | None = None,
        cost: tuple[int, int] = (2, 2),
        keeps_hull: bool = True,
    ) -> None:
        if size is not None and size < 1:
            raise InputError(f"size: {size}; give at least 1 event")
        if size is not None:
            checked_capacity(size + 1)
        if capacity is None:
            capacity = LEAST_CAPACITY if size is None else size + 1  # an event comes before the oldest goes
        self._tree = ScoreTree(capacity, cost=cost, keeps_hull=keeps_hull, follows_weight=size is None)
        self._size = size
        held = 1024 if size is None else min(1024, size + 1)
        self._ring = Ring(empty_records(held, HELD), zero_record(COURSE))

    @property
    def tree(self) -> ScoreTree:
        """The window in score order, for queries only: do not change the tree."""
        return self._tree

    def __len__(self) -> int:
        return int(self._course["held"])

    @property
    def _course(self) -> Any:
        """The state of the batch in the ring (COURSE)."""
        return self._ring.course[0]

    @property
    def nbytes(self) -> int:
        """How many bytes all arrays take."""
        return self._tree.nbytes + int(self._ring.events.nbytes)

    def follow(self, labels: Int8Array, scores: FloatArray, steps: Steps, ask: Ask | None = None) -> Any:
        """Apply steps to the window.

        Return a record of ROW, with the values that `ask` wants, for each row that is due.

        ask: None if no row is due.

        labels, scores: contiguous int8 of 0 and 1, and float64, one element a step; their values are ignored
        in a step in which no event enters. The steps must fit the window: they are not checked. Each event
        enters before the oldest go. Raises InputError at an event whose score is NaN; earlier events are then
        in the window.
        """
        course = self._course
        course["event"] = 0
        course["row"] = 0
        rows = NO_ROWS if ask is None else empty_rows(int(np.count_nonzero(steps.flags & ROW_DUE)))
        while True:
            code = self._tree.run(labels, scores, self._ring, steps, ask or NOTHING, rows)
            if code != NEEDS_RING:
                break
            self._grow_ring()
        refuse_stop(code, scores, int(course["event"]))
        return rows

    def to_arrays(self) -> tuple[Int8Array, FloatArray]:
        """Return the labels and scores of the window, oldest first. O(k)."""
        course = self._course
        events = unrolled(self._ring.events, int(course["oldest"]), int(course["held"]))
        return events["label"].astype(np.int8), scores_of(events["key"])

    def load(self, labels: npt.ArrayLike, scores: npt.ArrayLike) -> None:
        """Replace the window's events by the given events, oldest first. O(k log k) to sort, then O(k)."""
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
        """Make a larger ring; the oldest event comes first in it."""
        labels, scores = self.to_arrays()
        room = 2 * len(self._ring.events) + 1
        self._fill_ring(labels, scores, room if self._size is None else min(room, self._size + 1))

    def _fill_ring(self, labels: Int8Array, scores: FloatArray, room: int) -> None:
        """Make a ring of these events, without hints."""
        events = empty_records(room, HELD)
        events["key"][: len(labels)] = keys_of(scores)
        events["label"][: len(labels)] = labels
        events["bucket"][: len(labels)] = NO_HINT
        self._ring = Ring(events, self._ring.course)
        self._course["oldest"] = 0
        self._course["held"] = len(labels)


def warm_up() -> float:
    """Compile every kernel, or load it from the cache; return the seconds that this took.

    Some seconds the first time on a machine, a fraction of a second afterwards.
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
    flags, nobody = np.full(SLOTS, ENTERS | ROW_DUE, np.int8), np.zeros(SLOTS, np.int64)
    ScoreWindow(None).follow(labels, scores, Steps(nobody, flags, nobody, nobody), RANKING)
    return time.perf_counter() - start
