"""One event into a WeightedTree or out of it. O(log k): a descent, one leaf, now and then a split.

Nothing is summed here: the path is marked stale, and summed anew when somebody asks. A leaf or node that
is full splits into halves; two neighbours under one parent that have become small are merged. Both leave
the multiset as it is.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..kernels.compile import inlined, kernel, scanning
from ..kernels.records import at, whole
from .layout import (
    FAN,
    LARGEST,
    LOSS_ALLOWED,
    MERGED_LEAF,
    MERGED_NODE,
    NONE,
    ROOM_AHEAD,
    SLOTS,
    SMALLEST,
    STALE,
    TIE_ROUNDING,
    Forest,
    add_to,
    child_of,
    common_unit,
    free_leaf,
    free_node,
    slot_of,
    square_of,
    take_leaf,
    take_node,
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
    """Return the even exponent that brings a weight into [1, 4)."""
    exponent = whole(math.frexp(weight)[1]) - 1
    return exponent - (exponent & 1)


@kernel
def set_exponent(tree: Forest, label: int, exponent: int) -> None:
    """Hold the masses of a class, which has none now, as weight * 2^-exponent."""
    state = tree.state[0]
    state.exponent[label] = exponent
    state.factor[label] = math.ldexp(1.0, int(-(exponent >> 1)))
    state.lost[label] = 0.0
    state.lost_squares[label] = 0.0
    state.unit[label] = 0.0


@inlined
def descend(tree: Forest, score: float) -> int:
    """Return the leaf that has the place of a score; note the path and mark it stale."""
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


@kernel
def hang_child(tree: Forest, key: float, child: int) -> None:
    """Put a new child to the right of the one on the path, from level 1 up; split what is full."""
    state = tree.state[0]
    level = whole(1)
    while True:
        if level > state.height:
            top = take_node(tree)
            node = tree.nodes[at(top)]
            node.child[0] = state.root
            node.key[0] = -np.inf
            node.child[1] = child
            node.key[1] = key
            node.count = 2
            state.root = top
            state.height = level
            return
        node = tree.nodes[at(tree.path[0, level])]
        index = tree.path[1, level] + 1
        if node.count < FAN:
            place_child(node, index, key, child)
            return
        right = take_node(tree)
        other = tree.nodes[at(right)]
        half = FAN // 2
        for i in range(half, FAN):
            other.key[i - half] = node.key[i]
            other.child[i - half] = node.child[i]
            node.key[i] = np.inf
        node.count = half
        other.count = FAN - half
        if index <= half:
            place_child(node, index, key, child)
        else:
            place_child(other, index - half, key, child)
        key = other.key[0]
        child = right
        level += 1


@inlined
def place_child(node: Any, index: int, key: float, child: int) -> None:
    """Put a child into a node that has room."""
    for i in range(node.count, index, -1):
        node.key[at(i)] = node.key[at(i - 1)]
        node.child[at(i)] = node.child[at(i - 1)]
    node.key[at(index)] = key
    node.child[at(index)] = child
    node.count += 1


@inlined
def drop_child(node: Any, index: int) -> None:
    """Take a child out of a node."""
    last = whole(node.count) - 1
    for i in range(index, last):
        node.key[at(i)] = node.key[at(i + 1)]
        node.child[at(i)] = node.child[at(i + 1)]
    node.key[at(last)] = np.inf
    node.count = last


@kernel
def shrink_nodes(tree: Forest) -> None:
    """Merge, drop or lower nodes from level 1 up, after a child of the path's node there went."""
    state = tree.state[0]
    level = whole(1)
    while level <= state.height:
        place = tree.path[0, level]
        node = tree.nodes[at(place)]
        if level == state.height:
            if node.count == 0:
                free_node(tree, place)
                state.root = take_leaf(tree)
                state.height = 0
                return
            while (state.height > 0) & (tree.nodes[at(state.root)].count == 1):
                lower = whole(tree.nodes[at(state.root)].child[0])
                free_node(tree, state.root)
                state.root = lower
                state.height -= 1
            return
        parent = tree.nodes[at(tree.path[0, level + 1])]
        index = tree.path[1, level + 1]
        if node.count == 0:
            free_node(tree, place)
            drop_child(parent, index)
            level += 1
            continue
        left = whole(NONE)
        if index > 0 and tree.nodes[at(parent.child[at(index - 1)])].count + node.count <= MERGED_NODE:
            left = index - 1
        elif (
            index + 1 < parent.count
            and tree.nodes[at(parent.child[at(index + 1)])].count + node.count <= MERGED_NODE
        ):
            left = index
        if left == NONE:
            return
        kept, gone = whole(parent.child[at(left)]), whole(parent.child[at(left + 1)])
        into, out = tree.nodes[at(kept)], tree.nodes[at(gone)]
        begin = whole(into.count)
        for i in range(out.count):
            into.key[at(begin + i)] = out.key[i]
            into.child[at(begin + i)] = out.child[i]
        into.key[at(begin)] = parent.key[at(left + 1)]  # the first one's own may be out of date
        into.count = begin + out.count
        tree.node_runs[at(kept)].state = STALE
        free_node(tree, gone)
        drop_child(parent, left + 1)
        level += 1


@inlined
def move_entries(tree: Forest, source: int, begin: int, target: int) -> None:
    """Move the entries of a leaf from one slot on to the end of another leaf."""
    out, into = tree.leaves[at(source)], tree.leaves[at(target)]
    offset = whole(into.count) - begin
    for slot in range(begin, out.count):
        into.key[at(slot + offset)] = out.key[at(slot)]
        into.mass[0, at(slot + offset)] = out.mass[0, at(slot)]
        into.mass[1, at(slot + offset)] = out.mass[1, at(slot)]
        into.tied[at(slot + offset)] = out.tied[at(slot)]
        out.key[at(slot)] = np.inf
    into.count = out.count + offset
    out.count = begin


@kernel
def split_leaf(tree: Forest, index: int) -> int:
    """Move the upper half of a full leaf into a new one, and return it."""
    new = take_leaf(tree)
    move_entries(tree, index, whole(SLOTS // 2), new)
    hang_child(tree, tree.leaves[at(new)].key[0], new)
    return new


@kernel
def shrink_leaf(tree: Forest, index: int) -> None:
    """Merge a leaf that lost an entry with a neighbour, or drop it if it is empty."""
    if tree.state[0].height == 0:
        return
    count = whole(tree.leaves[at(index)].count)
    parent = tree.nodes[at(tree.path[0, 1])]
    place = tree.path[1, 1]
    left = whole(NONE)
    if place > 0 and tree.leaves[at(parent.child[at(place - 1)])].count + count <= MERGED_LEAF:
        left = place - 1
    elif (
        place + 1 < parent.count and tree.leaves[at(parent.child[at(place + 1)])].count + count <= MERGED_LEAF
    ):
        left = place
    if left != NONE:
        kept, gone = whole(parent.child[at(left)]), whole(parent.child[at(left + 1)])
        move_entries(tree, gone, whole(0), kept)
        tree.leaf_runs[at(kept)].state = STALE
        free_leaf(tree, gone)
        drop_child(parent, left + 1)
    elif count == 0:
        free_leaf(tree, index)
        drop_child(parent, place)
    else:
        return
    shrink_nodes(tree)


@inlined
def place_entry(tree: Forest, index: int, slot: int, label: int, score: float, mass: float) -> None:
    """Put a new entry, of one event, into a leaf that has room."""
    leaf = tree.leaves[at(index)]
    for i in range(leaf.count, slot, -1):
        leaf.key[at(i)] = leaf.key[at(i - 1)]
    for i in range(leaf.count, slot, -1):
        leaf.mass[0, at(i)] = leaf.mass[0, at(i - 1)]
    for i in range(leaf.count, slot, -1):
        leaf.mass[1, at(i)] = leaf.mass[1, at(i - 1)]
    for i in range(leaf.count, slot, -1):
        leaf.tied[at(i)] = leaf.tied[at(i - 1)]
    leaf.key[at(slot)] = score
    leaf.mass[at(label), at(slot)] = mass
    leaf.mass[at(1 - label), at(slot)] = 0.0
    leaf.tied[at(slot)] = NONE
    leaf.count += 1


@inlined
def drop_entry(tree: Forest, index: int, slot: int) -> None:
    """Take an entry without events out of a leaf."""
    leaf = tree.leaves[at(index)]
    last = whole(leaf.count) - 1
    for i in range(slot, last):
        leaf.key[at(i)] = leaf.key[at(i + 1)]
    for i in range(slot, last):
        leaf.mass[0, at(i)] = leaf.mass[0, at(i + 1)]
    for i in range(slot, last):
        leaf.mass[1, at(i)] = leaf.mass[1, at(i + 1)]
    for i in range(slot, last):
        leaf.tied[at(i)] = leaf.tied[at(i + 1)]
    leaf.key[at(last)] = np.inf
    leaf.count = last


@kernel
def join_tie(tree: Forest, leaf: Any, slot: int, label: int, mass: float) -> None:
    """Add an event to an entry that has others of its class."""
    state = tree.state[0]
    index = whole(leaf.tied[at(slot)])
    if index == NONE:
        state.free_tied -= 1
        index = whole(tree.free_tied[at(state.free_tied)])
        leaf.tied[at(slot)] = index
        fresh = tree.tied[at(index)]
        for c in range(2):
            held = leaf.mass[c, at(slot)]
            fresh.events[c] = 1 if held > 0.0 else 0
            fresh.rest[c] = 0.0
            fresh.lost[c] = 0.0
            square, rest = square_of(held)
            fresh.squares[c] = square
            fresh.squares_rest[c] = rest
    tie = tree.tied[at(index)]
    total, rest = add_to(leaf.mass[at(label), at(slot)], tie.rest[at(label)], mass)
    square, square_rest = square_of(mass)
    squares, squares_rest = add_to(tie.squares[at(label)], tie.squares_rest[at(label)], square)
    squares, squares_rest = add_to(squares, squares_rest, square_rest)
    leaf.mass[at(label), at(slot)] = total
    tie.rest[at(label)] = rest
    tie.squares[at(label)] = squares
    tie.squares_rest[at(label)] = squares_rest
    tie.events[at(label)] += 1
    if tie.events[at(label)] > 1:
        tie.lost[at(label)] += TIE_ROUNDING * total
        state.lost[at(label)] += TIE_ROUNDING * total
        state.lost_squares[at(label)] += TIE_ROUNDING * squares


@kernel
def leave_tie(tree: Forest, leaf: Any, slot: int, label: int, mass: float) -> None:
    """Take an event out of an entry that has a record of TIED."""
    state = tree.state[0]
    index = whole(leaf.tied[at(slot)])
    tie = tree.tied[at(index)]
    tie.events[at(label)] -= 1
    if tie.events[at(label)] == 0:
        leaf.mass[at(label), at(slot)] = 0.0
        tie.rest[at(label)] = 0.0
        tie.lost[at(label)] = 0.0
        tie.squares[at(label)] = 0.0
        tie.squares_rest[at(label)] = 0.0
    else:
        loss = TIE_ROUNDING * leaf.mass[at(label), at(slot)]
        tie.lost[at(label)] += loss
        state.lost[at(label)] += loss
        state.lost_squares[at(label)] += TIE_ROUNDING * tie.squares[at(label)]
        total, rest = add_to(leaf.mass[at(label), at(slot)], tie.rest[at(label)], -mass)
        square, square_rest = square_of(mass)
        squares, squares_rest = add_to(tie.squares[at(label)], tie.squares_rest[at(label)], -square)
        squares, squares_rest = add_to(squares, squares_rest, -square_rest)
        leaf.mass[at(label), at(slot)] = max(total, SMALLEST)
        if tie.lost[at(label)] > LOSS_ALLOWED * total:
            state.spoiled = 1
        tie.rest[at(label)] = rest
        tie.squares[at(label)] = max(squares, 0.0)
        tie.squares_rest[at(label)] = squares_rest
    if (tie.events[0] <= 1) & (tie.events[1] <= 1):
        leaf.tied[at(slot)] = NONE
        tree.free_tied[at(state.free_tied)] = index
        state.free_tied += 1


@kernel
def insert(tree: Forest, label: int, score: float, weight: float) -> int:
    """Add an event; DONE, or what is needed first, with nothing changed."""
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
        if (leaf.tied[at(slot)] == NONE) & (leaf.mass[at(label), at(slot)] == 0.0):
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
    """Take out an event of this label and score, with the weight it came with; DONE or MISSING."""
    state = tree.state[0]
    state.changes += 1
    index = descend(tree, score)
    leaf = tree.leaves[at(index)]
    slot = slot_of(leaf, score)
    if slot == leaf.count or leaf.key[at(slot)] != score or leaf.mass[at(label), at(slot)] == 0.0:
        return MISSING
    if leaf.tied[at(slot)] == NONE:
        leaf.mass[at(label), at(slot)] = 0.0
    else:
        factor = state.factor[at(label)]
        leave_tie(tree, leaf, slot, label, max(weight * factor * factor, SMALLEST))
    if leaf.mass[at(1 - label), at(slot)] + leaf.mass[at(label), at(slot)] == 0.0:
        drop_entry(tree, index, slot)
        state.entries -= 1
        if leaf.count <= MERGED_LEAF // 2:  # the smaller of two that could merge
            shrink_leaf(tree, index)
    state.events[at(label)] -= 1
    return DONE
