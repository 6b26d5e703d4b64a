"""Splits and merges of nodes and leaves."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels.compile import inlined, kernel
from ..kernels.records import at, whole
from .layout import (
    FAN,
    MERGED_LEAF,
    MERGED_NODE,
    NO_ID,
    SLOTS,
    STALE,
    Forest,
    free_leaf,
    free_node,
    take_leaf,
    take_node,
)


@kernel
def hang_child(tree: Forest, key: float, child: int) -> None:
    """Add a child to the right of the path's child, from level 1 up; split full nodes on the way up."""
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
    """Insert a child into a node that has room."""
    for i in range(node.count, index, -1):
        node.key[at(i)] = node.key[at(i - 1)]
        node.child[at(i)] = node.child[at(i - 1)]
    node.key[at(index)] = key
    node.child[at(index)] = child
    node.count += 1


@inlined
def drop_child(node: Any, index: int) -> None:
    """Remove a child from a node."""
    last = whole(node.count) - 1
    for i in range(index, last):
        node.key[at(i)] = node.key[at(i + 1)]
        node.child[at(i)] = node.child[at(i + 1)]
    node.key[at(last)] = np.inf
    node.count = last


@inlined
def left_of_merged(parent: Any, index: int, siblings: Any, most: int) -> int:
    """Return the left child of two neighbours that fit into one; NO_ID if no two fit.

    `index` is one of the two.
    """
    count = siblings[at(parent.child[at(index)])].count
    if index > 0 and siblings[at(parent.child[at(index - 1)])].count + count <= most:
        return index - 1
    if index + 1 < parent.count and siblings[at(parent.child[at(index + 1)])].count + count <= most:
        return index
    return whole(NO_ID)


@kernel
def shrink_nodes(tree: Forest) -> None:
    """Merge or drop nodes, or lower the tree, from level 1 up, after the path's node lost a child."""
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
        left = left_of_merged(parent, index, tree.nodes, MERGED_NODE)
        if left == NO_ID:
            return
        kept, gone = whole(parent.child[at(left)]), whole(parent.child[at(left + 1)])
        into, out = tree.nodes[at(kept)], tree.nodes[at(gone)]
        begin = whole(into.count)
        for i in range(out.count):
            into.key[at(begin + i)] = out.key[i]
            into.child[at(begin + i)] = out.child[i]
        into.key[at(begin)] = parent.key[at(left + 1)]  # the first child's own key may be out of date
        into.count = begin + out.count
        tree.node_runs[at(kept)].state = STALE
        free_node(tree, gone)
        drop_child(parent, left + 1)
        level += 1


@inlined
def move_entry(source: Any, slot: int, target: Any, place: int) -> None:
    """Copy an entry of a leaf to a slot of a leaf."""
    target.key[at(place)] = source.key[at(slot)]
    target.mass[0, at(place)] = source.mass[0, at(slot)]
    target.mass[1, at(place)] = source.mass[1, at(slot)]
    target.tied[at(place)] = source.tied[at(slot)]


@inlined
def move_entries(tree: Forest, source: int, begin: int, target: int) -> None:
    """Move the entries of a leaf, from slot `begin` on, to the end of another leaf."""
    out, into = tree.leaves[at(source)], tree.leaves[at(target)]
    offset = whole(into.count) - begin
    for slot in range(begin, out.count):
        move_entry(out, slot, into, slot + offset)
        out.key[at(slot)] = np.inf
    into.count = out.count + offset
    out.count = begin


@kernel
def split_leaf(tree: Forest, index: int) -> int:
    """Move the upper half of a full leaf into a new leaf; return the new leaf."""
    new = take_leaf(tree)
    move_entries(tree, index, whole(SLOTS // 2), new)
    hang_child(tree, tree.leaves[at(new)].key[0], new)
    return new


@kernel
def shrink_leaf(tree: Forest, index: int) -> None:
    """Merge a leaf that lost an entry with a neighbour, or drop the leaf if it is empty."""
    if tree.state[0].height == 0:
        return
    parent = tree.nodes[at(tree.path[0, 1])]
    place = tree.path[1, 1]
    left = left_of_merged(parent, place, tree.leaves, MERGED_LEAF)
    if left != NO_ID:
        kept, gone = whole(parent.child[at(left)]), whole(parent.child[at(left + 1)])
        move_entries(tree, gone, whole(0), kept)
        tree.leaf_runs[at(kept)].state = STALE
        free_leaf(tree, gone)
        drop_child(parent, left + 1)
    elif tree.leaves[at(index)].count == 0:
        free_leaf(tree, index)
        drop_child(parent, place)
    else:
        return
    shrink_nodes(tree)
