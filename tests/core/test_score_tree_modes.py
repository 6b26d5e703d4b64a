"""The claims of test_score_tree and test_score_window, under conditions that find mistakes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CLAIMS = [
    str(HERE / name)
    for name in ("test_score_tree.py", "test_score_window.py", "test_window_sums.py", "test_exact_sums.py")
]

MODES = {
    "buckets of 8, bounds checked": (
        {"ROCSTEADY_BUCKET_SLOTS": "8", "NUMBA_BOUNDSCHECK": "1"},
        "",
    ),
    "buckets of 8, interpreted": (
        {"ROCSTEADY_BUCKET_SLOTS": "8", "NUMBA_DISABLE_JIT": "1"},
        (
            "batches or bulk or removing or later or loaded or (random or special) and (10 or 60) or "
            "fraction or infinit or survive or (magnitudes or falling) and (3 or 17)"
        ),
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
            *(["-k", selection] if selection else []),
        ],
        env={**os.environ, **environment},
        cwd=HERE.parent.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]
    assert " passed" in run.stdout
