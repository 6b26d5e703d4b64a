"""Python workers: one worker that a runner starts, or a pool that starts a worker for each runner that asks.

    rocsteady-worker --id=... --provision_endpoint=...    one worker; the words are the runner's
    rocsteady-worker --pool 50000                         a pool, for --environment_type=EXTERNAL

A runner gives the address of its provisioning service; this service gives the pipeline's options and the
other addresses, which Beam's own worker reads from the environment.

A pool runs the commands that it is asked to run, and asks for no password. So it listens on 127.0.0.1, unless
a host is named. (Beam's own pool, `worker_pool_main`, listens on every address, and its workers cache no
state; 2.77.)
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from argparse import RawDescriptionHelpFormatter
from pathlib import Path

import grpc
from apache_beam.portability.api import (
    beam_fn_api_pb2_grpc,
    beam_provision_api_pb2,
    beam_provision_api_pb2_grpc,
)
from google.protobuf import json_format

from ...core.process.console import ConsoleParser, say
from ...core.process.temporary_folders import temporary_folder
from .processes import HOST, THIS_MACHINE, ServerError


def main() -> int:
    """Run one worker until the runner is done, or a pool until SIGINT or SIGTERM; return the exit status."""
    parser = ConsoleParser(prog="rocsteady-worker", description=__doc__, allow_abbrev=False,
                           formatter_class=RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--pool", metavar="[HOST:]PORT", help=f"be a pool of workers there [HOST: {HOST}]")
    parser.add_argument("--id", help="of the worker; a runner says it")
    parser.add_argument("--provision_endpoint", metavar="HOST:PORT", help="of the runner; it says that, too")
    words, _ = parser.parse_known_args()
    if words.pool is not None:
        try:
            run_pool(words.pool)
        except ServerError as error:
            say(error)
            return 2
        return 0
    if words.id is None or words.provision_endpoint is None:
        parser.error("give --pool PORT; a runner that starts a worker gives --id and --provision_endpoint")
    run_worker(words.id, words.provision_endpoint)
    return 0


def run_worker(name: str, provision_endpoint: str) -> None:
    """Ask the runner for the worker's environment, then run that worker until the runner is done."""
    with grpc.insecure_channel(provision_endpoint) as channel:
        stub = beam_provision_api_pb2_grpc.ProvisionServiceStub(channel)
        request = beam_provision_api_pb2.GetProvisionInfoRequest()
        info = stub.GetProvisionInfo(request, metadata=[("worker_id", name)], timeout=60).info
    os.environ["WORKER_ID"] = name
    os.environ["PIPELINE_OPTIONS"] = json_format.MessageToJson(info.pipeline_options)
    os.environ["RUNNER_CAPABILITIES"] = " ".join(info.runner_capabilities)
    os.environ["LOGGING_API_SERVICE_DESCRIPTOR"] = str(info.logging_endpoint)
    os.environ["CONTROL_API_SERVICE_DESCRIPTOR"] = str(info.control_endpoint)
    if info.HasField("status_endpoint"):
        os.environ["STATUS_API_SERVICE_DESCRIPTOR"] = str(info.status_endpoint)
    from apache_beam.runners.worker import sdk_worker_main

    sdk_worker_main.main(sys.argv)


def run_pool(address: str) -> None:
    """Start workers for runners that ask at an address, "[HOST:]PORT", until SIGINT or SIGTERM.

    Raises ServerError if the pool cannot listen at the address.
    """
    from apache_beam.runners.worker.worker_pool_main import (
        BeamFnExternalWorkerPoolServicer,
        kill_process_gracefully,
    )
    from apache_beam.utils import thread_pool_executor

    from .flink import worker_program

    host, _, port = address.rpartition(":")
    host = host or HOST
    if not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise ServerError(f"--pool {address}: give PORT or HOST:PORT, with a port from 1 to 65535")
    asked_to_end = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: asked_to_end.set())
    with temporary_folder() as folder:
        pool = BeamFnExternalWorkerPoolServicer(
            use_process=True, container_executable=str(worker_program(Path(folder)))
        )
        # A runner pings its open connection; by default a gRPC server takes these pings for an attack.
        server = grpc.server(
            thread_pool_executor.shared_unbounded_instance(),
            options=[("grpc.http2.max_pings_without_data", 0), ("grpc.http2.max_ping_strikes", 0),
                     ("grpc.so_reuseport", 0)],
        )  # fmt: skip
        beam_fn_api_pb2_grpc.add_BeamFnExternalWorkerPoolServicer_to_server(pool, server)
        try:
            server.add_insecure_port(f"{host}:{port}")
        except RuntimeError:
            raise ServerError(
                f"--pool {address}: nothing can listen at {host}:{port}; another process may listen "
                "there, or the host is not this machine; choose another"
            ) from None
        server.start()
        say(f"a pool of workers listens at {host}:{port}")
        if host.strip("[]") not in THIS_MACHINE:
            say(
                f"whoever reaches {host}:{port} runs commands as this user; close the port to all "
                "machines but those of the cluster (docs/how-to/network.md)"
            )
        asked_to_end.wait()
        server.stop(0)
        for process in list(pool._worker_processes.values()):
            kill_process_gracefully(process)


if __name__ == "__main__":
    sys.exit(main())
