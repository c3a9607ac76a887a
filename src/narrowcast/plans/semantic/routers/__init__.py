"""From a message to its channels: by content or by audience."""
