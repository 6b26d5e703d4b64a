"""JoinLabels: joins predictions with later labels by id, from two PCollections or one.

A label may arrive after its prediction, out of order, twice, or never. Event time alone decides which records
match (`core.join`). A label counts for every prediction of its id that was made at most a time to live before
the label. Unmatched records become dead letters with a reason, so no record is lost silently.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, Unpack

import apache_beam as beam

from ...core.errors import ConfigError
from ...core.events.batch import MAGIC
from ...core.events.rejected import Rejected
from ...core.ids.sharding import Packet, number_of
from ...core.join.join import LabelJoin
from ...core.join.join_settings import JoinSettings
from ...core.settings.durations import Duration, duration_text, microseconds, parse_lateness
from ...core.shard.machine import Pane
from ...core.shard.protocol import DEFAULT_CACHE_BYTES
from ...core.state.compile_ahead import warm_up
from ..beam.machine import unchanged
from ..events.dead_letters import DeadLetter
from ..events.fields import ClassColumns, RecordColumns, check_keywords, named_fields
from ..sources.pack_records import DEAD_LETTERS, PackRecords, single_letters
from .class_limits import refuse_with_class_scores
from .shards import EvaluateShards, ExportingFactory


class JoinFactory(ExportingFactory[JoinSettings, Packet | Rejected]):
    """Makes the label joins of a job."""

    def warm_up(self) -> None:
        """Compile the kernels of joins, or load them from their folder."""
        warm_up(self.settings)

    def made(self, pane: Pane | None, key: str) -> LabelJoin:  # noqa: ARG002
        """Return a join without any records."""
        return LabelJoin(self.settings, number_of(key))

    def loaded(self, pane: Pane | None, key: str, snapshot: bytes) -> LabelJoin:  # noqa: ARG002
        """Return the join of a snapshot."""
        return LabelJoin.from_bytes(snapshot, self.settings, number_of(key))

    def shard(self, key: str) -> tuple[int, int]:
        """Return the number of a join's shard."""
        return number_of(key), self.settings.shards


class JoinShards(EvaluateShards):
    """Joins packets (shard of the join, record); it outputs packets (shard of the evaluators, record)."""

    factory = JoinFactory
    output_type = tuple[str, bytes]


class JoinedLabels(NamedTuple):
    """The outputs of `JoinLabels`, as PCollections.

    events        packed batches of events, for `EvaluateModels`; an event's time is its label's time.
    unmatched     DeadLetters: predictions without a label, and labels without a prediction. Each has the time
                  that the record waited.
    duplicates    DeadLetters: second labels of an id.
    late          DeadLetters: records that arrived after the clock had passed their times.
    dead_letters  DeadLetters: invalid predictions or labels; with second_label="dead-letter", also second
                  labels.
    """

    events: beam.PCollection[bytes]
    unmatched: beam.PCollection[DeadLetter]
    duplicates: beam.PCollection[DeadLetter]
    late: beam.PCollection[DeadLetter]
    dead_letters: beam.PCollection[DeadLetter]


class JoinColumns(RecordColumns, ClassColumns, total=False):
    """The keywords of `JoinLabels` that name columns, without id and time."""

    probabilities: bool


class JoinLabels(beam.PTransform[Any, JoinedLabels]):
    """Joins predictions with their labels by id.

    The transform is applied to a pair (predictions, labels), or to one PCollection of both. In one
    PCollection, a record without a label is a prediction, a record without a score is a label, and a record
    with both is both. Records are dicts, NamedTuples or beam.Rows. A label needs only id, label and
    label_time, and counts for every model that predicted its id.

    id, time, label_time  the names of fields; without label_time, a label's time is in `time`.
    ttl           the longest time from a prediction to its label ("7d", a number of seconds, a timedelta).
    label_lead    the longest time by which a label may precede its prediction; ttl unless given. Joined
                  events wait for this time, because an earlier event may still come. Give 0 if labels never
                  precede predictions.
    second_label  which of two labels of an id within ttl counts: the "first" or the "last". "dead-letter":
                  the first label counts, and the others become dead letters.
    class_scores, multi_label
                  as in `EvaluateModels`, without a star. Labels then name a class, or have the fields of
                  multi_label.
    positive      the label of positive events. Without it, 1/0, 1/-1 and true/false are understood.
    slices        fields of the predictions, by which EvaluateModels can then slice the events.
    lateness      how far records may be behind Beam's watermark.
    shards        the number of keys of the state, fixed for the life of the job.
    cache_bytes   bytes of live state that a worker process keeps between bundles (1 GiB).

    The other arguments are those of `EvaluateModels`; time_unit and time_format also apply to label_time.

    Both inputs must be in the global window, with event times as Beam timestamps: the clock is the watermark
    that Beam has for both inputs. `order` is the order in which evaluators must then apply the events:

        join = rs.JoinLabels(id="flight", time="t", label_time="landed", ttl="3d", label_lead=0)
        joined = (predictions, labels) | join
        result = joined.events | rs.EvaluateModels(
            order=join.order, clock="runner", time="t", id="flight"
        )

    Raises ConfigError for an invalid setting.
    """

    def __init__(
        self,
        *,
        id: str,  # noqa: A002 - the word of the command line
        time: str,
        ttl: Duration,
        label_time: str | None = None,
        label_lead: Duration | None = None,
        second_label: Literal["first", "last", "dead-letter"] = "first",
        lateness: Duration = "0s",
        shards: int = 16,
        cache_bytes: int = DEFAULT_CACHE_BYTES,
        **columns: Unpack[JoinColumns],
    ) -> None:
        super().__init__()
        check_keywords("JoinLabels.__init__", columns, JoinColumns.__annotations__)
        for name, value in (("id", id), ("time", time)):
            if value is None:
                raise ConfigError(f"{name}=None: labels are joined by id, in event time; name the field")
        if label_time is not None and (not isinstance(label_time, str) or not label_time):
            raise ConfigError(f"label_time={label_time!r}: give the name of a column, as text")
        if columns.get("class_scores") is not None:
            refuse_with_class_scores(columns)
        self._fields = named_fields({**columns, "time": time, "id": id})
        self._label_time = time if label_time is None else label_time
        self._settings = JoinSettings.of(
            ttl, label_lead, second=second_label, shards=shards, evaluator_shards=1
        )
        if isinstance(lateness, str):
            self._lateness = parse_lateness(lateness)
        else:
            self._lateness = 0 if lateness == 0 else microseconds(lateness, "lateness")
        self._cache_bytes = cache_bytes

    @property
    def order(self) -> str:
        """The order of `EvaluateModels` in which no joined event is late."""
        return f"time:{duration_text(self._settings.runner_delay + self._lateness)}"

    def expand(self, inputs: Any) -> JoinedLabels:
        """Pack the records, join them, and split the dead letters by their kinds."""
        one = isinstance(inputs, beam.PCollection)
        pair = (inputs,) if one else tuple(inputs) if isinstance(inputs, tuple | list) else ()
        if not pair or len(pair) > 2 or not all(isinstance(each, beam.PCollection) for each in pair):
            raise ConfigError(
                f"{self.label}: it is applied to {type(inputs).__name__}; apply it to a pair of PCollections "
                "(predictions, labels), or to one PCollection of both"
            )
        for each in pair:
            if not each.windowing.is_default():
                raise ConfigError(
                    f"{self.label}: the input is in {type(each.windowing.windowfn).__name__}, and a label "
                    "comes in another window than its prediction; join first, and put the events into windows"
                )
        roles: tuple[Any, ...] = (None,) if one else ("prediction", "label")
        packed = [
            each | f"Pack {role or 'both'}" >> self._packing(role)
            for each, role in zip(pair, roles, strict=True)
        ]
        packets = [part.packets for part in packed] | "Both" >> beam.Flatten()
        joined, refused, _ = packets | "Join" >> JoinShards(
            self._settings, self._fields, self._cache_bytes, self._lateness, label_time=self._label_time
        )
        kinds = {
            kind: refused
            | f"Of kind {kind}" >> beam.FlatMap(single_letters, kind).with_output_types(DeadLetter)
            for kind in ("unmatched", "duplicate", "late", "invalid")
        }
        invalid = [*(part[DEAD_LETTERS] for part in packed), kinds["invalid"]] | "Invalid" >> beam.Flatten()
        return JoinedLabels(
            events=joined | "Events" >> beam.FlatMap(_events).with_output_types(bytes),
            unmatched=kinds["unmatched"],
            duplicates=kinds["duplicate"],
            late=kinds["late"],
            dead_letters=invalid | "Dead letters" >> beam.Map(unchanged).with_output_types(DeadLetter),
        )

    def _packing(self, role: Any) -> Any:
        """Return the step that packs records; for `role` None, a record is a prediction, a label, or both."""
        shards, time = self._settings.shards, self._label_time
        pack = PackRecords(self._fields, shards, self.label, role, time, waited_for=True)
        return beam.ParDo(pack).with_outputs(DEAD_LETTERS, main="packets")


def _events(packet: tuple[str, bytes]) -> Iterator[bytes]:
    """Yield the joined events of a packet; yield nothing for a record that only settles times."""
    if packet[1][: len(MAGIC)] == MAGIC:
        yield packet[1]
