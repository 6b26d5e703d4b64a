"""A topic of a real broker that is deleted and made anew: no job reads on from an old offset."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.support.servers.kafka_topics import (
    OPTIONS,
    PATIENCE,
    delete,
    evaluate,
    events,
    lines_in,
    make_anew,
    start,
    topic_of,
    until,
)

OLD = 500
"""Events of the topic that is deleted. The new one has more, so that the old offset exists there."""


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def refused(capsys, *arguments):
    capsys.readouterr()
    assert evaluate(*arguments) == 2
    said = capsys.readouterr().err
    assert "500 of " in said
    return said


@pytest.mark.parametrize("stopped", [True, False], ids=["its offset exists again", "it does not"])
def test_a_running_job_says_so_and_ends(broker, stopped):
    name = f"anew-running-{stopped}"
    url = topic_of(broker, name, events(OLD), 1)
    job = start(url, "--output", "rows.jsonl", "--dead-letters", "dead.jsonl", *OPTIONS)
    until(lambda: lines_in("rows.jsonl") > 5)
    if stopped:
        job.send_signal(signal.SIGSTOP)
    make_anew(broker, name, events(20 * OLD, seed=2))
    if stopped:
        job.send_signal(signal.SIGCONT)
    _, words = job.communicate(timeout=PATIENCE)
    assert job.returncode == 1, words
    assert f"{url}: the topic was deleted and made anew while it was read: its id was " in words


def test_a_running_job_ends_where_its_topic_is_deleted(broker):
    url = topic_of(broker, "deleted-running", events(OLD), 1)
    job = start(url, "--output", "rows.jsonl", *OPTIONS)
    until(lambda: lines_in("rows.jsonl") > 5)
    delete(broker, "deleted-running")
    _, words = job.communicate(timeout=PATIENCE)
    assert job.returncode == 1, words
    assert f"{url}: the topic was deleted while it was read: its brokers have none of this name" in words
    assert "no broker answers" not in words


def test_a_checkpoint_does_not_go_on(broker, capsys):
    url = topic_of(broker, "anew-kept", events(OLD), 1)
    words = (url, "--output", "rows.jsonl", "--checkpoint", "kept", *OPTIONS)
    job = start(*words)
    until(lambda: lines_in("rows.jsonl") > 5)
    job.send_signal(signal.SIGTERM)
    assert job.wait(PATIENCE) == 0
    job.communicate()
    make_anew(broker, "anew-kept", events(20 * OLD, seed=2))
    before = Path("rows.jsonl").read_bytes()
    said = refused(capsys, *words)
    assert "--checkpoint kept goes on from offset 500 of anew-kept[0], and its topic was deleted and" in said
    assert "Begin anew with --checkpoint-new" in said
    assert Path("rows.jsonl").read_bytes() == before


def test_an_export_is_not_taken_up(broker, capsys):
    url = topic_of(broker, "anew-exported", events(OLD), 1)
    words = ("--order", "time:0s", "--until", "latest", *OPTIONS)
    assert evaluate(url, *words, "--output", "first.csv", "--export-state", "state") == 0
    make_anew(broker, "anew-exported", events(20 * OLD, seed=2))
    said = refused(capsys, url, *words, "--output", "second.csv", "--import-state", "state")
    assert (
        "--import-state state goes on from offset 500 of anew-exported[0], and its topic was deleted" in said
    )
    assert not Path("second.csv").exists()
