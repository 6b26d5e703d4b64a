"""The window of an evaluator whose events have weights of their own, or fade.

Invariant: ring, masses and ranking hold the same events with the same weights. Weights of fading events are
inflated. An event of weight w and tick i (its number, or its time) weighs w 2^(i / T - shift), where T is the
half-life. So later events weigh more than earlier events, and time does not change the weight of an event in
the window. A row divides masses by the inflated weight that counts 1 now. This factor cancels in every ratio
(docs/architecture/weighted.md, "Fading"). If a weight would reach 1, the window raises `shift`. Powers of two
need no rounding, and no sum of weights overflows.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from ...arrays import NO_FLOATS, NO_INT8, NO_INT64, FloatArray, Int8Array, Int64Array
from ...events.times import NO_TIME
from ...kernels.rings import FIRST_CAPACITY, with_room
from ...measures.curve import curve_of_entries
from ...measures.decisions import HEAD, HELD, LAST_SEEN, MAJORITY_HITS, PERSISTENT_HITS, SEQ
from ...measures.steps import ENTERS, ROW_DUE, Steps
from ...rows.columns import INTEGER_COLUMNS
from ...rows.curves import RocCurve
from ...rows.measure_table import MEASURES
from ...rows.reasons import NO_POSITIVE_CLASS
from ...rows.rows import Rows
from ...settings.evaluator import CurvePoints, EvaluatorSettings
from ...weighted_tree.tree_rows import Batch, RowPlan
from ..event_columns import RANKING, Classes, Columns
from ..eviction import GREATEST
from ..state import Held
from .decisions import GONE, Changes, WeightedRing, apply_weighted, weigh_all
from .measures import masses_of, no_masses, rarer_before, weighted_measures
from .ranking import WeightedRanking

_EVENTS = INTEGER_COLUMNS.index("window_events")
_START, _END = INTEGER_COLUMNS.index("window_start"), INTEGER_COLUMNS.index("window_end")

_HEADROOM = 64
"""How far `shift` is raised beyond the needed value; less if a weight is so large that a weight of 1 would be
lost beside it. With 32 an event takes 0.5 us more, and 128 gains nothing.
"""

_LEAST_POWER = -900
"""Weights below 2^_LEAST_POWER count as 2^_LEAST_POWER when `shift` is chosen: 1 must not be lost."""

_FADED = 2.0**-1022
"""The least weight of an event: a lighter event is dropped or not taken, since its weight would lose digits.
"""

_NO_SHIFT = -(2**61)
_AT_ONCE = 16_384
"""The number of steps that one call of a kernel applies: the ring has room for so many events beside those in
the window.
"""

_DECISIONS = frozenset(MEASURES[MEASURES.index("tp") :])


class WeightedWindow:
    """The ring, the masses and the ranking of a window of events with weights.

    The class has the methods of `UnitWindow`.
    """

    has_weights = True

    def __init__(self, settings: EvaluatorSettings, counters: Int64Array, classes: Classes) -> None:
        window = settings.window
        self._half_life, self._by_time = window.ticks, window.by_time
        self._counters = counters
        self._classes = classes
        self._positive = positive = classes.positive
        self._decides = positive < 0 or not _DECISIONS.isdisjoint(settings.measures or ())
        self._ranking = WeightedRanking(settings)
        self.shift = _NO_SHIFT if self._half_life else 0
        self._now = int(counters[GREATEST])
        self._span = 0
        self.is_timed = False
        codes = np.empty(0, classes.dtype)
        self._ring = WeightedRing(codes, codes, NO_INT8, NO_FLOATS, NO_FLOATS, NO_INT64)
        self._masses = no_masses(2)
        self._heads = np.zeros(2 if self._half_life else 0, np.int64)

    def __len__(self) -> int:
        """Return how many events the window holds."""
        return int(self._counters[HELD])

    # ---- events

    def follow(self, columns: Columns, steps: Steps, rows: Rows, placements: FloatArray) -> None:
        """Apply steps, and fill in the rows that fall due, as in `UnitWindow`."""
        self._make_classes()
        if self._half_life:
            self._take_fading(columns, steps, rows)
        else:
            self._take_in_parts(columns, steps, rows, placements)
        if self._positive < 0:
            rows.reasons[:, RANKING] = NO_POSITIVE_CLASS

    def _take_in_parts(self, columns: Columns, steps: Steps, rows: Rows, placements: FloatArray) -> None:
        count = len(steps.flags)
        moving = np.flatnonzero(steps.shifts).tolist() if len(steps.shifts) else []  # the slots of the ring
        stops = sorted({0, *moving, *range(0, count, _AT_ONCE), count})
        for start, end in pairwise(stops):
            ones, zeros = np.ones(end - start), np.zeros(end - start, np.int64)
            rows = self._follow(
                columns.part(start, end), ones, zeros, steps.part(start, end), rows, placements[start:end]
            )

    def _take_fading(self, columns: Columns, steps: Steps, rows: Rows) -> None:
        if columns.times is not None and not self.is_timed:
            self.is_timed = True
            self._ring = self._ring._replace(times=np.full(len(self._ring.labels), NO_TIME))
        enters = steps.flags & ENTERS != 0
        if self._by_time:
            ticks = np.full(len(enters), self._now)
            if columns.times is not None:
                ticks[enters] = columns.times[enters]
            now = np.maximum(np.maximum.accumulate(ticks), self._now)
        else:
            now = ticks = self._counters[SEQ] + np.cumsum(enters) - 1
        units, periods = self._inflation(now)
        digits, powers = np.frexp(columns.weights)
        inflated, halved = self._inflation(ticks)
        inflated *= digits
        levels = np.where(enters, halved + np.maximum(powers, _LEAST_POWER), _NO_SHIFT)
        halved += powers
        start = 0
        while start < len(ticks):
            if enters[start] and levels[start] >= self.shift:
                ahead_by = min(_HEADROOM, max(8, 1_014 - int(powers[start])))
                self._raise_shift(int(levels[start]) + ahead_by)
            ahead = np.flatnonzero(levels[start : start + _AT_ONCE] >= max(self.shift, _NO_SHIFT + 1))
            end = min(len(ticks), start + (int(ahead[0]) if len(ahead) else _AT_ONCE))
            exponents = np.maximum(halved[start:end] - self.shift, -2_000).astype(np.int32)
            piece = columns.part(start, end)._replace(weights=np.ldexp(inflated[start:end], exponents))
            part = steps.part(start, end)
            if not (stays := (piece.weights >= _FADED) | ~enters[start:end]).all():
                part = part._replace(flags=np.where(stays, part.flags, part.flags & ~ENTERS).astype(np.int8))
            of_units = periods[start:end] - self.shift
            rows = self._follow(piece, units[start:end], of_units, part, rows, NO_FLOATS)
            self._now = int(now[end - 1])
            start = end

    def _inflation(self, ticks: Int64Array) -> tuple[FloatArray, Int64Array]:
        """Return the inflated weight of an event of weight 1 at each tick.

        The weights are factors in [1, 2], and exponents.
        """
        periods, rest = np.divmod(ticks, self._half_life)
        return np.exp2(rest / self._half_life), periods

    def _raise_shift(self, shift: int) -> None:
        """Scale all weights exactly to a new `shift`, and drop the events that have faded."""
        down, self.shift = max(self.shift - shift, -2_200), shift
        if not self._span:
            return
        ring = self._ring
        ring.weights[: self._span] = np.ldexp(ring.weights[: self._span], down)
        held = self._held_slots()
        self._load(held[ring.weights[held] >= _FADED])

    def _follow(
        self,
        columns: Columns,
        units: FloatArray,
        exponents: Int64Array,
        steps: Steps,
        rows: Rows,
        placements: FloatArray,
    ) -> Rows:
        """Apply steps with inflated weights.

        Return the rest of `rows`, behind the rows that fell due and are written.

        An inflated weight of unit * 2^exponent counts 1 in a row after each step. If placements are asked
        for, no event leaves after the first step.
        """
        enters = steps.flags & ENTERS != 0
        due = np.flatnonzero(steps.flags & ROW_DUE) if len(rows) else NO_INT64
        rows, later = rows[: len(due)], rows[len(due) :]
        before_leaving = np.nan
        if len(placements) and steps.leaving[0]:
            before_leaving = self.placement(int(columns.labels[0]), float(columns.scores[0]))
        entering = int(np.count_nonzero(enters))
        self._make_room(entering)
        room = entering + (self._span + entering if self._half_life else int(steps.leaving.sum()))
        of_rows = np.zeros((4, len(rows)), np.int64)
        changes = Changes(np.empty(room, np.int64), np.empty(room, np.int8), *of_rows)
        if columns.times is None:
            columns = columns._replace(times=np.full(len(units), NO_TIME))
        made, self._span = apply_weighted(
            columns, steps, units, exponents, self._classes.first_class, self._counters,
            self._classes.counts, self._masses, self._ring, self._heads, self._span, self._positive,
            self._decides, rows.numbers, rows.reasons, changes,
        )  # fmt: skip
        slots, signs = changes.slots[:made], changes.signs[:made]
        if self._half_life and len(rows):
            rows.integers[:, _EVENTS] = changes.held
            if self.is_timed:
                some = changes.held > 0
                rows.integers[some, _START] = self._ring.times[changes.oldest[some]]
                rows.integers[some, _END] = self._ring.times[changes.newest[some]]
        if self._positive < 0:
            return later
        placed = np.empty(made) if len(placements) else NO_FLOATS
        if len(placements) and self._ranking.tree.needs_rebuild:
            self._rebuild(np.flatnonzero(self._held_before(slots, signs)))
        plan = RowPlan(changes.ends, 1.0 / units[due], -exponents[due], rows.numbers, rows.reasons)
        self._write_rows(slots, signs, plan, placed)
        if len(placements):
            placements[enters] = placed[signs > 0]
            if steps.leaving[0]:
                placements[0] = before_leaving
        return later

    def _write_rows(self, slots: Int64Array, signs: Int8Array, plan: RowPlan, placed: FloatArray) -> None:
        """Give changes to the ranking, and write the rows of a plan."""
        while True:
            progress = self._ranking.take_rows(Batch(*self._events(slots), signs), plan, placed)
            if not progress.needs_rebuild:
                return
            slots, signs = slots[progress.events :], signs[progress.events :]
            placed = placed[progress.events :]
            plan = RowPlan(*(column[progress.rows :] for column in plan))
            plan = plan._replace(ends=plan.ends - progress.events)
            self._rebuild(np.flatnonzero(self._held_before(slots, signs)))

    def _rebuild(self, slots: Int64Array) -> None:
        """Make a new ranking from the events in some slots."""
        self._ranking.tree.rebuild(*self._events(slots))

    def _held_before(self, slots: Int64Array, signs: Int8Array) -> Any:
        """Return the slots that held events before these last changes.

        The changes enter each slot at most once.
        """
        held = np.zeros(len(self._ring.labels), np.bool_)
        held[self._held_slots()] = True
        held[slots[signs < 0]] = True
        held[slots[signs > 0]] = False  # also the slots of events that came and left in these changes
        return held

    def _events(self, slots: Int64Array) -> tuple[Int8Array, FloatArray, FloatArray]:
        """Return label, score and weight of the events in some slots."""
        ring = self._ring
        labels = (ring.labels[slots] == self._positive).view(np.int8)
        return labels, ring.scores[slots], ring.weights[slots]

    def _held_slots(self) -> Int64Array:
        """Return the slots of the events in the window, oldest first."""
        if self._half_life:
            return np.flatnonzero(self._ring.hits[: self._span] & GONE == 0)
        capacity = max(1, len(self._ring.labels))
        return (int(self._counters[HEAD]) + np.arange(len(self))) % capacity

    # ---- measures of the window

    def _unit(self) -> tuple[float, int]:
        """Return the inflated weight that counts 1 in a row made now, as a number and a power of two."""
        if not self._half_life:
            return 1.0, 0
        period, rest = divmod(self._now, self._half_life)
        return float(np.exp2(rest / self._half_life)), period - self.shift

    def write_row(self, numbers: FloatArray, reasons: Int8Array) -> None:
        """Write the measures of the present window into one row, as in `UnitWindow`."""
        unit, exponent = self._unit()
        weighted_measures(
            self._counters, self._classes.counts, self._masses, self._positive, unit, exponent, numbers,
            reasons,
        )  # fmt: skip
        if self._positive < 0:
            reasons[RANKING] = NO_POSITIVE_CLASS
        else:
            while not self._ranking.write_row(numbers, reasons, 1.0 / unit, -exponent):
                self._rebuild(self._held_slots())

    def masses(self) -> tuple[float, float]:
        """Return the masses of negatives and positives in a common scale; infinite if beyond floats."""
        return masses_of(self._masses, self._positive)

    def rarer(self, columns: Columns) -> Int8Array:
        """Return 1 for each event of the rarer class, as in `UnitWindow`."""
        rarer = np.empty(len(columns.labels), np.int8)
        rarer_before(columns.labels, columns.weights, self._masses, self._positive, rarer)
        return rarer

    def curve(self, points: CurvePoints) -> RocCurve:
        """Return the ROC curve of the window, as in `UnitWindow`.

        An event of weight 1 that comes now has a mass of 1. If such masses are beyond floats, both classes
        are in another common scale.
        """
        if self._ranking.tree.needs_rebuild:
            self._rebuild(self._held_slots())
        scores, negatives, positives = self._ranking.to_entries()
        unit, exponent = self._unit()
        there = float(negatives.sum() + positives.sum())
        scale = 1.0
        with np.errstate(over="ignore", under="ignore"):
            total = float(np.ldexp(sum(self.masses()) / unit, -exponent))
            if there and 0.0 < total < np.inf and 0.0 < total / there < np.inf:
                scale = total / there
        return curve_of_entries(scores, negatives * scale, positives * scale, len(self), points)

    def placement(self, label: int, score: float) -> float:
        """Return the placement value of an event, as if the event came now.

        NaN if the other class has no event.
        """
        if self._ranking.tree.needs_rebuild:
            self._rebuild(self._held_slots())
        return float(self._ranking.tree.placement([label], [score])[0])

    def live_bytes(self) -> int:
        """Estimate the window's memory in bytes."""
        arrays = (*self._ring, *self._masses)
        return 2_000 + sum(int(array.nbytes) for array in arrays) + self._ranking.tree.nbytes

    # ---- room

    def hits(self) -> Int8Array:
        """Return the hits of the events in the window, as in `UnitWindow`."""
        return self._ring.hits[self._held_slots()]

    def held(self) -> Held:
        """Return the events that the window holds, as in `UnitWindow`."""
        slots, ring = self._held_slots(), self._ring
        times = ring.times[slots] if self.is_timed else None
        return Held(
            ring.scores[slots], ring.labels[slots], ring.predictions[slots], ring.hits[slots],
            ring.weights[slots], times, self.shift,
        )  # fmt: skip

    def load(self, held: Held) -> None:
        """Replace the events in the window, as in `UnitWindow`."""
        counters = self._counters
        weights = np.ones(len(held.scores)) if held.weights is None else held.weights
        times = NO_INT64 if held.times is None or not self._half_life else held.times
        self.shift = held.shift
        self._now = int(counters[GREATEST] if self._by_time else counters[SEQ] - 1)
        self.is_timed = len(times) > 0
        self._ring = WeightedRing(held.labels, held.predictions, held.hits, held.scores, weights, times)
        self._load(np.arange(len(weights)))

    def _load(self, slots: Int64Array) -> None:
        """Keep only the events of some slots, moved to the start of the ring; compute all masses again."""
        self._make_classes()
        self._move(slots, len(slots) + 1)
        counters, counts = self._counters, self._classes.counts
        counters[[HELD, MAJORITY_HITS, PERSISTENT_HITS]] = 0
        counts[:LAST_SEEN] = 0
        self._masses = no_masses(counts.shape[1])
        weigh_all(self._ring, len(slots), counters, counts, self._masses)
        if self._positive >= 0:
            self._rebuild(np.arange(len(slots)))

    def _make_room(self, entering: int) -> None:
        """Make the ring larger or close its gaps: `entering` events then fit beside those in the window."""
        used = self._span if self._half_life else len(self)
        if used + entering > len(self._ring.labels):
            held = self._held_slots()
            self._move(held, max(FIRST_CAPACITY, 1 << (len(held) + len(held) // 2 + entering).bit_length()))

    def _move(self, slots: Int64Array, room: int) -> None:
        """Make a ring of `room` slots that begins with the events of `slots`."""
        *columns, times = self._ring
        moved = [with_room(column[slots], room) for column in columns]
        self._ring = WeightedRing._make([*moved, with_room(times[slots], room) if self.is_timed else times])
        self._span = len(slots)
        self._counters[HEAD] = 0
        self._heads[:] = 0

    def _make_classes(self) -> None:
        """Make masses for every class of the evaluator's events."""
        classes = self._classes.counts.shape[1]
        self._masses = self._masses.with_classes(classes)
        if self._half_life and classes > len(self._heads):
            self._heads = with_room(self._heads, classes)
