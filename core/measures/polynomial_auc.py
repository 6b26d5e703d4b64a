"""PolynomialAuc: AUC from some sixty sums, in one pass, with certified bounds. Sums add, remove and merge.

Invariant
    The bytes are a function of the multiset of (label, score, weight). They do not depend on the order of
    events, on splits and merges, or on events that were added and removed.

AUC is a mean over pairs of step(positive - negative). With a polynomial in place of the step, the mean
follows from sums of powers over each class (Calders & Jaroszewicz 2007). This module sums Chebyshev
polynomials of scores scaled to [-1, 1], because sums of raw powers of unscaled scores lose all digits. A
polynomial near the step is off by one half beside the jump, so it gives no bound on the error. Two more
polynomials, one above and one below the step, give bounds from the same sums. These bounds hold for all
scores.
"""

from __future__ import annotations

import numbers
import struct
import sys
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays import FloatArray, Int8Array
from ..encoding.fields import framed, framed_size, unframed
from ..encoding.json import reading
from ..errors import ConfigError, InputError
from ..events.inputs import as_array, as_weights, checked_events
from .polynomial_estimate import (
    DEFAULT_DEGREE,
    FRACTION_BITS,
    NEAR_FITS,
    NO_ESTIMATE,
    NearFit,
    PolynomialEstimate,
    Sums,
    add_chebyshev,
    estimated,
)
from .step_polynomials import checked_degree

MAGIC = b"RSPA"
VERSION = 1
_NAME = "a PolynomialAuc"
_FIELDS = struct.Struct("<HBddH")

_WEIGHT_BITS = 64
"""Weights lie from 2^-64 to 2^64. So the unit of stored sums is 2^-64 times the unit of the kernel's sums."""

_MOST_BITS = 1024
"""The most bytes of a stored sum: 2^62 events of the greatest weight need fewer than 300."""

_CHUNK = 1 << 16
"""How many events are checked and summed at a time: their copies fit into the cache, and memory is constant.
"""

_NO_WEIGHTS: FloatArray = np.empty(0)


class PolynomialAuc:
    """Estimates AUC from 2 (d + 1) sums over the scores: one pass, constant memory, any number of events.

    degree    d of the polynomial, 2 to 128
    interval  (low, high) with low <= every score <= high; a narrower interval gives a better estimate
    fit       "least_squares" or "chebyshev": the sense in which the polynomial is near the step
              (`step_polynomial`)

    For N(0, 1) against N(m, 1), m up to 3, on the range of 200,000 scores, the error is up to .03, .001 and
    .00003 at degrees 10, 20 and 30. With the fit "chebyshev" the error is as large, or larger by up to a
    third. If most scores lie in a small part of the interval (rare positives by probability, one outlier),
    the error is .1 or more, and the bounds are wide. Spread such scores, for example as logits. Or use an
    `AucSketch`: it needs no interval and has far narrower bounds, but cannot remove events. Higher scores
    mean more likely positive.

    Sums are exact. Adding or removing an event takes O(d), a merge O(d). The order does not change the bytes.

    >>> auc = PolynomialAuc(interval=(0, 1))
    >>> auc.add([0, 1, 0, 1], [0.1, 0.9, 0.4, 0.3])
    >>> estimate = auc.estimate()
    >>> round(estimate.auc, 2), estimate.low <= 0.75 <= estimate.high  # of so few, it is coarse
    (0.73, True)
    >>> auc.remove(1, 0.3)
    >>> auc.merge(auc).positives, auc.negatives
    (2, 4)
    """

    def __init__(
        self,
        degree: int = DEFAULT_DEGREE,
        interval: tuple[float, float] = (-1.0, 1.0),
        fit: NearFit = "least_squares",
    ) -> None:
        self.degree = checked_degree(degree)
        self.interval = _checked_interval(interval)
        if fit not in NEAR_FITS:
            raise ConfigError(
                f"fit={fit!r}: give {' or '.join(NEAR_FITS)}; bounds come from polynomials of their own"
            )
        self.fit: NearFit = fit
        self._sums = Sums.none(self.degree)

    def add(self, labels: npt.ArrayLike, scores: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> None:
        """Add events: n labels (1/0, 1/-1 or booleans), n scores in the interval, or one of each.

        weights  a weight for each event, from 2^-64 to 2^64; None: all are 1. Every product with a weight is
                 rounded to 42 bits below the highest bit of the weight

        O(n d). Raises InputError, and adds nothing, if a value cannot be used.
        """
        self._sums = self._sums.plus(self._sums_of(labels, scores, weights))

    def remove(
        self, labels: npt.ArrayLike, scores: npt.ArrayLike, weights: npt.ArrayLike | None = None
    ) -> None:
        """Remove events that were added, each with the weight with which it was added. O(n d).

        Sums do not record events, so removing an event that was never added is not always noticed. Raises
        InputError, and removes nothing, if a class would have fewer than 0 events, or an impossible sum.
        """
        rest = self._sums.plus(self._sums_of(labels, scores, weights), -1)
        if wrong := rest.contradiction():
            raise InputError(f"remove: {wrong}; remove events as they were added, each once")
        self._sums = rest

    def merge(self, other: PolynomialAuc) -> PolynomialAuc:
        """Add the events of another PolynomialAuc of the same degree, interval and fit; return self. O(d)."""
        if not isinstance(other, PolynomialAuc):
            raise InputError(
                f"merge: a {type(other).__name__} is no PolynomialAuc; read bytes with from_bytes()"
            )
        if other._settings != self._settings:
            raise InputError(
                f"merge: {other._described} into {self._described}: make both of one degree, interval and fit"
            )
        self._sums = self._sums.plus(other._sums)
        return self

    @property
    def events(self) -> int:
        """Number of events."""
        return sum(self._sums.counts)

    @property
    def positives(self) -> int:
        """Number of events with label 1."""
        return self._sums.counts[1]

    @property
    def negatives(self) -> int:
        """The number of events with the other label."""
        return self._sums.counts[0]

    def estimate(self) -> PolynomialEstimate:
        """Return the AUC with its certified bounds. O(d^2)."""
        if not self.positives or not self.negatives:
            return NO_ESTIMATE
        return estimated(self.degree, self.fit, self._sums.means(), 2.0**-FRACTION_BITS)

    def to_bytes(self) -> bytes:
        """Return the wire form, the same for the same events: some 600 bytes at degree 30."""
        shift, sums = self._sums.shifted()
        fields = _FIELDS.pack(self.degree, NEAR_FITS.index(self.fit), *self.interval, shift)
        whole = b"".join(map(_packed_whole, (*self._sums.counts, *sums)))
        return framed(MAGIC, VERSION, fields + whole)

    @classmethod
    def from_bytes(cls, data: bytes) -> PolynomialAuc:
        """Read the wire form, `data`.

        For any other bytes raises a `WireError` that says what was found instead.
        """
        payload = unframed(data, MAGIC, VERSION, _NAME)
        with reading(_NAME):
            degree, fit, low, high, shift = _FIELDS.unpack_from(payload)
            if fit >= len(NEAR_FITS):
                raise ValueError(f"its fit has the number {fit}")
            read = cls(degree, (low, high), NEAR_FITS[fit])
            negatives, positives, *sums = _read_whole(payload[_FIELDS.size :])
            if len(sums) != 2 * (degree + 1):
                raise ValueError(f"{len(sums)} sums of degree {degree}")
            if shift + max(value.bit_length() for value in (negatives, positives, *sums)) > _MOST_BITS:
                raise ValueError("a sum is greater than events can make it")
            whole = np.array([value << shift for value in sums], object).reshape(2, -1)
            read._sums = Sums((negatives, positives), whole)
            if (wrong := read._sums.contradiction()) or read.to_bytes() != data:
                raise ValueError(wrong or "its numbers are not as they are written")
        return read

    def __reduce__(self) -> tuple[Any, ...]:
        return PolynomialAuc.from_bytes, (self.to_bytes(),)

    def __repr__(self) -> str:
        return f"PolynomialAuc({self.negatives} negatives, {self.positives} positives, {self._described})"

    @property
    def _settings(self) -> tuple[int, tuple[float, float], str]:
        return self.degree, self.interval, self.fit

    @property
    def _described(self) -> str:
        return f"degree={self.degree}, interval={self.interval}, fit={self.fit!r}"

    def _sums_of(self, labels: Any, scores: Any, weights: Any) -> Sums:
        """Return the sums of events; raise InputError with value and remedy if a value cannot be used."""
        label_array, score_array = as_array("labels", labels), as_array("scores", scores)
        weight_array = None if weights is None else as_array("weights", weights)
        if weight_array is not None and weight_array.shape != score_array.shape:
            raise InputError(
                f"weights of shape {weight_array.shape} for scores of shape {score_array.shape}: give one "
                "per event"
            )
        total = Sums.none(self.degree)
        for start in range(0, max(1, len(label_array), len(score_array)), _CHUNK):
            part = slice(start, start + _CHUNK)
            of_part = None if weight_array is None else weight_array[part]
            try:
                events = self._checked(label_array[part], score_array[part], of_part)
            except InputError:  # check all events, so that the error names the event's position
                self._checked(label_array, score_array, weight_array)
                raise
            total = total.plus(self._summed(*events))
        return total

    def _checked(
        self, labels: npt.NDArray[Any], scores: npt.NDArray[Any], weights: npt.NDArray[Any] | None
    ) -> tuple[Int8Array, FloatArray, FloatArray | None]:
        """Return the events as arrays for kernels; raise InputError if a value cannot be used."""
        checked = checked_events_within(self.interval, labels, scores)
        return *checked, None if weights is None else _checked_weights(weights)

    def _summed(self, labels: Int8Array, scores: FloatArray, weights: FloatArray | None) -> Sums:
        """Return sums of checked events. Events whose weights share a power of two are summed together."""
        positives = int(np.count_nonzero(labels))
        counts = len(labels) - positives, positives
        if weights is None:
            return Sums(counts, self._terms(labels, scores, _NO_WEIGHTS) << _WEIGHT_BITS)
        fractions, exponents = np.frexp(weights)
        order = np.argsort(exponents.astype(np.int8), kind="stable")  # in linear time
        labels, scores, fractions = labels[order], scores[order], 2.0 * fractions[order]
        exponents = exponents[order]
        starts = np.flatnonzero(np.diff(exponents, prepend=-_WEIGHT_BITS - 1)).tolist()
        total = Sums.none(self.degree).sums
        for start, end in pairwise([*starts, len(scores)]):
            terms = self._terms(labels[start:end], scores[start:end], fractions[start:end])
            total = total + (terms << (_WEIGHT_BITS + int(exponents[start]) - 1))
        return Sums(counts, total)

    def _terms(self, labels: Int8Array, scores: FloatArray, weights: FloatArray) -> npt.NDArray[Any]:
        """Return the sums in the units of the kernel, as Python's integers."""
        sums = np.zeros((2, self.degree + 1), np.int64)
        add_chebyshev(labels, scores, weights, *self.interval, sums)
        return sums.astype(object)


def packed_size(data: bytes) -> int:
    """Return the length of the PolynomialAuc at the start of some bytes.

    Raise a `WireError` if there is none.
    """
    return framed_size(data, MAGIC, VERSION, _NAME)


def checked_events_within(
    interval: tuple[float, float], labels: npt.ArrayLike, scores: npt.ArrayLike
) -> tuple[Int8Array, FloatArray]:
    """Return 1/0 labels, and scores within an interval, as new arrays; raise InputError for other values."""
    label_array, score_array = checked_events(labels, scores)
    outside = np.flatnonzero((score_array < interval[0]) | (score_array > interval[1]))
    if len(outside):
        raise InputError(
            f"scores[{outside[0]}] is {float(score_array[outside[0]])!r}, outside the interval {interval}: "
            "make it for the least and the greatest score there can be (interval=)"
        )
    return label_array, np.array(score_array)


def _checked_interval(interval: Any) -> tuple[float, float]:
    ends = tuple(interval) if isinstance(interval, tuple | list | np.ndarray) else ()
    are_numbers = all(isinstance(end, numbers.Real) and not isinstance(end, bool | np.bool_) for end in ends)
    if len(ends) == 2 and are_numbers and all(abs(end) <= sys.float_info.max for end in ends):
        low, high = float(ends[0]) + 0.0, float(ends[1]) + 0.0  # -0.0 is 0.0
        if low < high:
            return low, high
    raise ConfigError(
        f"interval={interval!r}: give the least and the greatest score there can be, two finite numbers, the "
        "lower one first, such as (0, 1)"
    )


def _checked_weights(weights: npt.NDArray[Any]) -> FloatArray:
    """Return weights as numbers from 2^-64 to 2^64; raise InputError for other values."""
    array = as_weights(weights)
    least, most = 2.0**-_WEIGHT_BITS, 2.0**_WEIGHT_BITS
    bad = np.flatnonzero((array < least) | (array > most))
    if len(bad):
        raise InputError(
            f"weights[{bad[0]}] is {array[bad[0]]}: give weights from 2^-64 to 2^64 (5.4e-20 to 1.8e19), all "
            "multiplied by one number if need be, which changes no AUC"
        )
    return array


def _packed_whole(value: int) -> bytes:
    """Return a whole number as its length in bytes and its two's complement, little-endian."""
    size = (value.bit_length() + 8) // 8 if value else 0
    return bytes([size]) + value.to_bytes(size, "little", signed=True)


def _read_whole(data: memoryview) -> list[int]:
    """Return all whole numbers in the bytes. Raises ValueError if the bytes end within a number."""
    values, at = [], 0
    while at < len(data):
        end = at + 1 + data[at]
        if end > len(data):
            raise ValueError("a number ends too early")
        values.append(int.from_bytes(data[at + 1 : end], "little", signed=True))
        at = end
    return values
