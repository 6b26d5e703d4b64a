"""Packages of the extra `prequential`: imported by name, here alone, and only when something needs them."""

from __future__ import annotations

import importlib
from typing import Any

from ..errors import MissingPackageError


def optional_module(name: str, wanted_by: str) -> Any:
    """Import a module. Raises MissingPackageError, which names the package and how to get it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingPackageError(
            f"{wanted_by} needs the package {name.partition('.')[0]}, which is not installed here; "
            "run: pip install 'rocsteady[prequential]'"
        ) from None
