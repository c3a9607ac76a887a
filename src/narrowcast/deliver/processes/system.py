"""What all processes of one system must agree on. It stands in the registry, so a client needs only a URL."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace

from narrowcast.deliver.transport import Registry
from narrowcast.deliver.transport.dds.config import DdsSettings
from narrowcast.errors import TransportError

KEY = "system"


@dataclass(frozen=True)
class System:
    """`shards` logs, multicast if there is any, and where each broker listens, with its public key."""

    shards: int = 1
    multicast: DdsSettings | None = None
    brokers: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def every_shard(self) -> tuple[int, ...]:
        return tuple(range(self.shards))

    def on(self, interface: str | None) -> System:
        """The same as seen from a host whose interface has another name."""
        if interface is None or self.multicast is None:
            return self
        return replace(self, multicast=replace(self.multicast, interface=interface))

    def to_bytes(self) -> bytes:
        """As the registry holds it.

        >>> System.from_bytes(System(shards=2).to_bytes())
        System(shards=2, multicast=None, brokers={})
        """
        return json.dumps(asdict(self), sort_keys=True).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> System:
        body = json.loads(data)
        multicast = None if body["multicast"] is None else DdsSettings(**body["multicast"])
        brokers = {name: (at, key) for name, (at, key) in body["brokers"].items()}
        return cls(body["shards"], multicast, brokers)


async def agreed(registry: Registry) -> System:
    """What the registry says, or one line if no system was ever started there."""
    found = await registry.get(KEY)
    if found.data is None:
        raise TransportError("NATS answers, but no narrowcast system has been started on it: narrowcast up PLAN")
    return System.from_bytes(found.data)
