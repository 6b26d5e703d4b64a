"""Arrow columns as text for output: times in RFC 3339, and rows as JSON objects.

Arrow's kernels convert whole columns, because there may be millions of rows or dead letters.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from ...core.arrays import Int64Array
from .columns import is_outside, json_text, plain, ticks_in_words
from .periods import column_at

NonFinite = Literal["text", "number"]
"""How to show NaN and infinity, which JSON lacks. "text": as the texts "nan", "inf", "-inf". "number": NaN as
null, and infinity as 1e999, which parsers read as infinity.
"""

_QUOTE, _NOTHING = pa.scalar('"'), pa.scalar("")


def by_type(columns: Sequence[pa.Array], write: Callable[[pa.Array], pa.Array]) -> list[pa.Array]:
    """Write columns of equal length as text; `write` gets all columns of one type as one array.

    A call of an Arrow kernel costs some 5 us, however few the rows. One row of 54 columns took 1.7 ms column
    by column, and takes 0.25 ms type by type.

    >>> columns = [pa.array([1, 2]), pa.array([3, 4])]
    >>> [texts.to_pylist() for texts in by_type(columns, lambda array: array.cast(pa.string()))]
    [['1', '2'], ['3', '4']]
    """
    places: dict[pa.DataType, list[int]] = {}
    for place, column in enumerate(columns):
        places.setdefault(column.type, []).append(place)
    written: dict[int, pa.Array] = {}
    for kind, of_kind in places.items():
        if pa.types.is_primitive(kind) or pa.types.is_string(kind):
            together = write(pa.concat_arrays([columns[place] for place in of_kind]))
            n = len(together) // len(of_kind)
            written |= {place: together.slice(i * n, n) for i, place in enumerate(of_kind)}
        else:
            written |= {place: write(columns[place]) for place in of_kind}
    return [written[place] for place in range(len(columns))]


def rfc3339(array: pa.Array) -> pa.Array:
    """Write timestamps as text, with "Z" where they have a zone; microseconds only where not zero.

    A timestamp outside the years 1 to 9999 is written as a number, such as "5 s since 1970".

    >>> rfc3339(pa.array([0, 1_500_000], pa.timestamp("us", "UTC"))).to_pylist()
    ['1970-01-01T00:00:00Z', '1970-01-01T00:00:01.500000Z']
    """
    if pc.any(outside := is_outside(array)).as_py():
        inside = rfc3339(pc.if_else(outside, pa.scalar(None, array.type), array))
        return pc.if_else(outside, ticks_in_words(array), inside)
    zone = "" if array.type.tz is None else "Z"
    micros = array.cast(pa.timestamp("us", array.type.tz), safe=False).cast(pa.timestamp("us"))
    text = pc.replace_substring(micros.cast(pa.string()), " ", "T")
    whole = pc.ends_with(text, ".000000")
    return pc.binary_join_element_wise(
        pc.if_else(whole, pc.utf8_slice_codeunits(text, 0, 19), text), zone, ""
    )


def _quoted(array: pa.Array) -> pa.Array:
    quoted = _in_quotes(array)
    special = pc.match_substring_regex(array, r'["\\\x00-\x1f\x7f]')
    if not pc.any(special).as_py():
        return quoted
    escaped = [json.dumps(text, ensure_ascii=False) for text in array.filter(special).to_pylist()]
    return pc.replace_with_mask(quoted, special, pa.array(escaped, pa.string()))


def _in_quotes(array: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(_QUOTE, array, _QUOTE, _NOTHING)


def _cells(array: pa.Array, non_finite: NonFinite) -> pa.Array:
    """Return every value of a column as a piece of JSON; the pieces have no nulls."""
    array = plain(array)
    kind = array.type
    if pa.types.is_string(kind):
        text = _quoted(array)
    elif pa.types.is_floating(kind):
        text = array.cast(pa.float64()).cast(pa.string())
        finite = pc.is_finite(array)
        if not pc.all(finite).as_py():  # null counts as true
            if non_finite == "text":
                odd = _in_quotes(text)
            else:
                odd = pc.replace_substring_regex(text, "^(-?)inf$", "\\11e999")
                odd = pc.if_else(pc.is_nan(array), pa.scalar(None, pa.string()), odd)
            text = pc.if_else(finite, text, odd)
    elif pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        text = array.cast(pa.string())
    elif pa.types.is_timestamp(kind):
        text = _in_quotes(rfc3339(array))
    elif pa.types.is_temporal(kind) or pa.types.is_decimal(kind):
        text = _in_quotes(array.cast(pa.string()))
    else:
        values = array.to_pylist()
        text = pa.array([json_text(value) for value in values], pa.string())
    return text.fill_null("null") if text.null_count else text


@lru_cache(maxsize=64)
def _labels(names: tuple[str, ...], empty: tuple[bool, ...]) -> list[pa.Scalar]:
    """Return the texts before each value of a JSON object, and the text behind the last value.

    empty  whether a column has nulls only; its null is then a part of the next text
    """
    texts, text = [], "{"
    for place, (name, is_empty) in enumerate(zip(names, empty, strict=True)):
        text += f"{', ' if place else ''}{json.dumps(name, ensure_ascii=False)}: "
        if is_empty:
            text += "null"
        else:
            texts.append(text)
            text = ""
    return [pa.scalar(each) for each in (*texts, f"{text}}}")]


def json_rows(batch: pa.RecordBatch, rows: Int64Array) -> pa.Array:
    """Write chosen rows as `json_objects` does."""
    places = pa.array(rows)
    if not batch.num_columns:  # Arrow makes no rows of a batch without columns
        return pa.repeat(pa.scalar("{}"), len(rows))
    columns = [column_at(batch, place).take(places) for place in range(batch.num_columns)]
    return json_objects(pa.RecordBatch.from_arrays(columns, batch.schema.names))


def json_objects(batch: pa.RecordBatch, non_finite: NonFinite = "text") -> pa.Array:
    r"""Write every row as a JSON object, keys in column order, nulls as null: string[n].

    >>> json_objects(pa.record_batch({"p": [0.5, None], "m": ["a", 'b"']})).to_pylist()
    ['{"p": 0.5, "m": "a"}', '{"p": null, "m": "b\\""}']
    """
    columns = [column_at(batch, place) for place in range(batch.num_columns)]
    empty = tuple(column.null_count == len(batch) for column in columns)
    *labels, end = _labels(tuple(batch.schema.names), empty)
    filled = [column for column, is_empty in zip(columns, empty, strict=True) if not is_empty]
    if not filled:
        return pa.repeat(end, len(batch))
    cells = by_type(filled, lambda columns: _cells(columns, non_finite))
    pieces = [piece for pair in zip(labels, cells, strict=True) for piece in pair]
    return pc.binary_join_element_wise(*pieces, end, _NOTHING)
