"""An export of state as a folder: a file for every shard of every step, and a manifest.

Invariant
    A file under its name is whole, and the manifest is written when all files are there: a folder without
    `manifest.json` is no export. Files carry the id of their export in their names, so that those of one that
    failed are never taken for another's.

A folder may be on any file system that Beam knows, such as gs://bucket/exports/monday.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems
from rocsteady import __version__

from ..core.errors import InputError, RocsteadyError, WireError
from ..core.state_export import ShardState
from .file_formats import has_scheme
from .write_table import replaced

MANIFEST = "manifest.json"
FORMAT = 1
_ENDING = ".state"
_REMEDY = "name a folder that --export-state or rocsteady state export wrote"


@dataclass(frozen=True)
class Step:
    """What an export holds of one step.

    name      "join" or "evaluators"
    shards    how many files
    settings  in words, by name
    """

    name: str
    shards: int
    settings: dict[str, Any]


@dataclass(frozen=True)
class Export:
    """An export that is whole, as its manifest says.

    id, rocsteady, time  of the export; which version wrote it, and when (RFC 3339)
    positions            of the readers, by partition: (source, position in words of its own)
    files                names by step and shard, with bytes and checksum
    """

    folder: str
    id: str
    rocsteady: str
    time: str
    steps: tuple[Step, ...]
    positions: dict[int, tuple[str, Any]]
    files: dict[tuple[str, int], tuple[str, int, int]]

    def step(self, name: str) -> Step | None:
        """Return the step of a name, if there is one."""
        return next((step for step in self.steps if step.name == name), None)

    def path(self, step: str, shard: int) -> str:
        """Return where the file of a shard is."""
        return _joined(self.folder, self.files[step, shard][0])

    def read(self, step: str, shard: int) -> ShardState:
        """Return the state of a shard. Raises InputError where it is not what the manifest says."""
        name, size, crc = self.files[step, shard]
        path = _joined(self.folder, name)
        data = read_bytes(path)
        if len(data) != size or zlib.crc32(data) != crc:
            how = f"has {len(data):,} of {size:,} bytes" if len(data) != size else "fails its checksum"
            raise InputError(f"{path} {how}: the export was damaged; export again, or copy it again")
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
    """Return an id that is greater than those of before: the time, and some chance."""
    import secrets

    return f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}-{secrets.token_hex(4)}"


def check_new_folder(option: str, folder: str) -> None:
    """Raise InputError where an export cannot be written to a folder: it must be empty, or not there."""
    if has_scheme(folder):
        try:
            found = FileSystems.match([_joined(folder, "*")])[0].metadata_list
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
    """Write the packed state of one shard; whoever writes the last one writes the manifest too.

    Behind the manifest nothing changes any more. A job that failed in between gives states again, which may
    be of another cut: there is a manifest when all are of one.
    Without a folder nothing is written: nobody wants the state any more.
    """
    if not folder:
        return
    state = ShardState.unpack(data)
    try:
        _make(folder)
        if is_whole(folder):
            return
        with replaced(_joined(folder, _name(state.step, state.shard, state.shards, state.id))) as file:
            file.write(data)
        here = set(_names(folder))
        wanted = [
            _name(step.name, shard, step.shards, state.id) for step in steps for shard in range(step.shards)
        ]
        if not here.issuperset(wanted):
            return
        manifest = _manifest(folder, state.id, steps)
        if manifest is None:
            return
        with replaced(_joined(folder, MANIFEST)) as file:
            file.write(json.dumps(manifest, indent=1).encode())
    except OSError as error:
        raise RocsteadyError(
            f"the export {folder} cannot be written: {error.strerror or error}; name another folder"
        ) from None


def _manifest(folder: str, name: str, steps: Sequence[Step]) -> dict[str, Any] | None:
    """Return what the manifest says; None where the states are not of one cut."""
    positions: dict[int, tuple[str, str]] = {}
    cuts: set[str] = set()
    said = []
    for step in steps:
        files = []
        for shard in range(step.shards):
            file = _name(step.name, shard, step.shards, name)
            data = read_bytes(_joined(folder, file))
            state = ShardState.unpack(data)
            cuts.add(state.cut)
            if step is steps[0] and shard == 0:
                positions = state.positions
            files.append({"name": file, "bytes": len(data), "crc32": zlib.crc32(data)})
        said.append({"name": step.name, "shards": step.shards, "settings": step.settings, "files": files})
    if len(cuts) > 1:
        return None
    return {
        "format": FORMAT,
        "rocsteady": __version__,
        "id": name,
        "time": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S}Z",
        "positions": [
            {"partition": number, "source": source, "position": json.loads(position)}
            for number, (source, position) in sorted(positions.items())
        ],
        "steps": said,
    }


def is_whole(folder: str) -> bool:
    """Whether a folder holds an export: its manifest is there."""
    path = _joined(folder, MANIFEST)
    return bool(FileSystems.exists(path)) if has_scheme(folder) else Path(path).exists()


def read_export(folder: str) -> Export:
    """Read the manifest of an export. Raises InputError, which says what is there, for anything else."""
    path = _joined(folder, MANIFEST)
    if not has_scheme(folder):
        place = Path(folder)
        if not place.is_dir():
            what = "is a file, and an export a folder" if place.exists() else "does not exist"
            raise InputError(f"{folder} {what}; {_REMEDY}")
        if not (place / MANIFEST).exists():
            states = sum(file.suffix == _ENDING for file in place.iterdir())
            why = f"it holds {states} states, so the export did not end" if states else "it is another folder"
            raise InputError(f"{folder} has no {MANIFEST}, and so is no export: {why}; {_REMEDY}")
    data = read_bytes(path)
    try:
        content = json.loads(data)
        found = content["format"]
        steps = tuple(
            Step(str(step["name"]), int(step["shards"]), dict(step["settings"])) for step in content["steps"]
        )
        files = {
            (step["name"], shard): (str(file["name"]), int(file["bytes"]), int(file["crc32"]))
            for step in content["steps"]
            for shard, file in enumerate(step["files"])
        }
        positions = {
            int(each["partition"]): (str(each["source"]), each["position"]) for each in content["positions"]
        }
        name, version, time = (str(content[name]) for name in ("id", "rocsteady", "time"))
        export = Export(folder, name, version, time, steps, positions, files)
    except (ValueError, KeyError, TypeError, AttributeError) as damage:
        raise InputError(f"{path} is damaged ({damage!r}); export again, or copy it again") from None
    if found != FORMAT:
        raise InputError(
            f"{path} is of format {found}: this rocsteady, {__version__}, reads format {FORMAT}; upgrade it"
        )
    if len(files) != sum(step.shards for step in steps):
        raise InputError(f"{path} is damaged: it names {len(files)} files; export again, or copy it again")
    return export


def read_bytes(path: str) -> bytes:
    """Return what a file holds. Raises InputError."""
    try:
        if has_scheme(path):
            with FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED) as file:
                return bytes(file.read())
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise InputError(
            f"{path} does not exist, and belongs to the export; export or copy it again"
        ) from None
    except Exception as error:
        raise InputError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _name(step: str, shard: int, shards: int, name: str) -> str:
    return f"{step}-{shard:03d}-of-{shards:03d}-{name}{_ENDING}"


def _joined(folder: str, name: str) -> str:
    return f"{folder.rstrip('/')}/{name}" if has_scheme(folder) else str(Path(folder) / name)


def _make(folder: str) -> None:
    if not has_scheme(folder):
        Path(folder).mkdir(parents=True, exist_ok=True)


def _names(folder: str) -> list[str]:
    if not has_scheme(folder):
        return [file.name for file in Path(folder).iterdir()]
    found = FileSystems.match([_joined(folder, "*")])[0].metadata_list
    return [each.path.rpartition("/")[2] for each in found]
