"""What learning AUC and AUM costs, against what it is measured by, as Markdown.

    python -m benchmarks.learning [SECTION ...]

A section is one comparison; without a name, all of them run. Contenders take turns on the same data in one
process, on one core, and what counts is the ratio of two neighbours in time: its median over the turns, and
from where to where it went.
"""

from __future__ import annotations

import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable

import numpy as np
from river.linear_model import LogisticRegression
from river.preprocessing import StandardScaler
from rocsteady.core.learning.aum.aum import aum, aum_of_labels
from rocsteady.core.learning.aum.learner import AumLearner
from rocsteady.core.learning.aum.line_search import aum_line_search
from rocsteady.core.learning.polynomial.learner import PolynomialAucLearner
from rocsteady.core.learning.polynomial.passes import GradientSums, GradientTask, LineSums, LineTask
from rocsteady.core.learning.polynomial.standardised_rows import Slopes, Standardiser
from rocsteady.core.measures.polynomial_auc import PolynomialAuc
from scipy.stats import norm
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from .pages import with_commit
from .papers.data import examples
from .papers.drawing import machine, table

TURNS = 9


def seconds(work: Callable[[], object]) -> float:
    start = time.thread_time_ns()
    work()
    return (time.thread_time_ns() - start) / 1e9


def in_turns(works: dict[str, Callable[[], object]], against: str, turns: int = TURNS) -> dict[str, str]:
    """Return by name the ratio of the time of each to that of one of them: median (least to most)."""
    spent: dict[str, list[float]] = {name: [] for name in works}
    for work in works.values():  # compiled, and in the cache
        work()
    for _ in range(turns):
        for name, work in works.items():
            spent[name].append(seconds(work))
    said = {}
    for name, times in spent.items():
        ratios = [mine / other for mine, other in zip(times, spent[against], strict=True)]
        said[name] = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
    return said


def peak_bytes(work: Callable[[], object]) -> int:
    """Return how much memory a piece of work takes at the most, beyond what was there before."""
    tracemalloc.start()
    work()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


# ---- PolynomialAuc


def polynomial_auc() -> None:
    """Time and memory of PolynomialAuc against sorting; how near it is by degree and fit."""
    rng = np.random.default_rng(0)
    labels = (rng.random(10_000_000) < 0.3).astype(np.int8)
    scores = np.tanh(rng.normal(size=len(labels)) + labels)
    weights = rng.exponential(size=len(labels))

    def added(degree: int, with_weights: bool = False) -> Callable[[], object]:
        return lambda: PolynomialAuc(degree).add(labels, scores, weights if with_weights else None)

    ratios = in_turns(
        {
            "`np.sort(scores)`": lambda: np.sort(scores),
            "`np.argsort(scores)`": lambda: np.argsort(scores),
            **{f"`PolynomialAuc({degree}).add`": added(degree) for degree in (10, 30, 60)},
            "`PolynomialAuc(30).add` with weights": added(30, True),
        },
        "`np.sort(scores)`",
    )
    print(table(("10M scores of two classes", "time / `np.sort`"), list(ratios.items())), end="")
    print("\n| memory of `PolynomialAuc(30).add` beyond the scores, MB | |\n|---|---|")
    for events in (100_000, 1_000_000, 10_000_000):
        peak = peak_bytes(lambda n=events: PolynomialAuc().add(labels[:n], scores[:n]))  # type: ignore[misc]
        print(f"| {events:,} events | {peak / 1e6:.1f} |")
    _steps(labels[:1_000_000], scores[:1_000_000])
    _nearness()


def _steps(labels: np.ndarray, scores: np.ndarray) -> None:
    one, other = PolynomialAuc(), PolynomialAuc()
    one.add(labels, scores)
    other.add(labels, scores)
    stored = one.to_bytes()
    print(f"\n| one of 1M events, {len(stored)} bytes | microseconds |\n|---|---|")
    for what, work in (
        ("add an event", lambda: one.add(1, 0.5)),
        ("remove an event", lambda: one.remove(1, 0.5)),
        ("merge", lambda: one.merge(other)),
        ("estimate with bounds", one.estimate),
        ("to bytes", one.to_bytes),
        ("from bytes", lambda: PolynomialAuc.from_bytes(stored)),
    ):
        work()
        spent = sorted(seconds(work) for _ in range(501))
        print(f"| {what} | {spent[250] * 1e6:.0f} |")


def _nearness() -> None:
    """Print how far it is off on N(0, 1) against N(m, 1), on the interval of all scores."""
    events = 100_000
    quantiles = norm.ppf((np.arange(events) + 0.5) / events)
    labels = np.repeat([0, 1], events)
    shifts = (0.25, 0.5, 1.0, 2.0, 3.0)
    print(f"\n| degree, fit | {' | '.join(f'm = {m:g}' for m in shifts)} |\n|---|{'---|' * len(shifts)}")
    for degree in (10, 20, 30, 60):
        for fit in ("least_squares", "chebyshev"):
            cells = []
            for m in shifts:
                scores = np.concatenate([quantiles, quantiles + m])
                auc = PolynomialAuc(degree, (scores.min(), scores.max()), fit)  # type: ignore[arg-type]
                auc.add(labels, scores)
                found, exact = auc.estimate(), roc_auc_score(labels, scores)
                cells.append(f"{abs(found.auc - exact):.0e} ({found.bound:.2f})")
            print(f"| {degree}, {fit} | {' | '.join(cells)} |")
    print("\nThe error of the estimate, and behind it its bound (`bound`).")


# ---- aum


def aum_and_line_search() -> None:
    """Time of AUM with both derivatives, and of a line search, against sorting the thresholds."""
    rng = np.random.default_rng(0)
    count = 1_000_000
    labels = rng.integers(0, 2, count)
    scores = rng.normal(size=count) + labels
    example, zeros, fp, fn = np.arange(count), np.zeros(count), 1.0 - labels, -1.0 * labels
    several = rng.integers(0, count // 4, count)
    places, rises, falls = rng.normal(size=count), np.where(fp, fp, 0.0), np.where(fp, 0.0, fn)
    far = np.where(labels, scores, scores + 1e12)
    ratios = in_turns(
        {
            "`np.argsort(thresholds)`": lambda: np.argsort(scores),
            "`aum`, a breakpoint each": lambda: aum(scores, example, zeros, fp, fn),
            "`aum`, rates": lambda: aum(scores, example, zeros, fp, fn, rate=True),
            "`aum`, four breakpoints an example, in no order": lambda: aum(
                scores[: count // 4], several, places, rises, falls
            ),
            "`aum`, all thresholds tied": lambda: aum(zeros, example, zeros, fp, fn),
            "`aum`, two clusters 10^12 apart": lambda: aum(far, example, zeros, fp, fn),
            "`aum_of_labels`, by selection": lambda: aum_of_labels(labels, scores),
        },
        "`np.argsort(thresholds)`",
    )
    print(table(("10^6 breakpoints", "time / `np.argsort`"), list(ratios.items())), end="")
    print("\n| `aum_line_search`, as many crossings as breakpoints | time / `aum` |\n|---|---|")
    for n in (1_000, 10_000, 100_000):
        rows = (example[:n], zeros[:n], fp[:n], fn[:n])
        f, direction = scores[:n], rng.normal(size=n)
        ratio = in_turns(
            {
                "aum": lambda f=f, rows=rows: aum(f, *rows),  # type: ignore[misc]
                "line": lambda f=f, d=direction, rows=rows: aum_line_search(f, d, *rows),  # type: ignore[misc]
            },
            "aum",
        )
        print(f"| {n:,} | {ratio['line']} |")
    _online()


def _online() -> None:
    """Print prequential AUC and time of online learners on streams."""
    head = ("stream of 12,000", "learner", "AUC, mean of blocks of 1,000", "microseconds an instance")
    print(f"\n| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for name in ("electricity", "covtype", "covtype4"):
        given = examples(name)
        rows = np.random.default_rng(0).permutation(len(given.labels))[:12_000]
        if name == "electricity":
            rows = np.arange(12_000)  # in the order of time
        table, answers = given.features[rows].toarray().tolist(), (given.labels[rows] == 1).tolist()
        instances = [{str(i): value for i, value in enumerate(row)} for row in table]
        learners = {
            "logistic (river)": StandardScaler() | LogisticRegression(),
            "aum": AumLearner(),
            "polynomial-auc": PolynomialAucLearner(),
        }
        for learner_name, learner in learners.items():
            said = []
            start = time.thread_time_ns()
            for x, y in zip(instances, answers, strict=True):
                said.append(learner.predict_proba_one(x).get(True, 0.5))
                learner.learn_one(x, y)
            spent = (time.thread_time_ns() - start) / 1e3 / len(said)
            blocks = [slice(begin, begin + 1000) for begin in range(2000, len(said), 1000)]
            aucs = [roc_auc_score(answers[block], said[block]) for block in blocks]
            print(f"| {name} | {learner_name} | {np.mean(aucs):.4f} | {spent:.0f} |")


# ---- Scans


def gradient_scan() -> None:
    """The two scans of PolynomialAucClassifier against a product with the same array, on one core."""
    values = 40_000_000
    print("320 MB of rows, degree 30; GB/s are of the fastest turn.\n")
    print("| features | work | time / `X @ w` | GB/s | ns a row |\n|---|---|---|---|---|")
    for features in (20, 50, 200, 1000):
        rng = np.random.default_rng(features)
        rows = rng.normal(size=(values // features, features))
        labels = (rows[:, 0] > 0).astype(np.int8)
        for name, (ratio, least) in _scans_of(rows, labels).items():
            speed, each = rows.nbytes / least / 1e9, least / len(rows) * 1e9
            print(f"| {features:,} | {name} | {ratio} | {speed:.1f} | {each:.0f} |", flush=True)


def _scans_of(rows: np.ndarray, labels: np.ndarray) -> dict[str, tuple[str, float]]:
    """Return by name the ratio to a product, and the least seconds."""
    rng, degree, features = np.random.default_rng(0), 30, rows.shape[1]
    weights, direction = rng.normal(size=(2, features)) / (5 * np.sqrt(features))
    by = Standardiser(np.zeros(features), np.ones(features), 1.0)
    slopes = Slopes(weights, 0.0, rng.normal(size=degree), rng.normal(size=degree))
    task = LineTask(by, (0, 1), degree, weights, direction, np.array([0.01, 0.1, 0.5]))
    works: dict[str, Callable[[], object]] = {
        "`X @ w`": lambda: rows @ weights,
        "`X.sum()`": rows.sum,
        "gradient scan": lambda: GradientSums(GradientTask(by, (0, 1), slopes)).add(rows, labels, None),
        "line scan": lambda: LineSums(task).add(rows, labels, None),
    }
    with threadpool_limits(1):
        ratios = in_turns(works, "`X @ w`", 5)
        least = {name: min(seconds(work) for _ in range(5)) for name, work in works.items()}
    return {name: (ratios[name], least[name]) for name in works}


SECTIONS: dict[str, Callable[[], None]] = {
    "AUM": aum_and_line_search,
    "PolynomialAuc": polynomial_auc,
    "Scans": gradient_scan,
}


def main(asked: list[str]) -> None:
    for name in asked:
        if name not in SECTIONS:
            sys.exit(f"section {name!r} is not known; there are {', '.join(SECTIONS)}")
    print(with_commit("# Learning what is measured, measured\n"))
    print(f"Written by `python -m benchmarks.learning`. {machine('kernels are compiled before')}")
    print("Ratios are the median over turns; in brackets stand the least and the greatest.\n", flush=True)
    for name in asked or SECTIONS:
        print(f"## {name}\n", flush=True)
        SECTIONS[name]()
        print(flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
