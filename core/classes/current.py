"""CurrentPairs: the means of a window after every event, from orders that follow each event (orders.py)."""

from __future__ import annotations

from typing import Final

import numpy as np

from ..arrays import FloatArray
from ..measures.event_buffer import EventBuffer
from ..measures.steps import ENTERS, ROW_DUE, Steps
from .class_settings import ClassSettings
from .events import ClassEvents
from .orders import WIDTH, follow_orders, no_orders
from .values import FIGURES

MOST_ORDERED: Final = 127
"""The most classes for which orders are kept: the number of a class is an int8, and each order counts the
events of each class in each bucket.
"""

SPARSE: Final = 800
"""If so many events lie between two rows, a scan of the window is faster than orders. With 10 classes and
10,000 events a scan takes 1.4 ms, and an event of kept orders 1.7 us.
"""


def keeps_orders(settings: ClassSettings) -> bool:
    """Return whether a window keeps orders.

    It does if its rows are dense, and have neither intervals nor rows of classes.

    A pure function. The result decides speed alone: rows are the same to the last bit.
    """
    evaluator = settings.evaluator
    return (
        not settings.intervals
        and not settings.multi_label
        and not settings.class_rows
        and not evaluator.window.ticks
        and len(settings.classes) <= MOST_ORDERED
        and evaluator.every.events < SPARSE
    )


class CurrentPairs:
    """The orders of the events of a buffer, whose events count 1 each.

    buffer  holds the same events, and follows the same steps
    """

    def __init__(self, classes: int, buffer: EventBuffer[ClassEvents]) -> None:
        self._classes, self._buffer = classes, buffer
        self._scratch = (np.empty(classes), np.empty((classes, classes)), np.empty(classes))
        self._room = -1
        self._make_room(0)

    def follow(self, coming: ClassEvents, steps: Steps) -> FloatArray:
        """Apply steps to the orders and the buffer; return the means as one line for each row that falls due.

        coming  the events that enter, in order
        """
        self._make_room(coming.size)
        lines = np.full((int(np.count_nonzero(steps.flags & ROW_DUE)), FIGURES + self._classes), np.nan)
        if not len(steps.shifts) or not steps.shifts.any():
            held = len(self._buffer)
            self._buffer.add(coming)
            self._apply(self._buffer.events(), held, steps, lines)
            self._buffer.drop(int(steps.leaving.sum()))
            return lines
        row = entered = 0
        for place in range(len(steps.flags)):
            step = steps.part(place, place + 1)
            count = int(step.flags[0] & ENTERS != 0)
            gone, one = int(step.leaving[0]), coming.part(slice(entered, entered + count))
            leaving = self._buffer.events().part(slice(0, gone))
            both = EventBuffer(leaving.part(slice(0)))
            both.add(leaving)
            both.add(one)
            due = int(step.flags[0] & ROW_DUE != 0)
            self._apply(both.events(), gone, step, lines[row : row + due])
            self._buffer.follow(one, step)
            row, entered = row + due, entered + count
        return lines

    def now(self) -> FloatArray:
        """Return the line of the means of the events held."""
        return self._line_after(0, 0)

    def take_out(self, place: int) -> FloatArray:
        """Remove the event at a place from the orders and the buffer.

        Return the line of the means of the other events.
        """
        line = self._line_after(place, 1)
        self._buffer.take_out(place)
        return line

    def _line_after(self, place: int, gone: int) -> FloatArray:
        """Remove `gone` events from a place on from the orders.

        Return the line of the means of the others.
        """
        line: FloatArray = np.full((1, FIGURES + self._classes), np.nan)
        step = Steps(np.array([-1]), np.array([ROW_DUE], np.int8), np.array([gone]), np.zeros(0, np.int64))
        self._apply(self._buffer.events(), len(self._buffer), step, line, place)
        return line.ravel()

    def _apply(
        self, events: ClassEvents, coming: int, steps: Steps, lines: FloatArray, oldest: int = 0
    ) -> None:
        aucs, pair_aucs, shares = self._scratch
        labels = np.asarray(events.labels, np.int64)
        follow_orders(
            self._orders, labels, events.scores, oldest, coming, steps.flags, steps.leaving, aucs, pair_aucs,
            shares, lines,
        )  # fmt: skip

    def _make_room(self, coming: int) -> None:
        """Make the orders again, with more room, if they have no room for the coming events."""
        held = len(self._buffer)
        if held + coming <= self._room:
            return
        self._room = max(WIDTH, 2 * held, held + coming)
        self._orders = no_orders(self._classes, self._room)
        flags = np.full(held, ENTERS, np.int8)
        steps = Steps(np.arange(held), flags, np.zeros(held, np.int64), np.zeros(0, np.int64))
        self._apply(self._buffer.events(), 0, steps, np.empty((0, FIGURES + self._classes)))
