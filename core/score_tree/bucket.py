"""Kernels of one bucket: find, add and remove entries, count pairs, maintain the hull.

Loops over a bucket run over all its slots, whatever its count. Conditions in these loops compile to masks.
So one instruction handles eight keys, and there is no remainder loop and no mispredicted exit. A loop that
needs a slot's neighbour keeps its value in a variable: to load each value twice took 10% to 25% of an update.

A hull is repaired, not recomputed. A change of the entry in slot j moves all points from j on by the same
step. So the vertices below j still form a convex chain, and so do the vertices from j on. Only points
between the last vertex below j and the first vertex from j on can become vertices or cease to be vertices.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..kernels.bits import bits_below, bits_through, highest_bit, lowest_bit
from ..kernels.compile import Integer, inlined, kernel
from ..kernels.records import whole
from .layout import FAR, NO_SLOT, PAD_KEY, SLOTS, edge_loss

INFINITY = np.inf


class Change(NamedTuple):
    """How an event changed the hull of a subtree: what the node above needs to know.

    The vertices at abscissas `start` and `end` (as before the change) stay. Vertices between them are new or
    gone, and every point from `end` on moved by the event. start = -1: the change begins before the first
    vertex; end = FAR: the change reaches beyond the last vertex. `start_slope` is the slope of the edge that
    now leaves start, `end_slope` of the edge that now enters end. `loss` is the change of the sum of losses.
    """

    start: int
    start_slope: float
    end: int
    end_slope: float
    loss: int


@inlined
def slot_of(bucket: Any, key: int) -> int:
    """Return the first slot whose key is not below `key`."""
    slot = 1
    for t in range(1, SLOTS + 1):
        slot += bucket.key[t] < key
    return slot


@inlined
def entry_of(bucket: Any, slot: int) -> tuple[int, int]:
    """Return the weight and the positives of the entry at a slot."""
    return (
        whole(bucket.weight[slot]) - bucket.weight[slot - 1],
        whole(bucket.positives[slot]) - bucket.positives[slot - 1],
    )


@inlined
def by_class(label: int, weight: int, positives: int) -> tuple[int, int]:
    """Split a weight with its positives into class `label` and the other class."""
    negatives = weight - positives
    return (positives, negatives) if label != 0 else (negatives, positives)


@inlined
def shift_up(column: Any, slot: int, step: Integer) -> None:
    """Move the values of a column from `slot` on up by one slot, each plus `step`.

    The value at `slot` itself stays.
    """
    here = column[SLOTS]
    for t in range(SLOTS, 0, -1):
        below = column[t - 1]
        column[t] = below + step if t > slot else here
        here = below


@inlined
def shift_down(column: Any, slot: int, step: Integer) -> None:
    """Move the values of a column behind `slot` down by one slot, each plus `step`."""
    here = column[1]
    for t in range(1, SLOTS + 1):
        above = column[t + 1]
        column[t] = above + step if t >= slot else here
        here = above


@inlined
def open_slot(bucket: Any, slot: int, key: int, label: int) -> None:
    """Make an entry of one event at `slot`; the entries from `slot` on move up by one."""
    shift_up(bucket.key, slot, whole(0))
    shift_up(bucket.weight, slot, np.int32(1))
    shift_up(bucket.positives, slot, np.int32(label))
    bucket.key[slot] = key
    bucket.weight[slot] = bucket.weight[slot - 1] + np.int32(1)
    bucket.positives[slot] = bucket.positives[slot - 1] + np.int32(label)
    bucket.count += np.int32(1)


@inlined
def close_slot(bucket: Any, slot: int, label: int) -> None:
    """Drop the entry at `slot`, which has one event; the entries behind it move down by one."""
    shift_down(bucket.key, slot, whole(0))
    shift_down(bucket.weight, slot, -np.int32(1))
    shift_down(bucket.positives, slot, -np.int32(label))
    bucket.count -= np.int32(1)


@inlined
def weigh_slot(bucket: Any, slot: int, sign: int, label: int) -> None:
    """Add one event (sign = 1) to the entry at `slot`, or remove one event (sign = -1).

    The entry itself stays.
    """
    step = np.int32(sign)
    for t in range(1, SLOTS + 1):
        bucket.weight[t] += step if t >= slot else np.int32(0)
    if label != 0:
        for t in range(1, SLOTS + 1):
            bucket.positives[t] += step if t >= slot else np.int32(0)


@inlined
def pairs_of_run(bucket: Any, first: int, last: int) -> int:
    """Return twice the pairs (negative below positive, ties half) within the entries first..last."""
    before = whole(0)
    if first <= last:
        before = 2 * (whole(bucket.weight[first - 1]) - whole(bucket.positives[first - 1]))
    pairs2 = whole(0)
    positives_below = whole(bucket.positives[0])
    negatives_below = whole(bucket.weight[0]) - positives_below
    for t in range(1, SLOTS + 1):
        positives = whole(bucket.positives[t])
        negatives = whole(bucket.weight[t]) - positives
        pairs = (positives - positives_below) * (negatives + negatives_below - before)
        pairs2 += pairs if (t >= first) & (t <= last) else whole(0)
        positives_below = positives
        negatives_below = negatives
    return pairs2


@inlined
def under_line(bucket: Any, x: Integer, y: Integer, dx: Integer, dy: Integer) -> int:
    """Return the slots whose points lie strictly below the line through (x, y) in the direction (dx, dy).

    Slots that are not in use may be among them. In float64, exact below a weight of 2^26, because processors
    multiply vectors of float64 but not of int64.
    """
    width = np.float64(dx)
    rise = np.float64(dy)
    level = y * width - x * rise
    slots = whole(0)
    for t in range(SLOTS):
        under = bucket.positives[t] * width - bucket.weight[t] * rise < level
        slots |= whole(under) << whole(t)
    return slots


@inlined
def below_line(bucket: Any, a: int, b: int) -> int:
    """Return the slots between a and b whose points lie strictly below the line of a's and b's points."""
    x = whole(bucket.weight[a])
    y = whole(bucket.positives[a])
    slots = under_line(bucket, x, y, whole(bucket.weight[b]) - x, whole(bucket.positives[b]) - y)
    return slots & bits_below(b) & ~bits_through(a)


@inlined
def turns_left(bucket: Any, a: int, b: int, c: int) -> bool:
    """Return whether the points of slots a, b, c, in this order, turn left; b is then a vertex."""
    x = whole(bucket.weight[b])
    y = whole(bucket.positives[b])
    return (x - bucket.weight[a]) * (bucket.positives[c] - y) > (y - bucket.positives[a]) * (
        bucket.weight[c] - x
    )


@inlined
def slot_slope(bucket: Any, a: int, b: int) -> float:
    """Return the slope of the edge between the points of two slots."""
    return (whole(bucket.positives[b]) - bucket.positives[a]) / (whole(bucket.weight[b]) - bucket.weight[a])


@inlined
def slot_loss(bucket: Any, a: int, b: int, state: Any) -> int:
    """Return the loss of the edge between the points of two slots."""
    return edge_loss(
        whole(bucket.weight[b]) - bucket.weight[a],
        whole(bucket.positives[b]) - bucket.positives[a],
        state,
    )


@inlined
def chain_loss(bucket: Any, vertices: int, state: Any) -> int:
    """Return the sum of the losses of the edges between consecutive slots of a set."""
    loss = whole(0)
    a = lowest_bit(vertices)
    rest = vertices & (vertices - 1)
    while rest != 0:
        b = lowest_bit(rest)
        rest &= rest - 1
        loss += slot_loss(bucket, a, b, state)
        a = b
    return loss


@inlined
def push(bucket: Any, chain: int, slot: int) -> int:
    """Graham's step: append a slot to a convex chain, and drop last slots that are then not convex.

    The chain is a set of slots and serves as the stack: the top is the highest bit.
    """
    top = highest_bit(chain)
    while chain != 0:
        rest = chain & ~(1 << top)
        under = highest_bit(rest)
        if rest == 0 or turns_left(bucket, under, top, slot):
            break
        chain = rest
        top = under
    return chain | (1 << slot)


@kernel
def rebuild_hull(bucket: Any, state: Any) -> None:
    """Compute the hull of a bucket from its points alone."""
    chain = whole(0)
    for slot in range(1, whole(bucket.count) + 1):
        chain = push(bucket, chain, slot)
    bucket.vertices = chain
    bucket.h = chain_loss(bucket, chain, state)


@inlined
def renew_hull(bucket: Any, state: Any) -> None:
    """Compute the hull of a bucket, or mark it as unknown in a tree that keeps no hull."""
    if state.keeps_hull != 0:
        rebuild_hull(bucket, state)
    else:
        bucket.vertices = 0


@inlined
def joins_convexly(bucket: Any, below: int, a: int, b: int, above: int) -> bool:
    """Return whether the edge (a, b) leaves both chains convex: `below` ends in a, `above` begins with b."""
    before = highest_bit(below & ~(1 << a))
    convex = True
    if before > 0:
        convex = turns_left(bucket, before, a, b)
    after = lowest_bit(above & ~(1 << b))
    if after < NO_SLOT:
        convex = convex and turns_left(bucket, a, b, after)
    return convex


@kernel
def rescan_hull(bucket: Any, below: int, above: int, between: int, b: int, step: int, state: Any) -> Change:
    """Scan the few slots that may be vertices (Graham), until the old hull continues unchanged.

    `below` and `above` are chains of slots that stay convex; `between` has the slots between the chains that
    may be vertices.
    """
    chain = below
    while between != 0:
        chain = push(bucket, chain, lowest_bit(between))
        between &= between - 1
    joint = NO_SLOT
    if b < NO_SLOT:
        joint = b
        rest = above & ~(1 << b)
        while rest != 0:
            slot = lowest_bit(rest)
            longer = push(bucket, chain, slot)
            if longer == chain | (1 << slot):  # no slot gave way: no later slot removes slots either
                chain |= rest
                break
            chain = longer
            joint = slot
            rest &= rest - 1
    old_loss = bucket.h
    bucket.vertices = chain
    bucket.h = chain_loss(bucket, chain, state)

    start = whole(-1)
    start_slope = -INFINITY
    last_kept = highest_bit(below & chain)  # the scan removes slots from the end: a prefix of `below` is left
    if last_kept > 0:
        start = whole(bucket.weight[last_kept])
        after = lowest_bit(chain & ~bits_through(last_kept))
        start_slope = INFINITY if after == NO_SLOT else slot_slope(bucket, last_kept, after)
    end = whole(FAR)
    end_slope = INFINITY
    if joint < NO_SLOT:
        end = whole(bucket.weight[joint]) - step
        before = highest_bit(chain & bits_below(joint))
        end_slope = -INFINITY if before == 0 else slot_slope(bucket, before, joint)
    return Change(start, start_slope, end, end_slope, bucket.h - old_loss)


@inlined
def repair_hull(
    bucket: Any, below: int, above: int, lost_vertex: bool, step: int, label: int, state: Any
) -> Change:
    """Repair the hull after a change between two chains; the points of `above` moved by the event.

    Nine times in ten one new edge joins the chains: no point lies under the edge, and both chains stay
    convex.
    """
    a = highest_bit(below)
    b = lowest_bit(above)
    first = max(a, 1)
    last = b if b < NO_SLOT else whole(bucket.count)
    between = below_line(bucket, first, last)
    if (between == 0) & (a > 0) & (b < NO_SLOT) & (not lost_vertex) and joins_convexly(
        bucket, below, a, b, above
    ):
        x = whole(bucket.weight[a])
        dx = whole(bucket.weight[b]) - x
        dy = whole(bucket.positives[b]) - bucket.positives[a]
        loss = edge_loss(dx, dy, state) - edge_loss(dx - step, dy - step * label, state)
        slope = dy / dx
        bucket.h += loss
        bucket.vertices = below | above
        return Change(x, slope, x + dx - step, slope, loss)
    if a == 0:
        between |= 1 << first
    if last > a:
        between |= 1 << last
    return rescan_hull(bucket, below, above, between, b, step, state)


@inlined
def clear(bucket: Any) -> None:
    """Remove all entries of a bucket."""
    bucket.count = np.int32(0)
    bucket.vertices = whole(0)
    bucket.h = whole(0)
    bucket.weight[0] = np.int32(0)
    bucket.positives[0] = np.int32(0)
    for t in range(1, SLOTS + 2):
        bucket.key[t] = PAD_KEY
        bucket.weight[t] = np.int32(0)
        bucket.positives[t] = np.int32(0)
    bucket.key[0] = whole(-PAD_KEY)
