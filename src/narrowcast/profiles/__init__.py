"""The profile language: what a subscriber wants."""
