"""A folder as what drives readers sees it: in this process, at Flink's ticks, or as an unbounded source."""

from __future__ import annotations

import json
import os
from typing import Any

import pyarrow as pa
from apache_beam.pvalue import TaggedOutput
from rocsteady.core.events.batch import EventBatch
from rocsteady.core.events.records import EndOfPartition, unpack_record
from rocsteady.transforms.events.batches import from_ipc
from rocsteady.transforms.events.dead_letters import DeadLetter, DeadLetters
from rocsteady.transforms.events.fields import EventFields
from rocsteady.transforms.sources.streams.folder_partition import FolderPartition
from rocsteady.transforms.sources.streams.read import _key, _ReadAtTick, _Source
from rocsteady.transforms.sources.streams.reader import StreamReader
from rocsteady.transforms.sources.streams.stream_input import StreamInput

DRIVERS = ("here", "ticks", "source", "anew")
"""`anew`: every step is made by a reader of another process, from the state that the one before left."""


class Looks:
    """What is read of a folder, look by look.

    files    (name, events) of every file, in order
    letters  of what is no event
    """

    def __init__(
        self,
        folder: Any,
        fields: EventFields,
        driver: str = "here",
        start: int = 0,
        place: str = "",
        **more: Any,
    ) -> None:
        self.partition = FolderPartition(str(folder), fields, **more)
        self.source = StreamInput(self.partition, 0, 1, "event", fields, start, located=True, place=place)
        self.files: list[tuple[str, int]] = []
        self.models: set[str] = set()
        self.letters: list[DeadLetter] = []
        self.scores: list[float] = []
        self.ended = False
        self._driver = driver
        self._state: Any = None
        self._reader = StreamReader(self.source, 1)
        if driver == "ticks":
            self._at_tick = _ReadAtTick([self.source], 1)
            self._at_tick.setup()

    def look(self, limit: int = 20_000, wait: float = 0.0) -> int:
        """Look once; return how many records were read."""
        before = sum(n for _, n in self.files) + len(self.letters)
        packets, letters = getattr(self, f"_look_{self._driver}")(limit, wait)
        for packet in packets:
            record = unpack_record(packet)
            self.ended |= isinstance(record, EndOfPartition)
            if isinstance(record, EventBatch):
                self._note(record)
        for batch in letters:
            self.letters += DeadLetters(batch)
        return sum(n for _, n in self.files) + len(self.letters) - before

    def rest(self, limit: int = 20_000, wait: float = 0.01) -> Looks:
        """Look until the folder has ended."""
        while not self.ended:
            self.look(limit, wait)
        return self

    def stop(self) -> None:
        """Let the folder end, and read what has been begun."""
        for step in self._reader.finish():
            for _, packet in step.packets:
                record = unpack_record(packet)
                if isinstance(record, EventBatch):
                    self._note(record)
            self.letters += step.letters
        self.ended = True

    @property
    def dead(self) -> list[tuple[str, str | None]]:
        """(name of a file, detail) of every dead letter."""
        return [(os.path.basename(letter.source), letter.detail) for letter in self.letters]  # noqa: PTH119

    def _note(self, batch: EventBatch) -> None:
        self.scores += batch.scores.tolist()
        self.models |= {*batch.models.to_list()}
        for source in batch.event_sources().to_list():
            name = os.path.basename(str(source))  # noqa: PTH119
            if self.files and self.files[-1][0] == name:
                self.files[-1] = name, self.files[-1][1] + 1
            else:
                self.files.append((name, 1))

    def _look_here(self, limit: int, wait: float) -> tuple[list[bytes], list[pa.RecordBatch]]:
        step = self._reader.step(limit, wait)
        return [packet for _, packet in step.packets], [step.letters.batch]

    def _look_anew(self, limit: int, wait: float) -> tuple[list[bytes], list[pa.RecordBatch]]:
        self.partition.close()
        self._reader = StreamReader(self.source, 1, self._state)
        given = self._look_here(limit, wait)
        self._state = self._reader.state()
        return given

    def _look_ticks(self, limit: int, wait: float) -> tuple[list[bytes], list[pa.RecordBatch]]:  # noqa: ARG002
        self._at_tick.start_bundle()
        packets, letters = [], []
        for given in self._at_tick.process((_key(self.source), b""), self):
            if isinstance(given, TaggedOutput):
                letters.append(given.value)
            else:
                packets.append(given[1])
        self.ended |= bool(json.loads(self._state)["ended"])
        return packets, letters

    def read(self) -> bytes | None:
        """Return the state, as a cell of Beam's does."""
        found: bytes | None = self._state
        return found

    def write(self, value: bytes) -> None:
        """Keep a state, as a cell of Beam's does."""
        self._state = value

    def _look_source(self, limit: int, wait: float) -> tuple[list[bytes], list[pa.RecordBatch]]:  # noqa: ARG002
        reader = _Source([self.source], 1).create_reader(None, self._state)
        packets: list[bytes] = []
        letters: list[pa.RecordBatch] = []
        if reader.advance():
            given, dead = reader.get_current()
            packets += [packet for _, packet in given]
            letters += map(from_ipc, dead)
        self._state = reader.get_checkpoint_mark()
        return packets, letters
