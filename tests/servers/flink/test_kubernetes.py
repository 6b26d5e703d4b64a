"""The parts of examples/deploy/kubernetes.yaml on this machine: its settings of Flink, its pool, its command.

What a cluster of Kubernetes would give, addresses and a volume, are ports and a folder here.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import yaml
from rocsteady.runners.servers.flink import FlinkCluster, JobServer, WorkerPool

from tests.support.processes.command import COMMAND
from tests.support.requirements import servers
from tests.support.servers.kafka_topics import events, topic_of, until

MANIFEST = Path(__file__).parents[3] / "examples" / "deploy" / "kubernetes.yaml"
OBJECTS = {each["kind"]: each for each in yaml.safe_load_all(MANIFEST.read_text("utf-8"))}
CLUSTER = OBJECTS["FlinkDeployment"]["spec"]
(EVALUATE,) = OBJECTS["Job"]["spec"]["template"]["spec"]["containers"]


def test_the_cluster_and_the_command_of_the_manifest_give_rows_and_go_on_from_a_savepoint(broker, tmp_path):
    servers("flink")
    elsewhere = ("high-availability.", "taskmanager.memory.")  # of Kubernetes; of the size of a pod
    settings = {
        name: value.replace("/state/", f"{tmp_path}/")
        for name, value in CLUSTER["flinkConfiguration"].items()
        if not name.startswith(elsewhere)
    }
    replicas = CLUSTER["taskManager"]["replicas"]
    topic_of(broker, "scored", events(4_000), 2)  # more than --every=1000 of each of two models
    for name in ("rows", "rejected"):
        broker.create_topic(name, partitions=1)
    with (
        FlinkCluster(tmp_path, task_managers=replicas, settings=settings) as cluster,
        JobServer(tmp_path, cluster.address) as jobs,
        WorkerPool(tmp_path) as pool,
    ):
        places = {
            "kafka:9092": broker.address, "rocsteady-rest:8081": cluster.address,
            "localhost:8099": jobs.address, "localhost:50000": pool.address, "/state/": f"{tmp_path}/",
        }  # fmt: skip
        words = EVALUATE["command"][1:]
        for name, address in places.items():
            assert any(name in word for word in words), name
            words = [word.replace(name, address) for word in words]
        command = [*COMMAND, *words]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as first:
            until(lambda: messages_in(broker, "rows") >= 2)
            savepoint = cluster.savepoint(cluster.jobs()[0].identity, stop=True)
            said = first.communicate(timeout=60)[1]
        assert first.returncode == 0, said
        assert savepoint.startswith(f"file:{tmp_path}/savepoints/")
        with subprocess.Popen([*command, f"--savepoint_path={savepoint}"], stderr=subprocess.PIPE) as second:
            until(lambda: cluster.jobs()[0].state == "RUNNING")
            assert len(cluster.jobs()) == 2
            cluster.cancel(cluster.jobs()[0].identity)
            second.communicate(timeout=60)


def messages_in(broker, topic):
    """Return the number of messages that a topic of one partition has had."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "of-the-test"})
    try:
        return consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=60)[1]
    finally:
        consumer.close()
