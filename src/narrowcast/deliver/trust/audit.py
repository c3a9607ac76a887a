"""Who was refused what, as lines of JSON in the data folder, readable by its owner only."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

FILE = "audit.jsonl"
MOST_BYTES = 64 << 20  # then the file becomes `audit.jsonl.1`, and the one before it goes
_VIOLATION = re.compile(rb'(Publish|Subscription) Violation - .*?User "([^"]*)".*?Subject "([^"]*)"')
_STRANGER = re.compile(rb'authentication error(?: - User "([^"]*)")?')


class Audit:
    """Appends to the file. A full disk loses lines and stops nobody; `counts` has them all."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self.counts: Counter[str] = Counter()

    def refuse(self, account: str, action: str, what: str, reason: str) -> None:
        """Note a refusal."""
        self.counts["refused"] += 1
        line: dict[str, Any] = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "account": account, "action": action, "what": what[:500], "reason": reason[:500],
        }  # fmt: skip
        try:
            with os.fdopen(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a") as out:
                out.write(json.dumps(line) + "\n")
                size = out.tell()
            if size > MOST_BYTES:
                self.path.replace(self.path.with_name(f"{FILE}.1"))
        except OSError:
            self.counts["audit lines lost"] += 1

    def harvest(self, said: bytes) -> None:
        """Note what nats-server has refused, from lines of its log."""
        for line in said.splitlines():
            if (found := _VIOLATION.search(line)) is not None:
                action, account, subject = (part.decode(errors="replace") for part in found.groups())
                action = "publish" if action == "Publish" else "subscribe"
                self.refuse(account, action, subject, "NATS: not among the account's subjects")
            elif (stranger := _STRANGER.search(line)) is not None:
                account = (stranger[1] or b"").decode(errors="replace")
                self.refuse(account, "connect", "NATS", "NATS: no such credential")
