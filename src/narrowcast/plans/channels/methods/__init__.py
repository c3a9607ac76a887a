"""How flows find their sessions and groups: one file per published method, and our search."""
