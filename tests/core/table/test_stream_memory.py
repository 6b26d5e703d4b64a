"""State is bounded by event time, not by the stream: millions of events, ids that never match, long ids."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rocsteady as rs
from rocsteady.core.events.batch import EventBatch, LabelBatch, PredictionBatch
from rocsteady.core.events.columns import IdColumn, TextColumn
from rocsteady.core.events.records import Heartbeat, unpack_record
from rocsteady.core.events.rejected import Rejected
from rocsteady.core.events.wire import PacketHead
from rocsteady.core.join.join import LabelJoin
from rocsteady.core.join.join_settings import JoinSettings
from rocsteady.core.settings.table import TableSettings
from rocsteady.core.table.table import EvaluatorTable

from tests.support.thorough import THOROUGH

MB = 1 << 20
BATCH = 50_000


def resident() -> int:
    """Return what the process holds in memory now, in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def ids_from(start: int, end: int) -> IdColumn:
    texts = np.char.zfill(np.arange(start, end).astype("U9"), 9).astype("S9")
    return IdColumn(np.full(end - start, 9, np.int32), texts.tobytes())


def columns(times: Any, ids: IdColumn, chance: Any, models: int = 20) -> dict[str, Any]:
    names = tuple(f"model {number}" for number in range(models))
    codes = chance.integers(0, models, len(times)).astype(np.int32)
    scores = chance.random(len(times)).round(3)
    return {"models": TextColumn(codes, names), "scores": scores, "times": times, "ids": ids}


class Watch:
    """The most that a machine said it takes, and that the process grew by, since it was warm."""

    def __init__(self) -> None:
        self.live = self.snapshot = self.grown = 0
        self._start = 0

    def look(self, machine: Any, warm: bool) -> None:
        self.live = max(self.live, machine.live_bytes())
        self.snapshot = max(self.snapshot, machine.snapshot_bytes())
        if warm:
            self._start = self._start or resident()
            self.grown = max(self.grown, resident() - self._start)


needs_proc = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="it reads /proc/self/statm")


@needs_proc
@pytest.mark.slow
def test_millions_of_events_through_a_join_and_evaluators_take_what_a_ttl_of_them_takes() -> None:
    """One event a microsecond; a label follows within 100 ms, for nine of ten; a ttl of 200 ms is 200,000."""
    n, ttl, chance = 10_000_000 if THOROUGH else 4_000_000, 200_000, np.random.default_rng(1)
    join = LabelJoin(JoinSettings(ttl, 0, "first", 1, 1), 0)
    settings = TableSettings(
        rs.EvaluatorSettings(window=rs.LastDuration("50ms"), every=rs.EverySeconds("100ms"), order="time"),
        deduplicate=ttl,
        idle_ttl=10 * ttl,
    )
    table, join_watch, table_watch, rows = EvaluatorTable(settings), Watch(), Watch(), 0
    waiting: list[LabelBatch] = []
    for sequence, start in enumerate(range(0, n, BATCH)):
        times = np.arange(start, start + BATCH)
        ids = ids_from(start, start + BATCH)
        where = {"source": "p", "head": PacketHead(0, sequence, int(times[-1]))}
        records: list[Any] = [PredictionBatch.of(**columns(times, ids, chance), **where)]
        has_one = np.flatnonzero(chance.random(BATCH) < 0.9)
        known = times[has_one] + chance.integers(1, 100_000, len(has_one))
        labels = LabelBatch(ids.take(has_one), known, chance.integers(0, 2, len(has_one)).astype(np.int8))
        waiting.append(labels)
        all_labels = LabelBatch.concat(waiting)
        due = all_labels.times < start + BATCH
        now, later = (all_labels.take(np.flatnonzero(which)) for which in (due, ~due))
        waiting = [later]
        place = {"source": "l", "head": PacketHead(1, sequence)}
        records.append(LabelBatch(now.ids, now.times, now.labels, **place))  # type: ignore[arg-type]
        records += [Heartbeat("pl"[side], side, 2, sequence + 1, start + BATCH) for side in (0, 1)]
        for record in records:
            for output in join.apply(record.pack()):
                if isinstance(output, Rejected):
                    continue
                for part in table.apply(output[1]):
                    rows += 0 if isinstance(part, Rejected) else len(part)
        join_watch.look(join, start > 4 * ttl)
        table_watch.look(table, start > 4 * ttl)
    counts = join.counts()
    assert counts["joined"] > 0.88 * n
    assert counts["joined"] + counts["unmatched"] > n - 3 * ttl
    assert table.counts()["events_applied"] > 0.88 * n
    assert rows > 20 * 0.9 * n / 100_000
    assert join_watch.snapshot < 6 * MB, "some 60,000 predictions wait"
    assert join_watch.live < 30 * MB
    assert table_watch.live < 30 * MB
    assert join_watch.grown < 80 * MB, f"grown by {join_watch.grown / MB:.0f} MB"


@needs_proc
@pytest.mark.slow
@pytest.mark.parametrize("side", ["predictions", "labels"])
def test_a_million_ids_that_never_match_leave_with_their_ttl(side: str) -> None:
    n, ttl, chance = 1_000_000, 20_000, np.random.default_rng(2)
    join, watch, left = LabelJoin(JoinSettings(ttl, None, "last", 1, 1), 0), Watch(), 0
    for sequence, start in enumerate(range(0, n, 10_000)):
        times, ids = np.arange(start, start + 10_000), ids_from(start, start + 10_000)
        where: dict[str, Any] = {"source": "s", "head": PacketHead(0, sequence)}
        if side == "predictions":
            record: Any = PredictionBatch.of(**columns(times, ids, chance), **where)
        else:
            record = LabelBatch(ids, times, np.zeros(10_000, np.int8), **where)
        word = Heartbeat("s", 0, 1, sequence + 1, start + 10_000)
        for output in (*join.apply(record.pack()), *join.apply(word.pack())):
            left += len(output) if isinstance(output, Rejected) else 0
        watch.look(join, start > 5 * ttl)
    assert left > n - 4 * ttl
    assert watch.live < 12 * MB
    assert watch.grown < 40 * MB


@pytest.mark.slow
@pytest.mark.parametrize("second", ["first", "last"])
def test_ids_of_ten_kilobytes_go_when_they_have_matched(second: str) -> None:
    """Some differ in their last letter alone, and that by its case."""
    chance = np.random.default_rng(3)
    join, watch = LabelJoin(JoinSettings(100, 0, second, 1, 1), 0), Watch()
    label_of = dict(zip("aAbBéÉ", (0, 1, 0, 1, 0, 1), strict=True))
    for sequence in range(200):
        stem = f"{sequence}".zfill(10_000)
        ids = IdColumn.of([stem + letter for letter in label_of])
        times = 50 * sequence + np.arange(6)
        high_water = int(times[-1]) + 10
        heads = [PacketHead(0, 2 * sequence + side, high_water) for side in (0, 1)]
        labels = np.array([*label_of.values()], np.int8)
        records = [
            PredictionBatch.of(**columns(times, ids, chance), source="s", head=heads[0]),
            LabelBatch(ids, times + 10, labels, source="s", head=heads[1]),
            Heartbeat("s", 0, 1, 2 * sequence + 2, 50 * sequence + 40),
        ]
        for record in records:
            for output in join.apply(record.pack()):
                assert not isinstance(output, Rejected)
                event = unpack_record(output[1])
                if isinstance(event, EventBatch):
                    assert event.ids is not None
                    found = zip(event.ids.to_list(), event.labels.tolist(), strict=True)
                    assert all(id_ is not None and label_of[id_[-1]] == label for id_, label in found)
        watch.look(join, False)
    assert join.counts()["joined"] >= 6 * 190
    assert watch.live < 12 * MB
    assert len(join.to_bytes()) < MB
