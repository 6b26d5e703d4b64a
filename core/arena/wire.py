"""The wire form of windows in an arena, written by one kernel for all windows.

It is the wire form of `evaluator.state`.

Python took 14 us for the state of a window of 20 events, and the kernel takes 1.5 us.
"""

from __future__ import annotations

from ..arrays import ByteArray, Int64Array
from ..evaluator.eviction import GREATEST, NEXT_ROW, TIME_HEAD
from ..evaluator.state import COURSED, PANED, TIMED_EVENTS
from ..kernels.compile import entry, inlined
from ..measures.decisions import HEAD, HELD, LAST_LABEL, LAST_SEEN, SEQ
from .follow import Shared
from .sorting import REPORTED, ROOM, START, TIMED


@inlined
def _write(value: int, size: int, out: ByteArray, at: int) -> int:
    """Write the `size` low bytes of a whole number, little-endian; return the place behind them."""
    for byte in range(size):
        out[at + byte] = (value >> (8 * byte)) & 0xFF
    return at + size


@entry
def write_windows(
    numbers: Int64Array, names: ByteArray, name_ends: Int64Array, pane: Int64Array, course: Int64Array,
    shared: Shared, score_bits: Int64Array, out: ByteArray,
) -> int:  # fmt: skip
    """Write the wire forms of windows, one after another; return the place behind the last one.

    numbers     of the evaluators
    names       model and slice of each as packed texts, one after another; `name_ends`: where they end
    pane        start and end of the pane; empty: there is none
    course      counters of the course; empty if the counters are not part of a state
    score_bits  the column of scores, as whole numbers
    out         long enough
    """
    at = 0
    start_of_names = 0
    for index in range(len(numbers)):
        number = numbers[index]
        of, place = shared.counters[number], shared.places[number]
        held, start, room = of[HELD], place[START], place[ROOM]
        for byte in range(start_of_names, name_ends[index]):
            out[at] = names[byte]
            at += 1
        start_of_names = name_ends[index]
        is_timed = place[TIMED] > 0 and held > 0
        kind = (TIMED_EVENTS if is_timed else 0) | (PANED if len(pane) > 0 else 0)
        out[at] = kind | (COURSED if len(course) > 0 else 0)
        at = _write(held, 8, out, at + 1)
        at = _write(of[SEQ], 8, out, at)
        at = _write(of[NEXT_ROW], 8, out, at)
        at = _write(place[REPORTED], 8, out, at)
        at = _write(of[GREATEST], 8, out, at)
        for bound in range(2):
            at = _write(pane[bound] if len(pane) > 0 else 0, 8, out, at)
        at = _write(of[LAST_LABEL], 4, out, at)
        at = _write(0, 4, out, at)  # no class has a name
        if of[SEQ] > 0:
            for code in range(2):
                at = _write(shared.counts[number, LAST_SEEN, code], 8, out, at)
        slot = of[HEAD]
        for _ in range(held):
            at = _write(score_bits[start + slot], 8, out, at)
            slot = slot + 1 if slot + 1 < room else 0
        slot = of[HEAD]
        for _ in range(held):
            hits, prediction = shared.hits[start + slot], shared.predictions[start + slot]
            out[at] = (int(hits) << 2 | int(prediction) << 1 | int(shared.labels[start + slot])) & 0xFF
            at += 1
            slot = slot + 1 if slot + 1 < room else 0
        if is_timed:
            slot = of[TIME_HEAD]
            for _ in range(held):
                at = _write(shared.times[start + slot], 8, out, at)
                slot = slot + 1 if slot + 1 < room else 0
        for field in course:
            at = _write(of[field], 8, out, at)
    return at
