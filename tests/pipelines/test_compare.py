"""The command that compares models by the rows of their folds."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet
import pytest
from rocsteady.core.compare.comparisons import Checkpoint, blank_row
from rocsteady.core.compare.significance import friedman_nemenyi, wilcoxon
from rocsteady.pipelines.cli import main
from rocsteady.pipelines.tables import summary
from rocsteady.transforms.tables.table_rows import read_rows

FOLDS = 8


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Rows of three models over eight folds, one of them worse by far; a grid of three days."""
    folder = tmp_path_factory.mktemp("rows")
    random = np.random.default_rng(4)
    lines = ["model,fold,site,time,score,label"]
    for place in range(24_000):
        label = int(random.random() < 0.4)
        hour = place * 72 // 24_000
        for model, skill in (("best", 2.0), ("good", 1.9), ("poor", 0.3)):
            score = random.normal(label * skill, 1)
            fold, site = place % FOLDS, "ab"[place % 2]
            lines.append(
                f"{model},{fold},{site},2026-01-0{1 + hour // 24}T{hour % 24:02}:00:00Z,{score},{label}"
            )
    events = folder / "events.csv"
    events.write_text("\n".join(lines))
    output = folder / "rows.parquet"
    words = ["--slice", "fold", "--slice", "site", "--slice", "fold,site", "--time", "time"]
    assert main(["evaluate", str(events), *words, "--every", "1d", "--output", str(output)]) == 0
    return output


def compared(rows, tmp_path, *more):
    output = tmp_path / "comparisons.parquet"
    assert main(["compare", str(rows), "--output", str(output), *more]) == 0
    return pyarrow.parquet.read_table(output).to_pylist()


@pytest.mark.slow
def test_tests_are_of_the_rows(rows, tmp_path, capsys):
    found = compared(rows, tmp_path, "--measure", "auc", "--measure", "log_loss", "--measure", "h")
    values = {}
    for row in read_rows(rows):
        if row.slice.startswith("fold=") and "," not in row.slice and row.due is not None:
            values.setdefault((row.due, row.model), []).append((row.slice, row.h))
    moments = sorted({due for due, _ in values})
    assert {row["checkpoint"] for row in found} == set(range(len(moments)))
    for place, due in enumerate(moments):
        here = {row["test"]: row for row in found if row["checkpoint"] == place and row["measure"] == "h"}
        best, good, poor = (
            np.array([h for _, h in sorted(values[due, model])]) for model in ("best", "good", "poor")
        )
        (pair,) = [
            row
            for row in found
            if (row["checkpoint"], row["measure"], row["test"]) == (place, "h", "wilcoxon")
            and (row["learner_a"], row["learner_b"]) == ("best", "poor")
        ]
        assert pair["p_value"] == wilcoxon(best, poor).p_value
        assert pair["better"] == "best"
        assert pair["folds"] == FOLDS
        assert int(pair["time"].timestamp() * 1e6) == due
        friedman = friedman_nemenyi(np.array([best, good, poor]).T)
        assert here["friedman"]["p_value"] == pytest.approx(friedman.p_value)
        assert here["friedman"]["statistic"] == pytest.approx(friedman.statistic)
    said = capsys.readouterr().err
    assert "best is better than poor by auc, sign test" in said
    assert "since checkpoint 0" in said


def test_scores_that_are_no_probabilities_have_no_log_loss(rows, tmp_path):
    found = compared(rows, tmp_path, "--measure", "log_loss")
    assert {row["p_value"] for row in found} == {None}
    assert all("two are needed" in row["reason"] for row in found)


def test_another_column_may_be_the_folds(rows, tmp_path):
    found = compared(rows, tmp_path, "--over", "site", "--alpha", "0.6")
    assert {row["folds"] for row in found} == {2}
    assert {row["alpha"] for row in found} == {0.6}


def test_csv_and_rows_by_their_ordinal(tmp_path):
    events = tmp_path / "events.jsonl"
    random = np.random.default_rng(2)
    with events.open("w") as lines:
        for place in range(4_000):
            for model in "ab":
                label = place % 3 == 0
                score = random.normal(label, 1)
                lines.write(
                    f'{{"model": "{model}", "fold": {place % 4}, "score": {score}, "label": {int(label)}}}\n'
                )
    rows = tmp_path / "rows.csv"
    words = ["--slice", "fold", "--every", "250", "--window", "last:200"]
    assert main(["evaluate", str(events), *words, "--output", str(rows)]) == 0
    output = tmp_path / "comparisons.csv"
    assert main(["compare", str(rows), "--output", str(output)]) == 0
    lines = output.read_text().splitlines()
    assert lines[0].startswith("checkpoint,time,seq,slice,measure,learner_a,learner_b,test,folds")
    assert [line.split(",")[:3] for line in lines[1::4]] == [["0", "", "250"], ["1", "", "500"],
                                                            ["2", "", "750"], ["3", "", "1000"]]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--over", "carrier"],
            "name the column of folds or streams with --over (there are slices by fold, site)",
        ),
        (["--measure", "prevalence"], "--measure prevalence does not say who is better"),
        (["--measure", "auc_m"], "--measure auc_m: only models with a score of each class have it"),
        (["--alpha", "5"], "--alpha 5: give a level between 0 and 1"),
        (["--alpha", "x"], "--alpha x: give a level"),
    ],
)
def test_what_is_wrong_is_said(rows, tmp_path, capsys, words, said):
    assert main(["compare", str(rows), "--output", str(tmp_path / "c.csv"), *words]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "c.csv").exists()


@pytest.mark.parametrize("command", [["compare", "--over", "fold"], ["rows"]])
def test_the_rows_that_are_read_are_not_replaced(rows, capsys, command):
    before = rows.read_bytes()
    assert main([*command, str(rows), "--output", str(rows)]) == 2
    assert "is also an input; write to another file" in capsys.readouterr().err
    assert rows.read_bytes() == before


def test_rows_without_slices_are_not_compared(tmp_path, capsys):
    events = tmp_path / "events.csv"
    events.write_text("model,score,label\na,0.1,0\nb,0.9,1\n")
    assert main(["evaluate", str(events), "--output", str(tmp_path / "rows.csv")]) == 0
    assert main(["compare", str(tmp_path / "rows.csv"), "--output", str(tmp_path / "c.csv")]) == 2
    assert "the rows have no slices" in capsys.readouterr().err


def row_of(checkpoint, folds, p_value, better="", measure="auc"):
    at = Checkpoint(checkpoint, None, 10 * checkpoint)
    row = blank_row(at, "", measure, "wilcoxon", "old", "new", folds, 0.05, None)
    return row._replace(p_value=p_value, p_holm=p_value, better=better)


def test_a_last_checkpoint_without_folds_is_not_the_last_word():
    """Folds that end early leave it empty: what is shown is what the last checkpoint with folds shows."""
    rows = [row_of(428, 8, 0.2), row_of(429, 8, 0.01, "new"), row_of(655, 0, None)]
    assert list(summary(rows)) == [
        "by auc models are compared at checkpoint 429, which has 8 folds: the last checkpoint, 655, has 0",
        "new is better than old by auc, wilcoxon test (p 0.01), since checkpoint 429",
    ]
    assert list(summary([row_of(429, 8, 0.2), row_of(655, 2, 0.5)])) == [
        "by auc models are compared at checkpoint 429, which has 8 folds: the last checkpoint, 655, has 2",
        "no model is shown to be better than another at checkpoint 429",
    ]
    assert list(summary([row_of(1, 7, 0.01, "old"), row_of(2, 8, 0.2)])) == [
        "no model is shown to be better than another at the last checkpoint"
    ]
    (told,) = summary([row_of(1, 1, None), row_of(2, 0, None)])
    assert told == "by auc nothing can be tested: no checkpoint has two folds with values of two models"


def test_each_measure_has_a_last_checkpoint_of_its_own():
    rows = [
        row_of(3, 8, 0.01, "new"),
        row_of(4, 0, None),
        row_of(3, 8, 0.3, "", "h"),
        row_of(4, 8, 0.01, "old", "h"),
    ]
    assert list(summary(rows))[1:] == [
        "new is better than old by auc, wilcoxon test (p 0.01), since checkpoint 3",
        "old is better than new by h, wilcoxon test (p 0.01), since checkpoint 4",
    ]
