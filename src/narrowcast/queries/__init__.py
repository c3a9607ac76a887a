"""Query merging: many overlapping range queries answered by few."""

from narrowcast.queries.answers import Answer, Client, Header, Query, answer, extract, headers
from narrowcast.queries.constants import Constants, Prices, worked_constants
from narrowcast.queries.delivery import read_answers
from narrowcast.queries.live import LivePlan
from narrowcast.queries.merging import METHODS, cost, merge
from narrowcast.queries.physical import ChannelPlan, assign
from narrowcast.queries.plan import CostTerms, MergePlan
from narrowcast.queries.procedures import PROCEDURES, Exact, Polygon, Rectangle
from narrowcast.queries.profile_merging import ProfilePlan, merge_profiles
from narrowcast.queries.ranges import box_profile, range_boxes
from narrowcast.queries.sizes import GridHistogram, PointCounts

__all__ = [
    "METHODS",
    "PROCEDURES",
    "Answer",
    "ChannelPlan",
    "Client",
    "Constants",
    "CostTerms",
    "Exact",
    "GridHistogram",
    "Header",
    "LivePlan",
    "MergePlan",
    "PointCounts",
    "Polygon",
    "Prices",
    "ProfilePlan",
    "Query",
    "Rectangle",
    "answer",
    "assign",
    "box_profile",
    "cost",
    "extract",
    "headers",
    "merge",
    "merge_profiles",
    "range_boxes",
    "read_answers",
    "worked_constants",
]
