"""`rocsteady replay`: plays files as JSON lines at a chosen speed, by the records' event times.

The first record is due at once. Another record is due later by d / speed seconds, where d is the difference
between its event time and the first record's, in seconds. Due records are written at once and flushed. A slow
reader, or this process, may delay records. This delay behind the schedule is measured and reported: it is the
result of a load test.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from ..core.errors import ConfigError, InputError, RocsteadyError
from ..core.events.moments import instant
from ..core.events.times import NO_TIME
from ..core.process.console import say
from ..core.process.standard_streams import write_out
from ..core.settings.durations import microseconds
from ..transforms.events import doubts
from ..transforms.events.text import rfc3339
from ..transforms.files.formats import SourceFile
from ..transforms.kafka.client import check_topic, client_settings, make_client, reason_of
from ..transforms.kafka.topic import KafkaTopic, confluent_kafka, is_kafka
from ..transforms.sinks.kafka import DELIVERY_SECONDS
from ..transforms.sources.files.listing import column_names, list_sources
from ..transforms.sources.files.timed_lines import TimedFile, TimedLines, survey, timed_lines
from ..transforms.sources.streams.folder_listing import END_FILE
from .arguments import checked_number, time_format_of
from .stopping import StopOnSignal

STDOUT = "-"
AT_ONCE = "max"

_FILE_RECORDS = 100_000
_LOOK_SECONDS = 0.1
"""The most seconds of sleep between two checks whether the job was asked to end."""

_NAP_SECONDS = 0.001
_TELL_SECONDS = 10.0


class Sink:
    """Writes lines to stdout and flushes them; the base class of other destinations of lines."""

    def put(self, lines: Sequence[str]) -> None:
        """Write lines; readers see the lines soon after.

        Raises BrokenPipeError if stdout has no reader any more.
        """
        write_out("\n".join([*lines, ""]).encode())

    def tick(self) -> None:
        """Do the work that is due by the clock; stdout has no such work."""

    def close(self, complete: bool) -> None:
        """Make the last lines visible; `complete` means that no more lines follow."""


class FolderSink(Sink):
    """Writes lines as files part-000001.jsonl, ... in a folder; each file gets its name when it is complete.

    A file is complete after `seconds`, or with 100,000 records. After the last file, the file `_END` is made.
    """

    def __init__(self, folder: Path, seconds: float) -> None:
        self._folder = folder
        self._seconds = seconds
        self._file: BinaryIO | None = None
        self._number = 0
        self._records = 0
        self._since = 0.0

    def put(self, lines: Sequence[str]) -> None:
        """Write lines into the open file, or into a new file."""
        if self._file is None:
            self._number += 1
            self._file = (self._folder / f".part-{self._number:06d}.jsonl.tmp").open("wb")
            self._records = 0
            self._since = time.monotonic()
        self._file.write("\n".join([*lines, ""]).encode())
        self._records += len(lines)
        self.tick()

    def tick(self) -> None:
        """Give the open file its final name if the file is complete."""
        if self._file is not None and (
            self._records >= _FILE_RECORDS or time.monotonic() - self._since >= self._seconds
        ):
            self._rename()

    def close(self, complete: bool) -> None:
        """Give the open file its final name; if `complete`, make `_END`."""
        self._rename()
        if complete:
            (self._folder / END_FILE).touch()

    def _rename(self) -> None:
        if self._file is not None:
            self._file.close()
            Path(self._file.name).rename(self._folder / f"part-{self._number:06d}.jsonl")
            self._file = None


class TopicSink(Sink):
    """Sends lines as messages of a Kafka topic; the client spreads the messages over the partitions."""

    def __init__(self, topic: KafkaTopic) -> None:
        self._topic = topic
        check_topic(topic, f"--output {topic.url}")
        settings = client_settings(topic, acks="all", linger_ms=5, compression_type="lz4")
        self._producer = make_client(confluent_kafka().Producer, settings)
        self._error: Any = None

    def put(self, lines: Sequence[str]) -> None:
        """Hand lines to the client, and wait while its queue is full."""
        for line in lines:
            while True:
                try:
                    self._producer.produce(self._topic.name, line.encode(), on_delivery=self._heard)
                    break
                except BufferError:
                    self._producer.poll(_LOOK_SECONDS)
                    self.tick()
        self.tick()

    def tick(self) -> None:
        """Check the delivery of messages. Raises RocsteadyError for a message that was not delivered."""
        self._producer.poll(0)
        if self._error is not None:
            raise RocsteadyError(
                f"{self._topic.url}: a message was not delivered ({reason_of(self._error)}); see whether its "
                "brokers answer"
            )

    def close(self, complete: bool) -> None:  # noqa: ARG002
        """Wait until every message is delivered."""
        waiting = self._producer.flush(DELIVERY_SECONDS)
        self.tick()
        if waiting:
            raise RocsteadyError(f"{self._topic.url}: {waiting:,} messages were not delivered in time")

    def _heard(self, error: Any, _: Any) -> None:
        self._error = self._error or error


@dataclass
class Schedule:
    """The times at which records are due.

    The first is due at once, each later record d / speed seconds after it.

    speed  seconds of event time in a second; inf = all records are due
    first  the event time of the first record, microseconds
    begun  the moment at which the first record is due, on the monotonic clock
    """

    speed: float
    first: int
    begun: float

    def due(self, event_time: int) -> float:
        """Return the moment at which a record is due."""
        return self.begun + (event_time - self.first) / 1e6 / self.speed

    def reached(self, moment: float) -> float:
        """Return the event time up to which records are due at a moment."""
        if math.isinf(self.speed):
            return math.inf
        return self.first + (moment - self.begun) * self.speed * 1e6


@dataclass
class Played:
    """The figures of a replay.

    Records, seconds taken, the greatest delay, and the delay of the last record.
    """

    records: int = 0
    seconds: float = 0.0
    most_behind: float = 0.0
    behind: float = 0.0

    def words(self, speed: float) -> str:
        """Return a sentence about the rate; with a finite speed, also about the delay behind the schedule."""
        rate = self.records / self.seconds if self.seconds > 0 else 0.0
        text = f"{self.records:,} records played in {self.seconds:.1f} s, {rate:,.0f}/s"
        if math.isinf(speed):
            return text
        return f"{text}; at most {self.most_behind:.2f} s behind schedule, {self.behind:.2f} s at last"


def replay_command(options: argparse.Namespace) -> int:
    """Run the command with parsed options; return the exit status."""
    speed = _speed(options.speed)
    start = NO_TIME if options.start is None else instant(options.start)
    if start is None:
        raise ConfigError(f"--start {options.start!r}: give a date or a time, such as 2013-07-01T12:00")
    limit = _limit(options.limit)
    sink = _sink(options.output, options.file_every, options.kafka_option)
    unit, form = options.time_unit, time_format_of(options)
    doubts.reset()
    files = [survey(source, options.time, unit, form) for source in list_sources(options.sources)]
    if not any(file.last >= max(start, NO_TIME + 1) for file in files):
        raise InputError("no record is to be played: the files have none, or --start is behind all of them")
    text = _text_columns(options.text, [file.source for file in files])
    _announce(files, speed)
    with StopOnSignal() as stop:
        lines = timed_lines(files, options.time, unit, text, start, form)
        try:
            played = play(lines, sink, speed, limit, stop)
            sink.close(complete=stop.signal is None)
        except OSError as error:
            if isinstance(error, BrokenPipeError):
                raise
            raise RocsteadyError(f"--output {options.output} cannot be written: {error.strerror}") from None
    say(played.words(speed))
    return 0 if stop.signal is None else 128 + stop.signal


def play(
    pieces: Iterable[TimedLines],
    sink: Sink,
    speed: float,
    limit: float = math.inf,
    stop: StopOnSignal | None = None,
) -> Played:
    """Write records when they are due, `speed` seconds of event time per second.

    If `speed` is inf, write them without waiting.

    Records that are due together are written together. Ends after `limit` records, or at `stop`'s signal.
    """
    played = Played()
    started = told = time.monotonic()
    schedule = Schedule(speed, NO_TIME, started)
    for times, lines in pieces:
        at = 0
        while at < len(lines):
            if played.records >= limit or (stop is not None and stop.is_asked("the last record is whole")):
                return played
            now = time.monotonic()
            if played.records == 0:
                started = now
                schedule = Schedule(speed, int(times[at]), started)
            due = schedule.due(int(times[at]))
            end = int(np.searchsorted(times, schedule.reached(now), "right"))
            end = min(end, at + int(min(limit - played.records, len(lines))))
            if end > at:
                sink.put(lines[at:end])
                now = time.monotonic()
                played.behind = now - due
                played.most_behind = max(played.most_behind, played.behind)
                played.records += end - at
                played.seconds = now - started
                at = end
            else:
                time.sleep(min(max(due - now, _NAP_SECONDS), _LOOK_SECONDS))
            sink.tick()
            if now - told >= _TELL_SECONDS:
                told = now
                say(played.words(speed))
    return played


def _announce(files: Sequence[TimedFile], speed: float) -> None:
    """Print which files will be played, and warnings about them."""
    timed = [file for file in files if file.last != NO_TIME]
    first, last = min(file.first for file in timed), max(file.last for file in timed)
    ends = rfc3339(pa.array([first, last], pa.timestamp("us", "UTC"))).to_pylist()
    takes = "as fast as they are taken"
    if not math.isinf(speed):
        takes = f"at {speed:g} times real time in {_clock((last - first) / 1e6 / speed)}"
    say(f"{sum(file.records for file in files):,} records of {ends[0]} to {ends[1]}, {takes}")
    for file in files:
        if not file.rises:
            say(
                f"{file.source.name} is not in order of time: its {file.records:,} records are sorted in "
                "memory"
            )
        if file.untimed:
            say(
                f"{file.untimed:,} records of {file.source.name} have no time that can be read: each goes "
                "with the one before it"
            )
        if file.no_rows:
            say(f"{file.no_rows:,} records of {file.source.name} are no rows, and are left out")


def _clock(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d} h"


def _speed(text: str) -> float:
    if text == AT_ONCE:
        return math.inf
    wanted = "how many seconds of event time pass in a second, such as 60, or max"
    seconds = text.removesuffix("x")
    return checked_number(f"--speed {text!r}", seconds, float, lambda speed: 0 < speed < math.inf, wanted)


def _text_columns(asked: Sequence[str], sources: Sequence[SourceFile]) -> tuple[str, ...]:
    """Return the columns that --text names. Raises InputError for a column that no file has."""
    names = tuple(name for listed in asked for name in listed.split(","))
    if names:
        there = {name for source in sources for name in column_names(source) or ()}
        for name in names:
            if name not in there:
                raise InputError(
                    f"--text {name}: no file has such a column; there are {', '.join(sorted(there))}"
                )
    return names


def _limit(text: str | None) -> float:
    if text is None:
        return math.inf
    wanted = "a number of records, 1 or more"
    return checked_number(f"--limit {text!r}", text, int, lambda number: number >= 1, wanted)


def _sink(output: str, every: str | None, kafka: Sequence[str]) -> Sink:
    if kafka and not is_kafka(output):
        raise ConfigError(
            f"--kafka-option {kafka[0]} is for a topic; name one, --output kafka://host:port/topic"
        )
    if output == STDOUT or is_kafka(output):
        if every is not None:
            raise ConfigError(f"--file-every {every}: name the folder of the files with --output DIR")
        return TopicSink(KafkaTopic.parse(output, kafka)) if is_kafka(output) else Sink()
    seconds = microseconds(every or "10s", "--file-every") / 1e6
    folder = Path(output)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"--output {output} is not a folder; replay writes many files, or - for stdout")
    try:
        folder.mkdir(exist_ok=True)
        if any(folder.iterdir()):
            raise InputError(f"--output {output} is not empty; name a folder that is to be made")
    except OSError as error:
        raise InputError(f"--output {output} cannot be made: {error.strerror}; name another folder") from None
    return FolderSink(folder, seconds)
