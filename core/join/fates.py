"""Dead letters, with reasons, for predictions and labels that are in no joined event."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..arrays import Int64Array
from ..events.batch import EventBatch
from ..events.columns import TextColumn
from ..events.reasons import Reason, RejectedKind
from ..events.rejected import Rejected, details_of, in_words
from ..events.unjoined import LabelBatch
from ..settings.durations import duration_text
from .settings import JoinSettings

_ALONE = {
    True: (Reason.NO_LABEL, Reason.NO_LABEL_AT_END),
    False: (Reason.NO_PREDICTION, Reason.NO_PREDICTION_AT_END),
}
"""Reasons for a prediction (True) or a label without a partner: its time is over, or the input ended."""


def given_up(
    settings: JoinSettings, records: EventBatch | LabelBatch, waits: Int64Array, *, unlabelled: bool
) -> Iterator[Rejected]:
    """Yield predictions (`unlabelled`), or labels, without a partner.

    waits  int64[n], microseconds that each record has waited. Less than the whole time to live, or the lead,
           means that the end of the input cut the waiting short.

    No reason claims that no partner came at all: the join has forgotten a partner beyond the time to live.
    """
    whole = settings.ttl if unlabelled or settings.lead is None else settings.lead
    words = _missing(settings, unlabelled)
    for at_end, reason in enumerate(_ALONE[unlabelled]):
        rows = np.flatnonzero((waits < whole) == bool(at_end))
        if len(rows):
            gaps = waits[rows]
            details = (
                details_of(gaps, lambda gap: f"{words}; the input ended {in_words(gap)} after it")
                if at_end
                else TextColumn.repeated(words, len(rows))
            )
            yield Rejected("unmatched", records.take(rows), reason, details, gaps, whole, unlabelled)


def _missing(settings: JoinSettings, of_prediction: bool) -> str:
    """Say which partner is missing and within which times a prediction, or a label, needs its partner."""
    ttl, lead = settings.ttl, settings.lead
    far, near = ("after", "before") if of_prediction else ("before", "after")
    what = "label" if of_prediction else "prediction"
    where = f"{duration_text(ttl)} {far} it"
    if lead is None or lead == ttl:
        where = f"{duration_text(ttl)} of it"
    elif lead:
        where += f" or {duration_text(lead)} {near} it"
    return f"no {what} of this id lies within {where}"


def repeated(labels: LabelBatch) -> Rejected:
    """Return dead letters of repeated labels: an equal label of the same time came before."""
    same = "the same label of this id, at the same time, came before"
    return Rejected("duplicate", labels, Reason.SAME_LABEL, TextColumn.repeated(same, len(labels)))


def second(settings: JoinSettings, labels: LabelBatch) -> Rejected:
    """Return dead letters of labels whose id has another label that counts.

    They are duplicates, or with `second="dead-letter"` mistakes.
    """
    which = "last" if settings.second == "last" else "first"
    details = TextColumn.repeated(f"the {which} of several labels of this id counts", len(labels))
    kind: RejectedKind = "invalid" if settings.second == "dead-letter" else "duplicate"
    return Rejected(kind, labels, Reason.SECOND_LABEL, details)
