"""Topics as the input of `evaluate`: what cannot be is said before anybody asks a broker."""

from __future__ import annotations

import pytest
from rocsteady.core.errors import ConfigError, InputError
from rocsteady.core.events.times import NO_TIME
from rocsteady.pipelines.evaluate.job import Streams
from rocsteady.pipelines.evaluate.take_up import going_on
from rocsteady.transforms.events.fields import EventFields
from rocsteady.transforms.sources.streams.stream_input import StreamInput
from rocsteady.transforms.state.folder import Export

from tests.support.processes.command import call
from tests.support.streams.list_partition import ListPartition

TOPIC = "kafka://127.0.0.1:1/events"


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "events.csv").write_text("score,label\n0.5,1\n")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["events.csv", TOPIC],
            "SOURCE events.csv beside kafka://127.0.0.1:1/events: files and topics are not read",
        ),
        (
            [TOPIC, "kafka://127.0.0.1:2/events"],
            "SOURCE kafka://127.0.0.1:2/events: two topics are called 'events', and a state knows",
        ),
        (
            [TOPIC, "--follow"],
            "--follow is for a folder, and kafka://127.0.0.1:1/events is followed without it",
        ),
        ([TOPIC, "--until-idle", "3s"], "--until-idle 3s is for a folder; leave it out, or say where to end"),
        (
            ["kafka:127.0.0.1:1/events"],
            "SOURCE kafka:127.0.0.1:1/events: a topic is kafka://host:port/topic, with // behind kafka:",
        ),
        (
            [TOPIC, "--start", "yesterday"],
            "--start 'yesterday': give earliest, latest or a time, such as 2026-01-31T",
        ),
        (
            [TOPIC, "--until", "tomorrow"],
            "--until 'tomorrow': give latest or a time, such as 2026-01-31T12:00:00Z",
        ),
        (
            [TOPIC, "--until", "2999-01-01"],
            "--until 2999-01-01 is still to come; give latest, or a time that has",
        ),
        ([TOPIC, "--until", "earliest"], "--until earliest: nothing is before it; give latest or a time"),
        ([TOPIC, "--partition-idle", "soon"], "--partition-idle"),
        (
            ["events.csv", "--start", "latest"],
            "--start latest is for a topic; name one, kafka://host:port/topic",
        ),
        (
            ["events.csv", "--until", "latest"],
            "--until latest is for a topic; name one, kafka://host:port/topic",
        ),
        (["kafka://127.0.0.1/events"], "'127.0.0.1' is no broker; give host:port"),
        (
            [TOPIC, "--dead-letters", "kafka://127.0.0.1:2,127.0.0.1:1/events"],
            "--dead-letters kafka://127.0.0.1:2,127.0.0.1:1/events is also the input; write to another topic",
        ),
        (
            [TOPIC, "--time", "t", "--id", "i", "--labels", "events.csv"],
            "--labels events.csv beside kafka://127.0.0.1:1/events: files and topics are not read together",
        ),
    ],
)
def test_what_cannot_be_read_together_is_refused(capsys, arguments, sentence):
    ran = call(capsys, "evaluate", *arguments, "--output", "rows.csv")
    assert ran.status == 2
    assert len(ran.lines) == 1
    assert sentence in ran.lines[0]


@pytest.mark.parametrize(
    ("was", "now", "good"),
    [("Kafka cluster A", "Kafka cluster B", False), ("Kafka cluster A", "Kafka cluster A", True),
     ("", "Kafka cluster B", True), ("Kafka cluster A", "", True)],
)  # fmt: skip
def test_a_state_goes_on_from_the_offsets_of_its_own_cluster_only(was, now, good):
    fields = EventFields("score", "label", model="model")
    source = StreamInput(ListPartition("t[0]", (b"{}",) * 9, origin=now), 0, 1, "event", fields, 0)
    position = {"offset": 7, "place": "", "high_water": 0, **({"origin": was} if was else {})}
    export = Export("state", "id", "0.1.0", "", (), {0: ("t[0]", position)}, {})
    streams = Streams([source], "source")
    if good:
        assert going_on(streams, export, None).inputs[0].start == 7
        return
    with pytest.raises(
        InputError, match=r"offset 7 of t\[0\] of Kafka cluster A, and this is that of Kafka cl"
    ):
        going_on(streams, export, None)


def test_partitions_that_a_state_does_not_know_begin_where_they_are_told():
    fields = EventFields("score", "label", model="model")
    sources = [
        StreamInput(ListPartition(name, (b"{}",) * 9), number, 3, "event", fields, 2)
        for number, name in enumerate(("old[0]", "old[1]", "new[0]"))
    ]
    position = {"offset": 7, "place": "", "high_water": 5}
    export = Export("state", "id", "0.1.0", "", (), {0: ("old[0]", position)}, {})
    for start in (None, "earliest"):
        inputs = going_on(Streams(sources, "source"), export, start).inputs
        assert [(each.start, each.high_water) for each in inputs] == [(7, 5), (2, NO_TIME), (2, NO_TIME)]
    with pytest.raises(ConfigError, match="of all partitions; leave one of them out"):
        going_on(Streams(sources[:1], "source"), export, "earliest")
    with pytest.raises(InputError, match=r"was read up to offsets of old\[0\], and this job reads new"):
        going_on(Streams(sources[2:], "source"), export, None)
