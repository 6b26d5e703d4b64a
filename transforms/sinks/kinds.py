"""The kinds of tables that a job writes: their columns, order and identity, and records as columns.

The kinds are rows, rows of models with a score of each class, rows of pairs, roll-ups, alerts, dead letters
and curves; `comparisons` has two more. Each row of a table of curves is one point of a curve. In roll-ups,
alerts and curves the column `class` is null where a model has one score. The module does not import Beam.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...core.alerts.alert_rows import AlertRow
from ...core.classes.class_settings import ClassSettings
from ...core.rows.arrow import CLASS_ROW_SCHEMA, ROW_SCHEMA, with_columns
from ...core.rows.curves import WindowCurve
from ...core.rows.pairs import PairRow
from ...core.rows.roll_ups import RollUpRow
from ...core.rows.rows import Rows
from ...core.settings.classes import Classes
from ...core.settings.evaluator import EvaluatorSettings
from ..events.dead_letters import DEAD_LETTER_SCHEMA, schema_of

CONFIDENCE_KEY = b"rocsteady.confidence"
SETTINGS_KEY = b"rocsteady.settings"
"""Two keys in the metadata of a Parquet file of rows: CONFIDENCE_KEY has the confidence level of the
intervals, SETTINGS_KEY the text whose hash is `config`.
"""


def row_schema(settings: EvaluatorSettings, classes: Classes | None = None) -> pa.Schema:
    """Return the columns of rows with the metadata of a Parquet file: confidence level and settings.

    The columns are those of ROW_SCHEMA, or with `classes` those of CLASS_ROW_SCHEMA.
    """
    schema, canonical = ROW_SCHEMA, settings.canonical()
    if classes is not None:
        schema = CLASS_ROW_SCHEMA
        canonical = ClassSettings(classes.names, settings, classes.multi_label).canonical()
    schema = with_columns(schema, (each.column for each in settings.with_values))
    return schema.with_metadata(
        {CONFIDENCE_KEY: repr(settings.confidence).encode(), SETTINGS_KEY: canonical.encode()}
    )


CURVE_SCHEMA = pa.schema(
    [
        pa.field("model", pa.string(), nullable=False),
        pa.field("slice", pa.string(), nullable=False),
        pa.field("class", pa.string()),
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
"""The columns of a point of a curve, in every sink. A curve is identified by (model, slice, class, pane,
seq).

model, slice  whose curve it is
class         the class whose events are the positives; null where the model has one score
pane_start, pane_end
              the Beam window, if the input is windowed
seq           how many events of the model and slice were applied so far
time          the greatest event time that was applied
window_events how many events the window holds
positives, negatives
              the masses of the classes in the window
point         the number of the point, from 0, from the highest threshold down. At point 0 `tp` and `fp` are
              0; at the last point they are `positives` and `negatives`
threshold     the point counts the events with a score of at least this; null at point 0, because no score
              reaches it
tp, fp        masses of positives and of negatives at or above the threshold. tp / positives is the true
              positive rate, fp / negatives is the false positive rate
on_hull       whether the point is a vertex of the convex hull
block_score   at a vertex the mean score of the events since the vertex before: one block of the isotonic
              calibration. The block's share of positives is the difference in `tp` divided by the difference
              in `tp` + `fp`
config        a hash of all settings that change values, as in rows
"""

CURVE_ORDER = ("model", "slice", "pane_start", "seq", "class", "point")


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
        "class": [curve.class_ for curve in curves],
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


PAIR_SCHEMA = schema_of(PairRow)
"""The columns of a row of a pair, in every sink: the fields of `PairRow`."""

PAIR_ORDER = ("model", "against", "slice", "pane_start", "row")

ALERT_SCHEMA = schema_of(AlertRow)
"""The columns of an alert, in every sink: the fields of `AlertRow`."""

ALERT_ORDER = ("model", "slice", "pane_start", "row", "rule", "class")

ROLL_UP_SCHEMA = schema_of(RollUpRow)
"""The columns of a roll-up row, in every sink: the fields of `RollUpRow`."""

ROLL_UP_ORDER = ("group", "pane_start", "row", "class")


class TableKind(NamedTuple):
    """A kind of table.

    name      the name of a record of the kind.
    schema    the columns.
    order     the columns by which a file of the kind is sorted.
    identity  the columns that are equal in two copies of one record; "pane_start" stands for the pane.
    counter   the job's counter of written items, if any.
    number    a function that counts the items of a table; a curve is one item, with a record for each point.
    """

    name: str
    schema: pa.Schema
    order: tuple[str, ...]
    identity: tuple[str, ...]
    counter: str | None = None
    number: Callable[[pa.RecordBatch | pa.Table], int] = lambda table: int(table.num_rows)


def sorted_table(batches: Iterable[pa.RecordBatch], schema: pa.Schema, order: Iterable[str]) -> pa.Table:
    """Put record batches into one table, sorted by columns. No batches give no rows.

    Nulls come last, but the row of a model, whose class is null, comes before the rows of its classes.
    """
    table, order = pa.Table.from_batches(batches, schema), [*order]
    if "class" not in order:
        return table.sort_by([(name, "ascending") for name in order])
    keys = table.select(order)
    keys = keys.set_column(order.index("class"), "class", pc.fill_null(keys.column("class"), ""))
    return table.take(pc.sort_indices(keys, [(name, "ascending") for name in order]))


class TableSink(ABC):
    """Takes record batches of one kind, in the order in which they are made."""

    @abstractmethod
    def write(self, batch: pa.RecordBatch) -> None:
        """Add the rows of a batch to the table."""

    def tend(self) -> None:  # noqa: B027 - most sinks have no such work
        """Do work that is due, such as finishing a file.

        Called from time to time, also while no rows come.
        """

    def settle(self) -> object:  # noqa: B027
        """Make all rows that came so far durable.

        A reader then finds them even if this process, or the machine, stops.

        A table that is written at its end has no such moment.
        """

    def finish(self) -> None:  # noqa: B027
        """Write or deliver all remaining rows: no more rows will come."""

    def close(self) -> None:  # noqa: B027
        """Release open files and clients, whether or not the table was finished."""


def _number_of_curves(table: pa.RecordBatch | pa.Table) -> int:
    return int(pc.sum(pc.equal(table.column("point"), 0)).as_py() or 0)


ROW_ORDER = ("model", "slice", "pane_start", "row")
DEAD_LETTER_ORDER = ("source", "position", "kind", "reason", "raw", "detail", "model", "field")

CLASS_ROW_ORDER = (*ROW_ORDER, "class")

ROWS = TableKind("row", ROW_SCHEMA, ROW_ORDER, ROW_ORDER, "rows_written")
CLASS_ROWS = TableKind("row", CLASS_ROW_SCHEMA, CLASS_ROW_ORDER, CLASS_ROW_ORDER, "rows_written")
"""Rows of models with a score of each class. The row of all classes has no class, and stands first."""
ALERTS = TableKind("alert", ALERT_SCHEMA, ALERT_ORDER, ALERT_ORDER)
PAIRS = TableKind("pair", PAIR_SCHEMA, PAIR_ORDER, PAIR_ORDER, "pair_rows_written")
ROLL_UPS = TableKind("roll-up", ROLL_UP_SCHEMA, ROLL_UP_ORDER, ROLL_UP_ORDER, "roll_up_rows_written")
DEAD_LETTERS = TableKind(
    "dead-letter", DEAD_LETTER_SCHEMA, DEAD_LETTER_ORDER, ("source", "position", "model")
)
CURVES = TableKind("curve-point", CURVE_SCHEMA, CURVE_ORDER, CURVE_ORDER, "curves_written", _number_of_curves)

KINDS = (ROWS, CLASS_ROWS, ALERTS, PAIRS, ROLL_UPS, DEAD_LETTERS, CURVES)
"""The kinds of all tables of an evaluation."""


def kind_of_rows(schema: pa.Schema) -> TableKind:
    """Return the kind of rows that have some columns, perhaps with other metadata."""
    return (CLASS_ROWS if "class" in schema.names else ROWS)._replace(schema=schema)
