"""EvaluatorPool: the evaluators of a table, by number, and the events that wait for them.

Invariant: an event waits only while no row depends on it (`pending`), so that rows come as if every event
were applied at once. Only binary events without weights wait; events with classes or weights never do.

SliceNumbers: numbers of (model, slice) for every event, with a bound on how many values have a slice of their
own.

Invariant: in each (model, tuple of slice columns) the first `cap` distinct values, in the order in which
events apply, have a slice of their own. All later values share the slice whose values are all `OTHER`
("carrier=other", "carrier=other,origin=other"). So every event counts once in each slice asked for, and the
memory for a column of a million values is bounded. A value that itself is `OTHER` goes to the shared slice.

Values that have a slice keep it. They are the values of the evaluators that exist, so they need no state of
their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays import NO_INT64, Int64Array
from ..evaluator.evaluator import ModelEvaluator
from ..evaluator.state import EvaluatorState, Remains, evaluator_bytes
from ..events.batch import EventBatch
from ..events.columns import TextColumn
from ..events.inputs import GivenEvents
from ..events.times import END_OF_TIME, NO_TIME
from ..rows.rows import Rows
from ..settings.evaluator import EvaluatorSettings
from ..settings.table import OTHER, escape_slice, parse_slice
from .pending import PendingEvents, Run, with_room

_GROUPS = 1 << 62  # the numbers of groups stay below this

Make = Callable[[str, str], int]
"""Makes an evaluator of a model and a slice; returns the evaluator's number."""


class SliceNumbers:
    """The numbers of all evaluators, by model and slice.

    cap     how many distinct values of a model and a tuple of slice columns have a slice of their own
    beyond  how many events went to a shared slice because their value came after the cap; an event counts
            once for each slice asked for

    >>> numbers, made = SliceNumbers(1), []
    >>> def make(model, label):
    ...     made.append((model, label))
    ...     return len(made) - 1
    >>> models, carriers = TextColumn.of(["m", "m", "m"]), TextColumn.of(["UA", "DL", "UA"])
    >>> numbers.of(models, ("carrier",), [carriers], make)
    array([0, 1, 0])
    >>> made, numbers.beyond
    ([('m', 'carrier=UA'), ('m', 'carrier=other')], 1)
    """

    def __init__(self, cap: int) -> None:
        self.cap = cap
        self.beyond = 0
        self._of: dict[tuple[str, ...], dict[tuple[str, ...], int]] = {}
        self._own: Counter[tuple[tuple[str, ...], str]] = Counter()

    def add(self, model: str, label: str, number: int) -> bool:
        """Note an existing evaluator; return False if its model and slice already have another. O(label).

        Raises ValueError if `label` is not the name of a slice.
        """
        pairs = parse_slice(label)
        names = tuple(name for name, _ in pairs)
        texts = (model, *(value for _, value in pairs))
        seen = self._of.setdefault(names, {})
        if texts in seen:
            return False
        seen[texts] = number
        self._own[names, model] += not _is_other(texts)
        return True

    def of(
        self, models: TextColumn, names: tuple[str, ...], columns: list[TextColumn], make: Make
    ) -> Int64Array:
        """Return the number of every event's evaluator.

        New evaluators are made by `make`, in the order of the codes of their values.
        """
        seen = self._of.setdefault(names, {})
        if not columns:  # the column's dictionary already lists the models
            found = np.array([seen.get((model,), -1) for model in models.values], np.int64)
            numbers = found[models.codes]
            if numbers.min() >= 0:
                return numbers
        group = _codes_of_texts(models)
        for column in columns:
            if int(group.max(initial=0)) > _GROUPS // (len(column.values) + 1):
                group = np.unique(group, return_inverse=True)[1].astype(np.int64)
            group = group * (len(column.values) + 1) + _codes_of_texts(column)
        _, first, which, counts = np.unique(group, return_index=True, return_inverse=True, return_counts=True)
        texts_of = [tuple(column[row] or "" for column in (models, *columns)) for row in first.tolist()]
        for place in np.argsort(first).tolist():  # the first rows decide which values come before the cap
            texts = texts_of[place]
            if not names or texts in seen or _is_other(texts):
                continue
            if self._own[names, texts[0]] < self.cap:
                self._own[names, texts[0]] += 1
            else:
                texts_of[place] = (texts[0], *(OTHER for _ in names))
                self.beyond += int(counts[place])
        for texts in texts_of:
            if texts not in seen:
                seen[texts] = make(texts[0], _label(names, texts[1:]))
        return np.array([seen[texts] for texts in texts_of], np.int64)[which]


def _is_other(texts: tuple[str, ...]) -> bool:
    """Return whether a (model, values of a slice) belongs to the shared slice: all its values are `OTHER`.

    Without values, for the whole model, the answer is False.
    """
    return len(texts) > 1 and all(text == OTHER for text in texts[1:])


def _label(names: tuple[str, ...], values: tuple[str, ...]) -> str:
    pairs = zip(names, values, strict=True)
    return ",".join(f"{escape_slice(name)}={escape_slice(value)}" for name, value in pairs)


def _codes_of_texts(column: TextColumn) -> Int64Array:
    """Return codes from 0 on that are equal where the texts are. A missing text counts as the empty text."""
    first = {"": 0}
    table = [first.setdefault(text, entry) for entry, text in enumerate(column.values, 1)]
    return np.array([*table, 0], np.int64)[column.codes]


_MANY = 512
"""How many events of an evaluator are worth a call: the cost around the kernels is then a tenth of theirs."""


class EvaluatorPool:
    """Evaluators with the same settings, in one pane.

    An evaluator that left keeps its number, but is not in the pool.

    numbered        how many numbers were given
    snapshot_bytes  about how many bytes a snapshot of the evaluators has, events that wait included
    live_bytes      about how much memory the evaluators and the events that wait take
    """

    def __init__(self, settings: EvaluatorSettings, pane: tuple[int, int] | None) -> None:
        self.settings = settings
        self.pane = pane
        self.numbered = 0
        self.snapshot_bytes = 0
        self._live_bytes = 0
        self._limit = settings.window.size
        self.grid = settings.every.micros
        self._strides = [stride for stride in (settings.every.events, settings.curve_stride) if stride]
        self._evaluators: dict[int, ModelEvaluator] = {}
        self._seqs = NO_INT64
        self._emptied = NO_INT64  # seq at which the window was empty
        self._cells = NO_INT64
        self._dues = NO_INT64
        self._pending = PendingEvents()
        self._must_apply = False  # True if no event may wait: some have classes or weights

    def __len__(self) -> int:
        """Return how many evaluators are in the pool."""
        return len(self._evaluators)

    @property
    def live_bytes(self) -> int:
        """About how many bytes of memory the evaluators and the events that wait take."""
        return self._live_bytes + self._pending.nbytes

    @property
    def numbers(self) -> Iterable[int]:
        """The numbers of the evaluators in the pool, in the order of `states`."""
        return self._evaluators.keys()

    # ---- who is here

    def next_number(self) -> int:
        """Return a number that no evaluator had before."""
        number = self.numbered
        if number == len(self._seqs):
            room = max(64, 2 * number)
            self._seqs = with_room(self._seqs, room, 0)
            self._emptied = with_room(self._emptied, room, 0)
            self._cells = with_room(self._cells, room, NO_TIME)
            self._dues = with_room(self._dues, room, END_OF_TIME)
        self.numbered += 1
        return number

    def make(self, model: str, label: str) -> int:
        """Make an evaluator of a model and a slice; return its number."""
        number = self.next_number()
        self.place(number, ModelEvaluator(self.settings, model=model, slice=label, pane=self.pane))
        return number

    def place(self, number: int, evaluator: ModelEvaluator) -> None:
        """Put an evaluator into the pool under a number."""
        self._evaluators[number] = evaluator
        self._seqs[number] = evaluator.seq
        self._emptied[number] = evaluator.seq - len(evaluator)
        self._dues[number] = evaluator.next_due
        self._note_size(evaluator)

    def load(self, number: int, state: EvaluatorState) -> None:
        """Rebuild an evaluator from its state, and put it into the pool under a number."""
        self.place(number, ModelEvaluator.from_state(self.settings, state))
        self._must_apply |= state.multiclass

    def let_go(self, number: int, deadline: int | None) -> tuple[list[Rows], Remains]:
        """Advance an evaluator to `deadline`, if any, and remove it; return its last rows and counters.

        No event may wait for the evaluator.
        """
        evaluator = self._evaluators.pop(number)
        self._forget_size(evaluator)
        self._dues[number] = END_OF_TIME
        rows = [] if deadline is None else [evaluator.advance_to(deadline + 1)]
        return [*rows, evaluator.finish()], evaluator.remains()

    def states(self) -> list[EvaluatorState]:
        """Return the states of all evaluators in the pool; no event may wait."""
        return [evaluator.state() for evaluator in self._evaluators.values()]

    def _note_size(self, evaluator: ModelEvaluator) -> None:
        self.snapshot_bytes += evaluator.snapshot_bytes()
        self._live_bytes += evaluator.live_bytes()

    def _forget_size(self, evaluator: ModelEvaluator) -> None:
        self.snapshot_bytes -= evaluator.snapshot_bytes()
        self._live_bytes -= evaluator.live_bytes()

    # ---- time

    def advance(self, clock: int) -> Iterator[Rows]:
        """Yield the rows of grid points that the clock has passed."""
        overdue = np.flatnonzero(self._dues[: self.numbered] < clock)
        yield from self.apply_pending(overdue)
        for number in overdue.tolist():
            yield self._changed(number, ModelEvaluator.advance_to, clock)

    def finish(self, greatest: int) -> Iterator[Rows]:
        """Yield the last rows, by name, when all events have come.

        greatest  the greatest time of all events, up to which grid rows are made; NO_TIME = not known
        """
        yield from self.apply_pending(None)
        for evaluator in sorted(self._evaluators.values(), key=lambda each: (each.model, each.slice)):
            if greatest != NO_TIME:
                yield evaluator.advance_to(greatest + 1)
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
        """Let events wait with others of their evaluators; apply them if rows are due or many wait."""
        scores, labels, times = batch.scores, batch.labels, batch.times
        if not self._pending.fits(times):
            yield from self.apply_pending(None)
        starts = np.flatnonzero(np.diff(numbers, prepend=-1))  # where each evaluator's events start
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
        if self.grid and times is not None:
            due |= self._enters_cell(present, which, np.maximum.reduceat(times, starts))
        if due.any():
            yield from self.apply_pending(present[due])

    def _enters_cell(
        self, present: Int64Array, which: Int64Array, times: Int64Array
    ) -> npt.NDArray[np.bool_]:
        """Return for each evaluator whether these events take its clock past a grid point.

        `present` are the evaluators' numbers; `which` has for each event the place of its evaluator there.
        For the other evaluators the next grid point is noted: their events may wait until the clock passes
        it.
        """
        greatest = np.full(len(present), NO_TIME)
        np.maximum.at(greatest, which, times)
        cells = -(-greatest // self.grid)
        entered = cells > self._cells[present]
        self._cells[present] = np.maximum(cells, self._cells[present])
        self._dues[present] = np.minimum(self._dues[present], self._cells[present] * self.grid)
        return entered

    @property
    def _enough(self) -> int:
        """How many events may wait; if more do, all are applied.

        1,024 for each evaluator make the cost around the kernels small. Beyond 2^16 events the limit is 32
        for each evaluator: 32 events take less memory than the evaluator itself.
        """
        return max(32 * len(self._evaluators), min(1024 * len(self._evaluators), 1 << 16))

    def apply_pending(self, numbers: Int64Array | None) -> list[Rows]:
        """Apply the waiting events of some evaluators; None = of all evaluators."""
        runs = self._pending.pop_all() if numbers is None else self._pending.pop(numbers)
        return [self._apply_run(run) for run in runs]

    def _apply_run(self, run: Run) -> Rows:
        """Apply a run: the events that waited for one evaluator."""
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
        if self.grid:
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
