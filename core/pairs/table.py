"""PairTable: the state machine of a shard that compares models with one other model.

Its input is records, its output rows of pairs.

Invariant
    Rows depend on each partition's own sequence of events, as the rows of `EvaluatorTable` do, and on nothing
    else: in order of "position" and of "time" neither on packets nor on the order in which they arrive.

An event goes through these steps: its order (`shard.order`), its partner (`matching`), its slices, its pair
(`window`). A shard gets the events of its models, and all events of the champion (`ids.sharding`).

Snapshot, version 1: a frame (encoding/fields.py) with magic "RSPT". Payload: settings and the progress of
the order (texts), packets that wait (u32; partition and sequence i64, bytes each), the matcher, then pairs
(u32): model, champion and slice (texts) and the wire form of `PairWindow`.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..encoding.fields import HEAD_BYTES, Reader, framed, packed_bytes, packed_text, unframed
from ..encoding.json import read_object, reading
from ..errors import ConfigError, InputError, check_settings
from ..events.batch import EventBatch
from ..events.records import unpack_record
from ..events.rejected import Rejected
from ..events.times import NO_TIME
from ..rows.pairs import PairRow
from ..settings.against import Against
from ..settings.orders import checked_order
from ..settings.table import checked_slices
from ..shard.order import check_joined
from ..shard.orders import order_of
from ..table.slices import SliceNumbers, slice_columns
from .instances import Instances
from .matching import Matcher
from .pair_settings import PairSettings
from .window import PairWindow

MAGIC = b"RSPT"
VERSION = 1
COUNTED = ("pairs_compared", "pairs_repeated", "pairs_contradicted")
"""The names of the counts that `PairTable.counts` returns."""

_PLACE = struct.Struct("<2q")


@dataclass(frozen=True)
class PairTableSettings:
    """The settings of a shard's comparisons.

    pairs      how two models are compared
    against    the champion, and the rule by which events belong to one instance
    slices     the slices, each a tuple of columns; all instances always have rows
    slice_cap  see `TableSettings`
    order      how events are ordered; see `EvaluatorSettings`
    """

    against: Against
    pairs: PairSettings = field(default_factory=PairSettings)
    slices: tuple[tuple[str, ...], ...] = ()
    slice_cap: int = 10_000
    order: str = "arrival"

    def __post_init__(self) -> None:
        object.__setattr__(self, "slices", checked_slices(self.slices))
        object.__setattr__(self, "order", checked_order(self.order))
        if self.against.within is not None and self.order == "position":
            raise ConfigError("order='position' has no times, so events wait for partners to the end")

    def meaning(self) -> dict[str, Any]:
        """Return, by name, the settings that decide the meaning of a state."""
        return {
            **self.pairs.meaning(),
            "champion": self.against.champion,
            "columns": list(self.against.columns),
            "by_record": self.against.by_record,
            "within": self.against.within,
            "slices": [list(names) for names in self.slices],
            "slice_cap": self.slice_cap,
            "order": self.order,
        }


class PairTable:
    """The state machine of one shard in one pane; see the module.

    settings  the settings of the comparisons
    pane      the start and the end of the Beam window of its rows, in microseconds UTC; None: no window
    """

    def __init__(self, settings: PairTableSettings, pane: tuple[int, int] | None = None) -> None:
        self.settings = settings
        self._pane = pane
        self._order = order_of(settings.order)
        self._matcher = Matcher(settings.against)
        self._slices = SliceNumbers(settings.slice_cap)
        self._columns = tuple(dict.fromkeys(name for names in settings.slices for name in names))
        self._windows: list[PairWindow] = []
        self._compared = 0

    def __len__(self) -> int:
        return len(self._windows)

    def apply(self, record: bytes) -> list[PairRow | Rejected]:
        """Apply one record; return the rows that fell due, and the refused events.

        Raises a `WireError` for bytes that are no record, InputError for a record that contradicts earlier
        records.
        """
        content = unpack_record(record)
        check_joined(content)
        was_finished = self._order.is_finished
        outputs: list[PairRow | Rejected] = []
        for given in self._order.receive(content, record):
            if isinstance(given, Rejected):
                outputs.append(given)
            else:
                outputs += self._apply_batch(given)
        if not self._order.is_finished:
            outputs += self._let_time_go_on()
        elif not was_finished:
            outputs += self._finish()
        return outputs

    def _apply_batch(self, batch: EventBatch) -> Iterator[PairRow]:
        if not len(batch):
            return
        if batch.weights is not None:
            raise InputError("events have weights, and pairs of models are compared with equal weights alone")
        columns = slice_columns(batch, self._columns)
        batch = replace(batch, slices=tuple(zip(self._columns, columns, strict=True)))
        yield from self._compare(self._matcher.match(batch))

    def _compare(self, found: Instances) -> Iterator[PairRow]:
        """Give instances to the windows of their pairs, as a whole and by slice.

        Yield the rows that fall due.
        """
        if not len(found):
            return
        pairs = found.pairs
        if pairs.times is not None and (pairs.times == NO_TIME).all():
            pairs = pairs._replace(times=None)
        self._compared += int(np.count_nonzero(~np.isnan(pairs.scores) & ~np.isnan(pairs.against)))

        def make(model: str, slice_: str) -> int:
            champion = self._matcher.champion_of(model)
            self._windows.append(PairWindow(self.settings.pairs, model, champion, slice_, self._pane))
            return len(self._windows) - 1

        columns = dict(zip(self._columns, found.slices, strict=True))
        for names in ((), *self.settings.slices):
            window_of = self._slices.of(found.models, names, [columns[name] for name in names], make)
            order = np.argsort(window_of, kind="stable")
            starts = np.flatnonzero(np.diff(window_of[order], prepend=-1))
            for rows in np.split(order, starts[1:]):
                yield from self._windows[int(window_of[rows[0]])].apply(pairs.part(rows))

    def _let_time_go_on(self) -> Iterator[PairRow]:
        """Give up waiting for partners that cannot come any more.

        Yield the rows of the grid points that the clock has passed.
        """
        clock, greatest = self._order.clock, self._order.greatest
        if NO_TIME in (clock, greatest) or not self.settings.pairs.every.micros:
            return
        # Time goes no further than the greatest time of an event, because heartbeats run ahead of events by
        # chance.
        moment = min(clock, greatest + 1)
        yield from self._compare(self._matcher.go_on_to(moment))
        for window in self._windows:
            if window.next_due < moment:
                yield from window.advance_to(moment)

    def _finish(self) -> Iterator[PairRow]:
        yield from self._compare(self._matcher.finish())
        greatest = self._order.greatest
        for window in self._windows:
            if greatest != NO_TIME:
                yield from window.advance_to(greatest + 1)
            yield from window.finish()

    def wakes_at(self) -> int | None:
        """Return the moment at which the table needs a `Clock`; None if it waits for none."""
        return None if self._order.is_finished else self._order.wakes_at()

    # ---- state

    def counts(self) -> dict[str, int]:
        """Return counts since the table was made or loaded.

        pairs_compared      instances of a model and the champion with both scores
        pairs_repeated      second events of a model with one id, which did not count
        pairs_contradicted  instances whose two events have different labels
        """
        matcher = self._matcher
        return dict(zip(COUNTED, (self._compared, matcher.repeated, matcher.contradicted), strict=True))

    def gauges(self) -> dict[str, int]:
        """Return how many pairs of models, with their slices, are in memory."""
        return {"pairs": len(self)}

    def snapshot_bytes(self) -> int:
        """Return about the length of `to_bytes()`. O(pairs)."""
        windows = sum(window.wire_bytes + 60 for window in self._windows)
        return HEAD_BYTES + 600 + windows + self._order.snapshot_bytes() + self._matcher.wire_bytes

    def live_bytes(self) -> int:
        """Return about how much memory the table takes. O(pairs)."""
        windows = sum(window.wire_bytes + 3_000 for window in self._windows)
        return 5_000 + windows + self._order.live_bytes() + 5 * self._matcher.wire_bytes

    def to_bytes(self) -> bytes:
        """Return a snapshot. A table loaded from the snapshot gives the same later rows. O(state)."""
        held = self._order.held()
        parts = [
            packed_text(json.dumps(self.settings.meaning(), sort_keys=True)),
            packed_text(json.dumps(self._order.progress())),
            struct.pack("<I", len(held)),
        ]
        for *place, packet in held:
            parts += [_PLACE.pack(*place), packed_bytes(packet)]
        parts += self._matcher.pack()
        parts.append(struct.pack("<I", len(self._windows)))
        for window in self._windows:
            parts += [*map(packed_text, window.names), *window.pack()]
        return framed(MAGIC, VERSION, b"".join(parts))

    @classmethod
    def from_bytes(
        cls, data: bytes, settings: PairTableSettings, pane: tuple[int, int] | None = None
    ) -> PairTable:
        """Read a snapshot. The result applies later records as the table that wrote the snapshot does.

        Raises OtherConfigurationError if the earlier table had other settings, a `WireError` for other bytes.
        """
        reader = Reader(unframed(data, MAGIC, VERSION, "a snapshot of pairs"))
        with reading("a snapshot of pairs"):
            stored = read_object(reader.text(), "the settings of a snapshot of pairs")
            check_settings(settings.meaning(), stored)
            self = cls(settings, pane)
            progress = read_object(reader.text(), "the progress of a snapshot of pairs")
            held = [(*reader.numbers(_PLACE.format), reader.sized()) for _ in range(reader.number("<I"))]
            self._matcher = Matcher.read(reader, settings.against)
            for _ in range(reader.number("<I")):
                self._read_window(reader)
            reader.end()
            if progress or held:
                self._order.go_on_from(progress, held)
        return self

    def _read_window(self, reader: Reader) -> None:
        model, champion, slice_ = reader.text(), reader.text(), reader.text()
        window = PairWindow(self.settings.pairs, model, champion, slice_, self._pane)
        if not self._slices.add(model, slice_, len(self._windows)):
            raise ValueError(f"{model!r} [{slice_}] is there twice")
        window.read(reader)
        self._windows.append(window)
