"""ComparePairs: takes events of several models, and gives rows of pairs.

Each model is compared with a champion.

Events are packed by the shard of their model before they travel; an event of the champion goes to every
shard. A shard is a `PairTable`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Unpack

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.coders import RowCoder, registry
from apache_beam.utils.windowed_value import WindowedValue

from ...core.errors import ConfigError
from ...core.events.batch import EventBatch
from ...core.events.columns import IdColumn
from ...core.events.records import Batch
from ...core.ids.index import IdIndex
from ...core.ids.sharding import shard_key, split_for_comparisons
from ...core.pairs.pair_settings import PairChoices, settings_of
from ...core.pairs.placements import compare
from ...core.pairs.table import PairTable, PairTableSettings
from ...core.rows.pairs import PairRow
from ...core.settings.against import Against
from ...core.settings.durations import Duration, microseconds, parse_lateness
from ...core.shard.machine import Pane
from ...core.shard.protocol import DEFAULT_CACHE_BYTES
from ..beam.machine import MachineOutputs, RunStateMachine, refuse_merging_windows, timestamp, unchanged
from ..events.dead_letters import DeadLetter, RejectedLetters
from ..events.fields import EventColumns, EventFields, check_keywords, named_fields
from ..sinks.batches import InBatches
from ..sinks.kinds import PAIRS
from ..sources.pack_records import DEAD_LETTERS, PackRecords, single_letters
from .models import order_of_events

registry.register_coder(PairRow, RowCoder)

WITHIN = 86_400_000_000
"""The most microseconds between two events of an id, unless a user says otherwise: a day."""


@dataclass(frozen=True)
class PairFactory:
    """Makes the tables of pairs of a job."""

    settings: PairTableSettings

    def warm_up(self) -> None:
        """Compile the kernels of placements and of ids, or load them from their folder."""
        compare(np.array([0, 1], np.int8), np.zeros(2), np.zeros(2))
        if not self.settings.against.by_record:
            IdIndex().numbers(IdColumn.of(["", "a"]))

    def new(self, pane: Pane | None, key: str) -> PairTable:  # noqa: ARG002
        """Return an empty table."""
        return PairTable(self.settings, pane)

    def load(self, snapshot: bytes, pane: Pane | None, key: str) -> PairTable:  # noqa: ARG002
        """Return the table of a snapshot.

        Raise OtherConfigurationError for other settings, a `WireError` for damaged bytes.
        """
        return PairTable.from_bytes(snapshot, self.settings, pane)


class ComparePairShards(beam.PTransform[beam.PCollection[tuple[str, bytes]], MachineOutputs]):
    """Compares models from packets (shard, record): outputs are `PairRow`s, `letters` the late events.

    lateness  see `RunStateMachine`
    """

    def __init__(
        self,
        settings: PairTableSettings,
        fields: EventFields,
        cache_bytes: int = DEFAULT_CACHE_BYTES,
        lateness: int | None = None,
    ) -> None:
        super().__init__()
        letters = RejectedLetters(fields, None)
        self._machines = RunStateMachine(PairFactory(settings), PairRow, cache_bytes, letters, lateness)

    def expand(self, packets: beam.PCollection[tuple[str, bytes]]) -> MachineOutputs:
        """Apply the machines to packets; raises ConfigError for windows that merge."""
        outputs: MachineOutputs = packets | "Machines" >> self._machines
        return outputs


class PairComparisons(NamedTuple):
    """The outputs of `ComparePairs`, as PCollections.

    rows          PairRows. The Beam timestamp is a row's `due`, or its `time` if `due` is null.
    batches       the same rows, as pyarrow RecordBatches.
    dead_letters  DeadLetters: invalid events with their reasons.
    late          DeadLetters: events that came after later events were applied.
    """

    rows: beam.PCollection[PairRow]
    batches: beam.PCollection[pa.RecordBatch]
    dead_letters: beam.PCollection[DeadLetter]
    late: beam.PCollection[DeadLetter]


class PairsChoices(EventColumns, PairChoices, total=False):
    """The keywords of `ComparePairs` that name columns, and those of the settings."""

    slice_cap: int


class ComparePairs(beam.PTransform[beam.PCollection[Any], PairComparisons]):
    """Compares every model with a champion, over the instances that both scored.

    Give one of these two:

    champion     the name of a model. Events of two models with one id= are one instance.
    against      a column of scores, if a record has the scores of several models: score= names the other
                 columns. The model of the column "a" is compared with the model of the champion's column "b";
                 with model= or model_name=, "m/a" is compared with "m/b". In order of time, records need ids,
                 too.

    within       the longest time between two events of an id ("1d", a number of seconds, a timedelta). An
                 event waits for its partner for this time. Then it counts in `only_model` or `only_against`.
    window, every, confidence, anytime_at, exact
                 fields of `PairSettings`.
    order, clock as in `EvaluateModels`.
    shards       the number of keys of the state. The events of the champion go to every key.
    cache_bytes  bytes of live state that a worker process keeps between bundles (1 GiB).

    The other arguments name columns, as in `EvaluateModels`. Events have equal weights. Raises ConfigError
    for an invalid setting, and for windows that merge.

        result = events | rs.ComparePairs(champion="v1", id="order", time="sent")
        result.rows | beam.Map(print)
    """

    def __init__(
        self,
        *,
        champion: str | None = None,
        against: str | None = None,
        within: Duration = "1d",
        order: str = "arrival",
        clock: Literal["runner"] | None = None,
        shards: int = 8,
        cache_bytes: int = DEFAULT_CACHE_BYTES,
        **choices: Unpack[PairsChoices],
    ) -> None:
        super().__init__()
        check_keywords("ComparePairs.__init__", choices, PairsChoices.__annotations__)
        given: dict[str, Any] = dict(choices)
        order = order_of_events(order, clock, given.get("time"))
        if (champion is None) == (against is None):
            raise ConfigError(
                f"champion={champion!r} and against={against!r}: give one, the name of a model or the column "
                "of its scores"
            )
        if against is not None:
            given["score"] = score_columns(given.get("score"), against)
            if given.get("model") is None and given.get("model_name") is None:
                given["model_name"] = ""
        columns = {name: given[name] for name in EventColumns.__annotations__ if name in given}
        self._fields = named_fields(columns)
        found = against_of(
            self._fields, champion, against, microseconds(within, "within") if within != 0 else 0,
            by_record=against is not None and order == "arrival",
        )  # fmt: skip
        check_fields(self._fields, found)
        chosen = {name: given[name] for name in PairChoices.__annotations__ if name in given}
        cap = {"slice_cap": given["slice_cap"]} if "slice_cap" in given else {}
        settings = PairTableSettings(found, settings_of(chosen), self._fields.slices, order=order, **cap)
        if self._fields.time is None and (needs := settings.pairs.needs_times) is not None:
            raise ConfigError(f"{needs} goes by event time; name the field of times with time=")
        if isinstance(shards, bool) or not isinstance(shards, int) or shards < 1:
            raise ConfigError(f"shards={shards!r}: give a whole number, 1 or more")
        self._against, self._number = found, shards
        _, limited, text = order.partition(":")
        lateness = (parse_lateness(text) if limited else 0) if order != "arrival" else None
        self._waits = order != "arrival"
        self._shards = ComparePairShards(settings, self._fields, cache_bytes, lateness)

    def expand(self, events: beam.PCollection[Any]) -> PairComparisons:
        """Pack the events, compare the models, and split the outputs."""
        if not isinstance(events, beam.PCollection):
            raise ConfigError(
                f"{self.label}: it is applied to a {type(events).__name__}; apply it to one PCollection "
                "of dicts, NamedTuples, beam.Rows or packed batches of events"
            )
        refuse_merging_windows(events, self.label)
        pack = _PackForPairs(
            self._fields, self._number, self.label, needs_ids=not self._against.by_record,
            located=self._against.by_record, waited_for=self._waits,
        )  # fmt: skip
        pack.against = self._against
        packed = events | "Pack" >> beam.ParDo(pack).with_outputs(DEAD_LETTERS, main="packets")
        found, refused, _ = packed.packets | "Compare" >> self._shards
        rows = found | "Rows" >> beam.FlatMap(at_its_time).with_output_types(PairRow)
        return PairComparisons(
            rows=rows,
            batches=rows | "Batches" >> InBatches(PAIRS),
            dead_letters=packed[DEAD_LETTERS]
            | "Dead letters" >> beam.Map(unchanged).with_output_types(DeadLetter),
            late=refused | "Late" >> beam.FlatMap(single_letters, "late").with_output_types(DeadLetter),
        )


class _PackForPairs(PackRecords):
    """Packs records for the shards that compare models; `against` says which shards get an event."""

    against: Against

    def _packets(self, batch: Batch) -> Iterator[tuple[str, bytes]]:
        if isinstance(batch, EventBatch):
            for shard, part in split_for_comparisons(batch, self.against, self.shards or 1):
                yield shard_key(shard), part.pack()


def at_its_time(
    row: PairRow, time: Any = beam.DoFn.TimestampParam, window: Any = beam.DoFn.WindowParam
) -> Iterator[Any]:
    """Yield a row with its own time as the timestamp, in its window."""
    micros = row.time if row.due is None else row.due
    yield WindowedValue(row, time if micros is None else timestamp(micros), (window,))


def score_columns(score: Any, against: str) -> tuple[str, ...]:
    """Return the columns of scores: the given columns, and the champion's column.

    Raises ConfigError for columns that do not go together.
    """
    if not isinstance(against, str) or not against:
        raise ConfigError(f"against={against!r}: give the name of a column, as text")
    names = ("score",) if score is None else (score,) if isinstance(score, str) else tuple(score)
    others = tuple(name for name in names if name != against)
    if not others:
        raise ConfigError(f"against={against!r} is the one column of scores; name another one with score=")
    return (*others, against)


def against_of(
    fields: EventFields, champion: str | None, against: str | None, within: int | None, *, by_record: bool
) -> Against:
    """Return the rule by which events are one instance, for the columns of `score_columns`.

    Raises ConfigError for settings that do not go together.
    """
    if against is not None:
        return Against(against, fields.scores, by_record, None if by_record else within)
    if champion is None:
        raise ConfigError("champion=None: give the name of a model")
    return Against(champion, (), within=within)


def check_fields(fields: EventFields, against: Against) -> None:
    """Raise ConfigError if events cannot be compared.

    They have no ids, or have weights, or have classes without scores.
    """
    if not against.by_record and fields.id is None:
        raise ConfigError(
            f"models are compared with {against.champion!r} by the ids of events; name their column with id="
        )
    if not against.by_record and fields.time is None and against.within is not None:
        raise ConfigError("an event waits for its partner by event time; name the field of times with time=")
    if fields.weight is not None:
        raise ConfigError(
            f"weight={fields.weight!r}: pairs of models are compared with equal weights; leave weight= out"
        )
    if fields.predicted is not None and fields.positive is None:
        raise ConfigError(
            f"predicted={fields.predicted!r}: labels are then classes, and AUCs need the one that is "
            "positive; name it with positive="
        )
