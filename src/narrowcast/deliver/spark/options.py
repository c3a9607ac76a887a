"""The options of `format("narrowcast")`, checked: whatever is wrong is one line that names the option."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from narrowcast.errors import InputError

READ = ("url", "system", "start", "end", "partitions", "maxEntriesPerTrigger", "failOnDataLoss")
WRITE = ("url", "system", "shard", "name", "batch")
SPARKS_OWN = ("path", "checkpointlocation", "queryname", "mode")
EARLIEST, LATEST = "earliest", "latest"

Where = str | int | Mapping[int, int]


@dataclass(frozen=True)
class ReadOptions:
    """Where reading starts and ends, by the number of the first and last entry, and how it is cut."""

    start: Where = EARLIEST
    end: Where = LATEST
    partitions: int | None = None
    most_entries: int | None = None
    fail_on_loss: bool = True

    @classmethod
    def of(cls, given: Mapping[str, str]) -> ReadOptions:
        options = known(given, READ)
        loss = options.get("failondataloss", "true").lower()
        if loss not in ("true", "false"):
            raise InputError(f"failOnDataLoss must be true or false, got {loss!r}", name="failOnDataLoss", got=loss)
        return cls(
            _where("start", options.get("start", EARLIEST)),
            _where("end", options.get("end", LATEST)),
            _whole("partitions", options.get("partitions"), 1),
            _whole("maxEntriesPerTrigger", options.get("maxentriespertrigger"), 1),
            loss == "true",
        )


@dataclass(frozen=True)
class WriteOptions:
    """Which shard rows go to; and for a batch job what it is called, so that running it again changes nothing."""

    shard: int | None = None
    name: str | None = None
    batch: int = 0

    @classmethod
    def of(cls, given: Mapping[str, str]) -> WriteOptions:
        options = known(given, WRITE)
        batch = _whole("batch", options.get("batch"), 0)
        if batch is not None and "name" not in options:
            raise InputError("batch requires name: it numbers the writes of that name", name="name", hint="add name")
        return cls(_whole("shard", options.get("shard"), 0), options.get("name"), batch or 0)


def known(given: Mapping[str, str], allowed: Iterable[str]) -> dict[str, str]:
    """The options by their names in small letters; one that does not exist is an error, not a surprise.

    >>> known({"URL": "nats://h:1"}, READ)
    {'url': 'nats://h:1'}
    """
    names = {name.lower(): name for name in allowed}
    options = {name.lower(): value for name, value in given.items()}
    for name in options:
        if name not in names and name not in SPARKS_OWN:
            close = get_close_matches(name, names, n=1)
            raise InputError(
                f"option must be one of {', '.join(names.values())}, got {name!r}",
                name=name,
                allowed=tuple(names.values()),
                hint=f"did you mean {names[close[0]]}?" if close else None,
            )
    return options


def _whole(name: str, text: str | None, least: int) -> int | None:
    if text is None:
        return None
    if not text.strip().isdecimal() or int(text) < least:
        raise InputError(f"{name} must be a whole number of at least {least}, got {text!r}", name=name, got=text)
    return int(text)


def _where(name: str, text: str) -> Where:
    """earliest, latest, a number for every shard, or numbers by shard as JSON.

    >>> _where("start", "17"), _where("start", '{"0": 17}')
    (17, {0: 17})
    """
    if text.lower() in (EARLIEST, LATEST):
        return text.lower()
    try:
        found = json.loads(text)
        if isinstance(found, int) and not isinstance(found, bool):
            return found
        if isinstance(found, dict):
            return {int(shard): int(at) for shard, at in found.items()}
    except (ValueError, TypeError):
        pass
    raise InputError(
        f"{name} must be earliest, latest, the number of an entry, or numbers by shard as JSON, got {text!r}",
        name=name,
        got=text,
        hint=f"{name}='{{\"0\": 17}}'",
    )
