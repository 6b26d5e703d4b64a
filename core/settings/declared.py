"""Declares a setting at its field of a dataclass: the default, the help text and the rules, in one place.

Options of the command line, Beam YAML, hashes and stored states read these declarations. So their code does
not name single settings.
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

    about       the help text of the command line, without the default.
    metavar     the placeholder of the value in the help text; None: the setting's name in capitals.
    parse       reads the value from text; None: a number, a switch, or the text of the default.
    of_rows     whether the setting decides only the values of a row, and not which events the window holds.
                Then a job may continue from a state that was made with another value.
    is_younger  whether the setting came after the first stored states. If so, a state's settings and the hash
                of settings leave it out while it has its default value.
    needs       the fields that every event must have if the setting is used.
    keeps       for a duration: the name of the part that a state keeps beside its evaluators for the setting.
    change      says why a job with another value cannot continue from a state.
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
    """Return the value of a setting for JSON: the value itself, a list for a tuple, or the spelling.

    >>> plain(0.5), plain((0.0, 0.1))
    (0.5, [0.0, 0.1])
    """
    if isinstance(value, tuple):
        return list(value)
    return value if value is None or isinstance(value, str | int | float) else str(value)


def younger_defaults(settings: type) -> dict[str, Any]:
    """Return by name the defaults of younger settings: a state without such a setting has its default."""
    return {
        name: plain(getattr(settings, name)) for name, each in declared(settings).items() if each.is_younger
    }
