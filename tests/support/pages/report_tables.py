"""Rows and curves for tests of the report: evaluated from synthetic events, or numbers without a meaning."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from rocsteady.core.events.batch import EventBatch
from rocsteady.core.events.columns import TextColumn
from rocsteady.core.rows.arrow import ROW_SCHEMA, rows_to_arrow
from rocsteady.core.settings.evaluator import EvaluatorSettings
from rocsteady.core.settings.table import TableSettings
from rocsteady.core.settings.windows import EveryEvents, LastEvents
from rocsteady.core.table.table import EvaluatorTable
from rocsteady.transforms.sinks.kinds import ALERT_SCHEMA, CURVE_SCHEMA

DAY = 86_400_000_000
START = 1_357_000_000_000_000
NASTY = "<script>alert(1)</script>"
NASTIER = "</script><!--<b>&amp;x</b>"


def events(n, seed, spoiled=(0.0, 0.0)):
    """Labels, and scores that rank worse within a part of the stream."""
    rng = np.random.default_rng(seed)
    labels = (rng.random(n) < 0.4).astype(np.int8)
    place = np.arange(n) / n
    good = (place < spoiled[0]) | (place >= spoiled[1])
    scores = np.clip(0.3 + np.where(good, 0.3, 0.03) * labels + rng.normal(0, 0.2, n), 0, 1)
    return labels, np.round(scores, 2)


def evaluated_rows(models=("good", NASTY, NASTIER), n=3_000, window=400, every=100, *, timed=True):
    """Rows of models that score the same stream differently; the second sees but one class for a while."""
    settings = TableSettings(
        EvaluatorSettings(
            window=LastEvents(window), every=EveryEvents(every), order="arrival", probabilities=True
        ),
        (("site",),),
        None,
    )
    parts = []
    for number, model in enumerate(models):
        labels, scores = events(n, number, (0.5, 0.7) if number == 0 else (0.0, 0.0))
        if number == 1:
            labels[1_000:1_900] = 0
        batch = EventBatch(
            TextColumn.of([model] * n),
            scores,
            labels,
            times=START + np.arange(n) * (DAY // 24) if timed else None,
            slices=(("site", TextColumn.of([("a", "b<i>", "c")[i % 3] for i in range(n)])),),
        )
        parts += EvaluatorTable(settings).apply(batch.pack())
    return pa.Table.from_batches([rows_to_arrow(rows) for rows in parts])


def filled(rows_of_model, seed=0, **columns):
    """Rows whose measures are noise, (model, number of rows) each: for size, and for chosen columns."""
    rng = np.random.default_rng(seed)
    n = sum(count for _, count in rows_of_model)
    place = np.concatenate([np.arange(count) for _, count in rows_of_model])
    made = {
        "model": pa.array([model for model, count in rows_of_model for _ in range(count)]),
        "slice": pa.array([""] * n),
        "row": place,
        "seq": (place + 1) * 100,
        "window_events": np.minimum((place + 1) * 100, 500),
        "time": pa.array(START + (place + 1) * 3_600_000_000).cast(pa.timestamp("us", "UTC")),
        "config": pa.array(["0123456789ab"] * n),
        **{name: pa.nulls(n, ROW_SCHEMA.field(name).type) for name in ("reason", "drift")},
    }
    for field in ROW_SCHEMA:
        if pa.types.is_timestamp(field.type):
            made.setdefault(field.name, pa.nulls(n, field.type))
        elif field.name not in made:
            counted = field.name in ("weight", "positives", "negatives", "tp", "fp", "tn", "fn")
            made[field.name] = rng.integers(50, 450, n).astype(float) if counted else rng.random(n)
    made |= columns
    made["auc_low"], made["auc_high"] = made["auc"] - 0.02, made["auc"] + 0.02
    return pa.table(
        [pa.array(made[field.name], from_pandas=True).cast(field.type) for field in ROW_SCHEMA],
        schema=ROW_SCHEMA,
    )


def curve(model, seq, labels, scores, *, slice_name="", time=None, config="0123456789ab"):
    """The points of one ROC curve by the slow definition: a point per distinct score, and its hull."""
    levels = sorted(set(scores.tolist()), reverse=True)
    points = [(0.0, 0.0)] + [
        (float(labels[scores >= level].sum()), float((1 - labels[scores >= level]).sum())) for level in levels
    ]
    on_hull = [
        not any(
            _beneath(points[k], points[i], points[j]) for i in range(k) for j in range(k + 1, len(points))
        )
        for k in range(len(points))
    ]
    block, before = [None] * len(points), None
    for k in np.flatnonzero(on_hull).tolist():
        if k:
            above = np.inf if before == 0 else levels[before - 1]
            inside = (scores >= levels[k - 1]) & (scores < above)
            block[k] = float(scores[inside].mean())
        before = k
    n = len(points)
    columns = {
        "model": [model] * n, "slice": [slice_name] * n, "class": [None] * n,
        "pane_start": [None] * n, "pane_end": [None] * n, "seq": [seq] * n, "time": [time] * n,
        "window_events": [len(labels)] * n,
        "positives": [points[-1][0]] * n, "negatives": [points[-1][1]] * n, "point": range(n),
        "threshold": [None, *levels], "tp": [tp for tp, _ in points], "fp": [fp for _, fp in points],
        "on_hull": on_hull, "block_score": block, "config": [config] * n,
    }  # fmt: skip
    return pa.table(
        [pa.array(columns[field.name], field.type) for field in CURVE_SCHEMA], schema=CURVE_SCHEMA
    )


def _beneath(point, one, other):
    """Whether a ROC point lies on or under the segment between two others."""
    (y, x), (y0, x0), (y1, x1) = point, one, other
    return (x1 - x0) * (y - y0) - (y1 - y0) * (x - x0) <= 0


def alert_events(*events):
    """Events of alerts: by default an opening of "auc < 0.6" of the model a, without a time."""
    rows = [
        {
            "rule": "auc < 0.6", "state": "open", "model": "a", "slice": "", "since_row": event["row"],
            "column": "auc", "value": 0.5, "limit": 0.6, "message": f"{event.get('state', 'open')}", **event,
        }
        for event in events
    ]  # fmt: skip
    nullable = pa.schema([field.with_nullable(True) for field in ALERT_SCHEMA])
    return pa.Table.from_pylist(rows, nullable).cast(ALERT_SCHEMA)
