"""Many profiles against messages one by one: those that ask for one text of an attribute are found by that text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from narrowcast.profiles import Profile
from narrowcast.profiles.possible import candidates
from narrowcast.profiles.predicate import predicate
from narrowcast.profiles.sql.syntax import terms

Test = tuple[str, Callable[[Mapping[str, Any]], bool]]


class MessageTests:
    """One matcher over profiles. A message is tested by those that its texts lead to, and by those that name none.

    >>> tests = MessageTests([Profile.parse("s = 'a' AND p > 1"), Profile.parse("s = 'b'"), Profile.parse("p > 5")])
    >>> sorted(tests({"s": "a", "p": 9}))
    ['p > 5', "s = 'a' AND p > 1"]
    """

    def __init__(self, profiles: Iterable[Profile]) -> None:
        self._others: list[Test] = []
        self._by: dict[str, dict[str, list[Test]]] = {}  # by attribute and text
        for text, profile in {profile.text: profile for profile in profiles}.items():
            test = (text, predicate(profile))
            found = _asked(profile)
            if found is None:
                self._others.append(test)
            else:
                by = self._by.setdefault(found[0], {})
                for value in found[1]:
                    by.setdefault(value, []).append(test)

    def __call__(self, message: Mapping[str, Any]) -> set[str]:
        """The texts of the profiles that a message matches."""
        found = {text for text, test in self._others if test(message)}
        for attribute, by in self._by.items():
            value = message.get(attribute)
            if type(value) is str:
                found.update(text for text, test in by.get(value, ()) if test(message))
        return found


def _asked(profile: Profile) -> tuple[str, frozenset[str]] | None:
    """The attribute that must have one of a few texts, and which, where those are fewest; None if there is none."""
    names = dict.fromkeys(term.attribute for term in terms(profile.expression))
    found = [(name, texts) for name in names if (texts := candidates(profile.expression, (name,))) is not None]
    return min(found, key=lambda each: len(each[1]), default=None)
