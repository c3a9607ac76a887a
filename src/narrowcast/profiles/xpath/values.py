"""Which of many tests a value satisfies, found by look-up instead of one by one."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from narrowcast.profiles.xpath.pattern import ValueTest, number

_REMEMBERED = 10_000


class ValueTests:
    """The tests on one attribute (or text): from a value to the bits of the tests true of it.

    O(log tests) per value not seen lately, O(1) otherwise.
    """

    def __init__(self, tests: dict[ValueTest, int]) -> None:
        """`tests` gives each test its bit."""
        self.always, self.differs, self.number_differs = 0, 0, 0
        self.equal: dict[str, int] = {}
        self.not_equal: dict[str, int] = {}
        self.number_equal: dict[float, int] = {}
        self.number_not_equal: dict[float, int] = {}
        self.numeric = False
        bounds: dict[str, list[tuple[float, int]]] = {"<": [], "<=": [], ">": [], ">=": []}
        for test, bit in tests.items():
            self._add(test, 1 << bit, bounds)
        self.below = [_Thresholds(bounds["<"]), _Thresholds(bounds["<="])]
        self.above = [_Thresholds(bounds[">"]), _Thresholds(bounds[">="])]
        self.known: dict[str, int] = {}

    def _add(self, test: ValueTest, mask: int, bounds: dict[str, list[tuple[float, int]]]) -> None:
        operator, literal = test.operator, test.literal
        if operator is None or literal is None:
            self.always |= mask
        elif isinstance(literal, str) and operator in ("=", "!="):
            table = self.equal if operator == "=" else self.not_equal
            table[literal] = table.get(literal, 0) | mask
            self.differs |= mask if operator == "!=" else 0
        else:
            self.numeric = True
            bound = number(literal) if isinstance(literal, str) else literal
            if operator in ("=", "!="):
                numbers = self.number_equal if operator == "=" else self.number_not_equal
                numbers[bound] = numbers.get(bound, 0) | mask
                self.number_differs |= mask if operator == "!=" else 0
            elif bound == bound:  # nothing is in order with what is no number
                bounds[operator].append((bound, mask))

    def true_of(self, value: str) -> int:
        """The bits of the tests that hold for this value."""
        mask = self.known.get(value)
        if mask is None:
            if len(self.known) >= _REMEMBERED:
                self.known.clear()
            mask = self.known[value] = self._find(value)
        return mask

    def _find(self, value: str) -> int:
        mask = self.always | self.equal.get(value, 0) | (self.differs & ~self.not_equal.get(value, 0))
        if not self.numeric:
            return mask
        x = number(value)
        mask |= self.number_equal.get(x, 0) | (self.number_differs & ~self.number_not_equal.get(x, 0))
        if x == x:
            mask |= self.below[0].from_index(bisect_right(self.below[0].bounds, x))
            mask |= self.below[1].from_index(bisect_left(self.below[1].bounds, x))
            mask |= self.above[0].up_to_index(bisect_left(self.above[0].bounds, x))
            mask |= self.above[1].up_to_index(bisect_right(self.above[1].bounds, x))
        return mask


class _Thresholds:
    """Sorted bounds with the union of all masks up to, and from, each place."""

    def __init__(self, bounds: list[tuple[float, int]]) -> None:
        bounds.sort()
        self.bounds = [bound for bound, _ in bounds]
        self.upto, self.rest = [0], [0]
        for _, mask in bounds:
            self.upto.append(self.upto[-1] | mask)
        for _, mask in reversed(bounds):
            self.rest.append(self.rest[-1] | mask)

    def up_to_index(self, i: int) -> int:
        return self.upto[i]

    def from_index(self, i: int) -> int:
        return self.rest[len(self.bounds) - i]
