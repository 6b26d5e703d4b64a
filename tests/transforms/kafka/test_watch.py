"""A watch over a topic whose brokers do not answer: nothing may be read, and no caller waits for long."""

from __future__ import annotations

import time

import pytest
from rocsteady.runners.servers.processes import free_port
from rocsteady.transforms.kafka.topic import KafkaTopic
from rocsteady.transforms.kafka.topic_watch import is_another, watch_of
from rocsteady.transforms.sources.streams.kafka_partition import KafkaPartition

pytest.importorskip("confluent_kafka", reason="pip install '.[kafka]'")


@pytest.mark.parametrize(
    ("was", "now", "other"), [("a", "b", True), ("a", "a", False), ("", "b", False), ("a", "", False)]
)
def test_only_two_known_ids_tell_topics_apart(was, now, other):
    assert is_another(was, now) == other


def test_no_message_is_read_of_a_topic_whose_id_is_not_known():
    topic = KafkaTopic.parse(f"kafka://127.0.0.1:{free_port()}/events")
    partition = KafkaPartition(topic, 0, 1, "cluster", "id")
    began = time.monotonic()
    fetched = partition.fetch(7, 100, 0.0)
    assert time.monotonic() - began < 60
    assert (fetched.offsets, fetched.values, fetched.next, fetched.at_end) == ([], [], 7, False)
    assert not watch_of(topic).check("id", 0.0)
    assert watch_of(topic).partitions == 0
    assert [*partition.added()] == []
    partition.close()


def test_a_process_has_one_watch_for_all_partitions_of_a_topic():
    topic = KafkaTopic.parse(f"kafka://127.0.0.1:{free_port()}/events")
    assert watch_of(topic) is watch_of(KafkaTopic(topic.brokers, topic.name))
