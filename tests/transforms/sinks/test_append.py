"""Tables that grow: what is written one by one is what is written at once."""

from __future__ import annotations

import doctest
import io

import numpy as np
import pyarrow as pa
import pytest
from rocsteady.core.errors import RocsteadyError
from rocsteady.core.rows.arrow import rows_to_arrow
from rocsteady.transforms.sinks import appended
from rocsteady.transforms.sinks import open as append_table
from rocsteady.transforms.sinks import table as write_table
from rocsteady.transforms.sinks.kinds import ROWS, TableKind
from rocsteady.transforms.sinks.open import TableAtEnd, open_table
from rocsteady.transforms.sources.files import json_lines

from tests.support.stored.awkward_rows import some_rows


@pytest.mark.parametrize("module", [append_table, appended, json_lines, write_table])
def test_examples_are_true(module):
    failed, tried = doctest.testmod(module)
    assert failed == 0
    assert tried


def pieces(batch):
    return [batch.slice(0, 1), batch.slice(1, 0), batch.slice(1)]


@pytest.mark.parametrize("name", ["r.csv", "r.jsonl"])
def test_lines_are_there_as_soon_as_they_are_written(tmp_path, name):
    batch = rows_to_arrow(some_rows())
    write_table.write_table(pa.Table.from_batches([batch]), tmp_path / f"whole_{name}")
    whole = (tmp_path / f"whole_{name}").read_bytes()
    path = tmp_path / name
    path.write_text("of another day")
    sink = open_table(str(path), ROWS)
    for piece in pieces(batch):
        sink.write(piece)
        assert whole.startswith(path.read_bytes())
    assert path.read_bytes() == whole
    sink.finish()
    sink.close()
    assert path.read_bytes() == whole


@pytest.mark.parametrize("name", ["r.csv", "r.jsonl"])
def test_a_file_goes_on_behind_its_last_whole_line_wherever_it_was_torn(tmp_path, name):
    kind = TableKind("n", pa.schema([("model", pa.string()), ("n", pa.int64())]), ("n",), ("n",))
    batch = pa.record_batch({"model": ['a\n"b"', "ä,\n\n", "", "c"], "n": [1, 2, 3, 4]})
    path = tmp_path / name
    sink = open_table(str(path), kind)
    sink.write(batch)
    sink.settle()
    sink.close()
    whole = path.read_bytes()
    later = pa.record_batch({"model": ["d"], "n": [5]})
    ends = [0]
    for rows in range(name == "r.jsonl", 5):
        other = tmp_path / f"{rows}{name}"
        write_table.write_table(pa.Table.from_batches([batch.slice(0, rows)]), other)
        ends.append(other.stat().st_size)
    for torn in range(len(whole) + 1):
        path.write_bytes(whole[:torn])
        sink = open_table(str(path), kind, resumes=True)
        sink.write(later)
        sink.close()
        kept = whole[: max(end for end in ends if end <= torn)]
        head = write_table.csv_head(["model", "n"]) if name == "r.csv" and not kept else b""
        line = b'"d",5\n' if name == "r.csv" else b'{"model": "d", "n": 5}\n'
        assert path.read_bytes() == head + kept + line


def test_a_block_may_end_within_quotes(tmp_path, monkeypatch):
    monkeypatch.setattr(appended, "_BLOCK_BYTES", 3)
    data = b'n,model\n1,"a\n""\nb"\n2,"c\nd'
    file = io.BytesIO(data)
    assert data[: appended.end_of_whole_lines(file, as_csv=True)] == b'n,model\n1,"a\n""\nb"\n'


@pytest.mark.parametrize("name", ["r.parquet", "r.csv.gz", "r.jsonl.gz"])
def test_other_files_are_there_at_the_end_whole_and_sorted(tmp_path, name):
    schema = pa.schema([("model", pa.string()), ("n", pa.int64())], metadata={b"a": b"b"})
    rng = np.random.default_rng(0)
    numbers = rng.permutation(25_000)
    sink = open_table(str(tmp_path / name), TableKind("n", schema, ("n",), ("n",)))
    for part in np.array_split(numbers, 60):
        sink.write(pa.record_batch({"model": ["m"] * len(part), "n": part}))
        assert not (tmp_path / name).exists()
    sink.finish()
    sink.close()
    table = pa.table({"model": ["m"] * 25_000, "n": np.arange(25_000)}).replace_schema_metadata(
        schema.metadata
    )
    write_table.write_table(table, tmp_path / f"whole_{name}")
    assert (tmp_path / name).read_bytes() == (tmp_path / f"whole_{name}").read_bytes()


def test_a_table_that_is_given_up_leaves_nothing(tmp_path):
    sink = TableAtEnd(str(tmp_path / "r.parquet"), ROWS)
    sink.write(rows_to_arrow(some_rows()))
    sink.close()
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(RocsteadyError, match=r"output .*none.*r\.csv cannot be written: No such file"):
        open_table(str(tmp_path / "none" / "r.csv"), ROWS)
