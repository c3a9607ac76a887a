"""Do some channels together carry everything a profile matches? Proven from their formulas, or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from narrowcast.errors import InputError

#: A proof that takes more case distinctions than this is given up: the channels are not shown to carry the profile.
MOST_CASES = 100_000


class Formulas:
    """The parts of a plan's table contents: "any" over profiles, and "all", "any of" and "less" over parts.

    >>> from narrowcast.profiles import Profile
    >>> wide, narrow = Profile.parse("x > 1"), Profile.parse("x > 2")
    >>> parts = [(0, "any", [0]), (1, "any", [1]), (2, "all", [0, 1]), (3, "less", [0, 1])]
    >>> found = Formulas(parts, {7: 2, 8: 3}, {0: wide, 1: narrow})
    >>> found.carried(0, [7, 8]), found.carried(0, [8]), found.carried(1, [7]), found.channels([0])
    (True, False, True, [8])
    """

    def __init__(
        self, parts: Sequence[tuple[int, str, list[int]]], content: Mapping[int, Any], profiles: Mapping[int, Any]
    ) -> None:
        self.parts: dict[int, tuple[str, list[int]]] = {}
        for part, operation, operands in parts:
            if operation not in ("any", "all", "any of", "less") or (operation == "less" and len(operands) != 2):
                raise InputError(f"contents: part {part} must be an operation, got {operation!r} of {len(operands)}")
            known = profiles if operation == "any" else self.parts
            if any(operand not in known for operand in operands):
                raise InputError(f"contents: an operand of part {part} does not come before it")
            self.parts[part] = (operation, operands)
        for channel, part in content.items():
            if part not in self.parts:
                raise InputError(f"channel {channel} carries part {part}, which is not in table contents")
        self.content, self.profiles = content, profiles
        self._closed: dict[int, frozenset[int]] = {}
        self._spoken: dict[int, frozenset[int]] = {}
        self._cases: dict[frozenset[int], tuple[Cases, dict[int, int]]] = {}  # by what holds: profiles share proofs

    def channels(self, matched: Any) -> list[int]:
        """The channels that a message goes to which matches these profiles."""
        true: dict[int, bool] = {}
        for part, (operation, operands) in self.parts.items():
            true[part] = _holds(operation, [o in matched for o in operands] if operation == "any" else
                                [true[o] for o in operands])  # fmt: skip
        return sorted(c for c, part in self.content.items() if true[part])

    def carried(self, profile: int, channels: Sequence[int]) -> bool:
        """Whether a message that matches the profile is on one of the channels, whatever else it matches."""
        naming = [c for c in channels if profile in self._named(c)]
        if self._proven(profile, naming, covered=False):
            return True
        return self._proven(profile, channels, covered=True)  # by the algebra of profiles, which takes longer

    def _proven(self, profile: int, channels: Sequence[int], *, covered: bool) -> bool:
        needed = sorted(set().union(*(self._inside(self.content[c]) for c in channels)))
        either = [part for part in needed if self.parts[part][0] == "any"]
        yes = frozenset(part for part in either if self._holds_for(profile, self.parts[part][1], covered=covered))
        cases, known = self._cases.setdefault(yes, (Cases(), dict.fromkeys(yes, Cases.YES)))
        try:
            for part in needed:
                operation, operands = self.parts[part]
                if part not in known:
                    is_open = operation == "any"
                    known[part] = (
                        cases.open(part) if is_open else cases.holding(operation, [known[o] for o in operands])
                    )
            return cases.holding("any of", [known[self.content[c]] for c in channels]) == Cases.YES
        except (OverflowError, RecursionError):
            return False

    def _holds_for(self, profile: int, operands: list[int], *, covered: bool) -> bool:
        return profile in operands or (covered and any(self._covers(o, profile) for o in operands))

    def _inside(self, whole: int) -> frozenset[int]:
        """The part and all that it is made of."""
        if whole not in self._closed:
            found, front = {whole}, [whole]
            while front:
                operation, operands = self.parts[front.pop()]
                new = set() if operation == "any" else set(operands) - found
                found |= new
                front += new
            self._closed[whole] = frozenset(found)
        return self._closed[whole]

    def _named(self, channel: int) -> frozenset[int]:
        """The profiles that a channel's formula speaks of."""
        if channel not in self._spoken:
            parts = (self.parts[part] for part in self._inside(self.content[channel]))
            self._spoken[channel] = frozenset(p for operation, some in parts if operation == "any" for p in some)
        return self._spoken[channel]

    def _covers(self, one: int, other: int) -> bool:
        wide, narrow = self.profiles[one], self.profiles[other]
        return type(wide) is type(narrow) and bool(wide.covers(narrow))


def _holds(operation: str, operands: list[bool]) -> bool:
    if operation == "less":
        return operands[0] and not operands[1]
    return all(operands) if operation == "all" else any(operands)


class Cases:
    """Formulas over open parts as decision diagrams: one that always holds is YES, and equal ones are one number.

    A part that several formulas share is worked out once, so channels split again and again cost little.

    >>> cases = Cases()
    >>> a, b = cases.open(1), cases.open(2)
    >>> cases.holding("any of", [cases.holding("less", [a, b]), cases.holding("all", [a, b])]) == a
    True
    """

    NO, YES = 0, 1

    def __init__(self) -> None:
        self._nodes: list[tuple[float, int, int]] = [(float("inf"), 0, 0), (float("inf"), 1, 1)]
        self._numbers: dict[tuple[float, int, int], int] = {}
        self._chosen: dict[tuple[int, int, int], int] = {}

    def open(self, part: int) -> int:
        """A part that may hold or not."""
        return self._node(part, self.NO, self.YES)

    def holding(self, operation: str, operands: Sequence[int]) -> int:
        """When an operation on formulas holds."""
        if operation == "less":
            return self._if(operands[1], self.NO, operands[0])
        found = self.YES if operation == "all" else self.NO
        for each in operands:
            found = self._if(each, found, self.NO) if operation == "all" else self._if(each, self.YES, found)
        return found

    def _if(self, when: int, then: int, other: int) -> int:
        if when <= self.YES or then == other:
            return then if when != self.NO else other
        key = (when, then, other)
        if key not in self._chosen:
            first = min(self._nodes[each][0] for each in key)
            no = [self._nodes[k][1] if self._nodes[k][0] == first else k for k in key]
            yes = [self._nodes[k][2] if self._nodes[k][0] == first else k for k in key]
            self._chosen[key] = self._node(first, self._if(*no), self._if(*yes))
        return self._chosen[key]

    def _node(self, part: float, no: int, yes: int) -> int:
        if no == yes:
            return no
        if len(self._chosen) > MOST_CASES:
            raise OverflowError
        number = self._numbers.setdefault((part, no, yes), len(self._nodes))
        if number == len(self._nodes):
            self._nodes.append((part, no, yes))
        return number
