"""Informatica Ultra Messaging: topic → LBT-RM transport session → multicast group.

Sources with the same multicast address and destination port share a transport session, so a session of the plan
is its group's address with a port of its own. Receivers find both by topic resolution and need no configuration.
"""

from __future__ import annotations

from narrowcast.errors import InputError
from narrowcast.exports.aeron import check_interface
from narrowcast.exports.files import Files, tables
from narrowcast.exports.layout import GroupLayout, layout_of
from narrowcast.exports.options import Options, check_addresses, check_ports
from narrowcast.exports.text import xml
from narrowcast.model.plan import Plan

# Above the product's own defaults: immediate messages use 14401, which must not overlap.
PORT = 15000
LONGEST_TOPIC = 246


def ultramessaging(plan: Plan, options: Options) -> Files:
    """`um.xml` for the publishing applications, and each flow's and subscriber's transport session."""
    layout = layout_of(plan)
    check_addresses(layout, options)
    check_interface(options, "Ultra Messaging")
    number = layout.number_of_subscriber
    apart = {(flow, user): f"u-{number[user]}/{flow}" for flow, user in layout.unicast}
    for topic in (*layout.session_of_flow, *apart.values()):
        if len(topic.encode()) > LONGEST_TOPIC:
            raise InputError(
                f"a topic must have at most {LONGEST_TOPIC} bytes, got {len(topic.encode())} in {topic!r}", name="flow"
            )
    first = PORT if options.port is None else options.port
    ports = {l: first + at for sessions in layout.sessions_of_group.values() for at, l in enumerate(sessions)}
    most = max((len(sessions) for sessions in layout.sessions_of_group.values()), default=0)
    check_ports(first, most + len(ports), "one per session of a group and one to hear NAKs on per session")
    found = tables(
        layout,
        ("address", "port"),
        lambda session, group: (options.address(group), ports[session]),
        apart=lambda flow, user: (apart[flow, user],),
        apart_columns=("topic",),
    )
    notes = (
        f"each publishing context opens {len(ports)} transport sessions; the range of source ports is set to hold them",
        "checked to be well-formed XML; not validated against the vendor's schema, which is not freely available",
    )
    return Files({"um.xml": _configuration(layout, options, ports, list(apart.values()), first + most), **found}, notes)


def _configuration(layout: GroupLayout, options: Options, ports: dict[int, int], apart: list[str], nak: int) -> str:
    context: dict[str, object] = {
        "resolver_multicast_ttl": options.ttl,
        "transport_lbtrm_source_port_low": nak,
        "transport_lbtrm_source_port_high": nak + max(len(ports), 1) - 1,
    }
    if options.interface is not None:
        context["resolver_multicast_interface"] = options.interface
    topics = [
        _topic(flow, {
            "transport": "LBT-RM",
            "transport_lbtrm_multicast_address": options.address(layout.group_of_session[session]),
            "transport_lbtrm_destination_port": ports[session],
        })
        for flow, session in layout.session_of_flow.items()
    ] + [_topic(topic, {"transport": "LBT-RU"}) for topic in apart]  # fmt: skip
    return f"""\
<?xml version="1.0" encoding="UTF-8"?>
<um-configuration version="1.0">
  <templates>
    <template name="narrowcast">
      <options type="context">
{_options(context, 8)}
      </options>
    </template>
  </templates>
  <applications>
    <application name="narrowcast" template="narrowcast">
      <contexts>
        <context>
          <sources>
{"".join(topics)}          </sources>
        </context>
      </contexts>
    </application>
  </applications>
</um-configuration>
"""


def _topic(name: str, options: dict[str, object]) -> str:
    return f"""\
            <topic topicname="{xml(name)}">
              <options type="source">
{_options(options, 16)}
              </options>
            </topic>
"""


def _options(options: dict[str, object], indent: int) -> str:
    lines = (f'<option name="{name}" default-value="{xml(str(value))}"/>' for name, value in options.items())
    return "\n".join(" " * indent + line for line in lines)
