"""Metrics for river: at every prefix what the definitions say, and well-behaved as river wants them."""

from __future__ import annotations

import copy
import datetime as dt
import inspect
import itertools
import math
import os
import pickle
import random
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from decimal import Decimal
from importlib import metadata
from typing import Any

import numpy as np
import pytest
import rocsteady as rs
from sklearn import metrics as sklearn_metrics

from tests.support.invariants.kernel_modes import claims_hold
from tests.support.oracles.measures import (
    auc_by_pairs,
    baseline_hits,
    beta_density,
    decisions,
    h_by_integration,
    ks_and_threshold,
    severity_density,
)
from tests.support.streams.class_predictions import class_predictions

pytest.importorskip("river", reason="adapters for river: pip install '.[test]'")
from river import anomaly, datasets, evaluate, linear_model, metrics, naive_bayes, preprocessing, utils
from river.checks import common

from tests.support.thorough import at_length

WINDOWS = (1, 2, 5, 10, 100)
RANKING = (rs.river.RollingAUC, rs.river.RollingH, rs.river.RollingKS)
DECISIONS = {
    "kappa": rs.river.RollingKappa,
    "kappa_m": rs.river.RollingKappaM,
    "kappa_per": rs.river.RollingKappaPer,
    "g_mean": rs.river.RollingGMean,
    "harmonic_mean": rs.river.RollingHarmonicMean,
}
OF_CLASSES = (rs.river.RollingMacroAUC, rs.river.RollingWeightedAUC, rs.river.RollingM)
ADAPTERS = [*RANKING, *DECISIONS.values(), *OF_CLASSES]
named = pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.__name__)
of_one_prediction = pytest.mark.parametrize(
    "adapter", [*RANKING, *DECISIONS.values()], ids=lambda adapter: adapter.__name__
)


def scored(n: int, seed: int = 3) -> tuple[list[bool], list[float]]:
    """Labels and scores with ties, both zeros among them, and a stretch of one class."""
    rng = random.Random(seed)
    labels = [rng.random() < 0.4 if i < n * 0.6 else i < n * 0.8 for i in range(n)]
    return labels, [rng.choice((-0.0, 0.0, 0.25, rng.random(), 17.5)) for _ in labels]


def classed(n: int, seed: int = 3) -> tuple[list[str], list[str]]:
    """Labels and predictions among four classes, of which one is never a label and one leaves for good."""
    rng = random.Random(seed)
    labels = [rng.choice("aab" if i < n // 2 else "bbc") for i in range(n)]
    return labels, [label if rng.random() < 0.6 else rng.choice("abcd") for label in labels]


def stream_of(metric: Any, n: int, seed: int = 3) -> tuple[list[Any], list[Any]]:
    if isinstance(metric, OF_CLASSES):
        return class_predictions(n, seed)  # type: ignore[return-value]
    return classed(n, seed) if metric.requires_labels else scored(n, seed)  # type: ignore[return-value]


def assert_equals_fresh(metric: Any, fresh: Any) -> None:
    """Compare a metric with a new one of the same events, which may have met the classes in another order."""
    rtol = 1e-12 if isinstance(fresh, OF_CLASSES) else 0.0
    np.testing.assert_allclose(metric.get(), fresh.get(), rtol=rtol)


def same(got: float, want: float | None) -> bool:
    if want is None:
        return math.isnan(got)
    return math.isclose(got, want, rel_tol=1e-9, abs_tol=1e-9)


# ---- what they say


def by_scikit_learn(labels: Any, scores: Any) -> float:
    return float(sklearn_metrics.roc_auc_score(labels, scores))


ORACLES: list[tuple[str, Callable[[int], Any], Callable[[Any, Any], float]]] = [
    ("AUC by pairs", rs.river.RollingAUC, auc_by_pairs),
    ("AUC by scikit-learn", rs.river.RollingAUC, by_scikit_learn),
    ("KS", rs.river.RollingKS, lambda labels, scores: ks_and_threshold(labels, scores)[0]),
    ("H", rs.river.RollingH, lambda labels, scores: h_by_integration(labels, scores, beta_density(2, 2))),
    (
        "H of uniform costs",
        lambda k: rs.river.RollingH(k, cost="uniform"),
        lambda labels, scores: h_by_integration(labels, scores, beta_density(1, 1)),
    ),
    (
        "H by severity",
        lambda k: rs.river.RollingH(k, cost="severity"),
        lambda labels, scores: h_by_integration(labels, scores, severity_density(None)),
    ),
]


@pytest.mark.parametrize("k", WINDOWS)
@pytest.mark.parametrize(("make", "oracle"), [o[1:] for o in ORACLES], ids=[o[0] for o in ORACLES])
@pytest.mark.at_length
def test_a_measure_of_scores_equals_its_oracle_at_every_prefix(make: Any, oracle: Any, k: int) -> None:
    labels, scores = scored(at_length(60, 40) if oracle is not by_scikit_learn else at_length(250, 120))
    metric = make(k)
    for i, (label, score) in enumerate(zip(labels, scores, strict=True)):
        metric.update(label, score)
        held = slice(max(0, i + 1 - k), i + 1)
        window = [int(y) for y in labels[held]], scores[held]
        want = oracle(*window) if len(set(window[0])) == 2 else None
        assert same(metric.get(), want), i
        assert metric.reason == (None if want is not None else "one class in window")


@pytest.mark.parametrize("k", WINDOWS)
@pytest.mark.parametrize("name", DECISIONS)
@pytest.mark.at_length
def test_a_measure_of_classes_equals_its_oracle_at_every_prefix(name: str, k: int) -> None:
    labels, predicted = classed(at_length(250, 120) if k == 100 else at_length(120, 60))
    hits = baseline_hits(labels, k, lambda _: False)
    metric = DECISIONS[name](k)
    for i, (label, prediction) in enumerate(zip(labels, predicted, strict=True)):
        metric.update(label, prediction)
        held = slice(max(0, i + 1 - k), i + 1)
        window = tuple(map(tuple, (labels[held], predicted[held], hits[0][held], hits[1][held])))
        values, reasons = decisions(*window, None)  # type: ignore[arg-type]
        assert same(metric.get(), values[name]), i
        assert metric.reason == reasons.get(name)


@pytest.mark.parametrize("k", [3, 100, 1_000])
def test_an_evaluator_says_the_same_to_the_last_bit(k: int) -> None:
    labels, scores = scored(2_500)
    ev = rs.ModelEvaluator(window=rs.LastEvents(k), every=rs.EveryEvents(50))
    rows = ev.update(labels, scores)
    for adapter, column in zip(RANKING, ("auc", "h", "ks"), strict=True):
        metric, got = adapter(k), []
        for i, (label, score) in enumerate(zip(labels, scores, strict=True)):
            metric.update(label, score)
            if i % 50 == 49:
                got.append(metric.get())
        np.testing.assert_array_equal(got, rows.number(column))
    classes, predicted = classed(2_500)
    ev = rs.ModelEvaluator(window=rs.LastEvents(k), every=rs.EveryEvents(50))
    rows = ev.update(classes, scores, predicted=predicted)
    for column, adapter in DECISIONS.items():
        metric, got = adapter(k), []
        for i, (label, prediction) in enumerate(zip(classes, predicted, strict=True)):
            metric.update(label, prediction)
            if i % 50 == 49:
                got.append(metric.get())
        np.testing.assert_array_equal(got, rows.number(column))


@named
def test_values_do_not_depend_on_when_they_are_asked_for(adapter: Any) -> None:
    labels, predicted = stream_of(adapter(), 3_300)
    asked, unasked = adapter(70), adapter(70)
    for label, prediction in zip(labels, predicted, strict=True):
        asked.update(label, prediction)
        asked.get()
        unasked.update(label, prediction)
    assert repr(unasked) == repr(asked)
    np.testing.assert_equal(unasked.get(), asked.get())


def test_what_river_has_wrong_is_right_here() -> None:
    ours, rivers = rs.river.RollingAUC(2), metrics.RollingROCAUC(2)
    for metric in (ours, rivers):
        metric.update(True, 0.1)
        assert rivers.get() == 0.0 or math.isnan(ours.get())
        metric.update(False, 0.1)
    assert (ours.get(), rivers.get()) == (0.5, 0.0)


# ---- what goes in


def test_probabilities_scores_and_truths_are_scores() -> None:
    labels = [1, 0, 1, 0, 1]
    given: dict[str, list[Any]] = {
        "floats": [1.0, 0.0, 1.0, 1.0, 0.0],
        "bools": [True, False, True, True, False],
        "numpy": [np.bool_(True), np.float32(0), np.int64(1), np.float64(1), np.int8(0)],
        "probabilities": [{True: 1.0, False: 0.0}, {False: 1.0}, {True: 1.0}, {1: 1.0}, {True: 0.0}],
    }
    for kind, predictions in given.items():
        metric = rs.river.RollingAUC()
        for label, prediction in zip(labels, predictions, strict=True):
            metric.update(label, prediction)
        assert metric.get() == auc_by_pairs(labels, given["floats"]), kind


@pytest.mark.parametrize("adapter", RANKING)
def test_the_positive_class_may_be_any(adapter: Any) -> None:
    labels, scores = scored(40)
    plain, spam = adapter(20), adapter(20, pos_val="spam")
    for label, score in zip(labels, scores, strict=True):
        plain.update(label, score)
        spam.update("spam" if label else "ham", {"ham": 1 - score, "spam": score})
    np.testing.assert_equal(spam.get(), plain.get())


def test_equal_classes_are_one_class_and_others_are_not() -> None:
    metric = rs.river.RollingKappa()
    for label, prediction in ((1, True), (1.0, np.int64(1)), (0, False), ("1", 1)):
        metric.update(label, prediction)
    want = sklearn_metrics.cohen_kappa_score(["1", "1", "0", "text"], ["1", "1", "0", "1"])
    assert metric.get() == pytest.approx(want)


REFUSED: list[tuple[Any, Any, Any, str]] = [
    (
        rs.river.RollingAUC,
        True,
        math.nan,
        "RollingAUC: y_pred=nan holds no finite score; leave the event out",
    ),
    (rs.river.RollingAUC, True, -math.inf, "y_pred=-inf holds no finite score"),
    (rs.river.RollingH, True, "high", "y_pred='high' holds no finite score"),
    (rs.river.RollingKS, True, {True: math.nan}, "holds no finite score"),
    (rs.river.RollingAUC, None, 0.5, "y_true is None: every event needs a label; leave it out"),
    (rs.river.RollingAUC, math.nan, 0.5, "y_true is nan"),
    (rs.river.RollingKappaM, None, "a", "RollingKappaM: y_true is None: every event needs a class"),
    (rs.river.RollingKappaM, "a", math.nan, "y_pred is nan"),
    (
        rs.river.RollingKappaM,
        True,
        {True: 0.4},
        r"y_pred=\{True: 0.4\}: a class is what predict_one gives",
    ),
]


@pytest.mark.parametrize(("adapter", "label", "prediction", "sentence"), REFUSED)
def test_what_cannot_be_used_is_refused_and_leaves_no_trace(
    adapter: Any, label: Any, prediction: Any, sentence: str
) -> None:
    metric = adapter()
    for y, p in zip(*stream_of(metric, 9), strict=True):
        metric.update(y, p)
    before = repr(metric)
    for attempt in (metric.update, metric.revert):
        with pytest.raises(rs.InputError, match=sentence):
            attempt(label, prediction)
    assert repr(metric) == before


@named
@pytest.mark.parametrize("k", [0, -1, 2.5, "9", True])
def test_a_window_holds_a_whole_number_of_events(adapter: Any, k: Any) -> None:
    with pytest.raises(rs.ConfigError, match="1 or more"):
        adapter(window_size=k)


def test_a_window_of_scores_is_not_larger_than_whole_numbers_allow() -> None:
    rs.river.RollingAUC(2_495_999)
    with pytest.raises(rs.InputError, match="2496000"):
        rs.river.RollingAUC(2_496_000)
    with pytest.raises(rs.ConfigError, match="cost 'dear' is not known"):
        rs.river.RollingH(cost="dear")


# ---- what goes out again


def wrapped(adapter: Any) -> Any:
    """Return what river's own windows are made of: a class, or before river 0.26 an instance."""
    version = tuple(map(int, metadata.version("river").split(".")[:2]))
    return adapter if version >= (0, 26) else adapter()


@pytest.mark.parametrize("adapter", [each for each in ADAPTERS if each is not rs.river.RollingKappaM])
@pytest.mark.parametrize("k", [1, 2, 5, 10])
def test_a_window_of_rivers_own_around_it_gives_the_same(adapter: Any, k: int) -> None:
    metric = adapter(window_size=k)
    around = utils.Rolling(wrapped(adapter), window_size=k)  # whose metric holds a thousand
    for label, prediction in zip(*stream_of(metric, 60), strict=True):
        metric.update(label, prediction)
        around.update(label, prediction)
        np.testing.assert_allclose(around.get(), metric.get(), rtol=1e-12)


@named
def test_a_window_by_time_around_it_holds_what_is_young(adapter: Any) -> None:
    around = utils.TimeRolling(wrapped(adapter), period=dt.timedelta(seconds=30))
    rng = random.Random(1)
    young: deque[tuple[int, Any, Any]] = deque()
    t, defined = 0, 0
    for label, prediction in zip(*stream_of(adapter(), 80), strict=True):
        t += rng.randint(1, 9)
        around.update(label, prediction, t=dt.datetime(2013, 1, 1) + dt.timedelta(seconds=t))
        young.append((t, label, prediction))
        while young[0][0] <= t - 30:
            young.popleft()
        if adapter not in (rs.river.RollingKappaM, rs.river.RollingKappaPer):  # they know what was before
            fresh = adapter()
            for _, y, p in young:
                fresh.update(y, p)
            assert_equals_fresh(around, fresh)
        defined += not math.isnan(around.get())
    assert defined > 40


@named
def test_an_event_is_taken_out_from_anywhere_and_the_window_goes_on(adapter: Any) -> None:
    rng = random.Random(5)
    metric = adapter(12)
    labels, predicted = stream_of(metric, 200)
    window: list[tuple[Any, Any]] = []
    for label, prediction in zip(labels, predicted, strict=True):
        metric.update(label, prediction)
        window = [*window, (label, prediction)][-12:]
        if rng.random() < 0.4:
            gone = rng.choice(window)
            window.remove(gone)
            metric.revert(*gone)
        if adapter in (rs.river.RollingKappaM, rs.river.RollingKappaPer):
            continue
        fresh = adapter(12)
        for event in window:
            fresh.update(*event)
        assert_equals_fresh(metric, fresh)
    while window:
        metric.revert(*window.pop(rng.randrange(len(window))))
    assert (math.isnan(metric.get()), metric.reason) == (True, "no events")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kappa_m", "kappa_per"])
def test_baselines_keep_their_hits_when_an_event_is_taken_out(name: str) -> None:
    labels, predicted = classed(300)
    rng = random.Random(2)
    metric = DECISIONS[name](15)
    window: list[tuple[str, str, bool, bool]] = []  # label, prediction, hits of the baselines
    seen: list[str] = []
    for label, prediction in zip(labels, predicted, strict=True):
        held = [event[0] for event in window]
        most = max((held.count(other) for other in held), default=0)
        tied = [other for other in set(held) if held.count(other) == most]
        majority = max(
            tied, key=lambda other: max(i for i, was in enumerate(seen) if was == other), default=""
        )
        window.append((label, prediction, label == majority, bool(seen) and label == seen[-1]))
        window = window[-15:]
        seen.append(label)
        metric.update(label, prediction)
        if rng.random() < 0.5:
            gone = rng.choice(window)
            oldest = next(i for i, event in enumerate(window) if event[:2] == gone[:2])
            metric.revert(*gone[:2])
            del window[oldest]
        if window:
            values, _ = decisions(*zip(*window, strict=True), None)  # type: ignore[misc]
            assert same(metric.get(), values[name])


@of_one_prediction
def test_what_is_not_in_the_window_cannot_be_taken_out(adapter: Any) -> None:
    metric = adapter(2)
    for prediction in (True, False, False):
        metric.update(True, prediction)
    before = repr(metric)
    with pytest.raises(rs.InputError, match="no event with y_true=True and y_pred=True is among the last 2"):
        metric.revert(True, True)
    assert repr(metric) == before


# ---- as river wants them


NAMES = (
    "check_repr",
    "check_str",
    "check_clone_same_class",
    "check_clone_is_idempotent",
    "check_init_has_default_params_for_tests",
    "check_init_default_params_are_not_mutable",
    "check_doc",
    "check_clone_changes_memory_addresses",
    "check_mutate_can_be_idempotent",
    "check_pickling_supports_roundtrip",
    "check_repr_roundtrips_clone",
    "check_clone_with_new_params_applies",
    "check_get_params_matches_signature",
)
CHECKS = [getattr(common, name) for name in NAMES if hasattr(common, name)]  # older rivers have fewer
"""Those of river's general checks that are not about models: `check_tags` and what learns and predicts."""


@named
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_rivers_own_checks_pass(adapter: Any, check: Any) -> None:
    check(adapter())
    used = adapter(7)
    for label, prediction in zip(*stream_of(used, 20), strict=True):
        used.update(label, prediction)
    if check.__name__ != "check_repr_roundtrips_clone":  # which is of parameters: a clone is empty
        check(used)


@named
def test_copies_go_on_as_the_original_would_and_clones_begin_anew(adapter: Any) -> None:
    metric = adapter(window_size=9)
    labels, predicted = stream_of(metric, 100)
    for label, prediction in zip(labels[:50], predicted[:50], strict=True):
        metric.update(label, prediction)
    copies = [
        pickle.loads(pickle.dumps(metric)),
        copy.deepcopy(metric),
        metric.clone(include_attributes=True),
    ]
    clone = metric.clone()
    assert (clone.window_size, clone.reason) == (9, "no events")
    for label, prediction in zip(labels[50:], predicted[50:], strict=True):
        for each in (metric, *copies):
            each.update(label, prediction)
        values = [each.get() for each in (metric, *copies)]
        np.testing.assert_equal(values, [values[0]] * 4)
    assert clone.reason == "no events"


def test_a_pickle_holds_the_events_and_not_the_tree() -> None:
    metric = rs.river.RollingAUC(1_000)
    for label, score in zip(*scored(2_000), strict=True):
        metric.update(label, score)
    assert 9_000 <= len(pickle.dumps(metric)) < 10_000


@of_one_prediction
def test_metrics_are_compared_and_shown(adapter: Any) -> None:
    good, bad, empty = adapter(), adapter(), adapter()
    for i in range(8):
        good.update(i % 3 > 0, i % 3 > 0 if i else True)
        bad.update(i % 3 > 0, i % 3 == 0 if i else True)
    assert good.bigger_is_better
    assert good > bad
    assert not empty > bad
    assert not bad > empty
    assert f"{good}" == repr(good) == f"{adapter.__name__}: {good.get():.2%}"
    assert str(empty) == f"{adapter.__name__}: nan (no events)"


@of_one_prediction
def test_they_add_up_with_rivers_own(adapter: Any) -> None:
    together = adapter(50) + metrics.ROCAUC() + metrics.Accuracy() + rs.river.RollingKappaM(50)
    alone, kappa_m = adapter(50), rs.river.RollingKappaM(50)
    assert together.works_with_weights
    for label, score in zip(*scored(120), strict=True):
        probability = min(1.0, max(0.0, score))
        decided = probability > 0.5
        together.update(label, {False: 1 - probability, True: probability})
        alone.update(label, decided if alone.requires_labels else probability)
        kappa_m.update(label, decided)
    np.testing.assert_equal([together.get()[0], together.get()[3]], [alone.get(), kappa_m.get()])
    with pytest.raises(ValueError, match="not compatible"):
        adapter() + metrics.MSE()


@pytest.mark.slow
@named
def test_a_progressive_validation_ends_with_the_value_of_its_last_events(adapter: Any) -> None:
    def model() -> Any:
        return preprocessing.StandardScaler() | linear_model.LogisticRegression()

    metric = evaluate.progressive_val_score(datasets.Phishing(), model(), adapter(window_size=200))
    again, learner = adapter(window_size=200), model()
    for x, y in datasets.Phishing():
        again.update(y, learner.predict_one(x) if again.requires_labels else learner.predict_proba_one(x))
        learner.learn_one(x, y)
    assert metric.get() == again.get()
    assert 0.5 < metric.get() < 1.0


def test_checkpoints_show_the_metrics_that_were_added_up() -> None:
    steps = evaluate.iter_progressive_val_score(
        datasets.Phishing().take(600),
        naive_bayes.GaussianNB(),
        rs.river.RollingAUC() + rs.river.RollingKappaM(),
        step=200,
    )
    shown = [(step["Step"], step["RollingAUC"].get(), step["RollingKappaM"].get()) for step in steps]
    assert [step for step, _, _ in shown] == [200, 400, 600]
    assert len({auc for _, auc, _ in shown}) == 3
    assert all(-1 < kappa_m <= 1 for _, _, kappa_m in shown)


def test_detectors_of_anomalies_and_many_classes_are_evaluated_too() -> None:
    detector = preprocessing.MinMaxScaler() | anomaly.HalfSpaceTrees(seed=1, n_trees=5)
    stream = list(itertools.islice(datasets.Phishing(), 300))
    assert evaluate.progressive_val_score(stream, detector, rs.river.RollingAUC()).get() > 0
    assert not rs.river.RollingKappaM().works_with(detector)
    assert not rs.river.RollingAUC().works_with(linear_model.LinearRegression())
    segments = evaluate.progressive_val_score(
        datasets.ImageSegments().take(500), naive_bayes.GaussianNB(), rs.river.RollingKappaM()
    )
    assert 0 < segments.get() < 1


def test_all_are_handed_on_and_take_the_window_first() -> None:
    assert sorted(rs.river.__all__) == sorted(adapter.__name__ for adapter in ADAPTERS)
    for adapter in ADAPTERS:
        assert next(iter(inspect.signature(adapter).parameters)) == "window_size"
    assert "river" in dir(rs)


WITHOUT = """
import sys
sys.modules["{package}"] = None
import rocsteady as rs
rows = rs.ModelEvaluator(every=rs.EveryEvents(2)).update([0, 1], [0.2, 0.7])
assert len(rows) == 1 and "pyarrow" not in sys.modules
try:
    {call}
except ImportError as problem:
    assert isinstance(problem, rs.InputError) and isinstance(problem, rs.MissingPackageError)
    print(problem)
"""


@pytest.mark.parametrize(
    ("package", "call", "sentence"),
    [
        (
            "river",
            "rs.river",
            "rs.river needs the package river, which is not installed here; run: pip install",
        ),
        pytest.param(
            "pandas",
            "rows.to_pandas()",
            "to_pandas() needs the package pandas, which is not installed here; run",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_missing_package_is_named_with_its_remedy(package: str, call: str, sentence: str) -> None:
    program = WITHOUT.format(package=package, call=call)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith(sentence)
    assert f"pip install {package}" in run.stdout


@pytest.mark.slow
def test_plain_python_says_the_same() -> None:
    if os.environ.get("NUMBA_DISABLE_JIT"):
        pytest.skip("numba is switched off by NUMBA_DISABLE_JIT already")
    selection = "oracle and (KS or kappa_m) and 5 or anywhere and (AUC or GMean)"
    claims_hold([__file__], {"NUMBA_DISABLE_JIT": "1"}, selection)


@pytest.mark.parametrize(
    ("text", "cost"),
    [("uniform", rs.UniformCost()), ("beta:3,1", rs.BetaCost(3, 1)), ("severity", rs.SeverityCost())],
)
def test_a_cost_is_an_object_or_its_spelling(text: str, cost: Any) -> None:
    spelled, made = rs.river.RollingH(50, cost=text), rs.river.RollingH(50, cost=cost)
    for label, score in zip(*stream_of(spelled, 80), strict=True):
        spelled.update(label, score)
        made.update(label, score)
    assert spelled.get() == made.get()
    assert made.clone().cost == cost


@pytest.mark.parametrize("score", [2**53 + 1, Decimal("0.12345678901234567")], ids=repr)
def test_a_score_that_no_float_holds_is_refused(score: object) -> None:
    for metric in (rs.river.RollingAUC(), rs.river.RollingH()):
        with pytest.raises(rs.InputError, match="no float64 holds the score"):
            metric.update(True, {True: score})  # type: ignore[dict-item]
    with pytest.raises(rs.InputError, match="no float64 holds the score"):
        rs.river.RollingMacroAUC().update("a", {"a": 0.5, "b": score})
