"""A live job in this process that is killed at a chosen read: what it did by then is done, and no more.

Nothing is flushed, finished or said at a kill: the error is none that the job handles.
"""

from __future__ import annotations

import os
from dataclasses import replace

from rocsteady.pipelines.cli import parse
from rocsteady.pipelines.evaluate.command import _planned
from rocsteady.pipelines.evaluate.live.run import evaluate_live


class Killed(BaseException):
    """The end of a process by SIGKILL."""


class Breaking:
    """A partition that gives few records a read, and whose read number `at`, from 0, kills the job."""

    def __init__(self, partition, few, at=None):
        self.partition, self.few, self.at = partition, few, at
        self.reads = 0

    def __getattr__(self, name):
        return getattr(self.partition, name)

    def fetch(self, offset, limit, wait, place=""):
        if self.reads == self.at:
            raise Killed
        self.reads += 1
        return self.partition.fetch(offset, min(limit, self.few), 0.0 if self.few else wait, place)


def run_live(options, few, kill_at=None):
    """Run `evaluate` with options in this process; return (status, reads); status None: it was killed."""
    _, parsed, rest = parse(["evaluate", *map(str, options)])
    job = _planned(parsed, rest)
    inputs = [
        replace(source, partition=Breaking(source.partition, few, kill_at)) for source in job.streams.inputs
    ]
    streams = replace(job.streams, inputs=inputs)
    job = replace(job, streams=streams)
    try:
        status = evaluate_live(job, streams)
    except Killed:
        status = None
        for source in inputs:
            source.partition.close()
    return status, max(source.partition.reads for source in inputs)


def pipe_with(data):
    """Return the reading end of a pipe whose writer has sent a few KB of data, and closed."""
    receive, send = os.pipe()
    assert os.write(send, data) == len(data)
    os.close(send)
    return receive
