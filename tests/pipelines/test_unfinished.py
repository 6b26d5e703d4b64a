"""A run that is killed between two renames of its outputs: the next one says whose they are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from rocsteady.pipelines.outputs import staged

PROGRAM = """
import os, signal, sys
from pathlib import Path
from rocsteady.pipelines.outputs import staged

renames, rename, killed_at = 0, Path.replace, int(sys.argv[1])

def counted(self, target):
    global renames
    renames += 1
    if renames > killed_at:
        os.kill(os.getpid(), signal.SIGKILL)
    return rename(self, target)

Path.replace = counted
with staged(["a.parquet", "sub/b.jsonl", "c.csv"], True) as places:
    for place in places:
        Path(place).write_text("new")
"""
PATHS = ["a.parquet", "sub/b.jsonl", "c.csv"]


@pytest.fixture(autouse=True)
def before(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("sub").mkdir()
    for path in PATHS:
        Path(path).write_text("old")


def killed_after(renames):
    ran = subprocess.run([sys.executable, "-c", PROGRAM, str(renames)], check=False)
    assert ran.returncode == (-9 if renames < len(PATHS) else 0)


def written(paths):
    with staged(paths, True) as places:
        for place in places:
            Path(place).write_text("newer")


def notes():
    return sorted(Path().rglob("*.renames"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no SIGKILL")
def test_the_next_run_says_which_outputs_are_of_the_killed_one(capfd):
    killed_after(1)
    assert [Path(path).read_text() for path in PATHS] == ["new", "old", "old"]
    for _ in range(2):  # until they are replaced
        written(["other.csv"])
        said = capfd.readouterr().err
        assert "a run was killed while it named its outputs" in said
        assert "a.parquet is of that run, and b.jsonl, c.csv are not; run it again" in said
    written(PATHS)
    assert "a.parquet is of that run" in capfd.readouterr().err
    written(PATHS)
    assert capfd.readouterr().err == ""
    assert notes() == []


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no SIGKILL")
@pytest.mark.parametrize("renames", [0, 3])
def test_nothing_is_said_of_outputs_of_one_run(capfd, renames):
    killed_after(renames)
    written(["other.csv"])
    assert capfd.readouterr().err == ""
    assert notes() == []


def test_a_damaged_note_hinders_nobody(capfd):
    for number, text in enumerate(("", "[" * 100_000, '{"moves": 7}', '{"moves": [["a"]]}')):
        Path(f".rocsteady-{number}.renames").write_text(text)
    written(PATHS)
    assert capfd.readouterr().err == ""
    assert {Path(path).read_text() for path in PATHS} == {"newer"}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no FIFOs")
def test_what_others_put_in_the_place_of_a_note_is_passed_over(capfd):
    os.mkfifo(".rocsteady-0.renames")
    Path(".rocsteady-1.renames").symlink_to("/dev/zero")
    with Path(".rocsteady-2.renames").open("wb") as endless:
        endless.truncate(1 << 40)
    Path(".rocsteady-3.renames").write_text('{"moves": ' + "[" * 100_000)
    written(PATHS)
    assert [Path(path).read_text() for path in PATHS] == ["newer"] * 3
    assert capfd.readouterr().err == ""
