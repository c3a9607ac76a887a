"""The ways a row can be bad, by table. Each yields a row that no reader may accept."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan
from typing import Any

from narrowcast.workloads.tables.source import Fault


def setting(**values: Any) -> Fault:
    """A copy of the row with some values changed; `{n}` in a text becomes the bad row's number."""
    return lambda row, n: row | {k: v.replace("{n}", str(n)) if isinstance(v, str) else v for k, v in values.items()}


#: The same row again. Both copies are equal, so it does not matter which one is dropped.
DUPLICATE: Fault = setting()


def profile_faults(**key: str) -> dict[str, Fault]:
    """Profiles beyond the language and its limits, under a key of their own."""
    long_text = " OR ".join(f"symbol = '{'X' * 480}{i}'" for i in range(11))
    return {
        "unparsable profile": setting(profile="price > > 100", **key),
        "unclosed string": setting(profile="symbol = 'IBM", **key),
        "trailing words": setting(profile="price > 100 ORDER BY price", **key),
        "unbalanced parenthesis": setting(profile="(price > 100 AND size < 5", **key),
        "empty profile": setting(profile="", **key),
        "missing profile": setting(profile=None, **key),
        "profile too long": setting(profile=long_text, **key),
        "too many terms": setting(profile=" OR ".join(f"size = {n} AND market = 'm{n}'" for n in range(40)), **key),
        "too deep": setting(profile="NOT (" * 40 + "size > 1 AND price > 2" + ")" * 40, **key),
    }


def subscription_faults(*, with_node: bool, with_bound: bool) -> dict[str, Fault]:
    key = {"subscriber": "bad{n}"}
    faults = profile_faults(**key) | {"missing subscriber": setting(subscriber=None), "duplicate key": DUPLICATE}
    if with_node:
        faults["unknown node"] = setting(node="nowhere{n}", **key)
    if with_bound:
        faults["negative latency bound"] = setting(latency_bound=-1.0, **key)
    return faults


MESSAGE_FAULTS: dict[str, Fault] = {"negative size": setting(size=-1)}
MESSAGE_TEXT_FAULTS: dict[str, Fault] = {"wrong type": setting(size="large")}
BOUND_TEXT_FAULTS: dict[str, Fault] = {"wrong type": setting(latency_bound="soon", subscriber="bad{n}")}

FLOW_FAULTS: dict[str, Fault] = {
    "negative rate": setting(rate=-1.0, flow="bad{n}"),
    "rate not a number": setting(rate=nan, flow="bad{n}"),
    "infinite rate": setting(rate=inf, flow="bad{n}"),
    "missing rate": setting(rate=None, flow="bad{n}"),
    "missing flow": setting(flow=None),
    "duplicate key": DUPLICATE,
}
FLOW_TEXT_FAULTS: dict[str, Fault] = {"wrong type": setting(rate="fast", flow="bad{n}")}

INTEREST_FAULTS: dict[str, Fault] = {
    "unknown flow": setting(flow="nowhere{n}"),
    "missing subscriber": setting(subscriber=None),
    "duplicate key": DUPLICATE,
}

NODE_FAULTS: dict[str, Fault] = {
    "unknown role": setting(node="bad{n}", role="manager"),
    "missing node": setting(node=None),
    "duplicate key": DUPLICATE,
}


def link_faults(free: Sequence[tuple[str, str]]) -> dict[str, Fault]:
    """`free` are pairs of known nodes without a link."""
    faults: dict[str, Fault] = {
        "unknown node": setting(v="nowhere{n}"),
        "link to itself": lambda row, _: row | {"v": row["u"]},
        "duplicate key": DUPLICATE,
    }
    if free:
        faults["negative cost"] = lambda row, n: _between(row, free, n) | {"cost": -1.0}
        faults["negative delay"] = lambda row, n: _between(row, free, n) | {"delay": -1.0}
    return faults


TREE_FAULTS: dict[str, Fault] = {
    "unknown parent": setting(node="bad{n}", parent="nowhere{n}"),
    "its own parent": setting(node="bad{n}", parent="bad{n}"),
    "missing node": setting(node=None),
    "duplicate key": DUPLICATE,
}


def demand_faults(interior: str | None) -> dict[str, Fault]:
    faults: dict[str, Fault] = {
        "unknown node": setting(node="nowhere{n}"),
        "negative size": setting(item="bad{n}", size=-1.0),
        "missing item": setting(item=None),
        "duplicate key": DUPLICATE,
    }
    if interior is not None:
        faults["not a leaf"] = setting(node=interior, item="bad{n}")
    return faults


def query_faults() -> dict[str, Fault]:
    key = {"query": "bad{n}"}
    return profile_faults(**key) | {
        "not a range": setting(profile="label LIKE 'a%'", **key),
        "missing query": setting(query=None),
        "duplicate key": DUPLICATE,
    }


def _between(row: dict[str, Any], free: Sequence[tuple[str, str]], n: int) -> dict[str, Any]:
    u, v = free[n % len(free)]
    return row | {"u": u, "v": v}
