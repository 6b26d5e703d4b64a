"""Finds the input files, and checks their columns before a job starts."""

from __future__ import annotations

import glob
import gzip
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
from apache_beam.io.filesystems import FileSystems

from ....core.errors import InputError
from ....core.prequential.generators import GeneratedStream
from ....core.process.near_names import near_names
from ...events.fields import EventFields, Role, check_names
from ...files.csv_chunks import csv_header
from ...files.csv_text import NO_TEXT
from ...files.formats import DAMAGE, FORMATS, SourceFile, has_scheme, stem_of
from ...files.lines import MOST_LINE_BYTES
from .folder_columns import names_with_folders
from .generated import GENERATED, generated_schema, is_generated
from .json_lines import json_columns

_ENDINGS = ".csv, .tsv, .jsonl, .json, each also with .gz, or .parquet"


def list_sources(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> tuple[SourceFile, ...]:
    """Return the files that paths and globs name, each once, sorted by name.

    A file that has several names, such as by a link, is listed by the first of its names. Raises InputError
    if a path is missing, no regular file, empty or unreadable, has an unknown ending, or if a glob matches no
    file.
    """
    asked = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not asked:
        raise InputError("no input is given; name one or more files")
    found = (source for path in asked for source in _matches(os.fspath(path)))
    unique: dict[object, SourceFile] = {}
    for source in sorted(found, key=lambda source: source.path):
        unique.setdefault(_identity(source.path), source)
    return tuple(unique.values())


def _identity(path: str) -> object:
    """Return a key that is equal for all names of one file: links, and paths from different folders.

    A link in another folder `key=value` has other columns, and so another key.
    """
    if has_scheme(path):
        return path
    found = os.stat(path)  # noqa: PTH116 - as `Path.stat`
    file = (found.st_dev, found.st_ino) if found.st_ino else os.path.realpath(path)
    return file, tuple(name for name in Path(path).absolute().parent.parts if "=" in name)


def _matches(path: str) -> Iterator[SourceFile]:
    if is_generated(path):
        yield SourceFile(path, GENERATED, False, GeneratedStream.of_url(path).count)
        return
    if has_scheme(path):
        try:
            matches = FileSystems.match([path])[0].metadata_list
        except Exception as error:
            raise InputError(f"{path} cannot be listed: {error}") from None
        if not matches:
            raise InputError(f"{path} matches no file; check the name")
        yield from (_source_file(found.path, found.size_in_bytes) for found in matches)
        return
    names = [path]
    if _has_key_folders(os.path.normpath(path)):
        names = [*_files_below(path)]
        if not names:
            raise InputError(f"{path} has no file in its folders; name a folder that has files")
    elif not os.path.lexists(path) and glob.has_magic(path):
        found = glob.glob(path, recursive=True)  # noqa: PTH207 - Path.glob knows no absolute patterns
        names = [name for name in found if not Path(name).is_dir()]
        if not names:
            raise InputError(f"{path} matches no file; check the pattern, and quote it for the shell")
    for name in names:
        yield _local_file(os.path.normpath(name))


def _has_key_folders(path: str) -> bool:
    """Return whether a path is a folder that has folders `key=value`, or is such a folder."""
    try:
        with os.scandir(path) as entries:
            folders = [os.path.basename(path), *(entry.name for entry in entries if entry.is_dir())]  # noqa: PTH119
            return any("=" in name for name in folders)
    except OSError:
        return False


def _files_below(folder: str) -> Iterator[str]:
    """Yield the files in a folder and in the folders below; names that begin with "_" or "." are left out."""
    for path, folders, names in os.walk(folder, onerror=_raised, followlinks=True):
        folders[:] = sorted(name for name in folders if not name.startswith(("_", ".")))
        for link in (Path(path, name) for name in folders):
            if link.is_symlink() and Path(path).resolve().is_relative_to(link.resolve()):
                raise InputError(f"{link} is a link to a folder that contains it; remove the link")
        yield from (str(Path(path, name)) for name in sorted(names) if not name.startswith(("_", ".")))


def _raised(error: OSError) -> None:
    raise InputError(f"{error.filename} cannot be listed: {error.strerror or error}") from None


def _local_file(path: str) -> SourceFile:
    file = Path(path)
    if not file.exists():
        names = {stem_of(name): name for name in sorted(_neighbours(file.parent), reverse=True)}
        near = near_names(stem_of(path), names)
        there = f"; there is {file.with_name(names[near[0]])}" if near else ""
        raise InputError(f"{path} does not exist{there}")
    if file.is_dir():
        raise InputError(f"{path} is a folder; name its files, such as {file / '*.csv'}")
    if not file.is_file():  # to open a pipe would wait until another process writes to it
        raise InputError(f"{path} is a pipe or a device; write its records to a file, and name that")
    try:
        with file.open("rb"):
            size = file.stat().st_size
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    return _source_file(path, size)


def _neighbours(folder: Path) -> list[str]:
    try:
        return [entry.name for entry in folder.iterdir() if entry.is_file()]
    except OSError:
        return []


def _source_file(path: str, size: int) -> SourceFile:
    name = path.lower()
    gzipped = name.endswith(".gz")
    ending = Path(name.removesuffix(".gz")).suffix
    form = FORMATS.get(ending)
    if form is None or (form == "parquet" and gzipped):
        raise InputError(f"{path} has an ending that is not known; input is {_ENDINGS}")
    if size == 0:
        remedy = "leave it out" if form == "jsonl" else "a file without events has at least a header"
        raise InputError(f"{path} is empty (0 bytes); {remedy}")
    return SourceFile(path, form, gzipped, size)


def head_names(source: SourceFile, most: int = MOST_LINE_BYTES) -> list[str] | None:
    """Return the columns in a file's head, as `column_names` does, but with the errors of the file's format.

    most  the most bytes of a line in JSON lines
    """
    if source.format == GENERATED:
        return generated_schema(GeneratedStream.of_url(source.path)).names  # type: ignore[no-any-return]
    if source.format == "parquet":
        with source.open() as raw:
            return pa.parquet.ParquetFile(raw).schema_arrow.names  # type: ignore[no-any-return]
    return json_columns(source, most) if source.format == "jsonl" else csv_header(source)


def column_names(source: SourceFile) -> list[str] | None:
    """Return the columns of a file's head and of its folders; None for a file without a record."""
    try:
        names = head_names(source)
    except pa.ArrowInvalid as error:
        raise InputError(f"{source.name} is not a Parquet file, or is damaged: {error}") from None
    except gzip.BadGzipFile:
        raise InputError(
            f"{source.name} ends in .gz and is not compressed; rename it, or compress it with gzip"
        ) from None
    except DAMAGE as error:
        raise InputError(f"{source.name} cannot be read: {error}") from None
    if names is not None and any(NO_TEXT in name for name in names):
        raise InputError(f"{source.name} is not UTF-8; convert it, for example with iconv -t UTF-8")
    if names == []:
        raise InputError(f"{source.name} names no columns; its first line must be a header")
    return names if names is None else names_with_folders(names, source)


def columns_of_files(sources: Sequence[SourceFile]) -> dict[str, list[str]]:
    """Return the columns of each file that has a record, or a header, by the file's name."""
    found = {source.name: column_names(source) for source in sources}
    return {name: names for name, names in found.items() if names is not None}


def check_columns(sources: Sequence[SourceFile], fields: EventFields, role: Role = "event") -> None:
    """Check in the head of every file that each column that its records need is there exactly once.

    JSON lines are checked by their first MiB. Raises InputError, which names the file, its columns, the
    nearest name, and the option that corrects the fault. Two files must not give one model the name that they
    share.
    """
    named: dict[str, SourceFile] = {}
    for source in sources:
        if (names := column_names(source)) is None:
            continue
        resolved = fields.resolved(names, source.stem)
        check_names(source.name, names, resolved, role)
        other = named.setdefault(source.stem, source) if is_named_by_file(fields, resolved, role) else source
        if other is not source:
            raise InputError(of_one_model(other.name, source.name, source.stem))


def is_named_by_file(fields: EventFields, resolved: EventFields, role: Role) -> bool:
    """Return whether the model of a file's records is named after the file.

    fields, resolved  the roles of the columns, as the user named them, and for the columns of the file
    """
    return role in ("event", "prediction") and fields.model_name is None and bool(resolved.model_name)


def of_one_model(path: str, other: str, model: str) -> str:
    """Return an error about two files that name their models alike."""
    return (
        f"{path} and {other} have no column 'model', and have one name, so that the events of both would be "
        f"of the model {model!r}; name the column of the models with --model COL, or the one model of all "
        "events with --model-name NAME, or put the files of each model into a folder model=NAME"
    )
