"""A command in a terminal of its own (a pseudo-terminal, not on Windows)."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import struct
import termios
import time

from tests.support.processes.command import COMMAND

PATIENCE = 120.0


class Terminal:
    """A command whose stdin, stdout and stderr are a terminal."""

    def __init__(self, *words, lines=30, columns=140):
        self.shown = ""
        self._pid, self._terminal = pty.fork()
        if not self._pid:
            os.environ["TERM"] = "xterm-256color"
            os.execv(COMMAND[0], [*COMMAND, *words])
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self._status = None

    def until(self, text):
        """Wait until a text is shown behind what was waited for before."""
        end = time.monotonic() + PATIENCE
        while text not in self.shown:
            assert time.monotonic() < end, self.shown
            self._read()
        self.shown = self.shown.partition(text)[2]

    def press(self, keys):
        os.write(self._terminal, keys)

    def end(self):
        """Wait for the end; return the exit status, and what was shown last."""
        end = time.monotonic() + PATIENCE
        while self._read():
            assert time.monotonic() < end, self.shown
        _, status = os.waitpid(self._pid, 0)
        os.close(self._terminal)
        return os.waitstatus_to_exitcode(status), self.shown

    def is_echoing(self):
        """Whether the terminal shows what is typed."""
        return bool(termios.tcgetattr(self._terminal)[3] & termios.ECHO)

    def _read(self):
        with contextlib.suppress(OSError):  # the command has ended
            if not select.select([self._terminal], [], [], 0.1)[0]:
                return True
            if data := os.read(self._terminal, 1 << 16):
                self.shown += data.decode(errors="replace")
                return True
        return False
