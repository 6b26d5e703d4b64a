"""The grammar of an alert's rule, as `--alert` takes it.

Words stand apart, comparisons need not:

    rule      = condition [held] ["until" limit [held]]
    condition = limit | change
    limit     = COLUMN ("<" | "<=" | ">" | ">=") NUMBER
    change    = COLUMN ("drops" | "rises") ["by" NUMBER] "against" (span | PERIOD)
    held      = "for" span
    span      = N ("row" | "rows") | DURATION

COLUMN is a column of a row that holds numbers (`RULE_COLUMNS`), DURATION is 90s, 30m, 2h or 7d, PERIOD is
START..END of RFC 3339 times or dates (no zone = UTC), the end exclusive.

    auc_high < 0.8 for 3 rows                   in three rows, the whole interval is below 0.8
    kappa_m < 0 for 2h until kappa_m > 0.1      hysteresis
    auc drops against 7d                        significantly, against the window of 7 days ago
    auc drops by 0.02 against 500 rows          significantly more than 0.02
    brier rises by 0.01 against 2013-01-01..2013-02-01
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import NoReturn

from ..errors import ConfigError
from ..events.times import EPOCH
from ..process.near_names import near_names
from ..settings.durations import microseconds
from ..settings.windows import is_count
from .rules import (
    COMPARISONS,
    DIRECTIONS,
    ONE_ROW,
    REMEDY_PERIOD,
    REMEDY_SPAN,
    AlertRule,
    Change,
    Direction,
    Limit,
    Period,
    Span,
    check_column,
    finite,
)

_WORD = re.compile(r"[<>=!]+|[^\s<>=!]+")
_END = ""
"""The word behind the last word of a rule."""

_EXAMPLES = "such as 'auc_high < 0.8 for 3 rows' or 'auc drops by 0.02 against 7d'"


def parse_alert(text: str) -> AlertRule:
    """Read a rule; the grammar stands at the head of this module. O(words).

    Raises ConfigError, which names the text, the word that is wrong and what would do.

    >>> parse_alert("auc<0.80 for 1 rows until auc > .82")
    AlertRule(opens=Limit(column='auc', comparison='<', number=0.8), held=Span(count=1, unit='rows'), \
until=Limit(column='auc', comparison='>', number=0.82), until_held=Span(count=1, unit='rows'))
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
    """Read a span or a period as it stands behind `against` in a rule. Raises ConfigError.

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
        if not self._takes("until"):
            self._end("'for' or 'until'" if held is ONE_ROW else "'until'")
            return AlertRule(opens, held)
        until = self._condition()
        if isinstance(until, Change):
            raise ConfigError(
                f"until {until}: an alert closes on a limit, such as until {until.column} > 0.8"
            )
        until_held = self._held()
        self._end("'for'" if until_held is ONE_ROW else "the end of the rule")
        return AlertRule(opens, held, until, until_held)

    def _condition(self) -> Limit | Change:
        column = self._take(f"a column of a row, {_EXAMPLES}")
        check_column(column)
        word = self._take(f"<, <=, >, >=, drops or rises behind {column!r}")
        if comparison := COMPARISONS.get(word):
            return Limit(column, comparison, self._number(f"{column} {word}"))
        if not (direction := DIRECTIONS.get(word)):
            self._refuse(word, f"a comparison behind {column!r}", [*COMPARISONS, *DIRECTIONS])
        return self._change(column, direction)

    def _change(self, column: str, direction: Direction) -> Change:
        by = None
        if self._takes("by"):
            by = self._number(f"{column} {direction} by")
        word = self._take(f"'against' and what {column} is held against, such as against 7d")
        if word != "against":
            self._refuse(
                word, f"what {column} is held against", ["against"] if by is not None else ["by", "against"]
            )
        against = self._against()
        if by is None and column != "auc":
            raise ConfigError(
                f"{column} has no interval, so say by how much it {direction}: {column} {direction} by "
                f"NUMBER against {against}"
            )
        return Change(column, direction, by or 0.0, against)

    def reference(self) -> Span | Period:
        """Read a reference, and nothing behind the reference."""
        found = self._against()
        self._end("the end of the reference")
        return found

    def _against(self) -> Span | Period:
        return _period(self._take("")) if ".." in self._words[0] else self._span("against")

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

    def _end(self, wanted: str) -> None:
        if self._words[0] != _END:
            self._refuse(self._words[0], f"{wanted}, which may stand here", ["for", "until"])

    @staticmethod
    def _refuse(word: str, where: str, known: list[str]) -> NoReturn:
        near = near_names(word, known)
        hint = f"did you mean {near[0]!r}?" if near else f"a rule is {_EXAMPLES.removeprefix('such as ')}"
        raise ConfigError(f"{word!r} is not {where}; {hint}")


def _period(text: str) -> Period:
    start, _, end = text.partition("..")
    first, last = _time(start, text), _time(end, text)
    if last < first:
        raise ConfigError(f"against {text}: it ends before it starts; {REMEDY_PERIOD}")
    return Period(first, last)


def _time(text: str, period: str) -> int:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"against {period}: {text!r} is no time; {REMEDY_PERIOD}") from None
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return (time - EPOCH) // timedelta(microseconds=1)
