"""A row stays at its slot until it is freed, and a slot that was freed is used again."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.slots import Slots

ROW = np.dtype([("score", "f8"), ("model", "i4")])
STEPS = st.lists(st.tuples(st.sampled_from(("put", "free", "keep")), st.integers(0, 400)), max_size=30)


@given(STEPS, st.randoms())
@settings(max_examples=80, deadline=None)
def test_rows_are_those_of_a_dictionary(history: list[tuple[str, int]], random: object) -> None:
    slots, oracle, most, seen = Slots(ROW), dict[int, tuple[float, int]](), 0, 0
    for step, count in history:
        some = random.sample(sorted(oracle), min(count, len(oracle)))  # type: ignore[attr-defined]
        chosen = np.array(some, np.int64)
        if step == "put":
            rows = np.array([(seen + i, -i) for i in range(count)], ROW)
            seen += count
            given_ = slots.put(rows).tolist()
            assert not oracle.keys() & set(given_)
            oracle.update(zip(given_, rows.tolist(), strict=True))
        elif step == "free":
            slots.free(chosen)
            for slot in some:
                del oracle[slot]
        else:
            slots.keep(chosen)
            oracle = {place: oracle[slot] for place, slot in enumerate(some)}
            most = 0
        most = max(most, len(oracle))
        assert len(slots) == len(oracle)
        assert max(oracle, default=-1) < most, "no slot is new while one is free"
        held = np.array(sorted(oracle), np.int64)
        assert slots.rows[held].tolist() == [oracle[slot] for slot in sorted(oracle)]
        assert slots.nbytes <= (ROW.itemsize + 8) * max(256, 2 * most + 400)


def test_kept_rows_take_their_own_memory() -> None:
    slots = Slots(ROW)
    given_ = slots.put(np.zeros(100_000, ROW))
    slots.free(given_[10:])
    slots.keep(given_[:10])
    assert slots.nbytes == 10 * (ROW.itemsize + 8)
