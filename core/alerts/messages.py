"""The message of an alert: a sentence with the event, the place, the figures and the rule."""

from __future__ import annotations

from ..process.console import name_text
from ..rows.display import figure
from .rows import AlertRow
from .rules import AlertRule, Change


def opening_message(alert: AlertRow, rule: AlertRule, streak: int, half_width: float | None) -> str:
    """Return the message of an alert that opened after a streak of `streak` rows.

    half_width  half the width of the difference's interval; None if the rule is no change, or if its
                difference has no interval
    """
    if isinstance(rule.opens, Change) and alert.reference_value is not None:
        what = _changed(alert, rule.opens, half_width)
    else:
        what = f"{alert.column} {_value(alert.value)} {_comparison(rule)}"
    return f"{_place(alert, 'opened')}: {what}{_streak(alert, streak)} (rule: {alert.rule})"


def closing_message(alert: AlertRow, rule: AlertRule, streak: int) -> str:
    """Return the message of an alert that closed; `streak` counts rows of the `until` condition."""
    value = f"{alert.column} {_value(alert.value)}"
    if rule.until is not None:
        rows = f" in {streak:,} rows" if streak > 1 else ""
        what = f"{value} {rule.until.comparison} {_value(rule.until.number)}{rows}"
    elif isinstance(rule.opens, Change) and alert.reference_value is not None:
        far = f"by more than {_value(rule.opens.by)} " if rule.opens.by else ""
        side = "below" if rule.opens.direction == "drops" else "above"
        sure = "significantly " if rule.opens.tested else ""
        what = (
            f"{value} is no longer {sure}{far}{side} the {_value(alert.reference_value)} of row "
            f"{alert.reference_row:,}"
        )
    else:
        what = f"{value}, no longer {_comparison(rule)}"
    opened = f"it was opened at row {alert.since_row:,}{_when(alert.since_time)}"
    return f"{_place(alert, 'closed')}: {what}; {opened} (rule: {alert.rule})"


def _place(alert: AlertRow, did: str) -> str:
    name = name_text(alert.model) + (f" [{name_text(alert.slice)}]" if alert.slice else "")
    return f"{name}: alert {did} at row {alert.row:,}{_when(alert.time)}"


def _when(time: int | None) -> str:
    return "" if time is None else f", {figure('time', time)}"


def _value(number: float) -> str:
    """Return a number with six digits: four decimals would show 0.79996 on the wrong side of 0.8."""
    return f"{number:.6g}"


def _comparison(rule: AlertRule) -> str:
    assert not isinstance(rule.opens, Change)
    return f"{rule.opens.comparison} {_value(rule.opens.number)}"


def _changed(alert: AlertRow, change: Change, half_width: float | None) -> str:
    reference = alert.reference_value
    assert reference is not None
    size = abs(reference - alert.value)
    interval = ""
    if half_width is not None:
        interval = f" [{_value(size - half_width)}, {_value(size + half_width)}]"
    side = "below" if change.direction == "drops" else "above"
    return (
        f"{alert.column} {_value(alert.value)} is {_value(size)}{interval} {side} the {_value(reference)} of "
        f"row {alert.reference_row:,}"
    )


def _streak(alert: AlertRow, rows: int) -> str:
    if rows < 2:
        return ""
    return f" in {rows:,} rows since row {alert.since_row:,}{_when(alert.since_time)}"
