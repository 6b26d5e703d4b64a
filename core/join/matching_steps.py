"""The steps of a LabelMatcher, compiled: predictions and labels met in the order of event time.

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

from typing import NamedTuple

from ..arrays import Int32Array, Int64Array
from ..kernels.bits import prefetch
from ..kernels.compile import entry, inlined
from ..kernels.records import at, whole
from .matching_state import NEVER, NOWHERE, Matching, hold

USED = 0
ORPHAN = 1
SECOND = 2
REPEAT = 3

LOOK_AHEAD = 8  # rows; with 1M ids known, `run` takes 28 ns an event, 78 without


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
                ahead = course.oldest_prediction + LOOK_AHEAD
                if ahead < course.end_of_predictions:
                    prefetch(state.marks[at(state.predictions[at(ahead)].number)])
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
        ahead = course.first_open + LOOK_AHEAD
        if ahead < course.end_of_labels:
            prefetch(state.marks[at(state.labels[at(ahead)].number)])
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
    hold(state, number, time, tie, coming.label_handles[at(row)], 0)
    course.held += 1
    if not course.takes_last and mark.newest_prediction >= course.oldest_prediction:
        course.serving = place


@inlined
def look_at_marks(state: Matching, numbers: Int32Array, row: int) -> None:
    """Ask for the mark that a row soon to come will need."""
    if row + LOOK_AHEAD < len(numbers):
        prefetch(state.marks[at(numbers[at(row + LOOK_AHEAD)])])


@inlined
def look_at_predictions(state: Matching, numbers: Int32Array, row: int) -> None:
    """Ask for the prediction that a label soon to come will match; its mark was asked for before."""
    ahead = row + LOOK_AHEAD // 2
    if ahead < len(numbers):
        place = state.marks[at(numbers[at(ahead)])].newest_prediction
        if place >= state.course[0].oldest_prediction:
            prefetch(state.predictions[at(place)])


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
            look_at_marks(state, coming.label_numbers, course.label_row)
            look_at_predictions(state, coming.label_numbers, course.label_row)
            take_label(state, coming, leaving, course.label_row)
            course.label_row += 1
        elif course.prediction_row < predictions:
            if is_full(state, leaving):
                return False
            look_at_marks(state, coming.prediction_numbers, course.prediction_row)
            take_prediction(state, coming, leaving, course.prediction_row)
            course.prediction_row += 1
        else:
            return True
    return False
