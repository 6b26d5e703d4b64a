"""The time to live of silent models: when the evaluator of a silent model leaves its shard.

An evaluator is idle once its clock is more than `ttl` later than it was at the evaluator's last event. Then
the evaluator gives its last row and leaves. Its counters remain (`ModelEvaluator.remains`), and a later event
begins an empty window with these counters. Results do not depend on when the table looks for idle evaluators:
at the latest, an evaluator's next event shows that the evaluator was idle. The clock depends on the order of
events:

    time      the time up to which all events of the input have been applied
    arrival   the greatest time that came to the shard, of any model: the clock, like the order of events,
              depends on the order of arrival
    position  the greatest time of the evaluator's own events, since other models' events say nothing while
              files of other times are still to come; at the end of the input the greatest time of all events
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..arrays import NO_INT64, Int64Array
from ..errors import InputError
from ..evaluator.state import IdleState, Remains
from ..events.times import NO_TIME, are_near
from ..kernels.compile import entry
from ..kernels.rings import with_room


@entry
def _gaps(
    numbers: Int64Array,
    clocks: Int64Array,
    ttl: int,
    active: Int64Array,
    returns: Int64Array,
    rounds: Int64Array,
    deadlines: Int64Array,
) -> int:
    """Find the events before which their evaluator was idle; return the most such events of one evaluator.

    clocks     the clock at each event
    active     by evaluator number, changed here: the clock at the last event; NO_TIME if there was none, or
               the evaluator left
    returns    by evaluator number: zeros, both on entry and on return
    rounds     for each event: how many of its evaluator's events so far, this event included, found the
               evaluator idle
    deadlines  for an event that found its evaluator idle: the last time at which the evaluator was not idle;
               else NO_TIME
    """
    most = 0
    for event in range(len(numbers)):
        number, clock = numbers[event], clocks[event]
        last = active[number]
        deadlines[event] = NO_TIME
        if last != NO_TIME and clock > last + ttl:
            returns[number] += 1
            deadlines[event] = last + ttl
            most = max(most, returns[number])
        rounds[event] = returns[number]
        active[number] = max(last, clock)
    if most > 0:
        for number in numbers:
            returns[number] = 0
    return most


class IdleModels:
    """Watches the evaluators of a shard, by number.

    ttl     microseconds
    shared  whether the clock is that of the shard, moved by any of its events; else each evaluator has its
            own clock
    clock   the greatest time of any event so far
    left    by evaluator number: the counters of evaluators that left

    >>> idle = IdleModels(10, shared=True)
    >>> [(events, *_)] = idle.rounds(np.array([0, 1, 0]), idle.clocks(np.array([0, 5, 10])))
    >>> len(events), idle.overdue(16)[0].tolist()
    (3, [1])
    """

    def __init__(self, ttl: int, *, shared: bool) -> None:
        self.ttl = ttl
        self.shared = shared
        self.clock = NO_TIME
        self.left: dict[int, Remains] = {}
        self._left_bytes = 0
        self._active = np.full(64, NO_TIME)
        self._returns = np.zeros(64, np.int64)
        self._oldest = NO_TIME  # no watched evaluator was active before this time

    def clocks(self, times: Int64Array | None) -> Int64Array:
        """Return the clock at each event of a batch, and count these events as applied.

        The batch must not be empty. Raises InputError for an event without a time, or with a time out of
        range.
        """
        if times is None or not are_near(times):
            raise InputError(
                "a model leaves when it is silent for some time, and an event has no time, or one that lies "
                "more than 70,000 years from 1970; check the times and their unit, or leave idle_ttl= "
                "(--idle-ttl) out"
            )
        before = self.clock
        self.clock = max(before, int(times.max()))
        return np.maximum.accumulate(np.maximum(times, before)) if self.shared else times

    def rounds(
        self, numbers: Int64Array, clocks: Int64Array
    ) -> list[tuple[Int64Array, Int64Array, Int64Array]]:
        """Cut a batch into rounds, between which evaluators leave; usually there is one round. O(events).

        A round is (events, leaving, deadlines)
            events     rows of the batch that may apply at once, in their order
            leaving    numbers of the evaluators that were idle before their first event of the round
            deadlines  for each of `leaving`: the last time at which the evaluator was not idle
        """
        self._make_room(int(numbers.max(initial=-1)) + 1)
        n = len(numbers)
        which, deadlines = np.empty(n, np.int64), np.empty(n, np.int64)
        most = _gaps(numbers, clocks, self.ttl, self._active, self._returns, which, deadlines)
        order = np.argsort(which, kind="stable")
        parts = np.split(order, np.searchsorted(which[order], np.arange(1, most + 1)))
        found = [events[deadlines[events] != NO_TIME] for events in parts]
        return [(events, numbers[rows], deadlines[rows]) for events, rows in zip(parts, found, strict=True)]

    def overdue(self, clock: int) -> tuple[Int64Array, Int64Array]:
        """Return the numbers of the idle evaluators and the last time at which each was not idle; they leave.

        O(1), unless `clock` is so late that an evaluator may be idle.
        """
        if clock == NO_TIME or (self._oldest != NO_TIME and clock <= self._oldest + self.ttl):
            return NO_INT64, NO_INT64
        watched = self._active != NO_TIME
        idle = watched & (self._active < clock - self.ttl)
        rest = self._active[watched & ~idle]
        self._oldest = int(rest.min()) if len(rest) else clock
        numbers = np.flatnonzero(idle)
        deadlines = self._active[numbers] + self.ttl
        self._active[numbers] = NO_TIME
        return numbers, deadlines

    def wakes_at(self) -> int | None:
        """Return the first moment at which an evaluator can be idle; None = not known, or never."""
        if self._oldest == NO_TIME or not (self._active != NO_TIME).any():
            return None
        return self._oldest + self.ttl + 1

    def note_left(self, number: int, remains: Remains) -> None:
        """Store the counters of an evaluator that left."""
        self.left[number] = remains
        self._left_bytes += len(remains.pack())

    def take_back(self, numbers: Int64Array) -> list[tuple[int, Remains]]:
        """Return (number, counters) for each of `numbers` that left, and delete these counters here.

        O(numbers).
        """
        if not self.left:
            return []
        back = [
            (number, self.left.pop(number)) for number in np.unique(numbers).tolist() if number in self.left
        ]
        self._left_bytes -= sum(len(remains.pack()) for _, remains in back)
        return back

    def _make_room(self, count: int) -> None:
        if count > len(self._active):
            room = max(count, 2 * len(self._active))
            self._active = with_room(self._active, room, NO_TIME)
            self._returns = with_room(self._returns, room)

    # ---- state

    @property
    def nbytes(self) -> int:
        """About how many bytes of memory the object takes."""
        return self._active.nbytes + self._returns.nbytes + 3 * self._left_bytes + 200 * len(self.left)

    def snapshot_bytes(self, held: int) -> int:
        """Return how long `to_bytes` is for `held` evaluators that have not left. O(1)."""
        return IdleState.size(held, self._left_bytes)

    def to_bytes(self, held: Iterable[int]) -> bytes:
        """Return a snapshot in the wire form of an `IdleState`.

        held  numbers of the evaluators that have not left, in the order of the snapshot
        """
        active = self._active[np.fromiter(held, np.int64)]
        return IdleState(self.clock, active, list(self.left.values())).pack()

    def read(self, data: bytes, held: int) -> list[Remains]:
        """Read a snapshot; return the counters of evaluators that left.

        held  how many evaluators have not left: they get the numbers from 0 on

        Raises ValueError if the bytes contradict themselves.
        """
        state = IdleState.unpack(data)
        if len(state.active) != held:
            raise ValueError(f"{len(state.active)} evaluators are watched where there are {held}")
        self.clock = state.clock
        self._make_room(held + len(state.left))
        self._active[:held] = state.active
        return state.left
