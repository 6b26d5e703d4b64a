"""Every window and emission against a list that is searched anew, wherever a stream is cut."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
import rocsteady as rs
from rocsteady.core.evaluator.engine import of_settings
from rocsteady.core.settings import windows
from sklearn.metrics import roc_auc_score

from tests.support.oracles.adaptive import AdaptiveOracle
from tests.support.oracles.measures import NaiveEvaluator, differences
from tests.support.oracles.windows import WindowOracle
from tests.support.streams.times import moment, moments
from tests.support.thorough import others_slow, some

MICROS = 1_000_000
WINDOWS: dict[str, tuple[Any, dict[str, int]]] = {
    "last:5": (rs.LastEvents(5), {"last": 5}),
    "last:40": (rs.LastEvents(40), {"last": 40}),
    "last:7s": (rs.LastDuration(7), {"duration": 7 * MICROS}),
    "last:90s": (rs.LastDuration("90s"), {"duration": 90 * MICROS}),
    "all": (rs.AllEvents(), {}),
}
EMISSIONS: dict[str, tuple[Any, dict[str, int]]] = {
    "1": (rs.EveryEvents(1), {"every": 1}),
    "7": (rs.EveryEvents(7), {"every": 7}),
    "3s": (rs.EverySeconds(3), {"grid": 3 * MICROS}),
    "50s": (rs.EverySeconds(50), {"grid": 50 * MICROS}),
}


def times_of(kind: str, events: int, rng: np.random.Generator) -> np.ndarray:
    """Seconds between events are 0 to 2, with some long silences."""
    steps = rng.integers(0, 3, events) + (rng.random(events) < 0.02) * rng.integers(0, 400, events)
    times = np.cumsum(steps)
    if kind == "late":  # some events come up to 12 seconds late
        times = times - (rng.random(events) < 0.2) * rng.integers(0, 12, events)
    elif kind == "backwards":
        times = times[::-1].copy()
    elif kind == "one":
        times = np.zeros(events, np.int64)
    elif kind == "shuffled":
        rng.shuffle(times)
    return times * MICROS - 100 * MICROS


def stream(kind: str, events: int = 130) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(len(kind))
    labels = rng.integers(0, 2, events)
    return labels, (rng.normal(size=events) + labels).round(1), times_of(kind, events, rng)


def pieces(events: int, rng: np.random.Generator) -> Iterator[slice]:
    cuts = np.unique(rng.integers(0, events, 12)).tolist()
    yield from (slice(a, b) for a, b in zip([0, *cuts], [*cuts, events], strict=True))


@pytest.mark.parametrize(
    ("window", "every", "kind"),
    others_slow(
        some(product(WINDOWS, EMISSIONS, ["ordered", "late", "backwards", "shuffled", "one"]), each=5), each=2
    ),
)
def test_rows_are_those_of_a_list_that_is_searched_anew(window: str, every: str, kind: str) -> None:
    labels, scores, times = stream(kind)
    choices = {
        "window": WINDOWS[window][0],
        "every": EMISSIONS[every][0],
        "threshold": 0.3,
        "measures": "all",
    }
    shape = {**WINDOWS[window][1], **EMISSIONS[every][1]}
    oracle = WindowOracle(NaiveEvaluator(threshold=0.3), searched=7 if every == "1" else 2, **shape)
    for label, score, time in zip(labels.tolist(), scores.tolist(), times.tolist(), strict=True):
        oracle.apply(label, score, time)
    whole = rs.ModelEvaluator(**choices).update(labels, scores, times=moments(times))
    assert len(whole) == len(oracle.rows)
    for row, expected in zip(whole, oracle.rows, strict=True):
        assert differences(row, expected) == []
    rng = np.random.default_rng(1)
    for restarts in (False, True):
        ev, rows = rs.ModelEvaluator(**choices), []
        for piece in pieces(len(labels), rng):
            rows += ev.update(labels[piece], scores[piece], times=moments(times[piece]))
            if restarts:
                ev = rs.ModelEvaluator.from_bytes(ev.to_bytes())
        assert rows == list(whole)


def test_silence_of_decades_makes_no_flood_of_rows() -> None:
    years = 365 * 86_400 * MICROS
    for window in (rs.LastDuration("1d"), rs.LastEvents(10), rs.AllEvents()):
        ev = rs.ModelEvaluator(window=window, every=rs.EverySeconds(1))
        rows = ev.update([0, 1, 1], [0.1, 0.2, 0.3], times=moments([0, 40 * years, 80 * years]))
        drained = 4 if isinstance(window, rs.LastDuration) else 2
        assert len(rows) == drained
        assert [row.due for row in rows if row.window_events] == [0, 40 * years]


def test_a_window_that_empties_out_says_so_and_forgets() -> None:
    ev = rs.ModelEvaluator(window=rs.LastDuration(10), every=rs.EverySeconds(5))
    rows = ev.update([0, 1, 0], [0.1, 0.9, 0.5], times=moments([0, MICROS, 100 * MICROS]))
    assert [(row.due, row.window_events, row.weight, row.auc) for row in rows] == [
        (0, 1, 1.0, None),
        (5 * MICROS, 2, 2.0, 1.0),
        (10 * MICROS, 1, 1.0, None),
        (15 * MICROS, 0, 0.0, None),
    ]
    assert (rows[-1].window_start, rows[-1].window_end, rows[-1].time) == (None, None, MICROS)


def test_time_goes_on_without_events_to_where_it_is_told() -> None:
    ev = rs.ModelEvaluator(window=rs.LastDuration(10), every=rs.EverySeconds(5))
    ev.update([0, 1], [0.1, 0.9], times=moments([1 * MICROS, 2 * MICROS]))
    assert [row.due for row in ev.advance(moment(5 * MICROS))] == []
    assert [row.due for row in ev.advance(moment(5 * MICROS + 1))] == [5 * MICROS]
    assert [(row.due, row.window_events) for row in ev.advance(moment(10**9 * MICROS))] == [(15 * MICROS, 0)]
    assert len(ev.finish()) == 0


def test_the_last_row_comes_once_whatever_the_grid_says() -> None:
    ev = rs.ModelEvaluator(every=rs.EverySeconds(10))
    rows = [
        *ev.update([0, 1, 1], [0.1, 0.9, 0.3], times=moments([1, 2, 11 * MICROS])),
        *ev.finish(),
        *ev.finish(),
    ]
    assert [(row.row, row.seq, row.due) for row in rows] == [(0, 2, 10 * MICROS), (1, 3, None)]


def test_events_too_late_for_the_window_count_and_change_nothing() -> None:
    ev = rs.ModelEvaluator(window=rs.LastDuration(10), every=rs.EveryEvents(1))
    rows = ev.update(
        [0, 1, 1, 1],
        [0.1, 0.9, 0.0, 0.2],
        times=moments([20 * MICROS, 25 * MICROS, 15 * MICROS, 15 * MICROS + 1]),
    )
    assert [(row.seq, row.window_events, row.auc) for row in rows] == [
        (1, 1, None), (2, 2, 1.0), (3, 2, 1.0), (4, 3, 1.0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "choices", [{"window": rs.LastDuration(5)}, {"every": rs.EverySeconds(5)}], ids=["window", "every"]
)
def test_windows_and_grids_by_time_want_times(choices: dict[str, Any]) -> None:
    ev = rs.ModelEvaluator(**choices)
    with pytest.raises(rs.InputError, match=r"5s needs the time of every event; give times="):
        ev.update([0, 1], [0.1, 0.2])
    with pytest.raises(rs.InputError, match="check the unit"):
        ev.update([0, 1], [0.1, 0.2], times=moments([0, 2**62]))
    assert len(ev.update([0, 1], [0.1, 0.2], times=moments([0, 10**9]))) + ev.seq == 3 - (
        choices.get("every") is None
    )


# ---- adaptive windows


def drifting(events: int, seed: int, share: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    """Scores that separate well, then hardly, then well again."""
    rng = np.random.default_rng(seed)
    labels = (rng.random(events) < share).astype(int)
    quality = np.where((np.arange(events) // (events // 3)) % 2 == 0, 2.0, 0.2)
    return labels, 1 / (1 + np.exp(-(rng.normal(size=events) + quality * (labels - 0.5)))).round(3)


@pytest.mark.slow
@pytest.mark.parametrize(("share", "signal"), some(product([0.5, 0.1], ["placement", "error", "brier"])))
def test_an_adaptive_window_is_that_of_a_list(signal: str, share: float) -> None:
    labels, scores = drifting(3_000, 5, share)
    scores = np.clip(scores, 0, 1)
    oracle = AdaptiveOracle(delta=0.002, signal=signal, threshold=0.5)
    choices = {
        "window": rs.Adaptive(0.002, signal), "every": rs.EveryEvents(50), "probabilities": True,
        "measures": ("auc", "accuracy", "brier"),
    }  # fmt: skip
    whole = rs.ModelEvaluator(**choices).update(labels, scores)
    shrank, drifts = False, 0
    for i, (label, score) in enumerate(zip(labels.tolist(), scores.tolist(), strict=True)):
        shrank |= oracle.add(label, score)
        if i % 50 == 49:
            row = whole[i // 50]
            assert (row.window_events, row.drift) == (len(oracle.events), shrank)
            drifts, shrank = drifts + shrank, False
            y, p = (np.array(column) for column in zip(*oracle.events, strict=True))
            assert math.isclose(row.auc, roc_auc_score(y, p))
            assert math.isclose(row.accuracy, np.mean((p >= 0.5) == (y == 1)))
            assert math.isclose(row.brier, np.mean((p - y) ** 2))
    assert drifts >= (share == 0.5)
    rng = np.random.default_rng(2)
    ev, rows = rs.ModelEvaluator(**choices), []
    for piece in pieces(len(labels), rng):
        rows += ev.update(labels[piece], scores[piece])
        ev = rs.ModelEvaluator.from_bytes(ev.to_bytes())
    assert rows == list(whole)


def test_an_adaptive_window_of_classes_needs_a_positive_one_to_be_placed() -> None:
    ev = rs.ModelEvaluator(window=rs.Adaptive())
    with pytest.raises(rs.InputError, match=r"name it with positive=, or take Adaptive\(signal='error'\)"):
        ev.update(["a", "b"], [0.1, 0.2], predicted=["a", "a"])
    ev = rs.ModelEvaluator(window=rs.Adaptive(signal="error"), every=rs.EveryEvents(2))
    assert [row.drift for row in ev.update(["a", "b"], [0.1, 0.2], predicted=["a", "a"])] == [False]


def test_an_adaptive_window_holds_so_many_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "ADAPTIVE_EVENTS", 320)
    of_settings.cache_clear()
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 2_000)
    for signal in ("placement", "error"):
        ev = rs.ModelEvaluator(window=rs.Adaptive(signal=signal), every=rs.EveryEvents(1))
        rows = ev.update(labels, rng.normal(size=2_000))
        sizes = [row.window_events for row in rows]
        assert max(sizes) == 320
        assert sizes[319:322] == [320, 300, 301]
        assert not any(row.drift for row in rows)
    of_settings.cache_clear()


def test_times_with_a_zone_are_those_moments() -> None:
    zone = timezone(timedelta(hours=2))
    moments = [datetime(2026, 1, 1, 12, tzinfo=zone), datetime(2026, 1, 1, 11, tzinfo=UTC)]
    ev = rs.ModelEvaluator(every=rs.EveryEvents(1))
    assert [row.time for row in ev.update([0, 1], [0.1, 0.2], times=np.array(moments, object))] == [
        1_767_261_600 * MICROS, 1_767_265_200 * MICROS,
    ]  # fmt: skip
    series = pd.Series(pd.to_datetime(["2026-01-01T12:00+02:00", "2026-01-01T11:00Z"], utc=True))
    assert ev.update([0, 1], [0.1, 0.2], times=series)[-1].time == 1_767_265_200 * MICROS
    with pytest.raises(rs.InputError, match=r"times\[0\] is NaT; leave"):
        ev.update([0], [0.1], times=np.array([pd.NaT], object))


def test_messages_name_the_values_as_they_were_written() -> None:
    with pytest.raises(rs.ConfigError, match=r"1 to 2147483647"):
        rs.Fading(2**31)
    with pytest.raises(rs.InputError, match=r"labels\[0\] is 2: a label"):
        rs.ModelEvaluator().update([2, 0], [0.1, 0.2])
