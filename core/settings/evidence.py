"""The settings of evidence that a model's AUC is below a bound: the bound, and the size of blocks."""

from __future__ import annotations

import numbers

from ..errors import ConfigError

DEFAULT_BLOCKS = 4
MOST_BLOCKS = 100
"""Largest m. A bet is at most 1 / (1 - bound), so large blocks are slow, whatever they show."""


def checked_bound(bound: object, name: str) -> float:
    """Return a bound of the AUC as a float. Raises ConfigError, with the name of the setting, for others."""
    if isinstance(bound, bool) or not isinstance(bound, numbers.Real) or not 0.0 < float(bound) < 1.0:
        raise ConfigError(
            f"{name}={bound!r}: give the AUC that the model must have, between 0 and 1, both excluded, "
            "such as 0.8"
        )
    return float(bound)


def checked_blocks(blocks: object, name: str) -> int:
    """Return m as an int. Raises ConfigError, with the name of the setting, for others."""
    is_whole = isinstance(blocks, numbers.Integral) and not isinstance(blocks, bool)
    if not is_whole or not 1 <= int(blocks) <= MOST_BLOCKS:  # type: ignore[call-overload]
        raise ConfigError(
            f"{name}={blocks!r}: a block holds at least so many positives and so many negatives; give a "
            f"whole number from 1 to {MOST_BLOCKS}, such as {DEFAULT_BLOCKS}"
        )
    return int(blocks)  # type: ignore[call-overload, no-any-return]
