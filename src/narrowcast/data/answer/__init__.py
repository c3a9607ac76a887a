"""Merged queries answered over a table in one scan."""
