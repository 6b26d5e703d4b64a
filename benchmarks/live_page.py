"""The page about a live job with its page open: what a run of `live` found, in words and tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median
from typing import Any

from .live_events import FALLING, MODELS
from .live_job import RULES
from .live_rows import COMPARED
from .processes import table

_MEDIANS = {"job": "memory of the job", "heap": "JavaScript heap", "page": "memory of the page's process"}
_LINES = 16
"""Lines of the table of a run, about; the first minutes have all of theirs."""

Run = dict[str, Any]


def page(runs: Sequence[Run], checkpoints: Iterable[list[str]]) -> str:
    """Return the page about runs, the longest first, and about what checkpoints cost."""
    return "\n".join(
        [
            _head(runs[0]),
            *(_run(run) for run in runs),
            _CHECKPOINTS,
            table(
                ["models", "events in the window of each", "MB", "ms of processor time", "ms by the clock"],
                [*checkpoints],
            ),
        ]
    )


def _head(run: Run) -> str:
    rules = " and ".join(f"`{rule}`" for rule in RULES)
    columns = ", ".join(f"`{name}`" for name in COMPARED)
    return f"""# A live job, measured

{run["commit"]}

Written by `python -m benchmarks.live` on a machine with {run["cores"]} cores. Other programs used the
machine at the same time: the load was {run["load"]:.0f} when the first run began. They make rows older.
Memory and the rows themselves do not depend on them.

A job of `rocsteady evaluate` with `--window last:10000 --every {run["every"]}` evaluates {MODELS} models.
It writes rows to a file of JSON lines, serves its page (`--serve`), and writes a checkpoint every 30 s
(`--checkpoint`). It watches the rules {rules}.
{FALLING} models rank worse in the second quarter of every period, of {run["period"]} s in the first run. A
Chromium has the page open.

Event number *i* is due *i* / {run["pace"]:,} s after the start, and has this time. Where a program is
late, it does not wait afterwards. The age of a row is the time from the moment at which its last event was
due to the moment at which the row is in the chart. So the age has the waits of all programs in between. A
page shows new rows once a second, and a model has a row every {run["every"] * MODELS / run["pace"]:g} s.

The job's memory rises while the page fills up to 100,000 rows. The page thins older rows then, and copies
rows meanwhile; from then on the memory rises less and less. DevTools keep the answers to the page's requests in its process, because Playwright asks for them,
so that process grows. The JavaScript heap and the nodes of the document show the page itself.

At the end, the rows of the job are compared with those of the same events in files, in every column. The rows
on the page are compared with those of the job in {columns}.
"""


def _run(run: Run) -> str:
    differing = run["on_page_differing"] + run["on_page_beyond"]
    source = "as files of a folder, one a second (`--follow`)" if run["folder"] else "by stdin"
    samples = run["samples"]
    lines = [*_chosen(samples)]
    head = [
        "minute", "memory of the job, MB", "% of a core", "checkpoint, MB", "rows on the page",
        "age of the newest row, s: median", "longest", "JavaScript heap, MB", "nodes of the document",
        "memory of the page's process, MB", "connections lost",
    ]  # fmt: skip
    counts = [
        ("rows of the job", run["rows"]),
        ("lines in its file", run["lines"]),
        ("rows of the same events in files", run["of_files"]),
        ("of these, rows that the job does not have", run["missing"]),
        ("of these, rows that the job has with other values", run["differing"]),
        ("rows that only the job has", run["beyond"]),
        ("openings and closings of alerts", run["alerts"]),
        ("rows on the page at the end", run["on_page"] + run["on_page_beyond"]),
        ("of these, rows that the job does not have, or with other values", differing),
        ("models whose newest row is not on the page", run["newest_missing"]),
        ("lines in the chart", run["drawn"]),
        ("of these, lines that do not end at the newest row", run["drawn_differing"]),
        ("connections lost", run["streams"] - run["navigations"]),
        ("loads of the page, after the one for the first rows", run["navigations"] - 2),
        ("errors and warnings in the browser", len(run["said"])),
    ]
    alerts = "the same as" if run["alerts_equal"] else "other ones than"
    return f"""## {run["minutes"]:g} minutes, {run["pace"]:,} events/s, {source}

{run["commit"]}

{table(head, lines)}
{_memory(run)}

{table([f"of {run['events']:,} events", ""], [[what, f"{number:,}"] for what, number in counts])}
The alerts are {alerts} those of the files.
"""


def _chosen(samples: Sequence[Run]) -> Iterable[list[str]]:
    """Yield the lines of the table; ages are those since the line before."""
    step = max(1, -(-len(samples) // _LINES))
    before = -1
    for place, sample in enumerate(samples):
        if place >= 2 and (place + 1) % step and place + 1 < len(samples):
            continue
        since = samples[before + 1 : place + 1]
        first = samples[before] if before >= 0 else None
        cpu = sample["job_cpu"] - (first["job_cpu"] if first else 0.0)
        minutes = sample["minute"] - (first["minute"] if first else 0.0)
        ages = sorted(each["age"] for each in since if each["age"] is not None)
        before = place
        yield [
            f"{sample['minute']:.0f}", f"{sample['job']:,.0f}", f"{cpu / 0.6 / minutes:.0f}",
            f"{sample['checkpoint']:.1f}", f"{sample['rows']:,}",
            f"{ages[len(ages) // 2]:.1f}" if ages else "",
            f"{max(each['oldest'] or 0 for each in since):.1f}", f"{sample['heap']:.1f}",
            f"{sample['nodes']:,}", f"{sample['page']:,.0f}", f"{max(sample['streams'] - 2, 0)}",
        ]  # fmt: skip


def _memory(run: Run) -> str:
    samples = run["samples"]
    ends = [len(samples) * quarter // 4 for quarter in range(5)]
    lines = [
        [
            what,
            *(f"{median(each[name] for each in samples[first:stop]):,.0f}" for first, stop in pairwise(ends)),
        ]
        for name, what in _MEDIANS.items()
    ]
    micros = 1e6 * samples[-1]["job_cpu"] / run["events"]
    oldest = max(sample["oldest"] or 0 for sample in samples)
    return f"""{table(["MB, median of the", "1st quarter", "2nd", "3rd", "4th"], lines)}
In all, the job took {micros:.1f} µs of processor time for each event. The longest age of a row was
{oldest:.0f} s.
"""


_CHECKPOINTS = """## What a checkpoint costs

The job waits while a checkpoint is written: its state is packed, written to a file, and flushed to the disk.
The medians of 3 checkpoints of a job of one column of scores, whose windows are full:
"""
