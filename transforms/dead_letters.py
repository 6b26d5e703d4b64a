"""Dead letters: events that cannot count, each with the reason in words and the record itself.

Invalid, late, unmatched and duplicate events share this one schema. They travel in columns, because
one wrong column makes a dead letter of every event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from ..core.events import Int64Array, TextColumn

DEAD_LETTER_SCHEMA = pa.schema(
    [
        pa.field("kind", pa.string(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("position", pa.int64()),
        pa.field("time", pa.timestamp("us", "UTC")),
        pa.field("model", pa.string()),
        pa.field("id", pa.string()),
        pa.field("raw", pa.string()),
    ]
)
"""The columns of a dead letter, in every sink."""

KINDS = ("invalid", "late", "unmatched", "duplicate")
"""What a dead letter can be."""

RawRecords = Callable[[Int64Array], pa.Array]
"""Gives the records of chosen rows of a batch as JSON, string[number of rows]."""

OTHER_REASONS = "other reasons"
"""The kind of a reason whose maker named none."""


class DeadLetter(NamedTuple):
    """One event that cannot count.

    kind      "invalid", "late", "unmatched" or "duplicate"
    reason    why, in words: "score: 'abc' is not a number"
    source    where the record came from (a file, a topic's partition)
    position  its 0-based ordinal among the records of its source; a header or a blank line is none.
              None = unknown
    time      microseconds UTC, or None
    model, id text, or None where there is none
    raw       the record's own fields as a JSON object, or its own text where it has no fields
    """

    kind: str
    reason: str
    source: str
    position: int | None = None
    time: int | None = None
    model: str | None = None
    id: str | None = None
    raw: str | None = None


@dataclass(frozen=True, eq=False)
class DeadLetters(Sequence[DeadLetter]):
    """n dead letters in columns; `batch` has DEAD_LETTER_SCHEMA.

    reason_kinds  beside every reason its kind, by which like ones are counted: the reason without the
                  values in it. Who finds a fault names its kind, of which there are some 30 whatever the
                  data, so a job has as many metrics. It is not written. None: nobody named them
    """

    batch: pa.RecordBatch
    reason_kinds: TextColumn | None = None

    @classmethod
    def of(cls, letters: Iterable[DeadLetter], reason_kinds: Sequence[str] | None = None) -> DeadLetters:
        """Put single letters into columns."""
        columns = list(zip(*letters, strict=True)) or [()] * len(DEAD_LETTER_SCHEMA)
        arrays = [
            pa.array(values, field.type) for field, values in zip(DEAD_LETTER_SCHEMA, columns, strict=True)
        ]
        batch = pa.RecordBatch.from_arrays(arrays, schema=DEAD_LETTER_SCHEMA)
        return cls(batch, None if reason_kinds is None else TextColumn.of(list(reason_kinds)))

    @classmethod
    def concat(cls, parts: Sequence[DeadLetters]) -> DeadLetters:
        """Put several one after another."""
        parts = [part for part in parts if len(part)]
        if len(parts) < 2:
            return parts[0] if parts else NO_LETTERS
        (batch,) = pa.Table.from_batches([part.batch for part in parts]).combine_chunks().to_batches()
        return cls(batch, TextColumn.of([reason for part in parts for _, reason, _ in part.kinds()]))

    def kinds(self) -> Iterator[tuple[str, str, int]]:
        """Yield of every letter its kind, the kind of its reason, and its position (-1 = unknown)."""
        kinds = self.batch.column("kind").to_pylist()
        positions = self.batch.column("position").fill_null(-1).to_pylist()
        named = [OTHER_REASONS] * len(self) if self.reason_kinds is None else self.reason_kinds.to_list()
        for kind, reason, position in zip(kinds, named, positions, strict=True):
            yield kind, reason or OTHER_REASONS, position

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
"""Made once: it costs as much as a small batch."""
