"""One model that gets all events of a stream: python -m benchmarks.hot_model [--quick].

The shard of the model evaluates packets of events on one core, as on a worker, but without Beam. Processor
time is measured. The page goes to docs/benchmarks/hot_model.md.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import numpy as np
from rocsteady.core.events.batch import EventBatch
from rocsteady.core.events.columns import IdColumn, TextColumn
from rocsteady.core.ids.sharding import Packets, shard_key
from rocsteady.core.settings.evaluator import EvaluatorSettings
from rocsteady.core.settings.table import TableSettings
from rocsteady.core.settings.windows import EveryEvents, parse_window
from rocsteady.core.shard.protocol import MachineCache, ShardCells, ShardProtocol
from rocsteady.transforms.evaluate.shards import TableFactory

from .pages import with_commit
from .processes import ROOT, table

PACKETS = (100, 1_000, 10_000)
"""Events of a packet."""

_STEP_MICROS = 36_000
"""Microseconds between two events: an hour has 100,000."""

_START = 1_767_225_600_000_000  # 2026-01-01
_FILLING = 10_000
_KEY = shard_key(0)


@dataclass(frozen=True)
class Sizes:
    """How much is measured.

    events   by the size of a packet, that are measured
    turns    of each measurement
    windows  (window, events that fill it)
    """

    events: tuple[int, ...]
    turns: int
    windows: tuple[tuple[str, int], ...]


WHOLE = Sizes(
    (50_000, 200_000, 400_000),
    3,
    (
        ("last:1000", 1_000), ("last:10000", 10_000), ("last:100000", 100_000), ("last:1h", 100_000),
        ("all", 500_000),
    ),
)  # fmt: skip
QUICK = Sizes((10_000, 20_000, 40_000), 1, (("last:1000", 1_000), ("last:1h", 100_000), ("all", 100_000)))


@dataclass
class Value:
    """A cell of a runner, in memory."""

    value: bytes | None = None

    def read(self) -> bytes | None:
        return self.value

    def write(self, value: bytes) -> None:
        self.value = value


@dataclass
class Log:
    """A bag of a runner, in memory."""

    values: list[bytes] = field(default_factory=list)

    def read(self) -> list[bytes]:
        return self.values

    def add(self, value: bytes) -> None:
        self.values.append(value)

    def clear(self) -> None:
        self.values.clear()


class Shard:
    """The shard of the model, as a worker has it: its machine, its state in cells, the process's cache."""

    def __init__(self, window: str, every: int) -> None:
        settings = EvaluatorSettings(window=parse_window(window), every=EveryEvents(every), order="time:0s")
        self._factory = TableFactory(TableSettings(settings, shards=1))
        self._factory.warm_up()
        self._protocol = ShardProtocol(self._factory, MachineCache(), "hot")
        self._cells = ShardCells(Value(), Log(), Value())
        self._packets = Packets("events", 0, 1, 1)
        self._sent = 0

    def packed(self, events: int, size: int) -> list[bytes]:
        """Return the next events in packets of a size, a heartbeat behind each, as a reader gives them."""
        records = []
        for first in range(self._sent, self._sent + events, size):
            batch = events_from(first, min(size, self._sent + events - first))
            settled = int(batch.times[-1])
            records += [record for _, record in self._packets.split(batch)]
            records += [record for _, record in self._packets.heartbeats(settled, settled)]
        self._sent += events
        return records

    def apply(self, records: Sequence[bytes]) -> int:
        """Apply records; return the number of rows."""
        outputs = [self._protocol.apply(_KEY, None, self._cells, record) for record in records]
        return sum(len(rows) for output in outputs for rows in output)


def events_from(first: int, number: int) -> EventBatch:
    """Return events of the model in order of time, from an ordinal on."""
    random = np.random.default_rng(first)
    labels = (random.random(number) < 0.3).astype(np.int8)
    return EventBatch(
        TextColumn(np.zeros(number, np.int32), ("m0000",)),
        random.normal(labels, 1.5).round(6),
        labels,
        times=_START + _STEP_MICROS * np.arange(first, first + number),
        ids=IdColumn.of([f"e{place}" for place in range(first, first + number)]),
        source="events",
    )


def evaluated(window: str, filling: int, every: int, sizes: Sizes) -> list[float]:
    """Return the events/s of the model's shard once its window is full, for each size of packets."""
    shard = Shard(window, every)
    shard.apply(shard.packed(filling, _FILLING))
    paces: dict[int, list[float]] = {size: [] for size in PACKETS}
    for _ in range(sizes.turns):
        for size, events in zip(PACKETS, sizes.events, strict=True):
            records = shard.packed(events, size)
            began = time.process_time()
            rows = shard.apply(records)
            paces[size].append(events / (time.process_time() - began))
            # the newest event waits for the next heartbeat, and a row with it
            if abs(rows - events // every) > 1:
                raise AssertionError(f"{rows} rows of {events} events, one every {every}")
    return [median(paces[size]) for size in PACKETS]


def page(sizes: Sizes) -> Iterator[str]:
    yield f"""# One hot model, measured

Written by `python -m benchmarks.hot_model` on a machine with {os.cpu_count()} cores; load
{os.getloadavg()[0]:.1f} when it began. One model gets all events. Figures are millions of events for each
second of processor time, which is what one core does; medians of {sizes.turns}. A packet is what one step of
a reader sends to the shard. [Flink, measured](flink.md) has the events a second that a core reads from a
topic ("only read and count").

The shard brings the events of each packet in order of time and evaluates them. It also writes its log and its
snapshots, as on a worker. `last:1h` holds 100,000 events, and `all` holds {sizes.windows[-1][1]:,} when the
measurement begins.
"""
    rows = []
    for window, filling in sizes.windows:
        for every in (1_000, 10_000):
            paces = evaluated(window, filling, every, sizes)
            rows.append([window, f"{every:,}", *(f"{pace / 1e6:.2f}" for pace in paces)])
            print(*rows[-1], file=sys.stderr, flush=True)
    yield table(["window", "a row every", *(f"packets of {size:,}" for size in PACKETS)], rows)


def main(words: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer events and windows, one turn")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "benchmarks" / "hot_model.md")
    options = parser.parse_args(words)
    parts = []
    for part in page(QUICK if options.quick else WHOLE):
        print(part, flush=True)
        parts.append(part)
    options.output.write_text(with_commit("\n".join(parts)))


if __name__ == "__main__":
    main(sys.argv[1:])
