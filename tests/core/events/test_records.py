"""Records of a shard survive their wire form, and damaged bytes never pass for one."""

from __future__ import annotations

import json
import random
import zlib

import pytest
import rocsteady as rs
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.events.batch import EventBatch
from rocsteady.core.events.records import EndOfInput, EndOfPartition, unpack_record

from tests.support.streams.batches import batches, content, flips, truncations, with_right_checksum
from tests.support.thorough import examples

HEAD, CRC = 10, 6
END_OF_PARTITION = EndOfPartition("b/ü.csv", 1, 3, 12)


numbers = st.integers(0, 2**31 - 1)


@given(st.builds(EndOfPartition, st.text(), numbers, numbers, numbers))
def test_unpack_undoes_pack(record: EndOfPartition) -> None:
    assert unpack_record(record.pack()) == record


@settings(max_examples=examples(30))
@given(batches())
def test_batches_are_records(batch: EventBatch) -> None:
    read = unpack_record(batch.pack())
    assert isinstance(read, EventBatch)
    assert content(read) == content(batch)


@pytest.mark.parametrize("record", [END_OF_PARTITION, EndOfInput()], ids=["partition", "input"])
def test_every_truncation_and_every_changed_byte_is_told(record: EndOfPartition | EndOfInput) -> None:
    packed = record.pack()
    for damaged in (*truncations(packed), *flips(packed), packed + b"\0"):
        with pytest.raises(rs.WireError):
            unpack_record(damaged)


def test_contents_with_a_right_checksum_are_told_where_they_make_no_sense() -> None:
    rng = random.Random(1)
    bodies: list[object] = [
        None, 3, "x", [], ["s", 1],
        ["s", 1, 2, 3], ["s", 1, 2, 3, 4.5], ["s", 1, 2, 3, 4, 5, 6], ["s", 1, 2, 3, 2**63], [1, 2, 3, 4],
        ["s", 1, 2, "3"], ["s", 1, 2, 3.5],
        ["s", 1, 2, True], ["s", -1, 2, 3], ["s", 1, 2, None], [[], 1, 2, 3], {"s": 1}, {},
    ]  # fmt: skip
    texts = [json.dumps(body).encode() for body in bodies]
    texts += [b"", b"[", b"\xff", b"[" * 100_000] + [rng.randbytes(rng.randrange(30)) for _ in range(500)]
    for text in texts:
        for kind in (1, 2, 0, 3, 4, 5):
            if kind == 2 and not text:
                continue
            damaged = b"RSCT\1" + bytes([kind]) + zlib.crc32(text).to_bytes(4, "little") + text
            with pytest.raises(rs.WireError):
                unpack_record(damaged)


def test_a_record_of_one_kind_never_passes_for_another() -> None:
    packed = bytearray(END_OF_PARTITION.pack())
    packed[5] = 2
    with pytest.raises(rs.CorruptBytesError):
        unpack_record(bytes(packed))
    packed = bytearray(EndOfInput().pack())
    packed[5] = 1
    with pytest.raises(rs.CorruptBytesError):
        unpack_record(with_right_checksum(bytes(packed), HEAD, CRC))


def test_each_kind_of_foreign_bytes_has_its_own_error_and_says_what_was_found() -> None:
    packed = END_OF_PARTITION.pack()
    with pytest.raises(rs.ForeignBytesError, match="start with b'PAR1' are not a record"):
        unpack_record(b"PAR1" + bytes(40))
    with pytest.raises(rs.ForeignBytesError, match="3 bytes are not"):
        unpack_record(b"abc")
    with pytest.raises(rs.ForeignBytesError, match="0 bytes"):
        unpack_record(b"")
    with pytest.raises(rs.TruncatedBytesError, match="8 bytes are not a whole record"):
        unpack_record(packed[:8])
    with pytest.raises(rs.FutureVersionError, match="version 9: this rocsteady reads up to 1; upgrade it"):
        unpack_record(packed[:4] + b"\x09" + packed[5:])
    with pytest.raises(rs.CorruptBytesError, match="checksum"):
        unpack_record(packed[:-1])
