"""What partitions say of themselves: contradictions are sentences, snapshots go on, sizes are known."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import rocsteady as rs
from rocsteady.core.events.batch import EventBatch
from rocsteady.core.events.records import Clock, EndOfInput, EndOfPartition, Heartbeat, Record
from rocsteady.core.events.times import NO_TIME
from rocsteady.core.events.wire import PacketHead
from rocsteady.core.settings.table import TableSettings
from rocsteady.core.shard.orders import TimeOrder
from rocsteady.core.table.table import EvaluatorTable

from tests.support.streams.partitions import (
    SECOND,
    Event,
    dealt,
    event_batch,
    mixed,
    play,
    records_of,
    some_events,
)

END = EndOfInput().pack()
LATER = 1_600_000_000 * SECOND
EVENT = Event(5, "a", "m", 0.5, 1)


def packet(number: int, sequence: int, *events: Event, **more: Any) -> EventBatch:
    where = {"source": f"file {number}", "head": PacketHead(number, sequence)}
    return event_batch(events, **{**where, **more})


BEAT = Heartbeat("file 0", 0, 2, 1, 7)
ENDS = EndOfPartition("file 0", 0, 2, 1, 9)
CONTRADICTIONS: dict[str, tuple[list[Any], str]] = {
    "another number of partitions": ([BEAT, replace(BEAT, partitions=3)], "heartbeat .* number 0 of 3"),
    "a partition that there is not": ([replace(BEAT, partition=2)], "heartbeat .* number 2 of 2"),
    "of an end, too": ([replace(ENDS, partition=2)], "the end of partition 'file 0' .* number 2 of 2"),
    "more packets than at its end": ([ENDS, replace(BEAT, packets=2)], "heartbeat of partition 'file 0'"),
    "less packets than came": ([packet(0, 1, EVENT), ENDS], "end of partition .* 1 packets; end each once"),
    "less packets than came before a restart": (
        [packet(0, 0), packet(0, 1), packet(0, 2), ENDS], "end of partition .* 1 packets; end each once",
    ),
    "two ends": ([ENDS, replace(ENDS, packets=2)], "end of partition .* 2 packets; end each once"),
    "another source": ([ENDS, replace(ENDS, source="file 9")], "end of partition 'file 9'"),
    "a packet behind the end": ([ENDS, packet(0, 1)], "packet 1 of 'file 0' comes although"),
    "a packet of no partition": ([BEAT, packet(2, 0)], "is of partition 2, and the input has 2"),
    "a packet without a number": ([BEAT, packet(0, -1)], "a packet of 'file 0' has no number"),
    "an end before all is here": (
        [packet(1, 0), replace(ENDS, partition=1, source="file 1"), ENDS, EndOfInput()],
        r"events of partition 'file 0' \(0 of 1 packets\) were missing",
    ),
    "an end that nobody told": (
        [packet(0, 0), BEAT, EndOfInput()], r"partition 'file 0' \(1 of an unknown number of packets\)",
    ),
    "a partition of which nothing came": ([packet(0, 0), ENDS, EndOfInput()], "number 1 were missing"),
}  # fmt: skip


@pytest.mark.parametrize("restarts", [0.0, 1.0], ids=["", "over restarts"])
@pytest.mark.parametrize("kind", CONTRADICTIONS)
def test_words_that_contradict_what_came_before_are_refused(kind: str, restarts: float) -> None:
    records, sentence = CONTRADICTIONS[kind]
    table = TableSettings(rs.EvaluatorSettings(order="time"))
    *before, last = [record.pack() for record in records]
    play(table, before, random.Random(1), restarts)
    with pytest.raises(rs.InputError, match=sentence) as refused:
        play(table, [*before, last], random.Random(1), restarts)
    assert "\n" not in str(refused.value)


def test_words_may_come_again_and_in_any_order() -> None:
    """An older heartbeat, one that says less, and all of it behind the end, change nothing."""
    words: list[Any] = [BEAT, ENDS, replace(BEAT, settled=6), BEAT, replace(BEAT, packets=0, settled=2), ENDS]
    records = [packet(0, 0, EVENT), *words, replace(ENDS, source="file 1", partition=1, packets=0), ENDS]
    for order in (records, records[::-1], [*records[1:], records[0]]):
        played = play(
            TableSettings(rs.EvaluatorSettings(order="time")), [each.pack() for each in order] + [END]
        )
        assert [row.seq for row in played.rows] == [1]


def order_after(records: Sequence[Record]) -> TimeOrder:
    order = TimeOrder()
    for content in records:
        for _ in order.receive(content, content.pack()):
            pass
    return order


def test_the_size_of_what_waits_is_known_beforehand() -> None:
    """Rule 4 of the shard's protocol rests on it."""
    table = TableSettings(rs.EvaluatorSettings(order="time"))
    rng = random.Random(3)
    kinds: dict[str, list[bytes]] = {
        "waits for other partitions": records_of(dealt(some_events(3_000, rng), 4, rng), rng, most=60)[0],
        "waits for its first packet": [
            record.pack()
            for number in range(1, 400)
            for record in (packet(0, number, EVENT), replace(BEAT, packets=number, settled=LATER + number))
        ],
        "half released": [
            *mixed(records_of([some_events(2_000, rng)], rng, most=99, heartbeats=0)[:1], rng)[:-1],
            Heartbeat("file 0", 0, 1, 20, 60 * SECOND).pack(),
        ],
        "of many partitions": [
            record.pack()
            for number in range(500)
            for record in (
                packet(number, 0, EVENT, source=f"a/ü/{number}"),
                Heartbeat(f"a/ü/{number}", number, 501, 1, -(10**15)),
            )
        ],
        "waits for the runner's clock": [
            *(event_batch(some_events(50, rng)).pack() for _ in range(30)), Clock(30 * SECOND).pack(),
        ],
    }  # fmt: skip
    for kind, records in kinds.items():
        machine = EvaluatorTable(table)
        for record in records:
            machine.apply(record)
        size = len(machine.to_bytes())
        assert machine.snapshot_bytes() == pytest.approx(size, rel=0.05), kind
        again = EvaluatorTable.from_bytes(machine.to_bytes(), table)
        assert again.snapshot_bytes() == pytest.approx(size, rel=0.05), kind
        assert machine.live_bytes() > 0.5 * size, kind


def test_a_clock_that_is_asked_for_lets_most_of_what_waits_go() -> None:
    rng = random.Random(8)
    events = some_events(400, rng)
    order = order_after([event_batch(events[start : start + 20]) for start in range(0, 400, 20)])
    asked = 0
    while (moment := order.wakes_at()) is not None:
        before = order.clock
        order = order_after_clock(order, moment)
        assert order.clock == moment > before
        asked += 1
    assert asked < 10
    assert order_after([]).wakes_at() is None


def order_after_clock(order: TimeOrder, moment: int) -> TimeOrder:
    for _ in order.receive(Clock(moment), b""):
        pass
    return order


@pytest.mark.slow
def test_a_gap_of_many_packets_takes_no_more_than_their_number() -> None:
    """Each packet and each word looked at all that wait: twice as many took four times as long."""

    def seconds(packets: int) -> float:
        order, start = TimeOrder(), time.process_time()
        for number in range(1, packets):
            for content in (
                packet(0, number),
                replace(BEAT, partitions=1, packets=number + 1, settled=number),
            ):
                assert list(order.receive(content, b"")) == []
        assert order.clock == NO_TIME
        list(order.receive(packet(0, 0), b""))
        assert order.clock == packets - 1
        return time.process_time() - start

    assert any(seconds(20_000) < 40 * seconds(2_000) for _ in range(3))  # 10 where it is linear, 100 else
