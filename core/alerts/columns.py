"""The columns that rules may name, and the kinds of rows that have these columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from ..errors import ConfigError
from ..process.near_names import near_names
from ..rows.class_columns import MEANS_NUMBERS
from ..rows.columns import COUNT_COLUMNS, MASS_COLUMNS, NUMBER_COLUMNS, TIME_COLUMNS
from ..rows.measure_table import CLASS_TABLE, MEASURE_TABLE, POSITIVE_MEASURES
from ..rows.pairs import PAIR_NUMBERS
from ..rows.roll_ups import GROUP_NUMBERS

RULE_COLUMNS = (*COUNT_COLUMNS, *NUMBER_COLUMNS, *MEANS_NUMBERS, "drift")
"""The columns of rows that a rule may name: counts, masses and measures, and `drift` as 1 or 0.

A rule may also name columns of roll-up rows (`GROUP_NUMBERS`), and then watches groups, or columns of rows of
pairs (`PAIR_NUMBERS`), and then watches pairs.
"""

OF_ONE_CLASS = frozenset((*MASS_COLUMNS[1:], *POSITIVE_MEASURES, "members_surely_below"))
"""Columns that are null in the row of all classes, and in its roll-up: they need a positive class."""

TESTED = tuple(measure.name for measure in (*MEASURE_TABLE, *CLASS_TABLE) if measure.interval)
"""Columns that have an interval, by which a change is tested."""

Kind = Literal["row", "roll-up row", "pair row"]
"""The kinds of rows that rules watch."""


def kind_of(columns: Iterable[str]) -> Kind:
    """Return the kind of rows that have the columns of a rule, all of one kind."""
    first = next(iter(columns), "")
    return "roll-up row" if first in GROUP_NUMBERS else "pair row" if first in PAIR_NUMBERS else "row"


def check_column(name: Any) -> None:
    """Raise ConfigError unless a rule may name the column."""
    if name in (*RULE_COLUMNS, *GROUP_NUMBERS, *PAIR_NUMBERS):
        return
    if name == "verdict":
        raise ConfigError(
            "'verdict' is a text, and a rule speaks of numbers; anytime_high < 0 is the verdict worse, and "
            "anytime_low > 0 the verdict better"
        )
    if name in TIME_COLUMNS:
        raise ConfigError(
            f"{name!r} is a time, and a rule speaks of numbers; name a measure, or hold a condition "
            "for a duration"
        )
    near = near_names(str(name), (*RULE_COLUMNS, *GROUP_NUMBERS, *PAIR_NUMBERS), 2)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"there are {', '.join(RULE_COLUMNS)}"
    raise ConfigError(f"{name!r} is no number of a row; {hint}")
