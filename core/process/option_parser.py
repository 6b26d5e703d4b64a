"""A parser of options that loses no value: only a repeatable option may have two values.

argparse keeps the last value of an option that stands twice, and drops the first in silence. Here two
different values of one option are an error that shows both; the same value twice is one value. Options whose
action is "append", "extend" or a switch are as in argparse.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from .console import ConsoleParser


class OptionParser(ConsoleParser):
    """An argument parser that refuses a second value of an option. Subcommands need it as parser_class."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._given: dict[str, tuple[str, Any]] = {}
        for word in (None, "store"):
            self.register("action", word, _StoreOnce)

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse as argparse does. A value is compared only with the values of the same call."""
        self._given = {}
        return super().parse_known_args(args, namespace)

    def note_given(self, name: str, option: str, value: Any) -> None:
        """End with an error if another value of `name` came before.

        `option` is the option as the user wrote it.
        """
        if name in self._given and self._given[name][1] != value:
            first, before = self._given[name]
            self.error(
                f"{first} {_said(before)} and {option} {_said(value)}: one value counts; leave one out"
            )
        self._given[name] = (option, value)


def _said(value: Any) -> str:
    """Return a value as a word of a command line."""
    words = value if isinstance(value, list) else [value]
    return " ".join(repr(word) if word == "" or " " in str(word) else str(word) for word in words)


class _StoreOnce(argparse.Action):
    """Stores a value, as the action "store" does."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        if option_string is not None and isinstance(parser, OptionParser):
            parser.note_given(self.dest, option_string, values)
        setattr(namespace, self.dest, values)
