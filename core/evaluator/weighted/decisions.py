"""The decisions of a window whose events have weights.

The module is the counterpart of measures/decisions.py for real numbers.

Counts of events are whole numbers, and masses are exact sums (measures.py).

The window is a ring, as in measures/decisions.py. A fading event leaves when its weight is negligible beside
the mass of its own class. So events may leave in another order than the order of arrival. The slot of an
event that left is marked GONE: the slot is a gap. A ring of fading events never returns to its start, and
`WeightedWindow` closes the gaps.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...arrays import FloatArray, Int8Array, Int64Array
from ...kernels.compile import Integer, kernel, scanning
from ...kernels.exact_sums import add, compare, rounded
from ...kernels.rings import move_on
from ...measures.decisions import (
    CLASSES,
    CORRECT,
    FED_HIT,
    HEAD,
    HELD,
    LABELS,
    LAST_LABEL,
    LAST_SEEN,
    MAJORITY,
    MAJORITY_HIT,
    MAJORITY_HITS,
    PERSISTENT_HIT,
    PERSISTENT_HITS,
    PREDICTIONS,
    SEQ,
    baseline_hits,
)
from ...measures.steps import ENTERS, EVENT, FED, ROW_DUE, Steps
from ..event_columns import Columns
from .measures import ALL, RIGHT_MAJORITY, RIGHT_PERSISTENT, Masses, weighted_measures

GONE = 8
"""The bit of an event's hits which says that the event has faded, and that its slot is a gap of the ring."""

NEGLIGIBLE = 2.0**-53
"""The share of the mass of its class at or below which a fading event is dropped."""


class WeightedRing(NamedTuple):
    """The window as one array for each column.

    The arrays have class codes, hits, scores, weights, and times if they are kept.
    """

    labels: Any
    predictions: Any
    hits: Int8Array
    scores: FloatArray
    weights: FloatArray
    times: Int64Array


class Changes(NamedTuple):
    """The events that entered (sign 1) and left (sign -1), in order, by their slots of the ring.

    For each row there is also the number of changes before the row, the number of events in the window, and
    the slots of the oldest and the newest event.
    """

    slots: Int64Array
    signs: Int8Array
    ends: Int64Array
    held: Int64Array
    oldest: Int64Array
    newest: Int64Array


@kernel
def weigh(
    ring: WeightedRing, slot: Integer, sign: int, counters: Int64Array, classes: Int64Array, masses: Masses
) -> None:
    """Add the event of a slot to all masses and counts (sign 1), or subtract the event (sign -1)."""
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


@kernel
def heaviest_class(masses: Masses, classes: Int64Array, count: Integer) -> int:
    """Return the class with the largest label mass, and of equal classes the class that came last.

    -1 if there are no classes.
    """
    best = -1
    for code in range(count):
        if classes[LABELS, code] == 0:
            continue
        order = 1
        if best >= 0:
            order = compare(masses.of_classes[LABELS, code], masses.of_classes[LABELS, best])
        if order > 0 or (order == 0 and classes[LAST_SEEN, code] > classes[LAST_SEEN, best]):
            best = code
    return best


@kernel
def next_of_class(ring: WeightedRing, slot: Integer, code: Integer) -> Integer:
    """Return the first slot, from `slot` on, that holds a fading event of a class.

    There must be such a slot.
    """
    while np.int64(ring.labels[slot]) != code or ring.hits[slot] & GONE:
        slot += 1
    return slot


@kernel
def ends_of_gaps(ring: WeightedRing, heads: Int64Array, span: int, classes: Int64Array) -> tuple[int, int]:
    """Return the slots of the oldest and the newest fading event in the window.

    The window must hold an event.
    """
    oldest = span
    for code in range(len(heads)):
        if classes[LABELS, code] > 0:
            heads[code] = next_of_class(ring, heads[code], code)
            oldest = min(oldest, heads[code])
    return oldest, span - 1


@scanning
def apply_weighted(
    columns: Columns,
    steps: Steps,
    units: FloatArray,
    exponents: Int64Array,
    first_class: int,
    counters: Int64Array,
    classes: Int64Array,
    masses: Masses,
    ring: WeightedRing,
    heads: Int64Array,
    span: int,
    positive: int,
    decides: bool,
    numbers: FloatArray,
    reasons: Int8Array,
    changes: Changes,
) -> tuple[int, int]:
    """Apply steps as `apply_decisions` does, each event with its weight.

    Return the number of changes, and the number of slots in use.

    columns       the columns of the steps' events, with times; the weights of fading events are inflated
                  (window.py)
    units, exponents  for each step: unit * 2^exponent counts 1 in the masses of a row after the step
    ring          the window, with room for all entering events beside those in the window; the function
                  changes the ring
    heads         if events fade, for each class a slot before which the ring has no event of the class; else
                  empty
    span          if events fade, the number of slots in use, with the gaps; else ignored
    decides       whether rows have measures of decisions at all
    changes       the function fills them; they must have room for every event that enters or leaves
    """
    flags, leaving, shifts = steps.flags, steps.leaving, steps.shifts
    times: Any = columns.times
    capacity = len(ring.labels)
    fades = len(heads) > 0
    row = made = 0
    for step in range(len(flags)):
        enters = flags[step] & ENTERS
        label = np.int64(columns.label_codes[step])
        hits = 0
        if enters:
            hits = baseline_hits(label, counters[MAJORITY], counters[LAST_LABEL], first_class)
        majority_shrank = False
        for _ in range(leaving[step]):
            slot = counters[HEAD]
            majority_shrank |= np.int64(ring.labels[slot]) == counters[MAJORITY]
            weigh(ring, slot, -1, counters, classes, masses)
            counters[HEAD] = slot + 1 if slot + 1 < capacity else 0
            changes.slots[made], changes.signs[made] = slot, -1
            made += 1
        if majority_shrank:
            counters[MAJORITY] = heaviest_class(masses, classes, counters[CLASSES])
        if enters:
            slot = span if fades else (counters[HEAD] + counters[HELD]) % capacity
            if len(shifts) > 0:
                shift = shifts[step]
                move_on(ring.labels, slot, shift)
                move_on(ring.predictions, slot, shift)
                move_on(ring.hits, slot, shift)
                move_on(ring.scores, slot, shift)
                move_on(ring.weights, slot, shift)
                slot -= shift
                if slot < 0:
                    slot += capacity
            ring.labels[slot], ring.predictions[slot] = label, columns.predicted_codes[step]
            ring.hits[slot] = hits | (FED_HIT if flags[step] & FED else 0)
            ring.scores[slot], ring.weights[slot] = columns.scores[step], columns.weights[step]
            if len(ring.times) > 0:
                ring.times[slot] = times[step]
            weigh(ring, slot, 1, counters, classes, masses)
            classes[LAST_SEEN, label] = counters[SEQ]
            counters[LAST_LABEL] = label
            majority = counters[MAJORITY]
            if majority < 0 or (
                compare(masses.of_classes[LABELS, label], masses.of_classes[LABELS, majority]) >= 0
            ):
                counters[MAJORITY] = label
            changes.slots[made], changes.signs[made] = slot, 1
            made += 1
        if enters and fades:
            span += 1
            before = made
            negligible = NEGLIGIBLE * rounded(masses.of_classes[LABELS, label])
            while True:
                slot = heads[label] = next_of_class(ring, heads[label], label)
                if slot == span - 1 or ring.weights[slot] > negligible:
                    break
                weigh(ring, slot, -1, counters, classes, masses)
                ring.hits[slot] |= GONE
                changes.slots[made], changes.signs[made] = slot, -1
                made += 1
            if made > before and counters[MAJORITY] == label:
                counters[MAJORITY] = heaviest_class(masses, classes, counters[CLASSES])
        if flags[step] & EVENT:
            counters[SEQ] += 1
        if flags[step] & ROW_DUE:
            if decides:
                weighted_measures(
                    counters, classes, masses, positive, units[step], exponents[step], numbers[row],
                    reasons[row],
                )  # fmt: skip
            changes.ends[row] = made
            changes.held[row] = counters[HELD]
            changes.oldest[row], changes.newest[row] = ends_of_gaps(ring, heads, span, classes)
            row += 1
    return made, span


@scanning
def weigh_all(
    ring: WeightedRing, held: Integer, counters: Int64Array, classes: Int64Array, masses: Masses
) -> None:
    """Add the first `held` events of a ring to the counts and masses, which are empty before."""
    for slot in range(held):
        weigh(ring, slot, 1, counters, classes, masses)
    counters[MAJORITY] = heaviest_class(masses, classes, counters[CLASSES])
