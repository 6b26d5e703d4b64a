"""Gaps between slices of many models: the formulas of roll-up rows, corrected for a whole page."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.fleet.formulas import roll_up_numbers
from rocsteady.core.fleet.gaps import gaps_of_groups
from scipy.stats import chi2, norm

from tests.support.oracles.roll_ups import holm_of
from tests.support.thorough import THOROUGH, at_length, examples

SLICES = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.one_of(st.just(math.nan), st.floats(0.4, 1)),
        st.one_of(st.sampled_from([0.0, math.nan]), st.floats(1e-6, 0.05)),
    ),
    max_size=14,
)


@given(SLICES)
@settings(max_examples=examples(60))
def test_gaps_are_those_of_the_definition_and_corrected_for_the_whole_page(slices):
    groups = [group for group, _, _ in slices]
    auc, variance = (np.array([one[column] for one in slices], np.float64) for column in (1, 2))
    found = gaps_of_groups(auc, variance, groups, 0.9)
    counts = [math.isfinite(a) and v > 0 for a, v in zip(auc, variance, strict=True)]
    raw, spreads = {}, {}
    for group in "ab":
        places = [place for place, one in enumerate(groups) if one == group and counts[place]]
        if len(places) < 2:
            assert group not in found.groups
            continue
        weights = {place: 1 / variance[place] for place in places}
        fixed = sum(weights[p] * auc[p] for p in places) / sum(weights.values())
        q = sum(weights[p] * (auc[p] - fixed) ** 2 for p in places)
        spreads[group] = q, chi2.sf(q, len(places) - 1)
        assert found.groups[group].places == places
        assert found.groups[group].without == groups.count(group) - len(places)
        for place in places:
            others = [p for p in places if p != place]
            total = sum(weights[p] for p in others)
            gap = auc[place] - sum(weights[p] * auc[p] for p in others) / total
            raw[place] = gap, math.sqrt(variance[place] + 1 / total)
    assert [gap is not None for gap in found.of] == [place in raw for place in range(len(slices))]
    p = holm_of([2 * norm.sf(abs(gap) / error) for gap, error in raw.values()])
    z = norm.isf(0.1 / 2 / max(len(raw), 1))
    for (place, (gap, error)), each in zip(raw.items(), p, strict=True):
        low, high = max(-1, gap - z * error), min(1, gap + z * error)
        assert found.of[place] == pytest.approx((gap, low, high, each), rel=1e-6, abs=1e-9)
    of_groups = holm_of([p for _, p in spreads.values()])
    for group, each in zip(spreads, of_groups, strict=True):
        assert found.groups[group].spread.q == pytest.approx(spreads[group][0], rel=1e-6, abs=1e-9)
        assert found.groups[group].p == pytest.approx(each, rel=1e-6, abs=1e-12)


def test_with_one_group_the_numbers_are_those_of_its_roll_up_row():
    rng = np.random.default_rng(2)
    auc, variance, counts = rng.uniform(0.7, 0.9, 9), rng.uniform(1e-4, 1e-3, 9), np.full(9, 500.0)
    names = [f"c={place}" for place in range(9)]
    row = roll_up_numbers(names, auc, variance, counts, counts, 0.95)
    found = gaps_of_groups(auc, variance, ["g"] * 9, 0.95)
    worst = min(range(9), key=lambda place: found.of[place].gap)
    assert names[worst] == row["worst"]
    assert found.of[worst] == tuple(row[f"worst_{end}"] for end in ("gap", "gap_low", "gap_high", "p"))
    spread = found.groups["g"].spread
    assert spread == tuple(row[name] for name in ("heterogeneity_q", "heterogeneity_p", "i2", "tau2"))
    assert found.groups["g"].p == spread.p


def test_no_slices_have_no_gaps():
    assert gaps_of_groups(np.empty(0), np.empty(0), [], 0.95) == ([], {})
    assert gaps_of_groups(np.array([0.8]), np.array([0.01]), ["a"], 0.95) == ([None], {})


@pytest.mark.at_length
def test_a_page_without_a_difference_names_a_slice_or_a_group_as_rarely_as_promised():
    pages = 20_000 if THOROUGH else at_length(6_000, 400)
    rng = np.random.default_rng(3)
    groups = [group for group in range(8) for _ in range(2 + group)]
    named = np.zeros(3)
    for _ in range(pages):
        variance = rng.uniform(1e-5, 1e-3, len(groups))
        found = gaps_of_groups(0.8 + rng.normal(size=len(groups)) * np.sqrt(variance), variance, groups, 0.95)
        named += (
            any(gap.p < 0.05 for gap in found.of),
            any(gap.low > 0 or gap.high < 0 for gap in found.of),
            any(one.p < 0.05 for one in found.groups.values()),
        )
    most = 0.05 + 2.6 * math.sqrt(0.05 * 0.95 / pages)
    assert (named / pages <= most).all(), named / pages
    assert (named > 0).all()
