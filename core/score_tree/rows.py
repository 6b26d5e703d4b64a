"""Writes the numbers from which a row of measures is made, from a tree.

Two kinds of tree give the same numbers, bit for bit. A tree that keeps its hull answers by descents, O(log k)
a row. A tree that does not keep it merges the hulls of its buckets in one scan, O(k / bucket); only the hulls
of changed buckets are computed again. Hulls are strict and losses whole numbers, so the two kinds cannot
differ.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..kernels.bits import lowest_bit
from ..kernels.compile import entry, inlined, kernel
from ..kernels.records import at, for_kernels, whole
from ..measures.sums import loss_in_fixed_point, scale_of_weight
from .bucket import rebuild_hull
from .build import neighbour, outermost_bucket
from .layout import LEFT, NO_PLACE, RIGHT, Tree, hull_loss
from .query import Vertex, last_on_chord, list_hull, score_at, tpr_at_fpr, vertex_at_slope
from .sums import area_now, write_losses

_ROW_FIELDS: list[Any] = [
    ("positives", "i8"),
    ("negatives", "i8"),
    ("pairs2", "i8"),  # AUC = pairs2 / (2 positives negatives)
    ("squares_positive", "i8"),  # sum over positives of (2 negatives below + ties)^2
    ("squares_negative", "i8"),  # sum over negatives of (2 positives above + ties)^2
    ("h_loss", "i8"),  # H = 1 - h_loss / h_loss_of_all
    ("h_loss_of_all", "i8"),  # the loss of one edge from the hull's first vertex to its last
    ("ks", "f8"),
    ("ks_threshold", "f8"),
    ("tpr_at_fpr", "f8"),
    ("cost_threshold", "f8"),
    ("aum", "f8"),
    ("brier", "f8"),
    ("log_loss", "f8"),
]
ROW = np.dtype(_ROW_FIELDS)
_EMPTY_ROW = np.array([(0,) * 7 + (np.nan,) * 7], ROW)


class Ask(NamedTuple):
    """Which optional values a row gets (1: yes), and at which points."""

    h: int
    ks: int
    tpr_at_fpr: int
    cost_threshold: int
    aum: int
    fpr: float
    cost: float
    losses: int = 0


class Chain(NamedTuple):
    """Scratch for a hull: the abscissas and the ordinates of its vertices."""

    x: Any
    y: Any


def empty_rows(count: int) -> Any:
    """Make so many records of ROW, without events: counts and losses are 0, other values are NaN."""
    return for_kernels(np.repeat(_EMPTY_ROW, count))


def chain_room(weight: int) -> int:
    """Return a number of vertices that no hull of so many events reaches.

    A strict chain needs edges of different slopes dy/dx in lowest terms. phi(d) of these slopes have dx = d.
    So 3 m^2 / pi^2 slopes have dx <= m, and their edges are together 2 m^3 / pi^2 wide. This makes 0.88
    k^(2/3) vertices at most.
    """
    return int(2.0 * weight ** (2.0 / 3.0)) + 16


@entry
def scan_hull(tree: Tree, chain: Chain) -> int:
    """Merge the hulls of the buckets, left to right; return the number of vertices."""
    state = tree.state[0]
    xs, ys = chain.x, chain.y
    n = whole(0)
    origin_x = whole(0)
    origin_y = whole(0)
    index = outermost_bucket(tree, state.root, LEFT)
    while index != NO_PLACE:
        bucket = tree.buckets[at(index)]
        if bucket.vertices == 0:
            rebuild_hull(bucket, state)
        rest = bucket.vertices
        while rest != 0:
            slot = lowest_bit(rest)
            rest &= rest - 1
            x = origin_x + bucket.weight[slot]
            y = origin_y + bucket.positives[slot]
            while n >= 2 and (xs[n - 1] - xs[n - 2]) * (y - ys[n - 2]) <= (ys[n - 1] - ys[n - 2]) * (
                x - xs[n - 2]
            ):
                n -= 1
            xs[n] = x
            ys[n] = y
            n += 1
        count = whole(bucket.count)
        origin_x += bucket.weight[count]
        origin_y += bucket.positives[count]
        index = neighbour(tree, index, RIGHT)
    return n


@inlined
def vertex_of_chain(chain: Chain, vertices: int, slope: float) -> Vertex:
    """Return the same vertex as `vertex_at_slope`, on a hull laid out in full."""
    first = whole(0)
    last = whole(vertices - 1)
    while first < last:
        middle = (first + last) >> 1
        dx = chain.x[middle + 1] - chain.x[middle]
        dy = chain.y[middle + 1] - chain.y[middle]
        if dy / dx < slope:
            first = middle + 1
        else:
            last = middle
    return Vertex(chain.x[first], chain.y[first])


@inlined
def vertex_of(tree: Tree, chain: Chain, vertices: int, slope: float) -> Vertex:
    """Return the hull's vertex at a slope, from the bridges or from the scan."""
    if tree.state[0].keeps_hull != 0:
        return vertex_at_slope(tree, tree.state[0].root, whole(0), whole(0), slope)
    return vertex_of_chain(chain, vertices, slope)


@kernel
def write_hull_losses(tree: Tree, chain: Chain, vertices: int, row: Any) -> None:
    """Write the loss of the hull and the loss of its chord.

    In a window without a size, the capacity depends on the greatest number of events it ever held. Rows must
    not depend on this number. So if the capacity's fixed point is not that of the weight, the loss is summed
    again over the hull, which has few edges.
    """
    state = tree.state[0]
    scale = scale_of_weight(state.weight) if state.follows_weight != 0 else state.scale
    if (state.keeps_hull != 0) & (scale == state.scale):
        row.h_loss = hull_loss(tree, state.root)
    else:
        if state.keeps_hull != 0:
            vertices = list_hull(tree, chain.x, chain.y)
        loss = whole(0)
        for i in range(1, vertices):
            dx, dy = chain.x[i] - chain.x[i - 1], chain.y[i] - chain.y[i - 1]
            loss += loss_in_fixed_point(dx, dy, state.curvature, scale)
        row.h_loss = loss
    row.h_loss_of_all = loss_in_fixed_point(state.weight, state.positives, state.curvature, scale)


@inlined
def write_ks(tree: Tree, chain: Chain, vertices: int, row: Any) -> None:
    """Write the greatest TPR - FPR, at least 0, and the largest window score that attains it.

    TPR - FPR = (x - y) / N - y / P at the point (x, y) of the entries below the threshold. It is greatest
    where the hull's slope crosses the prevalence, and at the far end of an edge that has exactly that slope.
    """
    state = tree.state[0]
    p = state.positives
    n = state.weight - p
    vertex = vertex_of(tree, chain, vertices, np.nextafter(p / state.weight, 2.0))
    advantage = (vertex.x - vertex.y) * p - vertex.y * n
    x = vertex.x
    if x == state.weight:  # the far end is the last point, which has no threshold: the curve never rises
        x = last_on_chord(tree)
    row.ks = advantage / (float(n) * float(p))
    row.ks_threshold = score_at(tree, x)


@inlined
def write_cost_threshold(tree: Tree, chain: Chain, vertices: int, cost: float, row: Any) -> None:
    """Write the smallest window score with a calibrated probability of at least the cost, else +inf."""
    vertex = vertex_of(tree, chain, vertices, cost)
    if vertex.x == tree.state[0].weight:
        row.cost_threshold = np.inf
    else:
        row.cost_threshold = score_at(tree, vertex.x)


@inlined
def write_row(tree: Tree, ask: Ask, chain: Chain, row: Any) -> None:
    """Write the values that `ask` wants into an empty row (`empty_rows`), if the window has their classes."""
    state = tree.state[0]
    positives = state.positives
    negatives = state.weight - positives
    row.positives = positives
    row.negatives = negatives
    row.pairs2 = state.pairs2
    row.squares_positive = state.squares_positive
    row.squares_negative = state.squares_negative
    if (ask.losses != 0) & (state.weight > 0):
        write_losses(tree, row)
    if (positives == 0) | (negatives == 0):
        return
    vertices = whole(0)
    if (state.keeps_hull == 0) & (ask.h + ask.ks + ask.cost_threshold > 0):
        vertices = scan_hull(tree, chain)
    if ask.h != 0:
        write_hull_losses(tree, chain, vertices, row)
    if ask.ks != 0:
        write_ks(tree, chain, vertices, row)
    if ask.tpr_at_fpr != 0:
        row.tpr_at_fpr = tpr_at_fpr(tree, ask.fpr)
    if ask.cost_threshold != 0:
        write_cost_threshold(tree, chain, vertices, ask.cost, row)
    if ask.aum != 0:
        row.aum = area_now(tree)


@entry
def read_row(tree: Tree, ask: Ask, chain: Chain, rows: Any) -> None:
    """Write rows[0]. Called from Python."""
    write_row(tree, ask, chain, rows[0])
