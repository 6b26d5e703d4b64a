"""Dead letters: events that cannot count, each with the reason in words and the record itself.

Invalid, late, unmatched and duplicate events share this one schema. They travel in columns, because
one wrong column makes a dead letter of every event.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

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

DEAD_LETTER_METRICS = "rocsteady.dead_letters"
"""Namespace of Beam distributions: one for every kind of reason, over the positions where it occurred."""

_VALUE = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|(?<=: )[-+]?(?:\d[\d.e+-]*|inf|nan)")


def kind_of(reason: str) -> str:
    """Return a reason without the values in it, so that like ones can be counted together.

    >>> kind_of("score: 'abc' is not a number")
    'score: ... is not a number'
    """
    return _VALUE.sub("...", reason)


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
    """n dead letters in columns; `batch` has DEAD_LETTER_SCHEMA."""

    batch: pa.RecordBatch

    @classmethod
    def of(cls, letters: Iterable[DeadLetter]) -> DeadLetters:
        """Put single letters into columns."""
        columns = list(zip(*letters, strict=True)) or [()] * len(DEAD_LETTER_SCHEMA)
        arrays = [
            pa.array(values, field.type) for field, values in zip(DEAD_LETTER_SCHEMA, columns, strict=True)
        ]
        return cls(pa.RecordBatch.from_arrays(arrays, schema=DEAD_LETTER_SCHEMA))

    @classmethod
    def concat(cls, parts: Sequence[DeadLetters]) -> DeadLetters:
        """Put several one after another."""
        parts = [part for part in parts if len(part)]
        if len(parts) == 1:
            return parts[0]
        return cls(pa.concat_batches([part.batch for part in parts])) if parts else cls.of(())

    def kinds(self) -> Iterator[tuple[str, int]]:
        """Yield the kind of every letter's reason, values left out, and its position (-1 = unknown)."""
        named: dict[str, str] = {}
        reasons = self.batch.column("reason").to_pylist()
        positions = self.batch.column("position").to_pylist()
        for reason, position in zip(reasons, positions, strict=True):
            kind = named.get(reason)
            if kind is None:
                kind = named[reason] = kind_of(reason)
            yield kind, -1 if position is None else position

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
