"""A followed folder in a folder `key=value`, and files of one name in a followed folder."""

from __future__ import annotations

import gzip
import json

import pytest
from rocsteady.transforms.events.fields import EventFields
from rocsteady.transforms.sources.streams.folder_listing import END_FILE

from tests.support.streams.folder_looks import DRIVERS, Looks


@pytest.fixture(params=DRIVERS)
def driver(request):
    return request.param


def put(folder, name, **more):
    """Write three events."""
    records = [{"score": 0.5, "label": 1, **more}] * 3
    text = "".join(f"{json.dumps(record)}\n" for record in records)
    if "json" not in name:
        rows = [[*records[0]], *([*map(str, record.values())] for record in records)]
        text = "".join(",".join(row) + "\n" for row in rows)
    folder.mkdir(parents=True, exist_ok=True)
    data = text.encode()
    (folder / f".{name}").write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    (folder / f".{name}").rename(folder / name)


NAMES = ("a.csv", "b.jsonl", "c.jsonl.gz")


@pytest.mark.parametrize("fields", [EventFields(), EventFields(model="model")], ids=["open", "named"])
def test_the_folders_above_a_followed_folder_are_columns(tmp_path, fields, driver):
    folder = tmp_path / "model=churn" / "inbox"
    for name in NAMES:
        put(folder, name)
    looks = Looks(folder, fields, driver)
    looks.look(2)
    with (folder / "c.jsonl.gz").open("ab") as file:
        file.write(gzip.compress(b'{"score": 1, "label": 0}\n'))
    (folder / END_FILE).touch()
    looks.rest(2)
    assert (looks.models, looks.dead) == ({"churn"}, [])
    assert looks.files == [("a.csv", 3), ("b.jsonl", 3), ("c.jsonl.gz", 4)]


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_contradicts_its_folder_is_a_dead_letter(tmp_path, name, driver):
    folder = tmp_path / "model=churn"
    put(folder, name, model="fraud")
    put(folder, "z.csv")
    (folder / END_FILE).touch()
    looks = Looks(folder, EventFields(), driver).rest()
    assert looks.files == [("z.csv", 3)]
    ((dead, detail),) = looks.dead
    assert dead == name
    assert f"{name}: record 0 has 'fraud' in the column 'model'" in detail


@pytest.mark.parametrize("later", ["churn.csv.gz", "churn.jsonl", "churn.jsonl.gz"])
@pytest.mark.parametrize("at_once", [True, False])
def test_a_later_file_of_one_name_is_a_dead_letter(tmp_path, driver, later, at_once):
    looks = Looks(tmp_path, EventFields(), driver)
    put(tmp_path, "churn.csv")
    if not at_once:
        looks.look()
    put(tmp_path, later)
    put(tmp_path, "fraud.csv")
    (tmp_path / END_FILE).touch()
    looks.rest()
    assert looks.files == [("churn.csv", 3), ("fraud.csv", 3)]
    ((dead, detail),) = looks.dead
    assert (dead, looks.letters[0].reason) == (later, "file cannot be read")
    assert detail.startswith(f"{tmp_path / later} and {tmp_path / 'churn.csv'} have no column 'model', and")
    assert "--model-name NAME" in detail


@pytest.mark.parametrize(
    ("fields", "more"),
    [
        (EventFields(model_name="m"), {}),
        (EventFields(), {"model": "m"}),
        (EventFields(scores=("score", "label")), {}),
    ],
    ids=["by name", "by column", "by scores"],
)
def test_files_of_one_name_whose_model_is_known_are_read(tmp_path, driver, fields, more):
    put(tmp_path, "churn.csv", **more)
    put(tmp_path, "churn.jsonl", **more)
    (tmp_path / END_FILE).touch()
    looks = Looks(tmp_path, fields, driver).rest()
    assert {name for name, _ in looks.files} == {"churn.csv", "churn.jsonl"}
    assert looks.dead == []


def test_a_file_that_was_removed_and_comes_again_is_no_namesake(tmp_path, driver):
    looks = Looks(tmp_path, EventFields(), driver)
    put(tmp_path, "churn.csv")
    put(tmp_path, "x.csv")
    looks.look()
    (tmp_path / "churn.csv").unlink()
    looks.look()
    put(tmp_path, "churn.jsonl")
    (tmp_path / END_FILE).touch()
    assert looks.rest().files == [("churn.csv", 3), ("x.csv", 3), ("churn.jsonl", 3)]
    assert looks.dead == []


def test_key_folders_in_a_followed_folder_are_told_once(tmp_path, caplog, driver):
    put(tmp_path / "model=churn", "a.csv")
    (tmp_path / "archive").mkdir()
    looks = Looks(tmp_path, EventFields(model_name="m"), driver)
    looks.look()
    looks.look()
    (tmp_path / END_FILE).touch()
    looks.rest()
    (said,) = {record.getMessage() for record in caplog.records}
    why = "--follow reads the files of one folder; follow this folder alone"
    assert said == f"{tmp_path / 'model=churn'} is not read: {why}"
