"""Query merging: many overlapping range queries answered by few."""

from narrowcast.plans.queries.constants import Constants, Prices, worked_constants
from narrowcast.plans.queries.merged import CostTerms, MergePlan
from narrowcast.plans.queries.methods.physical import ChannelPlan, assign
from narrowcast.plans.queries.methods.profile_merging import ProfilePlan, merge_profiles
from narrowcast.plans.queries.plan import METHODS, cost, merge
from narrowcast.plans.queries.procedures import PROCEDURES, Exact, Polygon, Rectangle
from narrowcast.plans.queries.ranges import box_profile, range_boxes
from narrowcast.plans.queries.service.answers import Answer, Client, Header, Query, answer, extract, headers
from narrowcast.plans.queries.service.delivery import read_answers
from narrowcast.plans.queries.service.live import LivePlan
from narrowcast.plans.queries.sizes import GridHistogram, PointCounts

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
