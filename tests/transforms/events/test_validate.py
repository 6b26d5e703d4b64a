"""Validation: what becomes an event, what a dead letter, and that neighbours in a batch do not matter."""

from __future__ import annotations

import datetime
import json
import math
import tracemalloc
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.errors import ConfigError, InputError
from rocsteady.core.events.batch import NEGATIVE, NO_CLASS, POSITIVE, EventBatch
from rocsteady.core.events.times import NO_TIME
from rocsteady.transforms.events.batches import RecordBatchCoder, from_ipc, to_ipc
from rocsteady.transforms.events.columns import (
    class_text,
    ids,
    instant,
    instants,
    json_record,
    number,
    numbers,
    texts,
)
from rocsteady.transforms.events.dead_letters import (
    DEAD_LETTER_SCHEMA,
    NO_LETTERS,
    Chunk,
    DeadLetter,
    DeadLetters,
)
from rocsteady.transforms.events.fields import EventFields
from rocsteady.transforms.events.lateness import ANY_TIME, Timing
from rocsteady.transforms.events.records import records_to_batch
from rocsteady.transforms.events.validate import validate_as

from tests.support.thorough import examples

PLAIN = EventFields(model_name="m")


def check(batch, fields=PLAIN, first_position=0, **more):
    positions, raw = more.pop("positions", None), more.pop("raw", None)
    places = None if positions is None else np.asarray(positions, np.int64)
    chunk = Chunk(first_position, batch, places, NO_LETTERS, raw=raw)
    return validate_as("event", chunk, fields, "src", 3, more.pop("timing", ANY_TIME), **more)


def columns(**named):
    named.setdefault("score", [0.5] * len(next(iter(named.values()))))
    named.setdefault("label", [1] * len(named["score"]))
    return pa.record_batch(
        {name: value if isinstance(value, pa.Array) else pa.array(value) for name, value in named.items()}
    )


def details(letters):
    return [letter.detail for letter in letters]


# Scores


@pytest.mark.parametrize("text", ["0.5", "1e-3", " 7 ", "+1", "-.5", "1.", "1E5", "\t2\n"])
def test_a_score_as_text_is_the_number_that_python_reads(text):
    events, letters = check(columns(score=[text, "0.25"]))
    assert events.scores.tolist() == [float(text), 0.25]
    assert len(letters) == 0


@pytest.mark.parametrize(
    ("value", "detail"),
    [
        ("abc", "score: 'abc' is not a number"),
        ("1_000", "score: '1_000' is not a number"),
        ("0x1F", "score: '0x1F' is not a number"),
        ("nan", "score: 'nan' is not finite"),
        ("-Infinity", "score: '-Infinity' is not finite"),
        ("1e400", "score: '1e400' is not finite"),
        ("NULL", "score: 'NULL' is not a number"),
        ("٣", "score: '٣' is not a number"),
        ("", "score: missing"),
        (None, "score: missing"),
    ],
)
def test_a_score_that_is_no_finite_number_is_a_dead_letter(value, detail):
    events, letters = check(columns(score=["0.1", value, "0.9"]), first_position=40)
    assert events.scores.tolist() == [0.1, 0.9]
    (letter,) = letters
    assert (letter.kind, letter.detail, letter.source, letter.position) == ("invalid", detail, "src", 41)
    words = "is missing" if detail.endswith("missing") else detail.partition("' ")[2]
    assert (letter.reason, letter.field, letter.value) == (f"score {words}", "score", value or None)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, 2], pa.int8()),
        pa.array([1, 2], pa.uint64()),
        pa.array(np.array([1, 2], np.float16)),
        pa.array([1, 2], pa.float32()),
        pa.array([Decimal("1.0"), Decimal("2.0")]),
        pa.array(["1", "2"], pa.large_string()),
        pa.array(["1", "2"], pa.string_view()),
        pa.array([b"1", b"2"]),
        pa.array(["1", "2"]).dictionary_encode(),
        pa.array([1.0, 2.0]).dictionary_encode(),
        pa.array([0, 1, 2, 3])[1:3],
    ],
    ids=lambda column: str(column.type),
)
def test_scores_are_read_from_every_numeric_or_text_type(column):
    events, letters = check(columns(score=column))
    assert events.scores.tolist() == [1.0, 2.0]
    assert len(letters) == 0


@pytest.mark.parametrize(
    "column",
    [
        pa.array([True]),
        pa.array([[1.0]]),
        pa.array([{"a": 1}]),
        pa.array([datetime.date(2013, 1, 1)]),
        pa.nulls(1),
    ],
    ids=lambda column: str(column.type),
)
def test_what_is_no_number_by_its_type_is_a_dead_letter_and_no_exception(column):
    events, letters = check(columns(score=column))
    assert len(events) == 0
    assert letters[0].detail.startswith("score: ")


def test_probabilities_lie_between_0_and_1():
    _, letters = check(columns(score=[0.0, 1.0, 1.5, -0.1]), EventFields(model_name="m", probabilities=True))
    assert details(letters) == [
        "score: 1.5 is no probability, which lies between 0 and 1",
        "score: -0.1 is no probability, which lies between 0 and 1",
    ]


# Labels


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, 0, -1]),
        pa.array([1.0, 0.0, -1.0]),
        pa.array(["1", "0", "-1"]),
        pa.array([" 1.0", "0e0", "-01"]),
        pa.array(["TRUE", "False", "false"]),
        pa.array([True, False, False]),
        pa.array([Decimal(1), Decimal(0), Decimal(-1)]),
    ],
    ids=lambda column: str(column.to_pylist()),
)
def test_labels_are_understood_without_a_positive_class(column):
    events, letters = check(columns(label=column))
    assert events.labels.tolist() == [POSITIVE, NEGATIVE, NEGATIVE]
    assert len(letters) == 0


REMEDY = "name the positive class with positive= (--positive)"


def test_an_unknown_label_tells_the_remedy():
    _, letters = check(columns(label=["1", "maybe", None, "2"]))
    assert details(letters) == [
        f"label: 'maybe' is none of 1, 0, -1, true, false; {REMEDY}",
        "label: missing",
        f"label: '2' is none of 1, 0, -1, true, false; {REMEDY}",
    ]
    _, letters = check(columns(label=[2.0, math.nan]))
    assert details(letters)[1] == "label: missing"


@pytest.mark.parametrize(
    ("positive", "column", "labels"),
    [
        ("yes", ["yes", "no", "Yes"], [1, 0, 0]),
        ("1", ["1.0", "01", "one"], [1, 1, 0]),
        ("1.0", [1, 2, 1], [1, 0, 1]),
        (1, ["1", "0", "x"], [1, 0, 0]),
        ("true", [True, False, True], [1, 0, 1]),
        ("True", ["true", "TRUE", "1", "yes"], [1, 1, 1, 0]),
        ("1", [True, False, None, True], [1, 0, 1]),
        ("1", ["True", "false", "TRUE", "1.0"], [1, 0, 1, 1]),
        ("0", [True, False], [0, 1]),
        ("FALSE", [1, 0, -1], [0, 1, 0]),
        (True, [1.0, 0.0], [1, 0]),
        ("-1", [-1, 1, 0], [1, 0, 0]),
        ("2", [2.0, 3.5, 2.0], [1, 0, 1]),
    ],
)
def test_with_a_positive_class_every_other_value_is_negative(positive, column, labels):
    events, _ = check(columns(label=column), EventFields(model_name="m", positive=positive))
    assert events.labels.tolist() == labels


def test_with_a_positive_class_a_missing_label_is_still_a_dead_letter():
    fields = EventFields(model_name="m", positive="1")
    for column in ([1.0, math.nan, None], ["1", "", None]):
        events, letters = check(columns(label=column), fields)
        assert events.labels.tolist() == [1]
        assert details(letters) == ["label: missing"] * 2


def test_with_predictions_labels_are_classes_in_one_spelling():
    fields = EventFields(model_name="m", predicted="p")
    events, letters = check(columns(label=[1, 2, 3, 1], p=["1.0", "2", None, "cat"]), fields)
    assert events.label_classes.to_list() == ["1", "2", "1"]
    assert events.predicted.to_list() == ["1", "2", "cat"]
    assert events.labels.tolist() == [NO_CLASS] * 3
    assert details(letters) == ["predicted: missing"]
    events, _ = check(
        columns(label=[True, False], p=["TRUE", "x"]),
        EventFields(model_name="m", predicted="p", positive="true"),
    )
    assert events.label_classes.to_list() == ["1", "0"]
    assert events.predicted.to_list() == ["1", "x"]
    assert events.labels.tolist() == [1, 0]


def test_booleans_are_the_positive_class_in_the_confusion_too():
    events, _ = check(
        columns(label=[True, False], p=["TRUE", "0"]),
        EventFields(model_name="m", predicted="p", positive="1"),
    )
    assert events.labels.tolist() == [1, 0]
    assert events.label_classes.to_list() == ["1", "0"]
    assert events.predicted.to_list() == ["1", "0"]


# Times

SECOND = 1_000_000


@pytest.mark.parametrize(
    ("value", "unit", "micros"),
    [
        ("1970-01-01T00:00:01Z", "s", SECOND),
        ("1970-01-01t00:00:01z", "s", SECOND),
        ("1970-01-01 00:00:01", "s", SECOND),
        ("1970-01-01T02:00:01+02:00", "s", SECOND),
        ("1969-12-31T19:00:01.5-0500", "s", 1_500_000),
        ("1970-01-02", "s", 86_400 * SECOND),
        (" 1970-01-01T00:00:00.123456789 ", "s", 123_456),
        ("1970-01-01T23:59:60Z", "s", 86_400 * SECOND),
        ("1", "s", SECOND),
        ("1.25", "s", 1_250_000),
        ("-1", "ms", -1_000),
        ("7", "us", 7),
        ("1999", "ns", 1),
        ("1700000000123456789", "ns", 1_700_000_000_123_456),
        ("1e3", "ms", SECOND),
    ],
)
def test_times_are_microseconds_utc(value, unit, micros):
    assert instant(value, unit) == micros
    assert instants(pa.array([value]), unit).tolist() == [micros]


@pytest.mark.parametrize(
    "value",
    [
        "soon",
        "2013-02-30",
        "2013-1-1",
        "nan",
        "1e30",
        "99999999999999999999999",
        "2013-01-01T25:00",
        "0000-01-01",
        "+1 day",
        "10000-01-01",
    ],
)
def test_what_is_no_time_is_a_dead_letter(value):
    events, letters = check(columns(at=["2013-01-01", value, None]), EventFields(model_name="m", time="at"))
    assert len(events) == 1
    assert letters[0].detail.startswith(f"time: {value!r} ")
    assert letters[1].detail == "time: missing"


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, 2], pa.timestamp("s")),
        pa.array([1_000, 2_000], pa.timestamp("ms", "America/New_York")),
        pa.array([1_000_000_999, 2_000_000_000], pa.timestamp("ns", "UTC")),
        pa.array([1, 2]),
        pa.array([1.0, 2.0], pa.float32()),
        pa.array([1, 2], pa.uint64()),
        pa.array(["1970-01-01T00:00:01", "1970-01-01T01:00:02+01:00"]),
        pa.array(["1", "1970-01-01T00:00:02Z"]),
        pa.array(["1970-01-01T00:00:01Z", "1970-01-01T00:00:02Z"]).dictionary_encode(),
    ],
    ids=lambda column: str(column.type),
)
def test_times_are_read_from_every_type_and_zones_may_mix(column):
    events, letters = check(columns(at=column), EventFields(model_name="m", time="at"))
    assert events.times.tolist() == [SECOND, 2 * SECOND]
    assert len(letters) == 0


def test_a_time_unit_that_is_too_coarse_is_named_in_the_reason():
    _, letters = check(columns(at=[1_700_000_000_000_000_000]), EventFields(model_name="m", time="at"))
    (reason,) = details(letters)
    assert reason.startswith("time: 1700000000000000000 in s is not within the years 1 to 9999; set another")
    assert reason.endswith(" unit of time with time_unit= (--time-unit)")
    huge = pa.array([2**62, -(2**62)], pa.timestamp("s"))
    events, letters = check(columns(at=huge), EventFields(model_name="m", time="at"))
    assert (len(events), len(letters)) == (0, 2)


def test_dates_count_from_midnight_utc():
    for kind in (pa.date32(), pa.date64()):
        assert instants(pa.array([datetime.date(1970, 1, 2), None], kind)).tolist() == [
            86_400 * SECOND,
            NO_TIME,
        ]


# The other columns


def test_weights_are_above_zero_and_absent_unless_asked_for():
    batch = columns(w=["2", "0", "-1", "inf", None, "x"])
    assert check(batch)[0].weights is None
    events, letters = check(batch, EventFields(model_name="m", weight="w"))
    assert events.weights.tolist() == [2.0]
    assert details(letters) == [
        "weight: '0' is not above 0",
        "weight: '-1' is not above 0",
        "weight: 'inf' is not finite",
        "weight: missing",
        "weight: 'x' is not a number",
    ]


def test_ids_models_and_slices_that_are_numbers_become_text_without_a_point():
    fields = EventFields(model="m", id="i", slices=(("s",), ("s", "t")))
    batch = columns(m=[1.0, 2.0], i=[7.0, None], s=[3.5, math.nan], t=["", "x"])
    events, _ = check(batch, fields)
    assert events.models.to_list() == ["1", "2"]
    assert events.ids.to_list() == ["7", None]
    assert [(name, column.to_list()) for name, column in events.slices] == [
        ("s", ["3.5", None]),
        ("t", [None, "x"]),
    ]


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["a", None, "", "é"]),
        pa.array(["x", "a", None, "", "é"])[1:],
        pa.array(["a", None, "", "é"], pa.large_string()),
        pa.array(["a", None, "", "é"]).dictionary_encode(),
        pa.array([b"a", None, b"", "é".encode()]),
    ],
    ids=str,
)
def test_missing_ids_and_slices(column):
    assert ids(column).to_list() == ["a", None, None, "é"]
    assert texts(column).to_list() == ["a", None, None, "é"]


def test_large_ids_keep_every_digit():
    assert ids(pa.array([2**63 + 1], pa.uint64())).to_list() == [str(2**63 + 1)]
    assert texts(pa.array([Decimal(10**30)])).to_list() == [str(10**30)]


def test_a_missing_model_is_a_dead_letter_and_a_model_name_serves_all():
    events, letters = check(columns(model=["a", "", None, "b"]), EventFields())
    assert events.models.to_list() == ["a", "b"]
    assert (
        details(letters)
        == ["model: missing; name its column with model=, or one name for all with model_name="] * 2
    )
    _, letters = check(columns(model=["a", ""]), EventFields(model="model"))
    assert details(letters) == ["model: missing"]
    assert check(columns(model=["a"]), EventFields(model_name="all"))[0].models.to_list() == ["all"]


def test_the_model_is_settled_once_for_a_source():
    assert EventFields().resolved(["model"], "stem").model == "model"
    assert EventFields().resolved(["x"], "stem").model_name == "stem"
    assert EventFields(model_name="n").resolved(["model"], "stem").model is None
    assert EventFields(model="k").resolved(["model"], "stem").model == "k"


def test_a_column_that_a_batch_lacks_is_missing_everywhere():
    events, letters = check(pa.record_batch({"score": [0.5]}), EventFields())
    assert len(events) == 0
    assert details(letters)[0].startswith("model: missing; name its column")
    assert details(letters)[0].endswith("; label: missing")


def test_a_needed_column_that_is_there_twice_is_refused_and_an_unused_one_is_not():
    twice = pa.RecordBatch.from_arrays(
        [pa.array([1]), pa.array([2]), pa.array([1])], ["score", "score", "label"]
    )
    with pytest.raises(InputError, match="'score' is there 2 times"):
        check(twice)
    unused = pa.RecordBatch.from_arrays(
        [pa.array([1.0]), pa.array([1]), pa.array([2]), pa.array([1])], ["score", "x", "x", "label"]
    )
    assert len(check(unused)[0]) == 1


# Dead letters


def test_a_dead_letter_carries_the_record_its_time_model_and_id():
    fields = EventFields(model="m", time="at", id="i")
    batch = columns(
        score=[math.inf], label=["?"], m=["a"], at=["1970-01-01T00:00:01Z"], i=[5], x=[[1, 2]], y=['q"\n']
    )
    (letter,) = check(batch, fields, first_position=9)[1]
    assert letter.position == 9
    assert (letter.time, letter.model, letter.id) == (SECOND, "a", "5")
    assert letter.detail.startswith("score: inf is not finite; label: '?' is none of")
    assert json.loads(letter.raw) == {
        "score": "inf",
        "label": "?",
        "m": "a",
        "at": "1970-01-01T00:00:01Z",
        "i": 5,
        "x": [1, 2],
        "y": 'q"\n',
    }
    assert list(json.loads(letter.raw)) == batch.schema.names


def test_dead_letters_have_one_schema_and_concatenate():
    letters = DeadLetters.of(
        [DeadLetter("late", "r", "s"), DeadLetter("invalid", "r", "s", 1, 2, "m", "i", "{}")]
    )
    both = DeadLetters.concat([letters, DeadLetters.of(()), letters])
    assert both.batch.schema == DEAD_LETTER_SCHEMA
    assert list(both) == [*letters, *letters]
    assert both[-1].time == 2
    _, made = check(columns(score=["x"]))
    assert made.batch.schema == DEAD_LETTER_SCHEMA


def test_positions_may_have_gaps():
    events, letters = check(columns(score=["x", "1", "y"]), first_position=5, positions=[5, 8, 9])
    assert [letter.position for letter in letters] == [5, 9]
    assert (len(events), events.positions) == (1, None)
    assert check(columns(score=["x"]), first_position=-1)[1][0].position is None


@pytest.mark.slow
def test_a_hundred_thousand_dead_rows_are_as_many_letters():
    n = 100_000
    assert len(check(columns(score=["abc"] * n))[1]) == n


# One row by itself

ODD_CELLS = """
    1 0 -1 1.0 true False nan inf -inf 1e400 +3 1_0 abc 0x1F 1. .5 nan(1) 20130101 1e18
    2013-01-01 2013-01-01T10 2013-01-01T10:30Z 2013-01-01T10:30:05.1234567Z 2013-01-01T10:30:05+02
    2013-01-01t10:00:00z 0000-01-01 1700000000123456789 1700000000.5 9007199254740993
    9007199254740993.0 253402300800 253402300799 -62135596800
"""
CELLS = st.one_of(
    st.none(),
    st.sampled_from(["", " 2 ", "2013-01-01 10:30:05", *str.split(ODD_CELLS)]),
    st.floats().map(repr),
    st.integers(-(2**70), 2**70).map(str),
    st.datetimes(timezones=st.none() | st.timezones()).map(lambda t: t.isoformat()),
    st.text(max_size=4),
)


@settings(max_examples=examples(300))
@given(st.lists(CELLS, min_size=1, max_size=6), st.sampled_from(["s", "ms", "us", "ns"]))
def test_what_becomes_of_a_value_does_not_depend_on_its_neighbours(cells, unit):
    whole = pa.array(cells, pa.string())
    alone = [pa.array([cell], pa.string()) for cell in cells]
    np.testing.assert_array_equal(numbers(whole), np.concatenate([numbers(one) for one in alone]))
    np.testing.assert_array_equal(
        instants(whole, unit), np.concatenate([instants(one, unit) for one in alone])
    )
    assert instants(whole, unit).tolist() == [
        NO_TIME if (t := instant(cell, unit)) is None else t for cell in cells
    ]
    expected = [math.nan if (x := number(cell)) is None else x for cell in cells]
    np.testing.assert_array_equal(numbers(whole), expected)
    assert texts(whole, class_text).to_list() == [class_text(cell) for cell in cells]


@settings(max_examples=examples(150))
@given(
    st.lists(st.tuples(CELLS, CELLS, CELLS, CELLS), min_size=1, max_size=6),
    st.sampled_from([None, "1", "abc"]),
)
def test_every_record_is_an_event_or_a_dead_letter_the_same_in_any_batch(rows, positive):
    fields = EventFields(model="m", time="t", positive=positive)
    batch = pa.RecordBatch.from_arrays(
        [pa.array(cells, pa.string()) for cells in zip(*rows, strict=True)], ["score", "label", "m", "t"]
    )
    events, letters = check(batch, fields)
    assert len(events) + len(letters) == len(rows)
    single = [check(batch.slice(row, 1), fields, first_position=row) for row in range(len(rows))]
    assert list(letters) == [letter for _, some in single for letter in some]
    alone = [one for one, _ in single if len(one)]
    assert events.scores.tolist() == [score for one in alone for score in one.scores.tolist()]
    assert events.labels.tolist() == [label for one in alone for label in one.labels.tolist()]
    assert events.times.tolist() == [time for one in alone for time in one.times.tolist()]
    assert events.models.to_list() == [model for one in alone for model in one.models.to_list()]
    assert EventBatch.unpack(events.pack()).scores.tolist() == events.scores.tolist()


DECIMALS = ("0.1", "0.3", "1.005", "2.675", "0.30000000000000004", "123456.789", "0.000001", "-7.7", "1e-7")


@pytest.mark.parametrize("scale", [None, 9, 17, 25, 30])
@pytest.mark.parametrize("kind", [pa.decimal128, pa.decimal256])
def test_a_decimal_is_the_nearest_float_whatever_the_scale_of_its_column(scale, kind):
    values = [
        Decimal(text) for text in DECIMALS if scale is None or -Decimal(text).as_tuple().exponent <= scale
    ]
    column = pa.array([*values, None], None if scale is None else kind(38, scale))
    assert numbers(column)[:-1].tolist() == [float(value) for value in values]
    assert math.isnan(numbers(column)[-1])


def test_halves_of_floats_may_stand_anywhere():
    half = pa.array(np.array([0, 1, np.nan], np.float16), mask=np.array([False, False, True]))
    fields = EventFields(model="m", id="i", time="t", weight="w", predicted="p", slices=(("s",),))
    names = ("score", "label", "m", "i", "t", "w", "p", "s")
    events, letters = check(pa.RecordBatch.from_arrays([half] * len(names), names), fields)
    assert (len(events), len(letters)) == (1, 2)  # a weight of 0, a missing score
    events, letters = check(
        columns(score=half, label=half, model=half, s=half), EventFields(slices=(("s",),))
    )
    assert events.models.to_list() == events.slices[0][1].to_list() == ["0", "1"]
    assert json.loads(letters[0].raw)["score"] is None


@pytest.mark.parametrize("unit", ["s", "ns"])
def test_a_duration_is_neither_a_number_nor_a_time_and_is_shown_with_its_unit(unit):
    batch = columns(score=pa.array([1_500], pa.duration(unit)), at=pa.array([7], pa.duration(unit)))
    _, letters = check(batch, EventFields(model_name="m", time="at", id="at"))
    (reason,) = details(letters)
    assert reason.startswith(
        f"score: '1500 {unit}' is not a number; time: '7 {unit}' is not a time (RFC 3339"
    )
    assert (letters[0].id, json.loads(letters[0].raw)["at"]) == (f"7 {unit}", f"7 {unit}")


# Reasons


def test_like_faults_have_one_reason_and_the_details_have_the_values():
    n = 2_000
    values = [f"'{i}\"" * (1 + i % 60) for i in range(n)]
    fields = EventFields(model_name="m", score="p", time="at", weight="w", probabilities=True)
    scores = [f"{i + 2}.5" for i in range(n)]
    _, letters = check(columns(p=scores, label=values, at=values, w=values), fields)
    assert len({letter.detail for letter in letters}) == n
    assert set(letters.whys()) == {("invalid", "score is not a probability", i) for i in range(n)}
    assert [(letter.field, letter.value) for letter in letters] == [("p", score) for score in scores]
    both = DeadLetters.concat([letters, letters])
    assert [why[:2] for why in both.whys()] == [("invalid", "score is not a probability")] * 2 * n


def test_of_several_faults_the_first_column_gives_the_reason_and_the_detail_has_all():
    fields = EventFields(model="who", score="p", label="y", time="at", weight="w")
    names = ("who", "p", "y", "at", "w")
    sound = ("m", "0.5", "1", "2024-01-01", "2")
    broken = ("", "x", "?", "never", "-1")
    for first in range(5):
        record = dict(zip(names, (*sound[:first], *broken[first:]), strict=True))
        _, (letter,) = check(
            pa.record_batch({name: pa.array([text]) for name, text in record.items()}), fields
        )
        assert letter.field == names[first]
        assert letter.value == (broken[first] or None)
        assert letter.detail.count(": ") == 5 - first, letter.detail
        assert letter.reason == (
            "model is missing", "score is not a number", "label is unknown", "time cannot be read",
            "weight is not positive",
        )[first]  # fmt: skip


def test_a_long_value_is_cut_and_says_so():
    _, (letter,) = check(columns(score=["x" * 5_000]))
    assert letter.value == f"{'x' * 60}... (5000 characters)"
    assert letter.detail == f"score: '{'x' * 60}'... (5000 characters) is not a number"
    _, (letter,) = check(columns(score=["x" * 80]))
    assert letter.value == "x" * 80


def test_a_late_record_says_how_late_it_is_in_seconds():
    timing = Timing(high_water=100_000_000, lateness=10_500_000)
    fields = EventFields(model_name="m", time="at")
    events, letters = check(columns(score=[0.1, 0.2, 0.3], at=[89.5, 89, 80]), fields, timing=timing)
    assert len(events) == 1
    assert [letter[:2] for letter in letters] == [("late", "later than allowed")] * 2
    assert [(letter.gap_seconds, letter.limit_seconds) for letter in letters] == [(11.0, 10.5), (20.0, 10.5)]
    assert letters[1].detail == "20s behind the greatest time before it; 10500ms is allowed"
    assert (letters[1].field, letters[1].value) == (None, None)


# Python records

PYTHON_VALUES = (st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.decimals())
TIMES = (st.datetimes(), st.dates(), st.datetimes(timezones=st.just(datetime.UTC)))
NUMPY_VALUES = (st.floats().map(np.float64), st.integers(-9, 9).map(np.int8), st.booleans().map(np.bool_))
ODD_VALUES = (
    "\ud800",
    np.str_("x"),
    np.datetime64("2013-01-01"),
    np.datetime64("NaT"),
    b"\xff",
    [1],
    {"a": 1},
)
VALUES = st.one_of(*PYTHON_VALUES, *TIMES, *NUMPY_VALUES, st.sampled_from(ODD_VALUES))


@settings(max_examples=examples(300))
@given(st.lists(st.dictionaries(st.sampled_from(["score", "label", "model", "at"]), VALUES), max_size=5))
def test_records_of_any_values_become_columns_and_none_is_lost(records):
    batch = records_to_batch(records)
    assert batch.num_rows == len(records)
    events, letters = check(batch, EventFields(time="at", id="model", weight="score", slices=("label",)))
    assert len(events) + len(letters) == len(records)


def test_records_keep_the_types_of_pure_columns_and_mixed_ones_become_text():
    now = datetime.datetime(2013, 1, 1, 12)
    batch = records_to_batch(
        [
            {"a": 1, "b": np.float32(0.5), "c": True, "d": now, "e": 1, "f": "x", "h": 2**70},
            {"a": 2.5, "b": np.int64(2), "c": None, "e": "one", "f": np.str_("y"), "g": now.date(), "h": 1},
        ]
    )
    kinds = {field.name: str(field.type) for field in batch.schema}
    assert kinds == {
        "a": "double",
        "b": "double",
        "c": "bool",
        "d": "timestamp[us]",
        "e": "string",
        "f": "string",
        "h": "string",
        "g": "date32[day]",
    }
    assert batch["e"].to_pylist() == ["1", "one"]
    assert batch["h"].to_pylist() == [str(2**70), "1"]
    mixed = records_to_batch(
        [{"t": now.date()}, {"t": now}, {"t": now.replace(tzinfo=datetime.UTC).isoformat()}]
    )
    assert instants(mixed["t"]).tolist() == [
        instant("2013-01-01"),
        instant("2013-01-01T12:00"),
        instant("2013-01-01T12:00"),
    ]
    assert records_to_batch([{}, {}]).num_rows == 2
    assert records_to_batch([]).num_rows == 0


def nested(depth, make):
    value = make(1)
    for _ in range(depth):
        value = make(value)
    return value


@pytest.mark.parametrize("key", ["score", "label", "model", "at", "other"])
@pytest.mark.parametrize(
    "make", [lambda x: [x], lambda x: (x,), lambda x: {"a": x}], ids=["list", "tuple", "dict"]
)
def test_a_value_nested_however_deeply_is_a_dead_letter(key, make):
    good = {"score": 0.9, "label": 1, "model": "m", "at": 0}
    records = [good, {**good, key: nested(50_000, make)}, {**good, "score": None}]
    fields = EventFields(time="at")
    events, letters = from_records(records, fields)
    assert len(events) + len(letters) == 3
    assert records_to_batch(records).num_rows == 3
    if key in ("score", "label", "at"):
        assert '"..."' in letters[0].raw
        assert json.loads(letters[0].raw)[key] == "..."


def from_records(records, fields=PLAIN):
    batch = records_to_batch(records, fields.columns, fields.number_columns)
    return check(
        batch, fields, raw=lambda rows: pa.array([json_record(records[row]) for row in rows], pa.string())
    )


def test_a_value_is_the_same_text_beside_any_neighbour():
    for odd in ((1, 2), [1, 2], np.array([1, 2])):
        for neighbour in (None, "x", 7, {"a": 1}, [3]):
            assert records_to_batch([{"a": odd}, {"a": neighbour}])["a"][0].as_py() == "[1, 2]"


def test_a_dead_letter_shows_its_own_record_and_nothing_of_its_neighbours():
    records = [
        {"score": "x", "label": 1, "p": 0.9, "extra": (1, Decimal("2.50"))},
        {"score": 0.5, "label": 1, "p": "text", "mine": 1},
        {"score": math.nan, "label": 1, 1: "one", "1": "text one", "when": datetime.date(2013, 1, 2)},
    ]
    events, letters = from_records(records)
    assert events.scores.tolist() == [0.5]
    assert letters[0].raw == '{"score": "x", "label": 1, "p": 0.9, "extra": [1, "2.5"]}'
    assert details(letters)[1] == "score: 'nan' is not finite"
    assert json.loads(letters[1].raw) == {"score": "nan", "label": 1, "1": "text one", "when": "2013-01-02"}
    assert details(from_records(records[2:])[1]) == ["score: nan is not finite"]


def test_of_two_keys_with_one_text_the_one_that_is_text_counts():
    events, letters = from_records(
        [{1: 0.25, "1": 0.75, "y": 1}, {1: 0.5, "y": 0}], EventFields("1", "y", model_name="m")
    )
    assert (events.scores.tolist(), len(letters)) == ([0.75, 0.5], 0)


class Unshowable:
    def __str__(self):
        raise RuntimeError("no")


def test_values_that_python_cannot_show_are_dead_letters():
    _, letters = from_records([{"score": 10**5_000, "label": 1}, {"score": Unshowable(), "label": 1}])
    assert [reason.endswith(("is not a number", "is not finite")) for reason in details(letters)] == [
        True
    ] * 2
    assert json.loads(letters[1].raw)["score"] == "<Unshowable>"


def test_keys_that_nobody_asked_for_cost_nothing():
    records = [{"score": 0.5, "label": i % 2, **{f"key {i} {k}": k for k in range(10)}} for i in range(4_000)]
    tracemalloc.start()
    events, _ = from_records(records)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(events) == 4_000
    assert peak < 10_000_000
    assert records_to_batch(records, ["score", "label"]).schema.names == ["score", "label"]


def test_record_batches_travel_as_bytes_that_are_the_same_for_the_same_batch():
    batch = columns(score=[0.5, None], x=["a", "b"])
    assert from_ipc(to_ipc(batch)).equals(batch)
    assert to_ipc(batch) == to_ipc(columns(score=[0.5, None], x=["a", "b"]))
    assert RecordBatchCoder().is_deterministic()


# Configuration


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"score": ""}, "score=''"),
        ({"label": None}, "label=None"),
        ({"time": 3}, "time=3"),
        ({"positive": ""}, "positive=''"),
        ({"time_unit": "min"}, "time_unit='min': give one of s, ms, us, ns"),
        ({"model": "m", "model_name": "n"}, "give one of them"),
        ({"slices": "carrier"}, "slices='carrier'"),
        ({"slices": ((),)}, "one or more names"),
        ({"slices": (("a", "a"),)}, "names a column twice"),
        ({"slices": (("a",), ("a",))}, "named twice"),
        ({"probabilities": 1}, "probabilities=1"),
        ({"slices": (("é" * 128,),)}, "name of 256 bytes; rename it to 255 at the most"),
        ({"score": "\ud800"}, "it is not UTF-8"),
        ({"model_name": "caf\udce9"}, "it is not UTF-8"),
    ],
)
def test_fields_are_checked_when_made(arguments, message):
    with pytest.raises(ConfigError, match=message):
        EventFields(**arguments)


def test_fields_name_the_columns_that_they_need_once():
    fields = EventFields(model="m", time="t", slices=(("a", "m"), ("a",)))
    assert fields.slice_columns == ("a", "m")
    assert fields.columns == ("score", "label", "m", "t", "a")
