"""stdin or growing folders as the input of `rocsteady evaluate`, as the options name them.

    SOURCE -             JSON lines on stdin; --label-records: some of them are labels
    SOURCE --follow      a folder; labels from --labels, which are folders too; --until-idle

A runner with streaming can follow folders, too.
"""

from __future__ import annotations

import argparse
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from ....core.errors import ConfigError, InputError, RocsteadyError
from ....core.process.console import say
from ....core.settings.durations import microseconds
from ....transforms.events.fields import Role
from ....transforms.files.formats import everywhere, has_scheme
from ....transforms.sinks.appended import STDOUT
from ....transforms.sinks.open import is_folder
from ....transforms.sources.streams.folder_partition import FolderPartition
from ....transforms.sources.streams.partition import StreamPartition
from ....transforms.sources.streams.pipe_kinds import pipe_kinds
from ....transforms.sources.streams.pipe_partition import PipeLines, PipePartition
from ....transforms.sources.streams.stream_input import StreamInput
from ...arguments import refuse_given
from ..job import Evaluation, Streams
from .topics import way_of

STDIN = "-"

_FOLLOWING = ("flink", "prism", "FlinkRunner", "PrismRunner", "PortableRunner")
"""Runners that can follow a folder: they run streaming jobs, and their workers may see the folder."""


@dataclass(frozen=True)
class GrowingSource:
    """A growing folder, or stdin if `folder` is None. A folder may end after `idle` seconds of silence.

    labels  folders of labels; the source then has predictions
    """

    folder: str | None = None
    idle: float | None = None
    labels: Sequence[str] = ()
    is_bounded: ClassVar[bool] = False

    def streams(self, job: Evaluation) -> Streams:
        """Return the streams that a job's runner reads. Raises InputError if the source cannot be read."""
        partitions = self._of_stdin(job) if self.folder is None else self._of_folders(self.folder, job)
        located = job.settings.deduplicate is not None
        inputs = []
        for number, (role, partition) in enumerate(partitions):
            fields = job.fields_of(role)
            inputs.append(
                StreamInput(partition, number, len(partitions), role, fields, 0, None, job.timing, located)
            )
        return Streams(inputs, way_of(job.runner, is_bounded=False))

    def _of_stdin(self, job: Evaluation) -> Sequence[tuple[Role, StreamPartition]]:
        _refuse_output_to_stdin(job)
        lines = PipeLines(_stdin())
        if sys.stdin.isatty():
            say("JSON lines are read from the terminal, up to Ctrl-D")
        if job.join is not None and job.join.records is not None:
            return pipe_kinds(lines, job.join.records, job.fields, job.fields_of("label"))
        return (("event", PipePartition(lines, job.fields)),)

    def _of_folders(self, folder: str, job: Evaluation) -> Sequence[tuple[Role, StreamPartition]]:
        first: Role = "prediction" if self.labels else "event"
        partitions: list[tuple[Role, StreamPartition]] = []
        for path, role in ((folder, first), *((path, "label") for path in self.labels)):
            _refuse_outputs_in(path, job)
            fields = job.fields_of(role)
            partition = FolderPartition(path, fields, self.idle, role=role)
            if job.runner.name != "local":
                partition = FolderPartition(everywhere(path), fields, role=role)
            if job.runner.name != "local" or self.labels:
                _check_first_file(partition)
            partitions.append((role, partition))
        return partitions


def growing_source(options: argparse.Namespace, beam_flags: Sequence[str]) -> GrowingSource | None:
    """Return the growing source that the options of `evaluate` name; None if they name files.

    Raises ConfigError or InputError if the source cannot be read while it grows, or not with these options.
    """
    folder = options.sources[0]
    if not options.follow:
        refuse_given(options, ": a folder is waited for; say --follow, or leave it out", "until_idle")
        if STDIN not in options.sources:
            why = ": files come to an end, and --export-state writes the state there; it is for streams"
            refuse_given(options, why, "control")
            return None
    what = "--follow" if options.follow else f"SOURCE {STDIN}"
    if len(options.sources) > 1:
        raise ConfigError(
            f"{what} takes one source, and {len(options.sources)} are given; put them together before, "
            "as with cat old.jsonl - | rocsteady evaluate -"
        )
    elsewhere = options.follow and options.runner in _FOLLOWING
    if (options.runner != "local" or beam_flags) and not elsewhere:
        said = beam_flags[0] if options.runner == "local" else f"--runner {options.runner}"
        raise ConfigError(f"{said}: {what} is evaluated in this process, without Beam; leave it out")
    if not options.follow:
        _stdin()
        return GrowingSource()
    if folder == STDIN:
        raise ConfigError(
            f"--follow is for a folder, and SOURCE {STDIN} is followed without it; leave it out"
        )
    _check_folders([("--follow", folder), *(("--labels", path) for path in options.labels)])
    idle = None
    if options.until_idle is not None:
        if elsewhere:
            why = f": on runner {options.runner} a folder is complete when it has a file _END; leave it out"
            refuse_given(options, why, "until_idle")
        idle = microseconds(options.until_idle, "--until-idle") / 1e6
    return GrowingSource(folder, idle, tuple(options.labels))


def _check_folders(named: Sequence[tuple[str, str]]) -> None:
    """Raise InputError for a path that is no folder, or that is named twice."""
    known: dict[str, str] = {}
    for option, path in named:
        if not Path(path).is_dir():
            why = "is not a folder" if Path(path).exists() else "does not exist; create it"
            if option == "--labels":
                why += "; with --follow, labels come in a folder of their own"
            raise InputError(f"{option}: {path} {why}")
        real = os.path.realpath(path)
        if real in known:
            raise InputError(
                f"{option} {path} is also the folder of {known[real]}; predictions and labels come in "
                "folders of their own, each named once"
            )
        known[real] = option


def _stdin() -> int:
    try:
        return sys.stdin.fileno()
    except (OSError, ValueError, AttributeError):
        raise ConfigError(f"SOURCE {STDIN}: there is no stdin here; name files") from None


def _check_first_file(partition: FolderPartition) -> None:
    """Raise InputError if the folder, or its first file if there is one, cannot be read as events."""
    try:
        partition.fetch(0, 1, 0.0)
    except RocsteadyError as error:
        raise InputError(str(error)) from None
    finally:
        partition.close()


def _refuse_outputs_in(folder: str, job: Evaluation) -> None:
    """Raise InputError for an output inside the followed folder: the job would read its own output."""
    for option, path in _tables_here(job):
        into = path if is_folder(path) else Path(path).parent
        if os.path.realpath(into) == os.path.realpath(folder):
            raise InputError(f"{option} {path} is in the folder that is followed; write elsewhere")


def _refuse_output_to_stdin(job: Evaluation) -> None:
    """Raise InputError for an output that is the file behind stdin: the job would read its own output."""
    found = os.fstat(_stdin())
    if not stat.S_ISREG(found.st_mode):
        return
    for option, path in _tables_here(job):
        if Path(path).exists() and os.path.samestat(found, Path(path).stat()):
            raise InputError(f"{option} {path} is also the input; write to another file")


def _tables_here(job: Evaluation) -> Iterator[tuple[str, str]]:
    """Yield (option, path) of each table that the job writes to a file or folder of this machine."""
    for option, path, content in job.outputs():
        if content != "report" and path != STDOUT and not has_scheme(path):
            yield option, path
