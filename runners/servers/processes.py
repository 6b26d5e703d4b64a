"""Runs a server as a process of its own: starts it, waits until it answers, stops or kills it.

A server outlives the command that started it. Its folder keeps NAME.log, to which every start appends, and
NAME.json with the process's id and start time. The system reuses ids, so a process is signalled only when
both its id and its start time match. Linux and macOS.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

HOST = "127.0.0.1"
"""The address of all servers. A number, not a name: a name might resolve to another address first."""

THIS_MACHINE = ("localhost", HOST, "::1")
"""Hosts that no other machine can reach."""

_LOWEST_PORT, _LOWEST_PORT_OF_MACOS = 20_000, 49_152
_TRIES = 100

_POLL = 0.1
_TAIL_LINES = 25


class ServerError(RuntimeError):
    """Raised if a server, or one of its packages, is not available.

    The text names the cause and the remedy.
    """


@dataclass(frozen=True)
class Recorded:
    """A server's record in its folder.

    memory   in bytes; 0 if the server does not run
    started  the start time of its process, in seconds since 1970
    """

    name: str
    pid: int
    address: str
    running: bool
    memory: int
    started: float

    @property
    def port(self) -> int | None:
        """The port of the address; None for a server without a port of its own."""
        return int(self.address.rpartition(":")[2]) if self.address else None


def free_port() -> int:
    """Return a port that no socket has now, and that the system does not choose for sockets by itself.

    A server that ended can then start again at its port, because no connection that began meanwhile has the
    port.
    """
    lowest = _lowest_port_of_the_system()
    for port in random.SystemRandom().sample(range(_LOWEST_PORT, lowest), min(_TRIES, lowest - _LOWEST_PORT)):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((HOST, port))
            return port
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _lowest_port_of_the_system() -> int:
    """Return the lowest port that the system chooses for sockets without a port."""
    try:
        text = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text()
    except OSError:
        return _LOWEST_PORT_OF_MACOS
    return max(_LOWEST_PORT, int(text.split()[0]))


def listens(port: int) -> bool:
    """Tell whether a process takes connections at a port of this machine."""
    with socket.socket() as probe:
        probe.settimeout(2)
        return probe.connect_ex((HOST, port)) == 0


def polls(patience: float) -> Iterator[None]:
    """Yield at once, and again after each of many pauses, until `patience` seconds are over."""
    until = time.monotonic() + patience
    yield
    while time.monotonic() <= until:
        time.sleep(_POLL)
        yield


def birth(pid: int) -> str | None:
    """Return the start time of a process in the system's own format; None if no process has the id."""
    if sys.platform == "darwin":
        state, _, started = _ps(pid, "stat=,lstart=").partition(" ")
        return None if state[:1] in ("", "Z") else started.strip()
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]


def memory(pid: int) -> int:
    """Return the resident memory of a process in bytes; 0 if no process has the id."""
    if sys.platform == "darwin":
        return int(_ps(pid, "rss=") or 0) * 1024
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _ps(pid: int, fields: str) -> str:
    asked = subprocess.run(["ps", "-o", fields, "-p", str(pid)], capture_output=True, text=True, check=False)
    return asked.stdout.strip()


def java() -> str:
    """Return the path of a Java of version 17 or later; raise ServerError if Java is missing or older."""
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    remedy = "install one (Debian, Ubuntu: apt-get install openjdk-17-jre-headless) or set JAVA_HOME"
    if found is None:
        raise ServerError(f"no Java is on this machine: {remedy}")
    try:
        said = subprocess.run([found, "-version"], capture_output=True, text=True, check=True).stderr
        version = int(said.partition('version "')[2].partition('"')[0].split(".")[0].split("-")[0])
    except (OSError, subprocess.CalledProcessError, ValueError):
        raise ServerError(f"{found} -version says no version: {remedy}") from None
    if version < 17:
        raise ServerError(f"{found} is Java {version}, and Kafka needs 17 or later: {remedy}")
    return found


def crash_report(folder: Path) -> str:
    """Return the option by which Java writes its crash reports into a folder."""
    return f"-XX:ErrorFile={folder}/hs_err_pid%p.log"


class Startable(ABC):
    """A service that a `with` block starts and stops. A service that fails to start is stopped, too."""

    @abstractmethod
    def start(self) -> None:
        """Start the service and wait until it can be used."""

    @abstractmethod
    def stop(self) -> None:
        """Stop the service, whatever its state."""

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Server(Startable):
    """A server process with its log and its record.

    name         the name of the log and of the record in the folder
    command      the words of the process's command line
    answers      a function that takes the log since this start. It is called repeatedly until it returns
                 true: then the server can be used
    port         the port that must be free when the process starts; None = the server has no port
    environment  variables that are added to this process's environment
    patience     seconds until a server without an answer counts as failed
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        command: Sequence[str],
        *,
        answers: Callable[[str], bool],
        port: int | None = None,
        environment: Mapping[str, str] | None = None,
        patience: float = 60,
    ) -> None:
        self.name = name
        self.folder = folder
        self.command = list(command)
        self.port = port
        self.log = folder / f"{name}.log"
        self._answers = answers
        self._environment = dict(environment or {})
        self._patience = patience
        self._record = folder / f"{name}.json"
        self._child: subprocess.Popen[bytes] | None = None
        self._log_start = 0

    @property
    def address(self) -> str:
        """Host and port; empty for a server without a port of its own."""
        return f"{HOST}:{self.port}" if self.port else ""

    @property
    def pid(self) -> int:
        """The process's id. Raises ServerError if the process does not run."""
        if self._child is None or self._child.poll() is not None:
            raise ServerError(f"{self.name} does not run: start it first")
        return self._child.pid

    @property
    def running(self) -> bool:
        """Whether the process lives. A process that lives may not answer yet."""
        return self._child is not None and self._child.poll() is None

    def said(self) -> str:
        """Return the text that the server logged since the last start."""
        with self.log.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode(errors="replace")

    def start(self) -> None:
        """Start the process and wait until the server answers.

        Raises ServerError if the port is taken, or, with the end of the log, if the server does not answer.
        """
        self.launch()
        self.wait()

    def launch(self) -> None:
        """Start the process without waiting."""
        if self.running:
            raise ServerError(f"{self.name} runs already, as process {self.pid}")
        if self.port is not None and listens(self.port):
            raise ServerError(
                f"{self.name} cannot have port {self.port}, where another process listens: choose another"
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self._log_start = log.tell()
            self._child = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self._environment},
                start_new_session=True,
            )
        record = {"pid": self._child.pid, "birth": birth(self._child.pid), "address": self.address}
        unfinished = self._record.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(record))
        unfinished.replace(self._record)  # so a command that is killed leaves no half record

    def wait(self) -> None:
        """Wait until the server answers.

        Raises ServerError, with the end of the log, if the process ends or is silent. A silent process is
        killed.
        """
        for _ in polls(self._patience):
            if not self.running:
                raise ServerError(self._failed("ended while it started"))
            if self._answers(self.said()):
                return
        self.kill()
        raise ServerError(self._failed(f"did not answer within {self._patience:.0f} s"))

    def _failed(self, what: str) -> str:
        lines = [line for line in self.said().splitlines() if not line.lstrip().startswith("at ")]
        tail = "\n".join(lines[-_TAIL_LINES:])  # without the frames of Java's stacks
        return f"{self.name} {what}; its log {self.log} ends with\n{tail}"

    def kill(self) -> None:
        """Kill this process alone (SIGKILL). Its child processes go on, as after a crash."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()

    def stop(self, patience: float = 20) -> None:
        """Ask the process to end, and kill it after `patience` seconds.

        All processes that it started are killed, too.
        """
        if self._child is None:
            return
        if self.running:
            self._child.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(patience)
        _kill_group(self._child.pid)
        self._child.wait()
        self._child = None
        self._record.unlink(missing_ok=True)

    def memory(self) -> int:
        """Return the resident memory in bytes; 0 if the process does not run."""
        return memory(self._child.pid) if self._child is not None else 0


def recorded(folder: Path) -> list[Recorded]:
    """Return the servers whose records are in a folder, by name. Other files are left out."""
    found = []
    for path in sorted(folder.glob("*.json")):
        try:
            record = json.loads(path.read_text())
            pid, born, address = int(record["pid"]), record["birth"], str(record["address"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
        runs = born is not None and birth(pid) == born
        started = path.stat().st_mtime
        found.append(Recorded(path.stem, pid, address, runs, memory(pid) if runs else 0, started))
    return found


def stop_recorded(folder: Path, server: Recorded, patience: float = 20) -> None:
    """Stop a server that another process may have started, as `Server.stop` does, and drop its record."""
    if server.running:
        os.kill(server.pid, signal.SIGTERM)
        for _ in polls(patience):
            if birth(server.pid) is None:
                break
        _kill_group(server.pid)
    (folder / f"{server.name}.json").unlink(missing_ok=True)


def _kill_group(leader: int) -> None:
    # macOS raises PermissionError for a group of zombies.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
