"""Jobs that read topics for ever on runners that stream: the rows of the same events in this process."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from rocsteady.pipelines.cli import main
from rocsteady.runners.servers.flink import worker_options

from tests.support.processes.command import run
from tests.support.servers.kafka_topics import (
    OPTIONS,
    PATIENCE,
    N,
    evaluate,
    events,
    interrupted,
    produce,
    start,
    topic_of,
    until,
)


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def rows_in(paths):
    """Rows by their identity."""
    return known(paths, ("model", "slice", "row"))


def known(paths, identity):
    """Records by their identity; one that is there twice must be the same."""
    found = {}
    for path in paths:
        for row in map(json.loads, Path(path).read_text().splitlines()):
            assert found.setdefault(tuple(row[name] for name in identity), row) == row
    return found


def test_a_job_on_a_runner_gives_the_rows_of_one_without(broker, runner):
    """Its state is asked for while it runs: a job that takes it up makes the rows behind it."""
    found = events()
    name = f"events-{runner[1]}"
    url = topic_of(broker, name, found[: N // 2], 2)
    control = ["--control", str(Path("control").absolute())]
    job = start(url, "--output", "rows/", "--shards", "4", *control, *OPTIONS, *runner)
    try:
        until(lambda: rows_in(Path("rows").glob("*.jsonl")) or job.poll() is not None, 120)
        assert main(["state", "export", *control, "--output", "state"]) == 0
        later = [
            (i % 2, json.dumps(event).encode(), event["time"] * 1_000)
            for i, event in enumerate(found[N // 2 :])
        ]
        produce(broker, name, later)
        order = ["--order", "time:0s"]
        assert evaluate(url, "--until", "latest", "--output", "same.jsonl", *OPTIONS, *order) == 0
        same = rows_in(["same.jsonl"])
        until(lambda: len(rows_in(Path("rows").glob("*.jsonl"))) >= len(same) - 4, 60)
    finally:
        words = interrupted(job)
    rows = rows_in(Path("rows").glob("*.jsonl"))
    assert {key: row for key, row in same.items() if key in rows} == rows, words
    assert "Traceback" not in words, words
    goes_on = ["--import-state", "state", "--until", "latest", "--shards", "4", "--output", "more.jsonl"]
    assert run("evaluate", url, *goes_on, *OPTIONS, "--order", "time:0s", *runner, patience=240).status == 0
    behind = rows_in(["more.jsonl"])
    assert set(same) - set(rows) < set(behind) < set(same)
    assert {key: row for key, row in same.items() if key in behind} == behind


def test_a_folder_that_grows_gives_the_rows_of_its_files_and_ends(runner):
    """A file grows, others appear, of any format and name, and the folder is complete: the last rows come."""
    found = [json.dumps(event) + "\n" for event in events()]
    rest = events()[3 * N // 4 :]
    folder = Path("arriving")
    folder.mkdir()
    growing = folder / "part-1.jsonl"
    growing.write_text("".join(found[: N // 3]) + found[N // 3][:20])
    job = start("arriving", "--follow", "--output", "rows/", "--shards", "4", *OPTIONS, *runner)
    try:
        until(lambda: rows_in(Path("rows").glob("*.jsonl")) or job.poll() is not None, 120)
        with growing.open("a") as file:
            file.write(found[N // 3][20:] + "".join(found[N // 3 + 1 : N // 2]))
        hidden = folder / ".part-2.jsonl"
        hidden.write_text("".join(found[N // 2 : 3 * N // 4]))
        hidden.rename(folder / "part-2.jsonl")
        records = [",".join(map(str, event.values())) for event in rest]
        hidden.write_text("\n".join([",".join(rest[0]), *records]))
        hidden.rename(folder / "a.csv")
        (folder / "_END").touch()
        Path("same.jsonl").write_text("".join(found))
        assert evaluate("same.jsonl", "--output", "same-rows.jsonl", *OPTIONS, "--order", "time:0s") == 0
        same = rows_in(["same-rows.jsonl"])
        until(lambda: len(rows_in(Path("rows").glob("*.jsonl"))) >= len(same), 60)
    finally:
        words = interrupted(job)
    assert rows_in(Path("rows").glob("*.jsonl")) == same, words


def test_roll_ups_of_a_folder_that_grows_are_those_of_its_files(runner, request):
    """Grid points close while the job runs, and on Flink also behind a savepoint."""
    found = [json.dumps(event) + "\n" for event in events()]
    groups = ["--every", "10m", "--roll-up", "models", "--alert", "auc_mean > 0.5"]
    words = [*(word for word in OPTIONS if word not in ("--every", "50")), *groups, "--shards", "4"]
    folder = Path("arriving")
    folder.mkdir()
    growing = folder / "part.jsonl"
    growing.write_text("".join(found[: N // 2]))
    outputs = ["--output", "rows/", "--roll-ups", "rolled/", "--alerts", "alerts/"]
    whole = ["arriving", "--follow", *outputs, *words, *runner]
    job = start(*whole)
    kinds = {"rolled": ("group", "row"), "alerts": ("model", "row", "state")}

    def there():
        return {kind: known(Path(kind).glob("*.jsonl"), identity) for kind, identity in kinds.items()}

    try:
        until(lambda: all(there().values()) or job.poll() is not None, 120)
        assert job.poll() is None
        if "flink" in runner:
            cluster = request.getfixturevalue("cluster")
            (here,) = [each.identity for each in cluster.jobs() if each.state == "RUNNING"]
            savepoint = cluster.savepoint(here, stop=True)
            job.communicate(timeout=PATIENCE)
            job = start(*whole, "--savepoint_path", savepoint)
        with growing.open("a") as file:
            file.write("".join(found[N // 2 :]))
        (folder / "_END").touch()
        Path("same.jsonl").write_text("".join(found))
        here = ["--output", "rows.jsonl", "--roll-ups", "rolled.jsonl", "--alerts", "alerts.jsonl"]
        assert evaluate("same.jsonl", *here, *words, "--order", "time:0s") == 0
        same = {kind: known([f"{kind}.jsonl"], identity) for kind, identity in kinds.items()}
        assert len(same["rolled"]) > 10
        until(lambda: there() == same or job.poll() is not None, 60)
    finally:
        said = interrupted(job)
    assert there() == same, said
    assert "no state of" not in said


@pytest.mark.parametrize(
    ("number", "workers", "state"),
    [
        (signal.SIGTERM, "here", "CANCELED"),
        (signal.SIGINT, "here", "CANCELED"),
        (signal.SIGTERM, "there", "RUNNING"),
    ],
)
def test_a_job_without_its_launcher_is_cancelled_where_its_python_was_there(
    cluster, tmp_path, number, workers, state
):
    folder = Path("arriving")
    folder.mkdir()
    (folder / "part.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events()))
    runner = ["--runner", "flink", *cluster.options()]
    if workers == "there":
        runner = [*runner[:-2], *worker_options(tmp_path)]
    rows = f"{tmp_path / 'rows'}/"
    job = start("arriving", "--follow", "--output", rows, "--shards", "4", *OPTIONS, *runner)
    said = ""
    try:
        until(lambda: rows_in(Path("rows").glob("*.jsonl")) or job.poll() is not None, 120)
        while ": RUNNING\n" not in said and (line := job.stderr.readline()):  # rows may come first
            said += line
    finally:
        job.send_signal(number)
        words = said + job.communicate(timeout=PATIENCE)[1]
    (there,) = [
        found for found in cluster.jobs() if found.name.startswith("rocsteady-") and found.name in words
    ]
    if there.state not in ("CANCELED", "FAILED"):
        cluster.cancel(there.identity)
    assert (there.state, job.returncode) == (state, 128 + number), words
    told = [line for line in words.splitlines() if line.startswith(f"rocsteady: the job {there.name}")]
    page = f"http://{cluster.address}/#/job/running/{there.identity}/overview"
    assert told[0].endswith(f" is {there.identity} on the cluster; its page: {page}")
    assert f"rocsteady: the job {there.name}: RUNNING" in told
    url = f"http://{cluster.address}"
    became = "is cancelled, for its Python ran in this process"
    if state == "RUNNING":
        became = f"goes on; to cancel it: curl -X PATCH '{url}/jobs/{there.identity}?mode=cancel'"
    assert told[-1:] == [f"rocsteady: the job {there.name} on the cluster at {url} {became}"], words
    ended = ("CANCELED", "FAILED")
    until(lambda: any(found.identity == there.identity and found.state in ended for found in cluster.jobs()))


def test_a_savepoint_of_other_settings_is_refused_before_the_job_starts(cluster, tmp_path):
    folder = Path("arriving")
    folder.mkdir()
    (folder / "part.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events()))
    runner = ["--runner", "flink", *cluster.options()]
    rows = f"{tmp_path / 'rows'}/"
    words = ["arriving", "--follow", "--output", rows, "--shards", "4", *OPTIONS, *runner]
    job = start(*words)
    until(lambda: rows_in(Path("rows").glob("*.jsonl")) or job.poll() is not None, 120)
    savepoint = cluster.savepoint(cluster.jobs()[0].identity, stop=True)
    job.communicate(timeout=PATIENCE)
    before = len(cluster.jobs())
    resumed = run(
        "evaluate",
        *["last:400" if word == "last:500" else word for word in words],
        "--savepoint_path",
        savepoint,
    )
    assert resumed.status == 2
    assert f"--savepoint_path {savepoint}: the state was made under another" in resumed.lines[-1]
    assert "window was 'last:500' and is now 'last:400'" in resumed.lines[-1]
    assert len(cluster.jobs()) == before
