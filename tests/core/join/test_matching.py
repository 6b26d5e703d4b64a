"""Predictions and labels meet as their times say, however the streams are cut, stored and restarted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from itertools import product
from typing import Any, NamedTuple, get_args

import numpy as np
import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st
from rocsteady.core.events.columns import IdColumn
from rocsteady.core.ids import index as id_index
from rocsteady.core.join import matching as label_matching
from rocsteady.core.join import matching_state as label_matching_state
from rocsteady.core.join import matching_steps as label_matching_steps
from rocsteady.core.join.join_settings import JoinSettings
from rocsteady.core.join.matching import END, Arrivals, Departures, LabelMatcher
from rocsteady.core.join.matching_steps import ORPHAN, REPEAT, SECOND, USED

from tests.support.oracles.labels import Label, Prediction, matched
from tests.support.thorough import examples, some

TTL = 4
MOMENTS = st.integers(-2, 10)
IDS = st.sampled_from(("", "a", "A"))
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
    clocks = sorted(draw(st.sets(st.integers(-3, 20), max_size=9)))
    return (
        sorted((Prediction(*row, 100 + i) for i, row in enumerate(predictions)), key=lambda row: row.time),
        sorted((Label(*row, 200 + i) for i, row in enumerate(labels)), key=lambda row: row.time),
        [*clocks, END],
    )


@given(streams(), st.sampled_from((0, 2, TTL)), st.sampled_from(OPTIONS), st.booleans(), st.booleans())
@settings(max_examples=examples(600))
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

    def successor_of(label: int) -> int:
        """Return the time of the label that follows one of the same id."""
        id_, *rank = what_of[label]
        return min((what[1] for what in truth.fate_of if what[0] == id_ and [*what[1:]] > rank), default=END)

    found: dict[int, Any] = {}
    fates: dict[int, int] = {}
    paired: list[int] = []
    with tiny() if small else nullcontext():
        calls = steps(LabelMatcher(TTL, lead, second), predictions, labels, clocks, restart)
    delay = JoinSettings(TTL, lead, second).output_delay
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
            known = time_of[label] if fate == REPEAT else time_of[label] + lead
            if second == "last" and fate in (USED, SECOND):  # held for what waits, unless it is superseded
                known = min(max(known, successor_of(label)), known + TTL)
            assert before <= known < clock
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


@pytest.mark.slow
@given(streams(), st.sampled_from((0, 2, TTL)), st.sampled_from(OPTIONS))
@example(([Prediction("a", 0, 1)], [Label("a", 10, 0, 2)], [6, 12]), 2, "first")  # known, forgotten, new
@settings(max_examples=examples(300))
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
@settings(max_examples=examples(150))
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


def column(ids: np.ndarray) -> IdColumn:
    """Ids of equal lengths, a row of bytes each."""
    return IdColumn(np.full(len(ids), ids.shape[1], np.int32), ids.tobytes())


def arrivals(ids: np.ndarray, times: np.ndarray, handles: np.ndarray | None = None) -> Arrivals:
    return Arrivals(column(ids), times, np.arange(len(times)) if handles is None else handles)


def test_one_label_serves_all_predictions_of_its_id_at_once() -> None:
    waiting = 3 * label_matching._LEAST_ROOM + 7
    matcher = LabelMatcher(TTL)
    matcher.advance(arrivals(np.zeros((waiting, 1), np.uint8), np.zeros(waiting, np.int64)), clock=1)
    left = matcher.advance(labels=Arrivals(IdColumn.of(["\0"]), np.array([3]), np.array([9])), clock=4)
    assert sorted(left.pair_predictions) == list(range(waiting))
    assert set(left.pair_labels) == {9}
    assert matcher.waiting == 0
    assert matcher.advance(clock=END, end=3).fates.tolist() == [USED]


@pytest.mark.parametrize("second", OPTIONS)
@pytest.mark.parametrize("ids", ["one", "as many as events"])
def test_many_events_at_one_moment_are_no_slower_than_others(second: Any, ids: str) -> None:
    n = 200_000  # squared, these would take minutes
    times = np.full(n, 7)
    ids_of = np.zeros(n, np.uint32) if ids == "one" else np.arange(n, dtype=np.uint32)
    rows = ids_of.view(np.uint8).reshape(n, 4)
    matcher = LabelMatcher(TTL, second=second)
    ties = np.arange(n)[::-1].copy()
    left = matcher.advance(
        arrivals(rows, times), Arrivals(column(rows), times, np.arange(n), ties), clock=END, end=7
    )
    chosen = ties[left.pair_labels]
    expected = (n - 1 if second == "last" else 0) if ids == "one" else ties[left.pair_predictions]
    assert len(chosen) == n
    assert (chosen == expected).all()


def test_ids_are_told_apart_by_their_last_byte_however_long_they_are() -> None:
    long = "x" * 10_000
    ids = ["", "a", "A", long, long[:-1] + "X", long[:-1], "é", "É", "\0", "\0\0"]
    matcher = LabelMatcher(TTL)
    n = len(ids)
    matcher.advance(Arrivals(IdColumn.of(ids), np.zeros(n, np.int64), np.arange(n)), clock=1)
    matcher = LabelMatcher.from_bytes(matcher.to_bytes())
    back = Arrivals(IdColumn.of(ids[::-1]), np.full(n, 2), np.arange(n)[::-1].copy())
    left = matcher.advance(labels=back, clock=3)
    assert (left.pair_predictions == left.pair_labels).all()
    assert sorted(left.pair_labels) == list(range(n))


@pytest.mark.slow
def test_a_million_predictions_that_no_label_comes_for() -> None:
    n, step = 1_000_000, 50_000
    ids = np.arange(n, dtype=np.uint64).view(np.uint8).reshape(n, 8)
    matcher = LabelMatcher(n, second="last")
    for start in range(0, n, step):
        some = np.arange(start, start + step)
        left = matcher.advance(arrivals(ids[some], some, some), clock=start + step)
        assert not len(left.unmatched)
    assert matcher.waiting == n
    assert len(matcher.to_bytes()) < (64 + 8) * n
    assert matcher.nbytes < (80 + 8) * n
    left = matcher.advance(clock=END, end=n - 1)
    assert (left.unmatched == np.arange(n)).all()
    assert (left.unmatched_ages == np.arange(n)[::-1]).all()
    assert matcher.nbytes < 1_000


@pytest.mark.slow
@pytest.mark.parametrize(("lead", "second"), some(product([0, 20_000], ["first", "last"])))
def test_state_stays_in_proportion_to_ttl_however_long_the_stream(second: Any, lead: int) -> None:
    n, step, ttl = 400_000, 5_000, 20_000
    rng = np.random.default_rng(1)
    ids = rng.integers(0, n // 2, n).astype(np.uint32).view(np.uint8).reshape(n, 4)
    has_label = rng.random(n) < 0.9
    times = np.arange(n) + rng.integers(-ttl, 2 * ttl, n)
    order = np.flatnonzero(has_label)[np.argsort(times[has_label], kind="stable")]
    matcher = LabelMatcher(ttl, lead, second)
    decided, gone, sizes = 0, 0, []
    clock = int(times.min()) + step
    while clock < n + 5 * ttl:
        start = clock - step
        rows = np.arange(max(start, 0), min(max(clock, 0), n))
        some = order[np.searchsorted(times[order], start) : np.searchsorted(times[order], clock)]
        left = matcher.advance(arrivals(ids[rows], rows, rows), arrivals(ids[some], times[some], some), clock)
        decided += len(left.pair_predictions) + len(left.unmatched)
        gone += len(left.gone)
        sizes.append(matcher.nbytes)
        assert matcher.waiting <= ttl + step
        assert matcher.held <= 2 * (ttl + lead + step)
        clock += step
    assert (decided, gone) == (n, len(order))
    assert max(sizes) < 400 * (ttl + step)
    assert max(sizes[-20:]) <= max(sizes[:40])
    assert len(matcher) == 0
    assert len(LabelMatcher.from_bytes(matcher.to_bytes())) == 0


def test_ids_are_forgotten_while_nothing_comes() -> None:
    n, ttl = 100_000, 1_000
    ids, times = np.arange(n, dtype=np.uint32).view(np.uint8).reshape(n, 4), np.zeros(n, np.int64)
    matcher = LabelMatcher(ttl, lead=0)
    left = matcher.advance(arrivals(ids, times), arrivals(ids, times), clock=1)
    assert len(left.pair_labels) == n
    matcher.advance(clock=ttl)
    assert len(matcher) == 0
    assert matcher.nbytes > 40 * n, "a label up to the time ttl would be a second one"
    matcher.advance(clock=2 * ttl + 2)
    assert matcher.nbytes < 1_000


def test_handles_are_numbered_anew_in_time_order() -> None:
    matcher = LabelMatcher(TTL)
    ids = IdColumn.of(["a", "b", "c"])
    matcher.advance(
        Arrivals(ids, np.array([1, 2, 3]), np.array([70, 60, 50])),
        Arrivals(IdColumn.of(["b", "d", "e"]), np.array([2, 2, 3]), np.array([20, 30, 10])),
        clock=4,
    )
    predictions, labels = matcher.renumber()
    assert (predictions.tolist(), labels.tolist()) == ([70, 50], [20, 30, 10])
    left = matcher.advance(
        labels=Arrivals(IdColumn.of(["c"]), np.array([4]), np.array([99])), clock=END, end=4
    )
    assert (left.pair_predictions.tolist(), left.pair_labels.tolist()) == ([1], [99])
    assert left.unmatched.tolist() == [0]
    assert sorted(left.gone.tolist()) == [0, 1, 2, 99]


def test_labels_without_ties_of_one_id_and_time_are_the_same() -> None:
    labels = Arrivals(IdColumn.of(["a", "b", "a"]), np.array([1, 1, 1]), np.array([1, 2, 3]))
    left = LabelMatcher(TTL).advance(labels=labels, clock=END, end=1)
    assert dict(zip(left.gone.tolist(), left.fates.tolist(), strict=True)) == {
        1: ORPHAN,
        2: ORPHAN,
        3: REPEAT,
    }


def test_every_kernel_is_compiled_once() -> None:
    if not hasattr(label_matching_steps.run, "signatures"):
        pytest.skip("numba is switched off by NUMBA_DISABLE_JIT")
    for second in OPTIONS:
        matcher = LabelMatcher(TTL, second=second)
        for times in (np.array([1], np.int32), np.array([2.0]), np.arange(6, 8)[::2]):
            some = Arrivals(IdColumn.of(["a"]), times, np.array([1], np.uint8), np.array([True]))
            matcher.advance(some, some, clock=int(times[0]) + 1)
            matcher = LabelMatcher.from_bytes(matcher.to_bytes())
        matcher.advance(clock=END, end=9)
    for kernel in (
        label_matching_steps.run,
        label_matching_state.keep,
        label_matching_state.mark_new,
        id_index.hash_all,
        id_index.find_or_add,
        id_index.fill,
    ):
        assert len(kernel.signatures) == 1, kernel.__name__  # type: ignore[attr-defined]
