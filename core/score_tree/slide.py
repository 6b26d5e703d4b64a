"""Batches of events: inserted into the tree, removed from it, or moved through a sliding window.

There is one compiled loop for all three, because the update inlined into it is most of the machine code. The
events of a window lie in a ring in order of arrival, each with the bucket that it went into. When an event
leaves, its bucket is usually still the same, and the descent is saved.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..kernels.bits import prefetch
from ..kernels.compile import entry, inlined
from ..kernels.records import at, whole
from ..measures.steps import ENTERS, ROW_DUE, Steps
from .balance import has_room
from .layout import Tree, is_score, key_of
from .tree_rows import Ask, Chain, write_row
from .update import NO_HINT, NOT_FOUND, descend, update

_HELD_FIELDS: list[Any] = [("key", "i8"), ("bucket", "i4"), ("label", "i4")]
HELD = np.dtype(_HELD_FIELDS)

_COURSE_FIELDS: list[Any] = [
    ("event", "i8"),  # the next event of the batch
    ("row", "i8"),  # the next row to write
    ("oldest", "i8"),  # where the ring's oldest event lies
    ("held", "i8"),  # events in the ring
    # NO_WINDOW: the batch has no ring. For a compressed AUC: how many events its window holds
    ("window", "i8"),
]
COURSE = np.dtype(_COURSE_FIELDS)
NO_WINDOW = -1

DONE = 0
NEEDS_CAPACITY = 1
NEEDS_ROOM = 2
NEEDS_RING = 3
MISSING = 4
NOT_A_NUMBER = 5


class Ring(NamedTuple):
    """The window's events in order of arrival (HELD, circular), and the state of the batch (COURSE)."""

    events: Any
    course: Any


@inlined
def hold(ring: Ring, key: int, label: int, bucket: int, shift: int) -> None:
    """Add an event to the ring, before `shift` younger events."""
    course = ring.course[0]
    place = course.oldest + course.held
    if place >= len(ring.events):
        place -= len(ring.events)
    while shift > 0:
        shift -= 1
        before = place - 1 if place > 0 else len(ring.events) - 1
        ring.events[at(place)] = ring.events[at(before)]
        place = before
    held = ring.events[at(place)]
    held.key = key
    held.label = label
    held.bucket = bucket
    course.held += 1


@inlined
def release(ring: Ring) -> tuple[int, int, int]:
    """Remove the oldest event from the ring; return the event's key, label and hint."""
    course = ring.course[0]
    held = ring.events[at(course.oldest)]
    course.oldest += 1
    if course.oldest == len(ring.events):
        course.oldest = 0
    course.held -= 1
    return held.key, whole(held.label), whole(held.bucket)


@inlined
def obstacle(tree: Tree, ring: Ring, key: int, sign: int) -> int:
    """Return the code of what the next event needs before it can be applied; DONE if it needs nothing."""
    state = tree.state[0]
    if not is_score(key):
        return NOT_A_NUMBER
    if sign > 0:
        if state.weight >= state.capacity:
            return NEEDS_CAPACITY
        if not has_room(tree):
            return NEEDS_ROOM
        if (ring.course[0].window != NO_WINDOW) & (ring.course[0].held == len(ring.events)):
            return NEEDS_RING
    return DONE


@inlined
def look_ahead(tree: Tree, ring: Ring, scores: Any, event: int) -> int:
    """Prefetch the buckets of the next events to leave and to enter; return the bucket of the entering event.

    In large windows an update spends most of its time waiting for memory.
    """
    course = ring.course[0]
    if course.held > 0:
        bucket = whole(ring.events[at(course.oldest)].bucket)
        if (bucket >= 0) & (bucket < tree.state[0].fresh_bucket):
            prefetch(tree.buckets[at(bucket)])
    if event >= len(scores):
        return whole(NO_HINT)
    index = descend(tree, tree.state[0].root, key_of(scores[at(event)]))
    prefetch(tree.buckets[at(index)])
    return index


@entry
def slide(
    tree: Tree,
    ring: Ring,
    labels: Any,
    scores: Any,
    steps: Steps,
    sign: int,
    ask: Ask,
    chain: Chain,
    rows: Any,
) -> int:
    """Apply the events of a batch, from the place where `ring.course` stands.

    Return DONE, or the code of what stopped the batch.

    sign: 1 inserts, -1 removes. With a ring, the batch is one of `steps`. Without a ring, the columns of
    `steps` are empty.
    """
    flags, leaving, shifts = steps.flags, steps.leaving, steps.shifts
    course = ring.course[0]
    ahead = whole(NO_HINT)
    while course.event < len(scores):
        event = course.event
        key = key_of(scores[at(event)])
        label = whole(labels[at(event)])
        enters = len(flags) == 0 or (whole(flags[at(event)]) & ENTERS) != 0
        if enters:
            stop = obstacle(tree, ring, key, sign)
            if stop != DONE:
                return stop
        step = whole(sign)
        hint = ahead
        ahead = look_ahead(tree, ring, scores, event + 1)
        go = whole(0)
        if not enters:
            go = whole(leaving[at(event)])
            if go > 0:
                go -= 1
                key, label, hint = release(ring)
                step = whole(-1)
        while enters | (step < 0):  # the entering event first, then the leaving ones
            index = update(tree, key, label, step, hint)
            if enters:
                enters = False
                if index == NOT_FOUND:
                    return MISSING
                if course.window != NO_WINDOW:
                    hold(ring, key, label, index, whole(shifts[at(event)]) if len(shifts) > 0 else whole(0))
                    go = whole(leaving[at(event)])
            if go == 0:
                break
            go -= 1
            key, label, hint = release(ring)
            step = whole(-1)
        course.event = event + 1
        if len(flags) > 0 and (whole(flags[at(event)]) & ROW_DUE) != 0:
            write_row(tree, ask, chain, rows[at(course.row)])
            course.row += 1
    return DONE
