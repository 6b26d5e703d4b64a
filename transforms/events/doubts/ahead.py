"""Warns of an event of a stream so far ahead of the wall clock that later events count as late."""

from __future__ import annotations

import numpy as np

from ....core.events.batch import EventBatch, LabelBatch, PredictionBatch
from ....core.events.rejected import in_words
from ....core.events.times import date_text
from ....core.process.console import logger
from ....core.settings.durations import duration_text
from ..columns import instants
from ..dead_letters import Chunk
from ..fields import EventFields
from ..lateness import Timing
from ..periods import column_at

_logger = logger("rocsteady.times")

FAR_AHEAD = 86_400_000_000
"""An event that is further ahead of the clock, in microseconds, is reported. A wrong time zone causes 14
hours at most.
"""


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
