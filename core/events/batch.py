"""EventBatch: the columns of many events, and their one packed form on the wire.

The element between transforms is a batch, never an event: a Python Beam pipeline moves a few hundred
thousand elements a second and more than ten million events in batches.

Invariants
    All columns have the same number of rows. Text is dictionary-encoded (`TextColumn`), ids are raw
    UTF-8 (`IdColumn`), times are microseconds since 1970-01-01 UTC. A column that the source does not
    have is None and takes no bytes. `unpack(batch.pack())` equals the batch; any other bytes raise a
    `WireError` that says what was found. The wire form is that of `wire`, magic "RSEB".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ..arrays import FloatArray, Int8Array, Int64Array
from ..errors import InputError
from .columns import ColumnBatch, IdColumn, TextColumn
from .times import NO_TIME
from .wire import COLUMNS, NAMED, UNORDERED, Packet, read_batch, tagged_columns, write_batch

POSITIVE, NEGATIVE, NO_CLASS = 1, 0, -1
"""Values of `labels`. NO_CLASS: the label is a class, and the positive class is not named."""

MAGIC = b"RSEB"


@dataclass(frozen=True, eq=False, kw_only=True)
class PacketBatch(ColumnBatch):
    """Base of the batches of events and of labels, which are packets of their source; see `EventBatch`.

    magic, what  the first bytes of the wire form, and its name in an error
    """

    magic, what = b"", ""

    positions: Int64Array | None = None
    sources: TextColumn | None = None
    source: str = ""
    partition: int = 0
    first_position: int = -1
    high_water: int = NO_TIME
    sequence: int = UNORDERED

    def _check_rows(self, of: str, one: str) -> None:
        """Convert numbers to their types on the wire. Raises InputError for columns of unequal length."""
        for tag, (name, kind) in COLUMNS.items():
            numbers = None if kind in (TextColumn, IdColumn) or tag in NAMED else getattr(self, name, None)
            if numbers is not None:
                object.__setattr__(self, name, np.ascontiguousarray(numbers, np.dtype(kind)))
        for name, _, column in tagged_columns(self):
            if len(column) != len(self):
                raise InputError(
                    f"the column {name!r} of {self.what} has {len(column)} rows and the {of} {len(self)}; "
                    f"every column needs one value per {one}"
                )

    def pack(self) -> bytes:
        """Return the wire form: about 10 bytes an event without ids, times, weights and slices."""
        return write_batch(self.magic, self.packet(), len(self), tagged_columns(self))

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        """Read the wire form. Raises one of the four `WireError`s for any other bytes."""
        return read_batch(data, cls.magic, cls.what, cls.of_fields)

    @classmethod
    def of_fields(cls, fields: dict[str, Any], rows: int) -> Self:
        """Make a batch of the fields that `read_batch` has read.

        Raises ValueError for values that validation never lets pass: kernels rely on the validation.
        """
        raise NotImplementedError

    def packet(self) -> Packet:
        """Return the batch's head as a packet of its source: partition, sequence, position and high water."""
        return Packet(self.source, self.partition, self.sequence, self.first_position, self.high_water)

    def event_sources(self) -> TextColumn:
        """Return the source of every row."""
        if self.sources is not None:
            return self.sources
        return TextColumn.repeated(self.source, len(self))


@dataclass(frozen=True, eq=False)
class EventBatch(PacketBatch):
    """Columns of n events that went through validation.

    models         text; never missing.
    scores         float64, finite; higher means more likely positive.
    labels         int8: POSITIVE, NEGATIVE, or NO_CLASS (a class, with no positive class named).
    times          int64 microseconds UTC, or None: the source has no times.
    ids            the id of every event, or None: the source has no ids.
    weights        float64 > 0, or None: all are 1.
    label_classes  the label as a class, or None; given if and only if `predicted` is.
    predicted      the predicted class, or None.
    slices         (column name, text) of every slice column, or of every text feature; code -1 = missing.
    features       (column name, float64) of every number feature, NaN = missing. Instances, which a learner
                   has still to score, have features, and scores without meaning.
    positions      int64 ordinal of every event in its source, -1 = unknown, which identifies an event that is
                   refused later on; None: positions are not needed.
    sources        the source of every event, if the events come from several sources.
    source         name of the partition that the events come from (a file, a topic's partition).
    partition      place of that partition in the order of all partitions of the input, from 0.
    first_position position of the first event in the source; -1 = unknown
    high_water     the greatest event time of the partition so far; NO_TIME = none.
    sequence       the place of this packet among those of its source for its shard, or UNORDERED.
    """

    magic, what = MAGIC, "an event batch"

    models: TextColumn
    scores: FloatArray
    labels: Int8Array
    times: Int64Array | None = None
    ids: IdColumn | None = None
    weights: FloatArray | None = None
    label_classes: TextColumn | None = None
    predicted: TextColumn | None = None
    slices: tuple[tuple[str, TextColumn], ...] = ()
    features: tuple[tuple[str, FloatArray], ...] = ()

    def __post_init__(self) -> None:
        self._check_rows("models", "event")
        if (self.label_classes is None) != (self.predicted is None):
            raise InputError("an event batch has predicted classes exactly when it has label classes")

    def __len__(self) -> int:
        return len(self.models)

    @classmethod
    def concat(cls, batches: Sequence[EventBatch]) -> EventBatch:
        """Concatenate batches with the same columns; source and packet are those of the first batch.

        `batches` must not be empty. If they have positions and differ in source, the result has `sources`.
        """
        first = batches[0]
        if len(batches) == 1:
            return first

        sources = None
        several = len({batch.source for batch in batches}) > 1
        several = several or any(batch.sources is not None for batch in batches)
        if several and first.positions is not None:
            sources = TextColumn.concat([batch.event_sources() for batch in batches])
        return cls._joined(batches, sources=sources, source=first.source)

    @classmethod
    def of_fields(cls, fields: dict[str, Any], rows: int) -> Self:
        """See `PacketBatch`."""
        if missing := {"models", "scores", "labels"} - fields.keys():
            raise ValueError(f"no column {', '.join(sorted(missing))}")
        batch = cls(**fields)
        if len(batch) != rows:
            raise ValueError(f"{len(batch)} events where the head says {rows}")
        least = NEGATIVE if batch.label_classes is None else NO_CLASS
        if not ((batch.labels >= least) & (batch.labels <= POSITIVE)).all():
            raise ValueError("a label is neither positive nor negative")
        if not np.isfinite(batch.scores).all():
            raise ValueError("a score is not finite")
        if batch.weights is not None and not ((batch.weights > 0) & np.isfinite(batch.weights)).all():
            raise ValueError("a weight is not a number above 0")
        for tag, (name, kind) in COLUMNS.items():
            column = getattr(batch, name) if kind is TextColumn and tag not in NAMED else None
            if column is not None and (column.codes < 0).any():
                raise ValueError(f"a value of {name} (column {tag}) is missing")
        return batch
