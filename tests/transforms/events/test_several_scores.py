"""A record with several columns of scores is, after validation, the records of the long form."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rocsteady.transforms.events.dead_letters import NO_LETTERS, Chunk
from rocsteady.transforms.events.fields import EventFields
from rocsteady.transforms.events.lateness import Timing
from rocsteady.transforms.events.records import records_to_batch
from rocsteady.transforms.events.validate import validate_as

SCORES = st.sampled_from(["0", "0.5", "1", "x", "", None, "nan", "1.5"])
RECORDS = st.lists(
    st.fixed_dictionaries(
        {
            "a": SCORES,
            "b": SCORES,
            "c/d": SCORES,
            "model": st.sampled_from(["m", "m/a", 3, None, ""]),
            "label": st.sampled_from([0, 1, "true", 7, None]),
            "time": st.sampled_from([10, 20, 5, 1_000, None, "soon"]),
            "id": st.sampled_from(["i", "j", "", None]),
            "weight": st.sampled_from([1, 2.5, 0, None]),
            "country": st.sampled_from(["NZ", None]),
        }
    ),
    max_size=12,
)
NAMES = ("a", "b", "c/d")
FIELDS = EventFields(
    model="model", time="time", id="id", weight="weight", slices=(("country",),), scores=NAMES,
    probabilities=True,
)  # fmt: skip
TIMING = Timing(lateness=8_000_000, now=0, ahead=900_000_000)


def of(records, fields, role, positions=None):
    batch = records_to_batch(records, fields.columns_of(role), fields.number_columns)
    chunk = Chunk(0, batch, positions, NO_LETTERS)
    return validate_as(role, chunk, fields, "src", 2, TIMING, located=True)


def shown(letters):
    """Dead letters without positions and records; the reason of a missing model names no column of scores."""
    return [letter._replace(position=None, raw=None, field=None) for letter in letters]


@pytest.mark.parametrize("role", ["event", "prediction"])
@given(records=RECORDS)
def test_batch_and_dead_letters_are_those_of_the_long_form(role, records):
    model_of = lambda record: None if record["model"] in (None, "") else str(record["model"])  # noqa: E731
    long = [
        record | {"score": record[name], "model": model and f"{model}/{name}"}
        for record in records
        for name in NAMES
        for model in [model_of(record)]
    ]
    batch, letters = of(records, FIELDS, role)
    expected, expected_letters = of(long, replace(FIELDS, scores=()), role)
    assert shown(letters) == shown(expected_letters)
    assert len(batch) + len(letters) == len(NAMES) * len(records)
    events, wanted = (each if role == "event" else each.events for each in (batch, expected))
    positions = [position // len(NAMES) for position in wanted.positions.tolist()]
    assert events.positions.tolist() == positions
    same = replace(wanted, positions=events.positions)
    assert events.pack() == same.pack()


def test_a_dead_letter_has_the_whole_record_and_its_own_column():
    records = [{"a": 0.5, "b": "x", "c/d": None, "model": "m", "label": 1, "time": 1, "id": "i", "weight": 1}]
    _, letters = of(records, replace(FIELDS, probabilities=False), "event")
    assert [(letter.model, letter.field, letter.reason) for letter in letters] == [
        ("m/b", "b", "score is not a number"),
        ("m/c/d", "c/d", "score is missing"),
    ]
    assert {letter.position for letter in letters} == {0}
    (raw,) = {letter.raw for letter in letters}
    assert raw.startswith('{"a": 0.5, "b": "x", "c/d": null, "label": 1, "model": "m", ')


def test_a_reader_is_asked_for_the_records_of_the_letters():
    batch = pa.record_batch({"a": ["x", "1"], "b": [None, "y"], "label": [1, 1]})
    fields = EventFields(model_name="", scores=("a", "b"))
    lines = lambda rows: pa.array([f"line {row}" for row in rows.tolist()])  # noqa: E731
    chunk = Chunk(4, batch, None, NO_LETTERS, raw=lines)
    _, letters = validate_as("event", chunk, fields, "src", 0, Timing())
    assert [(letter.position, letter.model, letter.raw) for letter in letters] == [
        (4, "a", "line 0"), (4, "b", "line 0"), (5, "b", "line 1"),
    ]  # fmt: skip


def test_labels_have_no_scores():
    records = [{"id": "i", "time": 3, "label": 1}]
    batch, letters = of(records, FIELDS, "label")
    assert (len(batch), len(letters)) == (1, 0)
