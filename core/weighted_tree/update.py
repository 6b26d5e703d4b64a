"""Inserts one event into a WeightedTree, or removes one.

An update takes O(log k): a descent, one leaf, now and then a split.

An update sums nothing. It marks the path to the leaf as stale, and the next query sums the path again. A full
leaf or node splits into halves. Two neighbours under one parent that have become small are merged. Splits and
merges do not change the multiset.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..kernels.compile import inlined, kernel, scanning
from ..kernels.records import at, whole
from .balance import move_entry, shrink_leaf, split_leaf
from .layout import (
    LARGEST,
    LOSS_ALLOWED,
    MERGED_LEAF,
    NO_ID,
    ROOM_AHEAD,
    SLOTS,
    SMALLEST,
    STALE,
    TIE_ROUNDING,
    Forest,
    begin_tie,
    child_of,
    common_unit,
    count_event,
    slot_of,
)

DONE = 0
NEEDS_ROOM = 1
NEEDS_TIED = 2
NEEDS_SCALE = 3
NEEDS_POOL = 4
NEEDS_REBUILD = 5
MISSING = 6


@scanning
def exponent_of(weight: float) -> int:
    """Return the even exponent e such that weight * 2^-e lies in [1, 4)."""
    exponent = whole(math.frexp(weight)[1]) - 1
    return exponent - (exponent & 1)


@kernel
def set_exponent(tree: Forest, label: int, exponent: int) -> None:
    """Set the exponent of a class: its masses are held as weight * 2^-exponent. The class must be empty."""
    state = tree.state[0]
    state.exponent[label] = exponent
    state.factor[label] = math.ldexp(1.0, int(-(exponent >> 1)))
    state.lost[label] = 0.0
    state.lost_squares[label] = 0.0
    state.unit[label] = 0.0


@inlined
def descend(tree: Forest, score: float) -> int:
    """Return the leaf in which a score belongs; store the path to the leaf and mark the path as stale."""
    state = tree.state[0]
    place = state.root
    for level in range(state.height, 0, -1):
        node = tree.nodes[at(place)]
        tree.node_runs[at(place)].state = STALE
        index = child_of(node, score)
        tree.path[0, level] = place
        tree.path[1, level] = index
        place = whole(node.child[at(index)])
    tree.leaf_runs[at(place)].state = STALE
    return place


@inlined
def place_entry(tree: Forest, index: int, slot: int, label: int, score: float, mass: float) -> None:
    """Insert a new entry, of one event, into a leaf that has room."""
    leaf = tree.leaves[at(index)]
    for i in range(leaf.count, slot, -1):
        move_entry(leaf, i - 1, leaf, i)
    leaf.key[at(slot)] = score
    leaf.mass[at(label), at(slot)] = mass
    leaf.mass[at(1 - label), at(slot)] = 0.0
    leaf.tied[at(slot)] = NO_ID
    leaf.count += 1


@inlined
def drop_entry(tree: Forest, index: int, slot: int) -> None:
    """Remove an entry without events from a leaf."""
    leaf = tree.leaves[at(index)]
    last = whole(leaf.count) - 1
    for i in range(slot, last):
        move_entry(leaf, i + 1, leaf, i)
    leaf.key[at(last)] = np.inf
    leaf.count = last


@kernel
def join_tie(tree: Forest, leaf: Any, slot: int, label: int, mass: float) -> None:
    """Add an event to an entry that already has events of the same class."""
    state = tree.state[0]
    index = whole(leaf.tied[at(slot)])
    if index == NO_ID:
        state.free_tied -= 1
        index = whole(tree.free_tied[at(state.free_tied)])
        leaf.tied[at(slot)] = index
        for c in range(2):
            begin_tie(tree.tied[at(index)], c, leaf.mass[c, at(slot)])
    tie = tree.tied[at(index)]
    total = count_event(tie, label, leaf.mass[at(label), at(slot)], mass, 1)
    leaf.mass[at(label), at(slot)] = total
    if tie.events[at(label)] > 1:
        tie.lost[at(label)] += TIE_ROUNDING * total
        state.lost[at(label)] += TIE_ROUNDING * total
        state.lost_squares[at(label)] += TIE_ROUNDING * tie.squares[at(label)]


@kernel
def leave_tie(tree: Forest, leaf: Any, slot: int, label: int, mass: float) -> None:
    """Remove an event from an entry that has a record of TIED."""
    state = tree.state[0]
    index = whole(leaf.tied[at(slot)])
    tie = tree.tied[at(index)]
    if tie.events[at(label)] == 1:
        leaf.mass[at(label), at(slot)] = 0.0
        begin_tie(tie, label, 0.0)
    else:
        loss = TIE_ROUNDING * leaf.mass[at(label), at(slot)]
        tie.lost[at(label)] += loss
        state.lost[at(label)] += loss
        state.lost_squares[at(label)] += TIE_ROUNDING * tie.squares[at(label)]
        total = count_event(tie, label, leaf.mass[at(label), at(slot)], mass, -1)
        leaf.mass[at(label), at(slot)] = max(total, SMALLEST)
        if tie.lost[at(label)] > LOSS_ALLOWED * total:
            state.spoiled = 1
    if (tie.events[0] <= 1) & (tie.events[1] <= 1):
        leaf.tied[at(slot)] = NO_ID
        tree.free_tied[at(state.free_tied)] = index
        state.free_tied += 1


@kernel
def insert(tree: Forest, label: int, score: float, weight: float) -> int:
    """Add an event; return DONE, or the code of what must be done before; the tree is then unchanged."""
    state = tree.state[0]
    if (state.free_leaves < 2) | (state.free_nodes < ROOM_AHEAD):
        return NEEDS_ROOM
    if state.free_tied < 1:
        return NEEDS_TIED
    if state.events[at(label)] == 0:
        set_exponent(tree, label, exponent_of(weight))
    factor = state.factor[at(label)]
    mass = weight * factor * factor
    if mass > LARGEST:
        return NEEDS_SCALE
    mass = max(mass, SMALLEST)
    unit = state.unit[at(label)]
    if state.events[at(label)] == 0:
        state.unit[at(label)] = mass
    elif (unit != 0.0) & (unit != mass):
        state.unit[at(label)] = common_unit(unit, mass)
    state.changes += 1
    index = descend(tree, score)
    leaf = tree.leaves[at(index)]
    slot = slot_of(leaf, score)
    if (slot < leaf.count) and leaf.key[at(slot)] == score:
        if (leaf.tied[at(slot)] == NO_ID) & (leaf.mass[at(label), at(slot)] == 0.0):
            leaf.mass[at(label), at(slot)] = mass
        else:
            join_tie(tree, leaf, slot, label, mass)
    else:
        if leaf.count == SLOTS:
            right = split_leaf(tree, index)
            if slot > SLOTS // 2:
                index = right
                slot -= SLOTS // 2
        place_entry(tree, index, slot, label, score, mass)
        state.entries += 1
    state.events[at(label)] += 1
    return DONE


@kernel
def remove(tree: Forest, label: int, score: float, weight: float) -> int:
    """Remove an event of this label and score, and the weight with which it entered.

    Return DONE or MISSING.
    """
    state = tree.state[0]
    state.changes += 1
    index = descend(tree, score)
    leaf = tree.leaves[at(index)]
    slot = slot_of(leaf, score)
    if slot == leaf.count or leaf.key[at(slot)] != score or leaf.mass[at(label), at(slot)] == 0.0:
        return MISSING
    if leaf.tied[at(slot)] == NO_ID:
        leaf.mass[at(label), at(slot)] = 0.0
    else:
        factor = state.factor[at(label)]
        leave_tie(tree, leaf, slot, label, max(weight * factor * factor, SMALLEST))
    if leaf.mass[at(1 - label), at(slot)] + leaf.mass[at(label), at(slot)] == 0.0:
        drop_entry(tree, index, slot)
        state.entries -= 1
        if leaf.count <= MERGED_LEAF // 2:  # half of the largest number of entries at which two leaves merge
            shrink_leaf(tree, index)
    state.events[at(label)] -= 1
    return DONE
