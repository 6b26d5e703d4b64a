"""A long run goes on where it stopped: events in a topic, and phases on a cluster."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from tests.support import ROOT
from tests.support.requirements import servers


@pytest.fixture
def partly_filled(broker):
    """A topic with the first events of a crowd, of each partition another number, and the crowd."""
    from confluent_kafka import Producer

    from benchmarks.scale_events import Crowd

    crowd = Crowd(40_000, 50)
    broker.create_topic("partly-filled", partitions=crowd.partitions)
    producer = Producer({"bootstrap.servers": broker.address, "log_level": 0})
    for partition, written in enumerate((0, 1, 5_000, 10_000)):
        for message in crowd.messages(np.arange(written) * crowd.partitions + partition):
            producer.produce("partly-filled", message, partition=partition)
    assert producer.flush(60) == 0
    return crowd


def test_a_topic_that_was_filled_in_part_gets_the_events_that_it_lacks(broker, partly_filled):
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    from benchmarks.scale_events import Filling

    for left in (40_004 - 15_001, 0):
        filling = Filling(broker.address, "partly-filled", partly_filled)
        assert filling.left() == left
        filling.run()
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "filled", "log_level": 0})
    for partition in range(partly_filled.partitions):
        consumer.assign([TopicPartition("partly-filled", partition, OFFSET_BEGINNING)])
        found = [message.value() for message in consumer.consume(10_002, 5)]
        numbers = np.arange(10_000) * partly_filled.partitions + partition
        assert found == [*partly_filled.messages(numbers), partly_filled.end(partition)]
    consumer.close()


@pytest.mark.slow
def test_an_interrupted_run_goes_on_and_its_rows_are_those_of_the_local_runner(tmp_path):
    servers("flink", "kafka")
    words = ["--models", "20000", "--events", "4000000", "--drawn", "200"]
    page = tmp_path / "page.md"
    command = [sys.executable, "-m", "benchmarks.scale", *words, "--folder", str(tmp_path / "run")]
    interrupted = subprocess.Popen(
        [*command, "--output", str(page)], cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert interrupted.stdout is not None
    next(line for line in interrupted.stdout if line.startswith("scale: worker, "))
    os.killpg(interrupted.pid, signal.SIGINT)
    assert interrupted.wait(120) == 130
    interrupted.stdout.close()
    done = json.loads((tmp_path / "run" / "progress.json").read_text())["done"]
    assert [*done] == ["table", "fill", "pace"]
    finished = subprocess.run(
        [*command, "--output", str(page)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "scale: pace" not in finished.stdout
    assert page.read_text().startswith("# Many models on one machine\n\nMade from commit ")
