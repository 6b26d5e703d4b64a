"""The rules that open and close alerts.

A rule is checked when it is made, and is written in one spelling (see `grammar`).

`AlertTable` applies rules to rows; its module defines their meaning.
"""

from __future__ import annotations

import math
import numbers
import operator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal, get_args

from ..errors import ConfigError
from ..rows.class_columns import MEANS_NUMBERS
from ..rows.pairs import models_of
from ..rows.roll_ups import GROUP_NUMBERS
from ..settings.durations import duration_text
from ..settings.evidence import PeriodBound
from ..settings.periods import REMEDY_PERIOD, Period
from ..settings.windows import is_count, number_text
from .columns import OF_ONE_CLASS, TESTED, Kind, check_column, kind_of
from .surely import Surely

Comparison = Literal["<", "<=", ">", ">="]
Direction = Literal["drops", "rises"]
NameColumn = Literal["model", "slice", "class", "group"]
NameComparison = Literal["=", "!=", "like", "not like"]
COMPARISONS: dict[str, Comparison] = {each: each for each in get_args(Comparison)}
DIRECTIONS: dict[str, Direction] = {each: each for each in get_args(Direction)}
NAME_COLUMNS: dict[str, NameColumn] = {each: each for each in get_args(NameColumn)}
NAME_COMPARISONS: dict[str, NameComparison] = {each: each for each in get_args(NameComparison)}
_NAMES_OF: dict[Kind, tuple[NameColumn, ...]] = {
    "row": ("model", "slice", "class"),
    "roll-up row": ("group", "class"),
    "pair row": ("model", "slice"),
}
"""The columns of names that a rule may test, for each kind of rows."""
_COMPARED = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
REMEDY_SPAN = "give a number of rows, such as 3 rows, or a duration, such as 30m, 2h or 7d"
REMEDY_WHERE = "give a test of model, slice, class or group, such as slice = '' or model like 'team1/*'"


def finite(value: Any, what: str) -> float:
    """Return a finite number, with 0 in place of -0.

    Raises ConfigError, which names `what`, for any other value.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(value):
        raise ConfigError(f"{what} is {value!r}; give a finite number")
    return float(value) + 0.0


@dataclass(frozen=True)
class Span:
    """A number of rows, or a duration of row time.

    count  the number, 1 or more
    unit   what `count` counts: "rows", or "time" for microseconds

    >>> str(Span(3)), str(Span(1)), str(Span(7_200_000_000, "time"))
    ('3 rows', '1 row', '2h')
    """

    count: int
    unit: Literal["rows", "time"] = "rows"

    def __post_init__(self) -> None:
        if not is_count(self.count) or self.unit not in ("rows", "time"):
            raise ConfigError(f"{self.count!r} of {self.unit!r} is no span; {REMEDY_SPAN}")

    def __str__(self) -> str:
        if self.unit == "time":
            return duration_text(self.count)
        return f"{self.count} row{'' if self.count == 1 else 's'}"


ONE_ROW = Span(1)
QUOTE = "'"


@dataclass(frozen=True)
class Limit:
    """A condition that compares a column of the row with a number.

    column      a column of rows that holds numbers, such as "auc_high"
    comparison  "<", "<=", ">" or ">="
    number      the limit, a finite number

    >>> str(Limit("auc_high", "<", 0.8)), Limit("auc", ">=", 0.5).holds(0.5)
    ('auc_high < 0.8', True)
    """

    column: str
    comparison: Comparison
    number: float

    def __post_init__(self) -> None:
        check_column(self.column)
        if self.comparison not in COMPARISONS:
            raise ConfigError(f"{self.comparison!r} is no comparison; use <, <=, > or >=")
        object.__setattr__(self, "number", finite(self.number, "the limit"))

    def __str__(self) -> str:
        return f"{self.column} {self.comparison} {number_text(self.number)}"

    def holds(self, value: float) -> bool | None:
        """Return whether a value satisfies the comparison; None if the value is NaN."""
        return None if math.isnan(value) else bool(_COMPARED[self.comparison](value, self.number))

    def meets(self, other: Limit) -> bool:
        """Return whether some value satisfies both limits; False if the limits have different columns."""
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
    """A condition that compares a column with its value in an earlier row.

    The condition holds if the value is now lower (drops) or higher (rises).

    column     a column of rows that holds numbers, such as "auc"
    direction  "drops" or "rises"
    by         0 or more: the difference must be greater than `by`. For the AUC, and for a mean of the
               classes' AUCs, the whole interval of the difference must be above `by`; other columns have no
               interval
    against    a span, so that the row is compared with the latest row at least that far back whose window
               shares no event with this row's window; or a period, so that the row is compared with the last
               row whose window lies within the period

    >>> from rocsteady import parse_alert
    >>> parse_alert("auc drops by 0.02 against 500 rows").opens
    Change(column='auc', direction='drops', by=0.02, against=Span(count=500, unit='rows'))
    """

    column: str
    direction: Direction
    by: float
    against: Span | Period

    def __post_init__(self) -> None:
        check_column(self.column)
        if self.column in GROUP_NUMBERS:
            raise ConfigError(
                f"{self.column} {self.direction}: a change compares two windows of a model, and "
                f"{self.column} is of a group; give a limit, such as {self.column} < 0.8"
            )
        if self.column.startswith("anytime_"):
            raise ConfigError(
                f"{self.column} {self.direction}: a change compares two windows, and {self.column} is about "
                f"all instances; give a limit, such as {self.column} < 0"
            )
        if self.direction not in DIRECTIONS:
            raise ConfigError(f"{self.direction!r} is no direction of a change; use drops or rises")
        if not isinstance(self.against, Span | Period):
            raise ConfigError(f"against {self.against!r}: {REMEDY_SPAN}, or a period; {REMEDY_PERIOD}")
        object.__setattr__(self, "by", finite(self.by, "the size of the change"))
        if self.by < 0:
            raise ConfigError(
                f"the size of the change is {number_text(self.by)}; give a number of 0 or more, and say "
                "drops or rises"
            )

    @property
    def tested(self) -> bool:
        """Whether the difference of two values has an interval."""
        return self.column in TESTED

    def __str__(self) -> str:
        by = f" by {number_text(self.by)}" if self.by or not self.tested else ""
        return f"{self.column} {self.direction}{by} against {self.against}"


@dataclass(frozen=True)
class NameTest:
    """A test of the name of a model, slice, class or group: one of the tests behind `where`.

    column      "model", "slice" or "class"; "group" for a rule on groups
    comparison  "=", "!=", "like" or "not like"
    text        the whole name, or for `like` and `not like` a pattern of `fnmatch`: `*` is any text, `?` any
                character, `[ab]` one of the characters, `[*]` the character `*`. Upper and lower case differ.

    >>> str(NameTest("model", "like", "team's/*")), NameTest("slice", "=", "").holds("region=NZ")
    ("model like 'team''s/*'", False)
    """

    column: NameColumn
    comparison: NameComparison
    text: str

    def __post_init__(self) -> None:
        if self.column not in NAME_COLUMNS or self.comparison not in NAME_COMPARISONS:
            raise ConfigError(f"where {self.column!r} {self.comparison!r}: {REMEDY_WHERE}")
        if not isinstance(self.text, str):
            raise ConfigError(f"where {self.column} {self.comparison} {self.text!r}: give a text")
        try:
            self.text.encode()
        except UnicodeEncodeError:
            raise ConfigError(
                f"where {self.column} {self.comparison} {self.text!a}: the text is not UTF-8, and every name "
                "is; give another"
            ) from None

    def __str__(self) -> str:
        return f"{self.column} {self.comparison} '{self.text.replace(QUOTE, QUOTE * 2)}'"

    def holds(self, name: str) -> bool:
        """Return whether a name in the column passes the test."""
        if "like" in self.comparison:
            return fnmatchcase(name, self.text) == (self.comparison == "like")
        return (name == self.text) == (self.comparison == "=")


@dataclass(frozen=True)
class AlertRule:
    """The rule of an alert: when it opens and when it closes. `parse_alert` reads its text, `str` writes it.

    opens       the condition that opens the alert
    held        for how many rows, or how long, `opens` must hold before the alert opens
    until       the condition that closes an open alert; None if the alert closes at the first row where
                `opens` is false
    until_held  for how many rows, or how long, `until` must hold
    where       the tests that a model and a slice must pass, or the rule does not watch their rows; kept
                sorted, each test once
    a_day       how many of the alerts that open for a model on one day (UTC) are told, at most; None if all
                alerts are told

    Raises ConfigError for a rule that would open and close on the same value, and for a rule whose tests no
    name passes.

    >>> from rocsteady import parse_alert
    >>> rule = parse_alert("auc_high < 0.80 for 3 rows")
    >>> str(rule), str(rule.opens), str(rule.held), rule.covers("churn", "")
    ('auc_high < 0.8 for 3 rows', 'auc_high < 0.8', '3 rows', True)
    """

    opens: Limit | Change | Surely
    held: Span = ONE_ROW
    until: Limit | None = None
    until_held: Span = ONE_ROW
    where: tuple[NameTest, ...] = ()
    a_day: int | None = None

    def __post_init__(self) -> None:
        order = [*NAME_COMPARISONS].index
        tests = sorted({*self.where}, key=lambda test: (test.column, order(test.comparison), test.text))
        object.__setattr__(self, "where", tuple(tests))
        _refuse_contradiction(self.where)
        self._refuse_two_kinds()
        if self.a_day is not None and not is_count(self.a_day):
            raise ConfigError(f"at most {self.a_day!r} a day: give a whole number of 1 or more")
        if isinstance(self.opens, Surely) and self.held != ONE_ROW:
            raise ConfigError(
                f"{self.opens} for {self.held}: evidence needs no time to be sure; leave it out"
            )
        if self.until is None:
            if self.until_held != ONE_ROW:
                raise ConfigError(f"for {self.until_held} of what? Give until= a limit")
        elif isinstance(self.opens, Limit) and self.opens.meets(self.until):
            raise ConfigError(
                f"one value of {self.opens.column} opens the alert ({self.opens}) and closes it "
                f"({self.until}); close it on the other side of the limit"
            )

    def __str__(self) -> str:
        parts = [f"{self.opens}{_held_text(self.held)}"]
        if self.until is not None:
            parts.append(f"until {self.until}{_held_text(self.until_held)}")
        if self.where:
            parts.append(f"where {' and '.join(map(str, self.where))}")
        if self.a_day is not None:
            parts.append(f"at most {self.a_day} a day")
        return " ".join(parts)

    def covers(self, model: str, slice_: str, *class_: str) -> bool:
        """Return whether the rule watches the rows of `model` and of its slice `slice_`. O(tests).

        model   the name of a model; for a rule on groups, of a group; for a rule on pairs, of a pair
        class_  the class of the rows, if the model has a score of each class; "" for the rows of all classes
        """
        of_class = any(class_)
        if of_class or (class_ and self.kind == "row"):
            if of_class != self.watches_classes:
                return False
        elif self.tests_class:
            return False
        if self.where and self.kind == "pair row":
            model, _ = models_of(model)
        names = {"model": model, "group": model, "slice": slice_, "class": "".join(class_)}
        return all(test.holds(names[test.column]) for test in self.where)

    @property
    def watches_classes(self) -> bool:
        """Whether the rule watches the rows of single classes of a model with classes.

        If not, it watches the row of all classes. The rule watches single classes if it names a column that
        the row of all classes lacks, or tests `class`.
        """
        return not OF_ONE_CLASS.isdisjoint(self.columns) or self.tests_class

    @property
    def needs_classes(self) -> str | None:
        """Return the part of the rule that only models with a score of each class have.

        None if no part needs classes.
        """
        means = [column for column in self.columns if column in MEANS_NUMBERS]
        return next(iter(means), "where class" if self.tests_class and self.kind == "row" else None)

    @property
    def tests_class(self) -> bool:
        """Whether the rule tests the name of the class."""
        return any(test.column == "class" for test in self.where)

    @property
    def kind(self) -> Kind:
        """The kind of rows that the rule watches."""
        return kind_of(self.columns)

    def _refuse_two_kinds(self) -> None:
        """Raise ConfigError for a rule that names columns, or tests names, of two kinds of rows."""
        first = {kind_of([column]): column for column in reversed(self.columns)}
        if len(first) > 1:
            one, other = sorted(first, key=lambda kind: kind != "row")
            raise ConfigError(
                f"{first[one]} is a column of {one}s, and {first[other]} one of {other}s; give a rule "
                "columns of one kind"
            )
        for test in self.where:
            if test.column not in (names := _NAMES_OF[self.kind]):
                raise ConfigError(
                    f"where {test}: {self.opens.column} is a column of a {self.kind}; test its "
                    f"{' or '.join(names)}"
                )
            if (test.column, test.comparison, test.text) == ("class", "=", ""):
                raise ConfigError(f"where {test}: every class has a name; give the name of one")
        means = [column for column in self.columns if column in MEANS_NUMBERS]
        if means and self.watches_classes:
            others = [column for column in self.columns if column in OF_ONE_CLASS]
            raise ConfigError(
                f"{means[0]} is a column of the row of all classes, and {[*others, 'where class'][0]!r} is "
                "of the rows of one class; give a rule for each"
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a row that the rule names."""
        named = [*self.opens.columns] if isinstance(self.opens, Surely) else [self.opens.column]
        if self.until is not None:
            named.append(self.until.column)
        return tuple(dict.fromkeys(named))

    @property
    def needs_times(self) -> str | None:
        """Return the part of the rule that needs event times; None if no part needs event times."""
        spans: list[tuple[str, Span | Period]] = [("for", self.held), ("for", self.until_held)]
        if isinstance(self.opens, Change):
            spans.insert(0, ("against", self.opens.against))
        if isinstance(self.opens, Surely) and isinstance(self.opens.bound, PeriodBound):
            spans.insert(0, ("against", self.opens.bound.period))
        if (of_span := next((f"{word} {span}" for word, span in spans if span.unit == "time"), None)) is None:
            return None if self.a_day is None else f"at most {self.a_day} a day"
        return of_span


def _refuse_contradiction(tests: tuple[NameTest, ...]) -> None:
    """Raise ConfigError if one name passes an `=`, and fails another test of the same column."""
    for test in tests:
        for other in tests:
            if test.comparison == "=" and other.column == test.column and not other.holds(test.text):
                raise ConfigError(f"where {test} and {other}: no {test.column} passes both; leave one out")


def _held_text(held: Span) -> str:
    return "" if held == ONE_ROW else f" for {held}"
