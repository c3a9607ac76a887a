"""What was found and decided, moment by moment: an append-only table of JSON lines in the data folder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from narrowcast.adapt.decide import Decision

TIMELINE = "timeline.jsonl"
#: `first`: cost a second had the first plan stayed; `kept`: had the plan stayed that was in force before the decision;
#: `now`: of the plan in force after it; `best`: of the best one in reach.
COLUMNS = ("time", "first", "kept", "now", "best", "replanned", "moves", "joins", "price", "earned", "why")


def row_of(decision: Decision, first: float, *, installed: bool, why: str | None = None) -> dict[str, Any]:
    """One row. `replanned` is 1 where another plan was installed, and then `moves` and `joins` are its own."""
    return {
        "time": decision.time,
        "first": first,
        "kept": decision.kept,
        "now": decision.best if installed else decision.kept,
        "best": decision.best,
        "replanned": int(installed),
        "moves": decision.change.moves if installed else 0,
        "joins": decision.change.joins if installed else 0,
        "price": decision.price,
        "earned": decision.earned,
        "why": why or decision.why,
    }


def append(folder: str | Path, row: Mapping[str, Any]) -> None:
    """Add a row, whole: one write of one line."""
    path = Path(folder) / TIMELINE
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as out:
        out.write(json.dumps(row, separators=(",", ":")).encode() + b"\n")


def read(folder: str | Path) -> list[dict[str, Any]]:
    """All rows so far; a last line that is being written is left out."""
    path = Path(folder) / TIMELINE
    data = path.read_bytes() if path.is_file() else b""
    return [json.loads(line) for line in data[: data.rfind(b"\n") + 1].splitlines()]


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What adapting came to: costs now and had nothing ever moved (`kept`), re-plans and moves in all.

    >>> summary([])["replans"]
    0
    """
    last = rows[-1] if rows else {"first": 0.0, "now": 0.0, "time": None, "why": ""}
    return {
        "time": last["time"],
        "kept": last["first"],
        "now": last["now"],
        "replans": sum(row["replanned"] for row in rows),
        "moves": sum(row["moves"] for row in rows),
        "joins": sum(row["joins"] for row in rows),
        "why": last["why"],
    }
