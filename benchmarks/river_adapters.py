"""The metrics of `rs.river` beside river's RollingROCAUC, in turns: microseconds per event, as Markdown.

`RollingM` of more than two classes is beside scikit-learn, which computes each value from the whole window.

    python -m benchmarks.river_adapters

Each chunk of events goes to one metric after the other; the figure is the median chunk, the ratio the median
over chunks. `get` is called after every event, and after every 100th.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np
import rocsteady as rs
from river import metrics
from sklearn.metrics import roc_auc_score

CHUNK = 500
WINDOWS = (100, 1_000, 10_000, 100_000)
CLASSES = (3, 10, 100)


def chunk(rng: np.random.Generator) -> tuple[list[bool], list[float], list[bool]]:
    labels = rng.integers(0, 2, CHUNK)
    scores = rng.random(CHUNK) + 0.2 * labels
    return (labels == 1).tolist(), scores.tolist(), (scores > 0.6).tolist()


def microseconds(metric: Any, labels: list[bool], predictions: list[Any], stride: int) -> float:
    update, get = metric.update, metric.get
    start = time.thread_time_ns()
    for index, (label, prediction) in enumerate(zip(labels, predictions, strict=True)):
        update(label, prediction)
        if index % stride == 0:
            get()
    return (time.thread_time_ns() - start) / 1e3 / CHUNK


def compare(window: int, stride: int) -> dict[str, list[float]]:
    rng = np.random.default_rng(window)
    contestants = [metrics.RollingROCAUC(window)] + [
        getattr(rs.river, f"Rolling{name}")(window) for name in ("AUC", "H", "KS", "KappaM")
    ]
    spent: dict[str, list[float]] = {type(metric).__name__: [] for metric in contestants}
    full = window // CHUNK + 1
    for turn in range(full + (8 if window * CHUNK > 10**7 and stride == 1 else 60)):
        labels, scores, decided = chunk(rng)
        for metric in contestants:
            predictions = decided if metric.requires_labels else scores
            took = microseconds(metric, labels, predictions, stride if turn >= full else CHUNK)
            if turn >= full:
                spent[type(metric).__name__].append(took)
    return spent


def compare_classes(classes: int, window: int) -> tuple[float, float, float]:
    """Return what RollingM takes with a value after every event, and after every 100th, and scikit-learn."""
    rng = np.random.default_rng(window)
    metric = rs.river.RollingM(window)

    def events(count: int) -> tuple[list[int], list[dict[int, float]], np.ndarray]:
        labels = rng.integers(0, classes, count)
        scores = rng.dirichlet(np.ones(classes), count)
        return labels.tolist(), [dict(enumerate(row)) for row in scores.tolist()], scores

    labels, predictions, scores = events(window)
    microseconds(metric, labels, predictions, CHUNK)
    took = [
        statistics.median(microseconds(metric, *events(CHUNK)[:2], stride) for _ in range(9))
        for stride in (1, 100)
    ]
    theirs = []
    for _ in range(3):
        start = time.thread_time_ns()
        roc_auc_score(labels, scores, multi_class="ovo")
        theirs.append((time.thread_time_ns() - start) / 1e3)
    return took[0], took[1], statistics.median(theirs)


def main() -> None:
    print(
        "| window | get after every | RollingROCAUC of river | RollingAUC | H | KS | KappaM | AUC / river |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for window in WINDOWS:
        for stride in (1, 100):
            spent = compare(window, stride)
            figures = " | ".join(f"{statistics.median(times):.2f}" for times in spent.values())
            rivers, ours, *_ = spent.values()
            ratio = statistics.median(a / b for a, b in zip(ours, rivers, strict=True))
            print(f"| {window:,} | {stride} | {figures} | {ratio:.2f}x |", flush=True)
    print("| classes | window | RollingM | scikit-learn, a value | scikit-learn / RollingM |")
    print("|---|---|---|---|---|")
    for classes in CLASSES:
        for window in (1_000, 10_000):
            dense, sparse, theirs = compare_classes(classes, window)
            shown = f"{dense:.1f} / {sparse:.1f} | {theirs:,.0f} | **{theirs / dense:,.0f}x**"
            print(f"| {classes} | {window:,} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
