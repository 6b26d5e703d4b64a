"""Jobs of many shards, cut anywhere, in one process: readers, joins, evaluators, each rebuilt at random.

A plan says what the reader of a partition sends, in order: events (or predictions, or labels), how far it is
settled, its end. It can be sent whole, up to a cut, or from there on, and always over any number of shards.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rocsteady.core.evaluator.snapshot import Snapshot
from rocsteady.core.events.batch import PredictionBatch
from rocsteady.core.events.records import EndOfPartition, Heartbeat, StateImport, StateMarker
from rocsteady.core.events.rejected import Rejected
from rocsteady.core.events.times import NO_TIME
from rocsteady.core.events.wire import PacketHead
from rocsteady.core.ids.sharding import number_of, shard_key, split_records
from rocsteady.core.join.join_settings import JoinSettings
from rocsteady.core.join.state import JoinState
from rocsteady.core.rows.rows import Rows
from rocsteady.core.settings.table import TableSettings
from rocsteady.core.state.exported import ShardState
from rocsteady.core.state.reshard import resharded, resharded_joins
from rocsteady.core.state.take_up import join_taken_up, taken_up
from rocsteady.transforms.evaluate.join_labels import JoinFactory
from rocsteady.transforms.evaluate.shards import TableFactory

END = "end"

Plan = list[Any]
"""Batches without a number, moments up to which the partition is settled (int), and END."""


def of_source(batch: Any, name: str) -> Any:
    """Return a batch whose records come from another source."""
    if isinstance(batch, PredictionBatch):
        return PredictionBatch(replace(batch.events, source=name))
    return replace(batch, source=name)


Sent = list[tuple[int, bytes]]
"""Records, each with the shard that it is for."""


def sent(
    plans: Sequence[Plan],
    shards: int,
    cut: Sequence[int] | None = None,
    *,
    after: bool = False,
    stops: bool = False,
) -> list[Sent]:
    """Return what the reader of each plan sends.

    cut    how much of each plan comes before a marker; None: there is no marker
    after  only what comes behind the cut, as by the readers of another job
    stops  nothing comes behind the cut
    """
    streams = []
    for number, plan in enumerate(plans):
        settled = NO_TIME
        name, packets, out, high_water = f"file {number}", [0] * shards, list[tuple[int, bytes]](), NO_TIME
        start = cut[number] if after and cut is not None else 0
        for place, what in enumerate([*plan, None]):
            if place == start and after:
                out.clear()
                packets = [0] * shards
            if cut is not None and not after and place == cut[number] and END not in plan[:place]:
                for shard in range(shards):
                    marker = StateMarker(
                        name, number, len(plans), packets[shard], "1", "exports", f"[{place}]", stops,
                        settled, high_water,
                    )  # fmt: skip
                    out.append((shard, marker.pack()))
                    packets[shard] += 1
                if stops:
                    break
            if what is None:
                continue
            if what == END:
                for shard in range(shards):
                    end = EndOfPartition(name, number, len(plans), packets[shard], high_water)
                    out.append((shard, end.pack()))
            elif isinstance(what, int):
                settled = max(settled, what)
                for shard in range(shards):
                    word = Heartbeat(name, number, len(plans), packets[shard], what, high_water)
                    out.append((shard, word.pack()))
            else:
                high_water = max([high_water, *what.packet_times])
                for shard, part in split_records(what.batch, shards):
                    head = PacketHead(number, packets[shard], high_water)
                    out.append((shard, of_source(part, name).pack(head)))
                    packets[shard] += 1
        if after and END in plan[:start]:
            out = [
                (shard, EndOfPartition(name, number, len(plans), 0, high_water).pack())
                for shard in range(shards)
            ]
        streams.append(out)
    return streams


@dataclass(frozen=True)
class Batch:
    """A batch of a plan, and its times."""

    batch: Any
    packet_times: tuple[int, ...]


def in_any_order(streams: Sequence[Sent], rng: random.Random, *, repeats: bool = True) -> Sent:
    """Shuffle what was sent, some of it twice."""
    records = [record for stream in streams for record in stream]
    if repeats:
        records += rng.sample(records, min(len(records), 3))
    rng.shuffle(records)
    return records


@dataclass
class Job:
    """Machines of a job: joins, if there are settings of them, and evaluators."""

    table: TableSettings
    join: JoinSettings | None
    rng: random.Random
    restarts: float = 0.3
    brought: dict[str, list[bytes]] | None = None
    rows: list[Any] = field(default_factory=list)
    refused: list[tuple[str, str, int]] = field(default_factory=list)
    states: dict[str, list[ShardState]] = field(default_factory=dict)
    rows_at_cut: list[Any] = field(default_factory=list)
    refused_at_cut: list[tuple[str, str, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        awaits = self.brought is not None
        self._given: dict[tuple[str, int], tuple[list[Any], list[tuple[str, str, int]]]] = {}
        self._factories: dict[str, Any] = {"evaluators": TableFactory(self.table, awaits)}
        shards = {"evaluators": self.table.shards or 1}
        if self.join is not None:
            self._factories["join"] = JoinFactory(self.join, awaits)
            shards["join"] = self.join.shards
        self._machines = {
            (step, shard): self._factories[step].new(None, shard_key(shard))
            for step in self._factories
            for shard in range(shards[step])
        }

    def run(self, records: Sent) -> Job:
        """Feed the first step; states that are brought come somewhere between."""
        first = "evaluators" if self.join is None else "join"
        queue = [(first, shard, record) for shard, record in records]
        for step, snapshots in (self.brought or {}).items():
            for shard, snapshot in enumerate(snapshots):
                place = self.rng.randint(0, len(queue))
                queue.insert(place, (step, shard, StateImport("1", snapshot).pack()))
        for step, shard, record in queue:
            self._apply(step, shard, record)
        return self

    def _apply(self, step: str, shard: int, record: bytes) -> None:
        machine = self._machines[step, shard]
        outputs = machine.apply(record)
        if self.rng.random() < self.restarts:
            machine = self._factories[step].load(machine.to_bytes(), None, shard_key(shard))
            self._machines[step, shard] = machine
        given = self._given.setdefault((step, shard), ([], []))
        for output in outputs:
            if isinstance(output, ShardState):
                self.rows_at_cut += given[0]
                self.refused_at_cut += given[1]
                self.states.setdefault(output.step, []).append(ShardState.unpack(output.pack()))
            elif isinstance(output, Rows):
                self.rows += list(output)
                given[0].extend(output)
            elif isinstance(output, Rejected):
                times = getattr(output.records, "times", None)
                refused = [(output.kind, str(output.reason), int(time)) for time in times]
                self.refused += refused
                given[1].extend(refused)
            else:
                self._apply("evaluators", number_of(output[0]), output[1])

    def told(self) -> tuple[list[Any], list[tuple[str, str, int]]]:
        """Return all rows and all that was refused, in an order that does not depend on arrival."""
        return sorted(self.rows, key=_identity), sorted(self.refused)


def _identity(row: Any) -> tuple[Any, ...]:
    return row.model, row.slice, row.row


def together(before: Job, after: Job) -> tuple[list[Any], list[tuple[str, str, int]]]:
    """Return what a job told up to its cut, and another one from there on, as one job would have."""
    rows = sorted([*before.rows_at_cut, *after.rows], key=_identity)
    return rows, sorted([*before.refused_at_cut, *after.refused])


def spread(states: dict[str, list[ShardState]], shards: dict[str, int]) -> dict[str, list[bytes]]:
    """Return snapshots over so many shards."""
    snapshots = {
        step: [state.snapshot for state in sorted(of_step, key=_shard)] for step, of_step in states.items()
    }
    tables = [Snapshot.unpack(snapshot) for snapshot in snapshots["evaluators"]]
    result = {"evaluators": [table.pack() for table in resharded(tables, shards["evaluators"])]}
    if "join" in snapshots:
        read = [JoinState.unpack(snapshot) for snapshot in snapshots["join"]]
        joins, meaning = resharded_joins([state for state, _ in read], read[0][1], shards["join"])
        result["join"] = [join.pack(meaning) for join in joins]
    return result


def begun(
    snapshots: dict[str, list[bytes]], table: TableSettings, join: JoinSettings | None
) -> dict[str, list[bytes]]:
    """Return snapshots as a job with these settings begins with them."""
    take: dict[str, Callable[[bytes], bytes]] = {"evaluators": lambda data: taken_up(data, table)}
    if join is not None:
        take["join"] = lambda data: join_taken_up(data, join)
    return {step: [take[step](data) for data in of_step] for step, of_step in snapshots.items()}


def _shard(state: ShardState) -> int:
    return state.shard
