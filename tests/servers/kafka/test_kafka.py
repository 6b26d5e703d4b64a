"""A real broker: what is produced is consumed, and outlives kill -9; passwords; the broker's own words."""

from __future__ import annotations

import pytest
from rocsteady.runners.servers.kafka import KafkaBroker
from rocsteady.runners.servers.processes import ServerError

from tests.support.servers.kafka_topics import PATIENCE
from tests.support.servers.secure_broker import PASSWORD, USER

LONG_AGO = 1_000_000_000_000  # ms: September 2001


def produce(broker, topic, values):
    from confluent_kafka import Producer

    failed = []
    settings = {
        "enable.idempotence": True,
        "message.max.bytes": 10_000_000,
        "topic.metadata.propagation.max.ms": 1_000,
        "log_level": 0,
    }
    producer = Producer({"bootstrap.servers": broker.address, **settings})
    for value in values:
        producer.produce(
            topic,
            value,
            timestamp=LONG_AGO,
            on_delivery=lambda error, _: failed.append(error) if error else None,
        )
    assert producer.flush(30) == 0
    return failed


def consume(broker, topic, count, **settings):
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "test", "log_level": 0, **settings})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    try:
        found = consumer.consume(count, 30)
    finally:
        consumer.close()
    assert [message.error() for message in found if message.error()] == []
    return [(message.offset(), message.value()) for message in found]


def test_old_records_outlive_a_killed_broker(broker):
    broker.create_topic("events")
    values = [str(number).encode() for number in range(1_000)]
    assert produce(broker, "events", values) == []
    assert consume(broker, "events", 1_000) == list(enumerate(values))
    first = broker.pid
    broker.kill()
    assert not broker.running
    broker.start()
    assert broker.pid != first
    assert produce(broker, "events", [b"after"]) == []
    assert consume(broker, "events", 1_001) == list(enumerate([*values, b"after"]))


def test_partitions_and_settings_of_a_topic(broker):
    from confluent_kafka.admin import AdminClient, ConfigResource

    broker.create_topic("parted", partitions=3, settings={"retention.ms": 5_000})
    client = AdminClient({"bootstrap.servers": broker.address})
    assert len(client.list_topics("parted", timeout=PATIENCE).topics["parted"].partitions) == 3
    asked = ConfigResource(ConfigResource.Type.TOPIC, "parted")
    assert client.describe_configs([asked])[asked].result(30)["retention.ms"].value == "5000"


def test_the_broker_refuses_in_its_own_words(broker):
    broker.create_topic("once")
    with pytest.raises(ServerError, match=r"topic 'once' cannot be made at .*already exists"):
        broker.create_topic("once")
    failed = produce(broker, "never-made", [b"x"])
    assert [error.name() for error in failed] in (["_UNKNOWN_TOPIC"], ["UNKNOWN_TOPIC_OR_PART"])


def test_passwords(broker):
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    def topics(password, patience):
        settings = {"bootstrap.servers": broker.sasl_address, "security.protocol": "SASL_PLAINTEXT"}
        login = {"sasl.mechanism": "PLAIN", "sasl.username": USER, "sasl.password": password}
        return AdminClient({**settings, **login, "log_level": 0}).list_topics(timeout=patience).topics

    broker.create_topic("secret")
    assert "secret" in topics(PASSWORD, PATIENCE)
    with pytest.raises(KafkaException):
        topics("wrong", 4)


def test_tls(broker):
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    def topics(address, protocol, patience):
        settings = {"bootstrap.servers": address, "security.protocol": protocol, "log_level": 0}
        client = AdminClient({**settings, "ssl.ca.location": str(broker.certificate)})
        return client.list_topics(timeout=patience).topics

    broker.create_topic("wrapped")
    assert "wrapped" in topics(broker.tls_address, "SSL", PATIENCE)
    for address, protocol in [(broker.tls_address, "PLAINTEXT"), (broker.address, "SSL")]:
        with pytest.raises(KafkaException):
            topics(address, protocol, 4)  # it gets no answer, and waits to the end


def test_a_message_too_large_is_refused(broker):
    broker.create_topic("large", settings={"max.message.bytes": 2_000_000})
    assert produce(broker, "large", [b"x" * 1_500_000]) == []
    assert [error.name() for error in produce(broker, "large", [b"x" * 3_000_000])] == ["MSG_SIZE_TOO_LARGE"]


def test_two_servers_cannot_have_one_port(broker, tmp_path):
    with pytest.raises(ServerError, match=rf"kafka cannot have port {broker.port}, .*: choose another"):
        KafkaBroker(tmp_path, port=broker.port).start()
