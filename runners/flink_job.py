"""Watches a job on a Flink cluster while its launcher waits for the job, and cancels the job on request.

Beam's own `PipelineResult.cancel` only interrupts the job server's thread that waits for the job. The cluster
does not hear of it, and the job goes on. So this module asks the cluster's REST interface to cancel the job.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from apache_beam.options.pipeline_options import FlinkRunnerOptions, GoogleCloudOptions, PortableOptions

from .presets import CLUSTER_SECONDS, NO_ANSWER, Runner, ask_cluster, cluster_host, cluster_url
from .servers.processes import polls

CANCEL_SECONDS = 30.0
"""The most seconds that a job may take to be cancelled."""

_ENDED = ("CANCELED", "FAILED", "FINISHED")
_WATCH_SECONDS = 2.0


class JobWatch:
    """A context in which a thread reports the job that the cluster runs, the job's page, and each new state.

    say  a function that takes each report, a sentence. There are no reports for a job without a cluster.
    """

    def __init__(self, runner: Runner, say: Callable[[str], None]) -> None:
        self._master, self._name = _place_of(runner)
        self._say = say
        self._ended = threading.Event()
        self._is_watched = runner.kind == "flink" and cluster_host(self._master) is not None

    def __enter__(self) -> JobWatch:
        if self._is_watched:
            threading.Thread(target=self._watch, name="job watch", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()

    def _watch(self) -> None:
        identity = state = ""
        while not self._ended.wait(_WATCH_SECONDS):
            try:
                newest = _newest(self._master, self._name)
                now = str(newest["jid"]), str(newest["state"])
            except NO_ANSWER:
                continue  # the cluster may answer again, or have the job, in a moment
            if self._ended.is_set():
                return
            if now[0] != identity:
                page = f"{cluster_url(self._master)}/#/job/running/{now[0]}/overview"
                self._say(f"the job {self._name} is {now[0]} on the cluster; its page: {page}")
            if now[1] not in (state, *_ENDED):  # the launcher reports how the job ended
                self._say(f"the job {self._name}: {now[1]}")
            identity, state = now


def _place_of(runner: Runner) -> tuple[str, str]:
    """Return the address of a job's cluster, as the options give it, and the name of the job."""
    master = runner.options.view_as(FlinkRunnerOptions).flink_master.strip()
    return master, str(runner.options.view_as(GoogleCloudOptions).job_name)


def _named(master: str, name: str) -> list[dict[str, Any]]:
    """Return the jobs with a name that a cluster knows. Raises one of the errors in NO_ANSWER."""
    return [job for job in ask_cluster(master, "/jobs/overview")["jobs"] if job["name"] == name]


def _newest(master: str, name: str) -> dict[str, Any]:
    """Return the newest job with a name.

    Raises one of the errors in NO_ANSWER, ValueError if there is no job.
    """
    return max(_named(master, name), key=lambda job: int(job["start-time"]))


def restarted(runner: Runner) -> str:
    """Return when a cluster last restarted a job after a failure (RFC 3339); "" for never or unknown."""
    master, name = _place_of(runner)
    if runner.kind != "flink" or cluster_host(master) is None:
        return ""
    try:
        job = _newest(master, name)["jid"]
        last = int(ask_cluster(master, f"/jobs/{job}")["timestamps"]["RESTARTING"])
    except NO_ANSWER:
        return ""
    return f"{datetime.fromtimestamp(last / 1_000, UTC):%Y-%m-%dT%H:%M:%SZ}" if last > 0 else ""


def leave(runner: Runner) -> str | None:
    """Cancel a job, or leave it running, when its launcher ends; return a sentence about the job.

    A job whose Python code runs in this process (LOOPBACK) is cancelled: it would fail without this process.
    Any other job on a cluster goes on. Returns None for a job that ends with this process in any case.
    """
    master, name = _place_of(runner)
    portable = runner.options.view_as(PortableOptions)
    is_ours = portable.environment_type == "LOOPBACK"
    if cluster_host(master) is None:
        if not portable.job_endpoint:
            return None
        where = f"the cluster of the job server {portable.job_endpoint}"
        if not is_ours:
            return f"the job {name} goes on, on {where}"
        return (
            f"the job {name} had its Python in this process, and fails on {where}; cancel it there. With "
            "--flink_master HOST:PORT (its REST port) it would have been cancelled"
        )
    try:
        return _left(master, name, cancels=is_ours)
    except NO_ANSWER as error:
        return f"the cluster at {cluster_url(master)} does not say what became of the job {name}: {error}"


def cancel(runner: Runner) -> str | None:
    """Cancel a job on its cluster; return a sentence about the job, or None if there is no cluster to ask."""
    master, name = _place_of(runner)
    if runner.kind != "flink" or cluster_host(master) is None:
        return None
    try:
        return _left(master, name, cancels=True)
    except NO_ANSWER as error:
        return f"the cluster at {cluster_url(master)} does not say what became of the job {name}: {error}"


def _left(master: str, name: str, *, cancels: bool) -> str | None:
    for _ in polls(CLUSTER_SECONDS):  # a submitted job appears on the cluster after a moment
        if there := _named(master, name):
            break
    jobs = [str(job["jid"]) for job in there if job["state"] not in _ENDED]
    if not jobs:
        return None
    job = f"the job {name} on the cluster at {cluster_url(master)}"
    way = f"curl -X PATCH '{cluster_url(master)}/jobs/{jobs[0]}?mode=cancel'"
    if not cancels:
        return f"{job} goes on; to cancel it: {way}"
    if len(jobs) > 1:
        return f"{job} fails, for its Python ran in this process; {len(jobs)} have that name: cancel it there"
    ask_cluster(master, f"/jobs/{jobs[0]}?mode=cancel", "PATCH")
    if any(ask_cluster(master, f"/jobs/{jobs[0]}")["state"] in _ENDED for _ in polls(CANCEL_SECONDS)):
        return f"{job} is cancelled, for its Python ran in this process"
    return f"{job} was told to cancel, and is not after {CANCEL_SECONDS:.0f} s; once more: {way}"
