"""x"""

from typing import Any


def page(runs: list[dict[str, Any]]) -> str:
    """x."""
    return "# x\n"
