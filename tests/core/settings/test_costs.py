"""The costs of the H-measure: checked when they are made, each with one spelling."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import rocsteady as rs
from hypothesis import given
from hypothesis import strategies as st
from rocsteady.core.settings.costs import parse_cost

from tests.support.invariants.refusals import assert_refused

positive_numbers = st.floats(1e-6, 1e6)
costs = st.one_of(
    st.builds(rs.BetaCost, positive_numbers, positive_numbers),
    st.just(rs.UniformCost()),
    st.builds(rs.SeverityCost, st.one_of(st.none(), st.just("balanced"), positive_numbers)),
)


@given(costs)
def test_parsing_undoes_spelling(cost: Any) -> None:
    assert parse_cost(str(cost)) == cost


def test_spellings_are_those_of_the_command_line() -> None:
    spelled = {
        "beta:2,2": rs.BetaCost(2, 2), "beta:0.5,3": rs.BetaCost(0.5, 3), "uniform": rs.UniformCost(),
        "severity": rs.SeverityCost(), "severity:0.1": rs.SeverityCost(0.1),
        "severity:balanced": rs.SeverityCost("balanced"),
    }  # fmt: skip
    assert {text: str(choice) for text, choice in spelled.items()} == {text: text for text in spelled}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: rs.BetaCost(0, 2), ["BetaCost", "a=0", "> 0"]),
        (lambda: rs.BetaCost(2, -1), ["BetaCost", "b=-1", "> 0"]),
        (lambda: rs.BetaCost(math.nan), ["BetaCost", "a=nan", "finite"]),
        (lambda: rs.BetaCost(math.inf), ["BetaCost", "a=inf", "finite"]),
        (lambda: rs.SeverityCost(0), ["SeverityCost", "ratio=0", "'balanced' or None"]),
        (lambda: rs.SeverityCost("even"), ["SeverityCost", "ratio='even'", "> 0"]),
        (lambda: parse_cost("beta:2"), ["cost 'beta:2'", "beta:A,B"]),
        (lambda: parse_cost("beta:2,x"), ["cost 'beta:2,x'", "'x'", "number"]),
        (lambda: parse_cost("severity:much"), ["cost 'severity:much'", "'much'"]),
        (lambda: parse_cost("free"), ["cost 'free'", "severity:balanced"]),
    ],
)
def test_a_wrong_cost_names_field_value_and_remedy(make: Callable[[], Any], words: list[str]) -> None:
    assert_refused(make, words)
