"""Partitions that a topic of a real broker gets while a job reads it, or between two jobs."""

from __future__ import annotations

import json
import signal
from collections import Counter
from pathlib import Path

import pytest
from rocsteady import read_rows
from rocsteady.pipelines.cli import main

from tests.support.servers.kafka_topics import (
    OPTIONS,
    PATIENCE,
    N,
    evaluate,
    events,
    follow,
    grow,
    interrupted,
    lines_in,
    produce,
    rows_in,
    rows_of_file,
    start,
    until,
)

HALF = N // 2


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def dealt(found, partitions):
    """Events as messages, to these partitions by turns."""
    return [(partitions[i % len(partitions)], json.dumps(event).encode(), 0) for i, event in enumerate(found)]


def reasons_in(path):
    letters = [json.loads(line) for line in Path(path).read_text().splitlines()]
    return Counter((letter["kind"], letter["reason"], letter["source"]) for letter in letters)


def test_a_running_job_reads_an_added_partition_from_its_first_offset(broker):
    found = events()
    broker.create_topic("grows", partitions=2)
    produce(broker, "grows", dealt(found[:HALF], (0, 1)))
    job, counted = follow(f"kafka://{broker.address}/grows")
    until(lambda: counted("events_read") == HALF)
    grow(broker, "grows", 5)
    second = dealt(found[HALF:], (0, 1, 2, 3))  # partition 4 stays empty, and holds no row up
    produce(broker, "grows", [message for message in second if message[0] > 1])
    until(lambda: counted("events_read") == N - HALF // 2)
    assert counted("added_partitions") == 3
    produce(broker, "grows", [message for message in second if message[0] < 2])
    until(lambda: counted("events_read") == N)
    words = interrupted(job, 0)
    assert f"{N:,} events read = {N:,} applied + 0 dead letters" in words
    assert "3 partitions were added while the job ran, and are read; 0 events of added" in words
    assert rows_in("rows.csv") == rows_of_file(found, "--order", "time:0s")


def test_its_events_behind_the_clock_are_late_with_a_reason_of_their_own(broker):
    found = events()
    late, first = found[:40], found[40:HALF]
    broker.create_topic("grows-late", partitions=1)
    produce(broker, "grows-late", dealt(first, (0,)))
    job, counted = follow(f"kafka://{broker.address}/grows-late", "--dead-letters", "dead.jsonl")
    until(lambda: counted("events_read") == len(first))
    grow(broker, "grows-late", 2)
    produce(broker, "grows-late", dealt(late, (1,)))
    until(lambda: counted("late") == 40)
    produce(broker, "grows-late", dealt(found[HALF:], (1, 0)))
    until(lambda: counted("events_read") == N)
    words = interrupted(job, 0)
    assert f"{N:,} events read = {N - 40:,} applied + 0 dead letters + 40 late" in words
    assert "1 partition was added while the job ran, and is read; 40 events of added" in words
    assert "40 x late: new partition" in words
    assert reasons_in("dead.jsonl") == {("late", "new partition", "grows-late[1]"): 40}
    assert rows_in("rows.csv") == rows_of_file(found[40:], "--order", "time:0s")


def test_predictions_and_labels_of_added_partitions_are_joined(broker):
    """The next labels come when all predictions are read, and all but the last prediction has a label."""
    made = events()
    predictions = [{name: event[name] for name in ("model", "score", "time", "id")} for event in made]
    labels = [{"id": event["id"], "label": event["label"], "known": event["time"] + 5} for event in made]
    topics = ("joined", "joined-labels")
    for topic, found in zip(topics, (predictions, labels), strict=True):
        broker.create_topic(topic, partitions=1)
        produce(broker, topic, dealt(found[:HALF], (0,)))
    urls = [f"kafka://{broker.address}/{topic}" for topic in topics]
    more = ("--labels", urls[1], "--label-time", "known", "--ttl", "1d", "--dead-letters", "dead.jsonl")
    job, counted = follow(urls[0], *more)
    until(lambda: counted("events_read") == counted("labels_read") == HALF)
    for topic, found in zip(topics, (predictions, labels), strict=True):
        grow(broker, topic, 3)
        produce(broker, topic, dealt(found[HALF:], (1, 2)))
    until(lambda: counted("events_read") == counted("labels_read") == N)
    words = interrupted(job, 0)
    assert f"{N:,} events read = {N:,} applied" in words.replace("predictions read", "events read")
    assert "4 partitions were added while the job ran" in words
    for name, found in (("p.jsonl", predictions), ("l.jsonl", labels)):
        Path(name).write_text("".join(json.dumps(record) + "\n" for record in found))
    same = ("--labels", "l.jsonl", *more[2:6], "--output", "same.csv", "--order", "time:0s")
    assert evaluate("p.jsonl", *same, *OPTIONS) == 0
    assert rows_in("rows.csv") == rows_in("same.csv")


def test_a_job_without_an_order_of_several_partitions_ends(broker):
    broker.create_topic("grows-alone", partitions=1)
    url = f"kafka://{broker.address}/grows-alone"
    produce(broker, "grows-alone", dealt(events(200), (0,)))
    job = start(url, "--output", "rows.jsonl")
    until(lambda: lines_in("rows.jsonl"))
    grow(broker, "grows-alone", 2)
    _, words = job.communicate(timeout=PATIENCE)
    assert job.returncode == 1, words
    assert "grows-alone[1] was added while the job ran, and nothing says in which order" in words


def test_a_checkpoint_goes_on_with_added_partitions(broker, capsys):
    """One is added while the job runs, another one while it does not run."""
    found = events()
    parts = [found[i : i + N // 4] for i in range(0, N, N // 4)]
    broker.create_topic("grows-kept", partitions=1)
    url = f"kafka://{broker.address}/grows-kept"
    words = (url, "--output", "rows.jsonl", "--checkpoint", "kept", "--checkpoint-every", "0s", *OPTIONS)

    def runs_until(rows, then=lambda: None):
        job = start(*words)
        until(lambda: lines_in("rows.jsonl") >= rows)
        then()
        job.kill()
        job.communicate()

    def while_it_runs():
        grow(broker, "grows-kept", 2)
        produce(broker, "grows-kept", dealt(parts[1], (1,)))
        until(lambda: _has_read(1_000))
        produce(broker, "grows-kept", dealt(found[2_000:2_001], (0,)))
        until(lambda: lines_in("rows.jsonl") >= 38)

    produce(broker, "grows-kept", dealt(parts[0], (0,)))
    runs_until(17, while_it_runs)
    grow(broker, "grows-kept", 3)
    produce(broker, "grows-kept", dealt(parts[2][1:], (2,)))
    job = start(*words)
    until(lambda: _has_read(999, number=2))
    produce(broker, "grows-kept", dealt(parts[3], (0, 1, 2)))
    until(lambda: lines_in("rows.jsonl") >= 78)
    job.send_signal(signal.SIGTERM)
    _, said = job.communicate(timeout=PATIENCE)
    assert job.returncode == 0, said
    assert f"{N:,} events read = " in said
    assert main(["inspect", "kept"]) == 0
    places = "grows-kept[0]: at 1,335, added partition 1 at 1,333, added partition 2 at 1,332"
    assert places in capsys.readouterr().out
    Path("whole.jsonl").write_text("".join(json.dumps(event) + "\n" for event in found))
    assert evaluate("whole.jsonl", "--output", "whole.csv", "--order", "time:0s", *OPTIONS) == 0
    rows, expected = (
        {(row.model, row.row): row for row in read_rows(path) if row.seq % 50 == 0}
        for path in ("rows.jsonl", "whole.csv")
    )
    assert len(expected) - 2 <= len(rows) <= len(expected)
    assert all(expected[place]._replace(config=row.config) == row for place, row in rows.items())


def _has_read(messages, number=1):
    """Whether the newest checkpoint has read so many messages of an added partition."""
    from rocsteady.transforms.sources.streams.offsets import ReaderState
    from rocsteady.transforms.state.checkpoints import CheckpointFolder

    found = CheckpointFolder("kept").newest(lambda checkpoint: checkpoint)
    added = [] if found is None else ReaderState.from_bytes(found.readers[0].state.encode()).added
    return any((each.number, each.next) == (number, messages) for each in added)


def test_an_export_has_the_offsets_of_added_partitions(broker, capsys):
    found = events()
    broker.create_topic("grows-exported", partitions=1)
    url = f"kafka://{broker.address}/grows-exported"
    produce(broker, "grows-exported", dealt(found[:1_000], (0,)))
    job, counted = follow(url, "--export-state", "state")
    until(lambda: counted("events_read") == 1_000)
    grow(broker, "grows-exported", 3)  # partition 2 has no event before the export
    produce(broker, "grows-exported", dealt(found[1_000:HALF], (1,)))
    until(lambda: counted("events_read") == HALF and counted("added_partitions") == 2)
    interrupted(job, 0)
    assert main(["inspect", "state"]) == 0
    said = capsys.readouterr().out
    assert "  added, grows-exported[1]: at offset 1,000, newest" in said
    assert "  added, grows-exported[2]: at offset 0, of Kafka cluster" in said
    grow(broker, "grows-exported", 4)
    late = [event | {"id": f"late {event['id']}"} for event in found[:20]]
    produce(broker, "grows-exported", [*dealt(late, (2, 3)), *dealt(found[HALF:], (3,))])
    capsys.readouterr()
    options = ("--order", "time:0s", "--until", "latest", "--import-state", "state", *OPTIONS)
    assert evaluate(url, *options, "--output", "second.csv", "--dead-letters", "dead.jsonl") == 0
    assert "20 x late: new partition" in capsys.readouterr().err
    assert reasons_in("dead.jsonl") == {
        ("late", "new partition", f"grows-exported[{number}]"): 10 for number in (2, 3)
    }
    both = sorted({*map(tuple, rows_in("rows.csv")), *map(tuple, rows_in("second.csv"))})
    assert both == sorted(map(tuple, rows_of_file(found, "--order", "time:0s")))
