"""Labels and predicted classes in any two forms give the rows of 1 and 0, through every door."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import rocsteady as rs
from rocsteady.core.evaluator.evaluator import ModelEvaluator
from rocsteady.core.rows.records import MeasureRow
from rocsteady.core.settings.classes import class_name, class_text, named_classes, shared_classes
from rocsteady.transforms.yaml_transforms import EvaluateModelsYaml

from tests.support.processes.beam_runs import Keep, kept, pipeline
from tests.support.processes.command import call

SCORES = [0.9, 0.8, 0.2, 0.1, 0.7, 0.3]
LABELS = [1, 1, 0, 0, 0, 1]
PREDICTED = [1, 1, 0, 0, 1, 0]

FORMS: dict[str, tuple[Any, Any]] = {  # of 0 and of 1
    "int": (0, 1),
    "float": (0.0, 1.0),
    "digits": ("0", "1"),
    "decimals": ("0.0", "01.00"),
    "bool": (False, True),
    "True": ("False", "True"),
    "TRUE": ("FALSE", "true"),
    "minus": (-1, 1),
    "minus text": ("-1.0", "1"),
    "decimal": (Decimal("0.0"), Decimal("1.0")),
    "numpy bool": (np.False_, np.True_),
    "numpy float": (np.float32(0), np.float32(1)),
}
ARROW: dict[str, Callable[[list[Any]], pa.Array]] = {
    "dictionary of bools": lambda v: pa.DictionaryArray.from_arrays(pa.array(v), pa.array([False, True])),
    "dictionary of texts": lambda v: pa.array([("false", "1")[each] for each in v]).dictionary_encode(),
    "large text": lambda v: pa.array([("0", "TRUE")[each] for each in v], pa.large_string()),
    "binary": lambda v: pa.array([(b"-1", b"true")[each] for each in v]),
    "int8": lambda v: pa.array(v, pa.int8()),
    "half": lambda v: pa.array(np.array(v, np.float16)),
}
FEW = [("int", "bool"), ("bool", "digits"), ("True", "float"), ("minus", "int"), ("int", "minus text")]
"""Pairs of forms for doors that take long."""


def in_form(form: str, values: Iterable[int]) -> list[Any]:
    return [FORMS[form][value] for value in values]


def column(form: str, values: list[int]) -> pa.Array:
    if form in ARROW:
        return ARROW[form](values)
    return pa.array([each.item() if isinstance(each, np.generic) else each for each in in_form(form, values)])


def table(label: str, pred: str) -> pa.Table:
    return pa.table({"score": SCORES, "label": column(label, LABELS), "pred": column(pred, PREDICTED)})


def listed(frame: Any) -> list[dict[str, Any]]:
    """Return the lines of a frame of any kind as dicts."""
    if isinstance(frame, pa.Table):
        return frame.to_pylist()
    return frame.to_dicts() if isinstance(frame, pl.DataFrame) else frame.to_dict("records")


def check(row: dict[str, Any]) -> None:
    """Compare a row with the definitions."""
    found = {name: row[name] for name in ("tp", "fp", "tn", "fn", "positives", "negatives")}
    assert found == {"tp": 2, "fp": 1, "tn": 2, "fn": 1, "positives": 3, "negatives": 3}
    assert row["accuracy"] == row["f1"] == row["balanced_accuracy"] == pytest.approx(2 / 3)
    assert row["kappa"] == pytest.approx(1 / 3)
    assert row["kappa_m"] == pytest.approx(0.5)  # the majority class is right at 2 of 6 events
    assert row["auc"] == pytest.approx(8 / 9)


def test_frames_of_any_two_forms_give_the_rows_of_1_and_0() -> None:
    for label, pred in product([*FORMS, *ARROW], repeat=2):
        for positive in (1, "True"):
            result = rs.evaluate(table(label, pred), predicted="pred", positive=positive)
            check(listed(result.rows)[0])
            assert "in common" not in repr(result), (label, pred)


def test_an_evaluator_takes_any_two_forms() -> None:
    for label, pred in product(FORMS, repeat=2):
        for positive in (1, True, "TRUE", np.float64(1)):
            evaluator = ModelEvaluator(positive=positive)
            evaluator.update(in_form(label, LABELS), SCORES, predicted=in_form(pred, PREDICTED))
            check(evaluator.finish()[0]._asdict())


@pytest.mark.parametrize("form", [*FORMS])
def test_an_evaluator_finds_the_positives_without_predictions(form: str) -> None:
    for positive in (1, True, "true", 1.0, None):
        evaluator = ModelEvaluator(positive=positive)
        evaluator.update(in_form(form, LABELS), SCORES)
        assert evaluator.measures().auc == pytest.approx(8 / 9)
    of_negatives = {"minus": -1, "minus text": "-1"}.get(form, False)
    evaluator = ModelEvaluator(positive=of_negatives)
    evaluator.update(in_form(form, LABELS), SCORES)
    assert evaluator.measures().auc == pytest.approx(1 / 9)


@pytest.mark.parametrize("kind", ["pandas", "categories", "polars"])
def test_other_frames_give_the_same(kind: str) -> None:
    for label, pred in [*FEW, ("numpy bool", "numpy float")]:
        columns = {"score": SCORES, "label": in_form(label, LABELS), "pred": in_form(pred, PREDICTED)}
        frame = pl.DataFrame(columns) if kind == "polars" else pd.DataFrame(columns)
        if kind == "categories":
            frame = frame.astype({"label": "category", "pred": "category"})
        check(listed(rs.evaluate(frame, predicted="pred", positive=1).rows)[0])


def write(path: Path, given: pa.Table) -> None:
    if path.suffix == ".parquet":
        pq.write_table(given, path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in given.to_pylist()))
    else:
        pa.csv.write_csv(given, path)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_the_command_gives_the_same_and_tells_nothing(ending: str, capsys: Any, tmp_path: Path) -> None:
    for label, pred in FEW:
        write(tmp_path / f"events.{ending}", table(label, pred))
        words = ["--predicted", "pred", "--positive", "1", "--output", str(tmp_path / "rows.jsonl")]
        ran = call(capsys, "evaluate", str(tmp_path / f"events.{ending}"), *words)
        assert (ran.status, len(ran.lines)) == (0, 1), ran.lines
        check(json.loads((tmp_path / "rows.jsonl").read_text()))


def test_one_file_of_json_lines_may_mix_the_forms(capsys: Any, tmp_path: Path) -> None:
    values = [1, "true", False, "0.0", 0, True], [True, 1.0, "0", False, "TRUE", 0.0]
    lines = [
        json.dumps({"score": score, "label": label, "pred": pred})
        for score, label, pred in zip(SCORES, *values, strict=True)
    ]
    (tmp_path / "mixed.jsonl").write_text("\n".join(lines))
    words = ["--predicted", "pred", "--positive", "1", "--output", str(tmp_path / "rows.jsonl")]
    assert call(capsys, "evaluate", str(tmp_path / "mixed.jsonl"), *words).status == 0
    check(json.loads((tmp_path / "rows.jsonl").read_text()))


@pytest.mark.parametrize(("label", "pred"), FEW)
def test_labels_of_another_file_are_joined_in_any_form(
    label: str, pred: str, capsys: Any, tmp_path: Path
) -> None:
    given, times = table(label, pred), pa.array(range(6))
    ids = pa.array([f"i{number}" for number in range(6)])
    timed = given.append_column("id", ids).append_column("time", times)
    write(tmp_path / "predictions.csv", timed.select(["id", "time", "score", "pred"]))
    write(tmp_path / "labels.parquet", timed.select(["id", "time", "label"]))
    ran = call(
        capsys, "evaluate", str(tmp_path / "predictions.csv"), "--labels", str(tmp_path / "labels.parquet"),
        "--id", "id", "--time", "time", "--ttl", "1d", "--predicted", "pred", "--positive", "1",
        "--output", str(tmp_path / "rows.jsonl"),
    )  # fmt: skip
    assert ran.status == 0, ran.lines
    assert not any("in common" in line for line in ran.lines)
    check(json.loads((tmp_path / "rows.jsonl").read_text()))


@pytest.mark.parametrize(("label", "pred"), [("bool", "int"), ("int", "True"), ("minus", "int")])
def test_a_champion_is_compared_over_labels_of_any_form(
    label: str, pred: str, capsys: Any, tmp_path: Path
) -> None:
    wide = table(label, pred).append_column("old", pa.array(SCORES))
    write(tmp_path / "wide.csv", wide)
    ran = call(
        capsys, "evaluate", str(tmp_path / "wide.csv"), "--score", "score", "--against", "old", "--predicted",
        "pred", "--positive", "1", "--pairs", str(tmp_path / "pairs.jsonl"),
        "--output", str(tmp_path / "rows.jsonl"),
    )  # fmt: skip
    assert ran.status == 0, ran.lines
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert len(rows) == 2
    for row in rows:
        check(row)
    pair = json.loads((tmp_path / "pairs.jsonl").read_text())
    assert (pair["window_events"], pair["difference"]) == (6, 0)


def test_a_champion_of_another_file_may_have_labels_of_another_form(capsys: Any, tmp_path: Path) -> None:
    ids = pa.array([f"i{number}" for number in range(6)])
    for name, forms in (("new", ("int", "bool")), ("old", ("bool", "digits"))):
        write(tmp_path / f"{name}.csv", table(*forms).append_column("id", ids))
    ran = call(
        capsys, "evaluate", str(tmp_path / "new.csv"), str(tmp_path / "old.csv"), "--id", "id", "--champion",
        "old", "--predicted", "pred", "--positive", "true", "--pairs", str(tmp_path / "pairs.jsonl"),
        "--output", str(tmp_path / "rows.jsonl"),
    )  # fmt: skip
    assert ran.status == 0, ran.lines
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert [row["model"] for row in rows] == ["new", "old"]
    for row in rows:
        check(row)
    pair = json.loads((tmp_path / "pairs.jsonl").read_text())
    assert (pair["window_events"], pair["difference"], pair["auc"]) == (6, 0, pytest.approx(8 / 9))


@pytest.mark.parametrize("form", ["keywords", "yaml"])
def test_beam_gives_the_same(form: str, tmp_path: Path) -> None:
    pairs = [*FEW, ("numpy bool", "decimal")]
    records = [
        {"model": f"{label} {pred}", "score": score, "label": FORMS[label][value], "pred": FORMS[pred][other]}
        for label, pred in pairs
        for score, value, other in zip(SCORES, LABELS, PREDICTED, strict=True)
    ]
    make = rs.EvaluateModels if form == "keywords" else EvaluateModelsYaml
    with pipeline() as p:
        events = p | beam.Create(records)
        found = events | make(model="model", predicted="pred", positive=True, shards=2)
        rows = found.rows if form == "keywords" else found["rows"]
        rows | Keep(tmp_path, "rows")
    rows = [MeasureRow(*each.value)._asdict() for each in kept(tmp_path, "rows")]
    assert sorted(row["model"] for row in rows) == sorted(f"{label} {pred}" for label, pred in pairs)
    for row in rows:
        check(row)


THREE = [-1, 0, 1]


def test_of_three_classes_minus_one_is_a_class_of_its_own() -> None:
    rng = np.random.default_rng(5)
    labels, predicted = rng.choice(THREE, 60), rng.choice(THREE, 60)
    right = float(np.mean(labels == predicted))
    frame = pd.DataFrame({"score": rng.random(60), "label": labels, "pred": predicted.astype(str)})
    for positive in (1, -1, 0, None):
        row = listed(rs.evaluate(frame, predicted="pred", positive=positive).rows)[0]
        assert row["accuracy"] == pytest.approx(right)
        evaluator = ModelEvaluator(positive=positive)
        evaluator.update(labels, frame["score"], predicted=frame["pred"])
        assert evaluator.measures().accuracy == pytest.approx(right)
    scores = np.eye(3)[predicted + 1]
    of_classes = rs.MulticlassEvaluator(THREE)
    of_classes.update(labels.astype(float), scores, predicted=[str(each) for each in predicted])
    assert of_classes.finish()[0].accuracy == pytest.approx(right)


@pytest.mark.parametrize("names", [["0", "1", "2"], ["1", "2", "3"], ["a", "B", "b"], ["true", "false", "?"]])
def test_several_classes_keep_their_identity(names: list[str]) -> None:
    labels, predicted = names * 2, [names[0], names[2], names[2], names[1], names[1], names[1]]
    frame = pd.DataFrame({"score": SCORES, "label": labels, "pred": predicted})
    row = listed(rs.evaluate(frame, predicted="pred", positive=names[0]).rows)[0]
    assert row["accuracy"] == pytest.approx(3 / 6)
    assert row["positives"] == 2


@pytest.mark.parametrize("names", [("true", "false"), ("1", "-1"), ("1", "0")])
def test_scores_of_two_classes_go_with_labels_of_any_form(names: tuple[str, str]) -> None:
    one = rs.MulticlassEvaluator(names)
    for form in FORMS:
        frame = pd.DataFrame(
            {f"p_{names[0]}": SCORES, f"p_{names[1]}": 1 - np.array(SCORES), "label": in_form(form, LABELS)}
        )
        result = rs.evaluate(frame, class_scores="p_*")
        rows = {row["class"]: row for row in listed(result.rows)}
        assert not len(result.dead_letters)
        assert rows.keys() == {None, *names}
        assert rows[None]["accuracy"] == pytest.approx(4 / 6)
        assert rows[names[0]]["auc"] == rows[names[1]]["auc"] == pytest.approx(8 / 9)
        one.update(in_form(form, LABELS), frame[[f"p_{name}" for name in names]].to_numpy())
    assert one.finish()[0].accuracy == pytest.approx(4 / 6)


def test_of_three_named_classes_minus_one_is_none() -> None:
    frame = pd.DataFrame({"p_0": [0.5], "p_1": [0.3], "p_2": [0.2], "label": [-1]})
    letters = rs.evaluate(frame, class_scores="p_*").dead_letters
    assert letters["reason"].tolist() == ["label has no score"]


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, pd.NaT, pa.scalar(None, pa.bool_())])
def test_a_missing_class_is_refused_in_a_sentence(missing: Any) -> None:
    for positive in (1, None):
        with pytest.raises(rs.InputError, match=r"labels\[2\] is .*: every event needs a class"):
            ModelEvaluator(positive=positive).update([1, True, missing], [0.1] * 3, predicted=["1", 0, 1])
    nullable = pd.array([True, False, None], dtype="boolean")
    with pytest.raises(rs.InputError, match=r"labels\[2\] is <NA>"):
        ModelEvaluator(positive=1).update(nullable, [0.1] * 3)
    with pytest.raises(rs.InputError, match=r"labels\[2\] is <NA>: a label is 1, 0, -1, True or False"):
        ModelEvaluator().update(nullable, [0.1] * 3)


def test_the_table_of_the_page_holds() -> None:
    for same in [
        [1, 1.0, "1", "01", " 1 ", "1e0", True, "true", "TRUE", "True", b"1", pa.scalar(1), pa.scalar(True)],
        [0, "0", -0.0, False, "false", np.False_, "0.0"],
        [-1, "-1", "-1.0", np.int8(-1)],
        ["yes", " yes ", pa.scalar("yes"), np.str_("yes"), b"yes"],
        [0.5, "0.50", ".5", "5e-1", Decimal("0.50")],
    ]:
        assert len({class_text(value) for value in same}) == 1
    apart = [1, 0, -1, "yes", "Yes", "y", 0.5, 2, "NA", "1_0", "t"]
    assert len({class_text(value) for value in apart}) == len(apart)
    assert class_name(True) == class_name("TRUE") == "true"
    assert named_classes(["1", "-1"]) == {"1": "1", "-1": "-1", "0": "-1"}
    assert named_classes(["0", "1", "2"]).keys() == {"0", "1", "2"}
    assert shared_classes(["1", "-1"], ["1", "0"], "1") == {"1", "0"}
    assert shared_classes(["1", "-1"], ["1", "0"], "0") == {"1"}
