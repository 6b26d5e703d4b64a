"""Rows of weighted windows: against exact fractions, the unit-weight scan, and scikit-learn."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from rocsteady.core.errors import InputError
from rocsteady.core.evaluator.ranking import SortedRanking
from rocsteady.core.evaluator.weighted.ranking import WeightedRanking
from rocsteady.core.kernels.cache_folder import COMPILED
from rocsteady.core.measures.at_row import mcclish
from rocsteady.core.rows.columns import NUMBER_COLUMNS
from rocsteady.core.rows.measure_table import MEASURES
from rocsteady.core.rows.reasons import DEGENERATE, ONE_CLASS, OUT_OF_RANGE, TOO_FEW
from rocsteady.core.settings.costs import BetaCost, SeverityCost, UniformCost
from rocsteady.core.settings.evaluator import EvaluatorSettings
from rocsteady.core.weighted_tree import build as weighted_tree_build
from rocsteady.core.weighted_tree import measures as weighted_measures
from rocsteady.core.weighted_tree import query as weighted_tree_query
from rocsteady.core.weighted_tree import tree_rows as weighted_tree_rows
from rocsteady.core.weighted_tree.measures import partial_auc
from rocsteady.core.weighted_tree.tree import WeightedTree
from rocsteady.core.weighted_tree.tree_rows import NO_EVENTS, Batch, RowPlan
from sklearn.metrics import average_precision_score, brier_score_loss, roc_auc_score

from tests.support.oracles.weighted import WeightedOracle, finite_streams, weightings
from tests.support.thorough import at_length, some

RANKING = MEASURES[: MEASURES.index("calibration_error") + 1]
ALL = EvaluatorSettings(measures="all", probabilities=True)  # type: ignore[arg-type]
OFFSET = len(NUMBER_COLUMNS) - len(MEASURES)


def blank(rows: int = 1) -> tuple[Any, Any]:
    return np.full((rows, len(NUMBER_COLUMNS)), np.nan), np.zeros((rows, len(MEASURES)), np.int8)


def plan_of(ends: Any, numbers: Any, reasons: Any, scales: Any = None, exponents: Any = None) -> RowPlan:
    return RowPlan(
        np.array(ends, np.int64),
        np.ones(len(ends)) if scales is None else scales,
        np.zeros(len(ends), np.int64) if exponents is None else exponents,
        numbers,
        reasons,
    )


def row_of(
    ranking: WeightedRanking, scale: float = 1.0, exponent: int = 0
) -> tuple[dict[str, float], dict[str, int]]:
    numbers, reasons = blank()
    assert ranking.write_row(numbers[0], reasons[0], scale, exponent)
    return (
        dict(zip(NUMBER_COLUMNS, numbers[0].tolist(), strict=True)),
        dict(zip(MEASURES, reasons[0].tolist(), strict=True)),
    )


def probabilities(events: int, seed: int, decimals: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = (rng.random(events) < 0.4).astype(np.int8)
    return labels, np.round(rng.beta(2, 3, events) * 0.8 + labels * 0.2, decimals)


def unit_row(settings: EvaluatorSettings, labels: np.ndarray, scores: np.ndarray) -> tuple[Any, Any]:
    numbers, reasons = blank()
    SortedRanking(settings, labels, scores).write_row(numbers[0], reasons[0])
    return numbers[0], reasons[0]


SETTINGS = {
    "usual": ALL,
    "uniform": EvaluatorSettings(measures="all", cost=UniformCost(), confidence=0.8, at_fpr=0.2),  # type: ignore[arg-type]
    "fixed priors": EvaluatorSettings(measures="all", priors=0.3, false_positive_cost=0.5),  # type: ignore[arg-type]
    "severity": EvaluatorSettings(measures="all", cost=SeverityCost()),  # type: ignore[arg-type]
    "balanced, priors": EvaluatorSettings(measures="all", cost=SeverityCost("balanced"), priors=0.1),  # type: ignore[arg-type]
    "beta": EvaluatorSettings(measures="all", cost=BetaCost(1.5, 4)),  # type: ignore[arg-type]
    "flipped": EvaluatorSettings(measures="all", flip_if_below_half=True),  # type: ignore[arg-type]
}


@pytest.mark.at_length
@pytest.mark.parametrize(("window", "kind"), some(product([1, 2, 5, 30, 700], SETTINGS)))
def test_weights_of_one_make_the_rows_of_unit_weights(kind: str, window: int) -> None:
    settings = SETTINGS[kind]
    events = (at_length(1_500, 900) if window == 700 else 60) if COMPILED else 20
    for name, labels, scores in finite_streams(events, 1):
        if settings.probabilities:
            scores = np.clip(scores / (4 * np.abs(scores).max() + 1e-9) + 0.4, 0.0, 1.0)
        ranking = WeightedRanking(settings)
        ones = np.ones(events)
        step = max(1, window // 3)
        for begin in range(0, events, step):
            new = np.arange(begin, min(begin + step, events))
            old = new[new >= window] - window
            order = np.concatenate([new, old])
            signs = np.repeat(np.array([1, -1], np.int8), [len(new), len(old)])
            ranking.take_rows(Batch(labels[order], scores[order], ones[order], signs))
            numbers, reasons = blank()
            assert ranking.write_row(numbers[0], reasons[0])
            now = slice(max(0, new[-1] + 1 - window), new[-1] + 1)
            expected, why = unit_row(settings, labels[now], scores[now])
            thresholds = [OFFSET + MEASURES.index(m) for m in ("ks_threshold", "cost_threshold")]
            np.testing.assert_array_equal(numbers[0][thresholds], expected[thresholds], err_msg=name)
            np.testing.assert_allclose(numbers[0], expected, rtol=1e-12, atol=1e-12, err_msg=name)
            assert reasons[0].tolist() == why.tolist(), name


@pytest.mark.parametrize("weighting", [name for name, _ in weightings(1, 0)])
def test_rows_agree_with_exact_fractions(weighting: str) -> None:
    events = 60 if COMPILED else 25
    for seed in range(4):
        labels, scores = probabilities(events, seed, decimals=1 if seed % 2 else 3)
        weights = next(w for name, w in weightings(events, seed) if name == weighting)
        for cost, named in ((BetaCost(), (2, 2)), (UniformCost(), (1, 1))):
            for prior in ("window", 0.3):
                settings = EvaluatorSettings(measures="all", probabilities=True, cost=cost, priors=prior)  # type: ignore[arg-type]
                row, reasons = row_of(WeightedRanking(settings, labels, scores, weights))
                oracle = WeightedOracle(
                    list(zip(labels.tolist(), scores.tolist(), weights.tolist(), strict=True))
                )
                assert row["weight"] == pytest.approx(math.fsum(weights), rel=1e-13)
                assert row["positives"] == pytest.approx(float(oracle.positives), rel=1e-13)
                assert row["negatives"] == pytest.approx(float(oracle.negatives), rel=1e-13)
                share = float(oracle.positives / (oracle.positives + oracle.negatives))
                assert row["prevalence"] == pytest.approx(share, rel=1e-13)
                expected = {
                    "auc": oracle.auc(),
                    "ks": oracle.ks()[0],
                    "cost_curve_area": oracle.cost_curve_area(),
                    "brier": oracle.brier(),
                    "log_loss": oracle.log_loss(),
                }
                if reasons["aum"] == 0:
                    expected["aum"] = oracle.aum()
                    expected["average_precision"] = oracle.average_precision()
                    expected["calibration_error"] = oracle.calibration_error()
                    expected["h"] = oracle.h(named, None if prior == "window" else prior)
                    if reasons["cost_threshold"] == 0:
                        assert row["cost_threshold"] == oracle.cost_threshold(0.2)
                    else:
                        assert weighting.startswith("from")
                else:
                    assert weighting.startswith("from")
                    assert reasons["average_precision"] == reasons["cost_threshold"] == OUT_OF_RANGE
                for name, value in expected.items():
                    assert row[name] == pytest.approx(value, rel=1e-11, abs=1e-12), name
                assert row["ks_threshold"] in oracle.ks()[1]
                if min(oracle.size(0), oracle.size(1)) > 1.01:
                    assert (row["auc_low"], row["auc_high"]) == pytest.approx(oracle.interval(), abs=1e-11)


def test_rows_agree_with_scikit_learn() -> None:
    events = 5_000 if COMPILED else 300
    for seed in range(3):
        labels, scores = probabilities(events, seed, decimals=3)
        weights = np.random.default_rng(seed).gamma(0.5, size=events) + 1e-6
        row, _ = row_of(WeightedRanking(ALL, labels, scores, weights))
        with_weights = {"sample_weight": weights}
        assert row["auc"] == pytest.approx(roc_auc_score(labels, scores, **with_weights), rel=1e-12)
        ap = average_precision_score(labels, scores, **with_weights)
        assert row["average_precision"] == pytest.approx(ap, rel=1e-12)
        assert row["brier"] == pytest.approx(brier_score_loss(labels, scores, **with_weights), rel=1e-12)
        order = np.argsort(scores, kind="stable")
        _, negatives, positives = WeightedRanking(
            ALL, labels[order], scores[order], weights[order]
        ).to_entries()
        for high in (0.05, 0.3, 1.0):
            raw = partial_auc(negatives, positives, 0.0, high)
            expected = roc_auc_score(labels, scores, max_fpr=high, **with_weights)
            if high < 1.0:
                assert mcclish(raw, 0.0, high) == pytest.approx(expected, rel=1e-10)
            else:
                assert raw == pytest.approx(row["auc"], rel=1e-12)


def test_partial_areas_add_up_and_agree_with_trapezia() -> None:
    labels, scores = probabilities(80, 3, decimals=1)
    weights = np.random.default_rng(1).exponential(size=80)
    _, negatives, positives = WeightedRanking(ALL, labels, scores, weights).to_entries()
    oracle = WeightedOracle(list(zip(labels.tolist(), scores.tolist(), weights.tolist(), strict=True)))
    whole = 0.0
    for low, high in ((0.0, 0.03), (0.03, 0.5), (0.5, 0.51), (0.51, 1.0)):
        raw = partial_auc(negatives, positives, low, high)
        assert raw == pytest.approx(oracle.partial_auc(low, high), rel=1e-11)
        whole += raw
    assert whole == pytest.approx(oracle.auc(), rel=1e-12)


def test_one_class_and_no_events_say_so() -> None:
    row, reasons = row_of(WeightedRanking(ALL))
    assert (row["weight"], row["positives"], row["negatives"]) == (0.0, 0.0, 0.0)
    assert math.isnan(row["prevalence"])
    assert set(reasons.values()) == {0}
    row, reasons = row_of(WeightedRanking(ALL, [1, 1], [0.5, 0.25], [2.0, 2.0]))
    assert row["prevalence"] == 1.0
    assert row["brier"] == pytest.approx((0.25 + 0.5625) / 2)
    for name in RANKING:
        if name not in ("brier", "log_loss"):
            assert math.isnan(row[name])
            assert reasons[name] == ONE_CLASS


def test_a_class_with_the_effective_size_of_one_event_has_no_interval() -> None:
    for weights in ([1.0, 1.0, 5.0], [1.0, 1e300, 1e-300]):
        labels = [0, 1, 1] if weights[1] > 1 else [0, 0, 1]
        row, reasons = row_of(WeightedRanking(ALL, labels, [0.1, 0.2, 0.3], weights))
        assert math.isnan(row["auc_low"])
        assert reasons["auc_low"] == reasons["auc_high"] == TOO_FEW


@pytest.mark.parametrize("weight", [1.0, 0.1, 1 / 3, 7e-200])
def test_perfect_order_and_all_tied_have_a_degenerate_interval(weight: float) -> None:
    n = 200
    labels = (np.arange(n) % 3 == 0).astype(np.int8)
    rng = np.random.default_rng(2)
    weights = weight * (1.0 + rng.random(n))
    for scores, auc in (
        (labels + rng.random(n) / 2, 1.0),
        (np.zeros(n), 0.5),
        (-labels + rng.random(n) / 2, 0.0),
    ):
        row, reasons = row_of(WeightedRanking(EvaluatorSettings(), labels, scores, weights))
        assert row["auc"] == pytest.approx(auc, abs=1e-15)
        assert row["auc_low"] == row["auc_high"] == row["auc"]
        assert reasons["auc_low"] == DEGENERATE


def test_classes_of_which_one_outweighs_the_other_beyond_floats() -> None:
    """What is a matter within each class is right; what weighs the classes against each other is null."""
    rng = np.random.default_rng(3)
    labels = np.arange(60).astype(np.int8) % 2
    scores = rng.random(60) + 0.3 * labels
    weights = 1.0 + rng.random(60)
    equal, _ = row_of(WeightedRanking(EvaluatorSettings(priors=0.2), labels, scores, weights))
    weights[labels == 1] *= 1e300
    weights[labels == 0] *= 1e-300
    for prior in ("window", 0.2):
        settings = EvaluatorSettings(priors=prior)  # type: ignore[arg-type]
        row, reasons = row_of(WeightedRanking(settings, labels, scores, weights))
        kept = ["auc", "auc_low", "auc_high", "ks", "ks_threshold", "tpr_at_fpr"] + (
            ["h"] if prior != "window" else []
        )
        for name in kept:
            assert row[name] == pytest.approx(equal[name], rel=1e-12), name
            assert reasons[name] == 0
        for name in {"h", "cost_threshold", "aum"} - set(kept):
            assert math.isnan(row[name])
            assert reasons[name] == OUT_OF_RANGE
    many = np.full(60, 1e308)
    row, _ = row_of(WeightedRanking(EvaluatorSettings(), labels, scores, many))
    assert math.isnan(row["weight"])
    assert row["prevalence"] == 0.5
    plain, _ = row_of(WeightedRanking(EvaluatorSettings(), labels, scores, np.ones(60)))
    for name in ("auc", "auc_low", "h", "ks", "cost_threshold"):
        assert row[name] == pytest.approx(plain[name], rel=1e-12)


@pytest.mark.parametrize("kind", SETTINGS)
def test_rows_within_a_batch_are_the_rows_asked_for_one_by_one(kind: str) -> None:
    settings, events = SETTINGS[kind], 500 if COMPILED else 80
    labels, scores = probabilities(events, 4)
    weights = np.exp2(np.arange(events) / 40.0)
    i = np.arange(events)
    order = np.column_stack([i, i - 60]).ravel()
    signs = np.tile(np.array([1, -1], np.int8), events)[order >= 0]
    order = order[order >= 0]
    ends = np.array([0, 1, 1, 33, 34, len(order) - 20, len(order)])
    numbers, reasons = blank(len(ends))
    scales, exponents = np.linspace(0.5, 2.0, len(ends)), np.arange(len(ends)) - 3
    batch = WeightedRanking(settings)
    progress = batch.take_rows(
        Batch(labels[order], scores[order], weights[order], signs),
        plan_of(ends, numbers, reasons, scales, exponents),
    )
    assert progress == (len(order), len(ends), False)
    single, done = WeightedRanking(settings), 0
    for row, end in enumerate(ends.tolist()):
        now = order[done:end]
        single.take_rows(Batch(labels[now], scores[now], weights[now], signs[done:end]))
        done = end
        expected, why = blank()
        assert single.write_row(expected[0], why[0], float(scales[row]), int(exponents[row]))
        np.testing.assert_array_equal(numbers[row], expected[0])
        np.testing.assert_array_equal(reasons[row], why[0])
    with pytest.raises(InputError, match="rows"):
        batch.take_rows(NO_EVENTS, plan_of(ends[:1], *blank(2)))


def test_masses_and_aum_are_in_the_scale_of_the_row() -> None:
    labels, scores = probabilities(50, 5)
    weights = np.exp2(np.arange(50) / 7.0)
    ranking = WeightedRanking(EvaluatorSettings(), labels, scores, np.ldexp(weights, 900))
    faded, _ = row_of(ranking, 2.0 ** -(49 / 7.0 - 7), -900 - 7)
    plain, _ = row_of(WeightedRanking(EvaluatorSettings(), labels, scores, weights / weights[-1]))
    for name, value in plain.items():
        assert faded[name] == pytest.approx(value, rel=1e-12, nan_ok=True), name


@pytest.mark.parametrize("kind", ["usual", "uniform"])
def test_a_row_waits_for_a_rebuild_that_is_needed(kind: str) -> None:
    labels = np.array([0, 1, 1, 1, 1, 0], np.int8)
    scores = np.array([0.2, 0.2, 0.4, 0.2, 0.2, 0.3])
    weights = np.array([1.0, 1.0, 1.0, 1e60, 1e60, 1.0])
    signs = np.array([1, 1, 1, 1, -1, 1], np.int8)
    numbers, reasons = blank(3)
    ranking = WeightedRanking(SETTINGS[kind])
    batch = Batch(labels, scores, weights, signs)
    progress = ranking.take_rows(batch, plan_of([4, 5, 6], numbers, reasons))
    assert progress == (5, 1, True)
    assert ranking.tree.needs_rebuild
    assert not ranking.write_row(numbers[1], reasons[1])
    ranking.tree.rebuild(labels[:3], scores[:3], weights[:3])
    rest = ranking.take_rows(
        Batch(*(column[5:] for column in batch)), plan_of([0, 1], numbers[1:], reasons[1:])
    )
    assert rest == (1, 2, False)
    assert numbers[:, OFFSET].tolist() == pytest.approx([0.5, 0.75, 0.625])


def test_placements_are_those_among_the_events_before() -> None:
    labels, scores = probabilities(120 if COMPILED else 40, 6, decimals=1)
    weights = np.random.default_rng(7).exponential(size=len(labels))
    i = np.arange(len(labels))
    order = np.column_stack([i, i - 20]).ravel()
    signs = np.tile(np.array([1, -1], np.int8), len(labels))[order >= 0]
    order = order[order >= 0]
    values = np.full(len(order), np.nan)
    batch = Batch(labels[order], scores[order], weights[order], signs)
    WeightedRanking(ALL).take_rows(batch, placements=values)
    for value, event, sign in zip(values, order.tolist(), signs, strict=True):
        if sign < 0:
            assert math.isnan(value)
            continue
        before = slice(max(0, event - 20), event)
        held = list(
            zip(labels[before].tolist(), scores[before].tolist(), weights[before].tolist(), strict=True)
        )
        if not any(label != labels[event] for label, _, _ in held):
            assert math.isnan(value)
        else:
            expected = WeightedOracle(held).placement(int(labels[event]), float(scores[event]))
            assert value == pytest.approx(expected, rel=1e-12, abs=1e-15)


def test_every_kernel_is_compiled_once_whatever_is_handed_in() -> None:
    if not COMPILED:
        pytest.skip("numba is switched off by NUMBA_DISABLE_JIT")
    labels, scores = probabilities(300, 8)
    weights = np.random.default_rng(8).exponential(size=300)
    frozen = scores.copy()
    frozen.flags.writeable = False
    for y in (labels, labels.astype(bool), labels.tolist(), labels[::-1]):
        for s in (scores, frozen, scores[::-1], scores.astype(np.float32), scores.tolist()):
            tree = WeightedTree(y, s, weights[::-1])
            tree.apply(y, s, weights.astype(np.float32), np.ones(300))
            tree.auc(), tree.ks(), tree.hull(), tree.placement(y, s), tree.masses_below(0.5)
            WeightedTree.from_sorted(tree.to_sorted()).score_at_positive_mass(0.5)
    for settings in SETTINGS.values():
        row_of(WeightedRanking(settings, labels, scores, weights))
    for kernel in (
        *(weighted_tree_rows.run_batch, weighted_tree_rows.answer, weighted_tree_rows.place_scores),
        *(weighted_tree_query.masses_around, weighted_tree_query.score_at_positives),
        *(weighted_tree_build.group_events, weighted_tree_build.build, weighted_tree_build.list_entries),
        *(weighted_measures.partial_auc, weighted_measures.average_precision),
        *(weighted_measures.pooled_edges, weighted_measures.error_of_blocks),
        weighted_measures.probability_losses,
    ):
        assert len(kernel.signatures) == 1, (kernel.__name__, kernel.signatures)  # type: ignore[attr-defined]
