r"""Text that goes to a person: names from outside made visible, and the one writer to stderr and stdout.

A model, a column or a file may have any characters in its name: ESC colours or clears a terminal, a line feed
makes a false line in a log, U+202E reverses the text behind it. `visible` writes such characters as escapes,
`name_text` also shortens a long name. Every function here that writes applies `visible` once more, line by
line: texts of other libraries' errors hold raw names, too. Data (JSON lines, CSV, Parquet) never goes through
this module. No other module of the package prints: tests/test_console_only.py looks for it.

Logs are for people, too: `ConsoleFormatter` writes their records safely, and `RareLog` guards them against
floods. `OptionParser` loses no value: only a repeatable option may have two. argparse keeps the last value of
an option that is given twice, and drops the first without a message. Here two different values of one option
are an error that shows both; the same value twice is one value. Options whose action is "append", "extend" or
a switch are as in argparse.
"""

from __future__ import annotations

import argparse
import logging
import re
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from ..errors import ConfigError
from .standard_streams import drop_the_rest, writing_out

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

_PREFIX = "rocsteady: "
_CLEAR = "\r\033[K"
"""The escape sequence that moves a terminal's cursor to the start of its line and empties the line."""

NAME_WIDTH = 80
"""A longer name is shortened in the middle: the beginning and the end of a name distinguish it from others.
"""

_LINE_WIDTH = 4_000
"""A longer line is shortened, too: such a line holds a value of megabytes that no person reads on a terminal.
"""

_GAP = "..."


def visible(text: str) -> str:
    r"""Return the text with an escape in place of each character that a terminal does not print as itself.

    These are the characters that `repr` escapes, by `str.isprintable`: controls (C0, C1, line feed and tab),
    marks of direction and of no width, separators other than the space, lone surrogates, private and
    unassigned characters. A backslash stays single, so that applying `visible` twice changes nothing.

    >>> visible("a\nb \x1b[31mred\x9b \u202e"), visible("\xe9 \u6f22\u5b57 \U0001f680")
    ('a\\nb \\x1b[31mred\\x9b \\u202e', 'é 漢字 🚀')
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def name_text(name: str, width: int = NAME_WIDTH) -> str:
    r"""Return a name on one line: visible, and shortened in the middle to at most `width` characters.

    No escape is cut in two. O(width) for a long name.

    >>> name_text("m\x1b1"), name_text("0123456789", width=8)
    ('m\\x1b1', '012...89')
    """
    if len(name) <= width and len(text := visible(name)) <= width:
        return text
    room = width - len(_GAP)
    end = _pieces(reversed(name[-room:]), room // 2)
    start = _pieces(name[:room], room - sum(map(len, end)))
    return "".join([*start, _GAP, *reversed(end)])


def _pieces(characters: Iterable[str], room: int) -> list[str]:
    """Return the first characters, made visible, as many as fit into `room` places."""
    found: list[str] = []
    for character in characters:
        piece = visible(character)
        room -= len(piece)
        if room < 0:
            break
        found.append(piece)
    return found


_USER = re.compile(r"(?<=://)[^/\s'\"]*@")


def without_passwords(text: str) -> str:
    """Return the text without user and password of the URLs in it.

    >>> without_passwords("no cluster answers at http://me:hunter2@example.com:8081")
    'no cluster answers at http://***@example.com:8081'
    """
    return _USER.sub("***@", text) if "@" in text else text


def _line(text: object) -> str:
    """Return a text as one visible line for a person."""
    return name_text(without_passwords(str(text)), _LINE_WIDTH)


def lines_text(lines: Iterable[str]) -> str:
    """Join lines by line feeds; each line is visible, so a line feed within a line is an escape."""
    return "\n".join(map(_line, lines))


# ---- writing

_drawn = False
"""Whether `redraw` left a text on the last line of the terminal, which the next line replaces."""


def _cleared() -> str:
    """Return the sequence that clears the text of `redraw`; the empty text if `redraw` left none."""
    global _drawn
    drawn, _drawn = _drawn, False
    return _CLEAR * drawn


def _put(stream: TextIO, text: str) -> None:
    """Write a text in one call, so that two threads do not mix their lines. Works in any encoding."""
    try:
        stream.write(text)
    except UnicodeEncodeError:  # a terminal or a file in ASCII
        encoding = stream.encoding or "ascii"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


def _tell(text: str) -> None:
    """Write a text to stderr.

    If stderr takes no text, for example because its terminal is closed, the text is dropped.
    """
    try:
        _put(sys.stderr, text)
    except OSError:
        drop_the_rest(sys.stderr)


def say(sentence: object) -> None:
    """Write one line to stderr, with the name of the program before it: "rocsteady: sentence"."""
    _tell(f"{_cleared()}{_PREFIX}{_line(sentence)}\n")


def say_below(text: object) -> None:
    """Write one line to stderr that belongs to the line before it: indented, without a prefix."""
    _tell(f"{_cleared()}  {_line(text)}\n")


def show(*lines: str) -> None:
    """Write lines for a person to stdout: the answer of a command that writes no data there."""
    with writing_out():
        _put(sys.stdout, lines_text(lines) + "\n")


def redraw(text: str) -> None:
    """Write a text over the last line of a terminal on stderr; the empty text clears that line."""
    global _drawn
    _drawn = bool(text)
    _tell(f"{_CLEAR}{_line(text)}")


# ---- text that Python and its libraries write


class ConsoleParser(argparse.ArgumentParser):
    """An argument parser whose errors show the words that the user typed.

    An error when its help is written is raised.
    """

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """End the process with a status, and with a message on stderr as one line."""
        super().exit(status, None if message is None else _line(message.rstrip("\n")) + "\n")

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        """Write a text as argparse does. argparse ignores errors of stdout; this method raises them."""
        if message and file is not None and file is sys.stdout:
            with writing_out():
                file.write(message)
        else:
            super()._print_message(message, file)


class ConsoleFormatter(logging.Formatter):
    """Formats log records for a person. Every line of a record but the first is indented.

    So no line within a record, such as a line of a worker's traceback, looks like another record.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the text of a record, its traceback included."""
        return _paragraph(super().format(record))


def _paragraph(text: str) -> str:
    return "\n    ".join(map(_line, text.split("\n")))


def _with_visible_arguments(record: logging.LogRecord) -> bool:
    """Make the arguments of a record visible; its message is the package's own text."""
    if isinstance(record.args, tuple):
        record.args = tuple(each if isinstance(each, int | float) else _line(each) for each in record.args)
    return True


def logger(name: str) -> logging.Logger:
    """Return the logger of that name; the arguments of its records are made visible by a filter.

    Handlers of a runner show the records of a worker to people, so records are made safe where they begin.
    Give the logger constant messages, and names as arguments.
    """
    found = logging.getLogger(name)
    found.addFilter(_with_visible_arguments)  # the filter is added only once
    return found


def show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,  # noqa: ARG001
    lineno: int,  # noqa: ARG001
    file: TextIO | None = None,  # noqa: ARG001
    line: str | None = None,  # noqa: ARG001
) -> None:
    """Write a warning as one line on stderr, in the place of `warnings.showwarning`."""
    text = str(message).removeprefix(_PREFIX)
    say(text if category in (UserWarning, RuntimeWarning) else f"{category.__name__}: {text}")


def show_error(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Write the traceback of a defect, in the place of `sys.excepthook`: it may hold raw names."""
    text = "".join(traceback.format_exception(kind, error, trace))
    _tell(_paragraph(text.rstrip("\n")) + "\n")


_RARE_SECONDS = 60.0


class RareLog(logging.Filter):
    """A filter of log records that lets one record of each kind pass in `seconds`.

    The next record to pass says how many were held back.

    A kind is a record's level and a text: the message before its arguments are put in, or the result of
    `kind`. The filter holds one entry for each kind, for ever. So give the logger constant messages with
    arguments, not texts that differ.

    >>> rare = RareLog()
    >>> lines = [logging.LogRecord("x", 30, "", 1, "shard %d is late", (n,), None) for n in range(3)]
    >>> [rare.filter(line) for line in lines]
    [True, False, False]
    """

    def __init__(
        self,
        seconds: float = _RARE_SECONDS,
        kind: Callable[[logging.LogRecord], str] = lambda record: record.msg,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._seconds = seconds
        self._kind = kind
        self._clock = clock
        self._passed: dict[tuple[int, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record may pass.

        Add to its message how many records of its kind were held back before it.
        """
        kind, now = (record.levelno, self._kind(record)), self._clock()
        last, held = self._passed.get(kind, (-float("inf"), 0))
        if now - last < self._seconds:
            self._passed[kind] = last, held + 1
            return False
        self._passed[kind] = now, 0
        if held:
            record.msg, record.args = f"{record.getMessage()} (and {held:,} more such lines)", ()
        return True


class UsageError(ConfigError):
    """The error for words of a command line that are wrong; the text says which words, and where help is."""


class OptionParser(ConsoleParser):
    """An argument parser that refuses a second value of an option, and whose errors are one sentence.

    Subcommands need this class as parser_class.
    """

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._given: dict[str, tuple[str, Any]] = {}
        for word in (None, "store"):
            self.register("action", word, _StoreOnce)

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse the words as argparse does. A value is compared only with the values of the same call."""
        self._given = {}
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Raise UsageError with the message, and where help is."""
        raise UsageError(f"{message} (see {self.prog} --help)")

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
    """Return the value of an option as a word of a command line."""
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
