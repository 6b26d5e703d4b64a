"""The final results of tests and means over folds, and since when each result holds: facts for the page.

The final results are those at the last checkpoint with enough folds (`last_usable`).

Rows of a table may be in any order. If a table holds a comparison twice (a file given twice, a restarted
job), the first of the two rows counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...core.arrays import FloatArray, Int64Array
from ...core.compare.comparisons import (
    COMPARED,
    DESCRIPTIVE,
    LOWER_IS_BETTER,
    Checkpoint,
    found_since,
    last_usable,
)
from ...core.compare.significance import alike
from .report_rows import coded, floats

OVER_FOLDS = ("wilcoxon", "sign", "nemenyi")
"""Tests of a pair over folds, in the order in which the page looks for a leader."""

TESTS = {
    "sign": "sign test",
    "wilcoxon": "Wilcoxon",
    "nemenyi": "Nemenyi",
    "mcnemar": "McNemar",
    "delong": "DeLong",
}
"""Names of tests in the page's tables."""

CHECKPOINTS_DRAWN = 500
"""The most checkpoints whose means a page holds."""

STATISTICS = ("mean", "standard_deviation", "least", "greatest")
"""Statistics of a learner's values over its folds."""


class Finding(NamedTuple):
    """The result of a test of a pair over folds; `since` is the first checkpoint with the same result."""

    p_value: float | None
    p_holm: float | None
    better: str
    since: Checkpoint


class FoldFindings(NamedTuple):
    """The results of a test of a pair that was made in each fold.

    folds               the number of folds
    better_a, better_b  the number of folds in which learner a (b) was better
    p_values, p_holm, p_anytime  the least and the greatest over the folds; None for a test without them
    anytime             the number of folds whose anytime-valid p-value is at most alpha
    """

    folds: int
    better_a: int
    better_b: int
    p_values: tuple[float, float] | None
    p_holm: tuple[float, float] | None
    p_anytime: tuple[float, float] | None
    anytime: int


@dataclass
class Pair:
    """Two learners, and the results by test: over the folds, and within the folds."""

    learner_a: str
    learner_b: str
    wins: tuple[int, int] | None = None
    rank_difference: float | None = None
    over: dict[str, Finding] = field(default_factory=dict)
    within: dict[str, FoldFindings] = field(default_factory=dict)

    @property
    def differs(self) -> bool:
        """Whether a test over folds finds one of the two better."""
        return any(found.better for found in self.over.values())

    def better_ones(self) -> list[tuple[str, list[tuple[Checkpoint, list[str]]]]]:
        """Return the better learner, since when, and by which tests; agreeing tests are one item."""
        by: dict[str, dict[Checkpoint, list[str]]] = {}
        for test in OVER_FOLDS:
            found = self.over.get(test)
            if found is not None and found.better:
                by.setdefault(found.better, {}).setdefault(found.since, []).append(test)
        return [(name, sorted(moments.items())) for name, moments in by.items()]

    def turned(self) -> Pair:
        """Return the same pair with the other learner first."""
        return Pair(
            self.learner_b,
            self.learner_a,
            self.wins and self.wins[::-1],
            None if self.rank_difference is None else -self.rank_difference,
            self.over,
            {
                test: found._replace(better_a=found.better_b, better_b=found.better_a)
                for test, found in self.within.items()
            },
        )


class Friedman(NamedTuple):
    """Friedman's test of all learners by one measure: average ranks, and groups that do not differ."""

    folds: int
    statistic: float | None
    p_value: float | None
    ranks: dict[str, float]
    critical_difference: float | None

    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Return groups of learners that do not differ, as places in `ranks`."""
        if self.critical_difference is None:
            return ()
        return alike(np.array(list(self.ranks.values())), self.critical_difference)


class Leader(NamedTuple):
    """A learner that a test found better than every other, at every checkpoint from `since` on."""

    learner: str
    test: str
    since: Checkpoint


@dataclass
class Compared:
    """The comparisons by one measure at the last checkpoint that has enough folds.

    at, folds         that checkpoint, and the number of its folds
    last, last_folds  the last checkpoint of all, and the number of its folds, which may be smaller
    reasons           remarks on the tests, each with the number of tests it applies to
    """

    measure: str
    at: Checkpoint
    alpha: float
    folds: int
    pairs: list[Pair]
    friedman: Friedman | None
    leader: Leader | None
    reasons: list[tuple[str, int]]
    last: Checkpoint
    last_folds: int

    @property
    def tests(self) -> list[str]:
        """The tests over folds that were made, in the page's order."""
        return [test for test in OVER_FOLDS if any(test in pair.over for pair in self.pairs)]

    @property
    def looked_anytime(self) -> bool:
        """Whether a test within folds has p-values that are valid at any time."""
        return any(found.p_anytime for pair in self.pairs for found in pair.within.values())


def comparisons_of(table: pa.Table | None) -> list[Compared]:
    """Return the comparisons by every measure, sorted by name. O(n log n) in rows of COMPARISON_SCHEMA."""
    if table is None or not table.num_rows:
        return []
    table = _filled(table).sort_by("checkpoint")
    moments = _moments(table)
    names = ("measure", "slice", "test", "learner_a", "learner_b")
    keys = list(zip(*(table.column(name).to_pylist() for name in names), strict=True))
    checkpoints = table.column("checkpoint").to_pylist()
    folds: dict[str, list[tuple[int, int]]] = {}
    for key, checkpoint, number in zip(keys, checkpoints, table.column("folds").to_pylist(), strict=True):
        folds.setdefault(key[0], []).append((checkpoint, 0 if key[1] else number or 0))
    ends = {measure: last_usable(each) or max(each) for measure, each in folds.items()}
    found = zip(keys, checkpoints, table.column("better").to_pylist(), strict=True)
    since = found_since(each for each in found if each[1] <= ends[each[0][0]][0])
    compared = []
    for measure, (checkpoint, _) in sorted(ends.items()):
        here = pc.and_(
            pc.equal(table.column("measure"), measure), pc.equal(table.column("checkpoint"), checkpoint)
        )
        wanted = table.filter(here).drop_columns(["time", "seq"])
        rows = {tuple(row[name] for name in names): row for row in reversed(wanted.to_pylist())}
        last, last_folds = max(folds[measure])
        one = _compared(measure, moments[checkpoint], list(rows.values())[::-1], since, moments)
        if last != checkpoint:
            one.last, one.last_folds = moments[last], last_folds
        compared.append(one)
    return compared


def _filled(table: pa.Table) -> pa.Table:
    """Return the table with "" for null in texts, and null for numbers that are not finite."""
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_string(column.type):
            column = pc.fill_null(column, "")
        elif pa.types.is_floating(column.type):
            column = pc.if_else(pc.is_finite(column), column, None)
        columns[name] = column
    return pa.table(columns)


def _moments(table: pa.Table) -> dict[int, Checkpoint]:
    """Return the checkpoints, each with the greatest time and seq of its rows."""
    times = table.column("time").cast(pa.int64())
    part = pa.table({"checkpoint": table.column("checkpoint"), "time": times, "seq": table.column("seq")})
    greatest = part.group_by("checkpoint").aggregate([("time", "max"), ("seq", "max")])
    columns = (greatest.column(name).to_pylist() for name in ("checkpoint", "time_max", "seq_max"))
    return {moment[0]: Checkpoint(*moment) for moment in zip(*columns, strict=True)}


def _compared(
    measure: str,
    at: Checkpoint,
    rows: Sequence[dict[str, Any]],
    since: dict[tuple[str, ...], int],
    moments: dict[int, Checkpoint],
) -> Compared:
    pairs: dict[tuple[str, str], Pair] = {}
    within: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in rows:
        names = row["learner_a"], row["learner_b"]
        if row["test"] == "friedman":
            continue
        pair = pairs.setdefault(names, Pair(*names))
        if row["slice"]:
            within.setdefault((*names, row["test"]), []).append(row)
        elif row["test"] in OVER_FOLDS:
            first = moments[since[measure, "", row["test"], *names]]
            pair.over[row["test"]] = Finding(row["p_value"], row["p_holm"], row["better"], first)
            if row["test"] == "nemenyi":
                pair.rank_difference = _difference(row)
            elif row["wins_a"] is not None and row["wins_b"] is not None:
                pair.wins = row["wins_a"], row["wins_b"]
    for (one, other, test), of_folds in within.items():
        pairs[one, other].within[test] = _fold_findings(of_folds)
    found = list(pairs.values())
    over = [row for row in rows if not row["slice"]]
    said = (row["reason"].removeprefix(DESCRIPTIVE).removeprefix("; ") for row in rows)
    reasons = Counter(reason for reason in said if reason)
    folds = max((row["folds"] for row in over), default=len({row["slice"] for row in rows}))
    return Compared(
        measure,
        at,
        next((row["alpha"] for row in rows if row["alpha"] is not None), 0.05),
        folds,
        found,
        _friedman(over),
        _leader(found),
        reasons.most_common(),
        at,
        folds,
    )


def _difference(row: dict[str, Any]) -> float | None:
    ranks = row["rank_a"], row["rank_b"]
    return None if None in ranks else ranks[1] - ranks[0]


def _fold_findings(rows: Sequence[dict[str, Any]]) -> FoldFindings:
    a, b, alpha = rows[0]["learner_a"], rows[0]["learner_b"], rows[0]["alpha"] or 0.05

    def ends(name: str) -> tuple[float, float] | None:
        values = [row[name] for row in rows if row[name] is not None]
        return (min(values), max(values)) if values else None

    return FoldFindings(
        len(rows),
        sum(row["better"] == a for row in rows),
        sum(row["better"] == b for row in rows),
        ends("p_value"),
        ends("p_holm"),
        ends("p_anytime"),
        sum(row["p_anytime"] is not None and row["p_anytime"] <= alpha for row in rows),
    )


def _friedman(rows: Sequence[dict[str, Any]]) -> Friedman | None:
    """Return Friedman's test, with the ranks that Nemenyi's rows hold."""
    whole = next((row for row in rows if row["test"] == "friedman"), None)
    ranks: dict[str, float] = {}
    difference = None
    for row in rows:
        if row["test"] != "nemenyi" or _difference(row) is None:
            continue
        ranks |= {row["learner_a"]: row["rank_a"], row["learner_b"]: row["rank_b"]}
        difference = row["critical_difference"]
    if whole is None and not ranks:
        return None
    statistic, p_value = (None, None) if whole is None else (whole["statistic"], whole["p_value"])
    folds = max(row["folds"] for row in rows if row["test"] in ("friedman", "nemenyi"))
    return Friedman(folds, statistic, p_value, ranks, difference)


def _leader(pairs: Sequence[Pair]) -> Leader | None:
    """Return the learner that is better than every other by one test: the first such test in OVER_FOLDS."""
    for test in OVER_FOLDS:
        of: dict[str, list[Finding]] = {}
        for pair in pairs:
            for name in (pair.learner_a, pair.learner_b):
                of.setdefault(name, []).extend([pair.over[test]] if test in pair.over else [])
        for name, findings in of.items():
            if len(findings) == len(of) - 1 and all(finding.better == name for finding in findings):
                return Leader(name, test, max(finding.since for finding in findings))
    return None


@dataclass(frozen=True)
class FoldMeans:
    """Means over folds of L learners, by M measures, at C checkpoints.

    learners, measures  L and M names, sorted.
    moments             the C checkpoints that are kept: all `total` checkpoints unless there were too many.
    values              float64[M, L, 4, C]: STATISTICS, NaN for a missing value.
    folds               int64[M, L, C]: the number of folds with a value.
    """

    learners: list[str]
    measures: list[str]
    moments: list[Checkpoint]
    total: int
    values: FloatArray
    folds: Int64Array

    def end(self, measure: int) -> int:
        """Return the place of the last checkpoint at which every learner has enough folds (`last_usable`)."""
        usable = last_usable(enumerate(self.folds[measure].min(axis=0).tolist()))
        return len(self.moments) - 1 if usable is None else usable[0]

    def latest(self, measure: int, learner: int) -> tuple[float, float, int]:
        """Return mean, standard deviation and folds at the end."""
        end = self.end(measure)
        mean, deviation, _, _ = self.values[measure, learner, :, end].tolist()
        return mean, deviation, int(self.folds[measure, learner, end])

    def best(self, measure: int) -> list[int]:
        """Return the learners with the best mean at the end.

        The list is empty where neither direction is better, or where no learner has a mean.
        """
        name = self.measures[measure]
        means = self.values[measure, :, 0, self.end(measure)]
        if name not in COMPARED or np.isnan(means).all():
            return []
        best = np.nanmin(means) if name in LOWER_IS_BETTER else np.nanmax(means)
        return np.flatnonzero(means == best).tolist()


def means_of(table: pa.Table | None, limit: int = CHECKPOINTS_DRAWN) -> FoldMeans | None:
    """Return means (MEAN_SCHEMA) at `limit` checkpoints at most; None without a row. O(n).

    Of more than `limit` checkpoints, every k-th and the last are kept.
    """
    if table is None or not table.num_rows:
        return None
    moments = sorted(_moments(table).values())
    step = -(-len(moments) // limit)
    kept = moments[::-1][::step][::-1]
    place_of = {moment.checkpoint: place for place, moment in enumerate(kept)}
    names = [coded(pc.fill_null(table.column(name), "")) for name in ("measure", "model")]
    (_, measures), (_, learners) = names
    rows = pc.is_in(table.column("checkpoint"), pa.array(list(place_of), pa.int64()))
    there = np.flatnonzero(rows.to_numpy())[::-1]  # reversed: of two equal rows the first is written last
    codes = [places[there] for places, _ in names]
    checkpoints = [place_of[one] for one in table.column("checkpoint").take(pa.array(there)).to_pylist()]
    values = np.full((len(measures), len(learners), len(STATISTICS), len(kept)), np.nan)
    folds = np.zeros((len(measures), len(learners), len(kept)), np.int64)
    for place, name in enumerate(STATISTICS):
        column = floats(table.column(name))[there]
        values[codes[0], codes[1], place, checkpoints] = np.where(np.isfinite(column), column, np.nan)
    folds[codes[0], codes[1], checkpoints] = floats(table.column("folds"))[there].astype(np.int64)
    return FoldMeans(learners, measures, kept, len(moments), values, folds)
