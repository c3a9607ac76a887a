"""A plan between two reorganisations: clients come and go, and nobody is missed (SemCast §3.2.4)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from narrowcast.errors import InputError
from narrowcast.model.cost import Cost
from narrowcast.network import DisseminationTree, edges_cost
from narrowcast.plans.semantic.live.audience import LiveAudience
from narrowcast.plans.semantic.live.content import LiveContent
from narrowcast.plans.semantic.result import SemanticPlan
from narrowcast.plans.semantic.routers.audience import AudienceRouter
from narrowcast.plans.semantic.window import OverlaySystem, Wanted, read_profile
from narrowcast.profiles import Profile


@dataclass(frozen=True, slots=True)
class NewClient:
    """`client` is the name to unsubscribe by; the gateway newly joined `joined` channels, `opened` of them new."""

    client: int
    joined: int
    opened: int


class LiveChannels:
    """The channels of a plan that clients join and leave.

    A new client is served by channels that already carry what it wants, or by a new one. When a
    gateway's last client of a channel leaves, the gateway leaves the tree, and an empty channel ends.
    `plan` is the present state; it is sound at any time. Its channels keep the rates they had: `rated_by` of a
    plan counts them again. Latency bounds are kept again from the next
    reorganisation on. A step costs O(channels + path), and for a
    profile never seen before one syntactic containment test per channel.

    >>> import pyarrow as pa
    >>> from narrowcast.model import Topology
    >>> from narrowcast.plans.semantic.api import plan
    >>> line = Topology([(0, 1), (1, 2)])
    >>> live = LiveChannels(plan(line, ["x > 1"], [(0, 1)], pa.table({"x": [2]}), sources=0, method="semcast"))
    >>> new = live.subscribe("x > 5", gateway=2)
    >>> new.joined, new.opened, live.plan.channels[0].edges.tolist()
    (1, 0, [[0, 1], [1, 2]])
    >>> live.unsubscribe(new.client); live.plan.channels[0].edges.tolist()
    [[0, 1]]
    """

    def __init__(self, plan: SemanticPlan) -> None:
        self._plan = plan
        self.clients: dict[int, tuple[int, int]] = {i: (p, g) for i, (p, g) in enumerate(plan.system.clients.tolist())}
        self.profiles: list[Profile] = list(plan.system.profiles)
        self._index: dict[Profile, int] = {}
        for i, profile in enumerate(self.profiles):
            self._index.setdefault(profile, i)
        self._next = len(self.clients)
        self._names = dict(enumerate(plan.client_names))
        self._state: LiveAudience | LiveContent
        trees = [
            DisseminationTree.from_edges(plan.system.paths, c.rendezvous, c.edges.tolist(), c.gateways)
            for c in plan.channels
        ]
        if isinstance(plan.router, AudienceRouter):
            self._state = LiveAudience(plan, trees, _bound_below(plan))
        else:
            self._state = LiveContent(plan, trees, self.profiles, _bound_below(plan))

    @property
    def plan(self) -> SemanticPlan:
        """The plan as it stands: channels with their present gateways and trees, and the rule."""
        system = self._system()
        channels, router = self._state.snapshot(system)
        paths = system.paths
        told = tuple(
            replace(
                old,
                number=number,
                gateways=tuple(sorted(tree.members)),
                edges=np.array(tree.edges, np.int32).reshape(-1, 2),
                link_cost=edges_cost(paths, tree.edges),
                profiles=system.profiles,
                content=content,
                allowed=np.inf,
            )
            for number, (old, tree, content) in enumerate(channels)
        )
        cost = float(sum(channel.rate * channel.link_cost for channel in told))
        return replace(
            self._plan,
            demand=replace(
                self._plan.demand, profiles=system.profiles, clients=system.clients, names=self.names, bounds=None
            ),
            system=system,
            channels=told,
            router=router,
            cost=Cost(cost, {"tree": cost}),
            quick=None,
            inputs={},
            checks={},
            written=None,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the clients, in the order in which the plan has them."""
        return tuple(self._names[client] for client in self._order())

    def _order(self) -> list[int]:
        return sorted(self.clients, key=lambda client: (self.clients[client], client))

    def subscribe(self, profile: Wanted, gateway: int, name: str | None = None) -> NewClient:
        """Let a client at a gateway want a profile; by default its name is its number."""
        paths = self._plan.system.paths
        if not 0 <= gateway < paths.n_brokers:
            raise InputError(f"gateway must be a broker below {paths.n_brokers}, got {gateway}", name="gateway")
        wanted = read_profile(profile)
        known = wanted in self._index
        index = self._index.setdefault(wanted, len(self.profiles))
        if not known:
            self.profiles.append(wanted)
        client, self._next = self._next, self._next + 1
        self.clients[client] = (index, gateway)
        self._names[client] = str(client) if name is None else name
        joined, opened = self._state.subscribe(index, gateway, known)
        return NewClient(client, joined, opened)

    def unsubscribe(self, client: int) -> None:
        """Let a client go."""
        if client not in self.clients:
            raise InputError(f"client must be one that has subscribed, got {client}", name="client", got=client)
        _, gateway = self.clients.pop(client)
        left = {profile for profile, g in self.clients.values() if g == gateway}
        self._state.unsubscribe(gateway, left)

    def _system(self) -> OverlaySystem:
        gateways = self._state.gateways(self.clients)
        place = {g: j for j, g in enumerate(gateways)}
        wants = np.zeros((len(self.profiles), len(gateways)), np.bool_)
        for profile, gateway in self.clients.values():
            wants[profile, place[gateway]] = True
        clients = np.array([self.clients[client] for client in self._order()], np.int64).reshape(-1, 2)
        old = self._plan.system
        return OverlaySystem(old.paths, tuple(self.profiles), clients, np.array(gateways, np.int64), wants)


def _bound_below(plan: SemanticPlan) -> float:
    """How long a newcomer's messages may take from a rendezvous: the tightest bound there is, less the way there."""
    bounds = plan.demand.bounds
    if bounds is None or plan.quick is None or not np.isfinite(bounds).any():
        return float("inf")
    roots = np.array([channel.rendezvous for channel in plan.channels], np.int64)
    way = plan.quick.delay[np.ix_(plan.sources, roots)] if plan.sources.size and roots.size else np.zeros((1, 1))
    return float(np.min(bounds) - way.max())
