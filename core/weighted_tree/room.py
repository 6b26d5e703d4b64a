"""Larger arrays for a WeightedTree, with the same records."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels.compile import entry, inlined
from ..kernels.records import at, empty_records, whole
from .layout import EDGE, ROOM_AHEAD, Forest, empty_forest


def with_more_nodes(old: Forest) -> Forest:
    """Return the tree with room for more leaves and nodes."""
    state = old.state[0]
    leaves = len(old.leaves) * 5 // 4 + 4
    nodes = len(old.nodes) * 5 // 4 + ROOM_AHEAD
    new = empty_forest(leaves, nodes, 0, 0, 0)
    for name in ("leaves", "leaf_runs", "nodes", "node_runs"):
        getattr(new, name)[: len(getattr(old, name))] = getattr(old, name)
    free_leaves = more_places(old.free_leaves, int(state["free_leaves"]), leaves)
    free_nodes = more_places(old.free_nodes, int(state["free_nodes"]), nodes)
    state["free_leaves"] += leaves - len(old.leaves)
    state["free_nodes"] += nodes - len(old.nodes)
    return old._replace(
        leaves=new.leaves, leaf_runs=new.leaf_runs, nodes=new.nodes, node_runs=new.node_runs,
        free_leaves=free_leaves, free_nodes=free_nodes,
    )  # fmt: skip


def with_more_ties(old: Forest) -> Forest:
    """Return the tree with room for more tied entries."""
    state = old.state[0]
    room = 2 * len(old.tied) + 8
    new = empty_forest(0, 0, room, 0, 0)
    new.tied[: len(old.tied)] = old.tied
    places = more_places(old.free_tied, int(state["free_tied"]), room)
    state["free_tied"] += room - len(old.tied)
    return old._replace(tied=new.tied, free_tied=places)


def with_larger_pool(old: Forest, tries: int) -> Forest:
    """Copy the hulls without gaps into a pool with as much room again; further tries get more room."""
    pool = empty_records((2 * int(hull_room(old)) + 1024) << (tries - 1), EDGE)
    move_all_hulls(old, pool)
    scratch = old.scratch
    if tries > 1:  # if this is not the first try, the scratch was too small
        scratch = empty_records(2 * len(scratch), EDGE)
    return old._replace(pool=pool, scratch=scratch)


def more_places(free: Any, held: int, room: int) -> Any:
    """Return a stack of `held` free places; on top of them come the new places, from its length on."""
    places = np.empty(room, np.int32)
    places[:held] = free[:held]
    places[held : held + room - len(free)] = np.arange(room - 1, len(free) - 1, -1)
    return places


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
