"""The rows of a live job beside those of the same events in files, and beside those on its page."""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from .live_events import Events
from .live_job import job_options
from .processes import Run, command

COMPARED = ("seq", "time", "auc", "auc_low", "auc_high", "h", "ks")
"""The columns in which rows on the page are compared with rows of the job."""

_PART_EVENTS = 8_000_000
"""Events of a batch, at most: it holds them in memory."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

Key = tuple[str, int]
"""The model of a row, and its `seq`."""


class Shown(NamedTuple):
    """What a page shows.

    rows    the values of COMPARED of each row
    points  of each model of the chart the times in ms and the AUCs of its line
    """

    rows: Mapping[Key, Mapping[str, float | None]]
    points: Mapping[str, tuple[list[float], list[float]]]


def evaluate_files(events: Events, every: int, work: Path) -> list[Run]:
    """Evaluate the events in files, in parts of some models; rows go to `work`/batch-*.jsonl."""
    parts = math.ceil(events.number / _PART_EVENTS)
    paths = [work / f"events-{part:02d}.parquet" for part in range(parts)]
    events.write_parts(paths)
    runs = []
    for part, path in enumerate(paths):
        options = job_options(every, work / f"batch-{part:02d}.jsonl")
        runs.append(command("evaluate", str(path), "--order", "time:0s", *options))
        path.unlink()
    return runs


def compared(work: Path, every: int, shown: Shown) -> dict[str, Any]:
    """Compare the rows of the job with those of files, and the rows on the page with those of the job."""
    found: Counter[str] = Counter()
    digests: dict[Key, bytes] = {}
    newest: dict[str, int] = {}
    rows = work / "rows.jsonl"
    found["drawn"] = len(shown.points)
    for key, line, row in _rows_of(rows):
        digests[key] = line
        if key[1] % every == 0:  # the last row, at the end of the input, comes when the page has ended
            newest[key[0]] = key[1]
        if key in shown.rows:
            found["on_page"] += 1
            found["on_page_differing"] += _values(row) != shown.rows[key]
    found["on_page_beyond"] = len(shown.rows) - found["on_page"]
    for model, seq in newest.items():
        values = shown.rows.get((model, seq))
        found["newest_missing"] += values is None
        if model in shown.points and values is not None:
            x, y = shown.points[model]
            found["drawn_differing"] += (x[-1] * 1e3, y[-1]) != (values["time"], values["auc"])
    found["rows"] = len(digests)
    found["lines"] = sum(1 for _ in rows.open("rb"))
    alerts = sorted(rows.with_suffix(".alerts.jsonl").read_text().splitlines())
    of_files: list[str] = []
    for path in sorted(work.glob("batch-??.jsonl")):
        of_files += path.with_suffix(".alerts.jsonl").read_text().splitlines()
        for key, line, _ in _rows_of(path):
            found["of_files"] += 1
            there = digests.pop(key, None)
            found["missing"] += there is None
            found["differing"] += there not in (None, line)
    found["beyond"] = len(digests)
    return {**found, "alerts": len(alerts), "alerts_equal": alerts == sorted(of_files)}


def _rows_of(path: Path) -> Iterator[tuple[Key, bytes, dict[str, str]]]:
    """Yield each row once: its key, a digest of its text, and its columns."""
    once = path.with_suffix(".csv")
    command("rows", str(path), "--output", str(once))
    with once.open(newline="") as file:
        for row in csv.DictReader(file):
            text = "\0".join(row.values()).encode()
            yield (row["model"], int(row["seq"])), blake2b(text, digest_size=8).digest(), row


def _values(row: Mapping[str, str]) -> dict[str, float | None]:
    values: dict[str, float | None] = {
        name: float(row[name]) if row[name] else None for name in COMPARED if name != "time"
    }
    return values | {"time": (datetime.fromisoformat(row["time"]) - _EPOCH) / _MICROSECOND}
