"""The steps of a LabelMatcher, compiled: predictions and labels met in the order of event time.

What is held
    predictions  that wait, a queue in time order; all of one id form a chain, newest first. A prediction that
                 has its label while it waits stays in the queue, with no number, until its turn comes.
    labels       that a prediction may still need, or whose fate is open, a queue in (time, tie) order; all of
                 one id form a chain, oldest first, and leave it in that order.
    marks        of every id, by its number: the ends of both chains, and its latest prediction's time.

What lies before a queue's head has left: a link that leads there has ended.

Time goes on from event to event. Before the events of time `now`, in this order:
    expire   predictions of time < now - ttl leave: no label of theirs can come any more;
    close    labels of time < now - lead: no prediction of theirs can come any more. So a mark's latest
             prediction is the one that tells whether a label had any candidate;
    settle   labels of time < now - lead - ttl: all that they matched have left, too.

With `first`, therefore, the oldest label in the chain of an id is the one for a prediction that comes, and a
label that comes is the one for all predictions in the chain. With `last` the newest label in the chain is the
one for a prediction that expires, if it is not too old. Each is found at once, however long the chains are.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .events import Int32Array, Int64Array
from .kernels import entry, inlined
from .score_tree_layout import at, whole

USED = 0
ORPHAN = 1
SECOND = 2
REPEAT = 3

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
    ("reserved", "i4"),
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


class Coming(NamedTuple):
    """What comes, each side in the order of time, labels of equal time in that of `tie`."""

    prediction_times: Int64Array
    prediction_handles: Int64Array
    prediction_numbers: Int32Array
    label_times: Int64Array
    label_handles: Int64Array
    label_ties: Int64Array
    label_numbers: Int32Array


class Leaving(NamedTuple):
    """Room for what leaves; all columns of one length."""

    pair_predictions: Int64Array
    pair_labels: Int64Array
    unmatched: Int64Array
    unmatched_times: Int64Array
    gone: Int64Array
    gone_times: Int64Array
    fates: Int64Array


@inlined
def is_full(state: Matching, leaving: Leaving) -> bool:
    """Whether one of the lists of what leaves has no room for a row more."""
    course = state.course[0]
    room = len(leaving.fates)
    return (course.pairs == room) | (course.unmatched == room) | (course.gone == room)


@inlined
def write_pair(state: Matching, leaving: Leaving, prediction: int, place: int) -> None:
    """Pair the prediction of a handle with a label in the queue."""
    course = state.course[0]
    label = state.labels[at(place)]
    label.used = 1
    leaving.pair_predictions[at(course.pairs)] = prediction
    leaving.pair_labels[at(course.pairs)] = label.handle
    course.pairs += 1


@inlined
def write_gone(state: Matching, leaving: Leaving, handle: int, time: int, fate: int) -> None:
    """Let a label leave."""
    course = state.course[0]
    leaving.gone[at(course.gone)] = handle
    leaving.gone_times[at(course.gone)] = time
    leaving.fates[at(course.gone)] = fate
    course.gone += 1


@inlined
def let_go(state: Matching, leaving: Leaving, place: int, fate: int) -> None:
    """Let the oldest label of its chain leave: used if it is, otherwise by the fate given."""
    label = state.labels[at(place)]
    mark = state.marks[at(label.number)]
    write_gone(state, leaving, label.handle, label.time, USED if label.used else fate)
    mark.oldest_label = label.next
    if label.next == NOWHERE:
        mark.newest_label = NOWHERE
    label.number = NOWHERE
    state.course[0].held -= 1


@inlined
def serve(state: Matching, leaving: Leaving) -> bool:
    """Match the label that just came with all that wait for it; False: there is no room for more."""
    course = state.course[0]
    if course.serving == NOWHERE:
        return True
    mark = state.marks[at(state.labels[at(course.serving)].number)]
    while mark.newest_prediction >= course.oldest_prediction:
        if is_full(state, leaving):
            return False
        prediction = state.predictions[at(mark.newest_prediction)]
        write_pair(state, leaving, prediction.handle, course.serving)
        prediction.number = NOWHERE
        mark.newest_prediction = prediction.before
        course.waiting -= 1
    course.serving = NOWHERE
    return True


@inlined
def expire(state: Matching, leaving: Leaving, now: int) -> bool:
    """Let the predictions leave whose time to live has passed; False: there is no room for more."""
    course = state.course[0]
    while course.oldest_prediction < course.end_of_predictions:
        prediction = state.predictions[at(course.oldest_prediction)]
        if prediction.number != NOWHERE:
            if prediction.time >= now - course.ttl:
                return True
            if is_full(state, leaving):
                return False
            place = NOWHERE
            if course.takes_last:
                place = state.marks[at(prediction.number)].newest_label
                if place != NOWHERE and state.labels[at(place)].time < prediction.time - course.lead:
                    place = NOWHERE
            if place != NOWHERE:
                write_pair(state, leaving, prediction.handle, place)
            else:
                leaving.unmatched[at(course.unmatched)] = prediction.handle
                leaving.unmatched_times[at(course.unmatched)] = prediction.time
                course.unmatched += 1
            prediction.number = NOWHERE
            course.waiting -= 1
        course.oldest_prediction += 1
    return True


@inlined
def close(state: Matching, leaving: Leaving, now: int) -> bool:
    """Close the labels for which no prediction can come any more; False: there is no room for more.

    All leave but the newest of its id where the last counts: predictions that wait may need it.
    """
    course = state.course[0]
    while course.first_open < course.end_of_labels:
        label = state.labels[at(course.first_open)]
        if label.time >= now - course.lead:
            return True
        if is_full(state, leaving):
            return False
        mark = state.marks[at(label.number)]
        had_candidates = mark.latest >= label.time - course.ttl
        if not (course.takes_last and had_candidates and mark.newest_label == course.first_open):
            let_go(state, leaving, course.first_open, SECOND if had_candidates else ORPHAN)
        course.first_open += 1
    return True


@inlined
def settle(state: Matching, leaving: Leaving, now: int) -> bool:
    """Let the closed labels leave that nothing waits for any more; False: there is no room for more."""
    course = state.course[0]
    while course.oldest_label < course.first_open:
        label = state.labels[at(course.oldest_label)]
        if label.number != NOWHERE:
            if label.time >= now - course.lead - course.ttl:
                return True
            if is_full(state, leaving):
                return False
            let_go(state, leaving, course.oldest_label, SECOND)
        course.oldest_label += 1
    return True


@inlined
def take_prediction(state: Matching, coming: Coming, leaving: Leaving, row: int) -> None:
    """Match a prediction that comes, or let it wait."""
    course = state.course[0]
    number = whole(coming.prediction_numbers[at(row)])
    mark = state.marks[at(number)]
    mark.latest = coming.prediction_times[at(row)]
    if not course.takes_last and mark.oldest_label != NOWHERE:
        write_pair(state, leaving, coming.prediction_handles[at(row)], mark.oldest_label)
        return
    place = course.end_of_predictions
    prediction = state.predictions[at(place)]
    prediction.time = coming.prediction_times[at(row)]
    prediction.handle = coming.prediction_handles[at(row)]
    prediction.number = number
    prediction.before = mark.newest_prediction
    mark.newest_prediction = place
    course.end_of_predictions += 1
    course.waiting += 1


@inlined
def take_label(state: Matching, coming: Coming, leaving: Leaving, row: int) -> None:
    """Hold a label that comes, unless it is one that is held."""
    course = state.course[0]
    time, tie = coming.label_times[at(row)], coming.label_ties[at(row)]
    number = whole(coming.label_numbers[at(row)])
    mark = state.marks[at(number)]
    if mark.newest_label != NOWHERE:
        newest = state.labels[at(mark.newest_label)]
        if newest.time == time and newest.tie == tie:
            write_gone(state, leaving, coming.label_handles[at(row)], time, REPEAT)
            return
        if mark.newest_label < course.first_open:  # it was kept for predictions that this one is for
            let_go(state, leaving, mark.newest_label, SECOND)
    if mark.oldest_label == NOWHERE and mark.latest < time - course.ttl:
        mark.latest = NEVER  # of no further use: the state is one whether its id was kept or not
    place = course.end_of_labels
    label = state.labels[at(place)]
    label.time = time
    label.handle = coming.label_handles[at(row)]
    label.tie = tie
    label.number = number
    label.next = NOWHERE
    label.used = 0
    if mark.newest_label == NOWHERE:
        mark.oldest_label = place
    else:
        state.labels[at(mark.newest_label)].next = place
    mark.newest_label = place
    course.end_of_labels += 1
    course.held += 1
    if not course.takes_last and mark.newest_prediction >= course.oldest_prediction:
        course.serving = place


@entry
def run(state: Matching, coming: Coming, leaving: Leaving, clock: int) -> bool:
    """Go on until the clock; there is room for all that comes.

    Returns whether it got there. If not, `leaving` is full: it is to be emptied, and `run` called again.
    """
    course = state.course[0]
    predictions, labels = len(coming.prediction_times), len(coming.label_times)
    while serve(state, leaving):
        now = clock
        is_label = False
        if course.prediction_row < predictions:
            now = coming.prediction_times[at(course.prediction_row)]
        if course.label_row < labels and coming.label_times[at(course.label_row)] <= now:
            now = coming.label_times[at(course.label_row)]
            is_label = True
        if not (expire(state, leaving, now) and close(state, leaving, now) and settle(state, leaving, now)):
            return False
        if is_label:
            if is_full(state, leaving):
                return False
            take_label(state, coming, leaving, course.label_row)
            course.label_row += 1
        elif course.prediction_row < predictions:
            if is_full(state, leaving):
                return False
            take_prediction(state, coming, leaving, course.prediction_row)
            course.prediction_row += 1
        else:
            return True
    return False


@entry
def link(state: Matching) -> None:
    """Make the chains of what lies in the queues, nothing of which has left; marks have none yet."""
    course = state.course[0]
    for place in range(course.end_of_predictions):
        prediction = state.predictions[at(place)]
        mark = state.marks[at(prediction.number)]
        prediction.before = mark.newest_prediction
        mark.newest_prediction = place
    for place in range(course.end_of_labels):
        label = state.labels[at(place)]
        label.next = NOWHERE
        mark = state.marks[at(label.number)]
        if mark.newest_label == NOWHERE:
            mark.oldest_label = place
        else:
            state.labels[at(mark.newest_label)].next = place
        mark.newest_label = place
