"""Who subscribes now: asked again for every micro-batch, since people come and go."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from narrowcast.errors import ProfileError
from narrowcast.model.tables import read_table

if TYPE_CHECKING:
    from pyspark import Broadcast, SparkContext

    from narrowcast.profiles import Matcher

log = logging.getLogger(__name__)

Subscriptions = str | Path | Callable[[], Iterable[tuple[str, str]]]
"""A table with columns subscriber and profile, or a function that gives such pairs."""


class Present:
    """The subscriptions of now, with a matcher that is made anew only when their profiles change."""

    def __init__(self, context: SparkContext, source: Subscriptions) -> None:
        self._context, self._source = context, source
        self._bad: set[str] = set()
        self.holders: dict[str, list[str]] = {}
        self.texts: list[str] = []
        self.matcher: Matcher | None = None
        self.shared: Broadcast[Matcher] | None = None

    def refresh(self) -> None:
        """Ask again. A profile that cannot be parsed is left out, and said once."""
        holders: dict[str, list[str]] = {}
        for subscriber, text in pairs(self._source):
            if self._is_good(text):
                holders.setdefault(text, []).append(subscriber)
        self.holders = holders
        if self.matcher is None or sorted(holders) != self.texts:
            self._match(sorted(holders))

    def _match(self, texts: Sequence[str]) -> None:
        from narrowcast.profiles import Matcher

        if self.shared is not None:
            self.shared.destroy()
        self.texts, self.matcher = list(texts), Matcher(list(texts))
        self.shared = self._context.broadcast(self.matcher)

    def _is_good(self, text: str) -> bool:
        from narrowcast.profiles import Profile

        if text in self.holders or text in self._bad:
            return text not in self._bad
        try:
            Profile.parse(text)
        except ProfileError as error:
            log.warning("ignoring a subscription whose profile cannot be parsed: %s", error)
            self._bad.add(text)
            return False
        return True


def pairs(source: Subscriptions) -> list[tuple[str, str]]:
    """The pairs (subscriber, profile) as they are now.

    >>> pairs(lambda: [("ann", "price > 1")])
    [('ann', 'price > 1')]
    """
    if callable(source):
        return list(source())
    table = read_table(source, name="subscriptions", columns=("subscriber", "profile"))
    rows = zip(table["subscriber"].to_pylist(), table["profile"].to_pylist(), strict=True)
    return [(str(subscriber), str(profile)) for subscriber, profile in rows if subscriber and profile]
