"""Instances of a pair of models in columns, and the instances that a window holds at each step of a plan."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from ..arrays import NO_FLOATS, NO_INT8, NO_INT64, FloatArray, Int8Array, Int64Array
from ..evaluator.eviction import Plan
from ..events.times import NO_TIME
from ..measures.steps import ENTERS
from ..settings.windows import Window

FADED: Final = 64
"""Half-lives after which an instance is dropped: its weight is then 2^-64 of the weight of the newest
instance of its class.
"""


class PairInstances(NamedTuple):
    """Instances in order: labels 1 and 0, a score of each model or NaN, and times in microseconds or None."""

    labels: Int8Array
    scores: FloatArray
    against: FloatArray
    times: Int64Array | None = None

    def part(self, which: slice | Int64Array) -> PairInstances:
        """Return some of the instances."""
        return PairInstances._make(None if column is None else column[which] for column in self)

    def after(self, before: PairInstances) -> PairInstances:
        """Return the instances of `before`, followed by these instances.

        If only one of both has times, NO_TIME stands for the missing times.
        """
        times = None
        if before.times is not None or self.times is not None:
            both = [
                np.full(len(each.labels), NO_TIME) if each.times is None else each.times
                for each in (before, self)
            ]
            times = np.concatenate(both)
        return PairInstances(
            np.concatenate((before.labels, self.labels)),
            np.concatenate((before.scores, self.scores)),
            np.concatenate((before.against, self.against)),
            times,
        )


NOTHING = PairInstances(NO_INT8, NO_FLOATS, NO_FLOATS)


class Held(NamedTuple):
    """The instances that a window holds.

    `ticks`: in a fading window, the event number or microsecond of each instance.
    """

    instances: PairInstances = NOTHING
    ticks: Int64Array = NO_INT64

    def __len__(self) -> int:
        return len(self.instances.labels)

    def part(self, which: slice | Int64Array) -> Held:
        """Return some of the instances."""
        return Held(self.instances.part(which), self.ticks[which] if len(self.ticks) else self.ticks)

    def ages(self) -> Int64Array:
        """Return by how many ticks each instance is older than the newest instance of its class."""
        ages = np.zeros_like(self.ticks)
        for of_class in (self.instances.labels == 1, self.instances.labels != 1):
            ticks = self.ticks[of_class]
            ages[of_class] = ticks.max(initial=NO_TIME) - ticks
        return ages

    def weights(self, half_life: int) -> FloatArray:
        """Return the weight of each instance, relative to the newest instance of its class."""
        return np.asarray(np.exp2(-self.ages() / half_life))


class Moving:
    """The instances that a window holds at each step of a plan.

    window  the settings of the window
    held    the instances that the window held before the plan
    plan    the steps
    part    the instances of the plan
    seq     how many instances were applied before the plan
    """

    def __init__(self, window: Window, held: Held, plan: Plan, part: PairInstances, seq: int) -> None:
        self._half_life = window.ticks
        steps = plan.steps
        enters = (steps.flags & ENTERS) != 0
        coming = steps.events[enters] - plan.start
        ticks = NO_INT64
        if self._half_life:
            times = part.times if window.by_time else np.arange(seq + 1, seq + 1 + len(part.labels))
            ticks = np.concatenate((held.ticks, NO_INT64 if times is None else times[coming]))
        self._pool = Held(part.part(coming).after(held.instances), ticks)
        self._first, self._end = np.cumsum(steps.leaving), len(held) + np.cumsum(enters)
        self._late = _late_orders(plan, len(held)) if len(steps.shifts) else None

    def at(self, step: int) -> Held:
        """Return the instances that the window holds after a step, the oldest first.

        Step -1 is the last step.
        """
        if self._late is not None:
            return self._pool.part(self._late[step])
        held = self._pool.part(slice(int(self._first[step]), int(self._end[step])))
        return self._without_faded(held) if self._half_life else held

    def _without_faded(self, held: Held) -> Held:
        kept = held.ages() <= FADED * self._half_life
        return held if kept.all() else held.part(np.flatnonzero(kept))


def _late_orders(plan: Plan, held: int) -> list[Int64Array]:
    """Return the instances of the pool that a window by time holds after each step, in order of time.

    O(held) for each step: it is used only for a plan with instances that came out of order.
    """
    order, coming = list(range(held)), held
    orders = []
    steps = plan.steps
    for flag, gone, shift in zip(
        steps.flags.tolist(), steps.leaving.tolist(), steps.shifts.tolist(), strict=True
    ):
        del order[:gone]
        if flag & ENTERS:
            order.insert(len(order) - shift, coming)
            coming += 1
        orders.append(np.array(order, np.int64))
    return orders
