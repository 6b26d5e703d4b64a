"""URLs of topics and options of clients: what is understood, and what is refused in which words."""

from __future__ import annotations

import pickle

import pytest
from rocsteady.core.errors import ConfigError, InputError
from rocsteady.transforms.kafka_topic import KafkaTopic, is_kafka, kafka_options


def test_a_url_is_brokers_and_a_topic():
    topic = KafkaTopic.parse(
        "kafka://a.example:9092,[::1]:19092/rows.v2_x-y", ["linger.ms=5", "linger.ms = 7"]
    )
    assert (topic.brokers, topic.name) == ("a.example:9092,[::1]:19092", "rows.v2_x-y")
    assert topic.options == (("linger.ms", "7"),)
    assert topic.url == "kafka://a.example:9092,[::1]:19092/rows.v2_x-y"
    assert is_kafka("KAFKA://a:1/t")


def test_settings_are_ours_then_the_options_then_the_brokers():
    topic = KafkaTopic.parse("kafka://a:1/t", ["acks=1", "client.id=me"])
    assert topic.settings(acks="all", linger_ms=3) == {
        "acks": "1", "client.id": "me", "linger.ms": 3, "bootstrap.servers": "a:1",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("kafka://localhost/t", "'localhost' is no broker; give host:port"),
        ("kafka:///t", "'' is no broker"),
        ("kafka://a:1,/t", "'' is no broker"),
        ("kafka://a:0/t", "'a:0' is no broker"),
        ("kafka://a:70000/t", "'a:70000' is no broker"),
        ("kafka://me:secret@a:1/t", "is no broker"),
        ("kafka://a:1", "'' is no name of a topic"),
        ("kafka://a:1/", "'' is no name of a topic"),
        ("kafka://a:1/..", "'..' is no name of a topic"),
        ("kafka://a:1/a/b", "'a/b' is no name of a topic"),
        (f"kafka://a:1/{'x' * 250}", "at most 249 letters"),
    ],
)
def test_what_is_no_url_is_said(url, said):
    with pytest.raises(ConfigError) as refused:
        KafkaTopic.parse(url)
    assert str(refused.value).startswith(f"{url}: ")
    assert said in str(refused.value)


def test_options_come_from_a_file_too_and_are_not_shown(tmp_path):
    path = tmp_path / "client.properties"
    path.write_text("# who we are\n\n  sasl.username = me\nsasl.password=a=b\n")
    topic = KafkaTopic.parse("kafka://a:1/t", [f"@{path}", "sasl.username=you"])
    assert dict(topic.options) == {"sasl.username": "you", "sasl.password": "a=b"}
    assert "a=b" not in f"{topic!r} {topic} {topic.url}"
    assert pickle.loads(pickle.dumps(topic)) == topic


def test_options_that_are_none_are_said(tmp_path):
    bad = tmp_path / "bad"
    bad.write_text("sasl.password\n")
    (tmp_path / "latin").write_bytes(b"a=\xff")
    for word, said in [
        ("acks", "--kafka-option acks: give key=value"),
        ("=1", "--kafka-option =1: give key=value"),
        ("bootstrap.servers=a:1", "--kafka-option bootstrap.servers: the brokers stand in the URL"),
        (f"@{bad}", f"--kafka-option @{bad}: 'sasl.password' is not key=value: give key=value"),
    ]:
        with pytest.raises(ConfigError) as refused:
            kafka_options([word])
        assert str(refused.value).startswith(said)
    for name, why in [("none", "No such file"), ("latin", "it is not UTF-8")]:
        with pytest.raises(InputError, match=why):
            kafka_options([f"@{tmp_path / name}"])
