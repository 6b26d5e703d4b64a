"""The kinds of tables that compare learners: comparisons, and means over folds.

They have a module of their own, so that a job without comparisons need not import the tests.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ...core.compare.comparisons import ComparisonRow, FoldMean
from ..events.dead_letters import in_columns, schema_of
from .kinds import TableKind

COMPARISON_SCHEMA = schema_of(ComparisonRow)
"""The columns of a comparison, in every sink: the fields of `ComparisonRow`."""

MEAN_SCHEMA = schema_of(FoldMean)
"""The columns of a mean over folds, in every sink: the fields of `FoldMean`."""


def comparisons_to_arrow(rows: Sequence[ComparisonRow]) -> pa.Table:
    """Return comparisons as a table with COMPARISON_SCHEMA. O(cells), in Python."""
    return pa.Table.from_batches([in_columns(rows, COMPARISON_SCHEMA)])


def means_to_arrow(means: Sequence[FoldMean]) -> pa.Table:
    """Return means as a table with MEAN_SCHEMA. O(cells), in Python."""
    return pa.Table.from_batches([in_columns(means, MEAN_SCHEMA)])


COMPARISON_ORDER = ("checkpoint", "measure", "test", "slice", "learner_a", "learner_b")
MEAN_ORDER = ("checkpoint", "measure", "model")

COMPARISONS = TableKind("comparison", COMPARISON_SCHEMA, COMPARISON_ORDER, COMPARISON_ORDER)
MEANS = TableKind("mean", MEAN_SCHEMA, MEAN_ORDER, MEAN_ORDER)
