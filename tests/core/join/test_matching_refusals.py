"""What cannot be a setting, a call or a state of the matching of labels is refused in a sentence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from rocsteady.core.errors import ConfigError, CorruptBytesError, InputError
from rocsteady.core.events.columns import IdColumn
from rocsteady.core.join.matching import END, NOTHING, Arrivals, LabelMatcher
from rocsteady.core.join.matching_state import LATEST

TTL = 4


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ((-1,), "ttl is -1 microseconds; it can be 0 to"),
        ((2**61,), "ttl is 2305843009213693952 microseconds"),
        ((5, 6), "lead is 6 microseconds; it can be 0 to ttl, which is 5"),
        ((5, -1), "lead is -1"),
        ((5, 5, "newest"), "second is 'newest'; it can be 'first', 'last' or 'dead-letter'"),
    ],
)
def test_settings_that_cannot_be_are_named(settings_: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        LabelMatcher(*settings_)


def test_events_out_of_turn_are_refused_and_nothing_has_changed() -> None:
    matcher = LabelMatcher(TTL)
    one = Arrivals(IdColumn.of(["a"]), np.array([5]), np.array([1]))
    matcher.advance(one, clock=6)
    before = matcher.to_bytes()
    two = IdColumn.of(["a", "b"])
    for wrong, clock, message in (
        (one, 9, "predictions of times 5 to 5 came between clocks 6 and 9"),
        (one._replace(times=np.array([9])), 9, "times 9 to 9"),
        (Arrivals(two, np.array([8, 7]), np.arange(2)), 9, "the times of predictions descend; sort"),
        (Arrivals(two, np.array([8]), np.arange(1)), 9, "2 ids of predictions came with 1 times"),
        (NOTHING, 5, "the clock goes back from 6 to 5"),
        (NOTHING, END, "the end of the input needs its greatest time"),
        (one._replace(ids=IdColumn.of([None]), times=np.array([7])), 9, "a prediction without an id"),
    ):
        with pytest.raises(InputError, match=message):
            matcher.advance(wrong, clock=clock)
        assert matcher.to_bytes() == before


def test_bytes_that_were_cut_or_changed_are_no_state() -> None:
    matcher = LabelMatcher(TTL)
    matcher.advance(
        Arrivals(IdColumn.of(["a", "bc"]), np.array([1, 2]), np.array([0, 1])),
        Arrivals(IdColumn.of(["d"]), np.array([2]), np.array([0])),
        clock=3,
    )
    good = matcher.to_bytes()
    for length in range(len(good)):
        with pytest.raises(CorruptBytesError):
            LabelMatcher.from_bytes(good[:length])
    with pytest.raises(CorruptBytesError, match="where its head says"):
        LabelMatcher.from_bytes(good + b"\0")
    for place in range(len(good)):
        for bit in range(8):
            damaged = bytearray(good)
            damaged[place] ^= 1 << bit
            try:
                other = LabelMatcher.from_bytes(bytes(damaged))
            except CorruptBytesError:
                continue
            left = other.advance(clock=END, end=LATEST)  # what is read can be gone on from
            assert len(left.unmatched) + len(left.pair_predictions) == 2
            assert len(left.gone) == 1
