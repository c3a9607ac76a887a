"""Semantic channels on an overlay of brokers."""
