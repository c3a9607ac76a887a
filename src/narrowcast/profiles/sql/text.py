r"""Writing a condition down: the canonical text, and the same for SQLite and Spark SQL.

The canonical text is what `Profile.parse` reads back to the same meaning. The dialects differ in
three things: Spark's strings take the backslash as an escape; SQLite needs `ESCAPE '\'` after LIKE
(and `PRAGMA case_sensitive_like = ON`) and has no timestamps, so they become microseconds since
1970; both get every attribute quoted as one column name, dots included.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from narrowcast.profiles.sql.moments import microseconds
from narrowcast.profiles.sql.syntax import (
    XML,
    And,
    Between,
    Compare,
    Constant,
    Expression,
    Finds,
    In,
    IsNull,
    IsTrue,
    Like,
    Not,
    Or,
    Value,
)

Dialect: TypeAlias = Literal["narrowcast", "sqlite", "spark"]

# Words that our grammar, SQLite or Spark would not take as a bare column name.
_RESERVED = """
    ADD ALL ALTER AND ANTI ANY AS AUTOINCREMENT BETWEEN BOTH CASE CAST CHECK COLLATE COLUMN COMMIT CONSTRAINT CREATE
    CROSS CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER DEFAULT DEFERRABLE DELETE DISTINCT DROP ELSE END
    ESCAPE EXCEPT EXISTS FALSE FETCH FILTER FOR FOREIGN FROM FULL GRANT GROUP HAVING IN INDEX INNER INSERT INTERSECT
    INTERVAL INTO IS ISNULL JOIN LATERAL LEADING LEFT LIKE LIMIT MINUS NATURAL NOT NOTNULL NULL OFFSET ON ONLY OR
    ORDER OUTER OVERLAPS PRIMARY REFERENCES RIGHT SELECT SEMI SESSION_USER SET SOME TABLE THEN TO TRAILING
    TRANSACTION TRUE UNION UNIQUE UNKNOWN UPDATE USER USING VALUES WHEN WHERE WITH WITHIN
"""
RESERVED = frozenset(_RESERVED.split())
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")


def _is_plain(attribute: str) -> bool:
    if _PLAIN_NAME.fullmatch(attribute) is None:
        return False
    return not any(part.upper() in RESERVED for part in attribute.split("."))


@dataclass(frozen=True, slots=True)
class _Writer:
    dialect: Dialect

    def name(self, attribute: str) -> str:
        if self.dialect == "narrowcast" and _is_plain(attribute):
            return attribute
        return "`" + attribute.replace("`", "``") + "`"

    def string(self, value: str) -> str:
        if self.dialect == "spark":
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        return "'" + value.replace("'", "''") + "'"

    def constant(self, value: Value) -> str:
        if isinstance(value, str):
            return self.string(value)
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        if isinstance(value, datetime):
            if self.dialect == "sqlite":
                return str(microseconds(value))
            zone = "Z" if self.dialect == "spark" else ""
            return f"TIMESTAMP '{value.replace(tzinfo=None).isoformat(sep=' ')}{zone}'"
        return repr(value)

    def between(self, term: Between, word: str) -> str:
        return f"{self.name(term.attribute)} {word}BETWEEN {self.constant(term.low)} AND {self.constant(term.high)}"

    def listed(self, term: In, word: str) -> str:
        values = [self.constant(value) for value in term.values] + ["NULL"] * term.has_null
        return f"{self.name(term.attribute)} {word}IN ({', '.join(values)})"

    def like(self, term: Like, word: str) -> str:
        escape = " ESCAPE '\\'" if self.dialect == "sqlite" else ""
        return f"{self.name(term.attribute)} {word}LIKE {self.string(term.pattern)}{escape}"

    def two_valued(self, node: IsTrue, word: str) -> str:
        if isinstance(node.part, Not):
            return f"({self.write(node.part.part)}) IS {word}FALSE"
        return f"({self.write(node.part)}) IS {word}TRUE"

    def negation(self, part: Expression) -> str:
        match part:
            case Between():
                return self.between(part, "NOT ")
            case In():
                return self.listed(part, "NOT ")
            case Like():
                return self.like(part, "NOT ")
            case IsNull():
                return f"{self.name(part.attribute)} IS NOT NULL"
            case IsTrue():
                return self.two_valued(part, "NOT ")
            case And() | Or():
                return f"NOT ({self.write(part)})"
            case _:
                return f"NOT {self.write(part)}"

    def write(self, node: Expression) -> str:
        match node:
            case Compare():
                return f"{self.name(node.attribute)} {node.op} {self.constant(node.value)}"
            case Between():
                return self.between(node, "")
            case In():
                return self.listed(node, "")
            case Like():
                return self.like(node, "")
            case Finds():
                return f"xpath_boolean({self.name(node.attribute)}, {self.string(node.path)})"
            case IsNull():
                return f"{self.name(node.attribute)} IS NULL"
            case And():
                return " AND ".join(
                    f"({self.write(p)})" if isinstance(p, (And, Or)) else self.write(p) for p in node.parts
                )
            case Or():
                return " OR ".join(f"({self.write(p)})" if isinstance(p, Or) else self.write(p) for p in node.parts)
            case Not():
                return self.negation(node.part)
            case IsTrue():
                return self.two_valued(node, "")
            case Constant():
                return {True: "TRUE", False: "FALSE", None: "NULL"}[node.value]


def to_text(expression: Expression) -> str:
    """The canonical text, with no parenthesis that the meaning does not need. Linear.

    >>> to_text(And((Compare("52_week_high", ">", 110.0), Not(IsNull("venue")))))
    '`52_week_high` > 110.0 AND venue IS NOT NULL'
    """
    if isinstance(expression, Finds) and expression.attribute == XML:
        return expression.path
    return _Writer("narrowcast").write(expression)


def to_sql(expression: Expression, dialect: Dialect) -> str:
    r"""The condition as `sqlite` or `spark` would have it in a WHERE clause.

    >>> to_sql(Like("name", "a\\_%"), "sqlite"), to_sql(Like("name", "a\\_%"), "spark")
    ("`name` LIKE 'a\\_%' ESCAPE '\\'", "`name` LIKE 'a\\\\_%'")
    """
    return _Writer(dialect).write(expression)
