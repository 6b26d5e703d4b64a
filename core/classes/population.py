"""The masses of the classes of a window, for events that count 1 each and for events with weights.

Weights may lie between 1e-300 and 1e300, and classes may be silent for thousands of half-lives: the weights
of each class have a unit of their own, so that the largest weight of a class lies near 1. AUCs between two
classes do not depend on the units. Values that depend on the units are computed with units relative to the
largest unit.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ..arrays import FloatArray, Int64Array

_ENOUGH = 1.0 - 1e-9
"""The least size of a class, less 1, for which there is an interval: two events of one weight are enough."""


class Population:
    """Events of C classes, at least one event of each class.

    codes    the class of each event
    classes  C
    weights  finite weights above 0; None: each event counts 1
    ages     the age of each event in half-lives; None: the events do not fade

    >>> of = Population(np.array([0, 1, 1]), 2, None, None)
    >>> of.masses.tolist(), of.beyond.tolist()
    ([1, 2], [0.0, 1.0])
    """

    def __init__(
        self, codes: Int64Array, classes: int, weights: FloatArray | None, ages: FloatArray | None
    ) -> None:
        self.codes = codes
        self.classes = classes
        self.is_unit = weights is None and ages is None
        self._units = np.zeros(classes)
        """The power of two of each class's unit."""
        self.counts: Int64Array = np.bincount(codes, minlength=classes)
        if self.is_unit:
            self.weights: Int64Array | FloatArray = np.ones(len(codes), np.int64)
            self.masses: Int64Array | FloatArray = self.counts
            self._squares: Int64Array | FloatArray = self.counts
            return
        inflated, exponents = np.ones(len(codes)), np.zeros(classes, np.int64)
        if weights is not None:
            mantissas, powers = np.frexp(weights)
            exponents = np.full(classes, -(2**20))
            np.maximum.at(exponents, codes, powers)
            inflated = np.ldexp(mantissas, powers - exponents[codes])
        lags = np.zeros(classes)
        if ages is not None:
            lags = np.full(classes, np.inf)
            np.minimum.at(lags, codes, ages)
            inflated = inflated * np.exp2(lags[codes] - ages)
        self.weights = inflated
        self._units = exponents - lags
        self.masses = np.bincount(codes, inflated, classes)
        self._squares = np.bincount(codes, inflated * inflated, classes)

    def factors(self, own: int) -> FloatArray:
        """Return the unit of each class relative to the largest unit of all classes but `own`.

        1 for `own`.
        """
        if self.is_unit:
            return np.ones(self.classes)
        others = np.delete(self._units, own)
        factors = np.exp2(np.minimum(self._units - others.max(), 0.0))
        factors[own] = 1.0
        return np.asarray(factors)

    @cached_property
    def all_factors(self) -> FloatArray:
        """The unit of each class relative to the largest unit of all classes."""
        return np.asarray(np.exp2(self._units - self._units.max()))

    @cached_property
    def beyond(self) -> FloatArray:
        """The effective size (sum w)^2 / sum w^2 of each class, less 1."""
        return np.asarray(self.masses.astype(np.float64) ** 2 / self._squares - 1.0)

    def beyond_of(self, factors: FloatArray) -> tuple[float, float]:
        """Return the mass of all classes in units of `factors`, and their effective size less 1."""
        mass = float(np.dot(self.masses, factors))
        return mass, mass * mass / float(np.dot(self._squares, factors * factors)) - 1.0

    def has_enough(self) -> bool:
        """Whether every class has at least two events of equal weight, or an effective size as large."""
        return bool((self.beyond >= _ENOUGH).all())
