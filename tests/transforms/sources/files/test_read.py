"""Reading files: every record is an event or a dead letter at its position, and bad files are named."""

from __future__ import annotations

import csv
import gc
import gzip
import io
import json
import os
import re
import sys
from itertools import islice
from pathlib import Path

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.testing.util import assert_that, equal_to
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rocsteady.core.errors import ConfigError, InputError, RocsteadyError
from rocsteady.core.events.batch import EventBatch
from rocsteady.core.events.records import EndOfPartition, unpack_record
from rocsteady.core.ids.sharding import shard_key, shard_of
from rocsteady.transforms.beam import progress
from rocsteady.transforms.beam.metrics import letter_metrics
from rocsteady.transforms.events.dead_letters import DeadLetters
from rocsteady.transforms.events.fields import EventFields
from rocsteady.transforms.events.lateness import ANY_TIME
from rocsteady.transforms.events.validate import validate_as
from rocsteady.transforms.files.csv_chunks import csv_chunks
from rocsteady.transforms.files.csv_text import RecordStream
from rocsteady.transforms.sources.files.json_lines import JsonLines
from rocsteady.transforms.sources.files.listing import check_columns, list_sources
from rocsteady.transforms.sources.files.read import ReadEventFiles, read_batches

from tests.support.streams.url_files import url
from tests.support.thorough import examples

FIELDS = EventFields()


def put(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def read(path, fields=FIELDS, chunks=None):
    """Return the events' scores and the (position, reason) of the dead letters of one file."""
    (source,) = list_sources(path)
    scores, dead = [], []
    position = 0
    for chunk in chunks or read_batches(source, fields):
        assert chunk.first_position == position
        position += chunk.records
        fields_of_m = fields.resolved((), "m")
        events, letters = validate_as("event", chunk, fields_of_m, source.path, 0, ANY_TIME)
        scores += events.scores.tolist()
        dead += [(letter.position, letter.detail) for letter in DeadLetters.concat([chunk.dead, letters])]
    return scores, sorted(dead)


NAMED = EventFields(model_name="m")

# What there is


def test_sources_are_sorted_by_name_and_each_is_there_once(tmp_path):
    for name in ("b.csv", "a.jsonl", "c.parquet", "d.csv.gz", "e.tsv", "f.jsonl.gz"):
        put(tmp_path, name, "x")
    sources = list_sources([tmp_path / "c.parquet", str(tmp_path / "*"), f"{tmp_path}/./b.csv"])
    assert [Path(source.path).name for source in sources] == [
        "a.jsonl",
        "b.csv",
        "c.parquet",
        "d.csv.gz",
        "e.tsv",
        "f.jsonl.gz",
    ]
    assert [source.format for source in sources] == ["jsonl", "csv", "parquet", "csv", "tsv", "jsonl"]
    assert [source.stem for source in sources] == ["a", "b", "c", "d", "e", "f"]
    assert list_sources(tmp_path / "b.csv")[0].size == 1


def test_what_is_no_input_is_named_before_the_job(tmp_path):
    put(tmp_path, "scores.csv", "x")
    put(tmp_path, "empty.csv", "")
    put(tmp_path, "empty.jsonl", "")
    put(tmp_path, "notes.txt", "x")
    put(tmp_path, "t.parquet.gz", "x")
    (tmp_path / "[odd].csv").write_bytes(b"x")
    for path, message in [
        ("score.csv", "does not exist; there is .*scores.csv"),
        ("none*.csv", "matches no file"),
        ("empty.csv", r"is empty \(0 bytes\); a file without events has at least a header"),
        ("empty.jsonl", r"is empty \(0 bytes\); leave it out"),
        ("notes.txt", "ending that is not known; input is .csv"),
        ("t.parquet.gz", "ending that is not known"),
        (".", "is a folder; name its files"),
    ]:
        with pytest.raises(InputError, match=message):
            list_sources(tmp_path / path)
    with pytest.raises(InputError, match="no input is given"):
        list_sources([])
    assert list_sources(tmp_path / "[odd].csv")[0].stem == "[odd]"


def test_a_missing_file_is_compared_by_its_name_without_the_ending(tmp_path):
    put(tmp_path, "b.csv", "x")
    put(tmp_path, "scores.parquet", "x")
    with pytest.raises(InputError, match=r"a\.csv does not exist$"):
        list_sources(tmp_path / "a.csv")
    with pytest.raises(InputError, match=r"there is .*scores\.parquet"):
        list_sources(tmp_path / "scores.csv")


def test_a_file_of_several_names_is_there_once_by_the_first(tmp_path, monkeypatch):
    path = put(tmp_path, "b.csv", "score,label\n1,1\n")
    (tmp_path / "c.csv").symlink_to(path)
    (tmp_path / "d.csv").hardlink_to(path)
    monkeypatch.chdir(tmp_path)
    for names in (["b.csv", str(path)], [str(path), "b.csv"], ["d.csv", "c.csv", str(path)]):
        (source,) = list_sources(names)
        assert source.path == min(names)
    (tmp_path / "a.csv").symlink_to(path)
    assert [source.path for source in list_sources("*.csv")] == ["a.csv"]


def test_a_pipe_or_a_device_is_no_input_and_is_never_opened(tmp_path):
    os.mkfifo(tmp_path / "events.csv")  # to open it would wait for ever
    (tmp_path / "null.csv").symlink_to(os.devnull)
    for name in ("events.csv", "null.csv", "*.csv"):
        with pytest.raises(InputError, match="is a pipe or a device; write its records to a file"):
            list_sources(tmp_path / name)


@pytest.mark.skipif(sys.platform == "darwin", reason="file names are UTF-8 there: run on Linux")
def test_a_name_that_is_not_utf8_is_shown_by_its_bytes(tmp_path):
    path = os.fsencode(tmp_path) + b"/caf\xe9.csv"
    Path(os.fsdecode(path)).write_bytes(b"score,label\n1,1\nx,1\n")
    sources = list_sources(str(tmp_path / "*.csv"))
    check_columns(sources, FIELDS)
    assert (sources[0].stem, sources[0].name) == ("caf\\xe9", f"{tmp_path}/caf\\xe9.csv")
    with beam.Pipeline("FnApiRunner") as pipeline:
        read_all = pipeline | ReadEventFiles(sources, FIELDS, 2)
        sizes = read_all.dead_letters | beam.Map(lambda batch: (batch["source"][0].as_py(), batch.num_rows))
        assert_that(sizes, equal_to([(sources[0].name, 1)]), label="letters")
        models = read_all.packets | beam.MapTuple(lambda _, data: unpack_record(data))
        models |= beam.Filter(lambda record: isinstance(record, EventBatch)) | beam.Map(lambda b: b.models[0])
        assert_that(models, equal_to(["caf\\xe9"]), label="models")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file: run as another user")
def test_an_unreadable_file_is_named(tmp_path):
    put(tmp_path, "a.csv", "x").chmod(0)
    with pytest.raises(InputError, match="cannot be read"):
        list_sources(tmp_path / "a.csv")


def test_urls_are_listed_and_read_through_the_filesystem(tmp_path):
    put(tmp_path, "b.csv.gz", "score,label\n0.5,1\n")
    put(tmp_path, "a.jsonl", '{"score": 1, "label": 0}\n')
    sources = list_sources(url(tmp_path / "*"))
    assert [source.path for source in sources] == [url(tmp_path / "a.jsonl"), url(tmp_path / "b.csv.gz")]
    check_columns(sources, FIELDS)
    assert [read(source.path, NAMED)[0] for source in sources] == [[1.0], [0.5]]
    with pytest.raises(InputError, match="matches no file"):
        list_sources(url(tmp_path / "c*"))
    with pytest.raises(InputError, match=r"nowhere://x.csv cannot be listed"):
        list_sources("nowhere://x.csv")


# Columns


@pytest.mark.parametrize("name", ["s.csv", "s.csv.gz", "s.jsonl", "s.jsonl.gz", "s.parquet", "s.tsv"])
def test_a_missing_column_is_named_with_what_there_is_and_the_option(tmp_path, name):
    table = pa.table({"scores": [0.5], "label": [1], "carrier": ["UA"]})
    if name.endswith(".parquet"):
        pq.write_table(table, tmp_path / name)
    elif "jsonl" in name:
        put(tmp_path, name, "".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    else:
        put(tmp_path, name, "scores,label,carrier\n0.5,1,UA\n".replace(",", "\t" if "tsv" in name else ","))
    sources = list_sources(tmp_path / name)
    with pytest.raises(InputError) as caught:
        check_columns(sources, FIELDS)
    assert str(caught.value) == (
        f"{tmp_path / name} has no column 'score' (did you mean 'scores'?); "
        "it has scores, label, carrier. Say which with --score COL"
    )
    check_columns(sources, EventFields(score="scores"))
    for role in ("model", "time", "id", "weight", "predicted"):
        with pytest.raises(InputError, match=f"'other'.*--{role} COL"):
            check_columns(sources, EventFields(score="scores", **{role: "other"}))
    with pytest.raises(InputError, match=r"'origin'.*--slice COL"):
        check_columns(sources, EventFields(score="scores", slices=(("carrier", "origin"),)))


def test_a_column_that_is_used_may_be_there_once_only(tmp_path):
    path = put(tmp_path, "a.csv", "score,score,label,x,x\n1,2,0,1,2\n")
    with pytest.raises(InputError, match="2 columns named 'score'"):
        check_columns(list_sources(path), FIELDS)
    path = put(tmp_path, "b.csv", "score,label,x,x\n1,1,1,2\n")
    check_columns(list_sources(path), FIELDS)
    assert read(path, NAMED) == ([1.0], [])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.parquet", b"score,label\n1,1\n", "is not a Parquet file"),
        ("a.csv", b"\n\n", "names no columns"),
        ("a.csv", "score,läbel\n".encode("latin-1"), "is not UTF-8"),
        ("a.csv", "score,label\n1,1\n".encode("utf-16"), "is not UTF-8"),
        ("a.jsonl", b"[1, 2]\n", "is one JSON array"),
        ("a.jsonl", b"score,label\n1,2\n", "is not JSON lines"),
    ],
)
def test_what_is_not_of_its_format_is_named(tmp_path, name, content, message):
    with pytest.raises(InputError, match=re.escape(message)):
        check_columns(list_sources(put(tmp_path, name, content)), FIELDS)


def test_a_gz_that_is_none_or_is_cut_in_its_head_is_named(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(b"score,label\n1,1\n")
    with pytest.raises(InputError, match="is not compressed"):
        check_columns(list_sources(tmp_path / "a.csv.gz"), FIELDS)
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b"score,label\n1,1\n")[:15])
    with pytest.raises(InputError, match="cannot be read"):
        check_columns(list_sources(tmp_path / "b.csv.gz"), FIELDS)


@pytest.mark.parametrize("content", ["score,label", "score,label\n", "score,label\r\n\r\n"])
def test_a_header_without_rows_is_no_error(tmp_path, content):
    path = put(tmp_path, "a.csv", content)
    check_columns(list_sources(path), FIELDS)
    assert read(path, NAMED) == ([], [])
    pq.write_table(
        pa.table({"score": pa.array([], pa.float64()), "label": pa.array([], pa.int8())}),
        tmp_path / "a.parquet",
    )
    check_columns(list_sources(tmp_path / "a.parquet"), FIELDS)
    assert read(tmp_path / "a.parquet", NAMED) == ([], [])
    path = put(tmp_path, "a.jsonl", "\n\n")
    check_columns(list_sources(path), FIELDS)
    assert read(path, NAMED) == ([], [])


# CSV


def test_csv_as_spreadsheets_write_it(tmp_path):
    path = put(
        tmp_path,
        "a.csv",
        '\ufeffscore,label,note\r\n0.1,1,"a, ""b""\r\nc"\r\n\r\n 0.2 ,0,\r\n0.3,,x\r\n0.4,1,NA',
    )
    assert read(path, NAMED) == ([0.1, 0.2, 0.4], [(2, "label: missing")])
    (source,) = list_sources(path)
    batch = next(iter(read_batches(source))).batch
    assert batch["note"].to_pylist() == ['a, "b"\r\nc', None, "x", "NA"]


def test_rows_with_a_wrong_number_of_fields_are_dead_letters_over_many_blocks(tmp_path):
    lines, scores, dead = ["score,label,note"], [], []
    for i in range(3_000):
        if i % 97 == 5 or 1_000 <= i < 1_200:
            dead.append((len(scores) + len(dead), "2 fields where the header names 3"))
            lines.append(f"{i},x")
        elif i % 97 == 50:
            lines.append("")
        elif i % 97 == 70:
            dead.append((len(scores) + len(dead), "score: 'abc' is not a number"))
            lines.append("abc,1,z")
        else:
            scores.append(float(i))
            lines.append(f'{i},1,"q\nq"' if i % 97 == 60 else f"{i},1,z")
    lines.append("1,2,3,4")
    dead.append((len(scores) + len(dead), "4 fields where the header names 3"))
    path = put(tmp_path, "a.csv", "\n".join(lines) + "\n")
    (source,) = list_sources(path)
    assert read(path, NAMED, csv_chunks(source, 700)) == (scores, dead)
    assert read(path, NAMED) == (scores, dead)
    raw = [letter.raw for chunk in csv_chunks(source) for letter in chunk.dead]
    assert raw[0] == '["5", "x"]'


def test_a_wrong_row_of_any_length_is_one_dead_letter_that_shows_its_beginning(tmp_path):
    path = put(tmp_path, "a.csv", "score,label\n0.5,1\n" + "x" * 200_000 + ',1,"a",2\n0.25,0\n')
    assert read(path, NAMED) == ([0.5, 0.25], [(1, "4 fields where the header names 2")])
    raw = [letter.raw for chunk in csv_chunks(list_sources(path)[0]) for letter in chunk.dead]
    assert raw == [json.dumps(["x" * 10_000]) + "... (200,008 characters)"]


@pytest.mark.slow
def test_text_in_the_score_column_far_down_is_one_dead_letter(tmp_path):
    n = 1_000_000
    rows = ["score,label", *["0.5,1"] * n]
    rows[n - 1] = "abc,1"
    path = put(tmp_path, "a.csv", "\n".join(rows))
    scores, dead = read(path, NAMED)
    assert len(scores) == n - 1
    assert dead == [(999_998, "score: 'abc' is not a number")]


def test_bytes_that_are_not_utf8_are_dead_letters_with_the_column(tmp_path):
    rows = [b"score,label,name"]
    rows += [f"{i},1,é€𝄞".encode() for i in range(400)]
    rows[10] = b"9,1,\xff"
    rows[300] = "299,1,é".encode("latin-1")
    rows[200] = b"199,\xfe"
    path = put(tmp_path, "a.csv", b"\n".join(rows))
    (source,) = list_sources(path)
    expected = [(9, "name: not UTF-8"), (199, "2 fields where the header names 3"), (299, "name: not UTF-8")]
    for block in (None, 300, 301, 302, 303):
        scores, dead = read(path, NAMED, csv_chunks(source, block))
        assert dead == expected
        assert scores == [float(i) for i in range(400) if i not in (9, 199, 299)]
    letters = [letter for chunk in csv_chunks(source) for letter in chunk.dead]
    assert json.loads(letters[1].raw) == {"score": "9", "label": "1", "name": "\ufffd"}


CELL = st.text(st.sampled_from(list('ab1,"\n\r é\t')), max_size=4)


@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.lists(CELL, min_size=2, max_size=4), max_size=12),
    st.integers(64, 200),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_positions_and_cells_are_right_for_any_csv(tmp_path, rows, block, end, quoted):
    rows = [["0", *row[1:]] for row in rows]  # no row is blank
    if not quoted:  # Python's writer leaves a lone carriage return without quotes
        rows = [[cell.replace("\r", "r") for cell in row] for row in rows]
    written = io.StringIO(newline="")
    quoting = csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL
    csv.writer(written, lineterminator=end, quoting=quoting).writerows([["x", "y", "z"], *rows])
    path = put(tmp_path, "any.csv", written.getvalue())
    found = {}
    for chunk in csv_chunks(list_sources(path)[0], block):
        at = (
            chunk.positions
            if chunk.positions is not None
            else range(chunk.first_position, chunk.first_position + chunk.batch.num_rows)
        )
        for position, row in zip(at, chunk.batch.to_pylist(), strict=True):
            found[int(position)] = [cell or "" for cell in row.values()]
        for letter in chunk.dead:
            found[letter.position] = json.loads(letter.raw)
    assert [found[position] for position in sorted(found)] == rows
    assert sorted(found) == list(range(len(rows)))


@pytest.mark.parametrize("block", range(64, 90))
def test_a_block_may_end_between_the_characters_of_a_line_break_in_quotes(tmp_path, block):
    cells = ["1\r\n", "\r\n2", "3\r", "\n4", "5\r\n\r\n6"]
    text = "x,y\r\n" + "".join(f'0,"{cell}"\r\n' for cell in cells) + '9,"7\r\n",z\r\n'
    (source,) = list_sources(put(tmp_path, "s.csv", text))
    chunks = [*csv_chunks(source, block)]
    assert [cell for chunk in chunks for cell in chunk.batch.column("y").to_pylist()] == cells
    assert [json.loads(letter.raw) for chunk in chunks for letter in chunk.dead] == [["9", "7\r\n", "z"]]


# JSON lines


def test_json_lines_of_every_kind(tmp_path):
    content = (
        '\ufeff{"score": 0.5, "label": 1, "id": 12345678901234567890, "day": "2013-01-01"}\r\n'
        "\n"
        '{"score": 1, "label": true, "id": "x", "nested": {"a": [1, {"b": null}]}}\n'
        '{"score": "0.25", "label": "0"}\n'
        "null\n"
        "[1, 2]\n"
        "{broken\n"
        '{"score": NaN, "label": 1}\n'
        '{"label": 1}\n'
        '{"score": 2, "label": -1, "id": "\\ud800"}'
    )
    path = put(tmp_path, "a.jsonl", content)
    fields = EventFields(model_name="m", id="id", slices=(("day",),))
    scores, dead = read(path, fields)
    assert scores == [0.5, 1.0, 0.25, 2.0]
    assert [position for position, _ in dead] == [3, 4, 5, 6, 7]
    assert [reason.split(":")[0] for _, reason in dead] == ["not a JSON object"] * 3 + ["score"] * 2
    chunk = next(iter(read_batches(list_sources(path)[0], fields)))
    assert chunk.batch["id"][0].as_py() == "12345678901234567890"
    assert chunk.batch["day"][0].as_py() == "2013-01-01"
    assert [letter.raw for letter in chunk.dead] == ['"null"', '"[1, 2]"', '"{broken"']


HOSTILE_LINES = (
    "null",
    '{"a":1} null',
    "[" * 100_000,
    '{"a":' + "[" * 100_000 + "]" * 100_000 + "}",
    '{"a":1}{"a":2}',
    '{"a":1,\n"b":2}',
    '{"a":"\x00"}',
    "7" * 5_000,
)


@pytest.mark.parametrize("line", HOSTILE_LINES, ids=lambda line: repr(line[:12]))
def test_lines_that_end_other_parsers_are_dead_letters(line):
    good = '{"score": 0.5, "label": 1}\n'
    stream = io.BytesIO(f"{good}{line}\n{good}".encode())
    (chunk,) = JsonLines("stdin").of_stream(stream)
    assert chunk.batch.num_rows == 2
    assert len(chunk.dead) == 1 + line.count("\n")
    assert {letter.source for letter in chunk.dead} == {"stdin"}


def test_text_that_looks_like_a_date_stays_text_in_every_block():
    lines = [f'{{"score": {i}, "day": "2013-01-{i % 28 + 1:02d}"}}\n' for i in range(200)]
    lines[150] = '{"score": 150, "day": "n/a"}\n'
    batches = [chunk.batch for chunk in JsonLines("s").of_stream(io.BytesIO("".join(lines).encode()), 1_000)]
    assert len(batches) > 5
    days = [day for batch in batches for day in batch["day"].to_pylist()]
    assert days == [json.loads(line)["day"] for line in lines]


@pytest.mark.parametrize("last", ["", '{"score": "1", "x": [1]}\n'], ids=["by arrow", "line by line"])
def test_only_the_columns_that_are_asked_for_are_built_and_a_dead_line_is_its_own(last):
    lines = [
        f'{{"score": {i / 8 if i % 2 else i // 8}, "day": "2013-01-02", "k{i}": {i}}}\n' for i in range(4_000)
    ]
    lines[7] = '{"score":  null, "day": null, "mine": 0.90}\n'
    odd = ("NaN", '"nan"') if last else ("null", "null")  # NaN is nothing that arrow reads
    lines[9] = f'{{"score": {odd[0]}, "day": "x"}}\n'
    data = "".join([*lines, last]).encode()
    (chunk,) = JsonLines("s", ("day",), ("score", "day")).of_stream(io.BytesIO(data))
    assert chunk.batch.schema.names == ["score", "day"]
    assert str(chunk.batch["score"].type) == ("string" if last else "double")
    assert chunk.batch["day"][:2].to_pylist() == ["2013-01-02"] * 2
    assert chunk.raw(np.array([7, 9])).to_pylist() == [lines[7].strip(), f'{{"score": {odd[1]}, "day": "x"}}']
    fields = EventFields(label="day", positive="x", model_name="m")
    events, letters = validate_as("event", chunk, fields, "s", 0, ANY_TIME)
    assert [letter.position for letter in letters] == [7, 9, *([4_000] if last else [])]
    assert letters[0].raw == lines[7].strip()
    assert events.scores[:4].tolist() == [0.0, 0.125, 0.0, 0.375]


def test_a_column_that_begins_far_down_is_there():
    lines = [f'{{"score": {i}}}\n' for i in range(20_000)] + ['{"score": 1, "label": 7}\n']
    chunks = list(JsonLines("s", (), ("score", "label")).of_stream(io.BytesIO("".join(lines).encode())))
    assert [chunk.batch["label"][-1].as_py() for chunk in chunks] == [7]


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=4,
)


@settings(max_examples=examples(150))
@given(
    st.lists(st.dictionaries(st.sampled_from(["score", "label", "model", "x"]), JSON) | JSON, max_size=8),
    st.integers(5, 200),
)
def test_every_json_line_is_a_row_or_a_dead_letter_at_its_position(documents, block):
    data = "".join(json.dumps(document) + "\n" for document in documents).encode()
    rows = dead = 0
    for chunk in JsonLines("s", ("model",)).of_stream(io.BytesIO(data), block):
        assert chunk.first_position == rows + dead
        rows += chunk.batch.num_rows
        dead += len(chunk.dead)
        for letter in chunk.dead:
            assert not isinstance(documents[letter.position], dict)
        events, letters = validate_as("event", chunk, FIELDS, "s", 0, ANY_TIME)
        assert len(events) + len(letters) == chunk.batch.num_rows
    assert rows == sum(isinstance(document, dict) for document in documents)
    assert rows + dead == len(documents)


def test_long_lines_and_blocks_without_a_newline():
    data = b'{"score": 1, "x": "' + b"y" * 5_000 + b'"}\n{"score": 2}'
    chunks = list(JsonLines("s").of_stream(io.BytesIO(data), 100))
    assert [row["score"] for chunk in chunks for row in chunk.batch.to_pylist()] == [1, 2]


# Parquet


@pytest.mark.slow
def test_parquet_of_many_types_and_only_what_is_needed(tmp_path):
    n = 250_000
    table = pa.table(
        {
            "score": pa.array(np.arange(n), pa.float32()),
            "label": pa.array((np.arange(n) % 2).astype(bool)),
            "model": pa.array(["a", "b"] * (n // 2)).dictionary_encode(),
            "carrier": pa.array(["UA"] * n, pa.large_string()),
            "a.b": pa.array(range(n), pa.decimal128(12, 2)),
            "nested": pa.array([[{"x": 1}]] * n),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=70_000)
    fields = EventFields(model="model", slices=(("carrier",),), weight="a.b")
    check_columns(list_sources(tmp_path / "a.parquet"), fields)
    chunks = list(read_batches(list_sources(tmp_path / "a.parquet")[0], fields))
    assert max(chunk.batch.num_rows for chunk in chunks) <= 100_000
    assert "nested" not in chunks[0].batch.schema.names
    scores, dead = read(tmp_path / "a.parquet", fields)
    assert scores == list(range(1, n))
    assert dead == [(0, "weight: 0.00 is not above 0")]


# Damage in the middle


def test_a_file_that_breaks_off_is_named_with_the_place(tmp_path):
    rows = "score,label,x\n" + "".join(f"{i},1,{(i * 7919) % 100_003}\n" for i in range(150_000))
    for name, data in (
        ("a.csv.gz", rows.encode()),
        ("a.jsonl.gz", b'{"score": 1, "label": 1}\n' * 1_000 + rows.encode()),
    ):
        path = put(tmp_path, name, data)
        path.write_bytes(path.read_bytes()[:-1_000])
        with pytest.raises(
            RocsteadyError, match=rf"{name} is damaged after record [\d,]+ .*restore the file"
        ):
            read(path, NAMED)
    table = pa.table({"score": np.random.default_rng(0).random(60_000), "label": [1] * 60_000})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=20_000, use_dictionary=False)
    data = bytearray((tmp_path / "a.parquet").read_bytes())
    page = pq.ParquetFile(tmp_path / "a.parquet").metadata.row_group(1).column(0).data_page_offset
    data[page : page + 40] = b"\xff" * 40
    (tmp_path / "a.parquet").write_bytes(bytes(data))
    with pytest.raises(RocsteadyError, match=r"a.parquet is damaged after record"):
        read(tmp_path / "a.parquet", NAMED)


def test_nobody_waits_for_the_stream_of_a_damaged_file(tmp_path):
    """The error's frames held the stream, so that each damaged file took the whole of `_LET_GO_SECONDS`."""
    path = put(
        tmp_path, "a.csv.gz", "score,label\n" + "".join(f"{i * 0.618 % 1:.12f},1\n" for i in range(150_000))
    )
    path.write_bytes(path.read_bytes()[:-1_000])
    (source,) = list_sources(path)
    with pytest.raises(EOFError) as held:
        list(csv_chunks(source))
    assert held.tb is not None
    assert not [thing for thing in gc.get_objects() if isinstance(thing, RecordStream)]


def test_a_file_that_vanishes_before_the_job_reads_it_is_named(tmp_path):
    path = put(tmp_path, "a.csv", "score,label\n1,1\n")
    (source,) = list_sources(path)
    path.unlink()
    with pytest.raises(RocsteadyError, match=r"a.csv is damaged after record 0.*No such file"):
        list(read_batches(source, NAMED))


# The transform


def reasons_counted(result):
    return {
        metric.key.metric.name: (metric.committed.count, metric.committed.min)
        for metric in result.metrics().query()["distributions"]
        if metric.key.metric.namespace == letter_metrics("invalid")
    }


def test_bad_values_of_any_length_make_a_few_metrics(tmp_path):
    n = 5_000
    put(
        tmp_path,
        "a.csv",
        "score,label\n"
        + "".join(f"{i}'{'x' * (i % 200)},1\n{','.join('x' * (3 + i))}\n" for i in range(300)),
    )
    put(
        tmp_path,
        "b.jsonl",
        '{"score": 1, "label": 1}\n'
        + "".join(f'{{"score": "{i}{"y" * 99}", "label": {i}}}\n{{"a" {i}\n' for i in range(n)),
    )
    with beam.Pipeline("FnApiRunner") as pipeline:
        _ = pipeline | ReadEventFiles(list_sources(str(tmp_path / "*")), NAMED, 2)
    assert reasons_counted(pipeline.result) == {
        "score is not a number": (300 + n, 0),
        "wrong number of fields": (300, 1),
        "not a JSON object": (n, 2),
    }


def test_files_become_numbered_packets_for_every_shard(tmp_path):
    rng = np.random.default_rng(1)
    models = [f"m{i}" for i in rng.integers(0, 20, 3_000)]
    lines = [f"{i},{i % 2},{model},{i}" for i, model in enumerate(models)]
    lines[17] = "abc,1,m1,5"
    lines[18] = "1,1"
    put(tmp_path, "b.csv", "score,label,model,at\n" + "\n".join(lines))
    put(tmp_path, "a.jsonl", '{"score": 1, "label": 1, "at": 5}\n{"score": 1, "label": 3, "at": 6}\n')
    sources = list_sources(str(tmp_path / "*"))
    shards = 5
    progress.reset()

    def see_packets(packets):
        seen = {}
        for key, data in packets:
            seen.setdefault(key, []).append(unpack_record(data))
        assert sorted(seen) == [shard_key(shard) for shard in range(shards)]
        total = []
        for shard, records in enumerate(seen[shard_key(shard)] for shard in range(shards)):
            ends = sorted((r for r in records if isinstance(r, EndOfPartition)), key=lambda r: r.partition)
            assert [(end.partition, end.partitions) for end in ends] == [(0, 2), (1, 2)]
            assert [end.source for end in ends] == [source.path for source in sources]
            for end in ends:
                packets = [r for r in records if isinstance(r, EventBatch)]
                batches = [batch for batch in packets if batch.head.partition == end.partition]
                assert sorted(batch.head.sequence for batch in batches) == list(range(end.packets))
                for batch in batches:
                    assert set(shard_of(batch.models.to_list(), shards).tolist()) == {shard}
                    assert batch.head.high_water == (2_999_000_000 if end.partition else 5_000_000)
                    total += zip(batch.models.to_list(), batch.scores.tolist(), strict=True)
        expected = [(model, float(i)) for i, model in enumerate(models) if i not in (17, 18)]
        assert sorted(total) == sorted([*expected, ("a", 1.0)])

    def see_letters(batches):
        letters = [letter for batch in batches for letter in DeadLetters(batch)]
        assert sorted((Path(letter.source).name, letter.position, letter.reason) for letter in letters) == [
            ("a.jsonl", 1, "label is unknown"),
            ("b.csv", 17, "score is not a number"),
            ("b.csv", 18, "wrong number of fields"),
        ]
        assert [letter.detail for letter in letters if letter.position == 18] == [
            "2 fields where the header names 4"
        ]

    with beam.Pipeline("FnApiRunner") as pipeline:
        read_all = pipeline | ReadEventFiles(sources, EventFields(time="at"), shards)
        assert_that(read_all.packets, see_packets, label="packets")
        assert_that(read_all.dead_letters, see_letters, label="letters")
    counted = {
        counter.key.metric.name: counter.committed
        for counter in pipeline.result.metrics().query()["counters"]
        if counter.key.metric.namespace == "rocsteady"
    }
    assert counted == {"events_read": 3_002, "dead_letters": 3}
    assert reasons_counted(pipeline.result) == {
        "label is unknown": (1, 1),
        "score is not a number": (1, 17),
        "wrong number of fields": (1, 18),
    }
    assert progress.read() == (3_002, 3, sum(source.size for source in sources), 2, 0)


def test_the_number_of_shards_is_checked_when_the_transform_is_made():
    with pytest.raises(ConfigError, match="shards=0"):
        ReadEventFiles((), FIELDS, 0)


@pytest.mark.parametrize(
    "text", ["a,b\n1,2\n3\n4,5\n", "a,b\n1,2\n", "a,b"], ids=["misfit", "plain", "empty"]
)
def test_nothing_of_a_csv_file_is_left_to_threads_of_arrow(tmp_path, text):
    """A thread that lets go of an object of Python's while the interpreter ends aborts the process."""
    (source,) = list_sources(put(tmp_path, "s.csv", text))
    gc.freeze()  # what is there before need not be looked through
    try:
        for stop in [None, 1] * 20:
            for _chunk in islice(csv_chunks(source), stop):
                pass
            assert not [kept for kept in gc.get_objects() if isinstance(kept, RecordStream)]
    finally:
        gc.unfreeze()
