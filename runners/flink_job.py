"""A job on a Flink cluster whose launcher is told to end.

Beam's own `PipelineResult.cancel` interrupts the thread of the job server that waits for the job, and the
cluster never hears of it. So the cluster is asked.
"""

from __future__ import annotations

import time

from apache_beam.options.pipeline_options import FlinkRunnerOptions, GoogleCloudOptions, PortableOptions

from .presets import CLUSTER_SECONDS, Runner, ask_cluster, cluster_host, cluster_url

CANCEL_SECONDS = 30.0
"""That a job may take to be cancelled."""

_ENDED = ("CANCELED", "FAILED", "FINISHED")
_POLL_SECONDS = 0.2


def leave(runner: Runner) -> str | None:
    """See to the job of a launcher that ends; return what becomes of it, None where it ends with us anyway.

    It is cancelled where its Python runs in this process, without which it would only fail. Else it goes on.
    """
    master = runner.options.view_as(FlinkRunnerOptions).flink_master.strip()
    name = runner.options.view_as(GoogleCloudOptions).job_name
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
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"the cluster at {cluster_url(master)} does not say what became of the job {name}: {error}"


def _left(master: str, name: str, *, cancels: bool) -> str | None:
    jobs = _jobs(master, name)
    if not jobs:
        return None
    job = f"the job {name} on the cluster at {cluster_url(master)}"
    way = f"curl -X PATCH '{cluster_url(master)}/jobs/{jobs[0]}?mode=cancel'"
    if not cancels:
        return f"{job} goes on; to cancel it: {way}"
    if len(jobs) > 1:
        return f"{job} fails, for its Python ran in this process; {len(jobs)} have that name: cancel it there"
    ask_cluster(master, f"/jobs/{jobs[0]}?mode=cancel", "PATCH")
    if _ends(master, jobs[0]):
        return f"{job} is cancelled, for its Python ran in this process"
    return f"{job} was told to cancel, and is not after {CANCEL_SECONDS:.0f} s; once more: {way}"


def _jobs(master: str, name: str) -> list[str]:
    """Return the ids of the jobs of a name that have not ended; one that was sent may take a moment."""
    until = time.monotonic() + CLUSTER_SECONDS
    while True:
        there = [job for job in ask_cluster(master, "/jobs/overview")["jobs"] if job["name"] == name]
        if there or time.monotonic() > until:
            return [str(job["jid"]) for job in there if job["state"] not in _ENDED]
        time.sleep(_POLL_SECONDS)


def _ends(master: str, job: str) -> bool:
    """Wait until a job has ended; return whether it has."""
    until = time.monotonic() + CANCEL_SECONDS
    while ask_cluster(master, f"/jobs/{job}")["state"] not in _ENDED:
        if time.monotonic() > until:
            return False
        time.sleep(_POLL_SECONDS)
    return True
