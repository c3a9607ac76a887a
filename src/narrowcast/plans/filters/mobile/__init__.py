"""Filters that move while messages flow: batches, states."""
