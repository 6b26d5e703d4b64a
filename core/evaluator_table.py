"""EvaluatorTable: the state machine of a shard. Records in, rows out; (model, slice) -> ModelEvaluator.

What it keeps true
    Rows depend on each partition's own sequence of events, and with order "position" and "time" on
    nothing else: not on how events were cut into packets, nor on the order in which packets arrive.
    An event travels once and is expanded into its slices here.

An event's way here: its order (`input_order`), whether it came before (`deduplicator`), its slices
(`slice_numbers`), whether its models were silent for long (`idle_models`), its evaluators.

In which order events apply, `input_order` says. Where all has come, the clock stands at the greatest event
time of all partitions, whatever shard its event went to: rows on a grid of times up to it are made, then the
last ones. In order of time a row on the grid is made as soon as the clock has passed its grid point.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from .deduplicator import Deduplicator
from .errors import CorruptBytesError, InputError
from .evaluator_state import EvaluatorState, Remains, evaluator_bytes
from .events import NO_TIME, EventBatch, FloatArray, Int8Array, Int64Array, TextColumn
from .idle_models import IdleModels
from .input_order import order_of
from .join_batches import LabelBatch, PredictionBatch
from .model_evaluator import ModelEvaluator
from .model_evaluator import warm_up as evaluator_warm_up
from .pending_events import PendingEvents, Run
from .ranking import size_of
from .records import unpack_record
from .rejected import Rejected
from .rows import Rows
from .settings import EvaluatorSettings, TableSettings
from .slice_numbers import SliceNumbers
from .snapshot import DEDUPLICATOR, IDLE, Snapshot
from .source_partitions import END_OF_TIME
from .windows import EveryEvents

_MANY = 512
"""Events of an evaluator that need not wait for more: what is around the kernels costs a tenth of them."""


COUNTED = ("events_applied", "events_tied", "events_in_other", "late", "duplicate", "evaluators_retired")
"""What a table counts."""


class EvaluatorTable:
    """All evaluators of one shard, in one pane.

    >>> from rocsteady.core.events import EventBatch, TextColumn
    >>> from rocsteady.core.records import EndOfInput
    >>> table = EvaluatorTable(TableSettings())
    >>> batch = EventBatch(TextColumn.of(["a", "b", "a"]), np.array([0.2, 0.9, 0.7]), np.array([0, 1, 1]))
    >>> table.apply(batch.pack())
    []
    >>> [(row.model, row.seq, row.auc) for rows in table.apply(EndOfInput().pack()) for row in rows]
    [('a', 2, 1.0), ('b', 1, None)]
    """

    def __init__(self, settings: TableSettings, pane: tuple[int, int] | None = None) -> None:
        self.settings = settings
        self.pane = pane
        self._order = order_of(settings.evaluator.order)
        self._limit = size_of(settings.evaluator)
        every = settings.evaluator.every
        self._grid = 0 if isinstance(every, EveryEvents) else every.micros
        emissions = (settings.evaluator.every, settings.evaluator.curves)
        self._strides = [each.n for each in emissions if isinstance(each, EveryEvents)]
        self._deduplicator = _deduplicator_of(settings)
        self._slices = SliceNumbers(settings.slice_cap)
        self._idle: IdleModels | None = None
        if settings.idle_ttl is not None:
            self._idle = IdleModels(settings.idle_ttl, shared=settings.evaluator.order != "position")
        self._evaluators: dict[int, ModelEvaluator] = {}  # those that are here, by number
        self._numbered = 0
        self._seqs = np.zeros(0, np.int64)
        self._emptied = np.zeros(0, np.int64)  # seq at which the window was empty
        self._cells = np.zeros(0, np.int64)
        self._dues = np.zeros(0, np.int64)
        self._pending = PendingEvents()
        self._must_apply = False  # no event may wait: some have classes or weights
        self._live_bytes = 0
        self._snapshot_bytes = 0
        self._snapshot_bytes = len(self.to_bytes()) - self.snapshot_bytes()
        self._counts = Counter(dict.fromkeys(COUNTED, 0))

    def __len__(self) -> int:
        return len(self._evaluators)

    def apply(self, record: bytes) -> list[Rows | Rejected]:
        """Apply one record; return the rows and curves that fell due, in one piece, and what was refused.

        Raises a `WireError` for bytes that are no record, InputError for a record that contradicts what
        came before.
        """
        content = unpack_record(record)
        if isinstance(content, PredictionBatch | LabelBatch):
            raise InputError(
                f"a packet of {content.packet().source!r} holds no events; join labels to predictions first"
            )
        was_finished, tied = self._order.is_finished, self._order.tied
        parts: list[Rows] = []
        refused: list[Rows | Rejected] = []
        for given in self._order.take(content, record):
            if isinstance(given, Rejected):
                self._counts[given.kind] += len(given)
                refused.append(given)
                continue
            batch = given
            if self._deduplicator is not None:
                batch, again = self._deduplicator.sift(given)
                self._counts["duplicate"] += len(again)
                refused += [again] if len(again) else []
            parts += self._apply_batch(batch)
        if self._deduplicator is None:  # else of the events of one time and id one counts
            self._counts["events_tied"] += self._order.tied - tied
        if self._order.is_finished:
            parts += [] if was_finished else self._finish()
        else:
            parts += self._let_time_go_on()
        rows = Rows.concat(parts)
        return [rows, *refused] if len(rows) or rows.curves else refused

    def _let_time_go_on(self) -> Iterator[Rows]:
        """Let go of what was silent for long; make the rows of grid points that the clock has passed."""
        clock = self._order.clock
        if self._idle is not None and self._idle.shared:
            yield from self._leave_overdue(self._idle.clock if clock == NO_TIME else clock)
        if not self._grid or clock == NO_TIME:
            return
        yield from self._apply_pending(None)
        for number in np.flatnonzero(self._dues[: self._numbered] < clock).tolist():
            evaluator = self._evaluators[number]
            self._forget_size(evaluator)
            yield evaluator.advance(clock)
            self._note_size(evaluator)
            self._dues[number] = evaluator.next_due

    def _finish(self) -> Iterator[Rows]:
        yield from self._apply_pending(None)
        greatest = self._order.greatest
        if self._idle is not None:
            yield from self._leave_overdue(self._idle.clock if greatest == NO_TIME else greatest)
        for evaluator in sorted(self._evaluators.values(), key=lambda each: (each.model, each.slice)):
            if greatest != NO_TIME:
                yield evaluator.advance(greatest + 1)
            yield evaluator.finish()

    def wakes_at(self) -> int | None:
        """Return the moment at which it wants to hear a `Clock`; None = it does not wait for one."""
        moments = [self._order.wakes_at(), None if self._idle is None else self._idle.wakes_at()]
        return min((moment for moment in moments if moment is not None), default=None)

    # ---- evaluation

    def _apply_batch(self, batch: EventBatch) -> Iterator[Rows]:
        if not len(batch):
            return
        self._counts["events_applied"] += len(batch)
        self._must_apply |= batch.label_classes is not None or batch.weights is not None
        columns = dict(batch.slices)
        clocks = None if self._idle is None else self._idle.clocks(batch.times)
        for names in ((), *self.settings.slices):
            if missing := [name for name in names if name not in columns]:
                raise InputError(
                    f"a packet of {batch.source!r} has no slice column {missing[0]!r}; its reader must do so"
                )
            numbers = self._slices.of(batch.models, names, [columns[name] for name in names], self._make)
            if self._idle is None or clocks is None:
                yield from self._apply_part(batch, numbers)
            else:
                yield from self._apply_between_silences(batch, numbers, self._idle, clocks)

    def _apply_part(self, batch: EventBatch, numbers: Int64Array) -> Iterator[Rows]:
        if self._must_apply:
            yield from self._apply_now(batch, numbers)
        else:
            yield from self._take_in(numbers, batch.scores, batch.labels, batch.times)

    def _apply_between_silences(
        self, batch: EventBatch, numbers: Int64Array, idle: IdleModels, clocks: Int64Array
    ) -> Iterator[Rows]:
        """Let evaluators that were silent for long leave before their next event, and begin anew with it."""
        for part in idle.rounds(numbers, clocks):
            yield from self._leave(part.leaving, part.deadlines)
            for number, remains in idle.take_back(numbers[part.events]):
                self._place(number, ModelEvaluator.returning(self.settings.evaluator, remains, self.pane))
            if len(part.events) == len(batch):
                yield from self._apply_part(batch, numbers)
            elif len(part.events):
                yield from self._apply_part(batch.take(part.events), numbers[part.events])

    def _leave_overdue(self, clock: int) -> Iterator[Rows]:
        if self._idle is not None:
            yield from self._leave(*self._idle.overdue(clock))

    def _leave(self, numbers: Int64Array, deadlines: Int64Array) -> Iterator[Rows]:
        """Let evaluators give their last rows and go, but for their counters; the deadlines say when."""
        if not len(numbers) or self._idle is None:
            return
        yield from self._apply_pending(numbers)
        for number, deadline in zip(numbers.tolist(), deadlines.tolist(), strict=True):
            evaluator = self._evaluators.pop(number)
            self._forget_size(evaluator)
            yield evaluator.advance(deadline + 1)
            yield evaluator.finish()
            self._dues[number] = END_OF_TIME
            self._idle.note_left(number, evaluator.remains())
        self._counts["evaluators_retired"] += len(numbers)

    def _make(self, model: str, label: str) -> int:
        """Return the number of an evaluator that it makes."""
        number = self._next_number()
        self._place(number, ModelEvaluator(self.settings.evaluator, model=model, slice=label, pane=self.pane))
        return number

    def _next_number(self) -> int:
        number = self._numbered
        if number == len(self._seqs):
            more = max(64, number)
            self._seqs = np.concatenate([self._seqs, np.zeros(more, np.int64)])
            self._emptied = np.concatenate([self._emptied, np.zeros(more, np.int64)])
            self._cells = np.concatenate([self._cells, np.full(more, NO_TIME)])
            self._dues = np.concatenate([self._dues, np.full(more, END_OF_TIME)])
        self._numbered += 1
        return number

    def _place(self, number: int, evaluator: ModelEvaluator) -> None:
        """Put an evaluator where its number says."""
        self._evaluators[number] = evaluator
        self._seqs[number] = evaluator.seq
        self._emptied[number] = evaluator.seq - len(evaluator)
        self._dues[number] = evaluator.next_due
        self._note_size(evaluator)

    def _note_size(self, evaluator: ModelEvaluator) -> None:
        self._snapshot_bytes += evaluator.snapshot_bytes()
        self._live_bytes += evaluator.live_bytes()

    def _forget_size(self, evaluator: ModelEvaluator) -> None:
        self._snapshot_bytes -= evaluator.snapshot_bytes()
        self._live_bytes -= evaluator.live_bytes()

    def _take_in(
        self, numbers: Int64Array, scores: FloatArray, labels: Int8Array, times: Int64Array | None
    ) -> Iterator[Rows]:
        """Let events wait with others of their evaluators; apply them where rows are due, or many wait."""
        if not self._pending.fits(times):
            yield from self._apply_pending(None)
        starts = np.flatnonzero(np.diff(numbers, prepend=-1))  # of pieces of one evaluator's events
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
        self._snapshot_bytes += int(grown.sum()) * _bytes_per_event(times)
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
            yield from self._apply_pending(None)
            return
        due = np.zeros(len(present), np.bool_)
        for stride in self._strides:
            due |= after // stride > before // stride
        if self._grid and times is not None:
            due |= self._enters_cell(present, which, np.maximum.reduceat(times, starts))
        if due.any():
            yield from self._apply_pending(present[due])

    def _enters_cell(
        self, present: Int64Array, which: Int64Array, times: Int64Array
    ) -> npt.NDArray[np.bool_]:
        """Return which evaluators' clocks pass a grid point by times that come, `which` says whose."""
        greatest = np.full(len(present), NO_TIME)
        np.maximum.at(greatest, which, times)
        cells = -(-greatest // self._grid)
        entered = cells > self._cells[present]
        self._cells[present] = np.maximum(cells, self._cells[present])
        return entered

    @property
    def _enough(self) -> int:
        """How many events may wait: more are applied at once.

        1,024 for each evaluator make the cost around the kernels small. Beyond 2^16 events it is 32: these
        take less memory than the evaluator itself.
        """
        return max(32 * len(self._evaluators), min(1024 * len(self._evaluators), 1 << 16))

    def _apply_pending(self, numbers: Int64Array | None) -> list[Rows]:
        """Apply what waits of some evaluators; None = of all."""
        runs = self._pending.take_all() if numbers is None else self._pending.take(numbers)
        return [self._apply_run(run) for run in runs]

    def _apply_run(self, run: Run) -> Rows:
        """Apply events that were taken in: all that wait of an evaluator."""
        evaluator = self._evaluators[run.number]
        waited = len(run.scores)
        if self._limit is not None:
            came = int(self._seqs[run.number] - self._emptied[run.number])
            waited = min(came, self._limit) - len(evaluator)
        self._snapshot_bytes -= waited * _bytes_per_event(run.times)
        return self._apply_to(run.number, run.scores, run.labels, run.times)

    def _apply_to(self, number: int, *columns: Any) -> Rows:
        """Apply events to an evaluator, and count what it takes by then."""
        evaluator = self._evaluators[number]
        self._forget_size(evaluator)
        rows = evaluator.apply(*columns)
        self._note_size(evaluator)
        if self._grid:
            self._dues[number] = evaluator.next_due
        return rows

    def _apply_now(self, batch: EventBatch, numbers: Int64Array) -> Iterator[Rows]:
        """Apply events with classes or weights, or where some evaluators have them: each says if they fit."""
        yield from self._apply_pending(None)
        classes, predicted = batch.label_classes, batch.predicted
        order = np.argsort(numbers, kind="stable")
        starts = np.flatnonzero(np.diff(numbers[order], prepend=-1)).tolist()
        for start, end in zip(starts, [*starts[1:], len(order)], strict=True):
            rows = order[start:end]
            number = int(numbers[rows[0]])
            due = self._apply_to(
                number,
                batch.scores[rows],
                batch.labels[rows],
                None if batch.times is None else batch.times[rows],
                None if classes is None else TextColumn(classes.codes[rows], classes.values),
                None if predicted is None else TextColumn(predicted.codes[rows], predicted.values),
                None if batch.weights is None else batch.weights[rows],
            )
            self._seqs[number] = self._evaluators[number].seq
            yield due

    # ---- state

    def to_bytes(self) -> bytes:
        """Return a snapshot of everything that the future depends on."""
        if any(len(rows) or rows.curves for rows in self._apply_pending(None)):
            raise AssertionError("what fell due was not made when its event was taken in")
        states = [evaluator.state() for evaluator in self._evaluators.values()]
        beside = {}
        if self._deduplicator is not None:
            beside[DEDUPLICATOR] = self._deduplicator.to_bytes()
        if self._idle is not None:
            beside[IDLE] = self._idle.to_bytes(self._evaluators)
        return Snapshot(self.settings, self._order.progress(), self._order.held(), states, beside).pack()

    @classmethod
    def from_bytes(
        cls, data: bytes, settings: TableSettings, pane: tuple[int, int] | None = None
    ) -> EvaluatorTable:
        """Rebuild a table that goes on exactly as the one that gave the bytes.

        Raises OtherConfigurationError where that one had other settings, a `WireError` for other bytes.
        """
        snapshot = Snapshot.unpack(data)
        snapshot.check(settings)
        self = cls(settings, pane)
        for state in snapshot.evaluators:
            self._place(self._number_of(state), Snapshot.rebuilt(state, settings.evaluator))
            self._must_apply |= state.multiclass
        self._take_beside(snapshot.beside)
        if snapshot.progress or snapshot.held:
            try:
                self._order.go_on_from(snapshot.progress, snapshot.held)
            except (TypeError, ValueError, OverflowError, KeyError) as damage:
                raise CorruptBytesError(
                    f"the progress of a snapshot contradicts itself: {damage}"
                ) from damage
        return self

    def _number_of(self, named: EvaluatorState | Remains) -> int:
        """Return a number for what a snapshot has of a (model, slice)."""
        number = self._next_number()
        try:
            is_new = self._slices.add(named.model, named.slice, number)
        except ValueError as damage:
            raise CorruptBytesError(f"a snapshot contradicts itself: {damage}") from damage
        if not is_new:
            raise CorruptBytesError(f"a snapshot holds {named.model!r} [{named.slice}] twice")
        return number

    def _take_beside(self, beside: dict[str, bytes]) -> None:
        """Take over what a snapshot keeps beside evaluators."""
        wanted = {DEDUPLICATOR: self._deduplicator, IDLE: self._idle}
        if beside.keys() != {name for name, part in wanted.items() if part is not None}:
            raise CorruptBytesError(f"a snapshot keeps {sorted(beside)}, and its settings say otherwise")
        if self._deduplicator is not None:
            self._deduplicator = Deduplicator.from_bytes(beside[DEDUPLICATOR])
        if self._idle is not None:
            try:
                left = self._idle.read(beside[IDLE], len(self._evaluators))
            except ValueError as damage:
                raise CorruptBytesError(f"a snapshot contradicts itself: {damage}") from damage
            for remains in left:
                number = self._number_of(remains)
                self._seqs[number] = remains.seq
                self._idle.note_left(number, remains)

    def counts(self) -> dict[str, int]:
        """Return what became of events since the table was made or loaded: COUNTED.

        Tied are those whose order among each other nothing in the input says (`time_order`).
        """
        return {**self._counts, "events_in_other": self._slices.beyond}

    def snapshot_bytes(self) -> int:
        """Return about how many bytes `to_bytes` would give, in O(1)."""
        size = self._snapshot_bytes + self._order.snapshot_bytes()
        if self._deduplicator is not None:
            size += self._deduplicator.snapshot_bytes()
        if self._idle is not None:
            size += self._idle.snapshot_bytes(len(self._evaluators))
        return size

    def live_bytes(self) -> int:
        """Return about how much memory the table takes, in O(1)."""
        size = self._live_bytes + self._pending.nbytes + self._order.live_bytes()
        if self._deduplicator is not None:
            size += self._deduplicator.nbytes
        return size if self._idle is None else size + self._idle.nbytes


def _deduplicator_of(settings: TableSettings) -> Deduplicator | None:
    """Return one that forgets nothing in order of position: files of other times may still be to come."""
    if settings.deduplicate is None:
        return None
    return Deduplicator(settings.deduplicate, forgets=settings.evaluator.order != "position")


def warm_up(settings: EvaluatorSettings) -> None:
    """Compile what a table with these settings will need, or load it from the cache folder."""
    evaluator_warm_up(settings)
    pending = PendingEvents()
    pending.add(np.zeros(1, np.int64), np.zeros(1), np.zeros(1, np.int8), None)
    for _ in pending.take_all():
        pass


def _bytes_per_event(times: Int64Array | None) -> int:
    """Return how much an event that is held adds to a snapshot."""
    timed = times is not None
    return evaluator_bytes(1, 0, 2, False, timed) - evaluator_bytes(0, 0, 2, False, timed)
