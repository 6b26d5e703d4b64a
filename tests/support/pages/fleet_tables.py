"""Rows of slices and of models on a grid of times, and rows of pairs, for tests of the report."""

from __future__ import annotations

import math

import pyarrow as pa
from rocsteady.core.rows.arrow import ROW_SCHEMA
from rocsteady.transforms.sinks.kinds import PAIR_SCHEMA

from tests.support.pages.report_tables import START

HOUR = 3_600_000_000


def slice_rows(models, counts=None, *, due=True, panes=None):
    """Rows of an AUC each: {model: {slice: AUCs, one an hour, None = no row}}; an AUC of 1 has no width.

    counts  positives of a slice, as many negatives (default 1,000)
    panes   the starts of Beam panes, one for each row
    """
    rows = []
    for model, slices in models.items():
        for part, values in slices.items():
            n = (counts or {}).get(part, 1_000)
            for row, auc in enumerate(values):
                if auc is None:
                    continue
                half = 2 * math.sqrt(auc * (1 - auc) / n)
                rows.append(
                    {
                        "model": model, "slice": part, "row": row, "seq": 1_000 * (row + 1),
                        "time": START + row * HOUR, "due": START // HOUR * HOUR + row * HOUR if due else None,
                        "pane_start": panes and panes[row], "pane_end": panes and panes[row] + HOUR,
                        "window_events": 2 * n, "positives": float(n), "negatives": float(n), "auc": auc,
                        "auc_low": auc - half, "auc_high": min(auc + half, 1.0), "config": "0123456789ab",
                    }
                )  # fmt: skip
    schema = pa.schema([field.with_nullable(True) for field in ROW_SCHEMA])
    return pa.Table.from_pylist(rows, schema)


def fleet_rows(models):
    """Rows of whole models: {model: AUCs, one an hour, None = no row}."""
    return slice_rows({model: {"": values} for model, values in models.items()})


def pair_rows(*rows, model="new", against="old", slice="", config="0123456789ab"):  # noqa: A002
    """Rows of one pair, one an hour and 1,000 instances, with what each row gives instead."""
    made = [
        {
            "model": model, "against": against, "slice": slice, "row": row, "seq": 1_000 * (row + 1),
            "time": START + (row + 1) * HOUR, "window_events": 1_000, "positives": 300.0, "negatives": 700.0,
            "auc": 0.8, "auc_against": 0.79, "difference": 0.01, "difference_low": -0.005,
            "difference_high": 0.025, "p": 0.2, "verdict": "undecided", "anytime_events": 1_000,
            "anytime_blocks": 1, "only_model": 0, "only_against": 0, "config": config, **values,
        }
        for row, values in enumerate(rows)
    ]  # fmt: skip
    schema = pa.schema([field.with_nullable(True) for field in PAIR_SCHEMA])
    return pa.Table.from_pylist(made, schema)
