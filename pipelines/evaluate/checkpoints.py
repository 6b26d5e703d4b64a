"""The options on checkpoints of `rocsteady evaluate`: `--checkpoint`, and the options that begin with it."""

from __future__ import annotations

import argparse
import os

from ...core.errors import ConfigError, InputError
from ...core.settings.durations import parse_lateness
from ...transforms.files.formats import has_scheme
from ...transforms.sinks.open import is_appendable, is_folder, is_streamed
from ...transforms.sources.streams.folder_partition import FolderPartition
from ...transforms.sources.streams.stream_input import StreamInput
from ..arguments import parsed, refuse_given
from .job import Checkpoints, Evaluation, Streams

_EVERY = "30s"


def refuse_checkpoints(options: argparse.Namespace, why: str) -> None:
    """Raise ConfigError for an option on checkpoints; `why` is the rest of the sentence."""
    refuse_given(options, why, "checkpoint", "checkpoint_every")
    if options.checkpoint_new:
        raise ConfigError(f"--checkpoint-new{why}")


def checkpoints_of(options: argparse.Namespace, job: Evaluation, streams: Streams) -> Checkpoints | None:
    """Return the place where a live job keeps its checkpoints; None if it keeps none.

    Raises ConfigError for options that do not go together, InputError for a folder that cannot be used.
    """
    if options.checkpoint is None:
        refuse_checkpoints(
            options, " is for a job with checkpoints; say where they are with --checkpoint DIR"
        )
        return None
    said = f"--checkpoint {options.checkpoint}"
    if has_scheme(options.checkpoint):
        raise ConfigError(f"{said}: a live job keeps them on its own machine; name a folder here")
    refuse_given(
        options,
        f" and {said}: a job that stops keeps its state in its checkpoint; leave one out, or ask the running "
        "job for its state, with --control FILE and rocsteady state export",
        "export_state",
    )
    if job.output is None:
        raise ConfigError(f"{said}: the table of models needs all rows; name where they go with --output")
    for option, path, content in job.outputs():
        if content == "report":
            raise ConfigError(
                f"{option} {path} and {said}: a page needs all rows; make it from them, with rocsteady report"
            )
        if not is_appendable(path) and not is_streamed(path):
            raise ConfigError(
                f"{option} {path} and {said}: such a file is written at the end, and is lost if the job is "
                "killed; name a .jsonl or .csv, a folder such as rows/, or a topic"
            )
    _refuse_shared(options.checkpoint, job, streams)
    every = parsed("--checkpoint-every", options.checkpoint_every or _EVERY, parse_lateness) / 1e6
    return Checkpoints(options.checkpoint, every, begins_anew=options.checkpoint_new)


def _refuse_shared(folder: str, job: Evaluation, streams: Streams) -> None:
    """Raise InputError for a folder of checkpoints that is also the followed folder, or a folder of rows."""
    others = [(_option_of(source), source.partition.name) for source in streams.inputs if _is_folder(source)]
    others += [(option, path) for option, path, _ in job.outputs() if is_folder(path)]
    for option, other in others:
        if not has_scheme(other) and os.path.realpath(other) == os.path.realpath(folder):
            raise InputError(f"--checkpoint {folder} is also the folder of {option}; name another")


def _option_of(source: StreamInput) -> str:
    return "--labels" if source.role == "label" else "--follow"


def _is_folder(source: StreamInput) -> bool:
    return isinstance(source.partition, FolderPartition)
