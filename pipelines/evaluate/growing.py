"""Growing input as partitions of a stream: stdin (SOURCE `-`), and a folder with `--follow`."""

from __future__ import annotations

import argparse
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...core.errors import ConfigError, InputError, RocsteadyError
from ...core.process.console import say
from ...core.settings.durations import microseconds
from ...transforms.files.formats import everywhere, has_scheme
from ...transforms.sinks.append import STDOUT
from ...transforms.sinks.parts import is_folder
from ...transforms.sources.streams.folder_partition import FolderPartition
from ...transforms.sources.streams.partition import StreamPartition
from ...transforms.sources.streams.pipe_partition import PipePartition
from ...transforms.sources.streams.reader import StreamInput
from .job import Evaluation, Streams
from .streams import way_of

STDIN = "-"

_FOLLOWING = ("flink", "prism", "FlinkRunner", "PrismRunner", "PortableRunner")
"""Runners that can follow a folder: they run streaming jobs, and their workers may see the folder."""


@dataclass(frozen=True)
class GrowingSource:
    """A growing folder, or stdin where `folder` is None. A folder may end after `idle` seconds of silence."""

    folder: str | None = None
    idle: float | None = None

    def streams(self, job: Evaluation) -> Streams:
        """Return the streams that a job's runner reads. Raises InputError where the source cannot be read."""
        partition: StreamPartition
        if self.folder is None:
            _refuse_output_to_stdin(job)
            partition = PipePartition(_stdin(), job.fields)
            if sys.stdin.isatty():
                say("JSON lines are read from the terminal, up to Ctrl-D")
        else:
            _refuse_outputs_in(self.folder, job)
            partition = FolderPartition(self.folder, job.fields, self.idle)
            if job.runner.name != "local":
                partition = FolderPartition(everywhere(self.folder), job.fields)
                _check_first_file(partition)
        located = job.settings.deduplicate is not None
        source = StreamInput(partition, 0, 1, "event", job.fields, 0, None, job.timing, located)
        return Streams([source], way_of(job.runner, is_bounded=False))


def growing_source(options: argparse.Namespace, beam_flags: Sequence[str]) -> GrowingSource | None:
    """Return the growing source that the options of `evaluate` name; None where they name files.

    A runner with streaming can follow a folder, too.

    Raises ConfigError or InputError where the source cannot be read while it grows, or with these options.
    """
    folder = options.sources[0]
    if not options.follow:
        if options.until_idle is not None:
            raise ConfigError(
                f"--until-idle {options.until_idle}: a folder is waited for; say --follow, or leave it out"
            )
        if STDIN not in options.sources:
            if options.control is not None:
                raise ConfigError(
                    f"--control {options.control}: files come to an end, and --export-state writes the state "
                    "there; it is for streams"
                )
            return None
    what = "--follow" if options.follow else f"SOURCE {STDIN}"
    if options.labels:
        raise ConfigError(
            f"--labels {' '.join(options.labels)}: labels are joined to predictions in files, or in Beam by "
            f"JoinLabels, and not with {what} in this version; join before, or leave it out"
        )
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
    if not Path(folder).is_dir():
        why = "is not a folder" if Path(folder).exists() else "does not exist; create it"
        raise InputError(f"--follow: {folder} {why}")
    idle = None
    if options.until_idle is not None:
        if elsewhere:
            raise ConfigError(
                f"--until-idle {options.until_idle}: on runner {options.runner} a folder is complete when it "
                "has a file _END; leave it out"
            )
        idle = microseconds(options.until_idle, "--until-idle") / 1e6
    return GrowingSource(folder, idle)


def _stdin() -> int:
    try:
        return sys.stdin.fileno()
    except (OSError, ValueError, AttributeError):
        raise ConfigError(f"SOURCE {STDIN}: there is no stdin here; name files") from None


def _check_first_file(partition: FolderPartition) -> None:
    """Raise InputError where the folder, or its first file if any, cannot be read as events."""
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
