"""Comparisons of learners, and their means over folds, as tables."""

from __future__ import annotations

import pyarrow as pa

COMPARISON_SCHEMA = pa.schema(
    [
        pa.field("checkpoint", pa.int64(), nullable=False),
        pa.field("time", pa.timestamp("us", "UTC")),
        pa.field("seq", pa.int64(), nullable=False),
        pa.field("slice", pa.string(), nullable=False),
        pa.field("measure", pa.string(), nullable=False),
        pa.field("learner_a", pa.string(), nullable=False),
        pa.field("learner_b", pa.string(), nullable=False),
        pa.field("test", pa.string(), nullable=False),
        pa.field("folds", pa.int64(), nullable=False),
        pa.field("statistic", pa.float64()),
        pa.field("p_value", pa.float64()),
        pa.field("p_anytime", pa.float64()),
        pa.field("p_holm", pa.float64()),
        pa.field("wins_a", pa.int64()),
        pa.field("wins_b", pa.int64()),
        pa.field("rank_a", pa.float64()),
        pa.field("rank_b", pa.float64()),
        pa.field("critical_difference", pa.float64()),
        pa.field("better", pa.string(), nullable=False),
        pa.field("alpha", pa.float64(), nullable=False),
        pa.field("reason", pa.string()),
    ]
)

MEAN_SCHEMA = pa.schema(
    [
        pa.field("checkpoint", pa.int64(), nullable=False),
        pa.field("time", pa.timestamp("us", "UTC")),
        pa.field("seq", pa.int64(), nullable=False),
        pa.field("model", pa.string(), nullable=False),
        pa.field("measure", pa.string(), nullable=False),
        pa.field("folds", pa.int64(), nullable=False),
        pa.field("mean", pa.float64()),
        pa.field("standard_deviation", pa.float64()),
        pa.field("least", pa.float64()),
        pa.field("greatest", pa.float64()),
    ]
)
