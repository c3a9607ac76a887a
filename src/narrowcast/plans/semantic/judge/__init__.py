"""Semantic plans judged from their tables alone."""
