"""The size of the sketches that rows bring, checked."""

from __future__ import annotations

from typing import Any

from ..errors import ConfigError
from .windows import Emission, Window, is_count

LEAST_SKETCH_BYTES = 1024
"""The fewest bytes that an `AucSketch` may have."""


def checked_sketch_bytes(given: Any, window: Window, every: Emission) -> int | None:
    """Return the most bytes of a row's sketch; None: rows bring none. Raises ConfigError."""
    if given is None:
        return None
    if not is_count(given) or given < LEAST_SKETCH_BYTES:
        raise ConfigError(
            f"sketch_bytes={given!r}: give a whole number of bytes, {LEAST_SKETCH_BYTES} or more, or None"
        )
    if not every.micros:
        raise ConfigError(
            f"sketch_bytes={given}: rows on a grid of times bring sketches, and every={str(every)!r}; give "
            "every=EverySeconds('1h')"
        )
    if window.ticks:
        raise ConfigError(
            f"sketch_bytes={given}: a sketch counts whole events, and those of window={str(window)!r} fade; "
            "take last:N, last:7d, adaptive or all"
        )
    return int(given)
