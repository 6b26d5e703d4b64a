"""The window's decisions: confusion masses, the baselines for comparison, and the kappa family.

Every event has a label and a predicted class, as codes. For each class the window counts how often the class
was the label, how often it was predicted, and how often it was both. These counts suffice for the kappa
family. Their number is proportional to the number of classes, not to its square. For each event the window
keeps two bits, fixed when the event is applied:

- whether the majority classifier would have been right. It predicts the class with the largest label mass in
  the window before this event, and before older events leave because of this event. Of tied classes it
  predicts the class that was a label last; before any label, the negative class;
- whether the persistent classifier would have been right. It predicts the label of the event before.

The majority is that of the window before the event, never after it: otherwise the label would leak into the
prediction. So kappa_m of a majority classifier is exactly 0 (Bifet et al. 2015, section 5).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import FloatArray, Int8Array, Int64Array
from ..kernels.compile import Integer, entry, inlined, kernel, scanning
from ..kernels.rings import move_on
from ..rows import slots
from ..rows.reasons import (
    CHANCE_IS_CERTAIN,
    EMPTY_MARGIN,
    MAJORITY_IS_RIGHT,
    NO_NEGATIVES,
    NO_POSITIVE_CLASS,
    NO_POSITIVES,
    NO_PREDICTED_POSITIVES,
    NOTHING_TO_AVERAGE,
    ONE_CLASS,
    PERSISTENT_IS_RIGHT,
)
from .steps import ENTERS, EVENT, FED, ROW_DUE

SEQ, HELD, HEAD, MAJORITY_HITS, PERSISTENT_HITS, LAST_LABEL, MAJORITY, CLASSES = range(8)
"""Fields of the int64 array of counters: events applied, events held, slot of the oldest event, hits of both
baselines in the window, code of the last label and of the majority (-1 before any label), number of classes
seen. An evaluator appends the counters of steps.py.
"""

COUNTERS = 8

LABELS, PREDICTIONS, CORRECT, LAST_SEEN = range(4)
"""Rows of the int64 matrix of classes: masses in the window, and the seq at which each was last a label."""

MAJORITY_HIT, PERSISTENT_HIT, FED_HIT = 1, 2, 4
"""Bits of an event's hits. FED_HIT: the event's value was fed to the signal of an adaptive window."""


@scanning
def majority_class(classes: Int64Array, count: Integer) -> int:
    """Return the class with the largest label mass; of tied classes, the class that was a label last.

    -1 without classes.
    """
    best = -1
    for code in range(count):
        mass = classes[LABELS, code]
        if mass > 0 and (
            best < 0
            or mass > classes[LABELS, best]
            or (mass == classes[LABELS, best] and classes[LAST_SEEN, code] > classes[LAST_SEEN, best])
        ):
            best = code
    return best


@kernel
def write_ratio(
    top: float, bottom: float, measure: int, reason: int, measures: FloatArray, reasons: Int8Array
) -> None:
    """Write the measure top / bottom; if bottom is 0, write null with the reason."""
    if bottom == 0.0:
        reasons[measure] = reason
    else:
        measures[measure] = top / bottom


@inlined
def correlation(gain: float, spread: float, other: float) -> float:
    """Return gain / sqrt(spread * other), where gain is at most this root; NaN if either spread is 0.

    If the spreads are equal, the root is the spread itself: sqrt(s) * sqrt(s) may differ from s, and a
    perfect classifier's MCC would be 0.9999999999999998.
    """
    if (spread == 0.0) | (other == 0.0):
        return np.nan
    root = spread if spread == other else np.sqrt(spread) * np.sqrt(other)
    return min(1.0, max(-1.0, gain / root)) if root > 0.0 else np.nan


@kernel
def write_binary(
    tp: float, fp: float, fn: float, tn: float, measures: FloatArray, reasons: Int8Array
) -> None:
    """Write the measures that need a positive class."""
    measures[slots.TP], measures[slots.FP], measures[slots.TN], measures[slots.FN] = tp, fp, tn, fn
    measures[slots.CMD] = tp * tn - fp * fn
    write_ratio(tp, tp + fp, slots.PRECISION, NO_PREDICTED_POSITIVES, measures, reasons)
    write_ratio(tp, tp + fn, slots.RECALL, NO_POSITIVES, measures, reasons)
    write_ratio(tn, tn + fp, slots.SPECIFICITY, NO_NEGATIVES, measures, reasons)
    write_ratio(2.0 * tp, 2.0 * tp + fp + fn, slots.F1, NOTHING_TO_AVERAGE, measures, reasons)


@kernel
def sort_ascending(values: FloatArray, count: int) -> None:
    """Sort the first `count` values in place, by Shell's method.

    `np.sort` in a kernel takes 1.2 s of processor time to compile, this function .1 s.
    """
    gap = count // 2
    while gap > 0:
        for i in range(gap, count):
            value = values[i]
            place = i
            while place >= gap and values[place - gap] > value:
                values[place] = values[place - gap]
                place -= gap
            values[place] = value
        gap //= 2


@kernel
def write_recall_means(
    classes: Any, count: int, recalls: FloatArray, measures: FloatArray, reasons: Int8Array
) -> None:
    """Write the arithmetic, geometric and harmonic mean of the recalls of the labels' classes.

    classes  counts of events, or masses in the same layout
    recalls  room for `count` numbers. An array allocated here would take 30 ns a row.
    """
    present = 0
    for code in range(count):
        if classes[LABELS, code] > 0:
            recalls[present] = classes[CORRECT, code] / classes[LABELS, code]
            present += 1
    total, logarithms, reciprocals = 0.0, 0.0, 0.0
    # The smallest value comes first: a sum depends on the order of its terms, and the codes depend on how the
    # stream was cut.
    sort_ascending(recalls, present)
    for recall in recalls[:present]:
        total += recall
        if recall > 0.0:
            logarithms += np.log(recall)
            reciprocals += 1.0 / recall
    if present < 2:
        for measure in (slots.BALANCED_ACCURACY, slots.G_MEAN, slots.HARMONIC_MEAN):
            reasons[measure] = ONE_CLASS
        return
    measures[slots.BALANCED_ACCURACY] = total / present
    measures[slots.G_MEAN] = np.exp(logarithms / present) if recalls[0] > 0.0 else 0.0
    measures[slots.HARMONIC_MEAN] = present / reciprocals if recalls[0] > 0.0 else 0.0


@kernel
def refuse_binary(reasons: Int8Array) -> None:
    """Write the reason of the measures that need a positive class: no positive class is named."""
    for measure in slots.BINARY:
        reasons[measure] = NO_POSITIVE_CLASS


def decision_measures(
    counters: Int64Array,
    classes: Int64Array,
    positive: int,
    numbers: FloatArray,
    reasons: Int8Array,
) -> None:
    """Write the measures of `write_decisions`, for callers in Python."""
    write_decisions(counters, classes, positive, np.empty(counters[CLASSES]), numbers, reasons)


@scanning
def write_decisions(
    counters: Int64Array,
    classes: Int64Array,
    positive: int,
    recalls: FloatArray,
    numbers: FloatArray,
    reasons: Int8Array,
) -> None:
    """Write accuracy, the kappa family and the other decision measures.

    See docs/architecture/math.md, "Decisions".

    positive  code of the positive class, or -1: measures that need a positive class are then null, with a
              reason
    recalls   room for a number of each class
    numbers, reasons  one row of `Rows`
    """
    events = float(counters[HELD])
    if events == 0.0:
        return
    measures = numbers[slots.MEASURES :]
    count = int(counters[CLASSES])
    correct, chance, label_squares, prediction_squares = 0.0, 0.0, 0.0, 0.0
    for code in range(count):
        label_mass, predicted_mass = float(classes[LABELS, code]), float(classes[PREDICTIONS, code])
        correct += classes[CORRECT, code]
        chance += label_mass * predicted_mass
        label_squares += label_mass * label_mass
        prediction_squares += predicted_mass * predicted_mass
    accuracy = correct / events
    measures[slots.ACCURACY] = accuracy
    square = events * events
    write_ratio(correct * events - chance, square - chance, slots.KAPPA, CHANCE_IS_CERTAIN, measures, reasons)
    of_majority, of_persistent = counters[MAJORITY_HITS], counters[PERSISTENT_HITS]
    write_ratio(
        correct - of_majority, events - of_majority, slots.KAPPA_M, MAJORITY_IS_RIGHT, measures, reasons
    )
    write_ratio(
        correct - of_persistent, events - of_persistent, slots.KAPPA_PER, PERSISTENT_IS_RIGHT,
        measures, reasons,
    )  # fmt: skip
    mcc = correlation(correct * events - chance, square - label_squares, square - prediction_squares)
    measures[slots.MCC] = mcc
    if np.isnan(mcc):
        reasons[slots.MCC] = EMPTY_MARGIN
    write_recall_means(classes, count, recalls, measures, reasons)
    if positive < 0:
        refuse_binary(reasons)
        return
    tp = float(classes[CORRECT, positive])
    fp = classes[PREDICTIONS, positive] - tp
    fn = classes[LABELS, positive] - tp
    write_binary(tp, fp, fn, events - tp - fp - fn, measures, reasons)


@inlined
def baseline_hits(label: Integer, majority: Integer, last_label: Integer, first_class: int) -> int:
    """Return the bits that say which baselines predict a label right; see `apply_decisions`."""
    if last_label < 0:
        if label == first_class or (first_class == -2 and label != 0):
            return MAJORITY_HIT | PERSISTENT_HIT
        return 0
    hits = 0
    if label == majority:
        hits |= MAJORITY_HIT
    if label == last_label:
        hits |= PERSISTENT_HIT
    return hits


@entry
def apply_decisions(
    labels: Any,
    predictions: Any,
    flags: Int8Array,
    leaving: Int64Array,
    shifts: Int64Array,
    first_class: int,
    counters: Int64Array,
    classes: Int64Array,
    ring_labels: Any,
    ring_predictions: Any,
    ring_hits: Int8Array,
    positive: int,
    recalls: FloatArray,
    numbers: FloatArray,
    reasons: Int8Array,
) -> None:
    """Apply steps in order: set the hits of entering events, remove the oldest events, and count both.

    Write due rows.

    labels, predictions  codes of the steps' events
    flags, leaving, shifts  columns of the steps (steps.py)
    first_class          code that both baselines predict before any label; -1 for "never right", -2 for
                         "right when the label is not class 0"
    counters, classes    see the fields above; changed.
    ring_...             the window in a ring, slot HEAD the oldest, with room for all that enter; changed.
    positive, numbers, reasons  as in `decision_measures`, with one row of each for a due row.
    recalls              room for a number of each class
    """
    capacity = len(ring_labels)
    head, held, seq = counters[HEAD], counters[HELD], counters[SEQ]
    last_label, majority = counters[LAST_LABEL], counters[MAJORITY]
    majority_hits, persistent_hits = counters[MAJORITY_HITS], counters[PERSISTENT_HITS]
    count = counters[CLASSES]
    row = 0
    for step in range(len(flags)):
        enters = flags[step] & ENTERS
        label, prediction = np.int64(labels[step]), np.int64(predictions[step])
        hits = 0
        if enters:
            hits = baseline_hits(label, majority, last_label, first_class)
        for _ in range(leaving[step]):
            old_label, old_prediction = np.int64(ring_labels[head]), ring_predictions[head]
            old_hits = ring_hits[head]
            head = head + 1 if head + 1 < capacity else 0
            held -= 1
            classes[LABELS, old_label] -= 1
            classes[PREDICTIONS, old_prediction] -= 1
            if old_label == old_prediction:
                classes[CORRECT, old_label] -= 1
            majority_hits -= old_hits & MAJORITY_HIT
            persistent_hits -= (old_hits & PERSISTENT_HIT) >> 1
            if old_label == majority:
                majority = majority_class(classes, count)
        if enters:
            slot = head + held
            if slot >= capacity:
                slot -= capacity
            if len(shifts) > 0:
                shift = shifts[step]
                move_on(ring_labels, slot, shift)
                move_on(ring_predictions, slot, shift)
                move_on(ring_hits, slot, shift)
                slot -= shift
                if slot < 0:
                    slot += capacity
            ring_labels[slot] = label
            ring_predictions[slot] = prediction
            ring_hits[slot] = hits | (FED_HIT if flags[step] & FED else 0)
            held += 1
            majority_hits += hits & MAJORITY_HIT
            persistent_hits += hits >> 1
            classes[LABELS, label] += 1
            classes[PREDICTIONS, prediction] += 1
            if label == prediction:
                classes[CORRECT, label] += 1
            classes[LAST_SEEN, label] = seq
            if majority < 0 or classes[LABELS, label] >= classes[LABELS, majority]:
                majority = label
            last_label = label
        if flags[step] & EVENT:
            seq += 1
        is_due = flags[step] & ROW_DUE
        if is_due or step == len(flags) - 1:
            counters[HEAD], counters[HELD], counters[SEQ] = head, held, seq
            counters[LAST_LABEL], counters[MAJORITY] = last_label, majority
            counters[MAJORITY_HITS], counters[PERSISTENT_HITS] = majority_hits, persistent_hits
        if is_due:
            write_decisions(counters, classes, positive, recalls, numbers[row], reasons[row])
            row += 1


def count_held(
    counters: Int64Array, classes: Int64Array, labels: Any, predictions: Any, hits: Int8Array
) -> None:
    """Count the events of a window that was stored: masses, hits and the majority. CLASSES is set before.

    labels, predictions, hits  the columns of the events in the window, as `apply_decisions` writes them
    """
    count = int(counters[CLASSES])
    agreed = labels[labels == predictions]
    for kind, codes in zip((LABELS, PREDICTIONS, CORRECT), (labels, predictions, agreed), strict=True):
        classes[kind, :count] = np.bincount(codes, minlength=count)
    counters[MAJORITY] = majority_class(classes, count)
    counters[MAJORITY_HITS] = np.count_nonzero(hits & MAJORITY_HIT)
    counters[PERSISTENT_HITS] = np.count_nonzero(hits & PERSISTENT_HIT)
    counters[HELD] = len(labels)
