"""Events of three models and two slices, for roll-ups."""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def some_events(n=6_000, seed=1):
    rng = np.random.default_rng(seed)
    label = rng.random(n) < 0.4
    return pa.table(
        {
            "model": rng.choice(["t/a", "t/b", "u"], n),
            "score": rng.normal(1.2 * label),
            "label": label.astype(int),
            "time": np.arange(n) * 5.0,
            "c": rng.choice(["x", "y"], n),
        }
    )
