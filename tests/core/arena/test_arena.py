"""An arena makes the rows and the states of one `ModelEvaluator` a model, whatever comes in which packets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

import numpy as np
import pytest
import rocsteady as rs
from rocsteady.core.arena import arena as arena_module
from rocsteady.core.arena.arena import Arena, most_events
from rocsteady.core.arrays import FloatArray, Int8Array, Int64Array
from rocsteady.core.evaluator.evaluator import ModelEvaluator
from rocsteady.core.evaluator.state import EvaluatorState, write_evaluator
from rocsteady.core.events.times import NO_TIME
from rocsteady.core.rows.rows import Rows
from rocsteady.core.settings.evaluator import EvaluatorSettings

MODELS = 5

Stream = Callable[[np.random.Generator, int], tuple[FloatArray, Int8Array]]


def _normal(rng: np.random.Generator, n: int) -> tuple[FloatArray, Int8Array]:
    labels = (rng.random(n) < 0.3).astype(np.int8)
    return rng.normal(size=n) + labels, labels


def _tied(rng: np.random.Generator, n: int) -> tuple[FloatArray, Int8Array]:
    return rng.integers(-2, 3, n) * 0.0 + rng.integers(0, 4, n), rng.integers(0, 2, n).astype(np.int8)


def _zeros_of_both_signs(rng: np.random.Generator, n: int) -> tuple[FloatArray, Int8Array]:
    return rng.choice([0.0, -0.0, 5e-324, -5e-324], n), rng.integers(0, 2, n).astype(np.int8)


def _ascending(rng: np.random.Generator, n: int) -> tuple[FloatArray, Int8Array]:
    return np.arange(float(n)), rng.integers(0, 2, n).astype(np.int8)


def _descending(rng: np.random.Generator, n: int) -> tuple[FloatArray, Int8Array]:
    return -np.arange(float(n)), rng.integers(0, 2, n).astype(np.int8)


def _one_class(rng: np.random.Generator, n: int) -> tuple[FloatArray, Int8Array]:
    return rng.random(n), np.repeat(np.array([1, 0], np.int8), [n // 2, n - n // 2])


def _extreme(rng: np.random.Generator, n: int) -> tuple[FloatArray, Int8Array]:
    return rng.choice([-1.7e308, 1.7e308, 1e-300, 1.0], n), rng.integers(0, 2, n).astype(np.int8)


def _probabilities(rng: np.random.Generator, n: int) -> tuple[FloatArray, Int8Array]:
    return np.round(rng.random(n), 2), rng.integers(0, 2, n).astype(np.int8)


STREAMS = [_normal, _tied, _zeros_of_both_signs, _ascending, _descending, _one_class, _extreme]

SETTINGS = {
    "last-1": EvaluatorSettings(window=rs.LastEvents(1), every=rs.EveryEvents(1)),
    "last-5": EvaluatorSettings(window=rs.LastEvents(5), every=rs.EveryEvents(2)),
    "last-64": EvaluatorSettings(window=rs.LastEvents(64), every=rs.EveryEvents(9)),
    "last-100": EvaluatorSettings(window=rs.LastEvents(100), every=rs.EveryEvents(100)),
    "rare-rows": EvaluatorSettings(window=rs.LastEvents(30), every=rs.EveryEvents(10**9)),
    "all": EvaluatorSettings(window=rs.AllEvents(), every=rs.EveryEvents(40)),
    "uniform-cost": EvaluatorSettings(
        window=rs.AllEvents(), every=rs.EveryEvents(40), cost=rs.BetaCost(1, 1), measures=("auc", "h")
    ),
    "by-time": EvaluatorSettings(window=rs.LastDuration(50), every=rs.EveryEvents(30)),
    "grid": EvaluatorSettings(window=rs.LastEvents(20), every=rs.EverySeconds(30)),
    "grid-by-time": EvaluatorSettings(window=rs.LastDuration(50), every=rs.EverySeconds(20)),
}


class _Pair:
    """An arena, and one `ModelEvaluator` for each of its models."""

    def __init__(self, settings: EvaluatorSettings) -> None:
        self.settings = settings
        self.arena = Arena(settings, (7, 9))
        self.alone = [
            ModelEvaluator(settings, model=f"m{i}", slice=f"s={i}", pane=(7, 9)) for i in range(MODELS)
        ]
        for number in range(MODELS):
            self.arena.begin(number, f"m{number}", f"s={number}")

    def apply(
        self, numbers: Int64Array, scores: FloatArray, labels: Int8Array, times: Int64Array | None
    ) -> None:
        runs = self.arena.runs(numbers, scores, labels, times)
        assert not len(self.arena.outgrown(runs))
        parts = []
        for number in runs.numbers.tolist():
            of = numbers == number
            own_times = None if times is None else times[of]
            parts.append(self.alone[number].apply(scores[of], labels[of], own_times))
        _assert_equal_rows(self.arena.apply(runs), Rows.concat(parts))

    def advance(self, clock: int) -> None:
        rows = Rows.concat([alone.advance_to(clock) for alone in self.alone if alone.next_due < clock])
        _assert_equal_rows(self.arena.advance(clock), rows)

    def check_states(self) -> None:
        for number, alone in enumerate(self.alone):
            _assert_equal_states(self.arena.state(number), alone.state())

    def check_size(self) -> None:
        assert self.arena.snapshot_bytes == sum(alone.snapshot_bytes() for alone in self.alone)

    def check_bytes(self) -> None:
        parts: list[bytes] = []
        for alone in self.alone:
            write_evaluator(alone.state(), parts)
        assert self.arena.pack() == b"".join(parts)

    def move(self) -> None:
        """Take both from their states."""
        moved = Arena(self.settings, (7, 9))
        for number in range(MODELS):
            state = self.arena.remove(number)
            assert moved.accepts(state)
            moved.load(number, state)
            self.alone[number] = ModelEvaluator.from_state(self.settings, state)
        assert len(self.arena) == 0
        self.arena = moved

    def finish(self, clock: int) -> None:
        parts = []
        for alone in self.alone:
            parts += [alone.advance_to(clock)] if clock != NO_TIME else []
            parts.append(alone.finish())
        _assert_equal_rows(self.arena.finish(clock).by_name(), Rows.concat(parts).by_name())


def _assert_equal_rows(found: Rows, wanted: Rows) -> None:
    assert [found.keys[code] for code in found.key_codes] == [wanted.keys[code] for code in wanted.key_codes]
    if len(wanted):
        assert found.config == wanted.config
        for name in ("integers", "reasons", "drift"):
            np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name), name)
        assert found.numbers.tobytes() == wanted.numbers.tobytes()


def _assert_equal_states(found: EvaluatorState, wanted: EvaluatorState) -> None:
    for field in fields(EvaluatorState):
        ours, theirs = getattr(found, field.name), getattr(wanted, field.name)
        if isinstance(theirs, np.ndarray):
            np.testing.assert_array_equal(ours, theirs, field.name)
        else:
            assert ours == theirs, field.name


def _packets(rng: np.random.Generator, events: int) -> list[int]:
    sizes: list[int] = []
    while sum(sizes) < events:
        sizes.append(int(rng.choice([1, 2, 7, 40, 150])))
    return sizes


@pytest.mark.parametrize("stream", STREAMS, ids=lambda stream: stream.__name__.strip("_"))
@pytest.mark.parametrize("name", SETTINGS)
def test_rows_and_states_are_those_of_evaluators_alone(name: str, stream: Stream) -> None:
    settings = SETTINGS[name]
    rng = np.random.default_rng(7)
    pair, clock = _Pair(settings), 0
    for step, size in enumerate(_packets(rng, 700)):
        numbers = rng.integers(0, rng.integers(1, MODELS + 1), size)
        scores, labels = stream(rng, size)
        times = None
        if settings.needs_times or (stream is _normal and step % 11 > 6):  # times come late, and go
            clock += int(rng.integers(0, 40)) * 1_000_000
            times = clock - rng.integers(0, 30, size) * 1_000_000  # out of order, some too late
        pair.apply(numbers, scores, labels, times)
        if settings.every.micros and step % 3 == 0:
            pair.advance(clock + int(rng.integers(0, 60)) * 1_000_000)
        if step % 5 == 0:
            pair.check_states()
            pair.check_bytes()
            if stream is not _normal and all(len(alone) for alone in pair.alone):
                pair.check_size()
        if step % 9 == 8:
            pair.move()
    pair.check_states()
    pair.finish(clock + 90_000_000 if settings.needs_times else NO_TIME)
    pair.check_states()


def test_losses_of_probabilities_are_those_of_evaluators_alone() -> None:
    settings = EvaluatorSettings(window=rs.LastEvents(20), every=rs.EveryEvents(6), probabilities=True)
    rng, pair = np.random.default_rng(3), _Pair(settings)
    for size in _packets(rng, 400):
        pair.apply(rng.integers(0, MODELS, size), *_probabilities(rng, size), None)
    pair.finish(NO_TIME)


def test_rows_of_a_packet_that_fill_the_workspace_several_times_are_all_there() -> None:
    settings = EvaluatorSettings(window=rs.LastEvents(50_000), every=rs.EveryEvents(5_000))
    rng, pair = np.random.default_rng(4), _Pair(settings)
    for _ in range(2):
        pair.apply(rng.integers(0, 2, 60_000), *_normal(rng, 60_000), None)
    pair.finish(NO_TIME)


def test_a_grid_with_thousands_of_rows_for_one_event_has_them_all() -> None:
    settings = EvaluatorSettings(window=rs.LastDuration(7_000), every=rs.EverySeconds(1))
    pair = _Pair(settings)
    for seconds in (0, 9_000, 9_001, 30_000):
        times = np.array([seconds, seconds + 1]) * 1_000_000
        pair.apply(np.array([0, 3]), np.array([0.2, 0.7]), np.array([0, 1], np.int8), times)
    pair.finish(50_000_000_000)


def test_a_part_that_a_window_left_goes_to_other_windows() -> None:
    arena = Arena(EvaluatorSettings(window=rs.LastEvents(1_000), every=rs.EveryEvents(1_000)), None)
    rng = np.random.default_rng(5)
    held = []
    for number in range(40):
        arena.begin(number, f"m{number}", "")
        arena.apply(arena.runs(np.full(900, number), *_normal(rng, 900), None))
        arena.remove(number)
        held.append(arena.live_bytes)
    assert held[-1] < 2 * held[0]


def test_windows_that_need_more_than_scans_are_in_no_arena() -> None:
    refused = {
        "adaptive": EvaluatorSettings(window=rs.Adaptive()),
        "fading": EvaluatorSettings(window=rs.Fading(1_000)),
        "curves": EvaluatorSettings(curves="end"),
        "at the row": EvaluatorSettings(measures=("average_precision",)),
    }
    assert {name: most_events(settings) for name, settings in refused.items()} == dict.fromkeys(refused, 0)
    assert most_events(EvaluatorSettings(every=rs.EveryEvents(100))) == 1_200


def test_a_window_leaves_before_it_holds_too_many_events() -> None:
    arena = Arena(EvaluatorSettings(window=rs.AllEvents(), every=rs.EveryEvents(10)), None)
    arena.begin(0, "small", "")
    arena.begin(1, "large", "")
    numbers = np.repeat([0, 1], [arena.most, arena.most + 1])
    scores, labels = _normal(np.random.default_rng(6), len(numbers))
    assert arena.outgrown(arena.runs(numbers, scores, labels, None)).tolist() == [1]


def test_an_interrupted_update_is_refused_from_then_on(monkeypatch: pytest.MonkeyPatch) -> None:
    arena = Arena(EvaluatorSettings(window=rs.LastEvents(20), every=rs.EveryEvents(5)), None)
    arena.begin(0, "m", "")
    runs = arena.runs(np.zeros(10, np.int64), *_normal(np.random.default_rng(8), 10), None)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as interrupted:
        interrupted.setattr(arena_module, "scan_windows", interrupt)
        with pytest.raises(KeyboardInterrupt):
            arena.apply(runs)
    calls = {
        "apply": lambda: arena.apply(runs), "state": lambda: arena.state(0), "pack": arena.pack,
        "finish": lambda: arena.finish(NO_TIME),
    }  # fmt: skip
    for call in calls.values():
        with pytest.raises(rs.InputError, match="not whole, since an update was interrupted"):
            call()
