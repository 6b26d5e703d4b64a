"""Commands and URLs that are told of alerts: what they get, and what comes of those that fail or hang."""

from __future__ import annotations

import base64
import json
import os
import select
import signal
import socket
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from rocsteady.core.errors import ConfigError
from rocsteady.pipelines.evaluate.recipients import AlertCall, CallError, Command, Url

from tests.support.processes.live_job import PATIENCE, wait_for
from tests.support.servers.json_server import json_server

pytestmark = pytest.mark.skipif(os.name != "posix", reason="scripts for a POSIX shell")

SHORT = 0.2
"""Seconds for what hangs for ever."""

CALL = AlertCall("churn, row 7", b'{"model": "$(touch x)`touch y`\\n\'\\"", "row": 7}', "k" * 32)


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def script(*lines, name="tell.sh"):
    Path(name).write_text("\n".join(["#!/bin/sh", *lines, ""]))
    Path(name).chmod(0o755)
    return Path(name).absolute()


def run(command, ended=None, call=CALL):
    command.call(call, ended or threading.Event())


def test_a_command_gets_the_alert_on_stdin_and_nothing_else_of_it():
    script('printf "%s\\n" "$0" "$@" > words', "env > env", "cat > line", "pwd > where")
    run(Command.parse("./tell.sh 'two words' $HOME \"it's\""))
    assert Path("line").read_bytes() == CALL.body + b"\n"
    words = Path("words").read_text().splitlines()
    assert words[1:] == ["two words", "$HOME", "it's"]
    assert Path("where").read_text().strip() == str(Path.cwd())
    assert "touch" not in Path("words").read_text() + Path("env").read_text()
    assert not Path("x").exists()
    assert not Path("y").exists()


def test_an_alert_longer_than_a_pipe_reaches_a_command_and_one_that_reads_nothing_does_no_harm():
    script("wc -c > size")
    long = CALL._replace(body=b"x" * 1_000_000)
    run(Command.parse("./tell.sh"), call=long)
    assert int(Path("size").read_text()) == 1_000_001
    run(Command.parse("true"), call=long)


@pytest.mark.parametrize(
    ("lines", "kind", "words"),
    [
        (["echo first", "printf 'no \\033[31mchannel\\n\\n' >&2", "exit 3"], "status",
         r"it ended with status 3; its last line: no \x1b[31mchannel"),
        (["exit 1"], "status", "it ended with status 1"),
        (["exec >&- 2>&-", "exit 4"], "status", "it ended with status 4"),
        (["kill -9 $$"], "status", "signal 9 ended it"),
        (["head -c 5000 /dev/zero | tr '\\0' x", "exit 1"], "status",
         "it ended with status 1; its last line: xxx"),
    ],
)  # fmt: skip
def test_a_command_that_fails_says_how(lines, kind, words):
    script(*lines)
    with pytest.raises(CallError) as raised:
        run(Command.parse("./tell.sh"))
    assert raised.value.kind == kind
    assert str(raised.value).startswith(words)
    assert len(str(raised.value)) < 300


def test_a_program_that_cannot_be_run_says_why():
    Path("tell").write_bytes(b"\x7fELF of nothing")
    Path("tell").chmod(0o755)
    with pytest.raises(CallError, match="it cannot be run: ") as raised:
        run(Command.parse("./tell"))
    assert raised.value.kind == "run"


@pytest.mark.parametrize(
    "lines",
    [
        ["sleep 1000 & wait"],
        ["trap '' TERM HUP INT", "sleep 1000"],
        ["yes"],
        ["exec >&- 2>&-", "sleep 1000"],
    ],
)
def test_a_command_that_hangs_is_killed_with_its_children(lines):
    """Each of them holds a pipe open for writing: its reader sees the end when the last of them is gone."""
    os.mkfifo("alive")
    reader = os.open("alive", os.O_RDONLY | os.O_NONBLOCK)
    script("exec 9> alive", *lines)
    with pytest.raises(CallError, match=r"it was killed, as it ran for 0\.2 seconds") as raised:
        run(Command((str(Path("tell.sh").absolute()),), seconds=SHORT))
    assert raised.value.kind == "time"
    # A shell that was killed early has not opened the pipe; without any writer there is no end to see.
    os.close(os.open("alive", os.O_WRONLY))
    ends, _, _ = select.select([reader], [], [], PATIENCE)
    assert ends
    assert os.read(reader, 1) == b""
    os.close(reader)


def test_a_command_is_killed_when_the_job_ends():
    script("echo > started", "sleep 1000")
    ended = threading.Event()
    failures = []

    def call():
        try:
            run(Command.parse("./tell.sh"), ended)
        except CallError as failure:
            failures.append(str(failure))

    caller = threading.Thread(target=call)
    caller.start()
    wait_for(Path("started").exists)
    ended.set()
    caller.join(PATIENCE)
    assert failures == ["it was killed, as the job ended"]


def test_what_a_command_leaves_behind_is_not_waited_for():
    script("sleep 1000 & echo $! > child")
    run(Command((str(Path("tell.sh").absolute()),), seconds=PATIENCE))
    os.kill(int(Path("child").read_text()), signal.SIGKILL)


COMMANDS = {
    "": "name a program",
    "  ": "name a program",
    "tell 'x": "cannot be split into words: No closing quotation",
    "no-such-program x": "--alert-exec no-such-program: there is no program",
    "./plain x": "--alert-exec ./plain: there is no program",
    ". x": "--alert-exec .: there is no program",
}


@pytest.mark.parametrize("text", COMMANDS)
def test_a_command_that_cannot_be_run_is_refused(text):
    Path("plain").write_text("#!/bin/sh\n")
    with pytest.raises(ConfigError, match="--alert-exec") as raised:
        Command.parse(text)
    assert COMMANDS[text] in str(raised.value)


# ---- URLs


def quick(url, **settings):
    """A URL whose repeats do not wait."""
    parsed = Url.parse(url)
    return Url(parsed.url, parsed.headers, **{"seconds": PATIENCE, "waits": (0.0, 0.0, 0.0), **settings})


def test_a_url_gets_the_alert_as_json_with_a_key_and_its_user_in_a_header():
    came = []
    with json_server(take=lambda posted: came.append(posted) or 204) as address:
        run(quick(f"http://m%40e:p%2Fw@{address}/hooks/x?team=a%20b#part"))
    (posted,) = came
    assert (posted.path, posted.body) == ("/hooks/x?team=a%20b", CALL.body)
    assert json.loads(posted.body)["row"] == 7
    assert posted.headers["Content-Type"] == "application/json"
    assert posted.headers["Idempotency-Key"] == CALL.key
    assert base64.b64decode(posted.headers["Authorization"].removeprefix("Basic ")) == b"m@e:p/w"


@pytest.mark.parametrize(
    ("statuses", "failure"),
    [
        ([500, 200], None),
        ([503, 429, 500, 201], None),
        ([500, 500, 500, 500], "it answers 500"),
        ([429, 400], "it answers 400"),
        ([404], "it answers 404"),
    ],
)
def test_an_answer_that_may_pass_is_tried_again_with_the_same_key(statuses, failure):
    left, keys = [*statuses], []

    def take(posted):
        keys.append(posted.headers["Idempotency-Key"])
        return left.pop(0)

    with json_server(take=take) as address:
        if failure is None:
            run(quick(f"http://{address}"))
        else:
            with pytest.raises(CallError, match=failure):
                run(quick(f"http://{address}"))
    assert (left, keys) == ([], [CALL.key] * len(statuses))


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(status):
    came = []

    def take(posted):
        came.append(posted.path)
        return (status, {"Location": f"http://{address}/elsewhere"}) if posted.path == "/here" else 200

    with (
        json_server(answer=came.append, take=take) as address,
        pytest.raises(CallError, match=rf"a redirect \({status}\)"),
    ):
        run(quick(f"http://{address}/here"))
    assert came == ["/here"]


def test_a_server_that_is_not_there_or_silent_is_an_error():
    with json_server() as address:
        pass
    with pytest.raises(CallError, match="no answer: Connection refused") as raised:
        run(quick(f"http://{address}"))
    assert raised.value.kind == "connection"
    release, posts = threading.Event(), []

    def take(posted):
        posts.append(posted)
        release.wait(PATIENCE)
        return 200

    with json_server(take=take) as address:
        with pytest.raises(CallError, match="the server was silent for too long"):
            run(quick(f"http://{address}", seconds=SHORT))
        wait_for(lambda: len(posts) == 4)
        release.set()


def test_a_server_that_sends_a_byte_now_and_then_is_not_waited_for():
    """Each byte comes before the limit of a read is over, and the answer never ends."""
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}"

        def drip():
            taken, _ = server.accept()
            with taken, suppress(OSError):
                taken.sendall(b"HTTP/1.1 200 OK\r\nX: ")
                while not stop.wait(SHORT / 4):
                    taken.sendall(b"x")

        thread = threading.Thread(target=drip)
        thread.start()
        try:
            with pytest.raises(CallError, match="the server was silent for too long"):
                run(quick(address, seconds=SHORT, waits=()))
        finally:
            stop.set()
            thread.join()


def test_the_wait_before_a_repeat_ends_with_the_job():
    ended, posts = threading.Event(), []

    def take(posted):
        posts.append(posted)
        ended.set()
        return 500

    with json_server(take=take) as address, pytest.raises(CallError, match="it answers 500"):
        run(quick(f"http://{address}", waits=(10_000.0,)), ended)
    assert len(posts) == 1


URLS = {
    "ftp://me:pw@example.com/x": "does not begin with http:// or https://",
    "example.com/pw": "does not begin with http:// or https://",
    "file:///etc/passwd": "does not begin with http:// or https://",
    "": "does not begin with http:// or https://",
    "http:///pw": "names no host",
    "https://me:pw@/x": "names no host",
    "http://me:pw@example.com:99999/": "cannot be read",
    "http://me:pw@[::1/": "cannot be read",
    "http://me:pw@example.com/a b": "example.com holds a character",
    "http://me:pw@example.com/a\nb": "example.com holds a character",
    "http://me:pw@example.com/\u00e4": "example.com holds a character",
}


@pytest.mark.parametrize("text", URLS)
def test_a_url_that_takes_no_post_is_refused_without_its_secrets(text):
    with pytest.raises(ConfigError, match="--alert-post: ") as raised:
        Url.parse(text)
    assert URLS[text] in str(raised.value)
    assert "pw" not in str(raised.value)


def test_a_url_shows_none_of_its_secrets():
    url = Url.parse("https://me:secret@example.com:8443/T0KEN?key=T0KEN")
    assert url.name == "--alert-post https://example.com:8443"
    assert not {"secret", "T0KEN", "me:"} & {word for word in ("secret", "T0KEN", "me:") if word in repr(url)}
