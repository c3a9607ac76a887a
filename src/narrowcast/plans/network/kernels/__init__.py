"""The loops of network planning."""
