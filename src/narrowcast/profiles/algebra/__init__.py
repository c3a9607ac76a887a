"""Profiles as sets of values: normal form, covering and overlapping."""
