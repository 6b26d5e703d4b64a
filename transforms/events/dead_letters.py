"""Chunks of a source's records, and dead letters: records that do not count, each with its reason.

A `Chunk` has records in columns, and the dead letters of the records that are no rows. A dead letter has the
reason, the faulty value, and the record itself.

Invalid, late, unmatched and duplicate records share one schema. Dead letters travel in columns, because a
single wrong column can make every event a dead letter. `RejectedLetters` makes dead letters of the records
that a machine refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, get_args, get_type_hints

import numpy as np
import pyarrow as pa

from ...core.arrays import FloatArray, Int8Array, Int64Array
from ...core.events.batch import NO_CLASS, EventBatch, LabelBatch
from ...core.events.columns import TextColumn
from ...core.events.earlier import real_positions
from ...core.events.rejected import Reason, Rejected, RejectedKind
from ...core.events.times import NO_TIME
from ...core.rows.columns import TIME_COLUMNS
from .fields import EventFields
from .text import json_objects

TIME = pa.timestamp("us", "UTC")
_KINDS = {str: pa.string(), int: pa.int64(), float: pa.float64()}


def schema_of(record: type) -> pa.Schema:
    """Return the columns of a NamedTuple's fields, with types by the fields' hints; times by their names.

    A field such as `class_` is the column `class`.

    >>> from typing import NamedTuple
    >>> schema_of(NamedTuple("Named", [("model", str), ("time", int | None)])).types
    [DataType(string), TimestampType(timestamp[us, tz=UTC])]
    """
    columns = []
    for name, hint in get_type_hints(record).items():
        kind, *null = get_args(hint) or (hint,)
        is_time = name in (*TIME_COLUMNS, "since_time")
        columns.append(pa.field(name.rstrip("_"), TIME if is_time else _KINDS[kind], nullable=bool(null)))
    return pa.schema(columns)


def in_columns(records: Iterable[Any], schema: pa.Schema) -> pa.RecordBatch:
    """Return records as a record batch, with the columns of their class. O(cells), in Python.

    A field such as `class_` is the column `class`. Fields that the schema lacks are left out.
    """
    records = list(records)
    names = [name.rstrip("_") for name in type(records[0])._fields] if records else schema.names
    values = dict(zip(names, zip(*records, strict=True), strict=False))
    arrays = [pa.array(values.get(field.name, ()), field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


KINDS: tuple[RejectedKind, ...] = get_args(RejectedKind)
"""The kinds of dead letters, as a tuple."""

RawRecords = Callable[[Int64Array], pa.Array]
"""Gives the records of chosen rows of a batch as JSON, string[number of rows]."""


class DeadLetter(NamedTuple):
    """One record that does not count.

    kind      "invalid", "late", "unmatched" or "duplicate".
    reason    a phrase of `Reason`, such as "score is not a number". If a record has several faults, it is the
              reason of the first fault.
    source    the source of the record: a file, or a topic's partition.
    position  the record's place in its source: the 0-based ordinal, without headers and blank lines. For a
              message of a topic, its offset. None = unknown.
    time      microseconds UTC, or None.
    model, id text; None if the record has no model or id.
    raw       the record's fields as a JSON object, or the record's text if it has no fields.
    field     the user's name of the faulty column; None if no column is at fault.
    value     the faulty column's value as text; a long text is cut, with a mark. None = no value.
    detail    a sentence on all faults of the record: "score: 'abc' is not a number; label: missing".
    gap_seconds    the lateness of a late record, the time that an unmatched record waited, or a duplicate's
                   distance in time from the event that counts. None = unknown.
    limit_seconds  the limit for the gap: the allowed lateness, the time to live, or the horizon.
    """

    kind: str
    reason: str
    source: str
    position: int | None = None
    time: int | None = None
    model: str | None = None
    id: str | None = None
    raw: str | None = None
    field: str | None = None
    value: str | None = None
    detail: str | None = None
    gap_seconds: float | None = None
    limit_seconds: float | None = None

    @classmethod
    def invalid(
        cls,
        reason: Reason,
        source: str,
        detail: str,
        position: int | None = None,
        raw: str | None = None,
        field: str | None = None,
    ) -> DeadLetter:
        """Return the dead letter of an invalid record."""
        return cls("invalid", reason.value, source, position, raw=raw, field=field, detail=detail)


DEAD_LETTER_SCHEMA = schema_of(DeadLetter)
"""The columns of a dead letter, in every sink."""


@dataclass(frozen=True, eq=False)
class DeadLetters(Sequence[DeadLetter]):
    """n dead letters in columns; `batch` has DEAD_LETTER_SCHEMA."""

    batch: pa.RecordBatch

    @classmethod
    def of(cls, letters: Iterable[DeadLetter]) -> DeadLetters:
        """Put single letters into columns."""
        return cls(in_columns(letters, DEAD_LETTER_SCHEMA))

    @classmethod
    def of_columns(cls, columns: Mapping[str, pa.Array | None], n: int) -> DeadLetters:
        """Put the columns of n letters together; a column that is absent, or None, is null."""
        arrays = [
            pa.nulls(n, field.type) if (column := columns.get(field.name)) is None else column
            for field in DEAD_LETTER_SCHEMA
        ]
        return cls(pa.RecordBatch.from_arrays(arrays, schema=DEAD_LETTER_SCHEMA))

    @classmethod
    def concat(cls, parts: Sequence[DeadLetters]) -> DeadLetters:
        """Return the dead letters of all parts, in order."""
        parts = [part for part in parts if len(part)]
        if len(parts) < 2:
            return parts[0] if parts else NO_LETTERS
        (batch,) = pa.Table.from_batches([part.batch for part in parts]).combine_chunks().to_batches()
        return cls(batch)

    def whys(self) -> Iterator[tuple[str, str, int]]:
        """Yield the kind, the reason and the position (-1 = unknown) of every letter."""
        columns = (self.batch.column("kind"), self.batch.column("reason"))
        positions = self.batch.column("position").fill_null(-1).to_pylist()
        return zip(*(column.to_pylist() for column in columns), positions, strict=True)

    def __len__(self) -> int:
        count: int = self.batch.num_rows
        return count

    def __getitem__(self, index: int) -> DeadLetter:  # type: ignore[override]
        place = range(len(self))[index]
        return next(iter(DeadLetters(self.batch.slice(place, 1))))

    def __iter__(self) -> Iterator[DeadLetter]:
        times = DEAD_LETTER_SCHEMA.get_field_index("time")
        columns = [
            (column.cast(pa.int64()) if place == times else column).to_pylist()
            for place, column in enumerate(self.batch.columns)
        ]
        return map(DeadLetter._make, zip(*columns, strict=True))


NO_LETTERS = DeadLetters.of(())
"""An empty batch of dead letters; it is made once, because making it costs as much as making a small batch.
"""


def seconds(micros: Int64Array) -> pa.Array:
    """Return microseconds as seconds, float64[n], null where negative."""
    return pa.array(micros / 1e6, mask=micros < 0)


def known_of(records: EventBatch | LabelBatch) -> dict[str, pa.Array | None]:
    """Return the columns of dead letters that are copied from the refused records: time, model and id."""
    times, ids = records.times, records.ids
    return {
        "time": None if times is None else pa.array(times, mask=times == NO_TIME).cast(TIME),
        "model": texts_of(records.models) if isinstance(records, EventBatch) else None,
        "id": None if ids is None else pa.array(ids.to_list(), pa.string()),
    }


def texts_of(column: TextColumn) -> pa.Array:
    """Return a column of text in Arrow's form."""
    return pa.DictionaryArray.from_arrays(
        pa.array(column.codes, mask=column.codes < 0), pa.array(column.values, pa.string())
    ).cast(pa.string())


_Columns = dict[str, pa.Array | None]
"""Columns by name; None = the column is absent."""


@dataclass(frozen=True)
class RejectedLetters:
    """Makes dead letters of refused records; `fields` has the user's names of their fields.

    `raw` shows only the fields that the job reads, because a machine has no other fields of a record.
    label_time  the name of a label's time, if labels have an input of their own.
    instances   whether the records have features and no score; their model is the learner that failed.
    """

    fields: EventFields
    label_time: str | None = None
    instances: bool = False

    def __call__(self, rejected: Rejected) -> DeadLetters:
        """Return the dead letters of refused records, one for each record."""
        records = rejected.records
        n = len(records)
        known = known_of(records)
        own = self._own(rejected, known)
        limit = rejected.limit
        positions = None if records.positions is None else real_positions(records.positions)
        columns = {
            **known,
            "kind": texts_of(TextColumn.repeated(rejected.kind, n)),
            "reason": texts_of(TextColumn.repeated(rejected.reason.value, n)),
            "source": texts_of(records.event_sources()),
            "position": None if positions is None else pa.array(positions, mask=positions < 0),
            "raw": json_objects(
                pa.RecordBatch.from_pydict({name: each for name, each in own.items() if each is not None})
            ),
            "detail": texts_of(rejected.details),
            "gap_seconds": None if rejected.gaps is None else seconds(rejected.gaps),
            "limit_seconds": None if limit is None else seconds(np.full(n, limit)),
        }
        return DeadLetters.of_columns(columns, n)

    def _own(self, rejected: Rejected, known: _Columns) -> _Columns:
        """Return the records' fields under the user's names."""
        fields, records = self.fields, rejected.records
        labels = {} if rejected.unlabelled else self._labels(records)
        if isinstance(records, LabelBatch):
            return {
                fields.id or "id": known["id"],
                self.label_time or "time": known["time"],
                **labels,
            }
        own = {
            fields.model or "model": known["model"],
            **self._scores(records),
            **labels,
            fields.time or "time": known["time"],
            fields.id or "id": known["id"],
            fields.weight or "weight": None if records.weights is None else pa.array(records.weights),
            fields.predicted or "predicted": self._predicted(records),
            **{name: texts_of(column) for name, column in records.slices},
        }
        if self.instances:
            for name in (fields.model or "model", fields.score, fields.predicted or "predicted"):
                del own[name]
            own |= {name: pa.array(column, from_pandas=True) for name, column in records.features}
        return own

    def _predicted(self, records: EventBatch) -> pa.Array | None:
        """Return the predicted classes; None if records have none, because the greatest score decides."""
        decided = records.class_scores is not None and self.fields.predicted is None
        return None if records.predicted is None or decided else texts_of(records.predicted)

    def _scores(self, records: EventBatch) -> _Columns:
        """Return the scores of events."""
        if records.class_scores is None:
            return {self.fields.score: pa.array(records.scores)}
        return _by_name(self.fields.class_scores, records.class_scores)

    def _labels(self, records: EventBatch | LabelBatch) -> _Columns:
        """Return labels as values that can be read again.

        If the classes are named, only the positive label is known.
        """
        fields, labels = self.fields, records.labels
        if records.class_labels is not None:
            return _by_name(fields.class_labels, records.class_labels)
        if records.label_classes is not None:
            return {fields.label: texts_of(records.label_classes)}
        if fields.positive is not None:
            words = (f"not {fields.positive}", fields.positive)
            return {fields.label: texts_of(TextColumn(labels.astype(np.int32), words))}
        return {fields.label: pa.array(labels, mask=labels == NO_CLASS)}


def _by_name(names: Sequence[str], numbers: FloatArray | Int8Array) -> _Columns:
    """Return the columns of numbers, one column for each name."""
    return dict(zip(names, map(pa.array, numbers.T), strict=True))


CHUNK_ROWS = 100_000
"""The approximate records of a batch. The cost per batch is small, and memory can hold several batches."""


class Chunk(NamedTuple):
    """Consecutive records of a source.

    first_position  the position of the first record, which is a row or a dead letter; -1 = unknown.
    batch           the records that are rows; columns of any types.
    positions       int64: the position of every row of the batch; None = the positions are consecutive.
    dead            dead letters of the records that are not rows.
    bytes_read      the reader's approximate offset in the file; for a stream, the bytes of the records.
    raw             a function that returns whole records, if the batch lacks some of their fields.
    rows            int64: the number of every row within its message, from 0; None = a message is one record.
    """

    first_position: int
    batch: pa.RecordBatch
    positions: Int64Array | None
    dead: DeadLetters
    bytes_read: int = 0
    raw: RawRecords | None = None
    rows: Int64Array | None = None

    def places(self) -> Int64Array | None:
        """Return the position of every row of the batch; None if the first position is unknown."""
        if self.positions is not None or self.first_position < 0:
            return self.positions
        return np.arange(self.first_position, self.first_position + self.batch.num_rows)

    @property
    def records(self) -> int:
        """The number of records, including dead letters."""
        return int(self.batch.num_rows) + len(self.dead)
