"""EvidenceBelow: the evidence for an AUC below a bound, an e-detector (Shin, Ramdas and Rinaldo 2023).

Blocks
    Events form blocks, in their order. A block is full with the event at which it holds m positives and m
    negatives or more. Each event is in one block, and the next block begins behind that event. x is the AUC
    of a full block, where a tie counts one half.

The promise
    Let the AUC be at least the bound b: given all labels and all earlier blocks, each positive of a block
    ranks above each negative of the block with probability b or more (a tie counts one half). Then for each
    1/alpha:
    - the mean number of blocks until the mean sum M reaches 1/alpha is at least 1/alpha;
    - M reaches 1/alpha within n blocks with probability alpha * n at most;
    - if one restarts the detector at each alarm, the mean number of alarms in n blocks is alpha * n at most.

The proof
    Labels alone decide where a block ends. So given the labels, x is a mean of pairs with fixed weights, and
    has mean b or more, whatever number of positives and negatives the block has. A bet c from the grid is
    less than 1 / (1 - b), so L = 1 + c (b - x) is positive, and has a mean of 1 or less. The sum M <- (M + 1)
    L then has E[M after the block] <= M + 1: M less the number of blocks is a supermartingale. It stays one
    for the mean over the grid. At the alarm, or at block n if there is no alarm before, M is at least 1/alpha
    times the indicator of the alarm, and its mean is at most the mean number of blocks: the first two
    promises. The third is the sum over all restarts.

    Scores need no distribution, and the AUC may change as long as it stays at b or above. Events within a
    block may depend on each other.

What breaks the promise
    Events that depend on earlier blocks: events of one storm are alike, and duplicates are equal. Then the
    mean of a block given the blocks before may be below b, although the long-run AUC is above b. And a label
    that depends on the scores of earlier events, given the labels before, such as a label that is only asked
    for where an earlier score was high.

Events that are not used
    With a gap, the events within the gap behind a full block's last event are not used. Labels and times
    alone decide which events these are, so the promise stays. With a gap, the promise needs less: blocks that
    are a gap apart must be independent; events next to each other may depend on each other.

A bound that a period gives
    `EvidenceBelow("2026-01..2026-02 less 0.02")` learns the bound from the events of the period (`reference`)
    and bets on the events behind the period, without those before. Events in the period and before the period
    have no evidence. The promise is conditional on the period: it holds for the bound that came out. An AUC
    that has dropped by no more than the margin is at the bound or above, unless `auc_low` is above the AUC of
    the period. That has a chance of 2.5% at most, once for each stream and period, if events are independent.

Bounded state
    A block holds the newest MOST_KEPT scores of each class; with a share of positives of .01 and m = 4 a
    block has some 400 negatives. Older scores of the block are dropped. The choice depends on labels alone,
    so the promise stays.

When it began
    M is a sum of products of L, one product for each block at which the growth may have begun. `since` is the
    mean of these beginnings, with the products as weights, and over the grid with the sums as weights.

Wire form, version 1: a frame (encoding/fields.py) with magic "RSEV". Payload: `_HEAD` (bound, NaN if a period
gives it; m; gap in microseconds; the counters of `detector`); the sums and the ages of the grid, then their
means (f64); the scores held of positives, then of negatives (f64, oldest first); if a period gives the bound,
the bound's text and the state of `reference`.
"""

from __future__ import annotations

import math
import struct
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..arrays import NO_FLOATS, NO_INT64, FloatArray, Int8Array, Int64Array
from ..encoding.fields import HEAD_BYTES, Reader, framed, packed_text, unframed
from ..encoding.json import reading
from ..errors import InputError
from ..events.inputs import as_times, checked_events
from ..events.times import NO_TIME, checked_unit
from ..kernels.rings import unrolled, write_ring
from ..settings.durations import LONGEST, Duration
from ..settings.evidence import (
    DEFAULT_BLOCKS,
    Bound,
    PeriodBound,
    checked_blocks,
    checked_bound,
    checked_gap,
)
from .detector import (
    AGE,
    AUC,
    BLOCKS,
    COUNTERS,
    EVENTS,
    EVIDENCE,
    LAST,
    MEAN_AGE,
    NEGATIVES,
    POSITIVES,
    READY,
    SUM,
    feed,
)
from .reference import REFERENCE_BYTES, Reference

MAGIC = b"RSEV"
VERSION = 1

SHARES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 0.95)
"""The grid of bets, as shares of the largest bet 1 / (1 - bound)."""

MOST_KEPT = 1_024
"""The most scores of a class that a block keeps."""

_HEAD = struct.Struct(f"<dIq{COUNTERS}q")


class Followed(NamedTuple):
    """The blocks that became full during some events.

    The index of each block's last event, and the numbers of each block.

    learnt    how many of these events came before the end of a period that gives the bound
    evidence  the logarithm of the mean sum
    since     how many events of the stream came before the growth began, estimated
    events    mean number of events of the blocks so far
    """

    learnt: int
    ends: Int64Array
    evidence: FloatArray
    since: FloatArray
    events: FloatArray


class EvidenceBelow:
    """The evidence that a model's AUC is below a bound, whenever one looks: the logarithm of an e-detector.

    bound   the AUC that the model must have, in (0, 1); or a period of the stream that gives the bound, such
            as "2026-01..2026-02 less 0.02"
    blocks  m: a block of events is full when it holds at least m positives and m negatives; 1 to 100
    gap     events within the gap behind a full block are not used, such as "1h"; None: all are used

    While the AUC is at least the bound, the evidence takes N blocks or more on average to reach log(N). The
    head of the module has the proof. Only `restart` removes the evidence.

    An event takes O(m). State: some 200 bytes, and 8 for each event of the block that fills, at most 1,024 of
    a class. Raises ConfigError for a bound, a number of blocks or a gap out of range.

    >>> evidence = EvidenceBelow(0.8, blocks=2)
    >>> evidence.update([0, 1, 0, 1, 1], [0.1, 0.9, 0.4, 0.3, 0.5]).round(3).tolist()
    [nan, nan, nan, 0.083, 0.083]
    >>> [round(float(evidence.update([0, 1] * 100, [0.5] * 200)[-1]), 1), evidence.full_blocks]
    [43.4, 51]
    """

    def __init__(
        self,
        bound: Bound | str,
        *,
        blocks: int = DEFAULT_BLOCKS,
        gap: Duration | None = None,
    ) -> None:
        self.wanted = checked_bound(bound, "bound")
        self.blocks = checked_blocks(blocks, "blocks")
        self.gap = checked_gap(gap, "gap")
        zeros = 2 if self.blocks == 1 else 1
        self.reference = Reference(self.wanted, zeros) if isinstance(self.wanted, PeriodBound) else None
        self.restart()

    def restart(self) -> None:
        """Remove all evidence and all events. A bound that a period gave stays."""
        self._counters = np.zeros(COUNTERS, np.int64)
        self._counters[READY] = NO_TIME
        self._grid = np.zeros((2, len(SHARES)))
        self._grid[SUM] = -math.inf
        self._positives = self._negatives = np.empty(0)
        self._values = np.full(2, np.nan)

    # ---- what it says

    @property
    def bound(self) -> float | None:
        """The AUC that the model must have; None while a period gives it, and if the period gave none."""
        if self.reference is None:
            assert not isinstance(self.wanted, PeriodBound)
            return self.wanted
        return None if math.isnan(self.reference.bound) else self.reference.bound

    @property
    def needs_times(self) -> bool:
        """Whether events need times, for a gap or for a period."""
        return bool(self.gap) or self.reference is not None

    @property
    def evidence(self) -> float | None:
        """The logarithm of the mean sum after the latest full block; None before the first."""
        return float(self._values[0]) if self.full_blocks else None

    @property
    def since(self) -> int | None:
        """About how many events came before the evidence began to grow; None before the first full block."""
        return round(float(self._counters[LAST] - self._values[1])) if self.full_blocks else None

    @property
    def full_blocks(self) -> int:
        """Number of full blocks, without the blocks of a period that gives the bound."""
        return 0 if self.learns else int(self._counters[BLOCKS])

    @property
    def events(self) -> int:
        """Number of events, without the events in a period that gives the bound, and before it."""
        return 0 if self.learns else int(self._counters[EVENTS])

    @property
    def block_events(self) -> float | None:
        """Mean number of events of a full block; None before the first."""
        return float(self._counters[LAST] / self._counters[BLOCKS]) if self.full_blocks else None

    # ---- events

    def update(
        self,
        labels: npt.ArrayLike,
        scores: npt.ArrayLike,
        *,
        times: npt.ArrayLike | None = None,
        time_unit: str = "s",
    ) -> FloatArray:
        """Feed events in their order; return the evidence after each event, NaN before the first full block.

        labels     n labels: 1/0, 1/-1 or booleans
        scores     n finite numbers, higher for more likely positive
        times      n times: numbers since 1970 UTC in `time_unit`, datetime64, datetimes or dates; needed for
                   a gap and for a bound that a period gives
        time_unit  "s", "ms", "us" or "ns"

        Raises InputError, and feeds nothing, if a value cannot be used.
        """
        checked_labels, checked_scores = checked_events(labels, scores)
        micros = None if times is None else as_times(times, checked_unit(time_unit))[0]
        if micros is not None and micros.shape != checked_scores.shape:
            raise InputError("times and scores differ in length: give one of each per event")
        if micros is None and self.needs_times:
            needs = "a gap between blocks" if self.reference is None else f"a bound by {self.wanted}"
            raise InputError(f"{needs} needs the time of every event; give times=")
        before = float(self._values[EVIDENCE])
        followed = self.follow(checked_labels, checked_scores, micros)
        values = np.concatenate([[before], followed.evidence])
        counts = np.diff(followed.ends, prepend=0, append=len(checked_scores))
        evidence: FloatArray = np.repeat(values, counts)
        return evidence

    def follow(self, labels: Int8Array, scores: FloatArray, times: Int64Array | None = None) -> Followed:
        """Feed checked events, labels 1 and 0; return the blocks that became full behind the period, if any.

        times  microseconds; needed if `needs_times`
        """
        micros = NO_INT64 if times is None else times
        learnt = self._learn(labels, scores, micros) if self.learns else 0
        if self.bound is None:
            return Followed(learnt, NO_INT64, NO_FLOATS, NO_FLOATS, NO_FLOATS)
        started, ended = int(self._counters[BLOCKS]), int(self._counters[EVENTS])
        bets = np.array(SHARES) / (1.0 - self.bound)
        ends, values = self._fed(labels[learnt:], scores[learnt:], micros[learnt:], self._grid, bets)
        if len(ends):
            self._values = values[-1, :AUC].copy()
        so_far = ended + ends + 1
        blocks = np.arange(started + 1, started + len(ends) + 1)
        since = np.rint(so_far - values[:, MEAN_AGE])
        return Followed(learnt, learnt + ends, values[:, EVIDENCE], since, so_far / blocks)

    @property
    def learns(self) -> bool:
        """Whether a period still gives the bound."""
        return self.reference is not None and not self.reference.has_ended

    def _learn(self, labels: Int8Array, scores: FloatArray, times: Int64Array) -> int:
        """Feed the period's events to the reference; return how many events come before the period ends."""
        assert self.reference is not None
        inside, before = self.reference.split(times)
        scratch, no_bets = np.zeros((2, len(SHARES))), np.zeros(len(SHARES))
        _, values = self._fed(labels[inside], scores[inside], times[inside], scratch, no_bets)
        self.reference.add(values[:, AUC])
        if before < len(times):
            self.reference.end()
            self.restart()
        return before

    def _fed(
        self, labels: Int8Array, scores: FloatArray, times: Int64Array, grid: FloatArray, bets: FloatArray
    ) -> tuple[Int64Array, FloatArray]:
        """Feed events to the kernel; return the ends and the numbers of the blocks that became full."""
        counters = self._counters
        waiting = int(counters[POSITIVES] + counters[NEGATIVES])
        room = (waiting + len(scores)) // (2 * self.blocks)
        ends, values = np.empty(room, np.int64), np.empty((room, 3))
        positives = _ring(self._positives, int(counters[POSITIVES]))
        negatives = _ring(self._negatives, int(counters[NEGATIVES]))
        full = feed(
            counters, positives, negatives, grid, bets, self.bound or 0.0, self.blocks, labels, scores,
            times, self.gap, ends, values,
        )  # fmt: skip
        self._positives = _held(positives, int(counters[POSITIVES]))
        self._negatives = _held(negatives, int(counters[NEGATIVES]))
        return ends[:full], values[:full]

    # ---- state

    def snapshot_bytes(self) -> int:
        """Return the length of `to_bytes()` in bytes. O(1)."""
        size = HEAD_BYTES + _HEAD.size + sum(part.nbytes for part in self._parts)
        return size + (0 if self.reference is None else len(packed_text(str(self.wanted))) + REFERENCE_BYTES)

    def live_bytes(self) -> int:
        """Estimate the memory of the object in bytes: its arrays, and the objects around them."""
        return 1_200 + self._positives.nbytes + self._negatives.nbytes

    @property
    def _parts(self) -> tuple[FloatArray, ...]:
        """The numbers of the state, in the order of the wire form."""
        return self._grid, self._values, self._positives, self._negatives

    def to_bytes(self) -> bytes:
        """Return a snapshot. An object loaded from the snapshot gives the same evidence from there on."""
        bound = math.nan if isinstance(self.wanted, PeriodBound) else self.wanted
        parts = [_HEAD.pack(bound, self.blocks, self.gap, *self._counters.tolist())]
        parts += [part.astype("<f8").tobytes() for part in self._parts]
        if self.reference is not None:
            parts += [packed_text(str(self.wanted)), self.reference.pack()]
        return framed(MAGIC, VERSION, b"".join(parts))

    @classmethod
    def from_bytes(cls, data: bytes) -> EvidenceBelow:
        """Read a snapshot, `data`, which `to_bytes` gave. Raises a `WireError` for any other bytes."""
        reader = Reader(unframed(data, MAGIC, VERSION, "a snapshot of evidence"))
        with reading("a snapshot of evidence"):
            bound, least, gap, *counters = reader.numbers(_HEAD.format)
            grid = reader.array("<f8", 2 * len(SHARES)).reshape(2, len(SHARES))
            values = reader.array("<f8", 2)
            positives, negatives = (
                reader.array("<f8", min(max(0, counters[each]), MOST_KEPT)) for each in (POSITIVES, NEGATIVES)
            )
            self = cls(reader.text() if math.isnan(bound) else bound, blocks=least)
            self.gap = gap
            if self.reference is not None:
                self.reference.load(reader)
            reader.end()
            self._load(np.array(counters, np.int64), grid, values, positives, negatives)
        return self

    def _load(
        self,
        counters: Int64Array,
        grid: FloatArray,
        values: FloatArray,
        positives: FloatArray,
        negatives: FloatArray,
    ) -> None:
        """Load a state; raise ValueError if it contradicts itself."""
        full, waiting = int(counters[BLOCKS]), int(counters[POSITIVES]) + int(counters[NEGATIVES])
        used = int(counters[EVENTS]) - int(counters[LAST])
        fits = (
            min(counters[POSITIVES], counters[NEGATIVES]) < self.blocks
            and counters[:READY].min() >= 0
            and (used >= waiting if self.gap else used == waiting)
            and counters[LAST] >= 2 * self.blocks * full
            and (full > 0) == (counters[LAST] > 0)
            and 0 <= self.gap < LONGEST
            and (counters[READY] != NO_TIME) == (self.gap > 0 and full > 0)
            and (not self.learns or full == self.reference.blocks)  # type: ignore[union-attr]
        )
        if not fits:
            raise ValueError(f"the counters {counters.tolist()} cannot be")
        has_none = (grid[SUM] == -np.inf).all() and not grid[AGE].any() and np.isnan(values).all()
        if not (
            np.isfinite(grid).all() and np.isfinite(values).all() if full and not self.learns else has_none
        ):
            raise ValueError("the sums cannot be")
        if not (np.isfinite(positives).all() and np.isfinite(negatives).all()):
            raise ValueError("a score is not finite")
        self._counters, self._grid, self._values = counters, grid, values
        self._positives, self._negatives = positives, negatives


def _ring(kept: FloatArray, seen: int) -> FloatArray:
    """Return a ring with the kept scores of a class that had `seen` events in this block."""
    ring = np.empty(MOST_KEPT)
    write_ring(ring, seen - len(kept), kept)
    return ring


def _held(ring: FloatArray, seen: int) -> FloatArray:
    """Return the scores that a ring holds, oldest first."""
    held = min(seen, MOST_KEPT)
    return unrolled(ring, (seen - held) % MOST_KEPT, held)
