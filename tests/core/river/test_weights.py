"""Metrics for river: weights, predictions of models that have learnt nothing, river's checks of metrics."""

from __future__ import annotations

import copy
import math
import os
import pickle
import random
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import rocsteady as rs
from sklearn import metrics as sklearn_metrics

from tests.support.invariants.kernel_modes import claims_hold

pytest.importorskip("river", reason="adapters for river: pip install '.[test]'")
from river import bandit, datasets, ensemble, evaluate, forest, metrics, model_selection, naive_bayes, tree

RANKING = {"auc": rs.river.RollingAUC, "h": rs.river.RollingH, "ks": rs.river.RollingKS}
DECISIONS = {
    adapter._name: adapter
    for adapter in (getattr(rs.river, name) for name in rs.river.__all__)
    if adapter().requires_labels
}
OF_CLASSES = {
    "auc_macro": rs.river.RollingMacroAUC,
    "auc_weighted": rs.river.RollingWeightedAUC,
    "auc_m": rs.river.RollingM,
}
ADAPTERS = [*RANKING.values(), *DECISIONS.values(), *OF_CLASSES.values()]
named = pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.__name__)

Event = tuple[Any, Any, float]


def test_every_metric_is_tried_here() -> None:
    assert sorted(adapter.__name__ for adapter in ADAPTERS) == sorted(rs.river.__all__)


def events(metric: Any, n: int, seed: int = 5, weights: tuple[float, ...] = (0.3, 1.0, 2.5)) -> list[Event]:
    """Events of two classes, or of three, with ties and weights, for the kind of a metric."""
    rng = random.Random(seed)
    found: list[Event] = []
    for _ in range(n):
        weight = rng.choice(weights)
        if isinstance(metric, tuple(OF_CLASSES.values())):
            shares = [rng.randint(1, 4) for _ in "abc"]
            of = {name: share / 16 for name, share in zip("abc", shares, strict=True)}
            found.append((rng.choice("aabc"), of, weight))
        elif metric.requires_labels:
            label = rng.choice("aab")
            found.append((label, label if rng.random() < 0.6 else rng.choice("abc"), weight))
        else:
            found.append((rng.random() < 0.4, rng.choice((-0.0, 0.0, 0.25, rng.random(), 17.5)), weight))
    return found


# ---- weights


@pytest.mark.parametrize("k", [1, 7, 60])
@pytest.mark.parametrize("name", [*RANKING, *DECISIONS])
def test_at_every_prefix_an_evaluator_of_weights_says_the_same(name: str, k: int) -> None:
    """The evaluator's rows are compared with fractions in tests/core/evaluator."""
    metric = (RANKING | DECISIONS)[name](k)
    assert metric.works_with_weights
    stream = events(metric, 150)
    labels, predictions, weights = zip(*stream, strict=True)
    ev = rs.ModelEvaluator(window=rs.LastEvents(k), every=rs.EveryEvents(1))
    if name in RANKING:
        rows = ev.update(labels, predictions, weights=weights)
    else:
        rows = ev.update(labels, [0.5] * 150, predicted=predictions, weights=weights)
    got = []
    for event in stream:
        metric.update(*event)
        got.append(metric.get())
        assert (metric.reason is None) == (not math.isnan(got[-1]))
    np.testing.assert_allclose(got, rows.number(name), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("cost", ["beta:2,2", "uniform", "severity"])
def test_costs_weigh_errors_in_windows_of_weights_too(cost: str) -> None:
    metric = rs.river.RollingH(30, cost=cost)
    stream = events(metric, 80)
    labels, scores, weights = zip(*stream, strict=True)
    ev = rs.ModelEvaluator(window=rs.LastEvents(30), every=rs.EveryEvents(1), cost=cost)
    rows = ev.update(labels, scores, weights=weights)
    got = []
    for event in stream:
        metric.update(*event)
        got.append(metric.get())
    np.testing.assert_allclose(got, rows.number("h"), rtol=1e-11)


@named
@pytest.mark.parametrize("seldom", [False, True])
def test_values_are_those_of_the_events_held_whatever_came_before(adapter: Any, seldom: bool) -> None:
    """Weights come and go, events are taken out, and values are asked for now and then."""
    rng = random.Random(2)
    metric, window = adapter(12), deque[Event](maxlen=12)
    weights = (1.0,) * 25 + (3.0,) if seldom else (0.5, 1.0, 4.0)
    for event in events(metric, 200, weights=weights):
        metric.update(*event)
        window.append(event)
        if rng.random() < 0.3:
            gone = rng.choice(window)
            window.remove(gone)
            metric.revert(*gone)
        if rng.random() < 0.5 and adapter not in (rs.river.RollingKappaM, rs.river.RollingKappaPer):
            fresh = adapter(12)
            for held in window:
                fresh.update(*held)
            np.testing.assert_allclose(metric.get(), fresh.get(), rtol=1e-11, atol=1e-12)
            copies = [pickle.loads(pickle.dumps(metric)), copy.deepcopy(metric)]
            np.testing.assert_allclose([each.get() for each in copies], [metric.get()] * 2, rtol=1e-11)
    while window:
        gone = window[rng.randrange(len(window))]
        window.remove(gone)
        metric.revert(*gone)
    assert (math.isnan(metric.get()), metric.reason) == (True, "no events")


@named
def test_when_all_weights_have_left_values_are_of_whole_numbers_again(adapter: Any) -> None:
    heavy, plain = adapter(20), adapter(20)
    for label, prediction, _ in events(plain, 60):
        heavy.update(label, prediction)
        plain.update(label, prediction)
    heavy.update(*events(plain, 1)[0][:2], w=7.0)
    plain.update(*events(plain, 1)[0][:2])
    for label, prediction, _ in events(plain, 60, seed=8):  # no majority of the weight is left, either
        heavy.update(label, prediction)
        plain.update(label, prediction)
    if adapter is not rs.river.RollingKappaM:  # whose baseline saw the weight while it was held
        np.testing.assert_equal(heavy.get(), plain.get())
    if adapter not in OF_CLASSES.values():
        assert len(pickle.dumps(heavy)) == pytest.approx(len(pickle.dumps(plain)), abs=40)


@pytest.mark.parametrize(
    "adapter", [each for each in ADAPTERS if each not in (rs.river.RollingKappaM, rs.river.RollingKappaPer)]
)
def test_a_weight_counts_like_so_many_events(adapter: Any) -> None:
    once, often = adapter(500), adapter(500)
    for label, prediction, weight in events(once, 60, weights=(1, 2, 3)):
        once.update(label, prediction, w=weight)
        for _ in range(int(weight)):
            often.update(label, prediction)
        np.testing.assert_allclose(once.get(), often.get(), rtol=1e-12, atol=1e-12)


@named
def test_an_event_of_weight_0_changes_nothing(adapter: Any) -> None:
    metric, other = adapter(9), adapter(9)
    for i, event in enumerate(events(metric, 30)):
        metric.update(*event[:2])
        other.update(*event[:2])
        metric.update(*events(metric, 1, seed=i)[0][:2], w=(0, 0.0, np.float64(0), False)[i % 4])
        np.testing.assert_equal(metric.get(), other.get())
    before = repr(metric)
    metric.revert(*events(metric, 1, seed=77)[0][:2], w=0)
    assert repr(metric) == before


@named
@pytest.mark.parametrize("weight", [-1, math.nan, math.inf, "2", None, 1j])
def test_a_weight_is_finite_and_not_below_0(adapter: Any, weight: Any) -> None:
    metric = adapter()
    for event in events(metric, 9):
        metric.update(*event)
    before = repr(metric)
    for attempt in (metric.update, metric.revert):
        with pytest.raises(
            rs.InputError, match=rf"{adapter.__name__}: w=.*: a weight is finite and not below"
        ):
            attempt(*events(metric, 1)[0][:2], w=weight)
    assert repr(metric) == before


@named
def test_an_event_of_another_weight_cannot_be_taken_out(adapter: Any) -> None:
    metric = adapter(5)
    label, prediction, _ = events(metric, 1)[0]
    metric.update(label, prediction, 2.0)
    with pytest.raises(rs.InputError, match=r"no event with .* and w=3.0 is among the last 5"):
        metric.revert(label, prediction, 3.0)
    with pytest.raises(rs.InputError, match="no event with"):
        metric.revert(label, prediction)
    metric.revert(label, prediction, 2.0)
    assert metric.reason == "no events"


# ---- models that have learnt nothing


@pytest.mark.parametrize("nothing", [None, {}], ids=str)
def test_no_prediction_counts_as_in_rivers_own_metrics(nothing: Any) -> None:
    kappa, rivers = rs.river.RollingKappa(), metrics.CohenKappa()
    g_mean, recall = rs.river.RollingGMean(), metrics.MacroRecall()
    for label, prediction in zip("aabbab", [None, "a", "b", None, "a", "b"], strict=True):
        given = nothing if prediction is None else prediction
        kappa.update(label, given)
        g_mean.update(label, given)
        rivers.update(label, prediction)
        recall.update(label, prediction)
    assert kappa.get() == pytest.approx(rivers.get())
    assert g_mean.get() == pytest.approx(
        2 / 3
    )  # both recalls are 2/3; river's takes None for a class of its own
    assert recall.get() == pytest.approx((2 / 3 + 2 / 3 + 0) / 3)
    for adapter in RANKING.values():
        ours, zero = adapter(), adapter()
        for label, score in ((True, 0.7), (False, None), (True, 0.2), (True, None), (False, 0.1)):
            ours.update(label, nothing if score is None else {True: score})
            zero.update(label, 0.0 if score is None else score)
        assert ours.get() == zero.get()
        ours.revert(False, nothing)
        zero.revert(False, 0.0)
        assert ours.get() == zero.get()
    for adapter in OF_CLASSES.values():
        ours, same = adapter(), adapter()
        for label, of in (("a", {"a": 0.6, "b": 0.4}), ("b", None), ("a", None), ("b", {"a": 0.5, "b": 0.5})):
            ours.update(label, nothing if of is None else of)
            same.update(label, {"a": 0.5, "b": 0.5} if of is None else of)
        assert ours.get() == same.get()


def holders(metric: Any) -> dict[str, Any]:
    """River's models that hold a metric."""
    models = [naive_bayes.GaussianNB(), tree.HoeffdingTreeClassifier(grace_period=20)]
    policy = bandit.EpsilonGreedy(epsilon=0.2, seed=1)
    of_trees = {"n_models": 2, "seed": 1, "metric": metric}
    return {
        "ARFClassifier": forest.ARFClassifier(grace_period=20, **of_trees),
        "SRPClassifier": ensemble.SRPClassifier(model=models[1].clone(), **of_trees),
        "BanditClassifier": model_selection.BanditClassifier(models, metric=metric, policy=policy),
        "SuccessiveHalvingClassifier": model_selection.SuccessiveHalvingClassifier(
            models, metric=metric, budget=60, eta=2
        ),
    }


@named
@pytest.mark.parametrize("holder", holders(metrics.Accuracy()))
def test_rivers_ensembles_choose_among_models_by_them(adapter: Any, holder: str) -> None:
    model = holders(adapter(50))[holder]
    stream = list(datasets.Phishing().take(60))
    if holder == "SRPClassifier" and adapter in OF_CLASSES.values():
        # which gives a class to metrics of scores: river's own metrics of a dict do not take it, either
        for metric in (adapter(50), metrics.CrossEntropy()):
            with pytest.raises((rs.InputError, AttributeError)):
                evaluate.progressive_val_score(stream, holders(metric)[holder], metrics.Accuracy())
        return
    found = evaluate.progressive_val_score(stream, model, adapter(50) + metrics.Accuracy())
    assert found[1].get() > 0.5


@named
def test_upper_confidence_bounds_need_a_burn_in_up_to_a_first_value(adapter: Any) -> None:
    models = [naive_bayes.GaussianNB(), tree.HoeffdingTreeClassifier(grace_period=20)]
    policy = bandit.UCB(delta=1, burn_in=20, seed=1)
    model = model_selection.BanditClassifier(models, metric=adapter(50), policy=policy)
    stream = datasets.Phishing().take(120)
    assert evaluate.progressive_val_score(stream, model, metrics.Accuracy()).get() > 0.5


@named
def test_labels_that_come_late_are_evaluated(adapter: Any) -> None:
    model = naive_bayes.GaussianNB()
    metric = evaluate.progressive_val_score(
        datasets.Phishing().take(120), model, adapter(80), moment=None, delay=5
    )
    assert metric.get() != 0.0


# ---- river's checks of its own metrics, on ours


def rivers_cases(metric: Any, n: int) -> Iterator[tuple[list[Any], list[Any], list[float]]]:
    """Labels, predictions and weights as river's tests draw them: of two classes, and of three."""
    rng = np.random.default_rng(n)
    for classes in ([False, True], [0, 1, 2]):
        if len(classes) > 2 and not isinstance(metric, metrics.base.MultiClassMetric):
            continue
        labels = [classes[i] for i in rng.integers(0, len(classes), n)]
        if metric.requires_labels:
            predictions: list[Any] = [classes[i] for i in rng.integers(0, len(classes), n)]
        else:
            shares = rng.dirichlet(np.ones(len(classes)), n).tolist()
            predictions = [dict(zip(classes, share, strict=True)) for share in shares]
        yield labels, predictions, rng.random(n).tolist()


@named
def test_a_metric_is_copied_pickled_and_shown_at_every_prefix(adapter: Any) -> None:
    for labels, predictions, weights in rivers_cases(adapter(), 10):
        metric = adapter()
        assert str(metric)
        for event in zip(labels, predictions, weights, strict=True):
            metric.update(*event)
            assert repr(metric) == str(metric)
            for copied in (pickle.loads(pickle.dumps(metric)), copy.deepcopy(metric)):
                assert type(copied) is adapter
                assert repr(copied) == repr(metric)


def recalls(labels: list[Any], predictions: list[Any], weights: Any) -> Any:
    met = sorted(set(labels))
    return sklearn_metrics.recall_score(
        labels, predictions, labels=met, average=None, sample_weight=weights, zero_division=0
    )


def auc(labels: list[Any], predictions: list[Any], weights: Any) -> float:
    scores = [of[True] for of in predictions]
    return float(sklearn_metrics.roc_auc_score(labels, scores, sample_weight=weights))


def ks(labels: list[Any], predictions: list[Any], weights: Any) -> float:
    fpr, tpr, _ = sklearn_metrics.roc_curve(labels, [of[True] for of in predictions], sample_weight=weights)
    return float((tpr - fpr).max())


def of_classes(average: str, kind: str) -> Any:
    def score(labels: list[Any], predictions: list[Any], weights: Any) -> float | None:
        names = list(predictions[0])
        if len(names) == 2:
            return auc(labels, predictions, weights)
        if len(set(labels)) < 3:
            return None  # scikit-learn wants every class
        scores = [list(of.values()) for of in predictions]
        if kind == "ovo" and weights is not None:
            return None  # scikit-learn has no weights there
        return float(
            sklearn_metrics.roc_auc_score(
                labels, scores, labels=names, average=average, multi_class=kind, sample_weight=weights
            )
        )

    return score


SCIKIT_LEARN: dict[Any, Any] = {
    rs.river.RollingAUC: auc,
    rs.river.RollingKS: ks,
    rs.river.RollingKappa: lambda labels, predictions, weights: sklearn_metrics.cohen_kappa_score(
        labels, predictions, sample_weight=weights
    ),
    rs.river.RollingGMean: lambda *given: math.prod(recalls(*given)) ** (1 / len(recalls(*given))),
    rs.river.RollingHarmonicMean: lambda *given: (
        0.0 if (found := recalls(*given)).min() == 0 else len(found) / (1 / found).sum()
    ),
    rs.river.RollingMacroAUC: of_classes("macro", "ovr"),
    rs.river.RollingWeightedAUC: of_classes("weighted", "ovr"),
    rs.river.RollingM: of_classes("macro", "ovo"),
}


@pytest.mark.parametrize("adapter", SCIKIT_LEARN, ids=lambda adapter: adapter.__name__)
@pytest.mark.parametrize("has_weights", [True, False])
@pytest.mark.parametrize("k", [2, 10])
def test_at_every_prefix_scikit_learn_says_the_same(adapter: Any, has_weights: bool, k: int) -> None:
    compared = 0
    for labels, predictions, weights in rivers_cases(adapter(), 40):
        metric = adapter(k)
        for i, (label, prediction, weight) in enumerate(zip(labels, predictions, weights, strict=True)):
            metric.update(label, prediction, *[weight] * has_weights)
            if math.isnan(metric.get()):
                continue
            held = slice(max(0, i + 1 - k), i + 1)
            expected = SCIKIT_LEARN[adapter](
                labels[held], predictions[held], weights[held] if has_weights else None
            )
            if expected is not None:
                assert metric.get() == pytest.approx(expected, abs=1e-10), i
                compared += 1
    assert compared > 15


@named
def test_a_sum_of_metrics_hands_the_weights_on(adapter: Any) -> None:
    together, alone = adapter(40) + rs.river.RollingKappa(40), adapter(40)
    assert together.works_with_weights
    for labels, predictions, weights in list(rivers_cases(alone, 30))[:1]:
        for label, prediction, weight in zip(labels, predictions, weights, strict=True):
            together.update(label, prediction, weight)
            alone.update(label, prediction, weight)
        assert together[0].get() == alone.get()
        for label, prediction, weight in zip(labels, predictions, weights, strict=True):
            together.revert(label, prediction, weight)
    assert [each.reason for each in together] == ["no events"] * 2
    with pytest.raises(ValueError, match="not compatible"):
        adapter() + metrics.MAE()


@pytest.mark.slow
def test_plain_python_says_the_same() -> None:
    if os.environ.get("NUMBA_DISABLE_JIT"):
        pytest.skip("numba is switched off by NUMBA_DISABLE_JIT already")
    claims_hold([__file__], {"NUMBA_DISABLE_JIT": "1"}, "evaluator_of_weights and 7 or whatever_came")
