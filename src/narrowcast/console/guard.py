"""Who may ask for what: the right host, the token, and for a change the page itself."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from starlette.responses import JSONResponse

from narrowcast.deliver.transport.private_file import write_private

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
MOST_BODY = 64 << 10
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


def token_in(path: Path) -> str:
    """The token of a console: made at its first start, kept in a file that its owner alone may read."""
    if path.is_file() and (found := path.read_text(encoding="utf-8").strip()):
        return found
    made = secrets.token_urlsafe(24)
    write_private(path, made + "\n")
    return made


class HttpGuard:
    """Around an application. A page elsewhere cannot get in: its host is not ours, and it does not know the token.

    The token comes in a header, not in a cookie: a browser sends it to nobody by itself.
    """

    def __init__(self, app: Any, *, token: str, hosts: Collection[str], changes: bool) -> None:
        self._app, self._token, self._hosts, self._changes = app, token.encode(), frozenset(hosts), changes

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refused = self._refused(scope)
        answer: Callable[..., Any] = self._app if refused is None else refused
        await answer(scope, receive, _with_headers(send))

    def _refused(self, scope: Any) -> JSONResponse | None:
        headers: dict[bytes, bytes] = {}
        for name, value in scope["headers"]:
            if name in headers and name in (b"host", b"authorization", b"origin"):
                return _no(400, "a header was sent twice")
            headers[name] = value
        host = headers.get(b"host", b"").decode("latin-1")
        if host not in self._hosts:
            return _no(421, "this console does not answer to that host name")
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return _no(405, "method must be GET or POST")
        if scope["path"].startswith("/api/"):
            given = headers.get(b"authorization", b"")
            if not secrets.compare_digest(given, b"Bearer " + self._token):
                return _no(401, "the token is missing or wrong")
        if scope["method"] == "POST":
            return self._change_refused(host, headers)
        return None

    def _change_refused(self, host: str, headers: dict[bytes, bytes]) -> JSONResponse | None:
        if headers.get(b"origin") != f"http://{host}".encode():
            return _no(403, "changes are taken from the console's own page alone")
        if headers.get(b"content-type", b"").split(b";")[0] != b"application/json":
            return _no(415, "content-type must be application/json")
        length = headers.get(b"content-length", b"")
        if not length.isdigit() or int(length) > MOST_BODY:
            return _no(413, f"a body must have a content-length of at most {MOST_BODY}")
        if not self._changes:
            return _no(403, "this console only shows; start it with --allow-changes to propose and install plans")
        return None


def _no(status: int, why: str) -> JSONResponse:
    return JSONResponse({"error": why}, status)


def _with_headers(send: Any) -> Any:
    async def sending(message: Any) -> None:
        if message["type"] == "http.response.start":
            extra = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
            message = message | {"headers": [*message.get("headers", ()), *extra]}
        await send(message)

    return sending
