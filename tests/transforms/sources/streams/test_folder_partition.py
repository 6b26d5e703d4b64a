"""A folder that grows, as messages: every line once, in order of names, wherever a reader goes on from."""

from __future__ import annotations

import gzip
import json
import random
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from list_partition import ListPartition
from rocsteady.core.errors import CorruptBytesError, RocsteadyError
from rocsteady.core.events.records import EndOfPartition, unpack_record
from rocsteady.transforms.events.fields import EventFields
from rocsteady.transforms.events.validate import Timing
from rocsteady.transforms.sources.streams.folder_partition import END_FILE, FolderPartition
from rocsteady.transforms.sources.streams.reader import StreamInput, StreamReader
from thorough import examples


def read_rest(folder, offset=0, place="", limit=1_000):
    found, ended = [], False
    while not ended:
        got = FolderPartition(str(folder)).fetch(offset, limit, 0.0, place)
        assert [*got.offsets] == [*range(offset, offset + len(got.values))]
        found += got.values
        offset, place, ended = got.next, got.place, got.ended
        if got.at_end:
            break
    return found, offset, place, ended


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 100_000))
def test_every_line_comes_once_in_order_however_the_folder_grows(tmp_path, seed):
    rng = random.Random(seed)
    folder = tmp_path / f"f{len(list(tmp_path.iterdir()))}"
    folder.mkdir()
    partition = FolderPartition(str(folder))
    written, found = [], []
    offset, place, number, ended = 0, "", 0, False
    pending = b""
    for _ in range(rng.randrange(40)):
        what = rng.random()
        if what < 0.3:  # the last file grows, by some of what it will hold
            lines = [f'{{"n": {len(written) + i}}}'.encode() for i in range(rng.randrange(4))]
            written += lines
            pending += b"".join(line + rng.choice([b"\n", b"\r\n", b"\n\n"]) for line in lines)
            cut = rng.randrange(len(pending) + 1)
            with (folder / f"part-{number:03d}.jsonl").open("ab") as file:
                file.write(pending[:cut])
            pending = pending[cut:]
        elif what < 0.45:  # the next one begins, and the last line has no end
            if pending:
                with (folder / f"part-{number:03d}.jsonl").open("ab") as file:
                    file.write(pending.rstrip(b"\r\n"))
                pending = b""
            number += 1
            (folder / f"part-{number:03d}.jsonl").touch()
        elif what < 0.55 and place:  # what was read may go
            for file in folder.iterdir():
                if file.name < json.loads(place)[0]:
                    file.unlink()
        elif what < 0.65:  # another process goes on
            partition.close()
        else:
            got = partition.fetch(offset, rng.randrange(1, 9), 0.0, place)
            assert [*got.offsets] == [*range(offset, got.next)]
            assert not got.ended
            found += got.values
            if rng.random() < 0.8:
                offset, place = got.next, got.place
            else:  # the bundle failed: it is done again
                found = found[: len(found) - len(got.values)]
    with (folder / f"part-{number:03d}.jsonl").open("ab") as file:
        file.write(pending)
    (folder / END_FILE).touch()
    until = time.monotonic() + 20  # a folder that takes long to list is not listed with every look
    while not ended:
        assert time.monotonic() < until
        rest, offset, place, ended = read_rest(folder, offset, place)
        found += rest
    assert found == written


def test_packed_files_are_read_and_others_are_said_and_left_out(tmp_path, caplog):
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b"1\n2\n3"))
    (tmp_path / "b.csv").write_text("score,label\n")
    (tmp_path / ".hidden.jsonl").write_text("4\n")
    (tmp_path / "_later.jsonl").write_text("5\n")
    (tmp_path / "c.jsonl.tmp").write_text("6\n")
    (tmp_path / "c.json").write_text("7\n")
    assert read_rest(tmp_path, limit=2)[0] == [b"1", b"2", b"3", b"7"]
    assert "b.csv is not read: a folder is read as JSON lines here" in caplog.text


def test_a_name_that_comes_too_late_is_said_and_left_out(tmp_path, caplog):
    (tmp_path / "b.jsonl").write_text("1\n")
    (tmp_path / "c.jsonl").write_text("2\n")
    found, offset, place, _ = read_rest(tmp_path)
    assert read_rest(tmp_path, offset, place)[0] == []
    assert not caplog.text
    (tmp_path / "a.jsonl").write_text("0\n")
    (tmp_path / "d.jsonl").write_text("3\n")
    assert found + read_rest(tmp_path, offset, place)[0] == [b"1", b"2", b"3"]
    assert "a.jsonl came when c.jsonl was read already, and is left out: names must rise" in caplog.text


def test_what_cannot_be_read_is_a_sentence(tmp_path):
    folder = FolderPartition(str(tmp_path / "none"))
    with pytest.raises(RocsteadyError, match=r"the folder .*none cannot be listed: No such file"):
        folder.fetch(0, 10, 0.0)
    packed = gzip.compress(random.Random(1).randbytes(60_000).hex().encode())
    for damaged, byte in ((packed[:-20], 0), (packed[:100] + b"\xff" * 900 + packed[1_000:], 0)):
        (tmp_path / "a.jsonl.gz").write_bytes(damaged)
        (tmp_path / END_FILE).touch()
        with pytest.raises(
            RocsteadyError, match=rf"a.jsonl.gz cannot be read from byte {byte} on: .*; restore it"
        ):
            FolderPartition(str(tmp_path)).fetch(0, 100_000, 0.0)
    with pytest.raises(CorruptBytesError, match="the place in a folder contradicts itself"):
        FolderPartition(str(tmp_path)).fetch(0, 10, 0.0, "nonsense")


def test_a_packed_file_that_is_being_written_is_read_on_when_there_is_more(tmp_path):
    lines = [f"{{{i}, {random.Random(i).random()}}}".encode() for i in range(20_000)]
    packed = gzip.compress(b"\n".join(lines) + b"\n")
    found, offset, place = [], 0, ""
    for part in (packed[: len(packed) // 3], packed[: len(packed) // 2], packed):
        (tmp_path / "a.jsonl.gz").write_bytes(part)
        for _ in range(2):
            more, offset, place, _ = read_rest(tmp_path, offset, place)
            found += more
    assert found == lines


def test_a_failed_read_leaves_nothing_behind(tmp_path):
    """The bundle is done again in the same process, when the file has been restored."""
    lines = [f"{{{i}, {random.Random(i).random()}}}".encode() for i in range(20_000)]
    packed = gzip.compress(b"\n".join(lines) + b"\n")
    (tmp_path / "a.jsonl.gz").write_bytes(packed[: len(packed) // 2])
    (tmp_path / END_FILE).touch()
    folder = FolderPartition(str(tmp_path))
    first = folder.fetch(0, 5_000, 0.0)
    with pytest.raises(RocsteadyError, match=r"a.jsonl.gz cannot be read from byte"):
        folder.fetch(first.next, 15_000, 0.0, first.place)
    (tmp_path / "a.jsonl.gz").write_bytes(packed)
    assert [*first.values, *read_rest(tmp_path, first.next, first.place)[0]] == lines


def test_a_file_that_is_removed_before_it_was_read_is_missed(tmp_path):
    (tmp_path / "d.jsonl").write_text("1\n2\n3\n")
    (tmp_path / "e.jsonl").write_text("4\n")
    folder = FolderPartition(str(tmp_path))
    half = folder.fetch(0, 2, 0.0)
    whole = folder.fetch(0, 10, 0.0)
    assert len(whole.values) == 4
    (tmp_path / "d.jsonl").unlink()
    with pytest.raises(RocsteadyError, match=r"d.jsonl is gone, and was not read behind byte 4; restore it"):
        folder.fetch(half.next, 10, 0.0, half.place)
    (tmp_path / "e.jsonl").unlink()
    (tmp_path / "f.jsonl").write_text("5\n")
    assert folder.fetch(whole.next, 10, 0.0, whole.place).values == [b"5"]


@pytest.mark.parametrize(("name", "pack"), [("a.jsonl", bytes), ("a.jsonl.gz", gzip.compress)])
def test_a_file_that_was_written_anew_and_shorter_is_told(tmp_path, name, pack):
    (tmp_path / name).write_bytes(pack(b"1\n2\n3\n"))
    folder = FolderPartition(str(tmp_path))
    read = folder.fetch(0, 10, 0.0)
    assert len(read.values) == 3
    (tmp_path / name).write_bytes(pack(b"4\n"))
    with pytest.raises(RocsteadyError, match=rf"{name} was read up to byte 6 and is shorter now"):
        folder.fetch(read.next, 10, 0.0, read.place)


def test_a_folder_of_other_files_is_told_apart_from_one_that_is_empty_yet(tmp_path):
    folder = FolderPartition(str(tmp_path))
    assert folder.not_read() == []
    (tmp_path / "b.parquet").touch()
    assert folder.not_read() == ["b.parquet"]
    (tmp_path / "c.jsonl").touch()
    assert folder.not_read() == []


def test_a_complete_folder_ends_as_a_partition_with_an_end_does(tmp_path):
    lines = [
        json.dumps({"score": i % 5 / 5, "label": i % 2, "time": i, "model": "m"}).encode() for i in range(50)
    ]
    for part in range(5):
        Path(tmp_path, f"part-{part}.jsonl").write_bytes(b"\n".join(lines[part * 10 : part * 10 + 10]))
    (tmp_path / END_FILE).touch()
    fields, packets = EventFields(time="time", model="model"), []
    for partition, end in (
        (FolderPartition(str(tmp_path)), None),
        (ListPartition(str(tmp_path), tuple(lines)), 50),
    ):
        source = StreamInput(partition, 0, 1, "event", fields, 0, end, Timing(lateness=0))
        state, given_now = None, []
        while not given_now or not isinstance(unpack_record(given_now[-1][1]), EndOfPartition):
            reader = StreamReader(source, 1, state)
            given_now += reader.step(7).packets
            state = reader.state()
        assert reader.ended
        packets.append(given_now)
    assert packets[0] == packets[1]
