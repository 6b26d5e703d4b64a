"""How often alerts open on streams where nothing changes, and how late they see one that does.

    python -m benchmarks.alert_rates [STREAMS] [SHARE]         writes docs/benchmarks/alert_rates.md

SHARE says how much of the runs of `evidence_rates` is made, 1 by default.

A model's scores are those of two normal distributions. A still stream has an AUC of .85 throughout; in others
it falls in the middle, because positives get lower scores. Rows are made by `ModelEvaluator` and watched by
`AlertTable`, as they are in a job.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import rocsteady as rs
from rocsteady.core.alerts.alert_rows import AlertRow, WatchedRows
from rocsteady.core.alerts.surely import Surely
from rocsteady.core.alerts.table import AlertTable
from scipy.stats import norm

from . import evidence_rates
from .pages import with_commit

AUC = 0.85
WINDOW_ROWS = 10
"""Rows from one window to the next that shares no event with it."""

LAG_WINDOWS = 5
STILL_ROWS, FALLING_ROWS = 2_000, 400
STREAMS = 100
PAGE = Path("docs/benchmarks/alert_rates.md")
SECOND = 1_000_000


class Setting(NamedTuple):
    """The window and the stream: events are a second apart."""

    window: int
    prevalence: float
    share: float
    """Of the streams: long windows take long."""

    @property
    def every(self) -> int:
        return self.window // WINDOW_ROWS

    def __str__(self) -> str:
        return f"`last:{self.window}`, a row every {self.every:,}, {self.prevalence:.0%} positive"


SETTINGS = (Setting(1_000, 0.3, 1.0), Setting(1_000, 0.05, 1.0), Setting(10_000, 0.3, 0.2))

_LAG = f"against {LAG_WINDOWS * WINDOW_ROWS} rows"
_TEMPLATES = (
    f"auc drops {_LAG}",
    f"auc drops {_LAG} for 3 rows",
    f"auc drops {_LAG} for {WINDOW_ROWS} rows",
    f"auc drops {_LAG} for {3 * WINDOW_ROWS} rows",
    f"auc drops by 0.02 {_LAG}",
    f"auc drops by 0.02 {_LAG} for 3 rows",
    f"auc drops by 0.02 {_LAG} for {WINDOW_ROWS} rows",
    "auc drops against the first window",
    "auc drops by 0.02 against the first window",
    f"auc < {AUC}",
    f"auc_high < {AUC}",
    f"auc_high < {AUC} for 3 rows",
    f"auc_high < {AUC} for {WINDOW_ROWS} rows",
    "auc_high < 0.83",
    "auc surely < 0.83 at 1e4",
    "auc surely < 0.83 at 1e6",
    "auc surely drops by 0.02 against the first 10 windows at 1e4",
    "auc surely drops by 0.02 against the first 10 windows at 1e6",
)
_PERIODS = {"the first window": 1, "the first 10 windows": 10}


def rules_of(setting: Setting) -> list[rs.AlertRule]:
    """The rules, with periods in the place of their words."""
    rules = []
    for text in _TEMPLATES:
        for words, windows in _PERIODS.items():
            end = np.datetime64(windows * setting.window * SECOND, "us")
            text = text.replace(words, f"1970-01-01..{end}Z")
        rules.append(rs.parse_alert(text))
    return rules


def bound_of(rule: rs.AlertRule) -> Any:
    """The bound of the evidence that a rule reads; for rules that read none, that of the first such rule."""
    return rule.opens.bound if isinstance(rule.opens, Surely) else evidence_rates.LOWER


def rows_of(setting: Setting, rows: int, after: float, seed: int, below: Any) -> rs.Rows:
    """Rows of a stream whose AUC is `after` in its second half, with evidence below a bound."""
    rng = np.random.default_rng([seed, setting.window, round(1_000 * setting.prevalence), round(100 * after)])
    events = rows * setting.every
    labels = (rng.random(events) < setting.prevalence).astype(np.int8)
    distances = np.sqrt(2) * norm.ppf(np.where(np.arange(events) < events // 2, AUC, after))
    evaluator = rs.ModelEvaluator(
        window=rs.LastEvents(setting.window),
        every=rs.EveryEvents(setting.every),
        measures=("auc",),
        model=str(seed),
        evidence_below=below,
    )
    return evaluator.update(labels, rng.normal(distances * labels), times=np.arange(events).astype("M8[s]"))


def watched(
    setting: Setting, streams: int, rows: int, after: float
) -> Iterator[tuple[rs.Rows, list[AlertRow]]]:
    """Rows and alerts of each stream."""
    by_bound: dict[Any, list[rs.AlertRule]] = {}
    for rule in rules_of(setting):
        by_bound.setdefault(bound_of(rule), []).append(rule)
    for seed in range(round(streams * setting.share)):
        alerts = []
        for bound, rules in by_bound.items():
            made, table = rows_of(setting, rows, after, seed, bound), AlertTable(rules)
            alerts += table.apply(WatchedRows.of_rows(made, table.columns).pack())
        yield made, alerts


def share_of_rows(rows: rs.Rows) -> tuple[int, int]:
    """Rows below their reference by more than the interval, and rows: the test itself, in three lines."""
    auc, low = rows.number("auc"), rows.number("auc_low")
    before, after = auc[: -LAG_WINDOWS * WINDOW_ROWS], auc[LAG_WINDOWS * WINDOW_ROWS :]
    half = auc - low
    margin = np.hypot(half[: len(before)], half[-len(after) :])
    return int(np.count_nonzero(before - after > margin)), len(after)


def still(streams: int) -> tuple[str, str]:
    """A line for each rule, a column for each setting; and the share of rows at which the test rejects."""
    cells: dict[str, list[str]] = {text: [] for text in _TEMPLATES}
    shares = []
    for setting in SETTINGS:
        opened, looks, rows = np.zeros(len(_TEMPLATES)), np.zeros(2), 0
        texts = [str(rule) for rule in rules_of(setting)]
        for made, alerts in watched(setting, streams, STILL_ROWS, AUC):
            looks += share_of_rows(made)
            rows += len(made)
            for alert in alerts:
                opened[texts.index(alert.rule)] += alert.state == "open"
        for text, number in zip(_TEMPLATES, opened, strict=True):
            cells[text].append(f"{1_000 * number / rows:.2f}")
        shares.append(f"{looks[0] / looks[1]:.1%}")
    return lines(cells), " / ".join(shares)


def falling(streams: int, after: float) -> str:
    """Rows from the change to the opening, the median of the streams, and how many have one."""
    cells: dict[str, list[str]] = {text: [] for text in _TEMPLATES}
    for setting in SETTINGS:
        change, texts = FALLING_ROWS // 2, [str(rule) for rule in rules_of(setting)]
        delays: list[list[float]] = [[] for _ in _TEMPLATES]
        for _, alerts in watched(setting, streams, FALLING_ROWS, after):
            for text, found in zip(texts, delays, strict=True):
                mine = [alert for alert in alerts if alert.rule == text]
                if [alert.state for alert in mine if alert.row < change][-1:] == ["open"]:
                    continue  # a false one is open at the change
                first = [alert.row - change + 1 for alert in mine if alert.row >= change]
                found.append(first[0] if first else np.inf)
        for text, found in zip(_TEMPLATES, delays, strict=True):
            seen = sum(np.isfinite(found)) / len(found) if found else 0.0
            middle: Any = median(found) if found else np.inf
            cells[text].append(f"{middle:.0f} ({seen:.0%})" if np.isfinite(middle) else f"- ({seen:.0%})")
    return lines(cells)


def lines(cells: dict[str, list[str]]) -> str:
    head = ["| rule | " + " | ".join(map(str, SETTINGS)) + " |", "| --- " * (len(SETTINGS) + 1) + "|"]
    table = "\n".join([*head, *(f"| {text} | {' | '.join(found)} |" for text, found in cells.items())])
    print(table, "", sep="\n", flush=True)
    return table


def main() -> None:
    streams = int(sys.argv[1]) if len(sys.argv) > 1 else STREAMS
    share = float(sys.argv[2]) if len(sys.argv) > 2 else 1.0
    alarms, shares = still(streams)
    text = TEXT.format(
        streams=streams,
        alarms=alarms,
        shares=shares,
        small=falling(streams, 0.80),
        large=falling(streams, 0.70),
        evidence=evidence_rates.section(share),
    )
    PAGE.write_text(with_commit(text))


TEXT = f"""# False alarms of alert rules, and their delays

`python -m benchmarks.alert_rates`, half an hour of one core: {{streams}} streams for each column, a
fifth of that where the window is `last:{SETTINGS[-1].window}`. Scores are those of two normal distributions,
the AUC is {AUC}, rows have the usual 95% interval. Ten rows make a window: neighbouring rows share nine
tenths of their events, and a reference {LAG_WINDOWS * WINDOW_ROWS} rows back lies {LAG_WINDOWS} windows back.

## Streams that stand still

Alerts that open in 1,000 rows, in streams of {STILL_ROWS:,} rows: all of them are false. (`auc < {AUC}` shows
what happens if a limit is compared with the AUC, and not with the end of its interval.)

{{alarms}}

The condition `auc drops against 50 rows` itself holds at {{shares}} of the rows, in the order of the
columns; its level is 2.5%. How often an alert opens is another question. Rows that share events fall below
the limit together, and open one alert, or several alerts in quick succession. And every window is a new
test. A reference that is the same for all rows (the first window) is too high or too low by chance once:
then streams differ, and not rows.

## Streams whose AUC falls, from {AUC:.2f} to 0.80

Rows from the change to the opening of an alert: the median of all streams without a false alert at the
change. A dash means that half of the streams or more have no alert in {FALLING_ROWS // 2} rows. In brackets
stands the share of streams with an alert.

{{small}}

## From {AUC:.2f} to 0.70

{{large}}

{{evidence}}"""

if __name__ == "__main__":
    main()
