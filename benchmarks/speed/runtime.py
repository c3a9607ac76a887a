"""The runtime's own work per message, without any engine: source and edge, for several messages per frame.

The peer is a receiver that is flooded: it decodes every message with `json` and tests it with
`Profile.matches`. Ratios are of one run on one core; above 1 the edge does more messages a second. Last, what sealing
frames adds to the work of source and edge.
"""

from __future__ import annotations

import json
import time

from narrowcast.deliver.parts import records
from narrowcast.deliver.parts.edge import Edge
from narrowcast.deliver.parts.effects import Deliver, Send
from narrowcast.deliver.parts.events import Arrived, Noted, Subscribe, Tick, WasRead
from narrowcast.deliver.parts.source import Source, SourceSettings
from narrowcast.deliver.routing.routes import Subscribers, by_flows
from narrowcast.deliver.transport import Entry
from narrowcast.deliver.wire import (
    Batch,
    Frame,
    Malformed,
    Seal,
    decode,
    encode,
    encode_entry,
    encode_payload,
    end_of,
)
from narrowcast.profiles import Profile

MESSAGES = 32_000
SYMBOLS = [f"S{k}" for k in range(200)]
WISH = "s IN (" + ", ".join(f"'{s}'" for s in SYMBOLS[:10]) + ") AND p > 10"


def main() -> None:
    who = Subscribers({"u": WISH}, {"u": "edge"})
    routing = by_flows(["s"], {s: k // 10 for k, s in enumerate(SYMBOLS)}, {l: l % 5 for l in range(20)}, who)
    rows = [{"s": SYMBOLS[k * 7 % 200], "p": k % 100, "text": "x" * 160} for k in range(MESSAGES)]
    payloads = [encode_payload(row) for row in rows]
    entries = [
        Entry(q + 1, encode_entry(Batch("c", q, tuple(payloads[q * 64 : q * 64 + 64])))) for q in range(MESSAGES // 64)
    ]
    wanted = Profile.parse(WISH)
    begun = time.process_time()
    due = sum(wanted.matches(json.loads(payload)) for payload in payloads)
    flooded = time.process_time() - begun
    print(f"flooded receiver      {MESSAGES / flooded:>12,.0f} messages/s, {due} wanted of {MESSAGES}")
    for h in (1, 8, 64):
        begun = time.process_time()
        frames = sent(entries, routing.to_bytes(), h)
        source = time.process_time() - begun
        mine = [encode(frame) for frame in frames if frame.channel in routing.taken["u"]]
        arrived = sum(len(frame.messages) for frame in frames if frame.channel in routing.taken["u"])
        received(mine[:1], routing.to_bytes())  # the profile is parsed once
        begun = time.process_time()
        got = received(mine, routing.to_bytes())
        edge = time.process_time() - begun
        assert got == due, (got, due)
        rates = f"source {MESSAGES / source:>10,.0f} messages/s; edge {arrived / edge:>10,.0f} arriving messages/s"
        print(f"h={h:<3} {rates}, {flooded / edge:6.1f} times as fast as being flooded")
        plain, sealed = packing(frames, sealed=False), packing(frames, sealed=True)
        added = [(after - before) / MESSAGES * 1e6 for before, after in zip(plain, sealed, strict=True)]
        share = 100 * (sealed[0] - plain[0]) / (source + plain[0])
        print(
            f"      sealing adds {added[0]:.2f} µs a message at the source ({share:.0f} % more work), "
            f"{added[1]:.2f} µs at whoever takes all of them"
        )


def sent(entries: list[Entry], plan: bytes, h: int) -> list[Frame]:
    """What a source sends for these entries."""
    source = Source("source", 0, SourceSettings(most_messages=h, most_bytes=60_000))
    source.step(Tick(), 0.0)
    source.step(Noted("plan.1", plan, 1), 0.0)
    source.step(Noted("source.0", records.pack({"sequence": 0, "epoch": 1}), 1), 0.0)
    frames: list[Frame] = []
    for at in range(0, len(entries), 16):
        some = tuple(entries[at : at + 16])
        for event in (WasRead(0, 0, at, at + len(some), some), Tick()):
            said = [effect.what for effect in source.step(event, at * 0.01) if isinstance(effect, Send)]
            frames += [what for what in said if isinstance(what, Frame)]
    return frames


def packing(frames: list[Frame], *, sealed: bool) -> tuple[float, float]:
    """CPU seconds to make the bytes of frames, and to look at them at the other end before they are decoded."""
    ends = []
    for _ in range(2):
        seal = Seal(7, sealed=sealed)
        seal.know(1, 9)
        seal.add_root(1, b"r" * 32)
        ends.append(seal)
    begun = time.process_time()
    data = [ends[0].pack(frame) for frame in frames]
    packed = time.process_time()
    opened = [ends[1].open(each) for each in data]
    end = time.process_time()
    assert not any(isinstance(each, Malformed) for each in opened)
    return packed - begun, end - packed


def received(data: list[bytes], plan: bytes) -> int:
    """How many messages an edge hands over."""
    edge = Edge("edge", (0,))
    edge.step(Subscribe("u", WISH, {0: end_of(0)}), 0.0)
    edge.step(Noted("plan.1", plan, 1), 0.0)
    got = 0
    for each in data:
        frame = decode(each)
        assert not isinstance(frame, Malformed)
        for effect in edge.step(Arrived(frame), 0.001):
            if isinstance(effect, Deliver):
                got += len(effect.messages)
    return got


if __name__ == "__main__":
    main()
