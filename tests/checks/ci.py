"""`.ci/run`: the gate, or with --all everything; what ran, what failed, and what was left out.

The exit status is 0 where every step that ran passed. `ROCSTEADY_CI_MINUTES` is the budget of the gate.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from . import ROOT
from .host import Machine
from .schedule import Result, Scheduler, Step
from .steps import ALL, GATE, TESTS

BUDGET_VARIABLE = "ROCSTEADY_CI_MINUTES"
BUDGET_MINUTES = 70.0


def main(depth: str) -> int:
    """Run the steps of a depth, "gate" or "all"; return the exit status."""
    budget = _budget() if depth == "gate" else None
    # A process of a step may still write into the folder while the folder is removed.
    with tempfile.TemporaryDirectory(prefix="rocsteady-ci-", ignore_cleanup_errors=True) as name:
        scratch = Path(name)
        logs = scratch / "logs"
        logs.mkdir()
        machine = Machine(ROOT, logs, _environment(scratch))
        return run(GATE if depth == "gate" else ALL, machine, budget)


def run(steps: Sequence[Step], machine: Machine, budget: float | None) -> int:
    """Run steps, and say how each ended; return the exit status. A signal ends the steps first."""
    results = None
    try:
        _listen_to_signals(machine)
        results = Scheduler(steps, machine, budget, pace=TESTS.name).run()
    except KeyboardInterrupt:
        pass
    finally:
        machine.end_all()
    if results is None:
        print("\n.ci/run was interrupted: its steps were ended", flush=True)
        return 130
    print("\n".join(["", *report(results, machine.now(), budget)]), flush=True)
    return 1 if any(result.ending.is_failure for result in results) else 0


def report(results: Sequence[Result], minutes: float, budget: float | None) -> list[str]:
    """Return the lines that end a run: the seconds of each step, then failures, then what was left out."""
    lines = [f"{result.minutes * 60:6.0f} s  {result.step.name}: {result.ending.value}" for result in results]
    lines += [f"{minutes * 60:6.0f} s  in all", ""]
    failed = [result for result in results if result.ending.is_failure]
    left_out = [result for result in results if result.ending.is_left_out]
    if failed:
        lines.append(f"RED: {len(failed)} of {len(results)} steps failed")
        lines += [f"    {result.step.name}: {result.ending.value}" for result in failed]
    else:
        lines.append(f"GREEN: every step {'that ran to its end ' if left_out else ''}passed")
    if left_out:
        lines.append(
            f"LEFT OUT: {len(left_out)} of {len(results)} steps, since the budget is {budget:g} minutes "
            f"({BUDGET_VARIABLE}). Nothing is known of what these steps check:"
        )
        lines += [f"    {result.step.name}: {result.ending.value}" for result in left_out]
    return lines


def _budget() -> float:
    given = os.environ.get(BUDGET_VARIABLE) or str(BUDGET_MINUTES)
    try:
        minutes = float(given)
    except ValueError:
        minutes = -1.0
    if not 0 < minutes < float("inf"):
        sys.exit(f".ci/run: {BUDGET_VARIABLE}={given} must be minutes above 0, such as {BUDGET_MINUTES:g}")
    return minutes


def _environment(scratch: Path) -> dict[str, str]:
    """Return the environment of the steps; make the copy to build from, and the folders that are kept."""
    copy = scratch / "rocsteady"
    for name in _git("ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0"):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    kept = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rocsteady-ci"
    kernels = kept / "kernels"  # rocsteady names a folder in it after a hash of its sources
    kernels.mkdir(parents=True, exist_ok=True)
    added = {
        "root": str(ROOT),
        "scratch": str(scratch),
        "copy": str(copy),
        "venv": str(scratch / "venv"),
        "highest": highest_python(),
        "fetched": os.environ.get("ROCSTEADY_SERVERS") or str(scratch / "servers"),
        "tenth": str(tenth()),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_CONSTRAINT": str(ROOT / "constraints.txt"),
        "PIP_COMPILE": "0",  # the first import of a module compiles it: all at once take 17 s an environment
        "PIP_CACHE_DIR": str(kept / "pip"),
        "XDG_CACHE_HOME": str(scratch / "cache"),
        "ROCSTEADY_CACHE_DIR": str(kernels),
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTEST_ADDOPTS": "--durations=20",
    }
    data = ROOT.parent / "shared" / "data"
    if data.is_dir():
        added["ROCSTEADY_DATA"] = os.environ.get("ROCSTEADY_DATA") or str(data)
    inherited = {name: value for name, value in os.environ.items() if name != "ROCSTEADY_SERVERS"}
    return {**inherited, **added}  # of servers only their own tests are to know


def tenth() -> int:
    """Return which tenth of the slow tests this commit runs: ten commits in a row run all of them."""
    if _git("rev-parse", "--is-shallow-repository") == "true":
        return int(_git("rev-parse", "HEAD"), 16) % 10
    return int(_git("rev-list", "--count", "HEAD")) % 10


def highest_python() -> str:
    """Return the highest Python here of those that pyproject.toml names, with ssl and ensurepip."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    minors = sorted(
        (int(found[1]) for each in project["classifiers"] if (found := re.search(r":: 3\.(\d+)$", each))),
        reverse=True,
    )
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    for minor in minors:
        places = [shutil.which(f"python3.{minor}"), *map(str, sorted(pyenv.glob(f"3.{minor}.*/bin/python")))]
        for place in filter(None, places):
            if subprocess.run([place, "-c", "import ensurepip, ssl"], capture_output=True).returncode == 0:
                return place
    sys.exit(f".ci/run: none of Python 3.{min(minors)} to 3.{max(minors)} is on this machine; install one")


def _git(*words: str) -> str:
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, check=False, capture_output=True, text=True)
    except FileNotFoundError:
        sys.exit(".ci/run: git is not on this machine; install it")
    if done.returncode:
        sys.exit(f".ci/run needs a clone of the repository. git {words[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


def _listen_to_signals(machine: Machine) -> None:
    """Let signals end the run, but for those that whoever began it had told it to ignore, as nohup does."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        machine.interrupt()

    def ignore(number: int, frame: FrameType | None) -> None:
        """Do nothing. A step would inherit SIG_IGN, and could not be interrupted."""

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        is_ignored = signal.getsignal(number) is signal.SIG_IGN
        signal.signal(number, ignore if is_ignored else interrupt)
