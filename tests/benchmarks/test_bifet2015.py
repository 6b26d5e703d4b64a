"""Bifet 2015 is run again by one command, with the tests of the machines of a prequential evaluation."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rocsteady.core.compare.fold_pairs import FoldPairs
from rocsteady.core.compare.fold_report import FoldReport
from rocsteady.core.compare.learners import LearnerComparisons
from rocsteady.core.compare.mcnemar import McnemarEvidence, mcnemar
from rocsteady.core.compare.significance import sign_test, wilcoxon
from rocsteady.core.errors import InputError
from rocsteady.core.events.records import EndOfInput
from rocsteady.core.kernels.cache_folder import CACHE_FOLDER
from rocsteady.core.prequential.fold import PrequentialFold
from rocsteady.core.prequential.fold_settings import PrequentialSettings
from rocsteady.core.prequential.folds import METHODS, Folds
from rocsteady.core.prequential.instances import Task
from rocsteady.core.prequential.learners import LearnerSpec
from rocsteady.core.settings.evaluator import EvaluatorSettings
from rocsteady.core.settings.windows import AllEvents, EveryEvents

from tests.support import ROOT

pytest.importorskip("river")

from benchmarks.papers import bifet2015_numbers as paper
from benchmarks.papers import bifet2015_runs as runs
from benchmarks.papers import bifet2015_streams as streams
from benchmarks.papers.online_forest import MOST_NODES, OnlineForest

FOREST = "benchmarks.papers.online_forest:OnlineForest"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Files in the form of the data sets, generated."""
    rng = np.random.default_rng(1)
    n = 4200
    x, y = rng.normal(size=n), rng.normal(size=n)
    up = x + y + rng.normal(size=n) > 2 * np.sin(np.arange(n) / 300)
    cover = 1 + up + (y > 1)
    for name, head, *columns in (
        ("covtype", "x,y,Cover_Type", x, y, cover),
        ("poker", "s1,r1,class", cover, (9 * abs(x)).astype(int), cover - 1),
        ("electricity", "x,y,class", x, y, np.where(up, "UP", "DOWN")),
    ):
        with gzip.open(tmp_path / f"{name}.csv.gz", "wt") as file:
            file.write(head + "\n")
            file.writelines(",".join(map(str, row)) + "\n" for row in zip(*columns, strict=True))
    return tmp_path


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.papers", *words]
    folders = {"ROCSTEADY_CACHE_DIR": str(CACHE_FOLDER.parent)} if CACHE_FOLDER is not None else {}
    settings = {**os.environ, **folders, **environment}
    return subprocess.run(command, env=settings, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_one_command_writes_the_page_and_its_pictures(data: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    output = tmp_path / "papers"
    done = run("bifet2015", "--quick", "--output", str(output), ROCSTEADY_DATA=str(data))
    assert done.returncode == 0, done.stderr
    page = (output / "bifet2015.md").read_text()
    assert [title.split(":")[0] for title in re.findall(r"^## (.*)", page, re.MULTILINE)] == [
        "The scale",
        "Table 1",
        "Table 2",
        "Table 3",
        "Table 4",
        "Looking 20 times",
        "Section 4.1",
        "Figure 2",
        "Figure 3",
        "Figure 4",
        "Table 5",
    ]
    pictures = re.findall(r"\]\((.*?)\)", page)
    assert pictures == [f"bifet2015-{number}.svg" for number in (1, 2, 3, 4)]
    for picture in pictures:
        assert (output / picture).read_text().startswith("<?xml")
    for name in streams.STREAMS:
        assert page.count(f"| {name} |") == 3, "tables 3 and 4, and the noise filter"
    assert page.count("- **The paper**") == 9
    assert page.count("- **Here**") == 10
    assert "kappa_m of the majority is 0 in every one" in page
    assert "p = 0.109: does not reject" in page
    assert "p = 0.0098: rejects" in page
    assert "-0.1667" in page
    assert "13 streams as in the paper, by 2 runs where it has 50" in page
    assert not re.search(r"\bnan\b|\binf\b", page)


@pytest.mark.slow  # in a plain run test_tatti2018.py asks for what is missing
def test_the_command_says_what_is_missing(tmp_path: Path) -> None:
    done = run("bifet2015", "--output", str(tmp_path), ROCSTEADY_DATA=str(tmp_path))
    assert done.returncode == 2
    assert "covtype.csv.gz does not exist" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("table", "averages"),
    [
        (paper.TABLE_3, paper.TABLE_2["mcnemar", False]),
        (paper.TABLE_4, paper.TABLE_2["wilcoxon", True]),
    ],
)
def test_the_papers_tables_have_the_averages_that_it_prints(
    table: dict[str, paper.Cells], averages: paper.Cells
) -> None:
    for key, printed in averages.items():
        assert np.mean([cells[key] for cells in table.values()]) == pytest.approx(printed, abs=0.0101), key


@pytest.mark.parametrize("prequential", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_p_values_are_those_of_the_machines(method: str, prequential: bool) -> None:
    """Two forests against the three machines of a job."""
    folds = Folds(method, 4, seed=7, prequential=prequential)  # type: ignore[arg-type]
    stream = streams.stream_of("LED(50000)", 600, 3)
    settings = PrequentialSettings(
        (LearnerSpec("a", FOREST), LearnerSpec("b", FOREST)), folds,
        EvaluatorSettings(window=AllEvents(), every=EveryEvents(10**9)),
        Task(is_binary=False, classes=stream.classes),
    )  # fmt: skip
    over_folds = LearnerComparisons(settings.comparison)
    rows = []
    wrong_a, wrong_b, *_ = runs.wrong_of_folds(stream, folds)
    accuracies: list[list[float]] = [[], []]
    for fold in range(folds.count):
        pairs = FoldPairs(settings.comparison, fold)
        tests = folds.assign(stream.ids, fold).tests
        for learner, wrong in enumerate((wrong_a[fold], wrong_b[fold])):
            machine = PrequentialFold(settings, learner, fold)
            outputs = [
                *machine.apply(stream.batch().part(0, 250).pack()),
                *machine.apply(stream.batch().part(250, 600).pack()),
                *machine.apply(EndOfInput().pack()),
            ]
            for report in (packed for output in outputs for packed in output.reports):  # type: ignore[union-attr]
                assert FoldReport.unpack(report).wrong.tolist() == wrong[tests].tolist()
                for given in pairs.apply(report):
                    rows += over_folds.apply(given) if isinstance(given, bytes) else [given]
            accuracies[learner].append(1 - wrong[tests].mean())
    found = {(row.test, row.slice, row.measure): row for row in rows if hasattr(row, "p_value")}
    for fold in range(folds.count):
        tests = folds.assign(stream.ids, fold).tests
        only_a, only_b = (
            int((x[fold] & ~y[fold] & tests).sum()) for x, y in ((wrong_a, wrong_b), (wrong_b, wrong_a))
        )
        assert found["mcnemar", f"fold={fold}", "accuracy"].p_value == mcnemar(only_a, only_b).p_value
    assert found["sign", "", "accuracy"].p_value == sign_test(*accuracies).p_value
    assert found["wilcoxon", "", "accuracy"].p_value == pytest.approx(wilcoxon(*accuracies).p_value)


def test_a_run_notes_every_test_of_every_place() -> None:
    rejections = runs.run_all(["SEA(50)"], 300, 2, lambda _: None)
    places = {place for place, _ in rejections.by_test}
    assert len(places) == len(METHODS) * 2 * len(runs.CHANGES)
    assert {test for _, test in rejections.by_test} == set(runs.TESTS)
    assert all(len(shares) == 2 for shares in rejections.by_test.values())
    assert all(0 <= share <= 1 for shares in rejections.by_test.values() for share in shares)
    before, after = rejections.disturbed("SEA(50)", "cv", True, 0.1)
    assert 0.02 < before - after < 0.1, "noise costs p (2 p0 - 1) of accuracy"


def test_looks_are_at_all_that_came_so_far() -> None:
    a, b = [3, 0, 9, 4], [0, 2, 1, 0]
    p_values, anytime = runs.p_values_of_looks(a, b)
    totals = zip(np.cumsum(a).tolist(), np.cumsum(b).tolist(), strict=True)
    assert p_values.tolist() == [mcnemar(*total).p_value for total in totals]
    evidence = McnemarEvidence()
    assert anytime == [evidence.update(*counts) for counts in zip(a, b, strict=True)][-1]


def test_a_stream_is_shorter_and_its_drifts_as_wide_in_proportion(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert streams.width_of(50_000, 10_000) == 500
    assert streams.width_of(50, 10_000) == 1
    assert streams.width_of(0, 10_000) == 0
    monkeypatch.setenv("ROCSTEADY_DATA", str(data))
    for name in streams.STREAMS:
        stream = streams.stream_of(name, 120, 1)
        assert len(stream) == len(stream.codes) == len(stream.instances.matrix()) == 120
        assert [stream.classes[code] for code in stream.codes] == stream.instances.answers()
    stream = streams.stream_of("Electricity", 120, 1)
    assert stream.labels_of("UP").tolist() == [answer == "UP" for answer in stream.instances.answers()]


def blobs(n: int = 1500, seed: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 3, n)
    matrix = rng.normal(size=(n, 4))
    matrix[:, 1] += 2 * codes
    return matrix, codes


def test_a_forest_is_the_same_one_by_one() -> None:
    matrix, codes = blobs(300)
    weights = np.random.default_rng(2).integers(0, 3, 300)
    tests = np.arange(300) % 2 == 0
    said = OnlineForest(seed=4).test_then_train(matrix, codes, 3, weights, tests)
    slow, classes, expected = OnlineForest(seed=4), np.array(["u", "v", "w"]), []
    for row in range(300):
        line = matrix[row : row + 1]
        odds = slow.predict_proba(line)[0] if hasattr(slow, "classes_") else np.zeros(3)
        expected.append(int(odds.argmax()) if tests[row] and odds.any() else -1)
        for _ in range(weights[row]):
            slow.partial_fit(line, classes[codes[row : row + 1]], classes=classes)
    assert said.tolist() == expected


def test_a_forest_learns_and_grows_within_its_room() -> None:
    matrix, codes = blobs(6000)
    ones, everything = np.ones(6000, np.int64), np.ones(6000, bool)
    forest = OnlineForest(seed=1)
    said = forest.test_then_train(matrix, codes, 3, ones, everything)
    right = said == codes
    best = (np.clip(np.rint(matrix[:, 1] / 2), 0, 2) == codes).mean()  # the best that one can say
    assert right[-2000:].mean() > best - 0.05
    assert right[-2000:].mean() > right[:200].mean()
    trees = forest._trees
    assert trees is not None
    for tree in range(len(trees.size)):
        nodes = int(trees.size[tree])
        assert 3 <= nodes <= MOST_NODES
        inner = np.flatnonzero(trees.feature[tree] >= 0)
        children = np.concatenate((trees.left[tree][inner], trees.left[tree][inner] + 1))
        assert sorted(children.tolist()) == list(range(1, nodes)), "every node but the root has one parent"
    other = OnlineForest(seed=2).test_then_train(matrix, codes, 3, ones, everything)
    again = OnlineForest(seed=1).test_then_train(matrix, codes, 3, ones, everything)
    assert (said == again).all()
    assert (said != other).any()


def test_a_forest_keeps_to_the_classes_that_it_was_made_for() -> None:
    matrix, codes = blobs(10)
    forest = OnlineForest(seed=1)
    forest.test_then_train(matrix, codes, 3, np.ones(10, np.int64), np.ones(10, bool))
    with pytest.raises(InputError, match="4 classes, and the forest was made for 3"):
        forest.test_then_train(matrix, codes, 4, np.ones(10, np.int64), np.ones(10, bool))
