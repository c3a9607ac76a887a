"""The overlay on ZeroMQ."""
