"""How narrow the certified bounds of AucSketch are, by its bytes, and what it costs, as Markdown.

    ROCSTEADY_DATA=folder python -m benchmarks.sketch

Widths: half the distance between the bounds of AUC and H; behind them, how far the value given beside the
bounds is from the exact one. Times: milliseconds of processor time, median of nine turns. Real scores only
where ROCSTEADY_DATA is set.
"""

from __future__ import annotations

import csv
import gzip
import os
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import rocsteady as rs
from rocsteady.core.sketches.auc_sketch import AucSketch

from .pages import made_from

EVENTS = 1_000_000
KILOBYTES = (4, 16, 64, 256, 1024)
FILES = {
    "TV news, LDA": ("scores_tvnews_lda.csv.gz", "label", "score"),
    "US census, employment": ("scores_acs_employment_MA.csv.gz", "employed", "predicted_probability"),
}
Events = tuple[np.ndarray, np.ndarray]


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def data_sets() -> Iterator[tuple[str, Events]]:
    folder = os.environ.get("ROCSTEADY_DATA")
    for name, (file, label, score) in FILES.items() if folder else ():
        with gzip.open(Path(str(folder)) / file, "rt", newline="") as text:
            rows = [(int(row[label]) == 1, float(row[score])) for row in csv.DictReader(text)]
        yield name, (np.array([row[0] for row in rows]), np.array([row[1] for row in rows]))
    rng = np.random.default_rng(1)
    labels = rng.random(EVENTS) < 0.5
    noise = rng.normal(size=EVENTS)
    for shift in (0.25, 1, 3):
        yield f"N(0, 1), N({shift}, 1)", (labels, noise + shift * labels)
    yield "probabilities, logits N(-0.75, 1.5), N(0.75, 1.5)", (labels, sigmoid(1.5 * (noise + labels - 0.5)))
    yield "overconfident, logits N(-3.5, 7), N(3.5, 7)", (labels, sigmoid(7 * (noise + labels - 0.5)))
    rare = rng.random(EVENTS) < 0.02
    yield "2% positives, logits N(-5, 2), N(-2, 2)", (rare, sigmoid(2 * noise + 3 * rare - 5))


def sketch_of(events: Events, kilobytes: int) -> AucSketch:
    sketch = AucSketch(kilobytes * 1024)
    sketch.add(*events)
    return sketch


def widths() -> None:
    sizes = " | ".join(f"{size} KB" for size in KILOBYTES)
    print(f"| | events, scores | | {sizes} |\n|---|---|---|{'---|' * len(KILOBYTES)}")
    for name, (labels, scores) in data_sets():
        exact = sketch_of((labels, scores), 2**20)
        sketches = [sketch_of((labels, scores), size) for size in KILOBYTES]
        distinct = len(np.unique(scores))
        for what in ("AUC", "H"):
            cells = []
            for sketch in (exact, *sketches):
                low, given, high = sketch.bounds() if what == "AUC" else sketch.h_bounds()
                if sketch is exact:
                    value = given
                    continue
                if not low <= value <= high:
                    raise rs.InputError(f"{name}: {what} is {value}, certified between {low} and {high}")
                cells.append(f"{(high - low) / 2:.1e} ({abs(given - value):.0e})" if low < high else "exact")
            label = f"{name} | {len(labels):,}, {distinct:,}" if what == "AUC" else " | "
            print(f"| {label} | {what} {value:.4f} | {' | '.join(cells)} |", flush=True)


def milliseconds(work: Callable[[], object]) -> float:
    spent = []
    for _ in range(9):
        start = time.thread_time_ns()
        work()
        spent.append((time.thread_time_ns() - start) / 1e6)
    return statistics.median(spent)


def times() -> None:
    print("| in 64 KB | ms |\n|---|---|")
    rng = np.random.default_rng(2)
    events = []
    for _ in range(2):
        labels = rng.random(EVENTS) < 0.5
        events.append((labels, rng.normal(size=EVENTS) + labels))
    first, other = (sketch_of(each, 64) for each in events)
    stored = first.to_bytes()
    few = 0, 0.5
    for what, work in (
        ("1M events, the first of a sketch", lambda: sketch_of(events[0], 64)),
        ("1M events more", lambda: AucSketch.from_bytes(stored).add(*events[1])),
        ("merge two sketches of 1M events each", lambda: AucSketch.from_bytes(stored).merge(other)),
        ("to bytes", first.to_bytes),
        ("from bytes", lambda: AucSketch.from_bytes(stored)),
        ("AUC with bounds", first.bounds),
        ("H with bounds", first.h_bounds),
        ("1,000 single events", lambda: [first.add(*few) for _ in range(1000)]),
        ("sorting 2M scores, for comparison", lambda: np.sort(np.concatenate([each[1] for each in events]))),
    ):
        print(f"| {what} | {milliseconds(work):.1f} |", flush=True)


if __name__ == "__main__":
    sketch_of((np.arange(2000) % 2, np.arange(2000.0)), 1).merge(AucSketch(1024)).h_bounds()
    print(f"{made_from()}\n")
    times()
    print()
    widths()
