"""Rows of models with planted faults, and when each fault began: for what tells which model got worse."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from rocsteady.core.events.batch import EventBatch
from rocsteady.core.events.columns import TextColumn
from rocsteady.core.rows.arrow import rows_to_arrow
from rocsteady.core.settings.evaluator import EvaluatorSettings
from rocsteady.core.settings.table import TableSettings
from rocsteady.core.settings.windows import EveryEvents, LastEvents
from rocsteady.core.table.table import EvaluatorTable
from scipy.stats import norm

DAY = 86_400_000_000
FIRST = 1_767_225_600_000_000
"""1 January 2026."""

DAYS = 120
REGIONS = ("eu", "us", "apac", "latam")
KINDS = ("abrupt", "gradual", "slice", "few", "rise")


class Planted(NamedTuple):
    """The rows, and by model its fault and the day on which the fault began."""

    rows: pa.Table
    faults: dict[str, tuple[str, float]]


def planted(models, seed=1, n=12_000, window=1_500, every=250, *, kinds=KINDS, regions=REGIONS):
    """Rows of so many models, by regions too; each kind of fault is in one of them."""
    rng = np.random.default_rng(seed)
    kind_of = dict(zip(rng.permutation(models).tolist(), kinds, strict=False))
    settings = TableSettings(
        EvaluatorSettings(window=LastEvents(window), every=EveryEvents(every), order="arrival"),
        (("region",),),
        None,
    )
    table, faults, parts = EvaluatorTable(settings), {}, []
    for model in range(models):
        name, kind = f"team{model % 7}/model-{model:03d}", kind_of.get(model, "")
        times = np.sort(rng.random(n if kind != "few" else n // 4)) * DAYS
        at = rng.uniform(40, 60) if kind == "gradual" else rng.uniform(70, 95)
        auc, region = _auc(rng, kind, times, at)
        if kind:
            faults[name] = kind, at
        labels = (rng.random(len(times)) < (0.005 if kind == "few" else rng.uniform(0.25, 0.4))).astype(
            np.int8
        )
        scores = rng.normal(norm.ppf(auc) * math.sqrt(2) * labels)
        batch = EventBatch(
            TextColumn.of([name] * len(times)),
            scores,
            labels,
            times=FIRST + (times * DAY).astype(np.int64),
            slices=(("region", TextColumn.of([regions[code % len(regions)] for code in region])),),
        )
        parts += table.apply(batch.pack())
    return Planted(pa.Table.from_batches([rows_to_arrow(rows) for rows in parts]), faults)


def _auc(rng, kind, times, at):
    """The AUC and the region of each event."""
    base = np.full(len(times), rng.uniform(0.76, 0.87))
    region = rng.choice(4, len(times), p=[0.35, 0.3, 0.2, 0.15])
    after = times >= at
    if kind == "abrupt":
        base = base - 0.14 * after
    elif kind == "gradual":
        base = base - 0.2 * np.clip((times - at) / 35, 0, 1)
    elif kind == "rise":
        base = base - 0.14 * ~after
    elif kind == "slice":
        base = base - 0.2 * (after & (region == 0)) + 0.05 * (after & (region != 0))
    return base, region
