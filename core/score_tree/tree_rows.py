"""Writes, from a tree, the numbers from which a row of measures is made.

Two kinds of tree give the same numbers, bit for bit. A tree that keeps its hull answers by descents, O(log k)
a row, or from values that earlier rows stored. A tree that does not keep its hull makes the hull in one scan,
O(k), some 20 ns a bucket. Hulls are strict and losses whole numbers, so the two kinds cannot differ.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..kernels.bits import bits_through, lowest_bit
from ..kernels.compile import entry, inlined, kernel
from ..kernels.records import at, for_kernels, whole
from ..measures.sums import loss_in_fixed_point, scale_of_weight
from .bucket import slot_of, under_line
from .build import neighbour, outermost_bucket
from .followed_vertices import COST_SLOPE, KS_SLOPE, watch_vertex
from .layout import FIRST_KEY, LEFT, NO_PLACE, PAD_KEY, RIGHT, Tree, hull_loss, score_of
from .query import Vertex, entry_at, last_on_chord, list_hull, score_at, tpr_at_fpr
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
    """The optional values that a row gets (1: yes), and the points at which they are taken."""

    h: int
    ks: int
    tpr_at_fpr: int
    cost_threshold: int
    aum: int
    fpr: float
    cost: float
    losses: int = 0


class Chain(NamedTuple):
    """Room for a hull: the abscissas and ordinates of its vertices, and the keys of the entries before them.

    A scan leaves its hull in the first half of the room, as a guess for the next scan (`STATE.guessed`).
    """

    x: Any
    y: Any
    key: Any


def empty_rows(count: int) -> Any:
    """Return `count` records of ROW without events: counts and losses are 0, other values are NaN."""
    return for_kernels(np.repeat(_EMPTY_ROW, count))


def chain_room(weight: int) -> int:
    """Return a number of vertices that no hull of so many events reaches.

    A strict chain needs edges of different slopes dy/dx in lowest terms. phi(d) of these slopes have dx = d.
    So 3 m^2 / pi^2 slopes have dx <= m, and their edges are together 2 m^3 / pi^2 wide. This makes 0.88
    k^(2/3) vertices at most.
    """
    return int(2.0 * weight ** (2.0 / 3.0)) + 16


@kernel
def push_point(chain: Chain, first: int, end: int, x: int, y: int, key: int) -> int:
    """Graham's step: append a point to the chain in the places first..end - 1; return the chain's new end."""
    xs, ys = chain.x, chain.y
    while end >= first + 2 and (xs[at(end - 1)] - xs[at(end - 2)]) * (y - ys[at(end - 2)]) <= (
        ys[at(end - 1)] - ys[at(end - 2)]
    ) * (x - xs[at(end - 2)]):
        end -= 1
    xs[at(end)] = x
    ys[at(end)] = y
    chain.key[at(end)] = key
    return end + 1


@kernel
def guess_hull(tree: Tree, chain: Chain, first: int) -> int:
    """Write a chain, from place `first` on, that lies on or above the hull; return the chain's end.

    Its vertices are the window's points at the scores of the last hull, and the window's first and last
    point. The key of a vertex is its place: 64 times its bucket, plus its slot. O(vertices log k).
    """
    state = tree.state[0]
    end = push_point(chain, first, first, whole(0), whole(0), whole(0))
    for i in range(1, state.guessed - 1):
        key = chain.key[at(i)]
        x = whole(0)
        y = whole(0)
        place = state.root
        while place >= 0:
            node = tree.nodes[at(place)]
            if key >= node.separator:
                x += node.weight[LEFT]
                y += node.positives[LEFT]
                place = whole(node.child[RIGHT])
            else:
                place = whole(node.child[LEFT])
        bucket = tree.buckets[at(~place)]
        slot = slot_of(bucket, key + 1) - 1
        end = push_point(
            chain, first, end, x + bucket.weight[slot], y + bucket.positives[slot], ~place * 64 + slot
        )
    return push_point(chain, first, end, state.weight, state.positives, whole(NO_PLACE))


@inlined
def under_edge(bucket: Any, chain: Chain, edge: int, x: int, y: int) -> int:
    """Return the slots of a bucket with origin (x, y) whose points lie strictly below the line of an edge."""
    left = chain.x[at(edge)]
    top = chain.y[at(edge)]
    return under_line(bucket, left - x, top - y, chain.x[at(edge + 1)] - left, chain.y[at(edge + 1)] - top)


@entry
def scan_hull(tree: Tree, chain: Chain) -> int:
    """Write the hull's vertices into the chain, from left to right; return their number. O(k).

    The hull of the last row changes little until the next row, so its scores give a chain close above the
    new hull (`guess_hull`), in the second half of the chain's room. Only the chain's vertices and the points
    strictly below the chain can be vertices. One vectorised comparison finds these points in a bucket, and
    nearly all buckets have none. Microseconds a scan at k = 10,000: 7; with the ends of all buckets as the
    chain above the hull: 13. To keep the buckets' hulls and merge them: 13, and .06 for each event.
    """
    state = tree.state[0]
    edge = whole(len(chain.x)) >> 1
    guess_hull(tree, chain, edge)
    n = push_point(chain, whole(0), whole(0), whole(0), whole(0), whole(0))
    if state.weight == 0:  # the first point is the last one
        return n
    x = whole(0)
    y = whole(0)
    key_before = whole(FIRST_KEY)  # slot 0 of a bucket is the point of the last entry of the bucket before
    index = outermost_bucket(tree, state.root, LEFT)
    while index != NO_PLACE:
        bucket = tree.buckets[at(index)]
        count = whole(bucket.count)
        rest = under_edge(bucket, chain, edge, x, y)
        corners = whole(0)
        while chain.key[at(edge + 1)] >> 6 == index:
            edge += 1
            corners |= 1 << (chain.key[at(edge)] & 63)
            rest |= under_edge(bucket, chain, edge, x, y)
        rest = (rest & bits_through(count) & ~1) | corners
        while rest != 0:
            slot = lowest_bit(rest)
            rest &= rest - 1
            key = bucket.key[slot] if slot > 0 else key_before
            n = push_point(chain, whole(0), n, x + bucket.weight[slot], y + bucket.positives[slot], key)
        key_before = bucket.key[at(count)]
        x += bucket.weight[at(count)]
        y += bucket.positives[at(count)]
        index = neighbour(tree, index, RIGHT)
    state.guessed = push_point(chain, whole(0), n, x, y, whole(0))
    return state.guessed


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


@kernel
def vertex_of(tree: Tree, chain: Chain, vertices: int, which: int, slope: float) -> tuple[Vertex, int]:
    """Return the hull's vertex at a slope, and the key of the entry behind it (PAD_KEY: none).

    Read the vertex from the bridges, or, in a tree without bridges, from the `vertices` that a scan wrote.
    """
    state = tree.state[0]
    if state.keeps_hull != 0:
        watch_vertex(tree, which, slope)
        return Vertex(state.watched_x[which], state.watched_y[which]), state.key_after[which]
    vertex = vertex_of_chain(chain, vertices, slope)
    key = whole(PAD_KEY)
    if vertex.x < state.weight:
        index, slot = entry_at(tree, vertex.x)
        key = tree.buckets[at(index)].key[slot]
    return vertex, key


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
    vertex, key = vertex_of(tree, chain, vertices, KS_SLOPE, np.nextafter(p / state.weight, 2.0))
    advantage = (vertex.x - vertex.y) * p - vertex.y * n
    row.ks = advantage / (float(n) * float(p))
    if vertex.x == state.weight:  # the last point has no threshold: TPR - FPR is never above 0
        row.ks_threshold = score_at(tree, last_on_chord(tree))
    else:
        row.ks_threshold = score_of(key)


@inlined
def write_cost_threshold(tree: Tree, chain: Chain, vertices: int, cost: float, row: Any) -> None:
    """Write the smallest window score with a calibrated probability of at least the cost, else +inf."""
    vertex, key = vertex_of(tree, chain, vertices, COST_SLOPE, cost)
    row.cost_threshold = np.inf if vertex.x == tree.state[0].weight else score_of(key)


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
    """Write the row into rows[0], for callers in Python."""
    write_row(tree, ask, chain, rows[0])
