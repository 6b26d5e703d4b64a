"""Samples of every stored form with a score of each class, for `stored_readers`."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np
import rocsteady as rs
from rocsteady.core.classes.evaluator import MulticlassEvaluator
from rocsteady.core.errors import InputError
from rocsteady.core.events.batch import NO_CLASS, EventBatch, LabelBatch, PredictionBatch
from rocsteady.core.events.columns import IdColumn, TextColumn
from rocsteady.core.events.records import EndOfPartition, Heartbeat
from rocsteady.core.events.wire import UNORDERED, PacketHead
from rocsteady.core.join.join import LabelJoin
from rocsteady.core.settings.classes import Classes
from rocsteady.core.settings.evaluator import EvaluatorSettings
from rocsteady.core.settings.table import TableSettings
from rocsteady.core.settings.windows import parse_every, parse_window
from rocsteady.core.table.table import EvaluatorTable

SECOND = 1_000_000
NAMES = ("cat", "dog", "ü")


def columns(start=0, count=40, several=False, weights=False):
    """The columns of events and of their predictions, without labels."""
    numbers = np.arange(start, start + count)
    made = {
        "models": TextColumn.of([f"m{number % 3}" for number in numbers]),
        "class_scores": (np.outer(numbers, [7, 5, 3]) % 11) / 10,
        "times": numbers * SECOND,
        "ids": IdColumn.of([f"e{number}" for number in numbers]),
        "weights": 1.0 + numbers % 4 if weights else None,
        "slices": (("site", TextColumn.of([["a", "b"][number % 2] for number in numbers])),),
        "positions": numbers.astype(np.int64),
        "source": "s.csv",
    }
    if not several:
        made["predicted"] = TextColumn.of([NAMES[number % 2] for number in numbers])
    return made


def label_columns(start=0, count=40, several=False):
    numbers = np.arange(start, start + count)
    if several:
        return {"class_labels": (np.outer(numbers, [1, 2, 3]) % 3 == 0).astype(np.int8)}
    return {"label_classes": TextColumn.of([NAMES[number % 3] for number in numbers])}


def class_batch(start=0, count=40, several=False, weights=False, sequence=UNORDERED, partition=0):
    given = columns(start, count, several, weights) | label_columns(start, count, several)
    head = PacketHead(partition, sequence, int(given["times"][-1]))
    return EventBatch.of_classes(**given, head=head)


def class_predictions(several, sequence=UNORDERED):
    given = columns(several=several)
    return PredictionBatch.of(**given, head=PacketHead(0, sequence, int(given["times"][-1])))


def class_labels(several, start=0, count=30, sequence=UNORDERED):
    numbers = np.arange(start, start + count)
    return LabelBatch(
        IdColumn.of([f"e{number}" for number in numbers]), numbers * SECOND + 5,
        np.full(count, NO_CLASS, np.int8), **label_columns(start, count, several), source="l.csv",
        head=PacketHead(1, sequence, int(numbers[-1]) * SECOND),
    )  # fmt: skip


def class_tables():
    """Settings of tables: one class an event, and several."""
    timed = EvaluatorSettings(window=parse_window("last:15s"), every=parse_every("4s"), order="time:2s")
    by_count = EvaluatorSettings(window=parse_window("last:16"), every=parse_every("5"))
    more = {"shards": 2, "slices": (("site",),)}
    yield TableSettings(by_count, **more, classes=Classes(NAMES))
    yield TableSettings(
        timed, deduplicate=5 * SECOND, idle_ttl=3 * SECOND, **more, classes=Classes(NAMES, True)
    )


def class_packets(settings, *, later=False):
    several = settings.classes.multi_label
    if later:
        return [
            class_batch(70, 30, several, sequence=1).pack(),
            EndOfPartition("s.csv", 0, 2, 3, 100 * SECOND).pack(),
            EndOfPartition("s.csv", 1, 2, 1, 40 * SECOND).pack(),
        ]
    return [
        class_batch(several=several, sequence=0).pack(),
        class_batch(40, 30, several, sequence=2).pack(),
        Heartbeat("s.csv", 0, 2, 1, 35 * SECOND, 40 * SECOND).pack(),
        class_batch(several=several, sequence=0, partition=1).pack(),
    ]


def fed(machine, records):
    for record in records:
        machine.apply(record)
    return machine


def class_table_samples():
    return [fed(EvaluatorTable(each), class_packets(each)).to_bytes() for each in class_tables()]


def class_join_samples(settings):
    found = []
    for several in (False, True):
        records = [
            class_predictions(several, sequence=0).pack(),
            class_labels(several, sequence=0).pack(),
            Heartbeat("s.csv", 0, 2, 1, 30 * SECOND, 40 * SECOND).pack(),
            Heartbeat("l.csv", 1, 2, 1, 25 * SECOND, 30 * SECOND).pack(),
        ]
        found.append(fed(LabelJoin(settings, 0), records).to_bytes())
    return found


def class_evaluator_samples():
    found = []
    for window, every, more in (
        ("last:16", "5", {}),
        ("last:15s", "4s", {"order": "time:0s"}),
        ("fading:1000", "5", {}),
    ):
        settings = EvaluatorSettings(window=parse_window(window), every=parse_every(every), **more)
        for several, weights in ((False, False), (True, True)):
            one = MulticlassEvaluator(NAMES, settings, multi_label=several, model="m", intervals=weights)
            use_class_evaluator(one, several, weights)
            found.append(one.to_bytes())
    return found


def use_class_evaluator(one, several, weights):
    """Apply some events to an evaluator."""
    classes = len(one.settings.classes)
    numbers = np.arange(60)
    scores = (np.outer(numbers, np.arange(classes) + 3) % 11) / 10
    labels = [one.settings.classes[number % classes] for number in numbers]
    if several:
        labels = (np.outer(numbers, np.arange(classes) + 1) % 3 == 0).astype(int)
    times = numbers if one.settings.evaluator.needs_times else None
    one.update(labels, scores, times=times, weights=1.0 + numbers % 3 if weights else None)


def use_evaluator(one, data):
    """Do with an evaluator that was read what a job does."""
    with suppress(InputError):  # times that the damage put behind later ones
        use_class_evaluator(one, one.settings.multi_label, False)
    one.finish()
    return one.to_bytes()


def class_rows():
    """Rows of models with classes, with curves and without."""
    settings = next(class_tables())
    curves = replace(settings.evaluator, curves=rs.EveryEvents(7))
    for each in (settings, replace(settings, evaluator=curves)):
        yield from EvaluatorTable(each).apply(class_batch().pack())
