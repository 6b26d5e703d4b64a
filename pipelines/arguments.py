"""Arguments of commands as data: each argument is declared once, and can add itself to an argparse parser.

`Argument` is an option or a positional argument. `Either` is a set of mutually exclusive options. `Group`
puts options under a heading in the help. Arguments that several commands share are constants here. The
functions at the end read the text of an option, or refuse an option; an error names the option.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from ..core.errors import ConfigError

_Value = TypeVar("_Value")
_Number = TypeVar("_Number", int, float)

_TAKES: dict[str, dict[str, Any]] = {
    "value": {},
    "nothing": {"action": "store_true"},
    "words": {"nargs": "+"},
    "repeated value": {"action": "append"},
    "repeated values": {"action": "extend", "nargs": "+"},
}


@dataclass(frozen=True)
class Argument:
    """An option with its value, or a positional argument.

    names     the option's spellings with a space between them, or the positional argument's name
    metavar   the placeholder of the value in the help; None = the name in capitals, or the choices
    about     the help text; a default that the text does not mention is appended in brackets
    default   the text used when the option is absent; None = no default
    takes     how many values; the values of a repeated option are a list, empty if the option is absent
    """

    names: str
    metavar: str | None
    about: str
    default: str | None = None
    choices: tuple[str, ...] | None = None
    required: bool = False
    takes: Literal["value", "nothing", "words", "repeated value", "repeated values"] = "value"

    @property
    def is_positional(self) -> bool:
        """Whether the argument has a place instead of a name."""
        return not self.names.startswith("-")

    def add_to(self, parser: argparse._ActionsContainer) -> None:
        """Add the argument to an argparse parser."""
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
    """Return an option that may be repeated; each use adds a value."""
    return Argument(names, metavar, about, required=required, takes="repeated value")


@dataclass(frozen=True)
class Either:
    """Mutually exclusive options: a command line may use at most one of them."""

    options: tuple[Argument, ...]

    def add_to(self, parser: argparse._ActionsContainer) -> None:
        """Add the options to an argparse parser."""
        one_of_them = parser.add_mutually_exclusive_group()
        for option in self.options:
            option.add_to(one_of_them)


@dataclass(frozen=True)
class Group:
    """Options under a heading of their own in the help, with an optional text about the whole group."""

    heading: str
    options: tuple[Argument | Either, ...]
    about: str | None = None

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        """Add the options, under their heading, to an argparse parser."""
        group = parser.add_argument_group(self.heading, self.about)
        for option in self.options:
            option.add_to(group)


# ---- arguments of several commands

RUNNER = Argument("--runner", None, "local | prism | flink | dataflow | any Beam runner", "local")

REFERENCE = Argument("--reference", "REF",
    "what each model's latest full window is compared with: earlier (all windows before it that share no "
    "event with it), a span before it such as 30d or '100 rows', or a period START..END", "earlier",
)  # fmt: skip

CONFIDENCE = Argument("--confidence", "P",
    "that the rows' intervals were made with [as a Parquet file says, else 0.95]",
)  # fmt: skip

STALE = Argument("--stale", "1d",
    "how long the last row of a silent model or slice counts in its groups; 0: not at all [1d]")  # fmt: skip

DEPENDENT = switch("--dependent",
    "models score the same events: intervals of groups of models then hold for any dependence [they score "
    "different events]")  # fmt: skip

TABLE = Argument("-o --output", "PATH", ".parquet .csv .csv.gz .jsonl .jsonl.gz", required=True)

CSV_SAFE = switch("--csv-safe",
    "in outputs that are CSV: an apostrophe before text that begins with = + - @, a tab or a line break, "
    "which a spreadsheet may run as a formula [as it is]")  # fmt: skip

OTLP = Argument(
    "--otlp",
    "URL",
    "send the numbers for monitoring to a collector of OpenTelemetry, such as http://localhost:4318, every "
    "minute or as $OTEL_METRIC_EXPORT_INTERVAL says [none]",
)
KAFKA_OPTION = repeatable("--kafka-option", "KEY=VALUE",
    "of librdkafka, for kafka://, such as security.protocol=SASL_SSL; or @FILE with a line each, for "
    "passwords; repeatable")  # fmt: skip

FAIL_IF = repeatable("--fail-if", "RULE",
    "end with exit status 4 where a counter of the job is so: 'dead_letters > 1%%' (of the events read), "
    "'late >= 5', 'applied < 1000'; outputs are written all the same; repeatable")  # fmt: skip

POSITIVE = Argument("--positive", "VALUE",
    "this label is positive, every other one negative, even NA; an empty label is missing")  # fmt: skip

TIMES = "RFC 3339 (no zone = UTC), dates, or numbers in --time-unit"

TIME_UNIT = Argument("--time-unit", None, "of numeric times", "s", choices=("s", "ms", "us", "ns"))

TIME_FORMAT = Argument("--time-format", "FORMAT",
    "of times that are texts, or numbers such as 20240102, as Python's strptime reads it, such as "
    "'%%d/%%m/%%Y %%H:%%M' [RFC 3339, dates, or numbers]")  # fmt: skip

CHECKPOINT_NEW = switch("--checkpoint-new", "remove the checkpoints in the folder, and begin anew")

ALPHA = Argument("--alpha", "P", "the level at which one is said to be better", "0.05")

TITLE = Argument("--title", "TEXT", "stands above the page")

CACHE_BYTES = Argument("--cache-bytes", "N", "bytes of memory for live state in a worker [1 GiB]")


# ---- readers of the texts of options


def parsed(option: str, text: str, parse: Callable[[str], _Value]) -> _Value:
    """Read the text of an option by the function `parse`. Raises ConfigError, which names the option."""
    try:
        return parse(text)
    except ConfigError as mistake:
        what, _, sentence = str(mistake).partition(": ")
        raise ConfigError(f"{option} {text}: {sentence or what}") from None


def checked_number(
    what: str, text: str, read: Callable[[str], _Number], fits: Callable[[_Number], bool], wanted: str
) -> _Number:
    """Read an option's text as a number for which `fits` holds. Raises ConfigError.

    what    the option and its text, for the error
    wanted  the numbers that fit, for the error
    """
    with suppress(ValueError):
        if fits(value := read(text)):
            return value
    raise ConfigError(f"{what}: give {wanted}")


def number(option: str, text: str) -> float:
    """Read an option's text as a number.

    Raises ConfigError, which names the option, for a text that is no number.
    """
    return checked_number(f"{option} {text!r}", text, float, lambda _: True, "a number")


def level(what: str, text: str, such: str) -> float:
    """Read an option's text as a level between 0 and 1. Raises ConfigError for any other number.

    what  the option and its text, for the error
    such  an example of a level
    """
    wanted = f"a level between 0 and 1, such as {such}"
    return checked_number(what, text, float, lambda value: 0 < value < 1, wanted)


def whole_number(option: str, text: str, least: int) -> int:
    """Read an option's text as a whole number >= `least`. Raises ConfigError, which names the option."""
    wanted = f"a whole number, {least} or more"
    return checked_number(f"{option} {text!r}", text, int, lambda value: value >= least, wanted)


_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]*):(\d{1,5})")


def address_of(option: str, text: str) -> tuple[str, int]:
    """Read an option's text as host:port, or :port for this machine alone.

    Raises ConfigError for a text of another form.

    >>> address_of("--prometheus", ":9100"), address_of("--prometheus", "0.0.0.0:9100")
    (('127.0.0.1', 9100), ('0.0.0.0', 9100))
    """
    found = _ADDRESS.fullmatch(text)
    if found is None or int(found[2]) > 65_535:
        raise ConfigError(f"{option} {text!r}: give :port or host:port, such as :9100 for this machine alone")
    return found[1].strip("[]") or "127.0.0.1", int(found[2])


# ---- options that are out of place


def option_of(name: str) -> str:
    """Return the option of a setting.

    >>> option_of("max_ahead")
    '--max-ahead'
    """
    return f"--{name.replace('_', '-')}"


def option_text(name: str, value: Any) -> str:
    """Return an option and its value, as a user writes them.

    >>> option_text("max_ahead", "1d"), option_text("score", ["a", "b"]), option_text("follow", True)
    ('--max-ahead 1d', '--score a b', '--follow')
    """
    values = value if isinstance(value, list) else [] if value is True else [value]
    return " ".join([option_of(name), *map(str, values)])


def refuse_given(options: argparse.Namespace, why: str, *names: str) -> None:
    """Raise ConfigError for the first of these options that is given.

    why  the rest of the error, which begins with the option and its value
    """
    for name in names:
        if (value := getattr(options, name)) is not None:
            raise ConfigError(f"{option_of(name)} {value}{why}")


# ---- options of several commands


def time_format_of(options: argparse.Namespace) -> str | None:
    """Return the format of times that the options name, or None. Raises ConfigError for an invalid format."""
    form: str | None = options.time_format
    if form is None:
        return None
    from ..transforms.events.time_formats import checked_format  # other commands work without pyarrow

    checked_format(form, "--time-format")
    if options.time is None:
        refuse_given(options, " needs times; name their column with --time COL", "time_format")
    if options.time_unit != "s":
        raise ConfigError(
            f"--time-format {form} with --time-unit {options.time_unit}: numbers are read in the format, as "
            "texts; leave one of them out"
        )
    return form


def cache_bytes_of(options: argparse.Namespace) -> int:
    """Return the memory for live state in a worker. Raises ConfigError."""
    from ..core.shard.protocol import DEFAULT_CACHE_BYTES

    if options.cache_bytes is None:
        return DEFAULT_CACHE_BYTES
    return whole_number("--cache-bytes", options.cache_bytes, 0)
