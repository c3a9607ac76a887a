"""A whole network and what is wanted in it: sites with multicast, the backbone between them, sources, subscribers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from narrowcast.errors import InputError
from narrowcast.model.arrays import Bools, Floats, Ints, amounts, frozen, indices
from narrowcast.model.interest import Interest
from narrowcast.model.topology import Topology

if TYPE_CHECKING:
    from narrowcast.plans.network.queries import AskedQueries

#: CPU seconds that a receiver spends on a message at its session filter, and at its flow filter.
ALPHA = BETA = 2e-6
SIZE = 100.0  # bytes of a message whose size nobody says
NO_LIMIT = -1


@dataclass(frozen=True, eq=False)
class NetworkDemand:
    """Sites on a backbone, hosts in sites, subscribers on hosts, and the flows they want.

    `topology` joins brokers (cost of a link per GB, delay in ms); `capacity` is what a link bears in bytes a second,
    `can_filter` says which brokers may filter. Per site: its gateway broker, the most `groups` and `sessions` (0: no
    multicast), the most groups that a host may join (−1: any), CPU seconds per message at the session filter
    (`alpha`) and the flow filter (`beta`), and the delay of its LAN in ms. Per flow: bytes of a message and the site
    where it enters. Per subscriber: its host and how late a message may be in ms, end to end (inf: any).

    >>> pair = NetworkDemand(Topology([(0, 1)], names=["a", "b"]), Interest.from_pairs([0], [0], [5.0]),
    ...                      sites=["A", "B"], gateway=[0, 1], groups=[2, 2], sessions=[4, 4],
    ...                      hosts=["h"], host_site=[1], host=[0], source=[0])
    >>> pair
    NetworkDemand(2 sites, 2 brokers, 1 flow, 1 subscriber, 1 wish)
    """

    topology: Topology
    interest: Interest
    sites: tuple[str, ...]
    gateway: Ints
    groups: Ints
    sessions: Ints
    hosts: tuple[str, ...]
    host_site: Ints
    host: Ints
    source: Ints
    multicast: Bools = True  # type: ignore[assignment]
    size: Floats = SIZE  # type: ignore[assignment]
    bound: Floats = np.inf  # type: ignore[assignment]
    joins_per_host: Ints = NO_LIMIT  # type: ignore[assignment]
    alpha: Floats = ALPHA  # type: ignore[assignment]
    beta: Floats = BETA  # type: ignore[assignment]
    lan_delay: Floats = 0.0  # type: ignore[assignment]
    capacity: Floats = np.inf  # type: ignore[assignment]
    can_filter: Bools = True  # type: ignore[assignment]
    key: tuple[str, ...] = ()
    inputs: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None
    queries: AskedQueries | None = None
    """Queries over a table; once it is decided which are merged, the last flows are the answers of their sets."""

    def __post_init__(self) -> None:
        n_sites, n_hosts, n_flows = len(self.sites), len(self.hosts), self.interest.n_flows
        n_users, n_brokers = self.interest.n_users, self.topology.n_brokers
        for name, names in (("sites", self.sites), ("hosts", self.hosts)):
            if len(set(names)) != len(names):
                raise InputError(f"{name} must have distinct names", name=name)
            object.__setattr__(self, name, tuple(names))
        if not n_sites:
            raise InputError("sites must have at least one site, got none", name="sites")
        self._whole("gateway", n_sites, n_brokers)
        if len(np.unique(self.gateway)) != n_sites:
            raise InputError("gateway must be a broker of its own for each site", name="gateway")
        for name, low in (("groups", 0), ("sessions", 0), ("joins_per_host", NO_LIMIT)):
            self._whole(name, n_sites, None, low)
        self._whole("host_site", n_hosts, n_sites)
        self._whole("host", n_users, n_hosts)
        self._whole("source", n_flows, n_sites)
        for name, n in (("multicast", n_hosts), ("can_filter", n_brokers)):
            self._set(name, np.broadcast_to(np.asarray(getattr(self, name), np.bool_), n).copy())
        for name, n in (("alpha", n_sites), ("beta", n_sites), ("lan_delay", n_sites), ("size", n_flows)):
            self._set(name, amounts(name, getattr(self, name), n).copy())
        for name, n in (("bound", n_users), ("capacity", self.topology.n_links)):
            self._set(name, _or_infinite(name, getattr(self, name), n))
        object.__setattr__(self, "key", tuple(self.key))

    def _whole(self, name: str, n: int, high: int | None, low: int = 0) -> None:
        given = np.asarray(getattr(self, name))
        array = indices(name, np.full(n, given) if given.ndim == 0 else given, low=low, high=high)
        if array.size != n:
            raise InputError(f"{name} must have {n} entries, got {array.size}", name=name, got=array.size)
        self._set(name, array.copy())

    def _set(self, name: str, array: Any) -> None:
        object.__setattr__(self, name, frozen(array))

    @property
    def n_sites(self) -> int:
        """How many sites the network has."""
        return len(self.sites)

    @cached_property
    def site_of(self) -> Ints:
        """The site of each subscriber."""
        return self.host_site[self.host]

    @cached_property
    def bytes_s(self) -> Floats:
        """What each flow is in bytes a second."""
        return self.interest.rates * self.size

    @cached_property
    def wishes(self) -> Any:
        """Flows × sites, sparse: how many subscribers of the site want the flow."""
        from scipy.sparse import csr_array

        site, flow = self.site_of[self.interest.users], self.interest.flow_of_pair
        counts = csr_array((np.ones(site.size), (flow, site)), shape=(self.interest.n_flows, self.n_sites))
        counts.sum_duplicates()
        return counts

    def __repr__(self) -> str:
        n = self.interest
        told = [(self.n_sites, "site"), (self.topology.n_brokers, "broker"), (n.n_flows, "flow")]
        told += [(n.n_users, "subscriber"), (n.n_pairs, "wish")]
        words = [f"{count:,} {word}{'' if count == 1 else 'es' if word == 'wish' else 's'}" for count, word in told]
        return f"NetworkDemand({', '.join(words)})"


def _or_infinite(name: str, values: ArrayLike, n: int) -> Floats:
    """Numbers above 0; infinite ones and missing ones (NaN) say that there is no limit."""
    try:
        array = np.broadcast_to(np.asarray(values, np.float64), n).copy()
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be {n} numbers: {error}", name=name) from None
    array[np.isnan(array)] = np.inf
    if (array <= 0).any():
        at = int(np.argmax(array <= 0))
        raise InputError(f"{name}[{at}] must be above 0, got {array[at]}", name=name, got=float(array[at]))
    return array
