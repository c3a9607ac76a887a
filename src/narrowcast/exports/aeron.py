"""Aeron: a channel URI per group, a stream id per session.

The media driver takes odd addresses for data and uses the even ones beside them for control, so groups lie two
apart. A receiver's driver drops streams nobody subscribed to, which is Tock's session filtering.
"""

from __future__ import annotations

import ipaddress

from narrowcast.errors import InfeasibleError, InputError
from narrowcast.exports.files import Files, tables
from narrowcast.exports.layout import layout_of
from narrowcast.exports.options import Options, check_addresses
from narrowcast.exports.text import table
from narrowcast.model.plan import Plan

PORT = 40456
LARGEST_STREAM = 2**31 - 1


def aeron(plan: Plan, options: Options) -> Files:
    """`channels.csv` with a URI per group, and the channel and stream of each flow and subscriber."""
    layout = layout_of(plan)
    check_addresses(layout, options, every=2)
    check_interface(options, "Aeron")
    largest = max(layout.group_of_session, default=0) + len(layout.number_of_subscriber)
    if largest > LARGEST_STREAM:
        raise InfeasibleError(
            f"session must be at most {LARGEST_STREAM}, the largest Aeron stream id, got {largest}", budget="streams"
        )
    uris = {group: uri(options, group) for group in range(layout.n_groups)}
    # Streams of their own for unicast, after those of the sessions.
    first = max(layout.group_of_session, default=-1) + 1
    found = tables(
        layout,
        ("channel", "stream"),
        lambda session, group: (uris[group], session),
        apart=lambda _, subscriber: (first + layout.number_of_subscriber[subscriber],),
        apart_columns=("stream",),
    )
    notes = [
        "addresses are two apart: the driver uses the even address beside each for control",
        "every channel has a socket of its own, so net.ipv4.igmp_max_memberships does not bind",
        "checked for form and ranges; not run with a media driver",
    ]
    if layout.unicast:
        notes.append("unicast.csv gives streams; their channel is aeron:udp?endpoint=<the subscriber's host>:<port>")
    return Files({"channels.csv": table(("group", "channel"), uris.items()), **found}, tuple(notes))


def uri(options: Options, group: int) -> str:
    """The channel of a group."""
    port = PORT if options.port is None else options.port
    interface = "" if options.interface is None else f"|interface={options.interface}"
    return f"aeron:udp?endpoint={options.address(group, every=2)}:{port}{interface}|ttl={options.ttl}"


def check_interface(options: Options, target: str) -> None:
    """Some engines find an interface by its address or network, not by its name."""
    try:
        ipaddress.IPv4Interface(options.interface or "0.0.0.0")
    except ValueError:
        raise InputError(
            f"--interface must be an address or a network for {target}, got {options.interface!r}",
            name="interface",
            hint="for example 192.168.1.0/24",
        ) from None
