"""ModelEvaluator: every measure equals its oracle at every prefix, however the stream was cut."""

from __future__ import annotations

import csv
import math
import os
import random
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rocsteady as rs
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.measures.at_row import minimum_loss
from rocsteady.core.measures.delong import auc_interval, rank_sums
from rocsteady.core.measures.polynomial_auc import PolynomialAuc
from rocsteady.core.measures.scan import EXACT_EVENTS
from rocsteady.core.rows.columns import reasons_by_measure
from rocsteady.core.rows.measure_table import EVIDENCE_MEASURES, MEASURE_TABLE, MEASURES
from rocsteady.core.rows.reasons import EMPTY_MARGIN, NO_NEGATIVES, ONE_CLASS
from rocsteady.core.rows.rows import Rows
from rocsteady.core.settings.classes import class_text
from rocsteady.core.settings.costs import Cost
from sklearn import datasets, metrics
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from tests.support.invariants.helpers_called import called
from tests.support.oracles.measures import (
    NaiveEvaluator,
    beta_density,
    cost_threshold,
    delong,
    differences,
    h_by_integration,
    majority_before,
    pav,
    severity_density,
    tpr_at_fpr,
)
from tests.support.streams.times import moments
from tests.support.thorough import at_length, examples, some

WINDOWS = (1, 2, 3, 5, 10, None)
Stream = tuple[list[int], list[float]]


def window_of(k: int | None) -> rs.LastEvents | rs.AllEvents:
    return rs.AllEvents() if k is None else rs.LastEvents(k)


def cuts(n: int, rng: random.Random, most: int = 9) -> list[int]:
    """Where a stream of n events is cut into calls: borders from 0 to n, empty calls included."""
    borders = [0]
    while borders[-1] < n:
        borders.append(min(n, borders[-1] + rng.randint(0, most)))
    return borders


def streams() -> dict[str, Stream]:
    rng = random.Random(7)

    def labels(n: int, share: float = 0.5) -> list[int]:
        return [int(rng.random() < share) for _ in range(n)]

    def informed(truth: Sequence[int]) -> list[float]:
        return [min(1.0, max(0.0, rng.gauss(0.4 + 0.2 * y, 0.25))) for y in truth]

    even, rare, short = labels(75), labels(75, 0.15), labels(40)
    some = labels(36)
    return {
        "random": (even, informed(even)),
        "rare positives": (rare, informed(rare)),
        "tied": (short, [rng.choice((0.2, 0.5, 0.8)) for _ in short]),
        "sorted up": (some, [i / 36 for i in range(36)]),
        "sorted down": (some, [1 - i / 36 for i in range(36)]),
        "constant": (some, [0.5] * 36),
        "all positive": ([1] * 20, [rng.random() for _ in range(20)]),
        "all negative": ([0] * 20, [rng.random() for _ in range(20)]),
        "one late positive": ([0] * 19 + [1] + [0] * 8, [rng.random() for _ in range(28)]),
        "perfect": (some, [y * 0.5 + rng.random() / 2.1 for y in some]),
        "wrong way round": (some, [(1 - y) * 0.5 + rng.random() / 2.1 for y in some]),
        "extremes in turn": (some, [float(i % 2) for i in range(36)]),
        "signed zeros": (some, [rng.choice((-0.0, 0.0, 1.0)) for _ in some]),
        "huge": (some, [rng.choice((-1e300, -1.0, 0.5, 1e300)) for _ in some]),
        "denormal": (some, [rng.choice((-5e-324, 0.0, 5e-324, 1e-310, 2.0)) for _ in some]),
        "far from zero": (some, [1e9 + rng.randrange(6) * 1e-6 for _ in some]),
    }


STREAMS = streams()
PROBABILITIES = STREAMS.keys() - {"huge", "denormal", "far from zero"}


def settings_of(name: str, k: int | None, every: int = 1) -> dict[str, Any]:
    return {
        "window": window_of(k),
        "every": rs.EveryEvents(every),
        "measures": "all",
        "probabilities": name in PROBABILITIES,
        "at_fpr": 0.3,
    }


def naive_of(name: str, k: int | None) -> NaiveEvaluator:
    naive = NaiveEvaluator(window=k, probabilities=name in PROBABILITIES, at_fpr=0.3)
    naive.extend(*STREAMS[name])
    return naive


@pytest.mark.parametrize(
    ("k", "name"), [*some(product(WINDOWS[:4], STREAMS)), *some(product([*WINDOWS[4:], 60], STREAMS))]
)
@pytest.mark.at_length
def test_every_measure_equals_its_oracle_at_every_prefix(name: str, k: int | None) -> None:
    labels, scores = STREAMS[name]
    if k == 60 and len(labels) < 60:
        k = len(labels) - 1  # the one border that the other windows do not touch
    naive = naive_of(name, k)
    ev = rs.ModelEvaluator(**settings_of(name, k), model="m", slice="s")
    rows = list(ev.update(labels, scores))
    assert [row.seq for row in rows] == list(range(1, len(labels) + 1))
    assert [row.row for row in rows] == list(range(len(labels)))
    for row in rows[:: at_length(1, -2)]:  # the last one in any case
        assert differences(row, naive.row(row.seq)) == [], row.seq
    assert {(row.model, row.slice, row.config) for row in rows} == {("m", "s", ev.settings.config_hash())}
    assert list(ev.finish()) == []


@pytest.mark.slow
@pytest.mark.parametrize(("every", "name"), some(product([1, 2, 7], ["random", "tied", "signed zeros"])))
def test_rows_do_not_depend_on_how_a_stream_is_cut(name: str, every: int) -> None:
    labels, scores = STREAMS[name]
    times = [(i * 37 % 50) * 10**6 for i in range(len(labels))]
    rng = random.Random(every)
    for k in (*WINDOWS, 60):
        naive = naive_of(name, k)
        naive.times = list(times)
        choices = {**settings_of(name, k, every), "curves": rs.EveryEvents(rng.randint(1, 9))}
        at_once = rs.ModelEvaluator(**choices)
        parts = [at_once.update(labels, scores, times=moments(times)), at_once.finish()]
        rows = [row for part in parts for row in part]
        curves = [curve for part in parts for curve in part.curves]
        due = [*range(every, len(labels) + 1, every)]
        assert [row.seq for row in rows] == [*due, *([len(labels)] if due[-1] != len(labels) else [])]
        assert [row.row for row in rows] == list(range(len(rows)))
        for row in rows:
            assert differences(row, naive.row(row.seq)) == []
        for _ in range(3):
            ev = rs.ModelEvaluator(**choices)
            cut: list[rs.MeasureRow] = []
            drawn: list[rs.WindowCurve] = []
            for a, b in pairwise(cuts(len(labels), rng)):
                part = ev.update(labels[a:b], scores[a:b], times=moments(times[a:b]))
                cut += part
                drawn += part.curves
                assert ev.seq == b
                assert len(ev) == min(b, k or b)
                if rng.random() < 0.3:
                    ev = rs.ModelEvaluator.from_bytes(ev.to_bytes(), ev.settings)
                if b and rng.random() < 0.2:
                    assert differences(ev.measures(), naive.row(b)) == []
            part = ev.finish()
            assert [*cut, *part] == rows
            assert [*drawn, *part.curves] == curves


def test_a_ring_that_wraps_in_large_runs_holds_the_last_events() -> None:
    rng = np.random.default_rng(3)
    labels, scores = rng.integers(0, 2, 1500), rng.integers(0, 30, 1500) / 30
    for k in (1, 63, 64, 65, 100, 300):
        ev = rs.ModelEvaluator(window=rs.LastEvents(k), every=rs.EveryEvents(97))
        borders = [0, 30, 95, 96, 97, 98, 400, 401, 900, 900, 1499, 1500]
        rows = [row for a, b in pairwise(borders) for row in ev.update(labels[a:b], scores[a:b])]
        assert [row.seq for row in rows] == list(range(97, 1500, 97))
        for row in [*rows, *ev.finish()]:
            held = slice(max(0, row.seq - k), row.seq)
            once = rs.ModelEvaluator(window=rs.AllEvents(), every=rs.EveryEvents(9999))
            once.update(labels[held], scores[held])
            expected = once.measures()._asdict()
            for name in ("kappa_m", "kappa_per", "reason"):  # know the events before the window
                expected.pop(name)
            assert differences(row, expected, 0.0) == []


events = st.tuples(
    st.integers(0, 1),
    st.one_of(st.sampled_from((0.0, -0.0, 0.5, 1.0)), st.floats(0, 1, width=32)),
)


@settings(max_examples=examples(40))
@given(
    st.lists(events, min_size=1, max_size=14),
    st.sampled_from((1, 2, 4, None)),
    st.integers(1, 4),
    st.integers(0, 99),
)
def test_any_stream_gives_the_oracles_rows(
    pairs: list[tuple[int, float]], k: int | None, every: int, seed: int
) -> None:
    rng = random.Random(seed)
    labels, scores = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    ev = rs.ModelEvaluator(
        window=window_of(k), every=rs.EveryEvents(every), measures="all", probabilities=True, at_fpr=0.25
    )
    naive = NaiveEvaluator(window=k, probabilities=True, at_fpr=0.25)
    naive.extend(labels, scores)
    rows: list[rs.MeasureRow] = []
    for a, b in pairwise(cuts(len(labels), rng, 5)):
        rows += ev.update(labels[a:b], scores[a:b])
        if rng.random() < 0.3:
            ev = rs.ModelEvaluator.from_bytes(ev.to_bytes())
    rows += ev.finish()
    seqs = [*range(every, len(pairs) + 1, every)]
    assert [row.seq for row in rows] == [*seqs, *([len(pairs)] if len(pairs) % every else [])]
    for row in rows:
        assert differences(row, naive.row(row.seq)) == []


# ---- the settings that change values


HALF_RANKED = ([0, 0, 1, 0, 1, 0, 1, 1, 0, 1, 0, 1], [i / 12 for i in range(12)])


@pytest.mark.parametrize(
    ("cost", "density"),
    [
        (rs.BetaCost(2, 2), beta_density(2, 2)),
        (rs.BetaCost(1, 1), beta_density(1, 1)),
        (rs.BetaCost(3, 1.5), beta_density(3, 1.5)),
        (rs.BetaCost(12, 30), beta_density(12, 30)),
        (rs.UniformCost(), beta_density(1, 1)),
        (rs.SeverityCost(), severity_density(None)),
        (rs.SeverityCost(0.1), severity_density(0.1)),
        (rs.SeverityCost(1), beta_density(2, 2)),
        (rs.SeverityCost(4), severity_density(4)),
        (rs.SeverityCost("balanced"), severity_density("balanced")),
    ],
    ids=lambda value: "" if callable(value) else str(value),
)
@pytest.mark.parametrize("priors", ["window", 0.3, 0.95])
def test_h_is_the_integral_over_its_cost_density(cost: Cost, density: Any, priors: Any) -> None:
    given = None if priors == "window" else priors
    for name in ("tied", "rare positives", "wrong way round", "signed zeros"):
        labels, scores = STREAMS[name]
        ev = rs.ModelEvaluator(
            window=rs.LastEvents(25), every=rs.EveryEvents(9), cost=cost, priors=priors, measures="h"
        )
        for row in ev.update(labels, scores):
            held = slice(max(0, row.seq - 25), row.seq)
            if 0 < sum(labels[held]) < len(labels[held]):
                expected = h_by_integration(labels[held], scores[held], density, given)
                assert row.h == pytest.approx(expected, abs=1e-8)
            else:
                assert row.reason == "h: one class in window"


def test_h_of_a_small_window_is_what_a_pencil_says() -> None:
    # The hull has two edges, (2 negatives, 1 positive) and (1, 2). Beta(2, 2): 11/27 each of 15/16 in all.
    for cost, h in ((rs.BetaCost(2, 2), 53 / 405), (rs.UniformCost(), 1 / 9)):
        ev = rs.ModelEvaluator(cost=cost)
        ev.update([0, 1, 0, 1, 0, 1], [1, 1, 1, 2, 2, 2])
        assert ev.measures().h == pytest.approx(h, abs=1e-13)


@pytest.mark.parametrize(
    "cost", [rs.BetaCost(2, 2), rs.UniformCost(), rs.SeverityCost(), rs.BetaCost(5, 1.2)]
)
def test_h_is_1_when_perfect_and_0_when_useless(cost: Cost) -> None:
    for labels, scores, h in (
        ([0, 0, 1], [1, 2, 3], 1.0),
        ([0, 1, 1], [5, 5, 5], 0.0),
        ([1, 0], [1, 2], 0.0),
    ):
        ev = rs.ModelEvaluator(cost=cost)
        ev.update(labels, scores)
        assert ev.measures().h == h


def test_closed_forms_of_the_loss_equal_the_incomplete_beta_function() -> None:
    n, p = np.array([1.0, 5.0, 0.0, 2.0, 1e6]), np.array([3.0, 5.0, 2.0, 0.0, 1.0])
    for a in (1.0, 2.0):
        near = math.nextafter(a, 3)  # the general formula, next door
        np.testing.assert_allclose(minimum_loss(n, p, a, a), minimum_loss(n, p, near, a), rtol=1e-9)


def test_flipped_h_is_that_of_the_scores_turned_round() -> None:
    labels, scores = STREAMS["wrong way round"]
    ev = rs.ModelEvaluator(window=rs.LastEvents(12), every=rs.EveryEvents(1), flip_if_below_half=True)
    plain = rs.ModelEvaluator(window=rs.LastEvents(12), every=rs.EveryEvents(1))
    turned = rs.ModelEvaluator(window=rs.LastEvents(12), every=rs.EveryEvents(1))
    rows, plain_rows = ev.update(labels, scores), plain.update(labels, scores)
    turned_rows = turned.update(labels, [-score for score in scores])
    below = 0
    for row, straight, turned_row in zip(rows, plain_rows, turned_rows, strict=True):
        is_below = row.auc is not None and row.auc < 0.5
        below += is_below
        assert row.h == (turned_row.h if is_below else straight.h)
        assert row.auc == straight.auc
    assert below > 20


@pytest.mark.parametrize("n", [7, 10, 49, 100])
def test_tpr_at_every_attainable_fpr_is_the_upper_end_of_the_step(n: int) -> None:
    labels = [1, 1, *([0, 1] * n), 1]
    scores = [float(len(labels) - i) for i in range(len(labels))]
    for share in range(n + 1):
        fpr = share / n
        ev = rs.ModelEvaluator(at_fpr=fpr)
        ev.update(labels, scores)
        assert ev.measures().tpr_at_fpr == pytest.approx(tpr_at_fpr(labels, scores, fpr), abs=1e-12), fpr


@pytest.mark.parametrize("cost", [0.01, 0.2, 0.5, 0.75, 0.99])
def test_cost_threshold_reads_the_isotonic_calibration(cost: float) -> None:
    for name in ("tied", "random", "wrong way round"):
        labels, scores = STREAMS[name]
        ev = rs.ModelEvaluator(false_positive_cost=cost)
        ev.update(labels, scores)
        assert ev.measures().cost_threshold == cost_threshold(labels, scores, cost)


def test_the_oracle_of_isotonic_calibration_is_scikit_learns() -> None:
    for name in ("tied", "random", "rare positives"):
        labels, scores = STREAMS[name]
        fitted = IsotonicRegression().fit(scores, labels).predict(scores)
        values = pav(labels, scores)
        np.testing.assert_allclose([values[score] for score in scores], fitted, atol=1e-12)


def test_a_higher_confidence_widens_the_interval() -> None:
    labels, scores = STREAMS["random"]
    for confidence in (0.5, 0.9, 0.999):
        ev = rs.ModelEvaluator(confidence=confidence)
        ev.update(labels, scores)
        low, high = delong(labels, scores, confidence)
        assert ev.measures().auc_low == pytest.approx(low, abs=1e-13)
        assert ev.measures().auc_high == pytest.approx(high, abs=1e-13)


def test_only_what_is_asked_for_is_said() -> None:
    labels, scores = STREAMS["random"]
    everything = rs.ModelEvaluator(measures="all", probabilities=True)
    everything.update(labels, scores)
    for name in (name for name in MEASURES if name not in EVIDENCE_MEASURES):
        ev = rs.ModelEvaluator(measures=name, probabilities=True)
        ev.update(labels, scores)
        said = ev.measures()._asdict()
        assert said[name] == getattr(everything.measures(), name)
        companions = {measure.name for measure in MEASURE_TABLE if measure.beside == name}
        assert {other for other in MEASURES if said[other] is not None} == {name} | companions
        lone = rs.ModelEvaluator(measures=name, probabilities=True)
        lone.update([1], [0.5])
        reason = lone.measures().reason
        assert {*reasons_by_measure(reason)} <= {name} | companions


def test_keywords_are_the_fields_of_settings() -> None:
    """Without measures=, scores that are probabilities bring the measures of probabilities."""
    assert rs.ModelEvaluator(probabilities=True).settings == rs.EvaluatorSettings(probabilities=True)
    ev = rs.ModelEvaluator(window=None, every=None, probabilities=True)
    ev.update([1, 0], [0.75, 0.25])
    assert ev.measures().brier == 0.0625


# ---- null and its reasons


def said(labels: Sequence[Any], scores: Sequence[float], **choices: Any) -> rs.Measures:
    predicted = choices.pop("predicted", None)
    ev = rs.ModelEvaluator(**choices)
    ev.update(labels, scores, predicted=predicted)
    return ev.measures()


def test_one_class_leaves_ranking_null() -> None:
    measures = said([1, 1], [0.2, 0.7], measures="all", probabilities=True)
    assert measures.auc is measures.h is measures.ks is measures.aum is measures.auc_low is None
    assert measures.brier is not None
    assert measures.prevalence == 1
    null = {name for name in MEASURES if getattr(measures, name) is None and name not in EVIDENCE_MEASURES}
    assert {*reasons_by_measure(measures.reason)} == null
    assert null == {
        measure.name
        for measure in MEASURE_TABLE
        if {ONE_CLASS, NO_NEGATIVES, EMPTY_MARGIN} & {*measure.reasons}
    }


def test_a_perfect_ranking_has_a_degenerate_interval() -> None:
    measures = said([0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9])
    assert (measures.auc, measures.auc_low, measures.auc_high) == (1.0, 1.0, 1.0)
    assert measures.reason == "auc_low: degenerate interval"
    assert said([1, 1, 0, 0], [0.1, 0.2, 0.8, 0.9]).reason == "auc_low: degenerate interval"
    assert "auc_low: degenerate interval" in str(said([1, 0] * 3, [0.7] * 6).reason)


def test_an_interval_needs_two_of_each_class() -> None:
    measures = said([0, 0, 1], [0.1, 0.9, 0.8])
    assert (measures.auc, measures.auc_low, measures.auc_high) == (0.5, None, None)
    assert measures.reason == "auc_low, auc_high: fewer than two positives or negatives in window"


def test_empty_denominators_are_null_with_their_reason() -> None:
    assert said(
        [0, 0], [0.1, 0.2], measures=("precision", "recall", "f1", "kappa", "kappa_m", "kappa_per")
    ) == (
        rs.Measures(2, 2.0, 0.0, 2.0, 0.0)._replace(
            reason="precision: no predicted positives in window; recall: no positives in window; "
            "f1: no positives and no predicted positives in window; kappa: chance agreement is certain; "
            "kappa_m: the majority classifier makes no error; "
            "kappa_per: the persistent classifier makes no error"
        )
    )
    assert said([1, 1], [0.9, 0.9], measures="specificity").reason == "specificity: no negatives in window"
    assert said([1, 0], [0.9, 0.9], measures="mcc").reason == (
        "mcc: one class in the labels or in the predictions"
    )
    assert said([1, 0], [0.1, 0.9], measures="f1").f1 == 0.0


def test_nothing_is_said_of_an_empty_window() -> None:
    ev = rs.ModelEvaluator()
    assert ev.measures() == rs.Measures(0, 0.0, 0.0, 0.0)
    assert len(ev.update([], [])) == len(ev.finish()) == 0
    assert ev.seq == 0


def test_every_null_that_was_asked_for_has_a_reason() -> None:
    for name, (labels, scores) in STREAMS.items():
        for row in rs.ModelEvaluator(**settings_of(name, 3)).update(labels, scores):
            reasons = {*reasons_by_measure(row.reason)}
            asked = rs.EvaluatorSettings(**settings_of(name, 3)).measures or ()
            assert {name for name in asked if getattr(row, name) is None} == reasons - {"auc_low"} | {
                name for name in ("auc_low",) if row.auc_low is None
            }


def test_the_last_row_comes_once() -> None:
    ev = rs.ModelEvaluator(every=rs.EveryEvents(2))
    assert [row.seq for row in ev.update([0, 1, 0], [1, 2, 3])] == [2]
    assert [(row.row, row.seq) for row in ev.finish()] == [(1, 3)]
    assert list(ev.finish()) == []
    assert [(row.row, row.seq) for row in ev.update([1], [4])] == [(2, 4)]
    assert list(ev.finish()) == []
    ev.update([1], [4])
    reloaded = rs.ModelEvaluator.from_bytes(ev.to_bytes())
    assert [row.seq for row in reloaded.finish()] == [5]
    assert list(rs.ModelEvaluator.from_bytes(reloaded.to_bytes()).finish()) == []


def test_measures_change_nothing() -> None:
    labels, scores = STREAMS["random"]
    asked, left = (rs.ModelEvaluator(window=rs.LastEvents(10), every=rs.EveryEvents(4)) for _ in range(2))
    for label, score in zip(labels, scores, strict=True):
        assert list(asked.update([label], [score])) == list(left.update([label], [score]))
        asked.measures()
    assert asked.to_bytes() == left.to_bytes()


# ---- published values


def test_table_5_of_bifet() -> None:
    # 70 positives, 30 negatives, in the order in which the majority classifier is right 70 times
    labels = [0, *[1] * 70, *[0] * 29]
    scores = [0, *[1] * 40, *[0] * 30, *[0] * 24, *[1] * 5]
    measures = said(labels, scores)
    assert (measures.tp, measures.fn, measures.fp, measures.tn) == (40, 30, 5, 25)
    rounded = {
        "accuracy": 0.65, "kappa": 0.3269, "mcc": 0.3728, "balanced_accuracy": 0.7024, "g_mean": 0.6901,
        "harmonic_mean": 0.6780, "kappa_m": -0.1667, "cmd": 850,
    }  # fmt: skip
    assert {name: round(getattr(measures, name), 4) for name in rounded} == rounded


PIMA = Path(os.environ.get("ROCSTEADY_DATA", "")) / "ref_hmeasure_vignette_pima_scores.csv"
PUBLISHED = {  # classifier: H (default severity), H (severity 1), KS, AUC
    "LDA": (0.4802968, 0.4401067, 0.6335723, 0.865232579518294),
    "kNN9": (0.3707186, 0.3463211, 0.4920941, 0.828599007170436),
}


@pytest.mark.skipif(
    "ROCSTEADY_DATA" not in os.environ,
    reason="set ROCSTEADY_DATA to the folder of ref_hmeasure_vignette_pima_scores.csv",
)
@pytest.mark.parametrize("classifier", PUBLISHED)
def test_the_published_values_of_the_pima_data(classifier: str) -> None:
    with PIMA.open(newline="") as lines:
        records = list(csv.DictReader(lines))
    labels = [int(record["label"]) for record in records]
    scores = [float(record[classifier]) for record in records]
    by_default, at_one, ks, auc = PUBLISHED[classifier]
    measures = said(labels, scores, window=rs.AllEvents(), cost=rs.SeverityCost())
    assert measures.h == pytest.approx(by_default, abs=6e-8)
    assert measures.ks == pytest.approx(ks, abs=6e-8)
    assert measures.auc == pytest.approx(auc, abs=1e-14)
    assert said(labels, scores, cost=rs.SeverityCost(1)).h == pytest.approx(at_one, abs=6e-8)


def test_auc_and_average_precision_are_scikit_learns() -> None:
    features, labels = datasets.load_breast_cancer(return_X_y=True)
    model = LogisticRegression().fit((features - features.mean(0)) / features.std(0), labels)
    # few digits make ties; decision values are no probabilities
    exact = model.decision_function((features - features.mean(0)) / features.std(0))
    for scores in (exact, exact.round(0)):
        ev = rs.ModelEvaluator(window=rs.LastEvents(200), every=rs.EveryEvents(50), measures="all")
        for row in ev.update(labels, scores):
            held = slice(max(0, row.seq - 200), row.seq)
            assert row.auc == pytest.approx(metrics.roc_auc_score(labels[held], scores[held]), abs=1e-12)
            precision = metrics.average_precision_score(labels[held], scores[held])
            assert row.average_precision == pytest.approx(precision, abs=1e-12)
            low, high = delong(labels[held].tolist(), scores[held].tolist(), 0.95)
            assert (row.auc_low, row.auc_high) == pytest.approx((low, high), abs=1e-12)


def test_partial_aucs_are_scikit_learns() -> None:
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 2, 300)
    for scores in (rng.normal(size=300) + labels, (rng.normal(size=300) + labels).round(0), -labels * 1.0):

        def raw(fpr: float, scores: Any = scores) -> float:
            """scikit-learn's area from 0, taken back from McClish's scale."""
            if fpr in (0.0, 1.0):
                return fpr and float(metrics.roc_auc_score(labels, scores))
            standard = float(metrics.roc_auc_score(labels, scores, max_fpr=fpr))
            return (2 * standard - 1) * (fpr - fpr**2 / 2) + fpr**2 / 2

        for low, high in ((0.0, 0.1), (0.0, 0.013), (0.0, 0.5), (0.0, 1.0), (0.1, 0.1001), (0.3, 1.0)):
            found = said(labels, scores, measures="all", partial_fpr=(low, high))
            assert found.partial_auc == pytest.approx(raw(high) - raw(low), abs=1e-13)
            if low == 0.0:
                standard = metrics.roc_auc_score(labels, scores, max_fpr=high)
                assert found.partial_auc_mcclish == pytest.approx(standard, abs=1e-12)
        assert found.auc == said(labels, scores, measures="all", partial_fpr=(0, 1)).partial_auc


@pytest.mark.parametrize("window", [rs.LastEvents(80), rs.AllEvents(), rs.Fading(30)], ids=str)
def test_the_auc_by_a_polynomial_is_within_its_bound_and_that_of_its_events(window: Any) -> None:
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 2, 200)
    scores = np.round(rng.normal(size=200) + labels, 1)
    ev = rs.ModelEvaluator(window=window, every=rs.EveryEvents(1), measures=("auc", "polynomial_auc"))
    for seq, row in enumerate(ev.update(labels, scores), 1):
        weights = 2.0 ** (np.arange(1 - seq, 1) / 30) if isinstance(window, rs.Fading) else np.ones(seq)
        held = slice(max(0, seq - 80) if isinstance(window, rs.LastEvents) else 0, seq)
        if row.auc is None:
            assert row.reason.endswith("polynomial_auc_bound: one class in window")
        else:
            auc = PolynomialAuc(30, (scores[held].min(), scores[held].max()))
            auc.add(labels[held], scores[held], weights[held])
            found = row.polynomial_auc, row.polynomial_auc_bound
            assert found == pytest.approx(auc.estimate()[:2], abs=1e-10)
            assert abs(row.auc - row.polynomial_auc) <= row.polynomial_auc_bound
    assert (
        rs.EvaluatorSettings(measures="polynomial_auc").config_hash() == rs.EvaluatorSettings().config_hash()
    )


def test_constant_scores_have_no_auc_by_a_polynomial() -> None:
    for choices in ({}, {"window": rs.Fading(5)}):
        found = said([0, 1, 1], [0.5] * 3, measures=("auc", "polynomial_auc"), **choices)
        assert (found.auc, found.polynomial_auc, found.polynomial_auc_bound) == (0.5, None, None)
        words = "polynomial_auc, polynomial_auc_bound: constant scores in window"
        assert found.reason.endswith(words)


def test_the_calibration_error_is_rounded_from_the_exact_sums_of_its_blocks() -> None:
    rng = np.random.default_rng(9)
    scores = rng.random(500) ** 3
    labels = (rng.random(500) < scores).astype(int)
    values = pav(labels.tolist(), scores.tolist())
    blocks: dict[float, Fraction] = {}
    for label, score in zip(labels.tolist(), scores.tolist(), strict=True):
        value = values[score]
        blocks[value] = blocks.get(value, Fraction(0)) + Fraction(score) - label
    error = sum((abs(Fraction(float(block))) for block in blocks.values()), Fraction(0))
    found = said(labels, scores, probabilities=True, measures="calibration_error")
    assert found.calibration_error == float(error) / 500


# ---- the majority and the persistent classifier


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 2, 3, 5, 10, None])
@pytest.mark.parametrize("shares", [(1, 1), (5, 1), (1, 1, 1), (6, 3, 1, 1)])
def test_kappa_m_of_a_sliding_majority_classifier_is_0(k: int | None, shares: tuple[int, ...]) -> None:
    rng = random.Random(len(shares))
    labels = rng.choices("abcd"[: len(shares)], shares, k=300)
    predicted = [
        majority_before(labels[0 if k is None else max(0, i - k) : i]) or "none yet" for i in range(300)
    ]
    ev = rs.ModelEvaluator(window=window_of(k), every=rs.EveryEvents(1), measures="kappa_m")
    rows = ev.update(labels, [0] * 300, predicted=predicted)
    assert {row.kappa_m for row in rows} <= {0.0, None}
    assert all(row.kappa_m is not None or "majority" in str(row.reason) for row in rows)
    if len(shares) == 2:  # and as scores, where the negative class stands before any label
        binary, votes = [int(label == "b") for label in labels], [float(vote == "b") for vote in predicted]
        ev = rs.ModelEvaluator(window=window_of(k), every=rs.EveryEvents(1))
        assert {row.kappa_m for row in ev.update(binary, votes)} <= {0.0, None}


def test_kappa_per_of_a_persistent_classifier_is_0() -> None:
    labels = random.Random(2).choices((0, 1), (2, 1), k=200)
    for k in (1, 4, 50, None):
        ev = rs.ModelEvaluator(window=window_of(k), every=rs.EveryEvents(3))
        assert {row.kappa_per for row in ev.update(labels, [0, *labels[:-1]])} <= {0.0, None}


# ---- classes


def multiclass_stream(n: int = 60) -> tuple[list[str], list[float], list[str]]:
    rng = random.Random(11)
    labels = rng.choices(["up", "down", "flat", "gone"], (4, 3, 2, 1), k=n)
    predicted = [rng.choice((label, label, "up", "down", "flat", "never a label")) for label in labels]
    return labels, [rng.randrange(8) / 8 for _ in labels], predicted


@pytest.mark.parametrize(
    ("k", "positive"), some(product([1, 2, 5, 20, None], [None, "up", "gone", "unheard of"]))
)
def test_classes_give_the_multiclass_kappa_family(positive: str | None, k: int | None) -> None:
    labels, scores, predicted = multiclass_stream()
    naive = NaiveEvaluator(window=k, positive=positive)
    naive.extend(labels, scores, predicted=predicted)
    ev = rs.ModelEvaluator(window=window_of(k), every=rs.EveryEvents(1), measures="all", positive=positive)
    rows = ev.update(labels, scores, predicted=predicted)
    assert len(rows) == 60
    for row in rows:
        assert differences(row, naive.row(row.seq)) == [], row.seq


@pytest.mark.slow
@pytest.mark.parametrize("positive", [None, "up"])
def test_rows_of_classes_do_not_depend_on_how_the_stream_is_cut(positive: str | None) -> None:
    labels, scores, predicted = multiclass_stream(120)
    rng = random.Random(3)
    for k in (2, 7, 40, None):
        choices: dict[str, Any] = {"window": window_of(k), "every": rs.EveryEvents(1), "positive": positive}
        rows = list(rs.ModelEvaluator(**choices).update(labels, scores, predicted=predicted))
        for _ in range(4):
            ev = rs.ModelEvaluator(**choices)
            cut: list[rs.MeasureRow] = []
            for a, b in pairwise(cuts(len(labels), rng)):
                cut += ev.update(labels[a:b], scores[a:b], predicted=predicted[a:b])
                if rng.random() < 0.3:
                    ev = rs.ModelEvaluator.from_bytes(ev.to_bytes())
            assert cut == rows


def test_a_positive_class_without_predictions_decides_by_threshold() -> None:
    labels, scores = ["ill", "well", "ill", "?"], [0.9, 0.2, 0.4, 0.6]
    measures = said(labels, scores, positive="ill")
    assert differences(measures, said([1, 0, 1, 0], scores)._asdict(), 0.0) == []
    assert (measures.tp, measures.fp, measures.fn, measures.tn) == (1, 1, 1, 1)


@pytest.mark.parametrize("positive", ["1", "1.0", 1, 1.0])
@pytest.mark.parametrize("labels", [[1, 2, 1], [1.0, 2.0, 1.0], ["1", "2", "1.0"]])
def test_classes_that_are_numbers_compare_as_numbers(positive: Any, labels: list[Any]) -> None:
    assert said(labels, [0.9, 0.1, 0.8], positive=positive).auc == 1.0


def test_class_text_tells_numbers_by_value_and_texts_by_letter() -> None:
    assert class_text(np.int64(3)) == class_text(3.0) == class_text("3.00") == "3"
    assert class_text(np.bool_(True)) == class_text(True) == "1"
    assert class_text("nan") == "nan"
    assert class_text("TRUE") == "1"
    assert class_text(2**53 + 1) == class_text(f"{2**53 + 1}") == "9007199254740993"
    assert class_text("+-1") == "+-1"
    assert class_text("1_000") == "1_000"
    assert class_text("-0") == class_text(0) == "0"
    assert class_text("Ünï") == "Ünï"
    assert class_text(0.1) == "0.1"


def test_kinds_of_events_do_not_mix_in_one_evaluator() -> None:
    ev = rs.ModelEvaluator()
    ev.update([0, 1], [0.1, 0.9])
    before = ev.to_bytes()
    with pytest.raises(rs.InputError, match="with predicted classes follow events without them"):
        ev.update(["a"], [0.5], predicted=["a"])
    assert ev.to_bytes() == before
    other = rs.ModelEvaluator()
    other.update(["a"], [0.5], predicted=["a"])
    with pytest.raises(rs.InputError, match="without predicted classes follow events with them"):
        other.update([1], [0.5])


# ---- what cannot be used is refused, and changes nothing


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda ev: ev.update([0, 1], [0.5, math.nan]), r"scores\[1\] is nan"),
        (lambda ev: ev.update([0, 1, 1], [0.5, -math.inf, math.nan]), r"scores\[1\] is -inf"),
        (lambda ev: ev.update([0, 1], [0.5]), "labels and scores differ in length"),
        (lambda ev: ev.update([0], [0.5, 0.1]), "labels and scores differ in length"),
        (lambda ev: ev.update([0], [0.5], times=[1, 2]), "times and scores differ in length"),
        (lambda ev: ev.update([0], [0.5], predicted=[1, 2]), "predicted and scores differ in length"),
        (lambda ev: ev.update([[0, 1]], [0.5, 0.5]), "labels and scores differ in length"),
        (lambda ev: ev.update([0, 1], [[0.5, 0.5]]), "2 dimensions"),
        (lambda ev: ev.update([0, 2], [0.5, 0.5]), r"labels\[1\] is .*2.*: a label is 1, 0, -1"),
        (lambda ev: ev.update(["yes", "no"], [0.5, 0.5]), r"labels\[0\] is .*yes.*positive="),
        (lambda ev: ev.update([1, math.nan], [0.5, 0.5]), r"labels\[1\] is .*nan"),
        (lambda ev: ev.update([None, 1], [0.5, 0.5]), r"labels\[0\] is None"),
        (lambda ev: ev.update([1], ["high"]), "score"),
        (lambda ev: ev.update([1], [0.5], weights=[0]), r"weights\[0\] is 0.0: a weight is a finite"),
        (lambda ev: ev.update([1], [0.5], weights=[np.nan]), r"weights\[0\] is nan"),
        (lambda ev: ev.update([1], [0.5], weights=[1, 2]), "weights and scores differ in length"),
        (lambda ev: ev.update([1], [0.5], weights=["much"]), "weights are not numbers"),
        (lambda ev: ev.update([1], [0.5], times=["now"]), r"times\[0\] is .now., which is no time: give"),
        (lambda ev: ev.update([1], [0.5], times=[True]), "times are of type bool"),
        (lambda ev: ev.update([1], [0.5], times=[math.nan]), r"times\[0\] is nan"),
        (lambda ev: ev.update([1], [0.5], times=[2**62]), r"times\[0\] is 4611686018427387904: in s that"),
        (lambda ev: ev.update([1], [0.5], times=[1704067200000]), r'9999; give time_unit="ms"$'),
        (lambda ev: ev.update([1], [0.5], times=[20240102030405]), r'to_datetime\(times, format="%Y%m%d%H%M'),
        (lambda ev: ev.update([1], [0.5], times=np.array(["NaT"], "M8[s]")), "NaT"),
        (lambda ev: ev.update([1], np.array(["NaT"], "M8[s]")), r"scores are times \(datetime64"),
        (lambda ev: ev.update([1], [0.5], weights=np.array([5], "m8[s]")), "weights are times"),
        (lambda ev: ev.update([1, 0], np.ma.array([0.5, 0.1], mask=[0, 1])), r"scores\[1\] is masked"),
        (lambda ev: ev.update(np.ma.array([1, 0], mask=[1, 0]), [0.5, 0.1]), r"labels\[0\] is masked"),
        (lambda ev: ev.update([1], [0.5], weights=np.ma.array([1.0], mask=True)), r"weights\[0\] is masked"),
        (lambda ev: ev.update(np.array([True, None], object), [0.5, 0.1]), r"labels\[1\] is None"),
        (lambda ev: ev.update(np.array([True, "x"], object), [0.5, 0.1]), r"labels\[1\] is 'x'"),
    ],
)  # fmt: skip
def test_bad_input_is_named_and_changes_nothing(
    call: Callable[[rs.ModelEvaluator], Rows], message: str
) -> None:
    ev, clean = (rs.ModelEvaluator(window=rs.LastEvents(3), every=rs.EveryEvents(2)) for _ in range(2))
    for one in (ev, clean):
        one.update([0, 1, 1], [0.3, 0.2, 0.9])
    with pytest.raises(rs.InputError, match=message):
        call(ev)
    assert ev.to_bytes() == clean.to_bytes()
    assert list(ev.update([0, 1], [0.7, 0.8])) == list(clean.update([0, 1], [0.7, 0.8]))


@pytest.mark.parametrize("more", [{"curves": rs.EveryEvents(2)}, {"every": rs.EverySeconds("1h")}])
def test_a_time_that_cannot_be_placed_is_refused_before_any_event_counts(more: dict[str, Any]) -> None:
    ev, clean = (rs.ModelEvaluator(window=rs.LastDuration("1d"), **more) for _ in range(2))
    times = np.array(["2024-01-01", "2024-01-02", "300000-01-01", "2024-01-03"], "M8[s]")
    with pytest.raises(rs.InputError, match=r"times\[2\] is 300000.* not within the years 1 to 9999"):
        ev.update([0, 1, 1, 0], [0.3, 0.2, 0.9, 0.1], times=times)
    assert ev.to_bytes() == clean.to_bytes()


@pytest.mark.parametrize("missing", [None, math.nan])
def test_a_missing_label_is_never_the_other_class(missing: Any) -> None:
    with pytest.raises(rs.InputError, match=r"labels\[1\]"):
        rs.ModelEvaluator(positive="1").update([1.0, missing], [0.5, 0.6])
    with pytest.raises(rs.InputError, match=r"labels\[1\]"):
        rs.ModelEvaluator().update([1.0, missing], [0.5, 0.6], predicted=[1, 1])
    with pytest.raises(rs.InputError, match=r"predicted\[1\]"):
        rs.ModelEvaluator().update([1, 1], [0.5, 0.6], predicted=[1.0, missing])


def test_probabilities_outside_their_range_are_refused() -> None:
    ev = rs.ModelEvaluator(probabilities=True)
    with pytest.raises(rs.InputError, match="outside"):
        ev.update([1, 0], [0.5, 1.5])
    assert ev.seq == 0
    ev.update([1, 0], [1.0, 0.0])


@pytest.mark.parametrize(
    "labels",
    [[1, -1, 1, -1], [True, False, True, False], [1.0, 0.0, 1.0, -1.0], np.array([1, 0, 1, 0], np.uint8)],
    ids=["minus one", "booleans", "floats", "uint8"],
)
def test_labels_are_positive_or_not(labels: Any) -> None:
    scores = [0.9, 0.1, 0.3, 0.4]
    assert said(labels, scores) == said([1, 0, 1, 0], scores)


def test_minus_zero_is_written_as_zero() -> None:
    for scores in ([-0.0, 0.0, -1.0], [0.0, -0.0, -1.0]):
        measures = said([1, 1, 0], scores, threshold=0.0, measures="all")
        assert str(measures.ks_threshold) == str(measures.cost_threshold) == "0.0"
        assert (measures.auc, measures.tp) == (1.0, 2)


def test_what_the_caller_does_to_its_arrays_later_changes_nothing() -> None:
    labels, scores = np.array([0, 1, 0, 1, 1], np.int8), np.array([0.1, 0.4, 0.5, 0.3, 0.9])
    ev, safe = (rs.ModelEvaluator(window=rs.LastEvents(4), every=rs.EveryEvents(1000)) for _ in range(2))
    safe.update(labels, scores)
    for start in range(5):
        theirs, given = labels[start : start + 1].copy(), scores[start : start + 1].copy()
        ev.apply(given, theirs)
        theirs[:], given[:] = 1 - theirs, -1.0
    assert ev.measures() == safe.measures()


def test_arrays_in_any_layout_are_the_same_events() -> None:
    rng = np.random.default_rng(1)
    labels, scores = rng.integers(0, 2, 90), rng.random(90)
    expected = said(labels[::-3].copy(), scores[::-3].copy(), measures="all")
    assert said(labels[::-3], scores[::-3], measures="all") == expected
    assert said(labels[::-3].tolist(), scores[::-3].astype(">f8"), measures="all") == expected
    scores.flags.writeable = False
    assert said(labels[::-3], scores[::-3], measures="all") == expected


def test_a_long_call_leaves_nothing_but_its_window() -> None:
    ev = rs.ModelEvaluator(window=rs.LastEvents(100), every=rs.EveryEvents(1000))
    ev.update(np.arange(1500) % 2, np.arange(1500.0))
    tracemalloc.start()
    try:
        for _ in range(3):
            ev.update(np.arange(400_000) % 2, np.arange(400_000.0))
        left, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert left < 200_000  # the scores of one call are 3,200,000 bytes


def test_times_are_the_greatest_applied_and_those_at_the_ends_of_the_window() -> None:
    ev = rs.ModelEvaluator(window=rs.LastEvents(2), every=rs.EveryEvents(1), pane=(5, 9))
    times = np.array(["2024-01-01T00:00:03", "2024-01-01T00:00:01", "2024-01-01T00:00:02"], "M8[s]")
    third = int(times[0].astype("M8[us]").astype(np.int64))
    rows = list(ev.update([0, 1, 0], [1, 2, 3], times=moments(times)))
    assert [row.time for row in rows] == [third] * 3
    assert [(row.window_start, row.window_end) for row in rows] == [
        (third, third), (third, third - 2_000_000), (third - 2_000_000, third - 1_000_000),
    ]  # fmt: skip
    assert {(row.pane_start, row.pane_end, row.due, row.drift) for row in rows} == {(5, 9, None, None)}
    (row,) = ev.update([1], [1])  # no time: the greatest stays
    assert (row.time, row.window_start, row.window_end) == (third, third - 1_000_000, None)


def test_times_that_come_late_in_a_stream_count_from_there() -> None:
    ev = rs.ModelEvaluator(window=rs.LastEvents(3), every=rs.EveryEvents(1))
    ev.update([0, 1], [1, 2])
    rows = list(ev.update([0, 1, 0], [1, 2, 3], times=[10, 11, 12], time_unit="us"))
    assert [(row.window_start, row.window_end, row.time) for row in rows] == [
        (None, 10, 10), (None, 11, 11), (10, 12, 12),
    ]  # fmt: skip
    assert rs.ModelEvaluator.from_bytes(ev.to_bytes()).to_bytes() == ev.to_bytes()


# ---- the kernels beyond the windows of a test


def interval_of(negatives: Any, positives: Any) -> tuple[float, ...]:
    measures, reasons = np.full(len(MEASURES), np.nan), np.zeros(len(MEASURES), np.int8)
    n, p = negatives.sum(), positives.sum()
    called(auc_interval)(negatives, positives, n, p, 1.96, measures, reasons)
    return *measures[:3].tolist(), *reasons[:3].tolist()


def entries(rng: np.random.Generator) -> Iterator[tuple[Any, Any]]:
    for size in (2, 3, 10, 40):
        for most in (2, 5, 100):
            negatives, positives = rng.integers(0, most, (2, size))
            if negatives.sum() > 1 and positives.sum() > 1:
                yield negatives.astype(np.int64), positives.astype(np.int64)
    yield np.array([4, 0], np.int64), np.array([0, 3], np.int64)
    yield np.array([0, 4], np.int64), np.array([3, 0], np.int64)


@pytest.mark.slow
def test_rank_sums_in_floats_are_those_in_integers() -> None:
    for negatives, positives in entries(np.random.default_rng(5)):
        exact = interval_of(negatives, positives)
        floating = interval_of(negatives.astype(np.float64), positives.astype(np.float64))
        np.testing.assert_allclose(exact, floating, atol=1e-14)


def test_rank_sums_fit_64_bits_up_to_the_largest_exact_window() -> None:
    worst = EXACT_EVENTS // 3  # positives, all above twice as many negatives
    negatives = np.array([EXACT_EVENTS - worst, 0], np.int64)
    positives = np.array([0, worst], np.int64)
    n, p = EXACT_EVENTS - worst, worst
    assert called(rank_sums)(negatives, positives) == (2 * n * p, 4 * n * n * p, 4 * p * p * n)


def test_one_misranked_pair_among_millions_is_no_degenerate_interval() -> None:
    n = 3000
    scores = np.arange(2.0 * n)
    scores[n - 1 : n + 1] = n, n - 1
    measures = said([0] * n + [1] * n, scores)
    half_width = 1.959963984540054 * math.sqrt(2) / n**2  # two variances of 1 / n^2, over n each
    assert measures.auc == 1 - 1 / n**2
    assert measures.auc_low == pytest.approx(1 - 1 / n**2 - half_width, abs=1e-15)
    assert measures.reason is None


def test_a_large_perfect_window_is_exactly_1() -> None:
    n = EXACT_EVENTS + 5
    negatives, positives = np.ones(n), np.zeros(n)
    negatives[n // 3 :], positives[n // 3 :] = 0, 1
    assert interval_of(negatives, positives)[:3] == (1.0, 1.0, 1.0)
