"""Topics of a real broker as the input of `evaluate`: rows of a file with the same events."""

from __future__ import annotations

import gc
import json
import random
import signal
import socket
import time
from pathlib import Path

import pytest
from rocsteady.pipelines.cli import main
from rocsteady.transforms.kafka.topic import KafkaTopic
from rocsteady.transforms.sources.streams.kafka_partition import KafkaPartition

from tests.support.servers.kafka_topics import (
    OPTIONS,
    PATIENCE,
    N,
    as_arrow,
    as_json,
    delete_before,
    evaluate,
    events,
    follow,
    grow,
    interrupted,
    lines_in,
    produce,
    rows_in,
    rows_of_file,
    sent,
    start,
    topic_of,
    until,
)
from tests.support.servers.secure_broker import PASSWORD, USER


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("partitions", "together"), [(1, 1), (2, 7), (4, 1)])
def test_a_topic_up_to_its_end_gives_the_rows_of_a_file(broker, partitions, together):
    found = events()
    url = topic_of(broker, f"bounded-{partitions}", found, partitions, together=together)
    assert evaluate(url, "--until", "latest", "--output", "rows.csv", *OPTIONS) == 0
    assert rows_in("rows.csv") == rows_of_file(found)


@pytest.mark.parametrize(("partitions", "together"), [(1, 1_000), (2, 70), (4, 1)])
def test_a_topic_of_arrow_streams_gives_the_rows_of_a_file_of_json(broker, partitions, together):
    found = events()
    url = topic_of(broker, f"arrow-{partitions}", found, partitions, together=together, form=as_arrow)
    options = ["--until", "latest", "--kafka-format", "arrow", "--output", "rows.csv"]
    assert evaluate(url, *options, *OPTIONS) == 0
    assert rows_in("rows.csv") == rows_of_file(found)


def test_predictions_and_labels_in_arrow_streams_are_joined_as_those_of_files(broker):
    found = events()
    predictions = [{k: v for k, v in event.items() if k != "label"} for event in found]
    labels = [
        {"id": event["id"], "time": event["time"] + 60, "label": event["label"]} for event in found[::3]
    ]
    for name, records in (("made", predictions), ("known", labels)):
        Path(f"{name}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
        topic_of(broker, f"arrow-{name}", records, 2, together=50, form=as_arrow)
    made, known = (f"kafka://{broker.address}/arrow-{name}" for name in ("made", "known"))
    options = ["--until", "latest", "--kafka-format", "arrow", "--output", "rows.csv", *OPTIONS]
    assert evaluate(made, "--labels", known, *options) == 0
    assert evaluate("made.jsonl", "--labels", "known.jsonl", "--output", "same.csv", *OPTIONS) == 0
    assert rows_in("rows.csv") == rows_in("same.csv")
    assert len(rows_in("rows.csv")) > 20


def test_messages_of_the_other_format_are_dead_letters_that_say_what_to_do(broker, capsys):
    found = events(20)
    for form, other in ((as_json, "arrow"), (as_arrow, "json")):
        url = topic_of(broker, f"other-{other}", found, 1, together=5, form=form)
        options = ["--until", "latest", "--kafka-format", other, "--output", "rows.csv"]
        assert evaluate(url, *options, *OPTIONS, "--dead-letters", f"{other}.jsonl") == 3
        letters = [json.loads(line) for line in Path(f"{other}.jsonl").read_text().splitlines()]
        assert [(letter["source"], letter["position"]) for letter in letters] == [
            (f"other-{other}[0]", offset) for offset in range(4)
        ]
        assert "--kafka-format arrow" in letters[0]["detail"]
    assert evaluate("there.csv", "--kafka-format", "arrow", "--output", "rows.csv") == 2
    assert "--kafka-format arrow is for a topic; name one" in capsys.readouterr().err


def test_a_job_goes_on_from_the_offset_of_an_arrow_message(broker):
    found = events()
    url = topic_of(broker, "arrow-halves", found[: N // 2], 2, together=100, form=as_arrow)
    options = ["--until", "latest", "--kafka-format", "arrow", "--output", "rows.csv", *OPTIONS]
    options += ["--order", "time:0s"]
    assert evaluate(url, *options, "--export-state", "state") == 0
    first = rows_in("rows.csv")
    later = [found[i : i + 100] for i in range(N // 2, N, 100)]
    produce(broker, "arrow-halves", [(i % 2, as_arrow(piece), 0) for i, piece in enumerate(later)])
    assert evaluate(url, *options, "--import-state", "state") == 0
    both = topic_of(broker, "json-halves", [], 2)
    whole = [[*found[i : i + 100]] for i in range(0, N, 100)]
    rng = random.Random(2)
    places = [rng.randrange(2) for _ in range(N // 200)] + [i % 2 for i in range(N // 200)]
    produce(broker, "json-halves", [(p, as_json(piece), 0) for p, piece in zip(places, whole, strict=True)])
    options = ["--until", "latest", "--output", "same.csv", *OPTIONS, "--order", "time:0s"]
    assert evaluate(both, *options) == 0
    assert sorted([*first, *rows_in("rows.csv")]) == rows_in("same.csv")


def test_no_garbage_is_collected_while_messages_are_fetched(broker):
    topic_of(broker, "many", events(40_000), 1)
    partition = KafkaPartition(KafkaTopic.parse(f"kafka://{broker.address}/many"), 0, 1)
    collections: list[str] = []
    gc.callbacks.append(lambda phase, _: collections.append(phase))
    try:
        offset, most = 0, 0
        while offset < 40_000:
            before = len(collections)
            fetched = partition.fetch(offset, 20_000, 1.0)
            most = max(most, len(collections) - before)
            offset = fetched.next
    finally:
        gc.callbacks.pop()
        partition.close()
    assert most < 10  # 28 of the youngest generation alone, for 20,000 messages


def test_a_topic_is_followed_and_ctrl_c_makes_the_last_rows(broker):
    found = events()
    url = topic_of(broker, "followed", found[: N // 2], 2)
    job, counted = follow(url)
    until(lambda: lines_in("rows.csv") > 20)
    later = [
        (i % 2, json.dumps(event).encode(), event["time"] * 1_000) for i, event in enumerate(found[N // 2 :])
    ]
    produce(broker, "followed", later)
    expected = rows_of_file(found, "--order", "time:0s")
    until(lambda: counted("events_read") == N)
    words = interrupted(job, 0)
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
        job.communicate(timeout=PATIENCE)
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


@pytest.mark.parametrize("running", [True, False], ids=["while it stood still", "between two jobs"])
def test_messages_deleted_before_they_were_read_are_a_dead_letter(broker, running):
    found, topic = events(), f"forgets-{running}"
    half, lost = N // 2, 300
    broker.create_topic(topic, partitions=2)
    url = f"kafka://{broker.address}/{topic}"
    produce(broker, topic, sent(found[:half], 2))
    order = ("--order", "time:0s")
    if running:
        job, counted = follow(url, "--dead-letters", "dead.jsonl")
        until(lambda: counted("events_read") == half)
        job.send_signal(signal.SIGSTOP)
        time.sleep(1)  # what it had asked the broker for is answered
    else:
        left = ("--until", "latest", "--output", "first.csv", "--export-state", "state")
        assert evaluate(url, *left, *order, *OPTIONS) == 0
    produce(broker, topic, sent(found[half:], 2))
    delete_before(broker, topic, 1, half // 2 + lost)
    kept = [one for i, one in enumerate(found) if i % 2 == 0 or not half <= i < half + 2 * lost]
    letters = ("--dead-letters", "dead.jsonl")
    if running:
        job.send_signal(signal.SIGCONT)
        until(lambda: counted("events_read") == len(kept) + 1)
        words = interrupted(job, 0)
        assert f"{len(kept) + 1:,} events read = {len(kept):,} applied + 1 dead letter;" in words
        rows = rows_in("rows.csv")
    else:
        goes_on = ("--until", "latest", "--output", "second.csv", "--import-state", "state")
        assert evaluate(url, *goes_on, *letters, *order, *OPTIONS) == 0
        rows = sorted({*map(tuple, rows_in("first.csv")), *map(tuple, rows_in("second.csv"))})
    assert [*map(list, rows)] == rows_of_file(kept, *order)
    (letter,) = map(json.loads, Path("dead.jsonl").read_text().splitlines())
    assert (letter["source"], letter["position"]) == (f"{topic}[1]", half // 2)
    assert letter["detail"] == f"{lost} messages from here on were deleted by retention before they were read"


def test_a_message_beyond_the_limits_of_the_client_is_named_or_read(broker, capsys):
    broker.create_topic("heavy")
    good = [json.dumps(event).encode() for event in events(2)]
    produce(broker, "heavy", [(0, good[0], 1), (0, b" " * 10_000_000 + good[1], 1)])
    url = f"kafka://{broker.address}/heavy"
    words = ("--until", "latest", "--output", "rows.csv", "--model", "model", *OPTIONS)
    small = [f"--kafka-option={name}=100000" for name in ("fetch.max.bytes", "message.max.bytes")]
    assert evaluate(url, *words, *small, "--kafka-option=max.partition.fetch.bytes=1000") == 0
    assert "2 events read = 2 applied" in capsys.readouterr().err
    limit = "--kafka-option=receive.message.max.bytes=1000000"
    assert "receive.message.max.bytes" in refused(capsys, url, "--model", "model", limit, *OPTIONS)
    started = time.monotonic()
    assert evaluate(url, *words, *small, limit) == 1
    assert time.monotonic() - started < PATIENCE
    said = capsys.readouterr().err
    assert f"{url}: what is at offset 1 of partition 0 comes in 10,000," in said
    assert (
        "the client takes 1,000,000 at once; raise --kafka-option receive.message.max.bytes=1000000" in said
    )
    assert "Traceback" not in said


def refused(capsys, *arguments):
    started = time.monotonic()
    status = evaluate(*arguments, "--until", "latest", "--output", "rows.csv")
    assert time.monotonic() - started < PATIENCE
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


def test_a_job_with_a_state_reads_more_partitions_and_more_topics(broker):
    """Rows of both jobs are those of a file with all events: nothing is left out, nothing comes twice."""
    found = events()
    first, second = found[: N // 2], found[N // 2 :]
    url = topic_of(broker, "grown", first, 2)
    words = ["--until", "latest", *OPTIONS]
    assert evaluate(url, *words, "--export-state", "state", "--output", "1.csv") == 0
    grow(broker, "grown", 3)
    millis = [(json.dumps(event).encode(), event["time"] * 1_000) for event in second]
    produce(broker, "grown", [(i % 3, *each) for i, each in enumerate(millis) if i % 4])
    more = topic_of(broker, "beside", [event for i, event in enumerate(second) if not i % 4], 2)
    assert evaluate(url, more, *words, "--import-state", "state", "--output", "2.csv") == 0
    assert sorted(rows_in("1.csv") + rows_in("2.csv")) == rows_of_file(found)
