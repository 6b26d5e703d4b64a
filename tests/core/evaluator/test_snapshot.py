"""A snapshot goes on as the table that gave it; any other bytes are a named error that says why."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import rocsteady as rs
from rocsteady.core.evaluator.snapshot import Snapshot, describe
from rocsteady.core.events.batch import EventBatch
from rocsteady.core.events.columns import TextColumn
from rocsteady.core.events.records import EndOfInput, EndOfPartition
from rocsteady.core.events.wire import PacketHead
from rocsteady.core.table.table import EvaluatorTable

from tests.support.streams.batches import flips, truncations, with_right_checksum
from tests.support.thorough import examples

HEAD, CRC = 36, 32


def binary_table(order: str = "position") -> EvaluatorTable:
    """Return a table with two models, a slice, times, and a packet that waits for its turn."""
    evaluator = rs.EvaluatorSettings(window=rs.LastEvents(4), every=rs.EveryEvents(2), order=order)
    table = EvaluatorTable(rs.TableSettings(evaluator, slices=("carrier",), shards=8), pane=(0, 60))
    for sequence, scores in ((0, (0.5, 0.25, 0.75, 1.0, 0.0)), (2, (0.125, 0.5))):
        n = len(scores)
        table.apply(
            EventBatch(
                models=TextColumn.of(["m", "ü"] * (n // 2) + ["m"] * (n % 2)),
                scores=np.array(scores),
                labels=np.array([0, 1, 1, 0, 1][:n], np.int8),
                times=np.arange(n) * 1_000_000,
                slices=(("carrier", TextColumn.of(["UA", None, "UA", "UA", None][:n])),),
                source="f.csv",
                head=PacketHead(sequence=sequence),
            ).pack()
        )
    return table


def class_table() -> EvaluatorTable:
    evaluator = rs.EvaluatorSettings(every=rs.EveryEvents(2), positive="up")
    table = EvaluatorTable(rs.TableSettings(evaluator))
    names = ["up", "down", "flat", "up", "down"]
    table.apply(
        EventBatch(
            models=TextColumn.of(["m"] * 5),
            scores=np.array([0.5, 0.25, 0.75, 1.0, 0.0]),
            labels=np.array([1, 0, 0, 1, 0], np.int8),
            label_classes=TextColumn.of([*names]),
            predicted=TextColumn.of([*names[::-1]]),
        ).pack()
    )
    return table


TABLES: dict[str, Callable[[], EvaluatorTable]] = {"binary": binary_table, "classes": class_table}


def rest_of_binary(table: EvaluatorTable) -> list[rs.MeasureRow]:
    """Return the rows from here to the end of the input."""
    missing = EventBatch(
        models=TextColumn.of(["m", "ü", "m"]),
        scores=np.array([0.625, 0.375, 0.75]),
        labels=np.array([1, 1, 0], np.int8),
        times=np.array([9_000_000, 8_000_000, 7_000_000]),
        slices=(("carrier", TextColumn.of([None, "UA", "UA"])),),
        source="f.csv",
        head=PacketHead(sequence=1),
    )
    records = (missing.pack(), EndOfPartition("f.csv", 0, 1, 3).pack(), EndOfInput().pack())
    return [row for record in records for rows in table.apply(record) for row in rows]


def test_a_stored_snapshot_goes_on_to_the_same_rows() -> None:
    live = binary_table()
    stored = EvaluatorTable.from_bytes(live.to_bytes(), live.settings, live.pane)
    rows = rest_of_binary(live)
    assert rest_of_binary(stored) == rows
    assert [(row.model, row.slice, row.row, row.seq) for row in rows] == [
        ("m", "", 1, 4),
        ("m", "carrier=", 0, 2),
        ("ü", "carrier=UA", 0, 2),
        ("m", "", 2, 6),
        ("ü", "", 1, 4),
        ("m", "carrier=UA", 1, 4),
        ("ü", "carrier=", 0, 2),
    ]
    live = class_table()
    stored = EvaluatorTable.from_bytes(live.to_bytes(), live.settings)
    for record in (EndOfInput().pack(),):
        assert [list(rows) for rows in stored.apply(record)] == [list(rows) for rows in live.apply(record)]


@pytest.mark.parametrize("kind", TABLES)
def test_a_reloaded_table_writes_the_same_bytes(kind: str) -> None:
    table = TABLES[kind]()
    data = table.to_bytes()
    assert EvaluatorTable.from_bytes(data, table.settings, table.pane).to_bytes() == data


@pytest.mark.parametrize("kind", TABLES)
def test_every_truncation_is_told(kind: str) -> None:
    table = TABLES[kind]()
    for cut in truncations(table.to_bytes()):
        with pytest.raises(rs.TruncatedBytesError if cut else rs.ForeignBytesError):
            EvaluatorTable.from_bytes(cut, table.settings)


@pytest.mark.parametrize("kind", TABLES)
def test_every_changed_byte_is_told(kind: str) -> None:
    table = TABLES[kind]()
    for damaged in flips(table.to_bytes()):
        with pytest.raises(rs.WireError):
            EvaluatorTable.from_bytes(damaged, table.settings)


@pytest.mark.parametrize("kind", TABLES)
def test_contents_with_a_right_checksum_crash_nothing(kind: str) -> None:
    rng = random.Random(1)
    table = TABLES[kind]()
    data = table.to_bytes()
    settings_end = HEAD + 4 + int.from_bytes(data[HEAD : HEAD + 4], "little")
    read = 0
    for _ in range(examples(3000)):
        damaged = bytearray(data)
        for _ in range(rng.randint(1, 3)):
            place = rng.randrange(HEAD if rng.random() < 0.2 else settings_end, len(data))
            damaged[place] = rng.choice((0, 1, 2, 127, 128, 255, rng.randrange(256)))
        try:
            other = EvaluatorTable.from_bytes(with_right_checksum(bytes(damaged), HEAD, CRC), table.settings)
            for rows in other.apply(EndOfInput().pack()):
                assert all(row.model is not None for row in rows)
        except (rs.WireError, rs.OtherConfigurationError, rs.InputError):
            continue
        read += 1
    # in "binary" a packet still waits, which is an InputError
    assert read > examples(3000) // 60 or kind == "binary"


def test_random_payloads_with_a_right_checksum_are_told() -> None:
    rng = random.Random(2)
    head = class_table().to_bytes()[:24]
    for _ in range(2000):
        payload = rng.randbytes(rng.randrange(200))
        if rng.random() < 0.5:
            payload = struct.pack("<I", 2) + b"{}" + payload
        data = head + struct.pack("<QI", len(payload), zlib.crc32(payload)) + payload
        with pytest.raises(rs.WireError):
            Snapshot.unpack(data)


def changed_state(**fields: Any) -> bytes:
    """Return a snapshot of an evaluator, written with other numbers in its state."""
    ev = rs.ModelEvaluator(window=rs.LastEvents(4))
    ev.update([0, 1, 1, 0, 1], [0.1, 0.2, 0.3, 0.4, 0.5])
    snapshot = Snapshot.of_evaluator(ev.settings, ev.state())
    return replace(snapshot, evaluators=(replace(ev.state(), **fields),)).pack()


@pytest.mark.parametrize(
    "fields",
    [
        {"scores": np.array([0.1, np.nan, 0.3, 0.4])},
        {"seq": 3},
        {"hits": np.array([0, 1, 8, 0], np.int8)},  # a mark of a ring, which sent a kernel beside its arrays
        {"hits": np.array([0, 1, -16, 0], np.int8)},
        {"last_label": 2},
        {"last_label": -2},
        {
            "scores": np.zeros(5), "labels": np.zeros(5, np.int8), "predictions": np.zeros(5, np.int8),
            "hits": np.zeros(5, np.int8),
        },
        {"multiclass": True, "class_names": ("a", "a")},
        {"multiclass": True, "class_names": ("a",), "last_seen": np.zeros(1, np.int64)},
    ],
    ids=str,
)  # fmt: skip
def test_numbers_that_no_evaluator_has_are_told(fields: dict[str, Any]) -> None:
    with pytest.raises(rs.CorruptBytesError):
        rs.ModelEvaluator.from_bytes(changed_state(**fields))


@pytest.mark.parametrize(
    "progress",
    [{"turn": 1}, {"turn": "x", "expected": 0, "partitions": 1, "ends": []}, [1], "turn",
     {"turn": 0, "expected": 0, "partitions": None, "ends": [[1, 2]]},
     {"turn": 0, "expected": 0, "partitions": None, "ends": 5}],
    ids=str,
)  # fmt: skip
def test_progress_that_no_table_makes_is_told(progress: Any) -> None:
    settings = rs.TableSettings(rs.EvaluatorSettings(order="position"))
    with pytest.raises(rs.CorruptBytesError):
        EvaluatorTable.from_bytes(Snapshot(settings, progress, (), ()).pack(), settings)


def test_each_kind_of_foreign_bytes_has_its_own_error_and_says_what_was_found() -> None:
    table = class_table()
    data = table.to_bytes()

    def load(changed: bytes) -> EvaluatorTable:
        return EvaluatorTable.from_bytes(changed, table.settings)

    with pytest.raises(rs.ForeignBytesError, match=r"start with b'\\x80\\x04\\x95K' are no rocsteady snap"):
        load(b"\x80\x04\x95K and a pickle")
    with pytest.raises(rs.ForeignBytesError, match="there are no bytes"):
        load(b"")
    with pytest.raises(rs.TruncatedBytesError, match="ends after 20 bytes, inside its head"):
        load(data[:20])
    with pytest.raises(rs.TruncatedBytesError, match=f"ends after 99 of {len(data)} bytes"):
        load(data[:99])
    with pytest.raises(rs.FutureVersionError, match="version 2: this rocsteady reads up to 1; upgrade it"):
        load(data[:4] + b"\2" + data[5:])
    with pytest.raises(rs.CorruptBytesError, match="fails its checksum"):
        load(data + b"\0")
    with pytest.raises(rs.CorruptBytesError, match="fingerprint that is not its own"):
        load(data[:8] + bytes(16) + data[24:])


def test_a_state_of_another_configuration_is_refused_with_every_difference() -> None:
    table = binary_table()
    data = table.to_bytes()
    evaluator = rs.EvaluatorSettings(window=rs.LastEvents(5), every=rs.EveryEvents(2), order="position")
    other = rs.TableSettings(evaluator, slices=("carrier", "origin"), shards=16)
    with pytest.raises(rs.OtherConfigurationError) as caught:
        EvaluatorTable.from_bytes(data, other)
    for words in (
        "window was 'last:4' and is now 'last:5'",
        "shards was 8 and is now 16",
        "slices was ['carrier'] and is now ['carrier', 'origin']",
        "Go on with the old one",
    ):
        assert words in str(caught.value)
    assert "every" not in str(caught.value)
    with pytest.raises(rs.OtherConfigurationError, match=r"threshold was 0.5 and is now 0.25"):
        rs.ModelEvaluator.from_bytes(rs.ModelEvaluator().to_bytes(), rs.EvaluatorSettings(threshold=0.25))


def test_a_state_of_another_positive_class_is_refused() -> None:
    table = class_table()
    other = rs.TableSettings(rs.EvaluatorSettings(every=rs.EveryEvents(2), positive="down"))
    with pytest.raises(rs.OtherConfigurationError, match="positive was 'up' and is now 'down'"):
        EvaluatorTable.from_bytes(table.to_bytes(), other)


def test_what_is_shown_may_change_over_a_restart() -> None:
    ev = rs.ModelEvaluator(measures="auc")
    ev.update([0, 1], [0.1, 0.9])
    again = rs.ModelEvaluator.from_bytes(ev.to_bytes(), rs.EvaluatorSettings(measures="ks"))
    assert (again.measures().auc, again.measures().ks) == (None, 1.0)
    assert rs.ModelEvaluator.from_bytes(ev.to_bytes()).measures() == ev.measures()


def test_a_table_is_not_one_evaluator() -> None:
    with pytest.raises(
        rs.OtherConfigurationError, match="with 6 evaluators and 1 packets that wait, not of one"
    ):
        rs.ModelEvaluator.from_bytes(binary_table().to_bytes())


def test_an_evaluator_that_saw_nothing_comes_back() -> None:
    ev = rs.ModelEvaluator(model="m", slice="s=1", pane=(1, 2))
    again = rs.ModelEvaluator.from_bytes(ev.to_bytes())
    assert (again.model, again.slice, again.pane, again.seq) == ("m", "s=1", (1, 2), 0)
    assert again.to_bytes() == ev.to_bytes()


def test_a_state_is_not_changed_by_what_comes_later() -> None:
    ev = rs.ModelEvaluator(window=rs.LastEvents(3))
    ev.update([0, 1, 1], [0.1, 0.2, 0.3], times=[1, 2, 3], time_unit="us")
    snapshot = Snapshot.of_evaluator(ev.settings, ev.state())
    before = snapshot.pack()
    ev.update([0, 0], [0.9, 0.8], times=[4, 5], time_unit="us")
    assert snapshot.pack() == before


def test_a_snapshot_in_words() -> None:
    text = describe(Snapshot.unpack(binary_table().to_bytes()))
    for words in (
        "rocsteady snapshot, version 1, fingerprint", "window last:4, a row every 2 events, order position",
        "shards: 8", "slices: carrier", "packets that wait for their turn: 1",
        "evaluators: 6, events held: 10", "m: 3 events held of 3 applied, 1 rows, up to 1970-01-01T00:00:04",
        "ü [carrier=UA]:",
    ):  # fmt: skip
        assert words in text
    assert "shards: each model its own" in describe(Snapshot.unpack(class_table().to_bytes()))
