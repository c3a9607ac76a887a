"""The report of a channel plan."""
