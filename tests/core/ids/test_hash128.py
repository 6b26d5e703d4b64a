"""A text's 128-bit hash is MurmurHash3's, and that of a pair says where the one ends and the other begins."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rocsteady.core.events.columns import IdColumn
from rocsteady.core.ids.hash128 import hash128

_MASK = 2**64 - 1


def rotated(value: int, by: int) -> int:
    return (value << by | value >> (64 - by)) & _MASK


def mixed(value: int) -> int:
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        value = (value ^ value >> 33) * factor & _MASK
    return value ^ value >> 33


def murmur(data: bytes, h1: int = 0, h2: int = 0) -> tuple[int, int]:
    """The algorithm by whole numbers, block by block, the last one filled up with zeros."""
    c1, c2 = 0x87C37B91114253D5, 0x4CF5AD432745937F
    whole = len(data) // 16
    padded = data.ljust((len(data) + 15) // 16 * 16, b"\0")
    for number, (k1, k2) in enumerate(struct.iter_unpack("<QQ", padded)):
        h1 ^= rotated(k1 * c1 & _MASK, 31) * c2 & _MASK
        if number == whole:
            h2 ^= rotated(k2 * c2 & _MASK, 33) * c1 & _MASK
            break
        h1 = ((rotated(h1, 27) + h2) * 5 + 0x52DCE729) & _MASK
        h2 ^= rotated(k2 * c2 & _MASK, 33) * c1 & _MASK
        h2 = ((rotated(h2, 31) + h1) * 5 + 0x38495AB5) & _MASK
    h1, h2 = h1 ^ len(data), h2 ^ len(data)
    h1 = h1 + h2 & _MASK
    h2 = h1 + h2 & _MASK
    h1, h2 = mixed(h1), mixed(h2)
    h1 = h1 + h2 & _MASK
    return h1, h1 + h2 & _MASK


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "00000000000000000000000000000000"),
        ("hello", "cbd8a7b341bd9b025b1e906a48ae1d19"),
        ("hello, world", "342fac623a5ebc8e4cdcbc079642414d"),
        ("The quick brown fox jumps over the lazy dog", "e34bbc7bbc071b6c7a433ca9c49a9347"),
    ],
)
def test_published_hashes_come_out(text: str, expected: str) -> None:
    assert murmur(text.encode()) == (int(expected[:16], 16), int(expected[16:], 16))
    assert hash128(IdColumn.of([text])).tolist() == [list(murmur(text.encode()))]


@given(st.lists(st.text(st.characters(exclude_categories=()), max_size=40), max_size=8))
def test_texts_of_any_length_hash_as_one_by_one(texts: list[str]) -> None:
    column = IdColumn.of([*texts, "x" * 33])
    expected = [murmur(data) for data in column.encoded() if data is not None]
    assert [tuple(pair) for pair in hash128(column).tolist()] == expected


def test_every_length_up_to_three_blocks_and_ten_thousand_bytes() -> None:
    data = bytes(np.random.default_rng(3).integers(0, 128, 10_000, dtype=np.uint8)).decode()
    texts = [*(data[:size] for size in range(50)), data, data[::-1]]
    expected = [list(murmur(text.encode())) for text in texts]
    assert hash128(IdColumn.of([*texts])).tolist() == expected


def test_behind_another_text_the_hash_goes_on_from_its_own() -> None:
    starts = hash128(IdColumn.of(["a", "ab", ""]))
    texts = IdColumn.of(["bc", "c", "abc", None, ""])
    found = hash128(texts, np.array([0, 1, 2, 1, 1], np.int32), starts)
    own = [murmur(text) for text in (b"a", b"ab", b"")]
    expected = [
        murmur(text, *own[code]) for text, code in ((b"bc", 0), (b"c", 1), (b"abc", 2), (b"", 1), (b"", 1))
    ]
    assert [tuple(pair) for pair in found.tolist()] == expected
    assert len({tuple(pair) for pair in found[:4].tolist()}) == 4


def test_no_texts_have_no_hashes() -> None:
    assert hash128(IdColumn.of([])).shape == (0, 2)


def test_bits_are_even() -> None:
    texts = IdColumn.of([str(number) for number in range(20_000)])
    bits = np.unpackbits(hash128(texts).view(np.uint8), axis=1)
    assert bits.shape == (20_000, 128)
    assert abs(bits.mean(axis=0) - 0.5).max() < 0.02  # 5.6 standard deviations
