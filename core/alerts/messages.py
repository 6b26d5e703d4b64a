"""The message of an alert: a sentence for people."""

from __future__ import annotations

from ..process.console import name_text, visible
from ..rows.display import figure
from .alert_rows import AlertRow
from .rules import AlertRule, Limit
from .surely import Surely

_SIDES = {"drops": "below", "rises": "above"}
"""The side of the reference on which a value is after a change."""


def message_of(alert: AlertRow, rule: AlertRule, streak: int, half_width: float | None) -> str:
    """Return the message of an alert: a sentence with the event, the place, the figures and the rule.

    streak      number of rows of the streak that opened or closed the alert
    half_width  half the width of the difference's interval; None if the rule is no change, or if the
                difference has no interval
    """
    name = name_text(alert.model) + (f" [{name_text(alert.slice)}]" if alert.slice else "")
    if alert.class_ is not None:
        name += f", class {name_text(alert.class_)}"
    if alert.state == "open":
        did, what = "opened", _opening(alert, rule, streak, half_width)
    else:
        did, what = "closed", _closing(alert, rule, streak)
    return (
        f"{name}: alert {did} at row {alert.row:,}{_when(alert.time)}: {what} (rule: {visible(alert.rule)})"
    )


def _opening(alert: AlertRow, rule: AlertRule, streak: int, half_width: float | None) -> str:
    what, opens = f"{alert.column} {_value(alert.value)}", rule.opens
    if isinstance(opens, Limit):
        what += f" {opens.comparison} {_value(opens.number)}"
    elif isinstance(opens, Surely):
        grew = f"which grew since row {alert.since_row:,}{_when(alert.since_time)}"
        enough = f"evidence {_value(alert.value)} >= {_value(alert.limit)}"
        given = ""
        if alert.reference_value is not None:
            given = f", to below {_value(alert.reference_value)}, the bound that the period gave"
        return f"auc surely {opens.claim}{given}: {enough}, {grew}"
    else:
        assert alert.reference_value is not None
        size, interval = abs(alert.reference_value - alert.value), ""
        if half_width is not None:
            interval = f" [{_value(size - half_width)}, {_value(size + half_width)}]"
        what += f" is {_value(size)}{interval} {_SIDES[opens.direction]} the {_reference(alert)}"
    if streak > 1:
        what += f" in {streak:,} rows since row {alert.since_row:,}{_when(alert.since_time)}"
    return what


def _closing(alert: AlertRow, rule: AlertRule, streak: int) -> str:
    what, opens = f"{alert.column} {_value(alert.value)}", rule.opens
    if rule.until is not None:
        what += f" {rule.until.comparison} {_value(rule.until.number)}"
        what += f" in {streak:,} rows" if streak > 1 else ""
    elif isinstance(opens, Limit):
        what += f", no longer {opens.comparison} {_value(opens.number)}"
    elif isinstance(opens, Surely):
        what += f" fell to {_value(alert.limit)} or less"
    else:
        sure = "significantly " if opens.tested else ""
        far = f"by more than {_value(opens.by)} " if opens.by else ""
        what += f" is no longer {sure}{far}{_SIDES[opens.direction]} the {_reference(alert)}"
    return f"{what}; it was opened at row {alert.since_row:,}{_when(alert.since_time)}"


def _reference(alert: AlertRow) -> str:
    assert alert.reference_value is not None
    return f"{_value(alert.reference_value)} of row {alert.reference_row:,}"


def _when(time: int | None) -> str:
    return "" if time is None else f", {figure('time', time)}"


def _value(number: float) -> str:
    """Return a number with six digits: four decimals would show 0.79996 on the wrong side of 0.8."""
    return f"{number:.6g}"
