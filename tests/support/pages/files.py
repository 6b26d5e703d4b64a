"""Files that pages take as given: a reader has such files of their own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq


def scored(events: int = 24_000, hours: float = 0.05) -> pa.Table:
    """Events of two models with times, countries, ids and carriers."""
    rng = np.random.default_rng(5)
    labels = rng.random(events) < 0.4
    scores = 1 / (1 + np.exp(-rng.normal(1.5 * labels - 0.7)))
    seconds = 1_767_225_600 + np.arange(events) * int(hours * 3_600)
    return pa.table(
        {
            "model": np.where(np.arange(events) % 2, "clicks", "churn"),
            "score": scores.round(4),
            "p": scores.round(4),
            "label": labels.astype(int),
            "clicked": labels.astype(int),
            "country": rng.choice(["NZ", "FR"], events),
            "carrier": rng.choice(["AA", "B6", "DL", "UA", "WN", "EV", "MQ"], events),
            "sent": seconds,
            "made": seconds,
            "order": np.arange(events),
        }
    )


def _csv(name: str) -> Callable[[], None]:
    return lambda: pa.csv.write_csv(scored(), name)


def _labels_apart() -> None:
    events = scored()
    pq.write_table(events.select(["model", "order", "made", "p"]), "predictions.parquet")
    known = pa.array(np.asarray(events["sent"]) + 3_600)
    labels = {"order": events["order"], "known": known, "label": events["label"]}
    pq.write_table(pa.table(labels).slice(100), "labels.parquet")


def _readme() -> None:
    _csv("scores.csv")()
    _labels_apart()


GIVEN: dict[str, Callable[[], None]] = {
    "README.md": _readme,
    "docs/how-to/alerts.md": _csv("scores.csv"),
    "docs/how-to/compare.md": _csv("scored.csv"),
    "docs/how-to/operations.md": _csv("day.csv"),
    "docs/how-to/report.md": lambda: pq.write_table(scored(), "scores.parquet"),
}
"""By page: writes the files into the working folder."""
