"""Labels and predictions with too few classes in common are told of, with examples of both, at every door."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import apache_beam as beam
import pandas as pd
import pytest
import rocsteady as rs
from rocsteady.core.events.class_doubts import ClassDoubt

from tests.support.processes.beam_runs import pipeline
from tests.support.processes.command import call

NONE = (["yes", "no", "yes"], ["Y", "N", "N"])
ONE = (["a", "b", "a"], ["a", "c", "c"])
CASES = pytest.mark.parametrize(
    ("classes", "sentence"),
    [
        (NONE, "labels in 'label' are 'yes', 'no', predictions in 'pred' are 'Y', 'N': they have no class"),
        (ONE, "labels in 'label' are 'a', 'b', predictions in 'pred' are 'a', 'c': they have only the class"),
    ],
)


def frame_of(labels: list[object], predicted: list[object]) -> pd.DataFrame:
    return pd.DataFrame({"score": [0.5] * len(labels), "label": labels, "pred": predicted})


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.name == "rocsteady.labels"]


@CASES
def test_a_frame_is_told_of_once(classes: Any, sentence: str, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):  # each frame is a job of its own
        caplog.clear()
        rs.evaluate(frame_of(*classes), predicted="pred")
        (said,) = told(caplog)
        assert said.startswith(sentence)
        assert "spell each class alike" in said


@CASES
def test_the_command_tells_of_files_and_of_labels_of_other_files(
    classes: Any, sentence: str, capsys: Any, tmp_path: Path
) -> None:
    frame = frame_of(*classes).assign(id=list("abc"), time=[1, 2, 3])
    frame.to_csv(tmp_path / "all.csv", index=False)
    frame.drop(columns="label").to_csv(tmp_path / "predictions.csv", index=False)
    frame[["id", "time", "label"]].to_csv(tmp_path / "labels.csv", index=False)
    words = ["--predicted", "pred", "--output", str(tmp_path / "rows.jsonl")]
    ran = call(capsys, "evaluate", str(tmp_path / "all.csv"), *words)
    (line,) = (line for line in ran.lines if "in common" in line)
    assert line.startswith(f"rocsteady: {sentence}")
    joined = ["--labels", str(tmp_path / "labels.csv"), "--id", "id", "--time", "time", "--ttl", "1d"]
    ran = call(capsys, "evaluate", str(tmp_path / "predictions.csv"), *joined, *words)
    (line,) = (line for line in ran.lines if "in common" in line)
    assert line.startswith(f"rocsteady: {sentence}")


@CASES
def test_a_pipeline_tells_in_its_log(classes: Any, sentence: str, caplog: pytest.LogCaptureFixture) -> None:
    records = frame_of(*classes).to_dict("records")
    with pipeline() as p:
        p | beam.Create(records) | rs.EvaluateModels(model_name="m", predicted="pred", shards=1)
    assert any(said.startswith(sentence) for said in told(caplog))


def test_an_evaluator_warns_at_five_events_or_at_the_end() -> None:
    evaluator = rs.ModelEvaluator()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluator.update(["yes"] * 3 + ["no"], [0.5] * 4, predicted=["Y"] * 4)
    with pytest.warns(rs.ClassesWarning, match="labels are 'yes', 'no', predicted are 'Y', 'N': they"):
        evaluator.update(["yes"], [0.5], predicted=["N"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # once
        evaluator.update(["yes"], [0.5], predicted=["N"])
        evaluator.finish()
    few = rs.ModelEvaluator(positive="a")
    few.update(ONE[0], [0.5] * 3, predicted=ONE[1])
    with pytest.warns(rs.ClassesWarning, match="only the class 'a' in common"):
        few.finish()


@pytest.mark.parametrize(
    ("labels", "predicted", "positive"),
    [
        ([1, 0, 1], [True, False, False], 1), ([1, -1, 1], [1, 0, 0], 1), ([1, -1, 1], [1, 0, 0], None),
        (["a", "b", "c"], ["b", "a", "a"], "a"), (["a", "b", "a"], ["a", "a", "a"], "a"), ([0, 0], [0, 0], 1),
    ],
    ids=["bool", "minus one", "no positive", "two in common", "one is always predicted", "one class"],
)  # fmt: skip
def test_classes_that_agree_are_not_told_of(
    labels: list[object], predicted: list[object], positive: Any, caplog: pytest.LogCaptureFixture
) -> None:
    rs.evaluate(frame_of(labels, predicted), predicted="pred", positive=positive)
    assert told(caplog) == []
    evaluator = rs.ModelEvaluator(positive=positive)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluator.update(labels, [0.5] * len(labels), predicted=predicted)
        evaluator.finish()


def test_minus_one_beside_a_positive_zero_is_told_of_with_the_remedy(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rs.evaluate(frame_of([1, -1, -1], [1, 0, 0]), predicted="pred", positive=0)
    (said,) = told(caplog)
    assert "they have only the class '1' in common; -1 and 0 are one class only where 1 is positive" in said


def test_one_class_in_common_is_told_of_at_1000_events_and_none_at_5() -> None:
    for common, enough in ((["a"], 1_000), ([], 5)):
        doubt = ClassDoubt(("labels", "predicted"), None)
        doubt.add(0, ["b", *common], enough - 1)
        doubt.add(1, ["c", *common], 2 * enough)
        assert doubt.sentence() is None
        doubt.add(0, ["b"], 1)
        assert doubt.sentence() is not None
        assert doubt.sentence(at_end=True) is None
    many = ClassDoubt(("labels", "predicted"), None)
    many.add(0, [f"l{number}" for number in range(5_000)], 5_000)
    many.add(1, [f"p{number}" for number in range(5_000)], 5_000)
    assert str(many.sentence()).startswith("labels are 'l0', 'l1', 'l2' and 997 more, predicted are 'p0',")
