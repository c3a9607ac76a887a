"""`narrowcast.queries`: Query merging: many overlapping range queries answered by few."""

from narrowcast.plans.queries.constants import Constants
from narrowcast.plans.queries.methods.physical import PhysicalChannels, assign
from narrowcast.plans.queries.methods.profile_merging import ProfilePlan, merge_profiles
from narrowcast.plans.queries.plan import METHODS, cost, merge
from narrowcast.plans.queries.problem import CostTerms
from narrowcast.plans.queries.procedures import PROCEDURES, Exact, Polygon, Rectangle
from narrowcast.plans.queries.ranges import box_profile, range_boxes
from narrowcast.plans.queries.result import QueriesPlan, QueryDemand
from narrowcast.plans.queries.service.answers import Answer, Client, Header, Query, answer, extract, headers
from narrowcast.plans.queries.service.delivery import read_answers
from narrowcast.plans.queries.service.live import LiveQueries
from narrowcast.plans.queries.service.messages import AnswerReceiver, PeriodAnswers, receive_answers
from narrowcast.plans.queries.service.server import QueryService
from narrowcast.plans.queries.sizes import GridHistogram, PointCounts

__all__ = [
    "METHODS",
    "PROCEDURES",
    "Answer",
    "AnswerReceiver",
    "Client",
    "Constants",
    "CostTerms",
    "Exact",
    "GridHistogram",
    "Header",
    "LiveQueries",
    "PeriodAnswers",
    "PhysicalChannels",
    "PointCounts",
    "Polygon",
    "ProfilePlan",
    "QueriesPlan",
    "Query",
    "QueryDemand",
    "QueryService",
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
    "receive_answers",
]
