"""The claims of test_tree and test_window, under conditions that find mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.invariants.kernel_modes import claims_hold

HERE = Path(__file__).parent
CLAIMS = [
    str(HERE / name)
    for name in (
        "test_tree.py",
        "test_window.py",
        "../measures/test_sums.py",
        "../kernels/test_exact_sums.py",
    )
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
            "fraction or infinit or survive or exact_in_both and (magnitudes or falling)"
        ),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_all_claims_hold_with(mode: str) -> None:
    claims_hold(CLAIMS, *MODES[mode])
