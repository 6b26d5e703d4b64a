"""EvaluatorTable: the state machine of a shard.

Its input is records, its output rows; each (model, slice) has one `ModelEvaluator`.

Invariant
    Rows depend on each partition's own sequence of events. With order "position" and "time" rows depend on
    nothing else: not on how events were cut into packets, nor on the order in which packets arrive. An
    event travels once and is expanded into its slices here.

An event goes through these steps: its order (`shard.order`); the check whether its id came before
(`deduplicator`); its slices (`pool`); the check whether its models have been silent for too long (`idle`);
its evaluators.

`shard.order` decides in which order events apply. When all events have come, the clock stands at the greatest
event time of all partitions, whichever shard that event went to. Then the rows on a grid of times up to the
clock are made, and after them the last rows. In order of time a row on the grid is made as soon as the clock
has passed its grid point.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..arrays import Int64Array
from ..classes.class_settings import ClassSettings
from ..encoding.json import reading
from ..errors import CorruptBytesError
from ..evaluator.snapshot import Snapshot
from ..events.batch import EventBatch, LabelBatch
from ..events.columns import IdColumn, TextColumn
from ..events.earlier import EARLIER_LOST, earlier
from ..events.records import Record, StateMarker, unpack_record
from ..events.rejected import Rejected
from ..events.times import END_OF_TIME, NO_TIME
from ..ids.deduplicator import Deduplicator
from ..rows.rows import Rows
from ..settings.table import DEDUPLICATOR, IDLE, TableSettings
from ..shard.order import Ledger, check_joined
from ..shard.orders import order_of
from . import class_pool, pool
from .class_pool import ClassPool
from .idle import IdleModels
from .pending import PendingEvents
from .pool import EvaluatorPool
from .slices import SliceNumbers, slice_columns

COUNTED = (
    "events_applied", "events_tied", "events_in_other", "late", "duplicate", "evaluators_retired",
    EARLIER_LOST,
)  # fmt: skip
"""The names of the counts that `EvaluatorTable.counts` returns."""


class EvaluatorTable:
    """The state machine of one shard in one pane: applies records to the evaluators of its models.

    settings  the settings of the evaluators, and of the table
    pane      the start and the end of the Beam window of its rows, in microseconds UTC; None: no window
    tells     (shard, number of shards) of a table whose rows say up to which grid point they are complete
              (`Rows.settled`), even if no row falls due; None: rows do not say so

    `apply` takes packed `EventBatch`es, and at the end of the input an `EndOfInput`.

    >>> import numpy as np
    >>> from rocsteady import EventBatch, TextColumn
    >>> from rocsteady.core.events.records import EndOfInput
    >>> table = EvaluatorTable(TableSettings())
    >>> batch = EventBatch(TextColumn.of(["a", "b", "a"]), np.array([0.2, 0.9, 0.7]), np.array([0, 1, 1]))
    >>> table.apply(batch.pack())
    []
    >>> [(row.model, row.seq, row.auc) for rows in table.apply(EndOfInput().pack()) for row in rows]
    [('a', 2, 1.0), ('b', 1, None)]
    """

    def __init__(
        self,
        settings: TableSettings,
        pane: tuple[int, int] | None = None,
        *,
        tells: tuple[int, int] | None = None,
    ) -> None:
        self.settings = settings
        self.pane = pane
        self._tells = tells
        self._order = order_of(settings.evaluator.order)
        self._deduplicator = _deduplicator_of(settings)
        self._slices = SliceNumbers(settings.slice_cap)
        self._idle: IdleModels | None = None
        self._pool: EvaluatorPool | ClassPool
        if (ttl := settings.parts.get(IDLE)) is not None:
            self._idle = IdleModels(ttl, shared=settings.evaluator.order != "position")
        classes = ClassSettings.of_table(settings)
        self._pool = EvaluatorPool(settings.evaluator, pane) if classes is None else ClassPool(classes, pane)
        self._head_bytes = 0
        self._head_bytes = len(self.to_bytes()) - self.snapshot_bytes()
        self._counts = Counter(dict.fromkeys(COUNTED, 0))

    def __len__(self) -> int:
        return len(self._pool)

    def apply(self, record: bytes) -> list[Rows | Rejected]:
        """Apply one record; return the rows and curves that fell due, as one output, and the refused events.

        Raises a `WireError` for bytes that are no record, InputError for a record that contradicts earlier
        records.
        """
        return self.receive(unpack_record(record), record)

    def receive(self, content: Record, record: bytes) -> list[Rows | Rejected]:
        """Apply one record, already read as `content`; see `apply`."""
        check_joined(content)
        was_finished, tied = self._order.is_finished, self._order.tied
        since = self._settled()
        parts: list[Rows] = []
        refused: list[Rows | Rejected] = []
        for given in self._order.receive(content, record):
            if isinstance(given, Rejected):
                self._note_lost(given.kind, given.records)
                refused.append(given)
                continue
            if self._deduplicator is not None:
                given, again = self._deduplicator.sift(given)
                if len(again):
                    self._note_lost("duplicate", again.records)
                    refused.append(again)
            parts += self._apply_batch(given)
        if self._deduplicator is None:  # with deduplication only one of several tied events counts
            self._counts["events_tied"] += self._order.tied - tied
        if self._order.is_finished:
            parts += [] if was_finished else self._finish()
        else:
            parts += self._let_time_go_on()
        rows = Rows.concat(parts)
        if self._tells is not None and (until := self._settled()) > since:
            rows = replace(rows, settled=(*self._tells, since, until))
        return [rows, *refused] if len(rows) or rows.curves or rows.settled else refused

    def _note_lost(self, kind: str, records: EventBatch | LabelBatch) -> None:
        self._counts[kind] += len(records)
        self._counts[EARLIER_LOST] += earlier(records)

    def _settled(self) -> int:
        """Return the last grid point up to which all rows have been made; NO_TIME: none is known."""
        if self._order.is_finished:
            return END_OF_TIME
        clock, greatest = self._order.clock, self._order.greatest
        if not self._pool.grid or NO_TIME in (clock, greatest):
            return NO_TIME
        return (min(clock, greatest + 1) - 1) // self._pool.grid * self._pool.grid

    def _let_time_go_on(self) -> Iterator[Rows]:
        """Remove the evaluators that have been silent for too long.

        Yield the rows of the grid points that the clock has passed.
        """
        clock, greatest, idle = self._order.clock, self._order.greatest, self._idle
        if idle is not None and idle.shared:
            settled = clock if greatest == NO_TIME else min(clock, greatest)
            yield from self._leave(idle, *idle.overdue(idle.clock if clock == NO_TIME else settled))
        if self._pool.grid and NO_TIME not in (clock, greatest):
            # Time goes no further than the greatest time of an event, because heartbeats run ahead of events
            # by chance.
            yield from self._pool.advance(min(clock, greatest + 1))

    def _finish(self) -> Iterator[Rows]:
        greatest, idle = self._order.greatest, self._idle
        if idle is not None:
            yield from self._leave(idle, *idle.overdue(idle.clock if greatest == NO_TIME else greatest))
        yield from self._pool.finish(greatest)

    # ---- exports (state/export.py)

    kind = "evaluators"

    @property
    def ledger(self) -> Ledger:
        """The ledger of the packets that the partitions of the input have sent."""
        return self._order.ledger

    def waiting(self) -> dict[str, int]:
        """Return how many events wait for later records."""
        return {"events": self._order.waiting}

    def pass_on(self, marker: StateMarker) -> list[Rows | Rejected]:  # noqa: ARG002
        """Return no outputs, because no later step holds a state."""
        return []

    def wakes_at(self) -> int | None:
        """Return the moment at which the table needs a `Clock`; None if it waits for none."""
        if self._order.is_finished:
            return None
        moments = [self._order.wakes_at(), None if self._idle is None else self._idle.wakes_at()]
        return min((moment for moment in moments if moment is not None), default=None)

    # ---- evaluation

    def _apply_batch(self, batch: EventBatch) -> Iterator[Rows]:
        if not len(batch):
            return
        self._counts["events_applied"] += len(batch)
        clocks = None if self._idle is None else self._idle.clocks(batch.times)
        for names in ((), *self.settings.slices):
            numbers = self._slices.of(batch.models, names, slice_columns(batch, names), self._pool.make)
            if self._idle is None or clocks is None:
                yield from self._pool.apply(batch, numbers)
            else:
                yield from self._apply_between_silences(batch, numbers, self._idle, clocks)

    def _apply_between_silences(
        self, batch: EventBatch, numbers: Int64Array, idle: IdleModels, clocks: Int64Array
    ) -> Iterator[Rows]:
        """Apply a batch.

        An evaluator that was silent for too long leaves before its next event, and returns with an empty
        window.
        """
        for events, leaving, deadlines in idle.rounds(numbers, clocks):
            yield from self._leave(idle, leaving, deadlines)
            for number, remains in idle.take_back(numbers[events]):
                self._pool.take_back(number, remains, batch)
            if len(events) == len(batch):
                yield from self._pool.apply(batch, numbers)
            elif len(events):
                yield from self._pool.apply(batch.take(events), numbers[events])

    def _leave(self, idle: IdleModels, numbers: Int64Array, deadlines: Int64Array) -> Iterator[Rows]:
        """Let evaluators yield their last rows and leave; only their counters stay.

        `deadlines` has for each evaluator the last time at which it was not idle. Rows on a grid are made up
        to the deadline, unless `Clock` records give the time: chance then decides whether one more record
        comes before the end of the input.
        """
        if not len(numbers):
            return
        yield from self._pool.apply_pending(numbers)
        for number, deadline in zip(numbers.tolist(), deadlines.tolist(), strict=True):
            rows, remains = self._pool.let_go(number, None if self._order.clock_is_given else deadline)
            yield from rows
            idle.note_left(number, remains)
        self._counts["evaluators_retired"] += len(numbers)

    # ---- state

    def to_bytes(self) -> bytes:
        """Return a snapshot of the whole state on which later outputs depend."""
        if any(len(rows) or rows.curves for rows in self._pool.apply_pending(None)):
            raise AssertionError("what fell due was not made when its event was taken in")
        beside = {}
        if self._deduplicator is not None:
            beside[DEDUPLICATOR] = self._deduplicator.to_bytes()
        if self._idle is not None:
            beside[IDLE] = self._idle.to_bytes(self._pool.numbers)
        packed, states = self._pool.states()
        beside |= self._pool.beside()
        progress, held = self._order.progress(), self._order.held()
        return Snapshot(self.settings, progress, held, states, beside, packed).pack()

    @classmethod
    def from_bytes(
        cls,
        data: bytes,
        settings: TableSettings,
        pane: tuple[int, int] | None = None,
        *,
        tells: tuple[int, int] | None = None,
    ) -> EvaluatorTable:
        """Rebuild the table that wrote `data`; it behaves exactly as that table.

        Raises OtherConfigurationError if the earlier table had other settings, a `WireError` for other bytes.
        """
        snapshot = Snapshot.unpack(data)
        snapshot.check(settings)
        self = cls(settings, pane, tells=tells)
        self._pool.load_all(snapshot, self._number_of)
        if self._deduplicator is not None:
            self._deduplicator = Deduplicator.from_bytes(snapshot.beside[DEDUPLICATOR])
        if self._idle is not None:
            with reading("a snapshot"):
                left = self._idle.read(snapshot.beside[IDLE], len(self))
            for remains in left:
                self._idle.note_left(self._number_of(remains.model, remains.slice), remains)
        if snapshot.progress or snapshot.held:
            with reading("the progress of a snapshot"):
                self._order.go_on_from(snapshot.progress, snapshot.held)
        return self

    def _number_of(self, model: str, label: str) -> int:
        """Return a new number for the (model, slice) of an evaluator or of its remains in a snapshot."""
        number = self._pool.next_number()
        with reading("a snapshot"):
            is_new = self._slices.add(model, label, number)
        if not is_new:
            raise CorruptBytesError(f"a snapshot holds {model!r} [{label}] twice")
        return number

    def counts(self) -> dict[str, int]:
        """Return how many events had each fate since the table was made or loaded, by the names in `COUNTED`.

        Events are tied if the input does not say which of them is first (`shard.orders`).
        """
        return {**self._counts, "events_in_other": self._slices.beyond}

    def gauges(self) -> dict[str, int]:
        """Return how many models and slices are in memory."""
        return {"evaluators": len(self)}

    def snapshot_bytes(self) -> int:
        """Return about how many bytes `to_bytes` would give, in O(1)."""
        size = self._head_bytes + self._pool.snapshot_bytes + self._order.snapshot_bytes()
        if self._deduplicator is not None:
            size += self._deduplicator.snapshot_bytes()
        if self._idle is not None:
            size += self._idle.snapshot_bytes(len(self._pool))
        return size

    def live_bytes(self) -> int:
        """Return about how much memory the table takes, in O(1)."""
        size = self._pool.live_bytes + self._order.live_bytes()
        if self._deduplicator is not None:
            size += self._deduplicator.nbytes
        return size if self._idle is None else size + self._idle.nbytes


def _deduplicator_of(settings: TableSettings) -> Deduplicator | None:
    """Return the deduplicator of a table, None if the settings ask for none.

    In order of position it forgets no id: events of any earlier time may still come.
    """
    horizon = settings.parts.get(DEDUPLICATOR)
    if horizon is None:
        return None
    return Deduplicator(horizon, forgets=settings.evaluator.order != "position")


def warm_up(settings: TableSettings, *, largest_first: bool = False) -> None:
    """Compile the kernels that a table with these settings needs, or load them from the cache folder."""
    if (classes := ClassSettings.of_table(settings)) is not None:
        class_pool.warm_up(classes)
    else:
        pool.warm_up(settings.evaluator, largest_first=largest_first)
    first = np.zeros(1, np.int64)
    if (deduplicator := _deduplicator_of(settings)) is not None:
        deduplicator.judge(TextColumn.of(["m"]), IdColumn.of(["i"]), first)
    if (ttl := settings.parts.get(IDLE)) is not None:
        IdleModels(ttl, shared=True).rounds(first, first)
    pending = PendingEvents()
    pending.add(np.zeros(1, np.int64), np.zeros(1), np.zeros(1, np.int8), None)
    for _ in pending.pop_all():
        pass
