"""Public checks that a new strategy or transport must pass."""
