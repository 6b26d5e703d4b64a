"""A score that no float64 holds is a dead letter in every door; floats in text stay floats."""

from __future__ import annotations

import json
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import rocsteady as rs
from hypothesis import given
from hypothesis import strategies as st
from rocsteady.core.events.columns import TextColumn
from rocsteady.core.events.numbers import is_held
from rocsteady.transforms.events.columns import numbers, read_scores
from rocsteady.transforms.events.dead_letters import NO_LETTERS, Chunk
from rocsteady.transforms.events.fields import EventFields, named_fields
from rocsteady.transforms.events.lateness import ANY_TIME
from rocsteady.transforms.events.records import column_of, records_to_batch
from rocsteady.transforms.events.validate import validate_as
from rocsteady.transforms.files.formats import SourceFile
from rocsteady.transforms.sources.files.read import read_batches

BIG = 2**53 + 1
LONG = Decimal("0.12345678901234567890")
REASON = "score is not held by a float"
FIELDS = EventFields(model_name="m")


def reasons(batch, fields=FIELDS):
    _, letters = validate_as("event", Chunk(0, batch, None, NO_LETTERS), fields, "s", 0, ANY_TIME)
    return {letter.position: letter.reason for letter in letters}


@pytest.mark.parametrize(
    "column",
    [
        pa.array([2**53, BIG]),
        pa.array([0, 2**64 - 1], pa.uint64()),
        pa.array([Decimal("0.1"), LONG]),
        pa.array([Decimal("1"), LONG], pa.decimal256(70, 20)),
        pa.array([Decimal("100000000000000000000"), Decimal(BIG)]),
        pa.array(["9007199254740993.0", str(BIG)]),
        pa.array(["9.007199254740993e15", f" -00{BIG}"], pa.large_string()),
        pa.array([b"1", str(BIG).encode()]),
        pa.array(["1", str(BIG)]).dictionary_encode(),
        pa.array([1, BIG]).dictionary_encode(),
        pa.RunEndEncodedArray.from_arrays([1, 2], [1, BIG]),
        pa.array([Decimal("0.5"), Decimal("0.12345678901234567")], pa.decimal64(18, 17)),
    ],
    ids=lambda column: str(column.type),
)
def test_of_two_scores_in_a_column_the_second_is_not_held(column):
    assert reasons(pa.record_batch({"score": column, "label": [0, 1]})) == {1: REASON}


def test_the_letter_names_the_value_and_the_remedy():
    batch = pa.record_batch({"score": pa.array([BIG, 1]), "label": [0, 1]})
    _, letters = validate_as("event", Chunk(0, batch, None, NO_LETTERS), FIELDS, "s", 0, ANY_TIME)
    assert (letters[0].field, letters[0].value) == ("score", str(BIG))
    assert letters[0].detail == (
        f"score: {BIG} is not held by a float64, so that different scores would tie; give floats, or round "
        "or scale scores"
    )


@pytest.mark.parametrize("value", [BIG, -BIG, LONG, str(BIG), np.int64(BIG), np.uint64(2**64 - 1)], ids=repr)
def test_a_score_of_a_record_is_not_held_beside_any_neighbour(value):
    for neighbours in ([], [1], [0.5], ["x"], [Decimal("0.5")], [None], [Decimal("1E+30"), "x", 2**70]):
        records = [{"score": each, "label": 1} for each in [value, *neighbours]]
        found = reasons(records_to_batch(records, numbers={"score"}))
        assert found[0] == REASON
        assert REASON not in [found.get(place) for place in range(1, len(records))]


@given(st.lists(st.integers(-(2**70), 2**70) | st.decimals(places=20, min_value=-9, max_value=9), min_size=1))
def test_a_column_says_what_each_value_says(values):
    column = column_of(values, as_numbers=True)
    held = [is_held(value) for value in values]
    assert (~np.isnan(read_scores(column))).tolist() == held
    floats = [float(value) for value, is_one in zip(values, held, strict=True) if is_one]
    assert read_scores(column)[held].tolist() == floats == numbers(column)[held].tolist()


def test_scores_of_classes_are_held_or_the_event_is_a_dead_letter():
    fields = named_fields({"class_scores": ["p_a", "p_b"], "model_name": "m"})
    batch = pa.record_batch({"p_a": [0.1, 0.2], "p_b": pa.array([1, BIG]), "label": ["a", "b"]})
    assert reasons(batch, fields) == {1: REASON}


def test_of_several_scores_only_the_event_of_the_score_is_a_dead_letter():
    chunk = Chunk(0, pa.record_batch({"a": [0.1], "b": pa.array([BIG]), "label": [1]}), None, NO_LETTERS)
    fields = named_fields({"score": ["a", "b"], "model_name": "m"})
    events, letters = validate_as("event", chunk, fields, "s", 0, ANY_TIME)
    assert events.models.to_list() == ["m/a"]
    assert [letter.reason for letter in letters] == [REASON]


def test_a_packed_batch_takes_only_scores_that_a_float_holds():
    with pytest.raises(rs.InputError, match=r"scores\[1\] is 9007199254740993, and no float64 holds it"):
        rs.EventBatch(models=TextColumn.repeated("m", 2), scores=[0.5, BIG], labels=[0, 1])


def test_weights_and_features_are_rounded_as_before():
    fields = EventFields(model_name="m", weight="w")
    assert reasons(pa.record_batch({"score": [0.5], "label": [1], "w": pa.array([BIG])}), fields) == {}


@pytest.mark.parametrize("name", ["e.csv", "e.jsonl", "e.parquet", "mixed.jsonl", "nested.jsonl"])
def test_every_format_of_files_has_the_same_dead_letter(name, tmp_path):
    path = tmp_path / name
    scores = [2**53, BIG] if name != "mixed.jsonl" else [0.5, BIG]
    if name.endswith("csv"):
        path.write_text("score,label\n" + "".join(f"{each},1\n" for each in scores))
    elif name.endswith("parquet"):
        pq.write_table(pa.table({"score": scores, "label": [1, 1]}), path)
    else:
        more = {"tags": [1]} if name == "nested.jsonl" else {}
        path.write_text("".join(json.dumps({"score": each, "label": 1, **more}) + "\n" for each in scores))
    source = SourceFile(str(path), name.split(".")[1], gzipped=False, size=path.stat().st_size)
    (chunk,) = read_batches(source, FIELDS)
    assert reasons(chunk.batch) == {1: REASON}


FRAMES = {
    "arrow": pa.table({"score": [2**53, BIG], "label": [0, 1]}),
    "polars": pl.DataFrame({"score": [2**53, BIG], "label": [0, 1]}),
    "polars decimals": pl.DataFrame({"score": [Decimal("0.1"), LONG], "label": [0, 1]}),
    "polars objects": pl.DataFrame({"score": pl.Series([0.5, LONG], dtype=pl.Object), "label": [0, 1]}),
    "pandas": pd.DataFrame({"score": [2**53, BIG], "label": [0, 1]}),
    "pandas objects": pd.DataFrame({"score": pd.Series([0.5, BIG], dtype=object), "label": [0, 1]}),
    "pandas decimals": pd.DataFrame({"score": pd.Series([0.5, LONG], dtype=object), "label": [0, 1]}),
    "pandas nullable": pd.DataFrame({"score": pd.array([1, BIG], dtype="Int64"), "label": [0, 1]}),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_a_frame_has_the_dead_letter(kind):
    evaluated = rs.evaluate(FRAMES[kind])
    assert evaluated.counters["events_applied"] == 1
    assert pl.DataFrame(evaluated.dead_letters)["reason"].to_list() == [REASON]


@pytest.mark.parametrize("element", [(1, BIG), (0, LONG), ([0, 1], [0.5, BIG])], ids=repr)
def test_a_combine_fn_refuses_the_score(element):
    for fn in (rs.AucCombineFn(), rs.PolynomialAucCombineFn(interval=(0, 1e18))):
        with pytest.raises(rs.InputError, match="no float64 holds it"):
            fn.apply([(0, 0.1), element])
