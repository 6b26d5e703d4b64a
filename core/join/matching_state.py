"""What a LabelMatcher holds, as records for its kernels, and how it moves when what has left is reclaimed.

    predictions  that wait, a queue in time order; all of one id form a chain, newest first. A prediction that
                 has its label while it waits stays in the queue, with no number, until its turn comes.
    labels       that a prediction may still need, or whose fate is open, a queue in (time, tie) order; all of
                 one id form a chain, oldest first, and leave it in that order.
    marks        of every id, by its number: the ends of both chains, and its latest prediction's time.

What lies before a queue's head has left: a link that leads there has ended.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..arrays import Int64Array
from ..kernels.compile import entry, inlined
from ..kernels.records import at, whole

EARLIEST, LATEST = -(2**62), 2**62
"""No event is earlier or later; until a clock is given it stands at the first."""

NOWHERE = -1  # of a link: the chain ends; of an entry's number: it has left

_PREDICTION_FIELDS: list[Any] = [
    ("time", "i8"),
    ("handle", "i8"),
    ("number", "i4"),  # of the id
    ("before", "i4"),  # the one of the same id that came before
]
PREDICTION = np.dtype(_PREDICTION_FIELDS)

_LABEL_FIELDS: list[Any] = [
    ("time", "i8"),
    ("handle", "i8"),
    ("tie", "i8"),
    ("number", "i4"),
    ("next", "i4"),  # the one of the same id that came after
    ("used", "i8"),
]
LABEL = np.dtype(_LABEL_FIELDS)

_MARK_FIELDS: list[Any] = [
    ("latest", "i8"),  # time of the latest prediction, or NEVER
    ("newest_prediction", "i4"),
    ("oldest_label", "i4"),
    ("newest_label", "i4"),
    ("kept", "i4"),  # its number to be, while what is held moves to another state
]
MARK = np.dtype(_MARK_FIELDS)
NEVER = -(2**63)

_COURSE_FIELDS: list[Any] = [
    ("ttl", "i8"),
    ("lead", "i8"),
    ("takes_last", "i8"),
    ("oldest_prediction", "i8"),  # where the queues begin and end
    ("end_of_predictions", "i8"),
    ("waiting", "i8"),  # predictions in the queue that have not left
    ("oldest_label", "i8"),
    ("first_open", "i8"),  # labels before it are closed
    ("end_of_labels", "i8"),
    ("held", "i8"),  # labels in the queue that have not left
    ("ids", "i8"),  # marks in use
    ("serving", "i8"),  # the label that just came and has predictions to match, or NOWHERE
    ("prediction_row", "i8"),  # the next of those that come
    ("label_row", "i8"),
    ("pairs", "i8"),  # rows written
    ("unmatched", "i8"),
    ("gone", "i8"),
]
COURSE = np.dtype(_COURSE_FIELDS)


class Matching(NamedTuple):
    """One state for all kernels: arrays of the four records (COURSE: one of them)."""

    predictions: Any
    labels: Any
    marks: Any
    course: Any


@inlined
def hold(state: Matching, number: int, time: int, tie: int, handle: int, used: int) -> None:
    """Put a label at the end of the queue and of the chain of its id."""
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
    """Write the mark of an id of which nothing is held."""
    mark.latest = latest
    mark.newest_prediction = NOWHERE
    mark.oldest_label = NOWHERE
    mark.newest_label = NOWHERE
    mark.kept = NOWHERE


@inlined
def kept_number(old: Matching, new: Matching, number: int, numbers: Int64Array, kept: int) -> int:
    """Return what an id's number becomes; `kept` of them have one."""
    mark = old.marks[at(number)]
    if mark.kept == NOWHERE:
        mark.kept = kept
        numbers[at(kept)] = number
        blank(new.marks[at(kept)], mark.latest)
    return whole(mark.kept)


@entry
def keep(old: Matching, new: Matching, numbers: Int64Array, since: int) -> tuple[int, int]:
    """Move all that has not left to a new state, with room for it and nothing in it; `old` is then spent.

    `numbers` gets, in the order of their new numbers, the old ones of the ids that are kept: those that
    predictions mention, then labels, then the rest of those with a prediction since a time. Returns how many
    are mentioned, and how many there are.
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
    """Write the marks of ids that nobody has heard of."""
    for number in range(start, end):
        blank(marks[at(number)], NEVER)
