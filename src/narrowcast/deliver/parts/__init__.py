"""The running system as state machines without I/O: publisher, source, broker, edge, coordinator."""
