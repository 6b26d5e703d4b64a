"""TreeStore: the events of a ScoreTree that come and go, and the arrays that hold them.

`tree` adds the queries.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from ..arrays import NO_FLOATS, NO_INT8, NO_INT64, FloatArray, Int8Array, Int64Array
from ..errors import CapacityError, InputError, MissingEventError
from ..events.inputs import as_counts, as_labels, as_scores
from ..kernels.exact_sums import SUM_CHUNKS
from ..kernels.records import empty_records, zero_record
from ..measures.steps import Steps
from ..measures.sums import LEAST_CAPACITY, WINDOW_SUMS, fixed_point_scale
from .build import buckets_needed, build, list_entries
from .layout import BUCKET, MAX_WEIGHT, NODE, STATE, Tree, keys_of, scores_of
from .slide import (
    COURSE,
    DONE,
    HELD,
    MISSING,
    NEEDS_CAPACITY,
    NEEDS_ROOM,
    NO_WINDOW,
    NOT_A_NUMBER,
    Ring,
    slide,
)
from .sums import begin_sums
from .tree_rows import Ask, Chain, chain_room, empty_rows

COST_CURVATURE = {(2, 2): 1.0, (1, 1): 0.0}
"""The cost densities Beta(a, b) whose loss a tree can keep; losses of other densities need `hull()`."""

NOTHING = Ask(0, 0, 0, 0, 0, 0.01, 0.5)
_NO_STEPS = Steps(NO_INT64, NO_INT8, NO_INT64, NO_INT64)


class Entries(NamedTuple):
    """Distinct scores in ascending order, with the numbers of events of each class at each score."""

    scores: FloatArray
    positives: Int64Array
    negatives: Int64Array


NO_ROWS = empty_rows(0)


def refuse_beyond_limit(weight: int) -> None:
    """Raise CapacityError for more events than the whole numbers can count exactly."""
    if weight > MAX_WEIGHT:
        raise CapacityError(
            f"ScoreTree: {weight} events; it counts exactly up to {MAX_WEIGHT} (squared ranks "
            "must fit 64 bits): for more, sum in floating point"
        )


def checked_capacity(capacity: int) -> int:
    """Return a capacity from 1 to MAX_WEIGHT; raise CapacityError for any other."""
    if not 1 <= capacity <= MAX_WEIGHT:
        raise CapacityError(
            f"capacity: {capacity}; a ScoreTree counts exactly from 1 to {MAX_WEIGHT} events "
            "(squared ranks must fit 64 bits): for more, sum in floating point"
        )
    return int(capacity)


def refuse_stop(code: int, scores: FloatArray, event: int) -> None:
    """Raise the error that belongs to the code with which a batch kernel stopped; DONE raises none."""
    if code == NOT_A_NUMBER:
        raise InputError(f"scores: {scores[event]} at position {event}; drop such events before")
    if code != DONE:
        raise RuntimeError(f"slide: stopped by {code} at event {event}; this is a defect of ours")


class TreeStore:
    """The events of a `ScoreTree`, and the kernels that change them."""

    def __init__(
        self,
        capacity: int = LEAST_CAPACITY,
        *,
        cost: tuple[int, int] = (2, 2),
        keeps_hull: bool = True,
        follows_weight: bool = False,
    ) -> None:
        if cost not in COST_CURVATURE:
            raise InputError(
                f"cost: Beta{cost}; a tree keeps the loss of Beta(2, 2) or Beta(1, 1), sum others over hull()"
            )
        self._cost = cost
        self._follows_weight = follows_weight
        self._load(Entries(NO_FLOATS, NO_INT64, NO_INT64), checked_capacity(capacity), keeps_hull)

    @classmethod
    def from_sorted(
        cls,
        scores: npt.ArrayLike,
        positives: npt.ArrayLike,
        negatives: npt.ArrayLike,
        *,
        capacity: int = LEAST_CAPACITY,
        cost: tuple[int, int] = (2, 2),
        keeps_hull: bool = True,
        follows_weight: bool = False,
    ) -> Self:
        """Build a tree from distinct ascending scores and the counts of positives and negatives at each.

        O(k), some 20 ns an entry.

        The capacity is doubled until the events fit.

        >>> from rocsteady import ScoreTree
        >>> ScoreTree.from_sorted([0.1, 0.4, 0.8], [0, 1, 1], [1, 1, 0]).auc()
        0.875
        """
        ordered = as_scores(scores)
        p = as_counts(positives)
        n = as_counts(negatives)
        if not len(ordered) == len(p) == len(n):
            raise InputError(
                f"from_sorted: {len(ordered)} scores, {len(p)} and {len(n)} counts; give as many"
            )
        if len(ordered) and (min(p.min(), n.min()) < 0 or (p + n).min() < 1):
            raise InputError("from_sorted: a count below 0, or a score without events")
        for counts in (p, n):  # before a sum that could wrap
            refuse_beyond_limit(int(counts.max(initial=0)))
        total = int(p.sum() + n.sum())
        tree = cls(capacity, cost=cost, keeps_hull=keeps_hull, follows_weight=follows_weight)
        capacity = tree._capacity_for(total)
        if (ordered[1:] <= ordered[:-1]).any():
            raise InputError("from_sorted: scores are not ascending and distinct; sort and group")
        tree._load(Entries(ordered, p, n), capacity, keeps_hull)
        return tree

    def to_sorted(self) -> Entries:
        """Return the distinct scores, ascending, with their counts; inverse of `from_sorted`. O(k).

        >>> from rocsteady import ScoreTree
        >>> ScoreTree.from_sorted([0.1, 0.4], [0, 1], [1, 0]).to_sorted().scores.tolist()
        [0.1, 0.4]
        """
        buckets = self._tree.buckets["count"][: int(self._state["fresh_bucket"])]  # an unused one has count 0
        keys, positives, negatives = np.zeros((3, int(buckets.sum()) - 1), np.int64)
        list_entries(self._tree, keys, positives, negatives)
        return Entries(scores_of(keys), positives, negatives)

    def insert(self, labels: npt.ArrayLike, scores: npt.ArrayLike) -> None:
        """Add events: labels (1/0, 1/-1 or booleans) and scores. O(log^2 k) each; O(log k) without a hull.

        Raises InputError for a NaN or an invalid label, CapacityError beyond MAX_WEIGHT events. The tree is
        then unchanged.
        """
        y = as_labels(labels)
        s = as_scores(scores, len(y))
        refuse_beyond_limit(len(self) + len(y))
        self._apply(y, s, 1)

    def remove(self, labels: npt.ArrayLike, scores: npt.ArrayLike) -> None:
        """Take out events, by labels and scores. O(log^2 k) each, worst case; O(log k) without a hull.

        Raises MissingEventError if the tree does not hold one of the events; the tree is then unchanged.
        """
        y = as_labels(labels)
        s = as_scores(scores, len(y))
        removed = self._apply(y, s, -1)
        if removed < len(y):
            self._apply(y[:removed], s[:removed], 1)
            raise MissingEventError(
                f"remove: no event of label {y[removed]} and score {s[removed]} is there (position "
                f"{removed} of the batch); nothing was removed"
            )

    def __len__(self) -> int:
        return int(self._state["weight"])

    @property
    def capacity(self) -> int:
        """The number of events for which the fixed point is made; it is part of a snapshot."""
        return int(self._state["capacity"])

    @property
    def cost(self) -> tuple[int, int]:
        """The parameters (a, b) of the Beta density over costs, for which the tree keeps the loss."""
        return self._cost

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(int(a.nbytes) for a in (*self._tree, *self._chain))

    @property
    def keeps_hull(self) -> bool:
        """Whether the tree keeps bridges; setting another value rebuilds the tree, O(k)."""
        return bool(self._state["keeps_hull"])

    @keeps_hull.setter
    def keeps_hull(self, keeps_hull: bool) -> None:
        if keeps_hull != self.keeps_hull:
            self._load(self.to_sorted(), self.capacity, keeps_hull)

    @property
    def _state(self) -> Any:
        """The one record of totals, read from the arrays at each call.

        A copied tree must not show the totals of the original.
        """
        return self._tree.state[0]

    @property
    def positives(self) -> int:
        """Events of label 1."""
        return int(self._state["positives"])

    @property
    def negatives(self) -> int:
        """Events of label 0."""
        return len(self) - self.positives

    def _has_both_classes(self) -> bool:
        return 0 < self.positives < len(self)

    def _capacity_for(self, weight: int) -> int:
        capacity = self.capacity
        while capacity < weight and capacity < MAX_WEIGHT:
            capacity = min(2 * capacity, MAX_WEIGHT)
        refuse_beyond_limit(weight)
        return capacity

    def _load(self, entries: Entries, capacity: int, keeps_hull: bool) -> None:
        """Make all arrays anew and fill them."""
        room = buckets_needed(len(entries.scores) + 1) * 5 // 4 + 2
        state = zero_record(STATE)
        state["capacity"] = capacity
        state["scale"] = fixed_point_scale(capacity)
        state["curvature"] = COST_CURVATURE[self._cost]
        state["keeps_hull"] = keeps_hull
        state["follows_weight"] = self._follows_weight
        sums = np.zeros((WINDOW_SUMS, SUM_CHUNKS), np.int64)
        tree = Tree(empty_records(room, NODE), empty_records(room, BUCKET), state, sums)
        spans = np.empty((room, 2), np.int64)
        build(tree, keys_of(entries.scores), entries.positives, entries.negatives, spans)
        self._tree = tree
        # 1: the tree keeps the sums of AUM; 1: it keeps those of the losses of probabilities
        self._kept_sums = (0, 0)
        self._chain = Chain(*np.empty((3, chain_room(capacity)), np.int64))

    def _keep_sums(self, ask: Ask) -> None:
        """Keep the exact sums that `ask` wants from now on. O(k) when a sum is first asked for."""
        has_area, has_losses = self._kept_sums
        if (ask.aum and not has_area) or (ask.losses and not has_losses):
            begin_sums(self._tree, int(ask.aum and not has_area), int(ask.losses and not has_losses))
            self._kept_sums = (has_area or ask.aum, has_losses or ask.losses)

    def _grow_room(self) -> None:
        """Make room for more buckets and nodes; their ids do not change."""
        old = self._tree
        room = len(old.buckets) * 5 // 4 + 2
        grown = old._replace(nodes=empty_records(room, NODE), buckets=empty_records(room, BUCKET))
        grown.nodes[: len(old.nodes)] = old.nodes
        grown.buckets[: len(old.buckets)] = old.buckets
        self._tree = grown

    def run(
        self,
        labels: Int8Array,
        scores: FloatArray,
        ring: Ring,
        steps: Steps = _NO_STEPS,
        ask: Ask = NOTHING,
        rows: Any = NO_ROWS,
        sign: int = 1,
    ) -> int:
        """Run the batch kernel from the place where the ring's course stands. For `ScoreWindow`.

        labels, scores  the events; `sign` is 1 for events that come, -1 for events that go
        rows            filled with the records of the rows that `steps` ask for

        Makes room in the tree when the kernel needs it. Returns DONE, or the code of another obstacle.
        """
        while True:
            self._keep_sums(ask)
            code = slide(self._tree, ring, labels, scores, steps, sign, ask, self._chain, rows)
            if not self.make_room(code):
                return code

    @property
    def records(self) -> Tree:
        """The tree's arrays, for kernels of other modules. Do not keep them: `make_room` replaces them."""
        return self._tree

    def make_room(self, code: int) -> bool:
        """Make the room whose lack stopped a batch kernel.

        Return False if the kernel stopped for another reason.
        """
        if code == NEEDS_CAPACITY:
            self._load(self.to_sorted(), self._capacity_for(len(self) + 1), self.keeps_hull)
        elif code == NEEDS_ROOM:
            self._grow_room()
        else:
            return False
        return True

    def _apply(self, labels: Int8Array, scores: FloatArray, sign: int) -> int:
        """Insert or remove a batch; return how many events were inserted or removed."""
        course = zero_record(COURSE)
        course["window"] = NO_WINDOW
        ring = Ring(empty_records(1, HELD), course)
        code = self.run(labels, scores, ring, sign=sign)
        applied = int(course["event"][0])
        if code != MISSING:
            refuse_stop(code, scores, applied)
        return applied
