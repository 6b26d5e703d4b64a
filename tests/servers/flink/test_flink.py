"""A real Flink cluster: jobs with three kinds of Python workers, processes killed, savepoints, refusals."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from rocsteady.runners.servers.flink import FlinkCluster, JobServer, WorkerPool, worker_options
from rocsteady.runners.servers.processes import ServerError

from tests.support.processes.launchers import LEAVES_THREADS_AND_CHANNELS
from tests.support.requirements import servers
from tests.support.servers.counting_job import SUMS, count_ticks, sum_pairs, sums
from tests.support.servers.kafka_topics import until

CHECKPOINTS = [
    "--checkpointing_interval=1000", "--parallelism=1", "--max_bundle_time_mills=100",
    "--finish_bundle_before_checkpointing",
]  # fmt: skip

pytestmark = LEAVES_THREADS_AND_CHANNELS


@pytest.fixture(scope="module")
def endpoint(cluster):
    with JobServer(cluster.folder, cluster.address) as started:
        yield ["--runner=PortableRunner", f"--job_endpoint={started.address}", "--parallelism=1"]


def state_of(cluster, job):
    return next(found.state for found in cluster.jobs() if found.identity == job)


def test_beam_starts_its_own_job_server_and_runs_the_workers_here(cluster, tmp_path):
    options = ["--runner=FlinkRunner", *cluster.options(), "--parallelism=1"]
    assert sum_pairs(options, tmp_path / "sums") == SUMS
    assert cluster.jobs()[0].state == "FINISHED"


def test_task_managers_start_the_workers_themselves(cluster, endpoint, tmp_path):
    assert sum_pairs([*endpoint, *worker_options(tmp_path)], tmp_path / "sums") == SUMS


def children(process):
    threads = Path(f"/proc/{process.pid}/task").glob("*/children")
    return {child for thread in threads for child in thread.read_text().split()}


def test_each_step_of_a_job_may_have_a_python_process_of_its_own(cluster, endpoint, tmp_path):
    path, manager = tmp_path / "sums", cluster.task_managers[-1]
    before = children(manager)
    count_ticks([*endpoint, *worker_options(tmp_path), "--sdk_worker_parallelism=2"], path)
    until(lambda: sums(path))
    assert len(children(manager) - before) == 2
    job = cluster.jobs()[0].identity
    cluster.cancel(job)
    until(lambda: state_of(cluster, job) == "CANCELED")


def test_a_pool_starts_the_workers(endpoint, tmp_path):
    with WorkerPool(tmp_path) as pool:
        options = [*endpoint, "--environment_type=EXTERNAL", f"--environment_config={pool.address}"]
        assert sum_pairs(options, tmp_path / "sums") == SUMS
    assert not pool.running


def test_state_outlives_a_task_manager_and_goes_through_a_savepoint(cluster, endpoint, tmp_path):
    path = tmp_path / "sums"
    options = [*endpoint, *CHECKPOINTS, *worker_options(tmp_path)]
    count_ticks(options, path)
    until(lambda: sums(path))
    job = cluster.jobs()[0].identity
    until(lambda: cluster.rest(f"/jobs/{job}/checkpoints")["counts"]["completed"] > 0)

    killed = cluster.task_managers[-1]
    killed.kill()
    before = sums(path)["tick"][-1]
    cluster.add_task_manager()
    until(lambda: sums(path)["tick"][-1] > before + 20)
    totals = sums(path)["tick"]
    assert set(totals) == set(range(1, max(totals) + 1)), "each is one more than an earlier one"
    assert totals.count(1) == 1, "it went on from a checkpoint, not from anew"

    savepoint = cluster.savepoint(job, stop=True)
    assert str(cluster.savepoints) in savepoint
    until(lambda: state_of(cluster, job) == "FINISHED")
    totals = sums(path)["tick"]
    count_ticks([*options, f"--savepoint_path={savepoint}"], path)
    until(lambda: len(sums(path)["tick"]) > len(totals) + 20)
    resumed = sums(path)["tick"][len(totals) :]
    assert resumed == list(range(totals[-1] + 1, resumed[-1] + 1)), "nothing lost, nothing repeated"
    cluster.cancel(cluster.jobs()[0].identity)


def test_a_job_manager_comes_back_without_its_jobs_and_their_checkpoints_stay(cluster, endpoint, tmp_path):
    path = tmp_path / "sums"
    options = [*endpoint, *CHECKPOINTS, *worker_options(tmp_path)]
    count_ticks(options, path)
    until(lambda: len(sums(path).get("tick", ())) > 20)  # so that a checkpoint has a sum
    began = time.time()
    until(lambda: cluster.newest_checkpoints(began))
    cluster.job_manager.kill()
    with pytest.raises(ServerError, match="does not answer"):
        cluster.jobs()
    (newest,) = cluster.newest_checkpoints(began)
    assert cluster.newest_checkpoints(time.time()) == []
    cluster.job_manager.start()
    cluster.wait_for_slots(2)
    assert cluster.jobs() == []
    resumed = tmp_path / "resumed"  # the worker of the first job may still write to the first file
    count_ticks([*options, f"--savepoint_path={newest}"], resumed)
    until(lambda: sums(resumed))
    assert sums(resumed)["tick"][0] > 1, "it went on from the checkpoint"
    cluster.cancel(cluster.jobs()[0].identity)


def test_what_java_says_of_its_own_crash_is_in_the_folder_of_the_server(cluster, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    crashed = cluster.add_task_manager()
    pid = crashed.pid
    os.kill(pid, signal.SIGSEGV)
    until(lambda: not crashed.running)
    assert "SIGSEGV" in (cluster.folder / f"hs_err_pid{pid}.log").read_text()
    assert not list(tmp_path.iterdir())
    cluster.wait_for_slots(2)


def test_flink_refuses_in_its_own_words(cluster):
    with pytest.raises(ServerError, match=r"refuses /jobs/0{32}.*not.*found"):
        cluster.rest(f"/jobs/{'0' * 32}")
    with pytest.raises(ServerError, match="has 2 slots after 1 s, not 7"):
        cluster.wait_for_slots(7, patience=1)


def test_all_processes_of_a_test_stay_below_three_gigabytes(cluster):
    assert 200 << 20 < cluster.memory() < 3 << 30


def test_a_cluster_that_cannot_start_says_why(tmp_path):
    servers("flink")
    cluster = FlinkCluster(tmp_path, settings={"taskmanager.numberOfTaskSlots": "many"})
    with (
        pytest.raises(
            ServerError, match=r"(?s)ended while it started; its log .*taskmanager.numberOfTaskSlots"
        ),
        cluster,
    ):
        pass
    assert not cluster.job_manager.running
