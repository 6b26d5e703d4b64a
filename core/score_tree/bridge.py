"""Bridges: the common tangent of the hulls of a node's two children.

A node's hull is its left child's hull up to the bridge, the bridge, and its right child's hull from the
bridge on. If several points on one line could be the ends, the bridge begins at the leftmost point of the
left hull and ends at the rightmost point of the right hull. So hulls stay strict.

After an update a bridge is VERIFIED first (`pass_bridge`). The change of the child's hull is an interval, and
the bridge's end lies left of it, right of it, or, rarely, in it. If the end lies outside, it stays a vertex,
and slopes kept in the node say in O(1) whether the bridge still fits. Only a bridge that does not fit is
SEARCHED (`find_bridge`, Overmars and van Leeuwen 1981). Two cursors descend the two hulls together; each step
discards at least one half of one of the hulls, O(log k).
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import Any, NamedTuple

from ..kernels.bits import bits_below, bits_through, highest_bit, lowest_bit
from ..kernels.compile import inlined, kernel
from ..kernels.records import at, whole
from .bucket import INFINITY, Change, chain_loss, slot_slope
from .cursor import Cursor, Edge, into_bucket, into_child, keep_from, keep_until, whole_hull
from .layout import LEFT, RIGHT, Tree, edge_loss, hull_loss


@inlined
def aim(tree: Tree, cursor: Cursor) -> tuple[Cursor, Edge]:
    """Descend to an edge near the middle of the part in play; return the cursor and the edge."""
    x1 = x2 = y1 = y2 = slot1 = slot2 = whole(0)
    found = False
    while cursor.place >= 0 and not found:
        node = tree.nodes[at(cursor.place)]
        x1 = cursor.x + node.tangent_x[LEFT]
        x2 = cursor.x + node.weight[LEFT] + node.tangent_x[RIGHT]
        if x2 > cursor.part.high:
            cursor = into_child(tree, cursor, LEFT, cursor.part)
        elif x1 < cursor.part.low:
            cursor = into_child(tree, cursor, RIGHT, cursor.part)
        else:
            y1 = cursor.y + node.tangent_y[LEFT]
            y2 = cursor.y + node.positives[LEFT] + node.tangent_y[RIGHT]
            found = True
    if not found:
        if cursor.first == 0:
            cursor = into_bucket(tree, cursor)
        bucket = tree.buckets[at(~cursor.place)]
        vertices = bucket.vertices
        slot1 = highest_bit(vertices & bits_through((cursor.first + cursor.last) >> 1))
        slot2 = slot1
        if cursor.first < cursor.last:
            slot2 = lowest_bit(vertices & ~bits_through(slot1))
        x1 = cursor.x + bucket.weight[slot1]
        y1 = cursor.y + bucket.positives[slot1]
        x2 = cursor.x + bucket.weight[slot2]
        y2 = cursor.y + bucket.positives[slot2]
    return cursor, Edge(x1, y1, x2, y2, slot1, slot2, (slot1 == slot2) & (slot1 > 0))


@inlined
def side_of(edge: Edge, x: int, y: int) -> int:
    """Return > 0 if the point lies above the line through the edge, < 0 if below, 0 if on the line."""
    return (edge.x2 - edge.x1) * (y - edge.y1) - (edge.y2 - edge.y1) * (x - edge.x1)


@inlined
def halve(left: Edge, right: Edge, junction: int) -> tuple[int, int]:
    """Decide which halves of the two hulls cannot hold the tangent points.

    The first number is for the left hull, the second for the right hull: -1 = the tangent point is not beyond
    the edge, 1 = it is not before the edge, 0 = not decided. At least one number is not 0. `junction` is an
    abscissa between the two hulls. The decision uses only signs of whole numbers.
    """
    if left.is_vertex:
        return 0, 1 if side_of(right, left.x1, left.y1) <= 0 else -1
    if right.is_vertex:
        return -1 if side_of(left, right.x1, right.y1) <= 0 else 1, 0
    left_dx = left.x2 - left.x1
    left_dy = left.y2 - left.y1
    right_dx = right.x2 - right.x1
    right_dy = right.y2 - right.y1
    steeper = left_dx * right_dy - left_dy * right_dx  # > 0: the right edge is steeper than the left edge
    if steeper < 0:
        cut_left = -1 if side_of(left, right.x2, right.y2) <= 0 else 0
        cut_right = 1 if side_of(right, left.x1, left.y1) <= 0 else 0
        return cut_left, cut_right
    right_above = side_of(left, right.x1, right.y1)
    if steeper == 0 and right_above == 0:  # both edges on one line: the outermost points
        return -1, 1
    if right_above <= 0:
        return -1, -1
    if side_of(right, left.x2, left.y2) <= 0:
        return 1, 1
    # Each edge lies above the line through the other edge, so the two lines meet between the edges. If
    # they meet at or before the junction, the right line is the higher line behind the junction. The
    # right hull lies above the right line, hence above the left line. So the left tangent point is not
    # before the left edge's end. The mirrored case: the lines meet at or behind the junction.
    on_left_line = (left.y1 * left_dx + left_dy * (junction - left.x1)) * right_dx
    on_right_line = (right.y1 * right_dx + right_dy * (junction - right.x1)) * left_dx
    return (
        1 if on_right_line >= on_left_line else 0,
        -1 if on_right_line <= on_left_line else 0,
    )


@inlined
def settle(tree: Tree, node: Any, side: int, cursor: Cursor) -> int:
    """Write the tangent point at which a cursor has arrived; return the loss of the hull up to the point."""
    bucket = tree.buckets[at(~cursor.place)]
    slot = cursor.first
    vertices = bucket.vertices
    x = cursor.x + bucket.weight[slot]
    y = cursor.y + bucket.positives[slot]
    below = vertices & bits_below(slot)
    above = vertices & ~bits_through(slot)
    slope_before = -INFINITY
    if x == cursor.part.low:
        slope_before = cursor.part.low_slope
    elif below != 0:
        slope_before = slot_slope(bucket, highest_bit(below), slot)
    slope_after = INFINITY
    if x == cursor.part.high:
        slope_after = cursor.part.high_slope
    elif above != 0:
        slope_after = slot_slope(bucket, slot, lowest_bit(above))
    origin_x = whole(0)
    origin_y = whole(0)
    if side == RIGHT:
        origin_x += node.weight[LEFT]
        origin_y += node.positives[LEFT]
    node.tangent_x[side] = x - origin_x
    node.tangent_y[side] = y - origin_y
    node.slope_before[side] = slope_before
    node.slope_after[side] = slope_after
    return cursor.loss_before + chain_loss(bucket, below | (1 << slot), tree.state[0])


@inlined
def bridge_vector(node: Any) -> tuple[int, int]:
    """Return the vector from the bridge's left end to its right end."""
    return (
        whole(node.weight[LEFT]) + node.tangent_x[RIGHT] - node.tangent_x[LEFT],
        whole(node.positives[LEFT]) + node.tangent_y[RIGHT] - node.tangent_y[LEFT],
    )


@inlined
def bridge_slope(node: Any) -> float:
    """Return the slope of the bridge."""
    dx, dy = bridge_vector(node)
    return dy / dx


@inlined
def narrow(tree: Tree, cursor: Cursor, edge: Edge, cut: int) -> tuple[Cursor, Edge]:
    """Keep the part of a hull from an edge on (cut = 1) or up to the edge (-1).

    Return the cursor and the next edge to try.
    """
    cursor = keep_from(tree, cursor, edge) if cut > 0 else keep_until(tree, cursor, edge)
    return aim(tree, cursor)


@kernel
def find_bridge(tree: Tree, place: int) -> None:
    """Find the bridge of a node whose children are up to date, without an earlier bridge. O(log k)."""
    state = tree.state[0]
    if state.keeps_hull == 0:
        return
    node = tree.nodes[at(place)]
    junction = whole(node.weight[LEFT])
    right_child = whole(node.child[RIGHT])
    left = whole_hull(whole(node.child[LEFT]), whole(0), whole(0))
    right = whole_hull(right_child, junction, whole(node.positives[LEFT]))
    left, left_edge = aim(tree, left)
    right, right_edge = aim(tree, right)
    while not (left_edge.is_vertex and right_edge.is_vertex):
        cut_left, cut_right = halve(left_edge, right_edge, junction)
        if cut_left != 0:
            left, left_edge = narrow(tree, left, left_edge, cut_left)
        if cut_right != 0:
            right, right_edge = narrow(tree, right, right_edge, cut_right)
    node.h_kept[LEFT] = settle(tree, node, LEFT, left)
    node.h_kept[RIGHT] = hull_loss(tree, right_child) - settle(tree, node, RIGHT, right)
    dx, dy = bridge_vector(node)
    node.h_bridge = edge_loss(dx, dy, state)


class OldBridge(NamedTuple):
    """A bridge before an update.

    `p`, `q`: abscissas of the bridge's left and right end, each in the coordinates of its child.
    `slope_after_p`, `slope_before_q`: slopes of the hull edges that the bridge cut off. `left_weight`: weight
    of the left child.
    """

    p: int
    q: int
    slope_after_p: float
    slope_before_q: float
    left_weight: int


@inlined
def stands_bridge(node: Any) -> bool:
    """Return whether the bridge's line lies under both hulls, and its ends are the outermost points.

    The slopes of the four edges that meet in the ends decide; float64 tells slopes apart exactly.
    """
    slope = bridge_slope(node)
    return (
        (node.slope_before[LEFT] < slope)
        & (slope <= node.slope_after[LEFT])
        & (node.slope_before[RIGHT] <= slope)
        & (slope < node.slope_after[RIGHT])
    )


@inlined
def rest_bridge(node: Any, old_end: int, state: Any) -> Change:
    """Keep a bridge whose ends lie on both sides of the change.

    In the node's hull only the bridge has a new slope.
    """
    dx, dy = bridge_vector(node)
    slope = dy / dx
    loss = edge_loss(dx, dy, state)
    gained = loss - node.h_bridge
    node.h_bridge = loss
    return Change(whole(node.tangent_x[LEFT]), slope, old_end, slope, gained)


@kernel
def search_bridge(tree: Tree, place: int, side: int, change: Change, step: int, old: OldBridge) -> Change:
    """Find a new bridge in place of a bridge that did not fit; return the change of the node's hull.

    The node's hull changed between the outermost points of the child's change, the old bridge and the new
    bridge. Abscissas are as they were before the event; points behind the event have since moved by `step`.
    """
    node = tree.nodes[at(place)]
    old_loss = hull_loss(tree, place)
    find_bridge(tree, place)
    loss = hull_loss(tree, place) - old_loss
    slope = bridge_slope(node)
    p = whole(node.tangent_x[LEFT])
    q = whole(node.tangent_x[RIGHT])
    start, start_slope = change.start, change.start_slope
    end, end_slope = change.end, change.end_slope
    if side == RIGHT:  # the left child's hull did not change
        start = min(p, old.p)
        start_slope = slope if p <= old.p else old.slope_after_p
        end = max(end, old.q, q - step)
        if q - step == end:
            end_slope = slope
        elif end != change.end:
            end_slope = old.slope_before_q
    else:  # the right child's hull did not change
        start = min(start, old.p, p)
        if p == start:
            start_slope = slope
        elif start != change.start:
            start_slope = old.slope_after_p
        end = max(old.q, q)
        end_slope = slope if q >= old.q else old.slope_before_q
    return Change(start, start_slope, end + old.left_weight, end_slope, loss)


@inlined
def pass_bridge(tree: Tree, place: int, side: int, change: Change, step: int, label: int) -> Change:
    """Return how a node's hull changes when a child's hull changed, and repair the node's bridge if needed.

    The node's totals already include the event. At k = 10,000 an update passes eight bridges and searches
    0.44 of them. Each of the other bridges takes one to five comparisons.
    """
    node = tree.nodes[at(place)]
    state = tree.state[0]
    old = OldBridge(
        whole(node.tangent_x[LEFT]),
        whole(node.tangent_x[RIGHT]),
        node.slope_after[LEFT],
        node.slope_before[RIGHT],
        whole(node.weight[LEFT]) - (step if side == LEFT else 0),
    )
    if side == RIGHT:
        if old.q <= change.start:  # the change lies behind the bridge
            stands = True
            if old.q == change.start:
                node.slope_after[RIGHT] = change.start_slope
                stands = bridge_slope(node) < change.start_slope
            if stands:
                node.h_kept[RIGHT] += change.loss
                return Change(
                    change.start + old.left_weight,
                    change.start_slope,
                    change.end + old.left_weight,
                    change.end_slope,
                    change.loss,
                )
        elif old.q >= change.end:  # the bridge spans the change, and its right end moved
            node.tangent_x[RIGHT] += step
            node.tangent_y[RIGHT] += step * label
            if old.q == change.end:
                node.slope_before[RIGHT] = change.end_slope
            if stands_bridge(node):
                return rest_bridge(node, old.left_weight + old.q, state)
    elif old.p >= change.end:  # the change lies before the bridge, which moved as a whole
        node.tangent_x[LEFT] += step
        node.tangent_y[LEFT] += step * label
        stands = True
        if old.p == change.end:
            node.slope_before[LEFT] = change.end_slope
            stands = change.end_slope < bridge_slope(node)
        if stands:
            node.h_kept[LEFT] += change.loss
            return change
    elif old.p <= change.start:  # the bridge spans the change; the origin of its right end moved
        if old.p == change.start:
            node.slope_after[LEFT] = change.start_slope
        if stands_bridge(node):
            return rest_bridge(node, old.left_weight + old.q, state)
    return search_bridge(tree, place, side, change, step, old)
