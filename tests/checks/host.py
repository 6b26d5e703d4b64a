"""This machine as the host of the scheduler: each step is a bash in a process group of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from .schedule import Step

_LOOK_SECONDS = 0.1
_FAREWELL_SECONDS = 60.0
"""The first signal lets tests stop the servers that they started; the second ends what is left."""

_PRELUDE = "set -euo pipefail\n"


class Machine:
    """Runs steps on this machine.

    A step of the first lane prints at once. What a step beside it prints is shown when that step has ended:
    so the two do not mix.
    """

    def __init__(self, root: Path, logs: Path, environment: Mapping[str, str]) -> None:
        self._root = root
        self._logs = logs
        self._environment = dict(environment)
        self._began = time.monotonic()
        self._running: dict[Step, tuple[subprocess.Popen[bytes], Path | None]] = {}

    def now(self) -> float:
        """Return the minutes since the run began."""
        return (time.monotonic() - self._began) / 60

    def begin(self, step: Step) -> None:
        """Start a step."""
        self._say(f"== {step.name} (begins{', beside other steps,' if step.beside else ''} after")
        log = self._logs / f"{len(list(self._logs.iterdir()))}.log" if step.beside else None
        with open(log or os.devnull, "wb") as beside:  # noqa: PTH123
            process = subprocess.Popen(
                ["bash", "-c", _PRELUDE + step.commands],
                cwd=self._root,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=beside if log else None,
                stderr=subprocess.STDOUT if log else None,
                start_new_session=True,
            )
        self._running[step] = process, log

    def wait(self, until: float) -> tuple[Step, bool] | None:
        """Wait for a step to end, at most until a minute; return the step and whether it passed."""
        while True:
            for step, (process, _) in self._running.items():
                if process.poll() is not None:
                    self._forget(step)
                    return step, process.returncode == 0
            if self.now() >= until:
                return None
            time.sleep(_LOOK_SECONDS)

    def end(self, step: Step) -> None:
        """End a step and all processes of its group."""
        process, _ = self._running[step]
        self._signal(process, signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_FAREWELL_SECONDS)
        self._signal(process, signal.SIGKILL)
        process.wait()
        self._forget(step)

    def end_all(self) -> None:
        """End all steps that run."""
        for step in list(self._running):
            self.end(step)

    def _forget(self, step: Step) -> None:
        process, log = self._running.pop(step)
        if log is not None:
            self._say(f"== {step.name} (ran beside other steps, ended with {process.returncode}, after")
            sys.stdout.buffer.write(log.read_bytes())
            sys.stdout.buffer.flush()
        self._signal(process, signal.SIGKILL)  # whoever is left of the step's group

    def _say(self, words: str) -> None:
        print(f"\n{words} {self.now() * 60:.0f} s)", flush=True)

    @staticmethod
    def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
