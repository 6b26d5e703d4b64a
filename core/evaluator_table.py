"""EvaluatorTable: the state machine of a shard. Records in, rows out; (model, slice) -> ModelEvaluator.

What it keeps true
    Rows depend on each partition's own sequence of events, and with order "position" and "time" on
    nothing else: not on how events were cut into packets, nor on the order in which packets arrive.
    An event travels once and is expanded into its slices here.

Order (ARCHITECTURE, "Order, lateness")
    arrival   packets apply as they come; EndOfInput gives the last rows.
    position  partition after partition, packet after packet by number; what comes early is held. The end
              of the last partition gives the last rows.
    time      everything is held until every partition has ended, then sorted by (time, id, a hash of the
              record) and applied: the total sort of a bounded input (time_order.py).

A packet that comes a second time (a source that repeats itself) is dropped by its number.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import CorruptBytesError, InputError
from .evaluator_state import evaluator_bytes
from .events import NO_TIME, EventBatch, FloatArray, Int8Array, Int64Array, TextColumn
from .model_evaluator import ModelEvaluator
from .model_evaluator import warm_up as evaluator_warm_up
from .pending_events import PendingEvents, Run
from .ranking import size_of
from .records import EndOfInput, EndOfPartition, unpack_record
from .rows import Rows
from .settings import EvaluatorSettings, TableSettings, escape_slice
from .snapshot import Snapshot
from .time_order import in_time_order
from .windows import EveryEvents

_GROUPS = 1 << 62  # numbers of groups stay below
_MANY = 512
"""Events of an evaluator that need not wait for more: what is around the kernels costs a tenth of them."""


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
        self._order = settings.evaluator.order
        self._limit = size_of(settings.evaluator)
        every = settings.evaluator.every
        self._grid = 0 if isinstance(every, EveryEvents) else every.micros
        emissions = (settings.evaluator.every, settings.evaluator.curves)
        self._strides = [each.n for each in emissions if isinstance(each, EveryEvents)]
        self._evaluators: list[ModelEvaluator] = []
        self._numbers: dict[tuple[str, str], int] = {}
        self._seen: dict[tuple[str, ...], dict[tuple[str, ...], int]] = {}
        self._seqs = np.zeros(0, np.int64)
        self._cells = np.zeros(0, np.int64)
        self._pending = PendingEvents()
        self._must_apply = False  # no event may wait: some have classes or weights
        self._turn = 0
        self._expected = 0
        self._partitions: int | None = None
        self._ends: dict[int, tuple[int, str]] = {}
        self._held: dict[tuple[int, int], bytes] = {}
        self._live_bytes = 0
        self._snapshot_bytes = len(self.to_bytes())
        self._applied = 0
        self._tied = 0

    def __len__(self) -> int:
        return len(self._evaluators)

    def apply(self, record: bytes) -> list[Rows]:
        """Apply one record; return the rows and curves that fell due, if any, in one piece.

        Raises a `WireError` for bytes that are no record, InputError for a record that contradicts what
        came before.
        """
        content = unpack_record(record)
        if isinstance(content, EndOfInput):
            parts = self._end_input()
        elif self._order == "arrival":
            parts = self._apply_batch(content) if isinstance(content, EventBatch) else iter(())
        else:
            parts = self._apply_in_order(content, record)
        rows = Rows.concat(list(parts))
        return [rows] if len(rows) or rows.curves else []

    # ---- order

    def _apply_in_order(self, content: EventBatch | EndOfPartition, record: bytes) -> Iterator[Rows]:
        self._check_place(content)
        if isinstance(content, EventBatch):
            key = (content.partition, content.sequence)
            if self._order == "position" and key == (self._turn, self._expected):
                yield from self._apply_batch(content)
                self._expected += 1
            elif key >= (self._turn, self._expected) and key not in self._held:
                self._held[key] = record
                self._snapshot_bytes += len(record) + 16
                self._live_bytes += len(record) + 200
        yield from self._apply_held()

    def _check_place(self, content: EventBatch | EndOfPartition) -> None:
        """Note the end of a partition; refuse what contradicts what was said before."""
        if isinstance(content, EndOfPartition):
            end = (content.packets, content.source)
            if (
                self._ends.get(content.partition, end) != end
                or self._partitions not in (None, content.partitions)
                or content.partition >= content.partitions
            ):
                raise InputError(
                    f"the end of partition {content.source!r} contradicts what was said before: number "
                    f"{content.partition} of {content.partitions}, {content.packets} packets; end each once"
                )
            if content.partition not in self._ends:
                self._snapshot_bytes += _bytes_of_end(content.partition, end)
            self._ends[content.partition] = end
            self._partitions = content.partitions
            return
        if content.sequence < 0 or content.partition < 0:
            raise InputError(
                f"a packet of {content.source!r} has no number, and order {self._order!r} needs one; number "
                "the packets of a partition from 0, or evaluate in order of arrival"
            )
        if self._partitions is not None and content.partition >= self._partitions:
            raise InputError(
                f"a packet of {content.source!r} is of partition {content.partition}, and the input has "
                f"{self._partitions}; number partitions from 0, and say how many there are in every end"
            )
        if content.sequence >= self._ends.get(content.partition, (content.sequence + 1, ""))[0]:
            raise InputError(
                f"packet {content.sequence} of {content.source!r} comes although the partition ended before "
                "it; its end must count every packet"
            )

    def _unhold(self, key: tuple[int, int]) -> EventBatch:
        record = self._held.pop(key)
        self._snapshot_bytes -= len(record) + 16
        self._live_bytes -= len(record) + 200
        return EventBatch.unpack(record)

    def _apply_held(self) -> Iterator[Rows]:
        if self._order == "time":
            if self._is_whole():
                batches = [self._unhold(key) for key in sorted(self._held)]
                self._turn, self._expected = self._partitions or 0, 0
                if batches:
                    events, tied = in_time_order(batches)
                    self._tied += tied
                    yield from self._apply_batch(events)
                yield from self._finish()
            return
        while True:
            while (self._turn, self._expected) in self._held:
                yield from self._apply_batch(self._unhold((self._turn, self._expected)))
                self._expected += 1
            if self._ends.get(self._turn, (-1, ""))[0] != self._expected:
                return
            self._turn, self._expected = self._turn + 1, 0
            if self._turn == self._partitions:
                yield from self._finish()
                return

    def _is_whole(self) -> bool:
        """Return whether every partition has ended and all of its packets are here, for the first time."""
        return (
            self._turn != self._partitions
            and self._partitions == len(self._ends)
            and sum(packets for packets, _ in self._ends.values()) == len(self._held)
            and all(sequence < self._ends.get(partition, (0, ""))[0] for partition, sequence in self._held)
        )

    def _end_input(self) -> Iterator[Rows]:
        if self._order != "arrival":
            if self._turn == self._partitions and not self._held:
                return  # the last partition's end gave the last rows
            if self._held or self._ends or self._evaluators:
                known = self._ends.get(self._turn)
                name = (
                    f"{known[1]!r} ({self._expected} of {known[0]} packets)"
                    if known
                    else f"number {self._turn}"
                )
                raise InputError(
                    f"the input ended while events of partition {name} were missing: packets were lost on "
                    "the way, and rows without them would be wrong"
                )
        yield from self._finish()

    def _finish(self) -> Iterator[Rows]:
        yield from self._apply_pending(None)
        for evaluator in sorted(self._evaluators, key=lambda each: (each.model, each.slice)):
            yield evaluator.finish()

    # ---- evaluation

    def _apply_batch(self, batch: EventBatch) -> Iterator[Rows]:
        if not len(batch):
            return
        self._applied += len(batch)
        self._must_apply |= batch.label_classes is not None or batch.weights is not None
        columns = dict(batch.slices)
        for names in ((), *self.settings.slices):
            if missing := [name for name in names if name not in columns]:
                raise InputError(
                    f"a packet of {batch.source!r} has no slice column {missing[0]!r}; its reader must do so"
                )
            numbers = self._numbers_of(batch.models, names, [columns[name] for name in names])
            if self._must_apply:
                yield from self._apply_now(batch, numbers)
            else:
                yield from self._take_in(numbers, batch.scores, batch.labels, batch.times)

    def _numbers_of(
        self, models: TextColumn, names: tuple[str, ...], columns: list[TextColumn]
    ) -> Int64Array:
        """Return the number of every event's evaluator; evaluators are made as they first occur."""
        seen = self._seen.setdefault(names, {})
        if not columns:  # its dictionary is what was to be sorted out
            found = np.array([seen.get((model,), -1) for model in models.values], np.int64)
            numbers = found[models.codes]
            if numbers.min() >= 0:
                return numbers
        group = _codes_of_texts(models)
        for column in columns:
            if int(group.max(initial=0)) > _GROUPS // (len(column.values) + 1):
                group = np.unique(group, return_inverse=True)[1].astype(np.int64)
            group = group * (len(column.values) + 1) + _codes_of_texts(column)
        _, first, which = np.unique(group, return_index=True, return_inverse=True)
        numbers = np.empty(len(first), np.int64)
        for place, row in enumerate(first.tolist()):
            texts = tuple(column[row] or "" for column in (models, *columns))
            number = seen.get(texts)
            if number is None:
                number = seen[texts] = self._number_of(names, *texts)
            numbers[place] = number
        return numbers[which]

    def _number_of(self, names: tuple[str, ...], model: str, *values: str) -> int:
        """Return the number of an evaluator, which is made if there is none."""
        label = ",".join(
            f"{escape_slice(name)}={escape_slice(value)}" for name, value in zip(names, values, strict=True)
        )
        number = self._numbers.get((model, label))
        if number is None:
            settings = self.settings.evaluator
            number = self._add(ModelEvaluator(settings, model=model, slice=label, pane=self.pane))
        return number

    def _add(self, evaluator: ModelEvaluator) -> int:
        """Give an evaluator its number."""
        number = self._numbers[evaluator.model, evaluator.slice] = len(self._evaluators)
        self._evaluators.append(evaluator)
        if number == len(self._seqs):
            self._seqs = np.concatenate([self._seqs, np.zeros(max(64, number), np.int64)])
            self._cells = np.concatenate([self._cells, np.full(max(64, number), NO_TIME)])
        self._seqs[number] = evaluator.seq
        self._snapshot_bytes += evaluator.snapshot_bytes()
        self._live_bytes += evaluator.live_bytes()
        return number

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
            grown = np.minimum(after, self._limit) - np.minimum(before, self._limit)
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
            waited = min(int(self._seqs[run.number]), self._limit) - len(evaluator)
        self._snapshot_bytes -= waited * _bytes_per_event(run.times)
        return self._apply_to(evaluator, run.scores, run.labels, run.times)

    def _apply_to(self, evaluator: ModelEvaluator, *columns: Any) -> Rows:
        """Apply events to an evaluator, and count what it takes by then."""
        self._snapshot_bytes -= evaluator.snapshot_bytes()
        self._live_bytes -= evaluator.live_bytes()
        rows = evaluator.apply(*columns)
        self._snapshot_bytes += evaluator.snapshot_bytes()
        self._live_bytes += evaluator.live_bytes()
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
            evaluator = self._evaluators[number]
            due = self._apply_to(
                evaluator,
                batch.scores[rows],
                batch.labels[rows],
                None if batch.times is None else batch.times[rows],
                None if classes is None else TextColumn(classes.codes[rows], classes.values),
                None if predicted is None else TextColumn(predicted.codes[rows], predicted.values),
                None if batch.weights is None else batch.weights[rows],
            )
            self._seqs[number] = evaluator.seq
            yield due

    # ---- state

    def _progress(self) -> dict[str, Any]:
        if self._order == "arrival":
            return {}
        return {
            "turn": self._turn,
            "expected": self._expected,
            "partitions": self._partitions,
            "ends": [[partition, *end] for partition, end in sorted(self._ends.items())],
        }

    def to_bytes(self) -> bytes:
        """Return a snapshot of everything that the future depends on."""
        held = [(*key, record) for key, record in sorted(self._held.items())]
        if any(len(rows) or rows.curves for rows in self._apply_pending(None)):
            raise AssertionError("what fell due was not made when its event was taken in")
        states = [evaluator.state() for evaluator in self._evaluators]
        return Snapshot(self.settings, self._progress(), held, states).pack()

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
            evaluator = Snapshot.rebuilt(state, settings.evaluator)
            if (state.model, state.slice) in self._numbers:
                raise CorruptBytesError(f"a snapshot holds {state.model!r} [{state.slice}] twice")
            self._add(evaluator)
            self._must_apply |= state.multiclass
        for partition, sequence, record in snapshot.held:
            self._held[partition, sequence] = record
            self._snapshot_bytes += len(record) + 16
            self._live_bytes += len(record) + 200
        if snapshot.progress:
            try:
                self._go_on_from(**snapshot.progress)
            except (TypeError, ValueError, OverflowError) as damage:
                raise CorruptBytesError(
                    f"the progress of a snapshot contradicts itself: {damage}"
                ) from damage
        return self

    def _go_on_from(self, turn: int, expected: int, partitions: int | None, ends: list[Any]) -> None:
        self._turn, self._expected = int(turn), int(expected)
        self._partitions = None if partitions is None else int(partitions)
        self._ends = {int(partition): (int(packets), str(source)) for partition, packets, source in ends}
        if min(self._turn, self._expected) < 0 or (self._partitions or 0) < 0:
            raise ValueError("a number below 0")
        self._snapshot_bytes += sum(_bytes_of_end(*item) for item in self._ends.items())

    def counts(self) -> dict[str, int]:
        """Return how many events were applied since the table was made or loaded, and how many are tied.

        Tied are those whose order among each other nothing in the input says (`time_order`).
        """
        return {"events_applied": self._applied, "events_tied": self._tied}

    def snapshot_bytes(self) -> int:
        """Return about how many bytes `to_bytes` would give, in O(1)."""
        return self._snapshot_bytes

    def live_bytes(self) -> int:
        """Return about how much memory the table takes, in O(1)."""
        return self._live_bytes + self._pending.nbytes


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


def _bytes_of_end(partition: int, end: tuple[int, str]) -> int:
    return len(json.dumps([partition, *end])) + 2  # a comma and a space between two


def _codes_of_texts(column: TextColumn) -> Int64Array:
    """Return codes that are equal where the texts are, from 0: a missing text is the empty one."""
    first = {"": 0}
    table = [first.setdefault(text, entry) for entry, text in enumerate(column.values, 1)]
    return np.array([*table, 0], np.int64)[column.codes]
