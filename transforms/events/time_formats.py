"""Texts of moments in a format that the user gives, as Python's `strptime` reads them: `%d/%m/%Y %H:%M`.

`datetime.strptime` defines the meaning of a format. Kernels read the texts that have the length of the
column's first text, with digits in the same places (`_Layout`). `strptime` reads every other text, and equal
texts only once. For each text that the kernels accept, `strptime` gives the same moment; a test compares
both. (pyarrow's own `strptime` is not used: it reads 30 February as 1 March, lacks %f, and differs between
systems.)
"""

from __future__ import annotations

import functools
import re
from datetime import UTC, datetime
from itertools import permutations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...core.arrays import Int64Array
from ...core.errors import ConfigError
from ...core.events.times import NO_TIME, in_range, micros_of

_SAMPLE = datetime(2024, 11, 23, 16, 45, 37, 123_456, UTC)
_PARTS = ("year", "month", "day", "hour", "minute", "second")
_LEAST = datetime(1900, 1, 1)
"""The moment whose parts `strptime` takes if a format lacks them."""

_WIDTHS = {
    "Y": "[0-9]{4}",
    **dict.fromkeys("mdHMS", "[0-9]{2}"),
    "f": "[0-9]{1,6}",
    "z": "Z|[+-][0-9]{2}:?[0-9]{2}",
}
"""The directives that kernels read, each with the pattern of the texts that it matches."""

_DIGIT_BEHIND = re.compile(r"%[fz](%[^%z]|[0-9])")
"""Finds formats in which other digits may follow the digits of a fraction or a zone: `strptime` reads texts
of such formats.
"""


def checked_format(form: object, name: str = "time_format") -> str:
    """Return a format of moments. Raises ConfigError for an invalid format, or a format without a year."""
    example = "such as %d/%m/%Y %H:%M"
    if not isinstance(form, str) or not form:
        raise ConfigError(f"{name}={form!r}: give a format of strptime, {example}")
    if "%Z" in form.replace("%%", ""):
        raise ConfigError(
            f"{name}={form!r}: names of zones (%Z) mean different zones in different places; give %z for an "
            "offset such as +01:00, or write UTC into the format as it stands"
        )
    try:
        found = datetime.strptime(_SAMPLE.strftime(form), form)
    except (ValueError, re.error) as problem:
        raise ConfigError(f"{name}={form!r}: {_why(problem)}; give a format of strptime, {example}") from None
    if found.year != _SAMPLE.year:
        raise ConfigError(f"{name}={form!r} has no year, so that it names no moment; give one, {example}")
    for part in _PARTS[1:]:
        value = getattr(found, part)
        if value not in (getattr(_SAMPLE, part), getattr(_LEAST, part)):
            raise ConfigError(
                f"{name}={form!r}: the {part} is ambiguous in it; give %p (AM or PM) beside %I, or %H"
            )
    return form


def _why(problem: Exception) -> str:
    text = str(problem)
    if "bad directive" in text:
        return text.partition(" in format")[0]
    return "a directive stands twice" if isinstance(problem, re.error) else "strptime does not read it"


def parse_moment(text: str, form: str) -> int | None:
    """Return the moment of a text as microseconds UTC; None if the text does not fit the format.

    A text without a zone is in UTC. Blanks around the text are allowed.

    >>> parse_moment("02/01/2024 10:30", "%d/%m/%Y %H:%M"), parse_moment("2024-01-02", "%d/%m/%Y")
    (1704191400000000, None)
    """
    try:
        return micros_of(datetime.strptime(text.strip(), form))
    except (ValueError, OverflowError):
        return None


def form_that_fits(text: str, form: str) -> str | None:
    """Return a format, with day, month or year of two digits in another order, that a text fits.

    None if there is none.

    If some texts fit only such a format, probably all texts have it: their days and months are swapped.

    >>> form_that_fits("12/25/2024", "%d/%m/%Y"), form_that_fits("soon", "%d/%m/%Y")
    ('%m/%d/%Y', None)
    """
    return next((other for other in _reordered(form) if parse_moment(text, other) is not None), None)


_SWAPPED_DATE = re.compile(r"[0-9]{4}-(1[3-9]|2[0-9]|3[01])-(0[1-9]|1[0-2])")
"""The beginning of a text that is no date of RFC 3339, but a date whose day stands before the month."""

_DATE_FIRST = tuple(
    f"%Y-%m-%d{time}{zone}"
    for time in ("", "T%H:%M:%S", " %H:%M:%S", "T%H:%M:%S.%f", " %H:%M:%S.%f", "T%H:%M", " %H:%M")
    for zone in ("", "%z")
)
"""Formats of the times that are read if the user gives no format."""


def swapped_form(text: str) -> str | None:
    """Return a format whose day stands before the month, if a text fits it and is no time of RFC 3339.

    None for any other text.

    >>> swapped_form("2024-25-12 10:30:00"), swapped_form("2024-12-25"), swapped_form("12/25/2024")
    ('%Y-%d-%m %H:%M:%S', None, None)
    """
    if not _SWAPPED_DATE.match(text.strip()):
        return None
    return next(filter(None, (form_that_fits(text, form) for form in _DATE_FIRST)), None)


@functools.lru_cache(64)
def _reordered(form: str) -> tuple[str, ...]:
    """Return the formats that have the %d, %m and %y of a format in every other order."""
    pieces = re.findall(r"%.|[^%]+", form, re.DOTALL)
    places = [place for place, piece in enumerate(pieces) if piece in ("%d", "%m", "%y")]
    forms = []
    for order in permutations(places):
        moved = dict(zip(places, order, strict=True))
        forms.append("".join(pieces[moved.get(place, place)] for place in range(len(pieces))))
    return tuple(other for other in forms if other != form)


def parse_moments(texts: pa.Array, form: str) -> Int64Array:
    """Read a column of text, int64[n] microseconds UTC.

    NO_TIME if a text is missing or does not fit the format.
    """
    known = np.asarray(texts.is_valid())
    times = np.full(len(texts), NO_TIME)
    rest = known.copy()
    layout = _layout_of(form, texts)
    if layout is not None:
        alike = known & np.asarray(pc.fill_null(pc.equal(pc.binary_length(texts), layout.length), False))
        rows = np.flatnonzero(alike)
        chosen = texts if len(rows) == len(texts) else texts.take(pa.array(rows))
        times[rows] = layout.read(_bytes_of(chosen, layout.length))
        rest &= times == NO_TIME
    if rest.any():
        rows = np.flatnonzero(rest)
        distinct = texts.take(pa.array(rows)).dictionary_encode()
        read = [parse_moment(text, form) for text in distinct.dictionary.to_pylist()]
        moments = np.array([NO_TIME if time is None else time for time in read], np.int64)
        times[rows] = moments[np.asarray(distinct.indices)]
    return in_range(times, times != NO_TIME)


def _bytes_of(texts: pa.Array, length: int) -> npt.NDArray[np.uint8]:
    """Return texts of one length, without nulls, as bytes: uint8[n, length]."""
    _, offsets, data = texts.buffers()
    if not len(texts) or data is None:
        return np.empty((0, length), np.uint8)
    start = int(np.frombuffer(offsets, np.int32)[texts.offset])
    return np.frombuffer(data, np.uint8)[start : start + len(texts) * length].reshape(-1, length)


class _Layout(NamedTuple):
    """The places of a moment's parts, (directive, begin, end), and the literals, in texts of one length."""

    length: int
    parts: tuple[tuple[str, int, int], ...]
    literals: tuple[tuple[int, int], ...]

    def read(self, texts: npt.NDArray[np.uint8]) -> Int64Array:
        """Read texts, uint8[n, length], as microseconds UTC; NO_TIME for a text of another layout. O(n)."""
        sound = np.ones(len(texts), np.bool_)
        for place, byte in self.literals:
            sound &= texts[:, place] == byte
        found = {"Y": np.full(len(texts), 1900), "m": np.ones(len(texts), np.int64)}
        found |= {"d": found["m"], **dict.fromkeys("HMSfz", np.zeros(len(texts), np.int64))}
        for directive, begin, end in self.parts:
            columns = texts[:, begin:end]
            if directive == "z":
                found["z"] = _zone(columns, sound)
                continue
            digits = columns - np.uint8(48)
            sound &= (digits <= 9).all(1)
            value = digits @ (10 ** np.arange(end - begin)[::-1])
            found[directive] = value * 10 ** (6 - (end - begin)) if directive == "f" else value
        year, month, day = (np.where(sound, found[part], 1) for part in "Ymd")
        sound &= (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1)
        sound &= (found["H"] <= 23) & (found["M"] <= 59) & (found["S"] <= 59)
        months = np.where(sound, (year - 1970) * 12 + month - 1, 0).astype("M8[M]")
        first = months.astype("M8[D]")
        sound &= day <= ((months + 1).astype("M8[D]") - first).astype(np.int64)
        seconds = (first.astype(np.int64) + day - 1) * 86_400 + found["H"] * 3_600 + found["M"] * 60
        moments: Int64Array = (seconds + found["S"] - found["z"]) * 1_000_000 + found["f"]
        return np.where(sound, moments, NO_TIME)


def _zone(columns: npt.NDArray[np.uint8], sound: npt.NDArray[np.bool_]) -> Int64Array:
    """Return the offsets from UTC, in seconds, of texts of one length.

    Set `sound` to False for invalid offsets.
    """
    if columns.shape[1] == 1:
        sound &= columns[:, 0] == ord("Z")
        return np.zeros(len(columns), np.int64)
    sign = columns[:, 0]
    sound &= (sign == ord("+")) | (sign == ord("-"))
    if columns.shape[1] == 6:
        sound &= columns[:, 3] == ord(":")
    digits = columns[:, [1, 2, -2, -1]] - np.uint8(48)
    sound &= (digits <= 9).all(1)
    hours, minutes = (digits[:, at] * np.int64(10) + digits[:, at + 1] for at in (0, 2))
    sound &= (hours <= 23) & (minutes <= 59)
    ahead: Int64Array = hours * 3_600 + minutes * 60
    return np.where(sign == ord("-"), -ahead, ahead)


@functools.lru_cache(64)
def _pattern_of(form: str) -> tuple[re.Pattern[str], tuple[str, ...]] | None:
    """Return the pattern of a format's texts, and its directives; None if kernels cannot read the format."""
    parts, directives = [], []
    for piece in re.findall(r"%.|[^%]+", form, re.DOTALL):
        if piece[0] != "%" or piece == "%%":
            literal = piece.replace("%%", "%")
            if not literal.isascii():
                return None
            parts.append(re.escape(literal))
        elif (width := _WIDTHS.get(piece[1])) is not None:
            parts.append(f"({width})")
            directives.append(piece[1])
        else:
            return None
    if "Y" not in directives or _DIGIT_BEHIND.search(form):
        return None
    return re.compile("".join(parts)), tuple(directives)


def _layout_of(form: str, texts: pa.Array) -> _Layout | None:
    """Return the layout of the first text that is not null; None for a layout that kernels cannot read."""
    pattern = _pattern_of(form)
    row = pc.index(texts.is_valid(), True).as_py()
    if pattern is None or row < 0:
        return None
    text = texts[row].as_py()
    match = pattern[0].fullmatch(text) if text.isascii() else None
    if match is None:
        return None
    parts = tuple((part, *match.span(n + 1)) for n, part in enumerate(pattern[1]))
    inside = {place for _, begin, end in parts for place in range(begin, end)}
    literals = tuple((place, ord(text[place])) for place in range(len(text)) if place not in inside)
    return _Layout(len(text), parts, literals)
