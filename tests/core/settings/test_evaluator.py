"""Settings of a model are checked when they are made, and have a hash of what changes values."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable
from typing import Any

import pytest
import rocsteady as rs
from rocsteady.core.settings.choices import EvaluatorChoices
from rocsteady.core.settings.evaluator import parse_partial_fpr
from rocsteady.core.settings.table import TableChoices

from tests.support.invariants.refusals import assert_refused


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: rs.EvaluatorSettings(window=rs.Adaptive(signal="brier")), ["brier", "probabilities=True"]),
        (lambda: rs.EvaluatorSettings(window=100), ["window=100", "LastEvents(k)", "Adaptive"]),
        (lambda: rs.EvaluatorSettings(every=100), ["every=100", "EveryEvents(n)", "EverySeconds"]),
        (lambda: rs.EvaluatorSettings(curves=100), ["curves=100", "EveryEvents(n)", "'end'", "None"]),
        (lambda: rs.EvaluatorSettings(curves="often"), ["curves='often'", "EveryEvents(n)", "'end'"]),
        (lambda: rs.EvaluatorSettings(cost="beta:2,2"), ["cost='beta:2,2'", "BetaCost(a, b)"]),
        (lambda: rs.EvaluatorSettings(priors=1.0), ["priors=1.0", "between 0 and 1", "'window'"]),
        (lambda: rs.EvaluatorSettings(priors="half"), ["priors='half'", "'window'"]),
        (lambda: rs.EvaluatorSettings(threshold=math.nan), ["threshold=nan", "finite score"]),
        (lambda: rs.EvaluatorSettings(threshold=math.inf), ["threshold=inf", "finite score"]),
        (lambda: rs.EvaluatorSettings(confidence=95), ["confidence=95", "between 0 and 1"]),
        (lambda: rs.EvaluatorSettings(at_fpr=-0.1), ["at_fpr=-0.1", "between 0 and 1"]),
        (lambda: rs.EvaluatorSettings(at_fpr=1 + 1e-12), ["at_fpr=1.0", "between 0 and 1"]),
        (lambda: rs.EvaluatorSettings(false_positive_cost=0), ["false_positive_cost=0", "between 0 and 1"]),
        (lambda: rs.EvaluatorSettings(partial_fpr=(0.1, 0.1)), ["partial_fpr=(0.1, 0.1)", "lower one first"]),
        (lambda: rs.EvaluatorSettings(partial_fpr=(0, 1.5)), ["partial_fpr=(0, 1.5)", "between 0 and 1"]),
        (lambda: rs.EvaluatorSettings(partial_fpr=(-0.5, 1)), ["partial_fpr=(-0.5, 1)", "between 0 and 1"]),
        (lambda: rs.EvaluatorSettings(partial_fpr=(0, math.nan)), ["partial_fpr=(0, nan)", "(0.0, 0.1)"]),
        (lambda: rs.EvaluatorSettings(partial_fpr=0.1), ["partial_fpr=0.1", "two false positive rates"]),
        (
            lambda: rs.EvaluatorSettings(partial_fpr=(False, True)),
            ["(False, True)", "two false positive rates"],
        ),
        (lambda: parse_partial_fpr("0.1"), ["'0.1'", "0:0.1"]),
        (lambda: parse_partial_fpr("0:some"), ["'0:some'", "'some'", "not a number"]),
        (lambda: rs.EvaluatorSettings(order="chaos"), ["order='chaos'", "'position'", "'arrival'"]),
    ],
)
def test_a_wrong_setting_names_field_value_and_remedy(make: Callable[[], Any], words: list[str]) -> None:
    assert_refused(make, words)


def test_settings_at_their_borders_are_right() -> None:
    assert rs.EvaluatorSettings(at_fpr=0).at_fpr == 0.0
    assert rs.EvaluatorSettings(at_fpr=1).at_fpr == 1.0
    assert rs.LastEvents(1).k == 1
    assert rs.EvaluatorSettings(partial_fpr=[0, 1]).partial_fpr == (0.0, 1.0)  # type: ignore[arg-type]
    assert parse_partial_fpr("0.05:0.2") == (0.05, 0.2)


def test_keywords_are_the_settings() -> None:
    fields = {field.name for field in dataclasses.fields(rs.EvaluatorSettings)}
    assert EvaluatorChoices.__annotations__.keys() == fields - {"positive"}
    of_table = {field.name for field in dataclasses.fields(rs.TableSettings)}
    assert TableChoices.__annotations__.keys() == of_table - {"evaluator", "slices", "classes"}


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        rs.EvaluatorSettings().threshold = 0.1  # type: ignore[misc]


CHANGES: list[dict[str, Any]] = [
    {"window": rs.LastEvents(9)}, {"window": rs.AllEvents()}, {"every": rs.EveryEvents(7)},
    {"window": rs.LastDuration(9)}, {"window": rs.Fading(9)}, {"window": rs.Fading("9s")},
    {"window": rs.Adaptive()}, {"window": rs.Adaptive(0.1)}, {"window": rs.Adaptive(signal="error")},
    {"every": rs.EverySeconds(7)},
    {"cost": rs.UniformCost()}, {"cost": rs.SeverityCost()}, {"cost": rs.SeverityCost("balanced")},
    {"cost": rs.BetaCost(2, 2.0000000000000004)}, {"priors": 0.5}, {"threshold": 0.25},
    {"confidence": 0.9}, {"probabilities": True}, {"at_fpr": 0.02}, {"false_positive_cost": 0.5},
    {"flip_if_below_half": True}, {"partial_fpr": (0.0, 0.2)}, {"partial_fpr": (0.05, 0.1)},
    {"evidence_below": 0.8}, {"evidence_below": 0.9}, {"evidence_below": 0.8, "evidence_blocks": 2},
    {"evidence_below": "2026-01..2026-02"}, {"evidence_below": "2026-01..2026-02 less 0.01"},
    {"evidence_below": 0.8, "block_gap": "1h"},
    {"order": "position"}, {"order": "time"},
]  # fmt: skip


def test_the_hash_changes_with_whatever_changes_values() -> None:
    hashes = [rs.EvaluatorSettings(**change).config_hash() for change in ({}, *CHANGES)]
    assert len(set(hashes)) == len(hashes)
    assert all(re.fullmatch("[0-9a-f]{12}", text) for text in hashes)
    fields = {field.name for field in dataclasses.fields(rs.EvaluatorSettings)}
    assert fields == {name for change in CHANGES for name in change} | {
        "measures",
        "positive",
        "curves",
        "curves_points",
    }


def test_the_hash_changes_with_nothing_else() -> None:
    plain = rs.EvaluatorSettings().config_hash()
    for same in (
        {"measures": "all"}, {"measures": ("auc",)}, {"threshold": 0.50}, {"cost": rs.BetaCost(2.0, 2.0)},
        {"window": rs.LastEvents(10_000)}, {"positive": None}, {"curves": "end"},
        {"curves": rs.EveryEvents(7)}, {"partial_fpr": [0, 0.1]},
    ):  # fmt: skip
        assert rs.EvaluatorSettings(**same).config_hash() == plain
    assert (
        rs.EvaluatorSettings(threshold=1).config_hash() == rs.EvaluatorSettings(threshold=1.0).config_hash()
    )
    assert rs.EvaluatorSettings(positive="up").config_hash() == plain  # it says what the labels mean


def test_a_positive_class_that_is_a_number_has_one_spelling() -> None:
    assert {rs.EvaluatorSettings(positive=value).positive for value in ("1", "1.0", 1, 1.0, " 1 ")} == {"1"}


def test_the_hash_is_the_same_in_every_release() -> None:
    assert rs.EvaluatorSettings().config_hash() == "e6b5443df4b4"
