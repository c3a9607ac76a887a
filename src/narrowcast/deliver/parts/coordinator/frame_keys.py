"""Keys of frames, by epoch: their root for those who send and pass on, and for each edge those of what it takes."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Container, Iterable, Mapping

from narrowcast.deliver.parts import records
from narrowcast.deliver.routing.routing import Routing
from narrowcast.deliver.wire.frame import EVERY
from narrowcast.deliver.wire.seal import session_key


class FrameKeys:
    """What the registry holds of them; `write` writes a key of the registry, or deletes it (None)."""

    def __init__(self, write: Callable[[str, bytes | None], None]) -> None:
        self._write = write
        self._roots: dict[int, bytes] = {}
        self._rings: dict[int, set[str]] = {}  # the keys of the registry with keys of frames, by epoch

    def note(self, key: str, root: str | None, *, there: bool) -> None:
        """A key of the registry has come or gone; `root` is what it says of an epoch's root. ValueError: it is none."""
        if key.startswith(records.SEAL):
            if root is not None:
                self._roots[records.number_of(key)] = bytes.fromhex(root)
            else:
                self._roots.pop(records.number_of(key), None)
        known = self._rings.setdefault(records.ring_epoch(key), set())
        (known.add if there else known.discard)(key)
        self._rings = {epoch: keys for epoch, keys in self._rings.items() if keys}

    def make(self, epoch: int, routing: Routing, plan: int) -> None:
        """Keys of an epoch that begins. Once the plan's number is ours, so that nobody else writes others."""
        root = secrets.token_bytes(32)
        taken: dict[str, set[int]] = {}
        for name, channels in routing.taken.items():
            if name in routing.edges:
                taken.setdefault(routing.edges[name], {EVERY}).update(channels)
        self._write(records.numbered(records.SEAL, epoch), records.pack({"root": root.hex()}))
        self._write_rings(epoch, root, plan, taken)

    def give(self, epoch: int, plan: int, edges: Iterable[str], channels: Iterable[int]) -> None:
        """The same keys for edges that have come since, as far as they have none."""
        root = self._roots.get(epoch)
        if root is not None:
            missing = {edge for edge in edges if records.ring_of(edge, epoch) not in self._rings.get(epoch, ())}
            self._write_rings(epoch, root, plan, dict.fromkeys(missing, (EVERY, *channels)))

    def _write_rings(self, epoch: int, root: bytes, plan: int, taken: Mapping[str, Iterable[int]]) -> None:
        for edge, channels in sorted(taken.items()):
            keys = {str(c): session_key(root, epoch, c, plan).hex() for c in sorted(channels)}
            self._rings.setdefault(epoch, set()).add(records.ring_of(edge, epoch))
            self._write(records.ring_of(edge, epoch), records.pack({"plan": plan, "keys": keys}))

    def delete(self, epoch: int) -> None:
        """They are known until they are gone: what was not deleted is deleted the next time."""
        self._roots.pop(epoch, None)
        for key in sorted(self._rings.get(epoch, ())):
            self._write(key, None)

    def delete_before(self, epoch: int, kept: Container[int]) -> None:
        """Those of older epochs whose plans are gone."""
        for each in sorted(n for n in self._rings if n < epoch and n not in kept):
            self.delete(each)
