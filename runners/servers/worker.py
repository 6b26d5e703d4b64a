"""One Python worker, started by a runner: `python -m rocsteady.runners.servers.worker --id=... ...`.

A runner gives the address of its provisioning service; that one gives the pipeline's options and the other
addresses, which Beam's own worker reads from the environment.
"""

from __future__ import annotations

import argparse
import os
import sys

import grpc
from apache_beam.portability.api import beam_provision_api_pb2, beam_provision_api_pb2_grpc
from google.protobuf import json_format


def main() -> None:
    """Ask the runner for the worker's environment, then be that worker until the runner is done."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--id", required=True)
    parser.add_argument("--provision_endpoint", required=True)
    words, _ = parser.parse_known_args()
    with grpc.insecure_channel(words.provision_endpoint) as channel:
        stub = beam_provision_api_pb2_grpc.ProvisionServiceStub(channel)
        request = beam_provision_api_pb2.GetProvisionInfoRequest()
        info = stub.GetProvisionInfo(request, metadata=[("worker_id", words.id)], timeout=60).info
    os.environ["WORKER_ID"] = words.id
    os.environ["PIPELINE_OPTIONS"] = json_format.MessageToJson(info.pipeline_options)
    os.environ["RUNNER_CAPABILITIES"] = " ".join(info.runner_capabilities)
    os.environ["LOGGING_API_SERVICE_DESCRIPTOR"] = str(info.logging_endpoint)
    os.environ["CONTROL_API_SERVICE_DESCRIPTOR"] = str(info.control_endpoint)
    if info.HasField("status_endpoint"):
        os.environ["STATUS_API_SERVICE_DESCRIPTOR"] = str(info.status_endpoint)
    from apache_beam.runners.worker import sdk_worker_main

    sdk_worker_main.main(sys.argv)


if __name__ == "__main__":
    main()
