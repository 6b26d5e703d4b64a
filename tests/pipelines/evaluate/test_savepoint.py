"""A savepoint is searched for the settings of the job that made it; what is not found is told of."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest
import rocsteady as rs
from rocsteady.core.alerts.alert_rows import WatchedRows
from rocsteady.core.errors import InputError
from rocsteady.core.evaluator.snapshot import Snapshot
from rocsteady.core.fleet.table import FleetTable
from rocsteady.core.join.join import LabelJoin
from rocsteady.core.join.join_settings import JoinSettings
from rocsteady.core.pairs.table import PairTable
from rocsteady.core.settings.table import TableSettings
from rocsteady.pipelines.commands import command_parser
from rocsteady.pipelines.evaluate import take_up as savepoint
from rocsteady.pipelines.evaluate.command import _planned
from rocsteady.pipelines.evaluate.job import Streams
from rocsteady.pipelines.evaluate.take_up import check_savepoint
from rocsteady.transforms.sources.streams.offsets import ReaderState, origin_of
from rocsteady.transforms.sources.streams.stream_input import StreamInput

from tests.support.streams.list_partition import ListPartition

WORDS = [
    "p.csv",
    "--output",
    "rows.csv",
    "--window",
    "last:500",
    "--shards",
    "4",
    "--id",
    "id",
    "--time",
    "t",
]
LABELS = ["--labels", "l.csv", "--label-time", "known", "--ttl", "1d"]


@pytest.fixture(autouse=True)
def _inputs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.csv").write_text("score,label,id,t\n.5,1,a,1700000000\n")
    (tmp_path / "l.csv").write_text("label,id,known\n1,a,1700000001\n")


def planned(*words):
    """A job that is to resume from the savepoint in the folder `sp`."""
    flags = ["--savepoint_path=file:sp"]
    options, _ = command_parser()[0].parse_known_args(["evaluate", *WORDS, *words, "--runner", "flink"])
    return _planned(options, flags)


def stored(folder, *states):
    """A savepoint as Flink writes it: values between bytes of its own, in several files."""
    folder.mkdir()
    noise = random.Random(1)
    (folder / "_metadata").write_bytes(noise.randbytes(2_000) + b"RSST" + b"RSJN" + noise.randbytes(2_000))
    for number, state in enumerate(states):
        (folder / f"file-{number}").write_bytes(noise.randbytes(5_000) + state + noise.randbytes(50))


def table(settings):
    return Snapshot(settings, {}, (), ()).pack()


@pytest.mark.parametrize("chunk", [64, 1 << 20])
@pytest.mark.parametrize(("id_", "good"), [("new", False), ("old", True), ("", True)])
def test_a_topic_that_was_made_anew_is_named_before_the_job_starts(tmp_path, monkeypatch, chunk, id_, good):
    monkeypatch.setattr(savepoint, "_CHUNK", chunk)
    job = planned()
    was, now = (origin_of("A", topic_id) for topic_id in ("old", id_))
    position = ReaderState(7_000, [1] * 4, name="t[1]", origin=was, known=2)
    stored(tmp_path / "sp", table(job.settings), position.to_bytes())
    source = StreamInput(ListPartition("t[1]", (), origin=now), 1, 2, "event", job.fields, 0)
    job = replace(job, streams=Streams([source], "impulse"))
    if good:
        check_savepoint(job)
        return
    said = r"sp goes on from offset 7,000 of t\[1\], .* made anew since: its id was old and is new; "
    with pytest.raises(InputError, match=said):
        check_savepoint(job)


def test_another_topic_is_named_before_the_job_starts(tmp_path):
    job = planned()
    stored(tmp_path / "sp", table(job.settings), ReaderState(7_000, [1] * 4, name="t[1]").to_bytes())
    source = StreamInput(ListPartition("u[0]", ()), 0, 1, "event", job.fields, 0)
    with pytest.raises(
        InputError, match=r"sp has an offset of t\[1\], and this job reads u\[0\]; name the same"
    ):
        check_savepoint(replace(job, streams=Streams([source], "impulse")))


@pytest.mark.parametrize("chunk", [64, 1 << 20])
def test_another_window_is_named_before_the_job_starts(tmp_path, monkeypatch, chunk):
    monkeypatch.setattr(savepoint, "_CHUNK", chunk)
    job = planned()
    evaluator = replace(job.settings.evaluator, window=rs.LastEvents(700))
    stored(tmp_path / "sp", table(replace(job.settings, evaluator=evaluator)))
    with pytest.raises(InputError, match=r"sp: .*window was 'last:700' and is now 'last:500'.*export"):
        check_savepoint(job)


def test_another_ttl_of_labels_is_named(tmp_path):
    job = planned(*LABELS)
    settings: JoinSettings = job.join.settings
    joined = LabelJoin(replace(settings, ttl=settings.ttl * 2), 0).to_bytes()
    stored(tmp_path / "sp", table(job.settings), joined)
    with pytest.raises(InputError, match="ttl was '2d' and is now '1d'"):
        check_savepoint(job)


def test_another_number_of_shards_is_named(tmp_path):
    job = planned()
    stored(tmp_path / "sp", table(job.settings))
    with pytest.raises(InputError, match="shards was 4 and is now 5"):
        check_savepoint(replace(job, settings=replace(job.settings, shards=5)))


PAIRS = ["--pairs", "pairs.csv", "--champion", "old", "--pair-within", "1h"]


def test_another_champion_is_named_and_a_job_that_had_none_is_told(tmp_path, capsys):
    job = planned(*PAIRS)
    settings = job.pairs.table(job.settings)
    other = replace(settings, against=replace(settings.against, champion="older"))
    stored(tmp_path / "sp", table(job.settings), PairTable(other).to_bytes())
    with pytest.raises(InputError, match=r"champion was 'older' and is now 'old'.*--pairs no export takes"):
        check_savepoint(job)
    (tmp_path / "sp" / "file-1").unlink()
    check_savepoint(job)
    assert "sp: no settings of the pairs were found there" in capsys.readouterr().err
    (tmp_path / "sp" / "file-2").write_bytes(PairTable(settings).to_bytes())
    check_savepoint(job)
    assert not capsys.readouterr().err


@pytest.mark.parametrize("names", [[], ["evaluators"], ["evaluators", "join"], None])
def test_a_savepoint_of_the_same_settings_is_taken_and_what_was_not_found_in_it_is_told(
    tmp_path, capsys, names
):
    job = planned(*LABELS)
    states = {"evaluators": table(job.settings), "join": LabelJoin(job.join.settings, 0).to_bytes()}
    if names is not None:
        stored(tmp_path / "sp", *(states[name] for name in names))
    check_savepoint(job)
    missing = " and ".join(name for name in states if name not in (names or ()))
    said = capsys.readouterr().err
    assert (f"sp: no settings of the {missing} were found there" in said) if missing else not said


def test_storage_that_nobody_here_knows_is_told_of(capsys):
    job = planned()
    flags = job.runner.options.from_dictionary({"savepoint_path": "nowhere://x/sp"})
    check_savepoint(replace(job, runner=replace(job.runner, options=flags)))
    assert "--savepoint_path nowhere://x/sp: no settings of the evaluators were" in capsys.readouterr().err
    assert json.loads(TableSettings.from_json(job.settings.to_json()).to_json())["shards"] == 4


ADDED = [
    "--every",
    "1h",
    "--roll-up",
    "models",
    "--roll-ups",
    "r.csv",
    "--alert",
    "auc < 0.8",
    "--alerts",
    "a.csv",
]


@pytest.mark.parametrize("there", [[], ["--roll-up"], ["--alert"], ["--roll-up", "--alert"]])
def test_a_step_that_is_new_in_the_job_is_told_of(tmp_path, capsys, there):
    job = planned(*ADDED)
    assert job.roll_ups is not None
    states = {
        "--roll-up": FleetTable(job.roll_ups.settings).to_bytes(),
        "--alert": WatchedRows.of_records([], ("auc",)).pack(),
    }
    stored(tmp_path / "sp", table(job.settings), *(states[option] for option in there))
    check_savepoint(job)
    said = capsys.readouterr().err
    for option, why in (("--roll-up", "no grid point is ever closed"), ("--alert", "wait for rows")):
        told = f"no state of {option} was found there; if the job that made it had no {option}, "
        assert (option in there) != (told in said and why in said)
