"""The state that a job starts from: it is checked against the settings; an export gets the job's shards.

Flink resumes a job from a savepoint. A worker refuses a state of other settings, but only when the first
event reaches a shard: minutes after the start. So `check_savepoint` looks for the settings before the start.

Every stored snapshot begins with a head that holds the settings, and a hash that confirms the head. Flink's
"canonical" format stores these heads unchanged. The search may find no head: RocksDB's "native" format is
compressed, the storage cannot be read from here, or too little input came for a snapshot. Then the worker
still refuses a state of other settings.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from ...core.encoding.fields import HEAD_BYTES
from ...core.encoding.json import reading
from ...core.errors import ConfigError, InputError, OtherConfigurationError, WireError, check_settings
from ...core.evaluator import snapshot
from ...core.evaluator.snapshot import Snapshot
from ...core.join import state as label_join_state
from ...core.join.state import JoinState
from ...core.pairs import table as pair_table
from ...core.process.console import say
from ...core.process.temporary_folders import temporary_folder
from ...core.settings.table import Shards, TableSettings
from ...core.state.reshard import resharded, resharded_joins
from ...core.state.take_up import check_join, check_table
from ...transforms.files.formats import everywhere
from ...transforms.sources.streams.offsets import check_origin
from ...transforms.sources.streams.stream_input import StreamInput
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
from ..arguments import option_of
from .job import Evaluation, Streams

_MOST_BYTES = 256 << 20
"""The most bytes of a savepoint that are read. Each shard holds the settings, so an early part is enough."""

_CHUNK = 4 << 20
_LONGEST = 1 << 16
"""The most bytes of the text of settings."""

_MOST_VERSION = 100
"""A number above every version of a stored form: bytes with a greater version are no frame."""

_WITHOUT = {
    "--roll-up": "no grid point is ever closed: leave --roll-up out, and make roll-up rows with rocsteady "
    "roll-up ROWS",
    "--alert": "its rules wait for rows that were made before: leave --alert out, and watch the rows from "
    "another job (docs/how-to/alerts.md)",
}
"""For each option, what happens to its step if it is new in a job that resumes from a savepoint."""


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
            raise ConfigError(
                f"{option_of(name)} {value}: the rules of --alert have a state that is not exported in this "
                "version; leave --alert out, and watch the rows of all jobs together"
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


def going_on(streams: Streams, export: Export, start: str | None) -> Streams:
    """Return the streams at the places where an export left them.

    Each partition in the export resumes at its offset. A partition that the export does not name belongs to a
    new topic, or was added to a topic. Such a partition starts as in a job without an export. It is new to
    the job, and so is a partition that was added while the exporting job ran: the clock may have passed the
    times of its next events. After an export of files or of stdin, every partition starts as in a job without
    an export. Raises ConfigError where `start` is given although every partition resumes. Raises InputError
    where the export names a partition that is not read, or an offset that does not exist.
    """
    known = {source: position for source, position in positions_in(export) if "offset" in position}
    names = {source.partition.name for source in streams.inputs if source.partition.resumes}
    if not known or not names:
        return streams
    if others := sorted(known.keys() - names):
        raise InputError(
            f"--import-state {export.folder} was read up to offsets of {', '.join(others[:5])}, and this job "
            f"reads {', '.join(sorted(names)[:5])}; name the same topics, or folder"
        )
    if start is not None and not names - known.keys():
        raise ConfigError(
            f"--start {start}: --import-state {export.folder} goes on from the offsets that its readers had "
            "of all partitions; leave one of them out"
        )
    return replace(streams, inputs=[_from(known, source, export) for source in streams.inputs])


def positions_in(export: Export) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (partition, position) of an export, also of partitions that were added while the job ran."""
    for source, position in export.positions.values():
        if isinstance(position, dict):
            yield source, position
            added = position.get("added")
            yield from (added if isinstance(added, dict) else {}).items()


def _from(known: dict[str, Any], source: StreamInput, export: Export) -> StreamInput:
    name = source.partition.name
    if name not in known:
        return replace(source, is_new=True)
    try:
        offset, high_water = int(known[name]["offset"]), int(known[name]["high_water"])
        place, origin = str(known[name]["place"]), str(known[name].get("origin", ""))
    except (KeyError, TypeError, ValueError):
        raise InputError(
            f"--import-state {export.folder} has no offset of {name}, but {known[name]!r}; export again"
        ) from None
    remedy = "begin without the state"
    check_origin(f"--import-state {export.folder}", name, offset, origin, source.partition.origin, remedy)
    if source.end is not None and offset > source.end:
        raise InputError(
            f"--import-state {export.folder} goes on from offset {offset:,} of {name}, which ends at "
            f"{source.end:,}: the topic was made anew; begin without the state"
        )
    had_reader = any(name == of for of, _ in export.positions.values())
    return replace(source, start=offset, place=place, high_water=high_water, is_new=not had_reader)


def check_fits(export: Export, job: Evaluation) -> None:
    """Raise InputError if a job cannot import an export: it has other steps or other settings."""
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

    During this, the whole state is in memory. Raises InputError for a damaged export.
    """
    steps = tuple(_over(shards[step.name], step) for step in export.steps)
    name = new_id()
    for step in steps:
        states = list(export.states(step.name))
        with reading(f"the state of the {step.name}"):
            snapshots = _spread([state.snapshot for state in states], step)
        first = replace(states[0], id=name, folder=folder, shards=step.shards)
        for shard, spread in enumerate(snapshots):
            write_state(replace(first, shard=shard, snapshot=spread).pack(), folder, steps)
    return read_export(folder)


def _over(shards: Shards, step: Step) -> Step:
    """Return a step with other shards, also in its settings."""
    own = {"own_shards": [*shards.own]} if step.name == EVALUATORS else {}
    return Step(step.name, shards, step.settings | {"shards": int(shards)} | own)


def _spread(snapshots: list[bytes], step: Step) -> list[bytes]:
    """Return the snapshots of a step's shards, spread over the step's new number of shards."""
    if step.name == JOIN:
        read = [JoinState.unpack(snapshot) for snapshot in snapshots]
        states, settings = resharded_joins([state for state, _ in read], read[0][1], step.shards)
        return [state.pack(settings) for state in states]
    tables = [Snapshot.unpack(snapshot) for snapshot in snapshots]
    return [snapshot.pack() for snapshot in resharded(tables, step.shards)]


def savepoint_of(job: Evaluation) -> str:
    """Return the savepoint of Flink from which a job resumes; "" = none."""
    options = job.runner.options.get_all_options(retain_unknown_options=True)
    return str(options.get("savepoint_path") or "")


def check_savepoint(job: Evaluation) -> None:
    """Raise InputError if the job resumes from a savepoint of a job with other settings.

    If no settings are found in a savepoint, a warning says so: only workers can refuse it, when the job runs.
    A savepoint without the state of roll-ups or alerts that the job asks for also gives a warning.
    """
    path = savepoint_of(job)
    if not path:
        return
    if job.streams is not None:
        _check_positions(path, job.streams)
    wanted: dict[str, dict[str, Any]] = {"evaluators": job.settings.meaning()}
    if job.join is not None:
        wanted["join"] = job.join.settings.meaning()
    if job.pairs is not None:
        wanted["pairs"] = job.pairs.table(job.settings).meaning()
    added = _magics_beside(job)
    for step, there in _settings_in(str(path), [magic for magics in added.values() for magic in magics]):
        if isinstance(step, bytes):
            added = {option: magics for option, magics in added.items() if step not in magics}
        if not wanted and not added:
            return
        if step not in wanted:
            continue
        try:
            check_settings(wanted.pop(step), there)
        except OtherConfigurationError as other:
            if job.pairs is not None:
                raise InputError(
                    f"--savepoint_path {path}: {other}. Of a job with --pairs no export takes the state to "
                    "other settings"
                ) from None
            raise InputError(
                f"--savepoint_path {path}: {other}. With --control on the old job, rocsteady state export "
                "and then --import-state take the state to settings that may change (docs/how-to/state.md)"
            ) from None
        if not wanted and not added:
            return
    if not wanted:
        for option in added:
            say(
                f"--savepoint_path {path}: no state of {option} was found there; if the job that made it had "
                f"no {option}, {_WITHOUT[option]}"
            )
        return
    say(
        f"--savepoint_path {path}: no settings of the {' and '.join(wanted)} were found there, so they are "
        "not compared before the job starts. Workers refuse other settings at the first event, and the job "
        "fails again and again: give the options of the job that made the savepoint"
    )


def _magics_beside(job: Evaluation) -> dict[str, tuple[bytes, bytes]]:
    """Return, by option, the first bytes of the states and of the logs of the steps behind the evaluators."""
    from ...core.alerts import alert_rows, table
    from ...core.fleet import members
    from ...core.fleet import table as fleet

    found = {}
    if job.roll_ups is not None:
        found["--roll-up"] = fleet.MAGIC, members.MAGIC
    if job.alerts is not None:
        found["--alert"] = table.MAGIC, alert_rows.MAGIC
    return found


def _settings_in(path: str, others: Sequence[bytes]) -> Iterator[tuple[str | bytes, dict[str, Any]]]:
    """Yield (step, settings) of the stored states that are found in the files of a savepoint.

    others  how other frames begin: of such a frame, (its beginning, {}) is yielded
    """
    known = (snapshot.MAGIC, label_join_state.MAGIC, pair_table.MAGIC)
    head = re.compile(b"|".join(map(re.escape, (*known, *others))))
    for data in _content_of(path):
        yield from _heads(data, head)


def _check_positions(path: str, streams: Streams) -> None:
    """Raise InputError if a savepoint has an offset of a topic with another name, or one made again since.

    A position that is not found is compared by its worker, when the job runs.
    """
    here = {source.partition.name: source.partition.origin for source in streams.inputs}
    remedy = "begin a job without --savepoint_path"
    for data in _content_of(path):
        for found in _POSITION.finditer(data):
            begun = _NEXT.match(data, max(data.rfind(_BEGINNING, 0, found.start()), 0))
            if begun is None:
                continue
            name, origin = (text.decode("utf-8", "replace") for text in found.groups())
            if name not in here:
                raise InputError(
                    f"--savepoint_path {path} has an offset of {name}, and this job reads "
                    f"{', '.join([*here][:5])}; name the same topics, or folders, or {remedy}"
                )
            check_origin(f"--savepoint_path {path}", name, int(begun[1]), origin, here[name], remedy)


_POSITION = re.compile(rb'"name":"([^"]*)","origin":"([^"]*)"')
_BEGINNING = b'{"next":'
_NEXT = re.compile(rb'{"next":(\d+),')
"""Finds parts of a reader's state (`ReaderState`), which a savepoint holds unchanged."""


def _content_of(path: str) -> Iterator[bytes]:
    """Yield the content of the files of a savepoint in pieces, the smallest file first.

    Each piece begins with the end of the piece before, so that each short text is whole in some piece.
    """
    folder = urlsplit(path).path if urlsplit(path).scheme == "file" else path
    left = _MOST_BYTES
    with suppress(Exception):  # each file system of Beam has its own errors
        files = FileSystems.match([f"{folder.rstrip('/')}/*"])[0].metadata_list
        for file in sorted(files, key=lambda file: int(file.size_in_bytes)):
            with FileSystems.open(file.path, compression_type=CompressionTypes.UNCOMPRESSED) as content:
                before = b""
                while left > 0 and (chunk := content.read(_CHUNK)):
                    left -= len(chunk)
                    data = before + chunk
                    yield data
                    before = data[-_LONGEST:]


def _heads(data: bytes, head: re.Pattern[bytes]) -> Iterator[tuple[str | bytes, dict[str, Any]]]:
    for found in head.finditer(data):
        with suppress(ValueError, KeyError, TypeError, struct.error):
            if found[0] == snapshot.MAGIC:
                start = data[found.start() : found.start() + HEAD_BYTES + snapshot.FINGERPRINT_BYTES]
                version, reserved = struct.unpack_from("<HH", start, 4)
                settings = TableSettings.from_json(_text(data, found.start() + len(start)))
                fingerprint = start[8 : 8 + snapshot.FINGERPRINT_BYTES]
                if not reserved and version <= snapshot.VERSION and settings.fingerprint() == fingerprint:
                    yield "evaluators", settings.meaning()
            elif found[0] == label_join_state.MAGIC:
                said = json.loads(_text(data, found.start() + HEAD_BYTES))
                if isinstance(said, dict) and "evaluator_shards" in said:
                    yield "join", said
            elif found[0] == pair_table.MAGIC:
                said = json.loads(_text(data, found.start() + HEAD_BYTES))
                if isinstance(said, dict) and "champion" in said:
                    yield "pairs", said
            else:
                version, reserved = struct.unpack_from("<HH", data, found.end())
                if version < _MOST_VERSION and not reserved:
                    yield found[0], {}


def _text(data: bytes, at: int) -> str:
    (length,) = struct.unpack_from("<I", data, at)
    if length > _LONGEST or at + 4 + length > len(data):
        raise ValueError("no settings stand here")
    return data[at + 4 : at + 4 + length].decode()
