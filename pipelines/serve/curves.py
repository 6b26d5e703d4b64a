"""The newest curves of a stream, in bounded memory.

A topic has a message for each point, so the points of a curve may come in several batches. A curve is shown
once its points are complete: their numbers have no gap, and the last point counts all events of the window.

Memory: some 150 bytes a point.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa

from ...transforms.sinks.kinds import CURVE_SCHEMA

POINTS_HELD = 100_000
"""The most points of all curves."""

_KEY = ("model", "slice", "class", "config", "pane_start", "seq")
_SERIES = 4
_SCHEMA = pa.schema([column.with_nullable(True) for column in CURVE_SCHEMA])


class Curves:
    """Curves by their identity, oldest first. came: the number of curves that came so far.

    A curve without a class is of a model with one score.
    """

    def __init__(self, most: int = POINTS_HELD) -> None:
        self._most = most
        self._found: dict[tuple[Any, ...], pa.Table] = {}
        self._points = 0
        self.came = 0

    def __len__(self) -> int:
        return len(self._found)

    @property
    def table(self) -> pa.Table:
        """The points of all complete curves."""
        complete = [curve for curve in self._found.values() if _is_complete(curve)]
        return pa.concat_tables(complete) if complete else _SCHEMA.empty_table()

    def add(self, table: pa.Table) -> None:
        """Add points to their curves. O(points log points + curves held).

        table  the columns of CURVE_SCHEMA

        If there are more points than the most, old curves are dropped: first the curves that are not the
        newest of their model, slice, class and settings.
        """
        if not table.num_rows:
            return
        table = table.select(_SCHEMA.names).cast(_SCHEMA)
        table = table.sort_by([(name, "ascending") for name in (*_KEY, "point")]).combine_chunks()
        fresh = np.zeros(table.num_rows - 1, np.bool_)
        for name in _KEY:
            codes = table.column(name).combine_chunks().dictionary_encode().indices.fill_null(-1)
            fresh |= np.diff(codes.to_numpy()) != 0
        starts = np.append(0, np.flatnonzero(fresh) + 1)
        keys = zip(*(table.column(name).take(pa.array(starts)).to_pylist() for name in _KEY), strict=True)
        for key, places in zip(keys, np.split(np.arange(table.num_rows), starts[1:]), strict=True):
            self._add(key, table.take(pa.array(places)))
        if self._points > self._most:
            self._drop()

    def _add(self, key: tuple[Any, ...], points: pa.Table) -> None:
        held = self._found.get(key)
        if held is None:
            self.came += 1
        else:  # points that came before stay
            known = set(held.column("point").to_pylist())
            new = [
                place for place, point in enumerate(points.column("point").to_pylist()) if point not in known
            ]
            points = pa.concat_tables([held, points.take(pa.array(new, pa.int64()))]).sort_by("point")
            self._points -= held.num_rows
        self._found[key] = points.combine_chunks()
        self._points += points.num_rows

    def _drop(self) -> None:
        newest = {key[:_SERIES]: key for key in self._found}
        older = [key for key in self._found if newest[key[:_SERIES]] != key]
        for key in (*older, *newest.values()):
            if self._points <= self._most:
                return
            self._points -= self._found.pop(key).num_rows


def _is_complete(curve: pa.Table) -> bool:
    end = curve.slice(curve.num_rows - 1).to_pylist()[0] if curve.num_rows else {}
    counts = [end.get(name) for name in ("tp", "positives", "fp", "negatives")]
    tp, positives, fp, negatives = (math.nan if count is None else float(count) for count in counts)
    if not math.isfinite(tp + positives + fp + negatives):
        return False
    return end["point"] == curve.num_rows - 1 and math.isclose(tp, positives) and math.isclose(fp, negatives)
