"""Sums of float64 numbers without rounding.

They are the same to the last bit, in any order of additions and removals.

A sum is an int64 array of SUM_CHUNKS numbers; zeros are the empty sum. Every double is a whole multiple of
2^-1074, so a sum is one whole number: chunk i holds a multiple of 2^(32 i - 1074), and 70 chunks reach beyond
the greatest double. An addition splits its number over three neighbouring chunks without carrying: a chunk
has 31 bits to spare. Carries are made once in 2^30 additions, and before rounding. Removing an added number
restores the earlier sum. Source: the "small superaccumulator" of Neal 2015, "Fast exact summation using small
and large superaccumulators", section 3. Here the chunks carry later.

Infinities are counted. A sum with infinities of one sign is infinite, a sum with both is NaN. After the
infinities are removed, the sum is again that of the finite numbers. Callers must refuse NaN.

Invariants: chunks below the lowest and above the highest chunk in use are 0. All chunks of an empty sum are
0. No chunk overflows in up to 2^61 additions.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import Any, cast

import numpy as np

from .bits import highest_bit
from .compile import inlined, kernel

_CHUNKS = 70  # 2,098 bits of a double, 32 of a factor, 61 of so many additions
_END = _CHUNKS  # one more than the highest chunk in use; 0: no chunk is in use
_DEPTH = _CHUNKS + 1  # _CHUNKS less the lowest chunk in use
_UNCARRIED = _CHUNKS + 2  # additions since carries were made
_INFINITE = _CHUNKS + 3  # how many times +inf was added
_NEGATIVE_INFINITE = _CHUNKS + 4  # how many times -inf was added

SUM_CHUNKS = _CHUNKS + 5
"""Length of the int64 array of a sum; np.zeros makes an empty sum."""

_MASK = 0xFFFFFFFF
_HALF = 1 << 31
_FRACTION = (1 << 52) - 1
_MOST_UNCARRIED = 1 << 30
_TINY = 5e-324

_whole: Any = cast(Any, np.int64)


@kernel
def clear(sums: Any) -> None:
    """Make a sum empty."""
    sums[:] = 0


@inlined
def magnitude_of(x: float) -> tuple[int, int]:
    """Return (m, b) of a finite number: its absolute value is m 2^(b - 1074), m < 2^53, 0 <= b <= 2045."""
    bits = np.float64(x).view(np.int64)
    exponent = (bits >> _whole(52)) & _whole(0x7FF)
    fraction = bits & _whole(_FRACTION)
    if exponent == 0:
        return fraction, _whole(0)
    return fraction | _whole(1 << 52), exponent - _whole(1)


@inlined
def deposit(sums: Any, magnitude: int, bit: int, sign: int) -> None:
    """Add sign * magnitude * 2^(bit - 1074), for a magnitude below 2^63 and a sign of 1 or -1."""
    chunk = bit >> 5
    shift = bit & 31
    rest = magnitude >> (32 - shift)
    sums[chunk] += sign * ((magnitude & ((1 << (32 - shift)) - 1)) << shift)
    sums[chunk + 1] += sign * (rest & _MASK)
    sums[chunk + 2] += sign * (rest >> 32)
    sums[_END] = max(sums[_END], chunk + 3)
    sums[_DEPTH] = max(sums[_DEPTH], _CHUNKS - chunk)
    sums[_UNCARRIED] += 1


@kernel
def add(sums: Any, x: float, sign: int) -> None:
    """Add a number to a sum (sign = 1) or subtract it (-1), exactly. A few nanoseconds."""
    if np.isinf(x):
        sums[_INFINITE if x > 0.0 else _NEGATIVE_INFINITE] += sign
        return
    magnitude, bit = magnitude_of(x)
    deposit(sums, magnitude, bit, sign if x > 0.0 else -sign)
    if sums[_UNCARRIED] >= _MOST_UNCARRIED:
        carry(sums)


@kernel
def add_times(sums: Any, x: float, times: int) -> None:
    """Add a number `times` times to a sum, or subtract it -times times; |times| < 2^32."""
    if np.isinf(x):
        sums[_INFINITE if x > 0.0 else _NEGATIVE_INFINITE] += times
        return
    magnitude, bit = magnitude_of(x)
    count = abs(times)
    sign = _whole(1) if (x > 0.0) == (times > 0) else _whole(-1)
    deposit(sums, (magnitude & ((1 << 27) - 1)) * count, bit, sign)  # both products below 2^59
    deposit(sums, (magnitude >> 27) * count, bit + 27, sign)
    if sums[_UNCARRIED] >= _MOST_UNCARRIED:
        carry(sums)


@kernel
def carry(sums: Any) -> None:
    """Make every chunk in use a digit from 0 to 2^32 - 1, except the highest chunk: its sign is the sum's."""
    sums[_UNCARRIED] = 0
    if sums[_END] == 0:
        return
    low = _CHUNKS - sums[_DEPTH]
    top = sums[_END] - 1
    for i in range(low, top):
        digit = sums[i]
        sums[i] = digit & _MASK
        sums[i + 1] += digit >> 32
    while (sums[top] >= _HALF) | (sums[top] < -_HALF):
        sums[top + 1] = sums[top] >> 32
        sums[top] &= _MASK
        top += 1
    while (top > low) and sums[top] == 0:
        top -= 1
    while (low < top) and sums[low] == 0:
        low += 1
    empty = sums[top] == 0
    sums[_END] = 0 if empty else top + 1
    sums[_DEPTH] = 0 if empty else _CHUNKS - low


@kernel
def add_sums(sums: Any, others: Any, sign: int) -> None:
    """Add another sum to a sum (sign = 1), or subtract the other sum (-1)."""
    carry(others)
    carry(sums)
    if others[_END] == 0:
        return
    for i in range(_CHUNKS - others[_DEPTH], others[_END]):
        sums[i] += sign * others[i]
    sums[_END] = max(sums[_END], others[_END])
    sums[_DEPTH] = max(sums[_DEPTH], others[_DEPTH])
    sums[_UNCARRIED] = 1
    carry(sums)


@kernel
def negate(sums: Any) -> None:
    """Negate a sum that is not 0, after its carries are made; counts of infinities do not change."""
    top = sums[_END] - 1
    borrow = _whole(0)
    for i in range(_CHUNKS - sums[_DEPTH], top):
        digit = borrow - sums[i]
        sums[i] = digit & _MASK
        borrow = digit >> 32
    sums[top] = borrow - sums[top]
    while sums[top] == 0:
        top -= 1
    sums[_END] = top + 1


@kernel
def compare(sums: Any, others: Any) -> int:
    """Return 1, 0 or -1 if a sum is above, equal to or below another sum.

    Both sums must be finite and at least 0.
    """
    carry(sums)
    carry(others)
    if sums[_END] != others[_END]:
        return 1 if sums[_END] > others[_END] else -1
    low = _CHUNKS - max(sums[_DEPTH], others[_DEPTH])
    for i in range(sums[_END] - 1, low - 1, -1):
        if sums[i] != others[i]:
            return 1 if sums[i] > others[i] else -1
    return 0


@kernel
def nearest(sums: Any) -> float:
    """Round a sum above 0 whose carries are made to the nearest double, ties to even."""
    low = _CHUNKS - sums[_DEPTH]
    top = sums[_END] - 1
    width = highest_bit(sums[top]) + 1
    bits = 32 * top + width
    if bits <= 53:  # the sum is a multiple of the least double and needs no rounding
        whole_sum = sums[0] if top == 0 else (sums[1] << 32) | sums[0]
        return np.float64(whole_sum) * _TINY
    # The highest 55 bits: two will be rounded off, and the last is also set if any lower bit is set.
    first = sums[top - 1]
    second = sums[top - 2] if top > 1 else _whole(0)
    wanted = 55 - width
    if wanted >= 32:
        shift = wanted - 32
        head = (sums[top] << wanted) | (first << shift) | (second >> (32 - shift))
        rest = second & ((1 << (32 - shift)) - 1)
    else:
        head = (sums[top] << wanted) | (first >> (32 - wanted))
        rest = (first & ((1 << (32 - wanted)) - 1)) | second
    for i in range(low, top - 2):
        rest |= sums[i]
    if rest != 0:
        head |= 1
    mantissa = np.float64(head) * 2.0**-54  # this product is rounded, to a number from 1 to 2
    exponent = bits - 1075
    if (exponent > 1023) | ((exponent == 1023) & (mantissa == 2.0)):
        return np.inf
    return mantissa * _whole((exponent + 1023) << 52).view(np.float64)


@kernel
def rounded(sums: Any) -> float:
    """Return the double nearest to a sum, ties to even; infinity beyond the greatest double. Some 20 ns.

    The value of the sum does not change; only its carries are made.
    """
    if (sums[_INFINITE] != 0) | (sums[_NEGATIVE_INFINITE] != 0):
        if (sums[_INFINITE] != 0) & (sums[_NEGATIVE_INFINITE] != 0):
            return np.nan
        return np.inf if sums[_INFINITE] != 0 else -np.inf
    carry(sums)
    end = sums[_END]
    if end == 0:
        return 0.0
    is_negative = sums[end - 1] < 0
    if is_negative:
        negate(sums)
    result = nearest(sums)
    if is_negative:
        negate(sums)
        result = -result
    return result
