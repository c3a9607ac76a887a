"""What people write who watch a market, and the headlines that reach them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from narrowcast.workloads.names import sectors

#: Added to a list of symbols; half of the people want everything about theirs.
CONDITIONS = (
    "price > {p}",
    "price BETWEEN {p} AND {P}",
    "quantity >= {q}",
    "kind = 'trade' AND quantity >= {q}",
    "kind <> 'quote'",
    "venue = 'ARCA'",
    "venue IN ('IEX', 'MEMX') AND price < {P}",
    "venue IS NOT NULL AND NOT (quantity < {q} OR quantity > 50000)",
    "(kind = 'news' OR quantity > {q})",
    "halted = FALSE AND price >= {p}",
)
THEMES = (
    "sector = '{s}' AND quantity > {Q}",
    "sector IN ('{s}', 'Utilities') AND kind = 'trade' AND price > {P}",
    "headline LIKE 'Fed%'",
    "kind = 'news' AND headline LIKE '%merger%'",
    "headline LIKE '%beats%' AND sector = '{s}'",
    "halted = TRUE",
    "(market = 'XNAS' OR market = 'XNYS') AND quantity >= {Q}",
    "market = 'XLON' AND kind = 'trade' AND price BETWEEN {p} AND {P}",
    "venue IS NULL AND kind <> 'news'",
)
HEADLINES = (
    "{c} beats estimates",
    "{c} misses estimates",
    "{c} in merger talks",
    "{c} names new chief executive",
    "{c} raises its dividend",
    "Fed holds rates; {c} moves",
    "Fed cuts rates; {c} moves",
    "Analysts lift target for {c}",
)


def conditions(seed: int) -> list[str]:
    """A few hundred distinct conditions, the same for everybody, so that people share some."""
    return _filled(np.random.default_rng([seed, 11]), CONDITIONS, 400)


def themes(seed: int) -> list[str]:
    """Profiles without symbols. Few distinct ones, so that many people share them."""
    return _filled(np.random.default_rng([seed, 12]), THEMES, 100)


def headlines(rng: np.random.Generator, names: Sequence[str]) -> list[str]:
    """A headline about each company."""
    return [HEADLINES[i].format(c=c) for i, c in zip(rng.integers(len(HEADLINES), size=len(names)), names, strict=True)]


def _filled(rng: np.random.Generator, forms: Sequence[str], n: int) -> list[str]:
    """Up to n distinct texts, each form as often as the others."""
    made: dict[str, None] = {}
    for i in range(n):
        p, high, q, big, s = rng.integers((6, 4, 4, 3, len(sectors()))).tolist()
        text = forms[i % len(forms)].format(
            p=(5, 10, 20, 40, 60, 100)[p],
            P=(150, 200, 300, 500)[high],
            q=(50, 100, 250, 500)[q],
            Q=(2000, 5000, 10000)[big],
            s=sectors()[s],
        )
        made[text] = None
    return list(made)
