"""Windows of events with weights, and fading ones: against lists, scikit-learn, and unit weights."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
import rocsteady as rs
from rocsteady.core.evaluator.state import write_evaluator
from rocsteady.core.rows.columns import reasons_by_measure
from sklearn.metrics import accuracy_score, average_precision_score, roc_auc_score

from tests.support.oracles.measures import DECISIONS, RANKING, differences
from tests.support.oracles.weighted_windows import WeightedWindowOracle
from tests.support.streams.times import moment, moments
from tests.support.thorough import others_slow, some

MICROS = 1_000_000
WINDOWS: dict[str, tuple[Any, dict[str, Any]]] = {
    "last:5": (rs.LastEvents(5), {"last": 5}),
    "last:40": (rs.LastEvents(40), {"last": 40}),
    "last:7s": (rs.LastDuration(7), {"duration": 7 * MICROS}),
    "last:90s": (rs.LastDuration(90), {"duration": 90 * MICROS}),
    "all": (rs.AllEvents(), {}),
    "fading:1": (rs.Fading(1), {"half_life": 1}),
    "fading:15": (rs.Fading(15), {"half_life": 15}),
    "fading:2s": (rs.Fading("2s"), {"half_life": 2 * MICROS, "by_time": True}),
    "fading:40s": (rs.Fading("40s"), {"half_life": 40 * MICROS, "by_time": True}),
}
EMISSIONS: dict[str, tuple[Any, dict[str, int]]] = {
    "1": (rs.EveryEvents(1), {"every": 1}),
    "7": (rs.EveryEvents(7), {"every": 7}),
    "9s": (rs.EverySeconds(9), {"grid": 9 * MICROS}),
}
WEIGHTS = ("random", "tied", "giants", "ones")
TIMES = ("ordered", "late", "backwards")
MEASURES = (*RANKING, *DECISIONS)


def stream(kind: str, events: int, seed: int = 0, classes: str = "both") -> tuple[np.ndarray, ...]:
    """Labels, scores with ties, weights, and times of which some are late or all go backwards."""
    weighting, timing = kind.split("/")
    rng = np.random.default_rng([seed, len(kind)])
    labels = rng.integers(0, 2, events) if classes == "both" else np.full(events, int(classes == "ones"))
    scores = (rng.integers(0, 30, events) / 60 + labels * 0.4).round(2)
    weights = {
        "random": rng.exponential(size=events) + 1e-9,
        "tied": rng.integers(1, 4, events) / 10,
        "giants": np.where(np.arange(events) % 23 == 11, 1e30, 1.0 + rng.random(events)),
        "ones": np.ones(events),
    }[weighting]
    steps = rng.integers(0, 3, events) + (rng.random(events) < 0.02) * rng.integers(0, 400, events)
    times = np.cumsum(steps)
    if timing == "late":
        times = times - (rng.random(events) < 0.2) * rng.integers(0, 12, events)
    elif timing == "backwards":
        times = times[::-1].copy()
    return labels, scores, weights, times * MICROS - 100 * MICROS


def pieces(events: int, rng: np.random.Generator, cuts: int = 12) -> Iterator[slice]:
    at = np.unique(rng.integers(0, events, cuts)).tolist()
    yield from (slice(a, b) for a, b in zip([0, *at], [*at, events], strict=True))


def wrong(row: Any, expected: dict[str, Any]) -> list[str]:
    """Say where a row is not what was expected, to 1e-11 beside what its terms are."""
    expected = dict(expected)
    thresholds = expected.pop("ks_threshold", None)
    cmd = expected.pop("cmd", None)
    found = differences(row, expected)
    if isinstance(thresholds, list) and row.ks_threshold not in thresholds:
        found.append(f"ks_threshold is {row.ks_threshold}, expected one of {thresholds}")
    if cmd is not None and abs(row.cmd - cmd) > 1e-11 * (row.tp * row.tn + row.fp * row.fn):
        found.append(f"cmd is {row.cmd}, expected {cmd}")
    return found


KINDS = [f"{weighting}/{timing}" for weighting in WEIGHTS[:3] for timing in TIMES]


@pytest.mark.parametrize(
    ("window", "every", "kind"), others_slow(some(product(WINDOWS, EMISSIONS, KINDS), each=6), each=2)
)
def test_rows_are_those_of_a_list_that_is_searched_anew(window: str, every: str, kind: str) -> None:
    events, number = 90, KINDS.index(kind)
    choices = {
        "window": WINDOWS[window][0], "every": EMISSIONS[every][0], "measures": "all", "probabilities": True,
    }  # fmt: skip
    classes = "ones" if number == 4 else "zeros" if number == 6 else "both"
    labels, scores, weights, times = stream(kind, events, number, classes)
    oracle = WeightedWindowOracle(
        **WINDOWS[window][1],
        **EMISSIONS[every][1],
        probabilities=True,
        searched=11 if every == "1" else 3,
    )
    for event in zip(labels.tolist(), scores.tolist(), weights.tolist(), times.tolist(), strict=True):
        oracle.apply(*event)
    rows = rs.ModelEvaluator(**choices).update(labels, scores, times=moments(times), weights=weights)
    assert len(rows) == len(oracle.rows)
    for row, expected in zip(rows, oracle.rows, strict=True):
        assert wrong(row, expected) == [], row.row


@pytest.mark.slow
@pytest.mark.parametrize(
    ("window", "positive"), some(product(["last:5", "last:90s", "fading:15", "fading:2s"], ["b", None]))
)
def test_rows_of_classes_are_those_of_a_list(window: str, positive: str | None) -> None:
    rng = np.random.default_rng(4)
    for kind in ("random/late", "tied/ordered", "giants/backwards"):
        _, scores, weights, times = stream(kind, 100)
        labels = rng.choice(["a", "b", "c", "dd"], 100, p=[0.4, 0.3, 0.28, 0.02])
        predicted = np.where(rng.random(100) < 0.6, labels, rng.choice(["a", "b", "c", "e"], 100))
        oracle = WeightedWindowOracle(**WINDOWS[window][1], every=3, positive=positive, searched=3)
        columns = (labels, scores, weights, times, predicted)
        for event in zip(*(column.tolist() for column in columns), strict=True):
            oracle.apply(*event)
        ev = rs.ModelEvaluator(
            window=WINDOWS[window][0], every=rs.EveryEvents(3), measures="all", positive=positive
        )
        rows = []
        for piece in pieces(100, rng, 5):
            rows += ev.update(
                labels[piece], scores[piece], times=moments(times[piece]), weights=weights[piece],
                predicted=predicted[piece],
            )  # fmt: skip
        for row, expected in zip(rows, oracle.rows, strict=True):
            assert wrong(row, expected) == [], (kind, row.row)


@pytest.mark.parametrize(("signal", "every"), some(product(["placement", "error", "brier"], ["7", "9s"])))
def test_an_adaptive_window_of_weights_is_that_of_a_list(signal: str, every: str) -> None:
    events, rng = 420, np.random.default_rng(3)
    labels, _, weights, times = stream("tied/ordered", events)
    worse = np.arange(events) > 200
    scores = np.where(worse, 0.7 - 0.6 * labels, 0.1 + 0.8 * labels) + rng.integers(0, 10, events) / 100
    oracle = WeightedWindowOracle(
        signal=signal, probabilities=True, searched=17, **EMISSIONS[every][1]
    )  # fmt: skip
    for event in zip(labels.tolist(), scores.tolist(), weights.tolist(), times.tolist(), strict=True):
        oracle.apply(*event)
    choices = {
        "window": rs.Adaptive(signal=signal), "every": EMISSIONS[every][0], "probabilities": True,
        "measures": "all",
    }  # fmt: skip
    whole = rs.ModelEvaluator(**choices).update(labels, scores, times=moments(times), weights=weights)
    assert any(row.drift for row in whole)
    assert len(whole) == len(oracle.rows)
    for row, expected in zip(whole, oracle.rows, strict=True):
        assert wrong(row, expected) == [], row.row
    ev, rows = rs.ModelEvaluator(**choices), []
    for piece in pieces(events, rng):
        rows += ev.update(labels[piece], scores[piece], times=moments(times[piece]), weights=weights[piece])
        ev = rs.ModelEvaluator.from_bytes(ev.to_bytes())
    for row, expected in zip(rows, whole, strict=True):
        assert wrong(row, dict(zip(row._fields, expected, strict=True))) == []


UNFADING = {
    **{name: window for name, (window, _) in WINDOWS.items() if not name.startswith("fading")},
    "adaptive": rs.Adaptive(), "adaptive:error": rs.Adaptive(signal="error"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("window", "every"), some(product(UNFADING, EMISSIONS)))
def test_weights_of_one_make_the_rows_of_no_weights(window: str, every: str) -> None:
    choices = {
        "window": UNFADING[window], "every": EMISSIONS[every][0], "measures": "all", "probabilities": True,
    }  # fmt: skip
    for timing in TIMES:
        labels, scores, weights, times = stream(f"ones/{timing}", 400)
        if window.startswith("adaptive"):
            scores = np.where(np.arange(400) < 200, scores, 0.9 - scores)
        plain = rs.ModelEvaluator(**choices).update(labels, scores, times=moments(times))
        halfway, rows = rs.ModelEvaluator(**choices), []  # weights begin later, and end
        for piece, weight in ((slice(0, 100), None), (slice(100, 250), weights), (slice(250, 400), None)):
            rows += halfway.update(
                labels[piece], scores[piece], times=moments(times[piece]),
                weights=None if weight is None else weight[piece],
            )  # fmt: skip
        weighted = rs.ModelEvaluator(**choices).update(labels, scores, times=moments(times), weights=weights)
        for expected, *found in zip(plain, weighted, rows, strict=True):
            for row in found:
                assert differences(row, dict(zip(row._fields, expected, strict=True))) == []
                assert (row.ks_threshold, row.cost_threshold) == (
                    expected.ks_threshold, expected.cost_threshold,
                )  # fmt: skip


ALL_WINDOWS = {**{name: window for name, (window, _) in WINDOWS.items()}, **UNFADING}


@pytest.mark.slow
@pytest.mark.parametrize(("window", "every"), some(product(ALL_WINDOWS, EMISSIONS)))
def test_batches_change_no_bit_and_snapshots_nothing_beyond_rounding(window: str, every: str) -> None:
    choices = {
        "window": ALL_WINDOWS[window], "every": EMISSIONS[every][0], "measures": "all", "probabilities": True,
        "curves": rs.EveryEvents(35),
    }  # fmt: skip
    rng = np.random.default_rng(1)
    for kind in (f"{w}/{t}" for w in WEIGHTS[:2] for t in TIMES):
        labels, scores, weights, times = stream(kind, 300)
        if window.startswith("adaptive"):
            scores = np.where(np.arange(300) < 150, scores, 0.9 - scores)
        whole = rs.ModelEvaluator(**choices).update(labels, scores, times=moments(times), weights=weights)
        for restarts in (False, True):
            ev, rows, curves = rs.ModelEvaluator(**choices), [], []
            for piece in pieces(300, rng):
                part = ev.update(
                    labels[piece], scores[piece], times=moments(times[piece]), weights=weights[piece]
                )
                rows, curves = [*rows, *part], [*curves, *part.curves]
                if restarts:
                    data = ev.to_bytes()
                    state: list[bytes] = []
                    write_evaluator(ev.state(), state)
                    assert ev.snapshot_bytes() == sum(map(len, state))
                    ev = rs.ModelEvaluator.from_bytes(data, rs.EvaluatorSettings(**choices))
                    assert ev.to_bytes() == data
            if restarts:
                assert len(rows) == len(whole)
                for row, expected in zip(rows, whole, strict=True):
                    same = dict(zip(row._fields, expected, strict=True))
                    assert differences(row, same, tolerance=1e-12, skip=("h", "cost_curve_area")) == []
            else:
                assert rows == list(whole), kind
            assert [curve.seq for curve in curves] == [curve.seq for curve in whole.curves]
            for curve, other in zip(curves, whole.curves, strict=True):
                np.testing.assert_allclose(curve.curve.tpr, other.curve.tpr, rtol=1e-12)
                np.testing.assert_array_equal(curve.curve.threshold, other.curve.threshold)


# ---- fading


@pytest.mark.slow
@pytest.mark.parametrize("half_life", [1, 7, 300, "50ms"])
def test_fading_is_that_of_explicit_weights(half_life: Any) -> None:
    events, checks = 100_000, 20
    rng = np.random.default_rng(7)
    labels = (rng.random(events) < 0.3).astype(int)
    labels[40_000:60_000] = 0  # silent for 20,000 half-lives, or 66
    scores = (1 / (1 + np.exp(-rng.normal(labels * np.linspace(1.5, 0.5, events))))).round(3)
    weights = rng.gamma(2.0, size=events)
    times = np.cumsum(rng.integers(0, 400, events)).astype(np.int64)
    times[::17] -= 3_000  # late
    ev = rs.ModelEvaluator(
        window=rs.Fading(half_life), every=rs.EveryEvents(events // checks),
        measures=("auc", "average_precision", "accuracy"),
    )  # fmt: skip
    rows = ev.update(labels, scores, times=moments(times), weights=weights)
    by_time = isinstance(half_life, str)
    ticks = times if by_time else np.arange(events)
    for row in rows:
        held = slice(0, row.seq)
        age = ticks[held].max() - ticks[held]
        effective = weights[held] * np.exp2(-(age / (50_000 if by_time else half_life)))
        some = effective > 1e-250
        about = {"sample_weight": effective[some]}
        truth, guesses = labels[held][some], scores[held][some]
        accuracy = accuracy_score(truth, guesses >= 0.5, **about)
        assert row.accuracy == pytest.approx(accuracy, rel=1e-11)
        assert row.weight == pytest.approx(effective.sum(), rel=1e-11)
        if 0 < truth.sum() < len(truth):
            assert row.auc == pytest.approx(roc_auc_score(truth, guesses, **about), abs=1e-11)
            if row.prevalence > 0.01:  # the error of what is dropped is that of a share, and bounds the AUC
                expected = average_precision_score(truth, guesses, **about)
                assert row.average_precision == pytest.approx(expected, abs=1e-11)
        else:
            assert row.auc is None
            assert reasons_by_measure(row.reason)["auc"] == "one class in window"
    assert len(ev) < 106 * (250 if by_time else half_life) + 60


def test_a_class_that_is_silent_keeps_its_order() -> None:
    """Positives that have faded by 2^-900 beside the negatives still are what they are among themselves."""
    ev = rs.ModelEvaluator(window=rs.Fading(1))
    rng = np.random.default_rng(2)
    ev.update([1, 1, 1, 0], [0.2, 0.6, 0.8, 0.5])
    positives = np.array([0.25, 0.5, 1.0])  # of 0.2, 0.6 and 0.8
    for _ in range(18):
        negatives = rng.random(50)
        ev.update(np.zeros(50), negatives)
        fading = np.exp2(np.arange(50.0))
        expected = roc_auc_score(
            [1, 1, 1, *[0] * 50], [0.2, 0.6, 0.8, *negatives], sample_weight=[*positives, *fading]
        )
        assert ev.measures().auc == pytest.approx(expected, abs=1e-11)
    ev.update(np.zeros(600), rng.random(600))
    assert ev.measures().auc is None
    ev.update([1], [2.0])
    assert ev.measures().auc == 1.0


def test_time_that_goes_on_without_events_leaves_masses_as_of_the_newest_event() -> None:
    ev = rs.ModelEvaluator(window=rs.Fading("10s"), every=rs.EverySeconds(5))
    times = [1 * MICROS, 11 * MICROS]
    rows = [
        *ev.update([0, 1], [0.1, 0.9], times=moments(times), weights=[4.0, 3.0]),
        *ev.advance(moment(60 * MICROS)),
    ]
    assert [(row.due // MICROS, row.weight) for row in rows] == [(5, 4.0), (15, 5.0)]
    assert ev.measures().negatives == 2.0
    again = rs.ModelEvaluator.from_bytes(ev.to_bytes())
    assert again.measures() == ev.measures()


def test_an_event_that_has_faded_to_nothing_before_it_comes_counts_alone() -> None:
    ev = rs.ModelEvaluator(window=rs.Fading("1s"), every=rs.EveryEvents(1))
    year = 365 * 86_400 * MICROS
    rows = ev.update(
        [0, 1, 1, 0, 1], [0.1, 0.9, 0.2, 0.5, 0.3], times=moments([year, year, 0, year, 40 * year])
    )
    assert [(row.seq, row.window_events, row.auc) for row in rows] == [
        (1, 1, None), (2, 2, 1.0), (3, 2, 1.0), (4, 3, 1.0), (5, 1, None),
    ]  # fmt: skip
    assert rs.ModelEvaluator.from_bytes(ev.to_bytes()).measures() == ev.measures()


# ---- extremes


@pytest.mark.parametrize("window", ["last:40", "all", "last:90s", "fading:15", "fading:40s", "adaptive"])
def test_weights_as_small_and_large_as_floats_are(window: str) -> None:
    """Every number is right, or null with a reason."""
    choices = {"window": ALL_WINDOWS[window], "every": rs.EveryEvents(9), "measures": "all"}
    labels, scores, _, times = stream("ones/ordered", 200)
    rng = np.random.default_rng(0)
    for weights in (
        10.0 ** rng.uniform(-300, 300, 200), np.full(200, 1.7e308), np.full(200, 5e-324),
        np.where(rng.random(200) < 0.5, 1e300, 1e-300), np.where(labels == 1, 1e300, 1e-300),
    ):  # fmt: skip
        ev = rs.ModelEvaluator(**choices)
        rows = [*ev.update(labels, scores, times=moments(times), weights=weights), *ev.finish()]
        ev.curve()
        for row in rows:
            said = {*reasons_by_measure(row.reason)}
            for name in MEASURES:
                value = getattr(row, name)
                if name in ("brier", "log_loss", "calibration_error"):
                    assert value is None
                elif value is None:
                    assert name in said, (name, row.reason)
                else:
                    assert math.isfinite(value) or name.endswith("threshold"), name
                    if name not in ("tp", "fp", "tn", "fn", "cmd", "aum") and "threshold" not in name:
                        assert value <= 1 + 1e-9, name


@pytest.mark.parametrize("scale", [2.0**-950, 2.0**-500, 2.0**900])
@pytest.mark.parametrize("window", ["last:40", "last:90s", "fading:15", "fading:2s", "adaptive"])
def test_the_scale_of_weights_changes_nothing_but_masses(window: str, scale: float) -> None:
    choices = {"window": ALL_WINDOWS[window], "every": rs.EveryEvents(9), "measures": "all"}
    labels, scores, weights, times = stream("tied/late", 300)
    plain = rs.ModelEvaluator(**choices).update(labels, scores, times=moments(times), weights=weights)
    scaled = rs.ModelEvaluator(**choices).update(
        labels, scores, times=moments(times), weights=weights * scale
    )
    for row, expected in zip(scaled, plain, strict=True):
        assert row.weight == pytest.approx(expected.weight * scale, rel=1e-13)
        masses = ("weight", "positives", "negatives", "tp", "fp", "tn", "fn", "cmd", "aum", "reason")
        same = dict(zip(row._fields, expected, strict=True))
        assert differences(row, same, skip=(*masses, "config")) == []


@pytest.mark.slow
@pytest.mark.parametrize("window", ["last:40", "fading:15", "all"])
def test_a_giant_that_came_and_went_leaves_nothing_behind(window: str) -> None:
    labels, scores, weights, _ = stream("random/ordered", 1_000)
    giants = weights.copy()
    giants[20], giants[25] = 1e300, 1e290
    for hour in (rs.EveryEvents(1_000), rs.EveryEvents(1)):
        choices = {"window": ALL_WINDOWS[window], "every": hour, "measures": "all"}
        plain = rs.ModelEvaluator(**choices).update(labels, scores, weights=weights)
        there = rs.ModelEvaluator(**choices).update(labels, scores, weights=giants)
        if window == "fading:15":  # 1e300 is nothing after 1,050 half-lives: more than there are
            assert there[-1].weight > 1e200
        elif window == "all":
            assert there[-1].weight == pytest.approx(1e300)
        else:
            same = dict(zip(plain[-1]._fields, plain[-1], strict=True))
            assert differences(there[-1], same) == []


def test_beside_a_giant_that_fades_weights_of_one_are_all_there() -> None:
    ev = rs.ModelEvaluator(window=rs.Fading(2), every=rs.EveryEvents(1))
    rows = ev.update([1, 0, 0, 0], [0.5, 0.1, 0.9, 0.7], weights=[1e300, 1.0, 1.0, 2.0])
    faded = np.exp2([-1.0, -0.5, 0.0])
    assert rows[-1].auc == pytest.approx(faded[0] / (faded.sum() + 1.0), rel=1e-12)
    assert rows[-1].negatives == pytest.approx(faded.sum() + 1.0, rel=1e-12)


def test_a_million_identical_scores() -> None:
    n = 1_000_000
    rng = np.random.default_rng(0)
    labels, weights = rng.integers(0, 2, n), rng.random(n) + 0.5
    ev = rs.ModelEvaluator(window=rs.LastEvents(100_000), every=rs.EveryEvents(250_000))
    for row in ev.update(labels, np.full(n, 0.25), weights=weights):
        held = slice(row.seq - row.window_events, row.seq)
        assert row.auc == pytest.approx(0.5, abs=1e-15)
        assert row.positives == pytest.approx((weights * labels)[held].sum(), rel=1e-12)
        assert row.accuracy == pytest.approx((weights * (1 - labels))[held].sum() / row.weight, rel=1e-12)
        assert "auc_low: degenerate interval" in row.reason
    assert ev.live_bytes() < 60e6, "the ring grows with what it holds, not with the batch"


def test_decades_of_silence_empty_a_weighted_window() -> None:
    year = 365 * 86_400 * MICROS
    ev = rs.ModelEvaluator(window=rs.LastDuration(10), every=rs.EverySeconds(5), measures="all")
    rows = ev.update(
        [0, 1, 0], [0.1, 0.9, 0.5], times=moments([0, MICROS, 40 * year]), weights=[0.1, 0.2, 0.3]
    )
    assert [(row.due, row.window_events, row.weight, row.auc, row.accuracy) for row in rows] == [
        (0, 1, pytest.approx(0.1), None, 1.0),
        (5 * MICROS, 2, pytest.approx(0.3), 1.0, 1.0),
        (10 * MICROS, 1, pytest.approx(0.2), None, 1.0),
        (15 * MICROS, 0, 0.0, None, None),
    ]
    assert [(row.due, row.weight) for row in ev.advance(moment(80 * year))] == [
        (40 * year, pytest.approx(0.3)), (40 * year + 10 * MICROS, 0.0),
    ]  # fmt: skip
    ev = rs.ModelEvaluator(window=rs.LastDuration(10), every=rs.EverySeconds(5))
    rows = ev.update(
        ["a", "b"], [0.1, 0.9], times=moments([0, 40 * year]), weights=[0.1, 0.2], predicted=["a", "a"]
    )
    assert [row.weight for row in rows] == [0.1, 0.0]


def test_a_curve_of_weights_has_the_masses_of_the_row() -> None:
    for window in ("last:40", "fading:15", "fading:2s"):
        labels, scores, weights, times = stream("random/late", 200)
        ev = rs.ModelEvaluator(window=ALL_WINDOWS[window])
        ev.update(labels, scores, times=moments(times), weights=weights)
        said, curve = ev.measures(), ev.curve()
        assert curve.tp[-1] == pytest.approx(said.positives, rel=1e-12)
        assert curve.fp[-1] == pytest.approx(said.negatives, rel=1e-12)
        area = np.trapezoid(curve.tp, curve.fp) / (curve.tp[-1] * curve.fp[-1])
        assert area == pytest.approx(said.auc, abs=1e-3), "points nearer than 1/200 are left out"
