"""Records that a state machine did not apply: late, unmatched, duplicate, and some invalid records."""

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

_UNITS = (86_400_000_000, 3_600_000_000, 60_000_000, 1_000_000, 1_000, 1)


@dataclass(frozen=True, eq=False)
class Rejected:
    """n records of one kind and one reason that a state machine did not apply.

    kind      one of `reason.kinds`
    records   the events or labels; predictions are events whose labels have no meaning
    reason    the reason, which all n records share
    details   a sentence for each record, with the values of the reason
    gaps      int64[n] microseconds: lateness, waiting time or distance of each record, depending on the
              reason; negative: not known. None: the reason has no such time
    limit     microseconds: the limit that `gaps` exceed; None: no limit
    unlabelled  whether the records are predictions
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
    """Return the sentence of each gap; `sentence` is called once for each distinct gap. O(n log n)."""
    distinct, which = np.unique(gaps, return_inverse=True)
    return TextColumn(which.astype(np.int32), tuple(map(sentence, distinct.tolist())))


def in_words(micros: int) -> str:
    """Return a length of time in its two largest units.

    >>> in_words(93_784_000_000), in_words(1_500)
    ('1d 2h', '1ms 500us')
    """
    unit = next((unit for unit in _UNITS if micros >= unit), 1)
    smaller = next((each for each in _UNITS if each < unit), 1)
    largest, rest = micros // unit * unit, micros % unit // smaller * smaller
    return f"{duration_text(largest)} {duration_text(rest)}" if rest else duration_text(largest)
