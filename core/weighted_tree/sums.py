"""The sums that the nodes of a WeightedTree keep of their runs of entries.

Stale sums are computed again from below.

Runs merge in order as a monoid (docs/architecture/math.md, "AUC and its sums"): masses, pairs, sums of
squared weights, cross masses, spreads, reaches and hulls. Merging hulls is pooling adjacent violators over
both lists of edges. The cost is proportional to the entries of the stale leaves, plus the children and edges
of the nodes above them.

DeLong's variance is usually computed from the sum of squared placements, as a difference of two squares. This
difference loses half of the digits near AUC = 1. So a run keeps the spread instead. Spreads are merged around
the means (Chan, Golub & LeVeque 1983), so their terms are never negative. The spread is the same for pairs
and for misranked pairs. The cross mass of a class is the sum of w_i w_j over its pairs of events. The
effective size of a class is 1 + 2 cross / squares. The form (sum w)^2 / sum w^2 loses 8 digits of size - 1
when one event outweighs all others.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import Any

from ..kernels.compile import inlined, kernel
from ..kernels.records import at, whole
from .layout import (
    FAINT_ANYWHERE,
    FRESH,
    LARGEST_FLOAT,
    MASSES,
    NO_ID,
    REACH_LEAST,
    REACH_POWER,
    Forest,
    is_steeper,
    mass_of,
    parts_of,
    root_run,
    run_of,
    square_of,
)
from .update import DONE, NEEDS_POOL


@inlined
def push_edge(edges: Any, top: int, key: float, negatives: float, positives: float) -> int:
    """Add an edge at the upper end of a hull of `top` edges; return the new number of edges.

    Edges before the new edge that are not flatter are pooled with it: hulls are strict.
    """
    while top > 0:
        last = edges[at(top - 1)]
        if is_steeper(negatives, positives, last.mass[0], last.mass[1]):
            break
        key = last.key
        negatives += last.mass[0]
        positives += last.mass[1]
        top -= 1
    edge = edges[at(top)]
    edge.key = key
    edge.mass[0] = negatives
    edge.mass[1] = positives
    return top + 1


@inlined
def keep_hull(tree: Forest, run: Any, edges: int) -> int:
    """Copy the hull in the scratch to the pool, which makes the run FRESH; return DONE or NEEDS_POOL."""
    state = tree.state[0]
    if edges > run.edge_room:
        room = edges + (edges >> 1) + 4
        if state.pool_end + room > len(tree.pool):
            return NEEDS_POOL
        run.edges = state.pool_end
        run.edge_room = room
        state.pool_end += room
    begin = run.edges
    for i in range(edges):
        tree.pool[at(begin + i)] = tree.scratch[at(i)]
    run.edge_count = edges
    run.state = FRESH
    return DONE


@inlined
def cross_of_tied(tie: Any, label: int, mass: float) -> float:
    """Return the cross mass of the events of a class at one score: (mass^2 - squares) / 2."""
    if tie.events[label] < 2:
        return 0.0
    square, rest = square_of(mass)
    rest += 2.0 * (mass * tie.rest[label]) - tie.squares_rest[label]
    return max(0.0, 0.5 * ((square - tie.squares[label]) + rest))


@inlined
def is_apart(reach: float, mass: float) -> bool:
    """Return whether a reach must be summed in other units.

    It is no float, or its terms may have lost digits.
    """
    return (reach > LARGEST_FLOAT) | ((reach < REACH_LEAST) & (mass > 0.0))


@inlined
def in_units(reach: float, power: int, wanted: int) -> float:
    """Return reach * 2^power in units of 2^wanted; powers are multiples of REACH_POWER."""
    while power > wanted:
        reach *= 2.0**REACH_POWER
        power -= REACH_POWER
    while power < wanted:
        reach *= 2.0**-REACH_POWER
        power += REACH_POWER
    return reach


@inlined
def moved(mass: float, source: float, target: float, power: int) -> float:
    """Return mass * (target - source) in units of 2^power; source must not be above target.

    power is 0, REACH_POWER, -REACH_POWER or -2 REACH_POWER.
    """
    if mass == 0.0:
        return 0.0
    if power > 0:
        return mass * (target * 2.0**-REACH_POWER - source * 2.0**-REACH_POWER)
    if power < -REACH_POWER:
        return (mass * 2.0**REACH_POWER) * ((target - source) * 2.0**REACH_POWER)
    if power < 0:
        return (mass * 2.0**REACH_POWER) * (target - source)
    return mass * (target - source)


@kernel
def leaf_reach(leaf: Any, label: int, end: float, reach: float) -> tuple[float, int]:
    """Compute the reach of a leaf; return the reach and its power.

    The units of the reach keep all its digits in a float.
    """
    power = whole(REACH_POWER) if reach > LARGEST_FLOAT else whole(-REACH_POWER)
    total = 0.0
    for slot in range(leaf.count):
        key = leaf.key[slot]
        total += moved(leaf.mass[label, slot], min(key, end), max(key, end), power)
    return (total, power) if total > 0.0 else (0.0, whole(0))


@kernel
def node_reach(node: Any, runs: Any, label: int) -> tuple[float, int]:
    """Merge the reaches of the children; return the sum and its power.

    The units of the sum keep all its digits in a float.
    """
    plain = wide = narrow = mass = 0.0
    first = runs[at(node.child[0])]
    high = first.high
    for i in range(node.count):
        child = runs[at(node.child[i])]
        if label != 0:  # the reach of earlier children extends to the end of this child
            moving, source, target = mass, high, child.high
        else:
            moving, source, target = child.mass[0], first.low, child.low
        reach, power = child.reach[label], whole(child.reach_power[label])
        plain += in_units(reach, power, whole(0)) + moved(moving, source, target, whole(0))
        wide += in_units(reach, power, whole(REACH_POWER)) + moved(moving, source, target, whole(REACH_POWER))
        narrow += in_units(reach, power, whole(-REACH_POWER)) + moved(
            moving, source, target, whole(-REACH_POWER)
        )
        mass += child.mass[label]
        high = child.high
    if plain > LARGEST_FLOAT:
        return wide, whole(REACH_POWER)
    if plain < REACH_LEAST and narrow > 0.0:
        return narrow, whole(-REACH_POWER)
    return plain, whole(0)


@kernel
def sum_masses(tree: Forest, level: int, place: int) -> None:
    """Sum the masses of a leaf (level 0), or of a node's children, into its run."""
    negatives = positives = 0.0
    for i in range(parts_of(tree, level, place)):
        negatives += mass_of(tree, level, place, i, 0)
        positives += mass_of(tree, level, place, i, 1)
    run = run_of(tree, level, place)
    write_pair(run.mass, negatives, positives)
    run.state = MASSES


@inlined
def write_pair(field: Any, of_negatives: float, of_positives: float) -> None:
    """Write a field that has a value for each class."""
    field[0] = of_negatives
    field[1] = of_positives


@inlined
def write_masses(run: Any, negatives: float, positives: float, pairs: float, low: float, high: float) -> None:
    """Write the masses of the classes, the mass of pairs and the range of scores.

    Reaches are in plain units.
    """
    write_pair(run.mass, negatives, positives)
    run.pairs = pairs
    run.reach_power[0] = 0
    run.reach_power[1] = 0
    run.low = low
    run.high = high


@kernel
def sum_leaf(tree: Forest, index: int) -> int:
    """Compute all sums of a leaf, and its hull; return DONE or NEEDS_POOL."""
    leaf = tree.leaves[at(index)]
    run = tree.leaf_runs[at(index)]
    count = whole(leaf.count)
    low = leaf.key[0] if count > 0 else 0.0
    high = leaf.key[at(count - 1)] if count > 0 else 0.0
    negatives = positives = pairs = 0.0
    squares_n = squares_p = cross_n = cross_p = reach_n = reach_p = 0.0
    edges = faint = whole(0)
    for slot in range(count):
        key, n, p = leaf.key[slot], leaf.mass[0, slot], leaf.mass[1, slot]
        pairs += p * (negatives + 0.5 * n)
        cross_n += n * negatives
        cross_p += p * positives
        negatives += n
        positives += p
        tied = whole(leaf.tied[slot])
        if tied == NO_ID:
            squares_n += n * n
            squares_p += p * p
        else:
            squares_n += tree.tied[at(tied)].squares[0]
            squares_p += tree.tied[at(tied)].squares[1]
            cross_n += cross_of_tied(tree.tied[at(tied)], 0, n)
            cross_p += cross_of_tied(tree.tied[at(tied)], 1, p)
        if n > 0.0:
            reach_n += n * (key - low)
            faint |= n < FAINT_ANYWHERE
        if p > 0.0:
            reach_p += p * (high - key)
            faint |= p < FAINT_ANYWHERE
        edges = push_edge(tree.scratch, edges, key, n, p)
    mean_p = pairs / positives if positives > 0.0 else 0.0
    mean_n = pairs / negatives if negatives > 0.0 else 0.0
    spread_n = spread_p = below = 0.0
    above = positives
    for slot in range(count):
        n, p = leaf.mass[0, slot], leaf.mass[1, slot]
        above -= p
        from_p = below + 0.5 * n - mean_p
        from_n = above + 0.5 * p - mean_n
        spread_p += p * (from_p * from_p)
        spread_n += n * (from_n * from_n)
        below += n
    write_masses(run, negatives, positives, pairs, low, high)
    write_pair(run.spread, spread_n, spread_p)
    write_pair(run.squares, squares_n, squares_p)
    write_pair(run.cross, cross_n, cross_p)
    write_pair(run.reach, reach_n, reach_p)
    if is_apart(reach_n, negatives):
        run.reach[0], run.reach_power[0] = leaf_reach(leaf, whole(0), low, reach_n)
    if is_apart(reach_p, positives):
        run.reach[1], run.reach_power[1] = leaf_reach(leaf, whole(1), high, reach_p)
    run.faint = faint
    return keep_hull(tree, run, edges)


@kernel
def sum_node(tree: Forest, index: int, runs: Any) -> int:
    """Merge all sums of a node's children, in order; return DONE or NEEDS_POOL."""
    node = tree.nodes[at(index)]
    run = tree.node_runs[at(index)]
    low = runs[at(node.child[0])].low
    high = low
    negatives = positives = pairs = 0.0
    squares_n = squares_p = cross_n = cross_p = reach_n = reach_p = 0.0
    edges = faint = apart = whole(0)
    for i in range(node.count):
        child = runs[at(node.child[i])]
        n, p = child.mass[0], child.mass[1]
        faint |= child.faint
        pairs += child.pairs + p * negatives
        if positives > 0.0:
            reach_p += positives * (child.high - high)
        if n > 0.0:
            reach_n += n * (child.low - low)
        reach_p += child.reach[1]
        reach_n += child.reach[0]
        apart |= child.reach_power[0] | child.reach_power[1]
        squares_n += child.squares[0]
        squares_p += child.squares[1]
        cross_n += child.cross[0] + n * negatives
        cross_p += child.cross[1] + p * positives
        negatives += n
        positives += p
        high = child.high
        if edges + child.edge_count > len(tree.scratch):
            return NEEDS_POOL
        first = child.edges
        for e in range(first, first + child.edge_count):
            edge = tree.pool[at(e)]
            edges = push_edge(tree.scratch, edges, edge.key, edge.mass[0], edge.mass[1])
    mean_p = pairs / positives if positives > 0.0 else 0.0
    mean_n = pairs / negatives if negatives > 0.0 else 0.0
    spread_n = spread_p = below = 0.0
    above = positives
    for i in range(node.count):
        child = runs[at(node.child[i])]
        n, p = child.mass[0], child.mass[1]
        above -= p
        if p > 0.0:
            from_p = child.pairs / p + below - mean_p
            spread_p += child.spread[1] + p * (from_p * from_p)
        if n > 0.0:
            from_n = child.pairs / n + above - mean_n
            spread_n += child.spread[0] + n * (from_n * from_n)
        below += n
    write_masses(run, negatives, positives, pairs, low, high)
    write_pair(run.spread, spread_n, spread_p)
    write_pair(run.squares, squares_n, squares_p)
    write_pair(run.cross, cross_n, cross_p)
    write_pair(run.reach, reach_n, reach_p)
    if (apart != 0) | is_apart(reach_n, negatives):
        run.reach[0], run.reach_power[0] = node_reach(node, runs, whole(0))
    if (apart != 0) | is_apart(reach_p, positives):
        run.reach[1], run.reach_power[1] = node_reach(node, runs, whole(1))
    run.faint = faint
    return keep_hull(tree, run, edges)


@kernel
def refresh(tree: Forest, wanted: int) -> int:
    """Bring the sums of the whole tree up to date (FRESH), or only the masses (MASSES).

    Return DONE, or NEEDS_POOL: make room in the pool of edges, then call the function again.

    The function is a loop: a recursion, which copied the record of arrays for each child, made a row of every
    10 events 20% slower.
    """
    state = tree.state[0]
    if root_run(tree).state <= wanted:
        return DONE
    level = state.height
    tree.path[0, level] = state.root
    tree.path[1, level] = 0
    while level <= state.height:
        place, index = tree.path[0, level], tree.path[1, level]
        if level == 0 or index == tree.nodes[at(place)].count:
            code = whole(DONE)
            if wanted == MASSES:
                sum_masses(tree, level, place)
            elif level == 0:
                code = sum_leaf(tree, place)
            else:
                code = sum_node(tree, place, tree.node_runs if level > 1 else tree.leaf_runs)
            if code != DONE:
                return code
            level += 1
            continue
        tree.path[1, level] = index + 1
        child = whole(tree.nodes[at(place)].child[at(index)])
        if run_of(tree, level - 1, child).state > wanted:
            level -= 1
            tree.path[0, level] = child
            tree.path[1, level] = 0
    return DONE
