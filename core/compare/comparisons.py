"""Comparisons of learners over folds or streams: the tests of `significance`, as rows.

At a checkpoint every learner has a value of a measure in every fold. Each pair of learners is tested over the
folds in which both have a value (sign test, Wilcoxon's signed ranks). All learners together are tested over
the folds in which all have a value (Friedman), with the critical difference of their average ranks (Nemenyi).
If a test cannot be made, its row says why. McNemar's and DeLong's test are made in single folds
(`fold_pairs`).

Every p-value is for a single test of one pair. `p_holm` is corrected for all pairs of the same test, measure,
fold and checkpoint. No p-value is corrected for tests at many checkpoints, except `p_anytime`. No p-value is
corrected for folds that share one stream.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import combinations
from typing import NamedTuple, TypeVar

import numpy as np

from ..arrays import FloatArray
from ..errors import ConfigError, InputError
from ..rows.columns import measure_of
from ..rows.measure_table import CLASS_TABLE, MEASURE_TABLE
from .significance import SignTest, WilcoxonTest, check_level, friedman_nemenyi, holm, sign_test, wilcoxon

LOWER_IS_BETTER = frozenset(measure.name for measure in MEASURE_TABLE if measure.better == "lower")
"""Measures whose smaller values are better."""

OF_CLASSES = tuple(measure.name for measure in CLASS_TABLE)
"""Measures that only models with a score of each class have, in the row of all classes."""

COMPARED = frozenset(measure.name for measure in (*MEASURE_TABLE, *CLASS_TABLE) if measure.better)
"""Measures by which learners can be compared: of two values, one is better."""

FEW_FOLDS = 6
"""The least number of pairs with which the sign test or Wilcoxon's test can reach the level .05."""


class ComparisonRow(NamedTuple):
    """One test of learners, or of models, at one checkpoint.

    (checkpoint, slice, measure, test, learner_a, learner_b) is its identity.

    checkpoint           the ordinal of the compared rows, or of their moment.
    time, seq            the greatest of the compared rows; time is in microseconds UTC, or None if the rows
                         have no times.
    slice                "" for tests over folds; such as "fold=3" for "mcnemar" and "delong", which are tests
                         in one fold.
    measure              the measure that was compared.
    learner_a, learner_b the learners that are compared; "" for "friedman", which compares all learners
    test                 "sign", "wilcoxon", "friedman", "nemenyi", "mcnemar" or "delong"
    folds                number of folds in which all compared learners have a value
    statistic, p_value   the statistic and the p-value of the test; for "nemenyi" the difference of the
                         average ranks, and no p-value
    p_anytime            for "mcnemar", a p-value that holds at all checkpoints up to this one at once
                         (`McnemarEvidence`)
    p_holm               p_value, corrected for all pairs of this test
    wins_a, wins_b       the numbers of folds in which learner a, or learner b, was better; for "mcnemar", the
                         numbers of instances that only the other learner got wrong
    rank_a, rank_b       the average ranks of the two learners, 1 is best; only for "nemenyi"
    critical_difference  the difference above which two average ranks differ at level alpha; only for
                         "nemenyi"
    better               the learner that is better at level alpha, by p_holm or by the critical difference;
                         "" if neither learner is better
    alpha                the level of the test
    reason               why there is no result, or why the result needs care; None if there is no remark
    """

    checkpoint: int
    time: int | None
    seq: int
    slice: str
    measure: str
    learner_a: str
    learner_b: str
    test: str
    folds: int
    statistic: float | None
    p_value: float | None
    p_anytime: float | None
    p_holm: float | None
    wins_a: int | None
    wins_b: int | None
    rank_a: float | None
    rank_b: float | None
    critical_difference: float | None
    better: str
    alpha: float
    reason: str | None


class FoldMean(NamedTuple):
    """A measure of a learner at a checkpoint, over the folds that have a value.

    (checkpoint, model, measure) is its identity.

    checkpoint          the ordinal of the rows
    time, seq           the greatest of the rows; time is in microseconds UTC, or None if the rows have no
                        times
    model               the name of the learner
    measure             the name of the measure
    folds               number of folds that have a value
    mean, least, greatest
                        the mean of the folds' values
    standard_deviation  the standard deviation of the folds' values (divided by folds - 1); None for a single
                        fold
    """

    checkpoint: int
    time: int | None
    seq: int
    model: str
    measure: str
    folds: int
    mean: float
    standard_deviation: float | None
    least: float
    greatest: float


class Checkpoint(NamedTuple):
    """The checkpoint of a comparison: `ComparisonRow` describes the fields."""

    checkpoint: int
    time: int | None
    seq: int


DESCRIPTIVE = "descriptive: folds share one stream"
"""The remark on Friedman's test and the critical difference over folds of one stream."""


def blank_row(
    at: Checkpoint, slice: str, measure: str, test: str, learner_a: str, learner_b: str, folds: int,  # noqa: A002
    alpha: float, reason: str | None,
) -> ComparisonRow:  # fmt: skip
    """Return the row of a test without a result; `reason` says why."""
    return ComparisonRow(
        *at, slice, measure, learner_a, learner_b, test, folds, *(None,) * 9, "", alpha, reason
    )


def leader(row: ComparisonRow, margin: float) -> str:
    """Return the name of the learner that leads in a row, by the margin of the first learner over the second.

    The name is "" if neither learner leads.
    """
    return row.learner_a if margin > 0 else row.learner_b if margin < 0 else ""


def noted(row: ComparisonRow, note: str) -> ComparisonRow:
    """Return the row with a note behind its reason."""
    return row._replace(reason=note if row.reason is None else f"{row.reason}; {note}")


def compare_learners(
    learners: Sequence[str],
    values: FloatArray,
    measure: str,
    at: Checkpoint,
    alpha: float = 0.05,
    *,
    of_one_stream: bool = False,
) -> list[ComparisonRow]:
    """Return the rows of tests of k learners over n folds.

    First come the tests of pairs, sorted by test, then Friedman's test, then Nemenyi's tests.

    values         float64[k, n] of the measure, NaN where the measure is undefined
    of_one_stream  whether the folds share one stream: Friedman's and Nemenyi's rows then say that they are
                   descriptive

    O(k^2 (n^3 + k)). Raises ConfigError for a wrong alpha or a measure not in `COMPARED`, InputError for
    fewer than two learners or folds.

    >>> values = np.array([[.81, .82, .85, .80, .83, .84], [.80, .81, .82, .78, .80, .79]])
    >>> rows = compare_learners(["tree", "bayes"], values, "auc", Checkpoint(0, None, 1000))
    >>> [(row.test, row.wins_a, row.better) for row in rows][:2]
    [('sign', 6, 'tree'), ('wilcoxon', 6, 'tree')]
    """
    check_level(alpha)
    check_measure(measure)
    if values.shape[:1] != (len(learners),) or values.ndim != 2:
        raise InputError(f"values of the shape {values.shape} for {len(learners)} learners: give [k, n]")
    if min(values.shape) < 2:
        raise InputError(
            f"{len(learners)} learners over {values.shape[1]} folds: a comparison needs two of both"
        )
    signed = -values if (measure_of(measure) or measure) in LOWER_IS_BETTER else values
    pairs = [
        _pair(learners, signed, pair, measure, at, alpha) for pair in combinations(range(len(learners)), 2)
    ]
    rows = [row for of_test in zip(*pairs, strict=True) for row in corrected(of_test)]
    return rows + _of_all(learners, signed, measure, at, alpha, DESCRIPTIVE if of_one_stream else None)


_Comparison = TypeVar("_Comparison", bound=Hashable)


def found_since(found: Iterable[tuple[_Comparison, int, str]]) -> dict[_Comparison, int]:
    """Return, for every comparison, the first checkpoint since which its result has not changed.

    found  (comparison, checkpoint, better learner) for each row, in order of checkpoints; a comparison is any
           key

    O(n).

    >>> found_since([("ab", 0, "a"), ("ab", 1, ""), ("ab", 2, "a"), ("ab", 3, "a")])
    {'ab': 2}
    """
    since: dict[_Comparison, tuple[int, str]] = {}
    for comparison, checkpoint, better in found:
        if comparison not in since or since[comparison][1] != better:
            since[comparison] = checkpoint, better
    return {comparison: checkpoint for comparison, (checkpoint, _) in since.items()}


def last_usable(folds: Iterable[tuple[int, int]]) -> tuple[int, int] | None:
    """Return the last checkpoint with enough folds for tests, and its number of folds.

    folds  (checkpoint, number of folds in which all compared learners have a value), of any number of tests

    If some folds end early, the last checkpoints have few folds or none, and no test there can show a
    difference. FEW_FOLDS are enough folds; if no checkpoint has so many, the most folds of any checkpoint are
    enough. None if no checkpoint has two folds. O(n).

    >>> last_usable([(0, 8), (1, 8), (2, 3), (3, 0)]), last_usable([(0, 4), (1, 4)]), last_usable([(0, 1)])
    ((1, 8), (1, 4), None)
    """
    most: dict[int, int] = {}
    for checkpoint, number in folds:
        most[checkpoint] = max(most.get(checkpoint, 0), number)
    enough = min(FEW_FOLDS, max(most.values(), default=0))
    if enough < 2:
        return None
    last = max(checkpoint for checkpoint, number in most.items() if number >= enough)
    return last, most[last]


def check_measure(measure: str) -> None:
    """Raise ConfigError unless learners can be compared by a measure (one of `COMPARED`)."""
    if (measure_of(measure) or measure) not in COMPARED:
        raise ConfigError(
            f"measure {measure!r} does not say who is better; compare by one of {', '.join(sorted(COMPARED))}"
        )


def _too_few(folds: int, whose: str) -> str:
    have = "1 fold has" if folds == 1 else f"{folds} folds have"
    return f"{have} a value of {whose}, and two are needed"


def _pair(
    learners: Sequence[str], signed: FloatArray, pair: tuple[int, int], measure: str, at: Checkpoint,
    alpha: float,
) -> tuple[ComparisonRow, ComparisonRow]:  # fmt: skip
    """Return the rows of the sign test and of Wilcoxon's test of two learners."""
    a, b = signed[list(pair)]
    known = np.isfinite(a) & np.isfinite(b)
    folds = int(known.sum())
    names = learners[pair[0]], learners[pair[1]]
    blank = blank_row(at, "", measure, "sign", *names, folds, alpha, _too_few(folds, "both"))
    if folds < 2:
        return blank, blank._replace(test="wilcoxon")
    signs, ranks = sign_test(a[known], b[known]), wilcoxon(a[known], b[known])
    both = blank._replace(
        wins_a=signs.wins_a,
        wins_b=signs.wins_b,
        reason="fewer than 6 folds: no outcome reaches .05" if folds < FEW_FOLDS else None,
    )

    def row(test: str, found: SignTest | WilcoxonTest, margin: float) -> ComparisonRow:
        better = leader(both, margin)
        return both._replace(test=test, statistic=found.statistic, p_value=found.p_value, better=better)

    return (
        row("sign", signs, signs.wins_a - signs.wins_b),
        row("wilcoxon", ranks, ranks.rank_sum_a - ranks.rank_sum_b),
    )


def corrected(rows: Sequence[ComparisonRow]) -> list[ComparisonRow]:
    """Return rows of one test with p-values corrected for all of these rows (Holm).

    `better` must name the leading learner of each row; the name stays if the lead is significant, else it
    becomes "".
    """
    adjusted = adjusted_of([row.p_value for row in rows])
    return [
        row._replace(p_holm=p, better=row.better if p is not None and p <= row.alpha else "")
        for row, p in zip(rows, adjusted, strict=True)
    ]


def adjusted_of(p_values: Sequence[float | None]) -> list[float | None]:
    """Return p-values, each corrected for the number of all of them (Holm).

    None, for a test without a result, stays None.
    """
    adjusted = iter(holm([p for p in p_values if p is not None]).tolist())
    return [None if p is None else next(adjusted) for p in p_values]


def _of_all(
    learners: Sequence[str], signed: FloatArray, measure: str, at: Checkpoint, alpha: float, note: str | None
) -> list[ComparisonRow]:
    table = signed[:, np.isfinite(signed).all(axis=0)].T
    folds = len(table)
    blank = blank_row(at, "", measure, "friedman", "", "", folds, alpha, _too_few(folds, "all learners"))
    if folds < 2:
        return [blank]
    found = friedman_nemenyi(table, alpha)
    rows = [blank._replace(statistic=found.statistic, p_value=found.p_value, reason=note)]
    for a, b in combinations(range(len(learners)), 2):
        difference = found.ranks[b] - found.ranks[a]
        better = learners[a] if difference > 0 else learners[b]
        rows.append(
            rows[0]._replace(
                learner_a=learners[a], learner_b=learners[b], test="nemenyi", statistic=difference,
                p_value=None, rank_a=found.ranks[a], rank_b=found.ranks[b],
                critical_difference=found.critical_difference,
                better=better if abs(difference) > found.critical_difference else "",
            )
        )  # fmt: skip
    return rows
