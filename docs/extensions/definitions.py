"""Where the package defines the types that its signatures name, found in its source.

A type may be a class, or an alias such as `Window = LastEvents | Fading`. An alias is shown as it is written.
Imports under `if TYPE_CHECKING` count, so the names cannot be looked up in the imported modules.
"""

from __future__ import annotations

import ast
from functools import cache
from importlib.util import resolve_name
from pathlib import Path
from typing import NamedTuple

import rocsteady

_ROOT = Path(rocsteady.__file__).parent


class Definition(NamedTuple):
    """A class or an alias of the package.

    module  the full name of the module that defines it
    value   of an alias, its expression; None of a class
    about   the docstring of a class, or the text below an alias
    """

    name: str
    module: str
    value: str | None
    about: str


def names_in(annotation: str) -> set[str]:
    """Return the names of types in an annotation, without those of modules.

    >>> sorted(names_in("Mapping[str, pa.Table] | Window"))
    ['Mapping', 'Window', 'str']
    """
    tree = ast.parse(annotation, mode="eval")
    modules = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in modules}


def definition_of(name: str, module: str) -> Definition | None:
    """Return the definition of a name that a module uses; None for a name that is not of the package."""
    if not module.startswith(rocsteady.__name__ + "."):
        return None
    defined, imported = _contents(module)
    if name in defined:
        return defined[name]
    return definition_of(name, imported[name]) if name in imported else None


@cache
def _contents(module: str) -> tuple[dict[str, Definition], dict[str, str]]:
    """Return what a module defines, and the modules from which it imports names."""
    path = _ROOT.joinpath(*module.split(".")[1:])
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    tree = ast.parse(path.read_text("utf-8"))
    defined: dict[str, Definition] = {}
    for node, after in zip(tree.body, [*tree.body[1:], None], strict=True):
        if isinstance(node, ast.ClassDef):
            defined[node.name] = Definition(node.name, module, None, ast.get_docstring(node) or "")
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name):
                about = _text(after)
                defined[target.id] = Definition(target.id, module, ast.unparse(node.value), about)
    imported = {
        alias.asname or alias.name: resolve_name("." * node.level + (node.module or ""), package)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    return defined, imported


def _text(node: ast.stmt | None) -> str:
    """Return the text of a statement that is a text; of another one the empty text."""
    value = node.value if isinstance(node, ast.Expr) else None
    is_text = isinstance(value, ast.Constant) and isinstance(value.value, str)
    return ast.literal_eval(value) if value is not None and is_text else ""
