"""No learner knows a label before its flight has landed, and a year trains once, to the byte."""

from __future__ import annotations

import importlib.metadata
import os
import signal
import subprocess
import sys
from collections import deque
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet
from rocsteady.core.errors import InputError
from rocsteady.pipelines.demo import learners as flight_learners
from rocsteady.pipelines.demo.flights import Flights, known_at_departure, read_flights, rows_of
from rocsteady.pipelines.demo.learners import majority_scores, prequential, train
from rocsteady.pipelines.demo.models import LEARNERS, AdaptiveTree, CountingBayes, Learner
from sklearn.metrics import roc_auc_score

pytestmark = pytest.mark.slow  # a plain run tries the demo as a whole, in test_command.py

FEW = 4000


@pytest.fixture(scope="module")
def year() -> Flights:
    return read_flights()


@pytest.fixture(scope="module")
def flights(year) -> Flights:
    return year.first(FEW)


def scores_of(name: str, flights: Flights) -> np.ndarray:
    known = rows_of(known_at_departure(flights))
    return prequential(LEARNERS[name](), flights, known, lambda _: None)


@pytest.fixture(scope="module", params=sorted(LEARNERS))
def learner(request) -> str:
    return request.param


class Diary(Learner):
    """A learner that writes down what it was told, and when."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, bool]] = []

    def score(self, known) -> float:
        self.told.append(("departs", known["id"], False))
        return 0.0

    def learn(self, known, late) -> None:
        self.told.append(("lands", known["id"], late))


def test_the_loop_follows_departures_and_landings_in_time(flights):
    diary = Diary()
    prequential(diary, flights, rows_of({"id": flights.id}), lambda _: None)
    events = []  # at the same moment departures come first: "departs" < "lands"
    for row in range(len(flights)):
        name, label = flights.id[row].item(), flights.label[row].item()
        events.append((flights.departure[row].item(), "departs", name, False))
        if label >= 0:
            events.append((flights.landing[row].item(), "lands", name, label == 1))
    events.sort()
    wanted = [event[1:] for event in events]
    while wanted[-1][0] == "lands":  # nobody departs any more, so nobody needs to know
        wanted.pop()
    assert diary.told == wanted


def test_scores_equal_those_of_a_slow_replay(flights, learner):
    """Minute by minute: who departs now is scored, then who lands now is learnt."""
    few = flights.first(1500)
    known = list(rows_of(known_at_departure(few)))
    departing, landing = {}, {}
    for row in range(len(few)):
        departing.setdefault(few.departure[row].item(), []).append(row)
        if few.label[row] >= 0:
            landing.setdefault(few.landing[row].item(), []).append((few.id[row].item(), row))
    model, scores = LEARNERS[learner](), np.full(len(few), np.nan)
    moments = set(departing) | set(landing)
    for moment in range(min(moments), max(moments) + 1, 60_000_000):
        for row in departing.get(moment, ()):
            scores[row] = model.score(known[row])
        for _, row in sorted(landing.get(moment, ())):
            model.learn(known[row], few.label[row].item() == 1)
    assert np.array_equal(scores, scores_of(learner, few))


def test_labels_that_come_later_change_nothing_before(flights, learner):
    """From features to scores: turn every label that comes after noon on the third day."""
    noon = np.datetime64("2013-01-03T17:00", "us").astype(np.int64).item()
    later = flights.landing >= noon
    turned = replace(
        flights,
        label=np.where(later, 1 - flights.label, flights.label).astype(np.int8),
        delay=np.where(later, 100 - flights.delay, flights.delay),
    )
    ours, theirs = scores_of(learner, flights), scores_of(learner, turned)
    before = flights.departure <= noon
    assert 1000 < before.sum() < FEW - 300
    assert np.array_equal(ours[before], theirs[before])
    assert np.mean(ours[~before] != theirs[~before]) > 0.9
    assert np.array_equal(majority_scores(flights)[before], majority_scores(turned)[before])


def test_learners_learn_and_repeat_themselves(year, learner):
    few = year.first(12_000)
    scores = scores_of(learner, few)
    assert np.array_equal(scores[:FEW], scores_of(learner, year.first(FEW)))
    assert ((scores >= 0) & (scores <= 1)).all()
    landed = (few.label >= 0) & (np.arange(len(few)) > 2000)
    assert roc_auc_score(few.label[landed], scores[landed]) > 0.6


def test_the_tree_unlearns_what_no_longer_holds_and_naive_bayes_does_not(flights):
    """Evenings are late; after 8,000 flights mornings are, all the rest of what is known being the same."""
    rng, known = np.random.default_rng(1), next(rows_of(known_at_departure(flights)))
    agreement = {}
    for kind in (AdaptiveTree, CountingBayes):
        learner, right = kind(), []
        for flight in range(12_000):
            hour = int(rng.integers(6, 23))
            now = {**known, "hour": (hour - 13) / 5, "clock": str(hour)}
            late = (hour > 15) == (flight < 8_000)
            right.append((learner.score(now) > 0.5) == late)
            learner.learn(now, late)
        agreement[kind] = np.mean(right[7_000:8_000]), np.mean(right[11_000:])
    assert min(agreement[AdaptiveTree]) > 0.95
    assert agreement[CountingBayes][0] > 0.95
    assert agreement[CountingBayes][1] < 0.1


@pytest.mark.parametrize("window", [1, 2, 7, 50, 10_000])
def test_majority_is_that_of_the_last_landings(flights, window, monkeypatch):
    monkeypatch.setattr(flight_learners, "MAJORITY_WINDOW", window)
    scores, held = majority_scores(flights), deque(maxlen=window)
    order, learnt = flights.landing_order, 0
    for row in range(len(flights)):
        while learnt < len(order) and flights.landing[order[learnt]] < flights.departure[row]:
            held.append(flights.label[order[learnt]].item())
            learnt += 1
        lead = 2 * sum(held) - len(held)
        expected = held[-1] if lead == 0 and held else lead > 0
        assert scores[row] == float(expected)
    assert (window == 10_000) == (len(set(scores.tolist())) == 1)


def test_the_majority_of_the_year_never_flips(year):
    assert not majority_scores(year).any()


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    heard = []
    folder = tmp_path_factory.mktemp("cache") / "rocsteady"
    training = train(lambda share, text: heard.append((share, text)), folder, first=FEW)
    return training, heard


def test_the_files_are_the_streams_of_what_every_model_says_alone(trained, flights):
    training, _ = trained
    landed = int((flights.label >= 0).sum())
    assert (training.flights, training.landed, training.unlabelled) == (FEW, landed, FEW - landed)
    assert training.models == ("adaptive-tree", "logistic", "majority", "naive-bayes")
    predictions, labels = parquet.read_table(training.predictions), parquet.read_table(training.labels)
    assert predictions.num_rows == 4 * FEW
    assert labels.num_rows == landed < FEW
    said = {
        (model, flight): score
        for model, flight, score in zip(
            *(predictions[name].to_pylist() for name in ("model", "id", "score")), strict=True
        )
    }
    assert len(said) == 4 * FEW
    for model in training.models:
        alone = majority_scores(flights) if model == "majority" else scores_of(model, flights)
        assert [said[model, flight] for flight in flights.id.tolist()] == alone.tolist(), model


def test_progress_grows_to_one(trained):
    training, heard = trained
    shares = [share for share, _ in heard]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0.0, 1.0)
    assert any("training adaptive-tree, logistic, naive-bayes on 4,000 flights" in text for _, text in heard)
    assert not training.from_cache
    assert not training.note


def test_a_second_run_trains_nothing(trained, monkeypatch):
    training, _ = trained
    monkeypatch.setattr(flight_learners, "read_flights", None)  # would fail if it were called
    folder = training.predictions.parent
    again = train(cache_folder=folder, first=FEW)
    assert again == replace(training, from_cache=True)
    assert {*folder.iterdir()} == {training.predictions, training.labels}, "something was left behind"


def test_the_cache_holds_three_years_and_leaves_what_is_not_its_own_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(flight_learners, "LEARNERS", {})  # the majority is enough here
    streams = ("predictions", "labels")
    years = [[f"flights-{year:016x}-{stream}-{0:016x}.parquet" for stream in streams] for year in range(5)]
    foreign = ["flights-2013.parquet", "rows.parquet", f"{years[0][1]}.backup", f"my-{years[0][1]}"]
    foreign.append(f"flights-{0:016x}-rows-{0:016x}.parquet")
    for age, name in enumerate([*foreign, *sum(zip(*years, strict=True), ())]):
        (tmp_path / name).write_text("")
        os.utime(tmp_path / name, (1_000_000 + age, 1_000_000 + age))
    (tmp_path / "007661dc625384e7").mkdir()  # of compiled kernels
    training = train(cache_folder=tmp_path, first=300)
    ours = {training.predictions.name, training.labels.name}
    assert len(ours) == 2
    kept = {*foreign, *years[3], *years[4], *ours, "007661dc625384e7"}
    assert {path.name for path in tmp_path.iterdir()} == kept

    os.utime(training.predictions, (0, 0))
    os.utime(training.labels, (0, 0))
    assert train(cache_folder=tmp_path, first=300).from_cache  # is used, and so is not the oldest any more
    train(cache_folder=tmp_path, first=301)
    assert training.predictions.exists()
    assert training.labels.exists()
    assert not any((tmp_path / name).exists() for name in years[3])
    assert all((tmp_path / name).exists() for name in years[4])


def test_other_sources_data_or_extents_are_another_file(trained, monkeypatch, tmp_path):
    training, _ = trained
    names = {flight_learners._fingerprint(first) for first in (None, 1, FEW)}
    for name in ("flight_models", "flight_streams", "flights_module", ""):
        module = getattr(flight_learners, name, flight_learners)
        other = tmp_path / "changed.py"
        other.write_text(Path(module.__file__).read_text() + "# changed")
        with monkeypatch.context() as changed:
            changed.setattr(module, "__file__", str(other))
            names.add(flight_learners._fingerprint(FEW))
    monkeypatch.setattr(importlib.metadata, "version", lambda _: "0.0.1")
    names.add(flight_learners._fingerprint(FEW))
    assert len(names) == 8
    for path in (training.predictions, training.labels):
        assert path.stem.split("-")[1] in names


@pytest.mark.parametrize(
    ("stream", "learners"),
    [
        ("predictions", {}),
        pytest.param("labels", {}, marks=pytest.mark.slow),
        pytest.param("predictions", LEARNERS, marks=pytest.mark.slow),
    ],
    ids=["predictions", "labels", "predictions of all learners"],
)
def test_a_damaged_cache_is_made_anew(trained, tmp_path, stream, learners, monkeypatch):
    training, _ = trained
    if not learners:
        monkeypatch.setattr(flight_learners, "LEARNERS", learners)
        training = train(cache_folder=tmp_path / "first", first=FEW)
    tmp_path = tmp_path / "second"
    tmp_path.mkdir()
    files = {"predictions": training.predictions, "labels": training.labels}
    whole = {path.name: path.read_bytes() for path in files.values()}
    name = training.labels.stem.partition("-labels")[0]
    assert flight_learners._kept(tmp_path, name) == (None, "")
    for file, content in whole.items():
        (tmp_path / file).write_bytes(content)
    kept, note = flight_learners._kept(tmp_path, name)
    assert kept
    assert kept.from_cache
    assert not note
    path = tmp_path / files[stream].name
    sound = whole[path.name]
    places = np.random.default_rng(1).integers(0, len(sound), 40).tolist()
    damages = [sound[:-100], sound[: len(sound) // 2], b"", sound + b"\0"]
    damages += [
        sound[:place] + bytes([sound[place] ^ 1]) + sound[place + 1 :]
        for place in [*places, *range(len(sound) - 2000, len(sound), 50)]
    ]
    for damaged in damages:
        path.write_bytes(damaged)
        kept, note = flight_learners._kept(tmp_path, name)
        assert kept is None
        assert f"The {stream} in {path} were damaged" in note
    again = train(cache_folder=tmp_path, first=FEW)
    assert "damaged" in again.note
    assert not again.from_cache
    left = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert left == whole, "a second training differs from the first"


def test_half_a_year_in_the_cache_is_none(trained, tmp_path):
    training, _ = trained
    name = training.labels.stem.partition("-labels")[0]
    for path in (training.predictions, training.labels):
        half = tmp_path / path.name
        half.write_bytes(path.read_bytes())
        assert flight_learners._kept(tmp_path, name) == (None, "")
        half.unlink()


def test_without_a_writable_folder_it_works_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(flight_learners, "LEARNERS", {})  # the majority is enough here
    (tmp_path / "file").write_text("not a folder")
    training = train(cache_folder=tmp_path / "file" / "cache", first=300)
    assert parquet.read_metadata(training.predictions).num_rows == training.flights == 300
    assert parquet.read_metadata(training.labels).num_rows == training.landed > 250
    assert "could not be kept" in training.note
    assert "XDG_CACHE_HOME" in training.note


def test_a_missing_package_is_a_sentence_with_the_remedy(monkeypatch, tmp_path):
    def version(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    with pytest.raises(InputError, match=r"river.*pip install '\.\[demo\]'"):
        train(cache_folder=tmp_path)


SCRIPT = """
import signal
import sys
from pathlib import Path
from rocsteady.pipelines.demo.learners import train

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background has none
    try:
        train(lambda share, text: print(text, flush=True), Path(sys.argv[1]))
    except KeyboardInterrupt:
        sys.exit(130)
"""


@pytest.mark.skipif(os.name != "posix", reason="process groups and their signals are of POSIX")
def test_ctrl_c_ends_the_processes_without_a_word(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    with subprocess.Popen(
        [sys.executable, str(tmp_path / "script.py"), str(tmp_path / "cache")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        while "training" not in process.stdout.readline():
            assert process.poll() is None
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to every process of the group
        # ends when nobody holds the pipes any more: neither the parent nor any process of its own
        _, complaints = process.communicate(timeout=60)  # for processes that hang
    assert process.returncode == 130
    assert complaints == ""
    assert not (tmp_path / "cache").exists()
