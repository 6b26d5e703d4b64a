"""The kernels of an arena, which apply events to their windows and make the rows that fall due.

A run is the events of one evaluator in a packet, in their order. `group` and `gather` make runs of a packet;
`follow` applies all runs. The steps of a run, its decisions and its scans are those of other windows
(`evaluator.eviction`, `measures`), so that rows are equal.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from ..arrays import FloatArray, Int8Array, Int64Array
from ..evaluator.eviction import (
    AT,
    WindowRule,
    next_due,
    plan_steps,
    write_row,
)
from ..events.times import END_OF_TIME, NO_TIME
from ..kernels.compile import entry, inlined, inner, kernel
from ..kernels.records import whole
from ..kernels.rings import move_on
from ..measures.decisions import HEAD, HELD, SEQ, apply_decisions
from ..measures.steps import ENTERS, ROW_DUE
from .sorting import (
    DUE,
    GONE,
    MOST_ROOM,
    REPORTED,
    ROOM,
    SORTED,
    START,
    TIMED,
    Workspace,
    sort_window,
)

_plan_steps, _next_due, _apply_decisions = inner(plan_steps), inner(next_due), inner(apply_decisions)

STEPS_AT_ONCE = 4_096
"""Steps that are planned at once: their arrays stay in the processor's cache."""

TICKS = 16
"""If rows are on a grid, so many more steps than events are planned at once."""

RUN, BEGUN, ROW, USED, HELD_MORE = range(5)
"""Fields of the progress of a call, int64. In order: the run that comes next; 1 if the run has begun; rows
written; events written to the sorted windows; by how many events all windows together have grown.
"""

PROGRESS_FIELDS = 5


class Shared(NamedTuple):
    """The arrays that all windows of an arena share.

    counters, counts, places  by number of evaluator: see `eviction`, `measures.decisions` and `sorting`
    scores, labels, predictions, hits, times, order  by slot; times are empty if no event has a time
    """

    counters: Int64Array
    counts: Int64Array
    places: Int64Array
    scores: FloatArray
    labels: Int8Array
    predictions: Int8Array
    hits: Int8Array
    times: Int64Array
    order: Any


class Filled(NamedTuple):
    """Rows to be filled: the evaluator's number, where its sorted window ends, and the columns of `Rows`."""

    evaluators: Int64Array
    ends: Int64Array
    integers: Int64Array
    numbers: FloatArray
    reasons: Int8Array
    drift: Int8Array


class Sorted(NamedTuple):
    """The windows of rows, one after another, by ascending score."""

    scores: FloatArray
    labels: Int8Array


class Planned(NamedTuple):
    """Columns of steps, `STEPS_AT_ONCE` each.

    As `plan_steps` writes them, and the values of the steps' events.

    recalls  room for a number of each class
    """

    events: Int64Array
    flags: Int8Array
    leaving: Int64Array
    shifts: Int64Array
    scores: FloatArray
    labels: Int8Array
    predictions: Int8Array
    recalls: FloatArray


@entry
def group(numbers: Int64Array, cells: Int64Array, runs: Int64Array, ends: Int64Array) -> int:
    """Find the evaluators of events, in the order of their first events.

    Return the number of evaluators found.

    cells       by number of evaluator: zeros on entry; filled with the place of the evaluator's first event
    runs, ends  filled with the evaluators' numbers, and where their runs end
    """
    count = 0
    for number in numbers:
        if cells[number] == 0:
            runs[count] = number
            count += 1
        cells[number] += 1
    end = 0
    for run in range(count):
        events = cells[runs[run]]
        cells[runs[run]] = end
        end += events
        ends[run] = end
    return count


@entry
def gather(
    numbers: Int64Array, scores: FloatArray, labels: Int8Array, times: Int64Array, cells: Int64Array,
    runs: Int64Array, of_runs: FloatArray, labels_of_runs: Int8Array, times_of_runs: Int64Array,
) -> None:  # fmt: skip
    """Copy the columns of events run by run; `cells` (see `group`) are zeros again on return."""
    for event in range(len(numbers)):
        at = cells[numbers[event]]
        cells[numbers[event]] = at + 1
        of_runs[at] = scores[event] + 0.0  # makes 0.0 of -0.0, which is the same score
        labels_of_runs[at] = labels[event]
        if len(times) > 0:
            times_of_runs[at] = times[event]
    for number in runs:
        cells[number] = 0


@inlined
def _ring(shared: Shared, place: Int64Array) -> Any:
    """Return the part of a window in the shared arrays: scores, labels, predictions, hits, times, order."""
    start, end = place[START], place[START] + place[ROOM]
    return (
        shared.scores[start:end], shared.labels[start:end], shared.predictions[start:end],
        shared.hits[start:end], shared.times[start : end if place[TIMED] else start],
        shared.order[start:end],
    )  # fmt: skip


@inlined
def _plan(
    rule: WindowRule, times: Int64Array, given: Int64Array, fed: Int8Array, count: int, clock: int,
    is_last: int, of: Int64Array, ring_times: Int64Array, planned: Planned, most: int, filled: Filled,
    row: int,
) -> int:  # fmt: skip
    """Plan up to `most` steps of a run; return the number of steps.

    The last row is a step without an event.
    """
    if is_last:
        planned.events[0], planned.flags[0], planned.leaving[0], planned.shifts[0] = -1, ROW_DUE, 0, 0
        write_row(of, ring_times, NO_TIME, filled.integers, filled.drift, row)
        return 1
    steps, _ = _plan_steps(
        rule, times, given, fed, count, clock, of, ring_times, planned.events[:most], planned.flags[:most],
        planned.leaving[:most], planned.shifts[:most], filled.integers[row:], filled.drift[row:],
    )  # fmt: skip
    return int(steps)


@kernel
def _enter(
    scores: FloatArray, flags: Int8Array, leaving: Int64Array, shifts: Int64Array, head: int, held: int,
    place: Int64Array, ring_scores: FloatArray,
) -> None:  # fmt: skip
    """Write the scores of entering events to the ring, as `apply_decisions` writes their decisions."""
    room = len(ring_scores)
    for step in range(len(flags)):
        gone = leaving[step]
        place[GONE] += gone
        held -= gone
        head += gone
        head -= room if head >= room else 0
        if flags[step] & ENTERS:
            slot = head + held
            slot -= room if slot >= room else 0
            if shifts[step] > 0:
                place[SORTED] = 0
                move_on(ring_scores, slot, shifts[step])
                slot -= shifts[step]
                slot += room if slot < 0 else 0
            ring_scores[slot] = scores[step]
            held += 1


@entry
def follow(
    rule: WindowRule,
    runs: Int64Array,
    ends: Int64Array,
    scores: FloatArray,
    labels: Int8Array,
    predictions: Int8Array,
    times: Int64Array,
    clock: int,
    is_last: int,
    shared: Shared,
    planned: Planned,
    work: Workspace,
    progress: Int64Array,
    filled: Filled,
    windows: Sorted,
) -> None:
    """Apply runs, from `progress` on, until all are applied or the next rows may find too little room.

    runs, ends  evaluators' numbers, and where the runs end in the columns of events; every ring has room
    times       of the events, or empty
    clock       time to advance to; NO_TIME: time does not advance
    is_last     1: runs have no event, and each window has a row as it is now; else 0
    filled      gets all but the ranking measures of rows
    windows     gets the windows of these rows; the longest ring fits in
    """
    nothing, none_fed = ends[:0], labels[:0]
    while progress[RUN] < len(runs):
        run = progress[RUN]
        begin = ends[run - 1] if run > 0 else whole(0)
        count = ends[run] - begin
        number = runs[run]
        of, counts, place = shared.counters[number], shared.counts[number], shared.places[number]
        if progress[BEGUN] == 0:
            of[AT] = 0
            progress[BEGUN] = 1
        ring_scores, ring_labels, ring_predictions, ring_hits, ring_times, order = _ring(shared, place)
        own_times = times[begin : ends[run]] if len(times) > 0 else times
        while True:
            most = min(count - of[AT] + (TICKS if rule.grid > 0 else 0), STEPS_AT_ONCE)
            due = most
            if is_last:
                due = whole(1)
            elif rule.every > 0:
                due = (of[SEQ] + most) // rule.every - of[SEQ] // rule.every
            fit = (len(windows.labels) - progress[USED]) // max(place[ROOM], 1)
            if progress[ROW] + due > len(filled.drift) or (due > fit and progress[USED] > 0):
                return
            if due > fit:
                most = min(most, fit * max(rule.every, 1))
            steps = _plan(rule, own_times, nothing, none_fed, count, clock, is_last, of, ring_times, planned,
                          most, filled, progress[ROW])  # fmt: skip
            for step in range(steps):
                event = begin + max(planned.events[step], 0)
                if event < len(scores):
                    planned.scores[step], planned.labels[step] = scores[event], labels[event]
                    planned.predictions[step] = predictions[event]
            progress[HELD_MORE] -= of[HELD]
            start = 0
            while start < steps:
                end = start
                while end < steps - 1 and not planned.flags[end] & ROW_DUE:
                    end += 1
                is_due = (planned.flags[end] & ROW_DUE) != 0
                end += 1
                flags, leaving = planned.flags[start:end], planned.leaving[start:end]
                shifts = planned.shifts[start:end]
                _enter(
                    planned.scores[start:end], flags, leaving, shifts, of[HEAD], of[HELD], place, ring_scores
                )
                row = progress[ROW]
                _apply_decisions(
                    planned.labels[start:end], planned.predictions[start:end], flags, leaving, shifts,
                    whole(0), of, counts, ring_labels, ring_predictions, ring_hits, whole(1),
                    planned.recalls, filled.numbers[row:], filled.reasons[row:],
                )  # fmt: skip
                if is_due:
                    used = progress[USED]
                    sort_window(
                        place, of[HEAD], of[HELD], ring_scores, ring_labels, order, work,
                        windows.scores[used:], windows.labels[used:],
                    )  # fmt: skip
                    progress[USED] += of[HELD]
                    filled.evaluators[row], filled.ends[row] = number, progress[USED]
                    place[REPORTED] = of[SEQ]
                    progress[ROW] += 1
                start = end
            progress[HELD_MORE] += of[HELD]
            if of[AT] == count and (steps < most or rule.grid == 0 or is_last):
                break
        if rule.grid > 0:
            grid_point = _next_due(rule, of, ring_times)
            place[DUE] = END_OF_TIME if grid_point == NO_TIME else grid_point
        progress[RUN] += 1
        progress[BEGUN] = 0


def sorted_windows(events: int) -> Sorted:
    """Return room for windows of so many events together."""
    return Sorted(np.empty(events), np.empty(events, np.int8))


@functools.cache
def workspace() -> tuple[Planned, Workspace]:
    """Return arrays for one call of a kernel, in which no other thread runs: kernels keep Python's lock."""
    n, room = STEPS_AT_ONCE, MOST_ROOM + 1
    planned = Planned(
        np.empty(n, np.int64), np.empty(n, np.int8), np.empty(n, np.int64), np.empty(n, np.int64),
        np.empty(n), np.zeros(n, np.int8), np.zeros(n, np.int8), np.empty(2),
    )  # fmt: skip
    work = Workspace(
        np.empty(room), np.empty(room, np.int32), np.empty(room), np.empty(room, np.int32), np.empty(room),
        np.empty(room, np.int32),
    )  # fmt: skip
    return planned, work
