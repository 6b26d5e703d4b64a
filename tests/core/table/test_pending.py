"""Events that wait come out once, of the evaluators that are asked for, in the order in which they came."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.table.pending import PendingEvents

from tests.support.thorough import examples

Waiting = dict[int, list[tuple[float, int, int]]]

steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.lists(st.integers(0, 9), max_size=12)),
        st.tuples(st.just("take"), st.lists(st.integers(0, 9), max_size=4, unique=True)),
        st.tuples(st.just("take all"), st.just([])),
    ),
    max_size=40,
)


def taken(runs: Any) -> Waiting:
    found: Waiting = {}
    for number, scores, labels, times in runs:
        assert number not in found
        assert len(scores)
        moments = [0] * len(scores) if times is None else times.tolist()
        found[number] = list(zip(scores.tolist(), labels.tolist(), moments, strict=True))
    return found


@given(steps, st.booleans(), st.sampled_from((1, 2, 60)))
@settings(max_examples=examples(80))
def test_what_waits_is_what_a_list_for_each_evaluator_would_hold(
    history: list[tuple[str, list[int]]], timed: bool, copies: int
) -> None:
    pending, oracle, seen = PendingEvents(), Waiting(), 0
    for step, numbers in history:
        if step == "add":
            numbers = numbers * copies
            scores = np.arange(seen, seen + len(numbers), dtype=np.float64)
            seen += len(numbers)
            labels, times = (scores % 2).astype(np.int8), scores.astype(np.int64) * 7
            assert pending.fits(times if timed else None)
            pending.add(np.array(numbers, np.int64), scores, labels, times if timed else None)
            for number, score, label, time in zip(numbers, scores, labels, times, strict=True):
                oracle.setdefault(number, []).append((float(score), int(label), int(time) if timed else 0))
        elif step == "take":
            known = [number for number in numbers if number in oracle]
            assert taken(pending.pop(np.array(known, np.int64))) == {
                number: oracle.pop(number) for number in known
            }
        else:
            found = taken(pending.pop_all())
            assert found == oracle
            assert list(found) == sorted(found)
            oracle.clear()
        assert len(pending) == sum(map(len, oracle.values()))
    assert taken(pending.pop_all()) == oracle


def test_what_was_taken_gives_its_room_back() -> None:
    pending = PendingEvents()
    for round_ in range(200):
        numbers = np.arange(1_000) % 100
        pending.add(numbers, np.ones(1_000), np.ones(1_000, np.int8), None)
        for _ in pending.pop(np.arange(round_ % 2, 100)):
            pass
        assert pending.nbytes < 2**18
    for _ in pending.pop_all():
        pass
    assert len(pending) == 0


def test_events_with_times_do_not_join_events_without() -> None:
    pending = PendingEvents()
    one = np.zeros(1, np.int64)
    pending.add(one, np.zeros(1), np.zeros(1, np.int8), None)
    assert not pending.fits(one)
    for _ in pending.pop_all():
        pass
    assert pending.fits(one)
