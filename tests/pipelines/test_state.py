"""Exports by the command line: a day after the other gives the rows of both; bad folders give a sentence."""

from __future__ import annotations

import json
import re
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from rocsteady.transforms.state.control import ControlFile, ExportRequest, ask

from tests.support.processes.command import call

N = 400
LIVE = ("--every", "25", "--window", "last:60")


@pytest.fixture(autouse=True)
def days(tmp_path, monkeypatch):
    """Write two days of events, and of predictions and labels; they meet between two times."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(5)
    times = np.cumsum(rng.integers(0, 4, N))
    cut = int(times[N // 2])
    events = pa.table({
        "time": times, "id": [f"e{number}" for number in rng.integers(0, N // 2, N)],
        "model": rng.choice(["m1", "m2", "ü"], N), "score": np.round(rng.random(N), 2),
        "label": rng.integers(0, 2, N), "site": rng.choice(["a", "b"], N),
    })  # fmt: skip
    predictions = events.drop_columns(["label"]).set_column(1, "id", [[f"p{number}" for number in range(N)]])
    landed = times + rng.integers(0, 60, N)
    labels = pa.table({"time": landed, "id": predictions["id"], "label": events["label"]}).sort_by("time")
    for name, table in (("e", events), ("p", predictions), ("l", labels)):
        before = pa.compute.less(table["time"], cut)
        for day, mask in (("1", before), ("2", pa.compute.invert(before))):
            pa.csv.write_csv(table.filter(mask), f"{name}{day}.csv")
            lines = "".join(json.dumps(record) + "\n" for record in table.filter(mask).to_pylist())
            Path(f"{name}{day}.jsonl").write_text(lines)


def run(capsys, *options, status=0):
    ran = call(capsys, "evaluate", *options, "--output", "rows.parquet")
    assert ran.status == status, ran.lines
    assert not any("add up" in line for line in ran.lines), ran.lines
    return pq.read_table("rows.parquet").to_pylist(), ran.lines


def in_order(rows):
    return sorted(rows, key=lambda row: (row["model"], row["slice"], row["row"]))


TIMED = ("--time", "time", "--id", "id")
KINDS = {
    "position": ("--window", "last:40", "--every", "7", "--slice", "site"),
    "arrival": ("--order", "arrival", "--window", "adaptive", "--every", "9"),
    "time": (*TIMED, "--deduplicate", "100s", "--idle-ttl", "20s", "--every", "5"),
    "grid": (*TIMED, "--window", "last:90s", "--every", "20s"),
}


def test_events_earlier_than_the_cut_are_late_and_the_summary_says_why(capsys):
    run(capsys, "e2.csv", *TIMED, "--export-state", "state")
    _, lines = run(capsys, "e1.csv", *TIMED, "--import-state", "state", status=3)
    said = next(line for line in lines if "were late" in line)
    assert "earlier than the cut of the imported state; give each job whole spans of time" in said


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shards", ["4", pytest.param("6", marks=pytest.mark.slow)])
def test_a_day_after_the_other_gives_the_rows_of_both(capsys, kind, shards):
    right, _ = run(capsys, "e1.csv", "e2.csv", *KINDS[kind])
    first, lines = run(capsys, "e1.csv", *KINDS[kind], "--export-state", "state")
    assert any("the state is in state" in line for line in lines)
    second, lines = run(capsys, "e2.csv", *KINDS[kind], "--import-state", "state", "--shards", shards)
    assert len(first) > 5
    assert len(second) > 5
    assert in_order(first + second) == in_order(right)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["position", "time"])
def test_a_model_gets_a_shard_of_its_own_and_loses_it_again(capsys, kind):
    """By the import itself, and by `state import`: rows are those of both days together."""
    right, _ = run(capsys, "e1.csv", "e2.csv", *KINDS[kind])
    first, _ = run(capsys, "e1.csv", *KINDS[kind], "--export-state", "state")
    own = ["--own-shard", "m1", "--own-shard", "ü"]
    assert call(capsys, "state", "import", "state", "--output", "given", *own).lines == [
        "rocsteady: evaluators: 4 shards are 4 shards and 2 of one model each in given"
    ]
    taken = ["--no-own-shard", "m1", "--own-shard", "m2", "--shards", "3"]
    assert call(capsys, "state", "import", "given", "--output", "taken", *taken).lines == [
        (
            "rocsteady: evaluators: 4 shards and 2 of one model each are "
            "3 shards and 2 of one model each in taken"
        )
    ]
    goes_on = {
        "state": own, "given": own, "taken": ["--shards", "3", "--own-shard", "ü", "--own-shard", "m2"],
    }  # fmt: skip
    for folder, words in {**goes_on, "given, taken": []}.items():
        second, _ = run(capsys, "e2.csv", *KINDS[kind], "--import-state", folder.split(",")[0], *words)
        assert in_order(first + second) == in_order(right), folder


def test_a_shard_of_its_own_for_a_model_that_is_not_there_is_told_of(capsys):
    run(capsys, "e1.csv", "--export-state", "state")
    words = ["--own-shard", "m1", "--own-shard", "nosuch"]
    first, *_ = call(capsys, "state", "import", "state", "--output", "other", *words).lines
    assert first == "rocsteady: --own-shard nosuch: state has no such model, so its shard is empty"


def test_a_shard_that_a_model_has_or_has_not_is_told_of(capsys):
    run(capsys, "e1.csv", "--export-state", "state", "--own-shard", "m1")
    for words, said in (
        (["--own-shard", "m1"], "--own-shard m1: a model gets or loses its own shard once; in state these"),
        (
            ["--no-own-shard", "m2"],
            "--no-own-shard m2: a model gets or loses its own shard once; in state these",
        ),
    ):
        ran = call(capsys, "state", "import", "state", "--output", "other", *words)
        assert ran.status == 2
        assert said in ran.lines[0]
        assert ran.lines[0].endswith(" have one: m1")


@pytest.mark.slow  # in a plain run test_parts.py has a job in worker processes
def test_in_worker_processes_too(capsys):
    options = (*KINDS["time"], "--direct_num_workers", "2", "--direct_running_mode", "multi_processing")
    right, _ = run(capsys, "e1.csv", "e2.csv", *KINDS["time"])
    first, _ = run(capsys, "e1.csv", *options, "--export-state", "state")
    second, _ = run(capsys, "e2.csv", *options, "--import-state", "state")
    assert in_order(first + second) == in_order(right)


def test_labels_of_the_next_day_find_the_predictions_of_the_day_before(capsys):
    options = (*TIMED, "--ttl", "50s", "--every", "5", "--window", "last:30")
    right, _ = run(capsys, "p1.csv", "p2.csv", "--labels", "l1.csv", "--labels", "l2.csv", *options)
    first, lines = run(capsys, "p1.csv", "--labels", "l1.csv", *options, "--export-state", "state")
    assert any("kept in the state" in line for line in lines)
    second, lines = run(
        capsys, "p2.csv", "--labels", "l2.csv", *options, "--import-state", "state", "--shards", "3"
    )
    assert any(" of the state = " in line for line in lines)
    assert in_order(first + second) == in_order(right)
    out = call(capsys, "inspect", "state").out
    assert "join: 16 shards" in out
    assert "predictions that wait for a label" in out


def test_a_stream_goes_on_from_files_and_files_from_a_stream(capsys, monkeypatch):
    right, _ = run(capsys, "e1.csv", "e2.csv", *LIVE)
    first, _ = run(capsys, "e1.csv", *LIVE, "--export-state", "state")
    with Path("e2.jsonl").open() as lines:
        monkeypatch.setattr("sys.stdin", lines)
        second, _ = run(capsys, "-", *LIVE, "--import-state", "state")
    assert in_order(first + second) == in_order(right)
    with Path("e1.jsonl").open() as lines:
        monkeypatch.setattr("sys.stdin", lines)
        first, _ = run(capsys, "-", *LIVE, "--export-state", "live")
    second, _ = run(capsys, "e2.csv", *LIVE, "--import-state", "live")
    assert in_order(first + second) == in_order(right)


def nothing_is_asked(path):
    left = ControlFile(path).request()
    return left is not None and left.folder == ""


def test_a_running_stream_gives_its_state_when_it_is_asked(capsys, tmp_path):
    folder = tmp_path / "arriving"
    folder.mkdir()
    (folder / "1.jsonl").write_text(Path("e1.jsonl").read_text() + "no event\n")
    right, _ = run(capsys, "e1.csv", "e2.csv", *LIVE)

    def asks():
        while not (Path("dead.jsonl").exists() and Path("dead.jsonl").read_text()):  # of the last line so far
            time.sleep(0.01)
        assert call_quietly("state", "export", "--control", "ask.json", "--output", "state") == 0
        (folder / "2.jsonl").write_text(Path("e2.jsonl").read_text())
        (folder / "_END").touch()

    asking = threading.Thread(target=asks)
    asking.start()
    dead = ("--dead-letters", "dead.jsonl")
    rows, _ = run(capsys, str(folder), "--follow", *LIVE, "--control", "ask.json", *dead)
    asking.join()
    assert rows == right
    assert nothing_is_asked("ask.json")
    second, _ = run(capsys, "e2.csv", *LIVE, "--import-state", "state")
    assert second == [row for row in right if row in second]
    assert {(row["model"], row["row"]) for row in right if row["seq"] > 60} & {
        (row["model"], row["row"]) for row in second
    }
    out = call(capsys, "inspect", "state").out
    assert "evaluators: 1 shards" in out
    assert re.search(rf"{folder}: at offset 199, in 1\.jsonl, at byte 16,488$", out, re.MULTILINE), out


def call_quietly(*words):
    from rocsteady.pipelines.commands import command_parser
    from rocsteady.pipelines.state import state_command

    return state_command(command_parser()[0].parse_args(words))


def test_what_a_row_says_may_change_and_what_a_window_holds_may_shrink(capsys):
    run(capsys, "e1.csv", "--every", "10", "--window", "last:50", "--export-state", "state")
    changed = ("--cost", "uniform", "--threshold", "0.3", "--confidence", "0.9", "--at-fpr", "0.2")
    rows, _ = run(
        capsys, "e2.csv", "--every", "5", "--window", "last:20", *changed, "--import-state", "state"
    )
    whole, _ = run(capsys, "e1.csv", "e2.csv", "--every", "5", "--window", "last:20", *changed)
    seqs = {(row["model"], row["seq"]): row for row in whole}
    same = ("auc", "auc_low", "h", "ks", "tpr_at_fpr", "tp", "fp", "precision", "kappa", "window_events")
    for row in rows:
        assert {name: row[name] for name in same} == {
            name: seqs[row["model"], row["seq"]][name] for name in same
        }


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--window", "last:80"), "window was 'last:50' and is now 'last:80' (what has left a window cannot"),
        (("--window", "all"), "another kind of window would hold other events"),
        (("--window", "last:50", "--slice", "site"), "'site' would begin empty"),
        (("--window", "last:50", "--order", "arrival"), "what was applied in one order cannot be put into"),
        (("--window", "last:50", "--positive", "1"), "positive was None and is now '1'"),
        (("--window", "last:50", "--labels", "l2.csv", *TIMED), "holds the state of evaluators, and this"),
        (("--window", "last:50", "--alert", "auc < 0.5"), "leave --alert out"),
    ],
)  # fmt: skip
def test_what_cannot_be_carried_over_is_refused_in_words(capsys, options, words):
    run(capsys, "e1.csv", "--window", "last:50", "--every", "10", "--export-state", "state")
    ran = call(
        capsys,
        "evaluate",
        "e2.csv",
        *options,
        "--every",
        "10",
        "--import-state",
        "state",
        "--output",
        "r.csv",
    )
    assert ran.status == 2
    assert words in ran.lines[-1], ran.lines


def test_rules_are_refused_where_the_state_could_be_asked_for(capsys):
    Path("in").mkdir()
    said = refused(
        capsys, "evaluate", "in", "--follow", "--control", "ask.json", "--output", "r.jsonl", *LIVE,
        "--alert", "auc < 0.5",
    )  # fmt: skip
    assert "--control ask.json: the rules of --alert have a state that is not exported" in said


def refused(capsys, *words):
    ran = call(capsys, *words)
    assert ran.status == 2, ran
    return ran.lines[-1]


def test_folders_that_are_no_export_are_told(capsys, tmp_path):
    job = ("evaluate", "e2.csv", "--every", "10", "--output", "r.csv", "--import-state")
    assert "state does not exist" in refused(capsys, *job, "state")
    assert "e1.csv is a file, and an export a folder" in refused(capsys, *job, "e1.csv")
    assert "it is another folder" in refused(capsys, *job, ".")
    run(capsys, "e1.csv", "--every", "10", "--export-state", "state")
    again = ("evaluate", "e1.csv", "--every", "10", "--output", "r.csv", "--export-state", "state")
    assert "holds an export already; name a new folder" in refused(capsys, *again)
    folder = tmp_path / "state"
    assert len(list(folder.iterdir())) == 2
    manifest = folder / "manifest.json"
    content = json.loads(manifest.read_text())
    (one,) = {folder / file["name"] for file in content["steps"][0]["files"]}
    whole = one.read_bytes()
    for data, words in (
        (whole[:-9], "of "), (whole[:-1] + b"x", "fails its checksum"), (b"", "has 0 of"),
    ):  # fmt: skip
        one.write_bytes(data)
        line = refused(capsys, *job, "state")
        assert str(one.name) in line
        assert words in line
        assert "the export was damaged" in line
    one.unlink()
    assert "does not exist, and belongs to the export" in refused(capsys, *job, "state")
    one.write_bytes(whole)
    swapped = content | {"steps": [content["steps"][0] | {"files": content["steps"][0]["files"][::-1]}]}
    manifest.write_text(json.dumps(swapped))
    assert "and the manifest says shard" in refused(capsys, *job, "state")
    manifest.write_text(json.dumps(content | {"format": 9}))
    assert "is of format 9: this rocsteady" in refused(capsys, "inspect", "state")
    manifest.write_text("{")
    assert "is damaged" in refused(capsys, "inspect", "state")
    manifest.unlink()
    assert "it holds 1 states, so the export did not end" in refused(capsys, *job, "state")


def test_a_state_is_told_in_words_and_spread_over_other_shards(capsys):
    run(capsys, "e1.csv", "--every", "10", "--slice", "site", "--export-state", "state")
    out = call(capsys, "inspect", "state").out
    assert "models: 3, slices of them: 6" in out
    assert "evaluators: 4 shards" in out
    assert "window last:10000" in out
    assert call(capsys, "state", "import", "state", "--shards", "2", "--output", "two").status == 0
    assert "evaluators: 2 shards" in call(capsys, "inspect", "two").out
    (file,) = Path("two").glob("shards-*.state")
    out = call(capsys, "inspect", file).out
    assert "shard 0 of 2 of the evaluators" in out
    assert "shard 1 of 2 of the evaluators" in out
    assert "shards: 2" in out
    assert "has no join of labels" in refused(
        capsys, "state", "import", "state", "--join-shards", "2", "--output", "three"
    )
    assert "is not empty" in refused(capsys, "state", "import", "state", "--output", ".")


def test_a_stream_that_nobody_runs_is_told(capsys):
    ran = call(
        capsys, "state", "export", "--control", "ask.json", "--output", "s", "--timeout", "1s"
    )  # fmt: skip
    assert ran.status == 1
    assert ran.lines[0].startswith("rocsteady: 0 shards are written after ")
    assert "no export was written to" in ran.lines[-1]
    assert "0 shards are there" in ran.lines[-1]
    assert nothing_is_asked("ask.json")
    assert "the folder nowhere does not exist" in refused(
        capsys, "state", "export", "--control", "nowhere/ask.json", "--output", "s"
    )
    assert "it is for streams" in refused(
        capsys, "evaluate", "e1.csv", "--control", "ask.json", "--output", "r.csv"
    )


@pytest.mark.slow
def test_who_gives_up_leaves_the_request_of_another_one(capsys):
    other = ExportRequest("99990101T000000.000000-00000000", "there")

    def asks():
        while not Path("ask.json").exists():  # the other request, which waits to its end below
            time.sleep(0.01)
        ask("ask.json", other)

    asking = threading.Thread(target=asks)
    asking.start()
    ran = call(capsys, "state", "export", "--control", "ask.json", "--output", "s", "--timeout", "2s")
    asking.join()
    assert ran.status == 1
    assert "another request took its place in --control ask.json" in ran.lines[-1]
    assert ControlFile("ask.json").request() == other


def test_a_control_file_is_a_request_once(tmp_path, caplog):
    now = [0.0]
    control = ControlFile(str(tmp_path / "ask.json"), 1.0, lambda: now[0])
    assert control.request() is None
    ask(control.path, ExportRequest("2", "there"))
    assert control.request() is None  # it was looked at just now
    now[0] = 1.0
    assert control.request() == ("2", "there")
    assert control.request("1") == ("2", "there")
    assert control.request("2") is None
    Path(control.path).write_text("[]")
    now[0] = 2.5
    assert control.request() is None
    assert "is no request that rocsteady state writes" in caplog.text
