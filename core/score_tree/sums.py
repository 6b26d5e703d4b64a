"""Sums that a tree keeps exactly: for the area of AUM, and for the losses of probabilities.

The first call that asks for a sum starts it, by one pass over the entries (`begin_sums`). From then on every
event adds its term when it comes and subtracts it when it goes, which takes a few nanoseconds. A row rounds
the sum.

FP and FN cross at a score t. AUM is a sum over the negatives above t and over the positives below t, and t
moves as events come and go. The tree keeps the sums on either side of a reference: the t of the last row that
asked for AUM. A row finds t by one descent, and moves the reference to t, entry by entry. Each event moves t
past at most one other event. So the events between t and the reference are no more than the events that came
and went since that row: O(1) per event, amortised, in any order of events.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import Any

from ..kernels.compile import entry, inlined, kernel
from ..kernels.exact_sums import add, add_times, rounded
from ..kernels.records import at, whole
from ..measures.sums import AREA, BRIER, LOG_LOSS, area_under_min, brier_term, log_loss_term
from .bucket import by_class, entry_of, slot_of
from .build import neighbour, outermost_bucket
from .layout import FIRST_KEY, LEFT, NO_PLACE, RIGHT, Tree, score_of
from .query import entry_at, slot_of_rank


@inlined
def note_event(tree: Tree, key: int, label: int, sign: int) -> None:
    """Add the terms of an event that came (sign = 1) to the sums that are kept, or subtract them (-1)."""
    state = tree.state[0]
    if state.keeps_area != 0:
        if label == 0 and key > state.reference:
            add(tree.sums[AREA], score_of(key), sign)
            state.negatives_above += sign
        elif label != 0 and key < state.reference:
            add(tree.sums[AREA], -score_of(key), sign)
            state.positives_below += sign
    if state.keeps_losses != 0:
        score = score_of(key)
        add(tree.sums[BRIER], brier_term(score, label), sign)
        add(tree.sums[LOG_LOSS], log_loss_term(score, label), sign)


@kernel
def move_reference(tree: Tree, index: int, slot: int) -> None:
    """Move the reference to the entry in a slot, by a walk over the entries between both places."""
    state = tree.state[0]
    sums = tree.sums[AREA]
    crossing = tree.buckets[at(index)].key[slot]
    low = min(crossing, state.reference)
    high = max(crossing, state.reference)
    step = whole(1) if crossing < state.reference else whole(-1)
    side = whole(RIGHT) if step > 0 else whole(LEFT)
    state.reference = crossing
    while True:
        bucket = tree.buckets[at(index)]
        while (slot >= 1) & (slot <= bucket.count):
            key = bucket.key[slot]
            if (key < low) | (key > high):
                return
            negatives, positives = by_class(0, *entry_of(bucket, slot))
            # above `low`: a reference that moves down adds them
            gained = negatives if key > low else whole(0)
            lost = positives if key < high else whole(0)
            if gained > 0:
                add_times(sums, score_of(key), step * gained)
                state.negatives_above += step * gained
            if lost > 0:
                add_times(sums, -score_of(key), -step * lost)
                state.positives_below -= step * lost
            slot += step
        index = neighbour(tree, index, side)
        if index == NO_PLACE:
            return
        slot = whole(1) if step > 0 else whole(tree.buckets[at(index)].count)


@inlined
def crossing_entry(tree: Tree) -> tuple[int, int]:
    """Return bucket and slot of the entry at which FP and FN cross: the entry of the N-th lowest event.

    N is the number of negatives. The entry is nearly always in the bucket of the reference, below which the
    number of events is known. Otherwise a descent finds the entry.
    """
    state = tree.state[0]
    negatives = state.weight - state.positives
    index = state.reference_bucket
    if index < state.fresh_bucket:
        bucket = tree.buckets[at(index)]
        count = whole(bucket.count)
        if (count > 0) and (bucket.key[1] <= state.reference) and (state.reference <= bucket.key[at(count)]):
            slot = slot_of(bucket, state.reference)
            tied = whole(0)
            if bucket.key[at(slot)] == state.reference:
                tied, _ = by_class(0, *entry_of(bucket, slot))
            below = state.positives_below + negatives - state.negatives_above - tied
            rank = negatives - 1 - below + bucket.weight[at(slot - 1)]
            if (rank >= 0) & (rank < bucket.weight[at(count)]):
                return index, slot_of_rank(bucket, rank)
    return entry_at(tree, negatives - 1)


@kernel
def area_now(tree: Tree) -> float:
    """Return AUM of a window with both classes; the tree must keep its sums. O(log k) amortised."""
    state = tree.state[0]
    index, slot = crossing_entry(tree)
    state.reference_bucket = index
    crossing = tree.buckets[at(index)].key[slot]
    if crossing != state.reference:
        move_reference(tree, index, slot)
    return area_under_min(tree.sums[AREA], state.positives_below, state.negatives_above, score_of(crossing))


@kernel
def write_losses(tree: Tree, row: Any) -> None:
    """Write the mean losses of a window that is not empty; the tree must keep their sums. O(1)."""
    state = tree.state[0]
    row.brier = rounded(tree.sums[BRIER]) / state.weight
    row.log_loss = rounded(tree.sums[LOG_LOSS]) / state.weight


@entry
def begin_sums(tree: Tree, with_area: int, with_losses: int) -> None:
    """Start to keep sums (1: yes), from the entries. O(k). The reference of AUM is then below all entries.

    This is a kernel apart from the loop of all events, in which this code would take seconds to compile.
    """
    state = tree.state[0]
    state.keeps_area |= with_area
    state.keeps_losses |= with_losses
    index = outermost_bucket(tree, state.root, LEFT)
    while index != NO_PLACE:
        bucket = tree.buckets[at(index)]
        for slot in range(1, bucket.count + 1):
            score = score_of(bucket.key[slot])
            for label in range(2):
                events, _ = by_class(label, *entry_of(bucket, slot))
                if events == 0:
                    continue
                if (with_area != 0) & (label == 0):
                    add_times(tree.sums[AREA], score, events)
                if with_losses != 0:
                    add_times(tree.sums[BRIER], brier_term(score, label), events)
                    add_times(tree.sums[LOG_LOSS], log_loss_term(score, label), events)
        index = neighbour(tree, index, RIGHT)
    if with_area != 0:
        state.reference = FIRST_KEY
        state.negatives_above = state.weight - state.positives
        state.positives_below = 0
