"""Curves of windows as columns, a row a point."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from ...core.rows.curves import WindowCurve
from ...core.rows.rows import Rows

CURVE_SCHEMA = pa.schema(
    [
        pa.field("model", pa.string(), nullable=False),
        pa.field("slice", pa.string(), nullable=False),
        pa.field("pane_start", pa.timestamp("us", "UTC")),
        pa.field("pane_end", pa.timestamp("us", "UTC")),
        pa.field("seq", pa.int64(), nullable=False),
        pa.field("time", pa.timestamp("us", "UTC")),
        pa.field("window_events", pa.int64(), nullable=False),
        pa.field("positives", pa.float64(), nullable=False),
        pa.field("negatives", pa.float64(), nullable=False),
        pa.field("point", pa.int64(), nullable=False),
        pa.field("threshold", pa.float64()),
        pa.field("tp", pa.float64(), nullable=False),
        pa.field("fp", pa.float64(), nullable=False),
        pa.field("on_hull", pa.bool_(), nullable=False),
        pa.field("block_score", pa.float64()),
        pa.field("config", pa.string(), nullable=False),
    ]
)
"""The columns of a point of a curve, in every sink.

A curve is (model, slice, pane, seq); its points count from 0, the highest threshold first. Point 0 is
tp = fp = 0, and its threshold, which no score reaches, is null; the last point is (positives, negatives).
tp over positives is the true positive rate, fp over negatives the false positive rate. `block_score`, at a
vertex of the hull, is the mean score of the events between it and the vertex before it: one block of the
isotonic calibration, whose share of positives is the difference in tp over that in tp + fp.
"""

CURVE_ORDER = ("model", "slice", "pane_start", "seq", "point")


def curves_to_arrow(curves: Sequence[WindowCurve]) -> pa.RecordBatch:
    """Return curves as a record batch with CURVE_SCHEMA. O(points); Python only for each curve."""
    records = [curve.curve for curve in curves]
    lengths = [len(record) for record in records]
    which = pa.array(np.repeat(np.arange(len(curves)), lengths))
    point = np.concatenate([np.arange(0), *map(np.arange, lengths)])

    def joined(name: str, dtype: type = np.float64) -> np.ndarray:
        return np.concatenate([np.empty(0, dtype), *(getattr(record, name) for record in records)])

    columns = {
        **{name: [getattr(curve, name) for curve in curves] for name in ("model", "slice", "seq", "time")},
        "pane_start": [curve.pane and curve.pane[0] for curve in curves],
        "pane_end": [curve.pane and curve.pane[1] for curve in curves],
        "window_events": [record.events for record in records],
        "positives": [record.positives for record in records],
        "negatives": [record.negatives for record in records],
        "config": [curve.config for curve in curves],
    }
    block_score = joined("block_score")
    points = {
        "point": pa.array(point),
        "threshold": pa.array(joined("threshold"), mask=point == 0),
        "tp": pa.array(joined("tp")),
        "fp": pa.array(joined("fp")),
        "on_hull": pa.array(joined("on_hull", np.bool_)),
        "block_score": pa.array(block_score, mask=np.isnan(block_score)),
    }
    arrays = [
        points[field.name] if field.name in points else pa.array(columns[field.name], field.type).take(which)
        for field in CURVE_SCHEMA
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=CURVE_SCHEMA)


def curve_batches(rows: Rows) -> Iterator[pa.RecordBatch]:
    """Yield the curves beside some rows in one batch; nothing where there are none."""
    if rows.curves:
        yield curves_to_arrow(rows.curves)
