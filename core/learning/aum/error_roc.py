"""The ROC curve of error functions, which may have loops (Hocking & Hillman 2021).

A point of the curve is FP(t) and FN(t): the errors of all examples together after a constant t was added to
their predictions. Both totals are constant between two thresholds. If error functions are not monotone, the
curve goes back and forth. The area under the curve then counts some regions twice, and counts regions inside
loops of the other direction negatively. So the area can be above 1.

If AUM is 0, then at every t FP(t) or FN(t) is 0. The curve then runs along two sides of the unit square,
through the point FPR 0, TPR 1, and its AUC is 1. There is one exception. If FP begins to rise at the
threshold at which FN falls to 0, both rates change at once, and the curve cuts the corner. For example, two
equal predictions of both classes have AUM 0 and AUC 1/2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...arrays import FloatArray, Int64Array
from .aum import Breakpoints, as_breakpoints
from .kernels import FN, FN_NEGATIVE, FP, FP_NEGATIVE, THRESHOLD


@dataclass(frozen=True, eq=False, repr=False)
class ErrorRoc:
    """The ROC curve of error functions: its points from t = -inf, where FP is 0, to t = +inf, where FN is 0.

    thresholds  float64[q], ascending; point i belongs to the constants from thresholds[i - 1] to
                thresholds[i]
    fp, fn      float64[q + 1]: the total errors at each point
    """

    thresholds: FloatArray
    fp: FloatArray
    fn: FloatArray

    def __len__(self) -> int:
        """Return the number of points."""
        return len(self.fp)

    def __repr__(self) -> str:
        return f"<ErrorRoc: {len(self):,} points, AUC {self.auc}, AUM {self.aum:g}>"

    @property
    def low(self) -> FloatArray:
        """The constant at which the interval of each point begins."""
        return np.concatenate([[-np.inf], self.thresholds])

    @property
    def high(self) -> FloatArray:
        """The constant at which the interval of each point ends."""
        return np.concatenate([self.thresholds, [np.inf]])

    @property
    def fpr(self) -> FloatArray:
        """FP / FP(+inf) at each point: 0 at the first point, 1 at the last. NaN if FP(+inf) is 0."""
        return self.fp / self.fp[-1] if self.fp[-1] else np.full(len(self), np.nan)

    @property
    def tpr(self) -> FloatArray:
        """1 - FN / FN(-inf) at each point: 0 at the first point, 1 at the last. NaN if FN(-inf) is 0."""
        return 1.0 - self.fn / self.fn[0] if self.fn[0] else np.full(len(self), np.nan)

    @property
    def auc(self) -> float | None:
        """The area under the points in their order, summed by trapezoids with sign.

        None if FP(+inf) or FN(-inf) is 0.
        """
        if not (self.fp[-1] and self.fn[0]):
            return None
        return float(np.diff(self.fpr) @ (self.tpr[1:] + self.tpr[:-1]) / 2.0)

    @property
    def aum(self) -> float:
        """The area under min(FP, FN) between the first and the last threshold."""
        return float(np.diff(self.thresholds) @ np.minimum(self.fp, self.fn)[1:-1])

    def with_rates(self, rate: bool = True) -> ErrorRoc:
        """Return the curve of the rates FP / FP(+inf) and FN / FN(-inf).

        Returns the curve itself if FP(+inf) or FN(-inf) is 0, or if `rate` is False.
        """
        if not (rate and self.fp[-1] and self.fn[0]):
            return self
        return ErrorRoc(self.thresholds, self.fpr, self.fn / self.fn[0])

    @property
    def errors(self) -> FloatArray:
        """FP + FN at each point."""
        return self.fp + self.fn

    @property
    def best(self) -> Int64Array:
        """The numbers of the points with the fewest errors."""
        errors = self.errors
        return np.flatnonzero(errors <= errors.min() + 1e-9 * errors.max())

    @property
    def best_interval(self) -> tuple[float, float]:
        """The widest interval of constants for which errors are fewest; adjacent intervals are joined."""
        best = self.best
        runs = np.split(best, np.flatnonzero(np.diff(best) > 1) + 1)
        ends = [(float(self.low[run[0]]), float(self.high[run[-1]])) for run in runs]
        return max(ends, key=lambda pair: pair[1] - pair[0])

    @property
    def best_constant(self) -> float:
        """A constant for which errors are fewest.

        It is the middle of `best_interval`, or lies 1 from the only finite end of `best_interval`.
        """
        low, high = self.best_interval
        if np.isfinite(low) and np.isfinite(high):
            return low + (high - low) / 2.0
        return low + 1.0 if np.isfinite(low) else high - 1.0 if np.isfinite(high) else 0.0


def roc_of(given: Breakpoints) -> ErrorRoc:
    """Return the ROC curve of breakpoints. Raises InputError if FP or FN is negative. O(B log B)."""
    rows = given.rows()
    ordered = rows[:, THRESHOLD]
    first = np.flatnonzero(np.diff(ordered, prepend=-np.inf) > 0)
    fp = np.concatenate([[0.0], np.cumsum(np.add.reduceat(rows[:, FP], first))])
    fn = np.concatenate([np.cumsum(-np.add.reduceat(rows[:, FN], first)[::-1])[::-1], [0.0]])
    for code, total, slack in ((FP_NEGATIVE, fp, given.slack[0]), (FN_NEGATIVE, fn, given.slack[1])):
        negative = np.flatnonzero(total < -slack)
        if len(negative):
            raise given.refusal(code, float(ordered[first[min(int(negative[0]), len(first) - 1)]]))
    return ErrorRoc(ordered[first], np.maximum(fp, 0.0), np.maximum(fn, 0.0))


def roc_of_error_functions(
    predictions: npt.ArrayLike,
    example: npt.ArrayLike,
    breakpoint: npt.ArrayLike,  # noqa: A002
    fp_diff: npt.ArrayLike,
    fn_diff: npt.ArrayLike,
) -> ErrorRoc:
    """Return the ROC curve of error functions given by breakpoints. O(B log B).

    predictions, example, breakpoint, fp_diff, fn_diff  as in `aum`

    Raises InputError, as `aum` does.

    >>> roc = roc_of_error_functions([1.0, -1.0], [0, 1], [0, 0], fp_diff=[1, 0], fn_diff=[0, -1])
    >>> roc.fpr.tolist(), roc.tpr.tolist(), roc.auc, roc.aum
    ([0.0, 1.0, 1.0], [0.0, 0.0, 1.0], 0.0, 2.0)
    """
    return roc_of(as_breakpoints(predictions, example, breakpoint, fp_diff, fn_diff))


def sum_of_min(
    predictions: npt.ArrayLike,
    example: npt.ArrayLike,
    breakpoint: npt.ArrayLike,  # noqa: A002
    fp_diff: npt.ArrayLike,
    fn_diff: npt.ArrayLike,
    *,
    rate: bool = False,
) -> float:
    """Return SM, the sum of min(FP, FN) over the intervals between distinct thresholds. O(B log B).

    SM counts each interval once, while AUM weighs it by its length: AUM is the continuous L1 relaxation of SM
    (slides, "L1 relaxation interpretation").

    predictions, example, breakpoint, fp_diff, fn_diff, rate  as in `aum`

    Raises InputError, as `aum` does.

    >>> sum_of_min([1.0, -1.0], example=[0, 1], breakpoint=[0, 0], fp_diff=[1, 0], fn_diff=[0, -1])
    1.0
    """
    roc = roc_of(as_breakpoints(predictions, example, breakpoint, fp_diff, fn_diff, rate))
    return float(np.minimum(roc.fp, roc.fn)[1:-1].sum())
