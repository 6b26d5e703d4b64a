"""An export of state as a folder: files of shards, and a manifest with the place of each shard.

The worker of a shard first writes the shard as a file of its own. The writer of the last shard packs the
small shards together and writes the manifest: 64 shards of three models become one file.

Invariant
    A file under its final name is complete. The manifest is written when all files exist, so a folder without
    `manifest.json` is not an export. File names contain the id of their export, so that files of a failed
    export are never used for another export.

A folder may be on any file system that Beam knows, such as gs://bucket/exports/monday.
"""

from __future__ import annotations

import json
import secrets
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from apache_beam.io.filesystems import FileSystems

from ...core.encoding.json import MOST_BYTES, read_json, read_object, reading, text_of, whole
from ...core.errors import FutureVersionError, InputError, RocsteadyError, WireError
from ...core.settings.table import Shards
from ...core.state.exported import ShardState, cut_of
from ...core.version import __version__
from ..files.formats import has_scheme
from ..files.stored import joined, names_in, read_in
from ..sinks.table import replaced

MANIFEST = "manifest.json"
VERSION = 1
"""The format of a manifest."""

SMALL = 4 << 20
"""Shards of fewer bytes than this are packed together."""

PACKED = 64 << 20
"""The most bytes of a file of packed shards. The whole file is in memory while it is written."""

EVALUATORS, JOIN = "evaluators", "join"
"""Names of steps. Every export has the step of evaluators; an export of a job with separate labels also has
the step of the join.
"""

_ENDING = ".state"
_REMEDY = "name a folder that --export-state or rocsteady state export wrote"


@dataclass(frozen=True)
class Step:
    """A step in an export.

    name      "join" or "evaluators"
    shards    the number of shards
    settings  the settings as text, by name
    """

    name: str
    shards: int
    settings: dict[str, Any]

    def spread(self) -> Shards:
        """Return the step's shards: the number of shared shards, and the models with a shard of their own."""
        own = self.settings["own_shards"] if self.name == EVALUATORS else []
        return Shards(self.shards - len(own), own)


class Place(NamedTuple):
    """The place of a shard: the file's name, the offset and number of bytes, and their checksum (crc32)."""

    name: str
    at: int
    bytes: int
    crc32: int


@dataclass(frozen=True)
class Export:
    """A complete export, described by its manifest.

    id, rocsteady, time  the export's id, the version that wrote it, and the time of writing (RFC 3339)
    positions            the readers' positions by partition: (source, position in the source's format)
    files                the places of the shards, by step and number
    """

    folder: str
    id: str
    rocsteady: str
    time: str
    steps: tuple[Step, ...]
    positions: dict[int, tuple[str, Any]]
    files: dict[tuple[str, int], Place]

    def step(self, name: str) -> Step | None:
        """Return the step with a name; None if the export has no such step."""
        return next((step for step in self.steps if step.name == name), None)

    def path(self, step: str, shard: int) -> str:
        """Return the path of the file that holds a shard."""
        return joined(self.folder, self.files[step, shard].name)

    def read(self, step: str, shard: int) -> ShardState:
        """Return the state of a shard. Raises InputError for a file that does not match the manifest."""
        name, at, size, crc = self.files[step, shard]
        path = joined(self.folder, name)
        data = read_in(self.folder, name, at, size)
        if zlib.crc32(data) != crc:
            raise InputError(f"{path} fails its checksum: the export was damaged; export again, or copy it")
        try:
            state = ShardState.unpack(data)
        except WireError as damage:
            raise InputError(f"{path}: {damage}") from None
        if (state.id, state.step, state.shard) != (self.id, step, shard):
            raise InputError(
                f"{path} holds shard {state.shard} of {state.step} of the export {state.id!r}, and the "
                f"manifest says shard {shard} of {step} of {self.id!r}; export again"
            )
        return state

    def states(self, step: str) -> Iterator[ShardState]:
        """Yield the states of all shards of a step, in order."""
        found = self.step(step)
        for shard in range(0 if found is None else found.shards):
            yield self.read(step, shard)


def new_id() -> str:
    """Return an id that is greater than earlier ids: the time, and random digits."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}-{secrets.token_hex(4)}"


def check_new_folder(option: str, folder: str) -> None:
    """Raise InputError unless an export can be written to a folder: the folder must be empty or missing."""
    if has_scheme(folder):
        try:
            found = names_in(folder)
        except Exception as error:
            raise InputError(f"{option} {folder} cannot be listed: {error}") from None
        if found:
            raise InputError(f"{option} {folder} is not empty; name a new folder")
        return
    path = Path(folder)
    if path.is_dir():
        if any(path.iterdir()):
            what = "holds an export already" if (path / MANIFEST).exists() else "is not empty"
            raise InputError(f"{option} {folder} {what}; name a new folder")
    elif path.exists():
        raise InputError(f"{option} {folder} is a file; name a new folder")
    elif not path.parent.is_dir():
        raise InputError(f"{option} {folder}: the folder {path.parent} does not exist; create it")


def write_state(data: bytes, folder: str, steps: Sequence[Step]) -> None:
    """Write the packed state of one shard; the writer of the last shard also writes the manifest.

    After the manifest, no file changes. A job that failed in between writes states again, possibly of another
    cut: the manifest is written only when all states are of the same cut.
    Without a folder, no state is written: the request has been withdrawn.
    """
    if not folder:
        return
    state = ShardState.unpack(data)
    try:
        if not has_scheme(folder):
            Path(folder).mkdir(parents=True, exist_ok=True)
        if is_whole(folder):
            return
        with replaced(joined(folder, _name(state.step, state.shard, state.shards, state.id))) as file:
            file.write(data)
        here = set(names_in(folder))
        wanted = [
            _name(step.name, shard, step.shards, state.id) for step in steps for shard in range(step.shards)
        ]
        if here.issuperset(wanted):
            _finish(folder, state.id, steps)
    except OSError as error:
        raise RocsteadyError(
            f"the export {folder} cannot be written: {error.strerror or error}; name another folder"
        ) from None


def _finish(folder: str, name: str, steps: Sequence[Step]) -> None:
    """Pack small shards together, and write the manifest; do nothing if the states are of different cuts.

    Two writers may both find the last shard and run this function at the same time. Each packed file has a
    unique name, so that the manifest written last names files that no other writer changes.
    """
    packs = _Packs(folder, name)
    positions: dict[int, tuple[str, str]] = {}
    cuts: set[str] = set()
    said = []
    try:
        for step in steps:
            files = []
            for shard in range(step.shards):
                data = read_in(folder, file := _name(step.name, shard, step.shards, name))
                state = ShardState.unpack(data)
                cuts.add(cut_of(state.positions))
                if step is steps[0] and shard == 0:
                    positions = state.positions
                is_small = len(data) < SMALL
                place = packs.add(file, data) if is_small else Place(file, 0, len(data), zlib.crc32(data))
                files.append(place._asdict())
            said.append({"name": step.name, "shards": step.shards, "settings": step.settings, "files": files})
    except InputError:  # another writer has packed the shards
        packs.remove()
        if is_whole(folder):
            return
        raise
    if len(cuts) > 1 or is_whole(folder):
        packs.remove()
        return
    packs.close()
    manifest = {
        "format": VERSION,
        "rocsteady": __version__,
        "id": name,
        "time": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S}Z",
        "positions": [
            {"partition": number, "source": source, "position": read_json(position, "a position")}
            for number, (source, position) in sorted(positions.items())
        ],
        "steps": said,
    }
    with replaced(joined(folder, MANIFEST)) as written:
        written.write(json.dumps(manifest, indent=1).encode())
    _remove(folder, packs.packed)


class _Packs:
    """Shards written one after another into files of at most `PACKED` bytes.

    packed  names of the shards' own files, which are not needed once the manifest is written
    """

    def __init__(self, folder: str, name: str) -> None:
        self.packed: list[str] = []
        self._folder, self._base = folder, f"shards-{name}-{secrets.token_hex(4)}"
        self._written: list[str] = []
        self._parts: list[bytes] = []
        self._size = 0

    @property
    def _name(self) -> str:
        return f"{self._base}-{len(self._written):03d}{_ENDING}"

    def add(self, file: str, data: bytes) -> Place:
        """Add a shard to the current file; return the shard's place."""
        if self._size + len(data) > PACKED:
            self.close()
        place = Place(self._name, self._size, len(data), zlib.crc32(data))
        self._parts.append(data)
        self._size += len(data)
        self.packed.append(file)
        return place

    def close(self) -> None:
        """Write the current file."""
        if self._parts:
            with replaced(joined(self._folder, self._name)) as file:
                file.writelines(self._parts)
            self._written.append(self._name)
            self._parts, self._size = [], 0

    def remove(self) -> None:
        """Remove the files written so far."""
        _remove(self._folder, self._written)


def _remove(folder: str, names: Sequence[str]) -> None:
    """Remove files; no error if another writer removes them at the same time."""
    for path in (joined(folder, name) for name in names):
        with suppress(Exception):  # each file system has its own errors
            FileSystems.delete([path]) if has_scheme(path) else Path(path).unlink()


def is_whole(folder: str) -> bool:
    """Return whether a folder holds a complete export: it does if the manifest exists."""
    return bool(FileSystems.exists(joined(folder, MANIFEST)))


def count_states(folder: str) -> int:
    """Return how many shards of an incomplete export are written; 0 for a missing folder."""
    with suppress(Exception):  # each file system has its own errors
        return sum(name.endswith(_ENDING) for name in names_in(folder))
    return 0


def read_export(folder: str) -> Export:
    """Read the manifest of an export. Raises InputError if the folder is not a complete export."""
    path = joined(folder, MANIFEST)
    if not has_scheme(folder):
        place = Path(folder)
        if not place.is_dir():
            what = "is a file, and an export a folder" if place.exists() else "does not exist"
            raise InputError(f"{folder} {what}; {_REMEDY}")
        if not (place / MANIFEST).exists():
            states = sum(file.suffix == _ENDING for file in place.iterdir())
            why = f"it holds {states} states, so the export did not end" if states else "it is another folder"
            raise InputError(f"{folder} has no {MANIFEST}, and so is no export: {why}; {_REMEDY}")
    data = read_in(folder, MANIFEST, most=MOST_BYTES)
    try:
        return _export_of(folder, read_object(data, path), path)
    except FutureVersionError as newer:
        raise InputError(str(newer)) from None
    except WireError as damage:
        raise InputError(f"{damage}: the manifest is damaged; export again, or copy it again") from None


def _export_of(folder: str, content: dict[str, Any], path: str) -> Export:
    """Return the export of a manifest.

    Raises a `WireError` for content that no version of rocsteady writes.
    """
    with reading(path):
        found = whole(content["format"], 1)
        if found > VERSION:
            raise FutureVersionError(
                f"{path} is of format {found}: this rocsteady, {__version__}, reads up to {VERSION}; "
                "upgrade it"
            )
        steps: list[Step] = []
        files: dict[tuple[str, int], Place] = {}
        for said in content["steps"]:
            step = Step(text_of(said["name"]), whole(said["shards"], 1), dict(said["settings"]))
            if len(said["files"]) != step.shards or step.name in {each.name for each in steps}:
                raise ValueError(f"{len(said['files'])} files of {step.shards} shards of the {step.name}")
            step.spread()  # raises an error for invalid settings
            steps.append(step)
            for shard, file in enumerate(said["files"]):
                files[step.name, shard] = Place(
                    text_of(file["name"]), *(whole(file[each], 0) for each in ("at", "bytes", "crc32"))
                )
        if {EVALUATORS} != {step.name for step in steps} - {JOIN}:
            raise ValueError(f"its steps are {[step.name for step in steps]}")
        positions = {
            whole(each["partition"], 0): (text_of(each["source"]), each["position"])
            for each in content["positions"]
        }
        name, version, time = (text_of(content[name]) for name in ("id", "rocsteady", "time"))
        return Export(folder, name, version, time, tuple(steps), positions, files)


def _name(step: str, shard: int, shards: int, name: str) -> str:
    return f"{step}-{shard:03d}-of-{shards:03d}-{name}{_ENDING}"
