"""Settings of a Flink cluster that `up` is given: each is heeded, or refused with its remedy."""

from __future__ import annotations

import zipfile

import pytest
from rocsteady.runners.servers.flink_settings import check_settings, known_settings, memory_of, parse_settings
from rocsteady.runners.servers.processes import ServerError

OURS = ("taskmanager.memory.managed.size", "heartbeat.timeout", "rest.port")


def constant(text):
    """Text as a constant of a Java class: its tag, its length, and the tag of the next constant."""
    return b"\x01" + len(text).to_bytes(2, "big") + text.encode() + b"\x08"


@pytest.fixture
def jars(tmp_path):
    """A folder of Flink's jars that know two settings."""
    with zipfile.ZipFile(tmp_path / "flink-dist-1.jar", "w") as jar:
        known = constant("restart-strategy.type") + constant("slot.request.timeout") + constant("Not.this")
        jar.writestr("org/apache/flink/configuration/SomeOptions.class", known)
        jar.writestr("org/apache/flink/Other.class", constant("not.this"))
        jar.writestr("org/other/Options.class", constant("nor.this"))
    return tmp_path


def test_names_of_settings_are_those_of_flinks_own_options(jars):
    assert known_settings(jars) == {"restart-strategy.type", "slot.request.timeout"}


def test_words_are_keys_and_values_and_the_later_one_counts():
    words = ["restart-strategy.fixed-delay.delay = 1 s", "a.b=c=d", "a.b= e "]
    assert parse_settings(words) == {"restart-strategy.fixed-delay.delay": "1 s", "a.b": "e"}


@pytest.mark.parametrize("word", ["heartbeat.timeout", "=1", "heartbeat.timeout=", " = "])
def test_a_word_that_is_no_key_and_value_is_named(word):
    with pytest.raises(ServerError, match="give KEY=VALUE, such as") as refused:
        parse_settings([word])
    assert repr(word) in str(refused.value)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("restart-strategy.typ", "none", "knows no such setting; did you mean restart-strategy.type"),
        ("restart", "none", "knows no such setting; did you mean restart-strategy.type"),
        ("no.such.thing", "1", "knows no such setting; its documentation names all"),
        ("rest.port", "1", "give it by --flink-port"),
        ("taskmanager.numberOfTaskSlots", "1", "give it by --slots"),
        ("rest.bind-address", "0.0.0.0", "listen on this machine alone; leave it out"),
        ("jmx.server.port", "1", "listen on this machine alone; leave it out"),
        ("taskmanager.memory.process.size", "1g", r"`up` heeds: taskmanager.memory.managed.size"),
        ("env.java.opts.all", "-Da=b", r"`up` heeds: none"),
        ("taskmanager.memory.managed.size", "lots", "give bytes, or a number with k, m or g, such as 64m"),
    ],
)
def test_a_setting_that_would_not_be_heeded_is_refused(jars, key, value, said):
    with pytest.raises(ServerError, match=said) as refused:
        check_settings({key: value}, OURS, jars)
    assert f"{key}={value}" in str(refused.value)


def test_a_setting_that_is_heeded_is_taken(jars):
    check_settings(
        {
            "taskmanager.memory.managed.size": "64 mb",
            "heartbeat.timeout": "9 s",
            "slot.request.timeout": "10 s",
            "metrics.reporter.mine.interval": "10 s",
        },
        OURS,
        jars,
    )


def test_memory_is_the_sum_of_settings_in_bytes():
    settings = {"a": "64m", "b": "1 GB", "c": 5, "d": "2kb", "e": "0"}
    assert memory_of(settings, *settings) == (64 << 20) + (1 << 30) + 5 + (2 << 10)
    with pytest.raises(ServerError, match="a=-1m: give bytes"):
        memory_of({"a": "-1m"}, "a")
