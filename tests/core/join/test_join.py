"""Predictions get their labels by event time alone, whatever the packets, their order and restarts."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import rocsteady as rs
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.errors import InputError, OtherConfigurationError
from rocsteady.core.events.batch import EventBatch, LabelBatch, PredictionBatch
from rocsteady.core.events.columns import IdColumn, TextColumn
from rocsteady.core.events.records import Clock, EndOfInput, EndOfPartition, Heartbeat, unpack_record
from rocsteady.core.events.rejected import Reason, Rejected
from rocsteady.core.events.wire import PacketHead
from rocsteady.core.join.join import LabelJoin
from rocsteady.core.join.join_settings import JoinSettings
from rocsteady.core.settings.against import Against
from rocsteady.core.settings.table import Shards, TableSettings
from rocsteady.core.table.table import EvaluatorTable

from tests.support.thorough import examples

Prediction = tuple[str, str, int, float]
"""Id, model, time, score."""
Label = tuple[str, int, int]
"""Id, time, label."""

IDS = ["a", "A", "", "é", "a" * 10_000]


def prediction_batch(predictions: list[Prediction], **packet: Any) -> PredictionBatch:
    return PredictionBatch.of(
        models=TextColumn.of([model for _, model, _, _ in predictions]),
        scores=np.array([score for *_, score in predictions], float),
        times=np.array([time for _, _, time, _ in predictions], np.int64),
        ids=IdColumn.of([id_ for id_, *_ in predictions]),
        positions=np.arange(len(predictions)),
        **packet,
    )


def label_batch(labels: list[Label], **packet: Any) -> LabelBatch:
    return LabelBatch(
        IdColumn.of([id_ for id_, *_ in labels]),
        np.array([time for _, time, _ in labels], np.int64),
        np.array([label for *_, label in labels], np.int8),
        positions=np.arange(len(labels)),
        **packet,
    )


def expected(
    predictions: list[Prediction], labels: list[Label], ttl: int, lead: int, second: str
) -> tuple[Counter[Any], Counter[Any], Counter[str]]:
    """Say which events are joined, which predictions are not, and what labels become: by all pairs."""
    joined: Counter[Any] = Counter()
    alone: Counter[Any] = Counter()
    chosen: set[Label] = set()
    candidates: set[Label] = set()
    for id_, model, time, score in predictions:
        mine = sorted((t, y) for i, t, y in set(labels) if i == id_ and -lead <= t - time <= ttl)
        candidates |= {(id_, t, y) for t, y in mine}
        if not mine:
            alone[id_, model, time] += 1
            continue
        t, y = mine[-1 if second == "last" else 0]
        chosen.add((id_, t, y))
        joined[id_, model, score, t, y] += 1
    fates = Counter(
        "used" if label in chosen else "second" if label in candidates else "unmatched"
        for label in set(labels)
    )
    fates["repeat"] = len(labels) - len(set(labels))
    return joined, alone, fates


def packets_of(
    predictions: list[Prediction], labels: list[Label], rng: random.Random, ends: bool
) -> list[bytes]:
    """Cut both sides into partitions of packets, with heartbeats or without, and mix these."""
    streams: list[list[bytes]] = []
    partitions = rng.randint(1, 2) + 1
    greatest = max([t for _, _, t, _ in predictions] + [t for _, t, _ in labels], default=0)
    for number in range(partitions):
        is_label = number == partitions - 1
        rows: list[Any] = (
            labels if is_label else [p for i, p in enumerate(predictions) if i % (partitions - 1) == number]
        )
        rows = sorted(rows, key=lambda row: row[1] if is_label else row[2])
        stream, sent = [], 0
        while rows:
            cut = rng.randint(1, len(rows))
            part, rows = rows[:cut], rows[cut:]
            make: Any = label_batch if is_label else prediction_batch
            stream.append(make(part, source=f"s{number}", head=PacketHead(number, sent)).pack())
            sent += 1
            if rows:
                settled = rows[0][1] if is_label else rows[0][2]
                stream.append(Heartbeat(f"s{number}", number, partitions, sent, settled).pack())
        stream.append(EndOfPartition(f"s{number}", number, partitions, sent, greatest).pack())
        streams.append(stream)
    mixed = []
    while streams:
        stream = rng.choice(streams)
        mixed.append(stream.pop(0))
        streams = [each for each in streams if each]
    if ends:
        rng.shuffle(mixed)  # no runner promises an order
    return mixed


def run(
    join: LabelJoin, records: list[bytes], rng: random.Random
) -> tuple[list[EventBatch], list[Rejected], list[bytes]]:
    events, refused, words = [], [], []
    for record in records:
        if rng.random() < 0.3:
            counts = Counter(join.counts())
            join = LabelJoin.from_bytes(join.to_bytes(), join.settings, join.number)
            join._counts.update(counts)  # a machine counts since it was loaded
        for output in join.apply(record):
            if isinstance(output, Rejected):
                refused.append(output)
                continue
            content = unpack_record(output[1])
            words.append(output[1])
            if isinstance(content, EventBatch):
                events.append(content)
    run.counts = join.counts()  # type: ignore[attr-defined]
    return events, refused, words


times = st.integers(0, 12)
few_predictions = st.lists(
    st.tuples(st.sampled_from(IDS), st.sampled_from("mn"), times, st.floats(0, 1)), max_size=12
)
few_labels = st.lists(st.tuples(st.sampled_from(IDS), times, st.integers(0, 1)), max_size=12)


@settings(max_examples=examples(150))
@given(
    few_predictions, few_labels, st.integers(1, 5), st.integers(0, 5),
    st.sampled_from(["first", "last", "dead-letter"]), st.randoms(use_true_random=False), st.booleans(),
)  # fmt: skip
def test_what_is_joined_is_what_all_pairs_say(
    predictions: list[Prediction],
    labels: list[Label],
    ttl: int,
    lead: int,
    second: str,
    rng: random.Random,
    shuffled: bool,
) -> None:
    lead = min(lead, ttl)
    joined, alone, fates = expected(predictions, labels, ttl, lead, second)
    join = LabelJoin(JoinSettings(ttl, lead, second, 1, 3), 0)
    records = packets_of(predictions, labels, rng, shuffled)
    events, refused, _ = run(join, [*records, EndOfInput().pack()], rng)
    got: Counter[Any] = Counter()
    for batch in events:
        assert batch.times is not None
        assert batch.ids is not None
        got.update(
            zip(batch.ids.to_list(), batch.models.to_list(), batch.scores.tolist(), batch.times.tolist(),
                batch.labels.tolist(), strict=True)
        )  # fmt: skip
    assert got == joined
    left: Counter[Any] = Counter()
    for each in refused:
        if each.unlabelled:
            records_ = each.records
            assert isinstance(records_, EventBatch)
            assert records_.ids is not None
            assert records_.times is not None
            left.update(
                zip(records_.ids.to_list(), records_.models.to_list(), records_.times.tolist(), strict=True)
            )
    assert left == alone
    counts = run.counts  # type: ignore[attr-defined]
    assert counts["joined"] + counts["unmatched"] == len(predictions)
    assert counts["labels_used"] == fates["used"]
    assert counts["labels_unmatched"] == fates["unmatched"]
    if second == "dead-letter":
        assert (counts["labels_second"], counts["labels_duplicate"]) == (fates["second"], fates["repeat"])
    else:
        assert counts["labels_duplicate"] == fates["second"] + fates["repeat"]


@settings(max_examples=examples(40))
@given(few_predictions, few_labels, st.integers(1, 5), st.randoms(use_true_random=False))
def test_evaluators_behind_a_join_give_the_rows_of_the_joined_stream(
    predictions: list[Prediction], labels: list[Label], ttl: int, rng: random.Random
) -> None:
    joined, _, _ = expected(predictions, labels, ttl, ttl, "first")
    evaluator = rs.EvaluatorSettings(window=rs.LastEvents(5), every=rs.EveryEvents(2), order="time")
    table_settings = TableSettings(evaluator)
    whole = sorted(joined.elements())
    direct = EvaluatorTable(table_settings)
    if whole:
        batch = EventBatch(
            models=TextColumn.of([model for _, model, *_ in whole]),
            scores=np.array([score for _, _, score, _, _ in whole]),
            labels=np.array([label for *_, label in whole], np.int8),
            times=np.array([time for *_, time, _ in whole]),
            ids=IdColumn.of([id_ for id_, *_ in whole]),
            head=PacketHead(sequence=0),
        )
        direct.apply(batch.pack())
    expected_rows = direct.apply(EndOfPartition("", 0, 1, int(bool(whole))).pack())
    join = LabelJoin(JoinSettings(ttl, None, "first", 1, 1), 0)
    _, _, words = run(join, packets_of(predictions, labels, rng, False), rng)
    table = EvaluatorTable(table_settings)
    rng.shuffle(words)
    rows = [row for record in words for part in table.apply(record) for row in part]  # type: ignore[union-attr]
    direct_rows = [row for part in expected_rows for row in part]  # type: ignore[union-attr]
    assert sorted(rows, key=identity) == sorted(direct_rows, key=identity)


def identity(row: Any) -> tuple[str, int]:
    return row.model, row.row


def test_reading_one_side_first_loses_nothing() -> None:
    predictions = [(str(i), "m", i, 0.5) for i in range(100)]
    labels = [(str(i), i + 3, 1) for i in range(100)]
    one = prediction_batch(predictions, source="p", head=PacketHead(0, 0))
    other = label_batch(labels, source="l", head=PacketHead(1, 0))
    ends = [EndOfPartition("p", 0, 2, 1, 99).pack(), EndOfPartition("l", 1, 2, 1, 102).pack()]
    for records in (
        [one.pack(), ends[0], other.pack(), ends[1]],
        [other.pack(), ends[1], one.pack(), ends[0]],
    ):
        join = LabelJoin(JoinSettings(ttl=5, evaluator_shards=1), 0)
        run(join, records, random.Random(0))
        assert run.counts["joined"] == 100  # type: ignore[attr-defined]


def test_a_waiting_prediction_takes_64_bytes_and_its_id() -> None:
    n, id_bytes = 20_000, 12
    predictions = [(f"{i:012d}", f"model {i % 3}", i, 0.5) for i in range(n)]
    join = LabelJoin(JoinSettings(ttl=10**9), 0)
    join.apply(prediction_batch(predictions, source="p", head=PacketHead(0, 0)).pack())
    join.apply(Clock(n).pack())
    size = len(join.to_bytes())
    assert size <= n * (64 + id_bytes)
    assert 0.9 * size < join.snapshot_bytes() < 1.1 * size


def test_state_is_bounded_by_the_time_to_live() -> None:
    join = LabelJoin(JoinSettings(ttl=100, lead=0, evaluator_shards=1), 0)
    largest = 0
    for sequence in range(200):
        first = sequence * 1_000
        predictions = [(str(i), "m", i, 0.5) for i in range(first, first + 1_000)]
        join.apply(prediction_batch(predictions, source="p", head=PacketHead(0, sequence)).pack())
        join.apply(Heartbeat("p", 0, 1, sequence + 1, first + 1_000).pack())
        largest = max(largest, join.live_bytes())
    assert join.counts()["unmatched"] > 199_000 - 200
    assert largest < 2_000_000


def test_what_is_behind_a_clock_that_the_runner_gives_is_late_and_counted() -> None:
    join = LabelJoin(JoinSettings(ttl=10, evaluator_shards=1), 0)
    join.apply(prediction_batch([("a", "m", 5, 0.1), ("b", "m", 20, 0.1)]).pack())
    join.apply(Clock(15).pack())
    (late,) = join.apply(prediction_batch([("c", "m", 14, 0.1), ("d", "m", 15, 0.1)]).pack())
    assert isinstance(late, Rejected)
    assert (late.kind, len(late)) == ("late", 1)
    assert late.details.to_list() == ["1us behind the clock of the join"]
    (late,) = join.apply(label_batch([("c", 1, 0)]).pack())
    assert isinstance(late, Rejected)
    assert join.counts()["labels_late"] == 1


def test_a_state_of_other_settings_is_refused_with_every_difference() -> None:
    join = LabelJoin(JoinSettings(ttl=10), 3)
    with pytest.raises(OtherConfigurationError, match=r"ttl was '10us' and is now '1ms'.*shards was 16"):
        LabelJoin.from_bytes(join.to_bytes(), JoinSettings(ttl=1_000, shards=4), 3)


def test_events_that_have_labels_are_refused() -> None:
    events = EventBatch(TextColumn.of(["m"]), np.zeros(1), np.zeros(1, np.int8))
    with pytest.raises(InputError, match="holds events that have labels"):
        LabelJoin(JoinSettings(ttl=10), 0).apply(events.pack())


def test_damaged_bytes_are_told() -> None:
    join = LabelJoin(JoinSettings(ttl=10), 0)
    join.apply(prediction_batch([("a", "m", 5, 0.1)]).pack())
    join.apply(Clock(7).pack())
    data = join.to_bytes()
    for changed in (b"", data[:3], data[:20], data[:-1], data + b"0", data[:60] + b"\xff" + data[61:]):
        with pytest.raises(rs.WireError):
            LabelJoin.from_bytes(changed, join.settings, 0)


def test_ages_are_those_of_event_time() -> None:
    join = LabelJoin(JoinSettings(ttl=3_600_000_000, evaluator_shards=1), 0)
    hour = 3_600_000_000
    batch = prediction_batch(
        [("a", "m", 0, 0.1), ("b", "m", 2 * hour, 0.1)], source="p", head=PacketHead(sequence=0)
    )
    join.apply(replace(batch).pack())
    long, short = [
        each for each in join.apply(EndOfPartition("p", 0, 1, 1, 2 * hour + 60_000_000).pack())
        if isinstance(each, Rejected)
    ]  # fmt: skip
    assert (long.reason, long.details.to_list()) == (
        "no label within ttl",
        ["no label of this id lies within 1h of it"],
    )
    assert (short.reason, short.details.to_list()) == (
        "no label within ttl before the input ended",
        ["no label of this id lies within 1h of it; the input ended 1m after it"],
    )
    assert [(part.gaps.tolist(), part.limit) for part in (long, short)] == [
        ([hour], hour),
        ([60_000_000], hour),
    ]


@pytest.mark.parametrize("kept", [True, False])
def test_a_label_does_not_deny_the_prediction_that_the_join_forgot(kept: bool) -> None:
    day = 86_400_000_000
    join = LabelJoin(JoinSettings(ttl=7 * day, lead=0, evaluator_shards=1), 0)
    predictions = [("a", "m", 0, 0.1)] if kept else [("b", "m", 0, 0.1)]
    records = [
        prediction_batch(predictions).pack(),
        label_batch([("a", 29 * day, 1)]).pack(),
        EndOfInput().pack(),
    ]
    _, refused, _ = run(join, records, random.Random(1))
    (label,) = [each for each in refused if not each.unlabelled]
    assert label.reason == "no prediction within ttl"
    assert label.details.to_list() == ["no prediction of this id lies within 7d before it"]


@pytest.mark.parametrize(("lead", "waited"), [(0, [0, 0]), (2, [2, 1]), (None, [7, 1])])
def test_the_wait_of_a_label_is_held_against_the_lead(lead: int | None, waited: list[int]) -> None:
    """A label that waited less than its limit is one whose input ended first, and no other."""
    join = LabelJoin(JoinSettings(ttl=7, lead=lead, evaluator_shards=1), 0)
    records = [label_batch([("a", 0, 1), ("b", 8, 1)]), label_batch([("c", 9, 1)])]
    _, refused, _ = run(join, [*(record.pack() for record in records), EndOfInput().pack()], random.Random(1))
    assert {each.limit for each in refused} == {7 if lead is None else lead}
    for each in refused:
        assert each.gaps is not None
        cut_short = {gap < each.limit for gap in each.gaps.tolist()}
        assert cut_short == {each.reason == Reason.NO_PREDICTION_AT_END}
    gaps = sorted(gap for each in refused for gap in each.gaps.tolist())
    assert gaps == sorted([*waited, 0])


@pytest.mark.parametrize(
    ("lead", "of_prediction", "of_label"),
    [
        (None, "no label of this id lies within 1h of it", "no prediction of this id lies within 1h of it"),
        (
            0,
            "no label of this id lies within 1h after it",
            "no prediction of this id lies within 1h before it",
        ),
        (
            60_000_000,
            "no label of this id lies within 1h after it or 1m before it",
            "no prediction of this id lies within 1h before it or 1m after it",
        ),
    ],
)
def test_a_record_without_a_partner_says_where_none_lies(
    lead: int | None, of_prediction: str, of_label: str
) -> None:
    hour = 3_600_000_000
    join = LabelJoin(JoinSettings(ttl=hour, lead=lead, evaluator_shards=1), 0)
    records = [
        prediction_batch([("a", "m", 5 * hour, 0.1)]),
        label_batch([("a", 3 * hour, 1), ("c", 9 * hour, 1)]),
    ]
    _, refused, _ = run(join, [*(record.pack() for record in records), EndOfInput().pack()], random.Random(1))
    said = {detail for each in refused for detail in each.details.to_list()}
    end = "" if lead == 0 else f"{of_label}; the input ended 0s after it"
    assert said == {of_prediction, of_label, end} - {""}


def test_rows_of_labels_are_taken_with_all_that_their_packet_says() -> None:
    labels = label_batch([("a", 1, 0), ("b", 2, 1)], source="s", head=PacketHead(3, 5, 2))
    taken = labels.take(np.array([1]))
    read = LabelBatch.unpack(taken.pack())
    assert (taken.source, taken.head) == (read.source, read.head) == (labels.source, labels.head)
    assert (taken.ids.to_list(), taken.times.tolist(), taken.labels.tolist()) == (["b"], [2], [1])


def test_a_prediction_that_comes_again_is_told_by_its_own_time_before_it_waits() -> None:
    predictions = [("a", "m", 0, 0.1), ("a", "m", 4, 0.2), ("a", "n", 4, 0.3), ("a", "m", 9, 0.4)]
    join = LabelJoin(JoinSettings(ttl=20, evaluator_shards=1, deduplicate=5), 0)
    records = [prediction_batch(predictions[::-1]).pack(), label_batch([("a", 12, 1)]).pack()]
    events, refused, _ = run(join, [*records, Clock(5).pack(), EndOfInput().pack()], random.Random(3))
    scores = sorted(score for batch in events for score in batch.scores.tolist())
    assert scores == [0.1, 0.3, 0.4], "of m, the one at 4 is within 5 of that at 0, and that at 9 is not"
    (again,) = [each for each in refused if each.kind == "duplicate"]
    assert isinstance(again.records, EventBatch)
    assert again.records.scores.tolist() == [0.2]
    assert run.counts["duplicate"] == 1  # type: ignore[attr-defined]


def test_a_join_before_evaluators_with_shards_of_their_own_is_read_again():
    """`Shards` says more than the number that a snapshot holds: such jobs failed when they were restored."""
    for shards in (Shards(4, own=["big"]), Shards(4).with_comparisons(Against("a", (), False, 0), 2)):
        settings = JoinSettings(ttl=10, shards=1, evaluator_shards=shards)
        data = LabelJoin(settings, 0).to_bytes()
        assert LabelJoin.from_bytes(data, settings, 0).to_bytes() == data
