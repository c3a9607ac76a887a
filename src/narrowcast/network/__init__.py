"""Overlay graphs, shortest paths and dissemination trees."""
