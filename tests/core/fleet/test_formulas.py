"""The numbers of a roll-up row: metafor's formulas, and simulations that could refute their promises."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.fleet.formulas import (
    DEPENDENT,
    FEW_EVENTS,
    NO_MEMBER,
    NO_WIDTH,
    ONE_MEMBER,
    WEIGHTS,
    roll_up_numbers,
    variances,
)
from rocsteady.core.rows.columns import reasons_by_measure
from scipy.stats import norm, rankdata

from tests.support.oracles.roll_ups import numbers
from tests.support.thorough import THOROUGH, examples

MEMBERS = st.lists(
    st.tuples(
        st.one_of(st.sampled_from([0.0, 0.5, 0.8, 1.0]), st.floats(0, 1)),
        st.one_of(st.sampled_from([0.0, 0.0004, 0.01]), st.floats(1e-8, 0.05)),
        st.integers(1, 5_000),
        st.integers(1, 5_000),
    ),
    max_size=12,
)


def found_of(members, confidence=0.95, dependent=False):
    columns = np.array([member[1:] for member in members], np.float64).reshape(-1, 4).T
    return roll_up_numbers([member[0] for member in members], *columns, confidence, dependent=dependent)


@settings(max_examples=examples(400), deadline=None)
@given(MEMBERS, st.sampled_from([0.5, 0.95, 0.999]), st.booleans())
def test_the_numbers_are_those_of_metafors_formulas(members, confidence, dependent):
    named = [(f"m{number:02}", *map(float, member)) for number, member in enumerate(members)]
    found = found_of(named, confidence, dependent)
    expected = numbers(named, confidence, dependent)
    for name, value in expected.items():
        if name in ("worst", "best"):  # gaps that differ by rounding alone may be in another order
            gap = found[f"{name}_gap"]
            assert (gap is None) == (value is None)
            assert gap is None or math.isclose(gap, expected[f"{name}_gap"], abs_tol=1e-9)
        elif (
            name.startswith(("worst_", "best_")) and found[name.split("_")[0]] != expected[name.split("_")[0]]
        ):
            continue
        elif value is None or isinstance(value, int):
            assert found[name] == value, name
        else:
            assert math.isclose(found[name], value, rel_tol=1e-7, abs_tol=1e-9), name


BCG = (
    (4, 119, 11, 128), (6, 300, 29, 274), (3, 228, 11, 209), (62, 13536, 248, 12619), (33, 5036, 47, 5761),
    (180, 1361, 372, 1079), (8, 2537, 10, 619), (505, 87886, 499, 87892), (29, 7470, 45, 7232),
    (17, 1699, 65, 1600), (186, 50448, 141, 27197), (5, 2493, 3, 2338), (27, 16886, 29, 17825),
)  # fmt: skip
"""Trials of the BCG vaccine (Colditz 1994, metafor's dat.bcg): cases and others, treated and not."""


def test_the_figures_of_metafors_manual_come_out():
    """The log risk ratios of dat.bcg, moved and scaled into [0, 1], which the formulas allow for.

    `rma(yi, vi, method="DL")` says tau^2 0.3088, I^2 92.12%, Q 152.2330 and the estimate -0.7141 with the
    interval [-1.0644, -0.3638].
    """
    scale, middle = 0.05, 0.6
    members = []
    for number, (cases, others, untreated, healthy) in enumerate(BCG):
        treated, control = cases + others, untreated + healthy
        ratio = math.log(cases / treated / (untreated / control))
        variance = 1 / cases - 1 / treated + 1 / untreated - 1 / control
        members.append((f"{number:02}", middle + scale * ratio, scale**2 * variance, 500.0, 500.0))
    found = found_of(members)
    assert found["heterogeneity_q"] == pytest.approx(152.2330, abs=5e-5)
    assert found["heterogeneity_p"] < 1e-4
    assert found["i2"] == pytest.approx(0.9212, abs=5e-5)
    assert found["tau2"] / scale**2 == pytest.approx(0.3088, abs=5e-5)
    unscaled = [(found[f"auc_random{end}"] - middle) / scale for end in ("", "_low", "_high")]
    assert unscaled == pytest.approx([-0.7141, -1.0644, -0.3638], abs=5e-5)


def test_groups_of_none_and_of_one_are_null_where_nothing_can_be_said():
    none = found_of([])
    assert {value for name, value in none.items() if name != "reason"} == {None}
    assert {*reasons_by_measure(none["reason"]).values()} == {NO_MEMBER}
    one = found_of([("a", 0.8, 0.01, 50.0, 100.0)])
    means = ["auc_mean", "auc_by_events", "auc_median"]
    assert {one[name] for name in means} == {0.8}
    assert one["auc_random"] is one["heterogeneity_q"] is one["worst"] is one["members_below"] is None
    assert reasons_by_measure(one["reason"])["worst_p"] == ONE_MEMBER


def test_a_perfect_member_counts_in_plain_means_alone():
    members = [("a", 0.8, 0.01, 50.0, 100.0), ("b", 0.7, 0.01, 50.0, 100.0), ("c", 1.0, 0.0, 50.0, 100.0)]
    found = found_of(members)
    assert found["auc_mean"] == pytest.approx(2.5 / 3)
    assert found["auc_random"] == pytest.approx(0.75)
    assert found["best"] == "a"
    assert reasons_by_measure(found["reason"])["auc_mean_low"] == NO_WIDTH
    perfect = found_of(members[2:])
    assert perfect["auc_mean"] == 1.0
    assert perfect["auc_random"] is perfect["heterogeneity_p"] is None
    assert reasons_by_measure(perfect["reason"])["auc_random"] == NO_MEMBER


def test_a_heavy_member_leaves_the_mean_of_the_others_its_digits():
    light = [(f"m{place}", 0.6 + 0.1 * place, 0.01, 50.0, 50.0) for place in range(3)]
    found = found_of([*light, ("heavy", 0.9, 1e-28, 50.0, 50.0)])
    assert found["best"] == "heavy"
    assert found["best_gap"] == pytest.approx(0.2, abs=1e-12)


def test_masses_of_any_size_give_finite_means():
    found = found_of([("a", 0.8, 0.01, 1e300, 1e300), ("b", 0.6, 0.01, 1e-300, 1e-300)])
    assert found["auc_by_events"] == 0.8


def test_a_row_says_where_its_tests_and_weights_are_to_be_read_with_care():
    few = reasons_by_measure(
        found_of([("a", 0.7, 0.01, 99.0, 500.0), ("b", 0.6, 0.01, 500.0, 500.0)])["reason"]
    )
    assert few["heterogeneity_p"] == few["worst_p"] == FEW_EVENTS
    high = [(f"m{place:02}", 0.95, 0.0004, 200.0, 500.0) for place in range(40)]
    assert reasons_by_measure(found_of(high)["reason"])["auc_random"] == WEIGHTS
    assert found_of([("a", 0.7, 1e-4, 500.0, 500.0), ("b", 0.6, 1e-4, 500.0, 500.0)])["reason"] is None


def test_dependent_members_have_no_test_of_their_spread():
    found = found_of([("a", 0.8, 0.01, 500.0, 500.0), ("b", 0.7, 0.01, 500.0, 500.0)], dependent=True)
    assert found["heterogeneity_p"] is found["auc_random_low"] is None
    assert reasons_by_measure(found["reason"])["heterogeneity_p"] == DEPENDENT


def test_the_variance_comes_from_the_side_that_was_not_clipped():
    auc, low, high = (
        np.array([0.97, 0.02, 0.5, 1.0]),
        np.array([0.92, 0.0, 0.0, 1.0]),
        np.array([1.0, 0.09, 1.0, 1.0]),
    )
    found = variances(auc, low, high, 0.95)
    z = norm.ppf(0.975)
    assert found[:2] == pytest.approx([(0.05 / z) ** 2, (0.07 / z) ** 2])
    assert math.isnan(found[2])
    assert found[3] == 0.0


# ---- simulations

RUNS = 2_000 if THOROUGH else 800
"""Fleets of a simulation."""


def measured(positives, negatives):
    """AUC and DeLong's variance of each row of scores: float64[k, P] and float64[k, N]."""
    p = positives.shape[1]
    n = negatives.shape[1]
    both = rankdata(np.concatenate([positives, negatives], axis=1), axis=1)
    below = (both[:, :p] - rankdata(positives, axis=1)) / n
    above = 1 - (both[:, p:] - rankdata(negatives, axis=1)) / p
    return below.mean(1), below.var(1, ddof=1) / p + above.var(1, ddof=1) / n


def fleets(rng, runs, k, p, n, auc, shared=0.0):
    """Fleets of k models of one AUC; `shared` is the correlation of their scores, over the same events."""
    shift = norm.ppf(auc) * math.sqrt(2)
    for _ in range(runs):
        scores = []
        for size, mean in ((p, shift), (n, 0.0)):
            common = rng.normal(size=size)
            scores.append(
                mean + math.sqrt(shared) * common + math.sqrt(1 - shared) * rng.normal(size=(k, size))
            )
        aucs, variance = measured(*scores)
        yield [(f"m{place:03}", *pair, p, n) for place, pair in enumerate(zip(aucs, variance, strict=True))]


def within(count, runs, share):
    """Whether a count of runs is at most two standard errors below the share that was promised."""
    return count >= runs * share - 2 * math.sqrt(runs * share * (1 - share))


@pytest.mark.slow
@pytest.mark.parametrize(("k", "p", "auc"), [(5, 30, 0.75), (30, 30, 0.9), (30, 300, 0.75)])
def test_plain_means_cover_the_auc_of_independent_members(k, p, auc):
    held = dict.fromkeys(("auc_mean", "auc_by_events"), 0)
    for members in fleets(np.random.default_rng(k + p), RUNS, k, p, 3 * p, auc):
        found = found_of(members)
        for name in held:
            held[name] += found[f"{name}_low"] <= auc <= found[f"{name}_high"]
    assert all(within(count, RUNS, 0.94) for count in held.values()), held


@pytest.mark.slow
@pytest.mark.parametrize(("k", "p", "auc"), [(5, 300, 0.75), (30, 300, 0.75), (30, 1_000, 0.8)])
def test_no_remark_means_that_tests_and_weighted_means_hold_their_level(k, p, auc):
    held = spread = named = 0
    for members in fleets(np.random.default_rng(k + p), RUNS, k, p, 3 * p, auc):
        found = found_of(members)
        assert found["reason"] is None
        held += found["auc_random_low"] <= auc <= found["auc_random_high"]
        spread += found["heterogeneity_p"] < 0.05
        named += found["members_below"] + found["members_above"] > 0
    assert within(held, RUNS, 0.93), held
    assert within(RUNS - spread, RUNS, 0.935), spread
    assert within(RUNS - named, RUNS, 0.935), named


@pytest.mark.slow
@pytest.mark.parametrize("shared", [0.5, 0.95])
def test_the_bound_covers_dependent_members_and_independence_would_not(shared):
    auc = 0.75
    held = alone = 0
    for members in fleets(np.random.default_rng(7), RUNS, 20, 100, 300, auc, shared):
        bound, plain = found_of(members, dependent=True), found_of(members)
        held += bound["auc_mean_low"] <= auc <= bound["auc_mean_high"]
        alone += plain["auc_mean_low"] <= auc <= plain["auc_mean_high"]
    assert within(held, RUNS, 0.95), held
    assert alone < 0.7 * RUNS, alone


@pytest.mark.slow
def test_the_interval_of_the_worst_gap_holds_although_the_worst_was_chosen():
    held = 0
    for members in fleets(np.random.default_rng(11), RUNS, 20, 200, 600, 0.75):
        found = found_of(members)
        held += found["worst_gap_low"] <= 0 <= found["worst_gap_high"]
    assert within(held, RUNS, 0.94), held


@pytest.mark.slow
def test_a_member_that_is_worse_is_found():
    rng = np.random.default_rng(3)
    found = 0
    for members in fleets(rng, 100, 30, 300, 900, 0.8):
        fallen = next(fleets(rng, 1, 1, 300, 900, 0.7))[0]
        row = found_of([*members[1:], ("fallen", *fallen[1:])])
        found += row["worst"] == "fallen" and row["members_below"] == 1
    assert found >= 80
