"""Batches: the columns of many events, predictions or labels, and the one packed form in which they are sent.

The element between transforms is a batch, never an event: a Python Beam pipeline moves a few hundred
thousand elements a second and more than ten million events in batches.

A label join gets predictions, which have no labels yet (`PredictionBatch`), and labels, which have no scores
(`LabelBatch`). It gives events (`EventBatch`). All three are packets of their sources.

Invariants
    All columns have the same number of rows. Text is dictionary-encoded (`TextColumn`), ids are raw
    UTF-8 (`IdColumn`), times are microseconds since 1970-01-01 UTC. A column that the source does not
    have is None and takes no bytes. `unpack(batch.pack())` equals the batch; any other bytes raise a
    `WireError` that says what was found. The wire form is that of `wire`; each kind of batch has its magic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ..arrays import FloatArray, Int8Array, Int64Array
from ..errors import InputError
from .columns import ColumnBatch, IdColumn, TextColumn
from .inputs import exact_column
from .wire import CLASS_SCORES, COLUMNS, NAMED, NO_HEAD, PacketHead, read_batch, tagged_columns, write_batch

POSITIVE, NEGATIVE, NO_CLASS = 1, 0, -1
"""Values of `labels`. NO_CLASS: the label is a class, and the positive class is not named."""

MAGIC = b"RSEB"


@dataclass(frozen=True, eq=False, kw_only=True)
class PacketBatch(ColumnBatch):
    """The base of the batches of events and of labels, which are packets of their source; see `EventBatch`.

    magic, what  the first bytes of the wire form, and its name in an error
    """

    magic, what = b"", ""

    positions: Int64Array | None = None
    sources: TextColumn | None = None
    source: str = ""
    head: PacketHead = NO_HEAD

    def _check_rows(self, of: str, one: str) -> None:
        """Convert numbers to their types on the wire. Raises InputError; see `exact_column`."""
        for tag, (name, kind) in COLUMNS.items():
            numbers = getattr(self, name, None) if isinstance(kind, str) and tag not in NAMED else None
            if numbers is not None:
                exact = exact_column(name, numbers)
                object.__setattr__(self, name, np.ascontiguousarray(exact, np.dtype(kind)))
        for name, _, column in tagged_columns(self):
            if len(column) != len(self):
                raise InputError(
                    f"the column {name!r} of {self.what} has {len(column)} rows and the {of} {len(self)}; "
                    f"every column needs one value per {one}"
                )

    def pack(self, head: PacketHead | None = None) -> bytes:
        """Return the wire form: about 10 bytes an event without ids, times, weights and slices.

        head  the head of the packet; None: the batch's own
        """
        return write_batch(self.magic, head or self.head, self.source, len(self), tagged_columns(self))

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        """Read the wire form, `data`. Raises one of the four `WireError`s for any other bytes."""
        return read_batch(data, cls.magic, cls.what, cls.of_fields)

    @classmethod
    def of_fields(cls, fields: dict[str, Any], rows: int) -> Self:
        """Make a batch of the fields that `read_batch` has read.

        Raises ValueError for values that validation never accepts: kernels rely on the validation.
        """
        raise NotImplementedError

    def event_sources(self) -> TextColumn:
        """Return the name of the source of every row."""
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
                   has not scored yet, have features, and scores without meaning.
    class_scores   float64[n, C]: a finite score of each class, or None. With them `scores` and `labels` have
                   no meaning: the labels are `label_classes`, or `class_labels`.
    class_labels   int8[n, C], 1 where an event is of a class, or None: an event is of one class.
    positions      int64 ordinal of every event in its source, -1 = unknown, to name an event that is refused
                   later; None: positions are not needed.
    sources        the source of every event, if the events come from several sources.
    source         name of the partition that the events come from (a file, a topic's partition).
    head           of a batch that was a packet, the packet's place in the input.
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
    class_scores: FloatArray | None = None
    class_labels: Int8Array | None = None

    def __post_init__(self) -> None:
        self._check_rows("models", "event")
        if (self.label_classes is None) != (self.predicted is None):
            raise InputError("an event batch has predicted classes exactly when it has label classes")
        if self.class_scores is not None and self.class_scores.ndim != 2:
            raise InputError(
                f"class_scores of shape {self.class_scores.shape}: give a line of scores for each event"
            )

    def __len__(self) -> int:
        return len(self.models)

    @classmethod
    def concat(cls, batches: Sequence[EventBatch]) -> EventBatch:
        """Concatenate batches with the same columns; the source is that of the first batch.

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
    def of_classes(cls, **columns: Any) -> Self:
        """Make a batch of events with a score of each class.

        `columns` has all columns but `scores` and `labels`.
        """
        rows = len(columns["models"])
        return cls(scores=np.zeros(rows), labels=np.full(rows, NO_CLASS, np.int8), **columns)

    @classmethod
    def of_fields(cls, fields: dict[str, Any], rows: int) -> Self:
        """See `PacketBatch`."""
        if CLASS_SCORES in fields:
            return cls._of_class_fields(fields, rows)
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
        batch._check_values()
        return batch

    @classmethod
    def _of_class_fields(cls, fields: dict[str, Any], rows: int) -> Self:
        """Make a batch with a score of each class, whose scores and labels are not on the wire."""
        if unknown := {"scores", "labels"} & fields.keys():
            raise ValueError(f"it has a column {min(unknown)} beside the scores of classes")
        if "models" not in fields or ("class_labels" in fields) == ("label_classes" in fields):
            raise ValueError("it has no models, or the labels of its events are not given once")
        batch = cls.of_classes(**fields)
        scores, members = batch.class_scores, batch.class_labels
        if len(batch) != rows or scores is None or not np.isfinite(scores).all():
            raise ValueError(f"it has not {rows} events, or a score of a class is not finite")
        if members is not None and members.shape != scores.shape:
            raise ValueError("there is not one label of each class")
        _check_members(members)
        batch._check_values()
        return batch

    def _check_values(self) -> None:
        """Raise ValueError for weights and texts that validation never accepts."""
        if self.weights is not None and not ((self.weights > 0) & np.isfinite(self.weights)).all():
            raise ValueError("a weight is not a number above 0")
        for tag, (name, kind) in COLUMNS.items():
            column = getattr(self, name) if kind is TextColumn and tag not in NAMED else None
            if column is not None and (column.codes < 0).any():
                raise ValueError(f"a value of {name} (column {tag}) is missing")


def _check_members(members: Int8Array | None) -> None:
    """Raise ValueError for labels of classes that validation never accepts."""
    if members is not None and ((members | 1) != 1).any():
        raise ValueError("a label of a class is neither 1 nor 0")


_NOT_SENT = ("labels", "label_classes", "class_labels")


@dataclass(frozen=True, eq=False)
class PredictionBatch:
    """Predictions, held as events whose labels have no meaning. Every prediction has an id and a time.

    `events.labels` is NEGATIVE in every row. With predicted classes, `label_classes` is an empty text in
    every row. With scores of classes and without predicted classes, `class_labels` is 0 everywhere. None of
    these columns takes bytes on the wire.
    """

    events: EventBatch

    magic = b"RSPB"

    @classmethod
    def of(cls, **columns: Any) -> PredictionBatch:
        """Make a batch of predictions from the columns of an `EventBatch`, without labels."""
        return cls(cls._unlabelled(columns))

    @staticmethod
    def _unlabelled(columns: dict[str, Any]) -> EventBatch:
        rows = len(columns["models"])
        has_classes = columns.get("predicted") is not None
        if has_classes:
            columns["label_classes"] = TextColumn.repeated("", rows)
        if (scores := columns.get(CLASS_SCORES)) is None:
            return EventBatch(labels=np.full(rows, NEGATIVE, np.int8), **columns)
        if not has_classes:
            columns["class_labels"] = np.zeros(scores.shape, np.int8)
        return EventBatch.of_classes(**columns)

    def __post_init__(self) -> None:
        if self.events.ids is None or self.events.times is None:
            raise InputError("a batch of predictions has ids and times; a label finds them by these")

    def __len__(self) -> int:
        return len(self.events)

    @property
    def positions(self) -> Int64Array | None:
        """The position of every prediction; see `EventBatch`."""
        return self.events.positions

    @property
    def times(self) -> Int64Array | None:
        """Times at which the predictions were made, int64 microseconds UTC."""
        return self.events.times

    @classmethod
    def concat(cls, batches: Sequence[PredictionBatch]) -> PredictionBatch:
        """Concatenate batches with the same columns, at least one; see `EventBatch.concat`."""
        return cls(EventBatch.concat([batch.events for batch in batches]))

    def take(self, rows: Int64Array) -> PredictionBatch:
        """Return the chosen rows, in the order given."""
        return PredictionBatch(self.events.take(rows))

    def part(self, start: int, end: int) -> PredictionBatch:
        """Return the predictions [start, end)."""
        return PredictionBatch(self.events.part(start, end))

    @property
    def source(self) -> str:
        """The name of the partition that the predictions come from."""
        return self.events.source

    @property
    def head(self) -> PacketHead:
        """Of a batch that was a packet, the packet's place in the input."""
        return self.events.head

    def pack(self, head: PacketHead | None = None) -> bytes:
        """Return the wire form; `head` as in `PacketBatch.pack`."""
        columns = (each for each in tagged_columns(self.events) if each[0] not in _NOT_SENT)
        return write_batch(self.magic, head or self.head, self.source, len(self), columns)

    @classmethod
    def unpack(cls, data: bytes) -> PredictionBatch:
        """Read the wire form. Raises one of the four `WireError`s for any other bytes."""
        return read_batch(data, cls.magic, "a batch of predictions", cls._of_fields)

    @classmethod
    def _of_fields(cls, fields: dict[str, Any], rows: int) -> PredictionBatch:
        if unknown := set(_NOT_SENT) & fields.keys():
            raise ValueError(f"it has a column {', '.join(sorted(unknown))}")
        if "predicted" in fields:
            fields["label_classes"] = TextColumn.repeated("", rows)
        if CLASS_SCORES not in fields:
            fields["labels"] = np.full(rows, NEGATIVE, np.int8)
        elif "predicted" not in fields:
            fields["class_labels"] = np.zeros(fields[CLASS_SCORES].shape, np.int8)
        return cls(EventBatch.of_fields(fields, rows))


@dataclass(frozen=True, eq=False)
class LabelBatch(PacketBatch):
    """Columns of n labels. A label has no model: it serves every prediction of its id.

    ids            n ids, none of them missing
    times          int64 microseconds UTC: the time at which the label became known
    labels         int8: POSITIVE, NEGATIVE, or NO_CLASS (a class, with no positive class named)
    label_classes  the label as a class; None if labels are plain 1 and 0
    class_labels   int8[n, C], 1 where the events are of a class; None: a label is one class
    The other columns are those of an `EventBatch`.
    """

    magic, what = b"RSLB", "a batch of labels"

    ids: IdColumn
    times: Int64Array
    labels: Int8Array
    label_classes: TextColumn | None = None
    class_labels: Int8Array | None = None

    def __post_init__(self) -> None:
        self._check_rows("ids", "label")

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def concat(cls, batches: Sequence[LabelBatch]) -> LabelBatch:
        """Concatenate batches with the same columns, at least one; the source is that of the first."""
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
        least = NEGATIVE if batch.label_classes is None and batch.class_labels is None else NO_CLASS
        if len(batch) != rows or not ((batch.labels >= least) & (batch.labels <= POSITIVE)).all():
            raise ValueError("a label is neither positive nor negative, or there are more or fewer of them")
        _check_members(batch.class_labels)
        if (batch.ids.lengths < 0).any():
            raise ValueError("an id is missing")
        return batch


@dataclass(frozen=True, eq=False)
class LabelRows(PacketBatch):
    """The rows of labels without their ids and times, which the label matcher holds. They have `sources`."""

    magic, what = LabelBatch.magic, LabelBatch.what

    labels: Int8Array
    label_classes: TextColumn | None
    class_labels: Int8Array | None

    @classmethod
    def of(cls, batch: LabelBatch) -> LabelRows:
        """Return the rows of a batch without ids and times."""
        labels = batch.labels, batch.label_classes, batch.class_labels
        return cls(*labels, positions=batch.positions, sources=batch.event_sources())

    def __len__(self) -> int:
        return len(self.labels)

    def with_keys(self, ids: IdColumn, times: Int64Array) -> LabelBatch:
        """Return the labels as a batch with the given ids and times."""
        labels = self.labels, self.label_classes, self.class_labels
        return LabelBatch(ids, times, *labels, positions=self.positions, sources=self.sources)

    @classmethod
    def of_fields(cls, fields: dict[str, Any], rows: int) -> Self:
        """See `PacketBatch`."""
        names = ("labels", "label_classes", "class_labels", "positions", "sources")
        columns = {name: fields.get(name) for name in names}
        _check_members(columns["class_labels"])
        if any(column is not None and len(column) != rows for column in columns.values()):
            raise ValueError(f"its columns have not {rows} rows")
        return cls(**columns)  # type: ignore[arg-type]
