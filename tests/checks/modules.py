"""What one Python file of the repository uses: modules, and files that it names or looks through.

`FileReader` walks the syntax tree of a file. It finds imports at the top and inside functions, names of
modules in strings, Python code in strings, and paths that begin at the checkout. It leaves out docstrings and
the imports under TYPE_CHECKING, which never run.

A path or a text that is known in part has `*` for the other part: `ROOT / name` is `*`, and
`f"benchmarks.{name}"` is `benchmarks.*`.
"""

from __future__ import annotations

import ast
import posixpath
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

FLOORS = ("core", "transforms", "pipelines", "runners")
PACKAGE = "rocsteady"

_MODULE = re.compile(r"(?<![\w.])(?:rocsteady|tests|benchmarks|extensions|examples)(?:\.[\w*]+)+")
_PATH = re.compile(r"[\w.*-]+(?:/[\w.*-]+)+")
_FILE = re.compile(r"[\w-]*\.\w+|LICENSE")
_VALUES = (ast.Constant, ast.Name, ast.JoinedStr, ast.BinOp, ast.Subscript, ast.Attribute, ast.Call)
_TELLING = re.compile(rf"{PACKAGE}\.|import_module|__file__|exec\(|run_path")
"""Modules of the product without these words use only what they import: that saves half of the time."""

_QUIET = {"__name__", "__doc__", "__version__", "__file__", "__spec__", "__package__"}


@dataclass(frozen=True)
class Place:
    """A path in the repository; "" is the checkout itself."""

    pattern: str

    def above(self, steps: int = 1) -> Place:
        """Return the folder so many steps above."""
        parts = self.pattern.split("/") if self.pattern else []
        return Place("/".join(parts[: max(len(parts) - steps, 0)]))

    def below(self, name: str) -> Place:
        """Return the place of a name below this folder."""
        joined = posixpath.normpath(posixpath.join(self.pattern, name))
        return Place("" if joined == "." else joined)


Value = Place | str
"""What an expression is: a path of the repository, or a text."""


@dataclass
class Found:
    """What a file uses.

    imports   modules by dotted names, and the names that are taken from each; "*" means all of a lazy face
    modules   patterns of dotted names of modules, in strings
    places    patterns of paths in the repository
    values    names at the top of the file that are a path or a text
    """

    imports: set[tuple[str, str]] = field(default_factory=set)
    modules: set[str] = field(default_factory=set)
    places: set[str] = field(default_factory=set)
    values: dict[str, Value] = field(default_factory=dict)


def module_of(path: str) -> str | None:
    """Return the dotted name by which tests import a file, or None."""
    if not path.endswith(".py"):
        return None
    parts = path.removesuffix(".py").split("/")
    if parts[-1] == "__init__":
        parts.pop()
    if not parts or parts[0] in FLOORS:
        return ".".join([PACKAGE, *parts])
    if parts[0] == "docs":  # the folder docs is on the search path of tests
        return ".".join(parts[1:]) or None
    return ".".join(parts) if parts[0] in ("tests", "benchmarks", "examples") else None


class FileReader:
    """Reads one file; `values_of` gives the values of another module, by its dotted name."""

    def __init__(
        self, path: str, modules: Mapping[str, str], values_of: Callable[[str], Mapping[str, Value]]
    ) -> None:
        self.found = Found()
        self._path = path
        self._modules = modules
        self._values_of = values_of
        self._module = module_of(path) or ""
        self._package = self._module if path.endswith("__init__.py") else self._module.rpartition(".")[0]
        self._aliases: dict[str, str] = {}

    def read(self, text: str) -> Found:
        """Return what the file with this text uses; a file with a syntax error uses nothing."""
        in_product = self._path.partition("/")[0] in FLOORS
        try:
            return self.read_tree(ast.parse(text), in_full=not in_product or bool(_TELLING.search(text)))
        except (SyntaxError, ValueError):
            return self.found

    def read_tree(self, tree: ast.Module, *, in_full: bool = True) -> Found:
        """Return what a syntax tree uses, or only what it imports."""
        is_face = is_lazy(tree)
        nodes = [node for node in tree.body if not (is_face and isinstance(node, ast.FunctionDef))]
        for imported in _imports(nodes):  # all aliases first: a function may stand above an import
            self._import(imported)
        for node in nodes:
            self._assign(node)
        if not in_full:
            return self.found
        self._walk(nodes)
        return self.found

    # ---- imports

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.Import):
            for name in node.names:
                first = name.name.partition(".")[0]
                self._aliases[name.asname or first] = name.name if name.asname else first
                self.found.imports.add((name.name, ""))
            return
        module = self._absolute(node)
        for name in node.names:
            self.found.imports.add((module, name.name))
            bound = name.asname or name.name
            if f"{module}.{name.name}" in self._modules:
                self._aliases[bound] = f"{module}.{name.name}"
            elif name.name in (values := self._values_of(module)):
                self.found.values[bound] = values[name.name]

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        package = self._package.split(".")
        package = package[: len(package) - node.level + 1]
        return ".".join([*package, *([node.module] if node.module else [])])

    # ---- the walk

    def _assign(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            value = self._value(node.value)
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if value is not None and isinstance(target, ast.Name):
                    self.found.values[target.id] = value

    def _walk(self, tops: Sequence[ast.AST]) -> None:
        waiting = list(tops)
        while waiting:
            waiting += self._visit(waiting.pop())

    def _visit(self, node: ast.AST) -> Iterator[ast.AST]:
        """Note what a node uses; return those of its children that are still to be visited."""
        kind = type(node)
        if kind in _VALUES:
            value = self._value(node)
            if isinstance(value, Place):
                if value.pattern:
                    self.found.places.add(value.pattern)
                return iter(())
            if kind in (ast.Constant, ast.JoinedStr):
                if value is not None:
                    self._text(value)
            elif kind in (ast.Name, ast.Attribute):
                self._attribute(node)
                return (
                    iter(()) if kind is ast.Name or isinstance(node.value, ast.Name) else iter((node.value,))
                )
            elif kind is ast.Call:
                self._call(node)
        elif kind is ast.Expr and isinstance(node.value, ast.Constant):
            return iter(())  # a docstring
        elif kind in (ast.Import, ast.ImportFrom):
            return iter(())
        elif kind is ast.If and _is_for_types(node):
            return iter(node.orelse)
        elif kind in (ast.List, ast.Tuple):
            self._words(node.elts)
        return ast.iter_child_nodes(node)

    def _call(self, node: ast.Call) -> None:
        called = _called(node)
        if called in ("exec", "run_path"):
            self.found.modules.add(f"{PACKAGE}.*")  # code of a page or an example may use all of it
        elif called == "import_module" and node.args:
            self._module_named(node.args[0])
        self._words(node.args)

    def _words(self, words: Sequence[ast.expr]) -> None:
        """Note the module of a command line `-m MODULE`."""
        for flag, module in pairwise(words):
            if isinstance(flag, ast.Constant) and flag.value == "-m":
                self._module_named(module)

    def _module_named(self, node: ast.expr) -> None:
        name = self._value(node)
        if isinstance(name, str) and not name.startswith("*"):
            self.found.modules.add(name)

    def _attribute(self, node: ast.expr) -> None:
        names: list[str] = []
        inner: ast.expr = node
        while isinstance(inner, ast.Attribute):
            names.insert(0, inner.attr)
            inner = inner.value
        if not isinstance(inner, ast.Name) or not (module := self._aliases.get(inner.id)):
            return
        while names and f"{module}.{names[0]}" in self._modules:
            module = f"{module}.{names.pop(0)}"
        if names[:1] == ["__path__"]:
            self.found.modules |= {module, f"{module}.*"}
        elif not names or names[0] not in _QUIET:
            self.found.imports.add((module, names[0] if names else "*"))

    def _text(self, text: str) -> None:
        if text == "ls-files":
            self.found.places.add("*")
            return
        self.found.modules |= {name for name in _MODULE.findall(text) if not re.match(r"\w+\.\*", name)}
        self.found.places |= {found for found in _PATH.findall(text) if not found.startswith("*")}
        if _FILE.fullmatch(text):
            self.found.places.add(text)
        if "import " in text and len(text) < 20_000:
            try:
                tree = ast.parse(textwrap.dedent(text.replace("*", "_")))
            except (SyntaxError, ValueError):
                if re.search(rf"(from|import) {PACKAGE}\b", text):
                    self.found.imports.add((PACKAGE, "*"))
                return
            program = FileReader("", self._modules, self._values_of)
            self.found.imports |= program.read_tree(tree).imports

    # ---- what an expression is, as far as the file itself says

    def _value(self, node: ast.expr) -> Value | None:
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else None
        if isinstance(node, ast.Name):
            own: dict[str, Value] = {
                "__package__": self._package,
                "__name__": self._module,
                "__file__": Place(self._path),
            }
            return self.found.values.get(node.id) or own.get(node.id)
        if isinstance(node, ast.JoinedStr):
            return "".join(self._piece(each) for each in node.values)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            left = self._value(node.left)
            return left.below(self._piece(node.right)) if isinstance(left, Place) else None
        if isinstance(node, ast.Subscript):
            inner = node.value
            if (
                isinstance(inner, ast.Attribute)
                and inner.attr == "parents"
                and isinstance(node.slice, ast.Constant)
            ):
                place = self._value(inner.value)
                return place.above(int(node.slice.value) + 1) if isinstance(place, Place) else None
            return None
        if isinstance(node, ast.Attribute):
            return self._value_of_attribute(node)
        return self._value_of_call(node) if isinstance(node, ast.Call) else None

    def _value_of_attribute(self, node: ast.Attribute) -> Value | None:
        if node.attr == "__file__" and isinstance(node.value, ast.Name):
            path = self._modules.get(self._aliases.get(node.value.id, ""))
            return Place(path) if path else None
        if node.attr == "parent":
            place = self._value(node.value)
            return place.above() if isinstance(place, Place) else None
        return None

    def _value_of_call(self, node: ast.Call) -> Value | None:
        called = _called(node)
        if called in ("Path", "str", "PurePath", "fspath") and len(node.args) == 1:
            inner = self._value(node.args[0])
            return inner if isinstance(inner, Place) else None
        if not isinstance(node.func, ast.Attribute):
            return None
        place = self._value(node.func.value)
        if not isinstance(place, Place):
            return None
        pieces = [self._piece(argument) for argument in node.args]
        if called in ("resolve", "absolute", "as_posix"):
            return place
        if called == "joinpath":
            return place.below("/".join(pieces))
        if called in ("with_name", "with_suffix"):
            return place.above().below("*" if called == "with_suffix" else "".join(pieces))
        if called == "glob":
            return place.below(pieces[0])
        if called == "rglob":
            return place.below("*" + pieces[0].lstrip("*"))
        return place.below("*") if called in ("iterdir", "walk") else None

    def _piece(self, node: ast.expr) -> str:
        value = self._value(node.value if isinstance(node, ast.FormattedValue) else node)
        return value.pattern if isinstance(value, Place) else value if value is not None else "*"


def is_lazy(tree: ast.Module) -> bool:
    """Return whether a package is a lazy face: it has a function `__getattr__`."""
    return any(isinstance(node, ast.FunctionDef) and node.name == "__getattr__" for node in tree.body)


def homes_of(package: str, stub: ast.Module, modules: Mapping[str, str]) -> dict[str, str]:
    """Return the module of each name that a lazy face hands on, as the imports of its stub say."""
    homes: dict[str, str] = {}
    for node in _imports(stub.body):
        if isinstance(node, ast.ImportFrom):
            module = f"{package}.{node.module}" if node.level else str(node.module)
            for name in node.names:
                inner = f"{module}.{name.name}"
                homes[name.asname or name.name] = inner if inner in modules else module
    return homes


def _imports(nodes: list[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    waiting: list[ast.AST] = list(nodes)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and _is_for_types(node):
            waiting += node.orelse
        elif isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
            waiting += ast.iter_child_nodes(node)


def _is_for_types(node: ast.If) -> bool:
    test = node.test
    return getattr(test, "id", getattr(test, "attr", "")) == "TYPE_CHECKING"


def _called(node: ast.Call) -> str:
    return str(getattr(node.func, "attr", getattr(node.func, "id", "")))
