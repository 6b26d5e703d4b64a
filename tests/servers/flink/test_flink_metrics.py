"""What Flink's own reporter gives a monitoring server about a job that runs there."""

from __future__ import annotations

import json
import re
import urllib.request

import pytest
from rocsteady.pipelines.cli import main
from rocsteady.runners.servers.flink import FlinkCluster, worker_options
from rocsteady.runners.servers.packages import flink_jars
from rocsteady.runners.servers.processes import free_port

from tests.support.requirements import lacking, servers
from tests.support.servers.kafka_topics import (
    OPTIONS,
    N,
    events,
    interrupted,
    produce,
    sent,
    start,
    topic_of,
    until,
)
from tests.support.servers.prometheus import filled, needed, prometheus, queries

PREFIX = "flink_taskmanager_job_task_operator_rocsteady_"
PACKAGE = "org.apache.flink.metrics.prometheus"
PORTS = 8


@pytest.fixture
def reporting(tmp_path):
    """A Flink cluster with a reporter, and the ports at which its processes may answer."""
    servers("flink")
    needed()
    if not list(flink_jars().glob("flink-metrics-prometheus-*.jar")):
        lacking(
            f"{flink_jars()} has no reporter: remove it, and get flink again", "ROCSTEADY_REQUIRE_SERVERS"
        )
    first = free_port()
    settings = {
        "metrics.reporter.prom.factory.class": f"{PACKAGE}.PrometheusReporterFactory",
        "metrics.reporter.prom.port": f"{first}-{first + PORTS - 1}",
    }
    with FlinkCluster(tmp_path / "flink", settings=settings) as started:
        yield started, range(first, first + PORTS)


def samples(ports):
    """Return (name, labels, value) of all samples of rocsteady that the processes of a cluster give."""
    found = []
    for port in ports:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
                text = answer.read().decode()
        except OSError:
            continue
        for name, labels, value in re.findall(r"^(\w+)\{(.*)\} (\S+)$", text, re.MULTILINE):
            if "rocsteady" in name:
                found.append((name, labels, float(value)))
    return found


def summed(found, name):
    """Return the sum over the parts of a gauge, such as its shards; a part that two workers have is wrong."""
    parts = [(full, value) for full, _, value in found if re.fullmatch(rf"{PREFIX}{name}_.+", full)]
    assert len({full for full, _ in parts}) == len(parts)
    return sum(value for _, value in parts)


def test_a_monitoring_server_gets_numbers_from_flink_also_after_a_worker_was_killed(
    broker, reporting, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    cluster, ports = reporting
    found = events()
    url = topic_of(broker, "metered", found, 2)
    runner = ["--runner", "flink", "--parallelism", "2", "--checkpointing_interval", "1000"]
    workers = [*cluster.options(), *worker_options(tmp_path)]
    job = start(url, "--output", "rows/", "--shards", "4", *OPTIONS, *runner, *workers)

    def tells(events_sent, newest):
        now = samples(ports)
        return (
            summed(now, "offset") == events_sent
            and summed(now, "lag") == 0
            and summed(now, "evaluators") == 2
            and max((value for name, _, value in now if "newest_event_timestamp" in name), default=0)
            == newest
        )

    addresses = [word for port in ports for word in ("--scrape-flink", f"127.0.0.1:{port}")]
    assert main(["monitoring", "monitoring", *addresses]) == 0
    try:
        until(lambda: tells(N, found[-1]["time"]) or job.poll() is not None)
        now = samples(ports)
        assert summed(now, "state_bytes") > 10_000
        assert sum(value for name, _, value in now if name == f"{PREFIX}events_read") == N
        distributions = {value for name, _, value in now if name in (f"{PREFIX}lag", f"{PREFIX}state_bytes")}
        assert distributions == {0.0}, "Flink's reporter can tell distributions: gauges are not needed"
        with prometheus(tmp_path / "monitoring" / "prometheus.yml", tmp_path) as server:

            def value_of(query):
                """The number that a query gives; None where it gives nothing yet."""
                given = server.found(query)
                return given[0][1] if given else None

            until(lambda: value_of("sum(rocsteady_evaluators)") == 2)
            until(lambda: value_of("sum(rocsteady_lag)") == 0)
            assert value_of("sum(rocsteady_offset)") == N
            assert value_of("sum(rocsteady_events_read_total)") == N
            assert value_of("count(rocsteady_state_bytes)") == value_of(
                "count(count by (shard) (rocsteady_state_bytes))"
            )
            assert value_of("count by (partition) (rocsteady_offset{partition='metered_1_'})") == 1
            assert value_of("count({__name__=~'flink.*rocsteady_(lag|state_bytes).*'})") is None
            board = json.loads((tmp_path / "monitoring" / "dashboard.json").read_text())
            for query in queries(board, "Events per second", "Newest event: how long ago"):
                asked = filled(query, ".+")
                until(lambda asked=asked: value_of(asked) is not None)

        killed = cluster.task_managers[-1]
        killed.kill()
        cluster.add_task_manager()
        later = [{**event, "id": f"later-{event['id']}"} for event in found[-100:]]
        newest = found[-1]["time"] + 50
        later.append({**later[-1], "id": "last", "time": newest})
        produce(broker, "metered", sent(later, 2))
        until(lambda: tells(N + len(later), newest) or job.poll() is not None)
        read = sum(value for name, _, value in samples(ports) if name == f"{PREFIX}events_read")
        assert len(later) <= read < N, "a counter of Flink begins anew"
    finally:
        words = interrupted(job)
    assert "Traceback" not in words, words
