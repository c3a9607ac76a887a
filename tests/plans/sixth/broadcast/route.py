"""One channel that carries everything, taken by everybody."""

from __future__ import annotations

from narrowcast.deliver.routing.routes import Subscribers
from narrowcast.deliver.routing.routing import Routing
from narrowcast.deliver.transport import Multicast
from plans.sixth.broadcast.result import BroadcastPlan


def route(plan: BroadcastPlan, subscribers: Subscribers, groups: int | None) -> Routing:
    taken = dict.fromkeys(subscribers.profiles, (0,))
    return subscribers.routing({0: Multicast(0, 0)}, taken, content={0: ""})


def profiles(plan: BroadcastPlan) -> dict[str, str]:
    return {}
