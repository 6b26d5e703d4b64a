"""The claims of test_polynomial_fit about kernels, under conditions that find mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.invariants.kernel_modes import claims_hold

CLAIMS = str(Path(__file__).parent / "test_fit.py")

OF_KERNELS = "moments or line_sums or gradient or line_search or series or span or small_step or repetitions"
MODES = {
    "bounds checked": ({"NUMBA_BOUNDSCHECK": "1"}, OF_KERNELS),
    "interpreted": ({"NUMBA_DISABLE_JIT": "1"}, OF_KERNELS.replace(" or repetitions", "")),
}


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_all_claims_hold_with(mode: str) -> None:
    claims_hold([CLAIMS], *MODES[mode])
