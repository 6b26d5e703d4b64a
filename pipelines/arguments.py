"""Arguments of commands as data: each is declared once, and says how argparse is told of it.

`Argument` is an option, or the words that stand without one; `Either` are options of which one may be given;
`Group` has a heading in the help. Arguments that several commands have are constants here. Below them is how
the text of an option is read: a mistake is a sentence that names the option.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from ..core.errors import ConfigError

_Value = TypeVar("_Value")

_TAKES: dict[str, dict[str, Any]] = {
    "value": {},
    "nothing": {"action": "store_true"},
    "words": {"nargs": "+"},
    "repeated value": {"action": "append"},
    "repeated values": {"action": "extend", "nargs": "+"},
}


@dataclass(frozen=True)
class Argument:
    """An option with its value, or a word without an option.

    names     the option's spellings with a space between them, or the name of a word
    metavar   what stands for the value in the help; None: the name in capitals, or the choices
    about     what the help says of it; a default that is not in the text is put behind it, in brackets
    default   the text that stands for the absent option; None: nothing does
    takes     how many values; of an option that may be repeated they are a list, empty where it is absent
    """

    names: str
    metavar: str | None
    about: str
    default: str | None = None
    choices: tuple[str, ...] | None = None
    required: bool = False
    takes: Literal["value", "nothing", "words", "repeated value", "repeated values"] = "value"

    def add_to(self, parser: argparse._ActionsContainer) -> None:
        """Tell argparse."""
        shown = self.default is not None and "%(default)s" not in self.about
        rules: dict[str, Any] = {"help": self.about + " [%(default)s]" * shown, **_TAKES[self.takes]}
        if self.takes.startswith("repeated"):
            rules["default"] = []
        for name in ("metavar", "default", "choices", "required"):
            if value := getattr(self, name):
                rules[name] = value
        parser.add_argument(*self.names.split(), **rules)


def switch(names: str, about: str) -> Argument:
    """Return an option without a value."""
    return Argument(names, None, about, takes="nothing")


def repeatable(names: str, metavar: str, about: str, *, required: bool = False) -> Argument:
    """Return an option that may be given again, each time with one more value."""
    return Argument(names, metavar, about, required=required, takes="repeated value")


@dataclass(frozen=True)
class Either:
    """Options of which one at the most may be given."""

    options: tuple[Argument, ...]

    def add_to(self, parser: argparse._ActionsContainer) -> None:
        """Tell argparse."""
        one_of_them = parser.add_mutually_exclusive_group()
        for option in self.options:
            option.add_to(one_of_them)


@dataclass(frozen=True)
class Group:
    """Options under a heading of their own, with what there is to say of them all."""

    heading: str
    options: tuple[Argument | Either, ...]
    about: str | None = None

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        """Tell argparse."""
        group = parser.add_argument_group(self.heading, self.about)
        for option in self.options:
            option.add_to(group)


# ---- arguments of several commands

RUNNER = Argument("--runner", None, "local | prism | flink | dataflow | any Beam runner", "local")

TABLE = Argument("-o --output", "PATH", ".parquet .csv .csv.gz .jsonl .jsonl.gz", required=True)

CSV_SAFE = switch("--csv-safe",
    "in outputs that are CSV: an apostrophe before text that begins with = + - @, a tab or a line break, "
    "which a spreadsheet may run as a formula [as it is]")  # fmt: skip

KAFKA_OPTION = repeatable("--kafka-option", "KEY=VALUE",
    "of librdkafka, for kafka://, such as security.protocol=SASL_SSL; or @FILE with a line each, for "
    "passwords; repeatable")  # fmt: skip

FAIL_IF = repeatable("--fail-if", "RULE",
    "end with exit status 4 where a counter of the job is so: 'dead_letters > 1%%' (of the events read), "
    "'late >= 5', 'applied < 1000'; outputs are written all the same; repeatable")  # fmt: skip

POSITIVE = Argument("--positive", "VALUE", "this label is positive, every other non-missing one negative")

TIMES = "RFC 3339 (no zone = UTC), dates, or numbers in --time-unit"

TIME_UNIT = Argument("--time-unit", None, "of numeric times", "s", choices=("s", "ms", "us", "ns"))

TIME_FORMAT = Argument("--time-format", "FORMAT",
    "of times that are texts, or numbers such as 20240102, as Python's strptime reads it, such as "
    "'%%d/%%m/%%Y %%H:%%M' [RFC 3339, dates, or numbers]")  # fmt: skip

ALPHA = Argument("--alpha", "P", "the level at which one is said to be better [0.05]")

TITLE = Argument("--title", "TEXT", "stands above the page")

CACHE_BYTES = Argument("--cache-bytes", "N", "memory for live state in a worker")


# ---- what the texts of options say


def parsed(option: str, text: str, parse: Callable[[str], _Value]) -> _Value:
    """Read the value of an option. Raises ConfigError, which names the option."""
    try:
        return parse(text)
    except ConfigError as mistake:
        what, _, sentence = str(mistake).partition(": ")
        raise ConfigError(f"{option} {text}: {sentence or what}") from None


def number(option: str, text: str) -> float:
    """Read the value of an option. Raises ConfigError."""
    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"{option} {text!r}: give a number") from None


def whole_number(option: str, text: str, least: int) -> int:
    """Read the value of an option. Raises ConfigError."""
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise ConfigError(f"{option} {text!r}: give a whole number, {least} or more")
    return number
