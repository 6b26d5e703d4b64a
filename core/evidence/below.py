"""EvidenceBelow: how much speaks for an AUC below a bound, as an e-detector (Shin, Ramdas and Rinaldo 2023).

Blocks
    Events form blocks, in their order. A block is full with the event at which it holds m positives and m
    negatives or more. Each event is in one block, and the next block begins behind that event. x is the AUC
    of a full block, a tie one half.

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

Bounded state
    A block holds the newest MOST_KEPT scores of each class; with a share of positives of .01 and m = 4 a
    block has some 400 negatives. Older scores of the block are dropped. The choice depends on labels alone,
    so the promise stays.

When it began
    M is a sum of products of L, one product for each block at which the growth may have begun. `since` is the
    mean of these beginnings, with the products as weights, and over the grid with the sums as weights.

Wire form, version 1: a frame (encoding/fields.py) with magic "RSEV". Payload: `_HEAD` (bound, m, the counters
of `detector`); the sums and the ages of the grid, then their means (f64); the scores held of positives, then
of negatives (f64, oldest first).
"""

from __future__ import annotations

import math
import struct
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..arrays import FloatArray, Int8Array, Int64Array
from ..encoding.fields import HEAD_BYTES, Reader, framed, unframed
from ..encoding.json import reading
from ..events.inputs import checked_events
from ..kernels.rings import unrolled, write_ring
from ..settings.evidence import DEFAULT_BLOCKS, checked_blocks, checked_bound
from .detector import AGE, BLOCKS, COUNTERS, EVENTS, LAST, NEGATIVES, POSITIVES, SUM, feed

MAGIC = b"RSEV"
VERSION = 1

SHARES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 0.95)
"""The grid of bets, as shares of the largest bet 1 / (1 - bound)."""

MOST_KEPT = 1_024
"""Most scores of a class that a block keeps."""

_HEAD = struct.Struct(f"<dI{COUNTERS}q")


class Followed(NamedTuple):
    """The blocks that became full in some events: the index of the last event, and the numbers of each block.

    evidence  the logarithm of the mean sum
    since     how many events of the stream came before the growth began, estimated
    events    mean number of events of the blocks so far
    """

    ends: Int64Array
    evidence: FloatArray
    since: FloatArray
    events: FloatArray


class EvidenceBelow:
    """The evidence that a model's AUC is below a bound, whenever one looks: the logarithm of an e-detector.

    bound   the AUC that the model must have, in (0, 1)
    blocks  m: a block of events is full when it holds at least m positives and m negatives; 1 to 100

    While the AUC is at least the bound, the evidence reaches log(N) after N blocks or more, in the mean. The
    head of the module has the proof. Only `restart` lets the object start anew.

    An event takes O(m). State: some 200 bytes, and 8 for each event of the block that fills, at most 1,024 of
    a class. Raises ConfigError for a bound or a number of blocks out of range.

    >>> evidence = EvidenceBelow(0.8, blocks=2)
    >>> evidence.update([0, 1, 0, 1, 1], [0.1, 0.9, 0.4, 0.3, 0.5]).round(3).tolist()
    [nan, nan, nan, 0.083, 0.083]
    >>> [round(float(evidence.update([0, 1] * 100, [0.5] * 200)[-1]), 1), evidence.full_blocks]
    [43.4, 51]
    """

    def __init__(self, bound: float, *, blocks: int = DEFAULT_BLOCKS) -> None:
        self.bound = checked_bound(bound, "bound")
        self.blocks = checked_blocks(blocks, "blocks")
        self._bets = np.array(SHARES) / (1.0 - self.bound)
        self.restart()

    def restart(self) -> None:
        """Start anew, with no evidence and no event."""
        self._counters = np.zeros(COUNTERS, np.int64)
        self._grid = np.zeros((2, len(SHARES)))
        self._grid[SUM] = -math.inf
        self._positives = self._negatives = np.empty(0)
        self._values = np.full(2, np.nan)

    # ---- what it says

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
        """Number of full blocks."""
        return int(self._counters[BLOCKS])

    @property
    def events(self) -> int:
        """Number of events."""
        return int(self._counters[EVENTS])

    @property
    def block_events(self) -> float | None:
        """Mean number of events of a full block; None before the first."""
        return float(self._counters[LAST] / self._counters[BLOCKS]) if self.full_blocks else None

    # ---- events

    def update(self, labels: npt.ArrayLike, scores: npt.ArrayLike) -> FloatArray:
        """Feed events in their order; return the evidence after each event, NaN before the first full block.

        labels  n labels: 1/0, 1/-1 or booleans
        scores  n finite numbers, higher for more likely positive

        Raises InputError, and feeds nothing, if a value cannot be used.
        """
        checked_labels, checked_scores = checked_events(labels, scores)
        before = float(self._values[0])
        followed = self.follow(checked_labels, checked_scores)
        values = np.concatenate([[before], followed.evidence])
        counts = np.diff(followed.ends, prepend=0, append=len(checked_scores))
        evidence: FloatArray = np.repeat(values, counts)
        return evidence

    def follow(self, labels: Int8Array, scores: FloatArray) -> Followed:
        """Feed checked events, labels 1 and 0; return the blocks that became full."""
        counters = self._counters
        waiting = int(counters[POSITIVES] + counters[NEGATIVES])
        room = (waiting + len(scores)) // (2 * self.blocks)
        ends, values = np.empty(room, np.int64), np.empty((room, 2))
        positives = _ring(self._positives, int(counters[POSITIVES]))
        negatives = _ring(self._negatives, int(counters[NEGATIVES]))
        started, ended = int(counters[BLOCKS]), int(counters[EVENTS])
        full = feed(
            counters, positives, negatives, self._grid, self._bets, self.bound, self.blocks, labels, scores,
            ends, values,
        )  # fmt: skip
        self._positives = _held(positives, int(counters[POSITIVES]))
        self._negatives = _held(negatives, int(counters[NEGATIVES]))
        ends, values = ends[:full], values[:full]
        if full:
            self._values = values[-1].copy()
        so_far = ended + ends + 1
        blocks = np.arange(started + 1, started + full + 1)
        return Followed(ends, values[:, 0], np.rint(so_far - values[:, 1]), so_far / blocks)

    # ---- state

    def snapshot_bytes(self) -> int:
        """Return the length of `to_bytes()` in bytes. O(1)."""
        return HEAD_BYTES + _HEAD.size + sum(part.nbytes for part in self._parts)

    def live_bytes(self) -> int:
        """Estimate the memory of the object in bytes: its arrays, and the objects around them."""
        return 1_200 + self._positives.nbytes + self._negatives.nbytes

    @property
    def _parts(self) -> tuple[FloatArray, ...]:
        """The numbers of the state, in the order of the wire form."""
        return self._grid, self._values, self._positives, self._negatives

    def to_bytes(self) -> bytes:
        """Return a snapshot. An object loaded from the snapshot gives the same evidence from there on."""
        parts = [_HEAD.pack(self.bound, self.blocks, *self._counters.tolist())]
        parts += [part.astype("<f8").tobytes() for part in self._parts]
        return framed(MAGIC, VERSION, b"".join(parts))

    @classmethod
    def from_bytes(cls, data: bytes) -> EvidenceBelow:
        """Read a snapshot, `data`, which `to_bytes` gave. Raises a `WireError` for any other bytes."""
        reader = Reader(unframed(data, MAGIC, VERSION, "a snapshot of evidence"))
        with reading("a snapshot of evidence"):
            bound, least, *counters = reader.numbers(_HEAD.format)
            self = cls(bound, blocks=least)
            grid = reader.array("<f8", 2 * len(SHARES)).reshape(2, len(SHARES))
            values = reader.array("<f8", 2)
            positives, negatives = (
                reader.array("<f8", min(max(0, counters[each]), MOST_KEPT)) for each in (POSITIVES, NEGATIVES)
            )
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
        """Take a state; ValueError if the state contradicts itself."""
        full, waiting = int(counters[BLOCKS]), int(counters[POSITIVES] + counters[NEGATIVES])
        fits = (
            min(counters[POSITIVES], counters[NEGATIVES]) < self.blocks
            and counters.min() >= 0
            and counters[EVENTS] == counters[LAST] + waiting
            and counters[LAST] >= 2 * self.blocks * full
            and (full > 0) == (counters[LAST] > 0)
        )
        if not fits:
            raise ValueError(f"the counters {counters.tolist()} cannot be")
        has_none = (grid[SUM] == -np.inf).all() and not grid[AGE].any() and np.isnan(values).all()
        if not (np.isfinite(grid).all() and np.isfinite(values).all() if full else has_none):
            raise ValueError("the sums cannot be")
        if not (np.isfinite(positives).all() and np.isfinite(negatives).all()):
            raise ValueError("a score is not finite")
        self._counters, self._grid, self._values = counters, grid, values
        self._positives, self._negatives = positives, negatives


def _ring(kept: FloatArray, seen: int) -> FloatArray:
    """Return a ring with the kept scores of a class, of which `seen` events came in this block."""
    ring = np.empty(MOST_KEPT)
    write_ring(ring, seen - len(kept), kept)
    return ring


def _held(ring: FloatArray, seen: int) -> FloatArray:
    """Return the scores that a ring holds, oldest first."""
    held = min(seen, MOST_KEPT)
    return unrolled(ring, (seen - held) % MOST_KEPT, held)
