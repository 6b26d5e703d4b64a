"""The steps of a window.

A step says which event enters, how many events leave, and whether a row is due.
"""

from __future__ import annotations

from typing import NamedTuple

from ..arrays import Int8Array, Int64Array

EVENT, ENTERS, ROW_DUE, FED = 1, 2, 4, 8
"""Marks of a step, the bits of its flag.

EVENT    an event is applied; without ENTERS it came too late for the window and counts in `seq` alone
ENTERS   the event enters the window, before the `shifts` newest held events (0: it becomes the newest)
ROW_DUE  a row is due after the step
FED      the event's value was fed to the signal of an adaptive window
"""


class Steps(NamedTuple):
    """Columns of steps. `events[i]` is the index of step i's event in its batch, or -1.

    Empty `shifts` mean that all shifts are 0.
    """

    events: Int64Array
    flags: Int8Array
    leaving: Int64Array
    shifts: Int64Array

    def part(self, start: int, end: int) -> Steps:
        """Return the steps [start, end); `events` stay indices of the whole batch."""
        if start == 0 and end == len(self.flags):
            return self
        shifts = self.shifts[start:end] if len(self.shifts) else self.shifts
        return Steps(self.events[start:end], self.flags[start:end], self.leaving[start:end], shifts)
