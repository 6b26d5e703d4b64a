"""The claims of test_compressed_auc, under conditions that find mistakes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CLAIMS = str(HERE / "test_compressed_auc.py")

MODES = {
    "bounds checked": ({"NUMBA_BOUNDSCHECK": "1"}, "toggled or emptied or slides or next_call"),
    "interpreted": ({"NUMBA_DISABLE_JIT": "1"}, ""),
}


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_all_claims_hold_with(mode: str) -> None:
    quiet = "ignore::RuntimeWarning"  # interpreted, numpy warns where compiled code gives infinity
    environment, selection = MODES[mode]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-n0", "-W", quiet, CLAIMS, "-k", selection],
        env={**os.environ, **environment},
        cwd=HERE.parent.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]
    assert " passed" in run.stdout
