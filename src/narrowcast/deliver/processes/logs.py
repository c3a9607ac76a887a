"""Log lines of processes: one per event that matters, for people or as JSON for programs."""

from __future__ import annotations

import json
import logging
import os
import sys
from datetime import UTC, datetime
from typing import Any

from narrowcast.errors import InputError

log = logging.getLogger(__name__)
FORMAT = "NARROWCAST_LOG_FORMAT"  # the environment variable: text or json; processes that `up` starts see it too
FORMATS = ("text", "json")
_OF_EVERY_RECORD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}

# Counts whose growth is an event, and how bad it is.
EVENTS = {
    "elected": logging.INFO, "stepped down": logging.WARNING, "rolled back": logging.WARNING,
    "offers refused": logging.WARNING, "plans refused": logging.WARNING, "buried": logging.WARNING,
    "gaps": logging.WARNING, "truncated": logging.ERROR, "frames dropped": logging.WARNING,
    "frames overrun": logging.WARNING, "malformed records": logging.WARNING, "too large": logging.WARNING,
    "entries dropped by retention": logging.WARNING,
}  # fmt: skip


class JsonLines(logging.Formatter):
    """A record as one JSON object on one line; what was given as `extra` is in it."""

    def format(self, record: logging.LogRecord) -> str:
        """The line.

        >>> known = {"msg": "moved", "levelname": "INFO", "name": "a", "epoch": 2, "created": 0}
        >>> print(JsonLines().format(logging.makeLogRecord(known)))
        {"time": "1970-01-01T00:00:00+00:00", "level": "info", "logger": "a", "message": "moved", "epoch": 2}
        """
        found: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        found |= {name: value for name, value in record.__dict__.items() if name not in _OF_EVERY_RECORD}
        if record.exc_info:
            found["exception"] = self.formatException(record.exc_info)
        return json.dumps(found, default=str)


def set_up_logs(level: int, form: str | None = None) -> None:
    """Log lines to standard error, as text or JSON: as told, or as the environment says.

    Raises
    ------
    InputError : the format is neither text nor json
    """
    form = form or os.environ.get(FORMAT) or "text"
    if form not in FORMATS:
        raise InputError(f"log format must be one of {', '.join(FORMATS)}, got {form!r}", name="log-format", got=form)
    handler = logging.StreamHandler(sys.stderr)
    plain = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler.setFormatter(JsonLines() if form == "json" else plain)
    handler.addFilter(lambda record: "eof_received() has no effect" not in record.getMessage())  # at the end of any TLS
    logging.basicConfig(level=level, handlers=[handler])


class EventLog:
    """Tells of a process's snapshots what has happened between two of them: a line per kind of event."""

    def __init__(self) -> None:
        self._before: dict[str, Any] | None = None

    def take(self, told: dict[str, Any]) -> None:
        """The next snapshot; a count that grew since the last one is a line, and so is a new epoch."""
        before, self._before = self._before or {"counts": {}, "carried": {}, "epoch": 0}, told
        who = {"node": told["name"], "role": told["role"]}
        if told["epoch"] != before["epoch"]:
            log.info("%s: epoch %d in force", told["name"], told["epoch"], extra=who | {"epoch": told["epoch"]})
        for part in ("counts", "carried"):
            for name, level in EVENTS.items():
                more = told[part].get(name, 0) - before[part].get(name, 0)
                if more > 0:
                    extra = who | {"event": name, "more": more}
                    log.log(level, "%s: %s, %d more", told["name"], name, more, extra=extra)
