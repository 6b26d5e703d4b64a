"""A shard of models with a score of each class: rows of single evaluators, for any cut, order and restart."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import rocsteady as rs
from rocsteady.core.classes.class_settings import ClassSettings
from rocsteady.core.errors import InputError, OtherConfigurationError, WireError
from rocsteady.core.events.batch import EventBatch
from rocsteady.core.events.columns import IdColumn, TextColumn
from rocsteady.core.events.records import EndOfInput, EndOfPartition
from rocsteady.core.events.wire import PacketHead
from rocsteady.core.rows.class_rows import ClassRows
from rocsteady.core.settings.classes import Classes
from rocsteady.core.settings.table import TableSettings
from rocsteady.core.table.table import EvaluatorTable, warm_up
from rocsteady.transforms.evaluate.shards import RowsCoder

from tests.support.streams.batches import content, flips, truncations
from tests.support.thorough import others_slow

SECOND = 1_000_000
START = 1_704_067_200 * SECOND
NAMES = ("cat", "dog", "owl")


def stream(n=400, seed=0, multi_label=False):
    """Events of two models with a slice, a second apart; scores are tied often."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, n)
    scores = (rng.random((n, 3)) + 0.6 * np.eye(3)[labels]).round(1)
    decided = scores.argmax(axis=1)
    columns = {
        "models": TextColumn(rng.integers(0, 2, n).astype(np.int32), ("a", "b")),
        "slices": (("c", TextColumn(rng.integers(0, 2, n).astype(np.int32), ("x", "y"))),),
        "times": START + np.arange(n) * SECOND,
        "ids": IdColumn.of([f"i{number}" for number in range(n)]),
        "class_scores": scores,
    }
    if multi_label:
        return EventBatch.of_classes(class_labels=(rng.random((n, 3)) < 0.4).astype(np.int8), **columns)
    return EventBatch.of_classes(
        label_classes=TextColumn(labels.astype(np.int32), NAMES),
        predicted=TextColumn(decided.astype(np.int32), NAMES),
        **columns,
    )


def settings_of(window=None, every=None, order="time", multi_label=False, **more):
    evaluator = rs.EvaluatorSettings(
        window=window or rs.LastEvents(60), every=every or rs.EveryEvents(25), order=order
    )
    return TableSettings(evaluator, (("c",),), 1, classes=Classes(NAMES, multi_label), **more)


def packets(batch, sizes):
    """The packets of a partition that is cut into parts of some sizes, and its end."""
    start, number = 0, 0
    while start < len(batch):
        size = sizes[number % len(sizes)]
        part = batch.part(start, min(start + size, len(batch)))
        yield replace(part, source="s", head=PacketHead(sequence=number)).pack()
        start, number = start + size, number + 1
    yield EndOfPartition("s", 0, 1, number, int(batch.times.max())).pack()
    yield EndOfInput().pack()


def rows_of(settings, records, restart=False):
    """All rows of a table, as records in a comparable order; with `restart` it is rebuilt between records."""
    table, found = EvaluatorTable(settings), []
    for record in records:
        found += [ClassRows(rows) for rows in table.apply(record)]
        if restart:
            data = table.to_bytes()
            assert len(data) <= 1.3 * table.snapshot_bytes() + 4_000
            table = EvaluatorTable.from_bytes(data, settings)
            assert table.to_bytes() == data
    return sorted((row for rows in found for row in rows), key=lambda row: tuple(map(str, row[:4])))


WINDOWS = [
    (rs.LastEvents(60), rs.EveryEvents(25)),
    (rs.LastDuration("90s"), rs.EverySeconds("40s")),
    (rs.Fading("50s"), rs.EveryEvents(40)),
    (rs.AllEvents(), rs.EveryEvents(50)),
]


@pytest.mark.parametrize(("settings", "multi_label"), others_slow(product(WINDOWS, [False, True])))
def test_rows_are_those_of_one_evaluator_for_each_model_and_slice_on_every_cut(settings, multi_label):
    window, every = settings
    batch, settings = stream(multi_label=multi_label), settings_of(window, every, multi_label=multi_label)
    expected = []
    models, slices = np.array(batch.models.to_list()), np.array(batch.slices[0][1].to_list())
    for model in "ab":
        for name in ("", "x", "y"):
            rows = np.flatnonzero((models == model) & ((slices == name) | (name == "")))
            evaluator = rs.MulticlassEvaluator(
                ClassSettings.of_table(settings), model=model, slice=name and f"c={name}"
            )
            labels = batch.class_labels if multi_label else np.array(batch.label_classes.to_list())
            expected += evaluator.update(
                labels[rows], batch.class_scores[rows], times=batch.times[rows], time_unit="us"
            )
            expected += evaluator.advance_to(int(batch.times.max()) + 1)
            expected += evaluator.finish()
    expected.sort(key=lambda row: tuple(map(str, row[:4])))
    assert len(expected) > 70
    for sizes in ([400], [7, 1, 30]):
        assert rows_of(settings, packets(batch, sizes)) == expected
    if not window.ticks:  # sums of weights are added anew behind a restart
        assert rows_of(settings, packets(batch, [90, 11]), restart=True) == expected


def test_tied_events_without_ids_are_ordered_by_their_scores_and_labels():
    batch = replace(stream(), ids=None, times=START + np.repeat(np.arange(40), 10) * SECOND)
    turned = batch.take(np.concatenate([np.arange(at, at + 10)[::-1] for at in range(0, 400, 10)]))
    settings = settings_of()
    assert rows_of(settings, packets(batch, [50])) == rows_of(settings, packets(turned, [50]))


def test_a_silent_model_leaves_and_returns_with_its_numbers():
    batch = stream()
    there = np.concatenate([np.arange(100), np.arange(300, 400)])
    settings = settings_of(idle_ttl=60 * SECOND)
    found = rows_of(settings, packets(batch.take(there), [33]))
    assert found == rows_of(settings, packets(batch.take(there), [33]), restart=True)
    of_one = [row for row in found if row.model == "a" and not row.slice and row.class_ is None]
    assert [row.row for row in sorted(of_one, key=lambda row: row.row)] == [*range(len(of_one))]
    assert max(row.seq for row in of_one) == np.count_nonzero(batch.take(there).models.codes == 0)
    of_class = [row for row in found if row.model == "a" and not row.slice and row.class_ == "cat"]
    assert {(row.row, row.seq, row.window_events) for row in of_class} == {
        (row.row, row.seq, row.window_events) for row in of_one
    }


def test_a_repeated_event_does_not_count():
    batch = stream()
    twice = batch.take(np.sort(np.concatenate([np.arange(400), np.arange(0, 400, 9)])))
    settings = settings_of(deduplicate=86_400 * SECOND)
    once = settings_of()
    found = rows_of_kept(settings, packets(twice, [50]))
    expected = rows_of(once, packets(batch, [50]))
    assert [row[:-1] for row in found] == [row[:-1] for row in expected]


def rows_of_kept(settings, records):
    table, found = EvaluatorTable(settings), []
    for record in records:
        found += [row for rows in table.apply(record) if isinstance(rows, rs.Rows) for row in ClassRows(rows)]
    return sorted(found, key=lambda row: tuple(map(str, row[:4])))


def test_the_wire_form_has_all_that_a_batch_says_and_no_scores_without_meaning():
    for batch in (stream(50), stream(50, multi_label=True), stream(1), stream(8).part(3, 3)):
        data = batch.pack()
        again = EventBatch.unpack(data)
        assert content(again).keys() == content(batch).keys()
        for name in ("class_scores", "class_labels", "times"):
            np.testing.assert_array_equal(
                *(np.ravel(x) if x is not None else [] for x in (getattr(again, name), getattr(batch, name)))
            )
        assert again.pack() == data
    plain = EventBatch(TextColumn.of(["m"] * 50), np.zeros(50), np.zeros(50, np.int8)).pack()
    assert len(stream(50).pack()) < len(plain) - 9 * 50 + 50 * (8 + 8 * 3 + 5 + 4) + 300


def test_damaged_packets_and_snapshots_are_refused():
    batch, settings = stream(30), settings_of()
    for data in (*truncations(batch.pack()), *flips(batch.pack())):
        with pytest.raises(WireError):
            EventBatch.unpack(data)
    table = EvaluatorTable(settings)
    table.apply(replace(batch, head=PacketHead(sequence=0), source="s").pack())
    snapshot = table.to_bytes()
    for data in list(truncations(snapshot))[:: max(len(snapshot) // 40, 1)]:
        with pytest.raises(WireError):
            EvaluatorTable.from_bytes(data, settings)
    for other in (
        replace(settings, classes=None),
        replace(settings, classes=Classes(("cat", "dog", "eel"))),
        replace(settings, classes=Classes(NAMES, multi_label=True)),
    ):
        with pytest.raises(OtherConfigurationError, match=r"classes|multi_label"):
            EvaluatorTable.from_bytes(snapshot, other)


def test_a_packet_of_other_classes_is_named():
    table = EvaluatorTable(settings_of(order="arrival"))
    plain = EventBatch(
        TextColumn.of(["m"]), np.zeros(1), np.zeros(1, np.int8), slices=(("c", TextColumn.of(["x"])),),
        source="f",
    )  # fmt: skip
    with pytest.raises(
        InputError, match="a packet of 'f' has events with one score, and there are 3 classes"
    ):
        table.apply(plain.pack())
    batch = replace(stream(5), source="f")
    with pytest.raises(InputError, match="scores of 2 classes"):
        table.apply(replace(batch, class_scores=batch.class_scores[:, :2]).pack())
    strange = TextColumn.of(["cat", "eel", "cat", "cat", "cat"])
    with pytest.raises(InputError, match="'eel' is none of the 3 classes"):
        table.apply(replace(batch, label_classes=strange).pack())


def test_rows_between_two_stages_are_the_same_rows():
    coder = RowsCoder()
    table = EvaluatorTable(settings_of())
    for record in packets(stream(), [90]):
        for rows in table.apply(record):
            again = coder.decode(coder.encode(rows))
            assert list(ClassRows(again)) == list(ClassRows(rows))
            assert coder.encode(again) == coder.encode(rows)


def test_a_warm_table_compiles_nothing_more():
    settings = settings_of()
    warm_up(settings)
    assert rows_of(settings, packets(stream(), [90]))
