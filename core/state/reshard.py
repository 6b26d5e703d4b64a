"""Spreads states over another number of shards.

All functions are pure functions of the states of all shards at one cut.

A model belongs to shard hash mod N (`sharding`), and so does an id of a join. So every part of a state that
names its model, or its id, goes to one shard. The deduplicator remembers an id as a hash that contains
neither model nor id. A hash from shard s of N can only belong to the shards t of M with s = t modulo the
greatest common divisor of N and M: each of these shards gets a copy. If M is a multiple or a divisor of N,
fewer copies are not possible. Copies in the wrong shard match no event, and are forgotten when their time has
passed.

A model may get a shard of its own, or lose that shard (`Shards`). The remembered hashes are copied from the
shard that held the model before to the shard that holds the model afterwards.
"""

from __future__ import annotations

import functools
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from ..arrays import BoolArray
from ..encoding.json import read_object, whole
from ..errors import InputError
from ..evaluator.snapshot import Snapshot
from ..evaluator.state import IdleState
from ..events.batch import EventBatch, LabelBatch, LabelRows, PredictionBatch
from ..events.columns import IdColumn
from ..events.wire import tagged_columns
from ..ids.deduplicator import Deduplicator
from ..ids.index import hash64_of_ids
from ..ids.sharding import shard_of, split_by_shard, split_records
from ..join.matching_state import Held
from ..join.state import JoinState
from ..settings.table import DEDUPLICATOR, IDLE, Shards
from ..shard.order import RUNNER
from .class_states import State, states_of, with_states
from .take_up import as_begun, join_as_begun

_Timed = TypeVar("_Timed", EventBatch, LabelBatch)

_MOST_SHARDS = 1 << 20
"""The most shards of evaluators in a join's state: the state counts the packets that were sent to each shard.
"""


def resharded(snapshots: Sequence[Snapshot], shards: int) -> list[Snapshot]:
    """Spread the states of all shards of tables over another number of shards. O(size of all states).

    shards  the number of shards; `Shards` also says which models have a shard of their own

    In the new states no partition has sent anything yet (`take_up`). Raises InputError if the states are not
    of one cut, or if their number is not the number of shards in their settings.
    """
    stated = Shards.of(snapshots[0].settings.shards or 1)
    if len(snapshots) != int(stated):
        raise InputError(
            f"the state has {len(snapshots)} shards, and its settings say {int(stated)}; export again"
        )
    begun = [as_begun(snapshot) for snapshot in snapshots]
    clocks = {snapshot.progress.get("clock") for snapshot in begun if snapshot.settings.evaluator.by_time}
    if len(clocks) > 1:
        raise InputError("the shards of the state are not of one cut: their clocks differ; export again")
    settings = replace(begun[0].settings, shards=shards)

    @functools.cache
    def shard_of_model(model: str) -> int:
        return int(shard_of((model,), shards)[0])

    given = [states_of(snapshot) for snapshot in begun]
    states: list[list[State]] = [[] for _ in range(shards)]
    for state in sorted((state for of_shard in given for state in of_shard), key=_name):
        states[shard_of_model(state.model)].append(state)
    held = _held(begun, shards)
    parts: dict[str, list[bytes]] = {}
    if IDLE in settings.parts:
        parts[IDLE] = [*_idle(begun, given, states, shard_of_model)]
    if DEDUPLICATOR in settings.parts:
        kept = [snapshot.beside[DEDUPLICATOR] for snapshot in begun]
        parts[DEDUPLICATOR] = [*_remembered(kept, stated, Shards.of(shards))]
    latest = max(begun, key=_heard).progress
    result = []
    for shard in range(shards):
        progress = {name: value for name, value in latest.items() if name != "bases"}
        packets = Counter(partition for partition, *_ in held[shard] if partition != RUNNER)
        if packets:
            progress["bases"] = sorted(packets.items())
        beside = {name: of_shards[shard] for name, of_shards in parts.items()}
        result.append(with_states(Snapshot(settings, progress, held[shard], (), beside), states[shard]))
    return result


def _name(state: State) -> tuple[str, str]:
    return state.model, state.slice


def _heard(snapshot: Snapshot) -> int:
    """Return the greatest event time that a shard knows, from the input's sources or from its clock."""
    sources = snapshot.progress.get("sources", {})
    return int(sources.get("greatest", snapshot.progress.get("clock", 0)))


def _held(begun: Sequence[Snapshot], shards: int) -> list[list[tuple[int, int, bytes]]]:
    """Deal out the waiting packets to shards, with new numbers in each partition.

    Packets that wait for the clock are put together first (`_together`). Packets that wait for the turn of
    their partition stay apart: their order counts.
    """
    held: list[list[tuple[int, int, bytes]]] = [[] for _ in range(shards)]
    counts: Counter[tuple[int, int]] = Counter()
    waiting = [(partition, EventBatch.unpack(record)) for each in begun for partition, _, record in each.held]
    timed = _together([batch for partition, batch in waiting if partition == RUNNER])
    in_turn = [(partition, batch) for partition, batch in waiting if partition != RUNNER]
    for partition, batch in [*((RUNNER, batch) for batch in timed), *in_turn]:
        for shard, part in split_by_shard(batch, shards):
            number = counts[shard, partition]
            held[shard].append((partition, number, part.pack(replace(batch.head, sequence=number))))
            counts[shard, partition] += 1
    return held


def _together(batches: Sequence[_Timed]) -> list[_Timed]:
    """Concatenate the waiting batches that have the same columns.

    Batches that wait for the clock may come in any order.

    Packets of n shards, split over m shards, would be up to m times as many, with a few events in each
    packet. 7.5 million waiting events in 48,000 packets of 125 shards would be in 4.9 million packets of 187
    shards.
    """
    alike: dict[frozenset[tuple[str, int]], list[_Timed]] = {}
    for batch in batches:
        columns = frozenset((name, tag) for name, tag, _ in tagged_columns(batch))
        alike.setdefault(columns, []).append(batch)
    return [type(found[0]).concat(found) for found in alike.values()]


def _idle(
    begun: Sequence[Snapshot],
    given: Sequence[Sequence[State]],
    states: Sequence[Sequence[State]],
    shard_of_model: Callable[[str], int],
) -> Iterable[bytes]:
    parts = [IdleState.unpack(snapshot.beside[IDLE]) for snapshot in begun]
    active = {
        _name(state): int(moment)
        for of_shard, part in zip(given, parts, strict=True)
        for state, moment in zip(of_shard, part.active.tolist(), strict=True)
    }
    clock = max(part.clock for part in parts)
    for shard, own in enumerate(states):
        left = [remains for part in parts for remains in part.left if shard_of_model(remains.model) == shard]
        moments = np.array([active[_name(state)] for state in own], np.int64)
        yield IdleState(clock, moments, sorted(left)).pack()


def _remembered(kept: Sequence[bytes], before: Shards, after: Shards) -> Iterable[bytes]:
    """Yield for each new shard the remembered hashes that can belong to the shard."""
    parts = [Deduplicator.from_bytes(data) for data in kept]
    common = math.gcd(before.shared, after.shared)
    sources = [[*range(shard % common, before.shared, common)] for shard in range(after.shared)]
    for model, shard in zip(before.own, range(before.shared, before), strict=True):
        if model not in after.own:
            sources[int(shard_of((model,), after)[0])].append(shard)
    sources += [[int(shard_of((model,), before)[0])] for model in after.own]
    for found in sources:
        yield Deduplicator.merged([parts[number] for number in found]).to_bytes()


# ---- joins


def resharded_joins(states: Sequence[JoinState], settings: str, shards: int) -> tuple[list[JoinState], str]:
    """Spread the states of all shards of joins over another number of shards.

    Return the new states, and the settings of all of them.

    settings  the settings of the states, as the text that each state has

    Raises InputError if the states are not of one cut.
    """
    if len({state.clock for state in states}) > 1:
        raise InputError("the shards of the state are not of one cut: their clocks differ; export again")
    meaning = read_object(settings, "the settings of a label join") | {"shards": shards}
    begun = [join_as_begun(state, whole(meaning["evaluator_shards"], 1, _MOST_SHARDS)) for state in states]
    matchers = [Held.unpack(state.matcher) for state in begun]
    shards_of_ids = [hash64_of_ids(matcher.ids) % np.uint64(shards) for matcher in matchers]
    coming = _dealt([EventBatch.unpack(each) for state in begun for each in state.coming_predictions], shards)
    labels = _dealt([LabelBatch.unpack(each) for state in begun for each in state.coming_labels], shards)
    rows, size = (sum(state.seen[which] for state in begun) for which in (0, 1))
    first, memories = begun[0], [b""] * shards
    if first.deduplicator:
        kept = [state.deduplicator for state in begun]
        memories = [*_remembered(kept, Shards.of(len(states)), Shards.of(shards))]
    result = []
    for shard in range(shards):
        held, predictions, label_rows = _matched(begun, matchers, [of == shard for of in shards_of_ids])
        result.append(
            replace(
                first,
                greatest=max(state.greatest for state in begun),
                greatest_joined=max(state.greatest_joined for state in begun),
                matcher=held.pack(),
                predictions=predictions,
                labels=label_rows,
                coming_predictions=coming[shard],
                coming_labels=labels[shard],
                seen=(rows // shards, size // shards),
                deduplicator=memories[shard],
            )
        )
    return result, json.dumps(meaning)


def _dealt(batches: Sequence[_Timed], shards: int) -> list[list[bytes]]:
    """Deal out by id the predictions (as events) or labels that wait for the clock."""
    packets: list[list[bytes]] = [[] for _ in range(shards)]
    for batch in _together(batches):
        records = PredictionBatch(batch) if isinstance(batch, EventBatch) else batch
        for shard, part in split_records(records, shards):
            packets[shard].append((part.events if isinstance(part, PredictionBatch) else part).pack())
    return packets


def _matched(
    states: Sequence[JoinState], matchers: Sequence[Held], owns: Sequence[BoolArray]
) -> tuple[Held, EventBatch | None, LabelRows | None]:
    """Return the matchers' entries that belong to one shard, with their predictions and labels in one order.

    owns  for every id of each matcher, whether the id belongs to the shard
    """
    columns: dict[str, Any] = {}
    rows: dict[str, Any] = {}
    for kind in ("predictions", "labels"):
        parts, taken, known = [], [], 0
        for state, matcher, own in zip(states, matchers, owns, strict=True):
            entries = getattr(matcher, kind)
            chosen = np.flatnonzero(own[entries["number"]])
            part = entries[chosen]
            part["number"] = np.cumsum(own)[part["number"]] - 1 + known
            known += int(np.count_nonzero(own))
            parts.append(part)
            if len(chosen):
                taken.append(getattr(state, kind).take(chosen))
        together = np.concatenate(parts)
        # ties stay in order, because all entries of an id come from one shard
        order = np.argsort(together["time"], kind="stable")
        columns[kind] = together[order]
        columns[kind]["handle"] = np.arange(len(order))
        rows[kind] = type(taken[0]).concat(taken).take(order) if taken else None
    held = matchers[0]._replace(
        **columns,
        latest=np.concatenate([matcher.latest[own] for matcher, own in zip(matchers, owns, strict=True)]),
        ids=IdColumn.concat(
            [matcher.ids.take(np.flatnonzero(own)) for matcher, own in zip(matchers, owns, strict=True)]
        ),
    )
    return held, rows["predictions"], rows["labels"]
