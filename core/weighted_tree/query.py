"""Queries of a WeightedTree, each by one descent. O(log k) once the sums are fresh.

A mass above a threshold is summed from above, a mass below it from below. So small masses are not
differences of large masses. Masses are in the scale in which they are held (`layout`).
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import numpy as np

from ..kernels.compile import entry, kernel
from ..kernels.records import at, whole
from .hull import is_beyond
from .layout import (
    FLAT,
    LARGEST_FLOAT,
    MASSES,
    NO_ID,
    REACH_LEAST,
    REACH_POWER,
    Forest,
    child_of,
    root_run,
    slot_of,
)
from .sums import in_units, moved, refresh

SLIGHT = 2.0**-48
"""A bound on how rounded sums of one window differ between trees of different shapes: some 30 additions."""


@entry
def masses_around(tree: Forest, score: float) -> tuple[float, float, float, float, float]:
    """Return the masses of negatives below a score, positives below, positives above, and each class tied."""
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
    of it. Linear between ROC points. At a FPR: the upper end of a vertical step; at a TPR: the left end.
    """
    state = tree.state[0]
    root = root_run(tree)
    whole_of, whole_other = root.mass[at(of)], root.mass[at(1 - of)]
    if (of == 1) & (share <= 0.0):
        return 0.0, False
    reached = other = 0.0
    place = state.root
    for level in range(state.height, 0, -1):
        node = tree.nodes[at(place)]
        runs = tree.node_runs if level > 1 else tree.leaf_runs
        index = whole(node.count) - 1
        while index > 0:
            child = runs[at(node.child[at(index)])]
            if is_beyond((reached + child.mass[at(of)]) / whole_of, share, of):
                break
            reached += child.mass[at(of)]
            other += child.mass[at(1 - of)]
            index -= 1
        place = whole(node.child[at(index)])
    leaf = tree.leaves[at(place)]
    for slot in range(whole(leaf.count) - 1, -1, -1):
        mass = leaf.mass[at(of), at(slot)]
        if is_beyond((reached + mass) / whole_of, share, of) and mass > 0.0:
            part = min(1.0, max(0.0, (share * whole_of - reached) / mass))
            rise = leaf.mass[at(1 - of), at(slot)]
            doubt = is_beyond(reached * (1.0 + SLIGHT) / whole_of, share, of)
            doubt |= not is_beyond((reached + mass) * (1.0 - SLIGHT) / whole_of, share, of)
            # The slope is so steep that rounding of the share that was given shows in the result.
            doubt |= (SLIGHT * whole_of) * rise > (1e-13 * mass) * whole_other
            return min(1.0, (other + part * rise) / whole_other), doubt
        reached += mass
        other += leaf.mass[at(1 - of), at(slot)]
    return min(1.0, other / whole_other), reached * FLAT * (1.0 + SLIGHT) > share * whole_of


@kernel
def crossing(tree: Forest, scale_n: float, scale_p: float) -> float:
    """Return the smallest score with positives up to it >= negatives above it, else the largest score.

    The mass above is summed from above, into the scratch. If it were the whole mass less the mass below,
    rounding would lose it beside large weights below.
    """
    state = tree.state[0]
    above = below = 0.0
    place = state.root
    for level in range(state.height, 0, -1):
        node = tree.nodes[at(place)]
        runs = tree.node_runs if level > 1 else tree.leaf_runs
        last = whole(node.count) - 1
        for i in range(last, -1, -1):
            tree.scratch[at(i)].key = above
            above += runs[at(node.child[at(i)])].mass[0]
        index = whole(0)
        while index < last:
            more = runs[at(node.child[at(index)])].mass[1]
            if (below + more) * scale_p >= tree.scratch[at(index)].key * scale_n:
                break
            below += more
            index += 1
        above = tree.scratch[at(index)].key
        place = whole(node.child[at(index)])
    leaf = tree.leaves[at(place)]
    for slot in range(whole(leaf.count) - 1, -1, -1):
        tree.scratch[at(slot)].key = above
        above += leaf.mass[0, at(slot)]
    for slot in range(leaf.count):
        below += leaf.mass[1, slot]
        if below * scale_p >= tree.scratch[at(slot)].key * scale_n:
            return leaf.key[slot]
    return leaf.key[at(leaf.count - 1)]


@kernel
def areas(tree: Forest, middle: float, power: int) -> tuple[float, float]:
    """Return the parts of AUM of negatives above a score and of positives below it, in units of 2^power."""
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
    """Return the first score of a positive, from one end, at which their mass reaches `mass`; else NaN.

    strictly: exceeds `mass`.
    """
    refresh(tree, MASSES)
    state = tree.state[0]
    total = root_run(tree).mass[1]
    if (total < mass) | (total == 0.0) | (strictly & (total == mass)):
        return np.nan
    step = whole(-1) if from_above else whole(1)
    reached = 0.0
    place = state.root
    for level in range(state.height, 0, -1):
        node = tree.nodes[at(place)]
        runs = tree.node_runs if level > 1 else tree.leaf_runs
        index = whole(node.count) - 1 if from_above else whole(0)
        last = whole(node.count) - 1 - index
        found = whole(NO_ID)
        while True:
            more = runs[at(node.child[at(index)])].mass[1]
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
        place = whole(node.child[at(found)])
    leaf = tree.leaves[at(place)]
    slot = whole(leaf.count) - 1 if from_above else whole(0)
    score = np.nan
    while (slot >= 0) & (slot < leaf.count):
        more = leaf.mass[1, at(slot)]
        if more > 0.0:
            reached += more
            score = leaf.key[at(slot)]
            if (reached > mass) | ((reached == mass) & (not strictly)):
                break
        slot += step
    return score


@entry
def crossing_of_class(tree: Forest, label: int, mass: float) -> tuple[float, float, float, float, float]:
    """Return the first score, from the highest down, at which a class sums to more than `mass`.

    With it go the masses of the class and of the other class, above the score and tied with it, as in a
    MassCrossing. The score is NaN if the whole mass is no more than `mass`. Masses are summed from above, so
    small masses keep their digits. If the sums of a node and of its parts round to both sides of `mass`, the
    score is the class's last in that part.
    """
    refresh(tree, MASSES)
    state = tree.state[0]
    found_here = (np.nan, 0.0, 0.0, 0.0, 0.0)
    if root_run(tree).mass[at(label)] <= mass:
        return found_here
    own = other = 0.0
    place = state.root
    for level in range(state.height, 0, -1):
        node = tree.nodes[at(place)]
        runs = tree.node_runs if level > 1 else tree.leaf_runs
        found = whole(NO_ID)
        own_found = other_found = 0.0
        for index in range(whole(node.count) - 1, -1, -1):
            child = runs[at(node.child[at(index)])]
            more = child.mass[at(label)]
            if more > 0.0:
                found, own_found, other_found = index, own, other
                if own + more > mass:
                    break
            own += more
            other += child.mass[at(1 - label)]
        own, other = own_found, other_found
        place = whole(node.child[at(found)])
    leaf = tree.leaves[at(place)]
    for slot in range(whole(leaf.count) - 1, -1, -1):
        tied, other_tied = leaf.mass[at(label), at(slot)], leaf.mass[at(1 - label), at(slot)]
        if tied > 0.0:
            found_here = (leaf.key[at(slot)], own, other, tied, other_tied)
            if own + tied > mass:
                break
        own += tied
        other += other_tied
    return found_here
