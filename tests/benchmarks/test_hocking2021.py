"""`python -m benchmarks.papers hocking2021` writes its page, and its losses are what they are called."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rocsteady.core.kernels.cache_folder import CACHE_FOLDER
from rocsteady.core.learning.aum.descent import LabelLoss

from benchmarks.papers.hocking2021_losses import (
    OtherLoss,
    contenders,
    logistic,
    squared_hinge,
    squared_hinge_of_pairs,
)
from tests.support import ROOT

DATA = os.environ.get("ROCSTEADY_DATA")


def some(n: int = 12) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    return rng.normal(size=n), (np.arange(n) % 3 == 0).astype(np.int8)


@pytest.mark.parametrize("loss", [logistic, squared_hinge, squared_hinge_of_pairs])
def test_gradients_are_those_of_differences(loss) -> None:
    f, y = some()
    _, gradient = loss(f, y)
    for i in range(len(f)):
        ends = [loss(f + sign * 1e-6 * (np.arange(len(f)) == i), y)[0] for sign in (-1, 1)]
        assert gradient[i] == pytest.approx((ends[1] - ends[0]) / 2e-6, abs=1e-5)


def test_pairs_are_all_pairs() -> None:
    f, y = some()
    pairs = [(a, b) for a in f[y == 1] for b in f[y == 0]]
    assert squared_hinge_of_pairs(f, y)[0] == pytest.approx(sum(max(1 - a + b, 0) ** 2 for a, b in pairs))


def test_a_threshold_is_the_best_one() -> None:
    f, y = some(30)
    for loss in (logistic, squared_hinge):
        found = OtherLoss(y, loss, has_threshold=True).aum(f + 1.5)
        assert found.value == pytest.approx(
            min(loss(f - t, y)[0] for t in np.linspace(-4, 4, 8001)), rel=1e-5
        )
        assert found.gradient.sum() == pytest.approx(0.0, abs=1e-3)
    assert [type(each) for each in contenders(y).values()].count(LabelLoss) == 3


@pytest.mark.slow
def test_one_command_writes_the_page_and_its_pictures(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    if DATA is None:
        pytest.skip("ROCSTEADY_DATA is not set; export it to the folder with the files aum_neuroblastoma_*")
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    if CACHE_FOLDER is not None:
        environment["ROCSTEADY_CACHE_DIR"] = str(CACHE_FOLDER.parent)  # kernels are compiled there already
    command = ("-m", "benchmarks.papers", "hocking2021", "--quick", "--output", str(tmp_path))
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "hocking2021.md").read_text()
    assert re.findall(r"^## (.*?)(?::|$)", page, re.MULTILINE) == [
        "A curve that loops",
        "Learning curves",
        "Changepoint problems",
        "Unbalanced classes",
        "Computation time",
    ]
    for picture in re.findall(r"\]\((.*?)\)", page):
        assert (tmp_path / picture).read_text().startswith("<?xml")
    assert (
        page.count("- **The paper**") == page.count("- **Here**") == page.count("- **Why they differ**") == 5
    )
    assert "have AUC 2 and AUM" in page
    assert not re.search(r"\bnan\b|\binf\b", page)


@pytest.mark.slow  # in a plain run test_tatti2018.py asks for what is missing
def test_the_command_says_what_is_missing(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.papers", "hocking2021", "--output", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "ROCSTEADY_DATA": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "aum_neuroblastoma_errors.csv.gz does not exist" in done.stderr
    assert "Traceback" not in done.stderr
