"""The claims of test_weighted_tree and test_weighted_ranking, under conditions that find mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.invariants.kernel_modes import claims_hold

HERE = Path(__file__).parent
CLAIMS = [str(HERE / "test_tree.py"), str(HERE.parent / "evaluator" / "test_weighted_ranking.py")]

MODES = {
    "leaves of 8, bounds checked": (
        {"ROCSTEADY_BUCKET_SLOTS": "8", "NUMBA_BOUNDSCHECK": "1"},
        "not exact_fractions or random or ties or sawtooth or falling or flat or gap",
    ),
    "leaves of 8, interpreted": (
        {"ROCSTEADY_BUCKET_SLOTS": "8", "NUMBA_DISABLE_JIT": "1"},
        (
            "not exact_fractions and not weights_of_one or exact_fractions and (sawtooth or five) or "
            "weights_of_one and (30 or flipped)"
        ),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_all_claims_hold_with(mode: str) -> None:
    claims_hold(CLAIMS, *MODES[mode])
