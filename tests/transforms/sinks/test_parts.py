"""Folders of parts: whole files under their names, none for a failed write, every row of every bundle."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rocsteady.core.errors import InputError
from rocsteady.core.rows.arrow import rows_to_arrow
from rocsteady.transforms.sinks.kinds import ROWS
from rocsteady.transforms.sinks.open import PART_ROWS, PartFiles, SinkOptions, check_folder, write_batches
from rocsteady.transforms.tables.table_rows import distinct_rows, parts_of, read_rows

from tests.support.processes.beam_runs import RUNNERS, pipeline
from tests.support.stored.awkward_rows import some_rows
from tests.support.streams.url_files import url


def batches(n=60, size=7):
    table = pa.Table.from_batches([rows_to_arrow(some_rows(n))])
    return table, table.to_batches(size)


def in_order(table):
    return table.sort_by([(name, "ascending") for name in ROWS.order])


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_a_part_is_a_file_of_all_that_was_held(tmp_path, form):
    table, pieces = batches()
    parts = PartFiles(f"{tmp_path}/", ROWS, form)
    parts.write(pieces[0].slice(0, 0))
    assert parts.settle() is None
    for piece in pieces:
        parts.write(piece)
    assert list(tmp_path.iterdir()) == []
    path = parts.settle()
    assert parts_of(str(tmp_path)) == [path]
    if form == "parquet":
        assert pq.read_table(path).equals(table)
    else:
        assert [json.loads(line)["row"] for line in Path(path).read_text().splitlines()] == table[
            "row"
        ].to_pylist()
    assert parts.settle() is None


def test_many_rows_are_several_parts(tmp_path):
    _, (piece, *_) = batches(7)
    large = pa.Table.from_batches([piece] * (PART_ROWS // 21 + 1)).combine_chunks().to_batches()[0]
    parts = PartFiles(f"{tmp_path}/", ROWS, "parquet")
    for _ in range(7):
        parts.write(large)
    assert len(parts_of(str(tmp_path))) == 2
    parts.finish()
    assert sum(pq.read_metadata(path).num_rows for path in parts_of(str(tmp_path))) == 7 * large.num_rows


def test_a_row_waits_for_a_while_and_no_longer(tmp_path, monkeypatch):
    monkeypatch.setattr("rocsteady.transforms.sinks.open.PART_SECONDS", 0.05)
    parts = PartFiles(f"{tmp_path}/", ROWS, "jsonl")
    parts.write(batches()[1][0])
    parts.tend()
    assert parts_of(str(tmp_path)) == []
    while not parts_of(str(tmp_path)):
        parts.tend()
    parts.close()
    assert len(list(read_rows(tmp_path))) == 7


@pytest.mark.slow
@pytest.mark.parametrize("runner", RUNNERS)
def test_parts_of_a_job_hold_its_rows(tmp_path, runner):
    table, pieces = batches()
    folder = f"{tmp_path}/"
    with pipeline(runner) as built:
        _ = built | beam.Create(pieces) | write_batches(folder, ROWS, SinkOptions(part_format="parquet"))
    found, repeats = distinct_rows([folder])
    assert in_order(found).equals(in_order(table))
    assert repeats == 0
    assert not list(tmp_path.glob(".*"))


def test_a_folder_behind_a_url(tmp_path):
    table, pieces = batches()
    folder = f"{url(tmp_path)}/"
    check_folder(folder)
    with pipeline() as built:
        _ = built | beam.Create(pieces) | write_batches(folder, ROWS, SinkOptions())
    found, _ = distinct_rows([folder])
    assert in_order(found).equals(in_order(table))


NO_ROOM = """
import resource, sys
sys.path.insert(0, {root!r})
from tests.support.stored.awkward_rows import some_rows
from rocsteady.core.errors import RocsteadyError
from rocsteady.core.rows.arrow import rows_to_arrow
from rocsteady.transforms.sinks.kinds import ROWS
from rocsteady.transforms.sinks.open import PartFiles
parts = PartFiles({folder!r}, ROWS, {form!r})
parts.write(rows_to_arrow(some_rows(500)))
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
try:
    parts.settle()
except RocsteadyError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
print(parts.settle())
"""


@pytest.mark.skipif(os.name != "posix", reason="a limit of the size of files is POSIX")
@pytest.mark.parametrize("form", ["jsonl", pytest.param("parquet", marks=pytest.mark.slow)])
def test_a_disk_without_room_is_a_sentence_and_leaves_nothing(tmp_path, form, pytestconfig):
    program = NO_ROOM.format(root=str(pytestconfig.rootpath), folder=f"{tmp_path}/", form=form)
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    said, path = ran.stdout.splitlines()
    assert said == (
        f"output {tmp_path}/: a file of 500 rows cannot be written (File too large); make room, or let it be "
        "written to"
    )
    assert parts_of(str(tmp_path)) == [path] == list(map(str, tmp_path.iterdir()))
    assert len(list(read_rows(tmp_path))) == 500


def test_a_folder_is_the_same_wherever_a_worker_works(tmp_path, monkeypatch):
    for name in ("launcher/rows", "worker/rows"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "launcher")
    write = write_batches("rows/", ROWS, SinkOptions())
    monkeypatch.chdir(tmp_path / "worker")
    with pipeline() as job:
        _ = job | beam.Create([rows_to_arrow(some_rows(3))]) | write
    assert len(list(read_rows(tmp_path / "launcher" / "rows"))) == 3
    assert not list((tmp_path / "worker" / "rows").iterdir())


def test_folders_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("")
    for path, said in [
        (f"{tmp_path}/file/", "is a file, and the slash says a folder"),
        (f"{tmp_path}/none/rows/", f"the folder {tmp_path}/none does not exist"),
        ("nowhere://rows/", "cannot be written"),
    ]:
        with pytest.raises(InputError, match=said):
            check_folder(path)
    check_folder(f"{tmp_path}/new/")
    assert (tmp_path / "new").is_dir()
