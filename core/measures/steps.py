"""The steps of a window, as a plan of them says it: which event enters, how many leave, when a row is due."""

from __future__ import annotations

from typing import NamedTuple

from ..arrays import Int8Array, Int64Array

EVENT, ENTERS, ROW_DUE, FED = 1, 2, 4, 8
"""Marks of a step, the bits of its flag.

EVENT    an event is applied; without ENTERS it came too late for the window and counts in `seq` alone
ENTERS   it comes into the window, before as many held events as `shifts` says (0: it is the newest)
ROW_DUE  a row is due after the step
FED      an adaptive window's signal was fed with it
"""


class Steps(NamedTuple):
    """Some steps; `events[i]` is the event of step i in its batch, or -1. `shifts` is empty for zeros."""

    events: Int64Array
    flags: Int8Array
    leaving: Int64Array
    shifts: Int64Array

    def part(self, start: int, end: int) -> Steps:
        """Return some of the steps; events are those of the whole batch."""
        if start == 0 and end == len(self.flags):
            return self
        shifts = self.shifts[start:end] if len(self.shifts) else self.shifts
        return Steps(self.events[start:end], self.flags[start:end], self.leaving[start:end], shifts)
