"""Rules on pairs: they open and close at the rows that the columns say, for each pair apart."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import rocsteady as rs
from hypothesis import given
from hypothesis import strategies as st
from rocsteady.core.alerts.table import AlertTable
from rocsteady.core.errors import ConfigError, InputError
from rocsteady.core.rows.pairs import PAIR_NUMBERS, models_of, pair_name
from rocsteady.core.rows.roll_ups import GROUP_NUMBERS


def rows_of(model="v2", against="v1", seed=1, better=0.6, slice_=""):
    """Rows of a challenger that is better than the champion in the first half, and worse in the second."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, 6_000)
    shift = np.where(np.arange(6_000) < 3_000, better, -better)
    scores, others = rng.normal(labels * (1 + shift)), rng.normal(labels)
    pair = rs.PairEvaluator(
        window=rs.LastEvents(500), every=rs.EveryEvents(100), model=model, against=against, slice=slice_
    )
    return pair.update(labels, scores, others)


def watched(rule, rows):
    return [(alert.model, alert.state, alert.row) for alert in AlertTable([rs.parse_alert(rule)]).watch(rows)]


@pytest.mark.parametrize("column", PAIR_NUMBERS)
def test_an_alert_is_open_while_the_column_holds(column):
    rows = rows_of()
    values = [getattr(row, column) for row in rows]
    known = [value for value in values if value is not None]
    limit = float(np.median(known))
    holds, turns = [False], []
    for row, value in zip(rows, values, strict=True):
        holds.append(holds[-1] if value is None else value > limit)
        turns += [("v2 against v1", "open" if holds[-1] else "closed", row.row)] * (holds[-1] != holds[-2])
    assert watched(f"{column} > {limit!r}", rows) == turns
    assert turns or column in ("only_model", "only_against", "anytime_blocks")


def test_the_limits_of_the_interval_are_the_verdicts():
    rows = rows_of()
    first = next(row.row for row in rows if row.verdict == "better")
    assert watched("anytime_low > 0", rows) == [("v2 against v1", "open", first)]
    worse = rows_of(better=-0.6)
    first = next(row.row for row in worse if row.verdict == "worse")
    assert watched("anytime_high < 0", worse) == [("v2 against v1", "open", first)]
    assert rows[-1].verdict == "contradicted"
    assert rows[-1].anytime_low is None  # so the alert stays open


def test_the_difference_of_two_windows_is_compared_and_only_of_windows_without_a_common_instance():
    rows = rows_of()
    [(_, state, row), *_] = watched("difference drops by 0.2 against 2 rows", rows)
    assert state == "open"
    falls = [
        later.row
        for before, later in ((rows[place - 5], rows[place]) for place in range(5, len(rows)))
        if before.difference - later.difference > 0.2
    ]
    assert falls[0] == row


def test_one_model_against_two_champions_and_slices_are_pairs_of_their_own():
    pairs = [rows_of(against="v1"), rows_of(against="v0", seed=2), rows_of(slice_="country=NZ", seed=3)]
    together = [row for part in zip(*pairs, strict=True) for row in part]
    rule = "difference_high < 0 for 2 rows"
    apart = sorted(alert for rows in pairs for alert in watched(rule, rows))
    assert sorted(watched(rule, together)) == apart
    assert {model for model, _, _ in apart} == {"v2 against v1", "v2 against v0"}


def test_a_test_of_the_model_is_one_of_the_challenger():
    rows = [*rows_of(), *rows_of(model="v3"), *rows_of(slice_="country=NZ")]
    for where, names in (
        ("model = 'v2'", {"v2 against v1"}),
        ("model like 'v*' and slice = ''", {"v2 against v1", "v3 against v1"}),
        ("model = 'v1'", set()),
        ("slice != ''", {"v2 against v1"}),
    ):
        assert {model for model, _, _ in watched(f"difference < 0 where {where}", rows)} == names


PARTS = st.sampled_from(["a", " ", "\\", "against", " against "])
NAME = st.lists(PARTS, max_size=4).map("".join)


@given(NAME, NAME, NAME, NAME)
def test_each_pair_has_a_name_of_its_own(model, against, other, last):
    assert models_of(pair_name(model, against)) == (model, against)
    assert (pair_name(model, against) == pair_name(other, last)) == ((model, against) == (other, last))


def test_a_snapshot_goes_on_as_the_table_that_wrote_it():
    rows = rows_of()
    texts = "difference_high < 0 for 3 rows", "p < 0.01 where model = 'v2'"
    rules = [rs.parse_alert(text) for text in texts]
    whole = AlertTable(rules).watch(rows)
    table, found = AlertTable(rules), []
    for first, end in pairwise(range(0, len(rows) + 1, 6)):
        found += table.watch(rows[first:end])
        table = AlertTable.from_bytes(table.to_bytes(), rules)
    assert found == whole != []


def test_the_message_names_both_models():
    [alert, *_] = AlertTable([rs.parse_alert("difference_high < 0 for 3 rows")]).watch(rows_of())
    assert alert.message.startswith(f"v2 against v1: alert opened at row {alert.row}: difference_high -0.0")
    assert math.isclose(alert.value, rows_of()[alert.row].difference_high)


def measured():
    ev = rs.ModelEvaluator(model="v2", window=rs.LastEvents(50), every=rs.EveryEvents(50))
    return ev.update([0, 1] * 50, np.arange(100) / 100)


@pytest.mark.parametrize(
    ("rule", "rows", "said"),
    [
        ("p < 0.1", measured, "a row was given to rules that watch pair rows, such as a rule on p"),
        ("p < 0.1", lambda: list(measured()), "a row was given to rules that watch pair rows"),
        ("auc < 0.1", rows_of, "a pair row was given to rules that watch rows, such as a rule on auc"),
        ("auc_mean < 0.1", rows_of, "a pair row was given to rules that watch roll-up rows"),
    ],
)
def test_rows_of_another_kind_are_refused(rule, rows, said):
    with pytest.raises(InputError, match=said):
        watched(rule, rows())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("verdict < 0", "anytime_high < 0 is the verdict worse"),
        ("p < 0.1 until auc > 0.5", "auc is a column of rows, and p one of pair rows"),
        ("p < 0.1 until auc_mean > 0.5", "columns of one kind"),
        ("p < 0.1 where group = 'models'", "p is a column of a pair row; test its model or slice"),
        ("anytime_low drops by 0.1 against 7d", "is about all instances; give a limit"),
        ("differenc < 0", "did you mean 'difference'"),
    ],
)
def test_what_no_pair_row_can_satisfy_is_refused(text, said):
    with pytest.raises(ConfigError, match=said):
        rs.parse_alert(text)


def test_a_table_has_rules_of_one_kind():
    with pytest.raises(
        ConfigError, match=r"'p < 0\.1' watches pair rows, and alert 'auc < 0\.5' watches rows"
    ):
        AlertTable([rs.parse_alert("auc < 0.5"), rs.parse_alert("p < 0.1")])


def test_no_kind_of_rows_has_a_column_of_another_kind():
    assert not set(PAIR_NUMBERS) & set(GROUP_NUMBERS)
    assert not set(PAIR_NUMBERS) & set(rs.MeasureRow._fields)
