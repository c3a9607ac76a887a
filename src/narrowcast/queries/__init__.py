"""Query merging: many overlapping range queries answered by few."""

from narrowcast.queries.constants import Constants, Prices, worked_constants
from narrowcast.queries.merging import METHODS, cost, merge
from narrowcast.queries.plan import CostTerms, MergePlan
from narrowcast.queries.procedures import PROCEDURES, Exact, Polygon, Rectangle
from narrowcast.queries.sizes import GridHistogram, PointCounts

__all__ = [
    "METHODS",
    "PROCEDURES",
    "Constants",
    "CostTerms",
    "Exact",
    "GridHistogram",
    "MergePlan",
    "PointCounts",
    "Polygon",
    "Prices",
    "Rectangle",
    "cost",
    "merge",
    "worked_constants",
]
