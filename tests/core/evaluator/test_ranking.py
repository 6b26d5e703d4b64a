"""Two forms of a ranking, one row: scans and trees agree to the last bit, wherever one takes over."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import rocsteady as rs
from rocsteady.core.evaluator.engine import of_settings
from rocsteady.core.evaluator.eviction import sliding_steps
from rocsteady.core.evaluator.ranking import SortedRanking, TreeRanking, z_of
from rocsteady.core.evaluator.unit_window import Ranking, keeps_form, steps_until_switch, tree_sizes
from rocsteady.core.measures import decisions
from rocsteady.core.measures.scan import EXACT_EVENTS
from rocsteady.core.measures.steps import ROW_DUE
from rocsteady.core.rows.columns import NUMBER_COLUMNS
from rocsteady.core.rows.measure_table import MEASURES
from rocsteady.core.settings.evaluator import EvaluatorSettings
from scipy.special import ndtri

from tests.support.oracles.score_tree import streams
from tests.support.thorough import some

NO_SCORES, NO_LABELS = np.empty(0), np.empty(0, np.int8)
WINDOWS = [rs.LastEvents(1), rs.LastEvents(3), rs.LastEvents(60), rs.LastEvents(200), rs.AllEvents()]
STREAMS = [name for name, _, _ in streams(1, 0)]


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_the_quantile_of_the_interval_is_scipys_to_the_last_bit(confidence: float) -> None:
    assert z_of(EvaluatorSettings(confidence=confidence)) == ndtri(0.5 + confidence / 2)


def rows_of(
    ranking: Ranking, labels: np.ndarray, scores: np.ndarray, every: int, cuts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Feed a stream in pieces; return the matrix of numbers and that of reasons."""
    due, size = len(labels) // every, ranking._settings.window.size
    numbers, reasons = np.full((due, len(NUMBER_COLUMNS)), np.nan), np.zeros((due, len(MEASURES)), np.int8)
    for start, end in zip([0, *cuts], [*cuts, len(labels)], strict=True):
        rows = slice(start // every, end // every)
        held = start if size is None else min(start, size)
        steps = sliding_steps(end - start, held, size)
        flags = steps.flags.copy()
        flags[np.arange(start + 1, end + 1) % every == 0] |= ROW_DUE
        steps = steps._replace(flags=flags)
        ranking.follow(labels[start:end], scores[start:end], steps, numbers[rows], reasons[rows])
    return numbers, reasons


def masked(settings: rs.EvaluatorSettings, numbers: np.ndarray) -> np.ndarray:
    """Leave what was asked for: a scan writes more than that."""
    kept = [name in (settings.measures or ()) or name not in MEASURES for name in NUMBER_COLUMNS]
    return numbers[:, kept]


@pytest.mark.parametrize(("window", "stream"), some(product(WINDOWS, STREAMS), each=2), ids=str)
def test_scan_tree_and_evaluator_give_the_same_bits(
    stream: str, window: rs.LastEvents | rs.AllEvents
) -> None:
    events = 500
    labels, scores = next((y, s) for name, y, s in streams(events, 60) if name == stream)
    labels, scores = labels.astype(np.int8), scores + 0.0
    rng = np.random.default_rng(len(stream))
    for every, cost in ((1, rs.BetaCost()), (7, rs.UniformCost())):
        settings = rs.EvaluatorSettings(window=window, every=rs.EveryEvents(every), cost=cost)
        results = []
        for form in (SortedRanking, TreeRanking):
            cuts = np.sort(rng.integers(0, events, 5))
            ranking = form(settings, NO_LABELS, NO_SCORES)
            numbers, reasons = rows_of(ranking, labels, scores, every, cuts)
            results.append((masked(settings, numbers).tobytes(), reasons.tobytes()))
            held_labels, held_scores = ranking.to_arrays()
            size = events if isinstance(window, rs.AllEvents) else window.k
            assert held_labels.tolist() == labels[-size:].tolist()
            assert held_scores.tolist() == scores[-size:].tolist()
        assert results[0] == results[1]
        if np.isfinite(scores).all():
            ev = rs.ModelEvaluator(settings)
            rows = [ev.update(labels[a:b], scores[a:b]) for a, b in ((0, 111), (111, 112), (112, events))]
            numbers = np.concatenate([part.numbers for part in rows])
            ranked = [NUMBER_COLUMNS.index(name) for name in ("auc", "auc_low", "auc_high", "h", "ks", "aum")]
            scanned = rows_of(
                SortedRanking(settings, NO_LABELS, NO_SCORES), labels, scores, every, np.array([], int)
            )[0]
            assert numbers[:, ranked].tobytes() == scanned[:, ranked].tobytes()


MADE_AT_ROWS: dict[str, dict[str, Any]] = {
    "severity": {"cost": rs.SeverityCost()},
    "severity of its own": {"cost": rs.SeverityCost(0.3), "every": rs.EveryEvents(3)},
    "balanced, flipped": {"cost": rs.SeverityCost("balanced"), "flip_if_below_half": True},
    "flipped alone": {"flip_if_below_half": True, "measures": ("h", "auc")},
    "fixed priors": {"priors": 0.2, "cost": rs.UniformCost()},
    "general Beta": {"cost": rs.BetaCost(3, 1.5), "every": rs.EveryEvents(5)},
    "cost curve alone": {"measures": ("cost_curve_area",)},
    "precision alone": {"measures": ("average_precision",), "every": rs.EveryEvents(2)},
    "partial": {"measures": ("partial_auc", "partial_auc_mcclish"), "partial_fpr": (0.05, 0.61)},
    "polynomial": {"measures": ("polynomial_auc",)},
    "losses": {"measures": ("brier", "log_loss"), "probabilities": True},
    "all": {"measures": "all", "probabilities": True, "partial_fpr": (0.0, 0.3)},
    "all, far apart": {"measures": "all", "probabilities": True, "every": rs.EveryEvents(41)},
    "all, flipped": {"measures": "all", "flip_if_below_half": True, "priors": 0.7},
}


@pytest.mark.slow
@pytest.mark.parametrize(("window", "kind"), some(product(WINDOWS[1:], MADE_AT_ROWS)), ids=str)
def test_what_is_made_at_a_row_has_the_same_bits_from_scan_and_tree(
    kind: str, window: rs.LastEvents | rs.AllEvents
) -> None:
    events = 250 if window == rs.LastEvents(200) else 120
    settings = rs.EvaluatorSettings(**{"every": rs.EveryEvents(1), **MADE_AT_ROWS[kind], "window": window})
    every = settings.every.n
    rng = np.random.default_rng(len(kind))
    for name, labels, scores in streams(events, 7):
        scores = scores + 0.0
        if settings.probabilities:
            ranks = np.unique(scores, return_inverse=True)[1]
            scores = (ranks / max(1, ranks.max())) ** 1.5  # beside 0 and 1
        elif not np.isfinite(scores).all():
            continue
        results = []
        for form in (SortedRanking, TreeRanking):
            ranking = form(settings, NO_LABELS, NO_SCORES)
            cuts = np.sort(rng.integers(0, events, 5))
            numbers, reasons = rows_of(ranking, labels.astype(np.int8), scores, every, cuts)
            last = np.full(len(NUMBER_COLUMNS), np.nan), np.zeros(len(MEASURES), np.int8)
            ranking.write_row(*last)
            results.append(masked(settings, np.vstack([numbers, last[0]])).tobytes())
            asked = [name in (settings.measures or ()) for name in MEASURES]
            results[-1] += np.vstack([reasons, last[1]])[:, asked].tobytes()
        assert results[0] == results[1], name


def test_an_evaluator_changes_its_form_and_its_rows_do_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(6)
    labels, scores = rng.integers(0, 2, 700), rng.random(700).round(2)
    settings = rs.EvaluatorSettings(
        window=rs.LastEvents(300), every=rs.EveryEvents(20), measures="all", probabilities=True,
        cost=rs.SeverityCost(),
    )  # fmt: skip
    results = []
    for sizes in (range(0), range(150, 301), range(301)):
        ev = rs.ModelEvaluator(settings)
        monkeypatch.setattr(ev._engine.window, "_tree_sizes", sizes)
        results.append(list(ev.update(labels, scores)))
        assert isinstance(ev._engine.window._ranking, TreeRanking if sizes else SortedRanking)
    assert results[0] == results[1] == results[2]
    assert len(results[0]) == 35


def test_the_form_follows_from_settings_and_size_alone() -> None:
    dense = rs.EvaluatorSettings(window=rs.LastEvents(1_000), every=rs.EveryEvents(1))
    assert [held in tree_sizes(dense) for held in (0, 63, 64, 1_000)] == [False, False, True, True]
    sparse = rs.EvaluatorSettings(window=rs.LastEvents(1_000), every=rs.EveryEvents(1_000))
    assert not tree_sizes(sparse)
    endless = tree_sizes(rs.EvaluatorSettings(window=rs.AllEvents(), every=rs.EveryEvents(100)))
    assert (endless.start, endless.stop) == (200, EXACT_EVENTS)
    assert steps_until_switch(endless, 2_000_000, True) == EXACT_EVENTS - 2_000_000
    for choice in ({"cost": rs.SeverityCost()}, {"priors": 0.3}, {"measures": "all"}):
        settings = rs.EvaluatorSettings(every=rs.EveryEvents(100), **choice)
        assert [held in tree_sizes(settings) for held in (1_999, 2_000)] == [False, True]
        dense = rs.EvaluatorSettings(every=rs.EveryEvents(1), **choice)
        assert [held in tree_sizes(dense) for held in (999, 1_000)] == [False, True]
    for choice in ({"probabilities": True}, {"measures": ("brier", "aum"), "probabilities": True}):
        assert 64 in tree_sizes(rs.EvaluatorSettings(every=rs.EveryEvents(1), **choice))


def test_a_window_that_shrinks_and_grows_does_not_change_its_form_to_and_fro() -> None:
    sizes = tree_sizes(rs.EvaluatorSettings(window=rs.LastDuration(60), every=rs.EveryEvents(100)))
    assert [keeps_form(sizes, held, False) for held in (0, 199, 200, EXACT_EVENTS - 1)] == [
        True, True, False, True,
    ]  # fmt: skip
    assert [keeps_form(sizes, held, True) for held in (49, 50, 200, EXACT_EVENTS)] == [
        False, True, True, False,
    ]  # fmt: skip


def test_an_evaluator_goes_on_the_same_whichever_form_it_was_stored_in() -> None:
    rng = np.random.default_rng(3)
    labels, scores = rng.integers(0, 2, 900), rng.normal(size=900).round(1)
    for window in (rs.LastEvents(150), rs.AllEvents()):
        straight = rs.ModelEvaluator(window=window, every=rs.EveryEvents(3))
        expected = list(straight.update(labels, scores))
        broken, rows = rs.ModelEvaluator(window=window, every=rs.EveryEvents(3)), []
        for start in range(0, 900, 50):
            rows += broken.update(labels[start : start + 50], scores[start : start + 50])
            broken = rs.ModelEvaluator.from_bytes(broken.to_bytes())
        assert rows == expected


def test_an_interrupted_update_is_refused_from_then_on(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    labels, scores = rng.integers(0, 2, 600), rng.normal(size=600)
    ev = rs.ModelEvaluator(window=rs.LastEvents(100), every=rs.EveryEvents(10))
    ev.update(labels[:500], scores[:500])
    stored = ev.to_bytes()
    with monkeypatch.context() as interrupt:
        interrupt.setattr(decisions, "apply_decisions", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            ev.update(labels[500:557], scores[500:557])
    for attempt in (lambda: ev.update([1], [0.5]), ev.measures, ev.finish, ev.to_bytes):
        with pytest.raises(rs.InputError, match="not whole, since an update was interrupted"):
            attempt()
    assert len(rs.ModelEvaluator.from_bytes(stored).update(labels[500:], scores[500:])) == 10


def test_the_last_row_of_classes_without_a_positive_one_weighs_its_window() -> None:
    ev = rs.ModelEvaluator(window=rs.LastEvents(4), every=rs.EveryEvents(2))
    rows = [*ev.update(["a", "b", "c"], [0, 0, 0], predicted=["a", "b", "b"]), *ev.finish()]
    assert [(row.weight, row.window_events) for row in rows] == [(2.0, 2), (3.0, 3)]
    assert ev.measures().weight == 3.0


def test_the_largest_exact_window_has_one_loss_in_both_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    from rocsteady.core.evaluator import ranking, unit_window

    of_settings.cache_clear()
    for module in (unit_window, ranking):
        monkeypatch.setattr(module, "EXACT_EVENTS", 200)
    rng = np.random.default_rng(1)
    labels, scores = rng.integers(0, 2, 400), rng.normal(size=400).round(1)
    dense = rs.ModelEvaluator(window=rs.AllEvents(), every=rs.EveryEvents(1))
    scanned = rs.ModelEvaluator(
        window=rs.AllEvents(), every=rs.EveryEvents(1), measures=("h", "average_precision")
    )
    assert [r.h for r in dense.update(labels, scores)] == [r.h for r in scanned.update(labels, scores)]
    of_settings.cache_clear()


def test_a_window_without_end_keeps_bridges_once_they_pay_off() -> None:
    rng = np.random.default_rng(5)
    labels, scores = rng.integers(0, 2, 4_000).astype(np.int8), rng.normal(size=4_000)
    settings = rs.EvaluatorSettings(window=rs.AllEvents(), every=rs.EveryEvents(10))
    results = []
    for cuts in (np.array([], int), np.arange(37, 4_000, 37)):
        ranking = TreeRanking(settings, NO_LABELS, NO_SCORES)
        results.append(rows_of(ranking, labels, scores, 10, cuts)[0].tobytes())
        assert ranking._window.tree.keeps_hull
    scanned = rows_of(SortedRanking(settings, NO_LABELS, NO_SCORES), labels, scores, 10, np.array([], int))
    names = [name in (settings.measures or ()) or name not in MEASURES for name in NUMBER_COLUMNS]
    tree = np.frombuffer(results[0]).reshape(-1, len(NUMBER_COLUMNS))
    assert results[0] == results[1]
    assert tree[:, names].tobytes() == scanned[0][:, names].tobytes()
