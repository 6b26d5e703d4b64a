"""Arrow columns as text for output: times in RFC 3339, and rows as JSON objects.

Arrow's kernels convert whole columns, because there may be millions of rows or dead letters.
"""

from __future__ import annotations

import json
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from .columns import json_text, plain

NonFinite = Literal["text", "number"]
"""How JSON, which lacks NaN and infinity, shows them. "text": as the texts "nan", "inf", "-inf".
"number": NaN as null, and infinity as 1e999, which parsers read as infinity."""


def rfc3339(array: pa.Array) -> pa.Array:
    """Write timestamps as text, with "Z" where they have a zone; microseconds only where not zero.

    >>> rfc3339(pa.array([0, 1_500_000], pa.timestamp("us", "UTC"))).to_pylist()
    ['1970-01-01T00:00:00Z', '1970-01-01T00:00:01.500000Z']
    """
    zone = "" if array.type.tz is None else "Z"
    micros = array.cast(pa.timestamp("us", array.type.tz), safe=False).cast(pa.timestamp("us"))
    text = pc.replace_substring(micros.cast(pa.string()), " ", "T")
    whole = pc.ends_with(text, ".000000")
    return pc.binary_join_element_wise(
        pc.if_else(whole, pc.utf8_slice_codeunits(text, 0, 19), text), zone, ""
    )


def _quoted(array: pa.Array) -> pa.Array:
    special = pc.match_substring_regex(array, r'["\\\x00-\x1f\x7f]')
    if pc.any(special).as_py():
        escaped = [
            None if text is None else json.dumps(text, ensure_ascii=False) for text in array.to_pylist()
        ]
        return pa.array(escaped, pa.string())
    return pc.binary_join_element_wise('"', array, '"', "")


def _cells(array: pa.Array, non_finite: NonFinite) -> pa.Array:
    """Return every value of a column as a piece of JSON; no nulls."""
    array = plain(array)
    kind = array.type
    if pa.types.is_string(kind):
        text = _quoted(array)
    elif pa.types.is_floating(kind):
        text = array.cast(pa.float64()).cast(pa.string())
        finite = pc.is_finite(array)
        if not pc.all(finite).as_py():  # null counts as true
            if non_finite == "text":
                odd = pc.binary_join_element_wise('"', text, '"', "")
            else:
                odd = pc.replace_substring_regex(text, "^(-?)inf$", "\\11e999")
                odd = pc.if_else(pc.is_nan(array), pa.scalar(None, pa.string()), odd)
            text = pc.if_else(finite, text, odd)
    elif pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        text = array.cast(pa.string())
    elif pa.types.is_timestamp(kind):
        text = _quoted(rfc3339(array))
    elif pa.types.is_temporal(kind) or pa.types.is_decimal(kind):
        text = _quoted(array.cast(pa.string()))
    else:
        values = array.to_pylist()
        text = pa.array([json_text(value) for value in values], pa.string())
    return text.fill_null("null")


def json_objects(batch: pa.RecordBatch, non_finite: NonFinite = "text") -> pa.Array:
    r"""Write every row as a JSON object, keys in column order, nulls as null: string[n].

    >>> json_objects(pa.record_batch({"p": [0.5, None], "m": ["a", 'b"']})).to_pylist()
    ['{"p": 0.5, "m": "a"}', '{"p": null, "m": "b\\""}']
    """
    if not batch.num_columns:
        return pa.array(["{}"] * batch.num_rows, pa.string())
    pieces: list[pa.Array | str] = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        pieces.append(f"{', ' if pieces else '{'}{json.dumps(name, ensure_ascii=False)}: ")
        pieces.append(_cells(column, non_finite))
    return pc.binary_join_element_wise(*pieces, "}", "")
