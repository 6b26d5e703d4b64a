"""Settings are checked when they are made, have one spelling, and a hash of what changes values."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import rocsteady as rs
from hypothesis import given
from hypothesis import strategies as st
from rocsteady.core.settings.settings import (
    COSTLY_MEASURES,
    MEASURES,
    PROBABILITY_MEASURES,
    parse_cost,
    parse_partial_fpr,
)
from rocsteady.core.settings.windows import microseconds, parse_every, parse_window

positive_numbers = st.floats(1e-6, 1e6)
durations = st.one_of(st.integers(1, 10**9), st.timedeltas(timedelta(microseconds=1), timedelta(10**5)))
windows = st.one_of(
    st.just(rs.AllEvents()),
    st.builds(rs.LastEvents, st.integers(1, 10**12)),
    st.builds(rs.LastDuration, durations),
    st.builds(
        rs.Fading, st.one_of(st.integers(1, 10**9), st.timedeltas(timedelta(seconds=1), timedelta(10**5)))
    ),
    st.builds(rs.Adaptive, st.floats(1e-9, 0.999), st.sampled_from(["placement", "error"])),
)
costs = st.one_of(
    st.builds(rs.BetaCost, positive_numbers, positive_numbers),
    st.just(rs.UniformCost()),
    st.builds(rs.SeverityCost, st.one_of(st.none(), st.just("balanced"), positive_numbers)),
)


@given(windows, costs, st.integers(1, 10**12))
def test_parsing_undoes_spelling(window: Any, cost: Any, n: int) -> None:
    assert parse_window(str(window)) == window
    assert parse_cost(str(cost)) == cost
    assert parse_every(str(rs.EveryEvents(n))) == rs.EveryEvents(n)
    assert parse_every(str(rs.EverySeconds(n / 8))) == rs.EverySeconds(n / 8)


def test_spellings_are_those_of_the_command_line() -> None:
    spelled = {
        "last:10000": rs.LastEvents(), "all": rs.AllEvents(), "100": rs.EveryEvents(),
        "beta:2,2": rs.BetaCost(2, 2), "beta:0.5,3": rs.BetaCost(0.5, 3), "uniform": rs.UniformCost(),
        "severity": rs.SeverityCost(), "severity:0.1": rs.SeverityCost(0.1),
        "severity:balanced": rs.SeverityCost("balanced"),
        "last:7d": rs.LastDuration("7d"), "last:90m": rs.LastDuration(5400),
        "last:250ms": rs.LastDuration(0.25), "last:2d": rs.LastDuration(timedelta(hours=48)),
        "fading:100": rs.Fading(100), "fading:12h": rs.Fading("12h"),
        "adaptive:0.002:placement": rs.Adaptive(), "adaptive:0.01:error": rs.Adaptive(0.01, "error"),
        "1h": rs.EverySeconds("60m"),
    }  # fmt: skip
    assert parse_window("adaptive") == rs.Adaptive()
    assert parse_window("adaptive::brier") == rs.Adaptive(signal="brier")
    assert {text: str(choice) for text, choice in spelled.items()} == {text: text for text in spelled}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: rs.LastEvents(0), ["LastEvents", "k=0", "1 or more"]),
        (lambda: rs.LastEvents(-3), ["LastEvents", "k=-3"]),
        (lambda: rs.LastEvents(2.0), ["LastEvents", "k=2.0", "whole number"]),
        (lambda: rs.LastEvents(True), ["LastEvents", "k=True"]),
        (lambda: rs.LastEvents("9"), ["LastEvents", "k='9'"]),
        (lambda: rs.EveryEvents(0), ["EveryEvents", "n=0", "1 or more"]),
        (lambda: rs.BetaCost(0, 2), ["BetaCost", "a=0", "> 0"]),
        (lambda: rs.BetaCost(2, -1), ["BetaCost", "b=-1", "> 0"]),
        (lambda: rs.BetaCost(math.nan), ["BetaCost", "a=nan", "finite"]),
        (lambda: rs.BetaCost(math.inf), ["BetaCost", "a=inf", "finite"]),
        (lambda: rs.SeverityCost(0), ["SeverityCost", "ratio=0", "'balanced' or None"]),
        (lambda: rs.SeverityCost("even"), ["SeverityCost", "ratio='even'", "> 0"]),
        (lambda: parse_window("last:0"), ["k=0"]),
        (
            lambda: microseconds("100", "--timeout"),
            ["--timeout: '100' is no duration", "100 seconds are '100s'"],
        ),
        (lambda: parse_window("last:many"), ["'many' is no duration", "'7d'"]),
        (lambda: parse_window("last:7x"), ["LastDuration", "'7x'", "no duration", "'12h'"]),
        (lambda: parse_window("last:0s"), ["LastDuration", "'0s'", "1 microsecond"]),
        (lambda: parse_window("fading:0"), ["half_life=0", "1 to 2147483647"]),
        (lambda: parse_window("fading:0d"), ["half_life", "'0d'"]),
        (lambda: rs.Fading(0.5), ["half_life=0.5", "whole number of events", "'7d'"]),
        (lambda: rs.Fading(-1), ["half_life=-1", "1 to 2147483647"]),
        (lambda: parse_window("adaptive:0"), ["delta=0.0", "between 0 and 1"]),
        (lambda: parse_window("adaptive:1"), ["delta=1.0", "between 0 and 1"]),
        (lambda: parse_window("adaptive:nan"), ["delta=nan", "between 0 and 1"]),
        (lambda: parse_window("adaptive:much"), ["'adaptive:much'", "not a number"]),
        (lambda: parse_window("adaptive:0.1:auc"), ["signal='auc'", "'placement'", "'brier'"]),
        (lambda: rs.EvaluatorSettings(window=rs.Adaptive(signal="brier")), ["brier", "probabilities=True"]),
        (lambda: rs.LastDuration(0), ["LastDuration", "0", "number of seconds above 0"]),
        (lambda: rs.LastDuration(float("nan")), ["nan", "number of seconds above 0"]),
        (lambda: rs.LastDuration("1" * 19 + "d"), ["73,000 years"]),
        (lambda: rs.EverySeconds(-1), ["EverySeconds", "-1", "'30m'"]),
        (lambda: rs.EverySeconds(1e-9), ["EverySeconds", "1 microsecond"]),
        (lambda: parse_window("some"), ["window 'some'", "last:N", "all"]),
        (lambda: parse_window(""), ["window ''", "last:N"]),
        (lambda: parse_every("1hour"), ["EverySeconds", "'1hour'", "no duration"]),
        (lambda: parse_every("often"), ["every", "'often'", "whole number"]),
        (lambda: parse_every("0"), ["n=0"]),
        (lambda: parse_cost("beta:2"), ["cost 'beta:2'", "beta:A,B"]),
        (lambda: parse_cost("beta:2,x"), ["cost 'beta:2,x'", "'x'", "number"]),
        (lambda: parse_cost("severity:much"), ["cost 'severity:much'", "'much'"]),
        (lambda: parse_cost("free"), ["cost 'free'", "severity:balanced"]),
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
        (lambda: rs.EvaluatorSettings(measures="aucc"), ["'aucc'", "auc_low"]),
        (lambda: rs.EvaluatorSettings(measures=()), ["measures=()", "at least one"]),
        (lambda: rs.EvaluatorSettings(measures="brier"), ["'brier'", "probabilities=True"]),
        (lambda: rs.TableSettings(slices=((),)), ["slices=((),)", "column name"]),
        (lambda: rs.TableSettings(slices=("",)), ["slices=('',)", "column name"]),
        (lambda: rs.TableSettings(slices=(("a", "a"),)), ["'a,a'", "twice"]),
        (lambda: rs.TableSettings(slices=("a", ("a",))), ["same slice twice"]),
        (lambda: rs.TableSettings(shards=0), ["shards=0", "1 or more"]),
        (lambda: rs.TableSettings(shards=2.0), ["shards=2.0", "a whole number"]),
    ],
)
def test_a_wrong_setting_names_field_value_and_remedy(make: Callable[[], Any], words: list[str]) -> None:
    with pytest.raises(rs.ConfigError) as caught:
        make()
    assert [word for word in words if word not in str(caught.value)] == []
    assert "\n" not in str(caught.value)


def test_settings_at_their_borders_are_right() -> None:
    assert rs.EvaluatorSettings(at_fpr=0).at_fpr == 0.0
    assert rs.EvaluatorSettings(at_fpr=1).at_fpr == 1.0
    assert rs.LastEvents(1).k == 1
    assert rs.EvaluatorSettings(partial_fpr=[0, 1]).partial_fpr == (0.0, 1.0)  # type: ignore[arg-type]
    assert parse_partial_fpr("0.05:0.2") == (0.05, 0.2)


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        rs.EvaluatorSettings().threshold = 0.1  # type: ignore[misc]


def test_the_usual_measures_are_the_cheap_ones() -> None:
    usual = set(rs.EvaluatorSettings().measures or ())
    assert usual == set(MEASURES) - {*COSTLY_MEASURES, *PROBABILITY_MEASURES}
    probable = set(rs.EvaluatorSettings(probabilities=True).measures or ())
    assert probable == usual | {"brier", "log_loss"}
    assert rs.EvaluatorSettings(measures="all", probabilities=True).measures == MEASURES
    assert rs.EvaluatorSettings(measures=("ks", "auc")).measures == (
        "auc", "auc_low", "auc_high", "ks", "ks_threshold",
    )  # fmt: skip


CHANGES: list[dict[str, Any]] = [
    {"window": rs.LastEvents(9)}, {"window": rs.AllEvents()}, {"every": rs.EveryEvents(7)},
    {"window": rs.LastDuration(9)}, {"window": rs.Fading(9)}, {"window": rs.Fading("9s")},
    {"window": rs.Adaptive()}, {"window": rs.Adaptive(0.1)}, {"window": rs.Adaptive(signal="error")},
    {"every": rs.EverySeconds(7)},
    {"cost": rs.UniformCost()}, {"cost": rs.SeverityCost()}, {"cost": rs.SeverityCost("balanced")},
    {"cost": rs.BetaCost(2, 2.0000000000000004)}, {"priors": 0.5}, {"threshold": 0.25},
    {"confidence": 0.9}, {"probabilities": True}, {"at_fpr": 0.02}, {"false_positive_cost": 0.5},
    {"flip_if_below_half": True}, {"partial_fpr": (0.0, 0.2)}, {"partial_fpr": (0.05, 0.1)},
    {"order": "position"}, {"order": "time"},
]  # fmt: skip


def test_the_hash_changes_with_whatever_changes_values() -> None:
    hashes = [rs.EvaluatorSettings(**change).config_hash() for change in ({}, *CHANGES)]
    assert len(set(hashes)) == len(hashes)
    assert all(re.fullmatch("[0-9a-f]{12}", text) for text in hashes)
    fields = {field.name for field in dataclasses.fields(rs.EvaluatorSettings)}
    assert fields == {name for change in CHANGES for name in change} | {"measures", "positive", "curves"}


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


def test_a_setting_that_came_later_has_its_default_where_a_text_knows_nothing_of_it() -> None:
    usual = rs.TableSettings()
    assert "partial_fpr" not in usual.to_json()
    assert rs.TableSettings.from_json(usual.to_json()) == usual
    other = rs.TableSettings(rs.EvaluatorSettings(partial_fpr=(0.1, 0.4)))
    assert rs.TableSettings.from_json(other.to_json()) == other
    assert usual.fingerprint() != other.fingerprint()


def test_a_positive_class_that_is_a_number_has_one_spelling() -> None:
    assert {rs.EvaluatorSettings(positive=value).positive for value in ("1", "1.0", 1, 1.0, " 1 ")} == {"1"}


def test_the_hash_is_the_same_in_every_release() -> None:
    assert rs.EvaluatorSettings().config_hash() == "c1a1faede8f6"


def test_a_table_means_its_settings_its_slices_and_its_shards() -> None:
    tables = [
        rs.TableSettings(), rs.TableSettings(slices=("a",)), rs.TableSettings(slices=("a", "b")),
        rs.TableSettings(slices=(("a", "b"),)), rs.TableSettings(slices=("a,b",)),
        rs.TableSettings(slices=(("b", "a"),)), rs.TableSettings(shards=64), rs.TableSettings(shards=65),
        rs.TableSettings(rs.EvaluatorSettings(threshold=0.1)),
        rs.TableSettings(rs.EvaluatorSettings(positive="up")),
    ]  # fmt: skip
    assert len({table.fingerprint() for table in tables}) == len(tables)
    for table in tables:
        assert rs.TableSettings.from_json(table.to_json()) == table
    shown = rs.TableSettings(rs.EvaluatorSettings(measures="auc"))
    assert shown.fingerprint() == rs.TableSettings().fingerprint()
    drawn = rs.TableSettings(rs.EvaluatorSettings(curves=rs.EveryEvents(7)))
    assert drawn.fingerprint() == rs.TableSettings().fingerprint()
    assert drawn.to_json() == rs.TableSettings().to_json()
