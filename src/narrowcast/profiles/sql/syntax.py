"""The nodes of a condition. Frozen, hashable, and equal only when their meaning is.

    Expression = Compare | Between | In | Like | Finds | IsNull      one attribute each: the terms
               | And | Or | Not | IsTrue                             logic over parts
               | Constant                                            TRUE, FALSE or NULL (unknown)

A term carries its constant's kind, because Python holds `1 == True` and this language does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeAlias

from narrowcast.profiles.sql.moments import microseconds

Kind: TypeAlias = Literal["number", "string", "boolean", "timestamp"]
Operator: TypeAlias = Literal["=", "<>", "<", "<=", ">", ">="]
Value: TypeAlias = int | float | str | bool | datetime

MIRRORED: dict[Operator, Operator] = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

_KINDS: dict[type, Kind] = {bool: "boolean", int: "number", float: "number", str: "string", datetime: "timestamp"}


def kind_of_constant(value: Value) -> Kind:
    """The kind of a constant: number, string, boolean or timestamp."""
    return _KINDS[type(value)]


class _Node:
    """Pickled by what it was made from: several times faster than field by field."""

    __slots__ = ()
    __match_args__: tuple[str, ...] = ()

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), tuple(getattr(self, name) for name in self.__match_args__)


@dataclass(frozen=True, slots=True)
class Compare(_Node):
    """`attribute op value`."""

    attribute: str
    op: Operator
    value: Value
    kind: Kind = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", _KINDS[type(self.value)])


@dataclass(frozen=True, slots=True)
class Between(_Node):
    """`attribute BETWEEN low AND high`, both ends included."""

    attribute: str
    low: Value
    high: Value
    kind: Kind = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", _KINDS[type(self.low)])


@dataclass(frozen=True, slots=True)
class In(_Node):
    """`attribute IN (values)`; with `has_null` a miss is unknown instead of false. Never without a value."""

    attribute: str
    values: tuple[Value, ...]
    has_null: bool = False
    kind: Kind = field(init=False)
    _members: frozenset[Any] | None = field(init=False, compare=False, repr=False, default=None)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", _KINDS[type(self.values[0])])

    @property
    def members(self) -> frozenset[Any]:
        """The values as a set that is made once; moments as whole microseconds."""
        found = self._members
        if found is None:
            found = frozenset(map(microseconds, self.values) if self.kind == "timestamp" else self.values)  # type: ignore[arg-type]
            object.__setattr__(self, "_members", found)
        return found


@dataclass(frozen=True, slots=True)
class Like(_Node):
    """`attribute LIKE pattern`, the backslash being the escape."""

    attribute: str
    pattern: str
    kind: Kind = field(init=False, default="string")


@dataclass(frozen=True, slots=True)
class Finds(_Node):
    """`xpath_boolean(attribute, path)`: the path finds something in the document that the attribute holds.

    A text that is no document, or one that is refused, has nothing in it. Profiles written as a path alone are about
    the attribute `xml`.
    """

    attribute: str
    path: str
    kind: Kind = field(init=False, default="string")


@dataclass(frozen=True, slots=True)
class IsNull(_Node):
    """`attribute IS NULL`: never unknown."""

    attribute: str


@dataclass(frozen=True, slots=True)
class And(_Node):
    """All parts; at least two, none of them an And when built by `conjunction`."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Or(_Node):
    """Any part; at least two, none of them an Or when built by `disjunction`."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Not(_Node):
    """The opposite; unknown stays unknown."""

    part: Expression


@dataclass(frozen=True, slots=True)
class IsTrue(_Node):
    """`(part) IS TRUE`: unknown becomes false."""

    part: Expression


@dataclass(frozen=True, slots=True)
class Constant(_Node):
    """TRUE, FALSE, or NULL as `None`."""

    value: bool | None


Term: TypeAlias = Compare | Between | In | Like | Finds | IsNull
Expression: TypeAlias = Term | And | Or | Not | IsTrue | Constant
TERMS = (Compare, Between, In, Like, Finds, IsNull)
XML = "xml"  # the attribute that a path alone is about


def conjunction(parts: Iterable[Expression]) -> Expression:
    """AND of the parts, flat; of none it is TRUE.

    >>> conjunction([IsNull("a"), And((IsNull("b"), IsNull("c")))])
    And(parts=(IsNull(attribute='a'), IsNull(attribute='b'), IsNull(attribute='c')))
    """
    flat: list[Expression] = []
    for part in parts:
        flat.extend(part.parts) if isinstance(part, And) else flat.append(part)
    return And(tuple(flat)) if len(flat) > 1 else flat[0] if flat else Constant(True)


def disjunction(parts: Iterable[Expression]) -> Expression:
    """OR of the parts, flat; of none it is FALSE."""
    flat: list[Expression] = []
    for part in parts:
        flat.extend(part.parts) if isinstance(part, Or) else flat.append(part)
    return Or(tuple(flat)) if len(flat) > 1 else flat[0] if flat else Constant(False)


def minus(wide: Expression, narrow: Expression) -> Expression:
    """What `wide` matches and `narrow` does not: a message that `narrow` is unknown about stays."""
    return conjunction((wide, Not(IsTrue(narrow))))


def terms(expression: Expression) -> Iterator[Term]:
    """Every term, left to right, without recursion."""
    waiting: list[Expression] = [expression]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (And, Or)):
            waiting.extend(reversed(node.parts))
        elif isinstance(node, (Not, IsTrue)):
            waiting.append(node.part)
        elif not isinstance(node, Constant):
            yield node


def count_terms(expression: Expression) -> int:
    """Atomic predicates; an IN list is one."""
    return sum(1 for _ in terms(expression))


def longest_list(expression: Expression) -> int:
    """How many values the longest IN list has, NULL among them.

    >>> longest_list(And((In("a", (1, 2), has_null=True), In("b", (1,)))))
    3
    """
    return max((len(t.values) + t.has_null for t in terms(expression) if isinstance(t, In)), default=0)
