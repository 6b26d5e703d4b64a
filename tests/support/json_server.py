"""A server on this machine that answers every GET with JSON."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any


@contextmanager
def json_server(answer: Callable[[str], Any]) -> Iterator[str]:
    """Yield host:port of a server.

    answer  gets the path that is asked for; returns what becomes JSON, or bytes to send as they are
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            said = answer(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(said if isinstance(said, bytes) else json.dumps(said).encode())

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
