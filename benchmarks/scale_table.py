"""What a model takes in a worker: a table of evaluators in a process of its own, and nothing else in it.

    python -m benchmarks.scale_table MODELS EVENTS EVERY

prints bytes of memory, of `--cache-bytes` and of a snapshot for a model, and microseconds of a processor for
an event and for a model when a table is made from a snapshot.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence

import numpy as np
from rocsteady import EventBatch, EveryEvents, TextColumn
from rocsteady.core.settings.evaluator import EvaluatorSettings
from rocsteady.core.settings.table import TableSettings
from rocsteady.core.settings.windows import parse_window
from rocsteady.core.table.table import EvaluatorTable
from rocsteady.runners.servers.processes import memory

from .scale_events import Crowd
from .scale_phases import WINDOW

_PACKET = 5_000
"""Events of a packet."""


def packet(crowd: Crowd, first: int) -> bytes:
    """Return the events from a number on as a packet, model after model."""
    models, scores, labels, times = crowd.columns(np.arange(first, first + _PACKET))
    order = np.argsort(models, kind="stable")
    names, codes = np.unique(models[order], return_inverse=True)
    column = TextColumn(codes.astype(np.int32), tuple(f"m{name:07d}" for name in names.tolist()))
    return EventBatch(column, scores[order], labels[order].astype(np.int8), times=times[order]).pack()


def main(words: Sequence[str]) -> None:
    models, number, every = map(int, words)
    crowd = Crowd(number // _PACKET * _PACKET, models)
    chosen = EvaluatorSettings(
        window=parse_window(f"last:{WINDOW}"), every=EveryEvents(every), order="arrival"
    )
    settings = TableSettings(chosen)
    table = EvaluatorTable(settings)
    table.apply(packet(crowd, 0))
    EvaluatorTable.from_bytes(table.to_bytes(), settings)  # its kernels are loaded now
    before, seconds = memory(os.getpid()), 0.0
    for first in range(_PACKET, crowd.number, _PACKET):
        record, start = packet(crowd, first), time.process_time()
        table.apply(record)
        seconds += time.process_time() - start
    taken, snapshot = memory(os.getpid()) - before, table.to_bytes()
    start = time.process_time()
    EvaluatorTable.from_bytes(snapshot, settings)
    figures = {
        "memory_bytes": taken / models,
        "live_bytes": table.live_bytes() / models,
        "snapshot_bytes": len(snapshot) / models,
        "event_us": seconds / (crowd.number - _PACKET) * 1e6,
        "start_us": (time.process_time() - start) / models * 1e6,
        "held": crowd.held(WINDOW),
        "models": models,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main(sys.argv[1:])
