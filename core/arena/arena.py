"""Arena: the windows of many evaluators in shared arrays, each named by its number."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import NO_FLOATS, NO_INT8, NO_INT64, FloatArray, Int8Array, Int64Array
from ..encoding.fields import packed_text
from ..evaluator.engine import Fixed, of_settings
from ..evaluator.eviction import CLOCK, GREATEST, NEXT_ROW, TIME_HEAD, WINDOW_FIELDS, next_due
from ..evaluator.ranking import asked_of_rows, stride_of
from ..evaluator.state import EvaluatorState, evaluator_bytes
from ..evaluator.unit_window import refuse_infinite
from ..events.times import END_OF_TIME, NO_TIME
from ..kernels.rings import unrolled
from ..measures import decisions
from ..measures.at_row import made_at_row
from ..measures.decisions import HEAD, HELD, LAST_LABEL, LAST_SEEN, SEQ
from ..measures.scan import scan_windows
from ..measures.sums import LEAST_CAPACITY, fixed_point_scale
from ..rows.rows import Rows
from ..settings.evaluator import EvaluatorSettings
from .follow import (
    HELD_MORE,
    PROGRESS_FIELDS,
    ROW,
    RUN,
    STEPS_AT_ONCE,
    TICKS,
    USED,
    Filled,
    Sorted,
    follow,
    gather,
    group,
    sorted_windows,
    workspace,
)
from .places import Places
from .sorting import DUE, MOST_ROOM, REPORTED, ROOM, START, TIMED
from .wire import write_windows

_WINDOWS_AT_ONCE = 1 << 16
"""How many events of sorted windows are scanned at once: their arrays stay in the processor's cache."""

SCANS_WORTH = 12
"""A window of at most so many strides is scanned, a row each, at no more cost than a tree has."""


def most_events(settings: EvaluatorSettings) -> int:
    """Return how many events a window may hold in an arena; 0 if no such window may be in an arena.

    A pure function. The function decides speed and memory only: rows are the same. A scan takes some .02 us a
    row and event held; a tree takes .3 us an event, five times the memory, and 30 us of Python for each call.
    """
    window = settings.window
    if window.signal is not None or window.ticks or settings.curves is not None:
        return 0
    if made_at_row(settings).anything or settings.evidence_below is not None:
        return 0
    return min(MOST_ROOM, max(64, SCANS_WORTH * stride_of(settings)))


def is_bounded(settings: EvaluatorSettings) -> bool:
    """Return whether no window with these settings can outgrow an arena."""
    return settings.window.size is not None and settings.window.size <= most_events(settings)


class Runs(NamedTuple):
    """The events of a packet, grouped by evaluator, one group after another.

    numbers  the numbers of the evaluators, in the order of their first events
    counts   how many events of the packet each evaluator has
    """

    numbers: Int64Array
    counts: Int64Array
    scores: FloatArray
    labels: Int8Array
    times: Int64Array | None


class Arena:
    """Windows of the same settings, in one Beam window (pane).

    most  how many events a window may hold (`most_events`, not 0)

    >>> from rocsteady import EveryEvents, LastEvents
    >>> settings = EvaluatorSettings(window=LastEvents(4), every=EveryEvents(2))
    >>> arena = Arena(settings, None)
    >>> arena.begin(0, "m", "")
    >>> scores, labels = np.array([0.1, 0.9, 0.4, 0.3]), np.array([0, 1, 0, 1], np.int8)
    >>> runs = arena.runs(np.zeros(4, np.int64), scores, labels, None)
    >>> [row.auc for row in arena.apply(runs)]
    [1.0, 0.75]
    """

    def __init__(self, settings: EvaluatorSettings, pane: tuple[int, int] | None) -> None:
        self.settings = settings
        self.most = most_events(settings)
        self._is_bounded = is_bounded(settings)
        self._fixed: Fixed = of_settings(settings)
        self._pane = pane
        _, self._z, self._curvature = asked_of_rows(settings)
        self._places = Places(settings.window.size or 0)
        self._cells = NO_INT64
        self._names: list[tuple[str, str] | None] = []
        self._here = 0
        self._held = 0
        self._state_bytes = 0
        self._name_bytes = 0

    # ---- who is here

    def __len__(self) -> int:
        return self._here

    def __contains__(self, number: int) -> bool:
        return number < len(self._names) and self._names[number] is not None

    @property
    def numbers(self) -> list[int]:
        """The numbers of the evaluators, ascending."""
        return [number for number, names in enumerate(self._names) if names is not None]

    def name(self, number: int) -> tuple[str, str]:
        """Return model and slice of an evaluator."""
        names = self._names[number]
        if names is None:
            raise KeyError(number)
        return names

    def begin(self, number: int, model: str, slice_: str) -> None:
        """Make an evaluator without events. Its number must be above the greatest number so far."""
        self._names += [None] * (number + 1 - len(self._names))
        self._names[number] = model, slice_
        self._places.begin(number)
        self._here += 1
        names = len(packed_text(model)) + len(packed_text(slice_)) - 8
        self._name_bytes += 2 * names + 170
        self._state_bytes += evaluator_bytes(0, names, 0, False, False, bool(self._fixed.rule.grid))

    def accepts(self, state: EvaluatorState) -> bool:
        """Return whether the arena can hold an evaluator with this state."""
        plain = not (state.multiclass or state.signal or state.weights is not None)
        return plain and (self._is_bounded or len(state.scores) <= self.most)

    def outgrown(self, runs: Runs) -> Int64Array:
        """Return the numbers of the windows that these events would make too large for an arena."""
        if self._is_bounded:
            return NO_INT64
        held = self._places.shared.counters[runs.numbers, HELD] + runs.counts
        if limit := self._places.limit:
            held = np.minimum(held, limit)
        too_large: Int64Array = runs.numbers[held > self.most]
        return too_large

    # ---- events

    def runs(
        self, numbers: Int64Array, scores: FloatArray, labels: Int8Array, times: Int64Array | None
    ) -> Runs:
        """Group the events of each evaluator. O(events)."""
        self._fixed.check_times(times)
        events = len(numbers)
        if len(self._cells) < len(self._names):
            self._cells = np.zeros(2 * len(self._names), np.int64)
        found, ends = np.empty((2, events), np.int64)
        of_runs, labels_of_runs = np.empty(events), np.empty(events, np.int8)
        times_of_runs = np.empty(0 if times is None else events, np.int64)
        given = NO_INT64 if times is None else times
        with self._places.changing():
            count = group(numbers, self._cells, found, ends)
            found, ends = found[:count].copy(), ends[:count]
            gather(numbers, scores, labels, given, self._cells, found, of_runs, labels_of_runs, times_of_runs)
        counts = np.diff(ends, prepend=0)
        return Runs(found, counts, of_runs, labels_of_runs, None if times is None else times_of_runs)

    def apply(self, runs: Runs) -> Rows:
        """Apply events to windows that do not outgrow the arena; return the rows that fall due."""
        with self._places.changing():
            self._places.make_room(runs.numbers, runs.counts, runs.times is not None)
            return self._follow(runs, NO_TIME)

    def _follow(self, runs: Runs, clock: int, is_last: bool = False) -> Rows:
        """Apply events, advance time to `clock`, or make the last rows; return the rows."""
        rule, counts, shared = self._fixed.rule, runs.counts, self._places.shared
        most = min(int(counts.max(initial=0)) + TICKS, STEPS_AT_ONCE)
        if is_last:
            room = len(counts)
        elif rule.every:
            before = shared.counters[runs.numbers, SEQ]
            room = int(((before + counts) // rule.every - before // rule.every).sum())
        else:
            room = most + len(counts) + len(runs.scores)
        predictions = (runs.scores >= self.settings.threshold).view(np.int8)
        times = NO_INT64 if runs.times is None else runs.times
        progress, ends = np.zeros(PROGRESS_FIELDS, np.int64), np.cumsum(counts)
        longest = int(shared.places[runs.numbers, ROOM].max(initial=0))
        windows = sorted_windows(max(_WINDOWS_AT_ONCE, longest))
        parts, filled = [], self._blank(room)
        while progress[RUN] < len(counts):
            first = int(progress[ROW])
            follow(
                rule, runs.numbers, ends, runs.scores, runs.labels, predictions, times, clock, int(is_last),
                shared, *workspace(), progress, filled, windows,
            )  # fmt: skip
            self._rank(filled, windows, first, int(progress[ROW]))
            progress[USED] = 0
            if progress[ROW] + most > room and not rule.every and not is_last:
                parts.append(self._rows(filled, int(progress[ROW])))
                progress[ROW], filled = 0, self._blank(room)
        parts.append(self._rows(filled, int(progress[ROW])))
        self._held += int(progress[HELD_MORE])
        return Rows.concat(parts) if len(parts) > 1 else parts[0]

    def _rank(self, filled: Filled, windows: Sorted, first: int, end: int) -> None:
        """Write the ranking measures of the rows [`first`, `end`), whose windows are sorted."""
        if first == end:
            return
        rows, ends = slice(first, end), filled.ends[first:end]
        held = np.diff(ends, prepend=0)
        edges = np.empty((2, int(held.max()) + 1), np.int64)
        scan_windows(
            *windows, ends, self._z, *self.settings.points, self._curvature or 0.0, self._scales(held),
            int(self.settings.probabilities), filled.numbers[rows], filled.reasons[rows], *edges,
        )  # fmt: skip

    def _scales(self, held: Int64Array) -> FloatArray:
        """Return the scale of the loss in fixed point for windows of so many events (`scan_window`)."""
        limit = self._places.limit
        if self._curvature is None:
            return np.zeros(len(held))
        if limit:
            return np.full(len(held), fixed_point_scale(limit + 1))
        scales = {room: fixed_point_scale(max(LEAST_CAPACITY, room)) for room in set(held.tolist())}
        return np.array([scales[room] for room in held.tolist()])

    def advance(self, clock: int) -> Rows:
        """Advance time to `clock` for windows that have no row for a grid point before it.

        Return the rows.
        """
        if not self._fixed.rule.grid:
            return self._fixed.no_rows
        overdue = np.flatnonzero(self._places.shared.places[: len(self._names), DUE] < clock)
        return self._advance(overdue, clock)

    def _advance(self, numbers: Int64Array, clock: int, is_last: bool = False) -> Rows:
        nothing = np.zeros(len(numbers), np.int64)
        with self._places.changing():
            return self._follow(Runs(numbers, nothing, NO_FLOATS, NO_INT8, None), clock, is_last)

    def finish(self, clock: int) -> Rows:
        """Advance time to `clock` (if it is not NO_TIME), then make the last rows; return the rows."""
        shared, numbers = self._places.shared, np.array(self.numbers, np.int64)
        started = numbers[shared.counters[numbers, SEQ] > 0]
        rows = self._fixed.no_rows
        if clock != NO_TIME and self._fixed.rule.grid:
            rows = self._advance(started, clock)
        unreported = started[shared.places[started, REPORTED] != shared.counters[started, SEQ]]
        return Rows.concat([rows, self._advance(unreported, NO_TIME, is_last=True)])

    def _blank(self, rows: int) -> Filled:
        blank = Rows.blank(rows, (), "")
        evaluators, ends = np.empty((2, rows), np.int64)
        return Filled(evaluators, ends, blank.integers, blank.numbers, blank.reasons, blank.drift)

    def _rows(self, filled: Filled, count: int) -> Rows:
        """Return the first `count` rows that are filled, completed as `WindowEngine` completes its rows."""
        if not count:
            return self._fixed.no_rows
        evaluators, integers = filled.evaluators[:count], filled.integers[:count]
        numbers, reasons, drift = filled.numbers[:count], filled.reasons[:count], filled.drift[:count]
        starts = np.flatnonzero(np.diff(evaluators, prepend=-1))
        codes = np.repeat(np.arange(len(starts), dtype=np.int32), np.diff(starts, append=count))
        refuse_infinite(numbers, reasons)
        drift[:] = -1
        keys = tuple(map(self.name, evaluators[starts].tolist()))
        rows = Rows(keys, codes, integers, numbers, reasons, drift, self._fixed.no_rows.config)
        self._fixed.complete(rows, self._pane)
        return rows

    # ---- state

    def state(self, number: int) -> EvaluatorState:
        """Return the state on which an evaluator's later rows depend. O(events held)."""
        self._places.refuse_broken()
        shared, (model, slice_) = self._places.shared, self.name(number)
        of, place = shared.counters[number], shared.places[number]
        held, head, seq = int(of[HELD]), int(of[HEAD]), int(of[SEQ])
        part = slice(int(place[START]), int(place[START] + place[ROOM]))
        scores, labels = unrolled(shared.scores[part], head, held), unrolled(shared.labels[part], head, held)
        predictions = unrolled(shared.predictions[part], head, held)
        hits = unrolled(shared.hits[part], head, held)
        times = unrolled(shared.times[part], int(of[TIME_HEAD]), held) if place[TIMED] else NO_INT64
        coursed = bool(self._fixed.rule.grid)
        return EvaluatorState(
            scores, labels, predictions, hits, times=times if len(times) else None, model=model, slice=slice_,
            pane=self._pane, multiclass=False, class_names=(),
            last_seen=shared.counts[number, LAST_SEEN, : 2 if seq else 0].copy(),
            last_label=int(of[LAST_LABEL]), seq=seq, next_row=int(of[NEXT_ROW]),
            reported_seq=int(place[REPORTED]), greatest_time=int(of[GREATEST]),
            course=tuple(of[list(WINDOW_FIELDS)].tolist()) if coursed else None,
        )  # fmt: skip

    def pack(self) -> bytes:
        """Return the wire forms of all states, by number (`evaluator.state`). O(events held)."""
        self._places.refuse_broken()
        shared, numbers = self._places.shared, np.array(self.numbers, np.int64)
        texts = [packed_text(text) for number in numbers.tolist() for text in self.name(number)]
        names = np.frombuffer(b"".join(texts), np.uint8)
        ends = np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)))
        # a copy has the one layout of arrays: a view of one number would be another type of array
        name_ends = ends[1::2].copy()
        course = np.array(WINDOW_FIELDS if self._fixed.rule.grid else (), np.int64)
        pane = np.array(self._pane or (), np.int64)
        out = np.empty(self.snapshot_bytes, np.uint8)
        end = write_windows(
            numbers, names, name_ends, pane, course, shared, shared.scores.view(np.int64), out
        )
        return out[:end].tobytes()

    def load(self, number: int, state: EvaluatorState) -> None:
        """Make an evaluator with a state that the arena accepts. O(events held)."""
        self.begin(number, state.model, state.slice)
        self._held += (held := len(state.scores))
        places, runs = self._places, np.array([number])
        places.make_room(runs, np.array([held]), state.times is not None)
        shared = places.shared
        of, place, counts = shared.counters[number], shared.places[number], shared.counts[number]
        of[[SEQ, HELD, NEXT_ROW]] = state.seq, held, state.next_row
        of[[GREATEST, CLOCK]] = state.greatest_time
        if state.course is not None:
            of[list(WINDOW_FIELDS)] = state.course
        place[REPORTED] = state.reported_seq
        part = slice(int(place[START]), int(place[START]) + held)
        shared.scores[part], shared.labels[part] = state.scores, state.labels
        shared.predictions[part], shared.hits[part] = state.predictions, state.hits
        if state.times is not None:
            shared.times[part] = state.times
        counts[LAST_SEEN, : len(state.last_seen)] = state.last_seen
        of[LAST_LABEL] = state.last_label
        decisions.count_held(of, counts, state.labels, state.predictions, state.hits)
        if self._fixed.rule.grid:
            times = shared.times[int(place[START]) :][: int(place[ROOM])] if place[TIMED] else NO_INT64
            due = int(next_due(self._fixed.rule, of, times))
            place[DUE] = END_OF_TIME if due == NO_TIME else due

    def remove(self, number: int) -> EvaluatorState:
        """Remove an evaluator; return its state."""
        state = self.state(number)
        names = len(packed_text(state.model)) + len(packed_text(state.slice)) - 8
        self._name_bytes -= 2 * names + 170
        self._state_bytes -= evaluator_bytes(0, names, 0, False, False, bool(self._fixed.rule.grid))
        self._held -= len(state.scores)
        self._names[number] = None
        self._here -= 1
        self._places.give_back(number)
        return state

    @property
    def snapshot_bytes(self) -> int:
        """About how many bytes a snapshot of the evaluators has. O(1)."""
        timed = self._places.is_timed
        per_event = evaluator_bytes(1, 0, 0, False, timed) - evaluator_bytes(0, 0, 0, False, timed)
        return self._state_bytes + per_event * self._held

    @property
    def live_bytes(self) -> int:
        """About how many bytes of memory the evaluators take. O(1)."""
        return self._places.nbytes + self._name_bytes


def warm_up(settings: EvaluatorSettings) -> None:
    """Compile the kernels of an arena with these settings, or load them from the cache folder."""
    arena, number = Arena(settings, None), np.zeros(2, np.int64)
    arena.begin(0, "", "")
    times = np.arange(2) if settings.needs_times else None
    arena.apply(arena.runs(number, np.arange(2.0), np.arange(2, dtype=np.int8), times))
    arena.finish(NO_TIME)
    arena.pack()
    arena.load(1, arena.remove(0))
