"""Records that do not count, though nothing is wrong with them: late, unmatched, duplicate ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .events import EventBatch
from .join_batches import LabelBatch
from .text_columns import TextColumn
from .windows import duration_text

RejectedKind = Literal["late", "unmatched", "duplicate", "invalid"]


@dataclass(frozen=True, eq=False)
class Rejected:
    """n records of one kind that a machine put out unused.

    kind      "late", "unmatched", "duplicate"; "invalid" for a second label where that is a mistake
    records   the events or labels themselves; predictions as events whose labels mean nothing
    reasons   why, in words, one per record
    category  of all these reasons, by which like ones are counted: the reason without the values in it
    unlabelled  the records are predictions
    """

    kind: RejectedKind
    records: EventBatch | LabelBatch
    reasons: TextColumn
    category: str
    unlabelled: bool = False

    def __len__(self) -> int:
        return len(self.records)


def in_words(micros: int) -> str:
    """Return a length of time as a person says it: its two largest units.

    >>> in_words(93_784_000_000), in_words(1_500)
    ('1d 2h', '1ms 500us')
    """
    words: list[str] = []
    for unit in (86_400_000_000, 3_600_000_000, 60_000_000, 1_000_000, 1_000, 1):
        if micros >= unit or (unit == 1 and not words):
            words.append(duration_text(micros // unit * unit) if micros >= unit else "0s")
            micros %= unit
            if len(words) == 2 or not micros:
                break
        elif words:
            break
    return " ".join(words)
