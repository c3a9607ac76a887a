"""Semantic channels that members join and leave."""
