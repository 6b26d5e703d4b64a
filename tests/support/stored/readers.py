"""Every function that reads stored bytes: samples of what it reads, and what is done with what it read.

`FORMS` is the one registry. `in_the_package` finds the readers that there are, so that none can be left out.
"""

from __future__ import annotations

import ast
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import rocsteady as rs
from rocsteady.core.alerts.alert_rows import WatchedRows
from rocsteady.core.alerts.table import AlertTable
from rocsteady.core.classes.evaluator import MulticlassEvaluator
from rocsteady.core.classes.state import ClassState
from rocsteady.core.compare.fold_pairs import FoldPairs
from rocsteady.core.compare.fold_report import FoldReport, PairedFold
from rocsteady.core.compare.learners import LearnerComparisons
from rocsteady.core.errors import CorruptBytesError, InputError, RocsteadyError
from rocsteady.core.evaluator.adwin import Adwin
from rocsteady.core.evaluator.evaluator import ModelEvaluator
from rocsteady.core.evaluator.snapshot import Snapshot
from rocsteady.core.evaluator.state import IdleState
from rocsteady.core.events.batch import EventBatch, LabelBatch, LabelRows, PredictionBatch
from rocsteady.core.events.columns import IdColumn, TextColumn
from rocsteady.core.events.records import (
    Clock,
    EndOfInput,
    EndOfPartition,
    Heartbeat,
    StateImport,
    StateMarker,
    unpack_record,
)
from rocsteady.core.events.times import NO_TIME
from rocsteady.core.events.wire import PacketHead
from rocsteady.core.evidence.below import EvidenceBelow
from rocsteady.core.fleet.members import MemberRows, Settled
from rocsteady.core.fleet.roll_up_settings import RollUpSettings
from rocsteady.core.fleet.table import FleetTable
from rocsteady.core.ids.deduplicator import Deduplicator
from rocsteady.core.join.join import LabelJoin
from rocsteady.core.join.join_settings import JoinSettings
from rocsteady.core.join.matching import Arrivals, LabelMatcher
from rocsteady.core.join.matching_state import Held
from rocsteady.core.join.state import JoinState
from rocsteady.core.learning.aum.learner import AumLearner
from rocsteady.core.learning.polynomial.learner import PolynomialAucLearner
from rocsteady.core.measures.polynomial_auc import PolynomialAuc
from rocsteady.core.pairs.evaluator import PairEvaluator
from rocsteady.core.pairs.pair_settings import PairSettings
from rocsteady.core.pairs.table import PairTable, PairTableSettings
from rocsteady.core.prequential.fold import PrequentialFold
from rocsteady.core.prequential.fold_settings import PrequentialSettings
from rocsteady.core.prequential.folds import Folds
from rocsteady.core.prequential.learners import LearnerSpec
from rocsteady.core.prequential.wire import own_record, shared_record, unpack_learner
from rocsteady.core.rows.columns import INTEGER_COLUMNS
from rocsteady.core.settings.against import Against
from rocsteady.core.settings.evaluator import EvaluatorSettings
from rocsteady.core.settings.table import DEDUPLICATOR, IDLE, Shards, TableSettings
from rocsteady.core.settings.windows import EveryEvents, parse_every, parse_window
from rocsteady.core.shard import parts as snapshot_parts
from rocsteady.core.sketches import wire as sketch_wire
from rocsteady.core.sketches.auc_sketch import AucSketch
from rocsteady.core.state.checkpoint import Checkpoint, ReaderPosition
from rocsteady.core.state.export import ExportingMachine
from rocsteady.core.state.exported import ShardState, WaitingState
from rocsteady.core.state.reshard import resharded, resharded_joins
from rocsteady.core.state.take_up import join_taken_up, taken_up
from rocsteady.core.table.table import EvaluatorTable
from rocsteady.pipelines.state import _described
from rocsteady.transforms.evaluate.shards import RowsCoder
from rocsteady.transforms.prequential.folds import FoldOutputCoder
from rocsteady.transforms.sources.streams.offsets import FilePlace, FolderPlace, Position, ReaderState
from rocsteady.transforms.state.folder import EVALUATORS, MANIFEST, Step, read_export, write_state
from rocsteady.transforms.state.folder import JOIN as JOIN_STEP

from tests.support.pages.fold_reports import SETTINGS as COMPARED
from tests.support.pages.fold_reports import reports_of
from tests.support.stored.class_bytes import (
    class_batch,
    class_evaluator_samples,
    class_join_samples,
    class_labels,
    class_packets,
    class_predictions,
    class_rows,
    class_table_samples,
)
from tests.support.stored.class_bytes import use_evaluator as use_class_evaluator

SECOND = 1_000_000
PACKAGE = Path(rs.__file__).parent


class Form(NamedTuple):
    """A kind of bytes.

    samples  makes some of them
    read     reads them
    use      does with the result what a job does, as far as it gets; a function of (result, bytes)
    """

    samples: Callable[[], list[bytes]]
    read: Callable[[bytes], Any]
    use: Callable[[Any, bytes], object] = lambda result, data: (result, data)


def in_the_package() -> Iterator[str]:
    """Yield the names of all functions that read bytes, as module:function or module:Class.method."""
    for folder in ("core", "transforms", "pipelines"):
        for path in sorted((PACKAGE / folder).rglob("*.py")):
            module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef):
                    names = [f"{node.name}.{each.name}" for each in node.body if _reads(each)]
                else:
                    names = [node.name] if _reads(node) else []
                yield from (f"{module}:{name}" for name in names)


def _reads(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef) and (
        node.name in ("from_bytes", "unpack", "decode", "own_record", "read_export")
        or node.name.startswith("unpack_")
    )


# ---- samples


def batch(start=0, count=40, partition=0, sequence=0, ids=True, classes=False, weights=False):
    numbers = np.arange(start, start + count)
    names = ["cat", "dog", "ü"]
    return EventBatch(
        models=TextColumn.of([f"m{number % 3}" for number in numbers]),
        scores=(numbers * 7 % 11) / 10,
        labels=np.full(count, -1, np.int8) if classes else (numbers % 3 == 0).astype(np.int8),
        times=numbers * SECOND,
        ids=IdColumn.of([f"e{number}" for number in numbers]) if ids else None,
        weights=1.0 + numbers % 4 if weights else None,
        label_classes=TextColumn.of([names[number % 3] for number in numbers]) if classes else None,
        predicted=TextColumn.of([names[number % 2] for number in numbers]) if classes else None,
        slices=(("site", TextColumn.of([["a", "b"][number % 2] for number in numbers])),),
        positions=numbers.astype(np.int64),
        source="s.csv",
        head=PacketHead(partition, sequence, int(numbers[-1]) * SECOND),
    )


def labels(start=0, count=30, sequence=0):
    numbers = np.arange(start, start + count)
    return LabelBatch(
        IdColumn.of([f"e{number}" for number in numbers]),
        numbers * SECOND + 5, (numbers % 2).astype(np.int8), source="l.csv",
        head=PacketHead(1, sequence, int(numbers[-1]) * SECOND),
    )  # fmt: skip


def evaluator_settings():
    for window, every, more in (
        ("last:16", "5", {}),
        ("all", "7", {}),
        ("last:15s", "4s", {"order": "time:0s"}),
        ("adaptive", "5", {}),
        ("fading:1000", "5", {}),
    ):
        yield EvaluatorSettings(window=parse_window(window), every=parse_every(every), **more)


def evaluator_samples():
    found = []
    for settings in evaluator_settings():
        for classes, weights in ((False, False), (True, False), (False, True)):
            one = ModelEvaluator(settings, model="m", slice="")
            events = batch(count=60, classes=classes, weights=weights)
            columns = {"times": events.times} if settings.needs_times else {}
            if weights:
                columns["weights"] = events.weights
            if classes and str(settings.window).startswith("adaptive"):
                continue
            if classes:
                columns |= {"label_classes": events.label_classes, "predicted": events.predicted}
            one.apply(events.scores, events.labels, **columns)
            found.append(one.to_bytes())
    return found


def tables():
    more = {"shards": 2, "slices": (("site",),)}
    yield TableSettings(EvaluatorSettings(window=parse_window("last:16"), every=EveryEvents(5)), **more)
    timed = EvaluatorSettings(window=parse_window("last:15s"), every=parse_every("4s"), order="time:2s")
    yield TableSettings(timed, deduplicate=5 * SECOND, idle_ttl=3 * SECOND, **more)
    arriving = EvaluatorSettings(window=parse_window("fading:100"), every=EveryEvents(5), order="arrival")
    yield TableSettings(arriving, shards=Shards(2, ["m1"]))


def fed(machine, records):
    for record in records:
        machine.apply(record)
    return machine


def packets():
    return [
        batch().pack(),
        batch(40, 30, sequence=2).pack(),
        Heartbeat("s.csv", 0, 2, 1, 35 * SECOND, 40 * SECOND).pack(),
        batch(partition=1).pack(),
    ]


def later_packets():
    return [
        batch(70, 30, sequence=1).pack(),
        EndOfPartition("s.csv", 0, 2, 3, 100 * SECOND).pack(),
        EndOfPartition("s.csv", 1, 2, 1, 40 * SECOND).pack(),
    ]


def table_samples():
    made = [fed(EvaluatorTable(settings), packets()).to_bytes() for settings in tables()]
    return [*made, *class_table_samples()]


JOIN = JoinSettings(20 * SECOND, 5 * SECOND, shards=2, evaluator_shards=3, deduplicate=10 * SECOND)


def join_packets():
    return [
        PredictionBatch(replace(batch(), sources=None)).pack(),
        labels().pack(),
        Heartbeat("s.csv", 0, 2, 1, 30 * SECOND, 40 * SECOND).pack(),
        Heartbeat("l.csv", 1, 2, 1, 25 * SECOND, 30 * SECOND).pack(),
    ]


def join_samples():
    return [fed(LabelJoin(JOIN, 0), join_packets()).to_bytes(), *class_join_samples(JOIN)]


def matcher():
    made = LabelMatcher(20 * SECOND, 5 * SECOND, "first")
    numbers = np.arange(30)
    ids = IdColumn.of([f"e{number}" for number in numbers])
    none = Arrivals(IdColumn.of([]), np.zeros(0, np.int64), np.zeros(0, np.int64))
    made.advance(Arrivals(ids, numbers * SECOND, numbers), none, clock=30 * SECOND)
    made.advance(
        none,
        Arrivals(ids.take(numbers[20:]), numbers[20:] * SECOND + 10 * SECOND, numbers[20:]),
        clock=40 * SECOND,
    )
    return made


def shard_states():
    return [
        ShardState(
            "id", "folder", step, 0, 2, {0: ("s.csv", '{"offset": 4}'), 1: ("t.csv", "null")}, data
        ).pack()
        for step, data in (("evaluators", table_samples()[0]), ("join", join_samples()[0]))
    ]


def exporting(settings):
    return ExportingMachine(
        EvaluatorTable(settings), lambda data: EvaluatorTable.from_bytes(data, settings), lambda: (0, 2)
    )


def waiting_samples():
    found = []
    for settings in list(tables())[:2]:
        machine = exporting(settings)
        fed(machine, [batch().pack(), StateMarker("s.csv", 0, 2, 1, "id", "folder", '{"a": [1]}').pack()])
        fed(machine, [batch(40, sequence=2).pack(), batch(partition=1, sequence=1).pack()])
        found.append(machine.to_bytes())
    return found


def sketch(max_bytes=2_000):
    made = AucSketch(max_bytes)
    made.add(np.arange(300) % 2, np.arange(300) * 7919 % 211 / 256)
    return made


def polynomial():
    made = PolynomialAuc(4)
    made.add(np.arange(50) % 2, (np.arange(50) * 7 % 13) / 13)
    return made


def idle_samples():
    snapshot = Snapshot.unpack(table_samples()[1])
    return [snapshot.beside[IDLE]]


def deduplicator_samples():
    return [Snapshot.unpack(table_samples()[1]).beside[DEDUPLICATOR]]


def adwin():
    made = Adwin(0.1)
    made.update(np.repeat([0.0, 1.0], 60))
    return made


RULES = [rs.parse_alert(text) for text in ("auc < 0.6 for 3 rows", "auc drops by 0.01 against 2 rows")]


def watched(start=0, count=8, columns=None):
    table = EvaluatorTable(next(tables()))
    rows = [row for rows in table.apply(batch(start, 90).pack()) for row in rows]
    return WatchedRows.of_records(rows[:count], columns or AlertTable(RULES).columns)


def alert_samples():
    rows = watched(count=20)
    capped = AlertTable([rs.parse_alert("auc < 0.6 where model like '*' at most 1 a day")])
    timed = watched(count=20, columns=capped.columns)
    timed.integers[:, INTEGER_COLUMNS.index("time")] = 7
    return [
        fed(AlertTable(RULES), [rows.take(np.arange(1, len(rows))).pack()]).to_bytes(),
        fed(capped, [timed.pack()]).to_bytes(),
    ]


def evidence_samples():
    found = []
    for bound, gap in ((0.8, None), (0.8, "3s"), ("1970-01-01T00:00:10..1970-01-01T00:01 less 0.02", None)):
        made = EvidenceBelow(bound, blocks=1, gap=gap)
        numbers = np.arange(50)
        for start in (0, 50):
            made.update(numbers % 3 == 0, numbers * 7 % 11, times=numbers + start)
            found.append(made.to_bytes())
    return found


def pair_settings():
    for window in (rs.LastEvents(7), rs.LastDuration("9s"), rs.Fading(3), rs.AllEvents()):
        yield PairSettings(window, rs.EveryEvents(4), exact=100)


def pair_samples():
    found = []
    for settings in pair_settings():
        pair = PairEvaluator(settings, model="m", against="n", slice="")
        numbers = np.arange(130)
        pair.update(numbers % 2, numbers * 7 % 11, numbers * 5 % 9, times=numbers)
        found.append(pair.to_bytes())
    return found


PAIRS = PairTableSettings(
    Against("m1", within=3 * SECOND),
    next(pair_settings()),
    slices=((batch().slices[0][0],),),
    order="time:1s",
)


def pair_packets():
    packet = batch(count=90)
    ids = IdColumn.of([f"e{number // 3}" for number in range(90)])
    packet = replace(packet, ids=ids, labels=(np.arange(90) // 3 % 2).astype(np.int8))
    return [packet.pack(), Heartbeat("s.csv", 0, 2, 1, 60 * SECOND, 89 * SECOND).pack(),
            Heartbeat("t.csv", 1, 2, 0, 60 * SECOND, 89 * SECOND).pack()]  # fmt: skip


def use_pair_table(table, data):
    fed(table, [EndOfPartition("s.csv", 0, 2, 1).pack(), EndOfPartition("t.csv", 1, 2, 0).pack()])
    return table.to_bytes()


def use_evidence(made, data):
    numbers = np.arange(90)
    made.update(numbers % 2, numbers * 5 % 7, times=40 + numbers)
    return made.since, made.block_events, made.to_bytes()


def use_pair(pair, data):
    numbers = np.arange(9)
    pair.update(numbers % 2, numbers, numbers % 3, times=200 + numbers)
    return pair.now(), pair.finish(), pair.to_bytes()


def fold_samples():
    reports = [report for report in reports_of(2, 10) if report.fold == 1]
    return [fed(FoldPairs(COMPARED, 1), [report.pack() for report in reports[:-1]]).to_bytes()]


def paired():
    reports = [report for report in reports_of(2, 10) if report.fold == 1]
    return PairedFold.of(reports[:3])


def comparison_samples():
    return [fed(LearnerComparisons(COMPARED), [paired().pack()]).to_bytes()]


PREQUENTIAL = PrequentialSettings(
    (LearnerSpec.parse("majority:20"), LearnerSpec.parse("persistent", noise=0.1)),
    Folds("bootstrap", 2),
    EvaluatorSettings(window=parse_window("last:16"), every=EveryEvents(10)),
)


def prequential_batch():
    numbers = np.arange(60)
    return EventBatch(
        models=TextColumn(np.zeros(60, np.int32), ("",)), scores=np.zeros(60),
        labels=(numbers % 3 == 0).astype(np.int8), times=numbers * SECOND,
        ids=IdColumn.of([f"e{number}" for number in numbers]), features=(("x", numbers / 7),),
        source="s", head=PacketHead(sequence=0, high_water=60 * SECOND),
    )  # fmt: skip


def prequential_samples():
    return [
        fed(PrequentialFold(PREQUENTIAL, learner, 0), [prequential_batch().pack()]).to_bytes()
        for learner in (0, 1)
    ]


def learner_samples():
    found = []
    for spec in PREQUENTIAL.learners:
        learner = spec.make(PREQUENTIAL.task, 1, 50)
        found.append(learner.to_bytes())
    return found


def taught(learner, count):
    for i in range(count):
        learner.learn_one({"x": float(i % 5), "colour": "ab"[i % 2]}, i % 3 == 0)
    return learner


# ---- what is done with what was read


def use_learner(learner, _):
    _ = learner.predict_proba_one({"x": 1.0, "colour": "a"})
    return taught(learner, 9).to_bytes()


def use_table(table, data):
    use_described(None, data)
    snapshot = Snapshot.unpack(data)
    _ = (
        [each.pack() for each in resharded([snapshot] * min(table.settings.shards or 1, 4), 3)],
        taken_up(data, table.settings),
    )
    has_classes = table.settings.classes is not None
    later = class_packets(table.settings, later=True) if has_classes else later_packets()
    return fed(table, later).to_bytes()


def read_table(data):
    return EvaluatorTable.from_bytes(data, Snapshot.unpack(data).settings)


def use_join(join, data):
    use_described(None, data)
    state, meaning = JoinState.unpack(data)
    _ = join_taken_up(data, JOIN), resharded_joins([state], meaning, 3)
    fed(join, later_labels(state))
    return join.to_bytes()


def later_labels(state):
    """Return records for a join of this state: labels of the kind that the join has, and a clock."""
    first = next(iter(map(LabelBatch.unpack, state.coming_labels)), state.labels)
    later = labels(30, sequence=1)
    if first is not None and (first.class_labels is not None or first.label_classes is not None):
        later = class_labels(first.class_labels is not None, 30, sequence=1)
    return [later.pack(), Clock(60 * SECOND).pack()]


def use_index(index, data):
    part = b"".join((b"\xff" * 4, index.id, bytes(2), bytes(100)))
    for parts in ([part[:9]], [part, part]):
        with pytest.raises(CorruptBytesError):
            snapshot_parts.joined(index, parts, "0")
    return snapshot_parts.joined(index, [part], "0")


def use_evaluator(evaluator, data):
    use_described(None, data)
    events = batch(100, 50)
    times = events.times if evaluator.settings.needs_times else None
    with suppress(InputError):  # it takes classes
        evaluator.apply(events.scores, events.labels, times)
    evaluator.finish()
    return evaluator.to_bytes()


def use_described(result, data):
    return _described(data)


def use_matcher(made, data):
    numbers = np.arange(40, 60)
    ids = IdColumn.of([f"e{number - 25}" for number in numbers])
    both = Arrivals(ids, numbers * SECOND, numbers), Arrivals(ids, numbers * SECOND + 3, numbers)
    made.advance(*both, clock=max(made.clock, 65 * SECOND))
    made.kept()
    return made.to_bytes()


def use_sketch(made, data):
    made.merge(sketch())
    made.add([0, 1], [0.5, 0.25])
    return made.to_bytes(), made.bounds(), made.h_bounds()


def use_polynomial(made, data):
    made.add([0, 1], [0.5, 0.25])
    return made.estimate(), made.to_bytes()


def use_deduplicator(made, data):
    numbers = np.arange(50)
    ids = IdColumn.of([f"e{number}" for number in numbers])
    made.judge(TextColumn.of(["m1"] * 50), ids, numbers * SECOND)
    return made.to_bytes(), Deduplicator.merged([made, made])


def use_adwin(made, data):
    made.update(np.repeat([0.0, 1.0], 100))
    return made.to_bytes()


def use_alerts(table, data):
    rows = watched(50, columns=table.columns)
    return fed(table, [rows.pack(), EndOfInput().pack()]).to_bytes(), table.describe()


def fleet():
    return FleetTable(RollUpSettings(("models", "slices")))


def of_members():
    table = EvaluatorTable(next(tables()))
    rows = [row for rows in table.apply(batch(0, 90).pack()) for row in rows]
    placed = [row._replace(due=number * SECOND) for number, row in enumerate(rows)]
    return MemberRows.of_records(placed, fleet().settings)


def fleet_samples():
    words = (Settled(0, 2, NO_TIME, 9 * SECOND), Settled(1, 2, NO_TIME, 4 * SECOND), Settled(1, 2, 5, 6))
    fed_once = [replace(of_members(), word=words[0]).pack()]
    fed_once += [replace(MemberRows.of_records([], fleet().settings), word=word).pack() for word in words[1:]]
    return [fed(fleet(), fed_once).to_bytes(), fed(fleet(), [of_members().pack()]).to_bytes()]


def use_fleet(table, data):
    return fed(table, [of_members().pack(), EndOfInput().pack()]).to_bytes(), table.describe()


def use_members(rows, data):
    return fed(fleet(), [data, EndOfInput().pack()])


def use_rows(rows, data):
    return fed(AlertTable(RULES), [rows.pack()])


def use_waiting(machine, data):
    use_described(None, data)
    fed(machine, [StateMarker("s.csv", 1, 2, 0, "id", "folder").pack(), batch(partition=1).pack()])
    return machine.to_bytes()


def use_record(record, data):
    for machine in (*map(exporting, tables()), LabelJoin(JOIN, 0)):
        with suppress(RocsteadyError):  # it takes records of another kind
            fed(machine, [data])
    return record.pack()


def read_fold(data):
    try:
        return PrequentialFold.from_bytes(data, PREQUENTIAL, 0, 0)
    except RocsteadyError:
        return PrequentialFold.from_bytes(data, PREQUENTIAL, 1, 0)


def use_fold(fold, data):
    fed(fold, [EndOfPartition("s", 0, 1, 1, 60 * SECOND).pack()])
    return fold.to_bytes()


def use_pairs(pairs, data):
    fed(pairs, [report.pack() for report in reports_of(3, 10) if report.fold == 1])
    return pairs.to_bytes()


def use_report(report, data):
    return fed(FoldPairs(COMPARED, 1), [report.pack()])


def use_comparisons(made, data):
    for fold in range(3):
        made.apply(replace(paired(), fold=fold).pack())
    return made.to_bytes()


def rows_samples():
    made = [*EvaluatorTable(next(tables())).apply(batch().pack()), *class_rows()]
    return [RowsCoder().encode(rows) for rows in made]


def output_samples():
    machine = PrequentialFold(PREQUENTIAL, 0, 0)
    found = [each for each in machine.apply(prequential_batch().pack()) if hasattr(each, "reports")]
    return [FoldOutputCoder().encode(each) for each in found]


def manifest_samples():
    """Return the manifest of an export whose writer's clock and random digits were all zeros."""
    settings = {EVALUATORS: next(tables()).meaning(), JOIN_STEP: JOIN.meaning()}
    steps = [Step(name, 1, meaning) for name, meaning in settings.items()]
    with tempfile.TemporaryDirectory() as folder:
        for step, state in ((EVALUATORS, table_samples()[0]), (JOIN_STEP, join_samples()[0])):
            positions = {0: ("s.csv", '{"offset": 4}')}
            write_state(ShardState("id", "folder", step, 0, 1, positions, state).pack(), folder, steps)
        said = (Path(folder) / MANIFEST).read_text()
    said = re.sub(r"shards-id-[0-9a-f]{8}", "shards-id-00000000", said)
    return [re.sub(r'"time": "[^"]*"', '"time": "2026-01-31T12:00:00Z"', said).encode()]


def read_manifest(data):
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / MANIFEST).write_bytes(data)
        return replace(read_export(folder), folder="state")


def reader_samples():
    place = FolderPlace("b.jsonl", FilePlace(70, False, 3, True), frozenset(["a.jsonl", "ü.csv"]))
    more = {"name": "t[0]", "origin": "Kafka cluster A, topic id B", "known": 1, "added": [Position(1, 5, 6)]}
    return [
        ReaderState(7, [3, 4], 5, 6, place=place.said()).to_bytes(),
        ReaderState(7, [3], **more).to_bytes(),
    ]


def record_samples():
    return [
        Heartbeat("s.csv", 0, 2, 1, 5, 6).pack(),
        EndOfPartition("s.csv", 0, 2, 1, 6).pack(),
        Clock(7).pack(),
        EndOfInput().pack(),
        StateMarker("s.csv", 0, 2, 1, "id", "folder", '{"offset": 4}').pack(),
        StateImport("id", table_samples()[0]).pack(),
        *packets(),
        *join_packets(),
    ]


def checkpoint():
    position = ReaderPosition("scored[0]", "Kafka cluster a", '{"next": 7}', "model", None)
    counted = {"counts": {"events_read": 7}, "reasons": [["late", "later than allowed", 2, 0]]}
    machines = {"evaluators": table_samples()[0], "pairs": b""}
    return Checkpoint("0.1.0", "2026-01-31T12:00:00Z", {"window": "last:40"}, (position,), counted, machines)


def use_checkpoint(read, data):
    return read.pack(), read.describe(), [position.offset for position in read.readers]


BETWEEN_STAGES = {
    "transforms.events.batches:RecordBatchCoder.decode",
    "transforms.sources.streams.read:_MarkCoder.decode",
}
"""Left out: Arrow's own bytes between two stages of one job, and a wrapper that reads nothing."""

_OF_PACKETS = "core.events.batch:PacketBatch.unpack"
INHERITED = {
    "core.events.batch:EventBatch.unpack": _OF_PACKETS,
    "core.events.batch:LabelBatch.unpack": _OF_PACKETS,
    "core.events.batch:LabelRows.unpack": _OF_PACKETS,
}
"""The function that defines a reader which several classes inherit."""

FORMS: dict[str, Form] = {
    "core.evaluator.adwin:Adwin.from_bytes": Form(lambda: [adwin().to_bytes()], Adwin.from_bytes, use_adwin),
    "core.state.checkpoint:Checkpoint.unpack": Form(
        lambda: [checkpoint().pack()], Checkpoint.unpack, use_checkpoint
    ),
    "core.alerts.alert_rows:WatchedRows.unpack": Form(
        lambda: [watched().pack()], WatchedRows.unpack, use_rows
    ),
    "core.evidence.below:EvidenceBelow.from_bytes": Form(
        evidence_samples, EvidenceBelow.from_bytes, use_evidence
    ),
    "core.fleet.members:MemberRows.unpack": Form(
        lambda: [of_members().pack()], MemberRows.unpack, use_members
    ),
    "core.fleet.table:FleetTable.from_bytes": Form(
        fleet_samples, lambda data: FleetTable.from_bytes(data, fleet().settings), use_fleet
    ),
    "core.pairs.evaluator:PairEvaluator.from_bytes": Form(pair_samples, PairEvaluator.from_bytes, use_pair),
    "core.pairs.table:PairTable.from_bytes": Form(
        lambda: [fed(PairTable(PAIRS), pair_packets()).to_bytes()],
        lambda data: PairTable.from_bytes(data, PAIRS),
        use_pair_table,
    ),
    "core.alerts.table:AlertTable.from_bytes": Form(alert_samples, AlertTable.from_bytes, use_alerts),
    "core.learning.aum.learner:AumLearner.from_bytes": Form(
        lambda: [taught(AumLearner(8, 4), 14).to_bytes()], AumLearner.from_bytes, use_learner
    ),
    "core.sketches.auc_sketch:AucSketch.from_bytes": Form(
        lambda: [sketch().to_bytes(), sketch(1024).to_bytes()], AucSketch.from_bytes, use_sketch
    ),
    "core.ids.deduplicator:Deduplicator.from_bytes": Form(
        deduplicator_samples, Deduplicator.from_bytes, use_deduplicator
    ),
    "core.table.table:EvaluatorTable.from_bytes": Form(table_samples, read_table, use_table),
    "core.events.batch:EventBatch.unpack": Form(
        lambda: [
            batch().pack(),
            batch(classes=True, weights=True).pack(),
            class_batch(weights=True).pack(),
            class_batch(several=True).pack(),
        ],
        EventBatch.unpack,
        use_record,
    ),
    "core.compare.fold_pairs:FoldPairs.from_bytes": Form(
        fold_samples, lambda data: FoldPairs.from_bytes(data, COMPARED, 1), use_pairs
    ),
    "core.compare.fold_report:FoldReport.unpack": Form(
        lambda: [report.pack() for report in reports_of(1, 10)[3:5]], FoldReport.unpack, use_report
    ),
    "core.evaluator.state:IdleState.unpack": Form(idle_samples, IdleState.unpack),
    "core.events.batch:LabelBatch.unpack": Form(
        lambda: [labels().pack(), class_labels(False).pack(), class_labels(True).pack()],
        LabelBatch.unpack,
        use_record,
    ),
    "core.events.batch:LabelRows.unpack": Form(
        lambda: [LabelRows.of(each).pack() for each in (labels(), class_labels(False), class_labels(True))],
        LabelRows.unpack,
    ),
    "core.events.batch:PredictionBatch.unpack": Form(
        lambda: [*join_packets()[:1], class_predictions(False).pack(), class_predictions(True).pack()],
        PredictionBatch.unpack,
        use_record,
    ),
    "core.join.join:LabelJoin.from_bytes": Form(
        join_samples, lambda data: LabelJoin.from_bytes(data, JOIN, 0), use_join
    ),
    "core.join.state:JoinState.unpack": Form(join_samples, JoinState.unpack, use_described),
    "core.join.matching:LabelMatcher.from_bytes": Form(
        lambda: [matcher().to_bytes()], LabelMatcher.from_bytes, use_matcher
    ),
    "core.join.matching_state:Held.unpack": Form(lambda: [matcher().to_bytes()], Held.unpack),
    "core.compare.learners:LearnerComparisons.from_bytes": Form(
        comparison_samples, lambda data: LearnerComparisons.from_bytes(data, COMPARED), use_comparisons
    ),
    "core.prequential.wire:unpack_learner": Form(learner_samples, lambda data: unpack_learner("", data, {})),
    "core.classes.evaluator:MulticlassEvaluator.from_bytes": Form(
        class_evaluator_samples, MulticlassEvaluator.from_bytes, use_class_evaluator
    ),
    "core.classes.state:ClassState.unpack": Form(class_evaluator_samples, ClassState.unpack),
    "core.evaluator.evaluator:ModelEvaluator.from_bytes": Form(
        evaluator_samples, ModelEvaluator.from_bytes, use_evaluator
    ),
    "core.compare.fold_report:PairedFold.unpack": Form(
        lambda: [paired().pack()],
        PairedFold.unpack,
        lambda found, _: LearnerComparisons(COMPARED).apply(found.pack()),
    ),
    "core.measures.polynomial_auc:PolynomialAuc.from_bytes": Form(
        lambda: [polynomial().to_bytes()], PolynomialAuc.from_bytes, use_polynomial
    ),
    "core.learning.polynomial.learner:PolynomialAucLearner.from_bytes": Form(
        lambda: [taught(PolynomialAucLearner(4), 6).to_bytes()], PolynomialAucLearner.from_bytes, use_learner
    ),
    "core.prequential.fold:PrequentialFold.from_bytes": Form(prequential_samples, read_fold, use_fold),
    "core.events.records:unpack_record": Form(record_samples, unpack_record, use_record),
    "core.sketches.wire:unpack": Form(lambda: [sketch().to_bytes()], sketch_wire.unpack),
    "core.evaluator.snapshot:Snapshot.unpack": Form(table_samples, Snapshot.unpack, use_described),
    "core.shard.parts:Index.unpack": Form(
        lambda: [snapshot_parts.split(bytes(100))[0]._replace(id=bytes(range(16))).pack()],
        snapshot_parts.Index.unpack,
        use_index,
    ),
    "core.state.export:ExportingMachine.from_bytes": Form(
        waiting_samples,
        lambda data: ExportingMachine.from_bytes(
            data, lambda: EvaluatorTable(next(tables())), read_table, lambda: (0, 2)
        ),
        use_waiting,
    ),
    "core.state.exported:ShardState.unpack": Form(shard_states, ShardState.unpack, use_described),
    "core.state.exported:WaitingState.unpack": Form(waiting_samples, WaitingState.unpack, use_described),
    "transforms.prequential.folds:FoldOutputCoder.decode": Form(output_samples, FoldOutputCoder().decode),
    "transforms.evaluate.shards:RowsCoder.decode": Form(rows_samples, RowsCoder().decode),
    "transforms.sources.streams.offsets:ReaderState.from_bytes": Form(reader_samples, ReaderState.from_bytes),
    "transforms.state.folder:read_export": Form(manifest_samples, read_manifest),
    "core.prequential.wire:own_record": Form(
        lambda: [shared_record(prequential_batch().pack())], own_record, lambda made, _: unpack_record(made)
    ),
}
"""By the name that `in_the_package` gives it."""
