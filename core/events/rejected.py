"""Records that do not count, as a machine puts them out: late, unmatched, duplicate and some invalid ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..arrays import Int64Array
from ..settings.durations import duration_text
from .batch import EventBatch
from .columns import TextColumn
from .reasons import Reason, RejectedKind
from .unjoined import LabelBatch


@dataclass(frozen=True, eq=False)
class Rejected:
    """n records of one kind and reason that a machine put out unused.

    kind      of `reason.kinds`
    records   the events or labels themselves; predictions as events whose labels mean nothing
    reason    why, of all of them
    details   why, in a sentence with the values in it, one per record
    gaps      int64[n] microseconds: how late, how long waited or how far apart each is, as its reason says;
              negative: not known. None: of no record
    limit     microseconds: what `gaps` was held against; None: nothing
    unlabelled  the records are predictions
    """

    kind: RejectedKind
    records: EventBatch | LabelBatch
    reason: Reason
    details: TextColumn
    gaps: Int64Array | None = None
    limit: int | None = None
    unlabelled: bool = False

    def __len__(self) -> int:
        return len(self.records)


def details_of(gaps: Int64Array, sentence: Callable[[int], str]) -> TextColumn:
    """Return the sentence of each gap; it is made once of each distinct gap. O(n log n)."""
    distinct, which = np.unique(gaps, return_inverse=True)
    return TextColumn(which.astype(np.int32), tuple(map(sentence, distinct.tolist())))


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
