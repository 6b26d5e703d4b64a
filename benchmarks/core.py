"""The tree against its peers: python -m benchmarks.core [--quick] [--output FILE].

Every contender gets the same events in the same order. Contenders take turns of 20,000 events, so
that a busy machine slows them all: ratios hold where microseconds do not. Times are those of the
processor, without waiting for it.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from rocsteady.core.evaluator.evaluator import ModelEvaluator
from rocsteady.core.evaluator.unit_window import tree_sizes
from rocsteady.core.score_tree.tree import ScoreTree
from rocsteady.core.score_tree.tree_rows import Ask
from rocsteady.core.score_tree.window import keeps_hull_for, warm_up
from rocsteady.core.settings.evaluator import EvaluatorSettings
from rocsteady.core.settings.windows import EveryEvents, LastEvents

from tests.support.invariants.sliding_window import SlidingWindow

from .pages import with_commit

CHUNK = 1000
TURN = 20  # chunks in a row, so that a contender finds its own data in the caches
NO_TIME = 3.0  # seconds after which a slow contender has shown enough

AUC = Ask(h=0, ks=0, tpr_at_fpr=0, cost_threshold=0, aum=0, fpr=0.01, cost=0.2)
WITH_H = AUC._replace(h=1)
ALL = WITH_H._replace(ks=1, tpr_at_fpr=1, cost_threshold=1, aum=1)

Events = tuple[np.ndarray, np.ndarray]
Chunk = Callable[[int, int], float]
"""Apply the events from one index to another; return the seconds that took."""


def random_scores(n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=n)


ORDERS: dict[str, Callable[[int, np.random.Generator], np.ndarray]] = {
    "random": random_scores,
    "sorted up": lambda n, _: np.arange(n) * 1.0,
    "sorted down": lambda n, _: np.arange(n) * -1.0,
    "alternating extremes": lambda n, _: np.where(np.arange(n) % 2, -1.0, 1.0) * np.arange(n),
    "shrinking gap": lambda n, _: np.where(np.arange(n) % 2, -1.0, 1.0) / (1.0 + np.arange(n)),
    "heavy ties": lambda n, rng: rng.normal(size=n).round(1),
}


def make_events(n: int, order: str = "random", seed: int = 1) -> Events:
    """30% positives, whose scores are one standard deviation higher where the order allows it."""
    rng = np.random.default_rng(seed)
    labels = (rng.random(n) < 0.3).astype(np.int8)
    scores = ORDERS[order](n, rng)
    return labels, scores + labels if order in ("random", "heavy ties") else scores


def tree(k: int, events: Events, ask: Ask, stride: int = 1, hull: bool | None = None) -> Chunk:
    """A ScoreWindow of k, full."""
    labels, scores = events
    window = SlidingWindow(k, stride=stride, keeps_hull=ask.h > 0 if hull is None else hull)
    window.slide(labels[:k], scores[:k], ask=AUC)

    def chunk(begin: int, end: int) -> float:
        start = time.thread_time()
        rows = window.slide(labels[begin:end], scores[begin:end], ask=ask)
        with np.errstate(invalid="ignore"):
            rows.pairs2 / (2.0 * rows.positives * rows.negatives)
        return time.thread_time() - start

    return chunk


def pb_ds(k: int, events: Events, program: Path, folder: Path, *words: str) -> Chunk:
    """The C++ baseline: AUC alone, or of each class, if `words` are the number of classes."""
    labels, scores = events
    data = folder / "events"
    with data.open("wb") as file:
        for part in (np.array([k, len(labels)]), labels, scores):
            part.tofile(file)
    process = subprocess.Popen(
        [program, data, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert process.stdin
    assert process.stdout
    ask, answer = process.stdin, process.stdout

    def chunk(begin: int, end: int) -> float:
        ask.write(f"{end - begin}\n")
        ask.flush()
        return float(answer.readline()) * (end - begin) / 1e6

    return chunk


def river(k: int, events: Events) -> Chunk:
    """RollingROCAUC, asked for its value after every event."""
    from river.metrics import RollingROCAUC

    metric = RollingROCAUC(window_size=k)
    labels, scores = events
    for y, s in zip(labels[:k].tolist(), scores[:k].tolist(), strict=True):
        metric.update(bool(y), s)

    def chunk(begin: int, end: int) -> float:
        y, s = labels[begin:end].tolist(), scores[begin:end].tolist()
        start = time.thread_time()
        for i in range(end - begin):
            metric.update(bool(y[i]), s[i])
            metric.get()
        return time.thread_time() - start

    return chunk


def scikit_learn(k: int, events: Events) -> Chunk:
    """roc_auc_score of the window, after every event."""
    from sklearn.metrics import roc_auc_score

    labels, scores = events

    def chunk(begin: int, end: int) -> float:
        start = time.thread_time()
        for t in range(begin, end):
            roc_auc_score(labels[t + 1 - k : t + 1], scores[t + 1 - k : t + 1])
        return time.thread_time() - start

    return chunk


def take_turns(contenders: dict[str, Chunk], k: int, chunks: int) -> dict[str, np.ndarray]:
    """Microseconds per event of each contender's chunks."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(0, chunks, TURN):
        for name, chunk in contenders.items():
            for begin in range(k + turn * CHUNK, k + min(turn + TURN, chunks) * CHUNK, CHUNK):
                times[name].append(chunk(begin, begin + CHUNK) / CHUNK * 1e6)
    return {name: np.array(values) for name, values in times.items()}


def slow(contender: Chunk, k: int) -> np.ndarray:
    """As many short chunks as fit the time."""
    times, start, begin, size = [], time.perf_counter(), k, 5
    while time.perf_counter() - start < NO_TIME and begin + size < k + 100 * CHUNK:
        times.append(contender(begin, begin + size) / size * 1e6)
        begin += size
    return np.array(times)


def numbers(times: np.ndarray) -> str:
    low, middle, high = times.min(), np.median(times), np.percentile(times, 99)
    digits = 2 if low < 100 else 0
    return f"{low:,.{digits}f} / {middle:,.{digits}f} / {high:,.{digits}f}"


def ratio(times: np.ndarray, base: np.ndarray) -> str:
    """The median ratio of turns that followed each other: what the machine does cancels."""
    turns = range(0, len(times), TURN)
    ratios = [np.median(times[t : t + TURN]) / np.median(base[t : t + TURN]) for t in turns]
    return f"{np.median(ratios):.2f}x"


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def every_event(sizes: list[int], chunks: int, program: Path | None) -> Iterator[str]:
    yield "## A row after every event\n"
    yield (
        "Microseconds of processor time per event (insertion, eviction, row): minimum, median, p99 "
        f"of chunks of {CHUNK} events. The ratio is to the C++ baseline, GNU pb_ds, which computes "
        "AUC alone and counts no ties: the median over turns that followed each other. Every default "
        "measure: AUC, DeLong, H, KS, TPR at FPR, the threshold for a cost, and AUM.\n"
    )
    out = []
    for k in sizes:
        events = make_events(k + chunks * CHUNK + 1)
        with tempfile.TemporaryDirectory() as folder:
            contenders = {
                "AUC + DeLong": tree(k, events, AUC),
                "with H": tree(k, events, WITH_H),
                "every default measure": tree(k, events, ALL),
            }
            if program:
                contenders["C++"] = pb_ds(k, events, program, Path(folder))
            times = take_turns(contenders, k, chunks)
        base = times.pop("C++", None)
        cells = [f"{k:,}", numbers(base) if base is not None else "no compiler"]
        cells += [
            numbers(of) + (f" **{ratio(of, base)}**" if base is not None else "") for of in times.values()
        ]
        out.append(cells)
        print(cells, flush=True)
    yield table(["window", "C++ AUC alone", "AUC + DeLong", "with H", "every default measure"], out)


def sparse(sizes: list[int], chunks: int) -> Iterator[str]:
    yield "\n## A row per stride: bridges or scans\n"
    yield (
        "Every default measure; microseconds per event, medians of chunks. "
        "**Bold**: what `keeps_hull_for` chooses.\n"
    )
    out = []
    for k in sizes:
        events = make_events(k + chunks * CHUNK + 1)
        for stride in (1, 10, 20, 50, 100, 200, 500, 1000):
            contenders = {"bridges": tree(k, events, ALL, stride, True)}
            if k / stride <= 10_000:
                contenders["scan"] = tree(k, events, ALL, stride, False)
            times = take_turns(contenders, k, min(chunks, 20 if k / stride > 500 else chunks))
            chosen = "bridges" if keeps_hull_for(k, stride) else "scan"
            cells = [f"{k:,}", f"{stride:,}"]
            for name in ("bridges", "scan"):
                figure = f"{np.median(times[name]):.2f}" if name in times else "-"
                cells.append(f"**{figure}**" if name == chosen else figure)
            out.append(cells)
            print(cells, flush=True)
    yield table(["window", "stride", "bridges", "scan"], out)


def evaluator(sizes: list[int], chunks: int, program: Path | None) -> Iterator[str]:
    yield "\n## ModelEvaluator: everything that a row holds\n"
    yield (
        "Window, decisions, kappa family, rows in columns; calls of 1,000 events; microseconds per event, "
        "median of chunks. Scan: sorted arrays merged and scanned at a row, the form that suits long "
        "strides; tree: the ScoreTree; beside the figure: what `tree_sizes` takes for the settings. All "
        "measures: of scores that are probabilities, those included that cost O(k) a row. The ratio is to "
        "C++, which has AUC alone after every event, whatever the stride.\n"
    )
    out = []
    for k in sizes:
        labels, scores = make_events(k + chunks * CHUNK + 1)
        events = labels, 1.0 / (1.0 + np.exp(-scores))
        for stride in (1, 100, 1000):
            usual = EvaluatorSettings(window=LastEvents(k), every=EveryEvents(stride))
            choices = usual, replace(usual, measures=("all",), probabilities=True)
            cells = [f"{k:,}", f"{stride:,}"]
            for settings in choices:
                few = max(1, min(chunks, 2_000 * stride // k)) if settings.probabilities else chunks
                contenders = {"evaluator": evaluate(events, settings)}
                with tempfile.TemporaryDirectory() as folder:
                    if program and settings is usual:
                        contenders["C++"] = pb_ds(k, events, program, Path(folder))
                    times = take_turns(contenders, k, few)
                form = "tree" if k in tree_sizes(settings) else "scan"
                base = f" **{ratio(times['evaluator'], times['C++'])}**" if "C++" in times else ""
                cells.append(f"{np.median(times['evaluator']):.2f} ({form}){base}")
            out.append(cells)
            print(out[-1], flush=True)
    yield table(["window", "stride", "every default measure", "all measures"], out)


def evaluate(events: Events, settings: EvaluatorSettings) -> Chunk:
    """A ModelEvaluator whose window is full."""
    labels, scores = events
    k = settings.window.k
    ev = ModelEvaluator(settings)
    ev.apply(scores[:k], labels[:k])

    def chunk(begin: int, end: int) -> float:
        start = time.thread_time()
        ev.apply(scores[begin:end], labels[begin:end])
        return time.thread_time() - start

    return chunk


def orders(sizes: list[int], chunks: int) -> Iterator[str]:
    yield "\n## Orders of scores\n"
    yield "Row with H after every event; microseconds per event, and the ratio to random order.\n"
    out = []
    for k in sizes:
        windows = {order: tree(k, make_events(k + chunks * CHUNK + 1, order), WITH_H) for order in ORDERS}
        times = take_turns(windows, k, chunks)
        for order, of in times.items():
            out.append([f"{k:,}", order, numbers(of), ratio(of, times["random"])])
            print(out[-1], flush=True)
    yield table(["window", "order", "min / median / p99", "ratio"], out)


def peers(sizes: list[int]) -> Iterator[str]:
    yield "\n## Peers in Python\n"
    yield "AUC after every event; microseconds per event.\n"
    out = []
    for k in sizes:
        events = make_events(k + 101 * CHUNK)
        cells = [f"{k:,}", numbers(take_turns({"": tree(k, events, AUC)}, k, 50)[""])]
        for peer in (river, scikit_learn):
            try:
                cells.append(numbers(slow(peer(k, events), k)))
            except ImportError:
                cells.append("not installed")
        out.append(cells)
        print(cells, flush=True)
    yield table(["window", "ScoreWindow", "river RollingROCAUC", "scikit-learn roc_auc_score"], out)


def other_costs(sizes: list[int]) -> Iterator[str]:
    yield "\n## Building, memory\n"
    out = []
    for k in sizes:
        labels, scores = make_events(2 * k)
        whole = ScoreTree(k + 1)
        whole.insert(labels[:k], scores[:k])
        entries, times = whole.to_sorted(), []
        for _ in range(5):
            start = time.perf_counter()
            ScoreTree.from_sorted(*entries, capacity=k + 1)
            times.append((time.perf_counter() - start) / k * 1e9)
        window = SlidingWindow(k)
        window.slide(labels, scores, ask=AUC)
        out.append([f"{k:,}", f"{min(times):.0f} ns", f"{window.nbytes / k:.0f} bytes"])
        print(out[-1], flush=True)
    yield table(["window", "bulk build, an entry", "live window with hull, an event"], out)


def machine(compiled_in: float) -> str:
    cpu = platform.processor()
    if Path("/proc/cpuinfo").exists():
        names = [
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ]
        cpu = names[0] if names else cpu
    versions = ", ".join(
        f"{name} {metadata.version(name)}" for name in ("numba", "numpy", "scikit-learn", "river")
    )
    return (
        f"{cpu}, {os.cpu_count()} cores (one used), Python {platform.python_version()}, "
        f"{versions}. Kernels ready after {compiled_in:.1f} s.\n"
    )


def compile_baseline(folder: Path) -> Path | None:
    compiler = shutil.which("g++")
    if compiler is None:
        return None
    program = folder / "pb_ds"
    source = Path(__file__).with_name("pb_ds.cpp")
    subprocess.run([compiler, "-O3", "-march=native", "-o", program, source], check=True)
    return program


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small windows, few chunks")
    default = Path(__file__).parent.parent / "docs" / "benchmarks" / "core.md"
    parser.add_argument("--output", type=Path, default=default)
    options = parser.parse_args(arguments)
    sizes = [100, 1000] if options.quick else [100, 1000, 10_000, 100_000, 1_000_000]
    chunks = 8 if options.quick else 200
    ready = warm_up()
    parts: list[Any] = ["# The heart, measured\n", machine(ready)]
    with tempfile.TemporaryDirectory() as folder:
        program = compile_baseline(Path(folder))
        parts += every_event(sizes, chunks, program)
        parts += sparse([k for k in sizes if 1000 <= k <= 100_000], chunks // 2)
        parts += orders([k for k in sizes if k in (1000, 10_000, 100_000)], chunks // 2)
        parts += evaluator([k for k in sizes if 100 <= k <= 10_000], chunks // 4, program)
    parts += peers([k for k in sizes if k <= 10_000])
    parts += other_costs([1000, 10_000] if options.quick else [10_000, 1_000_000])
    text = with_commit("\n".join(parts))
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(text)
    print(text)


if __name__ == "__main__":
    main(sys.argv[1:])
