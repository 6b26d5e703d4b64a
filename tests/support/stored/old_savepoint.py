"""A savepoint of Flink that an older rocsteady wrote, the input of its job, and how to make it anew.

`tests/servers/flink/savepoint` holds the savepoint and the rows that its job had written by then. Its README
says which commit made them. To make them anew, with the code that Python imports as rocsteady, and with Flink
and Kafka fetched:

    python -m tests.support.stored.old_savepoint tests/servers/flink/savepoint

The job joins predictions with labels, both from topics. So each of its stateful steps has state at the
savepoint: the readers of three partitions, the joins and the evaluators.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from rocsteady.runners.servers.flink import FlinkCluster
from rocsteady.runners.servers.kafka import KafkaBroker
from rocsteady.transforms.kafka.client import check_topic
from rocsteady.transforms.kafka.topic import KafkaTopic

from tests.support import ROOT
from tests.support.servers.kafka_topics import PATIENCE, produce, start, until

FOLDER = ROOT / "tests" / "servers" / "flink" / "savepoint"
STATE, ROWS = "state", "rows.jsonl"
PREDICTIONS, LABELS = "predictions", "labels"
LAST = "last"
"""The model whose only event ends the silence of the others; its own row comes with the end of the input."""

OPTIONS = [
    *("--time", "made", "--label-time", "known", "--id", "id", "--ttl", "20m", "--label-lead", "2m"),
    *("--deduplicate", "1h", "--idle-ttl", "6h", "--slice", "country", "--window", "last:100"),
    *("--every", "25", "--order", "time:0s", "--shards", "2"),
]
_N = 1_000
_BEGAN = 1_700_000_000
_DAY = 86_400
_PARTS = (0.2, 0.3, 0.4, 0.5)
"""The old job got its input in turns, up to these parts of the time: so there are logs behind snapshots."""

_QUIET_SECONDS = 10
"""After the first new row of a turn: all of its rows are there by then."""


def partitions():
    """Return the records of the job: partitions 0 and 1 of the predictions, and the one of the labels.

    Some predictions and labels come twice, some labels never. A label comes from four minutes before its
    prediction to 27 minutes behind it. A day later the model `LAST` has one prediction with its label, and
    each partition ends with a record of the day after that. So the other models are silent for longer than
    --idle-ttl, and their last rows come though the topics have no end.
    """
    rng = random.Random(20)
    predictions, labels, made = [], [], _BEGAN
    for number in range(_N):
        made += int(20 * rng.random())
        positive = rng.random() < 0.4
        prediction = {
            "id": f"p{number}",
            "model": "a" if rng.random() < 0.6 else "b",
            "made": made,
            "score": round(0.7 * rng.random() + 0.3 * positive, 2),
            "country": "NZ" if rng.random() < 0.5 else "AU",
        }
        predictions.append(prediction)
        if rng.random() < 0.05:
            predictions.append(prediction | {"made": made + 30})
        known = made - 240 + int(1_860 * rng.random())
        if rng.random() < 0.9:
            labels.append({"id": f"p{number}", "label": int(positive), "known": known})
        if rng.random() < 0.05:
            labels.append({"id": f"p{number}", "label": int(not positive), "known": known + 40})
    predictions.sort(key=lambda record: record["made"])
    labels.sort(key=lambda record: record["known"])
    last = {"id": "last", "model": LAST, "made": made + _DAY, "score": 0.5, "country": "NZ"}
    ends = [last | {"id": f"end {number}", "made": made + 2 * _DAY} for number in range(2)]
    return (
        [*predictions[::2], last, ends[0]],
        [*predictions[1::2], ends[1]],
        [
            *labels,
            {"id": "last", "label": 1, "known": made + _DAY},
            {"id": "end", "label": 1, "known": made + 2 * _DAY},
        ],
    )


def first_part(share):
    """Return so large a part of the whole time, from 0 to 1, of each partition."""
    until_time = _BEGAN + share * (partitions()[1][-2]["made"] - _BEGAN)
    return [[each for each in records if _time(each) <= until_time] for records in partitions()]


def _time(record):
    return record["made"] if "made" in record else record["known"]


def send(broker, since, up_to):
    """Send what `up_to`, partitions, has beyond `since`."""
    for number, (before, now) in enumerate(zip(since, up_to, strict=True)):
        topic, partition = (LABELS, 0) if number == 2 else (PREDICTIONS, number)
        messages = [(partition, json.dumps(record).encode(), 0) for record in now[len(before) :]]
        produce(broker, topic, messages)


def create_topics(broker):
    """Make the two topics; return the arguments of `rocsteady evaluate` that read them."""
    broker.create_topic(PREDICTIONS, partitions=2)
    broker.create_topic(LABELS)
    url = f"kafka://{broker.address}"
    return [f"{url}/{PREDICTIONS}", "--labels", f"{url}/{LABELS}", *OPTIONS]


def take_to_topics(savepoint, broker):
    """Give a savepoint the ids of topics that were made anew: a job goes on from its own topics alone."""
    (metadata,) = Path(savepoint).iterdir()
    content = metadata.read_bytes()
    for name in (PREDICTIONS, LABELS):
        now = check_topic(KafkaTopic(broker.address, name), name).id.encode()
        pattern = rf'"name":"{name}\[\d\]","origin":"[^"]*topic id ([^"]*)"'
        (was,) = set(re.findall(pattern.encode(), content))
        assert len(was) == len(now)
        content = content.replace(was, now)
    metadata.write_bytes(content)


def runner(cluster):
    """Return the options by which a job goes to a cluster."""
    return ["--runner", "flink", "--parallelism", "1", *cluster.options()]


def written(folder):
    """Return the rows in a folder, as often as they are there, in order of model, slice and number."""
    lines = [line for path in Path(folder).glob("*.jsonl") for line in path.read_text().splitlines()]
    rows = [json.loads(line) for line in lines]
    return sorted(rows, key=lambda row: (row["model"], row["slice"], row["row"]))


def make(target: Path) -> None:
    """Run the job on half of its input, which comes in parts; keep its savepoint and its rows in a folder."""
    with (
        tempfile.TemporaryDirectory(prefix="savepoint-") as name,
        FlinkCluster(Path(name) / "flink", settings={"state.storage.fs.memory-threshold": "1mb"}) as cluster,
        KafkaBroker(Path(name) / "kafka") as broker,
    ):
        rows = Path(name) / "rows"
        rows.mkdir()
        sent = first_part(_PARTS[0])
        words = create_topics(broker)
        send(broker, [[], [], []], sent)
        job = start(*words, "--output", f"{rows}/", *runner(cluster))
        try:
            for part in _PARTS:
                before, more = len(written(rows)), first_part(part)
                send(broker, sent, more)
                sent = more
                until(lambda before=before: len(written(rows)) > before or job.poll() is not None, 180)
                time.sleep(_QUIET_SECONDS)
            savepoint = cluster.savepoint(cluster.jobs()[0].identity, stop=True)
            print(job.communicate(timeout=PATIENCE)[1])
        finally:
            if job.poll() is None:
                job.send_signal(signal.SIGINT)
                print(job.communicate(timeout=PATIENCE)[1])
        shutil.rmtree(target / STATE, ignore_errors=True)
        shutil.copytree(savepoint.removeprefix("file:"), target / STATE)
        (target / ROWS).write_text("".join(f"{json.dumps(row)}\n" for row in written(rows)))


if __name__ == "__main__":
    make(Path(sys.argv[1]))
