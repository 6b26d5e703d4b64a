"""Windows and emissions: checked when they are made, each with one spelling."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import rocsteady as rs
from hypothesis import given
from hypothesis import strategies as st
from rocsteady.core.settings.durations import microseconds
from rocsteady.core.settings.windows import parse_every, parse_window

from tests.support.invariants.refusals import assert_refused

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


@given(windows, st.integers(1, 10**12))
def test_parsing_undoes_spelling(window: Any, n: int) -> None:
    assert parse_window(str(window)) == window
    assert parse_every(str(rs.EveryEvents(n))) == rs.EveryEvents(n)
    assert parse_every(str(rs.EverySeconds(n / 8))) == rs.EverySeconds(n / 8)


def test_spellings_are_those_of_the_command_line() -> None:
    spelled = {
        "last:10000": rs.LastEvents(), "all": rs.AllEvents(), "100": rs.EveryEvents(),
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
    ],
)
def test_a_wrong_window_names_field_value_and_remedy(make: Callable[[], Any], words: list[str]) -> None:
    assert_refused(make, words)
