"""Plan again what a plan folder was planned for, with some settings changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from narrowcast.errors import InputError, UnsupportedError
from narrowcast.model import Interest, Topology, Tree
from narrowcast.model.interest_tables import interest_of
from narrowcast.model.plan import Plan

Settings = Mapping[str, float]


class Outcome(NamedTuple):
    """What a plan costs, and that as a share of a yardstick: flooding's waste, perfect multicast, no filter, apart."""

    cost: float
    relative: float


class Family(NamedTuple):
    """What can be changed in plans of a kind. A larger budget allows all that a smaller one does; a price does not."""

    budgets: tuple[str, ...]
    prices: tuple[str, ...]
    measure: str
    yardstick: str
    replan: Callable[[Plan, Settings, float | None], Outcome]
    present: Callable[[Plan], Outcome]


def replan(plan: Plan, settings: Settings, time_limit: float | None = None) -> Outcome:
    """The outcome of planning again with these settings in place of the plan's own.

    `time_limit` (seconds) bounds the search of channel plans, which then returns the best so far.
    """
    return FAMILIES[plan.kind].replan(plan, settings, time_limit)


def family_of(plan: Plan, names: Any) -> Family:
    """The family of a plan, with every name checked to be one of its settings."""
    found = FAMILIES.get(plan.kind)
    if found is None:
        raise UnsupportedError(f"there is no what-if for {plan.kind} plans", works=tuple(FAMILIES))
    allowed = found.budgets + found.prices
    if plan.kind == "filters":
        allowed = FILTER_SETTINGS[plan.parameters.get("objective", "traffic")]
    if plan.kind == "hybrid":
        absent = ("cap",) if "sessions" in plan.parameters else ("sessions", "beta")
        allowed = tuple(name for name in allowed if name not in absent)
    for name in names:
        if name not in allowed:
            told = ", ".join(allowed)
            raise InputError(f"a {plan.kind} plan has no {name} to change; it has {told}", name=name, allowed=allowed)
    return found


def setting_of(plan: Plan, name: str) -> float | None:
    """What a setting is in the plan; where the plan has no such bound, what it makes use of."""
    known = {**plan.parameters, **dict(plan.parameters.get("limits", {}))}
    if name in ("w1", "w2", "w3"):
        return float(known.get("weights", (1, 1, 1))[int(name[1]) - 1])
    if known.get(name) is not None:
        return float(known[name])
    return USED[name](plan) if name in USED else None


def _unicast_share(plan: Plan) -> float:
    return float(plan.cost["unicast"]) / float(plan.cost["total"]) if plan.cost["total"] else 0.0


def _most_joins(plan: Plan) -> float:
    return float(max(Counter(plan.tables["subscriber_group"]["subscriber"].to_pylist()).values(), default=1))


def _largest_rate(plan: Plan) -> float:
    rate = dict(zip(*(plan.tables["flows"][c].to_pylist() for c in ("flow", "rate")), strict=True))
    group = dict(zip(*(plan.tables["session_group"][c].to_pylist() for c in ("session", "group")), strict=True))
    load: Counter[int] = Counter()
    for flow, session in zip(*(plan.tables["flow_session"][c].to_pylist() for c in ("flow", "session")), strict=True):
        load[group[session]] += rate[flow]
    return float(max(load.values(), default=0.0))


USED: dict[str, Callable[[Plan], float]] = {
    "cap": _unicast_share,
    "joins_per_user": _most_joins,
    "rate_per_group": _largest_rate,
    "max_channels": lambda plan: float(plan.tables["channels"].num_rows),
}
FILTER_SETTINGS = {
    "traffic": ("k",),
    "delay": ("filter_delay", "link_delay"),
    "both": ("filter_delay", "link_delay", "traffic_weight", "delay_weight", "price"),
}


def warm_up(kind: str) -> None:
    """Plan next to nothing: seconds are counted from when the planner is loaded."""
    from narrowcast.plans import channels, filters, queries, semantic

    tiny = Interest.from_pairs([0, 0, 1, 2], [0, 1, 1, 2], [3.0, 2.0, 1.0])
    tree = Tree([-1, 0, 0, 1, 1])
    if kind == "channels":
        channels.plan(tiny, 2, 3)
    elif kind == "hybrid":
        channels.hybrid(tiny, 2)
    elif kind == "filters":
        filters.place(tree, [3, 2, 1, 1, 1], 1)
        filters.place_for_delay(tree, [3, 2, 1, 1, 1], filter_delay=1, link_delay=1)
    elif kind == "queries":
        queries.merge([[[0, 2], [0, 1]], [[0, 1], [0, 2]]])
    elif kind == "semantic":
        import pyarrow as pa

        semantic.plan(Topology([(0, 1), (1, 2)]), ["x > 1"], [(0, 2)], pa.table({"x": [1, 2]}), 0)


def _channels(plan: Plan, settings: Settings, time_limit: float | None) -> Outcome:
    from narrowcast.plans import channels

    interest = _interest(plan)
    whole: dict[str, Any] = {n: int(_of(plan, settings, n, d)) for n, d in (("groups", 50), ("sessions", 500))}
    prices: dict[str, Any] = {name: float(_of(plan, settings, name, 1.0)) for name in ("alpha", "beta")}
    limits = _limits(plan, settings)
    method = "search" if limits is not None else str(plan.parameters.get("method", "search"))
    limit = time_limit if method == "search" and limits is None else None
    found = channels.plan(interest, **whole, method=method, **prices, seed=plan.seed, time_limit=limit, limits=limits)
    return Outcome(found.cost.excess, found.cost.relative)


def _limits(plan: Plan, settings: Settings) -> Any:
    from narrowcast.plans.channels import Limits

    given = dict(plan.parameters.get("limits", {}))
    given |= {name: settings[name] for name in ("joins_per_user", "rate_per_group") if name in settings}
    if not given:
        return None
    place = {name: k for k, name in enumerate(plan.tables["flows"]["flow"].to_pylist())}
    joins = given.get("joins_per_user")
    return Limits(
        joins_per_user=None if joins is None else int(joins),
        rate_per_group=given.get("rate_per_group"),
        pinned={place[flow]: group for flow, group in given.get("pinned", {}).items()},
        apart=[(place[one], place[two]) for one, two in given.get("apart", [])],
    )


def _hybrid(plan: Plan, settings: Settings, time_limit: float | None) -> Outcome:
    from narrowcast.plans import channels

    weights = [float(settings.get(f"w{i + 1}", w)) for i, w in enumerate(plan.parameters.get("weights", (1, 1, 1)))]
    cap = settings.get("cap", plan.parameters.get("cap"))
    groups = int(_of(plan, settings, "groups", 50))
    more: dict[str, Any] = {}
    if "sessions" in plan.parameters:
        more = {"sessions": int(_of(plan, settings, "sessions", 1)), "beta": float(_of(plan, settings, "beta", 1.0))}
    found = channels.hybrid(_interest(plan), groups, weights=weights, cap=cap, seed=plan.seed, **more)
    return Outcome(found.cost, found.percent_of_perfect / 100)


def _interest(plan: Plan) -> Interest:
    """The demand with those who want nothing, whom flooding would reach too."""
    named = interest_of(plan)
    n_users = max(named.n_users, int(plan.parameters.get("subscribers", 0)))
    return Interest.from_pairs(named.flow_of_pair, named.users, named.rates, n_users=n_users)


def _filters(plan: Plan, settings: Settings, time_limit: float | None) -> Outcome:
    from narrowcast.plans import filters

    rows = plan.tables["trees"]
    nodes = rows["node"].to_pylist()
    place = {name: v for v, name in enumerate(nodes)}
    parents = [-1 if name is None else place[name] for name in rows["parent"].to_pylist()]
    extra = {name: rows[name].to_numpy(zero_copy_only=False) for name in ("link_cost", "can_filter", "users")
             if name in rows.column_names}  # fmt: skip
    tree, flow = Tree(parents, **extra), rows["flow"].to_numpy()
    objective = plan.parameters.get("objective", "traffic")
    if objective == "traffic":
        placed = filters.place(tree, flow, int(_of(plan, settings, "k", 15)))
        return _share(placed.traffic, filters.traffic(tree, flow, []))
    delays = {
        "filter_delay": _of(plan, settings, "filter_delay", 0.0),
        "link_delay": _of(plan, settings, "link_delay", 1.0),
    }
    if objective == "delay":
        return _share(filters.place_for_delay(tree, flow, **delays).delay, filters.delay(tree, flow, [], **delays))
    terms = {name: _of(plan, settings, name, d) for name, d in (("traffic_weight", 1.0), ("delay_weight", 1.0),
                                                                ("price", 0.0))}  # fmt: skip
    both = filters.place_weighted(tree, flow, **delays, **terms).objective
    bare = terms["traffic_weight"] * filters.traffic(tree, flow, [])
    return _share(both, bare + terms["delay_weight"] * filters.delay(tree, flow, [], **delays))


def _queries(plan: Plan, settings: Settings, time_limit: float | None) -> Outcome:
    from narrowcast.plans import queries

    if plan.parameters.get("size") != "area":
        raise UnsupportedError("sizes of this plan were counted in data that it does not hold", works=("area",))
    constants: dict[str, Any] = {name: float(_of(plan, settings, name, 0.0)) for name in ("km", "kt", "ku", "ka")}
    known = plan.parameters
    found = queries.merge(_boxes(plan), known.get("method", "pair"), procedure=known.get("procedure", "rectangle"),
                          seed=plan.seed, **constants)  # fmt: skip
    return _share(found.cost, found.baseline)


def _boxes(plan: Plan) -> Any:
    asked = plan.tables["queries"]
    dimensions = list(dict.fromkeys(asked["dimension"].to_pylist()))
    names = [c for c in ("query", "client") if c in asked.column_names]
    order: dict[Any, int] = {}
    for name in zip(*(asked[c].to_pylist() for c in names), strict=True):
        order.setdefault(name, len(order))
    boxes = np.empty((len(order), len(dimensions), 2))
    for row in asked.to_pylist():
        at = order[tuple(row[c] for c in names)], dimensions.index(row["dimension"])
        boxes[at] = row["low"], row["high"]
    return boxes


def _semantic(plan: Plan, settings: Settings, time_limit: float | None) -> Outcome:
    """For the messages that the plan keeps, in full bandwidth, against shortest path trees for the same."""
    from narrowcast.plans import semantic

    overlay, profiles, clients, bounds = _overlay(plan)
    sample = plan.tables["sample"]
    place = {name: i for i, name in enumerate(overlay.names or ())}
    brokers = [place.get(name, -1) for name in sample["_broker"].to_pylist()]
    if -1 in brokers or not brokers:
        raise UnsupportedError("the plan does not know where its messages come from", works=("a source column",))
    messages = sample.drop_columns(["_broker", "_channels"])
    every = settings.get("latency_bound")
    known = plan.parameters
    most = settings.get("max_channels", known.get("max_channels"))
    made = semantic.plan(
        overlay, profiles, clients, messages, brokers, known.get("variant", "search"),
        None if most is None else int(most), known.get("rendezvous", "best"), plan.seed,
        half_life=known.get("half_life"), latency_bound=bounds if every is None else every,
    )  # fmt: skip
    spt = semantic.baseline(overlay, profiles, clients, messages, brokers, "spt").cost
    return _share(semantic.bandwidth(made, messages, brokers), spt)


def _overlay(plan: Plan) -> tuple[Topology, list[Any], list[tuple[int, int]], Any]:
    """The overlay, profiles, clients and latency bounds as the planner takes them."""
    from narrowcast.profiles import Profile
    from narrowcast.profiles.xpath.xpath import XPath

    nodes, links = plan.tables["nodes"]["node"].to_pylist(), plan.tables["topology"].to_pydict()
    place = {name: i for i, name in enumerate(nodes)}
    ends = [(place[u], place[v]) for u, v in zip(links["u"], links["v"], strict=True)]
    overlay = Topology(ends, links["cost"], links["delay"], n_brokers=len(nodes), names=nodes)
    texts = plan.tables["profiles"].to_pydict()
    number = {p: i for i, p in enumerate(texts["profile"])}
    profiles = [XPath.parse(t) if t.startswith("/") else Profile.parse(t, limits=None) for t in texts["text"]]
    given = plan.tables["clients"].to_pydict()
    clients = [(number[p], place[g]) for p, g in zip(given["profile"], given["gateway"], strict=True)]
    bounds = [np.nan if b is None else b for b in given["latency_bound"]]
    return overlay, profiles, clients, None if np.isnan(bounds).all() else bounds


def _again(plan: Plan) -> Outcome:
    """A semantic plan's own outcome for the messages that it keeps."""
    return _semantic(plan, {}, None)


def _of(plan: Plan, settings: Settings, name: str, default: float) -> float:
    value = settings.get(name)
    value = setting_of(plan, name) if value is None else value
    return default if value is None else value


def _share(cost: float, yardstick: float) -> Outcome:
    return Outcome(float(cost), float(cost) / yardstick if yardstick > 0 else 0.0)


def _present(term: str, yardstick: Callable[[Plan], float]) -> Callable[[Plan], Outcome]:
    def outcome(plan: Plan) -> Outcome:
        return _share(float(plan.cost[term]), yardstick(plan))

    return outcome


FAMILIES: dict[str, Family] = {
    "channels": Family(
        ("groups", "sessions", "joins_per_user", "rate_per_group"), ("alpha", "beta"), "excess cost",
        "flooding's waste", _channels, _present("excess", lambda plan: float(plan.cost["flooding"])),
    ),
    "hybrid": Family(
        ("groups", "sessions", "cap"), ("w1", "w2", "w3", "beta"), "cost", "perfect multicast", _hybrid,
        _present("total", lambda plan: float(plan.cost["perfect"])),
    ),
    "filters": Family(
        ("k",), ("filter_delay", "link_delay", "traffic_weight", "delay_weight", "price"), "objective", "no filter",
        _filters, _present("total", lambda plan: float(plan.baselines.get("no filter", 0.0))),
    ),
    "queries": Family(
        (), ("km", "kt", "ku", "ka"), "cost", "every query apart", _queries,
        _present("total", lambda plan: float(plan.baselines.get("apart", 0.0))),
    ),
    "semantic": Family(
        ("max_channels", "latency_bound"), (), "bandwidth of the kept messages", "shortest path trees",
        _semantic, _again,
    ),
}  # fmt: skip
