"""Random operations without end: python tests/stress/score_tree_stress.py [operations] [seed].

Not part of the test command. Ten million operations (the default) take minutes with buckets of 8:
ROCSTEADY_BUCKET_SLOTS=8. Every round draws a window, a distribution of scores and a rhythm of
growing and shrinking; two trees, one with bridges and one without, must agree to the last bit, whenever
they are asked for the sums they keep exactly, and from time to time everything is recomputed.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from rocsteady.core.score_tree.store import NOTHING
from rocsteady.core.score_tree.tree import RANKING, ScoreTree

from tests.support.invariants.score_tree import check_invariants

BATCH = 500
EVERYTHING = RANKING._replace(losses=1)


def draw_scores(kind: int, size: int, rng: np.random.Generator, clock: int) -> np.ndarray:
    """Scores of one of nine kinds."""
    ticks = clock + np.arange(size)
    return [
        lambda: rng.normal(size=size),
        lambda: rng.normal(size=size).round(1),
        lambda: rng.integers(0, 3, size) * 1.0,
        lambda: ticks * 1.0,
        lambda: ticks * -1.0,
        lambda: np.where(ticks % 2, -1.0, 1.0) / (1.0 + ticks),
        lambda: 1e9 + 1e-7 * rng.normal(size=size),
        lambda: rng.normal(size=size) * 10.0 ** rng.integers(-300, 300, size),
        lambda: rng.choice([-np.inf, -1e308, -5e-324, 0.0, -0.0, 5e-324, np.inf], size),
    ][kind]()


def stress(operations: int, seed: int) -> None:
    """Run until so many insertions and removals are done."""
    rng = np.random.default_rng(seed)
    done = rounds = clock = 0
    start = time.perf_counter()
    while done < operations:
        rounds += 1
        limit = int(10 ** rng.uniform(0, 4.3))
        kind = int(rng.integers(0, 9))
        prevalence = rng.choice([0.0, 0.01, 0.3, 0.5, 0.99])
        trees = [ScoreTree(8), ScoreTree(8, keeps_hull=False)]
        labels, scores = np.empty(0, np.int8), np.empty(0)
        for _ in range(int(rng.integers(1, 60))):
            size = int(rng.integers(1, min(limit, BATCH) + 1))
            if len(labels) + size <= limit and rng.random() < 0.6:
                y = (rng.random(size) < prevalence).astype(np.int8)
                s = draw_scores(kind, size, rng, clock)
                clock += size
                for tree in trees:
                    tree.insert(y, s)
                labels, scores = np.append(labels, y), np.append(scores, s)
            else:
                size = min(size, len(labels))
                # the oldest, as windows do, or any, as corrections do
                go = np.arange(size) if rng.random() < 0.5 else rng.permutation(len(labels))[:size]
                for tree in trees:
                    tree.remove(labels[go], scores[go])
                labels, scores = np.delete(labels, go), np.delete(scores, go)
            done += size
            ask = EVERYTHING if rng.random() < 0.5 else NOTHING
            rows = [tree.row(ask) for tree in trees]
            if rows[0].tobytes() != rows[1].tobytes():
                raise AssertionError(f"round {rounds} of seed {seed}: {rows}")
        if len(labels) < 2000 or rounds % 20 == 0:
            for tree in trees:
                check_invariants(tree)
        fresh = ScoreTree(8)
        fresh.insert(labels, scores)
        rows = [tree.row(EVERYTHING).item() for tree in (trees[0], fresh)]
        sums = [repr((row[:5], row[-3:])) for row in rows]  # losses of hulls go by capacity, NaN is NaN
        if sums[0] != sums[1]:
            raise AssertionError(f"round {rounds} of seed {seed}: history shows")
        if rounds % 100 == 0:
            print(f"{done:,} operations, {time.perf_counter() - start:.0f} s", flush=True)
    print(f"{done:,} operations in {rounds} rounds, seed {seed}: all claims hold")


if __name__ == "__main__":
    words = sys.argv[1:]
    stress(int(words[0]) if words else 10_000_000, int(words[1]) if len(words) > 1 else 0)
