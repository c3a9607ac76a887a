"""RTI Connext: a multi-channel DataWriter. Each group is a channel whose guard passes its flows to its address.

A guard is a STRINGMATCH expression on a key field of the type. Guards by flow list the flows' names; guards by
session say `g<group>-*` and stay the same when a later plan moves flows, but the application must fill the field.
"""

from __future__ import annotations

import re
from dataclasses import replace

from narrowcast.errors import InfeasibleError, InputError
from narrowcast.exports.cyclonedds import partition
from narrowcast.exports.files import Files, tables
from narrowcast.exports.layout import GroupLayout, layout_of
from narrowcast.exports.options import Options, check_addresses, check_memberships
from narrowcast.exports.text import xml
from narrowcast.model.plan import Plan

# Participants refuse longer expressions and more channels than these, whatever is configured.
LONGEST_GUARD = 65535
MOST_CHANNELS = 65535
# In a pattern these mean themselves; how others are quoted differs between versions, so they are refused.
_PLAIN = re.compile(r"[A-Za-z0-9_.:@#$&+=~-]+")


def rti(plan: Plan, options: Options) -> Files:
    """`rti_qos.xml` with a profile for multicast and, for a hybrid, one for unicast; and the lookup tables."""
    layout, options = layout_of(plan), _with_key(plan, options)
    check_addresses(layout, options, dds=True)
    check_memberships(layout, options, beside=1, why=" and Connext one more for discovery")
    guards = {group: _guard(layout, options, group) for group in layout.sessions_of_group}
    if len(guards) > MOST_CHANNELS:
        raise InfeasibleError(
            f"groups must be at most {MOST_CHANNELS}, the channels of a DataWriter, got {len(guards)}",
            budget="groups",
            smallest=len(guards),
        )
    number = layout.number_of_subscriber
    found = tables(
        layout,
        ("partition", "address"),
        lambda session, group: (partition(session, group), options.address(group)),
        apart=lambda _, subscriber: (f"u-{number[subscriber]}",),
        apart_columns=("partition",),
    )
    notes = (
        f"the type needs the string {options.key!r} as a key: Connext delivers reliably only what is guarded by keys",
        "subscribers use a ContentFilteredTopic with the STRINGMATCH filter on the same field; then they join only "
        "the channels that can match",
        "checked to be well-formed XML; not validated against RTI's schema, which is not freely available",
    )
    return Files({"rti_qos.xml": _profiles(layout, options, guards), **found}, notes)


def _with_key(plan: Plan, options: Options) -> Options:
    """The field that guards look at: as told, else the plan's flow key."""
    by_flow = options.guard == "flow" and len(plan.key) == 1
    return options if options.key else replace(options, key=plan.key[0] if by_flow else "flow")


def _guard(layout: GroupLayout, options: Options, group: int) -> str:
    if options.guard == "session":
        return f"{options.key} MATCH 'g{group}-*'"
    flows = [flow for session in layout.sessions_of_group[group] for flow in layout.flows_of_session[session]]
    for flow in flows:
        if not _PLAIN.fullmatch(flow):
            raise InputError(
                f"flow {flow!r} has characters that are special in a guard: use --guard session", name="flow", got=flow
            )
    guard = f"{options.key} MATCH '{','.join(flows)}'"
    if len(guard) > LONGEST_GUARD:
        raise InfeasibleError(
            f"the guard of group {group} with its {len(flows)} flows has {len(guard)} characters, but Connext allows "
            f"{LONGEST_GUARD}: use --guard session",
            budget="guard",
            smallest=len(guard),
        )
    return guard


def _profiles(layout: GroupLayout, options: Options, guards: dict[int, str]) -> str:
    longest = max((len(guard) for guard in guards.values()), default=0) + 1
    apart = '\n    <qos_profile name="unicast" base_name="narrowcast::participant"/>' if layout.unicast else ""
    return f"""\
<?xml version="1.0" encoding="UTF-8"?>
<dds>
  <qos_library name="narrowcast">
    <qos_profile name="participant">
      <participant_qos>
        <resource_limits>
          <channel_seq_max_length>{max(32, len(guards))}</channel_seq_max_length>
          <channel_filter_expression_max_length>{max(256, longest)}</channel_filter_expression_max_length>
          <contentfilter_property_max_length>{max(256, longest)}</contentfilter_property_max_length>
        </resource_limits>
        <property>
          <value>
{_properties(options)}
          </value>
        </property>
      </participant_qos>
    </qos_profile>
    <qos_profile name="multicast" base_name="narrowcast::participant">
      <datawriter_qos>
        <reliability>
          <kind>RELIABLE_RELIABILITY_QOS</kind>
        </reliability>
        <multi_channel>
          <channels>
{"".join(_channel(options, group, guard) for group, guard in guards.items())}          </channels>
        </multi_channel>
      </datawriter_qos>
      <datareader_qos>
        <reliability>
          <kind>RELIABLE_RELIABILITY_QOS</kind>
        </reliability>
      </datareader_qos>
    </qos_profile>{apart}
  </qos_library>
</dds>
"""


def _properties(options: Options) -> str:
    values = {"dds.transport.UDPv4.builtin.multicast_ttl": str(options.ttl)}
    if options.interface is not None:
        values["dds.transport.UDPv4.builtin.parent.allow_multicast_interfaces_list"] = options.interface
    return "\n".join(
        f"            <element>\n              <name>{name}</name>\n              <value>{xml(value)}</value>\n"
        "            </element>"
        for name, value in values.items()
    )


def _channel(options: Options, group: int, guard: str) -> str:
    port = 0 if options.port is None else options.port
    return f"""\
            <element>
              <filter_expression>{xml(guard)}</filter_expression>
              <multicast_settings>
                <element>
                  <receive_address>{options.address(group)}</receive_address>
                  <receive_port>{port}</receive_port>
                </element>
              </multicast_settings>
            </element>
"""
