"""AucSketch: AUC and H-measure of any number of events in bounded bytes, mergeable, with certified bounds.

Invariant
    The bytes of a sketch depend on the multiset of (label, score) and on max_bytes alone: not on the order of
    events, nor on how the events were split into sketches, merged and stored in between.

Events are counted by class in sorted cells. While the bytes of the distinct scores fit, each score is a cell.
Beyond, cells are those of the finest level of `cells` that fits. One more event never makes the wire form
shorter, at any level. So the level of a merged sketch is at or below the level of each part, and its counts
follow from the counts of the parts. Counts stay exact. Only the order within a cell is lost: which of two
events in one cell has the higher score.
"""

from __future__ import annotations

import math
import numbers
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ..arrays import FloatArray, Int8Array
from ..errors import ConfigError, CorruptBytesError, InputError
from ..events.inputs import checked_events
from ..measures.at_row import h_measure
from ..measures.scan import lower_hull
from ..score_tree.layout import keys_of
from ..settings.costs import BetaCost, Cost
from ..settings.evaluator import PRIORS_OF_WINDOW, EvaluatorSettings
from .cells import EXACT, FINEST, Cells, Partition, add_cells, cells_of, coarsen, count_cells, partition_at
from .wire import MOST_EVENTS, most_cells, pack, packed_bytes, unpack

DEFAULT_MAX_BYTES = 64 * 1024
LEAST_MAX_BYTES = 1024
_WAITING = 16_384
"""How many events may wait before they are counted in the cells."""

_ROUNDING = 1e-12
"""A number above the rounding error of the sums of losses; the bounds of H are moved outwards by it."""

_LABELS = {0: 0, 1: 1, -1: 0}
_NO_CELLS = np.empty(0, np.int64)


class AucBounds(NamedTuple):
    """AUC (ties one half), certified: low <= AUC of the events <= high.

    `auc` counts every cell as a tie, and is the mean of both bounds. All fields are None if a class has no
    events.
    """

    low: float | None
    auc: float | None
    high: float | None


class HBounds(NamedTuple):
    """H-measure, certified: low <= H of the events <= high.

    `h` counts every cell as a tie, too: it equals low but for rounding. With some ten events a cell or more,
    h is nearer to H than the middle between low and high. All fields are None if a class has no events, or if
    the costs are so extreme that H is no number.
    """

    low: float | None
    h: float | None
    high: float | None


class AucSketch:
    """Counts events by score and class in bounded bytes: AUC and H with certified bounds, merged exactly.

    max_bytes  the most bytes of `to_bytes()`; 1,024 or more. In memory the sketch takes about 8 times that,
               and 16,384 events

    All values are exact while the distinct scores fit: some 7,700 fit in 64 KB. Beyond, a bound is this far
    from the middle, for 1M events with negatives of N(0, 1) and positives of N(1, 1):

    - 4 KB: AUC .0011, H .0023
    - 16 KB: AUC .00021, H .00053
    - 64 KB: AUC .000044, H .00008
    - 256 KB: AUC .000010, H .00002

    Real scores in 64 KB: AUC .00001 and H .00002 (TV news), .00007 and .0006 (US census, heavy ties).

    Every event counts once: there are no weights. A higher score means more likely positive. A merge takes
    O(cells), and gives the same bytes in any order.

    >>> sketch = AucSketch()
    >>> sketch.add([0, 1, 0, 1], [0.1, 0.9, 0.4, 0.3])
    >>> sketch.bounds()
    AucBounds(low=0.75, auc=0.75, high=0.75)
    >>> other = AucSketch()
    >>> other.add(1, 0.2)
    >>> sketch.merge(other).bounds().auc, sketch.positives, sketch.is_exact
    (0.6666666666666666, 3, True)
    """

    def __init__(self, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self.max_bytes = _checked_max_bytes(max_bytes)
        self._level = EXACT
        self._cells, self._negatives, self._positives = _NO_CELLS, _NO_CELLS, _NO_CELLS
        self._waiting_labels: list[int] = []
        self._waiting_scores: list[float] = []

    def add(self, labels: npt.ArrayLike, scores: npt.ArrayLike) -> None:
        """Count events: n labels (1/0, 1/-1 or booleans) and n finite scores, or one of each.

        O(n log n + cells); a few events wait until more events have come. Raises InputError for a value that
        cannot be used, and then counts no event.
        """
        label: Any = labels
        score: Any = scores
        if type(score) is float and type(label) is int and label in _LABELS and math.isfinite(score):
            self._wait([_LABELS[label]], [score])
            return
        label_array, score_array = checked_events(labels, scores)
        if len(score_array) >= _WAITING:
            self._count(label_array, score_array)
            return
        self._wait(label_array.tolist(), score_array.tolist())

    def merge(self, other: AucSketch) -> AucSketch:
        """Add the events of another sketch, which does not change; return this sketch. O(cells).

        The merged sketch has the smaller of the two max_bytes.
        """
        if not isinstance(other, AucSketch):
            raise InputError(f"merge: a {type(other).__name__} is no AucSketch; read bytes with from_bytes()")
        other._settle()
        self._settle()
        if self.events + other.events >= MOST_EVENTS:
            raise InputError(f"merge: {self.events + other.events} events; a sketch counts up to 2^62")
        level = min(self._level, other._level)
        here = self._at(level)
        there = here if other is self else other._at(level)
        self.max_bytes = min(self.max_bytes, other.max_bytes)
        self._fit(level, _united(here, there))
        return self

    @property
    def events(self) -> int:
        """How many events were added."""
        return self.negatives + self.positives

    @property
    def positives(self) -> int:
        """How many events of label 1 were added."""
        return int(self._positives.sum()) + sum(self._waiting_labels)

    @property
    def negatives(self) -> int:
        """How many events of the other label were added."""
        return int(self._negatives.sum()) + len(self._waiting_labels) - sum(self._waiting_labels)

    @property
    def is_exact(self) -> bool:
        """Whether AUC and H are exact: no cell holds both classes and two different scores."""
        self._settle()
        return not self._uncertain().any()

    def bounds(self) -> AucBounds:
        """Return the AUC with its certified bounds. O(cells).

        A pair of events is ranked for sure if its cells differ, or if its cell has a single value. All other
        pairs may be ranked right, or wrong: each bound is half of their share away from the middle. Sums are
        whole numbers; each bound is rounded once.
        """
        self._settle()
        n, p = self.negatives, self.positives
        if not n or not p:
            return AucBounds(None, None, None)
        negatives, positives = self._counts()
        below = np.cumsum(negatives) - negatives
        won = int(np.sum(positives * (2 * below + negatives)))
        unsure = int(np.sum((negatives * positives)[self._uncertain()]))
        pairs = 2 * n * p
        return AucBounds((won - unsure) / pairs, won / pairs, (won + unsure) / pairs)

    def h_bounds(
        self, cost: Cost | None = None, priors: float | Literal["window"] = PRIORS_OF_WINDOW
    ) -> HBounds:
        """Return the H-measure with its certified bounds. O(cells).

        cost    BetaCost(2, 2) (also for None), UniformCost() or SeverityCost(...)
        priors  "window" (the classes' shares among the events), or the share of positives, in (0, 1)

        The ROC curve runs through the borders of cells: the hull of these points gives the lower bound. The
        upper bound comes from a curve that lies nowhere below the ROC curve: in each of its cells all
        negatives are below all positives. Losses are summed in floating point, so bounds that differ are
        moved outwards by 1e-12. Hand 2009; Tatti 2021, section 5. Raises ConfigError for impossible cost or
        priors.
        """
        return self.h_bounds_by(EvaluatorSettings(cost=BetaCost() if cost is None else cost, priors=priors))

    def h_bounds_by(self, settings: EvaluatorSettings) -> HBounds:
        """Return `h_bounds` by the cost and the priors of settings.

        It is for repeated calls, since to make settings takes 60 us.
        """
        self._settle()
        if not self.negatives or not self.positives:
            return HBounds(None, None, None)
        negatives, positives = self._counts()
        uncertain = self._uncertain()
        h = low = high = _h_of(negatives, positives, settings)
        if uncertain.any():
            first = np.flatnonzero(uncertain)
            high = _h_of(
                np.insert(negatives, first + 1, 0),
                np.insert(np.where(uncertain, 0, positives), first + 1, positives[first]),
                settings,
            )
        if not math.isfinite(h) or not math.isfinite(high):
            return HBounds(None, None, None)
        if uncertain.any():
            low, high = max(0.0, low - _ROUNDING), min(1.0, high + _ROUNDING)
        return HBounds(low, h, high)

    def to_bytes(self) -> bytes:
        """Return the sketch as at most max_bytes bytes, the same for the same events."""
        self._settle()
        return pack(self.max_bytes, self._level, (self._cells, self._negatives, self._positives))

    @classmethod
    def from_bytes(cls, data: bytes) -> AucSketch:
        """Read a sketch from `data`.

        Raises a `WireError`, which says what the bytes are, for any other bytes.
        """
        max_bytes, level, cells = unpack(data)
        try:
            sketch = cls(max_bytes)
        except ConfigError as damage:
            raise CorruptBytesError(f"a sketch contradicts itself: {damage}") from damage
        sketch._level = level
        sketch._cells, sketch._negatives, sketch._positives = cells
        return sketch

    def __reduce__(self) -> tuple[Any, ...]:
        return AucSketch.from_bytes, (self.to_bytes(),)

    def __repr__(self) -> str:
        kept = "every score kept" if self._level == EXACT else f"{len(self._cells)} cells"
        return (
            f"AucSketch({self.negatives} negatives, {self.positives} positives, {kept}, "
            f"max_bytes={self.max_bytes})"
        )

    def _uncertain(self) -> npt.NDArray[np.bool_]:
        """Return which cells may hold more than one score, and hold both classes."""
        if self._level == EXACT:
            return np.zeros(len(self._cells), np.bool_)
        is_open = (self._cells ^ (self._cells >> 63)) & 1
        return (is_open > 0) & (self._negatives > 0) & (self._positives > 0)

    def _counts(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return negatives and positives of the cells, as Python's integers if 64 bits are too few."""
        if self.events < 2**31:  # 2 n p, and the products of a hull, are below 2^63
            return self._negatives, self._positives
        return self._negatives.astype(object), self._positives.astype(object)

    def _wait(self, labels: list[int], scores: list[float]) -> None:
        """Put events into the list of waiting events; count all waiting events once there are too many."""
        self._waiting_labels += labels
        self._waiting_scores += scores
        if len(self._waiting_scores) >= _WAITING:
            self._settle()

    def _settle(self) -> None:
        """Count the events that wait."""
        if self._waiting_scores:
            labels, scores = np.array(self._waiting_labels, np.int8), np.array(self._waiting_scores)
            self._count(labels, scores)
            self._waiting_labels, self._waiting_scores = [], []

    def _count(self, labels: Int8Array, scores: FloatArray) -> None:
        """Count events: 1/0 labels, finite scores."""
        if not len(scores):
            return
        cells = keys_of(scores)
        if self._level != EXACT:
            cells_of(cells.copy(), partition_at(self._level), cells)
        of_class = []
        for label in (0, 1):
            values, counts = np.unique(cells[labels == label], return_counts=True)
            of_class.append((values, counts * (1 - label), counts * label))
        added = _united(of_class[0], of_class[1])
        self._fit(self._level, _united(self._at(self._level), added))

    def _at(self, level: int) -> Cells:
        """Return the cells and their counts at this level or a coarser one. O(cells)."""
        return _coarsened((self._cells, self._negatives, self._positives), self._level, level)

    def _fit(self, level: int, cells: Cells) -> None:
        """Hold the cells at the finest level at which their bytes fit in max_bytes.

        The search goes from fine to coarse, since the bytes need not grow with every level. It first finds a
        level with few enough cells for their least size, and from there the level at which the real size
        fits.
        """
        if packed_bytes(cells) > self.max_bytes:
            most = most_cells(self.max_bytes)
            fits, beyond = 0, level
            finer = _partition_or_any(level)
            while beyond - fits > 1:
                middle = (fits + beyond) // 2
                count = count_cells(cells[0], level == EXACT, finer, partition_at(middle), most)
                fits, beyond = (middle, beyond) if count <= most else (fits, middle)
            while True:
                cells = _coarsened(cells, level, fits)
                level = fits
                if packed_bytes(cells) <= self.max_bytes:
                    break
                fits -= 1
        self._level = level
        self._cells, self._negatives, self._positives = cells


def _checked_max_bytes(value: Any) -> int:
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not whole or not LEAST_MAX_BYTES <= int(value) < 2**40:
        raise ConfigError(
            f"AucSketch(max_bytes={value!r}): give a whole number of bytes, {LEAST_MAX_BYTES} or more"
        )
    return int(value)


def _united(some: Cells, others: Cells) -> Cells:
    """Return the union of the cells of one level, with the counts of equal cells added."""
    room = np.empty((3, len(some[0]) + len(others[0])), np.int64)
    n = add_cells(*some, *others, *room)
    return room[0, :n].copy(), room[1, :n].copy(), room[2, :n].copy()


def _coarsened(cells: Cells, level: int, coarser: int) -> Cells:
    """Return the cells of a level as cells of a coarser level."""
    if level == coarser:
        return cells
    room = np.empty((3, len(cells[0])), np.int64)
    n = coarsen(*cells, level == EXACT, _partition_or_any(level), partition_at(coarser), *room)
    return room[0, :n].copy(), room[1, :n].copy(), room[2, :n].copy()


def _partition_or_any(level: int) -> Partition:
    """Return the partition of a level.

    For EXACT, which has no partition, return the finest partition: kernels never read it then.
    """
    return partition_at(min(level, FINEST))


def _h_of(negatives: npt.NDArray[Any], positives: npt.NDArray[Any], settings: EvaluatorSettings) -> float:
    """Return H of entries, given in the order of their scores."""
    vertices = np.empty(len(negatives) + 1, np.int64)
    hull = getattr(lower_hull, "py_func", lower_hull) if negatives.dtype == object else lower_hull
    vertices = vertices[: hull(negatives, positives, vertices)]
    edge_negatives = np.add.reduceat(negatives, vertices[:-1])
    edge_positives = np.add.reduceat(positives, vertices[:-1])
    return h_measure(edge_negatives, edge_positives, settings)
