"""What a channels plan does to one flow, subscriber or group, and what its rates come to."""

from __future__ import annotations

import numpy as np

from narrowcast.plans.channels.report.served import Served, served
from narrowcast.plans.channels.result import ChannelsPlan
from narrowcast.reports.amounts import Amount
from narrowcast.reports.find import Findable
from narrowcast.reports.text import number, percent


def amounts(plan: ChannelsPlan) -> list[Amount]:
    """What is sent and what arrives by this plan, by flooding and by unicast."""
    read = served(plan)
    n, wanted = read.interest, float(read.wanted.sum())
    apart = float(n.rates[n.flow_of_pair][read.unicast].sum())
    by_group = np.zeros(n.n_flows, np.bool_)
    by_group[n.flow_of_pair[~read.unicast]] = True
    sent, flooded = float(n.rates[by_group].sum()) + apart, read.sent * n.n_users
    worst = int(np.argmax(read.received)) if n.n_users else -1
    name = (n.user_names or ())[worst] if n.n_users else "nobody"
    got = (float(read.received[worst]), read.sent, float(read.wanted[worst])) if n.n_users else (0.0, 0.0, 0.0)
    ways = ("this plan", "flooding", "unicast")
    received = float(read.received.sum())
    return [
        Amount("sent by the sources", dict(zip(ways, (sent, read.sent, wanted), strict=True))),
        Amount("arrives at all subscribers", dict(zip(ways, (received, flooded, wanted), strict=True)), filtered=True),
        Amount("unwanted of it", dict(zip(ways, (received - wanted, flooded - wanted, 0.0), strict=True))),
        Amount(f"arrives at {name}, who gets most", dict(zip(ways, got, strict=True)), filtered=True),
    ]


def findable(read: Served) -> list[Findable]:
    """Subscribers, flows and groups by name, each with what the plan does to it."""
    n, sizes = read.interest, read.interest.audience_sizes
    members = np.asarray(read.joins.sum(axis=0)).ravel().astype(int)
    joined = np.diff(read.joins.indptr)
    alone = np.bincount(n.flow_of_pair[read.unicast], minlength=n.n_flows)
    flows = np.bincount(read.group[read.group >= 0], minlength=read.n_groups)
    users = [
        (name, number(float(want)), number(float(get)), percent(want / get if get else 1.0), f"{n_groups:,}")
        for name, want, get, n_groups in zip(n.user_names or (), read.wanted, read.received, joined, strict=True)
    ]
    rows = []
    for k, name in enumerate(n.flow_names or ()):
        g = int(read.group[k])
        way = f"session {read.session[k]} of group {g}" if g >= 0 else "unicast" if alone[k] else "nowhere: not wanted"
        unasked = int(members[g]) - int(sizes[k] - alone[k]) if g >= 0 else 0
        rows.append((name, number(float(n.rates[k])), way, f"{sizes[k]:,}", f"{unasked:,}"))
    used = np.flatnonzero(flows).tolist()
    groups = [(g, number(float(read.group_rate[g])), f"{members[g]:,}", f"{flows[g]:,}") for g in used]
    return [
        Findable("subscriber", ("wants, messages/s", "gets, messages/s", "wanted of it", "groups joined"), users),
        Findable("flow", ("messages/s", "goes by", "subscribers who want it", "subscribers who get it unasked"), rows),
        Findable("group", ("messages/s", "members", "flows"), groups),
    ]
