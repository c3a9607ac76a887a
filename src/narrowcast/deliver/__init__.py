"""Delivery: a plan obeyed by running processes.

`wire` is bytes, `transport` the engines, `routing` a plan as the network sees it. `parts` are the publisher, source,
broker, edge and coordinator as state machines without I/O: `step(event, now)` returns effects, and the same parts
run on real engines, driven by `processes`, and in the seeded simulator of the tests. `client` is the library for
applications, and `spark` the log as a data source on top of it all.
"""
