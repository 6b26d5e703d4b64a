"""Metrics for river of more than two classes: at every prefix what the definitions say."""

from __future__ import annotations

import datetime as dt
import math
import os
import random
from typing import Any

import numpy as np
import pytest
import rocsteady as rs
from sklearn import metrics as sklearn_metrics

from tests.support.invariants.kernel_modes import claims_hold
from tests.support.oracles.classes import classes_truth, one_hot
from tests.support.streams.class_predictions import class_predictions

pytest.importorskip("river", reason="adapters for river: pip install '.[test]'")
from river import cluster, datasets, evaluate, linear_model, metrics, naive_bayes, preprocessing, tree, utils

METRICS = {
    "macro": rs.river.RollingMacroAUC,
    "weighted": rs.river.RollingWeightedAUC,
    "m": rs.river.RollingM,
}
SCIKIT_LEARN = {
    "macro": {"multi_class": "ovr", "average": "macro"},
    "weighted": {"multi_class": "ovr", "average": "weighted"},
    "m": {"multi_class": "ovo", "average": "macro"},
}
each = pytest.mark.parametrize("name", METRICS)
Event = tuple[Any, dict[Any, float], float]


def truth(events: list[Event], classes: list[Any]) -> Any:
    """The figures of events by the oracle, with these classes met so far."""
    numbers = [classes.index(label) for label, _, _ in events]
    scores = [
        [of.get(name, 0.0) for name in classes] if of else [1 / len(classes)] * len(classes)
        for _, of, _ in events
    ]
    return classes_truth(one_hot(numbers, len(classes)), scores, [weight for _, _, weight in events])


def by_scikit_learn(events: list[Event], classes: list[Any]) -> dict[str, float] | None:
    """The same by scikit-learn; None where it has no value."""
    labels = [label for label, _, _ in events]
    if set(labels) != set(classes) or len(classes) < 3 or any(not of or w != 1 for _, of, w in events):
        return None
    names = sorted(classes)
    scores = [[of.get(name, 0.0) for name in names] for _, of, _ in events]
    return {
        name: float(sklearn_metrics.roc_auc_score(labels, scores, labels=names, **how))
        for name, how in SCIKIT_LEARN.items()
    }


def follow(stream: list[Event], size: int, reverts: float, rng: random.Random, asks: float = 1.0) -> int:
    """Compare the metrics with the oracle after every event; return how often scikit-learn agreed."""
    ours = {name: metric(size) for name, metric in METRICS.items()}
    window: list[Event] = []
    classes: list[Any] = []
    agreed = 0
    for event in stream:
        label, of, weight = event
        classes += [name for name in dict.fromkeys((label, *of)) if name not in classes]
        for metric in ours.values():
            metric.update(label, of, w=weight)
        window = [*window, event][-size:]
        if rng.random() < reverts:
            gone = rng.choice(window)
            window.remove(gone)
            for metric in ours.values():
                metric.revert(*gone)
        if rng.random() >= asks:
            continue
        expected, theirs = truth(window, classes), by_scikit_learn(window, classes)
        agreed += theirs is not None
        for name, metric in ours.items():
            want = getattr(expected, name)
            if want is None:
                assert math.isnan(metric.get())
                assert metric.reason == ("one class in window" if window else "no events")
                continue
            assert metric.get() == pytest.approx(float(want), abs=1e-12)
            assert metric.reason is None
            if theirs is not None:
                assert metric.get() == pytest.approx(theirs[name], abs=1e-12)
    return agreed


def stream_of(n: int, kind: str, weights: bool, empty: float, rng: random.Random) -> list[Event]:
    labels, predictions = class_predictions(n, kind=kind)
    return [
        (label, {} if rng.random() < empty else of, rng.choice((0.5, 1.0, 3.0)) if weights else 1.0)
        for label, of in zip(labels, predictions, strict=True)
    ]


@pytest.mark.parametrize("kind", ["tied", "plain"])
@pytest.mark.parametrize("size", [1, 5, 22])
def test_every_prefix_is_that_of_all_pairs_and_of_scikit_learn(kind: str, size: int) -> None:
    rng = random.Random(1)
    agreed = follow(stream_of(70, kind, weights=False, empty=0.0, rng=rng), size, 0.0, rng)
    assert agreed > 5 or size < 22


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("size", [6, 22])
def test_after_reverts_with_weights_and_empty_dicts_too(size: int, weights: bool) -> None:
    rng = random.Random(2)
    follow(stream_of(70, "tied", weights, empty=0.1, rng=rng), size, 0.4, rng)


def test_values_that_are_asked_for_now_and_then_are_the_same() -> None:
    rng = random.Random(3)
    stream = stream_of(60, "tied", weights=False, empty=0.1, rng=rng)
    stream[40] = (*stream[40][:2], 2.0)  # from then on, and until it leaves, the window is scanned
    follow(stream, 12, 0.2, rng, asks=0.3)


def test_a_class_that_comes_late_had_scores_of_0_before() -> None:
    metric = rs.river.RollingMacroAUC()
    events = [("a", {"a": 0.9, "b": 0.1}), ("b", {"a": 0.4, "b": 0.6}), ("c", {"a": 0.5, "b": 0.3, "c": 0.2})]
    for label, of in events:
        metric.update(label, of)
        metric.get()
    assert metric.get() == 1.0
    metric.update("d", {"a": 1.0})  # a label before its first score: all four have the score 0 of d
    aucs = [2 / 3, 1.0, 1.0, 0.5]
    assert metric.get() == sum(aucs) / 4
    metric.update("d", {"d": 1.0})
    assert metric.get() == pytest.approx((3 / 4 + 1.0 + 1.0 + (0.5 + 1) / 2) / 4)


def test_an_empty_dict_gives_each_class_the_same_score_whatever_comes_later() -> None:
    told, untold = rs.river.RollingM(), rs.river.RollingM()
    untold.update("a", {})
    told.update("a", {"a": 1 / 3, "b": 1 / 3, "c": 1 / 3})
    for label, of in (("b", {"a": 0.4, "b": 0.6}), ("c", {"a": 0.3, "b": 0.3, "c": 0.4}), ("a", {"a": 1.0})):
        told.update(label, of)
        untold.update(label, of)
        if label == "b":  # two classes are known: 1/2 each
            assert untold.get() == (1.0 + 1.0) / 2
    assert untold.get() == told.get()
    with pytest.raises(rs.InputError, match="no event with y_true='a' and y_pred="):
        untold.revert("a", {"a": 1 / 3, "b": 1 / 3, "c": 1 / 3})
    untold.revert("a", {})
    told.revert("a", {"a": 1 / 3, "b": 1 / 3, "c": 1 / 3})
    assert untold.get() == told.get()


@pytest.mark.parametrize("size", [3, 100, 2_000])
def test_two_classes_have_the_auc_to_the_last_bit(size: int) -> None:
    rng = random.Random(size)
    auc, ours = rs.river.RollingAUC(size), [metric(size) for metric in METRICS.values()]
    for i in range(2_500):
        label, score = rng.random() < 0.4, rng.choice((0.25, 0.5, rng.random()))
        auc.update(label, score)
        for metric in ours:
            metric.update(label, {True: score, False: 1 - score})
        if i % 7 == 0 or i > 2_490:
            np.testing.assert_equal([metric.get() for metric in ours], [auc.get()] * 3)


@pytest.mark.parametrize("size", [10, 500])
def test_an_evaluator_says_the_same_to_the_last_bit(size: int) -> None:
    labels, predictions = class_predictions(2_500)
    met = list(
        dict.fromkeys(name for pair in zip(labels, predictions, strict=True) for name in (pair[0], *pair[1]))
    )
    scores = [[of.get(name, 0.0) for name in met] for of in predictions]
    ev = rs.MulticlassEvaluator(met, window=rs.LastEvents(size), every=rs.EveryEvents(50), class_rows=False)
    rows = ev.update(labels, scores)
    for name, metric in METRICS.items():
        ours, got = metric(size), []
        for i, (label, of) in enumerate(zip(labels, predictions, strict=True)):
            ours.update(label, of)
            if i % 50 == 49:
                got.append(ours.get())
        assert got == [getattr(means, f"auc_{name}") for means in rows.columns.means]


def test_a_sparse_value_and_one_of_many_classes_are_the_same_as_others() -> None:
    rng = random.Random(1)
    asked, unasked = rs.river.RollingM(300), rs.river.RollingM(300)
    many = rs.river.RollingM(300)
    for i in range(2_700):
        label = rng.choice("abcde")
        of = {name: rng.random() + (name == label) for name in "abcde"}
        for metric in (asked, unasked, many):
            metric.update(label, of)
        if i == 1_500:
            many.update("f", {f"none {number}": 1.0 for number in range(200)})
        if i % 10 == 0:
            asked.get()
    assert asked.get() == unasked.get() == many.get()


@each
def test_a_weight_counts_like_so_many_events(name: str) -> None:
    once, often = METRICS[name](500), METRICS[name](500)
    assert once.works_with_weights
    for i, (label, of) in enumerate(zip(*class_predictions(80), strict=True)):
        once.update(label, of, w=1 + i % 3)
        for _ in range(1 + i % 3):
            often.update(label, of)
        np.testing.assert_allclose(once.get(), often.get(), rtol=1e-12)
    for i, (label, of) in enumerate(zip(*class_predictions(80), strict=True)):
        if i % 3:
            with pytest.raises(rs.InputError, match="no event with"):
                once.revert(label, of, w=7.5)
            once.revert(label, of, w=1 + i % 3)
        else:
            continue
    alone = METRICS[name](500)
    for label, of in list(zip(*class_predictions(80), strict=True))[::3]:
        alone.update(label, of)
    assert once.get() == alone.get()  # only weights of 1 are left: whole numbers again


REFUSED: list[tuple[Any, Any, Any, str]] = [
    ("a", 0.5, 1.0, "RollingM: y_pred=0.5: give a dict from class to score, as predict_proba_one does"),
    ("a", "a", 1.0, "y_pred='a': give a dict"),
    ("a", {"a": math.nan, "new": 1.0}, 1.0, "holds a score that is not finite; leave the event out"),
    ("a", {"new": "high"}, 1.0, "holds a score that is not finite"),
    ("a", {"new": None}, 1.0, "holds a score that is not finite"),
    ("a", {"new": math.inf}, 1.0, "holds a score that is not finite"),
    ("a", {None: 0.4}, 1.0, "a class of y_pred={None: 0.4} is None"),
    ("a", {math.nan: 0.4}, 1.0, "a class of y_pred={nan: 0.4} is nan"),
    (None, {"new": 0.4}, 1.0, "y_true is None: every event needs a class; leave it out"),
    (math.nan, {"new": 0.4}, 1.0, "y_true is nan"),
    (["a"], {"new": 0.4}, 1.0, r"y_true=\['a'\]: a class can be the key of a dict"),
    ("a", {"new": 0.4}, -1, "w=-1: a weight is finite and not below 0; leave the event out"),
    ("a", {"new": 0.4}, math.nan, "w=nan: a weight"),
    ("a", {"new": 0.4}, math.inf, "w=inf: a weight"),
    ("a", {"new": 0.4}, "2", "w='2': a weight"),
]


@pytest.mark.parametrize(("label", "of", "weight", "sentence"), REFUSED)
def test_what_cannot_be_used_is_refused_and_leaves_no_trace(
    label: Any, of: Any, weight: Any, sentence: str
) -> None:
    metric, other = rs.river.RollingM(), rs.river.RollingM()
    for both in (metric, other):
        both.update("b", {})  # its scores say how many classes were met
        for y, p in zip(*class_predictions(9), strict=True):
            both.update(y, p)
    for attempt in (metric.update, metric.revert):
        with pytest.raises(rs.InputError, match=sentence):
            attempt(label, of, w=weight)
    assert metric.get() == other.get()


def test_what_is_not_in_the_window_cannot_be_taken_out() -> None:
    metric = rs.river.RollingM(2)
    events = [("a", {"a": 0.5, "b": 0.5}), ("b", {"a": 0.4, "b": 0.6}), ("a", {"a": 0.7, "b": 0.3})]
    with pytest.raises(rs.InputError, match="among the last 2; revert takes out events"):
        metric.revert(*events[0])
    for event in events:
        metric.update(*event)
    before = repr(metric)
    for event in (events[0], ("c", {"a": 0.7, "b": 0.3}), ("a", {"a": 0.7, "b": 0.3, "c": 0.0}), ("a", {})):
        with pytest.raises(rs.InputError, match="no event with"):
            metric.revert(*event)
    assert repr(metric) == before
    metric.revert("b", {"b": 0.6, "a": 0.4})  # a dict has no order
    assert metric.reason == "one class in window"


@each
def test_metrics_are_compared_and_shown(name: str) -> None:
    good, bad, empty = METRICS[name](), METRICS[name](), METRICS[name]()
    for label, of in zip(*class_predictions(60), strict=True):
        good.update(label, {**of, label: 1.0})
        bad.update(label, of)
    assert good.bigger_is_better
    assert good > bad
    assert not empty > bad
    assert not bad > empty
    assert f"{good}" == repr(good) == f"{METRICS[name].__name__}: {good.get():.2%}"
    assert str(empty) == f"{METRICS[name].__name__}: nan (no events)"


def test_they_suit_classifiers_alone() -> None:
    metric = rs.river.RollingM()
    assert not metric.requires_labels
    assert metric.works_with(preprocessing.StandardScaler() | naive_bayes.GaussianNB())
    assert not metric.works_with(linear_model.LinearRegression())
    assert not metric.works_with(cluster.KMeans())
    with pytest.raises(ValueError, match="not compatible"):
        metric + metrics.MSE()


@each
def test_a_progressive_validation_ends_with_the_value_of_its_last_events(name: str) -> None:
    metric = METRICS[name](window_size=200)
    stream = list(datasets.ImageSegments().take(500))
    together = metric + metrics.Accuracy() + metrics.CrossEntropy() + rs.river.RollingKappa(200)
    evaluate.progressive_val_score(stream, naive_bayes.GaussianNB(), together)
    alone, learner = METRICS[name](window_size=200), naive_bayes.GaussianNB()
    for x, y in stream:
        of = learner.predict_proba_one(x)
        if of:  # as progressive_val_score does
            alone.update(y, of)
        learner.learn_one(x, y)
    assert metric.get() == alone.get()
    assert 0.5 < metric.get() < 1.0


def test_windows_of_rivers_own_around_a_metric_take_weights_and_times() -> None:
    rng = random.Random(4)
    stream = stream_of(60, "tied", weights=True, empty=0.0, rng=rng)
    metric, around = rs.river.RollingM(10), utils.Rolling(rs.river.RollingM, window_size=10)
    young = utils.TimeRolling(rs.river.RollingM, period=dt.timedelta(seconds=10))
    for second, (label, of, weight) in enumerate(stream):
        metric.update(label, of, w=weight)
        around.update(label, of, w=weight)
        young.update(label, of, w=weight, t=dt.datetime(2020, 1, 1) + dt.timedelta(seconds=second))
        np.testing.assert_equal([around.get(), young.get()], [metric.get()] * 2)


def test_learners_of_river_find_their_probabilities_in_them() -> None:
    model = tree.HoeffdingTreeClassifier(grace_period=20)
    steps = evaluate.iter_progressive_val_score(
        datasets.ImageSegments().take(600), model, rs.river.RollingM(300), step=200
    )
    values = [step["RollingM"].get() for step in steps]
    assert len(values) == 3
    assert all(0.5 < value < 1 for value in values)


@pytest.mark.slow
def test_plain_python_says_the_same() -> None:
    if os.environ.get("NUMBA_DISABLE_JIT"):
        pytest.skip("numba is switched off by NUMBA_DISABLE_JIT already")
    selection = "prefix and 22 or reverts or late or empty_dict"
    claims_hold([__file__], {"NUMBA_DISABLE_JIT": "1"}, selection)
