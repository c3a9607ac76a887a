"""The engines of one process, made from a URL: one NATS connection, its log and registry, and carriers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from narrowcast.deliver.parts.part import Part
from narrowcast.deliver.processes.drive import Engines
from narrowcast.deliver.processes.system import KEY, System, agreed, new_id, read_credential
from narrowcast.deliver.transport import Address, Carrier, FinalError, Link, Multicast, Overlay, Unicast
from narrowcast.deliver.transport.generations import NumberedLog
from narrowcast.deliver.transport.nats.gated import Gated, GatedLog, GatedRegistry
from narrowcast.deliver.transport.nats.link import NatsLink, dial, endpoint, tokens
from narrowcast.deliver.transport.nats.log import NatsLog
from narrowcast.deliver.transport.nats.registry import NatsRegistry
from narrowcast.deliver.transport.nats.unicast import NatsUnicast
from narrowcast.deliver.transport.retry import PATIENCE_S, retried
from narrowcast.deliver.trust.told import is_told_by
from narrowcast.deliver.wire import Seal
from narrowcast.errors import InputError

DATA = Path(".narrowcast")
URL_FILE = "nats.url"
KEYS = "keys"


def url_of(where: str | Path | None) -> str:
    """The URL of NATS: given as such, as the data folder of `narrowcast up`, or by default the one here.

    >>> url_of("nats://localhost:4222")
    'nats://localhost:4222'
    """
    if isinstance(where, str) and "://" in where:
        return where
    folder = DATA if where is None else Path(where)
    path = folder / URL_FILE if folder.is_dir() else folder
    if not path.is_file():
        raise InputError(
            f"no system has been started in {folder}",
            name="url",
            got=str(where),
            hint="start one with: narrowcast up PLAN, or give its URL as nats://host:port",
        )
    return read_credential(path)


def keys_beside(where: str | Path | None) -> Path:
    """The folder of overlay keys that goes with a data folder; with a URL, the one here."""
    if where is None or "://" in str(where):
        return DATA / KEYS
    folder = Path(where)
    return (folder if folder.is_dir() else folder.parent) / KEYS


@dataclass
class Backbone:
    """A connection with what stands on it. Several parts of a process may share one."""

    link: NatsLink
    direct: NatsLog | None  # of those who are trusted with it
    registry: NatsRegistry
    system: System
    gated: GatedLog | None = None

    @property
    def log(self) -> NatsLog:
        """The log itself, by sequence numbers."""
        if self.direct is None:
            raise InputError(
                f"the credential must be of a role that may use the log itself, got that of a {self.link.target.role}",
                name="credential",
            )
        return self.direct

    @property
    def most_bytes(self) -> int:
        """The largest entry that the log takes."""
        return self.numbered.most_bytes

    def owned(self, name: str) -> str:
        """A name as this connection may use it: whoever has an account has names below that of the account."""
        account = self.link.target.account
        if self.gated is None or name == account or name.startswith(f"{account}/"):
            return name
        return f"{account}/{name}"

    async def allowed(self, profile: str) -> str:
        """The part of a profile that this connection may see; InputError if that is nothing."""
        if self.gated is None:
            return profile
        head, _ = await Gated(self.link).ask("profile", {"profile": profile})
        return str(head["profile"])

    def engines(self, node: str, *, multicast: bool = True, overlay: Carrier | None = None) -> Engines:
        """Engines for one part, with carriers of its own."""
        unicast = NatsUnicast(self.link, node)
        carriers: dict[type[Address], Carrier] = {Unicast: unicast, Link: overlay or unicast}
        carriers[Overlay] = carriers[Link]
        if multicast and self.system.multicast is not None:
            from narrowcast.deliver.transport.dds.multicast import DdsMulticast

            carriers[Multicast] = DdsMulticast(self.system.multicast)
        return Engines(self.numbered, self.registry, carriers, self.system.number)

    @property
    def numbered(self) -> NumberedLog | GatedLog:
        """The log as parts see it: by numbers that never come back, whatever becomes of its sequence numbers."""
        return self.gated or NumberedLog(self.log)

    def sealing(self, part: Part) -> None:
        """Have a part seal and open frames as this system does."""
        part.seal = Seal(self.system.number, sealed=self.system.security.seal, name=part.name)

    def overlay(self, node: str, keys: Path, *, key: str | None = None, listen: bool = False) -> Carrier | None:
        """The overlay's carrier, where brokers have addresses; without, links go over NATS."""
        known = self.system.overlay
        if not known.brokers:
            return None
        from narrowcast.deliver.transport.zmq.overlay import ZmqOverlay

        brokers = {name: (at, known.public_keys[name]) for name, at in known.brokers.items()}
        return ZmqOverlay(node, brokers, keys, key=key, listen=listen)

    async def publish_statistics(self, name: str, statistics: bytes) -> None:
        if self.gated is None or "/" in name:  # under the bare name of an account NATS lets nobody tell anything
            await self.link.publish(f"stats.{tokens(name)}", statistics)

    async def listen_statistics(self, heard: Callable[[bytes], None]) -> None:
        """Have `heard` called with what processes tell about themselves, if they may, and it is whole."""

        def check(subject: str, _: str, data: bytes) -> None:
            if is_told_by(subject.removeprefix("stats."), data):
                heard(data)

        await self.link.serve("stats.>", "", check)

    async def close(self) -> None:
        await self.link.close()


async def backbone(
    url: str,
    *,
    name: str,
    system: str = "nc",
    found: System | None = None,
    interface: str | None = None,
    replicas: int = 1,
    patience: float = PATIENCE_S,
    **log: Any,
) -> Backbone:
    """Connect, trying again for `patience` seconds. Whoever sets a system up says what it is; the others are told.

    That is `found`. `replicas`: how many servers keep the log and the registry, of whoever sets them up.
    """

    async def attempt() -> Backbone:
        link = await dial(url, system=system, name=name)
        if link.target.is_gated:
            return await _behind_gate(link, interface)
        return await _on(link, found, interface, replicas, log)

    return await retried(attempt, endpoint(url), patience)


async def _on(
    link: NatsLink, found: System | None, interface: str | None, replicas: int, log: Mapping[str, Any]
) -> Backbone:
    try:
        registry = NatsRegistry(link, replicas=replicas)
        await registry.start(make=found is not None)
        if found is not None:
            found = replace(found, id=found.id or await _old_id(registry) or new_id())
        agreed_on = found or await agreed(registry)
        made = NatsLog(link, replicas=replicas, **log)
        await made.start(agreed_on.every_shard, make=found is not None)
        if found is not None:  # others come when they find it: then the log's generation has begun, and is kept
            await made.begin(agreed_on.every_shard)
            await registry.put(KEY, found.to_toml().encode())
    except BaseException:
        await link.close()
        raise
    return Backbone(link, made, registry, agreed_on.on(interface))


async def _behind_gate(link: NatsLink, interface: str | None) -> Backbone:
    """For those who reach log and registry through the gate."""
    try:
        gate = Gated(link)
        head, _ = await gate.ask("hello", {})
        registry = cast(NatsRegistry, GatedRegistry(gate))  # as far as parts use it
        agreed_on = System.from_toml(head["system"])
    except BaseException:
        await link.close()
        raise
    return Backbone(link, None, registry, agreed_on.on(interface), GatedLog(gate, head["most_bytes"]))


async def _old_id(registry: NatsRegistry) -> str:
    """The id that a system had at its last start; "" for a new one."""
    try:
        return (await agreed(registry)).id
    except FinalError:
        return ""
