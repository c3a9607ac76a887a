"""The compiled loops of matching."""
