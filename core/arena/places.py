"""The parts of the shared arrays that windows have: rings that grow, and the free parts between rings.

A ring has 4 slots at first, and twice as many when it is full, up to the number of events that the window
holds at most. A part that a window leaves goes to other windows: parts of one size are a chain, whose links
are in the column of scores.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from ..arrays import NO_INT64, Int64Array
from ..errors import InputError
from ..evaluator.eviction import ALL_COUNTERS, TIME_HEAD, fresh_counters
from ..events.times import END_OF_TIME, NO_TIME
from ..kernels.compile import entry, inlined
from ..kernels.records import whole
from ..measures.decisions import CLASSES, HEAD, HELD
from .follow import Shared
from .sorting import DUE, GONE, PLACE_FIELDS, ROOM, SORTED, START, TIMED

_FRESH = fresh_counters()

_LEAST_ROOM = 4
_LEAST_SLOTS = 1_024
"""The least number of slots by which the shared arrays grow."""

_SIZES = 64
"""Chains of free parts. The chain of parts of 2^n slots has the number n; the last chain is of the parts of
full windows.
"""


@inlined
def _size_of(room: int, limit: int) -> int:
    """Return the number of the chain of parts with so many slots."""
    if room == limit:
        return _SIZES - 1
    size = 0
    while room > 1:
        room >>= 1
        size += 1
    return size


@inlined
def _free(place: Int64Array, limit: int, links: Int64Array, chains: Int64Array) -> None:
    """Free the part of a window, for other windows."""
    if place[ROOM] > 0:
        size = _size_of(place[ROOM], limit)
        links[place[START]] = chains[size]
        chains[size] = place[START]


@entry
def make_room(
    runs: Int64Array, counts: Int64Array, limit: int, timed: bool, shared: Shared, links: Int64Array,
    chains: Int64Array, used: Int64Array, run: int,
) -> int:  # fmt: skip
    """Make room in the rings of runs from `run` on; return the first run for which the arrays are too short.

    runs, counts  evaluators' numbers, and how many events come to each
    limit         number of events of a full window; 0: a window has no greatest number
    timed         whether the events have times
    links         the column of scores, as whole numbers
    chains, used  the first part of each chain, -1 = none; and how many slots were ever given
    """
    while run < len(runs):
        number = runs[run]
        of, place = shared.counters[number], shared.places[number]
        held, head, old, old_room = of[HELD], of[HEAD], place[START], place[ROOM]
        wanted = max(held + counts[run], 1)
        if limit > 0:
            wanted = min(wanted, limit)
        if wanted > old_room:
            room = whole(_LEAST_ROOM)
            while room < wanted:
                room *= 2
            if limit > 0:
                room = min(room, limit)
            size = _size_of(room, limit)
            start = chains[size]
            if start >= 0:
                chains[size] = links[start]
            elif used[0] + room <= len(shared.scores):
                start = used[0]
                used[0] += room
            else:
                return run
            time_head = of[TIME_HEAD]
            for event in range(held):
                slot = old + (head + event if head + event < old_room else head + event - old_room)
                shared.scores[start + event] = shared.scores[slot]
                shared.labels[start + event] = shared.labels[slot]
                shared.predictions[start + event] = shared.predictions[slot]
                shared.hits[start + event] = shared.hits[slot]
                if place[TIMED] > 0:
                    slot = old + (time_head + event) % old_room
                    shared.times[start + event] = shared.times[slot]
            _free(place, limit, links, chains)
            place[START], place[ROOM], place[SORTED], place[GONE] = start, room, 0, 0
            of[HEAD] = of[TIME_HEAD] = 0
        if timed and place[TIMED] == 0:
            shared.times[place[START] : place[START] + place[ROOM]] = NO_TIME
            place[TIMED], of[TIME_HEAD] = 1, of[HEAD]
        run += 1
    return run


@entry
def give_back(number: int, limit: int, shared: Shared, links: Int64Array, chains: Int64Array) -> None:
    """Free the part of a window, which then has no slot."""
    place = shared.places[number]
    _free(place, limit, links, chains)
    place[ROOM] = 0


class Places:
    """The shared arrays, and the part of each window in them. An evaluator is named by its number.

    limit     number of events of a full window; 0: a window has no greatest number
    is_timed  whether the events of a window have times

    After an interrupted change (Ctrl-C) a window may hold events without their decisions. Then `changing` and
    `refuse_broken` raise InputError.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.shared = Shared(
            np.empty((0, ALL_COUNTERS), np.int64), np.empty((0, 4, 2), np.int64),
            np.empty((0, PLACE_FIELDS), np.int64), np.empty(0), np.empty(0, np.int8), np.empty(0, np.int8),
            np.empty(0, np.int8), NO_INT64, np.empty(0, np.uint16),
        )  # fmt: skip
        self.is_timed = False
        self._chains = np.full(_SIZES, -1, np.int64)
        self._used = np.zeros(1, np.int64)
        self._is_whole = True

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Return a context for a change of windows.

        If the change does not come to its end, the windows count as broken.
        """
        self.refuse_broken()
        self._is_whole = False
        yield
        self._is_whole = True

    def refuse_broken(self) -> None:
        """Raise InputError if an earlier change was interrupted."""
        if not self._is_whole:
            raise InputError("windows are not whole, since an update was interrupted; go on from a snapshot")

    @property
    def nbytes(self) -> int:
        """How many bytes the counters take, and the parts that any window ever had."""
        shared = self.shared
        slot = 13 + (8 if self.is_timed else 0)
        return int(self._used[0]) * slot + sum(of.nbytes for of in shared[:3])

    def begin(self, number: int) -> None:
        """Make an empty window with this number."""
        counters, counts, places = self.shared[:3]
        if number >= len(counters):
            room = max(64, number + 1, number + number // 4)
            # This works in place: the system moves the pages of a large array, and copies none.
            for column in (counters, counts, places):
                column.resize((room, *column.shape[1:]), refcheck=False)
        counters[number] = _FRESH
        counters[number, CLASSES] = 2
        counts[number] = 0
        places[number] = 0
        places[number, DUE] = END_OF_TIME

    def make_room(self, runs: Int64Array, counts: Int64Array, timed: bool) -> None:
        """Make room for events: `counts` of them come to the windows `runs`."""
        if timed and not self.is_timed:
            self.is_timed = True
            self.shared = self.shared._replace(times=np.empty(len(self.shared.scores), np.int64))
        run = 0
        while True:
            links = self.shared.scores.view(np.int64)
            run = make_room(
                runs, counts, self.limit, timed, self.shared, links, self._chains, self._used, run
            )
            if run == len(runs):
                return
            del links
            of_next = int(self.shared.counters[runs[run], HELD] + counts[run])
            self._lengthen(max(2 * of_next, int(counts[run:].sum())))

    def _lengthen(self, slots: int) -> None:
        """Make room for at least `slots` new slots, and for a quarter of the slots in use."""
        used = int(self._used[0])
        room = used + max(slots, used // 4, _LEAST_SLOTS)
        for column in self.shared[3:]:
            if column is not self.shared.times or self.is_timed:
                column.resize(room, refcheck=False)

    def give_back(self, number: int) -> None:
        """Free the part of a window, which then has no slot."""
        give_back(number, self.limit, self.shared, self.shared.scores.view(np.int64), self._chains)
        self.shared.places[number, DUE] = END_OF_TIME
