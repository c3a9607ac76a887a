"""Whole systems for tests of trust: a plan, a supervisor in this process, certificates, accounts."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from narrowcast.deliver.client.connect import Connection, Subscription
from narrowcast.deliver.processes.supervise import Supervisor
from narrowcast.deliver.processes.system import System
from narrowcast.deliver.trust.accounts import Accounts, account_of
from narrowcast.model import Demand, Interest
from narrowcast.model.folder import write_tables
from narrowcast.plans.channels import api as channels


def a_plan(folder: Path, sessions: int = 2) -> Path:
    """Two flows that two subscribers take, in sessions of their own, or together in one."""
    interest = Interest.from_pairs([0, 1], [0, 1], [1.0, 1.0], flow_names=["a", "b"], user_names=["ann", "bob"])
    plan = channels.plan(Demand(interest, key=("s",)), groups=sessions, sessions=sessions, method="gf")
    return write_tables(plan.to_tables(), folder)


@asynccontextmanager
async def running(local: System, tls: Mapping[str, Path] | None = None) -> AsyncIterator[Supervisor]:
    """The system, until the block ends."""
    stop, supervisor = asyncio.Event(), Supervisor(local, sync="2m", tls=tls)
    task = asyncio.ensure_future(supervisor.run(stop))
    try:
        while not supervisor._ready and not task.done():
            await asyncio.sleep(0.05)
        if task.done():
            task.result()
        yield supervisor
    finally:
        stop.set()
        await asyncio.wait_for(task, 30)


async def until(true: Any, limit: float = 20.0, what: str = "") -> None:
    """Wait for a condition."""
    end = asyncio.get_running_loop().time() + limit
    while not true():
        assert asyncio.get_running_loop().time() < end, what or "it did not come true"
        await asyncio.sleep(0.02)


async def enrol(supervisor: Supervisor, accounts: Iterable[tuple[str, str, str | None]]) -> dict[str, Path]:
    """Make accounts as the command does, and wait until they are let in; their credentials by name."""
    kept, found = Accounts(supervisor.data), {}
    for name, role, entitled in accounts:
        account = kept.add(account_of(name, role, entitled))
        found[name] = supervisor.data / f"{name}.of"
        found[name].write_text(account.credential(supervisor.server.url, supervisor.server.authority))
    await until(lambda: supervisor._admitted == kept.state, what="the accounts are not in force")
    return found


async def upto(wanted: Subscription, last: int, limit: float = 30.0) -> tuple[list[int], list[str]]:
    """What comes until message `last` is there: numbers, and why others do not."""
    numbers: list[int] = []
    gaps: list[str] = []
    while last not in numbers:
        batch = await asyncio.wait_for(anext(wanted), limit)
        gaps += [batch.gap] if batch.gap else []
        numbers += [row["n"] for row in batch]
    return numbers, gaps


async def by_channel(
    publisher: Connection, client: Connection, wanted: Subscription, message: dict[str, Any], limit: float = 20.0
) -> None:
    """Publish until messages come by channel: the plan is in force, and carriers have found each other."""

    def came() -> int:
        return client.ways["channel"] + client.ways.get("unicast", 0)

    end, k, before = asyncio.get_running_loop().time() + limit, 0, came()
    while came() < before + 10 and asyncio.get_running_loop().time() < end:
        k -= 1
        await publisher.publish(message | {"n": k})
        await upto(wanted, k)
    assert came() >= before + 10, client.ways


def certificates(folder: Path, name: str = "127.0.0.1") -> dict[str, Path]:
    """An authority, and a certificate from it for an address, with its key."""
    now, day = datetime.now(UTC), timedelta(days=1)

    def signed(subject: str, issuer: str, key: Any, by: Any, extension: Any) -> x509.Certificate:
        called = [x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, each)]) for each in (subject, issuer)]
        made = x509.CertificateBuilder().subject_name(called[0]).issuer_name(called[1]).public_key(key.public_key())
        made = made.serial_number(x509.random_serial_number()).not_valid_before(now - day).not_valid_after(now + day)
        return made.add_extension(extension, critical=False).sign(by, hashes.SHA256())

    root, own = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    ca = signed("authority", "authority", root, root, x509.BasicConstraints(ca=True, path_length=None))
    where = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(name))])
    cert = signed("nats", "authority", own, root, where)
    pem = serialization.Encoding.PEM
    secret = own.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    folder.mkdir(parents=True, exist_ok=True)
    files = {"ca": ca.public_bytes(pem), "cert": cert.public_bytes(pem), "key": secret}
    for each, data in files.items():
        (folder / f"{each}.pem").write_bytes(data)
    return {each: folder / f"{each}.pem" for each in files}
