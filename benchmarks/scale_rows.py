"""The rows that a job over a million models wrote to a topic, against those that are due.

All rows are counted by model. The rows of a few models, drawn by chance, are compared in every column with
the rows of the local runner over the events of these models alone.
"""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from .cluster_events import END, differences, sorted_rows
from .processes import COMMAND, run
from .scale_events import Crowd, written_to

_AT_ONCE = 5_000
_PATIENCE = 60


@dataclass(frozen=True)
class Compared:
    """What became of the rows.

    rows             of all models, each once
    repeats          rows that came again, after a kill or an export
    lost, excess     rows of all models that are missing, or that are not due
    drawn            models that were drawn by chance
    drawn_rows       their rows
    drawn_lost       rows of these models that the local runner has alone
    drawn_wrong      rows of these models that differ from those of the local runner
    """

    rows: int
    repeats: int
    lost: int
    excess: int
    drawn: int
    drawn_rows: int
    drawn_lost: int
    drawn_wrong: int

    @property
    def equal(self) -> bool:
        """Whether all rows are there, and those of the drawn models are the local runner's."""
        return self.drawn_rows > 0 and not self.lost + self.excess + self.drawn_lost + self.drawn_wrong

    def figures(self) -> dict[str, Any]:
        return {**asdict(self), "equal": self.equal}


def compare(
    broker: str, topic: str, crowd: Crowd, every: int, options: list[str], drawn: int, folder: Path
) -> Compared:
    """Compare the rows of a topic of one partition with those that are due; files go to `folder`."""
    random = np.random.default_rng(crowd.seed)
    models = random.choice(crowd.models, min(drawn, crowd.models), replace=False).tolist()
    events, local, found = folder / "drawn.jsonl", folder / "drawn.parquet", folder / "drawn-rows.jsonl"
    crowd.write_events_of(models, every, events)
    run(sys.executable, "-c", COMMAND, "evaluate", str(events), *options, "--output", str(local))
    expected, _ = sorted_rows([str(local)])
    codes, messages = _copied(broker, topic, set(models), found)
    rows, _ = sorted_rows([str(found)])
    lost, wrong = differences(rows, expected)
    due = crowd.counts() // every
    once = np.unique(codes)
    is_due = once % _ROWS < due[once // _ROWS]
    return Compared(
        rows=len(once),
        repeats=messages - len(once),
        lost=int(due.sum() - is_due.sum()),
        excess=int((~is_due).sum()),
        drawn=len(models),
        drawn_rows=len(rows),
        drawn_lost=lost,
        drawn_wrong=wrong,
    )


_ROWS = 1 << 32
"""A row of a model is written as model * _ROWS + its ordinal."""


def _copied(broker: str, topic: str, models: set[int], path: Path) -> tuple[Any, int]:
    """Return a number for every row of a topic, and how many there are; copy those of some models."""
    (end,) = written_to(broker, topic, 1)
    consumer = Consumer({"bootstrap.servers": broker, "group.id": "rows", "log_level": 0})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    codes, next_offset = [], 0
    with path.open("wb") as lines:
        while next_offset < end:
            messages = consumer.consume(min(_AT_ONCE, end - next_offset), _PATIENCE)
            if not messages:
                raise RuntimeError(f"the broker at {broker} gave no row for {_PATIENCE} s: does it run?")
            for message in messages:
                if message.error() is not None:
                    continue
                next_offset = message.offset() + 1
                name = message.key().decode()
                if name == END:
                    continue
                model = int(name[1:])
                codes.append(model * _ROWS + int(dict(message.headers())["row"]))
                if model in models:
                    lines.write(message.value() + b"\n")
    consumer.close()
    return np.array(codes, np.int64), len(codes)
