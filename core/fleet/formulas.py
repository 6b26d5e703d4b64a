"""The numbers of a roll-up row, from the AUC and the counts of its members. Pure functions.

Member i has the AUC a_i, its variance v_i (DeLong's), P_i positives and N_i negatives. For k members v_i > 0.

Means
    A mean is sum w_i a_i with weights that sum to 1: equal weights in `auc_mean`, and weights in proportion
    to P_i + N_i in `auc_by_events`. Its variance is sum w_i^2 v_i if the members' samples are independent.
    The samples of members that score the same events are not independent: for any dependence the standard
    error is at most sum w_i sqrt(v_i), by the triangle inequality. `auc_random` (DerSimonian & Laird 1986)
    has w_i = 1 / (v_i + tau2), and the variance 1 / sum w_i. Intervals are clipped to [0, 1].

Heterogeneity
    Q = sum (a_i - m)^2 / v_i has k - 1 degrees of freedom if all members have one AUC (Cochran 1954); m is
    the inverse-variance mean, with w_i = 1 / v_i.
    tau2 = max(0, (Q - (k - 1)) / (W - sum w_i^2 / W)) with w_i = 1 / v_i and W = sum w_i. The divisor is
    computed as sum w_i (W - w_i) / W, where no digits cancel.
    i2 = max(0, (Q - (k - 1)) / Q).

Gaps
    The gap of a member is a_i less the inverse-variance mean of the other members. The gap's variance is the
    sum of the variances of a_i and of this mean. p-values are two-sided and adjusted for k tests (Holm 1979).
    The interval of a gap has Bonferroni's level, 1 - (1 - confidence) / k: so it holds for any member, even
    if the member was chosen as the worst.

These are the formulas of metafor's `rma` with the methods FE and DL (Viechtbauer 2010).

A member with v_i = 0 (perfect separation) counts in the two plain means and in the quantiles. In an
inverse-variance mean such a member would have all of the weight, and so it gets no weight.

Care
    The plain means are unbiased. In `auc_random` a member that is high by chance has a lower variance, and so
    more weight: with tau2 = 0 the weight is about proportional to a (1 - a). The bias is then about |2 a - 1|
    / (a (1 - a)) variances of a member. The bias does not become smaller with k, while the interval does.
    `reason` names this mean when the bias is more than MOST_BIAS standard errors. Normal p-values need FEW
    events of each class from every member; `reason` names the p-values if a member has fewer.
    docs/benchmarks/roll_ups.md has figures.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

# the parts of scipy take up to .5 s of processor time to import, so each is imported when it is first used
import scipy

from ..arrays import FloatArray
from ..compare.significance import holm
from ..rows.columns import reason_clauses

NO_MEMBER = "no member counts"
ONE_MEMBER = "fewer than two members count"
DEPENDENT = "the members may depend on each other"
NO_WIDTH = "the interval of a member has no width"
FEW_EVENTS = "a member has fewer than 100 positives or negatives"
WEIGHTS = "members that are high by chance have more weight"
"""The reasons why columns are null, or need care. No text holds a colon, a comma or a semicolon."""

FEW = 100
"""The number of events of the rarer class that each member needs before tests of members are near their
level.
"""

MOST_BIAS = 0.25
"""The most standard errors of bias that an inverse-variance mean may have without a remark."""

PLAIN = ("auc_mean", "auc_by_events")
_SPREAD = ("heterogeneity_q", "heterogeneity_p", "i2", "tau2")
_ENDS = ("", "_low", "_high")
_OF_GAPS = ("", "_auc", "_gap", "_gap_low", "_gap_high", "_p")
_GAPS = (*(f"worst{end}" for end in _OF_GAPS), *(f"best{end}" for end in _OF_GAPS))
_FOUND = ("members_below", "members_above")
_TESTED = ("heterogeneity_p", "worst_p", "best_p", *_FOUND)


def roll_up_numbers(
    names: list[str],
    auc: FloatArray,
    variance: FloatArray,
    positives: FloatArray,
    negatives: FloatArray | None,
    confidence: float,
    *,
    dependent: bool = False,
) -> dict[str, Any]:
    """Return the columns of a roll-up row from `auc_mean` to `auc_median`, and its `reason`. O(k log k).

    names       the names of the members
    auc, variance, positives, negatives
                float64[n] for these members; AUCs are finite, variances 0 or more, counts above 0. Where the
                AUC is a mean over classes, `positives` are all events, and `negatives` is None
    confidence  the confidence of all intervals
    dependent   whether members may score the same events

    >>> import numpy as np
    >>> auc, counts = np.array([0.9, 0.8]), np.array([50.0, 50.0])
    >>> found = roll_up_numbers(["a", "b"], auc, np.array([0.01, 0.01]), counts, counts, 0.95)
    >>> round(found["auc_random"], 3), found["worst"], round(found["worst_gap"], 3)
    (0.85, 'b', -0.1)
    """
    found: dict[str, Any] = {}
    why: dict[str, str] = {}
    z = float(scipy.special.ndtri((1 + confidence) / 2))
    if len(auc):
        for name, weights in zip(PLAIN, (np.ones(len(auc)), _events(positives, negatives)), strict=True):
            _put(found, name, auc, variance, weights, z, dependent)
        if not variance.all():
            why.update((f"{name}{end}", NO_WIDTH) for name in PLAIN for end in _ENDS[1:])
        found["auc_low_decile"], found["auc_median"] = np.quantile(auc, (0.1, 0.5)).tolist()
    else:
        _leave_out(found, why, _with_ends(*PLAIN), NO_MEMBER)
    kept = np.flatnonzero(variance > 0)
    rarer = np.minimum(positives, positives if negatives is None else negatives)[kept]
    names = [names[place] for place in kept.tolist()]
    auc, variance = auc[kept], variance[kept]
    if len(auc) > 1:
        _spread(found, auc, variance, z)
        _gaps(found, names, auc, variance, confidence, dependent)
        if _bias(auc, variance) > MOST_BIAS:
            why.update(dict.fromkeys(_with_ends("auc_random"), WEIGHTS))
        if (rarer < FEW).any():
            why.update(dict.fromkeys(_TESTED, FEW_EVENTS))
        if dependent:
            _leave_out(found, why, ("auc_random_low", "auc_random_high", "heterogeneity_p"), DEPENDENT)
    else:
        missing = (*_with_ends("auc_random"), *_SPREAD, *_GAPS, *_FOUND)
        _leave_out(found, why, missing, ONE_MEMBER if len(auc) else NO_MEMBER)
    if "auc_median" not in found:
        _leave_out(found, why, ("auc_low_decile", "auc_median"), NO_MEMBER)
    found["reason"] = reason_clauses(why)
    return found


def _with_ends(*names: str) -> tuple[str, ...]:
    return tuple(f"{name}{end}" for name in names for end in _ENDS)


def _leave_out(found: dict[str, Any], why: dict[str, str], names: tuple[str, ...], reason: str) -> None:
    found.update(dict.fromkeys(names))
    why.update(dict.fromkeys(names, reason))


def _events(positives: FloatArray, negatives: FloatArray | None) -> FloatArray:
    """Return the number of events of each member, in units of the greatest number.

    Masses may be 1e200 or 1e-200.
    """
    if negatives is None:
        positives_alone: FloatArray = positives / positives.max()
        return positives_alone
    most = max(positives.max(), negatives.max())
    events: FloatArray = positives / most + negatives / most
    return events


def _put(
    found: dict[str, Any],
    name: str,
    auc: FloatArray,
    variance: FloatArray,
    weights: FloatArray,
    z: float,
    dependent: bool,
) -> None:
    """Put a weighted mean of the AUC, with its interval, into `found`."""
    shares = weights / weights.sum()
    mean = float((shares * auc).sum())
    if dependent:
        error = float((shares * np.sqrt(variance)).sum())
    else:
        error = math.sqrt(float((shares * shares * variance).sum()))
    _interval(found, name, mean, z * error)


def _interval(found: dict[str, Any], name: str, mean: float, half_width: float) -> None:
    ends = max(0.0, mean - half_width), min(1.0, mean + half_width)
    found.update(zip(_with_ends(name), (mean, *ends), strict=True))


class Spread(NamedTuple):
    """The spread between members: Cochran's Q, its p-value, I2 and tau2.

    The head of the module defines them.
    """

    q: float
    p: float
    i2: float
    tau2: float


def spread_of(auc: FloatArray, variance: FloatArray) -> Spread:
    """Return the spread of two members or more, whose variances must be above 0. O(k)."""
    weights = 1 / variance
    total = weights.sum()
    distance = auc - _inverse_variance_mean(auc, variance)
    q, degrees = float((weights * distance * distance).sum()), len(auc) - 1
    beyond = max(0.0, q - degrees)
    tau2 = beyond * float(total / (weights * _of_others(weights)).sum())
    return Spread(q, float(scipy.special.chdtrc(degrees, q)), beyond / q if q else 0.0, tau2)


def _inverse_variance_mean(auc: FloatArray, variance: FloatArray) -> float:
    weights = 1 / variance
    return float((weights / weights.sum() * auc).sum())


def _spread(found: dict[str, Any], auc: FloatArray, variance: FloatArray, z: float) -> None:
    """Put Cochran's Q, its p-value, I2, tau2 and the random-effects mean into `found`."""
    spread = spread_of(auc, variance)
    found.update(zip(_SPREAD, spread, strict=True))
    tau2 = spread.tau2
    weights = 1 / (variance + tau2)
    mean = float((weights * auc).sum() / weights.sum())
    _interval(found, "auc_random", mean, z / math.sqrt(float(weights.sum())))


def _bias(auc: FloatArray, variance: FloatArray) -> float:
    """Return about how many standard errors an inverse-variance mean is too high.

    The head of the module gives the reason ("Care").
    """
    mean = _inverse_variance_mean(auc, variance)
    between = mean * (1 - mean)
    error = 1 / math.sqrt(float((1 / variance).sum()))
    return abs(2 * mean - 1) * len(variance) * error / between if between else math.inf


def gaps_of(
    auc: FloatArray, variance: FloatArray, *, dependent: bool = False
) -> tuple[FloatArray, FloatArray]:
    """Return the gap between each member and the mean of the others, and the standard error of the gap. O(k).

    auc, variance  float64[k] of two members or more, with variances above 0
    dependent      whether members may score the same events
    """
    weights = 1 / variance
    total = _of_others(weights)
    gap = auc - _of_others(weights * auc) / total
    if dependent:
        return gap, np.sqrt(variance) + _of_others(np.sqrt(weights)) / total
    return gap, np.sqrt(variance + 1 / total)


def corrected(gap: FloatArray, error: FloatArray, confidence: float) -> tuple[FloatArray, float]:
    """Return Holm's p-values of gaps, and the half width of Bonferroni's intervals in standard errors.

    O(k log k).

    The gaps must be all gaps that a reader looks at together: the gaps of one group, or of all groups of a
    page.
    """
    p = holm(2 * scipy.special.ndtr(-np.abs(gap) / error))
    return p, -float(scipy.special.ndtri((1 - confidence) / (2 * len(gap))))


def _gaps(
    found: dict[str, Any],
    names: list[str],
    auc: FloatArray,
    variance: FloatArray,
    confidence: float,
    dependent: bool,
) -> None:
    """Put the members furthest from the mean of the others into `found`, and how many are surely far."""
    gap, error = gaps_of(auc, variance, dependent=dependent)
    p, z = corrected(gap, error, confidence)
    extremes: tuple[tuple[str, Callable[[FloatArray], Any]], ...] = (
        ("worst", np.argmin),
        ("best", np.argmax),
    )
    for which, extreme in extremes:
        place = int(extreme(gap))  # if gaps are equal, the first member by name
        far, width = float(gap[place]), z * float(error[place])
        ends = max(-1.0, far - width), min(1.0, far + width)
        values = (names[place], float(auc[place]), far, *ends, float(p[place]))
        found.update(zip((f"{which}{end}" for end in _OF_GAPS), values, strict=True))
    sure = p < 1 - confidence
    found["members_below"] = int(np.count_nonzero(sure & (gap < 0)))
    found["members_above"] = int(np.count_nonzero(sure & (gap > 0)))


def _of_others(values: FloatArray) -> FloatArray:
    """Return for each place the sum of the values at all other places. O(n).

    The total less the value itself would lose all digits of the sum if one value is nearly the total.
    """
    before = np.concatenate([[0.0], np.cumsum(values)[:-1]])
    behind = np.concatenate([np.cumsum(values[::-1])[-2::-1], [0.0]])
    others: FloatArray = before + behind
    return others


def variances(auc: FloatArray, low: FloatArray, high: FloatArray, confidence: float) -> FloatArray:
    """Return the variance of each AUC, computed from its interval.

    NaN if the interval does not give the variance. O(n).

    The ends are clipped to [0, 1], so the half width is the wider side. An interval that is [0, 1] was
    clipped on both sides. A half width below 1e-15 comes from rounding: the variance is 0.
    """
    half = np.fmax(high - auc, auc - low)
    width = np.where(half < 1e-15, 0.0, half) / float(scipy.special.ndtri((1 + confidence) / 2))
    return np.where((low <= 0) & (high >= 1), np.nan, width * width)
