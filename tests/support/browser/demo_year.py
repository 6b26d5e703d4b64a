"""The live demo in a process of its own: some departures at a speed, on a port, until it is ended."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time

from rocsteady.core.kernels.cache_folder import CACHE_FOLDER

PATIENCE = 300.0

_PROGRAM = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
if __name__ == "__main__":
    from rocsteady.pipelines.demo.live import run_live
    from rocsteady.pipelines.stopping import Interruptible
    folder, port, anew, first, speed = sys.argv[1:]
    how = {"anew": anew == "anew", "first": int(first) or None, "speed": float(speed)}
    with Interruptible(ends_process=True):
        sys.exit(run_live(folder, f":{port}", **how))
"""

A_DAY = 86_400.0
OVER = "the year is over"


class Year:
    """A demo that plays, and what it says on stderr."""

    def __init__(self, folder, *, port=0, first=0, speed=A_DAY, anew=False):
        words = [str(folder), str(port), "anew" if anew else "on", str(first), str(speed)]
        kernels = {} if CACHE_FOLDER is None else {"ROCSTEADY_CACHE_DIR": str(CACHE_FOLDER.parent)}
        self.process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, *words],
            stderr=subprocess.PIPE, text=True, env={**os.environ, **kernels},
        )  # fmt: skip
        self.said = []
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self._reading.join()
        self.process.stderr.close()

    def _read(self):
        for line in self.process.stderr:
            self.said.append(line.rstrip("\n"))

    def wait(self, holds, what):
        """Wait until something holds, while the process runs."""
        until = time.monotonic() + PATIENCE
        while not holds():
            assert self.process.poll() is None, self.said
            assert time.monotonic() < until, (what, self.said)
            time.sleep(0.02)

    def hears(self, words):
        """Wait until a line with these words is said; return it."""
        self.wait(lambda: any(words in line for line in self.said), words)
        return next(line for line in self.said if words in line)

    @property
    def address(self):
        return re.search(r"http://\S+", self.hears("in a browser"))[0]

    def ends(self):
        """Wait for the end; return the status and what was said."""
        status = self.process.wait(PATIENCE)
        self._reading.join()
        return status, self.said


def lines_of(path):
    """How many whole lines a file has; 0 without the file."""
    return path.read_bytes().count(b"\n") if path.exists() else 0
