"""Error functions of examples, as breakpoints.

They are read from tables by penalty, from breakpoints, or from labels.

The prediction of a changepoint problem is f = -log(lambda). A smaller penalty lambda finds more changes. So
as f grows, false positives appear and false negatives disappear. FP is 0 at f = -inf, where lambda is
infinite and no change is found. FN is 0 at f = +inf, where lambda is 0. Neither function need be monotone
(Hocking & Hillman 2021).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...arrays import FloatArray, Int64Array
from ...errors import InputError
from ...events.inputs import OTHER_LABELS, as_array, as_binary, as_weights
from .aum import Aum, Breakpoints, check_finite, check_lengths, negative_errors, numbers_along, numbers_of
from .error_roc import ErrorRoc, roc_of


@dataclass(frozen=True, eq=False, repr=False)
class ErrorFunctions:
    """FP and FN of n examples as functions of their predictions.

    example     int64[B], ascending; an example may have none
    breakpoint  float64[B], ascending and distinct within an example
    fp_diff, fn_diff   float64[B], not both 0: by how much FP and FN change there as the prediction goes up
    names       names of the examples, for messages; without names, messages have their indices

    `of_breakpoints`, `of_penalties` and `of_labels` make and check error functions.
    """

    example: Int64Array
    breakpoint: FloatArray
    fp_diff: FloatArray
    fn_diff: FloatArray
    names: tuple[Hashable, ...]

    @classmethod
    def of_breakpoints(
        cls,
        example: npt.ArrayLike,
        breakpoint: npt.ArrayLike,  # noqa: A002
        fp_diff: npt.ArrayLike,
        fn_diff: npt.ArrayLike,
        names: Sequence[Hashable],
    ) -> ErrorFunctions:
        """Return error functions from breakpoints in any order.

        breakpoints of an example at the same prediction are merged.

        example          B indices of `names`
        breakpoint       B numbers: the prediction at which the errors of the example change
        fp_diff, fn_diff B numbers: by how much FP and FN of the example change at the breakpoint
        names            of all examples, as range(n)

        Raises InputError, which names the example: no examples, an index of no example, a value that is not
        finite, or FP or FN that is negative somewhere by more than rounding. O(B log B).
        """
        e = as_array("example", example)
        if len(e) and e.dtype.kind not in "iu":
            raise InputError(f"example is of type {e.dtype}: give whole numbers, the indices of examples")
        numbers = numbers_along(e, breakpoint=breakpoint, fp_diff=fp_diff, fn_diff=fn_diff)
        names = tuple(names)
        if not names:
            raise InputError("there are no examples: give at least one")
        outside = np.flatnonzero((e < 0) | (e >= len(names)))
        if len(outside):
            raise InputError(
                f"example[{outside[0]}] is {e[outside[0]]}, and there are {len(names):,} examples: give an "
                f"index from 0 to {len(names) - 1:,}"
            )
        for name, values in numbers.items():
            bad = np.flatnonzero(~np.isfinite(values))
            if len(bad):
                raise InputError(
                    f"example {names[e[bad[0]]]!r}: {name} {values[bad[0]]} is no finite number; leave the "
                    "example out, or mend it"
                )
        merged = _merged(e.astype(np.int64), *numbers.values())
        if (problem := negative_errors(*merged, names=names)) is not None:
            raise problem
        return cls(*merged, names)

    @classmethod
    def of_penalties(
        cls,
        example: Iterable[Hashable],
        min_log_lambda: npt.ArrayLike,
        fp: npt.ArrayLike,
        fn: npt.ArrayLike,
        names: Sequence[Hashable] | None = None,
        shift: bool = False,
    ) -> ErrorFunctions:
        """Return functions of f = -log(lambda) from a table of errors by example and interval of the penalty.

        example         of each row, in any order
        min_log_lambda  where the row's interval begins; the interval ends where the next interval of the
                        example begins, the last interval at +inf. Each example needs a row that begins at
                        -inf
        fp, fn          errors of the example in this interval: counts, or masses
        names           the wanted examples, in the order of the features; by default all examples of the
                        table
        shift           subtract FP at lambda = inf and FN at lambda = 0, which should be 0: errors that no
                        penalty avoids. Without `shift` such errors raise InputError

        Raises InputError, which names the example. O(rows log rows).

        >>> import numpy as np
        >>> errors = ErrorFunctions.of_penalties(["a", "a", "b", "b"], [-np.inf, 1, -np.inf, 0],
        ...                                      fp=[2, 0, 0, 0], fn=[0, 0, 0, 1])
        >>> errors.breakpoint.tolist(), errors.fp_diff.tolist(), errors.fn_diff.tolist()
        ([-1.0, -0.0], [2.0, 0.0], [0.0, -1.0])
        """
        found = [name.item() if isinstance(name, np.generic) else name for name in example]
        numbers = numbers_along(np.empty(len(found)), min_log_lambda=min_log_lambda, fp=fp, fn=fn)
        names = tuple(dict.fromkeys(found) if names is None else names)
        if not names:
            raise InputError("there are no examples: the table of errors is empty")
        index = {name: i for i, name in enumerate(names)}
        if len(index) < len(names):
            raise InputError("names has an example twice; name each once")
        e = np.array([index.get(name, -1) for name in found], np.int64)
        absent = np.setdiff1d(np.arange(len(names)), e)
        if len(absent):
            raise InputError(f"example {names[absent[0]]!r} has no row in the table of errors; leave it out")
        _check_penalties(names, e, numbers)
        begin, errors = numbers["min_log_lambda"], np.stack([numbers["fp"], numbers["fn"]])
        kept = np.flatnonzero(e >= 0)
        # in the order of predictions: the greatest penalty first
        rows = kept[np.lexsort((-begin[kept], e[kept]))]
        e, begin, errors = e[rows], begin[rows], errors[:, rows]
        _check_intervals(names, e, begin, errors, shift)
        at = np.flatnonzero((e[1:] == e[:-1]) & (begin[1:] != begin[:-1]))
        dfp, dfn = errors[:, at + 1] - errors[:, at]
        return cls.of_breakpoints(e[at], -begin[at], dfp, dfn, names)

    @classmethod
    def of_labels(cls, labels: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> ErrorFunctions:
        """Return error functions of binary labels: each example has one breakpoint, at 0. Raises InputError.

        O(n).

        labels   1/0, 1/-1 or booleans
        weights  above 0; 1 each by default
        """
        y = as_binary(as_array("labels", labels), OTHER_LABELS)
        w = np.ones(len(y)) if weights is None else as_weights(weights)
        check_lengths(labels=y, weights=w)
        if not len(y):
            raise InputError("labels are empty: there are no examples")
        n = len(y)
        return cls(np.arange(n), np.zeros(n), np.where(y, 0.0, w), np.where(y, -w, 0.0), tuple(range(n)))

    def __len__(self) -> int:
        """Return the number of examples."""
        return len(self.names)

    def __repr__(self) -> str:
        return f"<ErrorFunctions: {len(self):,} examples, {len(self.example):,} breakpoints>"

    @property
    def totals(self) -> tuple[float, float]:
        """FP of all examples at +inf, and FN of all examples at -inf: the divisors of rates."""
        return float(self.fp_diff.sum()), 0.0 - float(self.fn_diff.sum())

    def take(self, examples: npt.ArrayLike) -> ErrorFunctions:
        """Return the error functions of the chosen examples: indices in the order wanted, each at most once.

        Raises InputError for an index of no example, or a repeated index. O(B).
        """
        chosen = as_indices("examples", examples, len(self))
        place = np.full(len(self), -1)
        place[chosen] = np.arange(len(chosen))
        example = place[self.example]
        rows = np.argsort(example, kind="stable")[np.count_nonzero(example < 0) :]
        at, dfp, dfn = (each[rows] for each in (self.breakpoint, self.fp_diff, self.fn_diff))
        return ErrorFunctions(example[rows], at, dfp, dfn, tuple(self.names[i] for i in chosen.tolist()))

    def breakpoints(self, predictions: npt.ArrayLike, rate: bool = False) -> Breakpoints:
        """Return the `Breakpoints` of predictions, float64[n]; `rate` as in `aum`. Raises InputError."""
        f = numbers_of("predictions", predictions)
        if len(f) != len(self):
            raise InputError(
                f"there are {len(f):,} predictions and {len(self):,} examples; give one for each"
            )
        given = Breakpoints(f, self.example, self.breakpoint, self.fp_diff, self.fn_diff)
        return given.with_rates(rate)

    def aum(self, predictions: npt.ArrayLike, rate: bool = False) -> Aum:
        """Return AUM of predictions and its derivatives; `rate` as in the function `aum`. O(B log B)."""
        return self.breakpoints(predictions, rate).aum()

    def roc(self, predictions: npt.ArrayLike) -> ErrorRoc:
        """Return the ROC curve of predictions. O(B log B)."""
        return roc_of(self.breakpoints(predictions))

    def errors(self, predictions: npt.ArrayLike) -> FloatArray:
        """Return FP + FN of every example at its prediction, float64[n]. O(B).

        At a breakpoint the error is the value just above the breakpoint, as a penalty's interval includes its
        upper end.
        """
        f = self.breakpoints(predictions).predictions
        check_finite("predictions", f)
        above = self.breakpoint > f[self.example]
        missed = np.bincount(self.example, np.where(above, -self.fn_diff, self.fp_diff), len(self))
        return np.asarray(missed, np.float64)

    def target_intervals(self) -> tuple[FloatArray, FloatArray]:
        """Return low and high, float64[n] each: the interval of predictions with the fewest errors.

        If several intervals have the fewest errors, the widest counts. An interval without a lower end has
        low = -inf, without an upper end high = inf. An example without breakpoints has both. O(B).
        """
        low, high = np.full(len(self), -np.inf), np.full(len(self), np.inf)
        starts = np.flatnonzero(np.diff(self.example, prepend=-1) > 0)
        for rows in np.split(np.arange(len(self.example)), starts[1:]) if len(starts) else []:
            edges = np.concatenate([[-np.inf], self.breakpoint[rows], [np.inf]])
            errors = np.cumsum(np.append(-self.fn_diff[rows].sum(), self.fp_diff[rows] + self.fn_diff[rows]))
            least = errors <= errors.min() + 1e-9 * np.abs(errors).max()
            changes = np.flatnonzero(np.diff(np.concatenate([[False], least, [False]])))
            begin, end = edges[changes[::2]], edges[changes[1::2]]
            widest = int(np.argmax(end - begin))
            e = self.example[rows[0]]
            low[e], high[e] = begin[widest], end[widest]
        return low, high


def as_indices(name: str, values: npt.ArrayLike, length: int) -> Int64Array:
    """Return distinct indices below `length`, in the order given.

    Raises InputError for an index out of range, or a repeated index.
    """
    array = as_array(name, values)
    if array.ndim != 1 or (len(array) and array.dtype.kind not in "iu"):
        raise InputError(f"{name} is of type {array.dtype} and shape {array.shape}: give whole numbers, (n,)")
    outside = np.flatnonzero((array < 0) | (array >= length))
    if len(outside):
        raise InputError(
            f"{name}[{outside[0]}] is {array[outside[0]]}: give indices from 0 to {length - 1:,}, each once"
        )
    found, counts = np.unique(array, return_counts=True)
    if len(found) < len(array):
        raise InputError(f"{name} has {found[counts > 1][0]} twice: give each index once")
    return array.astype(np.int64)


def _merged(
    example: Int64Array, at: FloatArray, fp_diff: FloatArray, fn_diff: FloatArray
) -> tuple[Int64Array, FloatArray, FloatArray, FloatArray]:
    """Return breakpoints in order, with the breakpoints at one place merged.

    Breakpoints without effect are dropped.
    """
    order = np.lexsort((at, example))
    e, v, dfp, dfn = example[order], at[order], fp_diff[order], fn_diff[order]
    first = np.flatnonzero((np.diff(e, prepend=-1) > 0) | (np.diff(v, prepend=-np.inf) > 0))
    e, v, dfp, dfn = e[first], v[first], np.add.reduceat(dfp, first), np.add.reduceat(dfn, first)
    kept = (dfp != 0.0) | (dfn != 0.0)
    return e[kept], v[kept], dfp[kept], dfn[kept]


def _check_penalties(
    names: tuple[Hashable, ...], example: Int64Array, numbers: dict[str, FloatArray]
) -> None:
    """Raise InputError if a row of a wanted example has a value that is not finite, or a negative count."""
    for name, values in numbers.items():
        is_begin = name == "min_log_lambda"
        good = values < np.inf if is_begin else np.isfinite(values) & (values >= 0)
        rows = np.flatnonzero(~good & (example >= 0))
        if len(rows):
            wanted = "a number, or -inf" if is_begin else "a finite number from 0 on"
            raise InputError(
                f"example {names[example[rows[0]]]!r}: {name} is {values[rows[0]]} in row {rows[0]}; "
                f"give {wanted}"
            )


def _check_intervals(
    names: tuple[Hashable, ...], example: Int64Array, begin: FloatArray, errors: FloatArray, shift: bool
) -> None:
    """Raise InputError for an example without a row from -inf on, contradictory rows, or errors at an end.

    begin, errors  of all rows by example and prediction; errors are FP and FN, (2, rows)
    shift          allow errors at the ends, where FP or FN should be 0
    """
    last = np.append(np.diff(example) > 0, True)
    lacking = np.flatnonzero(last & (begin != -np.inf))
    if len(lacking):
        raise InputError(
            f"example {names[example[lacking[0]]]!r} has no row from min_log_lambda = -inf on (lambda = 0): "
            f"its least is {begin[lacking[0]]:g}"
        )
    differ = (errors[:, 1:] != errors[:, :-1]).any(axis=0)
    same = np.flatnonzero(~last[:-1] & (begin[1:] == begin[:-1]) & differ)
    if len(same):
        raise InputError(
            f"example {names[example[same[0]]]!r} has two rows from min_log_lambda = {begin[same[0]]:g} on, "
            "with different errors; keep one"
        )
    ends = {"FP": ("lambda = inf", np.roll(last, 1)), "FN": ("lambda = 0", last)}
    for (name, (where, is_end)), own in zip(ends.items(), errors, strict=True):
        wrong = np.flatnonzero(is_end & (own != 0.0))
        if len(wrong) and not shift:
            raise InputError(
                f"example {names[example[wrong[0]]]!r}: {name} is {own[wrong[0]]:g} at {where} and should be "
                "0; shift=True takes away what no penalty avoids, else leave the example out"
            )
