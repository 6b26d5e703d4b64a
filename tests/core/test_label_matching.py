"""Predictions and labels meet as their times say, however the streams are cut, stored and restarted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple, get_args

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from label_oracle import Label, Prediction, matched
from rocsteady.core import label_matching, label_matching_steps
from rocsteady.core.errors import ConfigError, CorruptBytesError, InputError
from rocsteady.core.events import IdColumn
from rocsteady.core.label_matching import (
    END,
    NOTHING,
    ORPHAN,
    REPEAT,
    SECOND,
    USED,
    Arrivals,
    Departures,
    LabelMatcher,
)

TTL = 4
MOMENTS = st.integers(-3, 14)
IDS = st.sampled_from(("", "a", "A", "aa", "é"))
OPTIONS = get_args(label_matching.Second)


@contextmanager
def tiny() -> Iterator[None]:
    """Room for one row at a time, and what has left is reclaimed after every call."""
    before = label_matching._LEAST_ROOM, label_matching._LEAST_GONE
    label_matching._LEAST_ROOM, label_matching._LEAST_GONE = 1, 0
    try:
        yield
    finally:
        label_matching._LEAST_ROOM, label_matching._LEAST_GONE = before


class Call(NamedTuple):
    """A call's clock, what left, and the matcher after it."""

    clock: int
    left: Departures
    waiting: int
    held: int
    state: bytes


def predictions_of(rows: list[Prediction]) -> Arrivals:
    return Arrivals(
        IdColumn.of([row.id for row in rows]),
        np.array([row.time for row in rows], np.int64),
        np.array([row.handle for row in rows], np.int64),
    )


def labels_of(rows: list[Label]) -> Arrivals:
    return Arrivals(*predictions_of(rows)[:3], np.array([row.tie for row in rows], np.int64))  # type: ignore[arg-type]


def between(rows: list[Any], start: int, end: int) -> list[Any]:
    return [row for row in rows if start <= row.time < end]


def steps(
    matcher: LabelMatcher,
    predictions: list[Prediction],
    labels: list[Label],
    clocks: list[int],
    restart: bool,
) -> list[Call]:
    """Feed a matcher call by call."""
    calls = []
    end = max((row.time for row in [*predictions, *labels]), default=0)
    for clock in clocks:
        left = matcher.advance(
            predictions_of(between(predictions, matcher.clock, clock)),
            labels_of(between(labels, matcher.clock, clock)),
            clock,
            end,
        )
        state = matcher.to_bytes()
        calls.append(Call(clock, left, matcher.waiting, matcher.held, state))
        if restart:
            matcher = LabelMatcher.from_bytes(state)
    return calls


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[Prediction], list[Label], list[int]]:
    """Predictions and labels by time, in any order where times are equal, and clocks."""
    predictions = draw(st.lists(st.tuples(IDS, MOMENTS), max_size=14))
    labels = draw(st.lists(st.tuples(IDS, MOMENTS, st.integers(-1, 1)), max_size=14))
    clocks = sorted(draw(st.sets(st.integers(-5, 30), max_size=8)))
    return (
        sorted((Prediction(*row, 100 + i) for i, row in enumerate(predictions)), key=lambda row: row.time),
        sorted((Label(*row, 200 + i) for i, row in enumerate(labels)), key=lambda row: row.time),
        [*clocks, END],
    )


@given(streams(), st.sampled_from((0, 2, TTL)), st.sampled_from(OPTIONS), st.booleans(), st.booleans())
@settings(max_examples=400, deadline=None)
def test_every_prediction_gets_the_label_that_a_look_at_all_pairs_finds(
    stream: tuple[list[Prediction], list[Label], list[int]],
    lead: int,
    second: Any,
    restart: bool,
    small: bool,
) -> None:
    predictions, labels, clocks = stream
    truth = matched(predictions, labels, TTL, lead, second)
    time_of = {row.handle: row.time for row in [*predictions, *labels]}
    what_of = {row.handle: (row.id, row.time, row.tie) for row in labels}
    end = max(time_of.values(), default=0)
    found: dict[int, Any] = {}
    fates: dict[int, int] = {}
    paired: list[int] = []
    with tiny() if small else nullcontext():
        calls = steps(LabelMatcher(TTL, lead, second), predictions, labels, clocks, restart)
    delay = LabelMatcher(TTL, lead, second).output_delay
    before = -10
    for clock, left, waiting, held, _ in calls:
        for prediction, label in zip(left.pair_predictions.tolist(), left.pair_labels.tolist(), strict=True):
            assert prediction not in found
            assert label not in fates, "a label leaves after its last pair"
            found[prediction] = what_of[label]
            paired.append(label)
            known = (
                time_of[prediction] + TTL if second == "last" else max(time_of[prediction], time_of[label])
            )
            assert before <= known < clock
            assert time_of[label] >= before - delay
        for prediction, age in zip(left.unmatched.tolist(), left.unmatched_ages.tolist(), strict=True):
            assert prediction not in found
            found[prediction] = None
            assert before <= time_of[prediction] + TTL < clock
            assert age == (TTL if clock < END else min(TTL, end - time_of[prediction]))
        for label, fate, age in zip(left.gone.tolist(), left.fates.tolist(), left.ages.tolist(), strict=True):
            assert label not in fates
            fates[label] = fate
            late = TTL if second == "last" and fate != ORPHAN else 0
            known = time_of[label] if fate == REPEAT else time_of[label] + lead
            assert before - late <= known < clock
            waited = 0 if fate == REPEAT else lead
            assert age == (waited if clock < END else min(waited, end - time_of[label]))
        before = clock
        assert waiting + len(found) == sum(row.time < clock for row in predictions)
        assert held + len(fates) == sum(row.time < clock for row in labels)
    assert found == truth.label_of
    counting = [what_of[label] for label, fate in fates.items() if fate != REPEAT]
    assert Counter(counting) == Counter(truth.fate_of.keys())
    assert {what_of[label]: fate for label, fate in fates.items() if fate != REPEAT} == truth.fate_of
    assert {label for label, fate in fates.items() if fate == USED} == set(paired)
    assert sorted(fates) == sorted(what_of)
    assert len(calls[-1].state) == len(LabelMatcher(TTL).to_bytes())
    for fate in set(fates.values()):
        event(f"fate {fate}")


@given(streams(), st.sampled_from((0, 2, TTL)), st.sampled_from(OPTIONS))
@settings(max_examples=150, deadline=None)
def test_the_state_at_a_clock_is_the_same_bytes_on_every_way_there(
    stream: tuple[list[Prediction], list[Label], list[int]], lead: int, second: Any
) -> None:
    predictions, labels, clocks = stream
    with tiny():
        ways = [
            [call.state for call in steps(LabelMatcher(TTL, lead, second), *stream, restart)]
            for restart in (False, True)
        ]
    at_once = [
        steps(LabelMatcher(TTL, lead, second), predictions, labels, [clock], False)[0].state
        for clock in clocks
    ]
    assert ways[0] == ways[1] == at_once


@given(streams(), st.sampled_from((0, 2, TTL)), st.sampled_from(OPTIONS), st.randoms())
@settings(max_examples=150, deadline=None)
def test_the_order_of_events_of_equal_time_does_not_matter(
    stream: tuple[list[Prediction], list[Label], list[int]], lead: int, second: Any, random: Any
) -> None:
    predictions, labels, clocks = stream
    what_of = {row.handle: row[:3] for row in labels}

    def outcome(predictions: list[Prediction], labels: list[Label]) -> list[tuple[Any, ...]]:
        return [
            (
                sorted(
                    zip(left.pair_predictions, (what_of[label] for label in left.pair_labels), strict=True)
                ),
                sorted(zip(left.unmatched, left.unmatched_ages, strict=True)),
                sorted(zip((what_of[label] for label in left.gone), left.fates, left.ages, strict=True)),
            )
            for _, left, *_ in steps(LabelMatcher(TTL, lead, second), predictions, labels, clocks, False)
        ]

    shuffled = random.sample(predictions, len(predictions)), random.sample(labels, len(labels))
    by_time: list[Any] = [sorted(rows, key=lambda row: row.time) for rows in shuffled]
    assert outcome(*by_time) == outcome(predictions, labels)
