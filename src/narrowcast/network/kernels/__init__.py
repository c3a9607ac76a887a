"""The compiled loops on paths."""
