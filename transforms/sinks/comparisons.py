"""Comparisons of learners and means over folds as Arrow tables: the columns that every sink writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from ...core.compare.comparisons import ComparisonRow, FoldMean

_TIME = pa.timestamp("us", "UTC")


def _required(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, nullable=False)


_AT = (_required("checkpoint", pa.int64()), pa.field("time", _TIME), _required("seq", pa.int64()))

COMPARISON_SCHEMA = pa.schema(
    [
        *_AT,
        _required("slice", pa.string()),
        _required("measure", pa.string()),
        _required("learner_a", pa.string()),
        _required("learner_b", pa.string()),
        _required("test", pa.string()),
        _required("folds", pa.int64()),
        pa.field("statistic", pa.float64()),
        pa.field("p_value", pa.float64()),
        pa.field("p_anytime", pa.float64()),
        pa.field("p_holm", pa.float64()),
        pa.field("wins_a", pa.int64()),
        pa.field("wins_b", pa.int64()),
        pa.field("rank_a", pa.float64()),
        pa.field("rank_b", pa.float64()),
        pa.field("critical_difference", pa.float64()),
        _required("better", pa.string()),
        _required("alpha", pa.float64()),
        pa.field("reason", pa.string()),
    ]
)
"""The columns of a comparison, in every sink: the fields of `ComparisonRow`."""

MEAN_SCHEMA = pa.schema(
    [
        *_AT,
        _required("model", pa.string()),
        _required("measure", pa.string()),
        _required("folds", pa.int64()),
        _required("mean", pa.float64()),
        pa.field("standard_deviation", pa.float64()),
        _required("least", pa.float64()),
        _required("greatest", pa.float64()),
    ]
)
"""The columns of a mean over folds, in every sink: the fields of `FoldMean`."""


def comparisons_to_arrow(rows: Sequence[ComparisonRow]) -> pa.Table:
    """Return comparisons as a table with COMPARISON_SCHEMA. O(cells), in Python."""
    return _table(rows, COMPARISON_SCHEMA)


def means_to_arrow(means: Sequence[FoldMean]) -> pa.Table:
    """Return means as a table with MEAN_SCHEMA. O(cells), in Python."""
    return _table(means, MEAN_SCHEMA)


def _table(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)
