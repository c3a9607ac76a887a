"""Is a network plan sound, and does it cost what it says? Read from its tables and obeyed message by message.

Shares no code with the planner: every flow is walked from its source through the tree of its channel, filters
forward what somebody beyond them wants, and whoever wants a flow and does not get it is named.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from narrowcast.errors import InputError
from narrowcast.evaluate.columns import amounts, constant, numbers, places, texts, whole
from narrowcast.evaluate.messages import drawn, wanted_flows
from narrowcast.model.arrays import Bools, Floats, Ints
from narrowcast.model.plan import Tables
from narrowcast.plans.network.judge_answers import TABLES, JudgedAnswers, judged_answers

COLUMNS = {
    "sites": ("site", "gateway", "groups", "sessions", "joins_per_host", "alpha", "beta", "lan_delay"),
    "hosts": ("host", "site", "multicast"),
    "subscribers": ("subscriber", "host", "latency_bound"),
    "flows": ("flow", "rate", "size", "source"),
    "interest": ("flow", "subscriber"),
    "links": ("u", "v", "cost", "delay", "capacity"),
    "brokers": ("node", "can_filter"),
    "flow_channel": ("flow", "channel"),
    "trees": ("channel", "u", "v"),
    "filters": ("node",),
    "direct": ("flow", "site"),
    "paths": ("source", "site", "u", "v"),
    "flow_session": ("site", "flow", "session"),
    "session_group": ("site", "session", "group"),
    "unicast": ("flow", "subscriber"),
    **TABLES,
}
OPTIONAL = tuple(TABLES)
BOUNDED = "total"
SHOWN = 5  # faults of one kind that are named
SLACK = 1 + 1e-6
SECONDS = 3600.0


@dataclass(frozen=True, eq=False)
class NetworkRead:
    """A plan's tables as numbers, each cell checked; what refers to nothing is an InputError."""

    plan: Tables

    def names(self, table: str, column: str) -> Any:
        found = texts(self.plan, table, column)
        if len(found.unique()) != len(found):
            raise InputError(f"table {table}: {column} holds a name twice", name=column)
        return found

    def refer(self, table: str, column: str, names: Any) -> Ints:
        values = texts(self.plan, table, column)
        found = places(values, names)
        if (found < 0).any():
            at = int(np.argmax(found < 0))
            raise InputError(f"table {table}, row {at}: {column} {values[at]} is not in the plan", name=column)
        return found

    def flags(self, table: str, column: str) -> Bools:
        return np.array([bool(value) for value in self.plan.tables[table][column].to_pylist()], np.bool_)

    def limits(self, table: str, column: str) -> Floats:
        found = numbers(self.plan, table, column)
        return np.where(np.isnan(found), np.inf, found)

    @cached_property
    def answers(self) -> JudgedAnswers | None:
        return judged_answers(self.plan)

    @cached_property
    def extraction(self) -> float:
        """CPU seconds a second that clients spend on rows of merged answers that they throw away."""
        thrown = [] if self.answers is None else self.answers.thrown
        beta, site = amounts(self.plan, "sites", "beta"), dict(zip(self.users.to_pylist(), self.user_site, strict=True))
        return sum(float(beta[site[client]]) * rows_s for client, rows_s in thrown)

    @cached_property
    def sites(self) -> Any:
        return self.names("sites", "site")

    @cached_property
    def brokers(self) -> Any:
        return self.names("brokers", "node")

    @cached_property
    def flows(self) -> Any:
        return self.names("flows", "flow")

    @cached_property
    def users(self) -> Any:
        return self.names("subscribers", "subscriber")

    @cached_property
    def gateway(self) -> Ints:
        return self.refer("sites", "gateway", self.brokers)

    @cached_property
    def host(self) -> Ints:
        return self.refer("subscribers", "host", self.names("hosts", "host"))

    @cached_property
    def user_site(self) -> Ints:
        return self.refer("hosts", "site", self.sites)[self.host]

    @cached_property
    def rate(self) -> Floats:
        return amounts(self.plan, "flows", "rate")

    @cached_property
    def bytes_s(self) -> Floats:
        return self.rate * amounts(self.plan, "flows", "size")

    @cached_property
    def source(self) -> Ints:
        return self.refer("flows", "source", self.sites)

    @cached_property
    def pair(self) -> tuple[Ints, Ints]:
        """(flow, subscriber) of every wish."""
        return self.refer("interest", "flow", self.flows), self.refer("interest", "subscriber", self.users)

    @cached_property
    def wants(self) -> Any:
        """Flows × sites: how many want it there."""
        flow, user = self.pair
        count = np.zeros((len(self.flows), len(self.sites)))
        np.add.at(count, (flow, self.user_site[user]), 1)
        return count

    @cached_property
    def soonest(self) -> Floats:
        """Flows × sites: the tightest bound of those who want it there, inf where none has one."""
        flow, user = self.pair
        least = np.full((len(self.flows), len(self.sites)), np.inf)
        np.minimum.at(least, (flow, self.user_site[user]), self.limits("subscribers", "latency_bound")[user])
        return least

    @cached_property
    def links(self) -> dict[frozenset[int], int]:
        u, v = (self.refer("links", end, self.brokers).tolist() for end in "uv")
        return {frozenset(ends): at for at, ends in enumerate(zip(u, v, strict=True))}

    @cached_property
    def link_delay(self) -> Floats:
        return amounts(self.plan, "links", "delay")

    @cached_property
    def filters(self) -> set[int]:
        return set(self.refer("filters", "node", self.brokers).tolist())

    @cached_property
    def direct(self) -> Bools:
        """Flows × sites: sent straight from the source."""
        straight = np.zeros((len(self.flows), len(self.sites)), np.bool_)
        straight[self.refer("direct", "flow", self.flows), self.refer("direct", "site", self.sites)] = True
        return straight

    @cached_property
    def channel(self) -> Ints:
        found = np.full(len(self.flows), -1)
        flow = self.refer("flow_channel", "flow", self.flows)
        if np.unique(flow).size != flow.size:
            raise InputError("table flow_channel: a flow has two channels", name="flow")
        found[flow] = whole(self.plan, "flow_channel", "channel")
        return found

    @cached_property
    def trees(self) -> dict[int, list[tuple[int, int, int]]]:
        """Per channel its links as (u, v, number)."""
        u, v = (self.refer("trees", end, self.brokers).tolist() for end in "uv")
        found: dict[int, list[tuple[int, int, int]]] = {}
        for c, a, b in zip(whole(self.plan, "trees", "channel").tolist(), u, v, strict=True):
            if frozenset((a, b)) not in self.links:
                raise InputError(f"table trees: {self.brokers[a]} and {self.brokers[b]} have no link", name="trees")
            found.setdefault(c, []).append((a, b, self.links[frozenset((a, b))]))
        return found

    @cached_property
    def journey(self) -> tuple[Floats, Bools, Floats]:
        """Bytes a second per link; flows × sites: whether it arrives by its channel, and the delay if so."""
        load = np.zeros(len(self.links))
        arrives = np.zeros((len(self.flows), len(self.sites)), np.bool_)
        delay = np.full((len(self.flows), len(self.sites)), np.inf)
        site_at = {int(broker): site for site, broker in enumerate(self.gateway.tolist())}
        late = constant(self.plan, "filter_delay", 0.0)
        needs = (self.wants > 0) & ~self.direct
        needs[np.arange(len(self.flows)), self.source] = False
        for c in np.unique(self.channel[self.channel >= 0]).tolist():
            for source in np.unique(self.source[self.channel == c]).tolist():
                mine = np.flatnonzero((self.channel == c) & (self.source == source))
                for link, node, time, through in self._walk(c, source, needs[mine], late):
                    load[link] += self.bytes_s[mine[through]].sum()
                    site = site_at.get(node, -1)
                    if site >= 0:
                        arrives[mine[through], site] = True
                        delay[mine[through], site] = time
        return load, arrives, delay

    def _walk(self, c: int, source: int, needs: Bools, late: float) -> Iterator[tuple[int, int, float, Bools]]:
        """(link, broker beyond it, delay there, which flows cross it), outward from the source."""
        around: dict[int, list[tuple[int, int]]] = {}
        for u, v, link in self.trees.get(c, ()):
            around.setdefault(u, []).append((v, link))
            around.setdefault(v, []).append((u, link))
        site_at = {int(broker): site for site, broker in enumerate(self.gateway.tolist())}

        def beyond(node: int, came_from: int) -> Bools:
            wanted = needs[:, site_at[node]].copy() if node in site_at else np.zeros(needs.shape[0], np.bool_)
            for other, _ in around.get(node, ()):
                if other != came_from:
                    wanted |= beyond(other, node)
            return wanted

        root = int(self.gateway[source])
        front = [(root, -1, 0.0, np.ones(needs.shape[0], np.bool_))]
        seen = {root}
        while front:
            node, before, time, here = front.pop()
            for other, link in around.get(node, ()):
                if other == before:
                    continue
                if other in seen:
                    raise InputError(f"channel {c}: its links are no tree", name="trees")
                seen.add(other)
                through = here & beyond(other, node) if node in self.filters else here
                then = time + float(self.link_delay[link]) + (late if node in self.filters else 0.0)
                yield link, other, then, through
                front.append((other, node, then, through))

    @cached_property
    def paths(self) -> dict[tuple[int, int], list[int]]:
        """The links of the direct way between two sites; a way that breaks off is an InputError."""
        ends = [self.refer("paths", end, self.sites).tolist() for end in ("source", "site")]
        steps = [self.refer("paths", end, self.brokers).tolist() for end in "uv"]
        found: dict[tuple[int, int], list[int]] = {}
        at: dict[tuple[int, int], int] = {}
        for source, site, u, v in zip(*ends, *steps, strict=True):
            if at.get((source, site), int(self.gateway[source])) != u or frozenset((u, v)) not in self.links:
                raise InputError(f"table paths: the way from {self.sites[source]} to {self.sites[site]} breaks off")
            found.setdefault((source, site), []).append(self.links[frozenset((u, v))])
            at[source, site] = v
        for (source, site), end in at.items():
            if end != self.gateway[site]:
                raise InputError(f"table paths: the way from {self.sites[source]} ends before {self.sites[site]}")
        return found

    @cached_property
    def load(self) -> Floats:
        """Bytes a second on every link, one copy per subscriber on direct ways."""
        load = self.journey[0].copy()
        for flow, site in np.argwhere(self.direct).tolist():
            way = self.paths.get((int(self.source[flow]), site), [])
            load[way] += self.bytes_s[flow] * self.wants[flow, site]
        return load

    @cached_property
    def alone(self) -> Bools:
        """Of each wish whether it is sent by unicast."""
        flow, user = self.pair
        n = max(len(self.users), 1)
        told = self.refer("unicast", "flow", self.flows) * n + self.refer("unicast", "subscriber", self.users)
        return np.isin(flow * n + user, told)

    @cached_property
    def session(self) -> Any:
        """Flows × sites: the session, −1 for none."""
        found = np.full((len(self.flows), len(self.sites)), -1)
        flow, site = self.refer("flow_session", "flow", self.flows), self.refer("flow_session", "site", self.sites)
        found[flow, site] = whole(self.plan, "flow_session", "session")
        return found

    @cached_property
    def group(self) -> dict[tuple[int, int], int]:
        """The group of each (site, session)."""
        site = self.refer("session_group", "site", self.sites).tolist()
        session, group = (whole(self.plan, "session_group", name).tolist() for name in ("session", "group"))
        return dict(zip(zip(site, session, strict=True), group, strict=True))

    @cached_property
    def multicast(self) -> tuple[Ints, Ints, Ints, Ints]:
        """Of every wish served by multicast: subscriber, site, session, group (−1: there is none)."""
        flow, user = (end[~self.alone] for end in self.pair)
        site = self.user_site[user]
        session = self.session[flow, site]
        ways, way = np.unique(np.column_stack((site, session)), axis=0, return_inverse=True)
        group = np.array([self.group.get((s, l), -1) for s, l in ways.tolist()], np.int64)
        return user, site, session, group[way.ravel()]


def faults(plan: Tables) -> list[str]:
    read = NetworkRead(plan)
    return [fault for check in CHECKS for fault in check(read)]


def _few(found: Any, total: int) -> Iterator[str]:
    for shown, text in enumerate(found):
        if shown == SHOWN:
            yield f"and {total - SHOWN} more like it"
            return
        yield text


def _nobody_excluded(read: NetworkRead) -> Iterator[str]:
    """Whoever wants a flow: it comes to the site, and from there by a group that is joined or by unicast."""
    flow, user = read.pair
    site = read.user_site[user]
    arrives = read.journey[1] | read.direct
    arrives[np.arange(len(read.flows)), read.source] = True
    missing = np.flatnonzero(~arrives[flow, site])
    yield from _few(
        (f"{read.users[int(user[i])]} wants {read.flows[int(flow[i])]}, which does not reach "
         f"{read.sites[int(site[i])]}" for i in missing.tolist()), missing.size,
    )  # fmt: skip
    who, _, _, group = read.multicast
    lost = np.flatnonzero(group < 0)
    yield from _few(
        (f"{read.users[int(who[i])]} wants a flow that no group of its site carries and that is not sent by unicast"
         for i in lost.tolist()), lost.size,
    )  # fmt: skip
    straight = np.flatnonzero(read.direct[flow, site] & ~read.alone)
    yield from _few(
        (f"{read.flows[int(flow[i])]} comes straight to {read.sites[int(site[i])]} and is not unicast to "
         f"{read.users[int(user[i])]}" for i in straight.tolist()), straight.size,
    )  # fmt: skip
    for source, to in sorted({(int(read.source[f]), int(s)) for f, s in np.argwhere(read.direct)}):
        if source != to and (source, to) not in read.paths:
            yield f"the direct way from {read.sites[source]} to {read.sites[to]} is missing"


def _budgets(read: NetworkRead) -> Iterator[str]:
    plan = read.plan
    groups, sessions = (whole(plan, "sites", name) for name in ("groups", "sessions"))
    for s, name in enumerate(read.sites.to_pylist()):
        mine = {l: g for (site, l), g in read.group.items() if site == s}
        for what, n, most in (("sessions", len(mine), sessions[s]), ("groups", len(set(mine.values())), groups[s])):
            if n > most:
                yield f"{name} uses {n} {what}, it may use {most}"
    channels = np.unique(read.channel[read.channel >= 0]).size
    for what, n in (("channels", channels), ("filters", len(read.filters))):
        most = constant(plan, what, 0)
        if n > most:
            yield f"the plan has {n} {what}, it may have {most:g}"
    able = read.flags("brokers", "can_filter")
    for broker in sorted(read.filters):
        if not able[broker]:
            yield f"{read.brokers[broker]} filters and cannot"


def _hosts(read: NetworkRead) -> Iterator[str]:
    """Hosts without multicast join nothing; the others no more groups than they may."""
    user, site, _, group = read.multicast
    host, can = read.host[user], read.flags("hosts", "multicast")
    names = texts(read.plan, "hosts", "host")
    for at in np.unique(host[~can[host]])[:SHOWN].tolist():
        yield f"host {names[at]} cannot do multicast and is served by it"
    most = read.limits("sites", "joins_per_host")
    joined = np.unique(np.column_stack((host, site, group)), axis=0)
    count = np.bincount(joined[:, 0], minlength=len(names))
    where = np.zeros(len(names), np.int64)
    where[host] = site
    for at in np.flatnonzero(count > most[where])[:SHOWN].tolist():
        yield f"host {names[at]} joins {count[at]} groups, it may join {most[where[at]]:g}"


def _capacity(read: NetworkRead) -> Iterator[str]:
    most = read.limits("links", "capacity")
    for ends, at in read.links.items():
        if read.load[at] > most[at] * SLACK:
            u, v = sorted(ends)
            told = f"carries {read.load[at]:g} bytes/s, it bears {most[at]:g}"
            yield f"the link {read.brokers[u]} to {read.brokers[v]} {told}"


def _latency(read: NetworkRead) -> Iterator[str]:
    lan = amounts(read.plan, "sites", "lan_delay")
    late = np.where(read.direct, np.inf, read.journey[2])
    late[np.arange(len(read.flows)), read.source] = 0.0
    for (source, site), way in read.paths.items():
        here = read.direct[:, site] & (read.source == source)
        late[here, site] = float(read.link_delay[way].sum())
    slow = np.argwhere((read.wants > 0) & np.isfinite(read.soonest) & (late + lan > read.soonest * SLACK))
    yield from _few(
        (f"{read.flows[f]} takes {late[f, s] + lan[s]:g} ms to {read.sites[s]}, somebody there wants it within "
         f"{read.soonest[f, s]:g}" for f, s in slow.tolist()), len(slow),
    )  # fmt: skip


def _in_vain(read: NetworkRead) -> Iterator[str]:
    """A session that nobody takes is not sent; each flow of a session is taken by somebody."""
    flow, user = (end[~read.alone] for end in read.pair)
    sent = np.argwhere(read.session >= 0)
    taken = np.zeros(read.session.shape, np.bool_)
    taken[flow, read.user_site[user]] = True
    idle = [(f, s) for f, s in sent.tolist() if not taken[f, s]]
    yield from _few(
        (f"{read.flows[f]} has a session in {read.sites[s]} and nobody takes it" for f, s in idle), len(idle)
    )


def _bounds(read: NetworkRead) -> Iterator[str]:
    """The bounds per term are at most the terms."""
    found = cost(read.plan)
    own = {"links": found["links"], "sites": found["session_filtering"] + found["flow_filtering"] + found["sending"]}
    for name, bound in dict(read.plan.parameters.get("lower_bounds", {})).items():
        if not 0 <= float(bound) <= own[name] * SLACK + 1e-12:
            yield f"its lower bound of {name} is {bound}, the cost is {own[name]}"


def _unicast(read: NetworkRead) -> Iterator[str]:
    """The baseline unicast: one copy per wish, over the cheapest way; a latency bound may make it dearer."""
    said = read.plan.baselines.get("unicast")
    if said is None:
        return
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import dijkstra

    ends = np.array([sorted(pair) for pair in read.links], np.int64).reshape(-1, 2)
    price = amounts(read.plan, "links", "cost")
    graph = coo_array((price, (ends[:, 0], ends[:, 1])), shape=(len(read.brokers),) * 2).tocsr()
    apart = dijkstra(graph, directed=False)[np.ix_(read.gateway, read.gateway)]
    flow, user = read.pair
    copy = constant(read.plan, "price_send", 0.0) * SECONDS / 1e6
    way = apart[read.source[flow], read.user_site[user]] * SECONDS / 1e9
    least = float((read.bytes_s[flow] * way).sum() + copy * read.rate[flow].sum())
    least += constant(read.plan, "price_cpu", 0.0) * read.extraction
    bounded = np.isfinite(read.soonest).any()
    if said < least * (1 - 1e-6) - 1e-12 or (not bounded and said > least * SLACK + 1e-12):
        yield f"its baseline unicast is {said}, it should be {least}"


def _answers(read: NetworkRead) -> Iterator[str]:
    """Every query is answered whole by the flow of its set."""
    if read.answers is not None:
        yield from read.answers.faults()


CHECKS = (_answers, _nobody_excluded, _budgets, _hosts, _capacity, _latency, _in_vain, _bounds, _unicast)


def cost(plan: Tables) -> dict[str, float]:
    """Every term of the one cost, per hour, from its definition."""
    read = NetworkRead(plan)
    user, site, session, group = read.multicast
    cpu, copy = constant(plan, "price_cpu", 0.0), constant(plan, "price_send", 0.0) * SECONDS / 1e6
    alpha, beta = (amounts(plan, "sites", name) for name in ("alpha", "beta"))
    theta: dict[tuple[int, int], float] = {}
    for flow, at in np.argwhere(read.session >= 0).tolist():
        key = at, int(read.session[flow, at])
        theta[key] = theta.get(key, 0.0) + float(read.rate[flow])
    Theta: dict[tuple[int, int], float] = {}
    for (s, l), rate in theta.items():
        Theta[s, read.group.get((s, l), -1)] = Theta.get((s, read.group.get((s, l), -1)), 0.0) + rate
    joined = np.unique(np.column_stack((user, site, group)), axis=0).tolist()
    taken = np.unique(np.column_stack((user, site, session)), axis=0).tolist()
    copies = float(read.rate[read.pair[0][read.alone]].sum()) + sum(theta.values())
    terms = {
        "links": float(amounts(plan, "links", "cost") @ read.load) * SECONDS / 1e9,
        "session_filtering": sum(cpu * alpha[s] * Theta.get((s, g), 0.0) for _, s, g in joined),
        "flow_filtering": sum(cpu * beta[s] * theta.get((s, l), 0.0) for _, s, l in taken) + cpu * read.extraction,
        "sending": copy * copies,
        "filters": constant(plan, "price_filter", 0.0) * len(read.filters),
        "groups": constant(plan, "price_group", 0.0) * len({(s, g) for (s, _), g in read.group.items()}),
    }
    return {"total": sum(terms.values()), **{name: float(value) for name, value in terms.items()}}


def checked(plan: Tables) -> tuple[str, ...]:
    n = plan.tables["interest"].num_rows if "interest" in plan.tables else 0
    return (
        f"{n:,} wishes: each flow reaches the site, and each subscriber by a group or by unicast",
        "groups, sessions, channels and filters are within their budgets",
        "joins per host, and no multicast for hosts without it",
        "capacity of every link",
        "latency bounds end to end",
        *(["every query lies inside the answer that its client gets"] if "queries" in plan.tables else []),
    )


def message_faults(
    plan: Tables, messages: Any, subscriptions: Sequence[tuple[str, str]], *, sample: int = 100_000
) -> tuple[list[str], int]:
    """Who would miss a message, and how many wanted (message, subscriber) pairs were looked at.

    Every wish that the plan knows is walked to its end by `faults`; here it is asked whether it knows all there are.
    """
    read = NetworkRead(plan)
    rows = drawn(messages.num_rows, sample)
    flow, user, at = wanted_flows(messages.take(rows), subscriptions, plan.key)
    known, n = read.pair, len(read.users) + 1
    at_flow, at_user = places(flow, read.flows), places(user, read.users)
    planned = (at_flow >= 0) & (at_user >= 0) & np.isin(at_flow * n + at_user, known[0] * n + known[1])
    found: dict[tuple[str, str], str] = {}
    for i in np.flatnonzero(~planned).tolist():
        what, who = flow[i].as_py(), user[i].as_py()
        told = f"message {rows[at[i]]} (flow {what!r}) is wanted by {who}, who was not planned for it"
        found.setdefault((what, who), told)
    return list(found.values()), len(flow)
