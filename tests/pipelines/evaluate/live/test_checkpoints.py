"""Live jobs with checkpoints: killed at any read, they go on as if they had not been disturbed."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import time
from contextlib import ExitStack
from operator import attrgetter
from pathlib import Path

import pytest
from rocsteady import read_rows
from rocsteady.core.errors import RocsteadyError
from rocsteady.core.state.checkpoint import Checkpoint
from rocsteady.transforms.sources.streams import pipe_partition
from rocsteady.transforms.state.checkpoints import CheckpointFolder

from tests.support.processes.command import COMMAND, call
from tests.support.processes.killed_job import pipe_with, run_live
from tests.support.processes.live_job import PATIENCE, job, wait_for
from tests.support.thorough import THOROUGH, at_length, some

pytestmark = pytest.mark.skipif(os.name != "posix", reason="pipes that can be asked, and POSIX signals")

IDENTITY = attrgetter("model", "row")
FEW = 25
"""Records of a read: 10 reads of a job."""


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def events(n, seed=3):
    """n events: three models, repeated ids, times of which some are late, and scores that are none."""
    rng = random.Random(seed)
    found, time = [], 1_700_000_000
    for _ in range(n):
        time += rng.choice([0, 1, 40, 1_000])
        label = int(rng.random() < 0.4)
        found.append({
            "model": rng.choice("abc"),
            "score": "none" if rng.random() < 0.02 else round(rng.random() * 0.6 + 0.4 * label, 3),
            "label": label,
            "country": rng.choice(["AR", "DE", None]),
            "time": time - rng.choice([0, 0, 0, 30, 300, 900]),
            "id": f"e{rng.randrange(2 * n // 3 + 1)}",
            "weight": rng.uniform(0.1, 5),
        })  # fmt: skip
    return found


def lines_of(found):
    return "".join(json.dumps(event) + "\n" for event in found).encode()


@pytest.fixture
def arriving(tmp_path):
    """A followed folder that is complete: three files of JSON lines."""
    folder, found = tmp_path / "arriving", events(250)
    folder.mkdir()
    for number, start in enumerate(range(0, 250, 90)):
        (folder / f"{number}.jsonl").write_bytes(lines_of(found[start : start + 90]))
    (folder / "_END").touch()
    return folder


DEAD = ("--dead-letters", "dead.csv")
BY_TIME = ("--every", "1h", "--time", "time", "--order", "time:10m", "--id", "id", *DEAD)
JOBS = {
    "all machines": (
        *BY_TIME, "--window", "last:60", "--deduplicate", "2h", "--slice", "country", "--idle-ttl", "6h",
        "--roll-up", "models", "--roll-ups", "groups.jsonl", "--curves", "curves.csv", "--curves-every", "20",
        "--pairs", "pairs.jsonl", "--champion", "a", "--alerts", "alerts.jsonl",
        "--alert", "auc < 0.85 for 2 rows", "--alert", "auc drops by 0.02 against 5 rows",
        "--alert", "worst_p < 0.5", "--alert", "difference < 0.05",
    ),
    "adaptive": (*BY_TIME, "--window", "adaptive"),
    "days": (*BY_TIME, "--window", "last:1d", "--alert", "auc surely < 0.95 at 2", "--alerts", "alerts.csv"),
    "position": ("--every", "10", "--window", "last:40", "--dead-letters", "dead.jsonl"),
    "arrival": ("--every", "10", "--window", "all", "--order", "arrival", "--time", "time"),
}  # fmt: skip
TEXTS = ("rows.jsonl", "dead.csv", "dead.jsonl", "groups.jsonl", "curves.csv", "pairs.jsonl", "alerts.jsonl",
         "alerts.csv")  # fmt: skip


def outputs():
    """The lines of each output."""
    return {name: Path(name).read_bytes().splitlines() for name in TEXTS if Path(name).exists()}


def in_any_order(found):
    """How events were cut into reads decides in which order rows of different models are written."""
    return {name: sorted(lines) for name, lines in found.items()}


def tear(line=b'{"model": "a", "au'):
    """Leave part of a line at the end of each output, as a kill within a write does."""
    for name in TEXTS:
        if Path(name).exists():
            with Path(name).open("ab") as file:
                file.write(line if name.endswith(".jsonl") else b'a,"AR\n')


def run(source, kind, every, kill_at=None):
    options = (*source, *JOBS[kind], "--output", "rows.jsonl", "--checkpoint", "kept")
    return run_live((*options, "--checkpoint-every", every), FEW, kill_at)


def undisturbed(source, kind):
    status, reads = run(source, kind, "1h")
    assert status == 0
    found = outputs()
    assert all(len(lines) > 1 for lines in found.values())
    shutil.rmtree("kept")
    return found, reads


def kept():
    """The files of checkpoints, the oldest first."""
    return sorted(Path("kept").iterdir())


def begin_anew():
    shutil.rmtree("kept", ignore_errors=True)
    for name in TEXTS:
        Path(name).unlink(missing_ok=True)


@pytest.mark.at_length
@pytest.mark.parametrize("kind", JOBS)
def test_a_job_that_is_killed_at_any_read_writes_each_line_and_no_other(arriving, kind, capsys):
    """The first kill is behind one checkpoint or two; the second comes some reads later, within a write."""
    source = (arriving, "--follow")
    wanted, reads = undisturbed(source, kind)
    pairs = [(first, later) for first in range(1, reads) for later in range(reads - first)]
    for first, later in some(pairs, each=at_length(2, 1)):
        begin_anew()
        assert run(source, kind, "0s", first)[0] is None
        if later % 2 and len(kept()) > 1:
            kept()[-1].unlink()  # so the process had gone on behind the checkpoint that is used
        tear()
        assert run(source, kind, "1h", later)[0] is None
        tear()
        capsys.readouterr()
        assert run(source, kind, "1h")[0] == 0
        said = capsys.readouterr().err
        assert "250 events read = " in said
        assert "the job goes on from its checkpoint in kept" in said
        found = outputs()
        for name, lines in wanted.items():
            assert set(found[name]) == set(lines), (name, first, later)
        rows = list(read_rows("rows.jsonl"))  # raises an error for rows of one identity that differ
        assert len(rows) == len(wanted["rows.jsonl"])


@pytest.fixture
def stdin(monkeypatch):
    """A function that puts bytes into stdin. Reads of stdin have 2,000 bytes, so that a job has many."""
    monkeypatch.setattr(pipe_partition, "_BLOCK_BYTES", 2_000)

    with ExitStack() as closing:

        def send(data):
            monkeypatch.setattr("sys.stdin", closing.enter_context(os.fdopen(pipe_with(data))))
            return ("-",)

        yield send


@pytest.mark.slow
def test_stdin_is_sent_again_from_the_start_and_its_first_records_are_skipped(stdin):
    sent = lines_of(events(250)).replace(b"\n", b"\n \n", 7) + b"[1]\n"
    wanted, reads = undisturbed(stdin(sent), "position")
    for first in range(1, reads):
        begin_anew()
        assert run(stdin(sent), "position", "0s", first)[0] is None
        tear()
        assert run(stdin(sent.replace(b"\n \n", b"\n")), "position", "0s")[0] == 0
        found = outputs()
        for name, lines in wanted.items():
            assert set(found[name]) == set(lines), (name, first)
        assert len(found["rows.jsonl"]) <= len(wanted["rows.jsonl"]) + 3  # the rows of one read, at most


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda sent: sent[:2_500], "stdin ends after [0-9]+ records, and the job had read [0-9]+; let its"),
        (
            lambda sent: sent.replace(b"e3", b"e4"),
            "stdin does not begin with the [0-9]+ records that the job",
        ),
    ],
)
def test_stdin_that_is_not_sent_again_is_an_error(stdin, change, told):
    sent = lines_of(events(250))
    assert run(stdin(sent), "position", "0s", 3)[0] is None
    with pytest.raises(RocsteadyError, match=told):
        run(stdin(change(sent)), "position", "0s")


@pytest.mark.parametrize("window", ["fading:10", "last:20"])
def test_rows_of_weighted_windows_are_repeated_to_the_last_bit(arriving, window):
    """They equal those of an undisturbed run to the rounding of their sums."""
    options = (arriving, "--follow", "--window", window, "--weight", "weight", "--every", "5",
               "--output", "rows.jsonl", "--checkpoint", "kept", "--checkpoint-every")  # fmt: skip
    assert run_live((*options, "1h"), FEW)[0] == 0
    wanted = list(read_rows("rows.jsonl"))
    for first in (5, 7):
        shutil.rmtree("kept")
        assert run_live((*options, "0s"), FEW, first)[0] is None
        kept()[-1].unlink()  # so the process had gone on behind the checkpoint that is used
        assert run_live((*options, "1h"), FEW, 3)[0] is None
        assert run_live((*options, "1h"), FEW)[0] == 0
        assert len(Path("rows.jsonl").read_bytes().splitlines()) > len(wanted)
        found = list(read_rows("rows.jsonl"))  # raises an error for rows of one identity that differ
        for row, other in zip(sorted(found, key=IDENTITY), sorted(wanted, key=IDENTITY), strict=True):
            assert (row.auc is None) == (other.auc is None)
            assert (row.auc or 0.0) == pytest.approx(other.auc or 0.0, rel=1e-12)


# ---- checkpoints that cannot be used


def go_on(capsys, source, *options):
    """Start the job of kind "position" again; return its status and what it said."""
    ran = call(
        capsys,
        "evaluate",
        *source,
        *JOBS["position"],
        "--output",
        "rows.jsonl",
        "--checkpoint",
        "kept",
        *options,
    )
    return ran.status, "\n".join(ran.lines)


@pytest.mark.parametrize(
    ("damage", "error"),
    [
        (lambda data: data[:-7], "TruncatedBytesError: a checkpoint ends after"),
        (lambda data: data[:500] + b"?" + data[501:], "CorruptBytesError: a checkpoint fails its checksum"),
        (
            lambda data: b"RSST" + data[4:],
            "ForeignBytesError: bytes that start with b'RSST' are not a checkp",
        ),
        (lambda data: data[:4] + b"\xff\x00" + data[6:], "FutureVersionError: a checkpoint of version 255"),
        (lambda _: b"", "ForeignBytesError: there are no bytes"),
    ],
    ids=["torn", "flipped", "foreign", "newer", "empty"],
)
def test_a_checkpoint_that_is_damaged_is_told_and_the_one_before_it_is_used(arriving, capsys, damage, error):
    source = (arriving, "--follow")
    wanted, _ = undisturbed(source, "position")
    assert run(source, "position", "0s", 6)[0] is None
    older, newer = kept()
    newer.write_bytes(damage(newer.read_bytes()))
    (Path("kept") / ".checkpoint-00000009.rscp.0a.tmp").touch()  # a process was killed within a write
    status, said = go_on(capsys, source)
    assert status == 0
    assert f"rocsteady: warning: {newer} cannot be used ({error}" in said
    assert "); the one before it is used" in said
    assert "goes on from its checkpoint in kept" in said
    assert {name: set(lines) for name, lines in outputs().items()} == {
        name: set(lines) for name, lines in wanted.items()
    }
    assert [path.name for path in kept()] == [older.name, "checkpoint-00000008.rscp"]


def test_a_job_does_not_begin_anew_unasked(arriving, capsys):
    source = (arriving, "--follow")
    wanted, _ = undisturbed(source, "position")
    assert run(source, "position", "0s", 6)[0] is None
    before = outputs()
    for path in kept():
        path.write_bytes(path.read_bytes()[:100])
    status, said = go_on(capsys, source)
    assert status == 2
    assert said.count("cannot be used (TruncatedBytesError") == 2
    assert (
        "has no checkpoint that can be used, and the job will not begin anew unasked: copy one back" in said
    )
    assert outputs() == before
    assert go_on(capsys, source, "--checkpoint-new")[0] == 0
    assert in_any_order(outputs()) == in_any_order(wanted)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--cost", "beta:1,1"), "cost was 'beta:2,2' and is now 'beta:1,1'"),
        (("--measures", "auc"), "measures was "),
        (("--label", "weight"), "label was 'label' and is now 'weight'"),
        (("--alert", "auc < 0.5"), "alerts was None and is now ['auc < 0.5']"),
        (("--slice", "country"), "slices was [] and is now ['country']"),
    ],
)
def test_a_checkpoint_of_other_settings_is_refused(arriving, capsys, options, told):
    source = (arriving, "--follow")
    assert run(source, "position", "0s", 6)[0] is None
    before = outputs()
    status, said = go_on(capsys, source, *options)
    assert status == 2
    assert "rocsteady: --checkpoint kept: the state was made under another configuration: " in said
    assert told in said
    assert said.endswith("start from an empty state, with --checkpoint-new")
    assert outputs() == before


def test_a_checkpoint_of_another_input_is_refused(arriving, capsys, stdin):
    assert run((arriving, "--follow"), "position", "0s", 6)[0] is None
    status, said = go_on(capsys, stdin(b""))
    assert status == 2
    assert f"--checkpoint kept was read from {arriving}, and this job reads stdin; name the same" in said


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            ("in", "--follow", "--output", "r.parquet"),
            "--output r.parquet and --checkpoint kept: such a file is",
        ),
        (
            ("in", "--follow", "--output", "r.csv.gz"),
            "written at the end, and is lost if the job is killed; name",
        ),
        (
            ("in", "--follow", "--output", "r.csv", "--report", "r.html"),
            "make it from them, with rocsteady rep",
        ),
        (("in", "--follow"), "the table of models needs all rows; name where they go with --output"),
        (
            ("in", "--follow", "--output", "r.csv", "--export-state", "x"),
            "--export-state x and --checkpoint ke",
        ),
        (
            ("in/a.jsonl", "--output", "r.csv"),
            "--checkpoint kept: checkpoints are for a stream that this proce",
        ),
        (
            ("in", "--follow", "--output", "r.csv", "--runner", "prism"),
            "checkpoints are for a stream that this",
        ),
        (
            ("in", "--follow", "--output", "r.csv", "--checkpoint-every", "often"),
            "--checkpoint-every often: ",
        ),
        (("in", "--follow", "--output", "kept/"), "--checkpoint kept is also the folder of --output"),
    ],
)
def test_what_cannot_go_on_is_refused_before_the_job(capsys, options, told):
    Path("in").mkdir()
    Path("in/a.jsonl").write_bytes(lines_of(events(3)))
    ran = call(capsys, "evaluate", *options, "--checkpoint", "kept")
    assert ran.status == 2
    assert told in ran.lines[-1]
    assert not Path("r.csv").exists()


@pytest.mark.parametrize("option", [("--checkpoint-every", "5s"), ("--checkpoint-new",)])
def test_options_on_checkpoints_need_a_folder(capsys, arriving, option):
    ran = call(capsys, "evaluate", arriving, "--follow", "--output", "r.csv", *option)
    assert ran.status == 2
    assert ran.lines[-1].startswith(f"rocsteady: {' '.join(option)} is for a job with checkpoints; say where")


def test_two_jobs_do_not_share_their_checkpoints(arriving, capsys):
    (arriving / "_END").unlink()
    options = (*JOBS["position"], "--follow", "--checkpoint", "kept")
    with job(arriving, *options, output="rows.jsonl") as running:
        wait_for(lambda: Path("kept").is_dir() and kept())
        status, said = go_on(capsys, (arriving, "--follow"))
        assert status == 2
        assert "--checkpoint kept is in use by another job that runs now; stop it, or name another" in said
        running.process.kill()
        running.process.wait()
    (arriving / "_END").touch()
    assert go_on(capsys, (arriving, "--follow"))[0] == 0  # the system released the lock


def test_a_link_to_a_folder_is_the_folder(arriving, capsys):
    Path("far").mkdir()
    Path("kept").symlink_to("far")
    with CheckpointFolder("far").held():
        status, said = go_on(capsys, (arriving, "--follow"))
        assert status == 2
        assert "--checkpoint kept is in use by another job" in said
    status, said = go_on(capsys, (arriving, "--follow"))
    assert status == 0, said
    assert [*Path("far").iterdir()]


def test_a_folder_of_checkpoints_that_is_gone_is_told(tmp_path):
    folder = CheckpointFolder(str(tmp_path / "gone"))
    with pytest.raises(
        RocsteadyError, match=r"--checkpoint .*gone: a checkpoint cannot be written \(No such"
    ):
        folder.write(Checkpoint("1.0", "2026-01-31T12:00:00Z", {}, (), {}, {}))


def test_rows_of_other_columns_are_not_continued(arriving, capsys):
    assert run((arriving, "--follow"), "adaptive", "0s", 6)[0] is None
    dead = Path("dead.csv")
    dead.write_bytes(b"kind,reason\n")
    with pytest.raises(
        RocsteadyError, match=r"output dead\.csv has other columns than the rows that go on there"
    ):
        run((arriving, "--follow"), "adaptive", "0s")
    assert dead.read_bytes() == b"kind,reason\n"


# ---- the end, and signals


def test_a_job_that_came_to_its_end_is_not_run_again(arriving, capsys):
    source = (arriving, "--follow")
    status, said = go_on(capsys, source)
    assert status == 0
    assert (
        "the checkpoint in kept stays, and says that the job came to its end; --checkpoint-new begins" in said
    )
    before = outputs(), [path.read_bytes() for path in kept()]
    status, said = go_on(capsys, source)
    assert status == 0
    assert said == (
        "rocsteady: nothing is left to do: the job of the checkpoint in kept came to the end of its input; "
        "--checkpoint-new begins anew"
    )
    assert (outputs(), [path.read_bytes() for path in kept()]) == before


def test_what_waits_when_a_job_is_stopped_is_no_defect(arriving):
    (arriving / "_END").unlink()
    words = (arriving, "--follow", "--every", "10", "--time", "time", "--order", "time:10m")
    with job(*words, "--checkpoint", "kept", output="rows.jsonl") as running:
        wait_for(lambda: Path("rows.jsonl").exists() and b'"row": 3' in Path("rows.jsonl").read_bytes())
        running.process.send_signal(signal.SIGTERM)
        status, _, said = running.end()
    assert status == 0
    assert not any("do not add up" in line for line in said)
    waits = " wait for their turn in the state of the job: the checkpoint has them"
    assert any(line.endswith(waits) for line in said)


def test_records_behind_the_end_are_never_left_out_silently(stdin, capsys):
    sent = lines_of(events(40))
    assert go_on(capsys, stdin(sent))[0] == 0
    status, said = go_on(capsys, stdin(sent + lines_of(events(1))))
    assert status == 1
    assert "but stdin has more records now; begin anew with --checkpoint-new" in said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_a_job_that_goes_on_when_it_is_started_again(arriving, capsys, number):
    source = (arriving, "--follow")
    wanted, _ = undisturbed(source, "position")
    begin_anew()
    (arriving / "_END").unlink()
    with job(*source, *JOBS["position"], "--checkpoint", "kept", output="rows.jsonl") as running:
        wait_for(lambda: Path("rows.jsonl").exists() and b'"row": 3' in Path("rows.jsonl").read_bytes())
        running.process.send_signal(number)
        status, _, said = running.end()
    assert status == 0
    assert said[0].endswith("the job stops here, without last rows")
    assert said[-1] == (
        "rocsteady: the checkpoint in kept has the state of the job; the same command goes on from there"
    )
    (arriving / "_END").touch()
    assert go_on(capsys, source)[0] == 0
    assert in_any_order(outputs()) == in_any_order(wanted)  # nothing is repeated after a stop in order


# ---- killed at any moment


@pytest.mark.slow
@pytest.mark.parametrize("source", ["folder", "stdin"])
@pytest.mark.parametrize("kind", ["all machines", "position"])
def test_a_process_that_is_killed_at_random_moments_gives_what_an_undisturbed_one_does(
    tmp_path, source, kind
):
    """Files arrive, and lines are sent, while the process runs; SIGKILL comes a few times."""
    rng = random.Random(f"{source} {kind}")
    found = events(3_000)
    folder = Path("arriving")
    folder.mkdir()
    sent = lines_of(found)
    pieces = [found[start : start + 100] for start in range(0, len(found), 100)]
    options = (*JOBS[kind], "--output", "rows.jsonl", "--checkpoint", "kept", "--checkpoint-every", "50ms")
    places = (folder, "--follow") if source == "folder" else ("-",)

    def start():
        return subprocess.Popen(
            [*COMMAND, "evaluate", *map(str, (*places, *options))],
            stdin=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
        )  # fmt: skip

    def came():
        return len(list(folder.glob("*.jsonl")))

    def feed(process, until):
        """Let records come until a moment, or all of them; return whether all came."""
        if source == "folder":
            while time.monotonic() < until and (number := came()) < len(pieces):
                hidden = folder / ".hidden"
                hidden.write_bytes(lines_of(pieces[number]))
                hidden.rename(folder / f"{number:03d}.jsonl")
                time.sleep(0.02)
            return came() == len(pieces)
        left = memoryview(sent)
        while left and time.monotonic() < until:
            left = left[process.stdin.write(left[:8_000]) :]
            time.sleep(0.02)
        return not left

    kills, most = 0, 8 if THOROUGH else 4
    while True:
        process = start()
        until = time.monotonic() + (rng.uniform(0.5, 4.0) if kills < most else PATIENCE)
        is_whole = feed(process, until)
        if kills >= most and is_whole:
            break
        time.sleep(max(until - time.monotonic(), 0))
        process.kill()
        process.communicate()
        kills += 1
    if source == "folder":
        (folder / "_END").touch()
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert "3,000 events read = " in err.decode()
    disturbed = outputs()
    begin_anew()
    process = start()
    assert feed(process, time.monotonic() + PATIENCE)
    process.communicate(timeout=PATIENCE)
    for name, lines in outputs().items():
        assert set(disturbed[name]) == set(lines), name
    assert list(read_rows("rows.jsonl"))
