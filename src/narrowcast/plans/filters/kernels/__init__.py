"""The compiled loops of filter placement."""
