"""A filters plan: the nodes of a multicast tree that filter, and what that leaves on its links; also as tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from narrowcast.model import Tree
from narrowcast.model.arrays import Floats, Ints, frozen
from narrowcast.model.cost import Compared, Cost
from narrowcast.model.plan import Plan, Tables
from narrowcast.plans.filters.cost import delay, delays_in, loads, objective_value, traffic
from narrowcast.plans.filters.problem import filter_mask

NO_CURVE: Floats = frozen(np.zeros(0))


@dataclass(frozen=True, eq=False)
class TreeDemand:
    """A multicast tree, and f(v): the size of the union of what is wanted at and below each vertex.

    `key` names the attributes that make a flow; filters need none. `inputs` are fingerprints of what it was read from.

    >>> TreeDemand(Tree([-1, 0, 0]), np.array([2.0, 1.0, 1.0]))
    TreeDemand(3 vertices, 2.0 wanted)
    """

    tree: Tree
    flow: Floats
    key: tuple[str, ...] = ()
    inputs: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"TreeDemand({self.tree.n:,} vertices, {float(np.max(self.flow))} wanted)"


@dataclass(frozen=True, eq=False, kw_only=True)
class FiltersPlan(Plan):
    """The vertices with a filter, ascending, and what was made small: traffic, delay, or both.

    `curve[j]` is the traffic with at most j filters and `curve_bound[j]` what no placement of j filters can beat:
    equal for the exact method; for the price search `curve` is the best known. Both are empty in a plan whose number
    of filters is free, and in one that was read from a folder.

    >>> import narrowcast as nc
    >>> plan = nc.filters.place(nc.Tree([-1, 0, 0], names=["w", "a", "b"]), [2, 1, 1], k=1)
    >>> tables = plan.to_tables()
    >>> tables.tables["filters"]["node"].to_pylist(), tables.tables["trees"]["load"].to_pylist()
    (['w'], [None, 1.0, 1.0])
    """

    kind: ClassVar[str] = "filters"
    demand: TreeDemand = field(repr=False)
    filters: Ints
    curve: Floats = field(default_factory=lambda: NO_CURVE, repr=False)
    curve_bound: Floats = field(default_factory=lambda: NO_CURVE, repr=False)

    @property
    def tree(self) -> Tree:
        """The multicast tree that filters stand on."""
        return self.demand.tree

    @property
    def flow(self) -> Floats:
        """What somebody at or below each vertex wants: what it gets if its parent filters."""
        return self.demand.flow

    @property
    def goal(self) -> str:
        """What was made small: "traffic", "delay" or "both"."""
        return str(self.parameters.get("objective", "traffic"))

    @property
    def method(self) -> str:
        """The method that placed the filters."""
        return str(self.parameters.get("method", "exact"))

    @property
    def k(self) -> int | None:
        """How many filters there may be; None where their number is free."""
        found = self.parameters.get("k")
        return None if found is None else int(found)

    @property
    def objective(self) -> float:
        """The amount that was made small."""
        return self.cost.total

    @property
    def traffic(self) -> float:
        """The total traffic of all links."""
        return self.cost.traffic

    @property
    def delay(self) -> float:
        """The total delay over all users; plans that were made for traffic alone know none."""
        return self.cost.delay

    @cached_property
    def loads(self) -> Floats:
        """What the link into each vertex carries; 0 at the root, which has none."""
        return loads(self.tree, self.flow, self.filters)

    @cached_property
    def node_names(self) -> tuple[str, ...]:
        """The names of the vertices, by default their numbers."""
        return self.tree.names or tuple(map(str, range(self.tree.n)))

    def _to_tables(self) -> Tables:
        return Tables(
            kind=self.kind,
            tables=self._decisions(),
            cost={"total": self.cost.total, "traffic": self.traffic},
            parameters=self.parameters,
            baselines={name: float(found) for name, found in self.cost.baselines.items()},
            inputs=self.inputs,
            checks=self.checks,
            lower_bound=self.lower_bound,
            gap=self.gap,
            seed=self.seed,
            key=self.key,
        )

    def _decisions(self) -> dict[str, Any]:
        import pyarrow as pa

        tree = self.tree
        names, is_root = np.array(self.node_names, object), tree.parents < 0
        trees = {
            "node": pa.array(names, pa.string()),
            "parent": pa.array(names[np.maximum(tree.parents, 0)], pa.string(), mask=is_root),
            "flow": np.asarray(self.flow, np.float64),
            "load": pa.array(self.loads, mask=is_root),
            "link_cost": tree.link_cost,
            "can_filter": tree.can_filter,
            "users": tree.users,
        }
        chosen = pa.array(names[self.filters], pa.string())
        return {"trees": pa.table(trees), "filters": pa.table({"node": chosen})}

    @classmethod
    def from_tables(cls, tables: Tables) -> FiltersPlan:
        """The plan that these tables say, as `to_tables` wrote them."""
        rows = tables.tables["trees"]
        names = [str(name) for name in rows["node"].to_pylist()]
        place = {name: v for v, name in enumerate(names)}
        parents = [-1 if name is None else place[str(name)] for name in rows["parent"].to_pylist()]
        told = [name for name in ("link_cost", "can_filter", "users") if name in rows.column_names]
        extra = {name: rows[name].to_numpy(zero_copy_only=False) for name in told}
        at = [place[str(name)] for name in tables.tables["filters"]["node"].to_pylist()]
        demand = TreeDemand(Tree(parents, names=names, **extra), rows["flow"].to_numpy().astype(np.float64), tables.key)
        filters = np.sort(np.array(at, np.int64))
        return cls(
            demand=demand,
            cost=_cost_in(tables, demand, filters),
            parameters=tables.parameters,
            seed=tables.seed,
            inputs=tables.inputs,
            checks=tables.checks,
            written=tables,
            filters=frozen(filters),
        )


RESULT = FiltersPlan


def placed(
    demand: TreeDemand,
    filters: ArrayLike,
    parameters: Mapping[str, Any],
    *,
    total: float | None = None,
    lower_bound: float | None = None,
    curve: Floats = NO_CURVE,
    curve_bound: Floats = NO_CURVE,
) -> FiltersPlan:
    """The plan of some filters, however they were chosen, with its cost and what that is held against.

    Parameters
    ----------
    parameters : `objective` and what belongs to it, as the plan is to tell them
    total : the objective, if it is known already
    lower_bound : what no placement can beat, if that is known

    >>> tree = Tree([-1, 0, 0, 1, 1])
    >>> plan = placed(TreeDemand(tree, np.array([3.0, 2, 1, 1, 1])), [1], {"objective": "traffic", "k": 1})
    >>> plan.cost, plan.cost.baselines, plan.gap
    (8.0, {'no filter': 12.0, 'every vertex': 5.0}, None)
    """
    chosen = np.flatnonzero(filter_mask(demand.tree, filters))
    total = objective_value(demand.tree, demand.flow, chosen, parameters) if total is None else total
    gap = None if lower_bound is None else (total - lower_bound) / total if total > 0 else 0.0

    def compare() -> Compared:
        return Compared(_baselines(demand, parameters), lower_bound, gap)

    return FiltersPlan(
        demand=demand,
        cost=Cost(total, _terms(demand, chosen, parameters, total), compare),
        parameters=dict(parameters),
        filters=frozen(chosen),
        curve=curve,
        curve_bound=curve_bound,
    )


def _baselines(demand: TreeDemand, parameters: Mapping[str, Any]) -> dict[str, Cost]:
    """The same measure for no filter, and for a filter wherever one can be."""
    ways = (("no filter", np.zeros(demand.tree.n, np.bool_)), ("every vertex", demand.tree.can_filter))
    return {name: Cost(objective_value(demand.tree, demand.flow, some, parameters)) for name, some in ways}


def _terms(demand: TreeDemand, filters: Ints, parameters: Mapping[str, Any], total: float) -> dict[str, float]:
    """Traffic always; delay where it is part of what was made small."""
    goal = parameters.get("objective", "traffic")
    if goal == "traffic":
        return {"traffic": total}
    tree, flow = demand.tree, demand.flow
    late = total if goal == "delay" else delay(tree, flow, filters, **delays_in(parameters))
    return {"traffic": traffic(tree, flow, filters), "delay": late}


def _cost_in(tables: Tables, demand: TreeDemand, filters: Ints) -> Cost:
    """The cost as the plan states it; the judge says whether that is right."""
    total = float(tables.cost["total"] if "total" in tables.cost else tables.cost["traffic"])
    terms = _terms(demand, filters, tables.parameters, total)
    if "traffic" in tables.cost:
        terms["traffic"] = float(tables.cost["traffic"])
    baselines = {name: Cost(float(found)) for name, found in tables.baselines.items()}
    return Cost(total, terms, Compared(baselines, tables.lower_bound, tables.gap))
