"""The kinds of tables that a job writes, with their columns and identity.

The kinds are rows, alerts, dead letters, curves, comparisons of learners, and means over folds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ...core.rows.arrow import ROW_SCHEMA
from ..events.dead_letters import DEAD_LETTER_SCHEMA
from .alerts import ALERT_ORDER, ALERT_SCHEMA
from .comparisons import COMPARISON_SCHEMA, MEAN_SCHEMA
from .curves import CURVE_ORDER, CURVE_SCHEMA

ROW_ORDER = ("model", "slice", "pane_start", "row")
DEAD_LETTER_ORDER = ("source", "position", "kind", "reason", "raw", "detail")


class TableKind(NamedTuple):
    """A kind of table.

    name      the name of a record of the kind.
    schema    the columns.
    order     the columns by which a file of the kind is sorted.
    identity  the columns that are equal in two copies of a record; "pane_start" stands for the pane.
    counter   the job's counter of written items, if any.
    number    a function that counts the items of a table; a curve is one item, with a record for each point.
    """

    name: str
    schema: pa.Schema
    order: tuple[str, ...]
    identity: tuple[str, ...]
    counter: str | None = None
    number: Callable[[pa.RecordBatch | pa.Table], int] = lambda table: int(table.num_rows)


class TableSink(ABC):
    """Takes record batches of one kind, in the order in which they were made."""

    @abstractmethod
    def write(self, batch: pa.RecordBatch) -> None:
        """Take the rows of a batch."""

    def tend(self) -> None:  # noqa: B027 - most sinks have no such work
        """Do due work, such as finishing a file. Called from time to time, also while no rows come."""

    def finish(self) -> None:  # noqa: B027
        """Write or deliver all remaining rows: no more rows will come."""

    def close(self) -> None:  # noqa: B027
        """Release open files and clients, whether finished or not."""


def _number_of_curves(table: pa.RecordBatch | pa.Table) -> int:
    return int(pc.sum(pc.equal(table.column("point"), 0)).as_py() or 0)


ROWS = TableKind("row", ROW_SCHEMA, ROW_ORDER, ROW_ORDER, "rows_written")
ALERTS = TableKind("alert", ALERT_SCHEMA, ALERT_ORDER, ALERT_ORDER)
DEAD_LETTERS = TableKind("dead-letter", DEAD_LETTER_SCHEMA, DEAD_LETTER_ORDER, ("source", "position"))
CURVES = TableKind("curve-point", CURVE_SCHEMA, CURVE_ORDER, CURVE_ORDER, "curves_written", _number_of_curves)
COMPARISON_ORDER = ("checkpoint", "measure", "test", "slice", "learner_a", "learner_b")
COMPARISONS = TableKind("comparison", COMPARISON_SCHEMA, COMPARISON_ORDER, COMPARISON_ORDER)
MEAN_ORDER = ("checkpoint", "measure", "model")
MEANS = TableKind("mean", MEAN_SCHEMA, MEAN_ORDER, MEAN_ORDER)

_KINDS = {tuple(kind.schema.names): kind for kind in (ROWS, ALERTS, DEAD_LETTERS, CURVES, COMPARISONS, MEANS)}


def kind_of(schema: pa.Schema) -> TableKind | None:
    """Return the kind with the columns of a schema; None for unknown columns.

    >>> kind_of(ROW_SCHEMA).name
    'row'
    """
    return _KINDS.get(tuple(schema.names))
