"""A queries plan as the network obeys it: a multicast group for each merged query, by the content of messages."""

from __future__ import annotations

from narrowcast.deliver.routing.address import Address, Multicast
from narrowcast.deliver.routing.routes import Subscribers, by_content
from narrowcast.deliver.routing.routing import Routing
from narrowcast.deliver.routing.shared_groups import in_groups
from narrowcast.plans.queries.ranges import box_profile
from narrowcast.plans.queries.result import QueriesPlan
from narrowcast.profiles import Profile


def route(plan: QueriesPlan, subscribers: Subscribers, groups: int | None = None) -> Routing:
    """The routing for the subscriptions there are now; the plan asks for a group per set and makes do with `groups`."""
    attributes = plan.demand.attributes
    merged = {
        channel: Profile.any_of([box_profile(piece, attributes) for piece in pieces])
        for channel, pieces in zip(plan.numbers, plan.pieces, strict=True)
    }
    addresses: dict[int, Address] = {channel: Multicast(channel, channel) for channel in merged}
    found = by_content(merged, addresses, subscribers)
    return found if groups is None else in_groups(found, groups)


def profiles(plan: QueriesPlan) -> dict[str, str]:
    """The queries it was made for, as the profiles of subscribers of their names."""
    demand = plan.demand
    texts = (box_profile(box, demand.attributes).text for box in demand.boxes)
    return dict(zip(demand.labels, texts, strict=True))
