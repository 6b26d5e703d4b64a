"""The verdict on two models that holds at any time: an interval of the difference of their AUCs, so far.

A test at a level of .05 holds for one look at the data. Two models of equal AUC, looked at every 200
instances, differ "significantly" at some look in a third of all streams. The interval here holds at all looks
together.

The interval
    After t instances, D is the difference of the AUCs over all t instances, and S^2 the variance of D below.
    The interval is D -+ S w(t), with

        w(t)^2 = 2 (x + 1) / x  log(sqrt(x + 1) / alpha),  x = t rho^2

    This is the asymptotic confidence sequence of Waudby-Smith, Arbour, Sinha, Kennedy & Ramdas, "Time-uniform
    central limit theory and asymptotic confidence sequences", Annals of Statistics 52 (2024), theorem 2.2,
    for an asymptotically linear statistic: D is a mean of the instances' differences of placements, up to
    1 / t. With probability 1 - alpha, about, the true difference lies in the intervals of all t at once. rho
    makes the interval narrowest after `anytime_at` instances. It has a value from LEAST instances of each
    class on.

    A row reports the intersection of the intervals at all rows so far, within [-1, 1]. So it never grows, and
    a verdict stays. An empty intersection means that the difference has changed: CONTRADICTED, for good.

The variance
    S^2 = DeLong's variance of the difference + c / P^2 + c / N^2, with c = 2 up to a confidence of .95, and
    2/3 log(1 / alpha) beyond. For c = 2, the two added terms are the variance of two more instances in each
    class, whose placements differ by 1 and by -1. They vanish faster than DeLong's variance, which falls as 1
    / P and 1 / N. Without them the interval is wrong where a model hardly errs: a few dozen instances without
    an error would count as proof that the model makes no errors. Simulated with a constant champion and a
    challenger of AUC .999, the interval without the added terms missed the truth in 34% of the streams, and
    with them in none of 1,000 (`tests/core/pairs/test_coverage.py`). The worst distribution found has few
    positives, some of which lie below all negatives. The interval misses in 3.2% of its streams at .95, and
    in .8% at .99. With c = 2 the share would be 1.5% at .99.

The state
    The first block has all instances up to the first moment at which it has `exact` instances, and LEAST of
    each class. Up to then D and DeLong's variance are those of all instances, exactly. Then a new block
    begins. Of a complete block only its difference D_b, DeLong's variance V_b, P_b and N_b are kept, as sums
    over blocks:

        D = sum w_b D_b / sum w_b,   S^2 = sum w_b^2 V_b / (sum w_b)^2 + c / P^2 + c / N^2
        w_b = P_b N_b / (P_b + N_b),   P = sum P_b,   N = sum N_b

    The present block counts once it has LEAST instances of each class. So the state is one block, whatever
    the length of the stream.
    D_b is an unbiased estimate of the difference, whatever the numbers of the classes, since a block ends by
    its labels alone. So D is unbiased as well. What is lost are the pairs of instances of different blocks:
    their part of the variance is of the order 1 / `exact` of the whole. (Placements against a fixed reference
    sample of m instances would keep the error of that sample for ever, so that an interval that shrinks
    would miss the truth.) If the difference changes with time, D is a mean of what it was within blocks.
    `blocks` says how many blocks count, and a reason says so in words from the second block on.

    Of one class, a block keeps the last `exact` instances. `left_out` counts the others. This happens with
    fewer than LEAST instances of a class among `exact`.

Wire form, little-endian: `_STATE` (see `Anytime.pack`), then the labels (i1), the scores and the scores
against (f8) of the present block.
"""

from __future__ import annotations

import copy
import math
import struct
from typing import Final

import numpy as np

from ..arrays import NO_FLOATS, NO_INT8, FloatArray, Int8Array
from ..encoding.fields import Reader
from ..rows.pairs import BETTER, CONTRADICTED, EMPTY, FEW_SO_FAR, UNDECIDED, WORSE
from .pair_settings import PairSettings
from .placements import PairFigures, compare

LEAST: Final = 30
"""The least number of instances of each class in a complete block."""

_STATE = struct.Struct("<6q3d2d?qq")


class Anytime:
    """The interval for the difference of two models that holds at all rows; see the module.

    settings  `confidence`, `anytime_at` and `exact` count here

    >>> rng = np.random.default_rng(1)
    >>> labels = rng.integers(0, 2, 2_000).astype(np.int8)
    >>> anytime = Anytime(PairSettings())
    >>> anytime.add(labels, labels + rng.normal(size=2_000), rng.normal(size=2_000))
    >>> anytime.look()
    >>> anytime.verdict, round(anytime.low, 2), round(anytime.high, 2)
    ('better', 0.19, 0.3)
    """

    def __init__(self, settings: PairSettings) -> None:
        self._settings = settings
        self.low, self.high = -1.0, 1.0
        self.is_empty = False
        self.left_out = 0
        self.events = self.blocks = 0
        """At the last look: how many instances counted, and in how many blocks."""
        self._closed = 0
        self._instances = self._positives = self._negatives = 0
        self._mass = self._differences = self._variances = 0.0
        self._seen = 0
        self._labels: Int8Array = NO_INT8
        self._scores: FloatArray = NO_FLOATS
        self._against: FloatArray = NO_FLOATS

    def add(self, labels: Int8Array, scores: FloatArray, against: FloatArray) -> None:
        """Add instances in their order. O(instances), and O(block) for each call."""
        while len(labels):
            taken = self._room(labels)
            self._seen += taken
            self._labels = np.concatenate((self._labels, labels[:taken]))
            self._scores = np.concatenate((self._scores, scores[:taken]))
            self._against = np.concatenate((self._against, against[:taken]))
            self._trim()
            if self._is_complete():
                self._close()
            labels, scores, against = labels[taken:], scores[taken:], against[taken:]

    def _room(self, labels: Int8Array) -> int:
        """Return how many instances go into the present block: all, or as many as complete the block."""
        positives = int(np.count_nonzero(self._labels))
        of_positive = positives + np.cumsum(labels == 1)
        of_negative = len(self._labels) - positives + np.cumsum(labels != 1)
        seen = self._seen + np.arange(1, len(labels) + 1)
        complete = (seen >= self._settings.exact) & (np.minimum(of_positive, of_negative) >= LEAST)
        return int(np.argmax(complete)) + 1 if complete[-1] else len(labels)

    def _is_complete(self) -> bool:
        positives = int(np.count_nonzero(self._labels))
        rarer = min(positives, len(self._labels) - positives)
        return self._seen >= self._settings.exact and rarer >= LEAST

    def _trim(self) -> None:
        """Keep the last `exact` instances of each class."""
        most = self._settings.exact
        if len(self._labels) <= most:
            return
        kept = np.ones(len(self._labels), np.bool_)
        for of_class in (self._labels == 1, self._labels != 1):
            places = np.flatnonzero(of_class)
            kept[places[: max(0, len(places) - most)]] = False
        if (left := int(np.count_nonzero(~kept))) == 0:
            return
        self.left_out += left
        self._labels, self._scores = self._labels[kept], self._scores[kept]
        self._against = self._against[kept]

    def _close(self) -> None:
        found = compare(self._labels, self._scores, self._against)
        if found is None or found.variance is None:
            raise AssertionError("a complete block has instances of both classes")
        weight, positives, negatives = _weight(found)
        self._closed += 1
        self._instances += positives + negatives
        self._positives += positives
        self._negatives += negatives
        self._mass += weight
        self._differences += weight * found.difference
        self._variances += weight * weight * found.variance
        self._seen = 0
        self._labels, self._scores, self._against = NO_INT8, NO_FLOATS, NO_FLOATS

    def copy(self) -> Anytime:
        """Return a copy that can look without changing this one.

        O(1), because arrays are never written to.
        """
        return copy.copy(self)

    @property
    def has_all(self) -> int | None:
        """How many instances there are, if all are in the first block; None otherwise."""
        return None if self._closed or self.left_out else len(self._labels)

    # ---- looks

    def look(self, figures: PairFigures | None = None) -> None:
        """Intersect the interval so far with the interval of all instances now. O(block log block).

        figures  the figures of the present block, if they are known
        """
        positives, negatives = self._positives, self._negatives
        mass, differences, variances = self._mass, self._differences, self._variances
        self.events, self.blocks = self._instances, self._closed
        if figures is None and len(self._labels) >= 2 * LEAST:
            figures = compare(self._labels, self._scores, self._against)
        if figures is not None and figures.variance is not None:
            weight, of_positive, of_negative = _weight(figures)
            if min(of_positive, of_negative) >= LEAST:
                self.events += of_positive + of_negative
                self.blocks += 1
                positives, negatives = positives + of_positive, negatives + of_negative
                mass += weight
                differences += weight * figures.difference
                variances += weight * weight * figures.variance
        if not self.blocks or self.is_empty:
            return
        added = self._settings.bad_instances
        variance = variances / (mass * mass) + added / positives**2 + added / negatives**2
        half_width = math.sqrt(variance) * self._width(self.events)
        difference = differences / mass
        low, high = max(self.low, difference - half_width), min(self.high, difference + half_width)
        if low > high:
            self.is_empty = True
        else:
            self.low, self.high = low, high

    def _width(self, instances: int) -> float:
        """Return how many standard errors the interval reaches to each side after so many instances."""
        x = instances * self._settings.rho_squared
        return math.sqrt(2 * (x + 1) / x * math.log(math.sqrt(x + 1) / self._settings.alpha))

    @property
    def verdict(self) -> str:
        """The verdict that all looks so far give."""
        if self.is_empty:
            return CONTRADICTED
        return BETTER if self.low > 0 else WORSE if self.high < 0 else UNDECIDED

    @property
    def interval(self) -> tuple[float, float] | None:
        """The intersection of the intervals at all looks.

        None if no look had an interval, or if the intersection is empty.
        """
        return None if self.is_empty or not self.blocks else (self.low, self.high)

    def reasons(self) -> dict[str, str]:
        """Return, by column, the reason why the interval is null or must be read with care."""
        if self.is_empty:
            return dict.fromkeys(("anytime_low", "anytime_high"), EMPTY)
        if not self.blocks:
            return dict.fromkeys(("anytime_low", "anytime_high"), FEW_SO_FAR)
        if self.blocks > 1:
            said = f"over pairs within {self.blocks} blocks of instances"
            if self.left_out:
                said += f" and without {self.left_out} of the common class"
            return {"anytime_low": said, "anytime_high": said}
        if self.left_out:
            said = f"without {self.left_out} instances of the common class"
            return {"anytime_low": said, "anytime_high": said}
        return {}

    # ---- state

    def pack(self) -> list[bytes]:
        """Return the wire form: counts, sums over blocks, the interval so far, and the present block."""
        state = _STATE.pack(
            self._closed, self._instances, self._positives, self._negatives, self.left_out, self._seen,
            self._mass, self._differences, self._variances, self.low, self.high, self.is_empty,
            self.events, self.blocks,
        )  # fmt: skip
        scores, against = self._scores.astype("<f8"), self._against.astype("<f8")
        parts = self._labels.tobytes(), scores.tobytes(), against.tobytes()
        return [state, struct.pack("<q", len(self._labels)), *parts]

    @classmethod
    def read(cls, reader: Reader, settings: PairSettings) -> Anytime:
        """Read the wire form. Raises ValueError or struct.error for bytes that `pack` cannot have written."""
        self = cls(settings)
        (
            self._closed, self._instances, self._positives, self._negatives, self.left_out, self._seen,
            self._mass, self._differences, self._variances, self.low, self.high, self.is_empty,
            self.events, self.blocks,
        ) = reader.numbers(_STATE.format)  # fmt: skip
        held = reader.number("<q")
        self._labels = reader.array("<i1", held)
        self._scores, self._against = reader.array("<f8", held), reader.array("<f8", held)
        counts = (self._closed, self._positives, self._negatives, self.left_out, self.events, self.blocks)
        if min(counts) < 0 or self._instances != self._positives + self._negatives:
            raise ValueError(f"{self._instances} instances in {self._closed} blocks")
        fewest = LEAST * self._closed  # instances of each class: so a block's weight is LEAST / 2 or more
        sums = self._mass - 0.49 * fewest, abs(self._differences), self._variances
        if min(self._positives, self._negatives) < fewest or not all(0 <= each < math.inf for each in sums):
            raise ValueError(f"{self._closed} blocks of {self._instances} instances have sums of {sums}")
        if held > self._seen or not np.isin(self._labels, (0, 1)).all() or self._is_complete():
            raise ValueError(f"a block of {held} instances that were {self._seen}")
        if not (np.isfinite(self._scores).all() and np.isfinite(self._against).all()):
            raise ValueError("an instance of a block without a score of both models")
        if not (-1 <= self.low <= self.high <= 1):
            raise ValueError(f"an interval from {self.low} to {self.high}")
        return self

    @property
    def wire_bytes(self) -> int:
        """Length of the wire form in bytes."""
        return _STATE.size + 8 + 17 * len(self._labels)


def _weight(found: PairFigures) -> tuple[float, int, int]:
    """Return a block's weight, and its numbers of positives and negatives."""
    positives, negatives = int(found.positives), int(found.negatives)
    return positives * negatives / (positives + negatives), positives, negatives
