"""Event batches for tests: made by hypothesis, compared column by column, damaged in every way."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from hypothesis import strategies as st
from rocsteady.core.events.batch import EventBatch
from rocsteady.core.events.columns import IdColumn, TextColumn
from rocsteady.core.events.times import NO_TIME
from rocsteady.core.events.wire import PacketHead

texts = st.text(st.characters(exclude_categories=()), max_size=4)  # lone surrogates too
words = st.one_of(st.none(), texts)
positions = st.integers(-1, 2**63 - 1)
scores = st.floats(allow_nan=False, allow_infinity=False)
times = st.integers(NO_TIME, 2**63 - 1)


@st.composite
def batches(draw: Any, most: int = 6) -> EventBatch:
    """Return any batch that validation could make."""
    n = draw(st.integers(0, most))

    def column(values: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(values, min_size=n, max_size=n))

    def sometimes(values: st.SearchStrategy[Any], make: Any) -> Any:
        return make(column(values)) if draw(st.booleans()) else None

    classes = draw(st.booleans())
    return EventBatch(
        models=TextColumn.of(column(texts)),
        scores=np.array(column(scores), np.float64),
        labels=np.array(column(st.integers(-1 if classes else 0, 1)), np.int8),
        times=sometimes(times, lambda values: np.array(values, np.int64)),
        ids=sometimes(words, IdColumn.of),
        weights=sometimes(st.floats(1e-300, 1e300), lambda values: np.array(values, np.float64)),
        label_classes=TextColumn.of(column(texts)) if classes else None,
        predicted=TextColumn.of(column(texts)) if classes else None,
        slices=tuple(
            (name, TextColumn.of(column(words)))
            for name in draw(st.lists(texts.filter(bool), max_size=2, unique=True))
        ),
        source=draw(texts),
        head=PacketHead(draw(st.integers(0, 2**31 - 1)), draw(positions), draw(times)),
    )


def content(batch: EventBatch) -> dict[str, Any]:
    """Return everything that a batch says, in values that compare."""

    def plain(value: Any) -> Any:
        if isinstance(value, TextColumn):
            return value.to_list()
        if isinstance(value, IdColumn):
            return value.encoded()
        if isinstance(value, np.ndarray):
            return (value.dtype.str, value.tobytes())
        if isinstance(value, tuple):
            return [(name, column.to_list()) for name, column in value]
        return value

    return {name: plain(getattr(batch, name)) for name in EventBatch.__dataclass_fields__}


def flips(data: bytes) -> Iterator[bytes]:
    """Yield the bytes with one byte changed, at every place in several ways."""
    for place in range(len(data)):
        for mask in (0x01, 0x03, 0x80, 0xFF):
            yield data[:place] + bytes([data[place] ^ mask]) + data[place + 1 :]


def truncations(data: bytes) -> Iterator[bytes]:
    """Yield every proper beginning of the bytes."""
    return (data[:size] for size in range(len(data)))


def with_right_checksum(data: bytes, head: int, at: int) -> bytes:
    """Return the bytes with the crc32 of all behind the head written at its place in the head."""
    return data[:at] + zlib.crc32(data[head:]).to_bytes(4, "little") + data[at + 4 :]
