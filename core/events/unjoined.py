"""The input of a label join: predictions, which have no labels yet, and labels, which have no scores.

Both are sent, like events, as packets of their sources in the wire form of `wire`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ..arrays import Int8Array, Int64Array
from ..errors import InputError
from .batch import NEGATIVE, NO_CLASS, POSITIVE, EventBatch, PacketBatch
from .columns import IdColumn, TextColumn
from .wire import Packet, read_batch, tagged_columns, write_batch

_NOT_SENT = ("labels", "label_classes")


@dataclass(frozen=True, eq=False)
class PredictionBatch:
    """Predictions, held as events whose labels have no meaning. Every prediction has an id and a time.

    `events.labels` is NEGATIVE in every row. With predicted classes, `label_classes` is an empty text in
    every row. Neither column takes bytes on the wire.
    """

    events: EventBatch

    magic = b"RSPB"

    @classmethod
    def of(cls, **columns: Any) -> PredictionBatch:
        """Make a batch of the columns of an `EventBatch`, given without labels."""
        rows = len(columns["models"])
        if columns.get("predicted") is not None:
            columns["label_classes"] = TextColumn.repeated("", rows)
        return cls(EventBatch(labels=np.full(rows, NEGATIVE, np.int8), **columns))

    def __post_init__(self) -> None:
        if self.events.ids is None or self.events.times is None:
            raise InputError("a batch of predictions has ids and times; a label finds them by these")

    def __len__(self) -> int:
        return len(self.events)

    @property
    def times(self) -> Int64Array | None:
        """Times at which the predictions were made, int64 microseconds UTC."""
        return self.events.times

    def take(self, rows: Int64Array) -> PredictionBatch:
        """Return the chosen rows, in the order given."""
        return PredictionBatch(self.events.take(rows))

    def part(self, start: int, end: int) -> PredictionBatch:
        """Return the predictions [start, end)."""
        return PredictionBatch(self.events.part(start, end))

    def packet(self) -> Packet:
        """Return what the batch is as a packet of its source."""
        return self.events.packet()

    def pack(self) -> bytes:
        """Return the wire form."""
        columns = (each for each in tagged_columns(self.events) if each[0] not in _NOT_SENT)
        return write_batch(self.magic, self.packet(), len(self), columns)

    @classmethod
    def unpack(cls, data: bytes) -> PredictionBatch:
        """Read the wire form. Raises one of the four `WireError`s where the bytes are anything else."""
        return read_batch(data, cls.magic, "a batch of predictions", cls._of_fields)

    @classmethod
    def _of_fields(cls, fields: dict[str, Any], rows: int) -> PredictionBatch:
        if unknown := set(_NOT_SENT) & fields.keys():
            raise ValueError(f"it has a column {', '.join(sorted(unknown))}")
        fields["labels"] = np.full(rows, NEGATIVE, np.int8)
        if "predicted" in fields:
            fields["label_classes"] = TextColumn.repeated("", rows)
        return cls(EventBatch.of_fields(fields, rows))


@dataclass(frozen=True, eq=False)
class LabelBatch(PacketBatch):
    """Columns of n labels. A label has no model: it serves every prediction of its id.

    ids            n ids, none of them missing
    times          int64 microseconds UTC: the time at which the label became known
    labels         int8: POSITIVE, NEGATIVE, or NO_CLASS (a class, with no positive class named)
    label_classes  the label as a class; None if labels are plain 1 and 0
    The others are those of an `EventBatch`.
    """

    magic, what = b"RSLB", "a batch of labels"

    ids: IdColumn
    times: Int64Array
    labels: Int8Array
    label_classes: TextColumn | None = None

    def __post_init__(self) -> None:
        self._check_rows("ids", "label")

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def concat(cls, batches: Sequence[LabelBatch]) -> LabelBatch:
        """Concatenate batches with the same columns, at least one; source and packet are the first's."""
        first = batches[0]
        if len(batches) == 1:
            return first
        sources = TextColumn.concat([batch.event_sources() for batch in batches])
        return cls._joined(batches, sources=sources, source=first.source)

    @classmethod
    def of_fields(cls, fields: dict[str, Any], rows: int) -> Self:
        """See `PacketBatch`."""
        if missing := {"ids", "times", "labels"} - fields.keys():
            raise ValueError(f"no column {', '.join(sorted(missing))}")
        batch = cls(**fields)
        least = NEGATIVE if batch.label_classes is None else NO_CLASS
        if len(batch) != rows or not ((batch.labels >= least) & (batch.labels <= POSITIVE)).all():
            raise ValueError("a label is neither positive nor negative, or there are more or fewer of them")
        if (batch.ids.lengths < 0).any():
            raise ValueError("an id is missing")
        return batch


@dataclass(frozen=True, eq=False)
class LabelRows(PacketBatch):
    """Labels without their ids and times, which the label matcher keeps. They have `sources`."""

    magic, what = LabelBatch.magic, LabelBatch.what

    labels: Int8Array
    label_classes: TextColumn | None

    @classmethod
    def of(cls, batch: LabelBatch) -> LabelRows:
        """Return the rows of a batch without ids and times."""
        sources = batch.event_sources()
        return cls(batch.labels, batch.label_classes, positions=batch.positions, sources=sources)

    def __len__(self) -> int:
        return len(self.labels)

    def with_keys(self, ids: IdColumn, times: Int64Array) -> LabelBatch:
        """Return the labels as a batch with the given ids and times."""
        return LabelBatch(
            ids, times, self.labels, self.label_classes, positions=self.positions, sources=self.sources
        )

    @classmethod
    def of_fields(cls, fields: dict[str, Any], rows: int) -> Self:
        """See `PacketBatch`."""
        columns = {name: fields.get(name) for name in ("labels", "label_classes", "positions", "sources")}
        if any(column is not None and len(column) != rows for column in columns.values()):
            raise ValueError(f"its columns have not {rows} rows")
        return cls(**columns)  # type: ignore[arg-type]
