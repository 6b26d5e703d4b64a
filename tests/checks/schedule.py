"""The scheduler of `.ci/run`: steps in the order of their value, within a budget of minutes.

Invariant: when `run` returns, each of the steps that were given has exactly one result. The host tells the
time, in minutes from 0, so a test plays a run with durations of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from math import inf
from typing import Protocol

LEAST_PATIENCE = 15.0
"""Minutes that a step may take in any case: other programs may begin on the host after it was measured."""

PATIENCE = 3.0
"""A step that takes this many times its minutes, on a host of this slowness, hangs."""

SLOWEST = 3.0
"""Hosts differ threefold in speed: until the slowness of a host is known, it may be this much."""

GRACE = 1.2
"""Steps that are never left out end within this many budgets, so that the run itself ends and can report."""

LEAST_LAST = 84.0
"""A small budget ends no step before this minute that is never left out."""


@dataclass(frozen=True)
class Step:
    """A step of `.ci/run`.

    minutes   how long the step takes on two idle cores, among the other steps of its depth
    commands  bash, which runs in the folder of the checkout; the step fails where a command fails
    needs     names of steps that must have passed; a name that the run does not have counts as passed
    beside    the step mostly waits, so it runs while a step of the other lane runs
    kept      the step is never left out
    """

    name: str
    minutes: float
    commands: str
    needs: tuple[str, ...] = ()
    beside: bool = False
    kept: bool = False


class Ending(Enum):
    """How a step ended. The value says so in a report."""

    PASSED = "passed"
    FAILED = "FAILED"
    HUNG = "FAILED: it hung, and was ended"
    LATE = "FAILED: it is never left out, and had not ended when its last minute came"
    UNABLE = "FAILED: it could not run, since a step that it needs failed"
    CUT = "LEFT OUT: it was ended, as the budget was used up"
    LEFT_OUT = "LEFT OUT: it would not fit into the budget"

    @property
    def is_failure(self) -> bool:
        """Whether the run is red."""
        return self in (Ending.FAILED, Ending.HUNG, Ending.LATE, Ending.UNABLE)

    @property
    def is_left_out(self) -> bool:
        """Whether the run says nothing about what the step checks."""
        return self in (Ending.CUT, Ending.LEFT_OUT)


@dataclass(frozen=True)
class Result:
    """How a step ended, and the minutes that it took."""

    step: Step
    ending: Ending
    minutes: float = 0.0


class Host(Protocol):
    """What runs steps."""

    def now(self) -> float:
        """Return the minutes since the run began."""

    def begin(self, step: Step) -> None:
        """Start a step."""

    def wait(self, until: float) -> tuple[Step, bool] | None:
        """Return a step that has ended and whether it passed; None when the minute `until` comes first."""

    def end(self, step: Step) -> None:
        """End a running step and all that it started."""


class Scheduler:
    """Runs steps, one at a time in each of two lanes.

    budget  the minutes of the run; None: no step is left out
    pace    the name of the step that measures this host. The step's minutes here over those in the table are
            the slowness of the host, by which the minutes of later steps are multiplied
    """

    def __init__(self, steps: Sequence[Step], host: Host, budget: float | None, pace: str) -> None:
        self._waiting = list(steps)
        self._host = host
        self._budget = budget
        self._pace = pace
        self._slowness: float | None = None
        self._running: dict[bool, tuple[Step, float, float]] = {}
        """By lane (`Step.beside`): the step, the minute when it began, and the last minute that it has."""
        self._results: dict[str, Result] = {}
        self._names = {step.name for step in steps}

    def run(self) -> list[Result]:
        """Run the steps; return their results in the order in which the steps ended."""
        while True:
            waiting = -1
            while waiting != len(self._waiting):  # a step that is dropped decides about steps of both lanes
                waiting = len(self._waiting)
                for beside in (True, False):  # a step that waits is begun first, and computes while it can
                    if beside not in self._running:
                        self._begin(beside)
            if not self._running:
                return list(self._results.values())
            ended = self._host.wait(min(last for _, _, last in self._running.values()))
            if ended is None:
                self._end_late()
            else:
                step, passed = ended
                self._note(step, Ending.PASSED if passed else Ending.FAILED)

    def _begin(self, beside: bool) -> None:
        """Begin the first step of a lane that can begin now; drop the steps before it that never can."""
        for step in [step for step in self._waiting if step.beside == beside]:
            needed = [self._results.get(name) for name in step.needs if name in self._names]
            now = self._host.now()
            if any(result is not None and result.ending.is_failure for result in needed):
                self._drop(step, Ending.UNABLE)
            elif any(result is not None and result.ending.is_left_out for result in needed):
                self._drop(step, Ending.LEFT_OUT)
            elif None in needed:
                continue
            elif not self._fits(step, now):
                self._drop(step, Ending.LEFT_OUT)
            else:
                self._waiting.remove(step)
                self._running[beside] = (step, now, self._last_minute(step, now))
                self._host.begin(step)
                return

    def _drop(self, step: Step, ending: Ending) -> None:
        self._waiting.remove(step)
        self._results[step.name] = Result(step, ending)

    def _fits(self, step: Step, now: float) -> bool:
        if self._budget is None or step.kept:
            return True
        return now + step.minutes * (self._slowness or 1.0) <= self._budget

    def _last_minute(self, step: Step, now: float) -> float:
        slowness = self._slowness or SLOWEST
        patience = now + max(LEAST_PATIENCE, PATIENCE * step.minutes * slowness)
        return min(patience, self._limit(step))

    def _limit(self, step: Step) -> float:
        """Return the minute after which a step cannot run, however slow the host is."""
        if self._budget is None:
            return inf
        return max(self._budget * GRACE, LEAST_LAST) if step.kept else self._budget

    def _end_late(self) -> None:
        """End the step whose last minute came first; another one may end by itself meanwhile."""
        step, _, last = min(self._running.values(), key=lambda running: running[2])
        self._host.end(step)
        if last < self._limit(step):
            self._note(step, Ending.HUNG)
        else:
            self._note(step, Ending.LATE if step.kept else Ending.CUT)

    def _note(self, step: Step, ending: Ending) -> None:
        _, began, _ = self._running.pop(step.beside)
        minutes = self._host.now() - began
        self._results[step.name] = Result(step, ending, minutes)
        slowness = minutes / step.minutes
        is_whole = ending is Ending.PASSED or slowness > 1  # a step that fails may end early
        if step.name == self._pace and is_whole:
            self._slowness = slowness
