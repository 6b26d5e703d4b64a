"""Accuracy, kappa and the other measures of decisions, in a window whose events have weights.

Masses are exact sums (kernels/exact_sums.py). So the masses do not drift, and rows are equal to those of a
window whose masses are summed again. Differences of masses are also differences of exact sums. So errors and
right decisions are told apart even if one event has more weight than all others. The factors of products are
shares of the window's mass, so that products neither overflow nor become 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...arrays import FloatArray, Int8Array, Int64Array
from ...kernels.compile import Integer, allocating, kernel, scanning
from ...kernels.exact_sums import SUM_CHUNKS, add, add_sums, compare, rounded
from ...measures.decisions import (
    CLASSES,
    CORRECT,
    HELD,
    LABELS,
    PREDICTIONS,
    correlation,
    refuse_binary,
    write_binary,
    write_ratio,
    write_recall_means,
)
from ...rows import slots
from ...rows.reasons import (
    CHANCE_IS_CERTAIN,
    EMPTY_MARGIN,
    MAJORITY_IS_RIGHT,
    OUT_OF_RANGE,
    PERSISTENT_IS_RIGHT,
)
from ...weighted_tree.layout import times_power

ALL, RIGHT_MAJORITY, RIGHT_PERSISTENT = range(3)
"""The exact sums of a window over all classes: its mass, and the masses of the hits of both baselines."""


class Masses(NamedTuple):
    """The exact sums of weights.

    For each class there are the sums of label, prediction and correct, and the sums of the whole window.
    """

    of_classes: Int64Array  # shape (3, classes, SUM_CHUNKS), by LABELS, PREDICTIONS, CORRECT
    of_all: Int64Array  # shape (3, SUM_CHUNKS)

    def with_classes(self, classes: int) -> Masses:
        """Return the same sums with room for at least `classes` classes."""
        more = classes - self.of_classes.shape[1]
        if more <= 0:
            return self
        new = np.zeros((3, more, SUM_CHUNKS), np.int64)
        return self._replace(of_classes=np.concatenate([self.of_classes, new], axis=1))


def no_masses(classes: int) -> Masses:
    """Return the sums of a window without events."""
    return Masses(np.zeros((3, classes, SUM_CHUNKS), np.int64), np.zeros((3, SUM_CHUNKS), np.int64))


@allocating
def difference(sums: Int64Array, others: Int64Array, rest: Int64Array) -> float:
    """Return sums - others, rounded once; `rest` is scratch space for a sum."""
    rest[:] = sums
    add_sums(rest, others, -1)
    return rounded(rest)


@kernel
def in_unit(mass: float, unit: float, exponent: int) -> float:
    """Return a mass in units of unit * 2^exponent; infinite or 0 if the result is beyond floats."""
    return times_power(mass / unit, -exponent)


@allocating
def confusion(masses: Masses, code: Integer, rest: Int64Array) -> tuple[float, float, float, float]:
    """Return the masses tp, fp, fn, tn of one class against all others; `rest` is scratch space for a sum."""
    label, predicted = masses.of_classes[LABELS, code], masses.of_classes[PREDICTIONS, code]
    correct = masses.of_classes[CORRECT, code]
    fp, fn = difference(predicted, correct, rest), difference(label, correct, rest)
    add_sums(rest, predicted, 1)
    either = rest.copy()
    return rounded(correct), fp, fn, difference(masses.of_all[ALL], either, rest)


@allocating
def _write_agreement(
    counters: Int64Array,
    classes: Int64Array,
    masses: Masses,
    total: float,
    numbers: FloatArray,
    reasons: Int8Array,
) -> None:
    """Write accuracy, the kappa family and the means of recalls into a row."""
    count, measures = counters[CLASSES], numbers[slots.MEASURES :]
    rest, right = np.zeros(SUM_CHUNKS, np.int64), np.zeros(SUM_CHUNKS, np.int64)
    of_classes = np.zeros((3, count))
    # These are exact sums: terms are added in the order of codes, and that order depends on how the stream
    # was cut.
    sums = np.zeros((4, SUM_CHUNKS), np.int64)
    labels = predictions = 0
    for code in range(count):
        labels += classes[LABELS, code] > 0
        predictions += classes[PREDICTIONS, code] > 0
        add_sums(right, masses.of_classes[CORRECT, code], 1)
        tp, fp, fn, tn = confusion(masses, code, rest)
        of_classes[LABELS, code], of_classes[CORRECT, code] = tp + fn, tp
        tp, fp, fn, tn = tp / total, fp / total, fn / total, tn / total
        add(sums[0], tp * tn - fp * fn, 1)
        add(sums[1], (tp + fn) * (tn + fn), 1)  # agreement by chance, as in the next two lines
        add(sums[2], (tp + fn) * (tn + fp), 1)
        add(sums[3], (tp + fp) * (tn + fn), 1)
    disagreement, gain = rounded(sums[1]), min(rounded(sums[0]), rounded(sums[1]))
    label_spread, predicted_spread = rounded(sums[2]), rounded(sums[3])
    measures[slots.ACCURACY] = rounded(right) / total
    is_certain = labels == 1 and predictions == 1 and disagreement == 0.0
    reason = CHANCE_IS_CERTAIN if is_certain else OUT_OF_RANGE
    write_ratio(gain, disagreement, slots.KAPPA, reason, measures, reasons)
    reason = EMPTY_MARGIN if labels == 1 or predictions == 1 else OUT_OF_RANGE
    measures[slots.MCC] = correlation(gain, label_spread, predicted_spread)
    if np.isnan(measures[slots.MCC]):
        reasons[slots.MCC] = reason
    for measure, hits, reason in (
        (slots.KAPPA_M, RIGHT_MAJORITY, MAJORITY_IS_RIGHT),
        (slots.KAPPA_PER, RIGHT_PERSISTENT, PERSISTENT_IS_RIGHT),
    ):
        above = difference(right, masses.of_all[hits], rest)
        below = difference(masses.of_all[ALL], masses.of_all[hits], rest)
        write_ratio(above, below, measure, reason, measures, reasons)
    write_recall_means(of_classes, count, np.empty(count), measures, reasons)


@scanning
def weighted_measures(
    counters: Int64Array,
    classes: Int64Array,
    masses: Masses,
    positive: int,
    unit: float,
    exponent: int,
    numbers: FloatArray,
    reasons: Int8Array,
) -> None:
    """Write the measures of decisions into a row; unit * 2^exponent counts 1 in the row's masses."""
    measures = numbers[slots.MEASURES :]
    total = rounded(masses.of_all[ALL])
    if positive < 0:
        weight = in_unit(total, unit, exponent)
        numbers[slots.WEIGHT] = weight if np.isfinite(weight) else np.nan
    if counters[HELD] == 0:
        return
    if np.isfinite(total):
        _write_agreement(counters, classes, masses, total, numbers, reasons)
    else:
        reasons[slots.TP :] = OUT_OF_RANGE
    if positive < 0:
        refuse_binary(reasons)
    elif np.isfinite(total):
        tp, fp, fn, tn = confusion(masses, positive, np.zeros(SUM_CHUNKS, np.int64))
        write_binary(tp / total, fp / total, fn / total, tn / total, measures, reasons)
        tp, fp = in_unit(tp, unit, exponent), in_unit(fp, unit, exponent)
        fn, tn = in_unit(fn, unit, exponent), in_unit(tn, unit, exponent)
        measures[slots.TP], measures[slots.FP], measures[slots.TN], measures[slots.FN] = tp, fp, tn, fn
        cmd = tp * tn - fp * fn
        measures[slots.CMD] = cmd if np.isfinite(cmd) else np.inf
    for measure in range(slots.TP, len(measures)):
        if np.isinf(measures[measure]):
            measures[measure] = np.nan
            reasons[measure] = OUT_OF_RANGE


@scanning
def masses_of(masses: Masses, positive: int) -> tuple[float, float]:
    """Return the masses of negatives and of positives; infinite beyond the greatest float."""
    positives = masses.of_classes[LABELS, positive]
    negatives = difference(masses.of_all[ALL], positives, np.zeros(SUM_CHUNKS, np.int64))
    return negatives, rounded(positives)


@scanning
def rarer_before(
    labels: Int8Array, weights: FloatArray, masses: Masses, positive: int, rarer: Int8Array
) -> None:
    """Write 1 for each event whose class has less mass than the other class before the event, else 0.

    If both masses are equal, the value is 1 for positives. The events are taken as if no event left
    meanwhile. Labels are 1 for positives.
    """
    sums = np.zeros((2, SUM_CHUNKS), np.int64)
    sums[1] = masses.of_classes[LABELS, positive]
    difference(masses.of_all[ALL], sums[1], sums[0])
    for event in range(len(labels)):
        is_positive = compare(sums[1], sums[0]) <= 0
        rarer[event] = is_positive == (labels[event] == 1)
        add(sums[np.int64(labels[event])], weights[event], 1)
