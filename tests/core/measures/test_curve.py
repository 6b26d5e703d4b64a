"""A curve is the window's own points, hull and calibration; it comes when it is due, however events come."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
import rocsteady as rs
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.evaluator.ranking import SortedRanking, TreeRanking
from rocsteady.core.measures.curve import curve_of_entries
from rocsteady.core.rows.curves import RESOLUTION, points_kept
from sklearn import metrics
from sklearn.isotonic import IsotonicRegression

from tests.support.thorough import at_length, examples, some

HUGE = 1.7976931348623157e308


def entries_of(labels: Any, scores: Any) -> tuple[Any, Any, Any]:
    """Distinct scores, ascending, with their negatives and positives."""
    labels, scores = np.asarray(labels), np.asarray(scores, np.float64) + 0.0
    keys = np.unique(scores)
    tied = [labels[scores == key] for key in keys]
    positives = np.array([int(group.sum()) for group in tied], np.int64)
    return keys, np.array([len(group) for group in tied], np.int64) - positives, positives


def whole_curve(labels: Any, scores: Any) -> rs.RocCurve:
    return curve_of_entries(*entries_of(labels, scores), points="all")


def streams() -> dict[str, tuple[Any, Any]]:
    rng = np.random.default_rng(5)
    even, rare = rng.integers(0, 2, 48), (rng.random(48) < 0.1).astype(int)
    return {
        "random": (even, rng.normal(even)),
        "rare positives": (rare, rng.normal(rare)),
        "tied": (even, rng.integers(0, 5, 48) / 5),
        "constant": (even, np.full(48, 0.1)),
        "sorted up": (even, np.arange(48) / 48),
        "sorted down": (even, -np.arange(48) / 48),
        "perfect": (np.sort(even), np.arange(48) / 48),
        "wrong way round": (np.sort(even), -np.arange(48) / 48),
        "all positive": (np.ones(30, int), rng.random(30)),
        "all negative": (np.zeros(30, int), rng.random(30)),
        "one late positive": (np.eye(1, 30, 25, int)[0], rng.random(30)),
        "signed zeros": (even, rng.choice([-0.0, 0.0, 1.0], 48)),
        "huge": (even, rng.choice([-HUGE, -1e308, -1.0, 0.5, 1e308, HUGE], 48)),
        "denormal": (even, rng.choice([-5e-324, 0.0, 5e-324, 1e-323, 2e-323, 1e-310], 48)),
    }


STREAMS = streams()


def see_that_it_is_the_curve(curve: rs.RocCurve, labels: Any, scores: Any) -> None:
    """Check a curve of which no point was dropped against definitions that share nothing with it."""
    labels, scores = np.asarray(labels), np.asarray(scores)
    positives, negatives = scores[labels == 1], scores[labels == 0]
    thresholds = [np.inf, *sorted(set(scores.tolist()), reverse=True)]
    assert curve.threshold.tolist() == thresholds
    assert curve.tp.tolist() == [np.count_nonzero(positives >= threshold) for threshold in thresholds]
    assert curve.fp.tolist() == [np.count_nonzero(negatives >= threshold) for threshold in thresholds]
    assert (curve.events, curve.positives, curve.negatives) == (len(scores), len(positives), len(negatives))
    assert curve.on_hull[[0, -1]].all()
    assert np.isfinite(curve.block_score[1:][curve.on_hull[1:]]).all()
    assert np.isnan(curve.block_score[~curve.on_hull]).all()
    assert np.isnan(curve.block_score[0])
    for rate, whole in ((curve.tpr, positives), (curve.fpr, negatives)):
        assert np.isnan(rate).all() if not len(whole) else rate[-1] == 1.0
    if len(positives) and len(negatives):
        ranks = np.unique(scores, return_inverse=True)[1]  # scikit-learn subtracts scores, which overflows
        fpr, tpr, _ = metrics.roc_curve(labels, ranks, drop_intermediate=False)
        assert curve.fpr == pytest.approx(fpr, abs=1e-15)
        assert curve.tpr == pytest.approx(tpr, abs=1e-15)
        area = np.trapezoid(curve.tpr, curve.fpr)
        assert area == pytest.approx(metrics.roc_auc_score(labels, ranks), abs=1e-12)
    see_that_its_blocks_are_isotonic_regression(curve, labels, scores)


def see_that_its_blocks_are_isotonic_regression(curve: rs.RocCurve, labels: Any, scores: Any) -> None:
    """Isotonic regression pools what is not monotone; where its value changes there is a vertex."""
    ranks = np.unique(scores, return_inverse=True)[1]
    fitted = IsotonicRegression().fit(ranks, labels).predict(ranks)
    borders = curve.threshold[curve.on_hull]
    blocks = curve.calibration
    assert (np.diff(blocks.positive_share) < 0).all()  # strict: collinear points are no vertices
    for block, (above, threshold) in enumerate(pairwise(borders)):
        inside = (scores >= threshold) & (scores < above)
        assert blocks.events[block] == np.count_nonzero(inside)
        assert blocks.positive_share[block] == np.count_nonzero(labels[inside]) / np.count_nonzero(inside)
        assert fitted[inside] == pytest.approx(blocks.positive_share[block], abs=1e-12)
        exact = [Fraction(score) for score in scores[inside].tolist()]
        mean, size = sum(exact) / len(exact), max(map(abs, exact))
        assert abs(Fraction(float(blocks.score[block])) - mean) <= size / 10**14 + Fraction(5e-324)
        assert scores[inside].min() <= blocks.score[block] <= scores[inside].max()


@pytest.mark.parametrize(
    ("k", "name"), [*some(product([1, 2, 5], STREAMS)), *some(product([20, None], STREAMS))]
)
@pytest.mark.at_length
def test_a_curve_is_that_of_scikit_learn_at_every_prefix(name: str, k: int | None) -> None:
    labels, scores = STREAMS[name]
    ev = rs.ModelEvaluator(window=rs.AllEvents() if k is None else rs.LastEvents(k))
    for n in range(1, len(labels) + 1):
        ev.update(labels[n - 1 : n], scores[n - 1 : n])
        if n % at_length(1, 3) and n < len(labels):
            continue
        held = slice(0 if k is None else max(0, n - k), n)
        see_that_it_is_the_curve(ev.curve(), labels[held], scores[held])


scores_of_any_size = st.one_of(
    st.sampled_from((-0.0, 0.0, 0.5, 1.0, HUGE, -HUGE, 5e-324)),
    st.floats(allow_nan=False, allow_infinity=False),
)


@settings(max_examples=examples(60))
@given(st.lists(st.tuples(st.integers(0, 1), scores_of_any_size), min_size=1, max_size=25))
def test_any_window_gives_its_curve(events: list[tuple[int, float]]) -> None:
    labels, scores = np.array([event[0] for event in events]), np.array([event[1] for event in events])
    see_that_it_is_the_curve(whole_curve(labels, scores), labels, scores)


def test_both_forms_of_a_ranking_give_one_curve() -> None:
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 2, 900)
    for scores in (rng.normal(labels), rng.integers(0, 30, 900) / 30, rng.choice([-HUGE, 0.1, HUGE], 900)):
        for window in (rs.LastEvents(100), rs.LastEvents(300), rs.AllEvents()):
            tree = rs.ModelEvaluator(window=window, every=rs.EveryEvents(1), measures="auc")
            scans = rs.ModelEvaluator(window=window, every=rs.EveryEvents(10**6), measures="auc")
            for start in range(0, 900, 45):
                for ev in (tree, scans):
                    ev.update(labels[start : start + 45], scores[start : start + 45])
                assert tree.curve() == scans.curve()
            assert isinstance(tree._engine.window._ranking, TreeRanking)
            assert isinstance(scans._engine.window._ranking, SortedRanking)


@pytest.mark.parametrize("share", [0.0, 0.004, 0.5, 1.0])
@pytest.mark.parametrize("spread", [0.0, 0.3, 9.0])
def test_a_dropped_point_is_near_a_kept_one_on_both_axes(share: float, spread: float) -> None:
    rng = np.random.default_rng(7)
    labels = (rng.random(6_000) < share).astype(np.int64)
    scores = rng.normal(spread * labels)
    entries = entries_of(labels, scores)
    whole, thin = curve_of_entries(*entries, points="all"), curve_of_entries(*entries)
    kept = np.isin(whole.threshold, thin.threshold)
    assert len(whole) == 6_001
    assert kept.sum() == len(thin) <= 2 * RESOLUTION + thin.on_hull.sum()
    for name in ("threshold", "tp", "fp", "on_hull", "block_score"):
        assert getattr(whole, name)[kept].tobytes() == getattr(thin, name).tobytes()
    assert not whole.on_hull[~kept].any()
    assert points_kept(whole.tp, whole.fp, whole.on_hull).tolist() == np.flatnonzero(kept).tolist()
    again = points_kept(thin.tp, thin.fp, thin.on_hull)
    assert again.tolist() == list(range(len(thin)))
    before = np.maximum.accumulate(np.where(kept, np.arange(len(whole)), 0))
    for mass, total in ((whole.tp, whole.positives), (whole.fp, whole.negatives)):
        assert ((mass - mass[before]) * RESOLUTION <= total).all()


@pytest.mark.parametrize("exponent", [-990, -500, 500, 990])
def test_a_curve_of_any_unit_of_mass_has_the_same_hull(exponent: int) -> None:
    rng = np.random.default_rng(8)
    labels = rng.integers(0, 2, 300)
    keys, negatives, positives = entries_of(labels, np.round(rng.normal(labels), 1))
    masses = (np.ldexp(each.astype(float), exponent) for each in (negatives, positives))
    found, whole = curve_of_entries(keys, *masses, 300), curve_of_entries(keys, negatives, positives)
    for name in ("threshold", "on_hull", "block_score"):
        assert getattr(found, name).tobytes() == getattr(whole, name).tobytes()
    for name in ("tp", "fp"):
        assert getattr(found, name).tolist() == np.ldexp(getattr(whole, name), exponent).tolist()


@pytest.mark.parametrize("weight", [1e-300, 1e-160, 1e160, 1e300])
@pytest.mark.parametrize("window", ["last:200", "all", "fading:50"])
def test_the_hull_of_tiny_and_of_huge_weights_is_that_of_weight_one(window: str, weight: float) -> None:
    rng = np.random.default_rng(9)
    labels = rng.integers(0, 2, 300)
    scores = rng.normal(labels)
    areas = []
    for each in (1.0, weight):
        ev = rs.ModelEvaluator(window=window)
        ev.update(labels, scores, weights=np.full(300, each))
        areas.append(np.trapezoid(*ev.curve().hull[::-1]))
    assert areas[1] == pytest.approx(areas[0], abs=1e-12)


WINDOWS_OF_ALL_KINDS = (rs.LastEvents(700), rs.AllEvents(), rs.Fading(400), rs.Adaptive(signal="placement"))


@pytest.mark.parametrize("window", WINDOWS_OF_ALL_KINDS, ids=str)
@pytest.mark.parametrize("has_weights", [False, True])
def test_the_area_under_all_points_is_the_auc(window: Any, has_weights: bool) -> None:
    rng = np.random.default_rng(11)
    labels = rng.integers(0, 2, 1_500)
    scores = rng.normal(1.2 * labels)
    scores[::3] = np.round(scores[::3], 1)
    ev = rs.ModelEvaluator(window=window, curves="end", curves_points="all")
    ev.update(labels, scores, weights=rng.uniform(0.1, 5, 1_500) if has_weights else None)
    thin, whole = ev.curve(), ev.curve(points="all")
    assert ev.curve(points="thinned") == thin
    auc = ev.measures().auc
    assert np.trapezoid(whole.tpr, whole.fpr) == pytest.approx(auc, abs=1e-12)
    assert 1e-6 < abs(np.trapezoid(thin.tpr, thin.fpr) - auc) < 1 / RESOLUTION
    assert len(thin) < 420 < len(whole) <= whole.events + 1
    assert ev.finish().curves[-1].curve == whole
    assert rs.ModelEvaluator(window=window).settings.config_hash() == ev.settings.config_hash()


def test_a_curve_of_other_points_is_refused() -> None:
    for points in ("every", "", None, 200, ["all"]):
        with pytest.raises(rs.ConfigError, match=r"points=.*: give 'thinned', .* or 'all'"):
            rs.ModelEvaluator().curve(points=points)  # type: ignore[arg-type]
        with pytest.raises(rs.ConfigError, match=r"curves_points=.*: give 'thinned', .* or 'all'"):
            rs.ModelEvaluator(curves="end", curves_points=points)  # type: ignore[arg-type]


def test_a_mean_of_scores_is_one_of_them_where_all_are_the_same() -> None:
    for score in (0.1, 1 / 3, HUGE, -HUGE, 5e-324, 1e308, 2.5e-324):
        for events in (1, 3, 7, 49):
            assert whole_curve([1] * events, [score] * events).block_score[-1] == score
    assert whole_curve([1, 1], [HUGE, -HUGE]).block_score[-1] == 0.0
    assert whole_curve([1, 1, 1], [HUGE, HUGE, -HUGE]).block_score[-1] == pytest.approx(HUGE / 3, rel=1e-14)


def test_an_empty_window_is_one_point() -> None:
    curve = rs.ModelEvaluator().curve()
    assert (curve.threshold.tolist(), curve.tp.tolist(), curve.fp.tolist()) == ([np.inf], [0.0], [0.0])
    assert curve.on_hull.tolist() == [True]
    assert np.isnan([curve.tpr, curve.fpr, curve.block_score]).all()
    assert (curve.events, len(curve.calibration.score)) == (0, 0)


def test_a_curve_cannot_be_changed() -> None:
    ev = rs.ModelEvaluator()
    ev.update([0, 1], [0.25, 0.75])
    curve = ev.curve()
    with pytest.raises(ValueError, match="read-only"):
        curve.tp[0] = 1.0
    with pytest.raises(AttributeError):
        curve.tp = curve.fp  # type: ignore[misc]
    assert curve == ev.curve()
    assert len({curve, ev.curve()}) == 1
    ev.update([0], [0.25])
    assert curve != ev.curve()


def test_asking_for_a_curve_changes_nothing() -> None:
    labels, scores = STREAMS["random"]
    asked, left = (rs.ModelEvaluator(window=rs.LastEvents(10), every=rs.EveryEvents(4)) for _ in range(2))
    for label, score in zip(labels, scores, strict=True):
        assert list(asked.update([label], [score])) == list(left.update([label], [score]))
        asked.curve()
    assert asked.to_bytes() == left.to_bytes()


# ---- when a curve is due


def update(ev: rs.ModelEvaluator, n: int) -> tuple[rs.WindowCurve, ...]:
    labels = [(ev.seq + i) % 3 // 2 for i in range(n)]
    return ev.update(labels, [(ev.seq + i) * 7 % 11 / 11 for i in range(n)]).curves


def seqs(curves: tuple[rs.WindowCurve, ...]) -> list[int]:
    return [curve.seq for curve in curves]


def test_a_curve_comes_after_every_nth_event_and_at_the_end() -> None:
    ev = rs.ModelEvaluator(
        curves=rs.EveryEvents(4), every=rs.EveryEvents(100), model="m", slice="s=1", pane=(0, 9)
    )
    alone = rs.ModelEvaluator(window=rs.AllEvents())
    curves = update(ev, 9)
    assert seqs(curves) == [4, 8]
    for curve, n in zip(curves, (4, 4), strict=True):
        update(alone, n)
        assert curve[:6] == ("m", "s=1", (0, 9), alone.seq, None, ev.settings.config_hash())
        assert curve.curve == alone.curve()
    assert update(ev, 0) == update(ev, 2) == ()
    last = ev.finish()
    assert ([row.seq for row in last], seqs(last.curves)) == ([11], [11])
    assert last.curves[0].curve == ev.curve()
    again = ev.finish()
    assert (len(again), again.curves) == (0, ())
    assert seqs(update(ev, 1)) == [12]
    last = ev.finish()
    assert ([row.seq for row in last], last.curves) == ([12], ())


def test_a_curve_comes_where_no_row_does() -> None:
    ev = rs.ModelEvaluator(curves=rs.EveryEvents(4), every=rs.EveryEvents(5))
    rows = ev.update([0, 1, 0, 1], [1, 2, 3, 4])
    assert (len(rows), seqs(rows.curves)) == (0, [4])
    rows = ev.update([0], [5])
    assert ([row.seq for row in rows], rows.curves) == ([5], ())
    rows = ev.finish()
    assert (len(rows), seqs(rows.curves)) == (0, [5])


def test_curves_may_come_at_the_end_alone_or_not_at_all() -> None:
    for curves, expected in (("end", [9]), (None, [])):
        ev = rs.ModelEvaluator(curves=curves, every=rs.EveryEvents(3))
        assert update(ev, 9) == ()
        assert seqs(ev.finish().curves) == expected
        assert rs.ModelEvaluator(curves=curves).finish().curves == ()


def test_the_time_of_a_curve_is_the_greatest_applied() -> None:
    ev = rs.ModelEvaluator(curves=rs.EveryEvents(2))
    curves = ev.update([0, 1, 1, 0, 1], [1, 2, 3, 4, 5], times=[5, 3, 9, 2, 11], time_unit="us").curves
    assert [curve.time for curve in (*curves, *ev.finish().curves)] == [5, 9, 11]


def test_what_is_asked_of_curves_is_no_part_of_a_state() -> None:
    drawing, plain = (rs.ModelEvaluator(curves=curves) for curves in (rs.EveryEvents(4), None))
    update(drawing, 6)
    update(plain, 6)
    assert drawing.to_bytes() == plain.to_bytes()
    assert update(rs.ModelEvaluator.from_bytes(drawing.to_bytes()), 6) == ()
    reloaded = rs.ModelEvaluator.from_bytes(plain.to_bytes(), drawing.settings)
    assert update(reloaded, 6) == update(drawing, 6) != ()


def test_an_end_that_was_told_before_a_snapshot_is_not_told_again() -> None:
    ev = rs.ModelEvaluator(curves="end", every=rs.EveryEvents(4))
    update(ev, 6)
    assert seqs(ev.finish().curves) == [6]
    assert rs.ModelEvaluator.from_bytes(ev.to_bytes(), ev.settings).finish().curves == ()


def test_classes_without_a_positive_one_have_no_curve() -> None:
    ev = rs.ModelEvaluator()
    ev.update(["up", "down"], [0.5, 0.25], predicted=["up", "up"])
    with pytest.raises(rs.InputError, match=r"none of them is named as positive.*positive="):
        ev.curve()
    drawing = rs.ModelEvaluator(curves="end")
    with pytest.raises(rs.InputError, match="positive="):
        drawing.update(["up", "down"], [0.5, 0.25], predicted=["up", "up"])
    assert drawing.seq == 0
    reloaded = rs.ModelEvaluator.from_bytes(ev.to_bytes(), drawing.settings)
    before = reloaded.to_bytes()
    with pytest.raises(rs.InputError, match="positive="):
        reloaded.finish()
    assert reloaded.to_bytes() == before
    named = rs.ModelEvaluator(positive="up", curves=rs.EveryEvents(2))
    (curve,) = named.update(["up", "down"], [0.5, 0.25], predicted=["up", "up"]).curves
    assert curve.curve == named.curve() == whole_curve([1, 0], [0.5, 0.25])


def test_rows_that_are_put_together_keep_their_curves() -> None:
    rng = random.Random(2)
    parts = []
    for model in "aba":
        ev = rs.ModelEvaluator(curves=rs.EveryEvents(rng.randint(1, 3)), every=rs.EveryEvents(4), model=model)
        parts += [ev.update([0, 1, 0][:n], [1, 2, 3][:n]) for n in (3, 0, 2, 1)]
    whole = rs.Rows.concat(parts)
    assert whole.curves == tuple(curve for part in parts for curve in part.curves)
    assert list(whole) == [row for part in parts for row in part]
    assert len({curve.model for curve in whole.curves}) == 2
    only = rs.Rows.concat([part for part in parts if not len(part)])
    assert len(only) == 0
    assert only.curves
    assert "curves" in repr(whole)
