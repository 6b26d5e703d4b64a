"""Reads JSON and numbers from stored bytes, which may be wrong even if their checksum is right.

Whoever can write bytes can write their checksum too. So depth and size are limited before Python's reader
begins. Every error of a reader becomes a `CorruptBytesError` with the name of the bytes.
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from ..errors import CorruptBytesError, MissingPackageError, OtherConfigurationError, WireError

MOST_BYTES = 64 << 20
"""The most bytes of a JSON text. The largest text that rocsteady writes is a manifest: 200 bytes a shard."""

MOST_NESTED = 32
"""The most lists and objects that are nested in each other. rocsteady writes at most six levels."""

_BRACKETS = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?+|[\[{]|[\]}]', re.DOTALL)
"""Matches a text in quotes, or a bracket. Possessive quantifiers do not backtrack, so a search is linear."""

_DAMAGE = (
    ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError, RecursionError,
    struct.error,
)  # fmt: skip
"""The exceptions that Python and numpy raise for impossible content."""

_INT64 = 2**63


def read_json(text: str | bytes | memoryview, what: str) -> Any:
    """Return the value of a JSON text, with finite numbers only. O(length).

    what  names the text in errors, such as "a manifest"

    Raises CorruptBytesError if the text is not JSON, is too long or too deep, or has NaN or an infinity.

    >>> read_json(b'{"clock": 7}', "a progress")
    {'clock': 7}
    """
    if len(text) > MOST_BYTES:
        raise CorruptBytesError(
            f"{what} has {len(text):,} bytes of JSON, and rocsteady writes {MOST_BYTES:,} at the most; take "
            "another copy"
        )
    try:
        if not isinstance(text, str):
            text = str(text, "utf-8", "surrogatepass")
        _refuse_depth(text)
        return json.loads(text, parse_float=_finite, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as damage:
        raise contradiction(what, damage) from damage


def read_object(text: str | bytes | memoryview, what: str) -> dict[str, Any]:
    """Return the value of a JSON text that is an object, read as by `read_json`."""
    content = read_json(text, what)
    if not isinstance(content, dict):
        raise contradiction(what, f"it is a {type(content).__name__} and not an object")
    return content


def whole(value: object, least: int = -_INT64, most: int = _INT64 - 1) -> int:
    """Return a value that is a whole number within [least, most]; by default the range of int64 is allowed.

    Raises ValueError for any other value.

    >>> whole(7, 0)
    7
    """
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"{str(value)[:40]!r} is no whole number from {least} to {most}")
    return value


def text_of(value: object) -> str:
    """Return a value that is a text; raises ValueError for any other value."""
    if not isinstance(value, str):
        raise ValueError(f"{str(value)[:40]!r} is no text")  # noqa: TRY004 - of all wrong content
    return value


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Turn the errors that damaged bytes cause in the block into CorruptBytesError.

    what  names the bytes in the error, such as "the state of a label join"

    The package's own errors for bytes, another configuration or a missing package pass unchanged.
    """
    try:
        yield
    except (WireError, OtherConfigurationError, MissingPackageError):
        raise
    except _DAMAGE as damage:
        raise contradiction(what, damage) from damage


def contradiction(what: str, why: object) -> CorruptBytesError:
    """Return the error for bytes whose content contradicts itself.

    `why` says how the content contradicts itself.
    """
    if isinstance(why, KeyError):
        why = f"it lacks {why}"
    return CorruptBytesError(
        f"{what} contradicts itself: {str(why)[:300]}; it was damaged, take another copy"
    )


def _refuse_depth(text: str) -> None:
    if text.count("[") + text.count("{") <= MOST_NESTED:
        return
    depth = 0
    for found in _BRACKETS.finditer(text):
        first = found[0][0]
        if first in "[{":
            depth += 1
            if depth > MOST_NESTED:
                raise ValueError(f"more than {MOST_NESTED} lists and objects are within each other")
        elif first != '"':
            depth -= 1


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:40]} is beyond all numbers")
    return number


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")
