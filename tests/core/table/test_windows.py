"""A table gives each model the rows it would have alone, whatever the window, with weights or without."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
import rocsteady as rs
from rocsteady.core.events.batch import EventBatch
from rocsteady.core.events.columns import IdColumn, TextColumn
from rocsteady.core.events.records import EndOfInput, EndOfPartition
from rocsteady.core.events.wire import PacketHead
from rocsteady.core.settings.table import TableSettings
from rocsteady.core.settings.windows import parse_every, parse_window
from rocsteady.core.table.table import EvaluatorTable

from tests.support.oracles.measures import differences
from tests.support.thorough import some

EVENTS = 240
BORDERS = (0, 90, 90, EVENTS)
END = EndOfInput().pack()
ORDERS = ("arrival", "position", "time")
WINDOWS = ("last:30", "last:40s", "fading:8", "fading:20s", "adaptive:0.5:error", "adaptive", "all")


def columns(weighted: bool, classes: bool) -> EventBatch:
    rng = np.random.default_rng(6)
    labels = rng.integers(0, 2, EVENTS).astype(np.int8)
    times = np.cumsum(rng.integers(0, 3, EVENTS)) - (rng.random(EVENTS) < 0.2) * rng.integers(0, 30, EVENTS)
    named = np.array(["good", "bad", "ugly"])
    return EventBatch(
        models=TextColumn.of(rng.choice(["a", "b", "c", "rare"], EVENTS, p=[0.5, 0.3, 0.19, 0.01]).tolist()),
        scores=(rng.random(EVENTS) + labels * np.linspace(0.8, -0.8, EVENTS)).round(1),
        labels=labels,
        times=times * 1_000_000,
        ids=IdColumn.of([f"{i}" for i in range(EVENTS)]),
        weights=rng.exponential(size=EVENTS) + 0.01 if weighted else None,
        label_classes=TextColumn.of(named[labels].tolist()) if classes else None,
        predicted=TextColumn.of(rng.choice(named, EVENTS).tolist()) if classes else None,
    )


def alone(settings: rs.EvaluatorSettings, events: EventBatch) -> Iterator[Any]:
    """Yield the rows of each model by itself."""
    for code, model in sorted(enumerate(events.models.values), key=lambda item: item[1]):
        own = events.take(np.flatnonzero(events.models.codes == code))
        ev = rs.ModelEvaluator(settings, model=model)
        yield from ev.apply(own.scores, own.labels, own.times, own.label_classes, own.predicted, own.weights)
        yield from ev.finish()


def records(events: EventBatch, rng: random.Random) -> list[bytes]:
    """Cut events into packets of three partitions, one of them empty, and say where these end."""
    cut: list[bytes] = []
    for number in range(len(BORDERS) - 1):
        start, end, sequence = BORDERS[number], BORDERS[number + 1], 0
        while start < end:
            stop = min(end, start + rng.randint(1, 50))
            part = events.take(np.arange(start, stop))
            of_file = replace(part, source=f"file {number}")
            cut.append(of_file.pack(PacketHead(number, sequence)))
            start, sequence = stop, sequence + 1
        cut.append(EndOfPartition(f"file {number}", number, len(BORDERS) - 1, sequence).pack())
    return cut


@pytest.mark.slow
@pytest.mark.parametrize(
    ("window", "order", "kind"),
    some(
        product(WINDOWS, ORDERS, ["1, weighted", "11s, weighted", "11s", "7, weighted, classes", "7"]), each=4
    ),
)
def test_rows_are_those_of_each_model_alone(window: str, order: str, kind: str) -> None:
    rng = random.Random(3)
    every, *more = kind.split(", ")
    weighted, classes = "weighted" in more, "classes" in more
    events = columns(weighted, classes)
    evaluator = rs.EvaluatorSettings(
        window=parse_window(window), every=parse_every(every), order=order,  # type: ignore[arg-type]
        measures="all", positive="bad" if classes else None,  # type: ignore[arg-type]
    )  # fmt: skip
    settings = TableSettings(evaluator)
    by_time = events.take(np.argsort(events.times, kind="stable"))
    if order == "time":  # of events that share a time the table knows an order by id
        ids = np.array([int(id_) for id_ in events.ids.encoded()])  # type: ignore[union-attr]
        text = np.char.encode(ids.astype(str))
        by_time = events.take(np.lexsort((text, events.times)))
    expected = list(alone(evaluator, by_time if order == "time" else events))
    for turn in range(3):
        packets = records(events, rng)
        if turn and order != "arrival":
            rng.shuffle(packets)
        table, rows = EvaluatorTable(settings), []
        for packet in [*packets, END]:
            for part in table.apply(packet):
                rows += part
            if turn and rng.random() < 0.3:
                said, data = table.snapshot_bytes(), table.to_bytes()
                assert 0.9 * len(data) - 300 < said < 1.1 * len(data) + 300
                table = EvaluatorTable.from_bytes(data, settings)
        rows.sort(key=lambda row: (row.model, row.row))
        assert len(rows) == len(expected)
        for row, other in zip(rows, expected, strict=True):
            same = dict(zip(row._fields, other, strict=True))
            assert differences(row, same, 1e-12, ("h", "cost_curve_area")) == [], turn
            if not turn:
                assert row == other
