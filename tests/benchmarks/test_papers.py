"""`python -m benchmarks.papers` works on data of the right form, and says what is wrong in a sentence."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from rocsteady.core.errors import ConfigError, InputError
from rocsteady.core.process.user_cache import user_cache
from sklearn.metrics import roc_auc_score

from benchmarks.papers import data
from tests.support import ROOT

EVENTS = 900


def write(path: Path, *columns: object, header: str = "") -> None:
    lines = [",".join(map(str, row)) for row in zip(*columns, strict=True)]
    with gzip.open(path, "wt") as file:
        file.write("\n".join(([header] if header else []) + lines) + "\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small files of the form of the real ones: signal, noise, words, missing values."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(1)
    truth = rng.random(EVENTS) < 0.4
    signal, noise = rng.normal(size=EVENTS) + truth, rng.normal(size=EVENTS)
    words = np.where(rng.random(EVENTS) < 0.1, "?", rng.choice(["a", "b"], EVENTS))
    gaps = ["" if gap else value for gap, value in zip(rng.random(EVENTS) < 0.1, signal, strict=True)]
    ids = range(EVENTS)
    readmitted = np.where(truth, rng.choice(["<30", ">30"], EVENTS), "NO")
    write(folder / "diabetic_data.csv.gz", ids, ids, words, signal, readmitted,
          header="encounter_id,patient_nbr,race,number,readmitted")  # fmt: skip
    write(folder / "dota2Train.csv.gz", np.where(truth, 1, -1), signal, noise)
    write(folder / "aps_failure_6k_sample.csv.gz", truth.astype(int), gaps, noise, header="class,aa,ab")
    cover = np.where(truth, 4, rng.integers(1, 4, EVENTS))
    write(folder / "covtype.csv.gz", signal, noise, cover, header="Elevation,Slope,Cover_Type")
    write(folder / "electricity.csv.gz", signal, np.where(truth, "UP", "DOWN"), header="price,class")
    part = np.where(np.arange(EVENTS) < 300, "train", "test")
    write(
        folder / "scores_tvnews_lda.csv.gz", part, signal, np.where(truth, 1, -1), header="part,score,label"
    )
    return folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's cache folder for streams; compiled kernels stay where they are."""
    kernels = os.environ.get("ROCSTEADY_CACHE_DIR") or str(user_cache())
    monkeypatch.setenv("ROCSTEADY_CACHE_DIR", kernels)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.papers", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", data.STREAMS)
def test_a_stream_has_the_events_that_no_model_was_trained_on(
    name: str, folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROCSTEADY_DATA", str(folder))
    stream = data.load(name)
    assert len(stream) == len(stream.labels) == (600 if name == "tvnews" else EVENTS - EVENTS // 10)
    assert np.isfinite(stream.scores).all()
    positives, negatives = stream.scores[stream.labels == 1], stream.scores[stream.labels == 0]
    assert 0.3 < stream.prevalence < 0.5 or name == "covtype"
    if name != "covtype":  # class 2 is noise in these data
        assert np.mean(positives[:, None] > negatives) > 0.7, "the scores have learnt the signal"
    again = data.load(name)
    assert (again.scores.tobytes(), again.labels.tobytes()) == (
        stream.scores.tobytes(), stream.labels.tobytes()
    )  # fmt: skip
    assert len(list(cache.rglob("*.npz"))) == (name != "tvnews")


def test_another_file_is_another_stream(folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCSTEADY_DATA", str(folder))
    before = data.load("electricity")
    other = cache / "other"
    other.mkdir()
    lines = gzip.decompress((folder / "electricity.csv.gz").read_bytes()).splitlines(keepends=True)
    (other / "electricity.csv.gz").write_bytes(gzip.compress(b"".join([lines[0], *lines[:0:-1]])))
    monkeypatch.setenv("ROCSTEADY_DATA", str(other))
    assert data.load("electricity").scores.tolist() != before.scores.tolist()


def test_what_is_not_there_is_said(folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCSTEADY_DATA", str(folder))
    with pytest.raises(ConfigError, match="no stream is called 'iris'; there are tvnews"):
        data.load("iris")
    monkeypatch.setenv("ROCSTEADY_DATA", str(cache))
    with pytest.raises(InputError, match="does not exist; ROCSTEADY_DATA names"):
        data.load("dota2")
    with pytest.raises(InputError, match="does not exist; ROCSTEADY_DATA names"):
        data.load("tvnews")


def written(
    paper: str, folder: Path, output: Path, monkeypatch: pytest.MonkeyPatch, pictures: Sequence[str]
) -> str:
    """Return the page of a paper, whose pictures are there, and small."""
    pytest.importorskip("matplotlib", reason="pictures need matplotlib: pip install '.[bench]'")
    monkeypatch.setenv("ROCSTEADY_DATA", str(folder))
    made = run(paper, "--quick", "--output", str(output))
    assert made.returncode == 0, made.stderr
    text = (output / f"{paper}.md").read_text()
    assert "nan" not in text
    for name in pictures:
        picture = output / f"{paper}-{name}.svg"
        assert f"]({picture.name})" in text
        assert ElementTree.parse(picture).getroot().tag.endswith("svg")
        assert picture.stat().st_size < 100_000
    return text


@pytest.mark.slow
def test_tatti2021_writes_tables_and_pictures(
    folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pictures = [f"fig{figure}" for figure in range(4, 9)]
    text = written("tatti2021", folder, cache / "papers", monkeypatch, pictures)
    for title in ("Figure 4: AUC", "Figure 5: AUC", "Figure 6: H", "Figure 7: H", "Figure 8: H", "SubsetAlt"):
        assert f"{title}" in text
    assert text.count("The paper: ") == 6
    for stream in ("diabetes", "dota2", "aps", "covtype4"):
        assert text.count(f"| {stream} |") >= 10


@pytest.mark.slow
def test_calders2007_writes_tables_and_pictures(
    folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pictures = ("accuracy", "growth", "skew", "scans")
    text = written("calders2007", folder, cache / "papers", monkeypatch, pictures)
    for title in ("normal scores", "real scores", "Against others", "Growth", "Skewed", "Which", "Scans"):
        assert f"{title}" in text
    assert text.count("**The paper**: ") == 5
    assert text.count("**Here**: ") == 7


def test_pairs_that_are_drawn_teach_a_ranking() -> None:
    from benchmarks.papers.calders2007_contenders import Rows, pair_sampling

    rng = np.random.default_rng(1)
    labels = (rng.random(2000) < 0.1).astype(np.int8)
    features = rng.normal(size=(2000, 3)) + np.outer(labels, [1.0, -0.5, 0.0])
    weights = pair_sampling(Rows(features, labels))
    best = roc_auc_score(labels, features @ [1.0, -0.5, 0.0])
    assert roc_auc_score(labels, features @ weights) > best - 0.01


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("tatti2022",), "no paper is called 'tatti2022'; there are calders2007"),
        (("tatti2021",), "ROCSTEADY_DATA is not set; export it"),
    ],
)
def test_a_wrong_call_is_answered_by_a_sentence(
    words: tuple[str, ...], sentence: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ROCSTEADY_DATA", raising=False)
    made = run(*words, "--output", str(cache / "papers"))
    assert made.returncode == 2
    assert sentence in made.stderr
    assert "Traceback" not in made.stderr
