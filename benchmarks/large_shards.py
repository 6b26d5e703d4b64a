"""Shards of many megabytes on real runners: python -m benchmarks.faults --large 77 160 300 1000 (megabytes).

The machine of the shard holds random bytes, so that its state is as large as is wanted in no time. Nothing of
it is kept between records: each reads the state from the runner, and puts out the checksum of what it read.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
from apache_beam.io.flink.flink_streaming_impulse_source import FlinkStreamingImpulseSource
from apache_beam.options.pipeline_options import PipelineOptions
from rocsteady.core.events.records import EndOfInput
from rocsteady.core.shard.machine import Pane
from rocsteady.runners.listening import on_this_machine
from rocsteady.runners.servers.flink import FlinkCluster, JobServer
from rocsteady.runners.servers.packages import prism_path
from rocsteady.transforms.beam.machine import RunStateMachine

from .processes import table

END = EndOfInput().pack()
_READINGS = 3
_PATIENCE = 900
_READ_SECONDS = 25e-9
"""A byte read from Flink and checked takes less: records that come faster wait, and checkpoints for them."""


class BlobMachine:
    """Its first record makes the blob, and with it a snapshot is due; the log takes later records.

    An output is [how many records came, bytes of the blob, its checksum].
    """

    def __init__(self, size: int, blob: bytes = b"", came: int = 0) -> None:
        self._size, self._blob, self._came = size, blob, came

    def apply(self, record: bytes) -> list[list[int]]:
        if record == END:
            return []
        if not self._blob:
            self._blob = np.random.default_rng(7).bytes(self._size)
        self._came += 1
        return [[self._came, len(self._blob), zlib.crc32(self._blob)]]

    def to_bytes(self) -> bytes:
        return b"".join((self._came.to_bytes(8, "little"), self._blob))

    def snapshot_bytes(self) -> int:
        return 8 + len(self._blob) if self._came > 1 else 0

    def wakes_at(self) -> None:
        return None

    def counts(self) -> dict[str, int]:
        return {}

    def gauges(self) -> dict[str, int]:
        return {}

    def live_bytes(self) -> int:
        return len(self._blob)


@dataclass(frozen=True)
class BlobFactory:
    """Makes blobs of so many bytes."""

    size: int

    def warm_up(self) -> None:
        pass

    def new(self, pane: Pane | None, key: str) -> BlobMachine:  # noqa: ARG002
        return BlobMachine(self.size)

    def load(self, snapshot: bytes, pane: Pane | None, key: str) -> BlobMachine:  # noqa: ARG002
        return BlobMachine(self.size, snapshot[8:], int.from_bytes(snapshot[:8], "little"))


def blob_of(size: int) -> list[int]:
    """Return what an output says of a blob of so many bytes: its length and its checksum."""
    return [size, zlib.crc32(np.random.default_rng(7).bytes(size))]


def run_blob(options: Sequence[str], path: Path, size: int, records: int = 0, every: float = 2) -> Any:
    """Start a job of one shard with a state of so many bytes.

    Its records are so many; of 0, one each so many seconds, by Flink's clock.
    """
    pipeline = beam.Pipeline(options=PipelineOptions([*options, "--streaming"]))
    source: beam.PTransform[Any, Any] = beam.Create([b""] * records)
    if not records:
        source = FlinkStreamingImpulseSource()
        source.config = {"interval_ms": round(1_000 * every), "message_count": 0}
    sent = pipeline | source | beam.Map(_record).with_output_types(tuple[str, bytes])
    outputs = (sent | RunStateMachine(BlobFactory(size), list[int], 0)).outputs
    outputs | beam.Map(_written, str(path))
    with on_this_machine():  # where the worker listens
        return pipeline.run()


def _record(_: bytes) -> tuple[str, bytes]:
    return "blob", b"a record"


def _written(output: list[int], path: str) -> None:
    with Path(path).open("a") as lines:
        lines.write(f"{json.dumps(output)}\n")


def outputs_in(path: Path) -> list[list[int]]:
    """Return what the machine put out, in the order in which it was written."""
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def flink_options(jobs: JobServer) -> list[str]:
    """Return Beam's options for such a job behind a job server."""
    return [
        "--runner=PortableRunner", f"--job_endpoint={jobs.address}", "--parallelism=1",
        "--checkpointing_interval=2000", "--max_bundle_time_mills=100", "--environment_type=LOOPBACK",
        "--finish_bundle_before_checkpointing",
    ]  # fmt: skip


class PeakMemory(threading.Thread):
    """The most that this process, which is the Python worker, and its largest child have had, while in it."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._ended = threading.Event()
        self.worker = self.runner = 0

    def __enter__(self) -> PeakMemory:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.join()

    def run(self) -> None:
        while not self._ended.wait(0.2):
            asked = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,rss="], capture_output=True, check=True)
            for line in asked.stdout.splitlines():
                pid, parent, kilobytes = map(int, line.split())
                if pid == os.getpid():
                    self.worker = max(self.worker, kilobytes << 10)
                elif parent == os.getpid():
                    self.runner = max(self.runner, kilobytes << 10)

    def cells(self) -> list[str]:
        """Return both in MB."""
        return [f"{taken / 1e6:,.0f}" for taken in (self.runner, self.worker)]


def report(megabytes: Sequence[int], runners: Sequence[str]) -> str:
    """Return a table: what became of shards of these sizes on these of Flink and Prism."""
    ways = {"flink": _on_flink, "prism": _on_prism}
    head = [
        "runner", "state of the shard, MB", "first output, s", f"{_READINGS} more, s",
        "longest checkpoint, s", "peak memory of TaskManager or Prism, MB", "of the Python worker, MB",
        "equal",
    ]  # fmt: skip
    lines = []
    for runner in runners:
        for size in megabytes:
            with tempfile.TemporaryDirectory(prefix="rocsteady-large-") as name, PeakMemory() as peak:
                path = Path(name) / "outputs"
                first, read, checkpoint = ways[runner](Path(name), path, size * 1_000_000)
                equal = _equal(path, size)
            times = [f"{first:.0f}", f"{read:.0f}", checkpoint]
            lines.append([runner.capitalize(), f"{size:,}", *times, *peak.cells(), equal])
            print(" | ".join(lines[-1]), flush=True)
    return table(head, lines)


def _on_flink(folder: Path, path: Path, size: int) -> tuple[float, float, str]:
    from .cluster_jobs import wait_until  # needs Kafka's client, and the machine above does not

    heap = {"taskmanager.memory.task.heap.size": f"{384 + size // 1_000_000}m"}
    with FlinkCluster(folder, settings=heap) as cluster, JobServer(folder, cluster.address) as jobs:
        began = time.monotonic()
        run_blob(flink_options(jobs), path, size, every=max(2, size * _READ_SECONDS))
        wait_until(lambda: outputs_in(path), "an output comes", _PATIENCE)
        first = time.monotonic()
        wait_until(partial(_has_read, path), "outputs come", _PATIENCE)
        read, job = time.monotonic(), cluster.jobs()[0].identity

        def checkpoints() -> dict[str, Any]:
            found: dict[str, Any] = cluster.rest(f"/jobs/{job}/checkpoints")
            return found

        seen = checkpoints()["counts"]["completed"]
        wait_until(lambda: checkpoints()["counts"]["completed"] > seen, "a checkpoint", _PATIENCE)
        history = checkpoints()["history"]
        longest = max(each["end_to_end_duration"] for each in history if each["status"] == "COMPLETED")
        # A cancelled job crashes its TaskManager where Beam reads on in a RocksDB that Flink has closed.
        cluster.savepoint(job, stop=True, patience=_PATIENCE)
    return first - began, read - first, f"{longest / 1_000:.1f}"


def _on_prism(_: Path, path: Path, size: int) -> tuple[float, float, str]:
    options = ["--runner=PrismRunner", f"--prism_location={prism_path()}", "--environment_type=LOOPBACK"]
    began = time.monotonic()
    job = run_blob(options, path, size, _READINGS + 1)
    while not outputs_in(path):
        time.sleep(0.1)
        if job.state in ("FAILED", "CANCELLED"):
            break
    first = time.monotonic()
    job.wait_until_finish()
    return first - began, time.monotonic() - first, ""


def _has_read(path: Path) -> bool:
    return len(outputs_in(path)) > _READINGS


def _equal(path: Path, size: int) -> str:
    wanted = blob_of(size * 1_000_000)
    found = outputs_in(path)
    good = found == [[number, *wanted] for number in range(1, len(found) + 1)] and len(found) > _READINGS
    return "yes" if good else "**no**"
