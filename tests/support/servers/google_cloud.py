"""Dataflow and Cloud Storage as a launcher meets them: servers on this machine that take real requests.

Beam's own client sends its request for a job to an address of this machine (`--dataflow_endpoint`). The
server keeps the request, and answers as if the job were done. Cloud Storage is the package
gcp-storage-emulator. The credentials are those of a service account, with a key made here. Its tokens come
from a server of this machine, too.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from apache_beam.portability.api import beam_runner_api_pb2 as proto

from tests.support.requirements import deploy

BUCKET = "bucket-of-tests"
IMAGE = "europe-docker.pkg.dev/project-a/images/rocsteady-dataflow:0.1.0"


class Request:
    """A request for a job: its path, the job as the service's own type, and the staged graph."""

    def __init__(self, path: str, body: bytes, cloud: Cloud) -> None:
        from google.cloud import dataflow

        self.path = path.partition("?")[0]
        self.json = json.loads(body)
        self.job = dataflow.Job.from_json(body.decode(), ignore_unknown_fields=False)
        self.options = self.json["environment"]["sdkPipelineOptions"]["options"]
        self.staged = cloud.read(self.options["pipelineUrl"])
        self.graph = proto.Pipeline.FromString(self.staged)


class Cloud:
    """The two servers. `flags` are the options by which a job goes to them."""

    def __init__(self, endpoint: str) -> None:
        from google.cloud import storage

        self.requests: list[Request] = []
        self.folder = f"gs://{BUCKET}"
        self._bucket = storage.Client.create_anonymous_client().bucket(BUCKET)
        self.flags = [
            "--project=project-a", "--region=europe-west1", f"--temp_location={self.folder}/tmp",
            f"--dataflow_endpoint={endpoint}", f"--sdk_container_image={IMAGE}",
        ]  # fmt: skip

    def write(self, name: str, text: str) -> str:
        """Make an object; return its URL."""
        self._bucket.blob(name).upload_from_string(text)
        return f"{self.folder}/{name}"

    def read(self, url: str) -> bytes:
        """Return the content of an object, or of a file of this machine."""
        if not url.startswith("gs://"):
            return Path(url).read_bytes()
        content: bytes = self._bucket.blob(url.removeprefix(f"{self.folder}/")).download_as_bytes()
        return content

    def names(self, prefix: str) -> list[str]:
        """Return the URLs of objects, sorted."""
        found = self._bucket.client.list_blobs(BUCKET, prefix=prefix)
        return sorted(f"{self.folder}/{blob.name}" for blob in found)


def service_account(endpoint: str) -> str:
    """Return the credentials of a service account, as the file that Google gives to its owner."""
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = rsa.generate_private_key(65537, 2048)
    return json.dumps(
        {
            "type": "service_account",
            "project_id": "project-a",
            "client_email": "tests@project-a.iam.gserviceaccount.com",
            "private_key": key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode(),
            "token_uri": f"{endpoint}/token",
        }
    )


@contextmanager
def google_cloud(folder: Path) -> Iterator[Cloud]:
    """Yield the servers; clients of this process and of its child processes use them, and the credentials.

    folder  gets the file of the credentials
    """
    deploy("google.cloud.dataflow", "gcp_storage_emulator.server")
    from gcp_storage_emulator.server import create_server

    logging.getLogger("gcp_storage_emulator").setLevel(logging.CRITICAL)
    objects = create_server("127.0.0.1", 0, in_memory=True, default_bucket=BUCKET)

    class Dataflow(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path == "/token":
                self._answer({"access_token": "of-tests", "token_type": "Bearer", "expires_in": 3600})
                return
            asked = json.loads(body)
            cloud.requests.append(Request(self.path, body, cloud))
            done = {name: asked[name] for name in ("name", "clientRequestId")}
            self._answer({**done, "id": "job-1", "currentState": "JOB_STATE_DONE"})

        def do_GET(self) -> None:  # what the job counted
            self._answer({})

        def _answer(self, said: dict[str, Any]) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(said).encode())

        def log_message(self, *_: object) -> None:
            pass

    service = ThreadingHTTPServer(("localhost", 0), Dataflow)
    thread = threading.Thread(target=service.serve_forever)
    with pytest.MonkeyPatch.context() as patch:
        objects.start()
        patch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{objects._api._httpd.server_port}")
        endpoint = f"http://localhost:{service.server_port}"
        (folder / "credentials.json").write_text(service_account(endpoint))
        patch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(folder / "credentials.json"))
        patch.setenv("NO_GCE_CHECK", "true")
        patch.setenv("CLOUDSDK_CONFIG", os.devnull)  # where gcloud keeps credentials
        cloud = Cloud(endpoint)
        thread.start()
        try:
            yield cloud
        finally:
            service.shutdown()
            thread.join()
            service.server_close()
            objects.stop()
