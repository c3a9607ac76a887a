"""Semantic channels on an overlay of brokers. `api` is `narrowcast.semantic`."""
