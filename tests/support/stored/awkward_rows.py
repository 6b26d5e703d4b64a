"""Rows with everything that a sink must get right: names to be quoted, nulls, an infinity, a reason."""

from __future__ import annotations

import math

import numpy as np
from rocsteady.core.events.times import NO_TIME
from rocsteady.core.rows.measure_table import MEASURES
from rocsteady.core.rows.reasons import ONE_CLASS
from rocsteady.core.rows.rows import Rows

KEYS = (("b", ""), ("a", "carrier=UA"), ("a", 'x="1",\n2'))


def some_rows(n: int = 7, seed: int = 0) -> Rows:
    rng = np.random.default_rng(seed)
    rows = Rows.blank(n, KEYS, "0123456789ab")
    rows.key_codes[:] = rng.integers(0, len(KEYS), n)
    for name in ("row", "seq", "window_events"):
        rows.integer(name)[:] = np.arange(n)
    rows.integer("time")[:] = np.where(np.arange(n) % 2, NO_TIME, 1_357_000_000_000_000 + np.arange(n))
    rows.number("auc")[:] = rng.random(n)
    rows.number("ks_threshold")[0] = math.inf
    rows.number("auc")[1] = math.nan
    rows.reasons[1, MEASURES.index("auc")] = ONE_CLASS
    rows.drift[:2] = (1, 0)
    return rows
