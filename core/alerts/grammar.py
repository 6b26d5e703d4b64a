"""The grammar of an alert's rule, as `--alert` takes it.

Words stand apart, but comparisons need no blanks:

    rule      = condition [held] ["until" limit [held]] [scope] [cap]
    condition = limit | change | surely
    limit     = COLUMN ("<" | "<=" | ">" | ">=") NUMBER
    change    = COLUMN ("drops" | "rises") ["by" NUMBER] "against" (span | PERIOD)
    surely    = "auc" "surely" ("<" NUMBER | "drops" ["by" NUMBER] "against" PERIOD) ["at" rate]
    rate      = NUMBER | NUMBER "per" NUMBER ["events"]
    held      = "for" span
    span      = N ("row" | "rows") | DURATION
    scope     = "where" test {"and" test}
    test      = ("model" | "slice" | "class" | "group") ("=" | "!=" | "like" | "not" "like") TEXT
    cap       = "at" "most" N "a" "day"

COLUMN is a column of a row that holds numbers (`RULE_COLUMNS`). Or COLUMN is a column of a roll-up row
(`GROUP_NUMBERS`) or of a pair row (`PAIR_NUMBERS`): the rule then watches groups or pairs. DURATION is 90s,
30m, 2h or 7d. PERIOD is START..END of RFC 3339 times, dates or months (without a zone they are UTC); the end
is exclusive. TEXT stands in quotes and may hold any character; a quote within the TEXT is doubled: 'it''s'.

    auc_high < 0.8 for 3 rows                   in three rows, the whole interval is below 0.8
    kappa_m < 0 for 2h until kappa_m > 0.1      hysteresis
    auc drops against 7d                        significantly, against the window of 7 days ago
    auc drops by 0.02 against 500 rows          significantly more than 0.02
    brier rises by 0.01 against 2013-01-01..2013-02-01
    auc surely < 0.8 at 1e6                     evidence, with one false alarm in a million blocks at most
    auc surely drops by 0.02 against 2013-01..2013-02 at 1e6
    auc_macro drops by 0.02 against 7d                      of a model with a score of each class
    auc_high < 0.8 where class = 'cat'                      of one of its classes
    auc < 0.7 where slice = '' and model like 'team1/*' at most 3 a day
    auc_mean < 0.8 for 3 rows where group = 'models'        the whole fleet
    worst_p < 0.001                                         a member of any group stands out
    anytime_high < 0                                        any model is worse than the champion
    difference_high < 0 for 3 rows where model = 'v2'       "v2" is, in three windows
"""

from __future__ import annotations

import re
from typing import NoReturn

from ..errors import ConfigError
from ..process.near_names import near_names
from ..settings.durations import microseconds
from ..settings.evidence import Bound, PeriodBound
from ..settings.periods import REMEDY_PERIOD, Period, parse_period
from ..settings.windows import is_count
from .columns import TESTED, check_column
from .rules import (
    COMPARISONS,
    DIRECTIONS,
    NAME_COLUMNS,
    NAME_COMPARISONS,
    ONE_ROW,
    QUOTE,
    REMEDY_SPAN,
    REMEDY_WHERE,
    AlertRule,
    Change,
    Direction,
    Limit,
    NameTest,
    Span,
    finite,
)
from .surely import REMEDY_RATE, Rate, Surely, parse_budget

_WORD = re.compile(r"'(?:[^']|'')*(?:'|\Z)|[<>=!]+|[^\s<>=!']+")
"""Matches a text in quotes, or a text that is not closed; a comparison; any other word."""

_END = ""
"""Stands for the word behind the last word of a rule."""

_PARTS = ["for", "until", "where", "at"]
"""The words that begin the parts of a rule behind its condition, in the order of the parts."""

_RULES = "'auc_high < 0.8 for 3 rows' or 'auc drops by 0.02 against 7d'"
_EXAMPLES = f"such as {_RULES}"


def parse_alert(text: str) -> AlertRule:
    """Read a rule; the grammar stands at the head of this module. O(words).

    Raises ConfigError, which names the text, the wrong word and what is allowed there.

    >>> parse_alert("auc<0.80 until auc > .82").until
    Limit(column='auc', comparison='>', number=0.82)
    >>> str(parse_alert("auc  drops by 0 against 120m for 3 rows"))
    'auc drops against 2h for 3 rows'
    """
    if not isinstance(text, str):
        raise ConfigError(f"alert {text!r} is no text; give a rule, {_EXAMPLES}")
    try:
        return _Words(text).rule()
    except ConfigError as mistake:
        raise ConfigError(f"alert {text!r}: {mistake}") from None


def parse_reference(text: str) -> Span | Period:
    """Read a span or a period as it stands behind `against` in a rule.

    Raises ConfigError for any other text.

    >>> str(parse_reference("7d")), str(parse_reference("2026-01-01..2026-02-01"))
    ('7d', '2026-01-01..2026-02-01')
    """
    return _Words(text).reference()


class _Words:
    """Reads a rule from left to right; `_words` has the words that are not read yet."""

    def __init__(self, text: str) -> None:
        self._words: list[str] = [*_WORD.findall(text), _END]

    def rule(self) -> AlertRule:
        opens = self._condition()
        held = self._held()
        may_follow = [*_PARTS] if held is ONE_ROW else _PARTS[1:]
        until: Limit | None = None
        until_held = ONE_ROW
        if self._takes("until"):
            closes = self._condition()
            if not isinstance(closes, Limit):
                raise ConfigError(f"until {closes}: an alert closes on a limit, such as until auc > 0.8")
            until, until_held = closes, self._held()
            may_follow = ["for", *_PARTS[2:]] if until_held is ONE_ROW else _PARTS[2:]
        where: list[NameTest] = []
        while self._takes("and" if where else "where"):
            where.append(self._name_test())
            may_follow = ["and", "at"]
        a_day = self._cap() if self._takes("at") else None
        self._end(may_follow if a_day is None else [])
        return AlertRule(opens, held, until, until_held, tuple(where), a_day)

    def _name_test(self) -> NameTest:
        word = self._take(f"model, slice, class or group behind 'where' or 'and'; {REMEDY_WHERE}")
        if (column := NAME_COLUMNS.get(word)) is None:
            asked = "what a rule may ask of: model, slice, class or group"
            self._refuse(word, asked, [*NAME_COLUMNS], REMEDY_WHERE)
        comparison = self._take(f"=, !=, like or not like behind {column!r}")
        if comparison == "not" and self._takes("like"):
            comparison = "not like"
        if comparison not in NAME_COMPARISONS:
            known = [*NAME_COMPARISONS]
            self._refuse(
                comparison, f"a comparison of names behind {column!r}", known, f"use {', '.join(known)}"
            )
        said = f"{column} {comparison}"
        text = self._take(f"a text in quotes behind '{said}', such as {said} 'churn'")
        if not text.startswith(QUOTE):
            raise ConfigError(f"{text!r} behind '{said}' is not in quotes; write {said} '{text}'")
        if text == QUOTE or text.count(QUOTE) % 2:
            raise ConfigError(f"{text!r} behind '{said}' has no quote at its end; write {said} 'TEXT'")
        return NameTest(column, NAME_COMPARISONS[comparison], text[1:-1].replace(QUOTE * 2, QUOTE))

    def _cap(self) -> int:
        self._need("most", "at")
        word = self._take("a number behind 'at most', such as at most 3 a day")
        if not word.isdecimal() or len(word) > 20 or not is_count(int(word)):
            raise ConfigError(f"at most {word}: give a whole number of 1 or more, such as at most 3 a day")
        self._need("a", f"at most {word}")
        self._need("day", f"at most {word} a")
        return int(word)

    def _need(self, wanted: str, after: str) -> None:
        word = self._take(f"{wanted!r} behind '{after}', as in at most 3 a day")
        if word != wanted:
            self._refuse(word, f"{wanted!r} behind '{after}'", [wanted], "a cap is such as at most 3 a day")

    def _condition(self) -> Limit | Change | Surely:
        column = self._take(f"a column of a row, {_EXAMPLES}")
        check_column(column)
        word = self._take(f"<, <=, >, >=, drops or rises behind {column!r}")
        if comparison := COMPARISONS.get(word):
            return Limit(column, comparison, self._number(f"{column} {word}"))
        if word == "surely":
            return self._surely(column)
        if not (direction := DIRECTIONS.get(word)):
            self._refuse(word, f"a comparison behind {column!r}", [*COMPARISONS, *DIRECTIONS, "surely"])
        return self._change(column, direction)

    def _surely(self, column: str) -> Surely:
        if column != "auc":
            raise ConfigError(f"{column} surely: there is evidence of the auc alone; say auc surely < 0.8")
        word = self._take("< or drops behind 'auc surely', such as auc surely < 0.8")
        bound: Bound
        if word == "<":
            bound = self._number("auc surely <")
        elif word == "drops":
            margin, against = self._by_against("auc surely", "drops")
            if not isinstance(against, Period):
                raise ConfigError(
                    f"auc surely drops against {against}: a bound must stay as it is, so name a period; "
                    f"{REMEDY_PERIOD}"
                )
            bound = PeriodBound(against, margin or 0.0)
        else:
            self._refuse(word, "'<' or 'drops' behind 'auc surely'", ["<", "drops"], "say auc surely < 0.8")
        rate = None
        if self._words[0] == "at" and self._words[1] != "most":
            self._takes("at")
            rate = self._rate()
        return Surely(bound, rate)

    def _rate(self) -> Rate:
        if self._words[0] == _END:
            raise ConfigError(f"it ends behind 'at'; {REMEDY_RATE}")
        number = self._number("at")
        if not self._takes("per"):
            return Rate(number)
        events = self._number("per")
        self._takes("events")
        return parse_budget(f"{number!r} per {events!r}")

    def _change(self, column: str, direction: Direction) -> Change:
        by, against = self._by_against(column, direction)
        if by is None and column not in TESTED:
            raise ConfigError(
                f"{column} has no interval, so say by how much it {direction}: {column} {direction} by "
                f"NUMBER against {against}"
            )
        return Change(column, direction, by or 0.0, against)

    def _by_against(self, column: str, direction: Direction) -> tuple[float | None, Span | Period]:
        """Read the size of a change and its reference; the size is None if the rule has none."""
        by = None
        if self._takes("by"):
            by = self._number(f"{column} {direction} by")
        word = self._take(f"'against' and what {column} is held against, such as against 7d")
        if word != "against":
            self._refuse(
                word, f"what {column} is held against", ["against"] if by is not None else ["by", "against"]
            )
        return by, self._against()

    def reference(self) -> Span | Period:
        """Read a reference, with no word behind the reference."""
        found = self._against()
        if self._words[0] != _END:
            raise ConfigError(f"{self._words[0]!r} stands behind {found}; {REMEDY_SPAN}, or a period")
        return found

    def _against(self) -> Span | Period:
        return parse_period(self._take("")) if ".." in self._words[0] else self._span("against")

    def _held(self) -> Span:
        return self._span("for") if self._takes("for") else ONE_ROW

    def _span(self, after: str) -> Span:
        word = self._take(f"how long behind {after!r}; {REMEDY_SPAN}")
        if word.isdecimal() or word[:1] in "+-":
            if not word.isdecimal() or len(word) > 20 or not is_count(int(word)):
                raise ConfigError(f"{after} {word}: a span is 1 or more; {REMEDY_SPAN}")
            if not self._takes("rows") and not self._takes("row"):
                raise ConfigError(
                    f"{after} {word}: {word} of what? Say {word} rows, or a duration such as {word}h"
                )
            return Span(int(word))
        if self._words[0] in ("row", "rows"):
            raise ConfigError(f"{after} {word}: a number of rows is whole, 1 or more")
        return Span(microseconds(word, after), "time")

    def _number(self, after: str) -> float:
        word = self._take(f"a number behind '{after}'")
        try:
            number = float(word)
        except ValueError:
            raise ConfigError(f"{word!r} behind '{after}' is not a number") from None
        return finite(number, f"the number behind '{after}'")

    def _take(self, wanted: str) -> str:
        if self._words[0] == _END:
            raise ConfigError(f"it ends where it needs {wanted}")
        return self._words.pop(0)

    def _takes(self, word: str) -> bool:
        if self._words[0] != word:
            return False
        del self._words[0]
        return True

    def _end(self, may_follow: list[str]) -> None:
        if (word := self._words[0]) == _END:
            return
        wanted = f"{', '.join(map(repr, may_follow))} or " * bool(may_follow) + "the end of the rule"
        if word in _PARTS:
            raise ConfigError(
                f"{word!r} is not {wanted}; the order is for, until (with its own for), where, at most"
            )
        self._refuse(word, wanted, may_follow)

    @staticmethod
    def _refuse(word: str, where: str, known: list[str], remedy: str = f"a rule is {_RULES}") -> NoReturn:
        near = near_names(word, known)
        hint = f"did you mean {near[0]!r}?" if near else remedy
        raise ConfigError(f"{word!r} is not {where}; {hint}")
