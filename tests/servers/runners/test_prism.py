"""Prism as it was compiled runs a stateful job, and gives a key to one bundle at a time."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.metrics import MetricsFilter
from apache_beam.options.pipeline_options import PipelineOptions
from rocsteady import read_rows
from rocsteady.runners.servers.packages import prism_path
from rocsteady.runners.servers.processes import birth
from rocsteady.transforms.beam.machine import RunStateMachine

from tests.support.invariants.hash_chain import ChainFactory, events
from tests.support.processes.command import run, start
from tests.support.requirements import servers
from tests.support.servers.counting_job import SUMS, sum_pairs
from tests.support.servers.kafka_topics import PATIENCE, interrupted, until
from tests.support.servers.sockets import family_of

SLOW_SECONDS, RECORDS = 0.3, 12
"""Prism splits bundles in which nothing is done within 0.1 s."""


def _options():
    return ["--runner=PrismRunner", f"--prism_location={prism_path()}", "--environment_type=LOOPBACK"]


def test_prism_runs_a_stateful_job(tmp_path):
    servers("prism")
    assert sum_pairs(_options(), tmp_path / "sums") == SUMS


def _dawdle(place):
    if place == "before apply":
        time.sleep(SLOW_SECONDS)


def test_no_record_of_a_slow_bundle_is_lost(tmp_path):
    servers("prism")
    records = [("one", events(number)) for number in range(RECORDS)]
    with beam.Pipeline(options=PipelineOptions(_options())) as pipeline:
        given = pipeline | beam.Create(records) | beam.Reshuffle()
        rows = given | RunStateMachine(ChainFactory(every=1, at=_dawdle), Any)
        _ = rows.outputs | beam.Map(lambda row: str(row.seq)) | beam.io.WriteToText(str(tmp_path / "seen"))
    seen = [int(line) for path in tmp_path.glob("seen*") for line in path.read_text().split()]
    assert sorted(seen) == list(range(1, RECORDS + 1))


def test_prism_gives_the_size_of_each_shard():
    servers("prism")
    records = [(f"shard-{number % 3:03d}", events(number)) for number in range(RECORDS)]
    pipeline = beam.Pipeline(options=PipelineOptions(_options()))
    _ = pipeline | beam.Create(records) | RunStateMachine(ChainFactory(every=1), Any)
    result = pipeline.run()
    result.wait_until_finish()
    gauges = result.metrics().query(MetricsFilter().with_namespace("rocsteady"))["gauges"]
    sizes = {gauge.key.metric.name: gauge.result for gauge in gauges}
    assert sizes.keys() == {f"state_bytes {key}" for key, _ in records}


OPTIONS = "--time=time", "--window=last:100", "--every=10"


def follow(folder):
    """Start a job on Prism that reads a folder of a thousand events for ever; wait until it wrote rows."""
    (folder / "in").mkdir(exist_ok=True)
    (folder / "in" / "a.jsonl").write_text(
        "".join(f'{{"time": {i}, "score": 0.{i % 7}, "label": {i % 2}}}\n' for i in range(1_000))
    )
    rows = folder / "rows"
    before = {*rows.glob("part-*")}
    job = start("evaluate", folder / "in", "--follow", *OPTIONS, "--runner=prism", f"--output={rows}/")
    until(lambda: {*rows.glob("part-*")} - before)
    return job


def kill_prism(job):
    """Kill all that a job started: Prism, and nothing of the job itself."""
    for pid in set(family_of(job.pid)) - {job.pid}:
        os.kill(pid, signal.SIGKILL)


def test_a_prism_that_is_killed_ends_its_job_in_a_sentence(tmp_path):
    servers("prism")
    job = follow(tmp_path)
    kill_prism(job)
    _, said = job.communicate(timeout=PATIENCE)
    assert job.returncode == 1
    assert said.splitlines()[-1] == (
        "rocsteady: the server of the job does not answer any more (its process may have ended); "
        "its state is lost: start the job again"
    )
    assert "Traceback" not in said


@pytest.mark.gate
def test_a_job_that_starts_again_after_its_prism_was_killed_has_the_rows_of_the_local_runner(tmp_path):
    """Rows that both jobs wrote are equal, so a reader of the folder has each row once."""
    servers("prism")
    job = follow(tmp_path)
    kill_prism(job)
    job.communicate(timeout=PATIENCE)
    assert job.returncode == 1
    job = follow(tmp_path)
    (tmp_path / "in" / "_END").touch()
    _, said = job.communicate(timeout=PATIENCE)
    assert job.returncode == 0, said
    local = tmp_path / "local.jsonl"
    ran = run("evaluate", tmp_path / "in" / "a.jsonl", "--order=time:0s", *OPTIONS, f"--output={local}")
    assert ran.status == 0, ran
    rows, expected = (
        sorted(read_rows(place), key=lambda row: row.row) for place in (f"{tmp_path}/rows/", local)
    )
    assert len(expected) == 100
    assert rows == expected


def test_ctrl_c_twice_ends_a_job_at_once_without_a_traceback(tmp_path):
    servers("prism")
    job = follow(tmp_path)
    started = family_of(job.pid)
    job.send_signal(signal.SIGINT)
    said = interrupted(job)
    assert job.returncode == 128 + signal.SIGINT
    assert "Traceback" not in said
    assert "Rendezvous" not in said
    until(lambda: not any(birth(pid) for pid in started))
