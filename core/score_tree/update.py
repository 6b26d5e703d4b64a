"""Inserts one event into the tree, or removes one.

An update descends to its bucket, changes the bucket, and climbs to the root once. On the way up it carries
two results. `Seen` counts the entries that the event is compared with: below a positive, above a negative.
`Change` says how the hull changed. At the root, `Seen` gives the exact changes of the pair count and of both
sums of squared ranks. Adding a positive raises the doubled rank v of a negative below by 2 and of a tied
negative by 1. So the squares of v grow by 4v + 4 and 2v + 1. The sum of v over the negatives below is the
doubled pairs within the entries seen plus the doubled pairs across their border.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import Any, NamedTuple

from ..kernels.bits import bits_below
from ..kernels.compile import inlined
from ..kernels.records import at, whole
from .balance import free_bucket, free_node, rebalance, replace_child, shrink, split
from .bridge import pass_bridge
from .bucket import (
    INFINITY,
    Change,
    by_class,
    close_slot,
    entry_of,
    open_slot,
    pairs_of_run,
    repair_hull,
    slot_of,
    weigh_slot,
)
from .followed_vertices import follow_vertices
from .layout import BUCKET_CAPACITY, FAR, LEFT, NO_PLACE, RIGHT, Tree, hull_loss, parent_of
from .sums import note_event

NO_HINT = -1
NOT_FOUND = -1


class Seen(NamedTuple):
    """A run of entries on one side of the event's own entry.

    It has the negatives below a positive, or the positives above a negative. `own`, `other`: the run's events
    of the event's class and of the other class; `pairs2`: doubled pairs within the run.
    """

    own: int
    other: int
    pairs2: int


class Tied(NamedTuple):
    """The other events that have the same score as the event."""

    own: int
    other: int


@inlined
def descend(tree: Tree, place: int, key: int) -> int:
    """Return the bucket that holds the key, or that would hold it."""
    while place >= 0:
        node = tree.nodes[at(place)]
        place = whole(node.child[RIGHT] if key >= node.separator else node.child[LEFT])
    return ~place


@inlined
def find_bucket(tree: Tree, key: int, hint: int) -> int:
    """Return the bucket of a key: the hinted bucket if its bounds enclose the key (nine times in ten)."""
    if (hint >= 0) & (hint < tree.state[0].fresh_bucket):
        bucket = tree.buckets[at(hint)]
        count = whole(bucket.count)
        if (count > 0) and (bucket.key[1] <= key) and (key <= bucket.key[count]):
            return hint
    return descend(tree, tree.state[0].root, key)


@inlined
def is_slot_of(bucket: Any, slot: int, key: int) -> bool:
    """Return whether the slot holds the entry of a key."""
    return (slot <= bucket.count) and bucket.key[slot] == key


@inlined
def seen_in_bucket(bucket: Any, slot: int, is_entry: bool, label: int) -> Seen:
    """Count the events of the bucket that the event is compared with, before the bucket changes."""
    count = whole(bucket.count)
    if label != 0:
        first, last = whole(1), slot - 1
    else:
        first, last = slot + whole(is_entry), count
    own, other = by_class(
        label,
        whole(bucket.weight[last]) - bucket.weight[first - 1],
        whole(bucket.positives[last]) - bucket.positives[first - 1],
    )
    return Seen(own, other, pairs_of_run(bucket, first, last))


@inlined
def see_sibling(node: Any, side: int, label: int, seen: Seen) -> Seen:
    """Add the other child of a node to `seen`, if that child lies on the side that counts."""
    sibling = 1 - side
    own, other = by_class(label, whole(node.weight[sibling]), whole(node.positives[sibling]))
    counts = whole(side == label)
    return Seen(
        seen.own + counts * own,
        seen.other + counts * other,
        seen.pairs2 + counts * (node.pairs2[sibling] + 2 * other * seen.own),
    )


@inlined
def no_change() -> Change:
    """Return an empty change, for a hull that is not kept."""
    return Change(whole(-1), -INFINITY, whole(FAR), INFINITY, whole(0))


@inlined
def change_bucket(
    bucket: Any, slot: int, is_entry: bool, key: int, label: int, sign: int, state: Any
) -> Change:
    """Add the event to its bucket, or remove it, and repair the hull.

    The caller handles a bucket that becomes empty. A tree without a hull leaves the bucket's hull unknown.
    """
    vertices = bucket.vertices
    below = vertices & bits_below(slot)
    above = vertices & ~bits_below(slot)
    lost_vertex = False
    if sign > 0:
        if is_entry:
            weigh_slot(bucket, slot, sign, label)
        else:
            open_slot(bucket, slot, key, label)
            above <<= 1
    elif bucket.weight[slot] - bucket.weight[slot - 1] > 1:
        weigh_slot(bucket, slot, sign, label)
    else:
        lost_vertex = (above >> slot) & 1 != 0
        above = (above & ~(1 << slot)) >> 1
        close_slot(bucket, slot, label)
    if (state.keeps_hull != 0) & (bucket.count > 0):
        return repair_hull(bucket, below, above, lost_vertex, sign, label, state)
    bucket.vertices = 0
    return no_change()


@inlined
def uncover(tree: Tree, place: int, side: int) -> Change:
    """Return how the hull at a node's place changes when only the child on `side` is left.

    All vertices beyond the bridge's end on that child are new, because the bridge no longer covers them.
    """
    node = tree.nodes[at(place)]
    loss = hull_loss(tree, whole(node.child[side])) - hull_loss(tree, place)
    if side == LEFT:
        p = whole(node.tangent_x[LEFT])
        return Change(p, node.slope_after[LEFT], whole(FAR), INFINITY, loss)
    q = whole(node.tangent_x[RIGHT]) + 1  # the leaving event was the only one on the left
    return Change(whole(-1), -INFINITY, q, node.slope_before[RIGHT], loss)


@inlined
def drop_bucket(tree: Tree, index: int) -> tuple[int, Change]:
    """Remove an empty bucket; its sibling, which is returned, takes the place of their parent."""
    place = whole(tree.buckets[at(index)].parent)
    node = tree.nodes[at(place)]
    side = LEFT if node.child[RIGHT] == ~index else RIGHT
    sibling = whole(node.child[side])
    change = no_change()
    if tree.state[0].keeps_hull != 0:
        change = uncover(tree, place, side)
    replace_child(tree, whole(node.parent), place, sibling)
    free_node(tree, place)
    free_bucket(tree, index)
    return sibling, change


@inlined
def climb(
    tree: Tree, place: int, seen: Seen, tied: Tied, change: Change, label: int, sign: int
) -> tuple[Seen, Change]:
    """Carry an event's change from a node or bucket up to the root.

    Return the entries that the event was compared with, and the change of the window's hull.
    """
    keeps_hull = tree.state[0].keeps_hull != 0
    parent = parent_of(tree, place)
    while parent != NO_PLACE:
        node = tree.nodes[at(parent)]
        side = whole(node.child[RIGHT] == place)
        node.weight[side] += sign
        node.positives[side] += sign * label
        node.pairs2[side] += sign * (2 * seen.other + tied.other)
        seen = see_sibling(node, side, label, seen)
        if keeps_hull:
            change = pass_bridge(tree, parent, side, change, sign, label)
        place = parent
        parent = whole(node.parent)
    return seen, change


@inlined
def add_totals(state: Any, seen: Seen, tied: Tied, label: int, sign: int) -> None:
    """Update the window's exact sums for one event, from the events that it is compared with."""
    own_total, _ = by_class(label, state.weight, state.positives)
    own_total -= sign < 0  # the other events of the class
    rank2 = 2 * seen.other + tied.other
    tied_rank2 = 2 * (own_total - seen.own) - tied.own
    across = seen.pairs2 + 2 * seen.other * (own_total - seen.own)
    own_squares = sign * rank2 * rank2
    other_squares = sign * (4 * across + 4 * seen.other + tied.other * (2 * tied_rank2 + 1))
    state.pairs2 += sign * rank2
    state.squares_positive += own_squares if label != 0 else other_squares
    state.squares_negative += other_squares if label != 0 else own_squares
    state.weight += sign
    state.positives += sign * label


@inlined
def update(tree: Tree, key: int, label: int, sign: int, hint: int) -> int:
    """Insert (sign 1) or remove (sign -1) one event; return its bucket.

    Removing a missing event returns NOT_FOUND and changes nothing. Inserting may take one
    bucket and one node, for which there must be room.
    """
    state = tree.state[0]
    index = find_bucket(tree, key, hint)
    slot = slot_of(tree.buckets[at(index)], key)
    is_entry = is_slot_of(tree.buckets[at(index)], slot, key)
    if (sign > 0) & (not is_entry) and tree.buckets[at(index)].count == BUCKET_CAPACITY:
        split(tree, index)
        index = descend(tree, state.root, key)
        slot = slot_of(tree.buckets[at(index)], key)
    bucket = tree.buckets[at(index)]
    tied = Tied(whole(0), whole(0))
    if is_entry:
        own, other = by_class(label, *entry_of(bucket, slot))
        tied = Tied(own - whole(sign < 0), other)
    if (sign < 0) & ((not is_entry) | (tied.own < 0)):
        return whole(NOT_FOUND)

    seen = seen_in_bucket(bucket, slot, is_entry, label)
    change = change_bucket(bucket, slot, is_entry, key, label, sign, state)
    emptied = bucket.count == 0
    place = ~index
    if emptied:
        node = tree.nodes[at(bucket.parent)]
        seen = see_sibling(node, whole(node.child[RIGHT] == place), label, seen)
        place, change = drop_bucket(tree, index)
    seen, change = climb(tree, place, seen, tied, change, label, sign)
    follow_vertices(tree, change, key, label, sign)
    add_totals(state, seen, tied, label, sign)
    note_event(tree, key, label, sign)
    if sign < 0:
        if emptied:
            rebalance(tree, parent_of(tree, place))
        else:
            shrink(tree, index)
    return index
