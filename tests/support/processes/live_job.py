"""A live job in a process of its own: tests send lines and signals to the job, and read its rows."""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from contextlib import contextmanager

from tests.support.processes.command import COMMAND, said

PATIENCE = 120.0
"""Seconds until a row or an end that does not come is given up: for what hangs, not for what is slow.

That a row comes is to the line alone that makes it due: no other line is sent until it is there.
"""


class Job:
    """A live job in a process of its own."""

    def __init__(self, *options, output="-"):
        self.process = subprocess.Popen(
            [*COMMAND, "evaluate", *options, "--output", output],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
        )  # fmt: skip
        self._out = b""

    def send(self, data):
        self.process.stdin.write(data)

    def row(self, within=PATIENCE):
        """The next row on stdout; None where it does not come in time."""
        deadline = time.monotonic() + within
        while b"\n" not in self._out:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                return None
            self._out += os.read(self.process.stdout.fileno(), 1 << 16)
        line, _, self._out = self._out.partition(b"\n")
        return json.loads(line)

    def end(self):
        """Wait for the end; return the status, the rows that were not read, and the lines on stderr."""
        out, err = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, (self._out + out).splitlines(), said(err.decode())


@contextmanager
def job(*options, output="-"):
    running = Job(*options, output=output)
    try:
        yield running
    finally:
        running.process.kill()
        running.process.wait()
        for stream in (running.process.stdin, running.process.stdout, running.process.stderr):
            if stream is not None:
                stream.close()


def wait_for(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
