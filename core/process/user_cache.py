"""The folder of files that can be made again.

Compiled kernels, predictions of the demo, servers for tests.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def user_cache() -> Path:
    """Return rocsteady's folder in the user's cache: in $XDG_CACHE_HOME, or where the platform has caches.

    Raises RuntimeError for a user without a home folder.
    """
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if named.is_absolute():  # the convention ignores others
        return named / "rocsteady"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "rocsteady"
    return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "rocsteady"
