"""Rows bring sketches of their windows, and a group's bounds hold the AUC of all of its events together."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import rocsteady as rs
from rocsteady.core.errors import ConfigError, CorruptBytesError
from rocsteady.core.events.batch import EventBatch
from rocsteady.core.events.columns import TextColumn
from rocsteady.core.events.records import EndOfInput
from rocsteady.core.fleet.members import MemberRows
from rocsteady.core.fleet.pooled import NOT_ALL, ONE_CLASS, pooled_columns
from rocsteady.core.fleet.settings import RollUpSettings
from rocsteady.core.fleet.table import FleetTable, roll_up_all
from rocsteady.core.rows.columns import reasons_by_measure
from rocsteady.core.settings.table import TableSettings

SECOND = 1_000_000
LAST = rs.LastEvents(300)
WINDOWS = [
    rs.LastEvents(50), rs.LastEvents(700), rs.LastDuration("5m"), rs.AllEvents(), rs.Adaptive(0.3),
    rs.Adaptive(0.3, "error"),
]  # fmt: skip


def settings(window: Any = LAST, sketch_bytes: int | None = 1 << 16, **chosen: Any) -> Any:
    every = rs.EverySeconds("1m")
    return rs.EvaluatorSettings(window=window, every=every, sketch_bytes=sketch_bytes, **chosen)


def events(n: int, seed: int = 1, auc_shift: float = 1.2) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    labels = (rng.random(n) < 0.4).astype(np.int8)
    shift = np.where(np.arange(n) < n // 2, auc_shift, 0.2)
    return labels, rng.normal(shift * labels).round(2), np.cumsum(rng.integers(1, 3, n)) * SECOND


def sketch_of(labels: Any, scores: Any, max_bytes: int = 1 << 16) -> bytes:
    sketch = rs.AucSketch(max_bytes)
    sketch.add(labels, scores)
    return sketch.to_bytes()


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("sketch_bytes", [1 << 16, 1024])
def test_a_row_brings_the_sketch_of_the_events_in_its_window(window: Any, sketch_bytes: int) -> None:
    """However events are cut, and behind a snapshot: the window of a row is the last events up to it."""
    chosen = settings(window, sketch_bytes)
    labels, scores, times = events(2_000)
    ev = rs.ModelEvaluator(chosen)
    parts, cuts = [], [0, 1, 700, 701, 1_500, 2_000]
    for start, end in pairwise(cuts):
        parts.append(ev.apply(scores[start:end], labels[start:end], times[start:end]))
        ev = rs.ModelEvaluator.from_bytes(ev.to_bytes(), chosen)
    rows = rs.Rows.concat([*parts, ev.advance_to(int(times[-1]) + 400 * SECOND)])
    assert len(rows) == len(rows.sketches) > 20
    for row, sketch in zip(rows, rows.sketches, strict=True):
        held = slice(row.seq - row.window_events, row.seq)
        assert sketch == sketch_of(labels[held], scores[held], sketch_bytes), row
    plain = rs.ModelEvaluator(replace(chosen, sketch_bytes=None)).apply(scores, labels, times)
    assert plain.sketches == ()
    assert [*plain] == [*rows][: len(plain)]
    assert chosen.config_hash() == replace(chosen, sketch_bytes=None).config_hash()


def test_rows_of_a_table_keep_their_sketches_in_any_order_of_models() -> None:
    labels, scores, times = events(1_500)
    models = np.random.default_rng(2).choice(["a", "b", "c"], len(labels))
    table = rs.EvaluatorTable(TableSettings(settings(order="time")))
    batch = EventBatch(TextColumn.of(models.tolist()), scores, labels, times=times)
    rows = rs.Rows.concat([*table.apply(batch.pack()), *table.apply(EndOfInput().pack())])
    assert {row.model for row in rows} == {"a", "b", "c"}
    for row, sketch in zip(rows, rows.sketches, strict=True):
        mine = np.flatnonzero(models == row.model)[row.seq - int(row.window_events) : row.seq]
        assert sketch == (b"" if row.due is None else sketch_of(labels[mine], scores[mine]))
    assert rows[3:5].sketches == rows.sketches[3:5]
    assert rows.take(np.array([4, 0])).sketches == (rows.sketches[4], rows.sketches[0])


def fleet_rows(models: str, max_bytes: int = 1 << 16, seed: int = 3) -> tuple[rs.Rows, dict[str, Any]]:
    """Rows of models whose windows grow for ever and begin with both classes, and the events of each."""
    parts, given = [], {}
    for place, model in enumerate(models):
        labels, scores, times = given[model] = events(900, seed + place, 0.4 * place)
        labels[:2] = 0, 1
        ev = rs.ModelEvaluator(settings(rs.AllEvents(), max_bytes), model=model)
        parts += [ev.apply(scores, labels, times), ev.advance_to(2_500 * SECOND)]
    return rs.Rows.concat(parts), given


@pytest.mark.parametrize("max_bytes", [1024, 4096, 1 << 16])
def test_the_bounds_hold_the_auc_of_all_events_in_one_ranking(max_bytes: int) -> None:
    rows, given = fleet_rows("abcd", max_bytes)
    found = roll_up_all(MemberRows.of_rows(rows, RollUpSettings()), RollUpSettings())
    assert len(found) > 10
    for row in found:
        assert row.due is not None
        together = [
            (labels[times <= row.due], scores[times <= row.due]) for labels, scores, times in given.values()
        ]
        exact = rs.AucSketch(1 << 20)
        for labels, scores in together:
            exact.add(labels, scores)
        assert exact.is_exact
        auc = exact.bounds().auc
        assert row.auc_pooled_low <= auc <= row.auc_pooled_high
        assert row.auc_pooled_high - row.auc_pooled_low <= (0.02 if max_bytes == 1024 else 0.003)
        assert (row.auc_pooled_low == auc) or max_bytes < 1 << 16


def test_without_sketches_there_are_no_bounds_and_no_reason() -> None:
    rows, _ = fleet_rows("ab")
    bare = roll_up_all(MemberRows.of_records([*rows], RollUpSettings()), RollUpSettings())
    full = roll_up_all(MemberRows.of_rows(rows, RollUpSettings()), RollUpSettings())
    assert [row._replace(auc_pooled_low=None, auc_pooled_high=None) for row in full] == bare


def test_a_member_without_scores_and_a_group_of_one_class_have_a_reason() -> None:
    some = sketch_of([0, 1], [0.1, 0.2])
    assert pooled_columns([some, b""]) == ({"auc_pooled_low": None, "auc_pooled_high": None}, NOT_ALL)
    assert pooled_columns([sketch_of([1, 1], [0.1, 0.2])])[1] == ONE_CLASS
    assert pooled_columns([sketch_of([1], [0.3]), sketch_of([0], [0.1])]) == (
        {"auc_pooled_low": 1.0, "auc_pooled_high": 1.0},
        "",
    )
    assert pooled_columns([b"", b""])[1] == pooled_columns([])[1] == ""
    rows, _ = fleet_rows("ab")
    members = MemberRows.of_rows(rows, RollUpSettings())
    of_b = [members.keys[code][1] == "b" for code in members.key_codes.tolist()]
    sketches = tuple(b"" if b else found for b, found in zip(of_b, members.sketches, strict=True))
    row = roll_up_all(replace(members, sketches=sketches), RollUpSettings())[-1]
    assert row.auc_pooled_low is None
    assert reasons_by_measure(row.reason)["auc_pooled_high"] == NOT_ALL
    assert row.auc_mean is not None


def test_packets_and_snapshots_keep_sketches() -> None:
    chosen = RollUpSettings(("models", "[ab]"))
    rows, _ = fleet_rows("abc", 1024)
    members = MemberRows.of_rows(rows, chosen)
    expected = roll_up_all(members, chosen)
    table, found = FleetTable(chosen), []
    for shard, part in members.split(3):
        packed = part.pack()
        assert MemberRows.unpack(packed).pack() == packed
        found += table.apply(packed)
        data = table.to_bytes()
        assert len(data) == table.snapshot_bytes(), shard
        table = FleetTable.from_bytes(data, chosen)
        assert table.to_bytes() == data
    assert sorted([*found, *table.finish()]) == sorted(expected)
    assert all(row.auc_pooled_low is not None for row in expected)
    with pytest.raises(CorruptBytesError, match="sketches of"):
        MemberRows.unpack(replace(members, sketches=members.sketches[1:]).pack())


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({"sketch_bytes": 100}, "give a whole number of bytes, 1024 or more"),
        ({"sketch_bytes": "x"}, "give a whole number of bytes"),
        ({"sketch_bytes": 4096, "window": rs.Fading(100)}, "a sketch counts whole events"),
    ],
)
def test_settings_that_give_no_sketch_are_refused(chosen: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        settings(**chosen)


def test_rows_by_number_of_events_bring_no_sketches() -> None:
    with pytest.raises(ConfigError, match="rows on a grid of times bring sketches"):
        rs.EvaluatorSettings(every=rs.EveryEvents(5), sketch_bytes=4096)
