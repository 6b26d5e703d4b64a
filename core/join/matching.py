"""Predictions and labels matched by id, in event time alone.

What is a match
    A label l is a candidate of a prediction p of the same id if -lead <= time(l) - time(p) <= ttl. A
    prediction gets at most one label: the first or the last of its candidates in the order of (time, tie).
    A label may be matched with several predictions: several models may predict one id.

    tie     an int64 that the caller makes from a label's content. Of two labels of one id and time the same
            label then counts, whatever their order of arrival. Labels of equal id, time and tie are repeats.
    second  "first" or "last"; "dead-letter" matches as "first" does: the caller treats second labels
            as mistakes.

What becomes of a label: exactly one of
    REPEAT  another label of equal (id, time, tie) came before the label.
    ORPHAN  the label is not a candidate of any prediction.
    USED    a prediction is matched with the label.
    SECOND  the label is a candidate, but each of its predictions is matched with another label
What becomes of a prediction: it leaves in a pair, or unmatched, if it has no candidate.
No result depends on the partitions from which labels and predictions came, on how they were cut into calls,
or on a clock other than event time.

When it is known
    A pair is known, with "first": in the first call whose clock is beyond both its times. No label before the
    clock of an earlier call can come, so its label is the first. With "last": once the clock is beyond
    time(p) + ttl. An unmatched prediction is known: once the clock is beyond time(p) + ttl. The fate of a
    label is known: once the clock is beyond time(l) + lead; with "last", the newest label of an id may take
    until time(l) + lead + ttl. At END every fate is known.

    So pairs that a call with a later clock gives have time(l) >= clock - `JoinSettings.output_delay`. With
    "first", one of time(p), time(l) is not before the clock, and time(l) >= time(p) - lead, so that the delay
    is lead. With "last", time(p) + ttl is not before the clock, so that the delay is ttl + lead.

State: 24 bytes for a prediction that waits, 40 for a label, and for each of their ids its bytes and 43 to 46;
in a snapshot 20, 21 and 12. The matcher remembers an id for ttl after its latest prediction, matched or not,
to find labels without a prediction. The room of entries that left is freed once these are half of all.
"""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple, get_args

import numpy as np

from ..arrays import Int64Array
from ..encoding.json import reading
from ..errors import ConfigError, InputError
from ..events.columns import IdColumn
from ..ids.index import MOST_IDS, IdIndex, grown, hash64_of_ids
from ..kernels.records import for_kernels, zero_record
from .matching_state import (
    COURSE,
    EARLIEST,
    LABEL,
    LATEST,
    MARK,
    NOWHERE,
    PREDICTION,
    Held,
    Matching,
    keep,
    mark_new,
)
from .matching_steps import ORPHAN, REPEAT, SECOND, USED, Coming, Leaving, run

__all__ = ["END", "ORPHAN", "REPEAT", "SECOND", "USED", "Arrivals", "Departures", "LabelMatcher"]

Second = Literal["first", "last", "dead-letter"]

END: Final = 2**63 - 1
"""The clock at the end of the input: no prediction and no label will come any more."""

LONGEST_TTL = 2**60
"""The longest ttl, in microseconds: 36,000 years; times less ttl and lead stay within 64 bits."""

_LEAST_ROOM = 4096  # the least number of rows in `Leaving`
_LEAST_GONE = 4096  # so many entries must have left before the state is compacted
_LEAST_GONE_BYTES = 1 << 20  # or so many bytes of the ids of such entries


class Arrivals(NamedTuple):
    """Predictions or labels, in the order of their times.

    ids      n ids, none of them missing
    times    int64[n] microseconds, ascending
    handles  int64[n]: the caller's number for each prediction or label
    ties     int64[n] of labels; None: labels of one id and time are repeats
    """

    ids: IdColumn
    times: Int64Array
    handles: Int64Array
    ties: Int64Array | None = None


class Departures(NamedTuple):
    """The decisions of one call. Every handle that came in leaves once; a label may be in many pairs.

    pair_predictions  int64: handle of each pair's prediction, which leaves with the pair
    pair_labels       int64: handle of each pair's label, which leaves as USED in this call or a later call
    unmatched         int64: handles of predictions that leave without a label
    unmatched_ages    int64: microseconds that each unmatched prediction has waited
    gone              int64: handles of labels that leave
    fates             int8: the fate of each such label: USED, ORPHAN, SECOND or REPEAT
    ages              int64: microseconds in which a prediction for the label could have come; 0 for a repeat
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
    """Matches predictions with labels as event time advances. The module says what a match is, and when.

    ttl     microseconds that a label may come after its prediction
    lead    microseconds that a label may come before its prediction; at most ttl, and ttl by default
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
        self._put_together_at: int = EARLIEST  # the clock when the state was last compacted
        self._ids = IdIndex()
        self._state = self._empty_state(0, 0, 0)

    def __len__(self) -> int:
        return self.waiting + self.held

    @property
    def waiting(self) -> int:
        """How many predictions wait for a label."""
        return int(self._state.course["waiting"][0])

    @property
    def held(self) -> int:
        """How many labels the matcher holds for predictions that wait or that may come."""
        return int(self._state.course["held"][0])

    @property
    def nbytes(self) -> int:
        """Bytes of memory, without room that was never written to."""
        state, course = self._state, self._state.course[0]
        used = (course["end_of_predictions"], course["end_of_labels"], course["ids"], 1)
        arrays = sum(int(count) * array.dtype.itemsize for count, array in zip(used, state, strict=True))
        return int(arrays) + self._ids.nbytes

    def advance(
        self,
        predictions: Arrivals = NOTHING,
        labels: Arrivals = NOTHING,
        clock: int = END,
        end: int | None = None,
    ) -> Departures:
        """Take in all events from the last call's clock up to `clock`.

        Return the matches and fates that are known then.

        All times must lie in [last clock, clock) and ascend. `end`, needed with the clock END, is the
        greatest time of all predictions and labels. O(events), amortised, however many wait. Besides the
        entries that wait, memory is proportional to the events of one call.

        Raises InputError for a clock that goes back, for times that descend or lie outside, and for an event
        without an id. The matcher is then unchanged.
        """
        clock = max(clock, EARLIEST)
        if clock < self.clock:
            raise InputError(f"the clock goes back from {self.clock} to {clock}; it can only go on")
        if clock == END and end is None:
            raise InputError("the end of the input needs its greatest time, for the ages of what is left")
        for name, events in (("prediction", predictions), ("label", labels)):
            self._check(name, events, clock)
        coming = self._coming(predictions, labels)
        self._state.course["prediction_row"] = self._state.course["label_row"] = 0
        room = max(_LEAST_ROOM, len(coming.prediction_times) + len(coming.label_times))
        pieces = []
        done = False
        while not done:
            columns: Any = np.empty((len(Leaving._fields), room), np.int64)
            leaving = Leaving(*columns)
            done = run(self._state, coming, leaving, clock)
            pieces.append(self._emptied(leaving))
        left = Leaving(*map(np.concatenate, zip(*pieces, strict=True)))
        self.clock = clock
        self._reclaim()
        return self._departures(left, END if clock < END or end is None else end)

    def _check(self, name: str, events: Arrivals, clock: int) -> None:
        times, ids = events.times, events.ids
        columns = (times, events.handles) if events.ties is None else (times, events.handles, events.ties)
        if any(len(column) != len(ids) for column in columns):
            raise InputError(
                f"{len(ids)} ids of {name}s came with {len(times)} times; each needs one of each"
            )
        if not len(times):
            return
        if ids.lengths.min() < 0:
            raise InputError(f"a {name} without an id can have no match; leave it out before")
        if times[0] < self.clock or times[-1] >= clock or times[-1] > LATEST:
            raise InputError(
                f"{name}s of times {times[0]} to {times[-1]} came between clocks {self.clock} and {clock}; "
                "give each call the events from the last clock up to its own"
            )
        if (times[1:] < times[:-1]).any():
            raise InputError(f"the times of {name}s descend; sort them by time")

    def _coming(self, predictions: Arrivals, labels: Arrivals) -> Coming:
        """Find the numbers of the ids, sort labels of equal time by their ties, and make room for all."""
        prediction_numbers, label_numbers = self._ids.numbers(predictions.ids), self._ids.numbers(labels.ids)
        times, handles = _int64(labels.times), _int64(labels.handles)
        ties = np.zeros_like(times) if labels.ties is None else _int64(labels.ties)
        if ((ties[1:] < ties[:-1]) & (times[1:] == times[:-1])).any():
            order = np.lexsort((ties, times))
            handles, ties, label_numbers = handles[order], ties[order], label_numbers[order]
        state, course = self._state, self._state.course[0]
        known, ids = int(course["ids"]), len(self._ids)
        marks = _with_room(state.marks, known, ids - known)
        mark_new(marks, known, ids)
        course["ids"] = ids
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
        """Return the rows that have been written to `leaving`, and set the counts of rows to 0."""
        course = self._state.course
        pairs, unmatched, gone = (int(course[name][0]) for name in ("pairs", "unmatched", "gone"))
        counts = (pairs, pairs, unmatched, unmatched, gone, gone, gone)
        course["pairs"] = course["unmatched"] = course["gone"] = 0
        return Leaving(*(column[:count] for column, count in zip(leaving, counts, strict=True)))

    def _departures(self, left: Leaving, end: int) -> Departures:
        """Make the departures of a call: replace times by ages at `end`.

        An age is at most ttl for predictions, and lead for labels.
        """
        fates = left.fates.astype(np.int8)
        ages = np.where(fates == REPEAT, 0, _ages(left.gone_times, self.lead, end))
        unmatched_ages = _ages(left.unmatched_times, self.ttl, end)
        return Departures(
            left.pair_predictions, left.pair_labels, left.unmatched, unmatched_ages, left.gone, fates, ages
        )

    def _reclaim(self) -> None:
        """Compact the state once enough entries have left, so that each entry that left costs a few copies.

        At most once in a ttl, look for ids that expired while nothing came.
        """
        course = self._state.course[0]
        gone = int(course["end_of_predictions"]) + int(course["end_of_labels"]) - len(self)
        forgotten = len(self._ids) - len(self) if self.clock - self._put_together_at > self.ttl else 0
        least = min(_LEAST_GONE, 16 + _LEAST_GONE_BYTES * len(self._ids) // max(self._ids.nbytes, 1))
        if self.clock == END or max(gone, forgotten) > max(least, (len(self) + len(self._ids)) // 2):
            self._put_together()

    def _put_together(self) -> int:
        """Compact the state. Return the number of ids that entries refer to.

        These have the lowest numbers.
        """
        ids, more = len(self._ids), _LEAST_GONE + (len(self) + len(self._ids)) // 2
        state = self._empty_state(self.waiting + more, self.held + more, ids + more)
        numbers = np.empty(ids, np.int64)
        mentioned, kept = keep(self._state, state, numbers, self.clock - self.ttl)
        self._state, self._put_together_at = state, self.clock
        self._ids = self._ids.kept(numbers[:kept])
        return int(mentioned)

    def _empty_state(self, predictions: int, labels: int, ids: int) -> Matching:
        """Make a state with room for so many predictions, labels and ids."""
        course = zero_record(COURSE)
        course["ttl"], course["lead"], course["takes_last"] = self.ttl, self.lead, self.second == "last"
        course["serving"] = NOWHERE
        room: Any = np.empty(predictions, PREDICTION), np.empty(labels, LABEL), np.empty(ids, MARK)
        return Matching(for_kernels(room[0]), for_kernels(room[1]), for_kernels(room[2]), course)

    def renumber(self) -> tuple[Int64Array, Int64Array]:
        """Give predictions, and labels, the handles 0, 1, 2, ... in time order; return their old handles.

        The caller reorders its own rows accordingly: row i of the predictions becomes the row that had the
        i-th handle returned. The same holds for labels.
        """
        self._put_together()
        predictions, labels = self._state.predictions[: self.waiting], self._state.labels[: self.held]
        before = predictions["handle"].copy(), labels["handle"].copy()
        predictions["handle"], labels["handle"] = np.arange(self.waiting), np.arange(self.held)
        return before

    def kept(self) -> tuple[tuple[IdColumn, Int64Array], tuple[IdColumn, Int64Array]]:
        """Return the ids and times of the predictions, and those of the labels, each in time order.

        They are the records that the matcher holds. A caller that stores its own rows in the order of
        `renumber` need not store ids and times again.
        """
        self._put_together()
        predictions, labels = self._state.predictions[: self.waiting], self._state.labels[: self.held]
        return (
            (self._ids.ids(predictions["number"].astype(np.int64)), predictions["time"].copy()),
            (self._ids.ids(labels["number"].astype(np.int64)), labels["time"].copy()),
        )

    def to_bytes(self) -> bytes:
        """Return the state as bytes: a pure function of settings, events so far and clock. O(its length)."""
        mentioned = self._put_together()
        latest, hashes = self._state.marks["latest"][: len(self._ids)], hash64_of_ids(self._ids.ids())
        others = mentioned + np.lexsort((hashes[mentioned:], latest[mentioned:]))
        numbers = np.concatenate((np.arange(mentioned), others))
        held = Held(
            self.ttl, self.lead, get_args(Second).index(self.second), self.clock,
            self._state.predictions[: self.waiting], self._state.labels[: self.held],
            latest[numbers], self._ids.ids(numbers),
        )  # fmt: skip
        return held.pack()

    @classmethod
    def from_bytes(cls, data: bytes) -> LabelMatcher:
        """Read a state. Raises CorruptBytesError for bytes that are no state of a matcher."""
        with reading("the state of a join"):
            held = Held.unpack(data)
            matcher = cls(held.ttl, held.lead, get_args(Second)[held.second])
        matcher.clock, matcher._ids = held.clock, IdIndex.of(held.ids)
        state = matcher._empty_state(0, 0, len(held.ids))
        mark_new(state.marks, 0, len(held.ids))
        state.marks["latest"] = held.latest
        course = state.course
        course["ids"] = len(held.ids)
        course["end_of_predictions"] = course["waiting"] = len(held.predictions)
        course["end_of_labels"] = course["held"] = len(held.labels)
        course["first_open"] = np.searchsorted(held.labels["time"], held.clock - held.lead)
        predictions, labels = for_kernels(held.predictions), for_kernels(held.labels)
        matcher._state = Matching(predictions, labels, state.marks, course)
        matcher._put_together()  # makes the chains of equal ids
        return matcher


def _int64(column: Any) -> Int64Array:
    return np.ascontiguousarray(column, np.int64)


def _ages(times: Int64Array, most: int, end: int) -> Int64Array:
    """Return the microseconds from each time to `end`, at most `most`."""
    return end - np.maximum(times, max(end - most, EARLIEST))  # `end` is NO_TIME for an input without events


def _with_room(records: Any, used: int, more: int) -> Any:
    if used + more > MOST_IDS:
        raise InputError(
            f"{used + more} events wait at once and {MOST_IDS} can; use more shards or a shorter ttl"
        )
    return grown(records, used, used + more) if used + more > len(records) else records
