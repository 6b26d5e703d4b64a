"""Events that are known beforehand, and their rows: written to a topic, watched as they come, compared.

The events are a function of their sizes, in order of time within every partition. So their rows are known:
they are those of the local runner over the same events in a file.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from rocsteady.transforms.tables.table_rows import distinct_rows, parts_of

from .processes import COMMAND, run

END = "~end"
"""The model of the last event of every partition: all events before it are settled by its time."""

_DAY = 86_400_000_000
_START = 1_767_225_600_000_000  # 2026-01-01
_POLL = 0.1
_QUEUE = 400_000


@dataclass(frozen=True)
class Events:
    """Events of two days.

    number       of all of them; a multiple of models * every
    models       how many there are; each has as many events as another
    partitions   of the topic; an event's is random
    every        events between two rows of a model
    """

    number: int = 160_000
    models: int = 20
    partitions: int = 4
    every: int = 100

    def __post_init__(self) -> None:
        if self.number % (self.models * self.every):
            raise ValueError(f"{self.number} events are no multiple of {self.models * self.every}")

    @property
    def rows(self) -> int:
        """How many rows they make."""
        return self.number // self.every

    def records(self) -> Iterator[tuple[int, bytes]]:
        """Yield (partition, JSON) in order of time."""
        random = np.random.default_rng(8)
        models = random.permutation(np.arange(self.number) % self.models).tolist()
        partitions = random.integers(0, self.partitions, self.number).tolist()
        labels = (random.random(self.number) < 0.3).astype(int)
        scores = (random.normal(labels, 1.5)).round(6).tolist()
        step = 2 * _DAY // self.number
        for place, (model, partition, label, score) in enumerate(
            zip(models, partitions, labels.tolist(), scores, strict=True)
        ):
            event = {"model": f"m{model:04d}", "score": score, "label": label}
            event |= {"time": _START + place * step, "id": f"e{place}"}
            yield partition, json.dumps(event, separators=(",", ":")).encode()
        for partition in range(self.partitions):
            end = {"model": END, "score": 0.5, "label": partition % 2, "time": _START + 3 * _DAY}
            yield partition, json.dumps({**end, "id": f"end{partition}"}, separators=(",", ":")).encode()

    def options(self, order: str = "time:0s") -> list[str]:
        """Return the command's options for them: a window of which the order of events decides."""
        return [
            "--time", "time", "--time-unit", "us", "--id", "id", "--window", "last:1000",
            "--every", str(self.every), "--order", order,
        ]  # fmt: skip

    def rows_of_local_runner(self, folder: Path, *more: str, order: str = "time:0s") -> pa.Table:
        """Return the rows of an undisturbed run over a file."""
        events, rows = folder / "events.jsonl", folder / "rows.parquet"
        with events.open("wb") as lines:
            lines.writelines(record + b"\n" for _, record in self.records())
        words = ["evaluate", str(events), *self.options(order), *more, "--output", str(rows)]
        run(sys.executable, "-c", COMMAND, *words)
        return sorted_rows([str(rows)])[0]


def sorted_rows(sources: Sequence[str]) -> tuple[pa.Table, int]:
    """Return the rows of sources in order of their identity, each once, without END's; and the repeats."""
    table, repeats = distinct_rows(sources)
    kept = table.filter(pa.array([model != END for model in table.column("model").to_pylist()], pa.bool_()))
    keys = [(name, "ascending") for name in ("model", "slice", "pane_start", "row")]
    return kept.sort_by(keys).replace_schema_metadata(None), repeats


def differences(found: pa.Table, expected: pa.Table) -> tuple[int, int]:
    """Return how many rows are lost, and how many are there that should not be, or be otherwise."""
    names = ("model", "slice", "row")

    def by_identity(table: pa.Table) -> dict[tuple[Any, ...], str]:
        return {tuple(row[name] for name in names): repr(row) for row in table.to_pylist()}

    one, other = by_identity(found), by_identity(expected)
    return len(other.keys() - one.keys()), sum(other.get(key) != row for key, row in one.items())


def letters_in(broker: str, topic: str) -> int:
    """Return how many dead letters a topic with one partition holds, each once by its place in the input."""
    consumer = Consumer({"bootstrap.servers": broker, "group.id": "letters", "log_level": 0})
    place = TopicPartition(topic, 0, 0)
    _, end = consumer.get_watermark_offsets(place, timeout=30)
    consumer.assign([place])
    places, seen = set(), 0
    while seen < end:
        for message in consumer.consume(1_000, _POLL):
            if message.error() is None:
                letter = json.loads(message.value())
                places.add((letter["source"], letter["position"]))
                seen = message.offset() + 1
    consumer.close()
    return len(places)


class Feed:
    """Writes the events to a topic, from a thread of its own: some at once, others, once told, at a pace.

    before  is given (place, partition, record) and returns what to write: changed, twice, or otherwise
    """

    def __init__(
        self,
        broker: str,
        topic: str,
        events: Events,
        *,
        at_once: int,
        rate: float,
        before: Callable[[int, int, bytes], Sequence[tuple[int, bytes]]] | None = None,
    ) -> None:
        self._settings = {
            "bootstrap.servers": broker,
            "enable.idempotence": True,
            "delivery.timeout.ms": 300_000,
            "queue.buffering.max.messages": _QUEUE,
            "log_level": 0,
        }
        self._topic, self._events, self._at_once, self._rate = topic, events, at_once, rate
        self._before = before
        self._failure: BaseException | None = None
        self.written = 0
        self._stopped, self._told = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def go_on(self) -> None:
        """Write the others, so many a second."""
        self._told.set()

    def join(self) -> None:
        """Wait until all is written."""
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        self._stopped.set()
        self._told.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        try:
            self._write()
        except BaseException as failure:
            self._failure = failure

    def _write(self) -> None:
        errors: list[Any] = []
        producer = Producer(self._settings)

        def heard(error: Any, _: Any) -> None:
            if error is not None:
                errors.append(error)

        started = 0.0
        for place, (partition, record) in enumerate(self._events.records()):
            if place == self._at_once:
                producer.flush(300)
                self._told.wait()
                started = time.monotonic()
            if place % 100 == 0:
                producer.poll(0)
                if len(producer) > _QUEUE // 2:
                    producer.flush(300)
            if place > self._at_once and place % 100 == 0:
                ahead = (place - self._at_once) / self._rate - (time.monotonic() - started)
                if ahead > 0:
                    time.sleep(ahead)
            if self._stopped.is_set():
                return
            given = [(partition, record)] if self._before is None else self._before(place, partition, record)
            for to, what in given:
                producer.produce(self._topic, what, partition=to, on_delivery=heard)
            self.written = place + 1
        producer.flush(300)
        if errors:
            raise RuntimeError(f"events were not written: {errors[0]}")


class Watch:
    """Sees every row as it comes; a row is new the first time that its identity is seen. See `new_rows`.

    messages  how many came, repeats among them
    times     by the clock, of each new row
    """

    def __init__(self) -> None:
        self.messages = 0
        self.times: list[float] = []
        self._seen: set[tuple[Any, ...]] = set()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def new(self) -> int:
        return len(self.times)

    def longest_silence(self, since: float) -> float:
        """Return the longest time without a new row, from a moment on; in seconds."""
        marks = [since, *(at for at in self.times if at > since)]
        return max((later - earlier for earlier, later in pairwise(marks)), default=0.0)

    def stop(self) -> None:
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join()

    def identities(self) -> Iterator[tuple[str, Any]]:
        """Yield model and identity of the rows that came since it was last asked, waiting a moment."""
        raise NotImplementedError

    def _run(self) -> None:
        while not self._stopped.is_set():
            for model, identity in self.identities():
                self.messages += 1
                if model != END and identity not in self._seen:
                    self._seen.add(identity)
                    self.times.append(time.monotonic())


class TopicWatch(Watch):
    """Of a topic with one partition."""

    def __init__(self, broker: str, topic: str) -> None:
        super().__init__()
        self._consumer = Consumer({"bootstrap.servers": broker, "group.id": "watch", "log_level": 0})
        self._consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])

    def identities(self) -> Iterator[tuple[str, Any]]:
        for message in self._consumer.consume(1_000, _POLL):
            if message.error() is None:
                yield message.key().decode(), tuple(value for _, value in message.headers())

    def stop(self) -> None:
        super().stop()
        self._consumer.close()


class FolderWatch(Watch):
    """Of a folder of parts, lines of JSON."""

    def __init__(self, folder: str) -> None:
        super().__init__()
        self._folder = folder
        self._read: set[str] = set()

    def identities(self) -> Iterator[tuple[str, Any]]:
        time.sleep(_POLL)
        for part in set(parts_of(self._folder)) - self._read:
            self._read.add(part)
            for line in Path(part).read_text().splitlines():
                row = json.loads(line)
                yield row["model"], (row["model"], row["slice"], row["row"])
