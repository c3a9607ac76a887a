"""A narrowcast system's backbone for a test: a real nats-server with its log and registry, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from narrowcast.deliver.processes.backbone import backbone
from narrowcast.deliver.processes.system import System
from narrowcast.deliver.transport.nats.server import NatsServer


@contextmanager
def running(folder: Path, *, shards: int = 1, sync: str = "2m") -> Iterator[str]:
    """The URL of a server that lives as long as the block."""
    server = NatsServer(folder, sync=sync)

    async def start() -> str:
        url = await server.start()
        await (await backbone(url, name="setup", found=System(shards=shards))).close()
        return url

    try:
        yield asyncio.run(asyncio.wait_for(start(), 30))
    finally:
        asyncio.run(server.stop())
