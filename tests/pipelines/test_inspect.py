"""A stored state in words, and bytes that are none: a sentence and status 2."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from rocsteady.core.alerts.grammar import parse_alert
from rocsteady.core.alerts.table import AlertTable
from rocsteady.core.events.batch import EventBatch, PredictionBatch
from rocsteady.core.events.columns import IdColumn, TextColumn
from rocsteady.core.events.records import Clock, Heartbeat
from rocsteady.core.events.times import IDLE
from rocsteady.core.join.join import LabelJoin
from rocsteady.core.join.join_settings import JoinSettings
from rocsteady.core.settings.evaluator import EvaluatorSettings
from rocsteady.core.settings.table import TableSettings
from rocsteady.core.settings.windows import LastEvents
from rocsteady.core.state.exported import ShardState
from rocsteady.core.table.table import EvaluatorTable

from tests.support.processes.command import call


@pytest.fixture
def state(tmp_path):
    """A file with the state of two models, one of which has a slice that is seen."""
    settings = TableSettings(EvaluatorSettings(window=LastEvents(2), order="arrival"), (("site",),), 8)
    table = EvaluatorTable(settings)
    batch = EventBatch(
        TextColumn.of(["churn", "fraud", "churn", "churn"]),
        np.array([0.1, 0.9, 0.4, 0.7]),
        np.array([0, 1, 1, 0]),
        times=np.array([0, 1_000_000, 2_000_000, 3_000_000]),
        slices=(("site", TextColumn.of(["a", "a", "b", "a"])),),
    )
    table.apply(batch.pack())
    path = tmp_path / "model.state"
    path.write_bytes(table.to_bytes())
    return path


def test_the_states_of_a_join_and_of_alerts_are_told_in_words(tmp_path, capsys):
    join = LabelJoin(JoinSettings(ttl=3_600_000_000), 2)
    one = {"ids": IdColumn.of(["a"]), "times": np.array([5])}
    join.apply(PredictionBatch.of(models=TextColumn.of(["m"]), scores=np.array([0.5]), **one).pack())
    join.apply(Clock(1_000_000).pack())
    (tmp_path / "join.state").write_bytes(join.to_bytes())
    out = call(capsys, "inspect", tmp_path / "join.state").out
    assert "ttl 1h, label_lead 1h, second_label first" in out
    assert "clock: 1970-01-01T00:00:01" in out
    assert "predictions that wait for a label: 1" in out
    (tmp_path / "alerts.state").write_bytes(AlertTable([parse_alert("auc < 0.5")]).to_bytes())
    assert "rule: auc < 0.5" in call(capsys, "inspect", tmp_path / "alerts.state").out


def test_a_checkpoint_of_a_live_job_is_told_in_words(tmp_path, capsys):
    lines = "".join(f'{{"model": "m", "score": {n % 7}, "label": {n % 2}}}\n' for n in range(12))
    folder = tmp_path / "arriving"
    folder.mkdir()
    (folder / "a.jsonl").write_text(lines)
    (folder / "_END").touch()
    options = ("--output", tmp_path / "rows.jsonl", "--checkpoint", tmp_path / "kept")
    assert call(capsys, "evaluate", folder, "--follow", *options).status == 0
    first, last = sorted((tmp_path / "kept").iterdir())
    told = call(capsys, "inspect", first).out
    assert "of a job that goes on, after 0 events" in told
    assert "window last:10000" in told
    told = call(capsys, "inspect", last).out
    assert "of a job that came to the end of its input, after 12 events" in told
    assert f"{folder}: at 12" in told
    assert call(capsys, "inspect", tmp_path / "kept").out == told, "of the folder, the newest is told"
    last.write_bytes(last.read_bytes()[:-1])
    assert "a checkpoint ends after" in call(capsys, "inspect", last).lines[-1]
    ran = call(capsys, "inspect", tmp_path / "kept")
    assert "after 0 events" in ran.out
    assert f"warning: {last} cannot be used" in ran.lines[0]


def test_a_state_in_order_of_time_tells_its_clock(tmp_path, capsys):
    table = EvaluatorTable(TableSettings(EvaluatorSettings(order="time")))
    table.apply(Heartbeat("a.csv", 0, 2, 0, 7_000_000).pack())
    (tmp_path / "t.state").write_bytes(table.to_bytes())
    out = call(capsys, "inspect", tmp_path / "t.state").out
    assert "clock: not known yet" in out
    assert "partition 0, a.csv: 0 packets, settled up to 1970-01-01T00:00:07" in out


def test_a_partition_that_is_idle_is_told_with_the_others(tmp_path, capsys):
    table = EvaluatorTable(TableSettings(EvaluatorSettings(order="time")))
    table.apply(Heartbeat("a", 0, 2, 0, 7_000_000).pack())
    table.apply(Heartbeat("b", 1, 2, 0, IDLE).pack())
    (tmp_path / "t.state").write_bytes(table.to_bytes())
    out = call(capsys, "inspect", tmp_path / "t.state").out
    assert "partition 0, a: 0 packets" in out
    assert "partition 1, b: 0 packets" in out


@pytest.mark.slow
def test_the_states_of_many_shards_in_one_file_are_told_one_after_another(tmp_path, capsys):
    table = EvaluatorTable(TableSettings(EvaluatorSettings()))
    one = ShardState("x", "f", "evaluators", 3, 4, {0: ("a.csv", "null")}, table.to_bytes()).pack()
    (tmp_path / "shards.state").write_bytes(one * 2_000)
    ran = call(capsys, "inspect", tmp_path / "shards.state")
    assert ran.status == 0
    assert ran.out.count("shard 3 of 4 of the evaluators, in the export x") == 2_000


def test_a_state_is_told_in_words(state, capsys):
    ran = call(capsys, "inspect", state)
    assert ran.status == 0
    assert not ran.lines
    assert "window last:2, a row every 100 events, order arrival" in ran.out
    assert "shards: 8" in ran.out
    assert "slices: site" in ran.out
    assert "  churn: 2 events held of 3 applied, 0 rows, up to 1970-01-01T00:00:03" in ran.out
    assert "  churn [site=b]: 1 events held of 1 applied" in ran.out
    assert "  fraud: 1 events held of 1 applied" in ran.out


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda _: b"", "no rocsteady snapshot|bytes"),
        (lambda _: b"score,label\n0.1,0\n" * 50, "no rocsteady snapshot"),
        (lambda data: data[:-7], "bytes"),
        (lambda data: data[:-20] + bytes([data[-20] ^ 1]) + data[-19:], "checksum|corrupt|damaged|CRC"),
        (lambda data: data + b"more", "bytes"),
    ],
    ids=["nothing", "a table", "cut", "flipped", "too long"],
)
def test_bytes_that_are_no_state_are_named(change, words, state, capsys):
    state.write_bytes(change(state.read_bytes()))
    ran = call(capsys, "inspect", state)
    assert (ran.status, ran.out, len(ran.lines)) == (2, "", 1)
    assert ran.lines[0].startswith(f"rocsteady: {state}: ")
    assert re.search(words, ran.lines[0]), ran.lines[0]


def test_a_file_that_cannot_be_read_is_named(tmp_path, capsys):
    for path, sentence in (
        (tmp_path / "none.state", ": No such file or directory; give a file with the bytes of a snapshot"),
        (tmp_path, " has no manifest.json, and so is no export: it is another folder"),
    ):
        ran = call(capsys, "inspect", path)
        assert (ran.status, ran.out, len(ran.lines)) == (2, "", 1)
        assert ran.lines[0].startswith(f"rocsteady: {path}{sentence}")


def test_the_state_is_not_touched(state, capsys):
    before = state.read_bytes()
    call(capsys, "inspect", state)
    assert state.read_bytes() == before
    assert [entry.name for entry in Path(state).parent.iterdir()] == ["model.state"]
