"""Warns in the log of likely mistakes in event times and labels, as soon as they occur.

Six mistakes are detected: numbers that probably count another unit, a format of times that swaps days and
months, times in files that lie far from all others, an event of a stream so far ahead of the wall clock that
later events count as late, a label such as "NA" that counts as negative, and labels and predictions with too
few classes in common. A warning does not change the job's results.

A worker warns of each column once, whatever the number of files and batches. `reset` forgets the warnings.
"""

from __future__ import annotations

from collections.abc import Iterable
from shlex import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...core.arrays import Int64Array
from ...core.events.batch import EventBatch, LabelBatch, PredictionBatch
from ...core.events.class_doubts import ClassDoubt
from ...core.events.columns import TextColumn
from ...core.events.outlying import Outlier, TimeSpread
from ...core.events.records import Batch
from ...core.events.rejected import in_words
from ...core.events.times import NO_TIME, date_text, doubt_in
from ...core.process.console import logger
from ...core.settings.durations import duration_text
from .columns import holds_numbers, instants, texts
from .dead_letters import Chunk, DeadLetters
from .fields import EventFields, Role
from .lateness import Timing
from .periods import column_at
from .time_formats import form_that_fits, swapped_form

_logger = logger("rocsteady.times")
_labels = logger("rocsteady.labels")

ABSENT = frozenset({"#n/a", "<na>", "?", "missing", "n/a", "na", "nan", "null", "unknown"})
"""Texts of labels, in small letters, that probably stand for a missing label."""

FAR_AHEAD = 86_400_000_000
"""An event that is further ahead of the clock, in microseconds, is reported. A wrong time zone causes 14
hours at most.
"""

_SHOWN = 3
"""The most records with outlying times that a warning names."""

_TRIED = 1_000
"""The most distinct texts of a batch that are tried in other formats."""

_told: dict[tuple[str, str], str] = {}
"""The warnings so far, by column, and by unit or label. Threads share it without a lock: each use is one step
of a dict.
"""


_classes: dict[tuple[str, str, str], ClassDoubt] = {}
"""The classes so far, by the columns of labels and of predictions and the positive class."""


def reset() -> None:
    """Forget the warnings, before a job starts."""
    _told.clear()
    _classes.clear()


def told() -> list[str]:
    """Return this process's warnings on units and labels since the last `reset`, at the end of a job."""
    tell_classes_at_end()
    return [*_told.values()]


def is_new(key: tuple[str, str], text: str) -> bool:
    """Keep a warning, unless a warning with its key is kept already; return whether the warning was kept."""
    return _told.setdefault(key, text) is text


def tell_doubt(name: str, column: pa.Array, times: Int64Array, unit: str, form: str | None = None) -> None:
    """Warn once if the numbers of a column probably count another unit, or its texts have another format.

    times  the column's values as times, int64[n]; NO_TIME where a value is no time

    O(n), until the warning.
    """
    if form is not None or not holds_numbers(column):
        _tell_other_form(name, column, times, form)
        return
    if (name, unit) in _told:
        return
    doubt = doubt_in(times[times != NO_TIME], unit)
    if doubt is None:
        return
    remedy = "give another --time-unit (time_unit=) or another column, if that is not meant"
    if doubt.other:
        remedy = f'give --time-unit {doubt.other} (time_unit="{doubt.other}")'
    elif doubt.form:
        remedy = f'give --time-format {doubt.form} (time_format="{doubt.form}")'
    text = f"times in {name!r}: {doubt.finding}; {remedy}"
    if is_new((name, unit), text):
        _logger.warning("times in %r: %s; %s", name, doubt.finding, remedy)


def _tell_other_form(name: str, column: pa.Array, times: Int64Array, form: str | None) -> None:
    """Warn once if texts do not fit their format, but fit it with day and month, or the year, reordered.

    times  the column's values as times, int64[n]; NO_TIME where a text does not fit
    form   the format; None: RFC 3339, whose dates begin with year, month and day
    """
    key, asked = (name, form or ""), "RFC 3339" if form is None else repr(form)
    unfit = np.flatnonzero(times == NO_TIME)
    if not len(unfit) or key in _told:
        return
    for text in texts(column.take(pa.array(unfit))).values[:_TRIED]:
        other = swapped_form(text) if form is None else form_that_fits(text, form)
        if other is None:
            continue
        finding = (
            f"{text!r} does not fit {asked}, but fits {other!r}: if all have that form, days and months of "
            "those that fit are swapped, and their times are wrong"
        )
        remedy = f'give --time-format {quote(other)} (time_format="{other}"), or mend these texts'
        said = f"times in {name!r}: {finding}; {remedy}"
        if is_new(key, said):
            _logger.warning("times in %r: %s; %s", name, finding, remedy)
        return


def tell_labels(fields: EventFields, classes: TextColumn) -> None:
    """Warn of labels that probably stand for missing labels, and of predictions unlike all labels."""
    if fields.positive is not None:
        _tell_negatives(fields.label, classes.values, fields.positive)
    _tell_classes(fields, 0, classes)


def tell_predictions(fields: EventFields, classes: TextColumn) -> None:
    """Warn of predictions that differ from all labels, or from all labels but one class."""
    _tell_classes(fields, 1, classes)


def _tell_negatives(name: str, labels: Iterable[str], positive: str) -> None:
    """Warn once of each label that probably stands for a missing label and counts as negative."""
    for label in labels:
        if label == positive or label.strip().lower() not in ABSENT or (name, label) in _told:
            continue
        remedy = f"if it means that the label is missing, leave it empty; only {positive!r} is positive"
        text = f"labels in {name!r}: {label!r} counts as negative; {remedy}"
        if is_new((name, label), text):
            _labels.warning("%s", text)


class TimesOfFiles:
    """The times of the records of files, by role and column.

    It warns of times that lie far from all others.
    """

    def __init__(self) -> None:
        self._spreads: dict[tuple[Role, str], TimeSpread] = {}

    def note(self, role: Role, column: str | None, batch: Batch, letters: DeadLetters) -> None:
        """Note the times of valid records, with their positions, and those of late records."""
        times, source = batch.times, batch.source
        if column is None or times is None:
            return
        self.note_times(role, column, times, batch.positions, source)
        if len(letters):
            late = letters.batch.filter(pc.equal(letters.batch.column("kind"), "late"))
            moments, positions = late.column("time").cast(pa.int64()), late.column("position").fill_null(-1)
            self.note_times(role, column, np.asarray(moments), np.asarray(positions), source)

    def note_times(
        self, role: Role, column: str, times: Int64Array, positions: Int64Array | None, source: str
    ) -> None:
        """Add the times of records of a source, none of them NO_TIME, with their positions."""
        self._spreads.setdefault((role, column), TimeSpread()).add(times, positions, source)

    def tell(self) -> None:
        """Warn of outlying times, once for each role and column of the files."""
        for (role, column), spread in self._spreads.items():
            if not (outliers := spread.outliers()):
                continue
            least, greatest = spread.middle()
            shown = ", ".join(map(_record, outliers[:_SHOWN]))
            more = f", and {len(outliers) - _SHOWN} more times" if len(outliers) > _SHOWN else ""
            gap = in_words(min(outlier.gap for outlier in outliers))
            finding = (
                f"{shown}{more}: {gap} or more from every other time, while the middle 98% of the times span "
                f"{in_words(greatest - least)}; windows and rows by time go as far"
            )
            remedy = "mend the time, or leave the record out"
            if outliers[-1].time > greatest:
                remedy += "; with --max-ahead 1d (max_ahead=) a time ahead of the clock is a dead letter"
            text = f"times in {column!r}: {finding}; {remedy}"
            if is_new((column, f"{role} of {outliers[0].source}"), text):
                _logger.warning("times in %r: %s; %s", column, finding, remedy)


def _record(outlier: Outlier) -> str:
    place = "a record" if outlier.position < 0 else f"the record at position {outlier.position:,}"
    return f"{place} of {outlier.source} is dated {date_text(outlier.time)}"


def _tell_classes(fields: EventFields, side: int, classes: TextColumn) -> None:
    """Add the classes of labels (side 0) or of predictions (side 1).

    Warn once if both have too few classes in common.
    """
    if fields.predicted is None or fields.class_scores:
        return
    key = fields.label, fields.predicted, fields.positive or ""
    doubt = _classes.get(key)
    if doubt is None:
        whose = f"labels in {fields.label!r}", f"predictions in {fields.predicted!r}"
        doubt = _classes.setdefault(key, ClassDoubt(whose, fields.positive))
    doubt.add(side, classes.values, len(classes))
    _tell_of_classes(key, doubt.sentence())


def tell_classes_at_end() -> None:
    """Warn of labels and predictions with too few classes in common, however few events there were.

    The end is that of a command, of a frame, or of a worker's reading step. The classes are then forgotten.
    """
    for key in [*_classes]:
        if (doubt := _classes.pop(key, None)) is not None:
            _tell_of_classes(key, doubt.sentence(at_end=True))


def _tell_of_classes(key: tuple[str, str, str], sentence: str | None) -> None:
    if sentence is not None:
        _told[key[0], f"classes of {key[1]}"] = sentence
        _labels.warning("%s", sentence)


def tell_ahead(
    source: str,
    chunk: Chunk,
    batch: EventBatch | PredictionBatch | LabelBatch,
    fields: EventFields,
    timing: Timing,
) -> None:
    """Warn of the record with the greatest time in a batch if the time is far ahead of the wall clock.

    Each partition warns once, and again when a record is twice as far ahead as the record warned of before.

    chunk   the records that became the batch
    timing  the limits by which they were judged
    """
    times, lateness = batch.times, timing.lateness
    if times is None or not len(times):
        return
    greatest = int(times.max())
    ahead, before = greatest - timing.now, timing.high_water - timing.now
    limit = max(FAR_AHEAD, lateness or 0)
    if ahead <= limit or (before > limit and ahead < 2 * before):
        return
    if lateness is None:
        effect = "windows and rows by time go on from that time"
    else:
        effect = f"records more than {duration_text(lateness)} before that time are late from here on"
        effect = effect.replace("more than 0s before", "before")
    _logger.warning(
        "%s: the record at position %s is dated %s, %s ahead of the clock of this machine, and %s; with "
        "--max-ahead 1d such a record is a dead letter",
        source, _position_of(chunk, fields, greatest), date_text(greatest), in_words(ahead), effect,
    )  # fmt: skip


def _position_of(chunk: Chunk, fields: EventFields, time: int) -> str:
    """Return the position of the first record with this time."""
    column = column_at(chunk.batch, chunk.batch.schema.get_field_index(fields.time))
    rows = np.flatnonzero(instants(column, fields.time_unit, fields.time_format) == time)
    return f"{int(np.asarray(chunk.places())[rows[0]]):,}"
