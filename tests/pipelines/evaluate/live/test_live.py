"""Live jobs: the rows of a file with the same lines, each of them at once, and an end that is clean."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import sys
import threading
import time
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.support.processes import killed_job
from tests.support.processes.clock import Clock
from tests.support.processes.command import DONE, call, said
from tests.support.processes.live_job import PATIENCE, job, wait_for

pytestmark = pytest.mark.skipif(os.name != "posix", reason="pipes that can be asked, and POSIX signals")

NOTHING = 0.2
"""Seconds in which a row that must not come yet does not come. A slow machine hides one, and invents none."""


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def events(n, seed=0):
    """n events as dicts: two models, two slice columns, times that rise with some that are late."""
    rng = random.Random(seed)
    found, seconds = [], 0
    for i in range(n):
        seconds += rng.choice([0, 0, 1, 40])
        label = rng.random() < 0.4
        event = {
            "model": rng.choice(["a", "b"]),
            "score": round(rng.random() * 0.6 + 0.4 * label, 3),
            "label": int(label),
            "country": rng.choice(["AR", "DE", None]),
            "device": rng.choice(["x=y", "z"]),
            "time": 1_700_000_000 + seconds - rng.choice([0, 0, 0, 0, 30, 300, 700]),
            "id": f"e{i}",
            "weight": rng.choice([1, 0.5, 2]),
            "said": rng.choice(["yes", "no", "perhaps"]),
            "word": rng.choice(["yes", "no"]),
        }
        found.append(event)
    return found


def lines_of(found):
    return "".join(json.dumps(event) + "\n" for event in found).encode()


def awkward(n, seed=0):
    """Lines of n events, and lines between them that are none."""
    rng = random.Random(seed)
    none = [
        b"", b"   ", b"no object", b"[1, 2]", b'{"score": "high", "label": 1, "model": "a"}',
        b'{"score": 0.5, "model": "a"}', b'{"score": 0.5, "label": 1, "model": "\xff"}',
        b'{"score": 0.5, "label": 1, "model": "a", "more": {"x": [1, null]}}', b'{"label": 1}',
    ]  # fmt: skip
    lines = []
    for event in events(n, seed):
        lines.append(json.dumps(event).encode() + b"\r" * (rng.random() < 0.1))
        if rng.random() < 0.1:
            lines.append(rng.choice(none))
    return b"\xef\xbb\xbf" + b"\n".join(lines)


@contextmanager
def stdin(data, monkeypatch, cuts=(), pause=0.0):
    """Let stdin of this process be a pipe into which `data` is written, in pieces cut at `cuts`."""
    receive, send = os.pipe()
    bounds = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]

    def feed():
        for start, end in pairwise(bounds):
            piece = data[start:end]
            while piece:
                piece = piece[os.write(send, piece) :]
            time.sleep(pause)  # lets the reader look between two pieces, sometimes: rows are the same
        os.close(send)

    feeder = threading.Thread(target=feed)
    with os.fdopen(receive) as file:
        monkeypatch.setattr(sys, "stdin", file)
        feeder.start()
        yield
        feeder.join()


def live(capsys, monkeypatch, data, *options, output="live.jsonl", cuts=(), pause=0.0, status=0):
    with stdin(data, monkeypatch, cuts, pause):
        ran = call(capsys, "evaluate", "-", *options, "--output", output)
    assert ran.status == status, ran
    return ran


def summary(ran):
    """The counters of the summary, and the lines after it; progress may stand before it."""
    for place, line in enumerate(ran.lines):
        if found := DONE.fullmatch(line):
            return found.groups()[:4], ran.lines[place + 1 :]
    raise AssertionError(ran.lines)


JOBS = {
    "count": "--window last:50 --every 7",
    "slices": "--window last:50 --slice country --slice country,device --every 20",
    "all": "--window all --every 50 --measures all --probabilities",
    "fading": "--window fading:30 --every 11",
    "adaptive": "--window adaptive --every 10",
    "last:10m": "--time time --order position --window last:10m --every 13",
    "grid": "--time time --order position --window last:10m --every 5m",
    "weights": "--window last:50 --weight weight --every 30",
    "classes": "--window last:50 --label word --predicted said --positive yes --every 30",
    "arrival": "--window last:50 --order arrival --every 25",
    "arrival grid": "--window last:50 --order arrival --time time --every 5m",
    "settled": "--window last:50 --time time --order time:10m --every 9",
    "settled grid": "--time time --order time:5m --window last:1h --every 5m --slice country",
    "settled by id": "--window last:50 --time time --id id --order time:1h --every 9",
    "in order": "--window last:50 --time time --order time:0s --every 9",
    "ahead": "--window last:50 --time time --order position --max-ahead 1d --every 9",
    "one model": "--window last:50 --model-name one --every 30",
    "twice": "--window last:50 --time time --id said --order position --deduplicate 30s --every 3",
    "twice in order": "--window last:50 --time time --id said --order time:1h --deduplicate 30s --every 3",
    "others": "--window last:50 --slice country,device --slice-cap 2 --every 9",
    "silence": "--window last:50 --time time --order position --slice country --idle-ttl 2m --every 9",
    "silence in order": "--window last:50 --time time --order time:1h --idle-ttl 20s --every 9",
}


LIKE_OTHERS = {"in order", "last:10m", "arrival grid", "twice in order", "silence in order"}


@pytest.mark.parametrize(
    "job", [pytest.param(job, marks=[pytest.mark.slow] * (job in LIKE_OTHERS)) for job in JOBS]
)  # in a plain run those of which every option is tried
def test_rows_of_stdin_are_those_of_a_file_with_the_same_lines(capsys, monkeypatch, job):
    data = awkward(400)
    Path("stdin.jsonl").write_bytes(data)
    options = JOBS[job].split()
    in_file = call(
        capsys, "evaluate", "stdin.jsonl", *options, "--output", "file.jsonl",
        "--dead-letters", "file_dead.jsonl",
    )  # fmt: skip
    rng = random.Random(1)
    cuts = [rng.randrange(len(data)) for _ in range(60)]
    ran = live(
        capsys, monkeypatch, data, *options, "--dead-letters", "live_dead.jsonl", cuts=cuts, pause=0.001
    )
    (counts, remarks), (file_counts, file_remarks) = summary(ran), summary(in_file)
    assert counts == file_counts
    said = [line.replace("live_dead", "file_dead").replace("(stdin,", "(stdin.jsonl,") for line in remarks]
    assert said == file_remarks
    rows = Path("live.jsonl").read_text().splitlines()
    assert len(rows) > 6
    assert sorted(rows) == sorted(Path("file.jsonl").read_text().splitlines())
    dead = Path("file_dead.jsonl").read_text().replace('"stdin.jsonl"', '"stdin"').splitlines()
    assert len(dead) > 10
    found = Path("live_dead.jsonl").read_text().splitlines()
    if "--deduplicate" in options:  # the table's letters come when events apply, the reader's when it reads
        found, dead = sorted(found), sorted(dead)
    assert found == dead


def test_rows_of_a_model_come_in_their_order(capsys, monkeypatch):
    data = lines_of(events(300))
    live(capsys, monkeypatch, data, "--every", "1", cuts=range(0, len(data), 1000), pause=0.001)
    rows = [json.loads(line) for line in Path("live.jsonl").read_text().splitlines()]
    for model in "ab":
        expected = sum(event["model"] == model for event in events(300))
        assert [row["row"] for row in rows if row["model"] == model] == [*range(expected)]


@pytest.mark.parametrize("output", ["rows.parquet", "rows.csv.gz", "rows.csv"])
def test_every_kind_of_file_holds_the_rows(capsys, monkeypatch, output):
    data = lines_of(events(300))
    Path("stdin.jsonl").write_bytes(data)
    call(capsys, "evaluate", "stdin.jsonl", "--every", "20", "--output", f"file_{output}")
    live(capsys, monkeypatch, data, "--every", "20", output=output)
    written, expected = Path(output).read_bytes(), Path(f"file_{output}").read_bytes()
    if output == "rows.csv":  # by line, as they came
        written, expected = (sorted(content.splitlines()) for content in (written, expected))
    assert written == expected


def test_stdout_takes_rows_as_json_lines(capsys, monkeypatch):
    data = lines_of(events(300))
    live(capsys, monkeypatch, data, "--every", "20")
    ran = live(capsys, monkeypatch, data, "--every", "20", output="-")
    assert ran.out == Path("live.jsonl").read_text()


def test_curves_and_a_report_come_at_the_end_as_of_a_file(capsys, monkeypatch):
    data = awkward(400)
    Path("stdin.jsonl").write_bytes(data)
    options = ("--window", "last:100", "--every", "50", "--curves-every", "100", "--title", "Now")
    call(
        capsys, "evaluate", "stdin.jsonl", *options, "--output", "file.jsonl", "--curves", "file.parquet",
        "--report", "file.html",
    )  # fmt: skip
    live(capsys, monkeypatch, data, *options, "--curves", "live.parquet", "--report", "live.html")
    assert pq.read_table("live.parquet").equals(pq.read_table("file.parquet"))
    assert Path("live.html").read_bytes() == Path("file.html").read_bytes()


@pytest.mark.parametrize("kept", [(), ("--alerts", "alerts.csv")])
def test_the_page_has_the_alerts_of_the_stream(capsys, monkeypatch, kept):
    options = (
        "--window",
        "last:50",
        "--every",
        "10",
        "--alert",
        "auc < 0.99",
        "--report",
        "live.html",
    )
    ran = live(capsys, monkeypatch, lines_of(events(400)), *options, *kept)
    opened = [found for line in ran.lines if (found := re.match(r"rocsteady: (\d+) alerts? opened", line))]
    assert f"{opened[0].group(1)} alert" in Path("live.html").read_text().partition("</header>")[0]


def test_nothing_on_stdin_is_an_empty_table(capsys, monkeypatch):
    ran = live(capsys, monkeypatch, b"", output="rows.csv")
    assert summary(ran)[0] == ("0", "0", "0", "0")
    assert Path("rows.csv").read_text().startswith("model,slice,row")


def test_a_wrong_column_is_said_after_few_events(capsys, monkeypatch):
    ran = live(capsys, monkeypatch, lines_of(events(50)), "--score", "p", status=3)
    assert ran.lines[0].startswith("rocsteady: none of the first")
    assert "most often score is missing (in the column 'p'); check --score; one of them is {" in ran.lines[0]


def test_a_value_that_was_refused_is_in_the_message(capsys, monkeypatch):
    ran = live(capsys, monkeypatch, b'{"score": "high", "label": 1}\n' * 20, status=3)
    assert "most often score is not a number (in the column 'score', such as 'high'); check" in ran.lines[0]


def test_by_time_a_stream_is_settled_as_far_as_it_has_come(capsys, monkeypatch):
    """Where a file is sorted as a whole, a stream has no lateness unless it is said."""
    data = lines_of(events(300))
    Path("stdin.jsonl").write_bytes(data)
    options = ("--time", "time", "--id", "id", "--every", "10")
    in_file = call(
        capsys, "evaluate", "stdin.jsonl", *options, "--order", "time:0s", "--output", "file.jsonl"
    )
    assert in_file.status == 0
    for order in ((), ("--order", "time"), ("--order", "time:0s")):
        live(capsys, monkeypatch, data, *options, *order, "--dead-letters", "dead.jsonl")
        lines = Path("live.jsonl").read_text().splitlines()
        assert sorted(lines) == sorted(Path("file.jsonl").read_text().splitlines())
    late = [json.loads(line) for line in Path("dead.jsonl").read_text().splitlines()]
    assert {letter["kind"] for letter in late} == {"late"}
    greatest, expected = 0, []
    for place, event in enumerate(events(300)):
        if event["time"] < greatest:
            expected.append(place)
        greatest = max(greatest, event["time"])
    assert [letter["position"] for letter in late] == expected


# ---- as it goes


LINES = [json.dumps(event).encode() + b"\n" for event in events(200)]


def test_a_row_is_there_before_another_line_comes():
    with job("-", "--every", "1") as running:
        running.send(LINES[0])
        assert running.row()
        for line in LINES[1:6]:
            running.send(line[:20])
            assert running.row(NOTHING if line is LINES[1] else 0.0) is None
            running.send(line[20:])
            assert running.row()
        running.process.stdin.close()
        running.process.stdin = None
        status, rows, lines = running.end()
    assert (status, rows) == (0, [])
    assert lines[0].startswith("rocsteady: 6 events read = 6 applied + 0 dead letters; 6 rows on stdout")


def test_by_time_a_row_is_there_as_soon_as_a_line_settles_it():
    with job("-", "--every", "1", "--time", "time", "--order", "time:10s") as running:
        for seconds in (100, 111):
            running.send(json.dumps({"score": 1, "label": 1, "time": seconds}).encode() + b"\n")
        assert running.row()["time"] == "1970-01-01T00:01:40Z"
        running.send(b'{"score": 1, "label": 1, "time": 121}\n')
        assert running.row(NOTHING) is None
        running.send(b'{"score": 1, "label": 1, "time": 122}\n')
        assert running.row()["time"] == "1970-01-01T00:01:51Z"


def test_an_alert_is_said_when_its_row_comes():
    with job("-", "--every", "1", "--alert", "window_events > 1", "--alerts", "a.jsonl") as running:
        for _ in range(2):
            running.send(b'{"score": 1, "label": 1}\n')
        wait_for(lambda: Path("a.jsonl").exists() and Path("a.jsonl").read_text().count("\n") == 1)
    (alert,) = map(json.loads, Path("a.jsonl").read_text().splitlines())
    assert (alert["state"], alert["row"], alert["value"]) == ("open", 1, 2)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) for name in ("rows.jsonl", "rows.csv")]
)  # in a plain run others tell: on stdout, and where two signals end the job
def test_a_row_is_in_its_file_before_another_line_comes(name):
    with job("-", "--every", "1", output=name) as running:
        running.send(LINES[0])
        wait_for(lambda: Path(name).exists() and Path(name).read_text().count("\n") > name.endswith("csv"))
        before = Path(name).read_text()
        running.send(LINES[1])
        wait_for(lambda: Path(name).read_text() != before)
        assert Path(name).read_text().startswith(before)
        assert Path(name).read_text().endswith("\n")


def unread(pipe):
    """How many bytes wait in a pipe. On other systems than Linux its writing end may say that none does."""
    import fcntl  # not on Windows
    import termios

    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_a_signal_ends_the_input_and_what_is_in_the_pipe_still_counts(number):
    with job("-", "--every", "1000", "--window", "all", "--dead-letters", "dead.parquet") as running:
        running.send(json.dumps({"model": "c", "score": 1, "label": "?"}).encode() + b"\n")
        wait_for(lambda: list(Path().glob(".rocsteady-*")))
        wait_for(lambda: not unread(running.process.stdin))
        running.process.send_signal(signal.SIGSTOP)
        running.send(b"".join(LINES))
        running.process.send_signal(number)
        running.process.send_signal(signal.SIGCONT)
        status, rows, lines = running.end()
    assert status == 0
    assert [json.loads(row)["seq"] for row in rows] == [
        sum(json.loads(line)["model"] == model for line in LINES) for model in "ab"
    ]
    assert "the input ends here" in lines[0]
    assert lines[1].startswith("rocsteady: 201 events read = 200 applied + 1 dead letter; 2 rows on stdout")
    assert pq.read_table("dead.parquet").num_rows == 1


@pytest.mark.slow
def test_two_signals_end_the_job_as_it_is():
    with job("-", "--every", "1", "--dead-letters", "dead.parquet", output="rows.jsonl") as running:
        running.send(LINES[0])
        wait_for(lambda: Path("rows.jsonl").exists() and Path("rows.jsonl").read_text())
        running.process.send_signal(signal.SIGSTOP)
        running.process.send_signal(signal.SIGINT)
        running.process.send_signal(signal.SIGTERM)
        running.process.send_signal(signal.SIGCONT)
        status, _, lines = running.end()
    assert status == 130
    assert lines[-1].startswith("rocsteady: interrupted; the last rows are missing")
    assert sorted(path.name for path in Path().iterdir()) == ["rows.jsonl"]
    assert len(Path("rows.jsonl").read_text().splitlines()) == 1


@pytest.mark.slow
def test_a_reader_of_rows_that_goes_away_ends_the_job_without_a_word():
    with job("-", "--every", "1") as running:
        running.send(LINES[0])
        assert running.row()
        running.process.stdout.close()
        running.process.stdout = None
        running.send(LINES[1])
        _, err = running.process.communicate(timeout=PATIENCE)
        assert running.process.returncode == 1
        assert said(err.decode()) == []


# ---- folders


def appear(name, data):
    """Let a file appear in the inbox, whole."""
    Path("inbox", f".{name}").write_bytes(data)
    Path("inbox", f".{name}").rename(Path("inbox", name))


@pytest.mark.slow
def test_a_folder_is_evaluated_while_it_grows(capsys):
    Path("inbox").mkdir()
    found = events(400)
    pieces = [found[start : start + 50] for start in range(0, 400, 50)]

    def grow():
        for number, piece in enumerate(pieces):
            appear(f"part-{number}.jsonl", lines_of(piece) + b"no object\n")
            time.sleep(0.05)  # lets the job look between two files, sometimes: rows are the same
        Path("inbox", "_END").touch()

    writer = threading.Thread(target=grow)
    writer.start()
    options = ("--slice", "country", "--every", "10", "--window", "last:50")
    ran = call(
        capsys, "evaluate", "inbox", "--follow", *options, "--output", "live.jsonl",
        "--dead-letters", "live_dead.jsonl",
    )  # fmt: skip
    writer.join()
    assert ran.status == 0, ran
    assert ran.counts[:3] == (408, 400, 8)
    call(
        capsys, "evaluate", "inbox/*.jsonl", *options, "--output", "file.jsonl",
        "--dead-letters", "file_dead.jsonl",
    )  # fmt: skip
    for kind in ("", "_dead"):
        live_lines, file_lines = (Path(f"{way}{kind}.jsonl").read_text() for way in ("live", "file"))
        assert sorted(live_lines.splitlines()) == sorted(file_lines.splitlines())


def test_rows_of_a_folder_come_while_it_grows():
    Path("inbox").mkdir()
    with job("inbox", "--follow", "--every", "1") as running:
        appear("a.jsonl", LINES[0])
        assert running.row()
        appear("b.jsonl", LINES[1])
        assert running.row()
        running.process.send_signal(signal.SIGINT)
        status, rows, lines = running.end()
    assert (status, rows) == (0, [])
    assert lines[1].startswith("rocsteady: 2 events read = 2 applied")


def test_a_partition_with_few_records_and_no_more_rests_between_two_steps(monkeypatch):
    read = []

    class Trickling(killed_job.Breaking):
        def fetch(self, offset, limit, wait, place=""):
            found = super().fetch(offset, limit, wait, place)
            read.append((time.monotonic(), bool(found.parts)))
            return found._replace(at_end=True)

    monkeypatch.setattr(killed_job, "Breaking", Trickling)
    folder = Path("arriving")
    folder.mkdir()
    (folder / "a.jsonl").write_text('{"score": 0.5, "label": 1}\n' * 4)
    (folder / "_END").touch()
    status, _ = killed_job.run_live([folder, "--follow", "--output", "rows.jsonl"], few=1)
    assert status == 0
    assert sum(found for _, found in read) == 4
    assert all(two - one >= 0.1 for (one, found), (two, _) in pairwise(read) if found)


def test_a_folder_that_is_idle_long_enough_has_ended(capsys, monkeypatch):
    Path("inbox").mkdir()
    appear("a.jsonl", LINES[0])
    clock = Clock(monkeypatch)
    began = clock.now
    ran = call(capsys, "evaluate", "inbox", "--follow", "--until-idle", "50s", "--output", "-")
    assert ran.status == 0
    assert ran.counts == (1, 1, 0, 1)
    assert 50 <= clock.now - began < 60


def test_a_folder_with_a_damaged_file_is_evaluated_and_has_status_1(capsys):
    Path("inbox").mkdir()
    appear("a.jsonl", LINES[0])
    appear("b.parquet", b"no parquet")
    appear("c.jsonl", LINES[1])
    Path("inbox", "_END").touch()
    ran = call(
        capsys, "evaluate", "inbox", "--follow", "--output", "rows.csv", "--dead-letters", "dead.jsonl"
    )
    assert ran.status == 1
    said_first, summary, *_, last = ran.lines
    assert "b.parquet is not a Parquet file" in said_first
    assert summary.startswith("rocsteady: 3 events read = 2 applied + 1 dead letter; 1 row in rows.csv")
    assert last == "rocsteady: 1 file, or a part of one, could not be read: see the dead letters"
    (letter,) = map(json.loads, Path("dead.jsonl").read_text().splitlines())
    assert letter["source"] == str(Path("inbox", "b.parquet"))


def test_a_folder_with_a_damaged_file_says_the_rules_that_hold_too(capsys):
    Path("inbox").mkdir()
    appear("a.jsonl", LINES[0])
    appear("b.parquet", b"no parquet")
    Path("inbox", "_END").touch()
    rules = ("--fail-if", "dead_letters > 0", "--fail-if", "late > 0")
    ran = call(capsys, "evaluate", "inbox", "--follow", "--output", "rows.csv", *rules)
    assert ran.status == 1
    *_, rule, last = ran.lines
    assert rule == "rocsteady: --fail-if 'dead_letters > 0': dead_letters is 1; the exit status is 1"
    assert last == "rocsteady: 1 file, or a part of one, could not be read: see the dead letters"


MISTAKES = {
    "- ok.csv": "SOURCE - takes one source",
    "- -": "SOURCE - takes one source",
    "-": "there is no stdin here",
    "- --runner prism": "--runner prism in this process leave it out",
    "- --streaming": "--streaming in this process leave it out",
    "- --follow": "--follow is for a folder",
    "inbox": "inbox is a folder name its files",
    "inbox other --follow": "--follow takes one source",
    "none --follow": "--follow: none does not exist create it",
    "ok.csv --follow": "--follow: ok.csv is not a folder",
    "ok.csv --until-idle 5s": "--until-idle 5s say --follow",
    "inbox --follow --until-idle soon": "--until-idle 'soon'",
    "inbox --follow --output inbox/rows.csv": "--output inbox/rows.csv in the folder that is followed",
    "inbox --follow --dead-letters inbox/d.csv": "--dead-letters inbox/d.csv in the folder that is followed",
    "inbox --follow --score p": "inbox/a.jsonl has no column 'p'",
}


@pytest.mark.parametrize("words", MISTAKES)
def test_mistakes_are_one_sentence(capsys, words):
    Path("inbox").mkdir()
    appear("a.jsonl", LINES[0])
    Path("ok.csv").write_text("score,label\n0.5,1\n")
    arguments = words.split() if "--output" in words else [*words.split(), "--output", "rows.parquet"]
    ran = call(capsys, "evaluate", *arguments)
    assert ran.status == 2, ran
    (line,) = ran.lines
    for part in MISTAKES[words].split():
        assert part in line
    assert sorted(path.name for path in Path().iterdir()) == ["inbox", "ok.csv"]


def test_what_is_read_is_not_written_over(capsys, monkeypatch):
    Path("rows.jsonl").write_bytes(LINES[0])
    with Path("rows.jsonl").open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        ran = call(capsys, "evaluate", "-", "--output", "rows.jsonl")
    assert ran.status == 2
    assert "rows.jsonl is also the input" in ran.lines[0]
    assert Path("rows.jsonl").read_bytes() == LINES[0]


ELSEWHERE = {
    "lines --runner flink --output lines/": "--output lines/ is in the folder that is followed",
    "tables --runner flink --output rows/ --score p": "tables/b.csv has no column 'p'",
    "lines --runner prism --output rows.csv": "--output rows.csv: it would be there at the end of a stream",
    "lines --runner flink --output rows/ --until-idle 5s": "a folder is complete when it has a file _END",
    "lines --runner DirectRunner --output rows/": "--follow is evaluated in this process, without Beam",
    "lines --runner flink --output rows/ --export-state s": "goes on for ever; give it --control FILE",
}


@pytest.mark.parametrize("words", ELSEWHERE)
def test_what_a_folder_elsewhere_cannot_be_is_said_before_the_job(capsys, words):
    for name, file, text in (
        ("lines", "a.jsonl", '{"model": "m", "score": 0.5, "label": 1, "time": 1}\n'),
        ("tables", "b.csv", "model,score,label,time\nm,0.5,1,1\n"),
    ):
        Path(name).mkdir()
        Path(name, file).write_text(text)
    ran = call(capsys, "evaluate", *words.split(), "--follow", "--time", "time")
    assert ran.status == 2, ran
    assert ELSEWHERE[words] in ran.lines[-1]
