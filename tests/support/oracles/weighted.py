"""Every measure of a weighted window the obvious way: a list of events, loops, and exact fractions.

The definitions are those of the docstrings of `WeightedTree` and `WeightedRanking`; nothing here is shared
with their kernels. Weights are floats, so fractions hold them and their sums exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from scipy import stats

from tests.support.oracles.score_tree import streams

Event = tuple[int, float, float]
"""Label, score, weight."""

EQUAL = 1 - Fraction(2) ** -46
"""Slopes that differ by less are equal, by definition: sums of rounded weights could not tell."""

STEADY = Fraction(2) ** -90
"""Placements that vary by less are all the same, by definition."""


@dataclass
class Block:
    """Neighbouring scores that isotonic calibration pools."""

    n: Fraction
    p: Fraction
    scores: list[float]


class WeightedOracle:
    """The window as a list of (label, score, weight)."""

    def __init__(self, events: list[Event]) -> None:
        self.events = [(label, score + 0.0, Fraction(weight)) for label, score, weight in events]
        self.scores = sorted({score for _, score, _ in self.events})
        self.mass = [dict.fromkeys(self.scores, Fraction(0)) for _ in range(2)]
        for label, score, weight in self.events:
            self.mass[label][score] += weight
        self.n = [self.mass[0][score] for score in self.scores]
        self.p = [self.mass[1][score] for score in self.scores]
        self.negatives, self.positives = sum(self.n, Fraction(0)), sum(self.p, Fraction(0))

    @property
    def has_both(self) -> bool:
        return self.positives > 0 and self.negatives > 0

    @cached_property
    def ranks(self) -> tuple[list[Fraction], list[Fraction]]:
        """Per score: negatives below and half of those tied; positives above and half of those tied."""
        below, above, of_p, of_n = Fraction(0), self.positives, [], []
        for n, p in zip(self.n, self.p, strict=True):
            above -= p
            of_p.append(below + n / 2)
            of_n.append(above + p / 2)
            below += n
        return of_p, of_n

    def auc(self) -> float:
        pairs = sum(p * v for p, v in zip(self.p, self.ranks[0], strict=True))
        return float(pairs / (self.positives * self.negatives))

    def size(self, label: int) -> Fraction:
        """The effective size of a class: squared sum of weights over sum of their squares."""
        weights = [weight for other, _, weight in self.events if other == label]
        return sum(weights) ** 2 / sum(weight**2 for weight in weights)

    def variance(self) -> Fraction:
        """DeLong's, with effective sizes in place of counts: weighted variances of the placements."""
        total = Fraction(0)
        for label, masses, others, ranks in (
            (1, self.p, self.negatives, self.ranks[0]),
            (0, self.n, self.positives, self.ranks[1]),
        ):
            mass, size = sum(masses), self.size(label)
            placements = [rank / others for rank in ranks]
            mean = sum(w * v for w, v in zip(masses, placements, strict=True)) / mass
            spread = sum(w * (v - mean) ** 2 for w, v in zip(masses, placements, strict=True)) / mass
            if spread > STEADY:
                total += spread * size / (size - 1) / size
        return total

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        half_width = stats.norm.ppf((1 + confidence) / 2) * math.sqrt(self.variance())
        return max(0.0, self.auc() - half_width), min(1.0, self.auc() + half_width)

    @cached_property
    def blocks(self) -> list[Block]:
        blocks: list[Block] = []
        for score, n, p in zip(self.scores, self.n, self.p, strict=True):
            blocks.append(Block(n, p, [score]))
            while len(blocks) > 1 and blocks[-2].p * blocks[-1].n >= EQUAL * blocks[-1].p * blocks[-2].n:
                last = blocks.pop()
                blocks[-1] = Block(
                    blocks[-1].n + last.n, blocks[-1].p + last.p, blocks[-1].scores + last.scores
                )
        return blocks

    @cached_property
    def pav(self) -> list[Fraction]:
        return [block.p / (block.n + block.p) for block in self.blocks for _ in block.scores]

    def h(self, cost: tuple[int, int] = (2, 2), prior: float | None = None) -> float:
        """Hand's H by the integrals of the Beta density over each block."""
        scale_n, scale_p = Fraction(1), Fraction(1)
        if prior is not None:
            scale_n, scale_p = (1 - Fraction(prior)) / self.negatives, Fraction(prior) / self.positives
        loss = sum(hand_loss(b.n * scale_n, b.p * scale_p, cost) for b in self.blocks)
        return float(1 - loss / hand_loss(self.negatives * scale_n, self.positives * scale_p, cost))

    def cost_curve_area(self) -> float:
        parts = [(b.n / self.negatives, b.p / self.positives) for b in self.blocks]
        return float(sum(x * y / (x + y) for x, y in parts) / 2)

    @cached_property
    def roc(self) -> list[tuple[Fraction, Fraction]]:
        """(FPR, TPR) by falling threshold, from none to all."""
        points = [(Fraction(0), Fraction(0))]
        for n, p in zip(reversed(self.n), reversed(self.p), strict=True):
            points.append((points[-1][0] + n / self.negatives, points[-1][1] + p / self.positives))
        return points

    def ks(self) -> tuple[float, list[float]]:
        """The greatest TPR - FPR, and the scores that attain it up to rounding, the largest first."""
        advantages = [tpr - fpr for fpr, tpr in self.roc[1:]]
        best = max(advantages)
        reaches = [s for s, value in zip(self.scores[::-1], advantages, strict=True) if value == best]
        nearly = [s for s, value in zip(self.scores[::-1], advantages, strict=True) if best - value < 1e-13]
        return float(best), [reaches[0], *nearly]

    def tpr_at_fpr(self, fpr: float) -> float:
        points = self.roc
        on = [point for point in points if point[0] <= Fraction(fpr) / EQUAL]  # 0.9 is meant to be 9/10
        if len(on) == len(points):
            return 1.0
        (x0, y0), (x1, y1) = on[-1], points[len(on)]
        share = max(Fraction(0), Fraction(fpr) - x0) / (x1 - x0)
        return float(y0 + share * (y1 - y0))

    def fpr_at_tpr(self, tpr: float) -> float:
        points = self.roc
        first = next(i for i, point in enumerate(points) if point[1] >= Fraction(tpr) * EQUAL)
        if first == 0:
            return 0.0
        (x0, y0), (x1, y1) = points[first - 1], points[first]
        share = min(Fraction(1), (Fraction(tpr) - y0) / (y1 - y0))
        return float(x0 + share * (x1 - x0))

    def partial_auc(self, low: float, high: float) -> float:
        """Trapezia between the points of the curve that lie in [low, high]."""
        xs = sorted({Fraction(low), Fraction(high), *(x for x, _ in self.roc if low < x < high)})
        area = Fraction(0)
        for (x0, y0), (x1, y1) in zip(self.roc, self.roc[1:], strict=False):
            inside = [x for x in xs if x0 <= x <= x1]
            if x1 > x0 and len(inside) > 1:
                left, right = inside[0], inside[-1]
                area += (right - left) * (y0 + ((left + right) / 2 - x0) / (x1 - x0) * (y1 - y0))
        return float(area)

    def cost_threshold(self, cost: float) -> float:
        fit = [s for s, value in zip(self.scores, self.pav, strict=True) if value >= Fraction(cost) * EQUAL]
        return min(fit, default=math.inf)

    def calibrated(self, score: float) -> float:
        not_above = sum(s <= score for s in self.scores)
        return float(self.pav[max(0, not_above - 1)])

    def placement(self, label: int, score: float) -> float:
        others = self.mass[1 - label]
        right = sum(
            mass * (Fraction(1, 2) if s == score else int((s < score) == (label == 1)))
            for s, mass in others.items()
        )
        total = sum(others.values())
        return float(right / total) if total else math.nan

    def aum(self) -> float:
        """Area under min(FP, FN) over thresholds: constant between scores. Infinite beyond floats."""
        area = Fraction(0)
        missed, alarms = Fraction(0), self.negatives
        for i in range(len(self.scores) - 1):
            missed += self.p[i]
            alarms -= self.n[i]
            area += min(missed, alarms) * (Fraction(self.scores[i + 1]) - Fraction(self.scores[i]))
        return float(area) if area < Fraction(1.7e308) else math.inf

    def average_precision(self) -> float:
        area = tp = fp = Fraction(0)
        for n, p in zip(reversed(self.n), reversed(self.p), strict=True):
            tp, fp = tp + p, fp + n
            area += p * tp / (tp + fp)
        return float(area / self.positives)

    def calibration_error(self) -> float:
        error = Fraction(0)
        for block in self.blocks:
            masses = [self.mass[0][s] + self.mass[1][s] for s in block.scores]
            scores = sum(m * Fraction(s) for m, s in zip(masses, block.scores, strict=True))
            error += abs(scores - block.p)
        return float(error / (self.negatives + self.positives))

    def brier(self) -> float:
        total = sum(weight for _, _, weight in self.events)
        return float(sum(weight * (Fraction(s) - label) ** 2 for label, s, weight in self.events) / total)

    def log_loss(self) -> float:
        total = sum(weight for _, _, weight in self.events)
        return -math.fsum(
            float(weight / total) * math.log(max(score if label else 1 - score, 2.0**-52))
            for label, score, weight in self.events
        )


def hand_loss(n: Fraction, p: Fraction, cost: tuple[int, int]) -> Fraction:
    """n G0(c) + p G1(c), G the partial first moments of the cost density."""
    c = p / (n + p)
    q = 1 - c
    if cost == (2, 2):
        return n * (2 * c**3 - 3 * c**4 / 2) + p * (2 * q**3 - 3 * q**4 / 2)
    assert cost == (1, 1)
    return n * c**2 / 2 + p * q**2 / 2


def weightings(events: int, seed: int) -> Iterator[tuple[str, np.ndarray]]:
    """Weights, ordinary and hostile: (name, weights)."""
    rng = np.random.default_rng(seed)
    t = np.arange(events)
    yield "ones", np.ones(events)
    yield "tenths", np.full(events, 0.1)
    yield "exponential", rng.exponential(size=events) + 1e-9
    yield "fading", np.exp2(t / 5.0)
    yield "a giant comes and goes", np.where(t % 23 == 11, 1e30, 1.0 + rng.random(events))
    yield "from 1e-300 to 1e300", 10.0 ** rng.uniform(-300, 300, events)


def finite_streams(events: int, seed: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Streams of labels and scores, without infinite scores."""
    for name, labels, scores in streams(events, seed):
        yield name, labels, np.clip(scores, -1e300, 1e300)
