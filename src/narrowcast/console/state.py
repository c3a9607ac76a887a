"""What the page shows, worked out once a refresh for all who look: numbers, rates for the map, and the worst first."""

from __future__ import annotations

from typing import Any

from narrowcast.console.sketch import LOG, UNICAST, asks, labels, planned_at_gateways, sketched
from narrowcast.console.watch import SystemWatch
from narrowcast.reports.system_map import system_map

OVER_S, ROWS = 2.0, 40
NOTHING_LOST = "Nothing is lost: the log has it."


class Page:
    """The state of the page, from what is watched. `map` is drawn anew when its boxes change."""

    def __init__(self, watch: SystemWatch, shards: int, now: Any) -> None:
        self.watch, self.shards, self._now = watch, shards, now
        self.map, self.version = "", 0
        self._drawn: Any = None
        self._edges: list[str] = []

    def state(self, connected: bool = True) -> dict[str, Any]:
        """Everything a viewer needs but the map, which is fetched when `map` has another number."""
        watch = self.watch
        found = watch.overview.measured(OVER_S, self._now())
        planned_at_gateways(found, watch.subscriptions)
        there = [edge for edge in found["edges"] if edge["subscriptions"] or edge["arrived_s"]]  # others want nothing
        edges = sorted(there, key=lambda edge: (-edge["unasked_s"], edge["name"]))
        groups = sorted(found["groups"], key=lambda group: (-group["messages_s"], group["group"]))
        self._draw(edges, {group["group"]: group["messages_s"] for group in groups})
        called = labels(watch.subscriptions)
        relays = {name for name, known in watch.processes.items() if known["role"] == "relay"}
        totals = {
            "messages_s": found["messages_s"],
            "delivered_s": sum(edge["useful_s"] for edge in edges),
            "unasked_s": sum(edge["unasked_s"] for edge in edges),
            **{name: sum(edge[name] for edge in edges) for name in ("lag", "repaired", "gaps")},
            "subscribers": len({record["edge"] for record in watch.subscriptions.values()} - relays),
            "subscriptions": len(watch.subscriptions),
            "groups": len(groups),
        }
        return {
            "epoch": {name: watch.epoch.get(name) for name in ("current", "next", "phase")},
            "health": self._health(totals, connected),
            "totals": totals,
            "processes": self._processes(found["nodes"]),
            "groups": [group | {"asks": asks("group", group["group"])} for group in groups[:ROWS]],
            "edges": [self._row(edge, called) for edge in edges[:ROWS]],
            "rates": self._rates(found, edges),
            "absent": [f"{known['role']}:{name}" for name, known in watch.processes.items() if known["state"] != "up"],
            "map": self.version,
            "adapting": found["adapting"],
        }

    def sample(self, at: float, state: dict[str, Any]) -> list[float]:
        """One point of the lines over time: seconds, sent, delivered, unasked, lag."""
        totals = state["totals"]
        names = ("messages_s", "delivered_s", "unasked_s", "lag")
        return [round(at, 1), *(round(totals[name], 2) for name in names)]

    def _row(self, edge: dict[str, Any], called: dict[str, str]) -> dict[str, Any]:
        mine, label = self.watch.subscriptions, called.get(edge["name"], edge["name"])
        wants = mine[label]["profile"] if label in mine else f"{edge['subscriptions']} profiles"
        kept = ("name", "useful_s", "unasked_s", "lag", "repaired", "gaps", "measured", "predicted", "latency_ms",
                "bound_ms")  # fmt: skip
        return {name: edge[name] for name in kept} | {
            "label": label, "wants": wants[:200], "asks": asks("subscriber", label)
        }  # fmt: skip

    def _processes(self, nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """All but edges, of which there may be many and which have a table of their own."""
        told = {node["name"]: node for node in nodes}
        rest = {"frames_s": 0.0, "bytes_s": 0.0, "trouble": ""}
        found = []
        for name, known in sorted(self.watch.processes.items(), key=lambda item: (item[1]["role"], item[0])):
            if known["role"] != "edge":
                node = told.get(name, rest)
                leads = name == self.watch.leader
                state = "leads" if leads and known["state"] == "up" else known["state"]
                found.append({"name": name, "role": known["role"], "state": state, **{k: node[k] for k in rest}})
        return found

    def _rates(self, found: dict[str, Any], edges: list[dict[str, Any]]) -> dict[str, float]:
        """By the keys of the map's boxes, in messages a second."""
        rates = {f"group:{group['group']}": group["messages_s"] for group in found["groups"]}
        grouped = sum(rates.values())
        shown = {f"edge:{name}" for name in self._edges}
        known = self.watch.overview
        for edge in edges:
            if (key := f"edge:{edge['name']}") in shown:
                rates[key] = edge["arrived_s"]
        drawn = {station.key for _, stations in self._drawn[0] for station in stations}
        for name, role, sent, arrived in known.flows(OVER_S):
            rates[f"{role}:{name}"] = sent if role == "source" else arrived
        rates["group:others"] = sum(
            rate for key, rate in rates.items() if key.startswith("group:") and key not in drawn
        )
        rates[UNICAST] = max(0.0, found["messages_s"] - grouped)
        rates[LOG] = sum(edge["useful_s"] for edge in edges if edge["arrived_s"] == 0)
        return {key: round(rates.get(key, 0.0), 2) for key in drawn}

    def _draw(self, edges: list[dict[str, Any]], groups: dict[int, float]) -> None:
        """The same edges stay on the map while they are there: a picture that jumps cannot be read."""
        watch, present = self.watch, dict.fromkeys(edge["name"] for edge in edges)
        kept = dict.fromkeys(name for name in self._edges if name in present)
        self._edges = [*(kept | present)]
        sources = sorted(name for name, known in watch.processes.items() if known["role"] == "source")
        busiest = groups if self._drawn is None or self._drawn[2] != watch.routed else self._drawn[3]
        columns, legs = sketched(watch.routing, watch.subscriptions, sources, self._edges, busiest, watch.filtering)
        if self._drawn is None or self._drawn[:2] != (columns, legs):
            self.map = system_map(columns, legs, "The system from its sources to its subscribers")
            self.version += 1
        self._drawn = (columns, legs, watch.routed, busiest)

    def _health(self, totals: dict[str, Any], connected: bool) -> dict[str, str]:
        """One sentence, and how bad it is."""
        by_role: dict[str, list[str]] = {}
        for name, known in self.watch.processes.items():
            by_role.setdefault(f"{known['role']} {known['state']}", []).append(name)
        missing = [name for state in ("late", "gone") for name in by_role.get(f"source {state}", [])]
        between = [
            f"{role} {name}" for role in ("broker", "relay") for state in ("late", "gone")
            for name in by_role.get(f"{role} {state}", [])
        ]  # fmt: skip
        if not connected:
            return {"level": "bad", "says": "The console has lost NATS and tries again; what it shows is old."}
        if missing or len(by_role.get("source up", ())) < self.shards:
            who = f"{', '.join(missing)} says nothing" if missing else "A source is missing"
            return {"level": "bad", "says": f"{who}: nothing is sent until it is back. {NOTHING_LOST}"}
        if between:
            return {"level": "bad", "says": f"The {', the '.join(between)} says nothing. {NOTHING_LOST}"}
        if self.watch.leader is None or not by_role.get("coordinator up"):
            return {"level": "warn", "says": "No coordinator: delivery goes on, but no plan can change."}
        if totals["gaps"]:
            return {"level": "warn", "says": f"{totals['gaps']:,} gaps: somebody was too slow and was told so."}
        if self.watch.epoch["phase"] != "steady":
            return {"level": "ok", "says": f"Moving to epoch {self.watch.epoch.get('next')}."}
        return {"level": "ok", "says": "Everything is as it should be."}
