"""Queries of the hull: the KS statistic, and the threshold of a cost."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels.compile import inlined, kernel
from ..kernels.records import at, whole
from .layout import FLAT, NEAR, UNDERFLOW, Forest, are_counts, is_steeper, root_run


@inlined
def is_beyond(value: float, share: float, of: int) -> bool:
    """Whether a point ends the search: past a FPR (of = 0), or at a TPR (of = 1), but for rounding."""
    return value * FLAT > share if of == 0 else value >= share * FLAT


@inlined
def best_advantage(pool: Any, run: Any, tp: float, fp: float, n: float, p: float) -> float:
    """Return the greatest TP n - FP p of thresholds at vertices of a run; tp and fp lie above the run."""
    best = -np.inf
    for i in range(whole(run.edge_count) - 1, -1, -1):
        edge = pool[at(run.edges + i)]
        tp += edge.mass[1]
        fp += edge.mass[0]
        best = max(best, tp * n - fp * p)
    return best


@kernel
def last_on_chord(tree: Forest, equal: float) -> float:
    """Return the largest score with TPR >= FPR * equal, of a window whose hull is its chord.

    The tolerance is a share of FPR. So if any point of a run passes, a vertex of the run's hull passes. With
    a fixed tolerance, light events above a heavy event could pass although no vertex passed.
    """
    state = tree.state[0]
    n, p = root_run(tree).mass[0], root_run(tree).mass[1] * equal
    tp = fp = 0.0
    place = state.root
    for level in range(state.height, 0, -1):
        node = tree.nodes[at(place)]
        runs = tree.node_runs if level > 1 else tree.leaf_runs
        index = whole(node.count) - 1
        while index > 0:
            child = runs[at(node.child[at(index)])]
            if best_advantage(tree.pool, child, tp, fp, n, p) >= 0.0:
                break
            tp += child.mass[1]
            fp += child.mass[0]
            index -= 1
        place = whole(node.child[at(index)])
    leaf = tree.leaves[at(place)]
    for slot in range(whole(leaf.count) - 1, 0, -1):
        tp += leaf.mass[1, at(slot)]
        fp += leaf.mass[0, at(slot)]
        if tp * n - fp * p >= 0.0:
            return leaf.key[at(slot)]
    return leaf.key[0]


@kernel
def is_steeper_than_chord(tree: Forest, edge: Any) -> tuple[bool, bool]:
    """Return whether an edge rises more steeply than the chord, and whether rounding may have decided.

    If all masses are counts of a unit, whole numbers decide.
    """
    run = root_run(tree)
    edge_n, edge_p, n, p = edge.mass[0], edge.mass[1], run.mass[0], run.mass[1]
    if is_steeper(edge_n * (1.0 + NEAR), edge_p, n, p):
        return True, False
    if not is_steeper(edge_n, edge_p * (1.0 + NEAR), n, p):
        return False, False
    if are_counts(tree):
        unit = tree.state[0].unit
        here = np.rint(edge_p / unit[1]) * np.rint(n / unit[0])  # below 2^40: floats are exact
        return here > np.rint(p / unit[1]) * np.rint(edge_n / unit[0]), False
    return is_steeper(edge_n, edge_p, n, p), True


@kernel
def kolmogorov_smirnov(tree: Forest) -> tuple[float, float, bool]:
    """Return the greatest TPR - FPR, at least 0, the largest score that attains it, and whether in doubt.

    In doubt means: rounding may have chosen the score, or a hull pooled slopes that differ by less than FLAT.
    Needs fresh sums.
    """
    run = root_run(tree)
    n, p = run.mass[0], run.mass[1]
    tp = fp = 0.0
    threshold = np.nan
    doubt = False
    for i in range(whole(run.edge_count) - 1, -1, -1):
        edge = tree.pool[at(run.edges + i)]
        if i == 0:  # the curve ends where TPR = FPR: the last edge rises no more steeply than the chord
            break
        here, there = edge.mass[1] * n, p * edge.mass[0]
        if (there >= here * (1.0 - NEAR)) | (here < UNDERFLOW):
            steeper, unsure = is_steeper_than_chord(tree, edge)
            doubt |= unsure
            if not steeper:
                break
        tp += edge.mass[1]
        fp += edge.mass[0]
        threshold = edge.key
    if np.isnan(threshold):
        if not are_counts(tree):  # does the chord hide a point just off it?
            doubt |= last_on_chord(tree, 1.0 - NEAR) != run.low
        return 0.0, last_on_chord(tree, FLAT), doubt
    return min(1.0, tp / p - fp / n), threshold, doubt


@kernel
def cost_threshold(tree: Forest, cost: float, scale_n: float, scale_p: float) -> tuple[float, bool]:
    """Return the smallest score whose calibrated probability reaches a cost, else +inf, and whether in doubt.

    scale_n, scale_p: factors that bring the masses of both classes to one scale.
    """
    run = root_run(tree)
    doubt = False
    for i in range(whole(run.edge_count)):
        edge = tree.pool[at(run.edges + i)]
        n, p = edge.mass[0] * scale_n, edge.mass[1] * scale_p
        enough = cost * (n + p)
        if p >= (1.0 - NEAR) * enough:
            doubt |= (p < (1.0 + NEAR) * enough) and not are_counts(tree)
            if p >= FLAT * enough:
                return edge.key, doubt
    return np.inf, doubt
