"""Before anything starts: everything that would fail later without a word, each with its fix."""

from __future__ import annotations

import fcntl
import socket
import struct
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

from narrowcast.deliver.processes.system import System
from narrowcast.deliver.transport.dds.config import DdsSettings
from narrowcast.deliver.transport.nats.link import connect_nats
from narrowcast.deliver.transport.nats.server import is_free, server_binary
from narrowcast.errors import TransportError
from narrowcast.model.interest_tables import names_of
from narrowcast.plans.channels.result import ChannelsPlan

_UP, _MULTICAST = 0x1, 0x1000


@dataclass(frozen=True)
class Problem:
    """What is wrong and how to fix it; `fatal` if nothing can be delivered as planned."""

    what: str
    fix: str
    fatal: bool = True

    def __str__(self) -> str:
        return f"{self.what} (fix: {self.fix})"


def refuse(problems: list[Problem]) -> None:
    """Stop with all fatal problems in one line."""
    fatal = [str(problem) for problem in problems if problem.fatal]
    if fatal:
        raise TransportError("; ".join(fatal))


def check_engines(*, embedded: bool, multicast: bool, overlay: bool = False) -> Iterator[Problem]:
    """Whether the engines are installed. Java is not needed, nor a clock."""
    needed = (
        {"nats": "runtime", "cryptography": "runtime"}
        | ({"cyclonedds": "dds"} if multicast else {})
        | ({"zmq": "runtime"} if overlay else {})
    )
    for package, extra in needed.items():
        if find_spec(package) is None:
            yield Problem(f"{package} is not installed", f"pip install 'narrowcast[{extra}]'")
    if embedded:
        try:
            server_binary()
        except TransportError as error:
            yield Problem("nats-server is not installed", str(error).partition(": ")[2])


def check_multicast(settings: DdsSettings, plan: Any = None) -> Iterator[Problem]:
    """The interface, the groups and their addresses, and how many of them a host may join."""
    yield from _interface(settings.interface)
    yield from _addresses(settings)
    if not 0 <= settings.domain <= 230:
        yield Problem(f"multicast.domain must be from 0 to 230, got {settings.domain}", "multicast.domain = 0")
    if isinstance(plan, ChannelsPlan):
        yield from _plan_groups(settings, plan)


def _interface(name: str) -> Iterator[Problem]:
    flags = flags_of(name)
    there = ", ".join(other for _, other in socket.if_nameindex())
    if flags is None:
        yield Problem(f"interface {name} does not exist", f"multicast.interface = one of {there}")
    elif not flags & _UP:
        yield Problem(f"interface {name} is down", f"ip link set {name} up")
    elif not flags & _MULTICAST and name != "lo":
        yield Problem(f"interface {name} does not support multicast", f"ip link set {name} multicast on")


def _addresses(settings: DdsSettings) -> Iterator[Problem]:
    try:
        network = IPv4Network(settings.network)
    except ValueError as error:
        yield Problem(f"multicast.network: {error}", 'multicast.network = "239.77.0.0/16"')
        return
    if not network.is_multicast:
        yield Problem(f"multicast.network must be multicast, got {network}", 'multicast.network = "239.77.0.0/16"')
    if network.num_addresses - 2 < settings.groups:
        yield Problem(
            f"multicast.network {network} has {network.num_addresses - 2} addresses for {settings.groups} groups",
            "use a larger multicast.network or fewer multicast.groups",
        )
    taken = [at for at in joined_groups(settings.interface) if at in network]
    if taken:
        yield Problem(
            f"another program on {settings.interface} has joined {taken[0]} of {network}",
            "use another multicast.network and multicast.domain, unless that program belongs to this system",
            fatal=False,
        )


def _plan_groups(settings: DdsSettings, plan: ChannelsPlan) -> Iterator[Problem]:
    most = int(plan.group_of_flow.max(initial=0)) + 1  # and one for what belongs to no flow of the plan
    if most >= settings.groups:
        yield Problem(f"plan has group {most}, multicast.groups is {settings.groups}", f"multicast.groups = {most + 1}")
    path = Path("/proc/sys/net/ipv4/igmp_max_memberships")
    limit = int(path.read_text()) if path.exists() else 20
    joins = Counter(names_of(plan.interest.user_names, plan.joins[0]).to_pylist())
    wide = [(count, name) for name, count in joins.items() if count > limit - 2]
    if wide:
        count, name = max(wide)
        yield Problem(
            f"{len(wide)} subscribers, such as {name}, are in up to {count} groups; this host lets a socket join "
            f"{limit}, two of them for discovery: those subscribers are served by unicast",
            f"sysctl -w net.ipv4.igmp_max_memberships={count + 2}",
            fatal=False,
        )


def check_ports(endpoints: Mapping[str, str]) -> Iterator[Problem]:
    """Whether what should listen here can: `endpoints` are tcp://host:port by name, those of this host only."""
    seen: dict[str, str] = {}
    for name, at in endpoints.items():
        host, _, port = at.removeprefix("tcp://").rpartition(":")
        if not port.isdigit():
            yield Problem(f"{name} has no port in {at!r}", "tcp://host:port")
        elif at in seen:
            yield Problem(f"{name} and {seen[at]} both listen at {at}", "give each its own port")
        elif not is_free(host, int(port)):
            yield Problem(f"{name} cannot listen at {at}: port in use or address not on this host", "use another port")
        seen[at] = name


async def check_nats(url: str) -> list[Problem]:
    """Whether NATS answers."""
    try:
        link = await connect_nats(url, patience=3.0)
    except TransportError as error:
        return [Problem(str(error), "start nats-server -js there, or correct nats = ...")]
    if link.target.is_gated:  # whether there is JetStream is for the gate to know
        await link.close()
        return []
    try:
        await link.js.account_info()
    except Exception as error:
        return [Problem(f"NATS answers without JetStream: {error or type(error).__name__}", "nats-server -js")]
    finally:
        await link.close()
    return []


async def check_configuration(config: System, role: str | None = None) -> list[Problem]:
    """Everything about one process's configuration."""
    brokers = config.overlay.brokers
    problems = list(check_engines(embedded=False, multicast=config.multicast is not None, overlay=bool(brokers)))
    if config.multicast is not None and role != "broker":
        problems += check_multicast(config.multicast)
    if role == "broker":
        name = str(config.broker.name)
        if name not in brokers and brokers:
            problems.append(Problem(f"broker {name} is not in overlay.brokers", f'{name} = "tcp://host:port" there'))
        problems += check_ports({name: brokers[name]} if name in brokers else {})
    if not problems or find_spec("nats") is not None:
        problems += await check_nats(config.url)
    return problems


def flags_of(interface: str) -> int | None:
    """The kernel's flags of an interface; None if there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        request = struct.pack("16sh14x", interface.encode()[:15], 0)
        try:
            answer = fcntl.ioctl(probe.fileno(), 0x8913, request)
        except OSError:
            return None
    flags: int = struct.unpack_from("H", answer, 16)[0]
    return flags


def is_unused(domain: int, interface: str) -> bool:
    """Whether no program on this machine uses a DDS domain, or group addresses of 239.DOMAIN.0.0/16."""
    port = 7400 + 250 * domain  # where everybody in a domain hears of each other
    network = IPv4Network(f"239.{domain}.0.0/16")
    return port not in udp_ports() and not any(at in network for at in joined_groups(interface))


def udp_ports() -> set[int]:
    """The UDP ports that programs on this machine receive at."""
    found: set[int] = set()
    for path in (Path("/proc/net/udp"), Path("/proc/net/udp6")):
        lines = path.read_text().splitlines()[1:] if path.exists() else []
        found |= {int(line.split()[1].rpartition(":")[2], 16) for line in lines}
    return found


def joined_groups(interface: str) -> list[IPv4Address]:
    """The multicast groups this host has joined on an interface."""
    path = Path("/proc/net/igmp")
    found, here = [], False
    for line in path.read_text().splitlines()[1:] if path.exists() else []:
        if not line.startswith("\t"):
            here = line.split()[1] == interface
        elif here:
            found.append(IPv4Address(int.from_bytes(bytes.fromhex(line.split()[0]), "little")))
    return found
