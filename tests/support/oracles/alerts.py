"""Rules over the rows of one (model, slice, pane), slowly: every row looks through all rows before it.

Nothing is carried from row to row but whether an alert is open, since when, and against what.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from rocsteady.core.alerts.rules import AlertRule, Change, Limit, Span
from rocsteady.core.rows.records import MeasureRow
from rocsteady.core.settings.periods import Period


class Moment(NamedTuple):
    """What an alert says, without its words."""

    state: str
    row: int
    since_row: int
    value: float
    reference_row: int | None


def number(row: MeasureRow, column: str) -> float | None:
    value = getattr(row, column)
    return None if value is None else float(value)


def moment(row: MeasureRow) -> int | None:
    return row.time if row.due is None else row.due


def half_width(row: Any, change: Change) -> float | None:
    """Half the interval of a row's value; None where it is not to be compared."""
    if number(row, change.column) is None:
        return None
    if change.column not in ("auc", "auc_macro", "auc_weighted", "auc_m"):
        return 0.0
    value, low, high = (getattr(row, f"{change.column}{end}") for end in ("", "_low", "_high"))
    if low is None or high is None or low == high or (low <= 0 and high >= 1):
        return None
    if change.column == "auc" and min(row.positives, row.negatives) < 30:
        return None
    if change.column != "auc" and row.classes_absent:
        return None
    return max(value - low, high - value)


def window_begins(row: MeasureRow) -> int | None:
    return row.time if row.window_start is None else row.window_start


def disjoint(earlier: MeasureRow, later: MeasureRow) -> bool:
    """Whether two windows share no event, by their ordinals and by their times."""
    if earlier.seq > later.seq - later.window_events:
        return False
    begins = window_begins(later)
    return earlier.time is None or begins is None or earlier.time < begins


def may_be(earlier: MeasureRow, later: MeasureRow, against: Span) -> bool:
    if against.unit == "rows":
        back: Any = later.row - earlier.row
    elif moment(earlier) is None or moment(later) is None:
        return False
    else:
        back = moment(later) - moment(earlier)
    return back >= against.count and disjoint(earlier, later)


def reference_of(rows: list[MeasureRow], change: Change) -> MeasureRow | None:
    """The reference of the last of these rows."""
    *before, row = rows
    before = [one for one in before if half_width(one, change) is not None]
    against = change.against
    if isinstance(against, Period):
        within = [
            one
            for one in before
            if one.time is not None and window_begins(one) >= against.start and one.time < against.end
        ]
        judged = row.time is not None and row.time >= against.end
        return within[-1] if judged and within and disjoint(within[-1], row) else None
    furthest = [one for one in before if any(may_be(one, later, against) for later in rows)]
    return furthest[-1] if furthest and may_be(furthest[-1], row, against) else None


def holds(condition: Limit | Change, row: MeasureRow, reference: MeasureRow | None) -> bool | None:
    value = number(row, condition.column)
    if value is None:
        return None
    if isinstance(condition, Limit):
        return {
            "<": value < condition.number, "<=": value <= condition.number,
            ">": value > condition.number, ">=": value >= condition.number,
        }[condition.comparison]  # fmt: skip
    if reference is None or half_width(row, condition) is None:
        return None
    size = number(reference, condition.column) - value
    if condition.direction == "rises":
        size = -size
    sides = half_width(row, condition), half_width(reference, condition)
    return size - math.hypot(*sides) > condition.by


def streak(said: list[bool | None], rows: list[MeasureRow], held: Span) -> int | None:
    """The first row of the streak that ends, long enough, at the last of the rows; None = it does not."""
    if held.unit == "time":
        said = [None if moment(row) is None else one for one, row in zip(said, rows, strict=True)]
    if not said[-1]:
        return None
    start = len(said) - said[::-1].index(False) if False in said else 0
    yes = [at for at in range(start, len(said)) if said[at]]
    if held.unit == "rows":
        return rows[yes[0]].row if len(yes) >= held.count else None
    return rows[yes[0]].row if moment(rows[-1]) - moment(rows[yes[0]]) >= held.count else None


def moments_of(rule: AlertRule, rows: list[MeasureRow]) -> list[Moment]:
    """Return what becomes of one rule over the rows of one key, in order."""
    found: list[Moment] = []
    turned = 0  # where the alert was last opened or closed
    opened_against = None
    said: list[bool | None] = []
    for at, row in enumerate(rows):
        is_open = bool(found) and found[-1].state == "open"
        reference = None
        if isinstance(rule.opens, Change):
            reference = opened_against if is_open else reference_of(rows[: at + 1], rule.opens)
        ends = is_open and rule.until is not None
        said.append(holds(rule.until, row, None) if ends else holds(rule.opens, row, reference))
        column = rule.until.column if ends else rule.opens.column
        value, reference_row = number(row, column), reference and reference.row
        if not is_open:
            since = streak(said[turned:], rows[turned : at + 1], rule.held)
            if since is not None:
                found.append(Moment("open", row.row, since, value, reference_row))
                turned, opened_against = at + 1, reference
        elif ends:
            if streak(said[turned:], rows[turned : at + 1], rule.until_held) is not None:
                found.append(Moment("closed", row.row, found[-1].row, value, None))
                turned = at + 1
        elif said[-1] is False:
            found.append(Moment("closed", row.row, found[-1].row, value, reference_row))
            turned = at + 1
    return found
