"""Tables of rows of models with a score of each class, for tests of pages."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import rocsteady as rs

CLASSES = ("cat", "dog=x,y", "<owl>")
"""Names of classes, some of which need escapes."""


def class_rows(
    models=("good", "fallen"), *, classes=CLASSES, n=1_200, window=300, every=150, slices=("",), absent=None
):
    """Rows with the columns of CLASS_ROW_SCHEMA; the first class of the model "fallen" is lost at half time.

    absent  the number of a class without an event
    """
    tables = []
    for number, model in enumerate(models):
        for place, name in enumerate(slices):
            rng = np.random.default_rng(100 * number + place)
            labels = rng.integers(0, len(classes), n)
            if absent is not None:
                labels[labels == absent] = (absent + 1) % len(classes)
            scores = rng.random((n, len(classes))) + 0.5 * np.eye(len(classes))[labels]
            if model == "fallen":
                scores[n // 2 :, 0] = rng.random(n - n // 2)
            ev = rs.MulticlassEvaluator(
                classes, window=rs.LastEvents(window), every=rs.EveryEvents(every), model=model, slice=name
            )
            rows = ev.update(np.array(classes)[labels], scores)
            tables.append(rows.to_arrow())
    return pa.concat_tables(tables)
