"""When an alert opens and when it closes, as a sentence: read, checked once, and written in one spelling.

Grammar; words stand apart, comparisons need not
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

What the words mean stands at `AlertTable`, which applies them to rows.
"""

from __future__ import annotations

import math
import numbers
import operator
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NoReturn, get_args

from ..errors import ConfigError
from ..process.near_names import near_names
from ..rows.columns import COUNT_COLUMNS, NUMBER_COLUMNS, TIME_COLUMNS
from ..settings.durations import duration_text, microseconds
from ..settings.windows import is_count

RULE_COLUMNS = (*COUNT_COLUMNS, *NUMBER_COLUMNS, "drift")
"""What a rule may speak of: counts, masses and measures, and `drift` as 1 or 0."""

Comparison = Literal["<", "<=", ">", ">="]
Direction = Literal["drops", "rises"]
_COMPARISONS: dict[str, Comparison] = {each: each for each in get_args(Comparison)}
_DIRECTIONS: dict[str, Direction] = {each: each for each in get_args(Direction)}
_COMPARED = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_WORD = re.compile(r"[<>=!]+|[^\s<>=!]+")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _LAST = (
    (end.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1) for end in (datetime.min, datetime.max)
)
_EXAMPLES = "such as 'auc_high < 0.8 for 3 rows' or 'auc drops by 0.02 against 7d'"
_REMEDY_SPAN = "give a number of rows, such as 3 rows, or a duration, such as 30m, 2h or 7d"
_REMEDY_PERIOD = "give two times, the earlier one first, such as 2013-01-01..2013-02-01"


def _number_text(number: float) -> str:
    return repr(number).removesuffix(".0")


def _finite(value: Any, what: str) -> float:
    """Return a number that a measure can be held against, never -0."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(value):
        raise ConfigError(f"{what} is {value!r}; give a finite number")
    return float(value) + 0.0


def _check_column(name: Any) -> None:
    if name in RULE_COLUMNS:
        return
    if name in TIME_COLUMNS:
        raise ConfigError(
            f"{name!r} is a time, and a rule speaks of numbers; name a measure, or hold a condition "
            "for a duration"
        )
    near = near_names(str(name), RULE_COLUMNS, 2)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"there are {', '.join(RULE_COLUMNS)}"
    raise ConfigError(f"{name!r} is no number of a row; {hint}")


@dataclass(frozen=True)
class Span:
    """A number of rows, or a duration in microseconds of row time.

    >>> str(Span(3)), str(Span(1)), str(Span(7_200_000_000, "time"))
    ('3 rows', '1 row', '2h')
    """

    count: int
    unit: Literal["rows", "time"] = "rows"

    def __post_init__(self) -> None:
        if not is_count(self.count) or self.unit not in ("rows", "time"):
            raise ConfigError(f"{self.count!r} of {self.unit!r} is no span; {_REMEDY_SPAN}")

    def __str__(self) -> str:
        if self.unit == "time":
            return duration_text(self.count)
        return f"{self.count} row{'' if self.count == 1 else 's'}"


ONE_ROW = Span(1)


@dataclass(frozen=True)
class Period:
    """A stretch of time [start, end), microseconds UTC.

    >>> str(Period(0, 86_400_000_000)), str(Period(0, 5_400_000_000))
    ('1970-01-01..1970-01-02', '1970-01-01..1970-01-01T01:30:00Z')
    """

    start: int
    end: int

    def __post_init__(self) -> None:
        if not _FIRST <= self.start <= self.end <= _LAST:
            raise ConfigError(f"a period from {self.start} to {self.end} microseconds; {_REMEDY_PERIOD}")
        if self.start == self.end:
            raise ConfigError(f"nothing is in the period {self}; {_REMEDY_PERIOD}")

    def __str__(self) -> str:
        return f"{_time_text(self.start)}..{_time_text(self.end)}"


def _time_text(micros: int) -> str:
    time = _EPOCH + timedelta(microseconds=micros)
    if time.hour == time.minute == time.second == time.microsecond == 0:
        return f"{time:%Y-%m-%d}" if time.year > 999 else time.date().isoformat()
    return time.isoformat().replace("+00:00", "Z")


@dataclass(frozen=True)
class Limit:
    """A column of the row against a number.

    >>> str(Limit("auc_high", "<", 0.8)), Limit("auc", ">=", 0.5).holds(0.5)
    ('auc_high < 0.8', True)
    """

    column: str
    comparison: Comparison
    number: float

    def __post_init__(self) -> None:
        _check_column(self.column)
        if self.comparison not in _COMPARISONS:
            raise ConfigError(f"{self.comparison!r} is no comparison; use <, <=, > or >=")
        object.__setattr__(self, "number", _finite(self.number, "the limit"))

    def __str__(self) -> str:
        return f"{self.column} {self.comparison} {_number_text(self.number)}"

    def holds(self, value: float) -> bool:
        """Return whether a value, no NaN, is on the rule's side of the limit."""
        return bool(_COMPARED[self.comparison](value, self.number))

    def meets(self, other: Limit) -> bool:
        """Return whether one value can be on the side of both; False where they speak of two columns."""
        if self.column != other.column:
            return False
        if self.comparison[0] == other.comparison[0]:
            return True
        below, above = (self, other) if self.comparison[0] == "<" else (other, self)
        if above.number == below.number:
            return "=" in below.comparison and "=" in above.comparison
        return above.number < below.number


@dataclass(frozen=True)
class Change:
    """A column of the row against its value in an earlier row: lower (drops) or higher (rises), by more than.

    by       0 or more. Of the AUC, the whole interval of the difference must be beyond it; other columns
             have no interval, and the plain difference is taken
    against  a span: the latest row at least so far back whose window shares no event with this one's; or a
             period: the last row whose window lies within it

    >>> str(Change("auc", "drops", 0.02, Span(500)))
    'auc drops by 0.02 against 500 rows'
    """

    column: str
    direction: Direction
    by: float
    against: Span | Period

    def __post_init__(self) -> None:
        _check_column(self.column)
        if self.direction not in _DIRECTIONS:
            raise ConfigError(f"{self.direction!r} is no direction of a change; use drops or rises")
        if not isinstance(self.against, Span | Period):
            raise ConfigError(f"against {self.against!r}: {_REMEDY_SPAN}, or a period; {_REMEDY_PERIOD}")
        object.__setattr__(self, "by", _finite(self.by, "the size of the change"))
        if self.by < 0:
            raise ConfigError(
                f"the size of the change is {_number_text(self.by)}; give a number of 0 or more, and say "
                "drops or rises"
            )

    @property
    def tested(self) -> bool:
        """Whether the difference has an interval."""
        return self.column == "auc"

    def __str__(self) -> str:
        by = f" by {_number_text(self.by)}" if self.by or not self.tested else ""
        return f"{self.column} {self.direction}{by} against {self.against}"


@dataclass(frozen=True)
class AlertRule:
    """When an alert opens, and when it closes. `parse_alert` makes it of text, `str` the text of it.

    opens       the condition
    held        for how many rows, or how long, it must hold before the alert opens
    until       the condition on which an open alert closes; None: the first row where `opens` is false
    until_held  for how many rows, or how long, that must hold

    Raises ConfigError for a rule that would open and close on the same value.

    >>> rule = AlertRule(Limit("auc_high", "<", 0.8), held=Span(3))
    >>> str(rule), rule == parse_alert(str(rule))
    ('auc_high < 0.8 for 3 rows', True)
    """

    opens: Limit | Change
    held: Span = ONE_ROW
    until: Limit | None = None
    until_held: Span = ONE_ROW

    def __post_init__(self) -> None:
        if self.until is None:
            if self.until_held != ONE_ROW:
                raise ConfigError(f"for {self.until_held} of what? Give until= a limit")
        elif isinstance(self.opens, Limit) and self.opens.meets(self.until):
            raise ConfigError(
                f"one value of {self.opens.column} opens the alert ({self.opens}) and closes it "
                f"({self.until}); close it on the other side of the limit"
            )

    def __str__(self) -> str:
        text = f"{self.opens}{_held_text(self.held)}"
        return text if self.until is None else f"{text} until {self.until}{_held_text(self.until_held)}"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a row that it speaks of."""
        named = [self.opens.column] if self.until is None else [self.opens.column, self.until.column]
        return tuple(dict.fromkeys(named))

    @property
    def needs_times(self) -> str | None:
        """Return the part of it that makes no sense without event times; None = there is none."""
        if isinstance(self.opens, Change) and not _counts_rows(self.opens.against):
            return f"against {self.opens.against}"
        timed = [held for held in (self.held, self.until_held) if not _counts_rows(held)]
        return f"for {timed[0]}" if timed else None


def _held_text(held: Span) -> str:
    return "" if held == ONE_ROW else f" for {held}"


def _counts_rows(span: Span | Period) -> bool:
    return isinstance(span, Span) and span.unit == "rows"


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


class _Words:
    """Reads a rule from left to right."""

    def __init__(self, text: str) -> None:
        self._words: list[str] = _WORD.findall(text)
        self._at = 0

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
        _check_column(column)
        word = self._take(f"<, <=, >, >=, drops or rises behind {column!r}")
        if comparison := _COMPARISONS.get(word):
            return Limit(column, comparison, self._number(f"{column} {word}"))
        if not (direction := _DIRECTIONS.get(word)):
            self._refuse(word, f"a comparison behind {column!r}", [*_COMPARISONS, *_DIRECTIONS])
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

    def _against(self) -> Span | Period:
        if self._at < len(self._words) and ".." in self._words[self._at]:
            return _period(self._take(""))
        return self._span("against")

    def _held(self) -> Span:
        return self._span("for") if self._takes("for") else ONE_ROW

    def _span(self, after: str) -> Span:
        word = self._take(f"how long behind {after!r}; {_REMEDY_SPAN}")
        if word.isdecimal() or word[:1] in "+-":
            if not word.isdecimal() or len(word) > 20 or not is_count(int(word)):
                raise ConfigError(f"{after} {word}: a span is 1 or more; {_REMEDY_SPAN}")
            if not self._takes("rows") and not self._takes("row"):
                raise ConfigError(
                    f"{after} {word}: {word} of what? Say {word} rows, or a duration such as {word}h"
                )
            return Span(int(word))
        if self._at < len(self._words) and self._words[self._at] in ("row", "rows"):
            raise ConfigError(f"{after} {word}: a number of rows is whole, 1 or more")
        return Span(microseconds(word, after), "time")

    def _number(self, after: str) -> float:
        word = self._take(f"a number behind '{after}'")
        try:
            return _finite(float(word), f"the number behind '{after}'")
        except ValueError as mistake:
            if isinstance(mistake, ConfigError):
                raise
            raise ConfigError(f"{word!r} behind '{after}' is not a number") from None

    def _take(self, wanted: str) -> str:
        if self._at == len(self._words):
            raise ConfigError(f"it ends where it needs {wanted}")
        self._at += 1
        return self._words[self._at - 1]

    def _takes(self, word: str) -> bool:
        found = self._at < len(self._words) and self._words[self._at] == word
        self._at += found
        return found

    def _end(self, wanted: str) -> None:
        if self._at < len(self._words):
            self._refuse(self._words[self._at], f"{wanted}, which may stand here", ["for", "until"])

    @staticmethod
    def _refuse(word: str, where: str, known: list[str]) -> NoReturn:
        near = near_names(word, known)
        hint = f"did you mean {near[0]!r}?" if near else f"a rule is {_EXAMPLES.removeprefix('such as ')}"
        raise ConfigError(f"{word!r} is not {where}; {hint}")


def _period(text: str) -> Period:
    start, _, end = text.partition("..")
    first, last = _time(start, text), _time(end, text)
    if last < first:
        raise ConfigError(f"against {text}: it ends before it starts; {_REMEDY_PERIOD}")
    return Period(first, last)


def _time(text: str, period: str) -> int:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"against {period}: {text!r} is no time; {_REMEDY_PERIOD}") from None
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return (time - _EPOCH) // timedelta(microseconds=1)
