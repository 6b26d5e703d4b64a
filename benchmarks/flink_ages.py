"""How old rows are when they can be read, while events of now come: on a Flink cluster, and on Prism.

    python -m benchmarks.flink_ages BROKER TOPIC EVENTS_PER_SECOND MODELS PARTITIONS PREFIX

writes such events to a topic until it is ended: `LiveFeed` runs this command.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from rocsteady.core.ids.sharding import shard_of
from rocsteady.runners.servers.packages import prism_path

from .cluster_events import Events
from .cluster_jobs import ClusterJob, Stage
from .processes import COMMAND, ROOT


class LiveFeed:
    """Writes events of now to a topic, so many a second, from a process of its own."""

    def __init__(
        self, broker: str, topic: str, rate: float, models: int, partitions: int, prefix: str = "m"
    ) -> None:
        words = [broker, topic, str(rate), str(models), str(partitions), prefix]
        self._process = subprocess.Popen([sys.executable, "-m", "benchmarks.flink_ages", *words], cwd=ROOT)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()


def feed_of_now(broker: str, topic: str, rate: float, models: int, partitions: int, prefix: str) -> None:
    """Write events whose times are now, until the process is ended: some each 5 ms."""
    settings = {"bootstrap.servers": broker, "linger.ms": 2, "log_level": 0}
    producer = Producer({**settings, "queue.buffering.max.messages": 2_000_000})
    random = np.random.default_rng(3)
    began, written = time.time(), 0
    last = [0] * partitions
    while True:
        due = int((time.time() - began) * rate)
        for place in range(written, due):
            partition = place % partitions
            label = int(random.random() < 0.3)
            last[partition] = max(time.time_ns() // 1_000, last[partition] + 1)
            event = {
                "model": f"{prefix}{place // partitions % models:04d}",
                "score": round(random.normal(label, 1.5), 6), "label": label, "time": last[partition],
                "id": f"e{place}",
            }  # fmt: skip
            producer.produce(topic, json.dumps(event, separators=(",", ":")).encode(), partition=partition)
        written = max(written, due)
        producer.poll(0)
        time.sleep(0.005)


def _ages(broker: str, topic: str, seconds: float, warm_up: float) -> dict[str, list[float]]:
    """Return by model how old rows were when they could be read: since the event that made each."""
    consumer = Consumer(
        {"bootstrap.servers": broker, "group.id": "age", "log_level": 0, "fetch.wait.max.ms": 10}
    )
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    ages: dict[str, list[float]] = defaultdict(list)
    began = None
    limit = time.monotonic() + 180
    while began is None or time.monotonic() < began + warm_up + seconds:
        if began is None and time.monotonic() > limit:
            raise RuntimeError("no row came within 180 s")
        for message in consumer.consume(500, 0.005):
            if message.error() is not None:
                continue
            began = began or time.monotonic()
            if time.monotonic() > began + warm_up:
                row = json.loads(message.value())
                made = np.datetime64(row["time"].removesuffix("Z"), "us").astype(int)
                ages[row["model"]].append(time.time() - made / 1e6)
    consumer.close()
    return ages


def _median_and_high(ages: Iterable[Sequence[float]]) -> tuple[float, float]:
    """Return median and 95% quantile."""
    median, high = np.quantile(np.concatenate([*map(np.asarray, ages)]), (0.5, 0.95))
    return float(median), float(high)


def latency_on_flink(stage: Stage, seconds: float, rate: int) -> tuple[float, float]:
    """Return median and 95% quantile of rows' ages, in seconds, at so many events a second."""
    topic, rows = f"live-flink-{rate}", f"ages-flink-{rate}"
    stage.broker.create_topic(topic, partitions=2)
    stage.broker.create_topic(rows)
    job = ClusterJob(
        stage, stage.url(topic), *Events(every=min(rate // 100, 100)).options(), "--shards", "8",
        "--output", stage.url(rows),
    )  # fmt: skip
    feed = LiveFeed(stage.broker.address, topic, rate, 10, 2)
    try:
        job.start()
        ages = _ages(stage.broker.address, rows, seconds, 20)
    finally:
        feed.stop()
        job.cancel()
    return _median_and_high(ages.values())


def latency_on_prism(stage: Stage, seconds: float) -> tuple[float, float]:
    """Return median and 95% quantile of rows' ages, in seconds, on Prism at 20,000 events/s."""
    stage.broker.create_topic("live-prism", partitions=2)
    stage.broker.create_topic("ages-prism")
    words = [
        stage.url("live-prism"), *Events(every=100).options(), "--shards", "8", "--output",
        stage.url("ages-prism"), "--runner", "prism", f"--prism_location={prism_path()}",
        "--environment_type=LOOPBACK", "--start", "latest",
    ]  # fmt: skip
    feed = LiveFeed(stage.broker.address, "live-prism", 20_000, 10, 2)
    with (stage.folder / "prism.log").open("ab") as log:
        job = subprocess.Popen(
            [sys.executable, "-c", COMMAND, "evaluate", *words], cwd=ROOT, stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip
    try:
        ages = _ages(stage.broker.address, "ages-prism", seconds, 20)
    finally:
        feed.stop()
        job.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            job.wait(15)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(job.pid, signal.SIGKILL)
        job.wait()
    return _median_and_high(ages.values())


HOT, _SHARDS = "hot0000", 8


def neighbours_of_a_hot_model(
    stage: Stage, seconds: float, hot: float, *own: str
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the ages of rows of 40 models: of those in a shard with another one, and of those in no such.

    hot  events a second of that one, beside 2,000 of the 40 together
    """
    topic, rows = f"hot-{hot:.0f}-{len(own)}", f"hot-rows-{hot:.0f}-{len(own)}"
    stage.broker.create_topic(topic, partitions=2)
    stage.broker.create_topic(rows)
    job = ClusterJob(
        stage, stage.url(topic), *Events(every=100).options(), "--shards", str(_SHARDS), *own,
        "--output", stage.url(rows),
    )  # fmt: skip
    feeds = [LiveFeed(stage.broker.address, topic, 2_000, 40, 2)]
    if hot:
        feeds.append(LiveFeed(stage.broker.address, topic, hot, 1, 2, "hot"))
    try:
        job.start()
        ages = _ages(stage.broker.address, rows, seconds, 20)
    finally:
        for feed in feeds:
            feed.stop()
        job.cancel()
    ages.pop(HOT, None)
    (shard,) = shard_of((HOT,), _SHARDS).tolist()
    is_near = {model: shard_of((model,), _SHARDS)[0] == shard for model in ages}
    near = [ages[model] for model in ages if is_near[model]]
    return _median_and_high(near), _median_and_high(ages[model] for model in ages if not is_near[model])


if __name__ == "__main__":
    broker, topic, rate, models, partitions, prefix = sys.argv[1:]
    feed_of_now(broker, topic, float(rate), int(models), int(partitions), prefix)
