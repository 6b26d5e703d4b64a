"""What holds for all tests."""

from __future__ import annotations

import sys

from thorough import THOROUGH


def pytest_runtest_setup() -> None:
    """Let Beam remember what it would work out again for every job, as soon as something has imported it."""
    if "apache_beam.runners" in sys.modules and not THOROUGH:
        from beam_memory import remember

        remember()
