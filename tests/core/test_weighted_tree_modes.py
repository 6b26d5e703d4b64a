"""The claims of test_weighted_tree and test_weighted_ranking, under conditions that find mistakes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CLAIMS = [str(HERE / "test_weighted_tree.py"), str(HERE / "test_weighted_ranking.py")]

MODES = {
    "leaves of 8, bounds checked": (
        {"ROCSTEADY_BUCKET_SLOTS": "8", "NUMBA_BOUNDSCHECK": "1"},
        "not exact_fractions or random or ties or sawtooth or falling or flat or gap",
    ),
    "leaves of 8, interpreted": (
        {"ROCSTEADY_BUCKET_SLOTS": "8", "NUMBA_DISABLE_JIT": "1"},
        "not exact_fractions and not weights_of_one or sawtooth or 30-usual or 30-flipped",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_all_claims_hold_with(mode: str) -> None:
    environment, selection = MODES[mode]
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-x",
            "-n0",
            "-W",  # interpreted, numpy warns where compiled code gives infinity or nothing
            "ignore::RuntimeWarning",
            *CLAIMS,
            "-k",
            selection,
        ],
        env={**os.environ, **environment},
        cwd=HERE.parent.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]
    assert " passed" in run.stdout
