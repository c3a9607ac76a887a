"""Log, registry and unicast on NATS."""
