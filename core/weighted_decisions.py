"""Decisions of a window whose events have weights: the counterpart of `decisions` for real numbers.

Masses are exact sums (exact_sums.py), so that they do not drift however many weights come and go, and rows
are those of a window that was summed anew. For the measures they are taken as shares of the window's mass:
products of masses neither overflow nor vanish.

The window lies in a ring as it does there. Where events fade (`fade`), an event leaves not in the order of
arrival but when its weight has become nothing beside the mass of its own class: it is marked GONE where it
lies, and the ring, which then never wraps, has gaps until somebody closes them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .decisions import (
    CLASSES,
    CORRECT,
    COUNTERS,
    FED_HIT,
    HEAD,
    LABELS,
    LAST_LABEL,
    LAST_SEEN,
    MAJORITY,
    MAJORITY_HIT,
    MAJORITY_HITS,
    PERSISTENT_HIT,
    PERSISTENT_HITS,
    PREDICTIONS,
    write_agreement,
    write_binary,
)
from .events import FloatArray, Int8Array, Int64Array
from .exact_sums import SUM_CHUNKS, add, add_sums, negate, rounded
from .kernels import Integer, scanning
from .rows import NUMBER_COLUMNS, OUT_OF_RANGE
from .settings import MEASURES
from .steps import ENTERS, EVENT, FED, HELD, ROW_DUE, SEQ

GONE = 8
"""Bit of an event's hits: it has faded, and lies in a gap of the ring."""

NEGLIGIBLE = 2.0**-53
"""Of the mass of its class: an event that weighs no more is dropped where events fade."""

ALL, RIGHT_MAJORITY, RIGHT_PERSISTENT = range(3)
"""The exact sums of a window that are of no class: its mass, and those of the baselines' hits."""

_MEASURE = len(NUMBER_COLUMNS) - len(MEASURES)
_TP, _FP = MEASURES.index("tp"), MEASURES.index("fp")
_TN, _FN, _CMD = MEASURES.index("tn"), MEASURES.index("fn"), MEASURES.index("cmd")


class WeightedRing(NamedTuple):
    """The window, an array a column: class codes, hits, scores, weights; times where they are kept."""

    labels: Any
    predictions: Any
    hits: Int8Array
    scores: FloatArray
    weights: FloatArray
    times: Int64Array


class Masses(NamedTuple):
    """Exact sums of weights: of label, prediction and correct of each class, and of the whole window."""

    of_classes: Int64Array  # (3, classes, SUM_CHUNKS), by LABELS, PREDICTIONS, CORRECT
    of_all: Int64Array  # (3, SUM_CHUNKS)


class Changes(NamedTuple):
    """What came and went, in order: slots of the ring, and 1 or -1.

    And of rows: how many changes came before, how many events are held, slots of the oldest and the newest.
    """

    slots: Int64Array
    signs: Int8Array
    ends: Int64Array
    held: Int64Array
    oldest: Int64Array
    newest: Int64Array


@scanning
def weigh(
    ring: WeightedRing, slot: Integer, sign: int, counters: Int64Array, classes: Int64Array, masses: Masses
) -> None:
    """Add the event of a slot to all masses and counts, or take it out."""
    label, prediction = np.int64(ring.labels[slot]), np.int64(ring.predictions[slot])
    weight, hits = ring.weights[slot], ring.hits[slot]
    counters[HELD] += sign
    classes[LABELS, label] += sign
    classes[PREDICTIONS, prediction] += sign
    add(masses.of_all[ALL], weight, sign)
    add(masses.of_classes[LABELS, label], weight, sign)
    add(masses.of_classes[PREDICTIONS, prediction], weight, sign)
    if label == prediction:
        classes[CORRECT, label] += sign
        add(masses.of_classes[CORRECT, label], weight, sign)
    if hits & MAJORITY_HIT:
        counters[MAJORITY_HITS] += sign
        add(masses.of_all[RIGHT_MAJORITY], weight, sign)
    if hits & PERSISTENT_HIT:
        counters[PERSISTENT_HITS] += sign
        add(masses.of_all[RIGHT_PERSISTENT], weight, sign)


@scanning
def heaviest_class(label_masses: FloatArray, classes: Int64Array, count: Integer) -> int:
    """Return the class with the largest label mass, of tied ones the one seen last; -1 for none."""
    best = -1
    for code in range(count):
        mass = label_masses[code]
        if classes[LABELS, code] > 0 and (
            best < 0
            or mass > label_masses[best]
            or (mass == label_masses[best] and classes[LAST_SEEN, code] > classes[LAST_SEEN, best])
        ):
            best = code
    return best


@scanning
def weighted_measures(
    counters: Int64Array,
    masses: Masses,
    positive: int,
    unit: float,
    numbers: FloatArray,
    reasons: Int8Array,
) -> None:
    """Write the measures of decisions; `unit` is what counts 1 in the row's masses."""
    count = counters[CLASSES]
    total = rounded(masses.of_all[ALL])
    if counters[HELD] == 0:
        return
    shares = np.zeros(COUNTERS)
    shares[HELD] = 1.0
    shares[CLASSES] = count
    shares[MAJORITY_HITS] = rounded(masses.of_all[RIGHT_MAJORITY]) / total
    shares[PERSISTENT_HITS] = rounded(masses.of_all[RIGHT_PERSISTENT]) / total
    of_classes = np.zeros((3, count))
    for kind in range(3):
        for code in range(count):
            of_classes[kind, code] = rounded(masses.of_classes[kind, code]) / total
    write_agreement(shares, of_classes, positive, numbers, reasons)
    if positive < 0:
        return
    measures = numbers[_MEASURE:]
    correct = masses.of_classes[CORRECT, positive]
    rest = np.zeros(SUM_CHUNKS, np.int64)
    add_sums(rest, masses.of_classes[PREDICTIONS, positive], 1)
    add_sums(rest, correct, -1)
    fp = rounded(rest)
    rest[:] = 0
    add_sums(rest, masses.of_classes[LABELS, positive], 1)
    add_sums(rest, correct, -1)
    fn = rounded(rest)
    add_sums(rest, masses.of_classes[PREDICTIONS, positive], 1)
    negate(rest)
    add_sums(rest, masses.of_all[ALL], 1)
    tn, tp = rounded(rest), rounded(correct)
    write_binary(tp / total, fp / total, fn / total, tn / total, measures, reasons)
    for measure, mass in ((_TP, tp), (_FP, fp), (_TN, tn), (_FN, fn)):
        measures[measure] = mass / unit
    measures[_CMD] = (tp / unit) * (tn / unit) - (fp / unit) * (fn / unit)
    for measure in (_TP, _FP, _TN, _FN, _CMD):
        if not np.isfinite(measures[measure]):
            measures[measure] = np.nan
            reasons[measure] = OUT_OF_RANGE


@scanning
def ends_of_gaps(ring: WeightedRing, heads: Int64Array, span: int, classes: Int64Array) -> tuple[int, int]:
    """Return the slots of the oldest and the newest event held, where events fade."""
    oldest = span
    for code in range(len(heads)):
        if classes[LABELS, code] > 0:
            slot = heads[code]
            while np.int64(ring.labels[slot]) != code or ring.hits[slot] & GONE:
                slot += 1
            heads[code] = slot
            oldest = min(oldest, slot)
    return oldest, span - 1


@scanning
def apply_weighted(
    labels: Any,
    predictions: Any,
    scores: FloatArray,
    weights: FloatArray,
    times: Int64Array,
    units: FloatArray,
    flags: Int8Array,
    leaving: Int64Array,
    shifts: Int64Array,
    first_class: int,
    counters: Int64Array,
    classes: Int64Array,
    label_masses: FloatArray,
    masses: Masses,
    ring: WeightedRing,
    heads: Int64Array,
    span: int,
    positive: int,
    numbers: FloatArray,
    reasons: Int8Array,
    changes: Changes,
) -> tuple[int, int]:
    """Apply steps as `apply_decisions` does, each event with its weight; return changes made, and slots used.

    weights       of the steps' events; where they fade, as large as the common factor makes them
    times         of them, or empty where the ring keeps none
    units         what counts 1 in the masses of a row after each step
    label_masses  float64 per class: its label mass, rounded; changed
    ring          with room for all that enters beside all that is there; changed
    heads         where events fade, of each class a slot before which none is left of it; else empty
    span          where events fade, slots used, gaps included; else anything
    changes       filled, with room for what enters and leaves
    """
    capacity = len(ring.labels)
    fades = len(heads) > 0
    row = made = 0
    for step in range(len(flags)):
        enters = flags[step] & ENTERS
        label = np.int64(labels[step])
        hits = 0
        if enters:
            last_label = counters[LAST_LABEL]
            if last_label < 0:
                if label == first_class or (first_class == -2 and label != 0):
                    hits = MAJORITY_HIT | PERSISTENT_HIT
            else:
                if label == counters[MAJORITY]:
                    hits |= MAJORITY_HIT
                if label == last_label:
                    hits |= PERSISTENT_HIT
        for _ in range(leaving[step]):
            slot = counters[HEAD]
            old = np.int64(ring.labels[slot])
            weigh(ring, slot, -1, counters, classes, masses)
            label_masses[old] = rounded(masses.of_classes[LABELS, old])
            counters[HEAD] = slot + 1 if slot + 1 < capacity else 0
            changes.slots[made], changes.signs[made] = slot, -1
            made += 1
        if leaving[step] > 0:
            counters[MAJORITY] = heaviest_class(label_masses, classes, counters[CLASSES])
        if enters:
            slot = span if fades else (counters[HEAD] + counters[HELD]) % capacity
            if len(shifts) > 0:
                for _ in range(shifts[step]):
                    before = slot - 1 if slot > 0 else capacity - 1
                    ring.labels[slot] = ring.labels[before]
                    ring.predictions[slot] = ring.predictions[before]
                    ring.hits[slot] = ring.hits[before]
                    ring.scores[slot] = ring.scores[before]
                    ring.weights[slot] = ring.weights[before]
                    slot = before
            ring.labels[slot], ring.predictions[slot] = label, predictions[step]
            ring.hits[slot] = hits | (FED_HIT if flags[step] & FED else 0)
            ring.scores[slot], ring.weights[slot] = scores[step], weights[step]
            if len(ring.times) > 0:
                ring.times[slot] = times[step]
            weigh(ring, slot, 1, counters, classes, masses)
            label_masses[label] = rounded(masses.of_classes[LABELS, label])
            classes[LAST_SEEN, label] = counters[SEQ]
            counters[LAST_LABEL] = label
            if counters[MAJORITY] < 0 or label_masses[label] >= label_masses[counters[MAJORITY]]:
                counters[MAJORITY] = label
            changes.slots[made], changes.signs[made] = slot, 1
            made += 1
        if enters and fades:
            span += 1
            while True:
                slot = heads[label]
                while np.int64(ring.labels[slot]) != label or ring.hits[slot] & GONE:
                    slot += 1
                heads[label] = slot
                if slot == span - 1 or ring.weights[slot] > NEGLIGIBLE * label_masses[label]:
                    break
                weigh(ring, slot, -1, counters, classes, masses)
                label_masses[label] = rounded(masses.of_classes[LABELS, label])
                ring.hits[slot] |= GONE
                changes.slots[made], changes.signs[made] = slot, -1
                made += 1
        if flags[step] & EVENT:
            counters[SEQ] += 1
        if flags[step] & ROW_DUE:
            weighted_measures(counters, masses, positive, units[step], numbers[row], reasons[row])
            changes.ends[row] = made
            changes.held[row] = counters[HELD]
            changes.oldest[row], changes.newest[row] = ends_of_gaps(ring, heads, span, classes)
            row += 1
    return made, span


@scanning
def weigh_all(
    ring: WeightedRing,
    held: Integer,
    counters: Int64Array,
    classes: Int64Array,
    label_masses: FloatArray,
    masses: Masses,
) -> None:
    """Sum the first events of a ring anew; counts and masses are empty before."""
    for slot in range(held):
        weigh(ring, slot, 1, counters, classes, masses)
    for code in range(len(label_masses)):
        label_masses[code] = rounded(masses.of_classes[LABELS, code])
    counters[MAJORITY] = heaviest_class(label_masses, classes, counters[CLASSES])
