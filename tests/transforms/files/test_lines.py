"""Lines of any length, and blank ones: none is lost but the blank ones, and memory is bounded."""

import gzip
import json
import os
import subprocess
import sys
import threading
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.errors import InputError
from rocsteady.transforms.events.fields import EventFields
from rocsteady.transforms.files.lines import (
    MOST_LINE_BYTES,
    SHOWN_BYTES,
    LongLine,
    WholeLines,
    without_blank_lines,
)
from rocsteady.transforms.sources.files.json_lines import json_chunks, json_columns
from rocsteady.transforms.sources.files.listing import list_sources
from rocsteady.transforms.sources.streams import folder_files
from rocsteady.transforms.sources.streams.folder_listing import END_FILE
from rocsteady.transforms.sources.streams.folder_partition import FolderPartition
from rocsteady.transforms.sources.streams.pipe_partition import PipeLines, PipePartition
from rocsteady.transforms.tables.read import read_tables

from tests.support.thorough import examples

MOST = 20
GOOD = b'{"score": 0.5, "label": 1}'
LONG = b'{"score": 0.5, "label": 1}' + b" " * MOST_LINE_BYTES  # its beginning alone would be a record

LINES = st.lists(
    st.one_of(
        st.sampled_from([b"", b" ", b"\r", b"{}", b"\xef\xbb\xbf{}"]),
        st.integers(MOST - 2, 3 * MOST).map(lambda size: b"x" * size),
    ),
    max_size=12,
)


def lines_of(pieces, most=MOST):
    lines = WholeLines(most)
    found = [lines.feed(piece) for piece in pieces] + [lines.rest()]
    return [part for long, block in found for part in ([] if long is None else [long], block.split(b"\n"))]


def in_pieces(data, cuts):
    bounds = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    pieces = [data[a:b] for a, b in pairwise(bounds)]
    return [piece[at : at + MOST] for piece in pieces for at in range(0, len(piece), MOST)]


@settings(max_examples=examples(400))
@given(LINES, st.booleans(), st.lists(st.integers(0, 300), max_size=20))
def test_every_line_comes_once_whole_or_as_one_that_is_too_long(lines, ended, cuts):
    data = b"\n".join(lines) + b"\n" * (ended and bool(lines))
    mark = b"\xef\xbb\xbf"
    found = [line for part in lines_of(in_pieces(data, cuts)) for line in part]
    heads = [line.head for line in found if isinstance(line, LongLine)]
    found = [line._replace(head=b"") if isinstance(line, LongLine) else line for line in found]
    expected, start = [], 0
    for number, line in enumerate(lines):
        if len(line) > MOST:
            expected.append(LongLine(b"", len(line), start))
        else:
            expected.append(line.removeprefix(mark) if number == 0 else line)
        start += len(line) + 1
    assert [line for line in found if line] == [line for line in expected if line]
    assert all(len(head) > MOST and head == b"x" * len(head) for head in heads)


@settings(max_examples=examples(300))
@given(
    st.lists(st.sampled_from([b"", b" ", b"\t\r", b"{}", b" {}", b"\x00", b"x y"]), max_size=30),
    st.booleans(),
)
def test_only_blank_lines_are_dropped(lines, ended):
    block = b"\n".join(lines) + b"\n" * ended
    kept = without_blank_lines(block)
    solid = [line for line in lines if line.strip()]
    assert [line for line in kept.split(b"\n") if line.strip()] == solid
    assert len(kept) <= len(block)


def test_blank_lines_are_dropped_everywhere():
    block = b"\n\n".join(b"%d" % n for n in range(1_000))
    assert without_blank_lines(block).split(b"\n") == [b"%d" % n for n in range(1_000)]


def test_no_more_than_the_limit_is_held():
    lines = WholeLines(1_000_000)
    for _ in range(20):
        assert lines.feed(b"x" * 1_000_000) == (None, b"")
        assert sum(map(len, lines._waiting)) <= 1_000_000
    long, block = lines.feed(b"\n{}\n")
    assert (len(long.head), long.size, long.start, block) == (SHOWN_BYTES, 20_000_000, 0, b"{}\n")
    assert lines.rest() == (None, b"")


def write(path, *lines):
    packed = path.name.endswith(".gz")
    with gzip.open(path, "wb", compresslevel=1) if packed else path.open("wb") as file:
        file.write(b"\n".join(lines))
    return path


def check_letter(letter, name, position, size, start):
    assert (letter.kind, letter.source, letter.position) == ("invalid", name, position)
    assert letter.reason == "line is too long"
    assert f"{size:,} bytes, from byte {start:,} on" in letter.detail
    assert json.loads(letter.raw).startswith(GOOD.decode() + "   ")
    assert json.loads(letter.raw).endswith(f"... ({size:,} bytes)")
    assert len(letter.raw) < SHOWN_BYTES + 100


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz"])
def test_a_line_of_a_file_that_is_too_long_is_a_dead_letter_at_its_place(tmp_path, ending):
    (source,) = list_sources(write(tmp_path / f"x{ending}", GOOD, b"", LONG, GOOD, LONG))
    assert json_columns(source) == ["score", "label"]
    chunks = [*json_chunks(source, (), ("score", "label"))]
    rows = [row for chunk in chunks for row in chunk.batch.to_pylist()]
    assert rows == [{"score": 0.5, "label": 1}] * 2
    assert sum(chunk.records for chunk in chunks) == 4
    assert [chunk.first_position for chunk in chunks] == [0, 1, 2, 3]
    one, other = (letter for chunk in chunks for letter in chunk.dead)
    check_letter(one, source.name, 1, len(LONG), len(GOOD) + 2)
    check_letter(other, source.name, 3, len(LONG), 2 * len(GOOD) + len(LONG) + 4)


def test_a_line_of_as_many_bytes_as_may_be_is_a_record(tmp_path):
    line = GOOD + b" " * (MOST_LINE_BYTES - len(GOOD))
    (source,) = list_sources(write(tmp_path / "x.jsonl", line, GOOD))
    assert json_columns(source) == ["score", "label"]
    assert [row for chunk in json_chunks(source, (), ("score",)) for row in chunk.batch.to_pylist()] == [
        {"score": 0.5}
    ] * 2


def test_a_file_that_begins_with_a_line_too_long_is_read_behind_it(tmp_path):
    (source,) = list_sources(write(tmp_path / "x.jsonl", LONG, GOOD))
    assert json_columns(source) == ["score", "label"]
    (alone,) = list_sources(write(tmp_path / "y.jsonl", LONG))
    with pytest.raises(
        InputError, match=r"a line is longer than 8,388,608 bytes, and no other one is an object"
    ):
        json_columns(alone)


FIELDS = EventFields("score", "label", model_name="m")


def letters_of(parts):
    return [letter for part in parts for letter in part.chunk.dead]


def records_of(parts):
    return sum(part.chunk.records for part in parts)


def test_a_line_of_a_pipe_that_is_too_long_is_a_dead_letter():
    receive, send = os.pipe()
    partition = PipePartition(PipeLines(receive), FIELDS)
    data = b"\n".join([GOOD, LONG, GOOD, LONG])

    def write_in_pieces():
        with os.fdopen(send, "wb") as pipe:
            for at in range(0, len(data), 50_000):
                pipe.write(data[at : at + 50_000])
                pipe.flush()

    writer = threading.Thread(target=write_in_pieces)
    writer.start()
    parts, offset, ended = [], 0, False
    while not ended:
        fetched = partition.fetch(offset, 10, 1.0)
        parts, offset, ended = [*parts, *fetched.parts], fetched.next, fetched.ended
    writer.join()
    assert offset == 4
    os.close(receive)
    one, other = letters_of(parts)
    check_letter(one, "stdin", 1, len(LONG), len(GOOD) + 1)
    check_letter(other, "stdin", 3, len(LONG), 2 * len(GOOD) + len(LONG) + 3)


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz"])
def test_a_line_of_a_folder_that_is_too_long_is_a_dead_letter_at_its_place(tmp_path, ending):
    path = write(tmp_path / f"a{ending}", GOOD, LONG, b"", b"", GOOD, LONG)
    write(tmp_path / f"b{ending}", GOOD)
    (tmp_path / END_FILE).touch()
    partition = FolderPartition(str(tmp_path), FIELDS)
    parts, offset, place, ended = [], 0, "", False
    while not ended:
        fetched = partition.fetch(offset, 2, 0.0, place)
        assert records_of(fetched.parts) <= 2
        parts += fetched.parts
        offset, place, ended = fetched.next, fetched.place, fetched.ended
    assert (offset, records_of(parts)) == (5, 5)
    one, other = letters_of(parts)
    check_letter(one, str(path), 1, len(LONG), len(GOOD) + 1)
    check_letter(other, str(path), 3, len(LONG), 2 * len(GOOD) + len(LONG) + 5)


def test_a_line_that_is_too_long_and_still_grows_waits_for_its_end(tmp_path):
    path = write(tmp_path / "a.jsonl", GOOD, LONG)
    partition = FolderPartition(str(tmp_path), FIELDS)
    first = partition.fetch(0, 10, 0.0)
    assert (first.next, first.at_end, first.ended) == (1, True, False)
    assert partition.fetch(1, 10, 0.0, first.place).parts == []
    with path.open("ab") as file:
        file.write(b"x\n" + GOOD + b"\n")
    second = partition.fetch(1, 1, 0.0, first.place)
    assert [letter.position for letter in letters_of(second.parts)] == [1]
    third = partition.fetch(2, 10, 0.0, second.place)
    assert (third.next, letters_of(third.parts)) == (3, [])
    partition.close()


def test_blank_lines_of_a_folder_are_passed_by_blocks(tmp_path, monkeypatch):
    write(tmp_path / "a.jsonl", GOOD, b"\n" * 3_000_000, b" \r", GOOD, b"\n" * 100_000)
    (tmp_path / END_FILE).touch()
    calls = []
    monkeypatch.setattr(
        folder_files,
        "_blank_lines",
        lambda stream, passed=folder_files._blank_lines: calls.append(1) or passed(stream),
    )
    fetched = FolderPartition(str(tmp_path), FIELDS).fetch(0, 10, 0.0)
    assert (fetched.next, fetched.ended) == (2, True)
    assert len(calls) < 1_000


def test_rows_with_a_line_too_long_are_refused_with_its_place(tmp_path):
    row = b'{"model": "m", "slice": "", "seq": 1, "window_events": 1, "row": 0}'
    line = row + b" " * (8 * MOST_LINE_BYTES)
    with pytest.raises(
        InputError, match=r"a line of 67,108,.* bytes, from byte 68 on, is longer than 67,108,864"
    ):
        read_tables([str(write(tmp_path / "rows.jsonl.gz", row, line))], "rows")
    table, _ = read_tables([str(write(tmp_path / "ok.jsonl", row, b"", row + b" " * 10_000_000))], "rows")
    assert table.num_rows == 2


_MEMORY = """
import json, resource, subprocess, sys
from rocsteady.core.errors import RocsteadyError
from rocsteady.transforms.events.fields import EventFields
from rocsteady.transforms.sources.files.read import read_batches
from rocsteady.transforms.sources.streams.folder_partition import FolderPartition
from rocsteady.transforms.sources.files.listing import column_names, list_sources
from rocsteady.transforms.sources.streams.pipe_partition import PipeLines, PipePartition
from rocsteady.transforms.tables.read import read_tables

fields = EventFields("score", "label", model_name="m")

def read(how, path):
    records = 0
    if how == "file":
        (source,) = list_sources(path)
        column_names(source)
        for chunk in read_batches(source, fields):
            records += chunk.records
    elif how == "folder":
        place, ended = "", False
        while not ended:
            fetched = FolderPartition(path, fields).fetch(records, 1000, 1.0, place)
            records, place, ended = fetched.next, fetched.place, fetched.ended
    elif how == "pipe":
        with subprocess.Popen(["gzip", "-dc", path], stdout=subprocess.PIPE) as unpacking:
            partition, ended = PipePartition(PipeLines(unpacking.stdout.fileno()), fields), False
            while not ended:
                fetched = partition.fetch(records, 1000, 1.0)
                records, ended = fetched.next, fetched.ended
    else:
        records = read_tables([path], "rows")[0].num_rows
    return records

def most():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

before = most()
for how, path in json.loads(sys.argv[1]):
    try:
        said = read(how, path)
    except RocsteadyError as error:
        said = "refused"
    print(json.dumps([said, most() - before]))
"""

ROW = b'{"model": "m", "slice": "", "seq": 1, "window_events": 1, "row": 0}\n'
LINE = GOOD + b"\n"

PACKED = [
    ("file", ".jsonl.gz", LINE, b"\x00", b"\n" + LINE, 3),
    ("file", ".jsonl.gz", LINE, b"[", b"\n" + LINE, 3),
    ("file", ".jsonl.gz", LINE, b"\n", LINE, 2),
    ("file", ".jsonl.gz", b"", b"\x00", b"", "refused"),
    ("folder", ".jsonl.gz", LINE, b"\x00", b"\n" + LINE, 3),
    ("folder", ".jsonl.gz", LINE, b"\n", LINE, 2),
    ("pipe", ".jsonl.gz", LINE, b"\x00", b"\n" + LINE, 3),
    ("pipe", ".jsonl.gz", LINE, b"\n", LINE, 2),
    ("file", ".csv.gz", b"score,label\n.5,1\n", b"\x00", b"\n.5,1", "refused"),
    ("file", ".csv.gz", b"score,label\n.5,1\n", b"\n", b"\n.5,1", 2),
    ("file", ".csv.gz", b"", b"\x00", b"", "refused"),
    ("rows", ".jsonl.gz", ROW, b"\x00", b"\n" + ROW, "refused"),
    ("rows", ".jsonl.gz", ROW, b"{}\n", b"\n" + ROW, "refused"),
    ("rows", ".jsonl.gz", ROW, b"\n", ROW, 2),
    ("rows", ".csv.gz", b"model,slice,seq,window_events,row\n", b"m,,,,\n", b"", "refused"),
]
"""What reads, the ending of its file, how that begins, what is repeated up to 150 MB, its end, the result."""


@pytest.mark.slow
def test_memory_is_bounded_whatever_a_packed_file_unpacks_to(tmp_path):
    cases = []
    for number, (how, ending, head, unit, tail, _) in enumerate(PACKED):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / END_FILE).touch()
        many = unit * ((1 << 20) // len(unit))
        path = folder / f"x{ending}"
        path.write_bytes(gzip.compress(head) + gzip.compress(many) * 150 + gzip.compress(tail))
        cases.append((how, str(folder if how == "folder" else path)))
    done = subprocess.run(
        [sys.executable, "-c", _MEMORY, json.dumps(cases)], capture_output=True, text=True, check=True
    )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [said for said, _ in found] == [case[-1] for case in PACKED]
    megabytes = [most for _, most in found]
    lines = sum(how != "rows" and ending == ".jsonl.gz" for how, ending, *_ in PACKED)
    assert megabytes[lines - 1] < 100, megabytes
    assert megabytes[-1] < 280, megabytes
