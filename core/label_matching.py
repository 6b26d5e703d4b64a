"""Predictions and labels matched by id, in event time alone.

What is a match
    A label l is a candidate of a prediction p of the same id if -lead <= time(l) - time(p) <= ttl. A
    prediction gets one label at most: of its candidates the first or the last in the order of (time, tie).
    A label serves every prediction that it is the one for: several models may predict one id.

    tie     an int64 that the caller makes of a label's content, so that of two labels of one id and time the
            same one counts wherever they came from. Labels equal in id, time and tie are taken to be the same.
    second  "first" or "last"; "dead-letter" matches as "first" does, and is for the caller to tell apart.

What becomes of a label: exactly one of
    REPEAT  it is the same as another (id, time, tie) and came after it; of several such, one is no repeat
    ORPHAN  it is no candidate of any prediction
    USED    a prediction has it
    SECOND  it is a candidate, and every prediction of which it is one has another label
What becomes of a prediction: it leaves in a pair, or unmatched, if it has no candidate.
None of this depends on where labels and predictions came from, on how they were cut into calls, or on a clock
other than theirs.

When it is known
    A pair, with "first": in the call whose clock is the first beyond both its times; as nothing before the
    clock of an earlier call can come, its label is then the first. With "last": once the clock is beyond
    time(p) + ttl.
    Unmatched: once the clock is beyond time(p) + ttl. A label's fate: once it is beyond time(l) + lead; with
    "last", beyond time(l) + lead + ttl at the latest, for the newest label of an id alone. At END, all.

    So pairs that a call with a later clock gives have time(l) >= clock - output_delay: with "first", one of
    time(p), time(l) is not before the clock, and time(l) >= time(p) - lead, so that the delay is lead; with
    "last", time(p) + ttl is not before the clock, and so it is ttl + lead.

State: 24 bytes for a prediction that waits, 40 for a label, and for each of their ids its bytes and 44 to 48.
An id is known for ttl after its latest prediction, matched or not: it says which labels are orphans. On the
wire 20, 21 and 12.
"""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple, get_args

import numpy as np

from .errors import ConfigError, CorruptBytesError, InputError
from .events import IdColumn, Int64Array
from .id_index import MOST_IDS, IdIndex, grown, hash64_of_ids
from .label_matching_steps import (
    COURSE,
    LABEL,
    MARK,
    NEVER,
    NOWHERE,
    ORPHAN,
    PREDICTION,
    REPEAT,
    SECOND,
    USED,
    Coming,
    Leaving,
    Matching,
    link,
    run,
)
from .label_matching_wire import Held, pack, unpack
from .score_tree_layout import for_kernels, zero_record

__all__ = ["END", "ORPHAN", "REPEAT", "SECOND", "USED", "Arrivals", "Departures", "LabelMatcher"]

Second = Literal["first", "last", "dead-letter"]

END: Final = 2**63 - 1
"""The clock when nothing will come any more."""

EARLIEST, LATEST = -(2**62), 2**62
"""No event is earlier or later. Until a clock is given it stands at the first."""
LONGEST_TTL = 2**60
"""Microseconds, 36,000 years; times less ttl and lead stay within 64 bits."""

_LEAST_ROOM = 256  # rows of what leaves, at once
_LEAST_GONE = 4096  # entries that have left before what is held is put together anew


class _Kept(NamedTuple):
    """What is held: ids, records PREDICTION and LABEL, and the time of each id's latest prediction."""

    ids: IdIndex
    predictions: Any
    labels: Any
    latest: Int64Array


class Arrivals(NamedTuple):
    """Predictions or labels, in the order of their times.

    ids      no missing one
    times    int64[n] microseconds
    handles  int64[n]: what the caller knows them by
    ties     int64[n] of labels; None: those of one id and time are the same
    """

    ids: IdColumn
    times: Int64Array
    handles: Int64Array
    ties: Int64Array | None = None


class Departures(NamedTuple):
    """What a call decided. Every handle that came in leaves once; one label may be in many pairs.

    pair_predictions  int64: handles, each pair's prediction, which has left with it,
    pair_labels       and its label, which leaves as USED in this call or in a later one
    unmatched         int64: predictions that have left without a label,
    unmatched_ages    and how long they had waited, in microseconds
    gone              int64: labels that have left,
    fates             int8: USED, ORPHAN, SECOND or REPEAT,
    ages              and for how long a prediction could have come, in microseconds; 0 of a repeat
    """

    pair_predictions: Int64Array
    pair_labels: Int64Array
    unmatched: Int64Array
    unmatched_ages: Int64Array
    gone: Int64Array
    fates: Any
    ages: Int64Array


NOTHING = Arrivals(IdColumn.of([]), np.empty(0, np.int64), np.empty(0, np.int64))


class LabelMatcher:
    """Matches predictions with labels as event time goes on. See the module for what it says, and when.

    ttl     microseconds that a label may come after its prediction
    lead    microseconds that it may come before; at most ttl, and ttl by default
    second  which of several candidates counts

    >>> matcher = LabelMatcher(ttl=10)
    >>> predictions = Arrivals(IdColumn.of(["a", "b"]), np.array([0, 5]), np.array([70, 71]))
    >>> labels = Arrivals(IdColumn.of(["a"]), np.array([9]), np.array([80]))
    >>> matcher.advance(predictions, clock=6).pair_labels
    array([], dtype=int64)
    >>> left = matcher.advance(labels=labels, clock=16)
    >>> left.pair_predictions, left.pair_labels, left.unmatched, left.unmatched_ages
    (array([70]), array([80]), array([71]), array([10]))
    >>> matcher.advance(clock=END, end=16).fates.tolist() == [USED]
    True
    """

    def __init__(self, ttl: int, lead: int | None = None, second: Second = "first") -> None:
        lead = ttl if lead is None else lead
        if not 0 <= ttl <= LONGEST_TTL:
            raise ConfigError(f"ttl is {ttl} microseconds; it can be 0 to {LONGEST_TTL}")
        if not 0 <= lead <= ttl:
            raise ConfigError(f"lead is {lead} microseconds; it can be 0 to ttl, which is {ttl}")
        if second not in get_args(Second):
            raise ConfigError(f"second is {second!r}; it can be 'first', 'last' or 'dead-letter'")
        self.ttl: Final[int] = ttl
        self.lead: Final[int] = lead
        self.second: Final[Second] = second
        self.clock: int = EARLIEST
        self._state: Matching
        self._ids: IdIndex
        self._known: int  # ids that have a mark
        self._put_together(
            _Kept(IdIndex(), np.empty(0, PREDICTION), np.empty(0, LABEL), np.empty(0, np.int64))
        )

    def __len__(self) -> int:
        return self.waiting + self.held

    @property
    def waiting(self) -> int:
        """How many predictions wait for a label."""
        return int(self._state.course["waiting"][0])

    @property
    def held(self) -> int:
        """How many labels are held for predictions that may come, or that wait."""
        return int(self._state.course["held"][0])

    @property
    def output_delay(self) -> int:
        """Pairs of calls with a later clock have labels of time >= clock - output_delay."""
        return self.lead + (self.ttl if self.second == "last" else 0)

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return sum(array.nbytes for array in self._state) + self._ids.nbytes

    def advance(
        self,
        predictions: Arrivals = NOTHING,
        labels: Arrivals = NOTHING,
        clock: int = END,
        end: int | None = None,
    ) -> Departures:
        """Take all events from the last call's clock up to this one's, and return what is decided by then.

        All times lie in [last clock, clock), and ascend; `end`, needed with the clock END, is the greatest
        time of all predictions and labels. O(events), amortised, however many wait. Memory beyond what waits
        is that of one call's events.

        Raises InputError for times that descend or lie outside.
        """
        clock = max(clock, EARLIEST)
        for name, events in (("prediction", predictions), ("label", labels)):
            self._check(name, events, clock)
        if clock == END and end is None:
            raise InputError("the end of the input needs its greatest time, for the ages of what is left")
        coming = self._coming(predictions, labels)
        pieces = []
        self._state.course["prediction_row"] = self._state.course["label_row"] = 0
        done = False
        while not done:
            leaving = Leaving(
                *np.empty((7, max(_LEAST_ROOM, len(predictions.times) + len(labels.times))), np.int64)
            )
            done = run(self._state, coming, leaving, clock)
            pieces.append(self._emptied(leaving))
        left = pieces[0] if len(pieces) == 1 else Leaving(*map(np.concatenate, zip(*pieces, strict=True)))
        self.clock = clock
        self._reclaim()
        return self._departures(left, END if clock < END or end is None else end)

    def _check(self, name: str, events: Arrivals, clock: int) -> None:
        times = events.times
        if not len(times):
            return
        if times[0] < self.clock or times[-1] >= clock or times[-1] > LATEST:
            raise InputError(
                f"{name}s of times {times[0]} to {times[-1]} come between the clocks {self.clock} and {clock}; "
                "give each call the events from the last call's clock up to its own"
            )
        if (times[1:] < times[:-1]).any():
            raise InputError(f"the times of {name}s descend; sort them by time")

    def _coming(self, predictions: Arrivals, labels: Arrivals) -> Coming:
        """Find the numbers of ids, sort labels of equal time by their ties, and make room for all."""
        prediction_numbers, label_numbers = self._ids.numbers(predictions.ids), self._ids.numbers(labels.ids)
        times, handles, ties = (
            _int64(labels.times),
            _int64(labels.handles),
            np.zeros(len(labels.times), np.int64),
        )
        if labels.ties is not None:
            ties = _int64(labels.ties)
            if ((ties[1:] < ties[:-1]) & (times[1:] == times[:-1])).any():
                order = np.lexsort((ties, times))
                handles, ties, label_numbers = handles[order], ties[order], label_numbers[order]
        state, course = self._state, self._state.course[0]
        marks = state.marks
        if len(self._ids) > len(marks):
            marks = grown(marks, self._known, len(self._ids))
        _unmark(marks[self._known : len(self._ids)])
        self._known = len(self._ids)
        self._state = Matching(
            _with_room(state.predictions, int(course["end_of_predictions"]), len(predictions.times)),
            _with_room(state.labels, int(course["end_of_labels"]), len(times)),
            marks,
            state.course,
        )
        return Coming(
            _int64(predictions.times), _int64(predictions.handles), prediction_numbers,
            times, handles, ties, label_numbers,
        )  # fmt: skip

    def _emptied(self, leaving: Leaving) -> Leaving:
        """Copy the rows that were written, and forget how many they were."""
        course = self._state.course
        pairs, unmatched, gone = (int(course[name][0]) for name in ("pairs", "unmatched", "gone"))
        counts = (pairs, pairs, unmatched, unmatched, gone, gone, gone)
        course["pairs"] = course["unmatched"] = course["gone"] = 0
        return Leaving(*(column[:count].copy() for column, count in zip(leaving, counts, strict=True)))

    def _departures(self, left: Leaving, end: int) -> Departures:
        """Replace times by ages: what the clock has passed is older than ttl, or lead, at any end."""
        fates = left.fates.astype(np.int8)
        ages = np.where(fates == REPEAT, 0, _ages(left.gone_times, self.lead, end))
        unmatched_ages = _ages(left.unmatched_times, self.ttl, end)
        return Departures(
            left.pair_predictions, left.pair_labels, left.unmatched, unmatched_ages, left.gone, fates, ages
        )

    def _reclaim(self) -> None:
        """Put what is held together anew once enough has left. Costs a few copies for each that left."""
        course = self._state.course[0]
        gone = int(course["end_of_predictions"]) + int(course["end_of_labels"]) - len(self)
        if self.clock == END or gone > max(_LEAST_GONE, (len(self) + len(self._ids)) // 4):
            self._put_together(self._kept(ordered=False))

    def _kept(self, *, ordered: bool) -> _Kept:
        """Return the state without what has left.

        Ids stand in the order in which predictions and then labels mention them, and behind them, in any
        order unless it is asked for, those known for their latest prediction alone.
        """
        state, course = self._state, self._state.course[0]
        predictions = state.predictions[course["oldest_prediction"] : course["end_of_predictions"]]
        labels = state.labels[course["oldest_label"] : course["end_of_labels"]]
        predictions = predictions[predictions["number"] != NOWHERE]
        labels = labels[labels["number"] != NOWHERE]
        mentioned = np.concatenate((predictions["number"], labels["number"]))
        places = np.arange(len(mentioned))
        first = np.full(len(self._ids), len(mentioned))
        first[mentioned[::-1]] = places[::-1]
        latest = state.marks["latest"][: len(self._ids)]
        others = np.flatnonzero((latest >= self.clock - self.ttl) & (first == len(mentioned)))
        if ordered:
            others = others[np.lexsort((hash64_of_ids(self._ids.ids(others)), latest[others]))]
        numbers = np.concatenate((mentioned[first[mentioned] == places], others))
        renumbered = np.full(len(self._ids), NOWHERE, np.int32)
        renumbered[numbers] = np.arange(len(numbers))
        predictions["number"], labels["number"] = (
            renumbered[predictions["number"]],
            renumbered[labels["number"]],
        )
        return _Kept(self._ids.kept(numbers), predictions, labels, latest[numbers])

    def _put_together(self, held: _Kept) -> None:
        """Make the state of what is held."""
        marks = for_kernels(np.empty(len(held.ids), MARK))
        _unmark(marks)
        marks["latest"] = held.latest
        course = zero_record(COURSE)
        course["ttl"], course["lead"], course["takes_last"] = self.ttl, self.lead, self.second == "last"
        course["end_of_predictions"] = course["waiting"] = len(held.predictions)
        course["end_of_labels"] = course["held"] = len(held.labels)
        course["first_open"] = np.searchsorted(held.labels["time"], self.clock - self.lead)
        course["serving"] = NOWHERE
        self._ids, self._known = held.ids, len(held.ids)
        self._state = Matching(for_kernels(held.predictions), for_kernels(held.labels), marks, course)
        link(self._state)

    def renumber(self) -> tuple[Int64Array, Int64Array]:
        """Give what is held the handles 0, 1, 2, ... of each side, in time order; return those it had.

        So the caller can put together anew, or store, what it keeps beside: row i of the predictions is then
        what it had under the i-th handle returned, and so for labels.
        """
        self._put_together(self._kept(ordered=False))
        predictions, labels = self._state.predictions, self._state.labels
        before = predictions["handle"].copy(), labels["handle"].copy()
        predictions["handle"], labels["handle"] = np.arange(len(predictions)), np.arange(len(labels))
        return before

    def to_bytes(self) -> bytes:
        """Return the state: a function of the settings, of all that came, and of the clock. O(it)."""
        held = self._kept(ordered=True)
        return pack(
            Held(
                self.ttl, self.lead, get_args(Second).index(self.second), self.clock,
                held.predictions, held.labels, held.latest, held.ids.ids(),
            )
        )  # fmt: skip

    @classmethod
    def from_bytes(cls, data: bytes) -> LabelMatcher:
        """Read the state. Raises CorruptBytesError where the bytes cannot be one."""
        held = unpack(data)
        try:
            matcher = cls(held.ttl, held.lead, get_args(Second)[held.second])
        except (ConfigError, IndexError) as damage:
            raise CorruptBytesError(f"the state of a join was never made: {damage}") from damage
        matcher.clock = held.clock
        matcher._put_together(_Kept(IdIndex.of(held.ids), held.predictions, held.labels, held.latest))
        return matcher


def _int64(column: Any) -> Int64Array:
    return np.ascontiguousarray(column, np.int64)


def _ages(times: Int64Array, most: int, end: int) -> Int64Array:
    """How long from times to the end, at most so long."""
    return end - np.maximum(times, end - most)


def _unmark(marks: Any) -> None:
    """Write marks of ids that nobody has heard of."""
    marks["latest"] = NEVER
    for name in ("newest_prediction", "oldest_label", "newest_label"):
        marks[name] = NOWHERE
    marks["reserved"] = 0


def _with_room(records: Any, used: int, more: int) -> Any:
    if used + more > MOST_IDS:
        raise InputError(
            f"{used + more} events wait at once and {MOST_IDS} can; use more shards or a shorter ttl"
        )
    return grown(records, used, used + more) if used + more > len(records) else records
