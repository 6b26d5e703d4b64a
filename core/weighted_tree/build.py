"""A WeightedTree from sorted events or entries, and entries from a tree. O(k)."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels.compile import entry
from ..kernels.records import at, whole
from .layout import (
    LEAF_FILL,
    NO_ID,
    NODE_FILL,
    SMALLEST,
    Forest,
    add_to,
    common_unit,
    square_of,
    take_leaf,
    take_node,
)


def leaves_needed(entries: int) -> int:
    """Return how many leaves a bulk build takes for so many entries."""
    return max(1, -(-entries // LEAF_FILL))


def nodes_needed(leaves: int) -> int:
    """Return how many nodes a bulk build takes over so many leaves."""
    nodes = 0
    while leaves > 1:
        leaves = -(-leaves // NODE_FILL)
        nodes += leaves
    return nodes


@entry
def group_events(
    labels: Any, scores: Any, weights: Any, factor_n: float, factor_p: float, entries: Any, units: Any
) -> int:
    """Fill entries from events sorted by score; return the number of entries.

    A mass is weight * factor * factor of the class; an entry's masses are summed in twice the precision.
    units float64[2]: filled, for each class, with a mass of which all masses are whole multiples, or 0.0.
    """
    count = whole(0)
    units[0] = units[1] = -1.0
    for i in range(len(scores)):
        score = scores[at(i)]
        if count == 0 or entries[at(count - 1)].key != score:
            fresh = entries[at(count)]
            fresh.key = score
            for c in range(2):
                fresh.mass[c] = 0.0
                fresh.rest[c] = 0.0
                fresh.lost[c] = 0.0
                fresh.squares[c] = 0.0
                fresh.squares_rest[c] = 0.0
                fresh.events[c] = 0
            count += 1
        one = entries[at(count - 1)]
        label = whole(labels[at(i)])
        factor = factor_p if label != 0 else factor_n
        mass = max(weights[at(i)] * factor * factor, SMALLEST)
        total, rest = add_to(one.mass[at(label)], one.rest[at(label)], mass)
        if units[at(label)] < 0.0:
            units[at(label)] = mass
        elif (units[at(label)] != 0.0) & (units[at(label)] != mass):
            units[at(label)] = common_unit(units[at(label)], mass)
        square, square_rest = square_of(mass)
        squares, squares_rest = add_to(one.squares[at(label)], one.squares_rest[at(label)], square)
        squares, squares_rest = add_to(squares, squares_rest, square_rest)
        one.mass[at(label)] = total
        one.rest[at(label)] = rest
        one.squares[at(label)] = squares
        one.squares_rest[at(label)] = squares_rest
        one.events[at(label)] += 1
    units[0], units[1] = max(units[0], 0.0), max(units[1], 0.0)
    return count


@entry
def build(tree: Forest, entries: Any, places: Any, keys: Any) -> None:
    """Spread entries evenly over leaves, and nodes over the leaves, in an empty forest.

    places int64[leaves], keys float64[leaves]: scratch for the level under construction.
    """
    state = tree.state[0]
    count = len(entries)
    children = max(1, (count + LEAF_FILL - 1) // LEAF_FILL)
    for i in range(children):
        index = take_leaf(tree)
        leaf = tree.leaves[at(index)]
        begin, end = count * i // children, count * (i + 1) // children
        for e in range(begin, end):
            slot = e - begin
            one = entries[at(e)]
            leaf.key[at(slot)] = one.key
            leaf.mass[0, at(slot)] = one.mass[0]
            leaf.mass[1, at(slot)] = one.mass[1]
            leaf.tied[at(slot)] = NO_ID
            if (one.events[0] > 1) | (one.events[1] > 1):
                state.free_tied -= 1
                place = whole(tree.free_tied[at(state.free_tied)])
                leaf.tied[at(slot)] = place
                tie = tree.tied[at(place)]
                for c in range(2):
                    tie.events[c] = one.events[c]
                    tie.rest[c] = one.rest[c]
                    tie.lost[c] = one.lost[c]
                    tie.squares[c] = one.squares[c]
                    tie.squares_rest[c] = one.squares_rest[c]
            state.events[0] += one.events[0]
            state.events[1] += one.events[1]
        leaf.count = end - begin
        places[at(i)] = index
        keys[at(i)] = leaf.key[0]
    state.entries = count
    state.height = 0
    while children > 1:
        parents = (children + NODE_FILL - 1) // NODE_FILL
        for i in range(parents):
            index = take_node(tree)
            node = tree.nodes[at(index)]
            begin, end = children * i // parents, children * (i + 1) // parents
            for c in range(begin, end):
                node.child[at(c - begin)] = places[at(c)]
                node.key[at(c - begin)] = keys[at(c)]
            node.count = end - begin
            places[at(i)] = index
            keys[at(i)] = node.key[0]
        children = parents
        state.height += 1
    state.root = places[0]


@entry
def list_entries(tree: Forest, entries: Any) -> int:
    """Write all entries, ascending by score; return their number."""
    state = tree.state[0]
    count = whole(0)
    level = state.height
    tree.path[0, level] = state.root
    tree.path[1, level] = 0
    while level <= state.height:
        place = tree.path[0, level]
        index = tree.path[1, level]
        if level > 0:
            node = tree.nodes[at(place)]
            if index == node.count:
                level += 1
                continue
            tree.path[1, level] = index + 1
            level -= 1
            tree.path[0, level] = whole(node.child[at(index)])
            tree.path[1, level] = 0
            continue
        leaf = tree.leaves[at(place)]
        for slot in range(leaf.count):
            one = entries[at(count)]
            one.key = leaf.key[slot]
            tied = whole(leaf.tied[slot])
            for c in range(2):
                mass = leaf.mass[c, slot]
                one.mass[c] = mass
                if tied == NO_ID:
                    one.rest[c] = 0.0
                    one.lost[c] = 0.0
                    square, square_rest = square_of(mass)
                    one.squares[c] = square
                    one.squares_rest[c] = square_rest
                    one.events[c] = 1 if mass > 0.0 else 0
                else:
                    tie = tree.tied[at(tied)]
                    one.rest[c] = tie.rest[c]
                    one.lost[c] = tie.lost[c]
                    one.squares[c] = tie.squares[c]
                    one.squares_rest[c] = tie.squares_rest[c]
                    one.events[c] = tie.events[c]
            count += 1
        level += 1
    return count


def ties_of(entries: Any) -> int:
    """Return how many entries hold several events of a class."""
    return int(np.count_nonzero((entries["events"] > 1).any(axis=1)))
