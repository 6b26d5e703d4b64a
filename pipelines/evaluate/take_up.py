"""The state that a job starts from: checks an export against the job's settings, and changes its shards."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...core.encoding.json import reading
from ...core.errors import ConfigError, InputError, OtherConfigurationError, WireError
from ...core.evaluator.snapshot import Snapshot
from ...core.join.state import JoinState
from ...core.process.temporary_folders import temporary_folder
from ...core.settings.shards import Shards
from ...core.state.exported import ShardState
from ...core.state.reshard import resharded, resharded_joins
from ...core.state.take_up import check_join, check_table
from ...transforms.files.formats import everywhere
from ...transforms.state.folder import (
    EVALUATORS,
    JOIN,
    Export,
    Step,
    check_new_folder,
    new_id,
    read_export,
    write_state,
)
from .job import Evaluation
from .streams import going_on


@contextmanager
def state_taken_up(job: Evaluation, options: argparse.Namespace) -> Iterator[Evaluation]:
    """Yield a job with the state that it imports and the folder of its export, as its options say.

    Raises ConfigError, or InputError.
    """
    folder = options.export_state
    if folder is not None:
        check_new_folder("--export-state", folder)
    for name in ("export_state", "import_state", "control"):
        if (value := getattr(options, name)) is not None and job.alerts is not None:
            option = f"--{name.replace('_', '-')}"
            raise ConfigError(
                f"{option} {value}: the rules of --alert have a state that is not exported in this version; "
                "leave --alert out, and watch the rows of all jobs together"
            )
    job = replace(job, export=folder if folder is None or job.runner.here else everywhere(folder))
    if options.import_state is None:
        yield job
        return
    export = read_export(options.import_state)
    check_fits(export, job)
    if job.streams is not None:
        job = replace(job, streams=going_on(job.streams, export, options.start))
        export = replace(export, folder=everywhere(export.folder))
    wanted = {step.name: Shards.of(step.shards) for step in job.steps()}
    if all(wanted[step.name] == step.spread() for step in export.steps):
        yield replace(job, begins_with=export)
        return
    if not job.runner.here:
        raise InputError(
            f"--import-state {export.folder} is of other shards, and runner {job.runner.name!r} reads it "
            f"elsewhere; spread it first: rocsteady state import {export.folder} "
            f"{_as_options(wanted, export)} --output DIR"
        )
    with temporary_folder() as temporary:
        yield replace(job, begins_with=reshard(export, wanted, str(Path(temporary) / "state")))


def check_fits(export: Export, job: Evaluation) -> None:
    """Raise InputError where a job cannot import an export: the export has other steps or other settings."""
    wanted, there = [step.name for step in job.steps()], [step.name for step in export.steps]
    if sorted(wanted) != sorted(there):
        raise InputError(
            f"--import-state {export.folder} holds the state of {' and '.join(there)}, and this job has "
            f"{' and '.join(wanted)}; give --labels to both jobs, or to none"
        )
    try:
        join = export.step(JOIN)
        if join is not None and job.join is not None:
            check_join(join.settings, job.join.settings)
        for state in export.states(EVALUATORS):
            check_table(Snapshot.unpack(state.snapshot), job.settings)
    except (OtherConfigurationError, WireError) as problem:
        raise InputError(f"--import-state {export.folder}: {problem}") from None


def _as_options(wanted: Mapping[str, Shards], export: Export) -> str:
    """Return the options of `rocsteady state import` that give an export these shards."""
    words = []
    for step in export.steps:
        before, after = step.spread(), wanted[step.name]
        if before.shared != after.shared:
            words += ["--join-shards" if step.name == JOIN else "--shards", str(after.shared)]
        for option, models in (
            ("--own-shard", [model for model in after.own if model not in before.own]),
            ("--no-own-shard", [model for model in before.own if model not in after.own]),
        ):
            words += [word for model in models for word in (option, model)]
    return shlex.join(words)


def reshard(export: Export, shards: Mapping[str, Shards], folder: str) -> Export:
    """Write an export again with other numbers of shards, by step, to a folder; return the new export.

    The whole state is in memory meanwhile. Raises InputError for a damaged export.
    """
    steps = tuple(
        Step(step.name, shards[step.name], _settings(step, shards[step.name])) for step in export.steps
    )
    name = new_id()
    for step in steps:
        states = list(export.states(step.name))
        snapshots = _spread([state.snapshot for state in states], step)
        for shard, snapshot in enumerate(snapshots):
            positions = states[0].positions
            state = ShardState(name, folder, step.name, shard, step.shards, positions, snapshot)
            write_state(state.pack(), folder, steps)
    return read_export(folder)


def _settings(step: Step, shards: Shards) -> dict[str, Any]:
    """Return the settings of a step, as text by name, with other shards."""
    settings = step.settings | {"shards": int(shards)}
    if step.name == EVALUATORS:
        settings.pop("own_shards", None)
        settings |= {"own_shards": [*shards.own]} if shards.own else {}
    return settings


def _spread(snapshots: list[bytes], step: Step) -> list[bytes]:
    with reading(f"the state of the {step.name}"):
        return _spread_by_name(snapshots, step)


def _spread_by_name(snapshots: list[bytes], step: Step) -> list[bytes]:
    if step.name == JOIN:
        read = [JoinState.unpack(snapshot) for snapshot in snapshots]
        states, settings = resharded_joins([state for state, _ in read], read[0][1], step.shards)
        return [state.pack(settings) for state in states]
    tables = [Snapshot.unpack(snapshot) for snapshot in snapshots]
    return [snapshot.pack() for snapshot in resharded(tables, step.shards)]
