"""The entries of a LabelMatcher: as records for its kernels, and as bytes.

The records move when room is freed.

    predictions  a queue in time order of the predictions that wait; those of one id form a chain, newest
                 first. A prediction that gets its label stays in the queue, without an id's number, until it
                 reaches the head.
    labels       a queue in (time, tie) order of the labels that a prediction may still need, or whose fate is
                 open. Labels of one id form a chain, oldest first, and leave the chain in that order.
    marks        for every id, by its number: the ends of both chains, and the time of its latest prediction.

Entries before a queue's head have left: a link to such an entry is the end of its chain.

Wire form, little-endian
    head        ttl, lead, clock i64; second, predictions n, labels m, ids k u32; bytes of ids u64
    predictions time i64[n], handle i64[n], number of the id i32[n]; in the order of time
    labels      time i64[m], handle i64[m], number i32[m], used u8[m]; in the order of (time, tie)
    ids         time of the latest prediction i64[k], length i32[k]; their bytes
Ties are not stored: no label that comes later has the time of a stored label.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Int64Array
from ..errors import CorruptBytesError
from ..events.columns import IdColumn
from ..kernels.compile import entry, inlined
from ..kernels.records import at, whole

EARLIEST, LATEST = -(2**62), 2**62
"""Bounds of all event times. The clock has the lower bound until the first call gives a clock."""

NOWHERE = -1  # in a link: the chain ends; as an entry's number: the entry has left

_PREDICTION_FIELDS: list[Any] = [
    ("time", "i8"),
    ("handle", "i8"),
    ("number", "i4"),  # the number of the id
    ("before", "i4"),  # place of the previous prediction of the same id
]
PREDICTION = np.dtype(_PREDICTION_FIELDS)

_LABEL_FIELDS: list[Any] = [
    ("time", "i8"),
    ("handle", "i8"),
    ("tie", "i8"),
    ("number", "i4"),
    ("next", "i4"),  # place of the next label of the same id
    ("used", "i8"),
]
LABEL = np.dtype(_LABEL_FIELDS)

_MARK_FIELDS: list[Any] = [
    ("latest", "i8"),  # time of the latest prediction, or NEVER
    ("newest_prediction", "i4"),
    ("oldest_label", "i4"),
    ("newest_label", "i4"),
    ("kept", "i4"),  # the id's new number, while entries move to another state
]
MARK = np.dtype(_MARK_FIELDS)
NEVER = -(2**63)

_COURSE_FIELDS: list[Any] = [
    ("ttl", "i8"),
    ("lead", "i8"),
    ("takes_last", "i8"),
    ("oldest_prediction", "i8"),  # head of the queue of predictions
    ("end_of_predictions", "i8"),
    ("waiting", "i8"),  # predictions in the queue that have not left
    ("oldest_label", "i8"),
    ("first_open", "i8"),  # labels before this place are closed
    ("end_of_labels", "i8"),
    ("held", "i8"),  # labels in the queue that have not left
    ("ids", "i8"),  # how many marks are in use
    ("serving", "i8"),  # the label that has just come and still has predictions to match, or NOWHERE
    ("prediction_row", "i8"),  # the next row of the coming predictions
    ("label_row", "i8"),
    ("pairs", "i8"),  # how many rows are written to each list of `Leaving`
    ("unmatched", "i8"),
    ("gone", "i8"),
]
COURSE = np.dtype(_COURSE_FIELDS)


class Matching(NamedTuple):
    """The state that all kernels work on: arrays of the four records; `course` has one element."""

    predictions: Any
    labels: Any
    marks: Any
    course: Any


@inlined
def hold(state: Matching, number: int, time: int, tie: int, handle: int, used: int) -> None:
    """Append a label to the queue and to the chain of its id."""
    course = state.course[0]
    place = course.end_of_labels
    label, mark = state.labels[at(place)], state.marks[at(number)]
    label.time = time
    label.handle = handle
    label.tie = tie
    label.number = number
    label.next = NOWHERE
    label.used = used
    if mark.newest_label == NOWHERE:
        mark.oldest_label = place
    else:
        state.labels[at(mark.newest_label)].next = place
    mark.newest_label = place
    course.end_of_labels += 1


@inlined
def blank(mark: Any, latest: int) -> None:
    """Write the mark of an id without predictions and labels in the queues."""
    mark.latest = latest
    mark.newest_prediction = NOWHERE
    mark.oldest_label = NOWHERE
    mark.newest_label = NOWHERE
    mark.kept = NOWHERE


@inlined
def kept_number(old: Matching, new: Matching, number: int, numbers: Int64Array, kept: int) -> int:
    """Return the new number of an id, and assign a new number if the id has none.

    `kept` is the count of new numbers so far.
    """
    mark = old.marks[at(number)]
    if mark.kept == NOWHERE:
        mark.kept = kept
        numbers[at(kept)] = number
        blank(new.marks[at(kept)], mark.latest)
    return whole(mark.kept)


@entry
def keep(old: Matching, new: Matching, numbers: Int64Array, since: int) -> tuple[int, int]:
    """Move all entries that have not left to an empty state that has room for them.

    `old` must not be used again.

    `numbers` is filled with the old numbers of the kept ids, in the order of their new numbers: first ids
    of predictions, then of labels, then other ids with a prediction at or after `since`. Returns how many ids
    predictions and labels mention, and how many ids are kept in all.
    """
    was, course = old.course[0], new.course[0]
    mentioned = whole(0)
    for source in range(was.oldest_prediction, was.end_of_predictions):
        from_ = old.predictions[at(source)]
        if from_.number != NOWHERE:
            number = kept_number(old, new, whole(from_.number), numbers, mentioned)
            mentioned = max(mentioned, number + 1)
            place = course.end_of_predictions
            prediction, mark = new.predictions[at(place)], new.marks[at(number)]
            prediction.time = from_.time
            prediction.handle = from_.handle
            prediction.number = number
            prediction.before = mark.newest_prediction
            mark.newest_prediction = place
            course.end_of_predictions += 1
    for source in range(was.oldest_label, was.end_of_labels):
        old_label = old.labels[at(source)]
        if source == was.first_open:
            course.first_open = course.end_of_labels
        if old_label.number != NOWHERE:
            number = kept_number(old, new, whole(old_label.number), numbers, mentioned)
            mentioned = max(mentioned, number + 1)
            hold(new, number, old_label.time, old_label.tie, old_label.handle, old_label.used)
    if was.first_open == was.end_of_labels:
        course.first_open = course.end_of_labels
    course.waiting, course.held = was.waiting, was.held
    kept = mentioned
    for number in range(was.ids):
        if old.marks[at(number)].kept == NOWHERE and old.marks[at(number)].latest >= since:
            kept_number(old, new, number, numbers, kept)
            kept += 1
    course.ids = kept
    return mentioned, kept


@entry
def mark_new(marks: Any, start: int, end: int) -> None:
    """Write the marks of new ids, numbers `start` to `end` - 1."""
    for number in range(start, end):
        blank(marks[at(number)], NEVER)


_HEAD = struct.Struct("<qqqIIIIQ")
_ENTRY_FIELDS: list[Any] = [("time", "<i8"), ("handle", "<i8"), ("number", "<i4")]
_ENTRY = np.dtype(_ENTRY_FIELDS)
_LABEL = np.dtype([*_ENTRY_FIELDS, ("used", "u1")])
_ID = np.dtype([("latest", "<i8"), ("length", "<i4")])
"""The columns of an entry on the wire, column by column."""


class Held(NamedTuple):
    """The matcher's settings, its clock, and its entries: records PREDICTION and LABEL, and ids by number."""

    ttl: int
    lead: int
    second: int
    clock: int
    predictions: Any
    labels: Any
    latest: Int64Array
    ids: IdColumn

    def pack(self) -> bytes:
        """Return the wire form.

        It takes 20 bytes for a prediction, 21 for a label, 12 for an id, and the bytes of the id.
        """
        ids = self.ids
        counts = len(self.predictions), len(self.labels), len(ids), len(ids.data)
        parts = [_HEAD.pack(self.ttl, self.lead, self.clock, self.second, *counts)]
        of_ids: Any = {"latest": self.latest, "length": ids.lengths}
        for columns, wire in ((self.predictions, _ENTRY), (self.labels, _LABEL), (of_ids, _ID)):
            parts += [columns[name].astype(wire[name]).tobytes() for name in wire.names or ()]
        return b"".join([*parts, ids.data])

    @classmethod
    def unpack(cls, data: bytes) -> Held:
        """Read the wire form. Raises CorruptBytesError for bytes that cannot be a matcher's."""
        if len(data) < _HEAD.size:
            raise CorruptBytesError(f"the state of a join ends after {len(data)} bytes, inside its head")
        ttl, lead, clock, second, *counts, size = _HEAD.unpack_from(data)
        wires = _ENTRY, _LABEL, _ID
        needed = _HEAD.size + size + sum(wire.itemsize * n for wire, n in zip(wires, counts, strict=True))
        if len(data) != needed:
            raise CorruptBytesError(
                f"the state of a join has {len(data)} bytes where its head says {needed}; damaged"
            )
        groups, at = [], _HEAD.size
        for wire, dtype, count in zip(wires, (PREDICTION, LABEL, _ID), counts, strict=True):
            entries = np.zeros(count, dtype)
            for name in wire.names or ():
                entries[name] = column = np.frombuffer(data, wire[name], count, at)
                at += column.nbytes
            groups.append(entries)
        predictions, labels, of_ids = groups
        for entries in (predictions, labels):
            times, numbers = entries["time"], entries["number"]
            if not len(entries):
                continue
            if (np.diff(times) < 0).any() or times[0] < EARLIEST or times[-1] >= clock or times[-1] > LATEST:
                raise CorruptBytesError(
                    f"the state of a join holds times that its clock, {clock}, denies; damaged"
                )
            if numbers.min() < 0 or numbers.max() >= len(of_ids):
                raise CorruptBytesError("the state of a join refers to ids that it does not have; damaged")
        if clock < EARLIEST:
            raise CorruptBytesError(f"the state of a join has the clock {clock}; damaged")
        if (of_ids["length"] < 0).any():
            raise CorruptBytesError("the state of a join has an id of less than no bytes; damaged")
        ids = IdColumn(of_ids["length"], data[at:])
        return cls(ttl, lead, second, clock, predictions, labels, of_ids["latest"], ids)
