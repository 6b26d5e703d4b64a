"""rocsteady: how well classifiers in production rank and decide, at every moment and for every model."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from .core.process.imports import mend_beam_import
from .core.version import __version__ as __version__

mend_beam_import()

_IMPORT = re.compile(r"^( *)from \.(\S+) import ([a-zA-Z]\w*) as \3$", re.MULTILINE)
_IMPORTS = _IMPORT.findall(Path(__file__).with_name("__init__.pyi").read_text("utf-8"))

_HOMES = {name: home for _, home, name in _IMPORTS}
"""The module of each public name, as `__init__.pyi` gives it. A name is imported when it is first used: to
import Beam takes a second, to import numba a third of a second, and `rocsteady --help` needs neither.
"""

__all__ = sorted(name for indent, _, name in _IMPORTS if not indent)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = getattr(__import__(_HOMES[name], globals(), None, [name], 1), name)
    return value


def __dir__() -> list[str]:
    return sorted(_HOMES)
