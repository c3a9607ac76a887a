"""Where a standing edge puts what it gets: one file per subscription, exact also after a kill.

Each line is one JSON object with the messages of a step and the position after them, so that both are
on disk together or not at all; a line that was cut off is taken away before the next one is written.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from narrowcast.deliver.parts.effects import Deliver, Effect, Gap, Subscribed


class Outlet:
    """The application of an edge that runs by itself."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.consumed: Callable[[str, int], None] = lambda name, count: None
        self._files: dict[str, BinaryIO] = {}

    def position(self, name: str, profile: str) -> dict[int, int] | None:
        """How far a subscription had got; None if it is new, or wants something else than before."""
        path = self._path(name)
        position: dict[int, int] = {}
        wanted = None
        if path.exists():
            data = path.read_bytes()
            whole = data[: data.rfind(b"\n") + 1]
            if len(whole) < len(data):
                os.truncate(path, len(whole))
            for line in whole.splitlines():
                record = json.loads(line)
                wanted = record.get("profile", wanted)
                position |= {int(shard): at for shard, at in record["position"].items()}
        if wanted != profile:
            self._write(name, {"profile": profile, "position": {}})
            return None
        return position or None

    def __call__(self, effect: Effect) -> None:
        if isinstance(effect, Subscribed):
            self._write(effect.subscription, {"position": effect.start})
        elif isinstance(effect, Gap):
            what = {"gap": effect.reason, "after": effect.after, "position": {effect.shard: effect.upto}}
            self._write(effect.subscription, what)
        elif isinstance(effect, Deliver):
            messages = [[at, payload.decode()] for at, payload in effect.messages]
            self._write(effect.subscription, {"position": {effect.shard: effect.position}, "messages": messages})
            self.consumed(effect.subscription, len(messages))

    def close(self) -> None:
        for stream in self._files.values():
            stream.close()
        self._files.clear()

    def _write(self, name: str, record: dict[str, Any]) -> None:
        stream = self._files.get(name)
        if stream is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            stream = self._files[name] = self._path(name).open("ab", buffering=0)
        stream.write(json.dumps(record, separators=(",", ":")).encode() + b"\n")

    def _path(self, name: str) -> Path:
        safe = "".join(c if c.isalnum() or c in "-_." else f"%{ord(c):x}" for c in name)
        return self.folder / f"{safe}.jsonl"
