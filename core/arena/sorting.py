"""The events of a window in order of their scores, as slots of the window's ring.

`order[:SORTED]` are the slots of the events that were held at the last row, by ascending score. Since then
the GONE oldest of these events left, and their slots may hold newer events. So a row needs no sort of all
events: it drops the slots of the events that left, sorts the newer events, and merges both.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..arrays import FloatArray, Int8Array, Int32Array, Int64Array
from ..kernels.compile import kernel

START, ROOM, SORTED, GONE, REPORTED, DUE, TIMED = range(7)
"""Fields of the place of a window, int64. In order: its first slot in the shared arrays; how many slots its
ring has; how many events `order` has; how many of these events left; number of events applied when the last
row was made; the grid point of the next row (END_OF_TIME: none); 1 if the window keeps the events' times."""

MOST_ROOM = 1 << 16
"""Most slots of a ring: `order` has numbers of 16 bits."""

PLACE_FIELDS = 8
"""Fields of a place; the last field is not used. A place fills a cache line."""


class Workspace(NamedTuple):
    """Arrays in which a kernel works, longer than the longest ring.

    They hold scores and slots of three runs of events.
    """

    old_scores: FloatArray
    old_slots: Int32Array
    new_scores: FloatArray
    new_slots: Int32Array
    more_scores: FloatArray
    more_slots: Int32Array


_RUN = 8
"""So many events are sorted by insertion, before runs are merged."""


@kernel
def _sort(
    scores: FloatArray, slots: Int32Array, count: int, other_scores: FloatArray, other_slots: Int32Array
) -> bool:
    """Sort events by score; return whether the result is in the `other` arrays, not in the first arrays.

    Runs are merged without branches: half of the branches of a merge of random runs are mispredicted.
    `np.argsort` in a kernel takes 1 s of processor time to compile.
    """
    for start in range(0, count, _RUN):
        for at in range(start + 1, min(count, start + _RUN)):
            score, slot = scores[at], slots[at]
            to = at
            while to > start and scores[to - 1] > score:
                scores[to], slots[to] = scores[to - 1], slots[to - 1]
                to -= 1
            scores[to], slots[to] = score, slot
    width = _RUN
    moved = False
    while width < count:
        for start in range(0, count, 2 * width):
            middle, end = min(count, start + width), min(count, start + 2 * width)
            if moved:
                _merge(other_scores, other_slots, start, middle, end, scores, slots)
            else:
                _merge(scores, slots, start, middle, end, other_scores, other_slots)
        moved = not moved
        width *= 2
    return moved


@kernel
def _merge(
    scores: FloatArray, slots: Int32Array, start: int, middle: int, end: int, to_scores: FloatArray,
    to_slots: Int32Array,
) -> None:  # fmt: skip
    """Merge two sorted runs, [start, middle) and [middle, end), into the same part of the other arrays."""
    left, right, at = start, middle, start
    while left < middle and right < end:
        from_left = scores[left] <= scores[right]
        source = left if from_left else right
        to_scores[at], to_slots[at] = scores[source], slots[source]
        left += 1 if from_left else 0
        right += 0 if from_left else 1
        at += 1
    for source in range(left, middle):
        to_scores[at], to_slots[at] = scores[source], slots[source]
        at += 1
    for source in range(right, end):
        to_scores[at], to_slots[at] = scores[source], slots[source]
        at += 1


@kernel
def sort_window(
    place: Int64Array, head: int, held: int, ring_scores: FloatArray, ring_labels: Int8Array, order: Any,
    work: Workspace, sorted_scores: FloatArray, sorted_labels: Int8Array,
) -> None:  # fmt: skip
    """Write scores and labels of a window, by ascending score; bring `order` up to date.

    head, held  slot of the oldest event, and how many events the window holds
    """
    room = len(ring_scores)
    gone, kept = place[GONE], 0
    if gone < place[SORTED]:
        first = head - gone
        first += room if first < 0 else 0
        for at in range(place[SORTED]):
            slot = int(order[at])
            age = slot - first
            age += room if age < 0 else 0
            work.old_scores[kept], work.old_slots[kept] = ring_scores[slot], slot
            kept += 1 if age >= gone else 0
    fresh = held - kept
    slot = head + kept
    slot -= room if slot >= room else 0
    for at in range(fresh):
        work.new_scores[at], work.new_slots[at] = ring_scores[slot], slot
        slot += 1
        slot -= room if slot >= room else 0
    new_scores, new_slots = work.new_scores, work.new_slots
    if _sort(work.new_scores, work.new_slots, fresh, work.more_scores, work.more_slots):
        new_scores, new_slots = work.more_scores, work.more_slots
    old = new = 0
    for at in range(held):
        from_old = new == fresh or (old < kept and work.old_scores[old] <= new_scores[new])
        if from_old:
            slot = int(work.old_slots[old])
            old += 1
        else:
            slot = int(new_slots[new])
            new += 1
        order[at] = slot
        sorted_scores[at], sorted_labels[at] = ring_scores[slot], ring_labels[slot]
    place[SORTED], place[GONE] = held, 0
