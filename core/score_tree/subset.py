"""A subset of the hull's vertices in which every dropped vertex is near a kept vertex: Tatti 2021, section 6.

Invariant: vertices w between two consecutive kept vertices, u and v to its right, are dropped only if u and v
are NEAR. They are near if FPR(u) <= growth * FPR(v), hence FPR(u) <= growth * FPR(w). They are also near if
FNR(v) <= growth * FNR(u), hence FNR(v) <= growth * FNR(w). u has no more false negatives than w, and v no
more false positives than w. So at all costs of errors, u or v costs at most `growth` times as much as w.

The paper's Subset halves the search tree of the hull and drops a subtree between two near vertices, so that
its result depends on the tree's shape. Here the next kept vertex is the LAST one near the kept vertex before
it. This subset depends on the hull alone; each kept vertex takes one descent along the bridges, or two. Of
any three consecutive kept vertices the outer two are not near. So fewer than 2 log_growth(min(P, N)) + 4
vertices are kept: O(log^2 k / epsilon) in all, as in the paper. See docs/architecture/math.md,
"Approximations with a bound".
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import Any

from ..kernels.bits import lowest_bit
from ..kernels.compile import entry, inlined
from ..kernels.records import at, whole
from .bucket import INFINITY
from .layout import LEFT, RIGHT, Tree
from .query import Vertex, vertex_after


@inlined
def is_near(u: Any, v: Any, negatives: Any, growth: float) -> bool:
    """Return whether every vertex between u and v may be dropped; v lies to the right of u."""
    by_negatives = negatives - (u.x - u.y) <= growth * (negatives - (v.x - v.y))
    return by_negatives | (v.y <= growth * u.y)


@inlined
def ratio_between(u: Any, v: Any, negatives: Any) -> float:
    """Return the least growth for which u and v are near; at least one vertex lies between u and v."""
    at_u, at_v = negatives - (u.x - u.y), negatives - (v.x - v.y)
    by_negatives = at_u / at_v if at_v > 0 else INFINITY
    by_positives = v.y / u.y if u.y > 0 else INFINITY
    return min(by_negatives, by_positives)


@inlined
def last_near(tree: Tree, u: Vertex, end: Vertex, growth: float) -> Vertex:
    """Find the last vertex near u. O(log k). `end`, the hull's last vertex, must not be near u."""
    negatives = end.x - end.y
    last = u
    after = end  # `end` is not near: the last near vertex lies between `last` and `end`
    x = whole(0)
    y = whole(0)
    place = tree.state[0].root
    while place >= 0:
        node = tree.nodes[at(place)]
        middle_x = x + node.weight[LEFT]
        middle_y = y + node.positives[LEFT]
        p = Vertex(x + node.tangent_x[LEFT], y + node.tangent_y[LEFT])
        q = Vertex(middle_x + node.tangent_x[RIGHT], middle_y + node.tangent_y[RIGHT])
        goes_left = q.x > after.x
        if (not goes_left) & (p.x >= last.x):  # the bridge is an edge of the window's hull
            if is_near(u, q, negatives, growth):
                last = q
            elif is_near(u, p, negatives, growth):
                return p
            else:
                after = p
                goes_left = True
        if goes_left:
            place = whole(node.child[LEFT])
        else:
            x = middle_x
            y = middle_y
            place = whole(node.child[RIGHT])
    bucket = tree.buckets[at(~place)]
    rest = bucket.vertices
    while rest != 0:
        slot = lowest_bit(rest)
        vertex = Vertex(x + bucket.weight[slot], y + bucket.positives[slot])
        if (vertex.x > last.x) & (vertex.x < after.x):
            if not is_near(u, vertex, negatives, growth):
                return last
            last = vertex
        rest &= rest - 1
    return last


@entry
def list_subset(tree: Tree, growth: float, x: Any, y: Any) -> tuple[int, float]:
    """Write the subset of a tree's hull, along its bridges.

    Return the size of the subset and the least growth that allows it.
    """
    state = tree.state[0]
    end = Vertex(whole(state.weight), whole(state.positives))
    negatives = end.x - end.y
    needed = 1.0
    u = Vertex(whole(0), whole(0))
    x[0] = 0
    y[0] = 0
    n = whole(1)
    while u.x < end.x:
        v = vertex_after(tree, u.x)
        if is_near(u, v, negatives, growth):
            last = end if is_near(u, end, negatives, growth) else last_near(tree, u, end, growth)
            if last.x > v.x:
                needed = max(needed, ratio_between(u, last, negatives))
                v = last
        x[n] = v.x
        y[n] = v.y
        u = v
        n += 1
    return n, needed


@entry
def thin_hull(x: Any, y: Any, growth: float) -> tuple[int, float]:
    """Move the subset of a hull's vertices to the front of the arrays.

    Return the size of the subset and the least growth that allows it.

    The subset is equal to that of `list_subset`. O(vertices).
    """
    count = len(x)
    negatives = x[count - 1] - y[count - 1]
    needed = 1.0
    n = whole(1)
    dropped = False
    for i in range(1, count):
        u = Vertex(x[n - 1], y[n - 1])
        if i + 1 < count and is_near(u, Vertex(x[i + 1], y[i + 1]), negatives, growth):
            dropped = True
            continue
        v = Vertex(x[i], y[i])
        if dropped:
            needed = max(needed, ratio_between(u, v, negatives))
        dropped = False
        x[n] = v.x
        y[n] = v.y
        n += 1
    return n, needed
