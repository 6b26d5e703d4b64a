"""Streams for `TestStream`: elements in the order in which they come, and a watermark that jumps.

All times are whole milliseconds in microseconds: a `TestStream` has no others.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from apache_beam.testing import test_stream
from apache_beam.transforms.window import TimestampedValue
from apache_beam.utils.timestamp import Timestamp


def at(micros: float) -> Timestamp:
    """Return a Beam timestamp."""
    return Timestamp(micros=int(micros))


class Stream:
    """What happens, in its order."""

    def __init__(self) -> None:
        self._stream = test_stream.TestStream()
        self._watermark = -(10**15)

    def then(self, *elements: tuple[int, Any]) -> Stream:
        """Let elements come at once, (event time, value) each."""
        self._stream.add_elements([TimestampedValue(value, at(time)) for time, value in elements])
        return self

    def watermark(self, micros: int) -> Stream:
        """Let the watermark go on to a moment, if it is not there yet."""
        if micros > self._watermark:
            self._stream.advance_watermark_to(at(micros))
            self._watermark = micros
        return self

    def end(self) -> Any:
        """Return it all, for a pipeline."""
        return self._stream.advance_watermark_to_infinity()


def played(
    elements: Sequence[tuple[int, Any]], rng: random.Random, ahead: int = 0, jumps: float = 0.6
) -> Any:
    """Play elements; the watermark jumps now and then, up to `ahead` beyond the earliest that is to come."""
    left, stream = list(elements), Stream()
    while left:
        size = rng.randint(1, 9)
        stream.then(*left[:size])
        left = left[size:]
        if left and rng.random() < jumps:
            stream.watermark(min(time for time, _ in left) + ahead)
    return stream.end()
