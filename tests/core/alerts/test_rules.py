"""A rule is read from text in one way, written in one spelling, and refused by a sentence that helps."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rocsteady.core.alerts.columns import OF_ONE_CLASS, RULE_COLUMNS
from rocsteady.core.alerts.grammar import parse_alert
from rocsteady.core.alerts.rules import AlertRule, Change, Limit, NameTest, Span
from rocsteady.core.alerts.surely import Rate, Surely
from rocsteady.core.errors import ConfigError
from rocsteady.core.rows.class_columns import MEANS_NUMBERS
from rocsteady.core.settings.periods import Period

DAY = 86_400_000_000

RULES = {
    "auc_high < 0.8": AlertRule(Limit("auc_high", "<", 0.8)),
    "auc_high<.80 for 3 rows": AlertRule(Limit("auc_high", "<", 0.8), Span(3)),
    "  kappa_m >=\t-1e-3 for 90m ": AlertRule(Limit("kappa_m", ">=", -0.001), Span(5_400_000_000, "time")),
    "h < 0.2 until h > 0.3": AlertRule(Limit("h", "<", 0.2), until=Limit("h", ">", 0.3)),
    "h < 0.2 for 1 row until auc >= 1 for 2h": AlertRule(
        Limit("h", "<", 0.2), Span(1), Limit("auc", ">=", 1.0), Span(7_200_000_000, "time")
    ),
    "drift >= 1": AlertRule(Limit("drift", ">=", 1.0)),
    "auc drops against 7d": AlertRule(Change("auc", "drops", 0.0, Span(7 * DAY, "time"))),
    "auc drops by .02 against 1 row for 2 rows until auc > .7": AlertRule(
        Change("auc", "drops", 0.02, Span(1)), Span(2), Limit("auc", ">", 0.7)
    ),
    "prevalence rises by 0 against 1970-01-02..1970-01-03T01:30Z": AlertRule(
        Change("prevalence", "rises", 0.0, Period(DAY, 2 * DAY + 5_400_000_000))
    ),
    "brier rises by 1e-2 against 1970-01-01T02:00:00+02:00..1970-01-02": AlertRule(
        Change("brier", "rises", 0.01, Period(0, DAY))
    ),
    "auc < 0.7 where slice = '' and model like 'team''s */*' at most 3 a day": AlertRule(
        Limit("auc", "<", 0.7),
        where=(NameTest("model", "like", "team's */*"), NameTest("slice", "=", "")),
        a_day=3,
    ),
    "auc drops against 7d for 1d until auc > 0.8 for 2 rows where model not like'\n[*]'and slice!='a=b'": (
        AlertRule(
            Change("auc", "drops", 0.0, Span(7 * DAY, "time")),
            Span(DAY, "time"),
            Limit("auc", ">", 0.8),
            Span(2),
            (NameTest("model", "not like", "\n[*]"), NameTest("slice", "!=", "a=b")),
        )
    ),
    "auc_macro drops against 7d where model = 'm'": AlertRule(
        Change("auc_macro", "drops", 0.0, Span(7 * DAY, "time")), where=(NameTest("model", "=", "m"),)
    ),
    "kappa < 0 where class like '*' and class != 'a, ''b''|c'": AlertRule(
        Limit("kappa", "<", 0.0),
        where=(NameTest("class", "!=", "a, 'b'|c"), NameTest("class", "like", "*")),
    ),
    "auc < 0.7 at most 1 a day": AlertRule(Limit("auc", "<", 0.7), a_day=1),
    "auc surely < 0.8 at 1e6": AlertRule(Surely(0.8, Rate(1e6))),
    "auc surely < 0.8 at most 3 a day": AlertRule(Surely(0.8), a_day=3),
    "auc surely < 0.8 at 5 per 1e6 until auc > 0.82 where slice = '' at most 3 a day": AlertRule(
        Surely(0.8, Rate(2e5, "events")),
        until=Limit("auc", ">", 0.82),
        where=(NameTest("slice", "=", ""),),
        a_day=3,
    ),
}


@pytest.mark.parametrize("text", RULES)
def test_a_rule_is_read(text: str) -> None:
    assert parse_alert(text) == RULES[text]


SPELLINGS = {
    "auc<0.80 for 01 rows": "auc < 0.8",
    "auc < 5.0 for 120m": "auc < 5 for 2h",
    "auc > -0.0": "auc > 0",
    "auc surely<.80 at 1e6": "auc surely < 0.8 at 1000000",
    "auc surely drops by .020 against 2026-01..2026-02-01T00:00Z at 1e6": (
        "auc surely drops by 0.02 against 2026-01-01..2026-02-01 at 1000000"
    ),
    "auc surely drops by 0 against 2026-01-01..2026-02-01": "auc surely drops against 2026-01-01..2026-02-01",
    "auc surely < 0.8 at 3 per 1e6 events": "auc surely < 0.8 at 1 per 333333.3333333333 events",
    "auc drops by 0 against 24h": "auc drops against 1d",
    "h drops by 0 against 1 rows": "h drops by 0 against 1 row",
    "auc drops against 2013-01-01T00:00Z..2013-02-01T00:00:00.5": (
        "auc drops against 2013-01-01..2013-02-01T00:00:00.500000Z"
    ),
    "auc < 1 where slice='' and model='it''s' and slice = ''": (
        "auc < 1 where model = 'it''s' and slice = ''"
    ),
    "auc<1 where slice like '*' and slice not like 'b' and slice != 'a'  at most 07 a day": (
        "auc < 1 where slice != 'a' and slice like '*' and slice not like 'b' at most 7 a day"
    ),
}


@pytest.mark.parametrize("text", SPELLINGS)
def test_a_rule_has_one_spelling(text: str) -> None:
    assert str(parse_alert(text)) == SPELLINGS[text]


numbers = st.floats(allow_nan=False, allow_infinity=False)
spans = st.builds(Span, st.integers(1, 2**61 - 1), st.sampled_from(["rows", "time"]))
columns = st.sampled_from([name for name in RULE_COLUMNS if name not in MEANS_NUMBERS])
of_classes = st.sampled_from([name for name in RULE_COLUMNS if name not in OF_ONE_CLASS])
comparisons = st.sampled_from(["<", "<=", ">", ">="])
limits = st.builds(Limit, columns, comparisons, numbers)
instants = st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999)
periods = st.lists(instants, min_size=2, max_size=2, unique=True).map(lambda ends: Period(*sorted(ends)))
rates = st.builds(
    Rate, st.floats(1, exclude_min=True, allow_infinity=False), st.sampled_from(["blocks", "events"])
)
beliefs = st.builds(Surely, st.floats(0, 1, exclude_min=True, exclude_max=True), st.one_of(st.none(), rates))
sizes = (st.sampled_from(["drops", "rises"]), numbers.map(abs), st.one_of(spans, periods))
changes = st.builds(Change, columns, *sizes)


def where_tests(names: list[str]) -> st.SearchStrategy[tuple[NameTest, ...]]:
    texts = st.text(st.characters(exclude_categories=["Cs"]))
    words = st.sampled_from(["!=", "like", "not like"])
    return st.lists(st.builds(NameTest, st.sampled_from(names), words, texts)).map(tuple)


rules = st.one_of(
    st.tuples(st.one_of(limits, changes, beliefs), limits, where_tests(["model", "slice", "class"])),
    st.tuples(
        st.one_of(st.builds(Limit, of_classes, comparisons, numbers), st.builds(Change, of_classes, *sizes)),
        st.builds(Limit, of_classes, comparisons, numbers),
        where_tests(["model", "slice"]),
    ),
)


@given(parts=rules, held=spans, until_held=spans, a_day=st.none() | st.integers(1, 2**61 - 1))
def test_any_rule_is_read_back_from_its_text(
    parts: tuple[Any, Limit, Any], held: Span, until_held: Span, a_day: int | None
) -> None:
    opens, until, where = parts
    held = Span(1) if isinstance(opens, Surely) else held
    made = [AlertRule(opens, held, where=where, a_day=a_day)]
    if not (isinstance(opens, Limit) and opens.meets(until)):
        made.append(AlertRule(opens, held, until, until_held, where, a_day))
    for rule in made:
        assert parse_alert(str(rule)) == rule


few = st.builds(Limit, st.just("auc"), st.sampled_from(["<", "<=", ">", ">="]), st.integers(0, 3))


@given(one=few, other=few)
def test_two_limits_meet_if_one_value_is_on_the_side_of_both(one: Limit, other: Limit) -> None:
    assert one.meets(other) == any(one.holds(x / 2) and other.holds(x / 2) for x in range(-1, 8))
    assert not one.meets(Limit("h", other.comparison, other.number))


MISTAKES = {
    "auc_macro < .7 until auc > .8": "auc_macro of the row of all classes 'auc' of the rows of one class",
    "auc_m < .5 where class = 'a'": "auc_m of the row of all classes 'where class' give a rule for each",
    "auc < .5 where class = ''": "where class = '' every class has a name",
    "auc_mean < .8 where model = 'a'": "where model = 'a' auc_mean roll-up row test its group or class",
    "difference < 0 where class = 'a'": "where class = 'a' difference pair row test its model or slice",
    "worst_class < .1": "'worst_class' is no number of a row did you mean 'worst_class_auc'",
    "worst_pair_auc drops against 7d": "worst_pair_auc has no interval worst_pair_auc drops by NUMBER",
    "": "alert '' ends where it needs a column of a row 'auc_high < 0.8 for 3 rows'",
    "auc": "'auc' ends <, <=, >, >=, drops or rises",
    "acu_high < 0.8": "'acu_high' did you mean 'auc_high'",
    "zz < 1": "'zz' no number of a row there are row, seq,",
    "time < 4": "'time' is a time a rule speaks of numbers",
    "model < 4": "'model' is no number of a row",
    "auc <": "ends where it needs a number behind 'auc <'",
    "auc < 80%": "'80%' behind 'auc <' is not a number",
    "auc < nan": "nan finite number",
    "auc < inf": "inf finite number",
    "auc == 1": "'==' is not a comparison",
    "auc =< 1": "'=<' is not a comparison did you mean '<",
    "auc drop against 7d": "'drop' did you mean 'drops'",
    "auc drops": "needs 'against'",
    "auc drops against": "ends how long 7d",
    "auc drops 0.02 against 7d": "'0.02' is not what auc is held against",
    "auc drops by 0.02 agianst 7d": "'agianst' did you mean 'against'",
    "auc drops against 7": "against 7: 7 of what? Say 7 rows 7h",
    "auc drops against 7x": "'7x' is no duration '12h'",
    "auc drops by -1 against 7d": "-1 0 or more",
    "kappa drops against 7d": "kappa has no interval kappa drops by NUMBER against 7d",
    "auc drops against 2013-02-01..2013-01-01": "ends before it starts 2013-01-01..2013-02-01",
    "auc drops against 2013-02-01..2013-02-01": "nothing is in the period",
    "auc drops against 2013-02-01..soon": "'soon' is no time",
    "auc drops against ..": "'' is no time",
    "auc surely": "ends < or drops behind 'auc surely'",
    "auc surley < .8": "'surley' did you mean 'surely'?",
    "auc surely > .8": "'>' is not '<' or 'drops' behind 'auc surely'; say auc surely < 0.8",
    "auc surely rises by .1 against 2026-01..2026-02": "'rises' is not '<' or 'drops'",
    "auc surely drops by .1": "ends 'against'",
    "auc surely drops by .1 against 7d at 1e6": "7d name a period 2013-01-01..2013-02-01",
    "auc surely drops by .1 against 9 rows at 1e6": "9 rows name a period",
    "auc surely drops by -.1 against 2026-01..2026-02 at 9": "-0.1 0 or more and below 1",
    "auc surely drops by 1 against 2026-01..2026-02 at 9": "1.0 0 or more and below 1",
    "auc surely drops by .1 against 2026-02..2026-01 at 9": "ends before it starts",
    "auc surely drops by .1 against 2026-02..2026-02 at 9": "nothing is in the period",
    "auc surely < .8 at 1e6 until auc_mean > .8": "evidence column of rows auc_mean roll-up rows",
    "auc surely < .8 at 1e6 until worst_p > .1 where group = 'models'": "evidence worst_p one kind",
    "auc surely < .8 at 1e6 where group = 'models'": "group = 'models' evidence model or slice",
    "auc surely < .8 at 1e6 until auc drops against 7d": "closes on a limit",
    "auc surely < .8 at 1e6 until auc surely < .9 at 1e6": "closes on a limit",
    "auc surely < 1": "1 between 0 and 1, both excluded",
    "h surely < .8": "h surely auc alone",
    "auc surely < .8 at": "ends behind 'at'; at 1e6 at 1 per 1000000 events",
    "auc surely < .8 at least 3 a day": "'least' behind 'at' is not a number",
    "auc surely < .8 at 1": "1 above 1",
    "auc surely < .8 at 0 per 100": "above 0",
    "auc surely < .8 at 100 per 10": "events are more than false alarms",
    "auc surely < .8 at 1 per": "ends a number behind 'per'",
    "auc surely < .8 at 1e6 for 3 rows": "auc surely < 0.8 at 1000000 for 3 rows no time to be sure",
    "auc < .8 until auc surely < .8 at 1e6": "closes on a limit",
    "auc < .8 for": "ends how long behind 'for'",
    "auc < .8 for 0 rows": "for 0: a span is 1 or more",
    "auc < .8 for -3 rows": "for -3: a span is 1 or more",
    "auc < .8 for 1.5 rows": "for 1.5: whole",
    "auc < .8 for 3": "3 of what? Say 3 rows 3h",
    "auc < .8 for 99999999999999999999 rows": "1 or more",
    "auc < .8 fr 3 rows": "'fr' 'for' or 'until' did you mean 'for'",
    "auc < .8 for 3 rows untl auc > .9": "'untl' did you mean 'until'",
    "auc < .8 until auc > .9 for 3 rows for 2 rows": "'for' the end of the rule",
    "auc < .8 until": "ends where it needs a column",
    "auc < .8 until auc > .7": "one value of auc opens (auc < 0.8) closes (auc > 0.7)",
    "auc < .8 until auc < .9": "one value of auc opens",
    "auc <= .8 until auc >= .8": "one value of auc opens",
    "auc < .8 until auc drops against 7d": "until auc drops against 7d closes on a limit",
    "auc < .8 wher slice = ''": "'wher' is not 'for' 'where' did you mean 'where'?",
    "auc < .8 where": "ends model or slice slice = ''",
    "auc < .8 where country = 'NZ'": "'country' model or slice such as slice = ''",
    "auc < .8 where modl = 'x'": "'modl' did you mean 'model'?",
    "auc < .8 where model": "ends =, !=, like or not like behind 'model'",
    "auc < .8 where model == 'x'": "'==' is not a comparison of names did you mean '='?",
    "auc < .8 where model is 'x'": "'is' is not a comparison of names use =, !=, like, not like",
    "auc < .8 where model lik 'x'": "'lik' did you mean 'like'?",
    "auc < .8 where model not 'x'": "'not' did you mean 'not like'?",
    "auc < .8 where model =": "ends a text in quotes model = 'churn'",
    "auc < .8 where model = churn": "'churn' behind 'model =' is not in quotes; write model = 'churn'",
    "auc < .8 where model = 'churn": "'churn has no quote at its end",
    "auc < .8 where model = 'churn''": "has no quote at its end",
    "auc < .8 where model = '\ud800'": "not UTF-8",
    "auc < .8 where model = 'a' and": "ends model or slice",
    "auc < .8 where model = 'a' or model = 'b'": "'or' is not 'and', 'at' or the end",
    "auc < .8 where model = 'a' and model like 'b*'": "no model passes both",
    "auc < .8 where slice = '' and slice != ''": "slice = '' and slice != '': no slice passes both",
    "auc < .8 at most": "ends a number behind 'at most' at most 3 a day",
    "auc < .8 at least 3 a day": "'least' is not 'most'",
    "auc < .8 at most 0 a day": "at most 0: 1 or more",
    "auc < .8 at most few a day": "at most few: 1 or more",
    "auc < .8 at most 3 per day": "'per' is not 'a' behind 'at most 3'",
    "auc < .8 at most 3 a week": "'week' is not 'day' at most 3 a day",
    "auc < .8 at most 3 a": "ends 'day'",
    "auc < .8 at most 3 a day where slice = ''": "'where' is not the end of the rule order for, until",
    "auc < .8 where slice = '' for 3 rows": "'for' is not 'and', 'at' or the end the order is for, until",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_is_named_with_its_text_and_a_remedy(text: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_alert(text)
    said = str(raised.value)
    assert said.startswith(f"alert {text!r}: ")
    assert "\n" not in said
    at = 0
    for word in MISTAKES[text].split():
        at = said.find(word, at)
        assert at >= 0, (word, said)


@pytest.mark.parametrize(
    "make",
    [
        lambda: parse_alert(3),
        lambda: Span(0),
        lambda: Span(3, "events"),
        lambda: Limit("auc", "!=", 0.5),
        lambda: Limit("auc", "<", "high"),
        lambda: Limit("auc", "<", True),
        lambda: Change("auc", "falls", 0.0, Span(1)),
        lambda: Change("auc", "drops", 0.0, "7d"),
        lambda: Period(0, 2**62),
        lambda: AlertRule(Limit("auc", "<", 0.8), until_held=Span(3)),
        lambda: AlertRule(Limit("auc", "<", 0.8), a_day=0),
        lambda: AlertRule(Surely(0.8), Span(2)),
        lambda: Surely(0.8, 1e6),
        lambda: Rate(1.0),
        lambda: Rate(float("nan")),
        lambda: Rate(2.0, "rows"),
        lambda: NameTest("country", "=", "NZ"),
        lambda: NameTest("model", "<", "a"),
        lambda: NameTest("model", "=", 3),
    ],
)
def test_a_rule_made_by_hand_is_checked_too(make: Any) -> None:
    with pytest.raises(ConfigError):
        make()


def test_a_rule_says_what_it_reads_and_whether_it_goes_by_time() -> None:
    assert parse_alert("auc < 0.5 until h > 0.1").columns == ("auc", "h")
    assert parse_alert("auc < 0.5 until auc > 0.6").columns == ("auc",)
    assert parse_alert("auc < 0.5 for 3 rows").needs_times is None
    assert parse_alert("auc < 0.5 for 3 rows until h > 0.1 for 2h").needs_times == "for 2h"
    assert parse_alert("auc drops against 3 rows").needs_times is None
    assert parse_alert("auc drops against 7d").needs_times == "against 7d"
    assert parse_alert("auc drops against 2013-01-01..2013-01-02").needs_times is not None
    assert parse_alert("auc < 0.5 at most 3 a day").needs_times == "at most 3 a day"


COVERED = {
    "model = 'churn'": [("churn", ""), ("churn", "a=b")],
    "model != 'churn'": [("Churn", ""), ("team1/x\ny", "a=b"), ("*", "a=*")],
    "model like 'c*'": [("churn", ""), ("churn", "a=b")],
    "model like 'team?/*'": [("team1/x\ny", "a=b")],
    "model like '[*]'": [("*", "a=*")],
    "model not like '*' and slice = ''": [],
    "slice = ''": [("churn", ""), ("Churn", "")],
    "slice != ''": [("churn", "a=b"), ("team1/x\ny", "a=b"), ("*", "a=*")],
    "slice like '?=*' and slice not like '*[*]'": [("churn", "a=b"), ("team1/x\ny", "a=b")],
    "slice = '' and model like '[a-z]*'": [("churn", "")],
}


@pytest.mark.parametrize("where", COVERED)
def test_a_rule_covers_the_names_that_pass_all_of_its_tests(where: str) -> None:
    names = [("churn", ""), ("churn", "a=b"), ("Churn", ""), ("team1/x\ny", "a=b"), ("*", "a=*")]
    rule = parse_alert(f"auc < 0.5 where {where}")
    assert [name for name in names if rule.covers(*name)] == COVERED[where]
