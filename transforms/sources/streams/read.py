"""Partitions of streams as packets on Beam: the same reader, driven in a way that the runner supports.

    bounded   every partition has an end: one call reads a whole partition, on any runner
    impulse   Flink: a clock in the runner ticks, and at each tick a stateful DoFn reads on from the offset
              in its state. Flink's own checkpoints hold the offset, and stay as small as the offset
    source    other runners that stream (Prism): an `UnboundedSource`, whose checkpoint mark is the same state

The runner commits the offsets together with the machines' state. The watermark does not follow event times,
and no step needs the watermark: packets carry the heartbeats from which machines compute their clock. When
every partition has an end, the records of these ends cause the last rows.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

import apache_beam as beam
from apache_beam.coders import BytesCoder, Coder
from apache_beam.io.flink.flink_streaming_impulse_source import FlinkStreamingImpulseSource
from apache_beam.io.unbounded_source import (
    CheckpointMark,
    ReadFromUnboundedSource,
    UnboundedReader,
    UnboundedSource,
)
from apache_beam.metrics.metric import Metrics
from apache_beam.pvalue import PBegin, TaggedOutput
from apache_beam.transforms.userstate import ReadModifyWriteStateSpec
from apache_beam.utils.timestamp import MAX_TIMESTAMP, MIN_TIMESTAMP, Timestamp

from ....core.events.times import NO_TIME
from ....core.ids.sharding import shard_of
from ...beam.metrics import METRICS_NAMESPACE, count, count_records, newest_of, set_gauge
from ...beam.state_sizes import measure_bytes
from ...events.batches import from_ipc, to_ipc
from ..files.read import DEAD_LETTERS, EventFiles, event_files, with_dead_letters
from .reader import BATCH_MESSAGES, FEW_RECORDS, Step, StreamReader
from .stream_input import StreamInput

Way = Literal["bounded", "impulse", "source"]
"""How a runner reads the partitions; see the module."""

TICK_SECONDS = 0.1
"""Seconds between two ticks. A row waits half a tick on average; each bundle costs Flink some 10 ms."""

_BUNDLE_MESSAGES = 40_000
"""The most messages that a DoFn reads at ticks in one bundle, of all of its partitions together.

A checkpoint waits until a whole bundle is processed, by later steps too. While a worker starts, or while
later steps are slow, ticks gather in one bundle. Without this limit, each tick read up to 100,000 messages:
one bundle held 4M events, and its checkpoint took 194 s. After a kill before the end of the checkpoint, all
messages were read again. With one bundle in 0.1 s, the limit is 400,000 messages a second, more than a core
reads.
"""

_BOUNDED_WAIT = 1.0
_STEPS_IN_BUNDLE = 20
_BUNDLE_SECONDS = 0.5
_GAUGE_SECONDS = 1.0


class _Counts:
    """Counts the steps of readers, for Beam's metrics."""

    def __init__(self) -> None:
        self._told: dict[str, float] = {}
        self._added: dict[str, int] = {}

    def count(self, reader: StreamReader, step: Step) -> None:
        """Count a step's records; once a second, also set the gauges of the reader's partition."""
        now = time.monotonic()
        name, role = reader.source.partition.name, reader.source.role
        if step.records:
            count_records(role, step.records, step.letters, step.times, step.bytes_read)
        if now - self._told.get(name, -_GAUGE_SECONDS) < _GAUGE_SECONDS:
            return
        self._told[name] = now
        for cursor in reader.cursors:
            set_gauge("offset", cursor.partition.name, cursor.next)
            if cursor.high_water != NO_TIME:
                set_gauge(newest_of(role), cursor.partition.name, cursor.high_water // 1_000_000)
            if (lag := cursor.lag()) is not None:
                set_gauge("lag", cursor.partition.name, lag)
                Metrics.distribution(METRICS_NAMESPACE, "lag").update(lag)
        if reader.added > self._added.get(name, 0):
            count("added_partitions", reader.added - self._added.get(name, 0))
            self._added[name] = reader.added


class _ReadToEnd(beam.DoFn):
    """Reads a partition that has an end; its outputs are packets, and dead letters as record batches."""

    def __init__(self, shards: int) -> None:
        self._shards = shards

    def setup(self) -> None:
        """Begin to count steps."""
        self._counts = _Counts()

    def process(self, source: StreamInput) -> Iterator[Any]:
        """Read the whole partition."""
        reader = StreamReader(source, self._shards)
        while not reader.ended:
            step = reader.step(wait=_BOUNDED_WAIT)
            self._counts.count(reader, step)
            yield from _outputs(step)
        reader.close()


_POSITION = ReadModifyWriteStateSpec("position", BytesCoder())


class _ReadAtTick(beam.DoFn):
    """Reads at ticks: takes (name of a partition, tick), gives packets, and dead letters in batches.

    The offset is state.

    resumes  see `ReadStream`
    """

    def __init__(self, inputs: Sequence[StreamInput], shards: int, *, resumes: bool = False) -> None:
        self._inputs = {_key(source): source for source in (_resumed(inputs) if resumes else inputs)}
        self._shards = shards
        self._resumes = resumes

    def setup(self) -> None:
        """Begin to count steps."""
        measure_bytes()
        self._counts = _Counts()
        self._readers: dict[str, tuple[bytes, StreamReader]] = {}

    def start_bundle(self) -> None:
        """Begin to count the messages of this bundle."""
        self._left: dict[str, int] = {}

    def teardown(self) -> None:
        """Close the partitions that were read."""
        for _, reader in self._readers.values():
            reader.close()

    def process(
        self,
        element: tuple[str, bytes],
        position: Any = beam.DoFn.StateParam(_POSITION),  # noqa: B008 - Beam's way
    ) -> Iterator[Any]:
        """Read on, up to the partition's end or to its share of the bundle; the next bundle continues."""
        key, _ = element
        share = _BUNDLE_MESSAGES // len({key, *self._readers})
        left = self._left.get(key, max(share, FEW_RECORDS))
        if left <= 0:
            return
        committed = position.read()
        if committed is None and self._resumes and not self._inputs[key].partition.is_first:
            return
        known, reader = self._readers.pop(key, (None, None))
        if reader is None or known != committed:
            reader = StreamReader(self._inputs[key], self._shards, committed)
        while left > 0:
            step = reader.step(min(left, BATCH_MESSAGES))
            self._counts.count(reader, step)
            yield from _outputs(step)
            left -= step.records
            if step.at_end or step.records < FEW_RECORDS:
                break
        self._left[key] = left
        state = reader.state()
        if state != committed:
            position.write(state)
        self._readers[key] = (state, reader)


def _key(source: StreamInput) -> str:
    """Return the key of a partition's state.

    The key stays the same if the job's topics get more partitions.
    """
    partition = source.partition
    return partition.name if partition.known else f"partition-{source.number:04d}"


def _resumed(inputs: Sequence[StreamInput]) -> list[StreamInput]:
    """Return the inputs of a job that resumes from a runner's savepoint.

    Since the savepoint, topics may have got more partitions. The readers' states have the numbers of
    partitions at that time, and the reader of an older partition reads the added partitions. So a partition
    without a state is not read, as in a job that never stopped. If no reader has a state yet, the reader of
    partition 0 of each topic reads all other partitions as added ones.
    """
    firsts = [source for source in inputs if source.partition.is_first]
    places = {_key(source): number for number, source in enumerate(firsts)}
    return [
        replace(
            source,
            number=places[_key(source)],
            partitions=len(firsts),
            partition=source.partition.as_of(1),
        )
        if source.partition.is_first
        else source
        for source in inputs
    ]


class _Impulses(FlinkStreamingImpulseSource):
    """The impulses of Flink's own clock. Beam's class shares one `config` among all clocks.

    Here each clock has its own.
    """

    def __init__(self, seconds: float, count: int) -> None:
        super().__init__()
        self.config = {"interval_ms": max(round(seconds * 1_000), 1), "message_count": count}


_Given = tuple[list[tuple[str, bytes]], list[bytes]]
"""The output of a step as one element: packets, and dead letters as Arrow IPC."""


class _Mark(CheckpointMark):
    """The state of a reader as Beam's checkpoint mark."""

    def __init__(self, state: bytes) -> None:
        self.state = state


class _MarkCoder(Coder):
    def encode(self, mark: _Mark) -> bytes:
        """Return the bytes of the state."""
        return mark.state

    def decode(self, encoded: bytes) -> _Mark:
        """Return the mark with a state, given as bytes."""
        return _Mark(encoded)

    def is_deterministic(self) -> bool:
        """Return True: equal marks have equal bytes."""
        return True


class _Source(UnboundedSource):
    """Some partitions, as a source of Beam. An element is the output of one step."""

    def __init__(self, inputs: Sequence[StreamInput], shards: int) -> None:
        self._inputs = [*inputs]
        self._shards = shards

    def split(self, desired_num_splits: int, options: Any = None) -> list[_Source]:  # noqa: ARG002
        """Return a source for each partition."""
        return [_Source([source], self._shards) for source in self._inputs]

    def create_reader(self, options: Any, checkpoint_mark: CheckpointMark | None) -> _SourceReader:  # noqa: ARG002
        """Return the reader of the source's one partition."""
        (source,) = self._inputs
        state = checkpoint_mark.state if isinstance(checkpoint_mark, _Mark) else None
        return _SourceReader(StreamReader(source, self._shards, state))

    def get_checkpoint_mark_coder(self) -> Coder:
        """Return the coder of marks."""
        return _MarkCoder()


class _SourceReader(UnboundedReader):
    """A `StreamReader`, as a reader of Beam. A record of Beam is a step that has an output."""

    def __init__(self, reader: StreamReader) -> None:
        self._reader = reader
        self._step: Step | None = None
        self._rests = False
        self._counts = _Counts()

    def start(self) -> bool:
        """Begin to read; return whether the first step has an output."""
        return self.advance()

    def advance(self) -> bool:
        """Read on; return whether the step has an output.

        After a step of few records, or at the end, the bundle ends.
        """
        rests, self._rests = self._rests, False
        if rests or self._reader.ended:
            return False
        self._step = self._reader.step()
        self._counts.count(self._reader, self._step)
        self._rests = self._step.at_end or self._step.records < FEW_RECORDS
        return bool(self._step.packets or self._step.records)

    def get_current(self) -> _Given:
        """Return the output of the last step."""
        step = self._step
        if step is None:
            raise AssertionError("nothing was read yet")
        return step.packets, [to_ipc(step.letters.batch)] if len(step.letters) else []

    def get_current_timestamp(self) -> Timestamp:
        """Return the earliest time, because event times are inside the packets."""
        return MIN_TIMESTAMP

    def get_watermark(self) -> Timestamp:
        """Return the end of time if the partition has ended, else the beginning of time."""
        return MAX_TIMESTAMP if self._reader.ended else MIN_TIMESTAMP

    def get_checkpoint_mark(self) -> _Mark:
        """Return the reader's state as a mark."""
        return _Mark(self._reader.state())


def _outputs(step: Step) -> Iterator[Any]:
    yield from step.packets
    if len(step.letters):
        yield TaggedOutput(DEAD_LETTERS, step.letters.batch)


class ReadStream(beam.PTransform[PBegin, EventFiles]):
    """Reads partitions of streams into packets for `EvaluateShards` or `JoinShards`.

    It counts as `ReadEventFiles` does. The namespace "rocsteady" has more metrics here: the gauges "offset
    NAME" and "lag NAME" of every partition, the distribution `lag` (messages that are not read yet), and the
    counter `added_partitions` (partitions that were added after the job's start, and are read, too).

    way    see the module. "bounded" needs an end of every partition.
    tick   seconds between two reads of "impulse". "source" waits half of this time after a read of no
           records.
    ticks  the number of ticks of "impulse" before the job ends by itself; 0 = no end.
    resumes  whether the runner gives "impulse" the states of an earlier job, from a savepoint.
    """

    def __init__(
        self,
        inputs: Sequence[StreamInput],
        shards: int,
        way: Way,
        tick: float = TICK_SECONDS,
        ticks: int = 0,
        *,
        resumes: bool = False,
    ) -> None:
        super().__init__()
        shard_of((), shards)  # raises ConfigError
        self._inputs = [*inputs]
        self._shards = shards
        self._way = way
        self._tick = tick
        self._ticks = ticks
        self._resumes = resumes

    def expand(self, begin: PBegin) -> EventFiles:
        """Apply to the beginning of a pipeline."""
        return event_files(getattr(self, f"_{self._way}")(begin))

    def _bounded(self, begin: PBegin) -> Any:
        return (
            begin
            | "Partitions" >> beam.Create(self._inputs)
            | "Spread" >> beam.Reshuffle()
            | "Read" >> with_dead_letters(beam.ParDo(_ReadToEnd(self._shards)))
        )

    def _impulse(self, begin: PBegin) -> Any:
        keys = [(_key(source), b"") for source in self._inputs]
        reader = _ReadAtTick(self._inputs, self._shards, resumes=self._resumes)
        return (
            begin
            | "Clock" >> _Impulses(self._tick, self._ticks)
            | "Partitions" >> beam.FlatMap(lambda _: keys).with_output_types(tuple[str, bytes])
            | "Read" >> with_dead_letters(beam.ParDo(reader))
        )

    def _source(self, begin: PBegin) -> Any:
        source = _Source(self._inputs, self._shards)
        steps = begin | "Read" >> ReadFromUnboundedSource(
            source, self._tick / 2, _STEPS_IN_BUNDLE, _BUNDLE_SECONDS
        )
        return steps | "Packets" >> with_dead_letters(beam.FlatMap(_spread))


def _spread(given: _Given) -> Iterator[Any]:
    packets, letters = given
    yield from packets
    for each in letters:
        yield TaggedOutput(DEAD_LETTERS, from_ipc(each))
