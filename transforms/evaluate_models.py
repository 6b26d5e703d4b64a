"""EvaluateModels: a PCollection of events in, rows of measures out, exact, for any number of models.

Events are packed before they travel: a DoFn buffers those of a bundle per Beam window, validates them in
columns and splits them by shard. So windows are assigned to single events, and state is reached once per
shard and bundle. Events apply in the order in which they arrive (`order="arrival"`), which no runner
promises across runs; what is read from files in the order of its positions goes through the file
pipeline, over the same `EvaluateShards`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.coders import RowCoder, registry
from apache_beam.pvalue import TaggedOutput
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.timestamp import MIN_TIMESTAMP, Timestamp
from apache_beam.utils.windowed_value import WindowedValue

from ..core.errors import ConfigError, InputError, WireError
from ..core.events import EventBatch
from ..core.rows import MeasureRow, Rows
from ..core.rows_arrow import rows_to_arrow
from ..core.settings import (
    PARTIAL_FPR,
    BetaCost,
    Cost,
    EvaluatorSettings,
    TableSettings,
    check_signal,
)
from ..core.shard_protocol import DEFAULT_CACHE_BYTES
from ..core.windows import Emission, EveryEvents, LastEvents, Window
from .columns import json_record
from .dead_letters import DeadLetter
from .evaluate_shards import EvaluateShards
from .event_fields import EventFields
from .packed_events import fitting
from .record_batches import records_to_batch
from .sharding import shard_key, split_by_shard
from .stateful_machine import refuse_merging_windows
from .validate import validate
from .write_curves import curve_batches

PACKET_EVENTS = 10_000
"""Single events of one window that are buffered into one packet, at the most."""

_ALL_WINDOWS_EVENTS = 100_000
"""Single events of all windows that are buffered at a time, at the most."""

DEAD_LETTERS, LATE = "dead_letters", "late"


class Evaluation(NamedTuple):
    """What `EvaluateModels` gives, as PCollections.

    rows          of MeasureRow. The Beam timestamp is the row's due or else its time. Without time= it is
                  that of the newest event of the bundle, and that of the last rows of a model the end of
                  their window (of all time, where the input is not windowed). In windowed input a row stays
                  in its window. A worker that never imported rocsteady sees a NamedTuple of Beam's with the
                  same fields.
    batches       the same rows as pyarrow RecordBatches: many rows to an element
    dead_letters  of DeadLetter: what is no event, and why
    late          of DeadLetter: events that came too late. Empty while events apply as they arrive
    curves        the ROC curves that curves= asked for, as pyarrow RecordBatches (CURVE_SCHEMA of
                  write_curves.py: a row a point), each in the window that it was made for; else empty
    """

    rows: beam.PCollection[MeasureRow]
    batches: beam.PCollection[pa.RecordBatch]
    dead_letters: beam.PCollection[DeadLetter]
    late: beam.PCollection[DeadLetter]
    curves: beam.PCollection[pa.RecordBatch]


class EvaluateModels(beam.PTransform[beam.PCollection[Any], Evaluation]):
    """Evaluates every model over a window of its own events.

    An event is a dict, a NamedTuple, a beam.Row, or bytes: many events, packed by `EventBatch.pack()`.
    Column arguments (score, label, model, time, id, weight, predicted, slices) are names in it. What is
    no event becomes a dead letter, and the rest goes on; packed events that do not fit the settings are
    one dead letter. Events apply in the order in which they arrive, whatever time= says (clock="runner",
    which would sort by it, is not in this version); windows and grids by time need it. weight= names what an
    event counts; every event counts 1 without it.

    positive     the label of positive events; without it 1/0, 1/-1 and true/false are understood
    model_name   the one model that all events are of, instead of a column
    time_unit    "s", "ms", "us" or "ns", for times that are numbers
    slices       columns, and tuples of columns (crosses), by whose values each model is evaluated besides
    shards       state is kept under so many keys, fixed for the life of the job: 64, or some 32 per worker
                 on a cluster. None: each model is its own key
    cache_bytes  live state that a worker process keeps between bundles (1 GiB)
    curves       EveryEvents(n): the ROC curve of each window after every n-th event and at the end; "end": at
                 the end alone
    The other arguments are those of `EvaluatorSettings`.

    If the input is windowed, every pane is evaluated by itself. Raises ConfigError for a setting that
    cannot be, and for windows that merge (sessions).

        result = events | rs.EvaluateModels(window=rs.LastEvents(10_000), every=rs.EveryEvents(100))
        result.rows | beam.Map(print)
    """

    def __init__(
        self,
        *,
        window: Window | None = None,
        every: Emission | None = None,
        measures: tuple[str, ...] | None = None,
        cost: Cost | None = None,
        priors: float | Literal["window"] = "window",
        threshold: float = 0.5,
        confidence: float = 0.95,
        probabilities: bool = False,
        at_fpr: float = 0.01,
        false_positive_cost: float = 0.2,
        partial_fpr: tuple[float, float] = PARTIAL_FPR,
        flip_if_below_half: bool = False,
        score: str = "score",
        label: str = "label",
        positive: object = None,
        model: str | None = None,
        model_name: str | None = None,
        time: str | None = None,
        time_unit: Literal["s", "ms", "us", "ns"] = "s",
        id: str | None = None,  # noqa: A002 - the word of the command line
        weight: str | None = None,
        predicted: str | None = None,
        slices: Iterable[str | tuple[str, ...]] = (),
        shards: int | None = 64,
        cache_bytes: int = DEFAULT_CACHE_BYTES,
        curves: EveryEvents | Literal["end"] | None = None,
    ) -> None:
        super().__init__()
        crosses = (slices,) if isinstance(slices, str) else tuple(slices)
        self._fields = EventFields(
            score=score,
            label=label,
            positive=positive,  # type: ignore[arg-type]  # any value that a label can have
            model=model,
            model_name=model_name,
            time=time,
            time_unit=time_unit,
            id=id,
            weight=weight,
            predicted=predicted,
            slices=crosses,  # type: ignore[arg-type]  # one column may stand without a tuple
            probabilities=probabilities,
        )
        if curves is not None and predicted is not None and positive is None:
            raise ConfigError(
                f"curves={curves!r}: with predicted={predicted!r} labels are classes, and a curve needs "
                "the one that is positive; name it with positive=, or leave curves= out"
            )
        self._settings = TableSettings(
            EvaluatorSettings(
                window=LastEvents() if window is None else window,
                every=EveryEvents() if every is None else every,
                measures=measures,
                cost=BetaCost() if cost is None else cost,
                priors=priors,
                threshold=threshold,
                confidence=confidence,
                probabilities=probabilities,
                at_fpr=at_fpr,
                false_positive_cost=false_positive_cost,
                partial_fpr=partial_fpr,
                flip_if_below_half=flip_if_below_half,
                positive=self._fields.positive,
                order="arrival",
                curves=curves,
            ),
            self._fields.slices,
            shards,
        )
        settings = self._settings.evaluator
        if time is None and (needs := settings.needs_times) is not None:
            raise ConfigError(f"{needs} goes by event time; name the field of times with time=")
        check_signal(settings, predicted is not None, "predicted=", "positive=")
        self._shards = EvaluateShards(self._settings, cache_bytes)

    def expand(self, events: beam.PCollection[Any]) -> Evaluation:
        """Pack, evaluate, and unpack the rows."""
        if not isinstance(events, beam.PCollection):
            raise ConfigError(
                f"{self.label}: it is applied to a {type(events).__name__}; apply it to one PCollection "
                "of dicts, NamedTuples, beam.Rows or packed batches of events"
            )
        refuse_merging_windows(events, self.label)
        packed = events | "Pack" >> beam.ParDo(
            _PackDoFn(self._fields, self._settings.shards, self.label)
        ).with_outputs(DEAD_LETTERS, LATE, main="packets")
        rows = packed.packets | "Typed packets" >> beam.Map(_unchanged).with_output_types(tuple[str, bytes])
        rows = rows | "Evaluate" >> self._shards
        return Evaluation(
            rows=rows | "Rows" >> beam.FlatMap(_single_rows).with_output_types(MeasureRow),
            batches=rows | "Batches" >> beam.FlatMap(_row_batches).with_output_types(pa.RecordBatch),
            dead_letters=packed[DEAD_LETTERS]
            | "Dead letters" >> beam.Map(_unchanged).with_output_types(DeadLetter),
            late=packed[LATE] | "Late" >> beam.Map(_unchanged).with_output_types(DeadLetter),
            curves=rows | "Curves" >> beam.FlatMap(curve_batches).with_output_types(pa.RecordBatch),
        )


def _unchanged(element: Any) -> Any:
    return element


def _row_batches(rows: Rows) -> Iterator[pa.RecordBatch]:
    if len(rows):  # curves may come without rows
        yield rows_to_arrow(rows)


class _Buffer(NamedTuple):
    """Events of one Beam window; `times` are their Beam timestamps in microseconds."""

    records: list[Mapping[str, object]]
    times: list[int]


class _PackDoFn(beam.DoFn):
    """Single events to packets (shard, packed batch), each in the window of its events."""

    def __init__(self, fields: EventFields, shards: int | None, source: str) -> None:
        self._fields = fields
        self._shards = shards
        self._source = source

    def start_bundle(self) -> None:
        self._open: dict[Any, _Buffer] = {}
        self._buffered = 0

    def process(
        self,
        element: Any,
        time: Any = beam.DoFn.TimestampParam,
        window: Any = beam.DoFn.WindowParam,
    ) -> Iterable[Any]:
        record = element if isinstance(element, dict) else _record(element)
        if record is None:
            return self._not_single(element, time, window)
        buffer = self._open.get(window)
        if buffer is None:
            buffer = self._open[window] = _Buffer([], [])
        buffer.records.append(record)
        buffer.times.append(time.micros)
        self._buffered += 1
        if len(buffer.records) == PACKET_EVENTS:
            return self._flush(window)
        if self._buffered == _ALL_WINDOWS_EVENTS:
            return self._flush_all()
        return ()

    def finish_bundle(self) -> Iterator[Any]:
        return self._flush_all()

    def _flush_all(self) -> Iterator[Any]:
        for window in list(self._open):
            yield from self._flush(window)

    def _flush(self, window: Any) -> Iterator[Any]:
        buffer = self._open.pop(window)
        self._buffered -= len(buffer.records)
        time = Timestamp(micros=max(buffer.times))
        records = buffer.records
        batch, letters = validate(
            records_to_batch(records, self._fields.columns, self._fields.number_columns),
            self._fields,
            source=self._source,
            partition=0,
            first_position=-1,
            raw=lambda rows: pa.array([json_record(records[row]) for row in rows.tolist()], pa.string()),
        )
        for letter in letters:
            yield TaggedOutput(DEAD_LETTERS, WindowedValue(letter, time, (window,)))
        for packet in self._packets(batch):
            yield WindowedValue(packet, time, (window,))

    def _packets(self, batch: EventBatch) -> Iterator[tuple[str, bytes]]:
        if not len(batch):
            return
        if self._shards is not None:
            for shard, part in split_by_shard(batch, self._shards):
                yield shard_key(shard), part.pack()
            return
        for _, whole in split_by_shard(batch, 1):  # model after model
            starts = np.flatnonzero(np.diff(whole.models.codes, prepend=-1))
            for rows in np.split(np.arange(len(whole)), starts[1:]):
                yield str(whole.models[int(rows[0])]), whole.take(rows).pack()

    def _not_single(self, element: Any, time: Any, window: Any) -> Iterator[Any]:
        """Give the packets of a packed batch, or a dead letter for what is nothing that is known."""
        if isinstance(element, bytes):
            try:
                batch = fitting(EventBatch.unpack(element), self._fields)
            except (WireError, InputError) as error:
                reason = str(error)
            else:
                # What came singly before it goes first: the order of arrival.
                if window in self._open:
                    yield from self._flush(window)
                for packet in self._packets(batch):
                    yield WindowedValue(packet, time, (window,))
                return
        else:
            reason = (
                f"{type(element).__name__!r} is no kind of event; give dicts, NamedTuples, beam.Rows "
                "or packed batches (of a keyed PCollection: its values alone)"
            )
        letter = DeadLetter("invalid", reason, self._source, raw=_shown(element))
        yield TaggedOutput(DEAD_LETTERS, WindowedValue(letter, time, (window,)))


def _record(element: Any) -> Mapping[str, object] | None:
    """Return the fields of an event by name; None if it has none."""
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


def _single_rows(
    rows: Rows, time: Any = beam.DoFn.TimestampParam, window: Any = beam.DoFn.WindowParam
) -> Iterator[Any]:
    """Give rows one by one, each at its own time and in exactly the window that it was made for.

    A `TimestampedValue` would be put into windows anew, by a time that need not lie in its pane.
    """
    for row in rows:
        micros = row.time if row.due is None else row.due
        yield WindowedValue(row, time if micros is None else beam_time(micros), (window,))


_LAST = GlobalWindow().max_timestamp()


def beam_time(micros: int) -> Timestamp:
    """Return the Beam timestamp of a time; Beam ends a little before int64 does."""
    return min(max(Timestamp(micros=micros), MIN_TIMESTAMP), _LAST)


registry.register_coder(DeadLetter, RowCoder)
