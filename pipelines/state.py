"""State that outlives a job: the commands `rocsteady state`, with its actions, and `rocsteady inspect`.

`rocsteady state export` and `import` write states; `rocsteady inspect` describes a stored state in words.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from ..core.alerts.table import MAGIC as ALERTS_MAGIC
from ..core.alerts.table import AlertTable
from ..core.classes.state import ClassState
from ..core.encoding.fields import framed_size
from ..core.encoding.json import read_json, reading, text_of, whole
from ..core.errors import ConfigError, InputError, RocsteadyError, WireError
from ..core.evaluator.snapshot import Snapshot, describe
from ..core.evaluator.state import write_evaluator
from ..core.events.times import NO_TIME, date_text
from ..core.ids.sharding import shard_of
from ..core.join.matching import LabelMatcher
from ..core.join.state import MAGIC as JOIN_MAGIC
from ..core.join.state import JoinState, describe_join
from ..core.process.console import name_text, say, show
from ..core.process.near_names import near_names
from ..core.settings.durations import microseconds
from ..core.settings.table import Shards
from ..core.state.checkpoint import MAGIC as CHECKPOINT_MAGIC
from ..core.state.checkpoint import Checkpoint
from ..core.state.class_states import State, models_of, states_of
from ..core.state.exported import STATE_MAGIC, VERSION, WAITING_MAGIC, ShardState, WaitingState
from ..transforms.files.formats import everywhere, has_scheme
from ..transforms.sources.streams.offsets import FolderPlace
from ..transforms.state.checkpoints import CheckpointFolder
from ..transforms.state.control import ControlFile, ExportRequest, ask, let_go
from ..transforms.state.folder import (
    EVALUATORS,
    JOIN,
    Export,
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


# ---- rocsteady state


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
    if options.own_shard:
        _tell_of_unknown(options.own_shard, export, spread, shards[EVALUATORS])
    for before, after in zip(export.steps, spread.steps, strict=True):
        say(f"{after.name}: {_in_words(before)} are {_in_words(after)} in {spread.folder}")
    return 0


def _tell_of_unknown(models: Sequence[str], export: Export, spread: Export, shards: Shards) -> None:
    """Print which of these models have no state in an export, so that their new own shards are empty.

    The names of all models are read only if a new own shard is empty.
    """

    def is_unknown(model: str) -> bool:
        state = spread.read(EVALUATORS, int(shard_of((model,), shards)[0]))
        return not states_of(Snapshot.unpack(state.snapshot))

    unknown = [model for model in models if is_unknown(model)]
    if not unknown:
        return
    there = {each.model for table in _read(export, EVALUATORS, _table_states) for each in table}
    for model in unknown:
        near = near_names(model, sorted(there))
        hint = f"; did you mean {name_text(near[0])}?" if near else ""
        say(f"--own-shard {model}: {export.folder} has no such model, so its shard is empty{hint}")


def _own_after(own: Sequence[str], given: Sequence[str], taken: Sequence[str], folder: str) -> list[str]:
    """Return the models that have a shard of their own, with `given` added and `taken` removed."""
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


# ---- rocsteady inspect

_LARGEST = 10
"""The most models that a description names: the models with the largest state."""


def inspect_command(options: argparse.Namespace) -> int:
    """Print a description of a file with a state, of an export, or of the newest checkpoint of a folder.

    Errors name the file or the folder.
    """
    path: str = options.state
    if Path(path).is_dir():
        newest = CheckpointFolder(path, "the folder").newest(_checkpoint_described)
        if newest is not None:
            show(*newest)
            return 0
    if has_scheme(path) or Path(path).is_dir():
        show(*describe_export(read_export(path)))
        return 0
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError(
            f"{path}: {error.strerror or error}; give a file with the bytes of a snapshot"
        ) from None
    try:
        show(*_described(data))
    except ValueError as damage:
        raise InputError(f"{path}: {damage}") from None
    return 0


def _described(data: bytes) -> list[str]:
    """Return a description of a stored state, or of the states of shards that stand one after another."""
    lines: list[str] = []
    while data[:4] == STATE_MAGIC:
        size = framed_size(data, STATE_MAGIC, VERSION, "the exported state of a shard")
        state, data = ShardState.unpack(data[:size]), data[size:]
        lines += [
            f"shard {state.shard} of {state.shards} of the {state.step}, in the export {state.id}",
            *_position_lines(
                {n: (source, read_json(at, "a position")) for n, (source, at) in state.positions.items()}
            ),
            *_one_described(state.snapshot),
        ]
        if not data:
            return lines
    return [*lines, *_one_described(data)]


def _checkpoint_described(checkpoint: Checkpoint) -> list[str]:
    lines = checkpoint.describe().split("\n")
    table = checkpoint.machines.get("evaluators")
    return lines if table is None else [*lines, *_one_described(table)]


def _one_described(data: bytes) -> list[str]:
    if data[:4] == CHECKPOINT_MAGIC:
        return _checkpoint_described(Checkpoint.unpack(data))
    if data[:4] == WAITING_MAGIC:
        waiting = WaitingState.unpack(data)
        lines = []
        if waiting.awaits:
            lines.append("it awaits the state that it begins with")
        if waiting.stopped:
            lines.append("its input was cut off: its state is in an export")
        if waiting.markers:
            lines.append(f"the export {waiting.export} has passed {len(waiting.markers)} of its partitions")
        size = sum(len(record) for *_, record in waiting.records)
        lines.append(f"records that wait for that: {len(waiting.records):,} ({size:,} bytes)")
        return [*lines, *(_one_described(waiting.snapshot) if waiting.snapshot else [])]
    if data[:4] == JOIN_MAGIC:
        return describe_join(*JoinState.unpack(data)).split("\n")
    if data[:4] == ALERTS_MAGIC:
        return AlertTable.from_bytes(data).describe().split("\n")
    snapshot = Snapshot.unpack(data)
    return describe(snapshot, models_of(snapshot)).split("\n")


def describe_export(export: Export) -> list[str]:
    """Return a description of an export, in lines. Reads every file of the export, one at a time.

    Raises InputError for a damaged export.
    """
    lines = [
        f"export {export.id}, written {export.time} by rocsteady {export.rocsteady}",
        *_position_lines(export.positions),
    ]
    for step in export.steps:
        sizes = sum(place.bytes for (name, _), place in export.files.items() if name == step.name)
        lines.append(f"{step.name}: {step.shards} shards, {sizes:,} bytes")
        lines.append("  " + ", ".join(f"{name} {value}" for name, value in step.settings.items()))
        lines += _join_lines(export) if step.name == JOIN else _evaluator_lines(export)
    return lines


def _position_lines(positions: dict[int, tuple[str, object]]) -> list[str]:
    return [
        f"  {who}, {source}" + ("" if position is None else f": {_position_words(position)}")
        for number, (origin, at) in sorted(positions.items())
        for who, source, position in ((f"partition {number}", origin, at), *_added(at))
    ]


def _added(position: object) -> list[tuple[str, str, object]]:
    """Return the positions of added partitions that a position holds."""
    added = position.get("added") if isinstance(position, dict) else None
    return [("  added", str(name), at) for name, at in added.items()] if isinstance(added, dict) else []


def _position_words(position: object) -> str:
    """Return in words where a reader stands. Raises CorruptBytesError for a position that is damaged."""
    if not isinstance(position, dict) or "offset" not in position:
        return f"at {json.dumps(position)}"
    with reading("a position"):
        words = [f"at offset {whole(position['offset']):,}"]
        if place := text_of(position.get("place", "")):
            folder = FolderPlace.of(place)
            words.append(f"in {name_text(folder.name)}, at {folder.file}")
        if (newest := whole(position.get("high_water", NO_TIME))) != NO_TIME:
            words.append(f"newest event {date_text(newest)}")
        if "origin" in position:
            words.append(f"of {text_of(position['origin'])}")
        return ", ".join(words)


def _table_states(data: bytes) -> Sequence[State]:
    return states_of(Snapshot.unpack(data))


def _evaluator_lines(export: Export) -> list[str]:
    models: dict[str, int] = {}
    slices = events = waiting = 0
    for snapshot in _read(export, EVALUATORS, Snapshot.unpack):
        waiting += sum(len(record) for *_, record in snapshot.held)
        for each, counted in zip(states_of(snapshot), models_of(snapshot), strict=True):
            models[each.model] = models.get(each.model, 0) + _bytes_of(each)
            slices += bool(each.slice)
            events += len(counted.scores)
    lines = [f"  models: {len(models):,}, slices of them: {slices:,}, events held: {events:,}"]
    if waiting:
        lines.append(f"  events that wait for their turn: {waiting:,} bytes")
    largest = sorted(models.items(), key=lambda each: (-each[1], each[0]))[:_LARGEST]
    return [*lines, *(f"    {name_text(model)}: {size:,} bytes" for model, size in largest)]


def _join_lines(export: Export) -> list[str]:
    predictions = labels = 0
    for join, _ in _read(export, JOIN, JoinState.unpack):
        matcher = LabelMatcher.from_bytes(join.matcher)
        predictions, labels = predictions + matcher.waiting, labels + matcher.held
    return [f"  predictions that wait for a label: {predictions:,}, labels held: {labels:,}"]


_State = TypeVar("_State")


def _read(export: Export, step: str, unpack: Callable[[bytes], _State]) -> Iterator[_State]:
    """Yield the state of every shard of a step, one at a time."""
    for state in export.states(step):
        try:
            yield unpack(state.snapshot)
        except ValueError as damage:
            raise InputError(f"{export.path(step, state.shard)}: {damage}") from None


def _bytes_of(state: State) -> int:
    if isinstance(state, ClassState):
        return len(state.pack())
    parts: list[bytes] = []
    write_evaluator(state, parts)
    return sum(map(len, parts))
