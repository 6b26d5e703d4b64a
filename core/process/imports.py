"""How packages are imported: Apache Beam with two repairs, optional packages when they are needed.

The repairs are made when Beam is first imported after rocsteady.

`apache_beam` 2.77 always imports its BigQuery client. Without the package google-apitools, this client logs a
warning by `logging.warning`. That call also gives the root logger a handler, so a later `logging.basicConfig`
of the user does nothing. This module drops the warning and the handler, and no other line of the log.

Under `python -OO` there are no docstrings. `apache_beam.io.textio` extends the docstrings of its pandas
readers and fails on None. This module lets textio be imported as if pandas were not installed. Then textio
has no pandas readers.

A script that imports `apache_beam` before rocsteady gets neither repair.

Packages of the extra `prequential` are imported only when a learner or a stream needs them.
"""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from ..errors import MissingPackageError

_REMARK = "apitools not found"


@contextmanager
def _without_remark() -> Iterator[None]:
    """Drop the one warning of Beam's BigQuery client, before `logging` sets up a handler for it."""
    warning = logging.warning

    def warn(message: object, *args: Any, **options: Any) -> None:
        if not str(message).startswith(_REMARK):
            warning(message, *args, **options)

    logging.warning = warn  # type: ignore[assignment]
    try:
        yield
    finally:
        logging.warning = warning


@contextmanager
def _without_pandas() -> Iterator[None]:
    """Make `import pandas` raise ImportError in the block."""
    before = {"pandas": sys.modules["pandas"]} if "pandas" in sys.modules else {}
    sys.modules["pandas"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules["pandas"]
        sys.modules.update(before)


_MENDS = {"apache_beam.io.gcp.internal.clients.bigquery": _without_remark}
if sys.flags.optimize > 1:
    _MENDS["apache_beam.io.textio"] = _without_pandas


class _Mender(MetaPathFinder):
    """Finds the modules of `_MENDS`, and no other module.

    The code of a found module runs within the repair that `_MENDS` names.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in _MENDS:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            within = _MENDS[fullname]()
            spec.loader.exec_module = within(spec.loader.exec_module)  # type: ignore[method-assign]
        return spec


def mend_beam_import() -> None:
    """Put the repairs in place, once. Imports nothing."""
    if not any(isinstance(finder, _Mender) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Mender())


def how_to_install(extra: str) -> str:
    """Return the words that say how to install the packages of an extra of rocsteady.

    This is the one place of these words. rocsteady is on no package index yet, so they name a checkout.
    """
    return f"in a checkout of rocsteady, run: pip install '.[{extra}]'"


def missing_package(package: str, wanted_by: str, extra: str) -> MissingPackageError:
    """Return the error for a feature, `wanted_by`, that lacks a package of an extra of rocsteady."""
    return MissingPackageError(
        f"{wanted_by} needs the package {package}, which is not installed here; {how_to_install(extra)}"
    )


def optional_module(name: str, wanted_by: str) -> Any:
    """Import a module and return it.

    Raises MissingPackageError, which names the package, the feature `wanted_by`, and the pip command.
    """
    try:
        return importlib.import_module(name)
    except ImportError:
        raise missing_package(name.partition(".")[0], wanted_by, "prequential") from None
