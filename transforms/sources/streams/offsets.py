"""The offset that a reader has reached in its partition, or the place in a folder, kept as state.

A job stores the position as state, in its checkpoint, and continues from there. Offsets of Kafka are stored
here, too: nothing is committed to the brokers. In a folder, the position is a `FolderPlace`: the file being
read, how far it was read, and the files that were read before.

An offset has a meaning only in one topic of one cluster. So a position names its topic and its cluster
(`check_origin`).
"""

from __future__ import annotations

import base64
import json
import os
import zlib
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import NamedTuple

from ....core.encoding.json import MOST_BYTES, read_json, read_object, reading, text_of, whole
from ....core.errors import FutureVersionError, InputError
from ....core.events.times import NO_TIME

VERSION = 1


class Position(NamedTuple):
    """How far a partition has been read.

    number      the partition's number in its stream, if it was added while the job ran; -1 = it was not added
    next        the offset from which reading continues
    high_water  the greatest event time so far, NO_TIME = no time yet
    is_idle     whether the clock does not wait for the partition, until it sends events again
    place       see `Fetched`
    """

    number: int
    next: int
    high_water: int = NO_TIME
    is_idle: bool = False
    place: str = ""


def added_numbers(number: int, known: int, now: int) -> range:
    """Return the numbers of added partitions that the reader of partition `number` reads, too.

    known  the number of partitions when the job began. The added partitions are dealt to the readers in turn
    now    the number of partitions now

    >>> [list(added_numbers(number, 2, 5)) for number in range(2)]
    [[2, 4], [3]]
    """
    return range(number + known, now, known)


def check_origin(what: str, name: str, offset: int, was: str, here: str, remedy: str) -> None:
    """Raise InputError if an offset belongs to another topic, or another cluster, than is read here.

    what       the thing that continues from the offset, with which the error begins
    name       the name of the partition
    was, here  see `StreamPartition.origin`. An id that only one of both has is not compared
    remedy     how to begin without the state

    >>> check_origin("it", "t[0]", 7, "Kafka cluster A", "Kafka cluster A, topic id B", "begin anew")
    """
    before, now = _ids(was), _ids(here)
    for kind in before:  # The cluster comes first: on another cluster each topic has another id.
        if kind not in now or before[kind] == now[kind]:
            continue
        if kind == TOPIC_ID:
            raise InputError(
                f"{what} goes on from offset {offset:,} of {name}, and its topic was deleted and made anew "
                f"since: its id was {before[kind]} and is {now[kind]}; the new topic's offsets are others. "
                f"{remedy[0].upper()}{remedy[1:]}"
            )
        raise InputError(
            f"{what} goes on from offset {offset:,} of {name} of {was}, and this is that of {here}, whose "
            f"offsets are others; name the brokers that the state was read from, or {remedy}"
        )


CLUSTER, TOPIC_ID = "Kafka cluster", "topic id"
"""The kinds of ids in an origin."""


def origin_of(cluster: str, topic_id: str) -> str:
    """Return the origin of a topic's offsets, in words; an id that is "" is not known.

    >>> origin_of("A", "B")
    'Kafka cluster A, topic id B'
    """
    return ", ".join(f"{kind} {id_}" for kind, id_ in ((CLUSTER, cluster), (TOPIC_ID, topic_id)) if id_)


def _ids(origin: str) -> dict[str, str]:
    """Return the ids of an origin by their kind."""
    kinds = (text.rpartition(" ") for text in origin.split(", ") if text)
    return {kind: id_ for kind, _, id_ in kinds}


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
    name        the partition's name
    origin      where the offsets have a meaning; see `StreamPartition.origin`
    number, partitions  the partition's number in the input, and the number of all partitions of the input,
                when the job began; -1 and 0 = not known
    known       the number of partitions of the stream when the job began; 0 = not known
    is_silent   whether the clock need not wait for the partition itself, but may wait for an added partition
    added       the positions of partitions that were added to the stream while the job ran
    """

    next: int
    sent: list[int]
    high_water: int = NO_TIME
    settled: int = NO_TIME
    ended: bool = False
    is_idle: bool = False
    asked: str = ""
    place: str = ""
    name: str = ""
    origin: str = ""
    number: int = -1
    partitions: int = 0
    known: int = 0
    is_silent: bool = False
    added: list[Position] = field(default_factory=list)
    version: int = VERSION

    def to_bytes(self) -> bytes:
        """Return the state as bytes, for a checkpoint."""
        return json.dumps(asdict(self), separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> ReaderState:
        """Return the state from the bytes of a checkpoint.

        Raises CorruptBytesError, or FutureVersionError.
        """
        what = "the position of a reader"
        with reading(what):
            content = read_object(data, what)
            if whole(content["version"], 1) > VERSION:
                raise FutureVersionError(
                    f"{what} is of version {content['version']}, and this rocsteady reads versions up to "
                    f"{VERSION}; upgrade it"
                )
            state = cls(**content)
            state.added = [Position(*each) for each in state.added]
            for number in (state.next, *state.sent, state.partitions, state.known):
                whole(number, 0)
            whole(state.number, -1)
            for each in state.added:
                whole(each.number, 0)
                whole(each.next, 0)
            for moment in (state.high_water, state.settled, *(each.high_water for each in state.added)):
                whole(moment)
            texts = (each.place for each in state.added)
            for text in (state.asked, state.place, state.name, state.origin, *texts):
                text_of(text)
            if not state.sent or not isinstance(state.sent, list):
                raise ValueError("it counts packets of no shard")
            return state


class FilePlace(NamedTuple):
    """A place in a file.

    byte       of lines: so many bytes, unpacked, were read
    whole      all was read that was there, so that the file may be gone
    records    so many records were read
    has_model  of lines: whether the file has the column "model"; None: no record has told yet
    """

    byte: int = 0
    whole: bool = False
    records: int = 0
    has_model: bool | None = None

    def __str__(self) -> str:
        """Return the place in words."""
        return f"byte {self.byte:,}" if self.byte else f"record {self.records:,}"


_BEGINNING = FilePlace()


@dataclass(frozen=True)
class FolderPlace:
    """A place in a folder.

    name  the file that was begun last; "" if none was begun
    file  the place in that file
    read  the names of the existing files that were read to their ends
    """

    name: str = ""
    file: FilePlace = _BEGINNING
    read: frozenset[str] = frozenset()

    @classmethod
    def of(cls, text: str) -> FolderPlace:
        """Return a place from its text. Raises CorruptBytesError."""
        if not text:
            return cls()
        what = "the place in a folder"
        with reading(what):
            content = read_json(text, what)
            name, byte, is_whole, records, has_model = content["file"]
            told = None if has_model is None else bool(has_model)
            at = FilePlace(whole(byte, 0), bool(is_whole), whole(records, 0), told)
            return cls(text_of(name), at, _unpacked(text_of(content["read"])))

    def said(self) -> str:
        """Return the place as a text that `of` reads."""
        if not self.name and not self.read:
            return ""
        content = {"file": [self.name, *self.file], "read": _packed(self.read)}
        return json.dumps(content, separators=(",", ":"))


@lru_cache(maxsize=16)  # a place changes at each fetch, but its names only at each new file
def _packed(names: frozenset[str]) -> str:
    """Return names as text: about 3 bytes a name for numbered files, such as part-000001.jsonl."""
    return base64.b64encode(zlib.compress(b"/".join(sorted(map(os.fsencode, names))), 1)).decode()


@lru_cache(maxsize=16)
def _unpacked(text: str) -> frozenset[str]:
    """Return the names that `_packed` wrote. Raises ValueError."""
    packed = zlib.decompressobj()
    try:
        names = packed.decompress(base64.b64decode(text), MOST_BYTES)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if not packed.eof:
        raise ValueError("names of files are missing")
    return frozenset(filter(None, os.fsdecode(names).split("/")))
