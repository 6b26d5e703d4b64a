"""The graph of the repository's files: which file uses which, from the text of the files alone.

A file uses the modules that it imports and the packages above them, modules and paths in its strings, and the
files that it looks through. A test uses each conftest.py above it, and a module the data in its folder. The
public names of the package lead to the modules that define them.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from fnmatch import fnmatchcase
from functools import cache

from .modules import FLOORS, FileReader, Found, Value, homes_of, module_of


class Graph:
    """The files of a tree, and what each uses.

    `files` are all paths, also those of files that the change deletes: others may still import them. `read`
    returns the text of a file, "" for a deleted one.
    """

    def __init__(self, files: Collection[str], read: Callable[[str], str]) -> None:
        self.files = sorted(files)
        self._known = set(files)
        self._folders = {path[:end] for path in files for end, each in enumerate(path) if each == "/"}
        self._modules = {name: path for path in self.files if (name := module_of(path))}
        self._read = read
        self._found: dict[str, Found] = {}
        self._matching = cache(self._files_like)
        self._homes = {path: self._names(path) for path in self.files if f"{path}i" in self._known}
        self._code_folders = {path.rpartition("/")[0] for path in self.files if path.endswith(".py")}
        self._users: dict[str, set[str]] = defaultdict(set)
        for path in self.files:
            for used in self.uses(path):
                self._users[used].add(path)

    def uses(self, path: str) -> set[str]:
        """Return the files that a file uses itself; they may use others."""
        if not path.endswith(".py"):
            return set()
        found = self._of(path)
        used: set[str] = set()
        for module, name in found.imports:
            used |= self._imported(module, name)
        for pattern in found.modules:
            used |= self._named(pattern)
        if not path.startswith("tests/checks/"):  # they look at all files, but not for the tests' sake
            placed = set().union(*(self._matching(each) for each in found.places if each[0] != "*"))
            in_product = path.partition("/")[0] in FLOORS  # kernels are stored by a hash of all sources, e.g.
            used |= {each for each in placed if not (in_product and each.endswith(".py"))}
        if path.startswith("tests/"):
            used |= {above for folder in _above(path) if (above := f"{folder}/conftest.py") in self._known}
        return used - {path}

    def users(self, path: str) -> set[str]:
        """Return the files that use a file themselves."""
        return self._users[path] | self._modules_with_data(path)

    def readers(self, path: str) -> set[str]:
        """Return the files that look through the whole tree, and so read this file as a text."""
        return {each for each, found in self._found.items() if self._reads(each, found, path)}

    @staticmethod
    def _reads(reader: str, found: Found, path: str) -> bool:
        if reader.partition("/")[0] in FLOORS or reader.startswith("tests/checks/"):
            return False
        return any(fnmatchcase(path, pattern) for pattern in found.places if pattern[0] == "*")

    def chains(self, changed: Collection[str]) -> dict[str, list[str]]:
        """Return each file that uses a changed one, with the shortest way to it, the changed file first."""
        chains = {path: [path] for path in sorted(changed)}
        waiting = list(chains)
        for path in waiting:  # grows: files that are reached in as few steps as can be come first
            readers = self.readers(path) if len(chains[path]) == 1 else set()
            for user in sorted(self.users(path) | readers):
                if user not in chains:
                    chains[user] = [*chains[path], user]
                    waiting.append(user)
        return chains

    # ---- what files use

    def _of(self, path: str) -> Found:
        if path not in self._found:
            self._found[path] = Found()  # while the file is read: imports may go in a circle
            self._found[path] = FileReader(path, self._modules, self._values).read(self._read(path))
        return self._found[path]

    def _values(self, module: str) -> Mapping[str, Value]:
        path = self._modules.get(module)
        return self._of(path).values if path else {}

    def _names(self, path: str) -> dict[str, str]:
        """Return the names that the stub beside a package's `__init__.py` hands on, with their modules."""
        try:
            return homes_of(module_of(path) or "", ast.parse(self._read(f"{path}i")), self._modules)
        except (SyntaxError, ValueError):
            return {}

    def _imported(self, module: str, name: str = "", *, in_text: bool = False) -> set[str]:
        if f"{module}.{name}" in self._modules:
            return self._with_packages(f"{module}.{name}")
        while module and module not in self._modules:
            module, _, name = module.rpartition(".")
        if not module:
            return set()
        used = self._with_packages(module)
        homes = self._homes.get(self._modules[module], {})
        if homes and name and not name.startswith("__"):
            unknown = set() if in_text else {*homes.values()}
            for home in [homes[name]] if name in homes else unknown:
                used |= self._with_packages(home)
        return used

    def _with_packages(self, module: str) -> set[str]:
        parts = module.split(".")
        above = {".".join(parts[:end]) for end in range(1, len(parts) + 1)}
        return {self._modules[each] for each in above if each in self._modules}

    def _named(self, pattern: str) -> set[str]:
        if "*" in pattern:
            named = {each for each in self._modules if fnmatchcase(each, pattern)}
            return set().union(*map(self._with_packages, named))
        used = self._imported(*_split(pattern), in_text=True)
        main = f"{pattern}.__main__"
        return used | (self._with_packages(main) if main in self._modules else set())

    def _files_like(self, pattern: str) -> set[str]:
        if "*" in pattern:
            return {path for path in self.files if fnmatchcase(path, pattern)}
        if pattern in self._folders:
            return {path for path in self.files if path.startswith(f"{pattern}/")}
        return {pattern} & self._known

    def _modules_with_data(self, path: str) -> set[str]:
        """Return the modules that a data file belongs to: those of the nearest folder with modules."""
        if path.endswith(".py") or path.partition("/")[0] not in (*FLOORS, "benchmarks", "tests"):
            return set()
        folder = next((each for each in _above(path) if each in self._code_folders), None)
        return {each for each in self.files if each.endswith(".py") and each.rpartition("/")[0] == folder}


def _above(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(len(parts) - 1, 0, -1)]


def _split(dotted: str) -> tuple[str, str]:
    module, _, name = dotted.rpartition(".")
    return module, name
