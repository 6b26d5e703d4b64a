"""Imports packages of the extra `prequential` by name, only when a learner or a stream needs them."""

from __future__ import annotations

import importlib
from typing import Any

from ..errors import MissingPackageError


def optional_module(name: str, wanted_by: str) -> Any:
    """Import a module and return it.

    Raises MissingPackageError, which names the package, the feature `wanted_by`, and the pip command.
    """
    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingPackageError(
            f"{wanted_by} needs the package {name.partition('.')[0]}, which is not installed here; "
            "run: pip install 'rocsteady[prequential]'"
        ) from None
