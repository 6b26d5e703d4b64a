"""The options `--alert` and `--alerts`: rules fit for an evaluation, alerts in a file or on stderr."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet

from ...core.alerts.grammar import parse_alert
from ...core.alerts.rules import AlertRule, Change
from ...core.alerts.table import checked_rules
from ...core.errors import ConfigError
from ...core.rows.columns import MASS_COLUMNS
from ...core.settings.evaluator import EvaluatorSettings
from ...core.settings.measure_names import COSTLY_MEASURES, MEASURES, PROBABILITY_MEASURES, RANKING_MEASURES
from ...transforms.events.fields import EventFields
from ..arguments import refuse_given
from ..words import counted

_SHOWN = 20

_OF_POSITIVES = (*MASS_COLUMNS[1:], *MEASURES[:RANKING_MEASURES])
"""Columns that are null where no class is named positive."""


@dataclass(frozen=True)
class Alerts:
    """The alert rules of a job, and the path of their alerts. Path None: the alerts go to stderr."""

    rules: tuple[AlertRule, ...]
    path: str | None


def alerts_of(
    options: argparse.Namespace, settings: EvaluatorSettings, fields: EventFields, here: bool
) -> Alerts | None:
    """Return the alerts that the options ask for; None without a rule.

    here  whether the job writes its files on this machine

    Raises ConfigError for a rule that could never open an alert.
    """
    if not options.alert:
        refuse_given(options, ": there is no rule; say when with --alert RULE", "alerts")
        return None
    rules = []
    try:
        for text in options.alert:
            rules.append(parse_alert(text))
            _check(rules[-1], settings, fields)
        checked = checked_rules(rules)
    except ConfigError as mistake:
        raise ConfigError(f"--{mistake}") from None
    if options.alerts is None and not here:
        raise ConfigError(
            f"--alert {options.alert[0]!r}: runner {options.runner!r} writes its files elsewhere; name one "
            "with --alerts PATH"
        )
    return Alerts(checked, options.alerts)


def _check(rule: AlertRule, settings: EvaluatorSettings, fields: EventFields) -> None:
    """Raise ConfigError where the rows of an evaluation can never satisfy a rule."""

    def refuse(sentence: str) -> ConfigError:
        return ConfigError(f"alert {str(rule)!r}: {sentence}")

    for column in rule.columns:
        if column in MEASURES and column not in (settings.measures or ()):
            remedy = f"ask for it with --measures {column}"
            if column in PROBABILITY_MEASURES and not settings.probabilities:
                remedy = "it needs scores that are probabilities, --probabilities"
            elif column in COSTLY_MEASURES:
                remedy += ", or --measures all"
            raise refuse(f"{column} is not computed; {remedy}")
        if column == "drift" and settings.window.signal is None:
            raise refuse(
                f"only an adaptive window has a drift, and this is {settings.window}; see --window adaptive"
            )
        if column in _OF_POSITIVES and fields.predicted is not None and settings.positive is None:
            raise refuse(
                f"with --predicted labels are classes, and {column} needs the one that is positive; name it "
                "with --positive VALUE"
            )
    if fields.time is None and (part := rule.needs_times) is not None:
        raise refuse(f"{part!r} goes by event time; name the column of times with --time")
    if isinstance(rule.opens, Change) and not settings.window.has_end:
        raise refuse("two windows of all events share events, so there is nothing to compare; take last:N")


def read_messages(path: str) -> list[str]:
    """Return the messages of the alerts in a Parquet file, in order of time."""
    table = pa.parquet.read_table(path)
    order = [(name, "ascending") for name in ("time", "model", "slice", "row", "rule")]
    messages: list[str] = table.sort_by(order)["message"].to_pylist()
    return messages


def said(alerts: Alerts, counts: Mapping[str, int], messages: Sequence[str]) -> Iterator[str]:
    """Yield a line that counts a finished job's alerts, and the last `messages` if alerts have no file."""
    opened, closed = (counts.get(f"alerts_{did}", 0) for did in ("opened", "closed"))
    if not opened:
        yield "no alert opened" + (f"; {alerts.path} has no rows" if alerts.path else "")
        return
    where = f", in {alerts.path}" if alerts.path else "; kept with --alerts PATH" + ":" * bool(messages)
    yield f"{counted(opened, 'alert')} opened, {closed:,} closed, {opened - closed:,} still open{where}"
    if len(messages) > _SHOWN:
        yield f"  the last {_SHOWN} of {len(messages):,}:"
    yield from (f"  {message}" for message in messages[-_SHOWN:])
