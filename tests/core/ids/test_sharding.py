"""Sharding: a shard is fixed for ever; a split loses and doubles nothing, and keeps a model's order."""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.errors import ConfigError
from rocsteady.core.events.batch import EventBatch, LabelBatch, PredictionBatch
from rocsteady.core.events.columns import IdColumn, TextColumn
from rocsteady.core.events.wire import PacketHead
from rocsteady.core.ids.index import hash64_of_ids
from rocsteady.core.ids.sharding import shard_key, shard_of, split_by_shard, split_records
from rocsteady.transforms.beam import progress

from tests.support.thorough import examples


def batch_of(models, **more):
    n = len(models)
    rng = np.random.default_rng(n)
    return EventBatch(
        models=TextColumn.of(models),
        scores=rng.random(n),
        labels=rng.integers(0, 2, n).astype(np.int8),
        source="file",
        head=PacketHead(2, high_water=99),
        **more,
    )


def test_the_shard_of_a_model_never_changes():
    models = ("churn", "fraud", "", "modèle", "模型", "a" * 300)
    assert shard_of(models, 64).tolist() == [33, 57, 36, 0, 34, 11]
    assert shard_of(models, 1).tolist() == [0] * len(models)
    assert shard_of(models, 1_000).tolist() == [113, 649, 756, 872, 250, 163]
    assert [shard_key(shard) for shard in (0, 63, 1_234)] == ["shard-000", "shard-063", "shard-1234"]


def test_models_spread_evenly():
    counts = np.bincount(shard_of([f"model-{i}" for i in range(64_000)], 64), minlength=64)
    assert counts.min() > 800
    assert counts.max() < 1_200


@pytest.mark.parametrize("shards", [0, -1, 1.5, True, "8"])
def test_the_number_of_shards_is_checked(shards):
    with pytest.raises(ConfigError, match="shards="):
        shard_of(("a",), shards)


@settings(max_examples=examples(150))
@given(
    st.lists(
        st.tuples(st.text(max_size=2), st.none() | st.text(max_size=2), st.none() | st.text(max_size=3)),
        max_size=40,
    ),
    st.integers(1, 70_000),
)
def test_every_event_is_in_the_shard_of_its_model_in_order(rows, shards):
    models, carriers, ids = ([row[place] for row in rows] for place in range(3))
    numbers = np.arange(len(rows))
    batch = batch_of(
        models,
        times=numbers * 10,
        ids=IdColumn.of(ids),
        weights=numbers + 1.0,
        slices=(("carrier", TextColumn.of(carriers)),),
        label_classes=TextColumn.of(models),
        predicted=TextColumn.of(models),
    )
    parts = list(split_by_shard(batch, shards))
    assert [shard for shard, _ in parts] == sorted({shard for shard, _ in parts})
    seen = []
    for shard, part in parts:
        rows_of_part = (part.times // 10).tolist()
        assert len(part) > 0
        texts = part.models.to_list()
        for model in set(texts):
            own = [row for row, text in zip(rows_of_part, texts, strict=True) if text == model]
            assert own == sorted(own)
        assert sum(a != b for a, b in pairwise(texts)) == len(set(texts)) - 1, "a model is in one piece"
        assert set(shard_of(part.models.to_list(), shards).tolist()) == {shard}
        assert part.models.to_list() == [models[row] for row in rows_of_part]
        assert part.ids.to_list() == [ids[row] for row in rows_of_part]
        assert part.slices[0][1].to_list() == [carriers[row] for row in rows_of_part]
        assert part.predicted.to_list() == part.label_classes.to_list() == part.models.to_list()
        assert part.scores.tolist() == batch.scores[rows_of_part].tolist()
        assert part.labels.tolist() == batch.labels[rows_of_part].tolist()
        assert part.weights.tolist() == batch.weights[rows_of_part].tolist()
        assert (part.source, part.head) == ("file", batch.head)
        assert EventBatch.unpack(part.pack()).models.to_list() == part.models.to_list()
        seen += rows_of_part
    assert sorted(seen) == numbers.tolist()


def test_a_model_under_two_codes_keeps_its_order():
    column = TextColumn(np.array([0, 1, 2, 0, 2, 1], np.int32), ("a", "b", "a"))
    batch = EventBatch(column, np.arange(6.0), np.zeros(6, np.int8))
    for shards in (1, 64):
        parts = dict(split_by_shard(batch, shards))
        found = [
            (model, score)
            for part in parts.values()
            for model, score in zip(part.models.to_list(), part.scores.tolist(), strict=True)
        ]
        assert [score for model, score in found if model == "a"] == [0.0, 2.0, 3.0, 4.0]
        assert [score for model, score in found if model == "b"] == [1.0, 5.0]


def test_more_models_than_sixteen_bits_count_are_sorted_too():
    n = 70_000
    models = TextColumn(np.tile(np.arange(n, dtype=np.int32)[::-1], 2), tuple(f"m{i}" for i in range(n)))
    batch = EventBatch(models, np.arange(2.0 * n), np.zeros(2 * n, np.int8))
    seen = 0
    for shard, part in split_by_shard(batch, 7):
        first, second = part.scores[::2], part.scores[1::2]
        assert (second - first == n).all()
        assert (part.models.codes[::2] == part.models.codes[1::2]).all()
        assert set(shard_of(part.models.values, 7).tolist()) == {shard}
        assert part.models.values[0] == f"m{n - 1 - int(first[0])}"
        seen += len(part)
    assert seen == 2 * n


def test_a_part_has_a_dictionary_of_what_it_uses():
    batch = batch_of([f"m{i}" for i in range(500)])
    for _, part in split_by_shard(batch, 16):
        assert sorted(part.models.values) == sorted(set(part.models.to_list()))


@settings(max_examples=examples(40))
@given(st.lists(st.text("ab", max_size=3), max_size=30), st.integers(1, 5))
def test_labels_and_predictions_are_in_the_shard_of_their_id_in_order(names, shards):
    n, ids = len(names), IdColumn.of(names)
    times = np.arange(n)
    predictions = PredictionBatch.of(
        models=TextColumn.of([f"m{i % 3}" for i in range(n)]), scores=times / 2, ids=ids, times=times
    )
    labels = LabelBatch(
        ids, times, (times % 2).astype(np.int8), positions=times + 7, head=PacketHead(high_water=n)
    )
    for batch in (predictions, labels):
        expected = {}
        for row, shard in enumerate((hash64_of_ids(ids) % np.uint64(shards)).tolist()):
            expected.setdefault(shard, []).append(row)
        found = dict(split_records(batch, shards))
        assert found.keys() == expected.keys()
        for shard, rows in expected.items():
            assert found[shard].pack() == batch.take(np.array(rows)).pack()


def test_a_thousand_models_in_sixty_four_shards_take_milliseconds():
    n = 100_000
    rng = np.random.default_rng(0)
    batch = batch_of(
        [f"m{i}" for i in rng.integers(0, 1_000, n)], ids=IdColumn.of([str(i) for i in range(n)])
    )
    list(split_by_shard(batch, 64))
    began = time.perf_counter()
    list(split_by_shard(batch, 64))
    assert time.perf_counter() - began < 0.1  # about 4 ms where nothing else runs


def test_progress_counts_until_it_is_reset():
    progress.reset()
    progress.add(records=5, dead_letters=1, bytes=100)
    progress.add(records=5, files=1)
    assert progress.read() == (10, 1, 100, 1, 0)
    progress.reset()
    assert progress.read() == (0, 0, 0, 0, 0)
