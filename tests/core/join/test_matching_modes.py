"""The claims of the matching of labels and of the index of ids, under conditions that find mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.invariants.kernel_modes import claims_hold

CORE = Path(__file__).parents[1]
CLAIMS = [
    str(CORE / "join" / "test_matching.py"),
    str(CORE / "join" / "test_matching_refusals.py"),
    str(CORE / "ids" / "test_index.py"),
]

MODES = {
    "bounds checked": ({"NUMBA_BOUNDSCHECK": "1"}, ""),
    "interpreted": (
        {"NUMBA_DISABLE_JIT": "1"},
        "not million and not moment and not stays_in and not that_of and not while_nothing_comes",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_all_claims_hold_with(mode: str) -> None:
    claims_hold(CLAIMS, *MODES[mode])
