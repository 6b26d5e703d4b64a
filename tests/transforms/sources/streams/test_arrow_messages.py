"""Messages that are Arrow IPC streams: the events are those of JSON messages, and no message harms others."""

from __future__ import annotations

import datetime
import json
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from rocsteady.core.events.batch import EventBatch, LabelBatch, PredictionBatch
from rocsteady.core.events.records import unpack_record
from rocsteady.transforms.events.fields import EventFields
from rocsteady.transforms.events.lateness import ANY_TIME, Timing
from rocsteady.transforms.sources.streams import arrow_messages
from rocsteady.transforms.sources.streams.arrow_messages import ArrowMessages, columns_of_first
from rocsteady.transforms.sources.streams.arrow_sizes import bytes_when_read
from rocsteady.transforms.sources.streams.partition import Fetched
from rocsteady.transforms.sources.streams.reader import StreamReader
from rocsteady.transforms.sources.streams.stream_input import StreamInput

from tests.support.streams.list_partition import ListPartition

FIELDS = EventFields(
    time="time", model="model", id="id", weight="weight", predicted="class", slices=(("country",),)
)
PLAIN = EventFields(model_name="m")


def stream_of(*batches, compression=None):
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, batches[0].schema, options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def events(n, seed=0):
    random = np.random.default_rng(seed)
    countries = ["NZ", "DE", None, "Ö"]
    return [
        {
            "model": f"m{int(random.integers(5))}", "score": float(random.normal()),
            "label": int(random.integers(2)), "time": i, "id": f"e{seed}-{i}",
            "weight": float(random.integers(1, 9)), "class": int(random.integers(2)),
            "country": countries[int(random.integers(4))], "other": [i, None],
        }
        for i in range(n)
    ]  # fmt: skip


def read(
    values, form, *, role="event", fields=FIELDS, limit=1_000_000, shards=3, timing=ANY_TIME, name="events[0]"
):
    """Return the packets' batches, the dead letters and the sizes of the steps of a partition."""
    part = ListPartition(name, tuple(values))
    source = StreamInput(part, 0, 1, role, fields, 0, part.end(), timing, located=True, format=form)
    reader = StreamReader(source, shards)
    batches, letters, records = [], [], []
    while not reader.ended:
        step = reader.step(limit)
        found = [unpack_record(packet) for _, packet in step.packets]
        batches += [each for each in found if isinstance(each, EventBatch | PredictionBatch | LabelBatch)]
        letters += step.letters
        records.append(step.records)
    return batches, letters, records


def rows(batches):
    """Return the records of batches, as they stand in them."""
    found = []
    for batch in batches:
        each = batch.events if isinstance(batch, PredictionBatch) else batch
        columns = [each.positions.tolist(), each.labels.tolist()]
        columns += [c.tolist() for c in (each.times, getattr(each, "scores", None)) if c is not None]
        columns += [c.to_list() for c in (each.ids, getattr(each, "models", None)) if c is not None]
        if isinstance(each, EventBatch):
            columns += [column.to_list() for _, column in each.slices]
            columns += [c.to_list() for c in (each.predicted, each.label_classes) if c is not None]
            columns += [each.weights.tolist()] if each.weights is not None else []
        found += zip(*columns, strict=True)
    return found


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
@pytest.mark.parametrize(
    ("role", "fields"),
    [("event", FIELDS), ("prediction", FIELDS), ("label", replace(FIELDS, positive="1"))],
)
def test_the_events_of_a_message_are_those_of_a_json_array(role, fields, compression):
    messages = [events(n, n) for n in (50, 1, 7)]
    messages[1][0]["score"], messages[2][3]["label"] = None, None
    arrays = [json.dumps(each).encode() for each in messages]
    streams = [
        stream_of(*pa.Table.from_pylist(each).to_batches(20), compression=compression) for each in messages
    ]
    of_json, of_arrow = (
        read(values, form, role=role, fields=fields)
        for values, form in ((arrays, "json"), (streams, "arrow"))
    )
    assert rows(of_arrow[0]) == rows(of_json[0])
    assert of_arrow[2] == of_json[2]
    for one, other in zip(of_arrow[1], of_json[1], strict=True):
        assert json.loads(one.raw) == json.loads(other.raw)
        assert one.detail.startswith(other.detail)
        assert one._replace(raw="", detail="") == other._replace(raw="", detail="")


def test_a_dead_letter_names_the_offset_and_the_row_of_its_message():
    table = pa.record_batch(
        {"score": ["0.5", "high", "0.1", "0.9"], "label": [1, 0, 1, 2], "more": [1, 2, 3, 4]}
    )
    batches, letters, _ = read([stream_of(table.slice(0, 1)), stream_of(table)], "arrow", fields=PLAIN)
    assert [(letter.source, letter.position, letter.detail) for letter in letters] == [
        ("events[0]", 1, "score: 'high' is not a number (row 1 of the message)"),
        (
            "events[0]", 1,
            ("label: 2 is none of 1, 0, -1, true, false; name the positive class with positive= (--positive) "
            "(row 3 of the message)"),
        ),
    ]  # fmt: skip
    assert json.loads(letters[0].raw) == {"score": "high", "label": 0, "more": 2}
    assert len(rows(batches)) == 3


def test_an_event_is_late_behind_events_of_its_own_message_and_of_earlier_ones():
    fields = EventFields(model_name="m", time="time")

    def message(*times):
        return stream_of(
            pa.record_batch({"score": [0.5] * len(times), "label": [1] * len(times), "time": times})
        )

    _, letters, _ = read(
        [message(10, 30, 20), message(29, 40)], "arrow", fields=fields, timing=Timing(lateness=0)
    )
    assert [(letter.kind, letter.position, letter.time) for letter in letters] == [
        ("late", 0, 20_000_000),
        ("late", 1, 29_000_000),
    ]
    assert letters[0].detail.endswith("(row 2 of the message)")


_MOMENT = datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)
_MICROS = 1_769_860_800_000_000
_AS_SCORES = [
    pa.array([0.5, None], pa.float16()),
    pa.array([0.5, None], pa.float32()),
    pa.array([0.5, None]),
    pa.array([Decimal("0.50"), None], pa.decimal128(5, 2)),
    pa.array([Decimal("0.50"), None], pa.decimal256(60, 2)),
    pa.array(["0.5", None]),
    pa.array(["0.5", ""], pa.large_string()),
    pa.array(["0.5", None], pa.string_view()),
    pa.array(["0.5", None]).dictionary_encode(),
    pa.array([0.5, None]).dictionary_encode(),
    pa.array([b"0.5", None], pa.binary()),
]


@pytest.mark.parametrize("column", _AS_SCORES, ids=lambda column: str(column.type))
def test_a_score_may_have_any_type_that_holds_a_number(column):
    table = pa.record_batch({"score": column, "label": pa.array([True, False])})
    (batch,), (letter,), _ = read([stream_of(table)], "arrow", fields=PLAIN)
    assert batch.scores.tolist() == [0.5]
    assert letter.reason == "score is missing"


_AS_TIMES = [
    pa.array([_MOMENT], pa.timestamp("s", "UTC")),
    pa.array([_MOMENT], pa.timestamp("ns", "Pacific/Auckland")),
    pa.array([_MOMENT.replace(tzinfo=None)], pa.timestamp("ms")),
    pa.array(["2026-01-31T13:00:00+01:00"]),
    pa.array([_MICROS // 1_000_000]),
    pa.array([float(_MICROS // 1_000_000)]),
    pa.array([_MOMENT], pa.timestamp("us", "UTC")).dictionary_encode(),
]


@pytest.mark.parametrize("column", _AS_TIMES, ids=lambda column: str(column.type))
def test_a_time_may_have_any_type_that_holds_a_moment(column):
    table = pa.record_batch({"score": [0.5], "label": [1], "time": column})
    (batch,), letters, _ = read([stream_of(table)], "arrow", fields=replace(PLAIN, time="time"))
    assert (batch.times.tolist(), letters) == ([_MICROS], [])


_ODD = [
    pa.array([[1], None]),
    pa.array([{"a": 1}, None]),
    pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
    pa.array([b"\xff\xfe", None]),
    pa.array([_MOMENT.time(), None]),
    pa.nulls(2),
    pa.array([True, None]),
    pa.array([datetime.timedelta(1), None]),
    pa.array([_MOMENT.date(), None]),
    pa.array([2**64 - 1, None], pa.uint64()),
    pa.array([float("nan"), float("inf")]),
    pa.array([[1.0, 2.0], None], pa.list_(pa.float64(), 2)),
    pa.array([pa.scalar(5, pa.timestamp("ns")), None]),
    pa.array([[5], None], pa.list_(pa.timestamp("ns"))),
    pa.array([(1, 2, 3), None], pa.month_day_nano_interval()),
    pa.array(["x", None]).dictionary_encode(),
    pa.RunEndEncodedArray.from_arrays([2], [0.5]),
    pa.array([[1], None], pa.large_list(pa.int8())),
    pa.array([-(2**62), 2**62], pa.timestamp("s")),
    pa.array([-(2**31), 2**31 - 1], pa.date32()),
    pa.UnionArray.from_dense(
        pa.array([0, 1], pa.int8()), pa.array([0, 0], pa.int32()), [pa.array([1]), pa.array(["a"])]
    ),
]


@pytest.mark.parametrize("column", _ODD, ids=lambda column: str(column.type))
def test_every_type_in_every_role_gives_events_or_dead_letters(column):
    good = {
        "model": ["a", "b"], "score": [0.1, 0.9], "label": [0, 1], "time": [1, 2], "id": ["i", "j"],
        "weight": [1.0, 2.0], "class": [0, 1], "country": ["NZ", "DE"],
    }  # fmt: skip
    for name in (*good, "other"):
        table = pa.record_batch({**good, name: column})
        twice = [stream_of(table), stream_of(pa.record_batch(good))]
        batches, letters, records = read(twice, "arrow")
        whole = not any(letter.reason == "not an Arrow stream" for letter in letters)
        assert sum(records) == len(rows(batches)) + len(letters) == (4 if whole else 3)
        assert sum(row[0] == 1 for row in rows(batches)) == 2
        assert whole or name != "other"


def test_messages_of_other_types_follow_each_other():
    def message(scores, labels):
        return stream_of(pa.record_batch({"score": scores, "label": labels}))

    values = [
        message([0.1, 0.2], [0, 1]), message(["0.3"], [0]), message([0.4], ["true"]), message([0.5], [1]),
        stream_of(pa.record_batch({"label": [1], "score": [0.6]})),
        message(pa.array([0.7]).dictionary_encode(), [1]), message(pa.array([0.8]).dictionary_encode(), [1]),
    ]  # fmt: skip
    batches, letters, records = read(values, "arrow", fields=PLAIN, shards=1)
    batch = EventBatch.concat(batches)
    assert batch.scores.tolist() == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
    assert batch.positions.tolist() == [0, 0, 1, 2, 3, 4, 5, 6]
    assert (letters, sum(records)) == ([], 8)


def test_what_is_no_stream_is_one_dead_letter_with_a_remedy():
    table = pa.record_batch({"score": [0.5, 0.6], "label": [1, 0]})
    good, sink = stream_of(table), pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_batch(table)
    twice = pa.record_batch([pa.array([0.5]), pa.array([0.6]), pa.array([1])], ["score", "score", "label"])
    values = [
        good, b'{"score": 0.5, "label": 1}', sink.getvalue().to_pybytes(), b"\x00\x00\x00\x01abc", None, b" ",
        good[:-20], good + good, stream_of(twice), good[:40], good,
    ]  # fmt: skip
    batches, letters, _ = read(values, "arrow", fields=PLAIN)
    said = [(letter.position, letter.detail.removeprefix("not an Arrow stream: ")) for letter in letters]
    assert [text for _, text in said[:5]] == [
        "it begins as JSON does; leave --kafka-format arrow out, or write an Arrow IPC stream",
        "it is an Arrow file; write a stream, with pyarrow.ipc.new_stream",
        "it does not begin as an Arrow IPC stream does; write one, with pyarrow.ipc.new_stream",
        "an empty message",
        "an empty message",
    ]
    assert said[5][1].startswith("it is damaged, cut short or of unknown types (")
    assert said[6][1] == f"{len(good):,} bytes follow its end; write one stream into each message"
    assert said[7][1] == "the column 'score' is there 2 times; give each its own name"
    assert said[8][1].startswith("it is damaged, cut short or of unknown types (")
    assert [position for position, _ in said] == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert {letter.reason for letter in letters} == {"not an Arrow stream", "empty message"}
    assert json.loads(letters[0].raw) == '{"score": 0.5, "label": 1}'
    assert sorted({row[0] for row in rows(batches)}) == [0, 10]


def test_a_stream_where_json_is_told_says_what_to_say():
    good = stream_of(pa.record_batch({"score": [0.5], "label": [1]}))
    batches, (letter,), _ = read([good, b'{"score": 0.5, "label": 1}'], "json", fields=PLAIN)
    assert letter.detail == "not a JSON object: it is an Arrow IPC stream; say --kafka-format arrow"
    assert (letter.reason, letter.position, len(rows(batches))) == ("not a JSON object", 0, 1)


def test_a_message_cut_short_anywhere_gives_all_of_its_events_or_one_dead_letter():
    table = pa.Table.from_pylist(events(5)).to_batches()[0]
    good = stream_of(table)
    for size in range(1, len(good)):
        batches, letters, _ = read([good[:size], good], "arrow")
        cut = [row for row in rows(batches) if row[0] == 0]
        assert (len(cut), len(letters)) in ((0, 1), (0, 0), (5, 0))
        assert len(letters) == 1 or size >= len(good) - 8 or not cut
        assert sum(row[0] == 1 for row in rows(batches)) == 5


def test_a_damaged_message_ends_no_process_and_harms_no_other():
    random = np.random.default_rng(5)
    tables = [pa.Table.from_pylist(events(20)).to_batches()[0]]
    tables.append(tables[0].set_column(0, "model", tables[0].column("model").dictionary_encode()))
    for compression in (None, "lz4"):
        for table in tables:
            good = stream_of(table, compression=compression)
            for _ in range(100):
                bad = bytearray(good)
                for place in random.integers(0, len(bad), 3):
                    bad[place] = random.integers(256)
                batches, _, _ = read([bytes(bad), good], "arrow")
                assert sum(row[0] == 1 for row in rows(batches)) == 20


def test_a_message_without_rows_gives_nothing_and_one_without_columns_gives_dead_letters():
    no_rows = pa.record_batch({"score": pa.array([], pa.float64()), "label": pa.array([], pa.int64())})
    no_columns = pa.record_batch({"x": [1, 2, 3]})
    empty = pa.RecordBatch.from_struct_array(pa.array([{}] * 2, pa.struct([])))
    sink = pa.BufferOutputStream()
    pa.ipc.new_stream(sink, no_rows.schema).close()
    values = [stream_of(no_rows), sink.getvalue().to_pybytes(), stream_of(no_columns), stream_of(empty)]
    batches, letters, records = read(values, "arrow", fields=PLAIN)
    assert rows(batches) == []
    assert [(letter.position, letter.raw) for letter in letters] == [
        (2, '{"x": 1}'), (2, '{"x": 2}'), (2, '{"x": 3}'), (3, "{}"), (3, "{}"),
    ]  # fmt: skip
    assert {letter.reason for letter in letters} == {"score is missing"}
    assert sum(records) == 5


def test_a_step_takes_about_as_many_events_as_it_is_told():
    messages = [stream_of(pa.record_batch({"score": [0.5] * 100, "label": [1] * 100}))] * 30
    *_, records = read(messages, "arrow", fields=PLAIN, limit=1_000, name="hundreds[0]")
    assert records == [100, 1_000, 1_000, 900]
    *_, records = read(messages, "arrow", fields=PLAIN, limit=1_000, name="hundreds[0]")  # a new reader
    assert records == [1_000, 1_000, 1_000]
    arrays = [json.dumps([{"score": 0.5, "label": 1}] * 100).encode()] * 30
    *_, records = read(arrays, "json", fields=PLAIN, limit=10, name="arrays[0]")
    assert records == [1_000, *[100] * 20]


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_the_size_of_a_stream_is_known_before_it_is_read(compression):
    table = pa.Table.from_pylist(events(1_000))
    table = table.set_column(0, "model", table["model"].combine_chunks().dictionary_encode())
    stream = stream_of(*table.to_batches(300), compression=compression)
    with pa.ipc.open_stream(stream) as reader:
        size = sum(batch.get_total_buffer_size() for batch in reader)
    assert size * 0.9 < bytes_when_read(stream) < size * 1.1 + 2_000


def test_a_message_that_would_take_too_much_memory_is_a_dead_letter(monkeypatch):
    many = pa.record_batch({"score": pa.nulls(1_000_001), "label": pa.nulls(1_000_001)})
    zeros = stream_of(pa.record_batch({"score": [0.5] * 200_000, "label": [1] * 200_000}), compression="zstd")
    assert len(zeros) < 60_000
    monkeypatch.setattr(arrow_messages, "MOST_BYTES", 3_000_000)
    _, letters, _ = read([stream_of(many), zeros], "arrow", fields=PLAIN)
    assert [letter.detail for letter in letters] == [
        "not an Arrow stream: it has more than 1,000,000 rows, which are the most; write smaller messages",
        (
            "not an Arrow stream: it decompresses to 3,200,000 bytes, and 3,000,000 are the most; "
            "write smaller messages"
        ),
    ]


def test_the_columns_of_the_first_stream_are_found():
    stream = stream_of(pa.record_batch({"score": [0.5], "model": ["m"]}))
    assert columns_of_first([None, b"{}", stream[:20], stream]) == ["score", "model"]
    assert columns_of_first([None, b"[]"]) is None


def test_only_columns_with_a_role_are_read():
    table = pa.record_batch({"score": [0.5], "label": [1], "text": ["x" * 1_000]})
    reader = ArrowMessages("events[0]", PLAIN, "event")
    (part,) = reader.parts(Fetched([0], [stream_of(table)], 1, at_end=True))
    assert part.chunk.batch.schema.names == ["score", "label"]
