"""A shard of pairs: the same rows for any cut, order of arrival and restart, and no event lost uncounted."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import rocsteady as rs
from rocsteady.core.errors import ConfigError, InputError, OtherConfigurationError, WireError
from rocsteady.core.events.batch import EventBatch, LabelBatch
from rocsteady.core.events.columns import IdColumn, TextColumn
from rocsteady.core.events.records import EndOfInput, EndOfPartition, Heartbeat
from rocsteady.core.events.times import NO_TIME
from rocsteady.core.events.wire import PacketHead
from rocsteady.core.ids.sharding import number_of, split_for_comparisons, split_records
from rocsteady.core.pairs.matching import Matcher
from rocsteady.core.pairs.pair_settings import PairSettings
from rocsteady.core.pairs.table import PairTable, PairTableSettings
from rocsteady.core.rows.pairs import PairRow
from rocsteady.core.settings.against import Against
from rocsteady.core.settings.table import Shards
from rocsteady.core.settings.windows import EveryEvents, EverySeconds, LastEvents

from tests.support.streams.batches import flips, truncations

SECOND = 1_000_000


def events(rows, slices=False, positions=None):
    """An event batch of (model, score, label, time in seconds, id or None, slice)."""
    models, scores, labels, times, ids, texts = zip(*rows, strict=True)
    timed = times[0] is not None
    return EventBatch(
        TextColumn.of(list(models)), np.array(scores), np.array(labels),
        times=np.array(times) * SECOND if timed else None, ids=IdColumn.of(list(ids)),
        slices=(("c", TextColumn.of(list(texts))),) if slices else (), positions=positions,
    )  # fmt: skip


def stream(seed, n=240, late=3):
    """Events of three models and a champion: each scores some of the ids, some seconds after another."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(n):
        label = int(rng.random() < 0.4)
        for model, share in (("champion", 0.8), ("a", 0.9), ("b", 0.5), ("new", number > n / 2)):
            if rng.random() < share:
                time = number + int(rng.integers(0, late + 1))
                rows.append((model, label + rng.normal(), label, time, f"i{number}", "xyz"[number % 3]))
                if rng.random() < 0.05:
                    rows.append((model, 0.0, label, time + 1, f"i{number}", "xyz"[number % 3]))
                if rng.random() < 0.03:
                    rows[-1] = (*rows[-1][:2], 1 - label, *rows[-1][3:])
    return sorted(rows, key=lambda row: row[3])


def slowly(rows, champion, within, every):
    """Rows of pairs of whole models by event: a list of pending events that is searched anew each time."""
    models = [row[0] for row in rows if row[0] != champion]
    pairs = {model: rs.PairEvaluator(window=LastEvents(50), every=every, model=model, against=champion)
             for model in dict.fromkeys(models)}  # fmt: skip
    out, known, champions, waiting = [], [], [], []

    def give(model, label, score, other, time):
        out.extend(pairs[model].update([label], [score], [other], times=[time]))

    def expire(now):
        gone = [(held["time"], held["number"], held) for held in champions + waiting
                if held["time"] + within < now]  # fmt: skip
        for _, _, held in sorted(gone, key=lambda each: each[:2]):
            if held in champions:
                champions.remove(held)
                for model in known:
                    if model not in held["met"]:
                        give(model, held["label"], math.nan, held["score"], now)
            else:
                waiting.remove(held)
                give(held["model"], held["label"], held["score"], math.nan, now)

    def meet(model, mine, theirs):
        time = max(mine["time"], theirs["time"])
        if mine["label"] == theirs["label"]:
            give(model, mine["label"], mine["score"], theirs["score"], time)
        else:
            give(model, mine["label"], mine["score"], math.nan, time)
            give(model, theirs["label"], math.nan, theirs["score"], time)

    for number, (model, score, label, time, id_, _) in enumerate(rows):
        expire(time)
        event = {"model": model, "score": score, "label": label, "time": time, "id": id_, "met": [],
                 "number": number}  # fmt: skip
        theirs = next((each for each in champions if each["id"] == id_), None)
        if model == champion:
            if theirs is None:
                champions.append(event)
                for mine in [each for each in waiting if each["id"] == id_]:
                    waiting.remove(mine)
                    event["met"].append(mine["model"])
                    meet(mine["model"], mine, event)
            continue
        if model not in known:
            known.append(model)
        if theirs is not None:
            if model not in theirs["met"]:
                theirs["met"].append(model)
                meet(model, event, theirs)
        elif not any(each["id"] == id_ and each["model"] == model for each in waiting):
            waiting.append(event)
    expire(10**6)
    return [*out, *(row for pair in pairs.values() for row in pair.finish())]


def by_key(rows):
    return sorted(rows, key=lambda row: (row.model, row.against, row.slice, row.row))


def settings(**more):
    chosen = {"window": LastEvents(50), "every": EveryEvents(20)}
    chosen |= {name: more.pop(name) for name in ("window", "every") if name in more}
    defaults = {"against": Against("champion", within=4 * SECOND), "order": "time"}
    return PairTableSettings(pairs=PairSettings(**chosen), **{**defaults, **more})


def run(rows, how, seed=None, slices=False):
    """Feed events to a table; with a seed in random packets of two partitions, restarted at each record."""
    table = PairTable(how)
    out = []
    if seed is None:
        batch = events(rows, slices)
        records = [
            batch.pack(PacketHead(0, 0, int(batch.times.max()))),
            EndOfPartition("", 0, 1, 1, int(batch.times.max())).pack(),
        ]
    else:
        rng = np.random.default_rng(seed)
        records = []
        for partition in (0, 1):
            own = [row for row in rows if hash_of(row) % 2 == partition]
            cuts = sorted({0, *rng.integers(0, len(own), 12).tolist(), len(own)})
            high = NO_TIME
            for sequence, (first, end) in enumerate(itertools.pairwise(cuts)):
                batch = events(own[first:end], slices)
                high = max(high, int(batch.times.max()))
                records.append(batch.pack(PacketHead(partition, sequence, high)))
                if rng.random() < 0.5 and end < len(own):
                    settled = own[end][3] * SECOND
                    records.append(Heartbeat("", partition, 2, sequence + 1, settled, high).pack())
            records.append(EndOfPartition("", partition, 2, len(cuts) - 1, high).pack())
        rng.shuffle(records)
    for record in records:
        out += table.apply(record)
        if seed is not None:
            table = PairTable.from_bytes(table.to_bytes(), how)
    assert all(isinstance(row, PairRow) for row in out)
    return by_key(out), table


def hash_of(row):
    return sum(map(ord, f"{row[0]}{row[4]}{row[3]}"))


def in_order_of_the_table(rows):
    """Events of one time apply by model and id; an event and its repetition never share a time here."""
    return sorted(rows, key=lambda row: (row[3], row[0], row[4]))


@pytest.mark.parametrize("seed", range(4))
def test_rows_are_those_of_a_slow_matcher(seed):
    rows = in_order_of_the_table(stream(seed))
    mine, table = run(rows, settings())
    expected = slowly(rows, "champion", 4, EveryEvents(20))
    assert [row for row in mine if not row.slice] == by_key(expected)
    counts = table.counts()
    assert counts["pairs_repeated"] > 0
    assert counts["pairs_contradicted"] > 0
    last = {row.model: row for row in mine}
    assert counts["pairs_compared"] == sum(row.seq for row in last.values())


@pytest.mark.parametrize("every", [EveryEvents(20), EverySeconds("30s")])
@pytest.mark.parametrize("within", [None, 0, 4 * SECOND])
def test_no_cut_order_of_arrival_or_restart_changes_a_row(every, within):
    rows = stream(7)
    how = settings(every=every, slices=(("c",),), against=Against("champion", within=within))
    whole, _ = run(rows, how, slices=True)
    assert {row.slice for row in whole} == {"", "c=x", "c=y", "c=z"}
    for seed in range(3):
        found, table = run(rows, how, seed, slices=True)
        assert found == whole
    assert abs(table.snapshot_bytes() / len(table.to_bytes()) - 1) < 0.1


def test_shards_together_give_the_rows_of_one():
    rows = stream(8)
    whole, _ = run(rows, settings())
    parts = []
    for _, part in split_for_comparisons(events(rows), Against("champion"), 5):
        models, ids = part.models.to_list(), part.ids.to_list()
        own = list(zip(models, part.scores.tolist(), part.labels.tolist(),
                       (part.times // SECOND).tolist(), ids, "x" * len(ids), strict=True))  # fmt: skip
        parts += run(own, settings())[0]
    assert by_key(parts) == whole


def test_packets_for_comparisons_are_shards_behind_those_of_the_evaluators():
    shards = Shards(3, own=["a"]).with_comparisons(Against("champion"), 2)
    assert (int(shards), shards.shared, shards.comparing) == (6, 3, 2)
    assert shards != Shards(6)
    rows = [(model, 0.5, 1, 1, "i", "") for model in ("a", "b", "champion", "d")]
    found = list(split_records(events(rows), shards))
    evaluated = [name for shard, part in found if shard < 4 for name in part.models.to_list()]
    assert sorted(evaluated) == ["a", "b", "champion", "d"]
    compared = [part.models.to_list() for shard, part in found if shard >= 4]
    assert all("champion" in names for names in compared)
    assert sorted(name for names in compared for name in names if name != "champion") == ["a", "b", "d"]
    assert number_of("shard-005") == 5


def test_models_of_several_columns_meet_by_record():
    rng = np.random.default_rng(0)
    n, rows = 300, []
    positions = np.repeat(np.arange(n), 2)
    for number in range(n):
        for model in ("m/a", "m/b"):
            label = number % 2
            rows.append((model, label + rng.normal(), label, None, None, ""))
    kept = np.flatnonzero(rng.random(2 * n) > 0.1)
    batch = events([rows[place] for place in kept.tolist()], positions=positions[kept])
    how = settings(against=Against("b", ("a", "b"), by_record=True), order="arrival")
    table = PairTable(how)
    out = [row for record in (batch.pack(), EndOfInput().pack()) for row in table.apply(record)]
    scores = np.full((n, 2), math.nan)
    for place in kept.tolist():
        scores[place // 2, place % 2] = rows[place][1]
    there = ~np.isnan(scores).all(axis=1)
    pair = rs.PairEvaluator(window=LastEvents(50), every=EveryEvents(20), model="m/a", against="m/b")
    expected = [*pair.update(np.arange(n)[there] % 2, *scores[there].T), *pair.finish()]
    assert out == expected
    assert expected[-1].only_model > 10
    assert expected[-1].only_against > 10


def test_a_champion_that_is_not_there_leaves_every_instance_alone():
    rows = [row for row in stream(9) if row[0] != "champion"]
    out, table = run(rows, settings())
    assert [row.seq for row in out] == [0, 0, 0]
    ids = {(row[0], row[4]) for row in rows}
    assert sum(row.only_model for row in out) == len(ids)
    assert table.counts()["pairs_compared"] == 0


def test_events_without_an_id_are_counted_alone():
    matcher = Matcher(Against("champion"))
    batch = events([("a", 0.5, 1, 1, None, ""), ("champion", 0.5, 1, 2, None, ""), ("a", 0.1, 0, 3, "i", "")])
    found = [matcher.match(batch).pairs, matcher.finish().pairs]
    assert [np.isnan(each.scores).tolist() for each in found] == [[False, True], [False]]
    assert [np.isnan(each.against).tolist() for each in found] == [[True, False], [True]]


@pytest.mark.parametrize(
    ("batch", "how", "said"),
    [
        (EventBatch(TextColumn.of(["a"]), np.array([0.5]), np.array([1])), {}, "by the ids of events"),
        (events([("a", 0.5, 1, None, "i", "")]), {"slices": (("z",),)}, "no slice column 'z'"),
        (events([("a", 0.5, 1, None, "i", "")]),
         {"against": Against("b", ("a", "b"), by_record=True)}, "no positions"),
        (EventBatch(TextColumn.of(["a"]), np.array([0.5]), np.array([1]), weights=np.array([2.0]),
                    ids=IdColumn.of(["i"])), {}, "equal weights"),
        (LabelBatch(IdColumn.of(["a"]), np.array([1]), np.array([1], np.int8)), {}, "holds no events"),
    ],
)  # fmt: skip
def test_packets_that_cannot_be_compared_are_refused_in_a_sentence(batch, how, said):
    table = PairTable(settings(**{"order": "arrival", **how}))
    with pytest.raises(InputError, match=said):
        table.apply(batch.pack())


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: Against(""), "give the name of a model"),
        (lambda: Against("b", ("a",)), "not among the score columns"),
        (lambda: Against("b", by_record=True), "several columns"),
        (lambda: Against("b", within=-1), "0 or more"),
        (lambda: settings(order="position"), "no times"),
    ],
)
def test_settings_that_cannot_be_are_refused_in_a_sentence(made, said):
    with pytest.raises(ConfigError, match=said):
        made()


def test_a_snapshot_of_other_settings_or_other_bytes_is_refused():
    how = settings(slices=(("c",),))
    table = PairTable(how)
    batch = events(stream(1, 6), slices=True)
    table.apply(batch.pack(PacketHead(sequence=0)))
    table.apply(Heartbeat("", 0, 2, 1, 4 * SECOND).pack())
    data = table.to_bytes()
    with pytest.raises(OtherConfigurationError, match="every"):
        PairTable.from_bytes(data, settings(slices=(("c",),), every=EveryEvents(3)))
    for damaged in (*flips(data), *truncations(data), b"", b"RSPT"):
        with pytest.raises(WireError):
            PairTable.from_bytes(damaged, how)


def test_an_event_costs_the_same_for_any_number_of_models_that_met_its_champion():
    compared = []

    class Name(str):
        """A name that notes when it is compared with another one."""

        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other):
            compared.append(self)
            return str.__eq__(self, other)

    def met(models):
        matcher = Matcher(Against("champion"))
        instances = len(matcher.match(events([("champion", 0.5, 1, None, "i", "")])))
        for number in range(models):
            batch = events([("x", 0.5, 1, None, "i", "")])
            models_of = TextColumn(batch.models.codes, (Name(f"m{number}"),))
            instances += len(matcher.match(replace(batch, models=models_of)))
        assert [instances, matcher.repeated] == [models, 0]
        return len(compared)

    few = met(20)
    compared.clear()
    assert met(200) <= 15 * few
