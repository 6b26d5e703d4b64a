"""The rows of one epoch of a history as numbers for a page: whole columns, and the rows added since."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...core.arrays import FloatArray, Int64Array
from ..report.data import packed, shuffled
from ..report.report_rows import ReportRows, row_columns

_REASON = "reason"


class Epoch:
    """Rows in the order in which they came, with the place of each row's series in the page.

    Readers in other threads may ask for any number of first rows while rows are added: the rows that they
    have asked for never change. Memory: 8 bytes a row and column, twice while the arrays grow.
    """

    def __init__(self, name: str, rows: ReportRows, series: Sequence[tuple[str, ...]]) -> None:
        self.name = name
        self.position = 0
        self._reasons = pa.array(rows.reasons, pa.string())
        slices = {text: place for place, text in enumerate(rows.slices)}
        place_of = {(model, part): place for place, (model, part, *_) in enumerate(rows.series.tolist())}
        of_classes = {} if rows.classes is None else rows.classes.places
        self._place_of = np.array(
            [
                place_of[rows.shown[model, config][0], of_classes[part, of[0]] if any(of) else slices[part]]
                for model, config, part, *of in series
            ],
            np.int64,
        )
        self._of = np.zeros(0, np.int64)
        self._columns: dict[str, FloatArray] = {}

    def add(self, table: pa.Table, of: Int64Array) -> None:
        """Add rows; `of` has the place of each row's series in the history."""
        columns = row_columns(table)
        codes = pc.index_in(table.column(_REASON), self._reasons).fill_null(-1)
        columns[_REASON] = codes.to_numpy().astype(np.float64)
        start, stop = self.position, self.position + len(of)
        if not self._columns or stop > len(self._of):
            more = max(stop, 2 * len(self._of)) - len(self._of)
            self._of = np.append(self._of[:start], np.zeros(len(self._of) - start + more, np.int64))
            for name in columns:
                old = self._columns.get(name, np.zeros(0))
                self._columns[name] = np.append(old[:start], np.zeros(len(self._of) - start))
        self._of[start:stop] = self._place_of[of]
        for name, values in columns.items():
            self._columns[name][start:stop] = values
        self.position = stop

    def has(self, name: str) -> bool:
        """Return whether there is a column of this name."""
        return name in self._columns

    def column(self, name: str, position: int) -> bytes:
        """Return a column of the first rows, in the order of the page's series, packed. O(rows)."""
        order = np.argsort(self._of[:position], kind="stable")
        return gzip.compress(shuffled(self._columns[name][:position][order]), 1, mtime=0)

    def between(self, start: int, stop: int, names: Sequence[str]) -> str:
        """Return rows from one position to another, in the order in which they came, as JSON for the page."""
        values = np.stack([self._columns[name][start:stop] for name in names])
        told = {
            "epoch": self.name,
            "from": start,
            "to": stop,
            "series": self._of[start:stop].tolist(),
            "names": [*names],
            "values": packed(values.ravel()),
        }
        return json.dumps(told, separators=(",", ":"))
