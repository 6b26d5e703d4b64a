"""Equal ids have equal numbers, whatever they hash to; the hash is the one that was published."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.errors import CorruptBytesError, InputError
from rocsteady.core.events.columns import IdColumn
from rocsteady.core.ids import index as id_index
from rocsteady.core.ids.index import IdIndex, hash64_of_ids

from tests.support.thorough import examples

TEXTS = st.lists(st.text(st.sampled_from("aAé\0"), max_size=20), max_size=40)

PINNED = [
    "d1fba762150c532c", "407448d2b89b1813", "ebd11618f299a286", "6b6e38e9f7ed99b1", "d54cf3f0e0ee2aad",
    "bf1900b61a2cf12c", "8170e39480ee465b", "d1fba762150c532c",
]  # fmt: skip

PYTHON = """
import ast, sys
assert sys.hash_info.algorithm == "siphash13" and sys.byteorder == "little"
print([hash(data) % 2**64 for data in ast.literal_eval(sys.stdin.read())])
"""


def test_the_hash_is_that_of_python_under_the_key_of_zeros() -> None:
    if sys.hash_info.algorithm != "siphash13":
        pytest.skip("this Python hashes bytes otherwise")
    rng = np.random.default_rng(1)
    ids = ["x" * 10_000, "é" * 77, *("".join(map(chr, rng.integers(1, 300, k % 50 + 1))) for k in range(400))]
    run = subprocess.run(
        [sys.executable, "-c", PYTHON],
        input=repr(IdColumn.of(list(ids)).encoded()),
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert str(hash64_of_ids(IdColumn.of(list(ids))).tolist()) == run.stdout.strip()


def test_the_hash_never_changes() -> None:
    ids = ["", "a", "A", "flight 7", "eight by", "nine byte", "x" * 10_000, None]
    assert [f"{value:016x}" for value in hash64_of_ids(IdColumn.of(ids)).tolist()] == PINNED


@given(TEXTS, TEXTS, st.randoms())
@settings(max_examples=examples(150))
def test_numbers_are_those_of_a_dictionary(first: list[str], second: list[str], random: object) -> None:
    index, oracle = IdIndex(), dict[str, int]()
    for texts in (first, second, first):
        numbers = index.numbers(IdColumn.of(list(texts)))
        assert numbers.tolist() == [oracle.setdefault(text, len(oracle)) for text in texts]
    assert index.ids().to_list() == list(oracle)
    some = random.sample(range(len(oracle)), len(oracle) // 2)  # type: ignore[attr-defined]
    kept = index.kept(np.array(some, np.int64))
    texts = [list(oracle)[number] for number in some]
    assert kept.ids().to_list() == texts == index.ids(np.array(some, np.int64)).to_list()
    renumbered = {text: number for number, text in enumerate(texts)}
    for text in [*second, *first]:
        assert kept.numbers(IdColumn.of([text])).tolist() == [renumbered.setdefault(text, len(renumbered))]


def test_ids_whose_hashes_are_all_the_same_are_told_apart() -> None:
    index = IdIndex()
    ids = IdColumn.of([*"abcdefgh", "", "ab", *"hgfedcba"])
    index._make_room(len(ids), len(ids.data))
    numbers = np.empty(len(ids), np.int32)
    data, offsets = np.frombuffer(ids.data, np.uint8), ids.offsets
    for hash_ in (0, 2**64 - 1):  # the first place of the table, and the last, from which a probe goes round
        index = IdIndex()
        index._make_room(len(ids), len(ids.data))
        same = np.full(len(ids), hash_, np.uint64)
        assert id_index.find_or_add(index._index(), 0, data, offsets, same, numbers) == 10
        assert numbers.tolist() == [*range(10), *range(7, -1, -1)]


def test_a_million_ids_take_little_more_than_their_bytes() -> None:
    n = 1_000_000
    ids = IdColumn(np.full(n, 8, np.int32), np.arange(n, dtype="<u8").tobytes())
    index = IdIndex()
    assert (index.numbers(ids) == np.arange(n)).all()
    assert (index.numbers(ids) == np.arange(n)).all()
    assert index.nbytes < (8 + 24) * n
    assert index.kept(np.arange(0, n, 1000)).nbytes < (8 + 24) * 1001


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="an event without an id"):
        IdIndex().numbers(IdColumn.of(["a", None]))
    with pytest.raises(CorruptBytesError, match="of 2 ids that have to differ only 1 do"):
        IdIndex.of(IdColumn.of(["a", "a"]))
