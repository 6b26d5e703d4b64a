"""Kernels of single queries of a tree, for what no row asks."""

from __future__ import annotations

from typing import Any

from ..kernels.compile import entry
from ..kernels.records import whole
from .exponents import common_exponent, times_power, wants_rebuild
from .hull import cost_threshold, kolmogorov_smirnov
from .layout import FRESH, MASSES, Forest, root_run
from .query import (
    area_under_min,
    crossing_of_class,
    masses_around,
    placement,
    point_of_roc,
    score_at_positives,
)
from .sums import refresh
from .update import DONE

ASK_AUC, ASK_TPR, ASK_FPR, ASK_COST, ASK_AUM, ASK_KS, ASK_REBUILD = range(7)


@entry
def answer(tree: Forest, question: int, values: Any, out: Any) -> int:
    """Answer one question for each value; return DONE, or the code of what is needed first."""
    code = refresh(tree, MASSES if question == ASK_REBUILD else FRESH)
    if code != DONE:
        return code
    state = tree.state[0]
    run = root_run(tree)
    if question == ASK_REBUILD:
        out[0] = 1.0 if wants_rebuild(tree) else 0.0
        return DONE
    top = common_exponent(tree)
    scale_n = times_power(1.0, state.exponent[0] - top)
    scale_p = times_power(1.0, state.exponent[1] - top)
    if question == ASK_AUC:
        out[0] = min(1.0, run.pairs / run.mass[0] / run.mass[1])
    elif question == ASK_KS:
        out[0], out[1], _ = kolmogorov_smirnov(tree)
    elif question == ASK_AUM:
        area, power = area_under_min(tree, scale_n, scale_p)
        out[0] = times_power(area, top + power)
    else:
        for i in range(len(values)):
            if question == ASK_COST:
                out[i], _ = cost_threshold(tree, values[i], scale_n, scale_p)
            else:
                out[i], _ = point_of_roc(tree, values[i], whole(1) if question == ASK_FPR else whole(0))
    return DONE


@entry
def place_scores(tree: Forest, labels: Any, scores: Any, out: Any) -> int:
    """Fill `out` with the placement of each event among the events in the tree; return DONE."""
    refresh(tree, MASSES)
    for i in range(len(scores)):
        out[i] = placement(tree, whole(labels[i]), scores[i] + 0.0)
    return DONE


@entry
def sum_below(tree: Forest, scores: Any, out: Any) -> int:
    """Fill `out` with the masses held of negatives and positives strictly below each score; return DONE."""
    refresh(tree, MASSES)
    for i in range(len(scores)):
        below_n, below_p, _, _, _ = masses_around(tree, scores[i] + 0.0)
        out[i, 0] = below_n
        out[i, 1] = below_p
    return DONE


@entry
def reach_positives(tree: Forest, masses: Any, from_above: bool, strictly: bool, out: Any) -> int:
    """Fill `out` with the first score at which the positives reach each mass held; return DONE."""
    refresh(tree, MASSES)
    for i in range(len(masses)):
        out[i] = score_at_positives(tree, masses[i], from_above, strictly)
    return DONE


@entry
def find_mass_crossing(tree: Forest, label: int, mass: float, out: Any) -> int:
    """Write a MassCrossing in masses held (see `crossing_of_class`); return DONE."""
    refresh(tree, MASSES)
    crossing_of_class(tree, label, mass, out)
    return DONE


@entry
def sum_all(tree: Forest) -> int:
    """Sum all stale parts; return DONE, or the code of what is needed first."""
    return refresh(tree, FRESH)
