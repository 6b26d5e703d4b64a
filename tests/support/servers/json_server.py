"""A server on this machine that answers every GET with JSON, and every POST as a test says."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Posted(NamedTuple):
    """A POST that came."""

    path: str
    headers: Mapping[str, str]
    body: bytes


@contextmanager
def json_server(
    answer: Callable[[str], Any] | None = None,
    take: Callable[[Posted], int | tuple[int, dict[str, str]]] | None = None,
) -> Iterator[str]:
    """Yield host:port of a server.

    answer  gets the path that is asked for; returns what becomes JSON, or bytes to send as they are
    take    gets a POST; returns the status of its answer, or (status, headers)
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            said = answer(self.path) if answer is not None else None
            self.send_response(200)
            self.end_headers()
            self.wfile.write(said if isinstance(said, bytes) else json.dumps(said).encode())

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            told = 404 if take is None else take(Posted(self.path, dict(self.headers), body))
            status, headers = told if isinstance(told, tuple) else (told, {})
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
