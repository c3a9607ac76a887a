"""What was decided: nothing but that everybody is in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from narrowcast.model import Cost, Demand, Plan, Tables
from narrowcast.model.interest_tables import interest_of, interest_tables, names_of


@dataclass(frozen=True, eq=False, kw_only=True)
class BroadcastPlan(Plan):
    kind: ClassVar[str] = "broadcast"

    @property
    def members(self) -> list[str]:
        interest = self.demand.interest
        return names_of(interest.user_names, range(interest.n_users)).to_pylist()

    def _to_tables(self) -> Tables:
        tables = interest_tables(self.demand.interest) | {"members": pa.table({"subscriber": self.members})}
        cost = {"total": self.cost.total, **self.cost.terms}
        return Tables("broadcast", tables, cost, self.parameters, seed=self.seed, key=self.key, inputs=self.inputs)

    @classmethod
    def from_tables(cls, tables: Tables) -> BroadcastPlan:
        cost = Cost(tables.cost["total"], {"reception": tables.cost["reception"]})
        return cls(
            demand=Demand(interest_of(tables), tables.key),
            cost=cost,
            parameters=tables.parameters,
            seed=tables.seed,
            inputs=tables.inputs,
            checks=tables.checks,
            written=tables,
        )


RESULT = BroadcastPlan
