"""What `narrowcast top` shows, worked out from what processes tell about themselves. No I/O."""

from __future__ import annotations

from collections import deque
from typing import Any

TROUBLE = ("malformed", "failed", "dropped", "overrun", "gaps", "no carrier", "truncated")
KEPT = 30.0  # seconds
WAYS = {"channel": "came by channel", "rest": "came by rest", "log": "repaired"}


class Overview:
    """Snapshots of every process, and what lies between them."""

    def __init__(self) -> None:
        self._seen: dict[str, deque[tuple[float, dict[str, Any]]]] = {}

    def take(self, snapshot: dict[str, Any], now: float) -> None:
        """A process told about itself."""
        past = self._seen.setdefault(snapshot["name"], deque())
        past.append((now, snapshot))
        while past and past[0][0] < now - KEPT:
            past.popleft()
        for name in [name for name, told in self._seen.items() if told[-1][0] < now - 5]:
            del self._seen[name]

    def measured(self, seconds: float) -> dict[str, Any]:
        """Rates over the last seconds, beside what the plan predicted."""
        spans = {name: _span(list(past), seconds) for name, past in sorted(self._seen.items())}
        sources = [span for span in spans.values() if span["role"] == "source"]
        edges = [span for span in spans.values() if span["role"] == "edge"]
        predicted: dict[str, Any] = next(
            (s["last"]["predicted"] for s in spans.values() if s["last"].get("predicted")), {}
        )
        sent: dict[int, float] = {}
        for source in sources:
            for name, rate in source["rates"].items():
                if name.startswith("group ") and name.endswith(" messages"):
                    group = int(name.split()[1])
                    sent[group] = sent.get(group, 0.0) + rate
        total = sum(source["rates"].get("messages sent", 0.0) for source in sources)
        return {
            "messages_s": total,
            "epoch": max((span["last"].get("epoch", 0) for span in spans.values()), default=0),
            "nodes": [_node(name, span) for name, span in spans.items()],
            "groups": _groups(sent, total, edges, predicted.get("groups", {})),
            "edges": [_edge(span, sent, total, predicted.get("edges", {})) for span in edges],
            "adapting": next((s["last"]["adapting"] for s in spans.values() if "adapting" in s["last"]), None),
        }


def _span(past: list[tuple[float, dict[str, Any]]], seconds: float) -> dict[str, Any]:
    """The change of every count per second, over at least `seconds` if there is so much."""
    end, last = past[-1]
    begin, first = next(((t, told) for t, told in reversed(past) if t <= end - seconds + 0.5), past[0])
    time = max(end - begin, 1e-9)
    rates = {}
    for part in ("counts", "carried"):
        for name, count in last[part].items():
            rates[name if part == "counts" else f"carried {name}"] = (
                (count - first[part].get(name, 0)) / time if end > begin else 0.0
            )
    return {"role": last["role"], "rates": rates, "last": last}


def _node(name: str, span: dict[str, Any]) -> dict[str, Any]:
    rates, counts = span["rates"], span["last"]["counts"] | span["last"]["carried"]
    both = ("", " sent")
    return {
        "name": name,
        "role": span["role"],
        "frames_s": sum(rates.get(f"carried frames{way}", 0.0) for way in both),
        "bytes_s": sum(rates.get(f"carried bytes{way}", 0.0) for way in both),
        "trouble": ", ".join(
            f"{what} {count:,}" for what, count in sorted(counts.items()) if any(word in what for word in TROUBLE)
        ),
    }


def _groups(
    sent: dict[int, float], total: float, edges: list[dict[str, Any]], predicted: dict[str, float]
) -> list[dict[str, Any]]:
    return [
        {
            "group": group,
            "messages_s": sent.get(group, 0.0),
            "share": sent.get(group, 0.0) / total if total else None,
            "predicted": predicted.get(str(group)),
            "members": sum(group in edge["last"].get("groups", ()) for edge in edges),
        }
        for group in sorted(set(sent) | {int(g) for g in predicted})
    ]


def _edge(
    span: dict[str, Any], sent: dict[int, float], total: float, predicted: dict[str, dict[str, float]]
) -> dict[str, Any]:
    rates, last = span["rates"], span["last"]
    joined = sum(sent.get(group, 0.0) for group in last.get("groups", ()))
    arrived = rates.get("messages arrived", 0.0)
    levels = {
        "useful": rates.get("delivered", 0.0),
        "group": total - joined,
        "session": max(0.0, joined - arrived) + rates.get("filtered by session", 0.0),
        "flow": rates.get("filtered by flow", 0.0),
        "profile": rates.get("filtered by profile", 0.0),
    }
    subscriptions = last.get("subscriptions", {})
    return {
        "name": last["name"],
        "subscriptions": len(subscriptions),
        "useful_s": levels["useful"],
        "measured": {name: rate / total for name, rate in levels.items()} if total else {},
        "predicted": predicted.get(last["name"], {}),
        "repaired": last["counts"].get("repaired", 0),
        "ways": {way: last["counts"].get(count, 0) for way, count in WAYS.items()},
        "lag": sum(each["lag"] for each in subscriptions.values()),
    }
