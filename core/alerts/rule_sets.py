"""The rules of one table: checks that they go together, and shares the budget of false alarms among them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..errors import ConfigError
from .rules import AlertRule
from .surely import REMEDY_BUDGET, REMEDY_RATE, Rate, Surely


def checked_rules(rules: Sequence[AlertRule]) -> tuple[AlertRule, ...]:
    """Return the rules of a table. Raises ConfigError if there are no rules, or if a rule is there twice."""
    for rule in rules:
        if not isinstance(rule, AlertRule):
            raise ConfigError(f"{rule!r} is no rule; make one of text with parse_alert")
    if len({rule.kind for rule in rules}) > 1:
        rows_last = sorted(rules, key=lambda rule: rule.kind == "row")
        one, other, *_ = {rule.kind: rule for rule in rows_last}.values()
        raise ConfigError(
            f"alert {str(one)!r} watches {one.kind}s, and alert {str(other)!r} watches {other.kind}s; give a "
            "table the rules of one kind"
        )
    with_budget(rules, None)
    if not rules:
        raise ConfigError("there is no rule; give one or more, such as 'auc_high < 0.8 for 3 rows'")
    texts = [str(rule) for rule in rules]
    for text in texts:
        if texts.count(text) > 1:
            raise ConfigError(f"alert {text!r} is there {texts.count(text)} times; give it once")
    return tuple(rules)


def with_budget(rules: Iterable[AlertRule], budget: Rate | None) -> list[AlertRule]:
    """Return the rules, and give a rate to every `surely` that has none.

    The rules without a rate share the budget evenly.

    Raises ConfigError if a rule has no rate and there is no budget, or if all rules have a rate and there is
    a budget.
    """
    rules = list(rules)
    sharing = [rule for rule in rules if isinstance(rule.opens, Surely) and rule.opens.rate is None]
    if budget is None:
        if sharing:
            raise ConfigError(
                f"alert {str(sharing[0])!r}: {REMEDY_RATE}, or give all rules a budget with --false-alarms"
            )
        return rules
    if not sharing:
        raise ConfigError(
            f"false-alarms: no rule needs a rate, such as --alert 'auc surely < 0.8'; {REMEDY_BUDGET}"
        )
    rate = Rate(budget.number * len(sharing), "events")
    return [_at(rule, rate) for rule in rules]


def _at(rule: AlertRule, rate: Rate) -> AlertRule:
    """Return a rule with a rate, if the rule is on evidence and has no rate."""
    if isinstance(rule.opens, Surely) and rule.opens.rate is None:
        return replace(rule, opens=replace(rule.opens, rate=rate))
    return rule
