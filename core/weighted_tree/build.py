"""A WeightedTree from sorted events or entries, and entries from a tree. O(k)."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import Any

from ..kernels.compile import entry, kernel
from ..kernels.records import at, whole
from .layout import (
    LEAF_FILL,
    NO_ID,
    NODE_FILL,
    SMALLEST,
    Forest,
    begin_tie,
    common_unit,
    copy_tie,
    count_event,
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

    A mass is weight * f * f, with f = factor_n for a negative and factor_p for a positive. An entry's masses
    are summed in twice the precision. units float64[2]: for each class a mass, of which every mass of the
    class is a whole multiple; 0.0 if no such mass is found.
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
                begin_tie(fresh, c, 0.0)
            count += 1
        one = entries[at(count - 1)]
        label = whole(labels[at(i)])
        factor = factor_p if label != 0 else factor_n
        mass = max(weights[at(i)] * factor * factor, SMALLEST)
        if units[at(label)] < 0.0:
            units[at(label)] = mass
        elif (units[at(label)] != 0.0) & (units[at(label)] != mass):
            units[at(label)] = common_unit(units[at(label)], mass)
        one.mass[at(label)] = count_event(one, label, one.mass[at(label)], mass, 1)
    units[0], units[1] = max(units[0], 0.0), max(units[1], 0.0)
    return count


@entry
def build(tree: Forest, entries: Any, places: Any, keys: Any) -> None:
    """Spread entries evenly over leaves, and nodes over the leaves, in an empty forest.

    places int64[leaves], keys float64[leaves]: scratch arrays for the level that is being built.
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
                copy_tie(tree.tied[at(place)], one)
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


@kernel
def list_place(tree: Forest, level: int, place: int, entries: Any, count: int) -> int:
    """Write the entries of a leaf (level 0) or node into `entries`, behind the first `count`.

    Return the new number of entries.
    """
    if level == 0:
        leaf = tree.leaves[at(place)]
        for slot in range(leaf.count):
            one = entries[at(count + slot)]
            one.key = leaf.key[slot]
            tied = whole(leaf.tied[slot])
            for c in range(2):
                one.mass[c] = leaf.mass[c, slot]
                if tied == NO_ID:
                    begin_tie(one, c, leaf.mass[c, slot])
            if tied != NO_ID:
                copy_tie(one, tree.tied[at(tied)])
        return count + whole(leaf.count)
    node = tree.nodes[at(place)]
    for i in range(node.count):
        count = list_place(tree, level - 1, whole(node.child[i]), entries, count)
    return count


@entry
def list_entries(tree: Forest, entries: Any) -> None:
    """Write all entries, ascending by score."""
    state = tree.state[0]
    list_place(tree, state.height, state.root, entries, whole(0))
