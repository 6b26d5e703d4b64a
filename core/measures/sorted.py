"""Operations on sorted scores: merge two runs, insert an event, place events, group equal scores."""

from __future__ import annotations

import numpy as np

from ..arrays import FloatArray, Int8Array, Int64Array
from ..kernels.compile import scanning
from ..kernels.rings import move_on


@scanning
def merge_sorted(
    scores: FloatArray,
    labels: Int8Array,
    removed_scores: FloatArray,
    removed_labels: Int8Array,
    added_scores: FloatArray,
    added_labels: Int8Array,
    out_scores: FloatArray,
    out_labels: Int8Array,
) -> int:
    """Remove events from the sorted window, and merge added events into it; return the new number of events.

    All three inputs are sorted by (score, label). An event that enters and leaves between two rows may be
    both among the added and among the removed events. Linear in the length of all inputs.
    """
    n = old = gone = new = 0
    while old < len(scores) or new < len(added_scores):
        take_new = old == len(scores) or (
            new < len(added_scores)
            and (
                added_scores[new] < scores[old]
                or (added_scores[new] == scores[old] and added_labels[new] < labels[old])
            )
        )
        if take_new:
            score, label = added_scores[new], added_labels[new]
            new += 1
        else:
            score, label = scores[old], labels[old]
            old += 1
        if gone < len(removed_scores) and removed_scores[gone] == score and removed_labels[gone] == label:
            gone += 1
        else:
            out_scores[n] = score
            out_labels[n] = label
            n += 1
    return n if gone == len(removed_scores) else -1


@scanning
def insert_shifted(
    ring_scores: FloatArray,
    ring_labels: Int8Array,
    head: int,
    held: int,
    scores: FloatArray,
    labels: Int8Array,
    shifts: Int64Array,
) -> None:
    """Insert events into a ring, event i before the `shifts[i]` youngest events."""
    capacity = len(ring_scores)
    for event in range(len(scores)):
        place = (head + held) % capacity
        move_on(ring_scores, place, shifts[event])
        move_on(ring_labels, place, shifts[event])
        place = (place - shifts[event]) % capacity
        ring_scores[place], ring_labels[place] = scores[event], labels[event]
        held += 1


@scanning
def place(
    labels: Int8Array,
    scores: FloatArray,
    chosen: Int64Array,
    ranks: Int64Array,
    negatives: int,
    positives: int,
    placements: FloatArray,
) -> None:
    """Write the placements of chosen events among the events of a window and the coming events before them.

    A placement is the share of the other class against which the event is ranked right, ties counted half. It
    is NaN if the other class has no event.

    labels, scores       the coming events, in order
    chosen               indices of the events that get a placement, ascending
    ranks                for each chosen event, its ranks in the window: events below, positives below, tied,
                         positives tied
    negatives, positives counts of the events in the window

    O(m^2) moves of neighbours for m events, fast up to some thousands.
    """
    coming = np.empty((2, len(scores)))
    counts = np.zeros(2, np.int64)
    held = np.array([negatives, positives])
    next_chosen = 0
    for event in range(len(scores)):
        if next_chosen == len(chosen):
            return
        label, score = np.int64(labels[event]), scores[event]
        if event == chosen[next_chosen]:
            other = 1 - label
            below, positives_below, tied, positives_tied = ranks[next_chosen]
            others = held[other] + counts[other]
            came = coming[other, : counts[other]]
            first, last = np.searchsorted(came, score), np.searchsorted(came, score, "right")
            if label:
                doubled = 2 * (below - positives_below + first) + tied - positives_tied + last - first
            else:
                above = positives - positives_below - positives_tied + counts[other] - last
                doubled = 2 * above + positives_tied + last - first
            placements[next_chosen] = doubled / (2.0 * others) if others > 0 else np.nan
            next_chosen += 1
        count = counts[label]
        slot = np.searchsorted(coming[label, :count], score)
        for after in range(count, slot, -1):
            coming[label, after] = coming[label, after - 1]
        coming[label, slot] = score
        counts[label] += 1


@scanning
def group_ties(
    scores: FloatArray,
    labels: Int8Array,
    keys: FloatArray,
    negatives: Int64Array,
    positives: Int64Array,
) -> int:
    """Fill keys, negatives and positives with one entry for each distinct score.

    Return the number of entries.
    """
    entry = -1
    for event in range(len(scores)):
        if entry < 0 or scores[event] != keys[entry]:
            entry += 1
            keys[entry] = scores[event]
            negatives[entry] = 0
            positives[entry] = 0
        positives[entry] += labels[event]
        negatives[entry] += 1 - labels[event]
    return entry + 1
