"""The pool of hulls: how much room hulls take, and how they are copied to another pool."""

from __future__ import annotations

from typing import Any

from ..kernels.compile import entry, inlined
from ..kernels.records import at, whole
from .layout import Forest


@entry
def hull_room(tree: Forest) -> int:
    """Return how many edges all hulls need room for, with the room to grow that each should get."""
    room = whole(0)
    for run in tree.leaf_runs:
        if run.edge_room > 0:
            room += run.edge_count + (run.edge_count >> 1) + 4
    for run in tree.node_runs:
        if run.edge_room > 0:
            room += run.edge_count + (run.edge_count >> 1) + 4
    return room


@inlined
def move_hulls(runs: Any, pool: Any, target: Any, end: int) -> int:
    """Copy the hulls of runs to another pool, from `end` on; return the new end."""
    for index in range(len(runs)):
        run = runs[index]
        if run.edge_room > 0:
            for i in range(run.edge_count):
                edge, copy = pool[at(run.edges + i)], target[at(end + i)]
                copy.key = edge.key
                copy.mass[0] = edge.mass[0]
                copy.mass[1] = edge.mass[1]
            run.edges = end
            run.edge_room = run.edge_count + (run.edge_count >> 1) + 4
            end += run.edge_room
    return end


@entry
def move_all_hulls(tree: Forest, target: Any) -> None:
    """Copy every hull to another pool, without gaps."""
    end = move_hulls(tree.leaf_runs, tree.pool, target, whole(0))
    end = move_hulls(tree.node_runs, tree.pool, target, end)
    tree.state[0].pool_end = end
