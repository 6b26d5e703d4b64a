"""Where servers of a job listen: those of this process, the pool of workers, and a job server's class."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from rocsteady.runners.listening import close_ports, on_this_machine
from rocsteady.runners.servers import worker
from rocsteady.runners.servers.closed_jar import _FACTORY, OpenJarError, closed
from rocsteady.runners.servers.flink import WorkerPool
from rocsteady.runners.servers.processes import free_port

from tests.support.servers.sockets import listening

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sockets are read from /proc")


def listened_at(address):
    """Where a server of gRPC listens that was told an address."""
    before = listening_here()
    server = grpc.server(ThreadPoolExecutor(1))
    port = server.add_insecure_port(address)
    server.start()
    hosts = {found.host for found in listening_here() - before if found.port == port}
    server.stop(None).wait()
    return hosts


def listening_here():
    return listening(os.getpid())


@pytest.mark.parametrize("address", ["[::]:0", "0.0.0.0:0"])
def test_servers_of_this_process_listen_on_this_machine_alone(address):
    with on_this_machine():
        assert listened_at(address) == {"127.0.0.1"}
    assert listened_at(address) & {"::", "0.0.0.0"}


@pytest.mark.slow
def test_a_pool_of_workers_listens_on_this_machine_alone(tmp_path):
    with WorkerPool(tmp_path) as pool:
        found = listening(pool.pid)
        assert {(each.host, each.port) for each in found} == {("127.0.0.1", pool.port)}
        assert "a pool of workers listens at 127.0.0.1:" in pool.said()
        assert "docs/how-to/network.md" not in pool.said()
    assert not pool.running


@pytest.mark.slow
def test_a_pool_that_others_can_reach_says_what_that_means():
    port = free_port()
    words = [sys.executable, "-m", worker.__name__, "--pool", f"0.0.0.0:{port}"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as pool:
        until = f"rocsteady: whoever reaches 0.0.0.0:{port} runs commands as this user"
        assert any(line.startswith(until) for line in pool.stderr)
        pool.send_signal(signal.SIGTERM)
    assert pool.returncode == 0


@pytest.mark.parametrize("words", ["localhost", "0", "65536", "here:", ""])
def test_a_pool_without_a_port_is_refused(monkeypatch, capsys, words):
    monkeypatch.setattr(sys, "argv", ["rocsteady-worker", "--pool", words])
    assert worker.main() == 2
    assert capsys.readouterr().err == (
        f"rocsteady: --pool {words}: give PORT or HOST:PORT, with a port from 1 to 65535\n"
    )


def text(words):
    return struct.pack(">BH", 1, len(words)) + words.encode()


def factory(call="forPort"):
    """A class that makes a server of the port of an address, as Java's compiler writes it."""
    constants = [
        text("getPort"), text("()I"), struct.pack(">BHH", 12, 1, 2),
        text("java/net/InetSocketAddress"), struct.pack(">BH", 7, 4), struct.pack(">BHH", 10, 5, 3),
        text(call), text("(I)LBuilder;"), struct.pack(">BHH", 12, 7, 8),
        text("Builder"), struct.pack(">BH", 7, 10), struct.pack(">BHH", 10, 11, 9),
        struct.pack(">Bq", 5, 20),
    ]  # fmt: skip
    head = b"\xca\xfe\xba\xbe" + struct.pack(">HHH", 0, 52, len(constants) + 2)  # a long counts twice
    return head + b"".join(constants) + b"-- code: \x2b\xb6\x00\x06\xb8\x00\x0c\x12\x01 --"


def jar(path, content):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("before.txt", "before")
        archive.writestr(_FACTORY, content)
        archive.writestr("after.txt", "after")
    return path


def test_a_job_server_is_copied_and_made_to_listen_at_its_address(tmp_path):
    there = jar(tmp_path / "server.jar", factory())
    copy = closed(there, tmp_path / "closed")
    with zipfile.ZipFile(copy) as archive:
        assert sorted(archive.namelist()) == ["after.txt", "before.txt", _FACTORY]
        assert archive.read("after.txt") == b"after"
        changed = archive.read(_FACTORY)
    assert b"-- code: \x2b\x00\x00\x00\xb8\x00\x12\x12\x01 --" in changed  # a call of constant 18
    assert text("forAddress") + text("(Ljava/net/SocketAddress;)LBuilder;") in changed
    assert struct.unpack_from(">H", changed, 8) == (19,)
    with zipfile.ZipFile(there) as archive:
        assert archive.read(_FACTORY) == factory()
    assert closed(there, tmp_path / "closed") == copy
    assert closed(copy, tmp_path / "nowhere") == copy


@pytest.mark.parametrize("content", [factory("forSocket"), b"\xca\xfe\xba\xbe\x00\x00\x00\x34\x00\x02\x63"])
def test_a_job_server_of_another_kind_is_refused_in_words(tmp_path, content):
    with pytest.raises(OpenJarError, match="its ServerFactory"):
        closed(jar(tmp_path / "server.jar", content), tmp_path / "closed")
    assert not (tmp_path / "closed").exists()


def test_a_server_that_stays_open_is_told_of(tmp_path, monkeypatch):
    monkeypatch.setenv("ROCSTEADY_SERVERS", str(tmp_path))
    monkeypatch.setenv("FLINK_CONF_DIR", "as it was")
    other = jar(tmp_path / "server.jar", factory("forSocket"))
    said = close_ports("flink", PipelineOptions([f"--flink_job_server_jar={other}"]))
    assert "the job server of Flink listens on all addresses of this machine" in said
    said = close_ports("prism", PipelineOptions([f"--prism_location={other}"]))
    assert "Prism listens on all addresses" in said
    assert "docs/how-to/network.md" in said
    other.write_bytes(b"\x00127.0.0.1:%d\x00")
    assert close_ports("prism", PipelineOptions([f"--prism_location={other}"])) is None
    assert close_ports("prism", PipelineOptions(["--job_endpoint=localhost:1"])) is None
    assert close_ports("local", PipelineOptions([])) is None
