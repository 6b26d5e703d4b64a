"""What a checkpoint costs by the size of a state: the machine, the file and the disk, without a source."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from statistics import median

import numpy as np
from rocsteady.core.events.batch import EventBatch
from rocsteady.core.events.columns import TextColumn
from rocsteady.core.ids.sharding import shard_key
from rocsteady.core.settings.evaluator import EvaluatorSettings
from rocsteady.core.settings.table import TableSettings
from rocsteady.core.settings.windows import EveryEvents, parse_window
from rocsteady.core.state.checkpoint import Checkpoint
from rocsteady.core.version import __version__
from rocsteady.transforms.evaluate.shards import TableFactory
from rocsteady.transforms.state.checkpoints import CheckpointFolder

STATES = ((50, 1_000), (50, 10_000), (50, 100_000), (5_000, 1_000), (50_000, 100))
"""(models, events in the window of each)."""

QUICK = STATES[:1]

_TURNS = 3
_BATCH = 100_000
_START = 1_767_225_600_000_000  # 2026-01-01


def rows(states: Sequence[tuple[int, int]]) -> Iterator[list[str]]:
    """Yield, for each state, its size, the size of its checkpoint, and what one takes."""
    for models, window in states:
        settings = EvaluatorSettings(
            window=parse_window(f"last:{window}"), every=EveryEvents(1 << 30), order="time:0s"
        )
        table = TableFactory(TableSettings(settings)).new(None, shard_key(0))
        for first in range(0, models * window, _BATCH):
            table.apply(_events(models, first, min(_BATCH, models * window - first)).pack())
        cpu, wall, size = [], [], 0
        with tempfile.TemporaryDirectory() as place:
            folder = CheckpointFolder(place)
            for _ in range(_TURNS):
                began, used = time.perf_counter(), time.process_time()
                state = table.to_bytes()
                folder.write(
                    Checkpoint(__version__, "2026-01-01T00:00:00Z", {}, (), {}, {"evaluators": state})
                )
                cpu.append(time.process_time() - used)
                wall.append(time.perf_counter() - began)
            size = max(file.stat().st_size for file in os.scandir(place))
        yield [
            f"{models:,}", f"{window:,}", f"{size / 1e6:,.1f}", f"{1e3 * median(cpu):,.0f}",
            f"{1e3 * median(wall):,.0f}",
        ]  # fmt: skip


def _events(models: int, first: int, number: int) -> EventBatch:
    rng = np.random.default_rng(first)
    labels = (rng.random(number) < 0.3).astype(np.int8)
    return EventBatch(
        TextColumn(
            (np.arange(first, first + number) % models).astype(np.int32),
            tuple(f"model-{place:05d}" for place in range(models)),
        ),
        rng.normal(labels * 1.2).round(6),
        labels,
        times=_START + 50 * np.arange(first, first + number),
        source="events",
    )
