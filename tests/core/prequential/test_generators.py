"""Generated streams: what they are made of, where concepts change, and what they are refused."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from rocsteady.core.errors import ConfigError, MissingPackageError
from rocsteady.core.prequential.generators import KINDS, GeneratedStream
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import KNeighborsClassifier

pytest.importorskip("river")

PAPER = ["led:50000", "sea:50", "sea:50000", "hyperplane:10:0.001", "rbf:0:0", "rbf:50:0.001", "agrawal:50"]


def sums_of(found):
    """x0 + x1 of SEA, and the label."""
    return np.array([each["x0"] + each["x1"] for each in found]), np.array([each["label"] for each in found])


@pytest.mark.slow
@pytest.mark.parametrize("text", PAPER)
def test_a_stream_is_the_same_whenever_and_in_however_many_shards(text):
    stream = GeneratedStream.parse(text, count=300, seed=3)
    whole = list(stream.instances())
    assert list(GeneratedStream.parse(text, count=300, seed=3).instances()) == whole
    assert list(GeneratedStream.parse(text, count=300, seed=4).instances()) != whole
    shards = [list(stream.instances(shard, 4)) for shard in range(4)]
    assert sorted((each for shard in shards for each in shard), key=lambda each: each["time"]) == whole
    assert [each["time"] for each in shards[2]] == list(range(2, 300, 4))
    assert [each["id"] for each in whole] == [f"3-{number}" for number in range(300)]


@pytest.mark.parametrize("kind", KINDS)
def test_features_have_the_names_and_types_that_are_announced(kind):
    stream = GeneratedStream(kind, count=200)
    for each in stream.instances():
        assert set(each) == {*stream.numbers, *stream.texts, "label", "id", "time"}
        assert all(isinstance(each[name], float) for name in stream.numbers)
        assert all(isinstance(each[name], str) for name in stream.texts)
    assert {str(each["label"]) for each in stream.instances()} == set(stream.classes)


def test_sea_changes_its_threshold_where_it_is_told_to():
    found = list(GeneratedStream("sea", 8_000, drifts=(2_000, 4_000, 6_000), noise=0.0).instances())
    for start, threshold in ((0, 8.0), (2_000, 9.0), (4_000, 7.0), (6_000, 9.5)):
        sums, labels = sums_of(found[start : start + 2_000])
        assert (labels == (sums > threshold)).all()


def test_a_wide_drift_lets_the_next_concept_take_over_by_the_sigmoid():
    stream = GeneratedStream("sea", 20_000, drifts=(10_000,), width=4_000, noise=0.0)
    sums, labels = sums_of(list(stream.instances()))
    between = (sums > 8.0) & (sums <= 9.0)  # positive in the first concept alone
    places = np.arange(20_000)
    for start in range(0, 20_000, 2_000):
        chosen = between & (places >= start) & (places < start + 2_000)
        expected = np.mean(1 / (1 + np.exp(4 * (places[chosen] - 10_000) / 4_000)))
        assert labels[chosen].mean() == pytest.approx(expected, abs=4 * 0.5 / np.sqrt(chosen.sum()))


def test_without_a_drift_there_is_one_concept():
    sums, labels = sums_of(list(GeneratedStream.parse("sea", 2_000, noise=0.0).instances()))
    assert (labels == (sums > 8.0)).all()
    noisy_sums, noisy = sums_of(list(GeneratedStream.parse("sea", 20_000).instances()))
    assert np.mean(noisy != (noisy_sums > 8.0)) == pytest.approx(0.1, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("still", "moved", "model"),
    [
        ("hyperplane", "hyperplane:10:0.002", LinearDiscriminantAnalysis()),
        ("rbf", "rbf:50:0.0003", KNeighborsClassifier(5)),
    ],
)
def test_moving_concepts_move(still, moved, model):
    """What learnt the beginning is as good at the end of what stands still, and worse at what moved."""

    def loss(text):
        found = list(GeneratedStream.parse(text, 6_000, seed=2).instances())
        matrix = np.array([[each[f"x{k}"] for k in range(10)] for each in found])
        labels = np.array([each["label"] for each in found])
        model.fit(matrix[:1_000], labels[:1_000])
        near, far = slice(1_000, 1_500), slice(5_000, 6_000)
        return model.score(matrix[near], labels[near]) - model.score(matrix[far], labels[far])

    assert abs(loss(still)) < 0.04
    assert loss(moved) > 0.08


def test_names_of_the_paper():
    stream = GeneratedStream.parse("LED:50000", 1_000_000)
    assert (stream.kind, stream.width, stream.drifts) == ("led", 50_000, (250_000, 500_000, 750_000))
    stream = GeneratedStream.parse("rbf:10:0.0001", 1_000)
    assert (stream.moving, stream.speed, stream.drifts) == (10, 0.0001, ())
    assert GeneratedStream.parse("sea:50", 1_000, drifts=[100]).drifts == (100,)
    assert GeneratedStream.parse("sea:50", 1_000, drifts=[]).drifts == ()
    assert GeneratedStream.parse("sea:50", 2).drifts == (1,)


def test_urls():
    url = "generate://sea?count=100000&seed=7&drift=50000,70000&drift=80000&width=50&noise=0.2"
    expected = GeneratedStream("sea", 100_000, 7, (50_000, 70_000, 80_000), 50, noise=0.2)
    assert GeneratedStream.of_url(url) == expected
    with_width = GeneratedStream.of_url("generate://rbf?count=100&width=9")
    assert (with_width.drifts, with_width.width) == ((25, 50, 75), 9)
    assert GeneratedStream.of_url("generate://rbf:50:0.001?count=9") == GeneratedStream(
        "rbf", 9, moving=50, speed=0.001
    )


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("generate://waveform?count=9", "the stream 'waveform' is not known; there are sea[:WIDTH]"),
        ("generate://sea", "does not say how many instances"),
        ("generate://sea?count=many", "'many' is no whole number"),
        ("generate://sea?count=9&count=10", "'count' is not known or given twice"),
        ("generate://sea?count=9&drifts=3", "'drifts' is not known"),
        ("generate://sea?count=9&drift=9", "below the count of 9"),
        ("generate://sea?count=9&drift=5,3", "in ascending order"),
        ("generate://sea?count=0", "count=0; give a whole number from 1"),
        ("generate://sea?count=9&seed=-1", "seed=-1"),
        ("generate://sea:x?count=9", "'x' is no whole number"),
        ("generate://sea:5:5?count=9", "is not understood"),
        ("generate://sea:5?count=9&width=7", "says its width twice"),
        ("generate://hyperplane:10?count=9", "is not understood"),
        ("generate://hyperplane:11:0.1?count=9", "moving=11; give a whole number from 0 to 10"),
        ("generate://rbf:5:7?count=9", "a speed of 7.0"),
        ("generate://rbf?count=9&noise=0.5", "rbf has none, leave it out"),
        ("generate://sea?count=9&noise=nan", "noise=nan"),
        ("generate:sea?count=9", "is no stream to generate: write generate://NAME?count=N"),
        ("generate://sea/x?count=9", "is no stream to generate"),
    ],
)
def test_urls_that_are_none(url, words):
    with pytest.raises(ConfigError) as problem:
        GeneratedStream.of_url(url)
    assert words in str(problem.value)


def test_shards_are_numbered_from_0():
    with pytest.raises(ConfigError, match="shard 2 of 2"):
        next(GeneratedStream("sea", 5).instances(2, 2))


def test_without_river_the_words_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "river.datasets.synth", None)
    with pytest.raises(MissingPackageError, match=r"pip install '\.\[prequential\]'"):
        next(GeneratedStream("sea", 5).instances())
