"""Puts single records of a PCollection into packets.

The records are buffered for each Beam window, validated in columns, and split by shard.

So windows are assigned to single records, but state is accessed only once for each shard and bundle.

The user may also give packed batches of events. The module checks that they fit an evaluation's settings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.coders import RowCoder, registry
from apache_beam.pvalue import TaggedOutput
from apache_beam.utils.timestamp import Timestamp
from apache_beam.utils.windowed_value import WindowedValue

from ...core.errors import InputError, WireError
from ...core.events.batch import EventBatch
from ...core.events.columns import TextColumn
from ...core.events.records import Batch
from ...core.events.rejected import Reason
from ...core.events.times import AFTER_LAST_TIME, FIRST_TIME
from ...core.events.wire import NO_HEAD
from ...core.ids.sharding import shard_key, split_by_shard, split_records
from ..events.columns import class_text, json_record
from ..events.dead_letters import NO_LETTERS, Chunk, DeadLetter, DeadLetters
from ..events.doubts.classes import tell_classes_at_end
from ..events.fields import EventFields, Role
from ..events.labels import binary_labels
from ..events.lateness import ANY_TIME
from ..events.records import records_to_batch
from ..events.validate import validate_as

PACKET_EVENTS = 10_000
"""The most single records of one window that are buffered for one packet."""

_ALL_WINDOWS_EVENTS = 100_000
"""The most single records of all windows that are buffered together."""

DEAD_LETTERS = "dead_letters"
_OR_PACKED = " or packed batches of events"


@dataclass(eq=False)
class PackRecords(beam.DoFn):
    """Turns single records into packets (shard, packed batch), each in the window of its records.

    fields      the roles of the fields.
    shards      the shards of the packets; None = the key of a packet is its model.
    source      the name of the records' source in dead letters.
    role        the role of the records; None = predictions and labels are mixed: the fields of a record
                decide its role.
    label_time  the field of a label's time, if it differs from the field of a prediction's time.
    needs_ids   whether a packed batch must have ids.
    located     whether events have their places in the packet as positions.
    waited_for  whether later steps use the watermark as a clock. If so, a packet has the Beam time of its
                earliest record, so that the watermark cannot pass this record. Otherwise a packet has the
                Beam time of its newest record.
    """

    fields: EventFields
    shards: int | None
    source: str
    role: Role | None = "event"
    label_time: str | None = None
    needs_ids: bool = False
    located: bool = field(default=False, kw_only=True)
    waited_for: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        self._label_fields = replace(self.fields, time=self.label_time or self.fields.time)

    def start_bundle(self) -> None:
        """Begin without records."""
        self._open: dict[tuple[Any, Role], list[tuple[int, Mapping[str, object]]]] = {}
        self._buffered = 0

    def process(
        self,
        element: Any,
        time: Any = beam.DoFn.TimestampParam,
        window: Any = beam.DoFn.WindowParam,
    ) -> Iterable[Any]:
        """Hold a record, with its Beam time, until its window has many records, or the bundle ends."""
        record = element if isinstance(element, dict) else fields_of(element)
        if record is None:
            return self._not_single(element, time, window)
        full = []
        for role in self._roles(record):
            held = self._open.setdefault((window, role), [])
            held.append((time.micros, record))
            self._buffered += 1
            if len(held) == PACKET_EVENTS:
                full.append((window, role))
        if self._buffered >= _ALL_WINDOWS_EVENTS:
            return self.finish_bundle()
        return (packet for place in full for packet in self._flush(place))

    def _roles(self, record: Mapping[str, object]) -> tuple[Role, ...]:
        """Return the roles of a record.

        If roles are mixed, a record may be a prediction and a label at once.
        """
        if self.role is not None:
            return (self.role,)
        fields = self.fields
        if all(record.get(name) is None for name in fields.class_labels or (fields.label,)):
            return ("prediction",)
        scores = fields.class_scores or fields.score_columns
        has_score = any(record.get(name) is not None for name in scores)
        return ("prediction", "label") if has_score else ("label",)

    def teardown(self) -> None:
        """Warn of doubtful classes, because no record follows."""
        tell_classes_at_end()

    def finish_bundle(self) -> Iterator[Any]:
        """Yield the packets of the records still held."""
        for place in list(self._open):
            yield from self._flush(place)

    def _flush(self, place: tuple[Any, Role]) -> Iterator[Any]:
        window, role = place
        times, records = zip(*self._open.pop(place), strict=True)
        self._buffered -= len(records)
        time = Timestamp(micros=min(times) if self.waited_for else max(times))
        fields = self._label_fields if role == "label" else self.fields
        chunk = Chunk(
            0 if self.located else -1,
            records_to_batch(records, fields.columns_of(role), fields.number_columns, (fields.time,)),
            None,
            NO_LETTERS,
            raw=lambda rows: pa.array([json_record(records[row]) for row in rows.tolist()], pa.string()),
        )
        batch, letters = validate_as(role, chunk, fields, self.source, 0, ANY_TIME, self.located)
        for letter in letters:
            yield TaggedOutput(DEAD_LETTERS, WindowedValue(letter, time, (window,)))
        for packet in self._packets(batch):
            yield WindowedValue(packet, time, (window,))

    def _packets(self, batch: Batch) -> Iterator[tuple[str, bytes]]:
        if not len(batch):
            return
        if self.shards is not None:
            for shard, part in split_records(batch, self.shards):
                yield shard_key(shard), part.pack()
        elif isinstance(batch, EventBatch):
            for _, whole in split_by_shard(batch, 1):  # model after model
                starts = np.flatnonzero(np.diff(whole.models.codes, prepend=-1))
                for rows in np.split(np.arange(len(whole)), starts[1:]):
                    yield str(whole.models[int(rows[0])]), whole.take(rows).pack()

    def _not_single(self, element: Any, time: Any, window: Any) -> Iterator[Any]:
        """Yield the packets of a packed batch, or a dead letter for an element of an unknown type."""
        if isinstance(element, bytes) and self.role == "event":
            try:
                batch = fitting(EventBatch.unpack(element), self.fields, needs_ids=self.needs_ids)
            except (WireError, InputError) as error:
                reason, detail = Reason.PACKED_BATCH_UNFIT, str(error)
            else:
                # Single records that came before the batch are packed first, so the order of arrival stays.
                if (window, "event") in self._open:
                    yield from self._flush((window, "event"))
                for packet in self._packets(batch):
                    yield WindowedValue(packet, time, (window,))
                return
        else:
            kind, packed = self.role or "record", _OR_PACKED * (self.role == "event")
            reason = Reason.NOT_A_RECORD
            detail = (
                f"{type(element).__name__!r} is no kind of {kind}; give dicts, NamedTuples, beam.Rows"
                f"{packed} (of a keyed PCollection: its values alone)"
            )
        letter = DeadLetter.invalid(reason, self.source, detail, raw=_shown(element))
        yield TaggedOutput(DEAD_LETTERS, WindowedValue(letter, time, (window,)))


def fields_of(element: Any) -> Mapping[str, object] | None:
    """Return the fields of an event by name; None if the element has no fields."""
    if isinstance(element, beam.Row):
        fields: dict[str, object] = element.as_dict()
        return fields
    if isinstance(element, tuple) and (names := getattr(element, "_fields", None)):
        return dict(zip(names, element, strict=True))
    return element if isinstance(element, Mapping) else None


def _shown(element: Any) -> str:
    text = element if isinstance(element, str) else repr(element)
    text = text if len(text) <= 2_000 else f"{text[:2_000]}... ({len(text)} characters)"
    return text.encode("utf-8", "backslashreplace").decode()


def fitting(batch: EventBatch, fields: EventFields, *, needs_ids: bool = False) -> EventBatch:
    """Return a batch with only the columns that `fields` names. Raises InputError if the batch does not fit.

    With needs_ids, a batch without ids does not fit either. The function relies on the checks of
    `EventBatch.unpack`. O(n).
    """
    if batch.class_scores is not None or fields.class_scores:
        _check_scores_of_classes(batch, fields)
    for what, option, column, is_asked in (
        ("weights", "weight=", batch.weights, fields.weight is not None),
        ("predicted classes", "predicted=", batch.predicted, _has_classes(fields)),
        ("times", "time=", batch.times, fields.time is not None),
        ("ids", "deduplicate=", batch.ids, needs_ids),
    ):
        if column is None and is_asked:
            raise _unfit(f"it has no {what}, and {option} is given; pack them with it, or leave {option} out")
        if column is not None and not is_asked and what in ("weights", "predicted classes"):
            raise _unfit(f"it has {what}; say so with {option}, or pack it without")
    if batch.times is not None and not ((batch.times >= FIRST_TIME) & (batch.times < AFTER_LAST_TIME)).all():
        raise _unfit("it has a time that is missing or not within the years 1 to 9999")
    if fields.probabilities and not ((batch.scores >= 0.0) & (batch.scores <= 1.0)).all():
        raise _unfit("it has a score that is no probability, which lies between 0 and 1")
    names = [name for name, _ in batch.slices]
    for name in fields.slice_columns:
        if names.count(name) != 1:
            many = "no" if name not in names else f"{names.count(name)} times the"
            raise _unfit(
                f"it has {many} slice column {name!r}; give JoinLabels, or whatever packs the events, each "
                "column of slices= once"
            )
    texts = {"models": batch.models, "label_classes": batch.label_classes, "predicted": batch.predicted}
    for name, column in (*texts.items(), *batch.slices):
        if column is not None:
            _check_text(name, column, missing=name not in texts)
    _check_classes(batch, fields)
    slices = dict(batch.slices)
    return replace(
        batch,
        times=None if fields.time is None else batch.times,
        ids=None if fields.id is None else batch.ids,
        positions=None,
        sources=None,
        slices=tuple((name, slices[name]) for name in fields.slice_columns),
        source="",
        head=NO_HEAD,
    )


def _has_classes(fields: EventFields) -> bool:
    """Return whether packed events have predicted classes.

    They do if there are classes, and one label for each event.
    """
    return fields.predicted is not None or (bool(fields.class_scores) and not fields.class_labels)


def _check_scores_of_classes(batch: EventBatch, fields: EventFields) -> None:
    """Raise InputError if the scores of classes in a batch are not those of the settings."""
    scores, asked = batch.class_scores, len(fields.class_names)
    there = 0 if scores is None else scores.shape[1]
    if there != asked:
        raise _unfit(f"it has scores of {there:,} classes, and class_scores= names {asked:,}; give the same")
    if (batch.class_labels is not None) != bool(fields.class_labels):
        raise _unfit("it has one label an event where multi_label= is given, or the other way; pack it so")
    if fields.probabilities and scores is not None and not ((scores >= 0.0) & (scores <= 1.0)).all():
        raise _unfit("it has a score of a class that is no probability, which lies between 0 and 1")
    for column in (batch.label_classes, batch.predicted):
        values = () if column is None else column.values
        if unknown := next((value for value in values if value not in fields.class_names), None):
            raise _unfit(f"{unknown[:60]!r} is none of the classes that class_scores= names")


def _check_text(name: str, column: TextColumn, *, missing: bool) -> None:
    for value in column.values:
        if not value and not missing:
            raise _unfit(f"a value of {name} is the empty text, which is a missing one")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise _unfit(f"{value[:60]!r} in {name} is not UTF-8") from None


def _check_classes(batch: EventBatch, fields: EventFields) -> None:
    if batch.label_classes is None or batch.predicted is None or batch.class_scores is not None:
        return
    for column in (batch.label_classes, batch.predicted):
        for value in column.values:
            if (spelled := class_text(value)) != value:
                raise _unfit(f"the class {value[:60]!r} is spelled {spelled!r} here; pack it so")
    if not np.array_equal(batch.labels, binary_labels(batch.label_classes, fields)):
        said = (
            "no class is said to be positive" if fields.positive is None else f"positive={fields.positive!r}"
        )
        raise _unfit(f"its labels are not what its classes say where {said}; pack it with that setting")


def _unfit(why: str) -> InputError:
    return InputError(f"a packed batch of events does not fit the settings: {why}")


def single_letters(letters: pa.RecordBatch, kind: str) -> Iterator[DeadLetter]:
    """Give the dead letters of one kind, one by one."""
    return (letter for letter in DeadLetters(letters) if letter.kind == kind)


registry.register_coder(DeadLetter, RowCoder)
