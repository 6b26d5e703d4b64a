"""Shards whose state no message carries, on a real Flink cluster; and a state that was written whole."""

from __future__ import annotations

import pytest
from rocsteady.core.shard import parts as snapshot_parts
from rocsteady.core.shard.parts import PARTS
from rocsteady.runners.servers.flink import JobServer
from rocsteady.transforms.beam import cells as numbered_cells
from rocsteady.transforms.beam import machine as stateful_machine

from benchmarks.large_shards import blob_of, flink_options, outputs_in, run_blob
from tests.support.processes.launchers import LEAVES_THREADS_AND_CHANNELS
from tests.support.servers.kafka_topics import until

pytestmark = LEAVES_THREADS_AND_CHANNELS


@pytest.fixture(scope="module")
def options(cluster):
    with JobServer(cluster.folder, cluster.address) as started:
        yield flink_options(started)


def checkpoints(cluster):
    job = cluster.jobs()[0].identity
    return cluster.rest(f"/jobs/{job}/checkpoints")["counts"]["completed"]


def cancel(cluster):
    job = cluster.jobs()[0].identity
    cluster.cancel(job)
    until(lambda: cluster.jobs()[0].state == "CANCELED")


def stop(cluster):
    """Stop the job between two bundles; a job cancelled in a long read crashes its TaskManager."""
    cluster.savepoint(cluster.jobs()[0].identity, stop=True, patience=180)
    until(lambda: cluster.jobs()[0].state == "FINISHED")


def test_a_shard_of_160_megabytes_is_written_checkpointed_and_read_again(cluster, options, tmp_path):
    """Every bundle rebuilds it: in one value it hung the job for good, without a word."""
    size, path = 160_000_000, tmp_path / "outputs"
    run_blob(options, path, size, every=4)
    until(lambda: len(outputs_in(path)) > 2, 180)
    seen = checkpoints(cluster)
    until(lambda: checkpoints(cluster) > seen, 180)
    stop(cluster)
    found = outputs_in(path)
    assert found == [[number, *blob_of(size)] for number in range(1, len(found) + 1)]


def test_a_savepoint_of_a_whole_snapshot_goes_on_in_parts(cluster, options, tmp_path, monkeypatch):
    size, path = 10_000_000, tmp_path / "outputs"
    with monkeypatch.context() as before:
        before.setattr(numbered_cells.NumberedCellsDeclared, "_inspect_numbered_cells", lambda _: ([], []))
        before.setattr(stateful_machine, "numbered_cells", lambda _: None)
        run_blob(options, path, size)
        until(lambda: len(outputs_in(path)) > 2)
        until(lambda: checkpoints(cluster) > 0)
        savepoint = cluster.savepoint(cluster.jobs()[0].identity, stop=True)
        until(lambda: cluster.jobs()[0].state == "FINISHED")
    whole = outputs_in(path)
    split = []
    monkeypatch.setattr(
        "rocsteady.core.shard.protocol.split", lambda data: split.append(data) or snapshot_parts.split(data)
    )
    run_blob([*options, f"--savepoint_path={savepoint}"], path, size)
    until(lambda: len(outputs_in(path)) > len(whole) + 2)
    cancel(cluster)
    found = outputs_in(path)
    assert found == [[number, *blob_of(size)] for number in range(1, len(found) + 1)], "nothing began anew"


def test_a_shard_that_cannot_be_carried_fails_the_job_in_a_sentence(cluster, options, tmp_path, monkeypatch):
    monkeypatch.setattr(numbered_cells, "LARGEST_MESSAGE", 5_000_000)
    monkeypatch.setattr(snapshot_parts, "PART_BYTES", 1_000_000)
    run_blob(options, tmp_path / "outputs", 5_000_000 * PARTS)
    until(lambda: _failing(cluster), 90)
    words = cluster.rest(f"/jobs/{cluster.jobs()[0].identity}/exceptions")["root-exception"]
    assert "shard 'blob' takes 160,000,008 bytes, and this runner carries 160,000,000 of a shard" in words
    assert "more shards" in words
    cancel(cluster)


def _failing(cluster):
    job = cluster.jobs()[0].identity
    return cluster.rest(f"/jobs/{job}/exceptions").get("root-exception")
