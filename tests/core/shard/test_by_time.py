"""Events stand by time, model, id and a hash of the record, wherever they came from, as an oracle sorts."""

from __future__ import annotations

import hashlib
import struct
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rocsteady.core.errors import InputError
from rocsteady.core.events.batch import EventBatch
from rocsteady.core.events.columns import IdColumn, TextColumn
from rocsteady.core.shard import buffer as time_order
from rocsteady.core.shard.buffer import in_time_order

Event = tuple[int, str, str | None, float, int, str | None]
"""time, model, id, score, label, value of a slice"""

LONG = "x" * 63
IDS = [
    None,
    "",
    "\0",
    "a",
    "a\0",
    "a\0b",
    "ab",
    "A",
    "é",
    LONG,
    LONG + "\0",
    LONG + "x",
    LONG + "xa",
    LONG + "xb",
]
events_of = st.tuples(
    st.sampled_from([-(2**62), -1, 0, 1, 255, 256, 2**62]),
    st.sampled_from(["m", "M", "mm", "é", "\U0001f6eb", "z"]),
    st.sampled_from(IDS),
    st.sampled_from([0.25, -0.0, 0.0, 1e300]),
    st.sampled_from([0, 1]),
    st.sampled_from([None, "", "v"]),
)


def batch_of(events: list[Event], *, named: bool = True) -> EventBatch:
    times, models, ids, scores, labels, values = zip(*events, strict=True)
    return EventBatch(
        TextColumn.of(list(models)),
        np.array(scores, np.float64),
        np.array(labels, np.int8),
        times=np.array(times, np.int64),
        ids=IdColumn.of(list(ids)) if named else None,
        slices=(("s", TextColumn.of(list(values))),),
    )


def events_in(batch: EventBatch) -> list[Event]:
    ids = [None] * len(batch) if batch.ids is None else batch.ids.to_list()
    columns = batch.times.tolist(), batch.models.to_list(), ids, batch.scores.tolist(), batch.labels.tolist()
    return list(zip(*columns, batch.slices[0][1].to_list(), strict=True))


def canonical(event: Event) -> bytes:
    """Fields with their lengths before them, as the module says; the id is not among them."""
    _, model, _, score, label, value = event
    texts = [
        struct.pack("<i", -1) if x is None else struct.pack("<i", len(x.encode())) + x.encode()
        for x in (model, value)
    ]
    return texts[0] + struct.pack("<dbd", score, label, 1.0) + texts[1]


def in_order(events: list[Event]) -> list[Event]:
    seen: Counter[tuple[int, str, str, bytes]] = Counter()
    keyed = []
    for event in events:
        time, model, name = event[0], event[1], event[2] or ""
        record = (time, model, name, canonical(event))
        number = seen[record].to_bytes(8, "little")
        digest = hashlib.blake2b(number + record[-1], digest_size=16).digest()
        keyed.append((time, model.encode(), name.encode(), digest, event))
        seen[record] += 1
    return [event for *_, event in sorted(keyed, key=lambda each: each[:4])]


def told_apart(event: Event) -> tuple[int, str, str]:
    return event[0], event[1], event[2] or ""


@given(st.lists(events_of, min_size=1, max_size=40), st.data())
def test_events_stand_in_the_order_of_the_oracle_however_they_were_cut(events, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(events)), max_size=3)))
    parts = [events[a:b] for a, b in zip([0, *cuts], [*cuts, len(events)], strict=True) if a < b]
    whole, tied = in_time_order([batch_of(part) for part in parts])
    shared = Counter(map(told_apart, events))
    assert [told_apart(event) for event in events_in(whole)] == [
        told_apart(event) for event in in_order(events)
    ]
    assert list(map(repr, map(_comparable, events_in(whole)))) == list(
        map(repr, map(_comparable, in_order(events)))
    )
    assert tied == sum(count for count in shared.values() if count > 1)
    again, tied_again = in_time_order([batch_of(data.draw(st.permutations(events)))])
    assert list(map(_comparable, events_in(again))) == list(map(_comparable, events_in(whole)))
    assert tied_again == tied


def _comparable(event: Event) -> tuple[object, ...]:
    """A missing id and the empty one are alike to the order, and so which of two comes first is arbitrary."""
    return event[0], event[1], event[2] or "", repr(event[3]), event[4], event[5]


@given(st.lists(events_of, min_size=1, max_size=30))
def test_without_ids_only_the_model_and_the_hash_tell_events_of_one_time_apart(events):
    bare = [(*event[:2], None, *event[3:]) for event in events]
    whole, tied = in_time_order([batch_of(bare, named=False)])
    assert list(map(_comparable, events_in(whole))) == list(map(_comparable, in_order(bare)))
    assert tied == sum(count for count in Counter(event[:2] for event in bare).values() if count > 1)


def test_models_that_stand_twice_in_a_dictionary_are_one():
    ids = IdColumn.of(["b", "a"])
    models = TextColumn(np.array([0, 1], np.int32), ("m", "m"))
    whole, tied = in_time_order(
        [EventBatch(models, np.array([0.1, 0.2]), np.zeros(2, np.int8), times=np.zeros(2, np.int64), ids=ids)]
    )
    assert whole.ids.to_list() == ["a", "b"]
    assert tied == 0


def test_long_columns_are_cut_into_blocks(monkeypatch):
    events = [(i // 7, "m", f"{i * 7919 % 10_007:x}", 0.5, 0, None) for i in range(3_000)]
    whole, _ = in_time_order([batch_of(events)])
    monkeypatch.setattr(time_order, "_BLOCK", 64)
    assert events_in(in_time_order([batch_of(events)])[0]) == events_in(whole)


def test_events_that_ids_tell_apart_need_no_hash(monkeypatch):
    monkeypatch.setattr(hashlib, "blake2b", None)  # would fail if it were called
    rng = np.random.default_rng(1)
    events = [(int(rng.integers(20)), "mn"[i % 2], f"{i // 2:05}", 0.5, 0, None) for i in range(2_000)]
    whole, tied = in_time_order([batch_of(events)])
    assert events_in(whole) == sorted(events, key=lambda event: event[:3])
    assert tied == 0


def test_events_without_times_are_refused():
    with pytest.raises(InputError, match="--time"):
        in_time_order([EventBatch(TextColumn.of(["m"]), np.zeros(1), np.zeros(1, np.int8))])
