"""The page about a live job with its page open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def page(runs: Sequence[dict[str, Any]]) -> str:
    """Return the page about runs: the first is the long one."""
    return f"# A live job, measured\n\n{runs[0]['commit']}\n"
