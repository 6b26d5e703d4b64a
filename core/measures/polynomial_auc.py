"""PolynomialAuc: AUC from some sixty sums, in one pass, with certified bounds; it adds, removes and merges.

Invariant
    Its bytes are a function of the multiset of (label, score, weight): not of the order of events, nor of how
    they were split, merged, and of what came and went in between.

AUC is a mean over pairs of step(positive - negative). With a polynomial in place of the step it follows from
sums of powers over each class (Calders & Jaroszewicz 2007), here of Chebyshev polynomials of scores scaled to
[-1, 1]: raw powers of unscaled scores leave no digit. A polynomial near the step is off by one half beside
the jump, so that nothing bounds its error. Two more, one on either side of the step, evaluated on the same
sums give bounds that hold whatever the scores.
"""

from __future__ import annotations

import functools
import numbers
import struct
import sys
from itertools import pairwise
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from ..arrays import FloatArray, Int8Array
from ..encoding.frames import framed, framed_size, unframed
from ..encoding.json import reading
from ..errors import ConfigError, InputError
from ..events.inputs import as_array, as_weights, checked_events
from .polynomial_sums import FRACTION_BITS, MOST_TERMS, add_chebyshev, mean_over_pairs
from .step_polynomials import checked_degree, pair_coefficients, step_polynomial

NearFit = Literal["least_squares", "chebyshev"]
NEAR_FITS: tuple[NearFit, ...] = get_args(NearFit)

DEFAULT_DEGREE = 30

MAGIC = b"RSPA"
VERSION = 1
_NAME = "a PolynomialAuc"
_FIELDS = struct.Struct("<HBddH")

_WEIGHT_BITS = 64
"""Weights lie from 2^-64 to 2^64; sums are kept in units of 2^-64 of the unit of sums of weight 1."""

_MOST_BITS = 1024
"""Of a stored sum: 2^62 events of the greatest weight need fewer than 300."""

_CHUNK = 1 << 16
"""Events that are checked and summed at a time: their copies stay in the cache, and memory constant."""

_NO_WEIGHTS: FloatArray = np.empty(0)


class PolynomialEstimate(NamedTuple):
    """AUC by a polynomial near the step, ties near one half; low <= AUC of the events <= high is certified.

    bound is how far auc can be off: the greater distance to low and high. In practice it is off by much less:
    bounds hold for the worst scores with the same sums. None where there are no events of a class.
    """

    auc: float | None
    bound: float | None
    low: float | None
    high: float | None


_NO_ESTIMATE = PolynomialEstimate(None, None, None, None)


class PolynomialAuc:
    """Estimates AUC from 2 (d + 1) sums over the scores: one pass, constant memory, any number of events.

    degree    d of the polynomial, 2 to 128
    interval  (low, high) that every score lies in; the narrower, the better the estimate
    fit       "least_squares" or "chebyshev": how the polynomial is near the step (`step_polynomial`)

    Of N(0, 1) against N(m, 1), m up to 3, on the interval of 200,000 scores, it is off by up to .03, .001
    and .00003 at degrees 10, 20 and 30; the fit "chebyshev" by as much or a third more. Where most scores
    crowd in a corner of the interval (rare positives by probability, one outlier) it is off by .1 and more,
    and bounds tell so: spread them, as logits do, or take an `AucSketch`, whose bounds are far narrower and
    which needs no interval; but nothing can be removed from that. Higher scores mean more likely positive.

    Sums are exact. Events are added and removed in O(d), merged in O(d), in any order to the same bytes.

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
        self._sums = _Sums.none(self.degree)

    def add(self, labels: npt.ArrayLike, scores: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> None:
        """Add events: n labels (1/0, 1/-1 or booleans), n scores in the interval, or one of each.

        weights  one each, from 2^-64 to 2^64; all 1 if None. Every product with a weight is rounded to 42
                 bits below the highest one of the weight

        O(n d). Raises InputError, and adds nothing, where a value cannot be used.
        """
        self._sums = self._sums.plus(self._sums_of(labels, scores, weights))

    def remove(
        self, labels: npt.ArrayLike, scores: npt.ArrayLike, weights: npt.ArrayLike | None = None
    ) -> None:
        """Remove events that were added, with the weights they were added with. O(n d).

        Sums do not know events: of those that were never added only some are told. Raises InputError where a
        class would have fewer than none, or a sum no events can have, and removes nothing.
        """
        rest = self._sums.plus(self._sums_of(labels, scores, weights), -1)
        if wrong := rest.contradiction():
            raise InputError(f"remove: {wrong}; remove events as they were added, each once")
        self._sums = rest

    def merge(self, other: PolynomialAuc) -> PolynomialAuc:
        """Add the events of another, of the same degree, interval and fit; return this one. O(d)."""
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
        """How many events there are."""
        return sum(self._sums.counts)

    @property
    def positives(self) -> int:
        """How many of label 1."""
        return self._sums.counts[1]

    @property
    def negatives(self) -> int:
        """How many of the other label."""
        return self._sums.counts[0]

    def estimate(self) -> PolynomialEstimate:
        """Return the AUC with its certified bounds. O(d^2)."""
        if not self.positives or not self.negatives:
            return _NO_ESTIMATE
        return _estimated(self.degree, self.fit, self._sums.means(), 2.0**-FRACTION_BITS)

    def to_bytes(self) -> bytes:
        """Return it as bytes, the same for the same events: some 600 at degree 30."""
        shift, sums = self._sums.shifted()
        fields = _FIELDS.pack(self.degree, NEAR_FITS.index(self.fit), *self.interval, shift)
        whole = b"".join(map(_packed_whole, (*self._sums.counts, *sums)))
        return framed(MAGIC, VERSION, fields + whole)

    @classmethod
    def from_bytes(cls, data: bytes) -> PolynomialAuc:
        """Read it. Raises a `WireError` that says what was found where the bytes are anything else."""
        payload = unframed(data, MAGIC, VERSION, _NAME)
        with reading(_NAME):
            read = cls._read(payload)
            if (wrong := read._sums.contradiction()) or read.to_bytes() != data:
                raise ValueError(wrong or "its numbers are not as they are written")
        return read

    @classmethod
    def _read(cls, payload: memoryview) -> PolynomialAuc:
        """Read what a frame holds. Raises ValueError and struct.error."""
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
        read._sums = _Sums((negatives, positives), whole)
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

    def _sums_of(self, labels: Any, scores: Any, weights: Any) -> _Sums:
        """Return the sums of events; else raise InputError with value and remedy."""
        label_array, score_array = as_array("labels", labels), as_array("scores", scores)
        weight_array = None if weights is None else as_array("weights", weights)
        if weight_array is not None and weight_array.shape != score_array.shape:
            raise InputError(
                f"weights of shape {weight_array.shape} for scores of shape {score_array.shape}: give one "
                "per event"
            )
        total = _Sums.none(self.degree)
        for start in range(0, max(1, len(label_array), len(score_array)), _CHUNK):
            part = slice(start, start + _CHUNK)
            of_part = None if weight_array is None else weight_array[part]
            try:
                events = self._checked(label_array[part], score_array[part], of_part)
            except InputError:  # once more, for an error with the place among all events
                self._checked(label_array, score_array, weight_array)
                raise
            total = total.plus(self._summed(*events))
        return total

    def _checked(
        self, labels: npt.NDArray[Any], scores: npt.NDArray[Any], weights: npt.NDArray[Any] | None
    ) -> tuple[Int8Array, FloatArray, FloatArray | None]:
        """Return events as arrays that kernels take; else raise InputError."""
        checked = checked_events_within(self.interval, labels, scores)
        return *checked, None if weights is None else _checked_weights(weights)

    def _summed(self, labels: Int8Array, scores: FloatArray, weights: FloatArray | None) -> _Sums:
        """Return sums of checked events. Those of one power of two in their weights are summed together."""
        positives = int(np.count_nonzero(labels))
        counts = len(labels) - positives, positives
        if weights is None:
            return _Sums(counts, self._terms(labels, scores, _NO_WEIGHTS) << _WEIGHT_BITS)
        fractions, exponents = np.frexp(weights)
        order = np.argsort(exponents.astype(np.int8), kind="stable")  # in linear time
        labels, scores, fractions = labels[order], scores[order], 2.0 * fractions[order]
        exponents = exponents[order]
        starts = np.flatnonzero(np.diff(exponents, prepend=-_WEIGHT_BITS - 1)).tolist()
        total = _Sums.none(self.degree).sums
        for start, end in pairwise([*starts, len(scores)]):
            terms = self._terms(labels[start:end], scores[start:end], fractions[start:end])
            total = total + (terms << (_WEIGHT_BITS + int(exponents[start]) - 1))
        return _Sums(counts, total)

    def _terms(self, labels: Int8Array, scores: FloatArray, weights: FloatArray) -> npt.NDArray[Any]:
        """Return sums in units of the kernel, as Python's integers."""
        sums = np.zeros((2, self.degree + 1), np.int64)
        add_chebyshev(labels, scores, weights, *self.interval, sums)
        return sums.astype(object)


def packed_size(data: bytes) -> int:
    """Return how many of the bytes are a PolynomialAuc's, which they begin with; else raise a `WireError`."""
    return framed_size(data, MAGIC, VERSION, _NAME)


def checked_events_within(
    interval: tuple[float, float], labels: npt.ArrayLike, scores: npt.ArrayLike
) -> tuple[Int8Array, FloatArray]:
    """Return 1/0 labels and scores in an interval, in arrays of their own; else raise InputError."""
    label_array, score_array = checked_events(labels, scores)
    outside = np.flatnonzero((score_array < interval[0]) | (score_array > interval[1]))
    if len(outside):
        raise InputError(
            f"scores[{outside[0]}] is {float(score_array[outside[0]])!r}, outside the interval {interval}: "
            "make it for the least and the greatest score there can be (interval=)"
        )
    return label_array, np.array(score_array)


class _Sums(NamedTuple):
    """Exact sums of negatives and of positives, as whole numbers of Python.

    counts  how many events of each class
    sums    (2, d + 1), of w T_r(u), in units of 2^-(42 + 64); the first of each class is its mass
    """

    counts: tuple[int, int]
    sums: npt.NDArray[Any]

    @classmethod
    def none(cls, degree: int) -> _Sums:
        return cls((0, 0), np.full((2, degree + 1), 0, object))

    def plus(self, other: _Sums, sign: int = 1) -> _Sums:
        counts = self.counts[0] + sign * other.counts[0], self.counts[1] + sign * other.counts[1]
        return _Sums(counts, self.sums + sign * other.sums)

    def contradiction(self) -> str | None:
        """Return what no events can have, in words. None: some could be so."""
        for name, count, sums in zip(("negatives", "positives"), self.counts, self.sums, strict=True):
            mass, *others = sums.tolist()
            if count < 0:
                return f"there would be {count} {name}"
            if mass < 0 or (mass > 0) != (count > 0):
                than = "" if mass == 0 else "more than " if mass > 0 else "less than "
                return f"{count} {name} would weigh {than}nothing"
            if max(map(abs, others)) > mass + (mass >> 36):  # |T_r| <= 1, but for rounding
                return f"{count} {name} would have sums that no events have"
        return None

    def means(self) -> FloatArray:
        """Return the mean of T_r over each class, (2, d + 1); each rounded once."""
        return np.array([[value / sums[0] for value in sums] for sums in self.sums], np.float64)

    def shifted(self) -> tuple[int, list[int]]:
        """Return the greatest power of two that divides all sums, and what is left of them."""
        values = self.sums.ravel().tolist()
        bits = functools.reduce(int.__or__, values)
        shift = (bits & -bits).bit_length() - 1 if bits else 0
        return shift, [value >> shift for value in values]


def polynomial_auc_of(scores: FloatArray, negatives: FloatArray, positives: FloatArray) -> PolynomialEstimate:
    """Return the estimate of degree 30 on the interval of the scores themselves. O(entries).

    scores                distinct, finite, ascending
    negatives, positives  masses at each, in any two scales; one per score, not all 0

    None where there is no interval: of one score, or of none.
    """
    if len(scores) < 2:
        return _NO_ESTIMATE
    low, high = float(scores[0]), float(scores[-1])
    means = np.empty((2, DEFAULT_DEGREE + 1))
    off = 0.0
    for label, masses in enumerate((negatives, positives)):
        held = np.flatnonzero(masses)
        weights = np.ldexp(masses[held], -int(np.frexp(masses.max())[1]))
        labels = np.zeros(len(held), np.int8)
        sums = [0] * (DEFAULT_DEGREE + 1)
        for start in range(0, len(held), MOST_TERMS):
            part = slice(start, start + MOST_TERMS)
            terms = np.zeros((2, DEFAULT_DEGREE + 1), np.int64)
            add_chebyshev(labels[part], scores[held[part]], weights[part], low, high, terms)
            sums = [total + term for total, term in zip(sums, terms[0].tolist(), strict=True)]
        means[label] = [value / sums[0] for value in sums]
        off = max(off, len(held) / sums[0])  # each term by half a unit, in units of the mass
    return _estimated(DEFAULT_DEGREE, "least_squares", means, off)


def _estimated(degree: int, fit: NearFit, means: FloatArray, off: float) -> PolynomialEstimate:
    """Return the estimate from means of T_r, (2, d + 1).

    off  what rounding to units can have changed in each mean

    The bounds are moved outwards by `rounding`: what all roundings together can come to.
    """
    negatives, positives = means
    auc, low, high = (
        float(mean_over_pairs(pairs, positives, negatives)) for pairs in _pairs(degree, fit)[:3]
    )
    rounding = _rounding(degree, fit, off)
    low, high = max(0.0, low - rounding), min(1.0, high + rounding)
    auc = min(max(auc, low), high)
    return PolynomialEstimate(auc, max(high - auc, auc - low), low, high)


_POLYNOMIALS_OFF = 1e-12
"""More than the one-sided polynomials dip through the step, and their coefficients over pairs are off by."""


def _rounding(degree: int, fit: NearFit, off: float) -> float:
    """Return what a mean over pairs can be off by.

    The recurrence adds up errors of 3 * 2^-53 a step, each of which grows at most as fast as the number of
    steps since: 3/2 d^2 2^-53. Means are off by that and by `off`; so are both factors of a product, each
    with another of at most 1, and sum |A| of them. The sum over pairs is of d numbers, of d numbers each.
    """
    mean_off = off + 2.0 * degree**2 * 2.0**-53
    largest = _pairs(degree, fit)[3]
    return largest * (mean_off * (2.0 + mean_off) + (2 * degree + 8) * 2.0**-53) + _POLYNOMIALS_OFF


@functools.cache
def _pairs(degree: int, fit: NearFit) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Return coefficients over pairs of polynomials near, below and above the step; the most of sum |A|."""
    near, lower, upper = (
        pair_coefficients(step_polynomial(degree, which)) for which in (fit, "lower", "upper")
    )
    return near, lower, upper, max(float(np.abs(pairs).sum()) for pairs in (near, lower, upper))


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
    """Return weights as numbers in range; else raise InputError."""
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
    """Return whole numbers to the end of the bytes. Raises ValueError where they end within one."""
    values, at = [], 0
    while at < len(data):
        end = at + 1 + data[at]
        if end > len(data):
            raise ValueError("a number ends too early")
        values.append(int.from_bytes(data[at + 1 : end], "little", signed=True))
        at = end
    return values
