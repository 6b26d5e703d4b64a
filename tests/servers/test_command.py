"""`python -m rocsteady.runners.servers` from up to down, each step a process of its own, as at a terminal."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

from kafka_topics import until
from requirements import servers
from rocsteady.runners.servers.processes import birth, free_port, listens


def run(folder, *words, status=0):
    command = [sys.executable, "-m", "rocsteady.runners.servers", *words, "--folder", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=180)
    assert done.returncode == status, done.stderr
    return done.stdout if status == 0 else done.stderr


def test_up_topic_status_down(tmp_path):
    servers("flink", "kafka")
    flink, jobs, kafka = free_port(), free_port(), free_port()
    ports = [f"--flink-port={flink}", f"--job-port={jobs}", f"--kafka-port={kafka}"]
    try:
        said = run(tmp_path, "up", "flink", "kafka", *ports, "--task-managers=2", "--slots=1")
        assert f"--runner flink --flink_master 127.0.0.1:{flink} " in said
        assert f"--job_endpoint 127.0.0.1:{jobs} " in said
        assert f"Kafka is up at 127.0.0.1:{kafka};" in said
        assert all(listens(port) for port in (flink, jobs, kafka))

        assert run(tmp_path, "topic", "events", "--partitions=3") == f"kafka://127.0.0.1:{kafka}/events\n"
        assert "topic 'events' cannot be made" in run(tmp_path, "topic", "events", status=2)

        again = run(tmp_path, "up", "flink", "kafka")
        assert f"Flink runs already, at http://127.0.0.1:{flink}\n" in again
        assert f"Kafka runs already, at 127.0.0.1:{kafka}\n" in again

        names = ["job-manager", "job-server", "kafka", "task-manager-1", "task-manager-2"]
        pid = int(re.search(r"^task-manager-1 .* MB +(\d+)", run(tmp_path, "status"), re.MULTILINE)[1])
        os.kill(pid, signal.SIGKILL)
        until(lambda: birth(pid) is None)
        assert "task-manager-1 had ended, and is started anew\n" in run(tmp_path, "up", "flink")

        shown = run(tmp_path, "status")
        assert re.findall(r"^(\S+) +\d+ MB", shown, re.MULTILINE) == names
    finally:
        said = run(tmp_path, "down")
    assert sorted(said.splitlines()) == [f"{name} is stopped" for name in names]
    assert not any(listens(port) for port in (flink, jobs, kafka))
    assert run(tmp_path, "status") == f"nothing runs in {tmp_path}\n"
