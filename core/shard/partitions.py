"""The reports of an input's partitions.

How many packets they sent, how far they are settled, which have ended.

A word is a heartbeat or an end of a partition. Packets and words may arrive in any order. A packet may
arrive twice, if a source repeats packets. A word takes effect only when all packets that were sent before it
are here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..encoding.json import reading, text_of, whole
from ..errors import InputError
from ..events.records import Batch, Clock, EndOfInput, EndOfPartition, Heartbeat, Record, StateMarker
from ..events.rejected import Reason, Rejected, details_of, in_words
from ..events.times import ADDED, END_OF_TIME, IDLE, NO_TIME
from ..events.wire import UNORDERED
from .buffer import TimedBatch, times_of


@dataclass
class _Partition:
    """The reports of one partition.

    received  how many packets have arrived without a gap, from packet 0 on
    ahead     the numbers of the packets that came behind a gap
    sent      how many packets there must be by now: one more than the greatest number
    packets   how many packets there are in all; None = the partition has not ended
    words     (packets, settled) of heartbeats that count packets which have not arrived yet
    settled   see `Heartbeat`
    is_idle   whether the partition said that it is idle behind its last packet
    added     the names of sources that were added to this partition while the job ran
    """

    source: str
    received: int = 0
    ahead: set[int] = field(default_factory=set)
    packets: int | None = None
    words: list[tuple[int, int]] = field(default_factory=list)
    settled: int = NO_TIME
    sent: int = 0
    is_idle: bool = False
    added: set[str] = field(default_factory=set)

    @property
    def waiting_bytes(self) -> int:
        """About how many bytes the numbers and words behind a gap, and the added names, take as JSON."""
        return 6 * len(self.ahead) + 25 * len(self.words) + sum(len(name) + 4 for name in self.added)

    def hear(self) -> None:
        """Apply every word whose packets have all arrived."""
        before = self.received
        while self.received in self.ahead:
            self.ahead.remove(self.received)
            self.received += 1
        if self.received > before and self.words:
            heard = [settled for packets, settled in self.words if packets <= self.received]
            self.settled = max([self.settled, *heard])
            self.words = [word for word in self.words if word[0] > self.received]
        if self.packets == self.received:
            self.settled = END_OF_TIME


class SourcePartitions:
    """All partitions of one input.

    count       how many partitions there are; None = no record has said this number yet
    clock       no earlier event will come: the least time up to which any partition is settled; END_OF_TIME
                when all partitions have ended
    greatest    the greatest time that packets and words have reported; NO_TIME = none
    """

    def __init__(self) -> None:
        self.count: int | None = None
        self.clock = NO_TIME
        self.greatest = NO_TIME
        self._of: dict[int, _Partition] = {}
        self._bytes = self._waiting_bytes = 0

    def __bool__(self) -> bool:
        """Whether any partition has reported anything, also in an earlier job whose state this job has."""
        return bool(self._of) or self.greatest != NO_TIME

    @property
    def ended(self) -> bool:
        """Whether all partitions have ended and all their packets have arrived."""
        return self.clock == END_OF_TIME

    def receive(self, content: Batch | Heartbeat | EndOfPartition | StateMarker) -> bool:
        """Count a packet, or apply a word. Return False for a known packet.

        A marker counts as a packet; a marker also says the number of partitions. Raises InputError if the
        record contradicts an earlier record.
        """
        if isinstance(content, Heartbeat | EndOfPartition):
            source, number, sequence, told = content.source, content.partition, UNORDERED, content.high_water
            self._take_word(content)
        else:
            head = content if isinstance(content, StateMarker) else content.head
            source, number, sequence, told = content.source, head.partition, head.sequence, head.high_water
            check_packet(source, number, sequence, self.count, self.packets(number), "this order")
            if isinstance(content, StateMarker):
                self.count = marked_count(content, self.count)
        partition = self._of.get(number) or self._add(number, _Partition(source))
        waiting_before = partition.waiting_bytes
        if isinstance(content, EndOfPartition):
            partition.source, partition.packets = content.source, content.packets
            partition.is_idle = False
        elif isinstance(content, Heartbeat) and content.settled == ADDED:
            partition.added.add(content.source)
        elif isinstance(content, Heartbeat):
            behind_all = partition.packets is None and content.packets >= partition.sent
            partition.is_idle = content.settled == IDLE and behind_all
            if content.settled == IDLE:
                pass
            elif content.packets <= partition.received:
                partition.settled = max(partition.settled, content.settled)
            elif content.settled > partition.settled:
                partition.words.append((content.packets, content.settled))
        elif sequence < partition.received or sequence in partition.ahead:
            return False
        else:
            partition.ahead.add(sequence)
            partition.is_idle = False
            partition.sent = max(partition.sent, sequence + 1)
            if isinstance(content, StateMarker):
                partition.words.append((sequence, content.settled))
        self.greatest = max(self.greatest, told)
        partition.hear()
        self._waiting_bytes += partition.waiting_bytes - waiting_before
        if self.count == len(self._of):
            self.clock = max(self.clock, self._least_settled())
        return True

    def _least_settled(self) -> int:
        """Return the least time up to which the partitions are settled, without idle partitions.

        If every partition that has not ended is idle, this is the greatest time up to which an idle partition
        is settled. Idle partitions do not wait for each other, and do not end an input.
        """
        idle = [each.settled for each in self._of.values() if each.is_idle]
        least = min((each.settled for each in self._of.values() if not each.is_idle), default=END_OF_TIME)
        return max(idle) if idle and least == END_OF_TIME else least

    def _add(self, number: int, partition: _Partition) -> _Partition:
        self._of[number] = partition
        # 59: about the length of the values beside the name
        self._bytes += len(json.dumps(partition.source)) + 59
        self._waiting_bytes += partition.waiting_bytes
        return partition

    def _take_word(self, word: Heartbeat | EndOfPartition) -> None:
        known = self._of.get(word.partition)
        said = None if known is None else known.packets
        ended = isinstance(word, EndOfPartition)
        sent = 0 if known is None else known.sent
        if (
            self.count not in (None, word.partitions)
            or word.partition >= word.partitions
            or (said is not None and (said != word.packets if ended else said < word.packets))
            or (ended and sent > word.packets)
            or (said is not None and known is not None and known.source != word.source)
        ):
            raise contradicted(word)
        self.count = word.partitions

    def was_added(self, number: int, source: str) -> bool:
        """Whether a source was added to a partition while the job ran."""
        return number in self._of and source in self._of[number].added

    def received(self, number: int) -> int:
        """Return how many packets of a partition have arrived without a gap."""
        return self._of[number].received if number in self._of else 0

    def packets(self, number: int) -> int | None:
        """How many packets a partition has in all; None if its end is not known."""
        return self._of[number].packets if number in self._of else None

    def has_ended(self, number: int) -> bool:
        """Return whether a partition has ended and all of its packets have arrived."""
        return self.packets(number) == self.received(number)

    def refuse_gaps(self) -> None:
        """Raise InputError with the name of a partition whose packets are missing.

        The input ended before they came.
        """
        missing = next((n for n in range(self.count or 0) if self.packets(n) != self.received(n)), None)
        name = f"number {missing or 0}"
        if missing in self._of:
            known = self._of[missing]
            packets = "an unknown number of" if known.packets is None else known.packets
            name = f"{known.source!r} ({known.received} of {packets} packets)"
        raise packets_lost(name)

    def progress(self) -> dict[str, Any]:
        """Return the reports of all partitions as JSON values."""
        parts = [
            [
                number, each.source, each.received, sorted(each.ahead), each.packets, each.words,
                each.settled, each.is_idle, sorted(each.added),
            ]
            for number, each in sorted(self._of.items())
        ]  # fmt: skip
        return {"count": self.count, "clock": self.clock, "greatest": self.greatest, "parts": parts}

    @classmethod
    def of_progress(cls, progress: dict[str, Any]) -> SourcePartitions:
        """Return the partitions from the values that `progress` returned.

        Raises CorruptBytesError if the values are damaged.
        """
        self = cls()
        with reading("what the partitions of an input have said"):
            self.count = count_of(progress["count"])
            self.clock, self.greatest = whole(progress["clock"]), whole(progress["greatest"])
            for number, source, received, ahead, packets, words, settled, idle, added in progress["parts"]:
                part = _Partition(
                    text_of(source),
                    whole(received, 0),
                    {whole(each, 0) for each in ahead},
                    count_of(packets),
                    [(whole(sent, 0), whole(moment)) for sent, moment in words],
                    whole(settled),
                    is_idle=bool(idle),
                    added=set(map(text_of, added)),
                )
                part.sent = max([part.received, *(number + 1 for number in part.ahead)])
                if part.received in part.ahead or (part.packets is not None and part.sent > part.packets):
                    raise ValueError(f"{part.sent} packets of partition {number}, which has {part.packets}")
                self._add(whole(number, 0), part)
        return self

    def snapshot_bytes(self) -> int:
        """Return about how long `progress` is as JSON. O(1)."""
        return self._bytes + self._waiting_bytes


def count_of(value: object) -> int | None:
    """Return a stored count, or None for a count that is not known; raise ValueError for any other value."""
    return None if value is None else whole(value, 0)


def marked_count(marker: StateMarker, count: int | None) -> int:
    """Return the number of partitions that a marker states.

    Raises InputError if `count` is another number.
    """
    if count not in (None, marker.partitions):
        raise InputError(
            f"the marker of an export in partition {marker.source!r} says that there are "
            f"{marker.partitions} partitions, and there are {count}; all must say the same"
        )
    return marker.partitions


def contradicted(word: Heartbeat | EndOfPartition) -> InputError:
    """Return the error for a heartbeat or an end of a partition that contradicts earlier words."""
    what = "end" if isinstance(word, EndOfPartition) else "heartbeat"
    return InputError(
        f"the {what} of partition {word.source!r} contradicts what was said before: number "
        f"{word.partition} of {word.partitions}, {word.packets} packets; end each once"
    )


def check_packet(
    source: str, number: int, sequence: int, partitions: int | None, packets: int | None, order: str
) -> None:
    """Raise InputError for a packet whose place contradicts the known numbers; None = number not known."""
    if sequence < 0 or number < 0:
        raise InputError(
            f"a packet of {source!r} has no number, and {order} needs one; number the packets of a "
            "partition from 0, or evaluate in order of arrival"
        )
    if partitions is not None and number >= partitions:
        raise InputError(
            f"a packet of {source!r} is of partition {number}, and the input has {partitions}; number "
            "partitions from 0, and say how many there are in every end"
        )
    if packets is not None and sequence >= packets:
        raise InputError(
            f"packet {sequence} of {source!r} comes although the partition ended before it; its end must "
            "count every packet"
        )


def packets_lost(name: str) -> InputError:
    """Return the error for an input that ended before all packets of a partition came."""
    return InputError(
        f"the input ended while events of partition {name} were missing: packets were lost on the way, and "
        "rows without them would be wrong; or a stream was stopped with drain, as if it ended: stop it "
        "without"
    )


def clock_in_words(moment: int) -> str:
    """Return the moment of a clock in words, for a person."""
    words = {NO_TIME: "not known yet", END_OF_TIME: "at the end of the input"}
    return words.get(moment) or f"{np.datetime64(moment, 'us')}Z"


class StreamClock:
    """The clock of a machine that applies records by time: the clock of its partitions, or a given clock.

    moment      every record before it has been applied; NO_TIME = none, END_OF_TIME = all records
    partitions  the reports of the readers; empty if packets have no numbers and `Clock` records give the time
    """

    def __init__(self) -> None:
        self.moment = NO_TIME
        self.partitions = SourcePartitions()

    def is_new(self, batch: Batch) -> bool:
        """Note a packet; return False if the packet came before. Raises InputError for a contradiction."""
        if not self.partitions and batch.head.sequence == UNORDERED:
            return True
        return self.partitions.receive(batch)

    def after(self, content: Record) -> int:
        """Take in a record; return the moment up to which records may apply from then on.

        Raises InputError for a word that contradicts earlier words, or for an end while packets are missing.
        """
        if isinstance(content, Heartbeat | EndOfPartition | StateMarker):
            self.partitions.receive(content)
        elif isinstance(content, Clock):
            return max(self.moment, content.settled)
        elif isinstance(content, EndOfInput):
            if self.partitions and not self.partitions.ended:
                self.partitions.refuse_gaps()
            return END_OF_TIME
        return max(self.moment, self.partitions.clock)

    def in_time(
        self, records: TimedBatch, whose: str, *, unlabelled: bool = False
    ) -> tuple[TimedBatch, Rejected | None]:
        """Return the records that are not behind this clock, and the other records as refused.

        None if there are no others.

        whose  the name of the clock, in words
        """
        behind = times_of(records) < self.moment
        if not behind.any():
            return records, None
        late = records.take(np.flatnonzero(behind))
        if self.moment == END_OF_TIME:
            gaps = np.full(len(late), -1)
            details = details_of(gaps, lambda _: "its input had ended")
        else:
            gaps = self.moment - times_of(late)
            details = details_of(gaps, lambda gap: f"{in_words(gap)} behind {whose}")
        is_added = self.partitions.was_added(records.head.partition, records.source)
        reason = Reason.NEW_PARTITION if is_added else Reason.BEHIND_THE_CLOCK
        refused = Rejected("late", late, reason, details, gaps, unlabelled=unlabelled)
        return records.take(np.flatnonzero(~behind)), refused
