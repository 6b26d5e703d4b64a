"""Checkpoints of a live job: `--checkpoint DIR`. A job that was killed continues from the newest checkpoint.

Invariant
    A checkpoint holds the state of all machines and the position of all readers after the same records. It is
    written when all rows of these records are in the outputs. So a job that continues makes each later row,
    and makes no other row: rows that were written after the checkpoint come again, the same byte for byte.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ....core.encoding.json import reading
from ....core.errors import InputError, OtherConfigurationError, RocsteadyError, check_settings
from ....core.process.console import say
from ....core.state.checkpoint import Checkpoint, ReaderPosition
from ....core.version import __version__
from ....transforms.sources.streams.kafka_partition import KafkaPartition
from ....transforms.sources.streams.offsets import check_origin
from ....transforms.sources.streams.reader import StreamReader
from ....transforms.sources.streams.stream_input import StreamInput
from ....transforms.state.checkpoints import CheckpointFolder
from ...words import counted
from ..job import Evaluation, Streams
from .evaluation import LiveEvaluation
from .machines import LiveMachines


def meaning_of(job: Evaluation) -> dict[str, Any]:
    """Return, by name, the settings that decide the outputs of a live job, as JSON values."""
    pairs, roll_ups, alerts = job.pairs, job.roll_ups, job.alerts
    inputs = () if job.streams is None else job.streams.inputs
    said = {
        **vars(job.fields),
        **job.settings.meaning(),
        "measures": job.settings.evaluator.measures,
        "curves": job.settings.evaluator.curves and str(job.settings.evaluator.curves),
        "curves_points": job.settings.evaluator.curves_points,
        "max_ahead": job.timing.ahead,
        "format": sorted({source.format for source in inputs}),
        "pairs": None if pairs is None else pairs.table(job.settings).meaning(),
        "roll_ups": None if roll_ups is None else roll_ups.settings.meaning(),
        "alerts": None if alerts is None else [str(rule) for rule in alerts.rules],
    }
    if (join := job.join) is not None:
        records = join.records and str(join.records)
        said["join"] = {**join.settings.meaning(), "label_time": join.label_time, "label_records": records}
    plain: dict[str, Any] = json.loads(json.dumps(said))
    return plain


# ---- the checkpoints


class LiveCheckpoints:
    """The checkpoints of a live job that runs.

    begun  the checkpoint from which the job continues; None if the job begins
    state  the machines of `begun`, and the counts at that time; None if there are no machines
    """

    def __init__(self, job: Evaluation, folder: CheckpointFolder, every: float) -> None:
        self.begun: Checkpoint | None = None
        self.state: tuple[LiveMachines, Mapping[str, Any]] | None = None
        self._job = job
        self._folder = folder
        self._every = every
        self._settings = meaning_of(job)
        self._written = time.monotonic()
        self._states: list[bytes] | None = None
        if (found := folder.newest(self._read)) is not None:
            self.begun, machines = found
            self.state = None if machines is None else (machines, self.begun.counted)

    @property
    def folder(self) -> str:
        """The folder's path."""
        return self._folder.folder

    def _read(self, checkpoint: Checkpoint) -> tuple[Checkpoint, LiveMachines | None]:
        try:
            check_settings(self._settings, checkpoint.settings)
            with reading("a checkpoint"):
                machines = None if checkpoint.ended else LiveMachines.of(self._job, checkpoint.machines)
        except OtherConfigurationError as other:
            raise InputError(f"--checkpoint {self.folder}: {other}, with --checkpoint-new") from None
        return checkpoint, machines

    def readers(self, streams: Streams, shards: int) -> list[StreamReader]:
        """Return the readers of a job's partitions, at the places that the checkpoint says.

        A partition that was added to a topic since the job began is read as if the job had never stopped: by
        the reader of an older partition. Raises InputError if the job has read other partitions, or other
        topics.
        """
        if self.begun is None:
            return [StreamReader(source, shards) for source in streams.inputs]
        here = {source.partition.name: source for source in streams.inputs}
        there = {position.name: position for position in self.begun.readers}
        known = {_stream_of(here[name]) for name in here.keys() & there.keys()}
        missing = [name for name in there if name not in here]
        missing += [name for name in here if name not in there and _stream_of(here[name]) not in known]
        if missing:
            raise InputError(
                f"--checkpoint {self.folder} was read from {', '.join(there)}, and this job reads "
                f"{', '.join(here)}; name the same, or begin anew with --checkpoint-new"
            )
        readers = [self._reader(here[name], position, shards) for name, position in there.items()]
        self._states = [reader.state() for reader in readers]
        return readers

    def _reader(self, source: StreamInput, position: ReaderPosition, shards: int) -> StreamReader:
        check_origin(
            f"--checkpoint {self.folder}",
            position.name,
            position.offset,
            position.origin,
            source.partition.origin,
            "begin anew with --checkpoint-new",
        )
        fields = replace(source.fields, model=position.model, model_name=position.model_name)
        return StreamReader(replace(source, fields=fields), shards, position.state.encode())

    def write_if_due(self, live: LiveEvaluation, readers: Sequence[StreamReader]) -> None:
        """Write a checkpoint if the last checkpoint is old enough, and a reader has read records since."""
        is_due = self._states is None or time.monotonic() - self._written >= self._every
        if is_due and self._states != [reader.state() for reader in readers]:
            self.write(live, readers)

    def write(self, live: LiveEvaluation, readers: Sequence[StreamReader], *, ended: bool = False) -> None:
        """Write a checkpoint.

        ended: whether all rows are in their outputs, so that no machine is needed any more.
        """
        machines = {} if ended else live.cut()
        fields = [(reader, reader.source.partition, reader.source.fields) for reader in readers]
        positions = [
            ReaderPosition(
                partition.name, partition.origin, reader.state().decode(), known.model, known.model_name
            )
            for reader, partition, known in fields
        ]
        now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        counted = live.counted()
        self._folder.write(Checkpoint(__version__, now, self._settings, positions, counted, machines, ended))
        self._states, self._written = [reader.state() for reader in readers], time.monotonic()

    @property
    def has_ended(self) -> bool:
        """Whether the job reached the end of its input in an earlier process."""
        return self.begun is not None and self.begun.ended

    def check_end(self, streams: Streams, shards: int) -> None:
        """Print that the job has ended. Raises RocsteadyError if its input has more records now."""
        left = self.readers(streams, shards)
        wait = 0.0
        while left:
            for reader in [*left]:
                offset, place = reader.position
                partition = reader.source.partition
                found = partition.fetch(offset, 1, wait, place)
                if any(part.chunk.records for part in found.parts):
                    raise RocsteadyError(
                        f"--checkpoint {self.folder}: the job came to the end of its input, with last rows, "
                        f"but {partition.name} has more records now; begin anew with --checkpoint-new"
                    )
                if partition.resumes or found.ended:
                    partition.close()
                    left.remove(reader)
            wait = 0.1
        say(
            f"nothing is left to do: the job of the checkpoint in {self.folder} came to the end of its "
            "input; --checkpoint-new begins anew"
        )


def _stream_of(source: StreamInput) -> str:
    """Return the name of a partition's topic, or the name of a partition that is alone."""
    partition = source.partition
    return partition.topic.name if isinstance(partition, KafkaPartition) else partition.name


def told_of_end(folder: str, *, has_ended: bool) -> str:
    """Return the sentence about the checkpoint of a job that was stopped, or that reached its end."""
    if has_ended:
        said = f"the checkpoint in {folder} stays, and says that the job came to its end"
        return f"{said}; --checkpoint-new begins anew"
    return f"the checkpoint in {folder} has the state of the job; the same command goes on from there"


@contextmanager
def opened(job: Evaluation) -> Iterator[LiveCheckpoints | None]:
    """Yield the checkpoints of a job, and keep other processes from using them meanwhile.

    Yield None if the job has none.

    Raises InputError for a folder that cannot be used, or whose checkpoints belong to another job.
    """
    asked = job.checkpoints
    if asked is None:
        yield None
        return
    folder = CheckpointFolder(asked.folder)
    folder.check()
    with folder.held():
        if asked.begins_anew:
            folder.clear()
        found = LiveCheckpoints(job, folder, asked.every)
        if found.begun is not None and not found.begun.ended:
            say(
                f"the job goes on from its checkpoint in {Path(asked.folder)}, written {found.begun.time} "
                f"after {counted(found.begun.events_read, 'event')}"
            )
        yield found
