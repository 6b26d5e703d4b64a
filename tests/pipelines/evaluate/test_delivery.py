"""Alerts are delivered once each, in order, by `--alert-exec` and `--alert-post`, and never stall the job."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rocsteady.core.alerts.alert_rows import AlertRow
from rocsteady.pipelines.evaluate import delivery as module
from rocsteady.pipelines.evaluate.delivery import Delivery, calls_of
from rocsteady.pipelines.evaluate.recipients import CallError
from rocsteady.transforms.events.dead_letters import in_columns
from rocsteady.transforms.sinks.kinds import ALERT_SCHEMA

from tests.support.processes.command import call
from tests.support.processes.live_job import PATIENCE, job, wait_for
from tests.support.servers.json_server import json_server

pytestmark = pytest.mark.skipif(os.name != "posix", reason="scripts for a POSIX shell")

NAMES = ["$(touch x)", "`touch y`; touch z", "'\"\\", "a\nb\x1b[31m", "--help", "ü 漢字"]


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def script(*lines, name="tell.sh"):
    Path(name).write_text("\n".join(["#!/bin/sh", *lines, ""]))
    Path(name).chmod(0o755)
    return f"./{name}"


def table(n, start=0, **fields):
    """Alerts of rows start, start + 1, ..."""
    alerts = [
        AlertRow(
            rule="auc < 0.6", state="open", model="m", slice="", class_=None, pane_start=None, pane_end=None,
            row=row, time=row, since_row=row, since_time=row, column="auc", value=0.5, limit=0.6,
            reference_row=None, reference_value=None, message="m",
        )._replace(**fields)
        for row in range(start, start + n)
    ]  # fmt: skip
    return pa.Table.from_batches([in_columns(alerts, ALERT_SCHEMA)])


class Kept:
    """A recipient that keeps the calls, waits for `gate`, and fails with the kind that `fails` names."""

    name = "--alert-exec kept"

    def __init__(self, fails=None):
        self.rows = []
        self.fails = fails
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Semaphore(0)

    def call(self, call, ended):
        self.entered.release()
        while not self.gate.wait(0.01):
            if ended.is_set():
                raise CallError("time", "ended")
        self.rows.append(json.loads(call.body)["row"])
        if self.fails is not None and (kind := self.fails(call)) is not None:
            raise CallError(kind, f"of kind {kind}")


def test_each_recipient_gets_every_alert_in_order(capsys):
    one, other = Kept(), Kept(lambda call: "odd" if json.loads(call.body)["row"] % 2 else None)
    with Delivery((one, other)) as delivery:
        delivery.put(table(3))
        delivery.put(table(4, 3))
        delivery.finish()
        assert one.rows == other.rows == [*range(7)]
        assert delivery.counts() == {"alert_calls": 14, "alert_calls_failed": 3}
    assert capsys.readouterr().err == (
        "rocsteady: --alert-exec kept: the alert of m, row 1 was not delivered: of kind odd\n"
    )


def test_an_alert_that_comes_twice_is_delivered_once():
    kept = Kept()
    with Delivery((kept,)) as delivery:
        delivery.put(pa.concat_tables([table(4), table(3, 2)]))
        delivery.finish()
    assert kept.rows == [*range(5)]


def test_another_process_makes_the_calls_that_had_not_ended():
    quick, slow = Kept(), Kept()
    slow.gate.clear()
    with Delivery((quick, slow)) as delivery:
        delivery.put(table(3))
        slow.entered.acquire()
        wait_for(lambda: delivery.waiting()[0] == [])
        waiting = json.loads(json.dumps(delivery.waiting()))
    assert [name for name, _, _ in waiting[1]] == ["m, row 0", "m, row 1", "m, row 2"]  # row 0 was running
    quick, slow = Kept(), Kept()
    with Delivery((quick, slow)) as delivery:
        delivery.go_on_with(waiting)
        delivery.put(table(1, 3))
        delivery.finish()
    assert (quick.rows, slow.rows) == ([3], [0, 1, 2, 3])


def test_failures_of_one_kind_are_told_rarely(capsys, monkeypatch):
    monkeypatch.setattr(module, "_TELL_SECONDS", 1e9)
    kept = Kept(lambda call: ("one", "two", None)[json.loads(call.body)["row"] % 3])
    with Delivery((kept,)) as delivery:
        delivery.put(table(300))
        delivery.finish()
    assert len(capsys.readouterr().err.splitlines()) == 2
    assert delivery.counts()["alert_calls_failed"] == 200


def test_a_hanging_recipient_stalls_nobody_and_a_full_queue_is_told(capsys):
    slow, quick = Kept(), Kept()
    slow.gate.clear()
    with Delivery((slow, quick), most=5) as delivery:
        for start in range(0, 40, 4):
            delivery.put(table(4, start))
            for _ in range(4):
                assert quick.entered.acquire(timeout=PATIENCE)
        assert delivery.counts()["alert_calls_failed"] >= 35
        slow.gate.set()
        delivery.finish()
        assert slow.rows == [0, 1, 2, 3, 4]
        assert delivery.counts()["alert_calls"] == 80
    assert "row 5 was not delivered: 5 alerts wait already" in capsys.readouterr().err


def test_at_the_end_calls_that_do_not_succeed_are_given_up_and_counted(capsys, monkeypatch):
    monkeypatch.setattr(module, "_PATIENCE", 0.2)
    slow = Kept()
    slow.gate.clear()
    with Delivery((slow,)) as delivery:
        delivery.put(table(7))
        delivery.finish()
        assert delivery.counts() == {"alert_calls": 7, "alert_calls_failed": 7}
    assert capsys.readouterr().err.endswith(
        "rocsteady: --alert-exec kept: 7 alerts not delivered when the job ended\n"
    )


def test_a_job_that_is_hurried_gives_up_soon_whatever_succeeds(monkeypatch):
    monkeypatch.setattr(module, "_PROMPT", 0.0)
    slow = Kept()
    slow.gate.clear()
    with Delivery((slow,)) as delivery:
        delivery.put(table(7))
        delivery.finish(lambda: True)
    assert delivery.counts()["alert_calls_failed"] == 7


def test_a_job_that_fails_still_delivers_what_waits():
    kept = Kept()

    def fail():
        with Delivery((kept,)) as delivery:
            delivery.put(table(7))
            raise ValueError("the job")

    with pytest.raises(ValueError, match="the job"):
        fail()
    assert kept.rows == [*range(7)]


def test_a_key_names_the_rule_the_place_the_row_and_the_state():
    (first,) = calls_of(table(1))
    (again,) = calls_of(table(1, message="in other words", value=0.25, time=None))
    assert first.key == again.key
    others = [
        {"rule": "auc < 0.7"}, {"model": "n"}, {"slice": "a=b"}, {"pane_start": 0, "pane_end": 5},
        {"pane_start": 5, "pane_end": 9}, {"row": 1}, {"state": "closed"},
    ]  # fmt: skip
    keys = {call.key for fields in others for call in calls_of(table(1, **fields))}
    assert len({first.key, *keys}) == 1 + len(others)
    assert all(len(key) == 32 and key.isalnum() and key.isascii() for key in keys)


# ---- the command


OPTIONS = ("--window", "last:20", "--every", "10", "--alert", "window_events > 15 until window_events < 5")


def write_events():
    """Events of models with names that a shell would run; every model opens two alerts and closes none."""
    lines = [
        json.dumps({"model": name, "score": at % 7 / 7, "label": at % 2, "sent": 1_700_000_000 + 60 * at})
        for at in range(60)
        for name in NAMES
    ]
    Path("s.jsonl").write_text("\n".join(lines) + "\n")
    return lines


def said_of(lines):
    """The lines about delivery."""
    return [line for line in lines if "alert_calls" in line or "--alert-" in line]


@pytest.mark.parametrize("alerts", [(), ("--alerts", "a.jsonl"), ("--alerts", "a.parquet")])
def test_a_job_on_beam_delivers_every_alert_once_in_order_of_time(alerts, capsys):
    write_events()
    command = script("cat >> got.jsonl")
    came = []
    with json_server(take=lambda posted: came.append(posted) or 200) as address:
        ran = call(
            capsys, "evaluate", "s.jsonl", "--time", "sent", *OPTIONS, *alerts, "--output", "r.csv",
            "--alert", "auc_high < 2 for 3 rows", "--alert-exec", command,
            "--alert-post", f"http://me:secret@{address}/hook", "--fail-if", "alert_calls_failed > 0",
        )  # fmt: skip
    assert ran.status == 0, ran
    got = Path("got.jsonl").read_bytes().splitlines()
    assert [posted.body for posted in came] == got
    assert len({posted.headers["Idempotency-Key"] for posted in came}) == len(came)
    found = [json.loads(line) for line in got]
    assert {alert["model"] for alert in found} == {*NAMES}
    assert [alert["time"] for alert in found] == sorted(alert["time"] for alert in found)
    assert said_of(ran.lines) == [
        f"  {2 * len(got)} calls of --alert-exec and --alert-post, 0 of them failed"
    ]
    assert not {"x", "y", "z"} & {path.name for path in Path().iterdir()}
    assert not any("secret" in line for line in ran.lines)
    if alerts[1:] == ("a.jsonl",):
        assert sorted(got) == sorted(Path("a.jsonl").read_bytes().splitlines())
    elif alerts:
        assert pq.read_table("a.parquet").num_rows == len(got)
    else:
        assert ran.lines[1].endswith("still open; kept with --alerts PATH:")


def test_failures_are_counted_for_fail_if_and_fail_nothing_else(capsys):
    write_events()
    ran = call(
        capsys, "evaluate", "s.jsonl", *OPTIONS, "--output", "r.csv", "--alerts", "a.csv",
        "--alert-exec", script("echo no $((1 + 1)) channels", "exit 3"),
        "--fail-if", "alert_calls_failed > 0",
    )  # fmt: skip
    n = len(NAMES)
    assert ran.status == 4
    assert Path("r.csv").exists()
    assert len(Path("a.csv").read_bytes().splitlines()) > n
    told, summary, status = said_of(ran.lines)
    assert told.startswith(f"rocsteady: --alert-exec {Path('tell.sh').absolute()}: the alert of ")
    assert told.endswith("was not delivered: it ended with status 3; its last line: no 2 channels")
    assert summary == f"  {n} calls of --alert-exec and --alert-post, {n} of them failed"
    assert status.endswith(f"alert_calls_failed is {n}; the exit status is 4")


def test_no_alert_no_call(capsys):
    write_events()
    ran = call(
        capsys, "evaluate", "s.jsonl", "--alert", "window_events > 1000", "--output", "r.csv",
        "--alert-exec", script("touch called"),
    )  # fmt: skip
    assert (ran.status, said_of(ran.lines), Path("called").exists()) == (0, [], False)


REFUSED = {
    "--alert-exec ./tell.sh": "--alert-exec: there is no rule --alert RULE",
    "--alert-post http://me:pw@example.com/pw": "--alert-post: there is no rule --alert RULE",
    "--alert h<1 --alert-exec ./tel.sh": "--alert-exec ./tel.sh: there is no program",
    "--alert h<1 --alert-post ftp://me:pw@example.com": "--alert-post: http:// or https://",
    "--alert h<1 --alert-exec ./tell.sh --runner flink --alerts a/": (
        "--alert-exec: runner 'flink' works on other machines --alerts"
    ),
    "--alert h<1 --alert-post http://me:pw@example.com --runner dataflow --alerts a/": (
        "--alert-post: runner 'dataflow' --alerts"
    ),
    "--alert h<1 --alert-exec ./tell.sh --alert-exec true": "--alert-exec ./tell.sh one value counts",
}


@pytest.mark.parametrize("options", REFUSED)
def test_what_could_not_be_delivered_is_refused_before_the_job(options, capsys):
    Path("ok.csv").write_text("score,label\n0.5,1\n0.7,0\n")
    script("exit 0")
    ran = call(capsys, "evaluate", "ok.csv", "--output", "o.csv", *options.split())
    assert ran.status == 2
    at = 0
    for word in REFUSED[options].split():
        at = ran.lines[-1].find(word, at)
        assert at >= 0, (word, ran.lines)
    assert "pw" not in "".join(ran.lines)
    assert not Path("o.csv").exists()


def test_a_followed_folder_on_prism_has_no_end_and_is_refused(capsys):
    Path("arriving").mkdir()
    ran = call(
        capsys, "evaluate", "arriving", "--follow", "--runner", "prism", "--alert", "h<1", "--alerts", "a/",
        "--output", "rows/", "--alert-exec", script("exit 0"),
    )  # fmt: skip
    assert ran.status == 2
    assert "--alert-exec: on runner prism the job goes on for ever" in ran.lines[-1]


def test_ctrl_c_while_a_job_on_beam_delivers_ends_it_with_its_outputs_in_place():
    write_events()
    hanging = script("echo >> started", "sleep 1000")
    with job("s.jsonl", *OPTIONS, "--alert-exec", hanging, "--alerts", "a.jsonl", output="r.csv") as running:
        wait_for(Path("started").exists)
        running.process.send_signal(signal.SIGINT)
        status, _, lines = running.end()
    n = len(NAMES)
    assert status == 130
    assert any(f"{n} alerts not delivered when the job ended" in line for line in lines), lines
    assert len(Path("a.jsonl").read_bytes().splitlines()) == n
    assert Path("r.csv").exists()
    assert any("events read =" in line for line in lines), lines
    assert Path("started").read_text() == "\n"


# ---- live


LINE = b'{"score": 1, "label": 1, "model": "$(touch x)"}\n'
LIVE = ("-", "--every", "1", "--alert", "window_events > 1", "--alerts", "a.jsonl")


def test_a_live_job_delivers_an_alert_while_it_runs():
    came = []
    with json_server(take=lambda posted: came.append(posted) or 200) as address:
        options = ("--alert-exec", script("cat >> got.jsonl"), "--alert-post", f"http://{address}/")
        with job(*LIVE, *options) as running:
            running.send(LINE * 2)
            wait_for(lambda: came and Path("got.jsonl").exists())
            wait_for(lambda: Path("got.jsonl").read_bytes().endswith(b"\n"))
            running.process.stdin.close()
            running.process.stdin = None
            status, _, lines = running.end()
    assert status == 0
    (alert,) = Path("a.jsonl").read_bytes().splitlines()
    assert came[0].body == alert == Path("got.jsonl").read_bytes().rstrip(b"\n")
    assert "  2 calls of --alert-exec and --alert-post, 0 of them failed" in lines
    assert not Path("x").exists()


def test_a_live_job_goes_on_and_ends_promptly_while_a_command_hangs():
    hanging = script("echo >> started", "sleep 1000")
    with job(*LIVE, "--alert-exec", hanging, "--fail-if", "alert_calls_failed > 0") as running:
        running.send(LINE * 2)
        wait_for(Path("started").exists)
        for _ in range(5):
            running.send(LINE)
        rows = [running.row() for _ in range(7)]
        running.process.send_signal(signal.SIGINT)
        status, _, lines = running.end()
    assert [row["row"] for row in rows] == [*range(7)]
    assert status == 4
    assert any("1 alert not delivered when the job ended" in line for line in lines), lines
    assert Path("started").read_text() == "\n"


@pytest.mark.slow
def test_a_second_signal_leaves_calls_out_and_no_rows():
    hanging = script("echo >> started", "sleep 1000")
    options = ("--alert-exec", hanging, "--alert", "window_events > 2", "--fail-if", "alert_calls_failed > 1")
    with job(*LIVE, *options, output="r.parquet") as running:
        running.send(LINE * 3)
        wait_for(Path("started").exists)
        running.process.stdin.close()
        running.process.stdin = None
        while b"to be delivered; Ctrl-C leaves them out" not in (line := running.process.stderr.readline()):
            assert line, "the job ended"
        for number in (signal.SIGINT, signal.SIGTERM):
            running.process.send_signal(number)
        status, _, lines = running.end()
    assert pq.read_table("r.parquet").num_rows == 3
    assert status == 4
    assert any("2 alerts not delivered when the job ended" in line for line in lines), lines
    assert "  2 calls of --alert-exec and --alert-post, 2 of them failed" in lines
