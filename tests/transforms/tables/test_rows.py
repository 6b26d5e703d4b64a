"""Rows are read each once, whatever was written again, in which order and in how many parts."""

from __future__ import annotations

import json
import tempfile
import threading

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.errors import ConfigError, InputError
from rocsteady.core.rows.arrow import rows_to_arrow
from rocsteady.transforms.events.dead_letters import DeadLetter, in_columns
from rocsteady.transforms.sinks.kinds import PAIRS, ROWS
from rocsteady.transforms.sinks.open import PartFiles
from rocsteady.transforms.sinks.table import write_table
from rocsteady.transforms.tables.read import read_tables
from rocsteady.transforms.tables.table_rows import RowsOnce, distinct_rows, read_rows

from tests.support.stored.awkward_rows import some_rows
from tests.support.thorough import THOROUGH, examples

ALL_ROWS = some_rows(40)
BATCH = rows_to_arrow(ALL_ROWS)


def identity(row):
    return row.model, row.slice, row.pane_start, row.row


def write_bundles(folder, bundles, forms=("jsonl",)):
    for number, (start, stop) in enumerate(bundles):
        parts = PartFiles(f"{folder}/", ROWS, forms[number % len(forms)])
        parts.write(BATCH.slice(start, stop - start))
        parts.finish()


def test_rows_are_read_from_json_lines_of_the_records_with_their_times_as_numbers(tmp_path):
    lines = [json.dumps(row._asdict()) for row in ALL_ROWS]
    assert any(row.time is not None for row in ALL_ROWS)
    assert any(row.time is None for row in ALL_ROWS)
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(lines))
    assert list(read_rows(file)) == list(ALL_ROWS)


@pytest.mark.parametrize("time", [5, None, 1_774_699_200_000_000])
def test_dead_letters_are_read_from_json_lines_of_the_records(time, tmp_path):
    raw = json.dumps({"time": 12, "due": 1, "id": "a"})
    letter = DeadLetter("unmatched", "no label within ttl", "JoinLabels", time=time, id="a", raw=raw)
    file = tmp_path / "letters.jsonl"
    file.write_text(json.dumps(letter._asdict()) + "\n")
    table, _ = read_tables([str(file)], "dead letters")
    assert table.column("time").cast(pa.int64()).to_pylist() == [time]
    assert table.column("raw").to_pylist() == [raw]


bundle = st.tuples(st.integers(0, 39), st.integers(1, 15)).map(lambda b: (b[0], min(b[0] + b[1], 40)))


@pytest.mark.slow
@settings(max_examples=examples(30))
@given(
    st.lists(bundle, min_size=1, max_size=8 if THOROUGH else 4),
    st.sampled_from([("jsonl",), ("parquet",), ("jsonl", "parquet")]),
)
def test_any_repetition_of_bundles_gives_the_same_rows(bundles, forms):
    whole = [(0, 13), (13, 26), (26, 40)]
    with tempfile.TemporaryDirectory() as folder:
        write_bundles(folder, [*bundles, *whole, *bundles], forms)
        rows = list(read_rows(folder))
        table, repeats = distinct_rows([folder])
    assert sorted(rows, key=identity) == sorted(ALL_ROWS, key=identity)
    assert len(rows) == len(set(map(identity, rows))) == table.num_rows
    assert repeats == 2 * sum(stop - start for start, stop in bundles)
    order = [(name, "ascending") for name in ROWS.order]
    assert table.sort_by(order).equals(pa.Table.from_batches([BATCH]).sort_by(order))


@settings(max_examples=200)
@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 12)), max_size=60), st.none() | st.integers(1, 5)
)
def test_what_is_new_is_what_a_set_says(found, remembered):
    once, seen = RowsOnce(remembered), set()
    like = ALL_ROWS[0]
    for place, (model, row) in enumerate(found):
        new = once.is_new(tuple(like._replace(model=model, row=row)), "s", str(place))
        assert new == ((model, row) not in seen)
        seen.add((model, row))
    assert once.repeats == len(found) - len(seen)
    for model in {model for model, _ in found}:
        (runs,) = [runs for key, runs in once._runs.items() if key[0] == model]
        assert runs == sorted(set(runs))
        covered = [
            row for first, past in zip(runs[::2], runs[1::2], strict=True) for row in range(first, past)
        ]
        assert covered == sorted(row for of, row in seen if of == model)


def test_memory_is_a_run_a_series_and_the_last_hashes():
    once, like = RowsOnce(100), ALL_ROWS[0]
    for row in range(5_000):
        assert once.is_new(tuple(like._replace(row=row)), "s", str(row))
    assert list(once._runs.values()) == [[0, 5_000]]
    assert len(once._hashes) == 100
    assert not once.is_new(
        tuple(like._replace(row=0, auc=0.123)), "s", "again"
    )  # known, and too old to compare


def test_two_rows_of_one_identity_that_differ_are_named(tmp_path):
    for name, auc in [("a", 0.5), ("b", 0.25)]:
        rows = some_rows(3)
        rows.number("auc")[2] = auc
        write_table(pa.Table.from_batches([rows_to_arrow(rows)]), tmp_path / f"part-{name}.jsonl")
    row = ALL_ROWS[2]
    for read in (lambda: list(read_rows(tmp_path)), lambda: distinct_rows([f"{tmp_path}/"])):
        with pytest.raises(InputError) as refused:
            read()
        said = str(refused.value)
        assert said.startswith(f"two rows of one identity differ, model {some_rows(3)[2].model!r}, slice ")
        assert f"record 2 of {tmp_path}/part-a.jsonl and record 2 of {tmp_path}/part-b.jsonl; " in said
    assert row.row == 2


def test_what_cannot_be_read_is_said(tmp_path):
    write_table(pa.Table.from_batches([BATCH]), tmp_path / "rows.csv")
    assert len(list(read_rows(tmp_path / "rows.csv"))) == 40
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "x.jsonl").write_text('{"a": 1}\n')
    with pytest.raises(ConfigError, match="a file is not followed"):
        next(read_rows(tmp_path / "rows.csv", follow=True))
    with pytest.raises(InputError, match="holds no rows of rocsteady"):
        list(read_rows(tmp_path / "other"))
    write_table(pa.Table.from_batches([in_columns([], PAIRS.schema)]), tmp_path / "pairs.csv")
    with pytest.raises(InputError, match="holds rows of pairs of models, not rows of measures"):
        list(read_rows(tmp_path / "pairs.csv"))
    with pytest.raises(InputError, match="cannot be listed: No such file"):
        list(read_rows(f"{tmp_path}/none/"))
    with pytest.raises(InputError, match="does not exist"):
        list(read_rows(tmp_path / "none.csv"))
    (tmp_path / "empty").mkdir()
    assert list(read_rows(tmp_path / "empty")) == []
    assert distinct_rows([str(tmp_path / "empty")])[0].num_rows == 0


def test_a_folder_is_followed(tmp_path):
    write_bundles(tmp_path, [(0, 10)])
    later = threading.Timer(0.5, write_bundles, (tmp_path, [(5, 40)]))
    later.start()
    rows = read_rows(tmp_path, follow=True)
    found = [next(rows) for _ in range(40)]
    later.join()
    assert sorted(found, key=identity) == sorted(ALL_ROWS, key=identity)
