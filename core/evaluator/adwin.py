"""ADWIN: a window of numbers that drops its oldest part as soon as the mean has changed.

Bifet and Gavalda, Learning from Time-Changing Data with Adaptive Windowing, SDM 2007. The window is an
exponential histogram: a bucket of row r sums up 2^r consecutive values: it has their total, and the sum of
their squared deviations from their own mean. The buckets of larger r are older. When a row gets a sixth
bucket, its two oldest buckets are merged into one bucket of the next row. So W values take 5 log2(W) buckets.

After every 32nd value the window is tested at each split between two buckets, from the oldest split on. With
n0 older values of sum u0 and n1 newer values of sum u1, both at least 5, the window is cut if

    |u0 / n0 - u1 / n1| > sqrt(2 m v d) + (2 / 3) d m,    m = 1 / (n0 - 4) + 1 / (n1 - 4),
    d = ln(2 ln(W) / delta),    v = the mean squared deviation of the window's W values.

A cut drops the oldest bucket alone, and all splits are tested again. Each new value and each dropped bucket
updates the window's total and squared deviations. The order of operations is the order in river's inner
detector (`river.drift.ADWIN()._helper`, never reset), so that the number of values in the window is the same
at every value.

Invariant: the last row in use, with the largest buckets, holds 1 to 5 buckets; every other row in use has 4
or 5.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import struct
import zlib
from typing import cast

import numpy as np
import numpy.typing as npt

from ..arrays import FloatArray, Int64Array
from ..encoding.fields import Reader
from ..encoding.json import reading
from ..errors import ConfigError, InputError
from ..kernels.compile import entry, inlined, kernel

CLOCK = 32
"""The number of values between checks. At a check the window holds at least so many values, so river's
condition W > 10 holds.
"""

MOST_BUCKETS = 5
SHORTEST = 5.0
"""The least number of values on each side of a split."""

ROWS = 32
LARGEST_WIDTH = 5 * 2**ROWS - 5
"""The number of values that 32 rows can always hold, whatever was dropped: 2e10."""

LARGEST_VALUE = 1e140
"""The largest magnitude of a value: then the squared deviations of any window of such values are finite."""

TICKS, WIDTH, ROWS_USED, FIRST_ROW = range(4)
"""The places in the array of counters: values so far, values in the window, rows in use; then the number of
buckets of each row.
"""

DELTA, TOTAL, SQUARES = range(3)
"""The places in the array of moments: delta; the sum of the window's values; the sum of the squared
deviations of these values from their mean.
"""

BUCKET_TOTAL, BUCKET_SQUARES = range(2)
"""The halves of a row of buckets: the sums of the buckets, and the sums of squared deviations; the oldest
bucket first.
"""

_HEAD = struct.Struct("<dqddB")
"""The head of a snapshot: delta, number of values so far, the window's sum and squared deviations, number of
rows in use.
"""


@inlined
def _push(counters: Int64Array, buckets: FloatArray, row: int, total: float, squares: float) -> int:
    """Add a bucket to a row, as the newest bucket of the row; return the row's number of buckets."""
    count = counters[FIRST_ROW + row]
    buckets[row, BUCKET_TOTAL, count] = total
    buckets[row, BUCKET_SQUARES, count] = squares
    counters[FIRST_ROW + row] = count + 1
    return count + 1


@inlined
def _remove_oldest(counters: Int64Array, buckets: FloatArray, row: int, gone: int) -> None:
    """Remove the `gone` oldest buckets of a row."""
    count = counters[FIRST_ROW + row] - gone
    for slot in range(count):
        buckets[row, BUCKET_TOTAL, slot] = buckets[row, BUCKET_TOTAL, slot + gone]
        buckets[row, BUCKET_SQUARES, slot] = buckets[row, BUCKET_SQUARES, slot + gone]
    counters[FIRST_ROW + row] = count


@inlined
def _append(counters: Int64Array, moments: FloatArray, buckets: FloatArray, value: float) -> None:
    """Add a value as the newest of the window, and merge buckets of full rows."""
    before = float(counters[WIDTH])
    if before > 0.0:
        deviation = value - moments[TOTAL] / before
        moments[SQUARES] += before * deviation * deviation / (before + 1.0)
    moments[TOTAL] += value
    counters[WIDTH] += 1
    row, total, squares = 0, value, 0.0
    while _push(counters, buckets, row, total, squares) > MOST_BUCKETS:
        size = float(1 << row)
        first, second = buckets[row, BUCKET_TOTAL, 0], buckets[row, BUCKET_TOTAL, 1]
        difference = first / size - second / size
        total = first + second
        squares = buckets[row, BUCKET_SQUARES, 0] + buckets[row, BUCKET_SQUARES, 1]
        squares += size * 0.5 * difference * difference
        _remove_oldest(counters, buckets, row, 2)
        row += 1
    if row >= counters[ROWS_USED]:
        counters[ROWS_USED] = row + 1


@inlined
def _has_cut(counters: Int64Array, moments: FloatArray, buckets: FloatArray) -> bool:
    """Return whether the means on both sides of some split differ by more than the bound. O(log W)."""
    width = float(counters[WIDTH])
    # rounding makes the sum negative when values hardly differ; its square root would be NaN
    if moments[SQUARES] < 0.0:
        return False
    d = np.log(2.0 * np.log(width) / moments[DELTA])
    v = moments[SQUARES] / width
    n0, u0, n1, u1 = 0.0, 0.0, width, moments[TOTAL]
    for row in range(counters[ROWS_USED] - 1, -1, -1):
        size = float(1 << row)
        for slot in range(counters[FIRST_ROW + row]):
            n0 += size
            n1 -= size
            u0 += buckets[row, BUCKET_TOTAL, slot]
            u1 -= buckets[row, BUCKET_TOTAL, slot]
            if n1 < SHORTEST:
                return False
            if n0 >= SHORTEST:
                m = 1.0 / (n0 - 4.0) + 1.0 / (n1 - 4.0)
                if abs(u0 / n0 - u1 / n1) > np.sqrt(2.0 * m * v * d) + 2.0 / 3.0 * d * m:
                    return True
    return False


@inlined
def _drop_oldest(counters: Int64Array, moments: FloatArray, buckets: FloatArray) -> int:
    """Drop the oldest bucket; return its number of values."""
    row = counters[ROWS_USED] - 1
    size = float(1 << row)
    counters[WIDTH] -= 1 << row
    width = float(counters[WIDTH])
    moments[TOTAL] -= buckets[row, BUCKET_TOTAL, 0]
    difference = buckets[row, BUCKET_TOTAL, 0] / size - moments[TOTAL] / width
    between = size * width * difference * difference / (size + width)
    moments[SQUARES] -= buckets[row, BUCKET_SQUARES, 0] + between
    _remove_oldest(counters, buckets, row, 1)
    if counters[FIRST_ROW + row] == 0:
        counters[ROWS_USED] = row
    return 1 << row


@kernel
def adwin_update(counters: Int64Array, moments: FloatArray, buckets: FloatArray, value: float) -> int:
    """Give one value to ADWIN; return how many of the oldest values the window dropped after the value.

    The function is for other kernels.

    counters, moments, buckets: the arrays of `Adwin.arrays`, which the function changes. value: a finite
    number, at most 1e140 in magnitude. The cost is amortised O(1); every 32nd value costs O(log W), plus
    O(log W) for each dropped bucket.
    """
    counters[TICKS] += 1
    _append(counters, moments, buckets, value)
    dropped = 0
    if counters[TICKS] % CLOCK == 0:
        while _has_cut(counters, moments, buckets):
            dropped += _drop_oldest(counters, moments, buckets)
    return dropped


@entry
def adwin_feed(
    counters: Int64Array,
    moments: FloatArray,
    buckets: FloatArray,
    values: FloatArray,
    widths: Int64Array,
    until_drop: bool,
) -> int:
    """Give values to ADWIN in order, and fill `widths` with the size of the window after each value.

    Return how many values were given.

    until_drop  whether to stop after the first value at which the window drops values
    """
    for index in range(len(values)):
        dropped = adwin_update(counters, moments, buckets, values[index])
        widths[index] = counters[WIDTH]
        if until_drop and dropped > 0:
            return index + 1
    return len(values)


class Adwin:
    """A window of numbers that becomes smaller when their mean changes (Bifet and Gavalda 2007).

    delta: a number in (0, 1). A smaller delta needs a larger change and gives fewer false alarms. In the
    paper, delta bounds the probability that the window drops values at a check, for independent values within
    [0, 1] of constant mean. This class uses river's bound, the paper's normal approximation. So delta is
    nominal even for values of this kind.

    Memory is 3 KB, whatever the number of values. Windows hold up to 2e10 values.

    >>> calm, changed = np.arange(2_000) % 2, np.arange(200) % 10 > 0
    >>> adwin = Adwin(delta=0.002)
    >>> int(adwin.update(calm)[-1]), int(adwin.update(changed)[-1])
    (2000, 248)

    Raises ConfigError if delta is not within (0, 1).
    """

    def __init__(self, delta: float = 0.002) -> None:
        if not (isinstance(delta, (int, float, np.floating)) and 0.0 < delta < 1.0):
            raise ConfigError(
                f"delta={delta!r}: the confidence of an adaptive window lies between 0 and 1, both excluded, "
                "such as 0.002; the smaller, the rarer are false alarms and the later true ones"
            )
        self._counters = np.zeros(FIRST_ROW + ROWS, np.int64)
        self._moments = np.array([delta, 0.0, 0.0])
        self._buckets = np.zeros((ROWS, 2, MOST_BUCKETS + 1))

    @property
    def arrays(self) -> tuple[Int64Array, FloatArray, FloatArray]:
        """The arrays of the state for `adwin_update`, not copies: counters, moments and buckets."""
        return self._counters, self._moments, self._buckets

    @property
    def width(self) -> int:
        """The number of values in the window."""
        return int(self._counters[WIDTH])

    @property
    def until_check(self) -> int:
        """The number of values up to the next check; 1 if the next value makes a check.

        If fewer values come, the window drops none.
        """
        return CLOCK - int(self._counters[TICKS]) % CLOCK

    def update(self, values: npt.ArrayLike) -> Int64Array:
        """Give values to ADWIN in order; return the number of values in the window after each value.

        The cost is amortised O(1 + log W / 32) a value, for a window of W values.

        Raises InputError, and takes no value, if a value is not finite or beyond 1e140 in magnitude, or if
        the window would be too large.
        """
        fed = self._checked(values)
        widths = np.empty(len(fed), np.int64)
        adwin_feed(*self.arrays, fed, widths, False)
        return widths

    def update_until_drop(self, values: npt.ArrayLike) -> tuple[int, int]:
        """Give values to ADWIN until the window drops values.

        Return how many values were given, and how many values were dropped.

        Raises InputError as `update` does.
        """
        given, width = self._checked(values), self.width
        fed = adwin_feed(*self.arrays, given, np.empty(len(given), np.int64), True)
        return fed, width + fed - self.width

    def _checked(self, values: npt.ArrayLike) -> FloatArray:
        """Return values in the form that a kernel takes; raises InputError if a value is not allowed."""
        fed = np.ascontiguousarray(values, np.float64)
        if fed.ndim != 1:
            raise InputError(f"values: shape {fed.shape}; give one dimension")
        wrong = ~(np.abs(fed) <= LARGEST_VALUE)
        if wrong.any():
            raise InputError(
                f"values: {fed[wrong.argmax()]} at position {int(wrong.argmax())}; give finite numbers of a "
                f"magnitude of {LARGEST_VALUE:g} at most"
            )
        if self.width + len(fed) > LARGEST_WIDTH:
            raise InputError(f"values: a window of more than {LARGEST_WIDTH:,}; start a new one")
        # numba would compile a second form of the kernel for read-only arrays
        return fed if fed.flags.writeable else fed.copy()

    def to_bytes(self) -> bytes:
        """Return a snapshot.

        An Adwin that is loaded from the snapshot drops exactly the same values as this Adwin. A bucket takes
        16 bytes.

        Wire form, little-endian: crc32 of the rest (u32); delta (f64), values so far (i64), the window's sum
        and squared deviations (f64), rows in use (u8); number of buckets of each row (u8), from the smallest
        buckets on; sums of all buckets, then their squared deviations (f64), by row, the oldest bucket first.
        """
        counters, moments, buckets = self.arrays
        rows = int(counters[ROWS_USED])
        counts = counters[FIRST_ROW : FIRST_ROW + rows]
        used = np.arange(MOST_BUCKETS + 1) < counts[:, None]
        delta, total, squares = moments.tolist()
        head = _HEAD.pack(delta, int(counters[TICKS]), total, squares, rows)
        sums = (buckets[:rows, half][used].astype("<f8").tobytes() for half in (BUCKET_TOTAL, BUCKET_SQUARES))
        payload = b"".join((head, counts.astype("<u1").tobytes(), *sums))
        return struct.pack("<I", zlib.crc32(payload)) + payload

    def snapshot_bytes(self) -> int:
        """Return the length of `to_bytes()` in bytes. O(rows)."""
        rows = int(self.arrays[0][ROWS_USED])
        return 4 + _HEAD.size + rows + 16 * int(self.arrays[0][FIRST_ROW : FIRST_ROW + rows].sum())

    @classmethod
    def from_bytes(cls, data: bytes) -> Adwin:
        """Return an Adwin in the state that a snapshot has; raises CorruptBytesError for any other bytes."""
        with reading("a snapshot of an adaptive window"):
            return cls._read(Reader(memoryview(data)))

    @classmethod
    def _read(cls, reader: Reader) -> Adwin:
        """Read a snapshot; raises ValueError if the snapshot is damaged or contradicts itself."""
        if reader.number("<I") != zlib.crc32(reader.payload[reader.at :]):
            raise ValueError("their checksum is another")
        delta, ticks, total, squares, rows = reader.numbers(_HEAD.format)
        counts = reader.array("<u1", rows).astype(np.int64)
        used = np.arange(MOST_BUCKETS + 1) < counts[:, None]
        sums = [reader.array("<f8", int(used.sum())) for _ in range(2)]
        reader.end()
        width = int(counts @ (1 << np.arange(rows)))
        fits = rows <= ROWS and (not rows or 1 <= counts[-1] <= MOST_BUCKETS)
        if not (fits and ((counts[:-1] == 4) | (counts[:-1] == 5)).all() and width <= ticks):
            raise ValueError(f"buckets {counts[:8].tolist()} of {ticks} values cannot be")
        if not np.isfinite([total, squares, *sums[0], *sums[1]]).all():
            raise ValueError("a sum is not finite")
        adwin = cls(cast(float, delta))
        counters, moments, buckets = adwin.arrays
        counters[[TICKS, WIDTH, ROWS_USED]] = ticks, width, rows
        counters[FIRST_ROW : FIRST_ROW + rows] = counts
        moments[TOTAL:] = total, squares
        for half, of_buckets in enumerate(sums):
            buckets[:rows, half][used] = of_buckets
        return adwin
