"""Eclipse Cyclone DDS: a network partition per group, a DDS partition per session.

The configuration is fixed per domain, so partitions are named `g<group>-s<session>` and `g<group>-*` is mapped to
the group's address once, for every group the plan may use: a later plan only changes partition names. Unicast
goes to the partition `u-<number>` of its subscriber, whose network partition has no multicast address.
"""

from __future__ import annotations

from narrowcast.errors import InputError
from narrowcast.exports.content_layout import any_layout
from narrowcast.exports.files import Files, tables
from narrowcast.exports.layout import GroupLayout
from narrowcast.exports.options import Options, check_addresses, check_memberships
from narrowcast.exports.text import xml
from narrowcast.model.plan import Plan

PORT = 7400
# Tried at 5 % loss: the defaults manage a tenth of this rate.
TUNING = """\
    <Internal>
      <NackDelay>5 ms</NackDelay>
      <HeartbeatInterval min="2 ms" minsched="5 ms" max="500 ms">10 ms</HeartbeatInterval>
      <Watermarks>
        <WhcHigh>8 MB</WhcHigh>
        <WhcHighInit>8 MB</WhcHighInit>
        <WhcLow>1 MB</WhcLow>
        <WhcAdaptive>false</WhcAdaptive>
      </Watermarks>
    </Internal>"""


def partition(session: int, group: int) -> str:
    """The DDS partition of a session."""
    return f"g{group}-s{session}"


def cyclonedds(plan: Plan, options: Options) -> Files:
    """`cyclonedds.xml` for every participant, and which partition a flow is written to and a subscriber reads."""
    layout, beside = any_layout(plan, options, "Cyclone DDS")
    check_addresses(layout, options, dds=True)
    check_memberships(layout, options, beside=1, why=" and Cyclone DDS one more for discovery")
    if layout.unicast and options.interface is None:
        raise InputError(
            "a hybrid's unicast needs --interface: Cyclone DDS would send it to its default multicast address",
            name="interface",
            hint="for example --interface eth0",
        )
    number = layout.number_of_subscriber
    found = tables(
        layout,
        ("partition", "address"),
        lambda session, group: (partition(session, group), options.address(group)),
        apart=lambda _, subscriber: (f"u-{number[subscriber]}",),
        apart_columns=("partition",),
    )
    most = max((len(groups) for groups in layout.joins.values()), default=0)
    notes = (
        f"a subscriber joins at most {most} groups and one for discovery on one socket; the hosts must allow "
        f"{options.memberships} (net.ipv4.igmp_max_memberships), or readers silently get nothing",
        "keep a sample within one fragment, about 1300 bytes",
    )
    return Files({"cyclonedds.xml": _configuration(layout, options), **found, **beside}, notes)


def _configuration(layout: GroupLayout, options: Options) -> str:
    groups = range(layout.n_groups)
    partitions = [f'<NetworkPartition name="g{g}" address="{options.address(g)}"/>' for g in groups]
    mappings = [f'<PartitionMapping NetworkPartition="g{g}" DCPSPartitionTopic="g{g}-*.*"/>' for g in groups]
    if layout.unicast and options.interface is not None:
        partitions.append(f'<NetworkPartition name="unicast" address="" interface="{xml(options.interface)}"/>')
        mappings.append('<PartitionMapping NetworkPartition="unicast" DCPSPartitionTopic="u-*.*"/>')
    which = 'autodetermine="true"' if options.interface is None else f'name="{xml(options.interface)}"'
    port = PORT if options.port is None else options.port
    return f"""\
<?xml version="1.0" encoding="UTF-8"?>
<CycloneDDS xmlns="https://cdds.io/config">
  <Domain Id="any">
    <General>
      <Interfaces>
        <NetworkInterface {which} multicast="true" prefer_multicast="true"/>
      </Interfaces>
      <MulticastTimeToLive>{options.ttl}</MulticastTimeToLive>
    </General>
    <Discovery>
      <Ports>
        <Base>{port}</Base>
      </Ports>
    </Discovery>
    <Partitioning>
      <NetworkPartitions>
{_lines(partitions)}
      </NetworkPartitions>
      <PartitionMappings>
{_lines(mappings)}
      </PartitionMappings>
    </Partitioning>
{TUNING}
  </Domain>
</CycloneDDS>
"""


def _lines(elements: list[str]) -> str:
    return "\n".join(f"        {element}" for element in elements)
