"""Edges in a process of their own, which may be on another host: told over a pipe what to take, it tells what comes.

Both ends are here. Lines of JSON go each way; run as a command, this file is the far end.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

from narrowcast.deliver.client.connect import Connection, Subscription, connect

LINE = 1 << 26
Told = Callable[[str, int, Sequence[int], Sequence[dict[str, Any]]], None]  # subscription, shard, places, rows


class Afar:
    """This end: `told` is called with everything that arrives. Use it as an asynchronous context manager."""

    def __init__(self, command: Sequence[str], told: Told) -> None:
        self._command, self._told = command, told
        self._answers: dict[str, asyncio.Future[dict[str, Any]]] = {}

    async def __aenter__(self) -> Afar:
        pipe = asyncio.subprocess.PIPE
        env = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        self._process = await asyncio.create_subprocess_exec(
            *self._command, stdin=pipe, stdout=pipe, env=env, limit=LINE
        )
        self._reading = asyncio.ensure_future(self._read())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), 20)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        await self._reading

    async def subscribe(self, edge: int, profile: str, name: str, timeout: float) -> tuple[str, dict[int, int]]:
        """The profile as the system has it, and from where on it is promised, by shard."""
        found = await asyncio.wait_for(self._ask(name, subscribe=profile, edge=edge), timeout)
        return found["profile"], {int(shard): at for shard, at in found["start"].items()}

    async def close(self, name: str) -> None:
        """Nothing of it comes after this."""
        await self._ask(name, close=True)

    async def look(self) -> dict[str, Any]:
        """How it stands over there: whether all is `covered` by the plan in force, messages that `arrived`, which
        `ways` messages came, `positions` of subscriptions."""
        return await self._ask("look", look=True)

    async def _ask(self, name: str, **what: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        answer = self._answers[name] = asyncio.get_running_loop().create_future()
        self._process.stdin.write(json.dumps(what | {"name": name}).encode() + b"\n")
        return await answer

    async def _read(self) -> None:
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            said = json.loads(line)
            if "rows" in said:
                self._told(said["name"], said["shard"], said["places"], said["rows"])
            else:
                self._answers.pop(said["name"]).set_result(said)
        for answer in self._answers.values():
            answer.set_exception(RuntimeError("the process with the edges ended"))


def far_end(folder: Path, gateways: Mapping[int, str | None]) -> list[str]:
    """The command of the far end: an edge for each number, at its gateway."""
    return [sys.executable, "-m", "system.afar", str(folder), json.dumps(gateways)]


class _FarEnd:
    def __init__(self, edges: Mapping[int, Connection]) -> None:
        self.edges = edges
        self.taken: dict[str, tuple[Subscription, asyncio.Task[None]]] = {}

    async def obey(self, asked: Mapping[str, Any]) -> None:
        name = asked["name"]
        if "subscribe" in asked:
            found = await self.edges[asked["edge"]].subscribe(asked["subscribe"], name=name).ready()
            _say(name=name, profile=found.profile, start=found.start)
            self.taken[name] = found, asyncio.ensure_future(_collect(found))
        elif "close" in asked:
            found, task = self.taken.pop(name)
            await found.close()
            task.cancel()
            _say(name=name)
        else:
            arrived = [edge._edge.counts["messages arrived"] for edge in self.edges.values() if edge._edge]  # type: ignore[union-attr]
            positions = {name: found.position for name, (found, _) in self.taken.items()}
            ways = [edge.ways for edge in self.edges.values()]
            _say(name=name, covered=self.covered(), arrived=sum(arrived), ways=ways, positions=positions)

    def covered(self) -> bool:
        parts: list[Any] = [edge._edge.part for edge in self.edges.values() if edge._edge]  # type: ignore[union-attr]
        return all(
            part.epoch["current"] in reader.taken
            for part in parts
            for own in part.subscriptions.values()
            for reader in own.readers.values()
        )


async def _collect(subscription: Subscription) -> None:
    async for batch in subscription:
        assert batch.gap is None
        _say(name=subscription.name, shard=batch.shard, places=batch.places, rows=list(batch))


def _say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


async def _main(folder: Path, gateways: Mapping[str, str | None]) -> None:
    lines = asyncio.StreamReader(LINE)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    async with AsyncExitStack() as stack:
        edges = {int(k): await stack.enter_async_context(connect(folder, gateway=g)) for k, g in gateways.items()}
        here, doing = _FarEnd(edges), set[asyncio.Task[None]]()
        while line := await lines.readline():
            doing.add(task := asyncio.ensure_future(here.obey(json.loads(line))))
            task.add_done_callback(lambda done: (doing.discard(done), done.result()))
        for _, task in here.taken.values():
            task.cancel()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(_main(Path(sys.argv[1]), json.loads(sys.argv[2])))
