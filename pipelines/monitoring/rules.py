"""Alert rules of Prometheus, as YAML.

A rule watches a job by what Prometheus has scraped. A rule of `evaluate --alert` watches every row of a model
instead, and knows its windows: see docs/how-to/alerts.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .named import named, of_auc

JOB = "rocsteady"
"""The first letters of the names of scraped jobs in Prometheus, their label `job`."""


class Rule(NamedTuple):
    """An alert rule.

    holds     the query that gives a series for each alert
    for_      how long the query must hold before the alert is sent
    summary   a sentence for people; Prometheus fills in labels and values
    """

    name: str
    holds: str
    for_: str
    severity: str
    summary: str


def rules(auc_below: float) -> Sequence[Rule]:
    """Return the rules; a model whose interval lies below `auc_below` ranks badly."""
    by = "sum by (job, instance)"  # a counter of Flink has a part for each subtask
    read = f"{by} (rate({named('events_read')}[15m]))"
    shares = " or ".join(
        f"{by} (rate({named(kind)}[15m])) / {read} > 0.05" for kind in ("dead_letters", "late", "unmatched")
    )
    return [
        Rule("ModelRanksBadly", f"{of_auc('_high')} < {auc_below:g}", "15m", "warning",
            f"Model {{{{ $labels.model }}}} ranks below {auc_below:g}: the interval of its AUC ends at "
            '{{ $value | printf "%.3f" }}.'),
        Rule("NoEvents", f"{read} == 0", "5m", "critical",
            "The job at {{ $labels.instance }} has read no event for 15 minutes."),
        Rule("NoRows", f"time() - {named('newest_row_timestamp_seconds')} > 900", "5m", "critical",
            "To the rows that {{ $labels.instance }} follows, none has come for 15 minutes."),
        Rule("ManyDeadLetters", shares, "5m", "warning",
            "Of what the job at {{ $labels.instance }} reads, {{ $value | humanizePercentage }} does not "
            "count."),
        Rule("JobGone", f'up{{job=~"{JOB}.*"}} == 0', "5m", "critical",
            "Nothing answers at {{ $labels.instance }}: the job has ended, or cannot be reached."),
        Rule("NoJob", f'absent(up{{job=~"{JOB}.*"}})', "5m", "critical",
            f"Prometheus has no address of a job {JOB}: its settings name none."),
    ]  # fmt: skip


def rules_text(auc_below: float) -> str:
    """Return the rules as a file of rules."""
    lines = ["groups:", f"  - name: {JOB}", "    rules:"]
    for rule in rules(auc_below):
        lines += [
            f"      - alert: Rocsteady{rule.name}",
            f"        expr: {quoted(rule.holds)}",
            f"        for: {rule.for_}",
            "        labels:",
            f"          severity: {rule.severity}",
            "        annotations:",
            f"          summary: {quoted(rule.summary)}",
        ]
    return "\n".join(lines) + "\n"


def quoted(text: str) -> str:
    r"""Return a text as YAML's scalar in single quotes.

    >>> print(quoted("the job's"))
    'the job''s'
    """
    return "'" + text.replace("'", "''") + "'"
