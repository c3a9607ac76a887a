"""Conditions too large for a normal form, matched through the parts they are made of.

A planner's disjunction of thousands of profiles is cut at its OR into units small enough for boxes,
and every unit tells the whole directly. What has an AND or NOT above such parts becomes a short
program over sets of rows. Truth has three values, so a program asks for the rows where a part is
true, or those where it is false, which is not the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from narrowcast.errors import InputError
from narrowcast.profiles.algebra.intervals import Interval
from narrowcast.profiles.algebra.normal_form import Box, boxes, count_conjuncts
from narrowcast.profiles.algebra.sets import ValueSet
from narrowcast.profiles.algebra.term_sets import false_set, true_set
from narrowcast.profiles.sql.syntax import TERMS, And, Between, Expression, IsTrue, Not, Or, Term

Step = tuple[Literal["rows", "and", "or", "rest"], int]
Program = tuple[Step, ...]
LIMIT = 150


class Units:
    """Boxed conditions, each once, and the targets that each makes match.

    Targets below `n_profiles` are profiles; those from there on are sets of rows that the programs
    of large profiles name.
    """

    def __init__(self, n_profiles: int) -> None:
        self.n_targets = n_profiles
        self.boxes: list[tuple[Box, ...]] = []
        self.targets: list[list[int]] = []
        self.programs: dict[int, Program] = {}
        self._unit: dict[Expression, int] = {}
        self._sets: dict[Expression, ValueSet] = {}

    def add(self, profile: int, expression: Expression) -> None:
        """One profile. Its parts are boxed, told, and remembered."""
        rest = self._tell(profile, expression)
        if rest:
            self.programs[profile] = (("or", len(rest)), *self._compile(rest))

    def _boxed(self, expression: Expression) -> int:
        """The unit of a condition, or −1 if it is too large for one."""
        unit = self._unit.get(expression)
        if unit is None:
            found = self._conjunct(expression)
            if found is None and count_conjuncts(expression) <= LIMIT:
                found = boxes(expression, LIMIT)
            unit = self._unit[expression] = -1 if found is None else len(self.boxes)
            if found is not None:
                self.boxes.append(found)
                self.targets.append([])
        return unit

    def _conjunct(self, expression: Expression) -> tuple[Box, ...] | None:
        """The box of a plain conjunction of terms, as most profiles are: many times faster than in general."""
        box: dict[str, ValueSet] = {}
        for part in expression.parts if isinstance(expression, And) else (expression,):
            term = part.part if isinstance(part, Not) else part
            if not isinstance(term, TERMS):
                return None
            values = self._sets.get(part)
            if values is None:
                values = self._sets[part] = _values(term, term is part)
            box[term.attribute] = box[term.attribute].intersection(values) if term.attribute in box else values
        return () if any(values.looks_empty() for values in box.values()) else (box,)

    def _tell(self, target: int, expression: Expression) -> list[Expression]:
        """Let every boxed part of a disjunction tell the target; returns the parts that cannot."""
        waiting: list[Expression] = [expression]
        rest: list[Expression] = []
        while waiting:
            part = waiting.pop()
            unit = self._boxed(part)
            if unit >= 0:
                if not self.targets[unit] or self.targets[unit][-1] != target:
                    self.targets[unit].append(target)
            elif isinstance(part, Or):
                waiting.extend(part.parts)
            elif isinstance(part, IsTrue):
                waiting.append(part.part)
            else:
                rest.append(part)
        return rest

    def _compile(self, parts: list[Expression]) -> Program:
        """Steps for the rows where each part is true, in prefix order: a step stands before those it takes."""
        program: list[Step] = []
        waiting = [(part, True) for part in parts]
        while waiting:
            part, truth = waiting.pop()
            wanted = part if truth else Not(part)
            if self._boxed(wanted) >= 0:
                program.append(self._rows([wanted])[0])
            elif isinstance(part, Not):
                waiting.append((part.part, not truth))
            elif isinstance(part, IsTrue):
                program += [] if truth else [("rest", 1)]
                waiting.append((part.part, True))
            elif isinstance(part, And if truth else Or):
                program.append(("and", len(part.parts)))
                waiting.extend((inner, truth) for inner in part.parts)
            elif isinstance(part, Or if truth else And):
                step, rest = self._rows([inner if truth else Not(inner) for inner in part.parts])
                program += [("or", len(rest) + 1), step]
                waiting.extend((inner, True) for inner in rest)
            else:
                raise InputError(f"one term takes more than {LIMIT} boxes: {part}")
        return tuple(program)

    def _rows(self, wanted: list[Expression]) -> tuple[Step, list[Expression]]:
        """A new set of rows, those where any of these is true, and the parts it leaves out."""
        target, rest = self.n_targets, []
        self.n_targets += 1
        for part in wanted:
            rest += self._tell(target, part)
        return ("rows", target), rest


def _values(term: Term, truth: bool) -> ValueSet:
    """Where a term is true, or false."""
    if truth and isinstance(term, Between) and term.kind == "number" and term.low <= term.high:  # type: ignore[operator]
        return ValueSet(number=(Interval(term.low, True, term.high, True),))  # type: ignore[arg-type]
    return true_set(term) if truth else false_set(term)


def run(program: Program, n_rows: int, rows_of: Callable[[int], NDArray[np.int64]]) -> NDArray[np.bool_]:
    """Which rows a program keeps, given the rows of each target."""
    stack: list[NDArray[Any]] = []
    for step, value in reversed(program):
        if step == "rows":
            mask = np.zeros(n_rows, np.bool_)
            mask[rows_of(value)] = True
            stack.append(mask)
        elif step == "rest":
            np.logical_not(stack[-1], out=stack[-1])
        else:
            combine = np.logical_and if step == "and" else np.logical_or
            taken = [stack.pop() for _ in range(value)]
            for mask in taken[1:]:
                combine(taken[0], mask, out=taken[0])
            stack.append(taken[0])
    return stack[0]
