"""Programs run one after the other, each in a process of its own, and what they took.

Nothing heavy is imported here, because on Linux a child's peak memory begins with its parent's.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parent.parent
COMMAND = "import sys; from rocsteady.pipelines.cli import main; sys.exit(main())"
"""What the script `rocsteady` is, also where the package is not installed."""

_TICKS = os.sysconf("SC_CLK_TCK")

SLOW_SECONDS = 60.0
"""A contender that took so long is not asked again."""


@dataclass(frozen=True)
class Run:
    """What a process took: seconds by the clock, of processor time, MB at its peak; and what it said."""

    wall: float
    cpu: float
    megabytes: float
    said: dict[str, Any]


Contender = Callable[[], Run]
Runs = dict[str, list[Run]]


def run(*words: str) -> Run:
    """Run a program to its end; raise SystemExit with its last words where it fails."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        start = time.perf_counter()
        process = subprocess.Popen(words, stdout=out, stderr=err, cwd=ROOT)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if process.returncode:
            raise SystemExit(f"{shlex.join(words)}\nfailed: {err.read()[-2000:]}")
        lines = out.read().splitlines()
    said = json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {}
    unit = 1 if sys.platform == "darwin" else 1024
    return Run(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit / 1e6, said)


def processor_time(pid: int) -> float:
    """Return the seconds of processor time that a process has taken; 0 where no process has the id."""
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS
    return 0.0


def contender(*words: str) -> Run:
    return run(sys.executable, "-m", "benchmarks.contenders", *words)


def command(*words: str) -> Run:
    return run(sys.executable, "-c", COMMAND, *words)


def take_turns(contenders: dict[str, Contender], repeat: int) -> Runs:
    runs: Runs = {name: [] for name in contenders}
    for _ in range(repeat):
        for name, ask in contenders.items():
            if not runs[name] or runs[name][0].wall < SLOW_SECONDS:
                runs[name].append(ask())
                print(f"  {name}: {runs[name][-1].wall:.2f} s", flush=True)
    return runs


def seconds(runs: list[Run]) -> float:
    return median(of.wall for of in runs)


def cpu(runs: list[Run]) -> float:
    return median(of.cpu for of in runs)


def megabytes(runs: list[Run]) -> str:
    return f"{max(of.megabytes for of in runs):,.0f}"


def ratio(runs: list[Run], base: list[Run]) -> float:
    """The median over turns of one's seconds to the other's."""
    return median(a.wall / b.wall for a, b in zip(runs, base, strict=False))


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"
