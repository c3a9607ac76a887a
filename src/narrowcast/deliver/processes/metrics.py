"""OpenMetrics of a process, for whoever collects them: what it tells about itself, under names that stay.

The names are listed in docs/metrics.md. It needs the extra `console` (prometheus_client).
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from narrowcast.deliver.transport.extra import engine
from narrowcast.errors import TransportError

log = logging.getLogger(__name__)
PATIENCE_S = 5.0

# Counts of parts and drivers that have a metric of their own, with what they mean.
COUNTERS: dict[str, tuple[str, str]] = {
    "messages sent": ("messages_sent", "Messages sent to channels, a copy for each channel"),
    "messages arrived": ("messages_arrived", "Messages that came in by channels"),
    "delivered": ("messages_delivered", "Messages given to subscriptions, each once"),
    "repaired": ("messages_repaired", "Messages read from the log because no channel brought them"),
    "repairs": ("repairs", "Readings of the log to fill a hole"),
    "latency µs": ("latency_microseconds", "Sum of sampled latencies, from the log to this edge"),
    "latency samples": ("latency_samples", "How many latencies were sampled"),
    "gaps": ("gaps", "Gaps announced to subscriptions that were too slow"),
    "filtered by session": ("messages_filtered_session", "Messages dropped because nobody here takes their session"),
    "filtered by flow": ("messages_filtered_flow", "Messages dropped by their flow"),
    "filtered by profile": ("messages_filtered_profile", "Messages dropped by the exact profile"),
    "filtered": ("messages_filtered_inside", "Messages that a filter in the network kept from a child"),
    "elected": ("elections_won", "Times this coordinator took the lease"),
    "rolled back": ("plans_rolled_back", "Plans taken back because somebody could not prepare"),
    "offers refused": ("plans_refused", "Offered plans that were refused, unsound ones among them"),
}
CARRIED: dict[str, tuple[str, str]] = {
    "frames": ("frames_received", "Frames received by carriers"),
    "frames sent": ("frames_sent", "Frames sent by carriers"),
    "bytes": ("bytes_received", "Bytes received by carriers"),
    "bytes sent": ("bytes_sent", "Bytes sent by carriers"),
    "frames dropped": ("frames_dropped", "Frames that a carrier dropped; the log repairs them"),
}
GAUGES: dict[str, str] = {
    "epoch": "Number of the plan in force here",
    "subscriptions": "Subscriptions served here",
    "lag_entries": "Log entries that a subscription is behind",
    "groups_joined": "Multicast groups joined",
    "leads": "1 at the coordinator that holds the lease",
    "start_time_seconds": "When the process was started, in seconds since 1970",
}
GROUP = ("group_messages_sent", "Messages sent to a multicast group")
EVENTS = ("events", "Everything else that is counted, by name: malformed frames and the like")
_GROUP = re.compile(r"group (\d+) messages")


class Collector:
    """What prometheus_client asks at every scrape; `told` gives the snapshots of this process's parts."""

    def __init__(self, told: Callable[[], Sequence[dict[str, Any]]]) -> None:
        self._told = told

    def describe(self) -> list[Any]:
        """Nothing beforehand: names that are checked need no scrape."""
        return []

    def collect(self) -> Iterator[Any]:
        core = engine("prometheus_client.core")
        found: dict[str, Any] = {}

        def add(kind: str, name: str, help_: str, labels: dict[str, str], value: float) -> None:
            full = f"narrowcast_{name}"
            if full not in found:
                family = core.CounterMetricFamily if kind == "counter" else core.GaugeMetricFamily
                found[full] = family(full, help_, labels=list(labels))
            found[full].add_metric(list(labels.values()), value)

        for told in self._told():
            _measure(told, add)
        yield from found.values()


def _measure(told: dict[str, Any], add: Callable[..., None]) -> None:
    who = {"node": told["name"], "role": told["role"]}
    for part, names in (("counts", COUNTERS), ("carried", CARRIED)):
        for name, count in told[part].items():
            if name in names:
                add("counter", *names[name], who, count)
            elif match := _GROUP.fullmatch(name):
                add("counter", *GROUP, who | {"group": match[1]}, count)
            else:
                add("counter", *EVENTS, who | {"event": f"{'carrier ' if part == 'carried' else ''}{name}"}, count)
    values = {"epoch": told["epoch"], "start_time_seconds": told["started"]}
    if "leads" in told:
        values["leads"] = int(told["leads"])
    if "subscriptions" in told:
        values |= {"subscriptions": len(told["subscriptions"]), "groups_joined": len(told["groups"])}
        for name, each in told["subscriptions"].items():
            add("gauge", "lag_entries", GAUGES["lag_entries"], who | {"subscription": name}, each["lag"])
    for name, value in values.items():
        add("gauge", name, GAUGES[name], who, value)


def serve_metrics(
    port: int, address: str, told: Callable[[], Sequence[dict[str, Any]]]
) -> tuple[int, Callable[[], None]]:
    """Answer scrapes at http://address:port/metrics from a thread; the port, and how to end it.

    Parameters
    ----------
    port, address : where; port 0 takes a free one
    told : gives the snapshots; called in the event loop of the caller, so that nothing changes under it

    Raises
    ------
    TransportError : prometheus_client is not installed, or the port is taken
    """
    client = engine("prometheus_client")
    loop = asyncio.get_running_loop()

    async def now() -> Sequence[dict[str, Any]]:
        return told()

    def asked() -> Sequence[dict[str, Any]]:
        return asyncio.run_coroutine_threadsafe(now(), loop).result(PATIENCE_S)

    registry = client.CollectorRegistry(auto_describe=False)
    registry.register(Collector(asked))
    client.ProcessCollector(registry=registry)
    try:
        server, thread = client.start_http_server(port, addr=address, registry=registry)
    except OSError as error:
        why = error.strerror or error
        raise TransportError(f"metrics cannot be served: {why}", endpoint=f"{address}:{port}") from None

    def end() -> None:
        server.shutdown()
        server.server_close()
        thread.join(PATIENCE_S)

    log.info("metrics at http://%s:%d/metrics", address, server.server_port)
    return server.server_port, end
