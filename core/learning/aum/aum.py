"""The area under min(FP, FN), a loss that is small where the ROC curve is good (Hocking & Hillman 2021).

An example i has a prediction f_i, and two error functions FP_i and FN_i of the prediction. Both are piecewise
constant, with FP_i(-inf) = 0 and FN_i(+inf) = 0. They are given by breakpoints: (v, change of FP, change of
FN, i). A binary label is one breakpoint at 0: a positive is missed below 0, a negative is a false alarm from
0 on. A constant that is added to all predictions moves them all to the right. The prediction of an example
reaches its breakpoint b when the constant is t_b = v_b - f_i. So the totals FP(t) and FN(t) over all examples
are step functions of the constant t, and

    AUM = integral of min(FP(t), FN(t)) dt,      O(B log B) by one sort of the t_b.

Line 7 of the authors' slides prints min{FP before, FN after} of a breakpoint. The minimum must use FN before:
with FN after, two examples in the wrong order would cost nothing.

Derivatives are one-sided: if f_i grows, the thresholds of its breakpoints fall. The slides' first column is
the left derivative, the second column the right derivative. If both are equal, AUM is differentiable in f_i.
If they differ, learners use the mean of both as the "gradient". Two breakpoints of one example at one
threshold count as one breakpoint, with the sum of both changes. Otherwise the slides' sums would not be the
derivatives.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...arrays import FloatArray, Int8Array, Int64Array
from ...errors import InputError
from ...events.inputs import OTHER_LABELS, as_array, as_binary, as_score_numbers, as_weights
from . import kernels

NO_WEIGHTS = np.empty(0)
"""The weights of events that all weigh 1: no numbers."""


class Aum(NamedTuple):
    """AUM and its two derivatives by every prediction.

    value  the area, in the unit of predictions times that of errors
    left   float64[n], the left derivative by each prediction: (AUM(f) - AUM(f - d)) / d
    right  float64[n], the right derivative by each prediction: (AUM(f + d) - AUM(f)) / d
    """

    value: float
    left: FloatArray
    right: FloatArray

    @property
    def gradient(self) -> FloatArray:
        """The mean of both derivatives: where AUM is differentiable, the mean is the gradient."""
        return (self.left + self.right) / 2.0


class Breakpoints(NamedTuple):
    """Breakpoints of error functions as arrays of one length B, and predictions, float64[n]."""

    predictions: FloatArray
    example: Int64Array
    breakpoint: FloatArray
    fp_diff: FloatArray
    fn_diff: FloatArray

    @property
    def slack(self) -> tuple[float, float]:
        """How far below 0 rounding alone can bring the totals of FP and of FN."""
        scale = 16.0 * np.finfo(float).eps * np.sqrt(len(self.example) + 1.0)
        return float(scale * np.abs(self.fp_diff).sum()), float(scale * np.abs(self.fn_diff).sum())

    def rows(self) -> FloatArray:
        """Return float64[B, 4]: (threshold, fp_diff, fn_diff, example) of every breakpoint, by threshold.

        Raises InputError for a value that is not a number, or an index of no example. O(B log B).
        """
        count = len(self.breakpoint)
        rows, keys = np.empty((count, 4)), np.empty(count, np.int64)
        code, at = kernels.write_rows(*self, rows, keys.view(np.float64))
        if code == kernels.NO_SUCH_EXAMPLE:
            raise InputError(
                f"example[{at}] is {self.example[at]}, and there are {len(self.predictions):,} predictions: "
                f"give an index from 0 to {len(self.predictions) - 1:,}"
            )
        if code != kernels.FINE:
            v, e = float(self.breakpoint[at]), int(self.example[at])
            p = float(self.predictions[e])
            what = f"breakpoint[{at}] is {v:g} and predictions[{e}] is {p:g}"
            raise InputError(
                f"{what}: both must be finite numbers, and so must be their difference; leave out where an "
                "error function does not change, and mend the prediction"
            )
        low = count.bit_length()
        kernels.write_keys(keys, low)
        keys.sort()
        ordered = np.empty((count, 4))
        if kernels.gather(keys, low, rows, ordered):
            return ordered
        return np.take(rows, np.argsort(rows[:, kernels.THRESHOLD].copy()), axis=0)

    def with_rates(self, rate: bool = True) -> Breakpoints:
        """Return the breakpoints of the rates FP / FP(+inf) and FN / FN(-inf).

        Raises InputError if FP(+inf) or FN(-inf) is 0.
        """
        if not rate:
            return self
        fp, fn = float(self.fp_diff.sum()), 0.0 - float(self.fn_diff.sum())
        for name, total, slack, end in zip(("FP", "FN"), (fp, fn), self.slack, ("+inf", "-inf"), strict=True):
            if total <= slack:
                raise InputError(
                    f"the total {name} at {end} is {total:g}: rates need errors of both kinds; take counts"
                )
        return self._replace(fp_diff=self.fp_diff / fp, fn_diff=self.fn_diff / fn)

    def aum(self) -> Aum:
        """Return AUM and its derivatives. O(B log B).

        Raises InputError if a total is negative by more than rounding.
        """
        rows, n = self.rows(), len(self.predictions)
        derivatives = np.zeros((n, 2))
        code, value = kernels.sweep(rows, *self.slack, np.empty(len(rows) + 1), derivatives, np.zeros((n, 2)))
        if code != kernels.FINE:
            raise self.refusal(code, value)
        return Aum(_finite(value), *derivatives.T)

    def refusal(self, code: int, at: float) -> InputError:
        """Return the error for a total that is negative at a threshold; it names the example at fault."""
        name = "FP" if code == kernels.FP_NEGATIVE else "FN"
        return negative_errors(*self[1:], (name,)) or InputError(
            f"the total {name} is negative at threshold {at:g}; every example's {name} must be at least 0"
        )


def aum(
    predictions: npt.ArrayLike,
    example: npt.ArrayLike,
    breakpoint: npt.ArrayLike,  # noqa: A002  the slides' word
    fp_diff: npt.ArrayLike,
    fn_diff: npt.ArrayLike,
    *,
    rate: bool = False,
) -> Aum:
    """Return AUM of error functions given by breakpoints, and its derivatives. O(B log B).

    predictions  n numbers
    example      B indices of predictions, in any order
    breakpoint   B numbers v: the error function of the example changes at the prediction v
    fp_diff, fn_diff   B numbers: by how much FP and FN of the example change at v, as the prediction goes up
    rate         errors are rates, not counts (AUM.rate): fp_diff is divided by its sum, which is the total FP
                 at +inf, and fn_diff by minus its sum, the total FN at -inf. For binary labels these are the
                 numbers of negatives and of positives; the R package aum divides in the same way.

    Breakpoints without effect are allowed, and so are examples without breakpoints. Without any breakpoint
    AUM is 0. A total that is negative by rounding counts as 0. Raises InputError, which names the example or
    the position: arrays of different lengths, no predictions, a value that is not finite, an index of no
    prediction, a total that is negative by more than rounding, or rates where FP or FN is missing.

    >>> result = aum([1.0, -1.0], example=[0, 1], breakpoint=[0, 0], fp_diff=[1, 0], fn_diff=[0, -1])
    >>> result.value, result.left.tolist(), result.right.tolist()
    (2.0, [1.0, -1.0], [1.0, -1.0])
    """
    return as_breakpoints(predictions, example, breakpoint, fp_diff, fn_diff, rate).aum()


def aum_of_labels(
    labels: npt.ArrayLike, scores: npt.ArrayLike, weights: npt.ArrayLike | None = None, rate: bool = False
) -> Aum:
    """Return AUM of binary labels, and its derivatives by the scores. O(n), without a sort.

    labels   1/0, 1/-1 or booleans; 1 is positive
    scores   finite numbers, higher = more likely positive
    weights  of events, above 0; 1 without
    rate     each class has mass 1 (AUM.rate)

    Equals `aum` with one breakpoint at 0 for each event, but is computed by selection. FN(t) grows and FP(t)
    falls with a threshold t on scores, so they cross once, at the smallest score c with mass(all at or below
    c) >= mass(negatives). AUM is the sum of the distances to c of the positives below c and of the negatives
    above c.

    With one class AUM is 0, since one kind of error is missing. Raises InputError for labels, scores or
    weights that are not valid, lengths that differ, no events, or rate with one class.

    >>> aum_of_labels([1, 0, 1], [0.0, 1.0, 2.0]).value
    1.0
    >>> aum_of_labels([1, 0, 1], [0.0, 1.0, 2.0], rate=True).value
    0.5
    """
    y = as_binary(as_array("labels", labels), OTHER_LABELS)
    s = as_score_numbers("scores", scores) + 0.0  # -0.0 ties with 0.0
    w = NO_WEIGHTS if weights is None else as_weights(weights)
    check_lengths(labels=y, scores=s, **({} if weights is None else {"weights": w}))
    if not len(y):
        raise InputError("labels are empty: AUM needs at least one event")
    check_finite("scores", s)
    if rate and (y == y[0]).all():
        raise InputError(
            f"all labels are {int(y[0])}: rates need events of both classes; take counts, or more events"
        )
    return aum_of_classes(y, s, w, rate)


def aum_of_classes(
    labels: Int8Array, scores: FloatArray, weights: FloatArray, rate: bool, together: bool = False
) -> Aum:
    """Return `aum_of_labels` for arrays of the right kinds, without checks; learners call it at every step.

    weights   float64[n], or float64[0] if every weight is 1
    together  tied events of one class move together, and each gets the share of the derivative that its mass
              has. Then an event of weight 2 counts as two events of weight 1
    """
    p, n = class_masses(labels, weights)
    left, right = np.zeros(len(labels)), np.zeros(len(labels))
    if not (p and n):
        return Aum(0.0, left, right)
    # For two classes the negatives have the mass n p in all, and so have the positives: whole numbers if the
    # weights are.
    unit = -math.frexp(max(p, n))[1]  # so that products of masses stay in range, whatever the unit
    selecting = np.array([math.ldexp(p, unit), math.ldexp(n, unit)]) if rate else np.ones(2)
    width = 8 if len(labels) < 100_000 else 16  # 2^width bins are emptied for each pass
    at = kernels.crossing(
        scores.view(np.int64), labels, weights, selecting, n * selecting[0], width, np.empty(1 << width),
        np.empty(len(labels), np.int64),
    )  # fmt: skip
    own = np.array([1.0 / n, 1.0 / p]) if rate else np.ones(2)
    value = kernels.sums_about(float(scores[at]), labels, scores, weights, own, together, left, right)
    return Aum(_finite(value), left, right)


def class_masses(labels: Int8Array, weights: FloatArray) -> tuple[float, float]:
    """Return the masses of positives and of negatives; `weights` as in `aum_of_classes`. O(n)."""
    if not len(weights):
        positives = int(np.count_nonzero(labels))
        return float(positives), float(len(labels) - positives)
    return float(weights[labels == 1].sum()), float(weights[labels == 0].sum())


def as_breakpoints(
    predictions: npt.ArrayLike,
    example: npt.ArrayLike,
    breakpoint: npt.ArrayLike,  # noqa: A002
    fp_diff: npt.ArrayLike,
    fn_diff: npt.ArrayLike,
    rate: bool = False,
) -> Breakpoints:
    """Return the arguments of `aum` as `Breakpoints`. Raises InputError for values that `aum` refuses."""
    at = as_array("example", example)
    if len(at) and at.dtype.kind not in "iu":
        raise InputError(f"example is of type {at.dtype}: give whole numbers, the indices of predictions")
    numbers = numbers_along(at, breakpoint=breakpoint, fp_diff=fp_diff, fn_diff=fn_diff)
    f = numbers_of("predictions", predictions)
    if not len(f):
        raise InputError("predictions are empty: AUM needs at least one")
    check_finite("predictions", f)
    for name in ("fp_diff", "fn_diff"):
        check_finite(name, numbers[name])
    return Breakpoints(f, np.require(at, np.int64, ["C", "W"]), **numbers).with_rates(rate)


def numbers_of(name: str, values: npt.ArrayLike) -> FloatArray:
    """Return an argument as an array that kernels take: float64[n], contiguous and writeable.

    Raises InputError for values that are no such array.
    """
    array = as_array(name, values)
    if array.dtype.kind not in "biuf" and len(array):
        raise InputError(f"{name} is of type {array.dtype}: give finite numbers")
    if array.ndim != 1:
        raise InputError(f"{name} has the shape {array.shape}: give one dimension")
    return np.require(array, np.float64, ["C", "W"])  # kernels are compiled for this kind of array alone


def numbers_along(example: npt.NDArray[Any], **arrays: npt.ArrayLike) -> dict[str, FloatArray]:
    """Return the arguments as float64[n] by name, one number for each element of `example`.

    Raises InputError.
    """
    numbers = {name: numbers_of(name, values) for name, values in arrays.items()}
    check_lengths(example=example, **numbers)
    return numbers


def check_lengths(**arrays: npt.NDArray[Any]) -> None:
    """Raise InputError unless all arrays have one dimension and the same length."""
    for name, array in arrays.items():
        if array.ndim != 1:
            raise InputError(f"{name} has the shape {array.shape}: give one dimension")
    (first, reference), *others = arrays.items()
    for name, array in others:
        if len(array) != len(reference):
            raise InputError(
                f"{name} has {len(array):,} values and {first} has {len(reference):,}: they must be as many"
            )


def check_finite(name: str, values: FloatArray) -> None:
    """Raise InputError if a value is not a finite number."""
    if not np.isfinite(values).all():
        at = int(np.flatnonzero(~np.isfinite(values))[0])
        raise InputError(f"{name}[{at}] is {values[at]}: give finite numbers; leave the example out")


def _finite(value: float) -> float:
    if not np.isfinite(value):
        raise InputError("AUM is beyond what a float holds; scale the predictions down")
    return float(value)


def negative_errors(
    example: Int64Array,
    breakpoint: FloatArray,  # noqa: A002
    fp_diff: FloatArray,
    fn_diff: FloatArray,
    which: Sequence[str] = ("FP", "FN"),
    names: Sequence[Hashable] | None = None,
) -> InputError | None:
    """Return the error for the first example whose FP or FN is negative somewhere.

    None if there is no such example.

    which  which of the error functions FP and FN to check
    names  names of the examples; without names, messages have their indices
    """
    order = np.lexsort((breakpoint, example))
    for mine in np.split(order, np.flatnonzero(np.diff(example[order])) + 1):
        for name in which:
            own = np.cumsum(fp_diff[mine]) if name == "FP" else np.cumsum(-fn_diff[mine][::-1])
            if own.min(initial=0.0) < -1e-9 * np.abs(own).max(initial=0.0):
                at = int(example[mine[0]])
                named = at if names is None else repr(names[at])
                side = "-inf" if name == "FP" else "+inf"
                return InputError(
                    f"example {named}: {name} falls to {own.min():g} by its breakpoints, since it is 0 at "
                    f"{side}; errors are counts, never negative: check the signs of its differences"
                )
    return None
