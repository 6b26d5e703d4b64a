"""Batches of events: into the tree, out of it, and through a window that slides.

One compiled loop for all of it, because the update inlined into it is most of the machine code.
The events of a window lie in a ring in order of arrival, each with the bucket it went into: where
an event must leave, its bucket is usually still the same, and the descent is saved.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..kernels.bits import prefetch
from ..kernels.compile import entry, inlined
from ..kernels.records import at, whole
from ..measures.steps import ENTERS, ROW_DUE
from .balance import has_room
from .layout import Tree, is_score, key_of
from .rows import Ask, Chain, write_row
from .update import NO_HINT, NOT_FOUND, descend, update

_HELD_FIELDS: list[Any] = [("key", "i8"), ("bucket", "i4"), ("label", "i4")]
HELD = np.dtype(_HELD_FIELDS)

_COURSE_FIELDS: list[Any] = [
    ("event", "i8"),  # of the batch, the next
    ("row", "i8"),  # the next to write
    ("oldest", "i8"),  # where the ring's oldest event lies
    ("held", "i8"),  # events in the ring
    ("window", "i8"),  # NO_WINDOW: there is no ring; a compressed AUC: the events its window holds
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
    """The window's events in order of arrival (HELD, a circle), and where things stand (COURSE)."""

    events: Any
    course: Any


@inlined
def hold(ring: Ring, key: int, label: int, bucket: int, shift: int) -> None:
    """Let an event into the ring, before so many that are younger."""
    course = ring.course[0]
    place = course.oldest + course.held
    if place >= len(ring.events):
        place -= len(ring.events)
    while shift > 0:
        shift -= 1
        before = place - 1 if place > 0 else len(ring.events) - 1
        older = ring.events[at(before)]
        held = ring.events[at(place)]
        held.key = older.key
        held.label = older.label
        held.bucket = older.bucket
        place = before
    held = ring.events[at(place)]
    held.key = key
    held.label = label
    held.bucket = bucket
    course.held += 1


@inlined
def release(ring: Ring) -> tuple[int, int, int]:
    """Let the oldest event out of the ring; return its key, label and hint."""
    course = ring.course[0]
    held = ring.events[at(course.oldest)]
    course.oldest += 1
    if course.oldest == len(ring.events):
        course.oldest = 0
    course.held -= 1
    return held.key, whole(held.label), whole(held.bucket)


@inlined
def obstacle(tree: Tree, ring: Ring, key: int, sign: int) -> int:
    """Tell what must be done before the next event can be applied."""
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
    """Ask memory for the buckets of the next events to go and to come; return the latter's.

    In large windows an update waits for memory most of its time.
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
    leaving: Any,
    flags: Any,
    shifts: Any,
    sign: int,
    ask: Ask,
    chain: Chain,
    rows: Any,
) -> int:
    """Apply a batch from where `ring.course` stands; return DONE, or why it stopped short.

    sign: 1 inserts, -1 removes. Where there is a ring, the batch is one of steps (measures/steps.py): `flags`
    say at which of them an event enters and where a row is due, `leaving` how many of the oldest events go,
    and `shifts` (or nothing) before how many younger events one enters. Without a ring these three are empty.
    """
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
        while enters | (step < 0):  # first the event itself, then those that go
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
