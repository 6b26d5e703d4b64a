"""How often the intervals and tests of roll-up rows hold what they promise.

    python -m benchmarks.roll_ups [RUNS]         writes docs/benchmarks/roll_ups.md

Scores of each model are those of two normal distributions. All models of a fleet have one AUC, so that an
interval must hold that AUC, and a test that finds a difference is wrong.
"""

from __future__ import annotations

import math
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rocsteady.core.fleet.formulas import roll_up_numbers
from rocsteady.core.rows.columns import reasons_by_measure
from scipy.stats import norm, rankdata

from .pages import with_commit

RUNS = 1_000
PAGE = Path("docs/benchmarks/roll_ups.md")
MEANS = ("auc_mean", "auc_random")
SETTINGS = [
    (auc, members, positives)
    for auc in (0.75, 0.9)
    for members in (5, 30)
    for positives in (10, 30, 100, 300, 1_000)
]
HEAD = ("AUC", "members", "positives of each", *MEANS, "remark", "worst gap", "Q", "named", "remark")
SHARED = ((20, 0.0), (20, 0.5), (20, 0.95))
NEGATIVES = 3

Floats = npt.NDArray[np.float64]


def measured(positives: Floats, negatives: Floats) -> tuple[Floats, Floats]:
    """Return AUC and DeLong's variance for each row of scores."""
    p, n = positives.shape[1], negatives.shape[1]
    both = rankdata(np.concatenate([positives, negatives], axis=1), axis=1)
    below = (both[:, :p] - rankdata(positives, axis=1)) / n
    above = 1 - (both[:, p:] - rankdata(negatives, axis=1)) / p
    return below.mean(1), below.var(1, ddof=1) / p + above.var(1, ddof=1) / n


def fleets(
    runs: int, members: int, p: int, auc: float, shared: float = 0.0
) -> Iterator[tuple[Floats, Floats]]:
    """Yield the AUCs and variances of fleets; `shared` is the correlation of scores over the same events."""
    rng = np.random.default_rng([members, p, round(100 * auc), round(100 * shared)])
    for _ in range(runs):
        scores = []
        for size, mean in ((p, norm.ppf(auc) * math.sqrt(2)), (NEGATIVES * p, 0.0)):
            own = math.sqrt(1 - shared) * rng.normal(size=(members, size))
            scores.append(mean + math.sqrt(shared) * rng.normal(size=size) + own)
        yield measured(*scores)


def row_of(auc: Floats, variance: Floats, p: int, dependent: bool = False) -> dict[str, Any]:
    """Return the numbers of a roll-up row."""
    names = [f"{place:03}" for place in range(len(auc))]
    counts = np.full(len(auc), float(p)), np.full(len(auc), float(NEGATIVES * p))
    return roll_up_numbers(names, auc, variance, *counts, 0.95, dependent=dependent)


def share(count: int, runs: int) -> str:
    return f"{count / runs:.3f}"


def one_setting(runs: int, auc: float, members: int, p: int) -> str:
    """Return a line of the table of a setting."""
    found: Counter[str] = Counter()
    for pair in fleets(runs, members, p, auc):
        row = row_of(*pair, p)
        for name in MEANS:
            found[name] += row[f"{name}_low"] <= auc <= row[f"{name}_high"]
        found["q"] += row["heterogeneity_p"] < 0.05
        found["named"] += row["members_below"] + row["members_above"] > 0
        found["gap"] += row["worst_gap_low"] <= 0 <= row["worst_gap_high"]
        why = reasons_by_measure(row["reason"])
        found["weights"] += "auc_random" in why
        found["few"] += "worst_p" in why
    cells = [str(auc), str(members), f"{p:,}", *(share(found[name], runs) for name in MEANS)]
    cells += [share(found[name], runs) for name in ("weights", "gap", "q", "named", "few")]
    return f"| {' | '.join(cells)} |"


def one_dependence(runs: int, members: int, shared: float) -> str:
    """Return a line of the table of members that score the same events."""
    auc, p, held = 0.75, 100, Counter[str]()
    widths = {"plain": 0.0, "bound": 0.0}
    for pair in fleets(runs, members, p, auc, shared):
        for name, dependent in (("plain", False), ("bound", True)):
            row = row_of(*pair, p, dependent)
            held[name] += row["auc_mean_low"] <= auc <= row["auc_mean_high"]
            widths[name] += (row["auc_mean_high"] - row["auc_mean_low"]) / runs
    cells = [f"{shared:g}", *(f"{share(held[name], runs)} ({widths[name]:.3f})" for name in widths)]
    return f"| {' | '.join(cells)} |"


def cost() -> tuple[float, float]:
    """Return the milliseconds of a roll-up row of 1,000 and of 10,000 members."""
    found = []
    for members in (1_000, 10_000):
        rng = np.random.default_rng(1)
        auc, variance = rng.uniform(0.7, 0.9, members), rng.uniform(1e-4, 1e-3, members)
        began = time.process_time()
        for _ in range(20):
            row_of(auc, variance, 300)
        found.append(1e3 * (time.process_time() - began) / 20)
    return found[0], found[1]


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    small, large = cost()
    text = TEXT.format(
        runs=runs,
        head=f"| {' | '.join(HEAD)} |",
        error=f"{math.sqrt(0.95 * 0.05 / runs):.3f}",
        table="\n".join(one_setting(runs, *setting) for setting in SETTINGS),
        dependence="\n".join(one_dependence(runs, *setting) for setting in SHARED),
        small=f"{small:.1f}",
        large=f"{large:.1f}",
    )
    PAGE.write_text(with_commit(text))


TEXT = """# What the intervals and tests of roll-up rows hold

`python -m benchmarks.roll_ups`: {runs:,} fleets for each line; the standard error of a share of 0.95 is
{error}. Scores are those of two normal distributions, with three negatives for each positive. All members of
a fleet have the same AUC. So intervals at 95% should hold that AUC in 0.95 of the fleets, and a test at 5%
should find something in 0.05 of them at most.

## Independent members

The columns `auc_mean` and `auc_random` say in which share of the fleets the interval holds the AUC, and
`worst gap` in which share the interval of the worst member's gap holds 0. `Q` is the share with
`heterogeneity_p` below 0.05, and `named` the share in which `members_below` or `members_above` is not 0.
`remark` is the share of rows whose `reason` tells to read the columns before it with care.

{head}
|---|---|---|---|---|---|---|---|---|---|
{table}

`auc_mean` holds its level from 10 positives on, to a few hundredths; all members have as many events, so
`auc_by_events` is equal to it. `auc_random` does not: a member that is high by chance has a smaller variance,
and so more weight. Its bias does not shrink with the number of members, and its interval does. So it needs
larger windows for larger fleets, and its remark follows both. The tests find a difference in 0.03 to 0.08 of
the fleets from 300 positives of each member on. With 100 positives, it is up to 0.1 in a fleet of 30.

## Members that score the same events

{members} members of AUC 0.75 with 100 positives each; `shared` is the correlation of the scores of two
models. A cell has the share of fleets in which the interval of `auc_mean` holds the AUC, and in brackets the
mean width of the interval.

| shared | as if independent | `--dependent` |
|---|---|---|
{dependence}

The bound holds for any dependence, so it is wide where members are nearly independent.

## Cost

A roll-up row of 1,000 members takes {small} ms of a processor, and one of 10,000 members {large} ms.
""".replace("{members}", str(SHARED[0][0]))

if __name__ == "__main__":
    main()
