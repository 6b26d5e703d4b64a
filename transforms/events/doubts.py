"""Warns in the log of likely mistakes in event times and labels, as soon as they occur.

Three mistakes are detected: numbers that probably count another unit, an event so far ahead of the wall
clock that later events count as late, and a label such as "NA" that counts as negative. A warning does not
change the job's results.

A worker warns of each column once, whatever the number of files and batches. `reset` forgets the warnings.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from ...core.arrays import Int64Array
from ...core.events.batch import EventBatch, LabelBatch, PredictionBatch
from ...core.events.rejected import in_words
from ...core.events.times import NO_TIME, date_text, doubt_in
from ...core.process.console import logger
from ...core.settings.durations import duration_text
from .columns import holds_numbers, instants
from .dead_letters import Chunk
from .fields import EventFields
from .lateness import Timing

_logger = logger("rocsteady.times")
_labels = logger("rocsteady.labels")

ABSENT = frozenset({"#n/a", "<na>", "?", "missing", "n/a", "na", "nan", "null", "unknown"})
"""Labels, in small letters, that probably stand for a missing label."""

FAR_AHEAD = 86_400_000_000
"""Microseconds: an event further ahead of the clock is reported. A wrong zone causes 14 hours at most."""

_told: dict[tuple[str, str], str] = {}
"""Warnings by column, and unit or label. Threads share it without a lock: each use is one step of a dict."""


def reset() -> None:
    """Forget the warnings, before a job starts."""
    _told.clear()


def told() -> list[str]:
    """Return this process's warnings on units and labels since the last `reset`."""
    return [*_told.values()]


def is_new(key: tuple[str, str], text: str) -> bool:
    """Keep a warning, unless there is a warning of its key; return whether it was kept."""
    return _told.setdefault(key, text) is text


def tell_doubt(name: str, column: pa.Array, times: Int64Array, unit: str) -> None:
    """Warn once if the numbers of a column probably count another unit. O(n), until the warning.

    times  the column's values as times, int64[n]; NO_TIME where a value is no time
    """
    if (name, unit) in _told or not holds_numbers(column):
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


def tell_negatives(name: str, labels: Iterable[str], positive: str) -> None:
    """Warn once of each label that probably stands for a missing one and counts as negative."""
    for label in labels:
        if label == positive or label.strip().lower() not in ABSENT or (name, label) in _told:
            continue
        remedy = f"if it means that the label is missing, leave it empty; only {positive!r} is positive"
        text = f"labels in {name!r}: {label!r} counts as negative; {remedy}"
        if is_new((name, label), text):
            _labels.warning("%s", text)


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
    """Return the position of the first record of that time."""
    column = chunk.batch.column(chunk.batch.schema.get_field_index(fields.time))
    rows = np.flatnonzero(instants(column, fields.time_unit, fields.time_format) == time)
    return f"{int(np.asarray(chunk.places())[rows[0]]):,}"
