"""A channels plan: flows in sessions, sessions in multicast groups, some pairs by unicast; as arrays, and as tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from narrowcast.errors import InputError
from narrowcast.model import Interest
from narrowcast.model.arrays import Bools, Ints, distinct, frozen
from narrowcast.model.cost import Compared, Cost
from narrowcast.model.demand import Demand
from narrowcast.model.interest_tables import interest_of, interest_tables, names_of
from narrowcast.model.plan import Plan, Tables
from narrowcast.plans.channels.limits import Limits

NONE = frozen(np.zeros(0, np.int64))
MOST_SESSIONS = 1 << 24  # numbers of a damaged plan may be any


@dataclass(frozen=True, eq=False, kw_only=True)
class ChannelsPlan(Plan):
    """The session of each flow (−1: none), the group of each session, and the (flow, user) pairs by unicast.

    A plan that weighs unicast against multicast (`hybrid`) has `weights` among its parameters; one that keeps to
    multicast has `alpha` and `beta`. `limits` are those it was made under.
    """

    kind: ClassVar[str] = "channels"
    demand: Demand = field(repr=False)
    session_of_flow: Ints = field(repr=False)
    group_of_session: Ints = field(repr=False)
    unicast: tuple[Ints, Ints] = field(default=(NONE, NONE), repr=False)
    limits: Limits | None = field(default=None, repr=False)

    @property
    def interest(self) -> Interest:
        """Who wants which flow, and how fast flows are: what the plan was made for."""
        return self.demand.interest

    @property
    def method(self) -> str:
        """The method that made the plan, by its name in `METHODS`."""
        return str(self.parameters.get("method", "search"))

    @property
    def groups(self) -> int:
        """How many groups the plan may use."""
        return int(self.parameters.get("groups", 50))

    @property
    def sessions(self) -> int | None:
        """How many sessions the plan may use; None where it has a session per group."""
        found = self.parameters.get("sessions")
        return None if found is None else int(found)

    @property
    def weights(self) -> tuple[float, float, float] | None:
        """What receiving, sending and unicast cost, in plans that may use unicast."""
        found = self.parameters.get("weights")
        return None if found is None else (float(found[0]), float(found[1]), float(found[2]))

    @property
    def alpha(self) -> float:
        """What a message of a group costs everybody in it."""
        return float(self.parameters.get("alpha", 1.0)) if self.weights is None else self.weights[0]

    @property
    def beta(self) -> float:
        """What a message of a session costs everybody who takes it."""
        return float(self.parameters.get("beta", 1.0 if self.weights is None else 0.0))

    @property
    def n_subscribers(self) -> int:
        """All subscribers, those who want nothing included."""
        return max(self.interest.n_users, int(self.parameters.get("subscribers", 0)))

    @cached_property
    def group_of_flow(self) -> Ints:
        """The group of each flow, −1 for one that no group carries."""
        group = np.full(self.session_of_flow.size, -1)
        sent = self.session_of_flow >= 0
        group[sent] = self.group_of_session[self.session_of_flow[sent]]
        return frozen(group)

    @cached_property
    def by_unicast(self) -> Bools:
        """Of each wish, whether it is met by unicast."""
        flow, user = self.unicast
        interest = self.interest
        return np.isin(interest.flow_of_pair * interest.n_users + interest.users, flow * interest.n_users + user)

    @cached_property
    def joins(self) -> tuple[Ints, Ints]:
        """(user, group) pairs: everyone joins the groups that bring something wanted."""
        interest, group_of_flow = self.interest, self.group_of_flow
        n_groups = int(group_of_flow.max(initial=0)) + 1
        group = group_of_flow[interest.flow_of_pair]
        served = ~self.by_unicast & (group >= 0)
        users, groups = np.divmod(distinct(interest.users[served] * n_groups + group[served]), n_groups)
        return users, groups

    @property
    def percent_of_perfect(self) -> float:
        """The cost as per cent of perfect multicast's, where unicast may be used."""
        perfect = self.cost.perfect
        return 100 * self.cost / perfect if perfect > 0 else 100.0

    @property
    def unicast_share(self) -> float:
        """The share of the cost that is paid for unicast."""
        return float(self.cost.terms.get("unicast", 0.0)) / self.cost if self.cost > 0 else 0.0

    def for_interest(self, interest: Interest) -> ChannelsPlan:
        """The same decisions for the flows and users of now, matched by their names.

        Flows that are new have no session yet; what is gone is left out, and so are joins made for it alone.
        """
        then = self.interest
        flow_now = places(then.flow_names, then.n_flows, interest.flow_names, interest.n_flows)
        user_now = places(then.user_names, then.n_users, interest.user_names, interest.n_users)
        session = np.full(interest.n_flows, -1)
        session[flow_now[flow_now >= 0]] = self.session_of_flow[flow_now >= 0]
        flow, user = flow_now[then.flow_of_pair], user_now[then.users]
        kept = (flow >= 0) & (user >= 0)
        joined = Interest.from_pairs(flow[kept], user[kept], interest.rates, n_users=interest.n_users)
        session[joined.audience_sizes == 0] = -1
        return replace(
            self, demand=Demand(joined, self.key), session_of_flow=session, unicast=(NONE, NONE), written=None
        )

    def _to_tables(self) -> Tables:
        import pyarrow as pa

        tables = self._decisions()
        names = self.interest.flow_names, self.interest.user_names
        given = dict(self.parameters) | {"subscribers": self.n_subscribers}
        cost, baselines = dict(self.cost.terms), dict[str, Any]()
        if self.weights is None:
            baselines = {name: dict(found.terms) for name, found in self.baselines.items()}
        else:
            flow, user = self.unicast
            pairs = {"flow": names_of(names[0], flow), "subscriber": names_of(names[1], user)}
            tables["unicast"] = pa.table(pairs)
            cost["total"] = self.cost.total
            baselines = {name: float(found) for name, found in self.baselines.items()}
        if self.limits is not None:
            given["limits"] = _limits_by_name(self.interest, self.limits)
        return Tables(
            kind=self.kind,
            tables=tables | interest_tables(self.interest),
            cost=cost,
            parameters=given,
            baselines=baselines,
            inputs=self.inputs,
            checks=self.checks,
            lower_bound=self.lower_bound,
            gap=self.gap,
            seed=self.seed,
            key=self.key,
        )

    def _decisions(self) -> dict[str, Any]:
        import pyarrow as pa

        interest, session = self.interest, self.session_of_flow
        sent = np.flatnonzero(session >= 0)
        # A plan under limits keeps the numbers of sessions that stay empty; nobody needs to know of those.
        used = np.unique(session[sent])
        users, groups = self.joins
        return {
            "flow_session": pa.table({"flow": names_of(interest.flow_names, sent), "session": session[sent]}),
            "session_group": pa.table({"session": used, "group": self.group_of_session[used]}),
            "subscriber_group": pa.table({"subscriber": names_of(interest.user_names, users), "group": groups}),
        }

    @classmethod
    def from_tables(cls, tables: Tables) -> ChannelsPlan:
        """The plan that these tables say, as `to_tables` wrote them."""
        interest = interest_of(tables)
        flow_at, user_at = (_at(names or ()) for names in (interest.flow_names, interest.user_names))
        table = tables.tables["flow_session"]
        session = np.full(interest.n_flows, -1)
        session[flow_at(table["flow"])] = table["session"].to_numpy()
        table = tables.tables["session_group"]
        numbers = table["session"].to_numpy()
        groups = table["group"].to_numpy()
        last = int(max(numbers.max(initial=-1), session.max(initial=-1)))
        for name, number in (("session", last), ("group", int(groups.max(initial=-1)))):
            if number >= MOST_SESSIONS:
                raise InputError(f"{name} must be below {MOST_SESSIONS:,}, got {number:,}", name=name, got=number)
        group = np.zeros(last + 1, np.int64)
        group[numbers] = groups  # a session that stayed empty has a number and no row
        unicast = (NONE, NONE)
        if "unicast" in tables.tables:
            pairs = tables.tables["unicast"]
            unicast = (frozen(flow_at(pairs["flow"])), frozen(user_at(pairs["subscriber"])))
        given = dict(tables.parameters)
        limits = given.pop("limits", None)
        if "unicast" in tables.tables:
            given.setdefault("weights", [1.0, 1.0, 1.0])
        return cls(
            demand=Demand(interest, tables.key, inputs=tables.inputs),
            cost=_cost_of(tables),
            parameters=given,
            seed=tables.seed,
            inputs=tables.inputs,
            checks=tables.checks,
            written=tables,
            session_of_flow=frozen(session),
            group_of_session=frozen(group),
            unicast=unicast,
            limits=None if limits is None else _limits_by_index(interest, limits),
        )


RESULT = ChannelsPlan


def _cost_of(tables: Tables) -> Cost:
    terms = {name: float(value) for name, value in tables.cost.items() if name != "total"}
    paid = float(tables.cost["total"]) if "total" in tables.cost else terms["c1"] + terms["c2"]
    useful = paid - terms["excess"] if "excess" in terms else 0.0
    baselines = {
        name: Cost(useful + found["excess"], found) if isinstance(found, Mapping) else Cost(found)
        for name, found in tables.baselines.items()
    }
    return Cost(paid, terms, Compared(baselines, tables.lower_bound, tables.gap))


def _at(names: tuple[str, ...]) -> Any:
    """From a column of names to their places; a name that is not there is an InputError."""
    import pyarrow as pa
    import pyarrow.compute as pc

    known = pa.array(names, pa.string())

    def places(column: Any) -> Ints:
        found = pc.index_in(column.cast(pa.string()), value_set=known)
        if found.null_count:
            lost = column.filter(found.is_null())[0].as_py()
            raise InputError(f"the plan names {lost!r}, which is not in its demand", name="plan", got=lost)
        result: Ints = found.to_numpy(zero_copy_only=False).astype(np.int64)
        return result

    return places


def places(old: tuple[str, ...] | None, n_old: int, new: tuple[str, ...] | None, n_new: int) -> Ints:
    """Where each old name stands among the new ones, −1 for one that is gone."""
    import pyarrow.compute as pc

    found = pc.index_in(names_of(old, np.arange(n_old)), value_set=names_of(new, np.arange(n_new)))
    result: Ints = found.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return result


def _limits_by_name(interest: Interest, limits: Limits) -> dict[str, Any]:
    """The limits that were given, flows by their names."""
    name = interest.flow_names or tuple(map(str, range(interest.n_flows)))
    given = {
        "joins_per_subscriber": limits.joins_per_subscriber,
        "rate_per_group": limits.rate_per_group,
        "pinned": {name[flow]: int(group) for flow, group in limits.pinned.items()},
        "apart": [[name[one], name[two]] for one, two in limits.apart],
        "moves": limits.moves,
        "new_joins": limits.new_joins,
    }
    return {key: value for key, value in given.items() if value not in (None, {}, [])}


def _limits_by_index(interest: Interest, limits: Mapping[str, Any]) -> Limits:
    place = {name: k for k, name in enumerate(interest.flow_names or ())}
    return Limits(
        joins_per_subscriber=limits.get("joins_per_subscriber", limits.get("joins_per_user")),
        rate_per_group=limits.get("rate_per_group"),
        pinned={place[flow]: int(group) for flow, group in dict(limits.get("pinned", {})).items()},
        apart=[(place[one], place[two]) for one, two in limits.get("apart", [])],
        moves=limits.get("moves"),
        new_joins=limits.get("new_joins"),
    )
