"""Learners: what each predicts and when, that cuts and restarts change nothing, and what they are refused."""

from __future__ import annotations

import csv
import gzip
import math
import os
import pickle
import sys
import types
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import rocsteady as rs
from rocsteady.core.errors import (
    ConfigError,
    CorruptBytesError,
    ForeignBytesError,
    FutureVersionError,
    InputError,
    MissingPackageError,
    OtherConfigurationError,
    TruncatedBytesError,
)
from rocsteady.core.events.columns import IdColumn, TextColumn
from rocsteady.core.ids.chances import seed_of
from rocsteady.core.ids.index import hash64_of_ids
from rocsteady.core.prequential import wire as learner_wire
from rocsteady.core.prequential.instances import Instances, Task
from rocsteady.core.prequential.learners import LearnerSpec
from rocsteady.core.prequential.models import mirrored
from rocsteady.core.prequential.named import NAMED
from sklearn.linear_model import SGDClassifier
from sklearn.naive_bayes import GaussianNB

from tests.support.thorough import THOROUGH, few, others_slow

DATA = os.environ.get("ROCSTEADY_DATA")
BINARY = Task(is_binary=True)
CLASSES = Task(is_binary=False, classes=("a", "b", "c"))
SCORES = CLASSES._replace(scores=True)


def instances(n=400, seed=1, *, multiclass=False, text=False, missing=0.0, prefix=""):
    """A stream in which two numbers (and a text) say something about the class."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(3 if multiclass else 2, size=n)
    numbers = tuple(
        (name, np.where(rng.random(n) < missing, np.nan, classes * shift + rng.normal(size=n)))
        for name, shift in (("x", 1.0), ("y", -0.7), ("z", 0.0))
    )
    colours = [["red", "green", "blue"][k] if rng.random() < 0.7 else "grey" for k in classes]
    categories = (("colour", TextColumn.of(colours)),) if text else ()
    labels = TextColumn.of(["abc"[k] for k in classes]) if multiclass else classes.astype(np.int8)
    return Instances(numbers, categories, labels, hashes(n, prefix))


def hashes(n, prefix=""):
    return hash64_of_ids(IdColumn.of([f"{prefix}{number}" for number in range(n)]))


def ones(given):
    return np.ones(len(given), np.int64), np.ones(len(given), np.bool_)


def dealt(given, seed=5):
    """Weights as in online bagging, prequentially."""
    weights = np.random.default_rng(seed).poisson(1.0, len(given))
    return weights, weights > 0


def run(learner, given, weights=None, tests=None):
    return learner.run(given, *(ones(given) if weights is None else (weights, tests)))


def made(text, task=BINARY, seed=7, window=None, **choices):
    return LearnerSpec.parse(text, **choices).make(task, seed, window)


def in_pieces(spec, task, given, weights, tests, size, window=None, restart=True):
    """Run in pieces, each by a learner that was loaded from the bytes of the one before."""
    learner, outcomes = spec.make(task, 7, window), []
    for start in range(0, len(given), size):
        end = min(start + size, len(given))
        found = learner.run(given.part(start, end), weights[start:end], tests[start:end])
        outcomes.append(found._replace(failures=[(start + row, why) for row, why in found.failures]))
        if restart:
            learner = spec.make(task, 7, window, learner.to_bytes())
    return (
        np.concatenate([found.scores for found in outcomes]),
        [value for found in outcomes for value in list(found.predicted)],
        [failure for found in outcomes for failure in found.failures],
        [found.class_scores.tobytes() for found in outcomes if task.scores],
    )


@pytest.fixture
def factories(monkeypatch):
    """A module of the user's, to put factories into."""
    module = types.ModuleType("users_learners")
    monkeypatch.setitem(sys.modules, "users_learners", module)
    return module


class Recorder:
    """Writes down what it is called with, and says .25."""

    calls: list

    def __init__(self):
        self.calls = []

    def learn_one(self, x, y):
        self.calls.append(("learn", x, y))

    def predict_proba_one(self, x):
        self.calls.append(("predict", x))
        return {False: 0.75, True: 0.25}


def test_an_instance_is_predicted_once_and_then_learnt_as_often_as_it_weighs(factories):
    recorder = Recorder()
    factories.make = lambda: recorder
    given = Instances(
        (("x", np.array([1.0, np.nan, 3.0])),),
        (("colour", TextColumn.of(["red", "red", None])),),
        np.array([1, 0, 1], np.int8),
        hashes(3),
    )
    found = made("users_learners:make").run(given, np.array([2, 0, 1]), np.array([True, True, False]))
    first, second, third = {"x": 1.0, "colour": "red"}, {"colour": "red"}, {"x": 3.0}
    assert recorder.calls == [
        ("predict", first), ("learn", first, True), ("learn", first, True), ("predict", second),
        ("learn", third, True),
    ]  # fmt: skip
    assert found.scores[:2].tolist() == [0.25, 0.25]
    assert math.isnan(found.scores[2])
    assert found.predicted.tolist() == [0, 0, 0]
    assert found.failures == []


@pytest.mark.parametrize("threshold", [0.25, 0.2500001])
def test_predicted_positive_from_the_threshold_on(factories, threshold):
    factories.make = Recorder
    found = run(made("users_learners:make", Task(True, threshold)), instances(5))
    assert set(found.predicted.tolist()) == {int(threshold <= 0.25)}


# ------------------------------------------------------------------------------------------ baselines


def labels_of(given):
    return given.labels.to_list() if isinstance(given.labels, TextColumn) else given.labels


def electricity():
    if DATA is None:
        pytest.skip("needs the electricity stream: ROCSTEADY_DATA=folder pytest tests/core/prequential")
    with gzip.open(Path(DATA) / "electricity.csv.gz", "rt") as file:
        up = [row["class"] == "UP" for row in csv.DictReader(file)]
    return Instances((), (), np.array(up, np.int8), hashes(len(up)))


def evaluated(given, found, window, every=1):
    evaluator = rs.ModelEvaluator(
        window=rs.LastEvents(window), every=rs.EveryEvents(every), measures=("kappa_m", "kappa_per", "kappa")
    )
    if isinstance(given.labels, TextColumn):
        return list(evaluator.update(labels_of(given), np.zeros(len(given)), predicted=found.predicted))
    return list(evaluator.update(given.labels, found.scores))


@pytest.mark.slow
@pytest.mark.parametrize("multiclass", [False, True])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("window", [1, 2, 7, 100])
def test_baselines_are_those_of_the_evaluator_in_every_row(window, seed, multiclass):
    """Whatever the weights: an instance is in the evaluator's window once."""
    task = CLASSES if multiclass else BINARY
    whole = instances(600, seed, multiclass=multiclass)
    weights, tests = dealt(whole, seed)
    given = whole.take(np.flatnonzero(tests))
    majority = run(made("majority", task, window=window), whole, weights, tests)
    persistent = run(made("persistent", task, window=window), whole, weights, tests)
    for found, measure in ((majority, "kappa_m"), (persistent, "kappa_per")):
        answers = found._replace(
            scores=found.scores[tests],
            predicted=[value for value, tested in zip(found.predicted, tests, strict=True) if tested],
        )
        values = [getattr(row, measure) for row in evaluated(given, answers, window)]
        assert len(values) == len(given)
        assert set(values) <= {0.0, None}
        assert values.count(0.0) > len(values) / 3


def test_kappa_m_of_the_sliding_majority_is_0_on_electricity_at_every_instance():
    given = electricity()
    if not THOROUGH:
        given = given.take(np.arange(12_000))
    found = run(made("majority", window=1000), given)
    rows = evaluated(given, found, 1000)
    assert {row.kappa_m for row in rows} == {0.0}
    assert np.mean([row.kappa not in (0.0, None) for row in rows]) > 0.25
    assert {row.kappa_per for row in evaluated(given, run(made("persistent"), given), 1000)} <= {0.0, None}


def test_windows_of_the_majority():
    given = Instances((), (), np.array([1, 1, 1, 0, 0, 0, 0], np.int8), hashes(7))
    by_hand = {
        "majority:all": [0, 1, 1, 1, 1, 1, 0],  # 3 to 3: the class seen last
        "majority:2": [0, 1, 1, 1, 0, 0, 0],
        "majority:3": [0, 1, 1, 1, 1, 0, 0],
        "persistent": [0, 1, 1, 1, 0, 0, 0],
    }
    for text, expected in by_hand.items():
        assert run(made(text, window=5), given).scores.tolist() == expected, text
    followed = run(made("majority", window=2), given).scores.tolist()
    assert followed == by_hand["majority:2"]
    assert run(made("majority"), given).scores.tolist() == by_hand["majority:all"]


def test_before_any_label_there_is_no_class():
    found = run(made("majority", CLASSES), instances(3, multiclass=True))
    assert found.predicted[0] == ""
    assert found.scores.tolist() == [0.0, 0.0, 0.0]


# --------------------------------------------------------------------------------------- real learners


@pytest.mark.parametrize("multiclass", [False, True])
@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("name", NAMED)
def test_built_in_learners_learn_numbers_and_text(name, text, multiclass):
    pytest.importorskip("river")
    if name == "polynomial-auc" and multiclass:
        with pytest.raises(ConfigError, match="learns AUC, which is of two classes"):
            made(name, CLASSES)
        return
    n = 250 if name == "adaptive-forest" else 1500
    given = instances(n, text=text, multiclass=multiclass, missing=0.02)
    found = run(made(name, CLASSES if multiclass else BINARY), given)
    assert found.failures == []
    right = np.array([a == b for a, b in zip(found.predicted, labels_of(given), strict=True)])
    least = 0.45 if multiclass else {"adaptive-forest": 0.57, "polynomial-auc": 0.63}.get(name, 0.7)
    assert right[n // 3 :].mean() > least


def test_text_alone_is_enough():
    pytest.importorskip("river")
    whole = instances(1500, text=True)
    given = Instances((), whole.categories, whole.labels, whole.hashes)
    for name in ("logistic", "naive-bayes", "hoeffding", "aum", "polynomial-auc"):
        found = run(made(name), given)
        assert found.failures == []
        assert (found.predicted == given.labels)[500:].mean() > 0.75, name


def test_a_learner_is_rivers_own_loop():
    """The plain loop of a river user, prediction for prediction, with weights."""
    tree = pytest.importorskip("river.tree")
    given = instances(1200, text=True)
    weights, tests = dealt(given)
    found = run(made("hoeffding"), given, weights, tests)
    model, expected = tree.HoeffdingTreeClassifier(), []
    for x, y, weight in zip(given.records(), given.answers(), weights, strict=True):
        expected.append(model.predict_proba_one(x).get(True, 0.0) if weight else math.nan)
        for _ in range(weight):
            model.learn_one(x, y)
    assert np.array_equal(found.scores, expected, equal_nan=True)


def test_naive_bayes_of_text_by_hand():
    pytest.importorskip("river")
    column = TextColumn.of(["r", "r", "g", "r"])
    given = Instances((), (("c", column),), np.array([1, 1, 0, 0], np.int8), hashes(4))
    scores = run(made("naive-bayes"), given).scores
    # after r+, r+, g-: of "r" 3/5 among positives (2 of 2, 2 values and one to come), 1/4 among negatives
    positive, negative = 2 / 3 * 3 / 5, 1 / 3 * 1 / 4
    assert scores[3] == pytest.approx(positive / (positive + negative))
    assert scores[0] == 0.0


@pytest.mark.parametrize("batch", [1, 40])
def test_naive_bayes_of_numbers_is_rivers(batch):
    naive_bayes = pytest.importorskip("river.naive_bayes")
    given = instances(400, multiclass=False, missing=0.1)
    scores = run(made("naive-bayes", batch=batch), given).scores
    model, expected = naive_bayes.GaussianNB(), []
    records, answers = given.records(), given.answers()
    for start in range(0, 400, batch):
        step = slice(start, start + batch)
        expected += [model.predict_proba_one(x).get(True, 0.0) for x in records[step]]
        for x, y in zip(records[step], answers[step], strict=True):
            model.learn_one(x, y)
    assert np.allclose(scores, expected, rtol=1e-9, atol=1e-12)


SPECS = [
    LearnerSpec.parse("majority"),
    LearnerSpec.parse("majority:9", noise=0.1),
    LearnerSpec.parse("persistent"),
    LearnerSpec.parse("logistic"),
    LearnerSpec.parse("logistic", batch=17),
    LearnerSpec.parse("naive-bayes", noise=0.2, batch=8),
    LearnerSpec.parse("hoeffding", batch=10),
    LearnerSpec.parse("adaptive-forest"),
    LearnerSpec.parse("aum"),
    LearnerSpec.parse("aum", batch=9, noise=0.1),
    LearnerSpec.parse("polynomial-auc"),
]


@pytest.mark.parametrize(
    ("spec", "multiclass"),
    others_slow(
        (spec, many)
        for spec in SPECS
        for many in (False, True)
        if not (many and spec.name == "polynomial-auc")
    ),
    ids=repr,
)
def test_cuts_and_restarts_change_nothing(spec, multiclass):
    pytest.importorskip("river")
    task = CLASSES if multiclass else BINARY
    given = instances(120 if "forest" in spec.name else 330, multiclass=multiclass, missing=0.05)
    weights, tests = dealt(given)
    whole = in_pieces(spec, task, given, weights, tests, len(given), 20)
    for size in few(2, (1 if "forest" not in spec.name else 30, 50, 7)):
        pieces = in_pieces(spec, task, given, weights, tests, size, 20)
        assert np.array_equal(whole[0], pieces[0], equal_nan=True)
        assert whole[1:] == pieces[1:]
    if not multiclass:
        return
    scored = in_pieces(spec, SCORES, given, weights, tests, len(given), 20)
    pieces = in_pieces(spec, SCORES, given, weights, tests, 50, 20)
    assert scored[1:3] == pieces[1:3]
    assert b"".join(scored[3]) == b"".join(pieces[3])
    lines = np.frombuffer(scored[3][0]).reshape(-1, 3)
    assert np.array_equal(np.isnan(lines[:, 0]), np.isnan(scored[0]))
    known = [row for row in range(len(given)) if scored[1][row] is not None and np.ptp(lines[row])]
    assert [scored[1][row] for row in known] == ["abc"[place] for place in lines[known].argmax(axis=1)]
    same = [scored[1][row] == whole[1][row] for row in known]
    assert all(same) or spec.factory.startswith(("majority", "persistent"))


def test_forests_of_two_seeds_differ_and_of_one_do_not():
    pytest.importorskip("river")
    given = instances(150)
    one, same, other = (run(made("adaptive-forest", seed=seed), given).scores for seed in (1, 1, 2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


# ----------------------------------------------------------------------------------------------- steps


def test_a_step_is_predicted_before_any_of_it_is_learnt(factories):
    linear_model = pytest.importorskip("river.linear_model")
    pandas = pytest.importorskip("pandas")
    given = instances(250)
    weights, tests = dealt(given)
    factories.make = linear_model.LogisticRegression
    found = run(made("users_learners:make", batch=100), given, weights, tests)
    model, expected = linear_model.LogisticRegression(), np.full(250, np.nan)
    table = pandas.DataFrame(dict(given.numbers))
    for start in range(0, 250, 100):
        rows = np.arange(start, min(start + 100, 250))
        tested = rows[tests[rows]]
        expected[tested] = model.predict_proba_many(table.iloc[tested])[True]
        if len(rows) == 100:
            learnt = np.repeat(rows, weights[rows])
            model.learn_many(table.iloc[learnt], pandas.Series(given.labels[learnt] == 1, index=learnt))
    assert np.allclose(found.scores, expected, rtol=1e-12, atol=0, equal_nan=True)
    assert found.failures == []


def test_learners_without_tables_go_by_steps_too(factories):
    recorder = Recorder()
    factories.make = lambda: recorder
    run(made("users_learners:make", batch=3), instances(7))
    assert "".join(call[0][0] for call in recorder.calls) == "ppplllppplllp"


def test_a_failure_to_learn_a_step_is_one_of_its_last_instance(factories):
    class Refuses(Recorder):
        def learn_one(self, *_):
            raise ValueError("no\nroom")

    factories.make = Refuses
    spec = LearnerSpec.parse("users_learners:make", batch=4)
    given = instances(10)
    found = in_pieces(spec, BINARY, given, *ones(given), 3, restart=False)
    words = (
        "learner 'make' could not learn 4 of the 4 instances of a step that ends here: ValueError: no room"
    )
    assert found[2] == [(3, words), (7, words)]
    assert np.flatnonzero(np.isnan(found[0])).tolist() == [3, 7]


# ---------------------------------------------------------------------------------------- scikit-learn


@pytest.mark.slow
def test_partial_fit_of_two_classes_is_its_own_loop(factories):
    factories.make = logistic = partial(SGDClassifier, loss="log_loss", random_state=7)
    given = instances(300)
    weights, tests = dealt(given)
    found = run(made("users_learners:make"), given, weights, tests)
    model, matrix, expected, learnt = logistic(), given.matrix(), [], False
    for row, weight in enumerate(weights):
        score = model.predict_proba(matrix[row : row + 1])[0, 1] if learnt and weight else 0.0
        expected.append(score if weight else math.nan)
        for _ in range(weight):
            model.partial_fit(matrix[row : row + 1], given.labels[row : row + 1] == 1, [False, True])
            learnt = True
    assert np.array_equal(found.scores, expected, equal_nan=True)
    assert found.failures == []


def test_a_decision_is_a_score_that_keeps_order_and_sign(factories):
    factories.make = lambda random_state: SGDClassifier(loss="hinge", random_state=random_state)
    given = instances(400)
    learner = made("users_learners:make")
    run(learner, given)
    model = pickle.loads(learner_wire.unpack_learner("", learner.to_bytes(), {})[1])
    fresh = instances(400, seed=2)
    found = learner.run(fresh, np.zeros(400, np.int64), np.ones(400, np.bool_))
    decisions = model.decision_function(fresh.matrix())
    assert (found.predicted == model.predict(fresh.matrix())).all()
    assert np.array_equal(np.argsort(found.scores, kind="stable"), np.argsort(decisions, kind="stable"))
    assert ((found.scores >= 0) & (found.scores <= 1)).all()


@pytest.mark.parametrize("batch", [1, 25])
@pytest.mark.parametrize("loss", ["log_loss", "hinge"])
def test_partial_fit_of_classes(factories, loss, batch):
    factories.make = lambda random_state: SGDClassifier(loss=loss, random_state=random_state)
    spec = LearnerSpec.parse("users_learners:make", batch=batch)
    given = instances(300, multiclass=True)
    weights, tests = dealt(given)
    whole = in_pieces(spec, CLASSES, given, weights, tests, 300)
    assert whole[2] == []
    right = [a == b for a, b, t in zip(whole[1], labels_of(given), tests, strict=True) if t]
    assert np.mean(right[100:]) > 0.45
    assert in_pieces(spec, CLASSES, given, weights, tests, 41)[1:] == whole[1:]


def test_partial_fit_needs_classes_and_numbers(factories):
    factories.make = GaussianNB
    with pytest.raises(ConfigError, match="has to know all classes beforehand; name them"):
        made("users_learners:make", Task(is_binary=False))
    for batch in (1, 10):
        with pytest.raises(ConfigError, match="takes no text, as in 'colour'"):
            run(made("users_learners:make", batch=batch), instances(30, text=True))


def test_a_missing_number_is_that_instances_failure(factories):
    factories.make = partial(SGDClassifier, loss="log_loss", random_state=7)
    given = instances(60)
    given.numbers[0][1][[25, 40]] = np.nan
    found = run(made("users_learners:make"), given)
    assert [row for row, _ in found.failures] == [25, 40]
    assert "Input X contains NaN" in found.failures[0][1]
    stepped = run(made("users_learners:make", batch=10), given)
    assert [row for row, _ in stepped.failures] == [25, 29, 40, 49]
    assert "could not learn 1 of the 10 instances of a step" in stepped.failures[1][1]


# -------------------------------------------------------------------------------------------- failures


class SpeechlessError(Exception):
    """Cannot say what it is."""

    def __str__(self):
        raise TypeError


class Says:
    """Says what it is told to, by the feature x."""

    answers = ()

    def learn_one(self, x, _):
        if self.answers[int(x["x"])] == "cannot learn":
            raise KeyError("a value")

    def predict_proba_one(self, x):
        answer = self.answers[int(x["x"])]
        if isinstance(answer, BaseException):
            raise answer
        return answer


def said(answers, task, factories):
    class Now(Says):
        pass

    Now.answers = answers
    factories.make = Now
    n = len(answers)
    labels = np.zeros(n, np.int8) if task.is_binary else TextColumn.of(["a"] * n)
    given = Instances((("x", np.arange(float(n))),), (), labels, hashes(n))
    found = run(made("users_learners:make", task), given)
    for batch in (2, 50):  # the same of steps
        stepped = run(made("users_learners:make", task, batch=batch), given)
        plain = [failure for failure in found.failures if "learn it" not in failure[1]]
        assert [each for each in stepped.failures if "of a step" not in each[1]] == plain
    return found


def test_whatever_is_no_score_is_that_instances_failure(factories):
    answers = [
        {True: 0.7}, {1: 0.6, 0: 0.4}, {}, {False: 1.0}, {True: 1.0 + 1e-12}, {np.True_: np.float64(0.5)},
        {True: math.nan}, {True: 1.5}, None, {"yes": 1.0}, {False: math.nan}, {True: "high"}, 0.5,
        ValueError("31,415"), RecursionError(), {True: -math.inf}, SpeechlessError(), {False: 0.5, True: 0.5},
    ]  # fmt: skip
    found = said(answers, BINARY, factories)
    assert found.scores[:6].tolist() == [0.7, 0.6, 0.0, 0.0, 1.0, 0.5]
    assert found.scores[-1] == 0.5
    assert [row for row, _ in found.failures] == list(range(6, 17))
    assert np.isnan(found.scores[6:17]).all()
    assert not found.predicted[6:17].any()
    assert found.failures[10][1] == "learner 'make' could not predict it: SpeechlessError"
    assert found.failures[7][1] == "learner 'make' could not predict it: ValueError: 31,415"
    assert found.failures[2][1].endswith("it gave None, which is not a probability for each class")
    assert found.failures[3][1].endswith("it gave probabilities of ['yes'], and classes are True and False")


def test_whatever_is_no_class_is_that_instances_failure(factories):
    answers = [
        {"a": 0.2, "b": 0.8}, {}, {"never seen": 1.0}, {"a": 0.5, "b": 0.5}, {"a": 0.5, "b": math.nan},
        {3: 1.0}, None, {"a": None}, TypeError("odd"), {None: 1.0},
    ]  # fmt: skip
    found = said(answers, CLASSES, factories)
    assert found.predicted == ["b", "", "never seen", "a", None, None, None, None, None, None]
    assert [row for row, _ in found.failures] == list(range(4, 10))
    assert np.isnan(found.scores).tolist() == [False] * 4 + [True] * 6


def test_scores_of_classes_are_found_by_the_rule_of_classes(factories):
    task = Task(False, classes=("true", "false"), scores=True)
    answers = [
        {True: 0.7, False: 0.3},
        {1: 0.2, -1: 0.8},
        {"1": 0.4, "0": 0.6},
        {"true": 1.0},
        {np.False_: 1.0},
    ]
    found = said(answers, task, factories)
    assert found.predicted == ["true", "false", "false", "true", "false"]
    assert found.class_scores.tolist() == [[0.7, 0.3], [0.2, 0.8], [0.4, 0.6], [1.0, 0.0], [0.0, 1.0]]
    assert not found.failures


def test_whatever_is_no_score_of_a_class_is_that_instances_failure(factories):
    answers = [
        {"a": 0.2, "b": 0.8}, {}, {"c": 1.0 + 1e-12}, {"b": 0.5, "a": 0.5}, {"a": np.float64(0.1), "c": 0.3},
        {"a": 0.5, "b": math.nan}, {"d": 1.0}, {3: 1.0}, None, {"a": None}, TypeError("odd"), {"a": 1.5},
    ]  # fmt: skip
    found = said(answers, SCORES, factories)
    assert found.predicted == ["b", "a", "c", "a", "c"] + [None] * 7
    assert found.class_scores[:5].tolist() == [
        [0.2, 0.8, 0],
        [1 / 3] * 3,
        [0, 0, 1],
        [0.5, 0.5, 0],
        [0.1, 0, 0.3],
    ]
    assert np.isnan(found.class_scores[5:]).all()
    assert [row for row, _ in found.failures] == list(range(5, 12))
    assert found.failures[1][1].endswith("it answered for 'd', which is none of the classes ['a', 'b', 'c']")
    assert found.failures[3][1].endswith("it gave None, which is not a probability for each class")


def test_learners_that_only_label_give_their_class_all(factories):
    class Labels(Recorder):
        def predict_proba_one(self, _):
            raise NotImplementedError

        def predict_one(self, x):
            return "abd"[int(x["x"])]

    factories.make = Labels
    labels = TextColumn.of(["a"] * 3)
    given = Instances((("x", np.arange(3.0)),), (), labels, hashes(3))
    found = run(made("users_learners:make", SCORES), given)
    assert found.class_scores[:2].tolist() == [[1, 0, 0], [0, 1, 0]]
    assert [row for row, _ in found.failures] == [2]
    given = Instances((), (), TextColumn.of(["c", "c", "a", "b"]), hashes(4))
    found = run(made("majority", SCORES), given)
    assert found.class_scores.tolist() == [[1 / 3] * 3, [0, 0, 1], [0, 0, 1], [0, 0, 1]]
    assert found.predicted == ["a", "c", "c", "c"]


@pytest.mark.parametrize("names", ["abc", "ab"])
@pytest.mark.parametrize("loss", ["log_loss", "hinge"])
def test_scores_of_partial_fit_rank_as_the_model_does(factories, loss, names):
    factories.make = lambda random_state: SGDClassifier(loss=loss, random_state=random_state)
    task = Task(False, classes=tuple(names[::-1]), scores=True)  # in another order than the model's
    given = instances(400, multiclass=True)
    given = given.take(np.flatnonzero([name in names for name in given.labels.to_list()]))
    learner = made("users_learners:make", task)
    run(learner, given)
    model = pickle.loads(learner_wire.unpack_learner("", learner.to_bytes(), {})[1])
    found = learner.run(given, np.zeros(len(given), np.int64), np.ones(len(given), np.bool_))
    matrix = given.matrix()
    assert found.predicted == model.predict(matrix).tolist()
    if loss == "log_loss":
        np.testing.assert_allclose(found.class_scores, model.predict_proba(matrix)[:, ::-1], rtol=1e-12)
        return
    decisions = model.decision_function(matrix)
    if len(names) == 2:
        decisions = np.column_stack([-decisions, decisions])
    for place in range(len(names)):
        ranks = np.argsort(decisions[:, len(names) - 1 - place], kind="stable")
        assert np.array_equal(np.argsort(found.class_scores[:, place], kind="stable"), ranks)


def test_noise_lets_scores_change_places(factories):
    class Sure(Recorder):
        def predict_proba_one(self, _):
            return {"a": 0.6, "b": 0.3, "c": 0.1}

    factories.make = Sure
    given = instances(300, multiclass=True)
    found = run(made("users_learners:make", SCORES, noise=0.5), given)
    assert set(map(tuple, found.class_scores.tolist())) == {(0.6, 0.3, 0.1), (0.3, 0.6, 0.1), (0.1, 0.3, 0.6)}
    assert found.predicted == ["abc"[place] for place in found.class_scores.argmax(axis=1)]


def test_an_instance_that_is_not_learnt_has_no_prediction(factories):
    class Fails(Recorder):
        def learn_one(self, x, y):
            super().learn_one(x, y)
            if len(self.calls) == 6:
                raise ArithmeticError

    factories.make = Fails
    found = run(made("users_learners:make"), instances(10))
    assert found.failures == [(2, "learner 'make' could not learn it: ArithmeticError")]
    assert np.isnan(found.scores).tolist() == [row == 2 for row in range(10)]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, MemoryError])
@pytest.mark.parametrize("batch", [1, 3])
def test_what_is_nobodys_failure_passes(factories, error, batch):
    class Ends(Recorder):
        def predict_proba_one(self, _):
            raise error

    factories.make = Ends
    with pytest.raises(error):
        run(made("users_learners:make", batch=batch), instances(10))


@pytest.mark.parametrize("batch", [1, 4])
def test_learners_that_only_label(factories, batch):
    class Labels:
        def __init__(self):
            self.learnt = None

        def learn_one(self, _, y):
            self.learnt = y

        def predict_proba_one(self, _):
            raise NotImplementedError

        def predict_one(self, _):
            return self.learnt

    factories.make = Labels
    given = instances(20)
    found = run(made("users_learners:make", batch=batch), given)
    assert found.failures == []
    before = [0.0, *given.labels[:-1].tolist()]
    if batch == 4:
        before = [0.0] * 4 + [float(given.labels[row // 4 * 4 - 1]) for row in range(4, 20)]
    assert found.scores.tolist() == before
    factories.make = lambda: Labels.__new__(Labels)
    found = run(made("users_learners:make"), given)
    assert [row for row, _ in found.failures] == [0]

    class Forgets(Labels):
        def predict_one(self, _):
            return None

    factories.make = Forgets
    found = run(made("users_learners:make"), given)
    assert found.scores[0] == 0.0
    assert [row for row, _ in found.failures] == list(range(1, 20))
    assert found.failures[0][1].endswith("it predicted None; a prediction is True or False")


# ----------------------------------------------------------------------------------------------- noise


@pytest.mark.parametrize("threshold", [0.5, 0.3, 0.9, 1.0, 1e-9])
def test_mirrored_scores_are_on_the_other_side(threshold):
    scores = np.array([0.0, 1e-12, threshold / 2, math.nextafter(threshold, 0), threshold, 1.0])
    found = mirrored(scores, threshold)
    assert ((found >= threshold) == (scores < threshold)).all()
    assert ((found >= 0) & (found <= 1)).all()
    for side in (scores < threshold, scores >= threshold):
        assert (np.diff(found[side]) <= 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("multiclass", [False, True])
def test_noise_costs_what_the_formula_says(factories, multiclass):
    """Delta p = p (c p0 - 1) / (c - 1), and a flip is never one to the class itself."""
    n, chance, count = 60_000, 0.2, 3 if multiclass else 2
    task = CLASSES if multiclass else BINARY
    rng = np.random.default_rng(4)
    truth = rng.integers(count, size=n)
    right = rng.random(n) < 0.8
    guess = np.where(right, truth, (truth + rng.integers(1, count, size=n)) % count)

    class Guesses(Recorder):
        def learn_one(self, *_):
            pass

        def predict_proba_one(self, x):
            code = int(x["x"])
            return {"abc"[code]: 1.0} if multiclass else {bool(code): 1.0}

    factories.make = Guesses
    labels = TextColumn.of(["abc"[code] for code in truth]) if multiclass else truth.astype(np.int8)
    given = Instances((("x", guess.astype(float)),), (), labels, hashes(n, "noise"))
    plain = run(made("users_learners:make", task), given)
    noisy = run(made("users_learners:make", task, noise=chance), given)
    flipped = np.array([a != b for a, b in zip(plain.predicted, noisy.predicted, strict=True)])
    assert flipped.mean() == pytest.approx(chance, abs=4 * math.sqrt(chance / n))

    def accuracy(found):
        return np.mean([a == b for a, b in zip(found.predicted, labels_of(given), strict=True)])

    p0 = accuracy(plain)
    lost = chance * (count * p0 - 1) / (count - 1)
    assert p0 - accuracy(noisy) == pytest.approx(lost, abs=4 * math.sqrt(chance / n))
    if multiclass:  # evenly
        to = [
            b
            for a, b, flip in zip(plain.predicted, noisy.predicted, flipped, strict=True)
            if flip and a == "a"
        ]
        assert to.count("b") / len(to) == pytest.approx(0.5, abs=0.03)
    else:
        assert ((noisy.scores >= 0.5) == (noisy.predicted == 1)).all()


def test_noise_is_of_the_seed_and_the_id(factories):
    factories.make = Recorder
    given = instances(2000)
    spec = LearnerSpec.parse("users_learners:make", noise=0.3)

    def flips(seed):
        return spec.make(BINARY, seed, None).run(given, *ones(given)).predicted

    assert (flips(1) == flips(1)).all()
    assert abs(np.corrcoef(flips(1), flips(2))[0, 1]) < 0.1


def test_noise_takes_no_failure_and_no_class_that_is_not_known_yet(factories):
    class Fails(Recorder):
        def predict_proba_one(self, _):
            raise ValueError

    factories.make = Fails
    found = run(made("users_learners:make", noise=0.9), instances(50))
    assert len(found.failures) == 50
    assert np.isnan(found.scores).all()
    labels = TextColumn.of(["a"] * 30 + ["b"] * 30)
    given = Instances((), (), labels, hashes(60))
    found = run(made("persistent", CLASSES, noise=0.9), given)
    assert set(found.predicted[1:31]) == {"a"}
    assert {"a", "b"} == set(found.predicted[31:])


# ------------------------------------------------------------------------------------------ the words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("forest", "learner 'forest' is none: there are majority, majority:N"),
        ("majority:0", "learner 'majority:0' is none"),
        ("majority:most", "the majority of how many? Give a whole number from 1, or all"),
        ("=hoeffding", "has no name"),
        ("tree=", "has no name"),
        ("logistic:7", "learner 'logistic:7' is none"),
        ("logistic:make", "logistic takes nothing behind it"),
        ("model.pickle", "runs whatever code is in it; where you trust its author, say --trust-learners"),
        ("best=/tmp/a b/model.pkl", "learner 'best'"),
        ("1:2", "learner '1:2' is none"),
    ],
)
def test_learners_that_are_none(text, words):
    with pytest.raises(ConfigError) as problem:
        made(text)
    assert words in str(problem.value)
    assert "\n" not in str(problem.value)


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"noise": 1.0}, "noise=1.0"),
        ({"noise": math.nan}, "noise=nan"),
        ({"noise": True}, "noise=True"),
        ({"batch": 0}, "batch=0"),
        ({"batch": 2.5}, "batch=2.5"),
    ],
)
def test_settings_that_cannot_be(choices, words):
    with pytest.raises(ConfigError, match=words):
        LearnerSpec("m", "majority", **choices)


@pytest.mark.parametrize("threshold", [0.0, -1.0, 1.5, math.nan])
def test_thresholds_are_of_probabilities(threshold):
    with pytest.raises(ConfigError, match="above 0, up to 1"):
        made("majority", Task(True, threshold))


@pytest.mark.parametrize(
    ("factory", "words"),
    [
        (
            "no_such_module_here:make",
            "the module 'no_such_module_here' cannot be imported: ModuleNotFoundError",
        ),
        ("users_learners:none", "users_learners has no 'none'"),
        ("users_learners:__name__", "is of type str and cannot be called"),
        ("users_learners:raises", "users_learners:raises raised ZeroDivisionError: "),
        ("users_learners:needs", "users_learners:needs raised TypeError"),
        ("users_learners:returns", "its factory returns dict, which learns from no stream"),
    ],
)
def test_factories_that_make_none(factories, factory, words):
    factories.raises = lambda: 1 // 0
    factories.needs = lambda path: path
    factories.returns = dict
    with pytest.raises(ConfigError) as problem:
        made(factory)
    assert words in str(problem.value)
    assert "\n" not in str(problem.value)


def test_factories_get_the_seed_where_they_take_one(factories):
    given = []

    class Seeded(Recorder):
        def __init__(self, *, random_state=None):
            super().__init__()
            given.append(random_state)

        @classmethod
        def with_seed(cls, seed):
            return cls(random_state=seed)

    factories.Seeded = Seeded
    made("users_learners:Seeded", seed=41)
    made("users_learners:Seeded.with_seed", seed=42)
    assert given == [41, 42]
    assert LearnerSpec.parse("users_learners:Seeded").name == "Seeded"
    assert run(made("sklearn.linear_model:Perceptron"), instances(20)).failures == []


def test_seeds_never_change_and_are_each_their_own():
    assert [seed_of(1, "tree", 0), seed_of(1, "tree", 1), seed_of(2, "tree", 0)] == SEEDS
    drawn = {seed_of(1, name, fold) for name in ("a", "b", "a/b") for fold in range(1000)}
    assert len(drawn) > 2990
    assert max(drawn) < 2**31


SEEDS = [513763991, 771142873, 735366219]


def test_without_river_the_words_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "river.tree", None)
    with pytest.raises(MissingPackageError, match=r"learner 'hoeffding' needs .* '\.\[prequential\]'"):
        made("hoeffding")


# ---------------------------------------------------------------------------------------------- states


def test_pickles_of_models_are_read_where_they_are_trusted(tmp_path):
    tree = pytest.importorskip("river.tree")
    given, path = instances(500), tmp_path / "tree.pickle"
    model = tree.HoeffdingTreeClassifier()
    for x, y in zip(given.records(), given.answers(), strict=True):
        model.learn_one(x, y)
    path.write_bytes(pickle.dumps(model))
    spec = pickle.loads(pickle.dumps(LearnerSpec.parse(str(path), trust=True)))
    path.unlink()  # the bytes travel
    assert spec.name == "tree"
    fresh = instances(50, seed=9)
    expected = [model.predict_proba_one(x)[True] for x in fresh.records()]
    for _ in range(2):  # each fold has its own
        learner = spec.make(BINARY, 1, None)
        found = learner.run(fresh, np.zeros(50, np.int64), np.ones(50, np.bool_))
        assert found.scores.tolist() == expected
        run(learner, given)
    with pytest.raises(ConfigError, match="cannot be read"):
        LearnerSpec.parse(str(path), trust=True)
    path.write_bytes(b"no pickle")
    with pytest.raises(ConfigError, match="cannot be unpickled"):
        LearnerSpec.parse(str(path), trust=True).make(BINARY, 1, None)


def test_models_may_speak_bytes(factories):
    class Own(Recorder):
        def __init__(self, learnt=0):
            super().__init__()
            self.learnt = learnt
            self.lock = lambda: None  # that pickle refuses

        def learn_one(self, *_):
            self.learnt += 1

        def predict_proba_one(self, _):
            return {True: min(1.0, self.learnt / 100)}

        def to_bytes(self):
            return b"%d" % self.learnt

        @classmethod
        def from_bytes(cls, data):
            return cls(int(data))

    factories.make = Own
    spec = LearnerSpec.parse("users_learners:make")
    given = instances(50)
    scores = in_pieces(spec, BINARY, given, *ones(given), 10)[0]
    assert scores.tolist() == [row / 100 for row in range(50)]


def test_states_that_cannot_be_kept(factories, monkeypatch):
    class Locked(Recorder):
        def __init__(self):
            super().__init__()
            self.lock = lambda: None

    factories.make = Locked
    with pytest.raises(InputError, match=r"learner 'm' cannot be kept in a state: .*to_bytes and from_bytes"):
        made("m=users_learners:make").to_bytes()
    monkeypatch.setattr(learner_wire, "MAX_BYTES", 1 << 20)
    learner = made("big=majority:1000000")
    given = Instances((), (), np.zeros(400_000, np.int8), hashes(400_000))
    run(learner, given)
    with pytest.raises(InputError, match="learner 'big' has grown to 1 MB in one fold, more than the 1 that"):
        learner.to_bytes()


@pytest.mark.parametrize("text", ["majority:5", "hoeffding", "logistic"])
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_bytes_that_are_none_of_a_learner(text, noise):
    pytest.importorskip("river")
    spec = LearnerSpec.parse(text, noise=noise)
    learner = spec.make(BINARY, 7, None)
    run(learner, instances(40))
    data = learner.to_bytes()

    def load(changed):
        return spec.make(BINARY, 7, None, changed)

    load(data)
    for wrong in (b"", b"PAR1", b"RSEB" + data[4:]):
        with pytest.raises(ForeignBytesError):
            load(wrong)
    with pytest.raises(TruncatedBytesError):
        load(data[:9])
    with pytest.raises(FutureVersionError, match="version 9"):
        load(data[:4] + b"\x09" + data[5:])
    for at in (-1, len(data) // 2):
        with pytest.raises(TruncatedBytesError):
            load(data[:at])
    with pytest.raises(CorruptBytesError):
        load(data[:-1] + bytes([data[-1] ^ 1]))
    for other, task in ((LearnerSpec.parse("majority:6", noise=noise), BINARY), (spec, CLASSES)):
        with pytest.raises(OtherConfigurationError, match="made under another configuration"):
            other.make(task, 7, None, data)
    with pytest.raises(OtherConfigurationError, match="noise was" if noise else "seed|noise|configuration"):
        LearnerSpec.parse(text, noise=0.2).make(BINARY, 7, None, data)
