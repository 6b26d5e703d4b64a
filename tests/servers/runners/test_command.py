"""`python -m rocsteady.runners.servers` from up to down, each step a process of its own, as at a terminal."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

from rocsteady.runners.servers.processes import birth, free_port, listens

from tests.support.requirements import servers
from tests.support.servers.kafka_topics import until

NAMES = ["job-manager", "job-server", "kafka", "task-manager-1", "task-manager-2", "worker-pool"]


def run(folder, *words, status=0):
    command = [sys.executable, "-m", "rocsteady.runners.servers", *words, "--folder", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == status, done.stderr
    return done.stdout if status == 0 else done.stderr


def test_up_topic_status_down(tmp_path):
    servers("flink", "kafka")
    flink, jobs, kafka, pool = (free_port() for _ in range(4))
    ports = [
        f"--flink-port={flink}", f"--job-port={jobs}", f"--kafka-port={kafka}", f"--pool-port={pool}"
    ]  # fmt: skip
    try:
        words = ["up", "flink", "kafka", "pool", *ports, "--task-managers=2", "--slots=1"]
        said = run(tmp_path, *words, "--flink-conf=restart-strategy.fixed-delay.delay = 2 s")
        assert f"--runner flink --flink_master 127.0.0.1:{flink} " in said
        assert f"--job_endpoint 127.0.0.1:{jobs} " in said
        assert f"Kafka is up at 127.0.0.1:{kafka};" in said
        assert f"--environment_config 127.0.0.1:{pool}\n" in said
        assert all(listens(port) for port in (flink, jobs, kafka, pool))

        assert run(tmp_path, "topic", "events", "--partitions=3") == f"kafka://127.0.0.1:{kafka}/events\n"
        assert "topic 'events' cannot be made" in run(tmp_path, "topic", "events", status=2)

        again = run(tmp_path, "up", "flink", "kafka")
        assert f"Flink runs already, at http://127.0.0.1:{flink}\n" in again
        assert "\nkafka runs already\n" in again

        refused = run(tmp_path, "up", "flink", "--slots=4", status=2)
        assert "--slots 4: flink was started with 1; stop it with `down flink` first\n" in refused
        refused = run(tmp_path, "up", "flink", "--flink-conf=heartbeat.timeout=9000", status=2)
        assert "--flink-conf heartbeat.timeout 9000: flink was started with 8000" in refused

        shown = run(tmp_path, "status")
        pids = dict(re.findall(r"^(\S+) +\d+ MB +(\d+)", shown, re.MULTILINE))
        assert [*pids] == NAMES
        assert "\nrestart-strategy.fixed-delay.delay: 2 s\n" in shown
        lives = pids.pop("task-manager-2")
        for pid in pids.values():
            os.kill(int(pid), signal.SIGKILL)
        until(lambda: not any(birth(int(pid)) for pid in pids.values()))
        shown = run(tmp_path, "status")
        assert re.findall(r"^(\S+) +ended", shown, re.MULTILINE) == [*pids]
        assert "`up flink` starts what has ended\n" in shown

        said = run(tmp_path, "up", "flink", "kafka", "pool")
        assert sorted(re.findall(r"^(\S+) had ended, and is started anew$", said, re.MULTILINE)) == [*pids]
        assert "jobs are gone with their JobManager" in said
        assert all(listens(port) for port in (flink, jobs, kafka, pool))
        assert "topic 'events' cannot be made" in run(tmp_path, "topic", "events", status=2)
        shown = run(tmp_path, "status")
        again = dict(re.findall(r"^(\S+) +\d+ MB +(\d+)", shown, re.MULTILINE))
        assert [*again] == NAMES
        assert again.pop("task-manager-2") == lives
        assert not set(again.items()) & set(pids.items())
        assert "\nrestart-strategy.fixed-delay.delay: 2 s\n" in shown

        assert run(tmp_path, "down", "kafka") == "kafka is stopped\n"
    finally:
        said = run(tmp_path, "down")
    assert sorted(said.splitlines()) == [f"{name} is stopped" for name in NAMES if name != "kafka"]
    assert not any(listens(port) for port in (flink, jobs, kafka, pool))
    assert run(tmp_path, "status") == f"nothing runs in {tmp_path}\n"


def test_a_setting_that_flink_does_not_know_is_refused_and_nothing_runs(tmp_path):
    servers("flink")
    refused = run(tmp_path, "up", "flink", "--flink-conf=restart-strategy.typ=none", status=2)
    assert "Flink 1.19 knows no such setting; did you mean restart-strategy.type?" in refused
    assert run(tmp_path, "status") == f"nothing runs in {tmp_path}\n"
