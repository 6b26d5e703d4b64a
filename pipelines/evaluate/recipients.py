"""The receivers of an alert besides its file: a command of `--alert-exec`, a URL of `--alert-post`.

A recipient is called once for each alert that opens or closes. It gets the alert as JSON, with the columns of
the alerts' JSON lines: a command on its stdin, a URL as the body of a POST. Nothing of the data is in a
command's arguments or environment, and no shell is started. So a model's name can be any text.

A call returns when the alert has been delivered, and raises `CallError` if it cannot be. Texts for people
name a recipient by its program, or by its scheme, host and port: the rest may hold secrets.
"""

from __future__ import annotations

import base64
import os
import selectors
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from email.message import Message
from http.client import HTTPException
from threading import Event, Thread
from typing import IO, Any, NamedTuple, NoReturn, Protocol
from urllib.parse import SplitResult, unquote, urlsplit

from ...core.errors import ConfigError
from ...core.process.console import name_text
from ...core.version import __version__

EXEC, POST = "--alert-exec", "--alert-post"

_EXEC_SECONDS = 30.0
"""Seconds that a command may run."""

_POST_SECONDS = 10.0
"""Seconds that a server may be silent, both while the connection is made, and before each part of the answer.
"""

_READS = 3
"""A whole answer may take this many times as long as one silence."""

_WAITS = (1.0, 2.0, 4.0)
"""Seconds between a POST and its repeat, after an answer 429 or 5xx and after errors of the connection."""

_LOOK_SECONDS = 0.05
"""Seconds between two checks whether a command has ended, if its output does not show it."""

_PAUSE_SECONDS = 0.001
"""Seconds between two reads of a command's output: so a command that writes without end takes no processor.
"""

_TAIL_BYTES = 4_096
"""How many bytes at the end of a command's output are kept."""

_LINE_WIDTH = 200
"""How many characters of a command's last line are shown."""


class AlertCall(NamedTuple):
    """One alert for one call.

    name  the name of the alert for people: its model, slice and row
    body  the alert as a JSON object, UTF-8
    key   the same text for the same (rule, model, slice, pane, row, state), in every run of a job
    """

    name: str
    body: bytes
    key: str


class CallError(Exception):
    """Raised if a recipient was called and did not take the alert.

    kind  a short text that is the same for similar failures, so that each kind can be reported rarely
    """

    def __init__(self, kind: str, why: str) -> None:
        super().__init__(why)
        self.kind = kind


class Recipient(Protocol):
    """Takes alerts, one in each call."""

    @property
    def name(self) -> str:
        """The option, and the part of its value that may be shown."""

    def call(self, call: AlertCall, ended: Event) -> None:
        """Deliver an alert. Raises CallError if the alert was not delivered, or soon after `ended` is set."""


def refuse_recipients(recipients: Sequence[Recipient], why: str) -> NoReturn:
    """Raise ConfigError if the job cannot call its recipients from this process."""
    option, _, _ = recipients[0].name.partition(" ")
    raise ConfigError(
        f"{option}: {why}, and this process alone delivers alerts; write them with --alerts to a topic or a "
        "file, and let a program that reads them deliver them"
    )


@dataclass(frozen=True)
class Command:
    """A program that is run for each alert, with the alert on its stdin as one line.

    words    the path of the program, and its arguments
    seconds  how long the program may run. Then its process group is killed.
    """

    words: tuple[str, ...]
    seconds: float = _EXEC_SECONDS

    @classmethod
    def parse(cls, text: str) -> Command:
        """Split a command as a shell would, and find its program.

        Raises ConfigError for a program that is not found.

        >>> Command.parse("/bin/sh -c 'cat > alert.json'").words
        ('/bin/sh', '-c', 'cat > alert.json')
        """
        if sys.platform == "win32":
            raise ConfigError(f"{EXEC}: commands are run on POSIX systems alone; use {POST} URL")
        try:
            words = shlex.split(text)
        except ValueError as error:
            raise ConfigError(
                f"{EXEC}: the command cannot be split into words: {error}; quote it as in a shell"
            ) from None
        if not words or "\0" in text:
            raise ConfigError(f"{EXEC}: name a program, such as {EXEC} './notify.sh --team x'")
        program = shutil.which(words[0])
        if program is None:
            raise ConfigError(
                f"{EXEC} {words[0]}: there is no program of this name that may be run; give its path, and "
                "make the file executable"
            )
        return cls((os.path.abspath(program), *words[1:]))  # noqa: PTH100 - resolves no links

    @property
    def name(self) -> str:
        """The option and the program, without its arguments."""
        return f"{EXEC} {self.words[0]}"

    def call(self, call: AlertCall, ended: Event) -> None:
        """Run the command. Raises CallError if its exit status is not 0."""
        try:
            with tempfile.TemporaryFile() as line:
                line.write(call.body + b"\n")
                line.seek(0)
                process = subprocess.Popen(
                    self.words, stdin=line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                    start_new_session=True,
                )  # fmt: skip
        except OSError as error:
            raise CallError("run", f"it cannot be run: {error.strerror or error}") from None
        assert process.stdout is not None
        with process.stdout as output:
            last = _last_line(process, output, time.monotonic() + self.seconds, ended)
        if process.returncode is None:
            _kill(process)
            why = "the job ended" if ended.is_set() else f"it ran for {self.seconds:g} seconds"
            raise CallError("time", f"it was killed, as {why}{last}")
        if process.returncode:
            code = process.returncode
            how = f"it ended with status {code}" if code > 0 else f"signal {-code} ended it"
            raise CallError("status", how + last)


def _last_line(process: subprocess.Popen[bytes], output: IO[bytes], deadline: float, ended: Event) -> str:
    """Read a command's output until the command ends; return the last line, made visible.

    A child that the command leaves behind may keep the output open, so its end is not waited for.
    """
    os.set_blocking(output.fileno(), False)
    tail, is_open = b"", True
    with selectors.DefaultSelector() as ready:
        ready.register(output, selectors.EVENT_READ)
        while process.poll() is None and time.monotonic() < deadline and not ended.is_set():
            if is_open:
                ready.select(_LOOK_SECONDS)
                tail, is_open = _read(output, tail)
                time.sleep(_PAUSE_SECONDS)
            else:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_LOOK_SECONDS)
    tail, _ = _read(output, tail)
    lines = tail.decode(errors="replace").strip().splitlines()
    return f"; its last line: {name_text(lines[-1], _LINE_WIDTH)}" if lines else ""


def _read(output: IO[bytes], tail: bytes) -> tuple[bytes, bool]:
    """Read the bytes that an output has now, 64 KB at most.

    Return the new tail, and whether more bytes may come.
    """
    try:
        piece = os.read(output.fileno(), 1 << 16)
    except BlockingIOError:
        return tail, True
    return (tail + piece)[-_TAIL_BYTES:], piece != b""


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a command and the children in its process group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(1.0)


@dataclass(frozen=True)
class Url:
    """A URL that gets a POST for each alert. The answer must be 200 to 299; a redirect is an error.

    url      the URL without user and password
    headers  headers of every POST
    seconds  how long the server may be silent; a whole answer may take three times as long
    waits    seconds between a POST and its repeat
    """

    url: str = field(repr=False)
    headers: dict[str, str] = field(repr=False, compare=False)
    seconds: float = _POST_SECONDS
    waits: tuple[float, ...] = _WAITS

    @classmethod
    def parse(cls, text: str) -> Url:
        """Read a URL; user and password go into a header. Raises ConfigError, whose text shows neither.

        >>> Url.parse("https://me:secret@example.com:8443/hooks/T0KEN").name
        '--alert-post https://example.com:8443'
        """
        parts = _checked_url(text)
        host = parts.netloc.rpartition("@")[2]
        headers = {"Content-Type": "application/json", "User-Agent": f"rocsteady/{__version__}"}
        if "@" in parts.netloc:
            user = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
            headers["Authorization"] = f"Basic {base64.b64encode(user.encode()).decode()}"
        return cls(parts._replace(netloc=host, fragment="").geturl(), headers)

    @property
    def name(self) -> str:
        """The option with the URL's scheme, host and port."""
        parts = urlsplit(self.url)
        return f"{POST} {parts.scheme}://{parts.netloc}"

    def call(self, call: AlertCall, ended: Event) -> None:
        """Post an alert; post it again after errors that may end.

        Raises CallError if the alert was not delivered.
        """
        for wait in (*self.waits, None):
            try:
                self._post(call)
            except urllib.error.HTTPError as error:
                error.close()
                failure = CallError(f"answer {error.code}", _answer_text(error.code))
                may_pass = error.code == 429 or error.code >= 500
            except (OSError, HTTPException, ValueError) as error:
                failure, may_pass = CallError("connection", f"no answer: {_why(error)}"), True
            else:
                return
            if wait is None or not may_pass or ended.wait(wait):
                raise failure

    def _post(self, call: AlertCall) -> None:
        headers = {**self.headers, "Idempotency-Key": call.key}
        request = urllib.request.Request(self.url, call.body, headers, method="POST")
        opener = urllib.request.build_opener(_NoRedirects)
        failed: list[Exception] = []

        def post() -> None:
            try:
                opener.open(request, timeout=self.seconds).close()
            except Exception as error:
                failed.append(error)

        # The limit of urllib is for each read: a server that sends a byte now and then would hold this
        # thread.
        thread = Thread(target=post, daemon=True)
        thread.start()
        thread.join(_READS * self.seconds)
        if thread.is_alive():
            raise TimeoutError
        if failed:
            raise failed[0]


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Makes a redirect an error. urllib would follow a redirect by a GET without the alert, to any server."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> None:
        """Return None, because no request follows."""


def _checked_url(text: str) -> SplitResult:
    remedy = "give one such as https://example.com/hooks/alerts"
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise ConfigError(f"{POST}: the host or the port of the URL cannot be read; {remedy}") from None
    if parts.scheme not in ("http", "https"):
        raise ConfigError(f"{POST}: the URL does not begin with http:// or https://; {remedy}")
    if not host:
        raise ConfigError(f"{POST}: the URL names no host; {remedy}")
    if not text.isascii() or not text.isprintable() or " " in text:
        raise ConfigError(
            f"{POST}: the URL at {host} holds a character that no URL may hold; write the character as %XX, "
            "and a space as %20"
        )
    return parts


def _answer_text(code: int) -> str:
    if 300 <= code < 400:
        return f"it answers with a redirect ({code}); give the URL that the redirect leads to"
    return f"it answers {code}"


def _why(error: Exception) -> str:
    reason: Any = getattr(error, "reason", error)
    if isinstance(reason, TimeoutError):
        return "the server was silent for too long"
    return getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
