"""The claims of test_compressed_auc, under conditions that find mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.invariants.kernel_modes import claims_hold

HERE = Path(__file__).parent
CLAIMS = str(HERE / "test_compressed_auc.py")

MODES = {
    "bounds checked": ({"NUMBA_BOUNDSCHECK": "1"}, "toggled or emptied or slides or next_call"),
    "interpreted": ({"NUMBA_DISABLE_JIT": "1"}, ""),
}


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_all_claims_hold_with(mode: str) -> None:
    claims_hold([CLAIMS], *MODES[mode])
