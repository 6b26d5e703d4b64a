"""URLs of topics and options of clients: what is understood, and what is refused in which words."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest
from rocsteady.core.errors import ConfigError, InputError
from rocsteady.transforms.kafka.client import client_settings, make_client
from rocsteady.transforms.kafka.topic import KafkaTopic, is_kafka, kafka_options, without_values


def test_a_url_is_brokers_and_a_topic():
    topic = KafkaTopic.parse(
        "kafka://a.example:9092,[::1]:19092/rows.v2_x-y", ["linger.ms=7", "linger.ms = 7"]
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
    bad.write_text("# who\n\nsasl.password hunter2\n")
    (tmp_path / "latin").write_bytes(b"a=\xff")
    for word, said in [
        (
            "hunter2",
            "--kafka-option (number 1; not shown, it may hold a password): it lacks a key or '='; give key",
        ),
        ("=hunter2", "--kafka-option (number 1; not shown"),
        (
            "sasl.password:hunter2==",
            "--kafka-option (number 1; not shown, it may hold a password): what precedes",
        ),
        ("bootstrap.servers=a:1", "--kafka-option bootstrap.servers: the brokers stand in the URL"),
        (f"@{bad}", f"--kafka-option (line 3 of {bad}; not shown"),
    ]:
        with pytest.raises(ConfigError) as refused:
            kafka_options([word])
        assert str(refused.value).startswith(said)
        assert "hunter2" not in str(refused.value)
    for name, why in [("none", "No such file"), ("latin", "it is not UTF-8")]:
        with pytest.raises(InputError, match=why):
            kafka_options([f"@{tmp_path / name}"])


def test_a_key_has_one_value(tmp_path):
    """Of a file, too; one beside the file stands for its."""
    (tmp_path / "twice").write_text("sasl.password=hunter2\nsasl.password=hunter3\n")
    for words in (["sasl.password=hunter2", "sasl.password=hunter3"], [f"@{tmp_path / 'twice'}"]):
        with pytest.raises(ConfigError) as refused:
            kafka_options(words)
        assert str(refused.value) == (
            "--kafka-option sasl.password is given twice, with two values; leave one out"
        )
    assert kafka_options(["acks=1", "acks=1"]) == {"acks": "1"}


def test_a_url_with_a_password_is_not_shown():
    for url in ("kafka://me:hunter2@a:1/t", "kafka://me:hun/ter2@a:1/t"):
        with pytest.raises(ConfigError, match="--kafka-option @FILE") as refused:
            KafkaTopic.parse(url)
        assert "hun" not in str(refused.value)


def test_texts_of_the_client_are_shown_without_the_values_of_options():
    KafkaTopic.parse("kafka://a:1/t", ["sasl.mechanism=hunter2", "ssl.key.password=1234"]).settings()
    told = without_values("Unsupported SASL mechanism: hunter2 (1234), hunter23, security.protocol SSL")
    assert told == "Unsupported SASL mechanism: *** (***), hunter23, security.protocol SSL"


@pytest.mark.parametrize(
    "option", ["sasl.mechanisms=swordfish", "security.protocol=swordfish", "debug=swordfish"]
)
def test_a_value_that_the_client_refuses_is_not_shown(option, capsys):
    kafka = pytest.importorskip("confluent_kafka")
    topic = KafkaTopic.parse("kafka://localhost:1/t", [option, "linger.ms=5"])
    with pytest.raises(ConfigError) as refused:
        make_client(
            kafka.Producer,
            client_settings(replace(topic, options=(("security.protocol", "SASL_SSL"), *topic.options))),
        )
    assert "swordfish" not in str(refused.value)
    assert "swordfish" not in capsys.readouterr().err
