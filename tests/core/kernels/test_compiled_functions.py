"""How much is compiled before a window has its first rows: it must not creep up again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from rocsteady.core.kernels.cache_folder import COMPILED

from tests.support.invariants.kernel_modes import ROOT, with_cache

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not COMPILED, reason="interpreted"),
]

SCANS = {"scan_windows": 43, "merge_sorted": 1}
TREE = {"build": 37, "begin_sums": 9, "slide": 84, "write_tree_rows": 1, "read_row": 1}
SEEN = {
    "LastEvents(10_000)": {"plan_steps": 10, "apply_decisions": 12} | SCANS | TREE,
    "Adaptive()": {
        "place": 19, "adwin_feed": 7, "plan_steps": 10, "list_entries": 1, "apply_decisions": 12,
        "rank_scores": 2,
    } | SCANS | TREE,
    "Fading(10_000)": {
        "group_events": 8, "build": 5, "plan_steps": 9, "apply_weighted": 82, "run_batch": 68,
    },
}  # fmt: skip
"""Functions compiled for each kernel of a window, with numba 0.68."""

MORE = 1.15
"""How many times as many functions may be compiled: versions of numba differ in their own functions."""

SEVERAL = {
    "kernels.rings.move_on": 3,
    "measures.delong.auc_interval": 2,
    "measures.delong.delong_variance": 2,
    "measures.delong.rank_sums": 2,
    "measures.delong.write_interval": 2,
    "measures.scan.total": 2,
    "score_tree.bucket.shift_down": 2,
    "score_tree.bucket.shift_up": 2,
    "weighted_tree.balance.left_of_merged": 2,
    "weighted_tree.layout.begin_tie": 2,
    "weighted_tree.layout.count_event": 2,
}
"""Functions that are compiled for several combinations of types, such as whole numbers and floats."""


@pytest.mark.parametrize("window", SEEN)
def test_a_window_compiles_few_functions_and_for_few_types(tmp_path: Path, window: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks.start", "--compile", window], cwd=ROOT, check=True,
        env=with_cache(tmp_path), capture_output=True, text=True,
    )  # fmt: skip
    said = json.loads(ran.stdout.splitlines()[-1])
    assert said["functions"].keys() == SEEN[window].keys()
    many = {
        name: number
        for name, number in said["functions"].items()
        if number > max(MORE * SEEN[window].get(name, 0), SEEN[window].get(name, 0) + 2)
    }
    assert many == {}
    assert {name: number for name, number in said["several"].items() if number > SEVERAL.get(name, 1)} == {}
