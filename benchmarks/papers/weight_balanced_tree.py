"""A tree of partial hulls that is balanced by the number of its leaves; the kernels of `subset_alt`.

A leaf is a positive with all negatives that follow it before the next one (equal scores: positives first), so
that a vertex of the hull is the end of a leaf. The first leaf has no positive, but the negatives before all.
Every inner node keeps the bridge between its children's hulls (Overmars & van Leeuwen 1981), as in
`core.score_tree`, from which it differs in what SubsetAlt needs: ONE positive a leaf, balance by number.

Invariant: 3 times the smaller child has at least as many leaves as the larger (Nievergelt & Reingold 1973,
with the parameters 3 and 2, which Hirai & Yamamoto 2011 prove right for insertion and for removal).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

NONE = -1
FAR = 1 << 60
MOST_LEVELS = 128
HEAVIER, OUTER = 3, 2

compiled = numba.njit(error_model="numpy", cache=True)  # right while all it calls is in this file


class Tree(NamedTuple):
    """Arrays by id of a node or leaf; `state`: root, next fresh id, head of the free ids (linked by
    `left`)."""

    left: Any  # NONE: a leaf
    right: Any
    leaves: Any
    weight: Any  # events
    positives: Any
    score: Any  # of a leaf; of a node: that of the first leaf on its right
    bridge: Any  # x, y of its left end from the node's origin, of its right end from the right child's
    state: Any


class Point(NamedTuple):
    x: int
    y: int


class Cursor(NamedTuple):
    """A place of a hull with its origin, and the abscissas of the vertices in play."""

    place: int
    x: int
    y: int
    low: int
    high: int


class Edge(NamedTuple):
    x1: int
    y1: int
    x2: int
    y2: int
    is_vertex: bool


def empty_tree(room: int) -> Tree:
    numbers = np.full((5, room), NONE, np.int64)
    state = np.array([NONE, 0, NONE])
    return Tree(*numbers, np.empty(room), np.zeros((room, 4), np.int64), state)


@compiled
def take_id(tree):
    place = tree.state[2]
    if place != NONE:
        tree.state[2] = tree.left[place]
        return place
    place = tree.state[1]
    tree.state[1] += 1
    return place


@compiled
def free_id(tree, place):
    tree.left[place] = tree.state[2]
    tree.state[2] = place


@compiled
def write_leaf(tree, place, score, negatives, positives):
    tree.left[place] = tree.right[place] = NONE
    tree.leaves[place] = 1
    tree.weight[place] = negatives + positives
    tree.positives[place] = positives
    tree.score[place] = score


@compiled
def copy_record(tree, source, place):
    tree.left[place], tree.right[place] = tree.left[source], tree.right[source]
    tree.leaves[place], tree.weight[place] = tree.leaves[source], tree.weight[source]
    tree.positives[place], tree.score[place] = tree.positives[source], tree.score[source]
    tree.bridge[place] = tree.bridge[source]


@compiled
def bridge_ends(tree, place, x, y):
    """The ends of a node's bridge, the node's origin being (x, y)."""
    left, bridge = tree.left[place], tree.bridge[place]
    p = Point(x + bridge[0], y + bridge[1])
    return p, Point(x + tree.weight[left] + bridge[2], y + tree.positives[left] + bridge[3])


@compiled
def descend_right(tree, cursor, low):
    left = tree.left[cursor.place]
    x, y = cursor.x + tree.weight[left], cursor.y + tree.positives[left]
    return Cursor(tree.right[cursor.place], x, y, low, cursor.high)


@compiled
def descend_left(tree, cursor, high):
    return Cursor(tree.left[cursor.place], cursor.x, cursor.y, cursor.low, high)


@compiled
def aim(tree, cursor):
    """Go down to an edge of what is in play, or to the one vertex."""
    while tree.left[cursor.place] != NONE:
        p, q = bridge_ends(tree, cursor.place, cursor.x, cursor.y)
        if q.x > cursor.high:
            cursor = descend_left(tree, cursor, cursor.high)
        elif p.x < cursor.low:
            cursor = descend_right(tree, cursor, cursor.low)
        else:
            return cursor, Edge(p.x, p.y, q.x, q.y, False)
    x, y = cursor.x + tree.weight[cursor.place], cursor.y + tree.positives[cursor.place]
    return cursor, Edge(x, y, x, y, True)


@compiled
def side_of(edge, x, y):
    """Positive: the point lies above the line through the edge."""
    return (edge.x2 - edge.x1) * (y - edge.y1) - (edge.y2 - edge.y1) * (x - edge.x1)


@compiled
def halve(left, right, junction):
    """Decide which part of either hull cannot hold the end of the bridge: -1 behind the edge, 1 before it."""
    if left.is_vertex:
        return 0, 1 if side_of(right, left.x1, left.y1) <= 0 else -1
    if right.is_vertex:
        return -1 if side_of(left, right.x1, right.y1) <= 0 else 1, 0
    left_dx, left_dy = left.x2 - left.x1, left.y2 - left.y1
    right_dx, right_dy = right.x2 - right.x1, right.y2 - right.y1
    steeper = left_dx * right_dy - left_dy * right_dx
    if steeper < 0:
        cut_left = -1 if side_of(left, right.x2, right.y2) <= 0 else 0
        return cut_left, 1 if side_of(right, left.x1, left.y1) <= 0 else 0
    right_above = side_of(left, right.x1, right.y1)
    if steeper == 0 and right_above == 0:
        return -1, 1
    if right_above <= 0:
        return -1, -1
    if side_of(right, left.x2, left.y2) <= 0:
        return 1, 1
    on_left_line = (left.y1 * left_dx + left_dy * (junction - left.x1)) * right_dx
    on_right_line = (right.y1 * right_dx + right_dy * (junction - right.x1)) * left_dx
    return 1 if on_right_line >= on_left_line else 0, -1 if on_right_line <= on_left_line else 0


@compiled
def refresh(tree, place):
    """Make a node's totals and bridge from its children's. O(log n)."""
    a, b = tree.left[place], tree.right[place]
    tree.leaves[place] = tree.leaves[a] + tree.leaves[b]
    tree.weight[place] = tree.weight[a] + tree.weight[b]
    tree.positives[place] = tree.positives[a] + tree.positives[b]
    junction = tree.weight[a]
    left, left_edge = aim(tree, Cursor(a, 0, 0, -1, FAR))
    right, right_edge = aim(tree, Cursor(b, junction, tree.positives[a], -1, FAR))
    while not (left_edge.is_vertex and right_edge.is_vertex):
        cut_left, cut_right = halve(left_edge, right_edge, junction)
        if cut_left > 0:
            left, left_edge = aim(tree, descend_right(tree, left, left_edge.x2))
        elif cut_left < 0:
            left, left_edge = aim(tree, descend_left(tree, left, left_edge.x1))
        if cut_right > 0:
            right, right_edge = aim(tree, descend_right(tree, right, right_edge.x2))
        elif cut_right < 0:
            right, right_edge = aim(tree, descend_left(tree, right, right_edge.x1))
    bridge = tree.bridge[place]
    bridge[0], bridge[1] = left_edge.x1, left_edge.y1
    bridge[2], bridge[3] = right_edge.x1 - junction, right_edge.y1 - tree.positives[a]


@compiled
def link(tree, place, left, right, score):
    tree.left[place], tree.right[place], tree.score[place] = left, right, score
    refresh(tree, place)


@compiled
def balance(tree, v):
    """Make a node whose child has gained or lost a leaf right again; ids of nodes stay where they are."""
    a, b = tree.left[v], tree.right[v]
    if tree.leaves[b] > HEAVIER * tree.leaves[a]:
        inner, outer = tree.left[b], tree.right[b]
        if tree.leaves[inner] < OUTER * tree.leaves[outer]:
            s, t = tree.score[v], tree.score[b]
            link(tree, b, a, inner, s)
            link(tree, v, b, outer, t)
        else:
            s, t, r = tree.score[v], tree.score[inner], tree.score[b]
            first, second = tree.left[inner], tree.right[inner]
            link(tree, inner, a, first, s)
            link(tree, b, second, outer, r)
            link(tree, v, inner, b, t)
    elif tree.leaves[a] > HEAVIER * tree.leaves[b]:
        outer, inner = tree.left[a], tree.right[a]
        if tree.leaves[inner] < OUTER * tree.leaves[outer]:
            s, t = tree.score[v], tree.score[a]
            link(tree, a, inner, b, s)
            link(tree, v, outer, a, t)
        else:
            s, t, r = tree.score[v], tree.score[inner], tree.score[a]
            first, second = tree.left[inner], tree.right[inner]
            link(tree, inner, second, b, s)
            link(tree, a, outer, first, r)
            link(tree, v, a, inner, t)
    else:
        refresh(tree, v)


@compiled
def find_path(tree, score, path):
    """Write the way to the last leaf whose score is not above; return its length."""
    place, length = tree.state[0], 0
    while True:
        path[length] = place
        length += 1
        if tree.left[place] == NONE:
            return length
        place = tree.right[place] if score >= tree.score[place] else tree.left[place]


@compiled
def find_path_before(tree, path, length):
    """Turn the way to a leaf, not the first, into that to the leaf before it.

    Returns its length, and how much of it is common to both.
    """
    common = length - 1
    while tree.right[path[common - 1]] != path[common]:
        common -= 1
    place, length = tree.left[path[common - 1]], common
    while True:
        path[length] = place
        length += 1
        if tree.left[place] == NONE:
            return length, common
        place = tree.right[place]


@compiled
def mend(tree, path, start, end):
    """Make the nodes start..end-1 of a way right, the last first."""
    for i in range(end - 1, start - 1, -1):
        balance(tree, path[i])


@compiled
def add_negatives(tree, path, length, count):
    tree.weight[path[length - 1]] += count
    mend(tree, path, 0, length - 1)


@compiled
def insert_leaf(tree, path, length, score, moved):
    """Put a positive behind the leaf at the end of the way; so many of that leaf's negatives follow it."""
    place = path[length - 1]
    before, after = take_id(tree), take_id(tree)
    copy_record(tree, place, before)
    tree.weight[before] -= moved
    write_leaf(tree, after, score, moved, 1)
    link(tree, place, before, after, score)
    mend(tree, path, 0, length - 1)


@compiled
def remove_leaf(tree, path, length):
    """Drop the positive at the end of a way; the negatives behind it go to the leaf before it."""
    leaf, parent = path[length - 1], path[length - 2]
    before = path.copy()
    length_before, common = find_path_before(tree, before, length)
    tree.weight[before[length_before - 1]] += tree.weight[leaf] - 1
    mend(tree, before, common, length_before - 1)
    is_right = tree.right[parent] == leaf
    other = tree.left[parent] if is_right else tree.right[parent]
    copy_record(tree, other, parent)
    free_id(tree, other)
    free_id(tree, leaf)
    if not is_right:  # it was the first leaf on the right of the last common node
        first = path[common]
        while tree.left[first] != NONE:
            first = tree.left[first]
        tree.score[path[common - 1]] = tree.score[first]
    mend(tree, path, 0, length - 2)


@compiled
def write_point(out, count, x, y):
    if x > out[count[0] - 1, 0]:
        out[count[0], 0], out[count[0], 1] = x, y
        count[0] += 1


@compiled
def list_subset(tree, growth, stack, out, count):
    """SubsetAlt: write vertices in order. count: how many, and how many nodes were expanded.

    The stack holds what is left to do: a subtree with its origin and the vertices u and w between which
    its part of the hull lies, or, of place NONE, a bridge to be written.
    """
    root = tree.state[0]
    first = root
    while tree.left[first] != NONE:
        first = tree.left[first]
    out[0, 0] = out[0, 1] = 0
    count[0], count[1] = 1, 0
    write_point(out, count, tree.weight[first], 0)
    stack[0] = (root, 0, 0, tree.weight[first], 0, tree.weight[root], tree.positives[root])
    top = 0
    while top >= 0:
        place, x, y, ux, uy, wx, wy = stack[top]
        top -= 1
        if place == NONE:
            write_point(out, count, ux, uy)
            write_point(out, count, wx, wy)
            continue
        if wy <= growth * uy or tree.left[place] == NONE:
            continue
        count[1] += 1
        left, right = tree.left[place], tree.right[place]
        p, q = bridge_ends(tree, place, x, y)
        middle_x, middle_y = x + tree.weight[left], y + tree.positives[left]
        if q.x > wx:  # another bridge passes below the right child
            stack[top + 1] = (left, x, y, ux, uy, wx, wy)
            top += 1
        elif p.x < ux:
            stack[top + 1] = (right, middle_x, middle_y, ux, uy, wx, wy)
            top += 1
        else:
            stack[top + 1] = (right, middle_x, middle_y, q.x, q.y, wx, wy)
            stack[top + 2] = (NONE, 0, 0, p.x, p.y, q.x, q.y)
            stack[top + 3] = (left, x, y, ux, uy, p.x, p.y)
            top += 3
    write_point(out, count, tree.weight[root], tree.positives[root])
