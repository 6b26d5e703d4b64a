"""State that outlives a job: what `--export-state` and `--import-state` ask for, and `rocsteady state`."""

from __future__ import annotations

import argparse
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..core.console import name_text, say
from ..core.errors import ConfigError, InputError, OtherConfigurationError, RocsteadyError, WireError
from ..core.json_bytes import reading
from ..core.label_join_state import JoinState
from ..core.shards import Shards
from ..core.snapshot import Snapshot
from ..core.state_export import ShardState
from ..core.state_import import check_join, check_table
from ..core.state_reshard import resharded, resharded_joins
from ..core.temporary_folders import temporary_folder
from ..core.windows import microseconds
from ..transforms.control import ControlFile, ExportRequest, ask, let_go
from ..transforms.file_formats import everywhere, has_scheme
from ..transforms.state_folder import (
    EVALUATORS,
    JOIN,
    Export,
    Step,
    check_new_folder,
    count_states,
    is_whole,
    new_id,
    read_export,
    write_state,
)
from .evaluate_options import whole_number
from .evaluation import Evaluation
from .stream_input import going_on

_LOOK_SECONDS = 0.2
_TELL_SECONDS = 10.0


@contextmanager
def state_taken_up(job: Evaluation, options: argparse.Namespace) -> Iterator[Evaluation]:
    """Yield a job with the state that it takes up and the one it leaves, as its options say.

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
    """Raise InputError where a job cannot take up an export: it has other steps, or settings."""
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
    """Return the options of `state import` that spread an export over other shards."""
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
    """Write an export over other shards, by step, to a folder; return it.

    All of the state is in memory meanwhile. Raises InputError for damage.
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
    """Return the settings of a step in words, with other shards."""
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


# ---- the command


def state_command(options: argparse.Namespace) -> int:
    """Run `rocsteady state export` or `rocsteady state import`."""
    return export_command(options) if options.action == "export" else import_command(options)


def export_command(options: argparse.Namespace) -> int:
    """Ask a running stream for its state, and wait until it is written."""
    folder, control = options.output, options.control
    check_new_folder("--output", folder)
    folder = everywhere(folder)
    if not has_scheme(control) and not Path(control).parent.is_dir():
        raise InputError(
            f"--control {control}: the folder {Path(control).parent} does not exist; name the file that the "
            "job was given with --control"
        )
    seconds = microseconds(options.timeout, "--timeout") / 1e6
    request = ExportRequest(new_id(), folder)
    started = time.monotonic()
    try:
        ask(control, request)
    except OSError as error:
        raise InputError(f"--control {control} cannot be written: {error.strerror or error}") from None
    try:
        shards, came, told = 0, started, started
        while not is_whole(folder):
            now = time.monotonic()
            if now - told > _TELL_SECONDS or now - came > seconds:
                if (found := count_states(folder)) > shards:
                    shards, came = found, now
                say(
                    f"{shards} shards are written after {now - started:.0f} s; a shard first applies what "
                    "was read for it before the request"
                )
                told = now
            if now - came > seconds:
                if ControlFile(control).request() != request:
                    raise RocsteadyError(
                        f"no export was written to {folder} within {options.timeout}: another request took "
                        f"its place in --control {control}; ask again when that is done"
                    )
                raise RocsteadyError(
                    f"no export was written to {folder} within {options.timeout}: is a job running that was "
                    f"given --control {control}, and sees both places? {shards} shards are there. A "
                    "partition without a reader holds it up, and so does a backlog between readers and "
                    "shards; a longer wait for the next shard is --timeout"
                )
            time.sleep(_LOOK_SECONDS)
    finally:
        let_go(control, request, new_id())
    export = read_export(folder)
    said = ", ".join(f"{step.shards} shards of the {step.name}" for step in export.steps)
    say(f"the state is in {options.output}: {said} ({time.monotonic() - started:.1f} s)")
    return 0


def import_command(options: argparse.Namespace) -> int:
    """Read all of an export, and write it for a job with other shards."""
    export = read_export(options.folder)
    check_new_folder("--output", options.output)
    shards = {step.name: step.spread() for step in export.steps}
    shared = shards[EVALUATORS].shared
    if options.shards is not None:
        shared = whole_number("--shards", options.shards, 1)
    own = _own_after(shards[EVALUATORS].own, options.own_shard, options.no_own_shard, export.folder)
    shards[EVALUATORS] = Shards(shared, own)
    if options.join_shards is not None:
        if JOIN not in shards:
            raise ConfigError(
                f"--join-shards {options.join_shards}: {export.folder} has no join of labels; leave it out"
            )
        shards["join"] = Shards(whole_number("--join-shards", options.join_shards, 1))
    try:
        spread = reshard(export, shards, options.output)
    except WireError as damage:
        raise InputError(f"{export.folder}: {damage}") from None
    for before, after in zip(export.steps, spread.steps, strict=True):
        say(f"{after.name}: {_in_words(before)} are {_in_words(after)} in {spread.folder}")
    return 0


def _own_after(own: Sequence[str], given: Sequence[str], taken: Sequence[str], folder: str) -> list[str]:
    """Return the models that have a shard of their own after some got one and some lost theirs."""
    wrong_given = [model for model in given if model in own or given.count(model) > 1]
    wrong_taken = [model for model in taken if model not in own or taken.count(model) > 1]
    for option, wrong in (("--own-shard", wrong_given), ("--no-own-shard", wrong_taken)):
        if wrong:
            have = ", ".join(map(name_text, own)) or "none"
            raise ConfigError(
                f"{option} {wrong[0]}: a model gets or loses its own shard once; in {folder} these have one: "
                f"{have}"
            )
    return [*(model for model in own if model not in taken), *given]


def _in_words(step: Step) -> str:
    shards = step.spread()
    own = f" and {len(shards.own)} of one model each" if shards.own else ""
    return f"{shards.shared} shards{own}"
