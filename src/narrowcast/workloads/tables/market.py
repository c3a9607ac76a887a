"""A stock feed: trades, quotes and news, and the people who watch some of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from narrowcast.model import Interest
from narrowcast.model.arrays import Floats
from narrowcast.workloads.market import MarketShape, market, market_shape
from narrowcast.workloads.names import companies, market_names, sectors
from narrowcast.workloads.overlay import overlay
from narrowcast.workloads.overlay_clients import names_of
from narrowcast.workloads.tables import faults, market_profiles, schemas
from narrowcast.workloads.tables.common import (
    by_rate,
    interest_sources,
    message_source,
    shares,
    times,
    topology_sources,
)
from narrowcast.workloads.tables.lists import blocks, quoted
from narrowcast.workloads.tables.source import TableSource, batch_rng, pick, row_batches

RATE = 10_000.0
KINDS = ("trade", "quote", "news")
VENUES = ("ARCA", "BATS", "EDGX", "IEX", "MEMX", "NYSE")
MESSAGES = pa.schema(
    [
        ("ts", schemas.TIME),
        ("source", pa.string()),
        ("symbol", pa.string()),
        ("market", pa.string()),
        ("sector", pa.string()),
        ("kind", pa.string()),
        ("price", pa.float64()),
        ("quantity", pa.int64()),
        ("venue", pa.string()),
        ("halted", pa.bool_()),
        ("headline", pa.string()),
        ("size", pa.int64()),
    ]
)


def market_tables(
    *,
    messages: int = 100_000,
    users: int = 500,
    seed: int = 0,
    symbols: int = 20_000,
    markets: int = 10,
    markets_per_user: int = 2,
    share: float = 0.01,
    decay: float = 8.0,
    top_share: float | None = None,
    brokers: int = 60,
) -> list[TableSource]:
    """Subscriptions and messages of a stock market on an overlay, with the flows and interest behind them."""
    shape = market_shape(symbols, markets, decay=decay, top_share=top_share)
    interest = market(
        symbols, markets, users, markets_per_user, share, seed, decay=decay, top_share=top_share, names=True
    )
    topology = overlay(brokers, seed=seed)
    roles = np.array(topology.roles)
    gateways, publishers = names_of(topology)[roles == "gateway"], names_of(topology)[roles == "source"]
    sizes = np.full(interest.n_flows, 90.0)  # the mean over trades, quotes and news
    subscriptions = TableSource(
        "subscriptions",
        schemas.SUBSCRIPTIONS,
        None,
        lambda: row_batches(schemas.SUBSCRIPTIONS, _subscriptions(interest, shape, gateways, seed)),
        faults.subscription_faults(with_node=True, with_bound=True),
        faults.BOUND_TEXT_FAULTS,
    )
    feed = _Feed(shape, interest, publishers, seed)
    return [
        subscriptions,
        message_source(MESSAGES, messages, feed.columns),
        *interest_sources(interest, sizes, rate=RATE, key="symbol"),
        *topology_sources(topology),
    ]


def _subscriptions(interest: Interest, shape: MarketShape, gateways: Any, seed: int) -> Iterator[tuple[Any, ...]]:
    """Each user's symbols, market by market, in profiles that the language allows, and now and then a theme."""
    users = interest.user_names or ()
    conditions, themes = market_profiles.conditions(seed), market_profiles.themes(seed)
    for block in blocks(interest, quoted(interest.flow_names), shape.market_of_symbol):
        rng = batch_rng(seed, 1, block.first)
        node = gateways[rng.integers(gateways.size, size=block.n)].tolist()
        bound = np.array((50.0, 100.0, 250.0) + (None,) * 12, dtype=object)[rng.integers(15, size=block.n)].tolist()
        theme = rng.integers(len(themes), size=block.n).tolist()
        has_theme = (rng.random(block.n) < 0.3).tolist()
        # Half of the lists have no condition.
        condition = rng.integers(2 * len(conditions), size=len(block.values)).tolist()
        held: list[list[str]] = [[] for _ in range(block.n)]
        for user, run, wanted in block.texts("symbol"):
            extra = condition[run]
            held[user - block.first].append(f"{wanted} AND {conditions[extra]}" if extra < len(conditions) else wanted)
        for i, profiles in enumerate(held):
            if has_theme[i] or not profiles:
                profiles.append(themes[theme[i]])
            for profile in profiles:
                yield users[block.first + i], profile, node[i], bound[i]


class _Feed:
    """Messages in batches: a symbol by its rate, and a trade, a quote or a headline about it."""

    def __init__(self, shape: MarketShape, interest: Interest, publishers: Any, seed: int) -> None:
        rng = batch_rng(seed, 2, 0)
        n = interest.n_flows
        names = interest.flow_names or ()
        known = {c.symbol: c for c in companies()}
        self.seed = seed
        self.names = names
        self.company = [known[s].name if s in known else s for s in names]
        self.cumulative: Floats = shares(interest.rates)
        self.base_price = np.round(np.exp(rng.normal(np.log(60.0), 0.9, n)), 2)
        word = {s: i for i, s in enumerate(sectors())}
        made_up = rng.integers(len(word), size=n)
        self.sector = np.array([word[known[s].sector] if s in known else made_up[k] for k, s in enumerate(names)])
        self.market = shape.market_of_symbol
        self.words = {
            "symbol": pa.array(names),
            "market": pa.array(market_names(shape.p.size)),
            "sector": pa.array(sectors()),
            "kind": pa.array(KINDS),
            "venue": pa.array(VENUES),
            "source": pa.array(publishers),
        }

    def columns(self, batch: int, rows: int) -> list[Any]:
        rng = batch_rng(self.seed, 3, batch)
        symbol = by_rate(rng, self.cumulative, rows)
        kind = np.searchsorted((0.55, 0.98), rng.random(rows), side="right")
        news = kind == 2
        price = np.round(self.base_price[symbol] * (1 + 0.02 * rng.standard_normal(rows)), 2)
        quantity = np.ceil(np.exp(rng.normal(5.0, 1.6, rows))).astype(np.int64)
        venue = rng.integers(len(VENUES), size=rows)
        no_venue = rng.random(rows) < 0.02
        headline = np.full(rows, None, dtype=object)
        about = np.flatnonzero(news)
        headline[about] = market_profiles.headlines(rng, [self.company[k] for k in symbol[about]])
        length = np.where(news, rng.integers(200, 400, rows), np.where(kind == 0, 96, 72))
        words = self.words
        return [
            times(rng, batch, rows, RATE),
            pick(words["source"], rng.integers(len(words["source"]), size=rows)),
            pick(words["symbol"], symbol),
            pick(words["market"], self.market[symbol]),
            pick(words["sector"], self.sector[symbol]),
            pick(words["kind"], kind),
            pa.array(price, mask=news),
            pa.array(quantity, mask=news),
            words["venue"].take(pa.array(venue, mask=no_venue | news)),
            rng.random(rows) < 0.001,
            pa.array(headline, pa.string()),
            length,
        ]
