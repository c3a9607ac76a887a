"""The overlay on ZeroMQ: one socket per link, encrypted, and nobody is admitted who is not on the list.

A broker listens at one ROUTER. Whoever sends to it, a source, a broker above or an edge, has a DEALER
of its own to it, named after the node: so a broker reaches its edges back through the same link. We
choose the tree; ZeroMQ's own subscriptions, which would go to every upstream, are not used.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from narrowcast.deliver.routing.address import Address, Link, Overlay
from narrowcast.deliver.transport.bounded import ended
from narrowcast.deliver.transport.extra import engine
from narrowcast.deliver.transport.protocols import Receive
from narrowcast.deliver.transport.zmq.guard import Guard
from narrowcast.deliver.transport.zmq.keys import key_pair
from narrowcast.errors import TransportError

log = logging.getLogger(__name__)
WATER = 10_000  # frames that wait at a link, on either side
BURST, BURST_S = 256, 0.005  # frames handed over at once, and for how long, before others get their turn
KNOCK_S, KNOCK_MOST_S = 0.5, 30.0  # one that was turned away knocks again, ever more rarely
LOOK = 0.05  # seconds after which sockets are looked at, should a notice have been swallowed


class ZmqOverlay:
    """`Carrier` for `Overlay` (frames enter at the root) and `Link` addresses.

    `brokers` says where each broker listens and its public key; `key` names our own key, if it is not
    the node's. A full link makes the sender wait up to `patience`; then the frame is dropped and counted,
    never silently. A broker that dies costs what was in flight; the log has it. One that turns us away is
    tried again now and then: we may have been put on its list.
    """

    def __init__(
        self,
        node: str,
        brokers: Mapping[str, tuple[str, str]],
        keys: Path,
        *,
        key: str | None = None,
        listen: bool = False,
        patience: float = 0.25,
    ) -> None:
        self.node, self.brokers, self._keys, self._listen, self._patience = node, brokers, keys, listen, patience
        self._key = key or node
        self.counts: Counter[str] = Counter()
        self._links: dict[str, Any] = {}
        self._turned: dict[str, tuple[float, float]] = {}  # by broker: how long to wait this time, and until when
        self._router: Any = None
        self._stuck: dict[str, float] = {}
        self._closed = True
        self._more: set[Any] = set()  # sockets that had more than was taken at once
        self._timer: asyncio.TimerHandle | None = None

    @property
    def behind(self) -> bool:
        """Whether more stands ready than was handed over at once."""
        return bool(self._more)

    async def start(self, receive: Receive) -> None:
        zmq = self._zmq = engine("zmq")
        self._loop = asyncio.get_running_loop()
        self._receive = receive
        self._context = zmq.Context()
        self._closed = False
        self._public, self._secret = key_pair(self._keys, self._key)
        if self._listen:
            self._guard = Guard(self._context, self._keys)
            self._guard.start()
            self._bind()
        self._look()

    async def join(self, address: Address) -> None:
        """Nothing to do: a tree's frames come by the links of those who attach."""
        self._next_hop(address)

    async def leave(self, address: Address) -> None:
        """Nothing to do either."""

    async def send(self, address: Address, data: bytes) -> None:
        node = self._next_hop(address)
        if not self._pass(node, data) and not await self._try_again(node, data):
            self.counts["frames dropped"] += 1
            return
        self.counts["frames sent"] += 1
        self.counts["bytes sent"] += len(data)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        for node in list(self._links):
            self._unlink(node)
        if self._router is not None:
            self._loop.remove_reader(self._router.fileno())
            self._router.close(linger=0)
        await ended("the overlay", self._end)

    def _end(self) -> None:
        """A context waits for its sockets for ever: so none may be left, the guard's included."""
        if self._listen:
            self._guard.stop()
        self._context.destroy(linger=0)

    # Sending.

    def _next_hop(self, address: Address) -> str:
        if isinstance(address, Overlay):
            return address.root
        if isinstance(address, Link):
            return address.node
        raise TransportError(f"the overlay carries trees and links only, not {address}", endpoint=str(address))

    def _pass(self, node: str, data: bytes) -> bool:
        """Hand a frame to the link; False if there is no room, or nobody there yet."""
        zmq = self._zmq
        try:
            if node in self.brokers:
                if self._loop.time() < self._turned.get(node, (0.0, 0.0))[1]:
                    return False
                self._link(node).send(data, zmq.DONTWAIT, copy=False)
            elif self._router is not None:
                self._router.send_multipart((node.encode(), data), zmq.DONTWAIT)
            else:
                raise TransportError(f"no address is known for node {node}", endpoint=node)
        except zmq.Again:
            return False
        except zmq.ZMQError as error:
            if error.errno != zmq.EHOSTUNREACH:
                raise TransportError(f"the link to {node} failed: {error}", endpoint=node) from None
            self.counts["frames to nobody"] += 1
        return True

    async def _try_again(self, node: str, data: bytes) -> bool:
        """Wait for room; but after one wait in vain not for every frame."""
        self.counts["waits"] += 1
        end = self._loop.time() + self._patience
        if self._loop.time() < self._stuck.get(node, 0.0):
            return False
        while self._loop.time() < end:
            await asyncio.sleep(0.001)
            if self._pass(node, data):
                return True
        self._stuck[node] = self._loop.time() + self._patience
        return False

    def _link(self, node: str) -> Any:
        socket = self._links.get(node)
        if socket is None:
            zmq = self._zmq
            at, public = self.brokers[node]
            socket = self._socket(zmq.DEALER)
            socket.setsockopt(zmq.IDENTITY, self.node.encode())
            socket.curve_serverkey = public.encode()
            socket.setsockopt(zmq.RECONNECT_IVL, 50)
            socket.setsockopt(zmq.RECONNECT_IVL_MAX, 500)
            socket.get_monitor_socket(zmq.EVENT_HANDSHAKE_FAILED_AUTH)
            socket.connect(at)
            self._links[node] = socket
            self._watch(socket)
        return socket

    def _unlink(self, node: str) -> None:
        socket = self._links.pop(node)
        self._loop.remove_reader(socket.fileno())
        monitor = socket.get_monitor_socket()
        socket.disable_monitor()
        monitor.close(linger=0)
        socket.close(linger=0)

    def _mind_refusals(self) -> None:
        """ZeroMQ gives up on a broker that turned it away; we come back later, with a new socket."""
        for node, socket in list(self._links.items()):
            try:
                socket.get_monitor_socket().recv_multipart(self._zmq.DONTWAIT)
            except self._zmq.Again:
                continue
            wait = min(2 * self._turned[node][0], KNOCK_MOST_S) if node in self._turned else KNOCK_S
            if node not in self._turned:
                why = f"the key {self._public} of {self._key} is not on its list"
                log.warning("%s: broker %s refused the connection: %s; retrying", self.node, node, why)
            self._turned[node] = (wait, self._loop.time() + wait)
            self.counts["turned away"] += 1
            self._unlink(node)

    def _bind(self) -> None:
        zmq = self._zmq
        at = self.brokers.get(self.node)
        if at is None:
            raise TransportError(f"overlay.brokers has no address for broker {self.node}", endpoint=self.node)
        self._router = self._socket(zmq.ROUTER)
        self._router.curve_server = True
        self._router.setsockopt(zmq.ZAP_DOMAIN, b"narrowcast")
        self._router.setsockopt(zmq.ROUTER_MANDATORY, 1)  # say so instead of dropping
        self._router.setsockopt(zmq.ROUTER_HANDOVER, 1)  # a node that came back takes its name back
        try:
            self._router.bind(at[0])
        except zmq.ZMQError as error:
            self._router.close(linger=0)
            self._router = None
            self._guard.stop()
            raise TransportError(f"broker {self.node} cannot listen at {at[0]}: {error}", endpoint=at[0]) from None
        self._watch(self._router)

    def _socket(self, kind: int) -> Any:
        zmq = self._zmq
        socket = self._context.socket(kind)
        for option in (zmq.SNDHWM, zmq.RCVHWM):
            socket.setsockopt(option, WATER)
        socket.setsockopt(zmq.HEARTBEAT_IVL, 1000)
        socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, 3000)
        socket.setsockopt(zmq.MAXMSGSIZE, 1 << 20)
        socket.curve_publickey, socket.curve_secretkey = self._public.encode(), self._secret.encode()
        return socket

    # Receiving. A socket's file descriptor tells of a change once; so everything there is taken.

    def _watch(self, socket: Any) -> None:
        self._loop.add_reader(socket.fileno(), self._take, socket)

    def _take(self, socket: Any) -> None:
        zmq = self._zmq
        if self._closed or socket.closed:
            return
        until = self._loop.time() + BURST_S
        for _ in range(BURST):
            try:
                data = socket.recv_multipart(zmq.DONTWAIT)[-1]
            except zmq.Again:
                return
            self.counts["frames"] += 1
            self.counts["bytes"] += len(data)
            self._receive(data)
            if self._loop.time() > until:
                break
        if socket not in self._more:
            self._more.add(socket)
            self._loop.call_soon(self._take_more, socket)

    def _take_more(self, socket: Any) -> None:
        self._more.discard(socket)
        self._take(socket)

    def _look(self) -> None:
        """Sending may swallow the notice of something to receive: look now and then all the same."""
        if self._closed:
            return
        self._mind_refusals()
        for socket in [*self._links.values(), *([self._router] if self._router else [])]:
            self._take(socket)
        self._timer = self._loop.call_later(LOOK, self._look)
