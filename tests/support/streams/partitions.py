"""Streams of events in partitions: cut into packets, told how far they are settled, mixed and repeated.

A stream is a list of partitions, each a list of events in its own order. Everything random comes of the `rng`
that a test gives; what is right comes of the events alone, in order of time, by one `ModelEvaluator` per
model.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import rocsteady as rs
from rocsteady.core.events.batch import EventBatch
from rocsteady.core.events.columns import IdColumn, TextColumn
from rocsteady.core.events.records import EndOfPartition, Heartbeat
from rocsteady.core.events.rejected import Rejected
from rocsteady.core.events.times import NO_TIME
from rocsteady.core.events.wire import PacketHead
from rocsteady.core.settings.table import TableSettings
from rocsteady.core.table.table import EvaluatorTable

from tests.support.streams.times import moment, moments

SECOND = 1_000_000
"""Microseconds."""


class Event(NamedTuple):
    """An event in the order in which events of one time apply: no two of a stream have one id."""

    time: int
    id: str
    model: str
    score: float
    label: int


def some_events(
    n: int, rng: random.Random, models: Sequence[str] = ("a", "b", "ü"), span: int = 120 * SECOND
) -> list[Event]:
    """Return events in no order, many of one time; the first model is silent in the second half.

    Times are whole milliseconds.
    """
    return [
        Event(
            time := rng.randrange(0, span, max(span // max(n // 2, 1) // 1_000, 1) * 1_000),
            f"{number:04}",
            rng.choice(models[1:] if time > span // 2 else models),
            rng.randrange(10) / 10,
            rng.randrange(2),
        )
        for number in rng.sample(range(n), n)
    ]


def event_batch(events: Sequence[Event], **packet: Any) -> EventBatch:
    """Return events as a packet."""
    return EventBatch(
        models=TextColumn.of([event.model for event in events]),
        scores=np.array([event.score for event in events], np.float64),
        labels=np.array([event.label for event in events], np.int8),
        times=np.array([event.time for event in events], np.int64),
        ids=IdColumn.of([event.id for event in events]),
        **packet,
    )


def dealt(events: Sequence[Event], partitions: int, rng: random.Random) -> list[list[Event]]:
    """Deal events out to partitions, in the order given."""
    hands: list[list[Event]] = [[] for _ in range(partitions)]
    for event in events:
        rng.choice(hands).append(event)
    return hands


def shuffled_within(events: Iterable[Event], lateness: int, rng: random.Random) -> list[Event]:
    """Shuffle events so that none comes behind one of its own time plus more than `lateness`."""
    return sorted(sorted(events), key=lambda event: event.time + rng.randint(0, lateness))


def records_of(
    partitions: Sequence[Sequence[Event]], rng: random.Random, most: int = 7, heartbeats: float = 0.5
) -> list[list[bytes]]:
    """Return what each partition sends: packets of up to `most` events, heartbeats, and its end.

    A heartbeat says as much as is true: the least time that is still to come, or less.
    """
    sent = []
    for number, events in enumerate(partitions):
        name, records, packets, place, high_water = f"file {number}", list[bytes](), 0, 0, NO_TIME
        while place < len(events):
            part = events[place : place + rng.randint(0, most)]
            place += len(part)
            high_water = max([high_water, *(event.time for event in part)])
            records.append(event_batch(part, source=name).pack(PacketHead(number, packets, high_water)))
            packets += 1
            if rng.random() < heartbeats and place < len(events):
                settled = min(event.time for event in events[place:]) - rng.choice((0, 0, 1, SECOND))
                records.append(Heartbeat(name, number, len(partitions), packets, settled).pack())
        records.append(EndOfPartition(name, number, len(partitions), packets, high_water).pack())
        sent.append(records)
    return sent


def mixed(streams: Sequence[Sequence[bytes]], rng: random.Random) -> list[bytes]:
    """Mix streams, each in its own order."""
    left = [list(stream) for stream in streams]
    out = []
    while left := [stream for stream in left if stream]:
        out.append(rng.choice(left).pop(0))
    return out


def anyhow(streams: Sequence[Sequence[bytes]], rng: random.Random) -> list[bytes]:
    """Shuffle all records, some of them twice: no runner promises an order, and sources repeat themselves."""
    records = [record for stream in streams for record in stream]
    records += rng.sample(records, min(len(records), 4))
    rng.shuffle(records)
    return records


def identity(row: Any) -> tuple[Any, ...]:
    """Return what a row is known by."""
    return row.model, row.slice, row.row


class Played(NamedTuple):
    """What a table put out: rows and refused events, and after how many records each of them came."""

    rows: list[rs.MeasureRow]
    refused: list[Rejected]
    after: dict[tuple[Any, ...], int]


def play(
    settings: TableSettings, records: Iterable[bytes], rng: random.Random | None = None, restarts: float = 0.3
) -> Played:
    """Feed a table, rebuilt from its bytes at random points; no row may come twice."""
    table, played = EvaluatorTable(settings), Played([], [], {})
    for number, record in enumerate(records):
        for output in table.apply(record):
            if isinstance(output, Rejected):
                played.refused.append(output)
                continue
            for row in output:
                assert identity(row) not in played.after
                played.after[identity(row)] = number
                played.rows.append(row)
        if rng is not None and rng.random() < restarts:
            table = EvaluatorTable.from_bytes(table.to_bytes(), settings)
    played.rows.sort(key=identity)
    return played


def rows_in_time(
    settings: rs.EvaluatorSettings, events: Iterable[Event], *, one_clock: bool = True
) -> list[rs.MeasureRow]:
    """Return the rows of every model's own events in order of time.

    one_clock  time goes on to the greatest of all, for every model
    """
    by_model: dict[str, list[Event]] = {}
    for event in sorted(events):
        by_model.setdefault(event.model, []).append(event)
    end = max((event.time for own in by_model.values() for event in own), default=0)
    rows: list[rs.MeasureRow] = []
    for model, own in sorted(by_model.items()):
        ev = rs.ModelEvaluator(settings, model=model)
        rows += ev.update(
            [event.label for event in own],
            [event.score for event in own],
            times=moments([event.time for event in own]),
        )
        rows += [*(ev.advance(moment(end + 1)) if one_clock else ()), *ev.finish()]
    return rows
