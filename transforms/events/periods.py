"""Columns of pandas' Periods, which Arrow stores as whole numbers: ordinals since 1970 in a frequency.

An ordinal must not be read as a time, a number or a text. Arrow knows the type of such a column only in a
process that has imported pandas. In other processes the column of a Parquet file or of an Arrow stream is
int64, and only the metadata of its field says that it holds periods; `column_at` reads this metadata.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_OF_PANDAS = "pandas.period"
_NAME, _METADATA = b"ARROW:extension:name", b"ARROW:extension:metadata"


class PeriodType(pa.ExtensionType):  # type: ignore[misc]
    """The type of a column of periods of pandas, for processes that have not imported pandas."""

    def __init__(self, freq: str) -> None:
        self.freq = freq
        super().__init__(pa.int64(), _OF_PANDAS)

    def __arrow_ext_serialize__(self) -> bytes:
        return json.dumps({"freq": self.freq}).encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, _storage_type: pa.DataType, serialized: bytes) -> PeriodType:
        return cls(json.loads(serialized)["freq"])


def column_at(batch: pa.RecordBatch, place: int) -> pa.Array:
    """Return a column of a batch.

    A column of periods has the type of periods, whether or not pandas is imported.

    Columns of run-end encoding are decoded: Arrow cannot take rows of them.
    """
    column, metadata = batch.column(place), batch.schema.field(place).metadata
    if pa.types.is_run_end_encoded(column.type):
        return pc.run_end_decode(column)
    if pa.types.is_dictionary(column.type) and isinstance(column.type.value_type, pa.BaseExtensionType):
        return column.dictionary_decode()
    if metadata is None or metadata.get(_NAME) != _OF_PANDAS.encode() or column.type != pa.int64():
        return column
    kind = PeriodType.__arrow_ext_deserialize__(column.type, metadata[_METADATA])
    return pa.ExtensionArray.from_storage(kind, column)


def holds_periods(array: pa.Array) -> bool:
    """Return whether a column has a type of periods."""
    return isinstance(array.type, pa.BaseExtensionType) and array.type.extension_name == _OF_PANDAS


def no_number(array: pa.Array) -> pa.Array:
    """Return periods as text that is no number and no time, "Period('2024')".

    Return any other column unchanged.
    """
    if not holds_periods(array):
        return array
    texts = (None if text is None else f"Period({text!r})" for text in period_texts(array).to_pylist())
    return pa.array(texts, pa.string())


def period_texts(array: pa.Array) -> pa.Array:
    """Return the texts of periods: those of pandas, such as "2024-01"; without pandas "period 648 (M)"."""
    freq: str = getattr(array.type.freq, "freqstr", array.type.freq)
    try:
        from pandas import PeriodDtype
        from pandas.arrays import PeriodArray
    except ImportError:
        return pa.array(
            [None if each is None else f"period {each} ({freq})" for each in array.storage.to_pylist()],
            pa.string(),
        )
    missing = np.iinfo(np.int64).min  # the ordinal that pandas gives to a missing period
    ordinals = np.asarray(array.storage.fill_null(missing))
    periods: Any = PeriodArray(ordinals, dtype=PeriodDtype(freq))
    known = np.asarray(array.is_valid())
    return pa.array(
        [str(each) if there else None for each, there in zip(periods, known, strict=True)], pa.string()
    )
