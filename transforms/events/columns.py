"""Arrow columns of any type as the columns of an `EventBatch`: numbers, times, text, classes, ids.

Arrow's kernels convert a whole column. If a kernel refuses one value, a Python function with the same meaning
reads every value of this column in the batch (`number`, `instant`, `class_text`).

Invariant
    If a kernel accepts a value, the Python function gives the same result. So the result for an event never
    depends on other events in the batch. Tests compare whole batches with single rows.

No value raises an error: an unreadable value becomes NaN, NO_TIME or code -1. Missing values are null, the
empty text, and NaN (pandas writes a missing value so); but NaN in the column of scores is not missing.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Callable, Mapping
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...core.arrays import BoolArray, FloatArray, Int32Array, Int64Array
from ...core.events.columns import IdColumn, TextColumn
from ...core.events.moments import beam_micros, instant
from ...core.events.numbers import EXACT, is_held, number, unheld_integers
from ...core.events.times import (
    AFTER_LAST_TIME,
    EPOCH,
    FIRST_TIME,
    NO_TIME,
    from_float_ticks,
    from_ticks,
    number_of,
)
from ...core.settings import classes
from .periods import holds_periods, period_texts
from .time_formats import parse_moments

_SAFE_DIGITS = 15
"""A decimal of so many significant digits is written back the same from its float64."""


def text_of(value: object) -> str | None:
    """Return the text of one value of any type; None if the value is missing. Whole numbers have no ".0".

    >>> text_of(3.0), text_of(True), text_of(""), text_of(0.5)
    ('3', 'true', None, '0.5')
    """
    if value is None or isinstance(value, str):
        return value or None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return _digits(value)
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return str(int(value)) if value.is_integer() and abs(value) < EXACT else repr(value)
    if isinstance(value, Decimal):
        if value.is_nan():
            return None
        # two different decimals stay two texts
        return class_text(str(value)) if is_held(value) else str(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace") or None
    if isinstance(value, Mapping | list | tuple):
        return json_text(value)
    try:
        return valid_text(str(value)) or None
    except Exception:  # a class of the user's may raise any error
        return f"<{type(value).__name__}>"


def valid_text(text: str) -> str:
    r"""Return text that UTF-8 can write; a lone surrogate is shown as "\ud800"."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _digits(value: int) -> str:
    try:
        return str(int(value))
    except ValueError:  # Python does not write a number of more than 4,300 digits
        return hex(value)


def json_text(value: object) -> str:
    """Write any Python value as JSON: tuples become lists, types that JSON lacks become text.

    The function never raises an error.

    A value that is nested deeper than Python's stack is "...".

    >>> json_text({"p": 0.9, "at": (1, None), "x": math.nan})
    '{"p": 0.9, "at": [1, null], "x": "nan"}'
    """
    try:
        return json.dumps(_jsonable(value), ensure_ascii=False)
    except RecursionError:
        return '"..."'


def json_record(record: Mapping[str, object]) -> str:
    """Write a record as a JSON object. A field that is nested too deeply does not affect the other fields."""
    pairs = (f"{json_text(str(key))}: {json_text(value)}" for key, value in record.items())
    return f"{{{', '.join(pairs)}}}"


def _jsonable(value: object) -> object:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, np.ndarray | np.generic) and not isinstance(value, np.datetime64 | np.timedelta64):
        return _jsonable(value.tolist())
    if isinstance(value, str):
        return valid_text(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, int):
        return int(value) if abs(value) < 1 << 10_000 else _digits(value)
    if isinstance(value, Mapping):
        return {valid_text(str(key)): _jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(item) for item in value]
    if isinstance(value, datetime.date):
        return value.isoformat()
    if beam_micros(value) is not None and (micros := instant(value)) is not None:
        return (EPOCH + datetime.timedelta(microseconds=micros)).isoformat()
    return text_of(value)


def class_text(value: object) -> str | None:
    """Return the text by which a class is compared (core/settings/classes.py); None for a missing value.

    >>> class_text("1.0"), class_text("01"), class_text("TRUE"), class_text("UA"), class_text("")
    ('1', '1', '1', 'UA', None)
    """
    text = text_of(value)
    return None if text is None else classes.class_text(text)


def plain(array: pa.Array, *, dictionary: bool = False) -> pa.Array:
    r"""Return a column in one of few types; dictionaries are decoded unless they are asked for.

    Text of every kind and bytes become `string`; a byte that is not UTF-8 is shown as "\xff". Extension types
    become their storage, and float16 becomes float32. Timestamps with a zone become the same moments in UTC.
    A duration is neither a number nor a moment, so it becomes text with its unit: "5 ms". Periods of pandas
    become text: "2024-01".
    """
    if holds_periods(array):
        return period_texts(array)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_run_end_encoded(array.type):
        array = pc.run_end_decode(array)
    if pa.types.is_dictionary(array.type) and not dictionary:
        array = array.dictionary_decode()
        if isinstance(array, pa.ExtensionArray):
            return plain(array)
    kind = array.type
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return array.cast(pa.string())
    if (
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
        or pa.types.is_binary_view(kind)
        or pa.types.is_interval(kind)
    ):
        return pa.array([text_of(value) for value in array.to_pylist()], pa.string())
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return array.cast(pa.timestamp(kind.unit, "UTC"))
    if pa.types.is_float16(kind):  # few kernels of arrow know this type
        values = array.to_numpy(zero_copy_only=False).astype(np.float32)
        return pa.array(values, mask=~np.asarray(array.is_valid()))
    if pa.types.is_duration(kind):
        return pc.binary_join_element_wise(array.cast(pa.int64()).cast(pa.string()), kind.unit, " ")
    return array


def temporal_texts(array: pa.Array) -> pa.Array:
    """Write times as text; timestamps outside the years 1 to 9999, which Arrow cannot write, as numbers."""
    if not pa.types.is_timestamp(array.type):
        return array.cast(pa.string())
    outside = is_outside(array)
    if not pc.any(outside).as_py():
        return array.cast(pa.string())
    inside = pc.if_else(outside, pa.scalar(None, array.type), array).cast(pa.string())
    return pc.if_else(outside, ticks_in_words(array), inside)


def is_outside(array: pa.Array) -> pa.Array:
    """Return for each timestamp whether it lies outside the years 1 to 9999: bool[n], null for null."""
    least, end = (number_of(time, array.type.unit) for time in (FIRST_TIME, AFTER_LAST_TIME))
    ticks, most = array.cast(pa.int64()), 2**63 - 1  # int64 holds the years 1677 to 2262 in nanoseconds
    return pc.or_(pc.less(ticks, max(least, -most)), pc.greater_equal(ticks, min(end, most)))


def ticks_in_words(array: pa.Array) -> pa.Array:
    """Write timestamps as numbers with the unit of the column, such as "5 s since 1970"."""
    words = pa.scalar(f" {array.type.unit} since 1970")
    return pc.binary_join_element_wise(array.cast(pa.int64()).cast(pa.string()), words, "")


def numbers(array: pa.Array) -> FloatArray:
    """Read a column of numbers, float64[n]; NaN if a value is missing or is no number, such as a period."""
    if holds_periods(array):
        return np.full(len(array), np.nan)
    array = plain(array)
    kind = array.type
    if pa.types.is_string(kind):
        try:
            array = array.cast(pa.float64())
        except pa.ArrowInvalid:
            read = (number(value) for value in array.to_pylist())
            return np.fromiter((math.nan if x is None else x for x in read), np.float64, len(array))
    elif pa.types.is_decimal(kind):  # arrow's own conversion rounds twice, by the scale of the column
        array = array.cast(pa.string()).cast(pa.float64())
    elif pa.types.is_floating(kind) or pa.types.is_integer(kind):
        array = array.cast(pa.float64(), safe=False)
    else:
        return np.full(len(array), np.nan)
    values: FloatArray = array.to_numpy(zero_copy_only=False)
    return values


def read_scores(array: pa.Array) -> FloatArray:
    """Read a column of scores, as `numbers` does.

    Also give NaN for each number that no float64 holds (see `is_held`).
    """
    found = numbers(array)
    array = plain(array)
    kind = array.type
    if pa.types.is_integer(kind):
        unheld = unheld_integers(np.asarray(array.fill_null(0)))
    elif pa.types.is_decimal(kind) and kind.precision > _SAFE_DIGITS:
        digits = pc.utf8_trim(pc.replace_substring(texts := array.cast(pa.string()), ".", ""), "-0")
        long = pc.or_(pc.greater(pc.utf8_length(digits), _SAFE_DIGITS), pc.match_substring(texts, "E"))
        unheld = _unheld_among(array, np.asarray(long.fill_null(False)))
    elif pa.types.is_string(kind):
        unheld = _unheld_among(array, (np.abs(found) >= EXACT) & np.isfinite(found))
    else:
        return found
    return np.where(unheld, np.nan, found)


def _unheld_among(array: pa.Array, doubtful: BoolArray) -> BoolArray:
    """Return for each number of a column whether no float64 holds it.

    Numbers that are not doubtful are held.
    """
    rows = np.flatnonzero(doubtful)
    unheld = np.zeros(len(array), np.bool_)
    unheld[rows] = [not is_held(value) for value in array.take(pa.array(rows)).to_pylist()]
    return unheld


def instants(array: pa.Array, unit: str = "s", form: str | None = None) -> Int64Array:
    """Read a column of moments, int64[n] microseconds UTC; NO_TIME if `instant` finds no moment.

    form  the format of texts and of numbers, which are then read as texts. It does not apply to other types.

    A column of periods has no moments.
    """
    if holds_periods(array):
        return np.full(len(array), NO_TIME)
    array = plain(array)
    kind = array.type
    if form is not None and not (pa.types.is_temporal(kind) or pa.types.is_null(kind)):
        if not pa.types.is_string(kind):
            array = pa.array(texts(array).to_list(), pa.string())
        return parse_moments(array, form)
    if pa.types.is_timestamp(kind):
        return _from_ticks(array.cast(pa.int64()), kind.unit)
    if pa.types.is_date(kind):
        return _from_ticks(array.cast(pa.date64()).cast(pa.int64()), "ms")
    if pa.types.is_integer(kind) and not pa.types.is_uint64(kind):
        return _from_ticks(array.cast(pa.int64()), unit)
    if pa.types.is_floating(kind):
        return from_float_ticks(numbers(array), unit)
    if pa.types.is_string(kind) and (found := _from_texts(array, unit)) is not None:
        return found
    if pa.types.is_time(kind):  # a time of day has no date
        return np.full(len(array), NO_TIME)
    read = (instant(value, unit) for value in array.to_pylist())
    return np.fromiter((NO_TIME if x is None else x for x in read), np.int64, len(array))


def _from_ticks(array: pa.Array, unit: str) -> Int64Array:
    ticks: Int64Array = np.asarray(array.fill_null(0)).astype(np.int64)
    return from_ticks(ticks, unit, np.array(array.is_valid()))


def _from_texts(array: pa.Array, unit: str) -> Int64Array | None:
    """Read texts of one kind by kernels: all texts are numbers, or have no zone, or have a zone.

    Return None for any other texts.
    """
    known = array.drop_null()
    if not len(known):
        return np.full(len(array), NO_TIME)
    if number(known[0].as_py()) is not None:
        try:
            ticks = array.cast(pa.float64()).to_numpy(zero_copy_only=False)
        except pa.ArrowInvalid:
            return None
        return None if (np.abs(ticks) >= EXACT).any() else from_float_ticks(ticks, unit)
    for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            known[:1].cast(kind)  # arrow makes an error for every text that it refuses: 470 ns each, of 15
            return _from_ticks(array.cast(kind).cast(pa.int64()), "us")
        except pa.ArrowInvalid:
            continue
    return None


def holds_numbers(array: pa.Array) -> bool:
    """Return whether a column of moments has numbers.

    The column is numeric, or its first text is a number.
    """
    array = plain(array)
    if pa.types.is_string(array.type):
        row = pc.index(array.is_valid(), True).as_py()
        return row >= 0 and number(array[row].as_py()) is not None
    return bool(pa.types.is_integer(array.type) or pa.types.is_floating(array.type))


def texts(array: pa.Array, read: Callable[[object], str | None] = text_of) -> TextColumn:
    """Read a column of text; `read` is called once for each distinct value. Missing values have code -1."""
    array = plain(array, dictionary=True)
    if pa.types.is_temporal(array.type):
        array = temporal_texts(array)
    if not pa.types.is_dictionary(array.type):
        if pa.types.is_nested(array.type):
            return TextColumn.of([read(value) for value in array.to_pylist()])
        array = array.dictionary_encode()
    codes: Int32Array = np.asarray(array.indices.cast(pa.int32()).fill_null(-1))
    dictionary = array.dictionary
    # this is a slice of a large dictionary: keep only the entries that it uses
    if len(dictionary) > len(codes):
        used, places = np.unique(codes, return_inverse=True)
        codes = places.astype(np.int32)
        dictionary = dictionary.take(pa.array(used, mask=used < 0))
    dictionary = plain(dictionary)
    if pa.types.is_temporal(dictionary.type):
        dictionary = temporal_texts(dictionary)
    words = [read(value) for value in dictionary.to_pylist()]
    if len(set(words)) == len(words) and None not in words:
        return TextColumn(codes, tuple(map(str, words)))
    index: dict[str, int] = {}
    entries = [-1 if word is None else index.setdefault(word, len(index)) for word in words]
    return TextColumn(np.array([*entries, -1], np.int32)[codes], tuple(index))


def ids(array: pa.Array) -> IdColumn:
    """Read a column of ids as text; a missing id has the length -1."""
    array = plain(array)
    kind = array.type
    if pa.types.is_temporal(kind):
        array = temporal_texts(array)
    elif pa.types.is_integer(kind):
        array = array.cast(pa.string())
    elif not pa.types.is_string(kind):
        return IdColumn.of([text_of(value) for value in array.to_pylist()])
    if not len(array):
        return IdColumn.of([])
    if array.null_count:
        array = array.fill_null("")
    _, offsets_buffer, data = array.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int32)[array.offset : array.offset + len(array) + 1]
    lengths = np.diff(offsets)
    start, end = int(offsets[0]), int(offsets[-1])
    return IdColumn(np.where(lengths, lengths, -1), data[start:end].to_pybytes() if end > start else b"")
