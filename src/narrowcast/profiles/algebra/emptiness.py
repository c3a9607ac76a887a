"""Is there a string inside an interval that matches these LIKE patterns and not those?

Decided exactly by walking the product of one small automaton per pattern and per bound, built only
as far as the walk goes. The alphabet is finite: the characters that patterns and bounds name, and
one stand-in for each gap between them, since no automaton can tell two characters of a gap apart.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any

from narrowcast.profiles.algebra.intervals import Interval
from narrowcast.profiles.sql.like import ANY, ONE, Likes, Pattern
from narrowcast.profiles.xpath.xpath import XPath

STATES = 20_000
# A step moves one automaton by one character; a hundred thousand take some hundredths of a second.
STEPS = 100_000
STEPS_PER_QUESTION = 2_000_000
_LESS, _GREATER = -1, -2


class TooComplexError(Exception):
    """A question takes more pieces or steps than it is worth; callers answer "unknown"."""


class _Purse(threading.local):
    """The steps that are left to the question being asked in this thread."""

    left: float = float("inf")


_PURSE = _Purse()


@contextmanager
def effort(steps: int = STEPS_PER_QUESTION) -> Iterator[None]:
    """Bound the steps of everything asked inside; past them TooComplexError.

    Answers found before cost what they cost the first time: memory must not change an answer.
    """
    outer, _PURSE.left = _PURSE.left, min(steps, _PURSE.left)
    try:
        yield
    finally:
        _PURSE.left = outer


def successor(prefix: str) -> str | None:
    r"""The least string above every string that begins with the prefix; None if there is none.

    >>> successor("abc"), successor("a\ud7ff") == "a\ue000", successor("\U0010ffff")
    ('abd', True, None)
    """
    for end in range(len(prefix), 0, -1):
        following = _next_character(prefix[end - 1])
        if following is not None:
            return prefix[: end - 1] + following
    return None


def _next_character(character: str) -> str | None:
    code = ord(character) + 1
    if code > 0x10FFFF:
        return None
    return chr(0xE000) if 0xD800 <= code < 0xE000 else chr(code)  # surrogates are no characters


@dataclass(frozen=True, slots=True)
class _PatternAutomaton:
    """Bit i of a state: the first i elements are matched. `loops`: bits that may swallow any character."""

    masks: dict[str, int]
    ones: int
    loops: int
    final: int

    @classmethod
    def of(cls, pattern: Pattern) -> _PatternAutomaton:
        masks: dict[str, int] = {}
        ones = loops = 0
        at = 1
        for part in pattern:
            if part is ANY:
                loops |= at
            elif part is ONE:
                ones |= at
                at <<= 1
            else:
                for character in str(part):
                    masks[character] = masks.get(character, 0) | at
                    at <<= 1
        return cls(masks, ones, loops, at)

    def step(self, state: int, character: str) -> int:
        return ((state & (self.masks.get(character, 0) | self.ones)) << 1) | (state & self.loops)


def _step_bound(state: int, character: str, bound: str) -> int:
    """Where a text stands against a bound: equal so far for `state` characters, less, or greater."""
    if state < 0:
        return state
    if state == len(bound) or character > bound[state]:
        return _GREATER
    return _LESS if character < bound[state] else state + 1


def _above(state: int, interval: Interval) -> bool:
    if interval.low is None or state == _GREATER:
        return True
    return interval.low_closed and state == len(str(interval.low))


def _under(state: int, interval: Interval) -> bool:
    if interval.high is None or state == _LESS:
        return True
    return state >= 0 and (state < len(str(interval.high)) or interval.high_closed)


def _alphabet(patterns: Sequence[Pattern], interval: Interval) -> list[str]:
    named = {c for pattern in patterns for part in pattern if isinstance(part, str) for c in part}
    named |= set(str(interval.low or "")) | set(str(interval.high or ""))
    stand_ins = {"\0"} | {c for c in map(_next_character, named) if c is not None}
    return sorted(named | stand_ins)


def is_empty(interval: Interval, likes: Likes) -> bool | None:
    """Whether no string of the interval matches all wanted patterns and none of the others.

    None when the budget did not suffice to tell, or when paths leave it open.

    >>> from narrowcast.profiles.sql.like import read_pattern
    >>> both = frozenset({(read_pattern("a%"), True), (read_pattern("%b"), True)})
    >>> is_empty(Interval("b", True), both), is_empty(Interval(), both)
    (True, False)
    """
    plain = frozenset((like, wanted) for like, wanted in likes if not isinstance(like, XPath))
    if len(plain) < len(likes):
        if _contradict(frozenset((path, wanted) for path, wanted in likes if isinstance(path, XPath))):
            return True
        return True if plain and is_empty(interval, frozenset(plain)) else None
    answer, steps = _search(interval, plain)
    _PURSE.left -= steps
    if _PURSE.left < 0:
        raise TooComplexError
    return answer


@lru_cache(maxsize=16_384)
def _contradict(paths: frozenset[tuple[XPath, bool]]) -> bool:
    """True proves that no document has all that it must have and nothing that it must not have."""
    found = [path for path, wanted in paths if wanted]
    missed = [path for path, wanted in paths if not wanted]
    if any(not one.overlaps(other) for one, other in combinations(found, 2)):
        return True
    return any(wide.covers(narrow) for wide in missed for narrow in found)


@lru_cache(maxsize=16_384)
def _search(interval: Interval, likes: frozenset[tuple[Pattern, bool]]) -> tuple[bool | None, int]:
    """The answer and the steps it took."""
    ordered = sorted(likes, key=repr)
    automata = [_PatternAutomaton.of(pattern) for pattern, _ in ordered]
    wanted = [want for _, want in ordered]
    low, high = str(interval.low or ""), str(interval.high or "")
    alphabet = _alphabet([pattern for pattern, _ in ordered], interval)

    def accepts(state: tuple[Any, ...]) -> bool:
        masks, below, above = state
        if not (_above(below, interval) and _under(above, interval)):
            return False
        return all(
            (mask & automaton.final != 0) == want for mask, automaton, want in zip(masks, automata, wanted, strict=True)
        )

    def dead(state: tuple[Any, ...]) -> bool:
        masks, below, above = state
        if (interval.low is not None and below == _LESS) or (interval.high is not None and above == _GREATER):
            return True
        return any(want and not mask for mask, want in zip(masks, wanted, strict=True))

    start: tuple[Any, ...] = (tuple(1 for _ in automata), 0, 0)
    seen, waiting, steps = {start}, [start], 0
    if accepts(start):
        return False, steps
    while waiting:
        masks, below, above = waiting.pop()
        for character in alphabet:
            following = (
                tuple(a.step(mask, character) for a, mask in zip(automata, masks, strict=True)),
                _step_bound(below, character, low),
                _step_bound(above, character, high),
            )
            if following in seen or dead(following):
                continue
            if accepts(following):
                return False, steps
            seen.add(following)
            waiting.append(following)
        steps += len(alphabet) * (len(automata) + 1)
        if len(seen) > STATES or steps > STEPS:
            return None, steps
    return True, steps
