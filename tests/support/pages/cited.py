"""What docstrings, comments, help texts, error texts and pages cite of the repository, and what is not there.

A text cites files (`rows.py`, `core/rows/rows.py`), options of the command line, names of the package
(`rs.Rows`, `core.rows.columns.REASONS`), names in files ("`write_interval` in `core/measures/delong.py`") and
stored formats (`RSST`, "Wire form, version 1"). `missing` finds the cited things that do not exist.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import NamedTuple

import rocsteady
from rocsteady.pipelines.commands import command_parser
from rocsteady.runners.presets import _beam_parser

from tests.checks.selection import files_of
from tests.support import ROOT

FLOORS = ("core", "transforms", "pipelines", "runners")

OTHER_OPTIONS = {
    "Java": "add-exports add-opens",
    "Beam's job server": "artifact-port artifacts-dir expansion-port flink-conf flink-master job-host",
    "Beam YAML": "jinja_variables yaml_pipeline_file",
    "Flink": "configDir",
    "Kafka": "bootstrap-server create topic",
    "Kubernetes": "for",
    "Prometheus": "config web",
    "Flex Template": "source",
    "curl": "retry retry-connrefused retry-delay silent",
    "docker": "target",
    "gcloud": "parameters print-only template-file-gcs-location",
    "mypy": "config-file",
    "pip": "no-binary no-cache-dir no-deps",
    "ruff": "check",
    "systemd": "now",
    "twine": "strict",
    "examples in texts": "name team",
}
"""Options that are not ours and not Beam's, by the program that has them."""

OTHER_FILES = {"CONFIGURATION.md"}
"""Files of other repositories: of librdkafka."""

_FILE = re.compile(r"(?<![\w/.*<{$-])((?:[\w-]+/)*[\w-]+\.(?:py|md))\b(?!\.?\w)")
_LINK = re.compile(r"\[[^\]]*\]\([^)]*\)")
_OWN_FILE = re.compile(r"\bas\s+`([\w-]+\.py)`")
_PATH = re.compile(r"`((?:core|transforms|pipelines|runners|tests|benchmarks|docs)/[\w./-]*)`")
_FOLDER = re.compile(r"(?<![\w/.-])((?:[\w-]+/)+[\w-]*)")
_OPTION = re.compile(r"(?<![\w-])--([a-zA-Z][\w-]*)")
_PACKAGE = re.compile(r"(?<![\w./:@-])(rs|rocsteady)\.([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)")
_ROOM = re.compile(r"`((?:core|transforms|pipelines|runners)(?:\.[A-Za-z_]\w*)+)(?:\(\))?`")
_NAMES_IN = re.compile(r"((?:`[\w.]+`(?:, | and ))*`[\w.]+`) in `([\w/]+\.py)`")
_MAGIC = re.compile(r"(?<![\w])(RS[A-Z]{2})(?!\w)")
_FORM = re.compile(r"(?:Wire form|Snapshot|Form)[^.:,]*, version (\d+)")


class Text(NamedTuple):
    """A text of a file: a string or a comment of Python, or a paragraph of a page."""

    path: str
    line: int
    words: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@cache
def _files() -> frozenset[str]:
    return frozenset(files_of(ROOT))


def product() -> list[str]:
    """Return the modules of the product."""
    return [path for path in sorted(_files()) if path.endswith(".py") and _is_product(path)]


def _is_product(path: str) -> bool:
    return path.partition("/")[0] in FLOORS or path == "__init__.py"


def pages() -> list[str]:
    """Return the pages and the examples, without the changelog, and without what programs write."""
    known = [path for path in sorted(_files()) if path != "CHANGELOG.md"]
    return [
        *(path for path in known if path.endswith(".md") and not path.startswith(("tests/", "docs/papers/"))),
        *(path for path in known if path.startswith("examples/") and not path.endswith(".md")),
    ]


def texts(path: str) -> list[Text]:
    """Return the texts of a file of the repository."""
    content = (ROOT / path).read_text("utf-8")
    return [*(_python(path, content) if path.endswith(".py") else _paragraphs(path, content))]


def _python(path: str, content: str) -> Iterator[Text]:
    for node in ast.walk(ast.parse(content)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield Text(path, node.lineno, node.value)
    for token in tokenize.generate_tokens(io.StringIO(content).readline):
        if token.type == tokenize.COMMENT:
            yield Text(path, token.start[0], token.string)


def _paragraphs(path: str, content: str) -> Iterator[Text]:
    line = 1
    for paragraph in re.split(r"(\n\s*\n|\n(?=\||\d+\. |- ))", content):
        if paragraph.strip():
            yield Text(path, line, paragraph)
        line += paragraph.count("\n")


def missing(text: Text) -> list[str]:
    """Return the things that a text cites and that do not exist, each with what it is."""
    words = " ".join(text.words.split())
    if not text.path.endswith(".py"):
        words = _LINK.sub("", words)  # the site's build and a test of links check these
    found = [f"file {name}" for name in _FILE.findall(words) if not _is_file(text, name, words)]
    found += [f"path {path}" for path in _PATH.findall(words) if not (ROOT / path).exists()]
    found += [f"option --{name}" for name in _OPTION.findall(words) if name not in _options()]
    found += [f"name {face}.{name}" for face, name in _PACKAGE.findall(words) if not _is_name(face, name)]
    found += [f"name {name}" for name in _ROOM.findall(words) if not _is_name("rocsteady", name)]
    for names, path in _NAMES_IN.findall(words):
        home = _resolved(text.path, path, words)
        there = _names_in(home) if home else set()
        found += [f"name {name} in {path}" for name in re.findall(r"`([\w.]+)`", names)
                  if not there.issuperset(name.split("."))]  # fmt: skip
    found += [f"format {magic}" for magic in _MAGIC.findall(words) if magic not in _versions()]
    if _is_product(text.path):
        own = _own_version(text.path)
        found += [f"version {form}" for form in _FORM.findall(words) if int(form) != own]
    elif text.words.lstrip().startswith("|"):
        said = [int(number) for number in re.findall(r"\d+", words.split("|")[2])]
        found += [f"versions {said} of {magic}" for magic in _MAGIC.findall(words.split("|")[1])
                  if said and said != [*range(1, _versions().get(magic, 0) + 1)]]  # fmt: skip
    return found


# ---- files


def _resolved(at: str, name: str, words: str) -> str | None:
    """Return the path of a file that a text names.

    The name begins at the folder of the text's file or at a folder above. On a page, the name may also begin
    at a folder that the words name: "`core/rows/rows.py`, `curves.py`".
    """
    parts = at.split("/")[:-1]
    folders = ["/".join(parts[:end]) for end in range(len(parts), -1, -1)]
    if not at.endswith(".py"):
        named = [folder.rstrip("/") for folder in _FOLDER.findall(words)]
        folders += [*named, *(folder.rpartition("/")[0] for folder in named)]
    tried = (f"{folder}/{name}".lstrip("/") for folder in folders)
    return next((path for path in tried if path in _files()), None)


def _is_file(text: Text, name: str, words: str) -> bool:
    if _resolved(text.path, name, words) or name in OTHER_FILES:
        return True
    return not text.path.endswith(".py") and name in _made_by_readers()


@cache
def _made_by_readers() -> frozenset[str]:
    """Return the files that a page tells its readers to save."""
    return frozenset(
        name for path in pages() if path.endswith(".md")
        for name in _OWN_FILE.findall((ROOT / path).read_text("utf-8"))
    )  # fmt: skip


# ---- options


@cache
def _options() -> frozenset[str]:
    """Return the options of all commands, programs of the repository, of Beam and of OTHER_OPTIONS."""
    top, parsers = command_parser()
    found = {*_beam_parser()._option_string_actions, *_options_of(top)}
    for parser in parsers.values():
        found |= _options_of(parser)
    for path in _files():
        if path.endswith(".py"):
            content = (ROOT / path).read_text("utf-8")
            for given in re.findall(r"add(?:_argument|option)\(\s*((?:\"-[\w-]+\",?\s*)+)", content):
                found |= {*re.findall(r"--[\w-]+", given)}
    others = {name for names in OTHER_OPTIONS.values() for name in names.split()}
    return frozenset({option.lstrip("-") for option in found} | others)


def _options_of(parser: argparse.ArgumentParser) -> set[str]:
    found = set()
    for action in parser._actions:
        found |= {*action.option_strings}
        if isinstance(action, argparse._SubParsersAction):
            for part in action.choices.values():
                found |= _options_of(part)
    return found


# ---- names


def _is_name(face: str, name: str) -> bool:
    parts = name.split(".")
    if face == "rocsteady" and parts[0] not in FLOORS and not parts[0][0].isupper():
        return True  # a logger, a counter of Beam, or a command
    value = rocsteady
    for end, part in enumerate(parts, 1):
        if not hasattr(value, part):
            try:
                value = import_module(".".join(["rocsteady", *parts[:end]]))
            except ImportError:
                return False
        else:
            value = getattr(value, part)
    return True


@cache
def _names_in(path: str) -> frozenset[str]:
    """Return the functions, classes, variables and attributes that a module defines."""
    names = set()
    for node in ast.walk(ast.parse((ROOT / path).read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.attr)
    return frozenset(names)


# ---- stored formats


@cache
def _versions() -> dict[str, int | None]:
    """Return the version of each stored format by its magic, as the module with the magic says."""
    return {
        magic: _own_version(path) for path in product()
        for magic in re.findall(r'b"(RS[A-Z]{2})"', (ROOT / path).read_text("utf-8"))
    }  # fmt: skip


@cache
def _own_version(path: str) -> int | None:
    module = import_module(".".join(["rocsteady", *path.removesuffix(".py").split("/")]))
    return getattr(module, "VERSION", getattr(module, "_VERSION", None))
