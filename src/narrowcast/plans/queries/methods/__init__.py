"""Which queries are merged: one file per published method."""
