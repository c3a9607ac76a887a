"""Names that look real: S&P 500 symbols first, then made-up tickers that never collide with them."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from narrowcast.errors import InputError

if TYPE_CHECKING:
    from narrowcast.workloads.market import MarketShape

#: Much traded names come first, so that rank and fame agree; the rest follow in the file's order.
FAMOUS = ("NVDA", "AAPL", "MSFT", "AMZN", "TSLA", "GOOGL", "META", "AVGO", "AMD", "JPM", "INTC", "BAC", "F", "T", "PFE")
MARKETS = ("XNYS", "XNAS", "XLON", "XTKS", "XHKG", "XPAR", "XETR", "XTSE", "XSWX", "XASX")
# Without vowels no word can be spelt by accident.
_LETTERS = np.frombuffer(b"BCDFGHJKLMNPQRSTVWXYZ", np.uint8)


@dataclass(frozen=True, slots=True)
class Company:
    symbol: str
    name: str
    sector: str


@cache
def companies() -> tuple[Company, ...]:
    """The S&P 500, the much traded first.

    >>> companies()[0].symbol, len(companies())
    ('NVDA', 503)
    """
    text = files("narrowcast.workloads").joinpath("data/sp500.csv").read_text(encoding="utf-8")
    rows = [Company(r["Symbol"], r["Security"], r["GICS Sector"]) for r in csv.DictReader(text.splitlines())]
    fame = {symbol: i for i, symbol in enumerate(FAMOUS)}
    return tuple(sorted(rows, key=lambda c: fame.get(c.symbol, len(fame))))


@cache
def sectors() -> tuple[str, ...]:
    """The sectors, in alphabetical order."""
    return tuple(sorted({c.sector for c in companies()}))


def market_names(n: int) -> tuple[str, ...]:
    """Exchange codes: ten real ones, then X011, X012, …"""
    return tuple(MARKETS[i] if i < len(MARKETS) else f"X{i + 1:03d}" for i in range(n))


def tickers(shape: MarketShape) -> NDArray[Any]:
    """A name per symbol: real ones go to the top ranks of the first two markets. All distinct.

    >>> from narrowcast.workloads.market import market_shape
    >>> tickers(market_shape(2000, 10))[:3].tolist()
    ['NVDA', 'MSFT', 'AMZN']
    """
    n = shape.rates.size
    # By rank within the market, so that both markets get their share of fame.
    ranks = [np.arange(size) / size for size in shape.sizes[:2]]
    busiest = np.argsort(np.concatenate(ranks), kind="stable")[: len(companies())]
    names = np.empty(n, dtype="U6")
    made_up = np.ones(n, np.bool_)
    made_up[busiest] = False
    names[made_up] = made_up_tickers(int(made_up.sum()))
    names[busiest] = [c.symbol for c in companies()[: busiest.size]]
    return names


def made_up_tickers(n: int) -> NDArray[Any]:
    """n distinct tickers of four letters, then five, none of them real.

    >>> made_up_tickers(3).tolist()
    ['RVBS', 'BJKB', 'LVRK']
    """
    real = np.array([c.symbol for c in companies()])
    parts, missing = [], n
    for length in (4, 5):
        # Multiplying by a number coprime to 21 walks through every code once, in no visible order.
        space = len(_LETTERS) ** length
        code = (np.arange(min(missing + len(real), space)) * 1_234_577 + 130_003) % space
        digits = code[:, None] // len(_LETTERS) ** np.arange(length) % len(_LETTERS)
        text = _LETTERS[digits].view(f"S{length}").ravel().astype("U6")
        parts.append(text[~np.isin(text, real)][:missing])
        missing -= len(parts[-1])
    if missing > 0:
        raise InputError(
            f"symbols must be at most 4 million, the tickers of five letters, got {n}",
            name="symbols",
            got=n,
            allowed="up to 4 million",
        )
    return np.concatenate(parts)
