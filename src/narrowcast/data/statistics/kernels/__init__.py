"""The compiled loops of the statistics."""
