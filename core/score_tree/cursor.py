"""Cursors: places on the hull of a subtree, which the search for a bridge moves."""

from __future__ import annotations

from typing import NamedTuple

from ..kernels.bits import bits_below, bits_through, highest_bit, lowest_bit
from ..kernels.compile import inlined
from ..kernels.records import at, whole
from .bucket import INFINITY
from .layout import FAR, LEFT, RIGHT, Tree, hull_loss


class Part(NamedTuple):
    """The part of a hull that the search still considers.

    It goes from abscissa `low` to `high`, which are vertices or lie beyond the hull.

    `low_slope` is the slope of the edge that ends at low, `high_slope` of the edge that begins at high.
    """

    low: int
    high: int
    low_slope: float
    high_slope: float


class Cursor(NamedTuple):
    """Where the search stands in one child's hull.

    `place` is a subtree whose hull contains the part that is considered; (x, y) is the subtree's origin. The
    loss of the child's hull up to a vertex is `loss_before` plus the loss of the hull of `place` up to that
    vertex. In a bucket the vertices considered are those in the slots first..last (0 before the slots are
    known).
    """

    place: int
    x: int
    y: int
    part: Part
    loss_before: int
    first: int
    last: int


class Edge(NamedTuple):
    """A hull edge, with the slots of its ends if it lies in a bucket; or a single vertex as both ends."""

    x1: int
    y1: int
    x2: int
    y2: int
    slot1: int
    slot2: int
    is_vertex: bool


@inlined
def whole_hull(place: int, x: int, y: int) -> Cursor:
    """Return a cursor that considers the whole hull of a child."""
    everything = Part(whole(-1), whole(FAR), -INFINITY, INFINITY)
    return Cursor(place, x, y, everything, whole(0), whole(0), whole(0))


@inlined
def into_child(tree: Tree, cursor: Cursor, side: int, part: Part) -> Cursor:
    """Move the cursor into a child of its node, and let it consider this part of the hull."""
    node = tree.nodes[at(cursor.place)]
    x, y, loss_before = cursor.x, cursor.y, cursor.loss_before
    child = whole(node.child[side])
    if side == RIGHT:
        x += node.weight[LEFT]
        y += node.positives[LEFT]
        # Up to a vertex right of the bridge, the losses of the node's hull and of the right child's hull
        # differ by this constant.
        loss_before += hull_loss(tree, cursor.place) - hull_loss(tree, child)
    return Cursor(child, x, y, part, loss_before, whole(0), whole(0))


@inlined
def with_slots(cursor: Cursor, first: int, last: int) -> Cursor:
    """Restrict a cursor to the vertices in the slots first..last of its bucket."""
    return Cursor(cursor.place, cursor.x, cursor.y, cursor.part, cursor.loss_before, first, last)


@inlined
def into_bucket(tree: Tree, cursor: Cursor) -> Cursor:
    """Return the cursor of a bucket, with the first and the last slot whose vertices are considered."""
    bucket = tree.buckets[at(~cursor.place)]
    vertices = bucket.vertices
    first = lowest_bit(vertices)
    last = highest_bit(vertices)
    while first < last and cursor.x + bucket.weight[first] < cursor.part.low:
        first = lowest_bit(vertices & ~bits_through(first))
    while first < last and cursor.x + bucket.weight[last] > cursor.part.high:
        last = highest_bit(vertices & bits_below(last))
    return with_slots(cursor, first, last)


@inlined
def keep_from(tree: Tree, cursor: Cursor, edge: Edge) -> Cursor:
    """Keep the part from the edge's end on: the tangent point is the edge's end or lies beyond it."""
    if cursor.place < 0:
        return with_slots(cursor, edge.slot2, cursor.last)
    slope = (edge.y2 - edge.y1) / (edge.x2 - edge.x1)
    beyond = Part(edge.x2, cursor.part.high, slope, cursor.part.high_slope)
    return into_child(tree, cursor, RIGHT, beyond)


@inlined
def keep_until(tree: Tree, cursor: Cursor, edge: Edge) -> Cursor:
    """Keep the part up to the edge's beginning: the tangent point is that beginning or lies before it."""
    if cursor.place < 0:
        return with_slots(cursor, cursor.first, edge.slot1)
    slope = (edge.y2 - edge.y1) / (edge.x2 - edge.x1)
    before = Part(cursor.part.low, edge.x1, cursor.part.low_slope, slope)
    return into_child(tree, cursor, LEFT, before)
