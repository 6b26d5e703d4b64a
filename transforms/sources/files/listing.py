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
from .generated import GENERATED, generated_schema, is_generated
from .json_lines import json_columns

_ENDINGS = ".csv, .tsv, .jsonl, .json, each also with .gz, or .parquet"


def list_sources(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> tuple[SourceFile, ...]:
    """Return the files that paths and globs name, each once, sorted by name.

    A file with several names, such as a link, has the first of its names. Raises InputError where a path
    is missing, no regular file, empty or unreadable, has an unknown ending, or where a glob matches no file.
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
    """Return a key that is equal for all names of one file: links, and paths from different folders."""
    if has_scheme(path):
        return path
    found = os.stat(path)  # noqa: PTH116 - as `Path.stat`
    return (found.st_dev, found.st_ino) if found.st_ino else os.path.realpath(path)


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
    if not os.path.lexists(path) and glob.has_magic(path):
        found = glob.glob(path, recursive=True)  # noqa: PTH207 - Path.glob knows no absolute patterns
        names = [name for name in found if not Path(name).is_dir()]
        if not names:
            raise InputError(f"{path} matches no file; check the pattern, and quote it for the shell")
    for name in names:
        yield _local_file(os.path.normpath(name))


def _local_file(path: str) -> SourceFile:
    file = Path(path)
    if not file.exists():
        names = {stem_of(name): name for name in sorted(_neighbours(file.parent), reverse=True)}
        near = near_names(stem_of(path), names)
        there = f"; there is {file.with_name(names[near[0]])}" if near else ""
        raise InputError(f"{path} does not exist{there}")
    if file.is_dir():
        raise InputError(f"{path} is a folder; name its files, such as {file / '*.csv'}")
    if not file.is_file():  # opening a pipe waits until another process writes to it
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

    most  the most bytes of a line of JSON lines
    """
    if source.format == GENERATED:
        return generated_schema(GeneratedStream.of_url(source.path)).names  # type: ignore[no-any-return]
    if source.format == "parquet":
        with source.open() as raw:
            return pa.parquet.ParquetFile(raw).schema_arrow.names  # type: ignore[no-any-return]
    return json_columns(source, most) if source.format == "jsonl" else csv_header(source)


def column_names(source: SourceFile) -> list[str] | None:
    """Return the columns found in a file's head; None for a file without a record."""
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
    return names


def columns_of_files(sources: Sequence[SourceFile]) -> dict[str, list[str]]:
    """Return the columns of each file that has a record, or a header, by the file's name."""
    found = {source.name: column_names(source) for source in sources}
    return {name: names for name, names in found.items() if names is not None}


def check_columns(sources: Sequence[SourceFile], fields: EventFields, role: Role = "event") -> None:
    """Check in the head of every file that each column that its records need occurs exactly once.

    JSON lines are checked by their first MiB. Raises InputError, which names the file, its columns, the
    nearest name, and the option that mends the fault.
    """
    for source in sources:
        if (names := column_names(source)) is not None:
            check_names(source.name, names, fields.resolved(names, source.stem), role)
