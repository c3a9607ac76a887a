"""Cyclone DDS's configuration: fixed once per domain, so that re-planning never touches it.

Every group there may ever be is mapped by the prefix of its partition's name; which sessions are in it
is a matter of names. Receive buffers are as large as Linux allows, up to 4 MB. The timings are those that kept the
full rate at 5 % loss, where the defaults crawl.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from narrowcast.deliver.routing.address import Multicast
from narrowcast.errors import InputError

_LARGEST = 15_000
_OVERHEAD = 156  # IP, UDP and RTPS headers in front of a fragment, with some to spare


@dataclass(frozen=True, slots=True)
class DdsSettings:
    """Where multicast goes. `groups` are numbered from 0 and take addresses from the start of `network`."""

    interface: str = "lo"
    domain: int = 77
    groups: int = 256
    network: str = "239.77.0.0/16"
    mtu: int | None = None  # None: the interface's
    pack: bool = True  # frames that stand ready for one session share a packet
    lease: float = 3.0  # a receiver not heard of for so long no longer holds anybody up

    def address(self, group: int) -> str:
        """The multicast address of a group.

        >>> DdsSettings().address(3)
        '239.77.0.4'
        """
        network = IPv4Network(self.network)
        if not 0 <= group < min(self.groups, network.num_addresses - 2):
            raise InputError(
                f"group must be one of the {self.groups} groups of {self.network}, got {group}",
                name="group",
                got=group,
                hint="raise multicast.groups and restart: the mapping is fixed while the system runs",
            )
        return str(IPv4Address(int(network.network_address) + 1 + group))


def partition(address: Multicast) -> str:
    """The name of a session's partition, by whose start its group is known.

    >>> partition(Multicast(2, 7))
    'g2-s7'
    """
    return f"g{address.group}-s{address.session}"


def mtu_of(interface: str) -> int:
    """The largest packet an interface takes."""
    path = Path("/sys/class/net") / interface / "mtu"
    return int(path.read_text()) if path.exists() else 1500


def packet_bytes(settings: DdsSettings | None) -> int:
    """The most that goes out as one packet: without multicast, what a broker passes on in one go."""
    mtu = _LARGEST if settings is None else settings.mtu or mtu_of(settings.interface)
    return max(1000, min(mtu, _LARGEST) - _OVERHEAD - 144)  # less than a fragment, or each would be two packets


def configuration(settings: DdsSettings) -> str:
    """The XML that a domain is made with."""
    largest = min(settings.mtu or mtu_of(settings.interface), 65_000) - 28
    groups = range(settings.groups)
    named = "".join(f'<NetworkPartition name="g{g}" address="{settings.address(g)}"/>' for g in groups)
    mapped = "".join(f'<PartitionMapping NetworkPartition="g{g}" DCPSPartitionTopic="g{g}-*.*"/>' for g in groups)
    return f"""<CycloneDDS><Domain Id="{settings.domain}">
<General>
  <Interfaces><NetworkInterface name="{settings.interface}" multicast="true" prefer_multicast="true"/></Interfaces>
  <AllowMulticast>true</AllowMulticast>
  <MaxMessageSize>{largest}B</MaxMessageSize><FragmentSize>{min(largest, _LARGEST) - _OVERHEAD}B</FragmentSize>
</General>
<Discovery>
  <ParticipantIndex>none</ParticipantIndex>
  <LeaseDuration>{settings.lease:g}s</LeaseDuration>
</Discovery>
<Partitioning>
  <NetworkPartitions>{named}</NetworkPartitions>
  <PartitionMappings>{mapped}</PartitionMappings>
</Partitioning>
<Internal>
  <NackDelay>5 ms</NackDelay>
  <SocketReceiveBufferSize max="4 MB"/>
  <HeartbeatInterval min="2 ms" minsched="5 ms" max="500 ms">10 ms</HeartbeatInterval>
  <Watermarks>
    <WhcHigh>8 MB</WhcHigh><WhcHighInit>8 MB</WhcHighInit><WhcLow>1 MB</WhcLow><WhcAdaptive>false</WhcAdaptive>
  </Watermarks>
</Internal>
</Domain></CycloneDDS>"""
