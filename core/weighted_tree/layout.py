"""The records of a WeightedTree: their fields, units and meanings.

A WeightedTree holds the multiset of (label, score, weight) of a window in score order. Events with equal
scores are one ENTRY with a mass of each class (0: negatives, 1: positives). Consecutive entries lie in a
LEAF, up to 32 of them; leaves hang under NODES of up to 8 children, all at the same depth (a B+-tree).

All sums over a run of entries are computed again from below; there are no running totals. So sums have no
history and no drift. Only the mass of an entry with several events of one class has a history: these events
are added and subtracted. This mass is kept in twice the precision (TIED).

Scale: a mass is held as weight * 2^-exponent, with one exponent for each class, so that the largest weights
lie near 1. Then products of three masses do not overflow, and products of a rare class do not vanish. Code
that compares or adds masses of both classes brings them to one scale last. A power of two rounds no mass.

The hull is held as its EDGES, in order: masses of both classes and the first score, which is the threshold of
the vertex in which the edge begins. There are no coordinates, so sums of masses lose no digits by
subtraction. Edges are blocks of the isotonic calibration (PAV) of the scores.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..kernels.compile import inlined, kernel
from ..kernels.records import at, empty_records, whole, zero_record
from ..score_tree.layout import SLOTS as SLOTS_OF_COUNTS

SLOTS = min(32, SLOTS_OF_COUNTS)
"""Entries of a leaf. Tests set it to 8, with nodes of 4: splits and merges are then common."""
FAN = max(4, SLOTS // 4)
"""Children of a node."""
# Tried, in microseconds an event, a row after each, at k = 1,000 / 10,000 / 100,000 (a row per 100 events):
# leaves of 32, nodes of 8: 1.58 / 2.31 / 4.11 (.26 / .68 / 1.71); 32, 16: 1.62 / 2.44 / 4.50 (.26 / .67 /
# 1.85); 16, 8: 1.66 / 2.56 / 5.33 (.30 / .83 / 2.14); 48, 16: 1.70 / 2.60 / 4.55 (.27 / .75 / 1.95); 64, 16:
# 1.78 / 2.77 / 5.21 (.28 / .80 / 2.4); 64, 32: 1.80 / 2.89 / 5.47 (.26 / .79 / 2.35). Memory: 77 bytes
# an entry against 62 with leaves of 64.

LEAF_FILL = 3 * SLOTS // 4
NODE_FILL = 3 * FAN // 4
MERGED_LEAF = 5 * SLOTS // 8
"""Two neighbours with no more entries together than this are merged; a full leaf splits into halves."""
MERGED_NODE = 5 * FAN // 8
MAX_HEIGHT = 24
ROOM_AHEAD = MAX_HEIGHT + 2
"""How many free nodes one insertion can need."""

FRESH, MASSES, STALE = 0, 1, 2
"""Which sums of its run are up to date in a leaf or node: FRESH all, MASSES only the masses, STALE none."""

SMALLEST = 5e-324
FAINT = 2.0**-900
"""A mass below this share of the largest weights of its class may have lost digits, so it is unknown."""
FAINT_ANYWHERE = 2.0**-830
"""The mass below which a run reports that it may hold a faint mass. The scale of a tree with a history is up
to 2^64 lower than the scale of a tree built from its events.
"""
LARGEST = 2.0**64
"""The largest held mass of one event. Before a larger mass comes, its class is brought to another scale,
O(k). Products of three masses would allow 2^300, but not a mass times a score near 1e300.
"""
TINY_TOTAL = 2.0**-250
"""If a class's whole mass is below this, its sums should be computed again: the weights that set its scale
are gone, and products of three masses would vanish.
"""
FLAT = 1.0 - 2.0**-46
"""Slopes that differ by less than this factor count as equal, because rounded sums of equal slopes differ.
Slopes of counts below 2^23 differ by more, so the slopes of unit weights are told apart exactly.
"""
UNDERFLOW, AWAY = 2.0**-900, 2.0**512
"""Products of two masses below the first number are computed again, with both masses times the second."""
TIE_ROUNDING = 2.0**-104
"""Bound on the loss of one addition at a tied entry, as a share of the entry's mass."""
LOSS_ALLOWED = 1e-13
"""A tied entry may lose this share of its mass to rounding before all sums are computed again. It is a share
of the entry's mass, not of the class's mass, because a threshold, AUM and H depend on the lightest entries.
"""
SQUARES_ALLOWED = 1e-12
"""The same limit for the sum of the squared weights of a tied entry."""

NEAR = 2.0**-34
"""Two slopes that differ by a smaller share than this count as possibly equal: rounded sums and pooled hulls
depend on earlier events. It is 2^12 times the difference at which hulls pool (FLAT), since pooled edges
drift.
"""
REACH_LEAST = 2.0**-700
"""A reach below the first number is held 2^REACH_POWER times as large; a reach beyond the floats is held
2^REACH_POWER times as small. Scores may be 1e308 and 5e-324.
"""
REACH_POWER = 600
LARGEST_FLOAT = 1.7976931348623157e308
MOST_COUNTS = 2.0**20
"""Up to so many units, masses are whole numbers without doubt."""
MOST_PARTS = 16

_LEAF_FIELDS: list[Any] = [
    ("key", "f8", (SLOTS,)),  # ascending; +inf in slots behind `count`
    ("mass", "f8", (2, SLOTS)),  # 0.0: no event of this class
    ("tied", "i4", (SLOTS,)),  # record of TIED, or NO_ID: at most one event of each class
    ("count", "i4"),
]
LEAF = np.dtype(_LEAF_FIELDS, align=True)

_NODE_FIELDS: list[Any] = [
    ("key", "f8", (FAN,)),  # keys in child i are at least key[i]; keys further left are below
    ("child", "i4", (FAN,)),  # leaves on level 1, nodes on higher levels
    ("count", "i4"),
]
NODE = np.dtype(_NODE_FIELDS, align=True)

_TIED_FIELDS: list[Any] = [
    ("events", "i8", (2,)),
    ("rest", "f8", (2,)),  # mass + rest is the sum of the weights in twice the precision
    ("lost", "f8", (2,)),  # bound on the rounding error of the sum
    ("squares", "f8", (2,)),  # sum of the squared weights
    ("squares_rest", "f8", (2,)),
]
TIED = np.dtype(_TIED_FIELDS)

# A leaf or node keeps these sums of its run. The spread of the positives is the sum of w (V - mean V)^2. V is
# the mass of negatives below a positive plus half of the tied negatives. The spread of the negatives is the
# same sum with the positives above. The reach of the positives is the sum of w (high - s), that of the
# negatives the sum of w (s - low): so AUM needs no difference of large numbers. All terms of these sums are
# not negative.
_RUN_FIELDS: list[Any] = [
    ("mass", "f8", (2,)),
    ("pairs", "f8"),  # mass of the pairs that are ranked right, ties half
    ("spread", "f8", (2,)),
    ("squares", "f8", (2,)),
    ("cross", "f8", (2,)),  # sum of w_i w_j over the pairs of events of a class
    ("reach", "f8", (2,)),  # held as reach * 2^-reach_power
    ("reach_power", "i8", (2,)),
    ("low", "f8"),  # the run's first and last score
    ("high", "f8"),
    ("edges", "i8"),  # the run's hull: its first edge in the pool,
    ("edge_count", "i4"),  # how many edges it has,
    ("edge_room", "i4"),  # and how many edges fit into its place in the pool
    ("faint", "i8"),  # 1: some mass of an entry may be faint
    ("state", "i8"),  # FRESH, MASSES or STALE; a node is never fresher than its children
]
RUN = np.dtype(_RUN_FIELDS)

_EDGE_FIELDS: list[Any] = [("key", "f8"), ("mass", "f8", (2,))]
EDGE = np.dtype(_EDGE_FIELDS)

ENTRY = np.dtype([*_EDGE_FIELDS, *_TIED_FIELDS])

_STATE_FIELDS: list[Any] = [
    ("root", "i8"),
    ("height", "i8"),  # 0: the root is a leaf
    ("free_leaves", "i8"),
    ("free_nodes", "i8"),
    ("free_tied", "i8"),
    ("pool_end", "i8"),
    ("entries", "i8"),
    ("events", "i8", (2,)),
    ("exponent", "i8", (2,)),  # even numbers
    ("factor", "f8", (2,)),  # 2^-(exponent / 2), applied twice
    ("lost", "f8", (2,)),  # bounds on what tied entries lost of their mass to rounding
    ("lost_squares", "f8", (2,)),  # bounds on what the sums of squared weights lost
    ("spoiled", "i8"),  # 1: a tied entry has lost more than LOSS_ALLOWED
    ("unit", "f8", (2,)),  # all masses of events are whole multiples of `unit`; 0.0: no unit is known
    ("changes", "i8"),  # events that came and went since the tree was built from its events
]
STATE = np.dtype(_STATE_FIELDS)

NO_ID = -1


class Forest(NamedTuple):
    """The state that all kernels share: arrays of records, stacks of free places, scratch."""

    leaves: Any  # LEAF
    leaf_runs: Any  # RUN, of the leaf with the same number
    nodes: Any  # NODE
    node_runs: Any  # RUN
    tied: Any  # TIED
    pool: Any  # EDGE: all hulls
    scratch: Any  # EDGE: the hull being made
    free_leaves: Any  # int32 stacks; STATE has their heights
    free_nodes: Any
    free_tied: Any
    # int64[2, MAX_HEIGHT]: nodes and the child's index, from the root (highest level) down; level 0: a leaf
    path: Any
    state: Any


def empty_forest(leaves: int, nodes: int, tied: int, pool: int, scratch: int) -> Forest:
    """Return an empty forest with room for the given numbers of leaves, nodes, ties and edges."""
    state = zero_record(STATE)
    forest = Forest(
        empty_records(leaves, LEAF), empty_records(leaves, RUN), empty_records(nodes, NODE),
        empty_records(nodes, RUN), empty_records(tied, TIED), empty_records(pool, EDGE),
        empty_records(scratch, EDGE), np.arange(leaves, dtype=np.int32)[::-1].copy(),
        np.arange(nodes, dtype=np.int32)[::-1].copy(), np.arange(tied, dtype=np.int32)[::-1].copy(),
        np.zeros((2, MAX_HEIGHT), np.int64), state,
    )  # fmt: skip
    for runs in (forest.leaf_runs, forest.node_runs):
        runs["edge_room"] = 0
        runs["edge_count"] = 0
    state["free_leaves"], state["free_nodes"], state["free_tied"] = leaves, nodes, tied
    state["factor"] = 1.0
    return forest


@inlined
def add_to(total: float, rest: float, value: float) -> tuple[float, float]:
    """Add a value to a sum in twice the precision; return (rounded total, rest), together the sum."""
    high = total + value
    part = high - total
    low = (total - (high - part)) + (value - part) + rest
    total = high + low
    return total, low - (total - high)


@inlined
def square_of(value: float) -> tuple[float, float]:
    """Return a square in twice the precision, as the rounded square and the rest (Dekker 1971)."""
    part = 134217729.0 * value
    high = part - (part - value)
    low = value - high
    square = value * value
    return square, ((high * high - square) + 2.0 * (high * low)) + low * low


@inlined
def begin_tie(tie: Any, label: int, mass: float) -> None:
    """Begin the record of a class at an entry: one event of this mass, or no event if the mass is 0."""
    tie.events[label] = 1 if mass > 0.0 else 0
    tie.rest[label] = 0.0
    tie.lost[label] = 0.0
    tie.squares[label], tie.squares_rest[label] = square_of(mass)


@inlined
def copy_tie(tie: Any, source: Any) -> None:
    """Copy the fields about events from one record of TIED or ENTRY to another."""
    for c in range(2):
        tie.events[c] = source.events[c]
        tie.rest[c] = source.rest[c]
        tie.lost[c] = source.lost[c]
        tie.squares[c] = source.squares[c]
        tie.squares_rest[c] = source.squares_rest[c]


@inlined
def count_event(tie: Any, label: int, total: float, mass: float, sign: int) -> float:
    """Return the mass of an entry's class, `total`, after an event is added (sign = 1) or removed (-1)."""
    total, rest = add_to(total, tie.rest[at(label)], sign * mass)
    square, square_rest = square_of(mass)
    squares, squares_rest = add_to(tie.squares[at(label)], tie.squares_rest[at(label)], sign * square)
    squares, squares_rest = add_to(squares, squares_rest, sign * square_rest)
    tie.rest[at(label)] = rest
    tie.squares[at(label)] = max(squares, 0.0)
    tie.squares_rest[at(label)] = squares_rest
    tie.events[at(label)] += sign
    return total


@inlined
def times_power(value: float, exponent: int) -> float:
    """Return value * 2^exponent; infinite or 0 if it is out of range."""
    exponent = min(whole(2000), max(whole(-2000), whole(exponent)))
    half = exponent >> 1
    return value * math.ldexp(1.0, int(half)) * math.ldexp(1.0, int(exponent - half))


@inlined
def is_multiple(ratio: float) -> bool:
    """Return whether a rounded quotient is a whole number below MOST_COUNTS."""
    count = np.rint(ratio)
    return (count >= 1.0) & (count < MOST_COUNTS) & (abs(ratio - count) <= 2.0**-50 * ratio)


@kernel
def common_unit(unit: float, mass: float) -> float:
    """Return a mass of which `unit` and `mass` are both whole multiples; 0.0 if no such mass is found."""
    if is_multiple(mass / unit):
        return unit
    if is_multiple(unit / mass):
        return mass
    for parts in range(2, MOST_PARTS + 1):
        if is_multiple(mass / unit * parts):
            return unit / parts
    return 0.0


@kernel
def are_counts(tree: Forest) -> bool:
    """Return whether all masses are whole multiples of their class's unit, up to MOST_COUNTS.

    If so, rounded sums show which slopes are equal, whatever events came and went. Needs fresh masses.
    """
    state, run = tree.state[0], root_run(tree)
    return (run.mass[0] < MOST_COUNTS * state.unit[0]) & (run.mass[1] < MOST_COUNTS * state.unit[1])


@inlined
def is_steeper(n: float, p: float, other_n: float, other_p: float) -> bool:
    """Return whether an edge (n, p) rises more steeply than the other edge, by more than rounding (FLAT)."""
    here, there = p * other_n, other_p * n
    if (here < UNDERFLOW) & (p > 0.0) & (other_n > 0.0):
        here, there = (p * AWAY) * (other_n * AWAY), (other_p * AWAY) * (n * AWAY)
    return there < FLAT * here


@inlined
def take_leaf(tree: Forest) -> int:
    """Return an empty leaf."""
    state = tree.state[0]
    state.free_leaves -= 1
    index = whole(tree.free_leaves[at(state.free_leaves)])
    leaf = tree.leaves[at(index)]
    leaf.count = 0
    for slot in range(SLOTS):
        leaf.key[slot] = np.inf
    tree.leaf_runs[at(index)].state = STALE
    return index


@inlined
def free_leaf(tree: Forest, index: int) -> None:
    """Put a leaf on the stack of unused leaves; its place in the pool stays."""
    state = tree.state[0]
    tree.leaf_runs[at(index)].edge_count = 0
    tree.free_leaves[at(state.free_leaves)] = index
    state.free_leaves += 1


@inlined
def take_node(tree: Forest) -> int:
    """Return a node without children."""
    state = tree.state[0]
    state.free_nodes -= 1
    index = whole(tree.free_nodes[at(state.free_nodes)])
    node = tree.nodes[at(index)]
    node.count = 0
    for slot in range(FAN):
        node.key[slot] = np.inf
    tree.node_runs[at(index)].state = STALE
    return index


@inlined
def free_node(tree: Forest, index: int) -> None:
    """Put a node on the stack of unused nodes; its place in the pool stays."""
    state = tree.state[0]
    tree.node_runs[at(index)].edge_count = 0
    tree.free_nodes[at(state.free_nodes)] = index
    state.free_nodes += 1


@inlined
def child_of(node: Any, score: float) -> int:
    """Return the index of the child in which a score belongs."""
    index = whole(0)
    for slot in range(1, FAN):
        index += node.key[slot] <= score
    return index


@inlined
def slot_of(leaf: Any, score: float) -> int:
    """Return the number of a leaf's keys below a score."""
    slot = whole(0)
    for other in range(SLOTS):
        slot += leaf.key[other] < score
    return slot


@inlined
def root_run(tree: Forest) -> Any:
    """Return the record of the root's run, with the sums of the whole window."""
    return run_of(tree, tree.state[0].height, tree.state[0].root)


@inlined
def run_of(tree: Forest, level: int, place: int) -> Any:
    """Return the record of the run of a leaf (level 0) or node."""
    runs = tree.node_runs if level > 0 else tree.leaf_runs
    return runs[at(place)]


@inlined
def parts_of(tree: Forest, level: int, place: int) -> int:
    """Return how many entries a leaf (level 0) has, or how many children a node has."""
    return whole(tree.nodes[at(place)].count) if level > 0 else whole(tree.leaves[at(place)].count)


@inlined
def mass_of(tree: Forest, level: int, place: int, index: int, label: int) -> float:
    """Return the mass of a class at an entry of a leaf (level 0), or in a child of a node."""
    if level == 0:
        return tree.leaves[at(place)].mass[at(label), at(index)]
    return run_of(tree, level - 1, whole(tree.nodes[at(place)].child[at(index)])).mass[at(label)]
