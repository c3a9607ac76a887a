"""Documents, live: XPath profiles beside SQL ones in one running system, each message against lxml."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import narrowcast as nc
from naive import random_xml
from narrowcast.deliver.client.connect import Connection, Subscription
from narrowcast.errors import InputError

etree = pytest.importorskip("lxml.etree")
GATEWAYS = 4
AHEAD = 3  # steps that the publisher may be ahead of the slowest edge
HOSTILE = {
    "<!DOCTYPE b [<!ENTITY a 'x'><!ENTITY b '&a;&a;'>]><b>&b;</b>": "document type",
    "<!DOCTYPE a SYSTEM 'file:///etc/passwd'><a/>": "document type",
    "<a>" * 200 + "</a>" * 200: "nest deeper",
    f"<a>{'x' * 1_100_000}</a>": "at most 1000000 bytes",
    "<a><b></a>": "mismatched tag",
    b"<a/>": "must be a document as text",
}


def system_of(rng: Random, n: int, documents: list[str]) -> tuple[list[str], nc.Plan]:
    """Profiles of both notations, at gateways around a ring, and the plan for them."""
    found: dict[str, None] = {}
    while len(found) < n:
        found[random_xml.xpath(rng)] = None
    texts = [*found, "n < 40", "n BETWEEN 20 AND 90 AND xpath_boolean(xml, '//a')"]
    ring = nc.Topology([(i, (i + 1) % GATEWAYS) for i in range(GATEWAYS)], names=[f"g{i}" for i in range(GATEWAYS)])
    clients = [(k, k % GATEWAYS) for k in range(len(texts))]
    window = pa.table({"xml": documents[:100], "n": list(range(len(documents[:100])))})
    return texts, nc.semantic.plan(ring, texts, clients, window, 0, "search")


def wanted(texts: list[str], rows: list[dict[str, Any]]) -> list[set[int]]:
    """By profile, the numbers of the messages that lxml, and for SQL the definition, says it matches."""
    trees = [etree.fromstring(row["xml"].encode()) for row in rows]
    found = []
    for text in texts:
        if text.startswith("/"):
            oracle = etree.XPath(f"boolean({text})")
            found.append({row["n"] for row, tree in zip(rows, trees, strict=True) if oracle(tree)})
        else:
            found.append({row["n"] for row in rows if nc.Profile.parse(text).matches(row)})
    return found


async def collect(subscription: Subscription, n: int, found: list[int]) -> None:
    async for batch in subscription:
        assert batch.gap is None
        found += [row["n"] for row in batch if row["n"] >= 0]
        if len(found) >= n:
            break


async def covered(edges: list[Connection]) -> None:
    """Until the plan in force has channels for every subscription."""
    for edge in edges:
        part: Any = edge._edge.part if edge._edge else None
        while not all(
            part.epoch["current"] in reader.taken
            for own in part.subscriptions.values()
            for reader in own.readers.values()
        ):
            await asyncio.sleep(0.05)


def trial(n_profiles: int, n_documents: int, step: int, seconds: float) -> None:
    rng = Random(5)
    rows = [{"n": n, "xml": random_xml.document(rng, rng.randint(1, 20))} for n in range(n_documents)]
    texts, plan = system_of(rng, n_profiles, [row["xml"] for row in rows])
    expected = wanted(texts, rows)

    async def run(folder: Path) -> tuple[list[list[int]], dict[str, int]]:
        async with AsyncExitStack() as stack:
            publisher = await stack.enter_async_context(nc.connect(folder))
            edges = [await stack.enter_async_context(nc.connect(folder, gateway=f"g{i}")) for i in range(GATEWAYS)]
            taken = [
                await edges[k % GATEWAYS].subscribe(text, name=f"s{k}", credit=n_documents).ready(30)
                for k, text in enumerate(texts)
            ]
            await asyncio.wait_for(covered(edges), 60)
            for hostile, why in HOSTILE.items():
                with pytest.raises(InputError, match=why):
                    await publisher.publish({"n": -1, "xml": hostile})
            found: list[list[int]] = [[] for _ in expected]
            waiting = [
                asyncio.ensure_future(collect(each, len(want), got))
                for each, want, got in zip(taken, expected, found, strict=True)
                if want
            ]
            places = sorted(n for want in expected for n in want)
            async with asyncio.timeout(seconds):
                for at in range(0, n_documents, step):
                    while sum(map(len, found)) < bisect_left(places, at - AHEAD * step):
                        await asyncio.sleep(0.01)
                    await publisher.publish(rows[at : at + step])
                await asyncio.gather(*waiting)
            ways = {way: sum(edge.ways[way] for edge in edges) for way in ("channel", "rest", "log")}
            return found, ways

    with nc.up(plan, multicast=False, sync="2m") as system:
        got, ways = asyncio.run(run(system.folder))
    assert got == [sorted(want) for want in expected]
    print(f"{len(texts)} profiles, {n_documents} documents, {sum(map(len, got))} deliveries, {ways}")
    assert sum(map(len, got)) > n_documents
    assert ways["channel"] >= 0.95 * sum(ways.values())


@pytest.mark.timeout(120)
def test_documents_reach_whom_lxml_says() -> None:
    trial(30, 120, 20, 60)


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_a_thousand_paths_and_ten_thousand_documents() -> None:
    trial(1000, 10_000, 20, 1500)
