"""Many profiles against many messages at once."""
