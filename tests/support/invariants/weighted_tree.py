"""Recomputes the invariants of a WeightedTree from its entries. Slow, in plain Python."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from rocsteady.core.weighted_tree.layout import FAN, FLAT, FRESH, NO_ID, STALE, Forest
from rocsteady.core.weighted_tree.tree import WeightedTree

CLOSE = 1e-11
GONE = 1e-300
"""Added to every tolerance: beside masses near 1, products of the lightest masses have no digits left."""


def close(a: float, b: float, size: float = 0.0) -> bool:
    """Whether two sums agree, apart from the rounding of their terms."""
    return a == b or abs(a - b) <= CLOSE * max(abs(a), abs(b), size) + GONE


def check_invariants(weighted: WeightedTree) -> None:
    """Raise an AssertionError that names the first invariant that does not hold."""
    tree = weighted._forest
    state = tree.state[0]
    seen_leaves, seen_nodes, seen_tied = set[int](), set[int](), set[int]()
    entries = check_place(
        tree, int(state["height"]), int(state["root"]), -math.inf, math.inf,
        (seen_leaves, seen_nodes, seen_tied),
    )  # fmt: skip
    assert int(state["entries"]) == len(entries), "entries are counted"
    for c in (0, 1):
        assert int(state["events"][c]) == sum(entry[3 + c] for entry in entries), "events are counted"
    for name, seen, room in (
        ("leaves", seen_leaves, len(tree.leaves)),
        ("nodes", seen_nodes, len(tree.nodes)),
        ("tied", seen_tied, len(tree.tied)),
    ):
        free = getattr(tree, f"free_{name}")[: int(state[f"free_{name}"])].tolist()
        assert len(set(free)) == len(free), f"no place of {name} is free twice"
        assert seen | set(free) == set(range(room)), f"every place of {name} is in the tree or free"
        assert not seen & set(free), f"no place of {name} is in the tree and free"
    check_pool(tree)


Seen = tuple[set[int], set[int], set[int]]
Entry = tuple[float, float, float, int, int, float, float]
"""Score, masses, events and squares of negatives and positives."""


def check_place(tree: Forest, level: int, place: int, low: float, high: float, seen: Seen) -> list[Entry]:
    """Check a subtree whose scores lie in [low, high); return its entries."""
    if level == 0:
        entries = check_leaf(tree, place, low, high, seen)
        check_run(tree, tree.leaf_runs[place], entries)
        return entries
    assert place not in seen[1], "a node hangs once"
    seen[1].add(place)
    node, run = tree.nodes[place], tree.node_runs[place]
    count = int(node["count"])
    assert 1 <= count <= FAN, "a node has children, and room for them"
    assert level < int(tree.state[0]["height"]) or count > 1, "the root has more than one child"
    assert np.isinf(node["key"][count:]).all(), "keys beyond the last child are infinite"
    entries = []
    for i in range(count):
        begin = low if i == 0 else float(node["key"][i])
        end = high if i == count - 1 else float(node["key"][i + 1])
        runs = tree.node_runs if level > 1 else tree.leaf_runs
        child = int(node["child"][i])
        assert int(runs[child]["state"]) <= int(run["state"]), "a node is no fresher than its children"
        part = check_place(tree, level - 1, child, begin, end, seen)
        assert part, "only the root may be empty"
        entries += part
    check_run(tree, run, entries)
    return entries


def check_leaf(tree: Forest, place: int, low: float, high: float, seen: Seen) -> list[Entry]:
    """Check a leaf; return its entries."""
    assert place not in seen[0], "a leaf hangs once"
    seen[0].add(place)
    leaf = tree.leaves[place]
    count = int(leaf["count"])
    keys = leaf["key"][:count]
    assert np.isinf(leaf["key"][count:]).all(), "keys beyond the last entry are infinite"
    assert (keys[1:] > keys[:-1]).all(), "entries ascend by score"
    assert count == 0 or (low <= keys[0] and keys[-1] < high), "scores lie where they are looked for"
    entries: list[Entry] = []
    for slot in range(count):
        mass = [float(leaf["mass"][c, slot]) for c in (0, 1)]
        tied = int(leaf["tied"][slot])
        if tied == NO_ID:
            events = [int(m > 0.0) for m in mass]
            squares = [m * m for m in mass]
        else:
            assert tied not in seen[2], "a tie belongs to one entry"
            seen[2].add(tied)
            tie = tree.tied[tied]
            events = [int(e) for e in tie["events"]]
            squares = [float(s) for s in tie["squares"]]
            assert max(events) > 1, "a tie is of several events of a class"
        assert sum(events) > 0, "an entry has an event"
        for c in (0, 1):
            assert (events[c] > 0) == (mass[c] > 0.0), "a class without events has a mass of exactly 0"
        entries.append((float(keys[slot]), mass[0], mass[1], events[0], events[1], squares[0], squares[1]))
    return entries


def check_run(tree: Forest, run: Any, entries: list[Entry]) -> None:
    """Check the masses and sums that a leaf or node keeps of its run."""
    if int(run["state"]) == STALE:
        return
    n, p = [math.fsum(e[1 + c] for e in entries) for c in (0, 1)]
    assert close(float(run["mass"][0]), n), "masses are those of the entries"
    assert close(float(run["mass"][1]), p), "masses are those of the entries"
    if int(run["state"]) != FRESH:
        return
    check_sums(run, entries, n, p)
    check_hull(tree, run, entries, n, p)


def check_sums(run: Any, entries: list[Entry], n: float, p: float) -> None:
    """Check pairs, spreads, squares and reaches."""
    low, high = (entries[0][0], entries[-1][0]) if entries else (0.0, 0.0)
    assert (float(run["low"]), float(run["high"])) == (low, high), "a run knows its ends"
    below = above = 0.0
    of_positives, of_negatives = [], []
    for e in entries:
        of_positives.append(below + e[1] / 2)
        below += e[1]
    for e in reversed(entries):
        of_negatives.append(above + e[2] / 2)
        above += e[2]
    of_negatives.reverse()
    pairs = math.fsum(e[2] * v for e, v in zip(entries, of_positives, strict=True))
    assert close(float(run["pairs"]), pairs), "pairs are those of the entries"
    for c, mass, other, values in ((1, p, n, of_positives), (0, n, p, of_negatives)):
        mean = pairs / mass if mass > 0.0 else 0.0
        spread = math.fsum(e[1 + c] * (v - mean) ** 2 for e, v in zip(entries, values, strict=True))
        size = mass * other * other  # differences of placements are rounded at their size
        assert close(float(run["spread"][c]), spread, size * 1e-15), "spreads are those of the placements"
        squares = math.fsum(e[5 + c] for e in entries)
        assert close(float(run["squares"][c]), squares), "squares are those of the weights"
        cross = (Fraction(mass) ** 2 - sum(Fraction(e[5 + c]) for e in entries)) / 2
        found = float(run["cross"][c])
        assert close(found, float(cross), mass * mass * 1e-3), "cross masses are those of pairs"
    reach_n = sum((Fraction(e[1]) * (Fraction(e[0]) - Fraction(low)) for e in entries), Fraction(0))
    reach_p = sum((Fraction(e[2]) * (Fraction(high) - Fraction(e[0])) for e in entries), Fraction(0))
    for c, reach, end in ((0, reach_n, "from the lowest"), (1, reach_p, "to the highest")):
        held = Fraction(float(run["reach"][c])) * Fraction(2) ** int(run["reach_power"][c])
        assert abs(held - reach) <= Fraction(CLOSE) * reach + Fraction(0.5) ** 1500, f"a class reaches {end}"


def check_hull(tree: Forest, run: Any, entries: list[Entry], n: float, p: float) -> None:
    """Check that a run's edges are a strict hull below all points, and cover all entries."""
    begin, count = int(run["edges"]), int(run["edge_count"])
    assert count <= int(run["edge_room"]), "a hull lies within its room"
    edges = tree.pool[begin : begin + count]
    keys = [e[0] for e in entries]
    starts = edges["key"].tolist()
    assert starts == sorted(set(starts)), "edges ascend"
    assert set(starts) <= set(keys), "edges begin at scores"
    assert not entries or starts[0] == keys[0], "the hull begins at the first score"
    bounds = [keys.index(start) for start in starts] + [len(entries)]
    for i in range(count):
        block = entries[bounds[i] : bounds[i + 1]]
        edge_n, edge_p = (float(edges["mass"][i, c]) for c in (0, 1))
        assert close(edge_n, math.fsum(e[1] for e in block)), "an edge has the mass of its entries"
        assert close(edge_p, math.fsum(e[2] for e in block)), "an edge has the mass of its entries"
        if i:
            last_n, last_p = (float(edges["mass"][i - 1, c]) for c in (0, 1))
            if not int(run["faint"]):
                left, right = Fraction(last_p) * Fraction(edge_n), Fraction(edge_p) * Fraction(last_n)
                assert left < right * Fraction(1 + FLAT) / 2, "the hull is strict"
        part_n = part_p = 0.0
        for e in block:
            part_n, part_p = part_n + e[1], part_p + e[2]
            assert part_p * edge_n - edge_p * part_n >= -1e-9 * n * p, "no point lies below the hull"


def check_pool(tree: Forest) -> None:
    """Check that the pool's rooms for hulls lie in the pool and do not overlap."""
    rooms = sorted(
        (int(run["edges"]), int(run["edge_room"]))
        for runs in (tree.leaf_runs, tree.node_runs)
        for run in runs
        if run["edge_room"] > 0
    )
    end = 0
    for begin, room in rooms:
        assert begin >= end, "hulls do not share room"
        end = begin + room
    assert end <= int(tree.state[0]["pool_end"]) <= len(tree.pool), "hulls lie in the pool"
