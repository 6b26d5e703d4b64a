"""A local job that follows a topic of a real broker, is killed, and goes on where its checkpoint says."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from rocsteady import read_rows

from tests.support.servers.kafka_topics import (
    OPTIONS,
    PATIENCE,
    N,
    evaluate,
    events,
    grow,
    lines_in,
    produce,
    start,
    topic_of,
    until,
)


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def sent(found, first):
    """Events as messages of two partitions."""
    return [(i % 2, json.dumps(event).encode(), 0) for i, event in enumerate(found, first)]


def rows_at(place):
    """The rows, each once, without those that only the end of the input makes."""
    if place.endswith("jsonl") and not lines_in(place):
        return {}
    if place.endswith("/") and not any(Path(place).glob("part-*")):
        return {}
    return {(row.model, row.row): row for row in read_rows(place) if row.seq % 50 == 0}


@pytest.mark.parametrize("output", [pytest.param("rows.jsonl", marks=pytest.mark.gate), "a topic", "rows/"])
def test_a_job_on_a_topic_that_is_killed_gives_the_rows_of_an_undisturbed_one(broker, output):
    found, name = events(), f"killed-{output[-2:].strip('/.')}"
    url = topic_of(broker, name, [], 2)
    if output == "a topic":
        broker.create_topic(f"{name}-rows")
        output = f"kafka://{broker.address}/{name}-rows"
    options = (url, "--output", output, "--checkpoint", "kept", "--checkpoint-every", "200ms", *OPTIONS)
    produce(broker, name, sent(found[:1_000], 0))
    job = start(*options)
    until(lambda: len(rows_at(output)) > 10)
    job.kill()
    job.communicate()
    grow(broker, name, 3)  # the new partition is empty, and holds no row up
    produce(broker, name, sent(found[1_000:2_000], 1_000))
    job = start(*options)
    until(lambda: len(rows_at(output)) > 28)
    job.kill()
    job.communicate()
    produce(broker, name, sent(found[2_000:], 2_000))
    job = start(*options, "--start", "latest")  # of the first start alone
    file = "whole.jsonl"
    with open(file, "w") as lines:  # noqa: PTH123
        lines.writelines(json.dumps(event) + "\n" for event in found)
    assert evaluate(file, "--output", "whole.csv", "--order", "time:0s", *OPTIONS) == 0
    expected = rows_at("whole.csv")
    until(lambda: len(rows_at(output)) >= len(expected) - 2)  # the clock has not passed the last events
    job.send_signal(signal.SIGTERM)
    _, words = job.communicate(timeout=PATIENCE)
    assert job.returncode == 0, words
    assert "the job goes on from its checkpoint in kept" in words
    assert f"{N:,} events read = " in words
    rows = rows_at(output)
    assert len(expected) - 2 <= len(rows) <= len(expected)
    assert all(expected[place]._replace(config=row.config) == row for place, row in rows.items())
    assert {row.config for row in rows.values()} == {row.config for row in expected.values()}


def test_a_checkpoint_is_not_taken_to_other_topics(broker, capsys):
    options = ("--output", "rows.jsonl", "--checkpoint", "kept", *OPTIONS)
    job = start(topic_of(broker, "read-before", events(100), 1), *options)
    until(lambda: lines_in("rows.jsonl"))
    job.send_signal(signal.SIGTERM)
    assert job.wait(PATIENCE) == 0
    job.communicate()
    assert evaluate(topic_of(broker, "read-later", events(100), 1), *options) == 2
    assert "was read from read-before[0], and this job reads read-later[0]" in capsys.readouterr().err
