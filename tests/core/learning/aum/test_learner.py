"""AumLearner: what it learns online, what it holds, and that a snapshot goes on as the learner would have."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from rocsteady.core.errors import ConfigError, InputError
from rocsteady.core.learning.aum.learner import AumLearner
from sklearn.metrics import roc_auc_score

Stream = list[tuple[dict[str, Any], Any]]


def stream(n: int, seed: int = 1, turn: int | None = None, positives: float = 0.2) -> Stream:
    """Two numbers of other units and a text say something; from `turn` on the numbers say the opposite."""
    rng = np.random.default_rng(seed)
    events: Stream = []
    for i in range(n):
        label = bool(rng.random() < positives)
        sign = (1 if label else -1) * (-1 if turn is not None and i >= turn else 1)
        colour = ("red" if label else "blue") if rng.random() < 0.4 else "grey"
        events.append(
            ({"a": 1e6 + 500 * (sign + rng.normal()), "b": rng.normal() - sign / 2, "colour": colour}, label)
        )
    return events


def prequential(learner: AumLearner, events: Stream) -> np.ndarray:
    found = []
    for x, y in events:
        found.append(learner.predict_proba_one(x).get(True, 0.5))
        learner.learn_one(x, y)
    return np.array(found)


def test_it_ranks_calibrates_and_follows_a_change() -> None:
    events = stream(6_000, turn=3_000)
    labels = np.array([y for _, y in events])
    scores = prequential(AumLearner(window=500, every=20), events)
    before, after = slice(1_000, 3_000), slice(4_500, 6_000)
    for part in (before, after):
        assert roc_auc_score(labels[part], scores[part]) > 0.93
        assert np.mean((scores[part] - labels[part]) ** 2) < 0.085  # the prevalence alone gives .16
        assert scores[part].mean() == pytest.approx(labels[part].mean(), abs=0.03)


def test_units_do_not_matter() -> None:
    events = stream(800)
    other = [({"a": x["a"] * 1024.0, "b": x["b"] / 64.0, "colour": x["colour"]}, y) for x, y in events]
    one, same = (prequential(AumLearner(window=200, every=20), given) for given in (events, other))
    np.testing.assert_allclose(one, same, rtol=1e-6)


def test_a_snapshot_goes_on_as_it_would_have() -> None:
    events = stream(700)
    whole = prequential(AumLearner(window=200, every=20), events)
    for cut in (1, 199, 333, 400):
        learner = AumLearner(window=200, every=20)
        first = prequential(learner, events[:cut])
        rest = prequential(pickle.loads(pickle.dumps(learner)), events[cut:])
        assert np.concatenate([first, rest]).tolist() == whole.tolist()


def test_before_the_first_step_there_is_no_opinion() -> None:
    learner = AumLearner(window=10, every=5)
    assert learner.predict_proba_one({"x": 1.0}) == {}
    assert learner.predict_one({"x": 1.0}) is None
    for i in range(10):
        learner.learn_one({"x": float(i)}, False)  # one class
    assert learner.predict_proba_one({"x": 1.0}) == pytest.approx({False: 11 / 12, True: 1 / 12})


def test_one_class_so_far_is_the_probable_one() -> None:
    learner = AumLearner(window=100, every=10)
    for i in range(300):
        learner.learn_one({"x": float(i % 7)}, False)
    assert learner.predict_proba_one({"x": 1.0})[True] == pytest.approx(1 / 102)
    for i in range(50):
        learner.learn_one({"x": float(i % 7)}, i % 7 > 3)
    low, high = (learner.predict_proba_one({"x": x})[True] for x in (0.0, 6.0))
    assert low < 0.1 < high
    for i in range(200):  # and once more: no positive is left in the window
        learner.learn_one({"x": float(i % 7)}, False)
    low, high = (learner.predict_proba_one({"x": x})[True] for x in (0.0, 6.0))
    assert low < high < 0.5


def test_classes_are_one_against_the_others() -> None:
    rng = np.random.default_rng(2)
    learner, hits = AumLearner(window=200, every=20), []
    centres = {"a": (2, 0), "b": (-2, 1), "c": (0, -3)}
    for _ in range(1_200):
        label = "abc"[rng.integers(3)]
        x = {name: c + rng.normal() for name, c in zip("xy", centres[label], strict=True)}
        hits.append(learner.predict_one(x) == label)
        learner.learn_one(x, label)
    assert np.mean(hits[400:]) > 0.85
    probabilities = learner.predict_proba_one({"x": 2.0, "y": 0.0})
    assert sum(probabilities.values()) == pytest.approx(1.0)
    assert max(probabilities, key=lambda label: probabilities[label]) == "a"


def test_missing_numbers_are_the_mean_and_constants_say_nothing() -> None:
    learner = AumLearner(window=200, every=20)
    prequential(learner, [({**x, "constant": 7.0}, y) for x, y in stream(600)])
    mean = float(learner._mean[learner._columns["a"]])
    whole, lacking = ({"a": mean, "b": 1.0, "constant": 7.0}, {"b": 1.0, "a": None, "constant": float("nan")})
    assert learner.predict_proba_one(whole) == pytest.approx(learner.predict_proba_one(lacking))
    assert learner.predict_proba_one({**whole, "new": 3.0}) == learner.predict_proba_one(whole)


def test_texts_that_are_gone_are_forgotten() -> None:
    learner = AumLearner(window=40, every=20)
    events = [({**x, "id": f"id {i}"}, y) for i, (x, y) in enumerate(stream(3_000))]
    scores = prequential(learner, events)
    labels = np.array([y for _, y in events])
    assert len(learner._columns) < 500
    assert len(pickle.dumps(learner)) < 100_000
    assert roc_auc_score(labels[1_000:], scores[1_000:]) > 0.85


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"window": 1}, "window=1; give a whole number from 2 on"),
        ({"window": 50, "every": 20}, "window=50 is no multiple of every=20"),
        ({"every": 0}, "every=0"),
        ({"step": -1.0}, "step=-1.0"),
    ],
)
def test_settings_that_are_wrong_are_named(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        AumLearner(**settings)


@pytest.mark.parametrize("value", [float("inf"), [1, 2], object])
def test_features_that_are_wrong_are_named(value: Any) -> None:
    with pytest.raises(InputError, match=r"feature 'x' is .*; give a finite number, or text"):
        AumLearner().learn_one({"x": value}, True)
    with pytest.raises(InputError, match="features are of type int: give a mapping of names to values"):
        AumLearner().learn_one(5, True)  # type: ignore[arg-type]


def test_classes_named_0_1_and_2_are_three() -> None:
    learner = AumLearner(window=60, every=6)
    for i in range(600):
        learner.learn_one({"a": float(i % 3 == 0), "b": float(i % 3 == 1)}, i % 3)
    assert [learner.predict_one({"a": float(c == 0), "b": float(c == 1)}) for c in range(3)] == [0, 1, 2]
