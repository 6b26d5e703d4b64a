"""Rows of measures: the schema that every sink writes, one row as a record, many rows as columns.

`Rows` is columnar because a dense stream makes more rows than Python makes objects: a (model, slice) is
a code, numbers stand in two matrices, and what is null says why by a code (`REASONS`). `MeasureRow`s are
made only when somebody iterates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, overload

import numpy as np

from . import display
from .events import NO_TIME, FloatArray, Int8Array, Int32Array, Int64Array
from .row_reasons import reason_clauses
from .settings import MEASURES

if TYPE_CHECKING:  # an evaluation needs neither pyarrow nor pandas
    from .roc_curve import WindowCurve
    from .rows_arrow import DataFrame, Table

COUNT_COLUMNS = ("row", "seq", "window_events")
TIME_COLUMNS = ("time", "due", "pane_start", "pane_end", "window_start", "window_end")
INTEGER_COLUMNS = (*COUNT_COLUMNS, *TIME_COLUMNS)
MASS_COLUMNS = ("weight", "positives", "negatives", "prevalence")
NUMBER_COLUMNS = (*MASS_COLUMNS, *MEASURES)
"""The columns of the matrix of float64: masses, then measures. NaN stands for null."""

COLUMNS = (
    "model", "slice", "row", "seq", "time", "due", "pane_start", "pane_end",
    "window_events", "window_start", "window_end", *MASS_COLUMNS, *MEASURES, "drift", "reason", "config",
)  # fmt: skip
"""Every column of a row, in the order in which sinks write them."""

OK, ONE_CLASS, DEGENERATE, TOO_FEW, NO_PREDICTED_POSITIVES, NO_POSITIVES, NO_NEGATIVES = range(7)
NO_POSITIVE_CLASS, CHANCE_IS_CERTAIN, MAJORITY_IS_RIGHT, PERSISTENT_IS_RIGHT = range(7, 11)
EMPTY_MARGIN, NOTHING_TO_AVERAGE, OUT_OF_RANGE, CONSTANT_SCORES, NOT_ASKED = range(11, 16)

REASONS = (
    "",
    "one class in window",
    "degenerate interval",
    "fewer than two positives or negatives in window",
    "no predicted positives in window",
    "no positives in window",
    "no negatives in window",
    "no positive class is named",
    "chance agreement is certain",
    "the majority classifier makes no error",
    "the persistent classifier makes no error",
    "one class in the labels or in the predictions",
    "no positives and no predicted positives in window",
    "the numbers are beyond what a float holds",
    "constant scores in window",
    "",
)
"""Why a measure is null or to be read with care, by code. OK and NOT_ASKED say nothing.

These words are a contract: none is ever changed. None holds a colon, a comma or a semicolon.
"""


class Measures(NamedTuple):
    """What a window says now. None where undefined or not asked for; `reason` says why.

    Masses count events (or sum weights); rates and measures are fractions; thresholds are scores.
    """

    window_events: int
    weight: float | None = None
    positives: float | None = None
    negatives: float | None = None
    prevalence: float | None = None
    auc: float | None = None
    auc_low: float | None = None
    auc_high: float | None = None
    h: float | None = None
    ks: float | None = None
    ks_threshold: float | None = None
    brier: float | None = None
    log_loss: float | None = None
    tpr_at_fpr: float | None = None
    cost_threshold: float | None = None
    aum: float | None = None
    cost_curve_area: float | None = None
    average_precision: float | None = None
    calibration_error: float | None = None
    partial_auc: float | None = None
    partial_auc_mcclish: float | None = None
    polynomial_auc: float | None = None
    polynomial_auc_bound: float | None = None
    tp: float | None = None
    fp: float | None = None
    tn: float | None = None
    fn: float | None = None
    accuracy: float | None = None
    precision: float | None = None
    recall: float | None = None
    specificity: float | None = None
    f1: float | None = None
    balanced_accuracy: float | None = None
    g_mean: float | None = None
    harmonic_mean: float | None = None
    kappa: float | None = None
    kappa_m: float | None = None
    kappa_per: float | None = None
    mcc: float | None = None
    cmd: float | None = None
    reason: str | None = None

    def __repr__(self) -> str:
        return display.measures_text(self)

    def _repr_html_(self) -> str:
        return display.record_html(self)


class MeasureRow(NamedTuple):
    """One row: what the window of a (model, slice) said at one moment. Times are microseconds UTC.

    (model, slice, pane, row) is its identity: a sink that sees it twice keeps one.
    """

    model: str
    slice: str
    row: int
    seq: int
    time: int | None
    due: int | None
    pane_start: int | None
    pane_end: int | None
    window_events: int
    window_start: int | None
    window_end: int | None
    weight: float | None
    positives: float | None
    negatives: float | None
    prevalence: float | None
    auc: float | None
    auc_low: float | None
    auc_high: float | None
    h: float | None
    ks: float | None
    ks_threshold: float | None
    brier: float | None
    log_loss: float | None
    tpr_at_fpr: float | None
    cost_threshold: float | None
    aum: float | None
    cost_curve_area: float | None
    average_precision: float | None
    calibration_error: float | None
    partial_auc: float | None
    partial_auc_mcclish: float | None
    polynomial_auc: float | None
    polynomial_auc_bound: float | None
    tp: float | None
    fp: float | None
    tn: float | None
    fn: float | None
    accuracy: float | None
    precision: float | None
    recall: float | None
    specificity: float | None
    f1: float | None
    balanced_accuracy: float | None
    g_mean: float | None
    harmonic_mean: float | None
    kappa: float | None
    kappa_m: float | None
    kappa_per: float | None
    mcc: float | None
    cmd: float | None
    drift: bool | None
    reason: str | None
    config: str

    def __repr__(self) -> str:
        return display.row_text(self)

    def _repr_html_(self) -> str:
        return display.record_html(self)


def in_columns(numbers: FloatArray) -> FloatArray:
    """Return numbers by `NUMBER_COLUMNS`, which may have been stored when there was no polynomial AUC yet."""
    if numbers.shape[-1] != len(NUMBER_COLUMNS) - 2:
        return numbers
    place = NUMBER_COLUMNS.index("polynomial_auc")
    return np.insert(numbers, [place, place], np.nan, axis=-1)


def reason_text(codes: Sequence[int]) -> str | None:
    """Put the reasons of one row into words; `codes` are those of `MEASURES`.

    >>> reason_text([ONE_CLASS] * 2 + [OK] * (len(MEASURES) - 2))
    'auc, auc_low: one class in window'
    """
    return reason_clauses(dict(zip(MEASURES, (REASONS[code] for code in codes), strict=True)))


def with_failures(reason: str | None, failures: int) -> str | None:
    """Add to a reason at how many events so far the learner failed, which are in no window.

    >>> with_failures("auc: one class in window", 2)
    'the learner failed at 2 events; auc: one class in window'
    """
    if not failures:
        return reason
    said = f"the learner failed at {failures:,} event{'s' * (failures > 1)}"
    return said if reason is None else f"{said}; {reason}"


def _integer(value: int) -> int | None:
    return None if value == NO_TIME else value


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


class Rows(Sequence[MeasureRow]):
    """n rows in columns.

    keys      the (model, slice) pairs that occur
    key_codes int32[n], which of them a row belongs to
    integers  int64[n, len(INTEGER_COLUMNS)]; NO_TIME stands for null
    numbers   float64[n, len(NUMBER_COLUMNS)]; NaN stands for null
    reasons   int8[n, len(MEASURES)], codes of `REASONS`
    drift     int8[n]: 1, 0, or -1 for null
    config    the hash of the settings that made them
    curves    curves that fell due with these events, whether rows did or not (`EvaluatorSettings.curves`)
    failures  int64[n], of rows of a learner that is trained here: events so far at which it failed; or None
    """

    def __init__(
        self,
        keys: Sequence[tuple[str, str]],
        key_codes: Int32Array,
        integers: Int64Array,
        numbers: FloatArray,
        reasons: Int8Array,
        drift: Int8Array,
        config: str,
        curves: Sequence[WindowCurve] = (),
        failures: Int64Array | None = None,
    ) -> None:
        self.failures = failures
        self.keys = tuple(keys)
        self.key_codes = key_codes
        self.integers = integers
        self.numbers = numbers
        self.reasons = reasons
        self.drift = drift
        self.config = config
        self.curves = tuple(curves)

    @classmethod
    def empty(cls, config: str = "") -> Rows:
        """Return no rows."""
        return cls.blank(0, (), config)

    @classmethod
    def blank(cls, n: int, keys: Sequence[tuple[str, str]], config: str) -> Rows:
        """Return n rows of nulls, all of the first key, to be filled in place."""
        return cls(
            keys,
            np.zeros(n, np.int32),
            np.full((n, len(INTEGER_COLUMNS)), NO_TIME, np.int64),
            np.full((n, len(NUMBER_COLUMNS)), np.nan),
            np.zeros((n, len(MEASURES)), np.int8),
            np.full(n, -1, np.int8),
            config,
        )

    @classmethod
    def concat(cls, parts: Sequence[Rows]) -> Rows:
        """Put rows, and curves, one after another; all of one configuration."""
        parts = [part for part in parts if len(part) or part.curves]
        if not parts:
            return cls.empty()
        if len(parts) == 1:
            return parts[0]
        failures = [part.failures for part in parts if part.failures is not None]
        keys: dict[tuple[str, str], int] = {}
        codes = []
        for part in parts:
            table = np.array([keys.setdefault(key, len(keys)) for key in part.keys], np.int32)
            codes.append(table[part.key_codes])
        return cls(
            tuple(keys),
            np.concatenate(codes),
            np.concatenate([part.integers for part in parts]),
            np.concatenate([part.numbers for part in parts]),
            np.concatenate([part.reasons for part in parts]),
            np.concatenate([part.drift for part in parts]),
            parts[0].config,
            [curve for part in parts for curve in part.curves],
            np.concatenate(failures) if len(failures) == len(parts) else None,
        )

    def with_curves(self, curves: Sequence[WindowCurve]) -> Rows:
        """Return the same rows, and these curves beside them."""
        return Rows(
            self.keys, self.key_codes, self.integers, self.numbers, self.reasons, self.drift, self.config,
            curves, self.failures,
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.key_codes)

    def __repr__(self) -> str:
        return display.rows_text(self)

    def _repr_html_(self) -> str:
        return display.rows_html(self)

    def integer(self, name: str) -> Int64Array:
        """Return one integer column; NO_TIME stands for null."""
        return self.integers[:, INTEGER_COLUMNS.index(name)]

    def number(self, name: str) -> FloatArray:
        """Return one column of masses or measures; NaN stands for null.

        >>> Rows.blank(2, [("a", "")], "").number("auc")
        array([nan, nan])
        """
        return self.numbers[:, NUMBER_COLUMNS.index(name)]

    def reason_texts(self) -> list[str | None]:
        """Return the column `reason`. Rows repeat a few combinations, so each is put into words once."""
        if not len(self):
            return []
        # np.unique(axis=0) took 5 s for 100,000 rows where this takes 0.13 s, and 1 ms for one row
        codes, width = self.reasons.tobytes(), self.reasons.shape[1]
        keys = [codes[start : start + width] for start in range(0, len(codes), width)]
        texts = {key: reason_text(key) for key in set(keys)}
        said = [texts[key] for key in keys]
        if self.failures is None:
            return said
        return [with_failures(text, count) for text, count in zip(said, self.failures.tolist(), strict=True)]

    def measures(self, index: int = -1) -> Measures:
        """Return the measures of one row."""
        return Measures._make(
            (
                int(self.integers[index, INTEGER_COLUMNS.index("window_events")]),
                *map(_number, self.numbers[index].tolist()),
                reason_text(self.reasons[index].tolist()),
            )
        )

    def _row(self, index: int, reason: str | None) -> MeasureRow:
        row, seq, events, time, due, pane_start, pane_end, start, end = self.integers[index].tolist()
        drift = int(self.drift[index])
        return MeasureRow._make(
            (
                *self.keys[self.key_codes[index]],
                row,
                seq,
                *map(_integer, (time, due, pane_start, pane_end)),
                events,
                *map(_integer, (start, end)),
                *map(_number, self.numbers[index].tolist()),
                None if drift < 0 else bool(drift),
                reason,
                self.config,
            )
        )

    @overload
    def __getitem__(self, index: int) -> MeasureRow: ...

    @overload
    def __getitem__(self, index: slice) -> Rows: ...

    def __getitem__(self, index: int | slice) -> MeasureRow | Rows:
        """Return one row as a record, or several as `Rows` that share these arrays.

        >>> len(Rows.blank(5, [("a", "")], "")[-3:])
        3
        """
        if isinstance(index, slice):
            return self._part(index)
        reason = reason_text(self.reasons[index].tolist())
        failures = 0 if self.failures is None else int(self.failures[index])
        return self._row(index, with_failures(reason, failures))

    def _part(self, rows: slice) -> Rows:
        """Return some of the rows, and none of the curves: these belong to no row."""
        return Rows(
            self.keys, self.key_codes[rows], self.integers[rows], self.numbers[rows], self.reasons[rows],
            self.drift[rows], self.config, (), None if self.failures is None else self.failures[rows],
        )  # fmt: skip

    def __iter__(self) -> Iterator[MeasureRow]:
        reasons = self.reason_texts()
        return (self._row(index, reasons[index]) for index in range(len(self)))

    def to_arrow(self) -> Table:
        """Return a pyarrow.Table: the columns that every sink writes, times as UTC. O(cells).

        >>> Rows.blank(2, [("a", "")], "").to_arrow().num_rows
        2
        """
        from .rows_arrow import rows_to_table

        return rows_to_table(self)

    def to_pandas(self) -> DataFrame:
        """Return a pandas.DataFrame: times as datetime64[us, UTC], null numbers as NaN, drift nullable.

        Raises MissingPackageError, which is also an ImportError, without pandas.

        >>> Rows.blank(2, [("a", "")], "").to_pandas().model.tolist()
        ['a', 'a']
        """
        from .rows_arrow import rows_to_pandas

        return rows_to_pandas(self)
