"""Events that come at a steady pace: python -m benchmarks.live_events EVENTS PACE START PERIOD [FOLDER].

Event number i has the time START + i / PACE, so its row says how old the event is. Events go to stdout as
JSON lines, or to FOLDER, a file a second. An event is a function of its number, so the same events can be
made again, as files.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

MODELS = 50
FALLING = 10
"""The first models that rank worse in the second quarter of every period."""

_NAMES = pa.array([f"model-{place:02d}" for place in range(MODELS)])
_AT_ONCE = 2_000
"""Blocks that are written to files together."""

_MICROS = 1_000_000


@dataclass(frozen=True)
class Events:
    """Events of models by turns at random.

    number  of all of them
    pace    events a second; 1,000,000 is a multiple of it
    start   the time of the first one, microseconds since 1970
    period  seconds between two falls of the falling models
    """

    number: int
    pace: int
    start: int
    period: int

    def __post_init__(self) -> None:
        if _MICROS % self.pace or self.pace % 20:
            raise SystemExit(f"{self.pace} events a second: give a divisor of 1,000,000 and multiple of 20")

    @property
    def block(self) -> int:
        """Events that are sent together, every 50 ms."""
        return self.pace // 20

    def table(self, first: int) -> pa.Table:
        """Return the block of events from a number on."""
        rng = np.random.default_rng(first)
        numbers = np.arange(first, min(first + self.block, self.number))
        models = rng.integers(0, MODELS, len(numbers))
        labels = rng.random(len(numbers)) < 0.3
        quarter = 4 * numbers // (self.pace * self.period) % 4
        separation = np.where((quarter == 1) & (models < FALLING), 0.5, 1.2)
        scores = rng.normal(labels * separation).round(6)
        sent = self.start + numbers * (_MICROS // self.pace)
        names = _NAMES.take(pa.array(models))
        return pa.table({"model": names, "score": scores, "label": labels.astype(np.int8), "sent": sent})

    def lines(self, first: int) -> bytes:
        """Return a block as JSON lines."""
        columns = [column.to_pylist() for column in self.table(first).columns]
        lines = [
            f'{{"model":"{model}","score":{score!r},"label":{label},"sent":{sent}}}\n'
            for model, score, label, sent in zip(*columns, strict=True)
        ]
        return "".join(lines).encode()

    def write_parts(self, paths: Sequence[Path]) -> None:
        """Write all events to Parquet files; a model has all of its events in one of them."""
        with ExitStack() as closing:
            files = [closing.enter_context(pq.ParquetWriter(path, self.table(0).schema)) for path in paths]
            for first in range(0, self.number, _AT_ONCE * self.block):
                stop = min(first + _AT_ONCE * self.block, self.number)
                whole = pa.concat_tables(map(self.table, range(first, stop, self.block)))
                part_of = pc.index_in(whole["model"], _NAMES).to_numpy() % len(files)
                for part, file in enumerate(files):
                    file.write_table(whole.filter(pa.array(part_of == part)))

    def send(self, folder: Path | None) -> None:
        """Send each block when its last event is due; a block that is late is sent at once."""
        held: list[bytes] = []
        sent = 0
        for first in range(0, self.number, self.block):
            lines = self.lines(first)
            due = self.start / 1e6 + (first + self.block) / self.pace
            if (left := due - time.time()) > 0:
                time.sleep(left)
            if folder is None:
                sys.stdout.buffer.write(lines)
                sys.stdout.buffer.flush()
                continue
            held.append(lines)
            if len(held) == 20 or first + self.block >= self.number:
                hidden = folder / f".{sent:06d}"
                hidden.write_bytes(b"".join(held))
                hidden.rename(folder / f"{sent:06d}.jsonl")
                held, sent = [], sent + 1


if __name__ == "__main__":
    number, pace, start, period = map(int, sys.argv[1:5])
    Events(number, pace, start, period).send(Path(sys.argv[5]) if len(sys.argv) > 5 else None)
