"""States that older code wrote are read, go on to the rows of today, and can be taken up by another job."""

from __future__ import annotations

import numpy as np
import pytest
import rocsteady as rs
from rocsteady.core.events.batch import EventBatch, LabelBatch, PredictionBatch
from rocsteady.core.events.columns import IdColumn, TextColumn
from rocsteady.core.events.records import EndOfPartition, Heartbeat
from rocsteady.core.events.wire import PacketHead
from rocsteady.core.join.join import LabelJoin
from rocsteady.core.join.settings import JoinSettings
from rocsteady.core.settings.table import TableSettings
from rocsteady.core.table.table import EvaluatorTable

from tests.support.invariants.cuts import begun
from tests.support.stored.old_snapshots import JOIN_VERSION_1, TIMED_VERSION_3
from tests.support.streams.partitions import SECOND

TIMED = TableSettings(
    rs.EvaluatorSettings(
        window=rs.LastDuration("20s"), every=rs.EverySeconds("5s"), order="time", measures=("auc", "kappa_m")
    ),
    shards=2,
    deduplicate=30 * SECOND,
    idle_ttl=15 * SECOND,
)
JOIN = JoinSettings(20 * SECOND, None, "last", 2, 2, 9 * SECOND)


def timed_table() -> EvaluatorTable:
    """Return the table that the stored one was."""
    table, n = EvaluatorTable(TIMED), 12
    packet = EventBatch(
        models=TextColumn.of(["a", "b", "a"] * 4),
        scores=np.arange(n) % 5 / 4,
        labels=(np.arange(n) % 3 == 0).astype(np.int8),
        times=np.arange(n) * 3 * SECOND,
        ids=IdColumn.of([f"{number % 10}" for number in range(n)]),
        source="f",
        head=PacketHead(sequence=0, high_water=33 * SECOND),
    )
    table.apply(packet.pack())
    table.apply(Heartbeat("f", 0, 1, 1, 28 * SECOND, 33 * SECOND).pack())
    return table


def label_join() -> LabelJoin:
    """Return the join that the stored one was."""
    join, ids = LabelJoin(JOIN, 1), IdColumn.of([f"{number}" for number in range(6)])
    predictions = PredictionBatch.of(
        models=TextColumn.of(["a", "b"] * 3), scores=np.arange(6) / 8, ids=ids,
        times=np.arange(6) * 4 * SECOND, source="p", head=PacketHead(sequence=0, high_water=20 * SECOND),
    )  # fmt: skip
    labels = LabelBatch(
        ids, np.arange(6) * 5 * SECOND + 1, np.array([0, 1, 1, 0, 1, 0], np.int8), source="l",
        head=PacketHead(1, 0, 25 * SECOND),
    )  # fmt: skip
    join.apply(predictions.pack())
    join.apply(labels.pack())
    join.apply(Heartbeat("p", 0, 2, 1, 17 * SECOND, 20 * SECOND).pack())
    join.apply(Heartbeat("l", 1, 2, 1, 17 * SECOND, 25 * SECOND).pack())
    return join


def test_a_table_of_version_3_is_as_it_was_and_goes_on() -> None:
    live = timed_table()
    assert live.to_bytes() == TIMED_VERSION_3
    stored = EvaluatorTable.from_bytes(TIMED_VERSION_3, TIMED)
    assert stored.to_bytes() == TIMED_VERSION_3
    end = EndOfPartition("f", 0, 1, 1, 33 * SECOND).pack()
    assert _rows(stored, end) == _rows(live, end)


def test_a_join_of_version_1_is_as_it_was_and_goes_on() -> None:
    live = label_join()
    assert live.to_bytes() == JOIN_VERSION_1
    stored = LabelJoin.from_bytes(JOIN_VERSION_1, JOIN, 1)
    assert stored.to_bytes() == JOIN_VERSION_1
    for record in (
        EndOfPartition("p", 0, 2, 1, 20 * SECOND), EndOfPartition("l", 1, 2, 1, 25 * SECOND),
    ):  # fmt: skip
        assert _packets(stored, record.pack()) == _packets(live, record.pack())
    assert live.counts()["joined"] > 2


def test_old_states_are_taken_up_by_another_job() -> None:
    snapshots = begun({"evaluators": [TIMED_VERSION_3], "join": [JOIN_VERSION_1]}, TIMED, JOIN)
    table = EvaluatorTable.from_bytes(snapshots["evaluators"][0], TIMED)
    end = EndOfPartition("another", 0, 1, 0, 33 * SECOND).pack()
    right = _rows(timed_table(), EndOfPartition("f", 0, 1, 1, 33 * SECOND).pack())
    assert _rows(table, end) == right
    assert len(right) > 2
    join = LabelJoin.from_bytes(snapshots["join"][0], JOIN, 1)
    join.apply(EndOfPartition("another", 0, 1, 0, 25 * SECOND).pack())
    live = label_join()
    before = live.counts()["joined"]
    for record in (EndOfPartition("p", 0, 2, 1, 0), EndOfPartition("l", 1, 2, 1, 25 * SECOND)):
        live.apply(record.pack())
    assert join.counts()["joined"] == live.counts()["joined"] - before


def test_another_number_of_shards_never_begins_empty() -> None:
    other = TableSettings(TIMED.evaluator, shards=3, deduplicate=TIMED.deduplicate, idle_ttl=TIMED.idle_ttl)
    with pytest.raises(rs.OtherConfigurationError, match="shards was 2 and is now 3"):
        EvaluatorTable.from_bytes(TIMED_VERSION_3, other)
    with pytest.raises(rs.OtherConfigurationError, match="shards was 2 and is now 3"):
        LabelJoin.from_bytes(JOIN_VERSION_1, JoinSettings(20 * SECOND, None, "last", 3, 2, 9 * SECOND), 1)
    with pytest.raises(rs.OtherConfigurationError, match="evaluator_shards was 2 and is now 4"):
        LabelJoin.from_bytes(JOIN_VERSION_1, JoinSettings(20 * SECOND, None, "last", 2, 4, 9 * SECOND), 1)


def _rows(table: EvaluatorTable, record: bytes) -> list[rs.MeasureRow]:
    return [row for rows in table.apply(record) for row in rows]


def _packets(join: LabelJoin, record: bytes) -> list[object]:
    return [given if isinstance(given, tuple) else given.kind for given in join.apply(record)]
