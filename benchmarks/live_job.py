"""A job of `rocsteady evaluate` with a page, checkpoints and alerts, and what sends events to it."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
from dataclasses import astuple
from pathlib import Path

from .live_events import Events
from .processes import COMMAND, ROOT

RULES = ("auc_high < 0.75 for 3 rows", "auc drops by 0.05 against 5m for 10s")
PATIENCE = 600.0
MB = 1e6


def resident(pid: int) -> float:
    """Return the resident memory of a process, MB."""
    with contextlib.suppress(OSError):  # a process that has ended
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / MB
    return 0.0


def job_options(every: int, at: Path) -> list[str]:
    """Return the options of the job; those of the batch are the same without checkpoints and the page."""
    return [
        "--time", "sent", "--time-unit", "us", "--window", "last:10000", "--every", str(every),
        "--alerts", str(at.with_suffix(".alerts.jsonl")), "--output", str(at),
        *(word for rule in RULES for word in ("--alert", rule)),
    ]  # fmt: skip


class Job:
    """The job, and what sends events to it."""

    def __init__(self, events: Events, every: int, work: Path, *, follows: bool) -> None:
        self.work, self.rows, self._follows = work, work / "rows.jsonl", follows
        self.folder, self.checkpoints = work / "arriving", work / "kept"
        self.folder.mkdir()
        self._log = (work / "job.log").open("wb")
        receive, self._end = os.pipe()
        source = [str(self.folder), "--follow"] if follows else ["-"]
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-c", COMMAND, "evaluate", *source, *job_options(every, self.rows)),
                *("--serve", "127.0.0.1:0", "--checkpoint", str(self.checkpoints)),
            ],
            stdin=receive, stderr=self._log, cwd=ROOT,
        )  # fmt: skip
        os.close(receive)
        words = map(str, astuple(events))
        self._words = [sys.executable, "-m", "benchmarks.live_events", *words]

    def address(self) -> str:
        """Wait for the page, and return its address."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and self.process.poll() is None:
            if found := re.search(r"http://\S+", (self.work / "job.log").read_text()):
                return found[0]
            time.sleep(0.1)
        raise SystemExit(f"the job serves no page: {(self.work / 'job.log').read_text()[-2000:]}")

    def begin(self) -> subprocess.Popen[bytes]:
        """Begin to send; the job's stdin stays open when all is sent."""
        words = [*self._words, str(self.folder)] if self._follows else self._words
        return subprocess.Popen(words, stdout=self._end, cwd=ROOT)

    def end(self) -> str:
        """End the input, wait for the job, and return the last line that it said."""
        (self.folder / "_END").touch()
        os.close(self._end)
        if self.process.wait(PATIENCE):
            raise SystemExit(f"the job failed: {(self.work / 'job.log').read_text()[-2000:]}")
        said = (self.work / "job.log").read_text().splitlines()
        return next(line for line in reversed(said) if " events read = " in line)

    def checkpoint(self) -> float:
        """Return the size of the newest checkpoint, MB."""
        found = sorted(self.checkpoints.glob("checkpoint-*.rscp"))
        with contextlib.suppress(FileNotFoundError):
            return found[-1].stat().st_size / MB if found else 0.0
        return 0.0

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._log.close()
