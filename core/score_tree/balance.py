"""The shape of the tree: nodes and buckets are added and removed, and rotations keep the AVL balance.

No function here changes the multiset of events. So the hulls of the ancestors do not change either, and the
numbers that ancestors keep of their children stay right. A split needs one new bridge, a rotation needs two,
a merge none.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import Any

from ..kernels.compile import inlined, kernel
from ..kernels.records import at, whole
from .bridge import find_bridge
from .bucket import clear, pairs_of_run, renew_hull
from .layout import LEFT, MERGE_BELOW, MERGED_AT_MOST, NO_PLACE, PAD_KEY, RIGHT, Tree


@inlined
def has_room(tree: Tree) -> bool:
    """Return whether the tree has room for one more split: an unused bucket and an unused node."""
    state = tree.state[0]
    bucket = (state.free_bucket != NO_PLACE) | (state.fresh_bucket < len(tree.buckets))
    node = (state.free_node != NO_PLACE) | (state.fresh_node < len(tree.nodes))
    return bucket & node


@inlined
def take_node(tree: Tree) -> int:
    """Return the id of an unused node."""
    state = tree.state[0]
    place = state.free_node
    if place != NO_PLACE:
        state.free_node = tree.nodes[at(place)].parent
    else:
        place = state.fresh_node
        state.fresh_node += 1
    return place


@inlined
def take_bucket(tree: Tree) -> int:
    """Return the id of an empty bucket."""
    state = tree.state[0]
    index = state.free_bucket
    if index != NO_PLACE:
        state.free_bucket = tree.buckets[at(index)].parent
    else:
        index = state.fresh_bucket
        state.fresh_bucket += 1
    clear(tree.buckets[at(index)])
    state.bucket_count += 1
    return index


@inlined
def free_node(tree: Tree, place: int) -> None:
    """Put a node on the stack of unused nodes."""
    state = tree.state[0]
    tree.nodes[at(place)].parent = state.free_node
    state.free_node = place


@inlined
def free_bucket(tree: Tree, index: int) -> None:
    """Return a bucket to the free ones; its count of 0 tells a hint that the bucket is unused."""
    state = tree.state[0]
    tree.buckets[at(index)].count = 0
    tree.buckets[at(index)].parent = state.free_bucket
    state.free_bucket = index
    state.bucket_count -= 1


@inlined
def height_of(tree: Tree, place: int) -> int:
    """Return the height of a subtree; a bucket has height 0."""
    if place >= 0:
        return whole(tree.nodes[at(place)].height)
    return whole(0)


@inlined
def set_parent(tree: Tree, place: int, parent: int) -> None:
    """Set the parent of a node or bucket."""
    if place >= 0:
        tree.nodes[at(place)].parent = parent
    else:
        tree.buckets[at(~place)].parent = parent


@inlined
def replace_child(tree: Tree, parent: int, old: int, new: int) -> None:
    """Put `new` in the place of `old`, a child of `parent`."""
    if parent == NO_PLACE:
        tree.state[0].root = new
    else:
        node = tree.nodes[at(parent)]
        node.child[LEFT if node.child[LEFT] == old else RIGHT] = new
    set_parent(tree, new, parent)


@inlined
def hang(tree: Tree, parent: int, side: int, place: int) -> None:
    """Make the node or bucket `place` the child of the node `parent`, on one side."""
    tree.nodes[at(parent)].child[side] = place
    set_parent(tree, place, parent)


@inlined
def pairs_below(node: Any) -> int:
    """Return twice the pairs within a node's subtree: within each child, and between both."""
    negatives = whole(node.weight[LEFT]) - node.positives[LEFT]
    return node.pairs2[LEFT] + node.pairs2[RIGHT] + 2 * negatives * whole(node.positives[RIGHT])


@inlined
def set_height(tree: Tree, place: int) -> None:
    """Set the height of a node from those of its children."""
    node = tree.nodes[at(place)]
    left = height_of(tree, whole(node.child[LEFT]))
    right = height_of(tree, whole(node.child[RIGHT]))
    node.height = max(left, right) + 1


@kernel
def rotate(tree: Tree, place: int, side: int) -> int:
    """Let the child on `side` and its parent change places (an AVL rotation); return the child's id."""
    other = 1 - side
    upper = tree.nodes[at(place)]
    risen = whole(upper.child[side])
    lower = tree.nodes[at(risen)]
    replace_child(tree, whole(upper.parent), place, risen)

    hang(tree, place, side, whole(lower.child[other]))
    upper.weight[side] = lower.weight[other]
    upper.positives[side] = lower.positives[other]
    upper.pairs2[side] = lower.pairs2[other]

    hang(tree, risen, other, place)
    lower.weight[other] = upper.weight[LEFT] + upper.weight[RIGHT]
    lower.positives[other] = upper.positives[LEFT] + upper.positives[RIGHT]
    lower.pairs2[other] = pairs_below(upper)

    set_height(tree, place)
    set_height(tree, risen)
    find_bridge(tree, place)
    find_bridge(tree, risen)
    return risen


@inlined
def leans(tree: Tree, place: int) -> int:
    """Return the height of the left child less the height of the right child."""
    node = tree.nodes[at(place)]
    return height_of(tree, whole(node.child[LEFT])) - height_of(tree, whole(node.child[RIGHT]))


@kernel
def rebalance(tree: Tree, place: int) -> None:
    """Restore heights and balance from a node upward, until a height does not change."""
    while place != NO_PLACE:
        before = tree.nodes[at(place)].height
        lean = leans(tree, place)
        if (lean > 1) | (lean < -1):
            side = LEFT if lean > 1 else RIGHT
            child = whole(tree.nodes[at(place)].child[side])
            inward = leans(tree, child)
            if (inward < 0) if side == LEFT else (inward > 0):
                rotate(tree, child, 1 - side)
            place = rotate(tree, place, side)
        else:
            set_height(tree, place)
        if tree.nodes[at(place)].height == before:
            return
        place = whole(tree.nodes[at(place)].parent)


@kernel
def split(tree: Tree, index: int) -> None:
    """Move the upper half of a bucket to a new bucket, and put a node above both in the bucket's place."""
    upper_index = take_bucket(tree)
    place = take_node(tree)
    lower = tree.buckets[at(index)]
    upper = tree.buckets[at(upper_index)]
    node = tree.nodes[at(place)]
    count = whole(lower.count)
    kept = count // 2
    x = lower.weight[kept]
    y = lower.positives[kept]

    node.separator = lower.key[kept + 1]
    node.weight[LEFT] = x
    node.positives[LEFT] = y
    node.weight[RIGHT] = lower.weight[count] - x
    node.positives[RIGHT] = lower.positives[count] - y
    node.pairs2[LEFT] = pairs_of_run(lower, whole(1), kept)
    node.pairs2[RIGHT] = pairs_of_run(lower, kept + 1, count)
    for t in range(kept + 1, count + 1):
        upper.key[t - kept] = lower.key[t]
        upper.weight[t - kept] = lower.weight[t] - x
        upper.positives[t - kept] = lower.positives[t] - y
        lower.key[t] = PAD_KEY
    upper.count = count - kept
    lower.count = kept

    above = whole(lower.parent)
    replace_child(tree, above, ~index, place)
    hang(tree, place, LEFT, ~index)
    hang(tree, place, RIGHT, ~upper_index)
    node.height = 1
    renew_hull(lower, tree.state[0])
    renew_hull(upper, tree.state[0])
    find_bridge(tree, place)
    rebalance(tree, above)


@inlined
def merges(tree: Tree, place: int) -> bool:
    """Return whether the two children of a node are buckets whose entries fit well into one bucket."""
    if place == NO_PLACE:
        return False
    node = tree.nodes[at(place)]
    if (node.child[LEFT] >= 0) | (node.child[RIGHT] >= 0):
        return False
    left = tree.buckets[at(~whole(node.child[LEFT]))]
    right = tree.buckets[at(~whole(node.child[RIGHT]))]
    return left.count + right.count <= MERGED_AT_MOST


@kernel
def merge(tree: Tree, place: int) -> None:
    """Merge two buckets into one, which takes the place of the node above them."""
    node = tree.nodes[at(place)]
    index = ~whole(node.child[LEFT])
    upper_index = ~whole(node.child[RIGHT])
    lower = tree.buckets[at(index)]
    upper = tree.buckets[at(upper_index)]
    kept = whole(lower.count)
    for t in range(1, whole(upper.count) + 1):
        lower.key[kept + t] = upper.key[t]
        lower.weight[kept + t] = upper.weight[t] + node.weight[LEFT]
        lower.positives[kept + t] = upper.positives[t] + node.positives[LEFT]
    lower.count += upper.count
    renew_hull(lower, tree.state[0])
    above = whole(node.parent)
    replace_child(tree, above, place, ~index)
    free_bucket(tree, upper_index)
    free_node(tree, place)
    rebalance(tree, above)


@inlined
def shrink(tree: Tree, index: int) -> None:
    """Merge a bucket with its sibling if both have become small, after an entry left the bucket."""
    bucket = tree.buckets[at(index)]
    if bucket.count <= MERGE_BELOW:
        above = whole(bucket.parent)
        if merges(tree, above):
            merge(tree, above)
