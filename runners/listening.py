"""Makes the servers of a job listen on this machine alone, wherever that is possible.

Beam starts three servers beside a job: the job service, the artifact service and the service that starts
Python workers. No server asks for a password, and a job names commands that its workers run. Some servers
listen on every address of the machine unless they are changed:

    servers of Python, in this process    `on_this_machine` puts 127.0.0.1 in the place of every address
    the job server of Flink, in Java      `close_ports` gives Beam a changed copy of it (`closed_jar`)
    Prism, in Go                          `get prism` compiles a changed Prism; any other Prism stays open

docs/how-to/network.md lists every port.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import grpc
from apache_beam.options.pipeline_options import FlinkRunnerOptions, JobServerOptions, PipelineOptions
from apache_beam.runners.portability.flink_runner import FlinkJarJobServer

from .presets import cluster_host
from .servers.closed_jar import OpenJarError, closed
from .servers.packages import COMMAND, PRISM_LISTENS, servers_folder
from .servers.processes import HOST

_EVERYWHERE = ("[::]", "0.0.0.0", "")

_OPEN = (
    "listens on all addresses of this machine while the job runs, and whoever reaches it runs commands as "
    "this user; close its port to others (docs/how-to/network.md)"
)


@contextmanager
def on_this_machine() -> Iterator[None]:
    """While the block runs, make new gRPC servers of this process listen only on 127.0.0.1.

    Beam announces each of these servers as "localhost", so no other machine needs to reach the server.
    """
    make = grpc.server

    def made(*arguments: Any, **settings: Any) -> grpc.Server:
        server = make(*arguments, **settings)
        server.add_insecure_port = partial(_listen_here, server.add_insecure_port)
        return server

    grpc.server = made
    try:
        yield
    finally:
        grpc.server = make


def _listen_here(listen: Any, address: str) -> int:
    host, _, port = address.rpartition(":")
    return int(listen(f"{HOST}:{port}" if host in _EVERYWHERE else address))


def close_ports(kind: str, options: PipelineOptions) -> str | None:
    """Make the server that takes a job listen on this machine alone.

    Return a warning if it stays open to others.

    kind     the kind of the runner
    options  the pipeline's options; they are changed in place

    A job server that runs already is not checked.
    """
    said = options.get_all_options(retain_unknown_options=True)
    if said["job_endpoint"]:
        return None
    if kind == "flink":
        return _close_job_server(options)
    if kind == "prism" and not _is_closed_prism(said["prism_location"]):
        return f"Prism {_OPEN}, or take one that does not: `{COMMAND} get prism`"
    return None


def _close_job_server(options: PipelineOptions) -> str | None:
    """Give Beam a job server that listens on this machine alone, instead of Beam's default job server."""
    flink = options.view_as(FlinkRunnerOptions)
    if flink.flink_submit_uber_jar and cluster_host(flink.flink_master.strip()) is not None:
        return None  # such a job has no Java job server
    server = FlinkJarJobServer(options)
    try:
        jar = Path(server.local_jar(server.path_to_jar(), options.view_as(JobServerOptions).jar_cache_dir))
    except (OSError, RuntimeError, ValueError):
        return None  # Beam asks for the jar again and reports the error itself
    folder = servers_folder() / "closed"
    try:
        if cluster_host(flink.flink_master.strip()) is None:
            os.environ.setdefault("FLINK_CONF_DIR", str(_written(folder / "conf")))
        flink.flink_job_server_jar = str(closed(jar, folder))
    except (OSError, OpenJarError) as error:
        return f"the job server of Flink {_OPEN}: {error}"
    return None


def _written(folder: Path) -> Path:
    """Write the configuration of the Flink that a job server embeds; return the configuration's folder."""
    said = "".join(f"{name}: {HOST}\n" for name in ("rest.bind-address", "jobmanager.bind-host",
                                                   "taskmanager.bind-host"))  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("config.yaml", "flink-conf.yaml"):  # Flink 1.19 and later, Flink before 1.19
        if not (folder / name).exists():
            scratch = folder / f".{name}-{os.getpid()}"
            scratch.write_text(said)
            scratch.rename(folder / name)
    return folder


def _is_closed_prism(place: str | None) -> bool:
    """Return whether `get prism` compiled a Prism. False for a Prism that Beam has not downloaded yet."""
    try:
        with (
            Path(place or os.devnull).open("rb") as program,
            mmap.mmap(program.fileno(), 0, access=mmap.ACCESS_READ) as content,
        ):
            return content.find(PRISM_LISTENS.encode()) >= 0
    except (OSError, ValueError):
        return False
