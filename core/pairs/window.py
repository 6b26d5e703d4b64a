"""PairWindow: makes rows from the instances of one pair of models in one slice.

Invariants
    A row is a pure function of the instances taken in and the settings. The row does not depend on how the
    instances were cut into calls, nor on snapshots between calls. `seq`, windows and `every` count instances
    that both models scored. Every other instance is counted in `only_model` or `only_against`; on a grid of
    times it moves the clock on, as any instance does.

Which instances a window holds, and when a row is due, is planned by `Course` (evaluator/eviction.py), as for
the rows of one model. A faded instance weighs 2^(-a / T) within its class, where a is its age and T the
half-life: a factor common to a class changes no figure. An instance that is FADED half-lives older than the
newest instance of its class is dropped.

A row costs O(k log k) for the k instances in the window, and as much for the instances of the present block
of `anytime`: 0.4 ms each for 10,000. While the window and the block have the same instances, the instances
are ranked once.

Wire form of a pair, little-endian: `_STATE`, the labels (i1), the scores and the scores against (f8) of the
window's instances, their times (i8) if they have some, and of a fading window their ticks (i8); then the wire
form of `Anytime`.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from ..arrays import NO_INT8, NO_INT64, Int64Array
from ..encoding.fields import Reader
from ..evaluator.eviction import CHANGED, GREATEST, NEXT_ROW, WINDOW_FIELDS, Course, WindowRule
from ..events.times import END_OF_TIME, FARTHEST, NO_TIME, check_times
from ..measures.decisions import HELD, SEQ
from ..measures.event_buffer import EventBuffer
from ..rows.columns import INTEGER_COLUMNS, reason_clauses
from ..rows.pairs import NO_PAIRS, NO_VARIANCE, ONE_CLASS, TOO_FEW, PairRow
from ..settings.windows import DURATION
from .anytime import Anytime
from .pair_settings import PairSettings
from .placements import compare, compare_weighted
from .window_instances import NOTHING, PairInstances

_COLUMN = {name: place for place, name in enumerate(INTEGER_COLUMNS)}
_COUNTERS = [SEQ, NEXT_ROW, GREATEST, *WINDOW_FIELDS]
_STATE = struct.Struct(f"<{len(_COUNTERS)}q4q?")


class PairWindow:
    """The comparison of one pair of models; see the module.

    settings        the settings of the comparison
    model, against  the names of both models, for the rows
    slice           the name of the slice, for the rows
    pane            the Beam window, for the rows
    """

    def __init__(
        self,
        settings: PairSettings,
        model: str = "",
        against: str = "",
        slice: str = "",  # noqa: A002  the column's name
        pane: tuple[int, int] | None = None,
    ) -> None:
        self.settings = settings
        self.names = model, against, slice
        self.only_model = self.only_against = 0
        self._pane = pane
        window = settings.window
        rule = WindowRule(*window.rule, settings.every.events, settings.every.micros)
        self._course = Course(rule, window.size, rule.kind == DURATION)
        self._anytime = Anytime(settings)
        none = NOTHING._replace(ticks=NO_INT64 if window.ticks else None)
        self._buffer = EventBuffer(none, window.ticks)
        self._reported = 0

    def __len__(self) -> int:
        return len(self._buffer)

    @property
    def seq(self) -> int:
        """How many instances both models have scored so far."""
        return int(self._course.counters[SEQ])

    # ---- instances and time

    def apply(self, instances: PairInstances) -> list[PairRow]:
        """Take in instances in order; return the rows that fell due."""
        if self.settings.needs_times is not None:
            check_times(instances.times, self.settings.needs_times, "instance")
        lacks_model, lacks_other = np.isnan(instances.scores), np.isnan(instances.against)
        alone = lacks_model | lacks_other
        if not alone.any():
            return self._follow(instances)
        if self.settings.every.micros:
            rows: list[PairRow] = []
            for first, end in pairwise([0, *(np.flatnonzero(np.diff(alone)) + 1).tolist(), len(alone)]):
                part = instances.part(slice(first, end))
                rows += self._take_alone(part) if alone[first] else self._follow(part)
            return rows
        both = np.flatnonzero(~alone)
        only = np.stack([np.cumsum(lacks_other), np.cumsum(lacks_model)], axis=1)
        rows = self._follow(instances.part(both), only[both])
        self.only_model += int(only[-1, 0])
        self.only_against += int(only[-1, 1])
        return rows

    def _take_alone(self, instances: PairInstances) -> Iterator[PairRow]:
        """Count instances that only one model scored; yield the rows of the grid points before each."""
        lacks = np.isnan(instances.scores).tolist()
        times = [NO_TIME] * len(lacks) if instances.times is None else instances.times.tolist()
        for time, lacks_model in zip(times, lacks, strict=True):
            if time > self.next_due:
                yield from self.advance_to(time)
            self.only_against += lacks_model
            self.only_model += not lacks_model

    def advance_to(self, clock: int) -> list[PairRow]:
        """Advance time to `clock`, microseconds UTC; return the rows of the grid points before it."""
        if not self.settings.every.micros or not self.seq:
            return []
        return self._follow(NOTHING, clock=clock)

    @property
    def next_due(self) -> int:
        """The grid point at which the next row is due if no instance comes; END_OF_TIME if no row is due."""
        if not self.settings.every.micros or not self.seq:
            return END_OF_TIME
        due = self._course.next_due
        return END_OF_TIME if due == NO_TIME else due

    def finish(self) -> list[PairRow]:
        """Return the last row, unless the row before it already covers all instances."""
        if self._reported == self.seq + self.only_model + self.only_against:
            return []
        row = self.row_now(looks=True)
        self._course.counters[NEXT_ROW] += 1
        self._course.counters[CHANGED] = 0
        return [row]

    def row_now(self, *, looks: bool = False) -> PairRow:
        """Return a row of all instances so far.

        looks  whether the row counts as a look: later intervals then lie within its interval
        """
        counters = self._course.counters
        integers = np.full(len(INTEGER_COLUMNS), NO_TIME)
        for name, counter in (("row", NEXT_ROW), ("seq", SEQ), ("time", GREATEST)):
            integers[_COLUMN[name]] = counters[counter]
        only = self.only_model, self.only_against
        if looks:
            return self._row(integers, only)
        anytime, reported = self._anytime, self._reported
        self._anytime = anytime.copy()
        try:
            return self._row(integers, only)
        finally:
            self._anytime, self._reported = anytime, reported

    # ---- following the course of the window

    def _follow(
        self, instances: PairInstances, only: Int64Array | None = None, clock: int = NO_TIME
    ) -> list[PairRow]:
        """Apply instances that both models scored, or advance time; return the rows that fall due.

        only  [n, 2]: for each instance, how many instances of this call before it only the model has scored,
              and how many only the other model; None if there are no such instances
        """
        rows: list[PairRow] = []
        counters, window = self._course.counters, self.settings.window
        for plan in self._course.plan(len(instances.labels), instances.times, NO_INT64, NO_INT8, clock):
            part = instances.part(slice(plan.start, plan.start + plan.events))
            seq, done = int(counters[SEQ]), 0
            if window.ticks:
                ticks = part.times if window.by_time else seq + 1 + np.arange(plan.events)
                part = part._replace(ticks=NO_INT64 if ticks is None else ticks)
            applied = np.cumsum(plan.steps.events >= 0)
            due = self._buffer.follow_to_rows(part, plan.steps, plan.start)
            for number, step in enumerate(due):
                end = int(applied[step])
                self._anytime.add(*part.part(slice(done, end))[:3])
                done, counters[SEQ] = end, seq + end
                before = only[plan.start + end - 1] if only is not None else (0, 0)
                counts = self.only_model + int(before[0]), self.only_against + int(before[1])
                rows.append(self._row(plan.integers[number], counts))
            self._anytime.add(*part.part(slice(done, None))[:3])
            counters[SEQ] = seq + plan.events
            counters[HELD] = len(self)
        return rows

    def _row(self, integers: Int64Array, only: tuple[int, int]) -> PairRow:
        """Return the row of the window now, and look at the interval of all instances."""
        seq = int(integers[_COLUMN["seq"]])
        held, half_life = self._buffer.events(), self.settings.window.ticks
        labels, times = held.labels, held.times
        columns = labels, held.scores, held.against
        found = compare_weighted(*columns, held.fading_weights(half_life)) if half_life else compare(*columns)
        has_all = not half_life and len(labels) == seq == self._anytime.has_all
        self._anytime.look(found if has_all else None)
        self._reported = seq + sum(only)
        why: dict[str, str] = {}
        low = high = p = None
        if found is None:
            why.update(dict.fromkeys(_OF_CLASSES, NO_PAIRS if not len(labels) else ONE_CLASS))
        elif found.variance is None:
            why.update(dict.fromkeys(_OF_VARIANCE, TOO_FEW))
        elif found.variance > 0:
            error = math.sqrt(found.variance)
            low = max(-1.0, found.difference - self.settings.z * error)
            high = min(1.0, found.difference + self.settings.z * error)
            p = math.erfc(abs(found.difference) / error / math.sqrt(2))
        else:  # both models rank alike, or no model makes a mistake that the other does not make
            p = 1.0 if found.difference == 0 else None
            why.update(dict.fromkeys(_OF_VARIANCE[:2] if p else _OF_VARIANCE, NO_VARIANCE))
        interval = self._anytime.interval
        times = None if times is None else times[times != NO_TIME]
        positives = int(np.count_nonzero(labels))
        masses = float(positives), float(len(labels) - positives)
        if found is not None:
            masses = found.positives, found.negatives
        model, against, slice_ = self.names
        return PairRow(
            model=model,
            against=against,
            slice=slice_,
            row=int(integers[_COLUMN["row"]]),
            seq=seq,
            time=_known(integers[_COLUMN["time"]]),
            due=_known(integers[_COLUMN["due"]]),
            pane_start=None if self._pane is None else self._pane[0],
            pane_end=None if self._pane is None else self._pane[1],
            window_events=len(labels),
            window_start=int(times.min()) if times is not None and len(times) else None,
            window_end=int(times.max()) if times is not None and len(times) else None,
            positives=masses[0],
            negatives=masses[1],
            auc=None if found is None else found.auc,
            auc_against=None if found is None else found.auc_against,
            difference=None if found is None else found.difference,
            difference_low=low,
            difference_high=high,
            p=p,
            anytime_low=None if interval is None else interval[0],
            anytime_high=None if interval is None else interval[1],
            verdict=self._anytime.verdict,
            anytime_events=self._anytime.events,
            anytime_blocks=self._anytime.blocks,
            only_model=only[0],
            only_against=only[1],
            reason=reason_clauses({**why, **self._anytime.reasons()}),
            config=self.settings.config,
        )

    # ---- state

    def pack(self) -> list[bytes]:
        """Return the wire form."""
        held = self._buffer.events()
        counters = self._course.counters[_COUNTERS].tolist()
        state = _STATE.pack(
            *counters, self.only_model, self.only_against, self._reported, len(self),
            held.times is not None,
        )  # fmt: skip
        columns = [held.labels.astype("i1"), held.scores.astype("<f8"), held.against.astype("<f8")]
        columns += [each.astype("<i8") for each in (held.times, held.ticks) if each is not None]
        return [state, *(each.tobytes() for each in columns), *self._anytime.pack()]

    def read(self, reader: Reader) -> None:
        """Load the wire form into a window without instances.

        Raises ValueError or struct.error for bytes that `pack` cannot have written.
        """
        *counters, self.only_model, self.only_against, self._reported, held, timed = reader.numbers(
            _STATE.format
        )
        labels = reader.array("<i1", held)
        scores, against = reader.array("<f8", held), reader.array("<f8", held)
        times = reader.array("<i8", held) if timed else None
        ticks = reader.array("<i8", held) if self.settings.window.ticks else None
        self._buffer.add(PairInstances(labels, scores, against, times, ticks))
        self._course.counters[_COUNTERS] = counters
        self._course.counters[HELD] = held
        if not (np.isin(labels, (0, 1)).all() and np.isfinite(scores).all() and np.isfinite(against).all()):
            raise ValueError("an instance without a label or a score of both models")
        counts = (*counters[:2], self.only_model, self.only_against, self._reported, held)
        if not 0 <= min(counts) <= max(counts) < FARTHEST or held > min(
            self.seq, self.settings.window.size or held
        ):
            raise ValueError(f"{held} of {self.seq} instances are held")
        if times is not None:
            self._course.load(times)
        self._anytime = Anytime.read(reader, self.settings)

    @property
    def wire_bytes(self) -> int:
        """Length of the wire form in bytes. O(1)."""
        held = self._buffer.events()
        each = 17 + 8 * (held.times is not None) + 8 * (held.ticks is not None)
        return _STATE.size + each * len(self) + self._anytime.wire_bytes


_OF_CLASSES = ("auc", "auc_against", "difference", "difference_low", "difference_high", "p")
_OF_VARIANCE = _OF_CLASSES[3:]


def _known(time: int) -> int | None:
    return None if time == NO_TIME else int(time)
