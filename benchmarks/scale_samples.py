"""What a job on a cluster does and takes, looked at once a second: events, memory, processor time."""

from __future__ import annotations

import contextlib
import threading
import time
import urllib.parse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rocsteady.runners.servers.processes import ServerError, memory

from .cluster_jobs import ClusterJob, Stage
from .processes import processor_time

_SECONDS = 1.0


@dataclass(frozen=True)
class Sample:
    """A look at a job.

    at              seconds, monotonic
    events          offsets of all partitions: events that were read; 0 = the cluster did not say
    python, java    bytes of resident memory of the workers, and of the TaskManagers
    python_seconds, java_seconds
                    of processor time since the first look, those of ended processes too
    """

    at: float
    events: int
    python: int
    java: int
    python_seconds: float
    java_seconds: float


@dataclass(frozen=True)
class Pace:
    """What went on between two looks: events a second, and seconds of a processor for a million events.

    All are 0 where no event was read between them.
    """

    events: int
    seconds: float
    python: float
    java: float

    @classmethod
    def between(cls, first: Sample, last: Sample) -> Pace:
        events = last.events - first.events
        if not events:
            return cls(0, 0.0, 0.0, 0.0)
        millions = events / 1e6
        return cls(
            events,
            last.at - first.at,
            (last.python_seconds - first.python_seconds) / millions,
            (last.java_seconds - first.java_seconds) / millions,
        )

    @property
    def rate(self) -> float:
        return self.events / self.seconds if self.events else 0.0


class Samples:
    """Looks at a job from a thread, while in it."""

    def __init__(self, stage: Stage, job: ClusterJob, partitions: int) -> None:
        self._stage, self._job = stage, job
        self._names = [f"rocsteady_offset_events[{number}]" for number in range(partitions)]
        self._metrics: tuple[str, list[str]] | None = None
        self._of_process: dict[str, dict[int, float]] = {"python": {}, "java": {}}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.taken: list[Sample] = []

    def __enter__(self) -> Samples:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    @property
    def events(self) -> int:
        """How many events were read, by the newest look at which the cluster said it."""
        return next((sample.events for sample in reversed(self.taken) if sample.events), 0)

    def said(self, since: float = 0.0) -> list[Sample]:
        """Return the looks from a moment on at which the cluster said how many events were read."""
        return [sample for sample in self.taken if sample.events and sample.at >= since]

    def peak(self) -> tuple[int, int]:
        """Return the most bytes that the workers, and the TaskManagers, had."""
        return max(each.python for each in self.taken), max(each.java for each in self.taken)

    def _run(self) -> None:
        while not self._stopped.wait(_SECONDS):
            workers = self._stage.workers()
            managers = [each.pid for each in self._stage.cluster.task_managers if each.running]
            events = 0
            with contextlib.suppress(ServerError, LookupError, ValueError):
                events = self._offsets()
            self.taken.append(
                Sample(
                    time.monotonic(), events, sum(map(memory, workers)), sum(map(memory, managers)),
                    self._seconds("python", workers), self._seconds("java", managers),
                )
            )  # fmt: skip

    def _seconds(self, kind: str, processes: Sequence[int]) -> float:
        known = self._of_process[kind]
        known.update((pid, max(processor_time(pid), known.get(pid, 0.0))) for pid in processes)
        return sum(known.values())

    def _offsets(self) -> int:
        """Return the sum of the readers' offsets. Raises LookupError while a partition has none."""
        rest, place = self._stage.cluster.rest, f"/jobs/{self._job.identity}"
        if self._metrics is None:
            for vertex in rest(place)["vertices"]:
                listed: list[Any] = rest(f"{place}/vertices/{vertex['id']}/subtasks/metrics")
                found = [each["id"] for each in listed if each["id"].endswith(tuple(self._names))]
                if len(found) == len(self._names):
                    self._metrics = vertex["id"], found
        if self._metrics is None:
            raise LookupError("no reader has told its offset")
        vertex, names = self._metrics
        asked = urllib.parse.quote(",".join(names))
        offsets = rest(f"{place}/vertices/{vertex}/subtasks/metrics?get={asked}")
        if len(offsets) < len(names):
            raise LookupError("a reader has not told its offset")
        return sum(int(each["max"]) for each in offsets)
