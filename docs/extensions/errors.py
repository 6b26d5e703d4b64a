"""The exceptions of the package as a table, generated from their docstrings."""

from __future__ import annotations

import inspect

from rocsteady.core import errors

from .docstrings import paragraphs
from .markdown import prose, table
from .python import public_names


def errors_markdown() -> str:
    """Return the table of the public exceptions, each with a link to its description."""
    kinds = [vars(errors)[name] for name in vars(errors) if name in public_names()]
    return table(
        ["exception", "is a", "when"],
        [
            [
                f"[`{kind.__name__}`](python/errors.md#{kind.__name__.lower()})",
                ", ".join(f"`{base.__name__}`" for base in kind.__bases__),
                prose(" ".join(paragraphs(inspect.getdoc(kind) or "")[0])),
            ]
            for kind in kinds
        ],
    )
