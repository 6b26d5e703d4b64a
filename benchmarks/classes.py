"""Models with more than two classes: python -m benchmarks.classes [--quick] [--output FILE].

Dense rows: all pair AUCs, macro, weighted and M of a window of 10,000 events, beside scikit-learn, which
computes them anew for each row, and beside two trees a class in C++ (pb_ds.cpp). Contenders get the same
events and take turns (benchmarks.core). Sparse rows: one process for each case, in which nothing else runs.
Times are those of the processor, without waiting for it.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import rocsteady as rs
from rocsteady.core.classes.evaluator import MulticlassEvaluator
from rocsteady.core.classes.events import ClassEvents
from rocsteady.core.evaluator.evaluator import ModelEvaluator
from rocsteady.core.table.class_pool import warm_up

from .core import CHUNK, Chunk, compile_baseline, machine, numbers, pb_ds, ratio, table, take_turns
from .pages import with_commit
from .processes import Run, run

WINDOW = 10_000
PEER_SECONDS = 4.0
"""Seconds after which scikit-learn has shown enough."""

Events = tuple[np.ndarray, np.ndarray]


def make_events(events: int, classes: int, rng: np.random.Generator | None = None) -> Events:
    """Return labels, and scores that are probabilities: each class has about the same number of events."""
    rng = rng or np.random.default_rng(1)
    labels = rng.integers(0, classes, events)
    scores = rng.normal(size=(events, classes))
    scores[np.arange(events), labels] += 1.5
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=1, keepdims=True)
    return labels, scores


def names_of(classes: int) -> list[str]:
    return [f"c{number}" for number in range(classes)]


def evaluator(events: Events, stride: int) -> Chunk:
    """A MulticlassEvaluator without intervals and rows of classes, whose window is full."""
    labels, scores = events
    ev = MulticlassEvaluator(
        names_of(scores.shape[1]), window=rs.LastEvents(WINDOW), every=rs.EveryEvents(stride),
        class_rows=False, intervals=False,
    )  # fmt: skip
    ev.apply(ClassEvents(labels[:WINDOW], scores[:WINDOW]), None, labels[:WINDOW])

    def chunk(begin: int, end: int) -> float:
        start = time.thread_time()
        ev.apply(ClassEvents(labels[begin:end], scores[begin:end]), None, labels[begin:end])
        return time.thread_time() - start

    return chunk


def binary(events: Events, stride: int) -> Chunk:
    """A ModelEvaluator of the score of class 1 that asks for the AUC alone."""
    labels, scores = (events[0] == 1).astype(np.int8), np.ascontiguousarray(events[1][:, 1])
    ev = ModelEvaluator(window=rs.LastEvents(WINDOW), every=rs.EveryEvents(stride), measures=("auc",))
    ev.apply(scores[:WINDOW], labels[:WINDOW])

    def chunk(begin: int, end: int) -> float:
        start = time.thread_time()
        ev.apply(scores[begin:end], labels[begin:end])
        return time.thread_time() - start

    return chunk


def trees(events: Events, program: Path, folder: Path) -> Chunk:
    """Two trees a class in C++: the AUC of each class against the rest, after every event."""
    labels, scores = events
    return pb_ds(WINDOW, (labels.astype(np.int8), scores), program, folder, str(scores.shape[1]))


def scikit_learn(events: Events, kind: str) -> float:
    """Return the least microseconds of roc_auc_score of a window, "ovr" (macro) or "ovo" (M)."""
    from sklearn.metrics import roc_auc_score

    labels, scores = (part[:WINDOW] for part in events)
    if scores.shape[1] == 2:
        scores = scores[:, 1]
    times: list[float] = []
    began = time.perf_counter()
    while not times or (len(times) < 20 and time.perf_counter() - began < PEER_SECONDS):
        start = time.thread_time()
        roc_auc_score(labels, scores, multi_class=kind)
        times.append((time.thread_time() - start) * 1e6)
    return min(times)


def dense(counts: list[int], chunks: int, program: Path | None) -> Iterator[str]:
    yield (
        "\n## Dense rows\n\nMicroseconds of processor time per event in a full window of "
        f"{WINDOW:,} events: one that enters, one that leaves, and its share of the rows. "
        "Minimum, median and p99 of chunks of "
        f"{CHUNK:,} events. A row has macro, weighted and M, from the AUCs of all pairs of classes, without "
        "intervals and without rows of classes. C++ keeps two trees of GNU pb_ds a class and has the AUC of "
        "each class against the rest after every event, whatever the stride; it has no AUCs of pairs, and "
        "counts no ties. Bold: the ratio of a contender to rocsteady. scikit-learn computes `roc_auc_score` "
        "of the window anew for each row: the least of several runs, divided by the stride. With two classes "
        "it computes one binary AUC; `ModelEvaluator` with the AUC alone is beside it.\n"
    )
    out = []
    for classes in counts:
        few = max(2, chunks if classes < 100 else chunks // 8)
        events = make_events(WINDOW + few * CHUNK + 1, classes)
        peers = {kind: scikit_learn(events, kind) for kind in ("ovr", "ovo")}
        for stride in (1, 100):
            with tempfile.TemporaryDirectory() as folder:
                contenders = {"ours": evaluator(events, stride)}
                if classes == 2:
                    contenders["binary"] = binary(events, stride)
                if program:
                    contenders["C++"] = trees(events, program, Path(folder))
                times = take_turns(contenders, WINDOW, few)
            ours = times["ours"]
            cells = [f"{classes:,}", f"{stride:,}", numbers(ours)]
            cells += [
                f"{numbers(times[name])} **{ratio(times[name], ours)}**" if name in times else "-"
                for name in ("C++", "binary")
            ]
            cells += [
                f"{each / stride:,.0f} **{each / stride / float(np.median(ours)):,.0f}x**"
                for each in peers.values()
            ]
            out.append(cells)
            print(cells, flush=True)
    yield table(
        ["classes", "a row per", "rocsteady", "C++, no pairs", "`ModelEvaluator`", "scikit-learn ovr",
         "scikit-learn ovo"],
        out,
    )  # fmt: skip


class Case(NamedTuple):
    """A model of sparse rows. `kind`: "nothing" (events are made and dropped), "model" or "classes"."""

    kind: str
    events: int
    classes: int
    stride: int


def follow(case: Case) -> None:
    """Apply the events of a case, and print what that took. Kernels are ready before."""
    made = names_of(case.classes), rs.LastEvents(WINDOW), rs.EveryEvents(case.stride)

    def new(names: list[str]) -> MulticlassEvaluator:
        return MulticlassEvaluator(names, window=made[1], every=made[2], class_rows=case.kind == "classes")

    warm = new(made[0][:3])
    warm_up(warm.settings)
    labels, scores = make_events(2 * case.stride, 3)
    warm.apply(ClassEvents(labels, scores), None, labels)
    warm.finish()
    ev = new(made[0]) if case.kind != "nothing" else None
    before = _start_of_peak()
    rng, took, rows, size = np.random.default_rng(1), 0.0, 0, min(case.events, 1_000)
    for _ in range(0, case.events, size):
        labels, scores = make_events(size, case.classes, rng)
        if ev is not None:
            start = time.process_time()
            rows += len(ev.apply(ClassEvents(labels, scores), None, labels))
            took += time.process_time() - start
    peak = _megabytes("VmHWM")
    state = 0 if ev is None else len(ev.to_bytes())
    said = {"seconds": took, "rows": rows, "state": state, "megabytes": peak - before}
    print(json.dumps(said))


def _megabytes(name: str) -> float:
    """Return a line of /proc/self/status."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1e3 for line in lines if line.startswith(name))


def _start_of_peak() -> float:
    """Let the peak of memory begin anew, without that of compiling kernels; return the memory now."""
    Path("/proc/self/clear_refs").write_text("5")
    return _megabytes("VmRSS")


def child(case: Case) -> Run:
    return run(sys.executable, "-m", "benchmarks.classes", "--case", json.dumps(case))


def sparse(cases: list[tuple[int, int, int]], repeat: int) -> Iterator[str]:
    yield (
        f"\n## Sparse rows: time and memory\n\nThe window has the last {WINDOW:,} events; rows have "
        "intervals and all default measures. Each case runs in a process of its own, with its "
        "kernels ready. Time is "
        f"that of the processor, the least of {repeat} runs. Memory is the peak above the memory before the "
        "first event, less that of a process which makes the same events and drops them. State: the "
        "size of a snapshot. scikit-learn: "
        "one `roc_auc_score` (ovr, macro) of as many events as the window holds at the end, without an "
        "interval.\n"
    )
    out = []
    for events, classes, stride in cases:
        bare = min(child(Case("nothing", events, classes, stride)).said["megabytes"] for _ in range(repeat))
        held = make_events(min(events, WINDOW), classes)
        peer = scikit_learn(held, "ovr") if np.unique(held[0]).size == classes else None
        for kind in ("model", "classes"):
            runs = [child(Case(kind, events, classes, stride)) for _ in range(repeat)]
            said: dict[str, Any] = min((each.said for each in runs), key=lambda each: each["seconds"])
            used = min(each.said["megabytes"] for each in runs)
            out.append([
                f"{classes:,}", f"{events:,}", f"{stride:,}", "yes" if kind == "classes" else "no",
                f"{said['rows']:,}", f"{said['seconds']:.2f}", f"{said['seconds'] / events * 1e6:,.0f}",
                f"{used - bare:,.0f}", f"{said['state'] / 1e6:,.1f}",
                "classes are absent" if peer is None else f"{peer / 1e6:.2f}",
            ])  # fmt: skip
            print(out[-1], flush=True)
    yield table(
        ["classes", "events", "a row per", "rows of classes", "rows", "seconds", "us an event", "MB",
         "MB of state", "scikit-learn, seconds a row"],
        out,
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few classes, few chunks")
    default = Path(__file__).parent.parent / "docs" / "benchmarks" / "classes.md"
    parser.add_argument("--output", type=Path, default=default)
    parser.add_argument("--case", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        follow(Case(*json.loads(options.case)))
        return
    start = time.perf_counter()
    evaluator(make_events(WINDOW + 1, 3), 1)
    parts: list[str] = ["# More than two classes, measured\n", machine(time.perf_counter() - start)]
    with tempfile.TemporaryDirectory() as folder:
        program = compile_baseline(Path(folder))
        parts += dense([2, 3] if options.quick else [2, 10, 100], 2 if options.quick else 40, program)
    large = [(100_000, 10, 100), (20_000, 100, 1_000), (2_000, 1_000, 1_000), (300, 10_000, 300)]
    parts += sparse([(300, 20, 100)] if options.quick else large, 1 if options.quick else 2)
    options.output.write_text(with_commit("\n".join(parts)))
    print(f"written to {options.output}")


if __name__ == "__main__":
    main()
