"""The newest row of every model: the summary of an evaluation."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...core.rows.arrow import rows_to_table
from ...core.rows.rows import Rows

SUMMARY = (
    "model", "seq", "time", "window_events", "prevalence", "auc", "auc_low", "auc_high", "h", "ks", "brier",
    "kappa", "kappa_m", "reason",
)  # fmt: skip
"""The columns of a summary."""


def newest_rows(rows: Rows) -> Rows:
    """Return the newest row of every model, without slices, in the order of the models' names.

    rows  the rows of each (model, slice) in the order in which they were made
    """
    codes, behind = np.unique(rows.key_codes[::-1], return_index=True)
    places = (len(rows) - 1 - behind).tolist()
    newest = {rows.keys[code]: place for code, place in zip(codes.tolist(), places, strict=True)}
    models = sorted(model for model, of_slice in newest if not of_slice)
    return rows.take(np.array([newest[model, ""] for model in models], np.int64))


def summary_of(newest: Rows) -> pa.Table:
    """Return the summary of the rows that `newest_rows` gave: a row a model."""
    return rows_to_table(newest).select(SUMMARY)
