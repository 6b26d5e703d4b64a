"""What holds for all tests."""

from __future__ import annotations

import sys

from hypothesis import settings
from thorough import THOROUGH

# The first call of a kernel compiles it, so the time that an example takes says nothing about the code.
settings.register_profile("rocsteady", deadline=None)
settings.load_profile("rocsteady")


def pytest_runtest_setup() -> None:
    """Let Beam remember what it would work out again for every job, as soon as something has imported it."""
    if "apache_beam.runners" in sys.modules and not THOROUGH:
        from beam_memory import remember

        remember()
