"""Curves of windows as columns: each row is one point of a curve."""

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

A curve is identified by (model, slice, pane, seq). Its points are numbered from 0, from the highest threshold
down. Point 0 is tp = fp = 0; its threshold is null, because no score reaches it. At the last point, tp =
positives and fp = negatives. tp / positives is the true positive rate, fp / negatives the false positive one.

The events between two neighbouring vertices of the hull are one block of the isotonic calibration.
`block_score`, at the later vertex, is the mean score of the block's events. The block's share of positives is
the difference in tp divided by the difference in tp + fp.
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
    """Yield the curves of `rows` in one batch; yield nothing if there are no curves."""
    if rows.curves:
        yield curves_to_arrow(rows.curves)
