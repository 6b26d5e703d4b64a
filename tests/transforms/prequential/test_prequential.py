"""Prequential: a PCollection of instances through folds of learners, the same on every runner."""

from __future__ import annotations

import json

import apache_beam as beam
import numpy as np
import pytest
import rocsteady as rs
from apache_beam.transforms.window import FixedWindows, Sessions, TimestampedValue
from rocsteady.core.errors import ConfigError
from rocsteady.core.events.batch import EventBatch
from rocsteady.core.events.columns import IdColumn, TextColumn
from rocsteady.core.events.records import EndOfInput
from rocsteady.core.prequential.fold import PrequentialFold
from rocsteady.core.prequential.fold_settings import PrequentialSettings
from rocsteady.core.prequential.folds import Folds
from rocsteady.core.prequential.instances import Task
from rocsteady.core.prequential.learners import LearnerSpec
from rocsteady.core.rows.class_rows import ClassRows
from rocsteady.transforms.events.dead_letters import DeadLetter

from tests.support.processes.beam_runs import RUNNERS_AND_CACHES, InOrder, Keep, kept, pipeline
from tests.support.streams import learner_factories

N = 400
LEARNERS = {
    "majority": "majority",
    "bayes": learner_factories.mixed_bayes,
    "moody": "tests.support.streams.learner_factories:Moody",
}


def instances(n=N, seed=1):
    random = np.random.default_rng(seed)
    x = random.normal(size=n)
    return [
        {"id": f"e{i}", "x": float(x[i]), "odd": "uv"[i % 2], "when": i,
         "y": "UP" if x[i] + random.normal() > 0 else "DOWN"}
        for i in range(n)
    ]  # fmt: skip


def timed(record):
    return TimestampedValue(record, record["when"])


def transform(**choices):
    return rs.Prequential(
        choices.pop("learners", LEARNERS), features=["x"], categories=["odd"], label="y",
        positive=choices.pop("positive", "UP"), id="id", folds=3, seed=5, window=rs.LastEvents(100),
        every=rs.EveryEvents(100), **choices,
    )  # fmt: skip


def expected():
    """Return the rows of every fold of every learner, made by machines alone."""
    made = instances()
    batch = EventBatch(
        models=TextColumn.of([""] * N), scores=np.zeros(N),
        labels=np.array([one["y"] == "UP" for one in made], np.int8),
        times=np.array([one["when"] for one in made]) * 1_000_000,
        ids=IdColumn.of([one["id"] for one in made]),
        slices=(("odd", TextColumn.of([one["odd"] for one in made])),),
        features=(("x", np.array([one["x"] for one in made])),),
    )  # fmt: skip
    evaluator = rs.EvaluatorSettings(window=rs.LastEvents(100), every=rs.EveryEvents(100), order="time")
    specs = (
        LearnerSpec("majority", "majority"),
        LearnerSpec("bayes", "tests.support.streams.learner_factories:mixed_bayes"),
        LearnerSpec("moody", "tests.support.streams.learner_factories:Moody"),
    )  # fmt: skip
    settings = PrequentialSettings(specs, Folds("bootstrap", 3, 5), evaluator, Task(True))
    rows = []
    for learner in range(3):
        for fold in range(3):
            machine = PrequentialFold(settings, learner, fold)
            outputs = [*machine.apply(batch.pack()), *machine.apply(EndOfInput().pack())]
            rows += [row for output in outputs if hasattr(output, "rows") for row in output.rows]
    return sorted(rows)


@pytest.mark.parametrize(("runner", "cache_bytes"), RUNNERS_AND_CACHES)
def test_every_runner_gives_the_rows_of_the_machines(tmp_path, runner, cache_bytes):
    made = [record for record in instances() if record["id"] != "e7"]
    shuffled = [made[place] for place in np.random.default_rng(3).permutation(len(made))]
    with pipeline(runner) as built:
        stream = built | InOrder([*shuffled, *instances()[7:8]]) | beam.Map(timed)
        run = stream | transform(time="when", order="time", clock="runner", cache_bytes=cache_bytes)
        for name in ("rows", "comparisons", "means", "dead_letters"):
            _ = getattr(run, name) | Keep(tmp_path, name)
    rows = sorted(rs.MeasureRow(*one.value) for one in kept(tmp_path, "rows"))
    assert rows == expected()
    comparisons = [rs.ComparisonRow(*one.value) for one in kept(tmp_path, "comparisons")]
    tests = {"mcnemar", "delong", "sign", "wilcoxon", "friedman", "nemenyi"}
    assert {row.test for row in comparisons} == tests
    assert {row.checkpoint for row in comparisons} == set(range(4))
    means = [rs.FoldMean(*one.value) for one in kept(tmp_path, "means")]
    mean = next(row for row in means if (row.model, row.measure, row.checkpoint) == ("bayes", "accuracy", 3))
    last = [row.accuracy for row in rows if row.model == "bayes" and row.row == 3]
    assert len(last) == mean.folds == 3
    assert mean.mean == pytest.approx(np.mean(last))
    letters = [DeadLetter(*one.value) for one in kept(tmp_path, "dead_letters")]
    assert {(letter.model, letter.reason) for letter in letters} == {("moody", "learner failed")}
    shown = json.loads(str(letters[0].raw))
    assert shown["x"] > 2
    assert shown["y"] in ("UP", "1", 1)
    assert "score" not in shown
    assert shown["id"] == letters[0][6]


@pytest.mark.parametrize(("runner", "cache_bytes"), RUNNERS_AND_CACHES)
def test_every_runner_gives_the_rows_of_classes_of_the_machines(tmp_path, runner, cache_bytes):
    made = [{**one, "y": f"{one['y']}/{one['odd']}"} for one in instances()]
    names = ["UP/u", "UP/v", "DOWN/u", "DOWN/v"]
    task = Task(False, classes=tuple(names), scores=True)
    evaluator = rs.EvaluatorSettings(window=rs.LastEvents(100), every=rs.EveryEvents(100), order="time")
    spec = LearnerSpec("bayes", "tests.support.streams.learner_factories:mixed_bayes")
    settings = PrequentialSettings((spec,), Folds("bootstrap", 3, 5), evaluator, task)
    batch = EventBatch(
        models=TextColumn.of([""] * N), scores=np.zeros(N), labels=np.full(N, -1, np.int8),
        times=np.array([one["when"] for one in made]) * 1_000_000,
        ids=IdColumn.of([one["id"] for one in made]),
        label_classes=TextColumn.of([one["y"] for one in made]), predicted=TextColumn.of([""] * N),
        slices=(("odd", TextColumn.of([one["odd"] for one in made])),),
        features=(("x", np.array([one["x"] for one in made])),),
    )  # fmt: skip
    expected = []
    for fold in range(3):
        machine = PrequentialFold(settings, 0, fold)
        outputs = [*machine.apply(batch.pack()), *machine.apply(EndOfInput().pack())]
        expected += [row for output in outputs for row in ClassRows(output.rows)]
    shuffled = [made[place] for place in np.random.default_rng(3).permutation(N)]
    stray = {**made[0], "id": "stray", "y": "FLAT"}
    with pipeline(runner) as built:
        stream = built | InOrder([*shuffled, stray]) | beam.Map(timed)
        run = stream | rs.Prequential(
            {"bayes": learner_factories.mixed_bayes}, features=["x"], categories=["odd"], label="y", id="id",
            class_scores=names, folds=3, seed=5, window=rs.LastEvents(100), every=rs.EveryEvents(100),
            time="when", order="time", clock="runner", cache_bytes=cache_bytes,
        )  # fmt: skip
        for name in ("rows", "dead_letters"):
            _ = getattr(run, name) | Keep(tmp_path, name)

    def identity(row):
        return row.slice, row.row, row.class_ or ""

    rows = [rs.ClassRow(*one.value) for one in kept(tmp_path, "rows")]
    assert sorted(rows, key=identity) == sorted(expected, key=identity)
    assert len(rows) == 3 * 4 * 5
    (letter,) = [DeadLetter(*one.value) for one in kept(tmp_path, "dead_letters")]
    assert (letter.reason, letter.value) == ("label has no score", "FLAT")


def test_instances_that_are_none_are_dead_letters(tmp_path):
    bad = [
        {"id": "a", "x": "soon", "odd": "u", "y": "UP"}, {"id": None, "x": 1, "odd": "u", "y": "UP"},
        {"id": "b", "x": 1, "odd": "u", "y": None}, {"id": "c", "x": float("inf"), "odd": "u", "y": "UP"},
    ]  # fmt: skip
    good = [{"id": f"g{i}", "x": None if i % 2 else 1, "odd": None, "y": "UP"} for i in range(10)]
    with pipeline() as built:
        run = built | beam.Create([*bad, *good]) | transform(learners=["majority", "naive-bayes"])
        _ = run.dead_letters | Keep(tmp_path, "letters")
        _ = run.rows | Keep(tmp_path, "rows")
    letters = [DeadLetter(*one.value) for one in kept(tmp_path, "letters")]
    assert sorted((letter.reason, letter.field, letter.value) for letter in letters) == [
        ("feature is not a number", "x", "soon"), ("feature is not finite", "x", "inf"),
        ("id is missing", "id", None), ("label is missing", "y", None),
    ]  # fmt: skip
    assert sum(rs.MeasureRow(*one.value).seq for one in kept(tmp_path, "rows")) > 0


def make_nothing():
    return object()


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"learners": "majority"}, "learners='majority' list"),
        ({"learners": []}, "learners none"),
        ({"learners": {"x": lambda: None}}, "imported worker module"),
        ({"learners": ["tree:of"]}, "'tree' importable"),
        ({"learners": ["perceptron"]}, "'perceptron' majority hoeffding"),
        ({"learners": {"m": "tests.support.streams.learner_factories:nobody"}}, "'nobody'"),
        ({"order": "time"}, "clock"),
        ({"compare": ["seq"]}, "'seq' accuracy"),
        ({"measures": ("auc",), "compare": ["h"]}, "h measures"),
        ({"noise": 1.5}, "noise=1.5"),
        ({"threshold": 0.0}, "threshold=0.0"),
        ({"class_scores": ["UP", "DOWN"]}, "positive='UP' class_scores="),
        ({"class_scores": "UP", "positive": None}, "class_scores='UP' list"),
        ({"class_scores": [], "positive": None}, "names of the classes"),
        ({"class_scores": ["UP"], "positive": None, "multiclass": True}, "multiclass=True class_scores="),
        ({"class_scores": ["UP"], "positive": None, "classes": ["UP"]}, "classes=('UP',) class_scores="),
    ],
)
def test_mistakes_are_told_before_anything_runs(choices, words):
    with pytest.raises(ConfigError) as told, pipeline() as built:
        _ = built | beam.Create(instances()[:5]) | transform(**choices)
    assert all(word in str(told.value) for word in words.split()), str(told.value)


def test_fields_that_must_be_named():
    for choices, word in (({"id": None}, "id="), ({"features": [], "id": "id"}, "features=")):
        with pytest.raises(ConfigError, match=word):
            rs.Prequential(["majority"], **{"features": ["x"], **choices})
    for windows in (Sessions(5), FixedWindows(60)):
        with pytest.raises(ConfigError, match="windows of Beam"), pipeline() as built:
            _ = built | beam.Create(instances()[:5]) | beam.WindowInto(windows) | transform()
