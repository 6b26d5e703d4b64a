"""Comparisons and means of a simulated stream, as the machines give them, and rows to go with them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from rocsteady.core.compare.comparison_settings import ComparisonSettings
from rocsteady.core.settings.windows import LastEvents
from rocsteady.transforms.sinks.comparisons import comparisons_to_arrow, means_to_arrow

from tests.support.pages.fold_reports import compared, reports_of
from tests.support.pages.report_tables import filled

MEASURES = ("auc", "log_loss")


def compared_tables(learners=("best", "good", "poor"), folds=8, checkpoints=5, **more):
    """Return what the machines say of learners of falling skill: comparisons and means."""
    settings = ComparisonSettings(tuple(learners), folds=folds, measures=MEASURES, window=LastEvents(50))
    reports = reports_of(checkpoints=checkpoints, settings=settings, failing=0.0, **more)
    found = compared(settings, [report.pack() for report in reports])
    return comparisons_to_arrow(found.comparisons), means_to_arrow(found.means)


def fold_rows(learners=("best", "good", "poor"), folds=8, checkpoints=5):
    """Return rows of all folds: measures without a meaning, for a page that shows comparisons, too."""
    parts = [filled([(name, checkpoints) for name in learners], fold) for fold in range(folds)]
    for fold, part in enumerate(parts):
        names = pa.array([f"fold={fold}"] * len(part))
        parts[fold] = part.set_column(part.schema.get_field_index("slice"), part.schema.field("slice"), names)
    return pa.concat_tables(parts)


def edited(table, where, **values):
    """Return a table with other values in some rows (a mask)."""
    for name, value in values.items():
        place = table.schema.get_field_index(name)
        old = table.column(name).to_pylist()
        new = [value if hit else held for hit, held in zip(np.asarray(where), old, strict=True)]
        table = table.set_column(
            place, table.schema.field(name), pa.array(new, table.schema.field(name).type)
        )
    return table
