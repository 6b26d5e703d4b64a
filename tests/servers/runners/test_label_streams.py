"""Labels of their own in streams without an end, folders and topics, on every runner that streams."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from rocsteady import read_rows

from tests.support.servers.kafka_topics import evaluate, interrupted, lines_in, produce, start, until
from tests.support.streams.class_events import class_streams, lines_of

OPTIONS = (
    "--id", "id", "--time", "made", "--label-time", "known", "--ttl", "1h", "--label-lead", "0s",
    "--window", "last:100", "--every", "20",
)  # fmt: skip
N = 1_000


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def streams():
    """Predictions of two models and their labels, each in the order of its times.

    The last predictions are behind all labels: in streams without an end, labels behind them would wait.
    """
    rng, made, predictions, labels = random.Random(4), 1_700_000_000, [], []
    for number in range(N):
        made += rng.choice([0, 1, 60])
        label = int(rng.random() < 0.4)
        for model in "ab":
            score = round(rng.random() * 0.6 + 0.4 * label, 3)
            predictions.append({"id": f"e{number}", "made": made, "model": model, "score": score})
        labels.append({"id": f"e{number}", "known": made + rng.randrange(3_000), "label": label})
    predictions += [{"id": "last", "made": made + 10_000, "model": model, "score": 0.5} for model in "ab"]
    return predictions, sorted(labels, key=lambda record: record["known"])


def as_lines(records):
    return "".join(json.dumps(record) + "\n" for record in records)


def rows_at(place):
    """The rows by their identity, without those that only the end of the input makes."""
    if not (any(Path(place).glob("part-*")) if place.endswith("/") else lines_in(place)):
        return {}
    return {(row.model, row.row): row for row in read_rows(place) if row.seq % 20 == 0}


def rows_of_files():
    for name, records in zip(("p.jsonl", "l.jsonl"), streams(), strict=True):
        Path(name).write_text(as_lines(records))
    words = ("p.jsonl", "--labels", "l.jsonl", "--output", "same.jsonl", "--order", "time:0s")
    assert evaluate(*words, *OPTIONS) == 0
    return rows_at("same.jsonl")


def test_two_folders_that_grow_give_the_rows_of_files(runner):
    """The labels come behind the predictions, a part of each at a time."""
    same, (predictions, labels) = rows_of_files(), streams()
    for name, records, part in (("made", predictions, N), ("known", labels, N // 2)):
        Path(name).mkdir()
        Path(name, "1.jsonl").write_text(as_lines(records[:part]))
    words = ("made", "--follow", "--labels", "known", "--output", "rows/", "--shards", "4")
    job = start(*words, *OPTIONS, *runner)
    try:
        until(lambda: rows_at("rows/") or job.poll() is not None)
        assert job.poll() is None
        for name, records, part in (("made", predictions, N), ("known", labels, N // 2)):
            Path(name, ".2.jsonl").write_text(as_lines(records[part:]))
            Path(name, ".2.jsonl").rename(Path(name, "2.jsonl"))
            Path(name, "_END").touch()
        until(lambda: len(rows_at("rows/")) >= len(same) or job.poll() is not None)
    finally:
        said = interrupted(job)
    assert rows_at("rows/") == same, said


def topics_of(broker, name):
    urls = []
    for kind in ("made", "known"):
        broker.create_topic(f"{name}-{kind}", partitions=2)
        urls.append(f"kafka://{broker.address}/{name}-{kind}")
    return [urls[0], "--labels", urls[1]]


def send(broker, name, kind, records):
    produce(
        broker, f"{name}-{kind}", [(i % 2, json.dumps(each).encode(), 0) for i, each in enumerate(records)]
    )


def test_two_topics_without_an_end_give_the_rows_of_files(broker, runner):
    same, (predictions, labels) = rows_of_files(), streams()
    name = f"labelled-{runner[1]}"
    urls = topics_of(broker, name)
    send(broker, name, "made", predictions)
    send(broker, name, "known", labels[: N // 2])
    job = start(*urls, "--output", "rows/", "--shards", "4", *OPTIONS, *runner)
    try:
        until(lambda: rows_at("rows/") or job.poll() is not None)
        assert job.poll() is None
        assert max(row.seq for row in rows_at("rows/").values()) <= N // 2  # the labels hold the clock
        send(broker, name, "known", labels[N // 2 :])
        until(lambda: len(rows_at("rows/")) >= len(same) - 4 or job.poll() is not None)
    finally:
        said = interrupted(job)
    rows = rows_at("rows/")
    assert {place: row for place, row in same.items() if place in rows} == rows, said
    assert len(rows) >= len(same) - 4


def test_a_local_job_on_two_topics_that_is_killed_goes_on_with_both(broker):
    same, (predictions, labels) = rows_of_files(), streams()
    urls = topics_of(broker, "labelled-here")
    send(broker, "labelled-here", "made", predictions)
    send(broker, "labelled-here", "known", labels[: N // 2])
    kept = ("--output", "rows.jsonl", "--checkpoint", "kept", "--checkpoint-every", "200ms")
    job = start(*urls, *kept, *OPTIONS)
    until(lambda: len(rows_at("rows.jsonl")) > 10 and any(Path("kept").glob("*.rscp")))
    job.kill()
    job.communicate()
    send(broker, "labelled-here", "known", labels[N // 2 :])
    job = start(*urls, *kept, *OPTIONS)
    until(lambda: len(rows_at("rows.jsonl")) >= len(same) - 4 or job.poll() is not None)
    said = interrupted(job)
    assert job.returncode == 0, said
    assert f"{2 * N + 2:,} predictions read = " in said
    assert f"{N:,} labels read = " in said
    rows = rows_at("rows.jsonl")
    assert {place: row for place, row in same.items() if place in rows} == rows, said
    assert len(rows) >= len(same) - 4


@pytest.mark.parametrize("kind", [("--label", "y"), ("--multi-label", "y_cat,y_dog,y_owl")])
def test_a_job_with_class_scores_that_is_killed_again_and_again_goes_on(broker, kind):
    predictions, labels, events = class_streams(900)
    how = ("--class-scores", "p_cat,p_dog,p_owl", *kind, "--window", "last:100", "--every", "40",
           "--time", "sent", "--id", "id", "--order", "time:0s")  # fmt: skip
    Path("events.jsonl").write_text(lines_of(events))
    assert evaluate("events.jsonl", *how, "--output", "same.jsonl") == 0
    name = f"classes{len(kind[1])}"
    urls = topics_of(broker, name)
    kept = ("--output", "rows.jsonl", "--checkpoint", "kept", "--checkpoint-every", "50ms")
    words = (*urls, *kept, *how, "--label-time", "known", "--label-lead", "0s", "--ttl", "2d")
    # the last predictions are behind all labels, which would wait
    predictions += [{**predictions[0], "id": "last", "sent": labels[-1]["known"] + 9}] * 2
    cut = len(labels) // 4
    for number in range(3):
        if not number:
            send(broker, name, "made", predictions)
        send(broker, name, "known", labels[number * cut : (number + 1) * cut])
        before = lines_in("rows.jsonl")
        job = start(*words)
        until(lambda known=before, job=job: lines_in("rows.jsonl") > known or job.poll() is not None)
        assert job.poll() is None, job.communicate()
        job.kill()
        job.communicate()
    same = {identity(row): row for row in read_rows("same.jsonl")}
    last = max(row.row for row in same.values())
    send(broker, name, "known", labels[3 * cut :])
    job = start(*words)
    until(lambda: len(found_in("rows.jsonl")) >= len(same) - 8 or job.poll() is not None)
    said = interrupted(job)
    assert job.returncode == 0, said
    found = found_in("rows.jsonl")
    assert {place: row for place, row in same.items() if place in found} == found, said
    assert {place[-1] for place in same.keys() - found.keys()} <= {last}


def found_in(path):
    """Rows that are not made by an end of the input alone."""
    return {identity(row): row for row in read_rows(path) if row.seq % 40 == 0}


def identity(row):
    return row.model, row.class_, row.row
