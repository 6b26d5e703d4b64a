"""Predictions with a score of each class, their labels, and both joined, as records."""

from __future__ import annotations

import json

import numpy as np
import rocsteady as rs

NAMES = ("cat", "dog", "owl")
FIRST = 1_700_000_000


def class_streams(n=300, seed=4):
    """Predictions of two models, a label of each id, and the events of both in the order of their labels.

    A label has one class, "y", and a column for each class, such as "y_cat": an event may be of several.
    """
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 3, n)
    scores = (rng.random((n, 3)) + 0.5 * np.eye(3)[label]).round(2)
    of = (np.eye(3)[label] + (rng.random((n, 3)) < 0.1) > 0).astype(np.int64)
    known = rng.permutation(n) * 7 + n * 60
    predictions, labels, events = [], [], []
    for number in range(n):
        prediction = {
            "kind": "prediction", "id": f"e{number}", "model": f"m{number % 2}", "sent": FIRST + number * 60,
            **{f"p_{name}": float(score) for name, score in zip(NAMES, scores[number], strict=True)},
            "country": ("AR", "DE")[number // 2 % 2],
        }  # fmt: skip
        truth = {
            "kind": "label", "id": f"e{number}", "known": int(FIRST + known[number]),
            "y": NAMES[label[number]],
            **{f"y_{name}": int(is_of) for name, is_of in zip(NAMES, of[number], strict=True)},
        }  # fmt: skip
        predictions.append(prediction)
        labels.append(truth)
        events.append({**prediction, **truth, "sent": truth["known"]})
    return predictions, by_time(labels, "known"), by_time(events, "sent")


def by_time(records, name):
    return sorted(records, key=lambda record: (record[name], record["id"]))


def lines_of(records):
    return "".join(json.dumps(record) + "\n" for record in records)


def in_order(rows):
    """Rows without the hash of their settings, sorted by their identity."""
    rows = [row._replace(config="") for row in rows]
    return sorted(rows, key=lambda row: (row.model, row.slice, row.row, row.class_ or ""))


def read(path="rows.parquet"):
    return in_order(rs.read_rows(path))
