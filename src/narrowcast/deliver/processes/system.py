"""What a system is: one frozen description, read from a TOML file, written to one, and held by the registry.

nats = "nats://10.0.0.1:4222"      # or the path of a file that holds the URL
[multicast]                        # leave out where there is none
interface = "eth0"
[overlay.brokers]
b1 = "tcp://10.0.0.1:5600"
[source]
name = "source-0"

The registry holds what all processes must agree on, so a client needs only a URL. The other tables are for the
processes of one host.
"""

from __future__ import annotations

import re
import secrets
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlencode

from narrowcast.deliver.processes.retention import AUTO, parse_retention
from narrowcast.deliver.processes.settings import NOT_A_KEY, from_table, to_table, to_toml
from narrowcast.deliver.transport import FinalError, Registry
from narrowcast.deliver.transport.dds.config import DdsSettings
from narrowcast.deliver.transport.nats.registry import NO_SYSTEM
from narrowcast.errors import InputError

KEY = "system"
FROM_ONE = {"least": 1}
FROM_ZERO = {"least": 0}


@dataclass(frozen=True)
class OverlaySection:
    """`keys`: the folder of the brokers' keys. `brokers`: where each listens; `public_keys`: how it is known."""

    keys: str = "keys"
    brokers: Mapping[str, str] = field(default_factory=dict)
    public_keys: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class CoordinatorSection:
    """`plan`: its folder. `key`: the attributes that make a flow, for a plan that does not say.

    `every`: plan again after so many seconds, also if nothing changed. `memberships`: how many multicast groups a
    subscriber's host may join, if not as many as this one.
    """

    name: str | None = None
    plan: str | None = None
    key: tuple[str, ...] = ()
    memberships: int | None = field(default=None, metadata=FROM_ZERO)
    every: float | None = field(default=None, metadata=FROM_ZERO)


@dataclass(frozen=True)
class SourceSection:
    """`messages` and `bytes`: the most in one frame; `bytes` by default what fits into a packet.

    `gateway`: send only what enters there, as one of several sources of a network.
    """

    name: str | None = None
    gateway: str | None = None
    shard: int = field(default=0, metadata=FROM_ZERO)
    messages: int = field(default=64, metadata=FROM_ONE)
    bytes: int | None = field(default=None, metadata=FROM_ONE)
    linger_ms: float = field(default=0, metadata=FROM_ZERO)
    settle_ms: float = field(default=2, metadata=FROM_ZERO)
    heartbeat_ms: float = field(default=250, metadata=FROM_ZERO)


@dataclass(frozen=True)
class BrokerSection:
    name: str | None = None


@dataclass(frozen=True)
class EdgeSection:
    """`out`: the folder for what its `subscriptions`, profiles by name, get.

    `socket`: a file at which other processes of the host share the edge, with `connect(…, edge=FILE)`.
    """

    name: str | None = None
    gateway: str | None = None
    out: str = "received"
    socket: str | None = None
    subscriptions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RelaySection:
    """`gateways`: of the sites to relay to, a relay for each; `name`: how their names begin, for one that stands by."""

    name: str = "relay"
    gateways: tuple[str, ...] = ()


@dataclass(frozen=True)
class SecuritySection:
    """`seal`: frames are encrypted and authenticated, with keys for each session and epoch.

    `ca`: the file with the authority that NATS's certificate is from; `cert` and `key`: our own, if NATS asks for one.
    """

    seal: bool = True
    ca: str | None = None
    cert: str | None = None
    key: str | None = None


@dataclass(frozen=True)
class MetricsSection:
    """`port`: where OpenMetrics are served, nowhere by default; `address`: to whom, by default to this host alone."""

    port: int | None = field(default=None, metadata=FROM_ZERO)
    address: str = "127.0.0.1"


@dataclass(frozen=True)
class AdaptSection:
    """What `narrowcast adapt` is told; None: as it is by default there."""

    folder: str = "adapt"
    snapshots: str | None = None
    schema: str = ""
    every: float | None = None
    half_life: float | None = None
    horizon: float | None = None
    threshold: float | None = None
    proof: float | None = None
    effort: float | None = None
    join: float | None = None
    warm: float | None = None
    moves: int | None = None
    joins: int | None = None
    reorganise: float | None = None


@dataclass(frozen=True)
class System:
    """A system, as one host sees it. Paths are relative to `folder`, where the file is.

    >>> System.from_toml("shards = 2").every_shard
    (0, 1)
    """

    nats: str = ""
    system: str = "nc"
    id: str = ""  # 16 hexadecimal digits, made at the first start
    shards: int = field(default=1, metadata=FROM_ONE)
    replicas: int = field(default=1, metadata=FROM_ONE)
    retention: str = AUTO  # how much the log keeps: 50GB, 7d, both, or none; auto is for `narrowcast up` to say
    key: tuple[str, ...] = ()
    multicast: DdsSettings | None = None
    overlay: OverlaySection = OverlaySection()
    coordinator: CoordinatorSection = CoordinatorSection()
    source: SourceSection = SourceSection()
    broker: BrokerSection = BrokerSection()
    edge: EdgeSection = EdgeSection()
    relay: RelaySection = RelaySection()
    adapt: AdaptSection = AdaptSection()
    metrics: MetricsSection = MetricsSection()
    security: SecuritySection = SecuritySection()
    folder: Path = field(default=Path(), metadata=NOT_A_KEY)

    @classmethod
    def read(cls, path: str | Path) -> System:
        """From a file; every problem in it is named."""
        source = Path(path)
        try:
            text = source.read_text(encoding="utf-8")
        except OSError as error:
            raise InputError(f"{source}: {error.strerror or error}", name="config", got=str(source)) from None
        except UnicodeDecodeError as error:
            raise InputError(f"{source}: not TOML: {error}", name="config", got=str(source)) from None
        return cls.from_toml(text, source)

    @classmethod
    def from_toml(cls, text: str, path: Path | None = None) -> System:
        """From the text of a file, or of the registry, which has no `path` and does not say where NATS is."""
        try:
            table = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"{path or KEY}: not TOML: {error}", name="config", got=str(path)) from None
        problems: list[str] = []
        found = from_table(cls, table, problems)
        if found.id and not re.fullmatch("[0-9a-f]{16}", found.id):
            problems.append(f"id must be 16 hexadecimal digits, got {found.id!r}")
        try:
            parse_retention(found.retention)
        except InputError as error:
            problems.append(str(error))
        if path is not None and "nats" not in table:
            problems.append("nats must be the URL of NATS or a file that holds it, got nothing")
        if problems:
            raise InputError(f"{path or KEY}: {'; '.join(problems)}", name="config", got=str(path))
        return found if path is None else replace(found, folder=path.parent)

    def to_toml(self) -> str:
        """As a file, without what is as it is by default."""
        return to_toml(to_table(self))

    def public(self, public_keys: Mapping[str, str], key: tuple[str, ...] = ()) -> System:
        """What all processes and clients must agree on, and may know: no URL of NATS, no table of a host.

        `key` are the attributes that make a flow, for publishers to look for.
        """
        overlay = OverlaySection(brokers=self.overlay.brokers, public_keys=public_keys)
        return System(
            system=self.system, id=self.id, shards=self.shards, key=key, multicast=self.multicast, overlay=overlay,
            security=SecuritySection(seal=self.security.seal),
        )  # fmt: skip

    def on(self, interface: str | None) -> System:
        """The same as seen from a host whose interface has another name."""
        if interface is None or self.multicast is None:
            return self
        return replace(self, multicast=replace(self.multicast, interface=interface))

    @property
    def number(self) -> int:
        """Its id, as frames have it; 0 for a system that was set up before there were ids."""
        return int(self.id, 16) if self.id else 0

    @property
    def every_shard(self) -> tuple[int, ...]:
        return tuple(range(self.shards))

    @property
    def url(self) -> str:
        files = {name: getattr(self.security, name) for name in ("ca", "cert", "key")}
        said = urlencode({name: str(self.path(file)) for name, file in files.items() if file})
        url = self._url()
        return url if not said else f"{url}{'&' if '?' in url else '?'}{said}"

    def _url(self) -> str:
        if "://" in self.nats:
            return self.nats
        path = self.path(self.nats)
        if not path.is_file():
            raise InputError(f"{path}: no such file; it should hold the URL of NATS", name="nats", got=self.nats)
        return read_credential(path)

    @property
    def keys(self) -> Path:
        """The folder of the overlay's keys."""
        return self.path(self.overlay.keys)

    @property
    def plan(self) -> Path | None:
        """The folder of the plan."""
        return None if self.coordinator.plan is None else self.path(self.coordinator.plan)

    def path(self, name: str) -> Path:
        """A path of the file, from where the file is."""
        return self.folder / name


def read_credential(path: Path) -> str:
    """The URL of NATS in a file: its first line. A certificate below it is that of the authority for TLS."""
    text = path.read_text(encoding="utf-8").strip()
    url, _, rest = text.partition("\n")
    if "BEGIN CERTIFICATE" not in rest:
        return url.strip()
    return f"{url.strip()}{'&' if '?' in url else '?'}{urlencode({'ca': str(path.resolve())})}"


def new_id() -> str:
    """An id for a system, which no other has."""
    return secrets.token_hex(8)


async def agreed(registry: Registry) -> System:
    """What the registry says, or one line if no system was ever started there."""
    found = await registry.get(KEY)
    if found.data is None:
        raise FinalError(NO_SYSTEM)
    try:
        return System.from_toml(found.data.decode())
    except (InputError, UnicodeDecodeError, RecursionError) as error:
        # Written by another version, or by nobody; a coordinator of this one writes it anew at its start.
        raise FinalError(f"the system in the registry cannot be read: {error}", endpoint=KEY) from None
