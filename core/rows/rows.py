"""Many rows of measures in columns.

`Rows` is columnar, because a dense stream makes more rows than Python can make objects. Each (model, slice)
is a code. Numbers stand in two matrices. Each null measure has a code for its reason (`REASONS`). A
`MeasureRow` is made only when a caller iterates or takes one row.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, overload

import numpy as np

from ..arrays import NO_TIME, FloatArray, Int8Array, Int32Array, Int64Array
from ..process.console import name_text
from .class_columns import ClassColumns
from .columns import INTEGER_COLUMNS, NUMBER_COLUMNS, reason_text
from .display import HEADLINES, figures
from .measure_table import MEASURES
from .records import MeasureRow, Measures

if TYPE_CHECKING:  # type checkers alone import these: an evaluation needs neither pyarrow nor pandas
    from .arrow import DataFrame, Table
    from .curves import WindowCurve

_NAMES = ("model", "slice", "class")
_PREVIEWED = ("seq", "time", "window_events", "auc_macro", "auc_m", *HEADLINES)
_NAME_WIDTH = 40
_ENDS = 5
"""The number of rows that a preview shows from the beginning, and from the end."""


def with_failures(reason: str | None, failures: int) -> str | None:
    """Return a reason with the number of events so far at which the learner failed.

    No window holds these events.

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


@dataclass(eq=False, repr=False)
class Rows(Sequence[MeasureRow]):
    """Any number n of rows in columns.

    keys      the (model, slice) pairs of the rows
    key_codes int32[n], the place of each row's pair in `keys`
    integers  int64, a column for each count and time; the least int64 (NO_TIME) stands for null
    numbers   float64, a column for each mass and measure; NaN stands for null
    reasons   int8[n, len(MEASURES)], codes of `REASONS`
    drift     int8[n]: 1, 0, or -1 for null
    config    the hash of the settings that made the rows
    curves    the curves that fell due after the same events, with or without rows
              (`EvaluatorSettings.curves`)
    failures  int64[n], for the rows of a trained learner: the number of events so far at which the learner
              failed. None for other rows
    settled   (shard, number of shards, since, until): all rows of the shard with `due` in (since, until] are
              among these rows. None if these rows need not be all rows of a shard
    classes   for rows of models with classes, else None: the class of each row, and the means of each row
              over all classes
    """

    keys: tuple[tuple[str, str], ...]
    key_codes: Int32Array
    integers: Int64Array
    numbers: FloatArray
    reasons: Int8Array
    drift: Int8Array
    config: str
    curves: Sequence[WindowCurve] = ()
    failures: Int64Array | None = None
    settled: tuple[int, int, int, int] | None = None
    classes: ClassColumns | None = None

    @classmethod
    def empty(cls, config: str = "") -> Rows:
        """Return an object without rows."""
        return cls.blank(0, (), config)

    @classmethod
    def blank(cls, n: int, keys: Sequence[tuple[str, str]], config: str) -> Rows:
        """Return n rows of nulls, all with the first key, to be filled in place."""
        return cls(
            tuple(keys),
            np.zeros(n, np.int32),
            np.full((n, len(INTEGER_COLUMNS)), NO_TIME, np.int64),
            np.full((n, len(NUMBER_COLUMNS)), np.nan),
            np.zeros((n, len(MEASURES)), np.int8),
            np.full(n, -1, np.int8),
            config,
        )

    @classmethod
    def concat(cls, parts: Sequence[Rows]) -> Rows:
        """Concatenate rows, and their curves. All parts must come from the same settings."""
        parts = [part for part in parts if len(part) or part.curves]
        if not parts:
            return cls.empty()
        if len(parts) == 1:
            return parts[0]
        failures = [part.failures for part in parts if part.failures is not None]
        classes = [part.classes for part in parts if part.classes is not None]
        keys: dict[tuple[str, str], int] = {}
        table = np.array([keys.setdefault(key, len(keys)) for part in parts for key in part.keys], np.int32)
        firsts = np.cumsum([0, *(len(part.keys) for part in parts[:-1])])
        places = np.repeat(firsts, [len(part) for part in parts])
        return cls(
            tuple(keys),
            table[places + np.concatenate([part.key_codes for part in parts])],
            np.concatenate([part.integers for part in parts]),
            np.concatenate([part.numbers for part in parts]),
            np.concatenate([part.reasons for part in parts]),
            np.concatenate([part.drift for part in parts]),
            parts[0].config,
            tuple(curve for part in parts for curve in part.curves),
            np.concatenate(failures) if len(failures) == len(parts) else None,
            classes=ClassColumns.concat(classes) if len(classes) == len(parts) else None,
        )

    def with_curves(self, curves: Sequence[WindowCurve]) -> Rows:
        """Return the same rows with `curves` as their curves."""
        return replace(self, curves=tuple(curves))

    def __len__(self) -> int:
        return len(self.key_codes)

    def __repr__(self) -> str:
        """Return the first and the last rows with their main measures, in columns of text."""
        names, cells, between = self._preview()
        if not cells:
            return f"<{self._title}>"
        texts = sum(name in _NAMES for name in names)
        widths = [max(len(line[i]) for line in [names, *cells]) for i in range(len(names))]
        lines = [_aligned(line, widths, texts) for line in [names, *cells]]
        if between:
            lines.insert(1 + _ENDS, f"  ... {between:,} rows ...")
        return "\n".join([f"<{self._title}", *lines]) + ">"

    def _repr_html_(self) -> str:
        """Return the first and the last rows with their main measures, as an HTML table."""
        names, cells, between = self._preview()
        head = "".join(f"<th>{escape(name)}</th>" for name in names)
        lines = [f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in line)}</tr>" for line in cells]
        if between:
            lines.insert(_ENDS, f'<tr><td colspan="{len(names)}">... {between:,} rows ...</td></tr>')
        table = (
            f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>" if lines else ""
        )
        return f"<div><p>{escape(self._title)}</p>{table}</div>"

    @property
    def _title(self) -> str:
        curves = f", {len(self.curves):,} curves" if self.curves else ""
        of = "" if self.classes is None else f", {len(self.classes.names):,} classes"
        return f"Rows: {len(self):,} of {len(self.keys):,} (model, slice){of}{curves}"

    def _preview(self) -> tuple[list[str], list[list[str]], int]:
        """Return column names, the cells of the first and the last rows, and the number of rows between."""
        n = len(self)
        shown = range(n) if n <= 2 * _ENDS else [*range(_ENDS), *range(n - _ENDS, n)]
        records = [self[index] for index in shown]
        found = [dict(figures(row, _PREVIEWED)) for row in records]
        named = [{"model": row.model, "slice": row.slice} for row in records]
        if self.classes is not None:
            for index, of_row, texts in zip(shown, found, named, strict=True):
                of_row |= figures(self.classes.means[index], _PREVIEWED)
                texts["class"] = self.classes.name(index) or ""
        names = [name for name in _PREVIEWED if any(name in of_row for of_row in found)]
        titles = [name for name in _NAMES if any(texts.get(name) for texts in named)]
        cells = [
            [
                *(name_text(texts[name], _NAME_WIDTH) for name in titles),
                *(of_row.get(name, "") for name in names),
            ]
            for texts, of_row in zip(named, found, strict=True)
        ]
        return [*titles, *names], cells, n - len(records)

    def integer(self, name: str) -> Int64Array:
        """Return the integer column of this `name`; NO_TIME stands for null."""
        return self.integers[:, INTEGER_COLUMNS.index(name)]

    def number(self, name: str) -> FloatArray:
        """Return the column of masses or measures of this `name`; NaN stands for null.

        >>> Rows.blank(2, [("a", "")], "").number("auc")
        array([nan, nan])
        """
        return self.numbers[:, NUMBER_COLUMNS.index(name)]

    def reason_texts(self) -> list[str | None]:
        """Return the column `reason`. Rows share few combinations of codes.

        Each combination is put into words once.
        """
        # np.unique(axis=0) took 5 s for 100,000 rows, and this takes 0.13 s, and 1 ms for one row
        codes, width = self.reasons.tobytes(), self.reasons.shape[1]
        keys = [codes[start : start + width] for start in range(0, len(codes), width)]
        texts = {key: reason_text(key) for key in set(keys)}
        said = [texts[key] for key in keys]
        if self.classes is not None:
            said = [self.classes.reason(index, text) for index, text in enumerate(said)]
        if self.failures is None:
            return said
        return [with_failures(text, count) for text, count in zip(said, self.failures.tolist(), strict=True)]

    def measures(self, index: int = -1) -> Measures:
        """Return the measures of the row at `index`."""
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
        """Return one row as a record, or several rows as `Rows` that share the arrays of this object.

        Several rows have no curves: a curve belongs to no row.

        >>> len(Rows.blank(5, [("a", "")], "")[-3:])
        3
        """
        if isinstance(index, slice):
            return self._part(index)
        reason = reason_text(self.reasons[index].tolist())
        if self.classes is not None:
            reason = self.classes.reason(index, reason)
        failures = 0 if self.failures is None else int(self.failures[index])
        return self._row(index, with_failures(reason, failures))

    def take(self, places: Int64Array) -> Rows:
        """Return the rows at some places, in the order given, without curves. O(len(places)).

        >>> import numpy as np
        >>> len(Rows.blank(5, [("a", "")], "").take(np.array([4, 0])))
        2
        """
        return self._part(places)

    def by_name(self) -> Rows:
        """Return the rows sorted by model and slice, where rows of one (model, slice) keep their order.

        The curves stay the same.
        """
        order = sorted(range(len(self.keys)), key=self.keys.__getitem__)
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        return self.take(np.argsort(rank[self.key_codes], kind="stable")).with_curves(self.curves)

    def _part(self, places: slice | Int64Array) -> Rows:
        return Rows(
            self.keys, self.key_codes[places], self.integers[places], self.numbers[places],
            self.reasons[places], self.drift[places], self.config,
            failures=None if self.failures is None else self.failures[places],
            classes=None if self.classes is None else self.classes.part(places),
        )  # fmt: skip

    def __iter__(self) -> Iterator[MeasureRow]:
        reasons = self.reason_texts()
        return (self._row(index, reasons[index]) for index in range(len(self)))

    def to_arrow(self) -> Table:
        """Return a pyarrow.Table: it has the columns that every sink writes, with times in UTC. O(cells).

        >>> Rows.blank(2, [("a", "")], "").to_arrow().num_rows
        2
        """
        from .arrow import rows_to_table

        return rows_to_table(self)

    def to_pandas(self) -> DataFrame:
        """Return a pandas.DataFrame: times are datetime64[us, UTC], null numbers NaN, drift is nullable.

        Raises MissingPackageError, which is also an ImportError, if pandas is missing.

        >>> Rows.blank(2, [("a", "")], "").to_pandas().model.tolist()
        ['a', 'a']
        """
        from .arrow import rows_to_pandas

        return rows_to_pandas(self)


def _aligned(line: Sequence[str], widths: Sequence[int], texts: int) -> str:
    """Return one line of a preview.

    The first `texts` cells are aligned to the left, the other cells to the right.
    """
    cells = [
        text.ljust(width) if i < texts else text.rjust(width)
        for i, (text, width) in enumerate(zip(line, widths, strict=True))
    ]
    return ("  " + "  ".join(cells)).rstrip()
