"""Readers of what grows: every record once, in order, however it came; nothing is lost without a word."""

from __future__ import annotations

import gzip
import io
import json
import os
import threading
import time
from contextlib import contextmanager
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.errors import InputError, RocsteadyError
from rocsteady.transforms.events.fields import EventFields
from rocsteady.transforms.events.validate import validate
from rocsteady.transforms.sources.files.json_lines import json_line_chunks
from rocsteady.transforms.sources.streams.live_readers import FolderReader, PipeReader
from thorough import examples

FIELDS = EventFields(model_name="m")

AWKWARD = [
    b'{"score": 0.25, "label": 1}',
    b'{"label": 0, "score": 1}\r',
    b"",
    b"   ",
    b"no object",
    b"[1, 2]",
    b"null",
    b'{"score": 0.5, "label": 1, "more": {"a": [1, null]}}',
    b'{"score": "\xff", "label": 1}',
    '{"score": 0.75, "label": 0, "name": "Zoë \U0001f600"}'.encode(),
    b'{"score": NaN, "label": 1}',
    b'{"score": 3, "label": 2}',
    b'{"score": 3, "label": 0.5}',
    b'{"score": 0.125',
]
"""Lines of every kind; a newline may or may not follow the last one."""

pieces = st.lists(st.binary(max_size=40), max_size=8)


def judged(chunk):
    """(position, what became of it) of every record of a chunk."""
    events, letters = validate(
        chunk.batch,
        FIELDS,
        source="stdin",
        partition=0,
        first_position=chunk.first_position,
        positions=chunk.positions,
        raw=chunk.raw,
        located=True,
    )
    sound = zip(
        events.positions.tolist(), map(str, zip(events.scores, events.labels, strict=True)), strict=True
    )
    return [*sound, *((letter.position, str(letter)) for letter in (*chunk.dead, *letters))]


def drained(reader, wait=0.01):
    """All that a reader gives until it ends."""
    arrived = []
    while (more := reader.next(wait)) is not None:
        arrived += more
    return arrived


@contextmanager
def pipe():
    receive, send = os.pipe()
    try:
        with os.fdopen(send, "wb", buffering=0) as file:
            yield receive, file
    finally:
        os.close(receive)


def read_in_pieces(parts, fields=FIELDS):
    """What a reader gives of parts that come one by one."""
    arrived = []
    with pipe() as (receive, send):
        reader = PipeReader(receive, fields)
        for part in parts:
            send.write(part)
            arrived += reader.next(0.0)
        send.close()
        return arrived + drained(reader)


@settings(max_examples=examples(150))
@given(
    lines=st.lists(st.sampled_from(AWKWARD), max_size=8),
    mark=st.booleans(),
    ended=st.booleans(),
    cuts=st.lists(st.integers(0, 400), max_size=6),
)
def test_lines_cut_anywhere_are_the_lines_of_a_file(lines, mark, ended, cuts):
    data = b"\xef\xbb\xbf" * mark + b"\n".join(lines) + b"\n" * (ended and bool(lines))
    bounds = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    parts = [data[a:b] for a, b in pairwise(bounds)]
    arrived = read_in_pieces(parts)
    columns = FIELDS.columns
    whole = json_line_chunks(io.BytesIO(data), "stdin", ["label"], columns=columns)
    found = sorted(place for each in arrived for place in judged(each.chunk))
    assert found == sorted(place for chunk in whole for place in judged(chunk))
    assert [place for place, _ in found] == list(range(len(found)))
    assert {each.source for each in arrived} <= {"stdin"}


def test_a_line_waits_for_its_end_and_the_last_one_for_that_of_the_input():
    with pipe() as (receive, send):
        reader = PipeReader(receive, FIELDS)
        assert reader.next(0.0) == ()
        send.write(b'{"score": 0.5, "la')
        assert reader.next(0.0) == ()
        send.write(b'bel": 1}\n{"score": 0.25, "label": 0}')
        (arrived,) = reader.next(0.0)
        assert arrived.chunk.records == 1
        send.close()
        (arrived,) = reader.next(0.0)
        assert arrived.chunk.batch.to_pylist() == [{"score": 0.25, "label": 0}]
        assert reader.next(0.0) is None


def test_a_wait_ends_with_the_first_bytes_and_otherwise_in_time():
    with pipe() as (receive, send):
        reader = PipeReader(receive, FIELDS)
        started = time.monotonic()
        assert reader.next(0.2) == ()
        assert 0.15 < time.monotonic() - started < 2
        later = threading.Timer(0.1, send.write, [b'{"score": 0.5, "label": 1}\n'])
        later.start()
        started = time.monotonic()
        assert len(reader.next(30)) == 1
        assert time.monotonic() - started < 5
        later.join()


def test_a_reader_that_is_stopped_still_gives_what_is_in_the_pipe():
    with pipe() as (receive, send):
        reader = PipeReader(receive, FIELDS)
        send.write(b'{"score": 0.5, "label": 1}\n' * 500 + b'{"score": 0.5, "label": 1}')
        reader.stop()
        assert sum(each.chunk.records for each in drained(reader)) == 501


def test_what_cannot_be_read_is_an_error(tmp_path):
    handle = os.open(tmp_path, os.O_RDONLY)
    try:
        with pytest.raises(RocsteadyError, match="stdin cannot be read: Is a directory"):
            PipeReader(handle, FIELDS).next(0.0)
    finally:
        os.close(handle)


@pytest.mark.parametrize(
    ("lines", "model"),
    [
        (['{"score": 1}', '{"model": "a"}'], ("model_name", "stdin")),
        (['{"model": "a"}', '{"score": 1}'], ("model", "model")),
        (["[]", "x", '{"model": "a"}'], ("model", "model")),
    ],
)
def test_the_first_object_says_where_models_come_from(lines, model):
    role, name = model
    for parts in ([f"{line}\n".encode() for line in lines], ["".join(f"{x}\n" for x in lines).encode()]):
        *_, last = read_in_pieces(parts, EventFields())
        assert getattr(last.fields, role) == name


# ---- folders


@pytest.fixture
def folder(tmp_path):
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    return inbox


def put(folder, name, n=3, score=0.5):
    """Let a file appear, whole."""
    hidden = folder / f".{name}"
    if name.endswith(".parquet"):
        pq.write_table(pa.table({"score": [score] * n, "label": [1] * n}), hidden)
    elif name.endswith(".csv"):
        hidden.write_text("score,label\n" + f"{score},1\n" * n)
    else:
        hidden.write_text(f'{{"score": {score}, "label": 1}}\n' * n)
    hidden.rename(folder / name)


def end(folder):
    (folder / "_END").touch()


def of_files(arrived):
    """(name, records) of every file, in order, and dead letters as (name, detail)."""
    files, dead = [], []
    for each in arrived:
        name = os.path.basename(each.source)  # noqa: PTH119
        if each.chunk.batch.num_rows:
            files.append((name, each.chunk.batch.num_rows))
        dead += [(name, letter.detail) for letter in each.chunk.dead]
    return files, dead


def test_files_are_read_once_each_in_order_of_names(folder, caplog):
    for name in ("b.csv", "c.parquet", "a.jsonl"):
        put(folder, name)
    for name in (".hidden.csv", "_SUCCESS", "half.csv.tmp"):
        (folder / name).write_text("not for us")
    (folder / "sub.csv").mkdir()
    end(folder)
    reader = FolderReader(folder, FIELDS)
    assert of_files(drained(reader)) == ([("a.jsonl", 3), ("b.csv", 3), ("c.parquet", 3)], [])
    assert reader.unread == 0
    assert not caplog.records
    assert reader.next(0.0) is None


def test_files_that_come_later_are_read_later_whatever_their_names(folder):
    reader = FolderReader(folder, FIELDS)
    assert reader.next(0.0) == []
    put(folder, "b.csv", 1)
    arrived = []
    while not arrived:
        arrived += reader.next(0.0)
    put(folder, "a.csv", 2)
    end(folder)
    assert of_files(arrived + drained(reader))[0] == [("b.csv", 1), ("a.csv", 2)]


def test_a_model_without_a_name_is_the_stem_of_its_file(folder):
    put(folder, "churn.csv")
    end(folder)
    (arrived,) = drained(FolderReader(folder, EventFields()))
    assert arrived.fields.model_name == "churn"


def test_a_silence_ends_a_folder_and_a_new_file_ends_the_silence(folder):
    reader = FolderReader(folder, FIELDS, idle=0.6)
    started = time.monotonic()
    later = threading.Timer(0.4, put, [folder, "a.csv"])
    later.start()
    assert of_files(drained(reader, 1.0))[0] == [("a.csv", 3)]
    assert 0.9 < time.monotonic() - started < 5
    later.join()


def test_a_reader_that_is_stopped_reads_the_file_that_it_began(folder, caplog):
    put(folder, "a.csv", 1_000_000)
    put(folder, "b.csv")
    reader = FolderReader(folder, FIELDS)
    first = reader.next(0.0) or reader.next(0.0)
    reader.stop()
    arrived = [*first, *drained(reader)]
    assert len(arrived) > 1
    assert sum(each.chunk.records for each in arrived) == 1_000_000
    assert "1 file was not read any more" in caplog.text
    assert "b.csv" in caplog.text


def broken_parquet(folder):
    (folder / "b.parquet").write_bytes(b"PAR1 no parquet at all")
    return "b.parquet is not a Parquet file"


def cut_gzip(folder):
    lines = "".join(f"{i * 0.618 % 1:.12f},1\n" for i in range(300_000))
    data = gzip.compress(f"score,label\n{lines}".encode())
    (folder / "b.csv.gz").write_bytes(data[: len(data) // 2])
    return "b.csv.gz is damaged"


@pytest.mark.parametrize("damage", [broken_parquet, cut_gzip])
def test_a_damaged_file_is_said_and_a_dead_letter_and_others_are_read(folder, caplog, damage):
    put(folder, "a.csv")
    sentence = damage(folder)
    put(folder, "c.csv")
    end(folder)
    reader = FolderReader(folder, FIELDS)
    files, dead = of_files(drained(reader))
    assert files[0] == ("a.csv", 3)
    assert files[-1] == ("c.csv", 3)
    ((_, reason),) = dead
    assert sentence in reason
    assert reader.unread == 1
    assert [record.getMessage() for record in caplog.records] == [reason]


def test_a_file_that_vanishes_before_it_is_read_is_a_dead_letter(folder, caplog):
    put(folder, "a.csv")
    put(folder, "b.csv")
    end(folder)
    reader = FolderReader(folder, FIELDS)
    while not (first := reader.next(0.0)):
        pass
    (folder / "b.csv").unlink()
    files, dead = of_files([*first, *drained(reader)])
    assert files == [("a.csv", 3)]
    assert [name for name, _ in dead] == ["b.csv"]
    assert "vanished before it was read" in caplog.text


@pytest.mark.parametrize("late", [False, True])
def test_a_file_that_grows_after_it_was_read_is_a_dead_letter(folder, caplog, late):
    reader = FolderReader(folder, FIELDS)
    put(folder, "a.csv")
    while not (first := reader.next(0.0)):
        pass
    if late:
        end(folder)
        reader.next(0.0)
    with (folder / "a.csv").open("a") as file:
        file.write("0.5,1\n")
    end(folder)
    files, dead = of_files([*first, *drained(reader)])
    assert files == [("a.csv", 3)]
    assert [name for name, _ in dead] == ["a.csv"]
    assert "grew by 6 bytes" in caplog.text


def test_files_that_are_read_may_be_removed(folder, caplog):
    reader = FolderReader(folder, FIELDS)
    put(folder, "a.csv")
    while not reader.next(0.0):
        pass
    (folder / "a.csv").unlink()
    end(folder)
    assert drained(reader) == []
    assert not caplog.records


def test_empty_files_and_other_endings_are_said(folder, caplog):
    put(folder, "a.csv")
    (folder / "b.csv").touch()
    (folder / "c.txt").write_text("no events")
    (folder / "d.txt").write_text("no events")
    end(folder)
    reader = FolderReader(folder, FIELDS)
    assert of_files(drained(reader)) == ([("a.csv", 3)], [])
    said = sorted(record.getMessage() for record in caplog.records)
    assert len(said) == 2
    assert "b.csv is empty" in said[0]
    assert ".txt" in said[1]
    assert reader.unread == 0


def test_the_first_file_must_have_the_columns_and_later_ones_are_told_of(folder, caplog):
    put(folder, "b.csv")
    with pytest.raises(InputError, match=r"b\.csv has no column 'p'"):
        drained(FolderReader(folder, EventFields(score="p", model_name="m")))
    (folder / "c.csv").write_text("p,label\n0.5,1\n")
    end(folder)
    files, _ = of_files(drained(FolderReader(folder, FIELDS)))
    assert files == [("b.csv", 3), ("c.csv", 1)]
    assert "c.csv has no column 'score'" in caplog.text


def test_a_folder_that_vanishes_is_an_error(folder):
    reader = FolderReader(folder, FIELDS)
    folder.rmdir()
    with pytest.raises(RocsteadyError, match="inbox cannot be listed"):
        reader.next(0.0)


def test_lines_of_a_folder_keep_their_places_in_their_files(folder):
    (folder / "a.jsonl").write_text('{"score": 1, "label": 1}\nno\n')
    (folder / "b.jsonl").write_text(json.dumps({"score": 1, "label": 1}) + "\nno\n")
    end(folder)
    letters = [letter for each in drained(FolderReader(folder, FIELDS)) for letter in each.chunk.dead]
    assert [(os.path.basename(letter.source), letter.position) for letter in letters] == [  # noqa: PTH119
        ("a.jsonl", 1),
        ("b.jsonl", 1),
    ]
