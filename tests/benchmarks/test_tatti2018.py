"""The paper's figures are drawn by one command, and its baselines give the AUC."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rocsteady.core.kernels.cache_folder import CACHE_FOLDER

from tests.support import ROOT

BASELINES = """
import numpy as np
from sklearn.metrics import roc_auc_score
from benchmarks.papers.baselines import Bins, Rescan

rng = np.random.default_rng(3)
labels, scores = rng.integers(0, 2, 400), rng.integers(0, 30, 400) / 30
aucs = Rescan(labels, scores, 50).slide(400)
assert np.isnan(aucs[0])
for t in range(5, 400, 7):
    held = slice(max(0, t - 49), t + 1)
    assert abs(aucs[t] - roc_auc_score(labels[held], scores[held])) < 1e-12, t
assert (Rescan(labels, scores, 50, begin=100).slide(300) == aucs[100:]).all()
of_scores = Bins(labels, scores, 50, np.unique(scores)).slide(400)
np.testing.assert_allclose(of_scores, aucs, atol=1e-12)
coarse = Bins(labels, scores, 50, np.array([0.5])).slide(400)
for t in range(5, 400, 7):
    held = slice(max(0, t - 49), t + 1)
    assert abs(coarse[t] - roc_auc_score(labels[held], scores[held] >= 0.5)) < 1e-12, t
"""


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def write(path: Path, head: str, *columns: np.ndarray) -> None:
    with gzip.open(path, "wt") as file:
        file.write(head + "\n")
        file.writelines(",".join(map(str, row)) + "\n" for row in zip(*columns, strict=True))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Files in the form of the data sets, generated."""
    rng = np.random.default_rng(1)
    n = 3600
    label = rng.integers(0, 2, n)
    x, y = rng.normal(size=n) + label, rng.normal(size=n)
    write(tmp_path / "scores_tvnews_lda.csv.gz", "part,score,label", np.full(n, "test"), x, label)
    write(tmp_path / "covtype.csv.gz", "x,y,Cover_Type", x, y, label + 1)
    write(tmp_path / "electricity.csv.gz", "x,y,class", y, x, np.where(label == 1, "UP", "DOWN"))
    return tmp_path


@pytest.mark.slow
def test_one_command_writes_the_page_and_its_pictures(data: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    output = tmp_path / "papers"
    command = ("-m", "benchmarks.papers", "tatti2018", "--quick", "--output", str(output))
    folders = {"ROCSTEADY_DATA": str(data), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    if CACHE_FOLDER is not None:
        folders["ROCSTEADY_CACHE_DIR"] = str(CACHE_FOLDER.parent)  # kernels are compiled there already
    done = run(*command, **folders)
    assert done.returncode == 0, done.stderr
    page = (output / "tatti2018.md").read_text()
    assert re.findall(r"^## (.*?)[:,]", page, re.MULTILINE) == [
        "Table 1",
        "Figure 1",
        "Figure 2",
        "Figure 3",
        "The baselines",
    ]
    for picture in re.findall(r"\]\((.*?)\)", page):
        assert (output / picture).read_text().startswith("<?xml")
    assert (
        page.count("- **The paper**") == page.count("- **Here**") == page.count("- **Why they differ**") == 4
    )
    assert "beyond its guarantee in none of the windows" in page
    assert not re.search(r"\bnan\b|\binf\b", page)


@pytest.mark.slow
def test_the_command_says_what_is_missing(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    done = run(
        "-m", "benchmarks.papers", "tatti2018", "--output", str(tmp_path), ROCSTEADY_DATA=str(tmp_path)
    )
    assert done.returncode == 2
    assert "scores_tvnews_lda.csv.gz does not exist" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow  # contenders of a benchmark, not of the package
def test_the_baselines_give_the_auc() -> None:
    done = run("-c", BASELINES)
    assert done.returncode == 0, done.stderr
