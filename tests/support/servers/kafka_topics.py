"""Topics full of events, and jobs that read them: what they give is compared with a file of the same."""

from __future__ import annotations

import csv
import json
import random
import signal
import subprocess
import time
from pathlib import Path

import pyarrow as pa
from rocsteady.pipelines.cli import main
from rocsteady.runners.servers.processes import free_port

from tests.support.processes.command import COMMAND
from tests.support.servers.scraping import fetched

N = 4_000
OPTIONS = ["--time", "time", "--id", "id", "--every", "50", "--window", "last:500"]


def events(n=N, seed=1):
    """Events whose times rise; two models."""
    rng, seconds, found = random.Random(seed), 1_700_000_000, []
    for i in range(n):
        seconds += rng.choice([0, 1, 20])
        label = rng.random() < 0.4
        score = round(rng.random() * 0.6 + 0.4 * label, 3)
        found.append(
            {"model": rng.choice("ab"), "score": score, "label": int(label), "time": seconds, "id": f"e{i}"}
        )
    return found


def produce(broker, topic, messages, address=None):
    """Send (partition, bytes, milliseconds), in order."""
    from confluent_kafka import Producer

    settings = {"enable.idempotence": True, "message.max.bytes": 20_000_000, "log_level": 0}
    producer = Producer({"bootstrap.servers": address or broker.address, **settings})
    failed = []
    for partition, value, millis in messages:
        producer.produce(
            topic,
            value,
            partition=partition,
            timestamp=millis,
            on_delivery=lambda e, _: failed.append(e) if e else None,
        )
    assert producer.flush(30) == 0
    assert failed == []


def sent(found, partitions):
    """Events as messages, to the partitions by turns."""
    return [(i % partitions, json.dumps(event).encode(), 0) for i, event in enumerate(found)]


def as_json(piece):
    """Events as a message: an object, or an array of several."""
    return json.dumps(piece if len(piece) > 1 else piece[0]).encode()


def as_arrow(piece):
    """Events as a message that is an Arrow IPC stream, compressed as a producer may do."""
    table, sink = pa.Table.from_pylist(piece), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def topic_of(broker, name, found, partitions, *, together=1, form=as_json):
    """Make a topic of events, `together` of them in a message."""
    broker.create_topic(name, partitions=partitions)
    rng = random.Random(2)
    pieces = [found[i : i + together] for i in range(0, len(found), together)]
    messages = [
        (
            rng.randrange(partitions),
            form(piece),
            piece[0]["time"] * 1_000,
        )
        for piece in pieces
    ]
    produce(broker, name, messages)
    return f"kafka://{broker.address}/{name}"


def evaluate(*arguments):
    return main(["evaluate", "--shards", "4", *arguments])


def rows_in(path):
    return sorted([*csv.reader(Path(path).read_text().splitlines())][1:])


def rows_of_file(found, *options):
    Path("same.jsonl").write_text("".join(json.dumps(event) + "\n" for event in found))
    assert evaluate("same.jsonl", "--output", "same.csv", *OPTIONS, *options) == 0
    return rows_in("same.csv")


def start(*arguments):
    return subprocess.Popen([*COMMAND, "evaluate", *arguments], stderr=subprocess.PIPE, text=True)


PATIENCE = 300
"""Seconds until a test of servers gives up: for what hangs. Nothing that is merely slow takes so long."""


def until(condition, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.1)


def grow(broker, topic, partitions):
    """Let a topic have so many partitions, all in all."""
    from confluent_kafka.admin import AdminClient, NewPartitions

    client = AdminClient({"bootstrap.servers": broker.address, "log_level": 0})
    client.create_partitions([NewPartitions(topic, partitions)])[topic].result(30)


def delete(broker, topic):
    """Delete a topic."""
    from confluent_kafka.admin import AdminClient

    client = AdminClient({"bootstrap.servers": broker.address, "log_level": 0})
    client.delete_topics([topic])[topic].result(30)
    until(lambda: topic not in client.list_topics(timeout=10).topics)


def make_anew(broker, topic, found, partitions=1):
    """Delete a topic, and create it again with these events."""
    delete(broker, topic)
    broker.create_topic(topic, partitions=partitions)
    produce(broker, topic, sent(found, partitions))


def delete_before(broker, topic, partition, offset):
    """Delete the messages of a partition that are before an offset, as retention does."""
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    client = AdminClient({"bootstrap.servers": broker.address, "log_level": 0})
    place = TopicPartition(topic, partition, offset)
    assert client.delete_records([place])[place].result(30).low_watermark == offset


def lines_in(path):
    return len(Path(path).read_text().splitlines()) if Path(path).exists() else 0


def follow(url, *words):
    """Start a job; return it, and what its counters say when they are asked."""
    port = free_port()
    job = start(url, "--output", "rows.csv", "--prometheus", f"127.0.0.1:{port}", *words, *OPTIONS)

    def counted(name):
        return int(float((fetched(port) or {}).get(f"rocsteady_{name}_total", 0)))

    return job, counted


def interrupted(job, status=None):
    """Send SIGINT to a job, wait for its end, and return what it wrote to stderr; None: any exit status."""
    job.send_signal(signal.SIGINT)
    _, words = job.communicate(timeout=PATIENCE)
    assert status in (None, job.returncode), words
    return words
