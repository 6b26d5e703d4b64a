"""The steps of a window: which events enter and leave, and when a row is due.

This module turns a window rule and an emission into steps. Rankings, decisions and rows then apply the same
steps. `Course` has the shared counters. `Course` also has the times of the events in the window, because
windows and grids by time depend on these times.

A step is an event, or a moment at which only time advances (a row on a grid is due). The bits of the step's
flag tell the two apart (`measures.steps`). `leaving` says how many of the oldest events leave. The window's
events are in order of arrival, or, in windows by time, in order of (time, arrival).

The steps are a pure function of the events and the settings; they do not depend on how events are cut into
calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..arrays import NO_INT64, Int8Array, Int64Array
from ..events.times import NO_TIME
from ..kernels.compile import entry, inlined
from ..kernels.rings import capacity_for, move_on, unrolled, with_room
from ..measures.decisions import COUNTERS, HELD, LAST_LABEL, MAJORITY, SEQ
from ..measures.steps import ENTERS, EVENT, FED, ROW_DUE, Steps
from ..rows.columns import INTEGER_COLUMNS
from ..settings.windows import COUNT, DURATION, GIVEN

TIME_HEAD, NEXT_ROW, GREATEST, CLOCK, LAST_DUE, CHANGED, DRIFTED, AT = range(COUNTERS, COUNTERS + 8)
"""The places in an evaluator's counters, int64, behind those of its decisions (measures/decisions.py). In
order: the slot of the oldest event in the ring of times; the number of the next row; the greatest time that
was applied; the clock (the greatest time, or a grid point after it); the last grid point with a row; whether
the window changed since the last row; whether the window became smaller since the last row; the next event of
the batch.
"""

ALL_COUNTERS = COUNTERS + 8

WINDOW_FIELDS = (CLOCK, LAST_DUE, CHANGED, DRIFTED)
"""The counters that a state stores in a part of their own: rows on a grid and `drift` depend on them."""

REMAINING = [SEQ, NEXT_ROW, GREATEST, CLOCK, LAST_DUE]
"""The counters from which rows continue when an evaluator returns: they are the fields of `Remains`."""

_ROW, _SEQ, _EVENTS, _TIME, _DUE, _PANE_START, _PANE_END, _START, _END = range(len(INTEGER_COLUMNS))


class WindowRule(NamedTuple):
    """A window and an emission as numbers, for kernels.

    kind, size  the kind and the number of `EveryWindow.rule`
    every       the number of events between rows; 0 if rows are on a grid
    grid        the microseconds between grid points; 0 if there is no grid
    """

    kind: int
    size: int
    every: int
    grid: int


_ONE_ENTERS = Steps(
    np.zeros(1, np.int64), np.full(1, EVENT | ENTERS, np.int8), np.zeros(1, np.int64), NO_INT64
)
_ONE_SLIDES = _ONE_ENTERS._replace(leaving=np.ones(1, np.int64))


def sliding_steps(events: int, held: int, size: int | None) -> Steps:
    """Return the steps of events that enter a window of the last `size` events, without rows.

    A `size` of None means all events.
    """
    if events == 1:
        return _ONE_SLIDES if held == size else _ONE_ENTERS
    leaving = np.zeros(events, np.int64)
    if size is not None:
        leaving[max(0, size - held) :] = 1
    return Steps(np.arange(events), np.full(events, EVENT | ENTERS, np.int8), leaving, NO_INT64)


@inlined
def _grid_at_or_after(time: int, grid: int) -> int:
    return -((-time) // grid) * grid


@entry
def next_due(rule: WindowRule, counters: Int64Array, times: Int64Array) -> int:
    """Return the grid point at which the next row would be due if no event came.

    NO_TIME if there is no such point.
    """
    if counters[CHANGED] != 0:
        due = _grid_at_or_after(counters[CLOCK], rule.grid)
    elif rule.kind == DURATION and counters[HELD] > 0:
        due = _grid_at_or_after(times[counters[TIME_HEAD]] + rule.size, rule.grid)
    else:
        return NO_TIME
    if counters[LAST_DUE] != NO_TIME and due <= counters[LAST_DUE]:
        due = counters[LAST_DUE] + rule.grid
    return due


@inlined
def _expire(counters: Int64Array, times: Int64Array, bound: int) -> int:
    """Remove the times at or before `bound` from the ring; return how many were removed."""
    gone = 0
    while counters[HELD] > 0 and times[counters[TIME_HEAD]] <= bound:
        counters[TIME_HEAD] = counters[TIME_HEAD] + 1 if counters[TIME_HEAD] + 1 < len(times) else 0
        counters[HELD] -= 1
        gone += 1
    return gone


@inlined
def _let_go(counters: Int64Array, times: Int64Array, gone: int) -> None:
    counters[HELD] -= gone
    if len(times) > 0:
        counters[TIME_HEAD] = (counters[TIME_HEAD] + gone) % len(times)


@inlined
def _hold(counters: Int64Array, times: Int64Array, time: int, in_order: bool) -> int:
    """Insert a time into the ring, at its end if `in_order`; return how many later times stand behind it."""
    shift = 0
    if len(times) > 0:
        place = (counters[TIME_HEAD] + counters[HELD]) % len(times)
        if not in_order:
            at_most = counters[HELD]
            while shift < at_most:  # this is a binary search: the times in the ring ascend
                middle = (shift + at_most) // 2
                if times[(place - 1 - middle) % len(times)] <= time:
                    at_most = middle
                else:
                    shift = middle + 1
            move_on(times, place, shift)
            place = (place - shift) % len(times)
        times[place] = time
    counters[HELD] += 1
    return shift


@inlined
def write_row(
    counters: Int64Array, times: Int64Array, due: int, integers: Int64Array, drift: Int8Array, row: int
) -> None:
    """Write the columns that identify a row, the number of events in the row's window, and the drift flag."""
    integers[row, _ROW] = counters[NEXT_ROW]
    integers[row, _SEQ] = counters[SEQ]
    integers[row, _EVENTS] = counters[HELD]
    integers[row, _TIME] = counters[GREATEST]
    integers[row, _DUE] = due
    if len(times) > 0 and counters[HELD] > 0:
        integers[row, _START] = times[counters[TIME_HEAD]]
        integers[row, _END] = times[(counters[TIME_HEAD] + counters[HELD] - 1) % len(times)]
    drift[row] = counters[DRIFTED]
    counters[NEXT_ROW] += 1
    counters[CHANGED] = 0
    counters[DRIFTED] = 0


@entry
def plan_steps(
    rule: WindowRule,
    times: Int64Array,
    given: Int64Array,
    fed: Int8Array,
    end: int,
    clock: int,
    counters: Int64Array,
    held_times: Int64Array,
    events: Int64Array,
    flags: Int8Array,
    leaving: Int64Array,
    shifts: Int64Array,
    integers: Int64Array,
    drift: Int8Array,
) -> tuple[int, int]:
    """Write the steps of a batch from event `counters[AT]` on; return the numbers of steps and rows written.

    times       the times of the batch's events, or empty
    given, fed  only for windows of kind GIVEN, else empty: for each event the most events that the window
                then holds, and 1 if ADWIN received the event's value
    end         the event at which to stop; at most the batch's number of events
    clock       the time to advance to after the last event; NO_TIME if time does not advance
    counters    changed, without SEQ and HELD, which are counted when the steps are applied
    held_times  the ring of the times in the window, with room for the batch's times; empty if events have no
                times
    events ...  the arrays that receive the steps; when they are full, the kernel returns, and continues at
                the next call
    integers, drift  the columns of the rows, at least as long as the steps
    """
    seq, held = counters[SEQ], counters[HELD]
    steps = rows = 0
    while steps < len(flags):
        event = counters[AT]
        time = clock
        if event < end:
            time = times[event] if len(times) > 0 else NO_TIME
        if rule.grid > 0 and counters[CLOCK] != NO_TIME and time > counters[CLOCK]:
            due = next_due(rule, counters, held_times)
            if due != NO_TIME and due < time:
                counters[CLOCK] = max(counters[CLOCK], due)
                gone = _expire(counters, held_times, due - rule.size) if rule.kind == DURATION else 0
                events[steps], flags[steps], leaving[steps], shifts[steps] = -1, ROW_DUE, gone, 0
                write_row(counters, held_times, due, integers, drift, rows)
                counters[LAST_DUE] = due
                steps += 1
                rows += 1
                continue
        if event >= end:
            break
        counters[AT] += 1
        counters[SEQ] += 1
        counters[GREATEST] = max(counters[GREATEST], time)
        counters[CLOCK] = max(counters[CLOCK], time)
        flag = EVENT
        gone = shift = 0
        if rule.kind != DURATION or time > counters[GREATEST] - rule.size:
            flag |= ENTERS
            if rule.kind == COUNT:
                gone = 1 if counters[HELD] == rule.size else 0
                _let_go(counters, held_times, gone)
            elif rule.kind == DURATION:
                gone = _expire(counters, held_times, counters[GREATEST] - rule.size)
            elif rule.kind == GIVEN:
                if len(given) > 0 and counters[HELD] + 1 > given[event]:
                    gone = counters[HELD] + 1 - given[event]
                    counters[DRIFTED] = 1
                if counters[HELD] + 1 - gone > rule.size:
                    gone = counters[HELD] + 1 - rule.size + rule.size // 16
                _let_go(counters, held_times, gone)
                if len(fed) > 0 and fed[event] != 0:
                    flag |= FED
            shift = _hold(counters, held_times, time, rule.kind != DURATION)
            counters[CHANGED] = 1
        if rule.every > 0 and counters[SEQ] % rule.every == 0:
            flag |= ROW_DUE
            write_row(counters, held_times, NO_TIME, integers, drift, rows)
            rows += 1
        events[steps], flags[steps], leaving[steps], shifts[steps] = event, flag, gone, shift
        steps += 1
    counters[SEQ], counters[HELD] = seq, held
    return steps, rows


_STEPS_AT_ONCE = 65_536
"""The most steps of a plan with rows on a grid: the number of such rows is not known before."""


class Plan(NamedTuple):
    """Some steps of a batch, and the rows that fall due.

    steps     the steps, in order.
    start     the index in the batch of the first event of the steps.
    events    the number of steps that are events.
    integers  the whole-number columns of the rows, such as row number, seq and the number of events in the
              window.
    drift     int8 of each row: 1 if the window became smaller since the row before.
    """

    steps: Steps
    start: int
    events: int
    integers: Int64Array
    drift: Int8Array


def fresh_counters() -> Int64Array:
    """Return the counters of an evaluator without events, in which CLASSES is not set yet."""
    counters = np.zeros(ALL_COUNTERS, np.int64)
    counters[[LAST_LABEL, MAJORITY]] = -1
    counters[[GREATEST, CLOCK, LAST_DUE]] = NO_TIME
    return counters


class Course:
    """The counters of an evaluator, the rule of its window, and the times of the events in the window.

    rule         the rule of the window and its rows.
    limit        the number of events in a full window; None if the window has no greatest number.
    keeps_times  whether this object keeps the times of the events in the window, once events have times.

    The caller of `plan` counts SEQ and HELD; this object keeps the other counters.
    """

    def __init__(self, rule: WindowRule, limit: int | None, keeps_times: bool) -> None:
        self.counters = fresh_counters()
        self.rule = rule
        self._limit = limit
        self._keeps_times = keeps_times
        self._times = NO_INT64

    @property
    def is_timed(self) -> bool:
        """Whether the course keeps the times of events."""
        return len(self._times) > 0

    @property
    def nbytes(self) -> int:
        """The number of bytes of the times that the course keeps."""
        return self._times.nbytes

    @property
    def next_due(self) -> int:
        """The grid point at which the next row is due if no event comes.

        NO_TIME if there is no such point.
        """
        return int(next_due(self.rule, self.counters, self._times))

    def times(self) -> Int64Array:
        """Return the times of the events in the window, the oldest first.

        Empty if the course keeps no times.
        """
        return unrolled(self._times, int(self.counters[TIME_HEAD]), self._held) if self.is_timed else NO_INT64

    def load(self, times: Int64Array) -> None:
        """Replace the times that the course keeps by `times`, the oldest first."""
        if self._keeps_times:
            self._times = with_room(times, capacity_for(len(times), self._limit))

    @property
    def _held(self) -> int:
        return int(self.counters[HELD])

    def plan(
        self, events: int, times: Int64Array | None, given: Int64Array, fed: Int8Array, clock: int
    ) -> Iterator[Plan]:
        """Yield the plans of a batch of `events` events.

        The caller must apply each plan before the caller takes the next plan.

        times, given, fed, clock  as in `plan_steps`; times are None if the events have no times
        """
        counters, rule = self.counters, self.rule
        counters[AT] = 0
        while True:
            start = int(counters[AT])
            room = events - start if not rule.grid else min(events - start, _STEPS_AT_ONCE) + 16
            if self._keeps_times and (self.is_timed or times is not None):
                self._make_room(self._held + room)
            numbers, leaving, shifts = np.empty((3, room), np.int64)
            steps = Steps(numbers, np.empty(room, np.int8), leaving, shifts)
            seq = int(counters[SEQ])
            due = (seq + room) // rule.every - seq // rule.every if rule.every else room  # the most rows
            integers, drift = np.full((due, len(INTEGER_COLUMNS)), NO_TIME), np.empty(due, np.int8)
            count, due = plan_steps(
                rule, NO_INT64 if times is None else times, given, fed, events, clock, counters,
                self._times, *steps, integers, drift,
            )  # fmt: skip
            at = int(counters[AT])
            if count:
                steps = steps.part(0, count)
                if rule.kind != DURATION or not steps.shifts.any():
                    steps = steps._replace(shifts=NO_INT64)
                yield Plan(steps, start, at - start, integers[:due], drift[:due])
            if at == events and (count < room or not rule.grid):
                return

    def _make_room(self, wanted: int) -> None:
        """Make the ring of times larger.

        A full window needs no more room, because an event leaves before another enters.
        """
        if (room := capacity_for(wanted, self._limit)) > len(self._times):
            times = self.times() if self.is_timed else np.full(self._held, NO_TIME)
            self._times = with_room(times, room)
            self.counters[TIME_HEAD] = 0
