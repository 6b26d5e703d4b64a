"""Queries of a tree. Each query is one descent, O(log k), unless its docstring says otherwise.

An event is predicted positive if its score >= threshold. A hull vertex lies BETWEEN entries: its threshold is
the score of the entry after it, and the last vertex has no threshold.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..kernels.bits import bits_below, bits_through, highest_bit, lowest_bit
from ..kernels.compile import entry, inlined
from ..kernels.records import at, whole
from .bridge import bridge_slope
from .bucket import INFINITY, by_class, entry_of, slot_of, slot_slope
from .build import neighbour, outermost_bucket
from .layout import FIRST_KEY, LEFT, NO_PLACE, RIGHT, SLOTS, Tree, key_of, score_of


class Vertex(NamedTuple):
    """A vertex of the hull: how many events and positives lie below it."""

    x: int
    y: int


class Crossing(NamedTuple):
    """The entry at which a class, counted from the HIGHEST score, exceeds a quota.

    `own`, `other`: events above the entry, of that class and of the other class; `own_tied`, `other_tied`:
    events of the entry. All are 0 if the class never exceeds the quota. `key`: the entry's key.
    """

    own: int
    other: int
    own_tied: int
    other_tied: int
    key: int


@inlined
def vertex_with_slopes(tree: Tree, place: int, x: int, y: int, slope: float) -> tuple[Vertex, float, float]:
    """Find the hull vertex of a subtree with flatter edges before it, and no flatter edges after it.

    An edge is flatter if its slope is below `slope`.

    (x, y): the subtree's origin. Also returns the slopes of the two edges that meet in the vertex, -inf and
    +inf at the ends of the hull.

    Of the edges found on the descent, the edges of the hull are the steepest before the vertex and the
    flattest behind it.

    float64 is exact enough for slopes: two different slopes differ by 2^-44 at least.
    """
    into, out = -INFINITY, INFINITY
    while place >= 0:
        node = tree.nodes[at(place)]
        bridge = bridge_slope(node)
        if bridge < slope:
            into = max(into, bridge)
            x += node.weight[LEFT]
            y += node.positives[LEFT]
            place = whole(node.child[RIGHT])
        else:
            out = min(out, bridge)
            place = whole(node.child[LEFT])
    bucket = tree.buckets[at(~place)]
    rest = bucket.vertices
    slot = lowest_bit(rest)
    rest &= rest - 1
    while rest != 0:
        after = lowest_bit(rest)
        edge = slot_slope(bucket, slot, after)
        if edge >= slope:
            out = min(out, edge)
            break
        into = max(into, edge)
        slot = after
        rest &= rest - 1
    return Vertex(x + bucket.weight[slot], y + bucket.positives[slot]), into, out


@inlined
def vertex_at_slope(tree: Tree, place: int, x: int, y: int, slope: float) -> Vertex:
    """Return the vertex of `vertex_with_slopes`, without the slopes of its edges."""
    vertex, _, _ = vertex_with_slopes(tree, place, x, y, slope)
    return vertex


@inlined
def slot_of_rank(bucket: Any, index: int) -> int:
    """Return the slot of the event that has `index` other events before it in its bucket."""
    slot = whole(1)
    for t in range(1, SLOTS + 1):
        slot += (bucket.weight[t] <= index) & (t <= bucket.count)
    return slot


@inlined
def entry_at(tree: Tree, index: int) -> tuple[int, int]:
    """Return bucket and slot of the event that has `index` other events before it in score order."""
    place = tree.state[0].root
    while place >= 0:
        node = tree.nodes[at(place)]
        if index >= node.weight[LEFT]:
            index -= node.weight[LEFT]
            place = whole(node.child[RIGHT])
        else:
            place = whole(node.child[LEFT])
    return ~place, slot_of_rank(tree.buckets[at(~place)], index)


@inlined
def score_at(tree: Tree, index: int) -> float:
    """Return the score of the event that has `index` other events before it in score order."""
    bucket, slot = entry_at(tree, index)
    return score_of(tree.buckets[at(bucket)].key[slot])


@inlined
def class_through(bucket: Any, slot: int, label: int) -> int:
    """Return how many events of class `label` lie in a bucket's slots up to `slot`."""
    positives = whole(bucket.positives[slot])
    return positives if label != 0 else whole(bucket.weight[slot]) - positives


@inlined
def crossing(tree: Tree, label: int, quota: int) -> Crossing:
    """Find where the events of class `label`, from the highest score down, exceed `quota`."""
    state = tree.state[0]
    all_own = state.positives if label != 0 else state.weight - state.positives
    all_other = state.weight - all_own
    if all_own <= quota:
        return Crossing(all_own, all_other, whole(0), whole(0), whole(FIRST_KEY))
    own = whole(0)
    other = whole(0)
    place = state.root
    while place >= 0:
        node = tree.nodes[at(place)]
        positives = whole(node.positives[RIGHT])
        negatives = whole(node.weight[RIGHT]) - positives
        on_right = positives if label != 0 else negatives
        if own + on_right > quota:
            place = whole(node.child[RIGHT])
        else:
            own += on_right
            other += positives + negatives - on_right
            place = whole(node.child[LEFT])
    bucket = tree.buckets[at(~place)]
    count = whole(bucket.count)
    in_bucket = class_through(bucket, count, label)
    needed = own + in_bucket - quota
    slot = whole(0)  # the entry is the last one before which there are fewer events than needed
    for t in range(1, SLOTS + 1):
        slot += (class_through(bucket, t - 1, label) < needed) & (t <= count)
    own_above = in_bucket - class_through(bucket, slot, label)
    other_above = whole(bucket.weight[count]) - bucket.weight[slot] - own_above
    own_tied, other_tied = by_class(label, *entry_of(bucket, slot))
    return Crossing(own + own_above, other + other_above, own_tied, other_tied, whole(bucket.key[at(slot)]))


@inlined
def share_at_quota(tree: Tree, label: int, quota: int, goal: float) -> tuple[float, int]:
    """Return the mass of the other class above the ROC point with `goal` events of `label` above it.

    The ROC curve is linear within an entry. The second number is the total of the other class.
    """
    state = tree.state[0]
    at_goal = crossing(tree, label, quota)
    all_other = state.weight - state.positives if label != 0 else state.positives
    if at_goal.own_tied == 0:
        return float(at_goal.other), all_other
    share = min(max((goal - at_goal.own) / at_goal.own_tied, 0.0), 1.0)
    return at_goal.other + share * at_goal.other_tied, all_other


@inlined
def most_within(share: float, total: int) -> int:
    """Return the greatest m with m / total <= share, computed in float64.

    The product share * total would lose points: 0.29 * 100 < 29.
    """
    m = whole(min(max(share, 0.0), 1.0) * total)
    while m < total and (m + 1) / total <= share:
        m += 1
    while m > 0 and m / total > share:
        m -= 1
    return m


@inlined
def tpr_at_fpr(tree: Tree, fpr: float) -> float:
    """Return the TPR of the ROC curve at this FPR; on a vertical step, that of its upper end."""
    state = tree.state[0]
    negatives = state.weight - state.positives
    reached, positives = share_at_quota(tree, whole(0), most_within(fpr, negatives), fpr * negatives)
    return reached / positives


@inlined
def fpr_at_tpr(tree: Tree, tpr: float) -> float:
    """Return the FPR of the ROC curve at this TPR; on a horizontal step, that of its left end."""
    positives = tree.state[0].positives
    needed = most_within(tpr, positives)
    if needed / positives < tpr:
        needed += 1
    if needed <= 0:
        return 0.0
    reached, negatives = share_at_quota(tree, whole(1), needed - 1, tpr * positives)
    return reached / negatives


@inlined
def last_on_chord(tree: Tree) -> int:
    """Find the last point on the hull's chord, apart from the curve's last point.

    No point may lie below the chord.

    The chord goes from the hull's first vertex to its last. Returns the abscissa of the point. O(log^2 k), or
    O(k / bucket) without bridges.
    """
    state = tree.state[0]
    weight, positives = state.weight, state.positives
    above_chord = np.nextafter(positives / weight, 2.0)
    index = outermost_bucket(tree, state.root, RIGHT)
    slots = bits_below(whole(tree.buckets[at(index)].count)) & ~1  # of the last bucket: all but the last slot
    x, y = weight, positives
    while True:
        bucket = tree.buckets[at(index)]
        count = whole(bucket.count)
        x -= bucket.weight[count]
        y -= bucket.positives[count]
        while slots != 0:
            slot = highest_bit(slots)
            if (y + bucket.positives[slot]) * weight == positives * (x + bucket.weight[slot]):
                return x + bucket.weight[slot]
            slots &= bits_below(slot)
        if state.keeps_hull != 0:
            break
        index = neighbour(tree, index, LEFT)
        if index == NO_PLACE:
            return whole(0)
        slots = bits_through(whole(tree.buckets[at(index)].count)) & ~1
    place = whole(bucket.parent)
    while place != NO_PLACE:  # every step on the way goes to a right child
        node = tree.nodes[at(place)]
        x -= node.weight[LEFT]
        y -= node.positives[LEFT]
        vertex = vertex_at_slope(tree, whole(node.child[LEFT]), x, y, above_chord)
        if vertex.y * weight == positives * vertex.x:
            return vertex.x
        place = whole(node.parent)
    return whole(0)


@inlined
def vertex_after(tree: Tree, x: int) -> Vertex:
    """Return the end of the hull edge that begins at x or spans x; x must not be the last abscissa."""
    origin_x = whole(0)
    origin_y = whole(0)
    place = tree.state[0].root
    while place >= 0:
        node = tree.nodes[at(place)]
        middle_x = origin_x + node.weight[LEFT]
        middle_y = origin_y + node.positives[LEFT]
        if x < origin_x + node.tangent_x[LEFT]:
            place = whole(node.child[LEFT])
        elif x < middle_x + node.tangent_x[RIGHT]:
            return Vertex(middle_x + node.tangent_x[RIGHT], middle_y + node.tangent_y[RIGHT])
        else:
            origin_x = middle_x
            origin_y = middle_y
            place = whole(node.child[RIGHT])
    bucket = tree.buckets[at(~place)]
    vertices = bucket.vertices
    slot = lowest_bit(vertices)
    while origin_x + bucket.weight[slot] <= x:
        slot = lowest_bit(vertices & ~bits_through(slot))
    return Vertex(origin_x + bucket.weight[slot], origin_y + bucket.positives[slot])


@entry
def list_hull(tree: Tree, x: Any, y: Any) -> int:
    """Write the hull's vertices by ascending abscissa; return their number. O(vertices log k)."""
    weight = tree.state[0].weight
    x[0] = 0
    y[0] = 0
    n = whole(1)
    while x[n - 1] < weight:
        vertex = vertex_after(tree, x[n - 1])
        x[n] = vertex.x
        y[n] = vertex.y
        n += 1
    return n


@inlined
def count_below(tree: Tree, key: int) -> tuple[int, int, int, int]:
    """Return weight and positives below a key, and weight and positives tied with it."""
    weight = whole(0)
    positives = whole(0)
    place = tree.state[0].root
    while place >= 0:
        node = tree.nodes[at(place)]
        if key >= node.separator:
            weight += node.weight[LEFT]
            positives += node.positives[LEFT]
            place = whole(node.child[RIGHT])
        else:
            place = whole(node.child[LEFT])
    bucket = tree.buckets[at(~place)]
    slot = slot_of(bucket, key)
    weight += bucket.weight[slot - 1]
    positives += bucket.positives[slot - 1]
    tied = positives_tied = whole(0)
    if slot <= bucket.count and bucket.key[slot] == key:
        tied, positives_tied = entry_of(bucket, slot)
    return weight, positives, tied, positives_tied


@entry
def rank_scores(tree: Tree, scores: Any, ranks: Any) -> None:
    """Write for each score four numbers of events: below, positives below, tied, tied positives."""
    for i in range(len(scores)):
        ranks[i, 0], ranks[i, 1], ranks[i, 2], ranks[i, 3] = count_below(tree, key_of(scores[i]))


@entry
def select_scores(tree: Tree, indices: Any, scores: Any) -> None:
    """Write for each index, from 0 to the weight less 1, the score at this place in ascending order.

    Tied scores take one place for each event.
    """
    for i in range(len(indices)):
        scores[i] = score_at(tree, whole(indices[i]))


@entry
def find_crossing(tree: Tree, label: int, quota: int) -> Crossing:
    """Return `crossing`, for callers in Python."""
    return crossing(tree, label, quota)


@entry
def roc_point(tree: Tree, at_tpr: bool, share: float) -> float:
    """Return the FPR at a TPR, or the TPR at a FPR, of a window with both classes."""
    return fpr_at_tpr(tree, share) if at_tpr else tpr_at_fpr(tree, share)


class MassCrossing(NamedTuple):
    """A score, and the masses of the class asked for (own) and of the other class, above and at the score."""

    score: float
    own_above: float
    other_above: float
    own: float
    other: float
