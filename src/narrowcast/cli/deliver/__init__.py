"""Commands of a running system."""
