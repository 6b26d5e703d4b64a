"""An event batch survives its wire form, and damaged bytes never pass for one."""

from __future__ import annotations

import random

import numpy as np
import pytest
import rocsteady as rs
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.events.batch import EventBatch
from rocsteady.core.events.columns import IdColumn, TextColumn
from rocsteady.core.events.wire import PacketHead, tagged_columns

from tests.support.streams.batches import batches, content, flips, truncations, with_right_checksum
from tests.support.thorough import examples

HEAD, CRC = 16, 12

FULL = EventBatch(
    models=TextColumn.of(["m", "ü", "m"]),
    scores=np.array([0.25, -1.0, 1e300]),
    labels=np.array([1, 0, -1], np.int8),
    times=np.array([0, -1, 1_700_000_000_000_000]),
    ids=IdColumn.of(["a", None, ""]),
    weights=np.array([1.0, 0.5, 2.0]),
    label_classes=TextColumn.of(["up", "down", "flat"]),
    predicted=TextColumn.of(["up", "up", "down"]),
    slices=(("carrier", TextColumn.of(["UA", None, "DL"])), ("größe", TextColumn.of(["", "S", ""]))),
    source="flights.csv",
    head=PacketHead(2, 3, 1_700_000_000_000_000),
)


@settings(max_examples=examples(150))
@given(batches())
def test_unpack_undoes_pack(batch: EventBatch) -> None:
    packed = batch.pack()
    read = EventBatch.unpack(packed)
    assert content(read) == content(batch)
    assert read.pack() == packed
    assert read.scores.flags.writeable


def test_an_event_takes_10_bytes() -> None:
    n = 1000
    batch = EventBatch(TextColumn.of(["m"] * n), np.zeros(n), np.zeros(n, np.int8))
    assert len(batch.pack()) <= 10 * n + 100


@pytest.mark.parametrize("entries", [1, 127, 128, 32767, 32768])
def test_codes_of_every_width_come_back(entries: int) -> None:
    names: list[str | None] = [*map(str, range(entries)), None]
    column = TextColumn.of(names)
    batch = EventBatch(
        TextColumn.of(["m"] * len(names)),
        np.zeros(len(names)),
        np.zeros(len(names), np.int8),
        slices=(("s", column),),
    )
    assert EventBatch.unpack(batch.pack()).slices[0][1].to_list() == names


@settings(max_examples=examples(60))
@given(batches(), st.data())
def test_take_chooses_rows_of_every_column(batch: EventBatch, data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(0, len(batch) - 1), max_size=5)) if len(batch) else []
    taken = batch.take(np.array(rows, np.int64))
    for name, _, column in tagged_columns(batch):
        chosen = {name: column for name, _, column in tagged_columns(taken)}[name]
        whole = column.tolist() if isinstance(column, np.ndarray) else column.to_list()
        part = chosen.tolist() if isinstance(chosen, np.ndarray) else chosen.to_list()
        assert part == [whole[row] for row in rows]
        if isinstance(chosen, TextColumn):
            assert set(chosen.values) == set(chosen.to_list()) - {None}
    assert (taken.source, taken.head) == (batch.source, batch.head)


@settings(max_examples=examples(60))
@given(batches(), st.data())
def test_a_part_is_what_take_gives_of_its_rows(batch: EventBatch, data: st.DataObject) -> None:
    start, end = sorted(data.draw(st.lists(st.integers(0, len(batch)), min_size=2, max_size=2)))
    assert batch.part(start, end).pack() == batch.take(np.arange(start, end)).pack()


@settings(max_examples=examples(50))
@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=8), st.data())
def test_events_keep_their_sources_however_they_are_put_together(names: str, data: st.DataObject) -> None:
    parts = [
        EventBatch(
            TextColumn.of(["m"]), np.zeros(1), np.zeros(1, np.int8), positions=np.array([place]), source=name
        )
        for place, name in enumerate(names)
    ]
    while len(parts) > 1:
        start = data.draw(st.integers(0, len(parts) - 2))
        end = data.draw(st.integers(start + 2, len(parts)))
        parts[start:end] = [EventBatch.concat(parts[start:end])]
    (whole,) = parts
    assert whole.event_sources().to_list() == [*names]
    assert whole.positions is not None
    assert whole.positions.tolist() == [*range(len(names))]


@pytest.mark.parametrize("batch", [FULL, FULL.take(np.array([], np.int64))], ids=["full", "empty"])
def test_every_truncation_is_told(batch: EventBatch) -> None:
    for cut in truncations(batch.pack()):
        with pytest.raises(rs.TruncatedBytesError if cut else rs.ForeignBytesError):
            EventBatch.unpack(cut)


@pytest.mark.parametrize("batch", [FULL, FULL.take(np.array([], np.int64))], ids=["full", "empty"])
def test_every_changed_byte_is_told(batch: EventBatch) -> None:
    for damaged in flips(batch.pack()):
        with pytest.raises(rs.WireError):
            EventBatch.unpack(damaged)


def test_bytes_with_a_right_checksum_and_wrong_content_are_told() -> None:
    rng = random.Random(1)
    packed = FULL.pack()
    read = 0
    for _ in range(4000):
        damaged = bytearray(packed)
        for _ in range(rng.randint(1, 4)):
            damaged[rng.randrange(HEAD, len(packed))] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
        try:
            batch = EventBatch.unpack(with_right_checksum(bytes(damaged), HEAD, CRC))
        except rs.WireError:
            continue
        read += 1  # other scores, times or letters: a batch all the same
        assert content(EventBatch.unpack(batch.pack())) == content(batch)
    assert read > 100


def test_random_payloads_with_a_right_checksum_are_told() -> None:
    rng = random.Random(2)
    for _ in range(3000):
        head = FULL.pack()[:6] + rng.choice((b"\0\0", b"\3\0", rng.randbytes(2)))
        rows = rng.choice((0, 1, 3, 2**32 - 1)).to_bytes(4, "little")
        data = head + rows + bytes(4) + rng.randbytes(rng.randrange(120))
        with pytest.raises(rs.WireError):
            EventBatch.unpack(with_right_checksum(data, HEAD, CRC))


@pytest.mark.parametrize(
    ("column", "value"),
    [("labels", 2), ("labels", -1), ("labels", 100), ("scores", np.nan), ("scores", np.inf),
     ("weights", 0.0), ("weights", -1.0), ("weights", np.nan)],
)  # fmt: skip
def test_values_that_validation_stops_are_told_on_the_wire(column: str, value: float) -> None:
    columns = {
        "scores": np.array([0.5, 0.5]), "labels": np.array([0, 1], np.int8), "weights": np.array([1.0, 1.0]),
    }  # fmt: skip
    columns[column][1] = value
    with pytest.raises(rs.CorruptBytesError):
        EventBatch.unpack(EventBatch(TextColumn.of(["a", "b"]), **columns).pack())


def test_missing_models_and_classes_are_told_on_the_wire() -> None:
    one, present, missing = np.zeros(1), TextColumn.of(["x"]), TextColumn.of([None])
    for models, labels, predicted in (
        (missing, present, present),
        (present, missing, present),
        (present, present, missing),
    ):
        batch = EventBatch(models, one, np.zeros(1, np.int8), label_classes=labels, predicted=predicted)
        with pytest.raises(rs.CorruptBytesError, match="missing"):
            EventBatch.unpack(batch.pack())


def test_each_kind_of_foreign_bytes_has_its_own_error_and_says_what_was_found() -> None:
    packed = FULL.pack()
    with pytest.raises(rs.ForeignBytesError, match=r"start with b'PK.*' are not an event batch"):
        EventBatch.unpack(b"PK\3\4 and so on, and so on")
    with pytest.raises(rs.ForeignBytesError, match="0 bytes are not an event batch"):
        EventBatch.unpack(b"")
    with pytest.raises(rs.TruncatedBytesError, match="ends after 9 bytes, inside its head"):
        EventBatch.unpack(packed[:9])
    with pytest.raises(rs.TruncatedBytesError, match="ends after 100 bytes, before its 10 columns do"):
        EventBatch.unpack(packed[:100])
    with pytest.raises(rs.FutureVersionError, match="version 2: this rocsteady reads up to 1; upgrade it"):
        EventBatch.unpack(packed[:4] + b"\2" + packed[5:])
    with pytest.raises(rs.CorruptBytesError, match="fails its checksum"):
        EventBatch.unpack(packed[:-1] + bytes([packed[-1] ^ 1]))
    with pytest.raises(rs.CorruptBytesError, match="checksum"):
        EventBatch.unpack(packed + b"\0")


def test_columns_of_unequal_length_are_refused() -> None:
    with pytest.raises(rs.InputError, match="'scores' of an event batch has 1 rows and the models 2"):
        EventBatch(TextColumn.of(["a", "b"]), np.zeros(1), np.zeros(2, np.int8))
    with pytest.raises(rs.InputError, match="predicted classes exactly when"):
        EventBatch(TextColumn.of(["a"]), np.zeros(1), np.zeros(1, np.int8), predicted=TextColumn.of(["x"]))


def test_text_columns_keep_the_order_of_first_appearance() -> None:
    column = TextColumn.of(["b", None, "a", "b"])
    assert column.values == ("b", "a")
    assert column.to_list() == ["b", None, "a", "b"]
    assert [column[row] for row in range(4)] == ["b", None, "a", "b"]
    with pytest.raises(rs.CorruptBytesError, match="entry 2 of a dictionary of 2"):
        TextColumn(np.array([0, 2], np.int32), ("x", "y"))


@given(st.lists(st.one_of(st.none(), st.text(max_size=3)), max_size=6), st.data())
def test_ids_come_back(ids: list[str | None], data: st.DataObject) -> None:
    column = IdColumn.of(ids)
    assert column.to_list() == ids
    if ids:
        rows = data.draw(st.lists(st.integers(0, len(ids) - 1), max_size=5))
        assert column.take(np.array(rows, np.int64)).to_list() == [ids[row] for row in rows]
    start, end = sorted(data.draw(st.lists(st.integers(0, len(ids)), min_size=2, max_size=2)))
    assert column.part(start, end).to_list() == ids[start:end]


def test_damaged_ids_are_told() -> None:
    for lengths in ([5], [-2], [1, 1]):
        with pytest.raises(rs.CorruptBytesError, match="damaged"):
            IdColumn(np.array(lengths, np.int32), b"abc")
