"""One plan for one network: sites with multicast, the backbone between them, filters and unicast, in one cost."""
