"""The option --before FOLDER of a benchmark: it also measures another checkout, in turns with this one."""

from __future__ import annotations

import argparse
from pathlib import Path

from .pages import git


def add_before(parser: argparse.ArgumentParser) -> None:
    """Add the option `--before`; its value is an absolute path, or None."""
    parser.add_argument("--before", type=_folder, metavar="FOLDER", help="has another checkout, rocsteady")


def commit_of(before: Path) -> str:
    """Return the commit of the other checkout. Raises UnknownCommitError where git does not know it."""
    return git(before / "rocsteady", "rev-parse", "--short", "HEAD").strip()


def _folder(word: str) -> Path:
    folder = Path(word).resolve()
    if not (folder / "rocsteady" / "__init__.py").is_file():
        raise argparse.ArgumentTypeError(f"{word}/rocsteady is no checkout: clone the repository there")
    return folder
