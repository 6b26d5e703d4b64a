"""The rules by which a request is answered.

Methods, the name of the host, the token, and headers for the browser.

A server on a loopback address answers only requests for a loopback name. Otherwise a page from another site
could make its own name lead to 127.0.0.1 and read the answers (DNS rebinding). For other addresses the valid
names are not known here, and a token is demanded instead (`token_of`).

The token comes as `Authorization: Bearer TOKEN`, or once as `?token=TOKEN`: the answer then sets a cookie and
redirects to the address without the token. The cookie holds a keyed hash, which does not show the token. A
browser sends the cookie to every port of the host, so its name has the port.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import ipaddress
import re
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from ...core.errors import ConfigError

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LEAST_TOKEN = 16
"""The fewest characters of a token: a shorter token could be guessed."""

_BOLD = base64.b64encode(hashlib.sha256(b"font-weight:bold").digest()).decode()

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; "
    f"style-src 'self' 'unsafe-hashes' 'sha256-{_BOLD}'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
"""Headers of every answer. The browser may load only the server's own files as code and styles. One style
attribute is allowed in the page: plotly uses it to make the words of a label bold.
"""


def is_loopback(host: str) -> bool:
    """Return whether a name or address is of this machine alone.

    >>> [is_loopback(host) for host in ("localhost", "127.0.0.1", "::1", "0.0.0.0", "example.org")]
    [True, True, True, False, False]
    """
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def token_of(option: str, text: str | None, host: str) -> str | None:
    """Return the token that an option gives: its text, or with @FILE the first line of a file.

    Raises ConfigError if a host beyond this machine has no token, and for a token that could be guessed.
    """
    if text is None:
        if not is_loopback(host):
            raise ConfigError(
                f"{host or 'every address'} is seen by other machines; say who may look with {option} "
                "@FILE, a file whose first line is a secret, such as from: openssl rand -hex 32"
            )
        return None
    token = text
    if text.startswith("@"):
        try:
            lines = Path(text[1:]).read_text("utf-8").splitlines()
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "it is not text"
            raise ConfigError(f"{option} {text} cannot be read: {why}") from None
        token = lines[0].strip() if lines else ""
    if len(token) < LEAST_TOKEN or not all("!" <= letter <= "~" for letter in token):
        raise ConfigError(
            f"{option}: a token has {LEAST_TOKEN} or more letters, digits and signs, and no spaces; make one "
            "with: openssl rand -hex 32"
        )
    return token


class Guard:
    """An ASGI application around another, which gets only the requests that may be answered."""

    def __init__(self, app: App, *, host: str, port: int, token: str | None) -> None:
        self._app = app
        self._local = is_loopback(host)
        self._token = token
        self._name = f"rocsteady-{port}"
        key = b"" if token is None else token.encode()
        self._cookie = hmac.new(key, b"rocsteady: cookie of a served page", hashlib.sha256).hexdigest()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1").lower(): value for name, value in scope["headers"]}
        refused = self._refusal(scope, headers)
        if refused is not None:
            status, text, more = refused
            await _answer(send, status, text, more)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                there = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *(pair for pair in _ENCODED if pair[0] not in there),
                ]
            await send(message)

        await self._app(scope, receive, with_headers)

    def _refusal(self, scope: Scope, headers: dict[str, bytes]) -> tuple[int, str, dict[str, str]] | None:
        """Return the status, text and headers that refuse a request; None if the request may be answered."""
        if scope["method"] not in ("GET", "HEAD"):
            return 405, "Only GET and HEAD: nothing here can be changed.", {"allow": "GET, HEAD"}
        if self._local and not is_loopback(_host_in(headers.get("host", b"").decode("latin-1"))):
            return 421, "This server is for the names localhost and 127.0.0.1 alone.", {}
        if self._token is None:
            return None
        given = headers.get("authorization", b"")
        if given[:7].lower() == b"bearer " and self._is_token(given[7:].strip()):
            return None
        if any(_same(value, self._cookie.encode()) for value in self._cookies_in(headers)):
            return None
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if any(name == "token" and self._is_token(value.encode("utf-8")) for name, value in query):
            rest = urlencode([(name, value) for name, value in query if name != "token"])
            secure = "; Secure" if scope.get("scheme") == "https" else ""
            return 303, "", {
                "location": "./" + quote(scope["path"].rpartition("/")[2]) + ("?" + rest if rest else ""),
                "set-cookie": f"{self._name}={self._cookie}; Path=/; HttpOnly; SameSite=Lax{secure}",
            }  # fmt: skip
        return 401, (
            "A token is needed: Authorization: Bearer TOKEN, or in a browser once ?token=TOKEN."
        ), {"www-authenticate": 'Bearer realm="rocsteady"'}  # fmt: skip

    def _is_token(self, given: bytes) -> bool:
        return self._token is not None and _same(given, self._token.encode())

    def _cookies_in(self, headers: dict[str, bytes]) -> list[bytes]:
        """Return the values of this server's cookie; other programs may set cookies of any form."""
        pairs = (pair.partition(b"=") for pair in headers.get("cookie", b"").split(b";"))
        return [value.strip() for name, _, value in pairs if name.strip() == self._name.encode()]


def _same(one: bytes, other: bytes) -> bool:
    """Return whether two texts are equal, in a time that does not show how much of them is equal."""
    return hmac.compare_digest(hashlib.sha256(one).digest(), hashlib.sha256(other).digest())


def _host_in(header: str) -> str:
    """Return the name in a Host header, without its port; "" for a text that is no name and port.

    >>> _host_in("localhost:8080"), _host_in("[::1]:80"), _host_in("localhost:80@evil.example")
    ('localhost', '::1', '')
    """
    found = _HOST.fullmatch(header)
    return "" if found is None else found[1] or found[2]


_HOST = re.compile(r"(?:\[([0-9a-fA-F:.]+)\]|([\w.-]+))(?::\d*)?", re.ASCII)


_ENCODED = [
    *((name.encode(), value.encode()) for name, value in HEADERS.items()),
    (b"cache-control", b"no-store"),
]


async def _answer(send: Send, status: int, text: str, more: dict[str, str]) -> None:
    headers = [*_ENCODED, (b"content-type", b"text/plain; charset=utf-8")]
    headers += [(b"connection", b"close")]  # so that a stranger holds no connection
    headers += [(name.encode("latin-1"), value.encode("latin-1")) for name, value in more.items()]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": f"{text}\n".encode()})
