"""Files of claims, run again by a pytest of their own with numba set otherwise."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support import ROOT
from tests.support.thorough import AT_LENGTH_VARIABLE, THOROUGH_VARIABLE


def with_cache(cache: Path) -> dict[str, str]:
    """Return the environment of a process that keeps its compiled kernels in a folder of the test."""
    inherited = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    return {**inherited, "ROCSTEADY_CACHE_DIR": str(cache)}


def claims_hold(claims: Sequence[str], environment: dict[str, str], selection: str) -> None:
    """Assert that some tests of these files pass in an environment; an empty selection is all of them.

    Properties are tried by a few examples on short streams: with all of them a mode takes minutes.
    """
    more = (AT_LENGTH_VARIABLE, THOROUGH_VARIABLE)
    inherited = {name: value for name, value in os.environ.items() if name not in more}
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-x",
            "-n0",
            "-m",  # also what a plain run leaves to this one
            "",
            "-W",  # interpreted, numpy warns where compiled code gives infinity or nothing
            "ignore::RuntimeWarning",
            *claims,
            *(["-k", selection] if selection else []),
        ],
        env={**inherited, **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]
    assert " passed" in run.stdout
