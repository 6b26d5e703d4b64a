"""Folders `key=value` are columns of their files, in every format, and contradict no value of a file."""

from __future__ import annotations

import datetime
import json
import os

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from rocsteady.core.errors import InputError, RocsteadyError
from rocsteady.transforms.events.dead_letters import DeadLetters
from rocsteady.transforms.events.fields import EventFields
from rocsteady.transforms.events.lateness import ANY_TIME
from rocsteady.transforms.events.validate import validate_as
from rocsteady.transforms.sources.files.folder_columns import folder_columns
from rocsteady.transforms.sources.files.listing import check_columns, column_names, list_sources
from rocsteady.transforms.sources.files.read import FilePartition, read_batches
from rocsteady.transforms.sources.files.timed_lines import survey, timed_lines

ENDINGS = pytest.mark.parametrize("ending", [".csv", ".tsv.gz", ".jsonl", ".json.gz", ".parquet"])


def write(path, table):
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pq.write_table(table, path)
        return path
    rows = table.to_pylist()
    if "json" in path.name:
        text = "".join(json.dumps(row, default=str) + "\n" for row in rows)
    else:
        sign = "\t" if "tsv" in path.name else ","
        cells = [[("" if value is None else str(value)) for value in row.values()] for row in rows]
        text = "".join(sign.join(line) + "\n" for line in [table.column_names, *cells])
    with pa.CompressedOutputStream(str(path), "gzip") if path.suffix == ".gz" else path.open("wb") as file:
        file.write(text.encode())
    return path


TABLE = pa.table({"score": [0.9, 0.1, 0.4], "label": [1, 0, 1]})


def read(path, fields=None, role="event"):
    """Return the events of a file, and its dead letters."""
    fields = EventFields() if fields is None else fields
    (source,) = list_sources(path)
    resolved = fields.resolved(column_names(source), source.stem)
    batches, dead = [], []
    for chunk in read_batches(source, resolved, role=role):
        events, letters = validate_as(role, chunk, resolved, source.path, 0, ANY_TIME)
        batches.append(events)
        dead += DeadLetters.concat([chunk.dead, letters])
    return batches, dead


@pytest.mark.parametrize(
    ("path", "columns"),
    [
        ("a.csv", {}),
        ("model=a.csv", {}),
        ("model=a/x.csv", {"model": "a"}),
        ("/data/model=a/date=2026-01-01/x.csv", {"model": "a", "date": "2026-01-01"}),
        ("gs://bucket/model=a/x.csv", {"model": "a"}),
        ("a%2Fb=caf%C3%A9%20%3D1=2/x.csv", {"a/b": "café =1=2"}),
        ("p=50%/x.csv", {"p": "50%"}),
        ("p=1+1/x.csv", {"p": "1+1"}),
        ("p=__HIVE_DEFAULT_PARTITION__/q=/x.csv", {"p": None, "q": None}),
        ("p=1/y/p=1/x.csv", {"p": "1"}),
        ("=1/x.csv", {}),
        ("generate://sea?count=100", {}),
    ],
)
def test_the_columns_of_a_path_are_those_of_its_folders(path, columns):
    assert folder_columns(path) == columns


def test_the_folders_of_the_working_folder_count_and_steps_out_of_folders_do_not(tmp_path, monkeypatch):
    (tmp_path / "model=a" / "p=1").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "model=a")
    assert folder_columns("x.csv") == {"model": "a"}
    assert folder_columns("p=1/x.csv") == {"model": "a", "p": "1"}
    assert folder_columns("p=1/../x.csv") == {"model": "a"}
    assert folder_columns("../x.csv") == {}


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("p=1/p=2/x.csv", "two folders give the column 'p' two values, '1' and '2'"),
        ("p=%FF/x.csv", "the folder p=%FF has escapes that are not UTF-8; rename it"),
    ],
)
def test_folders_that_say_two_things_or_no_text_are_refused(tmp_path, path, message):
    write(tmp_path / path, TABLE)
    with pytest.raises(InputError, match=message):
        check_columns(list_sources(tmp_path / path), EventFields())


def test_folders_are_read_as_pyarrow_reads_them(tmp_path):
    for model in ("churn", "a%2Fb", "caf%C3%A9"):
        for date in ("2026-01-01", "2026-01-02"):
            write(tmp_path / f"data/model={model}/date={date}/part-0.parquet", TABLE)
    sources = list_sources(tmp_path / "data")
    ours = [chunk.batch for source in sources for chunk in read_batches(source)]
    theirs = pyarrow.dataset.dataset(tmp_path / "data", partitioning="hive").to_table()
    key = [(name, "ascending") for name in ("model", "date", "score")]
    assert pa.Table.from_batches(ours).sort_by(key).to_pylist() == theirs.sort_by(key).to_pylist()


@ENDINGS
def test_a_folder_gives_the_model_the_time_and_a_slice(tmp_path, ending):
    path = write(tmp_path / f"model=churn/month=01/date=2026-01-01/part-0{ending}", TABLE)
    fields = EventFields(time="date", slices=(("month",),))
    check_columns(list_sources(path), fields)
    (events,), dead = read(path, fields)
    assert dead == []
    assert events.scores.tolist() == [0.9, 0.1, 0.4]
    assert set(events.models.to_list()) == {"churn"}
    assert dict(events.slices)["month"].to_list() == ["01"] * 3
    start = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    assert events.times.tolist() == [int(start.timestamp() * 1e6)] * 3
    least = FilePartition(list_sources(path)[0], 0, "event", fields.resolved(["model"])).least_times()
    assert least.settled(0) == int(start.timestamp() * 1e6)


@ENDINGS
def test_a_folder_gives_numbers_labels_and_ids_as_csv_does(tmp_path, ending):
    path = write(tmp_path / f"label=1/weight=2.5/p=0.7/at=60/part{ending}", pa.table({"id": [1, 2]}))
    fields = EventFields(score="p", weight="weight", id="id", model_name="m")
    (events,), dead = read(path, fields)
    assert (dead, events.scores.tolist(), events.weights.tolist()) == ([], [0.7, 0.7], [2.5, 2.5])
    assert events.labels.tolist() == [1, 1]
    (labels,), dead = read(path, EventFields(id="id", time="at"), "label")
    assert (dead, labels.labels.tolist(), labels.times.tolist()) == ([], [1, 1], [60_000_000] * 2)


@ENDINGS
def test_a_folder_without_a_value_makes_dead_letters(tmp_path, ending):
    path = write(tmp_path / f"model=__HIVE_DEFAULT_PARTITION__/part{ending}", TABLE)
    batches, dead = read(path)
    assert not any(map(len, batches))
    assert [letter.reason for letter in dead] == ["model is missing"] * 3


@ENDINGS
def test_a_dead_letter_shows_the_columns_of_folders(tmp_path, ending):
    path = write(tmp_path / f"model=churn/part{ending}", pa.table({"score": ["x"], "label": [1]}))
    _, (letter,) = read(path)
    assert (letter.model, json.loads(letter.raw)["model"]) == ("churn", "churn")


@ENDINGS
@pytest.mark.parametrize(
    ("folder", "column", "says"),
    [
        (
            "model=churn",
            ["churn", None, "fraud"],
            "has 'fraud' in the column 'model', and the folder model=",
        ),
        ("model=__HIVE_DEFAULT_PARTITION__", [None, None, "x"], "of the file says that there is no value"),
        ("model=7", ["7", "7", "8"], "has '8' in the column 'model'"),
    ],
)
def test_a_value_that_contradicts_the_folder_is_an_error_that_names_the_record(
    tmp_path, ending, folder, column, says
):
    path = write(tmp_path / folder / f"part{ending}", TABLE.append_column("model", pa.array(column)))
    with pytest.raises(RocsteadyError) as caught:
        read(path)
    assert f"part{ending}: record 2 has" in str(caught.value)
    assert says in str(caught.value)


@ENDINGS
def test_a_column_that_nobody_asks_for_contradicts_nothing(tmp_path, ending):
    table = TABLE.append_column("rate", pa.array([2.5] * 3))
    path = write(tmp_path / f"model=churn/rate=0.1/part{ending}", table)
    (events,), dead = read(path)
    assert (len(events), dead) == (3, [])
    with pytest.raises(RocsteadyError, match=r"record 0 has '2\.5' in the column 'rate'"):
        read(path, EventFields(slices=(("rate",),)))


@ENDINGS
def test_a_column_that_agrees_with_the_folder_is_no_error(tmp_path, ending):
    table = TABLE.append_column("model", pa.array(["churn", None, "churn"]))
    (events,), dead = read(write(tmp_path / f"model=churn/part{ending}", table))
    assert (set(events.models.to_list()), dead) == ({"churn"}, [])


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("01", pa.array([1, None, 1])),
        ("2026-01-01", pa.array([datetime.date(2026, 1, 1)] * 3)),
        ("2026-01-01", pa.array([datetime.datetime(2026, 1, 1)] * 3)),
        ("true", pa.array([True] * 3)),
        ("0.5", pa.array([0.5, float("nan"), 0.5])),
        ("x", pa.array(["x", "", "x"]).dictionary_encode()),
        ("x", pa.array(["x"] * 3, pa.large_string())),
    ],
)
def test_the_folders_text_is_compared_as_the_type_of_the_column(tmp_path, text, column):
    path = write(tmp_path / f"key={text}/part.parquet", TABLE.append_column("key", column))
    (chunk,) = read_batches(list_sources(path)[0])
    assert chunk.batch["key"].to_pylist() == [text] * 3
    other = write(tmp_path / f"key=other{text}/part.parquet", TABLE.append_column("key", column))
    with pytest.raises(RocsteadyError, match="record 0 has"):
        list(read_batches(list_sources(other)[0]))


def test_blocks_of_lines_in_folders_are_read_at_once(tmp_path, monkeypatch):
    """A column that a block lacks would have the block read line by line, at a third of the speed."""
    path = write(tmp_path / "model=churn/part.jsonl", TABLE)
    (source,) = list_sources(path)
    monkeypatch.setattr("rocsteady.transforms.sources.files.json_lines.JsonLines._slow", None)
    (chunk,) = read_batches(source, EventFields(model="model"))
    assert chunk.batch["model"].to_pylist() == ["churn"] * 3


@pytest.mark.parametrize("key", ["model", "modèle"])
def test_a_line_far_down_that_contradicts_its_folder_is_found(tmp_path, key):
    line = json.dumps({"score": 0.5, "label": 1, "note": "x" * 90}) + "\n"
    for escaped in (True, False):
        last = json.dumps({"score": 0.5, "label": 1, key: "fraud"}, ensure_ascii=escaped) + "\n"
        path = tmp_path / f"{key}=churn" / "part.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_text(line * 20_000 + last)
        with pytest.raises(RocsteadyError, match=f"record 20,000 has 'fraud' in the column '{key}'"):
            read(path, EventFields(model=key))


@ENDINGS
def test_lines_that_are_replayed_have_the_columns_of_folders(tmp_path, ending):
    table = TABLE.append_column("model", pa.nulls(3, pa.string())) if "json" in ending else TABLE
    path = write(tmp_path / f"model=churn/date=2026-01-01/part{ending}", table)
    files = [survey(source, "date", "s") for source in list_sources(path)]
    records = [json.loads(line) for block in timed_lines(files, "date", "s") for line in block.lines]
    assert [record["model"] for record in records] == ["churn"] * 3
    assert {record["date"][:10] for record in records} == {"2026-01-01"}


# The files of a folder


def test_a_folder_with_key_folders_is_all_files_below(tmp_path):
    for name in ("b=1/x.csv", "b=1/c/y.jsonl", "a=1/z.parquet", "w.csv", "_tmp/b.csv", "b=1/.x.csv.crc"):
        write(tmp_path / "data" / name, TABLE)
    (tmp_path / "data" / "_SUCCESS").touch()
    found = [os.path.relpath(source.path, tmp_path / "data") for source in list_sources(tmp_path / "data")]
    assert found == ["a=1/z.parquet", "b=1/c/y.jsonl", "b=1/x.csv", "w.csv"]
    (tmp_path / "data" / "b=1" / "notes.txt").write_text("x")
    with pytest.raises(InputError, match=r"notes.txt has an ending that is not known"):
        list_sources(tmp_path / "data")
    (tmp_path / "none" / "a=1").mkdir(parents=True)
    with pytest.raises(InputError, match="none has no file in its folders"):
        list_sources(tmp_path / "none")
    assert [source.stem for source in list_sources(f"{tmp_path}/data/a=1/")] == ["z"]
    with pytest.raises(InputError, match="c is a folder; name its files"):
        list_sources(tmp_path / "data" / "b=1" / "c")


def test_a_link_in_another_key_folder_is_another_file(tmp_path):
    path = write(tmp_path / "model=a/x.csv", TABLE)
    (tmp_path / "model=b").mkdir()
    (tmp_path / "model=b" / "x.csv").symlink_to(path)
    (tmp_path / "model=b" / "y.csv").symlink_to(path)
    assert [source.path[-13:] for source in list_sources(tmp_path)] == ["model=a/x.csv", "model=b/x.csv"]


def test_folders_that_contain_themselves_are_an_error(tmp_path):
    write(tmp_path / "data" / "model=a" / "x.csv", TABLE)
    (tmp_path / "data" / "model=b").symlink_to(tmp_path / "data")
    with pytest.raises(InputError, match="model=b is a link to a folder that contains it; remove the link"):
        list_sources(tmp_path / "data")


# Files of one name


def one_model(paths, fields=None, role="event"):
    check_columns(list_sources(paths), EventFields() if fields is None else fields, role)


@pytest.mark.parametrize(
    "names",
    [
        ("churn/scores.csv", "fraud/scores.csv"),
        ("churn/scores.csv", "fraud/scores.jsonl.gz"),
        ("scores.csv", "scores.parquet"),
        ("date=2026-01-01/part-0.parquet", "date=2026-01-02/part-0.parquet"),
    ],
)
@pytest.mark.parametrize("role", ["event", "prediction"])
def test_files_of_one_name_without_a_model_are_refused(tmp_path, names, role):
    paths = [write(tmp_path / name, TABLE) for name in names]
    stem = paths[0].name.partition(".")[0]
    with pytest.raises(InputError) as caught:
        one_model(paths, role=role)
    assert str(caught.value) == (
        f"{paths[0]} and {paths[1]} have no column 'model', and have one name, so that the events of both "
        f"would be of the model {stem!r}; name the column of the models with --model COL, or the one model "
        "of all events with --model-name NAME, or put the files of each model into a folder model=NAME"
    )
    one_model(paths, EventFields(model_name="m"), role)
    one_model(paths, EventFields(model="label"), role)
    one_model(paths, EventFields(scores=("score", "label")), role)


def test_files_of_one_name_that_name_a_model_are_read(tmp_path):
    named = TABLE.append_column("model", pa.array(["m"] * 3))
    one_model([write(tmp_path / "a" / "x.csv", TABLE), write(tmp_path / "b" / "x.csv", named)])
    one_model([write(tmp_path / f"model={name}" / "part-0.parquet", TABLE) for name in "ab"])
    one_model([write(tmp_path / name / "y.csv", TABLE) for name in "ab"], role="instance")
    labels = pa.table({"id": [1], "label": [1]})
    one_model([write(tmp_path / name / "z.csv", labels) for name in "ab"], EventFields(id="id"), "label")
