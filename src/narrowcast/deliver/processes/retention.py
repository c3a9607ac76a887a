"""How much of the log is kept: as a text that people write, such as 50GB or 7d, and what it is by default."""

from __future__ import annotations

import asyncio
import logging
import re
import shutil
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from narrowcast.deliver.transport.private_file import write_private
from narrowcast.errors import InputError, TransportError

log = logging.getLogger(__name__)
AUTO, NONE = "auto", "none"
KEPT = "retention"  # the file in a data folder with what auto was at the first start
BYTES = {"B": 1, "MB": 10**6, "GB": 10**9, "TB": 10**12}
SECONDS = {"m": 60, "h": 3600, "d": 86400}
LEAST_BYTES, LEAST_S = 16 * 10**6, 120  # a few of the largest entries; the log knows repeats for two minutes
DROPPED = "entries dropped by retention"  # a count of whoever looks after the log
ALLOWED = f"{AUTO}, {NONE}, a size such as 50GB, an age such as 7d, or both as 50GB,7d"


class Retention(NamedTuple):
    """What the log keeps at most, all shards together; None: without a limit."""

    size_bytes: int | None = None
    age_s: float | None = None


def parse_retention(text: str) -> Retention | None:
    """What a setting means; None for `auto`, which leaves it to whoever knows the disk.

    Parameters
    ----------
    text : auto, none, a size, an age, or both with a comma

    Returns
    -------
    Retention or None : the limits

    Raises
    ------
    InputError : it is none of these, or too little to work with

    >>> parse_retention("2GB,7d")
    Retention(size_bytes=2000000000, age_s=604800.0)
    """
    if text in (AUTO, NONE):
        return None if text == AUTO else Retention()
    size: int | None = None
    age: float | None = None
    for part in text.split(","):
        found = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,3})?)([A-Za-z]+)", part.strip())
        number, unit = (float(found[1]), found[2]) if found else (0.0, "")
        if unit in BYTES and size is None:
            size = int(number * BYTES[unit])
        elif unit in SECONDS and age is None:
            age = number * SECONDS[unit]
        else:
            raise InputError(f"retention must be {ALLOWED}; got {text!r}", name="retention", got=text)
    if (size is not None and size < LEAST_BYTES) or (age is not None and age < LEAST_S):
        raise InputError(f"retention must be at least 16MB, and 2m; got {text!r}", name="retention", got=text)
    return Retention(size, age)


def kept_retention(folder: Path, given: str) -> str:
    """What a data folder's log keeps: as given, or by default what it has and half of what was free at first start."""
    if given != AUTO:
        return given
    path = folder / KEPT
    if not path.exists():
        used = sum(file.stat().st_size for file in (folder / "jetstream").rglob("*") if file.is_file())
        write_private(path, f"{max(used + shutil.disk_usage(folder).free // 2, LEAST_BYTES)}B\n")
    return path.read_text(encoding="utf-8").strip()


async def count_dropped(
    bounds: Callable[[int], Awaitable[tuple[int, int]]], shards: Sequence[int], counts: Counter[str], every: float = 1.0
) -> None:
    """For ever: count what the log drops. What it had dropped before is one line at the start."""
    first: dict[int, int] = {}
    while True:
        for shard in shards:
            try:
                begins, _ = await bounds(shard)
            except TransportError:
                continue
            if shard not in first and begins > 1:
                log.info("shard %d of the log begins with entry %d; it no longer has older ones", shard, begins)
            counts[DROPPED] += max(0, begins - first.get(shard, begins))
            first[shard] = begins
        await asyncio.sleep(every)
