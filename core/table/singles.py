"""Singles: the `ModelEvaluator`s of a pool, by number, and the events that wait for them.

Invariant: an event waits only while no row depends on it (`pending`), so that rows come as if every event
were applied at once. Only binary events without weights wait; events with classes or weights never do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays import NO_INT64, Int64Array
from ..evaluator.evaluator import ModelEvaluator
from ..evaluator.state import evaluator_bytes
from ..events.batch import EventBatch
from ..events.inputs import GivenEvents
from ..events.times import END_OF_TIME, NO_TIME
from ..kernels.rings import with_room
from ..rows.rows import Rows
from ..settings.evaluator import EvaluatorSettings
from .pending import PendingEvents, Run

_MANY = 512
"""So many waiting events of one evaluator are worth a call: the cost around the kernels is then a tenth of
the cost of the kernels.
"""


class Singles:
    """Evaluators with the same settings, each an object of its own, by number.

    snapshot_bytes  about how many bytes a snapshot of the evaluators has, including the events that wait
    """

    def __init__(self, settings: EvaluatorSettings) -> None:
        self.snapshot_bytes = 0
        self._live_bytes = 0
        self._limit = settings.window.size
        self._grid = settings.every.micros
        self._strides = [stride for stride in (settings.every.events, settings.curve_stride) if stride]
        self._evaluators: dict[int, ModelEvaluator] = {}
        self._seqs = NO_INT64
        self._emptied = NO_INT64  # the seq at which each window was empty
        self._cells = NO_INT64
        self._dues = NO_INT64
        self._pending = PendingEvents()
        self._must_apply = False  # True if no event may wait, because some events have classes or weights

    def __len__(self) -> int:
        return len(self._evaluators)

    def __contains__(self, number: int) -> bool:
        return number in self._evaluators

    @property
    def live_bytes(self) -> int:
        """About how many bytes of memory the evaluators and the events that wait take."""
        return self._live_bytes + self._pending.nbytes

    def evaluators(self) -> dict[int, ModelEvaluator]:
        """Return the evaluators by number. If a caller reads their states, no event may wait."""
        return self._evaluators

    def place(self, number: int, evaluator: ModelEvaluator, *, multiclass: bool = False) -> None:
        """Add an evaluator under a number. If `multiclass` is True, no event may wait from now on."""
        if number >= len(self._seqs):
            room = max(64, 2 * number)
            self._seqs = with_room(self._seqs, room)
            self._emptied = with_room(self._emptied, room)
            self._cells = with_room(self._cells, room, NO_TIME)
            self._dues = with_room(self._dues, room, END_OF_TIME)
        self._must_apply |= multiclass
        self._evaluators[number] = evaluator
        self._seqs[number] = evaluator.seq
        self._emptied[number] = evaluator.seq - len(evaluator)
        self._dues[number] = evaluator.next_due
        self._note_size(evaluator)

    def let_go(self, number: int) -> ModelEvaluator:
        """Remove an evaluator and return it; no event may wait for the evaluator."""
        evaluator = self._evaluators.pop(number)
        self._forget_size(evaluator)
        self._dues[number] = END_OF_TIME
        return evaluator

    def _note_size(self, evaluator: ModelEvaluator) -> None:
        self.snapshot_bytes += evaluator.snapshot_bytes()
        self._live_bytes += evaluator.live_bytes()

    def _forget_size(self, evaluator: ModelEvaluator) -> None:
        self.snapshot_bytes -= evaluator.snapshot_bytes()
        self._live_bytes -= evaluator.live_bytes()

    def advance(self, clock: int) -> Iterator[Rows]:
        """Yield the rows of grid points that the clock has passed."""
        overdue = np.flatnonzero(self._dues < clock)
        yield from self.apply_pending(overdue)
        for number in overdue.tolist():
            yield self._changed(number, ModelEvaluator.advance_to, clock)

    def finish(self, clock: int) -> Iterator[Rows]:
        """Yield the last rows, in the order of names. clock: the time up to which grid rows are made.

        NO_TIME = none.
        """
        yield from self.apply_pending(None)
        for evaluator in sorted(self._evaluators.values(), key=lambda each: (each.model, each.slice)):
            if clock != NO_TIME:
                yield evaluator.advance_to(clock)
            yield evaluator.finish()

    # ---- events

    def apply(self, batch: EventBatch, numbers: Int64Array) -> Iterator[Rows]:
        """Apply events, each to the evaluator of its number, or let them wait.

        Yields the rows that fall due.
        """
        self._must_apply |= batch.label_classes is not None or batch.weights is not None
        if self._must_apply:
            return self._apply_now(batch, numbers)
        return self._take_in(batch, numbers)

    def _take_in(self, batch: EventBatch, numbers: Int64Array) -> Iterator[Rows]:
        """Let events wait together with other events of their evaluators.

        Apply them if rows are due or many wait.
        """
        scores, labels, times = batch.scores, batch.labels, batch.times
        if not self._pending.fits(times):
            yield from self.apply_pending(None)
        starts = np.flatnonzero(np.diff(numbers, prepend=-1))  # the place of each evaluator's first event
        sizes = np.diff(starts, append=len(numbers))
        present, which = np.unique(numbers[starts], return_inverse=True)
        counts = np.bincount(which, weights=sizes).astype(np.int64)
        before = self._seqs[present]
        after = before + counts
        self._seqs[present] = after
        grown = counts
        if self._limit is not None:
            full = self._emptied[present] + self._limit
            grown = np.minimum(after, full) - np.minimum(before, full)
        self.snapshot_bytes += int(grown.sum()) * _bytes_per_event(times)
        if not len(self._pending) and len(starts) == len(present) and len(numbers) >= _MANY * len(present):
            for number, start, size in zip(
                numbers[starts].tolist(), starts.tolist(), sizes.tolist(), strict=True
            ):
                run = slice(start, start + size)
                part = Run(number, scores[run], labels[run], None if times is None else times[run])
                yield self._apply_run(part)
            return
        self._pending.add(numbers, scores, labels, times)
        if len(self._pending) >= self._enough:
            yield from self.apply_pending(None)
            return
        due = np.zeros(len(present), np.bool_)
        for stride in self._strides:
            due |= after // stride > before // stride
        if self._grid and times is not None:
            due |= self._enters_cell(present, which, np.maximum.reduceat(times, starts))
        if due.any():
            yield from self.apply_pending(present[due])

    def _enters_cell(
        self, present: Int64Array, which: Int64Array, times: Int64Array
    ) -> npt.NDArray[np.bool_]:
        """Return for each evaluator whether these events move its clock past a grid point.

        `present` are the evaluators' numbers; `which` has, for each event, the place of its evaluator in
        `present`. For the other evaluators the next grid point is stored: their events may wait until the
        clock passes it.
        """
        greatest = np.full(len(present), NO_TIME)
        np.maximum.at(greatest, which, times)
        cells = -(-greatest // self._grid)
        entered = cells > self._cells[present]
        self._cells[present] = np.maximum(cells, self._cells[present])
        self._dues[present] = np.minimum(self._dues[present], self._cells[present] * self._grid)
        return entered

    @property
    def _enough(self) -> int:
        """Return how many events may wait; if more do, all are applied.

        1,024 for each evaluator make the cost around the kernels small. Beyond 2^16 events the limit is 32
        for each evaluator: 32 events take less memory than the evaluator itself.
        """
        return max(32 * len(self._evaluators), min(1024 * len(self._evaluators), 1 << 16))

    def apply_pending(self, numbers: Int64Array | None) -> list[Rows]:
        """Apply the waiting events of some evaluators; None means all evaluators."""
        runs = self._pending.pop_all() if numbers is None else self._pending.pop(numbers)
        return [self._apply_run(run) for run in runs]

    def _apply_run(self, run: Run) -> Rows:
        """Apply the events that waited for one evaluator."""
        evaluator = self._evaluators[run.number]
        waited = len(run.scores)
        if self._limit is not None:
            came = int(self._seqs[run.number] - self._emptied[run.number])
            waited = min(came, self._limit) - len(evaluator)
        self.snapshot_bytes -= waited * _bytes_per_event(run.times)
        return self._changed(run.number, ModelEvaluator.apply, run.scores, run.labels, run.times)

    def _changed(self, number: int, change: Callable[..., Rows], *given: Any) -> Rows:
        """Change an evaluator by one of its methods, and update the sizes and the grid points of the pool."""
        evaluator = self._evaluators[number]
        self._forget_size(evaluator)
        rows = change(evaluator, *given)
        self._note_size(evaluator)
        if self._grid:
            self._dues[number] = evaluator.next_due
        return rows

    def _apply_now(self, batch: EventBatch, numbers: Int64Array) -> Iterator[Rows]:
        """Apply events at once, for batches or evaluators with classes or weights.

        Each evaluator checks whether the events fit it.
        """
        yield from self.apply_pending(None)
        events = GivenEvents(
            batch.scores, batch.labels, batch.times, batch.label_classes, batch.predicted, batch.weights
        )
        order = np.argsort(numbers, kind="stable")
        starts = np.flatnonzero(np.diff(numbers[order], prepend=-1)).tolist()
        for start, end in zip(starts, [*starts[1:], len(order)], strict=True):
            rows = order[start:end]
            number = int(numbers[rows[0]])
            due = self._changed(number, ModelEvaluator.apply, *events.part(rows))
            self._seqs[number] = self._evaluators[number].seq
            yield due


def _bytes_per_event(times: Int64Array | None) -> int:
    """Return how many bytes one waiting event adds to a snapshot."""
    timed = times is not None
    return evaluator_bytes(1, 0, 2, False, timed) - evaluator_bytes(0, 0, 2, False, timed)
