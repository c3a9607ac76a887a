"""Where an exported plan lives on the network: addresses, ports, reach. Checked all at once."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from functools import cached_property

from narrowcast.errors import InfeasibleError, InputError
from narrowcast.exports.layout import GroupLayout

# Discovery of DDS, whatever the vendor.
DDS_DISCOVERY = ipaddress.IPv4Address("239.255.0.1")
GUARDS = ("flow", "session")
SOURCE_SPECIFIC = ipaddress.IPv4Network("232.0.0.0/8")


@dataclass(frozen=True)
class Options:
    """What the network's owner decides. `port` None stands for each target's own default.

    `memberships` is the hosts' `net.ipv4.igmp_max_memberships`: how many groups one socket may join.
    `key` is the field by which a message says its flow, by default the plan's own flow key, and `guard` whether
    channels are guarded by the flow or the session in it; both matter where the target filters by content (rti).

    >>> Options(base_address="239.77.0.0/16").address(3)
    '239.77.0.4'
    """

    base_address: str = "239.77.0.0/16"
    port: int | None = None
    ttl: int = 32
    interface: str | None = None
    memberships: int = 20
    key: str | None = None
    guard: str = "flow"

    def __post_init__(self) -> None:
        problems = list(self._problems())
        if problems:
            raise InputError("; ".join(problems), name="options")

    def _problems(self) -> list[str]:
        found = []
        try:
            network = ipaddress.IPv4Network(self.base_address)
            if not network.is_multicast:
                found.append(f"--base-address {self.base_address} is not within 224.0.0.0/4, the multicast addresses")
            elif network.overlaps(SOURCE_SPECIFIC):
                found.append(f"--base-address {self.base_address} is in 232.0.0.0/8, which is for single sources")
        except ValueError as error:
            found.append(f"--base-address: {error} (for example 239.77.0.0/16)")
        if self.port is not None and not 1024 <= self.port <= 65535:
            found.append(f"--port {self.port} is not between 1024 and 65535")
        if not 0 <= self.ttl <= 255:
            found.append(f"--ttl {self.ttl} is not between 0 and 255")
        if self.memberships < 1:
            found.append(f"--memberships {self.memberships} is not positive")
        if self.interface is not None and not re.fullmatch(r"[A-Za-z0-9_.:/-]{1,64}", self.interface):
            found.append(f"--interface must be a name or an address, got {self.interface!r}")
        if self.key is not None and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.]{0,127}", self.key):
            found.append(f"--key must be the name of a field, got {self.key!r}")
        if self.guard not in GUARDS:
            found.append(f"--guard must be one of {', '.join(GUARDS)}, got {self.guard!r}")
        return found

    @cached_property
    def network(self) -> ipaddress.IPv4Network:
        return ipaddress.IPv4Network(self.base_address)

    def address(self, group: int, *, every: int = 1) -> str:
        """The address of a group; the same for ever, so that re-planning changes no configuration."""
        return str(self.network.network_address + 1 + every * group)


def check_addresses(layout: GroupLayout, options: Options, *, every: int = 1, dds: bool = False) -> None:
    """There must be an address per group, none of which switches flood or discovery uses."""
    needed = every * layout.n_groups
    if needed >= options.network.num_addresses:
        prefix = 32 - needed.bit_length()
        raise InfeasibleError(
            f"{layout.n_groups} groups need {needed} addresses, but {options.base_address} has "
            f"{options.network.num_addresses - 1}: give --base-address a range of /{prefix} or wider",
            budget="addresses",
            smallest=needed,
        )
    for group in range(layout.n_groups):
        address = ipaddress.IPv4Address(options.address(group, every=every))
        if int(address) & 0x7FFF00 == 0:
            raise InputError(
                f"group {group} would get {address}, whose Ethernet address is that of 224.0.0.{int(address) & 255}, "
                "which switches flood to every port: choose another --base-address",
                name="base_address",
                got=options.base_address,
            )
        if dds and address == DDS_DISCOVERY:
            raise InputError(
                f"group {group} would get {address}, where DDS discovers participants: choose another --base-address",
                name="base_address",
                got=options.base_address,
            )


def check_ports(first: int, count: int, what: str) -> None:
    """A run of ports must end at 65535."""
    if first + count - 1 > 65535:
        raise InfeasibleError(
            f"--port must be at most {65536 - count} for {count} ports, {what}, got {first}",
            budget="ports",
            smallest=65536 - count,
        )


def check_memberships(layout: GroupLayout, options: Options, *, beside: int, why: str) -> None:
    """Past the kernel's limit per socket joins fail, with some engines silently: refuse before that."""
    if not layout.joins:
        return
    subscriber = max(layout.joins, key=lambda name: len(layout.joins[name]))
    needed = len(layout.joins[subscriber]) + beside
    if needed > options.memberships:
        raise InfeasibleError(
            f"subscriber {subscriber!r} joins {len(layout.joins[subscriber])} groups{why}; one socket may join "
            f"{options.memberships} (net.ipv4.igmp_max_memberships): raise it at every host and say so with "
            f"--memberships {needed}, or plan with --joins-per-subscriber {options.memberships - beside}",
            budget="memberships",
            smallest=needed,
        )
