"""The console's server: a page, its live numbers as server-sent events, and questions about plans."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.resources import files
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from narrowcast.console.answers import answer_about, named_like
from narrowcast.console.desk import Desk
from narrowcast.console.guard import LOOPBACK, HttpGuard
from narrowcast.console.state import Page
from narrowcast.console.watch import SystemWatch
from narrowcast.deliver.processes.backbone import Backbone
from narrowcast.errors import InputError, NarrowcastError
from narrowcast.version import __version__

_log = logging.getLogger(__name__)

EVERY_S, LEAST_S = 1.0, 0.25
MOST_VIEWERS = 32
STATIC = {
    "/": ("narrowcast.console", "static/console.html", "text/html"),
    "/static/console.css": ("narrowcast.console", "static/console.css", "text/css"),
    "/static/console.js": ("narrowcast.console", "static/console.js", "text/javascript"),
    "/static/report.css": ("narrowcast.reports", "report.css", "text/css"),
    "/static/report.js": ("narrowcast.reports", "report.js", "text/javascript"),
}


class Console:
    """One console: what it watches, what it answers, and who looks at it."""

    def __init__(self, base: Backbone, watch: SystemWatch, desk: Desk, *, changes: bool) -> None:
        self.base, self.watch, self.desk, self.changes = base, watch, desk, changes
        self.page = Page(watch, base.system.shards, time.monotonic)
        self._viewers: set[asyncio.Queue[str | None]] = set()
        self._state: dict[str, Any] | None = None

    # Live.

    async def run(self) -> None:
        """Refresh for ever: once a second, and at once when something happens."""
        last, sampled = 0, 0.0
        while True:
            self.watch.changed.clear()
            state = self.page.state(self.base.link.nc.is_connected)
            now = time.time()
            if now - sampled >= EVERY_S * 0.95:
                sampled = now
                state["sample"] = self.page.sample(now, state)
                self.watch.samples.append(state["sample"])
            state["events"] = [event for event in self.watch.events if event["id"] > last]
            last = max((event["id"] for event in self.watch.events), default=last)
            self._state = state
            if self._viewers:
                self._tell(_event("state", state))
            await asyncio.sleep(LEAST_S)
            with suppress(TimeoutError):
                await asyncio.wait_for(self.watch.changed.wait(), EVERY_S - LEAST_S)

    def _tell(self, text: str | None) -> None:
        for queue in self._viewers:
            if queue.full():  # a viewer that is too slow misses a refresh
                queue.get_nowait()
            queue.put_nowait(text)

    def close(self) -> None:
        """End what viewers follow, and whatever is being planned for them."""
        self._tell(None)
        self.desk.close()

    async def live(self, request: Request) -> Response:
        if len(self._viewers) >= MOST_VIEWERS:
            return JSONResponse({"error": f"at most {MOST_VIEWERS} pages can look at once"}, 503)

        async def events() -> AsyncIterator[str]:
            queue: asyncio.Queue[str | None] = asyncio.Queue(4)
            self._viewers.add(queue)
            try:
                yield _event("hello", self._hello())
                if self._state is not None:
                    yield _event("state", self._state)
                while (text := await queue.get()) is not None:
                    yield text
            finally:
                self._viewers.discard(queue)

        return StreamingResponse(events(), media_type="text/event-stream")

    def _hello(self) -> dict[str, Any]:
        return {
            "version": __version__,
            "system": self.base.system.system,
            "changes": self.changes,
            "others": [str(path) for path in self.desk.others],
            "samples": list(self.watch.samples),
            "events": list(self.watch.events),
        }

    # Questions.

    async def map(self, request: Request) -> Response:
        return JSONResponse({"version": self.page.version, "svg": self.page.map})

    async def find(self, request: Request) -> Response:
        return JSONResponse({"found": named_like(self.watch, request.query_params.get("q", "")[:200])})

    async def explain(self, request: Request) -> Response:
        what, name = (request.query_params.get(each, "")[:4096] for each in ("what", "name"))
        live = answer_about(self.watch, what, name)
        try:
            behind = self.watch.subscriptions.get(name, {}).get("gateway") if what == "subscriber" else None
            planned = await self.desk.explain(what, _planned_name(self.watch, what, name), behind)
        except NarrowcastError as error:
            planned = ""
            live += f"<p>{_escaped(error)}</p>"
        return JSONResponse({"title": f"{what} {name}", "live": live, "plan": planned})

    async def about(self, request: Request) -> Response:
        return JSONResponse(self.desk.about())

    async def report(self, request: Request) -> Response:
        return JSONResponse(await self.desk.report())

    async def whatif(self, request: Request) -> Response:
        return JSONResponse(await self.desk.whatif(_whole(request.query_params.get("more"), "more", 1, 10_000)))

    # Changes.

    async def propose(self, request: Request) -> Response:
        body = await _body(request)
        budget, other = (body.get(name) for name in ("budget", "folder"))
        budget = None if budget is None else _whole(budget, "budget", 1, 1_000_000)
        other = None if other is None else _whole(other, "folder", 0, 1_000)
        return JSONResponse(await self.desk.propose(budget, other))

    async def install(self, request: Request) -> Response:
        return JSONResponse(await self.desk.install(_whole((await _body(request)).get("id"), "id", 1, 1 << 31)))

    def app(self, token: str, hosts: list[str]) -> Any:
        """The application, guarded."""
        routes = [Route(path, _static(*where)) for path, where in STATIC.items()]
        asked: list[Endpoint] = [self.live, self.map, self.find, self.explain, self.about, self.report, self.whatif]
        routes += [Route(f"/api/{call.__name__}", answering(call)) for call in asked]
        changes: list[Endpoint] = [self.propose, self.install]
        routes += [Route(f"/api/{call.__name__}", answering(call), methods=["POST"]) for call in changes]
        return HttpGuard(Starlette(routes=routes), token=token, hosts=hosts, changes=self.changes)


Endpoint = Callable[[Request], Awaitable[Response]]


def answering(call: Endpoint) -> Endpoint:
    """Whose turn it is goes into the answer: errors of ours are one line."""

    async def answer(request: Request) -> Response:
        try:
            return await call(request)
        except NarrowcastError as error:
            return JSONResponse({"error": str(error)}, 422)
        except Exception:
            _log.exception("a fault in answering %s", request.url.path)
            return JSONResponse({"error": "a fault in narrowcast itself; the console's log has more"}, 500)

    return answer


def _static(package: str, name: str, kind: str) -> Endpoint:
    body = files(package).joinpath(name).read_bytes()

    async def answer(request: Request) -> Response:
        return Response(body, media_type=kind)

    return answer


def _event(name: str, data: dict[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n"


def _escaped(error: Exception) -> str:
    from narrowcast.reports.text import e

    return e(error)


def _planned_name(watch: SystemWatch, what: str, name: str) -> str:
    """A plan knows subscribers by the names of their subscriptions: of an edge with one, that one's."""
    mine = [sub for sub, record in watch.subscriptions.items() if record["edge"] == name]
    return mine[0] if what == "subscriber" and len(mine) == 1 else name


def _whole(given: Any, name: str, least: int, most: int) -> int:
    text = str(given)
    if isinstance(given, bool) or not text.isascii() or not text.isdigit() or not least <= int(text[:20]) <= most:
        raise InputError(f"{name} must be a whole number from {least} to {most}, got {text[:40]!r}", name=name)
    return int(text)


async def _body(request: Request) -> dict[str, Any]:
    try:
        found = json.loads(await request.body())
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InputError("the body must be a JSON object", name="body")
    return found


class _Server(uvicorn.Server):
    """Signals are for whoever runs the loop."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def listening(host: str, port: int) -> socket.socket:
    """A socket for the console; InputError where the address cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host.strip("[]"), port), family=family)
    except OSError as error:
        raise InputError(f"{host}:{port} cannot be listened on: {error.strerror or error}", name="port", got=port,
                         hint="--port 0 takes a free one") from None  # fmt: skip


async def serve_console(console: Console, host: str, at: socket.socket, token: str, stop: asyncio.Event) -> None:
    """Until `stop` is set.

    Parameters
    ----------
    host : only requests to this name, or to loopback where it is that, are answered
    at : what `listening` gave
    token : what a page must know
    """
    port = at.getsockname()[1]
    named = {*LOOPBACK, host} if host in LOOPBACK else {host}
    app = console.app(token, [f"{name}:{port}" for name in sorted(named)])
    settings = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=1, lifespan="off",
        ws="none",
    )  # fmt: skip
    server = _Server(settings)
    works: list[Any] = [console.watch.follow(console.base), console.run()]
    works += [console.desk.offers.watch()] if console.desk.offers is not None else []
    tasks = [asyncio.ensure_future(work) for work in works]
    serving, stopped = asyncio.ensure_future(server.serve([at])), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({serving, stopped, *tasks}, return_when=asyncio.FIRST_COMPLETED)
        for task in (*tasks, serving):
            if task.done():
                task.result()
    finally:
        for task in (*tasks, stopped):
            task.cancel()
        console.close()
        server.should_exit = True
        with suppress(asyncio.CancelledError):
            await serving
