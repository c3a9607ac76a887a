"""One connection to NATS, shared by log, registry and unicast carrier. It comes back by itself."""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from narrowcast.deliver.transport.allocator import keep_freed_memory
from narrowcast.deliver.transport.extra import engine
from narrowcast.deliver.transport.nats.at_once import Requests, header_lines, listen_at_once
from narrowcast.deliver.transport.protocols import FinalError
from narrowcast.deliver.transport.retry import PATIENCE_S, retried
from narrowcast.errors import InputError, TransportError

log = logging.getLogger(__name__)
CLOSE_S = 5.0
ANSWER_S = 5  # for each step of connecting
READ_BYTES = 256 << 10  # at a time; the library's 32 kB make large entries twice as dear
IN_USE, NO_CLUSTER = 10058, 10074
GATED = ("publisher", "subscriber")  # roles that reach log and registry through the gate alone
TLS = ("ca", "cert", "key")


class NatsTarget(NamedTuple):
    """Whom a URL of NATS names: servers with credentials, the account, its role, and files for TLS by name."""

    servers: tuple[str, ...]
    account: str
    role: str
    files: dict[str, str]

    @property
    def is_gated(self) -> bool:
        return self.role in GATED

    def context(self) -> ssl.SSLContext | None:
        """For TLS, with the authority that the URL names; None: as the server and the library have it."""
        if not self.files:
            return None
        try:
            made = ssl.create_default_context(cafile=self.files.get("ca"))
            if "cert" in self.files:
                made.load_cert_chain(self.files["cert"], self.files.get("key"))
        except OSError as error:
            names = ", ".join(self.files.values())
            raise InputError(f"{names}: {error.strerror or error}", name="ca", got=names) from None
        return made


class NatsLink:
    """A connection; `system` keeps several narrowcast systems on one server apart."""

    def __init__(self, connection: Any, system: str, target: NatsTarget | None = None) -> None:
        self.nc = connection
        self.js = connection.jetstream(timeout=2.0)
        self.requests = Requests(connection)
        self.system, self.target = system, target or NatsTarget((), "", "", {})
        self.reconnects = 0
        self.on_refused: Callable[[str], None] = lambda why: None  # the server does not let us in any more
        self._again: list[Callable[[], None]] = []
        self._end: asyncio.Future[None] | None = None

    def on_reconnect(self, call: Callable[[], None]) -> Callable[[], None]:
        """Have `call` called after each reconnection; returns how to stop that."""
        self._again.append(call)
        return lambda: self._again.remove(call) if call in self._again else None

    async def publish(self, subject: str, data: bytes) -> None:
        """Tell whoever listens, if anybody does."""
        try:
            await self.nc.publish(f"{self.system}.{subject}", data)
        except (engine("nats").errors.Error, OSError) as error:
            raise TransportError(f"NATS did not accept the message: {error}", endpoint=subject) from None

    async def listen(self, subject: str, heard: Callable[[bytes], None]) -> None:
        await listen_at_once(self.nc, f"{self.system}.{subject}", lambda message: heard(message.data))

    async def ask(self, subject: str, data: bytes, timeout: float) -> bytes:
        """Ask whoever serves a subject."""
        try:
            return await self.requests.ask(f"{self.system}.{subject}", data, timeout)
        except (engine("nats").errors.Error, TimeoutError, OSError) as error:
            why = str(error) or type(error).__name__
            raise TransportError(f"nobody answers: {why}", endpoint=f"{self.system}.{subject}") from None

    async def append(self, subject: str, data: bytes, timeout: float, headers: dict[str, str]) -> int:
        """Have a stream take a message: its sequence number there. Raises what JetStream's own `publish` does."""
        try:
            return _sequence(await self.requests.ask(subject, data, timeout, headers))
        except engine("nats").errors.NoRespondersError:
            raise engine("nats.js.errors").NoStreamResponseError from None

    def append_now(
        self,
        subject: str,
        data: bytes,
        timeout: float,
        headers: dict[str, str],
        done: Callable[[int | Exception], None],
    ) -> bool:
        """The same without a turn of the loop before or after; False if that cannot be now."""

        def answered(found: bytes | Exception) -> None:
            if isinstance(found, engine("nats").errors.NoRespondersError):
                found = engine("nats.js.errors").NoStreamResponseError()
            if isinstance(found, bytes):
                try:
                    done(_sequence(found))
                    return
                except (engine("nats.js.errors").APIError, ValueError, KeyError) as error:
                    found = error
            done(found)

        return self.requests.ask_now(subject, data, timeout, headers, answered)

    async def serve(self, subject: str, queue: str, heard: Callable[[str, str, bytes], None]) -> None:
        """Have `heard(subject, reply, data)` called for what is asked; one of all who serve as `queue` gets it."""

        async def take(message: Any) -> None:
            heard(message.subject.removeprefix(f"{self.system}."), message.reply, message.data)

        await self.nc.subscribe(f"{self.system}.{subject}", queue, cb=take, pending_msgs_limit=-1)

    async def answer(self, reply: str, data: bytes) -> None:
        with suppress(engine("nats").errors.Error, OSError):
            await self.nc.publish(reply, data)

    async def replicate(self, stream: str, replicas: int) -> None:
        """Keep a stream that is there on at least so many servers."""
        found = (await self.js.stream_info(stream)).config
        if (found.num_replicas or 1) < replicas:
            found.num_replicas = replicas
            await self.js.update_stream(found)

    def refused(self, why: str) -> None:
        """The account is gone. One that never comes back is not tried again; services are, by whoever runs them."""
        if self.target.is_gated and self._end is None:
            self._end = asyncio.ensure_future(self.close())
            self.on_refused(why)

    async def _reconnected(self) -> None:
        self.reconnects += 1
        for call in list(self._again):
            call()

    async def close(self) -> None:
        if not self.nc.is_closed:
            with suppress(TimeoutError, OSError):  # a server that is stopped takes nothing and refuses nothing
                await asyncio.wait_for(self.nc.close(), CLOSE_S)


def _sequence(answer: bytes) -> int:
    """What a stream says of a message that it took."""
    found = json.loads(answer)
    if "error" in found:
        raise engine("nats.js.errors").APIError.from_error(found["error"])
    return int(found["seq"])


async def connect_nats(url: str, *, system: str = "nc", name: str = "", patience: float = PATIENCE_S) -> NatsLink:
    """Connect, trying for `patience` seconds, or say in one line why not. Once connected it reconnects for ever."""
    return await retried(lambda: dial(url, system=system, name=name), endpoint(url), patience)


async def dial(url: str, *, system: str = "nc", name: str = "") -> NatsLink:
    """Try once to connect. FinalError: NATS answers and does not let us in."""
    nats = engine("nats")
    keep_freed_memory()
    engine("nats.aio.client").DEFAULT_BUFFER_SIZE = READ_BYTES
    place, target = endpoint(url), target_of(url)
    link: list[NatsLink] = []

    async def reconnected() -> None:
        if link:
            await link[0]._reconnected()

    async def failed(error: Exception) -> None:
        if not link:
            raise error  # the library would go on for ever, without a pause that grows
        log.info("NATS connection error at %s: %s", place, error or type(error).__name__)
        if "authorization" in str(error).lower():
            link[0].refused(f"NATS at {place} does not let {target.account or 'us'} in any more: {error}")

    async def disconnected() -> None:
        # What was not sent goes to no other server: that one may have another log. Whoever waits asks again.
        connection._pending, connection._pending_data_size = [], 0

    connection = nats.NATS()
    connection._parse_header_lines = header_lines
    try:
        await connection.connect(
            servers=list(target.servers),
            name=name,
            inbox_prefix=inbox_of(target.account) if target.is_gated else "_INBOX",
            **({"tls": context} if (context := target.context()) is not None else {}),
            allow_reconnect=True,
            max_reconnect_attempts=-1,
            reconnect_time_wait=0.1,
            connect_timeout=ANSWER_S,
            ping_interval=5,
            max_outstanding_pings=2,
            pending_size=64 << 20,
            disconnected_cb=disconnected,
            reconnected_cb=reconnected,
            error_cb=failed,
        )
    except BaseException as error:
        with suppress(Exception):  # after a handshake that failed, it would wait for ever
            await asyncio.wait_for(connection.close(), 0.5)
        if not isinstance(error, TimeoutError | OSError | nats.errors.Error):
            raise
        why = str(error) or "no answer"
        untrusted = isinstance(error, ssl.SSLCertVerificationError)
        kind = FinalError if "authorization" in why.lower() or untrusted else TransportError
        raise kind(f"cannot reach NATS at {place}: {why}", endpoint=place) from None
    link.append(NatsLink(connection, system, target))
    return link[0]


def refusal(what: str, error: BaseException, place: str) -> TransportError:
    """That NATS refused to set something up, and whether it is worth another try."""
    why = getattr(error, "description", None) or str(error) or type(error).__name__
    kind = FinalError if getattr(error, "err_code", None) == NO_CLUSTER else TransportError
    return kind(f"NATS refused {what}: {why}", endpoint=place)


def inbox_of(account: str) -> str:
    """How the inboxes of an account begin, which nobody else may listen to.

    >>> inbox_of("a")
    '_INBOX.61'
    """
    return f"_INBOX.{account.encode().hex()}"


def tokens(name: str) -> str:
    """A name as parts of a subject: that of the account, and what its owner calls it.

    >>> tokens("a"), tokens("a/b"), tokens("a/b/c"), tokens("/")
    ('61', '61.62', '61.622f63', '-.-')
    """
    account, sep, rest = name.partition("/")
    return ".".join(part.encode().hex() or "-" for part in ((account, rest) if sep else (account,)))


def target_of(url: str) -> NatsTarget:
    """What a URL of NATS says, of which several may stand with commas between.

    >>> target_of("nats://desk:pw@10.0.0.1:4222?role=subscriber&ca=/etc/ca.pem")[1:]
    ('desk', 'subscriber', {'ca': '/etc/ca.pem'})
    """
    servers, account = [], ""
    said: dict[str, str] = {}
    for part in url.split(","):
        found = urlsplit(part.strip())
        said |= dict(parse_qsl(found.query))
        account = account or unquote(found.username or "")
        servers.append(part.strip().partition("?")[0])
    if unknown := said.keys() - {"role", *TLS}:
        raise InputError(
            f"the URL of NATS must have no option but role, ca, cert and key, got {min(unknown)}", name="url"
        )
    return NatsTarget(tuple(servers), account, said.pop("role", ""), said)


def endpoint(url: str) -> str:
    """Host and port of a URL, without its credentials.

    >>> endpoint("nats://me:secret@10.0.0.1:4222")
    '10.0.0.1:4222'
    """
    parts = [urlsplit(part.strip() if "//" in part else f"//{part.strip()}") for part in url.split(",")]
    return ",".join(f"{part.hostname}:{part.port or 4222}" for part in parts)
