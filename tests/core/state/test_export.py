"""A state that is cut out of a stream anywhere and taken up anywhere, gives the rows of a job undisturbed."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import numpy as np
import pytest
import rocsteady as rs
from rocsteady.core.evaluator.snapshot import Snapshot
from rocsteady.core.events.batch import EventBatch, LabelBatch, PredictionBatch
from rocsteady.core.events.columns import IdColumn, TextColumn
from rocsteady.core.events.wire import PacketHead
from rocsteady.core.join.join_settings import JoinSettings
from rocsteady.core.settings.table import TableSettings
from rocsteady.core.state.reshard import resharded
from rocsteady.core.table.table import EvaluatorTable

from tests.support.invariants.cuts import END, Batch, Job, Plan, begun, in_any_order, sent, spread, together
from tests.support.streams.partitions import SECOND, Event, dealt, event_batch, shuffled_within, some_events
from tests.support.thorough import few, first

MODELS = ("a", "b", "c", "ü")


def plans_of(partitions: list[list[Event]], rng: random.Random, *, timed: bool) -> list[Plan]:
    """Cut each partition's events into packets, and tell how far it is settled in between."""
    plans = []
    for events in partitions:
        plan: Plan = []
        place = 0
        while place < len(events):
            part = events[place : place + rng.randint(1, 6)]
            place += len(part)
            plan.append(Batch(event_batch(part), tuple(event.time for event in part)))
            if timed and place < len(events) and rng.random() < 0.6:
                plan.append(min(event.time for event in events[place:]))
        plans.append([*plan, END])
    return plans


def cut_of(plans: list[Plan], rng: random.Random) -> list[int]:
    """Return how much of each plan comes before a cut: sometimes all of one, with its end."""
    cut = [rng.randint(0, len(plan)) for plan in plans]
    if all(END in plan[:place] for plan, place in zip(plans, cut, strict=True)):
        cut[0] = 0
    return cut


def table_of(order: str, rng: random.Random, shards: int) -> TableSettings:
    evaluator = rs.EvaluatorSettings(
        window=rng.choice([rs.LastEvents(7), rs.LastDuration("20s"), rs.Adaptive(0.2)]),
        every=rng.choice([rs.EveryEvents(3), rs.EverySeconds("9s")]),
        measures=("auc", "kappa_m", "ks"),
        order=order,
    )
    beside = order == "time" and rng.random() < 0.6
    return TableSettings(
        evaluator,
        shards=shards,
        deduplicate=15 * SECOND if beside else None,
        idle_ttl=20 * SECOND if rng.random() < 0.5 and order != "arrival" else None,
    )


@pytest.mark.parametrize("order", ["time", "position", "arrival"])
@pytest.mark.parametrize("seed", first(2, few(4, (3, 8, 10, 6, 0, 1, 2, 4, 5, 7, 9, 11))))
def test_a_cut_anywhere_changes_no_row_and_loses_none(order: str, seed: int) -> None:
    rng = random.Random(f"{order} {seed}")
    shards, others = rng.choice([(1, 1), (3, 3), (2, 4), (4, 2), (3, 2)])
    table = table_of(order, rng, shards)
    events = some_events(60, rng, MODELS)
    if table.deduplicate is not None:  # some come again, by the same id
        events += [event._replace(time=event.time + rng.randint(0, 25) * SECOND) for event in events[::4]]
    partitions = dealt(
        shuffled_within(events, 3 * SECOND, rng), 1 if order == "arrival" else rng.randint(1, 3), rng
    )
    plans = plans_of(partitions, rng, timed=order == "time")
    cut = cut_of(plans, rng)
    repeats = order != "arrival" or rng.random() < 0.5
    right = Job(table, None, rng, 0).run(in_any_order(sent(plans, shards), rng, repeats=repeats)).told()
    assert len(right[0]) > 10

    whole = Job(table, None, rng).run(in_any_order(sent(plans, shards, cut), rng, repeats=repeats))
    assert whole.told() == right
    before = Job(table, None, rng).run(in_any_order(sent(plans, shards, cut, stops=True), rng))
    for job in (whole, before):
        assert sorted(state.shard for state in job.states["evaluators"]) == list(range(shards))
        for state in job.states["evaluators"]:
            said = {int(json.loads(position)[0]) for _, position in state.positions.values()}
            assert said <= set(cut)
        wanted = replace(table, shards=others)
        snapshots = begun(spread(job.states, {"evaluators": others}), wanted, None)
        after = Job(wanted, None, rng, brought=snapshots)
        after.run(in_any_order(sent(plans, others, cut, after=True), rng))
        assert together(before, after) == right


def joined_plans(rng: random.Random) -> list[Plan]:
    """Return plans of predictions and of labels, in partitions of their own."""
    times = sorted(rng.randrange(0, 100 * SECOND, 1000) for _ in range(80))
    predictions = [(time, f"{number % 60:03}", rng.choice(MODELS)) for number, time in enumerate(times)]
    labels = sorted(
        (time + rng.randint(-3, 15) * SECOND + 7, name, rng.randint(0, 1))
        for time, name, _ in predictions
        if rng.random() < 0.8
    )
    plans = []
    for kind, records in (("prediction", predictions), ("label", labels)):
        plan: Plan = []
        place = 0
        while place < len(records):
            part = records[place : place + rng.randint(1, 7)]
            place += len(part)
            columns = {
                "ids": IdColumn.of([name for _, name, _ in part]),
                "times": np.array([time for time, *_ in part]),
            }
            batch: PredictionBatch | LabelBatch
            if kind == "label":
                batch = LabelBatch(labels=np.array([label for *_, label in part], np.int8), **columns)
            else:
                models = TextColumn.of([str(model) for *_, model in part])
                batch = PredictionBatch.of(models=models, scores=columns["times"] % 97 / 97, **columns)
            plan.append(Batch(batch, tuple(time for time, *_ in part)))
            if place < len(records) and rng.random() < 0.7:
                plan.append(records[place][0])
        plans.append([*plan, END])
    return plans


@pytest.mark.parametrize("seed", first(2, few(5, (13, 5, 14, 7, 6, 0, 1, 2, 3, 4, 8, 9, 10, 11, 12, 15))))
def test_a_cut_passes_from_joins_to_evaluators(seed: int) -> None:
    rng = random.Random(f"join {seed}")
    (joins, tables), (other_joins, other_tables) = rng.choice(
        [((2, 2), (2, 2)), ((3, 2), (2, 3)), ((1, 2), (4, 1)), ((4, 4), (2, 2))]
    )
    join = JoinSettings(
        12 * SECOND, rng.choice([None, 0, 5 * SECOND]), rng.choice(["first", "last", "dead-letter"]),
        joins, tables, rng.choice([None, 20 * SECOND]),
    )  # fmt: skip
    table = replace(table_of("time", rng, tables), deduplicate=None)
    plans = joined_plans(rng)
    cut = cut_of(plans, rng)
    right = Job(table, join, rng, 0).run(in_any_order(sent(plans, joins), rng)).told()
    assert len(right[0]) > 5
    whole = Job(table, join, rng).run(in_any_order(sent(plans, joins, cut), rng))
    assert whole.told() == right
    before = Job(table, join, rng).run(in_any_order(sent(plans, joins, cut, stops=True), rng))
    for job in (whole, before):
        assert {step: len(states) for step, states in job.states.items()} == {
            "join": joins,
            "evaluators": tables,
        }
        wanted = replace(table, shards=other_tables)
        wanted_join = replace(join, shards=other_joins, evaluator_shards=other_tables)
        shards = {"join": other_joins, "evaluators": other_tables}
        after = Job(wanted, wanted_join, rng, brought=begun(spread(job.states, shards), wanted, wanted_join))
        after.run(in_any_order(sent(plans, other_joins, cut, after=True), rng))
        rows, refused = together(before, after)
        assert rows == right[0]
        assert refused == right[1]


def test_waiting_packets_do_not_become_more_in_other_shards() -> None:
    settings = TableSettings(rs.EvaluatorSettings(window=rs.LastEvents(7), order="time"), shards=1)
    table = EvaluatorTable(settings)
    events = some_events(60, random.Random(1), MODELS)
    for number, event in enumerate(events):
        table.apply(event_batch([event], head=PacketHead(sequence=number)).pack())
    states = resharded([Snapshot.unpack(table.to_bytes())], 3)
    assert all(len(state.held) <= 1 for state in states)
    waiting = [EventBatch.unpack(record) for state in states for *_, record in state.held]
    assert sorted(score for batch in waiting for score in batch.scores.tolist()) == sorted(
        event.score for event in events
    )
