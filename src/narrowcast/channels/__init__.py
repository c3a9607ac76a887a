"""Flows to sessions to groups, with hybrid unicast."""
