"""A web page of a running system: what it does, why, and what else it could do. It needs the extra `console`."""
