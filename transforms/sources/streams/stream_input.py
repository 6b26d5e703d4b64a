"""A partition of a stream as a partition of a job's input."""

from __future__ import annotations

from dataclasses import dataclass

from ....core.events.times import NO_TIME
from ....core.ids.sharding import Cut
from ...events.fields import EventFields, Role
from ...events.lateness import ANY_TIME, Timing
from .partition import MessageFormat, StreamPartition


@dataclass(frozen=True)
class StreamInput:
    """A partition of a stream as a partition of a job's input.

    number, partitions  the partition's number, from 0, and the number of all partitions of the input.
    role         the role of the records.
    fields       the roles of the columns, including the source of the model's name.
    timing       the limits for times, before the first record.
    located      whether the records keep their positions.
    start, end   the offset of the first message, and the offset after the last message; end None = no end.
    idle         seconds without messages, after which other partitions' clocks no longer wait; None = never.
    place        the place of `start`; see `Fetched`.
    high_water   the greatest event time before `start`, if the job continues from an export.
    format       the format of messages: JSON, or Arrow IPC streams. A pipe and a folder give no messages.
    control      a file that can request the states of the shards while the job runs.
    cut          the request for the states of the shards at `end`, if the partition is cut off there.
    grows        whether partitions that are added to the stream are read, too; otherwise the first added
                 partition ends the job.
    is_new       whether the partition was added since the export from which the job continues.
    """

    partition: StreamPartition
    number: int
    partitions: int
    role: Role
    fields: EventFields
    start: int
    end: int | None = None
    timing: Timing = ANY_TIME
    located: bool = False
    idle: float | None = None
    place: str = ""
    high_water: int = NO_TIME
    control: str | None = None
    cut: Cut | None = None
    format: MessageFormat = "json"
    grows: bool = True
    is_new: bool = False
