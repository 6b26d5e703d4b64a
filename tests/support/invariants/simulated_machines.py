"""Real machines for the simulator of failing work: joins, tables in order of time, pairs, and roll-ups.

Their clock is the runner's, so that events may be cut into records otherwise each time. Roll-ups also hear
the words of shards.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import rocsteady as rs
from rocsteady.core.events.batch import EventBatch, LabelBatch, PredictionBatch
from rocsteady.core.events.columns import IdColumn, TextColumn
from rocsteady.core.events.records import Clock, EndOfInput, unpack_record
from rocsteady.core.events.rejected import Rejected
from rocsteady.core.events.times import NO_TIME
from rocsteady.core.fleet.members import MAGIC as MEMBERS_MAGIC
from rocsteady.core.fleet.members import NO_WORD, MemberRows, Settled
from rocsteady.core.fleet.roll_up_settings import RollUpSettings
from rocsteady.core.fleet.table import FleetTable
from rocsteady.core.join.join_settings import JoinSettings
from rocsteady.core.pairs.pair_settings import PairSettings
from rocsteady.core.pairs.table import PairTableSettings
from rocsteady.core.rows.columns import COLUMNS
from rocsteady.core.settings.against import Against
from rocsteady.core.settings.table import TableSettings
from rocsteady.core.shard.machine import MachineFactory, Pane
from rocsteady.transforms.evaluate.compare_pairs import PairFactory
from rocsteady.transforms.evaluate.join_labels import JoinFactory
from rocsteady.transforms.evaluate.pack_rows import RowTables
from rocsteady.transforms.evaluate.shards import TableFactory

from tests.support.invariants.simulator import InjectedError, Item

ROW = rs.MeasureRow._make((None,) * len(COLUMNS))._replace(
    slice="", config="c", positives=200.0, negatives=800.0
)


class Record(NamedTuple):
    """An event, a prediction or a label; no two of a key have one time or position."""

    position: int
    time: int
    id: str | None
    model: str
    score: float
    label: int


class Faulty:
    """A machine that may fail: before it does anything, when it is half through a batch, or behind that."""

    def __init__(self, machine: Any, at: Callable[[str], None]) -> None:
        self._machine, self._at = machine, at

    def apply(self, record: bytes) -> list[Any]:
        self._at("before apply")
        try:
            self._at("in apply")
        except InjectedError:
            self._machine.apply(_half(record))
            raise
        outputs: list[Any] = self._machine.apply(record)
        self._at("after apply")
        return outputs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._machine, name)


def _half(record: bytes) -> bytes:
    """Return the first half of a record of many; any other record whole."""
    if record[:4] == MEMBERS_MAGIC:
        rows = MemberRows.unpack(record)
        half = np.arange(len(rows) // 2)
        fields = ("key_codes", "text_codes", "integers", "numbers")
        return replace(rows, word=NO_WORD, **{name: getattr(rows, name)[half] for name in fields}).pack()
    content = unpack_record(record)
    if isinstance(content, EventBatch | PredictionBatch | LabelBatch):
        return content.take(np.arange(len(content) // 2)).pack()
    return record


@dataclass(frozen=True)
class FaultyFactory:
    """Makes machines that may fail."""

    factory: MachineFactory[Any]
    at: Callable[[str], None]

    def warm_up(self) -> None:
        self.factory.warm_up()

    def new(self, pane: Pane | None, key: str) -> Any:
        return Faulty(self.factory.new(pane, key), self.at)

    def load(self, snapshot: bytes, pane: Pane | None, key: str) -> Any:
        return Faulty(self.factory.load(snapshot, pane, key), self.at)


class _RealMachines:
    rooms = (0, 30_000, 1 << 30)
    batched: tuple[str, ...] = ("event",)
    _factory: MachineFactory[Any]

    def factory(self, at: Callable[[str], None] | None) -> MachineFactory[Any]:
        return self._factory if at is None else FaultyFactory(self._factory, at)

    def items(self, rng: random.Random) -> list[Item]:
        items: list[Item] = []
        clock = 0
        for position in range(rng.randint(1, 60)):
            if rng.random() < 0.25:
                clock += rng.randint(1, 15)
                items.append(("clock", clock))
            time = 1_000 * (clock + rng.randint(-3, 20)) + position
            kind = rng.choice(self.batched)
            id_ = rng.choice("abcd" if kind != "event" else ("a", "b", None, f"{position}"))
            record = Record(position, time, id_, rng.choice("mn"), rng.random(), rng.randint(0, 1))
            items.append((kind, record))
        return [*items, ("end", 0)]

    def record(self, kind: str, values: Sequence[Any]) -> bytes:
        if kind == "end":
            return EndOfInput().pack()
        if kind == "clock":
            return Clock(1_000 * values[0]).pack()
        columns = _columns(values)
        if kind == "prediction":
            return PredictionBatch.of(**columns).pack()
        labels = np.array([record.label for record in values], np.int8)
        if kind == "event":
            return EventBatch(labels=labels, **columns).pack()
        return LabelBatch(columns["ids"], columns["times"], labels, positions=columns["positions"]).pack()

    def told(self, output: Any) -> Iterable[tuple[Any, Any]]:
        """Yield the refused records, each by its place."""
        records = output.records
        positions = records.positions.tolist()
        for position, reason in zip(positions, output.details.to_list(), strict=True):
            yield (isinstance(records, LabelBatch), position), (output.kind, reason)


class Tables(_RealMachines):
    """Evaluators in order of time; some of them leave out what came before."""

    def __init__(self, rng: random.Random) -> None:
        evaluator = rs.EvaluatorSettings(
            window=rng.choice([rs.LastEvents(4), rs.LastDuration("12ms")]),
            every=rng.choice([rs.EveryEvents(2), rs.EverySeconds("5ms")]),
            order="time",
            measures=("auc", "kappa_m"),
        )
        deduplicate, idle_ttl = rng.choice([None, 9_000]), rng.choice([None, 8_000])
        self._factory = TableFactory(TableSettings(evaluator, deduplicate=deduplicate, idle_ttl=idle_ttl))

    def told(self, output: Any) -> Iterable[tuple[Any, Any]]:
        if isinstance(output, Rejected):
            yield from super().told(output)
            return
        for row in output:
            yield (row.model, row.row), row


class Joins(_RealMachines):
    """Joins of labels. What evaluators are told is known by (shard, number of the packet)."""

    batched = ("prediction", "label")

    def __init__(self, rng: random.Random) -> None:
        second = rng.choice(["first", "last", "dead-letter"])
        self._factory = JoinFactory(JoinSettings(12_000, rng.choice([None, 0, 3_000]), second, 3, 2))

    def told(self, output: Any) -> Iterable[tuple[Any, Any]]:
        if isinstance(output, Rejected):
            yield from super().told(output)
            return
        shard, content = output[0], unpack_record(output[1])
        if isinstance(content, EventBatch):
            columns = (content.ids, content.models, content.scores, content.times, content.labels)
            rows = [tuple(column) for column in zip(*(_values(column) for column in columns), strict=True)]
            yield (shard, content.head.sequence), sorted(rows)
        else:
            said = tuple(vars(content).items())
            yield (shard, type(content).__name__, said), said


class Pairs(_RealMachines):
    """Comparisons of a model with a champion, in order of time; some ids come again, some alone."""

    def __init__(self, rng: random.Random) -> None:
        pairs = PairSettings(
            window=rng.choice([rs.LastEvents(4), rs.LastDuration("12ms"), rs.Fading(3)]),
            every=rng.choice([rs.EveryEvents(2), rs.EverySeconds("5ms")]),
        )
        against = Against("n", within=rng.choice([None, 0, 6_000]))
        self._factory = PairFactory(PairTableSettings(against, pairs, order="time"))

    def told(self, output: Any) -> Iterable[tuple[Any, Any]]:
        if isinstance(output, Rejected):
            yield from super().told(output)
        else:
            yield (output.model, output.row), output


class RollUps(_RealMachines):
    """Roll-ups of three models with null, late and repeated rows; shards or a runner close grid points."""

    rooms = (0, 3_000, 1 << 30)
    batched = ("row",)

    def __init__(self, rng: random.Random) -> None:
        self._settings = RollUpSettings(("models", "[mn]*"), rng.choice([0, 3_000, 1 << 40]))
        self._factory = RowTables(FleetTable, self._settings)

    def items(self, rng: random.Random) -> list[Item]:
        rows: dict[tuple[str, int], Any] = {}
        items: list[Item] = []
        by_words, clock = rng.random() < 0.5, 0
        heard = [NO_TIME, NO_TIME]
        for number in range(rng.randint(1, 60)):
            if rng.random() < 0.3:
                clock += rng.randint(0, 3)
                source = rng.randrange(2)
                if by_words:
                    items.append(("word", Settled(source, 2, heard[source], 1_000 * clock)))
                    heard[source] = 1_000 * clock
                else:
                    items.append(("clock", clock))
            model, due = rng.choice("mno"), 1_000 * (clock + rng.randint(-1, 3))
            auc = rng.choice([None, 1.0, rng.random()])
            low, high = (None, None) if auc is None else (max(0.0, auc - 0.1), min(1.0, auc + 0.1))
            row = ROW._replace(model=model, due=due, auc=auc, auc_low=low, auc_high=high, row=number)
            items.append(("row", rows.setdefault((model, due), row)))
        return [*items, ("end", 0)]

    def record(self, kind: str, values: Sequence[Any]) -> bytes:
        if kind in ("row", "word"):
            rows = MemberRows.of_records(values if kind == "row" else (), self._settings)
            return replace(rows, word=NO_WORD if kind == "row" else values[0]).pack()
        return super().record(kind, values)

    def told(self, output: Any) -> Iterable[tuple[Any, Any]]:
        yield (output.group, output.row), output


def _values(column: Any) -> list[Any]:
    return column.tolist() if isinstance(column, np.ndarray) else column.to_list()


def _columns(records: Sequence[Record]) -> dict[str, Any]:
    return {
        "models": TextColumn.of([record.model for record in records]),
        "scores": np.array([record.score for record in records], np.float64),
        "times": np.array([record.time for record in records], np.int64),
        "ids": IdColumn.of([record.id for record in records]),
        "positions": np.array([record.position for record in records], np.int64),
    }
