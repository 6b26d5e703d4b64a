"""Comparisons of learners over folds, against the tests they are made of."""

from __future__ import annotations

import numpy as np
import pytest
from rocsteady.core.compare.comparisons import LOWER_IS_BETTER, Checkpoint, compare_learners
from rocsteady.core.compare.significance import friedman_nemenyi, holm, sign_test, wilcoxon
from rocsteady.core.errors import ConfigError, InputError
from rocsteady.core.rows.measure_table import MEASURES
from rocsteady.pipelines.report.data import MEANINGS

AT = Checkpoint(3, 1_000_000, 5_000)
NAMES = ["a", "b", "c", "d"]


def table(folds=10, seed=0):
    random = np.random.default_rng(seed)
    return random.random((4, folds)) * 0.02 + np.array([0.8, 0.79, 0.79, 0.7])[:, None]


def by_test(rows):
    found = {}
    for row in rows:
        found.setdefault(row.test, []).append(row)
    return found


def test_every_pair_is_tested_and_corrected():
    values = table()
    found = by_test(compare_learners(NAMES, values, "auc", AT))
    assert [(test, len(rows)) for test, rows in found.items()] == [
        ("sign", 6), ("wilcoxon", 6), ("friedman", 1), ("nemenyi", 6),
    ]  # fmt: skip
    for name, test in (("sign", sign_test), ("wilcoxon", wilcoxon)):
        rows = found[name]
        for row in rows:
            a, b = (values[NAMES.index(each)] for each in (row.learner_a, row.learner_b))
            assert (row.p_value, row.statistic) == (test(a, b).p_value, test(a, b).statistic)
            assert (row.wins_a, row.wins_b) == ((a > b).sum(), (a < b).sum())
            assert (row.checkpoint, row.time, row.seq, row.folds) == (*AT, 10)
            leader = row.learner_a if a.mean() > b.mean() else row.learner_b
            assert row.better == (leader if row.p_holm <= 0.05 else "")
        assert [row.p_holm for row in rows] == holm([row.p_value for row in rows]).tolist()
    assert {row.better for row in found["sign"]} > {"a"}
    friedman = friedman_nemenyi(values.T)
    assert found["friedman"][0].p_value == friedman.p_value
    for row in found["nemenyi"]:
        ranks = [friedman.ranks[NAMES.index(each)] for each in (row.learner_a, row.learner_b)]
        assert [row.rank_a, row.rank_b] == ranks
        assert row.critical_difference == friedman.critical_difference
        assert bool(row.better) == (abs(ranks[0] - ranks[1]) > friedman.critical_difference)


@pytest.mark.parametrize("measure", ["log_loss", "aum"])
def test_less_is_better_where_it_is(measure):
    more, less = compare_learners(NAMES, table(), "auc", AT), compare_learners(NAMES, -table(), measure, AT)
    strip = [row._replace(measure="") for row in more]
    assert [row._replace(measure="") for row in less] == strip


def test_directions_are_those_of_the_report():
    lower = {name for name in MEASURES if MEANINGS[name].better == "lower"}
    assert lower | {"fp", "fn"} == LOWER_IS_BETTER


def test_folds_without_a_value_are_left_out_pair_by_pair():
    values = table()
    values[0, 0] = values[1, 1] = np.nan
    found = by_test(compare_learners(NAMES, values, "h", AT))
    folds = {(row.learner_a, row.learner_b): row.folds for row in found["wilcoxon"]}
    assert folds["a", "b"] == 8
    assert folds["a", "c"] == 9
    assert folds["c", "d"] == 10
    assert found["friedman"][0].folds == 8


def test_what_cannot_be_tested_says_why():
    values = table(folds=5)
    rows = compare_learners(NAMES, values, "auc", AT)
    assert {row.reason for row in rows if row.test == "sign"} == {
        "fewer than 6 folds: no outcome reaches .05"
    }
    values[2, 1:] = np.nan
    found = by_test(compare_learners(NAMES, values, "auc", AT))
    (row,) = [each for each in found["sign"] if (each.learner_a, each.learner_b) == ("a", "c")]
    assert (row.p_value, row.better, row.folds) == (None, "", 1)
    assert "two are needed" in row.reason
    assert found["friedman"][0].p_value is None
    assert "nemenyi" not in found


def test_equal_learners_have_p_one():
    found = by_test(compare_learners(["a", "b"], np.full((2, 8), 0.5), "auc", AT))
    assert [rows[0].p_value for test, rows in found.items() if test != "nemenyi"] == [1, 1, 1]
    assert not any(row.better for rows in found.values() for row in rows)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"measure": "prevalence"}, ConfigError, "'prevalence' does not say who is better"),
        ({"alpha": 0}, ConfigError, "alpha=0"),
        ({"learners": ["a"], "values": np.zeros((1, 3))}, InputError, "needs two of both"),
        ({"values": np.zeros((2, 1))}, InputError, "over 1 folds"),
        ({"values": np.zeros((3, 2))}, InputError, "for 2 learners"),
    ],
)
def test_what_is_wrong_is_said(change, error, words):
    given = {"learners": ["a", "b"], "values": np.zeros((2, 4)), "measure": "auc", "at": AT, **change}
    with pytest.raises(error, match=words):
        compare_learners(**given)
