"""A Sphinx extension: fills the generated parts of pages before MyST reads them.

A page holds a block such as

    ```{generated} command evaluate
    ```

The first word names the generator in `GENERATORS`, the other words are its arguments. The generator returns
Markdown, which replaces the block. A repository browser shows the block as it stands.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from .columns import columns_markdown, measures_markdown
from .commands import command_markdown, commands_markdown
from .errors import errors_markdown
from .python import names_markdown, types_markdown

GENERATORS: dict[str, Callable[..., str]] = {
    "columns": columns_markdown,
    "measures": measures_markdown,
    "command": command_markdown,
    "commands": commands_markdown,
    "errors": errors_markdown,
    "names": names_markdown,
    "types": types_markdown,
}

_BLOCK = re.compile(r"^```\{generated\} (\S+)(.*)\n```$", re.MULTILINE)


def filled(text: str) -> str:
    """Return a page with its generated blocks replaced by Markdown. Raises KeyError: no such generator."""
    return _BLOCK.sub(lambda block: GENERATORS[block.group(1)](*block.group(2).split()), text)


def setup(app: Sphinx) -> dict[str, Any]:
    """Fill every page as Sphinx reads it; read pages with generated blocks in every build."""
    app.connect("source-read", _fill)
    app.connect("env-get-outdated", _generated_pages)
    return {"parallel_read_safe": True}


def _fill(app: Sphinx, page: str, source: list[str]) -> None:  # noqa: ARG001  Sphinx's arguments
    source[0] = filled(source[0])


def _generated_pages(app: Sphinx, env: Any, *changes: set[str]) -> list[str]:  # noqa: ARG001
    """Return the pages that depend on code of the package, whose changes Sphinx does not see."""
    return [page for page in env.found_docs if _BLOCK.search(Path(env.doc2path(page)).read_text("utf-8"))]
