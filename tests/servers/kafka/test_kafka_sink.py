"""The sink on a real broker: keys, headers and JSON of every message; none lost, repeats dropped."""

from __future__ import annotations

import itertools
import json
import random
import threading
import time
from functools import cache

import apache_beam as beam
import fastjsonschema
import numpy as np
import pyarrow as pa
import pytest
import rocsteady as rs
from rocsteady.core.alerts.alert_rows import AlertRow
from rocsteady.core.errors import ConfigError, InputError, RocsteadyError
from rocsteady.core.events.rejected import Reason
from rocsteady.core.rows.arrow import rows_to_arrow
from rocsteady.transforms.events.dead_letters import DeadLetter, DeadLetters, in_columns
from rocsteady.transforms.kafka.client import check_topic
from rocsteady.transforms.kafka.topic import KafkaTopic
from rocsteady.transforms.sinks.kafka import KafkaWriter, WriteKafka
from rocsteady.transforms.sinks.kinds import (
    ALERTS,
    CLASS_ROWS,
    CURVES,
    DEAD_LETTERS,
    KINDS,
    PAIRS,
    ROLL_UPS,
    ROWS,
)
from rocsteady.transforms.sinks.table import text_lines
from rocsteady.transforms.tables.followed import follow_tables
from rocsteady.transforms.tables.table_rows import distinct_rows, read_rows

from tests.support.pages.fleet_tables import fleet_rows, pair_rows
from tests.support.pages.json_schemas import FOLDER, path_of, text_of
from tests.support.processes.beam_runs import pipeline
from tests.support.servers.kafka_topics import PATIENCE
from tests.support.servers.secure_broker import PASSWORD, USER
from tests.support.stored.awkward_rows import some_rows

HOUR = 3_600_000_000


def rows_of_classes():
    """Rows of a model with a score of each of three classes, one of them without events."""
    evaluator = rs.MulticlassEvaluator(["a", "b", "c,d"], model="m", every=rs.EveryEvents(2))
    return evaluator.update(["a", "b", "a", "b"], np.arange(12).reshape(4, 3) % 5)


def roll_ups_of_classes():
    rows = rows_of_classes().to_arrow()
    due = pa.array(np.array(rows["row"]) * HOUR, pa.int64()).cast(rows.schema.field("due").type)
    return rs.roll_up(rows.set_column(rows.schema.get_field_index("due"), "due", due))


def sent_alerts():
    closed = AlertRow(
        "auc < 0.8", "closed", "é", "c=ü", None, None, None, 4, None, 3, 5, "auc", 0.9, 0.8, 1, 0.5, "Ok."
    )
    opened = closed._replace(
        state="open", model="m", slice="", pane_start=0, pane_end=HOUR, row=3, time=5, since_row=2,
        since_time=None, value=0.7, reference_row=None, reference_value=None, message="Bad.",
    )  # fmt: skip
    return closed, *(opened._replace(class_=name) for name in (None, "a", "c,d"))


@cache
def sent_tables():
    return {
        ROWS.name: rows_to_arrow(some_rows(20)),
        "class-row": rows_of_classes().to_arrow().combine_chunks().to_batches()[0],
        ALERTS.name: in_columns(sent_alerts(), ALERTS.schema),
        ROLL_UPS.name: pa.concat_tables(
            [rs.roll_up(fleet_rows({"a": [0.8, 0.7], "é": [0.9, 0.8]})), roll_ups_of_classes()]
        )
        .combine_chunks()
        .to_batches()[0],
        PAIRS.name: pair_rows({}, {"verdict": "better"}, model="é").combine_chunks().to_batches()[0],
        DEAD_LETTERS.name: DeadLetters.of(
            [
                DeadLetter("invalid", Reason.SCORE_MISSING, "f.csv", 7, None, None, None, '{"score": null}'),
                DeadLetter("late", Reason.LATE, "f.csv", None, 1_000_001, "m", "i\n", "{}"),
            ]
        ).batch,
    }


NAMES = (
    ROWS.name, "class-row", ALERTS.name, ROLL_UPS.name, PAIRS.name, DEAD_LETTERS.name,
)  # fmt: skip
"""The names of `sent_tables`."""
KIND_OF = {path_of(kind).stem: kind for kind in KINDS}


numbers = itertools.count()


@pytest.fixture
def url(broker):
    name = f"rows-{next(numbers)}"
    broker.create_topic(name, partitions=3, settings={"max.message.bytes": 1_048_588})  # as by default
    return f"kafka://{broker.address}/{name}"


def consumed(url, count):
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    topic = KafkaTopic.parse(url)
    consumer = Consumer(topic.settings(group_id="test", enable_auto_commit=False))
    consumer.assign([TopicPartition(topic.name, n, OFFSET_BEGINNING) for n in range(3)])
    found = []
    try:
        end = time.monotonic() + PATIENCE
        while len(found) < count and time.monotonic() < end:
            found += consumer.consume(count, 0.5)
        assert consumer.consume(1, 0.5) == []
    finally:
        consumer.close()
    assert [message.error() for message in found if message.error()] == []
    return found


def send(url, kind, batch, *options):
    writer = KafkaWriter(KafkaTopic.parse(url, options), kind)
    writer.write(batch)
    writer.finish()


@pytest.mark.parametrize("name", NAMES)
def test_a_message_is_a_line_of_jsonl_with_its_identity(url, name):
    kind, batch = KIND_OF[name], sent_tables()[name]
    send(url, kind, batch)
    messages = consumed(url, batch.num_rows)
    lines = b"".join(text_lines(pa.Table.from_batches([batch]), as_csv=False)).splitlines()
    assert sorted(message.value() for message in messages) == sorted(lines)
    valid = fastjsonschema.compile(json.loads((FOLDER / f"{name}.json").read_text()))
    for message in messages:
        record = json.loads(message.value())
        valid(record)
        assert (message.key() and message.key().decode()) == record["model" if "model" in record else "group"]
        headers = {key: text.decode() for key, text in message.headers()}
        assert headers.pop("kind") == kind.name
        pane = headers.pop("pane", "")
        if record.get("pane_start") is None:
            assert pane == ""
        else:
            assert pane == f"{record['pane_start']}/{record['pane_end']}"
        assert set(headers) == {column for column in kind.identity if column != "pane_start"}
        assert headers == {key: "" if record[key] is None else str(record[key]) for key in headers}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_schemas_of_the_docs_are_those_of_the_columns(kind):
    assert path_of(kind).read_text() == text_of(kind)


def test_messages_of_a_model_are_in_one_partition_in_order(url):
    batch = rows_to_arrow(some_rows(500))
    send(url, ROWS, batch)
    places: dict[bytes, set[int]] = {}
    orders: dict[bytes, list[int]] = {}
    for message in sorted(consumed(url, 500), key=lambda m: (m.partition(), m.offset())):
        places.setdefault(message.key(), set()).add(message.partition())
        orders.setdefault(message.key(), []).append(json.loads(message.value())["row"])
    assert set(places) == {b"a", b"b"}
    assert all(len(found) == 1 for found in places.values())
    assert all(rows == sorted(rows) for rows in orders.values())


@pytest.mark.parametrize("runner", ["processes", "retrying"])
def test_a_job_writes_all_rows_and_a_reader_sees_each_once(url, runner):
    batch = rows_to_arrow(some_rows(60))
    pieces = [batch.slice(start, 7) for start in range(0, 60, 7)]
    for _ in range(2):
        with pipeline(runner) as built:
            _ = built | beam.Create(pieces) | WriteKafka(url)
    send(url, DEAD_LETTERS, sent_tables()[DEAD_LETTERS.name])  # of another kind: left out
    table, repeats = distinct_rows([url])
    order = [(name, "ascending") for name in ROWS.order]
    assert table.sort_by(order).equals(pa.Table.from_batches([batch]).sort_by(order))
    assert repeats == 60
    assert len(list(read_rows(url))) == 60


def test_a_topic_is_followed(url):
    batch = rows_to_arrow(some_rows(40))
    send(url, ROWS, batch.slice(0, 10))
    later = threading.Timer(1.0, send, (url, ROWS, batch))
    later.start()
    rows = read_rows(url, follow=True)
    found = {(row.model, row.slice, row.row) for _, row in zip(range(40), rows, strict=False)}
    later.join()
    assert len(found) == 40
    rows.close()


def test_a_topic_without_messages_has_no_rows(url):
    assert list(read_rows(url)) == []


def test_what_is_no_row_is_named(url):
    from confluent_kafka import Producer

    topic = KafkaTopic.parse(url)
    producer = Producer(topic.settings())
    producer.produce(topic.name, None, b"k", partition=1)
    producer.produce(topic.name, b'{"model": "m"}', b"k", partition=1)
    assert producer.flush(10) == 0
    with pytest.raises(InputError) as refused:
        list(read_rows(url))
    assert 'partition 1 offset 1 is no row of rocsteady (b\'{"model": "m"}\')' in str(refused.value)


def test_what_cannot_be_delivered_is_a_sentence(broker, url):
    raw = random.Random(1).randbytes(1_500_000).hex()  # does not compress below what the broker takes
    letters = DeadLetters.of([DeadLetter("invalid", "x", "f.csv", 3, raw=raw)]).batch
    for options in ([], ["message.max.bytes=9000000"]):
        with pytest.raises(RocsteadyError) as failed:
            send(url, DEAD_LETTERS, letters, *options)
        said = str(failed.value)
        assert said.startswith(f"{url}: the dead letter of source 'f.csv', position '3' was not delivered (")
        assert said.endswith("; raise max.message.bytes of the topic, and --kafka-option message.max.bytes=N")
    none = f"kafka://{broker.address}/none"
    with pytest.raises(
        RocsteadyError, match=r"none: the row of .* was not delivered, and 19 more .*; create the"
    ):
        send(none, ROWS, sent_tables()["row"], "topic.metadata.propagation.max.ms=500")
    nowhere = "kafka://127.0.0.1:1/rows"
    with pytest.raises(
        RocsteadyError, match=r"19 more \(Local: Message timed out\); see whether its brokers"
    ):
        send(nowhere, ROWS, sent_tables()["row"], "delivery.timeout.ms=1000")


def test_a_writer_goes_on_after_a_failure(url):
    writer = KafkaWriter(KafkaTopic.parse(url), DEAD_LETTERS)
    with pytest.raises(RocsteadyError, match="was not delivered"):
        writer.write(DeadLetters.of([DeadLetter("invalid", "x", "f.csv", 3, raw="y" * 3_000_000)]).batch)
    writer.write(sent_tables()[DEAD_LETTERS.name])
    writer.finish()
    assert len(consumed(url, 2)) == 2


def test_a_broker_that_goes_and_comes_back_gets_every_row_once(broker, url):
    batch = rows_to_arrow(some_rows(3_000))
    writer = KafkaWriter(KafkaTopic.parse(url, ["linger.ms=1"]), ROWS)
    writer.write(batch.slice(0, 1_000))
    broker.kill()
    back = threading.Timer(3.0, broker.start)
    back.start()
    writer.write(batch.slice(1_000))
    writer.finish()
    back.join()
    table, repeats = distinct_rows([url])
    assert (table.num_rows, repeats) == (3_000, 0)


def test_what_a_topic_lacks_is_said_before_a_job(broker, url, tmp_path):
    name = url.rpartition("/")[2]
    tls = [f"ssl.ca.location={broker.certificate}", "security.protocol=SSL"]
    login = ["security.protocol=SASL_PLAINTEXT", "sasl.mechanism=PLAIN", f"sasl.username={USER}"]
    assert check_topic(KafkaTopic.parse(url), "x").partitions == 3
    assert check_topic(KafkaTopic.parse(f"kafka://{broker.tls_address}/{name}", tls), "x").partitions == 3
    known = KafkaTopic.parse(f"kafka://{broker.sasl_address}/{name}", [*login, f"sasl.password={PASSWORD}"])
    assert check_topic(known, "x").partitions == 3
    for address, topic, options, said in [
        (broker.address, name + "s", [], rf"has no topic '{name}s' that may be seen; did you mean"),
        (broker.address, "nothing-like-it", [], "create it, or name another"),
        (
            "127.0.0.1:1",
            name,
            [],
            r"no broker answers at 127.0.0.1:1 \(Connect .* refused\); start the broker",
        ),
        ("none.invalid:1", name, [], "no host of none.invalid:1 is known here"),
        (broker.address, name, tls, "leave --kafka-option security.protocol out"),
        (broker.tls_address, name, [], "say --kafka-option security.protocol=SSL"),
        (broker.sasl_address, name, [*login, "sasl.password=x"], "does not let us in"),
    ]:
        started = time.monotonic()
        with pytest.raises(InputError, match=said) as refused:
            check_topic(KafkaTopic.parse(f"kafka://{address}/{topic}", options), "--output it", seconds=3)
        assert str(refused.value).startswith("--output it: ")
        assert time.monotonic() - started < PATIENCE
    with pytest.raises(ConfigError, match='No such configuration property: "nonsense"'):
        check_topic(KafkaTopic.parse(url, ["nonsense=1"]), "x")


def test_options_that_would_lose_rows_are_refused(url):
    with pytest.raises(InputError, match="rows are written with acks=all"):
        WriteKafka(url, ["acks=1"])


def test_a_batch_of_no_kind_is_refused(url):
    with (
        pytest.raises(Exception, match="is none of rows, alerts, dead letters, curves, roll-ups or pairs"),
        pipeline() as built,
    ):
        _ = built | beam.Create([pa.record_batch({"a": [1]})]) | WriteKafka(url)


def test_rows_and_alerts_of_one_topic_are_followed_each_by_its_reader(url):
    stop = threading.Event()
    followers = {what: follow_tables(url, what, (), stop) for what in ("rows", "alerts")}
    topic = KafkaTopic.parse(url)

    def come(what):
        return next(came.table for came in followers[what] if came.table is not None)

    for _ in range(2):
        for kind in (ROWS, ALERTS, DEAD_LETTERS):
            writer = KafkaWriter(topic, kind)
            writer.write(sent_tables()[kind.name])
            writer.finish()
        for what, kind in (("rows", ROWS), ("alerts", ALERTS)):
            found = []
            while sum(map(len, found)) < sent_tables()[kind.name].num_rows:
                found.append(come(what))
            table = pa.concat_tables(found)
            assert sorted(table.to_pylist(), key=repr) == sorted(
                sent_tables()[kind.name].to_pylist(), key=repr
            )
    stop.set()
    assert all(came.table is None for follower in followers.values() for came in follower)


def test_rows_of_classes_come_back_from_a_topic(url):
    rows = rows_of_classes()
    send(url, CLASS_ROWS, rows.to_arrow().combine_chunks().to_batches()[0])
    assert sorted(read_rows(url), key=lambda row: (row.row, row.class_ or "")) == sorted(
        rows, key=lambda row: (row.row, row.class_ or "")
    )
    table, repeats = distinct_rows([url])
    assert (table.num_rows, repeats) == (len(rows), 0)


def test_records_of_classes_of_one_topic_are_followed_with_their_class(url):
    rows = rows_of_classes().to_arrow()
    tables = {
        CLASS_ROWS: rows,
        ALERTS: pa.Table.from_batches([sent_tables()[ALERTS.name]]),
        CURVES: pa.Table.from_pylist(
            [
                {"model": "m", "slice": "", "class": name, "seq": 3, "window_events": 2, "positives": 1.0,
                 "negatives": 1.0, "point": point, "tp": 1.0 * (point > 0), "fp": 1.0 * (point > 1),
                 "threshold": None if not point else 0.5, "on_hull": True, "config": "c"}
                for name in ("a", "c,d") for point in range(3)
            ],
            CURVES.schema,
        ),
        ROLL_UPS: roll_ups_of_classes(),
    }  # fmt: skip
    topic = KafkaTopic.parse(url)
    for kind, table in tables.items():
        writer = KafkaWriter(topic, kind)
        writer.write(table.combine_chunks().to_batches()[0])
        writer.finish()
    stop = threading.Event()
    for what, (kind, table) in zip(("rows", "alerts", "curves", "roll-ups"), tables.items(), strict=True):
        found = []
        follower = follow_tables(url, what, (), stop)
        while sum(map(len, found)) < table.num_rows:
            found.append(next(came.table for came in follower if came.table is not None))
        assert {name for part in found for name in part["class"].to_pylist()} == set(
            table["class"].to_pylist()
        )
        again = pa.concat_tables(found).to_pylist()
        assert sorted(again, key=repr) == sorted(table.to_pylist(), key=repr), kind
    stop.set()
