"""128-bit hashes of many texts at once: MurmurHash3 x64 128 (Austin Appleby's, in the public domain).

The hash is for texts that nobody chose to collide: two of n different texts have equal hashes with a
probability below n^2 / 2^129. The hash is no protection against an attacker who chooses the texts.

A text may be hashed behind another text: `starts` are then the hashes of the texts before it. ("ab", "c") and
("a", "bc") have different hashes, since every hash takes in the length of its own text.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import numpy as np

from ..arrays import Int32Array, UInt64Array
from ..events.columns import IdColumn
from ..kernels.compile import entry, inlined
from .index import rotated

_C1, _C2 = np.uint64(0x87C37B91114253D5), np.uint64(0x4CF5AD432745937F)
_ADD1, _ADD2, _FIVE = np.uint64(0x52DCE729), np.uint64(0x38495AB5), np.uint64(5)
_MIX1, _MIX2 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_ONE, _EIGHT, _33, _63 = np.uint64(1), np.uint64(8), np.uint64(33), np.uint64(63)
_SPARE_WORDS = 2
"""Words of padding behind the texts: a load that begins in or behind the last word reads one word more."""


@inlined
def _mixed(value: np.uint64) -> np.uint64:
    value = (value ^ (value >> _33)) * _MIX1
    value = (value ^ (value >> _33)) * _MIX2
    return value ^ (value >> _33)


@inlined
def _loaded(words: UInt64Array, at: int) -> np.uint64:
    """Return the 8 bytes from byte `at` on."""
    by = np.uint64(at & 7) * _EIGHT
    return (words[at >> 3] >> by) | ((words[(at >> 3) + 1] << _ONE) << (_63 - by))


@inlined
def _first_bytes(word: np.uint64, count: int) -> np.uint64:
    """Return a word with all but its first bytes, fewer than 8, cleared."""
    return word & ((_ONE << (np.uint64(count) * _EIGHT)) - _ONE)


@inlined
def _turned1(word: np.uint64) -> np.uint64:
    return rotated(word * _C1, 31) * _C2


@inlined
def _turned2(word: np.uint64) -> np.uint64:
    return rotated(word * _C2, 33) * _C1


@entry
def _hash_texts(
    words: UInt64Array,
    lengths: Int32Array,
    codes: Int32Array,
    starts: UInt64Array,
    hashes: UInt64Array,
) -> None:
    """Hash texts that stand one after another in `words`.

    Text i is hashed behind the hash `starts[codes[i]]`.
    """
    at = 0
    for text in range(len(lengths)):
        h1, h2 = starts[codes[text], 0], starts[codes[text], 1]
        length = max(lengths[text], 0)
        end = at + length
        while at + 16 <= end:
            h1 = (rotated(h1 ^ _turned1(_loaded(words, at)), 27) + h2) * _FIVE + _ADD1
            h2 = (rotated(h2 ^ _turned2(_loaded(words, at + 8)), 31) + h1) * _FIVE + _ADD2
            at += 16
        left = end - at
        if left > 0:
            if left >= 8:
                h1 ^= _turned1(_loaded(words, at))
                h2 ^= _turned2(_first_bytes(_loaded(words, at + 8), left - 8))
            else:
                h1 ^= _turned1(_first_bytes(_loaded(words, at), left))
            at = end
        h1 ^= np.uint64(length)
        h2 ^= np.uint64(length)
        h1 += h2
        h2 += h1
        h1, h2 = _mixed(h1), _mixed(h2)
        h1 += h2
        hashes[text, 0], hashes[text, 1] = h1, h2 + h1


_NOTHING = np.zeros((1, 2), np.uint64)


def hash128(texts: IdColumn, codes: Int32Array | None = None, starts: UInt64Array = _NOTHING) -> UInt64Array:
    """Return the hashes of n texts, of shape (n, 2): the first and the second 64 bits of each.

    codes, starts  text i is hashed behind another text, whose hash is `starts[codes[i]]`; without codes
                   every text is hashed alone

    A missing text has the hash of the empty text. O(bytes): 8 ns for a text of 16 bytes.

    >>> first, second = hash128(IdColumn.of(["hello"]))[0].tolist()
    >>> f"{first:016x} {second:016x}"
    'cbd8a7b341bd9b02 5b1e906a48ae1d19'
    """
    size = len(texts.data)
    words = np.zeros(size // 8 + _SPARE_WORDS, np.uint64)
    words.view(np.uint8)[:size] = np.frombuffer(texts.data, np.uint8)
    hashes = np.empty((len(texts), 2), np.uint64)
    if codes is None:
        codes = np.zeros(len(texts), np.int32)
    with np.errstate(over="ignore"):  # without compilation numpy would warn of overflow, which is intended
        _hash_texts(words, texts.lengths, codes, starts, hashes)
    return hashes
