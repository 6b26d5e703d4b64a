"""ClassPool: the evaluators of a table whose models have a score of each class, by number.

A `MulticlassEvaluator` is one model or slice. Events are applied as they come: no event waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..arrays import Int64Array
from ..classes.class_settings import ClassSettings
from ..classes.evaluator import MulticlassEvaluator
from ..classes.events import ClassEvents
from ..classes.state import packed_states, states_in
from ..errors import InputError
from ..evaluator.evaluator import warm_up as warm_up_evaluator
from ..evaluator.snapshot import NOTHING_PACKED, Packed, Snapshot
from ..evaluator.state import EvaluatorState, Remains
from ..events.batch import EventBatch
from ..events.times import END_OF_TIME, NO_TIME
from ..kernels.rings import with_room
from ..rows.class_rows import ClassRows
from ..rows.rows import Rows
from ..settings.table import OF_CLASSES
from .slices import Make


class ClassPool:
    """Evaluators with the same settings, in one pane, for models with a score of each class.

    It has the methods of `EvaluatorPool`, which is for models with one score.

    An evaluator that left keeps its number, but is not in the pool.

    numbered        how many numbers have been given to evaluators
    grid            microseconds between the grid points of rows; 0: there is no grid
    snapshot_bytes  about how many bytes a snapshot of the evaluators has
    live_bytes      about how many bytes of memory the evaluators take
    """

    def __init__(self, settings: ClassSettings, pane: tuple[int, int] | None) -> None:
        self.settings = settings
        self.pane = pane
        self.grid = settings.evaluator.every.micros
        self.numbered = self.snapshot_bytes = self.live_bytes = 0
        self._evaluators: dict[int, MulticlassEvaluator] = {}
        self._dues = np.empty(0, np.int64)

    def __len__(self) -> int:
        """Return how many evaluators are in the pool."""
        return len(self._evaluators)

    # ---- who is here

    @property
    def numbers(self) -> list[int]:
        """The numbers of the evaluators in the pool, in the order of a snapshot."""
        return sorted(self._evaluators)

    def next_number(self) -> int:
        """Return a number that no evaluator had before."""
        self.numbered += 1
        return self.numbered - 1

    def make(self, model: str, label: str) -> int:
        """Make an evaluator for a model and a slice; return the evaluator's number."""
        number = self.next_number()
        self._place(number, MulticlassEvaluator(self.settings, model=model, slice=label, pane=self.pane))
        return number

    def _place(self, number: int, evaluator: MulticlassEvaluator) -> None:
        self._evaluators[number] = evaluator
        if number >= len(self._dues):
            self._dues = with_room(self._dues, max(64, 2 * number), END_OF_TIME)
        self._dues[number] = evaluator.next_due
        self._note_size(evaluator, 1)

    def take_back(self, number: int, remains: Remains, batch: EventBatch) -> None:  # noqa: ARG002
        """Make the evaluator of a model that returns.

        It has an empty window, and its rows continue the old rows.
        """
        self._place(number, MulticlassEvaluator.returning(self.settings, remains, self.pane))

    def let_go(self, number: int, deadline: int | None) -> tuple[list[Rows], Remains]:
        """Advance an evaluator to `deadline`, if there is one, and remove it.

        Return its last rows and counters.
        """
        evaluator = self._evaluators.pop(number)
        self._note_size(evaluator, -1)
        self._dues[number] = END_OF_TIME
        rows = [] if deadline is None else [evaluator.advance_to(deadline + 1).rows]
        return [*rows, evaluator.finish().rows], evaluator.remains()

    def _note_size(self, evaluator: MulticlassEvaluator, sign: int) -> None:
        self.snapshot_bytes += sign * (8 + evaluator.snapshot_bytes())
        self.live_bytes += sign * evaluator.live_bytes()

    # ---- time

    def advance(self, clock: int) -> Iterator[Rows]:
        """Yield the rows of grid points that the clock has passed."""
        for number in np.flatnonzero(self._dues < clock).tolist():
            yield self._changed(number, MulticlassEvaluator.advance_to, clock)

    def finish(self, greatest: int) -> Iterator[Rows]:
        """Yield the last rows, in the order of names, when all events have come.

        `greatest` as in `EvaluatorPool`.
        """
        for evaluator in sorted(self._evaluators.values(), key=lambda each: (each.model, each.slice)):
            if greatest != NO_TIME:
                yield evaluator.advance_to(greatest + 1).rows
            yield evaluator.finish().rows

    # ---- events

    def apply(self, batch: EventBatch, numbers: Int64Array) -> Iterator[Rows]:
        """Apply events, each to the evaluator of its number. Yields the rows that fall due."""
        events, decided = self._events_of(batch)
        order = np.argsort(numbers, kind="stable")
        starts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
        for rows in np.split(order, starts[1:]):
            times = None if batch.times is None else batch.times[rows]
            classes = None if decided is None else decided[rows]
            given = events.part(rows), times, classes
            yield self._changed(int(numbers[rows[0]]), MulticlassEvaluator.apply, *given)

    def _events_of(self, batch: EventBatch) -> tuple[ClassEvents, Int64Array | None]:
        """Return the events of a batch, and the class decided for each; None if events have several labels.

        Raises InputError for a batch of other classes.
        """
        scores, classes = batch.class_scores, len(self.settings.classes)
        if scores is None or scores.shape[1] != classes:
            there = "one score" if scores is None else f"scores of {scores.shape[1]:,} classes"
            raise InputError(
                f"a packet of {batch.source!r} has events with {there}, and there are {classes:,} classes"
            )
        if self.settings.multi_label:
            if batch.class_labels is None:
                raise InputError(f"a packet of {batch.source!r} does not say of each class who is of it")
            return ClassEvents(batch.class_labels == 1, scores, batch.weights), None
        if batch.label_classes is None or batch.predicted is None:
            raise InputError(f"a packet of {batch.source!r} does not say which class an event is of")
        labels, decided = map(self.settings.numbers_of, (batch.label_classes, batch.predicted))
        return ClassEvents(labels, scores, batch.weights), decided

    def _changed(self, number: int, change: Callable[..., ClassRows], *given: Any) -> Rows:
        """Change an evaluator by one of its methods, and update the sizes and the grid points of the pool."""
        evaluator = self._evaluators[number]
        self._note_size(evaluator, -1)
        rows = change(evaluator, *given).rows
        self._note_size(evaluator, 1)
        self._dues[number] = evaluator.next_due
        return rows

    def apply_pending(self, numbers: Int64Array | None) -> list[Rows]:  # noqa: ARG002
        """Return no rows, because no event waits."""
        return []

    # ---- state

    def states(self) -> tuple[Packed, list[EvaluatorState]]:
        """Return nothing: `beside` returns the states of these evaluators."""
        return NOTHING_PACKED, []

    def beside(self) -> dict[str, bytes]:
        """Return the wire form of all evaluators, under the name of this part of a snapshot."""
        states = [self._evaluators[number].to_bytes() for number in self.numbers]
        return {OF_CLASSES: packed_states(states)}

    def load_all(self, snapshot: Snapshot, number_of: Make) -> None:
        """Rebuild the evaluators of a snapshot, each under the number that `number_of` gives.

        Raises a `WireError` for damaged bytes, OtherConfigurationError for other settings.
        """
        for state in states_in(snapshot.beside[OF_CLASSES]):
            evaluator = MulticlassEvaluator.from_bytes(state, self.settings)
            self._place(number_of(evaluator.model, evaluator.slice), evaluator)


def warm_up(settings: ClassSettings) -> None:
    """Compile the kernels that the evaluators of the pool need, or load them from the cache folder."""
    for each in (settings.of_class(settings.classes[0]), settings.of_model):
        warm_up_evaluator(each)
    evaluator = MulticlassEvaluator(settings)
    count = len(settings.classes)
    labels = np.arange(4) % count
    scores = np.linspace(0.0, 1.0, 4 * count).reshape(4, count)
    times = np.arange(4) if settings.evaluator.needs_times else None
    if settings.multi_label:
        evaluator.apply(ClassEvents(np.eye(4, count, dtype=np.bool_), scores), times)
    else:
        evaluator.apply(ClassEvents(labels, scores), times, labels)
    evaluator.finish()
