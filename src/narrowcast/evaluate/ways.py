"""A plan as a migration sees it: what must be in place for each wish, and where each content goes.

A *need* is one thing that somebody has to do beforehand: join a group, take a session in, send a unicast
copy, ask a merged query, forward a link. A wish is met while all its needs are in place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class Need(NamedTuple):
    """`verb` says what has to be done, by `who`, to `what`."""

    verb: str
    who: str
    what: str


# What the network must be told of, one message each: these keep to the join rate.
SIGNALLED = frozenset({"join", "forward"})


@dataclass(frozen=True, slots=True)
class Ways:
    """For each content where it goes (as people call it), and for each wish (receiver, content) its needs.

    `filters` are the nodes that filter. They only take away what nobody below wants, so no wish needs one.
    """

    place: Mapping[str, str]
    wishes: Mapping[tuple[str, str], frozenset[Need]]
    filters: Mapping[str, float] = field(default_factory=dict)
    weight: Mapping[str, float] = field(default_factory=dict)  # of each content, to show the largest first

    @property
    def needs(self) -> frozenset[Need]:
        """All that is in place while the plan is in force."""
        return frozenset().union(*self.wishes.values()) if self.wishes else frozenset()
