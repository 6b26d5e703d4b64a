"""WeightedStore: the events of a WeightedTree that come and go, and the scales of their masses.

`tree` adds queries.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from ..arrays import NO_FLOATS, FloatArray, Int8Array, Int64Array
from ..errors import InputError, MissingEventError
from ..events.inputs import as_labels, as_scores, writeable
from ..kernels.records import empty_records, for_kernels
from .build import build, group_events, leaves_needed, list_entries, nodes_needed
from .layout import EDGE, ENTRY, ROOM_AHEAD, SLOTS, Forest, empty_forest
from .tree_rows import NO_ROWS, Batch, RowAsk, RowPlan, answer, run_batch
from .update import DONE, MISSING, NEEDS_POOL, NEEDS_REBUILD, NEEDS_ROOM, NEEDS_SCALE, NEEDS_TIED, exponent_of

NOTHING = RowAsk(0.0, 0.0, 0.5, 0, 0.0, -1.0, 0)
_RECORDS = {"leaves": ("leaves", "leaf_runs"), "nodes": ("nodes", "node_runs"), "tied": ("tied",)}


def as_weights(weights: npt.ArrayLike, length: int) -> FloatArray:
    """Return weights in the form that kernels take; raise InputError unless they are finite and above 0."""
    array: FloatArray = writeable(np.ascontiguousarray(weights, dtype=np.float64))
    if array.shape != (length,):
        raise InputError(f"weights: shape {array.shape} for {length} labels; give one for each")
    wrong = ~(np.isfinite(array) & (array > 0.0))
    if wrong.any():
        at = int(wrong.argmax())
        raise InputError(f"weights: {array[at]} at position {at}; give finite numbers above 0")
    return array


def as_finite_scores(scores: npt.ArrayLike, length: int) -> FloatArray:
    """Return scores in the form that kernels take; raise InputError unless they are finite.

    AUM measures distances between scores, so an infinite score has no meaning.
    """
    array = as_scores(scores, length)
    if not np.isfinite(array).all():
        at = int((~np.isfinite(array)).argmax())
        raise InputError(f"scores: {array[at]} at position {at}; give finite numbers")
    return array


def as_signs(signs: npt.ArrayLike, length: int) -> Int8Array:
    """Return signs in the form that kernels take; raise InputError unless each is 1 or -1."""
    array = np.ascontiguousarray(signs, dtype=np.int8)
    if array.shape != (length,) or not (np.abs(array) == 1).all():
        raise InputError(f"signs: shape {array.shape} for {length} events; give 1 or -1 for each")
    result: Int8Array = writeable(array)
    return result


def with_more_places(old: Forest, **rooms: int) -> Forest:
    """Return a copy of the tree with room for more records of each kind: leaves, nodes and ties."""
    state = old.state[0]
    new = empty_forest(**{"leaves": 0, "nodes": 0, "tied": 0, "pool": 0, "scratch": 0} | rooms)
    grown: dict[str, Any] = {}
    for kind, room in rooms.items():
        held, before = int(state[f"free_{kind}"]), len(getattr(old, kind))
        for name in _RECORDS[kind]:
            grown[name] = getattr(new, name)
            grown[name][:before] = getattr(old, name)
        free = grown[f"free_{kind}"] = np.empty(room, np.int32)
        free[:held] = getattr(old, f"free_{kind}")[:held]
        free[held : held + room - before] = np.arange(room - 1, before - 1, -1)
        state[f"free_{kind}"] += room - before
    return old._replace(**grown)


def with_larger_pool(old: Forest, tries: int) -> Forest:
    """Copy the hulls without gaps into a larger pool, half of it free; later tries free more."""
    hulls = [runs[runs["edge_room"] > 0] for runs in (old.leaf_runs, old.node_runs)]
    begins = np.concatenate([of["edges"] for of in hulls])
    counts = np.concatenate([of["edge_count"] for of in hulls]).astype(np.int64)
    rooms = counts + (counts >> 1) + 4
    ends = np.cumsum(rooms)
    pool = empty_records((2 * int(rooms.sum()) + 1024) << (tries - 1), EDGE)
    edge_of_hull = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    pool[np.repeat(ends - rooms, counts) + edge_of_hull] = old.pool[np.repeat(begins, counts) + edge_of_hull]
    done = 0
    for runs, of in zip((old.leaf_runs, old.node_runs), hulls, strict=True):
        here, done = slice(done, done + len(of)), done + len(of)
        has_room = runs["edge_room"] > 0
        runs["edges"][has_room] = (ends - rooms)[here]
        runs["edge_room"][has_room] = rooms[here]
    old.state[0]["pool_end"] = rooms.sum()
    scratch = old.scratch
    if tries > 1:  # if this is not the first try, the scratch was too small
        scratch = empty_records(2 * len(scratch), EDGE)
    return old._replace(pool=pool, scratch=scratch)


class WeightedEntries(NamedTuple):
    """Distinct scores in ascending order, with the sums of the events at each score.

    For each class the sums are the mass, the number of events and the sum of squared weights.
    """

    scores: FloatArray
    negatives: FloatArray
    positives: FloatArray
    negative_events: Int64Array
    positive_events: Int64Array
    negative_squares: FloatArray
    positive_squares: FloatArray


def _even_exponent(weights: FloatArray) -> int:
    """Return the even exponent that brings the largest weight into [1, 4); 0 if there are no weights."""
    return int(exponent_of(float(weights.max()))) if len(weights) and weights.max() > 0.0 else 0


class WeightedStore:
    """The events of a `WeightedTree`, and the kernels that change them."""

    def __init__(
        self,
        labels: npt.ArrayLike = (),
        scores: npt.ArrayLike = (),
        weights: npt.ArrayLike = (),
    ) -> None:
        self._forest: Forest
        self.rebuild(labels, scores, weights)

    @classmethod
    def from_sorted(cls, entries: WeightedEntries) -> Self:
        """Build a tree from the entries that `to_sorted` returns. O(k), some 30 ns an entry."""
        scores = as_finite_scores(entries.scores, len(entries.scores))
        if (scores[1:] <= scores[:-1]).any():
            raise InputError("from_sorted: scores are not ascending and distinct; sort and group")
        columns = [np.asarray(column, np.float64) for column in entries[1:]]
        if any(column.shape != scores.shape or (column < 0).any() for column in columns):
            raise InputError(f"from_sorted: give {len(scores)} masses, counts and squares, none below 0")
        masses, events, squares = columns[:2], columns[2:4], columns[4:]
        if any(((m > 0) != (e > 0)).any() for m, e in zip(masses, events, strict=True)) or (
            len(scores) and (events[0] + events[1]).min() < 1
        ):
            raise InputError("from_sorted: a mass without events, or events without mass")
        tree = cls()
        records = np.zeros(len(scores), ENTRY)
        records["key"] = scores + 0.0
        exponents = []
        for label in (0, 1):
            exponent = _even_exponent(masses[label])
            factor = math.ldexp(1.0, -(exponent >> 1))
            records["mass"][:, label] = masses[label] * factor * factor
            # by the doubled exponent at once: a factor applied twice would lose squares of weights beyond
            # 1e154
            records["squares"][:, label] = squares[label] * (factor * factor) * (factor * factor)
            records["events"][:, label] = events[label]
            exponents.append(exponent)
        tree._load(for_kernels(records), exponents)
        return tree

    def to_sorted(self) -> WeightedEntries:
        """Return the distinct scores, ascending, with masses, events and squares of each class. O(k).

        >>> from rocsteady import WeightedTree
        >>> WeightedTree([1, 1], [0.5, 0.5], [2.0, 1.0]).to_sorted().positives.tolist()
        [3.0]
        """
        records = self.held_entries()
        exponents = np.array(self._exponents)
        with np.errstate(over="ignore", under="ignore"):
            masses = np.ldexp(records["mass"], exponents)
            squares = np.ldexp(records["squares"], 2 * exponents)
        columns = (column.copy() for of_both in (masses, records["events"], squares) for column in of_both.T)
        return WeightedEntries(records["key"].copy(), *columns)

    def rebuild(self, labels: npt.ArrayLike, scores: npt.ArrayLike, weights: npt.ArrayLike) -> None:
        """Hold the events of these labels, scores and weights alone, in a scale that suits. O(k log k)."""
        y = as_labels(labels)
        s = as_finite_scores(scores, len(y)) + 0.0
        w = as_weights(weights, len(y))
        order = np.argsort(s, kind="stable")
        y, s, w = y[order], s[order], w[order]
        exponents = [_even_exponent(w[y == label]) for label in (0, 1)]
        entries = empty_records(max(1, len(y)), ENTRY)
        factors = [math.ldexp(1.0, -(exponent >> 1)) for exponent in exponents]
        units = np.zeros(2)
        count = group_events(y, s, w, factors[0], factors[1], entries, units)
        self._load(entries[:count], exponents, units)

    def apply(
        self,
        labels: npt.ArrayLike,
        scores: npt.ArrayLike,
        weights: npt.ArrayLike,
        signs: npt.ArrayLike,
        placements: FloatArray | None = None,
    ) -> None:
        """Let events enter and leave the tree, in order. O(log k) each, in one compiled call.

        labels, scores, weights  of n events. An event must leave with the weight with which it entered
        signs                    of each event: 1 to enter, -1 to leave
        placements               float64[n], filled for each event that enters with its placement among the
                                 events before it; None: not asked

        Raises MissingEventError if an event that leaves is not there; the tree then holds what it held.
        """
        y = as_labels(labels)
        s, w = as_finite_scores(scores, len(y)), as_weights(weights, len(y))
        sign = as_signs(signs, len(y))
        values = NO_FLOATS if placements is None else placements
        if placements is not None and not (
            placements.shape == y.shape and placements.dtype == np.float64 and placements.flags.writeable
        ):
            raise InputError(f"placements: give a float64 array of {len(y)} that can be written")
        batch = Batch(y, s, w, sign)
        course = np.zeros(2, np.int64)
        if self.run(batch, NOTHING, NO_ROWS, values, course) == MISSING:
            done = int(course[0])
            back = Batch(*(np.ascontiguousarray(column[:done][::-1]) for column in batch))
            self.run(back._replace(signs=-back.signs), NOTHING, NO_ROWS, NO_FLOATS, np.zeros(2, np.int64))
            raise MissingEventError(
                f"apply: no event of label {y[done]} and score {s[done]} is there to leave (position {done} "
                "of the batch); nothing was changed"
            )

    def run(
        self, batch: Batch, ask: RowAsk, plan: RowPlan, placements: FloatArray, course: Int64Array
    ) -> int:
        """Run the batch kernel from the place where `course` stands, on arrays that are already checked.

        Makes room and changes scales when the kernel needs it. Returns DONE, MISSING or NEEDS_REBUILD.
        """
        tries = 0
        while True:
            code = run_batch(self._forest, batch, ask, plan, placements, course)
            if code in (DONE, MISSING, NEEDS_REBUILD):
                return code
            tries = tries + 1 if code == NEEDS_POOL else 0
            if code == NEEDS_SCALE:
                event = int(course[0])
                self._rescale(int(batch.labels[event]), int(exponent_of(float(batch.weights[event]))))
            elif code == NEEDS_ROOM:
                self._forest = with_more_places(
                    self._forest,
                    leaves=len(self._forest.leaves) * 5 // 4 + 4,
                    nodes=len(self._forest.nodes) * 5 // 4 + ROOM_AHEAD,
                )
            elif code == NEEDS_TIED:
                self._forest = with_more_places(self._forest, tied=2 * len(self._forest.tied) + 8)
            elif code == NEEDS_POOL:
                self._forest = with_larger_pool(self._forest, tries)
            else:
                raise RuntimeError(f"run_batch: stopped by {code}; this is a defect of ours")

    def __len__(self) -> int:
        return int(self._state["events"].sum())

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(int(array.nbytes) for array in self._forest)

    def shift(self, exponent: int) -> None:
        """Take all weights, those held and those to come, 2^exponent times as large. O(1), exact.

        For the inflated weights of fading events, before they overflow. The owner must scale its own weights
        alike.
        """
        for label in (0, 1):
            if self._state["events"][label]:
                self._set_exponent(label, self._exponents[label] + exponent)

    @property
    def _state(self) -> Any:
        return self._forest.state[0]

    @property
    def _exponents(self) -> tuple[int, int]:
        negative, positive = self._state["exponent"]
        return int(negative), int(positive)

    @property
    def is_built(self) -> bool:
        """Whether the tree was built from its events, and no event came or went since."""
        return int(self._state["changes"]) == 0

    @property
    def _root(self) -> Any:
        runs = self._forest.node_runs if self._state["height"] else self._forest.leaf_runs
        return runs[int(self._state["root"])]

    def _answer(self, question: int, value: float = 0.0) -> tuple[float, float]:
        """Return the two numbers that the kernel `answer` gives, after all hulls have room."""
        tries = 0
        while True:
            code, first, second = answer(self._forest, question, value)
            if code == DONE:
                return float(first), float(second)
            tries += 1
            self._forest = with_larger_pool(self._forest, tries)

    def held_entries(self) -> Any:
        """Return all entries as records of ENTRY, with the masses of each class in its own scale.

        O(k).
        """
        entries = empty_records(int(self._state["entries"]), ENTRY)
        list_entries(self._forest, entries)
        return entries

    def _set_exponent(self, label: int, exponent: int) -> None:
        self._state["exponent"][label] = exponent
        self._state["factor"][label] = math.ldexp(1.0, -(exponent >> 1))

    def _load(self, entries: Any, exponents: list[int], units: FloatArray | None = None) -> None:
        """Make all arrays anew and fill them with entries; `units` as in `group_events`."""
        count = len(entries)
        leaves = leaves_needed(count) * 5 // 4 + 4
        nodes = nodes_needed(leaves) + ROOM_AHEAD
        ties = int(np.count_nonzero((entries["events"] > 1).any(axis=1)))
        forest = empty_forest(leaves, nodes, ties * 5 // 4 + 8, 8 * leaves, 4 * SLOTS)
        build(forest, entries, np.empty(leaves, np.int64), np.empty(leaves))
        self._forest = forest
        for label in (0, 1):
            self._set_exponent(label, exponents[label])
            self._state["unit"][label] = 0.0 if units is None else units[label]

    def _rescale(self, label: int, exponent: int) -> None:
        """Hold the masses of one class in another scale, because a weight does not fit into this scale.

        O(k).
        """
        entries = self.held_entries()
        down = max(self._exponents[label] - exponent, -2000)
        with np.errstate(under="ignore"):
            for name, power in (
                ("mass", 1), ("rest", 1), ("lost", 1), ("squares", 2), ("squares_rest", 2)
            ):  # fmt: skip
                entries[name][:, label] = np.ldexp(entries[name][:, label], power * down)
        held = entries["events"][:, label] > 0
        entries["mass"][held, label] = np.maximum(entries["mass"][held, label], 5e-324)
        exponents, old = list(self._exponents), self._state
        exponents[label] = exponent
        self._load(entries, exponents)
        self._state["changes"], self._state["spoiled"] = old["changes"], old["spoiled"]
        for name, power in (("lost", 1), ("lost_squares", 2), ("unit", 1)):
            for c in (0, 1):
                lost = float(old[name][c])
                self._state[name][c] = math.ldexp(lost, power * down) if c == label else lost
