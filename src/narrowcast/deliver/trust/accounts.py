"""Accounts: who may connect to NATS, as what, and what they may see there. Kept in one file of the data folder.

Trusted roles (admin, coordinator, source, broker, relay, gate) have what their work needs of NATS. Publishers and
subscribers have the gate: they may ask it, hear its answers and what is sent to their own names, and nothing else.
"""

from __future__ import annotations

import fcntl
import json
import re
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from narrowcast.deliver.parts import records
from narrowcast.deliver.routing.routes import PULSE
from narrowcast.deliver.transport.nats.link import GATED, inbox_of, tokens
from narrowcast.deliver.transport.private_file import write_private
from narrowcast.errors import InputError
from narrowcast.profiles import Profile

FILE, LOCK = "accounts.json", "accounts.lock"
SERVICES = ("coordinator", "source", "broker", "relay", "gate")  # whose processes `narrowcast up` starts as themselves
ROLES = (*GATED, "source", "broker", "relay", "coordinator", "gate", "admin")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


@dataclass(frozen=True)
class Account:
    """One who may connect. `entitled`: the profile of what a subscriber may see; None: everything."""

    name: str
    role: str
    entitled: str | None = None
    password: str = field(default="", repr=False)
    since: str = ""

    @property
    def record(self) -> bytes:
        """What the registry tells coordinator and gate: no secret, and another one for an account made anew."""
        serial = blake2b(self.password.encode(), digest_size=8, person=b"nc-account").hexdigest()
        return records.pack({"role": self.role, "entitled": self.entitled, "serial": serial})

    def credential(self, url: str, authority: str = "") -> str:
        """The file by which a client connects: a URL, and the certificate of the authority if there is one."""
        at = urlsplit(url)
        said = {"role": self.role} if self.role in GATED else {}
        query = f"?{urlencode(said)}" if said else ""
        return f"{at.scheme}://{self.name}:{self.password}@{at.hostname}:{at.port}{query}\n{authority}"


def account_of(name: str, role: str, entitled: str | None = None) -> Account:
    """A new account; InputError for a name, role or entitlement that cannot be."""
    if not NAME.fullmatch(name):
        raise InputError(
            f"the name of an account must be up to 64 letters, digits, dots and dashes, got {name!r}", name="account"
        )
    if role not in ROLES:
        raise InputError(f"role must be one of {', '.join(ROLES)}, got {role!r}", name="role", got=role)
    if entitled is not None and role != "subscriber":
        raise InputError(f"an entitlement is for subscribers, got one for a {role}", name="entitled", got=entitled)
    text = None if entitled is None else Profile.parse(entitled).text
    return Account(name, role, text, secrets.token_urlsafe(24), datetime.now(UTC).isoformat(timespec="seconds"))


class Accounts:
    """The accounts of a data folder. Every change reads, changes and writes the file under a lock."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def listed(self) -> list[Account]:
        """All of them, by name; InputError if the file cannot be read."""
        path = self.folder / FILE
        if not path.exists():
            return []
        try:
            found = [Account(**each) for each in json.loads(path.read_text(encoding="utf-8"))]
        except (OSError, ValueError, TypeError) as error:
            raise InputError(f"{path} cannot be read: {error}", name="accounts", got=str(path)) from None
        return sorted(found, key=lambda account: account.name)

    def add(self, account: Account, *, known: bool = False) -> Account:
        """Keep an account; `known`: the one that is there already is as good."""
        with self._changing() as accounts:
            if account.name in accounts and not known:
                hint = f"narrowcast account revoke {account.name} first"
                raise InputError(f"account must be new, got {account.name}", name="account", hint=hint)
            return accounts.setdefault(account.name, account)

    def revoke(self, name: str) -> None:
        """Forget an account."""
        if name in SERVICES:
            raise InputError(f"account must not be one that narrowcast up needs itself, got {name}", name="account")
        with self._changing() as accounts:
            if accounts.pop(name, None) is None:
                known = ", ".join(sorted(accounts.keys() - SERVICES)) or "none yet"
                raise InputError(f"account must be one of {known}, got {name!r}", name="account")

    @property
    def state(self) -> str:
        """Another text for other accounts."""
        path = self.folder / FILE
        return blake2b(path.read_bytes(), digest_size=8).hexdigest() if path.exists() else ""

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Account]]:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (self.folder / LOCK).open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            accounts = {account.name: account for account in self.listed()}
            yield accounts
            kept = [asdict(account) for _, account in sorted(accounts.items())]
            write_private(self.folder / FILE, json.dumps(kept, indent=1) + "\n")


def nats_users(accounts: Iterable[Account], system: str, shards: int) -> str:
    """The accounts as nats-server's configuration has users, each on a line."""
    return "".join(f"{_user(account, system, shards)}\n" for account in accounts)


def _user(account: Account, system: str, shards: int) -> str:
    publish, subscribe = permissions(account, system, shards)
    allowed = f"publish: {json.dumps(publish)}, subscribe: {json.dumps(subscribe)}"
    return f'{{ user: "{account.name}", password: "{account.password}", permissions: {{ {allowed} }} }}'


def permissions(account: Account, system: str, shards: int) -> tuple[list[str], list[str]]:
    """The subjects that an account may publish and subscribe to."""
    role, mine = account.role, account.name.encode().hex()
    if role == "admin":
        return [">"], [">"]
    if role == "coordinator":
        return [f"{system}.>", "$JS.>", f"$KV.{system}.>", "_INBOX.>"], [f"{system}.>", "_INBOX.>"]
    if role == "publisher":
        return [f"{system}.gate.{mine}.*"], [f"{inbox_of(account.name)}.>"]
    if role == "subscriber":
        own = [f"{system}.{way}.{mine}{rest}" for way in ("to", "node") for rest in ("", ".>")]
        publish = [f"{system}.gate.{mine}.*", f"{system}.stats.{mine}.>"]
        return publish, [f"{inbox_of(account.name)}.>", *own, f"{system}.to.{tokens(PULSE.name)}"]
    streams = [f"KV_{system}", *(f"{system}-log-{shard}" for shard in range(shards))]
    reads = [f"$JS.API.{verb}.{stream}{rest}" for stream in streams for verb, rest in _READS]
    reads += ["$JS.API.INFO", "$JS.API.STREAM.NAMES", "$JS.FC.>", "_INBOX.>"]
    if role == "gate":
        logs = [f"{system}.log.*", f"{system}.log.*.generations"]
        writes = [f"$KV.{system}.{prefix}.>" for prefix in ("sub", "node")]
        return [*reads, *logs, *writes, f"{system}.stats.>"], [f"{system}.gate.>", f"{system}.disk", "_INBOX.>"]
    told = {"source": "source", "relay": "sub"}.get(role, "wants")  # what it writes to the registry beside its node
    writes = [f"$KV.{system}.{prefix}.>" for prefix in ("node", told)]
    sends = [f"{system}.{way}.>" for way in ("to", "node", "stats")]
    heard = [f"{system}.{way}" for way in ("live.>", "node.>", "to.>", "disk")]
    return [*reads, *writes, *sends], [*heard, "_INBOX.>"]


_READS = (
    ("STREAM.INFO", ""), ("DIRECT.GET", ""), ("DIRECT.GET", ".>"), ("STREAM.MSG.GET", ""), ("CONSUMER.CREATE", ""),
    ("CONSUMER.CREATE", ".>"), ("CONSUMER.DURABLE.CREATE", ".>"), ("CONSUMER.INFO", ".>"), ("CONSUMER.DELETE", ".>"),
)  # fmt: skip
