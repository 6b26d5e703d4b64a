"""State that outlives a job: the command `rocsteady state`, with its actions export and import."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from ..core.errors import ConfigError, InputError, RocsteadyError, WireError
from ..core.process.console import name_text, say
from ..core.settings.durations import microseconds
from ..core.settings.table import Shards
from ..transforms.files.formats import everywhere, has_scheme
from ..transforms.state.control import ControlFile, ExportRequest, ask, let_go
from ..transforms.state.folder import (
    EVALUATORS,
    JOIN,
    Step,
    check_new_folder,
    count_states,
    is_whole,
    new_id,
    read_export,
)
from .arguments import whole_number
from .evaluate.take_up import reshard

_LOOK_SECONDS = 0.2
_TELL_SECONDS = 10.0


# ---- the command


def state_command(options: argparse.Namespace) -> int:
    """Run `rocsteady state export` or `rocsteady state import`."""
    return export_command(options) if options.action == "export" else import_command(options)


def export_command(options: argparse.Namespace) -> int:
    """Request the state of a running streaming job, and wait until the export is complete."""
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
    """Read a whole export, and write it again for a job with other shards."""
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
    """Return the models with a shard of their own, after adding `given` to `own` and removing `taken`."""
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
