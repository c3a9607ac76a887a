"""Filter placement on a multicast tree."""
