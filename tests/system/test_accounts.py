"""F9: accounts and entitlements on a running system, over TLS, and somebody who tries to get past them."""

from __future__ import annotations

import asyncio
import json
import ssl
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from narrowcast.deliver.client.connect import Connection, Subscription, connect
from narrowcast.deliver.parts import records
from narrowcast.deliver.processes.backbone import backbone, url_of
from narrowcast.deliver.processes.supervise import local_system
from narrowcast.deliver.routing.routing import Routing
from narrowcast.deliver.transport import FinalError, Multicast
from narrowcast.deliver.transport.dds.config import DdsSettings
from narrowcast.deliver.transport.dds.multicast import DdsMulticast
from narrowcast.deliver.transport.nats.server import NatsServer
from narrowcast.deliver.trust.accounts import Accounts
from narrowcast.deliver.wire.seal import Seal
from narrowcast.errors import InputError, TransportError
from system.insider import Insider
from system.live import a_plan, by_channel, certificates, enrol, running, until, upto

pytestmark = [pytest.mark.engines]
MARK = b"for bob alone"
ACCOUNTS = (
    ("ann", "subscriber", "s = 'a'"),
    ("bob", "subscriber", "s = 'b'"),
    ("eve", "subscriber", "s = 'a'"),
    ("feed", "publisher", None),
    ("boss", "subscriber", None),
)


async def ring_of(base: Any, edge: str) -> dict[int, bytes]:
    """The keys that an edge was given in the epoch in force."""
    epoch = records.unpack((await base.registry.get(records.EPOCH)).data)["current"]
    found = (await base.registry.get(records.ring_of(edge, epoch))).data
    return {} if found is None else {int(c): bytes.fromhex(key) for c, key in records.unpack(found)["keys"].items()}


def assaulted(folder: Path, attempts: int, *, domain: int) -> dict[str, Any]:
    """One session for two flows, accounts for one of them each, and an insider; what was tried and seen."""

    async def run() -> dict[str, Any]:
        multicast = DdsSettings(domain=domain, groups=4)
        local = local_system(folder / "data", a_plan(folder / "plan", sessions=1), multicast=multicast)
        tls = certificates(folder / "tls")
        async with running(local, tls) as supervisor, AsyncExitStack() as stack:
            credentials = await enrol(supervisor, ACCOUNTS)
            ann, bob, feed, boss = [
                await stack.enter_async_context(connect(credentials[name])) for name in ("ann", "bob", "feed", "boss")
            ]
            wanted = await ann.subscribe("n >= -100").ready(20)
            others = await bob.subscribe("n >= -100").ready(20)
            everything = await boss.subscribe("n >= -100").ready(20)
            assert wanted.profile == "n >= -100 AND s = 'a'"
            await by_channel(feed, ann, wanted, {"s": "a"})
            await by_channel(feed, boss, everything, {"s": "b", "note": MARK.decode()})

            # Keys: the session that carries both is opened by whoever may see both, and by nobody else.
            base = await backbone(url_of(local.folder), name="checker")
            epoch = records.unpack((await base.registry.get(records.EPOCH)).data or b"")["current"]
            routing = Routing.from_bytes((await base.registry.get(records.numbered(records.PLAN, epoch))).data or b"")
            shared = {c for c, address in routing.addresses.items() if isinstance(address, Multicast)}
            assert shared & (await ring_of(base, boss.name)).keys()
            assert not shared & (await ring_of(base, ann.name)).keys()
            assert not shared & (await ring_of(base, bob.name)).keys()

            heard = await foreign_sessions(base, ann, multicast, feed, epoch)
            await feed.publish([{"s": "a", "n": -50}, {"s": "b", "n": -51}])
            await asyncio.gather(upto(wanted, -50), upto(others, -51), upto(everything, -51))
            insider = Insider(credentials["eve"], "bob", MARK)
            await insider.start()
            before = (await base.log.last(0), (await base.registry.get(records.EPOCH)).revision)
            attack = asyncio.ensure_future(insider.attack(attempts))
            n = 0
            while not attack.done() or n < 40:
                pair = [{"s": "a", "n": 2 * n}, {"s": "b", "n": 2 * n + 1, "note": MARK.decode()}]
                await feed.publish(pair)
                assert await upto(wanted, 2 * n) == ([2 * n], [])
                assert await upto(others, 2 * n + 1) == ([2 * n + 1], [])
                assert (await upto(everything, 2 * n + 1))[0] == [2 * n, 2 * n + 1]
                n += 1
            await attack
            assert insider.won == []
            assert insider.read > attempts / 40, "it did not even read what it may"
            assert await base.log.last(0) == before[0] + n, "an entry came from somebody else"
            assert (await base.registry.get(records.EPOCH)).revision == before[1]
            lines = [json.loads(line) for line in (local.folder / "audit.jsonl").read_text().splitlines()]
            mine = [line for line in lines if line["account"] == "eve"]
            await insider.stop()

            # Revoked while traffic runs.
            Accounts(local.folder).revoke("ann")
            begun = asyncio.get_running_loop().time()
            with pytest.raises(TransportError, match="does not let ann in any more"):
                await until_refused(feed, wanted)
            seconds = asyncio.get_running_loop().time() - begun
            assert seconds < 5
            await until(lambda: supervisor._admitted == Accounts(local.folder).state)
            while (now := records.unpack((await base.registry.get(records.EPOCH)).data or b"")["current"]) == epoch:
                await asyncio.sleep(0.05)
            assert asyncio.get_running_loop().time() - begun < 10, "keys did not change within seconds"
            assert ann.name not in {
                records.name_of(value.key) for value in await base.registry.listed(records.SUBSCRIPTION)
            }
            assert now > epoch
            with pytest.raises(FinalError, match="Authorization"):
                await connect(credentials["ann"], patience=2).__aenter__()
            await feed.publish({"s": "b", "n": 10**6 + 1})
            assert 10**6 + 1 in (await upto(everything, 10**6 + 1))[0]
            await base.close()
            return {"tried": insider.tried, "audited": len(mine), "foreign frames": heard, "revoked after": seconds}

    return asyncio.run(asyncio.wait_for(run(), 90 + attempts / 100))


async def until_refused(feed: Connection, wanted: Subscription) -> None:
    while True:
        await feed.publish({"s": "a", "n": 10**6})
        await asyncio.wait_for(anext(wanted), 10)


async def foreign_sessions(base: Any, ann: Connection, multicast: DdsSettings, feed: Connection, epoch: int) -> int:
    """Hear the session that carries both flows, with all the keys of somebody entitled to one: none opens."""
    frames: list[bytes] = []
    carrier = DdsMulticast(multicast)
    await carrier.start(frames.append)
    for session in [Multicast(group, session) for group in range(3) for session in range(3)]:
        await carrier.join(session)
    end = asyncio.get_running_loop().time() + 20
    while len(frames) < 5 and asyncio.get_running_loop().time() < end:
        await feed.publish({"s": "b", "n": -1, "note": MARK.decode()})
        await asyncio.sleep(0.1)
    await carrier.close()
    assert ann._edge is not None
    mine = ann._edge.part.seal
    opened = [mine.open(frame) for frame in frames]
    assert len(frames) >= 5
    assert {getattr(each, "reason", "opened") for each in opened} == {"no key"}
    keys = await ring_of(base, ann.name)
    for channel, key in keys.items():  # and by hand, with each of them under the number of the session
        other = Seal(mine.system, sealed=True, name=ann.name)
        other.know(epoch, mine.plan_of(epoch) or 0)
        other.add_keys(epoch, mine.plan_of(epoch) or 0, dict.fromkeys(range(8), key))
        reasons = {getattr(other.open(frame), "reason", f"opened with {channel}") for frame in frames}
        assert reasons <= {"forged", "no key", "foreign"}, reasons
    return len(frames)


def test_f9_a_thousand_attempts_beyond_an_entitlement_and_a_revocation_while_traffic_runs(tmp_path: Path) -> None:
    found = assaulted(tmp_path, 1000, domain=61)
    assert found["audited"] > 300


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_f9_a_hundred_thousand_attempts_beyond_an_entitlement(tmp_path: Path) -> None:
    assaulted(tmp_path, 100_000, domain=62)


def test_f9_nats_is_known_by_its_certificate(tmp_path: Path) -> None:
    async def run() -> None:
        server = NatsServer(tmp_path / "nats", sync="2m", tls=certificates(tmp_path / "tls"))
        await server.start()
        try:
            link = await backbone(url_of(tmp_path / "nats"), name="mine", found=local_system(tmp_path))
            assert isinstance(link.link.nc._transport._io_writer.get_extra_info("ssl_object"), ssl.SSLObject)
            await link.close()
            stranger = certificates(tmp_path / "other")["ca"]
            for url in (f"{server.url}?ca={stranger}", server.url):
                with pytest.raises(TransportError, match="certificate verify failed"):
                    await backbone(url, name="mine", patience=10.0)
            with pytest.raises(InputError, match="no option but role, ca, cert and key"):
                await backbone(f"{server.url}?verify=no", name="mine")
        finally:
            await server.stop()

    asyncio.run(asyncio.wait_for(run(), 60))
