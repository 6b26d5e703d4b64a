"""`rocsteady doctor`: checks each requirement of a runner, and prints the remedy for each missing one."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ..core.kernels.cache_folder import CACHE_FOLDER
from ..core.process.console import say, show
from ..core.state.warm_starts import compile_all, compiled
from ..runners.preflight import Finding, findings, probe
from .evaluate.options import runner_of


def doctor_command(options: argparse.Namespace, beam_flags: Sequence[str]) -> int:
    """Print the requirements of a runner; return 0 if all are met, else 1.

    If all are met, a job of one element tries the runner, except on Dataflow and with --no-job.
    """
    runner = runner_of(options, beam_flags)
    if options.compile:
        compile_all(lambda what: say(f"compiling: {what}"))
    show(f"runner {options.runner}")
    good = True
    for found in (_kernels(), *findings(runner)):
        good &= _say(found)
    if runner.added:
        _say(Finding("added options", True, " ".join(runner.added)))
    if options.no_job or runner.kind == "dataflow":
        return 0 if good else 1
    if not good:
        show("  -   a job: not tried while something is missing")
        return 1
    return 0 if _say(probe(runner)) else 1


def _kernels() -> Finding:
    """Return the finding about the folder of compiled kernels."""
    if CACHE_FOLDER is None:
        return Finding(
            "kernels",
            False,
            "every process compiles them anew: their folder cannot be written; set ROCSTEADY_CACHE_DIR to "
            "one that can",
        )
    number = compiled()
    first = "" if number else ": the first job compiles its own, `rocsteady doctor --compile` all"
    return Finding("kernels", True, f"{number} compiled in {CACHE_FOLDER}{first}")


def _say(found: Finding) -> bool:
    show(f"  {'ok ' if found.good else 'NOT'} {found.what}: {found.said}")
    return found.good
