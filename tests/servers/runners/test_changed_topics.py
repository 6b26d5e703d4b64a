"""Topics of a real broker that change under a job on Flink or Prism: made anew, or with more partitions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.processes.launchers import LEAVES_THREADS_AND_CHANNELS
from tests.support.servers.kafka_topics import (
    OPTIONS,
    PATIENCE,
    N,
    evaluate,
    events,
    grow,
    interrupted,
    make_anew,
    produce,
    start,
    topic_of,
    until,
)

pytestmark = LEAVES_THREADS_AND_CHANNELS


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("rows").mkdir()


def dealt(found, partitions):
    """Events as messages, to these partitions by turns."""
    return [(partitions[i % len(partitions)], json.dumps(event).encode(), 0) for i, event in enumerate(found)]


def records_in(folder):
    """The records that a job wrote to a folder, as often as they are there."""
    lines = [line for path in Path(folder).glob("*.jsonl") for line in path.read_text().splitlines()]
    return [json.loads(line) for line in lines]


def rows(folder="rows"):
    """The rows that are written, by model and number."""
    return {(row["model"], row["row"]): row for row in records_in(folder)}


def words_of(runner, url):
    outputs = ("--output", "rows/", "--dead-letters", "dead/", "--shards", "4")
    return (url, *outputs, *runner, *OPTIONS)


def test_a_topic_that_is_made_anew_ends_the_job(broker, runner, request):
    name = f"anew-{runner[1]}"
    url = topic_of(broker, name, events(1_000), 1)
    job = start(*words_of(runner, url))
    until(lambda: rows() or job.poll() is not None)
    make_anew(broker, name, events(8_000, seed=2))
    _, words = job.communicate(timeout=PATIENCE)
    assert job.returncode == 1, words
    said = f"rocsteady: {url}: the topic was deleted and made anew while it was read"
    assert words.splitlines()[-1].startswith(said), words
    if "flink" in runner:
        assert [job.state for job in request.getfixturevalue("cluster").jobs()][:1] == ["CANCELED"]


def test_added_partitions_are_read_also_behind_a_savepoint(broker, runner, request):
    """One is added while the job runs, another one between savepoint and resumption, where there is one.

    The first message of each is no event: its dead letter says that the partition is read. From then on the
    clock waits for the partition.
    """
    found = events()
    parts = [found[i : i + N // 4] for i in range(0, N, N // 4)]
    name = f"grows-{runner[1]}"
    broker.create_topic(name, partitions=1)
    url = f"kafka://{broker.address}/{name}"

    def add(number):
        grow(broker, name, number + 1)
        produce(broker, name, [(number, b"no event", 0)])

    def is_read(number):
        return f"{name}[{number}]" in {letter["source"] for letter in records_in("dead")}

    produce(broker, name, dealt(parts[0], (0,)))
    job = start(*words_of(runner, url))
    until(lambda: len(rows()) > 10 or job.poll() is not None)
    add(1)
    until(lambda: is_read(1) or job.poll() is not None)
    produce(broker, name, dealt([*parts[1], *parts[2]], (0, 1)))
    until(lambda: len(rows()) > 50 or job.poll() is not None)
    if "flink" in runner:
        cluster = request.getfixturevalue("cluster")
        savepoint = cluster.savepoint(cluster.jobs()[0].identity, stop=True)
        job.communicate(timeout=PATIENCE)
        add(2)
        job = start(*words_of(runner, url), "--savepoint_path", savepoint)
    else:
        add(2)
    until(lambda: is_read(2) or job.poll() is not None)
    produce(broker, name, dealt(parts[3], (2, 1, 0)))
    Path("whole.jsonl").write_text("".join(json.dumps(event) + "\n" for event in found))
    Path("same").mkdir()
    assert evaluate("whole.jsonl", "--output", "same/rows.jsonl", "--order", "time:0s", *OPTIONS) == 0
    same = rows("same")
    until(lambda: len(rows()) >= len(same) - 4 or job.poll() is not None)
    words = interrupted(job)
    assert len(rows()) >= len(same) - 4, words
    assert {place: row for place, row in same.items() if place in rows()} == rows(), words
    assert {letter["reason"] for letter in records_in("dead")} == {"not a JSON object"}
