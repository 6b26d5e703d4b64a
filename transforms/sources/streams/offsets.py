"""The offset that a reader has reached in its partition, or the place in a folder, kept as state.

A job keeps the position as state, in its checkpoint, and goes on from there. Offsets of Kafka are kept here,
too: nothing is committed to the brokers.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace

from ....core.encoding.json import read_object, reading, text_of, whole
from ....core.errors import FutureVersionError
from ....core.events.times import NO_TIME

_VERSION = 2
"""Version 1 had neither `asked` nor `place`."""


@dataclass
class ReaderState:
    """The state of a reader: it determines all later output of the reader.

    next        the offset from which the reader continues.
    sent        the number of packets sent to each shard.
    high_water  the greatest event time so far, NO_TIME = no time yet.
    settled     the time of the last heartbeat.
    ended       whether the reader has sent the partition's end.
    is_idle     whether the last control record says that the partition is idle.
    asked       the id of the last requested export.
    place       see `Fetched`
    """

    next: int
    sent: list[int]
    high_water: int = NO_TIME
    settled: int = NO_TIME
    ended: bool = False
    is_idle: bool = False
    asked: str = ""
    place: str = ""
    version: int = field(default=_VERSION)

    def to_bytes(self) -> bytes:
        """Return a checkpoint."""
        return json.dumps(asdict(self), separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> ReaderState:
        """Return the state of a checkpoint. Raises CorruptBytesError, or FutureVersionError."""
        what = "the position of a reader"
        with reading(what):
            content = read_object(data, what)
            if whole(content["version"], 1) > _VERSION:
                raise FutureVersionError(
                    f"{what} is of version {content['version']}, and this rocsteady reads versions up to "
                    f"{_VERSION}; upgrade it"
                )
            state = replace(cls(**content), version=_VERSION)
            for number in (state.next, *state.sent):
                whole(number, 0)
            for moment in (state.high_water, state.settled):
                whole(moment)
            for text in (state.asked, state.place):
                text_of(text)
            if not state.sent or not isinstance(state.sent, list):
                raise ValueError("it counts packets of no shard")
            return state
