"""Real weights against counts: python -m benchmarks.weighted [--quick] [--output FILE].

The same events through a ScoreWindow (unit weights, whole numbers) and through a WeightedRanking that fades
by inflated weights, a row every `stride` events; both in calls of 1,000 events, by turns (benchmarks.core).
One event is one that enters and one that leaves. Times are those of the processor.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from rocsteady.core.evaluator.weighted.ranking import WeightedRanking
from rocsteady.core.rows.columns import NUMBER_COLUMNS
from rocsteady.core.rows.measure_table import MEASURES
from rocsteady.core.score_tree.window import keeps_hull_for, warm_up
from rocsteady.core.settings.evaluator import EvaluatorSettings
from rocsteady.core.weighted_tree.tree_rows import Batch, RowPlan

from .core import (
    ALL,
    CHUNK,
    ORDERS,
    Chunk,
    Events,
    machine,
    make_events,
    numbers,
    ratio,
    river,
    slow,
    table,
    take_turns,
    tree,
)
from .pages import with_commit

CURRENT = ALL._replace(aum=0)


def weighted(k: int, events: Events, stride: int, kind: str) -> Chunk:
    """A WeightedRanking of k events, full; weights of 1, or doubling every k / 4 events."""
    labels, scores = events
    weights = np.exp2(np.arange(len(labels)) / (k / 4) - 400) if kind == "fading" else np.ones(len(labels))
    ranking = WeightedRanking(EvaluatorSettings(), labels[:k], scores[:k], weights[:k])
    signs = np.tile(np.array([1, -1], np.int8), CHUNK)

    def chunk(begin: int, end: int) -> float:
        start = time.thread_time()
        i = np.arange(begin, end)
        order = np.column_stack([i, i - k]).ravel()
        ends = np.arange(2 * stride, len(order) + 1, 2 * stride)
        rows = np.full((len(ends), len(NUMBER_COLUMNS)), np.nan)
        reasons = np.zeros((len(ends), len(MEASURES)), np.int8)
        plan = RowPlan(ends, np.ones(len(ends)), np.zeros(len(ends), np.int64), rows, reasons)
        done = row = 0  # of the changes and of the rows
        while True:
            rest = order[done:]
            batch = Batch(labels[rest], scores[rest], weights[rest], signs[done:])
            left = RowPlan(*(column[row:] for column in plan))._replace(ends=plan.ends[row:] - done)
            progress = ranking.take_rows(batch, left)
            done, row = done + progress.events, row + progress.rows
            if not progress.needs_rebuild:
                break
            held = slice(begin - k + done // 2, begin + (done + 1) // 2)
            ranking.tree.rebuild(labels[held], scores[held], weights[held])
        assert (done, row) == (len(order), len(ends))
        return time.thread_time() - start

    return chunk


def against_counts(sizes: list[int], chunks: int, kinds: tuple[str, ...], strides: tuple[int, ...]) -> str:
    out = []
    for k in sizes:
        events = make_events(k + chunks * CHUNK + 1)
        for stride in strides:
            hull = keeps_hull_for(k, stride)
            few = chunks if stride > 1 or k <= 10_000 else max(20, chunks // 5)
            contenders = {
                "all": tree(k, events, ALL, stride, hull),
                "all but AUM": tree(k, events, CURRENT, stride, hull),
                **{kind: weighted(k, events, stride, kind) for kind in kinds},
            }
            times = take_turns(contenders, k, few)
            cells = [f"{k:,}", f"{stride:,}", numbers(times["all"]), numbers(times["all but AUM"])]
            for kind in kinds:
                ratios = f"**{ratio(times[kind], times['all'])}**, {ratio(times[kind], times['all but AUM'])}"
                cells.append(f"{numbers(times[kind])} {ratios}")
            out.append(cells)
            print(cells, flush=True)
    return table(["window", "stride", "counts", "counts, no AUM", *kinds], out)


def orders(sizes: list[int], chunks: int) -> str:
    out = []
    for k in sizes:
        windows = {
            order: weighted(k, make_events(k + chunks * CHUNK + 1, order), 100, "fading") for order in ORDERS
        }
        times = take_turns(windows, k, chunks)
        for order, of in times.items():
            out.append([f"{k:,}", order, numbers(of), ratio(of, times["random"])])
            print(out[-1], flush=True)
    return table(["window", "order", "min / median / p99", "ratio"], out)


def against_river(sizes: list[int]) -> str:
    out = []
    for k in sizes:
        events = make_events(k + 101 * CHUNK)
        ours = take_turns({"": weighted(k, events, 1, "fading")}, k, 20)[""]
        theirs = slow(river(k, events), k)
        out.append([f"{k:,}", numbers(ours), numbers(theirs), f"{np.median(theirs) / np.median(ours):.1f}x"])
        print(out[-1], flush=True)
    return table(["window", "fading, a row an event", "river RollingROCAUC, no weights", "faster"], out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small windows, few chunks")
    default = Path(__file__).parent.parent / "docs" / "benchmarks" / "weighted.md"
    parser.add_argument("--output", type=Path, default=default)
    options = parser.parse_args()
    sizes = [1000, 10_000] if options.quick else [1000, 10_000, 100_000, 400_000]
    chunks = 20 if options.quick else 100
    parts = ["# Real weights, measured\n", machine(warm_up())]
    parts.append("## Against counts\n\nMicroseconds per event; the ratios are to counts with every default")
    parts.append("measure, and to counts without AUM, which costs O(log k) an event in both.\n")
    parts.append(against_counts(sizes, chunks, ("weights of 1", "fading"), (1, 100, 1000)))
    parts.append("\n## Orders of scores, a row per 100 events\n")
    parts.append(orders([k for k in sizes if k <= 100_000], chunks // 2))
    parts.append("\n## Against river, a row after every event\n")
    parts.append(against_river([k for k in sizes if k <= 100_000]))
    options.output.write_text(with_commit("\n".join(parts)))
    print(f"written to {options.output}")


if __name__ == "__main__":
    main()
