"""Coming and going under the published rule: join the channels that carry a profile, else open one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from narrowcast.network import DisseminationTree
from narrowcast.plans.semantic.channel import Channel
from narrowcast.plans.semantic.content import Both, Content, Either, Less, Wants, expression, same
from narrowcast.plans.semantic.live.audience import join_in_time
from narrowcast.plans.semantic.result import SemanticPlan
from narrowcast.plans.semantic.routers.content import ContentRouter
from narrowcast.plans.semantic.window import OverlaySystem
from narrowcast.profiles import Profile

Shown = list[tuple[Channel, DisseminationTree, Callable[[], Content]]]


@dataclass
class _Served:
    """A channel, its tree, and the profiles whose clients' gateways belong to it."""

    channel: Channel
    tree: DisseminationTree
    content: Content
    profiles: set[int] = field(default_factory=set)


class LiveContent:
    def __init__(
        self, plan: SemanticPlan, trees: list[DisseminationTree], profiles: list[Profile], bound: float
    ) -> None:
        self.bound, self.quick = bound, plan.quick
        self.paths, self.sources, self.profiles = plan.system.paths, plan.sources, profiles
        self.served = [
            _Served(channel, tree, channel.content(), served_profiles(channel.content()))
            for channel, tree in zip(plan.channels, trees, strict=True)
        ]

    def gateways(self, clients: dict[int, tuple[int, int]]) -> list[int]:
        return sorted({gateway for _, gateway in clients.values()})

    def subscribe(self, profile: int, gateway: int, known: bool) -> tuple[int, int]:
        """Channels made for the profile; or one that covers it, by syntax; or a new one."""
        channels = [each for each in self.served if profile in each.profiles]
        if not channels and (found := self._covering(profile, gateway)):
            found.profiles.add(profile)
            channels = [found]
        opened = not channels
        if opened:
            channels = [self._open(profile, gateway)]
        joined = 0
        for each in channels:
            if gateway not in each.tree.members:
                join_in_time(each.tree, gateway, self.bound, self.quick)
                joined += 1
        return joined, int(opened)

    def unsubscribe(self, gateway: int, left: set[int]) -> None:
        for each in self.served:
            if gateway in each.tree.members and not each.profiles & left:
                each.tree.leave(gateway)
        self.served = [each for each in self.served if each.tree.members]

    def snapshot(self, system: OverlaySystem) -> tuple[Shown, ContentRouter]:
        shown: Shown = [(each.channel, each.tree, partial(same, each.content)) for each in self.served]
        return shown, ContentRouter(tuple(each.content for each in self.served))

    def _covering(self, profile: int, gateway: int) -> _Served | None:
        """Of the channels that provably carry the profile the one whose tree is nearest."""
        wanted = self.profiles[profile]
        covering = [each for each in self.served if _covers(each.content, self.profiles, wanted)]
        if not covering:
            return None
        return min(covering, key=lambda each: self.paths.distance[gateway, sorted(each.tree.parent)].min())

    def _open(self, profile: int, gateway: int) -> _Served:
        root = int(self.sources[0]) if self.sources.size else gateway
        content = Wants((profile,))
        channel = Channel(
            (), root, np.zeros((0, 2), np.int32), 0.0, 0.0, "hierarchy", partial(same, content), tuple(self.profiles)
        )
        served = _Served(channel, DisseminationTree(self.paths, root), content, {profile})
        self.served.append(served)
        return served


def served_profiles(content: Content) -> set[int]:
    """The profiles whose gateways a channel of this content reaches: every message of theirs that it could
    carry, it does, or a sister channel that serves them too."""
    match content:
        case Wants():
            return set(content.profiles)
        case Both() | Either():
            return set().union(*(served_profiles(part) for part in content.parts))
        case Less():
            return served_profiles(content.whole)


def _covers(content: Content, profiles: list[Profile], wanted: Profile) -> bool:
    return expression(content, profiles).covers(wanted)
