"""EvaluateModels: takes a PCollection of events, and gives rows of measures, exact, for any number of models.

Events are packed before they travel: a DoFn buffers the events of a bundle per Beam window, validates them in
columns and splits them by shard. So windows are assigned to single events, but state is accessed only once
for each shard and bundle. Events apply in the order of arrival (`order="arrival"`), which may differ between
runs, or in order of time up to the runner's watermark (`clock="runner"`). Events from files go through the
file pipeline, with the same `EvaluateShards`; there, the readers are the clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal, NamedTuple, Unpack

import apache_beam as beam
import pyarrow as pa
from apache_beam.utils.windowed_value import WindowedValue

from ...core.errors import ConfigError
from ...core.rows.arrow import ROW_SCHEMA, rows_to_arrow
from ...core.rows.class_rows import ClassRow, ClassRows
from ...core.rows.records import MeasureRow
from ...core.rows.rows import Rows
from ...core.settings.choices import EvaluatorChoices, check_kind, read_choices
from ...core.settings.evaluator import EvaluatorSettings, checked_order
from ...core.settings.table import TableChoices, TableSettings
from ...core.shard.protocol import DEFAULT_CACHE_BYTES
from ..beam.machine import refuse_merging_windows, timestamp, unchanged
from ..events.dead_letters import DeadLetter
from ..events.fields import ClassColumns, EventColumns, EventFields, check_keywords
from ..sinks.kinds import curve_batches
from ..sources.pack_records import DEAD_LETTERS, PackRecords, single_letters
from .choices import chosen_settings
from .shards import EvaluateShards


class Evaluation(NamedTuple):
    """The outputs of `EvaluateModels`, as PCollections.

    rows          MeasureRows; with class_scores= ClassRows. A row's Beam timestamp is its `due`, or its
                  `time` if `due` is null. Without time=, it is the timestamp of the bundle's newest event; a
                  model's last rows then have the end of their window (the end of time, if the input is not
                  windowed). In windowed input, a row stays in its window. On a worker that never imported
                  rocsteady, a row is a NamedTuple of Beam with the same fields.
    batches       the same rows, as pyarrow RecordBatches of many rows.
    dead_letters  DeadLetters: invalid events with their reasons.
    late          DeadLetters: events that came after later events were applied, each with its lateness. Empty
                  for order="arrival".
    curves        the ROC curves that curves= asks for, as pyarrow RecordBatches, each in its window; empty
                  without curves=. A row is a point.
    duplicates    DeadLetters: the events that deduplicate= leaves out; empty without deduplicate=.
    """

    rows: beam.PCollection[MeasureRow]
    batches: beam.PCollection[pa.RecordBatch]
    dead_letters: beam.PCollection[DeadLetter]
    late: beam.PCollection[DeadLetter]
    curves: beam.PCollection[pa.RecordBatch]
    duplicates: beam.PCollection[DeadLetter]


class ModelsChoices(EvaluatorChoices, TableChoices, EventColumns, ClassColumns, total=False):
    """The keywords of `EvaluateModels`: settings of evaluators and of their table, and columns of events."""


class EvaluateModels(beam.PTransform[beam.PCollection[Any], Evaluation]):
    """Evaluates every model over a window of its own events.

    An event is a dict, a NamedTuple, a beam.Row, or bytes: many events, packed by `EventBatch.pack()`.
    The column arguments (score, label, model, time, id, weight, predicted, slices) name fields of the event.
    An invalid event becomes a dead letter, and the others are evaluated. A packed batch that does not fit the
    settings is one dead letter. weight= names the field of an event's weight; without it, every weight is 1.

    order        "arrival": events apply in the order of arrival, even with time=; rows depend on the runner.
                 "time": events apply in order of time=, each when Beam's watermark has passed its time.
                 "time:10m": each when the watermark has passed its time by 10 minutes. Events of equal times
                 apply in order of id=, then of a hash of their content. An event is late if later events were
                 applied before. If the runner's watermark follows its sources, rows do not depend on the
                 order of arrival.
    clock        "runner", with order="time": Beam's watermark decides up to which time events are complete.
                 Rows on a grid of times are then made only at events of the model, because the moments at
                 which the watermark is seen are random.
    score        a column, or a list of columns: an element is then one event for each column. The column "a"
                 is the model "a" where model_name="", or "m/a" where the element's model, or model_name, is
                 "m".
    class_scores  more than two classes: the fields of the scores of each class, as a list, as a mapping from
                 classes, or "p_*", where the star stands for the class. A star needs elements with a schema.
                 The label is then a class. Every row of a model is followed by a row of each class.
    multi_label  with class_scores=, an event may be of any number of classes: the fields that say for each
                 class whether the event is of the class, instead of label=.
    positive     the label of positive events. Without it, 1/0, 1/-1 and true/false are understood.
    model_name   the one model of all events, instead of a column.
    time_unit    "s", "ms", "us" or "ns", for times that are numbers. The log warns if another unit is likely.
    time_format  the format (of `datetime.strptime`) of times that are texts or numbers such as 20240102.
                 Without it, texts are RFC 3339, dates, or numbers.
    slices       columns, and tuples of columns (crosses). Each model is also evaluated for each of their
                 values.
    shards       64, or about 32 for each worker on a cluster. `Shards(64, own=["fraud"])` gives a large model
                 a shard of its own. None = each model is its own key.
    cache_bytes  bytes of live state that a worker process keeps between bundles (1 GiB).
    curves       EveryEvents(n): the ROC curve of each window after every n-th event and at the end. "end":
                 only at the end.
    curves_points
                 "thinned": a curve leaves out a point within 1/200 of the point before it, in both rates.
                 "all": a point for each score that the window holds.
    deduplicate  "7d", a number of seconds, or a timedelta. A second event of a model with the same id= does
                 not count, if its time= is within this duration of the first event's. An event is remembered
                 until the greatest time of its shard is later by this duration; this takes 40 bytes for each
                 event.
    slice_cap    the most values of a model and a slice that have slices of their own. All later values, and
                 the value "other" itself, are in the slice "country=other".
    idle_ttl     a duration. A (model, slice) that has had no event for longer gives a last row and leaves
                 memory. If it has events again, its window begins empty, and the numbers of its rows
                 continue. Time is the watermark with order="time", else the greatest time= of the shard (with
                 shards=None, of the model).
    settings     an `EvaluatorSettings`; the other arguments are its fields, and replace its values. A window,
                 an emission or a cost may be a text of the command: "last:7d", "1h", "severity".

    If the input is windowed, every pane is evaluated for itself. Raises ConfigError for an invalid setting,
    and for windows that merge (sessions).

        result = events | rs.EvaluateModels(window=rs.LastEvents(10_000), every=rs.EveryEvents(100))
        result.rows | beam.Map(print)
    """

    defaults: ClassVar[dict[str, Any]] = {"shards": 64}
    """Defaults of keywords that differ from the defaults of `TableSettings`."""

    schema: ClassVar[pa.Schema] = ROW_SCHEMA
    """The columns of `batches` with their types, for a sink of Arrow tables such as Parquet.

    With class_scores=, they are CLASS_ROW_SCHEMA.
    """

    def __init__(
        self,
        *,
        settings: EvaluatorSettings | None = None,
        clock: Literal["runner"] | None = None,
        cache_bytes: int = DEFAULT_CACHE_BYTES,
        **choices: Unpack[ModelsChoices],
    ) -> None:
        super().__init__()
        check_keywords("EvaluateModels.__init__", choices, ModelsChoices.__annotations__)
        check_kind(settings, EvaluatorSettings)
        chosen: dict[str, Any] = {**({} if settings is None else vars(settings)), **read_choices(choices)}
        chosen["order"] = order_of_events(chosen.get("order", "arrival"), clock, chosen.get("time"))
        self._chosen = {**self.defaults, **chosen}
        self._cache_bytes = cache_bytes
        stars = (chosen.get(name) for name in ClassColumns.__annotations__)
        self._has_star = any(isinstance(each, str) and "*" in each for each in stars)
        if not self._has_star:  # the fields of elements are known when the transform is applied
            self._fields, self._settings, self._shards = self._planned(None)

    def _planned(self, there: list[str] | None) -> tuple[EventFields, TableSettings, EvaluateShards]:
        """Return the roles of fields, the settings and the step that evaluates. Raises ConfigError.

        there  the fields of elements, if they are known
        """
        fields, settings = chosen_settings(self._chosen, there)
        evaluator = settings.evaluator
        lateness = (evaluator.lateness or 0) if evaluator.by_time else None
        return fields, settings, EvaluateShards(settings, fields, self._cache_bytes, lateness)

    def expand(self, events: beam.PCollection[Any]) -> Evaluation:
        """Pack the events, evaluate them, and unpack the rows."""
        if not isinstance(events, beam.PCollection):
            raise ConfigError(
                f"{self.label}: it is applied to a {type(events).__name__}; apply it to one PCollection "
                "of dicts, NamedTuples, beam.Rows or packed batches of events"
            )
        refuse_merging_windows(events, self.label)
        if self._has_star:
            self._fields, self._settings, self._shards = self._planned(names_of_elements(events))
        settings = self._settings
        needs_ids, by_time = settings.deduplicate is not None, settings.evaluator.by_time
        pack = PackRecords(self._fields, settings.shards, self.label, needs_ids=needs_ids, waited_for=by_time)
        packed = events | "Pack" >> beam.ParDo(pack).with_outputs(DEAD_LETTERS, main="packets")
        rows, refused, _ = packed.packets | "Evaluate" >> self._shards
        record = MeasureRow if settings.classes is None else ClassRow
        return Evaluation(
            rows=rows | "Rows" >> beam.FlatMap(single_rows).with_output_types(record),
            batches=rows | "Batches" >> beam.FlatMap(row_batches).with_output_types(pa.RecordBatch),
            dead_letters=packed[DEAD_LETTERS]
            | "Dead letters" >> beam.Map(unchanged).with_output_types(DeadLetter),
            late=refused | "Late" >> beam.FlatMap(single_letters, "late").with_output_types(DeadLetter),
            curves=rows | "Curves" >> beam.FlatMap(curve_batches).with_output_types(pa.RecordBatch),
            duplicates=refused
            | "Duplicates" >> beam.FlatMap(single_letters, "duplicate").with_output_types(DeadLetter),
        )


def row_batches(rows: Rows) -> Iterator[pa.RecordBatch]:
    """Yield rows as a record batch; yield nothing without rows."""
    if len(rows):  # a result may have curves without rows
        yield rows_to_arrow(rows)


def single_rows(
    rows: Rows, time: Any = beam.DoFn.TimestampParam, window: Any = beam.DoFn.WindowParam
) -> Iterator[Any]:
    """Yield rows one by one, each with its own time as the timestamp, in the row's window.

    Beam would assign a `TimestampedValue` to windows again, by a time that may be outside its pane.
    """
    for row in rows if rows.classes is None else ClassRows(rows):
        micros = row.time if row.due is None else row.due
        yield WindowedValue(row, time if micros is None else timestamp(micros), (window,))


def names_of_elements(events: beam.PCollection[Any]) -> list[str] | None:
    """Return the names of the fields of elements that have a schema: these are NamedTuples and beam.Rows.

    None if elements have no schema.
    """
    if (fields := getattr(events.element_type, "_fields", None)) is None:
        return None
    return [each if isinstance(each, str) else str(each[0]) for each in fields]


def order_of_events(order: str, clock: str | None, time: str | None) -> str:
    """Return the order in which the events of a PCollection can apply.

    Raises ConfigError for an order that is not possible.
    """
    order = checked_order(order)
    if clock not in (None, "runner"):
        raise ConfigError(f"clock={clock!r}: give 'runner', or leave it out")
    if order == "position":
        raise ConfigError(
            "order='position': the elements of a PCollection have no positions; give 'arrival', or 'time' "
            "with clock='runner'"
        )
    if (order != "arrival") != (clock is not None):
        raise ConfigError(
            f"order={order!r} with clock={clock!r}: order='time' goes with clock='runner', whose watermark "
            "says what is complete, and order='arrival' without a clock"
        )
    if order != "arrival" and time is None:
        raise ConfigError(f"order={order!r} needs times; name their field with time=")
    return order
