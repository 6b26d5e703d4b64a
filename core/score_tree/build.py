"""A tree from sorted entries, and sorted entries from a tree. O(k), some 10 ns an entry.

Entries are spread evenly over the buckets, and nodes are numbered breadth first, so that the top of the tree
lies together in memory.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import Any

from ..kernels.compile import entry, inlined, kernel
from ..kernels.records import at, whole
from ..measures.delong import rank_sums
from .balance import hang, pairs_below, set_height, take_bucket, take_node
from .bridge import find_bridge
from .bucket import entry_of, pairs_of_run, renew_hull
from .layout import BULK_FILL, FIRST_KEY, LEFT, NO_PLACE, RIGHT, Tree


def buckets_needed(entries: int) -> int:
    """Return how many buckets a bulk build takes for so many entries; it takes fewer nodes."""
    return entries // BULK_FILL + 2


@kernel
def fill_buckets(tree: Tree, keys: Any, positives: Any, negatives: Any) -> int:
    """Write the sentinel and the entries into buckets, and count the events.

    Return how many buckets are filled.
    """
    state = tree.state[0]
    entries = len(keys) + 1
    buckets = (entries + BULK_FILL - 1) // BULK_FILL
    for index in range(buckets):
        bucket = tree.buckets[at(take_bucket(tree))]
        begin = entries * index // buckets
        end = entries * (index + 1) // buckets
        weight = whole(0)
        of_positives = whole(0)
        for i in range(begin, end):
            slot = i - begin + 1
            if i == 0:
                bucket.key[slot] = FIRST_KEY
            else:
                bucket.key[slot] = keys[i - 1]
                weight += positives[i - 1] + negatives[i - 1]
                of_positives += positives[i - 1]
            bucket.weight[slot] = weight
            bucket.positives[slot] = of_positives
        bucket.count = end - begin
        bucket.parent = whole(NO_PLACE)
        state.weight += weight
        state.positives += of_positives
        renew_hull(bucket, state)
    return buckets


@kernel
def grow_nodes(tree: Tree, buckets: int, spans: Any) -> None:
    """Make the nodes over the buckets 0..buckets-1, breadth first. `spans`: scratch, buckets by 2."""
    nodes = buckets - 1
    tree.state[0].root = whole(0) if nodes > 0 else whole(~0)
    if nodes == 0:
        return
    for _ in range(nodes):
        take_node(tree)
    tree.nodes[at(0)].parent = whole(NO_PLACE)
    spans[0, 0] = 0
    spans[0, 1] = buckets
    queued = 1
    for place in range(nodes):
        first = spans[place, 0]
        last = spans[place, 1]
        middle = (first + last) // 2
        tree.nodes[at(place)].separator = tree.buckets[at(middle)].key[1]
        for side in range(2):
            begin = first if side == LEFT else middle
            end = middle if side == LEFT else last
            if end - begin == 1:
                hang(tree, place, side, ~begin)
            else:
                spans[queued, 0] = begin
                spans[queued, 1] = end
                hang(tree, place, side, whole(queued))
                queued += 1
    for place in range(nodes - 1, -1, -1):
        node = tree.nodes[at(place)]
        for side in range(2):
            sum_child(tree, node, side)
        set_height(tree, whole(place))
        find_bridge(tree, whole(place))


@inlined
def sum_child(tree: Tree, node: Any, side: int) -> None:
    """Copy to a node the weight, the positives and the pairs of its child on `side`."""
    child = whole(node.child[side])
    if child >= 0:
        below = tree.nodes[at(child)]
        node.weight[side] = below.weight[LEFT] + below.weight[RIGHT]
        node.positives[side] = below.positives[LEFT] + below.positives[RIGHT]
        node.pairs2[side] = pairs_below(below)
    else:
        bucket = tree.buckets[at(~child)]
        count = whole(bucket.count)
        node.weight[side] = bucket.weight[count]
        node.positives[side] = bucket.positives[count]
        node.pairs2[side] = pairs_of_run(bucket, whole(1), count)


@entry
def build(tree: Tree, keys: Any, positives: Any, negatives: Any, spans: Any) -> None:
    """Fill a new tree from entries in ascending order of their distinct keys. Its totals must be 0."""
    state = tree.state[0]
    state.free_node = whole(NO_PLACE)
    state.free_bucket = whole(NO_PLACE)
    buckets = fill_buckets(tree, keys, positives, negatives)
    grow_nodes(tree, buckets, spans)
    if len(keys) > 0:
        state.pairs2, state.squares_positive, state.squares_negative = rank_sums(negatives, positives)


@inlined
def outermost_bucket(tree: Tree, place: int, side: int) -> int:
    """Return the first (LEFT) or last (RIGHT) bucket of a subtree."""
    while place >= 0:
        place = whole(tree.nodes[at(place)].child[side])
    return ~place


@inlined
def neighbour(tree: Tree, index: int, side: int) -> int:
    """Return the next bucket on a side, or NO_PLACE."""
    place = ~index
    parent = whole(tree.buckets[at(index)].parent)
    while parent != NO_PLACE:
        node = tree.nodes[at(parent)]
        if node.child[side] != place:
            return outermost_bucket(tree, whole(node.child[side]), 1 - side)
        place = parent
        parent = whole(node.parent)
    return whole(NO_PLACE)


@entry
def list_entries(tree: Tree, keys: Any, positives: Any, negatives: Any) -> None:
    """Write the entries in order."""
    n = whole(-1)  # the sentinel is no entry
    index = outermost_bucket(tree, tree.state[0].root, LEFT)
    while index != NO_PLACE:
        bucket = tree.buckets[at(index)]
        for t in range(1, whole(bucket.count) + 1):
            if n >= 0:
                keys[n] = bucket.key[t]
                weight, positives[n] = entry_of(bucket, t)
                negatives[n] = weight - positives[n]
            n += 1
        index = neighbour(tree, index, RIGHT)
