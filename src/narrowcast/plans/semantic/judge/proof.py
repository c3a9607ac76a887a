"""Do some channels together carry everything a profile matches? Proven from their formulas, or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from narrowcast.errors import InputError

#: A proof that takes more case distinctions than this is given up.
MOST_CASES = 20_000

# A formula is True, False, the name of an "any" part that is open, or (operation, formulas).
Formula = bool | str | tuple[str, tuple[Any, ...]]


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
        known: dict[int, Formula] = {}
        for part in sorted(set().union(*(self._inside(self.content[c]) for c in channels))):
            operation, operands = self.parts[part]
            if operation == "any":
                yes = profile in operands or (covered and any(self._covers(o, profile) for o in operands))
                known[part] = True if yes else str(part)
            else:
                known[part] = _simple(operation, [known[o] for o in operands])
        return _always(("any of", tuple(known[self.content[c]] for c in channels)))

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


def _simple(operation: str, operands: Sequence[Formula]) -> Formula:
    """The formula with what is known taken out."""
    if operation == "less":
        whole, without = operands
        if whole is False or without is True:
            return False
        return whole if without is False else ("less", (whole, without))
    ends = operation == "any of"  # one True ends an OR, one False an AND
    left = dict.fromkeys(operand for operand in operands if operand is not (not ends))
    if any(operand is ends for operand in left):
        return ends
    if not left:
        return not ends
    return next(iter(left)) if len(left) == 1 else (operation, tuple(left))


def _always(formula: Formula) -> bool:
    """Whether the formula holds whatever the open parts are: by cases, one open part at a time."""
    waiting, cases = [formula], 0
    while waiting:
        formula = _assigned(waiting.pop(), "", False)
        if formula is True:
            continue
        cases += 1
        if formula is False or cases > MOST_CASES:
            return False
        choice = _open(formula)
        waiting += [_assigned(formula, choice, value) for value in (True, False)]
    return True


def _open(formula: Formula) -> str:
    """An open part of the formula, from its smallest piece: there a case decides most."""
    while isinstance(formula, tuple):
        formula = min((part for part in formula[1] if not isinstance(part, bool)), key=_size)
    return str(formula)


def _size(formula: Formula) -> int:
    return 1 + sum(_size(part) for part in formula[1]) if isinstance(formula, tuple) else 1


def _assigned(formula: Formula, choice: str, value: bool) -> Formula:
    if isinstance(formula, tuple):
        return _simple(formula[0], [_assigned(part, choice, value) for part in formula[1]])
    if formula is True or formula is False:
        return formula
    return value if formula == choice else formula
