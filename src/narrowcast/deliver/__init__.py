"""The running system as state machines without I/O: client, source, broker, edge, coordinator.

Each part has `step(event, now) -> list of effects` and `wake_at`, the time by which it wants a `Tick`.
Time is seconds on any clock that only goes forward. The same parts run on real engines and in the
seeded simulator of `narrowcast.testing`.
"""
