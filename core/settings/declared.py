"""Declares a setting once: its default, its help text and its rules stand at its field of a dataclass.

Options of the command line, Beam YAML, hashes and stored states read these declarations, and name no setting.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

_KEY = "declared"

Change = Callable[[Any, Any, Any], str]
"""Says why a setting of a snapshot cannot change from one value to another; the empty text if it can."""


@dataclass(frozen=True)
class Declared:
    """The declaration of a setting, beside its name, its type and its default.

    about       the help text of the command line, without the default
    metavar     the placeholder of the value in that help text; None: the setting's name in capitals
    parse       reads the value from text; None: a number, a switch, or the text of the default
    of_rows     whether the setting decides what a row says of a window, and not what the window holds: a job
                may go on from a state that was made with another value
    is_younger  whether the setting came after the first stored states: with its default value, it is left out
                of a state's settings and of the hash of settings
    needs       fields of an event without which the setting makes no sense
    keeps       of a duration: the name of the part that a state keeps beside its evaluators because of it
    change      says why a job with another value cannot go on from a state
    """

    about: str
    metavar: str | None = None
    parse: Callable[[str], Any] | None = None
    of_rows: bool = False
    is_younger: bool = False
    needs: tuple[str, ...] = ()
    keeps: str = ""
    change: Change | None = None


def setting(default: object, about: str, **rules: Any) -> Any:
    """Return the field of a dataclass with this default; `rules` are the other fields of `Declared`."""
    return field(default=default, metadata={_KEY: Declared(about, **rules)})


def declared(settings: type) -> dict[str, Declared]:
    """Return, by name, the declarations of a dataclass's fields that were made by `setting`."""
    return {each.name: each.metadata[_KEY] for each in fields(settings) if _KEY in each.metadata}


def plain(value: Any) -> Any:
    """Return the value of a setting for JSON: itself, a list for a tuple, or its spelling.

    >>> plain(0.5), plain((0.0, 0.1))
    (0.5, [0.0, 0.1])
    """
    if isinstance(value, tuple):
        return list(value)
    return value if value is None or isinstance(value, str | int | float) else str(value)


def younger_defaults(settings: type) -> dict[str, Any]:
    """Return, by name, the defaults of younger settings: a state without the setting means its default."""
    return {
        name: plain(getattr(settings, name)) for name, each in declared(settings).items() if each.is_younger
    }
