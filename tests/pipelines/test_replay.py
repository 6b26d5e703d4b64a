"""The replayer: when lines come, where they go, and that an evaluation of them is that of the file."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from rocsteady.pipelines.replay import FolderSink, play
from rocsteady.transforms.sources.files.timed_lines import TimedLines

from tests.support.processes.clock import Clock
from tests.support.processes.command import COMMAND, call, said, start

NAP = 0.002
"""Seconds that a replay may sleep too long: a nap, where what is due comes out a rounding after now."""

posix = pytest.mark.skipif(os.name != "posix", reason="POSIX signals")

DONE = re.compile(
    r"rocsteady: ([\d,]+) records played in (\d+\.\d) s, ([\d,]+)/s"
    r"(?:; at most (\d+\.\d\d) s behind schedule, (\d+\.\d\d) s at last)?"
)


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def csv(n, step=1, seed=0):
    """n events, `step` seconds from one to the next."""
    rng = random.Random(seed)
    lines = ["score,label,t,model"]
    for i in range(n):
        label = rng.random() < 0.4
        lines.append(f"{rng.random() * 0.6 + 0.4 * label:.4f},{label:d},{i * step},{rng.choice('ab')}")
    return "\n".join(lines) + "\n"


def records(text):
    return [json.loads(line) for line in text.splitlines()]


def test_everything_is_played_in_order_and_told(capsys):
    Path("s.csv").write_text(csv(1_000))
    ran = call(capsys, "replay", "s.csv", "--time", "t", "--speed", "max")
    assert ran.status == 0, ran
    assert [record["t"][-4:] for record in records(ran.out)[:3]] == [":00Z"[-4:], ":01Z"[-4:], ":02Z"[-4:]]
    assert len(records(ran.out)) == 1_000
    assert ran.lines[0] == (
        "rocsteady: 1,000 records of 1970-01-01T00:00:00Z to 1970-01-01T00:16:39Z, as fast as they are taken"
    )
    count, _, _, behind, _ = DONE.fullmatch(ran.lines[1]).groups()
    assert (count, behind) == ("1,000", None)


class Clocked:
    """A sink that knows when its lines came, by a clock that stands still while nobody sleeps."""

    def __init__(self, pause=0.0):
        self.came = []
        self._pause = pause

    def put(self, lines):
        if self._pause:
            time.sleep(self._pause)
        self.came += [(time.monotonic(), line) for line in lines]

    def tick(self):
        pass

    def close(self, complete):
        pass


def pieces(times):
    return [TimedLines(np.array(part, np.int64) * 1_000_000, [str(t) for t in part]) for part in times]


@pytest.mark.parametrize("speed", [50.0, 200.0])
def test_lines_come_when_they_are_due(speed, monkeypatch):
    Clock(monkeypatch)
    sink = Clocked()
    moments = [[1000, 1000, 1010], [1030, 1031, 1060]]
    played = play(pieces(moments), sink, speed)
    first, _ = sink.came[0]
    assert [line for _, line in sink.came] == [str(t) for part in moments for t in part]
    for came, line in sink.came:
        late = came - first - (int(line) - 1000) / speed
        assert -1e-9 < late <= NAP
    assert played.records == 6
    assert 0 <= played.behind <= played.most_behind <= NAP
    assert 60 / speed - 1e-9 <= played.seconds <= 60 / speed + NAP


def test_a_sink_that_is_slow_is_told_as_delay(monkeypatch):
    Clock(monkeypatch)
    played = play(pieces([[0], [1], [2], [3]]), Clocked(pause=0.1), speed=1_000.0)
    assert played.most_behind == pytest.approx(4 * 0.1 - 3 / 1_000, abs=NAP)
    assert "behind schedule" in played.words(1_000.0)


def test_at_top_speed_nothing_waits(monkeypatch):
    clock = Clock(monkeypatch)
    played = play(pieces([[0, 10**6], [10**9]]), Clocked(), float("inf"))
    assert played.records == 3
    assert not clock.slept


@pytest.mark.parametrize(("limit", "start_at", "expected"), [("3", None, [0, 1, 2]), ("2", "5", [5, 6])])
def test_a_part_of_a_file_can_be_played(capsys, limit, start_at, expected):
    Path("s.csv").write_text(csv(10))
    when = () if start_at is None else ("--start", start_at)
    ran = call(capsys, "replay", "s.csv", "--time", "t", "--speed", "1e6", "--limit", limit, *when)
    assert ran.status == 0, ran
    assert [int(record["t"][-3:-1]) for record in records(ran.out)] == expected


def test_what_is_odd_about_a_file_is_said(capsys):
    Path("s.csv").write_text("t,n\n5,a\n3,b\nsoon,c\n1\n")
    ran = call(capsys, "replay", "s.csv", "--time", "t", "--speed", "max")
    assert [record["n"] for record in records(ran.out)] == ["b", "c", "a"]
    assert ran.lines[1:4] == [
        "rocsteady: s.csv is not in order of time: its 3 records are sorted in memory",
        "rocsteady: 1 records of s.csv have no time that can be read: each goes with the one before it",
        "rocsteady: 1 records of s.csv are no rows, and are left out",
    ]


# ---- files in a folder


def test_files_appear_whole_and_the_last_is_told(capsys, monkeypatch):
    Path("s.csv").write_text(csv(100))
    seen = {}

    def look():
        if Path("out").is_dir():
            for path in Path("out").glob("part-*"):
                assert path.read_text().endswith("\n")
                assert path.read_text() == seen.setdefault(path.name, path.read_text())

    Clock(monkeypatch, at_sleep=look)
    ran = call(
        capsys, "replay", "s.csv", "--time", "t", "--speed", "100", "--output", "out", "--file-every", "200ms"
    )
    assert ran.status == 0, ran
    assert len(seen) > 2
    names = sorted(path.name for path in Path("out").iterdir())
    assert names[0] == "_END"
    assert names[1:] == [f"part-{number:06d}.jsonl" for number in range(1, len(names))]
    assert len(names) - 1 == 5
    text = "".join(Path("out", name).read_text() for name in names[1:])
    assert [record["t"] for record in records(text)] == sorted(record["t"] for record in records(text))
    assert len(records(text)) == 100


def test_a_file_is_whole_when_it_is_large_enough(tmp_path):
    sink = FolderSink(tmp_path, seconds=1e9)
    for _ in range(3):
        sink.put(["{}"] * 60_000)
    sink.close(complete=True)
    counts = [path.read_text().count("\n") for path in sorted(tmp_path.glob("part-*"))]
    assert counts == [120_000, 60_000]


# ---- ends


@posix
def test_ctrl_c_leaves_whole_lines_and_says_what_was_played():
    Path("s.csv").write_text(csv(100_000))
    process = start("replay", "s.csv", "--time", "t", "--speed", "5000", "--output", "out")
    wait_for(lambda: any(path.stat().st_size for path in Path("out").glob(".part-*")))
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    lines = said(err)
    assert lines[1] == "rocsteady: Ctrl-C: the last record is whole"
    assert DONE.fullmatch(lines[2])
    (path,) = Path("out").iterdir()
    assert path.name == "part-000001.jsonl"
    assert len(records(path.read_text())) == int(DONE.fullmatch(lines[2])[1].replace(",", ""))


def wait_for(condition, within=60):
    """Look again and again; the deadline is for what hangs, and ends nothing that is merely slow."""
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.slow
@posix
def test_a_reader_that_goes_away_ends_it_without_a_word():
    Path("s.csv").write_text(csv(200_000))
    process = start("replay", "s.csv", "--time", "t", "--speed", "max")
    process.stdout.readline()
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) == 1
    assert [line for line in said(err) if "records of" not in line] == []


# ---- together


def options(*more):
    return [*more, "--window", "last:50", "--every", "20"]


@pytest.mark.slow
@posix
def test_an_evaluation_of_a_replay_is_that_of_the_file(capsys, monkeypatch):
    Path("s.csv").write_text(csv(2_000))
    call(capsys, "evaluate", "s.csv", *options(), "--output", "file.jsonl")
    player = subprocess.Popen(
        [*COMMAND, "replay", "s.csv", "--time", "t", "--speed", "2000"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    with open(player.stdout.fileno(), closefd=False) as lines:
        monkeypatch.setattr("sys.stdin", lines)
        job = call(capsys, "evaluate", "-", *options(), "--output", "live.jsonl")
    player.stdout.close()
    assert job.status == 0, job
    err = player.stderr.read().decode()
    player.stderr.close()
    assert player.wait() == 0, err
    assert job.lines[0].startswith("rocsteady: 2,000 events read = 2,000 applied")
    expected = Path("file.jsonl").read_text().splitlines()
    assert sorted(Path("live.jsonl").read_text().splitlines()) == sorted(expected)


@pytest.mark.slow
def test_a_replay_into_a_folder_can_be_followed(capsys):
    Path("s.csv").write_text(csv(500))
    call(capsys, "evaluate", "s.csv", *options(), "--output", "file.jsonl")
    Path("out").mkdir()
    command = "replay s.csv --time t --speed 500 --output out --file-every 300ms"
    player = threading.Thread(
        target=subprocess.run, args=[[*COMMAND, *command.split()]], kwargs={"capture_output": True}
    )
    player.start()
    ran = call(capsys, "evaluate", "out", "--follow", *options(), "--output", "live.jsonl")
    player.join()
    assert ran.status == 0, ran
    expected = Path("file.jsonl").read_text().splitlines()
    assert sorted(Path("live.jsonl").read_text().splitlines()) == sorted(expected)


MISTAKES = {
    "s.csv": "--time",
    "none.csv --time t": "none.csv does not exist",
    "s.csv --time when": "s.csv has no column 'when' --time COL",
    "s.csv --time model": "s.csv no time that can be read --time-unit",
    "s.csv --time t --speed fast": "--speed 'fast'",
    "s.csv --time t --speed 0": "--speed '0'",
    "s.csv --time t --limit 0": "--limit '0'",
    "s.csv --time t --start soon": "--start 'soon'",
    "s.csv --time t --start 2050": "--start is behind all of them",
    "s.csv --time t --file-every 5s": "--file-every 5s --output DIR",
    "s.csv --time t --output s.csv": "s.csv is not a folder",
    "s.csv --time t --output full": "full is not empty",
    "s.csv --time t --output none/there": "none/there cannot be made",
    "s.csv --time t --text model,lable": "--text lable: no file has such a column label model",
    "s.csv --time t --sped 5": "'--sped'",
}


@pytest.mark.parametrize("words", MISTAKES)
def test_mistakes_are_one_sentence(capsys, words):
    Path("s.csv").write_text(csv(10))
    Path("full").mkdir()
    Path("full", "file").touch()
    ran = call(capsys, "replay", *words.split())
    assert ran.status == 2, ran
    (line,) = ran.lines
    for part in MISTAKES[words].split():
        assert part in line
    assert not ran.out


@pytest.mark.slow  # in a plain run that has the one whose rows are evaluated above
def test_a_terminal_less_stdin_is_not_touched(capsys):
    """A replay reads files alone: it may stand in a loop that reads stdin."""
    Path("s.csv").write_text(csv(3))
    ran = subprocess.run(
        [sys.executable, *COMMAND[1:], "replay", "s.csv", "--time", "t", "--speed", "max"],
        stdin=subprocess.DEVNULL, capture_output=True, check=True,
    )  # fmt: skip
    assert len(records(ran.stdout.decode())) == 3
