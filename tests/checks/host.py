"""This machine as the host of the scheduler: each step is a bash in a process group of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
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
        self._is_interrupted = False
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
            if self._is_interrupted:
                raise KeyboardInterrupt
            for step, (process, _) in self._running.items():
                if process.poll() is not None:
                    self._forget(step)
                    return step, process.returncode == 0
            if self.now() >= until:
                return None
            time.sleep(_LOOK_SECONDS)

    def interrupt(self) -> None:
        """Let `wait` raise KeyboardInterrupt. Raised inside `begin`, it would leave a process behind."""
        self._is_interrupted = True

    def end(self, step: Step) -> None:
        """End a step and all processes of its group."""
        self._end([step])

    def end_all(self) -> None:
        """End all steps that run."""
        self._end(list(self._running))

    def _end(self, steps: Sequence[Step]) -> None:
        """End steps together. Nothing is said before all have ended: nobody may read it any more."""
        processes = [self._running[step][0] for step in steps]
        for process in processes:
            self._signal(process, signal.SIGINT)
        last = time.monotonic() + _FAREWELL_SECONDS
        for process in processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(last - time.monotonic(), 0))
        for process in processes:
            self._signal(process, signal.SIGKILL)
            process.wait()
        for step in steps:
            self._forget(step)

    def _forget(self, step: Step) -> None:
        process, log = self._running.pop(step)
        self._signal(process, signal.SIGKILL)  # what is left of the step's group
        if log is not None:
            self._say(f"== {step.name} (ran beside other steps, ended with {process.returncode}, after")
            sys.stdout.buffer.write(log.read_bytes())
            sys.stdout.buffer.flush()

    def _say(self, words: str) -> None:
        print(f"\n{words} {self.now() * 60:.0f} s)", flush=True)

    @staticmethod
    def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
