"""Every measure of a window the obvious way: loops over entries, whole numbers and fractions.

The definitions are those of the docstrings of `ScoreTree`; nothing here is shared with its kernels.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

Event = tuple[int, float]


class Oracle:
    """The window as a multiset of (label, score)."""

    def __init__(self, events: list[Event]) -> None:
        positives = Counter(score + 0.0 for label, score in events if label == 1)
        negatives = Counter(score + 0.0 for label, score in events if label == 0)
        self.scores = sorted(positives | negatives)
        self.p = [positives[score] for score in self.scores]
        self.n = [negatives[score] for score in self.scores]
        self.positives, self.negatives = sum(self.p), sum(self.n)
        self.blocks = self._pool_adjacent_violators()

    @property
    def has_both(self) -> bool:
        return self.positives > 0 and self.negatives > 0

    def pairs2(self) -> int:
        """Twice the pairs of a negative below a positive, ties half."""
        return sum(p * rank2 for p, (rank2, _) in zip(self.p, self.ranks2(), strict=True))

    def squares(self) -> tuple[int, int]:
        ranks2 = self.ranks2()
        return (
            sum(p * of_p**2 for p, (of_p, _) in zip(self.p, ranks2, strict=True)),
            sum(n * of_n**2 for n, (_, of_n) in zip(self.n, ranks2, strict=True)),
        )

    def ranks2(self) -> list[tuple[int, int]]:
        """Per entry: twice the negatives below, ties half; twice the positives above, ties half."""
        below, above, ranks = 0, self.positives, []
        for p, n in zip(self.p, self.n, strict=True):
            above -= p
            ranks.append((2 * below + n, 2 * above + p))
            below += n
        return ranks

    def _pool_adjacent_violators(self) -> list[tuple[int, int, int]]:
        """(events, positives, entries) of each block; neighbours of equal mean are one block."""
        blocks: list[tuple[int, int, int]] = []
        for p, n in zip(self.p, self.n, strict=True):
            blocks.append((p + n, p, 1))
            while len(blocks) > 1 and blocks[-2][1] * blocks[-1][0] >= blocks[-1][1] * blocks[-2][0]:
                last = blocks.pop()
                blocks[-1] = tuple(a + b for a, b in zip(blocks[-1], last, strict=True))  # type: ignore
        return blocks

    def hull(self) -> tuple[list[int], list[int]]:
        x, y = [0], [0]
        for events, positives, _ in self.blocks:
            x.append(x[-1] + events)
            y.append(y[-1] + positives)
        return x, y

    def hull_subset(self, growth: float) -> tuple[list[int], list[int], float]:
        """The hull, each vertex kept the last that is near the one before; and the growth that needs."""
        x, y = self.hull()
        alarms = [self.negatives - (a - b) for a, b in zip(x, y, strict=True)]
        kept, needed = [0], Fraction(1)
        while kept[-1] < len(x) - 1:
            u = kept[-1]
            near = [
                v
                for v in range(u + 2, len(x))
                if alarms[u] <= Fraction(growth) * alarms[v] or y[v] <= Fraction(growth) * y[u]
            ]
            kept.append(max(near, default=u + 1))
            if near:
                v = kept[-1]
                ratios = [Fraction(a, b) for a, b in ((alarms[u], alarms[v]), (y[v], y[u])) if b]
                needed = max(needed, min(ratios))
        return [x[i] for i in kept], [y[i] for i in kept], float(needed)

    def pav(self) -> list[float]:
        """The calibrated value of every entry."""
        return [p / events for events, p, entries in self.blocks for _ in range(entries)]

    def loss(self, scale: float, curvature: float) -> int:
        """The loss of the hull in the tree's fixed point: the definition of its last bits."""
        return sum(edge_loss(e - p, p, scale, curvature) for e, p, _ in self.blocks)

    def h(self, cost: tuple[int, int]) -> float:
        """The H-measure by the formula of Hand, in floating point."""
        loss = sum(hand_loss(e - p, p, cost) for e, p, _ in self.blocks)
        return 1.0 - loss / hand_loss(self.negatives, self.positives, cost)

    def roc(self) -> list[tuple[int, int]]:
        """(false, true positives) by falling threshold, from none to all."""
        points = [(0, 0)]
        for p, n in zip(reversed(self.p), reversed(self.n), strict=True):
            points.append((points[-1][0] + n, points[-1][1] + p))
        return points

    def aum(self) -> float:
        """Area under min(FP, FN), which is constant between entries; in fractions, rounded once."""
        area, infinite = Fraction(0), False
        below, above = 0, self.negatives
        for i in range(len(self.scores) - 1):
            below += self.p[i]
            above -= self.n[i]
            ends = self.scores[i : i + 2]
            if min(below, above) == 0:
                continue
            if all(map(math.isfinite, ends)):
                area += min(below, above) * (Fraction(ends[1]) - Fraction(ends[0]))
            else:
                infinite = True
        return math.inf if infinite else nearest(area)

    def brier(self) -> float:
        """Mean squared error, of squares as floats have them."""
        return self._mean([(s - y) * (s - y) for s, y in self._events()])

    def log_loss(self) -> float:
        """Mean of -ln of what was given to what happened, clipped at 2^-52."""
        return self._mean([-math.log(max(s if y else 1.0 - s, 2.0**-52)) for s, y in self._events()])

    def _events(self) -> list[tuple[float, int]]:
        counts = zip(self.scores, self.p, self.n, strict=True)
        return [(s, y) for s, p, n in counts for y in [1] * p + [0] * n]

    def _mean(self, terms: list[float]) -> float:
        finite = [term for term in terms if math.isfinite(term)]
        if len(finite) < len(terms):
            return sum(term for term in terms if not math.isfinite(term))
        return nearest(sum(map(Fraction, terms), Fraction(0))) / len(terms)

    def ks(self) -> tuple[float, float]:
        best, threshold = -1, math.nan
        for (fp, tp), score in zip(self.roc()[1:], reversed(self.scores), strict=True):
            advantage = tp * self.negatives - fp * self.positives
            if advantage > best:  # falling scores: the first is the largest
                best, threshold = advantage, score
        assert best >= 0
        return best / (self.positives * self.negatives), threshold

    def tpr_at_fpr(self, fpr: float) -> float:
        points = self.roc()
        on = [tp for fp, tp in points if fp / self.negatives <= fpr]
        fp0, tp0 = points[len(on) - 1]
        if len(on) == len(points):
            return tp0 / self.positives
        fp1, tp1 = points[len(on)]
        share = max(Fraction(0), Fraction(fpr) * self.negatives - fp0) / (fp1 - fp0)
        return float((tp0 + share * (tp1 - tp0)) / self.positives)

    def fpr_at_tpr(self, tpr: float) -> float:
        points = self.roc()
        first = next(i for i, (_, tp) in enumerate(points) if tp / self.positives >= tpr)
        if first == 0:
            return 0.0
        (fp0, tp0), (fp1, tp1) = points[first - 1], points[first]
        share = min(Fraction(1), (Fraction(tpr) * self.positives - tp0) / (tp1 - tp0))
        return float((fp0 + share * (fp1 - fp0)) / self.negatives)

    def cost_threshold(self, cost: float) -> float:
        fit = [s for s, value in zip(self.scores, self.pav(), strict=True) if value >= cost]
        return min(fit, default=math.inf)

    def calibrated(self, score: float) -> float:
        not_above = sum(s <= score for s in self.scores)
        return self.pav()[max(0, not_above - 1)]

    def placement(self, label: int, score: float) -> float:
        mine = [
            n * (1.0 if s < score else 0.5 if s == score else 0.0)
            if label
            else p * (1.0 if s > score else 0.5 if s == score else 0.0)
            for s, p, n in zip(self.scores, self.p, self.n, strict=True)
        ]
        other = self.negatives if label else self.positives
        return sum(mine) / other if other else math.nan

    def ordered(self) -> Iterator[float]:
        for s, p, n in zip(self.scores, self.p, self.n, strict=True):
            yield from [s] * (p + n)


def nearest(number: Fraction) -> float:
    """The double nearest to a fraction, infinite beyond the greatest."""
    try:
        return number.numerator / number.denominator
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def edge_loss(dn: int, dp: int, scale: float, curvature: float) -> int:
    inverse = 1.0 / (dn + dp)
    w = dp * dn * inverse
    return int(0.5 * w * (1.0 + curvature * w * inverse) * scale)


def hand_loss(dn: int, dp: int, cost: tuple[int, int]) -> float:
    """dn G0(c) + dp G1(c), G the partial first moments of the cost density."""
    c = dp / (dn + dp)
    q = 1.0 - c
    if cost == (2, 2):
        return dn * (2 * c**3 - 1.5 * c**4) + dp * (2 * q**3 - 1.5 * q**4)
    assert cost == (1, 1)
    return dn * c**2 / 2 + dp * q**2 / 2


def streams(events: int, seed: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Streams of labels and scores, ordinary and hostile: (name, labels, scores)."""
    rng = np.random.default_rng(seed)
    t = np.arange(events)
    y = (rng.random(events) < 0.3).astype(np.int8)
    noise = rng.normal(size=events)
    yield "random", y, noise + y
    yield "ties to one decimal", y, np.round(noise + y, 1)
    yield "ties to whole numbers", y, np.round(noise + y)
    yield "all equal", y, np.zeros(events)
    yield "one class", np.zeros(events, np.int8), noise
    yield "rare positives", (t % 97 == 0).astype(np.int8), noise
    yield "no signal", (rng.random(events) < 0.5).astype(np.int8), noise
    yield "rising", y, t * 1.0
    yield "falling", y, t * -1.0
    yield "rising, labels alternate", (t % 2).astype(np.int8), t * 1.0
    yield "falling, labels in threes", (t % 3 % 2).astype(np.int8), t * -1.0
    yield "perfect", y, y + rng.random(events) * 0.9
    yield "inverted", y, rng.random(events) * 0.9 - y
    yield "runs of five equal", y, np.repeat(noise, 5)[:events]
    x = rng.random(events)
    yield "convex", (rng.random(events) < x**2).astype(np.int8), x
    yield "collinear at random", (t % 2).astype(np.int8), rng.integers(0, 12, events) * 1.0
    yield "collinear throughout", (t // 10 % 2).astype(np.int8), t % 10 * 1.0
    yield "sawtooth", y, t * 7919 % 1000 * 1.0
    yield "alternating extremes", y, np.where(t % 2, -t, t) * 1.0
    yield "shrinking gap", y, np.where(t % 2, -1.0, 1.0) / (1 + t)
    tiny = rng.random(events) < 0.5
    yield "tiny and huge", y, np.where(tiny, noise * 1e-310, noise * 1e300)
    calm = t // (events // 4 + 1) % 2 == 1
    yield "two regimes", y, np.where(calm, noise * 0.01 + 3, noise)
    special = np.array([np.inf, -np.inf, 0.0, -0.0, 5e-324, -5e-324, 1.7e308, -1.7e308])
    yield "special numbers", y, special[rng.integers(0, 8, events)]
    # As many positives as negatives at every score but two: hulls of one edge, KS of 0
    yield "flat", (t // 2 % 2).astype(np.int8), (t // 4 % 9) * 1.0


def steepening(events: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels and scores in random order whose hull has about as many vertices as one can have.

    Every score has so many events and so many positives that its slope p/q is in lowest terms, and all
    fractions of a denominator are there before the next denominator begins.
    """
    slopes = sorted({(p / q, p, q) for q in range(1, 40) for p in range(q + 1) if math.gcd(p, q) == 1})
    counts = {(p, q): 0 for _, p, q in slopes}
    used = 0
    for p, q in sorted(counts, key=lambda step: step[1]):
        used += q
        if used > events:
            break
        counts[p, q] = 1
    labels, scores = [], []
    for score, (_, p, q) in enumerate(slopes):
        if counts[p, q]:
            labels += [1] * p + [0] * (q - p)
            scores += [float(score)] * q
    order = np.random.default_rng(3).permutation(len(labels))
    return np.array(labels, np.int8)[order], np.array(scores)[order]
