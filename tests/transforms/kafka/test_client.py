"""Why no broker answers is said with the remedy."""

from __future__ import annotations

import pytest
from rocsteady.transforms.kafka.client import no_answer
from rocsteady.transforms.kafka.topic import KafkaTopic

confluent_kafka = pytest.importorskip("confluent_kafka", reason="pip install '.[kafka]'")


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        ("SSL handshake failed: wrong version number: PLAINTEXT listener", "security.protocol out"),
        ("Disconnected: SSL connection closed by peer", "security.protocol out"),
        ("Connect failed: Connection refused", "start the broker"),
    ],
)
def test_a_listener_without_tls_may_answer_or_close(said, remedy):
    error = confluent_kafka.KafkaError(confluent_kafka.KafkaError._TRANSPORT)
    told = no_answer(KafkaTopic.parse("kafka://host:9092/rows"), error, said)
    assert told.startswith(f"no broker answers at host:9092 ({said}); ")
    assert remedy in told
