"""One command on every runner that can be had here: files and a topic, labels joined, and equal rows."""

from __future__ import annotations

import csv
import json
from contextlib import redirect_stderr
from io import StringIO

import numpy as np
import pyarrow.parquet as pq
import pytest
from rocsteady.pipelines.cli import main

from tests.support.processes.command import Ran, run, said
from tests.support.requirements import servers
from tests.support.servers.kafka_topics import produce
from tests.support.streams.class_events import NAMES, class_streams, lines_of

RUNNERS = {
    "processes": ["--direct_running_mode=multi_processing", "--direct_num_workers=2"],
    "embedded": ["--runner=PortableRunner", "--job_endpoint=embed", "--environment_type=LOOPBACK"],
    "prism": ["--runner=prism"],
    "flink": ["--runner=flink", "--parallelism=2"],
}
MINUTE = 60_000_000


def ran_on(runner, *words):
    """Run a command, in this process where its runner is; worker processes and servers are given one."""
    if runner not in ((), RUNNERS["embedded"]):
        return run(*words, *runner, patience=240)
    with redirect_stderr(StringIO()) as err:
        status = main([*words, *runner])
    return Ran(status, "", said(err.getvalue()))


def evaluate(words, runner=()):
    """Run `rocsteady evaluate` to its end; return what it says."""
    ran = ran_on(runner, "evaluate", *words)
    assert ran.status == 0, ran.lines[-30:]
    return "\n".join(ran.lines)


@pytest.fixture(
    params=[pytest.param(name, marks=[pytest.mark.slow] * (name == "processes")) for name in RUNNERS]
)
def runner(request):
    if request.param == "prism":
        servers("prism")
    if request.param != "flink":
        return RUNNERS[request.param]
    started = request.getfixturevalue("cluster")
    return [*RUNNERS["flink"], f"--flink_master={started.address}"]


@pytest.fixture(scope="module")
def streams(tmp_path_factory):
    """Predictions of four models, with two scores, and the labels of most of their ids.

    Both are out of order, in two files each.
    """
    folder = tmp_path_factory.mktemp("streams")
    rng = np.random.default_rng(11)
    n = 3_000
    made = np.sort(rng.integers(0, 5 * 24 * 60, n)) * MINUTE
    label = rng.integers(0, 2, n)
    predictions = [
        {
            "id": f"i{number}",
            "model": f"m{number % 4}",
            "time": int(made[number]),
            "score": round(float(rng.normal(0.7 * label[number], 1)), 3),
            "other": round(float(rng.normal(0.3 * label[number], 1)), 3),
            "country": "NZ" if number % 3 else "DE",
        }
        for number in range(n)
    ]
    labels = [
        {"id": f"i{number}", "known": int(made[number]) + int(rng.integers(1, 600)) * MINUTE,
         "label": int(label[number])}
        for number in range(n) if number % 50
    ]  # fmt: skip
    for name, records in (("predictions", predictions), ("labels", labels)):
        for part in range(2):
            some = [record for number, record in enumerate(records) if number % 2 == part]
            some = [some[number] for number in np.argsort(np.arange(len(some)) + rng.random(len(some)) * 30)]
            (folder / f"{name}-{part}.jsonl").write_text("\n".join(map(json.dumps, some)) + "\n")
    return folder


WINDOWS = [
    "--id=id", "--time=time", "--time-unit=us", "--slice=country", "--window=last:300", "--every=40",
    "--ttl=1d", "--label-lead=0s", "--label-time=known", "--score=score", "--score=other",
]  # fmt: skip


def words(sources, labels, output):
    return [*sources, "--labels", *labels, *WINDOWS, "--output", str(output)]


@pytest.fixture(scope="module")
def expected(streams, tmp_path_factory):
    """Rows of the local runner, once."""
    output = tmp_path_factory.mktemp("local") / "rows.csv"
    globs = str(streams / "predictions-*.jsonl"), str(streams / "labels-*.jsonl")
    said = evaluate(words(globs[:1], globs[1:], output))
    assert "6,000 predictions read = 5,880 applied" in said
    return output.read_text()


def test_files_give_the_rows_of_the_local_runner(streams, expected, runner, tmp_path):
    globs = str(streams / "predictions-*.jsonl"), str(streams / "labels-*.jsonl")
    evaluate(words(globs[:1], globs[1:], tmp_path / "rows.csv"), runner)
    assert (tmp_path / "rows.csv").read_text() == expected


GROUPS = [
    "--every=6h", "--roll-up=models", "--roll-up=slices", "--roll-up=m[01]/score", "--stale=12h",
    "--alert=worst_gap < 0 where group like 'model=*'", "--alert=auc_mean < 0.6 for 2 rows",
    "--alert=auc < 0.5", "--roll-ups=roll_ups.csv", "--alerts=alerts.csv",
]  # fmt: skip


def rolled_up_in(folder, streams, monkeypatch, runner=()):
    """The roll-up rows and the alerts of a job that rolls up, run in a folder."""
    folder.mkdir(exist_ok=True)
    monkeypatch.chdir(folder)
    globs = str(streams / "predictions-*.jsonl"), str(streams / "labels-*.jsonl")
    on_events = words(globs[:1], globs[1:], "rows.csv")
    on_events.remove("--every=40")
    evaluate([*on_events, *GROUPS], runner)
    return [(folder / name).read_text() for name in ("roll_ups.csv", "alerts.csv")]


def test_roll_ups_and_alerts_on_groups_are_those_of_the_local_runner(streams, runner, tmp_path, monkeypatch):
    here = rolled_up_in(tmp_path / "local", streams, monkeypatch)
    assert rolled_up_in(tmp_path / "there", streams, monkeypatch, runner) == here
    roll_ups, alerts = here
    for group in ("models", "m[01]/score", "model=m3/other,slice=country"):
        assert f'"{group}",' in roll_ups
    assert all(f'"{column}",' in alerts for column in ("worst_gap", "auc_mean", "auc"))


def pairs(folder, output, runner=()):
    """Compare three models with a champion, and watch the pairs; return the rows and the alerts."""
    names = {name: output / f"{name}.csv" for name in ("output", "pairs", "alerts")}
    outputs = [word for name, path in names.items() for word in (f"--{name}", str(path))]
    how = [
        "--id=id", "--time=time", "--every=1h", "--window=last:300", "--slice=country", "--order=time:30m",
        "--pair-within=20m", "--champion=m0", "--alert", "difference_low > 0 for 2 rows",
    ]  # fmt: skip
    evaluate([str(folder / "*.jsonl"), *how, *outputs], runner)
    return {name: path.read_text() for name, path in names.items()}


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """Events of four models over the same ids, of which each lacks some, and the local runner's pairs."""
    folder = tmp_path_factory.mktemp("scored")
    rng = np.random.default_rng(17)
    events = []
    for number in range(1_500):
        label = int(rng.integers(0, 2))
        for place, strength in enumerate((0.8, 1.6, 0.8, 0.2)):
            if (number + place) % 9:
                time, score = number * 60 + place * 500, round(float(rng.normal(strength * label, 1)), 3)
                country = "NZ" if number % 3 else "DE"
                events.append(
                    {"id": f"i{number}", "model": f"m{place}", "time": time, "score": score, "label": label,
                     "country": country}
                )  # fmt: skip
    events.sort(key=lambda event: event["time"] + event["score"] * 100)
    for part in range(2):
        lines = "\n".join(map(json.dumps, events[part::2]))
        (folder / f"{part}.jsonl").write_text(lines + "\n")
    output = tmp_path_factory.mktemp("local-pairs")
    return folder, pairs(folder, output)


def test_pairs_and_their_alerts_are_those_of_the_local_runner(scored, runner, tmp_path):
    folder, expected = scored
    assert expected["pairs"].count("\n") > 100
    assert "m1 against m0" in expected["alerts"]
    assert pairs(folder, tmp_path, runner) == expected


@pytest.fixture(scope="module")
def topics(broker, streams):
    """The same records in two topics of two partitions each."""
    for name in ("predictions", "labels"):
        broker.create_topic(f"every-runner-{name}", partitions=2)
        files = [(part, streams / f"{name}-{part}.jsonl") for part in range(2)]
        lines = [(part, line, 0) for part, file in files for line in file.read_bytes().splitlines()]
        produce(broker, f"every-runner-{name}", lines)
    return [f"kafka://{broker.address}/every-runner-{name}" for name in ("predictions", "labels")]


@pytest.mark.parametrize("runner", ["prism", "flink"], indirect=True)
def test_topics_give_the_rows_of_files(topics, expected, runner, tmp_path):
    more = ["--until", "latest"]
    evaluate([*words(topics[:1], topics[1:], tmp_path / "rows.csv"), *more], runner)
    assert (tmp_path / "rows.csv").read_text() == expected


FOLDS = [
    "--label=up", "--learner=majority", "--learner=naive-bayes", "--folds=3", "--id=id", "--time=made",
    "--time-unit=us", "--window=last:200", "--every=200",
]  # fmt: skip


@pytest.fixture(scope="module")
def instances(tmp_path_factory):
    """1,000 instances in two files, out of order, and the tables that the local runner makes of them."""
    folder = tmp_path_factory.mktemp("instances")
    rng = np.random.default_rng(13)
    x = rng.normal(size=1_000)
    records = [
        {"id": f"i{n}", "made": n * MINUTE, "x": round(float(x[n]), 4), "odd": "uv"[n % 2],
         "up": int(x[n] + rng.normal() > 0)}
        for n in rng.permutation(1_000).tolist()
    ]  # fmt: skip
    for part in range(2):
        (folder / f"{part}.jsonl").write_text("\n".join(map(json.dumps, records[part::2])) + "\n")
    return folder, prequential(folder, folder / "local")


def prequential(folder, output, runner=()):
    """Run `rocsteady prequential` to its end; return its tables."""
    ran = ran_on(runner, "prequential", str(folder / "*.jsonl"), *FOLDS, "--output", str(output))
    assert ran.status == 0, ran.lines[-30:]
    names = ("rows", "comparisons", "means", "dead_letters")
    return {name: pq.read_table(output / f"{name}.parquet") for name in names}


def test_folds_of_learners_are_those_of_the_local_runner(instances, runner, tmp_path):
    folder, expected = instances
    assert expected["rows"].num_rows == 2 * 3 * 5
    for name, table in prequential(folder, tmp_path, runner).items():
        assert table.equals(expected[name]), name


def of_classes(folder, predictions, labels):
    """Write records into two files each; return the words of a command on them."""
    for name, records in (("p", predictions), ("l", labels)):
        for part in range(2):
            (folder / f"{name}-{part}.jsonl").write_text(lines_of(records[part::2]))
    return [
        str(folder / "p-*.jsonl"), "--labels", str(folder / "l-*.jsonl"), "--class-scores=p_*", "--id=id",
        "--time=sent", "--label-time=known", "--every=40", "--slice=country",
    ]  # fmt: skip


@pytest.mark.parametrize("several", [False, True])
def test_models_with_classes_have_the_rows_and_curves_of_the_local_runner(runner, several, tmp_path):
    predictions, labels, _ = class_streams(600)
    label = "--multi-label=y_*" if several else "--label=y"
    how = [*of_classes(tmp_path, predictions, labels), label, "--window=last:100", "--curves-every=90"]
    here, there = tmp_path / "local", tmp_path / "there"
    for place, words in ((here, ()), (there, runner)):
        place.mkdir()
        evaluate([*how, f"--output={place / 'rows.csv'}", f"--curves={place / 'curves.csv'}"], words)
    for name in ("rows.csv", "curves.csv"):
        assert (there / name).read_text() == (here / name).read_text()
    assert '"m1","country=DE","cat",' in (here / "rows.csv").read_text()
    assert '"m1","country=DE","cat",' in (here / "curves.csv").read_text()


@pytest.mark.parametrize("signal", ["placement", "brier"])
def test_adaptive_windows_of_classes_are_those_of_the_local_runner(runner, signal, tmp_path):
    predictions, labels, _ = class_streams(1_200)
    late = {label["id"] for label in labels[600:]}
    for prediction in predictions:
        scores = [prediction[f"p_{name}"] / 2 for name in NAMES]
        if prediction["id"] in late:
            scores = scores[1:] + scores[:1]  # the model gives each class the score of the next class
        prediction |= {f"p_{name}": score for name, score in zip(NAMES, scores, strict=True)}
    how = [*of_classes(tmp_path, predictions, labels), "--label=y", f"--window=adaptive:0.05:{signal}"]
    how += ["--probabilities"] * (signal == "brier")
    here, there = tmp_path / "here.csv", tmp_path / "there.csv"
    for output, words in ((here, ()), (there, runner)):
        evaluate([*how, f"--output={output}"], words)
    assert there.read_text() == here.read_text()
    rows = [row for row in csv.DictReader(StringIO(here.read_text())) if row["class"] == ""]
    assert any(int(row["window_events"]) < int(row["seq"]) for row in rows)
