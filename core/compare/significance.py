"""Tests of whether one classifier is better than another, over the same instances, folds or streams.

All p-values are two-sided. `a` and `b` are values of a measure for which a greater value is better, one pair
for each fold or stream. Equal pairs count for neither side. A test without evidence (all pairs tied, no
discordant instance) has p-value 1. Values and their differences are compared to 12 significant digits
(`ties`), so that shares give the same ranks on every scale and in every order.

A p-value holds for a single test. Testing at 45 checkpoints and reporting the best result rejects a true null
in 31% of all streams at level .05; `McnemarEvidence` (mcnemar.py) allows any number of tests. Folds share
one stream, so a test over folds says something about that stream alone; `friedman_nemenyi` is inference only
over streams. With fewer than 6 pairs no `sign_test` or `wilcoxon` can reach .05.

Sources: Bifet et al. 2015, sections 3 and 4 (sign test, signed ranks); Demsar 2006 (Friedman,
Nemenyi); DeLong et al. 1988.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import scipy  # parts of scipy take up to .5 s of processor time to import, each when it is first used

from ..arrays import FloatArray
from ..errors import ConfigError, InputError
from ..events.inputs import as_array, as_binary, as_score_numbers
from .ties import as_values, differences, half_units, middle_ranks

Values = Sequence[float] | npt.NDArray[np.floating]

_EXACT_PAIRS = 100
"""The most pairs whose signed ranks are enumerated, in 20 ms; for more pairs a normal distribution is right
to 4 digits.
"""


def check_level(alpha: float) -> None:
    """Raise ConfigError unless alpha is a level of significance."""
    if not 0 < alpha < 1:
        raise ConfigError(f"alpha={alpha!r}: give a level between 0 and 1, such as .05")


@dataclass(frozen=True)
class SignTest:
    """The numbers of pairs in which a, or b, was better, and the sign test on them; `statistic` is wins_a."""

    wins_a: int
    wins_b: int
    ties: int
    statistic: float
    p_value: float


@dataclass(frozen=True)
class WilcoxonTest:
    """Sums of the ranks of the differences in favour of a, and of b; `statistic` is the smaller sum.

    exact  whether the p-value is enumerated, ties included, not computed from a normal distribution
    """

    rank_sum_a: float
    rank_sum_b: float
    ties: int
    statistic: float
    p_value: float
    exact: bool


@dataclass(frozen=True)
class FriedmanTest:
    """The average ranks of k learners over n streams, where 1 is the best, and Friedman's test on them.

    statistic            chi-squared with k - 1 degrees of freedom if all learners are alike, corrected for
                         ties
    critical_difference  difference above which two average ranks differ at level alpha (Nemenyi)
    groups               groups of learners that do not differ, by their places; each group is as large as
                         possible, the best group comes first
    """

    ranks: tuple[float, ...]
    statistic: float
    p_value: float
    critical_difference: float
    alpha: float
    groups: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class DelongTest:
    """DeLong's test: two AUCs over the same instances.

    `statistic` is their difference a - b over its standard error.
    """

    auc_a: float
    auc_b: float
    standard_error: float
    statistic: float
    p_value: float


def sign_test(a: Values, b: Values) -> SignTest:
    """Test two classifiers by the numbers of pairs in which a, or b, is better; the p-value is exact. O(n).

    a, b  the values of both classifiers, a pair for each fold or stream; greater is better. The values of a
          pair are equal if they agree to 12 significant digits

    Raises InputError for arrays of different lengths, of no pair, or with values that are not numbers.

    >>> sign_test([.8, .9, .7, .8, .9, .6], [.7, .8, .6, .7, .8, .5]).p_value
    0.03125
    """
    difference, _ = _differences(a, b)
    wins_a, wins_b = int((difference > 0).sum()), int((difference < 0).sum())
    n = wins_a + wins_b
    p = min(1.0, 2 * float(scipy.stats.binom.cdf(min(wins_a, wins_b), n, 0.5)))
    return SignTest(wins_a, wins_b, len(difference) - n, float(wins_a), p)


def wilcoxon(a: Values, b: Values) -> WilcoxonTest:
    """Test two classifiers by Wilcoxon's signed ranks; equal pairs are left out. O(n^3), at most 100^3.

    Equal differences share their middle rank; a difference is known to the 12th significant digit of the
    greater of its two values. For up to 100 pairs the p-value is enumerated over all signs, also with shared
    ranks. `a`, `b` and the errors are those of `sign_test`.

    >>> wilcoxon([.8, .9, .7, .8, .9, .6], [.7, .75, .68, .71, .86, .65]).p_value
    0.15625
    >>> wilcoxon([.80, .78, .83], [.82, .80, .80]).rank_sum_b  # two differences of .02 share rank 1.5
    3.0
    """
    difference, near = _differences(a, b)
    is_kept = difference != 0
    kept = difference[is_kept]
    ties = len(difference) - len(kept)
    if not len(kept):
        return WilcoxonTest(0.0, 0.0, ties, 0.0, 1.0, exact=True)
    ranks = middle_ranks(np.abs(kept), near[is_kept])
    for_a, for_b = float(ranks[kept > 0].sum()), float(ranks[kept < 0].sum())
    ranks.sort()  # so the p-value of pairs in another order is the same to the last bit
    smaller = min(for_a, for_b)
    is_exact = len(kept) <= _EXACT_PAIRS
    p = _exact_tail(ranks, smaller) if is_exact else _normal_tail(ranks, smaller)
    return WilcoxonTest(for_a, for_b, ties, smaller, min(1.0, 2 * p), is_exact)


def _differences(a: Values, b: Values) -> tuple[FloatArray, FloatArray]:
    """Return the differences of the checked pairs, and half a unit of each; see `differences`."""
    first, second = as_values("values of a", a), as_values("values of b", b)
    if first.ndim != 1 or first.shape != second.shape or not len(first):
        raise InputError(
            f"a has the shape {first.shape} and b {second.shape}: give two arrays of one length, a value for "
            "each fold or stream"
        )
    if bad := np.flatnonzero(~(np.isfinite(first) & np.isfinite(second))).tolist():
        raise InputError(
            f"pair {bad[0]} is {first[bad[0]]} and {second[bad[0]]}: leave out folds without a value"
        )
    return differences(first, second)


def _exact_tail(ranks: FloatArray, smaller: float) -> float:
    """Return the probability of a rank sum of at most `smaller`, over all signs. O(n^3)."""
    doubled = np.rint(2 * ranks).astype(np.int64)  # middle ranks are halves
    chances = np.zeros(int(doubled.sum()) + 1)
    chances[0] = 1.0
    for rank in doubled.tolist():
        chances[rank:] += chances[: len(chances) - rank].copy()
        chances /= 2
    return float(chances[: round(2 * smaller) + 1].sum())


def _normal_tail(ranks: FloatArray, smaller: float) -> float:
    mean, variance = float(ranks.sum()) / 2, float((ranks**2).sum()) / 4
    return float(scipy.stats.norm.cdf((smaller - mean) / math.sqrt(variance)))


def friedman_nemenyi(table: Sequence[Values] | FloatArray, alpha: float = 0.05) -> FriedmanTest:
    """Rank k learners on each of n streams, and test whether all are alike. O(n k log k).

    table  [n, k]: a row a stream, a column a learner; greater is better. Values of a row that agree to 12
           significant digits share their middle rank

    Raises InputError for fewer than 2 streams or 2 learners, or values that are not numbers; ConfigError for
    alpha.

    >>> test = friedman_nemenyi([[.9, .8, .7], [.8, .7, .6], [.9, .6, .7], [.95, .9, .6]])
    >>> test.ranks, test.statistic, round(test.critical_difference, 3), test.groups
    ((1.0, 2.25, 2.75), 6.5, 1.657, ((0, 1), (1, 2)))
    """
    check_level(alpha)
    values = as_values("values of the table", table)
    if values.ndim != 2 or min(values.shape) < 2:
        raise InputError(
            f"a table of the shape {values.shape}: give at least 2 rows (streams or folds) of 2 values "
            "(learners)"
        )
    if not np.isfinite(values).all():
        row, column = np.argwhere(~np.isfinite(values))[0].tolist()
        raise InputError(
            f"row {row}, column {column} is {values[row, column]}: leave out streams in which a learner has "
            "no value"
        )
    n, k = values.shape
    doubled = np.rint(2 * middle_ranks(-values, half_units(values))).astype(
        np.int64
    )  # middle ranks are halves
    of_learners = doubled.sum(axis=0)
    ranks = of_learners / (2 * n)
    # The sums are whole numbers, so learners and streams in another order give the same statistic to the last
    # bit.
    spread = int((doubled**2).sum()) - n * k * (k + 1) ** 2  # zero if all values of each row are tied
    between = sum((total - n * (k + 1)) ** 2 for total in of_learners.tolist())
    statistic = (k - 1) * between / spread if spread else 0.0
    difference = nemenyi_difference(k, n, alpha)
    return FriedmanTest(
        tuple(ranks.tolist()), statistic, float(scipy.stats.chi2.sf(statistic, k - 1)), difference, alpha,
        alike(ranks, difference),
    )  # fmt: skip


def nemenyi_difference(learners: int, streams: int, alpha: float = 0.05) -> float:
    """Return the critical difference of two average ranks (Demsar 2006, section 3.2.2).

    >>> round(nemenyi_difference(4, 14, 0.05), 2)
    1.25
    """
    return _nemenyi_quantile(learners, alpha) * math.sqrt(learners * (learners + 1) / (6 * streams))


@cache
def _nemenyi_quantile(learners: int, alpha: float) -> float:
    return float(scipy.stats.studentized_range.ppf(1 - alpha, learners, np.inf)) / math.sqrt(2)  # some ms


def alike(ranks: FloatArray, difference: float) -> tuple[tuple[int, ...], ...]:
    """Return the groups of two or more learners whose ranks differ by at most `difference`, best first.

    O(k^2) for k learners.
    """
    order = np.argsort(ranks, kind="stable").tolist()
    groups: list[tuple[int, ...]] = []
    reached = 0
    for first in range(len(order)):
        end = first + 1
        while end < len(order) and ranks[order[end]] - ranks[order[first]] <= difference:
            end += 1
        if end > reached and end - first > 1:
            groups.append(tuple(order[first:end]))
            reached = end
    return tuple(groups)


def delong_test(labels: npt.ArrayLike, scores_a: Values, scores_b: Values) -> DelongTest:
    """Test whether two classifiers have the same AUC, by their scores for the same instances. O(n log n).

    labels              1/0, 1/-1 or true/false, one per instance
    scores_a, scores_b  the scores of both classifiers for the same instances

    DeLong et al. 1988, by placements (Sun & Xu 2014). Raises InputError for arrays of different lengths,
    values that are no finite numbers, numbers that no float64 holds, or fewer than two instances of a class.

    >>> test = delong_test([0, 0, 0, 1, 1, 1], [.1, .2, .6, .5, .8, .9], [.4, .1, .7, .3, .5, .9])
    >>> round(test.auc_a, 3), round(test.auc_b, 3), round(test.p_value, 3)
    (0.889, 0.667, 0.157)
    """
    return Placements.of(labels, [scores_a, scores_b]).test(0, 1)


@dataclass(frozen=True, eq=False)
class Placements:
    """The placements of the instances of each class among those of the other class, for k classifiers.

    of_positives  [k, positives]: the share of negatives that score below each, ties half
    of_negatives  [k, negatives]: the share of positives that score above each

    Each pair is tested from its placements in O(n), so that k classifiers cost O(k n log n + k^2 n).
    """

    of_positives: FloatArray
    of_negatives: FloatArray

    @classmethod
    def of(cls, labels: npt.ArrayLike, scores: Sequence[Values] | FloatArray) -> Placements:
        """Rank the scores of k classifiers for the same n instances, [k, n]; see `delong_test`."""
        truth = as_array("labels", labels)
        columns = np.array(
            [as_score_numbers("scores", each, "a score is a finite number") for each in scores]
        )
        if truth.ndim != 1 or columns.shape[1:] != truth.shape:
            raise InputError(
                f"labels have the shape {truth.shape} and the scores {columns.shape[1:]}: give one of each "
                "for every instance"
            )
        if not np.isfinite(columns).all():
            raise InputError("a score is not a finite number; leave such instances out of both")
        is_positive = as_binary(truth, "give 1 for positive and 0 for negative") == 1
        positives, negatives = int(is_positive.sum()), int((~is_positive).sum())
        if min(positives, negatives) < 2:
            raise InputError(
                f"{positives} positive and {negatives} negative instances: an AUC has a variance from two "
                "of each"
            )
        overall = scipy.stats.rankdata(columns, axis=1)
        # The counts are the negatives below each positive and the positives below each negative.
        above = overall[:, is_positive] - scipy.stats.rankdata(columns[:, is_positive], axis=1)
        below = overall[:, ~is_positive] - scipy.stats.rankdata(columns[:, ~is_positive], axis=1)
        return cls(above / negatives, 1 - below / positives)

    def test(self, a: int, b: int) -> DelongTest:
        """Test two of the classifiers by the variance of the difference of their placements. O(n)."""
        auc_a, auc_b = (float(self.of_positives[each].mean()) for each in (a, b))
        parts = (each[a] - each[b] for each in (self.of_positives, self.of_negatives))
        error = math.sqrt(sum(float(part.var(ddof=1)) / len(part) for part in parts))
        difference = auc_a - auc_b
        if error > 0:
            statistic = difference / error
        else:  # both rank without mistakes, or both make the same mistakes
            statistic = 0.0 if difference == 0 else math.copysign(math.inf, difference)
        return DelongTest(auc_a, auc_b, error, statistic, 2 * float(scipy.special.ndtr(-abs(statistic))))


def holm(p_values: Values) -> FloatArray:
    """Return `p_values` adjusted for all of these tests (Holm 1979), in the same order. O(n log n).

    Rejecting the nulls with adjusted p-values <= alpha rejects any true null with probability at most alpha.

    >>> holm([.01, .04, .03]).tolist()
    [0.03, 0.06, 0.06]
    """
    given = np.asarray(p_values, np.float64)
    if given.ndim != 1 or not ((given >= 0) & (given <= 1)).all():
        raise InputError("p-values are between 0 and 1, in one row")
    order = np.argsort(given, kind="stable")
    steps = given[order] * np.arange(len(given), 0, -1)
    adjusted = np.empty_like(given)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted
