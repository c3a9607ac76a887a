"""What `narrowcast top` shows, worked out from what processes tell about themselves. No I/O."""

from __future__ import annotations

import re
from collections import Counter, deque
from typing import Any

REFUSED = ("forged", "foreign", "replayed")  # frames, by those who must not be let in
TROUBLE = ("malformed", "failed", "dropped", "overrun", "gaps", "no carrier", "truncated", *REFUSED)
_TROUBLE = re.compile("|".join(map(re.escape, TROUBLE)))
KEPT, SILENT = 30.0, 5.0  # seconds: of what was told, and after which who tells nothing is left out
WAYS = {"channel": "came by channel", "unicast": "came by unicast", "rest": "came by rest", "log": "repaired"}

LATENCY, SAMPLES = "latency µs", "latency samples"  # counts of an edge: the sum of those that were measured


class Overview:
    """Snapshots of every process, and what lies between them."""

    def __init__(self) -> None:
        self._seen: dict[str, deque[tuple[float, dict[str, Any]]]] = {}
        self._now = 0.0

    def take(self, snapshot: dict[str, Any], now: float) -> None:
        """A process told about itself."""
        past = self._seen.setdefault(snapshot["name"], deque())
        if past and past[-1][1].get("started") != snapshot.get("started"):
            past.clear()  # it was started again, and counts from nothing
        past.append((now, snapshot))
        self._now = now
        while past and past[0][0] < now - KEPT:
            past.popleft()

    def measured(self, seconds: float, now: float | None = None) -> dict[str, Any]:
        """Rates over the last seconds, beside what the plan predicted; `now` is when somebody last told something."""
        end = (self._now if now is None else now) - SILENT
        for name in [name for name, told in self._seen.items() if told[-1][0] < end]:
            del self._seen[name]
        spans = {name: _span(past, seconds) for name, past in sorted(self._seen.items())}
        sources = [span for span in spans.values() if span["role"] == "source"]
        edges = [span for span in spans.values() if span["role"] == "edge"]
        predicted: dict[str, Any] = next(
            (s["last"]["predicted"] for s in spans.values() if s["last"].get("predicted")), {}
        )
        sent: dict[int, float] = {}
        for sender in (*sources, *(span for span in spans.values() if span["role"] == "relay")):
            for name, rate in sender["rates"].items():
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
            "gateways": predicted.get("gateways", {}),
            "adapting": next((s["last"]["adapting"] for s in spans.values() if "adapting" in s["last"]), None),
        }

    def flows(self, seconds: float) -> list[tuple[str, str, float, float]]:
        """Of every source and broker: name, role, messages sent and arrived per second."""
        spans = [(name, _span(past, seconds)) for name, past in self._seen.items() if past[-1][1]["role"] != "edge"]
        return [
            (name, s["role"], s["rates"].get("messages sent", 0.0), s["rates"].get("messages arrived", 0.0))
            for name, s in spans
        ]


def _span(past: deque[tuple[float, dict[str, Any]]], seconds: float) -> dict[str, Any]:
    """The change of every count per second, over at least `seconds` if there is so much."""
    end, last = past[-1]
    begin, first = next(((t, told) for t, told in reversed(past) if t <= end - seconds + 0.5), past[0])
    # By the clock of who told: what was held up on its way came all at once.
    time = max(last.get("at", end) - first.get("at", begin), 1e-9)
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
        "trouble": ", ".join(f"{what} {count:,}" for what, count in sorted(counts.items()) if _TROUBLE.search(what)),
    }


def _groups(
    sent: dict[int, float], total: float, edges: list[dict[str, Any]], predicted: dict[str, float]
) -> list[dict[str, Any]]:
    members = Counter(group for edge in edges for group in edge["last"].get("groups", ()))
    return [
        {
            "group": group,
            "messages_s": sent.get(group, 0.0),
            "share": min(1.0, sent.get(group, 0.0) / total) if total else None,
            "predicted": predicted.get(str(group)),
            "members": members[group],
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
        "group": max(0.0, total - max(joined, arrived)),
        "session": max(0.0, joined - arrived) + rates.get("filtered by session", 0.0),
        "flow": rates.get("filtered by flow", 0.0),
        "profile": rates.get("filtered by profile", 0.0),
    }
    subscriptions, timed = last.get("subscriptions", {}), rates if rates.get(SAMPLES) else last["counts"]
    return {
        "name": last["name"],
        "called": next(iter(subscriptions)) if len(subscriptions) == 1 else last["name"],
        "subscriptions": len(subscriptions),
        "useful_s": levels["useful"],
        "unasked_s": levels["session"] + levels["flow"] + levels["profile"],
        "arrived_s": arrived,
        "measured": {name: min(1.0, rate / total) for name, rate in levels.items()} if total else {},
        "predicted": predicted.get(last["name"], {}),
        "repaired": last["counts"].get("repaired", 0),
        "gaps": last["counts"].get("gaps", 0),
        "ways": {way: last["counts"].get(count, 0) for way, count in WAYS.items()},
        "latency_ms": timed.get(LATENCY, 0) / timed[SAMPLES] / 1000 if timed.get(SAMPLES) else None,
        "bound_ms": predicted.get(last["name"], {}).get("bound_ms"),
        "lag": sum(each["lag"] for each in subscriptions.values()),
    }
