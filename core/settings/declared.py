"""A setting is declared once: its default, its words and its rules stand at its field of a dataclass.

Options of the command line, Beam YAML, hashes and stored states ask here, and name no setting themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

_KEY = "declared"


@dataclass(frozen=True)
class Declared:
    """What a setting is, beside its name, its type and its default.

    about       what it is, as the help of the command line says it; the default is not part of the text
    metavar     what stands for its value in that help; None: its name in capitals
    parse       reads its value from text; None: a number, a switch, or the text of the default
    of_rows     it decides what a row says of a window, not what the window holds: a job may go on from a
                state that was made with another value
    is_younger  it came after the first stored states: it is left out of a state's settings, and of the hash
                of settings, where it has its default
    needs       fields of an event without which the setting makes no sense
    """

    about: str
    metavar: str | None = None
    parse: Callable[[str], Any] | None = None
    of_rows: bool = False
    is_younger: bool = False
    needs: tuple[str, ...] = ()


def setting(default: object, about: str, **rules: Any) -> Any:
    """Return the field of a dataclass with this default; `rules` are the fields of `Declared`."""
    return field(default=default, metadata={_KEY: Declared(about, **rules)})


def declared(settings: type) -> dict[str, Declared]:
    """Return the settings of a dataclass that were declared by `setting`, by name."""
    return {each.name: each.metadata[_KEY] for each in fields(settings) if _KEY in each.metadata}


def plain(value: Any) -> Any:
    """Return the value of a setting as JSON has it: as it is, as a list, or as its spelling.

    >>> plain(0.5), plain((0.0, 0.1))
    (0.5, [0.0, 0.1])
    """
    if isinstance(value, tuple):
        return list(value)
    return value if value is None or isinstance(value, str | int | float) else str(value)


def younger_defaults(settings: type) -> dict[str, Any]:
    """Return what stands for the absence of a dataclass's younger settings, by name."""
    return {
        name: plain(getattr(settings, name)) for name, each in declared(settings).items() if each.is_younger
    }
