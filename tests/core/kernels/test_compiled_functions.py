"""How much is compiled before a window has its first rows: it must not creep up again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from kernel_modes import ROOT
from rocsteady.core.kernels.cache_folder import COMPILED

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not COMPILED, reason="interpreted"),
]

MOST = {"LastEvents(10_000)": 205, "Adaptive()": 230, "Fading(10_000)": 195}
"""The most functions that may be compiled for a window: a few more than are, as versions of numba differ."""


@pytest.mark.parametrize("window", MOST)
def test_a_window_compiles_few_functions(tmp_path: Path, window: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks.start", "--compile", window], cwd=ROOT, check=True,
        env={**environment, "ROCSTEADY_CACHE_DIR": str(tmp_path)}, capture_output=True, text=True,
    )  # fmt: skip
    functions = json.loads(ran.stdout.splitlines()[-1])["functions"]
    assert sum(functions.values()) <= MOST[window], functions
