"""A queries plan as the network obeys it: a channel for each merged query, by the content of messages.

A query of the plan takes the channel of its set and nothing else. Under `exact` a set has a channel for every
combination of its queries that share something, and a query takes those that it is in. Where the plan has a fixed
number of physical channels each is a multicast group with its sets as sessions, and one session more for whole
answers, which `serve` sends; what it tells clients about channels has a group of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce

from narrowcast.deliver.routing.address import Address, Multicast, Unicast
from narrowcast.deliver.routing.routes import Subscribers, by_content
from narrowcast.deliver.routing.routing import Routing
from narrowcast.deliver.routing.shared_groups import in_groups
from narrowcast.plans.queries.arrangement import combinations
from narrowcast.plans.queries.ranges import box_profile
from narrowcast.plans.queries.result import QueriesPlan
from narrowcast.plans.queries.service.messages import CHANNEL, DIRECTORY
from narrowcast.profiles import Profile
from narrowcast.profiles.parsed import parsed

MOST_NEW = 256  # channels for queries that the plan does not know


def route(plan: QueriesPlan, subscribers: Subscribers, groups: int | None = None) -> Routing:
    """The routing for the subscriptions there are now; without `groups` there is a multicast group per channel.

    A profile that is no query of the plan takes every channel that it overlaps, if together they cover it, or else gets
    a channel of its own.

    >>> from narrowcast.plans.queries.plan import make
    >>> from narrowcast.plans.queries.result import QueryDemand
    >>> plan = make(QueryDemand([[[0, 2]], [[1, 3]], [[2.5, 40]]], ("price",)), km=3, kt=1, ku=1)
    >>> texts = profiles(plan)
    >>> route(plan, Subscribers(texts, dict.fromkeys(texts, "desk"))).taken
    {'0': (0,), '1': (0,), '2': (1,)}
    """
    made = _Channels.apart(plan) if plan.procedure == "exact" else _Channels.by_set(plan)
    home = {} if plan.physical is None else dict(zip(plan.numbers, plan.physical, strict=True))
    addresses: dict[int, Address] = {c: Multicast(home.get(c, c), c) for c in made.contents}
    answers = {} if plan.physical is None else _answers(plan, 1 + max(made.contents, default=-1))
    addresses |= {session: Multicast(group, session) for session, (group, _) in answers.items()}
    whole = {session: content for session, (_, content) in answers.items()}
    found = by_content({**made.contents, **whole}, addresses, subscribers)
    asked, taken = _queries(plan), dict(found.taken)
    for name in sorted(subscribers.profiles.keys() & subscribers.edges.keys()):
        text = parsed(subscribers.profiles[name]).text
        served = tuple(c for c in whole if whole[c].overlaps(parsed(text)))
        if served and Profile.any_of(whole[c] for c in served).covers(parsed(text)):
            taken[name] = served  # whatever it matches is an answer, and comes with the answers
            continue
        mine = made.of_query.get(asked.get(text, -1), ())
        # Sound whatever the plan says: what does not provably cover the query is not relied on.
        if mine and Profile.any_of(made.contents[channel] for channel in mine).covers(parsed(text)):
            taken[name] = mine
    kept = {name: parsed(subscribers.profiles[name]).text for name in taken}
    found = replace(found, taken=taken, profiles=kept, edges={name: subscribers.edges[name] for name in taken})
    found = _with_newcomers(found, subscribers, together=plan.physical is None)
    return found if groups is None else in_groups(found, groups)


def _with_newcomers(routing: Routing, subscribers: Subscribers, *, together: bool) -> Routing:
    """A channel for every query that the plan has none for: a set of its own, until it is planned for.

    Those who ask the same share it, unless the number of multicast groups is given. Beyond MOST_NEW it is the log.
    """
    addresses, content = dict(routing.addresses), dict(routing.content)
    taken, profiles, edges = dict(routing.taken), dict(routing.profiles), dict(routing.edges)
    first = max(addresses, default=-1) + 1
    channels: dict[str, int] = {}
    for name in sorted((subscribers.profiles.keys() & subscribers.edges.keys()) - taken.keys()):
        text = parsed(subscribers.profiles[name]).text
        channel = channels.setdefault(text if together else name, first + len(channels))
        if channel >= first + MOST_NEW:
            continue
        addresses[channel] = Multicast(channel, channel) if together else Unicast(name)
        content[channel], taken[name], profiles[name], edges[name] = text, (channel,), text, subscribers.edges[name]
    return replace(routing, addresses=addresses, content=content, taken=taken, profiles=profiles, edges=edges)


@dataclass(frozen=True, eq=False)
class _Channels:
    """What each channel carries, and which of them a query takes."""

    contents: dict[int, Profile]
    of_query: dict[int, tuple[int, ...]]

    @classmethod
    def by_set(cls, plan: QueriesPlan) -> _Channels:
        """A channel for each set: its merged query."""
        contents: dict[int, Profile] = {}
        of_query: dict[int, tuple[int, ...]] = {}
        for number, pieces, members in zip(plan.numbers, plan.pieces, plan.sets, strict=True):
            contents[number] = Profile.any_of([box_profile(piece, plan.demand.attributes) for piece in pieces])
            of_query |= {query: (number,) for query in members if query not in of_query}
        return cls(contents, of_query)

    @classmethod
    def apart(cls, plan: QueriesPlan) -> _Channels:
        """A channel for what exactly these queries of a set ask for: nobody hears anything in vain."""
        contents: dict[int, Profile] = {}
        of_query: dict[int, tuple[int, ...]] = {}
        boxes = plan.demand.boxes
        for members in plan.sets:
            texts = [box_profile(boxes[query], plan.demand.attributes) for query in members]
            taken: dict[int, tuple[int, ...]] = {}
            for held in combinations(boxes[list(members)]):
                channel = len(contents)
                contents[channel] = _exactly([t for t, h in zip(texts, held, strict=True) if h],
                                             [t for t, h in zip(texts, held, strict=True) if not h])  # fmt: skip
                for query in (query for query, inside in zip(members, held, strict=True) if inside):
                    taken[query] = (*taken.get(query, ()), channel)
            of_query |= {query: mine for query, mine in taken.items() if query not in of_query}
        return cls(contents, of_query)


def _answers(plan: QueriesPlan, first: int) -> dict[int, tuple[int, Profile]]:
    """For each physical channel, and for what is said about them, a session: its group, and what it carries."""
    channels = int(plan.parameters["channels"])
    numbers = [*range(channels), DIRECTORY]
    contents = [Profile.parse(f"{CHANNEL} = {number}") for number in numbers]
    return {first + at: (at, content) for at, content in enumerate(contents)}


def _exactly(all_of: list[Profile], none_of: list[Profile]) -> Profile:
    """What all of some ask for and none of the others."""
    return reduce(Profile.__sub__, none_of, reduce(Profile.__and__, all_of))


def _queries(plan: QueriesPlan) -> dict[str, int]:
    """The queries by the text of their profiles; of those that ask the same the first."""
    boxes = plan.demand.boxes
    return {box_profile(box, plan.demand.attributes).text: i for i, box in reversed(list(enumerate(boxes)))}


def profiles(plan: QueriesPlan) -> dict[str, str]:
    """The queries it was made for, as the profiles of subscribers of their names."""
    demand = plan.demand
    texts = (box_profile(box, demand.attributes).text for box in demand.boxes)
    return dict(zip(demand.labels, texts, strict=True))
