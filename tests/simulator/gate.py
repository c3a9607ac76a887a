"""An edge behind the gate, in the simulator: what it may see of registry and log, until its account is revoked.

It is watched: whatever its seal opens must be within its entitlement, and nothing after the revocation may be of an
epoch that it had no keys for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from narrowcast.deliver.parts import records
from narrowcast.deliver.parts.effects import Write
from narrowcast.deliver.routing.routing import Routing, part_of
from narrowcast.deliver.transport import Address, Entry, Multicast
from narrowcast.deliver.trust.entitlement import plan_view
from narrowcast.deliver.trust.gate import shown
from narrowcast.deliver.wire import Frame, Malformed, decode_payload

ACCOUNT, HOST = "spy", "spy/edge"
ENTITLED = "s IN ('b', 'c') AND p > 4"


def allowed(message: Any) -> bool:
    """The entitlement, written by hand."""
    return message["s"] in ("b", "c") and message["p"] > 4


class SimGate:
    """Between the world and the one host that is not trusted."""

    def __init__(self) -> None:
        self.revoked = False
        self.opened = 0  # messages
        self.let_in: list[str] = []  # what should never have come
        self._last = 0  # the newest plan that it could have had keys for

    @staticmethod
    def is_for(name: str) -> bool:
        return name.startswith(ACCOUNT)

    def account(self) -> tuple[str, bytes]:
        record = {"role": "subscriber", "entitled": ENTITLED, "serial": "1"}
        return records.named(records.ACCOUNT, ACCOUNT), records.pack(record)

    def revoke(self, plans: list[str]) -> None:
        self.revoked = True
        self._last = max((records.number_of(key) for key in plans), default=0)

    def carries(self, address: Address) -> bool:
        """Whether somebody whose account is gone still hears an address: NATS is closed to it, the segment is not."""
        return not self.revoked or isinstance(address, Multicast)

    def written(self, effect: Write) -> Write | None:
        """What the gate makes of a write; None for what it refuses."""
        if self.revoked or not effect.key.startswith((records.SUBSCRIPTION, records.NODE)):
            return None
        if effect.data is None:
            return effect
        record = records.read(effect.key, effect.data) | {"account": ACCOUNT}
        return Write(effect.request, effect.key, records.pack(record), effect.revision)

    def seen(self, key: str, data: bytes | None) -> bytes | None:
        if data is None or not key.startswith(records.PLAN):
            return data
        return part_of(data, plan_view(Routing.from_bytes(data), lambda name: name.startswith(ACCOUNT)))

    def entries(self, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
        return shown(entries, ENTITLED)

    def watch(self, found: Any) -> None:
        """Something that its seal has opened."""
        if not isinstance(found, Frame):
            return
        if self.revoked and found.epoch > self._last:
            self.let_in.append(f"a frame of epoch {found.epoch} after the revocation in {self._last}")
        for _, _, payload in found.messages:
            self.opened += 1
            message = decode_payload(payload)
            if not isinstance(message, Malformed) and not allowed(message):
                self.let_in.append(f"{message}, which it may not see")

    def is_out(self, get: Callable[[str], bytes | None]) -> bool:
        """Whether nothing is left of it in the plan in force, once it was revoked."""
        epoch = get(records.EPOCH)
        current = records.unpack(epoch)["current"] if epoch else 0
        plan = get(records.numbered(records.PLAN, current))
        return not self.revoked or plan is None or not any(map(self.is_for, Routing.from_bytes(plan).taken))

    def end(self, get: Callable[[str], bytes | None]) -> None:
        """In the end nothing is left of it in the plan in force."""
        if not self.is_out(get):
            self.let_in.append("the plan in force still has it")
