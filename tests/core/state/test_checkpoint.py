"""The bytes of a checkpoint: read as they were written, and refused where they are damaged."""

from __future__ import annotations

import doctest

import pytest
from rocsteady.core.encoding.fields import HEAD_BYTES, framed
from rocsteady.core.errors import CorruptBytesError, ForeignBytesError, TruncatedBytesError, WireError
from rocsteady.core.state import checkpoint as module
from rocsteady.core.state.checkpoint import MAGIC, VERSION, Checkpoint, ReaderPosition

WHOLE = Checkpoint(
    "0.1.0",
    "2026-01-31T12:00:00Z",
    {"window": "last:40", "label": "\ud800"},
    (ReaderPosition("scored[0]", "Kafka cluster a", '{"next": 7}', "model", None),),
    {"counts": {"events_read": 7}, "reasons": [["late", "later than allowed", 2, 0]]},
    {"evaluators": b"RSST" * 3, "pairs": b""},
)


def test_examples_are_true():
    assert doctest.testmod(module).failed == 0


def test_a_checkpoint_is_read_as_it_was_written():
    assert Checkpoint.unpack(WHOLE.pack()) == WHOLE
    assert WHOLE.describe().splitlines() == [
        "rocsteady checkpoint, version 1, written 2026-01-31T12:00:00Z by rocsteady 0.1.0",
        "of a job that goes on, after 7 events",
        "  scored[0]: at 7",
        "  evaluators: 12 bytes",
        "  pairs: 0 bytes",
    ]


def test_a_torn_checkpoint_is_refused_wherever_it_ends():
    data = WHOLE.pack()
    for end in range(len(data)):
        with pytest.raises(TruncatedBytesError if end else ForeignBytesError):
            Checkpoint.unpack(data[:end])


def test_a_checkpoint_with_one_wrong_bit_is_refused():
    data = WHOLE.pack()
    for place in range(len(data)):
        for bit in (1, 128):
            with pytest.raises(WireError):
                Checkpoint.unpack(data[:place] + bytes([data[place] ^ bit]) + data[place + 1 :])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"ended": false', b'"Ended": false'),
        (b'"readers": [["scored[0]"', b'"readers": [[12345678901'),
        (b'"settings": {', b'"settings": 7, "x": {'),
        (b'"time": "', b'"time": 3, "y": "'),
    ],
)
def test_contents_that_no_rocsteady_writes_are_refused(old, new):
    payload = WHOLE.pack()[HEAD_BYTES:]
    assert old in payload
    changed = payload.replace(old, new)
    changed = (len(changed) - len(payload) + int.from_bytes(payload[:4], "little")).to_bytes(
        4, "little"
    ) + changed[4:]
    with pytest.raises(CorruptBytesError):
        Checkpoint.unpack(framed(MAGIC, VERSION, changed))
