"""Servers without servers: what is missing is a sentence, what is fetched is whole, processes are ours."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time

import pytest
from rocsteady.runners.servers import packages
from rocsteady.runners.servers.__main__ import main
from rocsteady.runners.servers.processes import (
    Server,
    ServerError,
    birth,
    free_port,
    java,
    listens,
    memory,
    recorded,
    stop_recorded,
)

# Programs sleep until they are ended: ten minutes are longer than any test.
LISTEN = """
import socket, sys, time
wire = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("ready", flush=True)
time.sleep(600)
"""
DEAF = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(600)
"""
PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print("child", child.pid, flush=True)
time.sleep(600)
"""


def server(folder, program, *arguments, **settings):
    settings = {"answers": lambda said: said.endswith("\n"), "patience": 20, **settings}
    return Server("one", folder, [sys.executable, "-c", program, *map(str, arguments)], **settings)


def gone(pid):
    """Wait for the end of a process: for a minute, in which only what hangs does not end."""
    deadline = time.monotonic() + 60
    while birth(pid) is not None and time.monotonic() < deadline:
        time.sleep(0.05)
    return birth(pid) is None


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder of servers."""
    monkeypatch.setenv("ROCSTEADY_SERVERS", str(tmp_path / "servers"))
    return tmp_path / "servers"


def program(path, text):
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_a_free_port_is_none_that_the_system_gives_to_sockets():
    """A server that ended finds its port free when it starts anew."""
    given = []
    for _ in range(200):
        with socket.socket() as without_port:
            without_port.bind(("127.0.0.1", 0))
            given.append(without_port.getsockname()[1])
    found = {free_port() for _ in range(200)}
    assert max(found) < min(given)
    assert len(found) > 150


def test_a_server_runs_until_it_is_stopped(tmp_path):
    port = free_port()
    with server(tmp_path, LISTEN, port, port=port, answers=lambda _: listens(port)) as one:
        assert one.running
        assert one.address == f"127.0.0.1:{port}"
        assert one.memory() > 1 << 20
        (found,) = recorded(tmp_path)
        assert (found.name, found.pid, found.address, found.running) == ("one", one.pid, one.address, True)
        with pytest.raises(ServerError, match=f"one runs already, as process {one.pid}"):
            one.launch()
        pid = one.pid
    assert gone(pid)
    assert not one.running
    assert recorded(tmp_path) == []
    with pytest.raises(ServerError, match="one does not run: start it first"):
        _ = one.pid


def test_a_killed_server_starts_again_and_hears_only_its_new_words(tmp_path):
    one = server(tmp_path, "import os, time; print(os.getpid(), flush=True); time.sleep(600)")
    with one:
        first = one.pid
        one.kill()
        assert not one.running
        assert one.memory() == memory(first) == 0
        assert [found.running for found in recorded(tmp_path)] == [False]
        one.start()
        assert one.said() == f"{one.pid}\n"
        assert one.log.read_text() == f"{first}\n{one.pid}\n"


@pytest.mark.slow
def test_a_server_that_dies_or_is_silent_is_told_with_the_end_of_its_log(tmp_path):
    dying = server(
        tmp_path, "print('Exception: no'); print('\tat a.b.C'); raise SystemExit(3)", answers=lambda _: False
    )
    with pytest.raises(
        ServerError, match=r"one ended while it started; its log .*one.log ends with\nException: no$"
    ):
        dying.start()
    silent = server(tmp_path, DEAF, answers=lambda _: False, patience=1)
    with pytest.raises(ServerError, match=r"one did not answer within 1 s; its log .* ends with\nready$"):
        silent.start()
    assert not silent.running


def test_a_port_that_is_taken_is_named(tmp_path):
    port = free_port()
    with server(tmp_path / "a", LISTEN, port, port=port):
        late = server(tmp_path / "b", LISTEN, port, port=port)
        with pytest.raises(ServerError, match=f"cannot have port {port}, where another process listens"):
            late.start()
        assert not (tmp_path / "b").exists()


@pytest.mark.slow
def test_stopping_ends_the_deaf_and_all_that_was_started(tmp_path):
    one = server(tmp_path, DEAF)
    one.start()
    pid = one.pid
    one.stop(patience=0.5)
    assert gone(pid)

    with server(tmp_path, PARENT) as parent:
        child = int(parent.said().split()[1])
        assert birth(child) is not None
    assert gone(child)


def test_another_process_stops_what_is_recorded_and_nothing_else(tmp_path):
    one = server(tmp_path, PARENT)
    one.start()
    child = int(one.said().split()[1])
    pid = one.pid
    (found,) = recorded(tmp_path)
    one.kill()
    one.start()
    (again,) = recorded(tmp_path)
    assert again.pid == one.pid != pid
    os.kill(one.pid, signal.SIGSTOP)  # deaf to SIGTERM too
    stop_recorded(tmp_path, again, patience=0.5)
    one.stop()
    assert recorded(tmp_path) == []
    os.kill(child, signal.SIGKILL)  # kill -9 leaves what a server has started to itself

    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        (tmp_path / "one.json").write_text(f'{{"pid": {stranger.pid}, "birth": "another", "address": ""}}')
        (found,) = recorded(tmp_path)
        assert not found.running
        stop_recorded(tmp_path, found)
        assert stranger.poll() is None
        assert recorded(tmp_path) == []
    finally:
        stranger.kill()
        stranger.wait()


def test_a_missing_or_old_java_is_told_with_the_remedy(tmp_path, monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(ServerError, match=r"no Java is on this machine: install one .* or set JAVA_HOME"):
        java()
    program(tmp_path / "bin" / "java", """echo 'openjdk version "11.0.2" 2019-01-15' >&2""")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ServerError, match="bin/java is Java 11, and Kafka needs 17 or later"):
        java()
    program(tmp_path / "bin" / "java", "echo what >&2")
    with pytest.raises(ServerError, match="says no version"):
        java()
    program(tmp_path / "bin" / "java", """echo 'openjdk version "21-ea" 2023-09-19' >&2""")
    assert java() == str(tmp_path / "bin" / "java")


def test_the_folder_is_the_variables_or_the_users_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("ROCSTEADY_SERVERS", str(tmp_path))
    assert packages.servers_folder() == tmp_path
    monkeypatch.delenv("ROCSTEADY_SERVERS")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if sys.platform == "linux":
        assert packages.servers_folder() == tmp_path / "rocsteady" / "servers"


def test_what_was_not_fetched_is_told_with_the_command(folder, capsys):
    assert packages.missing() == ["flink", "java-io", "kafka", "prism"]
    for ask, name in [
        (packages.flink_jars, "flink"),
        (packages.job_server_jar, "flink"),
        (packages.java_io_jar, "java-io"),
        (packages.kafka_jars, "kafka"),
        (packages.prism_path, "prism"),
    ]:
        with pytest.raises(ServerError, match=rf"{name} is not in {folder}: get it with `.* get {name}`"):
            ask()


SERVER = "go/pkg/beam/runners/prism/internal/jobservices/server.go"
GO = """
if [ "$1" = mod ]; then echo "go: downloading"; echo '{"Dir": "%s"}'; exit; fi
cat %s >"$3"; echo "$@" >>"$3"
"""


def test_prism_is_compiled_once_to_listen_here_and_appears_whole(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    source = tmp_path / "module" / SERVER
    source.parent.mkdir(parents=True)
    source.write_text('lis, err := net.Listen("tcp", fmt.Sprintf(":%d", port))')
    source.parent.chmod(0o555)
    go = GO % (tmp_path / "module", SERVER)
    program(tmp_path / "bin" / "go", f"{go}\necho no route to the network; exit 1")
    assert main(["get", "prism"]) == 2
    assert "go build -o" in (said := capsys.readouterr().err)
    assert "is the network there? It ended with\\nno route to the network" in said
    assert packages.missing(["prism"]) == ["prism"]
    assert list(folder.iterdir()) == [], "nothing half made is left"

    program(tmp_path / "bin" / "go", go)
    assert main(["get", "prism"]) == 0
    assert packages.missing(["prism"]) == []
    made = packages.prism_path().read_text()
    assert 'net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))' in made
    assert made.endswith("./go/cmd/prism\n")
    assert f"--runner prism --prism_location {packages.prism_path()}" in capsys.readouterr().out
    assert [path.name for path in folder.iterdir()] == [packages.prism_path().parent.name]

    (tmp_path / "bin" / "go").unlink()
    assert main(["get", "prism"]) == 0
    assert f"{packages.prism_path().parent} is there\n" in capsys.readouterr().out


def test_a_prism_that_opens_its_port_in_another_way_is_refused(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    source = tmp_path / "module" / SERVER
    source.parent.mkdir(parents=True)
    source.write_text("lis, err := listen(port)")
    program(tmp_path / "bin" / "go", GO % (tmp_path / "module", SERVER))
    assert main(["get", "prism"]) == 2
    assert "opens its port in another way than is known here" in capsys.readouterr().err
    assert list(folder.iterdir()) == []


def test_missing_tools_are_told_with_the_remedy(folder, tmp_path, monkeypatch, capsys):
    program(tmp_path / "bin" / "java", """echo 'openjdk version "17.0.15" 2025-04-15' >&2""")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert main(["get", "kafka"]) == 2
    assert capsys.readouterr().err == (
        "rocsteady: mvn is not on this machine: install Maven (Debian, Ubuntu: apt-get install maven)\n"
    )
    assert main(["get", "prism"]) == 2
    assert "rocsteady: go is not on this machine: install Go" in capsys.readouterr().err
    assert main(["up", "kafka", "--folder", str(tmp_path)]) == 2
    assert "rocsteady: kafka is not in" in capsys.readouterr().err
    assert main(["up", "flink", "--folder", str(tmp_path)]) == 2
    assert "rocsteady: flink is not in" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_named(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ROCSTEADY_SERVERS", str(tmp_path / "file" / "servers"))
    program(tmp_path / "bin" / "go", "exit 0")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    assert main(["get", "prism"]) == 2
    assert "cannot be written" in (said := capsys.readouterr().err)
    assert "set ROCSTEADY_SERVERS" in said


def test_nothing_runs_in_an_empty_folder(folder, tmp_path, capsys):
    for command in ("status", "down"):
        assert main([command, "--folder", str(tmp_path)]) == 0
        assert capsys.readouterr().out == f"nothing runs in {tmp_path}\n"
    assert main(["topic", "events", "--folder", str(tmp_path)]) == 2
    assert "no Kafka broker runs in" in capsys.readouterr().err
    assert main(["status"]) == 0
    assert capsys.readouterr().out == f"nothing runs in {folder / 'running'}\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("up flnk", "argument NAME: invalid choice: 'flnk'"),
        ("down flnk", "argument NAME: 'flnk' is none of flink, kafka, pool"),
        ("get flnk", "argument NAME: invalid choice: 'flnk'"),
        ("restart", "argument COMMAND: invalid choice: 'restart'"),
        ("topic", "the following arguments are required: name"),
    ],
)
def test_a_wrong_word_is_told_in_a_sentence(words, said, capsys):
    assert main(words.split()) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"rocsteady: {said}")
