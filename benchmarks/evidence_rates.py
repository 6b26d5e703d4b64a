"""Alarms with a proven rate: how often an e-detector is wrong at the edge of its promise, and what it costs.

`alert_rates` writes the tables into docs/benchmarks/alert_rates.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
import rocsteady as rs
from rocsteady.core.events.records import EndOfInput
from rocsteady.core.table.table import EvaluatorTable
from scipy.stats import norm

BOUND = 0.8
PREVALENCES = (0.5, 0.1, 0.01)
LEVELS = {1_000: 1_000, 10_000: 2_000}
"""1/alpha in blocks, and the number of runs."""

LONGEST = 20
"""A run ends after so many times 1/alpha blocks."""

YEAR_ROWS, ROW_EVENTS, MODELS = 8_760, 100, 1_000
LOWER, HIGHER = 0.83, 0.85

PERIOD_EVENTS, MARGIN = 4_000, 0.02

Scores = Callable[[np.random.Generator, Any, float], Any]
"""Scores of events with these labels, whose AUC is a number."""


def normal(rng: np.random.Generator, labels: Any, auc: float) -> Any:
    return rng.normal(size=len(labels)) + math.sqrt(2) * norm.ppf(auc) * labels


def uniform(rng: np.random.Generator, labels: Any, auc: float) -> Any:
    """The greatest of `odds` uniform numbers beats one with chance odds / (odds + 1)."""
    odds = auc / (1 - auc)
    return rng.random(len(labels)) ** np.where(labels == 1, 1 / odds, 1.0)


def cauchy(rng: np.random.Generator, labels: Any, auc: float) -> Any:
    """The difference of two Cauchy numbers is Cauchy, of scale 2."""
    return rng.standard_cauchy(len(labels)) + 2 * math.tan(math.pi * (auc - 0.5)) * labels


def tied(rng: np.random.Generator, labels: Any, auc: float) -> Any:
    """Scores 0 and 1: half of the pairs, or nearly, are ties."""
    return (rng.random(len(labels)) < np.where(labels == 1, auc, 1 - auc)).astype(float)


KINDS: dict[str, Scores] = {
    "normal": normal,
    "uniform, to a power": uniform,
    "Cauchy": cauchy,
    "0 and 1, so ties": tied,
}


def blocks_to_alarm(scores: Scores, prevalence: float, level: int, seed: int) -> int:
    rng = np.random.default_rng(seed)
    return blocks_of(rng, rs.EvidenceBelow(BOUND), scores, prevalence, level)


def blocks_of(
    rng: np.random.Generator, detector: rs.EvidenceBelow, scores: Scores, prevalence: float, level: int
) -> int:
    """Blocks until the alarm of a detector, where the AUC is its bound."""
    auc, most = detector.bound or 0.0, LONGEST * level
    chunk = round(4 / min(prevalence, 1 - prevalence)) * 512
    times = np.full(chunk, PERIOD_EVENTS * 1_000_000)
    while detector.full_blocks < most:
        before = detector.full_blocks
        labels = (rng.random(chunk) < prevalence).astype(np.int8)
        evidence = detector.follow(labels, scores(rng, labels, auc), times).evidence
        above = np.flatnonzero(evidence >= math.log(level))
        if len(above):
            return min(before + int(above[0]) + 1, most)
    return most


def learnt(rng: np.random.Generator, scores: Scores, prevalence: float) -> rs.EvidenceBelow:
    """A detector whose bound is that of a period in which the AUC was `HIGHER`, an event a second."""
    end = np.datetime64(PERIOD_EVENTS, "s")
    detector = rs.EvidenceBelow(f"1970-01-01..{end} less {MARGIN}")
    labels = np.append(rng.random(PERIOD_EVENTS) < prevalence, False).astype(np.int8)
    detector.follow(labels, scores(rng, labels, HIGHER), np.arange(PERIOD_EVENTS + 1) * 1_000_000)
    detector.restart()
    return detector


def cell(times: list[float]) -> str:
    """The mean of times, and its lower bound."""
    error = float(np.std(times, ddof=1)) / math.sqrt(len(times))
    return f"{np.mean(times):.2f} (at least {np.mean(times) - 1.645 * error:.2f})"


def at_the_edge(share: float) -> str:
    """A line for each kind of scores and prevalence: the mean time over 1/alpha, and its lower bound."""
    head = ["| scores | positive | " + " | ".join(f"1/alpha = {level:,}" for level in LEVELS) + " |"]
    lines = [*head, "| --- " * (len(LEVELS) + 2) + "|"]
    for name, scores in KINDS.items():
        for prevalence in PREVALENCES:
            cells = []
            for level, runs in LEVELS.items():
                if share < 1 and prevalence < 0.1 and level > 1_000:  # a tenth of a second a run
                    cells.append("left out")
                    continue
                count = max(2, round(runs * share))
                cells.append(
                    cell([blocks_to_alarm(scores, prevalence, level, seed) / level for seed in range(count)])
                )
            lines.append(f"| {name} | {prevalence:.0%} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    return "\n".join(lines)


def behind_a_period(share: float) -> str:
    """A line for each kind of scores: bounds that periods gave, and the mean time over 1/alpha at them."""
    level, runs = next(iter(LEVELS.items()))
    lines = [
        f"| scores | positive | bounds, 5% to 95% | too high | 1/alpha = {level:,} |",
        "| --- " * 5 + "|",
    ]
    for name, scores in KINDS.items():
        for prevalence in (0.3, 0.05):
            bounds, times = [], []
            for seed in range(max(2, round(runs * share))):
                rng = np.random.default_rng([9, seed])
                detector = learnt(rng, scores, prevalence)
                bounds.append(detector.bound or 0.0)
                times.append(blocks_of(rng, detector, scores, prevalence, level) / level)
            low, high = np.quantile(bounds, [0.05, 0.95])
            wrong = np.mean(np.array(bounds) > HIGHER - MARGIN)
            lines.append(
                f"| {name} | {prevalence:.0%} | {low:.3f} to {high:.3f} | {wrong:.1%} | {cell(times)} |"
            )
            print(lines[-1], flush=True)
    return "\n".join(lines)


def fleet(share: float) -> str:
    """How many of the still models have an alarm in a year, at several levels."""
    models = max(1, round(MODELS * share))
    levels, alarms = (1e4, 1e5, 1e6), np.zeros(3)
    separation, blocks = math.sqrt(2) * norm.ppf(HIGHER), 0
    for seed in range(models):
        rng, detector = np.random.default_rng([7, seed]), rs.EvidenceBelow(LOWER)
        events = YEAR_ROWS * ROW_EVENTS
        labels = (rng.random(events) < 0.3).astype(np.int8)
        found = detector.follow(labels, rng.standard_normal(events) + separation * labels)
        alarms += [np.any(found.evidence >= math.log(level)) for level in levels]
        blocks += detector.full_blocks
    said = ", ".join(f"{int(n)} at {level:,.0f} blocks" for n, level in zip(alarms, levels, strict=True))
    return f"Of {models:,} models, {blocks / 1e6:.1f} million blocks in all, so many had an alarm: {said}."


def state_sizes() -> str:
    lines = ["| positive | events of a block | bytes of state, mean | ns an event |", "| --- " * 4 + "|"]
    for prevalence in (0.5, 0.3, 0.05, 0.01):
        rng, detector, sizes = np.random.default_rng(1), rs.EvidenceBelow(BOUND), []
        for _ in range(200):
            labels = (rng.random(1_001) < prevalence).astype(np.int8)
            detector.follow(labels, normal(rng, labels, BOUND))
            sizes.append(detector.snapshot_bytes())
        labels = (rng.random(1_000_000) < prevalence).astype(np.int8)
        scores = normal(rng, labels, BOUND)
        begin = perf_counter()
        detector.follow(labels, scores)
        cost = (perf_counter() - begin) * 1e3
        lines.append(
            f"| {prevalence:.0%} | {detector.block_events:.0f} | {np.mean(sizes):.0f} | {cost:.0f} |"
        )
    return "\n".join(lines)


def table_cost(models: int, window: int, below: float | None, events: int = 1_000_000) -> float:
    """Microseconds an event of a table of many models."""
    rng = np.random.default_rng(2)
    names = rs.TextColumn(rng.integers(0, models, events).astype(np.int32), tuple(map(str, range(models))))
    labels = (rng.random(events) < 0.3).astype(np.int8)
    batch = rs.EventBatch(names, normal(rng, labels, BOUND), labels)
    evaluator = rs.EvaluatorSettings(
        window=rs.LastEvents(window), every=rs.EveryEvents(max(1, window // 10)), evidence_below=below
    )
    records = [batch.take(np.arange(at, at + 50_000)).pack() for at in range(0, events, 50_000)]
    for _ in range(2):  # the first time compiles kernels
        table, begin = EvaluatorTable(rs.TableSettings(evaluator)), perf_counter()
        for record in records:
            table.apply(record)
        table.apply(EndOfInput().pack())
    return (perf_counter() - begin) * 1e6 / events


def costs() -> str:
    lines = ["| table | without evidence | with evidence |", "| --- | --- | --- |"]
    for models, window in ((1, 10_000), (100, 10_000), (1_000, 1_000), (20_000, 50)):
        cells = [f"{table_cost(models, window, below):.2f}" for below in (None, BOUND)]
        lines.append(f"| {models:,} models, `last:{window}` | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def section(share: float) -> str:
    counts = [f"{max(2, round(count * share)):,}" for count in LEVELS.values()]
    return TEXT.format(
        runs=" and ".join(counts),
        count=counts[0],
        edge=at_the_edge(share),
        period=behind_a_period(share),
        fleet=fleet(share),
        sizes=state_sizes(),
        costs=costs(),
    )


TEXT = f"""## Alarms with a proven rate

`auc surely < {LOWER} at 1e6` is a rule on the evidence of a row. [Alerts](../how-to/alerts.md) has its
promise. Its false alarms and delays stand in the tables above, beside those of the other rules.

**At the edge of the promise.** The AUC is {BOUND} and so is the bound. The table has the blocks to the first
alarm, as a multiple of 1/alpha: the mean of {{runs}} runs. The promise is 1 or more. In brackets stands the
lower end of a one-sided 95% interval. A run ends after {LONGEST} times 1/alpha blocks, so the true means are
larger.

{{edge}}

**At a bound that a period gave.** The AUC is {HIGHER} in a period of {PERIOD_EVENTS:,} events, and the\
 bound is {MARGIN} less
than the lower end of the period's AUC. Behind the period, the AUC is that bound: the promise is conditional
on the bound that came out. A line has {{count}} runs. `too high` is the share of periods whose bound is above
{HIGHER - MARGIN:.2f}; the promise is 2.5% at most.

{{period}}

**A year of 1,000 models.** The AUC is {HIGHER}, the bound {LOWER}, 30% are positive, an hour has {ROW_EVENTS}
events. {{fleet}} With a row an hour, `auc drops against 50 rows for 10 rows` has some 1,200 false alarms in
that year.

**State and cost** of the detector alone, in large batches, m = 4:

{{sizes}}

**Cost in a table of models**, microseconds of one core an event, with ten rows a window. Windows with
evidence are not kept in shared arrays, so many small windows cost more:

{{costs}}
"""
