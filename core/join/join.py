"""LabelJoin: the state machine of a shard that gives predictions their labels.

Predictions and labels of one id meet in one shard. Both wait until the clock has passed them. The clock is
the least of all partitions of both inputs, so nothing is lost when one input is read before the other. Then
predictions and labels are matched by event time alone (`matching`). Joined events leave in packets for the
shards of the evaluators, with heartbeats that say up to which time they are complete: to an evaluator, a
shard of the join is a source partition.

What becomes of everything
    prediction  joined, or unmatched once no label can come any more
    label       used; unmatched (no prediction of its id); duplicate (another label counts, or an equal label
                came before); or invalid, if the settings treat a second label as a mistake
The time of a joined event is the time of its label. No result depends on batches, order of arrival or a wall
clock.

A joined event may be up to `output_delay` earlier than the clock, if its label came before its prediction.
So evaluators are told clock - output_delay.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ..arrays import Int64Array
from ..encoding.json import read_object, reading
from ..errors import CorruptBytesError, InputError, check_settings
from ..events.batch import EventBatch, LabelBatch, LabelRows, PredictionBatch
from ..events.columns import IdColumn
from ..events.earlier import EARLIER_LOST, EARLIER_USED, earlier
from ..events.records import Record, StateMarker, unpack_record
from ..events.rejected import Rejected
from ..events.times import END_OF_TIME, NO_TIME
from ..ids.deduplicator import Deduplicator
from ..ids.sharding import Packet
from ..shard.buffer import ReorderBuffer, RowStore, in_time_order
from ..shard.order import Ledger
from ..shard.partitions import SourcePartitions, StreamClock
from .join_settings import JoinSettings
from .matching import NOTHING, Arrivals, Departures, LabelMatcher
from .matching_steps import ORPHAN, REPEAT, SECOND, USED
from .outlet import Outlet, given_up, repeated, second_label
from .state import JoinState

_LEAST_GONE, _LEAST_GONE_BYTES = 4_096, 1 << 20
"""So many rows, or bytes, must have left before the rows kept beside the matcher are compacted."""

COUNTED = (
    "joined", "unmatched", "duplicate", "late", "labels_used", "labels_unmatched", "labels_duplicate",
    "labels_second", "labels_late", EARLIER_LOST, EARLIER_USED,
)  # fmt: skip
"""The names of the counts of a join. "labels_second" are the second labels that the settings treat as
mistakes.
"""


class LabelJoin:
    """The state machine that joins predictions with labels in one shard.

    >>> from rocsteady.core.events.records import EndOfInput
    >>> from rocsteady.core.events.columns import IdColumn, TextColumn
    >>> join = LabelJoin(JoinSettings(ttl=10, evaluator_shards=1), 0)
    >>> columns = {"ids": IdColumn.of(["a"]), "times": np.array([3])}
    >>> predictions = PredictionBatch.of(models=TextColumn.of(["m"]), scores=np.array([0.7]), **columns)
    >>> labels = LabelBatch(IdColumn.of(["a"]), np.array([5]), np.array([1], np.int8))
    >>> [join.apply(record) for record in (predictions.pack(), labels.pack())]
    [[], []]
    >>> [(key, event), word] = join.apply(EndOfInput().pack())
    >>> EventBatch.unpack(event).times, join.counts()["joined"]
    (array([5]), 1)
    """

    def __init__(self, settings: JoinSettings, number: int) -> None:
        self.settings = settings
        self.number = number
        self._matcher = settings.matcher()
        self._clock = StreamClock()
        self._outlet = Outlet(settings, number)
        self._coming = ReorderBuffer[EventBatch](), ReorderBuffer[LabelBatch]()
        self._predictions, self._labels = RowStore[EventBatch](), RowStore[LabelBatch]()
        self._greatest = NO_TIME
        self._counts = Counter(dict.fromkeys(COUNTED, 0))
        self._seen_rows, self._seen_bytes = 0, 0
        horizon = settings.deduplicate
        self._deduplicator = None if horizon is None else Deduplicator(horizon)

    def apply(self, record: bytes) -> list[Packet | Rejected]:
        """Apply one record; return joined events and heartbeats for the evaluators, and the refused records.

        Raises a `WireError` for bytes that are no record, InputError for a record that contradicts earlier
        records.
        """
        return self.receive(unpack_record(record), record)

    def receive(self, content: Record, record: bytes) -> list[Packet | Rejected]:
        """Apply one record, whose bytes are `record`, and which was read as `content`."""
        outputs: list[Packet | Rejected] = []
        if isinstance(content, EventBatch):
            raise InputError(
                f"a packet of {content.source!r} holds events that have labels; a join takes predictions and "
                "labels"
            )
        if isinstance(content, PredictionBatch | LabelBatch):
            outputs += self._take_in(content, len(record))
        moment = self._clock.after(content)
        if moment > self._clock.moment:
            outputs += self._advance(moment)
        return outputs

    def _take_in(self, batch: PredictionBatch | LabelBatch, size: int) -> Iterator[Rejected]:
        """Keep a packet's records until the clock has passed them; refuse records behind the clock."""
        times = batch.times
        if not self._clock.is_new(batch) or times is None or not len(batch):
            return
        self._greatest = max(self._greatest, int(times.max()))
        self._seen_rows, self._seen_bytes = self._seen_rows + len(batch), self._seen_bytes + size
        if isinstance(batch, LabelBatch):
            labels, late = self._clock.in_time(batch, "the clock of the join")
            self._coming[1].add(labels, size)
        else:
            events, late = self._clock.in_time(batch.events, "the clock of the join", unlabelled=True)
            self._coming[0].add(events, size)
        if late is not None:
            self._counts["labels_late" if isinstance(batch, LabelBatch) else "late"] += len(late)
            yield late

    # ---- exports (state/export.py)

    kind = "join"

    @property
    def ledger(self) -> Ledger:
        """The ledger of the packets that the partitions of both inputs have sent."""
        return self._clock.partitions

    def waiting(self) -> dict[str, int]:
        """Return how many predictions and how many labels wait for a partner or for the clock."""
        predictions, labels = self._coming
        return {
            "events": len(predictions) + self._matcher.waiting,
            "labels": len(labels) + self._matcher.held,
        }

    def pass_on(self, marker: StateMarker) -> list[Packet | Rejected]:
        """Send a marker to every shard of the evaluators, behind all packets that this shard has sent."""
        return [*self._outlet.mark(marker, self._clock.moment)]

    # ---- matching

    def _advance(self, clock: int) -> Iterator[Packet | Rejected]:
        """Match the predictions and labels that the clock has passed."""
        self._clock.moment = clock
        end = max(self._clock.partitions.greatest, self._greatest)
        released = self._coming[0].release(clock)
        if released and self._deduplicator is not None:
            kept, again = self._deduplicator.sift(in_time_order(released)[0])
            released = [kept] if len(kept) else []
            if len(again):
                self._counts["duplicate"] += len(again)
                self._counts[EARLIER_LOST] += earlier(again.records)
                yield replace(again, unlabelled=True)
        left = self._matcher.advance(
            self._arrivals(released, self._predictions),
            self._arrivals(self._coming[1].release(clock), self._labels),
            clock,
            end=end if clock == END_OF_TIME else None,
        )
        predictions = self._predictions.take(left.pair_predictions)
        labels = self._labels.take(left.pair_labels)
        if predictions is not None and labels is not None:
            self._counts["joined"] += len(predictions)
            yield from self._outlet.joined(predictions, labels)
        yield from self._left_alone(left)
        self._reclaim()
        yield from self._outlet.settle(clock)

    def _arrivals(
        self,
        parts: list[EventBatch] | list[LabelBatch],
        store: RowStore[EventBatch] | RowStore[LabelBatch],
    ) -> Arrivals:
        """Store the rows of released parts.

        Return the rows in order of time, with their numbers in the store.
        """
        if not parts:
            return NOTHING
        rows: Any = type(parts[0]).concat(parts)  # type: ignore[arg-type]
        if len(parts) > 1:
            rows = rows.take(np.argsort(rows.times, kind="stable"))
        ties = _ties(rows) if isinstance(rows, LabelBatch) else None
        return Arrivals(rows.ids, rows.times, store.append(rows), ties)

    def _left_alone(self, left: Departures) -> Iterator[Rejected]:
        """Yield dead letters: predictions and labels without a partner, second labels and repeated labels."""
        settings = self.settings
        if (labels := self._labels.take(left.gone[left.fates == USED])) is not None:
            self._counts["labels_used"] += len(labels)
            self._counts[EARLIER_USED] += earlier(labels)
        if (records := self._predictions.take(left.unmatched)) is not None:
            self._counts["unmatched"] += len(records)
            self._counts[EARLIER_LOST] += earlier(records)
            yield from given_up(settings, records, left.unmatched_ages, unlabelled=True)
        orphans = left.fates == ORPHAN
        if (labels := self._labels.take(left.gone[orphans])) is not None:
            self._counts["labels_unmatched"] += len(labels)
            yield from given_up(settings, labels, left.ages[orphans], unlabelled=False)
        if (labels := self._labels.take(left.gone[left.fates == REPEAT])) is not None:
            self._counts["labels_duplicate"] += len(labels)
            yield repeated(labels)
        if (labels := self._labels.take(left.gone[left.fates == SECOND])) is not None:
            second = second_label(settings, labels)
            self._counts["labels_second" if second.kind == "invalid" else "labels_duplicate"] += len(labels)
            yield second

    def _reclaim(self) -> None:
        """Free the rows that have left, once they are more than the rows still held."""
        least = min(_LEAST_GONE, int(_LEAST_GONE_BYTES / max(self._row_bytes, 1)))
        if len(self._predictions) + len(self._labels) > 2 * len(self._matcher) + least:
            self._renumber()

    def _renumber(self) -> None:
        predictions, labels = self._matcher.renumber()
        self._predictions.keep(predictions)
        self._labels.keep(labels)

    def wakes_at(self) -> int | None:
        """Return the moment at which the join needs a `Clock`; None = nothing waits.

        A record that came, or a record without a partner, waits at most `settings.waking` too long.
        """
        share = self.settings.waking
        waiting = [buffer for buffer in self._coming if len(buffer)]
        if waiting:
            first = min(buffer.moment(0.0) for buffer in waiting)
            most = max(buffer.moment(0.75) for buffer in waiting)
            return min(most + 1, first + share)
        if not len(self._matcher) or self._clock.moment == NO_TIME:
            return None
        return self._clock.moment + share

    # ---- state

    def to_bytes(self) -> bytes:
        """Return a snapshot: it holds everything on which later results depend."""
        self._renumber()
        predictions, labels = self._predictions.whole(), self._labels.whole()
        state = JoinState(
            self._clock.moment,
            self._greatest,
            self._outlet.greatest,
            self._outlet.packets.sent,
            self._clock.partitions.progress() if self._clock.partitions else None,
            self._matcher.to_bytes(),
            None if predictions is None else replace(predictions, ids=None, times=None),
            None if labels is None else LabelRows.of(labels),
            self._coming[0].packets(),
            self._coming[1].packets(),
            (self._seen_rows, self._seen_bytes),
            b"" if self._deduplicator is None else self._deduplicator.to_bytes(),
        )
        return state.pack(json.dumps(self.settings.meaning()))

    @classmethod
    def from_bytes(cls, data: bytes, settings: JoinSettings, number: int) -> LabelJoin:
        """Read a snapshot. The result applies later records exactly as the join that wrote the snapshot.

        Raises OtherConfigurationError if the snapshot has other settings, a `WireError` for any other bytes.
        """
        state, meaning = JoinState.unpack(data)
        check_settings(settings.meaning(), read_object(meaning, "the settings of a label join"))
        self = cls(settings, number)
        with reading("the state of a label join"):
            if len(state.sent) != int(settings.evaluator_shards):  # only the number counts; see `Shards`
                raise ValueError(f"packets are counted for {len(state.sent)} shards of evaluators")
            self._clock.moment = state.clock
            self._greatest, self._outlet.greatest = state.greatest, state.greatest_joined
            self._outlet.packets.sent = list(state.sent)
            self._seen_rows, self._seen_bytes = state.seen
            if state.sources is not None:
                self._clock.partitions = SourcePartitions.of_progress(state.sources)
            self._matcher = LabelMatcher.from_bytes(state.matcher)
            if self._deduplicator is not None:
                self._deduplicator = Deduplicator.from_bytes(state.deduplicator)
            (ids, times), (label_ids, label_times) = self._matcher.kept()
            if state.predictions is not None:
                self._predictions.append(replace(state.predictions, ids=ids, times=times))
            if state.labels is not None:
                self._labels.append(state.labels.with_keys(label_ids, label_times))
            if (len(self._predictions), len(self._labels)) != (self._matcher.waiting, self._matcher.held):
                raise CorruptBytesError("a snapshot of a join holds other records than its matcher knows of")
            for packet in state.coming_predictions:
                self._coming[0].add(EventBatch.unpack(packet), len(packet))
            for packet in state.coming_labels:
                self._coming[1].add(LabelBatch.unpack(packet), len(packet))
        return self

    def counts(self) -> dict[str, int]:
        """Return the counts in COUNTED, fates of predictions and labels since the join was made or loaded."""
        return dict(self._counts)

    def gauges(self) -> dict[str, int]:
        """Return how many predictions wait for their labels."""
        return {"predictions_waiting": len(self._matcher)}

    def snapshot_bytes(self) -> int:
        """Estimate the length of `to_bytes()` in bytes. O(1)."""
        entries = (self._row_bytes + _MATCHER_BYTES) * len(self._matcher)
        coming = sum(buffer.snapshot_bytes() for buffer in self._coming)
        if self._deduplicator is not None:
            coming += self._deduplicator.snapshot_bytes()
        return _HEAD_BYTES + int(entries) + coming + self._clock.partitions.snapshot_bytes()

    def live_bytes(self) -> int:
        """Estimate the join's memory in bytes. O(1)."""
        rows = self._row_bytes * (len(self._predictions) + len(self._labels))
        coming = sum(buffer.live_bytes() for buffer in self._coming)
        if self._deduplicator is not None:
            coming += self._deduplicator.nbytes
        return self._matcher.nbytes + int(rows) + coming

    @property
    def _row_bytes(self) -> float:
        """Mean bytes of a record in its packet, over all records so far."""
        return self._seen_bytes / max(self._seen_rows, 1)


_MATCHER_BYTES = 20
"""How many bytes an entry takes in a matcher's snapshot, besides its record, which is stored without id and
time.
"""

_HEAD_BYTES = 400


def _ties(labels: LabelBatch) -> Int64Array:
    """Return int64[n], numbers that distinguish labels of one id and time.

    A number is the label, or a hash of its classes.
    """
    classes = labels.label_classes
    if labels.class_labels is not None:
        lines = (hashlib.blake2b(line, digest_size=8).digest() for line in map(bytes, labels.class_labels))
        return np.frombuffer(b"".join(lines), "<i8").astype(np.int64)
    if classes is None:
        return labels.labels.astype(np.int64)
    texts = (value.encode("utf-8", "surrogatepass") for value in classes.values)
    digests = b"".join(hashlib.blake2b(text, digest_size=8).digest() for text in texts)
    return np.frombuffer(digests, "<i8").astype(np.int64)[classes.codes]


def warm_up(settings: JoinSettings) -> None:
    """Compile the kernels of a join, or load them from the cache folder."""
    matcher = settings.matcher()
    one = Arrivals(IdColumn.of(["a"]), np.zeros(1, np.int64), np.zeros(1, np.int64))
    matcher.advance(one, one, clock=1)
    LabelMatcher.from_bytes(matcher.to_bytes())
