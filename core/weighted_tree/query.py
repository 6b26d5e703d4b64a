"""Queries of a WeightedTree.

A query is one descent, O(log k) once the sums are fresh, or a pass over the hull, O(edges).

A mass above a threshold is summed from above, a mass below it from below. So small masses are not
differences of large masses. Masses are in the scale in which they are held (`layout`).
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels.compile import entry, inlined, kernel
from ..kernels.records import at, whole
from .layout import (
    FLAT,
    LARGEST_FLOAT,
    MASSES,
    NEAR,
    NO_ID,
    REACH_LEAST,
    REACH_POWER,
    UNDERFLOW,
    Forest,
    are_counts,
    child_of,
    is_steeper,
    mass_of,
    parts_of,
    root_run,
    run_of,
    slot_of,
)
from .sums import in_units, moved, refresh


@inlined
def is_beyond(value: float, share: float, of: int) -> bool:
    """Return whether a point of the ROC curve ends the search.

    It lies past a FPR (of = 0) or has reached a TPR (of = 1), allowing for rounding.
    """
    return value * FLAT > share if of == 0 else value >= share * FLAT


@inlined
def best_advantage(pool: Any, run: Any, tp: float, fp: float, n: float, p: float) -> float:
    """Return the greatest TP n - FP p of the thresholds at the vertices of a run.

    `tp` and `fp` are the masses above the run.
    """
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
    place, index = state.root, whole(0)
    for level in range(state.height, -1, -1):
        index = parts_of(tree, level, place) - 1
        while index > 0:
            more_fp, more_tp = mass_of(tree, level, place, index, 0), mass_of(tree, level, place, index, 1)
            if level > 0:
                child = run_of(tree, level - 1, whole(tree.nodes[at(place)].child[at(index)]))
                advantage = best_advantage(tree.pool, child, tp, fp, n, p)
            else:
                advantage = (tp + more_tp) * n - (fp + more_fp) * p
            if advantage >= 0.0:
                break
            tp += more_tp
            fp += more_fp
            index -= 1
        if level > 0:
            place = whole(tree.nodes[at(place)].child[at(index)])
    return tree.leaves[at(place)].key[at(index)]


@kernel
def is_steeper_than_chord(tree: Forest, edge: Any) -> tuple[bool, bool]:
    """Return whether an edge rises more steeply than the chord, and whether rounding may have decided that.

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
    """Return the greatest TPR - FPR, at least 0, the largest score that attains it, and a doubt.

    The doubt is True if rounding may have chosen the score, or a hull pooled slopes that differ by less than
    FLAT. Needs fresh sums.
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
        if not are_counts(tree):  # the chord may hide a point just below it
            doubt |= last_on_chord(tree, 1.0 - NEAR) != run.low
        return 0.0, last_on_chord(tree, FLAT), doubt
    return min(1.0, tp / p - fp / n), threshold, doubt


@kernel
def cost_threshold(tree: Forest, cost: float, scale_n: float, scale_p: float) -> tuple[float, bool]:
    """Return the smallest score whose calibrated probability reaches a cost, else +inf, and a doubt.

    The doubt is True if rounding may have chosen the score. scale_n, scale_p: factors that bring the masses
    of both classes to one scale.
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


SLIGHT = 2.0**-48
"""A bound on how rounded sums of one window differ between trees of different shapes: some 30 additions."""


@entry
def masses_around(tree: Forest, score: float) -> tuple[float, float, float, float, float]:
    """Return five masses around a score.

    The masses of negatives below, positives below, positives above, negatives tied, positives tied.
    """
    refresh(tree, MASSES)
    state = tree.state[0]
    below_n = below_p = above_p = 0.0
    place = state.root
    for level in range(state.height, 0, -1):
        node = tree.nodes[at(place)]
        runs = tree.node_runs if level > 1 else tree.leaf_runs
        index = child_of(node, score)
        for i in range(index):
            child = runs[at(node.child[i])]
            below_n += child.mass[0]
            below_p += child.mass[1]
        for i in range(index + 1, node.count):
            above_p += runs[at(node.child[i])].mass[1]
        place = whole(node.child[at(index)])
    leaf = tree.leaves[at(place)]
    slot = slot_of(leaf, score)
    for i in range(slot):
        below_n += leaf.mass[0, i]
        below_p += leaf.mass[1, i]
    tied_n = tied_p = 0.0
    if slot < leaf.count and leaf.key[at(slot)] == score:
        tied_n = leaf.mass[0, at(slot)]
        tied_p = leaf.mass[1, at(slot)]
        slot += 1
    for i in range(slot, leaf.count):
        above_p += leaf.mass[1, i]
    return below_n, below_p, above_p, tied_n, tied_p


@kernel
def placement(tree: Forest, label: int, score: float) -> float:
    """Return the share of the other class that an event is ranked right against, ties half."""
    below_n, _, above_p, tied_n, tied_p = masses_around(tree, score)
    if label != 0:
        others = root_run(tree).mass[0]
        return min(1.0, (below_n + 0.5 * tied_n) / others) if others > 0.0 else np.nan
    others = root_run(tree).mass[1]
    return min(1.0, (above_p + 0.5 * tied_p) / others) if others > 0.0 else np.nan


@kernel
def point_of_roc(tree: Forest, share: float, of: int) -> tuple[float, bool]:
    """Return the TPR at a FPR (of = 0), or the FPR at a TPR (of = 1), of a window with both classes.

    The second result says whether the first is in doubt: rounding may have chosen the point, or decide 1e-13
    of it. The curve is linear between ROC points. At a FPR: the upper end of a vertical step; at a TPR: the
    left end.
    """
    state = tree.state[0]
    root = root_run(tree)
    whole_of, whole_other = root.mass[at(of)], root.mass[at(1 - of)]
    if (of == 1) & (share <= 0.0):
        return 0.0, False
    reached = other = 0.0
    place = state.root
    for level in range(state.height, -1, -1):
        index = parts_of(tree, level, place) - 1
        while True:
            mass, rise = mass_of(tree, level, place, index, of), mass_of(tree, level, place, index, 1 - of)
            found = is_beyond((reached + mass) / whole_of, share, of)
            if found | (index == 0):
                break
            reached += mass
            other += rise
            index -= 1
        if level > 0:
            place = whole(tree.nodes[at(place)].child[at(index)])
    if not found:
        reached += mass
        return min(1.0, (other + rise) / whole_other), reached * FLAT * (1.0 + SLIGHT) > share * whole_of
    part = min(1.0, max(0.0, (share * whole_of - reached) / mass))
    doubt = is_beyond(reached * (1.0 + SLIGHT) / whole_of, share, of)
    doubt |= not is_beyond((reached + mass) * (1.0 - SLIGHT) / whole_of, share, of)
    # The slope is so steep that the rounding of `share` shows in the result.
    doubt |= (SLIGHT * whole_of) * rise > (1e-13 * mass) * whole_other
    return min(1.0, (other + part * rise) / whole_other), doubt


@kernel
def crossing(tree: Forest, scale_n: float, scale_p: float) -> float:
    """Return the smallest score with positives up to it >= negatives above it, else the largest score.

    The mass above is summed from above, into the scratch. If it were the whole mass less the mass below,
    rounding would lose it beside large weights below.
    """
    state = tree.state[0]
    above = below = 0.0
    place, index = state.root, whole(0)
    for level in range(state.height, -1, -1):
        last = parts_of(tree, level, place) - 1
        for i in range(last, -1, -1):
            tree.scratch[at(i)].key = above
            above += mass_of(tree, level, place, i, 0)
        index = whole(0)
        while index < last:
            more = mass_of(tree, level, place, index, 1)
            if (below + more) * scale_p >= tree.scratch[at(index)].key * scale_n:
                break
            below += more
            index += 1
        above = tree.scratch[at(index)].key
        if level > 0:
            place = whole(tree.nodes[at(place)].child[at(index)])
    return tree.leaves[at(place)].key[at(index)]


@kernel
def areas(tree: Forest, middle: float, power: int) -> tuple[float, float]:
    """Return the two parts of AUM, in units of 2^power: the negatives above a score, the positives below."""
    state = tree.state[0]
    area_n = area_p = 0.0
    place = state.root
    for level in range(state.height, 0, -1):
        node = tree.nodes[at(place)]
        runs = tree.node_runs if level > 1 else tree.leaf_runs
        index = child_of(node, middle)
        for i in range(node.count):
            child = runs[at(node.child[i])]
            if i < index:
                area_p += in_units(child.reach[1], child.reach_power[1], power)
                area_p += moved(child.mass[1], child.high, middle, power)
            elif i > index:
                area_n += in_units(child.reach[0], child.reach_power[0], power)
                area_n += moved(child.mass[0], middle, child.low, power)
        place = whole(node.child[at(index)])
    leaf = tree.leaves[at(place)]
    for slot in range(leaf.count):
        key = leaf.key[slot]
        if key < middle:
            area_p += moved(leaf.mass[1, slot], key, middle, power)
        else:
            area_n += moved(leaf.mass[0, slot], middle, key, power)
    return area_n, area_p


@kernel
def area_under_min(tree: Forest, scale_n: float, scale_p: float) -> tuple[float, int]:
    """Return AUM, the area under min(FP, FN) over thresholds (Hocking & Hillman 2021). Needs fresh sums.

    The curves cross at one score: positives below this score and negatives above it add their distances.
    AUM is the first number * 2^(the second). Scores may lie so far apart, or so near, that AUM is no float
    in the scale of the masses but is a float in the scale of the row.
    """
    middle = crossing(tree, scale_n, scale_p)
    power, step = whole(0), whole(0)
    while True:
        power += step
        area_n, area_p = areas(tree, middle, power)
        area = area_n * scale_n + area_p * scale_p
        if (area > LARGEST_FLOAT) & (step == 0):
            step = whole(REACH_POWER)
        elif (area < REACH_LEAST) & (step <= 0) & (power > -2 * REACH_POWER):
            step = whole(-REACH_POWER)
        else:
            return area, power


@entry
def score_at_positives(tree: Forest, mass: float, from_above: bool, strictly: bool) -> float:
    """Return the first score, from one end, at which the positives have reached `mass`; NaN if none does.

    strictly: the mass must exceed `mass`.
    """
    refresh(tree, MASSES)
    state = tree.state[0]
    total = root_run(tree).mass[1]
    if (total < mass) | (total == 0.0) | (strictly & (total == mass)):
        return np.nan
    step = whole(-1) if from_above else whole(1)
    reached = 0.0
    place, found = state.root, whole(NO_ID)
    for level in range(state.height, -1, -1):
        index = parts_of(tree, level, place) - 1 if from_above else whole(0)
        last = parts_of(tree, level, place) - 1 - index
        while True:
            more = mass_of(tree, level, place, index, 1)
            if more > 0.0:
                found = index
                if (reached + more > mass) | ((reached + more == mass) & (not strictly)):
                    break
            # the parent's sum reached the mass, but by rounding this sum does not: take the last
            if index == last:
                mass = np.inf
                break
            reached += more
            index += step
        if level > 0:
            place = whole(tree.nodes[at(place)].child[at(found)])
    return tree.leaves[at(place)].key[at(found)]


@entry
def crossing_of_class(tree: Forest, label: int, mass: float) -> tuple[float, float, float, float, float]:
    """Return the first score, from the highest down, at which a class sums to more than `mass`.

    Also return the masses of the class and of the other class, above the score and tied with it, as in a
    MassCrossing. The score is NaN if the whole mass is no more than `mass`. Masses are summed from above, so
    small masses keep their digits. If the sums of a node and of its parts round to both sides of `mass`, the
    score is the class's last in that part.
    """
    refresh(tree, MASSES)
    state = tree.state[0]
    total = root_run(tree).mass[at(label)]
    if (total <= mass) | (total == 0.0):
        return np.nan, 0.0, 0.0, 0.0, 0.0
    own = other = 0.0
    place, found = state.root, whole(NO_ID)
    for level in range(state.height, -1, -1):
        own_found = other_found = 0.0
        for index in range(parts_of(tree, level, place) - 1, -1, -1):
            more = mass_of(tree, level, place, index, label)
            if more > 0.0:
                found, own_found, other_found = index, own, other
                if own + more > mass:
                    break
            own += more
            other += mass_of(tree, level, place, index, 1 - label)
        own, other = own_found, other_found
        if level > 0:
            place = whole(tree.nodes[at(place)].child[at(found)])
    leaf = tree.leaves[at(place)]
    tied, other_tied = leaf.mass[at(label), at(found)], leaf.mass[at(1 - label), at(found)]
    return leaf.key[at(found)], own, other, tied, other_tied
