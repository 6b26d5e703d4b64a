"""Topics of a real broker as the input of `evaluate`: rows of a file with the same events."""

from __future__ import annotations

import json
import signal
import socket
import time
from pathlib import Path

import pytest
from kafka_topics import (
    OPTIONS,
    N,
    evaluate,
    events,
    lines_in,
    produce,
    rows_in,
    rows_of_file,
    start,
    topic_of,
    until,
)
from rocsteady.pipelines.cli import main
from rocsteady.runners.servers.kafka import PASSWORD, USER


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("partitions", "together"), [(1, 1), (2, 7), (4, 1)])
def test_a_topic_up_to_its_end_gives_the_rows_of_a_file(broker, partitions, together):
    found = events()
    url = topic_of(broker, f"bounded-{partitions}", found, partitions, together=together)
    assert evaluate(url, "--until", "latest", "--output", "rows.csv", *OPTIONS) == 0
    assert rows_in("rows.csv") == rows_of_file(found)


def test_a_topic_is_followed_and_ctrl_c_makes_the_last_rows(broker):
    found = events()
    url = topic_of(broker, "followed", found[: N // 2], 2)
    job = start(url, "--output", "rows.csv", *OPTIONS)
    until(lambda: lines_in("rows.csv") > 20)
    later = [
        (i % 2, json.dumps(event).encode(), event["time"] * 1_000) for i, event in enumerate(found[N // 2 :])
    ]
    produce(broker, "followed", later)
    expected = rows_of_file(found, "--order", "time:0s")
    until(lambda: lines_in("rows.csv") >= len(expected) - 2)
    job.send_signal(signal.SIGINT)
    _, words = job.communicate(timeout=30)
    assert job.returncode == 0, words
    assert f"{N:,} events read = {N:,} applied + 0 dead letters" in words
    assert rows_in("rows.csv") == expected


def test_a_job_begins_and_ends_where_it_is_told(broker):
    found = events()
    url = topic_of(broker, "parts", found, 2)
    first, last = found[1_000]["time"], found[3_000]["time"]
    at = [time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds)) for seconds in (first, last)]
    assert evaluate(url, "--start", at[0], "--until", at[1], "--output", "rows.csv", *OPTIONS) == 0
    assert rows_in("rows.csv") == rows_of_file([one for one in found if first <= one["time"] < last])
    assert evaluate(url, "--start", "latest", "--until", "latest", "--output", "none.csv", *OPTIONS) == 0
    assert rows_in("none.csv") == []


@pytest.mark.parametrize("running", [True, False], ids=["asked for while it runs", "left at its end"])
def test_a_job_goes_on_from_the_state_and_the_offsets_of_another(broker, running):
    found = events()
    url = topic_of(broker, f"goes-on-{running}", found[: N // 2], 3)
    if running:
        job = start(url, "--output", "first.csv", "--control", "control", *OPTIONS)
        until(lambda: lines_in("first.csv") > 20)
        assert main(["state", "export", "--control", "control", "--output", "state"]) == 0
        job.send_signal(signal.SIGKILL)
        job.communicate(timeout=60)
    else:
        words = [
            "--until",
            "latest",
            "--output",
            "first.csv",
            "--export-state",
            "state",
            "--order",
            "time:0s",
        ]
        assert evaluate(url, *words, *OPTIONS) == 0
    rest = [(i % 3, json.dumps(event).encode(), 0) for i, event in enumerate(found[N // 2 :])]
    produce(broker, f"goes-on-{running}", rest)
    words = ["--until", "latest", "--output", "second.csv", "--import-state", "state", "--order", "time:0s"]
    assert evaluate(url, *words, *OPTIONS) == 0
    rows = rows_of_file(found, "--order", "time:0s")
    first, second = rows_in("first.csv"), rows_in("second.csv")
    assert 20 < len(second) < len(rows)
    assert first or not running
    assert sorted({*map(tuple, first), *map(tuple, second)}) == sorted(map(tuple, rows))


def test_an_offset_that_is_said_beside_those_of_a_state_or_of_another_cluster_is_refused(broker, capsys):
    url = topic_of(broker, "twice-begun", events(200), 1)
    words = ("--order", "time:0s", *OPTIONS)
    left = ("--until", "latest", "--output", "first.csv", "--export-state", "state")
    assert evaluate(url, *words, *left) == 0
    capsys.readouterr()
    said = refused(capsys, url, *words, "--import-state", "state", "--start", "latest")
    assert "--start latest: --import-state state goes on from the offsets that its readers had" in said
    manifest = Path("state/manifest.json")
    (position,) = json.loads(manifest.read_text())["positions"]
    cluster = position["position"]["origin"]
    assert cluster.startswith("Kafka cluster ")
    manifest.write_text(manifest.read_text().replace(cluster, "Kafka cluster elsewhere"))
    said = refused(capsys, url, *words, "--import-state", "state")
    assert f"of twice-begun[0] of Kafka cluster elsewhere, and this is that of {cluster}, whose" in said


def test_what_is_no_event_is_a_dead_letter_at_its_partition_and_offset(broker):
    broker.create_topic("poison", partitions=2)
    good = [json.dumps(event).encode() for event in events(20)]
    large = b'{"a": "' + b"x" * 10_000_000 + b'"}'
    produce(broker, "poison", [(1, good[0], 1), (1, b"\xff no JSON", 1), (0, large, 1), (1, good[1], 1)])
    url = f"kafka://{broker.address}/poison"
    letters = ["--dead-letters", "dead.jsonl"]
    assert (
        evaluate(url, "--until", "latest", "--model", "model", "--output", "rows.csv", *letters, *OPTIONS)
        == 0
    )
    found = [json.loads(line) for line in Path("dead.jsonl").read_text().splitlines()]
    assert sorted((one["source"], one["position"]) for one in found) == [("poison[0]", 0), ("poison[1]", 1)]
    assert sorted(row[3] for row in rows_in("rows.csv"))[-1] in ("1", "2")


def refused(capsys, *arguments):
    started = time.monotonic()
    status = evaluate(*arguments, "--until", "latest", "--output", "rows.csv")
    assert time.monotonic() - started < 30
    assert status == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    return line


def test_what_cannot_be_read_is_said_in_a_sentence_before_the_job_starts(broker, capsys):
    topic_of(broker, "there", events(10), 1)
    sasl = [
        "--kafka-option=security.protocol=SASL_PLAINTEXT", "--kafka-option=sasl.mechanism=PLAIN",
        f"--kafka-option=sasl.username={USER}",
    ]  # fmt: skip
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        nobody = f"127.0.0.1:{silent.getsockname()[1]}"
        assert nobody in refused(capsys, f"kafka://{nobody}/there")
    assert "no topic 'ther' that may be seen; did you mean there?" in refused(
        capsys, f"kafka://{broker.address}/ther"
    )
    assert "nosuch.invalid:9092" in refused(capsys, "kafka://nosuch.invalid:9092/there")
    assert "does not let us in" in refused(
        capsys, f"kafka://{broker.sasl_address}/there", *sasl, "--kafka-option=sasl.password=wrong"
    )
    assert broker.sasl_address in refused(capsys, f"kafka://{broker.sasl_address}/there")
    assert "security.protocol=SSL" in refused(capsys, f"kafka://{broker.tls_address}/there")
    assert "TLS" in refused(capsys, f"kafka://{broker.address}/there", "--kafka-option=security.protocol=SSL")
    assert "ssl.*" in refused(
        capsys, f"kafka://{broker.tls_address}/there", "--kafka-option=security.protocol=SSL"
    )
    assert "nosuch.option" in refused(
        capsys, f"kafka://{broker.address}/there", "--kafka-option=nosuch.option=1"
    )
    assert "keeps its offsets itself" in refused(
        capsys, f"kafka://{broker.address}/there", "--kafka-option=auto.offset.reset=latest"
    )


@pytest.mark.parametrize("way", ["sasl", "tls"])
def test_passwords_and_certificates_let_in(broker, way):
    topic = f"locked-{way}"
    found = events(200)
    topic_of(broker, topic, found, 1)
    if way == "sasl":
        address = broker.sasl_address
        lines = [
            "security.protocol=SASL_PLAINTEXT",
            "sasl.mechanism=PLAIN",
            f"sasl.username={USER}",
            f"sasl.password={PASSWORD}",
        ]
    else:
        address = broker.tls_address
        lines = ["security.protocol=SSL", f"ssl.ca.location={broker.certificate}"]
    Path("client.properties").write_text("\n".join(lines))
    url = f"kafka://{address}/{topic}"
    options = ["--kafka-option", "@client.properties", *OPTIONS]
    assert evaluate(url, "--until", "latest", "--output", "rows.csv", *options) == 0
    assert rows_in("rows.csv") == rows_of_file(found)
