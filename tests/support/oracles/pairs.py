"""Two models over the same instances, slow and obvious: windows are lists, figures are their definitions.

`delong` has the formulas of the R package pROC (Robin et al. 2011: `roc.test` with method="delong" and
paired=TRUE, functions delongPaired.test and delongPlacements), in fractions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

from scipy.special import lambertw
from scipy.stats import norm


class Instance(NamedTuple):
    """An instance; the score of a model that did not score it is None."""

    label: int
    score: float | None
    against: float | None
    time: int | None = None


def placements(labels, scores, weights):
    """V10 of each positive and V01 of each negative: the share of the other class that it ranks right."""
    of_positives, of_negatives = [], []
    for label, score in zip(labels, scores, strict=True):
        total = right = Fraction(0)
        for other, theirs, weight in zip(labels, scores, weights, strict=True):
            if other == label:
                continue
            total += weight
            difference = score - theirs if label else theirs - score
            right += weight * (Fraction(1, 2) if difference == 0 else int(difference > 0))
        (of_positives if label else of_negatives).append(right / total if total else None)
    return of_positives, of_negatives


def delong(labels, scores, against, weights=None):
    """AUC A, AUC B, and the variance of their difference (None: fewer than 2 of a class); None: one class.

    With X and Y the placements of the positives (negatives) under both models, S10 (S01) their covariance
    matrix with m - 1 (n - 1) in the denominator and S = S10 / m + S01 / n, the variance of the contrast
    (1, -1) is S[0][0] + S[1][1] - 2 S[0][1].
    """
    weights = [Fraction(1)] * len(labels) if weights is None else [Fraction(each) for each in weights]
    if len(set(labels)) < 2:
        return None
    both = [placements(labels, column, weights) for column in (scores, against)]
    aucs, s = [], [[Fraction(0)] * 2 for _ in range(2)]
    enough = True
    for side in (0, 1):  # positives, then negatives
        own = [weight for label, weight in zip(labels, weights, strict=True) if label == 1 - side]
        mass, size = sum(own), sum(own) ** 2 / sum(weight**2 for weight in own)
        enough &= size >= 2 - Fraction(1, 10**9)
        means = [
            sum(weight * value for weight, value in zip(own, model[side], strict=True)) / mass
            for model in both
        ]
        aucs = aucs or means
        for i in (0, 1):
            for j in (0, 1):
                terms = zip(own, both[i][side], both[j][side], strict=True)
                spread = sum(w * (x - means[i]) * (y - means[j]) for w, x, y in terms) / mass
                s[i][j] += spread / (size - 1) if enough else 0
    return aucs[0], aucs[1], s[0][0] + s[1][1] - 2 * s[0][1] if enough else None


@dataclass
class PairOracle:
    """Rows of a pair. `last`, `duration`, `half_life` (and whether that is one of time) describe the window.

    every, grid  instances between rows; microseconds between grid points
    """

    last: int | None = None
    duration: int | None = None
    half_life: int | None = None
    by_time: bool = False
    every: int | None = None
    grid: int | None = None
    alpha: float = 0.05
    anytime_at: int = 10_000
    exact: int = 10_000
    held: list[tuple[int, Instance]] = field(default_factory=list)
    all: list[Instance] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    seq: int = 0
    only_model: int = 0
    only_against: int = 0
    greatest: int | None = None
    clock: int | None = None
    last_due: int | None = None
    changed: bool = False
    low: float = -1.0
    high: float = 1.0
    empty: bool = False
    any_look: bool = False

    def take(self, instance: Instance) -> None:
        """Take in one instance; rows on a grid that fell due before it are made first."""
        if self.grid and instance.time is not None:
            self.go_on_to(instance.time)
        if instance.score is None:
            self.only_against += 1
        elif instance.against is None:
            self.only_model += 1
        else:
            self._enter(instance)

    def _enter(self, instance: Instance) -> None:
        self.seq += 1
        self.all.append(instance)
        time = instance.time
        if time is not None:
            self.greatest = time if self.greatest is None else max(self.greatest, time)
            self.clock = time if self.clock is None else max(self.clock, time)
        if self.duration is None or time > self.greatest - self.duration:
            self.held.append((self.seq, instance))
            self.changed = True
            self._let_go(self.greatest)
        if self.every and self.seq % self.every == 0:
            self.row(None)

    def _let_go(self, now: int | None) -> None:
        if self.duration is not None:
            self.held = [each for each in self.held if each[1].time > now - self.duration]
        if self.last is not None:
            self.held = self.held[-self.last :]

    def go_on_to(self, time: int) -> None:
        """Make the rows of the grid points before a time."""
        while self.seq and self.clock is not None and time > self.clock:
            if self.changed:
                due = -(-self.clock // self.grid) * self.grid
            elif self.duration is not None and self.held:
                leaves = min(each.time for _, each in self.held) + self.duration
                due = -(-leaves // self.grid) * self.grid
            else:
                return
            if self.last_due is not None:
                due = max(due, self.last_due + self.grid)
            if due >= time:
                return
            self.clock = max(self.clock, due)
            self._let_go(due)
            self.row(due)
            self.last_due = due

    def window(self) -> tuple[list[Instance], list[float] | None]:
        """The instances of the window, and their weights if it fades."""
        if self.half_life is None:
            return [each for _, each in self.held], None
        ticks = [each.time if self.by_time else seq for seq, each in self.held]
        newest = {
            label: max(
                (t for t, (_, each) in zip(ticks, self.held, strict=True) if each.label == label), default=0
            )
            for label in (0, 1)
        }
        kept, weights = [], []
        for tick, (_, each) in zip(ticks, self.held, strict=True):
            age = newest[each.label] - tick
            if age <= 64 * self.half_life:
                kept.append(each)
                weights.append(2.0 ** (-age / self.half_life))
        return kept, weights

    def row(self, due: int | None) -> None:
        """Add a row."""
        window, weights = self.window()
        found = delong(
            [each.label for each in window], [each.score for each in window],
            [each.against for each in window], weights,
        )  # fmt: skip
        low = high = p = None
        if found is not None and found[2] is not None and found[2] > 0:
            error = math.sqrt(found[2])
            difference = float(found[0] - found[1])
            z = norm.ppf(1 - self.alpha / 2)
            low, high = max(-1, difference - z * error), min(1, difference + z * error)
            p = 2 * norm.sf(abs(difference) / error)
        elif found is not None and found[2] == 0 and found[0] == found[1]:
            p = 1.0
        self._look()
        self.changed = False
        self.rows.append({
            "row": len(self.rows), "seq": self.seq, "due": due, "time": self.greatest,
            "window_events": len(window),
            "auc": None if found is None else float(found[0]),
            "auc_against": None if found is None else float(found[1]),
            "difference": None if found is None else float(found[0] - found[1]),
            "difference_low": low, "difference_high": high, "p": p,
            "anytime_low": self.low if self.any_look and not self.empty else None,
            "anytime_high": self.high if self.any_look and not self.empty else None,
            "verdict": "contradicted" if self.empty else "better" if self.low > 0
            else "worse" if self.high < 0 else "undecided",
            "only_model": self.only_model, "only_against": self.only_against,
        })  # fmt: skip

    def blocks(self) -> list[list[Instance]]:
        """All instances so far in blocks; the last one may be open. Of a class a block keeps the last."""
        blocks, block = [], []
        for each in self.all:
            block.append(each)
            positives = sum(one.label for one in block)
            if len(block) >= self.exact and min(positives, len(block) - positives) >= 30:
                blocks.append(block)
                block = []
        blocks.append(block)
        kept = []
        for one in blocks:
            last = {label: [e for e in one if e.label == label][-self.exact :] for label in (0, 1)}
            kept.append(last[1] + last[0])
        return kept

    def _look(self) -> None:
        weights = differences = variances = 0.0
        positives = negatives = 0
        for block in self.blocks():
            p = sum(each.label for each in block)
            n = len(block) - p
            if min(p, n) < 30:
                continue
            a, b, variance = delong(*([getattr(each, name) for each in block]
                                      for name in ("label", "score", "against")))  # fmt: skip
            w = p * n / (p + n)
            weights, positives, negatives = weights + w, positives + p, negatives + n
            differences, variances = differences + w * float(a - b), variances + w * w * float(variance)
        if not weights or self.empty:
            return
        self.any_look = True
        t = positives + negatives
        added = max(2, math.log(self.alpha) * -2 / 3)
        error = math.sqrt(variances / weights**2 + added / positives**2 + added / negatives**2)
        half = error * math.sqrt(best_width_squared(t, self.alpha, self.anytime_at))
        middle = differences / weights
        self.low, self.high = max(self.low, middle - half), min(self.high, middle + half)
        self.empty = self.low > self.high


def width_squared(t: float, rho_squared: float, alpha: float) -> float:
    """The square of the sequence's half width in standard errors after t instances (Waudby-Smith 2024)."""
    return 2 * (t * rho_squared + 1) / (t * rho_squared) * math.log(math.sqrt(t * rho_squared + 1) / alpha)


def best_width_squared(t: int, alpha: float, at: int) -> float:
    """The same with the best rho for `at` instances: at rho^2 + 1 = -W(-alpha^2 / e), the lower branch."""
    best = -float(lambertw(-(alpha**2) / math.e, -1).real)
    return width_squared(t, (best - 1) / at, alpha)
