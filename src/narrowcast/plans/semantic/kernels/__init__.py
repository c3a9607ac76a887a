"""The compiled loops of semantic planning."""
