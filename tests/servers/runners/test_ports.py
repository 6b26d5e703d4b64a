"""No server that we start can be reached from another machine: sockets of all processes, while they work."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time

import pytest
from rocsteady.runners.servers.flink import FlinkCluster, JobServer

from tests.support.processes.command import COMMAND
from tests.support.requirements import servers
from tests.support.servers.secure_broker import SecureBroker
from tests.support.servers.sockets import listening

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sockets are read from /proc")

RUNNERS = {
    "prism": ("prism", ["--runner=prism"]),
    "a job server with a Flink of its own": ("flink", ["--runner=flink", "--flink_version=1.19"]),
    "worker processes": ("", ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]),
}


def seen_while(done, *pids):
    """Every socket that is seen until `done`."""
    seen = set()
    while not done():
        seen |= listening(*pids)
        time.sleep(0.05)  # leaves the job some of the processor
    return seen


def open_ones(seen):
    return {(found.host, found.port) for found in seen if found.is_open}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if server else [pytest.mark.slow]) for name, (server, _) in RUNNERS.items()],
)  # in a plain run test_listening.py looks at the addresses that are asked for
def test_a_job_listens_on_this_machine_alone(tmp_path, name):
    server, flags = RUNNERS[name]
    if server:
        servers(server)
    events = tmp_path / "events.jsonl"
    events.write_text("".join(json.dumps({"score": i % 7 / 7, "label": i % 2}) + "\n" for i in range(200)))
    words = ["evaluate", str(events), "--output", str(tmp_path / "rows.csv"), *flags]
    with subprocess.Popen([*COMMAND, *words], stderr=subprocess.PIPE, text=True) as job:
        said: list[str] = []
        reading = threading.Thread(target=lambda: said.extend(job.stderr))
        reading.start()
        seen = seen_while(lambda: job.poll() is not None, job.pid)
        reading.join()
    assert job.returncode == 0, "".join(said)
    assert seen, "it was looked in vain"
    assert not open_ones(seen)


def test_servers_of_up_listen_on_this_machine_alone(tmp_path):
    servers("flink", "kafka")
    with (
        SecureBroker(tmp_path / "kafka") as broker,
        FlinkCluster(tmp_path / "flink") as cluster,
        JobServer(tmp_path / "flink", cluster.address) as jobs,
    ):
        pids = [server.pid for server in (broker, cluster.job_manager, *cluster.task_managers, jobs)]
        seen = listening(*pids)
    assert {found.pid for found in seen} >= set(pids), "each of them listens somewhere"
    assert not open_ones(seen)
