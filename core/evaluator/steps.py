"""What happens to a window, step by step: who enters, who leaves, when a row is due.

A window policy and an emission are worked out here, once for all that keeps the window: rankings, decisions
and rows then follow the same steps. The times of the events held are kept here too, since windows and grids
by time depend on them.

A step is an event, or a moment at which time alone went by (a row on a grid is due). The bits of its flag
say which (`measures.steps`), and `leaving` how many of the oldest events go. Oldest is by arrival, in windows
by time by (time, arrival).

The result is a pure function of the events and the settings: not of how events are cut into calls.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import Int8Array, Int64Array
from ..events.times import NO_TIME
from ..kernels.compile import entry, inlined
from ..kernels.rings import move_on
from ..measures.steps import ENTERS, EVENT, FED, ROW_DUE, Steps
from ..rows.columns import INTEGER_COLUMNS
from ..settings.windows import (
    ADAPTIVE_EVENTS,
    Adaptive,
    Emission,
    EveryEvents,
    LastDuration,
    LastEvents,
    Window,
)

SEQ, HELD, TIME_HEAD, NEXT_ROW, GREATEST, CLOCK, LAST_DUE, CHANGED, DRIFTED, AT = range(10)
"""Fields of a course, int64: events applied and held (where decisions has them, too), slot of the oldest in
the ring of times, number of the next row, greatest time applied, what the clock has reached (the same, or a
grid point after it), the last grid point with a row, whether the window changed since the last row, whether
it shrank since, and the event of the batch that is next."""

COURSE_FIELDS = 10

WINDOW_FIELDS = (CLOCK, LAST_DUE, CHANGED, DRIFTED)
"""What no other part of a state says, and rows on a grid and `drift` depend on."""

_ROW, _SEQ, _EVENTS, _TIME, _DUE, _PANE_START, _PANE_END, _START, _END = range(len(INTEGER_COLUMNS))

NEVER_LEAVE, COUNT, DURATION, GIVEN = range(4)
"""Kinds of window: see `WindowRule`."""


class WindowRule(NamedTuple):
    """A window and an emission in numbers, for kernels.

    kind   NEVER_LEAVE; COUNT: the last `size` events; DURATION: the last `size` microseconds; GIVEN: the
           caller says how many stay, and of more than `size` events the oldest sixteenth goes
    every  events between rows; 0: rows are on the grid
    grid   microseconds between grid points; 0: none
    """

    kind: int
    size: int
    every: int
    grid: int


def window_rule(window: Window, every: Emission) -> WindowRule:
    """Return the rule of a window and an emission."""
    kind, size = NEVER_LEAVE, 0
    if isinstance(window, LastEvents):
        kind, size = COUNT, window.k
    elif isinstance(window, LastDuration):
        kind, size = DURATION, window.micros
    elif isinstance(window, Adaptive):
        kind, size = GIVEN, ADAPTIVE_EVENTS
    events, grid = (every.n, 0) if isinstance(every, EveryEvents) else (0, every.micros)
    return WindowRule(kind, size, events, grid)


def new_course() -> Int64Array:
    """Return the course of a window to which nothing has happened."""
    course = np.zeros(COURSE_FIELDS, np.int64)
    course[[GREATEST, CLOCK, LAST_DUE]] = NO_TIME
    return course


_NO_SHIFTS = np.empty(0, np.int64)
_ONE_ENTERS = Steps(
    np.zeros(1, np.int64), np.full(1, EVENT | ENTERS, np.int8), np.zeros(1, np.int64), _NO_SHIFTS
)
_ONE_SLIDES = _ONE_ENTERS._replace(leaving=np.ones(1, np.int64))


def sliding_steps(events: int, held: int, size: int | None) -> Steps:
    """Return the steps of events that come into a window of the last `size` (None: of all), without rows."""
    if events == 1:
        return _ONE_SLIDES if held == size else _ONE_ENTERS
    leaving = np.zeros(events, np.int64)
    if size is not None:
        leaving[max(0, size - held) :] = 1
    return Steps(np.arange(events), np.full(events, EVENT | ENTERS, np.int8), leaving, _NO_SHIFTS)


@inlined
def _grid_at_or_after(time: int, grid: int) -> int:
    return -((-time) // grid) * grid


@inlined
def _next_due(rule: WindowRule, course: Int64Array, times: Int64Array) -> int:
    """Return the grid point at which the next row would be due if no event came; NO_TIME: none."""
    if course[CHANGED] != 0:
        due = _grid_at_or_after(course[CLOCK], rule.grid)
    elif rule.kind == DURATION and course[HELD] > 0:
        due = _grid_at_or_after(times[course[TIME_HEAD]] + rule.size, rule.grid)
    else:
        return NO_TIME
    if course[LAST_DUE] != NO_TIME and due <= course[LAST_DUE]:
        due = course[LAST_DUE] + rule.grid
    return due


@entry
def next_due(rule: WindowRule, course: Int64Array, times: Int64Array) -> int:
    """Return the grid point at which the next row is due if no event comes; NO_TIME: there is none."""
    return _next_due(rule, course, times)


@inlined
def _expire(course: Int64Array, times: Int64Array, bound: int) -> int:
    """Let go of the times at or before a bound; return how many they were."""
    gone = 0
    while course[HELD] > 0 and times[course[TIME_HEAD]] <= bound:
        course[TIME_HEAD] = course[TIME_HEAD] + 1 if course[TIME_HEAD] + 1 < len(times) else 0
        course[HELD] -= 1
        gone += 1
    return gone


@inlined
def _let_go(course: Int64Array, times: Int64Array, gone: int) -> None:
    course[HELD] -= gone
    if len(times) > 0:
        course[TIME_HEAD] = (course[TIME_HEAD] + gone) % len(times)


@inlined
def _hold(course: Int64Array, times: Int64Array, time: int, in_order: bool) -> int:
    """Put a time into the ring, before those that are later unless `in_order`; return how many these are."""
    shift = 0
    if len(times) > 0:
        place = (course[TIME_HEAD] + course[HELD]) % len(times)
        if not in_order:
            at_most = course[HELD]
            while shift < at_most:  # halving: the times held ascend
                middle = (shift + at_most) // 2
                if times[(place - 1 - middle) % len(times)] <= time:
                    at_most = middle
                else:
                    shift = middle + 1
            move_on(times, place, shift)
            place = (place - shift) % len(times)
        times[place] = time
    course[HELD] += 1
    return shift


@inlined
def _write_row(
    course: Int64Array, times: Int64Array, due: int, integers: Int64Array, drift: Int8Array, row: int
) -> None:
    """Write what identifies a row and what its window holds."""
    integers[row, _ROW] = course[NEXT_ROW]
    integers[row, _SEQ] = course[SEQ]
    integers[row, _EVENTS] = course[HELD]
    integers[row, _TIME] = course[GREATEST]
    integers[row, _DUE] = due
    if len(times) > 0 and course[HELD] > 0:
        integers[row, _START] = times[course[TIME_HEAD]]
        integers[row, _END] = times[(course[TIME_HEAD] + course[HELD] - 1) % len(times)]
    drift[row] = course[DRIFTED]
    course[NEXT_ROW] += 1
    course[CHANGED] = 0
    course[DRIFTED] = 0


@entry
def plan_steps(
    rule: WindowRule,
    times: Int64Array,
    given: Int64Array,
    fed: Int8Array,
    end: int,
    clock: int,
    course: Int64Array,
    held_times: Int64Array,
    events: Int64Array,
    flags: Int8Array,
    leaving: Int64Array,
    shifts: Int64Array,
    integers: Int64Array,
    drift: Int8Array,
) -> tuple[int, int]:
    """Work out the steps of a batch from event `course[AT]` on; return how many steps and rows it wrote.

    times       of the batch's events, or empty
    given, fed  for GIVEN: how many events stay at most with each, and 1 where the signal was fed with it; or
                empty
    end         the batch's number of events, or how many of them to go up to
    clock       where every event is applied, time goes on to here; NO_TIME: it does not
    course      changed
    held_times  a ring of the times held, with room for those that come; empty where there are none
    events ...  the steps; where they are full, it stops, and goes on when called again
    integers, drift  the rows' columns, as many as there are steps or more
    """
    steps = rows = 0
    while steps < len(flags):
        event = course[AT]
        time = clock
        if event < end:
            time = times[event] if len(times) > 0 else NO_TIME
        if rule.grid > 0 and course[CLOCK] != NO_TIME and time > course[CLOCK]:
            due = _next_due(rule, course, held_times)
            if due != NO_TIME and due < time:
                course[CLOCK] = max(course[CLOCK], due)
                gone = _expire(course, held_times, due - rule.size) if rule.kind == DURATION else 0
                events[steps], flags[steps], leaving[steps], shifts[steps] = -1, ROW_DUE, gone, 0
                _write_row(course, held_times, due, integers, drift, rows)
                course[LAST_DUE] = due
                steps += 1
                rows += 1
                continue
        if event >= end:
            break
        course[AT] += 1
        course[SEQ] += 1
        course[GREATEST] = max(course[GREATEST], time)
        course[CLOCK] = max(course[CLOCK], time)
        flag = EVENT
        gone = shift = 0
        if rule.kind != DURATION or time > course[GREATEST] - rule.size:
            flag |= ENTERS
            if rule.kind == COUNT:
                gone = 1 if course[HELD] == rule.size else 0
                _let_go(course, held_times, gone)
            elif rule.kind == DURATION:
                gone = _expire(course, held_times, course[GREATEST] - rule.size)
            elif rule.kind == GIVEN:
                if len(given) > 0 and course[HELD] + 1 > given[event]:
                    gone = course[HELD] + 1 - given[event]
                    course[DRIFTED] = 1
                if course[HELD] + 1 - gone > rule.size:
                    gone = course[HELD] + 1 - rule.size + rule.size // 16
                _let_go(course, held_times, gone)
                if len(fed) > 0 and fed[event] != 0:
                    flag |= FED
            shift = _hold(course, held_times, time, rule.kind != DURATION)
            course[CHANGED] = 1
        if rule.every > 0 and course[SEQ] % rule.every == 0:
            flag |= ROW_DUE
            _write_row(course, held_times, NO_TIME, integers, drift, rows)
            rows += 1
        events[steps], flags[steps], leaving[steps], shifts[steps] = event, flag, gone, shift
        steps += 1
    return steps, rows
