"""EvaluatorPool: the evaluators of a table, by number.

Small windows of events without classes and weights are in an arena, which applies all events of a packet at
once. Larger windows, and windows with other settings, are `ModelEvaluator`s (`singles`). A window that
becomes too large for the arena leaves it for good; rows are the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from ..arena.arena import Arena, is_bounded, most_events
from ..arena.arena import warm_up as warm_up_arena
from ..arrays import BoolArray, Int64Array
from ..errors import InputError
from ..evaluator.evaluator import ModelEvaluator
from ..evaluator.evaluator import warm_up as warm_up_evaluator
from ..evaluator.snapshot import NOTHING_PACKED, Packed, Snapshot
from ..evaluator.state import EvaluatorState, Remains
from ..events.batch import EventBatch
from ..events.times import NO_TIME
from ..rows.rows import Rows
from ..settings.evaluator import EvaluatorSettings
from .singles import Singles
from .slices import Make


class EvaluatorPool:
    """Evaluators with the same settings, in one pane.

    An evaluator that left keeps its number, but is not in the pool.

    numbered  how many numbers have been given to evaluators
    grid      microseconds between the grid points of rows; 0: there is no grid
    """

    def __init__(self, settings: EvaluatorSettings, pane: tuple[int, int] | None) -> None:
        self.settings = settings
        self.pane = pane
        self.numbered = 0
        self.grid = settings.every.micros
        self._arena = Arena(settings, pane) if most_events(settings) else None
        self._singles = Singles(settings)
        self._is_single: BoolArray = np.zeros(64, np.bool_)

    def __len__(self) -> int:
        """Return how many evaluators are in the pool."""
        return len(self._singles) + (0 if self._arena is None else len(self._arena))

    @property
    def snapshot_bytes(self) -> int:
        """About how many bytes a snapshot of the evaluators has, including the events that wait."""
        return self._singles.snapshot_bytes + (0 if self._arena is None else self._arena.snapshot_bytes)

    @property
    def live_bytes(self) -> int:
        """About how many bytes of memory the evaluators and the events that wait take."""
        return self._singles.live_bytes + (0 if self._arena is None else self._arena.live_bytes)

    @property
    def numbers(self) -> list[int]:
        """The numbers of the evaluators in the pool, in the order of `states`."""
        of_arena = [] if self._arena is None else self._arena.numbers
        return [*of_arena, *sorted(self._singles.evaluators())]

    # ---- who is here

    def next_number(self) -> int:
        """Return a number that no evaluator had before."""
        number = self.numbered
        if number == len(self._is_single):
            self._is_single = np.concatenate([self._is_single, np.zeros(number, np.bool_)])
        self.numbered += 1
        return number

    def make(self, model: str, label: str) -> int:
        """Make an evaluator for a model and a slice; return the evaluator's number."""
        number = self.next_number()
        if self._arena is None:
            self._place(number, ModelEvaluator(self.settings, model=model, slice=label, pane=self.pane))
        else:
            self._arena.begin(number, model, label)
        return number

    def load_all(self, snapshot: Snapshot, number_of: Make) -> None:
        """Rebuild the evaluators of a snapshot, each under the number that `number_of` gives."""
        for state in snapshot.evaluators:
            number = number_of(state.model, state.slice)
            if self._arena is not None and self._arena.accepts(state):
                self._arena.load(number, state)
            else:
                evaluator = ModelEvaluator.from_state(self.settings, state)
                self._place(number, evaluator, multiclass=state.multiclass)

    def take_back(self, number: int, remains: Remains, batch: EventBatch) -> None:
        """Make the evaluator of a model that returns with an event of `batch`: its window is empty."""
        evaluator = ModelEvaluator.returning(self.settings, remains, self.pane)
        if self._arena is not None and _is_plain(batch):
            self._arena.load(number, evaluator.state())
        else:
            self._place(number, evaluator)

    def _place(self, number: int, evaluator: ModelEvaluator, *, multiclass: bool = False) -> None:
        self._singles.place(number, evaluator, multiclass=multiclass)
        self._is_single[number] = True

    def _make_single(self, number: int) -> None:
        """Move an evaluator out of the arena."""
        if self._arena is not None and number in self._arena:
            self._place(number, ModelEvaluator.from_state(self.settings, self._arena.remove(number)))

    def let_go(self, number: int, deadline: int | None) -> tuple[list[Rows], Remains]:
        """Advance an evaluator to `deadline`, if there is one, and remove it.

        Return its last rows and counters.

        No event may wait for the evaluator.
        """
        self._make_single(number)
        evaluator = self._singles.let_go(number)
        self._is_single[number] = False
        rows = [] if deadline is None else [evaluator.advance_to(deadline + 1)]
        return [*rows, evaluator.finish()], evaluator.remains()

    def states(self) -> tuple[Packed, list[EvaluatorState]]:
        """Return the states of all evaluators in the pool, the states of the arena in packed form.

        No event may wait.
        """
        arena = self._arena
        packed = NOTHING_PACKED if arena is None else Packed(len(arena), arena.pack())
        return packed, [evaluator.state() for _, evaluator in sorted(self._singles.evaluators().items())]

    def beside(self) -> dict[str, bytes]:
        """Return no other parts of a snapshot."""
        return {}

    # ---- time

    def advance(self, clock: int) -> Iterator[Rows]:
        """Yield the rows of grid points that the clock has passed."""
        if self._arena is not None:
            yield self._arena.advance(clock)
        yield from self._singles.advance(clock)

    def finish(self, greatest: int) -> Iterator[Rows]:
        """Yield the last rows when all events have come.

        greatest  the greatest time of all events, up to which grid rows are made; NO_TIME = not known
        """
        clock = NO_TIME if greatest == NO_TIME else greatest + 1
        if self._arena is None:
            yield from self._singles.finish(clock)
            return
        yield Rows.concat([self._arena.finish(clock), *self._singles.finish(clock)]).by_name()

    # ---- events

    def apply(self, batch: EventBatch, numbers: Int64Array) -> Iterator[Rows]:
        """Apply events, each to the evaluator of its number, or let them wait.

        Yields the rows that fall due. Raises InputError for events with a score of each class.
        """
        if batch.class_scores is not None:
            raise InputError(
                f"a packet of {batch.source!r} has events with scores of {batch.class_scores.shape[1]:,} "
                "classes, and the models have one score"
            )
        arena = self._arena
        if arena is None:
            yield from self._singles.apply(batch, numbers)
            return
        if not _is_plain(batch):
            for number in np.unique(numbers).tolist():
                self._make_single(number)
        elsewhere = self._is_single[numbers]
        if not elsewhere.any():
            runs = arena.runs(numbers, batch.scores, batch.labels, batch.times)
            if not len(too_large := arena.outgrown(runs)):
                yield arena.apply(runs)
                return
            for number in too_large.tolist():
                self._make_single(number)
            elsewhere = self._is_single[numbers]
        here = np.flatnonzero(~elsewhere)
        if not len(here):
            yield from self._singles.apply(batch, numbers)
            return
        yield from self.apply(batch.take(here), numbers[here])
        there = np.flatnonzero(elsewhere)
        yield from self._singles.apply(batch.take(there), numbers[there])

    def apply_pending(self, numbers: Int64Array | None) -> list[Rows]:
        """Apply the waiting events of some evaluators; None means all evaluators."""
        return self._singles.apply_pending(numbers)


def _is_plain(batch: EventBatch) -> bool:
    """Return whether events have neither classes nor weights, so that an arena can apply them."""
    return batch.label_classes is None and batch.weights is None


def warm_up(settings: EvaluatorSettings, *, largest_first: bool = False) -> None:
    """Compile the kernels that a pool needs; see `evaluator.warm_up`."""
    steps = []
    if most_events(settings):
        steps.append(partial(warm_up_arena, settings))
    if not is_bounded(settings):
        steps.append(partial(warm_up_evaluator, settings, largest_first=largest_first))
    for step in reversed(steps) if largest_first else steps:
        step()
