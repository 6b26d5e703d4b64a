"""What Beam's launcher of jobs leaves in the process of a test."""

from __future__ import annotations

import pytest

LEAVES_THREADS_AND_CHANNELS = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
]
"""Marks of a module whose jobs are not waited for."""
