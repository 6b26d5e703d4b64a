"""`evaluate`: evaluates the events of a frame, in this process and without Beam.

Invariant
    Rows and dead letters equal those that `rocsteady evaluate` writes for the same events in a file: the
    frame is one partition, validated and packed by the same code, and one `EvaluatorTable` applies it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from time import time_ns
from typing import Any, Literal, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...core.errors import ConfigError
from ...core.events.batch import EventBatch
from ...core.events.records import Batch, EndOfInput
from ...core.events.rejected import Rejected
from ...core.events.times import END_OF_TIME, NO_TIME
from ...core.ids.sharding import Packet, Packets
from ...core.rows.arrow import rows_to_arrow
from ...core.rows.rows import Rows
from ...core.settings.choices import MeasureChoices
from ...core.settings.costs import Cost
from ...core.settings.durations import Duration, microseconds
from ...core.settings.evaluator import checked_order
from ...core.settings.table import TableSettings
from ...core.settings.windows import Emission, EveryEvents, LastEvents, Window
from ...core.table.table import EvaluatorTable
from ...transforms.evaluate.choices import chosen_settings, events_at_once
from ...transforms.events import doubts
from ...transforms.events.dead_letters import NO_LETTERS, Chunk, DeadLetters, RejectedLetters
from ...transforms.events.doubts.outlying import TimesOfFiles
from ...transforms.events.fields import RECORD_COUNTERS, ClassColumns, check_keywords
from ...transforms.events.lateness import Timing, time_span
from ...transforms.events.losses import LossRole, example_text, tell
from ...transforms.events.validate import validate_as
from ...transforms.sinks.kinds import (
    CLASS_ROWS,
    CURVES,
    DEAD_LETTERS,
    ROWS,
    TableKind,
    curve_batches,
    sorted_table,
)
from .evaluated import Evaluated
from .frames import NAME, Frame, names_of
from .summary import newest_rows

_COUNTERS = RECORD_COUNTERS["event"]


class FrameChoices(MeasureChoices, ClassColumns, total=False):
    """The further keywords of `evaluate`: columns, and settings of evaluators and of their table."""

    model_name: str | None
    time_unit: Literal["s", "ms", "us", "ns"]
    time_format: str | None
    predicted: str | None
    max_ahead: Duration | None
    order: str | None
    deduplicate: Duration | None
    slice_cap: int
    idle_ttl: Duration | None


def evaluate(
    frame: Any,
    *,
    score: str | Sequence[str] = "score",
    label: str = "label",
    model: str | None = None,
    slices: str | Iterable[str | tuple[str, ...]] = (),
    time: str | None = None,
    id: str | None = None,  # noqa: A002  the name of the command's option
    weight: str | None = None,
    positive: object = None,
    window: Window | str = LastEvents(),  # noqa: B008  it is frozen
    every: Emission | int | str | timedelta = EveryEvents(),  # noqa: B008
    cost: Cost | str | None = None,
    **choices: Unpack[FrameChoices],
) -> Evaluated:
    """Evaluate every model of a frame of scored events over a window of its own events.

    Rows and dead letters equal those of `rocsteady evaluate` for a file of the same events. O(n) in events,
    besides the cost of the rows. Beam is not imported.

    frame        of polars, pandas or pyarrow. A lazy frame is collected with only the needed columns.
    score        the column of scores, or a list of columns: each row is then one event for each column. The
                 column "a" is the model "a", or "m/a" where the row's model, or `model_name`, is "m".
    label, model, time, id, weight, predicted
                 names of columns. Without `model`, the column "model" has the models' names, if there is one.
    class_scores  more than two classes: the columns of the scores of each class, as a list, as a mapping from
                 classes, or "p_*", where the star stands for the class. The label is then a class. A model
                 has rows whose `class` is null, and rows of each class.
    multi_label  with `class_scores`, an event may be of any number of classes: the columns that say for each
                 class whether an event is of it, instead of `label`
    model_name   the one model of all events, instead of a column; "model" if neither is given.
    slices       columns, and tuples of columns (crosses). Each model is also evaluated for each of their
                 values.
    positive     the label of positive events. Without it, 1/0, 1/-1 and true/false are understood.
    window       such as `LastEvents(10_000)`, or a word of the command: "last:10000", "last:7d", "adaptive",
                 "fading:7d", "all".
    every        a row after every so many events of a model and slice; or a duration, "1h", for a row at each
                 point of a grid of event times.
    cost         such as `BetaCost(2, 2)`, or a word of the command: "severity".
    order        "time" (with `time`, the default), "time:10m" or "position" (without `time`, the default).
                 Events of equal times apply in the order of `id`, then in the command's arbitrary order.
    time_unit, time_format, max_ahead, deduplicate, slice_cap, idle_ttl, measures, curves and the others
                 as the options of the command and the keywords of `EvaluateModels`.

    Raises ConfigError for an invalid setting. Raises InputError for an object that is no frame, and for a
    column that is missing or there twice. No value in the frame raises an error: the event of a wrong value
    becomes a dead letter.
    """
    explicit = {
        "score": score, "label": label, "model": model, "slices": slices, "time": time, "id": id,
        "weight": weight, "positive": positive, "window": window, "every": every, "cost": cost,
    }  # fmt: skip
    check_keywords("evaluate", choices, {**explicit, **FrameChoices.__annotations__})
    chosen: dict[str, Any] = {**explicit, **choices}
    chosen["order"] = _order(chosen.get("order"), time)
    fields, settings = chosen_settings({**chosen, "shards": 1}, names_of(frame))
    return _FrameEvaluation(Frame(frame, fields), settings, _timing(settings, chosen)).result()


def _order(order: str | None, time: str | None) -> str:
    """Return the order in which the events of a frame apply.

    Raises ConfigError for an order that the columns do not allow.
    """
    if order is None:
        return "position" if time is None else "time"
    order = checked_order(order)
    if order == "arrival":
        raise ConfigError(
            "order='arrival': the events of a frame have positions; give 'position', or 'time' with time="
        )
    if order != "position" and time is None:
        raise ConfigError(f"order={order!r} needs times; name their column with time=")
    return order


def _timing(settings: TableSettings, chosen: Mapping[str, Any]) -> Timing:
    """Return the limits for event times. Raises ConfigError."""
    lateness = settings.evaluator.lateness
    if (ahead := chosen.get("max_ahead")) is None:
        return Timing(lateness=lateness)
    if chosen["time"] is None:
        raise ConfigError(f"max_ahead={ahead!r} needs times; name their column with time=")
    return Timing(lateness=lateness, now=time_ns() // 1_000, ahead=microseconds(ahead, "max_ahead"))


class _FrameEvaluation:
    """Evaluates a frame in chunks of its events, and counts them."""

    def __init__(self, frame: Frame, settings: TableSettings, timing: Timing) -> None:
        self._frame = frame
        self._settings = settings
        self._timing = timing
        self._refused = RejectedLetters(frame.fields)
        self._table = EvaluatorTable(settings)
        self._rows: list[Rows] = []
        self._letters: list[DeadLetters] = []
        self._counts: Counter[str] = Counter(dict.fromkeys(_COUNTERS.values(), 0))

    def result(self) -> Evaluated:
        """Evaluate all events, and return the result."""
        doubts.reset()
        packets, high_water = Packets(NAME, 0, 1, 1), NO_TIME
        for batch, settled in self._with_settled():
            high_water = Timing(high_water).after(batch).high_water
            self._apply(packets.split(batch, high_water))
            if NO_TIME < settled < END_OF_TIME:
                self._apply(packets.heartbeats(settled, high_water))
        self._apply(packets.ends(high_water))
        self._apply([("", EndOfInput().pack())])
        rows = Rows.concat(self._rows)
        tables = {
            "rows": _sorted(
                CLASS_ROWS if self._settings.classes else ROWS,
                [rows_to_arrow(rows)] if len(rows) else [],
            ),
            "dead letters": _sorted(DEAD_LETTERS, [letters.batch for letters in self._letters]),
            "curves": _sorted(CURVES, curve_batches(rows)),
        }
        counts = dict(self._counts)
        for name, number in self._table.counts().items():
            counts[name] = counts.get(name, 0) + number  # both the readers and the table refuse late events
        counts |= {"rows_written": len(rows), "curves_written": len(rows.curves)}
        self._tell_of_losses(counts)
        return Evaluated(
            tables, newest_rows(rows), counts, self._frame.kind, self._settings.evaluator, doubts.told()
        )

    def _tell_of_losses(self, counts: Mapping[str, int]) -> None:
        """Warn in the log if many events are dead letters."""
        if not self._letters:
            return
        letters = DeadLetters.concat(self._letters)
        whys = pa.table(letters.batch.select(["kind", "reason"])).group_by(["kind", "reason"])
        numbers = whys.aggregate([([], "count_all")]).select(["kind", "reason", "count_all"])

        def example(_: LossRole, reason: str) -> str:
            return example_text(letters[pc.index(letters.batch.column("reason"), reason).as_py()])

        tell(counts, list(zip(*numbers.to_pydict().values(), strict=True)), example, least=1)

    def _with_settled(self) -> Iterator[tuple[Batch, int]]:
        """Yield each batch, and the time that no later event precedes.

        The time is NO_TIME if times do not matter.

        With these times the table applies a batch while the batch is in the processor's cache: this takes
        half of the time for a frame in order of time.
        """
        if not self._settings.evaluator.by_time:
            yield from ((batch, NO_TIME) for batch in self._batches())
            return
        batches = [*self._batches()]
        least = [END_OF_TIME if (span := time_span(batch)) is None else span[0] for batch in batches]
        later = np.minimum.accumulate([END_OF_TIME, *reversed(least)])[-2::-1]
        yield from zip(batches, later.tolist(), strict=True)

    def _batches(self) -> Iterator[Batch]:
        """Yield the valid events of the frame; keep dead letters of the other events."""
        fields, position = self._frame.fields, 0
        located, times = self._settings.deduplicate is not None, TimesOfFiles()
        table = self._frame.table().combine_chunks()
        for records in table.to_batches(events_at_once(self._settings.evaluator)):
            chunk = Chunk(position, records, None, NO_LETTERS)
            batch, letters = validate_as("event", chunk, fields, NAME, 0, self._timing, located=True)
            times.note("event", fields.time, batch, letters)
            if isinstance(batch, EventBatch) and not located:
                batch = replace(batch, positions=None)
            self._timing = self._timing.after(batch)
            position += records.num_rows
            self._note(letters)
            self._counts[_COUNTERS["read"]] += len(batch) + len(letters)
            self._counts.update(_COUNTERS[kind] for kind, _, _ in letters.whys())
            yield batch
        times.tell()

    def _note(self, letters: DeadLetters) -> None:
        if len(letters):
            self._letters.append(letters)

    def _apply(self, packets: Iterable[Packet]) -> None:
        for _, packet in packets:
            for given in self._table.apply(packet):
                if isinstance(given, Rejected):
                    self._note(self._refused(given))
                else:
                    self._rows.append(given)


def _sorted(kind: TableKind, batches: Iterable[pa.RecordBatch]) -> pa.Table:
    return sorted_table(batches, kind.schema, kind.order)
