"""Slow, obvious oracles of every measure: definitions written out, none of them shared with the core.

A window is a list of labels (1 positive, 0 negative) and a list of scores, oldest event first. Higher
scores mean more likely positive; predicted positive means score >= threshold; a tie counts one half.
What is undefined is None.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.polynomial.chebyshev import chebval
from rocsteady.core.measures.step_polynomials import step_polynomial
from rocsteady.core.rows.measure_table import MEASURE_TABLE, POSITIVE_MEASURES
from rocsteady.core.rows.reasons import NO_POSITIVE_CLASS as NO_POSITIVE_CLASS_CODE
from rocsteady.core.rows.reasons import REASONS
from scipy import stats
from scipy.integrate import quad
from sklearn import metrics

Density = Callable[[float], Callable[[float], float]]
"""The share of positives -> the density of misclassification costs on (0, 1)."""

ONE_CLASS = "one class in window"
CONSTANT = "constant scores in window"
TOO_FEW = "fewer than two positives or negatives in window"
DEGENERATE = "degenerate interval"
NO_POSITIVE_CLASS = "no positive class is named"

EVERY = tuple(measure for measure in MEASURE_TABLE if measure.family != "evidence")
RANKING = tuple(measure.name for measure in EVERY if measure.family != "decision")
DECISIONS = tuple(measure.name for measure in EVERY if measure.family == "decision")
OF_POSITIVE = tuple(name for name in DECISIONS if name in POSITIVE_MEASURES)
"""The names that a row has; each value below is computed from its definition."""
DECLARED = {
    measure.name: {REASONS[code] for code in (*measure.reasons, NO_POSITIVE_CLASS_CODE)} for measure in EVERY
}
"""The reasons that the table of measures declares. A value that is None has one of them."""

LOSSES = ("brier", "log_loss")
INTEGRATED = ("h", "cost_curve_area")
BOUNDED = ("polynomial_auc", "polynomial_auc_bound")
"""Certified up to the rounding of sums over a window."""


# ---- ranking


def auc_by_pairs(labels: Sequence[int], scores: Sequence[float]) -> float:
    """Share of (positive, negative) pairs that are ranked right, a tie one half."""
    positives, negatives = _split(labels, scores)
    won = sum((p > n) + (p == n) / 2 for p in positives for n in negatives)
    return won / (len(positives) * len(negatives))


def placements(labels: Sequence[int], scores: Sequence[float]) -> tuple[list[float], list[float]]:
    """Per positive the share of negatives below, per negative the share of positives above."""
    positives, negatives = _split(labels, scores)
    of_positives = [sum((p > n) + (p == n) / 2 for n in negatives) / len(negatives) for p in positives]
    of_negatives = [sum((p > n) + (p == n) / 2 for p in positives) / len(positives) for n in negatives]
    return of_positives, of_negatives


def delong(labels: Sequence[int], scores: Sequence[float], confidence: float) -> tuple[float, float]:
    """DeLong's interval by the book: sample variances of the placements, each over its class size."""
    of_positives, of_negatives = placements(labels, scores)
    variance = np.var(of_positives, ddof=1) / len(of_positives)
    variance += np.var(of_negatives, ddof=1) / len(of_negatives)
    half_width = stats.norm.ppf((1 + confidence) / 2) * math.sqrt(variance)
    auc = float(np.mean(of_positives))
    return max(0.0, auc - half_width), min(1.0, auc + half_width)


def roc_points(labels: Sequence[int], scores: Sequence[float]) -> list[tuple[float, float, float]]:
    """(threshold, FPR, TPR) at every score, highest first; before them (inf, 0, 0)."""
    positives, negatives = _split(labels, scores)
    points = [(math.inf, 0.0, 0.0)]
    for threshold in sorted(set(scores), reverse=True):
        fpr = sum(score >= threshold for score in negatives) / len(negatives)
        tpr = sum(score >= threshold for score in positives) / len(positives)
        points.append((threshold, fpr, tpr))
    return points


def pav(labels: Sequence[int], scores: Sequence[float]) -> dict[float, float]:
    """Isotonic calibration: the pooled share of positives of every score (pool adjacent violators)."""
    blocks: list[list[Any]] = []  # [positives, events, scores]
    for score in sorted(set(scores)):
        tied = [label for label, other in zip(labels, scores, strict=True) if other == score]
        blocks.append([sum(tied), len(tied), [score]])
        while len(blocks) > 1 and blocks[-2][0] * blocks[-1][1] >= blocks[-1][0] * blocks[-2][1]:
            positives, events, pooled = blocks.pop()
            blocks[-1][0] += positives
            blocks[-1][1] += events
            blocks[-1][2] += pooled
    return {score: block[0] / block[1] for block in blocks for score in block[2]}


def beta_density(a: float, b: float) -> Density:
    """Beta(a, b) whatever the prevalence."""
    norm = math.gamma(a + b) / (math.gamma(a) * math.gamma(b))
    return lambda _: lambda c: norm * c ** (a - 1) * (1 - c) ** (b - 1)


def severity_density(ratio: float | str | None) -> Density:
    """Hand & Anagnostopoulos 2014: by severity ratio, from the window (None), or "balanced"."""

    def at(prevalence: float) -> Callable[[float], float]:
        if ratio == "balanced":
            return beta_density(1 + prevalence, 1 + (1 - prevalence))(prevalence)
        taken = prevalence / (1 - prevalence) if ratio is None else float(ratio)
        return beta_density(2, 1 + 1 / taken)(prevalence)

    return at


def h_by_integration(
    labels: Sequence[int], scores: Sequence[float], density: Density, positive_prior: float | None = None
) -> float:
    """1 - expected least loss / expected least loss of a useless score, integrated over the costs.

    The least loss at a cost is the minimum over all thresholds; no hull is made. quad is only told where
    the best threshold changes, which is looked for among the crossings of all pairs of thresholds.
    """
    prior = sum(labels) / len(labels) if positive_prior is None else positive_prior
    points = [(fpr, tpr) for _, fpr, tpr in roc_points(labels, scores)]
    at_zero = np.array([(1 - tpr) * prior for _, tpr in points])
    at_one = np.array([fpr * (1 - prior) for fpr, _ in points])
    u = density(prior)

    def least(c: float, chosen: slice | list[int]) -> float:
        return float(np.min(c * at_one[chosen] + (1 - c) * at_zero[chosen]))

    def integral(chosen: slice | list[int]) -> float:
        first, second = at_zero[chosen], at_one[chosen]
        rise, fall = second[:, None] - second[None, :], first[None, :] - first[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            crossings = np.unique(fall / (rise + fall))
        crossings = crossings[(crossings > 0) & (crossings < 1)]
        middles = (np.array([0.0, *crossings]) + np.array([*crossings, 1.0])) / 2
        best = np.argmin(middles[:, None] * second + (1 - middles[:, None]) * first, axis=1)
        ends = [0.0, *crossings[best[1:] != best[:-1]], 1.0]
        parts = [
            quad(lambda c: least(c, chosen) * u(c), a, b, epsabs=1e-13, epsrel=1e-11)[0]
            for a, b in pairwise(ends)
        ]
        return math.fsum(parts)

    return 1 - integral(slice(None)) / integral([0, -1])


def ks_and_threshold(labels: Sequence[int], scores: Sequence[float]) -> tuple[float, float]:
    """Greatest TPR - FPR over the scores as thresholds, and the largest score that attains it."""
    positives, negatives = _split(labels, scores)
    advantages = {
        t: sum(s >= t for s in positives) * len(negatives) - sum(s >= t for s in negatives) * len(positives)
        for t in scores
    }
    best = max(advantages.values())
    return best / (len(positives) * len(negatives)), max(t for t in scores if advantages[t] == best)


def tpr_at_fpr(labels: Sequence[int], scores: Sequence[float], fpr: float) -> float:
    """Linear between ROC points, ties as one segment; the upper end of a vertical step."""
    points = [(x, y) for _, x, y in roc_points(labels, scores)]
    reached = [point for point in points if point[0] <= fpr]
    (x0, y0), beyond = reached[-1], points[len(reached) :]
    if not beyond:
        return y0
    x1, y1 = beyond[0]
    return y0 + (fpr - x0) / (x1 - x0) * (y1 - y0)


def cost_threshold(labels: Sequence[int], scores: Sequence[float], cost: float) -> float:
    """Smallest score whose isotonic calibration is at least the cost of a false positive, else +inf."""
    return min((score for score, value in pav(labels, scores).items() if value >= cost), default=math.inf)


def aum_by_integration(labels: Sequence[int], scores: Sequence[float]) -> float:
    """Area under min(FP, FN) over all thresholds: constant between scores. In fractions, rounded once."""
    positives, negatives = _split(labels, scores)
    edges = sorted(set(scores))
    area = Fraction(0)
    for a, b in pairwise(edges):
        missed = sum(score <= a for score in positives)
        alarms = sum(score >= b for score in negatives)
        area += min(missed, alarms) * (Fraction(b) - Fraction(a))
    return float(area)


def cost_curve_area(labels: Sequence[int], scores: Sequence[float]) -> float:
    """Integral over c of min over thresholds of c FPR + (1 - c) FNR: H of uniform costs, even priors."""
    return (1 - h_by_integration(labels, scores, beta_density(1, 1), 0.5)) / 4


def partial_auc(
    labels: Sequence[int], scores: Sequence[float], low: float, high: float
) -> tuple[float, float]:
    """Area under the ROC curve between two FPRs, in fractions, and by McClish: chance 1/2, the most 1."""
    positives, negatives = _split(labels, scores)
    points = [(Fraction(0), Fraction(0))]
    for threshold in sorted(set(scores), reverse=True):
        alarms, hits = (sum(s >= threshold for s in of) for of in (negatives, positives))
        points.append((Fraction(alarms, len(negatives)), Fraction(hits, len(positives))))
    start, end = Fraction(low), Fraction(high)
    area = Fraction(0)
    for (x0, y0), (x1, y1) in pairwise(points):
        left, right = max(x0, start), min(x1, end)
        if left < right:
            slope = (y1 - y0) / (x1 - x0)
            area += (right - left) * (y0 + slope * ((left + right) / 2 - x0))
    chance, most = (end**2 - start**2) / 2, end - start
    return float(area), float((1 + (area - chance) / (most - chance)) / 2)


def polynomial_auc(
    labels: Sequence[int], scores: Sequence[float], masses: Sequence[float] | None = None
) -> tuple[float, float]:
    """Mean over pairs of the polynomial of degree 30 near the step, and how far it can be off."""
    at, of = np.array(scores), np.array(labels)
    weights = np.ones(len(at)) if masses is None else np.array(masses)
    at = at * (0.5 if np.abs(at).max() > 1e300 else 1.0)
    at = ((at - at.min()) - (at.max() - at)) / (at.max() - at.min())
    differences = (at[of == 1][:, None] - at[of == 0][None, :]) / 2
    pairs = weights[of == 1][:, None] * weights[of == 0][None, :]
    near, low, high = (
        float(np.average(chebval(differences, step_polynomial(30, fit)), weights=pairs))
        for fit in ("least_squares", "lower", "upper")
    )
    low, high = max(0.0, low), min(1.0, high)
    near = min(max(near, low), high)
    return near, max(high - near, near - low)


def calibration_error(labels: Sequence[int], scores: Sequence[float]) -> float:
    """Sum over PAV blocks of share of events * |mean score - share of positives|."""
    values = pav(labels, scores)
    error = 0.0
    for value in set(values.values()):
        block = [score for score in scores if values[score] == value]
        error += len(block) / len(scores) * abs(sum(block) / len(block) - value)
    return error


def brier(labels: Sequence[int], scores: Sequence[float]) -> float:
    """Mean squared error of a probability."""
    return math.fsum((score - label) ** 2 for label, score in zip(labels, scores, strict=True)) / len(labels)


def log_loss(labels: Sequence[int], scores: Sequence[float]) -> float:
    """Mean negative log-likelihood, no probability of what happened below 2^-52."""
    right = [score if label else 1 - score for label, score in zip(labels, scores, strict=True)]
    return -math.fsum(math.log(max(share, 2.0**-52)) for share in right) / len(labels)


# ---- decisions


def majority_before(labels: Sequence[Any]) -> Any:
    """The most frequent label; of tied ones the one seen most recently. None without labels."""
    if not labels:
        return None
    counts = {label: list(labels).count(label) for label in labels}
    tied = [label for label, count in counts.items() if count == max(counts.values())]
    return max(tied, key=lambda label: max(i for i, other in enumerate(labels) if other == label))


def baseline_hits(
    labels: Sequence[Any], window: int | None, negative: Callable[[Any], bool]
) -> tuple[list[bool], list[bool]]:
    """Whether a majority and a persistent classifier would have been right, for every event of a stream.

    Before event i the window holds the (up to `window`) events before it. Without any, both predict the
    negative class.
    """
    majority, persistent = [], []
    for i, label in enumerate(labels):
        before = labels[0 if window is None else max(0, i - window) : i]
        majority.append(label == majority_before(before) if before else negative(label))
        persistent.append(label == labels[i - 1] if i else negative(label))
    return majority, persistent


def _ratio(top: float, bottom: float) -> float | None:
    return None if bottom == 0 else top / bottom


@cache
def decisions(
    labels: tuple[Any, ...],
    predicted: tuple[Any, ...],
    majority_hits: tuple[bool, ...],
    persistent_hits: tuple[bool, ...],
    positive: Any,
) -> tuple[dict[str, float | None], dict[str, str]]:
    """All of `DECISIONS` by scikit-learn, and the reasons of what is None; positive=None: there is none."""
    n = len(labels)
    values: dict[str, float | None] = dict.fromkeys(DECISIONS)
    reasons: dict[str, str] = {}
    if positive is None:
        reasons.update(dict.fromkeys(OF_POSITIVE, NO_POSITIVE_CLASS))
    else:
        pairs = [
            (label == positive, guess == positive) for label, guess in zip(labels, predicted, strict=True)
        ]
        tp, fp = pairs.count((True, True)), pairs.count((False, True))
        tn, fn = pairs.count((False, False)), pairs.count((True, False))
        values.update(tp=tp, fp=fp, tn=tn, fn=fn, cmd=tp * tn - fp * fn)
        for name, top, bottom, reason in (
            ("precision", tp, tp + fp, "no predicted positives in window"),
            ("recall", tp, tp + fn, "no positives in window"),
            ("specificity", tn, tn + fp, "no negatives in window"),
            ("f1", 2 * tp, 2 * tp + fp + fn, "no positives and no predicted positives in window"),
        ):
            values[name] = _ratio(top, bottom)
            if bottom == 0:
                reasons[name] = reason
    accuracy = float(metrics.accuracy_score(labels, predicted))
    values["accuracy"] = accuracy
    classes = sorted(set(labels))
    if len(classes) < 2:
        reasons.update(dict.fromkeys(("balanced_accuracy", "g_mean", "harmonic_mean"), ONE_CLASS))
    else:
        recalls = metrics.recall_score(labels, predicted, labels=classes, average=None, zero_division=0.0)
        values["balanced_accuracy"] = float(np.mean(recalls))
        values["g_mean"] = float(np.prod(recalls) ** (1 / len(recalls)))
        values["harmonic_mean"] = float(stats.hmean(recalls)) if all(recalls) else 0.0
    if set(labels) == set(predicted) and len(classes) == 1:
        reasons["kappa"] = "chance agreement is certain"
    else:
        values["kappa"] = float(metrics.cohen_kappa_score(labels, predicted))
    for name, hits, reason in (
        ("kappa_m", majority_hits, "the majority classifier makes no error"),
        ("kappa_per", persistent_hits, "the persistent classifier makes no error"),
    ):
        values[name] = _ratio(accuracy - sum(hits) / n, 1 - sum(hits) / n)
        if all(hits):
            reasons[name] = reason
    if len(classes) < 2 or len(set(predicted)) < 2:
        reasons["mcc"] = "one class in the labels or in the predictions"
    else:
        values["mcc"] = float(metrics.matthews_corrcoef(labels, predicted))
    return values, reasons


# ---- whole rows


def clauses(reasons: dict[str, str]) -> str | None:
    """Return a row's reason: the measures of each reason, in column order, before it."""
    assert all(why in DECLARED[name] for name, why in reasons.items()), reasons
    names = [name for name in (*RANKING, *DECISIONS) if name in reasons]
    whys = [reasons[name] for name in names]
    parts = [
        ", ".join(name for name in names if reasons[name] == why) + ": " + why
        for place, why in enumerate(whys)
        if why not in whys[:place]
    ]
    return "; ".join(parts) or None


@dataclass
class NaiveEvaluator:
    """Keeps every event in a list and recomputes a whole row from its window when asked.

    window       how many events, or None for all
    positive     the positive class where events carry classes; None: there is none
    density, positive_prior   of the H-measure
    Names of the rest as in `EvaluatorSettings`.
    """

    window: int | None = None
    density: Density = field(default_factory=lambda: beta_density(2, 2))
    positive_prior: float | None = None
    threshold: float = 0.5
    confidence: float = 0.95
    probabilities: bool = False
    at_fpr: float = 0.01
    false_positive_cost: float = 0.2
    partial_fpr: tuple[float, float] = (0.0, 0.1)
    positive: Any = 1
    labels: list[Any] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    times: list[int | None] = field(default_factory=list)
    predicted: list[Any] = field(default_factory=list)
    hits: tuple[list[bool], list[bool]] = ([], [])

    def extend(
        self,
        labels: Sequence[Any],
        scores: Sequence[float],
        times: Sequence[int | None] | None = None,
        predicted: Sequence[Any] | None = None,
    ) -> None:
        """Take events in."""
        self.labels += labels
        self.scores += map(float, scores)
        self.times += times if times is not None else [None] * len(labels)
        if predicted is None:
            predicted = [int(score >= self.threshold) for score in scores]
        self.predicted += predicted
        self.hits = baseline_hits(self.labels, self.window, self._is_negative)

    def _is_negative(self, label: Any) -> bool:
        """Without a positive class no class is the negative one, and the baselines begin with a mistake."""
        return self.positive is not None and bool(label != self.positive)

    def row(self, seq: int) -> dict[str, Any]:
        """Everything that a row says after the first `seq` events, `reason` included."""
        held = slice(0 if self.window is None else max(0, seq - self.window), seq)
        events = zip(
            self.labels[held], self.scores[held], self.predicted[held], self.hits[0][held],
            self.hits[1][held], self.times[held], strict=True,
        )  # fmt: skip
        times = [time for time in self.times[:seq] if time is not None]
        return {"seq": seq, "time": max(times, default=None), **self.row_of(list(events))}

    def row_of(self, held: Sequence[tuple[Any, float, Any, bool, bool, int | None]]) -> dict[str, Any]:
        """What a row says of events held: label, score, predicted class, the baselines' hits, time."""
        labels, scores, predicted, *hits, times = map(list, zip(*held, strict=True))
        values, why = decisions(*map(tuple, (labels, predicted, *hits)), self.positive)
        reasons = dict(why)
        if self.positive is None:
            masses: dict[str, Any] = {"positives": None, "negatives": None, "prevalence": None}
            ranking = dict.fromkeys(RANKING)
            reasons |= dict.fromkeys(RANKING, NO_POSITIVE_CLASS)
        else:
            binary = [int(label == self.positive) for label in labels]
            p, n = sum(binary), len(binary) - sum(binary)
            masses = {"positives": p, "negatives": n, "prevalence": p / len(binary)}
            pairs = tuple(sorted(zip(scores, binary, strict=True)))
            known, why = _ranking(
                pairs, self.density, self.positive_prior, self.confidence, self.at_fpr,
                self.false_positive_cost, self.partial_fpr, self.probabilities,
            )  # fmt: skip
            ranking = dict(known)
            reasons |= why
        if not self.probabilities:
            for name in (*LOSSES, "calibration_error"):
                ranking[name] = None
                reasons.pop(name, None)
        return {
            "window_events": len(labels),
            "window_start": times[0],
            "window_end": times[-1],
            "weight": len(labels),
            **masses,
            **ranking,
            **values,
            "reason": clauses(reasons),
        }


@cache
def _ranking(
    pairs: tuple[tuple[float, int], ...],
    density: Density,
    positive_prior: float | None,
    confidence: float,
    at_fpr: float,
    cost: float,
    partial_fpr: tuple[float, float],
    probabilities: bool,
) -> tuple[dict[str, float | None], dict[str, str]]:
    """All of `RANKING`, of a window in any order: ranking knows no order of arrival."""
    scores, labels = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    values: dict[str, float | None] = dict.fromkeys(RANKING)
    if probabilities:
        values["brier"], values["log_loss"] = brier(labels, scores), log_loss(labels, scores)
    if len(set(labels)) < 2:
        return values, {name: ONE_CLASS for name in RANKING if name not in LOSSES}
    reasons = {}
    values["auc"] = auc_by_pairs(labels, scores)
    if 1 < sum(labels) < len(labels) - 1:
        values["auc_low"], values["auc_high"] = delong(labels, scores, confidence)
        if len(set(placements(labels, scores)[0])) == len(set(placements(labels, scores)[1])) == 1:
            reasons["auc_low"] = DEGENERATE
    else:
        reasons["auc_low"] = reasons["auc_high"] = TOO_FEW
    values["h"] = h_by_integration(labels, scores, density, positive_prior)
    values["ks"], values["ks_threshold"] = ks_and_threshold(labels, scores)
    values["tpr_at_fpr"] = tpr_at_fpr(labels, scores, at_fpr)
    values["cost_threshold"] = cost_threshold(labels, scores, cost)
    values["aum"] = aum_by_integration(labels, scores)
    values["cost_curve_area"] = cost_curve_area(labels, scores)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values["average_precision"] = float(metrics.average_precision_score(labels, scores))
    values["calibration_error"] = calibration_error(labels, scores)
    areas = partial_auc(labels, scores, *partial_fpr)
    values["partial_auc"], values["partial_auc_mcclish"] = areas
    if min(scores) == max(scores):
        reasons |= dict.fromkeys(BOUNDED, CONSTANT)
    else:
        values |= dict(zip(BOUNDED, polynomial_auc(labels, scores), strict=True))
    return values, reasons


def differences(
    row: Any, expected: dict[str, Any], tolerance: float = 1e-11, skip: Sequence[str] = ()
) -> list[str]:
    """Say where a row (or `Measures`) is not what was expected: null and text exactly, numbers nearly.

    Numbers to `tolerance`, but for the two that the oracle integrates numerically, and those with a bound.
    """
    wrong = []
    for name, want in expected.items():
        if name in skip or not hasattr(row, name):
            continue
        got = getattr(row, name)
        loose = max(tolerance, 1e-8) if name in INTEGRATED else tolerance
        loose = max(tolerance, 1e-9) if name in BOUNDED else loose
        if isinstance(want, float | int) and isinstance(got, float | int):
            same = got == want or math.isclose(got, want, rel_tol=loose, abs_tol=loose)
        else:
            same = got == want
        if not same:
            wrong.append(f"{name} is {got!r}, expected {want!r}")
    return wrong


def _split(labels: Sequence[int], scores: Sequence[float]) -> tuple[list[float], list[float]]:
    pairs = list(zip(labels, scores, strict=True))
    return [s for label, s in pairs if label == 1], [s for label, s in pairs if label == 0]
