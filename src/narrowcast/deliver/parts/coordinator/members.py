"""Who is there: subscriptions, nodes that are alive, and accounts. What changes among them is a reason to plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from narrowcast.deliver.parts import records
from narrowcast.deliver.parts.coordinator.leader import CoordinatorSettings, Leader, Stamped
from narrowcast.deliver.parts.effects import Write
from narrowcast.deliver.parts.events import Noted


class Members(Leader):
    """A leader that knows whom it leads."""

    def __init__(self, name: str, settings: CoordinatorSettings) -> None:
        super().__init__(name, settings)
        self._subscriptions: dict[str, Stamped] = {}
        self._nodes: dict[str, Stamped] = {}  # those that are alive
        self._accounts: dict[str, dict[str, Any]] = {}
        self._dirty = True  # what was planned for has changed
        self._anew = False  # the next plan is written even if it is the one in force

    def _wanted(self) -> dict[str, dict[str, Any]]:
        """The subscriptions to plan for: of edges that are alive, and of accounts that are some, or of nobody's."""
        return {
            name: seen.record
            for name, seen in sorted(self._subscriptions.items())
            if seen.record is not None
            and seen.record["edge"] in self._nodes
            and (seen.record.get("account") is None or seen.record["account"] in self._accounts)
        }

    def _entitled(self, wanted: Mapping[str, dict[str, Any]]) -> dict[str, str | None]:
        """What the accounts of some subscriptions may see."""
        accounts = {name: at for name, record in wanted.items() if (at := record.get("account")) is not None}
        return {name: self._accounts[account].get("entitled") for name, account in accounts.items()}

    def _note(self, known: dict[str, Stamped], event: Noted, record: dict[str, Any] | None, now: float) -> None:
        """A subscription or a node has come, changed or gone."""
        name = records.name_of(event.key)
        before = known.pop(name, None)
        if record is not None:
            known[name] = Stamped(record, event.revision, now)
        if known is self._nodes:
            self._dirty |= before is None and record is not None and record["role"] != "source"
        else:
            self._dirty |= (before.record if before else None) != record

    def _note_account(self, name: str, record: dict[str, Any] | None) -> None:
        """An account has come, changed or gone: what it subscribed to under the old one ends, and so do all keys.

        Frames of the epoch that begins then are sealed with keys that it never had.
        """
        before = self._accounts.pop(name, None)
        if record is not None:
            self._accounts[name] = record
        if before == record:
            return
        for known, prefix in ((self._subscriptions, records.SUBSCRIPTION), (self._nodes, records.NODE)):
            for each in [each for each, seen in known.items() if (seen.record or {}).get("account") == name]:
                self._dirty = True
                if before is not None:
                    self._anew = True
                    gone = known.pop(each)
                if before is not None and self.leads:
                    self._do(Write(self._request(), records.named(prefix, each), None, gone.revision))

    def _bury(self, now: float) -> None:
        """A node that has shown nothing for long is dead: nobody waits for it, and trees go around it.

        It may only be slow to speak, so what it wrote is deleted at its present revision or not at all;
        an edge that comes back registers its subscriptions again, and reads the log until it is planned for.
        """
        dead = [name for name, seen in self._nodes.items() if now >= seen.changed + self.settings.alive]
        for name in dead:
            seen = self._nodes.pop(name)
            self.counts["buried"] += 1
            self._dirty |= seen.record is not None and seen.record["role"] != "source"
            if self.leads:
                self._do(Write(self._request(), records.named(records.NODE, name), None, seen.revision))
        if dead and self.leads:
            for name, seen in self._subscriptions.items():
                if seen.record is not None and seen.record["edge"] in dead:
                    self._do(Write(self._request(), records.named(records.SUBSCRIPTION, name), None, seen.revision))
