"""Which topic an offset belongs to, and which reader reads an added partition."""

from __future__ import annotations

import pytest
from rocsteady.core.errors import CorruptBytesError, InputError
from rocsteady.transforms.sources.streams.offsets import (
    Position,
    ReaderState,
    added_numbers,
    check_origin,
    origin_of,
)

ANEW = (
    "the state goes on from offset 7,000 of t[0], and its topic was deleted and made anew since: its id was "
    "x and is y; the new topic's offsets are others. Begin anew"
)
ELSEWHERE = (
    "the state goes on from offset 7,000 of t[0] of Kafka cluster A, and this is that of Kafka cluster B, "
    "whose offsets are others; name the brokers that the state was read from, or begin anew"
)


@pytest.mark.parametrize("known", [1, 2, 3, 7])
@pytest.mark.parametrize("now", [0, 1, 3, 7, 20])
def test_each_added_partition_has_one_reader(known, now):
    shared = [number for reader in range(known) for number in added_numbers(reader, known, now)]
    assert sorted(shared) == [*range(known, now)]


def test_a_reader_keeps_its_added_partitions_when_more_come():
    before, after = ({*added_numbers(1, 3, now)} for now in (8, 50))
    assert before < after


@pytest.mark.parametrize(
    ("was", "here"),
    [
        ("", origin_of("A", "x")),
        (origin_of("A", "x"), ""),
        (origin_of("A", "x"), origin_of("A", "x")),
        (origin_of("A", ""), origin_of("A", "x")),
        (origin_of("A", "x"), origin_of("A", "")),
        (origin_of("", "x"), origin_of("A", "x")),
    ],
)
def test_ids_that_are_equal_or_not_known_are_no_contradiction(was, here):
    check_origin("the state", "t[0]", 7, was, here, "begin anew")


@pytest.mark.parametrize(
    ("was", "here", "said"),
    [
        (
            origin_of("A", "x"), origin_of("A", "y"),
            ANEW,
        ),
        (
            origin_of("", "x"), origin_of("A", "y"),
            ANEW,
        ),
        (
            origin_of("A", ""), origin_of("B", ""),
            ELSEWHERE,
        ),
    ],
)  # fmt: skip
def test_another_id_is_refused(was, here, said):
    with pytest.raises(InputError) as refusal:
        check_origin("the state", "t[0]", 7_000, was, here, "begin anew")
    assert str(refusal.value) == said


def test_another_cluster_is_said_before_another_topic():
    """On another cluster each topic has another id, so the ids say nothing of a deletion."""
    with pytest.raises(InputError, match="name the brokers"):
        check_origin("it", "t[0]", 7, origin_of("A", "x"), origin_of("B", "y"), "begin anew")


def test_a_state_keeps_added_partitions():
    state = ReaderState(7, [3], name="t[0]", known=2, added=[Position(2, 5, 6, is_idle=True), Position(4, 0)])
    assert ReaderState.from_bytes(state.to_bytes()) == state
    for number, next_ in ((-1, 0), (2, -1), ("2", 0)):
        damaged = ReaderState(7, [3], added=[Position(number, next_)])
        with pytest.raises(CorruptBytesError):
            ReaderState.from_bytes(damaged.to_bytes())
