"""The output of a shard of the join: joined events, the time up to which they are complete, dead letters.

To a shard of the evaluators, each shard of the join is a source partition; its packets are numbered for each
receiver.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..arrays import Int64Array
from ..events.batch import EventBatch, LabelBatch
from ..events.columns import TextColumn
from ..events.records import StateMarker
from ..events.rejected import Reason, Rejected, RejectedKind, details_of, in_words
from ..events.times import END_OF_TIME, NO_TIME
from ..ids.sharding import Packet, Packets
from ..settings.durations import duration_text
from .join_settings import JoinSettings


class Outlet:
    """Sends the output of one shard of the join to all shards of the evaluators.

    packets   numbers the packets for each shard
    greatest  the greatest time of any joined event so far
    """

    def __init__(self, settings: JoinSettings, number: int) -> None:
        self.greatest = NO_TIME
        self._settings = settings
        self._name = f"shard {number} of the join"
        self.packets = Packets(self._name, number, settings.shards, settings.evaluator_shards)

    def joined(self, predictions: EventBatch, labels: LabelBatch) -> Iterator[Packet]:
        """Send an event for each pair (predictions[i], labels[i]), at the time of its label."""
        self.greatest = max(self.greatest, int(labels.times.max()))
        events = replace(
            predictions,
            times=labels.times,
            labels=labels.labels,
            label_classes=None if predictions.predicted is None else labels.label_classes,
            class_labels=labels.class_labels,
            source=self._name,
            sources=predictions.event_sources(),
        )
        return self.packets.split(events, self.greatest)

    def settle(self, clock: int) -> Iterator[Packet]:
        """Send to every shard the time up to which joined events are complete, when the clock is `clock`."""
        if clock == END_OF_TIME:
            return self.packets.ends(self.greatest)
        return self.packets.heartbeats(self._settled(clock), self.greatest)

    def mark(self, marker: StateMarker, clock: int) -> Iterator[Packet]:
        """Send a marker of an export to every shard, behind earlier packets, with a sequence number."""
        settled = self._settled(clock)
        return self.packets.mark(replace(marker, settled=settled, high_water=self.greatest))

    def _settled(self, clock: int) -> int:
        """Return the time up to which events are complete.

        The times of later events are at least clock - output_delay.
        """
        return NO_TIME if clock == NO_TIME else max(clock - self._settings.output_delay, NO_TIME + 1)


# ---- dead letters, with reasons, for predictions and labels that are in no joined event

_ALONE = {
    True: (Reason.NO_LABEL, Reason.NO_LABEL_AT_END),
    False: (Reason.NO_PREDICTION, Reason.NO_PREDICTION_AT_END),
}
"""Reasons for a prediction (True) or a label without a partner: first if its time is over, then if the input
ended.
"""


def given_up(
    settings: JoinSettings, records: EventBatch | LabelBatch, waits: Int64Array, *, unlabelled: bool
) -> Iterator[Rejected]:
    """Yield dead letters for predictions (`unlabelled`), or labels, without a partner.

    waits  int64[n], microseconds that each record has waited. A wait below the time to live, or below the
           lead, means that the end of the input cut the wait short.

    No reason claims that no partner came at all: the join has forgotten a partner beyond the time to live.
    """
    whole = settings.ttl if unlabelled or settings.lead is None else settings.lead
    missing = _missing(settings, unlabelled)

    def why(gap: int) -> str:
        return missing if gap >= whole else f"{missing}; the input ended {in_words(gap)} after it"

    for reason, chosen in zip(_ALONE[unlabelled], (waits >= whole, waits < whole), strict=True):
        if chosen.any():
            rows, gaps = records.take(np.flatnonzero(chosen)), waits[chosen]
            yield Rejected("unmatched", rows, reason, details_of(gaps, why), gaps, whole, unlabelled)


def _missing(settings: JoinSettings, of_prediction: bool) -> str:
    """Return in words which partner is missing, and within which times a record needs its partner.

    The record is a prediction (`of_prediction`) or a label.
    """
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


def second_label(settings: JoinSettings, labels: LabelBatch) -> Rejected:
    """Return dead letters of labels whose id has another label that counts.

    The letters are duplicates, or with `second="dead-letter"` invalid labels.
    """
    which = "last" if settings.second == "last" else "first"
    details = TextColumn.repeated(f"the {which} of several labels of this id counts", len(labels))
    kind: RejectedKind = "invalid" if settings.second == "dead-letter" else "duplicate"
    return Rejected(kind, labels, Reason.SECOND_LABEL, details)
