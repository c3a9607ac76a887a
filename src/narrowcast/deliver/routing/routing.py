"""A plan as the runtime sees it: message → channels, subscription → channels, channel → address.

Immutable, made once per epoch from any kind of plan, the same for every part. Three ways to choose a
message's channels, which may be mixed: by the flow it belongs to (channels and hybrid plans), by a
channel's content (semantic channels, merged queries; a tree's one channel has no condition at all), and
by the gateways where it is wanted (semantic channels made by `search`).

Sound means: whatever a subscription's profile matches goes to a channel that the subscription takes.
A subscription that is not in `taken` is served from the log, which is always right.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from narrowcast.deliver.routing.audience import Audiences, WantedAt
from narrowcast.deliver.transport import Address, Link, Multicast, Overlay, Unicast
from narrowcast.deliver.wire.frame import NO_FLOW
from narrowcast.errors import InfeasibleError
from narrowcast.profiles.flow_key import flow_name
from narrowcast.profiles.parsed import parsed
from narrowcast.profiles.predicate import predicate

ADDRESSES: dict[str, type[Address]] = {"multicast": Multicast, "overlay": Overlay, "unicast": Unicast, "link": Link}
VIEW = b"view"  # before a part of a plan, with the checksum of the whole
MOST_UNPACKED = 32 << 20  # bytes of JSON: a million flows
KINDS = {type_: name for name, type_ in ADDRESSES.items()}


@dataclass(frozen=True, eq=False)
class Routing:
    """Where messages go and who takes what, for one epoch.

    `key` names the attributes that make a flow; `flows[k]` is (name, channels) of flow k, and messages
    of flows not listed go to the channels `rest`. `content` maps a channel to the text of the profile
    that chooses for it ("" for everything); a channel chosen by flows has none. `taken` maps a
    subscription to the channels it takes. `audiences` chooses by where a message is wanted by those in
    `taken`, as `profiles`, `edges` and `gateways` have it. `filters` are the brokers that thin out frames. `climbs`:
    subscriptions are not listed; those at gateways of the tree climb it by themselves (`parts/climb.py`).
    `pulse` is where the heartbeats of all channels go together, for everybody; without it each channel
    carries its own. `relayed` maps a channel of a site to the subscription of the relay that sends it, or to the
    gateway where its messages enter and a source sends it straight; all others are sent by sources too.
    """

    addresses: Mapping[int, Address]
    taken: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    key: tuple[str, ...] = ()
    flows: tuple[tuple[str, tuple[int, ...]], ...] = ()
    rest: tuple[int, ...] = ()
    content: Mapping[int, str] = field(default_factory=dict)
    audiences: Audiences | None = None
    profiles: Mapping[str, str] = field(default_factory=dict)
    edges: Mapping[str, str] = field(default_factory=dict)
    gateways: Mapping[str, str] = field(default_factory=dict)
    filters: tuple[str, ...] = ()
    pulse: Address | None = None
    climbs: bool = False
    relayed: Mapping[int, str] = field(default_factory=dict)

    @cached_property
    def _flow(self) -> dict[str, tuple[int, tuple[int, ...]]]:
        return {name: (k, channels) for k, (name, channels) in enumerate(self.flows)}

    @cached_property
    def _content(self) -> tuple[tuple[int, Callable[[Mapping[str, Any]], bool] | None], ...]:
        return tuple(
            (channel, predicate(parsed(text)) if text else None) for channel, text in sorted(self.content.items())
        )

    @cached_property
    def _wanted_at(self) -> WantedAt:
        """Only those whose gateway the rule reaches: whoever else takes something takes it otherwise."""
        rule = self.audiences or Audiences()
        pairs = ((self.profiles[name], self.gateways.get(self.edges[name], "")) for name in self.taken)
        return WantedAt((text, gateway) for text, gateway in pairs if rule.taken_at(gateway))

    def flow_of(self, message: Mapping[str, Any]) -> int:
        """The number of a message's flow, NO_FLOW if it belongs to none that the plan knows."""
        return self._by_flow(message)[0]

    def _by_flow(self, message: Mapping[str, Any]) -> tuple[int, tuple[int, ...]]:
        if not self.key:
            return NO_FLOW, ()
        return self._flow.get(flow_name(message, self.key)) or (NO_FLOW, self.rest)

    def route(self, message: Mapping[str, Any]) -> tuple[int, tuple[int, ...]]:
        """The flow of a message and the channels it goes to.

        >>> taken = {"ann": (1,), "bob": (1, 2)}
        >>> routing = Routing({1: Unicast("a"), 2: Unicast("b")}, taken, key=("s",), flows=(("IBM", (1,)),), rest=(2,))
        >>> routing.route({"s": "IBM"}), routing.route({"s": "GE"})[1]
        ((0, (1,)), (2,))
        """
        found = self._by_flow(message)
        if not self.content and self.audiences is None:
            return found
        flow, channels = found
        chosen = [channel for channel, wanted in self._content if wanted is None or wanted(message)]
        if self.audiences is not None:
            chosen += self.audiences.choose(self._wanted_at(message))
        return flow, (*channels, *chosen) if chosen else channels

    def address(self, channel: int) -> Address | None:
        return self.addresses.get(channel)

    @cached_property
    def sent_by(self) -> Mapping[str, Mapping[int, Address]]:
        """The channels of every sender, by the relay's subscription; "" for those of the sources."""
        found: dict[str, dict[int, Address]] = {"": {}}
        for channel, address in sorted(self.addresses.items()):
            found.setdefault(self.relay_of(channel), {})[channel] = address
        return found

    def relay_of(self, channel: int) -> str:
        """The subscription of the relay that sends a channel; "" for one that sources send."""
        relay = self.relayed.get(channel, "")
        return relay if relay in self.edges else ""

    def enters_at(self, channel: int) -> str | None:
        """The broker beside which a source sends a channel; None: anywhere."""
        address = self.addresses[channel]
        return address.root if isinstance(address, Overlay) else self.relayed.get(channel)

    def wanted_beyond(self, tree: Overlay, broker: str) -> frozenset[int]:
        """The flows that relays at a broker of a tree, or below it, send on in their sites."""
        known = self._wanted_beyond
        if (tree, broker) not in known:
            found, front = {broker}, [broker]
            while front:
                below = [child for child in tree.children(front.pop()) if child not in found]
                found.update(below)
                front += below
            known[tree, broker] = frozenset().union(*(self._wanted_by.get(each, ()) for each in found))
        return known[tree, broker]

    @cached_property
    def _wanted_beyond(self) -> dict[tuple[Overlay, str], frozenset[int]]:
        return {}

    @cached_property
    def _wanted_by(self) -> dict[str, set[int]]:
        found: dict[str, set[int]] = {}
        for number, (_, channels) in enumerate(self.flows):
            for channel in channels:
                gateway = self.gateways.get(self.edges.get(self.relay_of(channel), ""))
                if gateway is not None:
                    found.setdefault(gateway, set()).add(number)
        return found

    def to_bytes(self) -> bytes:
        """As the registry holds it: packed, for its values have a megabyte at most and plans may have 100,000 flows."""
        body = {name: getattr(self, name) for name in _PLAIN}
        body["addresses"] = {str(c): [KINDS[type(a)], asdict(a)] for c, a in sorted(self.addresses.items())}
        body["pulse"] = None if self.pulse is None else [KINDS[type(self.pulse)], asdict(self.pulse)]
        body["audiences"] = None if self.audiences is None else self.audiences.to_json()
        body["content"] = {str(c): text for c, text in sorted(self.content.items())}
        body["relayed"] = {str(c): relay for c, relay in sorted(self.relayed.items())}
        text = json.dumps(body, separators=(",", ":"), sort_keys=True).encode()
        if len(text) > MOST_UNPACKED:
            raise InfeasibleError(
                f"the routing of a plan must be at most {MOST_UNPACKED} bytes, got {len(text)}", budget="routing"
            )
        return zlib.compress(text)

    @classmethod
    def from_bytes(cls, data: bytes) -> Routing:
        """What `to_bytes` made; ValueError for anything else, of which no more than `MOST_UNPACKED` is unpacked."""
        try:
            found = cls._from_body(json.loads(_unpacked(data[8:] if data.startswith(VIEW) else data)))
        except (KeyError, TypeError, AttributeError, RecursionError, zlib.error) as error:
            raise ValueError(f"not a packed routing: {error!r:.100}") from None
        if not found._is_whole():
            raise ValueError("not a packed routing: a field of it cannot be")
        return found

    def ready(self) -> Routing:
        """Itself, with every profile parsed that `route` needs: KeyError or ProfileError if one is not there."""
        if self.content:
            self._content  # noqa: B018
        if self.audiences is not None:
            self._wanted_at  # noqa: B018
        return self

    def _is_whole(self) -> bool:
        """Whether everything is of its type, and every channel that is taken has an address."""
        texts = (self.profiles, self.edges, self.gateways, self.relayed)
        lists = (self.rest, *self.taken.values(), *(channels for _, channels in self.flows))
        names = (*self.key, *self.filters, *self.content.values(), *(name for name, _ in self.flows))
        return (
            all(type(channel) is int for channels in lists for channel in channels)
            and all(type(name) is str for name in names)
            and all(type(known) is dict and all(type(text) is str for text in known.values()) for known in texts)
            and all(0 <= channel <= NO_FLOW for channel in self.addresses)
            and all(channel in self.addresses for channels in self.taken.values() for channel in channels)
        )

    @classmethod
    def _from_body(cls, body: dict[str, Any]) -> Routing:
        return cls(
            addresses={int(c): _address(kind, parts) for c, (kind, parts) in body["addresses"].items()},
            taken={name: tuple(channels) for name, channels in body["taken"].items()},
            key=tuple(body["key"]),
            flows=tuple((name, tuple(channels)) for name, channels in body["flows"]),
            rest=tuple(body["rest"]),
            content={int(c): text for c, text in body["content"].items()},
            audiences=Audiences.from_json(body["audiences"]) if body.get("audiences") else None,
            profiles=body["profiles"],
            edges=body["edges"],
            gateways=body["gateways"],
            filters=tuple(body["filters"]),
            pulse=_address(*body["pulse"]) if body.get("pulse") else None,
            climbs=bool(body.get("climbs", False)),
            relayed={int(c): relay for c, relay in body.get("relayed", {}).items()},
        )


_PLAIN = ("taken", "key", "flows", "rest", "profiles", "edges", "gateways", "filters", "climbs")


def _unpacked(data: bytes) -> bytes:
    unpacker = zlib.decompressobj()
    found = unpacker.decompress(data, MOST_UNPACKED)
    if not unpacker.eof:
        raise ValueError(f"not a packed routing, or one of more than {MOST_UNPACKED} bytes")
    return found


def _address(kind: str, parts: dict[str, Any]) -> Address:
    if kind == "overlay":
        found: Address = Overlay(parts["root"], tuple((u, v) for u, v in parts["links"]))
        values = [parts["root"], *(broker for link in parts["links"] for broker in link)]
    else:
        found, values = ADDRESSES[kind](**parts), list(parts.values())
    if not all(type(value) is (int if kind == "multicast" else str) for value in values):
        raise TypeError(f"no {kind} address: {parts!r:.80}")
    return found


def checksum_of(data: bytes) -> int:
    """What tells a packed plan from others; of a part of one, that of the whole.

    >>> whole = nothing().to_bytes()
    >>> checksum_of(part_of(whole, nothing())) == checksum_of(whole)
    True
    """
    return int.from_bytes(data[4:8], "big") if data.startswith(VIEW) else zlib.crc32(data)


def part_of(whole: bytes, part: Routing) -> bytes:
    """A part of a packed plan, for those who must not see all of it."""
    return VIEW + checksum_of(whole).to_bytes(4, "big") + part.to_bytes()


def nothing() -> Routing:
    """The routing before the first plan: no channels, everyone is served from the log."""
    return Routing({})
