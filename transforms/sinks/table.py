"""Tables as files. A name's ending gives the format: .parquet, .csv, .jsonl, .csv.gz or .jsonl.gz.

Invariant
    A file under its final name is complete. It is written under a temporary name in the same folder, flushed
    to the disk and renamed. If anything fails, the temporary file is removed, and an earlier file stays. The
    same table gives the same bytes.

CSV for a spreadsheet (`csv_safe`): text that a spreadsheet would run as a formula gets an apostrophe.

CSV: null is the empty field and the empty text is `""`; booleans are true and false; times are RFC 3339 with
Z; the values of a list are joined by commas. JSON lines: null is `null`. Infinity is `inf` in CSV and `1e999`
in JSON; NaN is written as null.

A bounded job writes each kind of table into one file at its end (`WriteSortedTable`). The file holds every
row once, sorted by the order of its kind. So the same rows give the same bytes, for any split of the rows
into batches by a runner. Without any rows, the file is an empty table with its columns. A single DoFn call
after a GroupByKey writes the file.
"""

from __future__ import annotations

import gzip
import io
import os
import secrets
import stat
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import BinaryIO

import apache_beam as beam
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems
from apache_beam.pvalue import PCollection
from apache_beam.transforms.window import GlobalWindows

from ...core.errors import InputError
from ..beam.metrics import count
from ..events.batches import from_ipc, to_ipc
from ..events.text import json_objects, rfc3339
from ..files.formats import has_scheme
from ..kafka.topic import is_kafka
from .kinds import TableKind, sorted_table

_ROWS_AT_ONCE = 65_536
_TEXTS = pa.list_(pa.string())
_CSV = pa.csv.WriteOptions(include_header=False, quoting_style="needed")

_FORMULA = r"\A([=+\-@\t\r\n\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}])"
"""The start of a text that a spreadsheet may run as a formula.

Source: OWASP, "CSV Injection", which includes the full-width forms of = + - @.
"""


def cleaned(table: pa.Table, *, csv_safe: bool) -> pa.Table:
    """Return a table with the values that sinks write.

    Null in place of NaN, and with csv_safe the texts of `without_formulas`.
    """
    for place, field in enumerate(table.schema):
        if pa.types.is_floating(field.type):
            column = table.column(place)
            if pc.any(pc.is_nan(column)).as_py():
                clean = pc.if_else(pc.is_nan(column), pa.scalar(None, field.type), column)
                table = table.set_column(place, field, clean)
    return without_formulas(table) if csv_safe else table


def is_csv(path: str) -> bool:
    """Return whether a file holds CSV, by the ending of its name.

    >>> is_csv("rows.csv"), is_csv("rows.CSV.gz"), is_csv("rows.jsonl")
    (True, True, False)
    """
    return path.lower().removesuffix(".gz").endswith(".csv")


def without_formulas(table: pa.Table) -> pa.Table:
    r"""Return the table with an apostrophe before each text that a spreadsheet may run as a formula.

    Only columns of text change, and lists of texts, which become text: a negative number stays a number.
    O(cells of text).

    >>> without_formulas(pa.table({"model": ["=1+1", "m-1"], "auc": [-0.5, 0.5]})).to_pylist()
    [{'model': "'=1+1", 'auc': -0.5}, {'model': 'm-1', 'auc': 0.5}]
    """
    for place, field in enumerate(table.schema):
        column = table.column(place)
        if field.type == _TEXTS:
            column, field = _joined(column), field.with_type(pa.string())
        if pa.types.is_string(field.type):
            table = table.set_column(place, field, pc.replace_substring_regex(column, _FORMULA, r"'\1"))
    return table


def _joined(lists: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return each list as one text: its values, joined by commas; a null list is an empty text.

    A comma or a backslash in a value has a backslash before it.
    """
    texts = [
        pa.ListArray.from_arrays(
            part.offsets,
            pc.replace_substring_regex(part.values.cast(pa.string()).fill_null(""), r"([\\,])", r"\\\1"),
            mask=part.is_null(),
        )
        for part in map(pa.concat_arrays, ([chunk] for chunk in lists.chunks))
    ]
    return pc.binary_join(pa.chunked_array(texts, _TEXTS), ",")


def csv_head(names: Sequence[str]) -> bytes:
    r"""Return the line of CSV that names the columns.

    >>> csv_head(["model", "auc"])
    b'model,auc\n'
    """
    if all(name.isidentifier() for name in names):
        return f"{','.join(names)}\n".encode()
    head = io.BytesIO()
    pa.csv.write_csv(pa.table([pa.array([name]) for name in names], names=names), head, _CSV)
    return head.getvalue()


def csv_lines(table: pa.Table) -> bytes:
    r"""Return the rows as lines of CSV, without the names of the columns.

    >>> csv_lines(pa.table({"model": ["a,b", ""], "auc": [0.5, None]}))
    b'"a,b",0.5\n"",\n'
    """
    for place, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            text = [rfc3339(chunk) for chunk in table.column(place).chunks]
            table = table.set_column(place, field.name, pa.chunked_array(text, pa.string()))
        elif pa.types.is_list(field.type):
            table = table.set_column(place, field.name, _joined(table.column(place)))
    lines = io.BytesIO()
    pa.csv.write_csv(table, lines, _CSV)
    return lines.getvalue()


def text_lines(table: pa.Table, *, as_csv: bool) -> Iterator[bytes]:
    r"""Yield the rows as lines of CSV or of JSON, many lines to a piece.

    The pieces go to a file or to stdout.

    >>> list(text_lines(pa.table({"auc": [0.5, None]}), as_csv=False))
    [b'{"auc": 0.5}\n{"auc": null}\n']
    """
    for batch in table.to_batches(_ROWS_AT_ONCE):
        if as_csv:
            yield csv_lines(pa.Table.from_batches([batch]))
        elif batch.num_rows:
            yield "\n".join([*json_objects(batch, "number").to_pylist(), ""]).encode()


def _ending(path: str) -> tuple[str, bool]:
    bare = path.lower().removesuffix(".gz")
    ending = Path(bare).suffix
    if ending not in (".parquet", ".csv", ".jsonl") or (ending == ".parquet" and bare != path.lower()):
        raise InputError(
            f"output {path!r} has an ending that is not known; use .parquet, .csv, .csv.gz, .jsonl "
            "or .jsonl.gz"
        )
    return ending, bare != path.lower()


def check_output(path: str | os.PathLike[str]) -> None:
    """Check, before a job starts, that `path` can be written.

    Raises InputError for an unknown ending, for an existing path that is no regular file, and for a folder
    that is missing or cannot be written to. An existing file will be replaced.
    """
    _ending(os.fspath(path))
    check_file(path)


def check_file(path: str | os.PathLike[str]) -> None:
    """Check that a file of any ending can be written, as `check_output` does."""
    text = os.fspath(path)
    if is_kafka(text):
        raise InputError(f"output {text!r} is a topic, where no file can be; name a file")
    if has_scheme(text):
        check_url(text)
        return
    file = Path(text)
    folder = file.parent
    if file.is_dir():
        raise InputError(f"output {text!r} is a folder; name a file in it, such as {file / 'rows.parquet'}")
    if file.exists() and not file.is_file():
        raise InputError(f"output {text!r} is a pipe or a device; name a regular file, or one to be made")
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        raise InputError(f"output {text!r}: the folder {folder} {what}; create it, or write elsewhere")
    try:
        try_folder(folder)
    except OSError as error:
        raise InputError(
            f"output {text!r}: the folder {folder} cannot be written to ({error.strerror}); write elsewhere"
        ) from None


def check_url(url: str) -> None:
    """Check that Beam has a file system for a URL; whether a file can be written there is not checked."""
    try:
        FileSystems.get_filesystem(url)
    except ValueError as error:
        raise InputError(f"output {url!r} cannot be written: {error}") from None


def try_folder(folder: Path) -> None:
    """Make and remove a temporary file in a folder. Raises OSError if the folder cannot be written to."""
    with tempfile.TemporaryFile(dir=folder):
        pass


def write_table(table: pa.Table, path: str | os.PathLike[str], *, csv_safe: bool = False) -> None:
    """Write a table to a file, in the format of its ending; see the head of this module.

    csv_safe  for CSV only: see `without_formulas`

    Raises InputError for an unknown ending, OSError if the file cannot be written.
    """
    text = os.fspath(path)
    ending, gzipped = _ending(text)
    as_csv = ending == ".csv"
    table = cleaned(table, csv_safe=csv_safe and as_csv)
    with replaced(text) as file:
        if ending == ".parquet":
            pa.parquet.write_table(table, file, compression="zstd")
            return
        packing: AbstractContextManager[BinaryIO | gzip.GzipFile] = nullcontext(file)
        if gzipped:
            packing = gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=6, mtime=0)
        with packing as lines:
            if as_csv:
                lines.write(csv_head(table.column_names))
            lines.writelines(text_lines(table, as_csv=as_csv))


@contextmanager
def replaced(path: str) -> Iterator[BinaryIO]:
    """Open a temporary file that is renamed to `path` if the block succeeds, and removed if it fails."""
    if has_scheme(path):
        temporary = f"{path}.{secrets.token_hex(6)}.tmp"
        try:
            with FileSystems.create(temporary, compression_type=CompressionTypes.UNCOMPRESSED) as file:
                yield file
            FileSystems.rename([temporary], [path])
        except BaseException:
            with suppress(Exception):
                FileSystems.delete([temporary])
            raise
        return
    final = Path(path)
    hidden = final.with_name(f".{final.name}.{secrets.token_hex(6)}.tmp")
    try:
        with hidden.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if final.exists():
            hidden.chmod(stat.S_IMODE(final.stat().st_mode))
        hidden.replace(final)
    except BaseException:
        hidden.unlink(missing_ok=True)
        raise
    _sync_folder(final.parent)


def _sync_folder(folder: Path) -> None:
    """Flush a folder to the disk, so that a rename is durable; not every system can do that."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


class _WriteSorted(beam.DoFn):
    def __init__(self, path: str, kind: TableKind, csv_safe: bool) -> None:
        self._path = path
        self._kind = kind
        self._csv_safe = csv_safe

    def process(self, element: tuple[str, Iterable[bytes]]) -> Iterator[str]:
        _, pieces = element
        kind = self._kind
        table = sorted_table((from_ipc(piece) for piece in pieces if piece), kind.schema, kind.order)
        write_table(table, self._path, csv_safe=self._csv_safe)
        if kind.counter is not None:
            count(kind.counter, kind.number(table))
        yield self._path


class WriteSortedTable(beam.PTransform[PCollection[pa.RecordBatch], PCollection[str]]):
    """Writes record batches of a kind into one file; outputs the file's path when the file is complete.

    csv_safe  see the head of this module
    """

    def __init__(self, path: str, kind: TableKind, *, csv_safe: bool = False) -> None:
        super().__init__()
        self._dofn = _WriteSorted(path, kind, csv_safe)

    def expand(self, batches: PCollection[pa.RecordBatch]) -> PCollection[str]:
        """Apply to the batches of a bounded job."""
        if not batches.windowing.is_default():
            batches = batches | "Global" >> beam.WindowInto(GlobalWindows())
        piece = tuple[str, bytes]
        pieces = batches | "Encode" >> beam.Map(lambda batch: ("", to_ipc(batch))).with_output_types(piece)
        # The input always has an empty piece, so that a job without rows writes an empty table.
        once = batches.pipeline | beam.Impulse()
        empty = once | "Empty" >> beam.Map(lambda _: ("", b"")).with_output_types(piece)
        paths: PCollection[str] = (
            (pieces, empty)
            | beam.Flatten()
            | beam.GroupByKey()
            | "Write" >> beam.ParDo(self._dofn).with_output_types(str)
        )
        return paths
