"""Runs the application in a thread of its own, beside the command or the job."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...core.errors import InputError
from ...core.process.imports import missing_package
from .keeper import Keeper

_GRACE_SECONDS = 2

REQUEST_SECONDS = 10.0
"""Seconds after which a connection is closed that has not sent the head of a request."""


def check_packages(option: str, extra: str = "serve") -> None:
    """Raise MissingPackageError if packages of the extra `serve` are missing.

    option  the option or command that needs them
    extra   the extra, or the extras, that the error tells to install
    """
    try:
        import prometheus_client
        import starlette
        import uvicorn
    except ImportError as error:
        raise missing_package(error.name or "starlette", option, extra) from None
    assert prometheus_client
    assert starlette
    assert uvicorn


def _protocol() -> type[asyncio.Protocol]:
    """Return a class of uvicorn's protocol that limits the wait for the head of a first request."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Protocol(H11Protocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.loop.call_later(REQUEST_SECONDS, self._close_if_silent)

        def _close_if_silent(self) -> None:
            begun: object = self.cycle  # this is None before the first request, whatever its declaration says
            if begun is None and not self.transport.is_closing():
                self.transport.close()

    return Protocol


@contextmanager
def serving(keeper: Keeper, option: str, host: str, port: int, token: str | None) -> Iterator[str]:
    """Serve a keeper's pages while the block runs; yield the address of the page.

    option  the option that asks for the page, for errors
    port    0 = a free port

    Raises InputError if nothing can listen at the address.
    """
    check_packages(option)
    import uvicorn

    from .app import Server, application

    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.create_server((host, port), family=family, backlog=128)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(
            f"{option} {host}:{port}: nothing can listen there ({why}); name another port, or end what has it"
        ) from None
    port = listening.getsockname()[1]
    server = Server(keeper)
    config = uvicorn.Config(
        application(server, host=host, port=port, token=token),
        http=_protocol(),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        limit_concurrency=500,
    )
    runs = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(runs.serve([listening])), daemon=True)
    thread.start()
    try:
        yield f"http://{f'[{host}]' if ':' in host else host}:{port}/"
    finally:
        server.ended.set()
        keeper.wake()  # so that streams that wait see that they must end
        runs.should_exit = True
        thread.join(2 * _GRACE_SECONDS + 1)
        listening.close()
