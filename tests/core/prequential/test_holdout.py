"""A hold-out is tested by the model as it stands, and never learnt."""

from __future__ import annotations

import numpy as np
import pytest
from rocsteady.core.errors import ConfigError, InputError
from rocsteady.core.prequential.holdout import HoldOut
from rocsteady.core.prequential.instances import Instances, Task
from rocsteady.core.prequential.learners import LearnerSpec

N = 1_000


def instances(n=N, seed=3):
    random = np.random.default_rng(seed)
    x = random.normal(size=n)
    labels = (x + random.normal(size=n) > np.linspace(-1, 1, n)).astype(np.int8)
    return Instances((("x", x),), (), labels, np.arange(n, dtype=np.uint64))


@pytest.mark.parametrize(("every", "size"), [(1, 1), (90, 10), (7, 50), (2_000, 5), (999, 1)])
def test_estimates_are_those_of_a_loop_that_stops_to_test(every, size):
    naive_bayes = pytest.importorskip("river.naive_bayes")
    stream, hold_out = instances(), HoldOut(every, size)
    model = naive_bayes.GaussianNB()
    expected, learnt, place = [], 0, 0
    records, answers = stream.records(), stream.answers()
    while place < N:
        for _ in range(min(every, N - place)):
            model.learn_one(records[place], answers[place])
            learnt, place = learnt + 1, place + 1
        held = range(place, place + size)
        place += size
        if place <= N:
            wrong = sum((model.predict_proba_one(records[i]).get(True, 0) >= 0.5) != answers[i] for i in held)
            expected.append((place, learnt, size, wrong))

    learner = LearnerSpec.parse("naive-bayes").make(Task(is_binary=True), seed=1, window=None)
    said = []
    for start in range(0, N, 137):  # however the stream is cut
        end = min(start + 137, N)
        said.append(learner.run(stream.part(start, end), *hold_out.assign(start, end)).predicted)
    estimates = hold_out.estimates(np.concatenate(said) != stream.labels)
    assert [tuple(each) for each in estimates] == expected
    assert [each.accuracy for each in estimates] == pytest.approx([1 - w / size for *_, w in expected])


def test_a_model_that_gets_to_see_no_label_of_a_hold_out_cannot_learn_it():
    """Labels that change in every hold-out alone: the majority never follows them."""
    hold_out = HoldOut(every=10, size=30)
    weights, tests = hold_out.assign(0, 400)
    labels = (weights == 0).astype(np.int8)
    stream = Instances((), (), labels, np.arange(400, dtype=np.uint64))
    learner = LearnerSpec.parse("majority").make(Task(is_binary=True), seed=1, window=None)
    outcome = learner.run(stream, weights, tests)
    assert [each.wrong for each in hold_out.estimates(outcome.predicted != labels)] == [30] * 10


def test_a_hold_out_that_the_stream_ends_in_says_nothing():
    assert HoldOut(5, 3).estimates(np.ones(7, bool)) == []
    assert len(HoldOut(5, 3).estimates(np.ones(8, bool))) == 1
    assert HoldOut(5, 3).estimates(np.ones(0, bool)) == []


@pytest.mark.parametrize(
    ("every", "size", "word"), [(0, 5, "every"), (5, -1, "size"), (2.5, 5, "every"), (True, 5, "every")]
)
def test_sizes_are_counts(every, size, word):
    with pytest.raises(ConfigError, match=f"hold-out: {word}="):
        HoldOut(every, size)


def test_estimates_are_of_truth_values():
    with pytest.raises(InputError, match=r"shape \(3,\) and type int64"):
        HoldOut(1, 1).estimates(np.array([0, 1, 0]))
