from __future__ import annotations

import os
import threading
from functools import cache

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from rocsteady.core.rows.arrow import ROW_SCHEMA
from rocsteady.transforms.sinks.table import write_table
from rocsteady.transforms.tables import followed
from rocsteady.transforms.tables.followed import follow_tables

from tests.support.pages.report_tables import evaluated_rows


@cache
def all_rows():
    return evaluated_rows(("m", 'says "yes",\nor <b>no</b>'), n=1_000)


class Follower:
    """A follower that a test steps from look to look."""

    def __init__(self, source, monkeypatch, what="rows"):
        monkeypatch.setattr(followed, "LOOK_SECONDS", 0.0)
        self.stop = threading.Event()
        self._came = follow_tables(str(source), what, (), self.stop)
        self.troubles = []

    def look(self):
        tables = []
        for came in self._came:
            if came.trouble:
                self.troubles.append(came.trouble)
            elif came.table is None:
                break
            else:
                tables.append(came.table)
        schema = pa.schema([column.with_nullable(True) for column in ROW_SCHEMA])
        return pa.concat_tables(tables) if tables else schema.empty_table()


def plain(table):
    return table.select(ROW_SCHEMA.names).to_pylist()


def text_of(table, folder, ending):
    path = folder / f"whole{ending}"
    write_table(table, str(path))
    return path.read_bytes()


@pytest.mark.parametrize("ending", [".jsonl", ".csv"])
@pytest.mark.parametrize("alone", [True, False], ids=["file", "folder"])
def test_a_file_that_grows_by_any_bytes_gives_every_row_once(ending, alone, tmp_path, monkeypatch):
    content = text_of(all_rows(), tmp_path, ending)
    place = tmp_path / "rows"
    place.mkdir()
    path = place / f"rows{ending}"
    follower = Follower(path if alone else place, monkeypatch)
    assert not follower.look().num_rows
    found = []
    with path.open("wb") as file:
        for start in range(0, len(content), 1_777):
            file.write(content[start : start + 1_777])
            file.flush()
            found.append(follower.look())
    assert plain(pa.concat_tables(found)) == plain(all_rows())
    assert not follower.look().num_rows
    assert not follower.troubles


def test_each_part_of_a_folder_is_read_when_it_appears(tmp_path, monkeypatch):
    place = tmp_path / "rows"
    follower = Follower(f"{place}/", monkeypatch)
    assert not follower.look().num_rows
    place.mkdir()
    for number, ending in enumerate((".parquet", ".jsonl.gz", ".csv.gz", ".jsonl")):
        table = all_rows().slice(3 * number, 3)
        write_table(table, str(place / f"part-{number}{ending}"))
        (place / f".part-{number}{ending}.tmp").write_bytes(b"half")
        assert plain(follower.look()) == plain(table)
    assert not follower.troubles


def test_a_damaged_part_is_told_once_and_read_when_it_was_mended(tmp_path, monkeypatch):
    follower = Follower(tmp_path, monkeypatch)
    (tmp_path / "a.parquet").write_bytes(b"PAR1 and no more")
    write_table(all_rows().slice(0, 2), str(tmp_path / "b.parquet"))
    assert follower.look().num_rows == 2
    assert follower.look().num_rows == 0
    (told,) = follower.troubles
    assert "a.parquet" in told
    write_table(all_rows().slice(2, 3), str(tmp_path / "a.parquet"))
    assert plain(follower.look()) == plain(all_rows().slice(2, 3))


def test_a_file_written_anew_is_read_from_its_start(tmp_path, monkeypatch):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(text_of(all_rows(), tmp_path, ".jsonl"))
    follower = Follower(path, monkeypatch)
    assert follower.look().num_rows == all_rows().num_rows
    path.write_bytes(text_of(all_rows().slice(0, 4), tmp_path, ".jsonl"))
    assert plain(follower.look()) == plain(all_rows().slice(0, 4))


@pytest.mark.parametrize("how", ["in place", "by another file"])
@pytest.mark.parametrize("ending", [".jsonl", ".csv"])
def test_a_longer_file_in_place_of_one_that_was_read_is_read_from_its_start(
    ending, how, tmp_path, monkeypatch
):
    path = tmp_path / f"rows{ending}"
    path.write_bytes(text_of(all_rows().slice(0, 2), tmp_path, ending))
    follower = Follower(path, monkeypatch)
    assert follower.look().num_rows == 2
    other = path if how == "in place" else tmp_path / "other"
    other.write_bytes(text_of(all_rows().slice(2, 9), tmp_path, ending))
    other.replace(path)
    assert plain(follower.look()) == plain(all_rows().slice(2, 9))
    assert not follower.troubles


def test_a_file_that_was_mended_in_its_size_and_time_of_before_is_read(tmp_path, monkeypatch):
    path, content = tmp_path / "rows.jsonl", text_of(all_rows(), tmp_path, ".jsonl")
    path.write_bytes(b"?" * (len(content) - 1) + b"\n")
    follower = Follower(path, monkeypatch)
    assert follower.look().num_rows == 0
    assert len(follower.troubles) == 1
    mended, before = tmp_path / "mended", path.stat().st_mtime_ns
    mended.write_bytes(content)
    os.utime(mended, ns=(before, before))
    mended.replace(path)
    assert plain(follower.look()) == plain(all_rows())


def test_of_a_growing_file_only_the_part_that_cannot_be_read_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(followed, "MOST_BYTES", 4_096)
    path, content = tmp_path / "rows.jsonl", text_of(all_rows(), tmp_path, ".jsonl")
    path.write_bytes(b"{no row\n" + content)
    follower = Follower(path, monkeypatch)
    found = follower.look()
    (told,) = follower.troubles
    assert "rows.jsonl" in told
    assert all_rows().num_rows - 8 < found.num_rows < all_rows().num_rows
    assert plain(found) == plain(all_rows())[-found.num_rows :]


def test_a_follower_ends_when_it_is_asked_to(tmp_path, monkeypatch):
    follower = Follower(tmp_path, monkeypatch)
    follower.look()
    follower.stop.set()
    assert list(follower._came) == []


def test_a_growing_file_that_ends_inside_a_quote_is_waited_for(tmp_path, monkeypatch):
    content = text_of(all_rows(), tmp_path, ".csv")
    inside = content.index(b'says ""yes""') + 12
    path = tmp_path / "rows.csv"
    path.write_bytes(content[:inside])
    follower = Follower(path, monkeypatch)
    found = [follower.look()]
    path.write_bytes(content)
    found.append(follower.look())
    assert plain(pa.concat_tables(found)) == plain(all_rows())
    assert not follower.troubles


def test_a_growing_file_whose_quote_is_never_closed_is_told_with_the_line(tmp_path, monkeypatch):
    rows = text_of(all_rows().slice(0, 2), tmp_path, ".csv")
    path = tmp_path / "rows.csv"
    path.write_bytes(rows + b'"m')
    follower = Follower(path, monkeypatch)
    assert follower.look().num_rows == 2
    with path.open("ab") as file:
        file.write(b",1,2,3\n" * 20_000)
    assert follower.look().num_rows == 0
    (told,) = follower.troubles
    assert f"rows.csv, line {1 + rows.count(chr(10).encode())}: a quote opens a field here, and" in told
    assert "longer than 65,536 bytes" in told
