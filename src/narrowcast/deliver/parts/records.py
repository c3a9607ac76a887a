"""What the registry holds: keys, and values as JSON.

    lease           who coordinates: {holder, term}; a heartbeat is a write of the same
    epoch           {term, current, next, phase, cutover}; phase: steady, preparing, committing
                    and of other plans: offer (in force), trying, refused (the last number), burnt (a plan's number)
    offer           another plan to move to: {number, folder, base}
    plan.<epoch>    a routing, written once and never changed
    sub.<name>      a subscription: {profile, edge}, and the account if the gate wrote it
    node.<name>     a node that is alive: {role, ready: the newest epoch it has prepared, beat}, and the same
    seal.<epoch>    what the keys of an epoch's sessions come from: {root}; for sources and brokers
    ring.<edge>.<epoch>  the keys of the sessions that an edge takes: {plan: its checksum, keys: by channel}
    source.<shard>  how far a source has got: {sequence, epoch: in force after it}
    filter.<name>   what the filter at a broker does now: {state, version, epoch: of the plan that it is for}
    wants.<epoch>.<name>  what a broker tells its parent in a filtered tree: {version, up, turn, subs, sure, changes}
    account.<name>  who may ask the gate: {role, entitled: a profile, serial: another for an account made anew}
    sink.<name>     what a sink of batches published last: {batch, done, shard, last, piles}

Names are written in hexadecimal where they stand in keys, so that any name will do.

Anybody who may write to the registry may write rubbish: `read` says of every key and value whether it is what it
should be, and whoever watches counts what is not and goes on as if it were not there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from narrowcast.errors import NarrowcastError
from narrowcast.profiles.parsed import parsed

LEASE = "lease"
EPOCH = "epoch"
OFFER = "offer"
PLAN = "plan."
SUBSCRIPTION = "sub."
NODE = "node."
SOURCE = "source."
SEAL = "seal."
RING = "ring."
FILTER = "filter."
WANTS = "wants."
SINK = "sink."
ACCOUNT = "account."
MOST_RECORD, MOST_TEXT = 256 << 10, 4096  # bytes
MOST_RING = 4 << 20  # bytes: 90,000 sessions


def named(prefix: str, name: str) -> str:
    """The key of a named thing.

    >>> named(SUBSCRIPTION, "a/b")
    'sub.612f62'
    """
    return prefix + name.encode().hex()


def name_of(key: str) -> str:
    """The name in a key that `named` made; ValueError for any other."""
    return bytes.fromhex(key.partition(".")[2]).decode()


def wants_of(epoch: int, broker: str) -> str:
    """The key of what a broker tells in an epoch.

    >>> wants_of(3, "a"), wants_in("wants.3.61")
    ('wants.3.61', (3, 'a'))
    """
    return f"{WANTS}{epoch}.{broker.encode().hex()}"


def wants_in(key: str) -> tuple[int, str]:
    """The epoch and the broker of a key that `wants_of` made; ValueError for any other."""
    epoch, _, name = key.removeprefix(WANTS).partition(".")
    return int(epoch), bytes.fromhex(name).decode()


def numbered(prefix: str, number: int) -> str:
    return f"{prefix}{number}"


def number_of(key: str) -> int:
    """The number in a key that `numbered` made; ValueError for any other."""
    number = int(key.partition(".")[2])
    if not _is_number(number):
        raise ValueError(f"{key} has no number that a plan or a shard may have")
    return number


def ring_of(edge: str, epoch: int | None = None) -> str:
    """The key of an edge's ring for an epoch, or how the keys of all of them begin."""
    return f"{RING}{edge.encode().hex()}." + ("" if epoch is None else str(epoch))


def ring_epoch(key: str) -> int:
    """The epoch in a key that `ring_of` made; ValueError for any other."""
    return number_of(f"{RING}{key.rpartition('.')[2]}")


def pack(record: dict[str, Any]) -> bytes:
    """A record as bytes, the same bytes for the same record."""
    return json.dumps(record, separators=(",", ":"), sort_keys=True).encode()


def unpack(data: bytes, most: int = MOST_RECORD) -> dict[str, Any]:
    """The record of bytes that `pack` made; ValueError for any other."""
    if len(data) > most:
        raise ValueError(f"a record must be at most {most} bytes, got {len(data)}")
    try:
        found = json.loads(data)
    except RecursionError:
        raise ValueError("a record must not be nested so deep") from None
    if not isinstance(found, dict):
        raise ValueError(f"a record must be an object, got {type(found).__name__}")
    return found


def read(key: str, data: bytes) -> dict[str, Any]:
    """The record under a key, if it is one that should stand there; ValueError says why not.

    >>> read("source.0", b'{"epoch":1,"sequence":7}')
    {'epoch': 1, 'sequence': 7}
    """
    prefix = key.partition(".")[0] + ("." if "." in key else "")
    found = unpack(data, MOST_RING if prefix == RING else MOST_RECORD)
    for name, fits in FIELDS.get(prefix, {}).items():
        if not fits(found.get(name)):
            raise ValueError(f"{key} has a {name} that cannot be")
    if prefix == EPOCH and ("next" not in found or (found["phase"] != "steady" and found["next"] is None)):
        raise ValueError(f"{key} does not say what it prepares")
    return found


def _is_number(value: Any) -> bool:
    """Of an epoch, a term or an offer, as they fit into a frame."""
    return type(value) is int and 0 <= value < 1 << 32


def _is_sequence(value: Any) -> bool:
    """Of an entry, with its generation, as they fit into a frame."""
    return type(value) is int and 0 <= value < 1 << 112 and value & ((1 << 48) - 1) < 1 << 47


def _is_text(value: Any) -> bool:
    """A name or a path, which must be fit to be written."""
    try:
        return type(value) is str and len(value.encode()) <= MOST_TEXT
    except UnicodeEncodeError:
        return False


def _is_profile(value: Any) -> bool:
    try:
        return type(value) is str and parsed(value) is not None
    except (NarrowcastError, RecursionError):
        return False


def _is_key(value: Any) -> bool:
    return type(value) is str and len(value) in (32, 64) and not set(value) - set("0123456789abcdef")


def _is_ring(value: Any) -> bool:
    return isinstance(value, dict) and all(c.isdecimal() and _is_key(key) for c, key in value.items())


def _is_cutover(value: Any) -> bool:
    return isinstance(value, dict) and all(shard.isdecimal() and _is_sequence(at) for shard, at in value.items())


def _is_offer(value: Any) -> bool:
    return isinstance(value, dict) and all(fits(value.get(name)) for name, fits in FIELDS[OFFER].items())


def _is_told(value: Any) -> bool:
    """Profiles that a broker tells its parent of; None: whatever there is."""
    return value is None or (isinstance(value, list) and all(_is_profile(text) for text in value))


def _is_sure(value: Any) -> bool:
    return isinstance(value, dict) and all(_is_number(version) for version in value.values())


def _is_own(value: Any) -> bool:
    """The subscriptions of a gateway: edge, profile, whether it is sure, and since which change it is there."""
    return isinstance(value, dict) and all(
        isinstance(own, list) and len(own) == 4 and _is_text(own[0]) and _is_profile(own[1])
        and own[2] in (0, 1) and _is_number(own[3])
        for own in value.values()
    )  # fmt: skip


def _or_none(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or fits(value)


# What each field of a record must be; a field that may be missing may be None.
FIELDS: dict[str, Mapping[str, Callable[[Any], bool]]] = {
    LEASE: {"holder": _is_text, "term": _is_number},
    OFFER: {"number": _is_number, "folder": _is_text, "base": _or_none(_is_text)},
    EPOCH: {
        "term": _is_number,
        "current": _is_number,
        "next": _or_none(_is_number),
        "phase": ("steady", "preparing", "committing").__contains__,
        "cutover": _is_cutover,
        "offer": _or_none(_is_offer),
        "trying": _or_none(_is_offer),
        "refused": _or_none(_is_number),
        "burnt": _or_none(_is_number),
    },
    SUBSCRIPTION: {
        "profile": _is_profile,
        "edge": _is_text,
        "gateway": _or_none(_is_text),
        "account": _or_none(_is_text),
    },
    NODE: {"role": _is_text, "ready": _is_number, "account": _or_none(_is_text)},
    ACCOUNT: {"role": _is_text, "entitled": _or_none(_is_profile), "serial": _is_text},
    SOURCE: {"sequence": _is_sequence, "epoch": _is_number},
    FILTER: {"state": _is_text, "version": _or_none(_is_number), "epoch": _or_none(_is_number)},
    WANTS: {
        "version": _is_number,
        "up": _is_told,
        "turn": _is_number,
        "subs": _is_own,
        "sure": _is_sure,
        "changes": _is_number,
    },
    SEAL: {"root": _is_key},
    RING: {"plan": _is_number, "keys": _is_ring},
}
