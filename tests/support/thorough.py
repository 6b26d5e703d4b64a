"""How many examples a property test tries: some in a plain run, all where ROCSTEADY_THOROUGH is set."""

from __future__ import annotations

import os

THOROUGH_VARIABLE = "ROCSTEADY_THOROUGH"
THOROUGH = bool(os.environ.get(THOROUGH_VARIABLE))


def examples(most: int) -> int:
    """Return how many of these a property test tries now."""
    return most if THOROUGH else max(min(most, 15), most // 4)
