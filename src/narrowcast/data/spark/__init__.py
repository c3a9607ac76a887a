"""Spark itself: Java, session, settings, output."""
