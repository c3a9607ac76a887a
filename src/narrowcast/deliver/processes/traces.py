"""OpenTelemetry traces of messages from publish to delivery. Off unless NARROWCAST_TRACES says which share of them.

A trace is one entry of the log: the messages that were published together. Its number follows from the entry's, so
publisher, source, broker and edge agree on it, and on whether it is among those that are traced, without a word in
any frame.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from narrowcast.deliver.parts.effects import Deliver, Send
from narrowcast.deliver.wire import Frame, sequence_of
from narrowcast.errors import InputError, TransportError

SHARE = "NARROWCAST_TRACES"
MOST = 64  # traces that one frame or delivery may touch; the others of it are left out


def share_asked(text: str | None) -> float:
    """The share of the log's entries to trace: 0 where nobody asks.

    >>> share_asked(None), share_asked("0.01")
    (0.0, 0.01)
    """
    try:
        share = float(text or 0)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise InputError(f"{SHARE} must be a share from 0 to 1, as 0.01, got {text!r}", name=SHARE, got=text)
    return share


def numbers_of(system: int, shard: int, sequence: int) -> tuple[int, int]:
    """The numbers of the trace of an entry and of its first span, the publish."""
    digest = blake2b(f"{system}/{shard}/{sequence}".encode(), digest_size=24).digest()
    return int.from_bytes(digest[:16]), int.from_bytes(digest[16:])


class Traces:
    """Spans of one part."""

    def __init__(self, system: int, name: str, role: str, share: float, tracer: Any = None) -> None:
        self._system, self._share = system, share
        self._said = {"narrowcast.name": name, "narrowcast.role": role}
        self._tracer, self._numbers = _tracer() if tracer is None else tracer

    def traced(self, shard: int, sequence: int) -> tuple[int, int] | None:
        """The numbers of an entry's trace; None for one that is not traced."""
        trace, first = numbers_of(self._system, shard, sequence)
        return (trace, first) if (trace >> 64) < self._share * 2**64 else None

    def published(self, shard: int, sequence: int, begin: int) -> None:
        """An entry is in the log; `begin` is when it was first tried, in ns."""
        if (found := self.traced(shard, sequence)) is not None:
            self._numbers.next = found
            self._span("publish", None, begin, {"narrowcast.shard": shard, "narrowcast.sequence": sequence})

    def sent(self, effects: Iterable[Send], begin: int) -> None:
        """Frames went to their carriers."""
        for effect in effects:
            if isinstance(frame := effect.what, Frame) and type(frame.messages) in (tuple, list):
                way = {"narrowcast.to": type(effect.address).__name__.lower(), "narrowcast.channel": frame.channel}
                self._of_places("send", frame.shard, frame.messages, begin, way)

    def delivered(self, effect: Deliver) -> None:
        """An application gets messages."""
        told = {"narrowcast.subscription": effect.subscription}
        self._of_places("deliver", effect.shard, effect.messages, time.time_ns(), told)

    def _of_places(
        self, name: str, shard: int, messages: Sequence[Sequence[Any]], begin: int, told: dict[str, Any]
    ) -> None:
        counts: dict[int, int] = {}
        for message in messages:
            sequence = sequence_of(message[0])
            counts[sequence] = counts.get(sequence, 0) + 1
        for sequence, n in list(counts.items())[:MOST]:
            if (found := self.traced(shard, sequence)) is not None:
                more = {"narrowcast.shard": shard, "narrowcast.sequence": sequence, "narrowcast.messages": n}
                self._span(name, found, begin, told | more)

    def _span(self, name: str, parent: tuple[int, int] | None, begin: int, told: dict[str, Any]) -> None:
        from opentelemetry import trace
        from opentelemetry.context import Context

        context = Context()
        if parent is not None:
            flags = trace.TraceFlags(trace.TraceFlags.SAMPLED)
            known = trace.SpanContext(*parent, is_remote=True, trace_flags=flags)
            context = trace.set_span_in_context(trace.NonRecordingSpan(known), context)
        span = self._tracer.start_span(f"narrowcast {name}", context, attributes=self._said | told, start_time=begin)
        span.end()


@lru_cache(maxsize=1)
def _tracer() -> tuple[Any, Any]:
    """A tracer that sends to where OpenTelemetry's own variables say (OTEL_EXPORTER_OTLP_ENDPOINT), and its numbers."""
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    except ImportError:
        told = f"{SHARE} needs OpenTelemetry, which is not installed: pip install 'narrowcast[otel]'"
        raise TransportError(told, endpoint="opentelemetry") from None
    return tracer_to(OTLPSpanExporter())


def tracer_to(exporter: Any) -> tuple[Any, Any]:
    """A tracer whose spans go to this exporter, and what numbers them."""
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
    from opentelemetry.sdk.trace.sampling import ALWAYS_ON

    class Numbers(RandomIdGenerator):
        """A publish gets the numbers of its entry, everything else new ones."""

        next: tuple[int, int] | None = None

        def generate_trace_id(self) -> int:
            return self.next[0] if self.next is not None else super().generate_trace_id()

        def generate_span_id(self) -> int:
            if (found := self.next) is None:
                return super().generate_span_id()
            self.next = None
            return found[1]

    numbers = Numbers()
    resource = Resource.create({"service.name": os.environ.get("OTEL_SERVICE_NAME", "narrowcast")})
    provider = TracerProvider(sampler=ALWAYS_ON, resource=resource, id_generator=numbers)
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=1000))
    return provider.get_tracer("narrowcast"), numbers


def traces_of(system: int, name: str, role: str) -> Traces | None:
    """The traces of a part, where they are asked for."""
    share = share_asked(os.environ.get(SHARE))
    return Traces(system, name, role, share) if share else None
