"""The rows of a live job beside those of the same events in files, and beside those on its page."""

from __future__ import annotations

import csv
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from .live import job_options
from .live_events import Events
from .processes import command

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def _read(path: Path) -> dict[tuple[str, float], dict[str, str]]:
    with path.open(newline="") as file:
        return {(row["model"], float(row["seq"])): row for row in csv.DictReader(file)}


def _number(text: str, name: str) -> float | None:
    if not text:
        return None
    return (datetime.fromisoformat(text) - _EPOCH) / _MICROSECOND if name == "time" else float(text)


def compared(work: Path, events: Events, every: int, on_page: dict[str, Any]) -> dict[str, Any]:
    """Compare the rows of the job with those of the same events in files, and the page's with the job's."""
    files = work / "events"
    files.mkdir()
    events.write_files(files)
    batch = work / "batch.jsonl"
    run = command("evaluate", f"{files}/*.parquet", *job_options(every, batch))
    tables = {}
    for path in (work / "rows.jsonl", batch):
        command("rows", str(path), "--output", str(path.with_suffix(".csv")))
        tables[path.stem] = _read(path.with_suffix(".csv"))
    of_job, of_batch = tables["rows"], tables["batch"]
    alerts = [_alerts(path.with_suffix(".alerts.jsonl")) for path in (work / "rows.jsonl", batch)]
    shown = on_page["rows"]
    newest = {model: seq for model, seq in sorted(of_job) if seq % every == 0}
    drawn = [(of_job[model, newest[model]], x[-1], y[-1]) for model, (x, y) in on_page["points"].items()]
    return {
        "rows": len(of_job),
        "batch_rows": len(of_batch),
        "lines": _lines(work / "rows.jsonl"),
        "missing": len(of_batch.keys() - of_job.keys()),
        "beyond": len(of_job.keys() - of_batch.keys()),
        "differing": sum(of_job[key] != row for key, row in of_batch.items() if key in of_job),
        "alerts": len(alerts[0]),
        "alerts_equal": alerts[0] == alerts[1],
        "page_rows": len(shown),
        "page_differing": sum(not _is_row(of_job.get(key), values) for key, values in shown.items()),
        "page_newest_missing": sum(newest_row not in shown for newest_row in newest.items()),
        "drawn": len(drawn),
        "drawn_differing": sum(
            _number(row["time"], "time") != x * 1e3 or _number(row["auc"], "auc") != y for row, x, y in drawn
        ),
        "batch_seconds": run.wall,
        "batch_megabytes": run.megabytes,
    }


def _is_row(row: dict[str, str] | None, values: dict[str, float | None]) -> bool:
    return row is not None and all(_number(row[name], name) == value for name, value in values.items())


def _lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in file)


def _alerts(path: Path) -> list[str]:
    return sorted(path.read_text().splitlines()) if path.exists() else []
